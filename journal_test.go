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
)

func TestOfTwoCallsInFlightUnderOneReferenceOneIsSent(t *testing.T) {
	t.Parallel()
	for _, w := range wiretest.AllWrites() {
		want := int32(1) // requests while the first is in flight
		if w.Op == "UploadImage" {
			want = 2 // an image has no reference
		}
		t.Run(w.Op, func(t *testing.T) {
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
				if err := <-second; want == 1 {
					assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent", RetryAfter: 30 * time.Second}, wiretest.FactsOf(t, err), "what is left of the first call's time")
					assert.Equal(t, w.Reference, wiretest.Failure(t, err).Reference)
				} else {
					require.NoError(t, err)
				}

				err := w.Call(t.Context(), c)
				if w.Unique {
					assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed DuplicateIntent"}, wiretest.FactsOf(t, err))
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
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
			requests.Add(1)
			<-proceed
			return nil, wiretest.ErrBroken
		}))
		freeze := func(reference string) {
			_, _ = c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: reference})
		}
		go wiretest.TransferOutcome(t, c, "M-1")
		go wiretest.TransferOutcome(t, c, "M-2")
		go freeze(wiretest.OperationID)
		synctest.Wait()
		assert.EqualValues(t, 3, requests.Load())
		close(proceed)
	})
}

// However a call ends, its reference is free afterwards.
func TestAReferenceIsFreeAfterEachEnding(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	deduplicating := func(*int) []cardwire.Option {
		return []cardwire.Option{cardwire.WithProfile(func(p *cardwire.Profile) { p.ServerDeduplicates = true })}
	}
	for name, tc := range map[string]struct {
		asked []wiretest.Exchange
		opts  func(calls *int) []cardwire.Option
		panic bool
	}{
		"success":                      {asked: []wiretest.Exchange{wiretest.TransferDone}},
		"success, to be sent again":    {asked: []wiretest.Exchange{wiretest.TransferDone, wiretest.TransferDone}, opts: deduplicating},
		"refusal":                      {asked: []wiretest.Exchange{wiretest.TransferRefused, wiretest.TransferDone}},
		"unknown":                      {asked: []wiretest.Exchange{wiretest.TransferBroken, wiretest.TransferDone}},
		"unreadable":                   {asked: []wiretest.Exchange{wiretest.TransferUnreadable}},
		"unreadable, to be sent again": {asked: []wiretest.Exchange{wiretest.TransferUnreadable, wiretest.TransferDone}, opts: deduplicating},
		"the journal refuses": {asked: []wiretest.Exchange{wiretest.TransferDone}, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithJournal(&wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return errAtFirst(calls, broken) }})}
		}},
		"the journal says that it is taken": {asked: []wiretest.Exchange{wiretest.TransferDone}, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithJournal(&wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error {
				return errAtFirst(calls, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted})
			}})}
		}},
		"the journal does not record the end": {asked: []wiretest.Exchange{wiretest.TransferDone, wiretest.TransferDone}, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithJournal(&wiretest.Journal{OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error { return errAtFirst(calls, broken) }})}
		}},
		"the limiter refuses": {asked: []wiretest.Exchange{wiretest.TransferDone}, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return errAtFirst(calls, broken) }))}
		}},
		"the journal panics": {asked: []wiretest.Exchange{wiretest.TransferDone}, panic: true, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithJournal(&wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { panicAtFirst(calls); return nil }})}
		}},
		"the limiter panics": {asked: []wiretest.Exchange{wiretest.TransferDone}, panic: true, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { panicAtFirst(calls); return nil }))}
		}},
		"the doer panics": {panic: true, opts: func(calls *int) []cardwire.Option {
			return []cardwire.Option{cardwire.WithHTTPClient(wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				panicAtFirst(calls)
				return wiretest.Response(r, 200, wiretest.Success(wiretest.TransferData)), nil
			}))}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			var opts []cardwire.Option
			if tc.opts != nil {
				opts = tc.opts(&calls)
			}
			c := wiretest.Converse(t, tc.asked, opts...)
			if tc.panic {
				assert.PanicsWithValue(t, "a panic of the caller's", func() { wiretest.TransferOutcome(t, c, "M-1") })
			} else {
				wiretest.TransferOutcome(t, c, "M-1")
			}
			assert.Equal(t, cardwire.OutcomeExecuted, wiretest.TransferOutcome(t, c, "M-1"), "the second call")
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
func TestAPanicLeavesTheReferenceUnknown(t *testing.T) {
	t.Parallel()
	calls := 0
	doer := wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		panicAtFirst(&calls)
		return wiretest.Response(r, 422, wiretest.OrderExists), nil
	})
	var ended []cardwire.Outcome
	watch := cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) { ended = append(ended, r.Outcome) },
	})
	c := wiretest.NewClient(t, doer, watch)
	assert.Panics(t, func() { wiretest.TransferOutcome(t, c, "M-1") })
	assert.Equal(t, []cardwire.Outcome{cardwire.OutcomeUnknown}, ended, "its end is reported")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"), "the refusal may be the echo of the first")

	broken := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { panic("a panic of the caller's") }}
	c = wiretest.NewClient(t, doer, cardwire.WithJournal(broken), watch)
	assert.Panics(t, func() { wiretest.TransferOutcome(t, c, "M-1") })
	assert.Len(t, ended, 3, "the ends of the three calls")

	calls = 0
	journal := new(wiretest.Journal)
	c = wiretest.NewClient(t, doer, cardwire.WithJournal(journal))
	assert.Panics(t, func() { wiretest.TransferOutcome(t, c, "M-1") })
	assert.Equal(t, []cardwire.IntentResult{{Outcome: cardwire.OutcomeUnknown}}, journal.Results)
}

func TestAReferenceThatIsUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferBroken, wiretest.TransferRefused, wiretest.TransferRefused, wiretest.Refusal(wiretest.SmallTransferRequest("M-2"))})
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))

	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, wiretest.Facts{
		Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 422, Code: 422, Message: "order exists",
	}, wiretest.FactsOf(t, err), "a later refusal")
	assert.Contains(t, err.Error(), "ask the service about M-1 before sending it again")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"), "and the one after that")

	assert.Equal(t, cardwire.OutcomeRefused, wiretest.TransferOutcome(t, c, "M-2"), "another reference")
}

func TestAReferenceOfATransferIsNoneOfAFreeze(t *testing.T) {
	t.Parallel()
	var c *cardwire.Client
	freeze := func() cardwire.Outcome {
		_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: wiretest.FreezeID})
		return wiretest.Failure(t, err).Outcome
	}
	c = wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/cards/suspend") {
			return wiretest.Response(r, 422, wiretest.OrderExists), nil
		}
		assert.Equal(t, cardwire.OutcomeRefused, freeze(), "while the transfer is in progress")
		return nil, errors.New("reset")
	}))
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, wiretest.FreezeID))
	assert.Equal(t, cardwire.OutcomeRefused, freeze(), "after the transfer ended unknown")
}

func TestASuccessOfAnUnknownReferenceIsASuccess(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferBroken, wiretest.TransferDone})
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, &cardwire.Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: cardwire.TransferWaitProcess}, transfer)
}

// 429 and 401 guarantee that nothing happened, but not of a reference that was
// sent before.
func TestNoRefusalResolvesAnUnknownReference(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 404, 429} {
		c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferBroken, {Want: wiretest.SmallTransferRequest("M-1"), Status: status}})
		require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
		assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
	}
}

// hashOf is a hash of sorted fields, each preceded by its length.
// Its form must not change: journals compare across releases.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestJournalIsToldOfEachWrite(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		intents []cardwire.Intent
		service string
	}{
		"CreateTransfer": {[]cardwire.Intent{{
			Op: "CreateTransfer", Reference: "M-1", Unique: true, Summary: "10.50 EUR",
			BodySHA256: hashOf("15:merchantOrderNo3:M-114:payoutCurrency3:EUR14:transferAmount5:10.50"),
		}}, "A-1"},
		"FreezeCard": {[]cardwire.Intent{{
			Op: "FreezeCard", Reference: wiretest.FreezeID, Unique: true,
			BodySHA256: hashOf("6:cardId2:c119:clientTransactionId36:" + wiretest.FreezeID),
		}}, wiretest.UUID},
		"CancelOperation": {[]cardwire.Intent{{
			Op: "CancelOperation", Reference: wiretest.UUID,
			BodySHA256: hashOf("21:client_transaction_id36:" + wiretest.UUID + "4:type6:cancel"),
		}}, ""},
		"RetryOperation": {[]cardwire.Intent{{
			Op: "RetryOperation", Reference: wiretest.UUID,
			BodySHA256: hashOf("21:client_transaction_id36:" + wiretest.UUID + "4:type5:retry"),
		}}, ""},
		"UploadImage": {nil, ""},
		"CloseCard": {[]cardwire.Intent{{
			Op: "CloseCard", Reference: "C-1", Unique: true, BodySHA256: hashOf("17:POST /cards/close0:6:cardId2:c1"),
		}}, ""},
	}
	for _, w := range wiretest.AllWrites() {
		t.Run(w.Op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var events []string
				journal := &wiretest.Journal{
					OnBegin: func(context.Context, cardwire.Intent) error { events = append(events, "begin"); return nil },
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

				expected := want[w.Op]
				for i := range expected.intents {
					expected.intents[i].Time, expected.intents[i].SendBy = began, began.Add(30*time.Second)
				}
				assert.Equal(t, expected.intents, journal.Begun)
				assert.Equal(t, expected.intents, journal.Ended)
				if expected.intents == nil {
					assert.Equal(t, []string{"request"}, events)
					return
				}
				assert.Equal(t, []string{"begin", "request", "end"}, events)
				assert.Equal(t, []cardwire.IntentResult{{Outcome: cardwire.OutcomeExecuted, ServiceID: expected.service}}, journal.Results)
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
		"a line break":       {`A-1\n`, "A-1", true},
		"a change of order":  {`A\u202e-1`, "A-1", true},
		"a hidden character": {`A\u200b-1`, "A-1", true},
		"spaces at its ends": {`\u00a0 A-1 `, "A-1", true},
		"60 KB":              {"11" + long, "11" + long[:126], true},
		"129 bytes":          {"1" + long[:128], "1" + long[:126], true},
		"cut before a space": {strings.Repeat("1", 127) + " yz", strings.Repeat("1", 127), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for op, call := range map[string]struct {
				path string
				data string
				id   func(*cardwire.Client) (string, error)
			}{
				"CreateTransfer": {
					"data.api_order_no", `{"merchant_order_no":"M-1","api_order_no":"` + tc.sent + `","status":"wait_process"}`,
					func(c *cardwire.Client) (string, error) {
						got, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
						if got == nil {
							got = new(cardwire.Transfer)
						}
						return got.APIOrderNo, err
					},
				},
				"FreezeCard": {
					"data", `"` + tc.sent + `"`,
					func(c *cardwire.Client) (string, error) {
						got, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: wiretest.FreezeID})
						if got == nil {
							got = new(cardwire.CardOperation)
						}
						return got.ID, err
					},
				},
			} {
				journal := new(wiretest.Journal)
				observe, drift := wiretest.Drifts()
				got, err := call.id(wiretest.Respond(t, wiretest.Anything, wiretest.Success(call.data), observe, cardwire.WithJournal(journal)))
				if tc.want == "" {
					require.ErrorIs(t, err, cardwire.ErrUnreadable, op)
				} else {
					require.NoError(t, err, op)
				}
				assert.Equal(t, tc.want, got, op)
				outcome := cardwire.OutcomeExecuted
				if tc.want == "" && op == "FreezeCard" {
					outcome = cardwire.OutcomeUnknown // a transfer names its order, a freeze nothing
				}
				assert.Equal(t, []cardwire.IntentResult{{Outcome: outcome, ServiceID: tc.want}}, journal.Results, op)
				assert.Equal(t, tc.drift, slices.Contains(*drift, cardwire.Drift{call.path, "identifier with invisible characters"}), op)
			}
		})
	}
}

func TestJournalIsToldOfEachEnding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked wiretest.Exchange
		want  cardwire.IntentResult
	}{
		"success":                           {wiretest.TransferDone, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "A-1"}},
		"refusal":                           {wiretest.TransferRefused, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}},
		"no response":                       {wiretest.TransferBroken, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}},
		"a response that is half readable":  {wiretest.TransferUnreadable, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "A-7"}},
		"a response without the identifier": {wiretest.Exchange{Want: wiretest.SmallTransferRequest("M-1"), Response: wiretest.Success(`{}`)}, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}},
		"the response is about a different order": {
			wiretest.Exchange{Want: wiretest.SmallTransferRequest("M-1"), Response: wiretest.Success(`{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`)},
			cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown},
		},
		"the response is about a different order, without the identifier": {
			wiretest.Exchange{Want: wiretest.SmallTransferRequest("M-1"), Response: wiretest.Success(`{"merchant_order_no":"M-2","status":"wait_process"}`)},
			cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := new(wiretest.Journal)
			c := wiretest.Converse(t, []wiretest.Exchange{tc.asked}, cardwire.WithJournal(journal))
			assert.Equal(t, tc.want.Outcome, wiretest.TransferOutcome(t, c, "M-1"))
			assert.Equal(t, []cardwire.IntentResult{tc.want}, journal.Results)
		})
	}
}

func TestAJournalIsToldOfWhatWasNotSentAfterItWasAsked(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, opt := range map[string]cardwire.Option{
		"the limiter":    cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return broken })),
		"the key source": cardwire.WithKeySource(func(context.Context) (string, error) { return "", broken }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := new(wiretest.Journal)
			assert.Equal(t, cardwire.OutcomeNotSent, wiretest.TransferOutcome(t, wiretest.Unasked(t, cardwire.WithJournal(journal), opt), "M-1"))
			assert.Equal(t, []cardwire.IntentResult{{Outcome: cardwire.OutcomeNotSent}}, journal.Results)
		})
	}
}

// The order of a call with invalid parameters is failed, so its reference is closed.
func TestAReferenceWithInvalidParametersIsClosed(t *testing.T) {
	t.Parallel()
	journal := &wiretest.LookingJournal{}
	c := wiretest.Unasked(t, cardwire.WithJournal(journal))
	_, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "M-1"})
	wiretest.RefusedBeforehand(t, err, "TransferAmount")
	require.Len(t, journal.Begun, 1)
	assert.Equal(t, "M-1", journal.Begun[0].Reference)
	assert.Equal(t, journal.Begun, journal.Ended)
	assert.Equal(t, []cardwire.IntentResult{{Outcome: cardwire.OutcomeNotSent, Final: true}}, journal.Results, "an old message that comes late sends nothing")

	err = wiretest.Unasked(t, cardwire.WithJournal(journal)).CancelOperation(t.Context(), "case-4711")
	wiretest.RefusedBeforehand(t, err, "clientTransactionID")
	assert.Len(t, journal.Begun, 1, "a reference that is not valid as one is never sent")

	down := errors.New("down")
	for name, broken := range map[string]*wiretest.LookingJournal{
		"begin": {Journal: wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return down }}},
		"end":   {Journal: wiretest.Journal{OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error { return down }}},
	} {
		_, err := wiretest.Unasked(t, cardwire.WithJournal(broken)).CreateTransfer(t.Context(), cardwire.TransferParams{MerchantOrderNo: "M-1"})
		require.ErrorIs(t, err, down, name)
		assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err), "%s: it is not closed", name)
	}
}

func TestReadsAreNotRecorded(t *testing.T) {
	t.Parallel()
	journal := new(wiretest.Journal)
	const form = "\napplication/x-www-form-urlencoded\n\n"
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: "GET /shop/api/v1/bins/maintenance", Response: wiretest.Success(`[]`)},
		{Want: "POST /shop/api/v1/read" + form, Response: wiretest.Success(`[]`)},
		{Want: "POST /shop/api/v1/cards/private" + form + "cardId=c1", Response: wiretest.Success(`[]`)},
	}, cardwire.WithJournal(journal))
	_, err := c.ListBINsUnderMaintenance(t.Context())
	require.NoError(t, err)
	_, err = cardwire.Call[[]string](t.Context(), c, cardwire.Request{Op: "Read", Method: "POST", Path: "/read", ReadOnly: true})
	require.NoError(t, err)
	_, err = c.GetCardSecrets(t.Context(), "c1")
	require.ErrorIs(t, err, cardwire.ErrUnreadable)
	assert.Empty(t, journal.Begun)
}

func TestNothingIsSentThatTheJournalDidNotRecord(t *testing.T) {
	t.Parallel()
	down := errors.New("the database of 4111111111111111 is down")
	for name, tc := range map[string]struct {
		err  error
		want wiretest.Facts
	}{
		"an error":          {down, wiretest.Facts{Outcome: cardwire.OutcomeNotSent, Is: "NotSent"}},
		"unknown":           {&cardwire.DuplicateIntent{}, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent"}},
		"executed":          {&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed DuplicateIntent"}},
		"wrapped, executed": {fmt.Errorf("4111111111111111: %w", &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}), wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed DuplicateIntent"}},
		"wrapped, unknown":  {fmt.Errorf("%w: %w", down, &cardwire.DuplicateIntent{}), wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return tc.err }}
			c := wiretest.Unasked(t, cardwire.WithJournal(journal))
			_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, tc.want, wiretest.FactsOf(t, err))
			assert.Equal(t, "M-1", wiretest.Failure(t, err).Reference)
			assert.NotContains(t, err.Error(), "4111", "the text of a cause may hold anything")
			assert.Empty(t, journal.Ended, "what was not begun does not end")
			if errors.Is(tc.err, down) {
				require.ErrorIs(t, err, down, "what the journal says is found")
			}
			if tc.want.Outcome == cardwire.OutcomeNotSent {
				return
			}
			var taken *cardwire.DuplicateIntent
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
		want  wiretest.Facts
		says  string
	}{
		"the first did not happen": {
			nil, wiretest.Facts{Outcome: cardwire.OutcomeNotSent, Is: "NotSent OtherBody"},
			"cardwire: CreateTransfer M-1: not sent: this reference was already used for a different request: nothing was executed under it: use a new reference",
		},
		"the first is unknown": {
			&cardwire.DuplicateIntent{}, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"},
			"cardwire: CreateTransfer M-1: unknown outcome: this reference was already used for a different request: find out what became of the other request, then use a new reference",
		},
		"the first was executed": {
			&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"},
			"cardwire: CreateTransfer M-1: unknown outcome: this reference was already used for a different request: find out what became of the other request, then use a new reference",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := cardwire.DefaultProfile()
			p.ServerDeduplicates = true // lifts nothing of it
			journal := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error {
				return fmt.Errorf("4111111111111111: %w", errors.Join(cardwire.ErrOtherBody, tc.first))
			}}
			_, err := wiretest.Unasked(t, cardwire.WithJournal(journal), cardwire.WithProfile(func(own *cardwire.Profile) { *own = p })).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, tc.want, wiretest.FactsOf(t, err))
			require.EqualError(t, err, tc.says)
			assert.Empty(t, journal.Ended, "what was not begun does not end")
			if tc.first != nil {
				var taken *cardwire.DuplicateIntent
				require.ErrorAs(t, err, &taken)
				assert.Equal(t, tc.first, taken, "how the first stands is found")
			}
		})
	}
}

// A UUID is the same in capital letters.
func TestAnOperationIsUnknownInEitherCase(t *testing.T) {
	t.Parallel()
	const upper = "6F1C2A34-5B6D-4E7F-8A9B-0C1D2E3F4A5B"
	journal := new(wiretest.Journal)
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: wiretest.Anything, Err: wiretest.ErrBroken},
		{Want: "POST /shop/api/v1/cards/adjustAction\napplication/x-www-form-urlencoded\n\nclient_transaction_id=" + upper + "&type=cancel", Status: 422, Response: `{"code":422,"msg":"no such operation"}`},
	}, cardwire.WithJournal(journal))
	require.ErrorIs(t, c.CancelOperation(t.Context(), wiretest.UUID), cardwire.ErrOutcomeUnknown)
	err := c.CancelOperation(t.Context(), upper)
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown, "the refusal may be the echo of the first")
	assert.Equal(t, wiretest.UUID, wiretest.Failure(t, err).Reference)
	require.Len(t, journal.Begun, 2)
	assert.Equal(t, wiretest.UUID, journal.Begun[1].Reference)
}

// What a journal knows of a reference is more than the client remembers.
func TestAnotherBodyUnderAReferenceThatWasSettledSince(t *testing.T) {
	t.Parallel()
	calls := 0
	journal := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error {
		if calls++; calls == 1 {
			return nil
		}
		return cardwire.ErrOtherBody // the first was found not to have happened
	}}
	c := wiretest.Converse(t, []wiretest.Exchange{{Want: wiretest.Anything, Err: wiretest.ErrBroken}}, cardwire.WithJournal(journal))
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	assert.Equal(t, cardwire.OutcomeNotSent, wiretest.TransferOutcome(t, c, "M-1"))
}

// Told "not sent" of a number that is in flight, its caller would send it again.
func TestACallThatCannotBeSentUnderAReferenceInFlight(t *testing.T) {
	t.Parallel()
	inexact := wiretest.SmallTransfer("M-1")
	inexact.TransferAmount = wiretest.Dec("10.005")
	for name, again := range map[string]func(ctx context.Context, c *cardwire.Client) error{
		"a context that has ended": func(ctx context.Context, c *cardwire.Client) error {
			done, cancel := context.WithCancel(ctx)
			cancel()
			_, err := c.CreateTransfer(done, wiretest.SmallTransfer("M-1"))
			return err
		},
		"a parameter": func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.CreateTransfer(ctx, inexact)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				proceed := make(chan struct{})
				c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
					<-proceed
					return wiretest.Response(r, http.StatusOK, wiretest.Success(wiretest.TransferData)), nil
				}))
				first := make(chan error, 1)
				go func() {
					_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
					first <- err
				}()
				synctest.Wait()
				err := again(t.Context(), c)
				assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent", RetryAfter: 30 * time.Second}, wiretest.FactsOf(t, err))
				assert.Equal(t, cardwire.StepWait, cardwire.NextStep(err))
				close(proceed)
				require.NoError(t, <-first)
				assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed DuplicateIntent"}, wiretest.FactsOf(t, again(t.Context(), c)), "of one that was executed")
			})
		})
	}
}

// Where the service deduplicates, a caller may retry an unknown reference,
// and nothing but that.
func TestServerDeduplicatesLiftsUnknownReferencesOnly(t *testing.T) {
	t.Parallel()
	p := cardwire.DefaultProfile()
	p.ServerDeduplicates = true
	for name, tc := range map[string]struct {
		taken    error
		asked    []wiretest.Exchange
		want     cardwire.Outcome
		recorded []cardwire.IntentResult
	}{
		"unknown, then done":         {&cardwire.DuplicateIntent{}, []wiretest.Exchange{wiretest.TransferDone}, cardwire.OutcomeExecuted, []cardwire.IntentResult{{Outcome: cardwire.OutcomeExecuted, ServiceID: "A-1"}}},
		"unknown, then refused":      {&cardwire.DuplicateIntent{}, []wiretest.Exchange{wiretest.TransferRefused}, cardwire.OutcomeUnknown, []cardwire.IntentResult{{Outcome: cardwire.OutcomeUnknown}}},
		"unknown, then no response":  {&cardwire.DuplicateIntent{}, []wiretest.Exchange{wiretest.TransferBroken}, cardwire.OutcomeUnknown, []cardwire.IntentResult{{Outcome: cardwire.OutcomeUnknown}}},
		"executed":                   {&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}, nil, cardwire.OutcomeExecuted, nil},
		"unknown, wrapped":           {fmt.Errorf("not on record: %w", &cardwire.DuplicateIntent{}), nil, cardwire.OutcomeUnknown, nil},
		"a journal that is not well": {errors.New("down"), nil, cardwire.OutcomeNotSent, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return tc.taken }}
			c := wiretest.Converse(t, tc.asked, cardwire.WithJournal(journal), cardwire.WithProfile(func(own *cardwire.Profile) { *own = p }))
			assert.Equal(t, tc.want, wiretest.TransferOutcome(t, c, "M-1"))
			assert.Equal(t, tc.recorded, journal.Results)
		})
	}
}

// That this retry was not sent does not say that the first was not: a caller
// who settles the order on "not sent" would settle it wrongly.
func TestARetryThatWasNotSentLeavesTheIntentUnresolved(t *testing.T) {
	t.Parallel()
	p := cardwire.DefaultProfile()
	p.ServerDeduplicates = true
	journal := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return &cardwire.DuplicateIntent{} }}
	c := wiretest.Unasked(t, cardwire.WithJournal(journal), cardwire.WithProfile(func(own *cardwire.Profile) { *own = p }),
		cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return errors.New("no") })))
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	assert.Equal(t, []cardwire.IntentResult{{Outcome: cardwire.OutcomeUnknown}}, journal.Results)
}

// The caller may be gone when the result is recorded.
func TestTheResultIsRecordedAfterTheCallerHasGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), wiretest.ContextKey{}, "kept"))
		journal := &wiretest.Journal{OnEnd: func(ctx context.Context, _ cardwire.Intent, _ cardwire.IntentResult) error {
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
		assert.Equal(t, []cardwire.IntentResult{{Outcome: cardwire.OutcomeUnknown}}, journal.Results)
	})
}

func TestAResultThatIsNotRecordedLeavesTheCallAsItWas(t *testing.T) {
	t.Parallel()
	down := errors.New("the database of 4111111111111111 is down")
	var told []error
	var infos []cardwire.CallInfo
	var log bytes.Buffer
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferDone, wiretest.Refusal(wiretest.SmallTransferRequest("M-2"))},
		cardwire.WithJournal(&wiretest.Journal{OnEnd: func(context.Context, cardwire.Intent, cardwire.IntentResult) error { return down }}),
		cardwire.WithObserver(cardwire.Observer{}),
		cardwire.WithObserver(cardwire.Observer{JournalError: func(_ context.Context, i cardwire.CallInfo, err error) {
			infos, told = append(infos, i), append(told, err)
		}}),
		cardwire.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
	)
	transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, &cardwire.Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: cardwire.TransferWaitProcess}, transfer)
	assert.Equal(t, cardwire.OutcomeRefused, wiretest.TransferOutcome(t, c, "M-2"))

	require.Len(t, told, 2)
	require.ErrorIs(t, told[0], down)
	assert.Equal(t, "the journal did not record the result: the intent stays open", told[0].Error())
	assert.Equal(t, cardwire.CallInfo{
		Op: "CreateTransfer", Method: "POST", Path: "/remittance/transfer", Reference: "M-1", Write: true,
	}, infos[0])
	assert.Equal(t, 2, strings.Count(log.String(), `level=WARN msg="cardwire: the journal did not record the result" operation=CreateTransfer reference=M-`))
	assert.NotContains(t, log.String(), "4111")
}

func TestTheHashOfABodyTellsBodiesApart(t *testing.T) {
	t.Parallel()
	journal := new(wiretest.Journal)
	c := wiretest.NewClient(t, wiretest.Always(422, wiretest.OrderExists), cardwire.WithJournal(journal))
	freeze := func(card, reference string) string {
		t.Helper()
		_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: card, ClientTransactionID: reference})
		require.ErrorIs(t, err, cardwire.ErrRefused)
		return journal.Begun[len(journal.Begun)-1].BodySHA256
	}
	closing := func(r cardwire.Request) string {
		t.Helper()
		r.Op, r.Method, r.Path, r.Reference = "Close", "POST", "/close", "R-1"
		_, err := cardwire.Call[any](t.Context(), c, r)
		require.ErrorIs(t, err, cardwire.ErrRefused)
		return journal.Begun[len(journal.Begun)-1].BodySHA256
	}
	assert.Equal(t, freeze("c1", wiretest.OperationID), freeze("c1", wiretest.OperationID), "the boundary is another one each time")
	assert.NotEqual(t, freeze("c1", wiretest.OperationID), freeze("c2", wiretest.OperationID))
	assert.Equal(t,
		closing(cardwire.Request{Form: url.Values{"a": {"1", "2"}, "b": {"3"}}}),
		closing(cardwire.Request{Form: url.Values{"b": {"3"}, "a": {"1", "2"}}}))
	assert.NotEqual(t, closing(cardwire.Request{Form: url.Values{"a": {"1"}}}), closing(cardwire.Request{Form: url.Values{"a": {"1"}, "b": {""}}}))
	assert.NotEqual(t, closing(cardwire.Request{Form: url.Values{"ab": {"c"}}}), closing(cardwire.Request{Form: url.Values{"a": {"bc"}}}))
	assert.Equal(t,
		closing(cardwire.Request{JSON: map[string]any{"a": 1, "b": "x"}}),
		closing(cardwire.Request{JSON: map[string]any{"b": "x", "a": 1}}))
	assert.NotEqual(t, closing(cardwire.Request{JSON: []int{1}}), closing(cardwire.Request{JSON: []int{2}}))
}

// A journal that hangs ends with the call's own deadline.
func TestTheJournalIsAskedWithinTheCallsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, _ cardwire.Intent) error { <-ctx.Done(); return ctx.Err() }
		c := wiretest.Unasked(t, cardwire.WithJournal(&wiretest.Journal{OnBegin: wait}), cardwire.WithTimeout(7*time.Second))
		start := time.Now()
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, cardwire.ErrNotSent)
		assert.Equal(t, 7*time.Second, time.Since(start))

		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start = time.Now()
		_, err = c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1"))
		require.ErrorIs(t, err, cardwire.ErrNotSent)
		assert.Equal(t, 7*time.Second, time.Since(start), "also where the context allows more")
	})
}

func TestADuplicateIntentSaysHowTheEarlierOneStands(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, &cardwire.DuplicateIntent{}, "cardwire: the outcome of an earlier call with this reference is unknown")
	assert.EqualError(t, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}, "cardwire: this reference was executed before")
	require.ErrorIs(t, error(&cardwire.DuplicateIntent{}), cardwire.ErrDuplicateIntent)
	assert.NotErrorIs(t, error(&cardwire.DuplicateIntent{}), cardwire.ErrOutcomeUnknown)
}

// A caller who settles an order on "not sent" asks about the order, not about
// the last try of it.
func TestWhatIsNotSentDoesNotResolveAnUnknownReference(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	unfit := wiretest.SmallTransfer("M-1")
	unfit.PayoutCurrency = "$"
	for name, again := range map[string]func(*cardwire.Client) error{
		"a context that is done": func(c *cardwire.Client) error {
			_, err := c.CreateTransfer(gone, wiretest.SmallTransfer("M-1"))
			return err
		},
		"a parameter that is refused": func(c *cardwire.Client) error {
			_, err := c.CreateTransfer(t.Context(), unfit)
			return err
		},
	} {
		c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferBroken}) // nothing is sent again
		require.Equal(t, cardwire.OutcomeNotSent, wiretest.Failure(t, again(c)).Outcome, name)
		require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
		assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, again(c)).Outcome, name)
	}
}

// A journal is a caller's: what it returns must not be believed blindly.
func TestAnOddDuplicateIsUnknown(t *testing.T) {
	t.Parallel()
	for _, odd := range []*cardwire.DuplicateIntent{nil, {Outcome: 7}, {Outcome: -1}, {Outcome: cardwire.OutcomeExecuted, InProgress: true}} {
		c := wiretest.Unasked(t, cardwire.WithJournal(&wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return odd }}))
		assert.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	}
}

// What becomes of an order when it is called again, refused, or called wrongly: the
// step that NextStep returns must hold for the order, not only for the call.

// A method other than GET is a write, which is sent once.
func TestCallIsAWriteUnlessItIsReadOnly(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		c := wiretest.Converse(t, []wiretest.Exchange{{Want: method + " /shop/api/v1/close\napplication/x-www-form-urlencoded\n\n", Status: 502}})
		_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "CloseCard", Method: method, Path: "/close"})
		assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 502}, wiretest.FactsOf(t, err), method)
		assert.False(t, wiretest.Failure(t, err).ReadOnly)
		assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
	}
	read := wiretest.Exchange{Want: "POST /shop/api/v1/search\napplication/x-www-form-urlencoded\n\n", Status: 502}
	c := wiretest.Converse(t, []wiretest.Exchange{read, read}, cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 1}))
	_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "Search", Method: "POST", Path: "/search", ReadOnly: true})
	assert.True(t, wiretest.Failure(t, err).ReadOnly)
	assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
}

func TestCallNeedsAReferenceWhereThereIsAJournal(t *testing.T) {
	t.Parallel()
	journal := new(wiretest.Journal)
	_, err := cardwire.Call[any](t.Context(), wiretest.Unasked(t, cardwire.WithJournal(journal)), cardwire.Request{Op: "CloseCard", Method: "POST", Path: "/close"})
	wiretest.RefusedBeforehand(t, err, "Reference")
	assert.NotErrorIs(t, err, cardwire.ErrSetup, "it is the request's own parameter")
	assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err))
	assert.Empty(t, journal.Begun)
}

// Data that T accepts is a success, data that T refuses proves nothing.
func TestCallWithDataThatTRefusesIsUnknown(t *testing.T) {
	t.Parallel()
	const want = "POST /shop/api/v1/close\napplication/x-www-form-urlencoded\n\n"
	call := func(data string) (struct{ ID string }, error) {
		c := wiretest.Respond(t, want, wiretest.Success(data))
		return cardwire.Call[struct{ ID string }](t.Context(), c, cardwire.Request{Op: "CloseCard", Method: "POST", Path: "/close", Reference: "R-1"})
	}
	got, err := call(`{"id":"A-1"}`)
	require.NoError(t, err)
	assert.Equal(t, "A-1", got.ID)
	for _, data := range []string{`7`, `[]`, `null`, `{"id":7}`} {
		_, err = call(data)
		assert.Equal(t, "Unknown Unreadable", wiretest.FactsOf(t, err).Is, data)
	}
}

func TestAnExecutedOrderIsNotSentAgain(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferDone})
	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.NoError(t, err)

	_, err = c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed DuplicateIntent"}, wiretest.FactsOf(t, err))
	assert.Equal(t, cardwire.StepDone, cardwire.NextStep(err))
	var d *cardwire.DuplicateIntent
	require.ErrorAs(t, err, &d)
	assert.Equal(t, &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted, ServiceID: "A-1"}, d)

	other := wiretest.SmallTransfer("M-1")
	other.TransferAmount = wiretest.Dec("11.50")
	_, err = c.CreateTransfer(t.Context(), other)
	assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"}, wiretest.FactsOf(t, err), "another body was not executed")
	assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
}

// One that was executed unreadably is known to be executed, too.
func TestAnOrderThatWasExecutedUnreadablyIsNotSentAgain(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferUnreadable})
	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.ErrorIs(t, err, cardwire.ErrExecuted)
	_, err = c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed DuplicateIntent"}, wiretest.FactsOf(t, err))
}

func TestAnUnknownOrderIsNotSentWithAnotherBody(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferBroken})
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	other := wiretest.SmallTransfer("M-1")
	other.TransferAmount = wiretest.Dec("11.50")
	_, err := c.CreateTransfer(t.Context(), other)
	assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent OtherBody"}, wiretest.FactsOf(t, err))
}

// The service is sent what it deduplicates, and its refusal does not undo what is known.
func TestServerDeduplicatesSendsAnExecutedOrderAgain(t *testing.T) {
	t.Parallel()
	deduplicates := cardwire.WithProfile(func(p *cardwire.Profile) { p.ServerDeduplicates = true })
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferDone, wiretest.TransferDone, wiretest.TransferRefused, wiretest.TransferBroken}, deduplicates)
	for range 2 {
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		require.NoError(t, err)
	}
	for range 2 {
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		require.ErrorIs(t, err, cardwire.ErrExecuted)
		assert.Equal(t, cardwire.StepDone, cardwire.NextStep(err))
	}
}

// With a journal the journal alone decides.
func TestAJournalDecidesWhatTheClientRemembers(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferDone, wiretest.TransferDone, wiretest.TransferBroken, wiretest.TransferRefused}, cardwire.WithJournal(new(wiretest.Journal)))
	for range 2 {
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		require.NoError(t, err)
	}
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, "Refused", wiretest.FactsOf(t, err).Is, "the journal granted the reference: it was resolved as not executed")
	assert.Equal(t, cardwire.StepFail, cardwire.NextStep(err))
}

func TestTheJournalIsToldWhatIsFinal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked wiretest.Exchange
		want  cardwire.IntentResult
	}{
		"refused for good": {wiretest.TransferRefused, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}},
		"for its rate":     {wiretest.Exchange{Want: wiretest.Anything, Status: 429, Response: `{"code":429,"msg":"slow down"}`}, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}},
		"for its key":      {wiretest.Exchange{Want: wiretest.Anything, Status: 401}, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}},
		"unknown":          {wiretest.TransferBroken, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}},
		"success":          {wiretest.TransferDone, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "A-1"}},
	} {
		journal := new(wiretest.Journal)
		wiretest.TransferOutcome(t, wiretest.Converse(t, []wiretest.Exchange{tc.asked}, cardwire.WithJournal(journal)), "M-1")
		assert.Equal(t, []cardwire.IntentResult{tc.want}, journal.Results, name)
	}
}

func TestWhatAJournalKnowsOfAReference(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		known *cardwire.DuplicateIntent
		is    string
		step  cardwire.Step
		after time.Duration
	}{
		"executed":      {&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted, ServiceID: "A-1"}, "Executed DuplicateIntent", cardwire.StepDone, 0},
		"unknown":       {&cardwire.DuplicateIntent{}, "Unknown DuplicateIntent", cardwire.StepReconcile, 0},
		"in progress":   {&cardwire.DuplicateIntent{InProgress: true, Remaining: 7 * time.Second}, "Unknown DuplicateIntent", cardwire.StepWait, 7 * time.Second},
		"refused":       {&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeRefused}, "Refused DuplicateIntent", cardwire.StepFail, 0},
		"voided":        {&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeNotSent}, "NotSent DuplicateIntent", cardwire.StepFail, 0},
		"in the future": {&cardwire.DuplicateIntent{InProgress: true, Remaining: -time.Second}, "Unknown DuplicateIntent", cardwire.StepWait, 0},
	} {
		for _, op := range []string{"begin", "look"} {
			transfer := wiretest.SmallTransfer("M-1")
			if op == "look" {
				transfer.TransferAmount = wiretest.Dec("10.005")
			}
			journal := &wiretest.LookingJournal{OnLook: func(string, string) error { return tc.known }}
			journal.OnBegin = func(context.Context, cardwire.Intent) error { return tc.known }
			_, err := wiretest.Unasked(t, cardwire.WithJournal(journal)).CreateTransfer(t.Context(), transfer)
			assert.Equal(t, tc.is, wiretest.FactsOf(t, err).Is, "%s, %s", name, op)
			assert.Equal(t, tc.after, wiretest.Failure(t, err).RetryAfter, "%s, %s", name, op)
			assert.Equal(t, tc.step, cardwire.NextStep(err), "%s, %s", name, op)
			assert.Empty(t, journal.Ended)
		}
	}
}

// Told "not sent", its caller would fail an order that may be paid.
func TestInvalidParametersOfAReferenceThatIsNotFree(t *testing.T) {
	t.Parallel()
	invalid := wiretest.SmallTransfer("M-1")
	invalid.TransferAmount = wiretest.Dec("10.005")
	again := func(c *cardwire.Client) error {
		_, err := c.CreateTransfer(t.Context(), invalid)
		return err
	}
	for name, tc := range map[string]struct {
		asked []wiretest.Exchange
		is    string
		step  cardwire.Step
	}{
		"free":     {nil, "InvalidParams NotSent", cardwire.StepFail},
		"refused":  {[]wiretest.Exchange{wiretest.TransferRefused}, "InvalidParams NotSent", cardwire.StepFail},
		"executed": {[]wiretest.Exchange{wiretest.TransferDone}, "Executed DuplicateIntent", cardwire.StepDone},
		"unknown":  {[]wiretest.Exchange{wiretest.TransferBroken}, "Unknown InvalidParams", cardwire.StepReconcile},
	} {
		c := wiretest.Converse(t, tc.asked)
		for range tc.asked {
			wiretest.TransferOutcome(t, c, "M-1")
		}
		err := again(c)
		assert.Equal(t, sorted(tc.is), sorted(wiretest.FactsOf(t, err).Is), name)
		assert.Equal(t, tc.step, cardwire.NextStep(err), name)
	}

	down := errors.New("down")
	for name, tc := range map[string]struct {
		journal cardwire.Journal
		is      string
		step    cardwire.Step
	}{
		"a journal that cannot be asked": {new(wiretest.Journal), "Unknown InvalidParams", cardwire.StepReconcile},
		"a journal where it is free":     {new(wiretest.LookingJournal), "InvalidParams NotSent", cardwire.StepFail},
		"a journal that is down":         {&wiretest.LookingJournal{OnLook: func(string, string) error { return down }}, "NotSent", cardwire.StepRetry},
		"a journal with another body": {
			&wiretest.LookingJournal{OnLook: func(string, string) error { return errors.Join(cardwire.ErrOtherBody, &cardwire.DuplicateIntent{}) }},
			"Unknown DuplicateIntent OtherBody", cardwire.StepReconcile,
		},
		"a journal that was given another body, which was not executed": {
			&refusingLooker{}, "NotSent OtherBody", cardwire.StepReconcile,
		},
	} {
		err := again(wiretest.Unasked(t, cardwire.WithJournal(tc.journal)))
		assert.Equal(t, sorted(tc.is), sorted(wiretest.FactsOf(t, err).Is), name)
		assert.Equal(t, tc.step, cardwire.NextStep(err), name)
	}
}

type refusingLooker struct{ wiretest.LookingJournal }

func (*refusingLooker) Begin(context.Context, cardwire.Intent) error { return cardwire.ErrOtherBody }

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
	journal := &wiretest.LookingJournal{OnLook: func(op, reference string) error { asked = append(asked, op+" "+reference); return nil }}
	c := wiretest.Unasked(t, cardwire.WithJournal(journal))
	_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{ClientTransactionID: strings.ToUpper(wiretest.FreezeID)})
	require.ErrorIs(t, err, cardwire.ErrInvalidParams)
	_, err = c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: "case 4711\x00"})
	require.ErrorIs(t, err, cardwire.ErrInvalidParams)
	_, err = c.GetCard(t.Context(), "")
	require.ErrorIs(t, err, cardwire.ErrInvalidParams)
	assert.Equal(t, []string{"FreezeCard " + wiretest.FreezeID}, asked, "a reference that is never sent is not asked about")

	journal.OnEnd = func(context.Context, cardwire.Intent, cardwire.IntentResult) error { return errors.New("down") }
	var unrecorded []string
	c = wiretest.Unasked(t, cardwire.WithJournal(journal), cardwire.WithObserver(cardwire.Observer{
		JournalError: func(_ context.Context, i cardwire.CallInfo, _ error) { unrecorded = append(unrecorded, i.Reference) },
	}))
	_, err = c.FreezeCard(t.Context(), cardwire.FreezeCardParams{ClientTransactionID: wiretest.FreezeID})
	require.ErrorIs(t, err, cardwire.ErrNotSent)
	assert.Equal(t, []string{wiretest.FreezeID}, unrecorded, "the reference was not closed")
}

// A code that means "this reference exists" may be the response to a second delivery.
func TestDuplicateCodesAreUnknown(t *testing.T) {
	t.Parallel()
	exists := cardwire.WithProfile(func(p *cardwire.Profile) {
		p.DuplicateCodes = []int{1409, 422}
		p.RefusedCodes = append(p.RefusedCodes, 1409)
	})
	for _, e := range []wiretest.Exchange{
		{Status: 422, Response: `{"code":422,"msg":"order exists","data":null}`},
		{Status: 400, Response: `{"code":1409,"msg":"order exists","data":null}`},
		{Status: 200, Response: `{"code":1409,"msg":"order exists","data":null}`},
		{Status: 409, Response: `{"code":1409,"msg":"order exists"}`},
	} {
		e.Want = wiretest.SmallTransferRequest("M-1")
		_, err := wiretest.Converse(t, []wiretest.Exchange{e}, exists).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		assert.Equal(t, "Unknown", wiretest.FactsOf(t, err).Is, e.Response)
		assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
	}
	_, err := cardwire.New(wiretest.Base, wiretest.Key, cardwire.WithProfile(func(p *cardwire.Profile) { p.DuplicateCodes = []int{200} }))
	require.ErrorIs(t, err, cardwire.ErrSetup)
}

// A refusal needs an envelope. What is in the place of one proves nothing.
func TestWhatIsARefusal(t *testing.T) {
	t.Parallel()
	const bom = "\xef\xbb\xbf"
	executed := wiretest.Success(wiretest.TransferData)
	bare := map[string]string{
		"an empty body": "", "white space": " \r\n\t", "HTML": "<html>blocked</html>", "HTML behind a byte order mark": bom + " <html>",
		"a string": `"no"`, "an array": `[1]`, "words": "Too many requests", "zeros": "\x00\x00",
	}
	for name, body := range bare {
		for _, status := range []int{401, 404, 405, 413, 429} {
			e := refusedWith(t, status, body)
			assert.Equal(t, "Refused Unreadable", firstAndLast(e), "%s under %d", name, status)
			assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(e), "%s under %d", name, status)
		}
		for _, status := range []int{400, 403, 415, 422, 409, 500, 200, 204} {
			e := refusedWith(t, status, body)
			assert.Equal(t, cardwire.OutcomeUnknown, e.Outcome, "%s under %d", name, status)
			assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(e), "%s under %d", name, status)
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
			assert.Equal(t, cardwire.OutcomeUnknown, e.Outcome, "%s under %d", name, status)
		}
	}
	for _, status := range []int{400, 401, 403, 404, 405, 413, 415, 422, 429} {
		for _, body := range []string{`{"code":1020,"msg":"no"}`, `{"msg":"","code":0}`, `{"data":{"field":"amount"},"msg":"no","code":422}`} {
			assert.Equal(t, cardwire.OutcomeRefused, refusedWith(t, status, body).Outcome, "%s under %d", body, status)
		}
	}
	e := refusedWith(t, 200, `{"code":422,"msg":"no"}`)
	assert.Equal(t, cardwire.OutcomeRefused, e.Outcome)
	e = refusedWith(t, 200, `{"code":422}`)
	assert.Equal(t, cardwire.OutcomeUnknown, e.Outcome, "without a message it is no envelope")
	e = refusedWith(t, 409, `{"code":422,"msg":"no"}`)
	assert.Equal(t, cardwire.OutcomeUnknown, e.Outcome, "409 is not in RefusedStatuses")
}

// firstAndLast are an error's outcome and cause.
func firstAndLast(e *cardwire.Error) string {
	name := map[cardwire.Outcome]string{cardwire.OutcomeRefused: "Refused", cardwire.OutcomeUnknown: "Unknown"}[e.Outcome]
	if errors.Is(e.Err, cardwire.ErrUnreadable) {
		name += " Unreadable"
	}
	return name
}

func refusedWith(t *testing.T, status int, body string) *cardwire.Error {
	t.Helper()
	c := wiretest.Converse(t, []wiretest.Exchange{{Want: wiretest.SmallTransferRequest("M-1"), Status: status, Response: body}})
	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	return wiretest.Failure(t, err)
}

// What a refusal says no to may be the second delivery of an order that was executed.
func TestARefusalThatNamesTheOrderIsUnknown(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`, `"M-1"`, `["M-1"]`, `{"M-1":"exists"}`,
		`{"order":{"no":"m-1"}}`, `[{"a":[1,{"b":"\u004d-1"}]}]`,
	} {
		for _, body := range []string{`{"code":422,"msg":"order exists","data":` + data + `}`, `{"data":` + data + `,"code":422,"msg":"order exists"}`} {
			assert.Equal(t, cardwire.OutcomeUnknown, refusedWith(t, 422, body).Outcome, body)
			assert.Equal(t, cardwire.OutcomeUnknown, refusedWith(t, 200, body).Outcome, body)
		}
	}
	for _, data := range []string{`{"merchant_order_no":"M-2"}`, `null`, `{}`, `"M-12"`, `["M1"]`, `7`} {
		assert.Equal(t, cardwire.OutcomeRefused, refusedWith(t, 422, `{"code":422,"msg":"no","data":`+data+`}`).Outcome, data)
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
		for _, body := range []string{wiretest.Success(data), `{"data":` + data + `,"msg":"success","code":200}`} {
			_, err := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), body).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, want, wiretest.FactsOf(t, err).Is, body)
		}
	}
	_, err := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), `{"code":200,"msg":"success"}`).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, "Unknown Unreadable", wiretest.FactsOf(t, err).Is)
	_, err = wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), `{"code":200,"msg":"balance too low","data":{"merchant_order_no":"M-1"}}`).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, "Unknown Unreadable", wiretest.FactsOf(t, err).Is, "the message contradicts the code")
}

// A message that is not a success's, beside good data, is drift.
func TestAStrangeMessageBesideGoodDataIsDrift(t *testing.T) {
	t.Parallel()
	response := `{"code":200,"msg":"order exists","data":` + wiretest.TransferData + `}`
	observe, told := wiretest.Drifts()
	transfer, err := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), response, observe).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, "A-1", transfer.APIOrderNo)
	assert.Equal(t, []cardwire.Drift{{"msg", "unknown success message"}}, *told)
	_, err = wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), response, cardwire.WithStrictDrift()).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, "Executed Drift", wiretest.FactsOf(t, err).Is)
}

// The record that is cancelled, retried or frozen is one.
func TestOfTwoCallsAboutOneRecordOneIsSent(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *cardwire.Client) error{
		"cancel": func(ctx context.Context, c *cardwire.Client) error {
			return c.CancelOperation(ctx, wiretest.OperationID)
		},
		"retry": func(ctx context.Context, c *cardwire.Client) error {
			return c.RetryOperation(ctx, strings.ToUpper(wiretest.OperationID))
		},
		"freeze": func(ctx context.Context, c *cardwire.Client) error {
			return wiretest.OnlyError(c.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: wiretest.OperationID}))
		},
	}
	for first, call := range calls {
		for second, again := range calls {
			t.Run(first+" and "+second, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					var requests atomic.Int32
					proceed := make(chan struct{})
					c := wiretest.NewClient(t, wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
						requests.Add(1)
						<-proceed
						return nil, wiretest.ErrBroken
					}))
					done := make(chan struct{})
					go func() { defer close(done); _ = call(t.Context(), c) }()
					synctest.Wait()
					time.Sleep(2 * time.Second)
					err := again(t.Context(), c)
					assert.Equal(t, cardwire.StepWait, cardwire.NextStep(err))
					assert.Equal(t, 28*time.Second, wiretest.Failure(t, err).RetryAfter, "until the first may send no more")
					assert.Equal(t, wiretest.OperationID, wiretest.Failure(t, err).Reference)
					close(proceed)
					<-done
					assert.EqualValues(t, 1, requests.Load())
				})
			})
		}
	}
}

// By then it should have ended; its outcome is unknown.
func TestACallPastItsSendByIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
			<-proceed // whatever the context says
			return nil, wiretest.ErrBroken
		}))
		done := make(chan struct{})
		go func() { defer close(done); wiretest.TransferOutcome(t, c, "M-1") }()
		time.Sleep(31 * time.Second)
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent"}, wiretest.FactsOf(t, err))
		assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
		close(proceed)
		<-done
	})
}

func TestFreezeCardTakesAUUID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"case-4711", "f-1", strings.ReplaceAll(wiretest.FreezeID, "-", ""), "{" + wiretest.FreezeID + "}"} {
		_, err := wiretest.Unasked(t).FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: id})
		wiretest.RefusedBeforehand(t, err, "ClientTransactionID")
		assert.NotContains(t, err.Error(), "cardID")
	}
	upper := strings.ToUpper(wiretest.FreezeID)
	journal := new(wiretest.Journal)
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: wiretest.FreezeRequest("c1", upper), Err: wiretest.ErrBroken},
		{Want: wiretest.FreezeRequest("c1", wiretest.FreezeID), Err: wiretest.ErrBroken},
	}, cardwire.WithJournal(journal))
	for _, id := range []string{upper, wiretest.FreezeID} {
		_, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: "c1", ClientTransactionID: id})
		assert.Equal(t, wiretest.FreezeID, wiretest.Failure(t, err).Reference)
	}
	assert.Equal(t, wiretest.FreezeID, journal.Begun[0].Reference)
	assert.Equal(t, journal.Begun[0].BodySHA256, journal.Begun[1].BodySHA256, "one UUID is one request in either letter case")
}

// SendBy is at most the call's start plus its timeout, whatever the context allows.
func TestSendBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct{ context, timeout, want time.Duration }{
			{0, 0, 30 * time.Second}, {time.Hour, 0, 30 * time.Second}, {time.Second, 0, time.Second}, {time.Hour, time.Minute, time.Minute},
		} {
			journal := new(wiretest.Journal)
			opts := []cardwire.Option{cardwire.WithJournal(journal)}
			if tc.timeout > 0 {
				opts = append(opts, cardwire.WithTimeout(tc.timeout))
			}
			ctx := t.Context()
			if tc.context > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.context)
				defer cancel()
			}
			c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}), opts...)
			start := time.Now()
			_, err := c.CreateTransfer(ctx, wiretest.SmallTransfer("M-1"))
			require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
			assert.Equal(t, tc.want, time.Since(start))
			assert.Equal(t, start.Add(tc.want), journal.Begun[0].SendBy)
		}
	})
}

// The body of a Call is what is sent, and where to.
func TestTheDigestOfACall(t *testing.T) {
	t.Parallel()
	journal := new(wiretest.Journal)
	c := wiretest.NewClient(t, wiretest.Always(422, wiretest.OrderExists), cardwire.WithJournal(journal))
	digest := func(r cardwire.Request) string {
		r.Op, r.Method, r.Reference = "Close", "POST", "R-1"
		_, err := cardwire.Call[any](t.Context(), c, r)
		require.ErrorIs(t, err, cardwire.ErrRefused)
		return journal.Begun[len(journal.Begun)-1].BodySHA256
	}
	first := digest(cardwire.Request{Path: "/a", Query: url.Values{"x": {"1"}}})
	assert.Equal(t, first, digest(cardwire.Request{Path: "/a", Query: url.Values{"x": {"1"}}}))
	assert.NotEqual(t, first, digest(cardwire.Request{Path: "/b", Query: url.Values{"x": {"1"}}}))
	assert.NotEqual(t, first, digest(cardwire.Request{Path: "/a", Query: url.Values{"x": {"2"}}}))
}

// Who is told to wait calls again. That is no decision to send again what became
// unknown meanwhile.
func TestWhoWaitedDoesNotSendAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var requests atomic.Int32
		proceed := make(chan struct{})
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
			requests.Add(1)
			<-proceed
			return nil, wiretest.ErrBroken
		}))
		first := make(chan cardwire.Outcome, 1)
		go func() { first <- wiretest.TransferOutcome(t, c, "M-1") }()
		synctest.Wait()
		for range 2 {
			_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			require.Equal(t, cardwire.StepWait, cardwire.NextStep(err))
		}
		close(proceed)
		require.Equal(t, cardwire.OutcomeUnknown, <-first)
		for range 2 {
			_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown DuplicateIntent"}, wiretest.FactsOf(t, err))
		}
		assert.EqualValues(t, 1, requests.Load())
		wiretest.TransferOutcome(t, c, "M-1")
		assert.EqualValues(t, 2, requests.Load(), "the caller's own retry")
	})
}

// A journal that cannot be asked says nothing of what this client saw.
func TestAnUnknownReferenceStaysUnknownWhereTheJournalIsDown(t *testing.T) {
	t.Parallel()
	var down error
	journal := &wiretest.LookingJournal{OnLook: func(string, string) error { return down }}
	journal.OnBegin = func(context.Context, cardwire.Intent) error { return down }
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.TransferBroken}, cardwire.WithJournal(journal))
	require.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	down = errors.New("down")
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.TransferOutcome(t, c, "M-1"))
	invalid := wiretest.SmallTransfer("M-1")
	invalid.TransferAmount = wiretest.Dec("10.005")
	_, err := c.CreateTransfer(t.Context(), invalid)
	assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
}

func TestMoreThatNamesTheOrder(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"merchant_order_no":" M-1 "}`, `{"api_order_no":"A-1","status":"wait_process"}`} {
		assert.Equal(t, cardwire.OutcomeUnknown, refusedWith(t, 422, `{"code":422,"msg":"no","data":`+data+`}`).Outcome, data)
	}
	for _, body := range []string{`[` + wiretest.Success(wiretest.TransferData) + `]`, `)]}',` + wiretest.Success(wiretest.TransferData), "<html>M-1</html>", "<html>m-1</html>"} {
		assert.Equal(t, cardwire.OutcomeUnknown, refusedWith(t, 404, body).Outcome, body)
	}
	for _, data := range []string{`{"merchant_order_no":["M-2"],"api_order_no":"A-1"}`, `{"merchant_order_no":{"no":"M-2"},"api_order_no":"A-1"}`} {
		_, err := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), wiretest.Success(data)).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		assert.Equal(t, "Unknown Unreadable", wiretest.FactsOf(t, err).Is, data)
	}
	_, err := cardwire.Call[any](t.Context(), wiretest.Unasked(t), cardwire.Request{Op: "UploadImage", Method: "POST", Path: "/withdraw"})
	wiretest.RefusedBeforehand(t, err, "Op must not be UploadImage")
}

// These values are in the journals of others. A digest that changes with a release
// turns every order that is pending then into ErrOtherBody: do not change them. They
// were computed by another program: the SHA-256 over all names and values that are
// sent, sorted by name, each preceded by its length in bytes and a colon.
func TestBodyDigestsAreTheSameInEveryRelease(t *testing.T) {
	t.Parallel()
	errStop := errors.New("nothing is to be sent")
	const record = "6f1ab0f2-3c53-4f0c-9f0a-2d8f3c1f7a10"
	for name, tc := range map[string]struct {
		call func(context.Context, *cardwire.Client) error
		want string
	}{
		"a transfer of few fields": {func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.CreateTransfer(ctx, cardwire.TransferParams{
				MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: wiretest.Dec("10"),
			})
			return err
		}, "be18847abad7cc1f172c0c52392a88a4460aa91c71fd0f1744d84104df446e2f"},
		"a transfer of all fields": {func(ctx context.Context, c *cardwire.Client) error {
			_, err := c.CreateTransfer(ctx, cardwire.TransferParams{
				MerchantOrderNo: "order-2", PayoutCurrency: "JPY", TransferType: cardwire.TransferTypeC2C,
				PayoutMethod: cardwire.PayoutMethodBankTransfer, SenderBeneficiaryRelationship: "1", TransferAmount: wiretest.Dec("1234567.5"),
				SenderSourceOfFund: "2", PurposeOfRemittance: "3", SenderFirstName: "Ada", SenderLastName: "O'Brien-Łoś",
				SenderGender: "F", SenderMobileNumber: "+4915112345678", SenderIDType: "4", SenderIDNumber: "L01X00T47",
				SenderDateOfBirth: cardwire.Date{Year: 1990, Month: 2, Day: 28}, SenderNationality: "DE", SenderIDIssueCountry: "276",
				SenderCountry: "DE", SenderAddress: "1 Main St, \"Flat\" 2\nBerlin", ReceiverNativeFirstName: "花子", ReceiverNativeLastName: "山田",
				ReceiverIDType: "5", ReceiverIDNumber: "12345678", ReceiverMobileNumber: "+819012345678", ReceiverBankAccountNumber: "7654321",
				Extra: map[string]string{"zzNewField": "z", "aaNewField": "a"},
			})
			return err
		}, "b2218f6e9f0f59a1b22b2cc89877e25a6420b074ab5019f142e5744e43e5ec50"},
		"a cancellation": {func(ctx context.Context, c *cardwire.Client) error { return c.CancelOperation(ctx, record) }, "8efb03ce6f46fa4ebef73881ac974b2ae9de9b2e0562e2d70190c4dd66834fd9"},
		"a retry":        {func(ctx context.Context, c *cardwire.Client) error { return c.RetryOperation(ctx, record) }, "2a3beab1cecafeeb6142b28c7ce434b585aac6a836cc9ee4901bc57ff2ae4a0a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := &wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return errStop }}
			client := wiretest.Unasked(t, cardwire.WithJournal(journal))
			require.ErrorIs(t, tc.call(t.Context(), client), errStop)
			assert.Equal(t, tc.want, journal.Begun[0].BodySHA256)
		})
	}
}
