package replay

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const basePath = "/api/v1"

// entry is what the ledger holds of one call.
type entry struct {
	heads       int // requests of which the head arrived
	arrivals    int // requests that arrived whole
	executions  int
	overHTTP2   int // of the arrivals
	credentials int // heads that held a key
}

// ledger tells what arrived and what was executed of each call.
type ledger struct {
	mu    sync.Mutex
	calls map[string]entry
}

func (l *ledger) note(ref string, change func(*entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == nil {
		l.calls = map[string]entry{}
	}
	e := l.calls[ref]
	change(&e)
	l.calls[ref] = e
}

func (l *ledger) of(ref string) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[ref]
}

// service listens on loopback and speaks HTTP/1.1 in words of its own, so that
// what it does to a connection is exact.
type service struct {
	ledger
	base     string
	listener net.Listener
	tls      *tls.Config
	http2    func(*exchange) // serves connections that begin as HTTP/2 does; nil: they are not understood
	server   *http.Server    // nil: the service speaks for itself
	running  sync.WaitGroup

	state       sync.Mutex
	peers       map[*peer]bool
	connections int // accepted
	requests    int // begun, or, if that is when the script acts, connections accepted
	script      script
}

// script is what the service does to each request.
type script struct {
	do       func(*exchange)
	atAccept bool       // to a new connection at once, before anything has arrived
	op       *operation // the operation and
	ref      string     // the call that arrive next, for responses that do not wait for them
}

// peer is one connection.
type peer struct {
	conn   net.Conn
	tcp    *net.TCPConn // below TLS
	in     *bufio.Reader
	served int  // requests
	idle   bool // waiting for a request; guarded by the service
}

// serve starts a service that responds as the API promises. With a config
// it speaks TLS.
func serve(t *testing.T, config *tls.Config, http2 func(*exchange)) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &service{
		listener: listener, tls: config, http2: http2, peers: map[*peer]bool{},
		script: script{do: (*exchange).serve},
	}
	s.base = "http://" + listener.Addr().String() + basePath
	if config != nil {
		s.base = "https://" + listener.Addr().String() + basePath
	}
	s.running.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

func (s *service) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		p := &peer{conn: conn, tcp: conn.(*net.TCPConn)}
		if s.tls != nil {
			p.conn = tls.Server(conn, s.tls)
		}
		p.in = bufio.NewReader(p.conn)
		s.state.Lock()
		s.peers[p] = true
		s.connections++
		s.state.Unlock()
		s.running.Go(func() {
			defer s.forget(p)
			s.attend(p)
		})
	}
}

func (s *service) forget(p *peer) {
	_ = p.conn.Close()
	s.state.Lock()
	defer s.state.Unlock()
	delete(s.peers, p)
}

// attend serves one connection to its end.
func (s *service) attend(p *peer) {
	for {
		act := s.current()
		if !act.atAccept || p.served > 0 {
			if !s.await(p) {
				return
			}
			act = s.current()
		}
		s.state.Lock()
		s.requests++
		s.state.Unlock()
		x := &exchange{service: s, peer: p, script: act}
		if start, _ := p.in.Peek(p.in.Buffered()); s.http2 != nil && len(start) >= 3 && string(start[:3]) == "PRI" {
			s.http2(x)
			return
		}
		act.do(x)
		if x.over {
			return
		}
		p.served++
	}
}

func (s *service) current() script {
	s.state.Lock()
	defer s.state.Unlock()
	return s.script
}

// await returns when the next request begins, and false if none does.
func (s *service) await(p *peer) bool {
	s.setIdle(p, true)
	_, err := p.in.Peek(1)
	s.setIdle(p, false)
	return err == nil
}

func (s *service) setIdle(p *peer, idle bool) {
	s.state.Lock()
	defer s.state.Unlock()
	p.idle = idle
}

// perform sets what is done from now on.
func (s *service) perform(next script) {
	s.state.Lock()
	defer s.state.Unlock()
	s.script = next
}

// counts returns how many connections were accepted and requests begun.
func (s *service) counts() (connections, requests int) {
	s.state.Lock()
	defer s.state.Unlock()
	return s.connections, s.requests
}

// eachIdle does something to the connections that wait for a request, and says
// how many they are.
func (s *service) eachIdle(do func(*peer)) (n int) {
	s.state.Lock()
	defer s.state.Unlock()
	for p := range s.peers {
		if p.idle {
			do(p)
			n++
		}
	}
	return n
}

// settle returns when everything that was sent has been dealt with. The client
// must have closed its connections.
func (s *service) settle(t *testing.T) {
	t.Helper()
	if s.server != nil {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		require.NoError(t, s.server.Shutdown(ctx))
		return
	}
	s.perform(script{do: (*exchange).serve})
	// What waits to be accepted is accepted in the order in which it came: when
	// this connection has been, so have all those of the client.
	last, err := net.Dial("tcp", s.listener.Addr().String())
	require.NoError(t, err)
	require.NoError(t, last.(*net.TCPConn).CloseWrite())
	require.NoError(t, last.SetReadDeadline(time.Now().Add(patience)))
	_, _ = io.Copy(io.Discard, last)
	require.NoError(t, last.Close())
	wait := patience
	if leaked.Load() {
		wait = 10 * tick
	}
	if !assert.Eventually(t, func() bool {
		s.state.Lock()
		defer s.state.Unlock()
		return len(s.peers) == 0
	}, wait, tick, "a connection was left open") {
		leaked.Store(true)
	}
}

// leaked says that a client left a connection open, as then hundreds may: they
// are not all waited for.
var leaked atomic.Bool

// stop ends the service and everything that it does.
func (s *service) stop() {
	_ = s.listener.Close()
	s.state.Lock()
	for p := range s.peers {
		_ = p.tcp.Close()
	}
	s.state.Unlock()
	s.running.Wait()
}

// exchange is one request, and what the service does about it.
type exchange struct {
	*service
	*peer
	script  script
	request *http.Request // nil: its head has not been read
	over    bool          // nothing more happens on this connection
}

// op and ref are the operation and the call: those of the request or, before it
// was read, those which are expected.
func (x *exchange) op() *operation {
	if x.request == nil {
		return x.script.op
	}
	if o := operationAt(x.request.URL.Path); o != nil {
		return o
	}
	return x.script.op
}

func (x *exchange) ref() string {
	if x.request == nil {
		return x.script.ref
	}
	return x.request.Header.Get(callHeader)
}

// head reads the head of the request.
func (x *exchange) head() bool {
	r, err := http.ReadRequest(x.in)
	if err != nil {
		x.over = true
		return false
	}
	x.request = r
	x.note(x.ref(), func(e *entry) {
		e.heads++
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			e.credentials++
		}
	})
	return true
}

// receive reads the request to its last byte.
func (x *exchange) receive() bool {
	if x.request == nil && !x.head() {
		return false
	}
	if _, err := io.Copy(io.Discard, x.request.Body); err != nil {
		x.over = true
		return false
	}
	x.note(x.ref(), func(e *entry) { e.arrivals++ })
	return true
}

func (x *exchange) execute() { x.note(x.ref(), func(e *entry) { e.executions++ }) }

// serve does what the API promises.
func (x *exchange) serve() {
	if x.receive() {
		x.execute()
		x.respond("200 OK")
	}
}

// respond writes a response, whose body is that of a success if its status is, and
// closes the connection if the client or the header asks for that.
func (x *exchange) respond(status string, header ...string) {
	body := fmt.Sprintf(`{"code":%s,"msg":"no","data":null}`, status[:3])
	if status[:3] == "200" {
		body = x.op().success(x.ref())
	}
	text := "HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\n"
	last := x.request != nil && x.request.Close
	for _, h := range header {
		text += h + "\r\n"
		last = last || h == "Connection: close"
	}
	x.say(fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", text, len(body), body))
	x.over = x.over || last
}

// say writes what net/http would not write.
func (x *exchange) say(text string) {
	if _, err := io.WriteString(x.conn, text); err != nil {
		x.over = true
	}
}

// hangUp closes the connection in good order. All that has arrived must have
// been read, or it is a reset.
func (x *exchange) hangUp() {
	x.over = true
	_ = x.conn.Close()
}

// reset drops the connection so that the client gets an RST.
func (x *exchange) reset() {
	x.over = true
	x.peer.reset()
}

func (p *peer) reset() {
	_ = p.tcp.SetLinger(0)
	_ = p.tcp.Close()
}

// leave closes the service's side. What the client still sends is not met
// with a reset, so that a request crosses with the end of its connection.
func (p *peer) leave() { _ = p.tcp.CloseWrite() }

// identity is a certificate for the names that services have here, and the roots
// that trust it.
var identity = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private, Leaf: leaf}, roots
})

// serverTLS is a service's side, which offers these protocols.
func serverTLS(protocols ...string) *tls.Config {
	certificate, _ := identity()
	return &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: protocols, MinVersion: tls.VersionTLS12}
}

// clientTLS is a client's side.
func clientTLS() *tls.Config {
	_, roots := identity()
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// assertDone compares what the ledger holds of a call with what it may hold.
func assertDone(t *testing.T, got entry, arrivals, executions span) {
	t.Helper()
	assert.True(t, arrivals.has(got.arrivals), "it arrived %d times, not %s", got.arrivals, arrivals)
	assert.True(t, executions.has(got.executions), "it was executed %d times, not %s", got.executions, executions)
}

// span is a range of numbers, both ends included.
type span struct{ least, most int }

func exactly(n int) span { return span{n, n} }

func (s span) has(n int) bool { return n >= s.least && n <= s.most }

func (s span) String() string {
	if s.least == s.most {
		return fmt.Sprint(s.least)
	}
	return fmt.Sprintf("%d to %d", s.least, s.most)
}
