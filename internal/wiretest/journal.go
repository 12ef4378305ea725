package wiretest

import (
	"context"
	"sync"
	"testing"

	"github.com/cardwire/cardwire-go"
)

// scriptedJournal notes what it is told.
type Journal struct {
	OnBegin func(context.Context, cardwire.Intent) error                        // nil: always fine
	OnEnd   func(context.Context, cardwire.Intent, cardwire.IntentResult) error // nil: always fine

	mu      sync.Mutex
	Begun   []cardwire.Intent
	Ended   []cardwire.Intent
	Results []cardwire.IntentResult
}

func (j *Journal) Begin(ctx context.Context, i cardwire.Intent) error {
	j.mu.Lock()
	j.Begun = append(j.Begun, i)
	j.mu.Unlock()
	if j.OnBegin == nil {
		return nil
	}
	return j.OnBegin(ctx, i)
}

func (j *Journal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	j.mu.Lock()
	j.Ended = append(j.Ended, i)
	j.Results = append(j.Results, r)
	j.mu.Unlock()
	if j.OnEnd == nil {
		return nil
	}
	return j.OnEnd(ctx, i, r)
}

// transferOutcome sends the order and returns how it ended; success is executed.
func TransferOutcome(t *testing.T, c *cardwire.Client, orderNo string) cardwire.Outcome {
	t.Helper()
	_, err := c.CreateTransfer(t.Context(), SmallTransfer(orderNo))
	if err == nil {
		return cardwire.OutcomeExecuted
	}
	return Failure(t, err).Outcome
}

// lookingJournal is a journal that can be asked about a reference.
type LookingJournal struct {
	Journal
	OnLook func(op, reference string) error // nil: the reference is free
}

func (j *LookingJournal) Look(_ context.Context, op, reference string) error {
	if j.OnLook == nil {
		return nil
	}
	return j.OnLook(op, reference)
}
