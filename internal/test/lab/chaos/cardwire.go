package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// Cardwire calls with the cardwire client, one for each base URL.
type Cardwire struct {
	mu      sync.Mutex
	clients map[string]*cardwire.Client
}

// Call makes the call that the order's Op names.
func (c *Cardwire) Call(ctx context.Context, base string, o Order) (Verdict, error) {
	client, err := c.client(base)
	if err != nil {
		return Unknown, err
	}
	err = send(ctx, client, o)
	return verdictOf(err), err
}

// Close closes what idles; writes keep nothing open.
func (c *Cardwire) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

func (c *Cardwire) client(base string) (*cardwire.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.clients[base]; client != nil {
		return client, nil
	}
	client, err := cardwire.New(base, "chaos-key", quickRetries())
	if err != nil {
		return nil, err
	}
	if c.clients == nil {
		c.clients = map[string]*cardwire.Client{}
	}
	c.clients[base] = client
	return client, nil
}

// quickRetries makes the waits between retries short, so that even a hurried call
// retries whatever the client thinks may be retried.
func quickRetries() cardwire.Option {
	policy := cardwire.DefaultRetryPolicy()
	policy.MinDelay, policy.MaxDelay = time.Millisecond, 10*time.Millisecond
	return cardwire.WithRetry(policy)
}

func send(ctx context.Context, client *cardwire.Client, o Order, opts ...cardwire.CallOption) (err error) {
	switch o.Op {
	case "CreateTransfer":
		_, err = client.CreateTransfer(ctx, cardwire.TransferParams{
			MerchantOrderNo: o.Reference, PayoutCurrency: "EUR", TransferType: cardwire.TransferTypeC2C,
			PayoutMethod: cardwire.PayoutMethodBankTransfer, TransferAmount: decimal.New(1050, -2),
			SenderFirstName: "Ada", SenderLastName: "Example", SenderCountry: "DE",
			ReceiverNativeFirstName: "Bo", ReceiverNativeLastName: "Example", ReceiverBankAccountNumber: "DE00",
		}, opts...)
	case "FreezeCard":
		_, err = client.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: o.Reference}, opts...)
	case "CancelOperation":
		err = client.CancelOperation(ctx, o.Reference, opts...)
	case "RetryOperation":
		err = client.RetryOperation(ctx, o.Reference, opts...)
	case "UploadImage":
		_, err = client.UploadImage(ctx, cardwire.ImageBytes(o.Reference+".png", []byte("\x89PNG\r\n\x1a\nimage")), opts...)
	default:
		err = fmt.Errorf("no operation is called %q", o.Op)
	}
	return err
}

// verdictOf reads the outcome. An error that has none decides nothing.
func verdictOf(err error) Verdict {
	var failure *cardwire.Error
	switch {
	case err == nil:
		return Success
	case !errors.As(err, &failure):
		return Unknown
	}
	switch failure.Outcome {
	case cardwire.OutcomeNotSent:
		return NotSent
	case cardwire.OutcomeRefused:
		return Refused
	case cardwire.OutcomeExecuted:
		return Executed
	}
	return Unknown
}
