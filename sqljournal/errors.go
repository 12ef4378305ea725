package sqljournal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
)

// The errors of the journal.
var (
	// ErrNoIntent reports that nothing is on record for a reference.
	ErrNoIntent = errors.New("sqljournal: nothing is on record: check the operation, the reference and the table")
	// ErrDecided reports that a resolution contradicts a record that cannot be corrected, or
	// is about a call that is no longer the one on record, or that a hold cannot be released yet.
	ErrDecided = errors.New("sqljournal: this cannot be recorded")
	// ErrSchema reports that the journal's tables are missing, older or newer than
	// this program, or another journal's. Nothing is sent.
	ErrSchema = safe("this is not the journal's database")
	// ErrContradiction is returned by End if the record contradicts the result: somebody was
	// paid twice, or a person or another call recorded something else meanwhile. The history
	// has both. It wraps what Begin would return, if that is a *cardwire.DuplicateIntent.
	ErrContradiction = safe("the record of this reference contradicts the result of the call: " +
		"compare its history with the service's own records")
	// ErrRecordedAgain is returned by End if the intent was no longer on record: the database
	// has lost it, for example in a failover to a lagging standby. It is on record again,
	// as executed or unknown, and the journal is on hold if this Journal had begun the call.
	ErrRecordedAgain = safe("the database had lost the intent, which is now recorded again: " +
		"others may be lost too: check for a failover or a restore")
)

// safeError is an error whose message may be shown, since it contains no value of a request or of
// the database: the client adds it to its own errors, as cardwire.Journal says.
type safeError struct {
	text string
	is   error // nil: only itself
}

func safe(text string) error { return &safeError{text: text} }

func (s *safeError) Error() string       { return "sqljournal: " + s.text }
func (s *safeError) Unwrap() error       { return s.is }
func (s *safeError) SafeMessage() string { return s.text }

func invalid(why error) error { return fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, why) }

// problem returns an ErrSchema with what is wrong and what to do.
func problem(text string) error {
	return &safeError{"this is not the journal's database: " + text, ErrSchema}
}

var errMissing = problem("its tables are missing: check which database and schema this is; " +
	"a new journal is created by Migrate")

// errOlder is for tables of before the first release, which nothing moves.
var errOlder = problem("its tables are those of an earlier version of this module: create new ones by Migrate, " +
	"with another WithTable, and record there what was paid")

// decided returns an ErrDecided with the reason, why a record refuses a resolution; nil stays nil.
func decided(why error) error {
	if why == nil {
		return nil
	}
	return &safeError{"this cannot be recorded: " + strings.TrimPrefix(why.Error(), "cardwire: "), errors.Join(ErrDecided, why)}
}

// failure is a failure of the database. Its message omits the cause, because a database
// may quote values; errors.As finds it.
type failure struct {
	text  string
	cause error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }

// failed returns the failure of an action, and what is known of its cause; nil: it has not failed. What says itself what
// is wrong stays as it is.
func (j *Journal) failed(what string, cause error) error {
	if f, ok := errors.AsType[*failure](cause); ok {
		return &failure{f.text, cause}
	}
	if _, isSaid := errors.AsType[*safeError](cause); cause == nil || isSaid {
		return cause
	}
	advice := "check the connection, the schema and the permissions of the database"
	if known := j.diagnosis(cause); known != nil {
		advice, cause = known.text, errors.Join(known, cause)
	}
	return &failure{"sqljournal: " + what + " failed: " + advice, cause}
}

// diagnosis returns what is wrong with the database; nil: it is not known.
func (j *Journal) diagnosis(cause error) *safeError {
	if j.missing(cause) {
		return &safeError{"a table or a column is missing: check which database and schema this is", ErrSchema}
	}
	state := database.State(cause)
	switch { // which database responds is in the error: only one of them has an SQLSTATE
	case j.dialect == SQLite && state != "":
		return ofDialect("PostgreSQL")
	case j.dialect == PostgreSQL && state == "" && says(cause, "no such function", "syntax error"):
		return ofDialect("SQLite")
	}
	for _, d := range diagnoses {
		if state != "" && state == d.state || state == "" && d.words != "" && says(cause, d.words) {
			return &safeError{text: d.text}
		}
	}
	return nil
}

func ofDialect(name string) *safeError {
	return &safeError{"it is " + name + ": pass sqljournal." + name + " to New", ErrSchema}
}

const stopped = "the statement was canceled or did not return in time: check for a session that locks the row"

const inPassword = "write /, @, :, ? and % in a password as %2F, %40, %3A, %3F and %25"

// diagnoses are what is wrong, by a message of SQLite or database/sql, or by PostgreSQL's
// SQLSTATE.
var diagnoses = []struct{ words, state, text string }{
	{closedDatabase, "", "the database was closed: close it when the last call has returned"},
	{"readonly database", "25006", "the database is read-only: check whether it is a standby, and whose file it is"},
	{"is locked", "", "the database file is locked: check for another process that keeps a transaction open"},
	{"context canceled", "57014", stopped},
	{"context deadline exceeded", "", stopped},
	{"not a database", "", "the file is not an SQLite database: check its path"},
	{"connection refused", "", "no server at the address of the database: check its host and port"},
	{"no such host", "", "the host of the database is unknown: check its name, and " + inPassword},
	{"cannot parse `", "", "the address of the database cannot be read: " + inPassword}, // pgx's
	{"unable to open database file", "", "the database file cannot be opened: check its path and its directory"},
	{"", "28P01", "the database refuses the user or the password"},
	{"", "3D000", "there is no database of that name"},
	{"disk is full", "53100", "the disk of the database is full"},
	{"", "42501", "a permission is missing: see Permissions in the documentation of sqljournal"},
}
