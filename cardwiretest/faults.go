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

// Fault is a way in which a request goes wrong. Fields that its Kind does not
// mention are not used, except for Executed and Delay.
type Fault struct {
	// Kind is how it goes wrong. The zero value is FaultStatus.
	Kind FaultKind
	// Executed makes the operation take effect before the fault strikes, if the
	// request is one that the service accepts. Kinds whose answer says that it
	// happened execute in any case, and say so. An operation that changes nothing
	// has no effect to take. A status or code that clients trust to be a refusal,
	// such as 422 or 429, is a lie after executing, and no client can tell.
	Executed bool
	// Status is the HTTP status; 0: that of the kind.
	Status int
	// Code is the envelope's code; 0: the HTTP status, or that of the kind.
	Code int
	// Message is the envelope's msg; "": a plain one.
	Message string
	// RetryAfter is the Retry-After header, in seconds or as an HTTP date; "": none,
	// or that of the kind.
	RetryAfter string
	// Delay is how long the service waits before the fault strikes, unless the
	// kind says otherwise. A client that leaves ends the wait.
	Delay time.Duration
	// Bytes is a size in bytes, where the kind has one; 0: that of the kind.
	Bytes int
}

// FaultKind is a kind of fault.
type FaultKind int

// The kinds of faults.
const (
	// FaultStatus answers with an HTTP status, 500 unless Status says otherwise,
	// and an envelope with Code and Message.
	FaultStatus FaultKind = iota
	// FaultHTML answers with the HTML page of a gateway, under the status 502
	// unless Status says otherwise.
	FaultHTML
	// FaultCode answers with the HTTP status 200 and another code, 500 unless Code
	// says otherwise.
	FaultCode
	// FaultRateLimited answers with the status 429 and a Retry-After header, "1"
	// unless RetryAfter says otherwise.
	FaultRateLimited
	// FaultReset resets the connection instead of answering.
	FaultReset
	// FaultClosed closes the connection instead of answering.
	FaultClosed
	// FaultHang does not answer until the client leaves or, if Delay is not 0,
	// Delay has passed; then the connection is closed.
	FaultHang
	// FaultLateAfterHang does not answer until the client leaves. The operation
	// takes effect Delay after that.
	FaultLateAfterHang
	// FaultLateAfterClose closes the connection at once instead of answering. The
	// operation takes effect Delay after that.
	FaultLateAfterClose
	// FaultTruncated ends the connection after Bytes bytes of the body of a
	// success, half of it unless Bytes says otherwise, and at least one byte early.
	// Negative Bytes end it after the header.
	FaultTruncated
	// FaultGarbage answers with the status 200 and Bytes random bytes, 512 unless
	// Bytes says otherwise.
	FaultGarbage
	// FaultNotHTTP answers with bytes that are not HTTP.
	FaultNotHTTP
	// FaultEmpty answers with the status 200 and no body.
	FaultEmpty
	// FaultSlowDrip answers with a success in pieces of Bytes bytes, 64 unless
	// Bytes says otherwise, and waits Delay, 10 ms unless it is given, before each.
	// The operation takes effect in any case.
	FaultSlowDrip
	// FaultRepeatedPage answers ListCards with the cards of the page before, under
	// the number of the page that was asked for.
	FaultRepeatedPage
	// FaultIgnoredPage answers ListCards with the first page in the default size,
	// whatever was asked for.
	FaultIgnoredPage
	// FaultIgnoredFilter answers ListCards as if there were no filter.
	FaultIgnoredFilter
	// FaultRedirectSelf redirects to the same address, with the status 307 unless
	// Status is 302, 303 or 308.
	FaultRedirectSelf
	// FaultRedirectElsewhere redirects to another live host, with the statuses of
	// FaultRedirectSelf: the service itself, under another name and the path
	// /elsewhere, so that Requests shows whether it was followed.
	FaultRedirectElsewhere
	// FaultRedirectDead redirects to a host that refuses connections, with the
	// statuses of FaultRedirectSelf.
	FaultRedirectDead
	// FaultWrongData answers with a success whose data is of the wrong kind. The
	// operation takes effect in any case.
	FaultWrongData
	// FaultDuplicateMembers answers with a success in which a second code, 500
	// unless Code says otherwise, contradicts the first.
	FaultDuplicateMembers
	// FaultOversize answers with a body of Bytes bytes, 16 MiB unless Bytes says
	// otherwise: a success if Executed is set or nothing can take effect, and
	// otherwise what FaultStatus answers.
	FaultOversize
	// FaultGzipBomb is FaultOversize with a body compressed with gzip, which
	// expands to Bytes bytes, 64 MiB unless Bytes says otherwise.
	FaultGzipBomb
	// FaultHeaderFlood answers with Bytes bytes of header, 1 MiB unless Bytes says
	// otherwise, and the body that FaultOversize pads.
	FaultHeaderFlood
	// FaultOtherAnswer answers CreateTransfer with another order, GetCard with
	// another card and GetCardSecrets with those of another.
	FaultOtherAnswer
)

var faultNames = map[FaultKind]string{
	FaultStatus: "status", FaultHTML: "html", FaultCode: "code", FaultRateLimited: "rate limited",
	FaultReset: "reset", FaultClosed: "closed", FaultHang: "hang",
	FaultLateAfterHang: "late after hang", FaultLateAfterClose: "late after close",
	FaultTruncated: "truncated", FaultGarbage: "garbage", FaultNotHTTP: "not http", FaultEmpty: "empty",
	FaultSlowDrip: "slow drip", FaultRepeatedPage: "repeated page", FaultIgnoredPage: "ignored page",
	FaultIgnoredFilter: "ignored filter", FaultRedirectSelf: "redirect to itself",
	FaultRedirectElsewhere: "redirect elsewhere", FaultRedirectDead: "redirect to a dead host",
	FaultWrongData: "wrong data", FaultDuplicateMembers: "duplicate members", FaultOversize: "oversize",
	FaultGzipBomb: "gzip bomb", FaultHeaderFlood: "header flood", FaultOtherAnswer: "other answer",
}

// String returns the kind in words, like "slow drip".
func (k FaultKind) String() string {
	if name := faultNames[k]; name != "" {
		return name
	}
	return "FaultKind(" + strconv.Itoa(int(k)) + ")"
}

// twist is how the answer of an operation is to be wrong.
type twist int

const (
	straight twist = iota
	repeatPage
	ignorePaging
	ignoreFilters
	otherAnswer
)

// twists are the kinds that are a twist, and the operations that can be twisted.
var twists = map[FaultKind]struct {
	twist twist
	ops   string
}{
	FaultRepeatedPage:  {repeatPage, "ListCards"},
	FaultIgnoredPage:   {ignorePaging, "ListCards"},
	FaultIgnoredFilter: {ignoreFilters, "ListCards"},
	FaultOtherAnswer:   {otherAnswer, "CreateTransfer GetCard GetCardSecrets"},
}

// plan is a fault that is to strike.
type plan struct {
	fault Fault
	times int // negative: without end
}

// Fail makes the next requests of op go wrong, times of them, without end if
// times is negative. Faults of several calls strike one after the other. op is
// the operation as in cardwire.Error.Op; GetCardByOrder is GetCard under another
// name. Fail panics if no operation has the name op, or if f is of a kind that
// does not exist or does not go with op.
//
// A client that repeats a read by itself, or asks again about a page that it
// doubts, meets as many faults as it sends requests.
//
// A fault strikes whatever is wrong with the request. Where the fault needs the
// answer of a success and there is none, the refusal is answered.
func (s *Service) Fail(op string, f Fault, times int) {
	op = operationName(op)
	if faultNames[f.Kind] == "" {
		panic("cardwiretest: there is no " + f.Kind.String())
	}
	if t, ok := twists[f.Kind]; ok && !strings.Contains(t.ops, op) {
		panic("cardwiretest: the fault " + f.Kind.String() + " does not go with " + op)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if times != 0 {
		s.planned[op] = append(s.planned[op], &plan{f, times})
	}
}

// take returns the fault that strikes now.
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

// delivery is how an answer reaches the client.
type delivery int

const (
	whole delivery = iota
	cut            // the connection ends after some bytes
	drip           // in pieces
	reset
	closed
	notHTTP
)

// answer is what the service sends.
type answer struct {
	delivery delivery
	status   int
	header   http.Header
	body     []byte
	keep     int           // bytes that are sent of a cut body
	piece    int           // bytes at once of a dripping one
	pause    time.Duration // before each
}

func (s *Service) answerWith(r result) answer {
	a := answer{status: r.status, header: http.Header{"Content-Type": {mediaJSON}}, body: s.envelope(r)}
	for name, values := range r.header {
		a.header[name] = values
	}
	return a
}

// handle answers a request. The error is that of a client that left.
func (s *Service) handle(r *http.Request) (answer, error) {
	if handled, ok := s.handled(r); ok {
		return s.answerWith(handled), s.wait(r.Context(), s.latency)
	}
	in, err := s.receive(r)
	if err != nil {
		return answer{}, err
	}
	f, struck := s.take(in.op)
	if err := s.wait(r.Context(), s.latency); err != nil {
		return answer{}, err
	}
	if struck {
		return s.strike(r.Context(), in, f)
	}
	return s.answerWith(s.execute(in)), nil
}

// wait waits for d, or until the client leaves or the server closes. Where there
// is nothing to wait for, a client that has left does not matter: the request is here.
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

func (s *Service) strike(ctx context.Context, in *request, f Fault) (answer, error) {
	switch f.Kind {
	case FaultHang:
		return s.hang(ctx, in, f)
	case FaultLateAfterHang:
		err := s.await(ctx, nil)
		s.later(in, f.Delay)
		return answer{delivery: closed}, err
	case FaultLateAfterClose:
		s.later(in, f.Delay)
		return answer{delivery: closed}, nil
	case FaultSlowDrip:
		return s.dripped(in, f), nil
	}
	a := s.faulty(in, f) // takes effect first
	return a, s.wait(ctx, f.Delay)
}

func (s *Service) hang(ctx context.Context, in *request, f Fault) (answer, error) {
	s.effect(in, f)
	if f.Delay > 0 {
		return answer{delivery: closed}, s.wait(ctx, f.Delay)
	}
	return answer{delivery: closed}, s.await(ctx, nil)
}

// later executes the request after a while, without a goroutine that waits.
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

// cancelPending forgets the executions to come.
func (s *Service) cancelPending() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.pending {
		t.Stop()
		delete(s.pending, t)
	}
}

// effect executes the request if the fault strikes after that.
func (s *Service) effect(in *request, f Fault) {
	if f.Executed && in.operation != nil {
		s.execute(in)
	}
}

// faulty returns the answer of the kinds that strike at once.
func (s *Service) faulty(in *request, f Fault) answer {
	switch f.Kind {
	case FaultTruncated:
		a := s.answerWith(s.outcome(in, f))
		a.delivery, a.keep = cut, max(0, min(cmp.Or(f.Bytes, len(a.body)/2), len(a.body)-1))
		return a
	case FaultRepeatedPage, FaultIgnoredPage, FaultIgnoredFilter, FaultOtherAnswer:
		in.twist = twists[f.Kind].twist
		return s.answerWith(s.outcome(in, f))
	case FaultWrongData:
		return s.wrongData(in)
	case FaultDuplicateMembers:
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

// plain returns the answer of the kinds that need none of the operation's.
func (s *Service) plain(in *request, f Fault) answer {
	switch f.Kind {
	case FaultHTML:
		return page(f)
	case FaultCode:
		f.Status, f.Code = http.StatusOK, cmp.Or(f.Code, 500)
		return s.answerWith(failure(f))
	case FaultRateLimited:
		f.Status = cmp.Or(f.Status, http.StatusTooManyRequests)
		f.RetryAfter = cmp.Or(f.RetryAfter, "1")
		return s.answerWith(failure(f))
	case FaultReset:
		return answer{delivery: reset}
	case FaultClosed:
		return answer{delivery: closed}
	case FaultNotHTTP:
		return answer{delivery: notHTTP, body: []byte("SSH-2.0-OpenSSH_9.6\r\n")}
	case FaultGarbage:
		return answer{status: 200, header: http.Header{"Content-Type": {mediaJSON}}, body: garbage(max(0, cmp.Or(f.Bytes, 512)))}
	case FaultEmpty:
		return answer{status: 200, header: http.Header{"Content-Type": {mediaJSON}}}
	case FaultRedirectSelf, FaultRedirectElsewhere, FaultRedirectDead:
		return redirect(in.http, f)
	}
	return s.answerWith(failure(f))
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

// outcome is the answer of a success, which takes effect if the fault says so.
func (s *Service) outcome(in *request, f Fault) result {
	in.rehearsal = !f.Executed && !in.operation.reads
	return s.execute(in)
}

// honest is the answer of a success if the request takes effect, or has none to
// take, and that of a failure otherwise.
func (s *Service) honest(in *request, f Fault) result {
	if f.Executed || in.operation.reads {
		return s.execute(in)
	}
	return failure(f)
}

func page(f Fault) answer {
	status := cmp.Or(f.Status, http.StatusBadGateway)
	text := http.StatusText(status)
	return answer{
		status: status, header: http.Header{"Content-Type": {"text/html"}},
		body: fmt.Appendf(nil, "<html>\r\n<head><title>%d %s</title></head>\r\n<body>\r\n"+
			"<center><h1>%[1]d %[2]s</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n", status, text),
	}
}

// garbage is the same each time.
func garbage(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails; see its documentation
	return b
}

func (s *Service) dripped(in *request, f Fault) answer {
	a := s.answerWith(s.execute(in))
	a.delivery, a.piece, a.pause = drip, max(1, cmp.Or(f.Bytes, 64)), cmp.Or(f.Delay, 10*time.Millisecond)
	return a
}

func (s *Service) wrongData(in *request) answer {
	r := s.execute(in)
	switch {
	case r.code != 200:
	case r.data[0] == '{' || r.data[0] == '[':
		r.data = []byte("7")
	default:
		r.data = []byte("[]")
	}
	return s.answerWith(r)
}

func (s *Service) duplicated(in *request, f Fault) answer {
	r := s.outcome(in, f)
	a := s.answerWith(r)
	if r.code == 200 {
		a.body = fmt.Appendf(a.body[:len(a.body)-1], `,"code":%d}`, cmp.Or(f.Code, 500))
	}
	return a
}

// padded writes the envelope with a member that makes it n bytes long.
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

func (s *Service) oversize(in *request, f Fault) answer {
	r := s.honest(in, f)
	a := s.answerWith(r)
	var b bytes.Buffer
	s.padded(&b, r, cmp.Or(f.Bytes, 16<<20))
	a.body = b.Bytes()
	return a
}

func (s *Service) gzipBomb(in *request, f Fault) answer {
	r := s.honest(in, f)
	a := s.answerWith(r)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	s.padded(z, r, cmp.Or(f.Bytes, 64<<20))
	_ = z.Close()
	a.body = b.Bytes()
	a.header.Set("Content-Encoding", "gzip")
	return a
}

func (s *Service) headerFlood(in *request, f Fault) answer {
	a := s.answerWith(s.honest(in, f))
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

func redirect(r *http.Request, f Fault) answer {
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
	return answer{
		status: cmp.Or(f.Status, http.StatusTemporaryRedirect),
		header: http.Header{"Location": {u.String()}, "Content-Type": {"text/html"}},
	}
}

// alias is another name for where the request went.
func alias(u url.URL) string {
	if u.Hostname() == "127.0.0.1" {
		return "localhost:" + u.Port()
	}
	return "elsewhere.example"
}
