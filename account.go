package cardwire

import (
	"context"
	"net/http"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardCapacity returns the number of cards that the account can hold, as the
// service counts it. It stands for GET /account/capacity. An answer that is no
// integer is [ErrUnreadable].
func (c *Client) CardCapacity(ctx context.Context, opts ...CallOption) (int64, error) {
	return value(do(ctx, c, operation{
		name: "CardCapacity", method: http.MethodGet, path: "/account/capacity",
	}, reply[int64]{read: (*wire.Codec).RequiredInt64}, opts))
}
