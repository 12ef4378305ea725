package hostile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/jsonsuite"
)

// suiteCall makes the service respond to a call with body.
func suiteCall[T any](t *testing.T, body string) (T, error) {
	t.Helper()
	c := wiretest.Respond(t, "GET /shop/api/v1/ask", body)
	return cardwire.Call[T](t.Context(), c, cardwire.Request{Op: "Ask", Method: "GET", Path: "/ask"})
}

// A document of the suite is read wherever it stands in a response, or makes all of it
// unreadable. What is read of those that a parser may refuse is pinned in internal/wire.
func TestJSONTestSuiteInResponses(t *testing.T) {
	t.Parallel()
	for _, f := range jsonsuite.Files(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			text := string(f.Text)
			accepts := jsonsuite.Strict(f.Text, maxDepth-2)
			refused := func(body string) {
				t.Helper()
				_, err := suiteCall[json.RawMessage](t, body)
				assert.Equal(t, hostileUnreadable, wiretest.FactsOf(t, err))
			}
			refused(text) // none of them is an envelope
			for body, want := range map[string]string{
				wiretest.Success(text):                                   strings.Trim(text, " \t\r\n"),
				wiretest.Success(`[1,` + text + `]`):                     `[1,` + text + `]`,
				`{"data":{"a":` + text + `},"code":200,"msg":"success"}`: `{"a":` + text + `}`,
			} {
				if !accepts {
					refused(body)
					continue
				}
				got, err := suiteCall[json.RawMessage](t, body)
				require.NoError(t, err)
				assert.Equal(t, want, string(got))
			}

			_, err := suiteCall[any](t, wiretest.Success(text))
			var fits any
			switch {
			case !accepts:
				assert.Equal(t, hostileUnreadable, wiretest.FactsOf(t, err))
			case json.Unmarshal(f.Text, &fits) != nil: // encoding/json makes it a float64
				assert.Equal(t, hostileUnfit, wiretest.FactsOf(t, err))
			default:
				assert.NoError(t, err)
			}

			// The one document that is an integer is a code, and not that of a success.
			for _, body := range []string{
				`{"code":` + text + `,"msg":"success","data":null}`,
				`{"data":null,"msg":"success","code":` + text + `}`,
			} {
				if f.Name != "y_structure_lonely_int" {
					refused(body)
					continue
				}
				_, err := suiteCall[any](t, body)
				code := wiretest.Facts{Is: "Unknown", HTTPStatus: 200, Code: 42, Message: "success"}
				assert.Equal(t, code, wiretest.FactsOf(t, err))
			}
		})
	}
}
