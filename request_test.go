package cardwire

import (
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// unmarshallable has no JSON.
type unmarshallable struct{}

func (unmarshallable) MarshalJSON() ([]byte, error) { return nil, errBrokenNetwork }

func TestCallRefusesRequestsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request Request
		want    string
	}{
		"no name":                      {Request{Method: "GET", Path: "/a"}, "Op is empty"},
		"a name with a line":           {Request{Op: "a\nb", Method: "GET", Path: "/a"}, "Op contains a control character"},
		"no method":                    {Request{Op: "A", Path: "/a"}, "Method must be GET, POST, PUT, PATCH or DELETE"},
		"another method":               {Request{Op: "A", Method: "HEAD", Path: "/a"}, "Method must be GET, POST, PUT, PATCH or DELETE"},
		"a method in small letters":    {Request{Op: "A", Method: "get", Path: "/a"}, "Method must be GET, POST, PUT, PATCH or DELETE"},
		"two bodies":                   {Request{Op: "A", Method: "POST", Path: "/a", Form: url.Values{}, JSON: 1}, "only one of Form, JSON and Multipart may be set"},
		"a form and parts":             {Request{Op: "A", Method: "POST", Path: "/a", Form: url.Values{}, Multipart: []Part{}}, "only one of Form, JSON and Multipart may be set"},
		"a GET with parts":             {Request{Op: "A", Method: "GET", Path: "/a", Multipart: []Part{}}, "a GET must not have a body"},
		"a GET with a reference":       {Request{Op: "A", Method: "GET", Path: "/a", Reference: "r"}, "only a write may have a Reference"},
		"a GET with a form":            {Request{Op: "A", Method: "GET", Path: "/a", Form: url.Values{}}, "a GET must not have a body"},
		"a GET with JSON":              {Request{Op: "A", Method: "GET", Path: "/a", JSON: 1}, "a GET must not have a body"},
		"a read with a reference":      {Request{Op: "A", Method: "POST", Path: "/a", ReadOnly: true, Reference: "r"}, "only a write may have a Reference"},
		"a reference with white space": {Request{Op: "A", Method: "POST", Path: "/a", Reference: "r "}, "Reference begins or ends with white space"},
		"a reference that is too long": {Request{Op: "A", Method: "POST", Path: "/a", Reference: strings.Repeat("r", 129)}, "Reference is longer than 128 bytes"},
		"JSON that has none":           {Request{Op: "A", Method: "POST", Path: "/a", JSON: unmarshallable{}}, "JSON cannot be encoded"},
		"a function for JSON":          {Request{Op: "A", Method: "POST", Path: "/a", JSON: func() {}}, "JSON cannot be encoded"},
		"no path":                      {Request{Op: "A", Method: "GET"}, `Path must begin with one "/"`},
		"a path without a slash":       {Request{Op: "A", Method: "GET", Path: "a"}, `Path must begin with one "/"`},
		"a host":                       {Request{Op: "A", Method: "GET", Path: "//evil.example.com/a"}, `Path must begin with one "/"`},
		"a URL":                        {Request{Op: "A", Method: "GET", Path: "https://evil.example.com/a"}, `Path must begin with one "/"`},
		"dots":                         {Request{Op: "A", Method: "GET", Path: "/a/../b"}, `Path must not contain "." or ".." segments`},
		"dots at the end":              {Request{Op: "A", Method: "GET", Path: "/a/.."}, `Path must not contain "." or ".." segments`},
		"a dot":                        {Request{Op: "A", Method: "GET", Path: "/./a"}, `Path must not contain "." or ".." segments`},
		"dots as an escape":            {Request{Op: "A", Method: "GET", Path: "/a/%2e%2e/b"}, "Path contains a query, a fragment, a backslash or an escape"},
		"a query":                      {Request{Op: "A", Method: "GET", Path: "/a?b=c"}, "Path contains a query, a fragment, a backslash or an escape"},
		"a fragment":                   {Request{Op: "A", Method: "GET", Path: "/a#b"}, "Path contains a query, a fragment, a backslash or an escape"},
		"a backslash":                  {Request{Op: "A", Method: "GET", Path: `/a\b`}, "Path contains a query, a fragment, a backslash or an escape"},
		"a space":                      {Request{Op: "A", Method: "GET", Path: "/a b"}, "Path contains a space"},
		"a line":                       {Request{Op: "A", Method: "GET", Path: "/a\r\nb"}, "Path contains a control character"},
		"dots with a parameter":        {Request{Op: "A", Method: "GET", Path: "/a/..;/b"}, `Path must not contain "." or ".." segments`},
		"a query that is no UTF-8":     {Request{Op: "A", Method: "GET", Path: "/a", Query: url.Values{"a": {"\xff"}}}, "Query is not valid UTF-8"},
		"a form that is no UTF-8":      {Request{Op: "A", Method: "POST", Path: "/a", Form: url.Values{"\xff": {"a"}}}, "Form is not valid UTF-8"},
		"JSON that is no UTF-8":        {Request{Op: "A", Method: "POST", Path: "/a", JSON: []string{"\xff"}}, "JSON is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := Call[any](t.Context(), unasked(t), tc.request)
			refusedBeforehand(t, err, tc.want)
			assert.Nil(t, v)
			assert.NotErrorIs(t, err, errBrokenNetwork)
		})
	}
}

// An Op that cannot be a name does not get into the text of the error either.
func TestCallKeepsAnOpThatIsRefusedOutOfTheError(t *testing.T) {
	t.Parallel()
	for op, problem := range map[string]string{
		"": "Op is empty", "a\nb": "Op contains a control character", "a\xff": "Op is not valid UTF-8",
	} {
		_, err := Call[any](t.Context(), unasked(t), Request{Op: op, Method: "GET", Path: "/a"})
		require.EqualError(t, err, "cardwire: Call: not sent: invalid parameters: "+problem+": correct it before calling again")
	}
}

func TestCallSends(t *testing.T) {
	t.Parallel()
	const formType = "application/x-www-form-urlencoded"
	for name, tc := range map[string]struct {
		request Request
		want    string
	}{
		"a GET": {
			Request{Op: "A", Method: "GET", Path: "/wallet/deposits"},
			"GET /shop/api/v1/wallet/deposits",
		},
		"a GET with a query": {
			Request{Op: "A", Method: "GET", Path: "/wallet", Query: url.Values{"b": {"2", "1"}, "a": {"x y&z"}}},
			"GET /shop/api/v1/wallet?a=x+y%26z&b=2&b=1",
		},
		"a path with other letters": {
			Request{Op: "A", Method: "GET", Path: "/caf\u00e9:1;v=2,3"},
			"GET /shop/api/v1/caf%C3%A9:1;v=2,3",
		},
		"a POST that reads": {
			Request{Op: "A", Method: "POST", Path: "/find", ReadOnly: true, Form: url.Values{"b": {"2", "1"}, "a": {"x y&z"}}},
			"POST /shop/api/v1/find\n" + formType + "\n\na=x+y%26z&b=2&b=1",
		},
		"a POST without a body": {
			Request{Op: "A", Method: "POST", Path: "/ping"},
			"POST /shop/api/v1/ping\n" + formType + "\n\n",
		},
		"a PUT of JSON": {
			Request{Op: "A", Method: "PUT", Path: "/limits", Query: url.Values{"card": {"c1"}}, JSON: map[string]any{"b": []int{1, 2}, "a": "<é>"}},
			"PUT /shop/api/v1/limits?card=c1\napplication/json\n\n" + `{"a":"\u003cé\u003e","b":[1,2]}`,
		},
		"a PATCH of raw JSON": {
			Request{Op: "A", Method: "PATCH", Path: "/limits", JSON: json.RawMessage(`{"day": 1.50}`)},
			"PATCH /shop/api/v1/limits\napplication/json\n\n" + `{"day":1.50}`,
		},
		"fields and files": {
			Request{Op: "A", Method: "POST", Path: "/kyc", Multipart: []Part{
				{Name: "cardId", Value: "c1"},
				{Name: "front", File: new(ImageBytes("front.png", []byte("\x89PNG\r\n\x1a\nfront")))},
				{Name: "note", Value: ""},
				{Name: "selfie", File: new(ImageBytes("me.jpg", []byte("\xff\xd8\xffselfie")))},
			}},
			"POST /shop/api/v1/kyc\nmultipart/form-data\n\n" +
				"Content-Disposition: form-data; name=\"cardId\"\n\nc1\n\n" +
				"Content-Disposition: form-data; name=\"front\"; filename=\"front.png\"\nContent-Type: image/png\n\n\x89PNG\r\n\x1a\nfront\n\n" +
				"Content-Disposition: form-data; name=\"note\"\n\n\n\n" +
				"Content-Disposition: form-data; name=\"selfie\"; filename=\"me.jpg\"\nContent-Type: image/jpeg\n\n\xff\xd8\xffselfie",
		},
		"a DELETE": {
			Request{Op: "A", Method: "DELETE", Path: "/cards/c1", Reference: "r-1"},
			"DELETE /shop/api/v1/cards/c1\n" + formType + "\n\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := Call[string](t.Context(), answered(t, tc.want, success(`"done"`)), tc.request)
			require.NoError(t, err)
			assert.Equal(t, "done", v)
		})
	}
}

// callWith has the service answer a read with data, and decodes that.
func callWith[T any](t *testing.T, data string) (T, error) {
	t.Helper()
	c := answered(t, "GET /shop/api/v1/wallet", success(data))
	return Call[T](t.Context(), c, Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
}

type wallet struct {
	Owner   string          `json:"owner"`
	Balance decimal.Decimal `json:"balance"`
	Tags    []string        `json:"tags"`
}

func TestCallDecodesIntoAnyType(t *testing.T) {
	t.Parallel()
	t.Run("struct", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[wallet](t, ` {"owner":"Ann","balance":"10.50","tags":["a"],"more":1} `)
		require.NoError(t, err)
		assert.Equal(t, wallet{Owner: "Ann", Balance: dec("10.50"), Tags: []string{"a"}}, v)
	})
	t.Run("pointer", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[*wallet](t, `{"owner":"Ann","balance":1,"tags":null}`)
		require.NoError(t, err)
		assert.Equal(t, &wallet{Owner: "Ann", Balance: dec("1")}, v)
	})
	t.Run("list", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[[]int64](t, `[1,9007199254740993]`)
		require.NoError(t, err)
		assert.Equal(t, []int64{1, 9007199254740993}, v)
	})
	t.Run("map", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[map[string]bool](t, `{"a":true}`)
		require.NoError(t, err)
		assert.Equal(t, map[string]bool{"a": true}, v)
	})
	t.Run("number", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[json.Number](t, `1.10`)
		require.NoError(t, err)
		assert.Equal(t, json.Number("1.10"), v)
	})
	t.Run("raw", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[json.RawMessage](t, `{"b" : 1, "a": [ ]}`)
		require.NoError(t, err)
		assert.Equal(t, `{"b" : 1, "a": [ ]}`, string(v))
	})
	t.Run("a type of this package", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[RemittanceState](t, `{"code":"1","name":"Lisboa","country":"PT","countryStandardCode":"PRT"}`)
		require.NoError(t, err)
		assert.Equal(t, RemittanceState{Code: "1", Name: "Lisboa", Country: "PT", CountryStandardCode: "PRT"}, v)
	})
	t.Run("boolean", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[bool](t, `true`)
		require.NoError(t, err)
		assert.True(t, v)
	})
}

// Null is nothing, and no number, text or object.
func TestCallTakesNullForWhatCanBeNil(t *testing.T) {
	t.Parallel()
	pointer, err := callWith[*wallet](t, `null`)
	require.NoError(t, err)
	assert.Nil(t, pointer)
	list, err := callWith[[]string](t, `null`)
	require.NoError(t, err)
	assert.Nil(t, list)
	table, err := callWith[map[string]int](t, `null`)
	require.NoError(t, err)
	assert.Nil(t, table)
	anything, err := callWith[any](t, ` null `)
	require.NoError(t, err)
	assert.Nil(t, anything)
	raw, err := callWith[json.RawMessage](t, `null`)
	require.NoError(t, err)
	assert.Equal(t, "null", string(raw))
}

func TestCallRefusesDataThatIsNotOfTheType(t *testing.T) {
	t.Parallel()
	unreadable := facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	read := func(t *testing.T, err error) {
		t.Helper()
		assert.Equal(t, unreadable, factsOf(t, err))
		assert.ErrorContains(t, err, "data: expected a value that can be decoded into the type parameter of Call")
		assert.NotContains(t, err.Error(), "4111", "the text of encoding/json quotes values")
	}
	for _, data := range []string{`null`, `"4111111111111111"`, `4111111111111111`, `[]`, `true`, `{"owner":4111111111111111}`} {
		v, err := callWith[wallet](t, data)
		read(t, err)
		assert.Equal(t, wallet{}, v, "nothing of what could be read is returned")
	}
	_, err := callWith[int32](t, `4111111111111111`)
	read(t, err)
	_, err = callWith[int64](t, `null`)
	read(t, err)
	_, err = callWith[string](t, `null`)
	read(t, err)
	_, err = callWith[decimal.Decimal](t, `null`)
	read(t, err)

	c := answered(t, "GET /shop/api/v1/wallet", `{"code":200,"msg":"success"}`)
	_, err = Call[any](t.Context(), c, Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
	assert.Equal(t, unreadable, factsOf(t, err))
	assert.ErrorContains(t, err, "data is missing")
}

// The envelope is as strict as that of any other operation, and so is data: what
// encoding/json would let through is not JSON that can be relied on.
func TestCallIsAsStrictAsANamedOperation(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		success(`{"owner":"Ann","owner":"Bob"}`), success("\"\xff\""), success(`"\ud800"`), success(`1`) + "1",
		success(strings.Repeat("[", 64) + strings.Repeat("]", 64)), `{"code":"200","msg":"success","data":1}`,
	} {
		c := answered(t, "GET /shop/api/v1/wallet", body)
		_, err := Call[any](t.Context(), c, Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
		assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}, factsOf(t, err), body)
	}
}

func TestCallRevealsTheBody(t *testing.T) {
	t.Parallel()
	c := answered(t, "GET /shop/api/v1/wallet", success(`{ "owner":"Ann"}`))
	var r Response
	_, err := Call[any](t.Context(), c, Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"}, WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, success(`{ "owner":"Ann"}`), string(r.RevealBody()))
}

func TestAnErrorOfCallNamesTheCallersOperation(t *testing.T) {
	t.Parallel()
	c := converse(t, []exchange{refusal("DELETE /shop/api/v1/cards/c1\napplication/x-www-form-urlencoded\n\n")})
	_, err := Call[any](t.Context(), c, Request{Op: "CloseCard", Method: "DELETE", Path: "/cards/c1", Reference: "r-1"})
	e := failure(t, err)
	assert.Equal(t, "CloseCard", e.Op)
	assert.Equal(t, "r-1", e.Reference)
	assert.True(t, strings.HasPrefix(err.Error(), `cardwire: CloseCard r-1: refused, HTTP 422, code 422, "order exists"`), err)
}

// How often Call asks is the matter of what it is asked to do.
func TestCallAsksAgainOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request Request
		reply   string // empty: the connection is closed without an answer
		asked   int32
		want    error
	}{
		"a GET after 503":                  {Request{Method: "GET"}, replyText("503 Down", "", ""), 3, ErrOutcomeUnknown},
		"a GET after 500":                  {Request{Method: "GET"}, replyText("500 Down", "", ""), 3, ErrOutcomeUnknown},
		"a GET without an answer":          {Request{Method: "GET"}, "", 3, ErrOutcomeUnknown},
		"a POST that reads after 503":      {Request{Method: "POST", ReadOnly: true}, replyText("503 Down", "", ""), 2, ErrOutcomeUnknown},
		"a POST that reads after 500":      {Request{Method: "POST", ReadOnly: true}, replyText("500 Down", "", ""), 1, ErrOutcomeUnknown},
		"a POST that reads, not answered":  {Request{Method: "POST", ReadOnly: true}, "", 1, ErrOutcomeUnknown},
		"a POST that writes after 503":     {Request{Method: "POST"}, replyText("503 Down", "", ""), 1, ErrOutcomeUnknown},
		"a POST that writes after 429":     {Request{Method: "POST"}, replyText("429 Slow", "", ""), 1, ErrRefused},
		"a POST that writes, not answered": {Request{Method: "POST"}, "", 1, ErrOutcomeUnknown},
		"a DELETE, not answered":           {Request{Method: "DELETE"}, "", 1, ErrOutcomeUnknown},
		"a PUT, not answered":              {Request{Method: "PUT", JSON: 1}, "", 1, ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveReplies(t, func(conn net.Conn) { sayAndClose(tc.reply)(conn) })
			tc.request.Op, tc.request.Path = "Ask", "/ask"
			_, err := Call[any](t.Context(), clientOver(t, s.base), tc.request)
			require.ErrorIs(t, err, tc.want)
			assert.Equal(t, tc.asked, s.requests.Load())
		})
	}
}

// A file of a Call is as exact as that of UploadImage.
func TestCallWithAFileOfAnotherSize(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{3, 5} {
		p := ImageBytes("a.png", []byte("four"))
		p.Size, p.ContentType = size, "image/png"
		c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
			return httpReply(r, 200, success(`"done"`)), nil // before it has read anything
		}))
		_, err := Call[string](t.Context(), c, Request{Op: "A", Method: "POST", Path: "/kyc", Multipart: []Part{{Name: "file", File: &p}}})
		require.ErrorIs(t, err, ErrOutcomeUnknown)
		require.ErrorContains(t, err, "bytes than Size")
	}
}

// masked is a type of a caller's that has this package's types in every way in which
// encoding/json fills them.
type masked struct {
	Card    Card
	Pointer *Card
	List    []Card
	Pair    [2]CVV
	ByName  map[string]CardNumber
	ByOwner map[string]*Card
	Counts  map[CardNumber]int
	Any     any
	Page    struct{ Cards []struct{ Number CardNumber } }
	unset   *Card
	ownSecrets
}

type ownSecrets struct{ Secrets CardSecrets }

func TestCallMasksThisPackagesTypes(t *testing.T) {
	t.Parallel()
	const number, cvv = "4931930000001234", "123"
	text := success(`{"Card":` + listedCardText + `,"Pointer":` + listedCardText + `,"List":[` + listedCardText + `],` +
		`"ByName":{"a":"` + number + `"},"ByOwner":{"a":` + listedCardText + `},"Counts":{"` + number + `":2},` +
		`"Any":{"card_no":"***"},"Page":{"Cards":[{"Number":"` + number + `"},{"Number":"493193******1234"}]},` +
		`"Secrets":` + edited(t, secretsText, `493193******1234`, number) + `}`)
	request := Request{Op: "Cards", Method: "GET", Path: "/cards/mine"}

	got, err := Call[masked](t.Context(), answered(t, anything, text, WithMaskedCards()), request)
	require.NoError(t, err)
	mask, err := NewCardNumber("493193******1234")
	require.NoError(t, err)
	for name, card := range map[string]Card{"a field": got.Card, "a pointer": *got.Pointer, "a list": got.List[0], "a map": *got.ByOwner["a"]} {
		assert.Equal(t, mask, card.Number, name)
		assert.Equal(t, "***", card.CVV.Reveal(), name)
		assert.Equal(t, "card-1", card.ID, name)
		assert.Equal(t, dec("123.450"), card.Available, name)
	}
	assert.Equal(t, map[string]CardNumber{"a": mask}, got.ByName)
	assert.Equal(t, map[CardNumber]int{mask: 2}, got.Counts)
	assert.Equal(t, mask, got.Page.Cards[0].Number)
	assert.Equal(t, mask, got.Page.Cards[1].Number)
	assert.Equal(t, mask, got.Secrets.Number)
	assert.Equal(t, "q83vAQ==", got.Secrets.PAN.Reveal())
	assert.Zero(t, got.Pair)
	assert.Nil(t, got.unset)

	for _, client := range []*Client{
		answered(t, anything, success(`[`+listedCardText+`]`), WithMaskedCards()),
		answered(t, anything, success(`[`+listedCardText+`]`)),
	} {
		cards, err := Call[[]*Card](t.Context(), client, request)
		require.NoError(t, err)
		assert.Equal(t, client.core().maskedCards, cards[0].Number.IsMasked())
		assert.Equal(t, client.core().maskedCards, cards[0].CVV.Reveal() != cvv)
	}
}
