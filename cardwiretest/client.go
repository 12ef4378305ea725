package cardwiretest

import (
	"net/http"
	"slices"
	"testing"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// WithProfile sets the names that the service understands, and the profile of the
// clients of NewClient and Server.Client. A query parameter whose name is "" is
// refused as unknown; without a CardIDParam, Get card is always refused, and
// without a RetryAction, so is a retry. The default is that of the client.
func WithProfile(p cardwire.Profile) Option {
	return func(s *settings) {
		s.profile = p
		s.client = append(s.client, cardwire.WithProfile(func(own *cardwire.Profile) { *own = p }))
	}
}

// WithClientOptions sets options of the clients of NewClient and Server.Client, such as a
// journal. The profile's LateExecution is 0 unless one of them sets it: what the service does
// not execute at once it never executes, except with FaultLate.
func WithClientOptions(opts ...cardwire.Option) Option {
	return func(s *settings) { s.clientOptions = append(s.clientOptions, opts...) }
}

// inProcessURL has a host that does not exist, so that a request that left the
// process by mistake would not arrive.
const inProcessURL = "https://cards.example" + basePath

// NewClient returns a client of a new service in process, without a socket, and the service.
// The client's journal is in memory unless WithClientOptions sets another.
func NewClient(tb testing.TB, opts ...Option) (*cardwire.Client, *Service) {
	tb.Helper()
	service := New(opts...)
	service.client = append(service.client, cardwire.WithHTTPClient(&http.Client{Transport: service}))
	return service.newClient(tb, inProcessURL), service
}

// Client returns a client of the server with its key. opts come after the
// server's own and may replace them; for another key, use cardwire.New with URL.
// The client's connections are closed when the test of NewServer ends.
func (s *Server) Client(opts ...cardwire.Option) *cardwire.Client {
	s.tb.Helper()
	client := s.newClient(s.tb, s.URL, opts...)
	if client != nil {
		s.tb.Cleanup(client.CloseIdleConnections)
	}
	return client
}

func (s *Service) newClient(tb testing.TB, baseURL string, opts ...cardwire.Option) *cardwire.Client {
	tb.Helper()
	neverLate := cardwire.WithProfile(func(own *cardwire.Profile) { own.LateExecution = 0 })
	memory := cardwire.WithJournal(journal.NewMemory())
	opts = slices.Concat(s.client, []cardwire.Option{memory, neverLate}, s.clientOptions, opts)
	client, err := cardwire.New(baseURL, s.key, opts...)
	if err != nil {
		tb.Fatalf("cardwiretest: the client could not be created: %v", err)
	}
	return client
}
