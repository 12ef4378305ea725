package chaos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// Order is one thing that a caller wants done once.
type Order struct {
	// Op is the operation, as in cardwire.Error.Op.
	Op string
	// Reference is the order number, the client transaction id or, of an upload,
	// the file's name without its extension.
	Reference string
}

// Ledger counts how often each order was executed.
type Ledger struct {
	mu    sync.Mutex
	count map[Order]int
	total int
	once  bool // an order that is there is not executed again
}

// accept makes the order exist, which shall be executed later.
func (l *Ledger) accept(o Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.init()
	l.count[o] += 0
}

func (l *Ledger) exists(o Order) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.count[o]
	return ok
}

// Pending reports whether the order was accepted, and is executed later.
func (l *Ledger) Pending(o Order) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, ok := l.count[o]
	return ok && n == 0
}

func (l *Ledger) init() {
	if l.count == nil {
		l.count = map[Order]int{}
	}
}

func (l *Ledger) enter(o Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.init()
	if l.once && l.count[o] > 0 {
		return
	}
	l.count[o]++
	l.total++
}

// Executions returns how often the order has been executed until now.
func (l *Ledger) Executions(o Order) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[o]
}

// Total returns how many executions there were, of whatever order.
func (l *Ledger) Total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// KindHeader names a kind that takes the place of the one in the path: so one
// client, which has one base URL, meets several.
const KindHeader = "X-Chaos-Kind"

// service listens on loopback. The first segment of a path names the kind of
// fault, so that one listener serves them all.
type service struct {
	ledger  Ledger
	address string
	kinds   map[string]*Kind
	server  http.Server
	pending sync.WaitGroup // executions that outlive their request
}

func startService(ctx context.Context, kinds []Kind) (*service, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{address: listener.Addr().String(), kinds: map[string]*Kind{}}
	for i := range kinds {
		s.kinds[kinds[i].Name] = &kinds[i]
	}
	padding() // made now, because the first call that needs it has a deadline
	s.server.Handler = s
	// Broken connections are its daily business.
	s.server.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // net/http takes no other logger
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// settle returns when nothing can be executed any more: no connection is
// accepted, every request has been dealt with, and so has what was put off.
func (s *service) settle(ctx context.Context) error {
	if err := s.server.Shutdown(ctx); err != nil {
		_ = s.server.Close()
		return fmt.Errorf("the service has not settled: %w", err)
	}
	s.pending.Wait()
	return nil
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, operation, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/api/v1")
	kind := s.kinds[cmp.Or(r.Header.Get(KindHeader), name)]
	if kind == nil {
		http.NotFound(w, r)
		return
	}
	// The whole body is read before it is looked at: only then does net/http
	// notice a client that leaves, and what came incomplete is never executed.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	x := &exchange{service: s, w: w, r: r}
	if r.Method == http.MethodGet {
		x.say(http.StatusOK, `{"code":200,"msg":"success","data":1}`)
		return
	}
	x.order, err = parseOrder(operation, r.Header.Get("Content-Type"), body)
	if err != nil {
		x.say(http.StatusUnprocessableEntity, `{"code":422,"msg":"not an order","data":null}`)
		return
	}
	if kind.serve == nil {
		succeed(x)
		return
	}
	kind.serve(x)
}

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
	case "/cards/suspend multipart/form-data":
		var form *multipart.Form
		if form, err = readParts(body, params); err == nil {
			o = Order{"FreezeCard", strings.Join(form.Value["clientTransactionId"], ",")}
		}
	case "/cards/upload multipart/form-data":
		var form *multipart.Form
		if form, err = readParts(body, params); err == nil && len(form.File["file"]) == 1 {
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

func readParts(body []byte, params map[string]string) (*multipart.Form, error) {
	return multipart.NewReader(bytes.NewReader(body), params["boundary"]).ReadForm(1 << 20)
}

// exchange is one request and what becomes of it.
type exchange struct {
	service *service
	order   Order
	w       http.ResponseWriter
	r       *http.Request
}

func (x *exchange) execute() { x.service.ledger.enter(x.order) }

func (x *exchange) accept() { x.service.ledger.accept(x.order) }

// success is the response that the API promises.
func (x *exchange) success() string {
	message, data := "success", ""
	switch x.order.Op {
	case "CreateTransfer":
		data = fmt.Sprintf(`{"merchant_order_no":"%s","api_order_no":"AO-%[1]s","status":"wait_process"}`, x.order.Reference)
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
func (x *exchange) reset() {
	conn := x.hijack()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// raw writes bytes that net/http would not write, and hangs up.
func (x *exchange) raw(text string) {
	conn := x.hijack()
	_, _ = io.WriteString(conn, text)
	_ = conn.Close()
}

func (x *exchange) hijack() net.Conn {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// executeIn executes after d, when the request is long over.
func (x *exchange) executeIn(d time.Duration) {
	x.service.pending.Add(1)
	time.AfterFunc(d, func() {
		defer x.service.pending.Done()
		x.execute()
	})
}
