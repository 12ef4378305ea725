// Package ahead reads numbered pages before they are needed.
package ahead

import (
	"context"
	"sync"
	"sync/atomic"
)

// Pages reads numbered pages ahead. Its methods must be called from one goroutine; if
// Most is not 0, call Start first.
type Pages[P any] struct {
	// Most is how many pages are read ahead; 0: none.
	Most int
	// Read reads a page into p. It is called on a separate goroutine for each page, and may
	// panic or call runtime.Goexit: p is then as Read left it.
	Read func(ctx context.Context, number int, p *P)
	// Failed reports whether a page failed: no further page is begun then.
	Failed func(*P) bool

	queue  []*Page[P] // without a gap
	failed atomic.Bool
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// Page is a page that was read ahead.
type Page[P any] struct {
	// Value is what Read made of it.
	Value P

	number   int
	ready    chan struct{} // closed when the other fields are set
	panicked any
}

// Raise panics as Read did, if there is a page, and it did.
func (p *Page[P]) Raise() {
	if p != nil && p.panicked != nil {
		panic(p.panicked)
	}
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
		p.Raise() // a panic must not be lost because the page was not used
	}
}

// Begin begins to read the pages from next to last, as far as Most allows. If no page is
// left, the caller has taken the one that failed, and reading may go on.
func (a *Pages[P]) Begin(ctx context.Context, next, last int) {
	if len(a.queue) == 0 {
		a.failed.Store(false)
	}
	for n := next + len(a.queue); n <= last && len(a.queue) < a.Most && !a.failed.Load(); n++ {
		p := &Page[P]{number: n, ready: make(chan struct{})}
		a.queue = append(a.queue, p)
		a.ended.Go(func() { a.read(ctx, p) })
	}
}

func (a *Pages[P]) read(ctx context.Context, p *Page[P]) {
	defer close(p.ready)
	defer func() {
		p.panicked = recover()
		if p.panicked != nil || a.Failed(&p.Value) {
			a.failed.Store(true)
		}
	}()
	a.Read(ctx, p.number, &p.Value)
}

// Take waits for a page that was begun; nil: it was not. The caller raises its panic, where
// its own caller can recover from it.
func (a *Pages[P]) Take(number int) *Page[P] {
	if len(a.queue) == 0 || a.queue[0].number != number {
		return nil
	}
	p := a.queue[0]
	a.queue[0] = nil // it belongs to the caller, and must not be kept alive here
	a.queue = a.queue[1:]
	<-p.ready
	return p
}

// Wait waits for all pages that were begun and not taken.
func (a *Pages[P]) Wait() {
	for _, p := range a.queue {
		<-p.ready
	}
}
