package chaos

import (
	"context"
	"database/sql"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// A service that deduplicates executes an order once. Where the first call ended
// unknown, whatever the response to a second one is, or happens to it, says nothing
// of the first, unless it is a success.
func TestARetryResolvesNothingUnlessItSucceeds(t *testing.T) {
	referenced := []string{"CreateTransfer", "FreezeCard", "CancelOperation", "RetryOperation"}
	unique := []string{"CreateTransfer", "FreezeCard"} // of others a journal says only that they were begun
	for _, tc := range []struct {
		name              string
		ops               []string
		journal, newStart bool
	}{
		{"by the same client", referenced, false, false},
		{"by the same client, with a journal", referenced, true, false},
		{"by a client after a restart, with the journal of the first", unique, true, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Run("first a fault of each kind, then the order exists", func(t *testing.T) {
				s := newStage(t, tc.journal, tc.newStart)
				calls := s.plan(tc.ops)
				s.first(t, calls, faulty)
				unknown := slices.DeleteFunc(calls, func(c *pair) bool { return verdictOf(c.err) != Unknown })
				s.again(t, unknown, orderly)
				s.settle(t)

				met := map[string]bool{}
				for _, c := range unknown {
					met[c.kind.Name] = true
					c.checkOrderly(t, s.service.ledger.Executions(c.order))
				}
				for i := range s.kinds {
					if k := &s.kinds[i]; len(k.fits(tc.ops)) > 0 && slices.Equal(k.verdicts, []Verdict{Unknown}) {
						assert.True(t, met[k.Name], "no call of %s was retried", k.Name)
					}
				}
				t.Logf("%d kinds, %d retries", len(met), len(unknown))
				s.checkJournal(t, unknown)
			})
			t.Run("first a lost response, then a fault of each kind", func(t *testing.T) {
				s := newStage(t, tc.journal, tc.newStart)
				calls := s.plan(tc.ops)
				s.first(t, calls, lost)
				s.again(t, calls, faulty)
				s.settle(t)

				for _, c := range calls {
					require.Equal(t, Unknown, verdictOf(c.err), "the first call, before %s", c.kind.Name)
					assert.Contains(t, c.kind.ofRetry(), verdictOf(c.errAgain), "%s, %s", c.kind.Name, c.order.Op)
					assert.Equal(t, 1, s.service.ledger.Executions(c.order), "%s, %s", c.kind.Name, c.order.Op)
				}
				t.Logf("%d kinds, %d retries", len(s.kinds), len(calls))
				s.checkJournal(t, calls)
			})
		})
	}
}

// Where the service is not said to deduplicate, the journal stops the retry.
func TestAJournalStopsTheRetryOfAnUnknown(t *testing.T) {
	for name, newStart := range map[string]bool{"the same client": false, "a client after a restart": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, true, newStart)
			s.profile.ServerDeduplicates = false
			calls := s.plan([]string{"CreateTransfer", "FreezeCard"})
			s.first(t, calls, faulty)
			unknown := slices.DeleteFunc(calls, func(c *pair) bool { return verdictOf(c.err) != Unknown })
			s.again(t, unknown, orderly) // it would be executed
			s.settle(t)

			for _, c := range unknown {
				require.ErrorIs(t, c.errAgain, cardwire.ErrDuplicateIntent, c.kind.Name)
				assert.Equal(t, Unknown, verdictOf(c.errAgain), c.kind.Name)
				if c.kind.effect == never {
					assert.Zero(t, s.service.ledger.Executions(c.order), "%s: nothing was sent", c.kind.Name)
				}
			}
			t.Logf("%d retries", len(unknown))
			s.checkJournal(t, unknown)
		})
	}
}

// pair is an order, and what its two calls told.
type pair struct {
	order         Order
	kind          *Kind
	client        *cardwire.Client
	err, errAgain error
}

// checkOrderly compares the second call, which met a service in order, with what
// the first one left there.
func (c *pair) checkOrderly(t *testing.T, executions int) {
	t.Helper()
	assert.Equal(t, 1, executions, "%s, %s", c.kind.Name, c.order.Op)
	if c.errAgain == nil {
		assert.NotEqual(t, always, c.kind.effect, "%s, %s: the order existed", c.kind.Name, c.order.Op)
		return
	}
	assert.NotEqual(t, never, c.kind.effect, "%s, %s: there was no order", c.kind.Name, c.order.Op)
	var failure *cardwire.Error
	require.ErrorAs(t, c.errAgain, &failure, c.kind.Name)
	assert.Equal(t, []any{422, 422, "order exists"}, []any{failure.HTTPStatus, failure.Code, failure.Message}, c.kind.Name)
	assert.Equal(t, cardwire.OutcomeUnknown, failure.Outcome, "%s, %s", c.kind.Name, c.order.Op)
}

// ofRetry are the verdicts that are right of a retry: that this one was
// refused, or not sent, is not said.
func (k *Kind) ofRetry() []Verdict {
	verdicts := []Verdict{}
	for _, v := range k.verdicts {
		if v.undone() {
			v = Unknown
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// stage is a service that deduplicates, with its proxies, and what its clients
// are made of.
type stage struct {
	kinds    []Kind
	service  *service
	front    *proxies
	profile  cardwire.Profile
	newStart bool                        // the second call is another client's
	journals [2]*sqljournal.Journal      // of the first calls and of the second; nil: none
	clients  map[string]*cardwire.Client // by kind, those of the first calls
	open     sync.Map                    // references whose result the journal did not record in time
}

// orderlyKind is met by a retry only: the order is executed unless it exists.
const orderlyKind = "orderly"

func newStage(t *testing.T, journal, newStart bool) *stage {
	t.Helper()
	s := &stage{kinds: Kinds(), newStart: newStart, clients: map[string]*cardwire.Client{}, profile: cardwire.DefaultProfile()}
	s.profile.ServerDeduplicates = true
	var err error
	s.service, err = startService(t.Context(), append(Kinds(), Kind{Name: orderlyKind, serve: executeUnlessExists}))
	require.NoError(t, err)
	s.service.ledger.once = true
	t.Cleanup(func() { s.service.server.Close() })
	s.front, err = startProxies(s.kinds, s.service.address)
	require.NoError(t, err)
	t.Cleanup(s.front.stop)
	if journal {
		path := filepath.Join(t.TempDir(), "journal.db")
		for i := range s.journals {
			s.journals[i] = openJournal(t, path)
		}
	}
	return s
}

// openJournal opens the file as a process does that shares nothing else.
func openJournal(t *testing.T, path string) *sqljournal.Journal {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)") // no test cuts the power
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1) // SQLite lets one write at a time
	journal, err := sqljournal.New(db, sqljournal.SQLite, sqljournal.WithRepeats())
	require.NoError(t, err)
	require.NoError(t, journal.Migrate(t.Context()))
	return journal
}

// plan has an order for each kind and operation.
func (s *stage) plan(ops []string) (calls []*pair) {
	for i := range s.kinds {
		for _, op := range s.kinds[i].fits(ops) {
			calls = append(calls, &pair{order: Order{op, reference(len(calls))}, kind: &s.kinds[i]})
		}
	}
	return calls
}

// way is how a call reaches the service: through the proxy of its kind, or past
// all proxies and as another kind.
type way struct{ kind string }

var (
	faulty  = way{}
	lost    = way{"done-reset"}
	orderly = way{orderlyKind}
)

// pastProxies is the key of a context whose connections go to its value.
type pastProxies struct{}

func (s *stage) call(t *testing.T, c *pair, client *cardwire.Client, by way) error {
	t.Helper()
	cfg := DefaultConfig()
	if by == faulty {
		ctx, cancel := cfg.patient(t.Context(), c.kind)
		defer cancel()
		return send(ctx, client, c.order)
	}
	ctx, cancel := context.WithTimeout(t.Context(), cfg.Patience)
	defer cancel()
	ctx = context.WithValue(ctx, pastProxies{}, s.service.address)
	return send(ctx, client, c.order, cardwire.WithHeader(KindHeader, by.kind))
}

func (s *stage) first(t *testing.T, calls []*pair, by way) {
	t.Helper()
	for _, c := range calls {
		if s.clients[c.kind.Name] == nil {
			s.clients[c.kind.Name] = s.client(t, c.kind, s.journals[0])
		}
		c.client = s.clients[c.kind.Name]
	}
	together(t, calls, func(c *pair) { c.err = s.call(t, c, c.client, by) })
}

func (s *stage) again(t *testing.T, calls []*pair, by way) {
	t.Helper()
	restarted := map[string]*cardwire.Client{}
	for _, c := range calls {
		if !s.newStart {
			continue
		}
		if restarted[c.kind.Name] == nil {
			restarted[c.kind.Name] = s.client(t, c.kind, s.journals[1])
		}
		c.client = restarted[c.kind.Name]
	}
	together(t, calls, func(c *pair) { c.errAgain = s.call(t, c, c.client, by) })
}

func together(t *testing.T, calls []*pair, call func(*pair)) {
	t.Helper()
	callAll(t.Context(), DefaultConfig().Concurrency, len(calls), func(i int) { call(calls[i]) })
}

func (s *stage) client(t *testing.T, k *Kind, journal *sqljournal.Journal) *cardwire.Client {
	t.Helper()
	var dialer net.Dialer
	opts := []cardwire.Option{
		quickRetries(), cardwire.WithObserver(cardwire.Observer{
			JournalError: func(_ context.Context, c cardwire.CallInfo, _ error) { s.open.Store(c.Reference, true) },
		}), cardwire.WithProfile(func(own *cardwire.Profile) { *own = s.profile }),
		cardwire.WithTransport(&http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if past, ok := ctx.Value(pastProxies{}).(string); ok {
					address = past
				}
				return dialer.DialContext(ctx, network, address)
			},
		}),
	}
	if journal != nil {
		opts = append(opts, cardwire.WithJournal(journal))
	}
	client, err := cardwire.New(s.front.base[k.Name], "chaos-key", opts...)
	require.NoError(t, err)
	return client
}

// settle waits until nothing can be executed any more.
func (s *stage) settle(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), DefaultConfig().Settle)
	defer cancel()
	require.NoError(t, s.service.settle(ctx))
}

// checkJournal compares what is on record with what the calls told.
func (s *stage) checkJournal(t *testing.T, calls []*pair) {
	t.Helper()
	if s.journals[0] == nil {
		return
	}
	for _, c := range calls {
		if _, open := s.open.Load(c.order.Reference); open {
			continue // its result is not on record, as on a slow machine
		}
		events, err := s.journals[0].History(t.Context(), c.order.Op, c.order.Reference)
		require.NoError(t, err)
		last := events[len(events)-1]
		if c.order.Op == "CreateTransfer" || c.order.Op == "FreezeCard" {
			assert.Equal(t, verdictOf(c.errAgain) == Unknown, last.Outcome == cardwire.OutcomeUnknown, "%s, %s", c.kind.Name, c.order.Op)
			continue
		}
		if verdictOf(c.err) != Unknown {
			continue // it ended before it was sent, as on a slow machine
		}
		// A cancelling that succeeded says nothing of the one before it.
		assert.True(t, slices.ContainsFunc(events, func(e sqljournal.Event) bool {
			return e.Kind == "ended" && e.Outcome == cardwire.OutcomeUnknown
		}), "%s, %s", c.kind.Name, c.order.Op)
	}
}
