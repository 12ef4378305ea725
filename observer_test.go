package cardwire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// driftKinds has every kind of drift there is, in the reply of an operation.
func driftKinds(t *testing.T) map[string]driftCase {
	t.Helper()
	bin := func(old, replacement string) string { return success(`[` + edited(t, binText, old, replacement) + `]`) }
	card := func(old, replacement string) string { return success(edited(t, singleCardText, old, replacement)) }
	const addressText = `{"city":"Lisbon","state":"Lisboa","country":"PT","postalCode":"1100-048","addressLine1":"Rua Augusta 5","addressLine2":"2 Esq"}`
	return map[string]driftCase{
		"unknown member":          {bin(`"maintain":true`, `"maintain":true,"Maintain":false`), "data[].*", binOf(maintained), true},
		"missing member":          {bin(`"maintain":true,`, ``), "data[].maintain", binOf(maintained), false},
		"text for number":         {bin(`1000.5`, `"1000.50"`), "data[].day_purchase_limit", binOf(func(b *BIN) any { return b.DayPurchaseLimit }), dec("1000.50")},
		"number for text":         {bin(`"bin":"493193"`, `"bin":493193`), "data[].bin", binOf(func(b *BIN) any { return b.BIN }), "493193"},
		"null for text":           {bin(`"Travel"`, `null`), "data[].name", binOf(func(b *BIN) any { return b.Name }), ""},
		"null for number":         {bin(`"weigh":8`, `"weigh":null`), "data[].weigh", binOf(func(b *BIN) any { return b.Weight }), int64(0)},
		"null for boolean":        {bin(`"maintain":true`, `"maintain":null`), "data[].maintain", binOf(maintained), false},
		"null for array":          {bin(`["ads","travel"]`, `null`), "data[].scenes", binOf(func(b *BIN) any { return b.Scenes }), []string(nil)},
		"number for boolean":      {bin(`"maintain":true`, `"maintain":1`), "data[].maintain", binOf(maintained), true},
		"text for boolean":        {bin(`"maintain":true`, `"maintain":"1"`), "data[].maintain", binOf(maintained), true},
		"boolean for number":      {bin(`"3ds":1`, `"3ds":true`), "data[].3ds", binOf(func(b *BIN) any { return b.ThreeDS }), true},
		"flag other than 0 and 1": {bin(`"avs":1`, `"avs":2`), "data[].avs", binOf(func(b *BIN) any { return b.AVS }), true},
		"empty array for object":  {bin(foreignFeesText, `[]`), "data[].foreign_fee_config", binOf(func(b *BIN) any { return b.ForeignFees }), []FeeTier(nil)},
		"range of another form":   {bin(`"10-99.99"`, `"rest"`), "data[].foreign_fee_config.*", binOf(func(b *BIN) any { return b.ForeignFees[0].Range }), "rest"},
		"empty object for array":  {card(addressText, `{}`), "data.holder_address", holderAddress, (*Address)(nil)},
		"null for object":         {card(addressText, `null`), "data.holder_address", holderAddress, (*Address)(nil)},
		"empty text":              {card(`"2026-01-02 03:04:05"`, `""`), "data.create_time", createTime, DateTime{}},
	}
}

// driftCase is a reply, the place of the drift in it, the call that reads it
// and what it reads in that place all the same.
type driftCase struct {
	reply, path string
	read        func(context.Context, *Client) (any, error)
	want        any
}

func maintained(b *BIN) any { return b.Maintain }

func binOf(value func(*BIN) any) func(context.Context, *Client) (any, error) {
	return func(ctx context.Context, c *Client) (any, error) {
		bins, err := c.ListBINs(ctx)
		if len(bins) != 1 {
			return nil, errors.Join(err, errors.New("not one BIN"))
		}
		return value(&bins[0]), err
	}
}

func holderAddress(ctx context.Context, c *Client) (any, error) {
	card, err := c.GetCard(ctx, "card-1")
	return card.HolderAddress, err
}

func createTime(ctx context.Context, c *Client) (any, error) {
	card, err := c.GetCard(ctx, "card-1")
	return card.CreateTime, err
}

// Each kind is told to observers, logged, and an error under WithStrictDrift;
// what was sent is read in any case.
func TestEveryKindOfDrift(t *testing.T) {
	t.Parallel()
	for kind, tc := range driftKinds(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, tc.reply)
			}))
			t.Cleanup(server.Close)
			client := func(opts ...Option) *Client {
				c, err := New(server.URL, testKey, opts...)
				require.NoError(t, err)
				t.Cleanup(c.CloseIdleConnections)
				return c
			}

			got, err := tc.read(t.Context(), client())
			require.NoError(t, err, "with nobody to tell")
			assert.Equal(t, tc.want, got)

			heard, drifts := driftsOf()
			var log bytes.Buffer
			got, err = tc.read(t.Context(), client(heard, WithObserver(DriftLogger(slog.New(slog.NewTextHandler(&log, nil))))))
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, []Drift{{tc.path, kind}}, *drifts)
			assert.Regexp(t, `^time=\S+ level=WARN msg="cardwire: the answer deviates from the interface" operation=(ListBINs|GetCard) `+
				regexp.QuoteMeta(`path=`+tc.path+` kind=`+strconv.Quote(kind))+`\n$`, log.String())

			got, err = tc.read(t.Context(), client(WithStrictDrift()))
			assert.Equal(t, facts{Outcome: OutcomeExecuted, Is: "Executed Drift", HTTPStatus: 200, Code: 200, Message: "success"}, factsOf(t, err))
			require.ErrorContains(t, err, tc.path+": "+kind)
			assert.Equal(t, tc.want, got, "it is returned together with the error")
		})
	}
}

// The kinds are those that the source has, and no other.
func TestNoKindOfDriftIsForgotten(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	inner, err := filepath.Glob("internal/wire/*.go")
	require.NoError(t, err)
	named := regexp.MustCompile(`[dD]rift(?:At)?\((?:[A-Za-z.]+, )?"([^"]+)"\)`)
	kinds := map[string]bool{}
	for _, file := range append(files, inner...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range named.FindAllSubmatch(text, -1) {
			kinds[string(m[1])] = true
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(kinds)), slices.Collect(maps.Keys(driftKinds(t))))
}

func TestDriftLoggerWithoutALogger(t *testing.T) {
	t.Parallel()
	c := answered(t, anything, success(`"250"`), WithObserver(DriftLogger(nil)))
	n, err := c.CardCapacity(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, 250, n)
}
