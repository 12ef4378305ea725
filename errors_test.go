package cardwire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/syntax"
)

// allSentinels are all sentinels: an error is compared with each of them, so
// that one which matches too much is found as well.
var allSentinels = []struct {
	name string // in facts
	err  error
	text string
}{
	{"Unknown", ErrOutcomeUnknown, "cardwire: the outcome is unknown"},
	{"NotSent", ErrNotSent, "cardwire: nothing was sent"},
	{"Refused", ErrRefused, "cardwire: the service refused"},
	{"Executed", ErrExecuted, "cardwire: it was executed"},
	{"Unauthorized", ErrUnauthorized, "cardwire: the API key was not accepted"},
	{"NotFound", ErrNotFound, "cardwire: not found"},
	{"RateLimited", ErrRateLimited, "cardwire: too many requests"},
	{"InvalidParams", ErrInvalidParams, "cardwire: invalid parameters"},
	{"Unreadable", ErrUnreadable, "cardwire: the answer is unreadable"},
	{"TooLarge", ErrResponseTooLarge, "cardwire: the answer is too large"},
	{"Redirect", ErrRedirect, "cardwire: the answer is a redirect"},
	{"ParameterIgnored", ErrParameterIgnored, "cardwire: the service ignored a parameter"},
	{"DuplicateIntent", ErrDuplicateIntent, "cardwire: the reference is taken"},
	{"OtherBody", ErrOtherBody, "cardwire: the reference stands for another body"},
	{"Drift", ErrDrift, "cardwire: the answer deviates from the interface"},
}

func TestTheListOfSentinelsIsComplete(t *testing.T) {
	t.Parallel()
	var listed, declared []string
	for _, s := range allSentinels {
		assert.EqualError(t, s.err, s.text)
		listed = append(listed, strconv.Quote(s.text))
	}
	for _, file := range syntax.Files(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
				declared = append(declared, spec.Values[0].(*ast.CallExpr).Args[0].(*ast.BasicLit).Value)
			}
			return true
		})
	}
	assert.ElementsMatch(t, declared, listed)
}

// facts is all that an error tells a program.
type facts struct {
	Outcome    Outcome
	Is         string // the sentinels that it matches, without "Err"
	HTTPStatus int
	Code       int
	Message    string
	RetryAfter time.Duration
	Phases     string // of the attempts, one after the other
}

func factsOf(t *testing.T, err error) facts {
	t.Helper()
	e := failure(t, err)
	var is, phases []string
	for _, s := range allSentinels {
		if errors.Is(err, s.err) {
			is = append(is, s.name)
		}
	}
	for _, a := range e.Attempts {
		phases = append(phases, a.Phase)
	}
	return facts{
		Outcome: e.Outcome, Is: strings.Join(is, " "), HTTPStatus: e.HTTPStatus, Code: e.Code,
		Message: e.Message, RetryAfter: e.RetryAfter, Phases: strings.Join(phases, " "),
	}
}

func TestTheZeroOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	var o Outcome
	assert.Equal(t, OutcomeUnknown, o)
	assert.ErrorIs(t, &Error{}, ErrOutcomeUnknown)
}

func TestOutcomeTexts(t *testing.T) {
	t.Parallel()
	for o, want := range map[Outcome]string{
		OutcomeUnknown: "unknown", OutcomeNotSent: "not sent", OutcomeRefused: "refused", OutcomeExecuted: "executed",
		-1: "Outcome(-1)", 4: "Outcome(4)",
	} {
		assert.Equal(t, want, o.String())
	}
}

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  Error
		want string
	}{
		{
			"unknown write", Error{Op: "CreateTransfer", HTTPStatus: 502},
			"cardwire: CreateTransfer: unknown, HTTP 502: it may have happened; settle it with the service before doing it again",
		},
		{
			"unknown write with a cause", Error{Op: "CreateTransfer", err: errors.New("connection reset by the peer")},
			"cardwire: CreateTransfer: unknown: connection reset by the peer: it may have happened; settle it with the service before doing it again",
		},
		{
			"unknown write with a redirect", Error{Op: "FreezeCard", HTTPStatus: 302, err: ErrRedirect},
			"cardwire: FreezeCard: unknown, HTTP 302: the answer is a redirect: it may have happened; settle it with the service before doing it again",
		},
		{
			"unknown read", Error{Op: "GetCard", read: true, HTTPStatus: 503},
			"cardwire: GetCard: unknown, HTTP 503: nothing was changed; calling again is safe",
		},
		{
			"not sent", Error{Op: "CreateTransfer", Outcome: OutcomeNotSent, err: errors.New("connection refused")},
			"cardwire: CreateTransfer: not sent: connection refused: nothing was sent; it is safe to call again",
		},
		{
			"invalid parameter", Error{Op: "GetCard", Outcome: OutcomeNotSent, err: invalid("cardID is empty")},
			"cardwire: GetCard: not sent: invalid parameters: cardID is empty: correct it and call again; nothing was sent",
		},
		{
			"refused", Error{Op: "FreezeCard", Outcome: OutcomeRefused, HTTPStatus: 200, Code: 422, Message: `no "such" card`},
			`cardwire: FreezeCard: refused, HTTP 200, code 422, "no \"such\" card": nothing happened; correct the request before calling again`,
		},
		{
			"unauthorised", Error{Op: "ListBINs", Outcome: OutcomeRefused, HTTPStatus: 401},
			"cardwire: ListBINs: refused, HTTP 401: nothing happened; check the API key",
		},
		{
			"unauthorised by code", Error{Op: "ListBINs", Outcome: OutcomeRefused, HTTPStatus: 200, Code: 401},
			"cardwire: ListBINs: refused, HTTP 200, code 401: nothing happened; check the API key",
		},
		{
			"too many requests", Error{Op: "CreateTransfer", Outcome: OutcomeRefused, HTTPStatus: 429, RetryAfter: time.Second},
			"cardwire: CreateTransfer: refused, HTTP 429: nothing happened; wait 1s and call again",
		},
		{
			"too many requests by code", Error{Op: "CreateTransfer", Outcome: OutcomeRefused, HTTPStatus: 200, Code: 429},
			"cardwire: CreateTransfer: refused, HTTP 200, code 429: nothing happened; wait and call again",
		},
		{
			"executed write", Error{Op: "CreateTransfer", Outcome: OutcomeExecuted, HTTPStatus: 200, Code: 200, Message: "success", err: &problem{ErrUnreadable, "data: want object"}},
			`cardwire: CreateTransfer: executed, HTTP 200, code 200: the answer is unreadable: data: want object: it was done; do not call again to do it`,
		},
		{
			"unreadable read", Error{Op: "GetCard", read: true, Outcome: OutcomeExecuted, HTTPStatus: 200, Code: 200, err: &problem{ErrUnreadable, "data.id: want text"}},
			"cardwire: GetCard: executed, HTTP 200, code 200: the answer is unreadable: data.id: want text: nothing was changed; calling again is safe",
		},
		{
			"ignored parameter", Error{Op: "ListCards", read: true, Outcome: OutcomeExecuted, HTTPStatus: 200, Code: 200, Page: 3, RequestID: "r-1", err: ignored("another page was returned", "PageParam")},
			"cardwire: ListCards: executed, HTTP 200, code 200, request ID r-1, page 3: the service ignored a parameter: another page was returned: see Profile.PageParam: correct it there, or do without the parameter",
		},
		{
			"reference in flight", Error{Op: "CreateTransfer", Reference: "order-7", err: &problem{ErrDuplicateIntent, "a call under it is in flight"}},
			"cardwire: CreateTransfer: unknown: the reference is taken: a call under it is in flight: settle the reference before calling again; this call sent nothing",
		},
		{
			"reference done", Error{Op: "CreateTransfer", Outcome: OutcomeExecuted, err: &problem{ErrDuplicateIntent, "the journal holds it"}},
			"cardwire: CreateTransfer: executed: the reference is taken: the journal holds it: it was done before; this call sent nothing",
		},
	} {
		assert.Equal(t, tc.want, tc.err.Error(), tc.name)
	}
}

// causes are all that an Error may stand on, nil among them.
var causes = []error{
	nil, ErrInvalidParams, ErrUnreadable, ErrResponseTooLarge, ErrRedirect, ErrParameterIgnored, ErrDrift,
	context.DeadlineExceeded, io.EOF, conceal("the journal failed", ErrInvalidParams),
}

// A money transfer that is not settled must never read as if it could be
// repeated, whatever the service or a function of the caller's said.
func TestNoErrorMakesAnUnknownWriteSoundSafe(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`nothing (happened|was)|safe|call again|was done`)
	for _, status := range []int{0, 200, 302, 400, 401, 404, 408, 422, 429, 500, 503} {
		for _, code := range []int{0, 200, 401, 404, 429, 500} {
			for _, cause := range causes {
				e := &Error{Op: "CreateTransfer", HTTPStatus: status, Code: code, err: cause}
				assert.NotRegexp(t, safe, e.advice(), e.Error())
				e.Outcome = OutcomeExecuted
				assert.Equal(t, "it was done; do not call again to do it", e.advice(), e.Error())
			}
		}
	}
}

func TestErrorMatchesSentinels(t *testing.T) {
	t.Parallel()
	outcomes := map[Outcome]error{
		OutcomeUnknown: ErrOutcomeUnknown, OutcomeNotSent: ErrNotSent, OutcomeRefused: ErrRefused, OutcomeExecuted: ErrExecuted,
	}
	numbers := map[int]error{401: ErrUnauthorized, 404: ErrNotFound, 429: ErrRateLimited}
	var others []error // they follow in the list
	for _, s := range allSentinels[len(outcomes)+len(numbers):] {
		others = append(others, s.err)
	}
	statuses := []int{0, 200, 400, 401, 403, 404, 429, 500}
	for outcome := range outcomes {
		for _, status := range statuses {
			for _, code := range statuses {
				for _, cause := range append([]error{nil}, others...) {
					e := &Error{Op: "Op", Outcome: outcome, HTTPStatus: status, Code: code}
					if cause != nil {
						e.err = &problem{cause, "words"}
					}
					wrapped := fmt.Errorf("in a program: %w", e)
					for o, sentinel := range outcomes {
						assert.Equal(t, o == outcome, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
					}
					for n, sentinel := range numbers {
						assert.Equal(t, n == status || n == code, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
					}
					for _, sentinel := range others {
						assert.Equal(t, sentinel == cause, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
					}
				}
			}
		}
	}
}

func TestErrorIsNoSentinelOfAnUnlistedOutcome(t *testing.T) {
	t.Parallel()
	e := &Error{Outcome: 7}
	for _, sentinel := range []error{ErrOutcomeUnknown, ErrNotSent, ErrRefused, ErrExecuted} {
		assert.NotErrorIs(t, e, sentinel)
	}
	assert.NotErrorIs(t, e, errors.New("cardwire: the outcome is unknown"))
}

func TestErrorUnwraps(t *testing.T) {
	t.Parallel()
	assert.Nil(t, (&Error{}).Unwrap())
	assert.NotErrorIs(t, &Error{Outcome: OutcomeNotSent}, context.Canceled)

	cause := &problem{ErrInvalidParams, "Limit is negative"}
	e := &Error{Op: "ListCards", Outcome: OutcomeNotSent, err: cause}
	assert.Same(t, cause, e.Unwrap())
	assert.EqualError(t, cause, "cardwire: invalid parameters: Limit is negative")
	assert.Equal(t, ErrInvalidParams, cause.Unwrap())

	var found *Error
	require.ErrorAs(t, fmt.Errorf("in a program: %w", error(e)), &found)
	assert.Same(t, e, found)
	assert.ErrorIs(t, &Error{err: context.DeadlineExceeded}, context.DeadlineExceeded)
}

// loud is an error of a caller's function, which says what it was given.
type loud struct{ Secret, hidden string }

func (e *loud) Error() string { return e.Secret }

func TestAConcealedCauseIsFoundAndNotShown(t *testing.T) {
	t.Parallel()
	cause := &loud{canaryKey, canaryKey}
	concealed := conceal("the key source failed", fmt.Errorf("for %s: %w", canaryKey, errors.Join(cause, context.Canceled)))
	assert.EqualError(t, concealed, "the key source failed")
	assert.ErrorIs(t, concealed, context.Canceled)
	assert.ErrorIs(t, concealed, cause)
	assert.NotErrorIs(t, concealed, context.DeadlineExceeded)
	assert.NotErrorAs(t, concealed, new(*loud), "As would hand out the words")
	assert.Nil(t, errors.Unwrap(concealed))

	e := &Error{Op: "GetCard", Outcome: OutcomeNotSent, err: concealed}
	assert.EqualError(t, e, "cardwire: GetCard: not sent: the key source failed: nothing was sent; it is safe to call again")
	assert.ErrorIs(t, e, context.Canceled)
	for _, places := range [][]place{
		everywhere(concealed, errors.New("another")), everywhere(e, &Error{}), everywhere(*e, Error{}),
	} {
		assertSilent(t, places, allPrinters(), keyCanary())
	}
}

func TestAConcealedNilMatchesNothing(t *testing.T) {
	t.Parallel()
	assert.NotErrorIs(t, conceal("the source failed", nil), io.EOF)
}

// Errors end up in logs of every kind.
func TestErrorInLogs(t *testing.T) {
	t.Parallel()
	e := &Error{Op: "GetCard", Outcome: OutcomeRefused, HTTPStatus: 404}
	const want = "cardwire: GetCard: refused, HTTP 404: nothing happened; correct the request before calling again"
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.Equal(t, want, fmt.Sprintf(format, e), format)
	}
	var b strings.Builder
	slog.New(slog.NewJSONHandler(&b, nil)).Error("failed", "err", e)
	var line struct{ Err string }
	require.NoError(t, json.Unmarshal([]byte(b.String()), &line))
	assert.Equal(t, want, line.Err)
}

func TestAConcealedCauseLendsNoOutcome(t *testing.T) {
	t.Parallel()
	inner := &Error{Op: "Call", Outcome: OutcomeUnknown, err: io.EOF}
	err := &Error{Op: "CreateTransfer", Outcome: OutcomeNotSent, err: conceal("the key source failed", inner)}
	assert.ErrorIs(t, err, ErrNotSent)
	assert.NotErrorIs(t, err, ErrOutcomeUnknown)
	assert.ErrorIs(t, err, io.EOF, "the cause itself is found")
}

// What a doer, a limiter or a key source of the caller's says of another call,
// which it made by this package too, is not said of this one.
func TestAnotherCallsErrorIsNotThisOnes(t *testing.T) {
	t.Parallel()
	reasons := []error{io.ErrNoProgress}
	for _, s := range allSentinels {
		reasons = append(reasons, s.err)
	}
	other := &Error{
		Op: "CardCapacity", Outcome: OutcomeRefused, HTTPStatus: http.StatusUnauthorized, err: errors.Join(reasons...),
	}
	for name, tc := range map[string]struct {
		opt     Option
		outcome error
	}{
		"a doer": {
			WithHTTPClient(carrier(func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("no token: %w", other) })),
			ErrOutcomeUnknown,
		},
		"a limiter":    {WithLimiter(limiterFunc(func(context.Context) error { return other })), ErrNotSent},
		"a key source": {WithKeySource(func(context.Context) (string, error) { return "", other }), ErrNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := unasked(t, tc.opt)
			_, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "M-1", TransferAmount: dec("1")})
			var matched []error
			for _, s := range allSentinels {
				if errors.Is(err, s.err) {
					matched = append(matched, s.err)
				}
			}
			assert.Equal(t, []error{tc.outcome}, matched)
			require.ErrorIs(t, err, io.ErrNoProgress, "what is not of this package is found")
			assert.NotContains(t, err.Error(), "this call sent nothing")
			assert.NotContains(t, err.Error(), "correct it")
		})
	}
}

func TestCheckedReturnsTheFirstError(t *testing.T) {
	t.Parallel()
	assert.NoError(t, checked())
	assert.NoError(t, checked(nil, nil))
	err := checked(nil, errors.New("CardID is empty"), errors.New("another"))
	assert.ErrorIs(t, err, ErrInvalidParams)
	assert.EqualError(t, err, "cardwire: invalid parameters: CardID is empty")
}

// A nil *Error in an error is a caller's mistake, and no reason to panic where it is
// logged.
func TestANilErrorIsHarmless(t *testing.T) {
	t.Parallel()
	var none *Error
	assert.Equal(t, "<nil>", none.Error())
	assert.NoError(t, none.Unwrap())
	for _, s := range allSentinels {
		assert.NotErrorIs(t, error(none), s.err)
	}
	var taken *DuplicateIntent
	require.EqualError(t, taken, "cardwire: the reference is taken by an intent whose outcome is unknown")
	assert.ErrorIs(t, taken, ErrDuplicateIntent)
}
