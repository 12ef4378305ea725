package cardwire

import (
	"context"
	"sync"
	"sync/atomic"
)

// prefetch reads pages before they are needed. Its methods must be called from one
// goroutine; if most is not 0, start comes first.
type prefetch struct {
	most int // how many pages are read ahead; 0: none
	// read reads a page into r. It is called on a separate goroutine for each page, and may
	// panic or call runtime.Goexit: r is then as read left it.
	read func(ctx context.Context, number int, r *readPage)

	queue  []*readPage // without a gap
	failed atomic.Bool // a page failed: no further one is begun
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// readPage is a page that was read, or why it was not.
type readPage struct {
	page     *CardPage
	err      error
	response Response // for the caller's WithResponse

	// Of a page that is read ahead.
	number   int
	ready    chan struct{} // closed when the other fields are set
	panicked any
}

// raise panics as the reading of the page did.
func (r *readPage) raise() {
	if r.panicked != nil {
		panic(r.panicked)
	}
}

// start returns the context of all reads.
func (f *prefetch) start(ctx context.Context) context.Context {
	ctx, f.cancel = context.WithCancel(ctx)
	return ctx
}

// stop cancels what is read ahead, and waits until it has ended.
func (f *prefetch) stop() {
	if f.cancel != nil {
		f.cancel()
	}
	f.ended.Wait()
	for _, r := range f.queue {
		r.raise() // a panic must not get lost because the page was not used
	}
}

// begin begins to read the pages from next to last, as far as most allows. If all pages
// were taken, the caller has dealt with every failure.
func (f *prefetch) begin(ctx context.Context, next, last int) {
	if len(f.queue) == 0 {
		f.failed.Store(false)
	}
	for n := next + len(f.queue); n <= last && len(f.queue) < f.most && !f.failed.Load(); n++ {
		r := &readPage{number: n, ready: make(chan struct{})}
		f.queue = append(f.queue, r)
		f.ended.Go(func() { f.readAhead(ctx, r) })
	}
}

func (f *prefetch) readAhead(ctx context.Context, r *readPage) {
	defer close(r.ready)
	defer func() {
		r.panicked = recover()
		if r.panicked != nil || r.err != nil {
			f.failed.Store(true)
		}
	}()
	f.read(ctx, r.number, r)
}

// take waits for a page that was begun; nil: it was not. The caller raises its panic, where
// its own caller can recover from it.
func (f *prefetch) take(number int) *readPage {
	if len(f.queue) == 0 || f.queue[0].number != number {
		return nil
	}
	r := f.queue[0]
	f.queue[0] = nil // what it contains is the caller's now, and may be garbage soon
	f.queue = f.queue[1:]
	<-r.ready
	return r
}

// wait waits for all pages that were begun and not taken.
func (f *prefetch) wait() {
	for _, r := range f.queue {
		<-r.ready
	}
}
