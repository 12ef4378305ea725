package cardwire

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
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the service says to smallTransfer("M-1") in tests of references.
var (
	transferDone       = exchange{want: asksTransfer("M-1"), reply: success(transferData)}
	transferRefused    = refusal(asksTransfer("M-1"))
	transferUnanswered = exchange{want: asksTransfer("M-1"), err: errBrokenNetwork}
	transferStrange    = exchange{want: asksTransfer("M-1"), reply: success(`{"merchant_order_no":"M-1","api_order_no":"A-7","status":[]}`)}
)

// asksTransfer is the request that smallTransfer makes.
func asksTransfer(orderNo string) string {
	return transferRequest(`{"merchantOrderNo":"` + orderNo + `","payoutCurrency":"EUR","transferAmount":"10.50"}`)
}

const orderExists = `{"code":422,"msg":"order exists","data":null}`

func refusal(want string) exchange { return exchange{want: want, status: 422, reply: orderExists} }

// scriptedJournal notes what it is told.
type scriptedJournal struct {
	begin func(context.Context, Intent) error               // nil: always fine
	end   func(context.Context, Intent, IntentResult) error // nil: always fine

	mu      sync.Mutex
	begun   []Intent
	ended   []Intent
	results []IntentResult
}

func (j *scriptedJournal) Begin(ctx context.Context, i Intent) error {
	j.mu.Lock()
	j.begun = append(j.begun, i)
	j.mu.Unlock()
	if j.begin == nil {
		return nil
	}
	return j.begin(ctx, i)
}

func (j *scriptedJournal) End(ctx context.Context, i Intent, r IntentResult) error {
	j.mu.Lock()
	j.ended = append(j.ended, i)
	j.results = append(j.results, r)
	j.mu.Unlock()
	if j.end == nil {
		return nil
	}
	return j.end(ctx, i, r)
}

// transferOutcome sends the order and returns how it ended; success is executed.
func transferOutcome(t *testing.T, c *Client, orderNo string) Outcome {
	t.Helper()
	_, err := c.CreateTransfer(t.Context(), smallTransfer(orderNo))
	if err == nil {
		return OutcomeExecuted
	}
	return failure(t, err).Outcome
}

func TestOfTwoCallsInFlightUnderOneReferenceOneIsSent(t *testing.T) {
	t.Parallel()
	for _, w := range allWrites() {
		want := int32(1) // requests while the first is in flight
		if w.op == "UploadImage" {
			want = 2 // an image has no reference
		}
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var requests atomic.Int32
				proceed := make(chan struct{})
				c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
					requests.Add(1)
					<-proceed
					return httpReply(r, 200, success(w.data)), nil
				}))
				first := make(chan error, 1)
				go func() { first <- w.call(t.Context(), c) }()
				synctest.Wait()
				require.EqualValues(t, 1, requests.Load())

				second := make(chan error, 1)
				go func() { second <- w.call(t.Context(), c) }()
				synctest.Wait()
				assert.Equal(t, want, requests.Load())
				close(proceed)
				require.NoError(t, <-first)
				if err := <-second; want == 1 {
					assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent", RetryAfter: 30 * time.Second}, factsOf(t, err), "what is left of the first call's time")
					assert.Equal(t, w.reference, failure(t, err).Reference)
				} else {
					require.NoError(t, err)
				}

				err := w.call(t.Context(), c)
				if w.unique {
					assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed DuplicateIntent"}, factsOf(t, err))
					assert.Equal(t, want, requests.Load(), "one that was executed is not sent again")
					return
				}
				require.NoError(t, err, "the reference is free again")
				assert.Equal(t, want+1, requests.Load())
			})
		})
	}
}

func TestOtherReferencesAndOtherOperationsAreInFlightBeside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		proceed := make(chan struct{})
		c := clientOn(t, carrier(func(*http.Request) (*http.Response, error) {
			requests.Add(1)
			<-proceed
			return nil, errBrokenNetwork
		}))
		freeze := func(reference string) {
			_, _ = c.FreezeCard(t.Context(), FreezeCardParams{CardID: "c1", ClientTransactionID: reference})
		}
		go transferOutcome(t, c, "M-1")
		go transferOutcome(t, c, "M-2")
		go freeze(operationID)
		synctest.Wait()
		assert.EqualValues(t, 3, requests.Load())
		close(proceed)
	})
}

// However a call ends, its reference is free afterwards.
func TestAReferenceIsFreeAfterEachEnding(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	deduplicating := func(*int) []Option {
		return []Option{WithProfile(func(p *Profile) { p.ServerDeduplicates = true })}
	}
	for name, tc := range map[string]struct {
		asked []exchange
		opts  func(calls *int) []Option
		panic bool
	}{
		"success":                      {asked: []exchange{transferDone}},
		"success, to be sent again":    {asked: []exchange{transferDone, transferDone}, opts: deduplicating},
		"refusal":                      {asked: []exchange{transferRefused, transferDone}},
		"unknown":                      {asked: []exchange{transferUnanswered, transferDone}},
		"unreadable":                   {asked: []exchange{transferStrange}},
		"unreadable, to be sent again": {asked: []exchange{transferStrange, transferDone}, opts: deduplicating},
		"the journal refuses": {asked: []exchange{transferDone}, opts: func(calls *int) []Option {
			return []Option{WithJournal(&scriptedJournal{begin: func(context.Context, Intent) error { return errAtFirst(calls, broken) }})}
		}},
		"the journal says that it is taken": {asked: []exchange{transferDone}, opts: func(calls *int) []Option {
			return []Option{WithJournal(&scriptedJournal{begin: func(context.Context, Intent) error {
				return errAtFirst(calls, &DuplicateIntent{Outcome: OutcomeExecuted})
			}})}
		}},
		"the journal does not record the end": {asked: []exchange{transferDone, transferDone}, opts: func(calls *int) []Option {
			return []Option{WithJournal(&scriptedJournal{end: func(context.Context, Intent, IntentResult) error { return errAtFirst(calls, broken) }})}
		}},
		"the limiter refuses": {asked: []exchange{transferDone}, opts: func(calls *int) []Option {
			return []Option{WithLimiter(limiterFunc(func(context.Context) error { return errAtFirst(calls, broken) }))}
		}},
		"the journal panics": {asked: []exchange{transferDone}, panic: true, opts: func(calls *int) []Option {
			return []Option{WithJournal(&scriptedJournal{begin: func(context.Context, Intent) error { panicAtFirst(calls); return nil }})}
		}},
		"the limiter panics": {asked: []exchange{transferDone}, panic: true, opts: func(calls *int) []Option {
			return []Option{WithLimiter(limiterFunc(func(context.Context) error { panicAtFirst(calls); return nil }))}
		}},
		"the doer panics": {panic: true, opts: func(calls *int) []Option {
			return []Option{WithHTTPClient(carrier(func(r *http.Request) (*http.Response, error) {
				panicAtFirst(calls)
				return httpReply(r, 200, success(transferData)), nil
			}))}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			var opts []Option
			if tc.opts != nil {
				opts = tc.opts(&calls)
			}
			c := converse(t, tc.asked, opts...)
			if tc.panic {
				assert.PanicsWithValue(t, "a panic of the caller's", func() { transferOutcome(t, c, "M-1") })
			} else {
				transferOutcome(t, c, "M-1")
			}
			assert.Equal(t, OutcomeExecuted, transferOutcome(t, c, "M-1"), "the second call")
		})
	}
}

// errAtFirst is err at the first call.
func errAtFirst(calls *int, err error) error {
	if *calls++; *calls == 1 {
		return err
	}
	return nil
}

// panicAtFirst panics at the first call.
func panicAtFirst(calls *int) {
	if *calls++; *calls == 1 {
		panic("a panic of the caller's")
	}
}

// What was sent when a doer panicked is unknown, in memory and in the journal.
func TestAPanicLeavesTheReferenceUndecided(t *testing.T) {
	t.Parallel()
	calls := 0
	doer := carrier(func(r *http.Request) (*http.Response, error) {
		panicAtFirst(&calls)
		return httpReply(r, 422, orderExists), nil
	})
	c := clientOn(t, doer)
	assert.Panics(t, func() { transferOutcome(t, c, "M-1") })
	assert.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"), "the refusal may be the echo of the first")

	calls = 0
	journal := new(scriptedJournal)
	c = clientOn(t, doer, WithJournal(journal))
	assert.Panics(t, func() { transferOutcome(t, c, "M-1") })
	assert.Equal(t, []IntentResult{{Outcome: OutcomeUnknown}}, journal.results)
}

func TestAnUndecidedReferenceStaysUnknown(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{
		transferUnanswered, transferRefused, transferRefused, refusal(asksTransfer("M-2")), refusal(freezeRequest("c1", freezeID)),
	})
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))

	_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, facts{
		Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 422, Code: 422, Message: "order exists",
	}, factsOf(t, err), "a later refusal")
	assert.Contains(t, err.Error(), "ask the service about M-1 before sending it again")
	assert.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"), "and the one after that")

	assert.Equal(t, OutcomeRefused, transferOutcome(t, c, "M-2"), "another reference")
	_, err = c.FreezeCard(t.Context(), FreezeCardParams{CardID: "c1", ClientTransactionID: freezeID})
	assert.Equal(t, OutcomeRefused, failure(t, err).Outcome, "another operation under the same reference")
}

func TestASuccessOfAnUndecidedReferenceIsASuccess(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{transferUnanswered, transferDone})
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	transfer, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, &Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: TransferWaitProcess}, transfer)
}

// 429 and 401 guarantee that nothing happened, but not of a reference that was
// sent before.
func TestNoRefusalDecidesAnUndecidedReference(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 404, 429} {
		c := converse(t, []exchange{transferUnanswered, {want: asksTransfer("M-1"), status: status}})
		require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
		require.ErrorIs(t, err, ErrOutcomeUnknown)
		assert.Equal(t, StepReconcile, NextStep(err))
	}
}

// hashOf is a hash over the text of sorted fields, each preceded by its length.
// Its form must not change: journals compare across releases.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestJournalIsToldOfEachWrite(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		intents []Intent
		service string
	}{
		"CreateTransfer": {[]Intent{{
			Op: "CreateTransfer", Reference: "M-1", Unique: true, Summary: "10.50 EUR",
			BodySHA256: hashOf("15:merchantOrderNo3:M-114:payoutCurrency3:EUR14:transferAmount5:10.50"),
		}}, "A-1"},
		"FreezeCard": {[]Intent{{
			Op: "FreezeCard", Reference: freezeID, Unique: true,
			BodySHA256: hashOf("6:cardId2:c119:clientTransactionId36:" + freezeID),
		}}, testUUID},
		"CancelOperation": {[]Intent{{
			Op: "CancelOperation", Reference: testUUID,
			BodySHA256: hashOf("21:client_transaction_id36:" + testUUID + "4:type6:cancel"),
		}}, ""},
		"RetryOperation": {[]Intent{{
			Op: "RetryOperation", Reference: testUUID,
			BodySHA256: hashOf("21:client_transaction_id36:" + testUUID + "4:type5:retry"),
		}}, ""},
		"UploadImage": {nil, ""},
		"CloseCard": {[]Intent{{
			Op: "CloseCard", Reference: "C-1", Unique: true, BodySHA256: hashOf("17:POST /cards/close0:6:cardId2:c1"),
		}}, ""},
	}
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var events []string
				journal := &scriptedJournal{
					begin: func(context.Context, Intent) error { events = append(events, "begin"); return nil },
					end:   func(context.Context, Intent, IntentResult) error { events = append(events, "end"); return nil },
				}
				c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
					events = append(events, "request")
					time.Sleep(time.Second)
					return httpReply(r, 200, success(w.data)), nil
				}), WithJournal(journal))
				began := time.Now()
				require.NoError(t, w.call(t.Context(), c))

				expected := want[w.op]
				for i := range expected.intents {
					expected.intents[i].Time, expected.intents[i].SendBy = began, began.Add(30*time.Second)
				}
				assert.Equal(t, expected.intents, journal.begun)
				assert.Equal(t, expected.intents, journal.ended)
				if expected.intents == nil {
					assert.Equal(t, []string{"request"}, events)
					return
				}
				assert.Equal(t, []string{"begin", "request", "end"}, events)
				assert.Equal(t, []IntentResult{{Outcome: OutcomeExecuted, ServiceID: expected.service}}, journal.results)
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
		"visible":            {`A-1/é 7`, "A-1/é 7", false},
		"128 bytes":          {long[:128], long[:128], false},
		"a NUL":              {`A\u0000-1`, "A-1", true},
		"nothing but a NUL":  {`\u0000`, "", true},
		"a line break":       {`A-1\n`, "A-1", true},
		"a change of order":  {`A\u202e-1`, "A-1", true},
		"a hidden character": {`A\u200b-1`, "A-1", true},
		"spaces at its ends": {`\u00a0 A-1 `, "A-1", true},
		"60 KB":              {long, long[:128], true},
		"129 bytes":          {"x" + long[:128], "x" + long[:126], true},
		"cut before a space": {strings.Repeat("x", 127) + " yz", strings.Repeat("x", 127), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for op, call := range map[string]struct {
				path string
				data string
				id   func(*Client) (string, error)
			}{
				"CreateTransfer": {
					"data.api_order_no", `{"merchant_order_no":"M-1","api_order_no":"` + tc.sent + `","status":"wait_process"}`,
					func(c *Client) (string, error) {
						got, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
						if got == nil {
							got = new(Transfer)
						}
						return got.APIOrderNo, err
					},
				},
				"FreezeCard": {
					"data", `"` + tc.sent + `"`,
					func(c *Client) (string, error) {
						got, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: "c1", ClientTransactionID: freezeID})
						if got == nil {
							got = new(CardOperation)
						}
						return got.ID, err
					},
				},
			} {
				journal := new(scriptedJournal)
				observe, drift := driftsOf()
				got, err := call.id(answered(t, anything, success(call.data), observe, WithJournal(journal)))
				if tc.want == "" {
					require.ErrorIs(t, err, ErrUnreadable, op)
				} else {
					require.NoError(t, err, op)
				}
				assert.Equal(t, tc.want, got, op)
				outcome := OutcomeExecuted
				if tc.want == "" && op == "FreezeCard" {
					outcome = OutcomeUnknown // a transfer names its order, a freeze nothing
				}
				assert.Equal(t, []IntentResult{{Outcome: outcome, ServiceID: tc.want}}, journal.results, op)
				assert.Equal(t, tc.drift, slices.Contains(*drift, Drift{call.path, "identifier with invisible characters"}), op)
			}
		})
	}
}

func TestJournalIsToldOfEachEnding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked exchange
		want  IntentResult
	}{
		"success":                           {transferDone, IntentResult{Outcome: OutcomeExecuted, ServiceID: "A-1"}},
		"refusal":                           {transferRefused, IntentResult{Outcome: OutcomeRefused, Final: true}},
		"no answer":                         {transferUnanswered, IntentResult{Outcome: OutcomeUnknown}},
		"an answer that is half readable":   {transferStrange, IntentResult{Outcome: OutcomeExecuted, ServiceID: "A-7"}},
		"a response without the identifier": {exchange{want: asksTransfer("M-1"), reply: success(`{}`)}, IntentResult{Outcome: OutcomeUnknown}},
		"the answer to another order": {
			exchange{want: asksTransfer("M-1"), reply: success(`{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`)},
			IntentResult{Outcome: OutcomeUnknown},
		},
		"the answer to another order, without the identifier": {
			exchange{want: asksTransfer("M-1"), reply: success(`{"merchant_order_no":"M-2","status":"wait_process"}`)},
			IntentResult{Outcome: OutcomeUnknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := new(scriptedJournal)
			c := converse(t, []exchange{tc.asked}, WithJournal(journal))
			assert.Equal(t, tc.want.Outcome, transferOutcome(t, c, "M-1"))
			assert.Equal(t, []IntentResult{tc.want}, journal.results)
		})
	}
}

func TestAJournalIsToldOfWhatWasNotSentAfterItWasAsked(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, opt := range map[string]Option{
		"the limiter":    WithLimiter(limiterFunc(func(context.Context) error { return broken })),
		"the key source": WithKeySource(func(context.Context) (string, error) { return "", broken }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := new(scriptedJournal)
			assert.Equal(t, OutcomeNotSent, transferOutcome(t, unasked(t, WithJournal(journal), opt), "M-1"))
			assert.Equal(t, []IntentResult{{Outcome: OutcomeNotSent}}, journal.results)
		})
	}
}

// The order of a call with invalid parameters is failed, so its reference is closed.
func TestAReferenceWithInvalidParametersIsClosed(t *testing.T) {
	t.Parallel()
	journal := &lookingJournal{}
	c := unasked(t, WithJournal(journal))
	_, err := c.CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "M-1"})
	refusedBeforehand(t, err, "TransferAmount")
	require.Len(t, journal.begun, 1)
	assert.Equal(t, "M-1", journal.begun[0].Reference)
	assert.Equal(t, journal.begun, journal.ended)
	assert.Equal(t, []IntentResult{{Outcome: OutcomeNotSent, Final: true}}, journal.results, "an old message that comes late sends nothing")

	err = unasked(t, WithJournal(journal)).CancelOperation(t.Context(), "case-4711")
	refusedBeforehand(t, err, "clientTransactionID")
	assert.Len(t, journal.begun, 1, "a reference that is not valid as one is never sent")

	down := errors.New("down")
	for name, broken := range map[string]*lookingJournal{
		"begin": {scriptedJournal: scriptedJournal{begin: func(context.Context, Intent) error { return down }}},
		"end":   {scriptedJournal: scriptedJournal{end: func(context.Context, Intent, IntentResult) error { return down }}},
	} {
		_, err := unasked(t, WithJournal(broken)).CreateTransfer(t.Context(), TransferParams{MerchantOrderNo: "M-1"})
		require.ErrorIs(t, err, down, name)
		assert.Equal(t, StepRetry, NextStep(err), "%s: it is not closed", name)
	}
}

// lookingJournal is a journal that can be asked about a reference.
type lookingJournal struct {
	scriptedJournal
	look func(op, reference string) error // nil: the reference is free
}

func (j *lookingJournal) Look(_ context.Context, op, reference string) error {
	if j.look == nil {
		return nil
	}
	return j.look(op, reference)
}

func TestReadsAreNotRecorded(t *testing.T) {
	t.Parallel()
	journal := new(scriptedJournal)
	const form = "\napplication/x-www-form-urlencoded\n\n"
	c := converse(t, []exchange{
		{want: "GET /shop/api/v1/bins/maintenance", reply: success(`[]`)},
		{want: "POST /shop/api/v1/read" + form, reply: success(`[]`)},
		{want: "POST /shop/api/v1/cards/private" + form + "cardId=c1", reply: success(`[]`)},
	}, WithJournal(journal))
	_, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err)
	_, err = Call[[]string](t.Context(), c, Request{Op: "Read", Method: "POST", Path: "/read", ReadOnly: true})
	require.NoError(t, err)
	_, err = c.GetCardSecrets(t.Context(), "c1")
	require.ErrorIs(t, err, ErrUnreadable)
	assert.Empty(t, journal.begun)
}

func TestNothingIsSentThatTheJournalDidNotRecord(t *testing.T) {
	t.Parallel()
	down := errors.New("the database of 4111111111111111 is down")
	for name, tc := range map[string]struct {
		err  error
		want facts
	}{
		"an error":           {down, facts{Outcome: OutcomeNotSent, Is: "NotSent"}},
		"undecided":          {&DuplicateIntent{}, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent"}},
		"executed":           {&DuplicateIntent{Outcome: OutcomeExecuted}, facts{Outcome: OutcomeExecuted, Is: "Executed DuplicateIntent"}},
		"wrapped, executed":  {fmt.Errorf("4111111111111111: %w", &DuplicateIntent{Outcome: OutcomeExecuted}), facts{Outcome: OutcomeExecuted, Is: "Executed DuplicateIntent"}},
		"wrapped, undecided": {fmt.Errorf("%w: %w", down, &DuplicateIntent{}), facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &scriptedJournal{begin: func(context.Context, Intent) error { return tc.err }}
			c := unasked(t, WithJournal(journal))
			_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, tc.want, factsOf(t, err))
			assert.Equal(t, "M-1", failure(t, err).Reference)
			assert.NotContains(t, err.Error(), "4111", "the text of a cause may hold anything")
			assert.Empty(t, journal.ended, "what was not begun does not end")
			if errors.Is(tc.err, down) {
				require.ErrorIs(t, err, down, "what the journal says is found")
			}
			if tc.want.Outcome == OutcomeNotSent {
				return
			}
			var taken *DuplicateIntent
			require.ErrorAs(t, err, &taken)
			assert.Equal(t, tc.want.Outcome, taken.Outcome)
		})
	}
}

// What was executed under the reference was not this: told "executed", a caller
// would book it as paid.
func TestAnotherBodyUnderAReference(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		first error // what else is known of the first; nil: it did not happen
		want  facts
		says  string
	}{
		"the first did not happen": {
			nil, facts{Outcome: OutcomeNotSent, Is: "NotSent OtherBody"},
			"cardwire: CreateTransfer M-1: not sent: this reference was already used for a different request: use a new reference, once it is known what became of this one",
		},
		"the first is undecided": {
			&DuplicateIntent{}, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"},
			"cardwire: CreateTransfer M-1: unknown outcome: this reference was already used for a different request: use a new reference, once it is known what became of this one",
		},
		"the first was executed": {
			&DuplicateIntent{Outcome: OutcomeExecuted}, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"},
			"cardwire: CreateTransfer M-1: unknown outcome: this reference was already used for a different request: use a new reference, once it is known what became of this one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := DefaultProfile()
			p.ServerDeduplicates = true // lifts nothing of it
			journal := &scriptedJournal{begin: func(context.Context, Intent) error {
				return fmt.Errorf("4111111111111111: %w", errors.Join(ErrOtherBody, tc.first))
			}}
			_, err := unasked(t, WithJournal(journal), WithProfile(func(own *Profile) { *own = p })).CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, tc.want, factsOf(t, err))
			require.EqualError(t, err, tc.says)
			assert.Empty(t, journal.ended, "what was not begun does not end")
			if tc.first != nil {
				var taken *DuplicateIntent
				require.ErrorAs(t, err, &taken)
				assert.Equal(t, tc.first, taken, "how the first stands is found")
			}
		})
	}
}

// A UUID is the same in capital letters.
func TestAnOperationIsUndecidedInEitherCase(t *testing.T) {
	t.Parallel()
	const upper = "6F1C2A34-5B6D-4E7F-8A9B-0C1D2E3F4A5B"
	journal := new(scriptedJournal)
	c := converse(t, []exchange{
		{want: anything, err: errBrokenNetwork},
		{want: "POST /shop/api/v1/cards/adjustAction\napplication/x-www-form-urlencoded\n\nclient_transaction_id=" + upper + "&type=cancel", status: 422, reply: `{"code":422,"msg":"no such operation"}`},
	}, WithJournal(journal))
	require.ErrorIs(t, c.CancelOperation(t.Context(), testUUID), ErrOutcomeUnknown)
	err := c.CancelOperation(t.Context(), upper)
	require.ErrorIs(t, err, ErrOutcomeUnknown, "the refusal may be the echo of the first")
	assert.Equal(t, testUUID, failure(t, err).Reference)
	require.Len(t, journal.begun, 2)
	assert.Equal(t, testUUID, journal.begun[1].Reference)
}

// What a journal knows of a reference is more than the client remembers.
func TestAnotherBodyUnderAReferenceThatWasSettledSince(t *testing.T) {
	t.Parallel()
	calls := 0
	journal := &scriptedJournal{begin: func(context.Context, Intent) error {
		if calls++; calls == 1 {
			return nil
		}
		return ErrOtherBody // the first was found not to have happened
	}}
	c := converse(t, []exchange{{want: anything, err: errBrokenNetwork}}, WithJournal(journal))
	require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	assert.Equal(t, OutcomeNotSent, transferOutcome(t, c, "M-1"))
}

// Told "not sent" of a number that is in flight, its caller would send it again.
func TestACallThatCannotBeSentUnderAReferenceInFlight(t *testing.T) {
	t.Parallel()
	inexact := smallTransfer("M-1")
	inexact.TransferAmount = dec("10.005")
	for name, again := range map[string]func(ctx context.Context, c *Client) error{
		"a context that has ended": func(ctx context.Context, c *Client) error {
			done, cancel := context.WithCancel(ctx)
			cancel()
			_, err := c.CreateTransfer(done, smallTransfer("M-1"))
			return err
		},
		"a parameter": func(ctx context.Context, c *Client) error {
			_, err := c.CreateTransfer(ctx, inexact)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proceed := make(chan struct{})
				c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
					<-proceed
					return httpReply(r, http.StatusOK, success(transferData)), nil
				}))
				first := make(chan error, 1)
				go func() {
					_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
					first <- err
				}()
				synctest.Wait()
				err := again(t.Context(), c)
				assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown DuplicateIntent", RetryAfter: 30 * time.Second}, factsOf(t, err))
				assert.Equal(t, StepWait, NextStep(err))
				close(proceed)
				require.NoError(t, <-first)
				assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed DuplicateIntent"}, factsOf(t, again(t.Context(), c)), "of one that was executed")
			})
		})
	}
}

// Where the service deduplicates, a caller may repeat an undecided reference,
// and nothing but that.
func TestServerDeduplicatesLiftsUndecidedReferencesOnly(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	p.ServerDeduplicates = true
	for name, tc := range map[string]struct {
		taken    error
		asked    []exchange
		want     Outcome
		recorded []IntentResult
	}{
		"undecided, then done":       {&DuplicateIntent{}, []exchange{transferDone}, OutcomeExecuted, []IntentResult{{Outcome: OutcomeExecuted, ServiceID: "A-1"}}},
		"undecided, then refused":    {&DuplicateIntent{}, []exchange{transferRefused}, OutcomeUnknown, []IntentResult{{Outcome: OutcomeUnknown}}},
		"undecided, then no answer":  {&DuplicateIntent{}, []exchange{transferUnanswered}, OutcomeUnknown, []IntentResult{{Outcome: OutcomeUnknown}}},
		"executed":                   {&DuplicateIntent{Outcome: OutcomeExecuted}, nil, OutcomeExecuted, nil},
		"undecided, wrapped":         {fmt.Errorf("not on record: %w", &DuplicateIntent{}), nil, OutcomeUnknown, nil},
		"a journal that is not well": {errors.New("down"), nil, OutcomeNotSent, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &scriptedJournal{begin: func(context.Context, Intent) error { return tc.taken }}
			c := converse(t, tc.asked, WithJournal(journal), WithProfile(func(own *Profile) { *own = p }))
			assert.Equal(t, tc.want, transferOutcome(t, c, "M-1"))
			assert.Equal(t, tc.recorded, journal.results)
		})
	}
}

// That this repeat was not sent does not say that the first was not: a caller
// who settles the order on "not sent" would settle it wrongly.
func TestARepeatThatWasNotSentLeavesTheIntentUndecided(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	p.ServerDeduplicates = true
	journal := &scriptedJournal{begin: func(context.Context, Intent) error { return &DuplicateIntent{} }}
	c := unasked(t, WithJournal(journal), WithProfile(func(own *Profile) { *own = p }),
		WithLimiter(limiterFunc(func(context.Context) error { return errors.New("no") })))
	assert.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	assert.Equal(t, []IntentResult{{Outcome: OutcomeUnknown}}, journal.results)
}

type contextKey struct{}

// The caller may be gone when the result is recorded.
func TestTheResultIsRecordedAfterTheCallerHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), contextKey{}, "kept"))
		journal := &scriptedJournal{end: func(ctx context.Context, _ Intent, _ IntentResult) error {
			assert.NoError(t, ctx.Err())
			assert.Equal(t, "kept", ctx.Value(contextKey{}))
			end, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.Equal(t, 5*time.Second, time.Until(end))
			return nil
		}}
		c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
			cancel()
			return nil, r.Context().Err()
		}), WithJournal(journal))
		_, err := c.CreateTransfer(ctx, smallTransfer("M-1"))
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, []IntentResult{{Outcome: OutcomeUnknown}}, journal.results)
	})
}

func TestAResultThatIsNotRecordedLeavesTheCallAsItWas(t *testing.T) {
	t.Parallel()
	down := errors.New("the database of 4111111111111111 is down")
	var told []error
	var infos []CallInfo
	var log bytes.Buffer
	c := converse(t, []exchange{transferDone, refusal(asksTransfer("M-2"))},
		WithJournal(&scriptedJournal{end: func(context.Context, Intent, IntentResult) error { return down }}),
		WithObserver(Observer{}),
		WithObserver(Observer{JournalError: func(_ context.Context, i CallInfo, err error) {
			infos, told = append(infos, i), append(told, err)
		}}),
		WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
	)
	transfer, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, &Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: TransferWaitProcess}, transfer)
	assert.Equal(t, OutcomeRefused, transferOutcome(t, c, "M-2"))

	require.Len(t, told, 2)
	require.ErrorIs(t, told[0], down)
	assert.Equal(t, "the journal did not record the result: the intent stays open", told[0].Error())
	assert.Equal(t, CallInfo{
		Op: "CreateTransfer", Method: "POST", Path: "/remittance/transfer", Reference: "M-1", Write: true,
	}, infos[0])
	assert.Equal(t, 2, strings.Count(log.String(), `level=WARN msg="cardwire: the journal did not record the result" operation=CreateTransfer reference=M-`))
	assert.NotContains(t, log.String(), "4111")
}

func TestTheHashOfABodyTellsBodiesApart(t *testing.T) {
	t.Parallel()
	journal := new(scriptedJournal)
	c := clientOn(t, always(422, orderExists), WithJournal(journal))
	freeze := func(card, reference string) string {
		t.Helper()
		_, err := c.FreezeCard(t.Context(), FreezeCardParams{CardID: card, ClientTransactionID: reference})
		require.ErrorIs(t, err, ErrRefused)
		return journal.begun[len(journal.begun)-1].BodySHA256
	}
	closing := func(r Request) string {
		t.Helper()
		r.Op, r.Method, r.Path, r.Reference = "Close", "POST", "/close", "R-1"
		_, err := Call[any](t.Context(), c, r)
		require.ErrorIs(t, err, ErrRefused)
		return journal.begun[len(journal.begun)-1].BodySHA256
	}
	assert.Equal(t, freeze("c1", operationID), freeze("c1", operationID), "the boundary is another one each time")
	assert.NotEqual(t, freeze("c1", operationID), freeze("c2", operationID))
	assert.Equal(t,
		closing(Request{Form: url.Values{"a": {"1", "2"}, "b": {"3"}}}),
		closing(Request{Form: url.Values{"b": {"3"}, "a": {"1", "2"}}}))
	assert.NotEqual(t, closing(Request{Form: url.Values{"a": {"1"}}}), closing(Request{Form: url.Values{"a": {"1"}, "b": {""}}}))
	assert.NotEqual(t, closing(Request{Form: url.Values{"ab": {"c"}}}), closing(Request{Form: url.Values{"a": {"bc"}}}))
	assert.Equal(t,
		closing(Request{JSON: map[string]any{"a": 1, "b": "x"}}),
		closing(Request{JSON: map[string]any{"b": "x", "a": 1}}))
	assert.NotEqual(t, closing(Request{JSON: []int{1}}), closing(Request{JSON: []int{2}}))
}

// A journal that does not answer ends with the call's own deadline.
func TestTheJournalIsAskedWithinTheCallsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, _ Intent) error { <-ctx.Done(); return ctx.Err() }
		c := unasked(t, WithJournal(&scriptedJournal{begin: wait}), WithTimeout(7*time.Second))
		start := time.Now()
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, ErrNotSent)
		assert.Equal(t, 7*time.Second, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start = time.Now()
		_, err = c.CreateTransfer(ctx, smallTransfer("M-1"))
		require.ErrorIs(t, err, ErrNotSent)
		assert.Equal(t, 7*time.Second, time.Since(start), "also where the context allows more")
	})
}

func TestADuplicateIntentSaysHowTheEarlierOneStands(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, &DuplicateIntent{}, "cardwire: the outcome of an earlier call with this reference is unknown")
	assert.EqualError(t, &DuplicateIntent{Outcome: OutcomeExecuted}, "cardwire: this reference was executed before")
	require.ErrorIs(t, error(&DuplicateIntent{}), ErrDuplicateIntent)
	assert.NotErrorIs(t, error(&DuplicateIntent{}), ErrOutcomeUnknown)
}

// A caller who settles an order on "not sent" asks about the order, not about
// the last try of it.
func TestWhatIsNotSentDoesNotDecideAnUndecidedReference(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	unfit := smallTransfer("M-1")
	unfit.PayoutCurrency = "$"
	for name, again := range map[string]func(*Client) error{
		"a context that is done": func(c *Client) error {
			_, err := c.CreateTransfer(gone, smallTransfer("M-1"))
			return err
		},
		"a parameter that is refused": func(c *Client) error {
			_, err := c.CreateTransfer(t.Context(), unfit)
			return err
		},
	} {
		c := converse(t, []exchange{transferUnanswered}) // nothing is sent again
		require.Equal(t, OutcomeNotSent, failure(t, again(c)).Outcome, name)
		require.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
		assert.Equal(t, OutcomeUnknown, failure(t, again(c)).Outcome, name)
	}
}

// A journal is a caller's: what it returns must not be believed blindly.
func TestAnOddDuplicateIsUndecided(t *testing.T) {
	t.Parallel()
	for _, odd := range []*DuplicateIntent{nil, {Outcome: 7}, {Outcome: -1}, {Outcome: OutcomeExecuted, InProgress: true}} {
		c := unasked(t, WithJournal(&scriptedJournal{begin: func(context.Context, Intent) error { return odd }}))
		assert.Equal(t, OutcomeUnknown, transferOutcome(t, c, "M-1"))
	}
}

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
