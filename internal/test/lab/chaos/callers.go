package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Other is a client that posts transfers as most programs do.
type Other struct {
	client *http.Client
	idle   func() // closes idle connections, which go-retryablehttp's client does not
	key    bool   // send an Idempotency-Key, after a read that leaves its connection idle
}

// Retrying changes nothing of go-retryablehttp but the waits, which would
// otherwise be longer than the deadlines here, and its log.
func Retrying() *Other {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryWaitMin, c.RetryWaitMax = time.Millisecond, 10*time.Millisecond
	return &Other{client: c.StandardClient(), idle: c.HTTPClient.CloseIdleConnections}
}

// Idempotent follows no redirects: whatever is sent twice, net/http sends
// again because of the header.
func Idempotent() *Other {
	c := &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Other{client: c, idle: c.CloseIdleConnections, key: true}
}

// Close closes all connections.
func (c *Other) Close() { c.idle() }

// Call has the order executed by the service at the base URL.
func (c *Other) Call(ctx context.Context, base string, o Order) (Verdict, error) {
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

func (c *Other) do(ctx context.Context, method, address, body, key string) ([]byte, error) {
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
	// No client needs more than this; decompressing the whole bomb would take minutes.
	return io.ReadAll(io.LimitReader(resp.Body, 64<<10))
}
