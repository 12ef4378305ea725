package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/wire"
)

func TestParseDate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want string // "": refused
	}{
		{"2026-01-31", "2026 1 31"},
		{"2024-02-29", "2024 2 29"},
		{"2000-02-29", "2000 2 29"},
		{"0001-01-01", "1 1 1"},
		{"9999-12-31", "9999 12 31"},
		{"2023-02-29", ""},
		{"1900-02-29", ""},
		{"2100-02-29", ""},
		{"2024-02-30", ""},
		{"2026-04-31", ""},
		{"2026-06-31", ""},
		{"2026-09-31", ""},
		{"2026-11-31", ""},
		{"2026-01-32", ""},
		{"2026-01-00", ""},
		{"2026-00-01", ""},
		{"2026-13-01", ""},
		{"0000-01-01", ""},
		{"", ""},
		{"2026-1-01", ""},
		{"2026-01-1", ""},
		{"26-01-01", ""},
		{"02026-01-01", ""},
		{"2026/01/01", ""},
		{"2026-01/01", ""},
		{"2026.01-01", ""},
		{"2026-01-01 ", ""},
		{" 2026-01-01", ""},
		{"2026-01- 1", ""},
		{"+026-01-01", ""},
		{"-026-01-01", ""},
		{"2026-+1-01", ""},
		{"202a-01-01", ""},
		{"2026-0a-01", ""},
		{"2026-01-0a", ""},
		{"2026-01-0\x00", ""},
		{"20\u0662-01-01", ""},
	} {
		year, month, day, ok := wire.ParseDate([]byte(test.text))
		assert.Equal(t, test.want != "", ok, "of %q", test.text)
		if ok {
			assert.Equal(t, test.want, fmt.Sprint(year, month, day))
		}
	}
}

// Four hundred years are what the calendar repeats itself after.
func TestEveryMonthEndsWhenItEnds(t *testing.T) {
	t.Parallel()
	for year := 1800; year < 2200; year++ {
		for month := time.January; month <= time.December; month++ {
			last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
			_, _, _, ok := wire.ParseDate(fmt.Appendf(nil, "%04d-%02d-%02d", year, month, last))
			_, _, _, after := wire.ParseDate(fmt.Appendf(nil, "%04d-%02d-%02d", year, month, last+1))
			if !ok || after {
				t.Fatalf("%d-%d has %d days", year, month, last)
			}
		}
	}
}

func TestParseClock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want string // "": refused
	}{
		{"00:00:00", "0 0 0"},
		{"23:59:59", "23 59 59"},
		{"01:02:03", "1 2 3"},
		{"24:00:00", ""},
		{"00:60:00", ""},
		{"23:59:60", ""}, // a leap second has no place in time.Time
		{"", ""},
		{"1:02:03", ""},
		{"01:02", ""},
		{"01:02:03 ", ""},
		{"01:02:03Z", ""},
		{"01-02:03", ""},
		{"01:02-03", ""},
		{"0a:02:03", ""},
		{"01:0a:03", ""},
		{"01:02:0a", ""},
		{"-1:02:03", ""},
		{"01:02:.5", ""},
	} {
		hour, minute, second, ok := wire.ParseClock([]byte(test.text))
		assert.Equal(t, test.want != "", ok, "of %q", test.text)
		if ok {
			assert.Equal(t, test.want, fmt.Sprint(hour, minute, second))
		}
	}
}

func TestParseMonth(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want string // "": refused
	}{
		{"09/2028", "2028 9"},
		{"01/0001", "1 1"},
		{"12/9999", "9999 12"},
		{"00/2028", ""},
		{"13/2028", ""},
		{"09/0000", ""},
		{"", ""},
		{"9/2028", ""},
		{"09/28", ""},
		{"2028/09", ""},
		{"09-2028", ""},
		{"**/****", ""},
		{"0a/2028", ""},
		{"09/202a", ""},
		{"09/2028 ", ""},
		{"+9/2028", ""},
	} {
		year, month, ok := wire.ParseMonth([]byte(test.text))
		assert.Equal(t, test.want != "", ok, "of %q", test.text)
		if ok {
			assert.Equal(t, test.want, fmt.Sprint(year, month))
		}
	}
}
