package cardwire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// Only one strict form of an envelope is a success. Everything else under status
// 200 is unknown, with no code and no message of the service's.
func TestAnEnvelopeThatIsNotStrictIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		// The code.
		`{"code":"200","msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":200.0,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":2e2,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":+200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":0200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":null,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":true,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":[200],"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":{},"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"Code":200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"CODE":200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code ":200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":9223372036854775808,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":1e400,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":` + strings.Repeat("2", 1000) + `,"msg":"success","data":` + wiretest.TransferData + `}`,
		// Two codes.
		`{"code":200,"code":200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":200,"code":422,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":422,"code":200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"code":422}`,
		`{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"c\u006fde":422}`,
		`{"\u0063ode":422,"msg":"success","data":` + wiretest.TransferData + `,"code":200}`,
		// Other fields twice.
		`{"code":200,"msg":"success","msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"x":1,"x":1}`,
		`{"code":200,"msg":"success","data":{"api_order_no":"A-1","api_order_no":"A-2"}}`,
		`{"code":200,"msg":"success","data":{"api_order_no":"A-1","x":{"a":1,"\u0061":2}}}`,
		`{"data":{"api_order_no":"A-1","api_order_no":"A-2"},"msg":"success","code":200}`,
		// Not an object.
		`[` + wiretest.Success(wiretest.TransferData) + `]`, `[]`, `200`, `"success"`, `null`, `true`, ` `,
		// More than one JSON value.
		wiretest.Success(wiretest.TransferData) + `{}`, wiretest.Success(wiretest.TransferData) + `,`, wiretest.Success(wiretest.TransferData) + `x`, wiretest.Success(wiretest.TransferData) + "\x00",
		wiretest.Success(wiretest.TransferData) + wiretest.Success(wiretest.TransferData), wiretest.Success(wiretest.TransferData) + "\ufeff",
		"\ufeff" + wiretest.Success(wiretest.TransferData), "\x00" + wiretest.Success(wiretest.TransferData), "x" + wiretest.Success(wiretest.TransferData),
		// Not JSON.
		`{"code":200,"msg":"success","data":` + wiretest.TransferData + `,}`,
		`{"code":200 "msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"success","data":` + wiretest.TransferData,
		`{"code":200,"msg":'success',"data":` + wiretest.TransferData + `}`,
		`{code:200,"msg":"success","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"success","data":NaN}`,
		`{"code":200,"msg":"success","data":tru}`,
		`{"code":200,"msg":"succ` + "\n" + `ess","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"succ` + "\xff" + `ess","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"\ud800","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"\q","data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":"success","data":{"api_order_no":"A` + "\xff" + `1"}}`,
		`{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"more":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
		// The message.
		`{"code":200,"msg":200,"data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":{},"data":` + wiretest.TransferData + `}`,
		`{"code":200,"msg":true,"data":` + wiretest.TransferData + `}`,
		// Data of the wrong kind in an envelope that is not sound either.
		`{"code":200,"msg":"success","data":[}`,
		`{"code":200,"msg":"success","data":"A-1"`,
		`{"code":200,"msg":"success","data":{"api_order_no":1.5,"x":nothing}}`,
		`{"code":200,"msg":"success","data":{"api_order_no":1.5,"x":1,"x":2}}`,
		`{"code":200,"msg":"success","data":"A-1","code":200}`,
		`{"code":200,"data":"A-1","msg":7}`,
		`{"data":"A-1","msg":"success","code":"200"}`,
		`{"data":[,"msg":"success","code":200}`,
	} {
		t.Run(body[:min(len(body), 90)], func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), body)
			transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Nil(t, transfer)
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}, wiretest.FactsOf(t, err))
		})
	}
}

func TestEnvelopesThatAreASuccess(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for name, tc := range map[string]struct {
		body   string
		drifts []cardwire.Drift
	}{
		"as the API documents it": {body: wiretest.Success(wiretest.TransferData)},
		"in another order":        {body: `{"data":` + wiretest.TransferData + `,"code":200,"msg":"success"}`},
		"with white space":        {body: " \r\n\t{ \"code\" : 200 , \"msg\" : \"success\" , \"data\" : " + wiretest.TransferData + " }\n"},
		"with escapes in names":   {body: `{"c\u006fde":200,"m\u0073g":"success","d\u0061ta":` + wiretest.TransferData + `}`},
		"with another text":       {body: `{"code":200,"msg":"done","data":` + wiretest.TransferData + `}`, drifts: []cardwire.Drift{{"msg", "unknown success message"}}},
		"without a text":          {body: `{"code":200,"data":` + wiretest.TransferData + `}`, drifts: []cardwire.Drift{{"msg", "missing field"}}},
		"with null for a text":    {body: `{"code":200,"msg":null,"data":` + wiretest.TransferData + `}`, drifts: []cardwire.Drift{{"msg", "null for string"}}},
		"with unknown fields":     {body: `{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"ts":1,"trace":{"id":"4"}}`, drifts: []cardwire.Drift{{"*", "unknown field"}}},
		"with another letter":     {body: `{"code":200,"Code":500,"msg":"success","data":` + wiretest.TransferData + `}`, drifts: []cardwire.Drift{{"*", "unknown field"}}},
		"at the depth's bound":    {body: `{"code":200,"msg":"success","data":` + wiretest.TransferData + `,"more":` + deep + `}`, drifts: []cardwire.Drift{{"*", "unknown field"}}},
		"with an unknown in data": {body: `{"code":200,"msg":"success","data":{"merchant_order_no":"M-1","fee":1,"api_order_no":"A-1","status":"wait_process","fee2":1}}`, drifts: []cardwire.Drift{{"data.*", "unknown field"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard, drifts := wiretest.Drifts()
			c := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), tc.body, heard)
			transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			require.NoError(t, err)
			assert.Equal(t, &cardwire.Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: cardwire.TransferWaitProcess}, transfer)
			assert.Equal(t, tc.drifts, *drifts)
		})
	}
}

// Data is not looked at before the code says success: of a failure it may be
// anything that is JSON.
func TestDataOfAFailureIsNotRead(t *testing.T) {
	t.Parallel()
	refused := wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 422, Message: "no"}
	unreadable := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}
	unknown := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 422, Message: "no"} // it names this order
	const others = `{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`
	for body, want := range map[string]wiretest.Facts{
		`{"code":422,"msg":"no","data":` + wiretest.TransferData + `}`: unknown,
		`{"data":` + wiretest.TransferData + `,"code":422,"msg":"no"}`: unknown,
		`{"data":{"api_order_no":[]},"code":422,"msg":"no"}`:           refused,
		`{"code":422,"msg":"no","data":"why"}`:                         refused,
		`{"code":422,"msg":"no","data":` + others + `}`:                refused,
		`{"data":` + others + `,"code":422,"msg":"no"}`:                refused,
		`{"code":422,"msg":"no"}`:                                      refused,
		`{"code":422,"msg":"no","data":[1,]}`:                          unreadable,
		`{"data":[1,],"code":422,"msg":"no"}`:                          unreadable,
		`{"data":{"a":1,"a":2},"code":422,"msg":"no"}`:                 unreadable,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			heard, drifts := wiretest.Drifts()
			c := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), body, heard)
			_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, want, wiretest.FactsOf(t, err))
			assert.Empty(t, *drifts, "drift is told of successes")
		})
	}
}

// What is no code but perhaps a card number is not printed as one.
func TestACodeOfMoreThan32BitsIsUnreadable(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]wiretest.Facts{
		"4111111111111111":  {Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		"-4111111111111111": {Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		"2147483648":        {Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		"2147483647":        {Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 2147483647},
		"-2147483648":       {Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: -2147483648},
	} {
		c := wiretest.Respond(t, wiretest.SmallTransferRequest("M-1"), `{"code":`+code+`,"data":`+wiretest.TransferData+`}`)
		var r cardwire.Response
		_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithResponse(&r))
		assert.Equal(t, want, wiretest.FactsOf(t, err), code)
		assert.Equal(t, want.Code, r.Code)
	}
}
