package measure

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
)

// client returns a client whose every response is body. What the
// client does not know, or misses, is an error.
func client(t *testing.T, body []byte) *cardwire.Client {
	t.Helper()
	hc := &http.Client{Transport: Memory(body)}
	c, err := cardwire.New("https://api.example.com/api/v1", Key, cardwire.WithHTTPClient(hc), cardwire.WithStrictDrift())
	require.NoError(t, err)
	return c
}

func TestScriptsSayTheSame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		texts map[Script][]byte
		read  func(*cardwire.Client) (any, error)
	}{
		"page": {
			map[Script][]byte{UTF8: CardPage(UTF8, 2, 9, 100), PHP: CardPage(PHP, 2, 9, 100)},
			func(c *cardwire.Client) (any, error) {
				return c.ListCards(t.Context(), cardwire.ListCardsParams{Page: 2, Limit: 100})
			},
		},
		"card": {
			map[Script][]byte{UTF8: SingleCard(UTF8), PHP: SingleCard(PHP)},
			func(c *cardwire.Client) (any, error) { return c.GetCard(t.Context(), "c000000000000006") },
		},
		"bins": {
			map[Script][]byte{UTF8: BINs(UTF8, 50), PHP: BINs(PHP, 50)},
			func(c *cardwire.Client) (any, error) { return c.ListBINs(t.Context()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NotEqual(t, tc.texts[UTF8], tc.texts[PHP])
			want, err := tc.read(client(t, tc.texts[UTF8]))
			require.NoError(t, err)
			got, err := tc.read(client(t, tc.texts[PHP]))
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func TestScriptHasAName(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "utf8 php", UTF8.String()+" "+PHP.String())
}

func TestPagesFollowOneAnother(t *testing.T) {
	t.Parallel()
	ids := func(number int) []string {
		page, err := client(t, CardPage(UTF8, number, 3, 2)).ListCards(t.Context(), cardwire.ListCardsParams{Page: number})
		require.NoError(t, err)
		assert.Equal(t, []int{6, 2, number, 3}, []int{page.Total, page.PerPage, page.CurrentPage, page.LastPage})
		return []string{page.Cards[0].ID, page.Cards[1].ID}
	}
	assert.Equal(t, []string{"c000000000000000", "c000000000000001"}, ids(1))
	assert.Equal(t, []string{"c000000000000002", "c000000000000003"}, ids(2))
}

func TestCardsInOtherShapes(t *testing.T) {
	t.Parallel()
	read := func(cards Cards) []cardwire.Card {
		body := cards.Page(1, 1, 100)
		require.NoError(t, PlainPage(body))
		page, err := client(t, body).ListCards(t.Context(), cardwire.ListCardsParams{Limit: 100})
		require.NoError(t, err)
		require.Len(t, page.Cards, 100)
		return page.Cards
	}
	amounts := map[string]bool{}
	for _, card := range read(Cards{Distinct: true}) {
		for _, amount := range []decimal.Decimal{card.Available, card.Pending, card.Frozen, card.Fee} {
			amounts[amount.String()] = true
		}
	}
	assert.Len(t, amounts, 400)
	usual := read(Cards{})
	for _, long := range []int{1, 100} {
		for i, card := range read(Cards{Long: long}) {
			assert.Equal(t, i == long-1, len(card.Remark) > 3000)
			card.Remark = usual[i].Remark
			assert.Equal(t, usual[i], card)
		}
	}
}

func TestMemoryIsADoerToo(t *testing.T) {
	t.Parallel()
	c, err := cardwire.New("https://api.example.com/api/v1", Key, cardwire.WithHTTPClient(Memory(Capacity())))
	require.NoError(t, err)
	n, err := c.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 250, n)
}

func TestCapacityIsTheSmallestResponse(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `{"code":200,"msg":"success","data":250}`, string(Capacity()))
}

// A baseline that leaves fields out would be slower to beat than it looks.
func TestPlainTypesHaveEveryField(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body []byte
		into any
	}{
		"page":     {CardPage(UTF8, 1, 1, 50), new(response[page])},
		"card":     {SingleCard(UTF8), new(response[single])},
		"bins":     {BINs(UTF8, 3), new(response[[]bin])},
		"capacity": {Capacity(), new(response[int64])},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := json.NewDecoder(bytes.NewReader(tc.body))
			d.DisallowUnknownFields()
			assert.NoError(t, d.Decode(tc.into))
		})
	}
}

func TestPlainDecodersTakeTheirOwnResponseOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		decode func([]byte) error
		body   []byte
	}{
		"page":     {PlainPage, CardPage(PHP, 1, 1, 2)},
		"card":     {PlainCard, SingleCard(PHP)},
		"bins":     {PlainBINs, BINs(PHP, 2)},
		"capacity": {PlainCapacity, Capacity()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.NoError(t, tc.decode(tc.body))
			assert.Error(t, tc.decode(bytes.Replace(tc.body, []byte("200"), []byte("500"), 1)), "a refusal")
			assert.Error(t, tc.decode([]byte(`{"code":200,"msg":"success"}`)), "without data")
			assert.Error(t, tc.decode(tc.body[:len(tc.body)-1]), "truncated")
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestBareCall(t *testing.T) {
	t.Parallel()
	var asked *http.Request
	hc := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		asked = r
		return Memory("the body").RoundTrip(r)
	})}
	var body string
	err := Bare(t.Context(), hc, "https://api.example.com/x?y=1", func(b []byte) error {
		body = string(b)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "the body", body)
	assert.Equal(t, "GET https://api.example.com/x?y=1", asked.Method+" "+asked.URL.String())
	assert.Equal(t, http.Header{
		"Accept": {"application/json"}, "Authorization": {"Bearer sk-test-7f3a"}, "User-Agent": {"bare/1.0"},
	}, asked.Header)
}

func TestBareCallFails(t *testing.T) {
	t.Parallel()
	failure := errors.New("failure")
	fine := func([]byte) error { return nil }
	respond := func(status int, body io.Reader) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), Request: r}, nil
		}
	}
	for name, tc := range map[string]struct {
		url     string
		carrier http.RoundTripper
		decode  func([]byte) error
		want    string
	}{
		"address":   {"://", Memory(""), fine, "missing protocol scheme"},
		"transport": {"http://a.test", roundTripper(func(*http.Request) (*http.Response, error) { return nil, failure }), fine, "failure"},
		"status":    {"http://a.test", respond(503, strings.NewReader("")), fine, "status 503"},
		"body":      {"http://a.test", respond(200, io.MultiReader(strings.NewReader("x"), broken{})), fine, "broken"},
		"decoding":  {"http://a.test", Memory("x"), func([]byte) error { return failure }, "failure"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Bare(t.Context(), &http.Client{Transport: tc.carrier}, tc.url, tc.decode)
			assert.ErrorContains(t, err, tc.want)
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestProcessorTimeIsCounted(t *testing.T) {
	t.Parallel()
	assert.Positive(t, CPU())
}
