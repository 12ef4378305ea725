package cardwire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io"
	"log/slog"
	"net/http"
	"regexp"
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
	{"Unreadable", ErrUnreadable, "cardwire: the response is unreadable"},
	{"Setup", ErrSetup, "cardwire: invalid set-up"},
	{"TooLarge", ErrResponseTooLarge, "cardwire: the response is too large"},
	{"Redirect", ErrRedirect, "cardwire: the response is a redirect"},
	{"ParameterIgnored", ErrParameterIgnored, "cardwire: the service ignored a parameter"},
	{"DuplicateIntent", ErrDuplicateIntent, "cardwire: this reference was used before"},
	{"OtherBody", ErrOtherBody, "cardwire: this reference was already used for a different request"},
	{"Drift", ErrDrift, "cardwire: the response deviates from the API"},
}

func TestTheListOfSentinelsIsComplete(t *testing.T) {
	t.Parallel()
	var listed, declared []string
	for _, s := range allSentinels {
		assert.EqualError(t, s.err, s.text)
		listed = append(listed, "Err"+cmp.Or(map[string]string{"Unknown": "OutcomeUnknown", "TooLarge": "ResponseTooLarge"}[s.name], s.name))
	}
	for _, file := range syntax.Files(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
				declared = append(declared, spec.Names[0].Name)
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

// detail is a sentinel with what it is about.
func detail(kind error, words string) error { return fmt.Errorf("%w: %s", kind, words) }

func TestErrorTexts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  Error
		want string
	}{
		{
			"unknown write", Error{Op: "CreateTransfer", HTTPStatus: 502},
			"cardwire: CreateTransfer: unknown outcome, HTTP 502: ask the service before sending it again",
		},
		{
			"unknown write with a cause", Error{Op: "CreateTransfer", Reference: "order-1", Err: errors.New("connection reset by the peer")},
			"cardwire: CreateTransfer order-1: unknown outcome: connection reset by the peer: ask the service about order-1 before sending it again",
		},
		{
			"unknown write with a redirect", Error{Op: "FreezeCard", HTTPStatus: 302, Err: ErrRedirect},
			"cardwire: FreezeCard: unknown outcome, HTTP 302: the response is a redirect: ask the service before sending it again",
		},
		{
			"unknown read", Error{Op: "GetCard", ReadOnly: true, HTTPStatus: 503},
			"cardwire: GetCard: failed, HTTP 503: it is safe to call again",
		},
		{
			"not sent", Error{Op: "CreateTransfer", Outcome: OutcomeNotSent, Err: errors.New("connection refused")},
			"cardwire: CreateTransfer: not sent: connection refused: it is safe to call again",
		},
		{
			"invalid parameter", Error{Op: "GetCard", Outcome: OutcomeNotSent, Err: detail(ErrInvalidParams, "cardID is empty")},
			"cardwire: GetCard: not sent: invalid parameters: cardID is empty: correct it before calling again",
		},
		{
			"refused", Error{Op: "FreezeCard", Outcome: OutcomeRefused, HTTPStatus: 200, Code: 422, Message: `no "such" card`},
			`cardwire: FreezeCard: refused, HTTP 200, code 422, "no \"such\" card": use a new reference for a corrected request`,
		},
		{
			"unauthorised", Error{Op: "ListBINs", Outcome: OutcomeRefused, HTTPStatus: 401},
			"cardwire: ListBINs: refused, HTTP 401: check the API key, then call again",
		},
		{
			"unauthorised by code", Error{Op: "ListBINs", Outcome: OutcomeRefused, HTTPStatus: 200, Code: 401},
			"cardwire: ListBINs: refused, HTTP 200, code 401: check the API key, then call again",
		},
		{
			"too many requests", Error{Op: "CreateTransfer", Outcome: OutcomeRefused, HTTPStatus: 429, RetryAfter: time.Second},
			"cardwire: CreateTransfer: refused, HTTP 429: wait 1s, then call again",
		},
		{
			"too many requests by code", Error{Op: "CreateTransfer", Outcome: OutcomeRefused, HTTPStatus: 200, Code: 429},
			"cardwire: CreateTransfer: refused, HTTP 200, code 429: wait, then call again",
		},
		{
			"executed write", Error{Op: "CreateTransfer", Outcome: OutcomeExecuted, HTTPStatus: 200, Code: 200, Message: "success", Err: detail(ErrUnreadable, "data: expected an object")},
			`cardwire: CreateTransfer: executed, HTTP 200, code 200: the response is unreadable: data: expected an object: do not send it again`,
		},
		{
			"unreadable read", Error{Op: "GetCard", ReadOnly: true, Outcome: OutcomeExecuted, HTTPStatus: 200, Code: 200, Err: detail(ErrUnreadable, "data.id: expected a string")},
			"cardwire: GetCard: failed, HTTP 200, code 200: the response is unreadable: data.id: expected a string: it is safe to call again",
		},
		{
			"ignored parameter", Error{Op: "ListCards", ReadOnly: true, Outcome: OutcomeExecuted, HTTPStatus: 200, Code: 200, Page: 3, RequestID: "r-1", Err: detail(ErrParameterIgnored, "another page was returned: see Profile.PageParam")},
			"cardwire: ListCards: failed, HTTP 200, code 200, request ID r-1, page 3: the service ignored a parameter: another page was returned: see Profile.PageParam: correct it there, or do without the parameter",
		},
		{
			"reference in progress", Error{Op: "CreateTransfer", Reference: "order-7", Err: &DuplicateIntent{InProgress: true}},
			"cardwire: CreateTransfer order-7: unknown outcome: another call with this reference is in progress: wait for its result",
		},
		{
			"reference unknown", Error{Op: "CreateTransfer", Reference: "order-7", Err: &DuplicateIntent{}},
			"cardwire: CreateTransfer order-7: unknown outcome: the outcome of an earlier call with this reference is unknown: ask the service about order-7 before sending it again",
		},
		{
			"reference executed", Error{Op: "CreateTransfer", Reference: "order-7", Outcome: OutcomeExecuted, Err: &DuplicateIntent{Outcome: OutcomeExecuted}},
			"cardwire: CreateTransfer order-7: executed: this reference was executed before: do not send it again",
		},
		{
			"reference closed", Error{Op: "CreateTransfer", Reference: "order-7", Outcome: OutcomeRefused, Err: &DuplicateIntent{Outcome: OutcomeRefused}},
			"cardwire: CreateTransfer order-7: refused: this reference is closed: use a new reference for a corrected request",
		},
		{
			"another body", Error{Op: "CreateTransfer", Reference: "order-7", Err: ErrOtherBody},
			"cardwire: CreateTransfer order-7: unknown outcome: this reference was already used for a different request: use a new reference, once it is known what became of this one",
		},
		{
			"several attempts", Error{Op: "GetCard", ReadOnly: true, HTTPStatus: 503, Attempts: make([]Attempt, 3)},
			"cardwire: GetCard: failed, HTTP 503, 3 attempts: it is safe to call again",
		},
		{
			"bare refusal", Error{Op: "CreateTransfer", Reference: "order-7", Outcome: OutcomeRefused, HTTPStatus: 404, Err: ErrUnreadable},
			"cardwire: CreateTransfer order-7: refused, HTTP 404: the response is unreadable: check the base URL, the key and its permissions, then call again",
		},
		{
			"set-up", Error{Op: "CreateTransfer", Outcome: OutcomeNotSent, Err: detail(ErrSetup, "the context is nil")},
			"cardwire: CreateTransfer: not sent: invalid set-up: the context is nil: correct it, then call again",
		},
	} {
		assert.Equal(t, tc.want, tc.err.Error(), tc.name)
	}
}

func TestACode0ThatWasSentIsInTheError(t *testing.T) {
	t.Parallel()
	c := answered(t, asksTransfer("order-7"), `{"code":0,"msg":"ok","data":null}`)
	_, err := c.CreateTransfer(t.Context(), smallTransfer("order-7"))
	assert.EqualError(t, err, `cardwire: CreateTransfer order-7: unknown outcome, HTTP 200, code 0, "ok": ask the service about order-7 before sending it again`)
}

// causes are all that an Error may stand on, nil among them.
var causes = []error{
	nil, ErrInvalidParams, ErrUnreadable, ErrResponseTooLarge, ErrRedirect, ErrParameterIgnored, ErrDrift,
	context.DeadlineExceeded, io.EOF, errors.New("the journal failed"),
}

// A money transfer that is not settled must never read as if it could be
// repeated, whatever the service or a function of the caller's said.
func TestNoErrorMakesAnUnknownWriteSoundSafe(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`nothing (happened|was)|safe|call(ing)? again|was done|corrected`)
	for _, status := range []int{0, 200, 302, 400, 401, 404, 408, 422, 429, 500, 503} {
		for _, code := range []int{0, 200, 401, 404, 429, 500} {
			for _, cause := range causes {
				e := &Error{Op: "CreateTransfer", HTTPStatus: status, Code: code, Err: cause}
				assert.NotRegexp(t, safe, e.Error())
				e.Outcome = OutcomeExecuted
				assert.Regexp(t, ": do not send it again$", e.Error())
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
						e.Err = detail(cause, "words")
					}
					wrapped := fmt.Errorf("in a program: %w", e)
					for o, sentinel := range outcomes {
						assert.Equal(t, o == outcome, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
					}
					for n, sentinel := range numbers {
						assert.Equal(t, n == status || n == code, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
					}
					for _, sentinel := range others {
						matches := sentinel == cause || cause == ErrSetup && sentinel == ErrInvalidParams
						assert.Equal(t, matches, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
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

	cause := detail(ErrInvalidParams, "Limit must not be negative")
	e := &Error{Op: "ListCards", Outcome: OutcomeNotSent, Err: cause}
	assert.Same(t, cause, e.Unwrap())
	assert.EqualError(t, cause, "cardwire: invalid parameters: Limit must not be negative")
	assert.Equal(t, ErrInvalidParams, errors.Unwrap(cause))

	var found *Error
	require.ErrorAs(t, fmt.Errorf("in a program: %w", error(e)), &found)
	assert.Same(t, e, found)
	assert.ErrorIs(t, &Error{Err: context.DeadlineExceeded}, context.DeadlineExceeded)
}

// Errors end up in logs of every kind.
func TestErrorInLogs(t *testing.T) {
	t.Parallel()
	e := &Error{Op: "GetCard", ReadOnly: true, Outcome: OutcomeRefused, HTTPStatus: 404}
	const want = "cardwire: GetCard: refused, HTTP 404: correct the request before calling again"
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.Equal(t, want, fmt.Sprintf(format, e), format)
	}
	var b strings.Builder
	slog.New(slog.NewJSONHandler(&b, nil)).Error("failed", "err", e)
	var line struct{ Err string }
	require.NoError(t, json.Unmarshal([]byte(b.String()), &line))
	assert.Equal(t, want, line.Err)
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
		Op: "CardCapacity", Outcome: OutcomeRefused, HTTPStatus: http.StatusUnauthorized, Err: errors.Join(reasons...),
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

func TestOfTwoInvalidParametersTheFirstIsNamed(t *testing.T) {
	t.Parallel()
	_, err := unasked(t).FreezeCard(t.Context(), FreezeCardParams{ClientTransactionID: " "})
	assert.ErrorIs(t, err, ErrInvalidParams)
	assert.ErrorContains(t, err, "not sent: invalid parameters: CardID is empty: correct it")
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
	require.EqualError(t, taken, "cardwire: the outcome of an earlier call with this reference is unknown")
	assert.ErrorIs(t, taken, ErrDuplicateIntent)
}

func TestStepStrings(t *testing.T) {
	t.Parallel()
	for s, want := range map[Step]string{
		StepReconcile: "reconcile", StepDone: "done", StepRetry: "retry", StepFail: "fail", StepWait: "wait",
		-1: "Step(-1)", 5: "Step(5)",
	} {
		assert.Equal(t, want, s.String())
	}
	assert.Equal(t, StepReconcile, Step(0), "the zero value is the careful one")
}

// transferError is an error of CreateTransfer, as a stub would build it.
func transferError(o Outcome, cause error) *Error {
	return &Error{Op: "CreateTransfer", Reference: "M-1", Outcome: o, Err: cause}
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	var none *Error
	var noneAsError error = none
	answered := func(o Outcome, status, code int) *Error {
		e := transferError(o, nil)
		e.HTTPStatus, e.Code = status, code
		return e
	}
	read := func(o Outcome, cause error) *Error {
		return &Error{Op: "GetCard", ReadOnly: true, Outcome: o, Err: cause}
	}
	upload := func(o Outcome, cause error) *Error { return &Error{Op: "UploadImage", Outcome: o, Err: cause} }
	for name, tc := range map[string]struct {
		err  error
		want Step
	}{
		"success":                             {nil, StepDone},
		"executed":                            {transferError(OutcomeExecuted, ErrUnreadable), StepDone},
		"executed with drift":                 {transferError(OutcomeExecuted, ErrDrift), StepDone},
		"executed before":                     {transferError(OutcomeExecuted, &DuplicateIntent{Outcome: OutcomeExecuted}), StepDone},
		"executed before, the sentinel alone": {transferError(OutcomeExecuted, ErrDuplicateIntent), StepDone},

		"a read that is unknown":   {read(OutcomeUnknown, nil), StepRetry},
		"a read that was refused":  {read(OutcomeRefused, nil), StepRetry},
		"a read that was not sent": {read(OutcomeNotSent, ErrInvalidParams), StepRetry},
		"a read that was executed": {read(OutcomeExecuted, ErrParameterIgnored), StepRetry},

		"not sent":            {transferError(OutcomeNotSent, nil), StepRetry},
		"no connection":       {transferError(OutcomeNotSent, io.EOF), StepRetry},
		"the context ended":   {transferError(OutcomeNotSent, context.Canceled), StepRetry},
		"the set-up is wrong": {transferError(OutcomeNotSent, ErrSetup), StepRetry},
		"a detail of it":      {transferError(OutcomeNotSent, detail(ErrSetup, "the context is nil")), StepRetry},

		"an invalid parameter": {transferError(OutcomeNotSent, ErrInvalidParams), StepFail},
		"a detail of that":     {transferError(OutcomeNotSent, detail(ErrInvalidParams, "Limit must not be negative")), StepFail},

		"refused":                  {transferError(OutcomeRefused, nil), StepFail},
		"422":                      {answered(OutcomeRefused, 422, 422), StepFail},
		"400":                      {answered(OutcomeRefused, 400, 1020), StepFail},
		"404 in an envelope":       {answered(OutcomeRefused, 404, 404), StepFail},
		"401":                      {answered(OutcomeRefused, 401, 401), StepRetry},
		"403":                      {answered(OutcomeRefused, 403, 1), StepRetry},
		"405":                      {answered(OutcomeRefused, 405, 1), StepRetry},
		"413":                      {answered(OutcomeRefused, 413, 1), StepRetry},
		"415":                      {answered(OutcomeRefused, 415, 1), StepRetry},
		"429":                      {answered(OutcomeRefused, 429, 1), StepRetry},
		"code 401":                 {answered(OutcomeRefused, 200, 401), StepRetry},
		"code 403":                 {answered(OutcomeRefused, 400, 403), StepRetry},
		"code 405":                 {answered(OutcomeRefused, 200, 405), StepRetry},
		"code 413":                 {answered(OutcomeRefused, 200, 413), StepRetry},
		"code 415":                 {answered(OutcomeRefused, 200, 415), StepRetry},
		"code 429":                 {answered(OutcomeRefused, 200, 429), StepRetry},
		"the sentinel of the key":  {transferError(OutcomeRefused, ErrUnauthorized), StepRetry},
		"the sentinel of the rate": {transferError(OutcomeRefused, ErrRateLimited), StepRetry},
		"bare":                     {transferError(OutcomeRefused, ErrUnreadable), StepRetry},

		"closed by a refusal":             {transferError(OutcomeRefused, &DuplicateIntent{Outcome: OutcomeRefused}), StepFail},
		"voided":                          {transferError(OutcomeNotSent, &DuplicateIntent{Outcome: OutcomeNotSent}), StepFail},
		"voided, the sentinel alone":      {transferError(OutcomeNotSent, ErrDuplicateIntent), StepFail},
		"closed, with a status of before": {&Error{Op: "CreateTransfer", Outcome: OutcomeRefused, HTTPStatus: 429, Err: ErrDuplicateIntent}, StepFail},

		"in progress": {transferError(OutcomeUnknown, &DuplicateIntent{InProgress: true, Remaining: time.Second}), StepWait},

		"unknown":                       {transferError(OutcomeUnknown, nil), StepReconcile},
		"the zero Error":                {&Error{}, StepReconcile},
		"an outcome that is none":       {transferError(9, nil), StepReconcile},
		"unknown before":                {transferError(OutcomeUnknown, &DuplicateIntent{}), StepReconcile},
		"a duplicate that is nil":       {transferError(OutcomeUnknown, (*DuplicateIntent)(nil)), StepReconcile},
		"a duplicate that contradicts":  {transferError(OutcomeNotSent, &DuplicateIntent{}), StepReconcile},
		"another body":                  {transferError(OutcomeUnknown, ErrOtherBody), StepReconcile},
		"another body, not sent":        {transferError(OutcomeNotSent, ErrOtherBody), StepReconcile},
		"another body of one executed":  {transferError(OutcomeExecuted, errors.Join(ErrOtherBody, &DuplicateIntent{Outcome: OutcomeExecuted})), StepReconcile},
		"invalid, and perhaps executed": {transferError(OutcomeUnknown, ErrInvalidParams), StepReconcile},
		"unknown with the set-up wrong": {transferError(OutcomeUnknown, ErrSetup), StepReconcile},
		"no Error":                      {io.EOF, StepReconcile},
		"what New returns":              {detail(ErrSetup, "the API key is empty"), StepReconcile},
		"a nil Error":                   {noneAsError, StepReconcile},
		"two Errors":                    {errors.Join(transferError(OutcomeNotSent, nil), transferError(OutcomeRefused, nil)), StepReconcile},
		"an Error in an Error":          {transferError(OutcomeNotSent, transferError(OutcomeUnknown, nil)), StepReconcile},
		"an Error beside a nil one":     {errors.Join(transferError(OutcomeNotSent, nil), noneAsError), StepReconcile},

		"an image that was taken":      {upload(OutcomeExecuted, ErrDrift), StepDone},
		"an image without its key":     {upload(OutcomeExecuted, ErrUnreadable), StepRetry},
		"an image that may be there":   {upload(OutcomeUnknown, nil), StepRetry},
		"an image that is refused":     {upload(OutcomeRefused, nil), StepRetry},
		"an image that cannot be sent": {upload(OutcomeNotSent, ErrInvalidParams), StepRetry},
	} {
		assert.Equal(t, tc.want, NextStep(tc.err), name)
		if tc.err != nil && tc.err != noneAsError {
			assert.Equal(t, tc.want, NextStep(fmt.Errorf("order 7: %w", tc.err)), "%s, wrapped", name)
			assert.Equal(t, tc.want, NextStep(errors.Join(io.EOF, tc.err)), "%s, joined", name)
		}
	}
}

// Whatever else an error of a write carries, its outcome bounds the step.
func TestNoCauseMakesAStepUnsafe(t *testing.T) {
	t.Parallel()
	may := map[Outcome][]Step{
		OutcomeUnknown:  {StepReconcile, StepWait},
		OutcomeExecuted: {StepDone, StepReconcile, StepWait},
		OutcomeNotSent:  {StepRetry, StepFail, StepReconcile, StepWait},
		OutcomeRefused:  {StepRetry, StepFail, StepReconcile, StepWait},
	}
	causes := []error{
		nil, context.DeadlineExceeded, &DuplicateIntent{}, &DuplicateIntent{InProgress: true},
		&DuplicateIntent{Outcome: OutcomeExecuted}, &DuplicateIntent{Outcome: OutcomeRefused}, &DuplicateIntent{Outcome: OutcomeNotSent},
	}
	for _, s := range allSentinels {
		causes = append(causes, s.err)
	}
	for outcome, steps := range may {
		for _, cause := range causes {
			for _, other := range causes {
				for _, status := range []int{0, 200, 302, 400, 401, 404, 422, 429, 500, 503} {
					e := transferError(outcome, errors.Join(cause, other))
					e.HTTPStatus, e.Code = status, status
					assert.Contains(t, steps, NextStep(e), "%v", e)
				}
			}
		}
	}
}
