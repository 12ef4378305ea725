// Package contract_test compares client and fake with openapi.yaml, by a validator that
// knows nothing else of ours.
package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

// read returns a validator for what openapi.yaml describes, and nothing beside it.
func read(t *testing.T) validator.Validator {
	t.Helper()
	document, err := libopenapi.NewDocument(contract.Document)
	require.NoError(t, err)
	v, errs := validator.NewValidator(document, config.WithStandardBodyDecoders(), config.WithStrictServerMatching(),
		config.WithRejectUnsupportedBodyContent(), config.WithRejectUndeclaredRequestBody(),
		// For query parameters; of bodies it does not see the schemas behind "if".
		config.WithStrictMode(), config.WithStrictIgnorePaths("$.body.**"))
	require.Empty(t, errs)
	t.Cleanup(v.Release)
	return v
}

func TestDocument(t *testing.T) {
	t.Parallel()
	valid, errs := read(t).ValidateDocument()
	assert.True(t, valid, "%v", errs)
}

// watch is a service of which every request and response is validated.
type watch struct {
	t       *testing.T
	v       validator.Validator
	service *cardwiretest.Service
	watched int
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	copied := r.Clone(r.Context())
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		require.NoError(w.t, err)
		r.Body, copied.Body = io.NopCloser(bytes.NewReader(body)), io.NopCloser(bytes.NewReader(body))
	}
	response, err := w.service.RoundTrip(r)
	require.NoError(w.t, err)
	valid, errs := w.v.ValidateHttpRequestResponse(copied, response)
	assert.True(w.t, valid, "%s: %v", r.URL, errs)
	w.watched++
	return response, nil
}

// What client and fake exchange is what the document describes.
func TestSuite(t *testing.T) {
	t.Parallel()
	w := &watch{t: t, v: read(t), service: contract.NewService()}
	c := contract.Client(t, "https://cards.example/api/v1", w)
	_, err := contract.Run(t.Context(), c)
	require.NoError(t, err)
	_, err = c.GetCard(t.Context(), "card-9") // a refusal has the document's form too
	require.ErrorIs(t, err, cardwire.ErrNotFound)
	assert.Len(t, w.service.Requests(), w.watched)

	// And so is everything that a service contains from the beginning.
	w.service = cardwiretest.New(
		cardwiretest.WithSeed(7), cardwiretest.WithCards(30), cardwiretest.WithProfile(contract.Profile()))
	cards := 0
	for card, err := range c.AllCards(t.Context(), cardwire.ListCardsParams{PageSize: 7}) {
		require.NoError(t, err)
		single, err := c.GetCard(t.Context(), card.ID)
		require.NoError(t, err)
		secrets, err := c.GetCardSecrets(t.Context(), card.ID)
		require.NoError(t, err)
		assert.Equal(t, single.Number, secrets.Number)
		cards++
	}
	assert.Equal(t, 30, cards)
	bins, err := c.ListBINs(t.Context())
	require.NoError(t, err)
	assert.Len(t, bins, 7)
}

// Requests but for the body: method, target and content type.
const (
	toCard     = "GET /cards/info?id=card-1"
	toSecrets  = "POST /cards/private application/x-www-form-urlencoded "
	toAdjust   = "POST /cards/adjustAction application/x-www-form-urlencoded "
	toFreeze   = "POST /cards/suspend multipart/form-data;boundary=xx "
	toUpload   = "POST /cards/upload multipart/form-data;boundary=xx "
	toTransfer = "POST /remittance/transfer application/json "
)

func requestOf(t *testing.T, text string) *http.Request {
	t.Helper()
	words := append(strings.SplitN(text, " ", 4), "", "")
	r, err := http.NewRequestWithContext(t.Context(), words[0], "https://cards.example/api/v1"+words[1],
		strings.NewReader(words[3]))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+cardwiretest.DefaultKey)
	if words[2] != "" {
		r.Header.Set("Content-Type", words[2])
	}
	return r
}

// form is a multipart body of one part.
func form(head, value string) string {
	return "--xx\r\nContent-Disposition: form-data; " + head + "\r\n\r\n" + value + "\r\n--xx--\r\n"
}

// That the suite passes means something: what is wrong is noticed.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	v := read(t)
	keyless := requestOf(t, "GET /bins")
	keyless.Header.Del("Authorization")
	_, errs := v.ValidateHttpRequest(keyless)
	assert.Contains(t, fmt.Sprint(errs), "Authorization header was not found")
	for _, tt := range []struct{ request, want string }{
		{"GET /bins", "[]"},
		{"GET /cards/all", "Path '/api/v1/cards/all' not found"},
		{"POST /bins", "POST method for that path does not exist"},
		{"POST /cards/private text/plain cardId=card-1", "content type 'text/plain' does not exist"},
		{"GET /bins application/json {}", "request body for '/api/v1/bins' is not declared"},
		{"GET /cards/info", "Query parameter 'id' is missing"},
		{"GET /cards?bin=1", "query parameter 'bin' at '$.query.bin' is not declared"},
		{"GET /cards?status=5", "does not match any enum values: [-1, 0, 1, 2, 3, 4]"},
		{"GET /cards?created_from=02/01/2025", "'02/01/2025' does not match pattern"},
		{toSecrets + "cardid=card-1", "missing property 'cardId'"},
		{toSecrets + "cardId=", "minLength: got 0, want 1, FieldPath: $.cardId"},
		{toAdjust + "client_transaction_id=1&type=cancel", "FieldPath: $.client_transaction_id"},
		{toFreeze + form(`name="cardID"`, "card-1"), "missing property 'cardId'"},
		{toUpload + form(`name="image"; filename="a.gif"`, "GIF89a"), "missing property 'file'"},
		{toTransfer + `{"merchant_order_no":"1"}`, "additional properties 'merchant_order_no' not allowed"},
		{toTransfer + `{"transferType":"C2C"}`, "'C2C' does not match pattern"},
		{toTransfer + `{"transferAmount":1.25}`, "got number, want string, FieldPath: $.transferAmount"},
		{toTransfer + `{"transferAmount":"1.2"}`, "'1.2' does not match pattern"},
		{toTransfer + `{"senderCountry":"GB"`, "unexpected EOF"},
	} {
		_, errs := v.ValidateHttpRequest(requestOf(t, tt.request))
		assert.Contains(t, fmt.Sprint(errs), tt.want, tt.request)
	}
}

// requests are those to which the examples are the responses.
var requests = map[string]string{
	"capacity": "GET /account/capacity", "done": toAdjust, "operation": toFreeze, "image": toUpload,
	"secrets": toSecrets, "suspended": toCard, "frozen": toCard, "empty": toCard, "only": "GET /cards",
	"second": "GET /cards", "states": "GET /remittance/states", "currencies": "GET /remittance/currency",
	"bins": "GET /bins", "digits": "GET /bins/maintenance", "order": toTransfer, "refusal": "GET /account/capacity",
}

// faults returns what is wrong with a response to the request of an example; "[]": nothing.
func faults(t *testing.T, v validator.Validator, example, contentType, body string) string {
	t.Helper()
	_, errs := v.ValidateHttpResponse(requestOf(t, requests[example]), &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(strings.NewReader(body)),
	})
	return fmt.Sprint(errs)
}

// The examples are right, and with one thing wrong they are not: so the document is as
// strict as it says.
func TestExamplesAndWrongResponses(t *testing.T) {
	t.Parallel()
	v := read(t)
	for example := range requests {
		assert.Equal(t, "[]", faults(t, v, example, "application/json", string(contract.Example(example))), example)
		var response any
		require.NoError(t, json.Unmarshal(contract.Example(example), &response))
		spoil(response, func(how, want string) {
			text, err := json.Marshal(response)
			require.NoError(t, err)
			assert.Contains(t, faults(t, v, example, "application/json", string(text)), want, "%s: %s", example, how)
		})
	}
	const another = "content type 'text/html' does not exist"
	assert.Contains(t, faults(t, v, "digits", "text/html", string(contract.Example("digits"))), another)
	for _, tt := range []struct{ example, old, by, want string }{
		{"capacity", `"success"`, `"Uploaded"`, "must be 'success', FieldPath: $.msg"},
		{"image", `"Uploaded"`, `"success"`, "must be 'Uploaded', FieldPath: $.msg"},
		{"operation", "f95a25ef-", "", "FieldPath: $.data]"},
		{"secrets", "428837******0003", "4288379977000003", "FieldPath: $.data.card_no"},
		{"secrets", `"cvv":"***"`, `"cvv":"907"`, "must be '***', FieldPath: $.data.cvv"},
		{"secrets", `"**/****"`, `"09/2028"`, "must be '**/****', FieldPath: $.data.expire_date"},
		{"suspended", `"cvv":"***"`, `"cvv":"907"`, "must be '***', FieldPath: $.data.cvv"},
		{"suspended", `"status":4`, `"status":5`, "must be one of -1, 0, 1, 2, 3, 4, FieldPath: $.data.status"},
		{"suspended", `"1250.500"`, `"1250.5"`, "FieldPath: $.data.available"},
		{"empty", `"holder_address":[]`, `"holder_address":[{}]`, "got 1, want 0, FieldPath: $.data.holder_address"},
		{"empty", `"holder_address":[]`, `"holder_address":{}`, "missing properties 'city', "},
		{"empty", `"create_time":"2025`, `"create_time":"25`, "FieldPath: $.data.create_time"},
		{"currencies", "C2C", "B2B", "must be 'C2C', FieldPath: $.data[0].transfer_type_value"},
		{"currencies", `"DEU"`, `"DE"`, "FieldPath: $.data[0].country"},
		{"states", `"country":"US"`, `"country":"us"`, "FieldPath: $.data[0].country"},
		{"states", `"USA"`, `"US"`, "FieldPath: $.data[0].countryStandardCode"},
		{"bins", `"auth_level":2`, `"auth_level":1`, "must be 'base', FieldPath: $.data[0].auth_requirement.level"},
		{"bins", `"idType","required":true`, `"selfieAttachmentKey","required":false`, "fields[0].required"},
		{"bins", `"idType"`, `"passport"`, "must be one of 'idType', 'idFrontAttachmentKey', 'selfieAttachmentKey'"},
		{"bins", `"avs":1`, `"avs":2`, "must be one of 0, 1, FieldPath: $.data[0].avs"},
		{"bins", `"country":"US"`, `"country":"USA"`, "FieldPath: $.data[0].country"},
		{"bins", `"0-100"`, `"0-"`, "additional properties '0-' not allowed"},
		{"bins", `"bin":"428837"`, `"bin":"42883x"`, "FieldPath: $.data[0].bin"},
		{"order", "wait_process", "done", "must be 'wait_process', FieldPath: $.data.status"},
	} {
		good := string(contract.Example(tt.example))
		body := strings.Replace(good, tt.old, tt.by, 1)
		require.NotEqual(t, good, body)
		assert.Contains(t, faults(t, v, tt.example, "application/json", body), tt.want, body)
	}
}

// spoil calls try with each field left out, with a value of another kind in its place, and
// with a field that is not in the document beside it.
func spoil(v any, try func(how, want string)) {
	if list, ok := v.([]any); ok && len(list) > 0 {
		spoil(list[0], try)
	}
	object, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		if name == "data" && object["code"] == 422.0 {
			continue // a refusal's may be anything
		}
		if delete(object, name); !strings.Contains(name, "-") { // a range of fees is not required
			try("without "+name, "'"+name+"'")
		}
		object[name] = 7
		if _, ok := value.(float64); ok {
			object[name] = "7"
		}
		try("another kind of "+name, "FieldPath: $.")
		object[name], object["unknown"] = value, 7
		try("a field beside "+name, "additional properties 'unknown' not allowed")
		delete(object, "unknown")
		if !slices.Contains(undocumented, name) {
			spoil(value, try)
		}
	}
}

// undocumented are the fields whose own fields are.
var undocumented = []string{"auth_fee_config", "refund_fee_config", "reversal_fee_config", "cashback_fee_config"}
