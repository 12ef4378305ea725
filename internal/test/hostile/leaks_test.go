package hostile_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	spelling "github.com/cardwire/cardwire-go/internal/canary"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
)

// canary is a secret that must not be printed in any form.
type canary struct {
	name, words string
	alone       *regexp.Regexp // for words that an address may contain by chance; nil: anywhere
}

// The canaries. That of the number is what the mask hides, with three digits that it shows: too
// long to occur by chance in an address.
var (
	numberCanary = newCanary("card number", wiretest.CanaryNumber[4:13])
	cvvCanary    = newCanary("CVV", wiretest.CanaryCVV)
	panCanary    = newCanary("encrypted PAN", wiretest.CanaryPAN[:8])
	keyCanary    = newCanary("key", wiretest.CanaryKey)
	allCanaries  = []canary{numberCanary, cvvCanary, panCanary, keyCanary}
)

func newCanary(name, words string) canary {
	c := canary{name: name, words: words}
	if len(words) < 6 {
		c.alone = regexp.MustCompile(`(?:^|[^0-9A-Fa-f])0*` + words + `(?:$|[^0-9A-Fa-f])`)
	}
	return c
}

// in reports whether the secret is in one of the forms of a string.
func (c canary) in(text string) bool {
	return slices.ContainsFunc(spelling.Forms(text), c.inForm)
}

func (c canary) inForm(form string) bool {
	return strings.Contains(form, c.words) && (c.alone == nil || c.alone.MatchString(form))
}

// printer is one of the ways in which a value becomes a string. against is another
// value of the same type.
type printer struct {
	name  string
	print func(v, against any) string
}

// verbs are all of fmt's and some that it does not have.
const verbs = "vsqxXdtboOcUeEfFgGpwTz!"

// printers are all ways. One whose format cannot represent the value returns what it printed,
// and the error.
var printers = func() (list []printer) {
	formats := []string{}
	for _, verb := range verbs {
		formats = append(formats, "%"+string(verb))
	}
	for _, flags := range []string{"+", "#", " ", "0", "-24", "+#030", "# 08.3"} {
		formats = append(formats, "%"+flags+"v", "%"+flags+"x", "%"+flags+"q")
	}
	for _, format := range formats {
		list = append(list, printer{format, func(v, _ any) string { return fmt.Sprintf(format, v) }})
	}
	extra := "no verb"
	plain := map[string]func(any) string{
		"Sprint":              func(v any) string { return fmt.Sprint(v, "; ", v) },
		"Sprintln":            func(v any) string { return fmt.Sprintln(v) },
		"an operand too many": func(v any) string { return fmt.Sprintf(extra, v) },
		"Errorf":              func(v any) string { return fmt.Errorf("failed: %v", v).Error() },
		"JSON":                func(v any) string { return encoded(json.Marshal(v)) },
		"XML":                 func(v any) string { return encoded(xml.Marshal(v)) },
		"binary":              func(v any) string { return encoded(binary.Append(nil, binary.BigEndian, v)) },
		"gob": func(v any) string {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return encoded(b.Bytes(), err)
		},
		"MarshalText": func(v any) string {
			if m, ok := v.(interface{ MarshalText() ([]byte, error) }); ok {
				return encoded(m.MarshalText())
			}
			return ""
		},
		"database/sql": func(v any) string {
			argument, err := driver.DefaultParameterConverter.ConvertValue(v)
			return encoded(fmt.Append(nil, argument), err)
		},
		"slog text":     logged(func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, timeless) }),
		"slog JSON":     logged(func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, timeless) }),
		"text/template": templated(texttemplate.Must(texttemplate.New("").Parse(`{{.}} {{printf "%#v" .}} {{js .}}`))),
		"html/template": templated(htmltemplate.Must(htmltemplate.New("").Parse(
			`<p title="{{.}}">{{.}}</p><script>v = {{.}}</script>`))),
	}
	for name, said := range plain {
		list = append(list, printer{name, func(v, _ any) string { return said(v) }})
	}
	return append(list, printer{"testify", func(v, against any) string {
		var said testifyOutput
		assert.Equal(&said, against, v)
		assert.Nil(&said, v)
		return said.String()
	}})
}()

func encoded(text []byte, err error) string {
	return string(text) + strings.TrimPrefix(fmt.Sprint(err), "<nil>")
}

// timeless removes from a log what may contain the digits of a canary by chance.
var timeless = &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}}

func logged(handler func(io.Writer) slog.Handler) func(any) string {
	return func(v any) string {
		var b bytes.Buffer
		l := slog.New(handler(&b))
		l.Info("text", "value", v)
		l.With("value", v).WithGroup("group").Info("text", slog.Any("value", v), slog.Group("inner", "value", v))
		return b.String()
	}
}

func templated(template interface{ Execute(io.Writer, any) error }) func(any) string {
	return func(v any) (text string) {
		var b bytes.Buffer
		defer func() {
			if problem := recover(); problem != nil { // a reflect.Value that is not for them
				text = b.String() + fmt.Sprint(problem)
			}
		}()
		err := template.Execute(&b, v)
		return encoded(b.Bytes(), err)
	}
}

// testifyOutput returns what a failed assertion prints. testify dumps all fields of what
// differs, unexported ones included, and calls none of their methods.
type testifyOutput struct{ strings.Builder }

func (o *testifyOutput) Errorf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

// Structs that contain a value in such a way that fmt does not find its methods.
type (
	hidden struct {
		Name  string
		value any
	}
	embedded struct{ any }
)

// places are what may contain a value that is printed: where fmt finds its methods, and the
// same again in an unexported field.
func places(v any) (found map[string]any) {
	rv := reflect.ValueOf(v)
	of := rv.Type()
	pointer := reflect.New(of)
	pointer.Elem().Set(rv)
	twice := reflect.New(pointer.Type())
	twice.Elem().Set(pointer)
	array := reflect.New(reflect.ArrayOf(1, of)).Elem()
	array.Index(0).Set(rv)
	field := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Value", Type: of}}))
	field.Elem().Field(0).Set(rv)
	mapped := reflect.MakeMap(reflect.MapOf(reflect.TypeFor[string](), of))
	mapped.SetMapIndex(reflect.ValueOf("k"), rv)
	found = map[string]any{
		"value": v, "pointer": pointer.Interface(), "pointer to a pointer": twice.Interface(),
		"in a slice": list(rv), "in an array": array.Interface(), "pointer in a slice": list(pointer),
		"in a map": mapped.Interface(), "in a field": field.Elem().Interface(),
		"in a field of a pointer": field.Interface(),
		"in a list of anything":   []any{v, pointer.Interface()}, "as a reflect.Value": field.Elem().Field(0),
	}
	if of.Comparable() && rv.Comparable() {
		keyed := reflect.MakeMap(reflect.MapOf(of, reflect.TypeFor[int]()))
		keyed.SetMapIndex(rv, reflect.ValueOf(1))
		found["as a map's key"] = keyed.Interface()
	}
	if err, ok := v.(error); ok {
		found["wrapped"] = fmt.Errorf("%w, %w", io.EOF, err)
		found["joined"] = errors.Join(io.EOF, err)
	}
	for name, open := range maps.Clone(found) {
		found[name+", hidden"] = hidden{"n", open}
	}
	found["in an embedded interface"] = embedded{v}
	found["hidden twice"] = hidden{"n", hidden{"n", v}}
	found["as a reflect.Value of a hidden field"] = reflect.ValueOf(hidden{"n", v}).Field(1)
	return found
}

func list(v reflect.Value) any {
	return reflect.Append(reflect.Zero(reflect.SliceOf(v.Type())), v).Interface()
}

// assertSilent prints everything in every way. Texts that are alike are searched once.
func assertSilent(t *testing.T, found map[string]any, by []printer, canaries ...canary) {
	t.Helper()
	seen := map[string]bool{}
	for name, v := range found {
		against := reflect.Zero(reflect.TypeOf(v)).Interface()
		for _, p := range by {
			text := p.print(v, against)
			if seen[text] {
				continue
			}
			seen[text] = true
			forms := spelling.Forms(text)
			for _, c := range canaries {
				if slices.ContainsFunc(forms, c.inForm) {
					t.Errorf("the %s shows, %s, by %s:\n%s", c.name, name, p.name, text)
				}
			}
		}
	}
}

// masked prints a mask by its methods, and contains its secret unsealed.
type masked struct{ Secret string }

func (masked) String() string             { return "***" }
func (masked) GoString() string           { return "***" }
func (masked) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// The search must find a canary that is not sealed.
func TestCanariesAreHeardWhereNothingIsSealed(t *testing.T) {
	t.Parallel()
	// These print only a type, an address or an error, or truncate strings.
	deaf := regexp.MustCompile(`^%.*[pT]$|^%.*\.3.$|^MarshalText$|^%.*!$|^XML$|^binary$|^database/sql$`)
	for text, c := range map[string]canary{
		wiretest.CanaryNumber: numberCanary, wiretest.CanaryCVV: cvvCanary,
		wiretest.CanaryPAN: panCanary, wiretest.CanaryKey: keyCanary,
	} {
		array := reflect.New(reflect.ArrayOf(len(text), reflect.TypeFor[byte]())).Elem()
		reflect.Copy(array, reflect.ValueOf([]byte(text)))
		for _, v := range []any{text, []byte(text), array.Interface(), struct{ Value string }{text}} {
			for _, p := range printers {
				if !deaf.MatchString(p.name) {
					said := p.print(v, reflect.Zero(reflect.TypeOf(v)).Interface())
					assert.True(t, c.in(said), "%s of a %T by %s: %s", c.name, v, p.name, said)
				}
			}
		}
		assert.True(t, c.in(encoded(xml.Marshal(text))))
		assert.True(t, c.in(encoded(binary.Append(nil, binary.BigEndian, []byte(text)))))
	}
	var said testifyOutput
	assert.Equal(&said, []byte("."), []byte(strings.Repeat(".", 20)+wiretest.CanaryKey))
	assert.True(t, keyCanary.in(said.String()[strings.Index(said.String(), "Diff:"):]), "in a dump of several lines")
	assert.False(t, numberCanary.in("card 491736******1735 declined"))
	assert.False(t, cvvCanary.in("at 0xc0007351a0"))
	// A secret that only methods hide is found where fmt does not find the methods.
	found := places(masked{wiretest.CanaryKey})
	for _, name := range []string{"value, hidden", "in a slice, hidden", "in a map, hidden", "hidden twice"} {
		assert.True(t, keyCanary.in(fmt.Sprintf("%v", found[name])), name)
	}
}

// spoils returns the values of this package that a service full of canaries leads to.
type spoils struct {
	client           *cardwire.Client
	page             *cardwire.CardPage
	secrets          *cardwire.CardSecrets
	success, refusal cardwire.Response
	err              *cardwire.Error
	infos            []cardwire.CallInfo
	results          []cardwire.CallResult
	drifts           []cardwire.Drift
	journal          wiretest.Journal
}

// canaryCard is a card that the service lists.
const canaryCard = `{"id":"card-1","trade_id":"t-1","label":null,"bin_id":7,"card_bin":"491736","card_no":"` +
	wiretest.CanaryNumber + `","cvv":"` + wiretest.CanaryCVV + `","currency":"USD","available":"1.500","pending":0,` +
	`"frozen":0,"expire_date":"09/2028","holder_username":"Ann","holder_address":{"city":"Lisbon","` +
	wiretest.CanaryNumber + `":1},"create_time":"2026-02-28 23:59:59","status":0,"fee":"0.00","` +
	wiretest.CanaryKey + `":"` + wiretest.CanaryNumber + `"}`

// onePage is the data of List cards.
func onePage(card string) string {
	return `{"total":1,"per_page":9,"current_page":1,"last_page":1,"data":[` + card + `]}`
}

// canaryMessage is what a service may put into msg.
const canaryMessage = `card ` + wiretest.CanaryNumber + ` (4917 3656 2440 1735), key ` + wiretest.CanaryKey

func plunder(t *testing.T) *spoils {
	t.Helper()
	s := &spoils{}
	var err error
	s.client, err = cardwire.New(wiretest.Base, wiretest.CanaryKey, cardwire.WithJournal(&s.journal),
		cardwire.WithHTTPClient(wiretest.RoundTripper(canaryResponse)), cardwire.WithRetry(wiretest.QuickRetry),
		cardwire.WithObserver(cardwire.Observer{
			CallStart: func(ctx context.Context, i cardwire.CallInfo) context.Context {
				s.infos = append(s.infos, i)
				return ctx
			},
			CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) {
				r.Duration = time.Second // one that contains the digits of a CVV is no leak
				s.results = append(s.results, r)
			},
			Drift: func(_ context.Context, _ cardwire.CallInfo, d cardwire.Drift) { s.drifts = append(s.drifts, d) },
		}))
	require.NoError(t, err)
	s.page, err = s.client.ListCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithResponse(&s.success))
	require.NoError(t, err)
	s.secrets, err = s.client.GetCardSecrets(t.Context(), "card-1")
	require.NoError(t, err)
	_, err = s.client.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&s.refusal))
	s.err = wiretest.Failure(t, err)
	require.Equal(t, wiretest.CanaryNumber, s.page.Cards[0].Number.Reveal(), "the canaries are there to be shown")
	require.Equal(t, wiretest.CanaryCVV, s.page.Cards[0].CVV.Reveal())
	require.Equal(t, wiretest.CanaryPAN, s.secrets.PAN.Reveal())
	require.Contains(t, string(s.refusal.RevealBody()), canaryMessage)
	require.NotEmpty(t, s.drifts)
	return s
}

func canaryResponse(r *http.Request) (*http.Response, error) {
	status, body := 200, ""
	switch strings.TrimPrefix(r.URL.Path, "/shop/api/v1") {
	case "/cards":
		body = `{"code":200,"msg":"` + canaryMessage + `","data":` + onePage(canaryCard) + `,"` +
			wiretest.CanaryNumber + `":"` + wiretest.CanaryKey + `"}`
	case "/cards/private":
		body = wiretest.Success(`{"card_no":"491736******1735","cvv":"***","expire_date":"**/****","pan":"` +
			wiretest.CanaryPAN + `"}`)
	default:
		status, body = 422, `{"code":422,"msg":"`+canaryMessage+`","data":"`+wiretest.CanaryNumber+`"}`
	}
	response := wiretest.Response(r, status, body)
	response.Header = http.Header{
		"X-Request-Id":  {"r-" + wiretest.CanaryNumber + "-" + wiretest.CanaryKey},
		"X-Card":        {"no. " + wiretest.CanaryNumber, "4917-3656-2440-1735"},
		"X-Key":         {"Bearer " + wiretest.CanaryKey},
		"Authorization": {"Bearer " + wiretest.CanaryKey}, "Set-Cookie": {"card=" + wiretest.CanaryNumber},
		"X-" + wiretest.CanaryNumber: {"1"},
	}
	return response, nil
}

// fill gives a secret to whatever seals one, at any depth.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case cardwire.CardNumber:
		v.Set(reflect.ValueOf(wiretest.CardNumber(t, wiretest.CanaryNumber)))
		return
	case cardwire.CVV:
		v.Set(reflect.ValueOf(wiretest.CVV(t, wiretest.CanaryCVV)))
		return
	case cardwire.EncryptedPAN:
		v.Set(reflect.ValueOf(wiretest.EncryptedPAN(t, wiretest.CanaryPAN)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	}
}

// A program's own type may have the fields of ours, and none of their methods.
type (
	bareNumber   cardwire.CardNumber
	bareCVV      cardwire.CVV
	barePAN      cardwire.EncryptedPAN
	bareCard     cardwire.Card
	bareSecrets  cardwire.CardSecrets
	bareResponse cardwire.Response
	bareError    cardwire.Error
	bareClient   cardwire.Client
	withCard     struct {
		cardwire.Card
		Note string
	}
	withSecrets struct {
		*cardwire.CardSecrets
		Note string
	}
)

// specimens are values of all exported types, most of them filled in by reflection, and of
// types with the fields of ours. Where a type can hold a secret, the value does.
func specimens(t *testing.T) map[string][]any {
	t.Helper()
	s := plunder(t)
	card, secrets := s.page.Cards[0], cardwire.CardSecrets{}
	fill(t, reflect.ValueOf(&secrets).Elem())
	key := func(context.Context) (string, error) { return wiretest.CanaryKey, nil }
	asked, err := cardwire.New(wiretest.Base, "", cardwire.WithKeySource(key))
	require.NoError(t, err)
	all := map[string][]any{
		"Card": {card}, "CardPage": {*s.page}, "Drift": {s.drifts[0]}, "Error": {s.err, *s.err},
		"DuplicateIntent": {&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}},
		"Client":          {s.client, *asked, *usedClient(t)},
		"Request":         {cardwire.Request{Op: "CloseCard", JSON: &card}},
		"CallInfo":        {s.infos[2]}, "CallResult": {s.results[2]}, "Intent": {s.journal.Begun[0]},
		"IntentResult": {s.journal.Results[0]}, "Response": {s.success, &s.refusal},
		"CallOption": {cardwire.WithResponse(&s.success)}, "Profile": {cardwire.DefaultProfile()},
		"Option": {cardwire.WithKeySource(key), cardwire.WithJournal(&s.journal),
			cardwire.WithHTTPClient(wiretest.RoundTripper(canaryResponse))},
		"Memory": {journal.NewMemory()},
		"none of ours": {
			bareNumber(card.Number), bareCVV(card.CVV), barePAN(secrets.PAN), bareCard(card), bareSecrets(secrets),
			bareResponse(s.success), bareError(*s.err), bareClient(*s.client),
			withCard{card, "n"}, withSecrets{&secrets, "n"},
		},
	}
	for _, of := range receivers {
		if all[of.Name()] == nil {
			v := reflect.New(of).Elem()
			fill(t, v)
			all[of.Name()] = []any{v.Interface()}
		}
	}
	delete(all, "TransferParams")    // printed by its methods only: TestPeopleAreNeitherPrintedNorLogged
	delete(all, "UploadImageParams") // likewise
	return all
}

// usedClient is one whose transport keeps what was written and read in the buffers of a
// connection.
func usedClient(t *testing.T) *cardwire.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"code":200,"msg":"`+wiretest.CanaryNumber+`","data":7}`)
	}))
	t.Cleanup(server.Close)
	c, err := cardwire.New(server.URL, wiretest.CanaryKey)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	_, err = c.CardCapacity(t.Context())
	require.NoError(t, err)
	return c
}

func TestNoTextOfAnyTypeShowsASecret(t *testing.T) {
	t.Parallel()
	for name, values := range specimens(t) {
		for _, v := range values {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				assertSilent(t, places(v), printers, allCanaries...)
			})
		}
	}
}
