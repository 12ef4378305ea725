package cardwiretest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// shop is a merchant that does what NextStep says.
type shop struct {
	client  *cardwire.Client
	world   *cardwiretest.World
	journal *cardwiretest.SimulatedJournal
	orders  *orders
}

// orders is its table, which outlives it.
type orders struct {
	mu   sync.Mutex
	rows map[string]*row
}

type row struct {
	params cardwire.TransferParams
	shown  cardwiretest.Shown
	after  time.Time // when it is sent next
}

func newShop(w *cardwiretest.World) cardwiretest.Program {
	table := w.Value("orders", func() any { return &orders{rows: map[string]*row{}} })
	return &shop{w.Client(), w, w.Journal(), table.(*orders)}
}

func (s *shop) Take(_ context.Context, p cardwire.TransferParams) error {
	return s.world.Do("insert "+p.MerchantOrderNo, func() error {
		s.orders.mu.Lock()
		defer s.orders.mu.Unlock()
		if s.orders.rows[p.MerchantOrderNo] == nil {
			s.orders.rows[p.MerchantOrderNo] = &row{params: p}
		}
		return nil
	})
}

func (s *shop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		for _, p := range s.due() {
			s.send(ctx, p)
		}
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
}

func (s *shop) due() (list []cardwire.TransferParams) {
	s.orders.mu.Lock()
	defer s.orders.mu.Unlock()
	for _, number := range []string{"order-1", "order-2", "order-3", "order-4"} {
		if r := s.orders.rows[number]; r != nil && r.shown == cardwiretest.Pending && !r.after.After(time.Now()) {
			list = append(list, r.params)
		}
	}
	return list
}

func (s *shop) send(ctx context.Context, p cardwire.TransferParams) {
	_, err := s.client.CreateTransfer(ctx, p)
	shown := map[cardwire.Step]cardwiretest.Shown{
		cardwire.StepDone: cardwiretest.Submitted, cardwire.StepFail: cardwiretest.Failed, cardwire.StepReconcile: cardwiretest.Unresolved,
	}[cardwire.NextStep(err)]
	_ = s.save(p.MerchantOrderNo, shown)
}

func (s *shop) save(number string, shown cardwiretest.Shown) error {
	return s.world.Do("update "+number, func() error {
		s.orders.mu.Lock()
		defer s.orders.mu.Unlock()
		r := s.orders.rows[number]
		r.shown, r.after = shown, time.Now().Add(time.Minute)
		return nil
	})
}

func (s *shop) Support(ctx context.Context, number string, found cardwire.Resolution) error {
	i, _ := s.journal.Last(number)
	if err := s.journal.Resolve(ctx, i, found); err != nil {
		return err
	}
	return s.save(number, cardwiretest.Pending) // the next call is told what the journal knows
}

func (s *shop) Show(number string) cardwiretest.Shown {
	s.orders.mu.Lock()
	defer s.orders.mu.Unlock()
	if r := s.orders.rows[number]; r != nil {
		return r.shown
	}
	return cardwiretest.Pending
}

func (s *shop) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	cardwiretest.Simulate(t, newShop, cardwiretest.Seeds(1, 100))
}
