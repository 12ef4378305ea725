package main

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// checkout is a shop's own transaction: its row, the payout and the payout's job are
// written together, or none of them is. An order that has a payout is sql.ErrNoRows.
func checkout(ctx context.Context, s *service, customer string, p cardwire.TransferParams) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO orders (number, customer) VALUES ($1, $2)`, p.MerchantOrderNo, customer)
		if err != nil {
			return err
		}
		_, err = s.createTx(ctx, tx, p)
		return err
	})
}

func TestAShopsOwnTable(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, settingsOf(source))
		s.exec(`CREATE TABLE orders (number TEXT, customer TEXT PRIMARY KEY)`)
		require.NoError(t, checkout(t.Context(), s.service, "Ada", paramsFor("A-1")))
		require.ErrorIs(t, checkout(t.Context(), s.service, "Eve", paramsFor("A-1")), sql.ErrNoRows)
		require.Error(t, checkout(t.Context(), s.service, "Ada", paramsFor("A-2")), "the shop's own row is refused")
		require.ErrorIs(t, checkout(t.Context(), s.service, "Bob", cardwire.TransferParams{}), cardwire.ErrInvalidParams)
		assert.Equal(t, []string{"available"}, s.jobs())
		assert.Zero(t, s.work("A-1"))
		found, err := rows(t.Context(), s.db, func(row *[3]string, scan scanner) error { return scan(&row[0], &row[1], &row[2]) },
			`SELECT o.number, o.customer, p.state FROM orders o LEFT JOIN payouts p ON p.order_no = o.number`)
		require.NoError(t, err)
		assert.Equal(t, [][3]string{{"A-1", "Ada", submitted}}, found)
	})
}
