package cardwiretest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cardwire/cardwire-go"
)

// TestJournal tests the rules that every [cardwire.Journal] must keep, so that
// nothing is sent twice. It is for authors of journals. Each subtest uses a journal of
// its own, which open returns and which must be empty. A journal that is also a
// [cardwire.Looker] is tested as one.
//
// TestJournal cannot test what a journal loses when its process or its database dies:
// the intent must be on durable storage before Begin returns.
func TestJournal(t *testing.T, open func(t *testing.T) cardwire.Journal) {
	t.Helper()
	for name, test := range map[string]func(*journalTest){
		"a reference is begun once":                     (*journalTest).begunOnce,
		"references are compared by operation and byte": (*journalTest).references,
		"executed is final":                             (*journalTest).executed,
		"unknown blocks":                                (*journalTest).unknown,
		"what did not happen may be begun again":        (*journalTest).again,
		"a final result closes the reference":           (*journalTest).final,
		"another body is refused":                       (*journalTest).otherBody,
		"a call is in progress until its SendBy":        (*journalTest).inProgress,
		"intents that are not unique":                   (*journalTest).notUnique,
		"a result that is reported twice":               (*journalTest).toldTwice,
		"a context that is done":                        (*journalTest).doneContext,
		"one of many concurrent Begins succeeds":        (*journalTest).atOnce,
		"one of many concurrent Begins after a refusal": (*journalTest).atOnceAgain,
		"looking changes nothing":                       (*journalTest).look,
	} {
		t.Run(name, func(t *testing.T) { test(&journalTest{t, open(t)}) })
	}
}

type journalTest struct {
	*testing.T

	journal cardwire.Journal
}

// transfer returns an intent as the client creates it.
func transfer(reference string) cardwire.Intent {
	now := time.Now()
	return cardwire.Intent{
		Op: "CreateTransfer", Reference: reference, BodySHA256: "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a",
		Summary: "10.00 EUR", Time: now, SendBy: now.Add(time.Hour), Unique: true,
	}
}

// The results of a Begin; any other error is shown as it is.
const (
	begun          = "begun"
	taken          = "taken, unknown"
	takenExecuted  = "taken, executed"
	closedRefused  = "taken, refused"
	closedNotSent  = "taken, not sent"
	otherBody      = "another body"
	otherBodyTaken = "another body, unknown"
	otherExecuted  = "another body, executed"
)

func kindOf(err error) string {
	var duplicate *cardwire.DuplicateIntent
	isDuplicate, isOther := errors.As(err, &duplicate), errors.Is(err, cardwire.ErrOtherBody)
	switch {
	case err == nil:
		return begun
	case isOther && isDuplicate:
		return "another body, " + duplicate.Outcome.String()
	case isOther:
		return otherBody
	case isDuplicate && errors.Is(err, cardwire.ErrDuplicateIntent):
		return "taken, " + duplicate.Outcome.String()
	}
	return err.Error()
}

// begins fails the test unless Begin returns what is wanted.
func (j *journalTest) begins(i cardwire.Intent, want string) *cardwire.DuplicateIntent {
	j.Helper()
	return j.check("Begin", j.journal.Begin(j.Context(), i), want)
}

func (j *journalTest) check(what string, err error, want string) *cardwire.DuplicateIntent {
	j.Helper()
	if got := kindOf(err); got != want {
		j.Fatalf("%s returned %q (%v), want %q", what, got, err, want)
	}
	var duplicate *cardwire.DuplicateIntent
	errors.As(err, &duplicate)
	return duplicate
}

func (j *journalTest) ends(i cardwire.Intent, r cardwire.IntentResult) {
	j.Helper()
	if err := j.journal.End(j.Context(), i, r); err != nil {
		j.Fatalf("End returned %v", err)
	}
}

func (j *journalTest) begunOnce() {
	first, second := transfer("order-1"), transfer("order-1")
	_ = j.begins(first, begun)
	_ = j.begins(second, taken)
	_ = j.begins(transfer("order-2"), begun)
}

func (j *journalTest) references() {
	freeze := transfer("order-1")
	freeze.Op = "FreezeCard"
	for _, i := range []cardwire.Intent{
		transfer("order-1"), freeze, transfer("Order-1"), transfer("order-1 "), transfer("order-10"), transfer("№ 1'; --"),
	} {
		_ = j.begins(i, begun)
	}
}

func (j *journalTest) executed() {
	i := transfer("order-1")
	_ = j.begins(i, begun)
	j.ends(i, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"})
	for range 2 {
		if d := j.begins(transfer("order-1"), takenExecuted); d.ServiceID != "T-1" || d.InProgress || d.Remaining != 0 {
			j.Fatalf("the DuplicateIntent is %+v, want ServiceID T-1, and it is not in progress", *d)
		}
	}
}

func (j *journalTest) unknown() {
	i := transfer("order-1")
	_ = j.begins(i, begun)
	j.ends(i, cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown})
	for range 2 {
		if d := j.begins(transfer(i.Reference), taken); d.InProgress {
			j.Fatal("the DuplicateIntent is in progress, though the call has ended")
		}
	}
}

// notHappened are the outcomes that prove that nothing happened.
var notHappened = []cardwire.Outcome{cardwire.OutcomeRefused, cardwire.OutcomeNotSent}

func (j *journalTest) again() {
	for n, outcome := range notHappened {
		reference := "order-" + strconv.Itoa(n)
		for range 3 {
			i := transfer(reference)
			_ = j.begins(i, begun)
			_ = j.begins(transfer(reference), taken)
			j.ends(i, cardwire.IntentResult{Outcome: outcome})
		}
		last := transfer(reference)
		_ = j.begins(last, begun)
		j.ends(last, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted})
		_ = j.begins(transfer(reference), takenExecuted)
	}
}

func (j *journalTest) final() {
	for n, outcome := range notHappened {
		i := transfer("order-" + strconv.Itoa(n))
		_ = j.begins(i, begun)
		j.ends(i, cardwire.IntentResult{Outcome: outcome, Final: true})
		for range 2 {
			_ = j.begins(transfer(i.Reference), []string{closedRefused, closedNotSent}[n])
		}
	}
}

func (j *journalTest) otherBody() {
	for n, step := range []struct {
		result *cardwire.IntentResult // nil: it has not ended
		want   string
	}{
		{nil, otherBodyTaken},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}, otherBodyTaken},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted}, otherExecuted},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}, otherBody},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}, otherBody},
	} {
		i := transfer("order-" + strconv.Itoa(n))
		_ = j.begins(i, begun)
		if step.result != nil {
			j.ends(i, *step.result)
		}
		other := transfer(i.Reference)
		other.BodySHA256 = "0" + i.BodySHA256[1:]
		_ = j.begins(other, step.want)
		_ = j.begins(other, step.want)
	}
}

func (j *journalTest) inProgress() {
	i := transfer("order-1")
	_ = j.begins(i, begun)
	d := j.begins(transfer("order-1"), taken)
	if !d.InProgress || d.Remaining <= 0 || d.Remaining > 2*time.Hour {
		j.Fatalf("the DuplicateIntent is %+v, want it in progress, with Remaining up to an hour", *d)
	}
	past := transfer("order-2")
	past.Time, past.SendBy = past.Time.Add(-time.Hour), past.Time.Add(-time.Minute)
	_ = j.begins(past, begun)
	if d := j.begins(transfer("order-2"), taken); d.InProgress || d.Remaining != 0 {
		j.Fatalf("the DuplicateIntent is %+v, want it no longer in progress: its SendBy has passed", *d)
	}
}

func (j *journalTest) notUnique() {
	var all []cardwire.Intent
	for n := range 3 {
		i := transfer("record-1")
		i.Op, i.Unique, i.Time = "CancelOperation", false, i.Time.Add(time.Duration(n))
		_ = j.begins(i, begun)
		all = append(all, i)
	}
	for n, i := range all {
		j.ends(i, cardwire.IntentResult{Outcome: []cardwire.Outcome{cardwire.OutcomeExecuted, cardwire.OutcomeUnknown, cardwire.OutcomeRefused}[n], Final: n == 2})
	}
	_ = j.begins(all[0], begun)
}

// toldTwice is for journals whose End is retried.
func (j *journalTest) toldTwice() {
	i := transfer("order-1")
	_ = j.begins(i, begun)
	for range 2 {
		j.ends(i, cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"})
	}
	_ = j.begins(transfer("order-1"), takenExecuted)
}

func (j *journalTest) doneContext() {
	i := transfer("order-1")
	_ = j.begins(i, begun)
	ctx, cancel := context.WithCancel(j.Context())
	cancel()
	if err := j.journal.Begin(ctx, transfer("order-2")); !errors.Is(err, context.Canceled) {
		j.Fatalf("Begin returned %v, want context.Canceled", err)
	}
	if err := j.journal.End(ctx, i, cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}); !errors.Is(err, context.Canceled) {
		j.Fatalf("End returned %v, want context.Canceled", err)
	}
	_ = j.begins(transfer("order-1"), taken)
	_ = j.begins(transfer("order-2"), begun)
}

func (j *journalTest) atOnce() {
	if won := j.race("order-1"); len(won) != 1 {
		j.Fatalf("%d of 64 Begins of one reference returned nil, want 1", len(won))
	}
}

func (j *journalTest) atOnceAgain() {
	for round := range 5 {
		won := j.race("order-1")
		if len(won) != 1 {
			j.Fatalf("round %d: %d of 64 Begins of one reference returned nil, want 1", round, len(won))
		}
		j.ends(won[0], cardwire.IntentResult{Outcome: cardwire.OutcomeRefused})
	}
}

// race begins a reference in 64 goroutines, and returns the intents that were begun.
func (j *journalTest) race(reference string) (won []cardwire.Intent) {
	var mu sync.Mutex
	var group sync.WaitGroup
	start := make(chan struct{})
	for n := range 64 {
		i := transfer(reference)
		i.Time = i.Time.Add(time.Duration(n))
		group.Go(func() {
			<-start
			err := j.journal.Begin(j.Context(), i)
			mu.Lock()
			defer mu.Unlock()
			if got := kindOf(err); got == begun {
				won = append(won, i)
			} else if got != taken {
				j.Errorf("Begin returned %q (%v), want %q or %q", got, err, begun, taken)
			}
		})
	}
	close(start)
	group.Wait()
	return won
}

func (j *journalTest) look() {
	looker, ok := j.journal.(cardwire.Looker)
	if !ok {
		j.Skip("the journal is not a cardwire.Looker")
	}
	for n, step := range []struct {
		result *cardwire.IntentResult // nil: it has not ended
		want   string
	}{
		{nil, taken},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeUnknown}, taken},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}, takenExecuted},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}, begun},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeNotSent}, begun},
		{&cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}, closedRefused},
	} {
		i := transfer("order-" + strconv.Itoa(n))
		_ = j.check("Look before Begin", looker.Look(j.Context(), i.Op, i.Reference), begun)
		_ = j.begins(i, begun)
		if step.result != nil {
			j.ends(i, *step.result)
		}
		for range 2 {
			d := j.check(fmt.Sprintf("Look at %s", i.Reference), looker.Look(j.Context(), i.Op, i.Reference), step.want)
			if step.want == takenExecuted && d.ServiceID != "T-1" {
				j.Fatalf("Look returned ServiceID %q, want T-1", d.ServiceID)
			}
		}
		_ = j.begins(transfer(i.Reference), step.want)
	}
}
