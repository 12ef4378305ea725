package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/examples/apps/internal/apptest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testUser     = "amelia"
	testPassword = "correct horse battery"

	rightPassword = "user=amelia&password=correct+horse+battery"
	wrongPassword = "user=amelia&password=wrong"
)

// testOffice is everything but the program around it, over a service of its own.
type testOffice struct {
	t       *testing.T
	office  *office
	handler http.Handler
	fake    *cardwiretest.Service
	journal *sqljournal.Journal
	db      *sql.DB
	client  *cardwire.Client
	log     *apptest.Buffer
	cookie  *http.Cookie
	host    string // "": localhost
	from    string // the browser's address; "": that of httptest
}

func testAccount(t *testing.T) account {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(testPassword), bcrypt.MinCost)
	require.NoError(t, err)
	return account{testUser, hash}
}

func newTestOffice(t *testing.T, fake *cardwiretest.Service) *testOffice {
	t.Helper()
	return testOfficeWith(t, fake, filepath.Join(t.TempDir(), "journal.db"), "")
}

func testOfficeWith(t *testing.T, fake *cardwiretest.Service, file, postgres string) *testOffice {
	t.Helper()
	db, journal, err := openJournal(t.Context(), file, postgres, true)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	fake.AddFailedOperation(failedTopUp, "transfer_in")
	fake.AddFailedOperation(failedFreeze, "freeze")
	o := &testOffice{t: t, fake: fake, journal: journal, db: db, log: &apptest.Buffer{}}
	logger := slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	names := cardwire.DefaultProfile()
	correct(&names)
	client, err := connect(journal, logger, names, fake)
	require.NoError(t, err)
	o.client = client
	o.office = &office{client: client, journal: journal, log: logger, profile: names, account: testAccount(t), fake: true}
	o.handler = o.office.routes()
	return o
}

// newDoor is an office to sign in to, with nothing behind.
func newDoor(t *testing.T, who account) *testOffice {
	t.Helper()
	o := &office{account: who, log: slog.New(slog.DiscardHandler)}
	return &testOffice{t: t, office: o, handler: o.routes()}
}

// signedIn is an office whose door is open.
func signedIn(t *testing.T) *testOffice {
	t.Helper()
	o := newTestOffice(t, cardwiretest.New(cardwiretest.WithCards(30)))
	o.signIn()
	return o
}

func (o *testOffice) signIn() {
	o.t.Helper()
	got := o.post("/login", rightPassword)
	require.Equal(o.t, http.StatusSeeOther, got.status)
	o.cookie = got.cookie
}

// response is what a browser gets.
type response struct {
	status int
	header http.Header
	cookie *http.Cookie
	page   string // without tags and character references
	source string
}

var tag = regexp.MustCompile(`<[^>]*>|\s+`)

func (o *testOffice) ask(r *http.Request) response {
	o.t.Helper()
	if o.cookie != nil {
		r.AddCookie(o.cookie)
	}
	r.Host = cmp.Or(o.host, "localhost:8080")
	if o.from != "" {
		r.RemoteAddr = net.JoinHostPort(o.from, "1024")
	}
	w := httptest.NewRecorder()
	o.handler.ServeHTTP(w, r)
	a := response{status: w.Code, header: w.Header(), source: w.Body.String()}
	a.page = visible(a.source)
	if cookies := w.Result().Cookies(); len(cookies) == 1 {
		a.cookie = cookies[0]
	}
	return a
}

// visible is what a reader sees of a page.
func visible(source string) string {
	return html.UnescapeString(strings.Join(strings.Fields(tag.ReplaceAllString(source, " ")), " "))
}

func (o *testOffice) get(path string) response {
	o.t.Helper()
	return o.ask(httptest.NewRequestWithContext(o.t.Context(), http.MethodGet, path, nil))
}

// post sends a form, confirms it if that is asked for, and looks at what came of it.
func (o *testOffice) post(path, form string) response {
	o.t.Helper()
	return o.follow(o.confirmed(o.send(path, form)))
}

// confirmed presses the button of the page that asks whether a transfer is meant, if a
// leads there.
func (o *testOffice) confirmed(a response) response {
	o.t.Helper()
	to := a.header.Get("Location")
	if !strings.HasPrefix(to, "/transfers/confirm?") {
		return a
	}
	sent := o.writes()
	asked := o.get(to)
	require.Equal(o.t, http.StatusOK, asked.status)
	require.Equal(o.t, sent, o.writes(), "sent before it was confirmed")
	form := regexp.MustCompile(`(?s)action="(/transfers/send)".*name="said" value="([A-Z2-7]{26})"`).FindStringSubmatch(asked.source)
	require.Len(o.t, form, 3)
	return o.send(form[1], "said="+form[2])
}

func (o *testOffice) send(path, form string) response {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), http.MethodPost, path, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return o.ask(r)
}

// follow looks at what came of a write, on the page that its response leads to. To
// load that again shows the same, and sends nothing.
func (o *testOffice) follow(a response) response {
	o.t.Helper()
	to := a.header.Get("Location")
	if !strings.Contains(to, "?said=") {
		return a
	}
	require.Equal(o.t, http.StatusSeeOther, a.status)
	sent := o.writes()
	result := o.get(to)
	assert.Equal(o.t, result.source, o.get(to).source)
	assert.Equal(o.t, sent, o.writes())
	return result
}

// writes is how many requests were not only to read.
func (o *testOffice) writes() int {
	return len(slices.DeleteFunc(o.fake.Requests(), func(r cardwiretest.RequestRecord) bool { return r.Method == http.MethodGet }))
}

// unresolved is how much of the journal is.
func (o *testOffice) unresolved() int {
	o.t.Helper()
	stats, err := o.journal.Stats(o.t.Context())
	require.NoError(o.t, err)
	return int(stats.InProgress + stats.Unresolved)
}

const order = "MerchantOrderNo=order-1&PayoutCurrency=EUR&TransferAmount=100.00"

// Every way in which a transfer can end is shown as what it is.
func TestWhatBecameOfATransfer(t *testing.T) {
	t.Parallel()
	fault := func(f cardwiretest.Fault) func(*testOffice) {
		return func(o *testOffice) { o.fake.Fail("CreateTransfer", f, 1) }
	}
	before := func(form string, f *cardwiretest.Fault) func(*testOffice) {
		return func(o *testOffice) {
			if f != nil {
				o.fake.Fail("CreateTransfer", *f, 1)
			}
			o.post("/transfers", form)
		}
	}
	lost := &cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}
	for name, tc := range map[string]struct {
		before     func(*testOffice)
		status     int
		says       string
		executions int
		unresolved int
	}{
		"accepted":               {nil, 200, "The transfer was accepted Accepted by the service: status wait_process .", 1, 0},
		"refused":                {fault(cardwiretest.Fault{Status: 200, Code: 422, Message: "no <b>money</b>"}), 422, "The transfer was refused The service refused it. Nothing happened. The service says: “no <b>money</b>”", 0, 0},
		"too many requests":      {fault(cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}), 503, "The transfer was refused for now The service refused it, and nothing happened. Send the same form again later.", 0, 0},
		"a key that ran out":     {fault(cardwiretest.Fault{Status: 200, Code: 401}), 502, "The API key was not accepted Nothing happened", 0, 0},
		"executed and dropped":   {fault(*lost), 502, "The transfer is unresolved It may have happened", 1, 1},
		"dropped":                {fault(cardwiretest.Fault{Kind: cardwiretest.FaultReset}), 502, "The transfer is unresolved It may have happened", 0, 1},
		"a gateway's page":       {fault(cardwiretest.Fault{Kind: cardwiretest.FaultHTML}), 502, "The transfer is unresolved It may have happened", 0, 1},
		"unreadable":             {fault(cardwiretest.Fault{Kind: cardwiretest.FaultGarbage, Executed: true}), 502, "The transfer is unresolved It may have happened", 1, 1},
		"another order's":        {fault(cardwiretest.Fault{Kind: cardwiretest.FaultTruncated, Executed: true}), 502, "The transfer is unresolved", 1, 1},
		"the second click":       {before(order, nil), 409, "The transfer was done before It was sent once and executed. This second time nothing was sent.", 1, 0},
		"again while unresolved": {before(order, lost), 409, "The transfer is still unresolved It was sent before", 1, 1},
		"again when refused":     {before(order, &cardwiretest.Fault{Status: 200, Code: 422}), 409, "The transfer is closed It was refused before, and is never sent again under this number.", 0, 0},
		"for another amount":     {before(strings.Replace(order, "100", "101", 1), nil), 409, "This number belongs to another request", 1, 0},
		"without a journal":      {func(o *testOffice) { _ = o.db.Close() }, 503, "The transfer was not sent This time nothing was sent. Send the same form again later.", 0, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := signedIn(t)
			if tc.before != nil {
				tc.before(o)
			}
			got := o.post("/transfers", order)
			assert.Equal(t, tc.status, got.status)
			assert.Contains(t, got.page, tc.says)
			assert.Equal(t, tc.executions, o.fake.Executions("CreateTransfer", "order-1"))
			if tc.unresolved >= 0 {
				assert.Equal(t, tc.unresolved, o.unresolved())
			}
		})
	}
}

// After a refusal what was put in is still there, under another number.
func TestARefusedTransferIsCorrected(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	got := o.post("/transfers", strings.Replace(order, "100.00", "1.00", 1)+"&SenderFirstName=Zo%C3%AB")
	assert.Equal(t, 422, got.status)
	assert.Contains(t, got.source, `value="Zoë"`)
	number := orderNo.FindStringSubmatch(got.source)
	require.Len(t, number, 2)
	require.Regexp(t, `^bo-[a-z0-9]{26}$`, number[1])
	got = o.post("/transfers", strings.Replace(order, "order-1", number[1], 1))
	assert.Contains(t, got.page, "The transfer was accepted Accepted by the service: status wait_process . Whether it was paid out is not known here. Reference: "+number[1])
}

// The number of the form that comes back follows the step: the same where it can be
// sent later, another where it never can, and none where nothing may be sent.
func TestTheNumberOfTheNextForm(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  cardwiretest.Fault
		number string
	}{
		"retry":     {cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited}, `^order-1$`},
		"fail":      {cardwiretest.Fault{Status: 200, Code: 422}, `^bo-[a-z0-9]{26}$`},
		"reconcile": {cardwiretest.Fault{Kind: cardwiretest.FaultReset}, `^$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := signedIn(t)
			o.fake.Fail("CreateTransfer", tc.fault, 1)
			number := orderNo.FindStringSubmatch(o.post("/transfers", order).source)
			assert.Regexp(t, tc.number, strings.Join(number[min(1, len(number)):], ""))
		})
	}
}

// Each kind has its words, also those that the fake service does not bring about.
func TestTheWordsOfWrites(t *testing.T) {
	t.Parallel()
	failure := func(op string, o cardwire.Outcome, err error) error {
		return &cardwire.Error{Op: op, Outcome: o, Err: err}
	}
	for want, err := range map[string]error{
		"The transfer was accepted The service accepted it, but the rest of its response could not be read. Do not do it again.": failure("CreateTransfer", cardwire.OutcomeExecuted, cardwire.ErrUnreadable),
		"The transfer is in progress Another call with this number has not ended. Send the same form again in a minute.":         failure("CreateTransfer", cardwire.OutcomeUnknown, &cardwire.DuplicateIntent{InProgress: true}),
		"This request is not valid A value has a form that the service never uses. Nothing was sent.":                            failure("CreateTransfer", cardwire.OutcomeNotSent, cardwire.ErrInvalidParams),
		"The transfer did not succeed Send it again: sending it twice does no harm.":                                             failure("UploadImage", cardwire.OutcomeUnknown, nil),
		"The transfer is unresolved It may have happened":                                                                        errors.New("of something else"),
	} {
		var b strings.Builder
		require.NoError(t, pages.ExecuteTemplate(&b, "said", judgeWrite("The transfer", err)))
		assert.Contains(t, visible(b.String()), want)
	}
}

// orderNo finds the order number in a form.
var orderNo = regexp.MustCompile(`name="MerchantOrderNo" type="text" value="([^"]+)"`)

// The page that says no has an address of its own: to load it again sends nothing,
// and offers the same number.
func TestARefusalIsLoadedAgain(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.Fail("CreateTransfer", cardwiretest.Fault{Status: 200, Code: 422}, 1)
	sent := o.confirmed(o.send("/transfers", order))
	require.Equal(t, 303, sent.status)
	address := sent.header.Get("Location")
	require.Regexp(t, `^/transfers\?said=[A-Z2-7]{26}$`, address)
	offered := o.get(address)
	assert.Equal(t, 422, offered.status)
	assert.Contains(t, offered.page, "What you entered is below, under a new order number.")
	number := orderNo.FindStringSubmatch(offered.source)
	require.Len(t, number, 2)
	again := strings.Replace(order, "order-1", number[1], 1)
	require.Contains(t, o.post("/transfers", again).page, "The transfer was accepted")

	assert.Equal(t, offered.source, o.get(address).source)
	assert.Contains(t, o.post("/transfers", again).page, "The transfer was done before")
	assert.Equal(t, 1, o.fake.Executions("CreateTransfer", ""), "under any number")
}

// Where a response was lost, and the same form then is not sent, its number must
// not make way for another.
func TestATransferThatIsNotSentKeepsItsNumber(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	require.Equal(t, 200, o.post("/transfers", order).status)
	_, err := o.db.ExecContext(t.Context(), "ALTER TABLE cardwire_intents RENAME TO away")
	require.NoError(t, err)
	got := o.post("/transfers", order)
	require.Equal(t, 503, got.status)
	assert.NotContains(t, got.page, "Nothing happened")
	_, err = o.db.ExecContext(t.Context(), "ALTER TABLE away RENAME TO cardwire_intents")
	require.NoError(t, err)
	number := orderNo.FindStringSubmatch(got.source)
	require.Len(t, number, 2)
	got = o.post("/transfers", strings.Replace(order, "order-1", number[1], 1))
	assert.Contains(t, got.page, "The transfer was done before")
	assert.Equal(t, 1, o.fake.Executions("CreateTransfer", ""), "under any number")
}

// What came of a write is for those who are signed in, and only as long as it is known.
func TestResults(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	sent := o.confirmed(o.send("/transfers", order))
	assert.Equal(t, 303, sent.status)
	address := sent.header.Get("Location")
	assert.Regexp(t, `^/transfers\?said=[A-Z2-7]{26}$`, address)
	assert.Contains(t, o.get(address).page, "The transfer was accepted")
	assert.Equal(t, 1, o.fake.Executions("CreateTransfer", ""), "after looking at its result")
	for _, other := range []string{"/result", "/result?said=x", "/transfers?said=x"} {
		got := o.get(other)
		assert.Equal(t, 404, got.status, other)
		assert.Contains(t, got.page, "This result is not kept any more", other)
	}
	o.cookie = nil
	assert.Equal(t, "/login", o.get(address).header.Get("Location"))
}

// The service's message is for the page, not for the log.
func TestTheServicesWordsAreNotLogged(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.Fail("CreateTransfer", cardwiretest.Fault{Status: 200, Code: 422, Message: "account 40817810 of Maria Ivanova is closed"}, 1)
	require.Contains(t, o.post("/transfers", order).page, "account 40817810 of Maria Ivanova is closed")
	assert.Regexp(t, `level=WARN msg="[^"]+" operation=CreateTransfer reference=order-1 outcome=refused step=fail status=200 code=422 `, o.log.String())
	assert.NotContains(t, o.log.String(), "40817810")
	assert.NotContains(t, o.log.String(), "Ivanova")
}

// Each field's error is beside it, and all of them come at once.
func TestFieldsOfATransfer(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	for form, want := range map[string]string{
		"TransferAmount=1.005":     "Transfer amount .+",
		"TransferAmount=-3":        "Transfer amount .+",
		"TransferAmount=0":         "Transfer amount .+",
		"TransferAmount=1e3":       `Transfer amount must be an amount such as 1250\.00`,
		"TransferAmount=":          `Transfer amount must be an amount such as 1250\.00`,
		"PayoutCurrency=E":         "Payout currency .+",
		"PayoutCurrency=+":         "Payout currency is missing",
		"MerchantOrderNo=":         "Order number .+",
		"SenderCountry=GBR":        "Sender country .+",
		"SenderIDType=x":           "Sender ID type .+",
		"SenderDateOfBirth=31.1.":  "Sender date of birth is not a valid date, as in 1990-05-17",
		"SenderAddress=%FF":        "Sender address .+UTF-8",
		"PurposeOfRemittance=gift": "Purpose .+",
	} {
		name, _, _ := strings.Cut(form, "=")
		values, err := url.ParseQuery(order)
		require.NoError(t, err)
		values.Del(name)
		got := o.post("/transfers", values.Encode()+"&"+form)
		assert.Equal(t, 422, got.status, form)
		assert.Regexp(t, `<p class="error" id="`+name+`-error">`+want+`\.</p>`, got.source, form)
		assert.Regexp(t, `name="`+name+`"[^>]*aria-describedby="`+name+`-error[^>]*aria-invalid="true"|name="`+name+`"[^>]*aria-describedby="`+name+`-hint `+name+`-error"[^>]*aria-invalid="true"`, got.source, form)
		assert.Regexp(t, `<li><a href="#`+name+`">`+want, got.source, form)
	}
	got := o.post("/transfers", "MerchantOrderNo=order-1&PayoutCurrency=EUR&TransferAmount=x&SenderCountry=1&ReceiverIDType=x&SenderDateOfBirth=x")
	assert.Equal(t, 4, strings.Count(got.source, `<p class="error"`))
	var inOrder []string
	for _, m := range regexp.MustCompile(`<li><a href="#([^"]+)">`).FindAllStringSubmatch(got.source, -1) {
		inOrder = append(inOrder, m[1])
	}
	assert.Equal(t, []string{"TransferAmount", "SenderDateOfBirth", "SenderCountry", "ReceiverIDType"}, inOrder, "as in the form")
	assert.Empty(t, o.fake.Ledger())
	assert.Zero(t, o.unresolved())
}

// Each field says what it expects, with the codes that the API publishes.
func TestWhatAFieldExpects(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	form := o.get("/transfers")
	for _, f := range forms["transfer"] {
		assert.Regexp(t, `name="`+f.Name+`"[^>]* aria-describedby="`+f.Name+`-hint"`, form.source)
		assert.Regexp(t, `<p class="hint" id="`+f.Name+`-hint">[^<]{10,}</p>`, form.source)
	}
	assert.Contains(t, form.source, `<option value="3" selected>3: C2C</option>`)
	assert.Contains(t, form.source, `<option value="1" selected>1: Bank Transfer</option>`)
	assert.Contains(t, form.page, "Payout currency required choose EUR GBP PHP INR CNY USD A code")
}

// A transfer is confirmed on a page of its own, which shows what will be sent, and
// nobody's account.
func TestATransferIsConfirmed(t *testing.T) {
	t.Parallel()
	const payee = "&ReceiverNativeFirstName=Zo%C3%AB&ReceiverNativeLastName=%C3%98deg%C3%A5rd&ReceiverBankAccountNumber=DE0012345678901234"
	o := signedIn(t)
	sent := o.send("/transfers", order+payee)
	require.Equal(t, 303, sent.status)
	address := sent.header.Get("Location")
	require.Regexp(t, `^/transfers/confirm\?said=[A-Z2-7]{26}$`, address)
	asked := o.get(address)
	assert.Equal(t, 200, asked.status)
	assert.Contains(t, asked.page, "Send this transfer? Amount 100.00 EUR Receiver Z••• Ø••• Account •••1234 Order number order-1 ")
	assert.Contains(t, asked.page, "Rate Fixed fee EUR C2C, Bank Transfer DEU 10 50000 0.0035 1.5 EUR C2C, Bank Transfer FRA 10 45000.50 0.004 1.5")
	assert.NotContains(t, asked.page, "GBP")
	for _, secret := range []string{"Zoë", "Ødegård", "DE00", "901234"} {
		assert.NotContains(t, asked.source, secret)
	}
	back := o.get("/transfers" + address[len("/transfers/confirm"):])
	assert.Equal(t, 200, back.status)
	assert.Equal(t, []string{"order-1"}, orderNo.FindStringSubmatch(back.source)[1:])
	assert.Contains(t, back.source, `value="DE0012345678901234"`)
	assert.Empty(t, o.fake.Ledger())

	assert.Contains(t, o.follow(o.confirmed(sent)).page, "The transfer was accepted")
	assert.Contains(t, o.follow(o.confirmed(sent)).page, "The transfer was done before", "a second click")
	assert.Equal(t, 1, o.fake.Executions("CreateTransfer", "order-1"))
}

func TestAConfirmationNeedsAForm(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	for _, got := range []response{o.get("/transfers/confirm"), o.get("/transfers/confirm?said=x"), o.post("/transfers/send", "said=x"), o.post("/transfers/send", order)} {
		assert.Equal(t, 404, got.status)
		assert.Contains(t, got.page, "This form is not kept any more Nothing was sent now.")
	}
	assert.Empty(t, o.fake.Ledger())
}

// What is not known of the fees does not keep a transfer from being confirmed.
func TestFeesThatAreNotKnown(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	address := o.send("/transfers", strings.Replace(order, "EUR", "JPY", 1)).header.Get("Location")
	assert.Contains(t, o.get(address).page, "The service publishes no fees for this currency.")
	o.fake.Fail("ListRemittanceCurrencies", cardwiretest.Fault{Kind: cardwiretest.FaultHTML}, -1)
	got := o.get(address)
	assert.Equal(t, 502, got.status)
	assert.Contains(t, got.page, "The service could not be read Nothing was changed. Try again in a moment. Why: ")
	assert.Contains(t, got.page, "Amount 100.00 JPY")
}

// A service that cannot be reached says why, on the page and in the log.
func TestAServiceThatIsNotReached(t *testing.T) {
	t.Parallel()
	for kind, why := range map[cardwiretest.FaultKind]string{
		cardwiretest.FaultReset: "connection reset by the peer",
		cardwiretest.FaultHTML:  "the response is HTML, not JSON: check the base URL and any proxy",
	} {
		o := signedIn(t)
		o.fake.Fail("ListCards", cardwiretest.Fault{Kind: kind, Status: http.StatusOK}, -1)
		got := o.get("/cards")
		assert.Equal(t, 502, got.status)
		assert.Contains(t, got.page, "The service could not be read Nothing was changed. Try again in a moment. Why: "+why+".")
		assert.Regexp(t, `level=WARN msg="read failed" operation=ListCards status=\d+ code=0 cause="`+why+`"`, o.log.String())
	}
}

// Where the service's currencies cannot be read, what was put in is not lost.
func TestWithoutCurrencies(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.Fail("ListRemittanceCurrencies", cardwiretest.Fault{Status: 500}, -1)
	got := o.get("/transfers")
	assert.Equal(t, 502, got.status)
	assert.Contains(t, got.page, "The service could not be read")
	got = o.post("/transfers", order+"&SenderCountry=GBR")
	assert.Contains(t, got.source, `id="SenderCountry-error"`)
	assert.Regexp(t, `name="PayoutCurrency" type="text" value="EUR"`, got.source)
	assert.Contains(t, got.source, `value="100.00"`)
	assert.Empty(t, o.fake.Ledger())
}

// All fields reach the service under their own names.
func TestAllFieldsOfATransferAreSent(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	form := o.get("/transfers")
	names := regexp.MustCompile(`name="([A-Z]\w+)"`).FindAllStringSubmatch(form.source, -1)
	require.Len(t, names, 25)
	values := url.Values{}
	for _, n := range names {
		values.Set(n[1], "1")
	}
	for name, v := range map[string]string{
		"MerchantOrderNo": "order-1", "PayoutCurrency": "EUR", "TransferAmount": "100", "TransferType": "3",
		"SenderDateOfBirth": "1990-05-17", "SenderNationality": "GB", "SenderCountry": "gb",
	} {
		values.Set(name, v)
	}
	got := o.post("/transfers", values.Encode())
	assert.Contains(t, got.page, "The transfer was accepted")
	requests := o.fake.Requests()
	assert.Equal(t, []string{
		"merchantOrderNo", "payoutCurrency", "transferType", "payoutMethod", "senderBeneficiaryRelationship", "transferAmount",
		"senderSourceOfFund", "purposeOfRemittance", "senderFirstName", "senderLastName", "senderGender", "senderMobileNumber",
		"senderIdType", "senderIdNumber", "senderDateOfBirth", "senderNationality", "senderIdIssueCountry", "senderCountry",
		"senderAddress", "receiverNativeFirstName", "receiverNativeLastName", "receiverIdType", "receiverIdNumber",
		"receiverMobileNumber", "receiverBankAccountNumber",
	}, requests[len(requests)-1].Fields)
}

// A browser that leaves does not make a transfer unresolved.
func TestABrowserThatLeaves(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	draft := strings.Replace(o.send("/transfers", order).header.Get("Location"), "/transfers/confirm?", "", 1)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/transfers/send", strings.NewReader(draft))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	assert.Contains(t, o.follow(o.ask(r)).page, "The transfer was accepted")
	r = httptest.NewRequestWithContext(ctx, http.MethodGet, "/cards", nil)
	assert.Equal(t, 502, o.ask(r).status)
}

// tried is what the page of what is unresolved sends along of a reference.
func (o *testOffice) tried(reference string) string {
	o.t.Helper()
	form := regexp.MustCompile(`name="op" value="([^"]+)">\s*<input type="hidden" name="reference" value="` + reference + `">\s*` +
		`<input type="hidden" name="try" value="([^"]+)">`).FindStringSubmatch(o.get("/unresolved").source)
	require.Len(o.t, form, 3)
	return url.Values{"op": {form[1]}, "reference": {reference}, "try": {form[2]}}.Encode()
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to string // what is changed in the form
		outcome  string
		status   int
		says     string
		left     int
		again    string
	}{
		"executed":    {"", "", "executed", 200, "Recorded as executed", 0, "The transfer was done before"},
		"refused":     {"", "", "refused", 200, "Recorded as refused", 0, "The transfer was accepted"},
		"no outcome":  {"", "", "", 422, "Nothing was recorded Say whether it was executed.", 1, "The transfer is still unresolved"},
		"unknown":     {"", "", "unknown", 422, "Nothing was recorded", 1, "The transfer is still unresolved"},
		"no such":     {"order-1", "order-2", "refused", 409, "Nothing was recorded It was resolved or sent again in the meantime: reload the page.", 1, "The transfer is still unresolved"},
		"another op":  {"CreateTransfer", "FreezeCard", "refused", 409, "resolved or sent again in the meantime: reload the page.", 1, "The transfer is still unresolved"},
		"another try": {"try=", "try=7", "refused", 409, "resolved or sent again in the meantime: reload the page.", 1, "The transfer is still unresolved"},
		"no try":      {"try=", "it=", "refused", 409, "resolved or sent again in the meantime: reload the page.", 1, "The transfer is still unresolved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := signedIn(t)
			o.fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
			o.post("/transfers", order)
			page := o.get("/unresolved").page
			assert.Contains(t, page, "Transfer order-1 100.00 EUR unresolved")
			assert.Contains(t, page, "No operation reads a transfer back: ask the service’s support whether it has this order number.")
			got := o.post("/unresolved", strings.Replace(o.tried("order-1"), tc.from, tc.to, 1)+"&outcome="+tc.outcome)
			assert.Equal(t, tc.status, got.status)
			assert.Contains(t, got.page, tc.says)
			assert.Equal(t, tc.left, o.unresolved())
			assert.Contains(t, o.post("/transfers", order).page, tc.again)
		})
	}
}

// One person records truly that the first try was refused; another says so later,
// from a page of that time, of a second try that was executed.
func TestAnOutcomeIsOfTheTryThatItIsAbout(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	o.post("/transfers", order)
	recorded := o.tried("order-1") + "&outcome=refused"
	require.Equal(t, 200, o.post("/unresolved", recorded).status)
	o.fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	require.Equal(t, 502, o.post("/transfers", order).status)

	got := o.post("/unresolved", recorded)
	assert.Equal(t, 409, got.status)
	assert.Contains(t, got.page, "Nothing was recorded It was resolved or sent again in the meantime: reload the page.")
	assert.Contains(t, got.page, "Transfer order-1 100.00 EUR unresolved")
	assert.Contains(t, o.post("/transfers", order).page, "The transfer is still unresolved")
	assert.Equal(t, 1, o.fake.Executions("CreateTransfer", "order-1"))
	assert.Equal(t, 200, o.post("/unresolved", o.tried("order-1")+"&outcome=executed").status, "of the page as it is now")
}

// What a call may still be waiting for is not resolved by hand; what a crash left
// open is.
func TestWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	now := time.Now()
	for reference, sendBy := range map[string]time.Time{"young": now.Add(time.Hour), "old": now.Add(-time.Hour)} {
		i := cardwire.Intent{Op: "FreezeCard", Reference: reference, BodySHA256: "00", Unique: true, Time: now, SendBy: sendBy}
		require.NoError(t, o.journal.Begin(t.Context(), i))
	}
	page := o.get("/unresolved").page
	assert.Contains(t, page, "1 in progress: a call may still be waiting")
	assert.NotContains(t, page, "Freeze young")
	assert.Contains(t, page, "Freeze old unresolved")
	assert.Contains(t, page, "Look at the card")
	young, err := o.journal.Lookup(t.Context(), "FreezeCard", "young")
	require.NoError(t, err)
	got := o.post("/unresolved", "op=FreezeCard&reference=young&outcome=refused&try="+young.Try)
	assert.Equal(t, 409, got.status)
	assert.Contains(t, got.page, "Nothing was recorded yet")
	assert.Equal(t, 200, o.post("/unresolved", o.tried("old")+"&outcome=refused").status)
	assert.Equal(t, 1, o.unresolved())
}

func TestWithoutAJournal(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	require.NoError(t, o.db.Close())
	for _, path := range []string{"/unresolved", "/"} {
		got := o.get(path)
		assert.Equal(t, 503, got.status, path)
		assert.Contains(t, got.page, "Whether anything is unresolved is not known.", path)
	}
	assert.Contains(t, o.log.String(), `msg="the journal could not be read" error=`)
	got := o.post("/unresolved", "op=CreateTransfer&reference=order-1&outcome=refused")
	assert.Equal(t, 503, got.status)
}

func TestFreeze(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.SetCard(`{"id":"a b?c#d","holder_username":"Amelia"}`)
	form := o.get("/cards/a%20b%3Fc%23d/freeze")
	require.Equal(t, 200, form.status)
	action := regexp.MustCompile(`action="(/cards/[^"]+)"`).FindStringSubmatch(form.source)
	id := regexp.MustCompile(`name="ClientTransactionID" value="([^"]+)"`).FindStringSubmatch(form.source)
	require.Len(t, action, 2)
	require.Len(t, id, 2)
	assert.NoError(t, uuid.Validate(id[1]))
	assert.NotContains(t, o.get("/cards/a%20b%3Fc%23d/freeze").source, id[1], "another form is another freeze")
	assert.Zero(t, o.fake.Executions("FreezeCard", ""))
	frozen := o.post(action[1], "ClientTransactionID="+id[1])
	assert.Contains(t, frozen.page, "The freeze was accepted")
	assert.Regexp(t, `Card \d{6}\*+\d{4} Status now frozen Details Look at the card`, frozen.page)
	assert.Contains(t, frozen.source, `<a href="/cards/a%20b%3Fc%23d">Look at the card</a>`)
	assert.Contains(t, o.post(action[1], "ClientTransactionID="+id[1]).page, "The freeze was done before")
	assert.Equal(t, "a b?c#d", o.fake.Ledger()[0].CardID)
	assert.Equal(t, 1, o.fake.Executions("FreezeCard", id[1]))
	assert.Contains(t, o.get("/cards/a%20b%3Fc%23d").page, "The card is blocked already.")
	again := o.get("/cards/a%20b%3Fc%23d/freeze")
	assert.Contains(t, again.page, "This card is blocked already")
	assert.NotContains(t, again.source, "ClientTransactionID", "nothing to freeze")

	o.fake.Fail("FreezeCard", cardwiretest.Fault{Kind: cardwiretest.FaultStatus, Status: 503, Executed: true}, 1)
	got := o.post("/cards/"+o.cardIDs()[0]+"/freeze", "ClientTransactionID="+uuid.NewString())
	assert.Equal(t, 502, got.status)
	assert.Contains(t, got.page, "The freeze is unresolved")
	assert.Equal(t, 404, o.get("/cards/nobody/freeze").status)
	assert.Equal(t, 422, o.post("/cards/nobody/freeze", "ClientTransactionID="+uuid.NewString()).status)
}

// cardIDs are those of the first page.
func (o *testOffice) cardIDs() (ids []string) {
	o.t.Helper()
	for _, m := range regexp.MustCompile(`href="/cards/([^"?/]+)"`).FindAllStringSubmatch(o.get("/cards").source, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

func TestFailedOperations(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	assert.Contains(t, o.post("/operations", "action=cancel&clientTransactionID="+failedTopUp).page, "The cancellation was accepted")
	assert.Contains(t, o.post("/operations", "action=retry&clientTransactionID=+"+failedFreeze+"+").page, "The retry was accepted")
	assert.Equal(t, 1, o.fake.Executions("CancelOperation", failedTopUp))
	assert.Equal(t, 1, o.fake.Executions("RetryOperation", failedFreeze))
	got := o.post("/operations", "action=cancel&clientTransactionID="+failedTopUp)
	assert.Equal(t, 422, got.status)
	assert.Contains(t, got.page, "The cancellation was refused")
	got = o.post("/operations", "action=cancel&clientTransactionID=7")
	assert.Equal(t, 422, got.status)
	assert.Contains(t, got.source, `id="clientTransactionID-error">Transaction ID `)
	o.fake.Fail("RetryOperation", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	assert.Contains(t, o.post("/operations", "action=retry&clientTransactionID="+failedFreeze).page, "The retry is unresolved")
	assert.Contains(t, o.get("/unresolved").page, "Retry "+failedFreeze+" unresolved")
}

// An operation may fail again and be retried again, but not while its last time is unresolved.
func TestAnUnresolvedRetryIsNotSentAgain(t *testing.T) {
	t.Parallel()
	const form = "action=retry&clientTransactionID="
	o := signedIn(t)
	o.fake.Fail("RetryOperation", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	assert.Contains(t, o.post("/operations", form+failedTopUp).page, "The retry is unresolved")
	for _, id := range []string{failedTopUp, strings.ToUpper(failedTopUp)} {
		got := o.post("/operations", form+id)
		assert.Equal(t, 409, got.status)
		assert.Contains(t, got.page, "The operation is still unresolved")
	}
	assert.Contains(t, o.post("/operations", form+failedFreeze).page, "The retry was accepted", "of another operation")
	assert.Len(t, o.fake.Requests(), 2)
	require.Equal(t, 200, o.post("/unresolved", o.tried(failedTopUp)+"&outcome=refused").status)
	assert.Contains(t, o.post("/operations", form+failedTopUp).page, "The retry was accepted")
}

// A retry and a cancellation contradict each other: neither is sent while it is
// unresolved what came of the other.
func TestAnOperationIsRetriedOrCancelled(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ first, op, then string }{
		"a cancellation after a retry": {"retry", "RetryOperation", "cancel"},
		"a retry after a cancellation": {"cancel", "CancelOperation", "retry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := signedIn(t)
			o.fake.Fail(tc.op, cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
			require.Equal(t, 502, o.post("/operations", "action="+tc.first+"&clientTransactionID="+failedTopUp).status)
			got := o.post("/operations", "action="+tc.then+"&clientTransactionID="+strings.ToUpper(failedTopUp))
			assert.Equal(t, 409, got.status)
			assert.Contains(t, got.page, "The operation is still unresolved It was retried or cancelled before, and how that ended is not known. This time nothing was sent.")
			assert.Equal(t, 1, o.writes())
			require.Equal(t, 200, o.post("/unresolved", o.tried(failedTopUp)+"&outcome=refused").status)
			assert.Equal(t, 200, o.post("/operations", "action="+tc.then+"&clientTransactionID="+failedTopUp).status)
		})
	}
}

func TestAnOperationIsNotRetriedAndCancelledAtOnce(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	journal := &careful{Journal: o.journal}
	for range 30 {
		intent := cardwire.Intent{Reference: uuid.NewString(), BodySHA256: "00", Time: time.Now()}
		begun := make(chan error)
		for _, op := range []string{"RetryOperation", "CancelOperation"} {
			go func() {
				i := intent
				i.Op = op
				begun <- journal.Begin(t.Context(), i)
			}()
		}
		one, other := <-begun, <-begun
		assert.True(t, (one == nil) != (other == nil), "one of them is begun: %v, %v", one, other)
	}
}

// What became of a freeze its own retry does not wait for.
func TestAnUnresolvedFreezeMayBeRetried(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	require.NoError(t, o.journal.Begin(t.Context(), cardwire.Intent{Op: "FreezeCard", Reference: failedFreeze, BodySHA256: "00", Unique: true, Time: time.Now()}))
	assert.Contains(t, o.post("/operations", "action=retry&clientTransactionID="+failedFreeze).page, "The retry was accepted")
}

// A form without a button's word asks for nothing.
func TestAnOperationWithoutAnAction(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	for _, action := range []string{"", "action=&", "action=delete&"} {
		got := o.post("/operations", action+"clientTransactionID="+failedTopUp)
		assert.Equal(t, 422, got.status, action)
		assert.Contains(t, got.page, "The form could not be read Nothing was sent.", action)
	}
	assert.Empty(t, o.fake.Requests())
	assert.Zero(t, o.unresolved())
}

// The other half of a second click, where it reaches another process.
func TestARetryThatIsUnderWayElsewhereIsNotSent(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	require.NoError(t, o.journal.Begin(t.Context(), cardwire.Intent{Op: "RetryOperation", Reference: failedTopUp, BodySHA256: "00", Time: time.Now()}))
	got := o.post("/operations", "action=retry&clientTransactionID="+failedTopUp)
	assert.Equal(t, 409, got.status)
	assert.Contains(t, got.page, "The operation is still unresolved")
	assert.Empty(t, o.fake.Requests())
}

func TestCards(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	assert.Contains(t, o.get("/cards").page, "30 cards, page 1 of 3")
	got := o.get("/cards?Status=0&page=2")
	assert.Contains(t, got.source, `rel="prev" href="?Status=0&amp;page=1"`)
	assert.NotContains(t, got.source, `rel="next"`)
	requests := o.fake.Requests()
	assert.Equal(t, "limit=***&page=***&status=***", requests[len(requests)-1].Query)
	assert.Contains(t, o.get("/cards?page=99").page, "There is no page 99: the last one is page 3 .")
	assert.Contains(t, o.get("/cards?page=99&Status=-1").source, `<a href="?Status=-1&amp;page=1">page 1</a>`)
	assert.Contains(t, o.get("/cards?CardBIN=999999").page, "No card matches.")
	for _, number := range []string{"-1", "0", "x", "2147483648", "99999999999999999999"} {
		assert.Contains(t, o.get("/cards?page="+number).page, "30 cards, page 1 of 3", number)
	}
	for query, want := range map[string]string{
		"Status=7": `id="Status-error">Status `, "Status=x": `id="Status-error">Status `, "CardBIN=x": `id="CardBIN-error">BIN `,
	} {
		got = o.get("/cards?" + query)
		assert.Equal(t, 422, got.status, query)
		assert.Contains(t, got.source, want, query)
	}
	o.fake.Handle("GET", "/cards", func(*http.Request) (int, string, any) {
		return 200, "success", json.RawMessage(`{"total":1,"per_page":12,"current_page":1,"last_page":1,"data":[
			{"id":"1","available":"1.000","pending":0,"frozen":0,"fee":"0.00","status":1}]}`)
	})
	got = o.get("/cards?Status=4")
	o.fake.Handle("GET", "/cards", nil)
	assert.Equal(t, 502, got.status)
	assert.Contains(t, got.page, "The service ignored what was asked")
	assert.NotContains(t, got.source, "<tbody>", "cards outside the filter")
	o.fake.Fail("ListCards", cardwiretest.Fault{Status: 401}, 1)
	assert.Contains(t, o.get("/cards").page, "The API key was not accepted")
	assert.Equal(t, 404, o.get("/cards/nobody").status)
	assert.Equal(t, 404, o.get("/cards/..%2Fbins").status)
}

// allNames is a profile that has a name for every parameter.
func allNames() cardwire.Profile {
	names := cardwire.DefaultProfile()
	names.SubAccountParam, names.CreatedFromParam, names.CreatedToParam = "sub", "from", "to"
	names.TransactedFromParam, names.TransactedToParam = "tx_from", "tx_to"
	return names
}

// rename makes the office know these names.
func (o *testOffice) rename(names cardwire.Profile) {
	o.t.Helper()
	client, err := connect(o.journal, o.office.log, names, o.fake)
	require.NoError(o.t, err)
	o.office.client, o.office.profile = client, names
}

// Cards can be filtered by each parameter that the profile has a name for, and a page
// of what was found keeps the filter.
func TestFilters(t *testing.T) {
	t.Parallel()
	names := allNames()
	fake := cardwiretest.New(cardwiretest.WithCards(30), cardwiretest.WithProfile(names))
	o := newTestOffice(t, fake)
	few := o.office.filters()
	o.rename(names)
	o.signIn()
	got := o.get("/cards?SubAccountID=sub-1&CreatedFrom=2024-03-01&CreatedTo=2025-03-01&TransactedFrom=2024-01-01&TransactedTo=2025-12-31&Status=0")
	assert.Equal(t, 200, got.status)
	query := fake.Requests()[0].Query
	for _, name := range []string{"sub", "from", "to", "tx_from", "tx_to", "status"} {
		assert.Regexp(t, `(^|&)`+name+`=`, query)
	}
	assert.Regexp(t, `name="CreatedFrom" type="date" value="2024-03-01"`, got.source)
	got = o.get("/cards?CreatedFrom=2023-01-01&CreatedTo=2026-01-01")
	assert.Contains(t, got.source, `rel="next" href="?CreatedFrom=2023-01-01&amp;CreatedTo=2026-01-01&amp;page=2"`)
	for query, want := range map[string]string{
		"CreatedFrom=1.2.": "Created from is not a valid date, as in 1990-05-17",
		"CreatedFrom=2025-01-02&CreatedTo=2025-01-01":  "Created to is before CreatedFrom",
		"TransactedTo=2025-02-30&SubAccountID=sub%201": "Transaction to is not a valid date",
	} {
		got := o.get("/cards?" + query)
		assert.Equal(t, 422, got.status, query)
		assert.Contains(t, got.page, want)
	}
	assert.Len(t, o.office.filters(), 7)
	assert.Len(t, few, 2, "the names that DefaultProfile knows")
}

func TestBINs(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.SetBIN(`{"id":900,"bin":"400012","name":"Fees & <b>more</b>","network":"","country":"","currency":"EUR","create_amount":1.50,
		"foreign_fee_config":{"0-100":{"fee":0.50,"fee_rate":0.015,"extra_fee":0.10,"extra_fee_rate":0}}}`)
	page := o.get("/bins").page
	assert.Contains(t, page, "Fees & <b>more</b> open 400012 · · · share Creation 1.50 EUR")
	assert.Contains(t, page, "0-100 0.50 0.015 0.10 0")
	assert.Contains(t, page, "Reisekarte Größe M under maintenance")
}

func TestImages(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	upload := func(field, name string, size int) response {
		var b bytes.Buffer
		form := multipart.NewWriter(&b)
		part, err := form.CreateFormFile(field, name)
		require.NoError(t, err)
		_, err = io.CopyN(part, endless{}, int64(size))
		require.NoError(t, err)
		require.NoError(t, form.Close())
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/images", &b)
		r.Header.Set("Content-Type", form.FormDataContentType())
		return o.follow(o.ask(r))
	}
	got := upload("File", "front.png", 768<<10)
	assert.Contains(t, got.page, "The upload was accepted")
	require.Len(t, o.fake.Ledger(), 1)
	assert.Equal(t, int64(768<<10), o.fake.Ledger()[0].Size)
	assert.Contains(t, got.page, "Attachment key "+o.fake.Ledger()[0].ID)
	for _, tc := range []struct {
		field, name string
		size        int
		says        string
	}{
		{"File", "front.png", 0, "Image cannot be sent: Size must be "},
		{"File", `a"b.png`, 10, "Image cannot be sent: Filename "},
		{"Other", "front.png", 10, "Image did not arrive: choose one of at most 10 MB."},
		{"File", "front.png", maxImage, "Image did not arrive: choose one of at most 10 MB."},
	} {
		got := upload(tc.field, tc.name, tc.size)
		assert.Equal(t, 422, got.status, tc.says)
		assert.Contains(t, got.page, tc.says)
	}
	assert.Contains(t, o.post("/images", "File=x").page, "Image did not arrive")
	o.fake.Fail("UploadImage", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	assert.Contains(t, upload("File", "front.png", 10).page, "The upload did not succeed Send it again: sending it twice does no harm.")
	assert.Len(t, o.fake.Ledger(), 1)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestOverview(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	o.fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1)
	o.post("/transfers", order)
	capacity := regexp.MustCompile(`30 cards See the cards (\d+) cards of capacity .* 1 unresolved See what to do`).FindStringSubmatch(o.get("/").page)
	require.Len(t, capacity, 2)
	n, err := strconv.Atoi(capacity[1])
	require.NoError(t, err)
	assert.Positive(t, n)
	o.fake.Fail("CardCapacity", cardwiretest.Fault{Status: 500}, -1)
	got := o.get("/")
	assert.Equal(t, 502, got.status)
	assert.Contains(t, got.page, "The service could not be read")
}

// No page and no log shows a number, though the service sends them in full.
func TestNoCardNumberIsShown(t *testing.T) {
	cardwiretest.NoLeaks(t)
	o := signedIn(t)
	const number, hostile = "4288379977000992", `<script>alert("4288379977000992")</script>`
	o.fake.SetCard(fmt.Sprintf(`{"id":"c1","card_no":%q,"cvv":"907","holder_username":%q,"label":"<b>"}`, number, hostile))
	list := o.get("/cards?page=3")
	assert.Contains(t, list.page, "428837******0992")
	detail := o.get("/cards/c1")
	for _, page := range []response{list, detail, o.get("/cards/c1/freeze")} {
		assert.Equal(t, 1, strings.Count(page.source, number), "only the holder's name, which is the service's string")
		assert.NotContains(t, page.source, "<script")
		assert.NotContains(t, page.source, "907")
	}
	assert.NotRegexp(t, `\d{13}`, strings.ReplaceAll(list.source, number, ""))
	o.post("/transfers", order)
	assert.NotRegexp(t, `\d{13}`, o.log.String())
	assert.NotContains(t, o.log.String(), cardwiretest.DefaultKey)
	assert.Contains(t, o.log.String(), "operation=CreateTransfer")
}

// The client never holds what no page may show, and tells of responses that deviate.
func TestTheClient(t *testing.T) {
	t.Parallel()
	o := newTestOffice(t, cardwiretest.New())
	o.fake.Fail("ListCards", cardwiretest.Fault{Kind: cardwiretest.FaultDrift}, 1)
	page, err := o.client.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	assert.True(t, page.Cards[0].Number.IsMasked())
	assert.True(t, page.Cards[0].CVV.IsMasked())
	assert.Contains(t, o.log.String(), "the response deviates from the API")
}

// A journal that cannot take a result is told of, and the transfer shows as
// unresolved rather than as nothing.
func TestAResultThatIsNotRecorded(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	_, err := o.db.ExecContext(t.Context(), `CREATE TRIGGER full BEFORE UPDATE ON cardwire_intents BEGIN SELECT RAISE(ABORT, 'full'); END`)
	require.NoError(t, err)
	assert.Contains(t, o.post("/transfers", order).page, "The transfer was accepted")
	assert.Contains(t, o.log.String(), "the journal did not record a result")
	got := o.post("/transfers", order)
	assert.Equal(t, 409, got.status)
	assert.Contains(t, got.page, "The transfer is in progress")
	assert.Equal(t, []string{"order-1"}, orderNo.FindStringSubmatch(got.source)[1:])
	for _, statement := range []string{"DROP TRIGGER full", "UPDATE cardwire_intents SET send_by = begun_at"} { // once the call may send no more
		_, err := o.db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	assert.Contains(t, o.get("/unresolved").page, "Transfer order-1 100.00 EUR unresolved")
}

// postgresVariable holds how to connect to a PostgreSQL server for tests.
const postgresVariable = "CARDWIRE_TEST_POSTGRES"

// postgresOffice is a signed-in office with its journal in these schemas of PostgreSQL.
func postgresOffice(t *testing.T, searchPath string) *testOffice {
	t.Helper()
	if os.Getenv(postgresVariable) == "" {
		t.Skip(postgresVariable + " is not set; scripts/postgres starts a server")
	}
	source, err := url.Parse(os.Getenv(postgresVariable))
	require.NoError(t, err)
	parameters := source.Query()
	parameters.Set("search_path", searchPath)
	source.RawQuery = parameters.Encode()
	o := testOfficeWith(t, cardwiretest.New(), "", source.String())
	o.signIn()
	return o
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	o := postgresOffice(t, "public")
	number := newOrder()
	form := strings.Replace(order, "order-1", number, 1)
	o.fake.Fail("CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 1)
	assert.Contains(t, o.post("/transfers", form).page, "The transfer is unresolved")
	assert.Contains(t, o.post("/transfers", form).page, "The transfer is still unresolved")
	assert.Contains(t, o.get("/unresolved").page, "Transfer "+number+" 100.00 EUR unresolved")
	assert.Contains(t, o.post("/unresolved", o.tried(number)+"&outcome=executed").page, "Recorded as executed")
	assert.Contains(t, o.post("/transfers", form).page, "The transfer was done before")
	assert.Equal(t, 1, o.fake.Executions("CreateTransfer", number))
}

// Whether a call may still be under way the journal's clock says, not the one here.
func TestTheClockOfTheJournal(t *testing.T) {
	t.Parallel()
	for name, offset := range map[string]string{"behind": "-1 hour", "ahead": "1 hour"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema := "clock_" + strings.ToLower(rand.Text())
			admin := postgresOffice(t, "public").db
			for _, statement := range []string{
				"CREATE SCHEMA " + schema,
				"CREATE FUNCTION " + schema + ".statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE " +
					"AS $$SELECT pg_catalog.statement_timestamp() + interval '" + offset + "'$$",
				"CREATE FUNCTION " + schema + ".clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE " +
					"AS $$SELECT pg_catalog.clock_timestamp() + interval '" + offset + "'$$",
			} {
				_, err := admin.ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			t.Cleanup(func() { _, _ = admin.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE") })
			o := postgresOffice(t, schema+",pg_catalog")
			now := time.Now()
			for reference, sendBy := range map[string]time.Time{"young": now.Add(time.Minute), "old": now} {
				i := cardwire.Intent{Op: "FreezeCard", Reference: reference, BodySHA256: "00", Unique: true, Time: now, SendBy: sendBy}
				require.NoError(t, o.journal.Begin(t.Context(), i))
			}
			page := o.get("/unresolved").page
			assert.Contains(t, page, "Freeze old unresolved")
			assert.Contains(t, page, "1 in progress")
			young, err := o.journal.Lookup(t.Context(), "FreezeCard", "young")
			require.NoError(t, err)
			got := o.post("/unresolved", "op=FreezeCard&reference=young&outcome=refused&try="+young.Try)
			assert.Contains(t, got.page, "Nothing was recorded yet")
			assert.Equal(t, 200, o.post("/unresolved", o.tried("old")+"&outcome=refused").status)
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	for _, path := range []string{"/", "/cards", "/login", "/nowhere", "/static/style.css"} {
		h := o.get(path).header
		assert.Equal(t, "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'", h.Get("Content-Security-Policy"), path)
		assert.Equal(t, "same-origin", h.Get("Referrer-Policy"), path)
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "no-store", h.Get("Cache-Control"), path)
	}
	for _, path := range []string{"/", "/cards", "/login", "/transfers", "/unresolved", "/bins", "/images", "/operations"} {
		source := o.get(path).source
		assert.NotRegexp(t, `<script|<style|\sstyle=|\son\w+=`, source, path)
		assert.NotRegexp(t, `https?://`, source, path)
	}
}

// Other sites cannot make a signed-in browser send anything.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	for name, header := range map[string][2]string{
		"fetch metadata": {"Sec-Fetch-Site", "cross-site"}, "same site": {"Sec-Fetch-Site", "same-site"}, "origin": {"Origin", "https://evil.example"},
	} {
		for _, path := range []string{"/transfers", "/unresolved", "/login", "/logout"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(order))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set(header[0], header[1])
			got := o.ask(r)
			assert.Equal(t, 403, got.status, name+path)
			assert.Contains(t, got.page, "This came from another site", name+path)
		}
	}
	assert.Empty(t, o.fake.Ledger())
	assert.Equal(t, 200, o.get("/").status, "still signed in")
}

func TestTheDoor(t *testing.T) {
	t.Parallel()
	o := newTestOffice(t, cardwiretest.New())
	for _, path := range []string{"/", "/cards", "/cards/c1", "/unresolved", "/transfers", "/nowhere"} {
		got := o.get(path)
		assert.Equal(t, 303, got.status, path)
		assert.Equal(t, "/login", got.header.Get("Location"), path)
	}
	assert.Equal(t, 303, o.post("/transfers", order).status)
	assert.Empty(t, o.fake.Requests())

	for _, form := range []string{"user=amelia&password=wrong", "user=nobody&password=correct+horse+battery", ""} {
		got := o.post("/login", form)
		assert.Equal(t, 403, got.status, form)
		assert.Nil(t, got.cookie, form)
		assert.Contains(t, got.page, "The user name or the password is wrong.")
	}
	refused := o.post("/login", wrongPassword)
	assert.Contains(t, refused.source, `name="user" type="text" value="amelia"`, "the name is still there")
	assert.NotContains(t, refused.source, "wrong\"")
	first := o.post("/login", rightPassword).cookie
	require.NotNil(t, first)
	assert.Equal(t, http.SameSiteStrictMode, first.SameSite)
	assert.True(t, first.HttpOnly)
	assert.Equal(t, int(deviceTime.Seconds()), first.MaxAge)
	assert.Regexp(t, `^[A-Z2-7]{26}\.[0-9a-f]{64}$`, first.Value)
	assert.NotContains(t, o.log.String(), first.Value)
	second := o.post("/login", rightPassword).cookie
	require.NotNil(t, second)
	assert.NotEqual(t, first.Value, second.Value)

	o.cookie = first
	assert.Equal(t, 200, o.get("/").status)
	assert.Equal(t, 303, o.post("/logout", "").status)
	assert.Equal(t, 303, o.get("/").status, "the session of the first has ended")
	o.cookie = second
	assert.Equal(t, 200, o.get("/").status, "that of the second has not")
	assert.NotContains(t, o.log.String(), "nobody")
}

// Who guesses is refused, but keeps out neither another address nor a browser that has
// signed in before.
func TestStrangersLockOutNobody(t *testing.T) {
	t.Parallel()
	who := testAccount(t)
	synctest.Test(t, func(t *testing.T) { strangersLockOutNobody(t, newDoor(t, who)) })
}

func strangersLockOutNobody(t *testing.T, o *testOffice) {
	t.Helper()
	for range 7 {
		assert.Equal(t, 303, o.post("/login", rightPassword).status, "what does not fail does not count")
	}
	device := o.post("/login", rightPassword).cookie
	refused := func(form string) bool { return o.post("/login", form).status == 429 }
	guess := func(from, form string) {
		o.from = from
		for range 5 {
			assert.Equal(t, 403, o.post("/login", form).status, from)
		}
	}
	guess("192.0.2.1", wrongPassword)
	got := o.post("/login", rightPassword)
	assert.Equal(t, 429, got.status, "the sixth try at once")
	assert.Equal(t, "10", got.header.Get("Retry-After"))
	assert.Contains(t, got.page, "Too many tries Wait ten seconds, then sign in again.")
	assert.True(t, refused("user=nobody&password=x"), "under another name")
	o.from = "192.0.2.2"
	assert.False(t, refused(rightPassword), "another address")

	for _, from := range []string{"192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6"} {
		guess(from, wrongPassword)
	}
	o.from = "192.0.2.7"
	assert.True(t, refused(rightPassword), "five addresses have guessed at this name")
	assert.False(t, refused("user=nobody&password=x"), "another name")
	forged := *device
	forged.Value = "A" + device.Value
	o.cookie = &forged
	assert.True(t, refused(rightPassword), "a cookie that was not issued here")
	o.cookie = device
	assert.False(t, refused(rightPassword), "a known device")
	guess("192.0.2.8", wrongPassword)
	assert.True(t, refused(rightPassword), "nor may it guess for ever")
	o.cookie = nil
	time.Sleep(10 * time.Second)
	assert.False(t, refused(rightPassword), "after the ten seconds that it was told to wait")
}

// A device is known also after a restart, until the password changes.
func TestADeviceOutlivesTheProgram(t *testing.T) {
	t.Parallel()
	who, changed := testAccount(t), testAccount(t)
	synctest.Test(t, func(t *testing.T) {
		before := newDoor(t, who)
		before.signIn()
		for name, now := range map[string]account{"the same password": who, "another hash": changed} {
			o := newDoor(t, now)
			for range 6 {
				o.post("/login", wrongPassword)
			}
			o.cookie = before.cookie
			assert.Equal(t, "/login", o.get("/").header.Get("Location"), "%s: the session is over", name)
			assert.Equal(t, name == "the same password", o.post("/login", rightPassword).status == 303, name)
		}
	})
}

func TestFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f failures
		for range 5 {
			assert.True(t, f.add("amelia", 1, 5))
		}
		assert.False(t, f.add("amelia", 1, 5))
		time.Sleep(10 * time.Second)
		assert.True(t, f.add("amelia", 1, 5), "one each ten seconds")
		assert.False(t, f.add("amelia", 1, 5))
		assert.True(t, f.add("amelia", -1, 5))
		assert.True(t, f.add("amelia", 1, 5), "what was taken back")
		time.Sleep(failureTime)
		assert.True(t, f.add("amelia", 5, 5))
	})
}

// However many addresses and names are tried, memory does not grow, and what was counted
// before is not forgotten for them.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f failures
		allowed := 0
		for i := range maxFailures + 50 {
			if f.add(strconv.Itoa(i), 5, 5) {
				allowed++
			}
		}
		assert.Equal(t, maxFailures+1, allowed)
		assert.Len(t, f.until, maxFailures+1)
		assert.False(t, f.add("0", 1, 5))
		time.Sleep(failureTime)
		assert.True(t, f.add("zoe", 1, 5))
		assert.Len(t, f.until, 1)
	})
}

func TestWhereABrowserIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		host, from string
		forwarded  []string
		want       string
	}{
		"no proxy":                {"", "127.0.0.1:9", []string{"192.0.2.1"}, "127.0.0.1/32"},
		"a proxy":                 {"office.example", "10.0.0.1:9", []string{"192.0.2.1"}, "192.0.2.1/32"},
		"made up before it":       {"office.example", "10.0.0.1:9", []string{"198.51.100.1, 192.0.2.1"}, "192.0.2.1/32"},
		"made up in a line":       {"office.example", "10.0.0.1:9", []string{"198.51.100.1", "192.0.2.1"}, "192.0.2.1/32"},
		"a proxy that is silent":  {"office.example", "10.0.0.1:9", nil, "10.0.0.1/32"},
		"IPv6":                    {"office.example", "10.0.0.1:9", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
		"IPv4, written as IPv6":   {"", "[::ffff:192.0.2.1]:9", nil, "192.0.2.1/32"},
		"a zone":                  {"", "[fe80::1%eth0]:9", nil, "fe80::/64"},
		"something else entirely": {"office.example", "10.0.0.1:9", []string{"unknown"}, "invalid Prefix"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = tc.from, tc.forwarded
		assert.Equal(t, tc.want, (&office{host: tc.host}).address(r), name)
	}
}

// A site whose name leads to this address does not get to see a page.
func TestForeignHosts(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	for _, tc := range []struct {
		own, host string
		want      int
	}{
		{"", "localhost:8080", 200}, {"", "LOCALHOST", 200}, {"", "127.0.0.1:9", 200}, {"", "[::1]:8080", 200},
		{"", "evil.example", 421}, {"", "evil.example:8080", 421}, {"", "localhost.evil.example", 421}, {"", "127.0.0.1.evil.example", 421},
		{"", "192.0.2.1:8080", 421}, {"", "localhost:x", 421}, {"", " ", 421},
		{"office.example", "Office.Example", 303}, {"office.example:8443", "office.example:8443", 303},
		{"office.example", "evil.example", 421}, {"office.example", "localhost", 421}, {"office.example", "office.example.evil", 421},
	} {
		o.office.host, o.host = tc.own, tc.host
		got := o.get("/")
		assert.Equal(t, tc.want, got.status, tc)
		if tc.want == 421 {
			assert.Equal(t, "This host is not served here: open the address that the program printed, and let a proxy pass on the Host header.", got.page)
			for _, path := range []string{"/login", "/static/style.css", "/nowhere"} {
				assert.Equal(t, 421, o.get(path).status, path)
			}
			assert.Equal(t, 421, o.post("/transfers", order).status)
		}
	}
	assert.Empty(t, o.fake.Ledger())
}

// Over https only this very host can set the cookie.
func TestTheCookieOverHTTPS(t *testing.T) {
	t.Parallel()
	o := newTestOffice(t, cardwiretest.New())
	o.office.host, o.host = "office.example", "office.example"
	o.signIn()
	assert.Equal(t, "__Host-backoffice", o.cookie.Name)
	assert.True(t, o.cookie.Secure)
	assert.Equal(t, "/", o.cookie.Path)
	assert.Empty(t, o.cookie.Domain)
	assert.Equal(t, 200, o.get("/").status)
	o.cookie.Name = "backoffice"
	assert.Equal(t, 303, o.get("/").status, "a cookie that plain http may have set")

	o = signedIn(t)
	assert.Equal(t, "backoffice", o.cookie.Name)
	assert.False(t, o.cookie.Secure)
}

// What a page needs is for everybody, and nothing beside it.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	o := newTestOffice(t, cardwiretest.New())
	for _, path := range []string{"/static/style.css", "/static/icon.svg"} {
		assert.Equal(t, 200, o.get(path).status, path)
	}
	for _, dots := range []string{"%2e%2e/", "..%2f", "%2e%2e%2f", "%2E%2E/%2E%2E/", ".%2e/", "x/%2e%2e/%2e%2e/", "%2e%2e/static/"} {
		got := o.get("/static/" + dots + "templates/login.html")
		assert.Equal(t, 404, got.status, dots)
		assert.NotContains(t, got.source, "define", dots)
	}
}

// A browser has one session: to sign in again ends the one before.
func TestSigningInAgain(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	before := o.cookie
	o.signIn()
	assert.Equal(t, 200, o.get("/").status)
	o.cookie = before
	assert.Equal(t, "/login", o.get("/").header.Get("Location"))
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	who := testAccount(t)
	synctest.Test(t, func(t *testing.T) {
		o := newDoor(t, who)
		o.signIn()
		for _, step := range []struct {
			pass     time.Duration
			signedIn bool
		}{{sessionTime - time.Second, true}, {2 * time.Second, false}} {
			time.Sleep(step.pass)
			synctest.Wait()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.AddCookie(o.cookie)
			assert.Equal(t, step.signedIn, o.office.signedIn(r), step.pass)
			_, known := o.office.device(r)
			assert.True(t, known, step.pass)
		}
	})
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	amount := functions["amount"].(func(decimal.Decimal) string)
	assert.Equal(t, "12.500", amount(decimal.RequireFromString("12.500")))
	assert.Equal(t, "1000", amount(decimal.New(1, 3)))
}

// A form that is too large is not read.
func TestLargeForms(t *testing.T) {
	t.Parallel()
	o := signedIn(t)
	got := o.post("/transfers", order+"&SenderAddress="+strings.Repeat("x", maxForm))
	assert.Equal(t, 400, got.status)
	assert.Contains(t, got.page, "The form could not be read Nothing was sent.")
	assert.Empty(t, o.fake.Ledger())
}
