package transport

import (
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var seconds = regexp.MustCompile(`^[0-9]+$`)

func FuzzRetryAfter(f *testing.F) {
	for _, text := range []string{
		"", "0", "5", " 5 ", "007", "-1", "+5", "1.5", "1e3", "5s", "0x10", "1_000", "\u0665", "5\n", "\u00a05", "\x005", "nan",
		"315360000", "315360001", "9223372036", "9223372037", "18446744073709551615", "18446744073709551616", strings.Repeat("9", 1000),
		"Sat, 01 Jan 2000 00:00:30 GMT", "Saturday, 01-Jan-00 00:00:30 GMT", "Sat Jan  1 00:00:30 2000",
		"Fri, 31 Dec 1999 23:59:59 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 01 Jan 0001 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:30 CEST",
	} {
		f.Add(text, int64(946_684_800))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		now := time.Unix(unix%(1<<35), 0) // within a thousand years of 1970
		got := parseRetryAfter(text, now)
		require.Zero(t, got%time.Second, "nothing but whole seconds are asked for")
		text = strings.TrimSpace(text)
		at, err := http.ParseTime(text)
		switch {
		case seconds.MatchString(text):
			n, _ := new(big.Int).SetString(text, 10)
			if most := big.NewInt(10 * 365 * 24 * 60 * 60); n.Cmp(most) > 0 {
				n = most
			}
			require.Equal(t, n.Int64(), int64(got/time.Second))
		case err == nil:
			require.Equal(t, min(max(at.Unix()-now.Unix(), 0), 10*365*24*60*60), int64(got/time.Second))
		default:
			require.Zero(t, got, "what is neither asks for nothing")
		}
	})
}
