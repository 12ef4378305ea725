// Package mocking is a small part of a merchant's program, and shows in its tests
// three ways to test what is built on package cardwire: a stub of an interface of
// one's own, a mock of HTTP, and the fake service of package cardwiretest.
package mocking

import (
	"context"
	"errors"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// Transfers is what this package needs of a *cardwire.Client: an interface belongs to
// the one who calls it, and has the methods that are called.
type Transfers interface {
	CreateTransfer(context.Context, cardwire.TransferParams, ...cardwire.CallOption) (*cardwire.Transfer, error)
}

// State is what the books are to say of a refund.
type State string

// The states of a refund.
const (
	// Pending means that the refund is still to be sent, under its order number.
	Pending State = "pending"
	// Accepted means that the service has accepted the transfer, not that the money
	// has arrived.
	Accepted State = "accepted"
	// Failed means that nothing happened and nothing will.
	Failed State = "failed"
	// Unresolved means that it may have happened: the service has to be asked.
	Unresolved State = "unresolved"
)

// Refund pays money back under an order number that the books have before, and returns what
// they are to say afterwards: what follows from NextStep. serviceNo is the service's number of
// the transfer; "": not known. package payouts keeps such books.
func Refund(
	ctx context.Context, t Transfers, orderNo string, amount decimal.Decimal, currency, account string,
) (state State, serviceNo string, err error) {
	transfer, err := t.CreateTransfer(ctx, cardwire.TransferParams{
		MerchantOrderNo:           orderNo,
		PayoutCurrency:            currency,
		TransferType:              cardwire.TransferTypeC2C,
		PayoutMethod:              cardwire.PayoutMethodBankTransfer,
		TransferAmount:            amount,
		ReceiverBankAccountNumber: account,
	})
	switch cardwire.NextStep(err) {
	case cardwire.StepDone: // by this call or by one before
		if transfer != nil {
			return Accepted, transfer.APIOrderNo, nil
		}
		if e, failed := errors.AsType[*cardwire.Error](err); failed {
			serviceNo = e.ServiceID
		}
		return Accepted, serviceNo, nil
	case cardwire.StepRetry, cardwire.StepWait: // nothing happened, or another call is in progress
		return Pending, "", err
	case cardwire.StepFail: // nothing happened, and nothing will
		return Failed, "", err
	}
	return Unresolved, "", err
}
