package cardwire

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithResponseTellsWhatCameBack(t *testing.T) {
	t.Parallel()
	header := http.Header{
		"X-Request-Id": {"r-1"}, "Set-Cookie": {"session=1"}, "Authorization": {"Bearer x"},
		"X-Debug": {"asked with " + testKey}, "X-Cards": {"none", "of 4111111111111111 and 4111 1111 1111 1111"},
		"X-4111111111111111": {"1"},
	}
	c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
		reply := httpReply(r, 201, `{"code":200,"msg":"sent to 4111111111111111","data":["493193"]}`)
		reply.Header = header
		return reply, nil
	}))
	var r Response
	_, err := c.ListBINsUnderMaintenance(t.Context(), WithResponse(&r))
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
	c := converse(t, []exchange{
		{want: asked, status: 404, header: "X-A: b", reply: `{"code":1404,"msg":"no such card","data":null}`},
		{want: asked, status: 502, reply: "<h1>Bad Gateway</h1>"},
		{want: asked, err: errBrokenNetwork},
	}, WithRetry(RetryPolicy{}))
	var r Response
	_, err := c.GetCard(t.Context(), "c1", WithResponse(&r))
	require.ErrorIs(t, err, ErrNotFound)
	assert.Equal(t, 404, r.HTTPStatus)
	assert.Equal(t, 1404, r.Code)
	assert.Equal(t, "no such card", r.Message)
	assert.Equal(t, http.Header{"X-A": {"b"}}, r.Header)
	assert.Equal(t, `{"code":1404,"msg":"no such card","data":null}`, string(r.RevealBody()))

	_, err = c.GetCard(t.Context(), "c1", WithResponse(&r))
	require.ErrorIs(t, err, ErrOutcomeUnknown)
	assert.Equal(t, 502, r.HTTPStatus)
	assert.Zero(t, r.Code, "nothing of the call before")
	assert.Empty(t, r.Message)
	assert.Equal(t, "<h1>Bad Gateway</h1>", string(r.RevealBody()))

	_, err = c.GetCard(t.Context(), "c1", WithResponse(&r))
	require.ErrorIs(t, err, ErrOutcomeUnknown)
	require.Len(t, r.Attempts, 1)
	assert.Equal(t, "sent", r.Attempts[0].Phase)
	r.Attempts = nil
	assert.Equal(t, Response{}, r, "there was no answer")
	assert.Nil(t, r.RevealBody())

	r.HTTPStatus = 200
	_, err = c.GetCard(t.Context(), "", WithResponse(&r))
	refusedBeforehand(t, err, "cardID")
	assert.Equal(t, Response{}, r, "a call that is refused resets it as well")
}

func TestAResponseHoldsNoHeaderWithTheKey(t *testing.T) {
	t.Parallel()
	c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
		reply := httpReply(r, 200, `{"code":200,"msg":"success","data":["493193"]}`)
		reply.Header = http.Header{"X-A": {"b"}, "X-Echo": {"b", "was: Bearer sk-test-7f3a"}}
		return reply, nil
	}))
	var r Response
	_, err := c.ListBINsUnderMaintenance(t.Context(), WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, http.Header{"X-A": {"b"}}, r.Header)
}

func TestRevealBodyOfNothingIsNil(t *testing.T) {
	t.Parallel()
	var none *Response
	assert.Nil(t, none.RevealBody())
	assert.Nil(t, new(Response).RevealBody())
}

// The body that is kept is not the buffer that the next call reads into.
func TestARevealedBodyOutlivesTheNextCalls(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/bins/maintenance"
	c := converse(t, []exchange{{want: asked, reply: success(`["493193"]`)}, {want: asked, reply: success(`["555555"]`)}})
	var first, second Response
	_, err := c.ListBINsUnderMaintenance(t.Context(), WithResponse(&first))
	require.NoError(t, err)
	_, err = c.ListBINsUnderMaintenance(t.Context(), WithResponse(&second))
	require.NoError(t, err)
	assert.Equal(t, success(`["493193"]`), string(first.RevealBody()))
	assert.Equal(t, success(`["555555"]`), string(second.RevealBody()))
}

// Each call of RevealBody gives a copy, and so do the copies of a Response.
func TestARevealedBodyIsACopy(t *testing.T) {
	t.Parallel()
	l := &listener{}
	c := l.client(t)
	for _, l.body = range []string{
		success(`{"total":1,"per_page":9,"current_page":1,"last_page":1,"data":[` + canaryCardText + `]}`),
		`{"code":422,"msg":"no","data":` + canaryCardText + `}`, "<h1>" + canaryNumber + "</h1>",
	} {
		var r Response
		_, _ = c.ListCards(t.Context(), ListCardsParams{}, WithResponse(&r))
		copied := r
		clear(r.RevealBody())
		clear(copied.RevealBody())
		assert.Equal(t, l.body, string(r.RevealBody()))
		assert.Equal(t, l.body, string(copied.RevealBody()))
	}
}

func TestTheServicesMessageIsMaskedAlsoOfTheKey(t *testing.T) {
	t.Parallel()
	body := `{"code":401,"msg":"key ` + testKey + ` is not good for 4111111111111111\u0007","data":null}`
	c := answered(t, "GET /shop/api/v1/bins", body)
	var r Response
	_, err := c.ListBINs(t.Context(), WithResponse(&r))
	const want = "key *** is not good for **************** "
	assert.Equal(t, want, failure(t, err).Message)
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
			c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
				reply := httpReply(r, 422, "")
				reply.Header = tc.header
				return reply, nil
			}))
			_, err := c.ListBINs(t.Context())
			assert.Equal(t, tc.want, failure(t, err).RequestID)
		})
	}
}
