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
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Proof describes a run.
type Proof struct {
	Dir      string // for the program
	Orders   int
	Rate     int // orders a second
	Restarts int // of PostgreSQL
	Failover Failover
}

// Failover is whether a standby takes over when half of the orders are sent.
type Failover int

// How a standby takes over.
const (
	None   Failover = iota // none does
	Whole                  // it has all that was committed, as a synchronous one
	Behind                 // it lacks what was committed last
)

// Result is what ledger, journal and table say, and how it came to that.
type Result struct {
	Submitted, Failed int

	Twice, FailedPaid, Unpaid, Forgotten, Disagreeing, WrongID, Stray int // orders on which they disagree

	Clicks, Resolved, TooEarly atomic.Int64 // by customers, and by support
	Kills, Stops, Restarts     int
	Held, Lost                 int           // after a failover: orders that were unresolved or waited, and those of them that the service had executed
	Settling                   time.Duration // after the last blow
}

// Flaws is on how many orders the three disagree.
func (r *Result) Flaws() int {
	return r.Twice + r.FailedPaid + r.Unpaid + r.Forgotten + r.Disagreeing + r.WrongID + r.Stray
}

// The settings of the replicas.
const (
	key      = "proof-key"
	timeout  = time.Second
	late     = 3 * time.Second
	patience = 10 * time.Minute // after the last blow, on however slow a machine
)

// world is what the orders live in.
type world struct {
	Proof
	Result

	service  *service
	database *database
	replicas []*replica
	client   *http.Client
	sent     atomic.Int64 // how many numbers customers have used
}

// Run sends all orders, strikes meanwhile, and compares. The flaws say what is wrong.
func (p Proof) Run(ctx context.Context) (_ *Result, flaws []string, err error) {
	w := &world{Proof: p, client: &http.Client{
		Timeout: 10 * time.Second, Transport: new(http.Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	defer func() {
		if complaints := w.close(); err != nil {
			err = fmt.Errorf("%w\n%s", err, strings.Join(complaints, "\n"))
		}
	}()
	for _, step := range []func(context.Context) error{w.open, w.strike, w.settle} {
		if err := step(ctx); err != nil {
			return nil, nil, err
		}
	}
	flaws, err = w.compare(ctx)
	return &w.Result, flaws, err
}

func (w *world) open(ctx context.Context) (err error) {
	if w.service, err = startService(ctx); err != nil {
		return err
	}
	if w.database, err = startDatabase(ctx); err != nil {
		return err
	}
	if w.Failover != None {
		if err := w.database.follow(ctx, w.Failover == Whole); err != nil {
			return err
		}
	}
	if err := w.database.open(); err != nil {
		return err
	}
	program, err := build(ctx, w.Dir)
	if err != nil {
		return err
	}
	for range 3 {
		r := &replica{program: program, service: w.service.base, args: []string{
			"-db", w.database.source, "-listen", "127.0.0.1:0", "-timeout", timeout.String(), "-late", late.String(),
			"-brake", "-1", "-workers", "16", "-log", "WARN",
		}}
		if w.Failover == Whole {
			r.args = append(r.args, "-synchronous")
		}
		if len(w.replicas) == 0 { // the step of the deployment
			if err := r.migrate(ctx); err != nil {
				return err
			}
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
	if w.service != nil {
		_ = w.service.server.Close()
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
	group.Go(func() { w.Kills, w.Stops, blowErr = blows(striking, w.replicas) })
	group.Go(func() {
		for i := range w.Proof.Restarts {
			whole := time.Duration(w.Orders) * time.Second / time.Duration(w.Rate)
			part := whole * time.Duration(i+1) / time.Duration(w.Proof.Restarts+1)
			if pause(striking, time.Until(start.Add(part))) != nil {
				return
			}
			if restartErr = w.database.restart(ctx); restartErr != nil {
				return
			}
			w.Result.Restarts++
		}
	})
	if w.Failover != None {
		group.Go(func() {
			half := time.Duration(w.Orders) * time.Second / time.Duration(2*w.Rate)
			if restartErr = pause(ctx, time.Until(start.Add(half))); restartErr == nil {
				restartErr = w.failOver(ctx)
			}
		})
	}
	sendErr = w.send(ctx)
	stop()
	group.Wait()
	stopSupport()
	support.Wait()
	return errors.Join(blowErr, restartErr, sendErr)
}

// failOver has the standby take over. If the journal is then on hold, the operator follows docs/operations.md: customers,
// or a broker, send again what they have sent before; and once the floor has passed, support looks into the ledger for
// each order that waits, as for what is unresolved, and the operator releases the hold.
func (w *world) failOver(ctx context.Context) error {
	loses := time.Duration(0)
	if w.Failover == Behind {
		loses = time.Second
	}
	if err := w.database.failOver(ctx, loses); err != nil {
		return err
	}
	floor := time.Time{}
	for until := time.Now().Add(20 * time.Second); floor.IsZero() && time.Now().Before(until); {
		if found, err := w.database.held(ctx); err == nil {
			floor = found
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	switch {
	case w.Failover == Whole && !floor.IsZero():
		return errors.New("the journal is on hold, and nothing was lost")
	case w.Failover == Whole:
		return nil
	case floor.IsZero():
		return errors.New("the journal is not on hold, and something was lost")
	}
	w.Held = len(w.list(ctx, "unresolved"))
	for i := range int(w.sent.Load()) {
		w.order(ctx, i)
	}
	if err := pause(ctx, time.Until(floor)+time.Second); err != nil {
		return err
	}
	for {
		waiting := w.list(ctx, "queued")
		for _, o := range waiting {
			if len(w.service.executed()[o.Order]) > 0 {
				w.Lost++
				w.resolve(ctx, o)
			}
		}
		if status, _ := w.request(ctx, "POST", "/release", "by=operator&why=the+ledger"); status == http.StatusSeeOther {
			return nil
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

// order has a customer send an order until a replica takes it.
func (w *world) order(ctx context.Context, i int) {
	body := fmt.Sprintf(`{"merchantOrderNo":%q,"payoutCurrency":"EUR","transferAmount":"10.50",`+
		`"receiverBankAccountNumber":"DE00"}`, number(i))
	for ctx.Err() == nil {
		if status, _ := w.request(ctx, "POST", "/orders", body); status == http.StatusAccepted {
			return
		}
		_ = pause(ctx, 100*time.Millisecond) // a replica is down, or PostgreSQL
	}
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
		w.sent.Store(int64(i + 1))
		for range 1 + rand.N(4)/3 {
			w.Clicks.Add(1)
			group.Go(func() { w.order(ctx, i) })
		}
	}
	return nil
}

// request asks any replica; a status of 0 is no response.
func (w *world) request(ctx context.Context, method, path, body string) (status int, text []byte) {
	base := w.replicas[rand.N(len(w.replicas))].url()
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
	Order string `json:"order"`
	Call  string `json:"call"`
}

// list returns the orders in a state, or as many of them as a replica returned.
func (w *world) list(ctx context.Context, state string) (orders []listed) {
	var page struct{ Orders []listed }
	for after := ""; ; after = page.Orders[len(page.Orders)-1].Order {
		status, text := w.request(ctx, "GET", "/?state="+state+"&after="+after, "")
		page.Orders = nil
		if status != http.StatusOK || json.Unmarshal(text, &page) != nil {
			return orders
		}
		orders = append(orders, page.Orders...)
		if len(page.Orders) < 100 {
			return orders
		}
	}
}

// support looks into the ledger for what is unresolved, until ctx is done. Two orders in
// three it does not look at the first time.
func (w *world) support(ctx context.Context) {
	asked := map[string]int{}
	for ctx.Err() == nil {
		for _, o := range w.list(ctx, "unresolved") {
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
	form := url.Values{"order": {o.Call + " " + o.Order}, "by": {"support"}, "why": {"the ledger"}}
	form.Set("as_of", time.Now().UTC().Format(time.RFC3339Nano))
	if ids := w.service.executed()[o.Order]; len(ids) > 0 {
		form.Set("outcome", "executed")
		form.Set("service_id", ids[0])
	} else {
		form.Set("outcome", []string{"send_again", "not_executed"}[dice(o.Order, 2)])
	}
	switch status, _ := w.request(ctx, "POST", "/resolve", form.Encode()); status {
	case http.StatusOK:
		w.Resolved.Add(1)
	case http.StatusConflict:
		w.TooEarly.Add(1)
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
			w.Settling = time.Since(start)
			return nil
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("%w: %d, %v after the last blow", errUnended, left, patience)
		}
	}
}

// compare waits until nothing can be executed any more, and compares ledger, journal and
// table for each order.
func (w *world) compare(ctx context.Context) (flaws []string, err error) {
	for _, r := range w.replicas {
		r.end()
	}
	settle, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := w.service.finish(settle); err != nil {
		return nil, err
	}
	rows, err := w.database.rows(ctx)
	if err != nil {
		return nil, err
	}
	executed := w.service.executed()
	for i := range w.Orders {
		order := number(i)
		if flaw := w.judge(rows[order], executed[order]); flaw != "" {
			flaws = append(flaws, fmt.Sprintf("%s: %+v, executed as %q: %s", order, rows[order], executed[order], flaw))
		}
		delete(executed, order)
	}
	w.Stray = len(executed) + len(rows) - w.Orders
	return flaws, nil
}

// judge counts one order, and returns what is wrong with it.
func (r *Result) judge(o row, executed []string) (flaw string) {
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
	case len(executed) > 1:
		count(&r.Twice, "twice")
	case o.state == "failed" && len(executed) > 0:
		count(&r.FailedPaid, "failed though executed")
	case o.state == "submitted" && len(executed) == 0:
		count(&r.Unpaid, "submitted though not executed")
	case o.state == "submitted" && o.journal != "executed",
		o.state == "failed" && (o.journal == "executed" || !o.closed):
		count(&r.Disagreeing, "other than the journal")
	case o.serviceID != "" && !slices.Contains(executed, o.serviceID):
		count(&r.WrongID, "another order's ID")
	}
	return flaw
}
