package cardwire

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What becomes of an order when it is called again, refused, or called wrongly: the
// step that NextStep returns must hold for the order, not only for the call.

// A method other than GET is a write, which is sent once.
func TestCallIsAWriteUnlessItIsReadOnly(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		c := converse(t, []exchange{{want: method + " /shop/api/v1/close\napplication/x-www-form-urlencoded\n\n", status: 502}})
		_, err := Call[any](t.Context(), c, Request{Op: "CloseCard", Method: method, Path: "/close"})
		assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 502}, factsOf(t, err), method)
		assert.False(t, failure(t, err).ReadOnly)
		assert.Equal(t, StepReconcile, NextStep(err))
	}
	read := exchange{want: "POST /shop/api/v1/search\napplication/x-www-form-urlencoded\n\n", status: 502}
	c := converse(t, []exchange{read, read}, WithRetry(RetryPolicy{MaxRetries: 1}))
	_, err := Call[any](t.Context(), c, Request{Op: "Search", Method: "POST", Path: "/search", ReadOnly: true})
	assert.True(t, failure(t, err).ReadOnly)
	assert.Equal(t, StepRetry, NextStep(err))
}

func TestCallNeedsAReferenceWhereThereIsAJournal(t *testing.T) {
	t.Parallel()
	journal := new(scriptedJournal)
	_, err := Call[any](t.Context(), unasked(t, WithJournal(journal)), Request{Op: "CloseCard", Method: "POST", Path: "/close"})
	require.ErrorIs(t, err, ErrSetup)
	require.ErrorIs(t, err, ErrNotSent)
	assert.Equal(t, StepRetry, NextStep(err))
	assert.Empty(t, journal.begun)
}

// Data that T accepts is a success, data that T refuses proves nothing.
func TestCallWithDataThatTRefusesIsUnknown(t *testing.T) {
	t.Parallel()
	const want = "POST /shop/api/v1/close\napplication/x-www-form-urlencoded\n\n"
	call := func(data string) (struct{ ID string }, error) {
		c := answered(t, want, success(data))
		return Call[struct{ ID string }](t.Context(), c, Request{Op: "CloseCard", Method: "POST", Path: "/close", Reference: "R-1"})
	}
	got, err := call(`{"id":"A-1"}`)
	require.NoError(t, err)
	assert.Equal(t, "A-1", got.ID)
	for _, data := range []string{`7`, `[]`, `null`, `{"id":7}`} {
		_, err = call(data)
		assert.Equal(t, "Unknown Unreadable", factsOf(t, err).Is, data)
	}
}

func TestAnExecutedOrderIsNotSentAgain(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{transferDone})
	_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	require.NoError(t, err)

	_, err = c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed DuplicateIntent"}, factsOf(t, err))
	assert.Equal(t, StepDone, NextStep(err))
	var d *DuplicateIntent
	require.ErrorAs(t, err, &d)
	assert.Equal(t, &DuplicateIntent{Outcome: OutcomeExecuted, ServiceID: "A-1"}, d)

	other := smallTransfer("M-1")
	other.TransferAmount = dec("11.50")
	_, err = c.CreateTransfer(t.Context(), other)
	assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"}, factsOf(t, err), "another body was not executed")
	assert.Equal(t, StepReconcile, NextStep(err))
}

// One that was executed unreadably is known to be executed, too.
func TestAnOrderThatWasExecutedUnreadablyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{transferStrange})
	_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	require.ErrorIs(t, err, ErrExecuted)
	_, err = c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed DuplicateIntent"}, factsOf(t, err))
}

func TestAnUnknownOrderIsNotSentWithAnotherBody(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{transferUnanswered})
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	other := smallTransfer("M-1")
	other.TransferAmount = dec("11.50")
	_, err := c.CreateTransfer(t.Context(), other)
	assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"}, factsOf(t, err))
}

// The service is sent what it deduplicates, and its refusal does not undo what is known.
func TestServerDeduplicatesSendsAnExecutedOrderAgain(t *testing.T) {
	t.Parallel()
	deduplicates := WithProfile(func(p *Profile) { p.ServerDeduplicates = true })
	c := converse(t, []exchange{transferDone, transferDone, transferRefused, transferUnanswered}, deduplicates)
	for range 2 {
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
		require.NoError(t, err)
	}
	for range 2 {
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
		require.ErrorIs(t, err, ErrExecuted)
		assert.Equal(t, StepDone, NextStep(err))
	}
}

// With a journal the journal alone decides.
func TestAJournalDecidesWhatTheClientRemembers(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{transferDone, transferDone, transferUnanswered, transferRefused}, WithJournal(new(scriptedJournal)))
	for range 2 {
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
		require.NoError(t, err)
	}
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, "Refused", factsOf(t, err).Is, "the journal granted the reference: it was resolved as not executed")
	assert.Equal(t, StepFail, NextStep(err))
}

func TestTheJournalIsToldWhatIsFinal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked exchange
		want  IntentResult
	}{
		"refused for good": {transferRefused, IntentResult{Outcome: OutcomeRefused, Final: true}},
		"for its rate":     {exchange{want: anything, status: 429, reply: `{"code":429,"msg":"slow down"}`}, IntentResult{Outcome: OutcomeRefused}},
		"for its key":      {exchange{want: anything, status: 401}, IntentResult{Outcome: OutcomeRefused}},
		"unknown":          {transferUnanswered, IntentResult{Outcome: OutcomeUnknown}},
		"success":          {transferDone, IntentResult{Outcome: OutcomeExecuted, ServiceID: "A-1"}},
	} {
		journal := new(scriptedJournal)
		transferOutcome(t, converse(t, []exchange{tc.asked}, WithJournal(journal)), "M-1")
		assert.Equal(t, []IntentResult{tc.want}, journal.results, name)
	}
}

func TestWhatAJournalKnowsOfAReference(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		known *DuplicateIntent
		is    string
		step  Step
		after time.Duration
	}{
		"executed":      {&DuplicateIntent{Outcome: OutcomeExecuted, ServiceID: "A-1"}, "Executed DuplicateIntent", StepDone, 0},
		"unknown":       {&DuplicateIntent{}, "Unknown DuplicateIntent", StepReconcile, 0},
		"in progress":   {&DuplicateIntent{InProgress: true, Remaining: 7 * time.Second}, "Unknown DuplicateIntent", StepWait, 7 * time.Second},
		"refused":       {&DuplicateIntent{Outcome: OutcomeRefused}, "Refused DuplicateIntent", StepFail, 0},
		"voided":        {&DuplicateIntent{Outcome: OutcomeNotSent}, "NotSent DuplicateIntent", StepFail, 0},
		"in the future": {&DuplicateIntent{InProgress: true, Remaining: -time.Second}, "Unknown DuplicateIntent", StepWait, 0},
	} {
		for _, op := range []string{"begin", "look"} {
			transfer := smallTransfer("M-1")
			if op == "look" {
				transfer.TransferAmount = dec("10.005")
			}
			journal := &lookingJournal{look: func(string, string) error { return tc.known }}
			journal.begin = func(context.Context, Intent) error { return tc.known }
			_, err := unasked(t, WithJournal(journal)).CreateTransfer(t.Context(), transfer)
			assert.Equal(t, tc.is, factsOf(t, err).Is, "%s, %s", name, op)
			assert.Equal(t, tc.after, failure(t, err).RetryAfter, "%s, %s", name, op)
			assert.Equal(t, tc.step, NextStep(err), "%s, %s", name, op)
			assert.Empty(t, journal.ended)
		}
	}
}

// Told "not sent", its caller would fail an order that may be paid.
func TestInvalidParametersOfAReferenceThatIsNotFree(t *testing.T) {
	t.Parallel()
	invalid := smallTransfer("M-1")
	invalid.TransferAmount = dec("10.005")
	again := func(c *Client) error {
		_, err := c.CreateTransfer(t.Context(), invalid)
		return err
	}
	for name, tc := range map[string]struct {
		asked []exchange
		is    string
		step  Step
	}{
		"free":     {nil, "InvalidParams NotSent", StepFail},
		"refused":  {[]exchange{transferRefused}, "InvalidParams NotSent", StepFail},
		"executed": {[]exchange{transferDone}, "Executed DuplicateIntent", StepDone},
		"unknown":  {[]exchange{transferUnanswered}, "Unknown InvalidParams", StepReconcile},
	} {
		c := converse(t, tc.asked)
		for range tc.asked {
			transferOutcome(t, c, "M-1")
		}
		err := again(c)
		assert.Equal(t, sorted(tc.is), sorted(factsOf(t, err).Is), name)
		assert.Equal(t, tc.step, NextStep(err), name)
	}

	down := errors.New("down")
	for name, tc := range map[string]struct {
		journal Journal
		is      string
		step    Step
	}{
		"a journal that cannot be asked": {new(scriptedJournal), "Unknown InvalidParams", StepReconcile},
		"a journal where it is free":     {new(lookingJournal), "InvalidParams NotSent", StepFail},
		"a journal that is down":         {&lookingJournal{look: func(string, string) error { return down }}, "NotSent", StepRetry},
		"a journal with another body": {
			&lookingJournal{look: func(string, string) error { return errors.Join(ErrOtherBody, &DuplicateIntent{}) }},
			"Unknown DuplicateIntent OtherBody", StepReconcile,
		},
	} {
		err := again(unasked(t, WithJournal(tc.journal)))
		assert.Equal(t, sorted(tc.is), sorted(factsOf(t, err).Is), name)
		assert.Equal(t, tc.step, NextStep(err), name)
	}
}

// sorted makes the order in which sentinels are listed irrelevant.
func sorted(is string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(is) {
		set[name] = true
	}
	return set
}

func TestALookIsAskedAboutTheReference(t *testing.T) {
	t.Parallel()
	var asked []string
	journal := &lookingJournal{look: func(op, reference string) error { asked = append(asked, op+" "+reference); return nil }}
	c := unasked(t, WithJournal(journal))
	_, err := c.FreezeCard(t.Context(), FreezeCardParams{ClientTransactionID: strings.ToUpper(freezeID)})
	require.ErrorIs(t, err, ErrInvalidParams)
	_, err = c.FreezeCard(t.Context(), FreezeCardParams{CardID: "c1", ClientTransactionID: "case 4711\x00"})
	require.ErrorIs(t, err, ErrInvalidParams)
	_, err = c.GetCard(t.Context(), "")
	require.ErrorIs(t, err, ErrInvalidParams)
	assert.Equal(t, []string{"FreezeCard " + freezeID}, asked, "a reference that is never sent is not asked about")
}

// A code that means "this reference exists" may be the response to a second delivery.
func TestDuplicateCodesAreUnknown(t *testing.T) {
	t.Parallel()
	exists := WithProfile(func(p *Profile) { p.DuplicateCodes = []int{1409, 422}; p.RefusedCodes = append(p.RefusedCodes, 1409) })
	for _, e := range []exchange{
		{status: 422, reply: `{"code":422,"msg":"order exists","data":null}`},
		{status: 400, reply: `{"code":1409,"msg":"order exists","data":null}`},
		{status: 200, reply: `{"code":1409,"msg":"order exists","data":null}`},
		{status: 409, reply: `{"code":1409,"msg":"order exists"}`},
	} {
		e.want = asksTransfer("M-1")
		_, err := converse(t, []exchange{e}, exists).CreateTransfer(t.Context(), smallTransfer("M-1"))
		assert.Equal(t, "Unknown", factsOf(t, err).Is, e.reply)
		assert.Equal(t, StepReconcile, NextStep(err))
	}
	_, err := New(testBase, testKey, WithProfile(func(p *Profile) { p.DuplicateCodes = []int{200} }))
	require.ErrorIs(t, err, ErrSetup)
}

// A refusal needs an envelope. What is in the place of one proves nothing.
func TestWhatIsARefusal(t *testing.T) {
	t.Parallel()
	const bom = "\xef\xbb\xbf"
	executed := success(transferData)
	bare := map[string]string{
		"an empty body": "", "white space": " \r\n\t", "HTML": "<html>blocked</html>", "HTML behind a byte order mark": bom + " <html>",
		"a string": `"no"`, "an array": `[1]`, "words": "Too many requests", "zeros": "\x00\x00",
	}
	for name, body := range bare {
		for _, status := range []int{401, 404, 405, 413, 429} {
			e := refusedWith(t, status, body)
			assert.Equal(t, "Refused Unreadable", firstAndLast(e), "%s under %d", name, status)
			assert.Equal(t, StepRetry, NextStep(e), "%s under %d", name, status)
		}
		for _, status := range []int{400, 403, 415, 422, 409, 500, 200, 204} {
			e := refusedWith(t, status, body)
			assert.Equal(t, OutcomeUnknown, e.Outcome, "%s under %d", name, status)
			assert.Equal(t, StepReconcile, NextStep(e), "%s under %d", name, status)
		}
	}
	for name, body := range map[string]string{
		"no message":                         `{"code":1020}`,
		"a message that is null":             `{"code":1020,"msg":null}`,
		"a message that is a number":         `{"code":1020,"msg":7}`,
		"no code":                            `{"msg":"no"}`,
		"a code that is a string":            `{"code":"422","msg":"no"}`,
		"a code with a fraction":             `{"code":422.0,"msg":"no"}`,
		"a success behind a byte order mark": bom + executed,
		"a success in UTF-16":                "\xff\xfe{\x00\"\x00c\x00",
		"a success in UTF-16, big-endian":    "\xfe\xff\x00{\x00\"",
		"a success that was cut off":         executed[:len(executed)-9],
		"a success":                          executed,
		"the code of a failed service":       `{"code":503,"msg":"no"}`,
		"the message of a success":           `{"code":422,"msg":"success"}`,
		"a success, and more":                executed + executed,
		"an object of another kind":          `{"error":"access denied"}`,
	} {
		for _, status := range []int{400, 401, 403, 404, 405, 413, 415, 422, 429} {
			e := refusedWith(t, status, body)
			assert.Equal(t, OutcomeUnknown, e.Outcome, "%s under %d", name, status)
		}
	}
	for _, status := range []int{400, 401, 403, 404, 405, 413, 415, 422, 429} {
		for _, body := range []string{`{"code":1020,"msg":"no"}`, `{"msg":"","code":0}`, `{"data":{"field":"amount"},"msg":"no","code":422}`} {
			assert.Equal(t, OutcomeRefused, refusedWith(t, status, body).Outcome, "%s under %d", body, status)
		}
	}
	e := refusedWith(t, 200, `{"code":422,"msg":"no"}`)
	assert.Equal(t, OutcomeRefused, e.Outcome)
	e = refusedWith(t, 200, `{"code":422}`)
	assert.Equal(t, OutcomeUnknown, e.Outcome, "without a message it is no envelope")
	e = refusedWith(t, 409, `{"code":422,"msg":"no"}`)
	assert.Equal(t, OutcomeUnknown, e.Outcome, "409 is not in RefusedStatuses")
}

// firstAndLast are an error's outcome and cause.
func firstAndLast(e *Error) string {
	name := map[Outcome]string{OutcomeRefused: "Refused", OutcomeUnknown: "Unknown"}[e.Outcome]
	if errors.Is(e.Err, ErrUnreadable) {
		name += " Unreadable"
	}
	return name
}

func refusedWith(t *testing.T, status int, body string) *Error {
	t.Helper()
	c := converse(t, []exchange{{want: asksTransfer("M-1"), status: status, reply: body}})
	_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	return failure(t, err)
}

// What a refusal says no to may be the second delivery of an order that was executed.
func TestARefusalThatNamesTheOrderIsUnknown(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`, `"M-1"`, `["M-1"]`, `{"M-1":"exists"}`,
		`{"order":{"no":"m-1"}}`, `[{"a":[1,{"b":"\u004d-1"}]}]`,
	} {
		for _, body := range []string{`{"code":422,"msg":"order exists","data":` + data + `}`, `{"data":` + data + `,"code":422,"msg":"order exists"}`} {
			assert.Equal(t, OutcomeUnknown, refusedWith(t, 422, body).Outcome, body)
			assert.Equal(t, OutcomeUnknown, refusedWith(t, 200, body).Outcome, body)
		}
	}
	for _, data := range []string{`{"merchant_order_no":"M-2"}`, `null`, `{}`, `"M-12"`, `["M1"]`, `7`} {
		assert.Equal(t, OutcomeRefused, refusedWith(t, 422, `{"code":422,"msg":"no","data":`+data+`}`).Outcome, data)
	}
}

// Executed needs evidence: data of the right kind, with the service's identifier or
// our own reference.
func TestWhatProvesThatATransferWasExecuted(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"merchant_order_no":"M-1","api_order_no":"A-1","status":7}`:  "Executed Unreadable",
		`{"merchant_order_no":"M-1","status":"wait_process"}`:          "Executed Unreadable",
		`{"merchant_order_no":"M-1","api_order_no":""}`:                "Executed Unreadable",
		`{"merchant_order_no":"M-1","api_order_no":null}`:              "Executed Unreadable",
		`{"api_order_no":"A-1","status":{}}`:                           "Executed Unreadable",
		`{"api_order_no":7,"status":{}}`:                               "Executed Unreadable",
		`{"merchant_order_no":"M-2","api_order_no":"A-1"}`:             "Unknown Unreadable",
		`{"merchant_order_no":"M-2","api_order_no":"A-1","status":{}}`: "Unknown Unreadable",
		`{"merchant_order_no":"M-2"}`:                                  "Unknown Unreadable",
		`{"api_order_no":" ","status":"wait_process"}`:                 "Unknown Unreadable",
		`{"api_order_no":true}`:                                        "Unknown Unreadable",
		`{"status":"wait_process"}`:                                    "Unknown Unreadable",
		`{}`:                                                           "Unknown Unreadable", `[]`: "Unknown Unreadable", `null`: "Unknown Unreadable", `false`: "Unknown Unreadable",
		`true`: "Unknown Unreadable", `"M-1"`: "Unknown Unreadable", `[{"merchant_order_no":"M-1"}]`: "Unknown Unreadable",
	} {
		for _, body := range []string{success(data), `{"data":` + data + `,"msg":"success","code":200}`} {
			_, err := answered(t, asksTransfer("M-1"), body).CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, want, factsOf(t, err).Is, body)
		}
	}
	_, err := answered(t, asksTransfer("M-1"), `{"code":200,"msg":"success"}`).CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, "Unknown Unreadable", factsOf(t, err).Is)
	_, err = answered(t, asksTransfer("M-1"), `{"code":200,"msg":"balance too low","data":{"merchant_order_no":"M-1"}}`).CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, "Unknown Unreadable", factsOf(t, err).Is, "the message contradicts the code")
}

// A message that is not a success's, beside good data, is drift.
func TestAStrangeMessageBesideGoodDataIsDrift(t *testing.T) {
	t.Parallel()
	reply := `{"code":200,"msg":"order exists","data":` + transferData + `}`
	observe, told := driftsOf()
	transfer, err := answered(t, asksTransfer("M-1"), reply, observe).CreateTransfer(t.Context(), smallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, "A-1", transfer.APIOrderNo)
	assert.Equal(t, []Drift{{"msg", "unknown success message"}}, *told)
	_, err = answered(t, asksTransfer("M-1"), reply, WithStrictDrift()).CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, "Executed Drift", factsOf(t, err).Is)
}

// The record that is cancelled, retried or frozen is one.
func TestOfTwoCallsAboutOneRecordOneIsSent(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *Client) error{
		"cancel": func(ctx context.Context, c *Client) error { return c.CancelOperation(ctx, operationID) },
		"retry":  func(ctx context.Context, c *Client) error { return c.RetryOperation(ctx, strings.ToUpper(operationID)) },
		"freeze": func(ctx context.Context, c *Client) error {
			return onlyError(c.FreezeCard(ctx, FreezeCardParams{CardID: "c1", ClientTransactionID: operationID}))
		},
	}
	for first, call := range calls {
		for second, again := range calls {
			t.Run(first+" and "+second, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var requests atomic.Int32
					proceed := make(chan struct{})
					c := clientOn(t, carrier(func(*http.Request) (*http.Response, error) {
						requests.Add(1)
						<-proceed
						return nil, errBrokenNetwork
					}))
					done := make(chan struct{})
					go func() { defer close(done); _ = call(t.Context(), c) }()
					synctest.Wait()
					time.Sleep(2 * time.Second)
					err := again(t.Context(), c)
					assert.Equal(t, StepWait, NextStep(err))
					assert.Equal(t, 28*time.Second, failure(t, err).RetryAfter, "until the first may send no more")
					assert.Equal(t, operationID, failure(t, err).Reference)
					close(proceed)
					<-done
					assert.EqualValues(t, 1, requests.Load())
				})
			})
		}
	}
}

// By then it should have ended; nobody knows how it does.
func TestACallPastItsSendByIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		c := clientOn(t, carrier(func(*http.Request) (*http.Response, error) {
			<-proceed // whatever the context says
			return nil, errBrokenNetwork
		}))
		done := make(chan struct{})
		go func() { defer close(done); transferOutcome(t, c, "M-1") }()
		time.Sleep(31 * time.Second)
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
		assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent"}, factsOf(t, err))
		assert.Equal(t, StepReconcile, NextStep(err))
		close(proceed)
		<-done
	})
}

func TestFreezeCardTakesAUUID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"case-4711", "f-1", strings.ReplaceAll(freezeID, "-", ""), "{" + freezeID + "}"} {
		_, err := unasked(t).FreezeCard(t.Context(), FreezeCardParams{CardID: "c1", ClientTransactionID: id})
		refusedBeforehand(t, err, "ClientTransactionID")
		assert.NotContains(t, err.Error(), "cardID")
	}
	upper := strings.ToUpper(freezeID)
	journal := new(scriptedJournal)
	c := converse(t, []exchange{
		{want: freezeRequest("c1", upper), err: errBrokenNetwork},
		{want: freezeRequest("c1", freezeID), err: errBrokenNetwork},
	}, WithJournal(journal))
	for _, id := range []string{upper, freezeID} {
		_, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "c1", ClientTransactionID: id})
		assert.Equal(t, freezeID, failure(t, err).Reference)
	}
	assert.Equal(t, freezeID, journal.begun[0].Reference)
	assert.Equal(t, journal.begun[0].BodySHA256, journal.begun[1].BodySHA256, "one UUID is one request in either letter case")
}

// SendBy is at most the call's start plus its timeout, whatever the context allows.
func TestSendBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct{ context, timeout, want time.Duration }{
			{0, 0, 30 * time.Second}, {time.Hour, 0, 30 * time.Second}, {time.Second, 0, time.Second}, {time.Hour, time.Minute, time.Minute},
		} {
			journal := new(scriptedJournal)
			opts := []Option{WithJournal(journal)}
			if tc.timeout > 0 {
				opts = append(opts, WithTimeout(tc.timeout))
			}
			ctx := t.Context()
			if tc.context > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.context)
				defer cancel()
			}
			c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}), opts...)
			start := time.Now()
			_, err := c.CreateTransfer(ctx, smallTransfer("M-1"))
			require.ErrorIs(t, err, ErrOutcomeUnknown)
			assert.Equal(t, tc.want, time.Since(start))
			assert.Equal(t, start.Add(tc.want), journal.begun[0].SendBy)
		}
	})
}

// The body of a Call is what is sent, and where to.
func TestTheDigestOfACall(t *testing.T) {
	t.Parallel()
	journal := new(scriptedJournal)
	c := clientOn(t, always(422, orderExists), WithJournal(journal))
	digest := func(r Request) string {
		r.Op, r.Method, r.Reference = "Close", "POST", "R-1"
		_, err := Call[any](t.Context(), c, r)
		require.ErrorIs(t, err, ErrRefused)
		return journal.begun[len(journal.begun)-1].BodySHA256
	}
	first := digest(Request{Path: "/a", Query: url.Values{"x": {"1"}}})
	assert.Equal(t, first, digest(Request{Path: "/a", Query: url.Values{"x": {"1"}}}))
	assert.NotEqual(t, first, digest(Request{Path: "/b", Query: url.Values{"x": {"1"}}}))
	assert.NotEqual(t, first, digest(Request{Path: "/a", Query: url.Values{"x": {"2"}}}))
}

// Who is told to wait calls again. That is no decision to send again what became
// unknown meanwhile.
func TestWhoWaitedDoesNotSendAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		proceed := make(chan struct{})
		c := clientOn(t, carrier(func(*http.Request) (*http.Response, error) {
			requests.Add(1)
			<-proceed
			return nil, errBrokenNetwork
		}))
		first := make(chan Outcome, 1)
		go func() { first <- transferOutcome(t, c, "M-1") }()
		synctest.Wait()
		for range 2 {
			_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
			require.Equal(t, StepWait, NextStep(err))
		}
		close(proceed)
		require.Equal(t, OutcomeUnknown, <-first)
		for range 2 {
			_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent"}, factsOf(t, err))
		}
		assert.EqualValues(t, 1, requests.Load())
		transferOutcome(t, c, "M-1")
		assert.EqualValues(t, 2, requests.Load(), "the caller's own retry")
	})
}

// A journal that cannot be asked says nothing of what this client saw.
func TestAnUnknownReferenceStaysUnknownWhereTheJournalIsDown(t *testing.T) {
	t.Parallel()
	var down error
	journal := &lookingJournal{look: func(string, string) error { return down }}
	journal.begin = func(context.Context, Intent) error { return down }
	c := converse(t, []exchange{transferUnanswered}, WithJournal(journal))
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	down = errors.New("down")
	assert.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	invalid := smallTransfer("M-1")
	invalid.TransferAmount = dec("10.005")
	_, err := c.CreateTransfer(t.Context(), invalid)
	assert.Equal(t, StepReconcile, NextStep(err))
}

func TestMoreThatNamesTheOrder(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"merchant_order_no":" M-1 "}`, `{"api_order_no":"A-1","status":"wait_process"}`} {
		assert.Equal(t, OutcomeUnknown, refusedWith(t, 422, `{"code":422,"msg":"no","data":`+data+`}`).Outcome, data)
	}
	for _, body := range []string{`[` + success(transferData) + `]`, `)]}',` + success(transferData), "<html>M-1</html>"} {
		assert.Equal(t, OutcomeUnknown, refusedWith(t, 404, body).Outcome, body)
	}
	for _, data := range []string{`{"merchant_order_no":["M-2"],"api_order_no":"A-1"}`, `{"merchant_order_no":{"no":"M-2"},"api_order_no":"A-1"}`} {
		_, err := answered(t, asksTransfer("M-1"), success(data)).CreateTransfer(t.Context(), smallTransfer("M-1"))
		assert.Equal(t, "Unknown Unreadable", factsOf(t, err).Is, data)
	}
	_, err := Call[any](t.Context(), unasked(t), Request{Op: "UploadImage", Method: "POST", Path: "/withdraw"})
	refusedBeforehand(t, err, "Op must not be UploadImage")
}
