package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// visit runs the program and returns its report, one space for many.
func visit(t *testing.T, baseURL, key string, args ...string) (healthy bool, report string) {
	t.Helper()
	t.Setenv("CARDWIRE_BASE_URL", baseURL)
	t.Setenv("CARDWIRE_API_KEY", key)
	var out strings.Builder
	healthy, err := run(t.Context(), &out, args)
	require.NoError(t, err)
	lines := strings.Split(out.String(), "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	report = strings.Join(lines, "\n")
	assert.NotRegexp(t, `[0-9]{12}`, report)
	assert.NotContains(t, report, cardwiretest.DefaultKey)
	return healthy, report
}

func profileOf(limit, page, status, bin, id string) cardwire.Profile {
	p := cardwire.DefaultProfile()
	p.LimitParam, p.PageParam, p.StatusParam, p.CardBINParam, p.CardIDParam = limit, page, status, bin, id
	return p
}

func TestAServiceAsAssumed(t *testing.T) {
	healthy, report := visit(t, "", "")
	assert.True(t, healthy)
	for _, line := range []string{
		`LimitParam "limit" confirmed`,
		`PageParam "page" confirmed`,
		`StatusParam "status" confirmed`,
		`CardBINParam "card_bin" confirmed`,
		`CreatedFromParam no name cannot be checked ask for the name: none of 11 likely ones is honored`,
		`CardIDParam "id" confirmed`,
		`response to ListCards the API's documented`,
		`response to GetCard the API's documented`,
		`RetryAction "retry" cannot be checked ask for the value of type that retries`,
		`Nothing is to be set: cardwire.DefaultProfile agrees with the service as far as can be seen.`,
	} {
		assert.Contains(t, report, line+"\n")
	}
	assert.NotContains(t, report, "GetCardSecrets", "secrets are read if asked for")
}

// The names are found out whether the service refuses those that it does not
// know or takes no notice of them, and are what the report says to set.
func TestOtherNamesAreFoundOut(t *testing.T) {
	other := profileOf("page_size", "pageNo", "card_status", "bin", "cardId")
	other.CreatedFromParam, other.CreatedToParam = "start_time", "end_time"
	other.TransactedFromParam, other.TransactedToParam = "trans_time_start", "trans_time_end"
	other.SubAccountParam = "sub_account_id"
	known := []string{
		"page_size", "pageNo", "card_status", "bin", "cardId", "start_time", "end_time", "trans_time_start",
		"trans_time_end", "sub_account_id",
	}
	for name, front := range map[string]func(http.Handler) http.Handler{
		"refused": func(s http.Handler) http.Handler { return s },
		"ignored": func(s http.Handler) http.Handler { return forgiving(s, known) },
	} {
		t.Run(name, func(t *testing.T) {
			service := cardwiretest.New(cardwiretest.WithProfile(other))
			server := httptest.NewServer(front(service))
			t.Cleanup(server.Close)
			healthy, report := visit(t, server.URL+"/api/v1", cardwiretest.DefaultKey)
			assert.False(t, healthy)
			_, option, _ := strings.Cut(report, "Give cardwire.New this option:\n\n")
			for _, want := range []string{
				`LimitParam "limit" contradicted set it to "page_size"`,
				`PageParam "page" contradicted set it to "pageNo"`,
				`StatusParam "status" contradicted set it to "card_status"`,
				`CardBINParam "card_bin" contradicted set it to "bin"`,
				`SubAccountParam no name confirmed set it to "sub_account_id"`,
				`CreatedFromParam no name confirmed set it to "start_time"`,
				`CreatedToParam no name confirmed set it to "end_time"`,
				`TransactedFromParam no name confirmed set it to "trans_time_start"`,
				`TransactedToParam no name confirmed set it to "trans_time_end"`,
				`CardIDParam "id" contradicted set it to "cardId"`,
			} {
				assert.Contains(t, report, want+"\n")
				field, _, _ := strings.Cut(want, " ")
				assert.Contains(t, option, "\np."+field+" = "+want[strings.LastIndex(want, " ")+1:]+"\n")
			}
			assert.Regexp(t, `^cardwire\.WithProfile\(func\(p \*cardwire\.Profile\) \{\n(p\..*\n){10}\}\)\n$`, option)
		})
	}
}

// forgiving takes no notice of query parameters other than known.
func forgiving(service http.Handler, known []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		maps.DeleteFunc(query, func(name string, _ []string) bool { return !slices.Contains(known, name) })
		r.URL.RawQuery = query.Encode()
		service.ServeHTTP(w, r)
	})
}

func TestANameThatNobodyWouldGuess(t *testing.T) {
	server := cardwiretest.NewServer(t, cardwiretest.WithProfile(profileOf("limit", "seite", "status", "card_bin", "id")))
	healthy, report := visit(t, server.URL, server.Key)
	assert.False(t, healthy)
	assert.Contains(t, report, `PageParam "page" contradicted ask for the name: none of 8 likely ones is honored`+"\n")
	assert.True(t, strings.HasSuffix(report, `cardwire.WithProfile(func(p *cardwire.Profile) { p.PageParam = "" })`+"\n"), report)
}

func TestWithTooFewCardsNothingIsClaimed(t *testing.T) {
	for _, cards := range []int{0, 1} {
		server := cardwiretest.NewServer(t, cardwiretest.WithCards(cards))
		healthy, report := visit(t, server.URL, server.Key)
		assert.True(t, healthy)
		for _, field := range []string{`LimitParam "limit"`, `PageParam "page"`, `CardBINParam "card_bin"`} {
			assert.Contains(t, report, field+" cannot be checked there are too few cards, or they are too much alike, to tell\n")
		}
	}
}

func TestDriftIsReportedWithoutValues(t *testing.T) {
	server := cardwiretest.NewServer(t)
	server.SetCard(`{"id":"card-1","available":12.5}`)
	server.Fail("GetCardSecrets", cardwiretest.Fault{Kind: cardwiretest.FaultDrift}, -1)
	healthy, report := visit(t, server.URL, server.Key, "-secrets")
	assert.False(t, healthy)
	assert.Regexp(t, `response to ListCards the API's contradicted tolerated: data\.data\[\]\.`, report)
	assert.Contains(t, report, "response to GetCardSecrets the API's ")
	assert.Contains(t, paths(server), "POST /api/v1/cards/private")
}

// What contradicts the API without being drift.
func TestClaimsOfTheDocument(t *testing.T) {
	respond := func(method, path, data string) func(*cardwiretest.Server) {
		return func(s *cardwiretest.Server) {
			s.Handle(method, path, func(*http.Request) (int, string, any) { return 200, "success", json.RawMessage(data) })
		}
	}
	card := func(fields string) func(*cardwiretest.Server) {
		return func(s *cardwiretest.Server) { s.SetCard(fields) }
	}
	bin := func(fields string) func(*cardwiretest.Server) {
		return func(s *cardwiretest.Server) { s.SetBIN(fields) }
	}
	const secrets = `{"card_no":"428837******0019","cvv":"***","expire_date":"**/****","pan":"b3RoZXI="}`
	for want, prepare := range map[string]func(*cardwiretest.Server){
		"ListCards|a number of the list is masked": card(`{"card_no":"428837******0003"}`),
		"ListCards|a CVV of the list is masked":    card(`{"cvv":"***"}`),
		"ListCards|card_bin is not made of digits": card(
			`{"bin_id":101,"card_bin":"42883x","card_no":"4288379977000003"}`),
		"ListCards|a status is none of the six":        card(`{"status":5}`),
		"ListBINs|a BIN is not made of digits":         bin(`{"bin":"42883x"}`),
		"ListBINs|a country does not have two letters": bin(`{"country":"USA"}`),
		"ListBINs|auth_level and level do not correspond": bin(
			`{"auth_level":1,"auth_requirement":{"level":"advanced","fields":[]}}`),
		"ListRemittanceStates|country does not have two letters": respond("GET", "/remittance/states",
			`[{"code":"CA","name":"California","country":"USA","countryStandardCode":"USA"}]`),
		"GetCardSecrets|the number differs from the list": respond("POST", "/cards/private", secrets),
	} {
		server := cardwiretest.NewServer(t, cardwiretest.WithCards(0))
		server.SetCard(`{"card_no":"4288379977000003"}`)
		prepare(server)
		healthy, report := visit(t, server.URL, server.Key, "-secrets")
		assert.False(t, healthy)
		op, wrong, _ := strings.Cut(want, "|")
		assert.Contains(t, report, "response to "+op+" the API's contradicted ask the service's support: "+wrong+"\n")
	}
}

func TestWhatEndsTheExamination(t *testing.T) {
	server := cardwiretest.NewServer(t)
	t.Setenv("CARDWIRE_BASE_URL", server.URL)
	for name, tc := range map[string]struct {
		key  string
		args []string
		fail *cardwiretest.Fault
		want string
	}{
		"an argument":       {key: server.Key, args: []string{"now"}, want: `unexpected argument "now"`},
		"too many requests": {key: server.Key, fail: &cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "3600"}, want: "the cards cannot be listed"},
		"no time":           {key: server.Key, args: []string{"-timeout", "1ns"}, want: "the cards cannot be listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CARDWIRE_API_KEY", tc.key)
			if tc.fail != nil {
				server.Fail("ListCards", *tc.fail, 1)
			}
			var out strings.Builder
			_, err := run(t.Context(), &out, tc.args)
			require.ErrorContains(t, err, tc.want)
			assert.Empty(t, out.String())
		})
	}
}

// What keeps every call from its response is found, with what to set.
func TestObstacles(t *testing.T) {
	service := cardwiretest.NewServer(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "\n<!doctype html><title>Sign in to the network</title>")
	}))
	t.Cleanup(page.Close)
	elsewhere := httptest.NewServer(http.RedirectHandler("/login", http.StatusFound))
	t.Cleanup(elsewhere.Close)
	private := httptest.NewUnstartedServer(http.NotFoundHandler())
	private.Config.ErrorLog = log.New(io.Discard, "", 0)
	private.StartTLS()
	t.Cleanup(private.Close)
	const (
		noSuffix = "base URL ends in /api/v1 contradicted it does not: set CARDWIRE_BASE_URL to the service's address followed by /api/v1\n"
		html     = "response JSON contradicted it is an HTML page: from a proxy? Set HTTPS_PROXY or NO_PROXY, or correct CARDWIRE_BASE_URL\n"
	)
	for name, tc := range map[string]struct {
		baseURL, key string
		want         []string
		not          string
	}{
		"no path":            {strings.TrimSuffix(service.URL, "/api/v1"), service.Key, []string{noSuffix}, "HTML"},
		"another version":    {strings.TrimSuffix(service.URL, "1") + "2/", service.Key, []string{noSuffix}, "HTML"},
		"a page":             {page.URL + "/api/v1/", service.Key, []string{html}, "base URL"},
		"a page and no path": {page.URL, service.Key, []string{noSuffix + html}, "certificate"},
		"a certificate": {private.URL + "/api/v1", service.Key, []string{
			"certificate trusted contradicted it is not: behind a proxy set SSL_CERT_FILE to a file with its CA, or RootCAs by cardwire.WithTransport\n",
		}, "base URL"},
		"a redirect":  {elsewhere.URL + "/api/v1", service.Key, []string{"response no redirect contradicted it is one: correct CARDWIRE_BASE_URL, or sign in at the proxy\n"}, "HTML"},
		"a wrong key": {service.URL, "sk-wrong", []string{"API key accepted contradicted it is not: set CARDWIRE_API_KEY to a key from this service's console\n"}, "base URL"},
		"no key":      {service.URL, "", []string{"environment valid contradicted correct CARDWIRE_BASE_URL or CARDWIRE_API_KEY\n", "CARDWIRE_API_KEY is empty"}, "certificate"},
		"plain http":  {"http://cards.example/api/v1", "key", []string{"environment valid contradicted", "CARDWIRE_BASE_URL is plain http"}, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			healthy, report := visit(t, tc.baseURL, tc.key)
			assert.False(t, healthy)
			for _, want := range append(tc.want, "\nNothing else can be checked before that: cardwire: ") {
				assert.Contains(t, report, want)
			}
			found, _, _ := strings.Cut(report, "\nNothing else")
			assert.NotContains(t, strings.ReplaceAll(found, html, ""), tc.not)
			assert.NotContains(t, report, "cardwire.WithProfile")
			assert.NotContains(t, report, "network</title>")
		})
	}
}

func TestTheCommandLine(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "")
	t.Setenv("CARDWIRE_API_KEY", "")
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for want, tc := range map[string]struct {
		ctx  context.Context
		args []string
		code int
	}{
		"doctor: flag provided but not defined: -nope: -help lists the flags\n": {t.Context(), []string{"-nope"}, 2},
		"doctor: unexpected argument \"now\": -help lists the flags\n":          {t.Context(), []string{"now"}, 2},
		"doctor: interrupted\n": {interrupted, nil, 130},
	} {
		var out, errs strings.Builder
		assert.Equal(t, tc.code, status(tc.ctx, &out, &errs, tc.args))
		assert.Equal(t, want, errs.String())
		assert.Empty(t, out.String())
	}
	var out, errs strings.Builder
	assert.Zero(t, status(t.Context(), &out, &errs, []string{"-help"}))
	assert.Empty(t, errs.String())
	for _, part := range []string{"which of the client's assumptions are right", "go run ./examples/doctor", "CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "\n  -secrets\n"} {
		assert.Contains(t, out.String(), part)
	}
}

// paths are the requests that the service had, each once.
func paths(s *cardwiretest.Server) (list []string) {
	for _, r := range s.Requests() {
		if p := r.Method + " " + r.Path; !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// The examination changes nothing.
func TestOnlyReads(t *testing.T) {
	server := cardwiretest.NewServer(t)
	visit(t, server.URL, server.Key)
	assert.Equal(t, []string{
		"GET /api/v1/account/capacity", "GET /api/v1/bins", "GET /api/v1/bins/maintenance",
		"GET /api/v1/cards", "GET /api/v1/cards/info",
		"GET /api/v1/remittance/currency", "GET /api/v1/remittance/states",
	}, paths(server))
	assert.Empty(t, server.Ledger())
}
