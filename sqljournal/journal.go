package sqljournal

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Journal is a cardwire.Journal in a table. It is safe for concurrent use, also
// by several clients. It does not close its database.
type Journal struct {
	db        *sql.DB
	dialect   Dialect
	table     table
	repeats   bool
	instance  string                 // tells this Journal's intents from those of others
	calls     atomic.Uint64          // tells one Begin from another, and one End
	identity  atomic.Pointer[string] // of the journal that must be in the database; nil: not known yet
	abandoned holders
}

var (
	_ cardwire.Journal = (*Journal)(nil)
	_ cardwire.Looker  = (*Journal)(nil)
)

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

// WithRepeats is for clients with cardwire.Profile.ServerDeduplicates, which may
// retry what is in progress or unknown. Begin then records such a retry before it is
// sent. From then on a refusal no longer resolves the intent, whichever call learns
// of it: only an execution does, or [Journal.Resolve].
//
// Without WithRepeats, Begin refuses every such retry, whatever the profile says. For
// clients without that profile WithRepeats would only leave refusals unresolved, so do not
// use it there.
func WithRepeats() Option {
	return func(j *Journal) error {
		j.repeats = true
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
	j := &Journal{db: db, dialect: dialect, table: table{name: DefaultTable}, instance: rand.Text()}
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
const columns = `op, reference, exclusive, body_sha256, summary, state, closed, holder, attempts, service_id, created_at, begun_at, send_by, ended_at, event, who, note`

// insertUnique is one statement on purpose: the unique index decides which call is
// first, and the lock on the row which call begins it again. SQLite takes its write lock
// at once, so that the statement never fails because it has read before.
const insertUnique = `
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, TRUE, ?3, ?4, 'open', FALSE, ?5, 1, '', @now, @now, @sendby, NULL, 'begun', '', '' WHERE @this
ON CONFLICT (op, reference) WHERE exclusive DO UPDATE
SET state = 'open', holder = excluded.holder, summary = excluded.summary, attempts = i.attempts + 1,
	begun_at = excluded.begun_at, send_by = excluded.send_by, ended_at = NULL, event = 'begun', who = '', note = ''
WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed AND i.body_sha256 = excluded.body_sha256`

// insertOther writes no second row where the driver has lost the response and
// executes the statement again.
const insertOther = `
INSERT INTO @intents (` + columns + `)
SELECT ?1, ?2, FALSE, ?3, ?4, 'open', FALSE, ?5, 1, '', @now, @now, @sendby, NULL, 'begun', '', '' WHERE @this
AND NOT EXISTS (SELECT 1 FROM @intents WHERE op = ?1 AND reference = ?2 AND NOT exclusive AND holder = ?5)`

// beginTries bounds how often Begin tries again after it lost a race for a reference
// that was then free.
const beginTries = 3

// Begin implements cardwire.Journal. It returns nil if the intent is on record,
// a *cardwire.DuplicateIntent if the reference is taken or closed,
// [cardwire.ErrOtherBody] if it is another request's, [ErrSchema] if the database is
// not the journal's, and otherwise the failure of the database. An ErrOtherBody also
// wraps a *cardwire.DuplicateIntent, unless the other request was refused or not sent.
// A *cardwire.DuplicateIntent with OutcomeUnknown is wrapped in another error, so that
// nothing is sent, unless [WithRepeats] has recorded the retry.
//
// Begin waits for its statement for a second after ctx is done. Where the database
// fails so that the intent may have been recorded after all, Begin takes another
// second to mark it as not sent, even if ctx is done: otherwise a call that sent nothing
// would block its reference. If that fails too, a later Begin of this Journal releases
// the reference.
func (j *Journal) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Op == "" || i.Reference == "" {
		return errors.New("sqljournal: an intent needs an operation and a reference")
	}
	if err := ctx.Err(); err != nil {
		return j.failed("recording the intent", err)
	}
	if err := j.pin(ctx); err != nil {
		return err
	}
	statement, holder := insertOther, j.holder(i)+j.call()
	if i.Unique {
		statement = insertUnique
	}
	patient, cancel := outlasting(ctx, beginPatience)
	defer cancel()
	for range beginTries {
		begun, err := j.change(patient, j.begins(i), statement, i.Op, i.Reference, i.BodySHA256, i.Summary, holder)
		if err != nil {
			j.release(ctx, i, holder)
			return j.failed("recording the intent", errors.Join(ctx.Err(), err))
		}
		if begun > 0 {
			return nil
		}
		if free, err := j.taken(ctx, i, holder); !free {
			return err
		}
	}
	return mustNotSend(&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown})
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

// holder is the prefix of a call's entry in the column holder. Begin and End both
// compute it from the intent, which is the same for both. Begin appends what
// distinguishes two calls of one clock tick, so that a failed call releases no other's
// reference.
func (j *Journal) holder(i cardwire.Intent) string {
	return j.instance + "-" + strconv.FormatInt(i.Time.UnixNano(), 36) + "-"
}

// ender is what an End appends to holder in a row that is not the only one of its
// reference, so that a retry of that End finds the same row.
func (j *Journal) ender() string { return "/" + j.call() + "/" }

// call returns what tells a call from all others of this Journal.
func (j *Journal) call() string { return strconv.FormatUint(j.calls.Add(1), 36) }

// taken returns why the intent could not be begun, or reports that it can be by now.
func (j *Journal) taken(ctx context.Context, i cardwire.Intent, holder string) (free bool, err error) {
	r, err := j.find(ctx, i.Op, i.Reference)
	if err != nil {
		j.release(ctx, i, holder)
		return false, err
	}
	if !i.Unique || r.state == stateOpen && r.holder == holder {
		return false, nil // it is this one: the driver executed the statement twice
	}
	other := r.body != i.BodySHA256 && r.body != "" // a reference that was voided first has none
	switch {
	case r.state == stateOpen && j.abandoned.has(r.holder):
		i.BodySHA256 = r.body
		return true, j.tryRelease(ctx, i, r.holder)
	case other && r.refused():
		return false, cardwire.ErrOtherBody
	case other:
		return false, fmt.Errorf("%w: %w", cardwire.ErrOtherBody, r.duplicate())
	case r.free():
		return true, nil
	case r.state == stateExecuted, r.closed && r.refused():
		return false, r.duplicate()
	case j.repeats && !r.closed: // one that is closed may have ended unknown since
		return j.retry(ctx, i)
	}
	return false, mustNotSend(r.duplicate())
}

// mustNotSend wraps d, so that the client sends nothing whatever its profile says.
func mustNotSend(d *cardwire.DuplicateIntent) error {
	return fmt.Errorf("sqljournal: the retry was not recorded: %w", d)
}

// retry records that an open or unknown intent is about to be sent again. It counts
// as begun now: nothing is resolved while the retry is in progress.
func (j *Journal) retry(ctx context.Context, i cardwire.Intent) (free bool, err error) {
	recorded, err := j.change(ctx, j.begins(i), `
UPDATE @intents SET state = 'unknown', attempts = attempts + 1, begun_at = @now, send_by = @later(send_by, @sendby), ended_at = NULL,
	event = 'retried', who = '', note = ''
WHERE op = ?1 AND reference = ?2 AND exclusive AND body_sha256 = ?3 AND state IN ('open', 'unknown') AND @this`,
		i.Op, i.Reference, i.BodySHA256)
	switch {
	case err != nil:
		return false, j.failed("recording the retry", err)
	case recorded == 0:
		return true, nil
	}
	return false, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown}
}

// Look implements cardwire.Looker. It returns nil where Begin would record a
// unique intent, and otherwise a *cardwire.DuplicateIntent or the failure of the
// database. It knows nothing of the body.
func (j *Journal) Look(ctx context.Context, op, reference string) error {
	if err := j.pin(ctx); err != nil {
		return err
	}
	r, err := j.find(ctx, op, reference)
	switch {
	case err != nil:
		return err
	case r.free(), r.state == stateOpen && j.abandoned.has(r.holder):
		return nil
	}
	return r.duplicate()
}

// row is the unique intent of a reference at the time now. An empty state means that
// there is none.
type row struct {
	state, body, holder, serviceID string
	closed                         bool
	begun, sendBy                  time.Time
	now                            time.Time
}

// find reads the row of a reference, and checks the journal's identity.
func (j *Journal) find(ctx context.Context, op, reference string) (r row, err error) {
	var identity string
	var now, begun, sendBy moment
	query := j.query(`
SELECT j.identity, coalesce(i.state, ''), coalesce(i.body_sha256, ''), coalesce(i.holder, ''), coalesce(i.service_id, ''),
	coalesce(i.closed, FALSE), i.begun_at, i.send_by, @clock
FROM @journal AS j LEFT JOIN @intents AS i ON i.op = ?1 AND i.reference = ?2 AND i.exclusive`)
	err = repeated(ctx, j.busy, func() error {
		return j.db.QueryRowContext(ctx, query, op, reference).
			Scan(&identity, &r.state, &r.body, &r.holder, &r.serviceID, &r.closed, &begun, &sendBy, &now)
	})
	switch pinned := j.pinned(); {
	case errors.Is(err, sql.ErrNoRows):
		return r, errMissing
	case err != nil:
		return r, j.failed("reading the earlier intent", err)
	case pinned != "" && identity != pinned:
		return r, errOtherJournal
	}
	r.begun, r.sendBy, r.now = begun.Time, sendBy.Time, now.now()
	return r, nil
}

func (r row) refused() bool { return r.state == stateRefused || r.state == stateNotSent }
func (r row) free() bool    { return r.state == "" || r.refused() && !r.closed }

// duplicate returns what the row says about its reference. A call that began in the
// future, because a clock was set back, is not reported as in progress.
func (r row) duplicate() *cardwire.DuplicateIntent {
	d := &cardwire.DuplicateIntent{Outcome: outcomeOf(r.state), ServiceID: r.serviceID}
	if inProgress(r.state, r.begun, r.sendBy, r.now) {
		d.InProgress, d.Remaining = true, r.sendBy.Sub(r.now)
	}
	return d
}

// inProgress reports whether some call may still send the intent.
func inProgress(state string, begun, sendBy, now time.Time) bool {
	return (state == stateOpen || state == stateUnknown) && now.Before(sendBy) && !begun.After(now)
}

// record is what every result does. Executed is final. Unknown, from any call, stays
// until a result is executed. Refused and not sent count only if they come from the call
// that began the intent, while no other result is known: nobody else can have sent it.
const record = `
UPDATE @intents SET
	service_id = CASE WHEN service_id = '' THEN ?6 ELSE service_id END,
	ended_at = @now,
	send_by = CASE WHEN state = 'open' AND holder LIKE ?4 THEN @now ELSE @later(send_by, @now) END,
	holder = CASE WHEN exclusive OR holder LIKE '%' || ?7 || '%' THEN holder ELSE holder || ?7 END,
	closed = closed OR (?8 AND state = 'open' AND holder LIKE ?4),
	state = CASE
		WHEN state = 'executed' OR ?5 = 'executed' THEN 'executed'
		WHEN ?5 = 'unknown' THEN 'unknown'
		WHEN state = 'open' AND holder LIKE ?4 THEN ?5
		ELSE state END,
	event = 'ended', who = '', note = ''
WHERE @this AND `

const byReference = `op = ?1 AND reference = ?2 AND body_sha256 = ?3 AND `

const recordUnique = record + byReference + `exclusive`

// recordOther takes one row for each End, of those that were begun in one clock tick. An
// End that is retried, because the response was lost, takes the row that it took before.
const recordOther = record + `id = (
SELECT id FROM @intents WHERE ` + byReference + `NOT exclusive AND holder LIKE ?4
AND (holder LIKE '%' || ?7 || '%' OR holder NOT LIKE '%/%')
ORDER BY CASE WHEN holder LIKE '%' || ?7 || '%' THEN 0 WHEN state = 'open' THEN 1 ELSE 2 END, id@one)`

// End implements cardwire.Journal. A retry, or a call that was retried, can only
// show that it was executed. A result that adds nothing is no error.
//
// Where the intent is no longer on record, End records it again with its result and
// returns [ErrRecordedAgain]; where its reference is another body's by then, it returns
// [ErrNoIntent].
//
// Where the database fails, End tries again until ctx is done, for at most 10
// seconds: an intent that stays open must be resolved by a person. It gives up at once
// if the database is closed or refuses the statement itself.
func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	statement := recordOther
	if i.Unique {
		statement = recordUnique
	}
	state, ender := stateOf(r.Outcome), j.ender()
	final := r.Final && (state == stateRefused || state == stateNotSent)
	args := []any{i.Op, i.Reference, i.BodySHA256, j.holder(i) + "%", state, r.ServiceID, ender, final}
	found, err := j.persist(ctx, statement, args...)
	if err == nil && found > 0 {
		return nil
	}
	if err == nil {
		found, err = j.persist(ctx, insertAgain, i.Op, i.Reference, i.Unique, i.BodySHA256, i.Summary, state, final, j.holder(i)+ender, r.ServiceID)
	}
	if err == nil && found == 0 { // another has begun it meanwhile, or the response was lost
		found, err = j.persist(ctx, statement, args...)
	}
	switch {
	case err != nil:
		return j.failed("recording the result", err)
	case found > 0:
		return ErrRecordedAgain
	}
	if _, err := j.find(ctx, i.Op, i.Reference); err != nil {
		return err
	}
	return ErrNoIntent
}

// insertAgain inserts a row that has vanished, with its result.
const insertAgain = `
INSERT INTO @intents (` + columns + `)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 1, ?9, @now, @now, @now, @now, 'recorded again', '', '' WHERE @this
AND NOT EXISTS (SELECT 1 FROM @intents WHERE op = ?1 AND reference = ?2 AND NOT exclusive AND holder = ?8)
ON CONFLICT (op, reference) WHERE exclusive DO NOTHING`

// releaseTimeout bounds what a failed Begin adds to its caller's deadline.
const releaseTimeout = time.Second

// release marks an intent that may have been recorded as not sent, and retries until it
// succeeds or time is up. If it fails, the intent stays open, which is safe, and a later
// Begin releases it.
func (j *Journal) release(ctx context.Context, i cardwire.Intent, holder string) {
	j.abandoned.add(holder)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_ = j.tryRelease(ctx, i, holder)
}

func (j *Journal) tryRelease(ctx context.Context, i cardwire.Intent, holder string) error {
	which := "NOT exclusive"
	if i.Unique {
		which = "exclusive"
	}
	released, err := j.persist(ctx, `
UPDATE @intents SET state = 'not_sent', ended_at = @now, send_by = @now, event = 'ended', who = '', note = 'nothing was sent: Begin failed'
WHERE `+byReference+which+` AND holder = ?4 AND state = 'open' AND @this`, i.Op, i.Reference, i.BodySHA256, holder)
	if err != nil {
		return j.failed("releasing the reference", err)
	}
	if released > 0 {
		j.abandoned.remove(holder)
	}
	return nil
}

// maxAbandoned bounds how many failed Begins a Journal remembers.
const maxAbandoned = 1 << 14

// holders is the set of calls whose Begin failed, and that have sent nothing.
type holders struct {
	mu  sync.Mutex
	set map[string]struct{}
}

func (h *holders) add(holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.set == nil {
		h.set = map[string]struct{}{}
	}
	for other := range h.set { // any: a forgotten one must be resolved by a person
		if len(h.set) < maxAbandoned {
			break
		}
		delete(h.set, other)
	}
	h.set[holder] = struct{}{}
}

func (h *holders) remove(holder string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.set, holder)
}

func (h *holders) has(holder string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.set[holder]
	return ok
}
