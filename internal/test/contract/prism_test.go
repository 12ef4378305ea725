package contract_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
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
		way := &watch{next: &http.Transport{DisableKeepAlives: true}}
		made, err := contract.Run(t.Context(), clientOf(t, prism(t, program, "mock", "openapi.yaml"), way), contract.Examples)
		require.NoError(t, err)
		assert.Equal(t, []string{
			"ListCards", "AllCards of one page", "GetCard", "GetCard without anything", "GetCardSecrets", "FreezeCard",
			"GetCardByOrder", "CancelOperation", "RetryOperation", "ListBINs", "ListBINsUnderMaintenance", "CardCapacity",
			"ListRemittanceStates", "ListRemittanceCurrencies", "CreateTransfer", "UploadImage",
		}, made)
		assert.Empty(t, way.violations)
		assert.Equal(t, 16, way.responses)
	})
	t.Run("in front of the fake", func(t *testing.T) {
		s := cardwiretest.NewServer(t, contract.Options()...)
		contract.Prepare(s.Service)
		way := &watch{next: &http.Transport{DisableKeepAlives: true}}
		made, err := contract.Run(t.Context(), clientOf(t, prism(t, program, "proxy", "openapi.yaml", s.URL), way), contract.Fake)
		require.NoError(t, err)
		assert.Len(t, made, 21)
		require.NoError(t, contract.Executed(s.Service))
		assert.Empty(t, way.violations)
		assert.Equal(t, len(s.Requests()), way.responses)
	})
	t.Run("finds wrong requests", func(t *testing.T) { wrongRequests(t, program) })
	t.Run("finds wrong responses", func(t *testing.T) { wrongResponses(t, program) })
}

// wrongRequests makes sure that no violation means something, and holds what
// Prism does not see.
func wrongRequests(t *testing.T, program string) {
	t.Helper()
	const (
		toSecrets  = "POST /cards/private application/x-www-form-urlencoded "
		toAdjust   = "POST /cards/adjustAction application/x-www-form-urlencoded "
		toFreeze   = "POST /cards/suspend multipart/form-data;boundary=xx "
		toUpload   = "POST /cards/upload multipart/form-data;boundary=xx "
		toTransfer = "POST /remittance/transfer application/json "
		end        = "--xx--\r\n"
	)
	part := func(head, value string) string { // without its type, a file makes Prism crash
		return "--xx\r\nContent-Disposition: form-data; " + head + "\r\nContent-Type: image/gif\r\n\r\n" + value + "\r\n"
	}
	s := cardwiretest.NewServer(t, contract.Options()...)
	contract.Prepare(s.Service)
	address := prism(t, program, "proxy", "openapi.yaml", s.URL)
	for name, tt := range map[string]struct {
		request, want string // "": Prism passes it on
	}{
		"no query":               {"GET /cards/info", "must have required property 'id'"},
		"a seventh status":       {"GET /cards?status=5", "must be equal to one of the allowed values: -1, 0, 1, 2, 3, 4"},
		"a date of slashes":      {"GET /cards?created_from=02/01/2025", "query parameter created_from must match pattern"},
		"an unknown path":        {"GET /cards/all", "Route not resolved"},
		"another method":         {"POST /bins", "Route resolved, but no method matched"},
		"another content type":   {"POST /cards/private text/plain cardId=card-1", "Supported content types: application/x-www-form-urlencoded"},
		"no form field":          {toSecrets + "cardid=card-1", "must have required property 'cardId'"},
		"a malformed UUID":       {toAdjust + "client_transaction_id=1&type=cancel", "client_transaction_id must match pattern"},
		"no action":              {toAdjust + "client_transaction_id=6f1c1f2e-9d7b-4c0a-8f57-0d8b6f0c9a11", "must have required property 'type'"},
		"no part":                {toFreeze + part(`name="clientTransactionId"`, "1") + end, "must have required property 'cardId'"},
		"no file":                {toUpload + part(`name="image"; filename="a.gif"`, "GIF89a") + end, "must have required property 'file'"},
		"an unknown JSON field":  {toTransfer + `{"merchant_order_no":"1"}`, "must NOT have additional properties; found 'merchant_order_no'"},
		"an amount as a number":  {toTransfer + `{"transferAmount":1.25}`, "transferAmount must be string"},
		"an amount of one digit": {toTransfer + `{"transferAmount":"1.2"}`, "transferAmount must match pattern"},

		"an unknown parameter":  {"GET /bins?page=1", ""},
		"an unknown form field": {toSecrets + "cardId=card-1&cvv=1", ""},
		"a repeated form field": {toSecrets + "cardId=card-1&cardId=card-1", ""},
		"an unknown part":       {toFreeze + part(`name="cardId"`, "card-1") + part(`name="x"`, "1") + end, ""},
		"a field for a file":    {toUpload + part(`name="file"`, "GIF89a") + end, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.Requests())
			status, text := ask(t, address, tt.request)
			if tt.want == "" {
				assert.Equal(t, 422, status, "the fake refuses it")
				assert.Len(t, s.Requests(), before+1)
				return
			}
			assert.GreaterOrEqual(t, status, 400)
			assert.Contains(t, text, tt.want)
			assert.Len(t, s.Requests(), before, "it was passed on")
		})
	}
}

// ask sends a request: method, target, content type and body. It returns the
// status, and what Prism says in the header and the body of its response.
func ask(t *testing.T, address, text string) (status int, said string) {
	t.Helper()
	words := append(strings.SplitN(text, " ", 4), "", "")
	request, err := http.NewRequestWithContext(t.Context(), words[0], address+words[1], strings.NewReader(words[3]))
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+cardwiretest.DefaultKey)
	if words[2] != "" {
		request.Header.Set("Content-Type", words[2])
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, response.Header.Get("Sl-Violations") + string(body)
}

func wrongResponses(t *testing.T, program string) {
	t.Helper()
	s := cardwiretest.NewServer(t, contract.Options()...)
	contract.Prepare(s.Service)
	address := prism(t, program, "proxy", "openapi.yaml", s.URL)
	for name, tt := range map[string]struct {
		request string
		prepare func()
		want    string
	}{
		"data of the wrong kind": {"GET /account/capacity", func() {
			s.Handle("GET", "/account/capacity", func(*http.Request) (int, string, any) { return 200, "success", []int{} })
		}, "Response body property data must be integer"},
		"another media type": {"GET /account/capacity", func() {
			s.Handle("GET", "/account/capacity", nil)
			s.Fail("CardCapacity", cardwiretest.Fault{Kind: cardwiretest.FaultHTML, Status: 200}, 1)
		}, "does not match the one"},
		"a BIN of letters": {"GET /bins", func() { s.SetBIN(`{"id":102,"bin":"44010x"}`) },
			"Response body property data.1.bin must match pattern"},
		"a flag of 2": {"GET /bins", func() { s.SetBIN(`{"id":102,"bin":"440102","avs":2}`) },
			"Response body property data.1.avs must be equal to one of the allowed values: 0, 1"},
		"levels that differ": {"GET /bins", func() {
			s.SetBIN(`{"id":102,"bin":"440102","avs":0,"auth_level":2,"auth_requirement":{"level":"base","fields":[]}}`)
		}, "data.1.auth_requirement.level must be equal to constant"},
		"a selfie that may be left": {"GET /bins", func() {
			s.SetBIN(`{"id":102,"bin":"440102","avs":0,"auth_level":2,"auth_requirement":{"level":"advanced",
				"fields":[{"field":"selfieAttachmentKey","required":false,"desc":"Selfie"}]}}`)
		}, "data.1.auth_requirement.fields.0.required must be equal to constant"},
		"a seventh status": {"GET /cards/info?id=card-2", func() { s.SetCard(`{"id":"card-2","status":5}`) },
			"data.status must be equal to one of the allowed values"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.prepare()
			status, text := ask(t, address, tt.request)
			assert.Equal(t, 500, status)
			assert.Contains(t, text, tt.want)
		})
	}
}

func clientOf(t *testing.T, address string, way http.RoundTripper) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(address, cardwiretest.DefaultKey, cardwire.WithHTTPClient(&http.Client{Transport: way}),
		cardwire.WithProfile(func(own *cardwire.Profile) { *own = contract.Profile() }), cardwire.WithStrictDrift())
	require.NoError(t, err)
	return c
}

// watch collects what Prism finds wrong.
type watch struct {
	next       http.RoundTripper
	mu         sync.Mutex
	responses  int
	violations []string
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.responses++
	for _, text := range response.Header["Sl-Violations"] {
		w.violations = append(w.violations, r.URL.Path+": "+text)
	}
	return response, nil
}

// prism starts Prism on a port of this machine until the test ends, and returns
// its address.
func prism(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	command := exec.CommandContext(ctx, program, append(args, "--errors", "--host", "127.0.0.1", "--port", "0")...)
	command.Env = append(os.Environ(), "NODE_ENV=test") // in production it would fork
	command.WaitDelay = 10 * time.Second
	output, err := command.StdoutPipe()
	require.NoError(t, err)
	command.Stderr = command.Stdout
	require.NoError(t, command.Start())
	listening, ended := make(chan string, 1), make(chan struct{})
	var log strings.Builder
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
			log.WriteString(lines.Text() + "\n")
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
	select {
	case url := <-listening:
		return url
	case <-ended:
		require.FailNow(t, "Prism did not start")
	case <-ctx.Done():
		require.FailNow(t, "Prism did not listen in time")
	}
	return ""
}

// address is how Prism says where it listens.
var address = regexp.MustCompile(`Prism is listening on (http://127\.0\.0\.1:[0-9]+)`)
