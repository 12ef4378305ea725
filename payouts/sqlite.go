//go:build !386 && !arm && !mips && !mipsle

package payouts

import (
	"database/sql"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

func sqliteQueue(db *sql.DB) (riverdriver.Driver[*sql.Tx], error) { return riversqlite.New(db), nil }
