package inflight_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go/internal/inflight"
)

func key(i int) inflight.Key {
	return inflight.Key{Op: "CreateTransfer", Reference: fmt.Sprintf("order-%d", i)}
}

func TestOneCallHasAKey(t *testing.T) {
	t.Parallel()
	var m inflight.Memory
	end := time.Now().Add(time.Minute)
	_, ok := m.Enter(key(1), end)
	assert.True(t, ok)
	until, ok := m.Enter(key(1), end.Add(time.Hour))
	assert.False(t, ok)
	assert.Equal(t, end, until, "that of the call that is in progress")
	_, ok = m.Enter(key(2), end)
	assert.True(t, ok)
	_, ok = m.Enter(inflight.Key{Op: "FreezeCard", Reference: key(1).Reference}, end)
	assert.True(t, ok)

	until, ok = m.InProgress(key(1))
	assert.True(t, ok)
	assert.Equal(t, end, until)
	m.Leave(key(1))
	_, ok = m.InProgress(key(1))
	assert.False(t, ok)
	_, ok = m.Enter(key(1), end)
	assert.True(t, ok)
}

func TestWhatIsKnownOfAReference(t *testing.T) {
	t.Parallel()
	var m inflight.Memory
	assert.Equal(t, inflight.Record{}, m.Known(key(1)))
	m.Remember(key(1), inflight.Record{State: inflight.Unknown, Body: 7})
	assert.Equal(t, inflight.Record{State: inflight.Unknown, Body: 7}, m.Known(key(1)))
	assert.Equal(t, inflight.Record{}, m.Known(key(2)))
	m.Remember(key(1), inflight.Record{State: inflight.Executed, Body: 8, ServiceID: "A-1"})
	assert.Equal(t, inflight.Record{State: inflight.Executed, Body: 8, ServiceID: "A-1"}, m.Known(key(1)))
	m.Remember(key(1), inflight.Record{})
	assert.Equal(t, inflight.Record{}, m.Known(key(1)))
}

const remembered = 65_536

// The last 65,536 of each state are remembered, whatever comes of the other.
func TestTheLastReferencesAreRemembered(t *testing.T) {
	t.Parallel()
	for _, state := range []inflight.State{inflight.Executed, inflight.Unknown} {
		for _, extra := range []int{0, 32_767, 32_768, remembered} {
			var m inflight.Memory
			m.Remember(key(-1), inflight.Record{State: inflight.Executed + inflight.Unknown - state, Body: 9})
			last := remembered + extra
			for i := range last {
				m.Remember(key(i), inflight.Record{State: state, Body: uint64(i)})
			}
			for i := last - remembered; i < last; i++ {
				if got := m.Known(key(i)); got.State != state || got.Body != uint64(i) {
					t.Fatalf("%d of %d: %+v", i, last, got)
				}
			}
			assert.Equal(t, uint64(9), m.Known(key(-1)).Body, "of the other state")
			if extra == remembered {
				assert.Equal(t, inflight.Free, m.Known(key(0)).State, "the oldest are forgotten")
			}
		}
	}
}

// Whoever waits may come back late: as many are remembered as unknown references.
func TestTheLastThatWaitedAreRemembered(t *testing.T) {
	t.Parallel()
	var m inflight.Memory
	const last, later = remembered + 32_770, 32_768
	for i := range last {
		m.Enter(key(i), time.Time{})
		m.Enter(key(i), time.Time{}) // is told to wait
		m.Leave(key(i))
		// Some come back after others were told to wait, which takes the place of nobody.
		if back := i - later; back >= 0 && back%2 == 1 && (!m.Waited(key(back)) || m.Waited(key(back))) {
			t.Fatal(back)
		}
	}
	for i := last - remembered; i < last; i += 2 {
		if !m.Waited(key(i)) {
			t.Fatal(i)
		}
	}
	assert.False(t, m.Waited(key(0)), "the oldest are forgotten")
}

func TestTheLastServiceIDsAreRemembered(t *testing.T) {
	t.Parallel()
	var m inflight.Memory
	for i := range 10_000 {
		m.Remember(key(i), inflight.Record{State: inflight.Executed, ServiceID: fmt.Sprint("A-", i)})
	}
	for i := 10_000 - 1_024; i < 10_000; i++ {
		assert.Equal(t, fmt.Sprint("A-", i), m.Known(key(i)).ServiceID)
	}
	assert.Equal(t, inflight.Record{State: inflight.Executed}, m.Known(key(1)))
}

// Full, and after as much again many times over. Not parallel: it measures the heap.
func TestMemoryIsBounded(t *testing.T) {
	var m inflight.Memory
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := heap()
	id := make([]byte, 128)
	for i := range 3 * remembered {
		m.Remember(key(2*i), inflight.Record{State: inflight.Executed, Body: uint64(i), ServiceID: string(id)})
		m.Remember(key(2*i+1), inflight.Record{State: inflight.Unknown, Body: uint64(i)})
		m.Enter(key(2*i+1), time.Time{})
		m.InProgress(key(2*i + 1))
		m.Leave(key(2*i + 1))
	}
	used := heap() - before
	runtime.KeepAlive(&m)
	assert.Less(t, used, uint64(12<<20))
	t.Logf("%d bytes", used)
}
