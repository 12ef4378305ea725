package merchant

import (
	"context"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
)

// The clients to compare with. What they return is a success or an error, and it is
// for the merchant to say what an error means.
const (
	clientRetrying   = "go-retryablehttp"
	clientIdempotent = "Idempotency-Key"
)

type plain struct {
	caller chaos.Caller
	task   Task
}

func (c *plain) call(ctx context.Context, msg message, kind string, _ func()) advice {
	ctx, cancel := context.WithTimeout(ctx, c.task.Timeout)
	defer cancel()
	v, _ := c.caller.Call(ctx, c.task.Bases[kind], chaos.Order{Op: operation, Reference: msg.Reference})
	switch {
	case v == chaos.Success:
		return advice{step: cardwire.StepDone, serviceID: "AO-" + msg.Reference}
	case c.task.RetryErrors:
		return advice{step: cardwire.StepRetry}
	}
	return advice{step: cardwire.StepFail}
}

func (c *plain) close() { c.caller.Close() }
