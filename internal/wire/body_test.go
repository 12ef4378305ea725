package wire_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// hostile are texts that an encoder may trip over.
var hostile = []string{
	"a", "a b", "a+b", "a&b=c", "a;b", "100%", "%2e", "a=b", "?", "#", "/", `\`, `"`, `'`, "\r\n", "\n--x", "\x00", "\x7f",
	"é", "中文", "😀", "\u2028", "<&>", " lead", "trail ", "Content-Type: text/html\r\n\r\nx",
}

func TestFieldsAddLeavesOutWhatIsEmpty(t *testing.T) {
	t.Parallel()
	var f wire.Fields
	f.Add("b", "2")
	f.Add("none", "")
	f.Add("a", "1")
	f.Add("zero", "0")
	assert.Equal(t, wire.Fields{{Name: "b", Value: "2"}, {Name: "a", Value: "1"}, {Name: "zero", Value: "0"}}, f)
}

func TestForm(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "", wire.Fields(nil).Form())
	assert.Equal(t, "cardId=c1", wire.Fields{{Name: "cardId", Value: "c1"}}.Form())
	assert.Equal(t, "b=2&a=x+%26+y%3D1&c=%C3%A9%2B",
		wire.Fields{{Name: "b", Value: "2"}, {Name: "a", Value: "x & y=1"}, {Name: "c", Value: "é+"}}.Form())

	for _, name := range hostile {
		for _, value := range append(hostile, "") {
			got, err := url.ParseQuery(wire.Fields{{Name: name, Value: value}, {Name: "last", Value: value}}.Form())
			require.NoError(t, err)
			assert.Equal(t, url.Values{name: {value}, "last": {value}}, got)
		}
	}
}

func TestJSONFields(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `{}`, string(wire.Fields(nil).JSON()))
	assert.Equal(t, `{"merchantOrderNo":"m 1"}`, string(wire.Fields{{Name: "merchantOrderNo", Value: "m 1"}}.JSON()))
	assert.Equal(t, `{"b":"2","a":"say \"é\"\u000a","n":"007"}`,
		string(wire.Fields{{Name: "b", Value: "2"}, {Name: "a", Value: "say \"é\"\n"}, {Name: "n", Value: "007"}}.JSON()))

	for _, name := range hostile {
		for _, value := range append(hostile, "") {
			var got map[string]string
			require.NoError(t, json.Unmarshal(wire.Fields{{Name: name, Value: value}, {Name: "last", Value: value}}.JSON(), &got))
			assert.Equal(t, map[string]string{name: value, "last": value}, got)
		}
	}
}

func TestDigestOfKnownFields(t *testing.T) {
	t.Parallel()
	// printf '' | sha256sum, and printf '1:a1:x1:b0:' | sha256sum
	assert.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", wire.Fields(nil).Digest())
	assert.Equal(t, "8b07a168687665d49c5b01c2a453f454b00db35004e5df6ecba2a88dd41588a6", wire.Fields{{Name: "b", Value: ""}, {Name: "a", Value: "x"}}.Digest())
}

func TestDigestDoesNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	for _, fields := range []wire.Fields{
		{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c", Value: "3"}},
		{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}, {Name: "a", Value: ""}},
		{{Name: "a\x00", Value: "b"}, {Name: "a", Value: "\x00b"}, {Name: "", Value: "a\x00\x00b"}},
	} {
		given := slices.Clone(fields)
		want := fields.Digest()
		assert.Equal(t, given, fields, "the fields are written in their own order afterwards")
		for _, order := range [][]int{{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			assert.Equal(t, want, wire.Fields{fields[order[0]], fields[order[1]], fields[order[2]]}.Digest(), "%q", fields)
		}
	}
}

func TestDigestTellsFieldsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]wire.Fields{}
	for _, fields := range []wire.Fields{
		nil,
		{{Name: "", Value: ""}},
		{{Name: "", Value: ""}, {Name: "", Value: ""}},
		{{Name: "a", Value: ""}},
		{{Name: "", Value: "a"}},
		{{Name: "a", Value: "b"}},
		{{Name: "b", Value: "a"}},
		{{Name: "ab", Value: ""}},
		{{Name: "a", Value: "b"}, {Name: "a", Value: "b"}},
		{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}},
		{{Name: "a", Value: "d"}, {Name: "c", Value: "b"}},
		{{Name: "a", Value: "b1:c1:d"}},
		{{Name: "a1:b1:c", Value: "d"}},
		{{Name: "a", Value: "1:b"}},
		{{Name: "a1:", Value: "b"}},
		{{Name: "a", Value: "b&c=d"}},
		{{Name: "a", Value: "b\x00c"}},
		{{Name: "a\x00b", Value: "c"}},
		{{Name: "a", Value: "B"}},
		{{Name: "a", Value: "b "}},
		{{Name: "a", Value: strings.Repeat("b", 11)}},
		{{Name: "a", Value: "1.0"}},
		{{Name: "a", Value: "1.00"}},
	} {
		digest := fields.Digest()
		assert.NotContains(t, seen, digest, "%q and %q", fields, seen[digest])
		seen[digest] = fields
	}
}

// part is one part of a multipart body, as the other side reads it.
type part struct{ Name, Filename, ContentType, Body string }

func parts(t testing.TB, m wire.Multipart, file string) (list []part) {
	t.Helper()
	media, params, err := mime.ParseMediaType(m.ContentType)
	require.NoError(t, err)
	require.Equal(t, "multipart/form-data", media)
	body := bytes.Join(m.Pieces, []byte(file))
	r := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err)
		text, err := io.ReadAll(p)
		require.NoError(t, err)
		list = append(list, part{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), string(text)})
	}
}

func TestMultipartText(t *testing.T) {
	t.Parallel()
	m, err := wire.NewMultipart([]wire.FormPart{{Name: "cardId", Value: "c1"}, {Name: "clientTransactionId", Value: ""}})
	require.NoError(t, err)
	boundary := strings.TrimPrefix(m.ContentType, "multipart/form-data; boundary=")
	assert.Equal(t, strings.ReplaceAll("--BOUNDARY\r\nContent-Disposition: form-data; name=\"cardId\"\r\n\r\nc1\r\n"+
		"--BOUNDARY\r\nContent-Disposition: form-data; name=\"clientTransactionId\"\r\n\r\n"+
		"\r\n--BOUNDARY--\r\n", "BOUNDARY", boundary), string(bytes.Join(m.Pieces, nil)))

	m, err = wire.NewMultipart([]wire.FormPart{{Name: "file", Filename: "id card.png", ContentType: "image/png"}})
	require.NoError(t, err)
	boundary = strings.TrimPrefix(m.ContentType, "multipart/form-data; boundary=")
	assert.Equal(t, strings.ReplaceAll("--BOUNDARY\r\nContent-Disposition: form-data; name=\"file\"; filename=\"id card.png\"\r\n"+
		"Content-Type: image/png\r\n\r\n", "BOUNDARY", boundary), string(m.Pieces[0]))
	assert.Equal(t, "\r\n--"+boundary+"--\r\n", string(m.Pieces[1]))
}

func TestMultipartIsReadBack(t *testing.T) {
	t.Parallel()
	for _, value := range append(hostile, "") {
		m, err := wire.NewMultipart([]wire.FormPart{{Name: "a", Value: value}, {Name: "b", Value: "2"}})
		require.NoError(t, err)
		assert.Equal(t, []part{{Name: "a", Body: value}, {Name: "b", Body: "2"}}, parts(t, m, ""), "%q", value)
	}
	for _, name := range []string{"a.png", "паспорт.jpg", "身分證.png", "😀.gif", "a b.png", "a;b.png", "a=b,c.png", "a'b.png", "100%.png", "%22.png", ".png", "a..b"} {
		m, err := wire.NewMultipart([]wire.FormPart{{Name: "a", Value: "1"}, {Name: "file", Filename: name, ContentType: "image/png"}})
		require.NoError(t, err)
		assert.Equal(t, []part{{Name: "a", Body: "1"}, {"file", name, "image/png", "\x89PNG\r\n--"}}, parts(t, m, "\x89PNG\r\n--"), "%q", name)
	}
}

func TestMultipartWithSeveralFiles(t *testing.T) {
	t.Parallel()
	m, err := wire.NewMultipart([]wire.FormPart{
		{Name: "a", Filename: "a.png", ContentType: "image/png"}, {Name: "b", Value: "2"}, {Name: "c", Filename: "c.jpg", ContentType: "image/jpeg"},
	})
	require.NoError(t, err)
	assert.Len(t, m.Pieces, 3)
	assert.Equal(t, []part{{"a", "a.png", "image/png", "x"}, {Name: "b", Body: "2"}, {"c", "c.jpg", "image/jpeg", "x"}}, parts(t, m, "x"))
}

func TestEveryMultipartHasABoundaryOfItsOwn(t *testing.T) {
	t.Parallel()
	first, err := wire.NewMultipart(nil)
	require.NoError(t, err)
	second, err := wire.NewMultipart(nil)
	require.NoError(t, err)
	assert.NotEqual(t, first.ContentType, second.ContentType)
}
