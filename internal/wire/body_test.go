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

func TestFieldsAddLeavesOutWhatIsEmpty(t *testing.T) {
	t.Parallel()
	var f wire.Fields
	f.Add("b", "2")
	f.Add("none", "")
	f.Add("a", "1")
	f.Add("zero", "0")
	assert.Equal(t, named("b", "2", "a", "1", "zero", "0"), f)
}

func TestForm(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "", named().Form())
	assert.Equal(t, "b=2&a=x+%26+y%3D1&c=%C3%A9%2B", named("b", "2", "a", "x & y=1", "c", "é+").Form())
}

func TestJSONFields(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `{}`, string(named().JSON()))
	want := `{"b":"2","a":"say \"é\"\u000a","n":"007"}`
	assert.Equal(t, want, string(named("b", "2", "a", "say \"é\"\n", "n", "007").JSON()))
}

func TestDigestOfKnownFields(t *testing.T) {
	t.Parallel()
	// printf '' | sha256sum, and printf '1:a1:x1:b0:' | sha256sum
	assert.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", named().Digest())
	const want = "8b07a168687665d49c5b01c2a453f454b00db35004e5df6ecba2a88dd41588a6"
	assert.Equal(t, want, named("b", "", "a", "x").Digest())
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

func TestEveryMultipartHasABoundaryOfItsOwn(t *testing.T) {
	t.Parallel()
	first, err := wire.NewMultipart(nil)
	require.NoError(t, err)
	second, err := wire.NewMultipart(nil)
	require.NoError(t, err)
	assert.NotEqual(t, first.ContentType, second.ContentType)
}
