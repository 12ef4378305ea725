//go:build 386 || arm || mips || mipsle

package payouts

import (
	"database/sql"
	"errors"

	"github.com/riverqueue/river/riverdriver"
)

func sqliteQueue(*sql.DB) (riverdriver.Driver[*sql.Tx], error) {
	return nil, errors.New("the queue's SQLite driver does not compile on 32-bit machines: use PostgreSQL")
}
