package sqljournal_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// workerVariable holds a task in JSON, in the environment of a worker.
const workerVariable = "CARDWIRE_TEST_WORKER"

// task is what a worker does: it sends each order once, a few at a time.
type task struct {
	At       place
	URL      string
	Orders   []string
	Together int
	Stays    bool // after the last order, until its input ends
}

func order(reference string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: reference, PayoutCurrency: "EUR", TransferAmount: decimal.RequireFromString("12.50"),
	}
}

// work is the life of a worker process. It prints each order and how it ended,
// which is then on record, or "failed" with a journal's failure.
func work() int {
	var w task
	if err := json.Unmarshal([]byte(os.Getenv(workerVariable)), &w); err != nil {
		return complain(err)
	}
	source := w.At.Source
	if w.At.Dialect == sqljournal.PostgreSQL {
		source += "&application_name=" + w.At.Table // by which orphans finds it
	}
	db, err := sql.Open(w.At.Driver, source)
	if err != nil {
		return complain(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(w.Together)
	journal, err := sqljournal.New(db, w.At.Dialect, sqljournal.WithTable(w.At.Table))
	if err != nil {
		return complain(err)
	}
	unrecorded := func(context.Context, cardwire.CallInfo, error) { fmt.Fprintln(os.Stdout, "- unrecorded") }
	client, err := cardwire.New(w.URL, cardwiretest.DefaultKey, cardwire.WithJournal(journal),
		cardwire.WithObserver(cardwire.Observer{JournalError: unrecorded}))
	if err != nil {
		return complain(err)
	}
	w.send(client)
	if w.Stays {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return 0
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

func (w *task) send(client *cardwire.Client) {
	orders := make(chan string)
	var group sync.WaitGroup
	for range w.Together {
		group.Go(func() {
			for reference := range orders {
				_, err := client.CreateTransfer(context.Background(), order(reference))
				fmt.Fprintln(os.Stdout, reference, ending(err))
			}
		})
	}
	for _, reference := range w.Orders {
		orders <- reference
	}
	close(orders)
	group.Wait()
}

// ending is how a call ended, in one word.
func ending(err error) string {
	var failure *cardwire.Error
	switch {
	case err == nil:
		return "success"
	case !errors.As(err, &failure):
		return "strange"
	case errors.Is(err, cardwire.ErrDuplicateIntent):
		return "taken-" + failure.Outcome.String()
	case failure.Outcome == cardwire.OutcomeNotSent:
		return "notsent"
	}
	return failure.Outcome.String()
}

// worker is a process at its task. Its input ends with the program that started it.
type worker struct {
	command *exec.Cmd
	output  io.ReadCloser
	errors  strings.Builder
}

func startWorker(t *testing.T, w task) *worker {
	t.Helper()
	text, err := json.Marshal(w)
	require.NoError(t, err)
	p := &worker{command: exec.CommandContext(t.Context(), os.Args[0])}
	p.command.Env = append(os.Environ(), workerVariable+"="+string(text))
	p.command.Stderr = &p.errors
	_, err = p.command.StdinPipe()
	require.NoError(t, err)
	p.output, err = p.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.command.Start())
	return p
}

// wait reads to the end what the worker prints, and returns it by order.
func (p *worker) wait() (told map[string]string, err error) {
	told = map[string]string{}
	lines := bufio.NewScanner(p.output)
	for lines.Scan() {
		reference, how, _ := strings.Cut(lines.Text(), " ")
		told[reference] = how
	}
	return told, p.command.Wait()
}

// serve serves the service at a URL of its own. Each request is told to around when it has
// arrived, and again when the service is done with it. What closeAll returns after is over.
func serve(service http.Handler, around func(served bool)) (url string, closeAll func()) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		around(false)
		defer around(true)
		service.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // resets are what is wanted
	server.Start()
	return server.URL + "/api/v1", server.Close
}

// orphans waits until the database has done what processes that have ended asked
// of it last. SQLite works inside the process, and ends with it.
func orphans(t *testing.T, db *sql.DB, at place) {
	t.Helper()
	for left := 1; at.Dialect == sqljournal.PostgreSQL && left > 0; {
		require.NoError(t, db.QueryRowContext(t.Context(),
			"SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", at.Table).Scan(&left))
	}
}

// statesOf are the states in the table by reference.
func statesOf(t *testing.T, db *sql.DB, at place) map[string]string {
	t.Helper()
	states := map[string]string{}
	for _, row := range rows(t, db, at) {
		reference, rest, _ := strings.Cut(row, " ")
		states[reference], _, _ = strings.Cut(rest, " ")
	}
	return states
}

func numbered(prefix string, n int) (orders []string) {
	for i := range n {
		orders = append(orders, fmt.Sprintf("%s-%04d", prefix, i))
	}
	return orders
}

// breakTransfers makes some hundred requests go wrong, before and after they
// took effect.
func breakTransfers(s *cardwiretest.Service) {
	for range 10 {
		for _, kind := range []cardwiretest.FaultKind{
			cardwiretest.FaultReset, cardwiretest.FaultHTML, cardwiretest.FaultStatus,
			cardwiretest.FaultGarbage, cardwiretest.FaultTruncated,
		} {
			s.Fail(transfer, cardwiretest.Fault{Kind: kind, Executed: true}, 3)
			s.Fail(transfer, cardwiretest.Fault{Kind: kind}, 1)
			s.Fail(transfer, cardwiretest.Fault{Status: 422}, 3) // refused: another process may try
			s.Fail(transfer, cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, 1)
		}
	}
}

// Eight processes send the same 1,000 orders through a service that fails in
// many ways: no order is executed twice, and the table agrees with the ledger.
func TestProcessesNeverExecuteAnOrderTwice(t *testing.T) {
	const processes, orders = 8, 1000
	at := onPostgreSQL(t)
	db, journal := openNew(t, at)
	service := cardwiretest.New()
	breakTransfers(service)
	url, stop := serve(service, func(bool) {})
	defer stop()

	var workers []*worker
	for range processes {
		// All begin at the same end, so that they race, and drift apart by and by.
		workers = append(workers, startWorker(t, task{at, url, numbered("P", orders), 2, false}))
	}
	told := map[string]map[string]int{} // order, ending, how often
	counts := map[string]int{}
	for _, p := range workers {
		endings, err := p.wait()
		require.NoError(t, err, p.errors.String())
		require.Len(t, endings, orders)
		for reference, how := range endings {
			if told[reference] == nil {
				told[reference] = map[string]int{}
			}
			told[reference][how]++
			counts[how]++
		}
	}

	states := statesOf(t, db, at)
	var open []string
	byState := map[string]int{}
	for _, reference := range numbered("P", orders) {
		executions, state := service.Executions(transfer, reference), states[reference]
		byState[state]++
		require.LessOrEqual(t, executions, 1, reference)
		assert.LessOrEqual(t, told[reference]["success"]+told[reference]["executed"], 1, reference)
		assert.LessOrEqual(t, told[reference]["unknown"], 1, "%s: after the first unknown none is sent", reference)
		switch state {
		case "executed":
			assert.Equal(t, 1, executions, reference)
		case "refused":
			assert.Zero(t, executions, reference)
		case "unknown":
			assert.Equal(t, 1, told[reference]["unknown"], reference)
			open = append(open, reference)
		default:
			assert.Fail(t, "all have ended", "%s is %q", reference, state)
		}
	}
	listed := unresolved(t, journal)
	slices.Sort(listed)
	assert.Equal(t, open, listed)
	t.Logf("told: %v; rows: %v; executions: %d", counts, byState, len(service.Ledger()))
	for _, how := range []string{"strange", "notsent", "unrecorded"} {
		assert.Zero(t, counts[how], how)
	}
	assert.Positive(t, counts["refused"])
	assert.Positive(t, counts["unknown"])
}

// kills is a multiple of 4, so that each kind of kill is tried as often.
var kills = flag.Int("kills", 8, "how many `processes` TestAKilledProcess... kills on each database")

// A process that is killed leaves a row of all that it sent, and the next one
// sends none of it again.
func TestAKilledProcessLeavesATraceOfAllThatItSent(t *testing.T) {
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		service := cardwiretest.New()
		counts := map[string]int{}
		for n := range *kills {
			orders := numbered(fmt.Sprintf("K%d", n), 24)
			served, kept := n%2 == 0, n/2%2 == 0
			require.NoError(t, journal.SetService(t.Context(), ""))
			told := killWorker(t, service, task{At: at, Orders: orders, Together: 3, Stays: true}, served, kept)
			orphans(t, db, at)
			checkTrace(t, db, at, service, journal, orders, told, counts)
		}
		t.Logf("%d kills, orders: %v, executions: %d", *kills, counts, len(service.Ledger()))
		assert.Positive(t, counts["open"], "some kill came between Begin and End")
	})
}

// killWorker kills a worker at a request that is drawn by lot: as it arrives, or once it
// was served. The service keeps that request until the worker is dead, or continues, and
// the kill comes up to 2 ms later, wherever the worker is then.
func killWorker(t *testing.T, service http.Handler, w task, served, kept bool) (told map[string]string) {
	t.Helper()
	target := 1 + rand.Int32N(16)
	strike, dead := make(chan struct{}), make(chan struct{})
	var requests atomic.Int32
	url, stop := serve(service, func(done bool) {
		if done != served || requests.Add(1) != target {
			return
		}
		close(strike)
		if kept {
			<-dead
		}
	})
	w.URL = url
	p := startWorker(t, w)
	struck := make(chan error, 1)
	go func() {
		<-strike
		if !kept {
			<-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond)
		}
		struck <- p.command.Process.Kill()
	}()
	told, err := p.wait()
	close(dead)
	require.Error(t, err, "it was killed")
	require.Empty(t, p.errors.String())
	require.NoError(t, <-struck)
	stop()
	return told
}

// checkTrace compares rows, ledger and what the worker told of its orders, has
// them sent once more, and resolves what is unresolved, as an operator does who asks the
// service.
func checkTrace(t *testing.T, db *sql.DB, at place, service *cardwiretest.Service, journal *sqljournal.Journal,
	orders []string, told map[string]string, counts map[string]int,
) {
	t.Helper()
	states := statesOf(t, db, at)
	require.Empty(t, unresolved(t, journal), "until their SendBy they may be in progress")
	execute(t, db, "UPDATE "+at.Table+" SET send_by = time, settled_by = time WHERE state = 'open'") // time passes
	listed := unresolved(t, journal)
	again, err := cardwire.New("https://api.example.com/api/v1", cardwiretest.DefaultKey, cardwire.WithJournal(journal),
		cardwire.WithHTTPClient(&http.Client{Transport: service}))
	require.NoError(t, err)
	require.NoError(t, journal.SetService(t.Context(), "")) // as if all were at one address
	send := func(reference string) string {
		_, err := again.CreateTransfer(t.Context(), order(reference))
		return ending(err)
	}
	var open []string
	for _, reference := range orders {
		executions, state := service.Executions(transfer, reference), states[reference]
		counts[state]++
		if told[reference] != "" {
			require.Equal(t, "success", told[reference], reference)
			require.Equal(t, "executed", state, "what was told is on record")
		}
		switch how := send(reference); state {
		case "": // the kill came before Begin
			require.Zero(t, executions, "%s: a row stands before the first byte leaves", reference)
			require.Equal(t, "success", how, reference)
		case "open":
			require.LessOrEqual(t, executions, 1, reference)
			require.Equal(t, "taken-unknown", how, reference)
			open = append(open, reference)
		default:
			require.Equal(t, "executed", state, reference)
			require.Equal(t, 1, executions, reference)
			require.Equal(t, "taken-executed", how, reference)
		}
	}
	slices.Sort(listed)
	require.Equal(t, open, listed)
	for _, reference := range open {
		i := lookup(t, journal, reference).Intent
		if service.Executions(transfer, reference) == 1 {
			require.NoError(t, journal.Resolve(t.Context(), i, paid("")))
			continue
		}
		require.NoError(t, journal.Resolve(t.Context(), i, notSent()))
		require.Equal(t, "success", send(reference), reference)
	}
	for _, reference := range orders {
		require.Equal(t, 1, service.Executions(transfer, reference), reference)
	}
}
