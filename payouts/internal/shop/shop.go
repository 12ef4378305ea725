// Package shop is what the tests of payouts and of its page share: a merchant's databases and orders.
package shop

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/payouts/sqlite"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Tester is a test, or a step of one that rapid runs.
type Tester interface {
	require.TestingT
	Helper()
	Context() context.Context
	Cleanup(func())
}

// NewFile is a new database of SQLite, with any name.
func NewFile(t testing.TB) string { return filepath.Join(t.TempDir(), "pay ?%20#.db") }

// NewDatabase is the data source name of a new database of PostgreSQL.
func NewDatabase(t testing.TB) string {
	t.Helper()
	source := os.Getenv("CARDWIRE_TEST_POSTGRES")
	if source == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("CARDWIRE_TEST_POSTGRES is not set, and these tests must run under CI: " +
				"use sqljournal/scripts/postgres")
		}
		t.Skip("CARDWIRE_TEST_POSTGRES is not set: run sqljournal/scripts/postgres go test -C payouts ./...")
	}
	name := "d_" + strings.ToLower(rand.Text())
	db, _ := OpenDB(t, source)
	_, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.ExecContext(context.Background(), "DROP DATABASE "+name)
		assert.NoError(t, err)
	})
	// The search path is not that of the user, who has the schema's name.
	return strings.Replace(source, "/postgres?", "/"+name+"?search_path=public&", 1)
}

// OpenDB opens a database until the test ends.
func OpenDB(t Tester, source string) (*sql.DB, sqljournal.Dialect) {
	t.Helper()
	dialect, open := sqljournal.SQLite, sqlite.Open
	if strings.Contains(source, "://") {
		dialect, open = sqljournal.PostgreSQL, func(source string) (*sql.DB, error) { return sql.Open("pgx", source) }
	}
	db, err := open(source)
	require.NoError(t, err)
	if dialect == sqljournal.PostgreSQL {
		db.SetMaxOpenConns(16)
	}
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	return db, dialect
}

// EachDatabase runs a test on both databases, while other tests run.
func EachDatabase(t *testing.T, test func(t *testing.T, source string)) {
	t.Helper()
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { test(t, NewFile(t)) })
	t.Run("PostgreSQL", func(t *testing.T) { test(t, NewDatabase(t)) })
}

// Params are those of an order of 12.50 EUR.
func Params(number string) cardwire.TransferParams {
	return cardwire.TransferParams{
		MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: decimal.New(1250, -2),
		ReceiverBankAccountNumber: "DE00CANARY",
	}
}
