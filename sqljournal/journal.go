package sqljournal

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Journal is a cardwire.Journal in a table. It is safe for concurrent use, also
// by several clients. It does not close its database.
type Journal struct {
	db       *sql.DB
	dialect  Dialect
	table    string
	repeats  bool
	instance string        // tells this Journal's intents from those of others
	calls    atomic.Uint64 // tells one Begin from another, and one End
}

var _ cardwire.Journal = (*Journal)(nil)

// Option configures a [Journal] in [New].
type Option func(*Journal) error

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

// WithTable names the table: at most 48 lower-case letters, digits and
// underscores. The default is [DefaultTable]. Each account and each environment
// of the service needs a table of its own: a reference of one says nothing of the
// same reference in another.
func WithTable(name string) Option {
	return func(j *Journal) error {
		if !tableName.MatchString(name) {
			return errors.New("sqljournal: the name of a table must be at most 48 of a-z, 0-9 and _, and not begin with a digit")
		}
		j.table = name
		return nil
	}
}

// WithRepeats is for clients with cardwire.Profile.ServerDeduplicates, which may
// repeat what is under way or undecided. Begin then records such a repeat before
// it is sent. From then on a refusal, whichever call is told it, decides the
// intent no more: only that it was executed, or an answer.
//
// Without it Begin refuses every repeat, whatever the profile says. It costs other
// clients their refusals, so leave it out for them.
func WithRepeats() Option {
	return func(j *Journal) error {
		j.repeats = true
		return nil
	}
}

// New returns a Journal in db, which speaks the dialect. It does not touch the
// database; see [Journal.EnsureSchema].
func New(db *sql.DB, dialect Dialect, opts ...Option) (*Journal, error) {
	if db == nil {
		return nil, errors.New("sqljournal: the database is nil")
	}
	if dialect != SQLite && dialect != PostgreSQL {
		return nil, errors.New("sqljournal: the dialect must be SQLite or PostgreSQL")
	}
	j := &Journal{db: db, dialect: dialect, table: DefaultTable, instance: rand.Text()}
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

// schemaLock is PostgreSQL's advisory lock around creating the schema: its IF
// NOT EXISTS fails where two do it at once.
const schemaLock = "SELECT pg_advisory_xact_lock(7310294475036628341)"

// EnsureSchema creates the table and its indexes unless they exist, which
// several processes may do at once. It needs permission to create them; without
// it, have the schema created from [SchemaSQLite] or [SchemaPostgreSQL].
func (j *Journal) EnsureSchema(ctx context.Context) error {
	create := j.createSQLite
	if j.dialect == PostgreSQL {
		create = j.createPostgreSQL
	}
	if err := create(ctx); err != nil {
		return failed("creating the schema", err)
	}
	return nil
}

// createSQLite needs no transaction: each statement is atomic, and what a crash
// left out the next call creates.
func (j *Journal) createSQLite(ctx context.Context) error {
	for _, statement := range j.dialect.schema() {
		if _, err := j.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) createPostgreSQL(ctx context.Context) error {
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, statement := range append([]string{schemaLock}, j.dialect.schema()...) {
		if _, err := tx.ExecContext(ctx, j.dialect.query(statement, j.table)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// The states of an intent; the package comment explains them.
const (
	stateOpen      = "open"
	stateUndecided = "undecided"
	stateExecuted  = "executed"
	stateRefused   = "refused"
	stateNotSent   = "not_sent"
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
		return stateUndecided
	}
}

const insert = `
INSERT INTO cardwire_intents AS i
	(op, reference, exclusive, body_sha256, state, holder, attempts, service_id, created_at, begun_at)
VALUES (?1, ?2, ?3, ?4, 'open', ?5, 1, '', @now, @now)`

// insertUnique is one statement on purpose: the unique index decides who is
// first, the lock on the row who begins it again, and SQLite takes its lock for
// writing at once, so that it never fails for having read before.
const insertUnique = insert + `
ON CONFLICT (op, reference) WHERE exclusive DO UPDATE
SET state = 'open', holder = excluded.holder, attempts = i.attempts + 1, begun_at = excluded.begun_at, ended_at = NULL
WHERE i.state IN ('refused', 'not_sent') AND i.body_sha256 = excluded.body_sha256`

// Begin implements cardwire.Journal. It returns nil if the intent is on record,
// a *cardwire.DuplicateIntent if the reference is taken, [cardwire.ErrOtherBody] if
// it is another request's, and otherwise the failure of the database. With an
// ErrOtherBody comes a *cardwire.DuplicateIntent, unless the other request was
// refused or not sent. What must not be repeated wraps one too; see [WithRepeats].
//
// Where the database fails so that the intent may have been recorded after all,
// Begin takes another second to mark it as not sent, even if ctx is done: else
// a call that sent nothing would block its reference.
func (j *Journal) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Op == "" || i.Reference == "" {
		return errors.New("sqljournal: an intent needs an operation and a reference")
	}
	if err := ctx.Err(); err != nil {
		return failed("recording the intent", err)
	}
	query := insert
	if i.Unique {
		query = insertUnique
	}
	holder := j.holder(i) + j.call()
	begun, err := j.execAt(ctx, i.Time, query, i.Op, i.Reference, i.Unique, i.BodySHA256, holder)
	switch {
	case err != nil:
		j.release(ctx, i, holder)
		return failed("recording the intent", err)
	case begun == 0:
		return j.taken(ctx, i)
	}
	return nil
}

// holder is how the name begins by which a call holds an intent, as far as both
// Begin and End know it: their intents are the same. Begin adds what tells two
// calls of one clock's tick apart, so that one that fails releases no other's.
func (j *Journal) holder(i cardwire.Intent) string {
	return j.instance + "-" + strconv.FormatInt(i.Time.UnixNano(), 36) + "-"
}

// heldBy is the pattern of the names that begin so.
func (j *Journal) heldBy(i cardwire.Intent) string { return j.holder(i) + "%" }

// ender is what an End adds to the name in a row that is not the only one of its
// reference, so that it finds it again.
func (j *Journal) ender() string { return "/" + j.call() + "/" }

// call returns what tells a call from all others of this Journal.
func (j *Journal) call() string { return strconv.FormatUint(j.calls.Add(1), 36) }

// repeat records that what is open or undecided is about to be sent once more.
// It counts as begun now, so that it is not too old for [Journal.Undecided] while
// the repeat is under way.
const repeat = `
UPDATE cardwire_intents SET state = 'undecided', attempts = attempts + 1, begun_at = @now, ended_at = NULL
WHERE op = ?1 AND reference = ?2 AND exclusive AND body_sha256 = ?3 AND state IN ('open', 'undecided')`

// taken says why the reference could not be begun. An intent that has become
// free meanwhile was taken when it was asked for, which is the safe answer. The
// client may send it all the same only where that is on record.
func (j *Journal) taken(ctx context.Context, i cardwire.Intent) error {
	if j.repeats {
		recorded, err := j.execAt(ctx, i.Time, repeat, i.Op, i.Reference, i.BodySHA256)
		switch {
		case err != nil:
			return failed("recording the repeat", err)
		case recorded > 0:
			return &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown}
		}
	}
	var state, body string
	err := j.row(ctx, `SELECT state, body_sha256 FROM cardwire_intents WHERE op = ?1 AND reference = ?2 AND exclusive`,
		[]any{i.Op, i.Reference}, &state, &body)
	switch {
	case err != nil:
		return failed("reading the earlier intent", err)
	case body == i.BodySHA256 && state == stateExecuted:
		return &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}
	case body == i.BodySHA256:
		return fmt.Errorf("sqljournal: a repeat is not on record: %w", &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown})
	case state == stateExecuted:
		return fmt.Errorf("%w: %w", cardwire.ErrOtherBody, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted})
	case state == stateRefused, state == stateNotSent:
		return cardwire.ErrOtherBody
	}
	return fmt.Errorf("%w: %w", cardwire.ErrOtherBody, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown})
}

// releaseTimeout bounds what a failed Begin adds to its caller's deadline.
const releaseTimeout = time.Second

// release marks an intent that may have been recorded as not sent, again and again
// until it has. Where that fails too, the intent stays open, which is the safe
// direction.
func (j *Journal) release(ctx context.Context, i cardwire.Intent, holder string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = j.persist(ctx, time.Now(), `
UPDATE cardwire_intents SET state = 'not_sent', ended_at = @now
WHERE op = ?1 AND reference = ?2 AND exclusive = ?3 AND body_sha256 = ?4 AND holder = ?5 AND state = 'open'`,
		i.Op, i.Reference, i.Unique, i.BodySHA256, holder)
}

// record is what every result does. That it was executed is final. That nobody
// knows stands until then, whoever says so. That it did not happen counts only
// from the call that began the intent, and while no other result is known.
const record = `
UPDATE cardwire_intents SET
	service_id = CASE WHEN service_id = '' THEN ?7 ELSE service_id END,
	ended_at = CASE WHEN state = 'executed' THEN ended_at ELSE @now END,
	holder = CASE WHEN exclusive OR holder LIKE '%' || ?8 || '%' THEN holder ELSE holder || ?8 END,
	state = CASE
		WHEN state = 'executed' OR ?6 = 'executed' THEN 'executed'
		WHEN ?6 = 'undecided' THEN 'undecided'
		WHEN state = 'open' AND holder LIKE ?5 THEN ?6
		ELSE state END
WHERE `

const byReference = `op = ?1 AND reference = ?2 AND exclusive = ?3 AND body_sha256 = ?4`

// End implements cardwire.Journal. A repeat, or a call that was repeated, can only
// show that it was executed. A result that adds nothing is
// no error; one of an intent that was never begun is [ErrNoIntent].
//
// Where the database fails, End tries again until ctx is done, for at most 10
// seconds: an intent that is left open is an order that somebody must ask about. It
// gives up at once where the database is closed or refuses the statement itself.
func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	where := byReference
	if !i.Unique {
		// Of several rows that one clock's tick began, each End takes one: its own, if
		// it has taken it and was not told.
		where = `id = (SELECT id FROM cardwire_intents WHERE ` + byReference + ` AND holder LIKE ?5
ORDER BY CASE WHEN holder LIKE '%' || ?8 || '%' THEN 0 WHEN state = 'open' THEN 1 ELSE 2 END, id` + j.dialect.one() + `)`
	}
	found, err := j.persist(ctx, time.Now(), record+where, i.Op, i.Reference, i.Unique, i.BodySHA256, j.heldBy(i),
		stateOf(r.Outcome), r.ServiceID, j.ender())
	switch {
	case err != nil:
		return failed("recording the result", err)
	case found == 0:
		return ErrNoIntent
	}
	return nil
}

// Entry is an intent whose outcome nobody knows.
type Entry struct {
	// Op is the operation, as in cardwire.Error.Op.
	Op string
	// Reference is the caller's identifier.
	Reference string
	// BodySHA256 is the hash of what was to be sent, as in cardwire.Intent.
	BodySHA256 string
	// Unique says whether the reference stands for one execution.
	Unique bool
	// Open says that no result was told since BegunAt: a call is under way, or its
	// process has died. It is false where the result was that nobody knows.
	Open bool
	// Attempts is how many calls were made, as far as is known; at least 1.
	Attempts int
	// ServiceID is the service's identifier; "": none was answered.
	ServiceID string
	// CreatedAt is when it was first begun, in UTC. All times are by the clock of
	// the PostgreSQL server, or of the machine with the SQLite file.
	CreatedAt time.Time
	// BegunAt is when it was last begun or repeated, in UTC.
	BegunAt time.Time
	// EndedAt is when a result was last told, in UTC; zero: none since BegunAt.
	EndedAt time.Time
	// Try tells this try of the intent from a later one, for [Journal.ResolveEntry].
	// It may be kept and passed on; what it is made of may change.
	Try string
}

// Undecided returns the intents that were begun at least olderThan ago and are
// open or undecided, the oldest first; nil: there is none. With 0 they are all
// of them, those of calls that are under way included.
//
// Give it longer than any call takes. PostgreSQL measures by the server's clock,
// whatever those of the clients say. SQLite has the clocks of the processes: there
// it must be longer than any call and any step of the machine's clock together.
func (j *Journal) Undecided(ctx context.Context, olderThan time.Duration) ([]Entry, error) {
	query := `
SELECT op, reference, body_sha256, exclusive, state = 'open' OR ended_at IS NULL, attempts, service_id, created_at, begun_at, ended_at, ` + try + `
FROM cardwire_intents WHERE state IN ('open', 'undecided')`
	var args []any
	if olderThan > 0 { // without a limit no difference of clocks hides any
		query += ` AND begun_at <= ` + j.dialect.ago()
		args = append(args, j.dialect.age(olderThan))
	}
	var entries []Entry
	err := repeated(ctx, j.busy, func() (err error) {
		entries, err = j.entries(ctx, query+` ORDER BY begun_at, id`, args)
		return err
	})
	if err != nil {
		return nil, failed("reading the undecided intents", err)
	}
	return entries, nil
}

func (j *Journal) entries(ctx context.Context, query string, args []any) (entries []Entry, err error) {
	rows, err := j.db.QueryContext(ctx, j.dialect.query(query, j.table), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e Entry
		var created, begun, ended moment
		err := rows.Scan(&e.Op, &e.Reference, &e.BodySHA256, &e.Unique, &e.Open, &e.Attempts, &e.ServiceID,
			&created, &begun, &ended, &e.Try)
		if err != nil {
			return nil, err
		}
		e.CreatedAt, e.BegunAt, e.EndedAt = created.Time, begun.Time, ended.Time
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// try is what Entry.Try is in SQL: a row's attempts only ever grow, whenever the
// reference is begun.
const try = `id || '-' || attempts`

// ResolveEntry records what the service said of an intent, as [Journal.Undecided]
// returned it: the outcome is cardwire.OutcomeExecuted, OutcomeRefused or
// OutcomeNotSent. After the latter two the reference may be begun again, so they
// must be certain, and the call of the entry must not be under way.
//
// An answer says nothing of a try that came after the question. So ResolveEntry
// returns [ErrDecided], and leaves the intent as it is, where it is decided or was
// begun again since. It returns [ErrNoIntent] where none was begun. Of e it needs
// Op, Reference and Try.
func (j *Journal) ResolveEntry(ctx context.Context, e Entry, outcome cardwire.Outcome) error {
	return j.resolve(ctx, e.Op, e.Reference, outcome, ` AND `+try+` = ?4`, e.Try)
}

// Resolve is [Journal.ResolveEntry] without an entry, for an operator who has
// just looked. It cannot know which try the answer is about: where the answer is
// older than the last try, it frees a reference that may be under way, and the
// next call sends it twice. Prefer ResolveEntry, above all in a program.
//
// Of intents that are not unique it resolves all that are open or undecided under
// the reference. It returns [ErrDecided] where none is.
func (j *Journal) Resolve(ctx context.Context, op, reference string, outcome cardwire.Outcome) error {
	return j.resolve(ctx, op, reference, outcome, "")
}

// resolve decides what is open or undecided, and meets the condition on more.
func (j *Journal) resolve(ctx context.Context, op, reference string, outcome cardwire.Outcome, condition string, more ...any) error {
	state := stateOf(outcome)
	if state == stateUndecided {
		return errors.New("sqljournal: an intent is resolved to executed, refused or not sent; leave it until it is known")
	}
	resolved, err := j.execAt(ctx, time.Now(), `
UPDATE cardwire_intents SET state = ?3, ended_at = @now
WHERE op = ?1 AND reference = ?2 AND state IN ('open', 'undecided')`+condition,
		append([]any{op, reference, state}, more...)...)
	switch {
	case err != nil:
		return failed("resolving the intent", err)
	case resolved == 0:
		return j.unresolvable(ctx, op, reference)
	}
	return nil
}

func (j *Journal) unresolvable(ctx context.Context, op, reference string) error {
	var begun int
	err := j.row(ctx, `SELECT count(*) FROM cardwire_intents WHERE op = ?1 AND reference = ?2`, []any{op, reference}, &begun)
	switch {
	case err != nil:
		return failed("reading the intent", err)
	case begun == 0:
		return ErrNoIntent
	}
	return ErrDecided
}

// exec executes one statement, which is a transaction of its own, and returns
// how many rows it wrote. It waits for locks.
func (j *Journal) exec(ctx context.Context, query string, args ...any) (rows int64, err error) {
	return j.execWhile(ctx, j.busy, query, args)
}

// execAt is exec at a time, which is @now in the query.
func (j *Journal) execAt(ctx context.Context, at time.Time, query string, args ...any) (rows int64, err error) {
	query, args = j.now(at, query, args)
	return j.execWhile(ctx, j.busy, query, args)
}

// persist is execAt for a statement that does no more when it is repeated: it
// outlasts whatever passes, also what kept the database from telling that it was
// executed.
func (j *Journal) persist(ctx context.Context, at time.Time, query string, args ...any) (rows int64, err error) {
	query, args = j.now(at, query, args)
	return j.execWhile(ctx, j.passes, query, args)
}

// now puts the time in the place of @now: in PostgreSQL the server's, because the
// clocks of several machines differ.
func (j *Journal) now(at time.Time, query string, args []any) (string, []any) {
	now := "statement_timestamp()"
	if j.dialect == SQLite {
		args = append(args, textOf(at))
		now = "?" + strconv.Itoa(len(args))
	}
	return strings.ReplaceAll(query, "@now", now), args
}

func (j *Journal) execWhile(ctx context.Context, passes func(error) bool, query string, args []any) (rows int64, err error) {
	query = j.dialect.query(query, j.table)
	err = repeated(ctx, passes, func() error {
		result, err := j.db.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		rows, err = result.RowsAffected()
		return err
	})
	return rows, err
}

// row reads the one row that the query finds.
func (j *Journal) row(ctx context.Context, query string, args []any, into ...any) error {
	query = j.dialect.query(query, j.table)
	return repeated(ctx, j.busy, func() error {
		return j.db.QueryRowContext(ctx, query, args...).Scan(into...)
	})
}

// How long the journal tries again where its caller's context does not end before,
// and how long it waits between two tries.
const (
	repeatTimeout = 10 * time.Second
	repeatWait    = time.Millisecond
	repeatMaxWait = 50 * time.Millisecond
)

// repeated repeats what failed for a reason that passes.
func repeated(ctx context.Context, passes func(error) bool, try func() error) error {
	err := try()
	if !passes(err) {
		return err
	}
	limit := time.NewTimer(repeatTimeout)
	defer limit.Stop()
	for wait := repeatWait; ; wait = min(2*wait, repeatMaxWait) {
		pause := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			pause.Stop()
			return errors.Join(ctx.Err(), err)
		case <-limit.C:
			pause.Stop()
			return err
		case <-pause.C:
		}
		if err = try(); !passes(err) {
			return err
		}
	}
}

// busy says whether SQLite did nothing because of a lock. Its own words, which
// every driver passes on, are the only sign that needs no driver.
func (j *Journal) busy(err error) bool {
	return j.dialect == SQLite && err != nil &&
		(strings.Contains(err.Error(), "database is locked") || strings.Contains(err.Error(), "database table is locked"))
}

// passes says whether what failed may succeed later, as after a restart of the
// database. What is not known to last may pass.
func (j *Journal) passes(err error) bool {
	return err != nil && err.Error() != closedDatabase && !j.misunderstood(err)
}

// closedDatabase is what database/sql says of a database that was closed.
const closedDatabase = "sql: database is closed"

// misunderstood says whether the database refuses the statement itself: there is
// no such table or column, or no permission to write it, or it does not store such
// data. The drivers of PostgreSQL tell the SQLSTATE, whose class is then 42 or 22; of
// SQLite there are only its own words.
func (j *Journal) misunderstood(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return strings.HasPrefix(state.SQLState(), "42") || strings.HasPrefix(state.SQLState(), "22")
	}
	return j.dialect == SQLite && slices.ContainsFunc([]string{"no such table", "no such column", "has no column", "readonly database", "not a database"},
		func(words string) bool { return strings.Contains(err.Error(), words) })
}
