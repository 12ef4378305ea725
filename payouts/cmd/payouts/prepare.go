package main

import (
	"context"
	"database/sql/driver"
	"strings"
)

// oftenUsed begins a query that is prepared once: the worker's, and those of River, which sqlc
// generates. Only the parameters of a list have no numbers (ofList): such a query is another one for
// each length, and would be kept for each as long as the connection is.
const (
	oftenUsed = "-- name: "
	ofList    = "?,"
)

// preparing makes connections to SQLite that prepare what is often used. River prepares nothing,
// and SQLite needs longer to parse most of its queries than to run them.
type preparing struct{ driver.Connector }

func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparingConn{c.(sqliteConn), map[string]driver.Stmt{}}, nil
}

// sqliteConn has what database/sql looks for in a connection.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type preparingConn struct {
	sqliteConn
	prepared map[string]driver.Stmt
}

// QueryContext prepares the queries that begin as River's do, where their texts do not vary. Their
// rows are closed before the next query: a prepared one has one set of rows at a time.
func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if !strings.HasPrefix(query, oftenUsed) || strings.Contains(query, ofList) {
		return c.sqliteConn.QueryContext(ctx, query, args)
	}
	if c.prepared[query] == nil {
		s, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		c.prepared[query] = s
	}
	return c.prepared[query].(driver.StmtQueryContext).QueryContext(ctx, args)
}

func (c *preparingConn) Close() error {
	for _, s := range c.prepared {
		_ = s.Close() // the connection is closed next
	}
	return c.sqliteConn.Close()
}
