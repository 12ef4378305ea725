package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
)

// Entry is what is known of an intent. All times are in UTC, by the clock of the
// PostgreSQL server, or of the machine with the SQLite file.
type Entry struct {
	// Op is the operation, as in cardwire.Error.Op.
	Op string
	// Reference is the caller's identifier.
	Reference string
	// BodySHA256 is the hash of what was to be sent, as in cardwire.Intent; "": it was
	// voided before any request had the reference.
	BodySHA256 string
	// Summary lets a person recognize it, as in cardwire.Intent.
	Summary string
	// Unique reports whether the reference identifies one execution.
	Unique bool
	// Outcome is what is known: cardwire.OutcomeUnknown also while it is open.
	Outcome cardwire.Outcome
	// Open reports that no result was recorded since BegunAt: a call is in progress, or
	// its process has died.
	Open bool
	// InProgress reports that a call may still send: the time is before SendBy.
	InProgress bool
	// Closed reports that the reference can never be begun again, after a final refusal,
	// [Journal.Void] or a [Resolution] with Close.
	Closed bool
	// Attempts is how many calls were made, as far as is known.
	Attempts int
	// ServiceID is the service's identifier; "": none was returned.
	ServiceID string
	// CreatedAt is when it was first begun.
	CreatedAt time.Time
	// BegunAt is when it was last begun or retried.
	BegunAt time.Time
	// SendBy is the time after which no write of it begins: the SendBy of its last
	// call, or earlier if that call has ended.
	SendBy time.Time
	// EndedAt is when a result was last recorded; zero: none since BegunAt.
	EndedAt time.Time
	// Try identifies this try of the intent, for [Journal.Resolve]. It may be stored and
	// passed on; its format may change. After a restore, or a failover that lost tries, a
	// new try may have the Try of a forgotten one: discard what was read before, and read
	// the entries again.
	Try string
}

// entriesOf makes use of both indexes.
const entriesOf = `FROM (SELECT * FROM @intents WHERE op = ?1 AND reference = ?2 AND exclusive
UNION ALL SELECT * FROM @intents WHERE op = ?1 AND reference = ?2 AND NOT exclusive) AS i`

const selectEntries = `
SELECT id, op, reference, body_sha256, summary, exclusive, state, closed, attempts, service_id, created_at, begun_at, send_by, ended_at, @clock `

// Lookup returns what is known of a reference, or [ErrNoIntent] if there is none. If the
// reference has several intents that are not unique, it returns the last.
func (j *Journal) Lookup(ctx context.Context, op, reference string) (Entry, error) {
	if err := j.Verify(ctx); err != nil {
		return Entry{}, err
	}
	entries, err := j.entries(ctx, selectEntries+entriesOf+` ORDER BY id DESC LIMIT 1`, op, reference)
	switch {
	case err != nil:
		return Entry{}, err
	case len(entries) == 0:
		return Entry{}, ErrNoIntent
	}
	return entries[0].Entry, nil
}

// pageSize is how many entries Unresolved reads at a time.
const pageSize = 500

// Unresolved yields the intents whose outcome is unknown, the oldest first, however many
// there are: those that are open longer than grace after their SendBy, those that ended
// unknown longer than grace ago, and those that began in the future, by a clock that was
// set back. With grace 0 it yields all but those of calls in progress. After an error it
// yields nothing more.
//
// Use grace 0 to list what to ask the service about: "executed" may be recorded at once.
// A service may execute a request late, so use a grace of ten minutes, unless it promises
// less, for what is resolved as refused or not sent: before that, the service may report
// "not found" for an order that it executes later. It is safe to resolve intents within
// the loop.
func (j *Journal) Unresolved(ctx context.Context, grace time.Duration) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := j.Verify(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		grace, last := max(0, grace), entry{}
		for {
			page, err := j.unresolved(ctx, grace, last)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !e.tooYoung(grace) && !yield(e.Entry, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			last = page[len(page)-1]
		}
	}
}

// due returns the condition of Unresolved; parameter is the grace. PostgreSQL's
// clock_timestamp is later than all that the statement can see.
func (d Dialect) due(parameter string) string {
	before, now := parameter, "@now"
	if d == PostgreSQL {
		before, now = "statement_timestamp() - make_interval(secs => "+parameter+")", "clock_timestamp()"
	}
	return `state IN ('open', 'unknown') AND (send_by <= ` + before + ` OR begun_at > ` + now + `)`
}

// ago is the parameter of due.
func (d Dialect) ago(grace time.Duration) any {
	if d == PostgreSQL {
		return grace.Seconds()
	}
	return textOf(time.Now().Add(-grace))
}

func (j *Journal) unresolved(ctx context.Context, grace time.Duration, last entry) ([]entry, error) {
	return j.entries(ctx, selectEntries+`FROM @intents WHERE `+j.dialect.due("?1")+
		` AND (begun_at, id) > (?2, ?3) ORDER BY begun_at, id LIMIT `+strconv.Itoa(pageSize),
		j.dialect.ago(grace), j.dialect.moment(last.BegunAt), last.id)
}

// entry is an Entry with its row's ID, and the time at which it was read.
type entry struct {
	Entry
	id  int64
	now time.Time
}

// tooYoung reports whether an intent was begun while the query was delayed, by a lock or
// a pause: compared with the query's own, older time it began in the future.
func (e entry) tooYoung(grace time.Duration) bool {
	return !e.BegunAt.After(e.now) && e.SendBy.After(e.now.Add(-grace))
}

func (j *Journal) entries(ctx context.Context, query string, args ...any) (entries []entry, err error) {
	err = j.rows(ctx, query, args, func() { entries = nil }, func(scan func(...any) error) error {
		var e entry
		var state string
		var created, begun, sendBy, ended, now moment
		err := scan(&e.id, &e.Op, &e.Reference, &e.BodySHA256, &e.Summary, &e.Unique, &state, &e.Closed, &e.Attempts, &e.ServiceID,
			&created, &begun, &sendBy, &ended, &now)
		e.CreatedAt, e.BegunAt, e.SendBy, e.EndedAt = created.Time, begun.Time, sendBy.Time, ended.Time
		e.Outcome, e.Try = outcomeOf(state), tryOf(e.id, e.Attempts)
		e.Open = ended.IsZero() && e.Outcome == cardwire.OutcomeUnknown
		e.now = now.now()
		e.InProgress = inProgress(state, e.BegunAt, e.SendBy, e.now)
		entries = append(entries, e)
		return err
	})
	return entries, err
}

// rows reads all rows of a query, each by scan; start is called before each try.
func (j *Journal) rows(ctx context.Context, query string, args []any, start func(), row func(scan func(...any) error) error) error {
	query, args = j.bind(query, times{now: time.Now()}, args)
	err := repeated(ctx, j.busy, func() (err error) {
		start()
		rows, err := j.db.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rows.Close()) }()
		for rows.Next() {
			if err := row(rows.Scan); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return j.failed("reading the intents", err)
	}
	return nil
}

// tryOf returns an Entry.Try: every Begin of the reference increases the row's attempts.
func tryOf(id int64, attempts int) string {
	return strconv.FormatInt(id, 10) + "-" + strconv.Itoa(attempts)
}

// parseTry returns the row's ID and its attempts; for an invalid Try, those of no row.
func parseTry(try string) (id int64, attempts int) {
	row, count, _ := strings.Cut(try, "-")
	id, err := strconv.ParseInt(row, 10, 64)
	attempts, err2 := strconv.Atoi(count)
	if errors.Join(err, err2) != nil {
		return -1, -1
	}
	return id, attempts
}

// Event is something that happened to an intent.
type Event struct {
	// Time is when, in UTC; see [Entry].
	Time time.Time
	// Kind is "begun"; "ended", a call reported its result; "resolved"; "corrected", it was
	// resolved to executed after it was recorded as refused or not sent; "voided";
	// "retried", see [WithRepeats]; or "recorded again", see [ErrRecordedAgain].
	Kind string
	// Outcome is what was known of the intent then.
	Outcome cardwire.Outcome
	// Try is the try that the event belongs to, as in [Entry].
	Try string
	// By is who resolved or voided it; "": a call.
	By string
	// Note is the reason, as in [Resolution]; "": none.
	Note string
}

// History returns what happened to a reference, the oldest first. It returns
// [ErrNoIntent] if nothing did.
func (j *Journal) History(ctx context.Context, op, reference string) (events []Event, err error) {
	if err := j.Verify(ctx); err != nil {
		return nil, err
	}
	err = j.rows(ctx, `SELECT at, kind, state, intent, attempt, who, note FROM @history
WHERE intent IN (SELECT id `+entriesOf+`) ORDER BY id`, []any{op, reference}, func() { events = nil }, func(scan func(...any) error) error {
		var e Event
		var at moment
		var state string
		var id int64
		var attempt int
		err := scan(&at, &e.Kind, &state, &id, &attempt, &e.By, &e.Note)
		e.Time, e.Outcome, e.Try = at.Time, outcomeOf(state), tryOf(id, attempt)
		events = append(events, e)
		return err
	})
	if err == nil && len(events) == 0 {
		err = ErrNoIntent
	}
	// A result whose acknowledgement was lost is recorded twice.
	return slices.CompactFunc(events, func(a, b Event) bool {
		b.Time = a.Time
		return a == b && a.Kind == "ended"
	}), err
}

// Resolution is what the service reported about an intent.
type Resolution struct {
	// Outcome is cardwire.OutcomeExecuted, OutcomeRefused or OutcomeNotSent.
	Outcome cardwire.Outcome
	// ServiceID is the service's identifier; "": what is on record stays.
	ServiceID string
	// By is who resolves it. The history keeps it.
	By string
	// Note is the reason. The history keeps it.
	Note string
	// Close also closes the reference, as [Journal.Void] does, in the same statement, so
	// that it is never sent again. It has no effect with cardwire.OutcomeExecuted, or on
	// an intent that is not unique.
	Close bool
}

// Resolve records the outcome of an intent, as [Journal.Unresolved] or
// [Journal.Lookup] returned it. An open or unknown intent can be resolved to
// executed, refused or not sent. After refused or not sent the reference may be begun
// again, so be certain of them, and set Close for an order that must never be sent
// again. A refused, not sent or voided intent can be corrected to executed.
//
// An entry proves nothing about a later try. So Resolve returns [ErrDecided], and
// changes nothing, if the intent was resolved or begun again since, and [ErrNoIntent]
// if none was begun. If a call may still send and the outcome is not executed, it
// returns an error that wraps a *cardwire.DuplicateIntent and contains the time after
// which it can be resolved. Of e, it needs only Op, Reference and Try.
func (j *Journal) Resolve(ctx context.Context, e Entry, r Resolution) error {
	state := stateOf(r.Outcome)
	if state == stateUnknown {
		return errors.New("sqljournal: the outcome must be executed, refused or not sent: leave the intent unresolved until one is known")
	}
	id, attempts := parseTry(e.Try)
	resolved, err := j.change(ctx, times{now: time.Now()}, `
UPDATE @intents SET state = ?5, ended_at = @now,
	service_id = CASE WHEN ?6 = '' THEN service_id ELSE ?6 END,
	closed = closed OR (?9 AND exclusive AND ?5 <> 'executed'),
	event = CASE WHEN state IN ('open', 'unknown') THEN 'resolved' ELSE 'corrected' END, who = ?7, note = ?8
WHERE id = ?1 AND attempts = ?2 AND op = ?3 AND reference = ?4 AND @this
AND (state IN ('open', 'unknown') AND (?5 = 'executed' OR send_by <= @now) OR state IN ('refused', 'not_sent') AND ?5 = 'executed')`,
		id, attempts, e.Op, e.Reference, state, r.ServiceID, r.By, r.Note, r.Close)
	switch {
	case err != nil:
		return j.failed("resolving the intent", err)
	case resolved == 0:
		return j.unresolvable(ctx, e, id)
	}
	return nil
}

func (j *Journal) unresolvable(ctx context.Context, e Entry, id int64) error {
	if _, err := j.find(ctx, e.Op, e.Reference); errors.Is(err, ErrSchema) {
		return err
	}
	found, err := j.entries(ctx, selectEntries+entriesOf+` ORDER BY id`, e.Op, e.Reference)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return ErrNoIntent
	}
	for _, f := range found {
		if f.id == id && f.Try == e.Try && f.Outcome == cardwire.OutcomeUnknown {
			d := &cardwire.DuplicateIntent{Outcome: f.Outcome, InProgress: f.InProgress, ServiceID: f.ServiceID}
			return &tooEarly{d, f.SendBy}
		}
	}
	return ErrDecided
}

// Void closes a unique reference, so that it is never sent, or never again: for an
// order that was canceled before it was sent, or abandoned after many tries. Void it
// before you mark the order as failed. The reference need not have been begun. Void does
// not change a reference that is already closed.
//
// If the reference is open, unknown or executed, Void changes nothing and returns its
// *cardwire.DuplicateIntent. Canceling and retrying a card operation may be begun again,
// so they cannot be voided.
//
// If the client would refuse op or reference, for example because it is empty, or begins
// or ends with white space, Void changes nothing and returns a cardwire.ErrInvalidParams.
// Void cannot detect any other mistake, which leaves the intended reference free. Both
// must be exactly those of cardwire.Intent: "CreateTransfer", and a client transaction
// ID in lower case.
func (j *Journal) Void(ctx context.Context, op, reference string, by, note string) error {
	if err := cmp.Or(check.Given("op", op), check.Given("reference", reference)); err != nil {
		return fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, err)
	}
	if op == "CancelOperation" || op == "RetryOperation" {
		return errors.New("sqljournal: CancelOperation and RetryOperation may be begun again and cannot be voided")
	}
	if err := j.pin(ctx); err != nil {
		return err
	}
	for range beginTries {
		voided, err := j.change(ctx, times{now: time.Now()}, void, op, reference, by, note)
		if err != nil {
			return j.failed("voiding the reference", err)
		}
		if voided > 0 {
			return nil
		}
		r, err := j.find(ctx, op, reference)
		switch {
		case err != nil:
			return err
		case r.free():
		case r.state == stateOpen && j.abandoned.has(r.holder):
			if err := j.tryRelease(ctx, cardwire.Intent{Op: op, Reference: reference, BodySHA256: r.body, Unique: true}, r.holder); err != nil {
				return err
			}
		case r.closed && r.refused():
			return nil
		default:
			return r.duplicate()
		}
	}
	return &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown}
}

const void = `
INSERT INTO @intents AS i (` + columns + `)
SELECT ?1, ?2, TRUE, '', '', 'not_sent', TRUE, '', 0, '', @now, @now, @now, @now, 'voided', ?3, ?4 WHERE @this
ON CONFLICT (op, reference) WHERE exclusive DO UPDATE
SET closed = TRUE, ended_at = excluded.ended_at, event = 'voided', who = excluded.who, note = excluded.note
WHERE i.state IN ('refused', 'not_sent') AND NOT i.closed`

// Stats are numbers to monitor.
type Stats struct {
	// InProgress is the number of intents with calls that may still send.
	InProgress int64
	// Unresolved is the number of intents that [Journal.Unresolved] yields with grace 0.
	Unresolved int64
	// OldestUnresolved is when the oldest of those was begun, in UTC; zero: there is none.
	OldestUnresolved time.Time
}

// Stats counts the intents in progress and unresolved. Its cost grows with their number.
func (j *Journal) Stats(ctx context.Context) (Stats, error) {
	if err := j.Verify(ctx); err != nil {
		return Stats{}, err // an empty result from another journal would be misleading
	}
	var s Stats
	var oldest moment
	due := j.dialect.due("?1")
	query := `SELECT count(*) - count(CASE WHEN ` + due + ` THEN 1 END), count(CASE WHEN ` + due + ` THEN 1 END),
min(CASE WHEN ` + due + ` THEN begun_at END) FROM @intents WHERE state IN ('open', 'unknown')`
	query, args := j.bind(query, times{now: time.Now()}, []any{j.dialect.ago(0)})
	err := repeated(ctx, j.busy, func() error {
		return j.db.QueryRowContext(ctx, query, args...).Scan(&s.InProgress, &s.Unresolved, &oldest)
	})
	if err != nil {
		return Stats{}, j.failed("counting the intents", err)
	}
	s.OldestUnresolved = oldest.Time
	return s, nil
}
