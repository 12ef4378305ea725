package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	_ "modernc.org/sqlite"             // and that of SQLite

	"github.com/cardwire/cardwire-go/sqljournal"
)

const schemaTimeout = 15 * time.Second

// openJournal opens the database that remembers what was sent. The journal must
// outlive this process: an entry that is lost may be sent again.
func openJournal(ctx context.Context, s settings) (*sqljournal.Journal, func(), error) {
	driver, source, dialect := "pgx", s.postgres, sqljournal.PostgreSQL
	if s.postgres == "" {
		var err error
		driver, dialect = "sqlite", sqljournal.SQLite
		if source, err = fileSource(s.journal); err != nil {
			return nil, nil, err
		}
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, fmt.Errorf("the journal's database cannot be opened: check the flag's value") // the cause may quote a password
	}
	end := func() { _ = db.Close() }
	journal, err := prepare(ctx, db, dialect)
	if err != nil {
		end()
		return nil, nil, err
	}
	return journal, end, nil
}

func prepare(ctx context.Context, db *sql.DB, dialect sqljournal.Dialect) (*sqljournal.Journal, error) {
	journal, err := sqljournal.New(db, dialect)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	return journal, journal.EnsureSchema(ctx)
}

// fileSource names the file for the driver. Nobody else reads which orders there
// are: SQLite gives its other files the same permissions.
func fileSource(name string) (string, error) {
	path, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	file := url.URL{Path: filepath.ToSlash(path)}
	return "file:" + file.EscapedPath() + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)", f.Close()
}
