package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// Order is one thing that a caller wants done once.
type Order struct {
	// Op is the operation, as in cardwire.Error.Op.
	Op string
	// Reference is the order number, the client transaction id or, of an upload,
	// the file's name without its extension.
	Reference string
}

// Ledger counts how often each order arrived and was executed.
type Ledger struct {
	mu      sync.Mutex
	entries map[Order]entry
}

type entry struct {
	arrivals, executions int
	accepted             bool // it exists, and is executed later
}

func (l *Ledger) change(o Order, change func(*entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries == nil {
		l.entries = map[Order]entry{}
	}
	e := l.entries[o]
	change(&e)
	l.entries[o] = e
}

func (l *Ledger) entry(o Order) entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[o]
}

// Pending reports whether the order was accepted, and is executed later.
func (l *Ledger) Pending(o Order) bool {
	e := l.entry(o)
	return e.accepted && e.executions == 0
}

// Executions returns how often the order has been executed until now.
func (l *Ledger) Executions(o Order) int { return l.entry(o).executions }

// Total returns how many executions there were, of whatever order.
func (l *Ledger) Total() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		n += e.executions
	}
	return n
}

// Running is the faulty service with its ledger. The first segment of a path names the
// kind of fault; kinds that do something to connections have an address of their own.
type Running struct {
	ledger  Ledger
	kinds   map[string]*Kind
	base    map[string]string
	server  http.Server
	pending sync.WaitGroup // executions that outlive their request
	drawn   sync.Map       // *Kind by the addresses of a connection, for those of Mix
}

// Start starts the service on loopback, which the caller stops.
func Start(ctx context.Context, kinds []Kind) (*Running, error) {
	s := &Running{kinds: map[string]*Kind{}, base: map[string]string{}}
	s.server.Handler = s
	// Broken connections are its daily business.
	s.server.ErrorLog = log.New(io.Discard, "", 0)
	s.server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		kind, _ := s.drawn.Load(addresses(conn))
		return context.WithValue(ctx, served{}, &connection{kind: kind})
	}
	shared, err := s.listen(ctx, nil)
	for i := range kinds {
		k := &kinds[i]
		address := shared
		if k.down {
			address = refusedAddress
		}
		if k.line != nil && err == nil {
			address, err = s.listen(ctx, k.line)
		}
		if s.kinds[k.Name] != nil {
			err = errors.Join(err, errors.New("two kinds have the name "+k.Name))
		}
		s.kinds[k.Name] = k
		s.base[k.Name] = "http://" + address + "/" + k.Name + "/api/v1"
	}
	if err != nil {
		s.Stop()
	}
	return s, err
}

// served is the key of what is known of a connection.
type served struct{}

type connection struct {
	requests int
	kind     any // a *Kind that takes the place of the one in the path; nil: none
}

// Mix returns the base URL of an address at which each connection meets a kind of its own.
// Half of them go well.
func (s *Running) Mix(ctx context.Context) (base string, err error) {
	var kinds []*Kind
	for _, k := range s.kinds {
		if !k.down {
			kinds = append(kinds, k, s.kinds["ok"])
		}
	}
	address, err := s.listen(ctx, func(conn net.Conn) net.Conn {
		kind := kinds[rand.N(len(kinds))]
		s.drawn.Store(addresses(conn), kind)
		if kind.line == nil {
			return conn
		}
		return kind.line(conn)
	})
	return "http://" + address + "/ok/api/v1", err
}

// addresses identify a connection, also one that is wrapped.
func addresses(conn net.Conn) string {
	return conn.LocalAddr().String() + " " + conn.RemoteAddr().String()
}

// listen serves connections on which the line is what happens to them.
func (s *Running) listen(ctx context.Context, l line) (address string, err error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = s.server.Serve(faulty{listener, l}) }()
	return listener.Addr().String(), nil
}

// Base returns the base URL of each kind.
func (s *Running) Base() map[string]string { return s.base }

// Ledger returns what was executed.
func (s *Running) Ledger() *Ledger { return &s.ledger }

// Finish returns when nothing can be executed any more: no connection is accepted,
// every request has been dealt with, and so has what was put off.
func (s *Running) Finish(ctx context.Context) error {
	if err := s.server.Shutdown(ctx); err != nil {
		s.Stop()
		return fmt.Errorf("the service has not finished: %w", err)
	}
	s.pending.Wait()
	return nil
}

// Stop stops the service if it has not finished.
func (s *Running) Stop() { _ = s.server.Close() } // of what is still open

// ServeHTTP treats a request as its kind says.
func (s *Running) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, operation, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/api/v1")
	kind := s.kinds[name]
	conn := r.Context().Value(served{}).(*connection)
	if drawn, ok := conn.kind.(*Kind); ok {
		kind = drawn
	}
	if kind == nil {
		http.NotFound(w, r)
		return
	}
	conn.requests++
	x := &exchange{service: s, w: w, r: r, reused: conn.requests > 1}
	switch {
	case r.Method == http.MethodGet && kind.read != nil:
		kind.read(x)
	case r.Method == http.MethodGet:
		x.say(http.StatusOK, capacity)
	case kind.unread:
		kind.serve(x)
	default:
		s.write(x, kind, operation)
	}
}

// write treats a write as its kind says.
func (s *Running) write(x *exchange, kind *Kind, operation string) {
	// The whole body is read before it is looked at: only then does net/http
	// notice a client that leaves, and what came incomplete is never executed.
	body, err := io.ReadAll(x.r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x.order, err = parseOrder(operation, x.r.Header.Get("Content-Type"), body)
	if err != nil {
		x.say(http.StatusUnprocessableEntity, `{"code":422,"msg":"invalid: not an order","data":null}`)
		return
	}
	s.ledger.change(x.order, func(e *entry) { e.arrivals++ })
	if kind.serve == nil {
		succeed(x)
		return
	}
	kind.serve(x)
}

// capacity is the response to every read.
const capacity = `{"code":200,"msg":"success","data":1}`

// parseOrder is the service's own reading of a request. It shares no code with
// the client, whose mistakes it would repeat.
func parseOrder(operation, contentType string, body []byte) (Order, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return Order{}, err
	}
	var o Order
	switch operation + " " + media {
	case "/remittance/transfer application/json":
		var transfer struct {
			MerchantOrderNo string `json:"merchantOrderNo"`
		}
		err = json.Unmarshal(body, &transfer)
		o = Order{"CreateTransfer", transfer.MerchantOrderNo}
	case "/cards/suspend multipart/form-data", "/cards/upload multipart/form-data":
		var form *multipart.Form
		form, err = multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
		switch {
		case err != nil:
		case operation == "/cards/suspend":
			o = Order{"FreezeCard", strings.Join(form.Value["clientTransactionId"], ",")}
		case len(form.File["file"]) == 1:
			name := form.File["file"][0].Filename
			o = Order{"UploadImage", strings.TrimSuffix(name, path.Ext(name))}
		}
	case "/cards/adjustAction application/x-www-form-urlencoded":
		var form url.Values
		form, err = url.ParseQuery(string(body))
		ops := map[string]string{"cancel": "CancelOperation", "retry": "RetryOperation"}
		o = Order{ops[form.Get("type")], form.Get("client_transaction_id")}
	}
	if err == nil && (o.Op == "" || o.Reference == "") {
		err = errors.New("it names no order")
	}
	return o, err
}

// exchange is one request and what becomes of it.
type exchange struct {
	service *Running
	order   Order
	w       http.ResponseWriter
	r       *http.Request
	reused  bool // its connection has had a request before
}

func (x *exchange) execute() {
	x.service.ledger.change(x.order, func(e *entry) { e.executions++ })
}

func (x *exchange) accept() {
	x.service.ledger.change(x.order, func(e *entry) { e.accepted = true })
}

// executeIn executes after d, when the request is long over.
func (x *exchange) executeIn(d time.Duration) {
	x.service.pending.Add(1)
	time.AfterFunc(d, func() {
		defer x.service.pending.Done()
		x.execute()
	})
}

// success is the response that the API promises.
func (x *exchange) success() string {
	message, data := "success", ""
	switch x.order.Op {
	case "CreateTransfer":
		const transfer = `{"merchant_order_no":"%s","api_order_no":"AO-%[1]s","status":"wait_process"}`
		data = fmt.Sprintf(transfer, x.order.Reference)
	case "FreezeCard":
		data = `"6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"`
	case "UploadImage":
		message, data = "Uploaded", `{"attachment_key":"key-1"}`
	default:
		data = `true`
	}
	return `{"code":200,"msg":"` + message + `","data":` + data + `}`
}

// say responds with JSON, or with a page where the text is one.
func (x *exchange) say(status int, text string) {
	contentType := "application/json"
	if strings.HasPrefix(text, "<") {
		contentType = "text/html"
	}
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(status)
	_, _ = io.WriteString(x.w, text)
}

// awaitDeparture returns when the client has closed the connection.
func (x *exchange) awaitDeparture() { <-x.r.Context().Done() }

// close hangs up without a further byte.
func (x *exchange) close() { panic(http.ErrAbortHandler) }

// reset drops the connection so that the client's side gets an RST.
func (x *exchange) reset() { loopback.Reset(x.hijack()) }

// raw writes bytes that net/http would not write, and ends the connection.
func (x *exchange) raw(text string, end func(net.Conn)) {
	conn := x.hijack()
	_, _ = io.WriteString(conn, text)
	end(conn)
}

func (x *exchange) hijack() net.Conn {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}
