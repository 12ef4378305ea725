package cardwiretest

import (
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
)

// Execution is one operation that the service executed.
type Execution struct {
	// Op is the operation, which is one that changes something.
	Op cardwire.Op
	// Reference is the merchantOrderNo or client transaction ID, as it was sent;
	// "": none was.
	Reference string
	// Time is when it happened, by the clock of this machine.
	Time time.Time
	// ID is the service's identifier: the api_order_no, the operation
	// record or the attachment key; "" for CancelOperation and RetryOperation.
	ID string
	// CardID is the card that was frozen; "": none.
	CardID string
	// Action is what was done: transfer, freeze, upload, or the type of a cancel
	// or retry.
	Action string
	// Kind is the kind of the operation that was canceled or retried; "": none was.
	Kind string
	// Amount is the transferAmount, in Currency, as it was sent; "": no transfer.
	Amount string
	// Currency is the payoutCurrency of a transfer; "": no transfer.
	Currency string
	// Size is the number of bytes of an upload; 0: no upload.
	Size int64
}

// ReceivedRequest is a request that reached the service, without any values. An
// unusual name is masked as "***" too.
type ReceivedRequest struct {
	// Method is the HTTP method.
	Method string
	// Path is the path from /api/v1 on; if it does not exist, the rest is "***".
	Path string
	// Query is the query with all values masked, like limit=***&page=***; "": none.
	Query string
	// ContentType is the media type of the body without its parameters; "": none.
	ContentType string
	// Fields are the names in the body in their order: form fields, parts or JSON
	// fields; nil: none.
	Fields []string
	// Authorized reports whether there was an Authorization header, right or wrong.
	Authorized bool
}

// executed records the execution of a request, and returns its response.
func (s *Service) executed(r *request, e Execution, done result) result {
	s.state.tick()
	e.Op, e.Reference, e.Time = r.op, r.reference(), time.Now()
	s.ledger = append(s.ledger, e)
	if e.Reference != "" {
		s.state.responses[referenceKey(e.Op, e.Reference)] = done
	}
	if s.watch != nil {
		s.watch(e, r.values)
	}
	return done
}

// referenceKey is the same for a UUID in any letter case.
func referenceKey(op cardwire.Op, reference string) string {
	if op != cardwire.OpCreateTransfer {
		reference = strings.ToLower(reference)
	}
	return string(op) + "\x00" + reference
}

// Executions returns how often op was executed under the reference, which is a
// merchantOrderNo or a client transaction ID in any letter case; "": under any or none.
// For an operation that changes nothing it returns the number of successful responses,
// and the reference must be "". It panics if no operation has the name op.
func (s *Service) Executions(op cardwire.Op, reference string) int {
	op = operationName(op)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.ledger {
		if e.Op == op && (reference == "" || referenceKey(op, e.Reference) == referenceKey(op, reference)) {
			n++
		}
	}
	if reference == "" {
		n += s.served[op]
	}
	return n
}

// Ledger returns everything that was executed, in order.
func (s *Service) Ledger() []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ledger)
}

// Requests returns every request that arrived, in order, including those that were
// refused or met a fault.
func (s *Service) Requests() []ReceivedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Service) keep(r *request) {
	rec := ReceivedRequest{
		Method:      maskUnless(r.method, "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
		Path:        basePath + "/***",
		ContentType: maskUnless(r.media, "", mediaJSON, mediaForm, mediaMultipart, "text/plain"),
		Authorized:  len(r.authorization) > 0,
	}
	if r.route != nil {
		rec.Path = r.http.URL.Path
	}
	var query []string
	for _, f := range r.query {
		query = append(query, plainName(f.name)+"=***")
	}
	rec.Query = strings.Join(query, "&")
	for _, f := range r.body {
		rec.Fields = append(rec.Fields, plainName(f.name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
}

// maskUnless masks v unless it is one of the usual values.
func maskUnless(v string, usual ...string) string {
	if slices.Contains(usual, v) {
		return v
	}
	return "***"
}
