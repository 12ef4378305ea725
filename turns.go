package cardwire

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// turns lets one call at a time cancel or retry a record of a card operation. A call that ended as
// unknown keeps its turn until the service has executed it, if ever: nothing tells in which order the
// service executes two. It is in the memory of a client and its copies.
type turns struct {
	mu    sync.Mutex
	taken map[string]*turn // by the record; nil: none
}

// turn is what is known of the last call of a record that was not resolved at once.
type turn struct {
	sendBy, settledBy time.Time
	ended             bool // as unknown
}

const maxTurns = 4 << 10

// take gives the turn to a call. Otherwise it returns the earlier one that has it; nil: too many have theirs.
func (t *turns) take(record string, own *turn, now time.Time) (earlier *turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if earlier = t.taken[record]; earlier != nil && now.Before(earlier.settledBy) {
		earlier := *earlier
		return &earlier, false
	}
	if len(t.taken) >= maxTurns {
		maps.DeleteFunc(t.taken, func(_ string, e *turn) bool { return !now.Before(e.settledBy) })
	}
	if len(t.taken) >= maxTurns {
		return nil, false
	}
	if t.taken == nil {
		t.taken = map[string]*turn{}
	}
	t.taken[record] = own
	return nil, true
}

// leave ends the turn of a call, unless its outcome is unknown.
func (t *turns) leave(record string, own *turn, isUnknown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own.ended = true
	if !isUnknown && t.taken[record] == own {
		delete(t.taken, record)
	}
}

// takeTurn begins to cancel or retry a record. If it fails, nothing is sent; otherwise leaveTurn must be called.
func (k *call) takeTurn() *Error {
	own := &turn{sendBy: k.deadline, settledBy: k.deadline.Add(k.client.profile.LateExecution)}
	earlier, ok := k.client.turns.take(k.op.reference, own, k.start)
	switch {
	case ok:
		k.turn = own
		return nil
	case earlier == nil:
		return k.fail(OutcomeNotSent, fmt.Errorf("of %d records it is unknown whether they were canceled or retried: "+
			"wait until the first of these calls are settled", maxTurns))
	}
	d := &DuplicateIntent{}
	if left := earlier.sendBy.Sub(k.start); !earlier.ended && left > 0 {
		d.InProgress, d.Remaining = true, left
	}
	failure := k.duplicate(nil, d)
	failure.settledBy = earlier.settledBy
	return failure
}

// leaveTurn ends what takeTurn began.
func (k *call) leaveTurn(failure *Error) {
	isUnknown := failure != nil && failure.Outcome == OutcomeUnknown
	if isUnknown {
		failure.settledBy = k.turn.settledBy
	}
	k.client.turns.leave(k.op.reference, k.turn, isUnknown)
	k.turn = nil
}
