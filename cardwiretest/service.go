// Package cardwiretest is a card-issuing and remittance service to test against:
// stateful, deterministic, strict about requests, and able to fail on demand.
//
// A test takes it in one of three ways. In process, without a socket:
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
// and states, all derived from a seed: the same seed gives the same bytes. More
// can be put in by [Service.AddBIN], [Service.AddCard] and
// [Service.AddFailedOperation].
//
// [Service.Fail] makes an operation fail in a chosen way, before or after it took
// effect. [Service.Executions] and [Service.Ledger] then tell what really
// happened, and [Service.Requests] what was asked.
//
// # Requests
//
// A request is refused unless it is exactly what the interface describes. The
// refusal is an envelope whose code is the HTTP status, whose msg names the
// field and whose data is null. No refusal repeats a value.
//
//	400  a body that is not what its content type says
//	401  a missing or wrong key
//	404  a path, a card or an order that does not exist
//	405  another method
//	413  a form or JSON body of more than 1 MiB
//	415  another content type
//	422  a field that is missing, unknown, repeated or malformed, or an operation
//	     that the state does not allow
//
// # Where the interface shows nothing
//
// The service has to choose, and another may choose otherwise. Pages hold the
// oldest card first; a page without cards is page 1 of 1. Freeze card makes the
// card frozen, unless it is closed or closing; clientTransactionId is optional, and
// a UUID, since cancelling and retrying take nothing else.
// A cancelled or retried operation is no longer failed. A transfer needs
// merchantOrderNo, payoutCurrency and transferAmount. The allow members of a BIN
// are not enforced. The pan of Get card secrets is the standard base64 of a
// nonce of 12 bytes followed by the number under AES-256-GCM, whose key is the
// SHA-256 of the API key.
//
// # Card data
//
// Card numbers are canaries: they begin with their BIN, have 16 digits and fail
// the Luhn check, so that no number can be a real one, and [NoLeaks] finds them
// wherever a program prints them.
package cardwiretest

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"
)

// DefaultKey is the API key that a service accepts unless WithKey gives another.
const DefaultKey = "cwtest-canary-key-5f0c9d7e31ab4286"

// basePath is what the paths of all operations begin with.
const basePath = "/api/v1"

// Service is the fake service: an [http.Handler] for paths below /api/v1, and an
// [http.RoundTripper] that answers requests in process whatever their host. It
// is safe for concurrent use. [New] makes one: the zero value and nil are of no use.
type Service struct {
	settings
	done chan struct{} // closed with the server, if there is one

	mu       sync.Mutex
	world    world
	planned  map[string][]*plan
	pending  map[*time.Timer]struct{} // executions to come
	ledger   []Execution
	answered map[string]int // reads, by operation
	requests []RequestRecord
}

// Option configures a [Service].
type Option func(*settings)

// settings is what options set.
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

// names are the names of what the interface does not name. A parameter whose
// name is "" is refused as unknown.
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

// New returns a service of its own. It holds no goroutine and need not be closed. A
// nil option is none.
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
		answered: map[string]int{},
	}
}

// WithSeed chooses the data: the same seed gives the same bytes. The default is 1.
func WithSeed(seed int64) Option { return func(s *settings) { s.seed = seed } }

// WithCards sets the number of cards to begin with. The default is 25. From 6 on
// every status occurs.
func WithCards(n int) Option { return func(s *settings) { s.cards = max(n, 0) } }

// WithQuirks makes replies deviate from the interface as some backends do and
// clients must tolerate: escaped slashes and letters, members in any order and
// unknown ones among them, a null that is left out, numbers as text, codes as
// numbers, flags as booleans and booleans as flags, and [] and {} for each other
// where they are empty. No value changes.
func WithQuirks() Option { return func(s *settings) { s.quirky = true } }

// WithLatency delays every answer by d. A request whose client leaves meanwhile
// is not served.
func WithLatency(d time.Duration) Option { return func(s *settings) { s.latency = d } }

// WithKey sets the API key that is accepted. The default is DefaultKey. NoLeaks
// looks for keys of at least 8 characters.
func WithKey(key string) Option { return func(s *settings) { s.key = key } }

// WithMaxPageSize caps the page size: a larger one is answered with pages of n
// cards. The default is 100. n below 1 is 1.
func WithMaxPageSize(n int) Option { return func(s *settings) { s.maxPageSize = max(n, 1) } }

// WithDeduplication answers a repeated reference as the first was answered,
// without executing it again. By default every request is executed, and the
// ledger shows a reference that was executed twice.
func WithDeduplication() Option { return func(s *settings) { s.deduplicate = true } }

// result is what an operation comes to.
type result struct {
	status int // HTTP status and, unless coded otherwise, code
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

// operation is one operation of the interface.
type operation struct {
	name   string  // as in cardwire.Error.Op
	media  string  // content type of the body; "": none
	fields []param // of the body
	query  func(names) []param
	reads  bool // it changes nothing
	run    func(*Service, *request) result
}

// routes is the whole of section 4 of the interface.
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

// operationName returns the name under which op is counted. An unknown one is a
// mistake in the test, which would otherwise pass for the wrong reason.
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

// execute checks the request and lets it take effect, unless it is a rehearsal.
func (s *Service) execute(r *request) result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused := s.refuse(r); refused != nil {
		return *refused
	}
	if r.operation.reads && !r.rehearsal {
		s.answered[r.op]++
	}
	return r.operation.run(s, r)
}

// refuse says what is wrong with the request, nil for nothing.
func (s *Service) refuse(r *request) *result {
	switch {
	case !s.authorised(r.authorization):
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

// authorised compares in constant time, so that the fake is no bad example.
func (s *Service) authorised(headers []string) bool {
	if len(headers) != 1 {
		return false
	}
	got, want := sha256.Sum256([]byte(headers[0])), sha256.Sum256([]byte("Bearer "+s.key))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
