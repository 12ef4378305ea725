package sqljournal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Journal is a cardwire.Journal in a table. It is safe for concurrent use, also
// by several clients. It does not close its database.
type Journal struct {
	db         *sql.DB
	pool       executor
	dialect    Dialect
	table      table
	identity   atomic.Pointer[string] // of the journal that must be in the database; nil: not known yet
	statements sync.Map               // *statement by template
	abandoned  calls
}

var _ cardwire.Journal = (*Journal)(nil)

// Option configures a [Journal] in [New].
type Option func(*Journal) error

// DefaultTable is the table unless [WithTable] names another.
const DefaultTable = "cardwire_intents"

var tableName = regexp.MustCompile(`^([a-z_][a-z0-9_]{0,62}\.)?([a-z_][a-z0-9_]{0,47})$`)

func parseTable(name string) (table, error) {
	parts := tableName.FindStringSubmatch(name)
	if parts == nil {
		return table{}, errors.New("sqljournal: the name of a table must be at most 48 of a-z, 0-9 and _, and not " +
			"begin with a digit; a schema may precede it, as in payments.cardwire_intents")
	}
	return table{schema: parts[1], name: parts[2]}, nil
}

// WithTable names the table: at most 48 lower-case letters, digits and underscores,
// optionally after the name of a schema and a dot, as in payments.cardwire_intents.
// The default is [DefaultTable]. Two more tables have its name with _history and
// _journal at the end. Each account and each environment of the service needs a table
// of its own: the same reference is a different order in each.
func WithTable(name string) Option {
	return func(j *Journal) (err error) {
		j.table, err = parseTable(name)
		return err
	}
}

// WithIdentity names the journal that must be in the database, as [Journal.Identity]
// returns it; "": the one that [Journal.Verify] or Begin finds first. With any other
// journal, Begin fails with [ErrSchema], and nothing is sent.
func WithIdentity(id string) Option {
	return func(j *Journal) error {
		if id != "" {
			j.identity.Store(&id)
		}
		return nil
	}
}

// New returns a Journal in db, a database of the dialect. It does not access the
// database; see [Journal.Verify] and [Journal.Migrate].
func New(db *sql.DB, dialect Dialect, opts ...Option) (*Journal, error) {
	if db == nil {
		return nil, errors.New("sqljournal: the database is nil")
	}
	if err := dialect.check(); err != nil {
		return nil, err
	}
	j := &Journal{db: db, pool: db, dialect: dialect, table: table{name: DefaultTable}}
	if dialect == SQLite {
		j.pool = &writes{DB: db, turn: make(chan struct{}, 1)}
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("sqljournal: an option is nil")
		}
		if err := opt(j); err != nil {
			return nil, err
		}
	}
	return j, nil
}

// states are the states of an ended intent; the package comment explains them.
var states = map[cardwire.Outcome]string{
	cardwire.OutcomeUnknown: "unknown", cardwire.OutcomeExecuted: "executed",
	cardwire.OutcomeRefused: "refused", cardwire.OutcomeNotSent: "not_sent",
}

// outcomeOf returns the outcome of a state; that of "open" is unknown.
func outcomeOf(state string) cardwire.Outcome {
	for outcome, s := range states {
		if s == state {
			return outcome
		}
	}
	return cardwire.OutcomeUnknown
}

// columns are those of @intents that a new row sets.
const columns = `op, reference, body_sha256, summary, repeatable, state, closed, proved, call, calls,
	service_id, status, created_at, time, send_by, settled_by, ended_at, kind, by, note`

// begin is one statement on purpose: the unique index decides which call is first, and
// the lock on the row which call begins it again. SQLite takes its write lock at once, so
// that the statement never fails because it has read before.
const begin = `@event
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, ?3, ?4, CAST(?5 AS @bool), 'open', FALSE, FALSE, ?6, 1, '', '',
	@in ?7, @in ?7, @in ?8, @later(@in ?8, @in ?9), NULL, 'begun', '', ''
WHERE @this AND EXISTS (SELECT 1 FROM @journal WHERE ?10 IN ('', service))
ON CONFLICT (op, reference) DO UPDATE
SET body_sha256 = excluded.body_sha256, summary = excluded.summary, repeatable = excluded.repeatable,
	state = 'open', closed = FALSE, proved = FALSE, call = excluded.call, calls = i.calls + 1,
	service_id = '', status = '', time = excluded.time, send_by = excluded.send_by,
	settled_by = excluded.settled_by, ended_at = NULL, kind = 'begun', by = '', note = ''
WHERE CASE WHEN excluded.repeatable THEN i.state NOT IN ('open', 'unknown') OR i.settled_by <= @now
	ELSE i.state IN ('refused', 'not_sent') AND NOT i.closed AND i.body_sha256 IN ('', excluded.body_sha256) END`

// begins returns the parameters of begin.
func (j *Journal) begins(i cardwire.Intent, service string) []any {
	return []any{
		i.Op, i.Reference, i.BodySHA256, i.Summary, i.Repeatable, i.Call,
		j.dialect.in(i.Time), j.dialect.in(i.SendBy), j.dialect.in(i.SettledBy), service,
	}
}

// Begin implements cardwire.Journal. It also returns [ErrSchema] if the database is not
// the journal's, an error that names both services if the journal is another service's,
// and otherwise the failure of the database. The package comment says what becomes of an
// intent that may have been recorded all the same.
func (j *Journal) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Op == "" || i.Reference == "" || i.Call == "" {
		return errors.New("sqljournal: an intent needs an operation, a reference and a call")
	}
	if err := ctx.Err(); err != nil {
		return j.failed("recording the intent", err)
	}
	t := j.waiting()
	if err := t.pin(ctx); err != nil {
		return err
	}
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })
	defer stop()
	err := t.attempt(patient, "recording the intent", i, refusal, begin, j.begins(i, i.Service)...)
	if f, ok := errors.AsType[*failure](err); ok {
		f.cause = errors.Join(ctx.Err(), f.cause)
		j.release(ctx, i)
	}
	return err
}

// patience is for how long Begin waits for its statement after its caller's context is
// done, and again for marking the intent as not sent. A server that is told to cancel a
// statement may execute it anyway, after the reference was released.
const patience = time.Second

// attempt executes a statement about an intent until it changes a row, or until why returns
// why it does not, and not errAgain.
func (t *Tx) attempt(
	ctx context.Context, what string, i cardwire.Intent, why func(known, cardwire.Intent) error,
	template string, args ...any,
) error {
	for range 3 {
		changed, err := t.exec(ctx, template, args...)
		switch {
		case err != nil:
			return t.journal.failed(what, err)
		case changed > 0:
			return nil
		}
		k, err := t.findFor(ctx, i)
		switch {
		case err != nil:
		case k.Open && k.Call != i.Call && t.journal.abandoned.has(k.Call):
			err = cmp.Or(t.release(ctx, k.Intent), errAgain)
		default:
			err = why(k, i)
		}
		if !errors.Is(err, errAgain) {
			return err
		}
	}
	return errAgain
}

// errAgain reports that the statement may change the row by now.
var errAgain = shows("the reference was changed by others at the same time: try again")

// refusal returns why the intent could not be begun.
func refusal(k known, i cardwire.Intent) error {
	d := k.duplicate()
	switch {
	case k.Open && k.Call == i.Call:
		return nil // it is this one: the driver executed the statement twice
	case i.Repeatable && k.mayRepeat():
		return errAgain
	case d == nil && k.isOther(i.BodySHA256):
		return cardwire.ErrOtherBody
	case d == nil:
		return errAgain
	case i.Repeatable, k.Closed, !k.isOther(i.BodySHA256):
		return d
	}
	return fmt.Errorf("%w: %w", cardwire.ErrOtherBody, d)
}

// End implements cardwire.Journal. Where the record contradicts the result it returns
// [ErrContradiction]; where the intent is no longer on record, it records it again with
// its result and returns [ErrRecordedAgain]. Where the database fails, it tries again
// until ctx is done, for at most 10 seconds.
func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	switch r.Outcome {
	case cardwire.OutcomeExecuted:
		r.Final = false
	case cardwire.OutcomeRefused, cardwire.OutcomeNotSent:
		r.ServiceID, r.Final = "", r.Final && !i.Repeatable
	default: // an outcome that does not exist is unknown
		r = cardwire.IntentResult{Status: r.Status, Reason: r.Reason}
	}
	e := &ending{j.persistent(), i, r}
	ended, err := e.end(ctx)
	if err == nil && ended == 0 {
		err = e.late(ctx)
	}
	return err
}

// ending is the result of a call on its way into the record.
type ending struct {
	on     *Tx
	intent cardwire.Intent
	result cardwire.IntentResult
}

func (e *ending) exec(ctx context.Context, template string, args ...any) (changed int64, err error) {
	changed, err = e.on.exec(ctx, template, args...)
	if err != nil {
		err = e.on.journal.failed("recording the result", err)
	}
	return changed, err
}

func (e *ending) find(ctx context.Context) (known, error) {
	return e.on.find(ctx, e.intent.Op, e.intent.Reference)
}

// end is the result of the call that has the row open.
const end = `@event
UPDATE @intents
SET state = ?4, closed = CAST(?5 AS @bool), proved = (?4 = 'executed'), service_id = ?6, status = ?7,
	ended_at = @now, kind = 'ended', by = '', note = ?8
WHERE op = ?1 AND reference = ?2 AND call = ?3 AND state = 'open' AND @this`

func (e *ending) end(ctx context.Context) (ended int64, err error) {
	i, r := e.intent, e.result
	return e.exec(ctx, end, i.Op, i.Reference, i.Call, states[r.Outcome], r.Final, r.ServiceID, r.Status, r.Reason)
}

// recordEvent records an event that is not the row's own.
const recordEvent = `
INSERT INTO @history (intent, time, kind, call, state, service_id, by, note)
SELECT id, @now, ?3, ?4, ?5, ?6, '', ?7 FROM @intents WHERE op = ?1 AND reference = ?2 AND @this
	AND NOT EXISTS (SELECT 1 FROM @history AS h
		WHERE h.intent = id AND h.kind = ?3 AND h.call = ?4 AND h.state = ?5 AND h.service_id = ?6)`

// late records the result of a call that does not have its row open: it is late, was
// recorded before, or the row has vanished.
func (e *ending) late(ctx context.Context) error {
	k, err := e.find(ctx)
	vanished := errors.Is(err, ErrNoIntent)
	if vanished {
		k, err = e.again(ctx)
	}
	if err != nil {
		return err
	}
	agrees, err := e.apply(ctx, k)
	if err == nil && !agrees {
		agrees, err = e.wasTold(ctx, k)
	}
	if err != nil {
		return err
	}
	kind, flaw := "ended", error(nil)
	if !agrees {
		kind, flaw = "contradicted", ErrContradiction
	}
	if vanished {
		flaw = ErrRecordedAgain
	}
	i, r := e.intent, e.result
	_, err = e.exec(ctx, recordEvent, i.Op, i.Reference, kind, i.Call, states[r.Outcome], r.ServiceID, r.Reason)
	if err != nil || flaw == nil {
		return err
	}
	return e.onRecord(ctx, flaw)
}

// again records an intent that has vanished, unless another call has begun since.
func (e *ending) again(ctx context.Context) (k known, err error) {
	if _, err := e.exec(ctx, begin, e.on.journal.begins(e.intent, "")...); err != nil {
		return k, err
	}
	e.result.Reason = strings.TrimSuffix("the database had forgotten it; "+e.result.Reason, "; ")
	if _, err := e.end(ctx); err != nil {
		return k, err
	}
	return e.find(ctx)
}

// apply changes the row as a late result demands, and reports whether the row agreed with
// it until then.
func (e *ending) apply(ctx context.Context, k known) (agrees bool, err error) {
	agrees = true
	for range 10 {
		changed, err := e.change(ctx, k)
		agrees = agrees && e.agreesWith(k)
		if changed || err != nil {
			return agrees, err
		}
		before := k.found()
		if k, err = e.find(ctx); err != nil || slices.Equal(before, k.found()) {
			return agrees && e.result.Outcome != cardwire.OutcomeUnknown, err // it was denied, or executed
		}
	}
	return false, e.on.journal.failed("recording the result", errAgain)
}

// agreesWith reports whether the row says what the late result says.
func (e *ending) agreesWith(k known) bool {
	own, r := k.Call == e.intent.Call, e.result
	switch {
	case e.intent.Repeatable && !own:
		return true // each call is granted by itself: this one is history
	case r.Outcome != cardwire.OutcomeExecuted:
		return k.Outcome == r.Outcome && k.Closed == r.Final
	case k.Outcome == cardwire.OutcomeExecuted:
		return k.ServiceID == r.ServiceID && r.ServiceID != "" || own && (k.ServiceID == "" || r.ServiceID == "")
	}
	return k.Outcome == cardwire.OutcomeUnknown && own
}

// asFound is a row that is still what was found of it, so that what was made of it, and
// said about it, is true. Its parameters are those of known.found.
const asFound = `
WHERE op = ?1 AND reference = ?2 AND state = ?3 AND closed = ?4 AND proved = ?5 AND service_id = ?6 AND call = ?7
	AND @this`

func (k known) found() []any {
	state := states[k.Outcome]
	if k.Open {
		state = "open"
	}
	return []any{k.Op, k.Reference, state, k.Closed, k.Proved, k.ServiceID, k.Call}
}

// executedLate is what a success does to a row that says something else. Nothing undoes it.
const executedLate = `
UPDATE @intents
SET state = 'executed', closed = FALSE, proved = TRUE, service_id = ?9, status = ?10, ended_at = @now,
	call = ?8, body_sha256 = ?11, summary = ?12, time = @in ?13, send_by = @in ?14, settled_by = @in ?15,
	repeatable = CAST(?16 AS @bool)` + asFound

// executedAgain is what a success does to a row that says executed: what a person said
// is then proved.
const executedAgain = `
UPDATE @intents SET proved = TRUE, service_id = CASE WHEN service_id = '' THEN ?8 ELSE service_id END` + asFound

// unknownLate is what an unknown outcome does. It may still be executed until the later
// of both calls is settled.
const unknownLate = `
UPDATE @intents
SET state = 'unknown', closed = FALSE, settled_by = @later(settled_by, @in ?9), ended_at = @now` + asFound + `
AND state <> 'executed' AND NOT EXISTS (SELECT 1 FROM @history AS h
	WHERE h.intent = id AND h.call = ?8 AND h.kind = 'resolved' AND h.state IN ('refused', 'not_sent'))`

// change changes the row as a late result demands, and reports false if it is not what was
// found any more, or does not become unknown.
func (e *ending) change(ctx context.Context, k known) (changed bool, err error) {
	i, r, in := e.intent, e.result, e.on.journal.dialect.in
	template, args := "", k.found()
	switch {
	case i.Repeatable && k.Call != i.Call:
		return true, nil
	case r.Outcome == cardwire.OutcomeUnknown:
		template, args = unknownLate, append(args, i.Call, in(i.SettledBy))
	case r.Outcome != cardwire.OutcomeExecuted:
		return true, nil
	case k.Outcome != r.Outcome:
		template, args = executedLate, append(args, i.Call, r.ServiceID, r.Status, i.BodySHA256, i.Summary,
			in(i.Time), in(i.SendBy), in(i.SettledBy), i.Repeatable)
	case k.Proved && (k.ServiceID != "" || r.ServiceID == ""):
		return true, nil
	default:
		template, args = executedAgain, append(args, r.ServiceID)
	}
	n, err := e.exec(ctx, template, args...)
	return n > 0, err
}

// wasTold reports whether the history has this result of a call that another one has
// followed: what frees a reference may be told again, because its response was lost.
func (e *ending) wasTold(ctx context.Context, k known) (ended bool, err error) {
	i, r := e.intent, e.result
	frees := !r.Final && (r.Outcome == cardwire.OutcomeRefused || r.Outcome == cardwire.OutcomeNotSent)
	if k.Call == i.Call || !frees {
		return false, nil
	}
	err = e.on.queryRow(ctx, []any{&ended}, `
SELECT count(*) > 0 FROM @history WHERE intent = ?1 AND call = ?2 AND kind = 'ended' AND state = ?3`,
		k.id, i.Call, states[r.Outcome])
	if err != nil {
		err = e.on.journal.failed("recording the result", err)
	}
	return ended, err
}

// onRecord returns the error with what Begin would return, if that is a
// *cardwire.DuplicateIntent.
func (e *ending) onRecord(ctx context.Context, err error) error {
	k, failed := e.find(ctx)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if d := k.duplicate(); d != nil {
		return fmt.Errorf("%w: %w", err, d)
	}
	return err
}

// release marks an intent that may have been recorded as not sent. If it fails, the
// intent stays open, which is safe, and a later Begin or Void releases it.
func (j *Journal) release(ctx context.Context, i cardwire.Intent) {
	j.abandoned.add(i.Call)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = j.persistent().release(ctx, i)
}

// release is the End of a call that sent nothing.
func (t *Tx) release(ctx context.Context, i cardwire.Intent) error {
	r := cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent, Reason: "nothing was sent: Begin failed"}
	_, err := (&ending{t, i, r}).end(ctx)
	return err
}

// calls are the last calls whose Begin failed, and that have sent nothing. What it forgets
// must be resolved by a person.
type calls struct {
	mu   sync.Mutex
	last []string
}

const maxAbandoned = 4 << 10

func (c *calls) add(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == maxAbandoned {
		c.last = c.last[1:]
	}
	c.last = append(c.last, call)
}

func (c *calls) has(call string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Contains(c.last, call)
}
