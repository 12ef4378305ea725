package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	root "github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/lab/contract"
)

// talk is an exchange as text. Of the request, the first line and the headers
// but Authorization; then the status of the response.
type talk struct {
	request, body, status, response string
}

// good are exchanges in which nothing is wrong.
var good = map[string]talk{
	"GetCardSecrets": {
		"POST /cards/private\nContent-Type: application/x-www-form-urlencoded", "cardId=card-1", "200",
		`{"code":200,"msg":"success","data":{"card_no":"428837******0003","cvv":"***","expire_date":"**/****","pan":"dGVzdA=="}}`,
	},
	"CancelOperation": {
		"POST /cards/adjustAction\nContent-Type: application/x-www-form-urlencoded",
		"client_transaction_id=6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11&type=cancel", "200",
		`{"code":200,"msg":"success","data":true}`,
	},
	"FreezeCard": {
		"POST /cards/suspend\nContent-Type: multipart/form-data; boundary=xx",
		part(`name="cardId"`, "card-1") + part(`name="clientTransactionId"`, "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01") + "--xx--\r\n", "200",
		`{"code":200,"msg":"success","data":"f95a25ef-fd1d-47d4-baab-0c4635e18050"}`,
	},
	"UploadImage": {
		"POST /cards/upload\nContent-Type: multipart/form-data; boundary=xx",
		part(`name="file"; filename="id.gif"`, "GIF89a") + "--xx--\r\n", "200",
		`{"code":200,"msg":"Uploaded","data":{"attachment_key":"att/1"}}`,
	},
	"CreateTransfer": {
		"POST /remittance/transfer\nContent-Type: application/json",
		`{"merchantOrderNo":"order-1","payoutCurrency":"EUR","transferType":"3","transferAmount":"100.25",` +
			`"senderDateOfBirth":"1990-12-10","senderCountry":"GB"}`, "200",
		`{"code":200,"msg":"success","data":{"merchant_order_no":"order-1","api_order_no":"A-1","status":"wait_process"}}`,
	},
	"GetCard": {
		"GET /cards/info?id=card-1", "", "200",
		`{"code":200,"msg":"success","data":{"id":"card-1","trade_id":"trade-1","label":null,"card_bin":"428837",` +
			`"card_no":"428837******0003","cvv":"***","currency":"USD","available":"0.500","pending":0,"frozen":1.5,` +
			`"expire_date":"**/****","holder_username":"","holder_address":[],"create_time":"2025-03-01 00:00:00","status":4,` +
			`"holder_phone":"","holder_phone_code":"","holder_email":"","fee":"0.00","physical":0,"physical_status":0,` +
			`"deliver_status":0,"platform_waybill_number":null,"platform_waybill_company":null,"account_status":0,` +
			`"consumption_scene_type":0,"consumption_scene_config":[{"name":"Ads","channel_id":7}]}}`,
	},
	"ListCards": {
		"GET /cards?limit=20&status=4&created_from=2025-01-02", "", "200",
		`{"code":200,"msg":"success","data":{"total":0,"per_page":20,"current_page":1,"last_page":1,"data":[]}}`,
	},
	"ListRemittanceStates": {
		"GET /remittance/states", "", "200",
		`{"code":200,"msg":"success","data":[{"code":"CA","name":"California","country":"US","countryStandardCode":"USA"}]}`,
	},
	"ListRemittanceCurrencies": {
		"GET /remittance/currency", "", "200",
		`{"code":200,"msg":"success","data":[{"id":9,"payout_currency":"PHP","transfer_type_id":3,"transfer_type_value":"C2C",` +
			`"payout_method_id":1,"payout_method_value":"Bank Transfer","country":"PHL","country_code":"PH","fee_rate":0.015,` +
			`"fixed_fee":1.5,"min_quota":10.01,"max_quota":9000,"year_transfer_amount_quota":50000}]}`,
	},
	"ListBINs": {
		"GET /bins", "", "200",
		`{"code":200,"msg":"success","data":[{"id":37,"bin":"493193","type":"share","name":"Travel","network":"VISA",` +
			`"country":"US","avs":1,"3ds":1,"day_purchase_limit":1000.5,"single_purchase_limit":200.25,` +
			`"lifetime_purchase_limit":90000,"maintain":true,"weigh":8,"status":true,"api":true,"physical":1,"currency":"USD",` +
			`"foreign_fee_config":{"10-99.99":{"fee":0.11,"fee_rate":0.012,"extra_fee":0.13,"extra_fee_rate":0.014}},` +
			`"auth_fee_config":{"fee":1},"refund_fee_config":null,"reversal_fee_config":{},"cashback_fee_config":[7,"x"],` +
			`"apple_pay":1,"google_wallet":1,"card_nums":55,"is_card_count_limited":1,"business_mode":["B2B","B2C"],` +
			`"auth_level":2,"create_amount":1.05,"card_depost_fee":0.02,"allow_create":true,"allow_in":true,"allow_out":true,` +
			`"allow_suspend":true,"allow_enable":true,"allow_frozen":true,"allow_unfrozen":true,"allow_destory":true,` +
			`"create_min_amount":10.01,"create_max_amount":10.02,"recharge_min_amount":10.03,"recharge_max_amount":10.04,` +
			`"withdraw_min_amount":10.05,"withdraw_max_amount":10.06,"refuse_times":3,"refuse_rate":0.25,"scenes":["ads"],` +
			`"auth_requirement":{"level":"advanced","fields":[{"field":"idType","required":true,"desc":"kind"},` +
			`{"field":"selfieAttachmentKey","required":true,"desc":"photo"}]}}]}`,
	},
	"ListBINsUnderMaintenance": {"GET /bins/maintenance", "", "200", `{"code":200,"msg":"success","data":["428837"]}`},
	"CardCapacity":             {"GET /account/capacity", "", "200", `{"code":200,"msg":"success","data":606}`},
	"a refusal":                {"GET /account/capacity", "", "403", `{"code":1403,"msg":"no","data":null}`},
	"a refusal under 200":      {"GET /account/capacity", "", "200", `{"code":1403,"msg":"no","data":[]}`},
}

func part(disposition, value string) string {
	return "--xx\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\n" + value + "\r\n"
}

func (k talk) exchange(t *testing.T) root.Exchange {
	t.Helper()
	line, headers, _ := strings.Cut(k.request, "\n")
	method, target, ok := strings.Cut(line, " ")
	require.True(t, ok)
	e := root.Exchange{
		Method: method, Target: "/api/v1" + target, Body: []byte(k.body),
		Header: http.Header{"Authorization": {"Bearer key"}},
		Status: map[string]int{"200": 200, "403": 403}[k.status], ResponseBody: []byte(k.response),
		ResponseHeader: http.Header{"Content-Type": {"application/json"}},
	}
	for header := range strings.Lines(headers) {
		name, value, _ := strings.Cut(header, ": ")
		if e.Header[name] = []string{value}; value == "none" {
			delete(e.Header, name)
		}
	}
	return e
}

func TestGoodExchanges(t *testing.T) {
	t.Parallel()
	v := validator(t)
	for name, k := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := v.Check(t.Context(), k.exchange(t))
			require.NoError(t, err)
		})
	}
}

// Each of these is a good exchange with one thing wrong, and is caught for that.
func TestWrongExchanges(t *testing.T) {
	t.Parallel()
	v := validator(t)
	for name, tt := range map[string]struct {
		of      string
		in      func(*talk) *string
		old, by string
		want    string
	}{
		// Requests
		"another path":         {"CardCapacity", request, "capacity", "capacities", "no operation: no matching operation was found"},
		"another method":       {"CardCapacity", request, "GET", "POST", "no operation: method not allowed"},
		"no key":               {"CardCapacity", request, "capacity", "capacity\nAuthorization: none", "request: security requirements failed: 0 Authorization headers"},
		"another scheme":       {"CardCapacity", request, "capacity", "capacity\nAuthorization: Basic a2V5", "no bearer key in Authorization"},
		"an unknown parameter": {"CardCapacity", request, "capacity", "capacity?page=1", "request: query parameter page is not in the document"},
		"a body":               {"CardCapacity", body, "", "{}", `request: request body not allowed for this request`},
		"an unknown filter":    {"ListCards", request, "limit=", "limits=", "request: query parameter limits is not in the document"},
		"a repeated filter":    {"ListCards", request, "limit=20", "limit=20&limit=20", "request: query parameter limit is repeated"},
		"a seventh status":     {"ListCards", request, "status=4", "status=5", `parameter "status" in query has an error: validation failed due to: at '': value must be one of '-1', '0', '1', '2', '3', '4'`},
		"a date of slashes":    {"ListCards", request, "2025-01-02", "02/01/2025", `parameter "created_from" in query has an error: validation failed due to: at '': '02/01/2025' does not match pattern`},
		"no card id":           {"GetCard", request, "?id=card-1", "", `parameter "id" in query has an error: value is required but missing`},

		"another content type":    {"GetCardSecrets", request, "x-www-form-urlencoded", "json", `request: request body has an error: header Content-Type has unexpected value "application/json"`},
		"no content type":         {"GetCardSecrets", request, "application/x-www-form-urlencoded", "none", `header Content-Type has unexpected value ""`},
		"no body":                 {"GetCardSecrets", body, "cardId=card-1", "", "request: request body has an error: value is required but missing"},
		"a missing form field":    {"GetCardSecrets", body, "cardId=card-1", "cardid=card-1", `Error at "/cardId": property "cardId" is missing`},
		"an empty form field":     {"GetCardSecrets", body, "card-1", "", `Error at "/cardId": minimum string length is 1`},
		"an unknown form field":   {"GetCardSecrets", body, "card-1", "card-1&cvv=1", "request: form field cvv is not in the document"},
		"a repeated form field":   {"GetCardSecrets", body, "card-1", "card-1&cardId=card-2", "request: form field cardId is repeated"},
		"a malformed UUID":        {"CancelOperation", body, "6f1c1f2e-", "6f1c1f2e", `Error at "/client_transaction_id": string doesn't match the regular expression`},
		"no action":               {"CancelOperation", body, "&type=cancel", "", `Error at "/type": property "type" is missing`},
		"no part for the card":    {"FreezeCard", body, part(`name="cardId"`, "card-1"), "", `Error at "/cardId": property "cardId" is missing`},
		"an unknown part":         {"FreezeCard", body, `"clientTransactionId"`, `"client_transaction_id"`, "part client_transaction_id: undefined"},
		"a repeated part":         {"FreezeCard", body, "--xx--", part(`name="cardId"`, "card-2") + "--xx--", "request: part cardId is repeated"},
		"a file for a field":      {"FreezeCard", body, `"cardId"`, `"cardId"; filename="a"`, "part cardId: only a file has a file name"},
		"a field for the file":    {"UploadImage", body, `; filename="id.gif"`, "", "part file: only a file has a file name"},
		"another name of a file":  {"UploadImage", body, `name="file"`, `name="image"`, "part image: undefined"},
		"form in place of parts":  {"FreezeCard", request, "multipart/form-data; boundary=xx", "application/x-www-form-urlencoded", "header Content-Type has unexpected value"},
		"an unknown JSON field":   {"CreateTransfer", body, `"transferType"`, `"transfer_type"`, `property "transfer_type" is unsupported`},
		"an amount as a number":   {"CreateTransfer", body, `"100.25"`, "100.25", `Error at "/transferAmount": value must be a string`},
		"one fraction digit":      {"CreateTransfer", body, "100.25", "100.2", `Error at "/transferAmount": string doesn't match the regular expression`},
		"letters in a code":       {"CreateTransfer", body, `"3"`, `"C2C"`, `Error at "/transferType": string doesn't match the regular expression`},
		"a country of three":      {"CreateTransfer", body, `"GB"`, `"GBR"`, `Error at "/senderCountry": string doesn't match the regular expression`},
		"a date of two digits":    {"CreateTransfer", body, "1990-12-10", "90-12-10", `Error at "/senderDateOfBirth": string doesn't match the regular expression`},
		"JSON that is not closed": {"CreateTransfer", body, `"GB"}`, `"GB"`, "request: request body has an error: failed to decode request body"},

		// Responses
		"no code":                     {"CardCapacity", response, `"code":200,`, "", "missing property 'code'"},
		"no msg":                      {"CardCapacity", response, `"msg":"success",`, "", "missing property 'msg'"},
		"no data":                     {"CardCapacity", response, `,"data":606`, "", "missing property 'data'"},
		"a fourth envelope field":     {"CardCapacity", response, `606`, `606,"time":1`, "additional properties 'time' not allowed"},
		"a code as a string":          {"CardCapacity", response, `200`, `"200"`, "at '/code': got string, want integer"},
		"another message of success":  {"CardCapacity", response, `"success"`, `"Uploaded"`, "at '/msg': value must be 'success'"},
		"the message of success":      {"UploadImage", response, `"Uploaded"`, `"success"`, "at '/msg': value must be 'Uploaded'"},
		"a fraction":                  {"CardCapacity", response, "606", "606.5", "at '/data': got number, want integer"},
		"data of another kind":        {"CardCapacity", response, "606", `[606]`, "at '/data': got array, want integer"},
		"null for data":               {"CardCapacity", response, "606", `null`, "at '/data': got null, want integer"},
		"a boolean as a number":       {"CancelOperation", response, "true", "1", "at '/data': got number, want boolean"},
		"an operation id of no form":  {"FreezeCard", response, "f95a25ef-", "", "at '/data': 'fd1d-47d4-baab-0c4635e18050' does not match pattern"},
		"a missing field":             {"GetCardSecrets", response, `,"pan":"dGVzdA=="`, "", "at '/data': missing property 'pan'"},
		"a number in full":            {"GetCardSecrets", response, "428837******0003", "4288379977000003", "at '/data/card_no'"},
		"a CVV":                       {"GetCardSecrets", response, `"***"`, `"907"`, "at '/data/cvv': value must be '***'"},
		"an expiry":                   {"GetCardSecrets", response, `"**/****"`, `"09/2028"`, "at '/data/expire_date': value must be '**/****'"},
		"an unknown field":            {"GetCard", response, `"cvv"`, `"remark":null,"cvv"`, "at '/data': additional properties 'remark' not allowed"},
		"a wrong enum":                {"GetCard", response, `"status":4,"h`, `"status":5,"h`, "at '/data/status': value must be one of -1, 0, 1, 2, 3, 4"},
		"a flag other than 0 and 1":   {"GetCard", response, `"physical":0`, `"physical":2`, "at '/data/physical': value must be one of 0, 1"},
		"money without its scale":     {"GetCard", response, `"0.500"`, `"0.5"`, "at '/data/available': '0.5' does not match pattern"},
		"money as a number":           {"GetCard", response, `"0.500"`, `0.5`, "at '/data/available': got number, want string"},
		"a number as a string":        {"GetCard", response, `"frozen":1.5`, `"frozen":"1.5"`, "at '/data/frozen': got string, want number"},
		"an address of null":          {"GetCard", response, `"holder_address":[]`, `"holder_address":null`, `at '/data/holder_address': got null, want `},
		"an address in an array":      {"GetCard", response, `"holder_address":[]`, `"holder_address":[{}]`, "at '/data/holder_address': maxItems: got 1, want 0"},
		"an empty address":            {"GetCard", response, `"holder_address":[]`, `"holder_address":{}`, "at '/data/holder_address': missing properties 'city'"},
		"a time with a zone":          {"GetCard", response, "2025-03-01 00:00:00", "2025-03-01T00:00:00Z", "at '/data/create_time'"},
		"a scene without a channel":   {"GetCard", response, `,"channel_id":7`, "", "at '/data/consumption_scene_config/0': missing property 'channel_id'"},
		"a page without its number":   {"ListCards", response, `"current_page":1,`, "", "at '/data': missing property 'current_page'"},
		"a state without its name":    {"ListRemittanceStates", response, `"name":"California",`, "", "at '/data/0': missing property 'name'"},
		"transfer type 3 as another":  {"ListRemittanceCurrencies", response, "C2C", "B2B", "at '/data/0/transfer_type_value': value must be 'C2C'"},
		"payout method 1 as another":  {"ListRemittanceCurrencies", response, "Bank Transfer", "Cash", "at '/data/0/payout_method_value': value must be 'Bank Transfer'"},
		"an alpha-2 for an alpha-3":   {"ListRemittanceCurrencies", response, `"PHL"`, `"PH"`, "at '/data/0/country': 'PH' does not match pattern"},
		"a fee as a string":           {"ListRemittanceCurrencies", response, `1.5,`, `"1.5",`, "at '/data/0/fixed_fee': got string, want number"},
		"another level":               {"ListBINs", response, `"auth_level":2`, `"auth_level":1`, "at '/data/0/auth_requirement/level': value must be 'base'"},
		"a third level":               {"ListBINs", response, `"auth_level":2`, `"auth_level":3`, "at '/data/0/auth_level': value must be one of 1, 2"},
		"a selfie that may be left":   {"ListBINs", response, `"required":true,"desc":"photo"`, `"required":false,"desc":"photo"`, "at '/data/0/auth_requirement/fields/1/required': value must be true"},
		"another identity field":      {"ListBINs", response, `"idType"`, `"passport"`, "at '/data/0/auth_requirement/fields/0/field': value must be one of 'idType'"},
		"a range without an end":      {"ListBINs", response, `"10-99.99"`, `"10-"`, "at '/data/0/foreign_fee_config': additional properties '10-' not allowed"},
		"a range without a fee":       {"ListBINs", response, `"fee":0.11,`, ``, "at '/data/0/foreign_fee_config/10-99.99': missing property 'fee'"},
		"fees as an empty array":      {"ListBINs", response, `"reversal_fee_config":{}`, `"reversal_fee_config":[]`, "at '/data/0/reversal_fee_config': got array, want "},
		"a third business mode":       {"ListBINs", response, `"B2C"]`, `"C2C"]`, "at '/data/0/business_mode/1': value must be one of 'B2B', 'B2C'"},
		"a name that is spelt right":  {"ListBINs", response, `"allow_destory"`, `"allow_destroy"`, "missing property 'allow_destory'"},
		"a flag as a boolean":         {"ListBINs", response, `"3ds":1`, `"3ds":true`, "at '/data/0/3ds': got boolean, want integer"},
		"a boolean as a flag":         {"ListBINs", response, `"api":true`, `"api":1`, "at '/data/0/api': got number, want boolean"},
		"a BIN as a number":           {"ListBINsUnderMaintenance", response, `"428837"`, "428837", "at '/data/0': got number, want string"},
		"another order status":        {"CreateTransfer", response, "wait_process", "done", "at '/data/status': value must be 'wait_process'"},
		"not JSON":                    {"CardCapacity", response, `}`, ``, "failed to decode response body"},
		"success under 403":           {"a refusal", response, "1403", "200", "'not' failed"},
		"a refusal without a message": {"a refusal", response, `"no"`, "null", "at '/msg': got null, want string"},
		"the same under 200":          {"a refusal under 200", response, `"no"`, "null", "at '/msg': got null, want string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, ok := good[tt.of]
			require.True(t, ok)
			place := tt.in(&k)
			if tt.old != "" {
				require.Equal(t, 1, strings.Count(*place, tt.old), "the text to change occurs once")
			}
			*place = strings.Replace(*place, tt.old, tt.by, 1)
			_, err := v.Check(t.Context(), k.exchange(t))
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

func request(k *talk) *string  { return &k.request }
func body(k *talk) *string     { return &k.body }
func response(k *talk) *string { return &k.response }

// A response of another media type is no response of the API.
func TestWrongMediaTypeOfResponse(t *testing.T) {
	t.Parallel()
	e := good["CardCapacity"].exchange(t)
	e.ResponseHeader = http.Header{"Content-Type": {"text/html"}}
	_, err := validator(t).Check(t.Context(), e)
	require.ErrorContains(t, err, `response header Content-Type has unexpected value: "text/html"`)
}

// A document whose example contradicts its schema is refused, and so is one that
// is no OpenAPI.
func TestWrongDocuments(t *testing.T) {
	t.Parallel()
	text := string(root.Document)
	for name, tt := range map[string]struct{ old, by, want string }{
		"an example": {"data: 606}", "data: '606'}", "/data"},
		"a type":     {"type: http\n", "type: web\n", "security scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, 1, strings.Count(text, tt.old))
			_, err := contract.NewValidator(t.Context(), []byte(strings.Replace(text, tt.old, tt.by, 1)))
			require.ErrorContains(t, err, tt.want)
		})
	}
}
