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
		c.warm(ctx, base)
	}
	body := `{"merchantOrderNo":"` + o.Reference + `","payoutCurrency":"EUR","transferAmount":"10.50"}`
	// NewRequest sets GetBody for a *strings.Reader.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/remittance/transfer", strings.NewReader(body))
	if err != nil {
		return Refused, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key {
		req.Header.Set("Idempotency-Key", o.Reference)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return Refused, err
	}
	defer resp.Body.Close()
	// More than this no client needs; the bomb would take minutes otherwise.
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
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

// warm leaves an idle connection, if it can.
func (c *other) warm(ctx context.Context, base string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/account/capacity", nil)
	if err != nil {
		return
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
}
