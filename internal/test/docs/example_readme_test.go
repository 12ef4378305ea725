package docs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// The functions below have the Go code of the README, so that it is compiled and formatted.
// These names stand for what its reader has in a program already.
var (
	ctx        context.Context
	order      struct{ Number string }
	resumeFrom int
	t          *testing.T
)

func refund(context.Context, *cardwire.Client, struct{ Number string }) error { return nil }
func report(error)                                                            {}
func use(cardwire.Card)                                                       {}

func _() error {
	client, err := cardwire.NewFromEnv() // CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY; share it
	if err != nil {
		return err
	}
	card, err := client.GetCard(ctx, "c-1")
	if err != nil {
		return err // errors.Is(err, cardwire.ErrNotFound) if there is none
	}
	fmt.Println(card.Number, card.Available, card.Currency)
	for card, err := range client.AllCards(ctx, cardwire.ListCardsParams{Page: resumeFrom}, cardwire.WithPrefetch(4)) {
		if errors.Is(err, cardwire.ErrElements) {
			report(err) // this card is unreadable, and the others are not
			continue
		}
		if err != nil {
			return err // Error.Page is where to resume
		}
		use(card)
	}
	return nil
}

func _() error {
	client, service := cardwiretest.NewClient(t)
	service.Fail(cardwire.OpCreateTransfer, cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	err := refund(ctx, client, order) // executed, and its response lost: NextStep(err) is StepReconcile
	return err
}
