package sqljournal

import "errors"

// What the journal says no to. None of the texts holds a reference or a hash.
var (
	// ErrNoIntent says that no such intent was begun.
	ErrNoIntent = errors.New("sqljournal: no such intent was begun: check the operation, the reference and the table")
	// ErrDecided says that the intent is executed, refused or not sent already, so
	// that there is nothing to resolve, or that it was begun again since the entry
	// was read, so that its answer is too old.
	ErrDecided = errors.New("sqljournal: the intent is decided already, or was begun again: list what is undecided anew")
)

// failure is a database's failure. Its text leaves the cause out, because a
// database may quote the values that it stumbled over; errors.As finds it.
type failure struct {
	text  string
	cause error
}

func failed(what string, cause error) error {
	return &failure{"sqljournal: " + what + " failed: check the connection, the schema and the permissions of the database", cause}
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.cause }
