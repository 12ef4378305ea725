package sqljournal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Whatever a statement lacks, and however it spells what it lists: it records no order as not executed.
// Whatever a restore loses: no order is paid twice, and none that was paid is failed, where a person denies
// only what the service's support denies, and the journal accepts that.
//
//	go test -run TestNoStatementAndNoRestorePaysTwice -rapid.checks 10000
func TestNoStatementAndNoRestorePaysTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			s := newStory(rt)
			rt.Repeat(map[string]func(*rapid.T){
				"":                 s.check,
				"reserve":          s.reserve,
				"send":             s.send,
				"send again":       s.send,
				"a response":       s.land,
				"time passes":      s.wait,
				"a statement":      s.reconcile,
				"a person asks":    func(rt *rapid.T) { s.ask(rt, s.one(rt)) },
				"and another":      func(rt *rapid.T) { s.ask(rt, s.one(rt)) },
				"a person cancels": s.cancel,
				"a backup":         s.backUp,
				"a restore":        s.restore,
				"a hold":           s.hold,
				"a release":        s.release,
			})
		})
	})
}

const longest = 11 * time.Minute // of the life of a call

// story is a journal, the merchant's own records, and a service that executes whatever it receives.
type story struct {
	db       *sql.DB
	journal  *sqljournal.Journal
	orders   []string
	received []received
	flying   []flying
	failed   map[string]bool // somebody was told so
	backup   bool
	held     bool
}

// received is what the service received.
type received struct {
	reference, id string
	at            time.Time
	executed      time.Time // or will be; zero: never
}

// flying is a call whose result will be recorded.
type flying struct {
	intent cardwire.Intent
	result cardwire.IntentResult
}

func newStory(rt *rapid.T) *story {
	dir, err := os.MkdirTemp("", "")
	require.NoError(rt, err)
	rt.Cleanup(func() { assert.NoError(rt, os.RemoveAll(dir)) })
	db, err := sql.Open("sqlite", "file:"+dir+"/journal.db?_pragma=synchronous(FULL)")
	require.NoError(rt, err)
	db.SetMaxOpenConns(1)
	rt.Cleanup(func() { assert.NoError(rt, db.Close()) })
	journal, err := sqljournal.New(db, sqljournal.SQLite)
	require.NoError(rt, err)
	require.NoError(rt, journal.Migrate(context.Background()))
	return &story{
		db: db, journal: journal, failed: map[string]bool{},
		orders: []string{"1001", "10010"}, // a cut makes one of the other
	}
}

func (s *story) one(rt *rapid.T) string { return rapid.SampledFrom(s.orders).Draw(rt, "order") }

func (s *story) intent(reference string) cardwire.Intent {
	i := intent(reference)
	i.SettledBy = i.Time.Add(longest)
	return i
}

func (s *story) reserve(rt *rapid.T) {
	_ = s.journal.Reserve(rt.Context(), s.intent(s.one(rt))) // it is on record already
}

// send calls the service, which executes now, late, or never, and whose response comes now, late, or never.
func (s *story) send(rt *rapid.T) {
	i := s.intent(s.one(rt))
	err := s.journal.Begin(rt.Context(), i)
	d, known := errors.AsType[*cardwire.DuplicateIntent](err)
	if known && (d.Outcome == cardwire.OutcomeRefused || d.Outcome == cardwire.OutcomeNotSent) {
		s.failed[i.Reference] = true
	}
	if err != nil {
		return
	}
	assert.False(rt, s.held, "it is on hold")
	r := received{reference: i.Reference, id: fmt.Sprintf("T-%d", len(s.received)), at: time.Now()}
	result := unknown
	switch rapid.SampledFrom([]string{"executed", "late", "lost", "refused", "closed", "not sent"}).Draw(rt, "fate") {
	case "executed":
		r.executed = time.Now()
		if rapid.Bool().Draw(rt, "is told") {
			result = cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: r.id}
		}
	case "late":
		r.executed = time.Now().Add(time.Duration(rapid.IntRange(1, 10).Draw(rt, "minutes")) * time.Minute)
	case "refused":
		result = refused
	case "closed":
		result = final
	case "not sent":
		result = cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}
	}
	s.received = append(s.received, r)
	switch rapid.SampledFrom([]string{"now", "later", "never"}).Draw(rt, "response") {
	case "now":
		_ = s.journal.End(rt.Context(), i, result)
		s.failed[i.Reference] = s.failed[i.Reference] || result == final
	case "later":
		s.flying = append(s.flying, flying{i, result})
	}
}

// land records a result, whatever is on record by then.
func (s *story) land(rt *rapid.T) {
	if len(s.flying) == 0 {
		rt.SkipNow()
	}
	f := s.flying[0]
	s.flying = s.flying[1:]
	_ = s.journal.End(rt.Context(), f.intent, f.result)
}

func (s *story) wait(rt *rapid.T) {
	waits := []time.Duration{time.Second, 5 * time.Minute, longest, 2 * longest}
	<-time.After(rapid.SampledFrom(waits).Draw(rt, "time"))
}

// reconcile applies a statement that lacks lines, and in which numbers, amounts and service IDs are spelled in
// another way.
func (s *story) reconcile(rt *rapid.T) {
	now := time.Now()
	statement := sqljournal.Statement{
		Op: transfer, From: now.Add(-24 * time.Hour), Until: now, Exported: now, AllowStrays: true,
		Statuses: map[string]sqljournal.StatementStatus{
			"done": sqljournal.StatementExecuted, "failed": sqljournal.StatementNotExecuted,
			"wait": sqljournal.StatementPending,
		},
		Lines: func(yield func(sqljournal.StatementLine, error) bool) {
			for n, r := range s.received {
				line := sqljournal.StatementLine{
					Line: n + 2, Reference: r.reference, ServiceID: r.id, Currency: "EUR", Status: "failed", Time: r.at,
					Amount: decimal.New(1250, -2),
				}
				switch {
				case r.executed.IsZero():
				case r.executed.After(now):
					line.Status = "wait"
				default:
					line.Status = "done"
				}
				lines := []string{"right", "missing", "another's", "cut", "cents", "ID"}
				switch rapid.SampledFrom(lines).Draw(rt, "line") {
				case "missing":
					continue
				case "another's":
					line.Reference = s.one(rt)
				case "cut":
					line.Reference = line.Reference[:len(line.Reference)-1]
				case "cents":
					line.Amount = decimal.New(1250, 0)
				case "ID":
					line.ServiceID = rapid.SampledFrom([]string{"", "T-0"}).Draw(rt, "ID")
				}
				if !yield(line, nil) {
					return
				}
			}
		},
	}
	before := s.undone(rt)
	for f, err := range s.journal.Reconcile(rt.Context(), statement) {
		require.NoError(rt, err)
		if err := s.journal.Apply(rt.Context(), f, "Ada", "the statement"); f.Applies() {
			assert.True(rt, err == nil || errors.Is(err, sqljournal.ErrDecided), err) // another has the service ID
		}
	}
	for reference, closed := range s.undone(rt) {
		was, wasUndone := before[reference]
		assert.True(rt, wasUndone && was == closed, "a statement records %s as not executed", reference)
	}
}

// undone are the orders that are on record as not executed, and whether they are closed.
func (s *story) undone(rt *rapid.T) map[string]bool {
	all := map[string]bool{}
	for _, reference := range s.orders {
		e, err := s.journal.Lookup(rt.Context(), transfer, reference)
		if err == nil && (e.Outcome == cardwire.OutcomeRefused || e.Outcome == cardwire.OutcomeNotSent) {
			all[reference] = e.Closed
		}
	}
	return all
}

// ask records what the service's support says of an order, which is right as of now.
func (s *story) ask(rt *rapid.T, reference string) {
	ctx, i := rt.Context(), cardwire.Intent{Op: transfer, Reference: reference}
	n := slices.IndexFunc(s.received, func(r received) bool {
		return r.reference == reference && !r.executed.IsZero() && !r.executed.After(time.Now())
	})
	e, err := s.journal.Lookup(ctx, transfer, reference)
	i.Call = e.Call
	switch {
	case n >= 0:
		if err != nil {
			require.NoError(rt, s.journal.Reserve(ctx, s.intent(reference)))
		}
		if s.journal.Resolve(ctx, i, paid(s.received[n].id)) != nil { // a statement gave the ID to another
			_ = s.journal.Resolve(ctx, i, paid(""))
		}
	case err == nil && e.Outcome != cardwire.OutcomeRefused && e.Outcome != cardwire.OutcomeNotSent:
		found := rapid.SampledFrom([]journal.Resolution{rejected(), notSent()}).Draw(rt, "denial")
		_ = s.journal.Resolve(ctx, i, found) // too early
	}
	s.failed[reference] = s.failed[reference] || s.isClosed(rt, reference)
}

func (s *story) isClosed(rt *rapid.T, reference string) bool { return s.undone(rt)[reference] }

// cancel closes an order that was not sent, as far as is known: on hold, after the support was asked.
func (s *story) cancel(rt *rapid.T) {
	reference := s.one(rt)
	if s.held {
		s.ask(rt, reference)
	}
	if s.journal.Void(rt.Context(), cardwire.Intent{Op: transfer, Reference: reference}, "Ada", "canceled") == nil {
		s.failed[reference] = true
	}
}

var copied = []string{"cardwire_intents", "cardwire_intents_history", "cardwire_intents_journal"}

func (s *story) backUp(rt *rapid.T) {
	for _, table := range copied {
		s.exec(rt, "DROP TABLE IF EXISTS backup_"+table, "CREATE TABLE backup_"+table+" AS SELECT * FROM "+table)
	}
	s.backup = true
}

// restore follows docs/operations.md: the journal is on hold before any program runs.
func (s *story) restore(rt *rapid.T) {
	if !s.backup {
		rt.SkipNow()
	}
	for _, table := range copied {
		s.exec(rt, "DELETE FROM "+table, "INSERT INTO "+table+" SELECT * FROM backup_"+table)
	}
	if rapid.Bool().Draw(rt, "the programs were stopped") {
		s.flying = nil
	}
	s.hold(rt)
}

func (s *story) hold(rt *rapid.T) {
	require.NoError(rt, s.journal.Hold(rt.Context(), "Ada", "a restore", longest))
	s.held = true
}

func (s *story) exec(rt *rapid.T, statements ...string) {
	for _, statement := range statements {
		_, err := s.db.ExecContext(rt.Context(), statement)
		require.NoError(rt, err, statement)
	}
}

// release ends a hold, from the floor on: the support is asked about each order, and what the merchant's own
// records have as failed is canceled again.
func (s *story) release(rt *rapid.T) {
	h, err := s.journal.Held(rt.Context())
	require.NoError(rt, err)
	assert.Equal(rt, s.held, h.By != "")
	if s.held && time.Now().Before(h.Floor) {
		assert.Error(rt, s.journal.Release(rt.Context(), "Ada", "too early"))
		return
	}
	for _, reference := range s.orders {
		s.ask(rt, reference)
		if s.failed[reference] {
			_ = s.journal.Void(rt.Context(), cardwire.Intent{Op: transfer, Reference: reference}, "Ada",
				"canceled before")
		}
	}
	require.NoError(rt, s.journal.Release(rt.Context(), "Ada", "the service was asked about each"))
	s.held = false
}

// check counts what is executed, and what will be.
func (s *story) check(rt *rapid.T) {
	times := map[string]int{}
	for _, r := range s.received {
		if !r.executed.IsZero() {
			times[r.reference]++
		}
	}
	for _, reference := range s.orders {
		assert.LessOrEqual(rt, times[reference], 1, "%s is paid twice", reference)
		assert.False(rt, s.failed[reference] && times[reference] > 0, "%s was paid, and is failed", reference)
	}
}
