package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Whatever happens in whatever order: nothing is paid twice, failed though executed, or
// lost. With thousands of sequences:
//
//	go test ./payouts -run TestNothingIsPaidTwice -rapid.checks 5000
func TestNothingIsPaidTwice(t *testing.T) {
	t.Parallel()
	newModel(t).tellStories(t)
}

var byRiver = flag.Int("river", 3, "how many sequences TestNothingIsPaidTwiceByRiver makes")

// The same where River works the jobs, which is slower:
//
//	go test ./payouts -run TestNothingIsPaidTwiceByRiver -args -river 50
func TestNothingIsPaidTwiceByRiver(t *testing.T) {
	checks := flag.Lookup("rapid.checks") // of all tests: those that are parallel come later
	defer func(before string) { require.NoError(t, checks.Value.Set(before)) }(checks.Value.String())
	require.NoError(t, checks.Value.Set(strconv.Itoa(*byRiver)))
	m := newModel(t)
	m.byRiver = true
	m.tellStories(t)
}

func (m *model) tellStories(t *testing.T) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		m.begin(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":                              func(*rapid.T) { m.check() },
			"a call is lost for good":       m.loseCall,
			"a call is turned away":         m.turnAway,
			"a person finds out":            m.findOut,
			"create":                        m.create,
			"deliver":                       m.deliver,
			"deliver and die during it":     m.dieDuringTheCall,
			"deliver and die after it":      m.dieAfterTheCall,
			"begin a call":                  m.takeOff,
			"end a call":                    m.land,
			"look, and freeze":              m.freeze,
			"thaw":                          m.thaw,
			"execute late":                  func(rt *rapid.T) { m.executeLate(rt, false) },
			"time passes":                   m.passTime,
			"ask the service":               m.ask,
			"record what it said":           m.tell,
			"send an old form again":        m.tellAgain,
			"record a mistake":              m.mistake,
			"record what became of it":      m.sayMoney,
			"cancel":                        m.cancelOne,
			"close a number":                m.closeOne,
			"another program":               m.otherProgram,
			"pause":                         m.pauseQueue,
			"purge":                         m.purgeAll,
			"resume":                        m.resumeQueue,
			"River's page resumes":          m.resumeInRiver,
			"River loses a job":             m.loseJob,
			"look after the queue":          m.lookAfter,
			"the journal fails":             m.failJournal,
			"the journal forgets":           m.forgetOne,
			"the journal forgets a retry":   m.forgetRetry,
			"the journal is restored alone": m.restoreJournal,
			"back up":                       func(*rapid.T) { m.copyTables("", "backup_", everyTable) },
			"everything is restored":        m.restoreEverything,
			"reconcile":                     func(rt *rapid.T) { m.reconcile(rt, rapid.Bool().Draw(rt, "again")) },
			"decide about what is held":     m.decideHeld,
		})
		m.settleAll()
	})
}

// model is the program, the service that it calls, and what is known of both.
type model struct {
	*shop
	wire    *wire
	rt      *rapid.T
	byRiver bool // jobs are worked by River, which is started and stopped for each

	ahead       time.Duration      // of the machine's clock: time passes by moving what the tables have
	numbers     []string           // of orders
	flying      map[string]*flight // calls that have reached the service and have no response
	frozen      map[string]time.Time
	frozenOrder map[string]order
	late        []lateCall
	heard       []said
	gone        map[string]bool // the merchant's own records have it as failed or canceled, and a restore forgot that
	forgetful   bool            // the journal lost something: another program trusts it alone
	restored    bool            // and everything did
	mistaken    map[string]bool // somebody recorded what is wrong, or the journal lost what was right
	stays       map[string]bool // it was told to have ended, or is held: it is queued only if a person says so
}

// wire is the service: what it executed, and what it does with the next request.
type wire struct {
	mu       sync.Mutex
	executed map[string]int // by number and amount
	next     func(payment string) ending
	calls    int
}

// ending is what becomes of a request.
type ending struct {
	name     string
	executed bool
	late     bool // it is executed after the client has gone, or never
	response string
}

func (e ending) String() string { return e.name }

const ok = `200 {"code":200,"msg":"success",
	"data":{"merchant_order_no":%q,"api_order_no":"T-%[1]s","status":"wait_process"}}`

var endings = []ending{
	{"accepted", true, false, ok},
	{"refused", false, false, `422 {"code":422,"msg":"the account is closed"}`},
	{"rate limited", false, false, `429 {"code":429,"msg":"slow down"}`},
	{"a refused key", false, false, `401 {"code":401,"msg":"who is it"}`},
	{"forbidden", false, false, `403 {"code":403,"msg":"no"}`},
	{"an error, executed", true, false, `500 {"code":500,"msg":"?"}`},
	{"an error", false, false, `500 {"code":500,"msg":"?"}`},
	{"lost, executed", true, false, ""},
	{"lost", false, false, ""},
	{"lost, maybe executed late", false, true, ""},
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	number, amount := between(string(body), `"merchantOrderNo":"`), between(string(body), `"transferAmount":"`)
	w.mu.Lock()
	w.calls++
	next := w.next
	w.next = nil
	w.mu.Unlock()
	end := endings[0]
	if next != nil {
		end = next(number + " " + amount)
	}
	if end.executed {
		w.execute(number + " " + amount)
	}
	if end.response == "" {
		return nil, errors.New("connection reset")
	}
	status, text, _ := strings.Cut(end.response, " ")
	if end.response == ok {
		text = fmt.Sprintf(text, number)
	}
	code := map[string]int{"200": 200, "401": 401, "403": 403, "422": 422, "429": 429, "500": 500}[status]
	return &http.Response{
		StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(text)), Request: r,
	}, nil
}

func between(text, before string) string {
	_, after, _ := strings.Cut(text, before)
	found, _, _ := strings.Cut(after, `"`)
	return found
}

func (w *wire) execute(payment string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.executed[payment]++
}

// own is how often an order was executed.
func (w *wire) own(number string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.executed[number+" 12.50"]
}

// flight is a call that waits for its response.
type flight struct {
	payment  string
	end      chan ending
	done     chan struct{} // closed when err is set
	err      error
	deadline time.Time // until when the service may execute it
	executed bool
}

// lateCall is a request that the service may still execute: until then, or for as long as it lists
// it as pending.
type lateCall struct {
	payment   string
	until     time.Time
	isPending bool
}

// said is what the service's support said of an order.
type said struct {
	number, call string
	executed     bool
	asOf         time.Time
}

const modelLate = 7 * time.Minute // not the default

func newModel(t *testing.T) *model {
	t.Helper()
	m := &model{wire: &wire{}}
	set := settingsOf(filepath.Join(t.TempDir(), "payouts.db"))
	set.timeout, set.late, set.giveUpAfter = time.Minute, modelLate, giveUpAfter
	set.options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: m.wire})}
	m.shop = openShop(t, set)
	m.exec(`PRAGMA synchronous = OFF`)
	for _, table := range everyTable {
		for _, prefix := range []string{"empty_", "backup_", "crash_", "older_"} {
			m.exec(`CREATE TABLE ` + prefix + table + ` AS SELECT * FROM ` + table)
		}
	}
	return m
}

var (
	journalTables = []string{"cardwire_intents", "cardwire_intents_history"}
	everyTable    = append([]string{"payouts", "payouts_history", "river_job", "river_queue"}, journalTables...)
)

// copyTables replaces the tables of one prefix by those of another.
func (m *model) copyTables(from, to string, tables []string) {
	tx, err := m.db.BeginTx(context.Background(), nil)
	require.NoError(m.rt, err)
	defer func() { _ = tx.Rollback() }() // where a statement fails
	for _, table := range tables {
		statement := `DELETE FROM ` + to + table + `; INSERT INTO ` + to + table + ` SELECT * FROM ` + from + table
		_, err = tx.ExecContext(context.Background(), statement)
		require.NoError(m.rt, err)
	}
	require.NoError(m.rt, tx.Commit())
}

// begin forgets what an earlier sequence left.
func (m *model) begin(rt *rapid.T) {
	m.rt, m.shop.t = rt, rt
	m.wire.executed, m.wire.next = map[string]int{}, nil
	m.ahead, m.numbers, m.late, m.heard, m.forgetful = 0, nil, nil, nil, false
	m.frozenOrder, m.gone = map[string]order{}, map[string]bool{}
	m.restored, m.stays = false, map[string]bool{}
	m.flying, m.frozen, m.mistaken = map[string]*flight{}, map[string]time.Time{}, map[string]bool{}
	m.paused.Store(false)
	m.troubles.Store(0)
	m.copyTables("empty_", "", everyTable)
	m.copyTables("empty_", "backup_", everyTable)
	m.copyTables("empty_", "older_", journalTables)
	rt.Cleanup(func() { // a sequence that failed leaves no goroutine
		for _, f := range m.flying {
			f.end <- ending{}
			<-f.done
		}
	})
}

// now is the time of the story.
func (m *model) now() time.Time { return time.Now().Add(m.ahead) }

// one draws an order.
func (m *model) one(rt *rapid.T) string {
	if len(m.numbers) == 0 {
		rt.SkipNow()
	}
	return rapid.SampledFrom(m.numbers).Draw(rt, "order")
}

func (m *model) create(rt *rapid.T) {
	number := rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "order")
	m.createOf(rt, number, rapid.SampledFrom([]string{"12.50", "12.50", "77.00"}).Draw(rt, "amount"))
}

func (m *model) createOf(rt *rapid.T, number, amount string) {
	body := `{"order":"` + number + `","transfer":{"payoutCurrency":"EUR","transferAmount":"` + amount + `"}}`
	known := slices.Contains(m.numbers, number)
	if !known && amount != "12.50" {
		rt.SkipNow()
	}
	want := 202
	if amount != "12.50" {
		want = 409
	}
	assert.Equal(rt, want, m.call("POST", "/payouts", body).StatusCode)
	if !known {
		m.numbers = append(m.numbers, number)
	}
}

// runJob delivers the order's job as River does, once more perhaps.
func (m *model) runJob(number string) {
	m.ramp.SetLimit(rate.Inf) // the rate after a pause is TestTheQueueIsLookedAfter's
	p, err := m.pausedNow(context.Background())
	require.NoError(m.rt, err)
	if m.byRiver && p.Why == "" { // which fetches no job while the queue is paused
		m.runByRiver(m.found(number).JobID)
		m.hear(number)
		return
	}
	err = (&submitter{service: m.service}).Work(context.Background(), jobOf(number))
	m.ended(number, err)
}

// runByRiver lets River run this job, and no other.
func (m *model) runByRiver(job int64) {
	m.exec(`UPDATE river_job SET state = 'scheduled', scheduled_at = '2999-01-01' WHERE state = 'available'`)
	m.exec(`UPDATE river_job SET state = 'available', scheduled_at = created_at, finalized_at = NULL
		WHERE id = $1`, job)
	ctx, cancel := context.WithTimeout(context.Background(), waitFor)
	defer cancel()
	events, unsubscribe := m.river.Subscribe(river.EventKindJobCompleted, river.EventKindJobSnoozed,
		river.EventKindJobFailed, river.EventKindJobCancelled)
	defer unsubscribe()
	require.NoError(m.rt, m.river.Start(ctx))
	select {
	case e := <-events:
		assert.Equal(m.rt, job, e.Job.ID)
		assert.Contains(m.rt, []river.EventKind{river.EventKindJobCompleted, river.EventKindJobSnoozed}, e.Kind)
	case <-ctx.Done():
		m.rt.Fatalf("River did not run the job")
	}
	require.NoError(m.rt, m.river.Stop(ctx))
}

func (m *model) ended(number string, err error) {
	if _, snoozes := errors.AsType[*rivertype.JobSnoozeError](err); err != nil && !snoozes {
		m.rt.Fatalf("the job of %s failed: %v", number, err)
	}
	if err == nil {
		m.exec(`UPDATE river_job SET state = 'completed', finalized_at = created_at
			WHERE id = (SELECT job_id FROM payouts WHERE order_no = $1)`, number)
		m.hear(number)
	}
}

// hear keeps in mind that an order was told to have ended, or to be in conflict.
func (m *model) hear(numbers ...string) {
	for _, number := range numbers {
		o := m.found(number)
		m.stays[number] = m.stays[number] || o.Ended() || o.State == conflicted
	}
}

// drawEnd draws what becomes of the next request.
func (m *model) drawEnd(rt *rapid.T) ending {
	end := rapid.SampledFrom(endings).Draw(rt, "response")
	m.nextIs(end)
	return end
}

func (m *model) nextIs(end ending) {
	m.wire.mu.Lock()
	defer m.wire.mu.Unlock()
	m.wire.next = func(payment string) ending {
		if end.late {
			m.late = append(m.late, lateCall{payment: payment, until: m.now().Add(m.timeout + m.service.late)})
		}
		return end
	}
}

func (m *model) deliver(rt *rapid.T) {
	number := m.one(rt)
	m.unpause()
	before, calls := m.state(number), m.wire.calls
	end := m.drawEnd(rt)
	m.runJob(number)
	m.wire.next = nil
	if m.wire.calls == calls {
		return
	}
	assert.Equal(rt, queued, before, "what is sent was queued")
	want := []string{unresolved}
	switch end.name {
	case "accepted":
		want = []string{submitted}
	case "refused":
		want = []string{failed}
	case "rate limited", "a refused key", "forbidden":
		want = []string{queued, failed} // after its day
	}
	assert.Contains(rt, want, m.state(number), end.name)
}

// loseCall has no response come, and nothing be executed late.
func (m *model) loseCall(rt *rapid.T) { m.lose(m.one(rt)) }

func (m *model) lose(number string) {
	m.deliverTo(number, "lost")
	m.pass(m.rt, modelLate+2*time.Minute)
}

// turnAway delivers an order, and the service refuses to take it now.
func (m *model) turnAway(rt *rapid.T) { m.deliverTo(m.one(rt), "forbidden") }

// deliverTo delivers an order of which that becomes, if it is sent.
func (m *model) deliverTo(number, name string) {
	end := endings[slices.IndexFunc(endings, func(e ending) bool { return e.name == name })]
	m.unpause()
	m.nextIs(end)
	m.runJob(number)
	m.wire.next = nil
}

// unpause ends a pause, so that what follows is sent. A hold stays.
func (m *model) unpause() {
	if p, err := m.pausedNow(context.Background()); err == nil && p.Why != "" && p.Why != onHold {
		m.resumeQueue(m.rt)
	}
}

// dieDuringTheCall kills the process once the service has the request.
func (m *model) dieDuringTheCall(rt *rapid.T) {
	number := m.one(rt)
	m.ramp.SetLimit(rate.Inf)
	m.drawEnd(rt)
	end, reached := m.wire.next, false
	m.wire.next = func(payment string) ending {
		m.copyTables("", "crash_", everyTable)
		reached = true
		return end(payment)
	}
	_ = (&submitter{service: m.service}).Work(context.Background(), jobOf(number))
	if reached {
		m.copyTables("crash_", "", everyTable)
	}
	m.wire.next = nil
}

// dieAfterTheCall kills the process once the journal has the result.
func (m *model) dieAfterTheCall(rt *rapid.T) {
	number := m.one(rt)
	o, err := m.take(context.Background(), number)
	require.NoError(rt, err)
	if o.State != queued {
		return
	}
	m.drawEnd(rt)
	_, _ = m.client.CreateTransfer(context.Background(), paramsOfModel(number))
	m.wire.next = nil
}

func paramsOfModel(number string) cardwire.TransferParams {
	amount := decimal.New(1250, -2)
	return cardwire.TransferParams{MerchantOrderNo: number, PayoutCurrency: "EUR", TransferAmount: amount}
}

// purgeAll removes what was sent for all that ended.
func (m *model) purgeAll(rt *rapid.T) {
	before := map[string]string{}
	for _, number := range m.numbers {
		before[number] = m.state(number)
	}
	require.NoError(rt, m.purge(rt.Context()))
	for _, number := range m.numbers {
		assert.Equal(rt, before[number], m.state(number))
		m.stays[number] = m.stays[number] || m.found(number).Body == ""
	}
}

// takeOff begins a call that has reached the service.
func (m *model) takeOff(rt *rapid.T) {
	number := m.one(rt)
	if m.flying[number] != nil {
		rt.SkipNow()
	}
	deadline := m.now().Add(m.timeout + m.service.late)
	f := &flight{end: make(chan ending, 1), done: make(chan struct{}), deadline: deadline}
	reached := make(chan string, 1)
	m.ramp.SetLimit(rate.Inf)
	m.wire.next = func(payment string) ending {
		reached <- payment
		return <-f.end
	}
	go func() {
		defer close(f.done)
		f.err = (&submitter{service: m.service}).Work(context.Background(), jobOf(number))
	}()
	select {
	case f.payment = <-reached:
		m.flying[number] = f
	case <-f.done:
		m.ended(number, f.err)
	}
	m.wire.next = nil
}

// land ends a call, or its process.
func (m *model) land(rt *rapid.T) {
	number := m.one(rt)
	f := m.flying[number]
	if f == nil {
		rt.SkipNow()
	}
	delete(m.flying, number)
	end := rapid.SampledFrom(endings).Draw(rt, "response")
	died := rapid.Bool().Draw(rt, "the process dies")
	switch late := m.now().After(f.deadline); {
	case f.executed: // the service did it meanwhile
		end.executed, end.late = false, false
		if end.response != ok {
			end.response = ""
		}
	case late && (end.executed || end.late):
		end = ending{}
	case end.late:
		m.late = append(m.late, lateCall{payment: f.payment, until: f.deadline})
	}
	if died {
		m.copyTables("", "crash_", everyTable)
	}
	f.end <- end
	<-f.done
	if died {
		m.copyTables("crash_", "", everyTable)
		return
	}
	m.ended(number, f.err)
}

// freeze stops a worker between its look at the order and its call.
func (m *model) freeze(rt *rapid.T) {
	number := m.one(rt)
	if _, is := m.frozen[number]; is || m.paused.Load() {
		rt.SkipNow()
	}
	o, err := m.take(context.Background(), number)
	require.NoError(rt, err)
	if o.State == queued {
		m.frozen[number], m.frozenOrder[number] = m.now(), o
	}
}

// thaw has it go on, while its job has time left.
func (m *model) thaw(rt *rapid.T) {
	number := m.one(rt)
	since, is := m.frozen[number]
	if !is {
		rt.SkipNow()
	}
	delete(m.frozen, number)
	ctx, cancel := context.WithDeadline(context.Background(), since.Add(m.jobTimeout()-m.ahead))
	defer cancel()
	m.drawEnd(rt)
	_, err := m.client.CreateTransfer(ctx, paramsOfModel(number))
	_, _, err = m.follow(context.Background(), m.frozenOrder[number], err)
	assert.NoError(rt, err)
	m.hear(number)
	m.wire.next = nil
}

// executeLate executes what the service got before, or drops it.
func (m *model) executeLate(rt *rapid.T, all bool) {
	left := m.late
	m.late = nil
	for _, call := range left {
		switch {
		case m.now().After(call.until) && !call.isPending:
		case rapid.Bool().Draw(rt, "is executed late"):
			m.wire.execute(call.payment)
		case call.isPending || !all:
			m.late = append(m.late, call)
		}
	}
	for _, f := range m.flying {
		if !f.executed && m.now().Before(f.deadline) && rapid.Bool().Draw(rt, "is executed") {
			f.executed = true
			m.wire.execute(f.payment)
		}
	}
}

// passTime moves all times, so that more of it has passed.
func (m *model) passTime(rt *rapid.T) {
	m.pass(rt, rapid.SampledFrom([]time.Duration{
		time.Second, time.Minute + time.Second, modelLate, modelLate + 2*time.Minute, giveUpAfter + time.Minute,
	}).Draw(rt, "by"))
}

func (m *model) pass(rt *rapid.T, by time.Duration) {
	m.executeLate(rt, by >= modelLate)
	m.ahead += by
	back := fmt.Sprintf("-%.3f seconds", by.Seconds())
	const micro = `strftime('%Y-%m-%dT%H:%M:%f', %C, $1) || '000Z'`
	move := func(table string, columns ...string) {
		var set []string
		for _, c := range columns {
			set = append(set, c+" = "+strings.ReplaceAll(micro, "%C", c))
		}
		m.exec(`UPDATE `+table+` SET `+strings.Join(set, ", "), back)
	}
	for _, prefix := range []string{"", "backup_", "older_"} {
		move(prefix+"cardwire_intents", "time", "send_by", "settled_by", "ended_at")
	}
	for _, prefix := range []string{"", "backup_"} {
		move(prefix+"payouts", "created_at", "missed_at", "retried_at", "said_at")
	}
	p, err := m.pausedNow(rt.Context())
	require.NoError(rt, err)
	if p.Why == "" {
		return
	}
	require.NoError(rt, m.change(rt.Context(), func(p *pause) {
		p.Since = p.Since.Add(-by)
		if !p.Until.IsZero() {
			p.Until = p.Until.Add(-by)
		}
	}))
}

// ask looks at an order, and asks the service's support, which knows nothing of what is pending.
func (m *model) ask(rt *rapid.T) {
	number := m.one(rt)
	if m.isPending(number) {
		rt.SkipNow()
	}
	m.heard = append(m.heard, m.askAbout(number))
}

func (m *model) isPending(number string) bool {
	return slices.ContainsFunc(m.late, func(call lateCall) bool {
		return call.isPending && strings.HasPrefix(call.payment, number+" ")
	})
}

func (m *model) askAbout(number string) said {
	assert.Equal(m.rt, 200, m.shop.call("GET", "/payouts/"+number, "").StatusCode)
	return said{number, m.found(number).Call, m.wire.own(number) > 0, m.now()}
}

// tell records what support said, also long ago.
func (m *model) tell(rt *rapid.T) {
	if len(m.heard) == 0 {
		rt.SkipNow()
	}
	m.record(rt, rapid.SampledFrom(m.heard).Draw(rt, "what was said"))
}

func (m *model) record(rt *rapid.T, heard said) int {
	outcome := "executed"
	if !heard.executed {
		outcome = rapid.SampledFrom([]string{"not_executed", "send_again"}).Draw(rt, "what follows")
	}
	if m.gone[heard.number] && outcome == "send_again" { // by the merchant's own records
		outcome = "not_executed"
	}
	return m.recordAs(heard, outcome)
}

// recordAs records what a person says, which changes nothing of another program's request. Of another
// call, or before the service has had its time, it changes something only if it was executed.
func (m *model) recordAs(heard said, outcome string) int {
	const body = `{"call":%q,"outcome":%q,"as_of":%q,"by":"Ada","why":"ticket 7"}`
	asOf := heard.asOf.Add(-m.ahead).UTC().Format(time.RFC3339Nano)
	before, entry := m.ofJournal(heard.number)
	r := m.resolveBody(heard.number, fmt.Sprintf(body, heard.call, outcome, asOf))
	assert.Contains(m.rt, []int{200, 404, 409, 422}, r.StatusCode)
	isDenial := outcome == "not_executed" || outcome == "send_again"
	isLate := before.Call != "" && before.Call != heard.call
	isEarly := heard.asOf.Add(-m.ahead).Before(before.DenyFrom.Time)
	if before.IsOther || isDenial && (isLate || isEarly) {
		_, after := m.ofJournal(heard.number)
		assert.Equal(m.rt, entry, after)
	}
	assert.False(m.rt, r.StatusCode == 200 && outcome == "send_again" && before.HasFailed, "it was told that it failed")
	if r.StatusCode == 200 {
		delete(m.mistaken, heard.number)
		m.stays[heard.number] = m.stays[heard.number] && outcome != "send_again"
	}
	return r.StatusCode
}

// ofJournal is an order, if it exists, and what the journal has of its number.
func (m *model) ofJournal(number string) (order, sqljournal.Entry) {
	o, _ := m.find(context.Background(), number)
	e, err := m.journal.Lookup(context.Background(), operation, number)
	if !errors.Is(err, sqljournal.ErrNoIntent) {
		require.NoError(m.rt, err)
	}
	return o, e
}

// findOut asks the service, and records what it says.
func (m *model) findOut(rt *rapid.T) {
	m.ask(rt)
	m.record(rt, m.heard[len(m.heard)-1])
}

// tellAgain has a person send a form that was open while a colleague had the order sent again, and
// that call was lost too, with what support says now.
func (m *model) tellAgain(rt *rapid.T) {
	number := m.one(rt)
	if m.lose(number); m.isPending(number) {
		return
	}
	old := m.askAbout(number)
	if !old.executed {
		m.recordAs(old, "send_again")
	}
	m.lose(number)
	m.record(rt, said{number, old.call, m.wire.own(number) > 0, m.now()})
}

// mistake records "executed" of what was not, or not yet.
func (m *model) mistake(rt *rapid.T) {
	number := m.one(rt)
	want := map[string]int{unresolved: 200, conflicted: 409}[m.state(number)]
	if want == 0 || m.wire.own(number) > 0 {
		rt.SkipNow()
	}
	assert.Equal(rt, want, m.recordAs(m.askAbout(number), "executed"))
	m.mistaken[number] = m.mistaken[number] || want == 200
}

func (m *model) sayMoney(rt *rapid.T) {
	number := m.one(rt)
	before := m.state(number)
	said := rapid.SampledFrom([]string{paid, returned}).Draw(rt, "said")
	status := m.resolveAs(number, said).StatusCode
	isPaid := slices.Contains([]string{submitted, paid, returned}, before)
	assert.Equal(rt, isPaid, status == 200, before)
	if isPaid {
		assert.Equal(rt, said, m.state(number))
	}
}

func (m *model) cancelOne(rt *rapid.T) {
	number := m.one(rt)
	before := m.state(number)
	status := m.cancelAs(number).StatusCode
	can := slices.Contains([]string{queued, held, conflicted, canceled, failed}, before)
	assert.Equal(rt, can, status == 200, before)
	if after := m.state(number); can && before != failed {
		assert.Equal(rt, canceled, after)
	} else {
		assert.Equal(rt, before, after)
	}
	if can && m.wire.own(number) == 0 {
		m.gone[number] = true
	}
}

// closeOne closes a number that the merchant's own records have as failed or canceled, whether
// its order is here or not. Where it is not, the journal alone knows, and is backed up.
func (m *model) closeOne(rt *rapid.T) {
	number := rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "order")
	if m.closeNumber(context.Background(), number, "Ada", "our own records") != nil {
		return
	}
	if m.wire.own(number) == 0 {
		m.gone[number] = true
	}
	if !slices.Contains(m.numbers, number) {
		m.copyTables("", "backup_", everyTable)
	}
}

// otherProgram has another program send another body under the same number, or that of an order, which
// is then looked after.
func (m *model) otherProgram(rt *rapid.T) {
	number := rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "order")
	params := paramsOfModel(number)
	isKnown := slices.Contains(m.numbers, number)
	if !isKnown || m.forgetful || rapid.Bool().Draw(rt, "another body") { // it trusts the journal alone
		params.TransferAmount = decimal.New(9900, -2)
	}
	m.drawEnd(rt)
	_, _ = m.client.CreateTransfer(context.Background(), params)
	m.wire.next = nil
	require.NoError(rt, m.sweep(rt.Context()))
	m.hear(m.numbers...)
}

func (m *model) pauseQueue(rt *rapid.T) {
	require.NoError(rt, m.pause(rt.Context(), pause{Why: "a story", Until: time.Now().Add(time.Minute)}))
	m.notSent(rt)
}

// notSent checks that nothing is sent while the queue is paused.
func (m *model) notSent(rt *rapid.T) {
	calls := m.wire.calls
	for _, number := range m.numbers {
		m.runJob(number)
	}
	assert.Equal(rt, calls, m.wire.calls)
}

func (m *model) resumeQueue(rt *rapid.T) {
	p, err := m.pausedNow(rt.Context())
	require.NoError(rt, err)
	since := ""
	if p.Why != "" {
		since = "&since=" + url.QueryEscape(p.Since.Format(time.RFC3339Nano))
	}
	assert.Equal(rt, 303, m.post("/resume", "by=Ada&why=it+works+again"+since).Code)
}

// resumeInRiver resumes the queue in River alone: nobody who saw a hold released it.
func (m *model) resumeInRiver(rt *rapid.T) {
	p, err := m.pausedNow(rt.Context())
	require.NoError(rt, err)
	if p.Why == "" {
		rt.SkipNow()
	}
	m.exec(`UPDATE river_queue SET paused_at = NULL`)
	after, err := m.pausedNow(rt.Context())
	require.NoError(rt, err)
	assert.Equal(rt, p.Why == onHold, after.Why != "")
}

// loseJob deletes an order's job, whose ID SQLite may give to another's.
func (m *model) loseJob(rt *rapid.T) {
	number := m.one(rt)
	if m.byRiver { // which is then told to run it
		rt.SkipNow()
	}
	m.exec(`DELETE FROM river_job WHERE id = (SELECT job_id FROM payouts WHERE order_no = $1)`, number)
}

func (m *model) lookAfter(rt *rapid.T) {
	m.drawEnd(rt)
	m.ramp.SetLimit(rate.Inf)
	require.NoError(rt, m.look(rt.Context()))
	m.wire.next = nil
	require.NoError(rt, m.sweep(rt.Context()))
	m.hear(m.numbers...)
}

// failJournal makes the journal fail during one delivery.
func (m *model) failJournal(rt *rapid.T) {
	number := m.one(rt)
	before, calls := m.state(number), m.wire.calls
	m.ramp.SetLimit(rate.Inf)
	m.exec(`UPDATE cardwire_intents_journal SET identity = 'stopped-' || identity`)
	_ = (&submitter{service: m.service}).Work(context.Background(), jobOf(number))
	m.exec(`UPDATE cardwire_intents_journal SET identity = substr(identity, 9)`)
	assert.Equal(rt, calls, m.wire.calls)
	assert.Equal(rt, before, m.state(number))
}

// forgetOne removes an order, or its last call, from the journal.
func (m *model) forgetOne(rt *rapid.T) {
	m.forgetCall(m.one(rt), rapid.Bool().Draw(rt, "the last call only"))
}

// forgetRetry has the journal know the call before the one that was executed, of an order of its own:
// most others have ended, or are closed.
func (m *model) forgetRetry(rt *rapid.T) {
	const number = "C"
	if slices.Contains(m.numbers, number) {
		rt.SkipNow()
	}
	m.createOf(rt, number, "12.50")
	if !m.forgetful && rapid.Bool().Draw(rt, "another program made that") { // which trusts the journal alone
		m.wire.next = func(string) ending { return endings[4] }
		_, _ = m.client.CreateTransfer(rt.Context(), paramsOfModel(number))
		m.wire.next = nil
	} else {
		m.deliverTo(number, "forbidden")
	}
	m.check()
	m.deliverTo(number, "lost, executed")
	m.forgetCall(number, true)
}

func (m *model) forgetCall(number string, lastOnly bool) {
	if o := m.found(number); o.State == unresolved && o.Calls == 0 {
		return // it is held then, and only a person can know that it was pending
	}
	m.exec(`DELETE FROM crash_cardwire_intents`)
	if lastOnly {
		m.exec(`INSERT INTO crash_cardwire_intents SELECT * FROM older_cardwire_intents WHERE reference = $1
	AND calls < (SELECT calls FROM cardwire_intents WHERE reference = $1) ORDER BY rowid DESC LIMIT 1`, number)
	}
	m.forget(number)
	m.exec(`INSERT INTO cardwire_intents SELECT * FROM crash_cardwire_intents`)
	m.mistaken[number], m.forgetful = true, true
}

// restoreJournal restores the journal's tables alone.
func (m *model) restoreJournal(*rapid.T) {
	m.copyTables("backup_", "", journalTables)
	m.forgetful = true
	for _, number := range m.numbers {
		m.mistaken[number] = true
	}
}

// restoreEverything restores the whole database, and then follows docs/operations.md
// to the release: calls come to their end, what the service has is recorded, and what the
// merchant's own records have as failed or canceled is closed, or comes again on hold.
func (m *model) restoreEverything(rt *rapid.T) {
	landAll := func() {
		for number, f := range m.flying {
			f.end <- ending{}
			<-f.done
			delete(m.flying, number)
		}
	}
	if number := "D"; !slices.Contains(m.numbers, number) && rapid.Bool().Draw(rt, "one was sent since the backup") {
		m.createOf(rt, number, "12.50")
		m.copyTables("", "backup_", everyTable)
		m.deliverTo(number, rapid.SampledFrom([]string{"accepted", "lost, maybe executed late"}).Draw(rt, "response"))
	}
	if !rapid.Bool().Draw(rt, "processes go on") { // as where a standby took over
		landAll()
	}
	m.makePending(rt)
	m.pass(rt, modelLate+2*time.Minute)
	m.frozen, m.stays = map[string]time.Time{}, map[string]bool{}
	for _, number := range m.numbers {
		state := m.state(number)
		if (state == failed || state == canceled) && m.wire.own(number) == 0 {
			m.gone[number] = true
		}
	}
	m.copyTables("backup_", "", everyTable)
	m.restored, m.forgetful = true, true
	require.NoError(rt, m.hold(rt.Context()))
	landAll()
	m.numbers = nil
	all, err := m.list(rt.Context(), filter{}, "", pageSize)
	require.NoError(rt, err)
	for _, o := range all.Orders {
		m.numbers = append(m.numbers, o.Order)
		m.mistaken[o.Order] = true // what somebody corrected since is wrong again
	}
	m.reconcile(rt, false)
	for number := range m.gone {
		if rapid.Bool().Draw(rt, "is closed") {
			_ = m.closeNumber(rt.Context(), number, "Ada", "our own records")
			continue
		}
		m.createOf(rt, number, "12.50")
	}
	m.notSent(rt)
	m.copyTables("", "backup_", everyTable)
}

// makePending marks some of what the service may still execute as pending.
func (m *model) makePending(rt *rapid.T) {
	for n := range m.late {
		m.late[n].isPending = m.late[n].isPending || rapid.Bool().Draw(rt, "is pending")
	}
}

// reconcile applies the service's ledger: with amounts in cents, with one service ID for all, or with
// other merchants' orders whose numbers are ours in lower case. What it knows the journal alone has,
// so it is backed up.
func (m *model) reconcile(rt *rapid.T, again bool) {
	m.makePending(rt)
	form := rapid.SampledFrom([]string{"", "", "cents", "one ID", "letter case"}).Draw(rt, "form")
	text, at := header, time.Now().UTC().Format(time.RFC3339)
	list := func(payment, status string) {
		number, amount, _ := strings.Cut(payment, " ")
		id := "T-" + number
		switch form {
		case "cents":
			amount = strings.Replace(amount, ".", "", 1)
		case "one ID":
			id = "BATCH"
		case "letter case":
			text += strings.ToLower(number) + ",T-0,12.50,EUR,done," + at + "\n"
		}
		text += strings.Join([]string{number, id, amount, "EUR", status, at}, ",") + "\n"
	}
	for payment, n := range m.wire.executed {
		for range n {
			list(payment, "done")
			number, _, _ := strings.Cut(payment, " ")
			m.mistaken[number] = true // it may be about another program's
		}
	}
	isOpen := map[string]bool{}
	for _, call := range m.late {
		number, _, _ := strings.Cut(call.payment, " ")
		isOpen[number] = true
		if call.isPending {
			list(call.payment, "processing")
		}
	}
	for _, number := range m.numbers {
		if m.wire.own(number) == 0 && !isOpen[number] && m.flying[number] == nil && rapid.Bool().Draw(rt, "is rejected") {
			list(number+" 12.50", "rejected")
		}
	}
	now := time.Now()
	c := &comparison{
		From: now.Add(-1e6 * time.Second), Until: now, Exported: now, Statuses: meanings, Strays: true,
		By: "Ada", Why: "the statement", Again: again && len(m.gone) == 0, Anyway: true,
	}
	err := m.compare(rt.Context(), c, strings.NewReader(text), func(f sqljournal.Finding) error {
		return m.apply(rt.Context(), c, f)
	})
	require.NoError(rt, err)
	m.copyTables("", "backup_", everyTable)
}

// decideHeld sends what is held, or closes what has failed.
func (m *model) decideHeld(rt *rapid.T) {
	number := m.one(rt)
	if m.state(number) != held {
		rt.SkipNow()
	}
	m.decideAbout(number)
}

func (m *model) decideAbout(number string) {
	if m.gone[number] {
		assert.Equal(m.rt, 200, m.cancelAs(number).StatusCode)
		return
	}
	r := m.call("POST", "/payouts/"+number+"/send", `{"by":"Ada","why":"our own records"}`)
	assert.Contains(m.rt, []int{200, 409}, r.StatusCode) // on hold
	m.stays[number] = m.stays[number] && r.StatusCode != 200
}

// check compares each order with what the service executed.
func (m *model) check() {
	for payment, n := range m.wire.executed {
		if n > 1 && !(m.forgetful && strings.HasSuffix(payment, " 99.00")) {
			m.rt.Fatalf("%s was executed %d times", payment, n)
		}
	}
	m.exec(`INSERT INTO older_cardwire_intents SELECT * FROM cardwire_intents`)
	counts := map[string]int64{}
	for _, number := range m.numbers {
		own, state := m.wire.own(number), m.state(number)
		m.rt.Logf("%s is %s, executed %d", number, state, own)
		if m.stays[number] = m.stays[number] || state == held; m.stays[number] && state == queued {
			m.rt.Fatalf("%s is queued, and nobody said so", number)
		}
		isUnsent := state == queued || state == held || state == conflicted && !m.restored
		if own > 1 || own == 1 && (isUnsent || m.gone[number]) {
			m.rt.Fatalf("%s is %s, and was executed %d times", number, state, own)
		}
		isPaid := slices.Contains([]string{submitted, paid, returned}, state)
		isFailed := state == failed || state == canceled
		if !m.mistaken[number] && (isPaid && own == 0 || isFailed && own == 1) {
			m.rt.Fatalf("%s is %s, and was executed %d times", number, state, own)
		}
		if !isPaid && !isFailed {
			counts[state]++
		}
		if state == forgotten {
			m.askAbout(number) // it is found as it is looked at
		}
		list, err := m.list(m.rt.Context(), filter{State: state}, "", pageSize)
		require.NoError(m.rt, err)
		isThis := func(o order) bool { return o.Order == number }
		assert.True(m.rt, slices.ContainsFunc(list.Orders, isThis), "the list of %s", state)
	}
	found, err := m.liveTotals(m.rt.Context())
	require.NoError(m.rt, err)
	assert.Equal(m.rt, counts, countsOf(found))
}

// settleAll ends the story well: all is delivered, and people resolve what is left.
func (m *model) settleAll() {
	for number, f := range m.flying {
		f.end <- ending{}
		<-f.done
		m.ended(number, f.err)
		delete(m.flying, number)
	}
	m.frozen = map[string]time.Time{}
	for n := range m.late {
		m.late[n].isPending = false
	}
	for range 6 {
		m.pass(m.rt, modelLate+2*time.Minute)
		m.resumeQueue(m.rt)
		require.NoError(m.rt, m.sweep(m.rt.Context()))
		for _, number := range m.numbers {
			m.settleOne(number)
		}
		m.check()
	}
	for _, number := range m.numbers {
		own, state := m.wire.own(number), m.state(number)
		if m.mistaken[number] && m.found(number).IsOther {
			continue // a restore made two requests one: the statement has both
		}
		want := []string{failed, canceled}
		if own == 1 {
			want = []string{submitted, paid, returned}
		}
		assert.Contains(m.rt, want, state, "%s was executed %d times", number, own)
	}
}

func (m *model) settleOne(number string) {
	switch o := m.found(number); {
	case o.State == queued:
		var awake int
		const jobs = `SELECT count(*) FROM payouts JOIN river_job ON id = job_id
			WHERE order_no = $1 AND state <> 'completed'`
		require.NoError(m.rt, m.db.QueryRowContext(context.Background(), jobs, number).Scan(&awake))
		assert.Equal(m.rt, 1, awake, "%s has a job", number)
		m.runJob(number)
	case o.State == held:
		m.decideAbout(number)
	case o.State == conflicted:
		assert.Equal(m.rt, 200, m.cancelAs(number).StatusCode)
	case o.State == unresolved, o.State == forgotten && !o.DenyFrom.IsZero() && o.DenyFrom.Before(time.Now()):
		heard := m.askAbout(number)
		if (o.IsOther || o.Body == "" || o.HasFailed) && !heard.executed { // which cannot be sent again
			assert.Equal(m.rt, 200, m.recordAs(heard, "not_executed"))
			return
		}
		assert.Equal(m.rt, 200, m.record(m.rt, heard))
	case o.State == forgotten: // found now, and asked about later
		m.askAbout(number)
	case o.Ended() && m.mistaken[number] && !o.IsOther:
		m.correct(o)
	}
}

// correct puts right what somebody said, or the journal lost. It may be too early
// for that: at the end all must be right.
func (m *model) correct(o order) {
	isFailed := o.State == failed || o.State == canceled
	switch heard := m.askAbout(o.Order); {
	case heard.executed && isFailed:
		m.recordAs(heard, "executed")
	case !heard.executed && !isFailed:
		m.recordAs(heard, "not_executed")
	}
}
