// Package sqlite opens a database of SQLite for package payouts, with modernc.org/sqlite.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
)

// Open opens a file, which is created where there is none, as payouts.Service.Verify asks for it: with one
// connection, transactions that are IMMEDIATE, foreign keys, and times in UTC. The file has personal data:
// its directory is to be the program's alone. Queries are parsed once, which takes SQLite longer than to
// execute them.
func Open(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file := url.URL{Path: "/" + strings.TrimPrefix(filepath.ToSlash(path), "/")}
	connector, err := sqlite.NewConnector("file://" + file.EscapedPath() + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)" +
		"&_pragma=foreign_keys(1)&_txlock=immediate&_time_format=sqlite&_timezone=UTC")
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(opener{connector, path})
	db.SetMaxOpenConns(1)
	return db, nil
}

type opener struct {
	driver.Connector
	path string
}

func (o opener) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := o.Connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("payouts/sqlite: %s: %w: the directory must be there, and be this program's", o.path, err)
	}
	return &conn{c.(connection), map[string]*statement{}}, nil
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

// maxParsed bounds what a connection keeps: a query with a list of values is another one for each length.
const maxParsed = 100

type conn struct {
	connection
	parsed map[string]*statement // by their texts
}

// statement was parsed. It has one set of rows at a time: another would begin the first one anew.
type statement struct {
	driver.Stmt
	isOpen bool
}

type rows struct {
	driver.Rows
	of *statement
}

func (r *rows) Close() error {
	r.of.isOpen = false
	return r.Rows.Close()
}

// Unwrap is what sqlite.Limit looks for.
func (c *conn) Unwrap() driver.Conn { return c.connection }

// QueryContext parses a query once. One whose rows are open is parsed again.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s := c.parsed[query]
	if s != nil && s.isOpen {
		return c.connection.QueryContext(ctx, query, args)
	}
	if s == nil {
		parsed, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		c.makeRoom()
		s = &statement{Stmt: parsed}
		c.parsed[query] = s
	}
	found, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.isOpen = true
	return &rows{found, s}, nil
}

// makeRoom forgets any query, where there are many.
func (c *conn) makeRoom() {
	for query, s := range c.parsed {
		if len(c.parsed) < maxParsed {
			return
		}
		if !s.isOpen {
			_ = s.Close() // nothing else has it
			delete(c.parsed, query)
		}
	}
}

// Close implements driver.Conn.
func (c *conn) Close() error {
	for _, s := range c.parsed {
		_ = s.Close() // the connection is closed next
	}
	return c.connection.Close()
}
