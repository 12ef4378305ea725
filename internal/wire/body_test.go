package wire_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// named are fields with these names and values, in turns.
func named(pairs ...string) (f wire.Fields) {
	for i := 0; i < len(pairs); i += 2 {
		f = append(f, wire.Field{Name: pairs[i], Value: pairs[i+1]})
	}
	return f
}

func TestDigestDoesNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	for _, f := range []wire.Fields{
		named("a", "1", "b", "2", "c", "3"), named("a", "1", "a", "2", "a", ""),
		named("a\x00", "b", "a", "\x00b", "", "a\x00\x00b"),
	} {
		given := slices.Clone(f)
		want := f.Digest()
		assert.Equal(t, given, f, "the fields are written in their own order afterwards")
		for _, o := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			assert.Equal(t, want, wire.Fields{f[o[0]], f[o[1]], f[o[2]]}.Digest(), "%q", f)
		}
	}
}

func TestDigestTellsFieldsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]wire.Fields{}
	for _, f := range []wire.Fields{
		named(), named("", ""), named("", "", "", ""), named("a", ""), named("", "a"), named("a", "b"), named("b", "a"),
		named("ab", ""), named("a", "b", "a", "b"), named("a", "b", "c", "d"), named("a", "d", "c", "b"),
		named("a", "b1:c1:d"),
		named("a1:b1:c", "d"), named("a", "1:b"), named("a1:", "b"), named("a", "b&c=d"), named("a", "b\x00c"),
		named("a\x00b", "c"), named("a", "B"), named("a", "b "), named("a", strings.Repeat("b", 11)), named("a", "1.0"),
		named("a", "1.00"),
	} {
		digest := f.Digest()
		assert.NotContains(t, seen, digest, "%q and %q", f, seen[digest])
		seen[digest] = f
	}
}

func TestMultipartAsSent(t *testing.T) {
	t.Parallel()
	sent := func(form ...wire.FormPart) string {
		m, err := wire.NewMultipart(form)
		require.NoError(t, err)
		boundary := strings.TrimPrefix(m.ContentType, "multipart/form-data; boundary=")
		return strings.ReplaceAll(string(bytes.Join(m.Pieces, []byte("FILE"))), boundary, "BOUNDARY")
	}
	assert.Equal(t, "--BOUNDARY\r\nContent-Disposition: form-data; name=\"cardId\"\r\n\r\nc1\r\n"+
		"--BOUNDARY\r\nContent-Disposition: form-data; name=\"empty\"\r\n\r\n"+
		"\r\n--BOUNDARY--\r\n", sent(wire.FormPart{Name: "cardId", Value: "c1"}, wire.FormPart{Name: "empty"}))
	assert.Equal(t, "--BOUNDARY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"id card.png\"\r\n"+
		"Content-Type: image/png\r\n\r\nFILE\r\n--BOUNDARY--\r\n",
		sent(wire.FormPart{Name: "file", Filename: "id card.png", ContentType: "image/png"}))
}
