package cardwire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// transferData is the data of a transfer that was taken on.
const transferData = `{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`

// Only one strict form of an envelope is a success. Everything else under status
// 200 is unknown, with no code and no message of the service's.
func TestAnEnvelopeThatIsNotStrictIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		// The code.
		`{"code":"200","msg":"success","data":` + transferData + `}`,
		`{"code":200.0,"msg":"success","data":` + transferData + `}`,
		`{"code":2e2,"msg":"success","data":` + transferData + `}`,
		`{"code":+200,"msg":"success","data":` + transferData + `}`,
		`{"code":0200,"msg":"success","data":` + transferData + `}`,
		`{"code":null,"msg":"success","data":` + transferData + `}`,
		`{"code":true,"msg":"success","data":` + transferData + `}`,
		`{"code":[200],"msg":"success","data":` + transferData + `}`,
		`{"code":{},"msg":"success","data":` + transferData + `}`,
		`{"msg":"success","data":` + transferData + `}`,
		`{"Code":200,"msg":"success","data":` + transferData + `}`,
		`{"CODE":200,"msg":"success","data":` + transferData + `}`,
		`{"code ":200,"msg":"success","data":` + transferData + `}`,
		`{"code":9223372036854775808,"msg":"success","data":` + transferData + `}`,
		`{"code":1e400,"msg":"success","data":` + transferData + `}`,
		`{"code":` + strings.Repeat("2", 1000) + `,"msg":"success","data":` + transferData + `}`,
		// Two codes.
		`{"code":200,"code":200,"msg":"success","data":` + transferData + `}`,
		`{"code":200,"code":422,"msg":"success","data":` + transferData + `}`,
		`{"code":422,"code":200,"msg":"success","data":` + transferData + `}`,
		`{"code":200,"msg":"success","data":` + transferData + `,"code":422}`,
		`{"code":200,"msg":"success","data":` + transferData + `,"c\u006fde":422}`,
		`{"\u0063ode":422,"msg":"success","data":` + transferData + `,"code":200}`,
		// Other members twice.
		`{"code":200,"msg":"success","msg":"success","data":` + transferData + `}`,
		`{"code":200,"msg":"success","data":` + transferData + `,"data":` + transferData + `}`,
		`{"code":200,"msg":"success","data":` + transferData + `,"x":1,"x":1}`,
		`{"code":200,"msg":"success","data":{"api_order_no":"A-1","api_order_no":"A-2"}}`,
		`{"code":200,"msg":"success","data":{"api_order_no":"A-1","x":{"a":1,"\u0061":2}}}`,
		`{"data":{"api_order_no":"A-1","api_order_no":"A-2"},"msg":"success","code":200}`,
		// Not an object.
		`[` + success(transferData) + `]`, `[]`, `200`, `"success"`, `null`, `true`, ` `,
		// More than one text.
		success(transferData) + `{}`, success(transferData) + `,`, success(transferData) + `x`, success(transferData) + "\x00",
		success(transferData) + success(transferData), success(transferData) + "\ufeff",
		"\ufeff" + success(transferData), "\x00" + success(transferData), "x" + success(transferData),
		// Not JSON.
		`{"code":200,"msg":"success","data":` + transferData + `,}`,
		`{"code":200 "msg":"success","data":` + transferData + `}`,
		`{"code":200,"msg":"success","data":` + transferData,
		`{"code":200,"msg":'success',"data":` + transferData + `}`,
		`{code:200,"msg":"success","data":` + transferData + `}`,
		`{"code":200,"msg":"success","data":NaN}`,
		`{"code":200,"msg":"success","data":tru}`,
		`{"code":200,"msg":"succ` + "\n" + `ess","data":` + transferData + `}`,
		`{"code":200,"msg":"succ` + "\xff" + `ess","data":` + transferData + `}`,
		`{"code":200,"msg":"\ud800","data":` + transferData + `}`,
		`{"code":200,"msg":"\q","data":` + transferData + `}`,
		`{"code":200,"msg":"success","data":{"api_order_no":"A` + "\xff" + `1"}}`,
		`{"code":200,"msg":"success","data":` + transferData + `,"more":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
		// The message.
		`{"code":200,"msg":200,"data":` + transferData + `}`,
		`{"code":200,"msg":{},"data":` + transferData + `}`,
		`{"code":200,"msg":true,"data":` + transferData + `}`,
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
			c := answered(t, asksTransfer("M-1"), body)
			transfer, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Nil(t, transfer)
			assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}, factsOf(t, err))
		})
	}
}

func TestEnvelopesThatAreASuccess(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for name, tc := range map[string]struct {
		body   string
		drifts []Drift
	}{
		"as the interface says":   {body: success(transferData)},
		"in another order":        {body: `{"data":` + transferData + `,"code":200,"msg":"success"}`},
		"with white space":        {body: " \r\n\t{ \"code\" : 200 , \"msg\" : \"success\" , \"data\" : " + transferData + " }\n"},
		"with escapes in names":   {body: `{"c\u006fde":200,"m\u0073g":"success","d\u0061ta":` + transferData + `}`},
		"with another text":       {body: `{"code":200,"msg":"done","data":` + transferData + `}`, drifts: []Drift{{"msg", "unknown success message"}}},
		"without a text":          {body: `{"code":200,"data":` + transferData + `}`, drifts: []Drift{{"msg", "missing field"}}},
		"with null for a text":    {body: `{"code":200,"msg":null,"data":` + transferData + `}`, drifts: []Drift{{"msg", "null for string"}}},
		"with unknown members":    {body: `{"code":200,"msg":"success","data":` + transferData + `,"ts":1,"trace":{"id":"4"}}`, drifts: []Drift{{"*", "unknown field"}}},
		"with another letter":     {body: `{"code":200,"Code":500,"msg":"success","data":` + transferData + `}`, drifts: []Drift{{"*", "unknown field"}}},
		"at the depth's bound":    {body: `{"code":200,"msg":"success","data":` + transferData + `,"more":` + deep + `}`, drifts: []Drift{{"*", "unknown field"}}},
		"with an unknown in data": {body: `{"code":200,"msg":"success","data":{"merchant_order_no":"M-1","fee":1,"api_order_no":"A-1","status":"wait_process","fee2":1}}`, drifts: []Drift{{"data.*", "unknown field"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heard, drifts := driftsOf()
			c := answered(t, asksTransfer("M-1"), tc.body, heard)
			transfer, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
			require.NoError(t, err)
			assert.Equal(t, &Transfer{MerchantOrderNo: "M-1", APIOrderNo: "A-1", Status: TransferWaitProcess}, transfer)
			assert.Equal(t, tc.drifts, *drifts)
		})
	}
}

// Data is not looked at before the code says success: of a failure it may be
// anything that is JSON.
func TestDataOfAFailureIsNotRead(t *testing.T) {
	t.Parallel()
	refused := facts{Outcome: OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 422, Message: "no"}
	unreadable := facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}
	unknown := facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 422, Message: "no"} // it names this order
	const others = `{"merchant_order_no":"M-2","api_order_no":"A-2","status":"wait_process"}`
	for body, want := range map[string]facts{
		`{"code":422,"msg":"no","data":` + transferData + `}`: unknown,
		`{"data":` + transferData + `,"code":422,"msg":"no"}`: unknown,
		`{"data":{"api_order_no":[]},"code":422,"msg":"no"}`:  refused,
		`{"code":422,"msg":"no","data":"why"}`:                refused,
		`{"code":422,"msg":"no","data":` + others + `}`:       refused,
		`{"data":` + others + `,"code":422,"msg":"no"}`:       refused,
		`{"code":422,"msg":"no"}`:                             refused,
		`{"code":422,"msg":"no","data":[1,]}`:                 unreadable,
		`{"data":[1,],"code":422,"msg":"no"}`:                 unreadable,
		`{"data":{"a":1,"a":2},"code":422,"msg":"no"}`:        unreadable,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			heard, drifts := driftsOf()
			c := answered(t, asksTransfer("M-1"), body, heard)
			_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, want, factsOf(t, err))
			assert.Empty(t, *drifts, "drift is told of successes")
		})
	}
}

// What is no code but perhaps a card number is not shown as one.
func TestACodeOfMoreThan32BitsIsUnreadable(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]facts{
		"4111111111111111":  {Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		"-4111111111111111": {Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		"2147483648":        {Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		"2147483647":        {Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 2147483647},
		"-2147483648":       {Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: -2147483648},
	} {
		c := answered(t, asksTransfer("M-1"), `{"code":`+code+`,"data":`+transferData+`}`)
		var r Response
		_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"), WithResponse(&r))
		assert.Equal(t, want, factsOf(t, err), code)
		assert.Equal(t, want.Code, r.Code)
	}
}
