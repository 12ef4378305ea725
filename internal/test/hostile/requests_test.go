// Package hostile_test has the strings and the responses that the client must survive, and
// searches all that it says for secrets.
package hostile_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// hostile are strings that are odd in one way each.
var hostile = []string{
	"a+b", "--a", "a b", " a", "a ", " ", "\u00a0", `a"b`, `{"a":1}`, `a"; filename="b.exe`, "a:b", "a,b", "<script>",
	"'; DROP TABLE cards; --", "a?b", "a#b", "a&b", "a=b", "a;b", "a&id=b",
	// Another place in a path.
	"..", ".", "/", "a/b", "../../admin", "/etc/passwd", `a\b`, `C:\id.png`, `\ufffd`, "..;/admin", "..;a=b",
	"%2e%2e", "%2e%2e%2fadmin", "%2E%2E", "%252e", "%00", "%", "100%", "%0d%0aX-Evil:%201",
	"a\r\nX-Evil: 1", "a\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil\r\n\r\n", "a\nb", "a\rb", "a\r\n", "\n",
	"a\x00b", "\x00", "a\tb", "\x1b[2J", "a\x7fb", "a\u0085b", "a\u2028b", "a\u2029b", "\u202egnp.exe", "a\u2066b",
	// Dots and slashes of other scripts, and letters whose low bytes end a line.
	"a\u00a0b", "\u2024\u2024", "\uff0e\uff0e", "a\u2215b", "a\uff0fb", "\u560d\u560a", "e\u0301", "\u00e9", "\u0661",
	"\U0001f600", "\ufffd", "\ufeffa", "a\u200bb", "10\u00ad01",
	"a\xffb", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xc3", // not UTF-8
	strings.Repeat("\u00fc", 500), strings.Repeat("a", 100_000),
}

// place is somewhere in a request where a caller-supplied string is sent. There is one for each
// way in which a request is written; which strings a field takes is in internal/check.
type place struct {
	sent   string              // what the service reads, as readBack writes it; § is the string, quoted
	refuse error               // what a refusal is
	benign string              // a string that is sent; "": card-1
	as     func(string) string // what stands in place of §; nil: the string
	call   func(context.Context, *recorder, string) error
}

// connect returns a client of the service.
func connect(s *recorder, base, key string, opts ...cardwire.Option) (*cardwire.Client, error) {
	return cardwire.New("https://api.example.com/api/v1/"+base, key, append(opts, wiretest.InMemory(),
		cardwire.WithAnyBasePath(), cardwire.WithRetry(cardwire.RetryPolicy{}),
		cardwire.WithHTTPClient(&http.Client{Transport: s}))...)
}

// capacity is a call with the client, if there is one.
func capacity(ctx context.Context, c *cardwire.Client, err error, opts ...cardwire.CallOption) error {
	if err == nil {
		_, err = c.CardCapacity(ctx, opts...)
	}
	return err
}

// given is a call of a method with the string among what it is given.
func given(method string, put func(g *wiretest.Given, text string)) func(context.Context, *recorder, string) error {
	return func(ctx context.Context, s *recorder, text string) error {
		c, err := connect(s, "", wiretest.Key)
		if err != nil {
			return err
		}
		g := wiretest.Given{
			Freeze:   cardwire.FreezeCardParams{CardID: "c-1", ClientTransactionID: wiretest.FreezeID},
			Transfer: wiretest.SmallTransfer("m-1"),
			Image:    cardwire.UploadImageParams{Filename: "a.gif", Data: []byte("GIF89a")},
			Request:  cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", ReadOnly: true},
		}
		put(&g, text)
		return wiretest.MethodsGiven(g)[method](ctx, c)
	}
}

func places() map[string]place {
	const (
		post   = `POST "/api/v1/ask" map[] map[]`
		upload = `POST "/api/v1/cards/upload" map[] map[] part map["filename":%s "name":"file"] %s "GIF89a"`
		count  = `GET "/api/v1/account/capacity" `
	)
	invalid, setup := cardwire.ErrInvalidParams, cardwire.ErrSetup
	bearer := func(key string) string { return "Bearer " + key }
	return map[string]place{
		"the base URL": {`GET § map[] map[]`, setup, "", func(text string) string {
			return strings.TrimRight("/api/v1/"+text, "/") + "/account/capacity"
		}, func(ctx context.Context, s *recorder, text string) error {
			c, err := connect(s, text, wiretest.Key)
			return capacity(ctx, c, err)
		}},
		"the key": {count + `map["Authorization":[§]] map[]`, setup, "", bearer,
			func(ctx context.Context, s *recorder, text string) error {
				c, err := connect(s, "", text)
				return capacity(ctx, c, err)
			}},
		"a key source's": {count + `map["Authorization":[§]] map[]`, setup, "", bearer,
			func(ctx context.Context, s *recorder, text string) error {
				c, err := connect(s, "", wiretest.Key, cardwire.WithKeySource(
					func(context.Context) (string, error) { return text, nil }))
				return capacity(ctx, c, err)
			}},
		"a user agent": {count + `map["User-Agent":[§]] map[]`, setup, "", func(text string) string {
			return strings.TrimSpace(text + " cardwire-go/*")
		}, func(ctx context.Context, s *recorder, text string) error {
			c, err := connect(s, "", wiretest.Key, cardwire.WithUserAgent(text))
			return capacity(ctx, c, err)
		}},
		"a header's name": {count + `map[§:["v"]] map[]`, setup, "", http.CanonicalHeaderKey,
			func(ctx context.Context, s *recorder, text string) error {
				c, err := connect(s, "", wiretest.Key)
				return capacity(ctx, c, err, cardwire.WithHeader(text, "v"))
			}},
		"a header's value": {count + `map["X-Trace":[§]] map[]`, setup, "", func(text string) string {
			return strings.Trim(text, " ") // white space around it is not part of it
		}, func(ctx context.Context, s *recorder, text string) error {
			c, err := connect(s, "", wiretest.Key)
			return capacity(ctx, c, err, cardwire.WithHeader("X-Trace", text))
		}},
		"a parameter's name": {`GET "/api/v1/cards/info" map[] map[§:["c-1"]]`, setup, "", nil,
			func(ctx context.Context, s *recorder, text string) error {
				c, err := connect(s, "", wiretest.Key,
					cardwire.WithProfile(func(p *cardwire.Profile) { p.CardIDParam = text }))
				if err == nil {
					_, err = c.GetCard(ctx, "c-1")
				}
				return err
			}},
		"a parameter": {`GET "/api/v1/cards/info" map[] map["id":[§]]`, invalid, "", nil,
			given("GetCard", func(g *wiretest.Given, text string) { g.Card = text })},
		"a query's name": {post[:len(post)-5] + `map[§:["v"]] form map[]`, invalid, "", nil,
			given("Call", func(g *wiretest.Given, text string) { g.Request.Query = url.Values{text: {"v"}} })},
		"a path": {`POST § map[] map[] form map[]`, invalid, "",
			func(text string) string { return "/api/v1/ask/" + text },
			given("Call", func(g *wiretest.Given, text string) { g.Request.Path += "/" + text })},
		"a form's name": {post + ` form map[§:["v"]]`, invalid, "", nil,
			given("Call", func(g *wiretest.Given, text string) { g.Request.Form = url.Values{text: {"v"}} })},
		"a form's value": {`POST "/api/v1/cards/private" map[] map[] form map["cardId":[§]]`, invalid, "", nil,
			given("GetCardSecrets", func(g *wiretest.Given, text string) { g.Card = text })},
		"JSON": {post + ` JSON map[§:§]`, invalid, "", nil,
			given("Call", func(g *wiretest.Given, text string) { g.Request.JSON = map[string]string{text: text} })},
		"a transfer's field": {`POST "/api/v1/remittance/transfer" map[] map[] JSON map["merchantOrderNo":"m-1" ` +
			`"payoutCurrency":"EUR" "senderAddress":§ "transferAmount":"10.50"]`, invalid, "", nil,
			given("CreateTransfer", func(g *wiretest.Given, text string) { g.Transfer.SenderAddress = text })},
		"a reference": {`POST "/api/v1/remittance/transfer" map[] map[] JSON map["merchantOrderNo":§ ` +
			`"payoutCurrency":"EUR" "transferAmount":"10.50"]`, invalid, "", nil,
			given("CreateTransfer", func(g *wiretest.Given, text string) { g.Transfer.MerchantOrderNo = text })},
		"a part's name": {post + ` part map["name":§] "" "v"`, invalid, "", nil,
			given("Call", func(g *wiretest.Given, text string) {
				g.Request.Multipart = []cardwire.Part{{Name: text, Value: "v"}}
			})},
		"a part's value": {`POST "/api/v1/cards/suspend" map[] map[] part map["name":"cardId"] "" § ` +
			`part map["name":"clientTransactionId"] "" "` + wiretest.FreezeID + `"`, invalid, "", nil,
			given("FreezeCard", func(g *wiretest.Given, text string) { g.Freeze.CardID = text })},
		"a file's name": {fmt.Sprintf(upload, "§", `"image/gif"`), invalid, "", nil,
			given("UploadImage", func(g *wiretest.Given, text string) { g.Image.Filename = text })},
		"a file's type": {fmt.Sprintf(upload, `"a.gif"`, "§"), invalid, `image/x-scan; q="1"`, nil,
			given("UploadImage", func(g *wiretest.Given, text string) { g.Image.ContentType = text })},
	}
}

// Each string is refused before a connection is made, or stands in the bytes that the service
// reads exactly where it belongs and nowhere else.
func TestHostileStrings(t *testing.T) {
	t.Parallel()
	for name, p := range places() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			benign := cmp.Or(p.benign, "card-1")
			for _, text := range append([]string{benign}, hostile...) {
				s := new(recorder)
				err := p.call(t.Context(), s, text)
				if len(s.requests) == 0 {
					assert.NotEqual(t, benign, text)
					p.assertRefused(t, err, text)
					continue
				}
				require.Len(t, s.requests, 1)
				assert.ErrorIs(t, err, cardwire.ErrNotFound, "which is the response to every request")
				arrived := text
				if p.as != nil {
					arrived = p.as(text)
				}
				want, got := strings.ReplaceAll(p.sent, "§", strconv.Quote(arrived)), readBack(t, s.requests[0])
				assert.True(t, want == got, "%.500s\nand not\n%.500s", got, want)
			}
		})
	}
}

func (p *place) assertRefused(t *testing.T, err error, text string) {
	t.Helper()
	assert.Equal(t, cardwire.OutcomeNotSent, wiretest.Failure(t, err).Outcome, "of %.60q", text)
	assert.ErrorIs(t, err, p.refuse, "of %.60q", text)
	if len(text) > 2 {
		assert.NotContains(t, err.Error(), text)
	}
}

const nothingThere = `{"code":404,"msg":"the card does not exist","data":null}`

// recorder is a service that responds with 404, and has the bytes of what net/http would
// write of each request.
type recorder struct{ requests []string }

func (s *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	var raw strings.Builder
	if err := r.Write(&raw); err != nil {
		return nil, err
	}
	s.requests = append(s.requests, raw.String())
	return wiretest.Response(r, 200, nothingThere), nil
}

// readBack writes down what the bytes of one request say: the method and the path, the
// headers that not every request has, and what is in the query and the body. It insists
// that there is nothing else.
func readBack(t *testing.T, raw string) string {
	t.Helper()
	head, _, _ := strings.Cut(raw, "\r\n\r\n")
	require.NotRegexp(t, `[^\t\r\n -~]|[^\r]\n`, head)
	in := bufio.NewReader(strings.NewReader(raw))
	r, err := http.ReadRequest(in)
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Zero(t, in.Buffered())
	require.Equal(t, "api.example.com", r.Host)
	content := r.Header.Get("Content-Type")
	agent := regexp.MustCompile(`cardwire-go/[0-9a-z.+-]+$`)
	r.Header.Set("User-Agent", agent.ReplaceAllString(r.Header.Get("User-Agent"), "cardwire-go/*"))
	for name, usual := range map[string]string{
		"Accept": "application/json", "Authorization": "Bearer " + wiretest.Key, "User-Agent": "cardwire-go/*",
		"Content-Length": strconv.Itoa(len(body)), "Connection": r.Header.Get("Connection"), "Content-Type": content,
		"Accept-Encoding": "gzip",
	} {
		if slices.Equal(r.Header[name], []string{usual}) {
			delete(r.Header, name)
		}
	}
	said := fmt.Sprintf("%s %q %q %q", r.Method, r.URL.Path, r.Header, pairs(t, r.URL.RawQuery))
	return said + bodyBack(t, content, string(body))
}

func pairs(t *testing.T, text string) url.Values {
	t.Helper()
	require.NotRegexp(t, `[^!-~]|[";<>]`, text, "it is not escaped")
	values, err := url.ParseQuery(text)
	require.NoError(t, err)
	return values
}

func bodyBack(t *testing.T, content, body string) string {
	t.Helper()
	media, params, _ := mime.ParseMediaType(content)
	switch media {
	case "application/x-www-form-urlencoded":
		return fmt.Sprintf(" form %q", pairs(t, body))
	case "application/json":
		var object map[string]string
		require.NoError(t, json.Unmarshal([]byte(body), &object))
		return fmt.Sprintf(" JSON %q", object)
	case "multipart/form-data":
		require.Regexp(t, `^[0-9a-f]{60}$`, params["boundary"])
		require.True(t, strings.HasPrefix(body, "--"+params["boundary"]+"\r\n"))
		require.True(t, strings.HasSuffix(body, "\r\n--"+params["boundary"]+"--\r\n"))
		return partsBack(t, multipart.NewReader(strings.NewReader(body), params["boundary"]))
	}
	require.Empty(t, body)
	return ""
}

func partsBack(t *testing.T, parts *multipart.Reader) (text string) {
	t.Helper()
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return text
		}
		require.NoError(t, err)
		content, err := io.ReadAll(part)
		require.NoError(t, err)
		disposition, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		require.NoError(t, err)
		require.Equal(t, "form-data", disposition)
		text += fmt.Sprintf(" part %q %q %q", params, part.Header.Get("Content-Type"), content)
		delete(part.Header, "Content-Disposition")
		delete(part.Header, "Content-Type")
		require.Empty(t, part.Header)
	}
}
