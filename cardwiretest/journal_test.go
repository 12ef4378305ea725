package cardwiretest_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

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

// skips is a journal to which the method does nothing.
func skips(method string) func(context.Context, *action) error {
	return func(ctx context.Context, a *action) error {
		if a.method == method {
			return nil
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
func otherCall(a *action) { a.intent.Call = a.intent.Call[:max(len(a.intent.Call)-1, 0)] + "b" }

// brokenJournals have a fault each.
var brokenJournals = map[string]func(context.Context, *action) error{
	"all operations are one":  edits("Begin", func(a *action) { a.intent.Op = "" }),
	"no body differs":         edits("Begin", func(a *action) { a.intent.BodySHA256 = "" }),
	"all services are one":    edits("Begin", func(a *action) { a.intent.Service = "" }),
	"all accounts are one":    edits("Begin", func(a *action) { a.intent.Account = "" }),
	"any operation is closed": edits("Void", func(a *action) { a.intent.Call = "client" }),
	"settled when sent":       edits("Begin", func(a *action) { a.intent.SettledBy = a.intent.SendBy }),
	"numbers are forgotten":   editsDuplicate(func(d *cardwire.DuplicateIntent) { d.ServiceID = "" }),
	"never in progress": editsDuplicate(func(d *cardwire.DuplicateIntent) {
		d.InProgress, d.Remaining = false, 0
	}),
	"always in progress": editsDuplicate(func(d *cardwire.DuplicateIntent) {
		d.InProgress, d.Remaining = true, 1
	}),
	"unknown is not sent": edits("End", func(a *action) {
		if a.result.Outcome == cardwire.OutcomeUnknown {
			a.result.Outcome = cardwire.OutcomeNotSent
		}
	}),
	"every refusal is final": edits("End", func(a *action) { a.result.Final = true }),
	"no refusal is final":    edits("End", func(a *action) { a.result.Final = false }),
	"contradictions are kept quiet": func(ctx context.Context, a *action) error {
		err := a.do(ctx, a)
		if a.method == "End" {
			return ctx.Err()
		}
		return err
	},
	"results are lost": func(ctx context.Context, a *action) error {
		if a.method == "End" && a.result.Outcome != cardwire.OutcomeExecuted {
			return nil
		}
		return a.do(ctx, a)
	},
	"a canceled Begin counts": func(ctx context.Context, a *action) error {
		if a.method == "Begin" {
			return errors.Join(a.do(context.WithoutCancel(ctx), a), ctx.Err())
		}
		return a.do(ctx, a)
	},
	"nothing is closed":       skips("Void"),
	"nothing is reserved":     skips("Reserve"),
	"reserved is of any body": edits("Void", func(a *action) { a.intent.BodySHA256 = "00" }),
	"an earlier denial undoes executed": edits("Resolve", func(a *action) {
		if a.found.Outcome != cardwire.OutcomeExecuted && !a.found.AsOf.Before(a.intent.SettledBy) {
			a.found.AsOf = time.Now()
		}
	}),
	"a denial is of any call": edits("Resolve", func(a *action) {
		if a.found.Outcome == cardwire.OutcomeRefused {
			otherCall(a)
		}
	}),
	"no body is another body": edits("Void", func(a *action) {
		a.intent.BodySHA256 = cmp.Or(a.intent.BodySHA256, "00")
	}),
	"settled when the later call is": edits("End", func(a *action) { a.intent.SettledBy = time.Time{} }),
	"a result of another service is lost": func(ctx context.Context, a *action) error {
		if a.method == "End" && a.intent.Service != "https://api.example.com/api/v1" {
			return errors.New("another service")
		}
		return a.do(ctx, a)
	},
	"an earlier look is believed": edits("Resolve", func(a *action) {
		if a.found.AsOf.Before(a.intent.SettledBy) && !a.found.AsOf.IsZero() {
			a.found.AsOf = a.intent.SettledBy
		}
	}),
}

func newBroken(name string) cardwire.Journal {
	return brokenJournal{journal.NewMemory(), brokenJournals[name]}
}

// Each fault is found, and nothing else is one.
func TestABrokenJournal(t *testing.T) {
	t.Parallel()
	for name := range brokenJournals {
		assert.NotEmpty(t, cardwiretest.JournalFlaw(t, newBroken(name)), name)
	}
}
