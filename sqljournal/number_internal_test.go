package sqljournal

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A number that a spreadsheet has changed is found again, and no other is taken for it.
func TestWhatASpreadsheetMakesOfANumber(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		order, listed string
		want          bool
	}{
		{"000123", "123", true}, {"123", "000123", true}, {"0", "000", true},
		{"123", "123", false}, {"123", "124", false}, {"1230", "123", false}, {"A-007", "A-7", false},
		{"inv-9", "INV-9", true}, {"M 10", "M 10 ", true}, {"M-10", "M-\u200b10", true}, {"M-10", "\ufeffM-10", true},
		{"M-10", "M-10\u200e", true}, {"M\u00a010", "M 10", true}, {"M-10", "M-1O", false},
		// Fifteen digits are kept. Those behind them are zeros, or a float64's, and never another order's.
		{"202601310000017", "202601310000018", false}, {"2026013100000017", "2026013100000010", true},
		{"2026013100000000171", "2026013100000000000", true}, {"2026013100000000171", "2026013100000000256", true},
		{"2026013100000000171", "2026013100000000300", true}, {"2026013100000000171", "2026013100000000172", false},
		{"2026013199999999999", "2026013199999990000", true}, {"2026013199999999999", "2026013200000000000", true},
		{"2026013100000000000", "2026013100000000171", false}, {"02026013100000000171", "2026013100000000000", true},
		{"2026013100000000171-A", "2026013100000000000-A", false}, {"2026013100000000171", "202601310000000000", false},
	} {
		mayBe := tc.listed != tc.order && slices.Contains(changedForms(tc.order), plainForm(tc.listed))
		assert.Equal(t, tc.want, mayBe, "%q of %q", tc.listed, tc.order)
	}
}
