package cardwire

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Outcome answers one question about a failed call: did it happen? Its zero
// value is OutcomeUnknown, so that what nobody decided is never taken for done
// or undone.
type Outcome int

const (
	// OutcomeUnknown says that it may have happened. Settle it with the service
	// before sending anything that would do it again.
	OutcomeUnknown Outcome = iota
	// OutcomeNotSent says that this call did nothing: no byte of its request left.
	// What else is known of its reference stays as it was.
	OutcomeNotSent
	// OutcomeRefused says that it did not happen: the service said no.
	OutcomeRefused
	// OutcomeExecuted says that it did happen: the service said yes, and only
	// its answer could not be read or is not what was asked for.
	OutcomeExecuted
)

// String returns "unknown", "not sent", "refused" or "executed".
func (o Outcome) String() string {
	switch o {
	case OutcomeUnknown:
		return "unknown"
	case OutcomeNotSent:
		return "not sent"
	case OutcomeRefused:
		return "refused"
	case OutcomeExecuted:
		return "executed"
	}
	return "Outcome(" + strconv.Itoa(int(o)) + ")"
}

// answer is what is known of the last reply.
type answer struct {
	status     int
	code       int // 0: none was readable
	message    string
	requestID  string
	retryAfter time.Duration
	attempts   []Attempt
	tries      int
	attempt    *transport.Attempt // the last one, if somebody wants to know; nil: none
}

// judge is the outcome table: it says whether it happened, from what came back.
// The reply is released when all that is wanted of it has been taken.
func (k *call) judge(ctx context.Context, r *transport.Reply) *Error {
	defer r.Release()
	defer k.capture(r)
	k.last.tries += r.Tries
	k.last.status = r.Status
	k.last.retryAfter = r.RetryAfter
	k.last.attempts = attempts(r.Attempts)
	k.last.requestID = requestID(r.Header, k.key())
	switch {
	case r.NotSent:
		return k.fail(OutcomeNotSent, &foreign{r.Err})
	case r.Redirected:
		return k.fail(OutcomeUnknown, ErrRedirect)
	case errors.Is(r.Err, transport.ErrTooLarge):
		return k.fail(OutcomeUnknown, ErrResponseTooLarge)
	case r.Err != nil:
		return k.fail(OutcomeUnknown, &foreign{r.Err})
	}
	body := wire.NewReader(r.Body, k.client.watchesDrift())
	defer body.Release()
	body.Masking = k.client.maskedCards
	k.envelope = envelope{read: k.read, success: r.Status >= 200 && r.Status <= 299}
	e := &k.envelope
	e.decode(body)
	if body.Err() == nil {
		k.last.code = e.code
		k.last.message = e.message
		if e.message != messageSuccess {
			k.last.message = sanitise(e.message, k.key())
		}
	}
	switch {
	case e.success:
		return k.judgeSuccess(ctx, e, body)
	case !slices.Contains(k.client.profile.RefusedStatuses, r.Status):
		return k.fail(OutcomeUnknown, nil)
	case k.last.code == codeSuccess || k.last.code >= 500 && k.last.code <= 599:
		// Status and code contradict each other, and the code may be right.
		return k.fail(OutcomeUnknown, nil)
	}
	return k.fail(OutcomeRefused, nil)
}

// judgeSuccess judges an answer with a status from 200 to 299.
func (k *call) judgeSuccess(ctx context.Context, e *envelope, body *wire.Codec) *Error {
	switch {
	case body.Err() != nil:
		return k.fail(OutcomeUnknown, unreadable(body.Err()))
	case e.code != codeSuccess && slices.Contains(k.client.profile.RefusedCodes, e.code):
		return k.fail(OutcomeRefused, nil)
	case e.code != codeSuccess:
		return k.fail(OutcomeUnknown, nil)
	}
	drift := k.drifted(ctx, body.Drifts())
	switch {
	case e.mismatch != nil && e.message != "" && !meansYes(e.message):
		// Its code and its words contradict each other, and its data proves neither.
		return k.fail(OutcomeUnknown, unreadable(e.mismatch))
	case e.mismatch != nil:
		return k.fail(OutcomeExecuted, unreadable(e.mismatch))
	}
	if k.verify != nil {
		if err := k.verify(); err != nil {
			return k.fail(verdict(err), err)
		}
	}
	if drift != nil {
		return k.fail(OutcomeExecuted, drift)
	}
	return nil
}

// verdict is the outcome of an answer that was read and is not the one asked
// for: where even its being an answer to this request is in doubt, so is all else.
func verdict(err error) Outcome {
	if errors.Is(err, ErrParameterIgnored) {
		return OutcomeExecuted
	}
	return OutcomeUnknown
}

// unknownIf is the amendment of an operation whose data may contradict the code of
// a success: whatever else is wrong with the answer, it proves nothing.
func unknownIf(contradicted *bool) func(*Error) {
	return func(failure *Error) {
		if *contradicted {
			failure.Outcome = OutcomeUnknown
		}
	}
}

func unreadable(err *wire.Error) error { return &problem{ErrUnreadable, err.Error()} }
