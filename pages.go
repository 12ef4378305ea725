package cardwire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardPage is one page of ListCards. It prints counts and identifiers only.
type CardPage struct {
	Total       int    // the number of cards on all pages
	PerPage     int    // the number of cards that the service puts on a page
	CurrentPage int    // this page's number, from 1
	LastPage    int    // the last page's number
	Cards       []Card // the cards of this page; empty: none
}

var cardPageFields = []wire.FieldOf[CardPage]{
	{Name: "total", Required: true, Value: func(c *wire.Codec, v *CardPage) { c.Count(&v.Total) }},
	{Name: "per_page", Value: func(c *wire.Codec, v *CardPage) { wire.Int(c, &v.PerPage) }},
	{Name: "current_page", Required: true, Value: func(c *wire.Codec, v *CardPage) { c.Count(&v.CurrentPage) }},
	{Name: "last_page", Required: true, Value: func(c *wire.Codec, v *CardPage) { c.Count(&v.LastPage) }},
	{Name: "data", Required: true, Value: func(c *wire.Codec, v *CardPage) {
		if !wire.Rows(c, &v.Cards, cardFields, cardInList) {
			v.Cards = nil // until lacksCards
		}
	}},
}

// lacksCards reports whether null or {} was sent for the cards of a page that has some. For
// others it is an empty list. asked is the page that was asked for; 0: unknown.
func (v *CardPage) lacksCards(asked int) bool {
	if v.Cards != nil || v.Total > 0 && max(v.CurrentPage, asked) <= v.LastPage {
		return v.Cards == nil
	}
	v.Cards = []Card{}
	return false
}

const aList = "an array, since there are cards"

// pages returns how many pages there are: the larger number if the counts contradict each other.
func (v *CardPage) pages() int { return max(v.LastPage, v.filled(v.PerPage)) }

// filled returns how many pages Total cards fill; 0: the number on a page is unknown.
func (v *CardPage) filled(perPage int) int {
	if perPage <= 0 || v.Total == 0 {
		return 0
	}
	return 1 + (v.Total-1)/perPage
}

// contradictsItself reports whether the counts do not belong together. Without cards there is one
// page, or none.
func (v *CardPage) contradictsItself() bool {
	most := max(v.filled(max(v.PerPage, 1)), 1)
	return v.LastPage > most || v.LastPage < v.filled(v.PerPage)
}

// MarshalJSON returns the page under the wire's names, with secrets masked.
func (v CardPage) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, cardPageFields) }

// UnmarshalJSON reads a page, as strictly as a response.
func (v *CardPage) UnmarshalJSON(data []byte) error {
	if v == nil {
		return errNilReceiver
	}
	page := *v
	err := unmarshal(data, &page, cardPageFields)
	if err == nil && string(bytes.TrimSpace(data)) != "null" && page.lacksCards(0) {
		err = cannotUnmarshal[CardPage](&wire.Error{Path: "data", Problem: aList})
	}
	if err == nil {
		*v = page
	}
	return err
}

// Format writes what LogValue returns, whatever the verb.
func (v CardPage) Format(f fmt.State, _ rune) { formatLogged(f, "CardPage", v) }

// LogValue returns the counts, and the identifiers of the cards.
func (v CardPage) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("Total", v.Total), slog.Int("PerPage", v.PerPage),
		slog.Int("CurrentPage", v.CurrentPage), slog.Int("LastPage", v.LastPage), slog.Any("Cards", v.ids()),
	)
}

func (v *CardPage) ids() []string {
	ids := make([]string, len(v.Cards))
	for i := range v.Cards {
		ids[i] = v.Cards[i].ID
	}
	return ids
}

// ListCardsParams selects cards; the zero value: all.
type ListCardsParams struct {
	PageSize       int         // the page size asked for; 0: the service's own
	Page           int         // the page asked for, from 1; 0: the first
	SubAccountID   string      // restricts the result to a sub-account's cards; "": all
	Status         *CardStatus // restricts the result to a status, as new(cardwire.CardActive) does; nil: all
	CardBIN        string      // restricts the result to a BIN; "": all
	CreatedFrom    Date        // the first day of creation; zero: no bound
	CreatedTo      Date        // the last day of creation; zero: no bound
	TransactedFrom Date        // the first day of the transaction time; zero: no bound
	TransactedTo   Date        // the last day of the transaction time; zero: no bound
}

// ListCards returns one page of cards, empty beyond the last one. It calls GET /cards, and
// once more if the page contradicts p.
func (c *Client) ListCards(ctx context.Context, p ListCardsParams, opts ...CallOption) (*CardPage, error) {
	var q query
	for _, s := range p.selectors(&c.settings().profile) {
		q.add(s.param, s.field, s.value)
	}
	return do(ctx, c, operation[CardPage]{
		spec: spec{
			name: OpListCards, method: http.MethodGet, path: "/cards", query: q.fields.Form(), cards: true,
			fresh:   p.SubAccountID != "" || !p.TransactedFrom.IsZero() || !p.TransactedTo.IsZero(), // no card has these
			invalid: cmp.Or(p.valid(), q.err),
		},
		read: func(d *wire.Codec, page *CardPage) {
			wire.Object(d, page, cardPageFields, wire.Whole)
			if d.Err() == nil && page.lacksCards(p.Page) {
				d.FailAt("data", aList)
			}
			if page.contradictsItself() {
				d.Drift("counts that contradict each other")
			}
		},
		verify: func(page *CardPage) error {
			if err := c.verifyPage(p, page); err != nil {
				return err
			}
			page.endAfterLast(p.Page)
			return nil
		},
	}, opts)
}

// AllPages iterates over the pages of cards, from p.Page on. With [ErrElements] it returns the
// page too, and goes on if the loop does. It ends after any other error; resume from the Page of
// that error. A card that moves meanwhile may be missed or come twice.
func (c *Client) AllPages(ctx context.Context, p ListCardsParams, opts ...CallOption) iter.Seq2[*CardPage, error] {
	return func(yield func(*CardPage, error) bool) { newPager(c, p, opts).all(ctx, yield) }
}

// AllCards iterates over the cards of [Client.AllPages]. For a card that is unreadable it returns
// an [ErrElements], beside nothing but the card's ID, and goes on if the loop does:
//
//	if errors.Is(err, cardwire.ErrElements) {
//		report(err)
//		continue
//	}
func (c *Client) AllCards(ctx context.Context, p ListCardsParams, opts ...CallOption) iter.Seq2[Card, error] {
	return func(yield func(Card, error) bool) {
		for page, err := range c.AllPages(ctx, p, opts...) {
			if page == nil {
				yield(Card{}, err)
				return
			}
			if !page.each(err, yield) {
				return
			}
		}
	}
}

// each yields the cards of a page in their order, those with an error for each that err says
// is unreadable, as long as yield returns true.
func (v *CardPage) each(err error, yield func(Card, error) bool) bool {
	failure, _ := errors.AsType[*Error](err)
	var unread []UnreadableElement
	if failure != nil {
		unread = failure.Elements
	}
	for i, cards := 0, v.Cards; len(cards)+len(unread) > 0; i++ {
		if len(cards) > 0 && (len(unread) == 0 || unread[0].Index > i) {
			if !yield(cards[0], nil) {
				return false
			}
			cards = cards[1:]
			continue
		}
		alone := *failure
		alone.Elements, unread = unread[:1:1], unread[1:]
		alone.Err = elementsError(alone.Elements)
		if !yield(Card{ID: alone.Elements[0].ID}, &alone) {
			return false
		}
	}
	return true
}

// WithPrefetch makes AllPages and AllCards read up to that number of pages ahead, at most 100; any
// other call refuses it with [ErrSetup]. If the iteration ends first, observers see the pages being
// read canceled.
func WithPrefetch(pages int) CallOption {
	return func(o *callOptions) {
		if pages < 0 || pages > 100 {
			o.refuse("WithPrefetch: the number of pages must be from 0 to 100")
			return
		}
		o.prefetch = pages
	}
}

type pager struct {
	client   *Client
	params   ListCardsParams
	opts     []CallOption
	response *Response // the caller's; nil: none

	next  int      // the page to return next
	ids   []string // of the cards of the page before
	empty int      // the pages in a row that are empty
	done  bool
	ahead prefetch
}

// mostEmpty is how many empty pages in a row are believed: counts may be those of other cards.
const mostEmpty = 100

func newPager(c *Client, p ListCardsParams, opts []CallOption) *pager {
	if p.Status != nil {
		p.Status = new(*p.Status) // the caller may change what it points to
	}
	var o callOptions
	o.apply(opts) // the call of each page refuses invalid ones
	opts = append(slices.Clip(opts), func(o *callOptions) { o.prefetch = 0 })
	w := &pager{client: c, params: p, opts: opts, response: o.response, next: cmp.Or(p.Page, 1)}
	w.ahead.most, w.ahead.read = o.prefetch, w.read
	return w
}

func (w *pager) all(ctx context.Context, yield func(*CardPage, error) bool) {
	if w.ahead.most > 0 && ctx != nil { // a nil context is an error of the call
		ctx = w.ahead.start(ctx)
	}
	defer w.ahead.stop()
	for !w.done {
		page, err := w.step(ctx)
		if !yield(page, err) || page == nil {
			return
		}
	}
}

func (w *pager) step(ctx context.Context) (*CardPage, error) {
	page, err := w.take(ctx)
	w.empty++
	if page == nil || len(page.Cards) > 0 || err != nil {
		w.empty = 0
	}
	if w.cameTwice(page, err) {
		// As a page that contradicts a parameter it is asked for once more, on a new connection.
		page, err = w.take(ctx, func(o *callOptions) { o.fresh = true })
	}
	wrong := &Error{
		Op: OpListCards, Outcome: OutcomeExecuted, HTTPStatus: http.StatusOK, Code: codeSuccess, ReadOnly: true,
	}
	if w.cameTwice(page, err) {
		wrong.Err, err = ignored("the same page came twice", "PageParam"), wrong
	}
	if w.empty == mostEmpty && w.next < page.pages() {
		wrong.Err, err = detailed(ErrUnreadable, strconv.Itoa(mostEmpty)+" pages in a row are empty"), wrong
	}
	if failure, ok := errors.AsType[*Error](err); ok {
		resumable := *failure // observers have the original
		resumable.Page = w.next
		err = &resumable
	}
	if !isPage(err) {
		return nil, err
	}
	w.ids = page.ids()
	w.done = w.next >= page.pages()
	w.next++
	if !w.done {
		w.ahead.begin(ctx, w.next, page.pages())
	}
	return page, err
}

// isPage reports whether err, of ListCards, comes with a page to go on from.
func isPage(err error) bool { return err == nil || errors.Is(err, ErrElements) }

// take returns the next page, which may have been read already.
func (w *pager) take(ctx context.Context, opts ...CallOption) (*CardPage, error) {
	r := w.ahead.take(w.next)
	begun := r != nil
	if !begun {
		r = &readPage{opts: opts}
	}
	if w.response != nil {
		defer func() { *w.response = r.response }()
	}
	r.raise()
	// Begun early, it may have spent its time waiting for the limiter or for a connection.
	waited := theError(r.err).Outcome == OutcomeNotSent || errors.Is(r.err, context.DeadlineExceeded)
	if !begun || waited && ctx.Err() == nil {
		w.ahead.wait() // otherwise it would wait for the limiter behind later pages
		w.read(ctx, w.next, r)
	}
	return r.page, r.err
}

// cameTwice reports whether the cards are those of the page before, if that had any.
func (w *pager) cameTwice(page *CardPage, err error) bool {
	return isPage(err) && len(w.ids) > 0 && !w.client.settings().profile.TrustResponses &&
		slices.Equal(page.ids(), w.ids)
}

func (w *pager) read(ctx context.Context, number int, r *readPage) {
	r.err = &Error{ // until there is another one
		Op: OpListCards, Outcome: OutcomeUnknown, ReadOnly: true,
		Err: errors.New("a callback called runtime.Goexit"),
	}
	p, opts := w.params, slices.Concat(w.opts, r.opts)
	p.Page = number
	if number == 1 && w.client.settings().profile.PageParam == "" {
		p.Page = 0 // the first page needs no parameter
	}
	if w.response != nil {
		opts = append(opts, WithResponse(&r.response))
	}
	r.page, r.err = w.client.ListCards(ctx, p, opts...)
}

type selector struct{ field, param, value string }

func (p *ListCardsParams) selectors(names *Profile) []selector {
	var status string
	if p.Status != nil {
		status = strconv.Itoa(int(*p.Status))
	}
	return []selector{
		{"LimitParam", names.LimitParam, ifTrue(p.PageSize > 0, strconv.Itoa(p.PageSize))},
		{"PageParam", names.PageParam, ifTrue(p.Page > 0, strconv.Itoa(p.Page))},
		{"SubAccountParam", names.SubAccountParam, p.SubAccountID},
		{"StatusParam", names.StatusParam, status},
		{"CardBINParam", names.CardBINParam, p.CardBIN},
		{"CreatedFromParam", names.CreatedFromParam, p.CreatedFrom.String()},
		{"CreatedToParam", names.CreatedToParam, p.CreatedTo.String()},
		{"TransactedFromParam", names.TransactedFromParam, p.TransactedFrom.String()},
		{"TransactedToParam", names.TransactedToParam, p.TransactedTo.String()},
	}
}

func (p *ListCardsParams) valid() error {
	switch {
	case p.PageSize < 0:
		return invalid("PageSize must not be negative")
	case p.Page < 0:
		return invalid("Page must not be negative")
	case p.Status != nil && (*p.Status < CardLocked || *p.Status > CardSuspended):
		return invalid("Status must be one of -1 to 4")
	case before(p.CreatedTo, p.CreatedFrom):
		return invalid("CreatedTo is before CreatedFrom")
	case before(p.TransactedTo, p.TransactedFrom):
		return invalid("TransactedTo is before TransactedFrom")
	}
	return checked(
		check.Visible("SubAccountID", p.SubAccountID), check.Digits("CardBIN", p.CardBIN),
		checkDate("CreatedFrom", p.CreatedFrom), checkDate("CreatedTo", p.CreatedTo),
		checkDate("TransactedFrom", p.TransactedFrom), checkDate("TransactedTo", p.TransactedTo),
	)
}

func before(a, b Date) bool {
	return !a.IsZero() && !b.IsZero() && a.String() < b.String()
}

// verifyPage returns which parameter the page proves to have been ignored.
func (c *Client) verifyPage(p ListCardsParams, page *CardPage) error {
	if c.settings().profile.TrustResponses {
		return nil
	}
	switch {
	case p.Page >= 1 && p.Page <= page.pages() && page.CurrentPage != p.Page:
		return ignored("another page was returned", "PageParam")
	case p.PageSize > 0 && len(page.Cards) > p.PageSize:
		return ignored("more cards than PageSize were returned", "LimitParam")
	}
	for i := range page.Cards {
		if field := p.contradicted(&page.Cards[i]); field != "" {
			return ignored("a card outside the filter was returned", field)
		}
	}
	return nil
}

// endAfterLast empties a page beyond the last one if the service sent another page's
// cards for it, as one that clamps page numbers does.
func (v *CardPage) endAfterLast(asked int) {
	if asked > v.pages() && asked != v.CurrentPage {
		v.Cards = []Card{}
	}
}

// zoneSlack is how far a creation time may be outside the requested days: the zone is
// undocumented, and zones are up to 26 hours apart.
const zoneSlack = 26 * time.Hour

// contradicted returns the Profile field of a filter that the card fails.
func (p *ListCardsParams) contradicted(card *Card) string {
	switch {
	case p.Status != nil && card.Status != *p.Status:
		return "StatusParam"
	case !strings.HasPrefix(card.CardBIN, p.CardBIN) && !strings.HasPrefix(p.CardBIN, card.CardBIN):
		return "CardBINParam"
	case p.CreatedFrom.IsZero() && p.CreatedTo.IsZero():
		return ""
	}
	created := card.CreateTime.In(time.UTC)
	switch {
	case created.IsZero():
		return ""
	case !p.CreatedFrom.IsZero() && created.Before(DateTime{Date: p.CreatedFrom}.In(time.UTC).Add(-zoneSlack)):
		return "CreatedFromParam"
	case !p.CreatedTo.IsZero() && created.After(DateTime{Date: p.CreatedTo}.In(time.UTC).Add(24*time.Hour+zoneSlack)):
		return "CreatedToParam"
	}
	return ""
}

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
	opts     []CallOption

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
		if r.panicked != nil || !isPage(r.err) {
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
