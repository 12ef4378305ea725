package merchant

import (
	"context"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/lab/chaos"
)

// The clients to compare with. What they return is a success or an error, and it is
// for the merchant to say what an error means.
const (
	clientRetrying   = "go-retryablehttp"
	clientIdempotent = "Idempotency-Key"
)

type plain struct {
	caller  chaos.Caller
	bases   map[string]string
	timeout time.Duration
	onError cardwire.Step
}

func (c *plain) call(ctx context.Context, msg message, kind string, _ func()) advice {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	if v, _ := c.caller.Call(ctx, c.bases[kind], chaos.Order{Op: operation, Reference: msg.Reference}); v == chaos.Success {
		return advice{step: cardwire.StepDone, serviceID: "AO-" + msg.Reference}
	}
	return advice{step: c.onError}
}

func (c *plain) close() { c.caller.Close() }
