package cardwiretest

import (
	"net/http"
	"testing"

	"github.com/cardwire/cardwire-go"
)

// clientSettings are the options of the clients that this package creates.
type clientSettings []cardwire.Option

// WithProfile sets the names that the service understands, and those that the
// clients of NewClient and Server.Client send. A query parameter whose name is ""
// is refused as unknown; without a CardIDParam, Get card is always refused, and
// without a RetryAction, so is a retry. The default is that of the client.
func WithProfile(p cardwire.Profile) Option {
	return func(s *settings) {
		s.names = names{
			limit: p.LimitParam, page: p.PageParam, subAccount: p.SubAccountParam,
			status: p.StatusParam, cardBIN: p.CardBINParam,
			createdFrom: p.CreatedFromParam, createdTo: p.CreatedToParam,
			transactedFrom: p.TransactedFromParam, transactedTo: p.TransactedToParam,
			cardID: p.CardIDParam, retry: p.RetryAction,
		}
		s.client = clientSettings{cardwire.WithProfile(func(own *cardwire.Profile) { *own = p })}
	}
}

// inProcessURL has a host that does not exist, so that a request that left the
// process by mistake would not arrive.
const inProcessURL = "https://cards.example" + basePath

// NewClient returns a client of a new service in process, without a socket, and
// the service.
func NewClient(tb testing.TB, opts ...Option) (*cardwire.Client, *Service) {
	tb.Helper()
	service := New(opts...)
	return service.newClient(tb, inProcessURL, cardwire.WithHTTPClient(&http.Client{Transport: service})), service
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
	client, err := cardwire.New(baseURL, s.key, append(s.client[:len(s.client):len(s.client)], opts...)...)
	if err != nil {
		tb.Fatalf("cardwiretest: the client could not be created: %v", err)
	}
	return client
}
