package hostile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// What the service and the requests hold, and no error may: the service's own
// secrets, and what is sent. Attempts and times beside them are digits too,
// which these are too long to be found in by chance.
const (
	faultNumber = "4917365624401735"
	faultCVV    = "7351537"
	faultKey    = "skCanaryZq8XvT3mKpW5Hd"
	faultQuery  = "canary-in-a-query"
	faultBody   = "canary-in-a-body"
	faultUUID   = "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"
)

// faultMessage is what the service says of a fault.
const faultMessage = "card " + faultNumber + ", key " + faultKey

// faultyCalls are calls of every operation by its name in the fake.
func faultyCalls() map[string]wiretest.Method {
	transfer := wiretest.SmallTransfer("M-1")
	transfer.SenderAddress, transfer.ReceiverBankAccountNumber = faultBody, faultBody
	calls := wiretest.MethodsGiven(wiretest.Given{
		Card: faultQuery, Order: faultQuery, Freeze: "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01", Operation: faultUUID,
		List:     cardwire.ListCardsParams{Page: 1, SubAccountID: faultQuery, Status: new(cardwire.CardActive)},
		Transfer: transfer, Image: []byte(faultBody),
	})
	delete(calls, "AllPages") // ListCards, to the fake
	delete(calls, "AllCards") // likewise
	delete(calls, "Call")     // what it is made to call
	return calls
}

// faultyCarriers are the ways to the fake. Each returns the client's base URL
// and what it needs beside the options of all clients.
var faultyCarriers = map[string]func(*testing.T, ...cardwiretest.Option) (*cardwiretest.Service, string, []cardwire.Option){
	"in process": func(_ *testing.T, opts ...cardwiretest.Option) (*cardwiretest.Service, string, []cardwire.Option) {
		s := cardwiretest.New(opts...)
		return s, "https://cards.example/api/v1", []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: s})}
	},
	// With a timeout http.Client makes the call, whose errors quote the URL.
	"by an http.Client": func(_ *testing.T, opts ...cardwiretest.Option) (*cardwiretest.Service, string, []cardwire.Option) {
		s := cardwiretest.New(opts...)
		hc := &http.Client{Transport: s, Timeout: time.Minute}
		return s, "https://cards.example/api/v1", []cardwire.Option{cardwire.WithHTTPClient(hc)}
	},
}

func faultyService() []cardwiretest.Option {
	profile := cardwire.DefaultProfile()
	profile.SubAccountParam = "sub"
	return []cardwiretest.Option{cardwiretest.WithKey(faultKey), cardwiretest.WithProfile(profile), cardwiretest.WithCards(3)}
}

// provide puts canaries into the service and returns a client of it.
func provide(t *testing.T, s *cardwiretest.Service, base string, told *bytes.Buffer, opts []cardwire.Option) *cardwire.Client {
	t.Helper()
	s.SetCard(fmt.Sprintf(`{"id":%q,"order_id":%[1]q,"sub_account_id":%[1]q,"card_bin":"491736","card_no":%q,"cvv":%q}`,
		faultQuery, faultNumber, faultCVV))
	s.AddFailedOperation(faultUUID, "close")
	profile := cardwire.DefaultProfile()
	profile.SubAccountParam = "sub"
	c, err := cardwire.New(base, faultKey, append(opts,
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile }), cardwire.WithMaxResponseBytes(64<<10), cardwire.WithTimeout(time.Second),
		cardwire.WithRetry(cardwire.RetryPolicy{MaxRetries: 1}),
		cardwire.WithLogger(slog.New(slog.NewTextHandler(told, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		cardwire.WithObserver(cardwire.Observer{CallEnd: func(_ context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
			fmt.Fprintf(told, "%+v %+v\n", i, r)
		}}))...)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// eachFault calls f with every fault.
func eachFault(executed bool, f func(cardwiretest.Fault)) {
	for kind := cardwiretest.FaultKind(0); !strings.HasPrefix(kind.String(), "FaultKind("); kind++ {
		f(cardwiretest.Fault{Kind: kind, Executed: executed, Message: faultMessage, Delay: time.Millisecond})
	}
	f(cardwiretest.Fault{Status: 422, Message: faultMessage})
}

func TestNoErrorOfAFaultShowsASecret(t *testing.T) {
	t.Parallel()
	var errs, texts atomic.Int64
	t.Cleanup(func() { t.Logf("%d errors, %d texts", errs.Load(), texts.Load()) })
	for op, call := range faultyCalls() {
		for name, carrier := range faultyCarriers {
			t.Run(op+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					eachFault(name == "in process", func(f cardwiretest.Fault) {
						s, base, opts := carrier(t, faultyService()...)
						n, heard := strike(t, s, base, opts, op, f, call)
						errs.Add(int64(n))
						texts.Add(int64(heard))
					})
				})
			})
		}
		t.Run(op+" over loopback", func(t *testing.T) {
			t.Parallel()
			eachFault(false, func(f cardwiretest.Fault) {
				if f.Kind == cardwiretest.FaultHang || f.Kind == cardwiretest.FaultLate {
					return // real seconds: what the client sees is its own deadline
				}
				t.Run(fmt.Sprint(f.Kind, f.Status), func(t *testing.T) {
					server := cardwiretest.NewServer(t, faultyService()...)
					n, heard := strike(t, server.Service, server.URL, nil, op, f, call)
					errs.Add(int64(n))
					texts.Add(int64(heard))
				})
			})
		})
	}
}

// A response to something else: no error says what was asked for.
func TestNoErrorOfAnotherResponseShowsASecret(t *testing.T) {
	t.Parallel()
	const card = `{"id":"card-2","available":"1.000","pending":0,"frozen":0,"fee":"0.00","status":1}`
	for op, other := range map[string]struct{ route, data string }{
		"ListCards": {"GET /cards", `{"total":1,"per_page":1,"current_page":1,"last_page":1,"data":[` + card + `]}`},
		"GetCard":   {"GET /cards/info", card},
		"CreateTransfer": {"POST /remittance/transfer",
			`{"merchant_order_no":"order-2","api_order_no":"AO2","status":"wait_process"}`},
	} {
		s := cardwiretest.New(faultyService()...)
		method, path, _ := strings.Cut(other.route, " ")
		s.Handle(method, path, func(*http.Request) (int, string, any) {
			return 200, "success", json.RawMessage(other.data)
		})
		way := []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: s})}
		errs, _ := strike(t, s, "https://cards.example/api/v1", way, op, cardwiretest.Fault{}, faultyCalls()[op])
		assert.Equal(t, 1, errs, op)
	}
}

// strike makes one call that meets the fault, and searches all that it leaves.
func strike(t *testing.T, s *cardwiretest.Service, base string, opts []cardwire.Option, op string, f cardwiretest.Fault, call wiretest.Method) (errs, texts int) {
	t.Helper()
	var told bytes.Buffer
	c := provide(t, s, base, &told, opts)
	s.Fail(op, f, -1)
	var r cardwire.Response
	err := call(t.Context(), c, cardwire.WithResponse(&r))
	secrets := []string{faultNumber[3:13], faultCVV, faultKey}
	texts = AssertErrorSilent(t, err, nil, append(secrets, faultQuery, faultBody)...)
	texts += AssertErrorSilent(t, nil, &r, secrets...) // a redirect's header repeats the query
	AssertTextSilent(t, told.String(), append(secrets, faultQuery, faultBody)...)
	if err != nil {
		errs = 1
	}
	assert.NotContains(t, fmt.Sprint(err), base, f.Kind)
	return errs, texts
}
