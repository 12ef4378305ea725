package cardwire_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// send sends the small transfer M-1.
func send(t *testing.T, c *cardwire.Client) error {
	t.Helper()
	return sendAmount(t, c, "10.50")
}

func sendAmount(t *testing.T, c *cardwire.Client, amount string) error {
	t.Helper()
	p := wiretest.SmallTransfer("M-1")
	p.TransferAmount = wiretest.Dec(amount)
	return wiretest.OnlyError(c.CreateTransfer(t.Context(), p))
}

// told is what a caller is told of a call.
type told struct {
	is   string // see wiretest.Matched
	step cardwire.Step
}

func toldBy(t *testing.T, err error) told {
	t.Helper()
	if err == nil {
		return told{"success", cardwire.NextStep(err)}
	}
	return told{wiretest.Matched(err), cardwire.NextStep(err)}
}

// begins is a journal whose Begin returns err.
func begins(err error) *wiretest.Journal {
	return &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return err }}
}

// ends is a journal whose End returns err.
func ends(err error) *wiretest.Journal {
	return &wiretest.Journal{OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error { return err }}
}

func TestOfTwoCallsInFlightUnderOneReferenceOneIsSent(t *testing.T) {
	t.Parallel()
	for _, w := range wiretest.AllWrites() {
		want := int32(1) // requests while the first is in flight
		if w.Op == "UploadImage" || w.Op == "FreezeCard" {
			want = 2 // an image has no reference, and GetCard tells of a freeze
		}
		t.Run(string(w.Op), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int32
				proceed := make(chan struct{})
				c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
					requests.Add(1)
					<-proceed
					return wiretest.Response(r, 200, wiretest.Success(w.Data)), nil
				}))
				first := make(chan error, 1)
				go func() { first <- w.Call(t.Context(), c) }()
				synctest.Wait()
				require.EqualValues(t, 1, requests.Load())

				second := make(chan error, 1)
				go func() { second <- w.Call(t.Context(), c) }()
				synctest.Wait()
				assert.Equal(t, want, requests.Load())
				close(proceed)
				require.NoError(t, <-first)
				told := "success"
				if want == 1 { // after what is left of the first call's time
					told = "Unknown DuplicateIntent, again after 30s"
				}
				assert.Equal(t, told, outcomeOf(t, <-second))

				told = "success" // the reference is free again
				if w.Unique && want == 1 {
					told = "Executed DuplicateIntent"
				}
				assert.Equal(t, told, outcomeOf(t, w.Call(t.Context(), c)))
				assert.Equal(t, told == "success", requests.Load() == want+1)
			})
		})
	}
}

// What is sent again, and what its caller is told otherwise.
func TestASecondCallWithAReference(t *testing.T) {
	t.Parallel()
	free := told{"NotSent InvalidParams", cardwire.StepFail}
	done := told{"Executed DuplicateIntent", cardwire.StepDone}
	failed := told{"Refused DuplicateIntent", cardwire.StepFail}
	open, other := told{"Unknown DuplicateIntent", cardwire.StepReconcile}, otherBody
	for name, tc := range map[string]struct {
		first  wiretest.Exchange
		amount string // of the second call
		want   told   // success: it is sent
	}{
		"a success":              {wiretest.TransferDone, "10.50", done},
		"unreadable":             {wiretest.TransferUnreadable, "10.50", done},
		"unknown":                {wiretest.TransferBroken, "10.50", open},
		"refused for good":       {wiretest.TransferRefused, "10.50", failed},
		"refused for its rate":   {limited, "10.50", told{"success", cardwire.StepDone}},
		"another body, executed": {wiretest.TransferDone, "11.50", other},
		"another body, unknown":  {wiretest.TransferBroken, "11.50", other},
		"another body, closed":   {wiretest.TransferRefused, "11.50", failed},
		"another body, free":     {limited, "11.50", told{"NotSent OtherBody", cardwire.StepFail}},
		"invalid, executed":      {wiretest.TransferDone, "10.505", other},
		"invalid, unknown":       {wiretest.TransferBroken, "10.505", open},
		"invalid, free":          {limited, "10.505", free},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := []wiretest.Exchange{tc.first}
			if tc.want.is == "success" {
				asked = append(asked, wiretest.TransferDone)
			}
			c := wiretest.Converse(t, asked)
			_ = send(t, c)
			assert.Equal(t, tc.want, toldBy(t, sendAmount(t, c, tc.amount)))
			if tc.want.step == cardwire.StepFail {
				assert.Equal(t, cardwire.StepFail, cardwire.NextStep(send(t, c)), "a failed order is never sent")
			}
		})
	}
}

// What an invalid request would have sent is not known: it is another than any that was sent.
func TestAnInvalidRequestIsAnotherOne(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{{
		Want: wiretest.Anything, Response: `{"code":200,"msg":"ok","data":true}`,
	}})
	r := cardwire.Request{Op: "Close", Method: http.MethodPost, Path: "/x", Reference: "M-1"}
	_, err := cardwire.Call[any](t.Context(), c, r)
	require.NoError(t, err)
	r.Form, r.JSON = url.Values{}, map[string]string{}
	_, err = cardwire.Call[any](t.Context(), c, r)
	assert.Equal(t, otherBody, toldBy(t, err))
}

// otherBody is what the caller of another request with a reference is told, unless nothing happened.
var otherBody = told{"Unknown DuplicateIntent OtherBody", cardwire.StepReconcile}

// limited refuses for now.
var limited = wiretest.Exchange{Want: wiretest.Anything, Status: 429, Response: `{"code":429,"msg":"slow down"}`}

func TestWhatMovesMoneyNeedsAJournalThatWasChosen(t *testing.T) {
	t.Parallel()
	service := wiretest.Script(t)
	c, err := cardwire.New(wiretest.Base, wiretest.Key, cardwire.WithHTTPClient(&http.Client{Transport: service}))
	require.NoError(t, err)
	invalid := wiretest.SmallTransfer("M-2")
	invalid.PayoutCurrency = "euro"
	write := cardwire.Request{Op: "Close", Method: http.MethodDelete, Path: "/x", Reference: "M-3"}
	unnamed := cardwire.Request{Op: "Close", Method: http.MethodPost, Path: "/x"}
	for of, err := range map[string]error{
		"CreateTransfer M-1": send(t, c),
		"CreateTransfer M-2": wiretest.OnlyError(c.CreateTransfer(t.Context(), invalid)),
		"Close M-3":          wiretest.OnlyError(cardwire.Call[any](t.Context(), c, write)),
		"Close":              wiretest.OnlyError(cardwire.Call[any](t.Context(), c, unnamed)),
	} {
		require.EqualError(t, err, "cardwire: "+of+": not sent: invalid setup: no journal: pass WithJournal with "+
			"sqljournal's, or with journal.NewMemory if an order may be paid again after a restart: "+
			"correct it, then call again")
		assert.Equal(t, told{"NotSent Setup", cardwire.StepRetry}, toldBy(t, err))
	}
}

// Of a record one call at a time cancels or retries, until what an earlier one did is certain. The
// copies of a client share what they know; a journal is not asked.
func TestARecordIsCanceledOrRetriedOnceAtATime(t *testing.T) {
	t.Parallel()
	const id = wiretest.UUID
	const request = "POST /shop/api/v1/cards/adjustAction\napplication/x-www-form-urlencoded\n\nclient_transaction_id="
	broken := wiretest.Exchange{Want: request + strings.ToUpper(id) + "&type=cancel", Err: wiretest.ErrBroken}
	again := wiretest.Exchange{Want: request + id + "&type=retry", Response: wiretest.Success("true")}
	const ask = ": look at the card, or ask the service about " + id + ", at 2000-01-01T00:10:30Z or later: " +
		"the service accepts only records that have failed"
	for name, tc := range map[string]struct {
		first wiretest.Exchange
		wait  time.Duration // after the first call
		want  string        // of the second; "": it is sent
	}{
		"unknown": {broken, 10*time.Minute + 30*time.Second - 1, "cardwire: RetryOperation " + id +
			": unknown outcome: the outcome of an earlier call with this reference is unknown" + ask},
		"unknown, settled": {broken, 10*time.Minute + 30*time.Second, ""},
		"refused": {wiretest.Exchange{
			Want: wiretest.Anything, Status: 422, Response: `{"code":422,"msg":"balance too low","data":null}`,
		}, 0, ""},
		"executed": {wiretest.Exchange{Want: wiretest.Anything, Response: wiretest.Success("true")}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked, journal := []wiretest.Exchange{tc.first}, new(wiretest.Journal)
				if tc.want == "" {
					asked = append(asked, again)
				}
				c := wiretest.Converse(t, asked, cardwire.WithJournal(journal))
				copied := *c
				err := c.CancelOperation(t.Context(), strings.ToUpper(id))
				if tc.first.Err != nil {
					require.EqualError(t, err, "cardwire: CancelOperation "+id+": unknown outcome: the HTTP client "+
						"returned an error (*errors.errorString)"+ask)
					assert.Equal(t, told{"Unknown", cardwire.StepReconcile}, toldBy(t, err))
				}
				time.Sleep(tc.wait)
				if err = copied.RetryOperation(t.Context(), id); tc.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, tc.want)
					assert.Equal(t, told{"Unknown DuplicateIntent", cardwire.StepReconcile}, toldBy(t, err))
				}
				assert.Empty(t, journal.Begun)
			})
		})
	}
}

// What is kept of cancels and retries is bounded: until the first are settled no other is sent.
func TestTooManyRecordsAreUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := wiretest.NewClient(t, wiretest.Always(500, ""))
		const most = 4096
		for n := range most {
			assert.Equal(t, unknown, wiretest.Failure(t, c.CancelOperation(t.Context(), record(n))).Outcome)
		}
		err := c.CancelOperation(t.Context(), record(most))
		require.ErrorContains(t, err,
			": not sent: of 4096 records it is unknown whether they were canceled or retried: ")
		assert.Equal(t, told{"NotSent", cardwire.StepRetry}, toldBy(t, err))
		time.Sleep(10*time.Minute + 30*time.Second)
		assert.Equal(t, unknown, wiretest.Failure(t, c.CancelOperation(t.Context(), record(most))).Outcome)
	})
}

// record is the client transaction ID of a record.
func record(n int) string { return fmt.Sprintf("6f1ab0f2-3c53-4f0c-9f0a-%012d", n) }

// hashOf is a hash of sorted fields, each preceded by its length.
// Its form must not change: journals compare across releases.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestJournalIsToldOfEachWrite(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		intent cardwire.Intent
		result cardwire.IntentResult
	}{
		"CreateTransfer": {cardwire.Intent{
			Op: "CreateTransfer", Reference: "M-1", Amount: wiretest.Dec("10.50"), Currency: "EUR",
			BodySHA256: hashOf("15:merchantOrderNo3:M-114:payoutCurrency3:EUR14:transferAmount5:10.50"),
		}, cardwire.IntentResult{ServiceID: "A-1", Status: "wait_process"}},
		"CloseCard": {intent: cardwire.Intent{
			Op: "CloseCard", Reference: "C-1", BodySHA256: hashOf("17:POST /cards/close0:6:cardId2:c1"),
		}},
	}
	for _, w := range wiretest.AllWrites() {
		t.Run(string(w.Op), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var events []string
				journal := &wiretest.Journal{
					OnBegin: func(context.Context, cardwire.Intent) error {
						events = append(events, "begin")
						return nil
					},
					OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error {
						events = append(events, "end")
						return nil
					},
				}
				c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
					events = append(events, "request")
					time.Sleep(time.Second)
					return wiretest.Response(r, 200, wiretest.Success(w.Data)), nil
				}), cardwire.WithJournal(journal))
				began := time.Now()
				require.NoError(t, w.Call(t.Context(), c))
				expected, isRecorded := want[string(w.Op)]
				if !isRecorded {
					assert.Equal(t, []string{"request"}, events)
					return
				}
				require.Equal(t, []string{"begin", "request", "end"}, events)
				got := journal.Begun[0]
				assert.Equal(t, got, journal.Ended[0])
				assert.NotEmpty(t, got.Call)
				expected.intent.Call, expected.intent.Service, expected.intent.Time = got.Call, wiretest.Base, began
				expected.intent.SendBy = began.Add(30 * time.Second)
				expected.intent.SettledBy = began.Add(30*time.Second + 10*time.Minute)
				assert.Equal(t, expected.intent, got)
				expected.result.Outcome = executed
				assert.Equal(t, expected.result, journal.Results[0])

				require.NoError(t, w.Call(t.Context(), c))
				assert.NotEqual(t, got.Call, journal.Begun[1].Call, "each call has its own")
			})
		})
	}
}

// A database that refuses a character or a length would leave an executed intent open.
func TestServiceIDsAreCleanedBeforeAnyoneGetsThem(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 30<<10)
	for name, tc := range map[string]struct {
		sent  string // in JSON
		want  string
		drift bool
	}{
		"visible":            {`A-1/é_7`, "A-1/é_7", false},
		"128 bytes":          {"11" + long[:126], "11" + long[:126], false},
		"a NUL":              {`A\u0000-1`, "A-1", true},
		"nothing but a NUL":  {`\u0000`, "", true},
		"a hidden character": {`A\u200b-1`, "A-1", true},
		"129 bytes":          {"1" + long[:128], "1" + long[:126], true},
		"cut before a space": {strings.Repeat("1", 127) + " yz", strings.Repeat("1", 127), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := `{"merchant_order_no":"M-1","api_order_no":"` + tc.sent + `","status":"wait_process"}`
			journal := new(wiretest.Journal)
			observe, drift := wiretest.Drifts()
			c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(data), observe, cardwire.WithJournal(journal))
			got, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			if tc.want == "" {
				require.ErrorIs(t, err, cardwire.ErrUnreadable)
			} else {
				require.NoError(t, err)
				assert.Equal(t, tc.want, got.APIOrderNo)
			}
			assert.Equal(t, executed, journal.Results[0].Outcome, "it names its order")
			assert.Equal(t, tc.want, journal.Results[0].ServiceID)
			cleaned := cardwire.Drift{Path: "data.api_order_no", Kind: "identifier with invisible characters"}
			assert.Equal(t, tc.drift, slices.Contains(*drift, cleaned))
		})
	}
}

func TestJournalIsToldOfEachEnding(t *testing.T) {
	t.Parallel()
	about := func(data string) wiretest.Exchange {
		return wiretest.Exchange{Want: wiretest.SmallTransferRequest("M-1"), Response: wiretest.Success(data)}
	}
	otherOrder := `{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`
	isUnknown := func(why string) cardwire.IntentResult {
		return cardwire.IntentResult{Outcome: unknown, Reason: "unknown outcome" + why}
	}
	const withoutNumber = ", HTTP 200, code 200: the response is unreadable: data.api_order_no is missing"
	for name, tc := range map[string]struct {
		asked wiretest.Exchange
		want  cardwire.IntentResult
	}{
		"success": {wiretest.TransferDone, cardwire.IntentResult{
			Outcome: executed, ServiceID: "A-1", Status: "wait_process",
		}},
		"a status that nobody can see": {
			about(`{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait\u0000"}`),
			cardwire.IntentResult{Outcome: executed, ServiceID: "A-1"},
		},
		"half readable": {
			wiretest.TransferUnreadable, cardwire.IntentResult{
				Outcome: executed, ServiceID: "A-7",
				Reason: "executed, HTTP 200, code 200: the response is unreadable: data.status: expected a string",
			},
		},
		"no response": {wiretest.TransferBroken,
			isUnknown(": the HTTP client returned an error (*errors.errorString)")},
		"no identifier": {about(`{}`), isUnknown(withoutNumber)},
		"about a different order": {about(otherOrder),
			isUnknown(", HTTP 200, code 200: the response is about a different order")},
		"another order without a number": {about(`{"merchant_order_no":"M-2","status":"wait_process"}`),
			isUnknown(withoutNumber)},
		"refused for good": {
			wiretest.TransferRefused,
			cardwire.IntentResult{Outcome: refused, Reason: "refused, HTTP 422, code 422", Final: true},
		},
		"refused for its rate": {
			limited,
			cardwire.IntentResult{Outcome: refused, Reason: "refused, HTTP 429, code 429"},
		},
		"refused for its key": {
			wiretest.Exchange{Want: wiretest.Anything, Status: 401}, cardwire.IntentResult{
				Outcome: refused, Reason: "refused, HTTP 401: the response is not strict JSON: it ends too early",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := new(wiretest.Journal)
			c := wiretest.Converse(t, []wiretest.Exchange{tc.asked}, cardwire.WithJournal(journal))
			if err := send(t, c); err != nil {
				assert.Equal(t, tc.want.Outcome, wiretest.Failure(t, err).Outcome)
			}
			assert.Equal(t, []cardwire.IntentResult{tc.want}, journal.Results)
		})
	}
}

// What fails before the first byte was not sent, even if it panics.
func TestWhatFailsAfterBegin(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	limiter := func(f func() error) cardwire.Option {
		return cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return f() }))
	}
	keys := func(f func() error) cardwire.Option {
		return cardwire.WithKeySource(func(context.Context) (string, error) { return "", f() })
	}
	doer := func(f func() error) cardwire.Option {
		return cardwire.WithHTTPClient(wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
			return nil, f()
		}))
	}
	for name, tc := range map[string]struct {
		opt  func(func() error) cardwire.Option
		want cardwire.Outcome
		why  string
	}{
		"the limiter":    {limiter, notSent, "not sent: the rate limiter returned an error"},
		"the key source": {keys, notSent, "not sent: the key source failed"},
		"the doer":       {doer, unknown, "unknown outcome: the HTTP client returned an error (*errors.errorString)"},
	} {
		for _, panics := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, panics %t", name, panics), func(t *testing.T) {
				t.Parallel()
				journal := new(wiretest.Journal)
				var ended []cardwire.CallResult
				c := wiretest.Unasked(t, cardwire.WithJournal(journal), resultsOf(&ended), tc.opt(func() error {
					if panics {
						panic("a panic of caller code")
					}
					return broken
				}))
				if panics {
					assert.PanicsWithValue(t, "a panic of caller code", func() { _ = send(t, c) })
				} else {
					require.Error(t, send(t, c))
				}
				why := tc.why
				if panics {
					why, _, _ = strings.Cut(why, ":")
				}
				assert.Equal(t, []cardwire.IntentResult{{Outcome: tc.want, Reason: why}}, journal.Results)
				require.Len(t, ended, 1)
				assert.Equal(t, tc.want, ended[0].Outcome)
			})
		}
	}
}

// Its order fails, so the number is closed first, and what the journal then says is told.
func TestAReferenceOfAnInvalidRequestIsClosed(t *testing.T) {
	t.Parallel()
	closed := told{"NotSent InvalidParams", cardwire.StepFail}
	open := told{"Unknown DuplicateIntent", cardwire.StepReconcile}
	done := &cardwire.DuplicateIntent{Outcome: executed}
	invalid := wiretest.SmallTransfer("M-1")
	invalid.TransferAmount = wiretest.Dec("10.505")
	for name, tc := range map[string]struct {
		void error
		want told
	}{
		"closed":                 {nil, closed},
		"executed":               {done, told{"Executed DuplicateIntent", cardwire.StepDone}},
		"unknown":                {&cardwire.DuplicateIntent{}, open},
		"in progress":            {inProgress(1), told{"Unknown DuplicateIntent", cardwire.StepWait}},
		"the journal is down":    {errDown, told{"NotSent", cardwire.StepRetry}},
		"another body, executed": {errors.Join(cardwire.ErrOtherBody, done), otherBody},
	} {
		journal := &wiretest.Journal{OnVoid: func(cardwire.Intent) error { return tc.void }}
		heard, errs := journalErrors()
		c := wiretest.Unasked(t, cardwire.WithJournal(journal), heard)
		_, err := c.CreateTransfer(t.Context(), invalid)
		assert.Equal(t, tc.want, toldBy(t, err), name)
		assert.Equal(t, "M-1", journal.Voided[0].Reference, name)
		assert.Equal(t, invalid.Digest(), journal.Voided[0].BodySHA256, name)
		assert.Zero(t, journal.Voided[0].Amount, "a journal keeps for good what may be a card number")
		assert.Empty(t, journal.Voided[0].Currency)
		assert.Equal(t, errors.Is(tc.void, errDown), len(*errs) == 1, "%s: the observer hears of a failure", name)
	}
	journal := new(wiretest.Journal)
	c := wiretest.Unasked(t, cardwire.WithJournal(journal))
	_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: "case 4711\x00"})
	assert.Equal(t, closed, toldBy(t, err))
	_, err = c.GetCard(t.Context(), "")
	assert.Equal(t, closed, toldBy(t, err), "a read that can never be sent")
	_, err = c.UploadImage(t.Context(), cardwire.UploadImageParams{})
	assert.Equal(t, closed, toldBy(t, err))
	assert.Empty(t, journal.Voided, "what can be no reference is in no journal")
}

// errDown is an error of a journal, which may contain anything.
var errDown = errors.New("the database of 4111111111111111 is down")

func inProgress(left time.Duration) error {
	return &cardwire.DuplicateIntent{InProgress: true, Remaining: left}
}

// journalErrors returns an observer that gathers what it hears of the journal.
func journalErrors() (cardwire.Option, *[]error) {
	heard := new([]error)
	return cardwire.WithObserver(cardwire.Observer{
		JournalError: func(_ context.Context, _ cardwire.CallInfo, err error) { *heard = append(*heard, err) },
	}), heard
}

// Any error of Begin means that nothing is sent.
func TestNothingIsSentThatTheJournalDidNotRecord(t *testing.T) {
	t.Parallel()
	of := func(o cardwire.Outcome) error { return &cardwire.DuplicateIntent{Outcome: o} }
	and := func(err error) error { return fmt.Errorf("%w: %w", errDown, err) }
	contradiction := &cardwire.DuplicateIntent{Outcome: executed, InProgress: true}
	for want, errs := range map[told][]error{
		{"NotSent", cardwire.StepRetry}:                 {errDown},
		{"Executed DuplicateIntent", cardwire.StepDone}: {of(executed), and(of(executed))},
		{"Refused DuplicateIntent", cardwire.StepFail}:  {of(refused)},
		{"NotSent DuplicateIntent", cardwire.StepFail}:  {of(notSent)},
		{"Unknown DuplicateIntent", cardwire.StepWait}:  {inProgress(7 * time.Second), inProgress(-1)},
		{"Unknown DuplicateIntent", cardwire.StepReconcile}: {
			of(unknown), and(of(unknown)), of(7), of(-1), (*cardwire.DuplicateIntent)(nil), contradiction,
			cardwire.ErrDuplicateIntent, and(cardwire.ErrDuplicateIntent),
		},
	} {
		for _, begin := range errs {
			journal := begins(begin)
			err := send(t, wiretest.Unasked(t, cardwire.WithJournal(journal)))
			assert.Equal(t, want, toldBy(t, err), "%#v", begin)
			assert.Equal(t, "M-1", wiretest.Failure(t, err).Reference)
			assert.NotContains(t, err.Error(), "4111", "the message of a cause may contain anything")
			assert.Equal(t, errors.Is(begin, errDown), errors.Is(err, errDown), "what the journal says is found")
			assert.Empty(t, journal.Ended, "what was not begun does not end")
		}
	}
	err := send(t, wiretest.Unasked(t, cardwire.WithJournal(begins(inProgress(7*time.Second)))))
	assert.Equal(t, 7*time.Second, wiretest.Failure(t, err).RetryAfter)
	err = send(t, wiretest.Unasked(t, cardwire.WithJournal(begins(inProgress(-1)))))
	assert.Zero(t, wiretest.Failure(t, err).RetryAfter, "a wait that is in the past")
}

// Two accounts have an order M-1 each: told "done" of the other's, a caller books it as paid.
func TestTwoAccountsNeedTwoJournals(t *testing.T) {
	t.Parallel()
	memory := journal.NewMemory()
	first := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferDone}, cardwire.WithJournal(memory),
		cardwire.WithAccount("main"))
	require.NoError(t, send(t, first))
	for account, shown := range map[string]string{"": `""`, "second": `"second"`} {
		second := wiretest.Unasked(t, cardwire.WithJournal(memory), cardwire.WithAccount(account))
		err := send(t, second)
		require.EqualError(t, err, `cardwire: CreateTransfer M-1: not sent: the journal did not record the intent: `+
			`the journal belongs to the account "main", and the call is for `+shown+`: check WithAccount, and use a `+
			`separate journal for each account: call again once that is corrected`)
		assert.Equal(t, told{"NotSent", cardwire.StepRetry}, toldBy(t, err))
	}
	assert.Equal(t, told{"Executed DuplicateIntent", cardwire.StepDone}, toldBy(t, send(t, first)))
	_, err := cardwire.New(wiretest.Base, wiretest.Key, cardwire.WithAccount("main "))
	assert.EqualError(t, err, "cardwire: invalid setup: WithAccount: name begins or ends with white space")
}

// An order that is reserved is sent as it was reserved, and no other request under its number fails it.
func TestAReservedOrder(t *testing.T) {
	t.Parallel()
	memory := journal.NewMemory()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferDone}, cardwire.WithJournal(memory))
	reserved := cardwire.Intent{
		Op: cardwire.OpCreateTransfer, Reference: "M-1", BodySHA256: wiretest.SmallTransfer("M-1").Digest(),
	}
	require.NoError(t, memory.Reserve(t.Context(), reserved))
	for _, amount := range []string{"99.00", "-1"} {
		err := sendAmount(t, c, amount)
		assert.Equal(t, otherBody, toldBy(t, err))
		require.EqualError(t, err, "cardwire: CreateTransfer M-1: unknown outcome: this reference is reserved for a "+
			"different request: send the request that it is reserved for, or use a new reference")
	}
	require.NoError(t, send(t, c))
}

// Nobody but GetCard tells what became of a freeze, and a second one does no harm.
func TestAFreezeThatIsUnknown(t *testing.T) {
	t.Parallel()
	c := wiretest.NewClient(t, wiretest.Always(500, ""))
	for range 2 {
		_, err := c.FreezeCard(t.Context(),
			cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: wiretest.FreezeID})
		require.EqualError(t, err,
			"cardwire: FreezeCard "+wiretest.FreezeID+": unknown outcome, HTTP 500: the response is "+
				"from a gateway in front of the service: look at the card before freezing it again")
		assert.Equal(t, told{"Unknown Unreadable", cardwire.StepReconcile}, toldBy(t, err))
	}
}

// What was executed under the reference was not this: told "executed", a caller
// would book it as paid.
func TestAnotherBodyUnderAReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		first error // what else is known of the first; nil: it did not happen
		want  told
	}{
		{nil, told{"NotSent OtherBody", cardwire.StepFail}},
		{&cardwire.DuplicateIntent{}, otherBody},
		{&cardwire.DuplicateIntent{Outcome: executed}, otherBody},
		{inProgress(1), told{otherBody.is, cardwire.StepWait}},
	} {
		journal := begins(fmt.Errorf("4111111111111111: %w", errors.Join(cardwire.ErrOtherBody, tc.first)))
		err := send(t, wiretest.Unasked(t, cardwire.WithJournal(journal)))
		assert.Equal(t, tc.want, toldBy(t, err))
		require.ErrorContains(t, err, ": this reference was already used for a different request: ")
		assert.NotContains(t, err.Error(), "4111")
		assert.Len(t, journal.Voided, map[bool]int{true: 1}[tc.first == nil], "a failed order is closed")
		if tc.first == nil {
			require.ErrorContains(t, err, ": nothing was executed under it: use a new reference")
			continue
		}
		var taken *cardwire.DuplicateIntent
		require.ErrorAs(t, err, &taken)
		assert.Equal(t, tc.first, taken, "how the first stands is found")
	}
}

// Told "fail" of what is not on record, a merchant fails an order that support does not
// know to be failed, and that a late message pays.
func TestAResultThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	twice := fmt.Errorf("%w: %w", errDown, &cardwire.DuplicateIntent{Outcome: executed})
	closed := &cardwire.DuplicateIntent{Outcome: refused}
	reconcile, done := told{"Unknown", cardwire.StepReconcile}, told{"Executed DuplicateIntent", cardwire.StepDone}
	unreadable := told{"Executed Unreadable", cardwire.StepDone}
	waits := told{"Unknown DuplicateIntent", cardwire.StepWait}
	failed := told{"Refused DuplicateIntent", cardwire.StepFail}
	for name, tc := range map[string]struct {
		asked wiretest.Exchange
		end   error
		want  told
	}{
		"a success":                       {wiretest.TransferDone, errDown, told{"success", cardwire.StepDone}},
		"a success, executed twice":       {wiretest.TransferDone, twice, told{"success", cardwire.StepDone}},
		"executed, unreadably":            {wiretest.TransferUnreadable, errDown, unreadable},
		"a refusal":                       {wiretest.TransferRefused, errDown, reconcile},
		"a refusal for now":               {limited, errDown, told{"Unknown RateLimited", cardwire.StepReconcile}},
		"a refusal, executed meanwhile":   {wiretest.TransferRefused, twice, done},
		"unknown":                         {wiretest.TransferBroken, errDown, reconcile},
		"unknown, denied and closed":      {wiretest.TransferBroken, closed, failed},
		"a refusal of another one's call": {wiretest.TransferRefused, inProgress(1), waits},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			heard, errs := journalErrors()
			c := wiretest.Converse(t, []wiretest.Exchange{tc.asked}, cardwire.WithJournal(ends(tc.end)),
				cardwire.WithObserver(cardwire.Observer{}), heard, logTo(&log, slog.LevelInfo))
			assert.Equal(t, tc.want, toldBy(t, send(t, c)))
			require.Len(t, *errs, 1)
			require.ErrorIs(t, (*errs)[0], tc.end)
			const line = `level=ERROR msg="cardwire: the journal failed" operation=CreateTransfer reference=M-1 `
			assert.Contains(t, log.String(), line)
			assert.NotContains(t, log.String()+(*errs)[0].Error(), "4111")
		})
	}
	no := cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return errors.New("no") }))
	c := wiretest.Unasked(t, cardwire.WithJournal(ends(errDown)), no)
	assert.Equal(t, reconcile, toldBy(t, send(t, c)), "not sent")
}

// The caller may be gone when the result is recorded.
func TestTheResultIsRecordedAfterTheCallerHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), wiretest.ContextKey{}, "kept"))
		type result = cardwire.IntentResult
		journal := &wiretest.Journal{OnEnd: func(ctx context.Context, _ cardwire.Intent, _ result) error {
			assert.NoError(t, ctx.Err())
			assert.Equal(t, "kept", ctx.Value(wiretest.ContextKey{}))
			end, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, 5*time.Second, time.Until(end))
			return nil
		}}
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			cancel()
			return nil, r.Context().Err()
		}), cardwire.WithJournal(journal))
		_, err := c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1"))
		require.ErrorIs(t, err, context.Canceled)
		want := []cardwire.IntentResult{{Outcome: unknown, Reason: "unknown outcome: the call was canceled"}}
		assert.Equal(t, want, journal.Results)
	})
}

// digests returns the function that sends a write, which is refused, and returns its digest.
func digests(t *testing.T) func(call func(*cardwire.Client) error) string {
	t.Helper()
	journal := new(wiretest.Journal)
	c := wiretest.NewClient(t, wiretest.Always(422, `{"code":422,"msg":"invalid account"}`),
		cardwire.WithJournal(journal))
	return func(call func(*cardwire.Client) error) string {
		t.Helper()
		assert.Equal(t, refused, wiretest.Failure(t, call(c)).Outcome)
		return journal.Begun[len(journal.Begun)-1].BodySHA256
	}
}

// The body of a Call is what is sent, and where to.
func TestTheDigestTellsBodiesApart(t *testing.T) {
	t.Parallel()
	digest := digests(t)
	closing := func(r cardwire.Request) string {
		return digest(func(c *cardwire.Client) error {
			r.Op, r.Method, r.Path, r.Reference = "Close", "POST", "/close"+r.Path, "R-1"
			return wiretest.OnlyError(cardwire.Call[any](t.Context(), c, r))
		})
	}
	body := func(v any) string { return closing(cardwire.Request{JSON: v}) }
	query := func(path, x string) string { return closing(cardwire.Request{Path: path, Query: url.Values{"x": {x}}}) }
	file := func(data, contentType string) string {
		p := cardwire.UploadImageParams{Filename: "a.png", ContentType: contentType, Data: []byte(data)}
		return closing(cardwire.Request{Multipart: []cardwire.Part{{Name: "front", File: &p}}})
	}
	for _, same := range [][2]string{
		{file(pngHead+"1", ""), file(pngHead+"1", "image/png")},
		{body(map[string]any{"a": 1, "b": "x"}), body(map[string]any{"b": "x", "a": 1})},
		{query("/a", "1"), query("/a", "1")},
	} {
		assert.Equal(t, same[0], same[1])
	}
	for _, other := range [][2]string{
		{body([]int{1}), body([]int{2})},
		{query("/a", "1"), query("/b", "1")},
		{query("/a", "1"), query("/a", "2")},
		{file(pngHead+"1", ""), file(pngHead+"2", "")}, // of equal name, type and size
		{file(pngHead, ""), file(pngHead, "image/x-scan")},
	} {
		assert.NotEqual(t, other[0], other[1])
	}
}

// A journal that hangs ends with the call's own deadline.
func TestTheJournalIsAskedWithinTheCallsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		journal := &wiretest.Journal{OnBegin: func(ctx context.Context, _ cardwire.Intent) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		c := wiretest.Unasked(t, cardwire.WithJournal(journal), cardwire.WithTimeout(7*time.Second))
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, ctx := range []context.Context{t.Context(), long} {
			start := time.Now()
			_, err := c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1"))
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, notSent, wiretest.Failure(t, err).Outcome)
			assert.Equal(t, 7*time.Second, time.Since(start))
		}
	})
}

// A method other than GET is a write, which is sent once, and needs a reference.
func TestCallIsAWriteUnlessItIsReadOnly(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		want := method + " /shop/api/v1/close\napplication/x-www-form-urlencoded\n\n"
		c := wiretest.Converse(t, []wiretest.Exchange{{Want: want, Status: 502}})
		closing := cardwire.Request{Op: "CloseCard", Method: method, Path: "/close"}
		_, err := cardwire.Call[any](t.Context(), c, closing)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, "Reference")
		assert.Equal(t, told{"NotSent InvalidParams", cardwire.StepFail}, toldBy(t, err), "it is no setup")

		closing.Reference = "R-1"
		_, err = cardwire.Call[any](t.Context(), c, closing)
		assert.Equal(t, told{"Unknown Unreadable", cardwire.StepReconcile}, toldBy(t, err), method)
		assert.False(t, wiretest.Failure(t, err).ReadOnly)
	}
	journal := new(wiretest.Journal)
	quick := cardwire.WithRetry(wiretest.QuickRetry)
	c := wiretest.NewClient(t, wiretest.Always(502, ""), cardwire.WithJournal(journal), quick)
	search := cardwire.Request{Op: "Search", Method: "POST", Path: "/search", ReadOnly: true}
	_, err := cardwire.Call[any](t.Context(), c, search)
	assert.True(t, wiretest.Failure(t, err).ReadOnly)
	assert.Len(t, wiretest.Failure(t, err).Attempts, 3)
	assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
	assert.Empty(t, journal.Begun, "reads are not recorded")
}

// These values are in the journals of others. A digest that changes with a release
// turns every order that is pending then into ErrOtherBody: do not change them. They
// were computed by another program: the SHA-256 over all names and values that are
// sent, sorted by name, each preceded by its length in bytes and a colon.
func TestBodyDigestsAreTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	few := wiretest.SmallTransfer("order-1")
	few.TransferAmount = wiretest.Dec("10")
	var digested []string // before they are sent
	transfer := func(p cardwire.TransferParams) func(*cardwire.Client) error {
		digested = append(digested, p.Digest())
		return func(c *cardwire.Client) error { return wiretest.OnlyError(c.CreateTransfer(t.Context(), p)) }
	}
	for want, call := range map[string]func(*cardwire.Client) error{
		"be18847abad7cc1f172c0c52392a88a4460aa91c71fd0f1744d84104df446e2f": transfer(few),
		"e15a892dfd38bee0bd0463942b2e77562fcaed8660d18ab6cc38abda4eb63543": transfer(fullTransfer()),
	} {
		assert.Equal(t, want, digests(t)(call))
	}
	assert.Equal(t, []string{
		"be18847abad7cc1f172c0c52392a88a4460aa91c71fd0f1744d84104df446e2f",
		"e15a892dfd38bee0bd0463942b2e77562fcaed8660d18ab6cc38abda4eb63543",
	}, digested)
	for body, want := range map[string]string{ // as it is kept
		`{"merchantOrderNo":"A-1","payoutCurrency":"EUR","transferAmount":"12.50"}`://
		"a251f2a46d3beeb434e2adaeb67b8d91e3fb231fca26ef3b154454368cda1f40",
		`{"transferAmount":"0.01","payoutCurrency":"USD","merchantOrderNo":"A-1",
"senderFirstName":"Åda","receiverBankAccountNumber":"DE00","extra":"x"}`: //
		"3acee19c5ea32bf96ac8747361ad9c3ea9133916208a2fb7399c1c79ce5deecc",
	} {
		var p cardwire.TransferParams
		require.NoError(t, p.UnmarshalJSON([]byte(body)))
		assert.Equal(t, want, p.Digest())
	}
}

// Data of a freeze names nothing, so it must at least look like an identifier; and a refusal
// that carries one may be about a second delivery.
func TestTheRecordOfAFreeze(t *testing.T) {
	t.Parallel()
	freeze := func(status int, body string) told {
		c := wiretest.NewClient(t, wiretest.Always(status, body))
		_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1"})
		return toldBy(t, err)
	}
	for data, isRecord := range map[string]bool{
		`"` + wiretest.UUID + `"`: true, `"op_7"`: true, `"OP-0007"`: true, `7`: true, `"7"`: true,
		`"` + strings.Repeat("a", 63) + `7"`: true,

		`"` + strings.Repeat("a", 64) + `7"`: false, `"failed"`: false, `"error 404"`: false, `"error:404"`: false,
		`"-1"`: false, `-1`: false, `0`: false, `"0"`: false, `"0000-0000"`: false, `"<b>7</b>"`: false, `"7é"`: false,
		`false`: false, `true`: false, `null`: false, `""`: false, `{}`: false, `["7"]`: false,
	} {
		accepted, rejected := "Unknown Unreadable", "Refused"
		if isRecord {
			accepted, rejected = "success", "Unknown"
		}
		assert.Equal(t, accepted, freeze(200, wiretest.Success(data)).is, data)
		assert.Equal(t, rejected, freeze(422, `{"code":422,"msg":"no","data":`+data+`}`).is, data)
	}
}
