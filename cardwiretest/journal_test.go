package cardwiretest_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return journal.NewMemory() })
}

// action is a call of a journal.
type action struct {
	method string
	intent cardwire.Intent
	result cardwire.IntentResult
	found  journal.Resolution
	do     func(context.Context, *action) error // of a right journal
}

// brokenJournal breaks one rule.
type brokenJournal struct {
	right  *journal.Memory
	breaks func(context.Context, *action) error
}

func (b brokenJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	return b.breaks(ctx, &action{method: "Begin", intent: i, do: func(ctx context.Context, a *action) error {
		return b.right.Begin(ctx, a.intent)
	}})
}

func (b brokenJournal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	return b.breaks(ctx, &action{method: "End", intent: i, result: r, do: func(ctx context.Context, a *action) error {
		return b.right.End(ctx, a.intent, a.result)
	}})
}

func (b brokenJournal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	return b.breaks(ctx, &action{method: "Void", intent: i, do: func(ctx context.Context, a *action) error {
		return b.right.Void(ctx, a.intent, by, note)
	}})
}

func (b brokenJournal) Reserve(ctx context.Context, i cardwire.Intent) error {
	return b.breaks(ctx, &action{method: "Reserve", intent: i, do: func(ctx context.Context, a *action) error {
		return b.right.Reserve(ctx, a.intent)
	}})
}

func (b brokenJournal) Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error {
	resolve := func(ctx context.Context, a *action) error { return b.right.Resolve(ctx, a.intent, a.found) }
	return b.breaks(ctx, &action{method: "Resolve", intent: i, found: found, do: resolve})
}

// edits is a journal that gets something else from the method.
func edits(method string, edit func(*action)) func(context.Context, *action) error {
	return func(ctx context.Context, a *action) error {
		if a.method == method {
			edit(a)
		}
		return a.do(ctx, a)
	}
}

// editsDuplicate is a journal whose Begin returns another refusal.
func editsDuplicate(edit func(*cardwire.DuplicateIntent)) func(context.Context, *action) error {
	return func(ctx context.Context, a *action) error {
		err := a.do(ctx, a)
		if d, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok && a.method == "Begin" {
			edit(d)
		}
		return err
	}
}

// otherCall is about the call b.
func otherCall(a *action) { a.intent.Call = a.intent.Call[:len(a.intent.Call)-1] + "b" }

var brokenJournals = map[string]struct {
	fails  string // a subtest that notices
	breaks func(context.Context, *action) error
}{
	"all operations are one":  {"references_are_compared", edits("Begin", func(a *action) { a.intent.Op = "" })},
	"no body differs":         {"executed", edits("Begin", func(a *action) { a.intent.BodySHA256 = "" })},
	"all services are one":    {"a_journal_belongs", edits("Begin", func(a *action) { a.intent.Service = "" })},
	"all accounts are one":    {"a_journal_belongs_to_one_account", edits("Begin", func(a *action) { a.intent.Account = "" })},
	"any operation is closed": {"an_operation", edits("Void", func(a *action) { a.intent.Call = "client" })},
	"numbers are forgotten":   {"executed", editsDuplicate(func(d *cardwire.DuplicateIntent) { d.ServiceID = "" })},
	"never in progress": {"open_before_SendBy", editsDuplicate(func(d *cardwire.DuplicateIntent) {
		d.InProgress, d.Remaining = false, 0
	})},
	"always in progress": {"unknown", editsDuplicate(func(d *cardwire.DuplicateIntent) {
		d.InProgress, d.Remaining = true, 1
	})},
	"unknown is not sent": {"unknown", edits("End", func(a *action) {
		if a.result.Outcome == cardwire.OutcomeUnknown {
			a.result.Outcome = cardwire.OutcomeNotSent
		}
	})},
	"every refusal is final": {"refused", edits("End", func(a *action) { a.result.Final = true })},
	"no refusal is final":    {"closed_by_a_final", edits("End", func(a *action) { a.result.Final = false })},
	"contradictions are kept quiet": {"executed_twice", func(ctx context.Context, a *action) error {
		err := a.do(ctx, a)
		if a.method == "End" {
			return ctx.Err()
		}
		return err
	}},
	"results are lost": {"refused", func(ctx context.Context, a *action) error {
		if a.method == "End" && a.result.Outcome != cardwire.OutcomeExecuted {
			return nil
		}
		return a.do(ctx, a)
	}},
	"a canceled Begin counts": {"a_context_that_is_done", func(ctx context.Context, a *action) error {
		if a.method == "Begin" {
			return errors.Join(a.do(context.WithoutCancel(ctx), a), ctx.Err())
		}
		return a.do(ctx, a)
	}},
	"nothing is closed": {"voided", func(ctx context.Context, a *action) error {
		if a.method == "Void" {
			return nil
		}
		return a.do(ctx, a)
	}},
	"nothing is reserved": {"reserved:_nothing_has", func(ctx context.Context, a *action) error {
		if a.method == "Reserve" {
			return nil
		}
		return a.do(ctx, a)
	}},
	"reserved is of any body": {"reserved:_closed_by_its", edits("Void", func(a *action) { a.intent.BodySHA256 = "00" })},
	"an earlier denial undoes executed": {"asked_before", edits("Resolve", func(a *action) {
		if a.found.Outcome != cardwire.OutcomeExecuted && !a.found.AsOf.Before(a.intent.SettledBy) {
			a.found.AsOf = time.Now()
		}
	})},
	"a denial is of any call": {"a_denial_is_of_one_call", edits("Resolve", func(a *action) {
		if a.found.Outcome == cardwire.OutcomeRefused {
			otherCall(a)
		}
	})},
	"no body is another body": {"of_a_number_that_had_no_body", edits("Void", func(a *action) {
		a.intent.BodySHA256 = cmp.Or(a.intent.BodySHA256, "00")
	})},
	"settled when the later call is": {"a_person:_before_the_earlier", edits("End", func(a *action) {
		a.intent.SettledBy = time.Time{}
	})},
	"a result of another service is lost": {"a_journal_belongs", func(ctx context.Context, a *action) error {
		if a.method == "End" && a.intent.Service != "https://api.example.com/api/v1" {
			return errors.New("another service")
		}
		return a.do(ctx, a)
	}},
	"an earlier look is believed": {"a_person:_as_of_an_earlier_look", edits("Resolve", func(a *action) {
		if a.found.AsOf.Before(a.intent.SettledBy) && !a.found.AsOf.IsZero() {
			a.found.AsOf = a.intent.SettledBy
		}
	})},
}

func newBroken(name string) cardwire.Journal {
	return brokenJournal{journal.NewMemory(), brokenJournals[name].breaks}
}

// TestABrokenJournal tests all of them in a process of their own, where they fail.
func TestABrokenJournal(t *testing.T) {
	const broken = "CARDWIRE_TEST_BROKEN_JOURNALS"
	if os.Getenv(broken) != "" {
		for name := range brokenJournals {
			t.Run(name, func(t *testing.T) {
				cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return newBroken(name) })
			})
		}
		return
	}
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestABrokenJournal$", "-test.v")
	command.Env = append(os.Environ(), broken+"=1")
	output, err := command.CombinedOutput()
	require.Error(t, err)
	for name, tc := range brokenJournals {
		failure := "--- FAIL: TestABrokenJournal/" + strings.ReplaceAll(name, " ", "_") + "/" + tc.fails
		assert.True(t, strings.Contains(string(output), failure), "%s is not in\n%s", failure, output)
	}
}
