package payouts

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/riverqueue/river/rivermigrate"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// hasTriggers is whether the triggers are there.
var hasTriggers = map[sqljournal.Dialect]string{
	sqljournal.SQLite: `SELECT count(*) = 2 FROM sqlite_master WHERE name IN ('payouts_begun', 'payouts_changed')`,
	sqljournal.PostgreSQL: `SELECT count(*) = 1 FROM pg_trigger
	WHERE tgname = 'payouts_mark' AND tgrelid = 'cardwire_intents'::regclass AND tgenabled IN ('O', 'A')`,
}

// Migrate creates or upgrades all tables: the journal's, the queue's and its own. It is a step of
// the deployment, once for each new database and release, and needs permission to create tables. In
// PostgreSQL several may run at once, beside programs that send.
func (s *Service) Migrate(ctx context.Context) error {
	err := s.checkConnections(ctx)
	if err == nil {
		err = s.journal.Migrate(ctx)
	}
	for i := 0; err == nil; i++ { // calls in progress wait for it, and it for them
		if err = s.createTables(ctx); err == nil || i == 5 || !isDeadlock(err) {
			return err
		}
		err = nil
	}
	return err
}

// createTables has one program at a time create the tables. River does so in transactions of its own.
func (s *Service) createTables(ctx context.Context) error {
	create := func(ctx context.Context) error {
		migrator, err := s.migrator()
		if err == nil {
			_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		}
		if err != nil || s.isCurrent(ctx) {
			return err
		}
		return s.transaction(ctx, func(tx *sql.Tx) error {
			return s.exec(ctx, tx, "@first"+embedded("schema.sql")+embedded(strings.ToLower(s.dialect.String())+".sql"))
		})
	}
	if s.dialect == sqljournal.SQLite {
		return create(ctx)
	}
	return s.transaction(ctx, func(tx *sql.Tx) error {
		if err := s.exec(ctx, tx, `SELECT pg_advisory_xact_lock(5821034417)`); err != nil {
			return err
		}
		return create(ctx)
	})
}

// isCurrent reports whether all is there: then nobody has to wait for locks on tables that are in use.
func (s *Service) isCurrent(ctx context.Context) bool {
	found, err := query(ctx, s, s.db, one[bool], `SELECT release = 1 AND (`+hasTriggers[s.dialect]+`) FROM payouts_control`)
	return err == nil && len(found) > 0 && found[0]
}

func (s *Service) migrator() (*rivermigrate.Migrator[*sql.Tx], error) {
	return rivermigrate.New(s.driver, &rivermigrate.Config{Logger: s.log})
}

// Verify reports why this program must not run on the database: SQLite's connection lacks a setting, a
// table is missing, or its orders are another service's or another account's. It is a readiness
// check too, and creates nothing. While nothing is sent, as on hold, it returns nil: people need the
// page then.
func (s *Service) Verify(ctx context.Context) error {
	if err := s.checkConnections(ctx); err != nil {
		return err
	}
	err := s.journal.Verify(ctx)
	if errors.Is(err, sqljournal.ErrSchema) {
		return fmt.Errorf("payouts: %w; if the database or the release is new, call Migrate once", err)
	}
	var service, account string
	if err == nil {
		err = s.db.QueryRowContext(ctx, `SELECT service, account FROM cardwire_intents_journal`).Scan(&service, &account)
	}
	switch {
	case err != nil:
		return fmt.Errorf("payouts: the journal cannot be read: %w", err)
	case !s.isCurrent(ctx):
		return errors.New("payouts: its tables or its trigger on cardwire_intents are missing, or of another release: " +
			"call Migrate once")
	case service != "" && (service != s.base || account != s.config.Account):
		return fmt.Errorf("payouts: the orders in this database are for %s, account %q, and not for %s, account %q: "+
			"set BaseURL, APIKey and Account, or use another database; if the service has moved, call sqljournal's SetService",
			service, account, s.base, s.config.Account)
	}
	migrator, err := s.migrator()
	if err != nil {
		return err
	}
	queue, err := migrator.Validate(ctx, nil)
	if err == nil && !queue.OK {
		err = errors.New("payouts: the queue's tables are of an older release: call Migrate once")
	}
	return err
}

var errSQLite = errors.New("payouts: open a file of SQLite with payouts/sqlite, or with db.SetMaxOpenConns(1) and " +
	"_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)&_txlock=immediate&_time_format=sqlite&_timezone=UTC " +
	"in the data source name: at least one of them is missing")

// checkConnections reports whether SQLite's connection lacks a setting.
func (s *Service) checkConnections(ctx context.Context) error {
	if s.dialect != sqljournal.SQLite {
		return nil
	}
	var file, at string
	var foreign, waits bool
	zoned := time.Date(2026, 1, 31, 15, 4, 5, 0, time.FixedZone("", 3600))
	err := s.db.QueryRowContext(ctx, `SELECT (SELECT file FROM pragma_database_list WHERE name = 'main'),
	(SELECT foreign_keys FROM pragma_foreign_keys), (SELECT timeout > 0 FROM pragma_busy_timeout), CAST($1 AS TEXT)`, zoned).
		Scan(&file, &foreign, &waits, &at)
	switch {
	case err != nil:
		return err
	case s.db.Stats().MaxOpenConnections != 1, !foreign, !waits, at != "2026-01-31 14:04:05+00:00":
		return errSQLite
	case file == "":
		return errors.New("payouts: a database in memory forgets what was sent: use a file")
	}
	return s.checkLock(ctx, file)
}

// checkLock begins a transaction, and looks whether another connection could begin one too.
func (s *Service) checkLock(ctx context.Context, file string) error {
	return s.transaction(ctx, func(*sql.Tx) error {
		path := url.URL{Path: filepath.ToSlash(file)}
		other, err := s.db.Driver().Open("file:" + path.EscapedPath() + "?mode=rw")
		if err != nil {
			return err
		}
		defer func() { _ = other.Close() }() // nothing was written
		run := func(statement string) error {
			_, err := other.(driver.ExecerContext).ExecContext(ctx, statement, nil)
			return err
		}
		if run(`PRAGMA busy_timeout = 0`) == nil && run(`BEGIN IMMEDIATE`) == nil {
			_ = run(`ROLLBACK`)
			return errSQLite
		}
		return nil
	})
}
