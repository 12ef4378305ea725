package hostile_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// errorPrinters are some of those that programs use on errors, and testify's, which looks
// into everything. All are tried in TestNoTextOfAnyTypeShowsASecret.
var errorPrinters = slices.DeleteFunc(slices.Clone(printers), func(p printer) bool {
	return !slices.Contains([]string{"%+v", "%#v", "slog JSON", "testify"}, p.name)
})

// assertErrorSilent prints an error, what it wraps and what came with it, as programs do.
func assertErrorSilent(t *testing.T, err error, r *cardwire.Response, canaries ...canary) {
	t.Helper()
	printed := []any{}
	for _, layer := range layers(err) {
		printed = append(printed, layer)
	}
	if r != nil {
		printed = append(printed, *r)
	}
	for _, v := range printed {
		assertSilent(t, map[string]any{"value": v, "hidden": hidden{"n", v}}, errorPrinters, canaries...)
	}
	for _, quoting := range []any{
		new(*url.Error), new(*net.OpError), new(*net.AddrError), new(*net.ParseError), new(*http.MaxBytesError),
		new(*json.SyntaxError), new(*json.UnmarshalTypeError), new(*strconv.NumError), new(*time.ParseError),
		new(base64.CorruptInputError), new(*fs.PathError), new(*os.SyscallError),
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

// The search must find a canary that is in an error.
func TestACanaryInAnErrorIsHeard(t *testing.T) {
	t.Parallel()
	one := fmt.Errorf("one: %w", io.ErrNoProgress)
	joined := errors.Join(io.EOF, one)
	outer := fmt.Errorf("two: %w, %w", joined, io.ErrClosedPipe)
	assert.Equal(t, []error{outer, joined, io.EOF, one, io.ErrNoProgress, io.ErrClosedPipe}, layers(outer))
}

// The canaries of responses and requests, which no error may contain. They are too long to
// occur by chance in the digits of times and attempts.
var (
	longCanaries = []canary{
		newCanary("number", wiretest.LongNumber), newCanary("CVV", wiretest.LongCVV), panCanary, keyCanary,
	}
	queryCanary, bodyCanary = newCanary("query", "canary-in-a-query"), newCanary("body", "canary-in-a-body")
)

// canaryResponses are the data of a success of each operation, full of canaries.
func canaryResponses() map[string]string {
	card := strings.ReplaceAll(canaryCard, wiretest.CanaryCVV, wiretest.LongCVV)
	number := wiretest.CanaryNumber
	responses := map[string]string{
		"ListCards": onePage(card), "GetCard": card,
		"GetCardSecrets": `{"card_no":"` + number + `","cvv":"` + wiretest.LongCVV +
			`","expire_date":"09/2028","pan":"` + wiretest.CanaryPAN + `"}`,
		"ListBINs":                 `[` + contract.Element("bins", 0) + `]`,
		"ListBINsUnderMaintenance": `["491736","` + number + `"]`,
		"CardCapacity":             number,
		"ListRemittanceStates":     `[{"code":"1","name":"` + number + `","country":"PT","countryStandardCode":"PRT"}]`,
		"ListRemittanceCurrencies": `[` + strings.Replace(contract.Element("currencies", 0), "1.5", number, 1) + `]`,
		"Call": `{"pan":"` + number + `","cvv":` + wiretest.LongCVV + `,"n":[1,"` +
			wiretest.CanaryKey + `"]}`,
	}
	for _, w := range wiretest.AllWrites() {
		if w.Op != "CloseCard" {
			responses[string(w.Op)] = w.Data
		}
	}
	return responses
}

// hostileCalls returns a call of every method, and one of Call into a type with few fields.
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

// telling are options of a client that tells all that it can to w.
func telling(w io.Writer) []cardwire.Option {
	return []cardwire.Option{
		cardwire.WithLogger(slog.New(slog.NewTextHandler(w, timeless))),
		cardwire.WithObserver(cardwire.Observer{
			CallEnd: func(_ context.Context, i cardwire.CallInfo, r cardwire.CallResult) {
				fmt.Fprintln(w, i, r.HTTPStatus, r.Code, r.Outcome, r.Err)
			},
			Drift: func(_ context.Context, i cardwire.CallInfo, d cardwire.Drift) { fmt.Fprintln(w, i, d) },
		}),
	}
}

// Bodies that are cut off at each place, or have a wrong byte there.
func TestNoErrorOfABrokenBodyShowsASecret(t *testing.T) {
	t.Parallel()
	whole := `{"code":200,"msg":"` + canaryMessage + `","data":` + canaryResponses()["ListCards"] + `}`
	var bodies []string
	spoiling := []string{`"`, "]", ",", "x", `\`, "\xff"}
	for i := range whole {
		bodies = append(bodies, whole[:i], whole[:i]+spoiling[i%len(spoiling)]+whole[i+1:])
	}
	assertBodiesSilent(t, "ListCards", bodies)
}

// Values of another kind in each place, so that an error that quotes what it
// found would quote a canary.
func TestNoErrorOfAWrongValueShowsASecret(t *testing.T) {
	t.Parallel()
	// These look like a code and a message: masking recognizes only long runs of digits.
	unknowable := map[string]bool{wiretest.LongCVV: true, `"` + wiretest.CanaryPAN + `"`: true}
	value := regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+]*|true|false|null|\{|\[`)
	number, key := wiretest.CanaryNumber, wiretest.CanaryKey
	others := []string{
		`"` + number + `"`, number, "-" + number + ".5e3", `{"` + number + `":"` + key + `"}`,
		`["` + number + `",` + wiretest.LongCVV + `]`, wiretest.LongCVV, `"` + key + `"`,
		`"` + wiretest.CanaryPAN + `"`,
		`"` + number + `\ud800"`, // an odd number of them: each place takes turns with the two clients
	}
	for op, data := range canaryResponses() {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			whole := `{"code":200,"msg":"` + canaryMessage + `","data":` + data + `}`
			var bodies []string
			for _, at := range value.FindAllStringIndex(whole, -1) {
				for _, other := range others {
					if !unknowable[other] || at[0] > len(`{"code":200,"msg":`) {
						bodies = append(bodies, whole[:at[0]]+other+whole[at[1]:])
					}
				}
			}
			assertBodiesSilent(t, op, bodies)
		})
	}
}

func assertBodiesSilent(t *testing.T, op string, bodies []string) {
	t.Helper()
	var told bytes.Buffer
	var body string
	client := func(opts ...cardwire.Option) *cardwire.Client {
		c, err := cardwire.New(wiretest.Base, wiretest.CanaryKey, append(append(opts, telling(&told)...),
			wiretest.InMemory(), cardwire.WithHTTPClient(wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				return wiretest.Response(r, 200, body), nil
			})))...)
		require.NoError(t, err)
		return c
	}
	clients := []*cardwire.Client{client(), client(cardwire.WithStrictDrift(), cardwire.WithMaskedCards())}
	call := hostileCalls()[op]
	errs, searched := 0, map[string]bool{}
	for i := range bodies {
		body = bodies[i]
		var r cardwire.Response
		err := call(t.Context(), clients[i%len(clients)], cardwire.WithResponse(&r), cardwire.WithoutRetry())
		if err != nil {
			errs++
		}
		r.Attempts = nil
		if text := fmt.Sprintf("%v %+v %q", err, r.Header, r.Message); !searched[text] {
			searched[text] = true
			assertErrorSilent(t, err, &r, longCanaries...)
		}
		assertSilent(t, map[string]any{"hidden": hidden{"n", err}}, errorPrinters[:2], longCanaries...)
	}
	assertToldSilent(t, told.String(), longCanaries...)
	assert.Positive(t, errs)
}

// assertToldSilent searches each distinct line that was logged or observed.
func assertToldSilent(t *testing.T, told string, canaries ...canary) {
	t.Helper()
	lines := strings.Split(told, "\n")
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		for _, c := range canaries {
			assert.False(t, c.in(line), line)
		}
	}
}

// What was sent is in no error, log or observer either: not if the network or the service
// repeats it, and not if the response is about something else.
func TestNothingToldShowsWhatWasSent(t *testing.T) {
	t.Parallel()
	const card = `{"id":"card-2","available":"1.000","pending":0,"frozen":0,"fee":"0.00","status":1}`
	others := map[string]string{
		"/cards": onePage(card), "/cards/info": card,
		"/remittance/transfer": `{"merchant_order_no":"order-2","api_order_no":"AO2","status":"wait_process"}`,
	}
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
			return wiretest.Response(r, 200, wiretest.Success(others[strings.TrimPrefix(r.URL.Path, "/shop/api/v1")])), nil
		},
	}
	transfer := wiretest.SmallTransfer("M-1")
	transfer.SenderAddress, transfer.ReceiverBankAccountNumber = bodyCanary.words, bodyCanary.words
	sent := append(slices.Clone(longCanaries), queryCanary, bodyCanary)
	for method, call := range wiretest.MethodsGiven(wiretest.Given{
		Card: queryCanary.words, Order: queryCanary.words, Operation: wiretest.UUID,
		Freeze:   cardwire.FreezeCardParams{CardID: queryCanary.words, ClientTransactionID: wiretest.FreezeID},
		List:     cardwire.ListCardsParams{Page: 1, SubAccountID: queryCanary.words, Status: new(cardwire.CardActive)},
		Transfer: transfer, Image: cardwire.UploadImageParams{Filename: "id.png", Data: []byte(bodyCanary.words)},
		Request: cardwire.Request{Op: "Ping", Method: "GET", Path: "/ping", Query: url.Values{"q": {queryCanary.words}}},
	}) {
		for name, respond := range responses {
			if name == "a response to another" && (method == "Call" || method == "GetCardByOrder") {
				continue // nothing is known of that
			}
			var told bytes.Buffer
			c, err := cardwire.New(wiretest.Base, wiretest.CanaryKey, append(telling(&told), wiretest.InMemory(),
				cardwire.WithHTTPClient(respond), cardwire.WithRetry(cardwire.RetryPolicy{}),
				cardwire.WithProfile(func(p *cardwire.Profile) { p.SubAccountParam = "sub" }))...)
			require.NoError(t, err)
			var r cardwire.Response
			err = call(t.Context(), c, cardwire.WithResponse(&r))
			require.Error(t, err, "%s: %s", method, name)
			assertErrorSilent(t, err, nil, sent...)
			assertErrorSilent(t, nil, &r, longCanaries...) // a redirect's header repeats the query
			assertToldSilent(t, told.String(), sent...)
		}
	}
}
