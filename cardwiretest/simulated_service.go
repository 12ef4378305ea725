package cardwiretest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/cardwire/cardwire-go"
)

// payment is an execution.
type payment struct {
	id, reference string
	wrong         string // how it differs from what was ordered; "": it does not
}

// serve responds to the request that arrives at a connection.
func (s *simulated) serve(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	ctx, leave := context.WithCancel(ctx)
	go func() {
		defer leave()
		_, _ = io.Copy(io.Discard, conn) // until the client disconnects
	}()
	response, err := s.service.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return
	}
	defer response.Body.Close()
	response.Close = true
	_ = response.Write(conn) // the client may have disconnected
}

// fates are what happens to a transfer instead of a success.
var fates = []struct {
	story string
	Fault
}{
	{"it is refused for good", Fault{Status: 422, Message: "the account is closed"}},
	{"it is refused for the rate", Fault{Kind: FaultRateLimited}},
	{"it is reported to be busy, and not executed", Fault{Status: 200, Code: 1500, Message: "busy"}},
	{"the connection is reset before it is executed", Fault{Kind: FaultReset}},
	{"the connection is reset after it was executed", Fault{Kind: FaultReset, Executed: true}},
	{"nothing responds after it was executed", Fault{Kind: FaultHang, Executed: true}},
	{"nothing responds, and it is executed late", Fault{Kind: FaultLate}},
	{"a gateway responds, and it is not executed", Fault{Kind: FaultHTML}},
	{"a gateway responds after it was executed", Fault{Kind: FaultHTML, Executed: true}},
	{"a firewall responds after it was executed", Fault{Kind: FaultHTML, Status: 403, Executed: true}},
	{"a gateway delivers it twice, and returns the second response", Fault{
		Status: 422, Message: "this order already exists", Executed: true,
	}},
	{"a success without the order is reported", Fault{
		Status: 200, Code: 200, Message: "success", Executed: true,
	}},
}

// draw waits for the turn of a request, and returns its fault.
func (s *simulated) draw(r *request) (Fault, bool) {
	reference := r.reference()
	if s.wait(s.outside, "serve "+string(r.op)+" "+reference) != nil {
		return Fault{Kind: FaultReset}, true
	}
	if r.op != cardwire.OpCreateTransfer {
		return Fault{}, false
	}
	luck := s.luck("service " + reference)
	n := luck.IntN(20)
	if s.calm.Load() || n >= len(fates) {
		s.tell(reference, "service: the success is reported")
		return Fault{}, false
	}
	drawn := fates[n].Fault
	s.tell(reference, "service: %s", fates[n].story)
	if drawn.Kind == FaultLate {
		drawn.Delay = upTo(luck, cardwire.DefaultProfile().LateExecution)
	}
	return drawn, true
}

// watch records what is executed.
func (s *simulated) watch(e Execution, fields map[string]string) {
	if e.Op != cardwire.OpCreateTransfer {
		return
	}
	s.tell(e.Reference, "service: executed as %s", e.ID)
	o, p := s.orderOf(e.Reference), payment{id: e.ID, reference: e.Reference}
	if o != nil {
		p.wrong = o.differs(e.Reference, fields)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.payments[o] = append(s.payments[o], p)
}

func (s *simulated) paymentsOf(o *simulatedOrder) []payment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.payments[o])
}

// orderOf returns the order that a reference is about: the one whose number it contains, as
// "order-1-again" does; nil: there is none.
func (s *simulated) orderOf(reference string) *simulatedOrder {
	for _, o := range s.orders {
		if strings.Contains(reference, o.number) {
			return o
		}
	}
	return nil
}

// differs returns how an execution differs from what was ordered; "": it does not.
func (o *simulatedOrder) differs(reference string, fields map[string]string) string {
	if reference != o.number {
		return "as " + reference + ", which nobody ordered"
	}
	for _, ordered := range [][2]string{
		{"transferAmount", o.params.TransferAmount.StringFixed(2)},
		{"payoutCurrency", o.params.PayoutCurrency},
		{"receiverBankAccountNumber", o.params.ReceiverBankAccountNumber},
	} {
		if got := fields[ordered[0]]; got != ordered[1] {
			return fmt.Sprintf("with the %s %q, but %q was ordered", ordered[0], got, ordered[1])
		}
	}
	return ""
}
