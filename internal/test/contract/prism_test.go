package contract_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/contract"
)

// Prism, which knows openapi.yaml and nothing else of ours, in the service's
// place and in front of the fake.
func TestPrism(t *testing.T) {
	program := os.Getenv("CARDWIRE_PRISM")
	if program == "" {
		t.Skip("there is no Prism: CARDWIRE_PRISM does not name its program, as scripts/prism does")
	}
	t.Run("in place of the service", func(t *testing.T) {
		way := new(watch)
		made, err := contract.Run(t.Context(), clientOf(t, prism(t, program, "mock"), way), contract.Examples)
		require.NoError(t, err)
		assert.Equal(t, []string{
			"ListCards", "AllPages of one page", "GetCard", "GetCard without anything", "GetCardSecrets", "FreezeCard",
			"GetCardByOrder", "CancelOperation", "RetryOperation", "ListBINs", "ListBINsUnderMaintenance",
			"CardCapacity", "ListRemittanceStates", "ListRemittanceCurrencies", "CreateTransfer", "UploadImage",
		}, made)
		assert.Empty(t, way.violations)
		assert.Equal(t, 16, way.responses)
	})

	var behind atomic.Value // the http.HandlerFunc of what is behind Prism
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		behind.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(server.Close)
	address := prism(t, program, "proxy", server.URL+"/api/v1")
	t.Run("in front of the fake", func(t *testing.T) {
		way := new(watch)
		c := clientOf(t, address, way)
		s, more := contract.NewService(), seededService()
		behind.Store(http.HandlerFunc(s.ServeHTTP))
		suite(t, s, c)
		behind.Store(http.HandlerFunc(more.ServeHTTP))
		seeded(t, c)
		assert.Empty(t, way.violations)
		assert.Equal(t, len(s.Requests())+len(more.Requests()), way.responses)
	})
	t.Run("finds wrong requests", func(t *testing.T) { wrongRequests(t, address, &behind) })
	t.Run("finds wrong responses", func(t *testing.T) { wrongResponses(t, address, &behind) })
}

// Requests of each kind, but for the body's end: method, target, content type and body.
const (
	toCard     = "GET /cards/info?id=card-1"
	toSecrets  = "POST /cards/private application/x-www-form-urlencoded "
	toAdjust   = "POST /cards/adjustAction application/x-www-form-urlencoded "
	toFreeze   = "POST /cards/suspend multipart/form-data;boundary=xx "
	toUpload   = "POST /cards/upload multipart/form-data;boundary=xx "
	toTransfer = "POST /remittance/transfer application/json "
	end        = "--xx--\r\n"
	operation  = "6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11"
)

func part(head, value string) string { // without its type, a file makes Prism crash
	return "--xx\r\nContent-Disposition: form-data; " + head + "\r\nContent-Type: image/gif\r\n\r\n" + value + "\r\n"
}

// wrongRequests makes sure that no violation means something. What Prism does not see, such
// as a parameter that is not in the document, the fake refuses, as its own tests say.
func wrongRequests(t *testing.T, address string, behind *atomic.Value) {
	t.Helper()
	behind.Store(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s was passed on", r.URL)
		say(w, string(contract.Example("refusal")))
	}))
	for _, tt := range []struct{ request, want string }{
		{"GET /bins none", "Invalid security scheme used"},
		{"GET /cards/info", "must have required property 'id'"},
		{"GET /cards?status=5", "must be equal to one of the allowed values: -1, 0, 1, 2, 3, 4"},
		{"GET /cards?created_from=02/01/2025", "query parameter created_from must match pattern"},
		{"GET /cards/all", "Route not resolved"},
		{"POST /bins", "Route resolved, but no method matched"},
		{"POST /cards/private text/plain cardId=card-1", "Supported content types: application/x-www"},
		{toSecrets + "cardid=card-1", "must have required property 'cardId'"},
		{toSecrets + "cardId=", "cardId must NOT have fewer than 1 characters"},
		{toAdjust + "client_transaction_id=1&type=cancel", "client_transaction_id must match pattern"},
		{toUpload + part(`name="image"; filename="a.gif"`, "GIF89a") + end, "must have required property 'file'"},
		{toTransfer + `{"merchant_order_no":"1"}`, "must NOT have additional properties"},
		{toTransfer + `{"transferType":"C2C"}`, "transferType must match pattern"},
		{toTransfer + `{"transferAmount":1.25}`, "transferAmount must be string"},
		{toTransfer + `{"transferAmount":"1.2"}`, "transferAmount must match pattern"},
		{toTransfer + `{"senderCountry":"GB"`, "Invalid JSON"},
	} {
		status, text := ask(t, address, tt.request)
		assert.GreaterOrEqual(t, status, 400, tt.request)
		assert.Contains(t, text, tt.want, tt.request)
	}
}

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

// ask sends a request. It returns the status, and what Prism says in the header and the
// body of its response.
func ask(t *testing.T, address, text string) (status int, said string) {
	t.Helper()
	words := append(strings.SplitN(text, " ", 4), "", "")
	request, err := http.NewRequestWithContext(t.Context(), words[0], address+words[1], strings.NewReader(words[3]))
	require.NoError(t, err)
	keyless := words[2] == "none"
	if !keyless {
		request.Header.Set("Authorization", "Bearer "+cardwiretest.DefaultKey)
	}
	if !keyless && words[2] != "" {
		request.Header.Set("Content-Type", words[2])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header.Get("Sl-Violations") + string(body)
}

// wrongResponses are examples with one thing wrong, each of which Prism finds: so the
// document is as strict as it says.
func wrongResponses(t *testing.T, address string, behind *atomic.Value) {
	t.Helper()
	freeze := toFreeze + part(`name="cardId"`, "card-1") + end
	upload := toUpload + part(`name="file"; filename="a.gif"`, "GIF89a") + end
	adjust := toAdjust + "client_transaction_id=" + operation + "&type=cancel"
	requests := map[string]string{
		"capacity": "GET /account/capacity", "done": adjust, "operation": freeze, "image": upload,
		"secrets": toSecrets + "cardId=card-1", "suspended": toCard, "empty": toCard, "second": "GET /cards",
		"states": "GET /remittance/states", "currencies": "GET /remittance/currency", "bins": "GET /bins",
		"digits": "GET /bins/maintenance", "order": toTransfer + "{}", "refusal": "GET /account/capacity",
	}
	var body string
	behind.Store(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, body) }))
	for example, request := range requests {
		body = string(contract.Example(example))
		status, said := ask(t, address, request)
		require.Equal(t, 200, status, said)
		var response any
		require.NoError(t, json.Unmarshal(contract.Example(example), &response))
		spoil(response, func(how string) {
			text, err := json.Marshal(response)
			require.NoError(t, err)
			body = string(text)
			status, _ = ask(t, address, request)
			assert.Equal(t, 500, status, "%s: %s", example, how)
		})
	}
	for _, tt := range []struct{ example, old, by, want string }{
		{"capacity", `"success"`, `"Uploaded"`, "msg must be equal to constant"},
		{"image", `"Uploaded"`, `"success"`, "msg must be equal to constant"},
		{"operation", "f95a25ef-", "", "data must match pattern"},
		{"secrets", "428837******0003", "4288379977000003", "data.card_no must match pattern"},
		{"secrets", `"cvv":"***"`, `"cvv":"907"`, "data.cvv must be equal to constant"},
		{"secrets", `"**/****"`, `"09/2028"`, "data.expire_date must be equal to constant"},
		{"suspended", `"cvv":"***"`, `"cvv":"907"`, "data.cvv must be equal to constant"},
		{"suspended", `"status":4`, `"status":5`, "data.status must be equal to one of the allowed values"},
		{"suspended", `"1250.500"`, `"1250.5"`, "data.available must match pattern"},
		{"empty", `"holder_address":[]`, `"holder_address":[{}]`, "holder_address must NOT have more than 0 items"},
		{"empty", `"holder_address":[]`, `"holder_address":{}`, "holder_address must have required property 'city'"},
		{"currencies", "C2C", "B2B", "data.0.transfer_type_value must be equal to constant"},
		{"currencies", `"DEU"`, `"DE"`, "data.0.country must match pattern"},
		{"states", `"country":"US"`, `"country":"us"`, "data.0.country must match pattern"},
		{"states", `"USA"`, `"US"`, "data.0.countryStandardCode must match pattern"},
		{"bins", `"auth_level":2`, `"auth_level":1`, "data.0.auth_requirement.level must be equal to constant"},
		{
			"bins", `"idType","required":true`, `"selfieAttachmentKey","required":false`,
			"required must be equal to constant",
		},
		{"bins", `"idType"`, `"passport"`, "fields.0.field must be equal to one of the allowed values"},
		{"bins", `"avs":1`, `"avs":2`, "data.0.avs must be equal to one of the allowed values"},
		{"bins", `"country":"US"`, `"country":"USA"`, "data.0.country must match pattern"},
		{"empty", `"create_time":"2025`, `"create_time":"25`, "data.create_time must match pattern"},
		{"bins", `"0-100"`, `"0-"`, "data.0.foreign_fee_config must NOT have additional properties"},
		{"bins", `"bin":"428837"`, `"bin":"42883x"`, "data.0.bin must match pattern"},
		{"order", "wait_process", "done", "data.status must be equal to constant"},
	} {
		good := string(contract.Example(tt.example))
		body = strings.Replace(good, tt.old, tt.by, 1)
		require.NotEqual(t, good, body)
		status, said := ask(t, address, requests[tt.example])
		assert.Equal(t, 500, status, body)
		assert.Contains(t, said, tt.want, body)
	}
}

// spoil calls try with each field left out, with a value of another kind in its place, and
// with a field that is not in the document beside it.
func spoil(v any, try func(how string)) {
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
			try("without " + name)
		}
		object[name] = 7
		if _, ok := value.(float64); ok {
			object[name] = "7"
		}
		try("another kind of " + name)
		object[name], object["unknown"] = value, 7
		try("a field beside " + name)
		delete(object, "unknown")
		if !slices.Contains(undocumented, name) {
			spoil(value, try)
		}
	}
}

// undocumented are the fields whose own fields are.
var undocumented = []string{"auth_fee_config", "refund_fee_config", "reversal_fee_config", "cashback_fee_config"}

// watch carries requests, and collects what Prism finds wrong.
type watch struct {
	http.Transport
	responses  int
	violations []string
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	w.DisableKeepAlives = true
	response, err := w.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.responses++
	for _, text := range response.Header["Sl-Violations"] {
		w.violations = append(w.violations, r.URL.Path+": "+text)
	}
	return response, nil
}

// prism starts Prism on a port of this machine until the test ends, and returns
// its address.
func prism(t *testing.T, program, how string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	args = append([]string{how, "openapi.yaml"}, append(args, "--errors", "--host", "127.0.0.1", "--port", "0")...)
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "NODE_ENV=test") // in production it would fork
	command.WaitDelay = 10 * time.Second
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	command.Stderr = command.Stdout
	require.NoError(t, command.Start())
	var log strings.Builder
	lines, ended := bufio.NewScanner(output), make(chan struct{})
	lines.Buffer(nil, 1<<20)
	next := func() bool {
		more := lines.Scan() // until the context ends it
		log.WriteString(lines.Text() + "\n")
		return more
	}
	var listening []string
	for listening == nil && next() {
		listening = address.FindStringSubmatch(lines.Text())
	}
	go func() {
		defer close(ended)
		for next() {
		}
	}()
	t.Cleanup(func() {
		cancel() // which kills it
		<-ended
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	require.NotNil(t, listening, "Prism did not listen")
	return listening[1]
}

// address is how Prism says where it listens.
var address = regexp.MustCompile(`Prism is listening on (http://127\.0\.0\.1:[0-9]+)`)
