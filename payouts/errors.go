package payouts

import (
	"errors"
	"fmt"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var (
	// ErrConflict is returned if what is asked for does not fit what is on record, and nothing has changed: an order number is
	// another transfer's, an order is in another state, or the service could still execute what is to be denied.
	ErrConflict = errors.New("payouts: this does not fit what is on record")
	// ErrNoOrder is returned if there is no such order.
	ErrNoOrder = errors.New("payouts: there is no such order")
)

// conflict is an ErrConflict.
func conflict(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrConflict, fmt.Errorf(format, args...))
}

// invalid is a cardwire.ErrInvalidParams.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", cardwire.ErrInvalidParams, fmt.Errorf(format, args...))
}

var errText = invalid("a string must be UTF-8 without NUL")

// refusal returns why a change does not fit what is on record, or is invalid, as an error of this package; nil: something is
// broken, or nothing is wrong.
func refusal(err error) error {
	for _, known := range []error{ErrConflict, ErrNoOrder, cardwire.ErrInvalidParams} {
		if errors.Is(err, known) {
			return err
		}
	}
	for _, known := range []error{
		cardwire.ErrDuplicateIntent, cardwire.ErrOtherBody, sqljournal.ErrDecided, sqljournal.ErrNoIntent, sqljournal.ErrMoved,
		sqljournal.ErrUncertain, journal.ErrOnHold,
	} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", ErrConflict, err)
		}
	}
	return nil
}
