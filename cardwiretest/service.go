// Package cardwiretest is a fake card-issuing and remittance service for tests: stateful,
// deterministic, strict about requests, and able to fail on demand.
//
// A test uses it in one of three ways. In process, without a socket:
//
//	client, service := cardwiretest.NewClient(t)
//
// over loopback, where connections can really be reset:
//
//	server := cardwiretest.NewServer(t)
//	client := server.Client()
//
// or as a transport, which also makes it a responder for mocks of net/http:
//
//	service := cardwiretest.New()
//	httpClient := &http.Client{Transport: service}
//
// The service starts with BINs, cards of every status, of which one in twelve has a negative
// balance, remittance currencies and states; the same seed gives the same bytes.
// [Service.SetCard], [Service.SetBIN] and [Service.AddFailedOperation] change them and
// add more.
//
// [Service.Fail] makes an operation fail in a chosen way, before or after it was executed.
// [Service.Executions] and [Service.Ledger] then report what was really executed, and
// [Service.Requests] what was requested.
//
// # Requests
//
// A request is refused unless it is exactly what the API documents. The refusal is an
// envelope whose code is the HTTP status, whose msg names the field and whose data is
// null. It never contains a value of the request.
//
//	400  a body that is not what its content type says
//	401  a missing or wrong key
//	404  a path, a card or an order that does not exist
//	405  another method
//	413  a form or JSON body of more than 1 MiB
//	415  another content type
//	422  a field that is missing, unknown, duplicate or malformed, or an operation
//	     that the state does not allow
//
// # Faults
//
// This is the outcome of a CreateTransfer after each kind of fault, and the step that
// [cardwire.NextStep] returns. They are the same whether the service has executed the transfer
// or not: the client cannot tell. After a failed read the step is retry, or fail if the service
// refused it for good, as with Status 422.
//
//	fault                                outcome   step
//	FaultStatus                          unknown   reconcile
//	FaultStatus, Status: 401             refused   retry
//	FaultStatus, Status: 422             refused   fail
//	FaultStatus, Status: 200, Code: 422  refused   fail
//	FaultStatus, Status: 200, Code: 500  unknown   reconcile
//	FaultHTML                            unknown   reconcile
//	FaultRateLimited                     refused   retry
//	FaultReset                           unknown   reconcile
//	FaultHang                            unknown   reconcile
//	FaultLate                            unknown   reconcile
//	FaultTruncated                       unknown   reconcile
//	FaultGarbage                         unknown   reconcile
//	FaultSlow                            executed  done
//	FaultDrift                           executed  done
//
// # What is undocumented
//
// The fake has to choose; a real service may choose otherwise. Pages list the oldest card
// first; if there are no cards, there is one empty page. Freeze card makes the card frozen,
// unless it is closed or closing; clientTransactionId is optional, but must be a UUID, because
// cancel and retry accept nothing else. A canceled or retried operation is no longer failed. A
// transfer needs merchantOrderNo, payoutCurrency and transferAmount, which is in payoutCurrency
// and within that currency's min_quota and max_quota. The allow fields of a BIN are not
// enforced. The pan of Get card secrets is base64 of 32 bytes that nothing decrypts.
//
// # Card data
//
// Card numbers are canaries: they begin with their BIN, have 16 digits and fail
// the Luhn check, so that none can be real, and [NoLeaks] finds them in a program's
// output.
package cardwiretest

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go"
)

// DefaultKey is the API key that a service accepts unless WithKey gives another.
const DefaultKey = "cwtest-canary-key-5f0c9d7e31ab4286"

// basePath is the prefix of all operations' paths.
const basePath = "/api/v1"

// Service is the fake service: an [http.Handler] for paths below /api/v1, and an
// [http.RoundTripper] that responds to requests in process whatever their host. It is
// safe for concurrent use. [New] creates one: the zero value and nil are not usable.
type Service struct {
	settings
	done chan struct{} // closed with the server, if there is one

	mu       sync.Mutex
	state    state
	planned  map[cardwire.Op][]*plan
	ledger   []Execution
	served   map[cardwire.Op]int // successful reads, by operation
	requests []ReceivedRequest
	handlers map[string]handler // by method and path

	// Set only in a simulation.
	draw  func(*request) (Fault, bool)       // returns the fault of a request, for Fail
	watch func(Execution, map[string]string) // called with each execution, and the fields of its request
}

// handler responds to an operation that the API only names.
type handler func(*http.Request) (code int, msg string, data any)

// Option configures a [Service].
type Option func(*settings)

// settings are what options set.
type settings struct {
	seed        int64
	cards       int
	latency     time.Duration
	key         string
	deduplicate bool
	profile     cardwire.Profile

	client, clientOptions []cardwire.Option // of the clients that this package creates
}

const (
	defaultCards = 25
	maxPageSize  = 100
)

// New returns a new service. It starts no goroutine and need not be closed. A nil
// option is ignored.
func New(opts ...Option) *Service {
	set := settings{seed: 1, cards: defaultCards, key: DefaultKey, profile: cardwire.DefaultProfile()}
	for _, opt := range opts {
		if opt != nil {
			opt(&set)
		}
	}
	known.AddKey(set.key)
	return &Service{
		settings: set,
		done:     make(chan struct{}),
		state:    newState(set.seed, set.cards),
		planned:  map[cardwire.Op][]*plan{},
		served:   map[cardwire.Op]int{},
		handlers: map[string]handler{},
	}
}

// WithSeed chooses identifiers and balances: the same seed gives the same bytes. The
// default is 1.
func WithSeed(seed int64) Option { return func(s *settings) { s.seed = seed } }

// WithCards sets the number of cards to begin with. The default is 25. With 6 or
// more, every status occurs.
func WithCards(n int) Option { return func(s *settings) { s.cards = n } }

// WithLatency delays every response by d. If the client disconnects meanwhile, the
// request is not served.
func WithLatency(d time.Duration) Option { return func(s *settings) { s.latency = d } }

// WithKey sets the API key that is accepted. The default is DefaultKey. NoLeaks
// searches for keys of at least 8 characters.
func WithKey(key string) Option { return func(s *settings) { s.key = key } }

// WithDeduplication makes the service respond to a reference that it has executed with
// its first response, without executing it again. By default every request is
// executed, and the ledger shows a reference that was executed twice.
func WithDeduplication() Option { return func(s *settings) { s.deduplicate = true } }

// Handle makes f respond to requests with the method for the path below /api/v1, which begins
// with "/". It is for operations that the API only names; f also replaces an operation of the
// fake. f is called only if the key is valid, returns the contents of the envelope, and must
// be safe for concurrent use. The HTTP status is the code if that is 400 to 599, and 200
// otherwise. Such requests are neither in the ledger nor in Requests, and have no Faults. A
// nil f removes the handler.
func (s *Service) Handle(method, path string, f func(*http.Request) (code int, msg string, data any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f == nil {
		delete(s.handlers, method+" "+path)
		return
	}
	s.handlers[method+" "+path] = f
}

// handled returns the result of a handler, and reports whether there is one.
func (s *Service) handled(r *http.Request) (result, bool) {
	path, _ := strings.CutPrefix(r.URL.EscapedPath(), basePath)
	method := cmp.Or(r.Method, http.MethodGet)
	s.mu.Lock()
	f := s.handlers[method+" "+path]
	s.mu.Unlock()
	switch {
	case f == nil:
		return result{}, false
	case !s.authorized(r.Header["Authorization"]):
		return *refusal(http.StatusUnauthorized, "Authorization must be a valid bearer key"), true
	case r.Body == nil:
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	code, msg, data := f(r)
	body, err := json.Marshal(data)
	if err != nil {
		panic("cardwiretest: the function of Handle returned data that cannot be marshaled: " + err.Error())
	}
	handled := result{status: http.StatusOK, code: code, msg: msg, data: body}
	if code >= 400 && code <= 599 {
		handled.status = code
	}
	return handled, true
}

// result is the result of an operation.
type result struct {
	status int // HTTP status
	code   int
	msg    string
	data   []byte // JSON
	header http.Header
}

// envelope wraps a result as the API does.
func (r *result) envelope() []byte {
	return fmt.Appendf(nil, `{"code":%d,"msg":%s,"data":%s}`, r.code, quoted(r.msg), r.data)
}

func success(data []byte) result {
	return result{status: http.StatusOK, code: 200, msg: "success", data: data}
}

func refusal(status int, msg string) *result {
	return &result{status: status, code: status, msg: msg, data: []byte("null")}
}

// route is how the service responds to one operation of the API.
type route struct {
	name   cardwire.Op
	media  string  // content type of the body; "": none
	fields []param // of the body
	query  func(*Service) []param
	reads  bool // the operation changes nothing
	run    func(*Service, *request) result
}

// routes are all documented operations.
var routes = map[string]*route{
	"/remittance/states":   {name: cardwire.OpListRemittanceStates, reads: true, run: listStates},
	"/remittance/currency": {name: cardwire.OpListRemittanceCurrencies, reads: true, run: listCurrencies},
	"/remittance/transfer": {
		name: cardwire.OpCreateTransfer, media: mediaJSON, fields: transferFields, run: createTransfer,
	},
	"/cards/private": {
		name: cardwire.OpGetCardSecrets, media: mediaForm, fields: idFields, reads: true, run: getSecrets,
	},
	"/cards/adjustAction": {name: cardwire.OpCancelOperation, media: mediaForm, fields: adjustFields, run: adjust},
	"/cards":              {name: cardwire.OpListCards, query: listParams, reads: true, run: listCards},
	"/cards/info":         {name: cardwire.OpGetCard, query: infoParams, reads: true, run: getCard},
	"/cards/suspend":      {name: cardwire.OpFreezeCard, media: mediaMultipart, fields: freezeFields, run: freezeCard},
	"/cards/upload":       {name: cardwire.OpUploadImage, media: mediaMultipart, fields: uploadFields, run: uploadImage},
	"/bins":               {name: cardwire.OpListBINs, reads: true, run: listBINs},
	"/bins/maintenance":   {name: cardwire.OpListBINsUnderMaintenance, reads: true, run: listMaintenance},
	"/account/capacity":   {name: cardwire.OpCardCapacity, reads: true, run: capacity},
}

// method is POST if there is a body.
func (o *route) method() string {
	if o.media == "" {
		return "GET"
	}
	return "POST"
}

// operationName returns the name under which op is counted. It panics if op is
// unknown, because the test would otherwise pass for the wrong reason.
func operationName(op cardwire.Op) cardwire.Op {
	if op == cardwire.OpGetCardByOrder {
		return cardwire.OpGetCard
	}
	for _, o := range routes {
		if op == o.name || op == cardwire.OpRetryOperation {
			return op
		}
	}
	panic("cardwiretest: no operation has the name " + string(op))
}

// execute checks the request and executes it.
func (s *Service) execute(r *request) result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.refuse(r); refused != nil {
		return *refused
	}
	if first, ok := s.state.responses[referenceKey(r.op, r.reference())]; ok && s.deduplicate {
		return first
	}
	done := r.route.run(s, r)
	if r.route.reads && done.code == 200 {
		s.served[r.op]++
	}
	return done
}

// refuse returns the refusal of an invalid request, or nil.
func (s *Service) refuse(r *request) *result {
	switch {
	case !s.authorized(r.authorization):
		return refusal(http.StatusUnauthorized, "Authorization must be a valid bearer key")
	case r.route == nil:
		return refusal(http.StatusNotFound, "the path does not exist")
	case r.method != r.route.method():
		refused := refusal(http.StatusMethodNotAllowed, "the method is not allowed here")
		refused.header = http.Header{"Allow": {r.route.method()}}
		return refused
	}
	var query []param
	if r.route.query != nil {
		query = r.route.query(s)
	}
	if refused := r.checkQuery(query); refused != nil {
		return refused
	}
	return r.checkBody()
}

// authorized compares in constant time, to set a good example.
func (s *Service) authorized(headers []string) bool {
	if len(headers) != 1 {
		return false
	}
	got, want := sha256.Sum256([]byte(headers[0])), sha256.Sum256([]byte("Bearer "+s.key))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
