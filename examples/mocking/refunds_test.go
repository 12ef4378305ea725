package mocking_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jarcoal/httpmock"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/examples/mocking"
	"github.com/cardwire/cardwire-go/journal"
)

// refund pays 25.00 EUR under the number refund-1.
func refund(t *testing.T, by mocking.Transfers) (state mocking.State, serviceNo string, err error) {
	t.Helper()
	return mocking.Refund(t.Context(), by, "refund-1", decimal.RequireFromString("25.00"), "EUR", "EXAMPLE-ACCOUNT-1")
}

// The first way: a stub of the API. It is the quickest, and asserts only what the
// merchant's code does with a response, not that such a response exists.

// stub is what CreateTransfer returns.
type stub struct {
	transfer *cardwire.Transfer
	err      error
}

func (s stub) CreateTransfer(
	context.Context, cardwire.TransferParams, ...cardwire.CallOption,
) (*cardwire.Transfer, error) {
	return s.transfer, s.err
}

func TestStubRefundIsAsNextStepSays(t *testing.T) {
	t.Parallel()
	failed := func(o cardwire.Outcome, cause error) stub {
		return stub{nil, &cardwire.Error{Op: "CreateTransfer", Outcome: o, Err: cause}}
	}
	before := &cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeExecuted, ServiceID: "AO9"}
	for name, tc := range map[string]struct {
		transfers stub
		state     mocking.State
		serviceNo string
	}{
		"accepted":        {stub{&cardwire.Transfer{APIOrderNo: "AO1"}, nil}, mocking.Accepted, "AO1"},
		"unreadable":      {failed(cardwire.OutcomeExecuted, nil), mocking.Accepted, ""},
		"executed before": {stub{nil, before}, mocking.Accepted, "AO9"},
		"in progress": {
			failed(cardwire.OutcomeUnknown, &cardwire.DuplicateIntent{InProgress: true}), mocking.Pending, "",
		},
		"refused":            {failed(cardwire.OutcomeRefused, nil), mocking.Failed, ""},
		"not sent":           {failed(cardwire.OutcomeNotSent, nil), mocking.Pending, ""},
		"never to be sent":   {failed(cardwire.OutcomeNotSent, cardwire.ErrInvalidParams), mocking.Failed, ""},
		"unknown":            {failed(cardwire.OutcomeUnknown, nil), mocking.Unresolved, ""},
		"some other failure": {stub{nil, errors.New("out of memory")}, mocking.Unresolved, ""},
	} {
		state, serviceNo, err := refund(t, tc.transfers)
		assert.Equal(t, tc.state, state, name)
		assert.Equal(t, tc.serviceNo, serviceNo, name)
		assert.Equal(t, tc.state == mocking.Accepted, err == nil, name)
	}
}

// The second way: a mock of HTTP, for responses that one has seen and wants to keep
// as they were. The client under test is the real one.

const baseURL = "https://api.example.com/api/v1"

// mocked returns a client whose requests reach the mock, and nothing else.
func mocked(t *testing.T) (*cardwire.Client, *httpmock.MockTransport) {
	t.Helper()
	mock := httpmock.NewMockTransport()
	client, err := cardwire.New(baseURL, "a-key", cardwire.WithHTTPClient(&http.Client{Transport: mock}),
		cardwire.WithJournal(journal.NewMemory()))
	require.NoError(t, err)
	return client, mock
}

func TestMockRefundSendsTheOrderNumberAndTheExactAmount(t *testing.T) {
	t.Parallel()
	client, mock := mocked(t)
	mock.RegisterMatcherResponder(http.MethodPost, baseURL+"/remittance/transfer",
		httpmock.BodyContainsString(`"merchantOrderNo":"refund-1"`).
			And(httpmock.BodyContainsString(`"transferAmount":"25.00"`)).
			And(httpmock.HeaderIs("Authorization", "Bearer a-key")),
		httpmock.NewStringResponder(http.StatusOK, `{"code":200,"msg":"success","data":`+
			`{"merchant_order_no":"refund-1","api_order_no":"AO7","status":"wait_process"}}`))
	state, serviceNo, err := refund(t, client)
	require.NoError(t, err)
	assert.Equal(t, mocking.Accepted, state)
	assert.Equal(t, "AO7", serviceNo)
}

// A response that is no clear refusal must not be taken for one.
func TestMockRefundStaysUnresolvedAfterAResponseThatProvesNothing(t *testing.T) {
	t.Parallel()
	client, mock := mocked(t)
	mock.RegisterResponder(http.MethodPost, baseURL+"/remittance/transfer",
		httpmock.NewStringResponder(http.StatusBadGateway, "<html>502 Bad Gateway</html>"))
	state, _, err := refund(t, client)
	assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
	assert.Equal(t, mocking.Unresolved, state)
	assert.Equal(t, 1, mock.GetTotalCallCount(), "a transfer is sent once")
}

// A mock that gets no request, or an unexpected one, says so.
func TestMockThatLacksSomething(t *testing.T) {
	httpmock.Activate(t)
	for want, opts := range map[string][]cardwire.Option{
		"connection refused by 127.0.0.1:1: this client does not use the mock in http.DefaultTransport: " +
			"pass WithHTTPClient(http.DefaultClient)": {cardwire.WithRetry(cardwire.RetryPolicy{})},
		"no responder found: register one for GET http://127.0.0.1:1/api/v1/bins": {
			cardwire.WithHTTPClient(http.DefaultClient), cardwire.WithRetry(cardwire.RetryPolicy{}),
		},
	} {
		client, err := cardwire.New("http://127.0.0.1:1/api/v1", "a-key", opts...)
		require.NoError(t, err)
		_, err = client.ListBINs(t.Context())
		require.ErrorContains(t, err, ": "+want+": it is safe to call again")
	}
}

// The third way: the fake service. It knows what really happened.

func TestFakePaysTheCustomerOnceThoughTheResponseIsLost(t *testing.T) {
	t.Parallel()
	client, service := cardwiretest.NewClient(t)
	service.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	for range 2 { // support presses the button once more
		state, _, err := refund(t, client)
		assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
		assert.Equal(t, mocking.Unresolved, state)
	}
	assert.Equal(t, 1, service.Executions("CreateTransfer", "refund-1"))
}

// What was refused for now is sent again later, under the same number.
func TestFakePaysTheCustomerOnceAfterARefusalForNow(t *testing.T) {
	t.Parallel()
	server := cardwiretest.NewServer(t) // over loopback, where a connection can really be reset
	server.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, 1)
	client := server.Client()
	state, _, err := refund(t, client)
	require.ErrorIs(t, err, cardwire.ErrRateLimited)
	assert.Equal(t, mocking.Pending, state)
	state, _, err = refund(t, client)
	require.NoError(t, err)
	assert.Equal(t, mocking.Accepted, state)
	assert.Equal(t, 1, server.Executions("CreateTransfer", "refund-1"))
}
