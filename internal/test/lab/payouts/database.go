//go:build unix

package payouts

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
)

// database is a server of its own: one that others use is not to be restarted.
type database struct {
	source   string
	run      string // runs PostgreSQL's programs
	restarts string // restarts the first server, as after a crash
	standby  string // how to connect to it; "": there is none

	script *exec.Cmd
	hold   io.Closer // the server stops when it is closed
	*sql.DB
}

func startDatabase(ctx context.Context) (d *database, err error) {
	d = new(database)
	script := filepath.Join("..", "..", "..", "..", "sqljournal", "scripts", "postgres")
	const hold = `echo "$CARDWIRE_TEST_POSTGRES"; echo "$CARDWIRE_TEST_POSTGRES_RUN"; echo "$CARDWIRE_TEST_POSTGRES_RESTART"; cat`
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
	lines := bufio.NewReader(out)
	for _, line := range []*string{&d.source, &d.run, &d.restarts} {
		if *line, err = lines.ReadString('\n'); err != nil {
			return nil, errors.Join(fmt.Errorf("starting PostgreSQL: %w", err), d.stop())
		}
		*line = strings.TrimSpace(*line)
	}
	return d, nil
}

// open connects to whichever server takes writes.
func (d *database) open() (err error) {
	d.DB, err = sql.Open("pgx", d.source)
	if err == nil {
		d.SetMaxIdleConns(-1) // they would not outlive a restart
	}
	return err
}

// program runs one of PostgreSQL's.
func (d *database) program(ctx context.Context, args ...string) error {
	log, err := os.CreateTemp("", "postgres-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(log.Close(), os.Remove(log.Name())) }() // it has been read
	command := exec.CommandContext(ctx, d.run, args...)
	command.Stdout, command.Stderr = log, log // a pipe would wait for a server that it starts
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", args[0], err, said)
	}
	return nil
}

// follow starts a standby, which has all that is committed, or what it has got until then.
func (d *database) follow(ctx context.Context, isSynchronous bool) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	primary, err := url.Parse(d.source)
	if err != nil {
		return err
	}
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%d -c unix_socket_directories= -c max_connections=200 -c fsync=off", port)
	err = errors.Join(listener.Close(),
		d.program(ctx, "pg_basebackup", "-D", "standby", "-d", d.source+"&application_name=standby", "-R", "-c", "fast", "-N", "-X", "stream"),
		d.program(ctx, "pg_ctl", "-D", "standby", "-l", "standby.log", "-w", "-t", "60", "-o", options, "start"))
	if err != nil {
		return err
	}
	standby := *primary
	standby.Host = fmt.Sprintf("127.0.0.1:%d", port)
	d.standby = standby.String()
	if isSynchronous {
		err = d.set(ctx, d.source, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`)
	}
	primary.Host += "," + standby.Host
	d.source = primary.String() + "&target_session_attrs=read-write"
	return err
}

// set changes a setting of a server.
func (d *database) set(ctx context.Context, source, statement string) error {
	db, err := sql.Open("pgx", source)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, statement)
	if err == nil {
		_, err = db.ExecContext(ctx, `SELECT pg_reload_conf()`)
	}
	return errors.Join(err, db.Close())
}

// failOver has the standby take over from a server that is gone. What is lost is what it did not get any more.
func (d *database) failOver(ctx context.Context, loses time.Duration) error {
	if loses > 0 {
		err := d.set(ctx, d.standby, `ALTER SYSTEM SET primary_conninfo = ''`)
		if err = errors.Join(err, pause(ctx, loses)); err != nil {
			return err
		}
	}
	return errors.Join(d.program(ctx, "pg_ctl", "-D", "data", "-m", "immediate", "-w", "stop"),
		d.program(ctx, "pg_ctl", "-D", "standby", "-w", "promote"))
}

// held returns until when the journal's hold cannot be released; zero: there is none.
func (d *database) held(ctx context.Context) (floor time.Time, err error) {
	var at sql.NullTime
	err = d.QueryRowContext(ctx, `SELECT CASE WHEN held_by <> '' THEN floor END FROM cardwire.cardwire_intents_journal`).Scan(&at)
	return at.Time, err
}

func (d *database) stop() error {
	if d.DB != nil {
		_ = d.Close()
	}
	return errors.Join(d.hold.Close(), d.script.Wait())
}

// restart stops the server as a power cut would, and starts it again.
func (d *database) restart(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, d.restarts).CombinedOutput(); err != nil {
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
