// Package shop is a merchant's program in a page, on which cardwiretest.Simulate is run.
package shop

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// Shop is a merchant's program for cardwiretest.Simulate. It does what NextStep says.
type Shop struct {
	Client Sender

	world  *cardwiretest.World
	orders map[string]cardwire.TransferParams // its tables outlive it
	shown  map[string]cardwiretest.Shown
}

// Sender is what it needs of a client.
type Sender interface {
	CreateTransfer(context.Context, cardwire.TransferParams, ...cardwire.CallOption) (*cardwire.Transfer, error)
}

// New returns one life of the shop.
func New(w *cardwiretest.World) *Shop {
	orders := w.Value("orders", func() any { return map[string]cardwire.TransferParams{} })
	shown := w.Value("shown", func() any { return map[string]cardwiretest.Shown{} })
	return &Shop{w.Client(), w, orders.(map[string]cardwire.TransferParams), shown.(map[string]cardwiretest.Shown)}
}

// Take accepts an order. It also sends again what failed: the journal knows that it did, and says so again.
func (s *Shop) Take(_ context.Context, p cardwire.TransferParams) error {
	number := p.MerchantOrderNo
	return s.world.Do("insert "+number, func() error {
		if _, known := s.orders[number]; !known || s.shown[number] == cardwiretest.Failed {
			s.orders[number], s.shown[number] = p, cardwiretest.Pending
		}
		return nil
	})
}

// Run sends what is pending, every minute.
func (s *Shop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		for _, p := range s.pending() {
			_, err := s.Client.CreateTransfer(ctx, p)
			_ = s.Save(p.MerchantOrderNo, map[cardwire.Step]cardwiretest.Shown{
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

func (s *Shop) pending() (list []cardwire.TransferParams) {
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

// Save writes down what the customer is shown.
func (s *Shop) Save(number string, shown cardwiretest.Shown) error {
	return s.world.Do("update "+number, func() error {
		s.shown[number] = shown
		return nil
	})
}

// Cancel closes the number first: what it cannot close has happened, or may have.
func (s *Shop) Cancel(ctx context.Context, number string) error {
	i := cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: number}
	if err := s.world.Journal().Void(ctx, i, "Ada", "the customer canceled"); err != nil {
		return err
	}
	return s.Save(number, cardwiretest.Failed)
}

// Support records the finding in the journal, which tells the next call, even if the shop
// crashed before it could.
func (s *Shop) Support(ctx context.Context, number string, found journal.Resolution) error {
	i := cardwire.Intent{Op: cardwire.OpCreateTransfer, Reference: number}
	return errors.Join(s.world.Journal().Resolve(ctx, i, found), s.Save(number, cardwiretest.Pending))
}

// Show returns what the customer is shown.
func (s *Shop) Show(number string) cardwiretest.Shown { return s.shown[number] }

// Close has nothing to end.
func (s *Shop) Close() error { return nil }
