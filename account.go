package cardwire

import (
	"context"
	"net/http"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardCapacity returns the account's card capacity. It calls GET
// /account/capacity. Whether the number is the total or what is left is undocumented.
// A response that is not an integer is [ErrUnreadable].
func (c *Client) CardCapacity(ctx context.Context, opts ...CallOption) (int64, error) {
	return value(do(ctx, c, operation[int64]{
		spec: spec{name: "CardCapacity", method: http.MethodGet, path: "/account/capacity"},
		read: (*wire.Codec).RequiredInt64,
	}, opts))
}
