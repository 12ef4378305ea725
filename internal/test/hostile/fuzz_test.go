package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/test/jsonsuite"
	"github.com/cardwire/cardwire-go/internal/test/syntax"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// maxDepth is how deep a response may be nested.
const maxDepth = 64

func FuzzEnvelope(f *testing.F) {
	for _, body := range []string{
		wiretest.Success(`null`), wiretest.Success(`{"a":[1.50,"\u00e9"]}`), wiretest.Success(wiretest.SingleCard), wiretest.Success(`[` + wiretest.BIN + `]`), wiretest.Success(`[{"a":1,"a":1}]`),
		`{"data":{},"msg":"success","code":200}`, `{"code":200,"msg":null,"data":1}`, `{"code":200,"data":1}`, `{"code":200,"msg":"success"}`,
		`{"code":422,"msg":"no","data":null}`, `{"code":500,"msg":"no"}`, `{"code":599}`, `{"code":-1}`, `{"code":0}`,
		`{"code":200.0,"data":1}`, `{"code":2e2,"data":1}`, `{"code":"200","data":1}`, `{"Code":200,"data":1}`, `{"c\u006fde":200,"data":1}`,
		`{"code":200,"code":200,"data":1}`, `{"code":200,"Code":500,"data":1}`, `{"code":200,"data":1,"x":{"y":[]}}`, `{"code":200,"msg":7,"data":1}`,
		`{"code":9223372036854775807}`, `{"code":9223372036854775808}`, `[]`, `200`, ``, "\ufeff" + wiretest.Success(`1`), wiretest.Success(`1`) + "\x00", `<html>`,
		wiretest.Success(strings.Repeat("[", 62) + strings.Repeat("]", 62)), wiretest.Success(strings.Repeat("[", 63) + strings.Repeat("]", 63)),
		wiretest.Success(strings.Repeat("[", 64) + strings.Repeat("]", 64)),
	} {
		f.Add(uint16(0), []byte(body))
	}
	f.Add(uint16(222), []byte(`{"code":422,"msg":"no","data":null}`))
	f.Add(uint16(222), []byte(`{"code":200,"msg":"success","data":null}`))
	f.Add(uint16(222), []byte(`{"code":500,"msg":"no","data":null}`))
	f.Add(uint16(302), []byte(`{"code":200,"msg":"success","data":null}`))
	f.Add(uint16(71), []byte(`{"code":200,"msg":"no"}`))
	for _, status := range []uint16{400, 401, 403, 404, 422, 429} {
		for _, body := range []string{
			``, `<html>`, `[]`, " \ufeff<html>", "\ufeff" + `{"code":422,"msg":"no"}`, "\xff{", `{"code":422,"msg":"no"}`, `{"code":422}`, `{"code":422,"msg":null}`,
			`{"code":422,"msg":"success"}`, `{"code":1020}`, `{"code":200,"msg":"no"}`, `{"code":3000000000,"msg":"no"}`,
		} {
			f.Add(status-200, []byte(body))
		}
	}
	for _, text := range jsonsuite.Seeds(f, 12) {
		f.Add(uint16(0), []byte(wiretest.Success(string(text))))
	}
	f.Fuzz(func(t *testing.T, n uint16, body []byte) {
		status := 200 + int(n)%400
		for _, write := range []bool{false, true} {
			c := wiretest.NewClient(t, wiretest.Always(status, string(body)), cardwire.WithRetry(cardwire.RetryPolicy{}))
			got, err := cardwire.Call[json.RawMessage](t.Context(), c, cardwire.Request{Op: "Ask", Method: "POST", Path: "/ask", ReadOnly: !write})
			outcome, data := outcomeOf(status, body)
			if outcome == succeeded {
				require.NoError(t, err)
				require.Equal(t, data, string(got))
				continue
			}
			require.Equal(t, outcome, wiretest.FactsOf(t, err).Outcome)
			require.Nil(t, got)
		}
	})
}

// succeeded stands beside the outcomes of failures.
const succeeded cardwire.Outcome = 255

// outcomeOf judges a response by the table of outcomes, with encoding/json only.
func outcomeOf(status int, body []byte) (outcome cardwire.Outcome, data string) {
	code, message, data, readable := envelopeOf(body)
	refusal := message != nil && !slices.Contains([]string{"success", "Uploaded"}, *message)
	switch {
	case !readable && slices.Contains([]int{401, 404, 405, 413, 429}, status) && withoutObject(body):
		return cardwire.OutcomeRefused, ""
	case !readable:
		return cardwire.OutcomeUnknown, ""
	case status < 300 && code == "200" && data != "":
		return succeeded, data
	case status < 300 && slices.Contains(refusedNumbers, code) && refusal:
		return cardwire.OutcomeRefused, ""
	case status < 300, code == "200", len(code) == 3 && code[0] == '5':
		return cardwire.OutcomeUnknown, ""
	case wiretest.RefusalsByNumber[status] != "" && refusal:
		return cardwire.OutcomeRefused, ""
	}
	return cardwire.OutcomeUnknown, ""
}

// withoutObject reports whether a body does not begin as an object, whatever stands
// before its first character that is visible.
func withoutObject(body []byte) bool {
	text := strings.TrimLeftFunc(string(body), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\ufeff\ufffd\x00", r)
	})
	return !strings.HasPrefix(text, "{")
}

// refusedNumbers are the keys of refusalsByNumber as they stand in a response.
var refusedNumbers = []string{"400", "401", "403", "404", "405", "413", "415", "422", "429"}

var integerText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// envelopeOf reads an envelope with encoding/json, after a look at what that
// does not mind.
func envelopeOf(body []byte) (code string, message *string, data string, ok bool) {
	var fields map[string]json.RawMessage
	if !jsonsuite.Strict(body, maxDepth) || json.Unmarshal(body, &fields) != nil || fields == nil {
		return "", nil, "", false
	}
	if text, there := fields["msg"]; there && json.Unmarshal(text, &message) != nil {
		return "", nil, "", false
	}
	var n int32
	code = string(fields["code"])
	if !integerText.MatchString(code) || json.Unmarshal(fields["code"], &n) != nil {
		return "", nil, "", false
	}
	return code, message, string(fields["data"]), true
}

// model is a value of a type that decodes itself.
type model interface {
	json.Marshaler
	json.Unmarshaler
}

func models() []model {
	return []model{
		new(cardwire.Card), new(cardwire.ConsumptionScene), new(cardwire.CardPage), new(cardwire.CardSecrets), new(cardwire.BIN), new(cardwire.FeeTier), new(cardwire.AuthRequirement), new(cardwire.AuthField),
		new(cardwire.RemittanceState), new(cardwire.RemittanceCurrency), new(cardwire.Transfer), new(cardwire.TransferParams), new(cardwire.UploadedImage), new(cardwire.Address), new(cardwire.CardOperation),
	}
}

// A type that decodes itself is read as a response is: what it takes is strict JSON,
// and its fields have what encoding/json finds under their names.
func FuzzModels(f *testing.F) {
	for _, text := range []string{
		wiretest.ListedCard, wiretest.SingleCard, wiretest.CardSecrets, wiretest.BIN, wiretest.AuthRequirement, wiretest.State, wiretest.Currency, wiretest.Transfer,
		`{"total":1,"per_page":20,"current_page":1,"last_page":1,"data":[` + wiretest.ListedCard + `]}`, `{"attachment_key":"att/7f.png"}`,
		`{"name":"online","channel_id":7}`, `{"fee":0.11,"fee_rate":0.012,"extra_fee":1e2,"extra_fee_rate":-0}`, `{"field":"idType","required":1}`,
		`{"city":"a","state":null,"country":"PT","postalCode":1000,"addressLine1":"","addressLine2":"\u00e9"}`, `{}`, `null`, `[]`, `{"id":"c1"}`,
		`{"id":1,"bin":"493193","avs":7,"3ds":"1","foreign_fee_config":[],"auth_fee_config":{"a":1e99},"cashback_fee_config":[1,null]}`,
		`{"id":"c","available":1,"pending":"2.50","frozen":0,"fee":"0.00","cvv":"123","card_no":"4111111111111111","holder_address":{}}`,
		`{"id":"c","available":1,"pending":0,"frozen":0,"fee":"0.00","create_time":"0000-00-00 00:00:00","update_time":"2026-01-02 23:59:60","expire_date":"13/2027"}`,
		`{"api_order_no":"a\u0000\u2028b ","merchant_order_no":"m","status":""}`,
		wiretest.TransferSent, `{"transferAmount":"1.00","merchantOrderNo":"a","fee":"none","available":"1.0"}`, `{"merchantOrderNo":"a","transferAmount":"1"}`,
		`{"merchantOrderNo":"a","transferAmount":"1.00","senderDateOfBirth":"2026-02-29"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, v := range models() {
			err := v.UnmarshalJSON(text)
			if again := json.Unmarshal(text, v); err == nil {
				require.NoError(t, again, "%T", v)
			} else {
				if _, params := v.(*cardwire.TransferParams); !params || !errors.Is(err, cardwire.ErrInvalidParams) {
					require.ErrorIs(t, err, cardwire.ErrUnreadable, "%T", v)
				}
				require.Error(t, again, "%T", v)
				continue
			}
			require.True(t, jsonsuite.Strict(text, maxDepth), "%T", v)
			if string(bytes.TrimSpace(text)) == "null" {
				continue // which leaves it as it was
			}
			encoded, err := encodedOf(v)
			require.NoError(t, err)
			if _, params := v.(*cardwire.TransferParams); params { // all of it is kept
				require.Equal(t, decoded(t, text), decoded(t, encoded))
			} else {
				requireSameValues(t, "", decoded(t, text), decoded(t, encoded))
			}

			// What was encoded is complete, and is read as the same again.
			again := models()[i]
			require.NoError(t, again.UnmarshalJSON(encoded), "%T", v)
			twice, err := encodedOf(again)
			require.NoError(t, err)
			require.Equal(t, string(encoded), string(twice))
		}
	})
}

// encodedOf returns the JSON that v reads.
func encodedOf(v model) ([]byte, error) {
	if p, ok := v.(*cardwire.TransferParams); ok {
		return p.RevealJSON()
	}
	return v.MarshalJSON()
}

func decoded(t *testing.T, text []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

// Fields of which not the very value is encoded: masks, what is any JSON and is
// kept as it stands, and numbers of which only 0 is false.
var (
	sealedFields = []string{"card_no", "cvv", "pan"}
	rawFields    = []string{"auth_fee_config", "refund_fee_config", "reversal_fee_config", "cashback_fee_config"}
	flagFields   = []string{"avs", "3ds", "physical", "apple_pay", "google_wallet", "is_card_count_limited"}
)

// requireSameValues compares what is under name in JSON that was decoded, in,
// with what it was encoded as, out. Where their kinds differ, a value of another
// kind was tolerated, which is not for encoding/json to judge.
func requireSameValues(t *testing.T, name string, in, out any) {
	t.Helper()
	if slices.Contains(rawFields, name) && in != nil {
		if list, ok := in.([]any); !ok || len(list) > 0 {
			require.Equal(t, in, out, name)
		}
		return
	}
	switch out := out.(type) {
	case map[string]any:
		object, _ := in.(map[string]any)
		for name := range out {
			if v, ok := object[name]; ok {
				requireSameValues(t, name, v, out[name])
			}
		}
	case []any:
		list, ok := in.([]any)
		if !ok {
			return
		}
		require.Len(t, out, len(list), name)
		for i := range list {
			requireSameValues(t, "", list[i], out[i])
		}
	case string:
		if text, ok := in.(string); ok {
			requireSameText(t, name, text, out)
		}
	case json.Number:
		if number, ok := in.(json.Number); ok {
			requireSameNumber(t, name, string(number), string(out))
		}
	case bool:
		if b, ok := in.(bool); ok {
			require.Equal(t, b, out, name)
		}
	}
}

// dateOr returns a date in the layout, or none if it is not one.
func dateOr(none, layout, in string) string {
	at, err := time.Parse(layout, in)
	if err != nil || at.Year() == 0 || len(in) != len(layout) { // time.Parse takes 1:00:00
		return none
	}
	return in
}

func requireSameText(t *testing.T, name, in, out string) {
	t.Helper()
	switch {
	case slices.Contains(sealedFields, name):
		require.True(t, out == in && !strings.ContainsAny(in, "0123456789") || strings.Contains(out, "*"), name)
	case name == "expire_date":
		require.Equal(t, dateOr("**/****", "01/2006", in), out)
	case name == "create_time" || name == "update_time":
		require.Equal(t, dateOr("", time.DateTime, in), out)
	case name == "available" || name == "fee":
		requireSameNumber(t, name, in, out)
	case name == "api_order_no" && in != out:
		require.Error(t, check.Visible(name, in))
		require.NoError(t, check.Visible(name, out))
	default:
		require.Equal(t, in, out, name)
	}
}

func requireSameNumber(t *testing.T, name, in, out string) {
	t.Helper()
	want, ok := new(big.Rat).SetString(in)
	require.True(t, ok, name)
	got, ok := new(big.Rat).SetString(out)
	require.True(t, ok, name)
	if slices.Contains(flagFields, name) {
		require.Equal(t, want.Sign() != 0, got.Cmp(big.NewRat(1, 1)) == 0, name)
		return
	}
	require.Zero(t, want.Cmp(got), name)
}

// A type that comes to decode itself must be fuzzed as well.
func TestTheListOfModelsIsComplete(t *testing.T) {
	t.Parallel()
	var declared, listed []string
	for _, file := range syntax.Files(t, "../../..") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "UnmarshalJSON" {
				declared = append(declared, "*cardwire."+f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	for _, v := range models() {
		listed = append(listed, reflect.TypeOf(v).String())
	}
	require.ElementsMatch(t, declared, listed)
}
