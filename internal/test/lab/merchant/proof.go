//go:build unix

package merchant

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall" // its signals to stop and go on are those of Unix
	"time"

	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
)

// Proof describes a run.
type Proof struct {
	Dir     string // for the merchant's database
	Orders  int
	Client  string
	Journal *Place // nil: none

	RetryErrors bool // what an error of the other clients means; else the order fails

	// Processes is how many there are; 0: the merchant is part of this process, and is
	// neither killed nor paused.
	Processes    int
	Kill, Pause  bool
	Restart      string // a program that restarts the journal's database; "": it is left alone
	Workers      int    // of each process
	Timeout      time.Duration
	Grace, Lease time.Duration
	Limit        int
	Seed         uint64
}

// Result is what the ledger says of the orders, once nothing can be executed any more.
type Result struct {
	Orders, Submitted, Failed int

	Twice        int // executed more than once
	FailedPaid   int // failed, and executed
	Unpaid       int // submitted, and not executed
	Forgotten    int // neither submitted nor failed
	WrongID      int // submitted with another service ID than that of the order
	Contradicted int // a step said that an order had ended the other way
	Stray        int // executions of what nobody ordered

	WithID, Kills, Pauses, NotYet int // NotYet: "not found" was said of what was executed later
	Restarts, Sessions            int // of the journal's database, and how many of its sessions were ended
	Steps                         map[string]int
	Examples                      []string // of what went wrong
	Took                          time.Duration
}

// Flaws is how many orders ended as none may.
func (r *Result) Flaws() int {
	return r.Twice + r.FailedPaid + r.Unpaid + r.Forgotten + r.WrongID + r.Contradicted + r.Stray
}

func (r *Result) String() string {
	return fmt.Sprintf("%d orders in %v: %d submitted, %d of them with the service's ID, %d failed; "+
		"executed twice %d, failed though executed %d, submitted though not executed %d, forgotten %d, wrong ID %d, contradicted %d, stray %d; "+
		"%d kills, %d pauses, %d restarts of the database, %d sessions ended, %d times \"not found\" of what was executed later; steps %v%s",
		r.Orders, r.Took.Round(time.Second), r.Submitted, r.WithID, r.Failed, r.Twice, r.FailedPaid, r.Unpaid, r.Forgotten, r.WrongID,
		r.Contradicted, r.Stray, r.Kills, r.Pauses, r.Restarts, r.Sessions, r.NotYet, r.Steps, strings.Join(append([]string{""}, r.Examples...), "\n"))
}

// Run has all orders submitted, and compares what became of them with the ledger.
func (p Proof) Run(ctx context.Context) (*Result, error) {
	w, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	defer w.close()
	r := &Result{Orders: p.Orders, Steps: map[string]int{}}
	start := time.Now()
	if p.Processes == 0 {
		err = w.task.Run(ctx)
	} else {
		err = p.processes(ctx, w.task, r)
	}
	if err != nil {
		return nil, err
	}
	err = w.compare(ctx, r)
	r.Took = time.Since(start)
	return r, err
}

// world is what the merchant lives in.
type world struct {
	service *chaos.Running
	support *supporter
	desk    *httptest.Server
	table   *table
	task    Task
}

// open starts the service, and puts the orders into the table.
func (p Proof) open(ctx context.Context) (*world, error) {
	service, err := chaos.Start(ctx, kinds())
	if err != nil {
		return nil, err
	}
	w := &world{service: service}
	w.support = &supporter{ledger: service.Ledger(), asked: map[string]int{}, wrong: map[string]bool{}}
	w.desk = httptest.NewServer(w.support)
	w.task = p.task(service.Base(), w.desk.URL)
	if w.table, err = openTable(w.task.Table); err == nil {
		err = p.order(ctx, w.table)
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) close() {
	if w.table != nil {
		_ = w.table.close() // it is thrown away
	}
	w.desk.Close()
	w.service.Stop()
}

// kinds are those that a transfer can meet.
func kinds() []chaos.Kind { return append(chaos.KindsOf([]string{operation}), chaos.GatewayKinds()...) }

// attempts are the kinds that a call may meet: half of all calls go well.
func attempts() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.Name, "ok")
	}
	return names
}

func (p Proof) task(bases map[string]string, desk string) Task {
	return Task{
		Bases: bases, Kinds: attempts(), Desk: desk, Table: dsn(filepath.Join(p.Dir, "orders.db")), Journal: p.Journal,
		Workers: p.Workers, Seed: p.Seed, Client: p.Client, RetryErrors: p.RetryErrors,
		Timeout: p.Timeout, Grace: p.Grace, Lease: p.Lease, Limit: p.Limit,
	}
}

// order puts the orders into the table, and their messages into the queue: one, or
// two at once. A few orders are invalid.
func (p Proof) order(ctx context.Context, t *table) error {
	if _, err := t.db.ExecContext(ctx, schema); err != nil {
		return err
	}
	luck := rand.New(rand.NewPCG(p.Seed, 0)) //nolint:gosec // no secret
	return t.tx(ctx, func(tx *sql.Tx) error {
		for i := range p.Orders {
			reference, body := fmt.Sprintf("order-%07d", i), asOrdered
			if luck.IntN(50) == 0 {
				body = "invalid"
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO orders (reference, body) VALUES (?, ?)`, reference, body); err != nil {
				return err
			}
			clicks := 1 + luck.IntN(4)/3
			for range clicks {
				if _, err := tx.ExecContext(ctx, `INSERT INTO messages (reference, body, shard, double) VALUES (?, ?, ?, ?)`,
					reference, body, luck.IntN(max(p.Processes, 1)), clicks > 1); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TaskVariable holds a Task in JSON, in the environment of a merchant process, which
// is the test's own program.
const TaskVariable = "CARDWIRE_MERCHANT"

// Work is the life of a process that has a task, and returns its status.
func Work(ctx context.Context) int {
	var t Task
	err := json.Unmarshal([]byte(os.Getenv(TaskVariable)), &t)
	if err == nil {
		err = t.Run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// processes runs the merchant's processes until the queue is empty. Who is killed is
// started again.
func (p Proof) processes(ctx context.Context, task Task, result *Result) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	errs, all := make([]error, p.Processes), make([]troubles, p.Processes)
	for i := range p.Processes {
		group.Go(func() {
			task := task
			task.Shard = i
			all[i].left = 5 + p.Orders/150
			for again := true; again && errs[i] == nil; {
				again, errs[i] = p.process(ctx, task, &all[i])
			}
			if errs[i] != nil {
				cancel()
			}
		})
	}
	var blows error
	struck := make(chan struct{})
	go func() {
		defer close(struck)
		blows = p.strike(ctx, result)
	}()
	group.Wait()
	cancel()
	<-struck
	errs = append(errs, blows)
	for _, t := range all {
		result.Kills, result.Pauses = result.Kills+t.kills, result.Pauses+t.pauses
	}
	return errors.Join(errs...)
}

// strike ends sessions of the journal's database, and restarts it now and then, until
// ctx is done.
func (p Proof) strike(ctx context.Context, result *Result) error {
	if p.Restart == "" {
		return nil
	}
	db, err := sql.Open(p.Journal.Driver, p.Journal.Source)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	const restartEvery = 25                                                                                // blows, of which the first comes soon
	for n := restartEvery - 5; pause(ctx, 200*time.Millisecond+rand.N(300*time.Millisecond)) == nil; n++ { //nolint:gosec // any time will do
		if n%restartEvery == 0 {
			if text, err := exec.Command(p.Restart).CombinedOutput(); err != nil { //nolint:gosec,noctx // half a restart would leave no server
				return fmt.Errorf("the database was not restarted: %w: %s", err, text)
			}
			result.Restarts++
			continue
		}
		var ended int
		err := db.QueryRowContext(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE application_name = $1 AND pid <> pg_backend_pid() AND random() < 0.3`, p.Journal.Table).Scan(&ended)
		if err == nil { // else this session was ended by the restart
			result.Sessions += ended
		}
	}
	return nil
}

// troubles are those of a process and its successors. They end, so that a slow
// machine gets done as well.
type troubles struct{ left, kills, pauses int }

// start begins a process that has the task.
func (t Task) start(ctx context.Context) (*exec.Cmd, *strings.Builder, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, nil, err
	}
	complaint := new(strings.Builder)
	command := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this program
	command.Env = append(os.Environ(), TaskVariable+"="+string(text))
	command.Stderr = complaint
	return command, complaint, command.Start()
}

// process is one life of a process, and reports whether it was killed.
func (p Proof) process(ctx context.Context, task Task, t *troubles) (killed bool, err error) {
	command, complaint, err := task.start(ctx)
	if err != nil {
		return false, err
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	for {
		select {
		case err := <-done:
			if err != nil && !killed {
				return false, fmt.Errorf("a merchant process: %w: %s", err, complaint.String())
			}
			return killed, nil
		case <-time.After(500*time.Millisecond + rand.N(3*time.Second)): //nolint:gosec // any time will do
		}
		switch {
		case killed || t.left == 0:
		case p.Kill && rand.IntN(3) == 0: //nolint:gosec // as above
			killed = command.Process.Kill() == nil
			t.left, t.kills = t.left-1, t.kills+1
		case p.Pause && command.Process.Signal(syscall.SIGSTOP) == nil:
			_ = pause(ctx, rand.N(p.Timeout+p.Grace+3*time.Second)) //nolint:gosec // as above
			_ = command.Process.Signal(syscall.SIGCONT)             // it has ended, or goes on
			t.left, t.pauses = t.left-1, t.pauses+1
		}
	}
}

const maxExamples = 20

func (r *Result) example(format string, args ...any) {
	if len(r.Examples) < maxExamples {
		r.Examples = append(r.Examples, fmt.Sprintf(format, args...))
	}
}

// compare waits until nothing can be executed any more, and asks the ledger about
// each order.
func (w *world) compare(ctx context.Context, r *Result) error {
	settle, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := w.service.Settle(settle); err != nil {
		return err
	}
	t, ledger, executions := w.table, w.service.Ledger(), 0
	r.NotYet = w.support.wrongs()
	err := each(ctx, t, `SELECT reference, state, service_id FROM orders`, func(reference, state, id string) {
		n := ledger.Executions(chaos.Order{Op: operation, Reference: reference})
		executions += n
		if flaw := r.judge(reference, state, id, n); flaw != "" {
			r.example("%s, %s, executed %d times: %s", reference, state, n, flaw)
		}
	})
	r.Stray = ledger.Total() - executions
	steps := each(ctx, t, `SELECT step, n, '' FROM steps`, func(step, n, _ string) {
		r.Steps[step], _ = strconv.Atoi(n) // a column of integers
	})
	complaints := each(ctx, t, `SELECT reference, text, '' FROM complaints`, func(reference, text, _ string) {
		r.Contradicted++
		r.example("%s: %s", reference, text)
	})
	return errors.Join(err, steps, complaints)
}

// judge counts one order, and returns what is wrong with it.
func (r *Result) judge(reference, state, id string, executions int) (flaw string) {
	count := func(n *int, text string) {
		*n++
		flaw = text
	}
	switch state {
	case stateSubmitted:
		r.Submitted++
	case stateFailed:
		r.Failed++
	default:
		count(&r.Forgotten, "forgotten")
	}
	switch {
	case executions > 1:
		count(&r.Twice, "twice")
	case state == stateFailed && executions > 0:
		count(&r.FailedPaid, "failed though executed")
	case state == stateSubmitted && executions == 0:
		count(&r.Unpaid, "submitted though not executed")
	case state == stateSubmitted && id != "" && id != "AO-"+reference:
		count(&r.WrongID, "another order's ID")
	case state == stateSubmitted && id != "":
		r.WithID++
	}
	return flaw
}

// each reads rows of three columns.
func each(ctx context.Context, t *table, query string, row func(a, b, c string)) (err error) {
	rows, err := t.db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var a, b, c string
		if err := rows.Scan(&a, &b, &c); err != nil {
			return err
		}
		row(a, b, c)
	}
	return rows.Err()
}
