//go:build unix

package payouts

import (
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// lateBy is how long after a client has gone an order is executed late.
const lateBy = 300 * time.Millisecond

// faults are what every second call meets.
var faults = []cardwiretest.Fault{
	{Status: 400, Message: "the amount is not accepted"},
	{Status: 200, Code: 422, Message: "the account is closed"},
	{Status: 503},
	{Status: 500, Executed: true},
	{Status: 504, Executed: true},
	{Status: 200, Code: 500, Executed: true},
	{Status: 200, Code: 200, Message: "success"}, // without the order
	{Status: 422, Message: "this order already exists", Executed: true},
	{Kind: cardwiretest.FaultHTML},
	{Kind: cardwiretest.FaultHTML, Status: 200, Executed: true},
	{Kind: cardwiretest.FaultHTML, Status: 403, Executed: true},
	{Kind: cardwiretest.FaultRateLimited},
	{Kind: cardwiretest.FaultReset},
	{Kind: cardwiretest.FaultReset, Executed: true},
	{Kind: cardwiretest.FaultHang},
	{Kind: cardwiretest.FaultHang, Executed: true},
	{Kind: cardwiretest.FaultLate, Delay: lateBy},
	{Kind: cardwiretest.FaultTruncated},
	{Kind: cardwiretest.FaultGarbage, Executed: true},
}

// service is the fake on loopback. It does not deduplicate: what is sent twice is executed twice.
type service struct {
	*cardwiretest.Service

	server http.Server
	base   string
}

func startService(ctx context.Context) (*service, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{Service: cardwiretest.New(cardwiretest.WithKey(key))}
	s.base = "http://" + listener.Addr().String() + "/api/v1"
	s.server.Handler, s.server.ErrorLog = s, log.New(io.Discard, "", 0) // broken connections are its daily business
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// ServeHTTP has every second request meet a fault. None waits longer than a call may take: the client
// may have been stopped.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	fault := cardwiretest.Fault{Kind: cardwiretest.FaultSlow} // by nothing
	if n := rand.N(2 * len(faults)); n < len(faults) {
		fault = faults[n]
	}
	s.Fail(cardwire.OpCreateTransfer, fault, 1)
	s.Service.ServeHTTP(w, r.WithContext(ctx))
}

// executed returns the service's numbers of what was executed, by order.
func (s *service) executed() map[string][]string {
	ids := map[string][]string{}
	for _, e := range s.Ledger() {
		ids[e.Reference] = append(ids[e.Reference], e.ID)
	}
	return ids
}

// finish returns when nothing can be executed any more.
func (s *service) finish(ctx context.Context) error {
	return errors.Join(s.server.Shutdown(ctx), pause(ctx, 10*lateBy))
}
