package transport

import (
	"context"
	"sync"
	"time"
)

// lazyContext is context.WithDeadline without its timer until somebody waits on
// Done. net/http always does; a doer that answers at once, as in tests, does
// not, and the timer would be a quarter of its call.
type lazyContext struct {
	context.Context // the caller's
	end             time.Time

	mu      sync.Mutex
	timed   context.Context // nil: nobody has waited yet
	cancel  context.CancelFunc
	stopped bool
}

func (l *lazyContext) Deadline() (time.Time, bool) { return l.end, true }

func (l *lazyContext) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timed == nil {
		l.timed, l.cancel = context.WithDeadline(l.Context, l.end)
		if l.stopped {
			l.cancel()
		}
	}
	return l.timed.Done()
}

func (l *lazyContext) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.timed != nil:
		return l.timed.Err()
	case l.stopped:
		return context.Canceled
	case l.Context.Err() != nil:
		return l.Context.Err()
	case !time.Now().Before(l.end):
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the context with the timer once there is one: contexts made from
// this one find their parent that way, instead of watching it from a goroutine.
func (l *lazyContext) Value(key any) any {
	l.mu.Lock()
	inner := l.timed
	l.mu.Unlock()
	if inner == nil {
		inner = l.Context
	}
	return inner.Value(key)
}

// stop cancels the context and frees its timer.
func (l *lazyContext) stop() {
	l.mu.Lock()
	l.stopped = true
	cancel := l.cancel
	l.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
