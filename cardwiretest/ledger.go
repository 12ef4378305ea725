package cardwiretest

import (
	"slices"
	"strings"
	"time"
)

// Execution is one operation that the service executed.
type Execution struct {
	// Op is the operation, as in cardwire.Error.Op: CreateTransfer, FreezeCard,
	// CancelOperation, RetryOperation or UploadImage.
	Op string
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
	// Amount is the transferAmount, in Currency, as it was sent; "": no transfer.
	Amount string
	// Currency is the payoutCurrency of a transfer; "": no transfer.
	Currency string
	// Size is the number of bytes of an upload; 0: no upload.
	Size int64
}

// RequestRecord is a request that reached the service, without any values. An
// unusual name is masked as "***" too.
type RequestRecord struct {
	// Method is the HTTP method.
	Method string
	// Path is the path from /api/v1 on; if it does not exist, the rest is "***".
	Path string
	// Query is the query with all values masked, like limit=***&page=***; "": none.
	Query string
}

// executed records what a request was executed as, and returns a success.
func (s *Service) executed(r *request, e Execution, data []byte) result {
	s.world.tick()
	e.Op, e.Reference, e.Time = r.op, r.reference(), time.Now()
	s.ledger = append(s.ledger, e)
	if s.watch != nil {
		s.watch(e, r.values)
	}
	return success(data)
}

// Executions returns how often op was executed under the reference, which is a
// merchantOrderNo or a client transaction ID in any letter case; "": under any or none.
// For an operation that changes nothing it returns the number of successful responses,
// and the reference must be "". It panics if no operation has the name op.
func (s *Service) Executions(op, reference string) int {
	op = operationName(op)
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(executed string) bool {
		return executed == reference || op != "CreateTransfer" && strings.EqualFold(executed, reference)
	}
	n := 0
	for _, e := range s.ledger {
		if e.Op == op && (reference == "" || same(e.Reference)) {
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
func (s *Service) Requests() []RequestRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Service) record(r *request) {
	rec := RequestRecord{Method: r.method, Path: basePath + "/***"}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, r.method) {
		rec.Method = "***"
	}
	if r.operation != nil {
		rec.Path = r.http.URL.Path
	}
	var query []string
	for _, f := range r.query {
		query = append(query, plainName(f.name)+"=***")
	}
	rec.Query = strings.Join(query, "&")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
}
