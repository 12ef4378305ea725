// Package inflight is a client's own memory of references: those of calls in
// progress, those known to be executed, and those that once ended unknown.
package inflight

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// Key identifies a reference. References of different operations are different.
type Key struct{ Op, Reference string }

// State is what is known of a reference.
type State uint8

const (
	// Free means that nothing is known of the reference.
	Free State = iota
	// Unknown means that a call with the reference once ended unknown.
	Unknown
	// Executed means that a call with the reference was executed.
	Executed
)

// Record is what is remembered of a reference.
type Record struct {
	State State
	// Body is the Digest of the request.
	Body uint64
	// ServiceID is the service's identifier of what was executed; "": not known,
	// or no longer remembered.
	ServiceID string
}

// Memory remembers references. Its zero value is empty, and it is safe for
// concurrent use. It remembers at least the last 65,536 executed references, as many
// unknown ones and as many for which a call was told to wait, with the last 1,024 service
// IDs, in less than 12 MiB.
type Memory struct {
	mu         sync.Mutex
	inProgress map[Key]progress
	executed   recent[uint64] // the digests of the requests
	unknown    recent[uint64]
	serviceIDs recent[string]
	waiting    recent[int]
}

// progress is a call in progress, and how many others were told to wait for it.
type progress struct {
	until   time.Time
	waiting int
}

// The sizes of a generation: entries older than two generations may be forgotten.
const (
	referencesEach = 32 << 10
	serviceIDsEach = 512
)

// Enter begins a call that may send until sendBy. It reports false where another
// call with the key is in progress, with the time until which that one may send.
func (m *Memory) Enter(k Key, sendBy time.Time) (until time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if until, taken := m.wait(k); taken {
		return until, false
	}
	if m.inProgress == nil {
		m.inProgress = map[Key]progress{}
	}
	m.inProgress[k] = progress{until: sendBy}
	return sendBy, true
}

// wait counts one that is told to wait, if there is a call in progress.
func (m *Memory) wait(k Key) (until time.Time, taken bool) {
	p, taken := m.inProgress[k]
	if taken {
		p.waiting++
		m.inProgress[k] = p
	}
	return p.until, taken
}

// Leave ends the call that Enter began.
func (m *Memory) Leave(k Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.inProgress[k].waiting; n > 0 {
		m.waiting.put(k.digest(), n, referencesEach)
	}
	delete(m.inProgress, k)
}

// Waited reports whether a call may be from a caller that was told to wait for the last
// call with the key. It is true once for each such caller.
func (m *Memory) Waited(k Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := k.digest()
	n, _ := m.waiting.get(key)
	if n > 0 {
		m.waiting.replace(key, n-1)
	}
	return n > 0
}

// InProgress reports whether a call with the key is in progress, and until when it
// may send.
func (m *Memory) InProgress(k Key) (until time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wait(k)
}

// Known returns what is remembered of the reference.
func (m *Memory) Known(k Key) Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := k.digest()
	if body, ok := m.executed.get(key); ok {
		id, _ := m.serviceIDs.get(key)
		return Record{Executed, body, id}
	}
	if body, ok := m.unknown.get(key); ok {
		return Record{State: Unknown, Body: body}
	}
	return Record{}
}

// Remember replaces what was known of the reference.
func (m *Memory) Remember(k Key, r Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := k.digest()
	switch r.State {
	case Executed:
		m.unknown.forget(key)
		m.executed.put(key, r.Body, referencesEach)
		if r.ServiceID != "" {
			m.serviceIDs.put(key, r.ServiceID, serviceIDsEach)
		}
	case Unknown:
		m.unknown.put(key, r.Body, referencesEach)
	case Free:
		m.unknown.forget(key)
		m.executed.forget(key)
	}
}

// digest identifies a key. A reference with the same digest as another by chance
// would be refused as used for a different request, since the bodies differ too: two
// requests are confused only if 64 bits of both digests are equal.
func (k Key) digest() uint64 { return Digest(k.Op + "\x00" + k.Reference) }

// Digest returns the first 64 bits of a string's SHA-256.
func Digest(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:])
}

// recent remembers the latest entries in three generations: when the first is full, a
// new one begins and the oldest is dropped. Nothing is ever moved, so its memory is
// bounded.
type recent[V any] struct{ generations [3]map[uint64]V }

func (r *recent[V]) put(key uint64, v V, each int) {
	g := &r.generations
	if g[0] == nil || len(g[0]) >= each {
		g[0], g[1], g[2] = map[uint64]V{}, g[0], g[1]
	}
	g[0][key] = v
}

func (r *recent[V]) get(key uint64) (v V, ok bool) {
	for _, g := range r.generations {
		if v, ok = g[key]; ok {
			return v, true
		}
	}
	return v, false
}

// replace changes an entry where it is, so that others are remembered as long as before.
func (r *recent[V]) replace(key uint64, v V) {
	for _, g := range r.generations {
		if _, ok := g[key]; ok {
			g[key] = v
			return
		}
	}
}

func (r *recent[V]) forget(key uint64) {
	for _, g := range r.generations {
		delete(g, key)
	}
}
