package sqljournal

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/journal"
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
	// Open reports whether no result is on record: the call is in progress, its process has
	// died, or its result could not be recorded yet.
	Open bool
	// InProgress reports whether the call may still send: it is open, and its SendBy has not
	// passed.
	InProgress bool
	// Closed reports whether nothing happened, and the reference is never begun again.
	Closed bool
	// Proved reports whether a response, and not a person, says that it was executed.
	Proved bool
	// Reserved reports whether the reference may only be sent with BodySHA256.
	Reserved bool
	// Calls is how many calls were begun; 0: it was reserved or voided before any.
	Calls int
	// ServiceID is the service's identifier of what was executed; "": not known.
	ServiceID string
	// Status is the service's own, as in cardwire.IntentResult; "": none.
	Status string
	// CreatedAt is when the reference was first begun, reserved or voided.
	CreatedAt time.Time
	// EndedAt is when a result was last recorded; zero: none since the call began.
	EndedAt time.Time

	wasFree bool // before a hold: Outcome is unknown for that alone
}

// equal reports whether two entries say the same: an amount has no ==.
func (e Entry) equal(other Entry) bool {
	same := e.Amount.Equal(other.Amount)
	e.Amount, other.Amount = decimal.Decimal{}, decimal.Decimal{}
	return same && e == other
}

// known is what the database has of a reference, and of the journal.
type known struct {
	Entry
	row       journal.Record // what the row says, of whichever era; if there is none, the journal's service and account
	identity  string         // of the journal, where that was asked
	hold      journal.Hold
	era       int64     // how often the journal was put on hold, and one
	back      int64     // what Moved sets the hold's Era back to; 0: there is no planned move
	was, is   where     // the database that the journal was in when that was recorded, and the one that it is in
	isDerived bool      // the hold follows from where it is, and is not on record
	isBack    bool      // this Journal has seen a later timeline
	longest   int64     // the longest life of an intent, in microseconds
	now       time.Time // when it was read, by the journal's clock
	asked     time.Time // a moment before, by this machine's; zero: they are the same
}

// life is the longest time that the journal has seen from the start of a call to its SettledBy. A journal in which
// none began may be the new one of clients that have lost theirs: it is then that of a client with the default settings.
func (k known) life() time.Duration {
	if k.longest == 0 {
		return check.DefaultTimeout + check.DefaultLateExecution
	}
	return time.Duration(k.longest) * time.Microsecond
}

// here returns an intent of a client with its times by the journal's clock.
func (k known) here(i cardwire.Intent) cardwire.Intent {
	for _, t := range []*time.Time{&i.Time, &i.SendBy, &i.SettledBy} {
		switch {
		case t.IsZero():
			*t = k.now
		case k.asked.IsZero():
			*t = t.UTC().Truncate(time.Microsecond)
		default:
			*t = k.now.Add(t.Sub(k.asked)).Truncate(time.Microsecond)
		}
	}
	return i
}

const selectEntries = `
SELECT i.op, i.reference, i.body_sha256, i.amount, i.currency, i.state, i.closed, i.proved, i.reserved, i.call,
	i.calls, i.service_id, i.status, i.created_at, i.time, i.send_by, i.settled_by, i.ended_at, i.era, ` + journalColumns + `
FROM @intents AS i, @journal AS j WHERE @pinned AND `

const journalColumns = `
	j.service, j.account, j.longest, j.held_at, j.floor, j.held_by, j.held_why, j.era, j.oldest, j.back, @was, @is, @clock`

func (k *known) ofJournal() []any {
	return slices.Concat([]any{
		&k.row.Service, &k.row.Account, &k.longest,
		database.Moment(&k.hold.Since),
		database.Moment(&k.hold.Floor),
		&k.hold.By, &k.hold.Why, &k.era, &k.hold.Era, &k.back,
	}, k.was.scan(), k.is.scan(), []any{database.Moment(&k.now)})
}

// entries reads entries, and none from another journal.
func (t *Tx) entries(ctx context.Context, condition string, args ...any) ([]known, error) {
	asked := time.Now()
	entries, err := query(ctx, t, readEntry, selectEntries+condition, args...)
	for n := range entries {
		entries[n].asked = asked
		entries[n].timed(t.journal)
	}
	return entries, t.journal.failed("reading the intents", err)
}

func readEntry(s scan) (k known, err error) {
	var state, amount string
	r := &k.row
	err = s(append([]any{
		&r.Op, &r.Reference, &r.BodySHA256, &amount, &r.Currency, &state, &r.Closed, &r.Proved, &r.Reserved,
		&r.Call, &k.Calls, &r.ServiceID, &r.Status,
		database.Moment(&k.CreatedAt),
		database.Moment(&r.Time),
		database.Moment(&r.SendBy),
		database.Moment(&r.SettledBy),
		database.Moment(&r.EndedAt),
		&r.Era,
	}, k.ofJournal()...)...)
	r.Outcome, r.Open = outcomeOf(state), state == "open"
	if err == nil && amount != "" {
		r.Amount, err = decimal.NewFromString(amount)
	}
	return k, err
}

// timed completes what depends on the time, and on where the journal is.
func (k *known) timed(j *Journal) {
	if k.now.IsZero() { // SQLite has no clock of its own
		k.now, k.asked = time.Now().UTC().Truncate(time.Microsecond), time.Time{}
	}
	j.sight.look(k, j.isSynchronous)
	r := k.row.In(k.hold)
	k.Entry = Entry{
		Intent: r.Intent, Outcome: r.Outcome, Open: r.Open, InProgress: r.InProgress(k.now), Closed: r.IsClosed(),
		Proved: r.Proved, Reserved: r.Reserved, Calls: k.Calls, ServiceID: r.ServiceID, Status: r.Status,
		CreatedAt: k.CreatedAt, EndedAt: r.EndedAt, wasFree: r.Outcome != k.row.Outcome,
	}
}

// find returns what is known of a reference, or of the journal alone. With "@locked" as locked it locks the row.
func (t *Tx) find(ctx context.Context, op cardwire.Op, reference, locked string) (known, error) {
	if err := t.pin(ctx); err != nil {
		return known{}, err
	}
	found, err := t.entries(ctx, `i.op = ?1 AND i.reference = ?2 `+locked, op, reference)
	if err != nil || len(found) > 0 {
		return append(found, known{})[0], err
	}
	return t.identify(ctx)
}

// Lookup returns what is known about a reference, or [ErrNoIntent] if nothing is on record.
func (j *Journal) Lookup(ctx context.Context, op cardwire.Op, reference string) (Entry, error) {
	if err := j.flush(ctx, cardwire.Intent{Op: op, Reference: reference}); err != nil {
		return Entry{}, err
	}
	return j.waiting().Lookup(ctx, op, reference)
}

// Lookup is [Journal.Lookup] in the transaction.
func (t *Tx) Lookup(ctx context.Context, op cardwire.Op, reference string) (Entry, error) {
	k, err := t.find(ctx, op, reference, "")
	if err == nil && !k.row.Exists() {
		k, err = known{}, cmp.Or(t.refusesOp(ctx, op), ErrNoIntent)
	}
	return k.Entry, err
}

// pageSize is how many entries Unresolved reads at a time.
const pageSize = 500

// Unresolved yields the intents to ask the service about, the oldest first, however many
// there are: those whose outcome is unknown, also because they were free before a hold, those that are open after their
// SendBy, and those that began in the future, by a clock that was set back. "Executed" may be recorded at
// once, and "not executed" as of Entry.SettledBy. After an error it yields nothing more. It
// is safe to resolve intents within the loop.
func (j *Journal) Unresolved(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		t, last := j.waiting(), known{Entry: Entry{Intent: cardwire.Intent{Time: time.Unix(0, 0)}}}
		if err := t.verify(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		for {
			page, err := t.entries(ctx, `(`+mayBeUnresolved+`) AND (i.state IN ('open', 'unknown') OR i.era < @oldest)
	AND (i.time, i.reference, i.op) > (?1, ?2, ?3)
ORDER BY i.time, i.reference, i.op LIMIT `+strconv.Itoa(pageSize), j.dialect.moment(last.Time), last.Reference, last.Op)
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
	// Kind is "begun"; "ended", a call reported its result; "resolved"; "reserved"; "voided"; "pending",
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
	if err := j.flush(ctx, cardwire.Intent{Op: op, Reference: reference}); err != nil {
		return nil, err
	}
	return j.waiting().History(ctx, op, reference)
}

// History is [Journal.History] in the transaction.
func (t *Tx) History(ctx context.Context, op cardwire.Op, reference string) (events []Event, err error) {
	if _, err := t.Lookup(ctx, op, reference); err != nil {
		return nil, err
	}
	events, err = query(ctx, t, readEvent, `
SELECT time, kind, call, state, service_id, by, note FROM @history WHERE op = ?1 AND reference = ?2 ORDER BY number`,
		op, reference)
	return events, t.journal.failed("reading the history", err)
}

func readEvent(s scan) (e Event, err error) {
	var state string
	err = s(database.Moment(&e.Time), &e.Kind, &e.Call, &state, &e.ServiceID, &e.By, &e.Note)
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

const (
	// isFree is the condition that nothing happened and nothing keeps a call from beginning, but for an era that is over.
	isFree = `i.state IN ('refused', 'not_sent') AND NOT i.closed`

	// mayBeUnresolved is what the index of unresolved intents has.
	mayBeUnresolved = `i.state IN ('open', 'unknown') OR ` + isFree

	// isUnresolved is the condition of Unresolved for one of these.
	isUnresolved = `CASE i.state WHEN 'unknown' THEN TRUE WHEN 'open' THEN NOT ` + database.InProgress + ` ELSE i.era < @oldest END`
)

// Stats counts the intents in progress and unresolved. Its cost grows with their number, and that of the free ones.
func (j *Journal) Stats(ctx context.Context) (s Stats, err error) {
	t := j.waiting()
	if err := t.verify(ctx); err != nil {
		return s, err // an empty result from another journal would be misleading
	}
	err = t.queryRow(ctx, []any{&s.InProgress, &s.Unresolved, database.Moment(&s.OldestUnresolved)}, `
SELECT count(CASE WHEN i.state = 'open' AND NOT u THEN 1 END), count(CASE WHEN u THEN 1 END), min(CASE WHEN u THEN i.time END)
FROM (SELECT i.state, i.time, `+isUnresolved+` AS u FROM @intents AS i, @journal AS j WHERE `+mayBeUnresolved+`) AS i`)
	return s, j.failed("counting the intents", err)
}
