package hostile_test

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/base64"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	htmltemplate "html/template"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	spelling "github.com/cardwire/cardwire-go/internal/test/canary"
	"github.com/cardwire/cardwire-go/internal/test/syntax"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// canary is a secret that must not be printed in any form.
type canary struct {
	name, words string
	alone       *regexp.Regexp // for words so short that addresses hold them; nil: anywhere
}

// numberCanary looks for what the mask hides, with three digits that it shows: an
// address, written in octal or decimal, must not spell it by chance.
func numberCanary() canary { return newCanary("card number", wiretest.CanaryNumber[4:13]) }

func cvvCanary() canary { return newCanary("CVV", wiretest.CanaryCVV) }

func panCanary() canary { return newCanary("encrypted PAN", wiretest.CanaryPAN[:8]) }

func keyCanary() canary { return newCanary("key", wiretest.CanaryKey) }

func allCanaries() []canary { return []canary{numberCanary(), cvvCanary(), panCanary(), keyCanary()} }

func newCanary(name, words string) canary {
	c := canary{name: name, words: words}
	if len(words) < 6 {
		c.alone = regexp.MustCompile(`(?:^|[^0-9A-Fa-f])0*` + words + `(?:$|[^0-9A-Fa-f])`)
	}
	return c
}

// in reports whether the secret is in one of the forms of a string.
func (c canary) in(forms []string) bool {
	return slices.ContainsFunc(forms, func(form string) bool {
		return strings.Contains(form, c.words) && (c.alone == nil || c.alone.MatchString(form))
	})
}

// printer is one of the ways in which a value becomes a string. against is another
// value of the same type.
type printer struct {
	name  string
	print func(v, against any) string
}

// verbs are all of fmt's and some that it does not have.
const verbs = "vsqxXdtboOcUeEfFgGpwTz!"

func fmtPrinters() (list []printer) {
	for _, flags := range []string{"", "+", "#", " ", "0", "-24", "+#030", "# 08.3"} {
		for _, verb := range verbs {
			format := "%" + flags + string(verb)
			list = append(list, printer{format, func(v, _ any) string { return fmt.Sprintf(format, v) }})
		}
	}
	extra := "no verb"
	return append(list,
		printer{"Sprint", func(v, _ any) string { return fmt.Sprint(v, "; ", v) }},
		printer{"Sprintln", func(v, _ any) string { return fmt.Sprintln(v) }},
		printer{"an operand too many", func(v, _ any) string { return fmt.Sprintf(extra, v) }},
		printer{"Errorf", func(v, _ any) string { return fmt.Errorf("failed: %v", v).Error() }},
	)
}

// timeless leaves out of a log what may by chance hold the digits of a canary.
var timeless = &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}}

func slogPrinters() []printer {
	logged := func(handler func(*bytes.Buffer) slog.Handler) func(v, _ any) string {
		return func(v, _ any) string {
			var b bytes.Buffer
			l := slog.New(handler(&b))
			l.Info("text", "value", v)
			l.With("value", v).WithGroup("group").Info("text", slog.Any("value", v), slog.Group("inner", "value", v))
			return b.String()
		}
	}
	return []printer{
		{"slog text", logged(func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, timeless) })},
		{"slog JSON", logged(func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, timeless) })},
	}
}

// otherPrinters return "" where the format cannot hold the value.
func otherPrinters() []printer {
	return []printer{
		{"JSON", func(v, _ any) string { b, err := json.Marshal(v); return string(b) + errorText(err) }},
		{"XML", func(v, _ any) string { b, err := xml.Marshal(v); return string(b) + errorText(err) }},
		{"gob", func(v, _ any) string {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.String() + errorText(err)
		}},
		{"MarshalText", func(v, _ any) string {
			if m, ok := v.(interface{ MarshalText() ([]byte, error) }); ok {
				b, err := m.MarshalText()
				return string(b) + errorText(err)
			}
			return ""
		}},
		{"text/template", templated(texttemplate.Must(texttemplate.New("").Parse(`{{.}} {{printf "%#v" .}} {{js .}}`)))},
		{"html/template", templated(htmltemplate.Must(htmltemplate.New("").Parse(`<p title="{{.}}">{{.}}</p><script>v = {{.}}</script>`)))},
		{"binary", func(v, _ any) string {
			b, err := binary.Append(nil, binary.BigEndian, v)
			return string(b) + errorText(err)
		}},
		{"database/sql", func(v, _ any) string {
			argument, err := driver.DefaultParameterConverter.ConvertValue(v)
			return fmt.Sprint(argument) + errorText(err)
		}},
		{"testify", func(v, against any) string {
			var said testifyOutput
			assert.Equal(&said, against, v)
			assert.Nil(&said, v)
			return said.String()
		}},
	}
}

func templated(template interface{ Execute(io.Writer, any) error }) func(v, _ any) string {
	return func(v, _ any) (text string) {
		var b bytes.Buffer
		defer func() {
			if problem := recover(); problem != nil { // a reflect.Value that is not for them
				text = b.String() + fmt.Sprint(problem)
			}
		}()
		err := template.Execute(&b, v)
		return b.String() + errorText(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// testifyOutput is a test that fails on paper. testify dumps all fields of what
// differs, hidden ones included, and calls none of their methods.
type testifyOutput struct{ strings.Builder }

func (o *testifyOutput) Errorf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

// place is where a value may stand when it is printed.
type place struct {
	name       string
	v, against any
}

type (
	shown[T any]  struct{ Value T }
	hidden[T any] struct {
		Name  string
		value T
	}
	embedded struct{ any }
)

// openPlaces are those where fmt finds the methods of the value.
func openPlaces[T any](v, against T) []place {
	pv, pa := &v, &against
	return []place{
		{"value", v, against},
		{"pointer", pv, pa},
		{"pointer to a pointer", &pv, &pa},
		{"in a slice", []T{v}, []T{against}},
		{"in an array", [1]T{v}, [1]T{against}},
		{"pointer in a slice", []*T{pv}, []*T{pa}},
		{"in a map", map[string]T{"k": v}, map[string]T{"k": against}},
		{"in a field", shown[T]{v}, shown[T]{against}},
		{"in a field of a pointer", &shown[T]{v}, &shown[T]{against}},
		{"pointer in a field", shown[*T]{pv}, shown[*T]{pa}},
		{"in an interface", shown[any]{v}, shown[any]{against}},
		{"in a list of anything", []any{v, pv}, []any{against, pa}},
		{"as a reflect.Value", reflect.ValueOf(shown[T]{v}).Field(0), reflect.ValueOf(shown[T]{against}).Field(0)},
	}
}

// hiddenPlaces are those where fmt finds none.
func hiddenPlaces[T any](v, against T) []place {
	return []place{
		{"in a hidden field", hidden[T]{"n", v}, hidden[T]{"n", against}},
		{"pointer in a hidden field", hidden[*T]{"n", &v}, hidden[*T]{"n", &against}},
		{"slice in a hidden field", hidden[[]T]{"n", []T{v}}, hidden[[]T]{"n", []T{against}}},
		{"map in a hidden field", hidden[map[int]T]{"n", map[int]T{1: v}}, hidden[map[int]T]{"n", map[int]T{1: against}}},
		{"interface in a hidden field", hidden[any]{"n", v}, hidden[any]{"n", against}},
		{"array in a hidden field", hidden[[1]T]{"n", [1]T{v}}, hidden[[1]T]{"n", [1]T{against}}},
		{"as a reflect.Value of a hidden field", reflect.ValueOf(hidden[T]{"n", v}).Field(1), reflect.ValueOf(hidden[T]{"n", against}).Field(1)},
		{"in an embedded interface", embedded{v}, embedded{against}},
		{"hidden twice", hidden[hidden[T]]{"n", hidden[T]{"n", v}}, hidden[hidden[T]]{"n", hidden[T]{"n", against}}},
	}
}

func everywhere[T any](v, against T) []place {
	return append(openPlaces(v, against), hiddenPlaces(v, against)...)
}

// keyPlaces are for values that can be compared.
func keyPlaces[T comparable](v, against T) []place {
	return append(everywhere(v, against),
		place{"as a map's key", map[T]int{v: 1}, map[T]int{against: 1}},
		place{"as a hidden map's key", hidden[map[T]int]{"n", map[T]int{v: 1}}, hidden[map[T]int]{"n", map[T]int{against: 1}}},
	)
}

// errorPlaces are those of an error.
func errorPlaces(err, against error) []place {
	return append(everywhere(err, against),
		place{"wrapped", fmt.Errorf("in a program: %w", err), against},
		place{"wrapped with another", fmt.Errorf("%w, %w", io.EOF, err), against},
		place{"joined", errors.Join(io.EOF, err), against},
	)
}

// assertSilent prints everything in every way, and returns how many strings that
// were. Texts that are alike are searched once.
func assertSilent(t *testing.T, places []place, printers []printer, canaries ...canary) (texts int) {
	t.Helper()
	seen := map[string]bool{}
	for _, p := range places {
		for _, by := range printers {
			texts++
			text := by.print(p.v, p.against)
			if seen[text] {
				continue
			}
			seen[text] = true
			forms := spelling.Forms(text)
			for _, c := range canaries {
				if c.in(forms) {
					t.Errorf("the %s shows, %s, by %s:\n%s", c.name, p.name, by.name, text)
				}
			}
		}
	}
	return texts
}

func allPrinters() []printer { return slices.Concat(fmtPrinters(), slogPrinters(), otherPrinters()) }

// The detector is only worth something if it hears a canary that is not sealed.
func TestCanariesAreHeardWhereNothingIsSealed(t *testing.T) {
	t.Parallel()
	// What shows the type, an address or an error only, and what cuts strings short.
	deaf := regexp.MustCompile(`^%.*[pT]$|^%.*\.3.$|^MarshalText$|^%.*!$`)
	onlySome := regexp.MustCompile(`^XML$|^binary$|^database/sql$`)
	for _, secret := range []struct {
		canary canary
		text   string
		array  any
	}{
		{numberCanary(), wiretest.CanaryNumber, [16]byte([]byte(wiretest.CanaryNumber))},
		{cvvCanary(), wiretest.CanaryCVV, [4]byte([]byte(wiretest.CanaryCVV))},
		{panCanary(), wiretest.CanaryPAN, [24]byte([]byte(wiretest.CanaryPAN))},
		{keyCanary(), wiretest.CanaryKey, [22]byte([]byte(wiretest.CanaryKey))},
	} {
		for _, v := range []any{secret.text, []byte(secret.text), secret.array, shown[string]{secret.text}, url.QueryEscape(secret.text), strconv.Quote(secret.text)} {
			for _, p := range allPrinters() {
				if deaf.MatchString(p.name) || onlySome.MatchString(p.name) && !canPrint(p.name, v) {
					continue
				}
				against := reflect.Zero(reflect.TypeOf(v)).Interface()
				text := p.print(v, against)
				assert.True(t, secret.canary.in(spelling.Forms(text)), "%s of a %T by %s: %s", secret.canary.name, v, p.name, text)
			}
		}
	}
	var said testifyOutput
	assert.Equal(&said, []byte("."), []byte(strings.Repeat(".", 20)+wiretest.CanaryKey))
	assert.True(t, keyCanary().in(spelling.Forms(said.String()[strings.Index(said.String(), "Diff:"):])), "in a dump of several lines")
	assert.True(t, numberCanary().in(spelling.Forms("card "+wiretest.CanaryNumber+" declined")))
	assert.False(t, numberCanary().in(spelling.Forms("card 491736******1735 declined")))
	assert.False(t, cvvCanary().in(spelling.Forms("at 0xc0007351a0")))
}

// canPrint reports whether a printer that cannot print everything can print v.
func canPrint(printer string, v any) bool {
	switch v.(type) {
	case string:
		return printer != "binary"
	case shown[string]:
		return printer == "XML"
	}
	return printer == "binary"
}

// exhibit is an exported type, in all the places where a value of it may stand.
type exhibit struct {
	places   []place
	printers []printer // nil: all
	canaries []canary  // nil: all
}

func exhibitOf[T any](v, against T) exhibit { return exhibit{places: everywhere(v, against)} }

func exhibitKeyOf[T comparable](v, against T) exhibit { return exhibit{places: keyPlaces(v, against)} }

// spoils is what a service that puts canaries wherever it can leaves behind in
// values of this package.
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

// canaryCardText is a card that the service lists.
const canaryCardText = `{"id":"card-1","trade_id":"t-1","label":null,"bin_id":7,"card_bin":"491736","card_no":"` + wiretest.CanaryNumber +
	`","cvv":"` + wiretest.CanaryCVV + `","currency":"USD","available":"1.500","pending":0,"frozen":0,"expire_date":"09/2028",` +
	`"holder_username":"Ann","holder_address":{"city":"Lisbon","` + wiretest.CanaryNumber + `":1},"create_time":"2026-02-28 23:59:59",` +
	`"status":0,"fee":"0.00","` + wiretest.CanaryKey + `":"` + wiretest.CanaryNumber + `"}`

// canaryMessage is what a service may put into msg.
const canaryMessage = `card ` + wiretest.CanaryNumber + ` (4917 3656 2440 1735), key ` + wiretest.CanaryKey

func plunder(t *testing.T) *spoils {
	t.Helper()
	s := &spoils{}
	var err error
	s.client, err = cardwire.New(wiretest.Base, wiretest.CanaryKey,
		cardwire.WithHTTPClient(&http.Client{Transport: wiretest.RoundTripper(canaryResponse)}), cardwire.WithJournal(&s.journal), cardwire.WithRetry(wiretest.QuickRetry),
		cardwire.WithObserver(cardwire.Observer{
			CallStart: func(ctx context.Context, i cardwire.CallInfo) context.Context {
				s.infos = append(s.infos, i)
				return ctx
			},
			CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) { s.results = append(s.results, r) },
			Drift:   func(_ context.Context, _ cardwire.CallInfo, d cardwire.Drift) { s.drifts = append(s.drifts, d) },
		}))
	require.NoError(t, err)
	s.page, err = s.client.ListCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithResponse(&s.success))
	require.NoError(t, err)
	s.secrets, err = s.client.GetCardSecrets(t.Context(), "card-1")
	require.NoError(t, err)
	_, err = s.client.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&s.refusal))
	s.err = wiretest.Failure(t, err)
	for i := range s.results {
		s.results[i].Duration = time.Second // one that happens to hold a CVV is no leak
	}
	for i := range s.journal.Begun {
		s.journal.Begun[i].Time = time.Time{}
	}
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
		body = `{"code":200,"msg":"` + canaryMessage + `","data":{"total":1,"per_page":9,"current_page":1,"last_page":1,"data":[` +
			canaryCardText + `]},"` + wiretest.CanaryNumber + `":"` + wiretest.CanaryKey + `"}`
	case "/cards/private":
		body = wiretest.Success(`{"card_no":"491736******1735","cvv":"***","expire_date":"**/****","pan":"` + wiretest.CanaryPAN + `"}`)
	default:
		status, body = 422, `{"code":422,"msg":"`+canaryMessage+`","data":"`+wiretest.CanaryNumber+`"}`
	}
	response := wiretest.Response(r, status, body)
	response.Header = http.Header{
		"X-Request-Id": {"r-" + wiretest.CanaryNumber + "-" + wiretest.CanaryKey}, "X-Card": {"no. " + wiretest.CanaryNumber, "4917-3656-2440-1735"},
		"X-Key": {"Bearer " + wiretest.CanaryKey}, "Authorization": {"Bearer " + wiretest.CanaryKey}, "Set-Cookie": {"card=" + wiretest.CanaryNumber},
		"X-" + wiretest.CanaryNumber: {"1"},
	}
	return response, nil
}

// exhibits are all exported types by their names. Where a type can hold a
// secret, the value does.
func exhibits(t *testing.T) map[string]exhibit {
	t.Helper()
	s := plunder(t)
	card, other := s.page.Cards[0], cardwire.Card{ID: "card-2", Number: wiretest.CardNumber(t, "5200000000000007"), HolderAddress: &cardwire.Address{}}
	transfer, identityCanaries := identities()
	amount := wiretest.Dec("1.50")
	key := wiretest.CanaryKey
	options := []cardwire.Option{
		cardwire.WithKeySource(func(context.Context) (string, error) { return key, nil }), cardwire.WithHTTPClient(&http.Client{Transport: wiretest.RoundTripper(canaryResponse)}),
		cardwire.WithJournal(&s.journal), cardwire.WithMaskedCards(), cardwire.WithLogger(slog.New(slog.DiscardHandler)),
	}
	attempt := cardwire.Attempt{Start: time.Unix(1, 0).UTC(), Duration: time.Second, Phase: "received", HTTPStatus: 503, Wait: time.Second}
	return map[string]exhibit{
		"Address":            exhibitKeyOf(*card.HolderAddress, cardwire.Address{}),
		"Attempt":            exhibitKeyOf(attempt, cardwire.Attempt{}),
		"AuthField":          exhibitKeyOf(cardwire.AuthField{Field: "idType", Required: true}, cardwire.AuthField{}),
		"AuthRequirement":    exhibitOf(cardwire.AuthRequirement{Level: "base", Fields: []cardwire.AuthField{{Field: "idType"}}}, cardwire.AuthRequirement{}),
		"BIN":                exhibitOf(cardwire.BIN{BIN: "491736", CreateAmount: amount, AuthFeeConfig: json.RawMessage(`{}`)}, cardwire.BIN{}),
		"CVV":                exhibitKeyOf(card.CVV, wiretest.CVV(t, "***")),
		"CallInfo":           exhibitKeyOf(s.infos[2], cardwire.CallInfo{}),
		"CallOption":         exhibitOf(cardwire.WithResponse(&s.success), cardwire.WithoutRetry()),
		"CallResult":         exhibitKeyOf(s.results[2], cardwire.CallResult{}),
		"Card":               exhibitOf(card, other),
		"CardNumber":         exhibitKeyOf(card.Number, other.Number),
		"CardOperation":      exhibitKeyOf(cardwire.CardOperation{ID: "o-1", ClientTransactionID: wiretest.FreezeID}, cardwire.CardOperation{}),
		"CardPage":           exhibitOf(*s.page, cardwire.CardPage{Cards: []cardwire.Card{other}}),
		"CardSecrets":        exhibitKeyOf(cardwire.CardSecrets{Number: card.Number, CVV: card.CVV, PAN: s.secrets.PAN}, cardwire.CardSecrets{}),
		"CardStatus":         exhibitKeyOf(cardwire.CardFrozen, cardwire.CardActive),
		"Client":             exhibitOf(*s.client, cardwire.Client{}),
		"ConsumptionScene":   exhibitKeyOf(cardwire.ConsumptionScene{Name: "Ads", ChannelID: 7}, cardwire.ConsumptionScene{}),
		"Date":               exhibitKeyOf(cardwire.Date{Year: 2026, Month: time.May, Day: 5}, cardwire.Date{}),
		"DateTime":           exhibitKeyOf(card.CreateTime, cardwire.DateTime{}),
		"Doer":               exhibitOf(cardwire.Doer(wiretest.RoundTripper(canaryResponse)), nil),
		"Drift":              exhibitKeyOf(s.drifts[0], cardwire.Drift{}),
		"DuplicateIntent":    {places: errorPlaces(&cardwire.DuplicateIntent{Outcome: cardwire.OutcomeExecuted}, &cardwire.DuplicateIntent{})},
		"EncryptedPAN":       exhibitKeyOf(s.secrets.PAN, wiretest.EncryptedPAN(t, "AAAA")),
		"Error":              {places: append(errorPlaces(s.err, &cardwire.Error{}), everywhere(*s.err, cardwire.Error{})...)},
		"Expiry":             exhibitKeyOf(card.Expiry, cardwire.Expiry{}),
		"FeeTier":            exhibitOf(cardwire.FeeTier{Range: "0-1", High: amount}, cardwire.FeeTier{}),
		"FreezeCardParams":   exhibitKeyOf(cardwire.FreezeCardParams{CardID: "card-1"}, cardwire.FreezeCardParams{}),
		"Intent":             exhibitKeyOf(s.journal.Begun[0], cardwire.Intent{}),
		"IntentResult":       exhibitKeyOf(s.journal.Results[0], cardwire.IntentResult{}),
		"Journal":            exhibitOf(cardwire.Journal(&s.journal), nil),
		"Limiter":            exhibitOf(cardwire.Limiter(wiretest.Limiter(func(context.Context) error { return nil })), nil),
		"ListCardsParams":    exhibitKeyOf(cardwire.ListCardsParams{Status: new(cardwire.CardActive)}, cardwire.ListCardsParams{}),
		"MemoryJournal":      {places: everywhere(cardwire.NewMemoryJournal(), cardwire.NewMemoryJournal())},
		"Observer":           exhibitOf(cardwire.Observer{Drift: func(context.Context, cardwire.CallInfo, cardwire.Drift) {}}, cardwire.Observer{}),
		"Option":             exhibitOf(options, nil),
		"Outcome":            exhibitKeyOf(cardwire.OutcomeExecuted, cardwire.OutcomeUnknown),
		"Part":               exhibitOf(cardwire.Part{Name: "a", Value: "b"}, cardwire.Part{}),
		"Profile":            exhibitOf(cardwire.DefaultProfile(), cardwire.Profile{}),
		"RemittanceCurrency": exhibitOf(cardwire.RemittanceCurrency{PayoutCurrency: "EUR", FixedFee: amount}, cardwire.RemittanceCurrency{}),
		"RemittanceState":    exhibitKeyOf(cardwire.RemittanceState{Code: "1"}, cardwire.RemittanceState{}),
		"Request":            exhibitOf(cardwire.Request{Op: "CloseCard", JSON: &card}, cardwire.Request{}),
		"Resolution":         exhibitOf(cardwire.Resolution{Outcome: cardwire.OutcomeExecuted, By: "Ada"}, cardwire.Resolution{}),
		"Response":           {places: append(everywhere(s.success, cardwire.Response{}), everywhere(&s.refusal, &cardwire.Response{})...)},
		"RetryPolicy":        exhibitKeyOf(cardwire.DefaultRetryPolicy(), cardwire.RetryPolicy{}),
		"Step":               exhibitKeyOf(cardwire.StepDone, cardwire.StepReconcile),
		"Transfer":           exhibitKeyOf(cardwire.Transfer{APIOrderNo: "A-1"}, cardwire.Transfer{}),
		// XML and gob know none of its methods; the places are those where fmt finds them.
		"TransferParams": {
			places: openPlaces(transfer, cardwire.TransferParams{}), printers: transferPrinters(),
			canaries: identityCanaries,
		},
		"TransferStatus":    exhibitKeyOf(cardwire.TransferWaitProcess, ""),
		"UploadImageParams": exhibitOf(cardwire.ImageBytes("id.png", []byte(wiretest.CanaryNumber)), cardwire.UploadImageParams{}),
		"UploadedImage":     exhibitKeyOf(cardwire.UploadedImage{AttachmentKey: "k-1"}, cardwire.UploadedImage{}),
	}
}

// A type that is added must be added to the exhibits as well.
func TestEveryExportedTypeIsExhibited(t *testing.T) {
	t.Parallel()
	assert.Equal(t, exportedTypes(t), slices.Sorted(maps.Keys(exhibits(t))))
}

func exportedTypes(t *testing.T) (names []string) {
	t.Helper()
	for _, file := range syntax.Files(t, "../../..") {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				names = append(names, spec.Name.Name)
			}
			return true
		})
	}
	slices.Sort(names)
	return names
}

func TestNoTextOfAnyTypeShowsASecret(t *testing.T) {
	t.Parallel()
	all := exhibits(t)
	var texts atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d texts of %d types, of each as many as %d places by %d printers", texts.Load(), len(all), len(keyPlaces(1, 2)), len(allPrinters()))
	})
	for name, e := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if e.printers == nil {
				e.printers = allPrinters()
			}
			if e.canaries == nil {
				e.canaries = allCanaries()
			}
			texts.Add(int64(assertSilent(t, e.places, e.printers, e.canaries...)))
		})
	}
}

// A type of a program's own has the fields of ours and none of their methods.
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

func TestNoTextOfATypeWithoutMethodsShowsASecret(t *testing.T) {
	t.Parallel()
	s := plunder(t)
	card := s.page.Cards[0]
	secrets := cardwire.CardSecrets{Number: card.Number, CVV: card.CVV, PAN: s.secrets.PAN}
	for name, places := range map[string][]place{
		"CardNumber":          keyPlaces(bareNumber(card.Number), bareNumber{}),
		"CVV":                 keyPlaces(bareCVV(card.CVV), bareCVV{}),
		"EncryptedPAN":        keyPlaces(barePAN(s.secrets.PAN), barePAN(wiretest.EncryptedPAN(t, "AAAA"))),
		"Card":                everywhere(bareCard(card), bareCard{}),
		"CardSecrets":         keyPlaces(bareSecrets(secrets), bareSecrets{}),
		"Response":            everywhere(bareResponse(s.success), bareResponse{}),
		"Error":               everywhere(bareError(*s.err), bareError{}),
		"Client":              everywhere(bareClient(*s.client), bareClient{}),
		"what embeds a Card":  everywhere(withCard{card, "n"}, withCard{}),
		"what embeds secrets": everywhere(withSecrets{&secrets, "n"}, withSecrets{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertSilent(t, places, allPrinters(), allCanaries()...)
		})
	}
}

// What encodings that know no mask make of a card.
func TestXMLIsMaskedAndGobRefuses(t *testing.T) {
	t.Parallel()
	card := plunder(t).page.Cards[0]
	type sealed struct {
		Number cardwire.CardNumber
		CVV    cardwire.CVV
		PAN    cardwire.EncryptedPAN
	}
	text, err := xml.Marshal(sealed{card.Number, card.CVV, wiretest.EncryptedPAN(t, wiretest.CanaryPAN)})
	require.NoError(t, err)
	assert.Equal(t, "<sealed><Number>491736******1735</Number><CVV>***</CVV><PAN>***</PAN></sealed>", string(text))
	for _, v := range []any{card.Number, card.CVV, wiretest.EncryptedPAN(t, wiretest.CanaryPAN), card, cardwire.CardSecrets{}, cardwire.CardPage{}} {
		err := gob.NewEncoder(io.Discard).Encode(v)
		assert.ErrorContains(t, err, "has no exported fields", "%T", v)
	}
}

func TestNoTextShowsAClientsKey(t *testing.T) {
	t.Parallel()
	const base = "https://api.example.com/api/v1"
	var header string
	note := cardwire.WithHTTPClient(wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		header = r.Header.Get("Authorization")
		return wiretest.Response(r, 500, ""), nil
	}))
	given, err := cardwire.New(base, wiretest.CanaryKey, note, cardwire.WithRetry(cardwire.RetryPolicy{}))
	require.NoError(t, err)
	key := wiretest.CanaryKey
	asked, err := cardwire.New(base, "", cardwire.WithKeySource(func(context.Context) (string, error) { return key, nil }))
	require.NoError(t, err)
	_, err = given.CardCapacity(t.Context())
	require.Error(t, err)
	require.Equal(t, "Bearer "+wiretest.CanaryKey, header, "the key is there to be shown")

	for name, c := range map[string]*cardwire.Client{"given": given, "from a source": asked} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assertSilent(t, everywhere(*c, cardwire.Client{}), allPrinters(), keyCanary())
		})
	}
}

// A transport keeps what was written and read in the buffers of its connections.
func TestNoTextShowsWhatAUsedClientSent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"code":200,"msg":"`+wiretest.CanaryNumber+`","data":7}`)
	}))
	t.Cleanup(server.Close)
	c, err := cardwire.New(server.URL, wiretest.CanaryKey)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	_, err = c.CardCapacity(t.Context())
	require.NoError(t, err)
	assertSilent(t, everywhere(*c, cardwire.Client{}), allPrinters(), keyCanary(), numberCanary())
}

func TestAResponsePrintsWithoutItsBody(t *testing.T) {
	t.Parallel()
	const body = `{"code":200,"msg":"success","data":{"card_no":"` + wiretest.CanaryNumber + `","cvv":"` + wiretest.CanaryCVV + `"}}`
	var r cardwire.Response
	c := wiretest.NewClient(t, wiretest.Always(200, body))
	_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "Ping", Method: "GET", Path: "/ping"}, cardwire.WithResponse(&r))
	require.NoError(t, err)
	require.Equal(t, body, string(r.RevealBody()), "the body is there to be shown")
	assertSilent(t, everywhere(r, cardwire.Response{}), allPrinters(), numberCanary(), cvvCanary())
}

// identities are the fields of a transfer that say who it is about, each with a
// value that is in no other.
func identities() (cardwire.TransferParams, []canary) {
	p := cardwire.TransferParams{MerchantOrderNo: "order-7", PayoutCurrency: "EUR", TransferAmount: wiretest.Dec("120.50")}
	var canaries []canary
	for i, field := range []*string{
		&p.SenderFirstName, &p.SenderLastName, &p.SenderGender, &p.SenderMobileNumber, &p.SenderIDNumber,
		&p.SenderAddress, &p.ReceiverNativeFirstName, &p.ReceiverNativeLastName, &p.ReceiverIDNumber,
		&p.ReceiverMobileNumber, &p.ReceiverBankAccountNumber,
	} {
		*field = fmt.Sprintf("identity-%02d", i)
		canaries = append(canaries, newCanary(*field, *field))
	}
	p.Extra = map[string]string{"receiverEmail": "identity-extra"}
	p.SenderDateOfBirth = cardwire.Date{Year: 1987, Month: time.June, Day: 5}
	return p, append(canaries, newCanary("extra field", "identity-extra"), newCanary("day of birth", "1987-06-05"), newCanary("year of birth", "1987"))
}

// fmt calls no method for %p and %w, both of which vet refuses here.
func methodPrinters() []printer {
	return slices.DeleteFunc(fmtPrinters(), func(p printer) bool {
		return strings.HasSuffix(p.name, "p") || strings.HasSuffix(p.name, "w")
	})
}

// transferPrinters are those that ask a value's methods what to print.
func transferPrinters() []printer {
	asks := []string{"JSON", "text/template", "html/template"}
	return slices.Concat(methodPrinters(), slogPrinters(), slices.DeleteFunc(otherPrinters(), func(p printer) bool {
		return !slices.Contains(asks, p.name)
	}))
}

func TestTransferParamsPrintWithoutWhoTheyAreAbout(t *testing.T) {
	t.Parallel()
	p, canaries := identities()
	assertSilent(t, openPlaces(p, cardwire.TransferParams{}), transferPrinters(), canaries...)
}

// AssertErrorSilent prints an error, what it wraps and what came with it, as
// programs do. It is for the tests of package cardwire_test too.
func AssertErrorSilent(t *testing.T, err error, r *cardwire.Response, canaries ...string) (texts int) {
	t.Helper()
	var secrets []canary
	for _, words := range canaries {
		secrets = append(secrets, newCanary("canary", words))
	}
	for _, layer := range layers(err) {
		texts += assertSilent(t, somePlaces(errorPlaces(layer, io.EOF)), errorPrinters(), secrets...)
	}
	for _, quoting := range []any{
		new(*url.Error), new(*net.OpError), new(*net.AddrError), new(*net.ParseError), new(*http.MaxBytesError),
		new(*json.SyntaxError), new(*json.UnmarshalTypeError), new(*strconv.NumError), new(*time.ParseError), new(base64.CorruptInputError),
		new(*fs.PathError), new(*os.SyscallError),
	} {
		assert.False(t, errors.As(err, quoting), "%T is found in %v", quoting, err)
	}
	if r != nil {
		texts += assertSilent(t, somePlaces(everywhere(*r, cardwire.Response{})), errorPrinters(), secrets...)
	}
	return texts
}

// layers are an error and all that it wraps, at any depth.
func layers(err error) []error {
	if err == nil {
		return nil
	}
	list := []error{err}
	switch wrapping := err.(type) {
	case interface{ Unwrap() error }:
		list = append(list, layers(wrapping.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range wrapping.Unwrap() {
			list = append(list, layers(inner)...)
		}
	}
	return list
}

// somePlaces are those in which errors stand; there are thousands of them.
func somePlaces(all []place) []place {
	return slices.DeleteFunc(all, func(p place) bool {
		return !slices.Contains([]string{"value", "in a hidden field", "wrapped with another"}, p.name)
	})
}

// errorPrinters are those that programs use on errors, and testify's.
var errorPrinters = sync.OnceValue(func() []printer {
	return slices.DeleteFunc(allPrinters(), func(p printer) bool {
		return !slices.Contains([]string{"%v", "%+v", "%#v", "%x", "slog text", "slog JSON", "testify"}, p.name)
	})
})

func TestLayersAreAllThatAnErrorWraps(t *testing.T) {
	t.Parallel()
	inner := errors.Join(io.EOF, fmt.Errorf("one: %w", io.ErrNoProgress))
	outer := fmt.Errorf("two: %w, %w", inner, io.ErrClosedPipe)
	var texts []string
	for _, layer := range layers(outer) {
		texts = append(texts, strings.ReplaceAll(layer.Error(), "\n", "; "))
	}
	assert.Equal(t, []string{
		"two: EOF; one: multiple Read calls return no data or error, io: read/write on closed pipe",
		"EOF; one: multiple Read calls return no data or error", "EOF", "one: multiple Read calls return no data or error",
		"multiple Read calls return no data or error", "io: read/write on closed pipe",
	}, texts)
	assert.Nil(t, layers(nil))
}

// The search in errors is only worth something if it finds what is there.
func TestACanaryInAnErrorIsHeard(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"in its text":      errors.New("pan=" + wiretest.CanaryNumber),
		"in what it wraps": &cardwire.Error{Op: "GetCard", Err: fmt.Errorf("%w: %s", cardwire.ErrUnreadable, wiretest.CanaryNumber)},
		"in what it joins": errors.Join(io.EOF, fmt.Errorf("%x", wiretest.CanaryNumber)),
		"in a field":       &cardwire.Error{Op: "GetCard", Message: wiretest.CanaryNumber},
		"in a hidden one":  &loud{hidden: wiretest.CanaryNumber},
	} {
		heard := false
		for _, layer := range layers(err) {
			for _, p := range errorPlaces(layer, io.EOF) {
				for _, by := range errorPrinters() {
					heard = heard || numberCanary().in(spelling.Forms(by.print(p.v, p.against)))
				}
			}
		}
		assert.True(t, heard, name)
	}
}

// canaryResponses are the data of a success of each operation, full of canaries.
func canaryResponses() map[string]string {
	card := strings.ReplaceAll(canaryCardText, wiretest.CanaryCVV, wiretest.LongCVV)
	responses := map[string]string{
		"ListCards": `{"total":1,"per_page":9,"current_page":1,"last_page":1,"data":[` + card + `]}`,
		"GetCard":   card, "GetCardByOrder": card,
		"GetCardSecrets":           `{"card_no":"` + wiretest.CanaryNumber + `","cvv":"` + wiretest.LongCVV + `","expire_date":"09/2028","pan":"` + wiretest.CanaryPAN + `"}`,
		"ListBINs":                 `[` + wiretest.BIN + `]`,
		"ListBINsUnderMaintenance": `["491736","` + wiretest.CanaryNumber + `"]`,
		"CardCapacity":             wiretest.CanaryNumber,
		"ListRemittanceStates":     `[{"code":"1","name":"` + wiretest.CanaryNumber + `","country":"PT","countryStandardCode":"PRT"}]`,
		"ListRemittanceCurrencies": `[{"id":1,"payout_currency":"EUR","fee_rate":0.1,"fixed_fee":` + wiretest.CanaryNumber + `,"min_quota":1,"max_quota":2,"year_transfer_amount_quota":3}]`,
		"Call":                     `{"pan":"` + wiretest.CanaryNumber + `","cvv":` + wiretest.LongCVV + `,"n":[1,"` + wiretest.CanaryKey + `"]}`,
	}
	responses["AllPages"], responses["AllCards"] = responses["ListCards"], responses["ListCards"]
	for _, w := range wiretest.AllWrites() {
		responses[w.Op] = w.Data
	}
	return responses
}

// hostileCalls are calls of every method, one of them into a type that has
// places for hardly anything.
func hostileCalls() map[string]wiretest.Method {
	calls := wiretest.AllMethods()
	calls["Call"] = func(ctx context.Context, c *cardwire.Client, opts ...cardwire.CallOption) error {
		return wiretest.OnlyError(cardwire.Call[struct {
			PAN  int8
			CVV  time.Time
			N    map[string]bool
			Card cardwire.Card
		}](ctx, c, cardwire.Request{Op: "Ping", Method: "GET", Path: "/ping"}, opts...))
	}
	return calls
}

// listener gathers all that a client tells beside its errors.
type listener struct {
	told bytes.Buffer
	body string
}

func (l *listener) client(t *testing.T, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	note := func(v ...any) { fmt.Fprintln(&l.told, v...) }
	c, err := cardwire.New(wiretest.Base, wiretest.CanaryKey, append(opts,
		cardwire.WithHTTPClient(&http.Client{Transport: wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			return wiretest.Response(r, 200, l.body), nil
		})}),
		cardwire.WithLogger(slog.New(slog.NewTextHandler(&l.told, timeless))),
		cardwire.WithObserver(cardwire.Observer{
			CallEnd: func(_ context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
				note(i, r.HTTPStatus, r.Code, r.Outcome, r.Err)
			},
			Drift: func(_ context.Context, i cardwire.CallInfo, d cardwire.Drift) { note(i, d) },
		}))...)
	require.NoError(t, err)
	return c
}

// Bodies that end anywhere, or hold a byte that does not belong there.
func TestNoErrorOfABrokenBodyShowsASecret(t *testing.T) {
	t.Parallel()
	whole := `{"code":200,"msg":"` + canaryMessage + `","data":` + canaryResponses()["ListCards"] + `}`
	var bodies []string
	for i := range whole {
		bodies = append(bodies, whole[:i])
		for _, b := range []string{`"`, "]", ",", "x", `\`, "\xff"} {
			bodies = append(bodies, whole[:i]+b+whole[i+1:])
		}
	}
	assertBodiesSilent(t, "ListCards", bodies)
}

// Values of another kind in each place, so that an error that quotes what it
// found would quote a canary.
func TestNoErrorOfAWrongValueShowsASecret(t *testing.T) {
	t.Parallel()
	unknowable := map[string]bool{wiretest.LongCVV: true, wiretest.CanaryPAN: true} // by masking long runs of digits, and the key
	value := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+]*|true|false|null|\{|\[`)
	for op, data := range canaryResponses() {
		if op == "CloseCard" {
			continue
		}
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			whole := `{"code":200,"msg":"` + canaryMessage + `","data":` + data + `}`
			var bodies []string
			for _, at := range value.FindAllStringIndex(whole, -1) {
				for _, other := range []string{
					`"` + wiretest.CanaryNumber + `"`, wiretest.CanaryNumber, "-" + wiretest.CanaryNumber + ".5e3", `{"` + wiretest.CanaryNumber + `":"` + wiretest.CanaryKey + `"}`,
					`["` + wiretest.CanaryNumber + `",` + wiretest.LongCVV + `]`, wiretest.LongCVV, `"` + wiretest.CanaryKey + `"`, `"` + wiretest.CanaryPAN + `"`,
					`"` + wiretest.CanaryNumber + `\ud800"`, // an odd number of them: each place takes turns with the two clients
				} {
					if unknowable[strings.Trim(other, `"`)] && (at[0] == len(`{"code":`) || at[0] == len(`{"code":200,"msg":`)) {
						continue // a code and a message like any other
					}
					bodies = append(bodies, whole[:at[0]]+other+whole[at[1]:])
				}
			}
			assertBodiesSilent(t, op, bodies)
		})
	}
}

func assertBodiesSilent(t *testing.T, op string, bodies []string) {
	t.Helper()
	canaries := []string{wiretest.LongNumber, wiretest.LongCVV, wiretest.CanaryPAN[:8], wiretest.CanaryKey}
	secrets := make([]canary, len(canaries))
	for i, words := range canaries {
		secrets[i] = newCanary("canary", words)
	}
	l := &listener{}
	call := hostileCalls()[op]
	errs, texts := 0, 0
	clients := []*cardwire.Client{l.client(t), l.client(t, cardwire.WithStrictDrift(), cardwire.WithMaskedCards())}
	searched := map[string]bool{}
	for i := range bodies {
		l.body = bodies[i]
		var r cardwire.Response
		err := call(t.Context(), clients[i%len(clients)], cardwire.WithResponse(&r), cardwire.WithoutRetry())
		if err != nil {
			errs++
		}
		r.Attempts = nil
		if text := fmt.Sprintf("%v %+v %q", err, r.Header, r.Message); !searched[text] {
			searched[text] = true
			texts += AssertErrorSilent(t, err, &r, canaries...)
		}
		texts += assertSilent(t, hiddenPlaces(err, nil)[:1], errorPrinters()[1:3], secrets...)
	}
	lines := map[string]bool{}
	for line := range strings.Lines(l.told.String()) {
		lines[line] = true
	}
	for line := range lines {
		AssertTextSilent(t, line, canaries...)
	}
	assert.Positive(t, errs)
	t.Logf("%s: %d bodies, %d errors, %d texts", op, len(bodies), errs, texts)
}

// AssertTextSilent searches a string that was written elsewhere.
func AssertTextSilent(t *testing.T, text string, canaries ...string) {
	t.Helper()
	forms := spelling.Forms(text)
	for _, words := range canaries {
		assert.False(t, newCanary("canary", words).in(forms), text)
	}
}

// net/http quotes responses that are not HTTP.
func TestNoErrorOfWhatIsNotHTTPShowsASecret(t *testing.T) {
	t.Parallel()
	const secret = wiretest.CanaryNumber + " " + wiretest.LongCVV + " " + wiretest.CanaryKey
	ok := "HTTP/1.1 200 OK\r\n"
	for name, raw := range map[string]string{
		"another protocol":         secret + "\r\n",
		"a status that is none":    "HTTP/1.1 " + wiretest.CanaryNumber + " OK\r\n\r\n",
		"a version that is none":   "HTTP/" + wiretest.CanaryNumber + " 200 OK\r\n\r\n",
		"a header without a colon": ok + secret + "\r\n\r\n",
		"a header's name":          ok + "X " + secret + ": 1\r\n\r\n",
		"a header that goes on":    ok + " " + secret + "\r\n\r\n",
		"a length that is none":    ok + "Content-Length: " + secret + "\r\n\r\n",
		"a negative length":        ok + "Content-Length: -" + wiretest.CanaryNumber + "\r\n\r\n",
		"two lengths":              ok + "Content-Length: 1\r\nContent-Length: " + wiretest.CanaryNumber + "\r\n\r\n",
		"a length that is untrue":  ok + "Content-Length: 999\r\n\r\n" + secret,
		"an encoding":              ok + "Transfer-Encoding: " + secret + "\r\n\r\n",
		"a chunk's length":         ok + "Transfer-Encoding: chunked\r\n\r\n" + wiretest.CanaryNumber + "x\r\n" + secret,
		"a chunk without an end":   ok + "Transfer-Encoding: chunked\r\n\r\n2\r\n" + secret,
		"a trailer":                ok + "Transfer-Encoding: chunked\r\nTrailer: " + wiretest.CanaryNumber + "\r\n\r\n0\r\n" + secret + "\r\n\r\n",
		"a redirect":               "HTTP/1.1 302 Found\r\nLocation: https://" + wiretest.CanaryKey + ".example/?pan=" + wiretest.CanaryNumber + "\r\nContent-Length: 0\r\n\r\n",
		"a redirect to nowhere":    "HTTP/1.1 307 Moved\r\nLocation: ://" + secret + "\r\nContent-Length: 0\r\n\r\n",
		"another way to redirect":  ok + "Refresh: 0; url=/" + wiretest.CanaryKey + "\r\nContent-Length: 2\r\n\r\n" + "{}",
		"a request's identifier":   "HTTP/1.1 500 No\r\nX-Request-Id: " + wiretest.CanaryNumber + wiretest.CanaryKey + "\r\nContent-Length: 0\r\n\r\n",
		"a wait":                   "HTTP/1.1 429 No\r\nRetry-After: " + secret + "\r\nContent-Length: 0\r\n\r\n",
		"a reason":                 "HTTP/1.1 500 " + secret + "\r\nContent-Length: 0\r\n\r\n",
		"an upgrade":               "HTTP/1.1 101 Switching\r\nUpgrade: " + wiretest.CanaryKey + "\r\nConnection: upgrade\r\n\r\n" + secret,
		"an early hint":            "HTTP/1.1 103 Early\r\nLink: <" + wiretest.CanaryKey + ">\r\n\r\n" + secret,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := loopback.Serve(t, loopback.Say(raw))
			c, err := cardwire.New(s.Base, wiretest.CanaryKey, cardwire.WithRetry(cardwire.RetryPolicy{}))
			require.NoError(t, err)
			t.Cleanup(c.CloseIdleConnections)
			for _, call := range []string{"ListCards", "CreateTransfer"} {
				var r cardwire.Response
				err = hostileCalls()[call](t.Context(), c, cardwire.WithResponse(&r))
				require.Error(t, err)
				AssertErrorSilent(t, err, nil, wiretest.LongNumber, wiretest.LongCVV, wiretest.CanaryKey)
				AssertErrorSilent(t, nil, &r, wiretest.LongNumber, wiretest.CanaryKey)
			}
		})
	}
}

// net/http writes what a service sends unasked to the standard logger, card
// numbers included. Only without idle connections is there nowhere to send it.
// The logger is the process's, so this test runs by itself.
func TestNetHTTPLogsUnsolicitedBytesUnlessConnectionsAreFresh(t *testing.T) {
	fresh := cardwire.WithTransport(&http.Transport{DisableKeepAlives: true})
	for name, tc := range map[string]struct {
		opts   []cardwire.Option
		call   string
		logged bool
	}{
		"a read":                          {nil, "CardCapacity", true},
		"a read on a fresh connection":    {[]cardwire.Option{fresh}, "CardCapacity", false},
		"card secrets":                    {nil, "GetCardSecrets", false},
		"a write":                         {nil, "FreezeCard", false},
		"a write under fresh connections": {[]cardwire.Option{fresh}, "FreezeCard", false},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			before := log.Writer()                      //nolint:forbidigo // what net/http writes to
			log.SetOutput(&logged)                      //nolint:forbidigo // what net/http writes to
			t.Cleanup(func() { log.SetOutput(before) }) //nolint:forbidigo // what net/http writes to
			gone := make(chan struct{})
			s := loopback.Serve(t, func(conn net.Conn) {
				defer close(gone)
				const response = `{"code":500,"msg":"no","data":null}`
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%sunasked: %s", len(response), response, wiretest.CanaryNumber)
				_, _ = io.Copy(io.Discard, conn) // until the client is done with the connection
			})
			c, err := cardwire.New(s.Base, wiretest.CanaryKey, append(tc.opts, cardwire.WithRetry(cardwire.RetryPolicy{}))...)
			require.NoError(t, err)
			t.Cleanup(c.CloseIdleConnections)
			require.ErrorIs(t, hostileCalls()[tc.call](t.Context(), c), cardwire.ErrOutcomeUnknown)
			<-gone
			log.SetOutput(before) //nolint:forbidigo // nothing is written to the buffer any more
			assert.Equal(t, tc.logged, strings.Contains(logged.String(), wiretest.CanaryNumber), logged.String())
			if !tc.logged {
				assert.Empty(t, logged.String())
			}
		})
	}
}

func TestUnderMaskedCardsNothingIsRevealed(t *testing.T) {
	t.Parallel()
	l := &listener{}
	c := l.client(t, cardwire.WithMaskedCards())
	for name, body := range map[string]string{
		"a success": wiretest.Success(`{"total":1,"per_page":9,"current_page":1,"last_page":1,"data":[` + canaryCardText + `]}`),
		"a refusal": `{"code":422,"msg":"no","data":` + canaryCardText + `}`,
		"drift":     `{"code":200,"data":{"total":1,"per_page":9,"current_page":1,"last_page":1,"data":[` + canaryCardText + `]}}`,
		"garbage":   canaryCardText + canaryCardText,
		"nothing":   "",
	} {
		l.body = body
		var r cardwire.Response
		page, _ := c.ListCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithResponse(&r))
		assert.Nil(t, r.RevealBody(), name)
		assert.Equal(t, 200, r.HTTPStatus, name)
		if page != nil {
			require.Len(t, page.Cards, 1, name)
			assert.Equal(t, "491736******1735", page.Cards[0].Number.Reveal(), name)
			assert.Equal(t, "***", page.Cards[0].CVV.Reveal(), name)
		}
		_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "Ping", Method: "POST", Path: "/ping"}, cardwire.WithResponse(&r))
		assert.Nil(t, r.RevealBody(), "%s: %v", name, err)
	}
}

// loud is an error of a caller-supplied function that quotes its argument.
type loud struct{ Secret, hidden string }

func (e *loud) Error() string { return e.Secret }

func TestAHiddenCauseIsFoundAndNotPrinted(t *testing.T) {
	t.Parallel()
	cause := &loud{wiretest.CanaryKey, wiretest.CanaryKey}
	c := wiretest.Unasked(t, cardwire.WithKeySource(func(context.Context) (string, error) {
		return "", fmt.Errorf("for %s: %w", wiretest.CanaryKey, errors.Join(cause, context.Canceled))
	}))
	_, err := c.GetCard(t.Context(), "c1")
	assert.EqualError(t, err, "cardwire: GetCard: not sent: the key source failed: it is safe to call again")
	e := wiretest.Failure(t, err)
	hiddenCause := e.Err
	assert.EqualError(t, hiddenCause, "the key source failed")
	assert.Nil(t, errors.Unwrap(hiddenCause))
	for _, err := range []error{e, hiddenCause} {
		assert.ErrorIs(t, err, context.Canceled)
		assert.ErrorIs(t, err, cause)
		assert.NotErrorIs(t, err, context.DeadlineExceeded)
		assert.NotErrorAs(t, err, new(*loud), "As would hand out the words")
	}
	for _, places := range [][]place{
		everywhere(hiddenCause, errors.New("another")), everywhere(e, &cardwire.Error{}), everywhere(*e, cardwire.Error{}),
	} {
		assertSilent(t, places, allPrinters(), keyCanary())
	}
}
