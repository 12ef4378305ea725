package cardwire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// transferWith sends a transfer. In the body of the response $ stands for its data, and @ for
// a whole success.
func transferWith(t *testing.T, body string, opts ...cardwire.Option) (*cardwire.Transfer, error) {
	t.Helper()
	body = strings.NewReplacer("$", wiretest.TransferData, "@", wiretest.Success(wiretest.TransferData)).Replace(body)
	c := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), body, opts...)
	return c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
}

// Only one strict form of an envelope is a success. Everything else under status 200 is
// unknown, with no code and no message of the service's. The other forms are in FuzzEnvelope.
func TestAnEnvelopeThatIsNotStrictIsUnreadable(t *testing.T) {
	t.Parallel()
	for what, bodies := range map[string][]string{
		"a field twice": {
			`{"code":200,"msg":"success","data":{"api_order_no":"A-1","api_order_no":"A-2"}}`,
			`{"code":200,"msg":"success","data":{"api_order_no":"A-1","x":{"a":1,"\u0061":2}}}`,
			`{"data":{"api_order_no":"A-1","api_order_no":"A-2"},"msg":"success","code":200}`,
		},
		"more than one object": {`[@]`, `@{}`, `@,`, "@\x00", `@@`, "\ufeff\ufeff@", "@\ufeff", `x@`},
		"data of the wrong kind, and more that is wrong": {
			`{"code":200,"msg":"success","data":[}`, `{"code":200,"msg":"success","data":"A-1"`,
			`{"code":200,"msg":"success","data":{"api_order_no":1.5,"x":nothing}}`,
			`{"code":200,"msg":"success","data":{"api_order_no":1.5,"x":1,"x":2}}`,
			`{"code":200,"msg":"success","data":"A-1","code":200}`, `{"code":200,"data":"A-1","msg":7}`,
			`{"data":"A-1","msg":"success","code":"2e2"}`, `{"data":[,"msg":"success","code":200}`,
			`{"code":422,"msg":"no","data":[1,]}`, `{"data":[1,],"code":422,"msg":"no"}`,
			`{"data":{"a":1,"a":2},"code":422,"msg":"no"}`, // of a refusal too
		},
	} {
		for _, body := range bodies {
			transfer, err := transferWith(t, body)
			assert.Nil(t, transfer)
			assert.Equal(t, "Unknown Unreadable, HTTP 200", outcomeOf(t, err), "%s: %s", what, body)
		}
	}
	for _, code := range []string{
		`"+200"`, `"0200"`, `" 200"`, `"200.0"`, `"2e2"`, `200.5`, `2e2`, `+200`, `0200`, `null`, `true`, `[200]`, `{}`,
		`1e400`, strings.Repeat("2", 1000),
		`4111111111111111`, `-4111111111111111`, `2147483648`, `9223372036854775808`, // what is perhaps a card number
	} {
		var r cardwire.Response
		c := wiretest.NewClient(t, wiretest.Always(200, `{"code":`+code+`,"msg":"success","data":{}}`))
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&r))
		assert.Equal(t, "Unknown Unreadable, HTTP 200", outcomeOf(t, err), code)
		assert.Zero(t, r.Code)
	}
	for code, want := range map[string]int{"2147483647": 2147483647, "-2147483648": -2147483648, "0": 0} {
		_, err := transferWith(t, `{"code":`+code+`,"msg":"no"}`)
		assert.Equal(t, want, wiretest.Failure(t, err).Code)
		assert.ErrorContains(t, err, ", code "+code+",")
	}
}

func TestEnvelopesThatAreASuccess(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for body, drift := range map[string]cardwire.Drift{
		`@`:                                     {},
		`{"data":$,"code":200,"msg":"success"}`: {},
		" \r\n\t{ \"code\" : 200 , \"msg\" : \"success\" , \"data\" : $ }\n": {},
		`{"c\u006fde":200,"m\u0073g":"success","d\u0061ta":$}`:               {},
		`{"code":200,"msg":"done","data":$}`:                                 {"msg", "unknown success message"},
		`{"code":200,"msg":"already exists","data":$}`:                       {"msg", "unknown success message"},
		`{"code":200,"data":$}`:                                              {"msg", "missing field"},
		"\ufeff@":                                                            {"", "byte order mark"},
		`{"code":"200","msg":"success","data":$}`:                            {"code", "string for number"},
		`{"data":$,"msg":"success","code":200.0}`:                            {"code", "decimal for integer"},
		`{"code":200,"msg":null,"data":$}`:                                   {"msg", "null for string"},
		`{"code":200,"msg":"success","data":$,"ts":1,"trace":{"id":"4"}}`:    {"*", "unknown field"},
		`{"code":200,"Code":500,"msg":"success","data":$}`:                   {"*", "unknown field"},
		`{"code":200,"msg":"success","data":$,"more":` + deep + `}`:          {"*", "unknown field"},
		wiretest.Success(`{"fee":1,` + wiretest.TransferData[1:]):            {"data.*", "unknown field"},
	} {
		heard, drifts := wiretest.Drifts()
		transfer, err := transferWith(t, body, heard)
		require.NoError(t, err, body)
		want := &cardwire.Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: cardwire.TransferWaitProcess}
		assert.Equal(t, want, transfer, body)
		if drift == (cardwire.Drift{}) {
			assert.Empty(t, *drifts, body)
		} else {
			assert.Equal(t, []cardwire.Drift{drift}, *drifts, body)
		}
	}
}
