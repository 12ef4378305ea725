//go:build unix

package payouts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
)

// Proof describes a run.
type Proof struct {
	Dir      string // for the program
	Orders   int
	Rate     int // orders a second
	Restarts int // of PostgreSQL
}

// Result is what ledger, journal and table say, and how it came to that.
type Result struct {
	Orders, Submitted, Failed            int
	Clicks, Kills, Stops, Restarts       int
	Calls, Asked, TooEarly               int
	Twice, FailedPaid, Unpaid, Forgotten int
	Disagreeing, WrongID, Stray          int
	Blowing, Settling                    time.Duration
	Examples                             []string // of what went wrong
}

// Flaws is on how many orders the three disagree.
func (r *Result) Flaws() int {
	return r.Twice + r.FailedPaid + r.Unpaid + r.Forgotten + r.Disagreeing + r.WrongID + r.Stray
}

func (r *Result) String() string {
	return fmt.Sprintf("%d orders, clicked %d times: %d submitted, %d failed; executed twice %d, failed though executed %d, "+
		"submitted though not executed %d, forgotten %d, other than the journal %d, wrong ID %d, stray %d; "+
		"%d kills, %d stops and %d restarts of PostgreSQL in %v; support resolved %d, and was too early %d times; ended %v after the last blow%s",
		r.Orders, r.Clicks, r.Submitted, r.Failed, r.Twice, r.FailedPaid, r.Unpaid, r.Forgotten, r.Disagreeing, r.WrongID, r.Stray,
		r.Kills, r.Stops, r.Restarts, r.Blowing.Round(time.Second), r.Asked, r.TooEarly, r.Settling.Round(time.Second),
		strings.Join(append([]string{""}, r.Examples...), "\n"))
}

// The settings of the replicas. The service executes lateBy after a client has gone, and
// a client may be stopped for seconds: support does not say "not executed" of an order
// that is on its way, as a real one must not.
const (
	timeout  = time.Second
	late     = 2 * time.Second
	patience = 10 * time.Minute // after the last blow, on however slow a machine
)

// world is what the orders live in.
type world struct {
	Proof
	service  *chaos.Running
	gateway  *gateway
	database *database
	replicas []*replica
	client   *http.Client
	result   Result

	clicks, asked, tooEarly atomic.Int64
}

// Run sends all orders, strikes meanwhile, and compares.
func (p Proof) Run(ctx context.Context) (_ *Result, err error) {
	w := &world{Proof: p, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	defer func() {
		for i, complaint := range w.close() {
			if err != nil && complaint != "" {
				err = fmt.Errorf("%w\nreplica %d: %s", err, i, complaint)
			}
		}
	}()
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	if err := w.strike(ctx); err != nil {
		return nil, err
	}
	if err := w.settle(ctx); err != nil {
		return nil, err
	}
	return w.compare(ctx)
}

func (w *world) open(ctx context.Context) (err error) {
	if w.service, err = chaos.Start(ctx, kinds()); err != nil {
		return err
	}
	if w.gateway, err = startGateway(ctx, w.service); err != nil {
		return err
	}
	if w.database, err = startDatabase(ctx); err != nil {
		return err
	}
	program, err := build(ctx, w.Dir)
	if err != nil {
		return err
	}
	for range 3 {
		r := &replica{program: program, service: w.gateway.base(), args: []string{
			"-db", w.database.source, "-listen", "127.0.0.1:0", "-timeout", timeout.String(), "-late", late.String(),
			"-sweep", "5s", "-brake", "0", "-workers", "16", "-log", "WARN",
		}}
		if len(w.replicas) == 0 { // the step of the deployment
			r.args = append(r.args, "-migrate")
		}
		w.replicas = append(w.replicas, r)
		if err := r.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) close() (complaints []string) {
	for _, r := range w.replicas {
		complaints = append(complaints, r.end())
	}
	if w.gateway != nil {
		w.gateway.stop()
	}
	if w.service != nil {
		w.service.Stop()
	}
	if w.database != nil {
		if err := w.database.stop(); err != nil {
			complaints = append(complaints, err.Error())
		}
	}
	w.client.CloseIdleConnections()
	return complaints
}

// number is the i-th order's.
func number(i int) string { return fmt.Sprintf("order-%06d", i) }

// strike sends the orders, and kills, stops and restarts until all are sent.
func (w *world) strike(ctx context.Context) error {
	start := time.Now()
	striking, stop := context.WithCancel(ctx)
	defer stop()
	supporting, stopSupport := context.WithCancel(ctx)
	defer stopSupport()
	var group, support sync.WaitGroup
	var blowErr, restartErr, sendErr error
	support.Go(func() { w.support(supporting) })
	group.Go(func() { w.result.Kills, w.result.Stops, blowErr = blows(striking, w.replicas) })
	group.Go(func() {
		for i := range w.Restarts {
			part := time.Duration(i+1) * time.Duration(w.Orders) * time.Second / time.Duration(w.Rate*(w.Restarts+1))
			if pause(striking, time.Until(start.Add(part))) != nil {
				return
			}
			if restartErr = w.database.restart(ctx); restartErr != nil {
				return
			}
			w.result.Restarts++
		}
	})
	sendErr = w.send(ctx)
	stop()
	group.Wait()
	stopSupport()
	support.Wait()
	w.result.Blowing = time.Since(start)
	return errors.Join(blowErr, restartErr, sendErr)
}

// send has customers send the orders, a fourth of them twice at once, to any replica and
// again until one responds.
func (w *world) send(ctx context.Context) error {
	ticker := time.NewTicker(time.Second / time.Duration(w.Rate))
	defer ticker.Stop()
	var group sync.WaitGroup
	defer group.Wait()
	for i := range w.Orders {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for range 1 + rand.N(4)/3 { //nolint:gosec // any will do
			w.clicks.Add(1)
			group.Go(func() {
				body := fmt.Sprintf(`{"order":%q,"transfer":{"payoutCurrency":"EUR","transferAmount":"10.50","receiverBankAccountNumber":"DE00"}}`, number(i))
				for ctx.Err() == nil {
					if status, _ := w.request(ctx, "POST", "/payouts", body); status == http.StatusAccepted {
						return
					}
					_ = pause(ctx, 100*time.Millisecond) // a replica is down, or PostgreSQL
				}
			})
		}
	}
	return nil
}

// request asks any replica; a status of 0 is no response.
func (w *world) request(ctx context.Context, method, path, body string) (status int, text []byte) {
	base := w.replicas[rand.N(len(w.replicas))].url() //nolint:gosec // as above
	r, err := http.NewRequestWithContext(ctx, method, base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, nil
	}
	response, err := w.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, text
}

// listed is an order as the API returns it.
type listed struct {
	Order     string    `json:"order"`
	ChangedAt time.Time `json:"changed_at"`
}

// list returns the orders in a state, or as many of them as a replica returned.
func (w *world) list(ctx context.Context, state string) (orders []listed) {
	var page struct {
		Payouts []listed `json:"payouts"`
	}
	for after := ""; ; after = page.Payouts[len(page.Payouts)-1].Order {
		status, text := w.request(ctx, "GET", "/payouts?state="+state+"&after="+after, "")
		page.Payouts = nil
		if status != http.StatusOK || json.Unmarshal(text, &page) != nil {
			return orders
		}
		orders = append(orders, page.Payouts...)
		if len(page.Payouts) < 100 {
			return orders
		}
	}
}

// support looks into the ledger for what is unresolved, until ctx is done. Two orders in
// three it does not look at the first time.
func (w *world) support(ctx context.Context) {
	asked := map[string]int{}
	for ctx.Err() == nil {
		for _, o := range append(w.list(ctx, "unresolved"), w.list(ctx, "forgotten")...) {
			if asked[o.Order]++; asked[o.Order] > int(dice(o.Order, 3)) {
				w.resolve(ctx, o)
			}
		}
		_ = pause(ctx, 300*time.Millisecond)
	}
}

// resolve records what the ledger says. At first support also says "not executed" of
// what is on its way, which must be refused as too early.
func (w *world) resolve(ctx context.Context, o listed) {
	order, now := chaos.Order{Op: operation, Reference: o.Order}, time.Now()
	var asked struct {
		Call string `json:"call"`
	}
	if status, text := w.request(ctx, "GET", "/payouts/"+o.Order, ""); status != http.StatusOK || json.Unmarshal(text, &asked) != nil {
		return // it is asked again
	}
	body := fmt.Sprintf(`{"call":%q,"outcome":"executed","service_id":"AO-%s","by":"support","why":"the ledger"}`, asked.Call, o.Order)
	if w.service.Ledger().Executions(order) == 0 {
		if w.service.Ledger().Pending(order) && time.Since(o.ChangedAt) > late/2 {
			return
		}
		body = fmt.Sprintf(`{"call":%q,"outcome":%q,"as_of":%q,"by":"support","why":"the ledger"}`,
			asked.Call, []string{"send_again", "not_executed"}[dice(o.Order, 2)], now.Format(time.RFC3339Nano))
	}
	switch status, _ := w.request(ctx, "POST", "/payouts/"+o.Order+"/resolve", body); status {
	case http.StatusOK:
		w.asked.Add(1)
	case http.StatusConflict:
		w.tooEarly.Add(1)
	}
}

// dice is always the same for an order.
func dice(order string, sides uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(order))
	return h.Sum32() >> 8 % sides
}

var errUnended = errors.New("orders have not ended")

// settle waits until all orders have ended.
func (w *world) settle(ctx context.Context) error {
	start := time.Now()
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	group.Go(func() { w.support(ctx) })
	for {
		left, err := w.database.unended(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil && left == 0 {
			w.result.Settling = time.Since(start)
			return nil
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("%w: %d, %v after the last blow", errUnended, left, patience)
		}
	}
}

// compare waits until nothing can be executed any more, and compares ledger, journal and
// table for each order.
func (w *world) compare(ctx context.Context) (*Result, error) {
	for _, r := range w.replicas {
		r.end()
	}
	settle, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := w.service.Settle(settle); err != nil {
		return nil, err
	}
	rows, err := w.database.rows(ctx)
	if err != nil {
		return nil, err
	}
	r, executions := &w.result, 0
	r.Orders, r.Clicks, r.Asked, r.TooEarly = w.Orders, int(w.clicks.Load()), int(w.asked.Load()), int(w.tooEarly.Load())
	for i := range w.Orders {
		n := w.service.Ledger().Executions(chaos.Order{Op: operation, Reference: number(i)})
		executions += n
		if flaw := r.judge(number(i), rows[number(i)], n); flaw != "" && len(r.Examples) < 20 {
			r.Examples = append(r.Examples, fmt.Sprintf("%s: %+v, executed %d times: %s", number(i), rows[number(i)], n, flaw))
		}
	}
	r.Stray = w.service.Ledger().Total() - executions + len(rows) - w.Orders
	return r, nil
}

// judge counts one order, and returns what is wrong with it.
func (r *Result) judge(order string, o row, executions int) (flaw string) {
	count := func(n *int, text string) {
		*n++
		flaw = text
	}
	switch {
	case o.state == "submitted":
		r.Submitted++
	case o.state == "failed":
		r.Failed++
	default:
		count(&r.Forgotten, "forgotten")
	}
	switch {
	case executions > 1:
		count(&r.Twice, "twice")
	case o.state == "failed" && executions > 0:
		count(&r.FailedPaid, "failed though executed")
	case o.state == "submitted" && executions == 0:
		count(&r.Unpaid, "submitted though not executed")
	case o.state == "submitted" && o.journal != "executed", o.state == "failed" && (o.journal == "executed" || !o.closed):
		count(&r.Disagreeing, "other than the journal")
	case o.serviceID != "" && o.serviceID != "AO-"+order:
		count(&r.WrongID, "another order's ID")
	}
	return flaw
}
