package sqljournal_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// runVariable names the program that runs those of PostgreSQL: see scripts/postgres.
const runVariable = "CARDWIRE_TEST_POSTGRES_RUN"

// server is a PostgreSQL of the test's own, in a directory beside that program.
type server struct {
	*testing.T

	name string
	port int
}

// run runs a program of PostgreSQL.
func run(t testing.TB, program string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Getenv(runVariable), append([]string{program}, args...)...)
	out, err := os.Create(filepath.Join(t.TempDir(), program)) // a pipe would wait for the server
	require.NoError(t, err)
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	err = c.Run()
	said, _ := os.ReadFile(out.Name())
	require.NoError(t, err, "%s %v: %s", program, args, said)
}

// newServer starts a server.
func newServer(t *testing.T, settings ...string) *server {
	t.Helper()
	onPostgreSQL(t) // or the test is skipped
	if os.Getenv(runVariable) == "" {
		t.Skipf("%s is not set: run scripts/postgres go test ./...", runVariable)
	}
	s := serverOf(t)
	run(t, "initdb", "-D", s.name, "-U", "cardwire", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	s.start(settings...)
	return s
}

// serverOf is a server that is not there yet.
func serverOf(t *testing.T) *server {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(os.Getenv(runVariable)), "server-")
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir))
	s := &server{T: t, name: filepath.Base(dir)}
	t.Cleanup(func() {
		if _, err := os.Stat(filepath.Join(dir, "postmaster.pid")); err == nil {
			s.stop()
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	return s
}

// start starts the server, at a port that was free.
func (s *server) start(settings ...string) {
	s.Helper()
	if s.port == 0 {
		listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp", "127.0.0.1:0")
		require.NoError(s, err)
		s.port = listener.Addr().(*net.TCPAddr).Port
		require.NoError(s, listener.Close())
	}
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%d -c unix_socket_directories= -c fsync=off", s.port)
	for _, setting := range settings {
		options += " -c " + setting
	}
	run(s, "pg_ctl", "-D", s.name, "-l", s.name+".log", "-w", "-t", "60", "-o", options, "start")
}

// stop kills the server, as a loss of power does.
func (s *server) stop() {
	c := exec.CommandContext(context.Background(), os.Getenv(runVariable), "pg_ctl", "-D", s.name, "-m", "immediate",
		"-w", "stop")
	out, err := c.CombinedOutput()
	require.NoError(s, err, "%s", out)
}

// promote ends a standby's recovery.
func (s *server) promote() {
	s.Helper()
	run(s, "pg_ctl", "-D", s.name, "-w", "promote")
}

// standby is a copy of the server that follows it.
func (s *server) standby(settings ...string) *server {
	s.Helper()
	other := serverOf(s.T)
	source := s.source("postgres") + "&application_name=standby"
	run(s, "pg_basebackup", "-D", other.name, "-d", source, "-R", "-c", "fast", "-N", "-X", "stream")
	other.start(settings...)
	return other
}

// recovered is a copy of the server as it was, which has a new timeline, as after a recovery to a point in time.
func (s *server) recovered() *server {
	s.Helper()
	other := serverOf(s.T)
	run(s, "pg_basebackup", "-D", other.name, "-d", s.source("postgres"), "-c", "fast", "-N", "-X", "stream")
	run(s, "touch", filepath.Join(other.name, "recovery.signal"))
	other.start("restore_command=false", "recovery_target=immediate", "recovery_target_action=promote")
	db, _ := open(s, other.at("postgres"))
	require.Eventually(s, func() bool { // the server recovers in its own time
		var recovers bool
		return db.QueryRowContext(s.Context(), "SELECT pg_is_in_recovery()").Scan(&recovers) == nil && !recovers
	}, time.Minute, 10*time.Millisecond)
	return other
}

// source is how to connect to a database of the server.
func (s *server) source(database string) string {
	return fmt.Sprintf("postgres://cardwire@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

func (s *server) at(database string) place {
	return place{"pgx", s.source(database), sqljournal.PostgreSQL, sqljournal.DefaultTable}
}

// dump writes a database into a file, and restore reads one into a database that may be new.
func (s *server) dump(database string, options ...string) (file string) {
	s.Helper()
	file = s.name + "-" + database + ".dump"
	run(s, "pg_dump", append(options, "-Fc", "-f", file, "-d", s.source(database))...)
	return file
}

func (s *server) restore(file, database string, options ...string) {
	s.Helper()
	run(s, "pg_restore", append(options, "-d", s.source(database), file)...)
}

// moving is the way to whichever server a name leads to, as behind a proxy: each statement has a new connection.
type moving struct {
	driver driver.Driver
	to     atomic.Pointer[server]
}

func (m *moving) Driver() driver.Driver { return m.driver }

func (m *moving) Connect(context.Context) (driver.Conn, error) {
	return m.driver.Open(m.to.Load().source("postgres"))
}

// program is a journal that a program has open while the servers behind its connections change.
func program(t *testing.T, to *server, opts ...sqljournal.Option) (*sqljournal.Journal, *moving) {
	t.Helper()
	direct, _ := open(t, to.at("postgres"))
	way := &moving{driver: direct.Driver()}
	way.to.Store(to)
	db := sql.OpenDB(way)
	db.SetMaxIdleConns(-1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	journal, err := sqljournal.New(db, sqljournal.PostgreSQL, opts...)
	require.NoError(t, err)
	return journal, way
}

// events returns the events of the journal itself: of holds and moves.
func eventsOfJournal(t testing.TB, db *sql.DB, at place) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT kind, by, note FROM "+
		at.Table+"_history WHERE op = '' ORDER BY number")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var kind, by, note string
		require.NoError(t, rows.Scan(&kind, &by, &note))
		all = append(all, strings.TrimSuffix(kind+" by "+by+": "+note, ": "))
	}
	require.NoError(t, rows.Err())
	return all
}
