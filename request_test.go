package cardwire_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// unmarshallable has no JSON.
type unmarshallable struct{}

func (unmarshallable) MarshalJSON() ([]byte, error) { return nil, wiretest.ErrBroken }

func TestCallRefusesRequestsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		request cardwire.Request
		want    string
	}{
		"no name":                      {cardwire.Request{Method: "GET", Path: "/a"}, "Op is empty"},
		"a name with a line":           {cardwire.Request{Op: "a\nb", Method: "GET", Path: "/a"}, "Op contains a control character"},
		"no method":                    {cardwire.Request{Op: "A", Path: "/a"}, "Method must be GET, POST, PUT, PATCH or DELETE"},
		"another method":               {cardwire.Request{Op: "A", Method: "HEAD", Path: "/a"}, "Method must be GET, POST, PUT, PATCH or DELETE"},
		"a method in small letters":    {cardwire.Request{Op: "A", Method: "get", Path: "/a"}, "Method must be GET, POST, PUT, PATCH or DELETE"},
		"two bodies":                   {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Form: url.Values{}, JSON: 1}, "only one of Form, JSON and Multipart may be set"},
		"a form and parts":             {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Form: url.Values{}, Multipart: []cardwire.Part{}}, "only one of Form, JSON and Multipart may be set"},
		"a GET with parts":             {cardwire.Request{Op: "A", Method: "GET", Path: "/a", Multipart: []cardwire.Part{}}, "a GET must not have a body"},
		"a GET with a reference":       {cardwire.Request{Op: "A", Method: "GET", Path: "/a", Reference: "r"}, "only a write may have a Reference"},
		"a GET with a form":            {cardwire.Request{Op: "A", Method: "GET", Path: "/a", Form: url.Values{}}, "a GET must not have a body"},
		"a GET with JSON":              {cardwire.Request{Op: "A", Method: "GET", Path: "/a", JSON: 1}, "a GET must not have a body"},
		"a read with a reference":      {cardwire.Request{Op: "A", Method: "POST", Path: "/a", ReadOnly: true, Reference: "r"}, "only a write may have a Reference"},
		"a reference with white space": {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Reference: "r "}, "Reference begins or ends with white space"},
		"a reference that is too long": {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Reference: strings.Repeat("r", 129)}, "Reference is longer than 128 bytes"},
		"JSON that has none":           {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Reference: "r-1", JSON: unmarshallable{}}, "JSON cannot be encoded"},
		"a function for JSON":          {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Reference: "r-1", JSON: func() {}}, "JSON cannot be encoded"},
		"no path":                      {cardwire.Request{Op: "A", Method: "GET"}, `Path must begin with one "/"`},
		"a path without a slash":       {cardwire.Request{Op: "A", Method: "GET", Path: "a"}, `Path must begin with one "/"`},
		"a host":                       {cardwire.Request{Op: "A", Method: "GET", Path: "//evil.example.com/a"}, `Path must begin with one "/"`},
		"a URL":                        {cardwire.Request{Op: "A", Method: "GET", Path: "https://evil.example.com/a"}, `Path must begin with one "/"`},
		"dots":                         {cardwire.Request{Op: "A", Method: "GET", Path: "/a/../b"}, `Path must not contain "." or ".." segments`},
		"dots at the end":              {cardwire.Request{Op: "A", Method: "GET", Path: "/a/.."}, `Path must not contain "." or ".." segments`},
		"a dot":                        {cardwire.Request{Op: "A", Method: "GET", Path: "/./a"}, `Path must not contain "." or ".." segments`},
		"dots as an escape":            {cardwire.Request{Op: "A", Method: "GET", Path: "/a/%2e%2e/b"}, "Path contains a query, a fragment, a backslash or a percent escape"},
		"a query":                      {cardwire.Request{Op: "A", Method: "GET", Path: "/a?b=c"}, "Path contains a query, a fragment, a backslash or a percent escape"},
		"a fragment":                   {cardwire.Request{Op: "A", Method: "GET", Path: "/a#b"}, "Path contains a query, a fragment, a backslash or a percent escape"},
		"a backslash":                  {cardwire.Request{Op: "A", Method: "GET", Path: `/a\b`}, "Path contains a query, a fragment, a backslash or a percent escape"},
		"a space":                      {cardwire.Request{Op: "A", Method: "GET", Path: "/a b"}, "Path contains a space"},
		"a line":                       {cardwire.Request{Op: "A", Method: "GET", Path: "/a\r\nb"}, "Path contains a control character"},
		"dots with a parameter":        {cardwire.Request{Op: "A", Method: "GET", Path: "/a/..;/b"}, `Path must not contain "." or ".." segments`},
		"a query that is no UTF-8":     {cardwire.Request{Op: "A", Method: "GET", Path: "/a", Query: url.Values{"a": {"\xff"}}}, "Query is not valid UTF-8"},
		"a form that is no UTF-8":      {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Reference: "r-1", Form: url.Values{"\xff": {"a"}}}, "Form is not valid UTF-8"},
		"JSON that is no UTF-8":        {cardwire.Request{Op: "A", Method: "POST", Path: "/a", Reference: "r-1", JSON: []string{"\xff"}}, "JSON is not valid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := cardwire.Call[any](t.Context(), wiretest.Unasked(t), tc.request)
			wiretest.RefusedBeforehand(t, err, tc.want)
			assert.Nil(t, v)
			assert.NotErrorIs(t, err, wiretest.ErrBroken)
		})
	}
}

// An Op that cannot be a name does not get into the error either.
func TestCallKeepsAnOpThatIsRefusedOutOfTheError(t *testing.T) {
	t.Parallel()
	for op, problem := range map[string]string{
		"": "Op is empty", "a\nb": "Op contains a control character", "a\xff": "Op is not valid UTF-8",
	} {
		_, err := cardwire.Call[any](t.Context(), wiretest.Unasked(t), cardwire.Request{Op: op, Method: "GET", Path: "/a"})
		require.EqualError(t, err, "cardwire: Call: not sent: invalid parameters: "+problem+": correct it before calling again")
	}
}

func TestCallSends(t *testing.T) {
	t.Parallel()
	const formType = "application/x-www-form-urlencoded"
	for name, tc := range map[string]struct {
		request cardwire.Request
		want    string
	}{
		"a GET": {
			cardwire.Request{Op: "A", Method: "GET", Path: "/wallet/deposits"},
			"GET /shop/api/v1/wallet/deposits",
		},
		"a GET with a query": {
			cardwire.Request{Op: "A", Method: "GET", Path: "/wallet", Query: url.Values{"b": {"2", "1"}, "a": {"x y&z"}}},
			"GET /shop/api/v1/wallet?a=x+y%26z&b=2&b=1",
		},
		"a path with other letters": {
			cardwire.Request{Op: "A", Method: "GET", Path: "/caf\u00e9:1;v=2,3"},
			"GET /shop/api/v1/caf%C3%A9:1;v=2,3",
		},
		"a POST that reads": {
			cardwire.Request{Op: "A", Method: "POST", Path: "/find", ReadOnly: true, Form: url.Values{"b": {"2", "1"}, "a": {"x y&z"}}},
			"POST /shop/api/v1/find\n" + formType + "\n\na=x+y%26z&b=2&b=1",
		},
		"a POST without a body": {
			cardwire.Request{Op: "A", Method: "POST", Path: "/ping", Reference: "r-1"},
			"POST /shop/api/v1/ping\n" + formType + "\n\n",
		},
		"a PUT of JSON": {
			cardwire.Request{Op: "A", Method: "PUT", Path: "/limits", Reference: "r-1", Query: url.Values{"card": {"c1"}}, JSON: map[string]any{"b": []int{1, 2}, "a": "<é>"}},
			"PUT /shop/api/v1/limits?card=c1\napplication/json\n\n" + `{"a":"\u003cé\u003e","b":[1,2]}`,
		},
		"a PATCH of raw JSON": {
			cardwire.Request{Op: "A", Method: "PATCH", Path: "/limits", Reference: "r-1", JSON: json.RawMessage(`{"day": 1.50}`)},
			"PATCH /shop/api/v1/limits\napplication/json\n\n" + `{"day":1.50}`,
		},
		"fields and files": {
			cardwire.Request{Op: "A", Method: "POST", Path: "/kyc", Reference: "r-1", Multipart: []cardwire.Part{
				{Name: "cardId", Value: "c1"},
				{Name: "front", File: new(cardwire.ImageBytes("front.png", []byte("\x89PNG\r\n\x1a\nfront")))},
				{Name: "note", Value: ""},
				{Name: "selfie", File: new(cardwire.ImageBytes("me.jpg", []byte("\xff\xd8\xffselfie")))},
			}},
			"POST /shop/api/v1/kyc\nmultipart/form-data\n\n" +
				"Content-Disposition: form-data; name=\"cardId\"\n\nc1\n\n" +
				"Content-Disposition: form-data; name=\"front\"; filename=\"front.png\"\nContent-Type: image/png\n\n\x89PNG\r\n\x1a\nfront\n\n" +
				"Content-Disposition: form-data; name=\"note\"\n\n\n\n" +
				"Content-Disposition: form-data; name=\"selfie\"; filename=\"me.jpg\"\nContent-Type: image/jpeg\n\n\xff\xd8\xffselfie",
		},
		"a DELETE": {
			cardwire.Request{Op: "A", Method: "DELETE", Path: "/cards/c1", Reference: "r-1"},
			"DELETE /shop/api/v1/cards/c1\n" + formType + "\n\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, err := cardwire.Call[string](t.Context(), wiretest.Respond(t, tc.want, wiretest.Success(`"done"`)), tc.request)
			require.NoError(t, err)
			assert.Equal(t, "done", v)
		})
	}
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

func TestCallDecodesIntoAnyType(t *testing.T) {
	t.Parallel()
	t.Run("struct", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[wallet](t, ` {"owner":"Ann","balance":"10.50","tags":["a"],"more":1} `)
		require.NoError(t, err)
		assert.Equal(t, wallet{Owner: "Ann", Balance: wiretest.Dec("10.50"), Tags: []string{"a"}}, v)
	})
	t.Run("pointer", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[*wallet](t, `{"owner":"Ann","balance":1,"tags":null}`)
		require.NoError(t, err)
		assert.Equal(t, &wallet{Owner: "Ann", Balance: wiretest.Dec("1")}, v)
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
		v, err := callWith[cardwire.RemittanceState](t, `{"code":"1","name":"Lisboa","country":"PT","countryStandardCode":"PRT"}`)
		require.NoError(t, err)
		assert.Equal(t, cardwire.RemittanceState{Code: "1", Name: "Lisboa", Country: "PT", CountryStandardCode: "PRT"}, v)
	})
	t.Run("boolean", func(t *testing.T) {
		t.Parallel()
		v, err := callWith[bool](t, `true`)
		require.NoError(t, err)
		assert.True(t, v)
	})
}

// Null is nothing, and no number, string or object.
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
	unreadable := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	read := func(t *testing.T, err error) {
		t.Helper()
		assert.Equal(t, unreadable, wiretest.FactsOf(t, err))
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

	c := wiretest.Respond(t, "GET /shop/api/v1/wallet", `{"code":200,"msg":"success"}`)
	_, err = cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
	assert.Equal(t, unreadable, wiretest.FactsOf(t, err))
	assert.ErrorContains(t, err, "data is missing")
}

// The envelope is as strict as that of any other operation, and so is data: what
// encoding/json would let through is not JSON that can be relied on.
func TestCallIsAsStrictAsANamedOperation(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		wiretest.Success(`{"owner":"Ann","owner":"Bob"}`), wiretest.Success("\"\xff\""), wiretest.Success(`"\ud800"`), wiretest.Success(`1`) + "1",
		wiretest.Success(strings.Repeat("[", 64) + strings.Repeat("]", 64)), `{"code":"200","msg":"success","data":1}`,
	} {
		c := wiretest.Respond(t, "GET /shop/api/v1/wallet", body)
		_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"})
		assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}, wiretest.FactsOf(t, err), body)
	}
}

func TestCallRevealsTheBody(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/wallet", wiretest.Success(`{ "owner":"Ann"}`))
	var r cardwire.Response
	_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "ReadWallet", Method: "GET", Path: "/wallet"}, cardwire.WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, wiretest.Success(`{ "owner":"Ann"}`), string(r.RevealBody()))
}

func TestAnErrorOfCallNamesTheCallersOperation(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{wiretest.Refusal("DELETE /shop/api/v1/cards/c1\napplication/x-www-form-urlencoded\n\n")})
	_, err := cardwire.Call[any](t.Context(), c, cardwire.Request{Op: "CloseCard", Method: "DELETE", Path: "/cards/c1", Reference: "r-1"})
	e := wiretest.Failure(t, err)
	assert.Equal(t, "CloseCard", e.Op)
	assert.Equal(t, "r-1", e.Reference)
	assert.True(t, strings.HasPrefix(err.Error(), `cardwire: CloseCard r-1: refused, HTTP 422, code 422, "order exists"`), err)
}

// How often Call asks is the matter of what it is asked to do.
func TestCallAsksAgainOnlyWhereItMay(t *testing.T) {
	t.Parallel()
	down, broken := loopback.Response("503 Down", "", ""), loopback.Response("500 Down", "", "")
	slow := loopback.Response("429 Slow", "", "")
	reading := cardwire.Request{Method: "POST", ReadOnly: true}
	for name, tc := range map[string]struct {
		request  cardwire.Request
		response string // empty: the connection is closed without a response
		asked    int32
		want     error
	}{
		"a GET after 503":                        {cardwire.Request{Method: "GET"}, down, 3, cardwire.ErrOutcomeUnknown},
		"a GET after 500":                        {cardwire.Request{Method: "GET"}, broken, 3, cardwire.ErrOutcomeUnknown},
		"a GET without a response":               {cardwire.Request{Method: "GET"}, "", 3, cardwire.ErrOutcomeUnknown},
		"a POST that reads after 503":            {reading, down, 3, cardwire.ErrOutcomeUnknown},
		"a POST that reads after 500":            {reading, broken, 3, cardwire.ErrOutcomeUnknown},
		"a POST that reads, without a response":  {reading, "", 3, cardwire.ErrOutcomeUnknown},
		"a POST that writes after 503":           {cardwire.Request{Method: "POST"}, down, 1, cardwire.ErrOutcomeUnknown},
		"a POST that writes after 429":           {cardwire.Request{Method: "POST"}, slow, 1, cardwire.ErrRefused},
		"a POST that writes, without a response": {cardwire.Request{Method: "POST"}, "", 1, cardwire.ErrOutcomeUnknown},
		"a DELETE without a response":            {cardwire.Request{Method: "DELETE"}, "", 1, cardwire.ErrOutcomeUnknown},
		"a PUT without a response":               {cardwire.Request{Method: "PUT", JSON: 1}, "", 1, cardwire.ErrOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := loopback.Serve(t, func(conn net.Conn) { loopback.Say(tc.response)(conn) })
			tc.request.Op, tc.request.Path = "Ask", "/ask"
			if tc.asked == 1 && !tc.request.ReadOnly {
				tc.request.Reference = "r-1"
			}
			_, err := cardwire.Call[any](t.Context(), wiretest.ClientOver(t, s.Base), tc.request)
			require.ErrorIs(t, err, tc.want)
			assert.Equal(t, tc.asked, s.Requests.Load())
		})
	}
}

// A file of a Call is as exact as that of UploadImage.
func TestCallWithAFileOfAnotherSize(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{3, 5} {
		p := cardwire.ImageBytes("a.png", []byte("four"))
		p.Size, p.ContentType = size, "image/png"
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			return wiretest.Response(r, 200, wiretest.Success(`"done"`)), nil // before it has read anything
		}))
		_, err := cardwire.Call[string](t.Context(), c, cardwire.Request{Op: "A", Method: "POST", Path: "/kyc", Reference: "r-1", Multipart: []cardwire.Part{{Name: "file", File: &p}}})
		require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "bytes than Size")
	}
}

func TestWithResponseTellsWhatCameBack(t *testing.T) {
	t.Parallel()
	header := http.Header{
		"X-Request-Id": {"r-1"}, "Set-Cookie": {"session=1"}, "Authorization": {"Bearer x"},
		"X-Debug": {"asked with " + wiretest.Key}, "X-Cards": {"none", "of 4111111111111111 and 4111 1111 1111 1111"},
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

	r.HTTPStatus = 200
	_, err = c.GetCard(t.Context(), "", cardwire.WithResponse(&r))
	wiretest.RefusedBeforehand(t, err, "cardID")
	assert.Equal(t, cardwire.Response{}, r, "a call that is refused resets it as well")
}

func TestAResponseHoldsNoHeaderWithTheKey(t *testing.T) {
	t.Parallel()
	c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response := wiretest.Response(r, 200, `{"code":200,"msg":"success","data":["493193"]}`)
		response.Header = http.Header{"X-A": {"b"}, "X-Echo": {"b", "was: Bearer sk-test-7f3a"}}
		return response, nil
	}))
	var r cardwire.Response
	_, err := c.ListBINsUnderMaintenance(t.Context(), cardwire.WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, http.Header{"X-A": {"b"}}, r.Header)
}

func TestRevealBodyOfNothingIsNil(t *testing.T) {
	t.Parallel()
	var none *cardwire.Response
	assert.Nil(t, none.RevealBody())
	assert.Nil(t, new(cardwire.Response).RevealBody())
}

// The body that is kept is not the buffer that the next call reads into.
func TestARevealedBodyOutlivesTheNextCalls(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/bins/maintenance"
	c := wiretest.Converse(t, []wiretest.Exchange{{Want: asked, Response: wiretest.Success(`["493193"]`)}, {Want: asked, Response: wiretest.Success(`["555555"]`)}})
	var first, second cardwire.Response
	_, err := c.ListBINsUnderMaintenance(t.Context(), cardwire.WithResponse(&first))
	require.NoError(t, err)
	_, err = c.ListBINsUnderMaintenance(t.Context(), cardwire.WithResponse(&second))
	require.NoError(t, err)
	assert.Equal(t, wiretest.Success(`["493193"]`), string(first.RevealBody()))
	assert.Equal(t, wiretest.Success(`["555555"]`), string(second.RevealBody()))
}

// Each call of RevealBody gives a copy, and so do the copies of a Response.
func TestARevealedBodyIsACopy(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		wiretest.Page(wiretest.ListedCard), `{"code":422,"msg":"no","data":` + wiretest.ListedCard + `}`, "<h1>4111111111111111</h1>",
	} {
		c := wiretest.NewClient(t, wiretest.Always(200, body))
		var r cardwire.Response
		_, _ = c.ListCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithResponse(&r))
		copied := r
		clear(r.RevealBody())
		clear(copied.RevealBody())
		assert.Equal(t, body, string(r.RevealBody()))
		assert.Equal(t, body, string(copied.RevealBody()))
	}
}

func TestTheServicesMessageIsMaskedAlsoOfTheKey(t *testing.T) {
	t.Parallel()
	body := `{"code":401,"msg":"key ` + wiretest.Key + ` is not good for 4111111111111111\u0007","data":null}`
	c := wiretest.Respond(t, "GET /shop/api/v1/bins", body)
	var r cardwire.Response
	_, err := c.ListBINs(t.Context(), cardwire.WithResponse(&r))
	const want = "key *** is not good for **************** "
	assert.Equal(t, want, wiretest.Failure(t, err).Message)
	assert.Equal(t, want, r.Message)
}

func TestAnErrorHoldsTheServicesRequestID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		header http.Header
		want   string
	}{
		"none":             {http.Header{}, ""},
		"X-Request-Id":     {http.Header{"X-Request-Id": {"r-1"}, "Request-Id": {"r-2"}, "X-Correlation-Id": {"r-3"}}, "r-1"},
		"Request-Id":       {http.Header{"Request-Id": {"r-2"}, "X-Correlation-Id": {"r-3"}}, "r-2"},
		"X-Correlation-Id": {http.Header{"X-Correlation-Id": {"r-3"}}, "r-3"},
		"an empty one":     {http.Header{"X-Request-Id": {""}, "Request-Id": {"r-2"}}, "r-2"},
		"cut":              {http.Header{"X-Request-Id": {strings.Repeat("r", 65)}}, strings.Repeat("r", 64)},
		"what is no ASCII": {http.Header{"X-Request-Id": {"r-\u00e9\x1b[31m 1\x00\n"}}, "r-[31m1"},
		"a card number":    {http.Header{"X-Request-Id": {"r-4111111111111111"}}, "r-****************"},
		"one in groups":    {http.Header{"X-Request-Id": {"4111 1111 1111 1111"}}, "****************"},
		"a card number across the cut": {
			http.Header{"X-Request-Id": {strings.Repeat("r", 53) + "4111111111111111"}}, strings.Repeat("r", 53) + "***********",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				response := wiretest.Response(r, 422, "")
				response.Header = tc.header
				return response, nil
			}))
			_, err := c.ListBINs(t.Context())
			assert.Equal(t, tc.want, wiretest.Failure(t, err).RequestID)
		})
	}
}

// kept is a type of a caller's that has this package's types in every way in which
// encoding/json fills them.
type kept struct {
	Card    cardwire.Card
	Pointer *cardwire.Card
	List    []cardwire.Card
	Pair    [2]cardwire.CVV
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
	mine := wiretest.Success(`{"Card":` + wiretest.ListedCard + `,"Pointer":` + wiretest.ListedCard + `,"List":[` + wiretest.ListedCard + `],` +
		`"ByName":{"a":"` + number + `"},"ByOwner":{"a":` + wiretest.ListedCard + `},"Counts":{"` + number + `":2},` +
		`"Any":{"card_no":"***"},"Page":{"Cards":[{"Number":"` + number + `"},{"Number":"493193******1234"}]},` +
		`"Secrets":` + wiretest.Edited(t, wiretest.CardSecrets, `493193******1234`, number) + `}`)
	request := cardwire.Request{Op: "Cards", Method: "GET", Path: "/cards/mine"}

	got, err := cardwire.Call[kept](t.Context(), wiretest.Respond(t, wiretest.Anything, mine, cardwire.WithMaskedCards()), request)
	require.NoError(t, err)
	mask := wiretest.CardNumber(t, "493193******1234")
	for name, card := range map[string]cardwire.Card{"a field": got.Card, "a pointer": *got.Pointer, "a list": got.List[0], "a map": *got.ByOwner["a"]} {
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
	assert.Zero(t, got.Pair)
	assert.Nil(t, got.unset)

	for _, masked := range []bool{false, true} {
		var opts []cardwire.Option
		if masked {
			opts = append(opts, cardwire.WithMaskedCards())
		}
		client := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[`+wiretest.ListedCard+`]`), opts...)
		cards, err := cardwire.Call[[]*cardwire.Card](t.Context(), client, request)
		require.NoError(t, err)
		assert.Equal(t, masked, cards[0].Number.IsMasked())
		assert.Equal(t, masked, cards[0].CVV.IsMasked())
	}
}
