package sqljournal

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/journal"
)

// Journal is a cardwire.Journal in a table. It is safe for concurrent use, also
// by several clients. It does not close its database.
type Journal struct {
	db                           *sql.DB
	pool                         executor
	dialect                      Dialect
	table                        table                   // as WithTable has it
	setting                      atomic.Pointer[setting] // nil: no statement was executed yet
	identity                     atomic.Pointer[string]  // of the journal that must be in the database; nil: not known yet
	verified                     atomic.Bool             // by the first Begin, or before it
	translations                 sync.Map                // *translation by template and setting
	sight                        sight
	kept                         kept
	isSynchronous, acceptsNormal bool // what the options say
}

var _ cardwire.Journal = (*Journal)(nil)

// Option configures a [Journal] in [New].
type Option func(*Journal) error

// DefaultTable is the table unless [WithTable] names another.
const DefaultTable = "cardwire_intents"

var tableName = regexp.MustCompile(`^(?:([a-zA-Z_][a-zA-Z0-9_]{0,62})\.)?([a-z_][a-z0-9_]{0,47})$`)

func parseTable(name string) (table, error) {
	parts := tableName.FindStringSubmatch(name)
	if parts == nil {
		return table{}, errors.New("sqljournal: the name of a table must be at most 48 of a-z, 0-9 and _, and not " +
			"begin with a digit; a schema may precede it, as in payments.cardwire_intents")
	}
	if parts[1] != "" {
		parts[1] = `"` + parts[1] + `".`
	}
	return table{schema: parts[1], name: parts[2]}, nil
}

// WithTable names the table: at most 48 lower-case letters, digits and underscores,
// optionally after the name of a schema and a dot, as in payments.cardwire_intents. A schema's letters may be of
// either case.
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

// WithSynchronousFailover says that a standby that takes over has all that was committed, as with
// synchronous_standby_names: a new timeline is then no reason for a hold. Each Journal only looks, before its first
// Begin there, whether the last call that it has begun is on record, and puts the journal on hold if it is not.
func WithSynchronousFailover() Option {
	return func(j *Journal) error {
		j.isSynchronous = true
		return nil
	}
}

// WithSynchronousNormal accepts an SQLite database in WAL mode whose PRAGMA synchronous is NORMAL: a loss of power may
// then lose what was committed last, and so an order may be sent again. [Journal.Verify] refuses it otherwise.
func WithSynchronousNormal() Option {
	return func(j *Journal) error {
		j.acceptsNormal = true
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
	if dialect == SQLite || j.table.schema != "" {
		j.setting.Store(&setting{table: j.table, isSynchronous: j.isSynchronous, isWhole: dialect == SQLite})
	}
	return j, nil
}

// states are the states of an ended intent; the package comment explains them.
var states = []string{
	cardwire.OutcomeUnknown: "unknown", cardwire.OutcomeExecuted: "executed",
	cardwire.OutcomeRefused: "refused", cardwire.OutcomeNotSent: "not_sent",
}

// outcomeOf returns the outcome of a state; that of "open" is unknown.
func outcomeOf(state string) cardwire.Outcome {
	return cardwire.Outcome(max(slices.Index(states, state), int(cardwire.OutcomeUnknown)))
}

// begin is one statement on purpose: the unique index decides which call is first, and
// the lock on the row which call begins it again, as journal.Record.Begin says. SQLite takes its
// write lock at once, so that the statement never fails because it has read before.
const begin = `@event
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, ?3, ?4, ?5, 'open', FALSE, FALSE, FALSE, ?6, 1, '', '',
	@in ?7, @in ?7, @in ?8, @later(@in ?8, @in ?9), NULL, 'begun', '', '', j.era
FROM @journal AS j
WHERE @pinned AND (?10 = '' OR j.service = ?10 AND j.account = ?11) AND j.longest >= ?12 AND j.held_by = ''
	AND @here AND @timeline = ?13 AND j.era = ?14
ON CONFLICT (op, reference) DO UPDATE
SET body_sha256 = excluded.body_sha256, amount = excluded.amount, currency = excluded.currency,
	state = 'open', closed = FALSE, proved = FALSE, call = excluded.call, calls = i.calls + 1,
	service_id = '', status = '', time = excluded.time, send_by = excluded.send_by,
	settled_by = excluded.settled_by, ended_at = NULL, kind = 'begun', by = '', note = '', era = excluded.era
WHERE ` + mayBegin

// mayBegin is which rows a call may begin: those of which journal.Record.Begin returns nil.
const mayBegin = isFree + ` AND i.era >= (SELECT j.oldest FROM @journal AS j) AND (i.body_sha256 = excluded.body_sha256
	OR i.body_sha256 = '' AND (i.amount = excluded.amount OR '' IN (i.amount, excluded.amount))
	AND (lower(i.currency) = lower(excluded.currency) OR '' IN (i.currency, excluded.currency)))`

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
	if j.isUnsent(i.Call) {
		return errBegunInVain
	}
	if err := j.flush(ctx, i); err != nil {
		return err
	}
	patient, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(patience, cancel) })
	defer stop()
	err := j.waiting().begin(patient, i)
	if err == nil {
		j.sight.begin(i)
	}
	if _, failed := errors.AsType[*failure](err); failed {
		err = j.failed("", errors.Join(ctx.Err(), err))
		j.keep(&ending{intent: i, result: unsent, isUnsent: true}, nil)
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = database.Again(soon, j.mayPass, func() error { return j.flush(soon, i) }) // it is kept
	}
	return err
}

// errBegunInVain is for a call that is ended as not sent at any time.
var errBegunInVain = safe("an earlier Begin of this call failed: begin another call")

var unsent = cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent, Reason: "nothing was sent: Begin failed"}

// patience is for how long Begin waits for its statement after its caller's context is
// done, and again for marking the intent as not sent. A server that is told to cancel a
// statement may execute it anyway, after the reference was freed.
const patience = time.Second

func (t *Tx) begin(ctx context.Context, i cardwire.Intent) error {
	in, takes := t.journal.dialect.in, lifeOf(i)
	for range 4 {
		on, era := t.journal.sight.settled()
		changed, err := t.exec(ctx, begin, i.Op, i.Reference, i.BodySHA256, moneyOf(i), i.Currency, i.Call,
			in(i.Time), in(i.SendBy), in(i.SettledBy), i.Service, i.Account, takes, on, era)
		switch {
		case err != nil:
			return t.journal.failed("recording the intent", err)
		case changed > 0:
			return nil
		}
		k, err := t.find(ctx, i.Op, i.Reference, "")
		if err == nil {
			err = belongs(i, k)
		}
		if err != nil {
			return err
		}
		next, refusal := k.row.Begin(k.here(i), k.hold, k.now)
		switch {
		case !t.journal.sight.hasSettled(k):
			if err = t.journal.settle(ctx); err != nil && k.isDerived { // this program may not record it
				return cmp.Or(refusal, err)
			}
		case k.Service == "" && i.Service != "", refusal == nil && next != k.row:
			err = t.introduce(ctx, i, takes)
		default: // it was begun by this very call: the driver executed the statement twice
			return refusal
		}
		if err != nil {
			return err
		}
	}
	return errAgain
}

// lifeOf returns for how long a call can be executed, in microseconds.
func lifeOf(i cardwire.Intent) int64 {
	began, ends := i.Time, i.SettledBy
	for _, t := range []*time.Time{&began, &ends} {
		if t.IsZero() {
			*t = time.Now()
		}
	}
	if i.SendBy.After(ends) {
		ends = i.SendBy
	}
	return int64((min(ends.Sub(began), math.MaxInt64-time.Microsecond) + time.Microsecond - 1) / time.Microsecond)
}

// introduce records what the journal did not know of its clients: their service and account, and
// for how long a call can be executed.
func (t *Tx) introduce(ctx context.Context, i cardwire.Intent, takes int64) error {
	_, err := t.exec(ctx, `
UPDATE @journal
SET account = CASE WHEN service = '' THEN ?2 ELSE account END, service = CASE WHEN service = '' THEN ?1 ELSE service END,
	longest = @later(longest, ?3)
WHERE (service = '' AND ?1 <> '' OR longest < ?3) AND ?4 IN ('', identity)`,
		i.Service, i.Account, takes, t.journal.pinned())
	return t.journal.failed("recording the service", err)
}

// End implements cardwire.Journal. If the record contradicts the result, it returns
// [ErrContradiction]. If the intent is no longer on record, it records it again with its
// result and returns [ErrRecordedAgain]. If the database fails, it retries until ctx is done,
// for at most 10 seconds.
func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	e := &ending{intent: i, result: r}
	var flaw error
	err := database.Again(ctx, j.mayPass, func() error {
		err := j.flush(ctx, i)
		if err == nil {
			flaw, err = j.end(ctx, e)
			e.isTried = true
		}
		return err
	})
	if err == nil {
		return flaw
	}
	if !errors.Is(ctx.Err(), context.Canceled) { // who cancels takes it back
		j.keep(e, err)
	}
	return j.failed("recording the result", err)
}

// end tries once to record a result. The flaw is what End returns of one that is on record.
func (j *Journal) end(ctx context.Context, e *ending) (flaw, err error) {
	t := &Tx{j, j.pool, nil}
	var ended int64
	if err = t.pin(ctx); err == nil {
		ended, err = e.end(ctx, t)
	}
	if err == nil && ended == 0 && !e.isUnsent {
		err = j.transaction(ctx, func(t *Tx) (err error) {
			flaw, err = e.late(ctx, t)
			return err
		})
	}
	if err == nil {
		j.sight.end(e.intent)
	}
	return flaw, j.failed("recording the result", err)
}

// ending is the result of a call on its way into the record. Where the call has its row open,
// end is all there is to do. Otherwise late does the rest, in one transaction: it locks the row, or
// records it again if it has vanished; looks whether a try that failed was recorded anyway;
// if not, changes the row as the result demands; and adds the event.
type ending struct {
	intent   cardwire.Intent
	result   cardwire.IntentResult
	isUnsent bool  // its Begin failed: what that may have left is ended, and nothing else concluded
	isTried  bool  // it may have been recorded by a try that failed
	flaw     error // of a kept result that is no longer tried: what the next Flush tells
	vanished bool  // the intent was not on record
}

// end records the result of the call that has its row open. The string concatenation in the
// condition on state keeps PostgreSQL from the index of unresolved rows, which it would read to its end: the primary key
// finds the row.
const end = `@event
UPDATE @intents
SET state = ?4, closed = CAST(?5 AS @bool), proved = CAST(?6 AS @bool), service_id = ?7, status = ?8,
	ended_at = @now, kind = 'ended', by = '', note = ?9
WHERE op = ?1 AND reference = ?2 AND call = ?3 AND state || '' = 'open' AND era >= (
	SELECT CASE WHEN ?4 IN ('refused', 'not_sent') THEN j.oldest ELSE 0 END FROM @journal AS j
	WHERE @pinned AND (?4 NOT IN ('refused', 'not_sent') OR @here))`

func (e *ending) end(ctx context.Context, t *Tx) (ended int64, err error) {
	i := e.intent
	next, _ := journal.Record{Intent: i, Open: true}.End(i, e.result, false, false, journal.Hold{}, time.Now())
	e.result.Outcome, e.result.ServiceID, e.result.Final = next.Outcome, next.ServiceID, next.Closed
	return t.exec(ctx, end, i.Op, i.Reference, i.Call,
		states[next.Outcome], next.Closed, next.Proved, next.ServiceID, next.Status, e.result.Reason)
}

// late records the result of a call that does not have its row open: it is late, was
// recorded before, or the row has vanished. The flaw is what End returns of a result that is
// on record.
func (e *ending) late(ctx context.Context, t *Tx) (flaw, err error) {
	k, err := t.lock(ctx, e.intent)
	if err != nil {
		return nil, err
	}
	next, kind := k.row, ""
	past, err := t.past(ctx, e)
	if kind = past.told; err == nil && (kind == "" || !e.isTried) {
		next, kind, err = e.change(ctx, t, &k, past)
	}
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
	if d := next.In(k.hold).Duplicate(k.now); d != nil {
		flaw = fmt.Errorf("%w: %w", flaw, d) // what Begin would return
	}
	return flaw, nil
}

// past is what the history has of a call: whether its Begin, and that a person denied it; and the kind of the event that
// has a result of it, as an earlier try may have recorded that failed; "": none.
type past struct {
	hasBegun, isDenied bool
	told               string
}

func (t *Tx) past(ctx context.Context, e *ending) (p past, err error) {
	i, r := e.intent, e.result
	err = t.queryRow(ctx, []any{&p.hasBegun, &p.isDenied, &p.told}, `
SELECT count(CASE WHEN kind = 'begun' THEN 1 END) > 0,
	count(CASE WHEN kind = 'resolved' AND state IN ('refused', 'not_sent') THEN 1 END) > 0,
	coalesce(max(CASE WHEN kind IN ('ended', 'contradicted') AND state IN (?4, 'unknown') AND service_id = ?5 THEN kind END), '')
FROM @history WHERE op = ?1 AND reference = ?2 AND call = ?3`,
		i.Op, i.Reference, i.Call, states[r.Outcome], r.ServiceID)
	return p, err
}

// change records what becomes of the row, and the event. A call whose Begin the history lacks puts the journal on hold.
func (e *ending) change(ctx context.Context, t *Tx, k *known, past past) (next journal.Record, kind string, err error) {
	i, r := e.intent, e.result
	if !past.hasBegun && t.journal.sight.hasBegun(i) {
		if err = t.lose(ctx, k); err != nil {
			return next, "", err
		}
	}
	next, contradiction := k.row.End(k.here(i), r, past.isDenied, !past.hasBegun, k.hold, k.now)
	r.Outcome = k.row.Proves(i, r, !past.hasBegun, k.hold).Outcome
	ended := event{kind: "ended", call: i.Call, state: states[r.Outcome], serviceID: r.ServiceID, note: r.Reason}
	vanished := !k.row.Exists()
	switch {
	case vanished:
		ended.note = strings.TrimSuffix("the database had lost it; "+r.Reason, "; ")
	case contradiction != nil:
		ended.kind = "contradicted"
	}
	if err = t.store(ctx, *k, next, ended); err == nil {
		e.vanished = e.vanished || vanished
	}
	return next, ended.kind, err
}

// lose puts the journal on hold, whose database has lost a call.
func (t *Tx) lose(ctx context.Context, k *known) error {
	locked, err := t.lockJournal(ctx)
	if err == nil {
		locked, err = t.holdItself(ctx, locked, true)
	}
	k.hold, k.era = locked.hold, locked.era
	return err
}
