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
	"reflect"
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

// This file tries hostile strings in every string that a caller passes. Each is refused
// before a connection is made, or stands in the bytes that the service reads exactly
// where it belongs and nowhere else. Which are refused is in internal/check.

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

// passed is everything that a caller passes and that is sent.
type passed struct {
	wiretest.Given

	Base, Key, KeySource, UserAgent string
	HeaderName, HeaderValue         string
	Profile                         cardwire.Profile
}

// input is one string of passed, and a call that sends it.
type input struct {
	path    string // as leaves has it
	op      string // a method
	sent    string // what the service reads, as readBack writes it; § is the string, quoted
	without string // what it reads where the string is ""; "": that is refused; same: as sent
}

// benign are strings that are sent; elsewhere card-1 is.
var benign = map[string]string{
	"List.CardBIN": "493193", "Operation": wiretest.UUID, "Freeze.ClientTransactionID": wiretest.UUID,
	"Image.ContentType": `image/x-scan; q="1"`, "Request.Multipart.File.ContentType": `image/x-scan; q="1"`,
	"Request.Method": "GET", "Transfer.PayoutCurrency": "PHP", "Transfer.TransferType": "3",
	"Transfer.PayoutMethod":                  "1",
	"Transfer.SenderBeneficiaryRelationship": "01", "Transfer.SenderSourceOfFund": "2",
	"Transfer.PurposeOfRemittance": "7", "Transfer.SenderIDType": "4", "Transfer.SenderNationality": "PT",
	"Transfer.SenderIDIssueCountry": "620", "Transfer.SenderCountry": "pt", "Transfer.ReceiverIDType": "5",
}

// as is what stands in place of § where that is not the string.
var as = map[string]func(string) string{
	"Key": bearer, "KeySource": bearer, "HeaderName": http.CanonicalHeaderKey,
	"Base":         func(text string) string { return strings.TrimRight("/api/v1/"+text, "/") + "/bins" },
	"Request.Path": func(text string) string { return "/api/v1/ask/" + text },
	"UserAgent":    func(text string) string { return strings.TrimSpace(text + " cardwire-go/*") },
	"HeaderValue":  func(text string) string { return strings.Trim(text, " ") }, // white space around it is not part of it
}

// ofSetup are what is wrong in the program, or in its configuration, and not in what it sends.
var ofSetup = []string{"Base", "Key", "UserAgent", "HeaderName", "HeaderValue", "Request.Op"}

func bearer(key string) string { return "Bearer " + key }

// given makes what is passed beside the string: in a call by the method, and for a path.
var given = map[string]func(*passed){
	"GetCard": func(p *passed) { p.Card = "c-1" }, "HeaderName": func(p *passed) { p.HeaderValue = "v" },
	"HeaderValue":         func(p *passed) { p.HeaderName = "X-Trace" },
	"List.SubAccountID":   func(p *passed) { p.Profile.SubAccountParam = "sub" },
	"Profile.RetryAction": func(p *passed) { p.Operation = wiretest.UUID },
	"FreezeCard": func(p *passed) {
		p.Freeze = cardwire.FreezeCardParams{CardID: "c-1", ClientTransactionID: wiretest.UUID}
	},
	"UploadImage": func(p *passed) { p.Image = cardwire.UploadImageParams{Filename: "a.gif", Data: []byte("GIF89a")} },
	"CreateTransfer": func(p *passed) {
		p.Transfer = wiretest.SmallTransfer("m-1")
		p.Transfer.PayoutCurrency = ""
	},
	"Call": func(p *passed) {
		p.Request = cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", Reference: "r-1"}
	},
	"Request.Query, name": asked, "Request.Query, value": asked, "Request.Path": asked, "Request.Method": asked,
	"Request.Multipart.Name":             func(p *passed) { p.Request.Multipart = []cardwire.Part{{Value: "v"}} },
	"Request.Multipart.Value":            func(p *passed) { p.Request.Multipart = []cardwire.Part{{Name: "n"}} },
	"Request.Multipart.File.Filename":    filed,
	"Request.Multipart.File.ContentType": filed,
}

func asked(p *passed) { p.Request.Method, p.Request.Reference = "GET", "" }

func filed(p *passed) {
	image := cardwire.UploadImageParams{Filename: "a.gif", Data: []byte("GIF89a")}
	p.Request.Multipart = []cardwire.Part{{Name: "file", File: &image}}
}

const (
	same     = "same"
	getCards = `GET "/api/v1/cards" map[] `
	getCard  = `GET "/api/v1/cards/info" map[] `
	secrets  = `POST "/api/v1/cards/private" map[] map[] form map["cardId":[§]]`
	adjust   = `POST "/api/v1/cards/adjustAction" map[] map[] form map["client_transaction_id":[%s] "type":[%s]]`
	freeze   = `POST "/api/v1/cards/suspend" map[] map[]` +
		` part map["name":"cardId"] "" %s part map["name":"clientTransactionId"] "" %s`
	ask    = `GET "/api/v1/ask" map[] `
	post   = `POST "/api/v1/ask" map[] map[]`
	file   = ` part map["filename":%s "name":"file"] %s "GIF89a"`
	upload = `POST "/api/v1/cards/upload" map[] map[]` + file
)

func inputs() []input {
	text, uuid, gif, name := fmt.Sprintf, strconv.Quote(wiretest.UUID), `"image/gif"`, `"a.gif"`
	aUUID, typed := `"a random UUID"`, text(file, name, gif)
	return slices.Concat(transferInputs(), listInputs(), []input{
		{"Base", "ListBINs", `GET § map[] map[]`, same},
		{"Key", "ListBINs", `GET "/api/v1/bins" map["Authorization":[§]] map[]`, ""},
		{"KeySource", "ListBINs", `GET "/api/v1/bins" map["Authorization":[§]] map[]`, ""},
		{"UserAgent", "ListBINs", `GET "/api/v1/bins" map["User-Agent":[§]] map[]`, ""},
		{"HeaderName", "ListBINs", `GET "/api/v1/bins" map[§:["v"]] map[]`, ""},
		{"HeaderValue", "ListBINs", `GET "/api/v1/bins" map["X-Trace":[§]] map[]`, same},
		{"Card", "GetCard", getCard + `map["id":[§]]`, ""},
		{"Order", "GetCardByOrder", getCard + `map["id":[§]]`, ""},
		{"Card", "GetCardSecrets", secrets, ""},
		{"Profile.CardIDParam", "GetCard", getCard + `map[§:["c-1"]]`, ""},
		{"List.SubAccountID", "ListCards", getCards + `map["sub":[§]]`, getCards + `map[]`},
		{"List.CardBIN", "ListCards", getCards + `map["card_bin":[§]]`, getCards + `map[]`},
		{"Operation", "CancelOperation", text(adjust, "§", `"cancel"`), ""},
		{"Operation", "RetryOperation", text(adjust, "§", `"retry"`), ""},
		{"Profile.RetryAction", "RetryOperation", text(adjust, uuid, "§"), ""},
		{"Freeze.CardID", "FreezeCard", text(freeze, "§", uuid), ""},
		{"Freeze.ClientTransactionID", "FreezeCard", text(freeze, `"c-1"`, "§"), text(freeze, `"c-1"`, aUUID)},
		{"Image.Filename", "UploadImage", text(upload, "§", gif), ""},
		{"Image.ContentType", "UploadImage", text(upload, name, "§"), text(upload, name, gif)},
		{"Request.Op", "Call", post + " form map[]", ""},
		{"Request.Method", "Call", ask + "map[]", ""},
		{"Request.Path", "Call", `GET § map[] map[]`, same},
		{"Request.Reference", "Call", post + " form map[]", ""},
		{"Request.Query, name", "Call", ask + `map[§:["v"]]`, same},
		{"Request.Query, value", "Call", ask + `map["n":[§]]`, same},
		{"Request.Form, name", "Call", post + ` form map[§:["v"]]`, same},
		{"Request.Form, value", "Call", post + ` form map["n":[§]]`, same},
		{"Request.JSON", "Call", post + ` JSON map[§:§]`, same},
		{"Request.Multipart.Name", "Call", post + ` part map["name":§] "" "v"`, ""},
		{"Request.Multipart.Value", "Call", post + ` part map["name":"n"] "" §`, same},
		{"Request.Multipart.File.Filename", "Call", post + text(file, "§", gif), ""},
		{"Request.Multipart.File.ContentType", "Call", post + text(file, name, "§"), post + typed},
	})
}

// transferInputs are the fields of a transfer. Most are sent as they are; of codes only
// what looks like one is.
func transferInputs() (list []input) {
	for _, path := range leaves("Transfer", reflect.TypeFor[cardwire.TransferParams]()) {
		_, field, _ := strings.Cut(path, ".")
		name := strings.ReplaceAll(strings.ToLower(field[:1])+field[1:], "ID", "Id")
		in := input{path, "CreateTransfer", transferred(name, "§"), transferred("", "")}
		switch {
		case field == "MerchantOrderNo", path == extraName:
			in.without = ""
		case field == "Extra, value":
			in.sent = transferred("n", "§")
		}
		list = append(list, in)
	}
	return list
}

// extraName is the one path of which a transfer's order of fields depends on the string.
const extraName = "Transfer.Extra, name"

// transferred is a transfer with a further field.
func transferred(name, value string) string {
	fields := map[string]string{"merchantOrderNo": "m-1", "transferAmount": "10.50"}
	if value != "" {
		fields[name] = value
	}
	body := fmt.Sprintf(`POST "/api/v1/remittance/transfer" map[] map[] JSON %q`, fields)
	return strings.ReplaceAll(body, `"§"`, "§")
}

// listed are the parameters of ListCards that have names in a profile, and their values.
var listed = map[string]struct {
	params cardwire.ListCardsParams
	value  string
}{
	"LimitParam": {cardwire.ListCardsParams{PageSize: 20}, "20"}, "PageParam": {cardwire.ListCardsParams{Page: 7}, "7"},
	"StatusParam":         {cardwire.ListCardsParams{Status: new(cardwire.CardActive)}, "0"},
	"CardBINParam":        {cardwire.ListCardsParams{CardBIN: "493193"}, "493193"},
	"SubAccountParam":     {cardwire.ListCardsParams{SubAccountID: "s-1"}, "s-1"},
	"CreatedFromParam":    {cardwire.ListCardsParams{CreatedFrom: aDay}, "2026-02-03"},
	"CreatedToParam":      {cardwire.ListCardsParams{CreatedTo: aDay}, "2026-02-03"},
	"TransactedFromParam": {cardwire.ListCardsParams{TransactedFrom: aDay}, "2026-02-03"},
	"TransactedToParam":   {cardwire.ListCardsParams{TransactedTo: aDay}, "2026-02-03"},
}

var aDay = cardwire.Date{Year: 2026, Month: 2, Day: 3}

func listInputs() (list []input) {
	for field, f := range listed {
		list = append(list, input{"Profile." + field, "ListCards", getCards + `map[§:["` + f.value + `"]]`, ""})
	}
	return list
}

// leaves are the paths of the strings in a type.
func leaves(path string, of reflect.Type) (found []string) {
	switch of.Kind() {
	case reflect.String, reflect.Interface:
		return []string{path}
	case reflect.Map:
		return []string{path + ", name", path + ", value"}
	case reflect.Slice, reflect.Pointer:
		return leaves(path, of.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(of) {
			if f.IsExported() && !f.Anonymous && (len(f.Index) == 1 || of == reflect.TypeFor[passed]()) {
				found = append(found, leaves(strings.TrimPrefix(path+"."+f.Name, "."), f.Type)...)
			}
		}
	}
	return found
}

// put puts a string where the path leads.
func put(v reflect.Value, path, text string) {
	path, part, _ := strings.Cut(path, ", ")
	for field := range strings.SplitSeq(path, ".") {
		if v.Kind() == reflect.Slice {
			v = v.Index(0)
		}
		v = reflect.Indirect(v).FieldByName(field)
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Interface:
		v.Set(reflect.ValueOf(map[string]string{text: text}))
	case reflect.Map:
		name, value := text, "v"
		if part == "value" {
			name, value = "n", text
		}
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		if v.Type().Elem().Kind() == reflect.Slice {
			v.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf([]string{value}))
			return
		}
		v.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(value))
	}
}

// call makes the call with the string in its place.
func (in *input) call(t *testing.T, service *recorder, text string) error {
	p := passed{Key: wiretest.Key, Profile: cardwire.DefaultProfile()}
	p.List = listed[strings.TrimPrefix(in.path, "Profile.")].params
	for _, name := range []string{in.op, in.path} {
		if prepare := given[name]; prepare != nil {
			prepare(&p)
		}
	}
	put(reflect.ValueOf(&p).Elem(), in.path, text)
	opts := []cardwire.Option{
		wiretest.InMemory(), cardwire.WithRetry(cardwire.RetryPolicy{}),
		cardwire.WithHTTPClient(&http.Client{Transport: service}),
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = p.Profile }),
	}
	var callOpts []cardwire.CallOption
	switch in.path {
	case "Base":
		opts = append(opts, cardwire.WithAnyBasePath())
	case "Request.Path":
		p.Request.Path = "/ask/" + text
	case "KeySource":
		opts = append(opts, cardwire.WithKeySource(func(context.Context) (string, error) { return text, nil }))
	case "UserAgent":
		opts = append(opts, cardwire.WithUserAgent(text))
	case "HeaderName", "HeaderValue":
		callOpts = append(callOpts, cardwire.WithHeader(p.HeaderName, p.HeaderValue))
	}
	c, err := cardwire.New("https://api.example.com/api/v1/"+p.Base, p.Key, opts...)
	if err != nil {
		return err
	}
	return wiretest.MethodsGiven(p.Given)[in.op](t.Context(), c, callOpts...)
}

func TestHostileStrings(t *testing.T) {
	t.Parallel()
	for _, in := range inputs() {
		t.Run(in.path+" of "+in.op, func(t *testing.T) {
			t.Parallel()
			service := new(recorder)
			for _, text := range hostile {
				in.assertRefusedOrArrives(t, service, text, in.sent)
			}
			in.assertRefusedOrArrives(t, service, cmp.Or(benign[in.path], "card-1"), in.sent)
			sent := len(service.requests)
			in.assertRefusedOrArrives(t, service, "", map[bool]string{true: in.sent, false: in.without}[in.without == same])
			assert.Equal(t, in.without != "", len(service.requests) > sent)
		})
	}
}

// A string that can be passed must be among the inputs, but for what is never sent. The
// functions that take strings are those of which passed has a field.
func TestTheListOfInputsIsComplete(t *testing.T) {
	t.Parallel()
	listed := []string{"Profile.DuplicateMessages", "Profile.RefusedMessages"} // compared with what is received
	for _, in := range inputs() {
		listed = append(listed, in.path)
	}
	slices.Sort(listed)
	found := leaves("", reflect.TypeFor[passed]())
	assert.ElementsMatch(t, slices.Compact(listed), found)
	assert.Contains(t, found, "Request.Query, name", "the search finds what there is")

	var taking []string
	for name, f := range functions {
		for in := range reflect.TypeOf(f).Ins() {
			if in.Kind() == reflect.String {
				taking = append(taking, strings.TrimPrefix(name, "cardwire."))
			}
		}
	}
	slices.Sort(taking)
	assert.Equal(t, []string{
		"New", "NewCVV", "NewCardNumber", "NewEncryptedPAN",
		"WithAccount", "WithHeader", "WithUserAgent", // an account goes to the journal only
	}, slices.Compact(taking))
}

// assertRefusedOrArrives makes the call. Only what is hostile may be refused.
func (in *input) assertRefusedOrArrives(t *testing.T, service *recorder, text, want string) {
	t.Helper()
	sent := len(service.requests)
	err := in.call(t, service, text)
	if len(service.requests) == sent {
		assert.True(t, text == "" || slices.Contains(hostile, text), "%q was not sent: %v", text, err)
		in.assertRefused(t, err, text)
		return
	}
	require.Len(t, service.requests, sent+1)
	assert.ErrorIs(t, err, cardwire.ErrNotFound, "which is the response to every request")
	got := readBack(t, service.requests[sent])
	if text == "" && in.path == "Freeze.ClientTransactionID" {
		got = randomUUID.ReplaceAllString(got, `"a random UUID"`)
	}
	if in.path == extraName {
		want = transferred(text, "v")
	}
	if as[in.path] != nil {
		text = as[in.path](text)
	}
	want = strings.ReplaceAll(want, "§", strconv.Quote(text))
	assert.True(t, want == got, "%.500s\nand not\n%.500s", got, want)
}

func (in *input) assertRefused(t *testing.T, err error, text string) {
	t.Helper()
	require.Error(t, err, "%.60q", text)
	if failure, ok := errors.AsType[*cardwire.Error](err); ok {
		assert.Equal(t, cardwire.OutcomeNotSent, failure.Outcome, "of %.60q", text)
	}
	if in.path == "KeySource" {
		return // no parameter is wrong
	}
	kind := cardwire.ErrInvalidParams
	if strings.HasPrefix(in.path, "Profile.") || slices.Contains(ofSetup, in.path) {
		kind = cardwire.ErrSetup
	}
	assert.ErrorIs(t, err, kind, "of %.60q", text)
	if len(text) > 2 {
		assert.NotContains(t, err.Error(), text)
	}
}

// randomUUID is a reference that the client makes.
var randomUUID = regexp.MustCompile(`"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)

const nothingThere = `{"code":404,"msg":"no such thing","data":null}`

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
