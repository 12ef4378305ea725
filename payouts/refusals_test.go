package payouts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// picky is a service that fails some orders.
type picky struct {
	*cardwiretest.Service

	mu     sync.Mutex
	faults map[string]cardwiretest.Fault // by number
}

// openPicky is a shop whose service fails some orders.
func openPicky(t *testing.T, source string, faults map[string]cardwiretest.Fault) *shop {
	t.Helper()
	p := &picky{Service: cardwiretest.New(), faults: faults}
	s := openShop(t, source, func(c *Config) {
		c.Options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: p})}
	})
	s.fake = p.Service
	return s
}

// RoundTrip implements http.RoundTripper.
func (p *picky) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var sent struct{ MerchantOrderNo string }
		_ = json.Unmarshal(body, &sent) // another request has no number
		if f, is := p.faults[sent.MerchantOrderNo]; is {
			p.Fail(operation, f, 1)
		}
	}
	return p.Service.RoundTrip(r)
}

// orderFor submits an order for a receiver.
func (s *shop) orderFor(number, name, account string) {
	s.t.Helper()
	params := paramsFor(number)
	params.ReceiverNativeFirstName, params.ReceiverBankAccountNumber = name, account
	_, err := s.SubmitNow(s.t.Context(), params)
	require.NoError(s.t, err)
}

// refuse has the service refuse a new order.
func (s *shop) refuse(number, name, account string, f cardwiretest.Fault) {
	s.t.Helper()
	s.orderFor(number, name, account)
	s.willFail(f)
	s.work(number)
}

// broke is a refusal for want of money, in which each balance is another one.
func broke(words string) cardwiretest.Fault { return cardwiretest.Fault{Status: 422, Message: words} }

func (s *shop) resumes() {
	s.t.Helper()
	require.NoError(s.t, s.Resume(s.t.Context(), "Ada", "ticket 7"))
}

// An empty wallet closes three orders, and what is in flight. No time and no probe ends that: a person does, who has
// then seen these three.
func TestAnEmptyWalletStopsAll(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		replicas := []*shop{openShop(t, source, nil), openShop(t, source, nil)}
		s := replicas[0]
		s.orders("flies", "waits")
		for i, name := range []string{"Grace", "Ada", "Li"} {
			assert.Empty(t, s.paused().Kind)
			words := fmt.Sprintf("%s cannot be paid: insufficient balance, %d,0%d4.50 EUR left", name, 3-i, i)
			replicas[i%2].refuse(fmt.Sprint("A-", i), name, fmt.Sprint("DE0", i), broke(words))
		}
		assert.Equal(t, []State{StateFailed, StateFailed, StateFailed}, s.states("A-0", "A-1", "A-2"))
		want := `3 orders in a row, of different receivers, were refused for the same reason (HTTP 422, code 422, ` +
			`"… cannot be paid: insufficient balance, #,#.# … left")`
		assert.Contains(t, s.paused().Text(), want)
		s.pauses(pause{Kind: inTrouble, Why: "a 429", Until: time.Now().Add(-time.Hour)})
		s.pauses(pause{Kind: brake, Why: "too many"})
		s.elapse()
		for _, replica := range replicas {
			replica.looks()
			replica.sweeps()
			assert.Equal(t, minPause, replica.work("waits"))
		}
		assert.Equal(t, refused, s.paused().Kind)
		s.resumes()
		for i := range 2 {
			s.refuse(fmt.Sprint("B-", i), "", fmt.Sprint("DE1", i), broke("insufficient balance, 0.00 EUR left"))
			assert.Empty(t, s.paused().Kind, "a person has seen the first three")
		}
		s.refuse("B-2", "", "DE12", broke("Insufficient balance, 0.00 EUR left"))
		assert.Empty(t, s.paused().Kind, "other words")
		s.refuse("B-3", "", "DE13", broke("insufficient balance, 0.00 EUR left"))
		assert.Equal(t, refused, s.paused().Kind)
		require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
		s.resumes()
		assert.Zero(t, s.work("waits"))
	})
}

// What is one person's mistake, or an order's own, stops nothing.
func TestRefusalsThatStopNothing(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, nil)
		closed := broke("the account is closed")
		for i, account := range []string{"DE01 23", "DE0123", "de-0123", "DE09"} {
			s.refuse(fmt.Sprint("same-", i), "", account, closed)
		}
		for i, f := range []cardwiretest.Fault{
			{Status: 422, Message: "the name is invalid"}, {Status: 422, Code: 4001, Message: "the account is closed"},
			{Status: 400, Message: "the account is closed"},
		} {
			s.refuse(fmt.Sprint("other-", i), "", fmt.Sprint("DE2", i), f)
		}
		s.do(`UPDATE @intents SET ended_at = $1`, s.moment(time.Now().Add(-alikeWithin-time.Second)))
		for i := range 2 {
			s.refuse(fmt.Sprint("later-", i), "", fmt.Sprint("DE3", i), closed)
		}
		s.orders("good")
		s.work("good")
		for i := range 2 {
			s.refuse(fmt.Sprint("last-", i), "", fmt.Sprint("DE4", i), closed)
		}
		assert.Empty(t, s.paused().Kind)
		s.refuse("third", "", "DE44", closed)
		assert.Equal(t, refused, s.paused().Kind)
	})
}

// Words that nobody understands leave orders unresolved: three are enough, of whichever receiver. Once a person has
// resolved one it is no longer among them.
func TestUnexplainedRefusalsStopAll(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		odd := cardwiretest.Fault{Status: 400, Message: "E-7 at node 12"}
		for i := range 2 {
			s.refuse(fmt.Sprint("A-", i), "", "DE00", odd)
		}
		s.do(`UPDATE @intents SET send_by = time, settled_by = time WHERE state = 'unknown'`)
		s.resolves("A-0", "not_executed")
		s.refuse("A-2", "", "DE00", odd)
		assert.Empty(t, s.paused().Kind)
		s.refuse("A-3", "", "DE00", cardwiretest.Fault{Status: 400, Message: "E-8 at node 1"})
		assert.Equal(t, refused, s.paused().Kind)
		assert.Equal(t, []State{StateFailed, StateUnresolved, StateUnresolved, StateUnresolved},
			s.states("A-0", "A-1", "A-2", "A-3"))
		assert.Contains(t, s.paused().Why, `unresolved for the same words (HTTP 400, code 400, "E-# at node #"): `+
			`if they mean that nothing was executed add them to RefusedMessages, or ask the service`)
	})
}

// The third may be a probe, or come while the brake or a person has stopped payments: what a person ends stays.
func TestTheThirdRefusalMayBeAProbe(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		none := broke("insufficient balance")
		third := func(during pause) {
			t.Helper()
			s.do(`DELETE FROM @river_job`)
			for i := range 2 {
				s.refuse(fmt.Sprint(during.Kind, i), "", fmt.Sprint("DE0", i), none)
			}
			number := during.Kind + " third"
			s.orderFor(number, "", "DE03")
			o, _, err := s.readToSend(t.Context(), number)
			require.NoError(t, err)
			s.pauses(during)
			s.willFail(none)
			if during.Kind == inTrouble {
				s.elapse()
				s.looks()
			} else { // it was in flight
				_, err = s.client.CreateTransfer(t.Context(), paramsOf(o))
				_, _, err = s.applyStep(t.Context(), o, err)
				require.NoError(t, err)
			}
			assert.Equal(t, []State{StateFailed}, s.states(number))
		}
		for _, kind := range []string{inTrouble, brake} {
			third(pause{Kind: kind, Why: "a test", Until: time.Now().Add(time.Hour)})
			s.looks()
			assert.Equal(t, refused, s.paused().Kind)
			s.resumes()
		}
		third(pause{Kind: byHand, Why: "paused by Ada"})
		assert.Equal(t, "paused by Ada", s.paused().Why)
	})
}

// What a person has seen who resumed stays seen, whatever stops payments after that, and however it ends.
func TestWhatAPersonHasSeenIsNotCounted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		s := openShop(t, source, func(c *Config) { c.Brake = 1 })
		n := 0
		isRefused := func(stops bool, why string) {
			t.Helper()
			n++
			s.refuse(fmt.Sprint("A-", n), "", fmt.Sprint("DE0", n), broke("insufficient balance"))
			assert.Equal(t, stops, s.paused().Kind == refused, why)
		}
		isRefused(false, "the first")
		isRefused(false, "the second")
		s.loseResponse("lost", true)
		require.NoError(t, s.Pause(t.Context(), "Ada", "a suspicion"))
		s.resumes()
		assert.Equal(t, brake, s.paused().Kind, "which follows")
		s.resolves("lost", "executed")
		s.looks()
		isRefused(false, "the brake has ended")
		s.orders("probe")
		s.pauses(pause{Kind: inTrouble, Why: "a test", Until: time.Now().Add(-time.Second)})
		s.willFail(broke("the name is invalid"))
		s.looks()
		assert.Equal(t, []State{StateFailed}, s.states("probe"))
		isRefused(false, "the probe has ended a pause")
		isRefused(true, "three since the person has")
	})
}

// Two replicas may record in another order than their calls ended, and what a person says was executed before is
// no order that was accepted between.
func TestRefusalsAreCountedByTheEndsOfTheirCalls(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.loseResponse("lost", true)
		none := broke("insufficient balance")
		for i := range 3 {
			number := fmt.Sprint("A-", i)
			s.refuse(number, "", fmt.Sprint("DE0", i), none)
			if i == 1 {
				s.do(`UPDATE @payouts SET words = '', tried_at = NULL WHERE order_no = $1`, number)
				s.resolves("lost", "executed")
			}
		}
		assert.Empty(t, s.paused().Kind)
		e := cardwire.Error{Outcome: cardwire.OutcomeRefused, HTTPStatus: 422, Code: 422}
		require.NoError(t, s.keepWords(t.Context(), s.found("A-1"), `"insufficient balance"`, e))
		assert.Equal(t, refused, s.paused().Kind)
	})
}

// paramsOf is the transfer of an order.
func paramsOf(o order) (p cardwire.TransferParams) {
	_ = p.UnmarshalJSON([]byte(o.Body)) // it was one
	return p
}

// storyTime is the time of a story for River, which otherwise asks SQLite.
type storyTime struct{}

// Now implements rivertype.TimeGenerator.
func (storyTime) Now() time.Time { return time.Now() }

// NowOrNil implements rivertype.TimeGenerator.
func (storyTime) NowOrNil() *time.Time { now := time.Now().UTC(); return &now }

// Orders that the service refuses for now hold up no good ones: behind 20 the first is sent within two minutes, and
// beside 30 of them, wherever they are, 95 of 100 within five.
func TestRefusedOrdersHoldUpNobody(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order string // of the orders, oldest first, in tens
		good  int    // of them, at least
		after time.Duration
	}{
		"behind":         {"bbg", 1, 2 * time.Minute},
		"beside, around": {"bbggggggggggb", 95, 5 * time.Minute},
		"beside, among":  {"gbgggbggggbgg", 95, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				faults := map[string]cardwiretest.Fault{}
				s := openPicky(t, newFile(t), faults)
				config := s.queue()
				config.Test.Time = storyTime{}
				var err error
				s.river, err = river.NewClient(s.driver, config)
				require.NoError(t, err)
				for i := range 10 * len(tc.order) {
					number := fmt.Sprintf("%c-%d", tc.order[i/10], i)
					s.orders(number)
					if tc.order[i/10] == 'b' {
						faults[number] = cardwiretest.Fault{Status: 403}
					}
				}
				stop := s.run()
				began := time.Now()
				for len(s.fake.Ledger()) < tc.good && time.Since(began) < tc.after {
					time.Sleep(time.Second)
				}
				assert.GreaterOrEqual(t, len(s.fake.Ledger()), tc.good)
				t.Logf("%d of %d after %v, by %d requests",
					len(s.fake.Ledger()), tc.good, time.Since(began), len(s.fake.Requests()))
				stop()
			})
		})
	}
}
