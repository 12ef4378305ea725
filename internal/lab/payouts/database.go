//go:build unix

package payouts

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall" // the server's user

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
)

// database is a schema of its own on a server that may be restarted: the one that
// sqljournal/scripts/postgres starts.
type database struct {
	source    string // with the schema
	server    string
	directory string // of the server's data
	programs  string
}

func openDatabase(ctx context.Context, server string) (*database, error) {
	db, err := sql.Open("pgx", server)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	schema := "payouts_" + strings.ToLower(rand.Text())
	d := &database{source: server + "&search_path=" + schema, server: server}
	_, err1 := db.ExecContext(ctx, "CREATE SCHEMA "+schema)
	err2 := db.QueryRowContext(ctx, `SHOW data_directory`).Scan(&d.directory)
	err3 := db.QueryRowContext(ctx, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&d.programs)
	return d, errors.Join(err1, err2, err3)
}

// restart stops the server as a power cut would, and starts it again.
func (d *database) restart(ctx context.Context) error {
	info, err := os.Stat(d.directory)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(d.programs, "pg_ctl"), "restart", "-D", d.directory, "-m", "immediate", "-w",
		"-l", filepath.Join(filepath.Dir(d.directory), "server.log")) //nolint:gosec // the server's own program
	command.Dir = filepath.Dir(d.directory)
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("restarting PostgreSQL: %w: %s", err, out)
	}
	return nil
}

// row is what the tables say of an order.
type row struct {
	state, serviceID, journal string
	closed                    bool
}

// rows returns all orders.
func (d *database) rows(ctx context.Context) (all map[string]row, err error) {
	db, err := sql.Open("pgx", d.source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, `SELECT p.order_no, p.state, p.service_id, coalesce(i.state, 'missing'), coalesce(i.closed, false)
FROM payouts p LEFT JOIN cardwire_intents i ON i.op = 'CreateTransfer' AND i.reference = p.order_no`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = map[string]row{}
	for rows.Next() {
		var number string
		var r row
		if err := rows.Scan(&number, &r.state, &r.serviceID, &r.journal, &r.closed); err != nil {
			return nil, err
		}
		all[number] = r
	}
	return all, rows.Err()
}
