package cardwiretest_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMemoryJournal(t *testing.T) {
	t.Parallel()
	cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return cardwire.NewMemoryJournal() })
}

type memory = cardwire.MemoryJournal

// brokenJournal breaks one rule: what is not nil stands in for the method.
type brokenJournal struct {
	*cardwire.MemoryJournal

	begin   func(*cardwire.MemoryJournal, context.Context, cardwire.Intent) error
	end     func(*cardwire.MemoryJournal, context.Context, cardwire.Intent, cardwire.IntentResult) error
	void    func(*cardwire.MemoryJournal, context.Context, cardwire.Intent) error
	resolve func(*cardwire.MemoryJournal, context.Context, cardwire.Intent, cardwire.Resolution) error
}

func (b *brokenJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	if b.begin != nil {
		return b.begin(b.MemoryJournal, ctx, i)
	}
	return b.MemoryJournal.Begin(ctx, i)
}

func (b *brokenJournal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	if b.end != nil {
		return b.end(b.MemoryJournal, ctx, i, r)
	}
	return b.MemoryJournal.End(ctx, i, r)
}

func (b *brokenJournal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	if b.void != nil {
		return b.void(b.MemoryJournal, ctx, i)
	}
	return b.MemoryJournal.Void(ctx, i, by, note)
}

func (b *brokenJournal) Resolve(ctx context.Context, i cardwire.Intent, found cardwire.Resolution) error {
	if b.resolve != nil {
		return b.resolve(b.MemoryJournal, ctx, i, found)
	}
	return b.MemoryJournal.Resolve(ctx, i, found)
}

// editsIntent is a Begin of another intent.
func editsIntent(edit func(*cardwire.Intent)) brokenJournal {
	return brokenJournal{begin: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent) error {
		edit(&i)
		return m.Begin(ctx, i)
	}}
}

// editsDuplicate is a Begin whose refusal says something else.
func editsDuplicate(edit func(*cardwire.DuplicateIntent)) brokenJournal {
	return brokenJournal{begin: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent) error {
		err := m.Begin(ctx, i)
		if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok {
			edit(d)
		}
		return err
	}}
}

// editsResult is an End of another result.
func editsResult(edit func(*cardwire.IntentResult)) brokenJournal {
	return brokenJournal{end: func(m *memory, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
		edit(&r)
		return m.End(ctx, i, r)
	}}
}

// editsResolution is a Resolve of something else.
func editsResolution(edit func(*cardwire.Intent, *cardwire.Resolution)) brokenJournal {
	return brokenJournal{resolve: func(m *memory, ctx context.Context, i cardwire.Intent, r cardwire.Resolution) error {
		edit(&i, &r)
		return m.Resolve(ctx, i, r)
	}}
}

var brokenJournals = map[string]struct {
	fails   string // a subtest that notices
	journal brokenJournal
}{
	"all operations are one":   {"references_are_compared", editsIntent(func(i *cardwire.Intent) { i.Op = "" })},
	"no body differs":          {"executed", editsIntent(func(i *cardwire.Intent) { i.BodySHA256 = "" })},
	"all services are one":     {"a_journal_belongs", editsIntent(func(i *cardwire.Intent) { i.Service = "" })},
	"everything is repeatable": {"executed", editsIntent(func(i *cardwire.Intent) { i.Repeatable = true })},
	"nothing is repeatable": {"repeatable:_executed", editsIntent(func(i *cardwire.Intent) {
		i.Repeatable = false
	})},
	"settled when sent": {"repeatable:_open_after_SendBy", editsIntent(func(i *cardwire.Intent) {
		i.SettledBy = i.SendBy
	})},
	"numbers are forgotten": {"executed", editsDuplicate(func(d *cardwire.DuplicateIntent) { d.ServiceID = "" })},
	"never in progress": {"open_before_SendBy", editsDuplicate(func(d *cardwire.DuplicateIntent) {
		d.InProgress, d.Remaining = false, 0
	})},
	"always in progress": {"unknown", editsDuplicate(func(d *cardwire.DuplicateIntent) {
		d.InProgress, d.Remaining = true, 1
	})},
	"unknown is not sent": {"unknown", editsResult(func(r *cardwire.IntentResult) {
		if r.Outcome == cardwire.OutcomeUnknown {
			r.Outcome = cardwire.OutcomeNotSent
		}
	})},
	"every refusal is final": {"refused", editsResult(func(r *cardwire.IntentResult) { r.Final = true })},
	"no refusal is final":    {"closed_by_a_final", editsResult(func(r *cardwire.IntentResult) { r.Final = false })},
	"contradictions are kept quiet": {"executed_twice", brokenJournal{
		end: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
			_ = m.End(ctx, i, r)
			return ctx.Err()
		},
	}},
	"results are lost": {"refused", brokenJournal{
		end: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
			if r.Outcome == cardwire.OutcomeExecuted {
				return m.End(ctx, i, r)
			}
			return nil
		},
	}},
	"a canceled Begin counts": {"a_context_that_is_done", brokenJournal{
		begin: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent) error {
			return errors.Join(m.Begin(context.WithoutCancel(ctx), i), ctx.Err())
		},
	}},
	"nothing is closed": {"voided", brokenJournal{
		void: func(*cardwire.MemoryJournal, context.Context, cardwire.Intent) error { return nil },
	}},
	"a denial is of any call": {"a_denial_is_of_one_call", editsResolution(
		func(i *cardwire.Intent, r *cardwire.Resolution) {
			if r.Outcome == cardwire.OutcomeRefused {
				i.Call = i.Call[:len(i.Call)-1] + "b"
			}
		})},
	"a repeatable call is executed by another": {"a_repeatable_call", editsResolution(
		func(i *cardwire.Intent, r *cardwire.Resolution) {
			if i.Repeatable {
				i.Call = i.Call[:len(i.Call)-1] + "b"
			}
		})},
	"no body is another body": {"of_a_number_that_had_no_body", brokenJournal{
		void: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent) error {
			i.BodySHA256 = cmp.Or(i.BodySHA256, "00")
			return m.Void(ctx, i, "Ada", "canceled")
		},
	}},
	"settled when the later call is": {"a_person:_before_the_earlier", brokenJournal{
		end: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
			i.SettledBy = time.Time{}
			return m.End(ctx, i, r)
		},
	}},
	"a result of another service is lost": {"a_journal_belongs", brokenJournal{
		end: func(m *cardwire.MemoryJournal, ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
			if i.Service != "https://api.example.com/api/v1" {
				return errors.New("another service")
			}
			return m.End(ctx, i, r)
		},
	}},
	"an earlier look is believed": {"a_person:_as_of_an_earlier_look", editsResolution(
		func(i *cardwire.Intent, r *cardwire.Resolution) {
			if r.AsOf.Before(i.SettledBy) && !r.AsOf.IsZero() {
				r.AsOf = i.SettledBy
			}
		})},
}

func newBroken(name string) cardwire.Journal {
	j := brokenJournals[name].journal
	j.MemoryJournal = cardwire.NewMemoryJournal()
	return &j
}

// broken names the journal that TestABrokenJournal tests in a process of its own.
const broken = "CARDWIRE_TEST_BROKEN_JOURNAL"

// TestABrokenJournal tests one journal in its process, where it fails, and all of them
// in the process that counts.
func TestABrokenJournal(t *testing.T) {
	if name := os.Getenv(broken); name != "" {
		cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return newBroken(name) })
		return
	}
	t.Parallel()
	for name, tc := range brokenJournals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestABrokenJournal$", "-test.v")
			command.Env = append(os.Environ(), broken+"="+name)
			output, err := command.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "%s", output)
			assert.Contains(t, string(output), "--- FAIL: TestABrokenJournal/"+tc.fails, "%s", output)
		})
	}
}
