package cardwiretest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

// The names and values that the service writes are literals of its own. These
// tests make each of them wrong in turn, in what the client is told and in what
// the client says, and see that the suite does not pass any more.

// letter is a request as it is sent.
type letter struct {
	method, target string // the target is a path, and a query if there is one
	header         http.Header
	body           []byte
}

// exchange is a request that the suite makes, and the response to it.
type exchange struct {
	op       string
	request  letter
	response []byte
}

// tap is the way from a client to the service. It keeps what passes, and puts
// something else in the place of the request or the response of an operation at one
// address, however often that is asked: a client that doubts a response asks again.
type tap struct {
	service    http.RoundTripper
	op, target string // of what is changed
	request    *letter
	response   []byte
	status     int // of the response to the changed request; 0: it was never sent
	seen       []exchange
}

// opKey is where the context of a request holds the name of the operation.
type opKey struct{}

// watch has the context say which operation a request is for: some share a path.
func watch() cardwire.Option {
	return cardwire.WithObserver(cardwire.Observer{
		CallStart: func(ctx context.Context, c cardwire.CallInfo) context.Context {
			return context.WithValue(ctx, opKey{}, c.Op)
		},
	})
}

func (w *tap) RoundTrip(r *http.Request) (*http.Response, error) {
	op, _ := r.Context().Value(opKey{}).(string)
	e := exchange{op: op, request: letter{r.Method, r.URL.RequestURI(), r.Header, nil}}
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
		var err error
		if e.request.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	changed := w.op == op && w.target == e.request.target
	sent := e.request
	if changed && w.request != nil {
		sent = *w.request
	}
	response, err := w.service.RoundTrip(sent.on(r))
	if err != nil {
		return nil, err
	}
	if e.response, err = io.ReadAll(response.Body); err != nil {
		return nil, err
	}
	w.seen = append(w.seen, e)
	body := e.response
	if changed {
		w.status = response.StatusCode
		if w.response != nil {
			body = w.response
		}
	}
	response.Request = r
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return response, nil
}

// on returns the letter as a request in the place of r.
func (l letter) on(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	out.Method, out.Header, out.ContentLength = l.method, l.header, int64(len(l.body))
	out.URL.Path, out.URL.RawQuery, _ = strings.Cut(l.target, "?")
	out.Body = nil
	if l.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(l.body))
	}
	return out
}

// record returns what passes in a suite that nothing disturbs.
func record(t *testing.T) []exchange {
	t.Helper()
	s := contract.NewService()
	w := &tap{service: s}
	require.NoError(t, suite(t.Context(), suiteClient(t, w, watch()), s))
	return w.seen
}

// disturbed runs the suite with one exchange changed.
func disturbed(t *testing.T, w *tap) error {
	t.Helper()
	s := contract.NewService()
	w.service = s
	return suite(t.Context(), suiteClient(t, w, watch()), s)
}

// byOp groups exchanges by their operation, in order.
func byOp(t *testing.T, all []exchange) map[string][]exchange {
	t.Helper()
	groups := map[string][]exchange{}
	for _, e := range all {
		groups[e.op] = append(groups[e.op], e)
	}
	require.ElementsMatch(t, []string{
		"ListCards", "GetCard", "GetCardByOrder", "GetCardSecrets", "FreezeCard", "CancelOperation", "RetryOperation",
		"ListBINs", "ListBINsUnderMaintenance", "CardCapacity", "ListRemittanceStates", "ListRemittanceCurrencies",
		"CreateTransfer", "UploadImage",
	}, slices.Collect(maps.Keys(groups)))
	return groups
}

// tally counts what was noticed, by kind of change.
type tally struct {
	mu         sync.Mutex
	caught     map[string]int
	total      map[string]int
	survivors  []string // nobody noticed
	notRefused []string // by the service
}

func (y *tally) count(kind, what string, caught bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.total == nil {
		y.caught, y.total = map[string]int{}, map[string]int{}
	}
	y.total[kind]++
	if caught {
		y.caught[kind]++
	} else {
		y.survivors = append(y.survivors, what)
	}
}

func (y *tally) unrefused(what string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.notRefused = append(y.notRefused, what)
}

// tryEach has the changes of each operation's exchanges tried, and tells how many
// were caught.
func tryEach(t *testing.T, try func(t *testing.T, op string, exchanges []exchange, y *tally)) *tally {
	t.Helper()
	groups := byOp(t, record(t))
	y := new(tally)
	t.Run("of", func(t *testing.T) {
		for op, exchanges := range groups {
			t.Run(op, func(t *testing.T) {
				t.Parallel()
				try(t, op, exchanges, y)
			})
		}
	})
	y.log(t)
	return y
}

func (y *tally) log(t *testing.T) {
	t.Helper()
	caught, total := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(y.total)) {
		t.Logf("%s: caught %d of %d", kind, y.caught[kind], y.total[kind])
		caught += y.caught[kind]
		total += y.total[kind]
	}
	t.Logf("caught %d of %d", caught, total)
}

// Responses

// Every field of every response is misspelt, left out, and given another type and
// another value; the suite notices each time. Elements of a list count once, and
// once more for each type that the same field has elsewhere.
func TestMutationOfResponses(t *testing.T) {
	t.Parallel()
	y := tryEach(t, func(t *testing.T, op string, exchanges []exchange, y *tally) {
		t.Helper()
		for _, e := range exchanges {
			// Written anew, and not changed, it is what it was.
			same := render(parse(t, e.response))
			require.NoError(t, disturbed(t, &tap{op: e.op, target: e.request.target, response: same}))
		}
		for _, m := range responseMutants(t, exchanges) {
			w := &tap{op: op, target: m.target, response: m.response}
			y.count(m.kind, op+": "+m.what, disturbed(t, w) != nil)
		}
	})
	assert.Empty(t, y.survivors, "what nobody notices")
}

// responseMutant is a response with one thing wrong.
type responseMutant struct {
	kind, what string
	target     string // of the request that gets it
	response   []byte
}

func responseMutants(t *testing.T, exchanges []exchange) (mutants []responseMutant) {
	t.Helper()
	seen := map[string]bool{}
	filled := map[string]bool{}
	for _, e := range exchanges {
		root := parse(t, e.response)
		root.walk("", func(path string, in *node, i int) {
			n := in.items[i]
			filled[path] = filled[path] || !n.empty()
			if place := path + " " + n.sort(); !seen[place] {
				seen[place] = true
				in.mutate(i, func(kind, how string) {
					response := render(root)
					if !bytes.Equal(response, e.response) {
						mutants = append(mutants, responseMutant{kind, path + " " + how, e.request.target, response})
					} else {
						t.Errorf("%s %s changes nothing", path, how)
					}
				})
			}
		})
	}
	for path, ok := range filled {
		assert.True(t, ok, "%s never holds anything: a wrong name would look like none", path)
	}
	return mutants
}

// node is a JSON value.
type node struct {
	raw   string   // of a string, number, boolean or null
	open  byte     // { or [ of an object or array, 0 of another
	names []string // of an object
	items []*node  // of an object or array
}

func parse(t *testing.T, text []byte) *node {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value func() *node
	value = func() *node {
		token, err := d.Token()
		require.NoError(t, err)
		open, ok := token.(json.Delim)
		if !ok {
			return &node{raw: encode(t, token)}
		}
		n := &node{open: byte(open)}
		for d.More() {
			if open == '{' {
				name, err := d.Token()
				require.NoError(t, err)
				n.names = append(n.names, name.(string))
			}
			n.items = append(n.items, value())
		}
		_, err = d.Token()
		require.NoError(t, err)
		return n
	}
	return value()
}

func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func render(n *node) []byte {
	if n.open == 0 {
		return []byte(n.raw)
	}
	out := []byte{n.open}
	for i, item := range n.items {
		if i > 0 {
			out = append(out, ',')
		}
		if n.open == '{' {
			out = append(out, fmt.Sprintf("%q:", n.names[i])...)
		}
		out = append(out, render(item)...)
	}
	return append(out, n.open+2) // ] and } follow two after [ and {
}

// walk visits all that is inside n. The places of a list are one.
func (n *node) walk(path string, visit func(path string, in *node, i int)) {
	for i, item := range n.items {
		inner := path + "[]"
		if n.open == '{' {
			inner = strings.TrimPrefix(path+"."+n.names[i], ".")
		}
		visit(inner, n, i)
		item.walk(inner, visit)
	}
}

func (n *node) sort() string {
	switch {
	case n.open != 0 && len(n.items) == 0:
		return string([]byte{n.open, n.open + 2})
	case n.open != 0:
		return string(n.open)
	case n.raw[0] == '"':
		return "string"
	case n.raw == "null":
		return "null"
	case n.raw == "true" || n.raw == "false":
		return "boolean"
	}
	return "number"
}

func (n *node) empty() bool {
	return n.open != 0 && len(n.items) == 0 || slices.Contains([]string{"null", "false", "0", `""`}, n.raw)
}

// mutate makes one thing about an item wrong at a time, tells, and undoes it.
func (n *node) mutate(i int, tell func(kind, how string)) {
	names, items := n.names, n.items
	change := func(kind, how string, f func()) {
		n.names, n.items = slices.Clone(names), slices.Clone(items)
		f()
		tell(kind, how)
		n.names, n.items = names, items
	}
	if n.open == '{' {
		change("misspelt", "is misspelt", func() { n.names[i] += "x" })
	}
	change("left out", "is left out", func() {
		n.items = slices.Delete(n.items, i, i+1)
		if n.open == '{' {
			n.names = slices.Delete(n.names, i, i+1)
		}
	})
	item := items[i]
	for _, raw := range item.otherTypes() {
		change("another type", "becomes "+raw, func() { n.items[i] = &node{raw: raw} })
	}
	if raw := item.otherValue(); raw != "" {
		change("another value", "becomes "+raw, func() { n.items[i] = &node{raw: raw} })
	}
}

// jsonNumber is a string that is a number without its quotes.
var jsonNumber = regexp.MustCompile(`^"(-?(0|[1-9]\d*)(\.\d+)?)"$`)

// otherTypes are the value as something else, as alike as possible.
func (n *node) otherTypes() []string {
	switch n.sort() {
	case "string":
		if m := jsonNumber.FindStringSubmatch(n.raw); m != nil {
			return []string{m[1], "null"}
		}
		return []string{`{"x":` + n.raw + `}`, "null"}
	case "number":
		return []string{`"` + n.raw + `"`, `"x"`, "true", "null"}
	case "boolean":
		return []string{`"yes"`, map[string]string{"true": "1", "false": "0"}[n.raw], "null"}
	case "null":
		return []string{"{}", `"x"`, "0"}
	case "{":
		return []string{"[" + string(render(n)) + "]", "null"}
	case "{}":
		return []string{"[]", "null"}
	case "[":
		return []string{`{"x":` + string(render(n)) + `}`, "null"}
	}
	return []string{"{}", "null"} // of an empty array
}

// otherValue is a value of the same type and, as far as that can be told, of the
// same form; "": what is inside is changed instead.
func (n *node) otherValue() string {
	switch n.sort() {
	case "boolean":
		return map[string]string{"true": "false", "false": "true"}[n.raw]
	case "number":
		if n.raw == "0" || n.raw == "1" { // a flag, perhaps
			return map[string]string{"0": "1", "1": "0"}[n.raw]
		}
		return nextDigit(n.raw)
	case "string":
		text := n.raw[:len(n.raw)-1]
		switch {
		case strings.Contains(text, "*") && strings.Trim(text, `"*/`) == "": // masked
			return strings.ReplaceAll(n.raw, "*", "1")
		case strings.ContainsAny(text[len(text)-1:], "0123456789"):
			return nextDigit(text) + `"`
		}
		return text + `x"`
	}
	return ""
}

// nextDigit counts the last digit up.
func nextDigit(s string) string {
	last := s[len(s)-1]
	return s[:len(s)-1] + string('0'+(last-'0'+1)%10)
}

// Requests

// accepted are the changes that nobody notices, and why that is right.
var accepted = func() map[string]string {
	reasons := map[string]string{
		"UploadImage: Content-Type of the part file is left out": "the API gives the part no type",
		"UploadImage: filename of the part file is misspelt":     "the API gives the file no name",
	}
	for _, name := range []string{
		"transferType", "payoutMethod", "senderBeneficiaryRelationship", "senderSourceOfFund", "purposeOfRemittance",
		"senderFirstName", "senderLastName", "senderGender", "senderMobileNumber", "senderIdType", "senderIdNumber",
		"senderDateOfBirth", "senderNationality", "senderIdIssueCountry", "senderCountry", "senderAddress",
		"receiverNativeFirstName", "receiverNativeLastName", "receiverIdType", "receiverIdNumber", "receiverMobileNumber",
		"receiverBankAccountNumber",
	} {
		reasons["CreateTransfer: the field "+name+" is left out"] = "which fields are required is undocumented"
	}
	return reasons
}()

// noticed are the changes that the service does not refuse, but responds to with something else.
var noticed = func() map[string]string {
	reasons := map[string]string{
		"FreezeCard: the field clientTransactionId is left out":              "whether it is required is undocumented",
		"ListBINsUnderMaintenance: the path segment maintenance is left out": "what remains is another operation",
	}
	for _, name := range []string{
		"limit", "page", "sub_account_id", "status", "card_bin",
		"created_from", "created_to", "transacted_from", "transacted_to",
	} {
		reasons["ListCards: the parameter "+name+" is left out"] = "it is optional"
	}
	return reasons
}()

// Every name that the client sends, in the path, the query, the header and the
// body, is misspelt, left out and repeated; the service refuses all but what is
// listed above.
func TestMutationOfRequests(t *testing.T) {
	t.Parallel()
	y := tryEach(t, func(t *testing.T, op string, exchanges []exchange, y *tally) {
		t.Helper()
		seen := map[string]bool{}
		for _, e := range exchanges {
			for _, m := range requestMutants(t, e.request) {
				w := &tap{op: op, target: e.request.target, request: &m.letter}
				if m.kind == unchanged { // only written anew
					require.NoError(t, disturbed(t, w))
					continue
				}
				if what := op + ": " + m.what; !seen[what] {
					seen[what] = true
					y.count(m.kind, what, disturbed(t, w) != nil)
					if w.status < 400 || w.status > 499 {
						y.unrefused(what)
					}
				}
			}
		}
	})
	assert.ElementsMatch(t, slices.Collect(maps.Keys(accepted)), y.survivors, "what nobody notices")
	assert.ElementsMatch(t, slices.AppendSeq(slices.Collect(maps.Keys(accepted)), maps.Keys(noticed)), y.notRefused,
		"what the service does not refuse")
}

// unchanged is the kind of a request that was only taken apart and put together.
const unchanged = "unchanged"

// requestMutant is a request with one thing wrong.
type requestMutant struct {
	kind, what string
	letter     letter
}

func requestMutants(t *testing.T, l letter) (mutants []requestMutant) {
	t.Helper()
	add := func(kind, what string, change func(*letter)) {
		m := l
		m.header = l.header.Clone()
		change(&m)
		mutants = append(mutants, requestMutant{kind, what + " is " + kind, m})
	}
	other := map[string]string{http.MethodGet: http.MethodPost, http.MethodPost: http.MethodGet}
	add("another", "the method", func(m *letter) { m.method = other[l.method] })
	path, query, _ := strings.Cut(l.target, "?")
	segments := strings.Split(path, "/")
	for i, s := range segments[1:] {
		what := "the path segment " + s
		at := func(list ...string) func(*letter) {
			return func(m *letter) {
				m.target = strings.Join(slices.Concat(segments[:i+1], list, segments[i+2:]), "/")
				if query != "" {
					m.target += "?" + query
				}
			}
		}
		add("misspelt", what, at(s+"x"))
		add("left out", what, at())
		add("repeated", what, at(s, s))
	}
	variants(pairs(t, query), func(kind, name string, list []pair) {
		add(kind, "the parameter "+name, func(m *letter) { m.target = path + "?" + join(list) })
	})
	scheme, key, _ := strings.Cut(l.header.Get("Authorization"), " ")
	for kind, values := range map[string][]string{
		"misspelt": {scheme + "x " + key}, "left out": {key}, "another": {"Basic " + key},
		"repeated": {scheme + " " + key, scheme + " " + key},
	} {
		add(kind, "the scheme", func(m *letter) { m.header["Authorization"] = values })
	}
	add("misspelt", "the key", func(m *letter) { m.header.Set("Authorization", scheme+" "+key+"x") })
	add("left out", "the key", func(m *letter) { m.header.Set("Authorization", scheme+" ") })
	add("left out", "Authorization", func(m *letter) { m.header.Del("Authorization") })
	if media := l.header.Get("Content-Type"); media != "" {
		kind, params, _ := strings.Cut(media, ";")
		add("misspelt", "Content-Type", func(m *letter) { m.header.Set("Content-Type", kind+"x;"+params) })
		add("another", "Content-Type", func(m *letter) { m.header.Set("Content-Type", "text/plain") })
		add("left out", "Content-Type", func(m *letter) { m.header.Del("Content-Type") })
		bodyMutants(t, l, add)
	} else {
		require.Empty(t, l.body, "a body without a type")
		add("another", "the body", func(m *letter) { m.body = []byte("{}"); m.header.Set("Content-Type", "application/json") })
	}
	return mutants
}

func bodyMutants(t *testing.T, l letter, add func(kind, what string, change func(*letter))) {
	t.Helper()
	media, params, err := mime.ParseMediaType(l.header.Get("Content-Type"))
	require.NoError(t, err)
	add("left out", "the body", func(m *letter) { m.body = nil })
	switch media {
	case "application/x-www-form-urlencoded":
		variants(pairs(t, string(l.body)), func(kind, name string, list []pair) {
			add(kind, "the field "+name, func(m *letter) { m.body = []byte(join(list)) })
		})
	case "application/json":
		root := parse(t, l.body)
		var list []pair
		for i, name := range root.names {
			list = append(list, pair{name: name, value: root.items[i].raw})
		}
		write := func(list []pair) []byte {
			var n node
			n.open = '{'
			for _, p := range list {
				n.names, n.items = append(n.names, p.name), append(n.items, &node{raw: p.value})
			}
			return render(&n)
		}
		add(unchanged, "the body", func(m *letter) { m.body = write(list) })
		variants(list, func(kind, name string, list []pair) {
			add(kind, "the field "+name, func(m *letter) { m.body = write(list) })
		})
		for i, p := range list {
			for _, raw := range root.items[i].otherTypes() {
				changed := slices.Clone(list)
				changed[i].value = raw
				add("another type", "the field "+p.name+" as "+raw, func(m *letter) { m.body = write(changed) })
			}
		}
	case "multipart/form-data":
		partMutants(t, l, params["boundary"], add)
	default:
		require.Fail(t, "the API has no such content type", media)
	}
}

func partMutants(t *testing.T, l letter, boundary string, add func(kind, what string, change func(*letter))) {
	t.Helper()
	add("left out", "the boundary", func(m *letter) { m.header.Set("Content-Type", "multipart/form-data") })
	add("misspelt", "the boundary", func(m *letter) {
		m.header.Set("Content-Type", "multipart/form-data; boundary="+boundary+"x")
	})
	list := parts(t, l.body, boundary)
	same := joinParts(t, list, boundary)
	add(unchanged, "the body", func(m *letter) { m.body = same })
	variants(list, func(kind, name string, list []pair) {
		body := joinParts(t, list, boundary)
		add(kind, "the field "+name, func(m *letter) { m.body = body })
	})
	for i, p := range list {
		change := func(kind, what string, head func(*pair)) {
			changed := slices.Clone(list)
			changed[i].head = maps.Clone(p.head)
			head(&changed[i])
			body := joinParts(t, changed, boundary)
			add(kind, what+" of the part "+p.name, func(m *letter) { m.body = body })
		}
		if p.filename == "" {
			change("another", "kind", func(p *pair) { p.filename = "a.png" })
			continue
		}
		change("left out", "filename", func(p *pair) { p.filename = "" })
		change("misspelt", "filename", func(p *pair) { p.filename += "x" })
		change("left out", "Content-Type", func(p *pair) { p.head.Del("Content-Type") })
	}
}

// pair is a parameter, a field or a part.
type pair struct {
	name, value string
	filename    string               // of a part that is a file
	head        textproto.MIMEHeader // of a part
}

// variants makes one thing about a pair wrong at a time.
func variants(list []pair, tell func(kind, name string, list []pair)) {
	for i, p := range list {
		renamed := slices.Clone(list)
		renamed[i].name += "x"
		tell("misspelt", p.name, renamed)
		tell("left out", p.name, slices.Delete(slices.Clone(list), i, i+1))
		tell("repeated", p.name, slices.Insert(slices.Clone(list), i, p))
	}
}

func pairs(t *testing.T, text string) (list []pair) {
	t.Helper()
	if text == "" {
		return nil
	}
	for p := range strings.SplitSeq(text, "&") {
		name, value, ok := strings.Cut(p, "=")
		require.True(t, ok)
		list = append(list, pair{name: name, value: value})
	}
	require.Equal(t, text, join(list))
	return list
}

func join(list []pair) string {
	var out []string
	for _, p := range list {
		out = append(out, p.name+"="+p.value)
	}
	return strings.Join(out, "&")
}

func parts(t *testing.T, body []byte, boundary string) (list []pair) {
	t.Helper()
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			require.NotEmpty(t, list)
			return list
		}
		require.NoError(t, err)
		value, err := io.ReadAll(p)
		require.NoError(t, err)
		list = append(list, pair{p.FormName(), string(value), p.FileName(), p.Header})
	}
}

func joinParts(t *testing.T, list []pair, boundary string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	require.NoError(t, w.SetBoundary(boundary))
	for _, p := range list {
		params := map[string]string{"name": p.name}
		if p.filename != "" {
			params["filename"] = p.filename
		}
		head := maps.Clone(p.head)
		head.Set("Content-Disposition", mime.FormatMediaType("form-data", params))
		part, err := w.CreatePart(head)
		require.NoError(t, err)
		_, err = io.WriteString(part, p.value)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}
