package cardwire_test

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

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestTheListOfSentinelsIsComplete(t *testing.T) {
	t.Parallel()
	var listed, declared []string
	for _, s := range wiretest.Sentinels {
		assert.EqualError(t, s.Err, s.Text)
		listed = append(listed, "Err"+cmp.Or(map[string]string{"Unknown": "OutcomeUnknown", "TooLarge": "ResponseTooLarge"}[s.Name], s.Name))
	}
	for _, file := range wiretest.Source(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Err") {
				declared = append(declared, spec.Names[0].Name)
			}
			return true
		})
	}
	assert.ElementsMatch(t, declared, listed)
}

func TestTheZeroOutcomeIsUnknown(t *testing.T) {
	t.Parallel()
	var o cardwire.Outcome
	assert.Equal(t, cardwire.OutcomeUnknown, o)
	assert.ErrorIs(t, &cardwire.Error{}, cardwire.ErrOutcomeUnknown)
}

func TestOutcomeStrings(t *testing.T) {
	t.Parallel()
	for o, want := range map[cardwire.Outcome]string{
		cardwire.OutcomeUnknown: "unknown", cardwire.OutcomeNotSent: "not sent", cardwire.OutcomeRefused: "refused", cardwire.OutcomeExecuted: "executed",
		-1: "Outcome(-1)", 4: "Outcome(4)",
	} {
		assert.Equal(t, want, o.String())
	}
}

// detail is a sentinel with what it is about.
func detail(kind error, words string) error { return fmt.Errorf("%w: %s", kind, words) }

func TestErrorStrings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		err  cardwire.Error
		want string
	}{
		{
			"unknown write", cardwire.Error{Op: "CreateTransfer", HTTPStatus: 502},
			"cardwire: CreateTransfer: unknown outcome, HTTP 502: ask the service before sending it again",
		},
		{
			"unknown write with a cause", cardwire.Error{Op: "CreateTransfer", Reference: "order-1", Err: errors.New("connection reset by the peer")},
			"cardwire: CreateTransfer order-1: unknown outcome: connection reset by the peer: ask the service about order-1 before sending it again",
		},
		{
			"unknown write with a redirect", cardwire.Error{Op: "FreezeCard", HTTPStatus: 302, Err: cardwire.ErrRedirect},
			"cardwire: FreezeCard: unknown outcome, HTTP 302: the response is a redirect: ask the service before sending it again",
		},
		{
			"unknown read", cardwire.Error{Op: "GetCard", ReadOnly: true, HTTPStatus: 503},
			"cardwire: GetCard: failed, HTTP 503: it is safe to call again",
		},
		{
			"not sent", cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeNotSent, Err: errors.New("connection refused")},
			"cardwire: CreateTransfer: not sent: connection refused: it is safe to call again",
		},
		{
			"invalid parameter", cardwire.Error{Op: "GetCard", Outcome: cardwire.OutcomeNotSent, Err: detail(cardwire.ErrInvalidParams, "cardID is empty")},
			"cardwire: GetCard: not sent: invalid parameters: cardID is empty: correct it before calling again",
		},
		{
			"refused", cardwire.Error{Op: "FreezeCard", Outcome: cardwire.OutcomeRefused, HTTPStatus: 200, Code: 404, Message: `no "such" path`},
			`cardwire: FreezeCard: refused, HTTP 200, code 404, "no \"such\" path": check the identifiers, and that the base URL ends in /api/v1, then use a new reference`,
		},
		{
			"unauthorised", cardwire.Error{Op: "ListBINs", Outcome: cardwire.OutcomeRefused, HTTPStatus: 401},
			"cardwire: ListBINs: refused, HTTP 401: check the API key, then call again",
		},
		{
			"unauthorised by code", cardwire.Error{Op: "ListBINs", Outcome: cardwire.OutcomeRefused, HTTPStatus: 200, Code: 401},
			"cardwire: ListBINs: refused, HTTP 200, code 401: check the API key, then call again",
		},
		{
			"too many requests", cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeRefused, HTTPStatus: 429, RetryAfter: time.Second},
			"cardwire: CreateTransfer: refused, HTTP 429: wait 1s, then call again",
		},
		{
			"too many requests by code", cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeRefused, HTTPStatus: 200, Code: 429},
			"cardwire: CreateTransfer: refused, HTTP 200, code 429: wait, then call again",
		},
		{
			"executed write", cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeExecuted, HTTPStatus: 200, Code: 200, Message: "success", Err: detail(cardwire.ErrUnreadable, "data: expected an object")},
			`cardwire: CreateTransfer: executed, HTTP 200, code 200: the response is unreadable: data: expected an object: do not send it again`,
		},
		{
			"unreadable read", cardwire.Error{Op: "GetCard", ReadOnly: true, Outcome: cardwire.OutcomeExecuted, HTTPStatus: 200, Code: 200, Err: detail(cardwire.ErrUnreadable, "data.id: expected a string")},
			"cardwire: GetCard: failed, HTTP 200, code 200: the response is unreadable: data.id: expected a string: it is safe to call again",
		},
		{
			"ignored parameter", cardwire.Error{Op: "ListCards", ReadOnly: true, Outcome: cardwire.OutcomeExecuted, HTTPStatus: 200, Code: 200, Page: 3, RequestID: "r-1", Err: detail(cardwire.ErrParameterIgnored, "another page was returned: see Profile.PageParam")},
			"cardwire: ListCards: failed, HTTP 200, code 200, request ID r-1, page 3: the service ignored a parameter: another page was returned: see Profile.PageParam: correct that field, or omit the parameter",
		},
		{
			"reference in progress", cardwire.Error{Op: "CreateTransfer", Reference: "order-7", Err: &cardwire.DuplicateIntent{InProgress: true}},
			"cardwire: CreateTransfer order-7: unknown outcome: another call with this reference is in progress: wait for its result",
		},
		{
			"reference unknown", cardwire.Error{Op: "CreateTransfer", Reference: "order-7", Err: &cardwire.DuplicateIntent{}},
			"cardwire: CreateTransfer order-7: unknown outcome: the outcome of an earlier call with this reference is unknown: ask the service about order-7 before sending it again",
		},
		{
			"reference executed", cardwire.Error{Op: "CreateTransfer", Reference: "order-7", Outcome: cardwire.OutcomeExecuted, Err: &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}},
			"cardwire: CreateTransfer order-7: executed: this reference was executed before: do not send it again",
		},
		{
			"reference closed", cardwire.Error{Op: "CreateTransfer", Reference: "order-7", Outcome: cardwire.OutcomeRefused, Err: &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeRefused}},
			"cardwire: CreateTransfer order-7: refused: this reference is closed: use a new reference for a corrected request",
		},
		{
			"another body", cardwire.Error{Op: "CreateTransfer", Reference: "order-7", Err: cardwire.ErrOtherBody},
			"cardwire: CreateTransfer order-7: unknown outcome: this reference was already used for a different request: find out what became of the other request, then use a new reference",
		},
		{
			"several attempts", cardwire.Error{Op: "GetCard", ReadOnly: true, HTTPStatus: 503, Attempts: make([]cardwire.Attempt, 3)},
			"cardwire: GetCard: failed, HTTP 503, 3 attempts: it is safe to call again",
		},
		{
			"bare refusal", cardwire.Error{Op: "CreateTransfer", Reference: "order-7", Outcome: cardwire.OutcomeRefused, HTTPStatus: 404, Err: cardwire.ErrUnreadable},
			"cardwire: CreateTransfer order-7: refused, HTTP 404: the response is unreadable: check the base URL, the key and its permissions, then call again",
		},
		{
			"an image that was taken", cardwire.Error{Op: "UploadImage", Outcome: cardwire.OutcomeExecuted, Err: cardwire.ErrDrift},
			"cardwire: UploadImage: executed: the response deviates from the API: do not send it again",
		},
		{
			"an image that may be there", cardwire.Error{Op: "UploadImage", Err: cardwire.ErrUnreadable},
			"cardwire: UploadImage: unknown outcome: the response is unreadable: it is safe to call again",
		},
		{
			"setup", cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeNotSent, Err: detail(cardwire.ErrSetup, "the context is nil")},
			"cardwire: CreateTransfer: not sent: invalid setup: the context is nil: correct it, then call again",
		},
	} {
		assert.Equal(t, tc.want, tc.err.Error(), tc.name)
	}
}

func TestACode0ThatWasSentIsInTheError(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.SmallTransferRequest("order-7"), `{"code":0,"msg":"ok","data":null}`)
	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("order-7"))
	assert.EqualError(t, err, `cardwire: CreateTransfer order-7: unknown outcome, HTTP 200, code 0, "ok": ask the service about order-7 before sending it again`)
}

// causes are all that an Error may stand on, nil among them.
var causes = []error{
	nil, cardwire.ErrInvalidParams, cardwire.ErrUnreadable, cardwire.ErrResponseTooLarge, cardwire.ErrRedirect, cardwire.ErrParameterIgnored, cardwire.ErrDrift,
	context.DeadlineExceeded, io.EOF, errors.New("the journal failed"),
}

// A money transfer that is not settled must never read as if it could be
// retried, whatever the service or a caller-supplied function said.
func TestNoErrorMakesAnUnknownWriteSoundSafe(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`nothing (happened|was)|safe|call(ing)? again|was done|corrected`)
	for _, status := range []int{0, 200, 302, 400, 401, 404, 408, 422, 429, 500, 503} {
		for _, code := range []int{0, 200, 401, 404, 429, 500} {
			for _, cause := range causes {
				e := &cardwire.Error{Op: "CreateTransfer", HTTPStatus: status, Code: code, Err: cause}
				assert.NotRegexp(t, safe, e.Error())
				e.Outcome = cardwire.OutcomeExecuted
				assert.Regexp(t, ": do not send it again$", e.Error())
			}
		}
	}
}

func TestErrorMatchesSentinels(t *testing.T) {
	t.Parallel()
	outcomes := map[cardwire.Outcome]error{
		cardwire.OutcomeUnknown: cardwire.ErrOutcomeUnknown, cardwire.OutcomeNotSent: cardwire.ErrNotSent, cardwire.OutcomeRefused: cardwire.ErrRefused, cardwire.OutcomeExecuted: cardwire.ErrExecuted,
	}
	numbers := map[int]error{401: cardwire.ErrUnauthorized, 404: cardwire.ErrNotFound, 429: cardwire.ErrRateLimited}
	var others []error // they follow in the list
	for _, s := range wiretest.Sentinels[len(outcomes)+len(numbers):] {
		others = append(others, s.Err)
	}
	statuses := []int{0, 200, 400, 401, 403, 404, 429, 500}
	for outcome := range outcomes {
		for _, status := range statuses {
			for _, code := range statuses {
				for _, cause := range append([]error{nil}, others...) {
					e := &cardwire.Error{Op: "Op", Outcome: outcome, HTTPStatus: status, Code: code}
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
						matches := sentinel == cause || cause == cardwire.ErrSetup && sentinel == cardwire.ErrInvalidParams
						assert.Equal(t, matches, errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
					}
				}
			}
		}
	}
}

func TestErrorIsNoSentinelOfAnUnlistedOutcome(t *testing.T) {
	t.Parallel()
	e := &cardwire.Error{Outcome: 7}
	for _, sentinel := range []error{cardwire.ErrOutcomeUnknown, cardwire.ErrNotSent, cardwire.ErrRefused, cardwire.ErrExecuted} {
		assert.NotErrorIs(t, e, sentinel)
	}
	assert.NotErrorIs(t, e, errors.New("cardwire: the outcome is unknown"))
}

func TestErrorUnwraps(t *testing.T) {
	t.Parallel()
	assert.Nil(t, (&cardwire.Error{}).Unwrap())
	assert.NotErrorIs(t, &cardwire.Error{Outcome: cardwire.OutcomeNotSent}, context.Canceled)

	cause := detail(cardwire.ErrInvalidParams, "Limit must not be negative")
	e := &cardwire.Error{Op: "ListCards", Outcome: cardwire.OutcomeNotSent, Err: cause}
	assert.Same(t, cause, e.Unwrap())
	assert.EqualError(t, cause, "cardwire: invalid parameters: Limit must not be negative")
	assert.Equal(t, cardwire.ErrInvalidParams, errors.Unwrap(cause))

	var found *cardwire.Error
	require.ErrorAs(t, fmt.Errorf("in a program: %w", error(e)), &found)
	assert.Same(t, e, found)
	assert.ErrorIs(t, &cardwire.Error{Err: context.DeadlineExceeded}, context.DeadlineExceeded)
}

// Errors end up in logs of every kind.
func TestErrorInLogs(t *testing.T) {
	t.Parallel()
	e := &cardwire.Error{Op: "GetCard", ReadOnly: true, Outcome: cardwire.OutcomeRefused, HTTPStatus: 404}
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

// What a caller-supplied doer, limiter or key source says of another call,
// which it made by this package too, is not said of this one.
func TestAnotherCallsErrorIsNotThisOnes(t *testing.T) {
	t.Parallel()
	reasons := []error{io.ErrNoProgress}
	for _, s := range wiretest.Sentinels {
		reasons = append(reasons, s.Err)
	}
	other := &cardwire.Error{
		Op: "CardCapacity", Outcome: cardwire.OutcomeRefused, HTTPStatus: http.StatusUnauthorized, Err: errors.Join(reasons...),
	}
	for name, tc := range map[string]struct {
		opt     cardwire.Option
		outcome error
	}{
		"a doer": {
			cardwire.WithHTTPClient(wiretest.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("no token: %w", other) })),
			cardwire.ErrOutcomeUnknown,
		},
		"a limiter":    {cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return other })), cardwire.ErrNotSent},
		"a key source": {cardwire.WithKeySource(func(context.Context) (string, error) { return "", other }), cardwire.ErrNotSent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Unasked(t, tc.opt)
			_, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "M-1", TransferAmount: wiretest.Dec("1")})
			var matched []error
			for _, s := range wiretest.Sentinels {
				if errors.Is(err, s.Err) {
					matched = append(matched, s.Err)
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
	_, err := wiretest.Unasked(t).FreezeCard(t.Context(), cardwire.FreezeCardParams{ClientTransactionID: " "})
	assert.ErrorIs(t, err, cardwire.ErrInvalidParams)
	assert.ErrorContains(t, err, "not sent: invalid parameters: CardID is empty: correct it")
}

// A nil *Error in an error is a caller's mistake, and no reason to panic where it is
// logged.
func TestANilErrorIsHarmless(t *testing.T) {
	t.Parallel()
	var none *cardwire.Error
	assert.Equal(t, "<nil>", none.Error())
	assert.NoError(t, none.Unwrap())
	for _, s := range wiretest.Sentinels {
		assert.NotErrorIs(t, error(none), s.Err)
	}
	var taken *cardwire.DuplicateIntent
	require.EqualError(t, taken, "cardwire: the outcome of an earlier call with this reference is unknown")
	assert.ErrorIs(t, taken, cardwire.ErrDuplicateIntent)
}

func TestStepStrings(t *testing.T) {
	t.Parallel()
	for s, want := range map[cardwire.Step]string{
		cardwire.StepReconcile: "reconcile", cardwire.StepDone: "done", cardwire.StepRetry: "retry", cardwire.StepFail: "fail", cardwire.StepWait: "wait",
		-1: "Step(-1)", 5: "Step(5)",
	} {
		assert.Equal(t, want, s.String())
	}
	assert.Equal(t, cardwire.StepReconcile, cardwire.Step(0), "the zero value is the careful one")
}

// transferError is an error of CreateTransfer, as a stub would build it.
func transferError(o cardwire.Outcome, cause error) *cardwire.Error {
	return &cardwire.Error{Op: "CreateTransfer", Reference: "M-1", Outcome: o, Err: cause}
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	var none *cardwire.Error
	var noneAsError error = none
	refusal := func(o cardwire.Outcome, status, code int) *cardwire.Error {
		e := transferError(o, nil)
		e.HTTPStatus, e.Code = status, code
		return e
	}
	read := func(o cardwire.Outcome, cause error) *cardwire.Error {
		return &cardwire.Error{Op: "GetCard", ReadOnly: true, Outcome: o, Err: cause}
	}
	upload := func(o cardwire.Outcome, cause error) *cardwire.Error {
		return &cardwire.Error{Op: "UploadImage", Outcome: o, Err: cause}
	}
	for name, tc := range map[string]struct {
		err  error
		want cardwire.Step
	}{
		"success":                             {nil, cardwire.StepDone},
		"executed":                            {transferError(cardwire.OutcomeExecuted, cardwire.ErrUnreadable), cardwire.StepDone},
		"executed with drift":                 {transferError(cardwire.OutcomeExecuted, cardwire.ErrDrift), cardwire.StepDone},
		"executed before":                     {transferError(cardwire.OutcomeExecuted, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}), cardwire.StepDone},
		"executed before, the sentinel alone": {transferError(cardwire.OutcomeExecuted, cardwire.ErrDuplicateIntent), cardwire.StepDone},

		"a read that is unknown":   {read(cardwire.OutcomeUnknown, nil), cardwire.StepRetry},
		"a read that was refused":  {read(cardwire.OutcomeRefused, nil), cardwire.StepRetry},
		"a read that was not sent": {read(cardwire.OutcomeNotSent, cardwire.ErrInvalidParams), cardwire.StepFail},
		"a read that was executed": {read(cardwire.OutcomeExecuted, cardwire.ErrParameterIgnored), cardwire.StepRetry},

		"not sent":           {transferError(cardwire.OutcomeNotSent, nil), cardwire.StepRetry},
		"no connection":      {transferError(cardwire.OutcomeNotSent, io.EOF), cardwire.StepRetry},
		"the context ended":  {transferError(cardwire.OutcomeNotSent, context.Canceled), cardwire.StepRetry},
		"the setup is wrong": {transferError(cardwire.OutcomeNotSent, cardwire.ErrSetup), cardwire.StepRetry},
		"a detail of it":     {transferError(cardwire.OutcomeNotSent, detail(cardwire.ErrSetup, "the context is nil")), cardwire.StepRetry},

		"an invalid parameter": {transferError(cardwire.OutcomeNotSent, cardwire.ErrInvalidParams), cardwire.StepFail},
		"a detail of that":     {transferError(cardwire.OutcomeNotSent, detail(cardwire.ErrInvalidParams, "Limit must not be negative")), cardwire.StepFail},

		"refused":                  {transferError(cardwire.OutcomeRefused, nil), cardwire.StepFail},
		"422":                      {refusal(cardwire.OutcomeRefused, 422, 422), cardwire.StepFail},
		"400":                      {refusal(cardwire.OutcomeRefused, 400, 1020), cardwire.StepFail},
		"404 of a wrong URL":       {refusal(cardwire.OutcomeRefused, 404, 404), cardwire.StepRetry},
		"404 of a card":            {&cardwire.Error{Op: "FreezeCard", Outcome: cardwire.OutcomeRefused, HTTPStatus: 404}, cardwire.StepFail},
		"401":                      {refusal(cardwire.OutcomeRefused, 401, 401), cardwire.StepRetry},
		"403":                      {refusal(cardwire.OutcomeRefused, 403, 1), cardwire.StepRetry},
		"405":                      {refusal(cardwire.OutcomeRefused, 405, 1), cardwire.StepRetry},
		"413":                      {refusal(cardwire.OutcomeRefused, 413, 1), cardwire.StepRetry},
		"415":                      {refusal(cardwire.OutcomeRefused, 415, 1), cardwire.StepRetry},
		"429":                      {refusal(cardwire.OutcomeRefused, 429, 1), cardwire.StepRetry},
		"code 401":                 {refusal(cardwire.OutcomeRefused, 200, 401), cardwire.StepRetry},
		"code 403":                 {refusal(cardwire.OutcomeRefused, 400, 403), cardwire.StepRetry},
		"code 405":                 {refusal(cardwire.OutcomeRefused, 200, 405), cardwire.StepRetry},
		"code 413":                 {refusal(cardwire.OutcomeRefused, 200, 413), cardwire.StepRetry},
		"code 415":                 {refusal(cardwire.OutcomeRefused, 200, 415), cardwire.StepRetry},
		"code 429":                 {refusal(cardwire.OutcomeRefused, 200, 429), cardwire.StepRetry},
		"the sentinel of the key":  {transferError(cardwire.OutcomeRefused, cardwire.ErrUnauthorized), cardwire.StepRetry},
		"the sentinel of the rate": {transferError(cardwire.OutcomeRefused, cardwire.ErrRateLimited), cardwire.StepRetry},
		"bare":                     {transferError(cardwire.OutcomeRefused, cardwire.ErrUnreadable), cardwire.StepRetry},

		"closed by a refusal":             {transferError(cardwire.OutcomeRefused, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeRefused}), cardwire.StepFail},
		"voided":                          {transferError(cardwire.OutcomeNotSent, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeNotSent}), cardwire.StepFail},
		"voided, the sentinel alone":      {transferError(cardwire.OutcomeNotSent, cardwire.ErrDuplicateIntent), cardwire.StepFail},
		"closed, with a status of before": {&cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeRefused, HTTPStatus: 429, Err: cardwire.ErrDuplicateIntent}, cardwire.StepFail},

		"in progress, another body": {
			transferError(cardwire.OutcomeUnknown, errors.Join(cardwire.ErrOtherBody, &cardwire.DuplicateIntent{InProgress: true})),
			cardwire.StepWait,
		},
		"in progress": {transferError(cardwire.OutcomeUnknown, &cardwire.DuplicateIntent{InProgress: true, Remaining: time.Second}), cardwire.StepWait},

		"unknown":                       {transferError(cardwire.OutcomeUnknown, nil), cardwire.StepReconcile},
		"the zero Error":                {&cardwire.Error{}, cardwire.StepReconcile},
		"an outcome that is none":       {transferError(9, nil), cardwire.StepReconcile},
		"unknown before":                {transferError(cardwire.OutcomeUnknown, &cardwire.DuplicateIntent{}), cardwire.StepReconcile},
		"a duplicate that is nil":       {transferError(cardwire.OutcomeUnknown, (*cardwire.DuplicateIntent)(nil)), cardwire.StepReconcile},
		"a duplicate that contradicts":  {transferError(cardwire.OutcomeNotSent, &cardwire.DuplicateIntent{}), cardwire.StepReconcile},
		"another body":                  {transferError(cardwire.OutcomeUnknown, cardwire.ErrOtherBody), cardwire.StepReconcile},
		"another body, not sent":        {transferError(cardwire.OutcomeNotSent, cardwire.ErrOtherBody), cardwire.StepFail},
		"another body of one executed":  {transferError(cardwire.OutcomeExecuted, errors.Join(cardwire.ErrOtherBody, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted})), cardwire.StepReconcile},
		"invalid, and perhaps executed": {transferError(cardwire.OutcomeUnknown, cardwire.ErrInvalidParams), cardwire.StepReconcile},
		"unknown with the setup wrong":  {transferError(cardwire.OutcomeUnknown, cardwire.ErrSetup), cardwire.StepReconcile},
		"no Error":                      {io.EOF, cardwire.StepReconcile},
		"what New returns":              {detail(cardwire.ErrSetup, "the API key is empty"), cardwire.StepReconcile},
		"a nil Error":                   {noneAsError, cardwire.StepReconcile},
		"two Errors":                    {errors.Join(transferError(cardwire.OutcomeNotSent, nil), transferError(cardwire.OutcomeRefused, nil)), cardwire.StepReconcile},
		"an Error in an Error":          {transferError(cardwire.OutcomeNotSent, transferError(cardwire.OutcomeUnknown, nil)), cardwire.StepReconcile},
		"an Error beside a nil one":     {errors.Join(transferError(cardwire.OutcomeNotSent, nil), noneAsError), cardwire.StepReconcile},

		"an image that was taken":      {upload(cardwire.OutcomeExecuted, cardwire.ErrDrift), cardwire.StepDone},
		"an image that may be there":   {upload(cardwire.OutcomeUnknown, nil), cardwire.StepRetry},
		"an image that is refused":     {upload(cardwire.OutcomeRefused, nil), cardwire.StepRetry},
		"an image that cannot be sent": {upload(cardwire.OutcomeNotSent, cardwire.ErrInvalidParams), cardwire.StepFail},
	} {
		assert.Equal(t, tc.want, cardwire.NextStep(tc.err), name)
		if tc.err != nil && tc.err != noneAsError {
			assert.Equal(t, tc.want, cardwire.NextStep(fmt.Errorf("order 7: %w", tc.err)), "%s, wrapped", name)
			assert.Equal(t, tc.want, cardwire.NextStep(errors.Join(io.EOF, tc.err)), "%s, joined", name)
		}
	}
}

// Whatever else an error of a write carries, its outcome bounds the step.
func TestNoCauseMakesAStepUnsafe(t *testing.T) {
	t.Parallel()
	may := map[cardwire.Outcome][]cardwire.Step{
		cardwire.OutcomeUnknown:  {cardwire.StepReconcile, cardwire.StepWait},
		cardwire.OutcomeExecuted: {cardwire.StepDone, cardwire.StepReconcile, cardwire.StepWait},
		cardwire.OutcomeNotSent:  {cardwire.StepRetry, cardwire.StepFail, cardwire.StepReconcile, cardwire.StepWait},
		cardwire.OutcomeRefused:  {cardwire.StepRetry, cardwire.StepFail, cardwire.StepReconcile, cardwire.StepWait},
	}
	causes := []error{
		nil, context.DeadlineExceeded, &cardwire.DuplicateIntent{}, &cardwire.DuplicateIntent{InProgress: true},
		&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeRefused}, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeNotSent},
	}
	for _, s := range wiretest.Sentinels {
		causes = append(causes, s.Err)
	}
	for outcome, steps := range may {
		for _, cause := range causes {
			for _, other := range causes {
				for _, status := range []int{0, 200, 302, 400, 401, 404, 422, 429, 500, 503} {
					e := transferError(outcome, errors.Join(cause, other))
					e.HTTPStatus, e.Code = status, status
					assert.Contains(t, steps, cardwire.NextStep(e), "%v", e)
				}
			}
		}
	}
}
