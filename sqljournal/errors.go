package sqljournal

import (
	"errors"
	"fmt"
	"time"

	"github.com/cardwire/cardwire-go"
)

// The errors of the journal. No message contains a reference or a hash.
var (
	// ErrNoIntent reports that no such intent was begun, or that the reference was
	// begun with another body.
	ErrNoIntent = errors.New("sqljournal: no such intent was begun: check the operation, the reference and the table")
	// ErrDecided reports that the intent is resolved already, or that it was begun
	// again since the entry was read, so that the entry is too old.
	ErrDecided = errors.New("sqljournal: the intent is resolved already, or was begun again: read its entry again")
	// ErrSchema reports that the journal's tables are missing, older or newer than
	// this program, or another journal's. Nothing is sent.
	ErrSchema = errors.New("sqljournal: this is not the journal's database")
	// ErrRecordedAgain is returned by End where the intent was no longer on record:
	// the database has forgotten it, as after a failover to a standby that lags. It
	// is on record again, with its result, but other forgotten intents may be sent
	// again.
	ErrRecordedAgain = errors.New("sqljournal: the database had forgotten the intent, which is now recorded again: what else it has forgotten may be sent again: check for a failover or a restore")
)

// problem returns an ErrSchema with what is wrong and what to do.
func problem(text string) error { return fmt.Errorf("%w: %s", ErrSchema, text) }

var errMissing = problem("its tables are missing: check which database and schema this is; a new journal is created by Migrate")

// failure is a failure of the database. Its message omits the cause, because a database
// may quote values; errors.As finds it.
type failure struct {
	text   string
	causes []error
}

// failed returns the failure of an action. If tables or columns are missing it is also
// an ErrSchema.
func (j *Journal) failed(what string, cause error) error {
	f := &failure{"sqljournal: " + what + " failed: check the connection, the schema and the permissions of the database", []error{cause}}
	if j.missing(cause) {
		f.causes = append(f.causes, ErrSchema)
	}
	return f
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.causes }

// tooEarly reports that an intent cannot be resolved to refused or not sent yet.
type tooEarly struct {
	duplicate *cardwire.DuplicateIntent
	until     time.Time
}

func (e *tooEarly) Error() string {
	return "sqljournal: the call may still send until " + e.until.UTC().Format(time.RFC3339) +
		": resolve it to refused or not sent after that, or to executed now"
}

func (e *tooEarly) Unwrap() error { return e.duplicate }
