package cardwire

import (
	"crypto/tls"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// facts are what the transport and the reader found out about a call.
type facts struct {
	fate       fate
	cause      error // why it is no success, where that is known before the rules
	resent     bool  // more than one request was written for one attempt
	status     int
	read       bool // the body is an object with a code
	bare       bool // the body is certainly no envelope
	hasMessage bool
	loose      bool // the code is no integer, or bytes were replaced: a refusal is not believed
	code       int
	message    string
	data       evidence
	referenced bool     // the operation is a write with a reference
	explains   bool     // a refusal of it is believed only if it says why
	ofRecord   bool     // it names a record, which may be missing
	texts      []string // every string value of a refusal of what is referenced
	own        []string // those of the request
}

// fate is what became of the request.
type fate uint8

const (
	responded fate = iota // there is a response to it
	unsent                // nothing was sent
	lost                  // there is no response that could be read
	elsewhere             // the response is a redirect, or to another request
)

type evidence uint8

const (
	proofless  evidence = iota // it is absent, of another kind, or without an identifier
	thisOrder                  // it names this operation, but is otherwise unreadable
	readable                   // it is what the operation returns, of this operation
	otherOrder                 // it names another order
)

// judge returns whether the call happened, the row of the table that says so, and why that is
// not a success; nil with OutcomeExecuted: it is a success. The first row that applies counts;
// docs/outcomes.md has the same rows.
func judge(p *Profile, f *facts) (outcome Outcome, row string, cause error) {
	done, sentTwice := f.reportsSuccess(), f.resent && !f.isSuccess()
	identified := done && f.data == thisOrder && !f.contradicted()
	var s said
	if f.read && f.explains && !done {
		s = p.read(f.texts, f.own, f.ofRecord)
	}
	exists := !done && f.exists(p, s)
	byCode := f.refuses() && f.status/100 == 2 && slices.Contains(p.RefusedCodes, f.code)
	byStatus := f.refuses() && slices.Contains(p.RefusedStatuses, f.status) && f.code/100 != 5 && f.code != codeSuccess
	silent := (byCode || byStatus) && f.lacksReason(p, s)
	bare := f.bare && (slices.Contains(p.BareRefusedStatuses, f.status) || !f.referenced && f.status == http.StatusNotFound)
	for _, r := range []struct {
		applies bool
		outcome Outcome
		known   string
	}{
		{f.fate == unsent, OutcomeNotSent, "nothing was sent"},
		{sentTwice, OutcomeUnknown, "one attempt wrote more than one request, and the last response is not a success"},
		{f.fate == lost, OutcomeUnknown, "sent, and no readable response: reset, end, timeout, cancellation, or too large"},
		{f.fate == elsewhere, OutcomeUnknown, "a redirect, which is never followed, or a response to another request"},
		{f.isSuccess(), OutcomeExecuted, "2xx, code 200, data that is readable and of this operation"},
		{done && f.data == otherOrder, OutcomeUnknown, "2xx, code 200, data that names another order"},
		{identified, OutcomeExecuted, "2xx, code 200, a success message or none, data unreadable except for " +
			"the identifier or our reference"},
		{done, OutcomeUnknown, "2xx, code 200, other data"},
		{exists, OutcomeUnknown, "a code or a string that is the reference or says that it exists, or data that names " +
			"this order"},
		{silent, OutcomeUnknown, "a refusal with 400, 404 or 422 that gives no reason, or says that something else failed"},
		{byCode, OutcomeRefused, "2xx, a refusal whose code is in RefusedCodes"},
		{byStatus, OutcomeRefused, "4xx in RefusedStatuses, a refusal whose code is not 200 and not 500 to 599"},
		{bare, OutcomeRefused, "4xx in BareRefusedStatuses, a body that is certainly no envelope"},
		{true, OutcomeUnknown, "anything else"},
	} {
		if r.applies {
			outcome, row = r.outcome, r.known
			break
		}
	}
	switch {
	case f.resent && outcome == OutcomeUnknown:
		return outcome, row, resent(f.cause)
	case silent && outcome == OutcomeUnknown && !exists:
		return outcome, row, wire.ErrNoReason
	}
	return outcome, row, f.cause
}

// resent returns the cause of a call whose Doer sent the request again by itself. why is the
// cause of the last response; nil: it has none.
func resent(why error) error {
	if why == nil {
		return errors.New(sentAgain)
	}
	return detailed(why, sentAgain)
}

const sentAgain = "the HTTP client sent the request more than once: see WithHTTPClient"

func (f *facts) hasSuccessCode() bool { return f.status/100 == 2 && f.code == codeSuccess }

// reportsSuccess reports whether the body could be read, and is that of a success.
func (f *facts) reportsSuccess() bool { return f.read && f.hasSuccessCode() }

func (f *facts) isSuccess() bool { return f.reportsSuccess() && f.data == readable }

// refuses reports whether the body is a refusal: a strict envelope without a success message.
func (f *facts) refuses() bool {
	return f.read && !f.loose && f.hasMessage && !isSuccessMessage(f.message)
}

// contradicted reports whether the message contradicts the code of a success.
func (f *facts) contradicted() bool { return f.message != "" && !isSuccessMessage(f.message) }

// said is what the strings of a refusal say, by the list of phrases and those of a profile.
type said struct {
	wire.Said
	known bool // a phrase of RefusedMessages
}

// read returns what texts say. Nothing is a reason that the request itself contains, whose values own are.
func (p *Profile) read(texts, own []string, ofRecord bool) (all said) {
	var reasons wire.Said
	own = wire.Own(own)
	for _, text := range texts {
		words := wire.Words(text)
		others := wire.Without(words, own)
		all.Read(words)
		reasons.Read(others)
		all.Exists = all.Exists || hasPhrase(words, p.DuplicateMessages)
		all.known = all.known || hasPhrase(others, p.RefusedMessages)
	}
	all.Exists = all.Exists || all.Record && !ofRecord
	all.Reason = reasons.Reason || reasons.Record && ofRecord
	return all
}

func hasPhrase(words string, phrases []string) bool {
	letters := strings.ReplaceAll(words, " ", "")
	return slices.ContainsFunc(phrases, func(p string) bool { return strings.Contains(letters, wire.Letters(p)) })
}

// exists reports whether the response may be to a second delivery of a request that was
// executed: a gateway may have sent it twice.
func (f *facts) exists(p *Profile, s said) bool {
	return f.read && (slices.Contains(p.DuplicateCodes, f.code) || f.referenced && (f.data == thisOrder || s.Exists))
}

// lacksReason reports whether a refusal, which would end the order or free it, does not say why. A 4xx
// status decides which number counts, else the code.
func (f *facts) lacksReason(p *Profile, s said) bool {
	number := f.code
	if f.status/100 == 4 {
		number = f.status
	}
	of := func(number int) int {
		return slices.IndexFunc(refusals, func(r refusal) bool { return r.number == number })
	}
	i := of(number)
	known := s.known || slices.Contains(p.RefusedCodes, f.code) && of(f.code) < 0
	return f.explains && i >= 0 && refusals[i].explains && !known && (s.Trouble || !s.Reason)
}

// isSuccessMessage reports whether a message is that of a success, in any letter case. A missing one is not.
func isSuccessMessage(message string) bool {
	message = strings.TrimSpace(message)
	return strings.EqualFold(message, messageSuccess) || strings.EqualFold(message, messageUploaded)
}

type refusal struct {
	number   int
	bare     bool  // it refuses also without an envelope
	explains bool  // it refuses a write only if it says why
	write    Step  // after a write: StepRetry if it may be about the URL, the key or the rate
	read     Step  // after a read or an upload
	means    error // the sentinel of the number; nil: none
}

// refusals are the numbers that refuse, as HTTP statuses and as codes. Of reads and uploads,
// only these are refused for good.
var refusals = []refusal{
	{number: http.StatusBadRequest, explains: true, write: StepFail, read: StepFail},
	{number: http.StatusUnauthorized, bare: true, write: StepRetry, read: StepRetry, means: ErrUnauthorized},
	{number: http.StatusForbidden, write: StepRetry, read: StepRetry},
	{number: http.StatusNotFound, explains: true, write: StepFail, read: StepFail, means: ErrNotFound},
	{number: http.StatusMethodNotAllowed, bare: true, write: StepRetry, read: StepFail},
	{number: http.StatusRequestEntityTooLarge, bare: true, write: StepRetry, read: StepFail},
	{number: http.StatusUnsupportedMediaType, write: StepRetry, read: StepFail},
	{number: http.StatusUnprocessableEntity, explains: true, write: StepFail, read: StepFail},
	{number: http.StatusTooManyRequests, bare: true, write: StepRetry, read: StepRetry, means: ErrRateLimited},
}

// refusedForGood reports whether the service would refuse the same request again. A refusal
// without an envelope came from something in front of the service.
func (e *Error) refusedForGood() bool {
	harmless := e.isHarmless()
	if e.Outcome != OutcomeRefused || !harmless && (e.isOfURL() || errors.Is(e.Err, ErrUnreadable)) {
		return false
	}
	forGood := !harmless // whatever else the code is
	for _, r := range refusals {
		if !e.has(r.number) && (r.means == nil || !errors.Is(e.Err, r.means)) {
			continue
		}
		if harmless && r.read == StepRetry || !harmless && r.write == StepRetry {
			return false
		}
		forGood = true
	}
	return forGood
}

// decision returns what to do after a call that returned e, and the words for it: the first
// row that applies.
func (e *Error) decision() (Step, string) {
	is := func(target error) bool { return errors.Is(e.Err, target) }
	_, distrusted := errors.AsType[*tls.CertificateVerificationError](e.Err)
	d, isDuplicate := errors.AsType[*DuplicateIntent](e.Err)
	harmless, write := e.isHarmless(), !e.isHarmless()
	invalid, otherBody := is(ErrInvalidParams), is(ErrOtherBody)
	refused, forGood, missing := e.Outcome == OutcomeRefused, e.refusedForGood(), e.has(http.StatusNotFound)
	unread := is(ErrUnreadable) && e.HTTPStatus/100 == 2 // not that of a gateway in trouble
	contested, gone := otherBody && (isDuplicate || e.Outcome != OutcomeNotSent), forGood && missing
	forNow := refused && (write || e.has(http.StatusForbidden) || is(ErrUnreadable))
	ask := e.toAsk()
	unresolved, atURL := write && e.Outcome == OutcomeUnknown, "check that the base URL ends in /api/v1"
	for _, row := range []struct {
		applies bool
		step    Step
		words   string
	}{
		{write && d != nil && d.InProgress, StepWait, "wait for its result"},
		{write && d != nil && d.Reserved, StepReconcile, "send the request that it is reserved for, or use a new reference"},
		{write && contested, StepReconcile, "find out how the other request ended, then use a new reference"},
		{write && isDuplicate && (d == nil || d.Outcome != e.Outcome), StepReconcile, ask}, // they contradict each other
		{write && e.Outcome == OutcomeExecuted, StepDone, "do not send it again"},
		{unresolved && is(wire.ErrNoReason), StepReconcile, ask + "; once support has said what these words mean, " +
			"add them to Profile.RefusedMessages"},
		{unresolved && e.HTTPStatus == http.StatusNotFound && is(ErrUnreadable), StepReconcile, atURL + "; if it does, " + ask},
		{write && e.Outcome != OutcomeNotSent && !refused, StepReconcile, ask},

		// Nothing happened, or nothing that matters.
		{invalid && !e.isRecorded(), StepFail, "correct it before calling again"},
		{invalid, StepFail, "correct it, and use a new reference: this one is closed"},
		{write && otherBody, StepFail, "nothing was executed under it: use a new reference"},
		{write && is(ErrDuplicateIntent), StepFail, "use a new reference for a corrected request"},
		{gone && e.isOfURL(), StepFail, atURL},
		{gone && harmless, StepFail, "check the identifier, and that the base URL ends in /api/v1"},
		{forGood && harmless && e.Op == OpUploadImage, StepFail, "use another image: smaller, or of another type"},
		{forGood && harmless, StepFail, "correct the request before calling again"},
		{forGood && ownOps[e.Op].ofRecord, StepFail, "check the record and its state before calling again"},
		{gone, StepFail, "check the identifiers, and that the base URL ends in /api/v1, then use a new reference"},
		{forGood, StepFail, "use a new reference for a corrected request"},

		{is(ErrParameterIgnored), StepRetry, "correct that field, or omit the parameter"},
		{is(ErrSetup), StepRetry, "correct it, then call again"},
		{is(ErrUnreadable) && e.Outcome == OutcomeNotSent && e.Reference == "", StepFail, "correct it before calling again"}, // of UnmarshalJSON
		{is(ErrElements), StepRetry, "report it to the service; the others were returned"},
		{is(ErrResponseTooLarge), StepRetry, "raise WithMaxResponseBytes, or ask for smaller pages"},
		{is(ErrRedirect), StepRetry, "correct the base URL before calling again"},
		{unread && e.codeSent, StepRetry, "report it to the service: calling again may not help"},
		{unread, StepRetry, "find out what sent that: calling again may not help"},
		{e.has(http.StatusUnauthorized), StepRetry, "check the API key, then call again"},
		{e.RetryAfter > 0, StepRetry, "wait " + e.RetryAfter.String() + ", then call again"},
		{e.has(http.StatusTooManyRequests), StepRetry, "wait, then call again"},
		{refused && e.isOfURL(), StepRetry, atURL + ", then call again"},
		{forNow, StepRetry, "check the base URL, the key and its permissions, then call again"},
		{distrusted || is(errExplained), StepRetry, "call again once that is corrected"},
	} {
		if row.applies {
			return row.step, row.words
		}
	}
	return StepRetry, "it is safe to call again"
}

// toAsk returns how to find out what a write of unknown outcome did.
func (e *Error) toAsk() string {
	about := "ask the service" + ifTrue(e.Reference != "", " about "+e.Reference)
	switch {
	case ownOps[e.Op].ofRecord:
		at := e.settledBy.Add(time.Second - 1).UTC().Format(time.RFC3339) // a second that is cut off is one too early
		return "look at the card, or " + about + ifTrue(!e.settledBy.IsZero(), ", at "+at+" or later") +
			": the service accepts only records that have failed"
	case e.Op == OpFreezeCard:
		return "look at the card before freezing it again"
	}
	return about + " before sending it again"
}

// isRecorded reports whether the call has a reference that a journal knows.
func (e *Error) isRecorded() bool {
	_, isOwn := ownOps[e.Op]
	return e.Reference != "" && (!isOwn || e.Op.IsRecorded())
}

// isHarmless reports whether the call changed nothing, or nothing that matters.
func (e *Error) isHarmless() bool {
	return e.ReadOnly || e.Op == OpUploadImage && e.Outcome != OutcomeExecuted
}

// isOfURL reports whether "not found" is about the URL, as from a gateway in front of the service.
func (e *Error) isOfURL() bool {
	return e.has(http.StatusNotFound) && (ownOps[e.Op].namesNothing || errors.Is(e.Err, ErrUnreadable))
}
