package main

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// numbersOf are the numbers of the orders that a list of the API has.
func (s *shop) numbersOf(path string) (numbers []string, next string) {
	s.t.Helper()
	var l struct {
		Payouts []struct{ Order string }
		Next    string
	}
	require.NoError(s.t, json.Unmarshal([]byte(s.get(path)), &l))
	for _, o := range l.Payouts {
		numbers = append(numbers, o.Order)
	}
	return numbers, l.Next
}

// What is to be done has the oldest first, what ended the newest; days are those of UTC.
func TestOrdersAreListedByAge(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for number, created := range map[string]string{
			"Z": "2026-01-31T23:59:59Z", "B": "2026-02-01T00:00:00Z",
			"A": "2026-02-01T23:59:59Z", "C": "2026-02-02T00:00:00Z",
		} {
			s.order(number)
			at, err := time.Parse(time.RFC3339, created)
			require.NoError(t, err)
			s.exec(`UPDATE payouts SET created_at = $1 WHERE order_no = $2`, at, number)
		}
		for path, want := range map[string]string{
			"/payouts?state=queued":                         "Z B A C",
			"/payouts":                                      "C A B Z",
			"/payouts?day=2026-02-01":                       "A B",
			"/payouts?day=2026-02-01&state=queued":          "B A",
			"/payouts?day=2026-02-03":                       "",
			"/payouts?state=queued&after=B":                 "A C",
			"/payouts?state=queued&before=A":                "Z B",
			"/payouts?after=A":                              "B Z",
			"/payouts?before=B":                             "C A",
			"/payouts?find=B,Z+%0AX%3BA":                    "A B Z",
			"/payouts?find=B+Z&state=submitted":             "",
			"/payouts?find=B+Z+C&day=2026-02-01&after=none": "",
		} {
			numbers, _ := s.numbersOf(path)
			assert.Equal(t, want, strings.Join(numbers, " "), path)
		}
		for path, why := range map[string]string{
			"/payouts?day=2026-02-30": "as in 2026-01-31",
			"/?day=yesterday":         "as in 2026-01-31",
			"/payouts?find=B;A":       "cannot be read",
			"/payouts?find=%ff":       "UTF-8",
			"/orders.csv?state=lost":  "state must be one of",
			"/payouts?find=" + strings.Repeat("x,", mostFind) + "y": "at most 500 numbers",
		} {
			r := s.call("GET", path, "")
			assert.Equal(t, 422, r.StatusCode, path)
			assert.Contains(t, textOf(t, r), why)
		}
	})
}

// The pages of a list lead forth and back, whichever way it is read.
func TestPagesLeadForthAndBack(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A", "B", "C", "D", "E")
		for _, state := range []string{queued, ""} { // the oldest first, and the newest
			want := []string{"A B", "C D", "E"}
			if state == "" {
				want = []string{"E D", "C B", "A"}
			}
			var pages []listing
			f := filter{State: state}
			for range want {
				l, err := s.list(t.Context(), f, "/", 2)
				require.NoError(t, err)
				pages = append(pages, l)
				f.After = l.Orders[len(l.Orders)-1].Order
			}
			for i, l := range pages {
				assert.Equal(t, want[i], joined(l))
				assert.Equal(t, i > 0, l.Previous != "", "%d has a page before it", i)
				assert.Equal(t, i < 2, l.Next != "", "%d has a page after it", i)
			}
			for i := 2; i > 0; i-- {
				back, err := url.Parse(pages[i].Previous)
				require.NoError(t, err)
				l, err := s.list(t.Context(), filter{State: state, Before: back.Query().Get("before")}, "/", 2)
				require.NoError(t, err)
				assert.Equal(t, want[i-1], joined(l))
				assert.Equal(t, i-1 > 0, l.Previous != "")
				assert.NotEmpty(t, l.Next)
			}
		}
		assert.Regexp(t, `rel="prev" href="/orders/B".*\n.*rel="next" href="/orders/D"`, s.get("/orders/C"))
		assert.NotContains(t, s.get("/orders/A"), `rel="prev"`)
	})
}

func joined(l listing) string {
	var numbers []string
	for _, o := range l.Orders {
		numbers = append(numbers, o.Order)
	}
	return strings.Join(numbers, " ")
}

// The money of what has not ended, and of a day, to the cent.
func TestTheTotals(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		for number, amount := range map[string]int64{"A": 1010, "B": 1020, "C": 1001, "D": 99999999999999} {
			p := paramsFor(number)
			p.TransferAmount = decimal.New(amount, -2)
			if number == "C" {
				p.PayoutCurrency = "USD"
			}
			_, err := s.create(t.Context(), p)
			require.NoError(t, err)
		}
		assert.Zero(t, s.work("B"))
		live, err := s.liveTotals(t.Context())
		require.NoError(t, err)
		var all []string
		for _, sum := range live {
			all = append(all, sum.State+" "+sum.Amount()+" "+sum.Currency)
		}
		assert.Equal(t, []string{"queued 1000000000010.09 EUR", "queued 10.01 USD"}, all)
		assert.Equal(t, map[string]int64{queued: 3}, countsOf(live))
		today := s.get("/?day=" + time.Now().UTC().Format(time.DateOnly))
		assert.Regexp(t, `(?s)Created on 20.*queued</span></th><td class="money">2</td>`, today)
		assert.Regexp(t, `(?s)Created on 20.*submitted</span>.*10\.20 `, today)
		assert.NotContains(t, s.get("/?day=2026-01-31"), "Created on")
		assert.Contains(t, s.get("/"), "Orders that have not ended")
	})
}

// The file has all orders of the filter, and nothing that a spreadsheet calculates.
func TestTheExport(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("=1+1")
		s.lost("A-2", true)
		s.order("A-3")
		r := s.call("GET", "/orders.csv?state=queued&before=A-3&after=A-3", "")
		assert.Equal(t, "text/csv; charset=utf-8", r.Header.Get("Content-Type"))
		rows, err := csv.NewReader(strings.NewReader(textOf(t, r))).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 3)
		assert.Equal(t, []string{"order", "state", "amount", "currency"}, rows[0][:4])
		assert.Equal(t, []string{"'=1+1", "queued", "12.50", "EUR"}, rows[1][:4])
		assert.Equal(t, "A-3", rows[2][0], "all of the filter, wherever the page is")
		text := s.get("/orders.csv")
		assert.Equal(t, 4, strings.Count(text, "\n"))
		assert.Contains(t, text, "unknown outcome")
		assert.NotContains(t, text, "CANARY", "nobody's data")
	})
}

// A file of which the end cannot be read is no file.
func TestAnExportThatEndsEarlyBreaksTheConnection(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for i := range 10*pageSize + 1 {
		s.exec(`INSERT INTO payouts (order_no, body, body_sha256, amount, currency, job_id, created_at)
			VALUES ($1, '', '', '1.00', 'EUR', 0, $2)`, i, time.Now().UTC())
	}
	breaks := func() { s.exec(`ALTER TABLE payouts RENAME TO gone`) }
	w := &breaking{ResponseRecorder: httptest.NewRecorder(), breaks: breaks}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://127.0.0.1/orders.csv", nil)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { s.routes("").ServeHTTP(w, r) })
	assert.Contains(t, s.log.String(), "an export ended early")
}

// breaking does something where the first bytes are written.
type breaking struct {
	*httptest.ResponseRecorder
	breaks func()
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.breaks != nil {
		b.breaks()
	}
	b.breaks = nil
	return b.ResponseRecorder.Write(p)
}

// How far the queue is, and why it is not.
func TestTheQueueShowsItsProgress(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("A-1", "A-2", "A-3", "A-4")
		now := time.Now().UTC()
		for _, job := range []struct {
			number string
			ended  time.Time
		}{{"A-1", now}, {"A-2", now.Add(-time.Hour)}} {
			assert.Zero(t, s.work(job.number))
			s.exec(`UPDATE river_job SET state = 'completed', finalized_at = $1
				WHERE id = (SELECT job_id FROM payouts WHERE order_no = $2)`, job.ended, job.number)
		}
		assert.JSONEq(t, `{"waiting":2,"last_minute":1}`, s.get("/queue"))
		assert.Contains(t, s.get("/"), "2 orders are waiting; 1 ended in the last minute. At this rate that takes 2 min.")
		until := time.Date(2126, 1, 31, 15, 4, 5, 0, time.UTC)
		require.NoError(t, s.pause(t.Context(), pause{Why: "the key was refused", Until: until}))
		p, err := s.pausedNow(t.Context())
		require.NoError(t, err)
		assert.JSONEq(t, `{"paused":"the key was refused; the next try is at 2126-01-31 15:04:05 UTC",
			"since":"`+p.Since.UTC().Format(time.RFC3339Nano)+`",
			"until":"2126-01-31T15:04:05Z","waiting":2,"last_minute":1}`, s.get("/queue"))
		assert.Contains(t, s.get("/"), "2 orders are waiting; 1 ended in the last minute.</p>")
	})
}

// Several orders are resolved at once, each for itself: what one cannot does not stop the others.
func TestSeveralOrdersAreResolvedAtOnce(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		chosen := url.Values{}
		for _, number := range []string{"A-1", "A-2", "A-3", "A-4"} {
			s.lost(number, false)
			chosen.Add("listed", s.found(number).Call+" "+number)
		}
		assert.Equal(t, 4, strings.Count(s.get("/?state=unresolved&still=on"), `type="checkbox" name="order"`))
		assert.NotContains(t, s.get("/?state=unresolved"), `type="checkbox"`, "a page that refreshes has no forms")
		say := func(more string) *httptest.ResponseRecorder {
			return s.post("/resolve", chosen.Encode()+"&by=Ada&why=ticket+7&as_of="+
				url.QueryEscape(time.Now().Format(time.RFC3339Nano))+more)
		}
		w := say("&outcome=not_executed")
		assert.Equal(t, 422, w.Code)
		assert.Contains(t, w.Body.String(), "choose the orders first", "those that were listed were not chosen")
		assert.Equal(t, 422, s.post("/resolve", chosen.Encode()+"&all=yes&outcome=executed&by=Ada").Code, "why?")

		s.resolves("A-4", "send_again")
		s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultReset})
		assert.Zero(t, s.work("A-4"), "another call")
		w = say("&all=yes&outcome=not_executed")
		assert.Equal(t, 409, w.Code)
		assert.Contains(t, w.Body.String(), "1 of 4 were not recorded")
		assert.Regexp(t, `A-4</a></th><td class="long">[^<]*another call is on record`, w.Body.String())
		assert.Equal(t, []string{failed, failed, failed, unresolved}, s.statesOf("A-1", "A-2", "A-3", "A-4"))
		w = say("&all=yes&outcome=executed") // a mistake
		assert.Equal(t, []any{303, "/?state=unresolved"}, []any{w.Code, w.Header().Get("Location")})
		assert.Equal(t, submitted, s.state("A-4"))
	})
}

// To pay again is asked once more, with the amount and the name: nothing changes before that.
func TestToPayAgainIsAskedOnceMore(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	p := paramsFor("A-1")
	p.ReceiverNativeFirstName, p.ReceiverNativeLastName = "Grace", "Hopper"
	_, err := s.create(t.Context(), p)
	require.NoError(t, err)
	s.fails(lostResponse)
	assert.Zero(t, s.work("A-1"))
	s.settle()
	asked := time.Now().UTC().Format(time.RFC3339Nano)
	form := "order=" + s.found("A-1").Call + "+A-1&outcome=send_again&by=Ada&why=ticket+7&as_of=" + asked
	w := s.post("/resolve", form)
	assert.Equal(t, 200, w.Code)
	assert.Contains(t, w.Body.String(), "Pay 12.50 EUR again?")
	assert.Contains(t, w.Body.String(), "Grace Hopper, account …NARY")
	assert.Contains(t, w.Body.String(), `name="as_of" value="`+asked)
	assert.Equal(t, unresolved, s.state("A-1"))
	assert.Contains(t, s.get("/orders/A-1"), "Pay 12.50 EUR to Grace Hopper, account …NARY again: A-1 was not")
	assert.NotContains(t, s.get("/payouts/A-1")+s.get("/?still=on"), "Hopper", "only where it is needed")
	w = s.post("/resolve", form+"&sure=yes")
	assert.Equal(t, []any{303, "/orders/A-1"}, []any{w.Code, w.Header().Get("Location")})
	assert.Equal(t, queued, s.state("A-1"))
	assert.Equal(t, 404, s.post("/resolve", strings.Replace(form, "A-1", "A-9", 1)).Code)
}

func TestAnAge(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 119 * time.Second: "119 s", 2 * time.Minute: "2 min", 119 * time.Minute: "119 min",
		2 * time.Hour: "2 h", 47 * time.Hour: "47 h", 48 * time.Hour: "2 d", 1000 * time.Hour: "41 d",
	} {
		assert.Equal(t, want, age(d))
	}
}

// What a file of ours has is the number again.
func TestAGuardedCellIsReadBack(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"A-1": "A-1", "'A-1": "'A-1", "-7": "'-7", "'-7": "''-7", " =1": "' =1", "''@x": "'''@x", "+1": "'+1",
	} {
		written := guarded([]string{cell})[0]
		assert.Equal(t, want, written)
		assert.Equal(t, cell, unguarded(written))
	}
}
