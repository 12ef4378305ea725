package cardwire

import (
	"context"
	"net/http"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardCapacity returns the account's card capacity, whether in all or left is undocumented.
// It calls GET /account/capacity.
func (c *Client) CardCapacity(ctx context.Context, opts ...CallOption) (int64, error) {
	return value(do(ctx, c, operation[int64]{
		spec: spec{name: "CardCapacity", method: http.MethodGet, path: "/account/capacity"},
		read: (*wire.Codec).RequiredInt64,
	}, opts))
}
