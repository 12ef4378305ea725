package cardwiretest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Fault is a way in which a request fails.
type Fault struct {
	// Kind is how it fails. The zero value is FaultStatus.
	Kind FaultKind
	// Executed makes the service execute the operation before the fault, if it
	// accepts the request. Kinds whose response reports success execute it in any
	// case; their comments say so. It has no effect on reads. A status or code that
	// means refused, such as 422 or 429, is then wrong, and no client can detect that.
	Executed bool
	// Status is the HTTP status; 0: the kind's default.
	Status int
	// Code is the envelope's code; 0: the HTTP status, or the kind's default.
	Code int
	// Message is the envelope's msg; "": a plain one.
	Message string
	// RetryAfter is the Retry-After header, in seconds or as an HTTP date; "": none,
	// or the kind's default.
	RetryAfter string
	// Delay is how long the service waits before the fault, unless the kind says
	// otherwise. The wait ends if the client disconnects.
	Delay time.Duration
	// Bytes is a size in bytes, if the kind has one; 0: the kind's default.
	Bytes int
}

// FaultKind is a kind of fault.
type FaultKind int

// The kinds of faults.
const (
	// FaultStatus responds with an HTTP status, 500 unless Status says otherwise,
	// and an envelope with Code and Message.
	FaultStatus FaultKind = iota
	// FaultHTML responds with the HTML page of a gateway, under the status 502
	// unless Status says otherwise.
	FaultHTML
	// FaultCode responds with the HTTP status 200 and another code, 500 unless Code
	// says otherwise.
	FaultCode
	// FaultRateLimited responds with the status 429 and a Retry-After header, "1"
	// unless RetryAfter says otherwise.
	FaultRateLimited
	// FaultReset resets the connection instead of responding.
	FaultReset
	// FaultClosed closes the connection instead of responding.
	FaultClosed
	// FaultHang does not respond until the client disconnects or, if Delay is not 0,
	// Delay has passed; then the connection is closed.
	FaultHang
	// FaultLateAfterHang does not respond until the client disconnects. The operation
	// is executed Delay after that.
	FaultLateAfterHang
	// FaultLateAfterClose closes the connection at once instead of responding. The
	// operation is executed Delay after that.
	FaultLateAfterClose
	// FaultTruncated ends the connection after Bytes bytes of the body of a
	// success, half of it by default, and at least one byte early. Negative Bytes
	// end it after the header.
	FaultTruncated
	// FaultGarbage responds with the status 200 and Bytes random bytes, 512 unless
	// Bytes says otherwise.
	FaultGarbage
	// FaultNotHTTP responds with bytes that are not HTTP.
	FaultNotHTTP
	// FaultEmpty responds with the status 200 and no body.
	FaultEmpty
	// FaultSlowDrip responds with a success in pieces of Bytes bytes, 64 by default,
	// and waits Delay, 10 ms by default, before each. The operation is executed in
	// any case.
	FaultSlowDrip
	// FaultRepeatedPage responds to ListCards with the cards of the previous page,
	// under the number of the requested page.
	FaultRepeatedPage
	// FaultIgnoredPage responds to ListCards with the first page in the default size,
	// whatever was requested.
	FaultIgnoredPage
	// FaultIgnoredFilter responds to ListCards as if there were no filter.
	FaultIgnoredFilter
	// FaultRedirectSelf redirects to the same address, with the status 307 unless
	// Status is 302, 303 or 308.
	FaultRedirectSelf
	// FaultRedirectElsewhere redirects to another host, with the statuses of
	// FaultRedirectSelf. The host is the service itself under another name and the
	// path /elsewhere, so that Requests shows whether the client followed.
	FaultRedirectElsewhere
	// FaultRedirectDead redirects to a host that refuses connections, with the
	// statuses of FaultRedirectSelf.
	FaultRedirectDead
	// FaultWrongData responds with a success whose data is of the wrong kind. The
	// operation is executed in any case.
	FaultWrongData
	// FaultDuplicateFields responds with a success in which a second code, 500
	// unless Code says otherwise, contradicts the first.
	FaultDuplicateFields
	// FaultOversize responds with a body of Bytes bytes, 16 MiB by default: a success
	// if Executed is set or the operation is a read, and otherwise the response of
	// FaultStatus.
	FaultOversize
	// FaultGzipBomb is FaultOversize with a body compressed with gzip, which
	// expands to Bytes bytes, 64 MiB unless Bytes says otherwise.
	FaultGzipBomb
	// FaultHeaderFlood responds with Bytes bytes of header, 1 MiB unless Bytes says
	// otherwise, and the body of FaultOversize without its padding.
	FaultHeaderFlood
	// FaultOtherResponse responds to CreateTransfer with another order, to GetCard with
	// another card and to GetCardSecrets with the secrets of another card.
	FaultOtherResponse
)

var faultNames = map[FaultKind]string{
	FaultStatus: "status", FaultHTML: "html", FaultCode: "code", FaultRateLimited: "rate limited",
	FaultReset: "reset", FaultClosed: "closed", FaultHang: "hang",
	FaultLateAfterHang: "late after hang", FaultLateAfterClose: "late after close",
	FaultTruncated: "truncated", FaultGarbage: "garbage", FaultNotHTTP: "not http", FaultEmpty: "empty",
	FaultSlowDrip: "slow drip", FaultRepeatedPage: "repeated page", FaultIgnoredPage: "ignored page",
	FaultIgnoredFilter: "ignored filter", FaultRedirectSelf: "redirect to itself",
	FaultRedirectElsewhere: "redirect elsewhere", FaultRedirectDead: "redirect to a dead host",
	FaultWrongData: "wrong data", FaultDuplicateFields: "duplicate fields", FaultOversize: "oversize",
	FaultGzipBomb: "gzip bomb", FaultHeaderFlood: "header flood", FaultOtherResponse: "other response",
}

// String returns the kind in words, like "slow drip".
func (k FaultKind) String() string {
	if name := faultNames[k]; name != "" {
		return name
	}
	return "FaultKind(" + strconv.Itoa(int(k)) + ")"
}

// twist is how the response of an operation is wrong.
type twist int

const (
	straight twist = iota
	repeatPage
	ignorePaging
	ignoreFilters
	otherResponse
)

// twists are the kinds of faults that are twists, and their operations.
var twists = map[FaultKind]struct {
	twist twist
	ops   string
}{
	FaultRepeatedPage:  {repeatPage, "ListCards"},
	FaultIgnoredPage:   {ignorePaging, "ListCards"},
	FaultIgnoredFilter: {ignoreFilters, "ListCards"},
	FaultOtherResponse: {otherResponse, "CreateTransfer GetCard GetCardSecrets"},
}

// plan is a scripted fault.
type plan struct {
	fault Fault
	times int // negative: without end
}

// Fail makes the next requests of op fail, as many as times, or all if times is
// negative. Faults of several calls to Fail come one after the other. op is the
// operation as in cardwire.Error.Op; GetCardByOrder is GetCard under another name.
// Fail panics if no operation has the name op, or if the kind of f does not exist or
// does not apply to op.
//
// A client that retries a read by itself, or requests a doubtful page again, meets as
// many faults as it sends requests.
//
// A fault comes even if the request is invalid. If the fault needs a successful
// response and there is none, the service responds with the refusal.
func (s *Service) Fail(op string, f Fault, times int) {
	op = operationName(op)
	if faultNames[f.Kind] == "" {
		panic("cardwiretest: no kind of fault is " + f.Kind.String())
	}
	if t, ok := twists[f.Kind]; ok && !strings.Contains(t.ops, op) {
		panic("cardwiretest: the fault " + f.Kind.String() + " does not apply to " + op)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if times != 0 {
		s.planned[op] = append(s.planned[op], &plan{f, times})
	}
}

// take returns the fault of this request.
func (s *Service) take(op string) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	plans := s.planned[op]
	if len(plans) == 0 {
		return Fault{}, false
	}
	p := plans[0]
	if p.times > 0 {
		if p.times--; p.times == 0 {
			s.planned[op] = plans[1:]
		}
	}
	return p.fault, true
}

// delivery is how a response reaches the client.
type delivery int

const (
	whole delivery = iota
	cut            // the connection ends after some bytes
	drip           // in pieces
	reset
	closed
	notHTTP
)

// response is what the service sends.
type response struct {
	delivery delivery
	status   int
	header   http.Header
	body     []byte
	keep     int           // how many bytes of a cut body are sent
	piece    int           // how many bytes of a dripping one are sent at once
	pause    time.Duration // before each
}

func (s *Service) respond(r result) response {
	a := response{status: r.status, header: http.Header{"Content-Type": {mediaJSON}}, body: s.envelope(r)}
	for name, values := range r.header {
		a.header[name] = values
	}
	return a
}

// handle responds to a request. The error is that of a client that disconnected.
func (s *Service) handle(r *http.Request) (response, error) {
	if handled, ok := s.handled(r); ok {
		return s.respond(handled), s.wait(r.Context(), s.latency)
	}
	in, err := s.receive(r)
	if err != nil {
		return response{}, err
	}
	f, struck := s.take(in.op)
	if err := s.wait(r.Context(), s.latency); err != nil {
		return response{}, err
	}
	if struck {
		return s.strike(r.Context(), in, f)
	}
	return s.respond(s.execute(in)), nil
}

// wait waits for d, or until the client disconnects or the server closes. Without a
// wait it does not matter that the client has disconnected: the request is here.
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
	case FaultHang:
		return s.hang(ctx, in, f)
	case FaultLateAfterHang:
		err := s.await(ctx, nil)
		s.later(in, f.Delay)
		return response{delivery: closed}, err
	case FaultLateAfterClose:
		s.later(in, f.Delay)
		return response{delivery: closed}, nil
	case FaultSlowDrip:
		return s.dripped(in, f), nil
	}
	a := s.faulty(in, f) // executes first
	return a, s.wait(ctx, f.Delay)
}

func (s *Service) hang(ctx context.Context, in *request, f Fault) (response, error) {
	s.effect(in, f)
	if f.Delay > 0 {
		return response{delivery: closed}, s.wait(ctx, f.Delay)
	}
	return response{delivery: closed}, s.await(ctx, nil)
}

// later executes the request after d, without a waiting goroutine.
func (s *Service) later(in *request, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t *time.Timer
	t = time.AfterFunc(d, func() {
		s.mu.Lock()
		_, ok := s.pending[t] // not after the server has closed
		delete(s.pending, t)
		s.mu.Unlock()
		if ok {
			s.execute(in)
		}
	})
	s.pending[t] = struct{}{}
}

// cancelPending cancels the pending executions.
func (s *Service) cancelPending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.pending {
		t.Stop()
		delete(s.pending, t)
	}
}

// effect executes the request if the fault comes after that.
func (s *Service) effect(in *request, f Fault) {
	if f.Executed && in.operation != nil {
		s.execute(in)
	}
}

// faulty returns the response of the kinds that respond at once.
func (s *Service) faulty(in *request, f Fault) response {
	switch f.Kind {
	case FaultTruncated:
		a := s.respond(s.outcome(in, f))
		a.delivery, a.keep = cut, max(0, min(cmp.Or(f.Bytes, len(a.body)/2), len(a.body)-1))
		return a
	case FaultRepeatedPage, FaultIgnoredPage, FaultIgnoredFilter, FaultOtherResponse:
		in.twist = twists[f.Kind].twist
		return s.respond(s.outcome(in, f))
	case FaultWrongData:
		return s.wrongData(in)
	case FaultDuplicateFields:
		return s.duplicated(in, f)
	case FaultOversize:
		return s.oversize(in, f)
	case FaultGzipBomb:
		return s.gzipBomb(in, f)
	case FaultHeaderFlood:
		return s.headerFlood(in, f)
	}
	s.effect(in, f)
	return s.plain(in, f)
}

// plain returns the response of the kinds that do not need the operation's.
func (s *Service) plain(in *request, f Fault) response {
	switch f.Kind {
	case FaultHTML:
		return page(f)
	case FaultCode:
		f.Status, f.Code = http.StatusOK, cmp.Or(f.Code, 500)
		return s.respond(failure(f))
	case FaultRateLimited:
		f.Status = cmp.Or(f.Status, http.StatusTooManyRequests)
		f.RetryAfter = cmp.Or(f.RetryAfter, "1")
		return s.respond(failure(f))
	case FaultReset:
		return response{delivery: reset}
	case FaultClosed:
		return response{delivery: closed}
	case FaultNotHTTP:
		return response{delivery: notHTTP, body: []byte("SSH-2.0-OpenSSH_9.6\r\n")}
	case FaultGarbage:
		return response{status: 200, header: http.Header{"Content-Type": {mediaJSON}}, body: garbage(max(0, cmp.Or(f.Bytes, 512)))}
	case FaultEmpty:
		return response{status: 200, header: http.Header{"Content-Type": {mediaJSON}}}
	case FaultRedirectSelf, FaultRedirectElsewhere, FaultRedirectDead:
		return redirect(in.http, f)
	}
	return s.respond(failure(f))
}

func failure(f Fault) result {
	status := cmp.Or(f.Status, http.StatusInternalServerError)
	r := *refusal(status, cmp.Or(f.Message, "the service failed"))
	r.code = cmp.Or(f.Code, status)
	if f.RetryAfter != "" {
		r.header = http.Header{"Retry-After": {f.RetryAfter}}
	}
	return r
}

// outcome returns the response of a success, which is executed if the fault says so.
func (s *Service) outcome(in *request, f Fault) result {
	in.rehearsal = !f.Executed && !in.operation.reads
	return s.execute(in)
}

// honest returns the response of a success if the request is executed or a read, and
// that of a failure otherwise.
func (s *Service) honest(in *request, f Fault) result {
	if f.Executed || in.operation.reads {
		return s.execute(in)
	}
	return failure(f)
}

func page(f Fault) response {
	status := cmp.Or(f.Status, http.StatusBadGateway)
	text := http.StatusText(status)
	return response{
		status: status, header: http.Header{"Content-Type": {"text/html"}},
		body: fmt.Appendf(nil, "<html>\r\n<head><title>%d %s</title></head>\r\n<body>\r\n"+
			"<center><h1>%[1]d %[2]s</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n", status, text),
	}
}

// garbage returns the same bytes each time.
func garbage(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails; see its documentation
	return b
}

func (s *Service) dripped(in *request, f Fault) response {
	a := s.respond(s.execute(in))
	a.delivery, a.piece, a.pause = drip, max(1, cmp.Or(f.Bytes, 64)), cmp.Or(f.Delay, 10*time.Millisecond)
	return a
}

func (s *Service) wrongData(in *request) response {
	r := s.execute(in)
	switch {
	case r.code != 200:
	case r.data[0] == '{' || r.data[0] == '[':
		r.data = []byte("7")
	default:
		r.data = []byte("[]")
	}
	return s.respond(r)
}

func (s *Service) duplicated(in *request, f Fault) response {
	r := s.outcome(in, f)
	a := s.respond(r)
	if r.code == 200 {
		a.body = fmt.Appendf(a.body[:len(a.body)-1], `,"code":%d}`, cmp.Or(f.Code, 500))
	}
	return a
}

// padded writes the envelope with a field that makes it n bytes long.
func (s *Service) padded(w io.Writer, r result, n int) {
	e := s.envelope(r)
	const open, end = `,"padding":"`, `"}`
	_, _ = w.Write(append(e[:len(e)-1], open...)) // neither a buffer nor gzip on one fails
	chunk := bytes.Repeat([]byte{'x'}, 32<<10)
	for n -= len(e) - 1 + len(open) + len(end); n > 0; n -= len(chunk) {
		_, _ = w.Write(chunk[:min(n, len(chunk))])
	}
	_, _ = io.WriteString(w, end)
}

func (s *Service) oversize(in *request, f Fault) response {
	r := s.honest(in, f)
	a := s.respond(r)
	var b bytes.Buffer
	s.padded(&b, r, cmp.Or(f.Bytes, 16<<20))
	a.body = b.Bytes()
	return a
}

func (s *Service) gzipBomb(in *request, f Fault) response {
	r := s.honest(in, f)
	a := s.respond(r)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	s.padded(z, r, cmp.Or(f.Bytes, 64<<20))
	_ = z.Close()
	a.body = b.Bytes()
	a.header.Set("Content-Encoding", "gzip")
	return a
}

func (s *Service) headerFlood(in *request, f Fault) response {
	a := s.respond(s.honest(in, f))
	value := strings.Repeat("x", 1000)
	for i := range cmp.Or(f.Bytes, 1<<20)/len(value) + 1 {
		a.header.Set(fmt.Sprintf("X-Flood-%d", i), value)
	}
	return a
}

// The addresses of redirects.
const (
	elsewherePath = "/elsewhere"
	deadHost      = "127.0.0.1:1"
)

func redirect(r *http.Request, f Fault) response {
	u := url.URL{Scheme: "https", Host: cmp.Or(r.Host, r.URL.Host), Path: r.URL.Path, RawQuery: r.URL.RawQuery}
	if r.URL.Scheme != "" { // a client's request
		u.Scheme = r.URL.Scheme
	} else if r.TLS == nil {
		u.Scheme = "http"
	}
	switch f.Kind {
	case FaultRedirectElsewhere:
		u.Host, u.Path, u.RawQuery = alias(u), elsewherePath, ""
	case FaultRedirectDead:
		u.Scheme, u.Host = "http", deadHost
	}
	return response{
		status: cmp.Or(f.Status, http.StatusTemporaryRedirect),
		header: http.Header{"Location": {u.String()}, "Content-Type": {"text/html"}},
	}
}

// alias returns another name for the host of the request.
func alias(u url.URL) string {
	if u.Hostname() == "127.0.0.1" {
		return "localhost:" + u.Port()
	}
	return "elsewhere.example"
}
