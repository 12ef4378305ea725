package wiretest

import (
	"context"
	"sync"

	"github.com/cardwire/cardwire-go"
)

// Journal is a cardwire.Journal that keeps the arguments of its calls.
type Journal struct {
	OnBegin func(context.Context, cardwire.Intent) error                        // nil: always fine
	OnEnd   func(context.Context, cardwire.Intent, cardwire.IntentResult) error // nil: always fine
	OnVoid  func(cardwire.Intent) error                                         // nil: always fine

	mu      sync.Mutex
	Begun   []cardwire.Intent
	Ended   []cardwire.Intent
	Voided  []cardwire.Intent
	Results []cardwire.IntentResult
}

// Begin notes the intent, and calls OnBegin.
func (j *Journal) Begin(ctx context.Context, i cardwire.Intent) error {
	j.mu.Lock()
	j.Begun = append(j.Begun, i)
	j.mu.Unlock()
	if j.OnBegin == nil {
		return nil
	}
	return j.OnBegin(ctx, i)
}

// End notes the result, and calls OnEnd.
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

// Void notes the intent, and calls OnVoid.
func (j *Journal) Void(_ context.Context, i cardwire.Intent, _, _ string) error {
	j.mu.Lock()
	j.Voided = append(j.Voided, i)
	j.mu.Unlock()
	if j.OnVoid == nil {
		return nil
	}
	return j.OnVoid(i)
}
