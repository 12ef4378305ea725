package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// Caller is a client under test.
type Caller interface {
	// Call has the order executed by the service at the base URL. The error is
	// looked at only to see whether the deadline ended the call.
	Call(ctx context.Context, base string, o Order) (Verdict, error)
	// Close lets go of all connections.
	Close()
}

// Cardwire calls with the cardwire client, one for each base URL.
type Cardwire struct {
	// Doer carries the requests; nil: the client's own connections. Each call comes after
	// a read that leaves an idle connection.
	Doer *http.Client

	mu      sync.Mutex
	clients map[string]*cardwire.Client
}

// Call makes the call that the order's Op names.
func (c *Cardwire) Call(ctx context.Context, base string, o Order) (Verdict, error) {
	client, err := c.client(base)
	if err != nil {
		return Unknown, err
	}
	if c.Doer != nil {
		read, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		_, _ = client.CardCapacity(read, cardwire.WithoutRetry()) //nolint:contextcheck // no trace hears of it
		cancel()                                                  // where it fails, nothing idles
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
	if c.Doer != nil {
		c.Doer.CloseIdleConnections()
	}
}

// client retries without long waits, so that even a hurried call retries whatever the
// client thinks may be retried.
func (c *Cardwire) client(base string) (*cardwire.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.clients[base]; client != nil {
		return client, nil
	}
	policy := cardwire.DefaultRetryPolicy()
	policy.MinDelay, policy.MaxDelay = time.Millisecond, 10*time.Millisecond
	opts := []cardwire.Option{cardwire.WithRetry(policy)}
	if c.Doer != nil {
		opts = append(opts, cardwire.WithHTTPClient(c.Doer))
	}
	client, err := cardwire.New(base, "chaos-key", opts...)
	if err != nil {
		return nil, err
	}
	if c.clients == nil {
		c.clients = map[string]*cardwire.Client{}
	}
	c.clients[base] = client
	return client, nil
}

func send(ctx context.Context, client *cardwire.Client, o Order) (err error) {
	switch o.Op {
	case "CreateTransfer":
		_, err = client.CreateTransfer(ctx, cardwire.TransferParams{
			MerchantOrderNo: o.Reference, PayoutCurrency: "EUR", TransferType: cardwire.TransferTypeC2C,
			PayoutMethod: cardwire.PayoutMethodBankTransfer, TransferAmount: decimal.New(1050, -2),
			SenderFirstName: "Ada", SenderLastName: "Example", SenderCountry: "DE",
			ReceiverNativeFirstName: "Bo", ReceiverNativeLastName: "Example", ReceiverBankAccountNumber: "DE00",
		})
	case "FreezeCard":
		_, err = client.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: "card-1", ClientTransactionID: o.Reference})
	case "CancelOperation":
		err = client.CancelOperation(ctx, o.Reference)
	case "RetryOperation":
		err = client.RetryOperation(ctx, o.Reference)
	case "UploadImage":
		_, err = client.UploadImage(ctx, cardwire.ImageBytes(o.Reference+".png", []byte("\x89PNG\r\n\x1a\nimage")))
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
	return Verdict(failure.Outcome.String())
}

// other posts transfers as most programs do.
type other struct {
	client *http.Client
	idle   func() // closes idle connections, which go-retryablehttp's client does not
	key    bool   // send an Idempotency-Key, after a read that leaves its connection idle
}

// Retrying changes nothing of go-retryablehttp but the waits, which would
// otherwise be longer than the deadlines here, and its log.
func Retrying() Caller {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryWaitMin, c.RetryWaitMax = time.Millisecond, 10*time.Millisecond
	return &other{client: c.StandardClient(), idle: c.HTTPClient.CloseIdleConnections}
}

// Idempotent follows no redirects: whatever is sent twice, net/http sends
// again because of the header.
func Idempotent() Caller {
	c := &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &other{client: c, idle: c.CloseIdleConnections, key: true}
}

func (c *other) Close() { c.idle() }

func (c *other) Call(ctx context.Context, base string, o Order) (Verdict, error) {
	if c.key {
		_, _ = c.do(ctx, http.MethodGet, base+"/account/capacity", "", "") // leaves an idle connection, if it can
	}
	body := `{"merchantOrderNo":"` + o.Reference + `","payoutCurrency":"EUR","transferAmount":"10.50"}`
	text, err := c.do(ctx, http.MethodPost, base+"/remittance/transfer", body, o.Reference)
	if err != nil {
		return Refused, err
	}
	var envelope struct{ Code int }
	if err := json.Unmarshal(bytes.TrimSpace(text), &envelope); err != nil {
		return Refused, err
	}
	if envelope.Code != http.StatusOK {
		return Refused, errors.New("the code is no success")
	}
	return Success, nil
}

func (c *other) do(ctx context.Context, method, address, body, key string) ([]byte, error) {
	// NewRequest sets GetBody for a *strings.Reader.
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key && key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	// More than this no client needs; the bomb would take minutes otherwise.
	return io.ReadAll(io.LimitReader(resp.Body, 64<<10))
}
