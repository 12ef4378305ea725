package check_test

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

func FuzzGiven(f *testing.F) {
	for _, id := range slices.Concat(slices.Collect(maps.Values(hostileIDs))...) {
		if len(id) < 1000 {
			f.Add(id)
		}
	}
	f.Fuzz(func(t *testing.T, id string) {
		if err := check.Given("CardID", id); err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "CardID "))
			return
		}
		require.True(t, utf8.ValidString(id))
		require.NotEmpty(t, id)
		require.Equal(t, strings.TrimSpace(id), id)
		require.False(t, strings.ContainsFunc(id, unicode.IsControl))
		require.False(t, strings.ContainsFunc(id, func(r rune) bool { return unicode.Is(unicode.Cf, r) }))
		require.LessOrEqual(t, len(id), 128)
		// It arrives as it was given.
		got, err := url.ParseQuery(wire.Fields{{Name: "id", Value: id}}.Form())
		require.NoError(t, err)
		require.Equal(t, url.Values{"id": {id}}, got)
	})
}

func FuzzCleaned(f *testing.F) {
	for _, id := range slices.Concat(slices.Collect(maps.Values(hostileIDs))...) {
		f.Add([]byte(id))
	}
	f.Add([]byte(strings.Repeat("x", 127) + " é"))
	f.Fuzz(func(t *testing.T, id []byte) {
		given := bytes.Clone(id)
		clean := check.Cleaned(id)
		require.Equal(t, given, id, "it is changed in place")
		require.NoError(t, check.Visible("ID", string(clean)))
		if check.Visible("ID", string(id)) == nil {
			require.Equal(t, id, clean)
			return
		}
		require.Less(t, len(clean), len(id))
		rest := []rune(string(id))
		for _, r := range string(clean) { // nothing is added, and the order stays
			i := slices.Index(rest, r)
			require.GreaterOrEqual(t, i, 0)
			rest = rest[i+1:]
		}
	})
}
