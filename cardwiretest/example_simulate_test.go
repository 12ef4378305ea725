package cardwiretest_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// shop is a merchant that does what NextStep says.
type shop struct {
	world  *cardwiretest.World
	client sender
	orders map[string]cardwire.TransferParams // its tables outlive it
	shown  map[string]cardwiretest.Shown
}

// sender is what it needs of a client.
type sender interface {
	CreateTransfer(context.Context, cardwire.TransferParams, ...cardwire.CallOption) (*cardwire.Transfer, error)
}

func newShop(w *cardwiretest.World) cardwiretest.Program {
	orders := w.Value("orders", func() any { return map[string]cardwire.TransferParams{} })
	shown := w.Value("shown", func() any { return map[string]cardwiretest.Shown{} })
	return &shop{w, w.Client(), orders.(map[string]cardwire.TransferParams), shown.(map[string]cardwiretest.Shown)}
}

// Take also sends again what failed: the journal knows that it did, and says so again.
func (s *shop) Take(_ context.Context, p cardwire.TransferParams) error {
	number := p.MerchantOrderNo
	return s.world.Do("insert "+number, func() error {
		if _, known := s.orders[number]; !known || s.shown[number] == cardwiretest.Failed {
			s.orders[number], s.shown[number] = p, cardwiretest.Pending
		}
		return nil
	})
}

func (s *shop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		for _, p := range s.pending() {
			_, err := s.client.CreateTransfer(ctx, p)
			_ = s.save(p.MerchantOrderNo, map[cardwire.Step]cardwiretest.Shown{
				cardwire.StepDone: cardwiretest.Submitted, cardwire.StepFail: cardwiretest.Failed,
				cardwire.StepReconcile: cardwiretest.Unresolved, // what waits or is retried is pending
			}[cardwire.NextStep(err)])
		}
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
		}
	}
}

func (s *shop) pending() (list []cardwire.TransferParams) {
	_ = s.world.Do("select", func() error {
		for _, number := range slices.Sorted(maps.Keys(s.orders)) {
			if s.shown[number] == cardwiretest.Pending {
				list = append(list, s.orders[number])
			}
		}
		return nil
	})
	return list
}

func (s *shop) save(number string, shown cardwiretest.Shown) error {
	return s.world.Do("update "+number, func() error {
		s.shown[number] = shown
		return nil
	})
}

// Support records the finding in the journal, which tells the next call, even if the shop
// crashed before it could.
func (s *shop) Support(ctx context.Context, number string, found journal.Resolution) error {
	i, _ := s.world.Journal().Last(number)
	return errors.Join(s.world.Journal().Resolve(ctx, i, found), s.save(number, cardwiretest.Pending))
}

func (s *shop) Show(number string) cardwiretest.Shown { return s.shown[number] }

func (s *shop) Close() error { return nil }

// A merchant's own program, under every fault, from a hundred seeds.
func ExampleSimulate() {
	_ = func(t *testing.T) { // in a test file: func TestShop(t *testing.T)
		cardwiretest.Simulate(t, newShop)
	}
}
