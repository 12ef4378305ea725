package hostile_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/canary"
	"github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A secret leaves a program in what it prints, logs, encodes and reports. There is one test for
// each way out: TestFormattedValues, TestLoggedValues, TestEncodedValues, TestPanickingValues,
// and for errors those of what was received and of what was sent. What a trace has is in
// cardwireotel's tests, and which fields are sealed in the field tables.

// canaryNumber is what the mask hides of the number, with three digits that it shows: too
// long to occur by chance in an address.
const canaryNumber = "365624401"

// canaryCVV matches the CVV, but not an address that contains it by chance.
var canaryCVV = regexp.MustCompile(`(?:^|[^0-9A-Fa-fx])` + wiretest.CanaryCVV + `(?:$|[^0-9A-Fa-f])`)

// shown returns which secrets a text contains, in one of its forms, or "".
func shown(text string, others ...string) (name string) {
	secrets := append([]string{canaryNumber, wiretest.LongCVV, wiretest.CanaryPAN[:8], wiretest.CanaryKey}, others...)
	for _, form := range canary.Forms(text) {
		for _, secret := range secrets {
			if strings.Contains(form, secret) {
				return secret
			}
		}
		if canaryCVV.MatchString(form) {
			return wiretest.CanaryCVV
		}
	}
	return ""
}

// hidden contains a value where fmt does not find its methods.
type hidden struct{ value any }

// assertSilent writes each value in each way: as it is, in a list, and where no methods are found.
func assertSilent(t *testing.T, ways map[string]func(any) string) {
	t.Helper()
	for of, v := range specimens(t) {
		for way, write := range ways {
			for _, place := range []any{v, []any{v}, hidden{v}, &hidden{&v}} {
				text := write(place)
				assert.Empty(t, shown(text), "%s of a %s in a %T: %s", way, of, place, text)
			}
		}
	}
}

func TestFormattedValues(t *testing.T) {
	t.Parallel()
	ways := map[string]func(any) string{
		"Sprint": func(v any) string { return fmt.Sprint(v, "; ", v) },
		"Errorf": func(v any) string { return fmt.Errorf("failed: %v", v).Error() },
		"testify": func(v any) string { // which calls no methods
			var said testifyOutput
			assert.Nil(&said, v)
			assert.Equal(&said, &v, v)
			return said.String()
		},
	}
	for _, format := range []string{"%s", "%+v", "%#v", "%q", "%x", "%d", "%!", "%30v"} {
		ways[format] = func(v any) string { return fmt.Sprintf(format, v) }
	}
	assertSilent(t, ways)
}

// testifyOutput is what a failed assertion prints.
type testifyOutput struct{ strings.Builder }

func (o *testifyOutput) Errorf(format string, args ...any) { fmt.Fprintf(o, format, args...) }

func TestLoggedValues(t *testing.T) {
	t.Parallel()
	logged := func(handler func(io.Writer) slog.Handler) func(any) string {
		return func(v any) string {
			var b bytes.Buffer
			slog.New(handler(&b)).With("value", v).WithGroup("group").Info("text", "value", v,
				slog.Group("inner", "value", v))
			return b.String()
		}
	}
	assertSilent(t, map[string]func(any) string{
		"text": logged(func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, timeless) }),
		"JSON": logged(func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, timeless) }),
	})
}

// timeless removes from a log what may contain the digits of a canary by chance.
var timeless = &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}}

func TestEncodedValues(t *testing.T) {
	t.Parallel()
	assertSilent(t, map[string]func(any) string{
		"JSON": func(v any) string { text, err := json.Marshal(v); return fmt.Sprintf("%s %v", text, err) },
		"XML":  func(v any) string { text, err := xml.Marshal(v); return fmt.Sprintf("%s %v", text, err) },
		"gob": func(v any) string {
			var b bytes.Buffer
			return fmt.Sprint(gob.NewEncoder(&b).Encode(v)) + b.String()
		},
	})
}

// The runtime itself prints a value with which a program panics, and what is on the stack.
func TestPanickingValues(t *testing.T) {
	t.Parallel()
	const name = "CARDWIRE_PANIC_WITH"
	if of := os.Getenv(name); of != "" {
		go func() { panic(specimens(t)[of]) }()
		select {}
	}
	for _, of := range []string{"Card", "Error", "Response", "Client"} {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanickingValues$")
		program.Env = append(os.Environ(), name+"="+of, "GOTRACEBACK=all")
		said, err := program.CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(said), "panic: ", of)
		assert.Empty(t, shown(string(said)), "%s", said)
	}
}

// The tests above must find what is not sealed.
func TestWhatIsNotSealedIsShown(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{canaryNumber, wiretest.CanaryCVV, wiretest.CanaryPAN, wiretest.CanaryKey} {
		for _, v := range []any{secret, hidden{secret}, []byte(secret), struct{ Value []byte }{[]byte(secret)}} {
			assert.NotEmpty(t, shown(fmt.Sprintf("%v; %#v; %x", v, v, v)), "%#v", v)
		}
	}
	assert.Empty(t, shown("card 491736******1735 declined at 0xc0007351a0"))
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

func canaryResponse(r *http.Request) (*http.Response, error) {
	status, body := 422, `{"code":422,"msg":"`+canaryMessage+`","data":"`+wiretest.CanaryNumber+`"}`
	switch strings.TrimPrefix(r.URL.Path, "/shop/api/v1") {
	case "/cards":
		status, body = 200, `{"code":200,"msg":"`+canaryMessage+`","data":`+onePage(canaryCard)+`,"`+
			wiretest.CanaryNumber+`":"`+wiretest.CanaryKey+`"}`
	case "/cards/private":
		status, body = 200, wiretest.Success(`{"card_no":"491736******1735","cvv":"`+wiretest.CanaryCVV+
			`","expire_date":"**/****","pan":"`+wiretest.CanaryPAN+`"}`)
	}
	response := wiretest.Response(r, status, body)
	response.Header = http.Header{
		"X-Request-Id":  {"r-" + wiretest.CanaryNumber + "-" + wiretest.CanaryKey},
		"X-Card":        {"no. " + wiretest.CanaryNumber, "4917-3656-2440-1735"},
		"Authorization": {"Bearer " + wiretest.CanaryKey}, "Set-Cookie": {"card=" + wiretest.CanaryNumber},
		"X-" + wiretest.CanaryNumber: {"1"},
	}
	return response, nil
}

// A program's own type may have the fields of ours, and none of their methods.
type (
	bareNumber   cardwire.CardNumber
	barePAN      cardwire.EncryptedPAN
	bareCard     cardwire.Card
	bareResponse cardwire.Response
	bareError    cardwire.Error
	bareClient   cardwire.Client
	withCard     struct {
		cardwire.Card
		Note string
	}
)

// specimens are values of this package to which a service full of canaries leads.
func specimens(t *testing.T) map[string]any {
	t.Helper()
	all, journal := map[string]any{}, &wiretest.Journal{}
	c, err := cardwire.New(wiretest.Base, wiretest.CanaryKey, cardwire.WithJournal(journal),
		cardwire.WithHTTPClient(wiretest.RoundTripper(canaryResponse)), cardwire.WithRetry(wiretest.QuickRetry),
		cardwire.WithObserver(cardwire.Observer{
			CallEnd: func(_ context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
				r.Duration = time.Second // one that contains the digits of a CVV is no leak
				all["CallInfo"], all["CallResult"] = i, r
			},
			Drift: func(_ context.Context, _ cardwire.CallInfo, d cardwire.Drift) { all["Drift"] = d },
		}))
	require.NoError(t, err)
	var success, refusal cardwire.Response
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithResponse(&success))
	require.NoError(t, err)
	secrets, err := c.GetCardSecrets(t.Context(), "card-1")
	require.NoError(t, err)
	_, err = c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&refusal))
	failure, card := wiretest.Failure(t, err), page.Cards[0]
	require.Equal(t, wiretest.CanaryNumber+wiretest.CanaryCVV+wiretest.CanaryPAN,
		card.Number.Reveal()+secrets.CVV.Reveal()+secrets.PAN.Reveal(), "the canaries are there to be shown")
	require.Contains(t, string(refusal.RevealBody()), canaryMessage)

	key := func(context.Context) (string, error) { return wiretest.CanaryKey, nil }
	asked, err := cardwire.New(wiretest.Base, "", cardwire.WithKeySource(key))
	require.NoError(t, err)
	for name, v := range map[string]any{
		"Card": card, "CardPage": page, "Number": card.Number, "CVV": card.CVV,
		"CardSecrets": secrets, "PAN": secrets.PAN,
		"Error": failure, "Error, no pointer": *failure, "Response": &success, "Response, no pointer": refusal,
		"Client": c, "Client, no pointer": *asked, "Client, used": usedClient(t),
		"WithResponse": cardwire.WithResponse(&success), "WithKeySource": cardwire.WithKeySource(key),
		"Request": cardwire.Request{Op: "CloseCard", JSON: &card},
		"Intent":  journal.Begun[0], "IntentResult": journal.Results[0],
		"bare number": bareNumber(card.Number), "bare PAN": barePAN(secrets.PAN), "bare card": bareCard(card),
		"bare response": bareResponse(success), "bare error": bareError(*failure), "bare client": bareClient(*c),
		"embedded card": withCard{card, "n"},
	} {
		all[name] = v
	}
	require.NotNil(t, all["Drift"])
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

// assertErrorSilent prints an error, what it wraps and what came with it, as programs do.
func assertErrorSilent(t *testing.T, err error, r *cardwire.Response, sent ...string) {
	t.Helper()
	for _, layer := range layers(err) {
		text := fmt.Sprintf("%+v %#v %v", layer, layer, hidden{layer})
		assert.Empty(t, shown(text, sent...), text)
	}
	if r != nil {
		text := fmt.Sprintf("%+v %v %q", *r, r.Header, r.Message)
		assert.Empty(t, shown(text), text)
	}
	for _, quoting := range []any{
		new(*url.Error), new(*json.SyntaxError), new(*json.UnmarshalTypeError), new(*strconv.NumError),
		new(*time.ParseError),
	} {
		assert.False(t, errors.As(err, quoting), "%T is found in %v", quoting, err)
	}
}

// layers returns an error and everything that it wraps.
func layers(err error) (list []error) {
	if err == nil {
		return nil
	}
	list = []error{err}
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

// telling returns a client of the service that tells all that it can to w.
func telling(t *testing.T, w io.Writer, service wiretest.RoundTripper, opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(wiretest.Base, wiretest.CanaryKey, append(opts, wiretest.InMemory(),
		cardwire.WithHTTPClient(service), cardwire.WithLogger(slog.New(slog.NewTextHandler(w, timeless))),
		cardwire.WithObserver(cardwire.Observer{
			CallEnd: func(_ context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
				fmt.Fprintln(w, i, r.HTTPStatus, r.Code, r.Outcome, r.Err)
			},
			Drift: func(_ context.Context, i cardwire.CallInfo, d cardwire.Drift) { fmt.Fprintln(w, i, d) },
		}))...)
	require.NoError(t, err)
	return c
}

// Bodies with a wrong byte at each place, and with a value of another kind in each place: an
// error that quotes what it found would quote a canary. Cards and BINs have every kind of field.
func TestNoErrorOfAWrongBodyShowsASecret(t *testing.T) {
	t.Parallel()
	const number = wiretest.CanaryNumber
	value := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+]*|true|false|null|\{|\[`)
	others := []string{
		`"` + number + `"`, number, "-" + number + ".5e3", `{"` + number + `":"` + wiretest.CanaryKey + `"}`,
		`["` + number + `",1]`, `"` + wiretest.CanaryKey + `"`, `"` + number + `\ud800"`,
	}
	card := strings.ReplaceAll(canaryCard, wiretest.CanaryCVV, wiretest.LongCVV) // times must not spell it by chance
	calls := wiretest.AllMethods()
	for op, data := range map[string]string{"ListCards": onePage(card),
		"ListBINs": `[` + contract.Element("bins", 0) + `]`} {
		whole := `{"code":200,"msg":"` + canaryMessage + `","data":` + data + `}`
		var bodies []string
		for i := range whole {
			bodies = append(bodies, whole[:i]+string("\",]x\\\xff"[i%6])+whole[i+1:])
		}
		for _, at := range value.FindAllStringIndex(whole, -1) {
			for _, other := range others {
				bodies = append(bodies, whole[:at[0]]+other+whole[at[1]:])
			}
		}
		var told strings.Builder
		var body string
		service := func(r *http.Request) (*http.Response, error) { return wiretest.Response(r, 200, body), nil }
		for _, c := range []*cardwire.Client{
			telling(t, &told, service),
			telling(t, &told, service, cardwire.WithStrictDrift(), cardwire.WithMaskedCards()),
		} {
			searched := map[string]bool{}
			for _, body = range bodies {
				var r cardwire.Response
				err := calls[op](t.Context(), c, cardwire.WithResponse(&r), cardwire.WithoutRetry())
				r.Attempts = nil
				if text := fmt.Sprint(err, r.Message); !searched[text] {
					searched[text] = true
					assertErrorSilent(t, err, &r)
				}
			}
			assert.Greater(t, len(searched), 100)
		}
		assertToldSilent(t, told.String())
	}
}

// assertToldSilent searches each distinct line that was logged or observed.
func assertToldSilent(t *testing.T, told string, sent ...string) {
	t.Helper()
	lines := strings.Split(told, "\n")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		assert.Empty(t, shown(line, sent...), line)
	}
}

// What was sent is in no error, log or observer either: not if the network or the service
// repeats it, and not if the response is about something else.
func TestNothingToldShowsWhatWasSent(t *testing.T) {
	t.Parallel()
	const inQuery, inBody = "canary-in-a-query", "canary-in-a-body"
	repeated := func(r *http.Request) string {
		var request strings.Builder
		_ = r.Write(&request)
		return r.URL.String() + request.String()
	}
	responses := map[string]wiretest.RoundTripper{
		"an error": func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: errors.New(repeated(r))}
		},
		"a page": func(r *http.Request) (*http.Response, error) { return wiretest.Response(r, 502, repeated(r)), nil },
		"garbage": func(r *http.Request) (*http.Response, error) {
			return wiretest.Response(r, 200, wiretest.Success(strconv.Quote(repeated(r)))[1:]), nil
		},
		"a redirect": func(r *http.Request) (*http.Response, error) {
			response := wiretest.Response(r, 307, repeated(r))
			response.Header.Set("Location", r.URL.String())
			return response, nil
		},
		"a response to another": func(r *http.Request) (*http.Response, error) {
			return wiretest.Response(r, 200, wiretest.Success(`{"id":"card-2","available":"1.000","pending":0,`+
				`"frozen":0,"fee":"0.00","status":1,"merchant_order_no":"order-2","api_order_no":"AO2"}`)), nil
		},
	}
	transfer := wiretest.SmallTransfer("M-1")
	transfer.SenderAddress, transfer.ReceiverBankAccountNumber = inBody, inBody
	calls := wiretest.MethodsGiven(wiretest.Given{Card: inQuery, Transfer: transfer})
	for _, method := range []string{"GetCard", "CreateTransfer"} {
		for name, respond := range responses {
			var told strings.Builder
			c := telling(t, &told, respond, cardwire.WithRetry(cardwire.RetryPolicy{}))
			var r cardwire.Response
			err := calls[method](t.Context(), c, cardwire.WithResponse(&r))
			require.Error(t, err, "%s: %s", method, name)
			assertErrorSilent(t, err, nil, inQuery, inBody)
			assertErrorSilent(t, nil, &r) // a redirect's header repeats the query
			assertToldSilent(t, told.String(), inQuery, inBody)
		}
	}
}
