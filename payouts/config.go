package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Config has the settings of a [Service]. BaseURL is required, and APIKey without a key source; the zero value of any
// other field is its default.
type Config struct {
	// BaseURL is that of cardwire.New.
	BaseURL string
	// APIKey is the key of the API; "": Options have cardwire.WithKeySource.
	APIKey string
	// Account is the merchant's own name of the account, as in cardwire.WithAccount.
	Account string
	// Options are more options of the client: a profile, TLS, a logger. The journal is this package's. Timeout, Account and
	// LateExecution are set here or there, as WithTimeout, WithAccount and Profile.LateExecution; in both places they
	// must be the same.
	Options []cardwire.Option
	// Schema is PostgreSQL's schema of all tables: the journal's, the queue's and those of this package; "": cardwire. Each
	// account, tenant and environment has one of its own, or a file of SQLite, of which Schema must be "".
	Schema string
	// Identity names the journal that must be in the database, as in sqljournal.WithIdentity; "": the one
	// that is found. Nothing else notices that the database was replaced by an empty one that was migrated.
	Identity string
	// SynchronousFailover promises that a standby that takes over has all that was committed, as in
	// sqljournal.WithSynchronousFailover. Without it a failover puts the journal on hold.
	SynchronousFailover bool
	// SynchronousNormal accepts a file of SQLite that may lose what was committed last in a loss of power, as in
	// sqljournal.WithSynchronousNormal.
	SynchronousNormal bool
	// Workers is how many orders a replica sends at a time; 0: 8.
	Workers int
	// Timeout is how long a call may take, and a Changed; 0: 30 s.
	Timeout time.Duration
	// Rate is how many requests a second all replicas send together, on SQLite this one; 0: no limit. With
	// a rate Timeout must be at least 20 s.
	Rate float64
	// LateExecution is how long after a call the service may still execute it: until then "not executed" is
	// not accepted; 0: 10 min, negative: it never executes late.
	LateExecution time.Duration
	// FourEyes requires two people: who decided last about an order, by its history, cannot have it sent again; and who
	// put the journal on hold cannot call Release or Moved.
	FourEyes bool
	// PurgeAfter is how long after its end an order's request, which is personal data, is kept; 0: forever.
	PurgeAfter time.Duration
	// Brake is the number of unresolved orders at which nothing more is sent; 0: 20, negative: no limit.
	Brake int
	// Logger gets a line for each step of an order, with the service's words but without what they quote of the
	// request; an error of Changed is logged as it is. nil: nothing is logged.
	Logger *slog.Logger
	// MeterProvider gets the metrics: those of calls, journal and orders while Run runs, and of what is late always; nil:
	// OpenTelemetry's.
	MeterProvider metric.MeterProvider
	// TracerProvider gets a trace of each order, from Submit to its call; nil: OpenTelemetry's.
	TracerProvider trace.TracerProvider
	// Changed is told that an order is submitted, failed, canceled, paid, returned or unresolved, or that
	// its ServiceID was corrected: at least once, in any replica, whoever changed it. It runs in a
	// transaction in which the order is locked, so that what it writes in tx and what was told are one; the
	// last call has the last state. If it returns an error, or takes longer than Timeout, the transaction
	// is rolled back, and it is called again, after pauses of up to ten minutes, while other orders go on.
	// On SQLite it may use the database by tx alone, and must take milliseconds: calls wait for it. Replicas without
	// Changed tell nobody, unless a replica with Changed has run: from then on changes wait for that one, also while it
	// is away.
	Changed func(ctx context.Context, tx *sql.Tx, o Order) error
}

// Format keeps the key out of what fmt and slog print.
func (c Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "payouts.Config(%s)", c.BaseURL) }

// schemaName is what the queue takes; of SQLite it is empty.
var schemaName = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]{0,45})?$`)

const defaultSchema = "cardwire"

// complete gives what is not set its default, and refuses what cannot be meant.
func (c *Config) complete(dialect sqljournal.Dialect) error {
	c.Workers, c.Brake = cmp.Or(c.Workers, 8), cmp.Or(c.Brake, 20)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	c.MeterProvider = cmp.Or(c.MeterProvider, otel.GetMeterProvider())
	c.TracerProvider = cmp.Or(c.TracerProvider, otel.GetTracerProvider())
	if dialect == sqljournal.PostgreSQL {
		c.Schema = cmp.Or(c.Schema, defaultSchema)
	}
	if err := c.agree(); err != nil {
		return err
	}
	wrong := cmp.Or(check.Duration("Timeout", c.Timeout), check.Duration("LateExecution", c.LateExecution),
		check.Duration("PurgeAfter", c.PurgeAfter))
	switch {
	case wrong != nil:
		return fmt.Errorf("payouts: %w", wrong)
	case c.Workers < 0:
		return fmt.Errorf("payouts: Workers is %d: it must be at least 1, or 0 for 8", c.Workers)
	case c.Rate < 0:
		return fmt.Errorf("payouts: Rate is %g: it must be greater than zero, or 0 for no limit", c.Rate)
	case c.Rate > 0 && c.Timeout < 2*maxTurnWait: // a turn may be that far away, and the job's time includes it
		return errors.New("payouts: with Rate, Timeout must be at least " + (2 * maxTurnWait).String())
	case !schemaName.MatchString(c.Schema) || c.Schema != "" && dialect == sqljournal.SQLite:
		return fmt.Errorf("payouts: Schema %q must be at most 46 letters, digits and underscores, and not begin with a digit; "+
			"with SQLite it must be empty", c.Schema)
	}
	return nil
}

// agree takes over what Options set, and refuses what is set there to something else.
func (c *Config) agree() error {
	const unset = check.DefaultLateExecution + 1 // a profile has always one: nobody means this
	marked := cardwire.WithProfile(func(p *cardwire.Profile) { p.LateExecution = unset })
	client, err := cardwire.New(c.BaseURL, c.APIKey, append([]cardwire.Option{marked}, c.Options...)...)
	if err != nil {
		return err
	}
	o := client.Settings()
	isLate, late := o.LateExecution != unset, max(c.LateExecution, 0)
	differ := func(name string, own, other any) error {
		return fmt.Errorf("payouts: %s is %v, and Options set it to %v: set it in one place", name, own, other)
	}
	switch {
	case c.Timeout != 0 && o.Timeout != 0 && c.Timeout != o.Timeout:
		return differ("Timeout", c.Timeout, o.Timeout)
	case c.Account != "" && o.Account != "" && c.Account != o.Account:
		return differ("Account", strconv.Quote(c.Account), strconv.Quote(o.Account))
	case c.LateExecution != 0 && isLate && late != o.LateExecution:
		return differ("LateExecution", late, o.LateExecution)
	}
	c.Timeout, c.Account = cmp.Or(c.Timeout, o.Timeout, check.DefaultTimeout), cmp.Or(c.Account, o.Account)
	switch {
	case isLate:
		c.LateExecution = o.LateExecution
	case c.LateExecution == 0:
		c.LateExecution = check.DefaultLateExecution
	default:
		c.LateExecution = late
	}
	return nil
}
