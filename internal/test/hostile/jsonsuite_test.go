package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// suiteRefused are documents that the suite calls JSON in which a field occurs twice
// name: they are refused by policy.
var suiteRefused = []string{"y_object_duplicated_key", "y_object_duplicated_key_and_value"}

// suiteFree are the accepted ones of the documents that a parser may refuse, or that
// parsers read differently. What is read of them is pinned in internal/wire; as
// any and float64, encoding/json cannot hold those that are false.
var suiteFree = map[string]bool{
	"i_number_double_huge_neg_exp": true, "i_number_huge_exp": false, "i_number_neg_int_huge_exp": false,
	"i_number_pos_double_huge_exp": false, "i_number_real_neg_overflow": false, "i_number_real_pos_overflow": false,
	"i_number_real_underflow": true, "i_number_too_big_neg_int": true, "i_number_too_big_pos_int": true,
	"i_number_very_big_negative_int": true, "number_-9223372036854775808": true, "number_-9223372036854775809": true,
	"number_1.0": true, "number_1.000000000000000005": true, "number_1000000000000000": true,
	"number_10000000000000000999": true, "number_1e-999": true, "number_1e6": true, "number_9223372036854775807": true,
	"number_9223372036854775808": true, "object_key_nfc_nfd": true, "object_key_nfd_nfc": true, "string_with_escaped_NULL": true,
}

func suiteAccepts(f jsonsuite.File) bool {
	_, free := suiteFree[f.Name]
	return free || f.Kind == jsonsuite.Accepted && !slices.Contains(suiteRefused, f.Name)
}

// suiteCall makes the service respond to a call with body.
func suiteCall[T any](t *testing.T, body string) (T, error) {
	t.Helper()
	c := wiretest.Respond(t, "GET /shop/api/v1/ask", body)
	return cardwire.Call[T](t.Context(), c, cardwire.Request{Op: "Ask", Method: "GET", Path: "/ask"})
}

var (
	suiteUnreadable = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}
	suiteUnfit      = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
)

func TestJSONTestSuiteInResponses(t *testing.T) {
	t.Parallel()
	for _, f := range jsonsuite.Files(t) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			text := string(f.Text)
			refused := func(body string) {
				t.Helper()
				_, err := suiteCall[json.RawMessage](t, body)
				assert.Equal(t, suiteUnreadable, wiretest.FactsOf(t, err))
			}
			read := func(want, body string) {
				t.Helper()
				if !suiteAccepts(f) {
					refused(body)
					return
				}
				got, err := suiteCall[json.RawMessage](t, body)
				require.NoError(t, err)
				assert.Equal(t, want, string(got))
			}
			refused(text) // none of them is an envelope
			trimmed := strings.Trim(text, " \t\r\n")
			read(trimmed, wiretest.Success(text))
			read(`[1,`+text+`]`, wiretest.Success(`[1,`+text+`]`))
			read(`{"a":`+text+`}`, `{"data":{"a":`+text+`},"code":200,"msg":"success"}`)

			_, err := suiteCall[any](t, wiretest.Success(text))
			switch fits, free := suiteFree[f.Name]; {
			case !suiteAccepts(f):
				assert.Equal(t, suiteUnreadable, wiretest.FactsOf(t, err))
			case free && !fits:
				assert.Equal(t, suiteUnfit, wiretest.FactsOf(t, err))
			default:
				assert.NoError(t, err)
			}

			// The one document that is an integer is a code, and not that of a success.
			for _, body := range []string{
				`{"code":` + text + `,"msg":"success","data":null}`, `{"data":null,"msg":"success","code":` + text + `}`,
			} {
				if f.Name != "y_structure_lonely_int" {
					refused(body)
					continue
				}
				_, err := suiteCall[any](t, body)
				assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 42, Message: "success"}, wiretest.FactsOf(t, err))
			}
		})
	}
}

// suiteFits says what data each operation takes, as encoding/json sees it; those
// that are not named take none of the suite's documents.
var suiteFits = map[string]func(data any) bool{
	"ListBINs":                 suiteEmpty,
	"ListRemittanceStates":     suiteEmpty,
	"ListRemittanceCurrencies": suiteEmpty,
	"ListBINsUnderMaintenance": func(data any) bool {
		list, ok := data.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { return !suiteCode(e) })
	},
	"CardCapacity": func(data any) bool { return data == json.Number("42") },
	"FreezeCard": func(data any) bool {
		id := fmt.Sprint(data)
		return suiteCode(data) && strings.ContainsAny(id, "123456789") && !strings.ContainsAny(id, " :")
	},
	"CancelOperation": func(data any) bool { return data == true },
	"RetryOperation":  func(data any) bool { return data == true },
	"Call": func(data any) bool {
		text, err := json.Marshal(data)
		var fits any
		return err == nil && json.Unmarshal(text, &fits) == nil
	},
}

func suiteEmpty(data any) bool {
	list, ok := data.([]any)
	return ok && len(list) == 0
}

// suiteCode reports whether data is a string, or an integer in place of one.
func suiteCode(data any) bool {
	number, isNumber := data.(json.Number)
	_, isText := data.(string)
	return isText || isNumber && !strings.ContainsAny(string(number), ".eE")
}

// Hardly any of the suite's documents is the data of an operation.
func TestJSONTestSuiteAsTheDataOfEachOperation(t *testing.T) {
	t.Parallel()
	files := jsonsuite.Files(t)
	for op, call := range wiretest.AllMethods() {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			for _, f := range files {
				c := wiretest.NewClient(t, wiretest.Always(200, wiretest.Success(string(f.Text))), wiretest.ChangedProfile(func(p *cardwire.Profile) { p.RetryAction = "retry" }))
				err := call(t.Context(), c)
				switch fits := suiteFits[op]; {
				case !suiteAccepts(f) && len(f.Text) > (64<<10) && errors.Is(err, cardwire.ErrResponseTooLarge):
					assert.ErrorIs(t, err, cardwire.ErrOutcomeUnknown, f.Name)
				case !suiteAccepts(f):
					assert.Equal(t, suiteUnreadable, wiretest.FactsOf(t, err), f.Name)
				case fits != nil && fits(suiteData(t, f.Text)):
					assert.NoError(t, err, f.Name)
				case f.Name == "y_structure_lonely_false" && strings.HasSuffix(op, "Operation"):
					assert.ErrorIs(t, err, cardwire.ErrOutcomeUnknown, f.Name)
				default:
					assert.Equal(t, suiteUnfit, wiretest.FactsOf(t, err), f.Name)
				}
			}
		})
	}
}

func suiteData(t *testing.T, text []byte) (data any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&data))
	return data
}

// BenchmarkJSONTestSuite finds the document that takes the longest to judge, and the
// one that takes the most memory, as the data of a response: the best of all runs.
func BenchmarkJSONTestSuite(b *testing.B) {
	files := jsonsuite.Files(b)
	took, space := make([]uint64, len(files)), make([]uint64, len(files))
	for i := range files {
		took[i], space[i] = math.MaxUint64, math.MaxUint64
	}
	for b.Loop() {
		for i, f := range files {
			c, err := cardwire.New(wiretest.Base, wiretest.Key, cardwire.WithHTTPClient(wiretest.Always(200, wiretest.Success(string(f.Text)))))
			require.NoError(b, err)
			nanoseconds, allocated := measured(func() {
				_, _ = cardwire.Call[json.RawMessage](b.Context(), c, cardwire.Request{Op: "Ask", Method: "GET", Path: "/ask"})
			})
			took[i], space[i] = min(took[i], nanoseconds), min(space[i], allocated)
		}
	}
	slowest, largest := slices.Index(took, slices.Max(took)), slices.Index(space, slices.Max(space))
	b.ReportMetric(float64(took[slowest]), "slowest-ns")
	b.ReportMetric(float64(space[largest]), "largest-B")
	b.Logf("the slowest: %s, %v; the most memory: %s, %d bytes in all",
		files[slowest].Name, time.Duration(took[slowest]), files[largest].Name, space[largest])
}

// measured returns the time that do took, and the bytes that were allocated
// meanwhile, whether or not they are still in use.
func measured(do func()) (nanoseconds, allocated uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	do()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return uint64(took), after.TotalAlloc - before.TotalAlloc
}
