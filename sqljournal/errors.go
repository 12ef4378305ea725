package sqljournal

import (
	"errors"
	"fmt"
)

// The errors of the journal.
var (
	// ErrNoIntent reports that nothing is on record for a reference.
	ErrNoIntent = errors.New("sqljournal: nothing is on record: check the operation, the reference and the table")
	// ErrDecided reports that a resolution contradicts what is on record and cannot be
	// corrected, or is about a call that is no longer the one on record.
	ErrDecided = errors.New("sqljournal: this cannot be recorded")
	// ErrSchema reports that the journal's tables are missing, older or newer than
	// this program, or another journal's. Nothing is sent.
	ErrSchema = errors.New("sqljournal: this is not the journal's database")
	// ErrContradiction is returned by End where the record contradicts the result:
	// somebody was paid twice, or a person or another call said something else meanwhile.
	// The history has both. It wraps what Begin would return, if that is a
	// *cardwire.DuplicateIntent.
	ErrContradiction = errors.New("sqljournal: the record of this reference contradicts the result of the call: compare its history with the service's own records")
	// ErrRecordedAgain is returned by End where the intent was no longer on record:
	// the database has forgotten it, as after a failover to a standby that lags. It
	// is on record again, with its result, but other forgotten intents may be sent
	// again.
	ErrRecordedAgain = errors.New("sqljournal: the database had forgotten the intent, which is now recorded again: what else it has forgotten may be sent again: check for a failover or a restore")
)

// problem returns an ErrSchema with what is wrong and what to do.
func problem(text string) error { return fmt.Errorf("%w: %s", ErrSchema, text) }

var errMissing = problem("its tables are missing: check which database and schema this is; a new journal is created by Migrate")

// decided returns an ErrDecided with the reason and what to do.
func decided(text string) error { return fmt.Errorf("%w: %s", ErrDecided, text) }

// failure is a failure of the database. Its message omits the cause, because a database
// may quote values; errors.As finds it.
type failure struct {
	text  string
	cause error
}

// failed returns the failure of an action. If tables or columns are missing it is also
// an ErrSchema.
func (j *Journal) failed(what string, cause error) error {
	if j.missing(cause) {
		cause = errors.Join(ErrSchema, cause)
	}
	return &failure{"sqljournal: " + what + " failed: check the connection, the schema and the permissions of the database", cause}
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }
