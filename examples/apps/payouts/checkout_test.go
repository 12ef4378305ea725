package main

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/georgysavva/scany/v2/sqlscan"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// checkout takes a shop's order: its row, the payout and the payout's job are written
// together, or none is. If the payout exists, nothing is written: checkout returns it
// unchanged, or errOtherBody if the transfer is another one.
func checkout(ctx context.Context, s *service, customer string, p cardwire.TransferParams) (order, error) {
	return s.create(ctx, p, func(ctx context.Context, tx *sql.Tx, o order) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO orders (number, customer) VALUES ($1, $2)`, o.Order, customer)
		return err
	})
}

func TestAShopsOwnTable(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.exec(`CREATE TABLE orders (number TEXT PRIMARY KEY, customer TEXT NOT NULL UNIQUE)`)
		for range 2 { // the response to the first may be lost
			o, err := checkout(t.Context(), s.service, "Ada", paramsFor("A-1"))
			require.NoError(t, err)
			assert.Equal(t, []string{"A-1", queued}, []string{o.Order, o.State})
		}
		other := paramsFor("A-1")
		other.PayoutCurrency = "USD"
		_, err := checkout(t.Context(), s.service, "Ada", other)
		require.ErrorIs(t, err, errOtherBody)
		_, err = checkout(t.Context(), s.service, "Ada", paramsFor("A-2"))
		require.Error(t, err, "the shop's own row is refused")
		fails := func(context.Context, *sql.Tx, order) error { return sql.ErrNoRows }
		_, err = s.create(t.Context(), paramsFor("A-3"), fails)
		require.ErrorIs(t, err, sql.ErrNoRows, "an error of the shop's own, not an order that exists")
		_, err = checkout(t.Context(), s.service, "Bob", cardwire.TransferParams{})
		require.ErrorIs(t, err, cardwire.ErrInvalidParams)
		assert.Equal(t, []string{"available"}, s.jobs())
		assert.Equal(t, 1, strings.Count(s.log.String(), "msg=payout order="), "one line for the one order")
		s.fails(cardwiretest.Fault{Status: 422})
		assert.Zero(t, s.work("A-1"))
		type row struct{ Number, Customer, State string }
		var found []row
		require.NoError(t, sqlscan.Select(t.Context(), s.db, &found,
			`SELECT o.number, o.customer, p.state FROM orders o LEFT JOIN payouts_states p ON p.order_no = o.number`))
		assert.Equal(t, []row{{"A-1", "Ada", failed}}, found, "what the service refuses stays")
	})
}
