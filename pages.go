package cardwire

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// maxPrefetch bounds WithPrefetch: so many pages may be held in memory at once.
const maxPrefetch = 100

// WithPrefetch makes AllCards read up to pages further pages, at most 100, while
// the current one is used. Cards come in the same order as without, and so does
// an error: after all the cards before it. The limiter is waited for as ever.
//
// A page is as old as its reading. Those under way when the iteration ends are
// given up before it returns, and observers hear of them as failed calls. 0 reads
// one page at a time. Other operations ignore it.
func WithPrefetch(pages int) CallOption {
	return func(k *call) {
		if pages < 0 || pages > maxPrefetch {
			k.refuse("WithPrefetch: the number of pages is not from 0 to 100")
			return
		}
		k.prefetch = pages
	}
}

// walk goes through the pages in order. Without prefetching it reads one when
// it is asked for it; otherwise goroutines read those after it meanwhile.
type walk struct {
	client   *Client
	params   ListCardsParams
	opts     []CallOption
	response *Response // the caller's; nil: none

	next int      // the page to return next
	ids  []string // of the page before
	done bool

	most   int          // how many pages are read ahead
	ahead  []*earlyPage // from next on, without a gap
	failed atomic.Bool  // one of them did: nothing more is begun
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func newWalk(c *Client, p ListCardsParams, opts []CallOption) *walk {
	var k call // tells what the options ask for; each page's own call refuses them
	for _, opt := range opts {
		if opt != nil {
			opt(&k)
		}
	}
	if p.Status != nil {
		p.Status = new(*p.Status) // the caller may go on with its own
	}
	return &walk{
		client: c, params: p, opts: opts, response: k.response,
		next: cmp.Or(p.Page, 1), most: k.prefetch, cancel: func() {},
	}
}

// all yields the cards of all pages, and an error that says where to resume.
func (w *walk) all(ctx context.Context, yield func(Card, error) bool) {
	if w.most > 0 && ctx != nil { // without one each call says so
		ctx, w.cancel = context.WithCancel(ctx)
	}
	defer w.stop()
	for !w.done {
		cards, err := w.step(ctx)
		for i := range cards {
			if !yield(cards[i], nil) {
				return
			}
		}
		if err != nil {
			yield(Card{}, err)
			return
		}
	}
}

// stop ends what is read ahead, and waits until it has ended.
func (w *walk) stop() {
	w.cancel()
	w.ended.Wait()
	for _, early := range w.ahead {
		if early.panicked != nil {
			panic(early.panicked) // it must not go by because nobody asked for the page
		}
	}
}

// step returns the next page's cards.
func (w *walk) step(ctx context.Context) ([]Card, error) {
	page, ids, err := w.page(ctx)
	if err == nil && w.repeats(ids) && !w.client.profile().TrustReplies {
		// Like every contradiction it is looked at once more.
		if page, ids, err = w.page(ctx); err == nil && w.repeats(ids) {
			err = &Error{
				Op: "ListCards", Outcome: OutcomeExecuted, HTTPStatus: http.StatusOK, Code: codeSuccess, ReadOnly: true,
				Err: ignored("the same page came twice", "PageParam"),
			}
		}
	}
	if err != nil {
		return nil, resumeAt(err, w.next)
	}
	w.ids = ids
	w.done = w.next >= page.LastPage
	w.next++
	w.readAhead(ctx, page.LastPage)
	return page.Cards, nil
}

// page returns the next page, which may have been read already, and the
// identifiers on it.
func (w *walk) page(ctx context.Context) (*CardPage, []string, error) {
	page, err := w.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	ids := make([]string, len(page.Cards))
	for i := range page.Cards {
		ids[i] = page.Cards[i].ID
	}
	return page, ids, nil
}

func (w *walk) take(ctx context.Context) (*CardPage, error) {
	if len(w.ahead) == 0 || w.ahead[0].number != w.next {
		return w.read(ctx, w.next, w.opts)
	}
	early := w.ahead[0]
	w.ahead[0] = nil // its cards are the caller's now, who may want to be rid of them
	w.ahead = w.ahead[1:]
	<-early.ready
	if w.response != nil {
		*w.response = early.response
	}
	if early.panicked != nil {
		panic(early.panicked) // where the caller can recover from it
	}
	if early.waited() && ctx.Err() == nil {
		w.failed.Store(false)
		return w.read(ctx, w.next, w.opts)
	}
	return early.page, early.err
}

// waited says that the call, begun early, may have spent its time waiting for
// its turn: at the limiter, or for a connection.
func (p *earlyPage) waited() bool {
	return errors.Is(p.err, ErrNotSent) || errors.Is(p.err, context.DeadlineExceeded)
}

func (w *walk) read(ctx context.Context, number int, opts []CallOption) (*CardPage, error) {
	p := w.params
	p.Page = number
	if number == 1 && w.client.profile().PageParam == "" {
		p.Page = 0 // the first page can be had without a name for it
	}
	return w.client.ListCards(ctx, p, opts...)
}

// repeats says whether these are the cards of the page before. Before the first
// page there is none.
func (w *walk) repeats(ids []string) bool { return w.ids != nil && slices.Equal(ids, w.ids) }

// earlyPage is a page that is read before it is asked for.
type earlyPage struct {
	number   int
	ready    chan struct{} // closed when the rest is there
	page     *CardPage
	err      error
	response Response // as the caller's would be
	panicked any      // by a function of the caller's
}

// readAhead begins with the pages after the current one, of which last is the last.
func (w *walk) readAhead(ctx context.Context, last int) {
	for n := w.next + len(w.ahead); n <= last && len(w.ahead) < w.most && !w.failed.Load(); n++ {
		early := &earlyPage{number: n, ready: make(chan struct{}), err: endedEarly()}
		w.ahead = append(w.ahead, early)
		w.ended.Go(func() { w.fetch(ctx, early) })
	}
}

// endedEarly stands where a function of the caller's ended its goroutine.
func endedEarly() error {
	return &Error{
		Op: "ListCards", Outcome: OutcomeUnknown, ReadOnly: true,
		Err: errors.New("a function of the program's own ended the goroutine that read the page"),
	}
}

func (w *walk) fetch(ctx context.Context, early *earlyPage) {
	defer close(early.ready)
	defer func() {
		early.panicked = recover()
		if early.err != nil || early.panicked != nil {
			w.failed.Store(true)
		}
	}()
	opts := w.opts
	if w.response != nil {
		opts = append(slices.Clone(opts), WithResponse(&early.response))
	}
	early.page, early.err = w.read(ctx, early.number, opts)
}

// resumeAt puts the page into a copy of the error: observers have the original.
func resumeAt(err error, page int) error {
	var failure *Error
	if !errors.As(err, &failure) {
		return err
	}
	resumable := *failure
	resumable.Page = page
	return &resumable
}
