package check_test

import (
	"bytes"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
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

func FuzzPath(f *testing.F) {
	for _, path := range []string{
		"/", "/cards", "//h", "/a/../b", "/..", "/./", "/a?b", "/a#b", `/\h`, "/%2e%2e", "/a b", "/é",
		"/a:b", "/a;b/..;/c", "/...", "/a\n", "/a\xff", "/a//b", "/@h", "/:80",
	} {
		f.Add(path)
	}
	const base = "https://api.example.com/api/v1"
	f.Fuzz(func(t *testing.T, path string) {
		if err := check.Path(path); err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "Path "))
			return
		}
		u, err := url.Parse(base + path)
		require.NoError(t, err)
		require.Equal(t, "https", u.Scheme)
		require.Equal(t, "api.example.com", u.Host)
		require.Nil(t, u.User)
		require.Equal(t, "/api/v1"+path, u.Path)
		require.Empty(t, u.RawQuery+u.Fragment)
		require.False(t, u.ForceQuery)
		// Whoever resolves dots on the way must find none to resolve.
		resolved := u.ResolveReference(&url.URL{Path: u.Path})
		require.Equal(t, u.Path, resolved.Path)
		require.False(t, strings.ContainsFunc(path, unicode.IsControl))

		// What the server reads is the path that was given.
		var request bytes.Buffer
		require.NoError(t, (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host}).Write(&request))
		line, _, _ := strings.Cut(request.String(), "\r\n")
		target := strings.TrimSuffix(strings.TrimPrefix(line, "GET "), " HTTP/1.1")
		got, err := url.ParseRequestURI(target)
		require.NoError(t, err)
		require.Equal(t, "/api/v1"+path, got.Path)
	})
}

// onePart writes the file as the client does and reads it as a server does.
func onePart(t *testing.T, name, contentType string) *multipart.Part {
	t.Helper()
	m, err := wire.NewMultipart([]wire.FormPart{{Name: "file", Filename: name, ContentType: contentType}})
	require.NoError(t, err)
	_, params, err := mime.ParseMediaType(m.ContentType)
	require.NoError(t, err)
	r := multipart.NewReader(bytes.NewReader(bytes.Join(m.Pieces, []byte("the file"))), params["boundary"])
	p, err := r.NextRawPart()
	require.NoError(t, err)
	body, err := io.ReadAll(p)
	require.NoError(t, err)
	require.Equal(t, "the file", string(body))
	_, err = r.NextRawPart()
	require.Equal(t, io.EOF, err, "there is exactly one part")
	require.Len(t, p.Header, 2, "and it has no header but its own two")
	require.Len(t, p.Header["Content-Disposition"], 1)
	require.Len(t, p.Header["Content-Type"], 1)
	require.Equal(t, "file", p.FormName())
	return p
}

func FuzzFilename(f *testing.F) {
	for _, name := range slices.Concat(slices.Collect(maps.Values(hostileFilenames))...) {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := check.Filename("Filename", name); err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "Filename "))
			return
		}
		require.Equal(t, name, onePart(t, name, "image/png").FileName())
	})
}

func FuzzContentType(f *testing.F) {
	for _, contentType := range []string{
		"image/png", "IMAGE/PNG", "text/plain; charset=utf-8", `a/b; c="d;e"`, `a/b; c="\""`,
		" image/png ", "image/png;", "image/png; a*=utf-8''%0d%0a", "a/b; c*0=d; c*1=e",
		"image/png\r\nX: y", "image/png; a=\"\r\n\"", "image", "/", "a/b;;", "a/b; =", "\u00a0a/b", "a/b\u2028",
	} {
		f.Add(contentType)
	}
	f.Fuzz(func(t *testing.T, contentType string) {
		if err := check.ContentType("ContentType", contentType); err != nil {
			require.EqualError(t, err, "ContentType must be a media type like image/png")
			return
		}
		got := onePart(t, "a.png", contentType).Header.Get("Content-Type")
		require.Equal(t, strings.Trim(contentType, " "), got, "spaces around a header's value are not part of it")
		media, _, err := mime.ParseMediaType(got)
		require.NoError(t, err)
		require.Contains(t, media, "/")
	})
}
