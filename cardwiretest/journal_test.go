package cardwiretest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func newMemoryJournal() *memoryJournal {
	return &memoryJournal{records: map[[2]string]*memoryRecord{}}
}

func TestTheJournalOfTheExample(t *testing.T) {
	t.Parallel()
	cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return newMemoryJournal() })
}

// brokenVariable names the journal that TestABrokenJournal tests in a process of
// its own.
const brokenVariable = "CARDWIRE_TEST_BROKEN_JOURNAL"

// brokenJournal breaks one rule.
type brokenJournal struct {
	*memoryJournal

	begin func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error
	end   func(m *memoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error
	look  func(m *memoryJournal, op, reference string) error
}

func (b *brokenJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	if b.begin != nil {
		return b.begin(b.memoryJournal, ctx, i)
	}
	return b.memoryJournal.Begin(ctx, i)
}

func (b *brokenJournal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	if b.end != nil {
		return b.end(b.memoryJournal, ctx, i, r)
	}
	return b.memoryJournal.End(ctx, i, r)
}

func (b *brokenJournal) Look(_ context.Context, op, reference string) error {
	if b.look != nil {
		return b.look(b.memoryJournal, op, reference)
	}
	return b.at(op, reference)
}

// at is what a Looker returns.
func (m *memoryJournal) at(op, reference string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[[2]string{op, reference}]
	if r == nil || r.result != nil && !r.result.Final && (r.result.Outcome == cardwire.OutcomeRefused || r.result.Outcome == cardwire.OutcomeNotSent) {
		return nil
	}
	return r.duplicate()
}

// edited is a duplicate that was changed on its way.
func edited(err error, edit func(*cardwire.DuplicateIntent)) error {
	var d *cardwire.DuplicateIntent
	if errors.As(err, &d) {
		edit(d)
	}
	return err
}

var brokenJournals = map[string]struct {
	fails   string // the subtest that notices
	journal brokenJournal
}{
	"forgets intents": {"a_reference_is_begun_once", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		m.mu.Lock()
		clear(m.records)
		m.mu.Unlock()
		return m.Begin(ctx, i)
	}}},
	"takes all operations for one": {"references_are_compared", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		i.Op = ""
		return m.Begin(ctx, i)
	}}},
	"forgets service IDs": {"executed_is_final", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		return edited(m.Begin(ctx, i), func(d *cardwire.DuplicateIntent) { d.ServiceID = "" })
	}}},
	"takes unknown for not sent": {"unknown_blocks", brokenJournal{end: func(m *memoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
		if r.Outcome == cardwire.OutcomeUnknown {
			r.Outcome = cardwire.OutcomeNotSent
		}
		return m.End(ctx, i, r)
	}}},
	"closes every refusal": {"what_did_not_happen", brokenJournal{end: func(m *memoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
		r.Final = true
		return m.End(ctx, i, r)
	}}},
	"closes nothing": {"a_final_result", brokenJournal{end: func(m *memoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
		r.Final = false
		return m.End(ctx, i, r)
	}}},
	"compares no bodies": {"another_body", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		i.BodySHA256 = ""
		return m.Begin(ctx, i)
	}}},
	"never says in progress": {"a_call_is_in_progress", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		return edited(m.Begin(ctx, i), func(d *cardwire.DuplicateIntent) { d.InProgress, d.Remaining = false, 0 })
	}}},
	"always says in progress": {"a_call_is_in_progress", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		return edited(m.Begin(ctx, i), func(d *cardwire.DuplicateIntent) { d.InProgress, d.Remaining = true, 1 })
	}}},
	"takes every intent for unique": {"intents_that_are_not_unique", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		i.Unique = true
		return m.Begin(ctx, i)
	}}},
	"fails what it was told before": {"a_result_that_is_reported_twice", brokenJournal{end: func(m *memoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
		m.mu.Lock()
		record := m.records[[2]string{i.Op, i.Reference}]
		m.mu.Unlock()
		if record != nil && record.result != nil {
			return errors.New("told before")
		}
		return m.End(ctx, i, r)
	}}},
	"heeds no context": {"a_context_that_is_done", brokenJournal{begin: func(m *memoryJournal, ctx context.Context, i cardwire.Intent) error {
		return m.Begin(context.WithoutCancel(ctx), i)
	}}},
	"looks at nothing": {"looking_changes_nothing", brokenJournal{look: func(*memoryJournal, string, string) error { return nil }}},
	"begins what it looks at": {"looking_changes_nothing", brokenJournal{look: func(m *memoryJournal, op, reference string) error {
		return m.Begin(context.Background(), cardwire.Intent{Op: op, Reference: reference, Unique: true})
	}}},
}

// TestABrokenJournal tests one journal in its process, where it fails, and all of them
// in the process that counts.
func TestABrokenJournal(t *testing.T) {
	if name := os.Getenv(brokenVariable); name != "" {
		broken := brokenJournals[name].journal
		cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal {
			broken := broken
			broken.memoryJournal = newMemoryJournal()
			return &broken
		})
		return
	}
	t.Parallel()
	for name, tc := range brokenJournals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestABrokenJournal$", "-test.v")
			command.Env = append(os.Environ(), brokenVariable+"="+name)
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", output)
			assert.Contains(t, string(output), "--- FAIL: TestABrokenJournal/"+tc.fails, "%s", output)
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return &brokenJournal{memoryJournal: newMemoryJournal()} })
	})
}
