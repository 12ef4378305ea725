package mocking_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/examples/mocking"
)

// caseID is the merchant's identifier of a suspicion.
const caseID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"

// A client is what the package needs: this does not compile otherwise.
var _ mocking.Cards = (*cardwire.Client)(nil)

var refund = mocking.Refund{
	ID: "1", Amount: decimal.RequireFromString("25.00"), Currency: "EUR", Account: "EXAMPLE-ACCOUNT-1",
}

// books are books in memory.
type books struct {
	mu        sync.Mutex
	states    map[string]mocking.State
	serviceNo string
}

func (b *books) Begin(_ context.Context, r mocking.Refund) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.states[r.ID]; ok && s != mocking.Pending {
		return "", errors.New("it is " + string(s))
	}
	if b.states == nil {
		b.states = map[string]mocking.State{}
	}
	b.states[r.ID] = mocking.Begun
	return "refund-" + r.ID, nil
}

func (b *books) End(_ context.Context, r mocking.Refund, s mocking.State, serviceNo string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states[r.ID], b.serviceNo = s, serviceNo
	return nil
}

// The first way: a stub of the API. It is the quickest, and asserts only
// what the merchant's code does with a response, not that such a response exists.

// stub returns what its fields contain. Those that a test does not set are not
// called: the nil interface would panic.
type stub struct {
	mocking.Cards
	transfer    error
	freeze      error
	card        *cardwire.Card
	cardFailure error
	onTransfer  func()
}

func (s stub) CreateTransfer(context.Context, cardwire.TransferParams, ...cardwire.CallOption) (*cardwire.Transfer, error) {
	if s.onTransfer != nil {
		s.onTransfer()
	}
	if s.transfer != nil {
		return nil, s.transfer
	}
	return &cardwire.Transfer{APIOrderNo: "AO1", Status: cardwire.TransferWaitProcess}, nil
}

func (s stub) FreezeCard(_ context.Context, p cardwire.FreezeCardParams, _ ...cardwire.CallOption) (*cardwire.CardOperation, error) {
	return &cardwire.CardOperation{ClientTransactionID: p.ClientTransactionID}, s.freeze
}

func (s stub) GetCard(context.Context, string, ...cardwire.CallOption) (*cardwire.Card, error) {
	return s.card, s.cardFailure
}

func outcome(o cardwire.Outcome) error { return &cardwire.Error{Op: "CreateTransfer", Outcome: o} }

func duplicate(d cardwire.DuplicateIntent) error {
	return &cardwire.Error{Op: "CreateTransfer", Outcome: d.Outcome, Err: &d}
}

func TestStubRefundIsAsNextStepSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		err       error
		state     mocking.State
		serviceNo string
		is        error // nil: the refund succeeds
	}{
		{"accepted", nil, mocking.Accepted, "AO1", nil},
		{"executed, and the response unreadable", outcome(cardwire.OutcomeExecuted), mocking.Accepted, "", nil},
		{"executed before", duplicate(cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted, ServiceID: "AO9"}), mocking.Accepted, "AO9", nil},
		{"in progress", duplicate(cardwire.DuplicateIntent{InProgress: true}), mocking.Begun, "", cardwire.ErrDuplicateIntent},
		{"refused", outcome(cardwire.OutcomeRefused), mocking.Failed, "", cardwire.ErrRefused},
		{
			"refused for now", &cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeRefused, HTTPStatus: http.StatusTooManyRequests},
			mocking.Pending, "", cardwire.ErrRateLimited,
		},
		{"not sent", outcome(cardwire.OutcomeNotSent), mocking.Pending, "", cardwire.ErrNotSent},
		{
			"not sent, and never to be", &cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeNotSent, Err: cardwire.ErrInvalidParams},
			mocking.Failed, "", cardwire.ErrInvalidParams,
		},
		{"unknown", outcome(cardwire.OutcomeUnknown), mocking.Unresolved, "", mocking.ErrUnresolved},
		{"an error of another kind", errors.New("out of memory"), mocking.Unresolved, "", mocking.ErrUnresolved},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := &books{}
			r := mocking.Refunds{Cards: stub{transfer: tt.err}, Books: b}
			require.ErrorIs(t, r.RefundByTransfer(t.Context(), refund), tt.is)
			assert.Equal(t, tt.state, b.states["1"])
			assert.Equal(t, tt.serviceNo, b.serviceNo)
		})
	}
}

// Where the program ends while a transfer is under way, the books know of it.
func TestStubRefundIsInTheBooksBeforeItIsSent(t *testing.T) {
	t.Parallel()
	b := &books{}
	var before mocking.State
	r := mocking.Refunds{Cards: stub{onTransfer: func() { before = b.states["1"] }}, Books: b}
	require.NoError(t, r.RefundByTransfer(t.Context(), refund))
	assert.Equal(t, mocking.Begun, before)
}

// The result is recorded also where the customer has closed the page.
func TestStubRefundIsRecordedForACallerWhoHasGone(t *testing.T) {
	t.Parallel()
	ctx, gone := context.WithCancel(t.Context())
	b := &strictBooks{}
	r := mocking.Refunds{Cards: stub{onTransfer: gone}, Books: b}
	require.NoError(t, r.RefundByTransfer(ctx, refund))
	assert.Equal(t, mocking.Accepted, b.states["1"])
}

// strictBooks do not write for a context that is done, as a database does not.
type strictBooks struct{ books }

func (b *strictBooks) End(ctx context.Context, r mocking.Refund, s mocking.State, serviceNo string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.books.End(ctx, r, s, serviceNo)
}

func TestStubFreezeIsLookedUpWhereItMayHaveHappened(t *testing.T) {
	t.Parallel()
	unknown, executed := outcome(cardwire.OutcomeUnknown), outcome(cardwire.OutcomeExecuted)
	frozen, active := &cardwire.Card{Status: cardwire.CardFrozen}, &cardwire.Card{Status: cardwire.CardActive}
	for _, tt := range []struct {
		name    string
		cards   stub
		blocked bool
		is      error
	}{
		{"accepted, and frozen", stub{card: frozen}, true, nil},
		{"accepted, and still active", stub{card: active}, false, mocking.ErrNotBlocked},
		{"accepted, and no look-up", stub{cardFailure: errors.New("down")}, false, mocking.ErrNotBlocked},
		{"executed, and frozen", stub{freeze: executed, card: frozen}, true, nil},
		{"executed, and unfrozen since", stub{freeze: executed, card: active}, false, cardwire.ErrExecuted},
		{"refused", stub{freeze: outcome(cardwire.OutcomeRefused)}, false, cardwire.ErrRefused},
		{"unknown, and suspended", stub{freeze: unknown, card: &cardwire.Card{Status: cardwire.CardSuspended}}, true, nil},
		{"unknown, and still active", stub{freeze: unknown, card: active}, false, cardwire.ErrOutcomeUnknown},
		{"unknown, and no look-up", stub{freeze: unknown, cardFailure: errors.New("down")}, false, cardwire.ErrOutcomeUnknown},
		{"not sent", stub{freeze: outcome(cardwire.OutcomeNotSent)}, false, cardwire.ErrNotSent},
		{"in progress, and frozen", stub{freeze: duplicate(cardwire.DuplicateIntent{InProgress: true}), card: frozen}, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mocking.Refunds{Cards: tt.cards, Books: &books{}}
			blocked, err := r.FreezeOnSuspicion(t.Context(), "card-1", caseID)
			require.ErrorIs(t, err, tt.is)
			assert.Equal(t, tt.blocked, blocked)
		})
	}
}

// The second way: a mock of HTTP, for responses that one has seen and wants to keep
// as they were. The client under test is the real one.

const baseURL = "https://api.example.com/api/v1"

// mocked returns a client whose requests reach the mock, and nothing else. The
// mock belongs to the whole process, so its tests do not run in parallel;
// httpmock.NewMockTransport makes one for each test.
func mocked(t *testing.T) *cardwire.Client {
	t.Helper()
	httpClient := &http.Client{}
	client, err := cardwire.New(baseURL, "a-key", cardwire.WithHTTPClient(httpClient))
	require.NoError(t, err)
	httpmock.ActivateNonDefault(httpClient) // also after New
	t.Cleanup(httpmock.DeactivateAndReset)
	return client
}

func TestMockRefundSendsTheOrderNumberAndTheExactAmount(t *testing.T) {
	client := mocked(t)
	httpmock.RegisterMatcherResponder(http.MethodPost, baseURL+"/remittance/transfer",
		httpmock.BodyContainsString(`"merchantOrderNo":"refund-1"`).
			And(httpmock.BodyContainsString(`"transferAmount":"25.00"`)).
			And(httpmock.HeaderIs("Authorization", "Bearer a-key")),
		httpmock.NewStringResponder(http.StatusOK, `{"code":200,"msg":"success","data":`+
			`{"merchant_order_no":"refund-1","api_order_no":"AO7","status":"wait_process"}}`))

	b := &books{}
	r := mocking.Refunds{Cards: client, Books: b}
	require.NoError(t, r.RefundByTransfer(t.Context(), refund))
	assert.Equal(t, "AO7", b.serviceNo)
}

// A response that is no clear refusal must not be taken for one.
func TestMockRefundStaysUnresolvedAfterAResponseThatProvesNothing(t *testing.T) {
	for name, response := range map[string]httpmock.Responder{
		"a gateway's page":    httpmock.NewStringResponder(http.StatusBadGateway, "<html>502 Bad Gateway</html>"),
		"a code without a no": httpmock.NewStringResponder(http.StatusOK, `{"code":500,"msg":"please try again","data":null}`),
	} {
		t.Run(name, func(t *testing.T) {
			client := mocked(t)
			httpmock.RegisterResponder(http.MethodPost, baseURL+"/remittance/transfer", response)
			b := &books{}
			r := mocking.Refunds{Cards: client, Books: b}
			require.ErrorIs(t, r.RefundByTransfer(t.Context(), refund), mocking.ErrUnresolved)
			assert.Equal(t, mocking.Unresolved, b.states["1"])
			assert.Equal(t, 1, httpmock.GetTotalCallCount(), "a transfer is sent once")
		})
	}
}

// The third way: the fake service. It knows what really happened.

func TestFakePaysTheCustomerOnceThoughTheResponseIsLost(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	b := &books{}
	r := mocking.Refunds{Cards: client, Books: b}

	err := r.RefundByTransfer(t.Context(), refund)
	require.ErrorIs(t, err, mocking.ErrUnresolved)
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
	assert.Equal(t, mocking.Unresolved, b.states["1"])

	// The customer complains and support presses the button once more: the books
	// say no, since no other number may be sent for it.
	require.ErrorContains(t, r.RefundByTransfer(t.Context(), refund), "it is unresolved")

	// The service's support says that it knows the number; only then is it sent.
	require.Equal(t, 1, service.Executions("CreateTransfer", "refund-1"))
	require.NoError(t, b.End(t.Context(), refund, mocking.Accepted, service.Ledger()[0].ID))
	assert.Equal(t, 1, service.Executions("CreateTransfer", ""), "under any number")
}

// What was not sent is still to be sent, under the same number.
func TestFakePaysTheCustomerOnceAfterACallThatSentNothing(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	r := mocking.Refunds{Cards: client, Books: &books{}}
	gone, leave := context.WithCancel(t.Context())
	leave()

	require.ErrorIs(t, r.RefundByTransfer(gone, refund), cardwire.ErrNotSent)
	require.NoError(t, r.RefundByTransfer(t.Context(), refund))
	assert.Equal(t, 1, service.Executions("CreateTransfer", "refund-1"))
}

// What was refused for now is sent again later, under the same number.
func TestFakePaysTheCustomerOnceAfterARefusalForNow(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, 1)
	r := mocking.Refunds{Cards: client, Books: &books{}}

	require.ErrorIs(t, r.RefundByTransfer(t.Context(), refund), cardwire.ErrRateLimited)
	require.NoError(t, r.RefundByTransfer(t.Context(), refund))
	assert.Equal(t, 1, service.Executions("CreateTransfer", "refund-1"))
}

// What was refused for good is not sent again: a corrected refund is another one.
func TestFakePaysNobodyAfterARefusalForGood(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: http.StatusUnprocessableEntity}, 1)
	r := mocking.Refunds{Cards: client, Books: &books{}}

	require.ErrorIs(t, r.RefundByTransfer(t.Context(), refund), cardwire.ErrRefused)
	require.ErrorContains(t, r.RefundByTransfer(t.Context(), refund), "it is failed")
	assert.Zero(t, service.Executions("CreateTransfer", ""))
	assert.Len(t, service.Requests(), 1)
}

func TestFakeFreezesTheCardThoughTheResponseIsLost(t *testing.T) {
	t.Parallel()
	server := cardwiretest.NewServer(t) // over loopback, where the connection is really reset
	server.SetCard(`{"id":"card-1"}`)
	server.Fail("FreezeCard", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	r := mocking.Refunds{Cards: server.Client(), Books: &books{}}

	blocked, err := r.FreezeOnSuspicion(t.Context(), "card-1", caseID)
	require.NoError(t, err)
	assert.True(t, blocked)
	assert.Equal(t, 1, server.Executions("FreezeCard", caseID))
}
