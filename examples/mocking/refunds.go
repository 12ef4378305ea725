// Package mocking is a small part of a merchant's program, and shows in its tests
// three ways to test what is built on package cardwire: a stub of an interface of
// one's own, a mock of HTTP, and the fake service of package cardwiretest.
package mocking

import (
	"context"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// Cards is what this package needs of a *cardwire.Client: an interface belongs to
// the one who calls it, and has the methods that are called.
type Cards interface {
	CreateTransfer(context.Context, cardwire.TransferParams, ...cardwire.CallOption) (*cardwire.Transfer, error)
	FreezeCard(context.Context, cardwire.FreezeCardParams, ...cardwire.CallOption) (*cardwire.CardOperation, error)
	GetCard(context.Context, string, ...cardwire.CallOption) (*cardwire.Card, error)
}

// State is what the books know of a refund.
type State string

// The states of a refund.
const (
	// Pending means that the refund is still to be sent, under its order number.
	Pending State = "pending"
	// Begun means that a try has begun. Where the program ended meanwhile, its outcome
	// is unknown: that is as good as Unresolved.
	Begun State = "begun"
	// Accepted means that the service has accepted the transfer, not that the money
	// has arrived.
	Accepted State = "accepted"
	// Failed means that nothing happened and nothing will: a corrected refund is
	// another one, with another order number.
	Failed State = "failed"
	// Unresolved means that it may have happened: the service has to be asked.
	Unresolved State = "unresolved"
)

// Refund is money that is to be given back.
type Refund struct {
	// ID is the merchant's identifier.
	ID string
	// Amount is in Currency, in whole units.
	Amount decimal.Decimal
	// Currency is the code of the currency that is paid out.
	Currency string
	// Account is the account that is paid to.
	Account string
}

// Books keep refunds, in a database as a rule. Books must be safe for concurrent
// use.
type Books interface {
	// Begin makes the refund Begun and returns its order number, which is made when
	// a refund is first seen and stays the same ever after. It returns an error
	// where the books have the refund in another state than Pending.
	Begin(ctx context.Context, r Refund) (orderNo string, err error)
	// End records the refund's state. serviceNo is the service's order number;
	// "": none was returned.
	End(ctx context.Context, r Refund, s State, serviceNo string) error
}

// Refunds gives money back, and stops cards.
type Refunds struct {
	// Cards is a *cardwire.Client.
	Cards Cards
	// Books are asked before anything is sent, and told afterwards.
	Books Books
}

// ErrUnresolved reports that a refund may have been paid. The service must be asked
// about the number in the books; it is never paid under another.
var ErrUnresolved = errors.New("the refund is unresolved")

// ErrNotBlocked reports that a freeze may have happened, and that the card was not
// seen to be blocked. It has to be looked at again.
var ErrNotBlocked = errors.New("the card is not known to be blocked")

// RefundByTransfer pays a refund, and then does what NextStep says. The order number
// is in the books before the first byte is sent, so that neither a crash nor a second
// try can pay it twice.
func (r *Refunds) RefundByTransfer(ctx context.Context, refund Refund) error {
	orderNo, err := r.Books.Begin(ctx, refund)
	if err != nil {
		return fmt.Errorf("refund %s: %w", refund.ID, err)
	}
	transfer, err := r.Cards.CreateTransfer(ctx, cardwire.TransferParams{
		MerchantOrderNo:           orderNo,
		PayoutCurrency:            refund.Currency,
		TransferType:              cardwire.TransferTypeC2C,
		PayoutMethod:              cardwire.PayoutMethodBankTransfer,
		TransferAmount:            refund.Amount,
		ReceiverBankAccountNumber: refund.Account,
	})

	// What is recorded must not be lost because the caller has gone.
	ctx = context.WithoutCancel(ctx)
	switch cardwire.NextStep(err) {
	case cardwire.StepDone: // by this call or by one before
		return r.Books.End(ctx, refund, Accepted, serviceNo(transfer, err))
	case cardwire.StepRetry: // nothing happened: the same number again, later
		return errors.Join(fmt.Errorf("refund %s: %w", refund.ID, err), r.Books.End(ctx, refund, Pending, ""))
	case cardwire.StepFail: // nothing happened, and nothing will
		return errors.Join(fmt.Errorf("refund %s: %w", refund.ID, err), r.Books.End(ctx, refund, Failed, ""))
	case cardwire.StepWait: // whoever made the call in progress records its result
		return fmt.Errorf("refund %s: %w", refund.ID, err)
	}
	return errors.Join(fmt.Errorf("refund %s: %w: %w", refund.ID, ErrUnresolved, err), r.Books.End(ctx, refund, Unresolved, ""))
}

// serviceNo is the service's number of a transfer that was executed; "": not known.
func serviceNo(t *cardwire.Transfer, err error) string {
	if t != nil {
		return t.APIOrderNo
	}
	if before, ok := errors.AsType[*cardwire.DuplicateIntent](err); ok {
		return before.ServiceID
	}
	return ""
}

// FreezeOnSuspicion freezes a card and reports whether it is blocked. The card proves
// that, not the response to the freeze: what was accepted may be carried out later or
// fail, and what was executed once may have been undone since. Where the
// freeze may have happened, the card is looked up. blocked is true only where it
// was seen; err is nil exactly then. caseID is the merchant's identifier of the
// suspicion, a UUID.
func (r *Refunds) FreezeOnSuspicion(ctx context.Context, cardID, caseID string) (blocked bool, err error) {
	_, err = r.Cards.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: cardID, ClientTransactionID: caseID})
	if step := cardwire.NextStep(err); step == cardwire.StepRetry || step == cardwire.StepFail {
		return false, fmt.Errorf("case %s: %w", caseID, err)
	}
	card, lookup := r.Cards.GetCard(ctx, cardID)
	switch {
	case lookup != nil:
		return false, fmt.Errorf("case %s: %w: %w", caseID, ErrNotBlocked, errors.Join(err, lookup))
	case card.Status.Blocked():
		return true, nil
	}
	// It may yet be frozen: the service may not have come to it.
	return false, fmt.Errorf("case %s: the card is %s: %w", caseID, card.Status, errors.Join(ErrNotBlocked, err))
}
