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
	verified   atomic.Bool            // by the first Begin, or before it
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

// Begin implements cardwire.Journal. It also returns [ErrSchema] if the database is not the
// journal's, an error that names both services if the journal is another service's, and
// otherwise the failure of the database. The package comment describes what happens to an
// intent that may have been recorded anyway: a call whose Begin failed is never begun again.
func (j *Journal) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Op == "" || i.Reference == "" || i.Call == "" {
		return errors.New("sqljournal: an intent needs an operation, a reference and a call")
	}
	if err := ctx.Err(); err != nil {
		return j.failed("recording the intent", err)
	}
	if !j.verified.Load() {
		if err := j.Verify(ctx); err != nil {
			return err
		}
	}
	if j.abandoned.has(i.Call) {
		return errBegunInVain
	}
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })
	defer stop()
	err := j.waiting().attempt(patient, "recording the intent", i, refusal, begin, j.begins(i, i.Service)...)
	if f, ok := errors.AsType[*failure](err); ok {
		f.cause = errors.Join(ctx.Err(), f.cause)
		j.release(ctx, i)
	}
	return err
}

// errBegunInVain is for a call that the next Begin or Void may release at any time.
var errBegunInVain = shows("an earlier Begin of this call failed: begin another call")

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

// errAgain means that the statement would now change the row.
var errAgain = shows("the reference was changed by others at the same time: try again")

// refusal returns why the intent could not be begun.
func refusal(k known, i cardwire.Intent) error {
	d := k.duplicate()
	switch {
	case k.Open && k.Call == i.Call:
		return nil // by this very call: the driver executed the statement twice
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

// End implements cardwire.Journal. If the record contradicts the result, it returns
// [ErrContradiction]. If the intent is no longer on record, it records it again with its
// result and returns [ErrRecordedAgain]. If the database fails, it retries until ctx is done,
// for at most 10 seconds.
func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	switch r.Outcome {
	case cardwire.OutcomeExecuted:
		r.Final = false
	case cardwire.OutcomeRefused, cardwire.OutcomeNotSent:
		r.ServiceID, r.Final = "", r.Final && !i.Repeatable
	default: // an outcome that does not exist is unknown
		r = cardwire.IntentResult{Status: r.Status, Reason: r.Reason}
	}
	e := &ending{intent: i, result: r}
	t := &Tx{j, j.pool, func(err error) bool {
		passes := j.passes(err)
		e.isTried = e.isTried || passes
		return passes
	}}
	ended, err := e.end(ctx, t)
	var flaw error
	if err == nil && ended == 0 {
		err = t.repeated(ctx, func() error {
			return j.transaction(ctx, func(t *Tx) (err error) {
				flaw, err = e.late(ctx, t)
				return err
			})
		})
	}
	switch _, isSaid := errors.AsType[*failure](err); {
	case err == nil:
		return flaw
	case isSaid, errors.Is(err, ErrSchema):
		return err
	}
	return j.failed("recording the result", err)
}

// ending is the result of a call on its way into the record. Where the call has its row open,
// end is all there is to do. Otherwise late does the rest, in one transaction: it locks the row,
// or records it again if it has vanished; looks whether a try that failed was recorded anyway
// (told); if not, changes the row as the result demands (change); and adds the event.
type ending struct {
	intent   cardwire.Intent
	result   cardwire.IntentResult
	isTried  bool // it may have been recorded by a try that failed
	vanished bool // the intent was not on record
}

// end is the result of the call that has the row open.
const end = `@event
UPDATE @intents
SET state = ?4, closed = CAST(?5 AS @bool), proved = (?4 = 'executed'), service_id = ?6, status = ?7,
	ended_at = @now, kind = 'ended', by = '', note = ?8
WHERE op = ?1 AND reference = ?2 AND call = ?3 AND state = 'open' AND @this`

func (e *ending) end(ctx context.Context, t *Tx) (ended int64, err error) {
	i, r := e.intent, e.result
	return t.exec(ctx, end, i.Op, i.Reference, i.Call, states[r.Outcome], r.Final, r.ServiceID, r.Status, r.Reason)
}

// lock keeps others from changing the row until the transaction ends. SQLite takes its write
// lock before it reads.
const lock = `UPDATE @intents SET calls = calls WHERE op = ?1 AND reference = ?2 AND @this`

// recordEvent records an event that is not the row's own.
const recordEvent = `
INSERT INTO @history (intent, time, kind, call, state, service_id, by, note)
SELECT id, @now, ?3, ?4, ?5, ?6, '', ?7 FROM @intents WHERE op = ?1 AND reference = ?2 AND @this
	AND NOT EXISTS (SELECT 1 FROM @history AS h
		WHERE h.intent = id AND h.kind = ?3 AND h.call = ?4 AND h.state = ?5 AND h.service_id = ?6)`

// late records the result of a call that does not have its row open: it is late, was
// recorded before, or the row has vanished. The flaw is what End returns of a result that is
// on record.
func (e *ending) late(ctx context.Context, t *Tx) (flaw, err error) {
	i, r := e.intent, e.result
	found, err := t.exec(ctx, lock, i.Op, i.Reference)
	if err == nil && found == 0 {
		err = e.again(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	k, err := t.find(ctx, i.Op, i.Reference)
	if err != nil {
		return nil, err
	}
	kind, err := e.told(ctx, t, k)
	if err == nil && kind == "" {
		kind, err = e.change(ctx, t, k)
	}
	if err != nil {
		return nil, err
	}
	_, err = t.exec(ctx, recordEvent, i.Op, i.Reference, kind, i.Call, states[r.Outcome], r.ServiceID, r.Reason)
	switch {
	case err != nil:
		return nil, err
	case e.vanished:
		flaw = ErrRecordedAgain
	case kind == "contradicted":
		flaw = ErrContradiction
	default:
		return nil, nil
	}
	if k, err = t.find(ctx, i.Op, i.Reference); err != nil {
		return nil, err
	}
	if d := k.duplicate(); d != nil {
		flaw = fmt.Errorf("%w: %w", flaw, d) // what Begin would return
	}
	return flaw, nil
}

// again records an intent that has vanished, unless another call has begun since. The call has ended,
// and sends nothing more.
func (e *ending) again(ctx context.Context, t *Tx) error {
	i := e.intent
	i.SendBy = time.Now()
	if _, err := t.exec(ctx, begin, t.journal.begins(i, "")...); err != nil {
		return err
	}
	if !e.vanished {
		e.result.Reason = strings.TrimSuffix("the database had lost it; "+e.result.Reason, "; ")
	}
	e.vanished = true
	_, err := e.end(ctx, t)
	return err
}

// told returns the kind of the event that an earlier try recorded although it failed; "": there
// is none. A result that frees the reference may also be reported again after another call has
// begun.
func (e *ending) told(ctx context.Context, t *Tx, k known) (kind string, err error) {
	i, r := e.intent, e.result
	frees := !r.Final && (r.Outcome == cardwire.OutcomeRefused || r.Outcome == cardwire.OutcomeNotSent)
	if !e.isTried && (k.Call == i.Call || !frees) {
		return "", nil
	}
	err = t.queryRow(ctx, []any{&kind}, `
SELECT kind FROM @history WHERE intent = ?1 AND call = ?2 AND state = ?3 AND service_id = ?4
	AND kind IN ('ended', 'contradicted') ORDER BY number`,
		k.id, i.Call, states[r.Outcome], r.ServiceID)
	return kind, err
}

// agreesWith reports whether the row says what the late result says.
func (e *ending) agreesWith(k known) bool {
	own, r := k.Call == e.intent.Call, e.result
	switch {
	case e.intent.Repeatable && !own:
		return true // the row is about a later call, which this result does not change
	case r.Outcome != cardwire.OutcomeExecuted:
		return k.Outcome == r.Outcome && k.Closed == r.Final
	case k.Outcome == cardwire.OutcomeExecuted:
		return k.ServiceID == r.ServiceID && r.ServiceID != "" || own && (k.ServiceID == "" || r.ServiceID == "")
	}
	return k.Outcome == cardwire.OutcomeUnknown && own
}

// executedLate records a success in a row that says something else. Nothing undoes it.
const executedLate = `
UPDATE @intents
SET state = 'executed', closed = FALSE, proved = TRUE, service_id = ?4, status = ?5, ended_at = @now,
	call = ?3, body_sha256 = ?6, summary = ?7, time = @in ?8, send_by = @in ?9, settled_by = @in ?10
WHERE op = ?1 AND reference = ?2 AND @this`

// executedAgain records a success in a row that says executed: what a person said is then
// proved.
const executedAgain = `
UPDATE @intents SET proved = TRUE, service_id = CASE WHEN service_id = '' THEN ?3 ELSE service_id END
WHERE op = ?1 AND reference = ?2 AND @this`

// unknownLate records an unknown outcome. Either call may have been executed, from the earlier
// time on, until the later of both is settled.
const unknownLate = `
UPDATE @intents
SET state = 'unknown', closed = FALSE, time = @earlier(time, @in ?5), settled_by = @later(settled_by, @in ?4),
	ended_at = @now
WHERE op = ?1 AND reference = ?2 AND @this
AND state <> 'executed' AND NOT EXISTS (SELECT 1 FROM @history AS h
	WHERE h.intent = id AND h.call = ?3 AND h.kind = 'resolved' AND h.state IN ('refused', 'not_sent'))`

// change changes the row as a late result demands, and returns the kind of its event.
func (e *ending) change(ctx context.Context, t *Tx, k known) (kind string, err error) {
	i, r, in := e.intent, e.result, t.journal.dialect.in
	changed := int64(1)
	switch {
	case i.Repeatable && k.Call != i.Call:
	case r.Outcome == cardwire.OutcomeUnknown:
		changed, err = t.exec(ctx, unknownLate, i.Op, i.Reference, i.Call, in(i.SettledBy), in(i.Time))
	case r.Outcome != cardwire.OutcomeExecuted:
	case k.Outcome != r.Outcome:
		_, err = t.exec(ctx, executedLate, i.Op, i.Reference, i.Call, r.ServiceID, r.Status, i.BodySHA256, i.Summary,
			in(i.Time), in(i.SendBy), in(i.SettledBy))
	default:
		_, err = t.exec(ctx, executedAgain, i.Op, i.Reference, r.ServiceID)
	}
	if changed == 0 || !e.agreesWith(k) { // 0: the call was denied, or the order executed
		return "contradicted", err
	}
	return "ended", err
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
	_, err := (&ending{intent: i, result: r}).end(ctx, t)
	if err != nil {
		err = t.journal.failed("recording the result", err)
	}
	return err
}

// calls are the last calls whose Begin failed, and that have sent nothing. A person must
// resolve those that it forgets.
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
