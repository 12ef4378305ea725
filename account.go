package cardwire

import (
	"context"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardCapacity returns the account's card capacity; whether that is the total or what is left
// is undocumented. It calls GET /account/capacity.
func (c *Client) CardCapacity(ctx context.Context, opts ...CallOption) (int64, error) {
	read := func(d *wire.Codec, capacity *int64) { wire.IntOf(d, capacity, wire.Required) }
	return orZero(do(ctx, c, get(OpCardCapacity, "/account/capacity", read), opts))
}
