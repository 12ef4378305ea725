package cardwire_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// unmarshallable has no JSON.
type unmarshallable struct{}

func (unmarshallable) MarshalJSON() ([]byte, error) { return nil, wiretest.ErrBroken }

func TestCallRefusesRequestsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	type request = cardwire.Request
	get := func(path string) request { return request{Op: "A", Method: "GET", Path: path} }
	post := func(change func(*request)) request {
		r := request{Op: "A", Method: "POST", Path: "/a", Reference: "r-1"}
		change(&r)
		return r
	}
	method := func(m string) request { return request{Op: "A", Method: m, Path: "/a"} }
	var sealed, scaled []request
	number, pan := wiretest.CardNumber(t, "4111111111111111"), wiretest.EncryptedPAN(t, "q83vAQ==")
	type embedding struct{ cardwire.Card }
	for _, v := range []any{
		number, &number, pan, wiretest.CVV(t, "123"), cardwire.CardNumber{}, []any{1, map[string]any{"n": &number}},
		map[string]cardwire.CVV{"cvv": {}}, struct{ N []*cardwire.CardNumber }{[]*cardwire.CardNumber{&number}},
		struct{ cardwire.CardNumber }{number}, cardwire.Card{}, []cardwire.Card{{ID: "c1"}}, &cardwire.CardPage{},
		cardwire.CardSecrets{PAN: pan}, embedding{}, &embedding{}, struct{ *embedding }{new(embedding)},
	} {
		sealed = append(sealed, post(func(r *request) { r.JSON = v }))
	}
	for _, v := range []any{
		wiretest.Dec("10.50"), new(wiretest.Dec("0.00")), map[string]any{"amount": []decimal.Decimal{wiretest.Dec("1.10")}},
		struct{ decimal.Decimal }{wiretest.Dec("7.0")}, decimal.NewNullDecimal(wiretest.Dec("10.50")),
	} {
		scaled = append(scaled, post(func(r *request) { r.JSON = v }))
	}
	form, parts, long := url.Values{}, []cardwire.Part{}, strings.Repeat("r", 129)
	for want, requests := range map[string][]request{
		"Op is empty":                     {{Method: "GET", Path: "/a"}},
		"Op contains a control character": {{Op: "a\nb", Method: "GET", Path: "/a"}},
		"Op is not valid UTF-8":           {{Op: "a\xff", Method: "GET", Path: "/a"}},

		"Method must be GET, POST, PUT, PATCH or DELETE": {method(""), method("HEAD"), method("get")},
		"only one of Form, JSON and Multipart may be set": {
			post(func(r *request) { r.Form, r.JSON = form, 1 }),
			post(func(r *request) { r.Form, r.Multipart = form, parts }),
		},
		"a GET must not have a body": {
			{Op: "A", Method: "GET", Path: "/a", Form: form}, {Op: "A", Method: "GET", Path: "/a", JSON: 1},
			{Op: "A", Method: "GET", Path: "/a", Multipart: parts},
		},
		"only a write may have a Reference": {
			{Op: "A", Method: "GET", Path: "/a", Reference: "r"}, post(func(r *request) { r.ReadOnly = true }),
		},
		"Reference begins or ends with white space": {post(func(r *request) { r.Reference = "r " })},
		"Reference is longer than 128 bytes":        {post(func(r *request) { r.Reference = long })},
		"JSON cannot be encoded": {
			post(func(r *request) { r.JSON = unmarshallable{} }), post(func(r *request) { r.JSON = func() {} }),
		},
		"Query is not valid UTF-8": {{Op: "A", Method: "GET", Path: "/a", Query: url.Values{"a": {"\xff"}}}},
		"Form is not valid UTF-8":  {post(func(r *request) { r.Form = url.Values{"\xff": {"a"}} })},
		"JSON is not valid UTF-8":  {post(func(r *request) { r.JSON = []string{"\xff"} })},
		"JSON contains a sealed value, which would be sent as its mask: use Reveal": sealed,
		"JSON contains a decimal that would lose its scale: use StringFixed":        scaled,

		// What no path may be in detail is in internal/check.
		`Path must begin with one "/"`:               {get(""), get("//evil.example.com/a")},
		`Path must not contain "." or ".." segments`: {get("/a/../b")},
	} {
		for _, r := range requests {
			v, err := cardwire.Call[any](t.Context(), wiretest.Unasked(t), r)
			assert.Nil(t, v)
			assert.NotErrorIs(t, err, wiretest.ErrBroken)
			if strings.HasPrefix(want, "Op ") {
				const refused = "cardwire: Call: not sent: invalid setup: "
				require.EqualError(t, err, refused+want+": correct it, then call again", "without that Op")
				wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, want)
				continue
			}
			wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, want)
		}
	}
}

// Journals and NextStep would take such a call for the operation. Nothing is said of its order.
func TestCallRefusesTheNamesOfOperations(t *testing.T) {
	t.Parallel()
	names := slices.Collect(maps.Keys(wiretest.AllMethods()))
	for _, op := range append(names, "", "a\nb") {
		if op == "Call" || op == "AllPages" || op == "AllCards" {
			continue
		}
		for _, method := range []string{"POST", "post"} { // whatever else is wrong
			journal := new(wiretest.Journal)
			_, err := cardwire.Call[any](t.Context(), wiretest.Unasked(t, cardwire.WithJournal(journal)),
				cardwire.Request{Op: cardwire.Op(op), Method: method, Path: "/a", Reference: "r-1"})
			assert.ErrorIs(t, err, cardwire.ErrSetup, op)
			assert.Equal(t, told{"NotSent Setup", cardwire.StepRetry}, toldBy(t, err), op)
			assert.Empty(t, journal.Voided, op)
		}
	}
}

// Whoever typed a card number into a path finds it in no log.
func TestObserversAreNotToldOfWhatIsInvalid(t *testing.T) {
	t.Parallel()
	var heard []cardwire.CallInfo
	c := wiretest.Unasked(t,
		cardwire.WithJournal(&wiretest.Journal{OnVoid: func(cardwire.Intent) error { return wiretest.ErrBroken }}),
		cardwire.WithObserver(cardwire.Observer{
			JournalError: func(_ context.Context, info cardwire.CallInfo, _ error) { heard = append(heard, info) },
		}))
	for _, r := range []cardwire.Request{
		{Op: "CloseCard", Method: "POST", Path: "/cards/close?number=4111111111111111", Reference: "r-1"},
		{Op: "CloseCard", Method: "POST 4111111111111111", Path: "/cards/close", Reference: "r-1"},
	} {
		heard = nil
		_, err := cardwire.Call[any](t.Context(), c, r)
		require.ErrorIs(t, err, wiretest.ErrBroken)
		assert.Equal(t, []cardwire.CallInfo{{Op: "CloseCard", Reference: "r-1"}}, heard)
	}
}

// revealing has a marshaler of its own, which does what it should.
type revealing struct{ Number cardwire.CardNumber }

func (r revealing) MarshalText() ([]byte, error) { return []byte(r.Number.Reveal()), nil }

func TestCallSends(t *testing.T) {
	t.Parallel()
	number := wiretest.CardNumber(t, "4111111111111111")
	type request = cardwire.Request
	const form = "\napplication/x-www-form-urlencoded\n\n"
	values := url.Values{"b": {"2", "1"}, "a": {"x y&z"}}
	sends := func(want string, r request) {
		t.Helper()
		if r.Op = "A"; r.Method != "GET" && !r.ReadOnly {
			r.Reference = "r-1"
		}
		c := wiretest.Respond(t, want, wiretest.Success(`"done"`))
		v, err := cardwire.Call[string](t.Context(), c, r)
		require.NoError(t, err)
		assert.Equal(t, "done", v)
	}
	sends("GET /shop/api/v1/wallet/deposits", request{Method: "GET", Path: "/wallet/deposits"})
	sends("GET /shop/api/v1/wallet?a=x+y%26z&b=2&b=1", request{Method: "GET", Path: "/wallet", Query: values})
	sends("GET /shop/api/v1/caf%C3%A9:1;v=2,3", request{Method: "GET", Path: "/caf\u00e9:1;v=2,3"})
	sends("POST /shop/api/v1/find"+form+"a=x+y%26z&b=2&b=1",
		request{Method: "POST", Path: "/find", ReadOnly: true, Form: values})
	sends("POST /shop/api/v1/ping"+form, request{Method: "POST", Path: "/ping"})
	sends("DELETE /shop/api/v1/cards/c1"+form, request{Method: "DELETE", Path: "/cards/c1"})
	sends("PUT /shop/api/v1/limits?card=c1\napplication/json\n\n"+`{"a":"\u003cé\u003e","b":[1,2]}`, request{
		Method: "PUT", Path: "/limits", Query: url.Values{"card": {"c1"}},
		JSON: map[string]any{"b": []int{1, 2}, "a": "<é>"},
	})
	sends("POST /shop/api/v1/limits\napplication/json\n\n"+
		`{"amount":"10.25","fee":"3","none":null,"number":"4111111111111111","revealed":"4111111111111111","total":"1000"}`,
		request{Method: "POST", Path: "/limits", JSON: map[string]any{
			"amount": wiretest.Dec("10.25"), "fee": wiretest.Dec("3"), "total": decimal.New(1, 3), "none": (*cardwire.CVV)(nil),
			"number": number.Reveal(), "revealed": revealing{number},
		}})
	sends("PATCH /shop/api/v1/limits\napplication/json\n\n"+`{"day":1.50}`,
		request{Method: "PATCH", Path: "/limits", JSON: json.RawMessage(`{"day": 1.50}`)})
	sends("POST /shop/api/v1/kyc\nmultipart/form-data\n\n"+
		"Content-Disposition: form-data; name=\"cardId\"\n\nc1\n\n"+
		"Content-Disposition: form-data; name=\"front\"; filename=\"front.png\"\nContent-Type: image/png\n\n"+
		"\x89PNG\r\n\x1a\nfront\n\n"+
		"Content-Disposition: form-data; name=\"note\"\n\n\n\n"+
		"Content-Disposition: form-data; name=\"selfie\"; filename=\"me.jpg\"\nContent-Type: image/jpeg\n\n"+
		"\xff\xd8\xffselfie", request{Method: "POST", Path: "/kyc", Multipart: []cardwire.Part{
		{Name: "cardId", Value: "c1"},
		{Name: "front", File: &cardwire.UploadImageParams{
			Filename: "front.png", Data: []byte("\x89PNG\r\n\x1a\nfront"),
		}},
		{Name: "note", Value: ""},
		{Name: "selfie", File: &cardwire.UploadImageParams{Filename: "me.jpg", Data: []byte("\xff\xd8\xffselfie")}},
	}})
}

// callWith makes the service respond to a read with data, and decodes that.
func callWith[T any](t *testing.T, data string) (T, error) {
	t.Helper()
	c := wiretest.Respond(t, "GET /shop/api/v1/wallet", wiretest.Success(data))
	return cardwire.Call[T](t.Context(), c, cardwire.Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
}

type wallet struct {
	Owner   string          `json:"owner"`
	Balance decimal.Decimal `json:"balance"`
	Tags    []string        `json:"tags"`
}

// callDecodes asserts what Call makes of data.
func callDecodes[T any](t *testing.T, data string, want T) {
	t.Helper()
	got, err := callWith[T](t, data)
	require.NoError(t, err, data)
	assert.Equal(t, want, got, data)
}

func TestCallDecodesIntoAnyType(t *testing.T) {
	t.Parallel()
	ann := wallet{Owner: "Ann", Balance: wiretest.Dec("10.50"), Tags: []string{"a"}}
	callDecodes(t, ` {"owner":"Ann","balance":"10.50","tags":["a"],"more":1} `, ann)
	callDecodes(t, `{"owner":"Ann","balance":1,"tags":null}`, &wallet{Owner: "Ann", Balance: wiretest.Dec("1")})
	callDecodes(t, `[1,9007199254740993]`, []int64{1, 9007199254740993})
	callDecodes(t, `{"a":true}`, map[string]bool{"a": true})
	callDecodes(t, `1.10`, json.Number("1.10"))
	callDecodes[any](t, `{"n":[9007199254740993,1.50]}`, map[string]any{"n": []any{
		json.Number("9007199254740993"), json.Number("1.50"),
	}})
	callDecodes(t, `{"b" : 1, "a": [ ]}`, json.RawMessage(`{"b" : 1, "a": [ ]}`))
	callDecodes(t, `true`, true)
	callDecodes(t, `{"code":"1","name":"Lisboa","country":"PT","countryStandardCode":"PRT"}`,
		cardwire.RemittanceState{Code: "1", Name: "Lisboa", Country: "PT", CountryStandardCode: "PRT"})
	// Null is nothing, and no number, string or object.
	callDecodes(t, `null`, (*wallet)(nil))
	callDecodes(t, `null`, []string(nil))
	callDecodes(t, `null`, map[string]int(nil))
	callDecodes(t, ` null `, any(nil))
	callDecodes(t, `null`, json.RawMessage("null"))
}

func TestCallRefusesDataThatIsNotOfTheType(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`null`, `"4111111111111111"`, `4111111111111111`, `[]`, `true`, `{"owner":4111111111111111}`,
	} {
		refusesData[wallet](t, data)
	}
	refusesData[int32](t, `4111111111111111`)
	refusesData[int64](t, `null`)
	refusesData[string](t, `null`)
	refusesData[decimal.Decimal](t, `null`)

	c := wiretest.NewClient(t, wiretest.Always(200, `{"code":200,"msg":"success"}`))
	_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
	assert.Equal(t, `Unknown Unreadable, HTTP 200, 200 "success"`, outcomeOf(t, err))
	assert.ErrorContains(t, err, "data is missing")
}

// refusesData asserts that Call cannot decode data, and quotes nothing of it.
func refusesData[T any](t *testing.T, data string) {
	t.Helper()
	v, err := callWith[T](t, data)
	assert.Equal(t, `Unknown Unreadable, HTTP 200, 200 "success"`, outcomeOf(t, err))
	assert.ErrorContains(t, err, "data: expected a value that can be decoded into the type parameter of Call")
	assert.NotContains(t, err.Error(), "4111", "the text of encoding/json quotes values")
	assert.Equal(t, *new(T), v, "nothing of what could be read is returned")
}

func TestWithResponseTellsWhatCameBack(t *testing.T) {
	t.Parallel()
	header := http.Header{
		"X-Request-Id": {"r-1"}, "Set-Cookie": {"session=1"}, "Authorization": {"Bearer x"},
		"X-Debug":            {"b", "asked with Bearer " + wiretest.Key},
		"X-Cards":            {"none", "of 4111111111111111 and 4111 1111 1111 1111"},
		"X-4111111111111111": {"1"},
	}
	c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response := wiretest.Response(r, 201, `{"code":200,"msg":"sent to 4111111111111111","data":["493193"]}`)
		response.Header = header
		return response, nil
	}))
	var r cardwire.Response
	_, err := c.ListBINsUnderMaintenance(t.Context(), cardwire.WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, 201, r.HTTPStatus)
	assert.Equal(t, 200, r.Code)
	assert.Equal(t, "sent to ****************", r.Message)
	assert.Equal(t, http.Header{
		"X-Request-Id": {"r-1"}, "X-Cards": {"none", "of **************** and **** **** **** ****"},
	}, r.Header)
	assert.Len(t, header, 6, "the doer's own header is left alone")
	assert.Equal(t, "of 4111111111111111 and 4111 1111 1111 1111", header["X-Cards"][1])
	assert.Nil(t, r.Attempts, "a clean first try")

	const body = `{"code":200,"msg":"sent to 4111111111111111","data":["493193"]}`
	revealed := r.RevealBody()
	assert.Equal(t, body, string(revealed))
	clear(revealed)
	assert.Equal(t, body, string(r.RevealBody()), "each is a copy")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(verb, r), "4111")
	}
}

func TestWithResponseTellsOfFailuresToo(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/cards/info?id=c1"
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: asked, Status: 404, Header: "X-A: b", Response: `{"code":1404,"msg":"no such card","data":null}`},
		{Want: asked, Status: 502, Response: "<h1>Bad Gateway</h1>"},
		{Want: asked, Err: wiretest.ErrBroken},
	}, cardwire.WithRetry(cardwire.RetryPolicy{}))
	var r cardwire.Response
	_, err := c.GetCard(t.Context(), "c1", cardwire.WithResponse(&r))
	require.ErrorIs(t, err, cardwire.ErrNotFound)
	assert.Equal(t, 404, r.HTTPStatus)
	assert.Equal(t, 1404, r.Code)
	assert.Equal(t, "no such card", r.Message)
	assert.Equal(t, http.Header{"X-A": {"b"}}, r.Header)
	assert.Equal(t, `{"code":1404,"msg":"no such card","data":null}`, string(r.RevealBody()))

	_, err = c.GetCard(t.Context(), "c1", cardwire.WithResponse(&r))
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
	assert.Equal(t, 502, r.HTTPStatus)
	assert.Zero(t, r.Code, "nothing of the call before")
	assert.Empty(t, r.Message)
	assert.Equal(t, "<h1>Bad Gateway</h1>", string(r.RevealBody()))

	_, err = c.GetCard(t.Context(), "c1", cardwire.WithResponse(&r))
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
	require.Len(t, r.Attempts, 1)
	assert.Equal(t, "sent", r.Attempts[0].Phase)
	r.Attempts = nil
	assert.Equal(t, cardwire.Response{}, r, "there was no response")
	assert.Nil(t, r.RevealBody())
	assert.Nil(t, (*cardwire.Response)(nil).RevealBody())

	r.HTTPStatus = 200
	_, err = c.GetCard(t.Context(), "", cardwire.WithResponse(&r))
	wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, "cardID")
	assert.Equal(t, cardwire.Response{}, r, "a call that is refused resets it as well")
}

// Which header that is, and what is masked in it, is in internal/mask.
func TestAnErrorHoldsTheServicesRequestID(t *testing.T) {
	t.Parallel()
	refused := wiretest.Exchange{
		Want: "GET /shop/api/v1/bins", Status: 422, Header: "X-Request-Id: r-4111111111111111-" + wiretest.Key,
	}
	_, err := wiretest.Converse(t, []wiretest.Exchange{refused}).ListBINs(t.Context())
	assert.Equal(t, "r-****************-***", wiretest.Failure(t, err).RequestID)
}

// kept is a type of a caller's that has this package's types in every way in which
// encoding/json fills them.
type kept struct {
	Card    cardwire.Card
	Pointer *cardwire.Card
	List    []cardwire.Card
	ByName  map[string]cardwire.CardNumber
	ByOwner map[string]*cardwire.Card
	Counts  map[cardwire.CardNumber]int
	Any     any
	Page    struct {
		Cards []struct{ Number cardwire.CardNumber }
	}
	unset *cardwire.Card
	keptSecrets
}

type keptSecrets struct{ Secrets cardwire.CardSecrets }

func TestCallMasksTypesOfThisPackage(t *testing.T) {
	t.Parallel()
	const number = "4931930000001234"
	const card = listedCard
	mine := wiretest.Success(`{"Card":` + card + `,"Pointer":` + card + `,"List":[` + card + `],` +
		`"ByName":{"a":"` + number + `"},"ByOwner":{"a":` + card + `},"Counts":{"` + number + `":2},` +
		`"Any":{"card_no":"***"},"Page":{"Cards":[{"Number":"` + number + `"},{"Number":"493193******1234"}]},` +
		`"Secrets":` + wiretest.Edited(t, secretsOfCard, `493193******1234`, number) + `}`)
	request := cardwire.Request{Op: "Cards", Method: "GET", Path: "/cards/mine"}

	c := wiretest.NewClient(t, wiretest.Always(200, mine), cardwire.WithMaskedCards())
	var r cardwire.Response
	got, err := cardwire.Call[kept](t.Context(), c, request, cardwire.WithResponse(&r))
	require.NoError(t, err)
	assert.Nil(t, r.RevealBody())
	mask := wiretest.CardNumber(t, "493193******1234")
	for name, card := range map[string]cardwire.Card{
		"a field": got.Card, "a pointer": *got.Pointer, "a list": got.List[0], "a map": *got.ByOwner["a"],
	} {
		assert.Equal(t, mask, card.Number, name)
		assert.Equal(t, "***", card.CVV.Reveal(), name)
		assert.Equal(t, "card-1", card.ID, name)
		assert.Equal(t, wiretest.Dec("123.450"), card.Available, name)
	}
	assert.Equal(t, map[string]cardwire.CardNumber{"a": mask}, got.ByName)
	assert.Equal(t, map[cardwire.CardNumber]int{mask: 2}, got.Counts)
	assert.Equal(t, mask, got.Page.Cards[0].Number)
	assert.Equal(t, mask, got.Page.Cards[1].Number)
	assert.Equal(t, mask, got.Secrets.Number)
	assert.Equal(t, "q83vAQ==", got.Secrets.PAN.Reveal())
	assert.Equal(t, map[string]any{"card_no": "***"}, got.Any)
	assert.Nil(t, got.unset)

	c = wiretest.NewClient(t, wiretest.Always(200, mine))
	got, err = cardwire.Call[kept](t.Context(), c, request)
	require.NoError(t, err)
	assert.Equal(t, number, got.Card.Number.Reveal(), "without WithMaskedCards")
}
