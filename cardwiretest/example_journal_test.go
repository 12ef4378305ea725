package cardwiretest_test

import (
	"testing"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// Whoever writes a journal, for MySQL or for DynamoDB, has it tested like this.
func ExampleTestJournal() {
	_ = func(t *testing.T) { // in a test file: func TestMyJournal(t *testing.T)
		cardwiretest.TestJournal(t, func(*testing.T) cardwire.Journal {
			return cardwire.NewMemoryJournal() // here: your own, empty
		})
	}
}
