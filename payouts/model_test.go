package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// Whatever happens in whatever order: nothing is paid twice, failed though executed, sent after it was told as
// ended, or lost; and what was told last is what each order is. In PostgreSQL the database also moves, and has another
// tenant. With thousands of sequences:
//
//	../sqljournal/scripts/postgres go test -run TestNothingIsPaidTwice -rapid.checks 5000
func TestNothingIsPaidTwice(t *testing.T) {
	eachDatabase(t, testModel)
}

func testModel(t *testing.T, source string) {
	t.Helper()
	t.Parallel()
	m := newModel(t, source)
	rapid.Check(t, func(rt *rapid.T) {
		if m.tenant != nil && rapid.IntRange(0, 3).Draw(rt, "one in four runs: a server takes longer") > 0 {
			return
		}
		m.begin(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":                                func(*rapid.T) { m.check() },
			"submit":                          m.submitOne,
			"deliver":                         func(rt *rapid.T) { m.deliver(m.one(rt), drawEnding(rt)) },
			"deliver and lose the response":   func(rt *rapid.T) { m.deliver(m.one(rt), lost) },
			"deliver and die during the call": func(rt *rapid.T) { m.land(rt, m.takeOff(rt), rapid.Just(true)) },
			"begin a call":                    func(rt *rapid.T) { m.takeOff(rt) },
			"end a call":                      func(rt *rapid.T) { m.land(rt, m.one(rt), rapid.Bool()) },
			"look, and freeze":                m.freeze,
			"thaw":                            m.thaw,
			"execute late":                    func(rt *rapid.T) { m.executeLate(rt, false) },
			"time passes":                     m.passTime,
			"ask the service":                 func(rt *rapid.T) { m.heard = append(m.heard, m.ask(m.one(rt))) },
			"record what it said":             m.tellSome,
			"find out":                        func(rt *rapid.T) { m.record(rt, m.ask(m.one(rt))) },
			"record a mistake":                m.mistake,
			"record what became of it":        m.sayMoney,
			"cancel":                          m.cancelOne,
			"another program sends":           m.otherProgram,
			"another program gives up":        m.otherVoids,
			"another program frees":           m.otherFrees,
			"tell what changed":               func(*rapid.T) { m.tellAll() },
			"Changed fails":                   func(*rapid.T) { m.fails = true; m.tells(); m.fails = false },
			"pause":                           m.pauseQueue,
			"resume":                          func(*rapid.T) { m.unpause() },
			"sweep":                           m.sweepTwice,
			"purge":                           m.purgeAll,
			"River loses a job":               m.loseJob,
			"the journal fails":               m.failJournal,
			"back up":                         func(*rapid.T) { m.backUpAll() },
			"everything is restored":          m.restoreEverything,
			"a person holds":                  func(*rapid.T) { m.hold(); m.check() },
			"the server fails over":           m.failOver,
			"the database moves as planned":   m.move,
			"the other tenant sends":          m.otherTenant,
			"compare with the statement":      m.reconcile,
			"release the hold":                m.releaseHold,
			"release the hold, once it may be": func(rt *rapid.T) {
				m.pass(rt, modelLate+2*time.Minute)
				m.releaseHold(rt)
			},
		})
		m.settleAll()
	})
}

// model is the program, the service that it calls, and what is known of both.
type model struct {
	*shop
	wire   *provider
	tenant *shop     // of the same database, in PostgreSQL
	other  *provider // its service
	rt     *rapid.T

	ahead    time.Duration // of the machine's clock: time passes by moving what the tables have
	numbers  []string      // of orders
	flying   map[string]*flight
	frozen   map[string]order
	frozenAt map[string]time.Time
	late     []lateCall
	heard    []heard
	told     map[string]State // the last that Changed was told
	hasEnded map[string]bool  // it was told as ended once
	closed   map[string]bool  // it failed or was canceled, and nothing was restored or lost since
	gone     map[string]bool  // the merchant's own records have it as failed or canceled, and a restore forgot that
	mistaken map[string]bool  // somebody recorded what is wrong, or the journal lost what was right
	isOther  map[string]bool  // another request was sent under the number
	forgot   bool             // the journal lost something: another program trusts it alone
	fails    bool             // Changed does
}

// provider is the service: what it executed, and what it does with the next request. Of its requests one at a time runs.
type provider struct {
	executed map[string]int // by number and amount
	next     func(payment string) ending
	calls    int
}

// ending is what becomes of a request.
type ending struct {
	name     string
	executed bool
	late     bool // it is executed after the client has gone, or never
	status   int  // 0: the response is lost
	response string
}

func (e ending) String() string { return e.name }

const ok = `{"code":200,"msg":"success","data":{"merchant_order_no":"@","api_order_no":"T-@","status":"wait_process"}}`

var (
	accepted = ending{"accepted", true, false, 200, ok}
	lost     = ending{name: "lost"}
	endings  = []ending{
		accepted,
		{"refused", false, false, 422, `{"code":422,"msg":"the account is closed"}`},
		{"rate limited", false, false, 429, `{"code":429,"msg":"slow down"}`},
		{"forbidden", false, false, 403, `{"code":403,"msg":"no"}`},
		{"an error, executed", true, false, 500, `{"code":500,"msg":"?"}`},
		{"lost, executed", true, false, 0, ""},
		lost,
		{"lost, maybe executed late", false, true, 0, ""},
	}
)

// drawEnding draws what becomes of a request.
func drawEnding(rt *rapid.T) ending { return rapid.SampledFrom(endings).Draw(rt, "response") }

// RoundTrip implements http.RoundTripper.
func (w *provider) RoundTrip(r *http.Request) (*http.Response, error) {
	var sent struct{ MerchantOrderNo, TransferAmount string }
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
		return nil, err
	}
	payment := sent.MerchantOrderNo + " " + sent.TransferAmount
	w.calls++
	end, next := accepted, w.next
	w.next = nil
	if next != nil {
		end = next(payment)
	}
	if end.executed {
		w.executed[payment]++
	}
	if end.status == 0 {
		return nil, errors.New("connection reset")
	}
	response := httptest.NewRecorder()
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(end.status)
	_, err := response.WriteString(strings.ReplaceAll(end.response, "@", sent.MerchantOrderNo))
	return response.Result(), err
}

// own is how often an order was executed.
func (w *provider) own(number string) int { return w.executed[number+" 12.50"] }

// flight is a call that has reached the service and waits for its response.
type flight struct {
	payment  string
	end      chan ending
	done     chan struct{} // closed when err is set
	err      error
	deadline time.Time // until when the service may execute it
	executed bool
}

// lateCall is a request that the service may still execute, until then.
type lateCall struct {
	payment string
	until   time.Time
}

// heard is what the service's support said of an order.
type heard struct {
	number, call string
	executed     bool
	asOf         time.Time
}

const modelLate = 7 * time.Minute

func newModel(t *testing.T, source string) *model {
	t.Helper()
	m := &model{wire: &provider{}, other: &provider{}}
	open := func(schema string, w *provider, changed func(context.Context, *sql.Tx, Order) error) *shop {
		return openShop(t, source, func(c *Config) {
			c.Timeout, c.LateExecution, c.Brake, c.PurgeAfter = time.Minute, modelLate, -1, time.Millisecond
			c.FourEyes = true
			c.Options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: w})}
			c.Schema, c.Account, c.Changed, c.SynchronousNormal = schema, schema, changed, true
		})
	}
	m.shop = open("", m.wire, m.changed)
	if m.dialect == sqljournal.SQLite {
		m.do(`PRAGMA synchronous = NORMAL`)
	} else {
		m.tenant = open("tenant_b", m.other, nil)
	}
	for _, table := range everyTable {
		for _, name := range []string{"empty", "saved", "crash"} {
			m.do(`CREATE TABLE ` + copyOf(name, table) + ` AS SELECT * FROM ` + table)
		}
	}
	return m
}

func (m *model) changed(_ context.Context, _ *sql.Tx, o Order) error {
	if m.fails {
		return errors.New("a story")
	}
	m.told[o.Number] = o.State
	m.hasEnded[o.Number] = m.hasEnded[o.Number] || o.Ended()
	return nil
}

func (m *model) backUpAll() { m.copyTables("", "saved", everyTable) }

// begin forgets what an earlier sequence left.
func (m *model) begin(rt *rapid.T) {
	m.rt, m.shop.t = rt, rt
	m.wire.executed, m.wire.next, m.other.executed = map[string]int{}, nil, map[string]int{}
	m.ahead, m.numbers, m.late, m.heard, m.forgot, m.fails = 0, nil, nil, nil, false, false
	m.frozen, m.frozenAt, m.flying = map[string]order{}, map[string]time.Time{}, map[string]*flight{}
	m.told, m.hasEnded, m.gone = map[string]State{}, map[string]bool{}, map[string]bool{}
	m.mistaken, m.isOther, m.closed = map[string]bool{}, map[string]bool{}, map[string]bool{}
	m.clearTroubles()
	m.copyTables("empty", "", everyTable)
	require.NoError(rt, m.journal.Verify(rt.Context())) // it notices once that it lost the last sequence's calls
	m.copyTables("empty", "", everyTable)
	if m.tenant != nil {
		m.tenant.t = rt
		for _, table := range []string{"@payouts", "@payouts_marks", "@river_job", "@intents"} {
			m.tenant.do(`DELETE FROM ` + table)
		}
	}
	m.backUpAll()
	rt.Cleanup(m.landAll) // a sequence that failed leaves no goroutine
}

func (m *model) landAll() {
	for number, f := range m.flying {
		f.end <- ending{}
		<-f.done
		delete(m.flying, number)
	}
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

func (m *model) state(number string) State { return m.found(number).State }

func modelParams(number string, cents int64) cardwire.TransferParams {
	return cardwire.TransferParams{MerchantOrderNo: number, PayoutCurrency: "EUR",
		TransferAmount: decimal.New(cents, -2)}
}

func (m *model) submitOne(rt *rapid.T) {
	number := rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "order")
	known := slices.Contains(m.numbers, number)
	if m.gone[number] && !known && m.paused().Kind != onHold { // it came again on hold, or never
		rt.SkipNow()
	}
	_, err := m.SubmitNow(m.t.Context(), modelParams(number, 1250))
	if m.isOther[number] && errors.Is(err, ErrConflict) && !known {
		return
	}
	require.NoError(rt, err)
	if !known {
		m.numbers = append(m.numbers, number)
	}
	_, err = m.SubmitNow(m.t.Context(), modelParams(number, 7700))
	require.ErrorIs(rt, err, ErrConflict)
}

// runJob delivers the order's job as River does, once more perhaps.
func (m *model) runJob(number string) {
	m.ended(number, m.runOnce(number))
}

func (m *model) ended(number string, err error) {
	if _, snoozes := errors.AsType[*rivertype.JobSnoozeError](err); err != nil && !snoozes {
		m.rt.Fatalf("the job of %s failed: %v", number, err)
	}
	if err == nil {
		m.do(`UPDATE @river_job SET state = 'completed', finalized_at = created_at
			WHERE id = (SELECT job_id FROM @payouts WHERE order_no = $1)`, number)
	}
}

func (m *model) nextIs(end ending) {
	m.wire.next = func(payment string) ending {
		if end.late {
			m.late = append(m.late, lateCall{payment, m.now().Add(m.config.Timeout + modelLate)})
		}
		return end
	}
}

func (m *model) deliver(number string, end ending) {
	stopped := m.paused().Kind != ""
	before, calls := m.state(number), m.wire.calls
	m.nextIs(end)
	m.runJob(number)
	m.wire.next = nil
	if m.wire.calls == calls {
		return
	}
	assert.False(m.rt, stopped, "what is stopped is not sent")
	assert.Equal(m.rt, StateQueued, before, "what is sent was queued")
	want := []State{StateUnresolved}
	switch end.name {
	case "accepted":
		want = []State{StateSubmitted}
	case "refused":
		want = []State{StateFailed}
	case "rate limited", "forbidden":
		want = []State{StateQueued, StateFailed} // after its day
	}
	assert.Contains(m.rt, want, m.state(number), end.name)
}

// takeOff begins a call that has reached the service, and returns its order.
func (m *model) takeOff(rt *rapid.T) (number string) {
	number = m.one(rt)
	if m.flying[number] != nil {
		rt.SkipNow()
	}
	f := &flight{end: make(chan ending, 1), done: make(chan struct{}),
		deadline: m.now().Add(m.config.Timeout + modelLate)}
	reached := make(chan string, 1)
	m.wire.next = func(payment string) ending {
		reached <- payment
		return <-f.end
	}
	go func() {
		defer close(f.done)
		f.err = m.runOnce(number)
	}()
	select {
	case f.payment = <-reached:
		m.flying[number] = f
	case <-f.done:
		m.ended(number, f.err)
	}
	m.wire.next = nil
	return number
}

// land ends a call, or its process.
func (m *model) land(rt *rapid.T, number string, dies *rapid.Generator[bool]) {
	f := m.flying[number]
	if f == nil {
		rt.SkipNow()
	}
	delete(m.flying, number)
	end := drawEnding(rt)
	died := dies.Draw(rt, "the process dies")
	switch late := m.now().After(f.deadline); {
	case f.executed: // the service did it meanwhile
		end.executed, end.late = false, false
		if end.status != http.StatusOK {
			end.status = 0
		}
	case late && (end.executed || end.late):
		end = ending{}
	case end.late:
		m.late = append(m.late, lateCall{f.payment, f.deadline})
	}
	if died {
		m.copyTables("", "crash", everyTable)
	}
	f.end <- end
	<-f.done
	if died {
		m.copyTables("crash", "", everyTable)
		return
	}
	m.ended(number, f.err)
}

// freeze stops a worker between its look at the order and its call.
func (m *model) freeze(rt *rapid.T) {
	number := m.one(rt)
	o, stopped, err := m.readToSend(context.Background(), number)
	require.NoError(rt, err)
	if _, is := m.frozen[number]; !is && o.State == StateQueued && stopped == "" {
		m.frozen[number], m.frozenAt[number] = o, m.now()
	}
}

// thaw has it go on, while its job has time left.
func (m *model) thaw(rt *rapid.T) {
	number := m.one(rt)
	o, is := m.frozen[number]
	if !is {
		rt.SkipNow()
	}
	delete(m.frozen, number)
	ctx, cancel := context.WithDeadline(context.Background(), m.frozenAt[number].Add(m.jobTimeout()-m.ahead))
	defer cancel()
	m.nextIs(drawEnding(rt))
	_, err := m.client.CreateTransfer(ctx, modelParams(number, 1250))
	_, _, err = m.applyStep(context.Background(), o, err)
	assert.NoError(rt, err)
	m.wire.next = nil
}

// executeLate executes what the service got before, or drops it.
func (m *model) executeLate(rt *rapid.T, all bool) {
	left := m.late
	m.late = nil
	for _, call := range left {
		switch {
		case m.now().After(call.until):
		case rapid.Bool().Draw(rt, "is executed late"):
			m.wire.executed[call.payment]++
		case !all:
			m.late = append(m.late, call)
		}
	}
	for _, f := range m.flying {
		if !f.executed && m.now().Before(f.deadline) && rapid.Bool().Draw(rt, "is executed") {
			f.executed = true
			m.wire.executed[f.payment]++
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
	back, earlier := fmt.Sprintf("-%.3f seconds", by.Seconds()), ` = strftime('%Y-%m-%dT%H:%M:%f', @, $1) || '000Z'`
	if m.dialect == sqljournal.PostgreSQL {
		earlier = ` = @ + CAST($1 AS interval)`
	}
	for _, prefix := range []string{"", "saved"} {
		for table, columns := range map[string]string{
			"@intents": "time send_by settled_by ended_at", "@intents_history": "time",
			"@intents_journal": "held_at floor", "@payouts": "created_at tried_at said_at",
			"@payouts_control": "since until", "@payouts_history": "at", "@payouts_marks": "due",
		} {
			var set []string
			for c := range strings.FieldsSeq(columns) {
				set = append(set, c+strings.Replace(earlier, "@", c, 1))
			}
			before := valuesOf[int64](m.shop, `SELECT coalesce(max(number), 0) FROM @payouts_marks`)[0]
			m.do(`UPDATE `+copyOf(prefix, table)+` SET `+strings.Join(set, ", "), back)
			m.do(`DELETE FROM @payouts_marks WHERE number > $1`, before)
		}
	}
}

// ask asks the service's support.
func (m *model) ask(number string) heard {
	return heard{number, m.found(number).Call, m.wire.own(number) > 0, m.now()}
}

// tellSome records what support said, also long ago.
func (m *model) tellSome(rt *rapid.T) {
	if len(m.heard) == 0 {
		rt.SkipNow()
	}
	m.record(rt, rapid.SampledFrom(m.heard).Draw(rt, "what was said"))
}

// others are the people who decide, each with the other one.
var others = map[string]string{"Ada": "Eve", "Eve": "Ada"}

func (m *model) whoever() string { return rapid.SampledFrom([]string{"Ada", "Eve"}).Draw(m.rt, "who") }

// lastBy is who decided last about an order.
func (m *model) lastBy(number string) (by string) {
	for _, e := range m.details(number).History {
		by = cmp.Or(e.By, by)
	}
	return by
}

// isRefused expects that what a person did was done, or was refused.
func (m *model) isRefused(err error) {
	isRefused := err == nil || errors.Is(err, ErrConflict) || errors.Is(err, cardwire.ErrInvalidParams)
	assert.True(m.rt, isRefused, "%v", err)
}

func (m *model) record(rt *rapid.T, h heard) {
	outcome := "executed"
	if !h.executed {
		outcome = rapid.SampledFrom([]string{"not_executed", "send_again"}).Draw(rt, "what follows")
	}
	if m.gone[h.number] && outcome == "send_again" { // by the merchant's own records
		outcome = "not_executed"
	}
	m.recordAs(h, outcome)
}

// recordAs records what support said, and reports whether it could.
func (m *model) recordAs(h heard, outcome string) bool {
	if !slices.Contains(m.numbers, h.number) {
		return false
	}
	before, lastBy := m.found(h.number), m.lastBy(h.number)
	r := Resolution{Call: h.call, Outcome: outcome, AsOf: h.asOf.Add(-m.ahead), By: m.whoever(), Why: "ticket 7"}
	_, err := m.Resolve(m.rt.Context(), h.number, r)
	if err != nil && strings.Contains(err.Error(), "another person") {
		assert.Equal(m.rt, []string{"send_again", r.By}, []string{outcome, lastBy})
		r.By = others[r.By]
		_, err = m.Resolve(m.rt.Context(), h.number, r)
		assert.False(m.rt, err != nil && strings.Contains(err.Error(), "another person"))
	} else if err == nil && outcome == "send_again" {
		assert.NotEqual(m.rt, r.By, lastBy, "one person alone decided twice")
	}
	m.isRefused(err)
	if isEarly := h.asOf.Add(-m.ahead).Before(before.DenyFrom); outcome != "executed" && isEarly && !before.Closed {
		require.Error(m.rt, err, "%s: before %s", outcome, before.DenyFrom)
	}
	if err == nil {
		delete(m.mistaken, h.number)
		want := map[string][]State{
			"executed":     {StateSubmitted, StatePaid, StateReturned},
			"not_executed": {StateFailed, StateCanceled}, "send_again": {StateQueued},
		}[outcome]
		assert.Contains(m.rt, want, m.state(h.number), outcome)
	}
	return err == nil
}

// mistake records "executed" of what was not, or not yet.
func (m *model) mistake(rt *rapid.T) {
	number := m.one(rt)
	if m.state(number) != StateUnresolved || m.wire.own(number) > 0 {
		rt.SkipNow()
	}
	if m.recordAs(m.ask(number), "executed") {
		m.mistaken[number] = true
	}
}

func (m *model) sayMoney(rt *rapid.T) {
	number := m.one(rt)
	before, said := m.state(number), rapid.SampledFrom([]State{StatePaid, StateReturned}).Draw(rt, "said")
	err := m.resolveAs(number, string(said))
	isPaid := slices.Contains([]State{StateSubmitted, StatePaid, StateReturned}, before)
	assert.Equal(rt, isPaid, err == nil, "%s: %v", before, err)
	if isPaid {
		assert.Equal(rt, said, m.state(number))
	}
}

func (m *model) cancelOne(rt *rapid.T) {
	number := m.one(rt)
	before := m.found(number)
	if m.paused().Kind == onHold && m.wire.own(number) > 0 { // who cancels on hold has asked
		rt.SkipNow()
	}
	err := m.cancels(number)
	if err == nil {
		assert.Contains(rt, []State{StateCanceled, StateFailed}, m.state(number))
		return
	}
	require.ErrorIs(rt, err, ErrConflict)
	assert.True(rt, before.State == StateQueued && m.paused().Kind == onHold ||
		!slices.Contains([]State{StateQueued, StateCanceled, StateFailed}, before.State))
	assert.Equal(rt, before.State, m.state(number))
}

// otherProgram has another program send the same body, or another one, under a number. It trusts the journal alone, and
// so does not send what a restore has made it forget altogether.
func (m *model) otherProgram(rt *rapid.T) {
	number := rapid.SampledFrom([]string{"A", "B"}).Draw(rt, "order")
	cents := int64(1250)
	isKnown := valuesOf[int64](m.shop, `SELECT count(*) FROM @intents WHERE reference = $1`, number)[0] > 0
	if !isKnown && (m.forgot || m.gone[number]) || rapid.Bool().Draw(rt, "another body") {
		cents = 9900
	}
	calls, before := m.wire.calls, StateQueued
	if slices.Contains(m.numbers, number) {
		before = m.state(number)
	}
	m.nextIs(drawEnding(rt))
	_, _ = m.client.CreateTransfer(context.Background(), modelParams(number, cents))
	m.wire.next = nil
	assert.False(rt, m.wire.calls > calls && before != StateQueued, "it was %s", before)
	m.isOther[number] = m.isOther[number] || m.wire.calls > calls && cents != 1250
	assert.False(rt, m.wire.calls > calls && m.paused().Kind == onHold)
}

// otherVoids has another program, with another body, give up.
func (m *model) otherVoids(rt *rapid.T) {
	number := m.one(rt)
	before := m.state(number)
	i := cardwire.Intent{Op: operation, Reference: number, BodySHA256: modelParams(number, 9900).Digest(), Call: "x"}
	_ = m.journal.Void(context.Background(), i, "cardwire", "a story")
	if before == StateQueued {
		assert.Equal(rt, StateQueued, m.state(number), "it is this order's number")
	}
}

// otherFrees has another program say of an order that it was not sent, by the journal's rules.
func (m *model) otherFrees(rt *rapid.T) {
	number := m.one(rt)
	if m.wire.own(number) > 0 || m.flying[number] != nil ||
		slices.ContainsFunc(m.late, func(c lateCall) bool { return strings.HasPrefix(c.payment, number) }) {
		rt.SkipNow()
	}
	i := cardwire.Intent{Op: operation, Reference: number, Call: m.found(number).Call}
	_ = m.journal.Resolve(context.Background(), i,
		journal.Resolution{Outcome: cardwire.OutcomeNotSent, By: "Eve", Note: "a story", AsOf: time.Now()})
}

// tellAll tells what has changed.
func (m *model) tellAll() {
	m.do(`UPDATE @payouts_marks SET due = '2000-01-01T00:00:00.000000Z'`)
	m.tells()
	assert.Empty(m.rt, valuesOf[int64](m.shop,
		`SELECT number FROM @payouts_marks WHERE order_no IN (SELECT order_no FROM @payouts)`))
}

// pauseQueue has trouble pause the queue, or refusals stop it, which no time ends.
func (m *model) pauseQueue(rt *rapid.T) {
	kind := rapid.SampledFrom([]string{inTrouble, refused}).Draw(rt, "why")
	m.pauses(pause{Kind: kind, Why: "a story", Until: time.Now().Add(time.Hour)})
	calls := m.wire.calls
	for _, number := range m.numbers {
		m.runJob(number)
	}
	assert.Equal(rt, calls, m.wire.calls)
	if m.paused().Kind == refused {
		m.elapse()
		m.looks()
		assert.Equal(rt, refused, m.paused().Kind)
		assert.Equal(rt, calls, m.wire.calls)
	}
}

// unpause ends a pause. A hold stays.
func (m *model) unpause() {
	if p := m.paused(); p.Kind != "" && p.Kind != onHold {
		_, err := m.resume(context.Background(), "Ada", p)
		require.NoError(m.rt, err)
	}
}

// sweepTwice looks after everything, and once more, which finds nothing new.
func (m *model) sweepTwice(rt *rapid.T) {
	require.NoError(rt, m.sweep(rt.Context()))
	p := m.paused()
	require.NoError(rt, m.sweep(rt.Context()))
	assert.Equal(rt, p, m.paused(), "one loss is one alarm")
}

func (m *model) purgeAll(rt *rapid.T) {
	before := m.states(m.numbers...)
	require.NoError(rt, m.purge(rt.Context()))
	assert.Equal(rt, before, m.states(m.numbers...))
}

// loseJob deletes an order's job, whose ID SQLite may give to another's.
func (m *model) loseJob(rt *rapid.T) {
	m.do(`DELETE FROM @river_job WHERE id = (SELECT job_id FROM @payouts WHERE order_no = $1)`, m.one(rt))
}

// failJournal makes the journal fail during one delivery.
func (m *model) failJournal(rt *rapid.T) {
	number := m.one(rt)
	before, calls := m.state(number), m.wire.calls
	m.do(`UPDATE @intents_journal SET identity = 'stopped-' || identity`)
	_ = m.runOnce(number)
	m.do(`UPDATE @intents_journal SET identity = substr(identity, 9)`)
	assert.Equal(rt, calls, m.wire.calls)
	assert.Equal(rt, before, m.state(number))
}

// hold puts the journal on hold: what is queued may have been sent.
func (m *model) hold() {
	require.NoError(m.rt, m.Hold(m.rt.Context(), "Ada", "a story"))
	for _, number := range m.numbers {
		assert.NotEqual(m.rt, StateQueued, m.state(number))
	}
}

// isElsewhere has the journal's row say that it comes from another server.
func (m *model) isElsewhere(rt *rapid.T) {
	if m.dialect == sqljournal.SQLite {
		rt.SkipNow()
	}
	m.do(`UPDATE @intents_journal SET timeline = '0000000F'`)
}

// failOver has a standby take over, of which whoever is first takes notice.
func (m *model) failOver(rt *rapid.T) {
	number := m.one(rt)
	m.isElsewhere(rt)
	m.frozen = map[string]order{}
	if rapid.Bool().Draw(rt, "a worker is first") {
		m.deliver(number, accepted)
	}
	require.NoError(rt, m.sweep(rt.Context()))
	assert.Equal(rt, onHold, m.paused().Kind)
}

// move moves the database as planned: all is as it was.
func (m *model) move(rt *rapid.T) {
	if m.paused().Kind == onHold {
		rt.SkipNow()
	}
	before := m.states(m.numbers...)
	m.hold()
	m.isElsewhere(rt)
	if rapid.Bool().Draw(rt, "somebody looks") {
		require.NoError(rt, m.sweep(rt.Context()))
	}
	require.ErrorContains(rt, m.Moved(rt.Context(), "Ada", "by plan"), "another person must do this")
	require.NoError(rt, m.Moved(rt.Context(), "Eve", "by plan"))
	assert.Equal(rt, before, m.states(m.numbers...))
	m.do(`INSERT INTO @payouts_marks (order_no) SELECT order_no FROM @payouts`) // what a hold was told of
}

// otherTenant sends an order of the same number from another schema.
func (m *model) otherTenant(rt *rapid.T) {
	if m.tenant == nil {
		rt.SkipNow()
	}
	m.tenant.t = rt
	_, err := m.tenant.SubmitNow(m.t.Context(), modelParams("A", 1250))
	require.NoError(rt, err)
	m.tenant.work("A")
	assert.Equal(rt, map[string]int{"A 12.50": 1}, m.other.executed)
	assert.Equal(rt, []State{StateSubmitted}, m.tenant.states("A"))
}

// restoreEverything restores the whole database, and puts the journal on hold, as docs/operations.md says.
func (m *model) restoreEverything(rt *rapid.T) {
	if !rapid.Bool().Draw(rt, "processes go on") { // as where a standby took over
		m.landAll()
	}
	m.frozen = map[string]order{}
	for _, number := range m.numbers {
		state := m.state(number)
		m.gone[number] = m.gone[number] || (state == StateFailed || state == StateCanceled) && m.wire.own(number) == 0
	}
	m.copyTables("saved", "", everyTable)
	require.NoError(rt, m.Hold(rt.Context(), "Ada", "a restore"))
	m.landAll() // whose results are of calls that are forgotten
	m.forgot, m.told, m.hasEnded, m.closed = true, map[string]State{}, map[string]bool{}, map[string]bool{}
	known := m.numbers
	m.numbers = valuesOf[string](m.shop, `SELECT order_no FROM @payouts ORDER BY order_no`)
	for _, number := range m.numbers {
		m.mistaken[number] = true // what somebody corrected since is wrong again
		if told := valuesOf[string](m.shop, `SELECT told FROM @payouts WHERE order_no = $1`, number)[0]; told != "" {
			m.told[number], m.hasEnded[number] = State(told), hasEnded(State(told))
		}
	}
	for _, number := range known { // a broker delivers again what both tables have lost
		if !slices.Contains(m.numbers, number) && rapid.Bool().Draw(rt, "comes again") {
			if _, err := m.SubmitNow(m.t.Context(), modelParams(number, 1250)); err == nil {
				m.numbers = append(m.numbers, number)
				m.mistaken[number] = true
			}
		}
	}
}

// reconcile records what the service's statement has, which lacks some lines, and has others of a changed number, in cents
// or without the service's number.
func (m *model) reconcile(rt *rapid.T) {
	at, lines := time.Now().UTC().Add(-time.Second).Format(time.RFC3339), []string{}
	for payment, n := range m.wire.executed {
		number, amount, _ := strings.Cut(payment, " ")
		id := "T-" + number
		kinds := []string{"", "", "", "", "is not listed", "another number", "in cents", "no ID"}
		switch rapid.SampledFrom(kinds).Draw(rt, "the line") {
		case "is not listed":
			continue
		case "another number":
			number = "0" + number
		case "in cents":
			amount = strings.Replace(amount, ".", "", 1)
		case "no ID":
			id = ""
		}
		for range n {
			lines = append(lines, strings.Join([]string{number, id, amount, "EUR", "done", at}, ","))
		}
	}
	m.records(lines...)
}

// releaseHold ends a hold as docs/operations.md says: what the service has, or the merchant's own records have
// as ended, is not sent.
func (m *model) releaseHold(rt *rapid.T) {
	if m.paused().Kind != onHold {
		rt.SkipNow()
	}
	m.landAll()
	for _, number := range []string{"A", "B"} {
		// Of another program: a broker delivers again what both tables have lost.
		if m.wire.own(number) > 0 && !slices.Contains(m.numbers, number) {
			if _, err := m.SubmitNow(m.t.Context(), modelParams(number, 1250)); err == nil {
				m.numbers, m.mistaken[number] = append(m.numbers, number), true
			}
		}
	}
	m.reconcile(rt)
	for _, number := range m.numbers {
		if m.state(number) != StateQueued {
			continue
		}
		h := m.ask(number)
		if h.executed {
			assert.True(rt, m.recordAs(h, "executed"))
		} else if m.gone[number] {
			_ = m.cancels(number)
		}
	}
	err := m.Release(rt.Context(), "Eve", "compared")
	m.isRefused(err)                                                  // before the floor
	if err != nil && strings.Contains(err.Error(), "or Hold again") { // a person's hold, and then a failover
		m.hold()
	}
}

// check compares each order with what the service executed.
func (m *model) check() {
	for payment, n := range m.wire.executed {
		if n > 1 && !(m.forgot && strings.HasSuffix(payment, " 99.00")) {
			m.rt.Fatalf("%s was executed %d times", payment, n)
		}
	}
	counts := map[State]int64{}
	for _, number := range m.numbers {
		own, state := m.wire.own(number), m.state(number)
		m.rt.Logf("%s is %s, executed %d", number, state, own)
		isHeld := m.paused().Kind == onHold
		if own > 0 && state == StateQueued && !isHeld || m.gone[number] && own > 0 && !m.mistaken[number] {
			m.rt.Fatalf("%s is %s, and was executed", number, state)
		}
		m.closed[number] = m.closed[number] || state == StateFailed || state == StateCanceled
		if m.closed[number] && state == StateQueued {
			m.rt.Fatalf("%s is queued, and was closed", number)
		}
		if m.hasEnded[number] && state == StateQueued {
			m.rt.Fatalf("%s is %s, and was told as ended", number, state)
		}
		isPaid := slices.Contains([]State{StateSubmitted, StatePaid, StateReturned}, state)
		isFailed := state == StateFailed || state == StateCanceled
		if !m.mistaken[number] && !m.isOther[number] && (isPaid && own == 0 || isFailed && own == 1) {
			m.rt.Fatalf("%s is %s, and was executed %d times", number, state, own)
		}
		if !hasEnded(state) {
			counts[state]++
		}
	}
	found, err := m.liveTotals(m.rt.Context())
	require.NoError(m.rt, err)
	assert.Equal(m.rt, counts, countsOf(found))
}

// settleAll ends the story well: all is delivered, people resolve what is left, and all is told.
func (m *model) settleAll() {
	m.landAll()
	m.frozen = map[string]order{}
	for range 6 {
		m.pass(m.rt, modelLate+2*time.Minute)
		m.unpause()
		require.NoError(m.rt, m.sweep(m.rt.Context()))
		m.pass(m.rt, modelLate+2*time.Minute)
		for _, number := range m.numbers {
			m.settleOne(number)
		}
		if m.paused().Kind == onHold {
			m.releaseHold(m.rt)
		}
		m.check()
	}
	require.Empty(m.rt, m.paused().Kind)
	m.tellAll()
	for _, number := range m.numbers {
		own, state := m.wire.own(number), m.state(number)
		assert.Equal(m.rt, state, m.told[number], number)
		if m.isOther[number] {
			continue // a restore may have made two requests one
		}
		want := []State{StateFailed, StateCanceled}
		if own == 1 {
			want = []State{StateSubmitted, StatePaid, StateReturned}
		}
		assert.Contains(m.rt, want, state, "%s was executed %d times", number, own)
	}
}

func (m *model) settleOne(number string) {
	o := m.found(number)
	switch h := m.ask(number); {
	case o.State == StateQueued && m.paused().Kind == "":
		m.runJob(number)
		require.NoError(m.rt, m.awaken(m.rt.Context()))
	case o.State == StateUnresolved && !h.executed && !o.mayBeSentAgain():
		m.recordAs(h, "not_executed")
	case o.State == StateUnresolved:
		m.record(m.rt, h)
	case o.Ended() && m.mistaken[number] && !o.Proved:
		isFailed := o.State == StateFailed || o.State == StateCanceled
		if h.executed && isFailed {
			m.recordAs(h, "executed")
		} else if !h.executed && !isFailed {
			m.recordAs(h, "not_executed")
		}
	}
}
