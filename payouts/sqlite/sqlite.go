// Package sqlite opens a database of SQLite for package payouts, with modernc.org/sqlite.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// Open opens a file, which is created where there is none, as payouts.Service.Verify asks for it: with one
// connection, transactions that are IMMEDIATE, foreign keys, and times in UTC. River's statements are parsed
// once, which takes SQLite longer than to execute them.
func Open(path string) (*sql.DB, error) {
	file := url.URL{Path: filepath.ToSlash(path)}
	connector, err := sqlite.NewConnector("file:" + file.EscapedPath() + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)" +
		"&_pragma=foreign_keys(1)&_txlock=immediate&_time_format=sqlite&_timezone=UTC")
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(opener{connector})
	db.SetMaxOpenConns(1)
	return db, nil
}

type opener struct{ driver.Connector }

func (o opener) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := o.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c.(connection), map[string]driver.Stmt{}}, nil
}

// connection is what database/sql looks for in one.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type conn struct {
	connection
	parsed map[string]driver.Stmt // by their texts
}

// Unwrap is what sqlite.Limit looks for.
func (c *conn) Unwrap() driver.Conn { return c.connection }

// QueryContext parses once what begins as River's statements do, whose rows are all read before the next one
// runs. One with a list of values is another one for each length.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !strings.HasPrefix(query, "-- name: ") || strings.Contains(query, "?,") {
		return c.connection.QueryContext(ctx, query, args)
	}
	if c.parsed[query] == nil {
		s, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		c.parsed[query] = s
	}
	return c.parsed[query].(driver.StmtQueryContext).QueryContext(ctx, args)
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	for _, s := range c.parsed {
		_ = s.Close() // the connection is closed next
	}
	return c.connection.Close()
}
