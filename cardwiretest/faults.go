package cardwiretest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Fault is a way in which a request fails. For any other response, use [Service.Handle], or
// SetCard and SetBIN.
type Fault struct {
	// Kind is how it fails. The zero value is FaultStatus.
	Kind FaultKind
	// Executed makes the service execute the operation before the fault, if it
	// accepts the request. FaultTruncated, FaultSlow and FaultDrift execute it in any
	// case, and FaultLate afterwards. It has no effect on reads. A status or code that
	// means refused, such as 422 or 429, is then wrong, and no client can detect that.
	Executed bool
	// Status is the HTTP status of FaultStatus and FaultHTML; 0: the kind's default.
	Status int
	// Code is the envelope's code; 0: the HTTP status.
	Code int
	// Message is the envelope's msg; "": a plain one.
	Message string
	// RetryAfter is the Retry-After header, in seconds or as an HTTP date; "": none,
	// or the kind's default.
	RetryAfter string
	// Delay is how long the service waits before the fault, unless the kind says
	// otherwise. The wait ends if the client disconnects.
	Delay time.Duration
}

// FaultKind is a kind of fault.
type FaultKind int

// The kinds of faults.
const (
	// FaultStatus responds with an HTTP status, 500 unless Status says otherwise,
	// and an envelope with Code and Message. The Status may be 200.
	FaultStatus FaultKind = iota
	// FaultHTML responds with the HTML page of a gateway, under the status 502
	// unless Status says otherwise.
	FaultHTML
	// FaultRateLimited responds with the status 429 and a Retry-After header, "1"
	// unless RetryAfter says otherwise.
	FaultRateLimited
	// FaultReset resets the connection instead of responding.
	FaultReset
	// FaultHang does not respond until the client disconnects or, if Delay is not 0,
	// Delay has passed; then the connection is closed.
	FaultHang
	// FaultLate does not respond until the client disconnects. The operation is
	// executed Delay after that.
	FaultLate
	// FaultTruncated ends the connection in the middle of the body of the response.
	FaultTruncated
	// FaultGarbage responds with the status 200 and random bytes.
	FaultGarbage
	// FaultSlow responds normally, after Delay.
	FaultSlow
	// FaultDrift responds normally, with a field that the API does not have.
	FaultDrift
)

var faultNames = []string{
	"status", "html", "rate limited", "reset", "hang", "late", "truncated", "garbage", "slow", "drift",
}

// String returns the kind in words, like "rate limited".
func (k FaultKind) String() string {
	if k >= 0 && int(k) < len(faultNames) {
		return faultNames[k]
	}
	return "FaultKind(" + strconv.Itoa(int(k)) + ")"
}

// plan is a scripted fault.
type plan struct {
	fault Fault
	times int // negative: without end
}

// Fail makes the next requests of op fail, as many as times, or all if times is negative.
// Faults of several calls to Fail occur one after the other. GetCardByOrder is the
// same as GetCard. Fail panics if no operation has the name op, or if the kind of f does not
// exist.
//
// Each request uses up one fault, including the retry of a read and the second request for a
// page or a card that contradicts the parameters. A fault occurs even if the request is invalid.
func (s *Service) Fail(op cardwire.Op, f Fault, times int) {
	op = operationName(op)
	if f.Kind < 0 || int(f.Kind) >= len(faultNames) {
		panic("cardwiretest: no kind of fault is " + f.Kind.String())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if times != 0 {
		s.planned[op] = append(s.planned[op], &plan{f, times})
	}
}

// take returns the fault of this request.
func (s *Service) take(r *request) (Fault, bool) {
	if s.draw != nil {
		return s.draw(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	plans := s.planned[r.op]
	if len(plans) == 0 {
		return Fault{}, false
	}
	p := plans[0]
	if p.times > 0 {
		if p.times--; p.times == 0 {
			s.planned[r.op] = plans[1:]
		}
	}
	return p.fault, true
}

// response is what the service sends.
type response struct {
	status int
	header http.Header
	body   []byte
	cut    bool // the connection ends in the middle of the body
	reset  bool // instead of a response
}

func jsonResponse(status int, body []byte) response {
	return response{status: status, header: http.Header{"Content-Type": {mediaJSON}}, body: body}
}

func respond(r result) response {
	a := jsonResponse(r.status, r.envelope())
	for name, values := range r.header {
		a.header[name] = values
	}
	return a
}

// handle responds to a request. The error is that of a connection that ends without a
// response.
func (s *Service) handle(r *http.Request) (response, error) {
	if handled, ok := s.handled(r); ok {
		return respond(handled), s.wait(r.Context(), s.latency)
	}
	in, err := s.receive(r)
	if err != nil {
		return response{}, err
	}
	f, struck := s.take(in)
	if err := s.wait(r.Context(), s.latency); err != nil {
		return response{}, err
	}
	if struck {
		return s.strike(r.Context(), in, f)
	}
	return respond(s.execute(in)), nil
}

// wait waits for d, or until the client disconnects or the server closes. If d is 0, it does
// not matter whether the client has disconnected: the request has arrived.
func (s *Service) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	return s.await(ctx, t.C)
}

func (s *Service) await(ctx context.Context, c <-chan time.Time) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return http.ErrServerClosed
	}
}

func (s *Service) strike(ctx context.Context, in *request, f Fault) (response, error) {
	switch f.Kind {
	case FaultLate:
		err := s.await(ctx, nil)
		time.AfterFunc(f.Delay, func() {
			select {
			case <-s.done: // the server has closed
			default:
				s.execute(in)
			}
		})
		return response{}, err
	case FaultHang:
		if f.Executed {
			s.execute(in)
		}
		if f.Delay <= 0 {
			return response{}, s.await(ctx, nil)
		}
		return response{}, cmp.Or(s.wait(ctx, f.Delay), io.EOF)
	}
	a := s.faulty(in, f) // executes first
	return a, s.wait(ctx, f.Delay)
}

// faulty returns the response of the kinds that do not hang.
func (s *Service) faulty(in *request, f Fault) response {
	switch f.Kind {
	case FaultTruncated, FaultSlow, FaultDrift:
		a := respond(s.execute(in))
		if a.cut = f.Kind == FaultTruncated; f.Kind == FaultDrift {
			a.body = append(a.body[:len(a.body)-1], `,"drift":true}`...)
		}
		return a
	}
	if f.Executed {
		s.execute(in)
	}
	switch f.Kind {
	case FaultHTML:
		return page(cmp.Or(f.Status, http.StatusBadGateway))
	case FaultRateLimited:
		f.Status, f.RetryAfter = http.StatusTooManyRequests, cmp.Or(f.RetryAfter, "1")
	case FaultReset:
		return response{reset: true}
	case FaultGarbage:
		return jsonResponse(http.StatusOK, garbage())
	}
	return respond(failure(f))
}

func failure(f Fault) result {
	r := *refusal(cmp.Or(f.Status, http.StatusInternalServerError), "the service failed")
	switch r.code = cmp.Or(f.Code, r.code); r.code {
	case http.StatusTooManyRequests:
		r.msg = "too many requests"
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity:
		r.msg = "the account is invalid" // a refusal is believed if it says why
	}
	r.msg = cmp.Or(f.Message, r.msg)
	if f.RetryAfter != "" {
		r.header = http.Header{"Retry-After": {f.RetryAfter}}
	}
	return r
}

func page(status int) response {
	return response{
		status: status, header: http.Header{"Content-Type": {"text/html"}},
		body: fmt.Appendf(nil, "<html>\r\n<head><title>%d %s</title></head>\r\n<body>\r\n"+
			"<center><h1>%[1]d %[2]s</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n",
			status, http.StatusText(status)),
	}
}

// garbage returns the same bytes each time.
func garbage() []byte {
	b := make([]byte, 512)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails; see its documentation
	return b
}
