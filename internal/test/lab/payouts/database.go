//go:build unix

package payouts

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall" // the server's user

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
)

// database is a server of its own: one that others use is not to be restarted.
type database struct {
	source    string
	directory string // of the server's data
	programs  string

	script *exec.Cmd
	hold   io.Closer // the server stops when it is closed
	*sql.DB
}

func startDatabase(ctx context.Context) (d *database, err error) {
	d = new(database)
	script := filepath.Join("..", "..", "..", "..", "sqljournal", "scripts", "postgres")
	const hold = `echo "$CARDWIRE_TEST_POSTGRES"; cat`
	d.script = exec.CommandContext(context.WithoutCancel(ctx), script, "sh", "-c", hold)
	d.script.Stderr = os.Stderr
	if d.hold, err = d.script.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.script.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.script.Start(); err != nil {
		return nil, err
	}
	if d.source, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, errors.Join(fmt.Errorf("starting PostgreSQL: %w", err), d.stop())
	}
	d.source = strings.TrimSpace(d.source)
	if d.DB, err = sql.Open("pgx", d.source); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	d.SetMaxIdleConns(-1) // they would not outlive a restart
	err = errors.Join(d.QueryRowContext(ctx, `SHOW data_directory`).Scan(&d.directory),
		d.QueryRowContext(ctx, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&d.programs))
	if err != nil {
		err = errors.Join(err, d.stop())
	}
	return d, err
}

func (d *database) stop() error {
	if d.DB != nil {
		_ = d.Close()
	}
	return errors.Join(d.hold.Close(), d.script.Wait())
}

// restart stops the server as a power cut would, and starts it again.
func (d *database) restart(ctx context.Context) error {
	info, err := os.Stat(d.directory)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(d.programs, "pg_ctl"), "restart", "-D", d.directory,
		"-m", "immediate", "-w", "-l", filepath.Join(filepath.Dir(d.directory), "server.log"))
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

// unended returns how many orders were not told as ended, or have changed since.
func (d *database) unended(ctx context.Context) (n int, err error) {
	err = d.QueryRowContext(ctx, `SELECT count(*) FROM cardwire.payouts p WHERE told IN ('', 'unresolved')
OR EXISTS (SELECT 1 FROM cardwire.payouts_marks m WHERE m.order_no = p.order_no)`).Scan(&n)
	return n, err
}

// rows returns all orders.
func (d *database) rows(ctx context.Context) (all map[string]row, err error) {
	rows, err := d.QueryContext(ctx, `SELECT p.order_no, p.told, coalesce(i.service_id, ''), coalesce(i.state, 'missing'),
coalesce(i.closed, false) FROM cardwire.payouts p
LEFT JOIN cardwire.cardwire_intents i ON i.op = 'CreateTransfer' AND i.reference = p.order_no`)
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
