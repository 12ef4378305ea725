package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/database"
	"github.com/cardwire/cardwire-go/payouts"
	shops "github.com/cardwire/cardwire-go/payouts/internal/shop"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
)

const a1 = `{"merchantOrderNo":"A-1","payoutCurrency":"EUR","transferAmount":"12.50",` +
	`"receiverBankAccountNumber":"DE00CANARY"}`

// A shop in another program sends its orders, as often as it likes.
func TestOrdersOfAnotherProgram(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for range 2 {
			r := s.request("POST", "/ops/orders", a1, false)
			assert.Equal(t, 202, r.StatusCode)
			assert.Equal(t, "order?number=A-1", r.Header.Get("Location"))
		}
		r := s.request("POST", "/ops/orders", strings.Replace(a1, "12.50", "13.50", 1), false)
		assert.Equal(t, 409, r.StatusCode)
		assert.Contains(t, textOf(t, r), "already used for another transfer")
		o := jsonOf(t, s.found("A-1"))
		assert.Contains(t, o, `"order":"A-1","state":"queued","currency":"EUR","created_at":"20`)
		assert.Contains(t, o, `"amount":"12.50"`, "as it is taken")
		assert.JSONEq(t, o, s.get("order?number=A-1"))
		assert.JSONEq(t, `{"orders":[`+o+`],"next":"","previous":""}`, s.get("?state=queued"))
		assert.JSONEq(t, `{"orders":[],"next":"","previous":""}`, s.get("?state=failed"))
	})
}

// Each error is a problem, or a page. A body of which two programs could read different payouts is refused.
func TestEveryErrorIsAProblem(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	var many strings.Builder
	for i := range 500 {
		_, _ = fmt.Fprintf(&many, "%d,", i)
	}
	const good = `"payoutCurrency":"EUR","transferAmount":"12.50"`
	for request, want := range map[string]struct {
		status int
		detail string
	}{
		"POST orders {" + good + "}":            {422, "MerchantOrderNo"},
		`POST orders {"merchantOrderNo":"A-1"}`: {422, "TransferAmount"},
		`POST orders {"merchantOrderNo":"A-1","transferAmount":"1000000000000.00","payoutCurrency":"EUR"}`: {422,
			"must be below"},
		`POST orders {"merchantOrderNo":"A-1","transferAmount":"1.005"}`: {422,
			`two decimals and is above zero`},
		`POST orders {"merchantOrderNo":"A-1","transferAmount":12.50}`:               {422, "each field is a string"},
		`POST orders {"merchantOrderNo":"A-1","color":"red",` + good + `}`:           {422, "unknown fields"},
		`POST orders {"merchantOrderNo":"A-1","merchantOrderNo":"A-2",` + good + `}`: {422, ""},
		`POST orders {"MerchantOrderNo":"A-1",` + good + `}`:                         {422, ""},
		`POST orders {"merchantOrderNo":"A-\u0000",` + good + `}`:                    {422, ""},
		"POST orders {\"merchantOrderNo\":\"A-\xff\"," + good + "}":                  {422, ""},
		`POST orders {"merchantOrderNo":"A-1",` + good + `}{}`:                       {422, ""},
		`POST orders [{"merchantOrderNo":"A-1",` + good + `}]`:                       {400, ""},
		"POST orders ": {400, ""},
		`POST orders {"merchantOrderNo":"` + strings.Repeat("x", maxBody) + `"}`: {400, "at most 64 KiB"},
		"GET order?number=A-9 ":             {404, "no such order"},
		"GET order?number=%00 ":             {404, "no such order"},
		"GET ?state=lost ":                  {422, "State must be one of"},
		"GET ?day=2026-02-30 ":              {422, "must be a date"},
		"GET ?find=%ff ":                    {422, "UTF-8"},
		"GET ?a=%zz ":                       {422, "cannot be read"},
		"GET ?find=" + many.String() + "x ": {422, "at most 500"},
		"GET nothing ":                      {404, "no such page"},
		"DELETE order?number=A-1 ":          {405, "GET, HEAD"},
		"POST nothing ":                     {404, "no such page or operation"},
	} {
		head, body, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(body, " ")
		for _, browser := range []bool{false, true} {
			r := s.request(head, "/ops/"+path, body, browser)
			text := textOf(t, r)
			assert.Equal(t, want.status, r.StatusCode, "%.60s: %s", request, text)
			assert.Contains(t, text, want.detail, request)
			assert.NotContains(t, text, "CANARY")
			kind := map[bool]string{false: "application/problem+json", true: "text/html; charset=utf-8"}
			assert.Equal(t, kind[browser], r.Header.Get("Content-Type"), request)
		}
	}
	assert.JSONEq(t, `{"orders":[],"next":"","previous":""}`, s.get(""))
}

// Any number has a page, and is found; links are relative, so that any path serves. A spreadsheet calculates nothing in
// what is exported.
func TestAnyOrderNumberHasAPage(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		numbers := []string{"/", ".", "..", "a b", "a,b", "a;b", "a/b?c=d&e#f", "Ünï", "a%2Fb", "'\"<b>",
			"=1+1", "＝4"}
		s.orders(numbers...)
		export := s.get("orders.csv?state=queued")
		assert.Equal(t, 1+len(numbers), strings.Count(export, "\n"))
		for _, cell := range []string{"\ufefforder,", "'=1+1", "'＝4", "\na b,queued,12.50,EUR,"} {
			assert.Contains(t, export, cell)
		}
		assert.Contains(t, s.get("orders.csv?state=queued&for=spreadsheet"), "\n\"=\"\"=1+1\"\"\",queued,12.50,EUR,")
		assert.Contains(t, s.page(""), `<a href="orders.csv?for=spreadsheet">`)
		for _, number := range numbers {
			address := string(addressOf(number))
			for _, path := range []string{address, "?find=" + url.QueryEscape(number)} {
				assert.Contains(t, s.get(path), `"order":`+jsonOf(t, number))
			}
			assert.Contains(t, s.page(address), "Cancel this order")
			status, text := s.post("cancel", url.Values{"order": {number}})
			assert.Equal(t, 200, status, text)
		}
		mux := http.NewServeMux()
		mux.Handle("/a/deep/path/", http.StripPrefix("/a/deep/path", Handler(s.Service, nil)))
		for _, path := range []string{"/a/deep/path/order?number=%2F", "/a/deep/path/style.css", "/a/deep/path/"} {
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			assert.Equal(t, 200, w.Code, path)
		}
		assert.NotRegexp(t, `(href|action|src)="/`, s.page("")+s.page("order?number=%2F")+s.page("statement"))
	})
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// Other sites cannot send a form, nor show a page in a frame; and who signed in is who did it.
func TestWhoMayCome(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1")
	handler := Handler(s.Service, func(r *http.Request) string { return r.Header.Get("X-User") })
	try := func(site, user, form string) int {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "https://shop.example/payouts/cancel",
			strings.NewReader(form))
		r.Header.Set("Sec-Fetch-Site", site)
		r.Header.Set("X-User", user)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, 403, try("cross-site", "Ada", "order=A-1&why=x"))
	assert.Equal(t, 422, try("same-origin", "", "order=A-1&why=x"), "nobody signed in, and no name")
	assert.Equal(t, 422, try("same-origin", "", "order=A-1&why=x&by=A%E2%80%8Bda"), "an invisible one")
	assert.Equal(t, 200, try("same-origin", "Ada", "order=A-1&why=x&by=Eve"))
	d, err := s.Details(t.Context(), "A-1")
	require.NoError(t, err)
	assert.Equal(t, "Ada", d.History[len(d.History)-1].By)
	r := s.request("GET", "/ops/", "", true)
	assert.Contains(t, r.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
	assert.Equal(t, "no-store", r.Header.Get("Cache-Control"))
	assert.Equal(t, 404, s.request("GET", "/ops/order.html", "", false).StatusCode, "templates are not served")
}

// The list leads forth and back, and an order to those beside it.
func TestTheListHasPages(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for i := range 102 {
		s.orders(fmt.Sprintf("A-%03d", i))
		s.do(`UPDATE @payouts SET created_at = $1 WHERE order_no = $2`,
			database.Text(time.Now().Add(time.Duration(i)*time.Minute-99*time.Hour)), fmt.Sprintf("A-%03d", i))
	}
	text := s.page("?still=on")
	assert.Contains(t, text, `<a rel="next" href="./?after=A-002&amp;still=on">`)
	assert.NotContains(t, text, `rel="prev"`)
	text = s.page("?after=A-002")
	assert.Contains(t, text, `<a rel="prev" href="./?before=A-001">`)
	assert.NotContains(t, text, `rel="next"`)
	day := time.Now().Add(-99 * time.Hour).UTC().Format(time.DateOnly)
	assert.Contains(t, s.page("?day="+day), "Created on "+day)
	text = s.page("order?number=A-050")
	assert.Contains(t, text, `href="order?number=A-049"`)
	assert.Contains(t, text, `href="order?number=A-051"`)
}

func TestTheTotals(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2")
		other := shops.Params("A-3")
		other.PayoutCurrency = "USD"
		_, err := s.SubmitNow(t.Context(), other)
		require.NoError(t, err)
		s.loseResponse("A-4")
		text := strings.Join(strings.Fields(s.page("?still=on")), " ")
		assert.Contains(t, text, `2</td><td class="money">25.00 <span class="currency">EUR`)
		assert.Contains(t, text, "4 orders, 37.50 EUR, 12.50 USD, on this page.")
		assert.Contains(t, text, "3 orders are waiting.")
		assert.Contains(t, text, `<span class="of">cards.example</span>`)
	})
}

// A status that is undocumented needs a look. A payee whose name turns the direction of what follows it does not.
func TestWhatIsOddIsVisible(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	p := shops.Params("A-1")
	p.ReceiverNativeFirstName, p.ReceiverNativeLastName = "Ada\u202e", "Lovelace"
	_, err := s.SubmitNow(t.Context(), p)
	require.NoError(t, err)
	s.do(`UPDATE @intents SET state = 'executed', status = 'reviewing'`)
	assert.Contains(t, s.page("?state=submitted"), "status reviewing: look")
	page := s.page("order?number=A-1")
	assert.Contains(t, page, "This needs a look")
	assert.Contains(t, page, "<dd>Ada\ufffd Lovelace, account …NARY</dd>")
}

// What people paste has characters that nobody sees. Of several numbers those that are missing are named.
func TestWhatPeoplePasteIsFound(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("A-1", "A 2", "J\u00f6rg-3", "A\u00a04")
	for pasted, want := range map[string]string{
		"\u200bA-1": "A-1", "\ufeffA-1\u200e": "A-1", "A-\u200b1": "A-1", "\u00a0A-1\u00a0": "A-1", "A\u00a02": "A 2",
		"Jo\u0308rg-3": "J\u00f6rg-3", "A\u00a04": "A\u00a04",
	} {
		text := s.get("?find=" + url.QueryEscape(pasted))
		assert.Contains(t, text, `"order":`+jsonOf(t, want), "%q", pasted)
		assert.NotContains(t, text, "missing", "%q", pasted)
	}
	find := "?find=" + url.QueryEscape("A-1\u200b, A-7\nA 2\n\u00a0A-8;A-7")
	assert.Contains(t, s.get(find), `"missing":["A-7","A-8"]`)
	assert.Contains(t, s.page(find), "<p>Not found: A-7, A-8.</p>")
}

func TestAnAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 119 * time.Second: "119 s", 2 * time.Minute: "2 min",
		47 * time.Hour: "47 h", 48 * time.Hour: "2 d",
	} {
		assert.Equal(t, want, age(d))
	}
}

const header = "order,id,amount,currency,status,time\n"

// listed is a line of a statement, of half a minute ago.
func listed(number string) string { return listedAt(number, 30*time.Second) }

func listedAt(number string, ago time.Duration) string {
	return number + ",T-" + number + ",12.50,EUR,done," + time.Now().Add(-ago).UTC().Format(time.RFC3339)
}

// upload sends a statement with these lines; seen: what was seen of it, and is recorded.
func (s *shop) upload(seen string, lines ...string) (int, string) {
	s.t.Helper()
	return s.uploadWith(url.Values{"seen": {seen}, "why": {"the statement"}, "strays": {"true"}},
		header+strings.Join(lines, "\n")+"\n")
}

// uploadWith sends a file with a whole choice, but for these fields.
func (s *shop) uploadWith(fields url.Values, text string) (int, string) {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if s.until.IsZero() || fields.Get("seen") == "" { // what was seen is of the same statement
		s.until = time.Now().UTC()
	}
	now := s.until
	all := url.Values{
		"from": {now.AddDate(-1, 0, 0).Format(timeLayout)}, "until": {now.Format(timeLayout)},
		"exported": {now.Format(timeLayout)},
		"column":   statement.Fields, "word": {"done"}, "means": {"executed"},
	}
	maps.Copy(all, fields)
	for name, values := range all {
		for _, value := range values {
			require.NoError(s.t, form.WriteField(name, value))
		}
	}
	if text != "" {
		file, err := form.CreateFormFile("file", cmp.Or(fields.Get("name"), "statement.csv"))
		require.NoError(s.t, err)
		_, err = file.Write([]byte(text))
		require.NoError(s.t, err)
	}
	require.NoError(s.t, form.Close())
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", "/ops/statement", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	r.Header.Set("Accept", "text/html")
	w := httptest.NewRecorder()
	Handler(s.Service, ada).ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// seenIn returns what a form names as seen; "": it has none.
func seenIn(text string) string {
	_, seen, _ := strings.Cut(text, `name="seen" value="`)
	seen, _, _ = strings.Cut(seen, `"`)
	return seen
}

// A statement is reported, and what it proves is recorded once a person has seen it;
// what it does not list is not touched.
func TestAStatementIsReportedAndApplied(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.loseResponse("A-1")
		s.loseResponse("A-2")
		line := listed("A-1")
		status, text := s.upload("", line)
		assert.Equal(t, 200, status)
		assert.Contains(t, text, "Record what it proves: 1")
		assert.Contains(t, text, "ask: not listed: 1")
		assert.Contains(t, text, "to be recorded: 1", "it is not yet")
		was := seenIn(text)
		for seen, line := range map[string]string{"x": line, was: strings.Replace(line, "T-A-1", "T-2", 1)} {
			status, text = s.upload(seen, line)
			assert.Equal(t, 409, status)
			assert.Contains(t, text, "the journal has changed since the report")
			assert.Contains(t, text, "Record what it proves: 1")
		}
		assert.Equal(t, []payouts.State{payouts.StateUnresolved}, s.states("A-1"))
		status, text = s.upload(was, line)
		assert.Equal(t, 200, status)
		assert.Contains(t, text, "Recorded: 1. Changed meanwhile, or contradicted, and left: 0")
		assert.NotContains(t, text, "Record what it proves", "nothing remains")
		assert.Equal(t, []payouts.State{payouts.StateSubmitted, payouts.StateUnresolved}, s.states("A-1", "A-2"))
		now, note := s.until, ""
		last := s.names.Replace(`SELECT note FROM @payouts_history WHERE what = 'reconciled' AND who = 'Ada'`)
		require.NoError(t, s.db.QueryRowContext(t.Context(), last).Scan(&note))
		assert.Equal(t, []string{"the statement: statement.csv, from " + now.AddDate(-1, 0, 0).Format(time.RFC3339) +
			" until " + now.Format(time.RFC3339)},
			[]string{note})
	})
}

// A person sees the file's own header and first rows, and chooses. The report leads to each order that a line may be about.
func TestWhatAStatementsColumnsMeanIsChosen(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.loseResponse("A-1")
	at := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	file := "Order No;Sum;State;Received;\nA-9;12,50;it's done;" + at + ";x\nA-8;7,00;no;" + at + ";x\n"
	form := url.Values{"column": nil, "word": nil, "means": nil, "from": nil, "until": nil, "exported": nil,
		"strays": {"true"}}
	shows := func(status int, want ...string) (text string) {
		t.Helper()
		got, text := s.uploadWith(form, file)
		assert.Equal(t, status, got)
		for _, part := range want {
			assert.Contains(t, text, part)
		}
		return text
	}
	text := shows(200, `<th scope="col">Order No</th>`, `<td>A-9</td><td>12,50</td><td>it&#39;s done</td>`,
		`<option value="Received">Received</option>`,
		`name="exported" data-time required autocomplete="off" placeholder="20`, "Continue")
	assert.NotContains(t, text, `name="means"`)
	assert.Equal(t, 3, strings.Count(text, `value=""></label>`), "nobody has said when")
	form["column"] = []string{"Order No", "Sum", "State", "Received", "", ""}
	text = shows(200, `<option value="Sum" selected>`,
		`name="word" value="it&#39;s done"><label>it&#39;s done <select name="means" required>`, "Compare")
	assert.Equal(t, 2, strings.Count(text, `name="means"`))
	form["word"], form["means"] = []string{"no", "it's done"}, []string{"not_executed", ""}
	shows(200, `<option value="not_executed" selected>`)
	form["word"], form["means"] = []string{"of another column", "no", "it's done"},
		[]string{"pending", "not_executed", "executed"}
	shows(200, "Compare") // the times are missing
	tabs := url.Values{"again": {"yes"},
		"text": {"order\tid\tamount\tcurrency\tstatus\ttime\t\nA-9\tT-9\t12.50\tEUR\tdone\t" + at + "\t\n"}}
	status, text := s.uploadWith(tabs, "") // as the browser has kept it
	assert.Equal(t, 200, status, text)
	for _, name := range []string{"from", "until", "exported"} {
		form.Set(name, map[bool]string{true: at[:10] + "T00:00:00+02:00",
			false: time.Now().UTC().Format(time.RFC3339)}[name == "from"])
	}
	form["means"][2] = ""
	shows(200, "Compare")
	form["means"][2] = "executed"
	text = shows(200, "Record what it proves: 1",
		`<a href="./?find=A-9%0AA-1&amp;still=on">A-9</a>`)
	assert.Contains(t, text, "line 2, 12.50, it&#39;s done", "the column without a name is not its number")
	wrong := maps.Clone(form)
	wrong["column"] = []string{"Order No", "Received", "State", "Sum", "", ""}
	_, text = s.uploadWith(wrong, file)
	assert.Contains(t, text, "line 2: column &#34;Received&#34;: the amount must be as in", "nothing is recorded of it")
	assert.Contains(t, text, "and proves nothing: check the period")
	assert.Contains(t, text, "Warning: some lines are unread, whose orders may be called not listed")
	assert.NotContains(t, text, "Record what it proves")
	form.Set("again", "yes")
	shows(200, `<option value="Sum" selected>`, `<option value="executed" selected>`)
	form.Del("again")
	for name, tc := range map[string]struct {
		change url.Values
		file   string
		says   string
	}{
		"a time":       {url.Values{"from": {"soon"}}, file, "a time has its offset"},
		"a local time": {url.Values{"until": {"2026-01-31 15:04:05"}}, file, "a time has its offset"},
		"a zone":       {url.Values{"zone": {"Local"}}, file, "the time zone must have an IANA name"},
		"one column for two": {url.Values{"column": {"Order No", "Sum", "State", "Received", "Order No", ""}}, file,
			"for two fields"},
		"no column": {url.Values{"column": {"", "Sum", "State", "Received", "", ""}}, file, "one column"},
		"no meaning": {url.Values{"means": {"", "not_executed", "x"}}, file,
			"must be executed, not_executed or pending"},
		"a column of numbers": {nil, file + strings.Repeat("A;1;%;x;\n", 40), "more than 30 different values"},
		"many columns":        {url.Values{"column": nil}, strings.Repeat("x;", 60) + "\n", "more than 50 columns"},
		"a long header":       {url.Values{"column": nil}, strings.Repeat("x", 10_001) + "\n", "10000 bytes"},
		"a long status":       {nil, file + "A;1;" + strings.Repeat("x", 201) + ";x;\n", "or long ones"},
		"a workbook":          {nil, "PK\x03\x04", "save the sheet as CSV UTF-8"},
		"no name":             {url.Values{"name": {"\xff"}}, file, "UTF-8"},
		"another file":        {nil, "a;b;c;d\n1;2;3;4\n", "must name one column"},
		"empty":               {nil, "", "the file is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			change := maps.Clone(form)
			maps.Copy(change, tc.change)
			for i := range 40 {
				tc.file = strings.Replace(tc.file, "%", fmt.Sprint("s-", i), 1)
			}
			status, text := s.uploadWith(change, tc.file)
			assert.Equal(t, 422, status)
			assert.Contains(t, text, tc.says)
		})
	}
}

// Where nobody calls Run, page, readyz and API say so, also while nothing is to be sent; and what Changed was not told.
func TestThePageSaysThatNobodyRuns(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2")
		s.execute("A-2", "")
		assert.Contains(t, s.page(""), "Orders are being sent")
		since := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
		s.do(`UPDATE @payouts_marks SET since = $1 WHERE order_no = 'A-2'`, database.Text(since))
		page := s.page("")
		assert.Contains(t, page, "told of 1 order</h2>\n<p>The oldest change is of "+inUTC(since)+".")
		assert.NotContains(t, page, "sent meanwhile", "a hold stops it")
		assert.Contains(t, s.get("queue"), `"untold":1,"untold_since":"`)
		s.do(`UPDATE @payouts_control SET worked_at = $1`, database.Text(since))
		for range 2 {
			r := s.request("GET", "/ops/readyz", "", false)
			assert.Equal(t, 503, r.StatusCode)
			at := inUTC(since) + ": start one"
			assert.Contains(t, textOf(t, r), "no replica has worked since "+at)
			page := s.page("")
			assert.Contains(t, page, "No replica has worked since "+at)
			assert.Contains(t, page, "1 order is waiting.")
			assert.NotContains(t, page, "Orders are being sent")
			assert.Contains(t, s.get("queue"), `"idle":"`+since.Format(time.RFC3339Nano))
			require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
		}
	})
}

// What refreshes by itself would lose what somebody types.
func TestAPageThatRefreshesHasNothingToFillIn(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("sending", "submitted", "failed", "queued")
	s.loseResponse("unresolved")
	s.execute("submitted", "")
	s.execute("sending", "")
	s.execute("failed", "")
	s.do(`UPDATE @intents SET state = 'open', send_by = '2999-01-31T15:04:05.000000Z' WHERE reference = 'sending'`)
	s.do(`UPDATE @intents SET state = 'refused', closed = TRUE WHERE reference = 'failed'`)
	refreshing := 0
	look := func(path string) {
		t.Helper()
		page := s.page(path)
		if strings.Contains(page, `http-equiv="refresh"`) {
			refreshing++
			assert.NotRegexp(t, `<(form|input|select|textarea|details)`, page, path)
		}
	}
	for range 2 {
		look("")
		look("?find=queued&day=" + time.Now().UTC().Format(time.DateOnly))
		for _, state := range []string{"sending", "unresolved", "submitted", "failed", "queued"} {
			look("?state=" + state)
			look("order?number=" + state)
		}
		require.NoError(t, s.Pause(t.Context(), "Ada", "a test"))
	}
	assert.Equal(t, 2*(2+5+1), refreshing, "the lists, and the order that is being sent")
}
