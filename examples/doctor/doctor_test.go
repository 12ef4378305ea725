package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// visit runs the program, and returns its exit status and what it printed, one space for many.
func visit(t *testing.T, baseURL, key string, args ...string) (code int, report, errs string) {
	t.Helper()
	t.Setenv("CARDWIRE_BASE_URL", baseURL)
	t.Setenv("CARDWIRE_API_KEY", key)
	var out, e strings.Builder
	code = status(t.Context(), &out, &e, args)
	report = regexp.MustCompile(`[ \t]+`).ReplaceAllString(out.String(), " ")
	report = strings.NewReplacer(" \n", "\n", "\n ", "\n").Replace(report)
	assert.NotRegexp(t, `[0-9]{12}`, report+e.String())
	assert.NotContains(t, report+e.String(), cardwiretest.DefaultKey)
	return code, report, e.String()
}

func TestAServiceAsAssumed(t *testing.T) {
	code, report, _ := visit(t, "", "")
	assert.Zero(t, code)
	for _, line := range []string{
		`This is the fake service: set CARDWIRE_BASE_URL and CARDWIRE_API_KEY to examine yours.`,
		`LimitParam limit confirmed`,
		`PageParam page confirmed`,
		`StatusParam status confirmed`,
		`CardBINParam card_bin confirmed`,
		`CreatedFromParam no name cannot be checked ask for the name: none of 11 likely ones is honored`,
		`CardIDParam id confirmed`,
		`response to ListCards as documented confirmed`,
		`response to GetCard as documented confirmed`,
		`Nothing is to be set: as far as can be read, cardwire.DefaultProfile is right.`,
	} {
		assert.Contains(t, report, line+"\n")
	}
}

// The names are found out whether the service refuses those that it does not
// know or takes no notice of them, and are what the report says to set.
func TestOtherNamesAreFoundOut(t *testing.T) {
	other := cardwire.DefaultProfile()
	other.LimitParam, other.PageParam, other.StatusParam = "page_size", "pageNo", "card_status"
	other.CardBINParam, other.CardIDParam = "bin", "cardId"
	other.CreatedFromParam, other.CreatedToParam = "start_time", "end_time"
	other.TransactedFromParam, other.TransactedToParam = "trans_time_start", "trans_time_end"
	other.SubAccountParam = "sub_account_id"
	known := []string{
		"page_size", "pageNo", "card_status", "bin", "cardId", "start_time", "end_time", "trans_time_start",
		"trans_time_end", "sub_account_id",
	}
	for _, ignores := range []bool{false, true} {
		service := cardwiretest.New(cardwiretest.WithProfile(other))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if query := r.URL.Query(); ignores {
				maps.DeleteFunc(query, func(name string, _ []string) bool { return !slices.Contains(known, name) })
				r.URL.RawQuery = query.Encode()
			}
			service.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		code, report, _ := visit(t, server.URL+"/api/v1", cardwiretest.DefaultKey)
		assert.Equal(t, 3, code)
		option := "\nGive cardwire.New this option:\n\ncardwire.WithProfile(func(p *cardwire.Profile) {\n"
		for _, want := range []string{
			`LimitParam limit contradicted set it to "page_size"`,
			`PageParam page contradicted set it to "pageNo"`,
			`StatusParam status contradicted set it to "card_status"`,
			`CardBINParam card_bin contradicted set it to "bin"`,
			`SubAccountParam no name confirmed set it to "sub_account_id"`,
			`CreatedFromParam no name confirmed set it to "start_time"`,
			`CreatedToParam no name confirmed set it to "end_time"`,
			`TransactedFromParam no name confirmed set it to "trans_time_start"`,
			`TransactedToParam no name confirmed set it to "trans_time_end"`,
			`CardIDParam id contradicted set it to "cardId"`,
		} {
			assert.Contains(t, report, want+"\n")
			field, _, _ := strings.Cut(want, " ")
			option += "p." + field + " = " + want[strings.LastIndex(want, " ")+1:] + "\n"
		}
		assert.Contains(t, report, option+"})\n")
	}
}

// The examination changes nothing, whatever it tries.
func TestANameThatNobodyWouldGuess(t *testing.T) {
	profile := cardwire.DefaultProfile()
	profile.PageParam = "seite"
	server := cardwiretest.NewServer(t, cardwiretest.WithProfile(profile))
	code, report, _ := visit(t, server.URL, server.Key)
	assert.Equal(t, 3, code)
	assert.Contains(t, report, `PageParam page contradicted ask for the name: none of 8 likely ones is honored`+"\n")
	for _, request := range server.Requests() {
		assert.Equal(t, http.MethodGet, request.Method)
	}
	assert.Contains(t, report, "\ncardwire.WithProfile(func(p *cardwire.Profile) {\np.PageParam = \"\"\n})\n")
}

func TestWithTooFewCardsNothingIsClaimed(t *testing.T) {
	for _, cards := range []int{0, 1} {
		server := cardwiretest.NewServer(t, cardwiretest.WithCards(cards))
		code, report, _ := visit(t, server.URL, server.Key)
		assert.Zero(t, code)
		assert.NotContains(t, report, "fake")
		for _, assumed := range []string{"LimitParam limit", "PageParam page", "CardBINParam card_bin"} {
			assert.Contains(t, report, assumed+" cannot be checked "+errAlike.Error()+"\n")
		}
		assert.Contains(t, report, "\nNothing is to be set: ")
	}
}

func TestDriftIsReportedWithoutValues(t *testing.T) {
	server := cardwiretest.NewServer(t)
	server.SetCard(`{"id":"card-1","available":12.5}`)
	server.Fail("GetCardSecrets", cardwiretest.Fault{Kind: cardwiretest.FaultDrift}, -1)
	code, report, _ := visit(t, server.URL, server.Key, "-secrets")
	assert.Equal(t, 3, code)
	assert.Regexp(t, `response to ListCards as documented contradicted tolerated: data\.data\[\]\.`, report)
	assert.Contains(t, report, "response to GetCardSecrets as documented contradicted tolerated: ")
	assert.NotContains(t, report, "12.5")
	assert.Equal(t, 1, server.Executions("GetCardSecrets", ""))
}

// What contradicts the API without being drift.
func TestClaimsOfTheDocument(t *testing.T) {
	respond := func(method, path, data string) func(*cardwiretest.Server) {
		f := func(*http.Request) (int, string, any) { return 200, "success", json.RawMessage(data) }
		return func(s *cardwiretest.Server) { s.Handle(method, path, f) }
	}
	card := func(fields string) func(*cardwiretest.Server) {
		return func(s *cardwiretest.Server) { s.SetCard(fields) }
	}
	bin := func(fields string) func(*cardwiretest.Server) {
		return func(s *cardwiretest.Server) { s.SetBIN(fields) }
	}
	for want, prepare := range map[string]func(*cardwiretest.Server){
		"ListCards|a number of the list is masked": card(`{"card_no":"428837******0003"}`),
		"ListCards|a CVV of the list is masked":    card(`{"cvv":"***"}`),
		"ListCards|card_bin is not made of digits": card(
			`{"bin_id":101,"card_bin":"42883x","card_no":"4288379977000003"}`),
		"ListCards|a status is not one of the six":     card(`{"status":5}`),
		"ListBINs|a BIN is not made of digits":         bin(`{"bin":"42883x"}`),
		"ListBINs|a country does not have two letters": bin(`{"country":"USA"}`),
		"ListBINs|auth_level and level do not correspond": bin(
			`{"auth_level":1,"auth_requirement":{"level":"advanced","fields":[]}}`),
		"ListRemittanceStates|country does not have two letters": respond("GET", "/remittance/states",
			`[{"code":"CA","name":"California","country":"USA","countryStandardCode":"USA"}]`),
		"GetCardSecrets|the number differs from the list": respond("POST", "/cards/private",
			`{"card_no":"428837******0019","cvv":"***","expire_date":"**/****","pan":"b3RoZXI="}`),
	} {
		server := cardwiretest.NewServer(t, cardwiretest.WithCards(0))
		server.SetCard(`{"card_no":"4288379977000003"}`)
		prepare(server)
		code, report, _ := visit(t, server.URL, server.Key, "-secrets")
		assert.Equal(t, 3, code)
		op, wrong, _ := strings.Cut(want, "|")
		assert.Contains(t, report, "response to "+op+" as documented contradicted ask the service's support: "+wrong)
	}
}

// What keeps every call from its response is found, with what to do.
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
	for want, tc := range map[string]struct{ baseURL, key string }{
		"check that the base URL ends in /api/v1":   {strings.TrimSuffix(service.URL, "/api/v1"), service.Key},
		"check that the base URL ends in /api/v1;":  {strings.TrimSuffix(service.URL, "1") + "2/", service.Key},
		"is HTML, not JSON: check the base URL and": {page.URL, service.Key},
		"not trusted: unknown authority":            {private.URL + "/api/v1", service.Key},
		"is a redirect: it leads to 127.0.0.1":      {elsewhere.URL + "/api/v1", service.Key},
		"check the API key, then call again":        {service.URL, "sk-wrong"},
		"CARDWIRE_API_KEY is empty":                 {service.URL, ""},
		"CARDWIRE_BASE_URL is plain http":           {"http://cards.example/api/v1", "key"},
	} {
		code, report, errs := visit(t, tc.baseURL, tc.key)
		assert.Equal(t, 1, code)
		assert.Empty(t, report)
		assert.Contains(t, errs, "doctor: nothing can be checked before the cards can be listed: cardwire: ")
		assert.Contains(t, errs, want)
		assert.NotContains(t, errs, "network</title>")
		ends := strings.HasSuffix(tc.baseURL, "/api/v1")
		assert.Equal(t, !ends, strings.HasSuffix(errs, "; CARDWIRE_BASE_URL does not end in /api/v1\n"))
	}
	service.Fail("GetCard", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "3600"}, -1)
	code, report, errs := visit(t, service.URL, service.Key)
	assert.Equal(t, 1, code)
	assert.Empty(t, report)
	assert.Contains(t, errs, "doctor: the check cannot continue: cardwire: GetCard: refused, HTTP 429")
}

func TestTheCommandLine(t *testing.T) {
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for args, want := range map[string]string{
		"-nope": "2 doctor: flag provided but not defined: -nope: -help lists the flags\n",
		"now":   "2 doctor: unexpected argument \"now\": -help lists the flags\n",
		"":      "130 doctor: nothing can be checked before the cards can be listed: cardwire: ListCards: ",
	} {
		var out, errs strings.Builder
		code := status(interrupted, &out, &errs, strings.Fields(args))
		assert.Contains(t, strconv.Itoa(code)+" "+errs.String(), want)
		assert.Empty(t, out.String())
	}
	code, out, errs := visit(t, "", "", "-help")
	assert.Zero(t, code)
	assert.Empty(t, errs)
	assert.Contains(t, out, "which of the client's assumptions are right")
	assert.Contains(t, out, "\n-secrets\n")
}
