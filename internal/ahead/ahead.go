// Package ahead reads numbered pages before they are needed.
package ahead

import (
	"context"
	"sync"
	"sync/atomic"
)

// Pages are pages that are read ahead, each of which is a P. The methods are for one
// goroutine. Where Most is not 0, Start comes first.
type Pages[P any] struct {
	// Most is how many pages are read ahead; 0: none.
	Most int
	// Read reads a page. It is called on goroutines.
	Read func(ctx context.Context, number int) P
	// Failed reports whether a page failed: no other is then begun.
	Failed func(P) bool
	// Unfinished is the page where Read ended its goroutine and did not return.
	Unfinished P

	queue  []*page[P] // without a gap
	failed atomic.Bool
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

type page[P any] struct {
	number   int
	ready    chan struct{} // closed when the other fields are set
	value    P
	panicked any
}

// Start returns the context of all reads.
func (a *Pages[P]) Start(ctx context.Context) context.Context {
	ctx, a.cancel = context.WithCancel(ctx)
	return ctx
}

// Stop cancels what is read ahead, and waits until it has ended.
func (a *Pages[P]) Stop() {
	if a.cancel != nil {
		a.cancel()
	}
	a.ended.Wait()
	for _, p := range a.queue {
		if p.panicked != nil {
			panic(p.panicked) // a panic must not get lost because the page was not used
		}
	}
}

// Begin begins to read the pages from next to last, as far as Most allows.
func (a *Pages[P]) Begin(ctx context.Context, next, last int) {
	if len(a.queue) == 0 {
		a.failed.Store(false) // all that failed was read again, without new reads to wait for
	}
	for n := next + len(a.queue); n <= last && len(a.queue) < a.Most && !a.failed.Load(); n++ {
		p := &page[P]{number: n, ready: make(chan struct{}), value: a.Unfinished}
		a.queue = append(a.queue, p)
		a.ended.Go(func() { a.read(ctx, p) })
	}
}

func (a *Pages[P]) read(ctx context.Context, p *page[P]) {
	defer close(p.ready)
	defer func() {
		p.panicked = recover()
		if p.panicked != nil || a.Failed(p.value) {
			a.failed.Store(true)
		}
	}()
	p.value = a.Read(ctx, p.number)
}

// Take waits for a page that was begun, and panics as Read did. It reports false if the
// page was not begun.
func (a *Pages[P]) Take(number int) (P, bool) {
	if len(a.queue) == 0 || a.queue[0].number != number {
		var none P
		return none, false
	}
	p := a.queue[0]
	a.queue[0] = nil // what it contains is the caller's now, and may be garbage soon
	a.queue = a.queue[1:]
	<-p.ready
	if p.panicked != nil {
		panic(p.panicked) // where the caller can recover from it
	}
	return p.value, true
}

// Wait waits for all pages that were begun.
func (a *Pages[P]) Wait() {
	for _, p := range a.queue {
		<-p.ready
	}
}
