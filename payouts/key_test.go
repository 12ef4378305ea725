package payouts

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// openReplica is another replica of a shop, with a key of its own.
func (s *shop) openReplica(key *atomic.Value) *shop {
	s.t.Helper()
	r := openShop(s.t, s.source, func(c *Config) {
		c.APIKey = ""
		c.Options = []cardwire.Option{
			cardwire.WithHTTPClient(&http.Client{Transport: s.fake}),
			cardwire.WithKeySource(func(context.Context) (string, error) { return key.Load().(string), nil }),
		}
	})
	r.fake = s.fake
	return r
}

func keyOf(text string) *atomic.Value {
	key := new(atomic.Value)
	key.Store(text)
	return key
}

// askAgain is a minute later for a replica whose key was refused.
func (s *shop) askAgain() { s.key.asked = time.Time{} }

// A replica whose key is refused takes no orders and sends no probe, and the others go on. It asks each minute, and
// once a person has resumed.
func TestAReplicaWithoutAKey(t *testing.T) {
	eachShop(t, func(t *testing.T, good *shop) {
		key := keyOf("an-old-key")
		bad := good.openReplica(key)
		good.orders("A-1", "A-2", "A-3", "A-4")
		requests := func(n int, why string) {
			t.Helper()
			assert.Len(t, good.fake.Requests(), n, why)
		}
		works := func(r *shop) { require.NoError(t, r.write(t.Context(), true)) }
		works(good)
		assert.Equal(t, minPause, bad.work("A-1"))
		assert.Contains(t, good.paused().Why, "check the API key")
		good.elapse()
		for range 2 {
			assert.Equal(t, minPause, bad.work("A-2"))
			bad.looks()
		}
		requests(2, "it has asked once")
		good.looks()
		assert.Empty(t, good.paused().Kind, "the probe of the other one was sent")
		bad.askAgain()
		bad.looks()
		requests(4, "it has asked again")
		assert.Empty(t, good.paused().Kind, "the other one sends")
		good.do(`UPDATE @payouts_control SET able_at = $1`, good.moment(time.Now().Add(-2*time.Minute))) // it has ended
		works(bad)
		bad.askAgain()
		bad.looks()
		assert.Contains(t, good.status().Why, "check the API key", "nobody sends")
		good.elapse()
		good.looks()
		assert.Empty(t, good.paused().Kind)
		works(good)
		assert.Equal(t, 1, strings.Count(bad.log.String(), "this replica takes no orders until its key is accepted"))

		require.NoError(t, good.Pause(t.Context(), "Ada", "a suspicion"))
		good.resumes()
		bad.looks()
		requests(7, "a person wants to know at once")
		assert.Empty(t, good.paused().Kind, "the other one sends")

		key.Store(cardwiretest.DefaultKey)
		bad.looks()
		assert.Equal(t, minPause, bad.work("A-1"), "within the minute")
		bad.askAgain()
		bad.looks()
		for _, number := range []string{"A-1", "A-2", "A-3", "A-4"} {
			bad.work(number)
		}
		assert.Len(t, good.fake.Ledger(), 4)
		assert.Contains(t, bad.log.String(), "this replica's key is accepted again")
	})
}

// Where no replica has a key that is accepted payments stay paused, until one has, also if a person resumes.
func TestNoReplicaHasAKey(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		key := keyOf("")
		s = s.openReplica(key)
		s.orders("A-1")
		for _, refused := range []string{"", "an-old-key"} { // the source's own mistake, and the service's word
			key.Store(refused)
			s.work("A-1")
			s.looks()
			assert.Equal(t, inTrouble, s.paused().Kind)
			s.resumes()
			s.looks()
			assert.Equal(t, inTrouble, s.paused().Kind, "it has tried at once")
			s.do(`UPDATE @payouts_control SET until = $1`, s.moment(time.Now().Add(-time.Hour)))
			s.askAgain()
			s.looks()
			assert.True(t, s.paused().Until.After(time.Now()), "nobody else sends a probe")
			assert.Empty(t, s.fake.Ledger())
		}
		key.Store(cardwiretest.DefaultKey)
		s.elapse()
		s.askAgain()
		s.looks()
		assert.Equal(t, []State{StateSubmitted}, s.states("A-1"))
		assert.Empty(t, s.paused().Kind)
	})
}

// Orders do not wait at a replica whose key is refused: it leaves them to the other one, and takes them again once
// its key is good.
func TestAReplicaWithoutAKeyTakesNoOrders(t *testing.T) {
	t.Parallel()
	good := openShop(t, newDatabase(t), nil)
	key := keyOf("an-old-key")
	bad := good.openReplica(key)
	good.orders("first")
	stop := bad.run()
	require.Eventually(t, func() bool { return bad.refusedKey() != "" }, waitFor, tick)
	assert.Equal(t, []State{StateQueued}, good.states("first"))
	good.run()
	good.await("first", StateSubmitted)
	var all []string
	for i := range 40 {
		all = append(all, "A-"+string(rune('0'+i/10))+string(rune('0'+i%10)))
	}
	good.orders(all...)
	for _, number := range all {
		good.await(number, StateSubmitted)
	}
	refusals := 0
	for _, r := range good.fake.Requests() {
		if r.Method == http.MethodPost {
			refusals++
		}
	}
	assert.LessOrEqual(t, refusals-41, 4, "those that it had taken")
	stop()
	key.Store(cardwiretest.DefaultKey)
	bad.askAgain()
	bad.run()
	require.Eventually(t, func() bool { return bad.refusedKey() == "" }, waitFor, tick)
}

// A database that is away while a replica takes its orders again only delays that.
func TestAReplicaTakesItsOrdersAgain(t *testing.T) {
	eachShop(t, func(t *testing.T, s *shop) {
		s.orders("first")
		s.run()
		s.await("first", StateSubmitted)
		require.NoError(t, s.setIdle(t.Context(), true))
		s.do(`ALTER TABLE @river_queue RENAME COLUMN updated_at TO away`)
		assert.ErrorContains(t, s.setIdle(t.Context(), false), "updated_at")
		s.do(`ALTER TABLE @river_queue RENAME COLUMN away TO updated_at`)
		s.orders("A-1")
		require.NoError(t, s.setIdle(t.Context(), false))
		s.await("A-1", StateSubmitted)
	})
}
