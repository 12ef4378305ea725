// Package cardwiretest is a fake card-issuing and remittance service to test against:
// stateful, deterministic, strict about requests, and able to fail on demand.
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
// The service starts with BINs, cards of every status, remittance currencies
// and states, all derived from a seed: the same seed gives the same bytes.
// [Service.AddBIN], [Service.AddCard] and [Service.AddFailedOperation] add more.
//
// [Service.Fail] makes an operation fail in a chosen way, before or after it was
// executed. [Service.Executions] and [Service.Ledger] then report what really
// happened, and [Service.Requests] what was requested.
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
// What CreateTransfer returns after each kind of fault, and which step
// [cardwire.NextStep] then returns. It is the same whether the service has executed the
// transfer or not: the client cannot tell. FaultSlowDrip succeeds. FaultRepeatedPage,
// FaultIgnoredPage and FaultIgnoredFilter are for ListCards only, whose error is then
// cardwire.ErrParameterIgnored. After any other failed read the step is retry.
//
//	fault                     outcome   step
//	FaultStatus               unknown   reconcile
//	FaultStatus, Status: 401  refused   retry
//	FaultStatus, Status: 422  refused   fail
//	FaultHTML                 unknown   reconcile
//	FaultCode                 unknown   reconcile
//	FaultCode, Code: 422      refused   fail
//	FaultRateLimited          refused   retry
//	FaultReset                unknown   reconcile
//	FaultClosed               unknown   reconcile
//	FaultHang                 unknown   reconcile
//	FaultLateAfterHang        unknown   reconcile
//	FaultLateAfterClose       unknown   reconcile
//	FaultTruncated            unknown   reconcile
//	FaultGarbage              unknown   reconcile
//	FaultNotHTTP              unknown   reconcile
//	FaultEmpty                unknown   reconcile
//	FaultSlowDrip             executed  done
//	FaultRepeatedPage         executed  retry
//	FaultIgnoredPage          executed  retry
//	FaultIgnoredFilter        executed  retry
//	FaultRedirectSelf         unknown   reconcile
//	FaultRedirectElsewhere    unknown   reconcile
//	FaultRedirectDead         unknown   reconcile
//	FaultWrongData            unknown   reconcile
//	FaultDuplicateFields      unknown   reconcile
//	FaultOversize             unknown   reconcile
//	FaultGzipBomb             unknown   reconcile
//	FaultHeaderFlood          unknown   reconcile
//	FaultOtherResponse        unknown   reconcile
//
// # What is undocumented
//
// The fake has to choose; a real service may choose otherwise. Pages list the oldest
// card first; a page without cards is page 1 of 1. Freeze card makes the card frozen,
// unless it is closed or closing; clientTransactionId is optional, and a UUID, because
// cancel and retry accept nothing else. A canceled or retried operation is no longer
// failed. A transfer needs merchantOrderNo, payoutCurrency and transferAmount, which
// is in units of payoutCurrency and within its min_quota and max_quota of List currencies. The
// allow fields of a BIN are not enforced. The pan of Get card secrets is the standard base64 of a
// vector of 16 bytes followed by the number under AES-256-CTR, whose key is the
// SHA-256 of the API key.
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
	"net/http"
	"strings"
	"sync"
	"time"
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
	world    world
	planned  map[string][]*plan
	pending  map[*time.Timer]struct{} // pending executions
	ledger   []Execution
	served   map[string]int // successful reads, by operation
	requests []RequestRecord
	handlers map[string]handler // by method and path
}

// handler responds to an operation that the API only names.
type handler func(*http.Request) (code int, msg string, data any)

// Option configures a [Service].
type Option func(*settings)

// settings are what options set.
type settings struct {
	seed        int64
	cards       int
	quirky      bool
	latency     time.Duration
	key         string
	maxPageSize int
	names       names
	client      clientSettings
	deduplicate bool
}

// names are the undocumented names. A parameter whose name is "" is refused as
// unknown.
type names struct {
	limit, page, subAccount, status, cardBIN             string
	createdFrom, createdTo, transactedFrom, transactedTo string
	cardID, retry                                        string
}

const (
	defaultCards       = 25
	defaultPageSize    = 20
	defaultMaxPageSize = 100
)

// New returns a new service. It starts no goroutine and need not be closed. A nil
// option is ignored.
func New(opts ...Option) *Service {
	set := settings{
		seed: 1, cards: defaultCards, key: DefaultKey, maxPageSize: defaultMaxPageSize,
		names: names{
			limit: "limit", page: "page", status: "status", cardBIN: "card_bin",
			cardID: "id", retry: "retry",
		},
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&set)
		}
	}
	known.AddKey(set.key)
	return &Service{
		settings: set,
		done:     make(chan struct{}),
		world:    newWorld(set.seed, set.cards),
		planned:  map[string][]*plan{},
		pending:  map[*time.Timer]struct{}{},
		served:   map[string]int{},
	}
}

// WithSeed chooses the data: the same seed gives the same bytes. The default is 1.
func WithSeed(seed int64) Option { return func(s *settings) { s.seed = seed } }

// WithCards sets the number of cards to begin with. The default is 25. With 6 or
// more, every status occurs.
func WithCards(n int) Option { return func(s *settings) { s.cards = max(n, 0) } }

// WithQuirks makes responses deviate from the API as some backends do and clients must
// tolerate: escaped slashes and letters, fields in any order, unknown fields, missing
// nulls, numbers as strings, codes as numbers, flags as booleans and booleans as flags,
// and empty [] and {} for each other. No value changes.
func WithQuirks() Option { return func(s *settings) { s.quirky = true } }

// WithLatency delays every response by d. If the client disconnects meanwhile, the
// request is not served.
func WithLatency(d time.Duration) Option { return func(s *settings) { s.latency = d } }

// WithKey sets the API key that is accepted. The default is DefaultKey. NoLeaks
// searches for keys of at least 8 characters.
func WithKey(key string) Option { return func(s *settings) { s.key = key } }

// WithMaxPageSize caps the page size: a request for more gets pages of n cards. The
// default is 100. n below 1 is 1.
func WithMaxPageSize(n int) Option { return func(s *settings) { s.maxPageSize = max(n, 1) } }

// WithDeduplication makes the service respond to a reference that it has executed with
// its first response, without executing it again. By default every request is
// executed, and the ledger shows a reference that was executed twice.
func WithDeduplication() Option { return func(s *settings) { s.deduplicate = true } }

// Handle makes f respond to requests with the method for the path below /api/v1, which
// begins with "/". It is for operations that the API only names; f also replaces an
// operation of the fake. f is called only if the key is valid, returns the contents of
// the envelope, and must be safe for concurrent use. The HTTP status is the code if that
// is 400 to 599, and 200 otherwise. Such requests are neither in the ledger nor in
// Requests, and meet no Fault. A nil f removes the handler.
func (s *Service) Handle(method, path string, f func(*http.Request) (code int, msg string, data any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers == nil {
		s.handlers = map[string]handler{}
	}
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
		panic("cardwiretest: what the function of Handle returned cannot be marshaled: " + err.Error())
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

func success(data []byte) result {
	return result{status: http.StatusOK, code: 200, msg: "success", data: data}
}

func refusal(status int, msg string) *result {
	return &result{status: status, code: status, msg: msg, data: []byte("null")}
}

// operation is one operation of the API.
type operation struct {
	name   string  // as in cardwire.Error.Op
	media  string  // content type of the body; "": none
	fields []param // of the body
	query  func(names) []param
	reads  bool // it changes nothing
	run    func(*Service, *request) result
}

// routes are all documented operations.
var routes = map[string]map[string]*operation{
	"/remittance/states":   {"GET": {name: "ListRemittanceStates", reads: true, run: listStates}},
	"/remittance/currency": {"GET": {name: "ListRemittanceCurrencies", reads: true, run: listCurrencies}},
	"/remittance/transfer": {"POST": {name: "CreateTransfer", media: mediaJSON, fields: transferFields, run: createTransfer}},
	"/cards/private":       {"POST": {name: "GetCardSecrets", media: mediaForm, fields: secretsFields, reads: true, run: getSecrets}},
	"/cards/adjustAction":  {"POST": {name: "CancelOperation", media: mediaForm, fields: adjustFields, run: adjust}},
	"/cards":               {"GET": {name: "ListCards", query: listParams, reads: true, run: listCards}},
	"/cards/info":          {"GET": {name: "GetCard", query: infoParams, reads: true, run: getCard}},
	"/cards/suspend":       {"POST": {name: "FreezeCard", media: mediaMultipart, fields: freezeFields, run: freezeCard}},
	"/cards/upload":        {"POST": {name: "UploadImage", media: mediaMultipart, fields: uploadFields, run: uploadImage}},
	"/bins":                {"GET": {name: "ListBINs", reads: true, run: listBINs}},
	"/bins/maintenance":    {"GET": {name: "ListBINsUnderMaintenance", reads: true, run: listMaintenance}},
	"/account/capacity":    {"GET": {name: "CardCapacity", reads: true, run: capacity}},
}

// The names of operations that share a route with another.
const (
	opRetry       = "RetryOperation"
	opCardByOrder = "GetCardByOrder"
)

// operationName returns the name under which op is counted. It panics if op is
// unknown, because the test would otherwise pass for the wrong reason.
func operationName(op string) string {
	switch op {
	case opCardByOrder:
		return "GetCard"
	case opRetry:
		return op
	}
	for _, methods := range routes {
		for _, o := range methods {
			if o.name == op {
				return op
			}
		}
	}
	panic("cardwiretest: no operation has the name " + op)
}

// execute checks the request and executes it, unless it is a rehearsal.
func (s *Service) execute(r *request) result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.refuse(r); refused != nil {
		return *refused
	}
	if r.operation.reads && !r.rehearsal {
		s.served[r.op]++
	}
	return r.operation.run(s, r)
}

// refuse returns the refusal of an invalid request, or nil.
func (s *Service) refuse(r *request) *result {
	switch {
	case !s.authorized(r.authorization):
		return refusal(http.StatusUnauthorized, "Authorization must be a valid bearer key")
	case r.methods == nil:
		return refusal(http.StatusNotFound, "the path does not exist")
	case r.operation == nil:
		refused := refusal(http.StatusMethodNotAllowed, "the method is not allowed here")
		refused.header = http.Header{"Allow": {r.allow()}}
		return refused
	}
	var query []param
	if r.operation.query != nil {
		query = r.operation.query(s.names)
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
