package cardwiretest_test

import (
	"testing"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMemoryJournal(t *testing.T) {
	t.Parallel()
	cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal { return cardwire.NewMemoryJournal() })
}
