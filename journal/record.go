package journal

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
)

// Record is what is known of a reference, for authors of a [cardwire.Journal]; its zero value is nothing.
// Its methods are the rules of the journal and of [Resolution]: each returns the record to store, also
// with an error, and what the caller is told. Times and now are by the journal's clock.
type Record struct {
	cardwire.Intent                  // the call on record: the last one, or the executed one; Call is "" if none began
	Outcome         cardwire.Outcome // OutcomeUnknown also while the call is open
	Open            bool             // the call has not ended
	Closed          bool             // it was closed once, and is never begun again: see IsClosed
	Proved          bool             // a response, not a person, says that it was executed
	Reserved        bool             // only BodySHA256 may be sent
	ServiceID       string           // of what was executed; "": unknown
	Status          string           // the service's own; "": none
	EndedAt         time.Time        // when Outcome was last recorded; zero: not since the call began
	Era             int64            // of the journal when the record was new, a call began or a person resolved it
}

// Hold keeps a journal that may have forgotten calls from beginning any, and from closing what it may have forgotten. It
// begins an era: what was free before may have been begun by a call that is forgotten.
type Hold struct {
	Since time.Time // when it was last put on hold; zero: never
	Floor time.Time // when every forgotten call is settled: no denial as of an earlier time is believed
	By    string    // who put it on hold; "": it is not on hold, and the Floor is that of the last time
	Why   string    // the reason, in words
	Moved string    // how the database differs from the one on record, where nobody decides anything; "": it does not
	Era   int64     // what is free and of an earlier one is unknown, also when the journal is no longer on hold
}

// ErrOnHold means that nothing is begun, voided or denied now, because the journal is on hold: see [Hold].
var ErrOnHold = errors.New("cardwire: the journal is on hold")

// Settled returns nil from the floor on. Before it, and in another database than is on record, it returns an [ErrOnHold]:
// nothing can be voided, denied or released, since a call that is forgotten may be executed.
func (h Hold) Settled(now time.Time) error {
	switch {
	case h.Moved != "":
		return safe("cardwire: the journal is on hold, and in another database than is on record: "+h.Moved+": call Moved "+
			"after a planned move of a journal that was not released where it came from, or Hold again", ErrOnHold)
	case now.Before(h.Floor):
		return safe("cardwire: the journal is on hold, or was, and a call that it has forgotten may be executed until "+
			h.Floor.UTC().Format(time.RFC3339Nano)+": ask the service again then", ErrOnHold)
	}
	return nil
}

func (h Hold) refusal() error {
	return safe("cardwire: the journal is on hold since "+h.Since.UTC().Format(time.RFC3339)+
		": nothing is sent or closed until it is released", ErrOnHold)
}

// isUndone reports whether nothing was executed.
func isUndone(o cardwire.Outcome) bool {
	return o == cardwire.OutcomeNotSent || o == cardwire.OutcomeRefused
}

// In returns what the record says in the era of a hold: what was free in an earlier one is unknown.
func (r Record) In(h Hold) Record {
	if r.isFree() && r.Era < h.Era {
		r.Outcome = cardwire.OutcomeUnknown
	}
	return r
}

// Exists reports whether anything is on record.
func (r Record) Exists() bool { return r.Reference != "" }

// IsUnresolved reports whether the outcome is unknown, or the call is open.
func (r Record) IsUnresolved() bool { return r.Exists() && r.Outcome == cardwire.OutcomeUnknown }

// IsClosed reports whether nothing happened, and nothing ever will.
func (r Record) IsClosed() bool { return r.Closed && isUndone(r.Outcome) }

// isFree reports whether nothing happened, and a call may begin.
func (r Record) isFree() bool { return isUndone(r.Outcome) && !r.Closed }

// InProgress reports whether the call may still send: it is open until its SendBy, and did not begin in
// the future, by a clock that was ahead.
func (r Record) InProgress(now time.Time) bool {
	return r.Open && now.Before(r.SendBy) && !r.Time.After(now)
}

// Duplicate returns why no call may begin; nil: the reference is new or free.
func (r Record) Duplicate(now time.Time) *cardwire.DuplicateIntent {
	switch {
	case !r.Exists(), r.isFree():
		return nil
	case r.InProgress(now):
		return &cardwire.DuplicateIntent{InProgress: true, Remaining: r.SendBy.Sub(now)}
	}
	return &cardwire.DuplicateIntent{Outcome: r.Outcome, ServiceID: r.ServiceID}
}

// isOther reports whether the record is of another body than the intent. What a person or a statement recorded
// may have none: it is then of another one if its money differs where both are known.
func (r Record) isOther(i cardwire.Intent) bool {
	if r.BodySHA256 != "" {
		return r.BodySHA256 != i.BodySHA256
	}
	return !r.Amount.IsZero() && !i.Amount.IsZero() && !r.Amount.Equal(i.Amount) ||
		r.Currency != "" && i.Currency != "" && !strings.EqualFold(r.Currency, i.Currency)
}

// errReservedForAnother is for a reference under which nothing happened: nobody may conclude
// that its order failed.
func errReservedForAnother() error {
	return fmt.Errorf("%w: %w", cardwire.ErrOtherBody, &cardwire.DuplicateIntent{Reserved: true})
}

// Begin is [cardwire.Journal].Begin.
func (r Record) Begin(i cardwire.Intent, h Hold, now time.Time) (Record, error) {
	if r.Open && r.Call == i.Call {
		return r, nil
	}
	d, other := r.In(h).Duplicate(now), r.isOther(i)
	switch {
	case d != nil && other && !r.IsClosed():
		return r, fmt.Errorf("%w: %w", cardwire.ErrOtherBody, d)
	case d != nil:
		return r, d
	case h.By != "":
		return r, h.refusal()
	case other && r.Reserved:
		return r, errReservedForAnother()
	case other:
		return r, cardwire.ErrOtherBody
	}
	i.SettledBy = later(i.SendBy, i.SettledBy)
	return Record{Intent: i, Open: true, Reserved: r.Reserved, Era: h.Era}, nil
}

// Reserve is [Memory.Reserve].
func (r Record) Reserve(i cardwire.Intent, h Hold, now time.Time) (Record, error) {
	d := r.In(h).Duplicate(now)
	switch {
	case i.BodySHA256 == "":
		return r, invalid("BodySHA256 is empty")
	case r.isOther(i) && d != nil:
		return r, fmt.Errorf("%w: %w", cardwire.ErrOtherBody, d)
	case r.isOther(i):
		return r, cardwire.ErrOtherBody
	case !r.Exists():
		r = undone(i, h, now)
	}
	r.Reserved, r.BodySHA256, r.Currency = true, i.BodySHA256, cmp.Or(r.Currency, i.Currency)
	if r.Amount.IsZero() {
		r.Amount = i.Amount
	}
	if d != nil {
		return r, d
	}
	return r, nil
}

// undone is the record of a reference of which no call began.
func undone(i cardwire.Intent, h Hold, now time.Time) Record {
	i.Call, i.Time, i.SendBy, i.SettledBy = "", now, now, now
	return Record{Intent: i, Outcome: cardwire.OutcomeNotSent, EndedAt: now, Era: h.Era}
}

// Void is [cardwire.Journal].Void. Before a hold is settled nothing is closed. From then on, while the journal is
// still on hold, only a person closes anything: an intent without a Call.
func (r Record) Void(i cardwire.Intent, h Hold, now time.Time) (Record, error) {
	d, other, early := r.In(h).Duplicate(now), i.BodySHA256 != "" && r.isOther(i), h.Settled(now)
	switch {
	case r.IsClosed():
		return r, nil
	case d != nil && other && r.Outcome == cardwire.OutcomeExecuted:
		return r, fmt.Errorf("%w: %w", cardwire.ErrOtherBody, d)
	case d != nil:
		return r, d
	case other && r.Reserved:
		return r, errReservedForAnother()
	case early != nil:
		return r, early
	case h.By != "" && i.Call != "":
		return r, h.refusal()
	case !r.Exists():
		r = undone(i, h, now)
	}
	r.Closed, r.EndedAt = true, now
	return r, nil
}

// End is [cardwire.Journal].End, where isDenied says that a person has denied that very call, and isGone that its Begin
// is no longer on record. The intent of a record that was lost is recorded again, with an error.
func (r Record) End(
	i cardwire.Intent, result cardwire.IntentResult, isDenied, isGone bool, h Hold, now time.Time,
) (Record, error) {
	known, proved := r.Exists(), r.Proves(i, result, isGone, h)
	if !known {
		i.SendBy = earlier(i.SendBy, now) // it has ended, and sends nothing more
		r = Record{Intent: i, Open: true, Era: h.Era}
	}
	r, agrees := r.end(i, proved, isDenied, now)
	if known && agrees && proved.Outcome == sound(result).Outcome {
		return r, nil
	}
	if d := r.In(h).Duplicate(now); d != nil {
		found := strings.TrimPrefix(d.Error(), "cardwire: ")
		return r, safe("cardwire: the record contradicts the result: "+found, d)
	}
	return r, safe("cardwire: the record of this reference was changed while the call was in progress", nil)
}

// Proves returns what a result proves. That a call was refused or not sent proves nothing of its reference if the call
// is of an earlier era, or its Begin is gone: others may have been forgotten that began later.
func (r Record) Proves(i cardwire.Intent, result cardwire.IntentResult, isGone bool, h Hold) cardwire.IntentResult {
	if isUndone(result.Outcome) && (isGone || !r.Exists() || r.Call == i.Call && r.Era < h.Era) {
		result.Outcome = cardwire.OutcomeUnknown
	}
	return sound(result)
}

// sound returns a result without contradictions, whatever a caller gives.
func sound(r cardwire.IntentResult) cardwire.IntentResult {
	switch r.Outcome {
	case cardwire.OutcomeExecuted:
		r.Final = false
	case cardwire.OutcomeRefused, cardwire.OutcomeNotSent:
		r.ServiceID = ""
	default:
		r.Outcome, r.ServiceID, r.Final = cardwire.OutcomeUnknown, "", false
	}
	return r
}

// end records a result, and reports whether the record agreed with it, and does now.
func (r Record) end(i cardwire.Intent, result cardwire.IntentResult, isDenied bool, now time.Time) (_ Record, agrees bool) {
	own := r.Call == i.Call
	switch {
	case own && r.Open:
		r.Open, r.Outcome, r.Proved = false, result.Outcome, result.Outcome == cardwire.OutcomeExecuted
		r.Closed = r.Closed || result.Final
		r.ServiceID, r.Status, r.EndedAt = result.ServiceID, result.Status, now
		return r, true
	case result.Outcome == cardwire.OutcomeExecuted:
		return r.endExecuted(i, own, result, now)
	case result.Outcome != cardwire.OutcomeUnknown:
		return r, r.Outcome == result.Outcome && r.IsClosed() == result.Final
	case r.Outcome == cardwire.OutcomeExecuted, isDenied:
		return r, false
	}
	agrees = r.Outcome == cardwire.OutcomeUnknown // otherwise somebody was told that it did not happen
	r.Time = earlier(r.Time, i.Time)
	return r.unknown(i, r.Closed, now), agrees // either call may be executed
}

// endExecuted records that the call i was executed, whatever else is on record, unless that is reserved for another
// body: somebody was paid, and nobody may take that for the order that has the reference now.
func (r Record) endExecuted(i cardwire.Intent, own bool, result cardwire.IntentResult, now time.Time) (_ Record, agrees bool) {
	switch {
	case r.Reserved && r.isOther(i) && r.Outcome == cardwire.OutcomeExecuted:
		return r, false
	case r.Reserved && r.isOther(i):
		return r.unknown(i, true, now), false
	case r.Outcome == cardwire.OutcomeExecuted:
		same := r.ServiceID == result.ServiceID && r.ServiceID != ""
		agrees = same || own && (r.ServiceID == "" || result.ServiceID == "")
		if !r.Proved {
			r.Call = i.Call
		}
		r.Proved = true
		r.ServiceID, r.Status = cmp.Or(r.ServiceID, result.ServiceID), cmp.Or(r.Status, result.Status)
		return r, agrees
	}
	agrees = own && r.Outcome == cardwire.OutcomeUnknown
	r.Intent, r.Proved, r.Status = i, true, result.Status
	return r.executed(result.ServiceID, now), agrees
}

// unknown is the record of a reference under which the call i may be executed too.
func (r Record) unknown(i cardwire.Intent, closes bool, now time.Time) Record {
	r.Open, r.Outcome, r.Closed, r.EndedAt = false, cardwire.OutcomeUnknown, closes, now
	r.SettledBy = later(r.SettledBy, i.SettledBy)
	return r
}

// executed is the record of what was executed: whatever else is on record no longer counts.
func (r Record) executed(serviceID string, now time.Time) Record {
	r.Open, r.Outcome, r.ServiceID, r.EndedAt = false, cardwire.OutcomeExecuted, serviceID, now
	return r
}

// Resolve records what a person found out about the call i.Call. other is another reference that
// was executed as found.ServiceID; "": none.
func (r Record) Resolve(i cardwire.Intent, found Resolution, other string, h Hold, now time.Time) (Record, error) {
	closes := found.Outcome == cardwire.OutcomeRefused
	switch {
	case !r.Exists():
		return r, fmt.Errorf("cardwire: nothing is on record for %s %s", i.Op, i.Reference)
	case found.Outcome == cardwire.OutcomeExecuted:
		next, err := r.confirm(i.Call, found.ServiceID, other, now)
		if next != r {
			next.Era = h.Era
		}
		return next, err
	case r.IsClosed() && closes, r.In(h).isFree() && !closes && !found.AsOf.Before(h.Floor) && !found.AsOf.After(now):
		return r, nil
	case i.Call != r.Call:
		return r, errOtherCall
	case r.Closed && !closes:
		return r, errors.New("cardwire: the reference was closed: record it as refused, or as executed")
	case r.Proved:
		return r, errors.New("cardwire: a response proved that it was executed: this cannot be corrected")
	case r.Outcome == cardwire.OutcomeExecuted && !closes:
		return r, errors.New("cardwire: it was recorded as executed: record it as refused, and give the order a new number")
	}
	if err := r.In(h).tooEarly(found.AsOf, h, now); err != nil {
		return r, err
	}
	r.Open, r.Outcome, r.ServiceID, r.EndedAt, r.Era = false, found.Outcome, "", now, h.Era
	r.Closed = r.Closed || closes
	return r, nil
}

var errOtherCall = errors.New("cardwire: another call is on record under this reference: read it again")

// DenyFrom is when the service may be asked at the earliest by a person who then records that it was not executed.
func (r Record) DenyFrom(h Hold) time.Time {
	from := h.Floor
	if !isUndone(r.Outcome) {
		from = later(from, r.SettledBy)
	}
	if r.Outcome == cardwire.OutcomeExecuted {
		from = later(from, r.EndedAt)
	}
	return from
}

// tooEarly returns why what the service said at asOf proves nothing; nil: it does.
func (r Record) tooEarly(asOf time.Time, h Hold, now time.Time) error {
	from := r.DenyFrom(h)
	early := asOf.Before(from) || now.Before(from) // also by the monotonic clock, which nobody can set
	at := from.UTC().Format(time.RFC3339Nano)      // a second that is cut off is one too early
	switch {
	case h.Moved != "", early && from.Equal(h.Floor):
		return h.Settled(earlier(asOf, now))
	case early && r.Outcome == cardwire.OutcomeExecuted && from.Equal(r.EndedAt):
		return fmt.Errorf("cardwire: a person recorded it as executed at %s: ask the service again", at)
	case early && r.Time.Round(0).After(now): // by the wall clock
		return errors.New("cardwire: the clock was ahead when the call began, and so are its times on record: " +
			"until then it can only be resolved as executed")
	case early:
		return fmt.Errorf("cardwire: the service may still execute it until %s: ask again then", at)
	case asOf.After(now):
		return errors.New("cardwire: AsOf is in the future by the journal's clock: " +
			"check the clock of this machine, and ask the service again")
	}
	return nil
}

func (r Record) confirm(call, serviceID, other string, now time.Time) (Record, error) {
	switch {
	case r.Proved && r.Outcome == cardwire.OutcomeExecuted && serviceID == "" && call != "" && call != r.Call:
		return r, errOtherCall // it was executed twice
	case r.Outcome == cardwire.OutcomeExecuted && (serviceID == "" || serviceID == r.ServiceID):
		return r, nil
	case r.Proved && r.ServiceID != "":
		return r, errors.New("cardwire: a response proved that it was executed as " + r.ServiceID +
			": this cannot be corrected")
	case other != "":
		return r, errOfAnother(other)
	}
	if r.Open { // the other call has its own end to tell
		r.Call = cmp.Or(call, r.Call)
	}
	return r.executed(cmp.Or(serviceID, r.ServiceID), now), nil
}

func errOfAnother(reference string) error {
	return fmt.Errorf("cardwire: the service ID belongs to reference %s: correct the one that is wrong", reference)
}

// Listed records what a statement lists. OutcomeExecuted is recorded of anything. OutcomeUnknown, of a line that is
// pending or of another amount, makes what is new or free, in any era, unknown and closed, so that it is never sent. i has
// the time of the line, and as its SettledBy now plus the longest life of any call. If another reference, other, was
// executed with the line's ServiceID, what is new, free or closed is recorded without it, and anything else is an error.
func (r Record) Listed(
	i cardwire.Intent, result cardwire.IntentResult, other string, h Hold, now time.Time,
) (Record, error) {
	result = sound(result)
	isExecuted, wasUndone := result.Outcome == cardwire.OutcomeExecuted, !r.Exists() || isUndone(r.Outcome)
	switch d := r.Duplicate(now); {
	case !isExecuted && result.Outcome != cardwire.OutcomeUnknown:
		return r, invalid("a statement proves only that something was executed, or is under way")
	case r.InProgress(now):
		return r, d
	case !isExecuted && !wasUndone:
		return r, nil
	case r.Outcome == cardwire.OutcomeExecuted && (result.ServiceID == "" || result.ServiceID == r.ServiceID):
		return r, nil
	case r.Outcome == cardwire.OutcomeExecuted && r.ServiceID != "":
		return r, d
	case other != "" && !wasUndone:
		return r, errOfAnother(other)
	}
	began, isNew := i.Time, !r.Exists()
	if isNew {
		r = undone(i, h, now)
	}
	if (isNew || !isExecuted) && !began.IsZero() {
		r.Time = earlier(r.Time, began)
	}
	switch {
	case !isExecuted:
		return r.unknown(i, true, now), nil
	case other != "":
		result.ServiceID = ""
	}
	return r.executed(result.ServiceID, now), nil
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Resolution is what a person found out about the call Intent.Call.
//
// OutcomeExecuted is accepted at any time and for any call. OutcomeRefused, which closes the reference, and OutcomeNotSent,
// which frees it, are accepted only for the call on record, and only with an AsOf at or after
// [Record.DenyFrom]: what the service said earlier proves nothing. What a person recorded can be
// corrected by who asked the service later; but what was closed once or executed is never freed, and what a
// response proved cannot be corrected. Repeating a record is no error.
type Resolution struct {
	Outcome cardwire.Outcome // OutcomeExecuted, OutcomeRefused or OutcomeNotSent
	// ServiceID is the service's identifier of what it executed, of at most 128 visible
	// bytes; "": not known. One that belongs to another reference is refused.
	ServiceID string
	By        string // who found it out. It must not be empty.
	Note      string // why, in words; "": none
	// AsOf is when the service was asked, by the journal's clock, and not in the future. Only
	// OutcomeExecuted may leave it zero.
	AsOf time.Time
}

// Validate returns a [cardwire.ErrInvalidParams] for what no journal may record.
func (r Resolution) Validate() error {
	switch err := checked(check.Given("By", r.By), check.Note("Note", r.Note), check.Visible("ServiceID", r.ServiceID)); {
	case err != nil:
		return err
	case r.Outcome != cardwire.OutcomeExecuted && r.Outcome != cardwire.OutcomeRefused && r.Outcome != cardwire.OutcomeNotSent:
		return invalid("Outcome must be executed, refused or not sent: leave the call unresolved until one is known")
	case r.Outcome == cardwire.OutcomeExecuted:
		return nil
	case r.ServiceID != "":
		return invalid("ServiceID is only for what was executed")
	case r.AsOf.IsZero():
		return invalid("AsOf is missing: set it to when the service was asked")
	}
	return nil
}

// BelongsTo returns an error if the intent is not for a journal of that service and account: the
// first that Begin or Reserve was given, with a Service.
func BelongsTo(i cardwire.Intent, service, account string) error {
	switch {
	case i.Service == "", service == "", i.Service == service && i.Account == account:
		return nil
	case i.Service != service:
		return safe("cardwire: the journal belongs to the service at "+service+", and the call is for "+i.Service+
			": check the base URL, and use a separate journal for each service", cardwire.ErrSetup)
	}
	return safe(fmt.Sprintf("cardwire: the journal belongs to the account %q, and the call is for %q"+
		": check WithAccount, and use a separate journal for each account", account, i.Account), cardwire.ErrSetup)
}

func invalid(detail string) error { return fmt.Errorf("%w: %s", cardwire.ErrInvalidParams, detail) }

// checked returns the first error as an invalid parameter, or nil.
func checked(errs ...error) error {
	if err := cmp.Or(errs...); err != nil {
		return invalid(err.Error())
	}
	return nil
}

// safeError is an error whose message a client shows: see [cardwire.Journal].
type safeError struct {
	message string
	wrapped error
}

func safe(message string, wrapped error) error { return &safeError{message, wrapped} }

func (e *safeError) Error() string       { return e.message }
func (e *safeError) Unwrap() error       { return e.wrapped }
func (e *safeError) SafeMessage() string { return e.message }
