package cardwiretest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// memoryJournal keeps every rule but one: it forgets everything when its process ends.
type memoryJournal struct {
	mu      sync.Mutex
	records map[[2]string]*memoryRecord // by operation and reference
}

type memoryRecord struct {
	intent cardwire.Intent
	result *cardwire.IntentResult // nil: it has not ended
}

func (m *memoryJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil || !i.Unique {
		return ctx.Err()
	}
	key := [2]string{i.Op, i.Reference}
	if r := m.records[key]; r != nil {
		d := r.duplicate()
		happened := d.Outcome == cardwire.OutcomeUnknown || d.Outcome == cardwire.OutcomeExecuted
		switch {
		case r.intent.BodySHA256 != i.BodySHA256 && happened:
			return fmt.Errorf("%w: %w", cardwire.ErrOtherBody, d)
		case r.intent.BodySHA256 != i.BodySHA256:
			return cardwire.ErrOtherBody
		case happened || r.result.Final:
			return d
		}
	}
	m.records[key] = &memoryRecord{intent: i}
	return nil
}

func (r *memoryRecord) duplicate() *cardwire.DuplicateIntent {
	if r.result != nil {
		return &cardwire.DuplicateIntent{Outcome: r.result.Outcome, ServiceID: r.result.ServiceID}
	}
	left := max(0, time.Until(r.intent.SendBy))
	return &cardwire.DuplicateIntent{InProgress: left > 0, Remaining: left}
}

func (m *memoryJournal) End(ctx context.Context, i cardwire.Intent, result cardwire.IntentResult) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[[2]string{i.Op, i.Reference}]; r != nil && ctx.Err() == nil {
		r.result = &result
	}
	return ctx.Err()
}

// Whoever writes a journal, for MySQL or for DynamoDB, has it tested like this.
func ExampleTestJournal() {
	_ = func(t *testing.T) { // in a test file: func TestMyJournal(t *testing.T)
		cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal {
			return &memoryJournal{records: map[[2]string]*memoryRecord{}}
		})
	}
}
