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
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
)

const (
	unknown  = cardwire.OutcomeUnknown
	notSent  = cardwire.OutcomeNotSent
	refused  = cardwire.OutcomeRefused
	executed = cardwire.OutcomeExecuted
)

func TestTheListOfSentinelsIsComplete(t *testing.T) {
	t.Parallel()
	full := map[string]string{"TooLarge": "ResponseTooLarge"}
	var listed, declared []string
	for _, s := range wiretest.Sentinels {
		assert.EqualError(t, s.Err, s.Text)
		listed = append(listed, "Err"+cmp.Or(full[s.Name], s.Name))
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

// detail is a sentinel with what it is about.
func detail(kind error, words string) error { return fmt.Errorf("%w: %s", kind, words) }

// failed is an error of an operation; a cause in words is one of no other meaning.
func failed(op cardwire.Op, o cardwire.Outcome, status int, cause error) *cardwire.Error {
	readOnly := strings.HasPrefix(string(op), "Get") || strings.HasPrefix(string(op), "List")
	return &cardwire.Error{Op: op, ReadOnly: readOnly, Outcome: o, HTTPStatus: status, Err: cause}
}

// about gives an error a reference.
func about(reference string, e *cardwire.Error) *cardwire.Error { e.Reference = reference; return e }

// The texts name what failed, on what, what is known, why, and what to do.
func TestErrorStrings(t *testing.T) {
	t.Parallel()
	const (
		transfer    = "CreateTransfer"
		useNew      = "use a new reference for a corrected request"
		checkURL    = "check that the base URL ends in /api/v1, then call again"
		checkRecord = "check the record and its state before calling again"
		checkKey    = "check the API key, then call again"
		checkAll    = "check the base URL, the key and its permissions, then call again"
	)
	duplicate := func(d cardwire.DuplicateIntent) *cardwire.Error {
		return about("order-7", failed(transfer, d.Outcome, 0, &d))
	}
	invalid, setup := detail(cardwire.ErrInvalidParams, "no"), detail(cardwire.ErrSetup, "no")
	ignored := detail(cardwire.ErrParameterIgnored, "another page was returned: see Profile.PageParam")
	says := func(err *cardwire.Error, want string) { // after the operation
		t.Helper()
		assert.Equal(t, strings.TrimSpace("cardwire: "+string(err.Op)+" "+err.Reference)+": "+want, err.Error())
	}
	says(failed(transfer, unknown, 502, nil), "unknown outcome, HTTP 502: ask the service before sending it again")
	says(about("order-7", failed(transfer, unknown, 0, errors.New("connection reset"))),
		"unknown outcome: connection reset: ask the service about order-7 before sending it again")
	says(failed("FreezeCard", unknown, 302, cardwire.ErrRedirect),
		"unknown outcome, HTTP 302: the response is a redirect: look at the card before freezing it again")
	says(failed("GetCard", unknown, 503, nil), "failed, HTTP 503: it is safe to call again")
	says(failed("UploadImage", unknown, 503, nil), "unknown outcome, HTTP 503: it is safe to call again")

	says(failed("FreezeCard", notSent, 0, io.EOF), "not sent: EOF: it is safe to call again")
	says(failed("GetCard", notSent, 0, invalid), "not sent: invalid parameters: no: correct it before calling again")
	says(failed("A", notSent, 0, invalid), "not sent: invalid parameters: no: correct it before calling again")
	says(about("order-7", failed(transfer, notSent, 0, invalid)),
		"not sent: invalid parameters: no: correct it, and use a new reference: this one is closed")
	says(failed(transfer, notSent, 0, setup), "not sent: invalid setup: no: correct it, then call again")

	says(failed(transfer, refused, 422, nil), "refused, HTTP 422: "+useNew)
	says(failed("CancelOperation", refused, 422, nil), "refused, HTTP 422: "+checkRecord)
	says(failed("GetCard", refused, 422, nil), "refused, HTTP 422: correct the request before calling again")
	says(failed(transfer, refused, 404, nil), "refused, HTTP 404: "+checkURL)
	says(failed("ListBINs", refused, 404, nil), "refused, HTTP 404: check that the base URL ends in /api/v1")
	says(failed("UploadImage", refused, 413, nil), "refused, HTTP 413: use another image: smaller, or of another type")
	says(failed("GetCard", refused, 403, nil), "refused, HTTP 403: "+checkAll)
	says(failed("GetCard", refused, 404, nil),
		"refused, HTTP 404: check the identifier, and that the base URL ends in /api/v1")
	says(&cardwire.Error{Op: "FreezeCard", Outcome: refused, HTTPStatus: 200, Code: 404, Message: `no "such" card`},
		`refused, HTTP 200, code 404, "no \"such\" card": `+
			"check the identifiers, and that the base URL ends in /api/v1, then use a new reference")
	says(failed("FreezeCard", refused, 404, cardwire.ErrUnreadable),
		"refused, HTTP 404: the response is unreadable: "+checkURL)
	says(failed(transfer, refused, 413, cardwire.ErrUnreadable),
		"refused, HTTP 413: the response is unreadable: "+checkAll)
	says(failed("ListBINs", refused, 401, nil), "refused, HTTP 401: "+checkKey)
	says(&cardwire.Error{Op: "A", Outcome: refused, Code: 401}, "refused, code 401: "+checkKey)
	says(&cardwire.Error{Op: "A", Outcome: refused, Code: 429}, "refused, code 429: wait, then call again")
	says(&cardwire.Error{Op: "A", Outcome: refused, Code: 429, RetryAfter: time.Second},
		"refused, code 429: wait 1s, then call again")

	says(&cardwire.Error{Op: "A", Outcome: executed, Code: 200, Message: "success", Err: cardwire.ErrUnreadable},
		"executed, code 200: the response is unreadable: do not send it again")
	says(failed("GetCard", executed, 200, cardwire.ErrUnreadable),
		"failed, HTTP 200: the response is unreadable: find out what sent that: calling again may not help")
	says(failed("GetCard", unknown, 502, cardwire.ErrUnreadable),
		"failed, HTTP 502: the response is unreadable: it is safe to call again")
	says(failed("ListCards", unknown, 200, cardwire.ErrResponseTooLarge),
		"failed, HTTP 200: the response is too large: raise WithMaxResponseBytes, or ask for smaller pages")
	says(failed("GetCard", unknown, 302, cardwire.ErrRedirect),
		"failed, HTTP 302: the response is a redirect: correct the base URL before calling again")
	says(&cardwire.Error{Op: "ListCards", ReadOnly: true, Page: 3, RequestID: "r-1", Err: ignored},
		"failed, request ID r-1, page 3: the service ignored a parameter: another page was returned: "+
			"see Profile.PageParam: correct that field, or omit the parameter")
	says(&cardwire.Error{Op: "GetCard", ReadOnly: true, Attempts: make([]cardwire.Attempt, 3)},
		"failed, 3 attempts: it is safe to call again")
	says(failed("UploadImage", executed, 0, cardwire.ErrDrift),
		"executed: the response deviates from the API: do not send it again")

	says(duplicate(cardwire.DuplicateIntent{InProgress: true}),
		"unknown outcome: another call with this reference is in progress: wait for its result")
	says(duplicate(cardwire.DuplicateIntent{}),
		"unknown outcome: the outcome of an earlier call with this reference is unknown: "+
			"ask the service about order-7 before sending it again")
	says(duplicate(cardwire.DuplicateIntent{Outcome: executed}),
		"executed: this reference was executed before: do not send it again")
	says(duplicate(cardwire.DuplicateIntent{Outcome: refused}), "refused: this reference is closed: "+useNew)
	says(failed(transfer, unknown, 0, cardwire.ErrOtherBody),
		"unknown outcome: this reference was already used for a different request: "+
			"find out how the other request ended, then use a new reference")
}

// safely is an error of a journal whose message may be shown.
type safely string

func (s safely) Error() string       { return "4111111111111111: " + string(s) }
func (s safely) SafeMessage() string { return string(s) }

// What a journal's error says may contain anything: only what is known to be harmless is
// shown.
func TestErrorStringsOfAJournal(t *testing.T) {
	t.Parallel()
	const number, transfer = "4111111111111111", "cardwire: CreateTransfer M-1: "
	for want, err := range map[string]error{
		"check its database":                errors.New("INSERT of " + number),
		"it did not return in time":         fmt.Errorf("%s: %w", number, context.DeadlineExceeded),
		"the context was canceled":          fmt.Errorf("%s: %w", number, context.Canceled),
		syscall.ECONNREFUSED.Error():        fmt.Errorf("%s: %w", number, syscall.ECONNREFUSED),
		syscall.EROFS.Error():               fmt.Errorf("%s: %w", number, syscall.EROFS),
		"its tables are missing: migrate":   fmt.Errorf("%s: %w", number, safely("its tables are missing: migrate")),
		"of **************** and the\tkey ": errors.Join(io.EOF, safely("of "+number+" and the\tkey\n")),
	} {
		want = strings.ReplaceAll(want, "\t", " ")
		advice := ": it is safe to call again"
		if _, isExplained := errors.AsType[safely](err); isExplained {
			advice = ": call again once that is corrected"
		}
		called := send(t, wiretest.Unasked(t, cardwire.WithJournal(begins(err))))
		require.EqualError(t, called, transfer+"not sent: the journal did not record the intent: "+want+advice)
		require.ErrorIs(t, called, err)

		unclosed := &wiretest.Journal{OnVoid: func(cardwire.Intent) error { return err }}
		called = sendAmount(t, wiretest.Unasked(t, cardwire.WithJournal(unclosed)), "10.505")
		require.EqualError(t, called, transfer+"not sent: the journal did not close the reference: "+want+advice)

		called = send(t, wiretest.NewClient(t, wiretest.Always(422, refusal), cardwire.WithJournal(ends(err))))
		require.EqualError(t, called, transfer+
			`unknown outcome, HTTP 422, code 422, "invalid account": the journal did not record the result: `+
			want+": ask the service about M-1 before sending it again")
	}
}

// A result that contradicts what a person said is heard of, in words.
func TestErrorStringsOfAContradiction(t *testing.T) {
	t.Parallel()
	memory := journal.NewMemory()
	heard, errs := journalErrors()
	c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		found := journal.Resolution{Outcome: executed, ServiceID: "A-9", By: "Ada"}
		i := cardwire.Intent{Op: "CreateTransfer", Reference: "M-1"}
		assert.NoError(t, memory.Resolve(r.Context(), i, found))
		return wiretest.Response(r, 422, refusal), nil
	}), cardwire.WithJournal(memory), heard)
	err := send(t, c)
	assert.Equal(t, told{"Executed DuplicateIntent", cardwire.StepDone}, toldBy(t, err))
	assert.Equal(t, "A-9", wiretest.Failure(t, err).ServiceID)
	require.Len(t, *errs, 1)
	require.EqualError(t, (*errs)[0], "the journal did not record the result: the record contradicts the result: "+
		"this reference was executed before")
}

// causes are all that an Error may stand on, nil among them.
func causes() []error {
	list := []error{
		nil, context.DeadlineExceeded, io.EOF, &cardwire.DuplicateIntent{}, &cardwire.DuplicateIntent{InProgress: true},
		&cardwire.DuplicateIntent{Outcome: executed}, &cardwire.DuplicateIntent{Outcome: refused},
		&cardwire.DuplicateIntent{Outcome: notSent},
	}
	for _, s := range wiretest.Sentinels {
		list = append(list, s.Err)
	}
	return list
}

func TestErrorMatchesSentinels(t *testing.T) {
	t.Parallel()
	numbers := map[int]error{401: cardwire.ErrUnauthorized, 404: cardwire.ErrNotFound, 429: cardwire.ErrRateLimited}
	others := wiretest.Sentinels[len(numbers):] // they follow in the list
	for outcome := range cardwire.Outcome(5) {
		for _, number := range [][2]int{{0, 0}, {200, 200}, {401, 0}, {0, 401}, {404, 1}, {429, 404}, {500, 429}} {
			for _, cause := range others {
				e := failed("Op", outcome, number[0], detail(cause.Err, "words"))
				e.Code = number[1]
				wrapped := fmt.Errorf("in a program: %w", e)
				for n, sentinel := range numbers {
					assert.Equal(t, slices.Contains(number[:], n), errors.Is(wrapped, sentinel), "%v: %v", e, sentinel)
				}
				for _, s := range others {
					want := s.Err == cause.Err || cause.Name == "Elements" && s.Name == "Unreadable"
					assert.Equal(t, want, errors.Is(wrapped, s.Err), "%v: %v", e, s.Name)
				}
			}
		}
	}
	assert.NotErrorIs(t, &cardwire.Error{HTTPStatus: 404}, errors.New("cardwire: not found"))
}

// Errors end up in logs of every kind. A nil one is a caller's mistake, and no reason to panic.
func TestErrorInLogs(t *testing.T) {
	t.Parallel()
	e := &cardwire.Error{Op: "GetCard", ReadOnly: true, Outcome: refused, HTTPStatus: 422}
	const want = "cardwire: GetCard: refused, HTTP 422: correct the request before calling again"
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.Equal(t, want, fmt.Sprintf(format, e), format)
	}
	var b strings.Builder
	slog.New(slog.NewJSONHandler(&b, nil)).Error("failed", "err", e)
	var line struct{ Err string }
	require.NoError(t, json.Unmarshal([]byte(b.String()), &line))
	assert.Equal(t, want, line.Err)

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

// What a caller-supplied doer, limiter or key source says of another call,
// which it made by this package too, is not said of this one.
func TestAnotherCallsErrorIsNotThisOnes(t *testing.T) {
	t.Parallel()
	reasons := append(causes(), io.ErrNoProgress)
	other := &cardwire.Error{Op: "CardCapacity", Outcome: refused, HTTPStatus: 401, Err: errors.Join(reasons...)}
	for want, opt := range map[string]cardwire.Option{
		"Unknown, sent": cardwire.WithHTTPClient(wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
			return nil, fmt.Errorf("no token: %w", other)
		})),
		"NotSent":  cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return other })),
		"NotSent ": cardwire.WithKeySource(func(context.Context) (string, error) { return "", other }),
	} {
		err := send(t, wiretest.Unasked(t, opt))
		assert.Equal(t, strings.TrimSpace(want), outcomeOf(t, err))
		require.ErrorIs(t, err, io.ErrNoProgress, "what is not of this package is found")
		assert.NotContains(t, err.Error(), "correct it")
	}
}

// transferError is an error of CreateTransfer, as a stub would build it.
func transferError(o cardwire.Outcome, causes ...error) *cardwire.Error {
	e := &cardwire.Error{Op: "CreateTransfer", Reference: "M-1", Outcome: o, Err: errors.Join(causes...)}
	if len(causes) == 1 {
		e.Err = causes[0]
	}
	return e
}

func TestNextStep(t *testing.T) {
	t.Parallel()
	var none *cardwire.Error
	of := transferError
	duplicate := func(o cardwire.Outcome) error { return &cardwire.DuplicateIntent{Outcome: o} }
	inProgress := &cardwire.DuplicateIntent{InProgress: true, Remaining: time.Second}
	read := func(o cardwire.Outcome, cause error) error {
		return &cardwire.Error{Op: "GetCard", ReadOnly: true, Outcome: o, Err: cause}
	}
	upload := func(o cardwire.Outcome, cause error) error {
		return &cardwire.Error{Op: "UploadImage", Outcome: o, Err: cause}
	}
	for want, errs := range map[cardwire.Step][]error{
		cardwire.StepDone: {
			nil, of(executed), of(executed, cardwire.ErrUnreadable), of(executed, cardwire.ErrDrift),
			of(executed, duplicate(executed)), of(executed, cardwire.ErrDuplicateIntent),
			upload(executed, cardwire.ErrDrift),
		},
		cardwire.StepRetry: {
			read(unknown, nil), read(refused, nil), read(executed, cardwire.ErrParameterIgnored),
			upload(unknown, nil), upload(refused, nil),
			of(notSent), of(notSent, io.EOF), of(notSent, context.Canceled),
			of(notSent, cardwire.ErrSetup), of(notSent, detail(cardwire.ErrSetup, "the context is nil")),
			of(refused, cardwire.ErrUnauthorized), of(refused, cardwire.ErrRateLimited),
			of(refused, cardwire.ErrUnreadable), of(notSent, cardwire.ErrUnreadable),
			read(refused, cardwire.ErrUnauthorized), read(refused, cardwire.ErrRateLimited),
		},
		cardwire.StepFail: {
			of(notSent, cardwire.ErrInvalidParams), of(notSent, detail(cardwire.ErrInvalidParams, "PageSize")),
			read(notSent, cardwire.ErrInvalidParams), upload(notSent, cardwire.ErrInvalidParams),
			&cardwire.Error{Op: "FreezeCard", Outcome: refused, HTTPStatus: 404},
			&cardwire.Error{Op: "CreateTransfer", Outcome: notSent, Err: cardwire.ErrUnreadable}, // of UnmarshalJSON
			of(refused, duplicate(refused)), of(notSent, duplicate(notSent)),
			of(notSent, cardwire.ErrDuplicateIntent), of(notSent, cardwire.ErrOtherBody),
			&cardwire.Error{Op: "CreateTransfer", Outcome: refused, HTTPStatus: 429, Err: cardwire.ErrDuplicateIntent},
			read(refused, cardwire.ErrNotFound), upload(refused, cardwire.ErrNotFound),
		},
		cardwire.StepWait: {of(unknown, inProgress), of(unknown, cardwire.ErrOtherBody, inProgress)},
		cardwire.StepReconcile: {
			&cardwire.Error{}, of(unknown), of(9), of(unknown, duplicate(unknown)),
			of(unknown, (*cardwire.DuplicateIntent)(nil)), of(notSent, duplicate(unknown)),
			of(unknown, cardwire.ErrOtherBody), of(executed, cardwire.ErrOtherBody, duplicate(executed)),
			of(unknown, cardwire.ErrInvalidParams), of(unknown, cardwire.ErrSetup),
			io.EOF, detail(cardwire.ErrSetup, "the API key is empty"), error(none),
			errors.Join(of(notSent), of(refused)), errors.Join(of(notSent), error(none)),
			of(notSent, of(unknown)),
		},
	} {
		for _, err := range errs {
			assert.Equal(t, want, cardwire.NextStep(err), "%v", err)
			if err != nil && err != error(none) {
				assert.Equal(t, want, cardwire.NextStep(fmt.Errorf("order 7: %w", err)), "%v, wrapped", err)
				assert.Equal(t, want, cardwire.NextStep(errors.Join(io.EOF, err)), "%v, joined", err)
			}
		}
	}
}

// What the status and the code of a refusal say of the same request, if it is sent again.
func TestNextStepOfARefusal(t *testing.T) {
	t.Parallel()
	const retry, fail = cardwire.StepRetry, cardwire.StepFail
	for _, tc := range []struct {
		status, code          int
		transfer, read, image cardwire.Step
	}{
		{400, 400, fail, fail, fail}, {400, 1020, fail, fail, fail}, {200, 400, fail, fail, fail},
		{401, 401, retry, retry, retry}, {200, 401, retry, retry, retry},
		{403, 1, retry, retry, retry}, {400, 403, retry, retry, retry}, // the key may get a permission
		{404, 404, retry, fail, fail}, {200, 404, retry, fail, fail}, // a transfer names nothing: it is the URL
		{405, 1, retry, fail, fail}, {200, 405, retry, fail, fail},
		{413, 1, retry, fail, fail}, {200, 413, retry, fail, fail},
		{415, 1, retry, fail, fail}, {200, 415, retry, fail, fail},
		{422, 422, fail, fail, fail}, {200, 422, fail, fail, fail},
		{429, 1, retry, retry, retry}, {400, 429, retry, retry, retry},
		{200, 1001, fail, retry, retry}, {200, 408, fail, retry, retry}, {200, 425, fail, retry, retry},
		{200, 503, fail, retry, retry}, // of a profile with such codes
	} {
		for op, want := range map[cardwire.Op]cardwire.Step{
			cardwire.OpCreateTransfer: tc.transfer, cardwire.OpGetCard: tc.read, cardwire.OpUploadImage: tc.image,
		} {
			e := failed(op, refused, tc.status, nil)
			e.Code = tc.code
			assert.Equal(t, want, cardwire.NextStep(e), "%v", e)
			if e.Outcome = unknown; op != cardwire.OpCreateTransfer {
				assert.Equal(t, retry, cardwire.NextStep(e), "%v: not refused", e)
			}
		}
	}
}

// Whatever else an error of a write carries, its outcome bounds the step, and one that is
// unknown must never read as if the write could be retried.
func TestNoCauseMakesAStepUnsafe(t *testing.T) {
	t.Parallel()
	safe := regexp.MustCompile(`nothing happened|safe|call(ing)? again|was done|corrected`)
	nothing := []cardwire.Step{cardwire.StepRetry, cardwire.StepFail, cardwire.StepReconcile, cardwire.StepWait}
	for outcome, steps := range map[cardwire.Outcome][]cardwire.Step{
		unknown:  {cardwire.StepReconcile, cardwire.StepWait},
		executed: {cardwire.StepDone, cardwire.StepReconcile, cardwire.StepWait},
		notSent:  nothing,
		refused:  nothing,
	} {
		for _, cause := range causes() {
			for _, other := range causes() {
				for _, status := range []int{0, 200, 302, 400, 401, 404, 408, 422, 429, 500, 503} {
					e := transferError(outcome, cause, other)
					e.HTTPStatus, e.Code = status, status
					assert.Contains(t, steps, cardwire.NextStep(e), "%v", e)
					if outcome == unknown {
						assert.NotRegexp(t, safe, e.Error())
					}
				}
			}
		}
	}
}

func TestWhatAnErrorKnows(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferUnreadable})
	assert.Equal(t, "A-7", wiretest.Failure(t, send(t, c)).ServiceID, "of what is otherwise unreadable")
	assert.Equal(t, "A-7", wiretest.Failure(t, send(t, c)).ServiceID, "of an earlier call")
	assert.Empty(t, wiretest.Failure(t, sendAmount(t, c, "11")).ServiceID, "of another request")
	limited := wiretest.Exchange{Want: wiretest.Anything, Status: 429, Header: "Retry-After: 7", Response: refusal}
	assert.Equal(t, 7*time.Second,
		wiretest.Failure(t, send(t, wiretest.Converse(t, []wiretest.Exchange{limited}))).RetryAfter)
}
