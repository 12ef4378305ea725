package docs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// The functions below have the Go code of the README, so that it is compiled and formatted.
// These names stand for what its reader has in a program already.
var (
	ctx        context.Context
	client     *cardwire.Client
	params     cardwire.TransferParams
	order      struct{ Number string }
	resumeFrom int
	t          *testing.T
)

func refund(context.Context, *cardwire.Client, struct{ Number string }) error { return nil }
func markSubmitted(struct{ Number string }, *cardwire.Transfer) error         { return nil }
func markFailed(struct{ Number string }, error) error                         { return nil }
func sendLater(struct{ Number string }, error) error                          { return nil }
func lookLater(struct{ Number string }, error) error                          { return nil }
func reconcile(struct{ Number string }, error) error                          { return nil }
func report(error)                                                            {}

func _() error {
	client, err := cardwire.NewFromEnv() // share it: it is safe for concurrent use
	if err != nil {
		return err
	}
	for card, err := range client.AllCards(ctx, cardwire.ListCardsParams{Page: resumeFrom}, cardwire.WithPrefetch(4)) {
		if errors.Is(err, cardwire.ErrElements) {
			report(err) // this card is unreadable, and the others are not
			continue
		}
		if err != nil {
			return err // Error.Page is where to resume
		}
		fmt.Println(card.ID, card.Number, card.Available, card.Currency)
	}
	return nil
}

func _() error {
	params.TransferAmount = decimal.RequireFromString("10.50")
	if err := params.Validate(); err != nil {
		return err // before the order is stored
	}
	transfer, err := client.CreateTransfer(ctx, params)
	switch cardwire.NextStep(err) {
	case cardwire.StepDone:
		return markSubmitted(order, transfer) // nil if an earlier call executed it, or if its response is unreadable
	case cardwire.StepRetry:
		return sendLater(order, err) // nothing was executed: retry with the same number
	case cardwire.StepFail:
		return markFailed(order, err) // nothing was executed, and nothing will be
	case cardwire.StepWait:
		return lookLater(order, err) // another call with the number is in progress
	default: // StepReconcile
		return reconcile(order, err) // it may have happened: ask the service first
	}
}

func _() error {
	client, service := cardwiretest.NewClient(t)
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	if err := refund(ctx, client, order); cardwire.NextStep(err) != cardwire.StepReconcile {
		t.Error("the refund was executed, but its response was lost:", err)
	}
	return nil
}
