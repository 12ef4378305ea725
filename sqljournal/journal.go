package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Journal is a cardwire.Journal in a table. It is safe for concurrent use, also
// by several clients. It does not close its database.
type Journal struct {
	db         *sql.DB
	dialect    Dialect
	table      table
	identity   atomic.Pointer[string] // of the journal that must be in the database; nil: not known yet
	statements sync.Map               // by their templates
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
		return table{}, errors.New("sqljournal: the name of a table must be at most 48 of a-z, 0-9 and _, and not begin with a digit; a schema may precede it, as in payments.cardwire_intents")
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
	j := &Journal{db: db, dialect: dialect, table: table{name: DefaultTable}}
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

// The states of an intent; the package comment explains them.
const (
	stateOpen     = "open"
	stateUnknown  = "unknown"
	stateExecuted = "executed"
	stateRefused  = "refused"
	stateNotSent  = "not_sent"
)

func stateOf(o cardwire.Outcome) string {
	switch o {
	case cardwire.OutcomeExecuted:
		return stateExecuted
	case cardwire.OutcomeRefused:
		return stateRefused
	case cardwire.OutcomeNotSent:
		return stateNotSent
	default: // an outcome that is not known is unknown
		return stateUnknown
	}
}

func outcomeOf(state string) cardwire.Outcome {
	switch state {
	case stateExecuted:
		return cardwire.OutcomeExecuted
	case stateRefused:
		return cardwire.OutcomeRefused
	case stateNotSent:
		return cardwire.OutcomeNotSent
	default:
		return cardwire.OutcomeUnknown
	}
}

// columns are those of @intents that a new row sets.
const columns = `op, reference, body_sha256, summary, repeatable, state, closed, proved, call, calls, service_id, status,
	created_at, time, send_by, settled_by, ended_at, event, by, note`

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
	state = 'open', closed = FALSE, proved = FALSE, call = excluded.call, calls = i.calls + 1, service_id = '', status = '',
	time = excluded.time, send_by = excluded.send_by, settled_by = excluded.settled_by, ended_at = NULL,
	event = 'begun', by = '', note = ''
WHERE CASE WHEN excluded.repeatable THEN i.state NOT IN ('open', 'unknown') OR i.settled_by <= @now
	ELSE i.state IN ('refused', 'not_sent') AND NOT i.closed AND i.body_sha256 IN ('', excluded.body_sha256) END`

// tries bounds how often Begin, Void and Resolve try again after they lost a race.
const tries = 3

// Begin implements cardwire.Journal. It also returns [ErrSchema] if the database is not
// the journal's, an error that names both services if the journal is another service's,
// and otherwise the failure of the database.
//
// Begin waits for its statement for a second after ctx is done. Where the database
// fails so that the intent may have been recorded after all, Begin takes another
// second to mark it as not sent, even if ctx is done: otherwise a call that sent nothing
// would block its reference. If that fails too, a later Begin or Void of this Journal
// releases the reference.
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
	patient, cancel := outlasting(ctx, beginPatience)
	defer cancel()
	for range tries {
		begun, err := t.exec(patient, begin, i.Op, i.Reference, i.BodySHA256, i.Summary, i.Repeatable, i.Call,
			j.dialect.time(i.Time), j.dialect.time(i.SendBy), j.dialect.time(i.SettledBy), i.Service)
		if err == nil && begun > 0 {
			return nil
		}
		if err != nil {
			err = j.failed("recording the intent", errors.Join(ctx.Err(), err))
		} else {
			var again bool
			if again, err = t.refusal(ctx, i); again {
				continue
			}
		}
		var failed *failure
		if errors.As(err, &failed) {
			j.release(ctx, i)
		}
		return err
	}
	return &cardwire.DuplicateIntent{}
}

// beginPatience is for how long Begin waits for its statement after its caller's
// context is done. A server that is told to cancel a statement may execute it
// anyway, after the reference was released.
const beginPatience = time.Second

// outlasting returns a context that ends later than ctx, by patience.
func outlasting(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// refusal returns why the intent could not be begun, or reports that it can be by now.
func (t *Tx) refusal(ctx context.Context, i cardwire.Intent) (again bool, err error) {
	k, again, err := t.known(ctx, i)
	if again || errors.Is(err, ErrNoIntent) || err != nil {
		return again || errors.Is(err, ErrNoIntent), err
	}
	d := k.duplicate()
	switch {
	case k.Open && k.Call == i.Call:
		return false, nil // it is this one: the driver executed the statement twice
	case k.Open && t.journal.abandoned.has(k.Call):
		return true, t.releaseCall(ctx, i, k.Call)
	case d == nil && k.isOther(i.BodySHA256) && !i.Repeatable:
		return false, cardwire.ErrOtherBody
	case d == nil, i.Repeatable && k.mayRepeat():
		return true, nil
	case i.Repeatable, k.Closed, !k.isOther(i.BodySHA256):
		return false, d
	}
	return false, otherBody(d)
}

// end is the result of the call that has the row open.
const end = `@event
UPDATE @intents
SET state = ?4, closed = CAST(?5 AS @bool) AND NOT repeatable, proved = (?4 = 'executed'), service_id = ?6, status = ?7,
	ended_at = @now, event = 'ended', by = '', note = ?8
WHERE op = ?1 AND reference = ?2 AND call = ?3 AND state = 'open' AND @this`

// End implements cardwire.Journal. Where the record contradicts the result it returns
// [ErrContradiction]; where the intent is no longer on record, it records it again with
// its result and returns [ErrRecordedAgain].
//
// Where the database fails, End tries again until ctx is done, for at most 10
// seconds: an intent that stays open must be resolved by a person. It gives up at once
// if the database is closed or refuses the statement itself.
func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	t, state := j.persistent(), stateOf(r.Outcome)
	r.Outcome = outcomeOf(state)
	if r.Outcome != cardwire.OutcomeExecuted {
		r.ServiceID = ""
	}
	r.Final = r.Final && !i.Repeatable && (state == stateRefused || state == stateNotSent)
	ended, err := t.exec(ctx, end, i.Op, i.Reference, i.Call, state, r.Final, r.ServiceID, r.Status, "")
	if err == nil && ended == 0 {
		return t.endLate(ctx, i, r)
	}
	if err != nil {
		return j.failed("recording the result", err)
	}
	return nil
}

// executedLate is what a success does to a row that says something else. Nothing undoes it.
const executedLate = `
UPDATE @intents
SET state = 'executed', closed = FALSE, proved = TRUE, service_id = ?4, status = ?5, ended_at = @now,
	call = ?3, body_sha256 = ?6, summary = ?7, time = @in ?8
WHERE op = ?1 AND reference = ?2 AND state <> 'executed' AND @this`

// executedAgain is what a success does to a row that says executed: what a person said
// is then proved.
const executedAgain = `
UPDATE @intents SET proved = TRUE, service_id = CASE WHEN service_id = '' THEN ?3 ELSE service_id END
WHERE op = ?1 AND reference = ?2 AND state = 'executed' AND (NOT proved OR service_id = '') AND @this`

// unknownLate is what an unknown outcome does. It may still be executed until the later
// of both calls is settled.
const unknownLate = `
UPDATE @intents SET state = 'unknown', closed = FALSE, settled_by = @later(settled_by, @in ?4), ended_at = @now
WHERE op = ?1 AND reference = ?2 AND state <> 'executed' AND @this AND NOT EXISTS (SELECT 1 FROM @history AS h
	WHERE h.intent = id AND h.call = ?3 AND h.kind = 'resolved' AND h.state IN ('refused', 'not_sent'))`

// recordEvent records an event that is not the row's own.
const recordEvent = `
INSERT INTO @history (intent, time, kind, call, state, service_id, by, note)
SELECT id, @now, ?3, ?4, ?5, ?6, '', '' FROM @intents WHERE op = ?1 AND reference = ?2 AND @this AND NOT EXISTS (
	SELECT 1 FROM @history AS h WHERE h.intent = id AND h.kind = ?3 AND h.call = ?4 AND h.state = ?5 AND h.service_id = ?6)`

// recordedAgain is the event of a row that had vanished.
const recordedAgain = "recorded again"

// insertAgain inserts a row that has vanished, with its result.
const insertAgain = `@event
INSERT INTO @intents (` + columns + `)
SELECT ?1, ?2, ?3, ?4, CAST(?5 AS @bool), ?6, CAST(?7 AS @bool), ?6 = 'executed', ?8, 1, ?9, ?10,
	@in ?11, @in ?11, @in ?12, @later(@in ?12, @in ?13), @now, 'recorded again', '', ''
WHERE @this
ON CONFLICT (op, reference) DO NOTHING`

// endLate records the result of a call that does not have its row open: it is late, was
// recorded before, or the row has vanished.
func (t *Tx) endLate(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	k, err := t.find(ctx, i.Op, i.Reference)
	if errors.Is(err, ErrNoIntent) {
		if again, err := t.recordAgain(ctx, i, r); again || err != nil {
			return err
		}
		k, err = t.find(ctx, i.Op, i.Reference) // another has begun it meanwhile, or the response was lost
	}
	if err != nil {
		return err
	}
	agrees, err := t.apply(ctx, k, i, r)
	event := "ended"
	if !agrees {
		event = "contradicted"
	}
	if err == nil {
		_, err = t.exec(ctx, recordEvent, i.Op, i.Reference, event, i.Call, stateOf(r.Outcome), r.ServiceID)
	}
	switch {
	case err != nil:
		return t.journal.failed("recording the result", err)
	case !agrees:
		return t.onRecord(ctx, i, ErrContradiction)
	case k.event == recordedAgain && k.Call == i.Call:
		return t.onRecord(ctx, i, ErrRecordedAgain)
	}
	return nil
}

// recordAgain records an intent that has vanished, and returns whether it had.
func (t *Tx) recordAgain(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) (again bool, err error) {
	at := t.journal.dialect.time
	inserted, err := t.exec(ctx, insertAgain, i.Op, i.Reference, i.BodySHA256, i.Summary, i.Repeatable, stateOf(r.Outcome),
		r.Final, i.Call, r.ServiceID, r.Status, at(i.Time), at(i.SendBy), at(i.SettledBy))
	switch {
	case err != nil:
		return false, t.journal.failed("recording the result", err)
	case inserted == 0:
		return false, nil
	}
	return true, t.onRecord(ctx, i, ErrRecordedAgain)
}

// apply changes the row as a late result demands, and reports whether the row agreed with
// it before.
func (t *Tx) apply(ctx context.Context, k known, i cardwire.Intent, r cardwire.IntentResult) (agrees bool, err error) {
	own, at := k.Call == i.Call, t.journal.dialect.time
	switch {
	case i.Repeatable && !own:
		return true, nil // each call is granted by itself: this one is history
	case r.Outcome == cardwire.OutcomeExecuted:
		_, err = t.exec(ctx, executedLate, i.Op, i.Reference, i.Call, r.ServiceID, r.Status, i.BodySHA256, i.Summary, at(i.Time))
		if err == nil {
			_, err = t.exec(ctx, executedAgain, i.Op, i.Reference, r.ServiceID)
		}
		same := k.ServiceID == r.ServiceID || own && (k.ServiceID == "" || r.ServiceID == "")
		return same && (k.ServiceID != "" || own) && k.Outcome == r.Outcome || own && k.Outcome == cardwire.OutcomeUnknown, err
	case r.Outcome == cardwire.OutcomeUnknown:
		changed, err := t.exec(ctx, unknownLate, i.Op, i.Reference, i.Call, at(i.SettledBy))
		return changed > 0 && k.Outcome == r.Outcome, err
	}
	return k.Outcome == r.Outcome && k.Closed == r.Final, nil
}

// onRecord returns the error with what Begin would return, if that is a
// *cardwire.DuplicateIntent.
func (t *Tx) onRecord(ctx context.Context, i cardwire.Intent, err error) error {
	k, failed := t.find(ctx, i.Op, i.Reference)
	if failed != nil {
		return errors.Join(err, failed)
	}
	if d := k.duplicate(); d != nil {
		return fmt.Errorf("%w: %w", err, d)
	}
	return err
}

// releaseTimeout bounds what a failed Begin adds to its caller's deadline.
const releaseTimeout = time.Second

// release marks an intent that may have been recorded as not sent, and retries until it
// succeeds or time is up. If it fails, the intent stays open, which is safe, and a later
// Begin or Void releases it.
func (j *Journal) release(ctx context.Context, i cardwire.Intent) {
	j.abandoned.add(i.Call)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_ = j.persistent().releaseCall(ctx, i, i.Call)
}

// releaseCall is the End of a call that sent nothing.
func (t *Tx) releaseCall(ctx context.Context, i cardwire.Intent, call string) error {
	released, err := t.exec(ctx, end, i.Op, i.Reference, call, stateNotSent, false, "", "", "nothing was sent: Begin failed")
	if err != nil {
		return t.journal.failed("releasing the reference", err)
	}
	if released > 0 {
		t.journal.abandoned.remove(call)
	}
	return nil
}

// maxAbandoned bounds how many failed Begins a Journal remembers.
const maxAbandoned = 1 << 14

// calls is the set of calls whose Begin failed, and that have sent nothing.
type calls struct {
	mu  sync.Mutex
	set map[string]struct{}
}

func (c *calls) add(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.set == nil || len(c.set) >= maxAbandoned { // a forgotten one must be resolved by a person
		c.set = map[string]struct{}{}
	}
	c.set[call] = struct{}{}
}

func (c *calls) remove(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.set, call)
}

func (c *calls) has(call string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.set[call]
	return ok
}
