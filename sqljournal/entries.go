package sqljournal

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Entry is what is known about a reference. All times are in UTC, by the clock of the
// PostgreSQL server, or of the machine with the SQLite file.
type Entry struct {
	// Intent is the call that is on record: the last that began, or the one that was
	// executed. Its Call is what [Journal.Resolve] needs. Before its SettledBy nobody can
	// record that it was not executed.
	cardwire.Intent

	// Outcome is what is known: cardwire.OutcomeUnknown also while the call is open.
	Outcome cardwire.Outcome
	// Open reports whether the call has not ended: it is in progress, or its process has
	// died.
	Open bool
	// InProgress reports whether the call may still send: it is open, and its SendBy has not
	// passed.
	InProgress bool
	// Closed reports whether the reference can never be begun again.
	Closed bool
	// Proved reports whether a response, and not a person, says that it was executed.
	Proved bool
	// Calls is how many calls were begun; 0: it was voided before any.
	Calls int
	// ServiceID is the service's identifier of what was executed; "": not known.
	ServiceID string
	// Status is the service's own, as in cardwire.IntentResult; "": none.
	Status string
	// CreatedAt is when the reference was first begun or voided.
	CreatedAt time.Time
	// EndedAt is when a result was last recorded; zero: none since the call began.
	EndedAt time.Time
}

// known is an Entry, with when it was read.
type known struct {
	Entry
	id  int64
	now time.Time // when it was read
}

// exists reports whether something is on record.
func (k known) exists() bool { return k.id != 0 }

// duplicate returns why the reference is not free; nil: nothing happened, and it is not
// closed. A call that began in the future, because a clock was set back, is not reported as
// in progress.
func (k known) duplicate() *cardwire.DuplicateIntent {
	switch {
	case !k.exists():
	case k.InProgress:
		return &cardwire.DuplicateIntent{InProgress: true, Remaining: k.SendBy.Sub(k.now)}
	case k.Outcome == cardwire.OutcomeUnknown, k.Outcome == cardwire.OutcomeExecuted, k.Closed:
		return &cardwire.DuplicateIntent{Outcome: k.Outcome, ServiceID: k.ServiceID}
	}
	return nil
}

// mayRepeat reports whether nothing that was sent can still be executed.
func (k known) mayRepeat() bool {
	return k.Outcome != cardwire.OutcomeUnknown || !k.now.Before(k.SettledBy)
}

// isOther reports whether the reference is another request's. One that was voided before
// any request may have none.
func (k known) isOther(body string) bool { return k.BodySHA256 != "" && k.BodySHA256 != body }

const selectEntries = `
SELECT i.id, i.op, i.reference, i.body_sha256, i.summary, i.repeatable, i.state, i.closed, i.proved, i.call, i.calls,
	i.service_id, i.status, i.created_at, i.time, i.send_by, i.settled_by, i.ended_at, j.service, @clock
FROM @intents AS i, @journal AS j WHERE @pinned AND `

// entries reads entries, and none from another journal.
func (t *Tx) entries(ctx context.Context, condition string, args ...any) ([]known, error) {
	entries, err := query(ctx, t, readEntry, selectEntries+condition, args...)
	if err != nil {
		return nil, t.journal.failed("reading the intents", err)
	}
	return entries, nil
}

func readEntry(s scan) (k known, err error) {
	var state string
	err = s(&k.id, &k.Op, &k.Reference, &k.BodySHA256, &k.Summary, &k.Repeatable, &state, &k.Closed, &k.Proved, &k.Call,
		&k.Calls, &k.ServiceID, &k.Status, moment{&k.CreatedAt}, moment{&k.Time}, moment{&k.SendBy},
		moment{&k.SettledBy}, moment{&k.EndedAt}, &k.Service, moment{&k.now})
	if k.now.IsZero() { // SQLite has no clock of its own
		k.now = time.Now()
	}
	k.Outcome, k.Open = outcomeOf(state), state == "open"
	k.InProgress = k.Open && k.now.Before(k.SendBy) && !k.Time.After(k.now)
	return k, err
}

// find returns what is known of a reference. With ErrNoIntent it returns the journal's
// service.
func (t *Tx) find(ctx context.Context, op cardwire.Op, reference string) (k known, err error) {
	if err := t.pin(ctx); err != nil {
		return k, err
	}
	found, err := t.entries(ctx, `i.op = ?1 AND i.reference = ?2`, op, reference)
	switch {
	case err != nil:
		return k, err
	case len(found) > 0:
		return found[0], nil
	}
	_, k.Service, err = t.identify(ctx)
	if err == nil {
		err = ErrNoIntent
	}
	return k, err
}

// findFor is find for an intent, whose service must be the journal's; if the journal has none
// yet, it is recorded. Nothing on record is no error.
func (t *Tx) findFor(ctx context.Context, i cardwire.Intent) (known, error) {
	k, err := t.find(ctx, i.Op, i.Reference)
	switch {
	case err != nil && !errors.Is(err, ErrNoIntent):
		return k, err
	case i.Service == "", i.Service == k.Service:
		return k, nil
	case k.Service != "":
		return k, shows("the journal belongs to the service at " + k.Service + ", and the call is for " + i.Service +
			": check the base URL, and use a separate journal for each service, " +
			"or SetService if the service has moved")
	}
	if _, err := t.exec(ctx, `UPDATE @journal SET service = ?1 WHERE service = ''`, i.Service); err != nil {
		return k, t.journal.failed("recording the service", err)
	}
	return k, errAgain
}

// Lookup returns what is known about a reference, or [ErrNoIntent] if nothing is on record.
func (j *Journal) Lookup(ctx context.Context, op cardwire.Op, reference string) (Entry, error) {
	return j.waiting().Lookup(ctx, op, reference)
}

// Lookup is [Journal.Lookup] in the transaction.
func (t *Tx) Lookup(ctx context.Context, op cardwire.Op, reference string) (Entry, error) {
	k, err := t.find(ctx, op, reference)
	if err != nil {
		return Entry{}, err
	}
	return k.Entry, nil
}

// pageSize is how many entries Unresolved reads at a time.
const pageSize = 500

// Unresolved yields the intents to ask the service about, the oldest first, however many
// there are: those whose outcome is unknown, those that are open after their SendBy, and
// those that began in the future, by a clock that was set back. "Executed" may be recorded at
// once, and "not executed" as of Entry.SettledBy. After an error it yields nothing more. It
// is safe to resolve intents within the loop.
func (j *Journal) Unresolved(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		t, last := j.waiting(), known{}
		if err := t.verify(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		for {
			page, err := t.entries(ctx, `i.state IN ('open', 'unknown') AND (i.time, i.id) > (?1, ?2)
ORDER BY i.time, i.id LIMIT `+strconv.Itoa(pageSize), j.dialect.moment(last.Time), last.id)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, k := range page {
				if !k.InProgress && !yield(k.Entry, nil) {
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

// Event is something that happened to a reference.
type Event struct {
	// Time is when, in UTC; see [Entry].
	Time time.Time
	// Kind is "begun"; "ended", a call reported its result; "resolved"; "voided"; "pending",
	// according to a statement; or "contradicted", a call reported a result that differs from
	// the record: see [ErrContradiction].
	Kind string
	// Call is the call that the event is about, as in cardwire.Intent.
	Call string
	// Outcome is what was recorded.
	Outcome cardwire.Outcome
	// ServiceID is the service's identifier of what was executed; "": none.
	ServiceID string
	// By is who resolved or voided it; "": a call did.
	By string
	// Note is the reason: a person's, or why a call did not succeed; "": none.
	Note string
}

// History returns what happened to a reference, the oldest first. It returns
// [ErrNoIntent] if nothing did.
func (j *Journal) History(ctx context.Context, op cardwire.Op, reference string) ([]Event, error) {
	return j.waiting().History(ctx, op, reference)
}

// History is [Journal.History] in the transaction.
func (t *Tx) History(ctx context.Context, op cardwire.Op, reference string) (events []Event, err error) {
	k, err := t.find(ctx, op, reference)
	if err != nil {
		return nil, err
	}
	events, err = query(ctx, t, readEvent, `
SELECT time, kind, call, state, service_id, by, note FROM @history WHERE intent = ?1 ORDER BY number`, k.id)
	if err != nil {
		return nil, t.journal.failed("reading the history", err)
	}
	return events, nil
}

func readEvent(s scan) (e Event, err error) {
	var state string
	err = s(moment{&e.Time}, &e.Kind, &e.Call, &state, &e.ServiceID, &e.By, &e.Note)
	e.Outcome = outcomeOf(state)
	return e, err
}

// Stats has the numbers to monitor.
type Stats struct {
	// InProgress is the number of intents with calls that may still send.
	InProgress int64
	// Unresolved is the number of intents that [Journal.Unresolved] yields.
	Unresolved int64
	// OldestUnresolved is when the oldest of those was begun, in UTC; zero: there is none.
	OldestUnresolved time.Time
}

// isUnresolved is the condition of Unresolved. PostgreSQL's clock is later than all that
// the statement can see.
const isUnresolved = `i.state = 'unknown' OR i.send_by <= @now OR i.time > coalesce(@clock, @now)`

// Stats counts the intents in progress and unresolved. Its cost grows with their number.
func (j *Journal) Stats(ctx context.Context) (s Stats, err error) {
	t := j.waiting()
	if err := t.verify(ctx); err != nil {
		return s, err // an empty result from another journal would be misleading
	}
	err = t.queryRow(ctx, []any{&s.InProgress, &s.Unresolved, moment{&s.OldestUnresolved}}, `
SELECT count(*) - count(CASE WHEN `+isUnresolved+` THEN 1 END), count(CASE WHEN `+isUnresolved+` THEN 1 END),
	min(CASE WHEN `+isUnresolved+` THEN i.time END)
FROM @intents AS i WHERE i.state IN ('open', 'unknown')`)
	if err != nil {
		return Stats{}, j.failed("counting the intents", err)
	}
	return s, nil
}
