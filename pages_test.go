package cardwire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// walked is what AllCards yields: identifiers, and the error that ended it.
func walked(ctx context.Context, c *Client, p ListCardsParams, opts ...CallOption) (ids []string, err error) {
	for card, e := range c.AllCards(ctx, p, opts...) {
		if e != nil {
			if err != nil {
				e = errors.Join(err, e) // only one may come
			}
			err = e
			continue
		}
		ids = append(ids, card.ID)
	}
	return ids, err
}

func pageRequest(n int) string { return fmt.Sprintf("GET /shop/api/v1/cards?page=%d", n) }

func TestAllCards(t *testing.T) {
	t.Parallel()
	a, b, c, d := shortCard("a", ""), shortCard("b", ""), shortCard("c", ""), shortCard("d", "")
	cases := map[string]struct {
		params    ListCardsParams
		exchanges []exchange
		ids       []string
	}{
		"one page": {
			ListCardsParams{}, []exchange{{want: pageRequest(1), reply: shortPage(1, 1, a, b)}}, []string{"a", "b"},
		},
		"three pages": {
			ListCardsParams{},
			[]exchange{
				{want: pageRequest(1), reply: shortPage(1, 3, a, b)},
				{want: pageRequest(2), reply: shortPage(2, 3, c)},
				{want: pageRequest(3), reply: shortPage(3, 3, d)},
			}, []string{"a", "b", "c", "d"},
		},
		"from a page on": {
			ListCardsParams{Page: 2},
			[]exchange{
				{want: pageRequest(2), reply: shortPage(2, 3, c)},
				{want: pageRequest(3), reply: shortPage(3, 3, d)},
			}, []string{"c", "d"},
		},
		"with a filter on every page": {
			ListCardsParams{Limit: 2, CardBIN: "4"},
			[]exchange{
				{want: "GET /shop/api/v1/cards?limit=2&page=1&card_bin=4", reply: shortPage(1, 2, a, b)},
				{want: "GET /shop/api/v1/cards?limit=2&page=2&card_bin=4", reply: shortPage(2, 2, c)},
			}, []string{"a", "b", "c"},
		},
		"pages are added on the way": {
			ListCardsParams{},
			[]exchange{
				{want: pageRequest(1), reply: shortPage(1, 2, a)},
				{want: pageRequest(2), reply: shortPage(2, 3, b)},
				{want: pageRequest(3), reply: shortPage(3, 3, c)},
			}, []string{"a", "b", "c"},
		},
		"pages go away on the way": {
			ListCardsParams{},
			[]exchange{
				{want: pageRequest(1), reply: shortPage(1, 4, a)},
				{want: pageRequest(2), reply: shortPage(2, 2, b)},
			}, []string{"a", "b"},
		},
		"the next page goes away": {
			ListCardsParams{},
			[]exchange{
				{want: pageRequest(1), reply: shortPage(1, 2, a)},
				{want: pageRequest(2), reply: shortPage(2, 1)},
			}, []string{"a"},
		},
		"no cards":          {ListCardsParams{}, []exchange{{want: pageRequest(1), reply: shortPage(1, 1)}}, nil},
		"no pages":          {ListCardsParams{}, []exchange{{want: pageRequest(1), reply: shortPage(1, 0)}}, nil},
		"no last page":      {ListCardsParams{}, []exchange{{want: pageRequest(1), reply: shortPage(1, 0, a)}}, []string{"a"}},
		"an empty page":     {ListCardsParams{}, []exchange{{want: pageRequest(1), reply: shortPage(1, 2)}, {want: pageRequest(2), reply: shortPage(2, 2, b)}}, []string{"b"}},
		"beyond the last":   {ListCardsParams{Page: 5}, []exchange{{want: pageRequest(5), reply: shortPage(5, 3)}}, nil},
		"beyond, shown one": {ListCardsParams{Page: 5}, []exchange{{want: pageRequest(5), reply: shortPage(3, 3, a)}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ahead := range []int{0, 1} {
				client := converse(t, tc.exchanges)
				ids, err := walked(t.Context(), client, tc.params, WithPrefetch(ahead))
				require.NoError(t, err)
				assert.Equal(t, tc.ids, ids, "pages read ahead: %d", ahead)
			}
		})
	}
}

func TestAllCardsStopsAtTheSamePage(t *testing.T) {
	t.Parallel()
	first := exchange{want: pageRequest(1), reply: shortPage(1, 2, shortCard("a", ""), shortCard("b", ""))}
	again := exchange{want: pageRequest(2), reply: shortPage(2, 2, shortCard("a", ""), shortCard("b", ""))}
	pages := func(t *testing.T, exchanges []exchange, opts ...Option) *Client {
		c := converse(t, exchanges, opts...)
		return c
	}
	t.Run("looked at once more", func(t *testing.T) {
		t.Parallel()
		moved := exchange{want: pageRequest(2), reply: shortPage(2, 2, shortCard("c", ""))}
		ids, err := walked(t.Context(), pages(t, []exchange{first, again, moved}), ListCardsParams{})
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, ids)
	})
	t.Run("checked", func(t *testing.T) {
		t.Parallel()
		ids, err := walked(t.Context(), pages(t, []exchange{first, again, again}), ListCardsParams{})
		assert.Equal(t, []string{"a", "b"}, ids)
		require.ErrorIs(t, err, ErrParameterIgnored)
		require.ErrorContains(t, err, "PageParam")
		e := failure(t, err)
		assert.Equal(t, 2, e.Page)
		assert.Equal(t, "ListCards", e.Op)
		assert.Equal(t, OutcomeExecuted, e.Outcome)
		assert.Equal(t, []int{200, 200}, []int{e.HTTPStatus, e.Code})
		assert.NotContains(t, err.Error(), "it was done", "a list does nothing")
	})
	t.Run("trusted", func(t *testing.T) {
		t.Parallel()
		profile := DefaultProfile()
		profile.TrustReplies = true
		ids, err := walked(t.Context(), pages(t, []exchange{first, again}, WithProfile(func(own *Profile) { *own = profile })), ListCardsParams{})
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "a", "b"}, ids)
	})
}

// A service that clamps page numbers repeats its last page for ever.
func TestAPageBeyondTheLastIsEmpty(t *testing.T) {
	t.Parallel()
	page, err := answered(t, pageRequest(4), shortPage(3, 3, shortCard("a", ""))).ListCards(t.Context(), ListCardsParams{Page: 4})
	require.NoError(t, err)
	assert.Equal(t, &CardPage{Total: 9, PerPage: 2, CurrentPage: 3, LastPage: 3, Cards: []Card{}}, page)
}

func TestAllCardsSaysWhereToResume(t *testing.T) {
	t.Parallel()
	profile := DefaultProfile()
	profile.PageParam = ""
	first := exchange{want: pageRequest(1), reply: shortPage(1, 3, shortCard("a", ""))}
	cases := map[string]struct {
		params    ListCardsParams
		profile   Profile
		exchanges []exchange
		ids       []string
		cause     error
		page      int
	}{
		"the first page fails": {
			ListCardsParams{}, DefaultProfile(),
			[]exchange{{want: pageRequest(1), status: 404, reply: ""}}, nil, ErrNotFound, 1,
		},
		"the second page fails": {
			ListCardsParams{}, DefaultProfile(),
			[]exchange{first, {want: pageRequest(2), status: 404, reply: ""}}, []string{"a"}, ErrNotFound, 2,
		},
		"a later page fails": {
			ListCardsParams{Page: 7}, DefaultProfile(),
			[]exchange{{want: pageRequest(7), status: 404, reply: ""}}, nil, ErrNotFound, 7,
		},
		"the page is ignored": {
			ListCardsParams{}, DefaultProfile(),
			[]exchange{
				first,
				{want: pageRequest(2), reply: shortPage(1, 3, shortCard("a", ""))},
				{want: pageRequest(2), reply: shortPage(1, 3, shortCard("a", ""))},
			}, []string{"a"}, ErrParameterIgnored, 2,
		},
		// The first page can be had without a name for the parameter.
		"no name for the page": {
			ListCardsParams{}, profile,
			[]exchange{{want: "GET /shop/api/v1/cards", reply: shortPage(1, 2, shortCard("a", ""))}},
			[]string{"a"}, ErrInvalidParams, 2,
		},
		"no name, a later page": {ListCardsParams{Page: 2}, profile, nil, nil, ErrInvalidParams, 2},
		"page below zero":       {ListCardsParams{Page: -1}, DefaultProfile(), nil, nil, ErrInvalidParams, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ahead := range []int{0, 1} {
				c := converse(t, tc.exchanges, WithProfile(func(own *Profile) { *own = tc.profile }))
				ids, err := walked(t.Context(), c, tc.params, WithPrefetch(ahead))
				assert.Equal(t, tc.ids, ids, "pages read ahead: %d", ahead)
				require.ErrorIs(t, err, tc.cause)
				assert.Equal(t, tc.page, failure(t, err).Page)
			}
		})
	}
}

// Observers may keep an error and read it while the caller goes on.
func TestThePageToResumeFromIsInAnErrorOfTheCallersOwn(t *testing.T) {
	t.Parallel()
	var told error
	c := answered(t, pageRequest(3), `{"code":422,"msg":"no","data":null}`, WithObserver(Observer{
		CallEnd: func(_ context.Context, _ CallInfo, r CallResult) { told = r.Err },
	}))
	_, err := walked(t.Context(), c, ListCardsParams{Page: 3})
	assert.Equal(t, 3, failure(t, err).Page)
	assert.Equal(t, 0, failure(t, told).Page)
}

func TestAllCardsAsksForNothingAfterABreak(t *testing.T) {
	t.Parallel()
	c := answered(t, pageRequest(1), shortPage(1, 3, shortCard("a", ""), shortCard("b", "")))
	for card, err := range c.AllCards(t.Context(), ListCardsParams{}) {
		require.NoError(t, err)
		assert.Equal(t, "a", card.ID)
		break
	}
}

func TestAllCardsAsksForNothingBeforeItIsRead(t *testing.T) {
	t.Parallel()
	assert.NotNil(t, unasked(t).AllCards(t.Context(), ListCardsParams{}))
}

func TestAllCardsStartsAnewEachTime(t *testing.T) {
	t.Parallel()
	page := exchange{want: pageRequest(1), reply: shortPage(1, 1, shortCard("a", ""))}
	c := converse(t, []exchange{page, page})
	cards := c.AllCards(t.Context(), ListCardsParams{})
	for range 2 {
		n := 0
		for card, err := range cards {
			require.NoError(t, err)
			assert.Equal(t, "a", card.ID)
			n++
		}
		assert.Equal(t, 1, n)
	}
}

func TestAllCardsLeavesTheLastPageInTheResponse(t *testing.T) {
	t.Parallel()
	last := shortPage(2, 2, shortCard("b", ""))
	c := converse(t, []exchange{
		{want: pageRequest(1), reply: shortPage(1, 2, shortCard("a", ""))},
		{want: pageRequest(2), reply: last},
	})
	var r Response
	ids, err := walked(t.Context(), c, ListCardsParams{}, WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, ids)
	assert.Equal(t, last, string(r.RevealBody()))
	assert.Equal(t, http.StatusOK, r.HTTPStatus)
}

// shelf serves pages of one card each, which is called "card-" and the page's
// number, after a time. Requests may come in any order.
type shelf struct {
	last  int                                      // the last page's number
	takes time.Duration                            // how long a page takes
	soon  int                                      // the page that takes half as long; 0: none
	reply func(page int) (status int, text string) // status 0, or nil: the card
	mu    sync.Mutex
	asked []int // in order
	open  int   // requests under way
	most  int   // at one time
	left  []int // pages whose request ended with its context
}

func (s *shelf) RoundTrip(r *http.Request) (*http.Response, error) {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, page)
	s.open++
	s.most = max(s.most, s.open)
	s.mu.Unlock()
	takes := s.takes
	if page == s.soon {
		takes /= 2
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
		err = r.Context().Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if err != nil {
		s.left = append(s.left, page)
		return nil, err
	}
	if s.reply != nil {
		if status, text := s.reply(page); status != 0 {
			return httpReply(r, status, text), nil
		}
	}
	return httpReply(r, 0, shortPage(page, s.last, shortCard(fmt.Sprintf("card-%d", page), ""))), nil
}

// pagesAsked are the pages that were asked for, in the order of their numbers.
func (s *shelf) pagesAsked() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.asked))
}

func cardsOf(first, last int) (ids []string) {
	for n := first; n <= last; n++ {
		ids = append(ids, fmt.Sprintf("card-%d", n))
	}
	return ids
}

func numbers(first, last int) (list []int) {
	for n := first; n <= last; n++ {
		list = append(list, n)
	}
	return list
}

// The first page says how many there are; from then on up to eight are under
// way, so that seventeen pages take the time of three.
func TestPrefetchReadsPagesSideBySideAndYieldsThemInOrder(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		ahead int
		takes time.Duration
		most  int
	}{
		{0, 17 * 20 * time.Millisecond, 1},
		{1, 17 * 20 * time.Millisecond, 1},
		{2, 9 * 20 * time.Millisecond, 2},
		{8, 3 * 20 * time.Millisecond, 8},
		{100, 2 * 20 * time.Millisecond, 16},
	} {
		t.Run(strconv.Itoa(tc.ahead), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{last: 17, takes: 20 * time.Millisecond}
				start := time.Now()
				ids, err := walked(t.Context(), clientOn(t, s), ListCardsParams{}, WithPrefetch(tc.ahead))
				require.NoError(t, err)
				assert.Equal(t, cardsOf(1, 17), ids)
				assert.Equal(t, numbers(1, 17), s.pagesAsked())
				assert.Equal(t, tc.takes, time.Since(start))
				assert.Equal(t, tc.most, s.most)
			})
		})
	}
}

func TestPrefetchReadsNoFurtherThanAskedWhileAPageIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{last: 9}
		used := 0
		for card, err := range clientOn(t, s).AllCards(t.Context(), ListCardsParams{}, WithPrefetch(3)) {
			require.NoError(t, err)
			used++
			synctest.Wait() // whatever is to be read ahead has been
			assert.Equal(t, fmt.Sprintf("card-%d", used), card.ID)
			assert.Equal(t, numbers(1, min(used+3, 9)), s.pagesAsked())
		}
		assert.Equal(t, 9, used)
	})
}

// When the loop is left nothing of it goes on: a bubble of synctest does not end
// before its goroutines have, and the requests under way are given up.
func TestPrefetchEndsWithTheLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{last: 50, takes: time.Second}
		start := time.Now()
		for _, err := range clientOn(t, s).AllCards(t.Context(), ListCardsParams{}, WithPrefetch(4)) {
			require.NoError(t, err)
			synctest.Wait()
			break
		}
		assert.Zero(t, s.open, "requests under way")
		assert.Equal(t, numbers(1, 5), s.pagesAsked())
		assert.ElementsMatch(t, numbers(2, 5), s.left)
		assert.Equal(t, time.Second, time.Since(start), "the first page alone was waited for")
	})
}

func TestPrefetchEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		gone := errors.New("the user has gone")
		s := &shelf{last: 50, takes: time.Second}
		var ids []string
		var ended error
		for card, err := range clientOn(t, s).AllCards(ctx, ListCardsParams{}, WithPrefetch(4)) {
			if ended = err; err != nil {
				break
			}
			if ids = append(ids, card.ID); card.ID == "card-2" {
				synctest.Wait()
				cancel(gone)
			}
		}
		require.ErrorIs(t, ended, context.Canceled)
		require.ErrorIs(t, ended, gone)
		// Pages 3 to 5 came together with page 2.
		assert.Equal(t, cardsOf(1, 5), ids)
		assert.Equal(t, 6, failure(t, ended).Page)
		assert.Zero(t, s.open, "requests under way")
	})
}

// Everything before the failed page is yielded, and nothing is begun after the
// failure is known.
func TestPrefetchSaysWhereToResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{last: 50, takes: time.Second, soon: 4}
		s.reply = func(page int) (int, string) {
			if page == 4 {
				return http.StatusNotFound, ""
			}
			return 0, ""
		}
		c := clientOn(t, s)
		var ids []string
		var err error
		for card, e := range c.AllCards(t.Context(), ListCardsParams{}, WithPrefetch(5)) {
			synctest.Wait() // what was begun with this page has been asked for
			if err = e; e == nil {
				ids = append(ids, card.ID)
			}
		}
		assert.Equal(t, cardsOf(1, 3), ids)
		require.ErrorIs(t, err, ErrNotFound)
		assert.Equal(t, 4, failure(t, err).Page)
		assert.Equal(t, numbers(1, 6), s.pagesAsked())

		s.reply = nil
		ids, err = walked(t.Context(), c, ListCardsParams{Page: 4}, WithPrefetch(5))
		require.NoError(t, err)
		assert.Equal(t, cardsOf(4, 50), ids)
	})
}

// Pages that were read ahead and have gone since are not missed, whatever the
// service says of them.
func TestPrefetchGoesByTheNewestLastPage(t *testing.T) {
	t.Parallel()
	short, long := "card-2", "card-3"
	for name, tc := range map[string]struct {
		page, last int
		id         string
		want       []string
	}{
		"fewer than before": {2, 2, short, []string{"card-1", short}},
		"more than before":  {3, 5, long, cardsOf(1, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{last: 3}
			s.reply = func(page int) (int, string) {
				switch {
				case page == tc.page:
					return http.StatusOK, shortPage(page, tc.last, shortCard(tc.id, ""))
				case page > tc.page && tc.last < 3:
					return http.StatusNotFound, ""
				case page > tc.page:
					return http.StatusOK, shortPage(page, tc.last, shortCard(fmt.Sprintf("card-%d", page), ""))
				}
				return 0, ""
			}
			ids, err := walked(t.Context(), clientOn(t, s), ListCardsParams{}, WithPrefetch(2))
			require.NoError(t, err)
			assert.Equal(t, tc.want, ids)
		})
	}
}

func TestPrefetchNoticesTheSamePageTwice(t *testing.T) {
	t.Parallel()
	s := &shelf{last: 9}
	s.reply = func(page int) (int, string) {
		return http.StatusOK, shortPage(page, 9, shortCard(fmt.Sprintf("card-%d", min(page, 3)), ""))
	}
	ids, err := walked(t.Context(), clientOn(t, s), ListCardsParams{}, WithPrefetch(4))
	assert.Equal(t, cardsOf(1, 3), ids)
	require.ErrorIs(t, err, ErrParameterIgnored)
	assert.Equal(t, 4, failure(t, err).Page)
}

// oneASecond is a limiter that lets a request go each second.
func oneASecond(t *testing.T) Option {
	t.Helper()
	tick := time.NewTicker(time.Second)
	t.Cleanup(tick.Stop)
	return WithLimiter(limiterFunc(func(ctx context.Context) error {
		select {
		case <-tick.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
}

// A call that is begun early waits longer at the limiter, and its own 30 seconds
// may end there. That is no failure: its turn has come when the page is asked for.
func TestPrefetchOutlastsASlowLimiter(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 8, 60, 100} {
		t.Run(strconv.Itoa(ahead), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{last: 120}
				ids, err := walked(t.Context(), clientOn(t, s, oneASecond(t)), ListCardsParams{}, WithPrefetch(ahead))
				require.NoError(t, err)
				assert.Equal(t, cardsOf(1, 120), ids)
				assert.Equal(t, numbers(1, 120), s.pagesAsked())
			})
		})
	}
}

// The filter of an iteration is the one it began with, whatever its caller does
// with the variable.
func TestAllCardsKeepsItsFilter(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 2} {
		var asked []string
		var mu sync.Mutex
		c := clientOn(t, carrier(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.URL.Query().Get("status"))
			page := r.URL.Query().Get("page")
			n, err := strconv.Atoi(page)
			if err != nil {
				return nil, err
			}
			return httpReply(r, 0, shortPage(n, 5, shortCard(page, `,"status":1`))), nil
		}))
		status := CardFrozen
		for _, err := range c.AllCards(t.Context(), ListCardsParams{Status: &status}, WithPrefetch(ahead)) {
			require.NoError(t, err)
			status = CardClosed
		}
		assert.Equal(t, []string{"1", "1", "1", "1", "1"}, asked)
	}
}

func TestPrefetchWaitsForTheLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{last: 6}
		start := time.Now()
		ids, err := walked(t.Context(), clientOn(t, s, oneASecond(t)), ListCardsParams{}, WithPrefetch(5))
		require.NoError(t, err)
		assert.Equal(t, cardsOf(1, 6), ids)
		assert.Equal(t, 6*time.Second, time.Since(start))
	})
}

// The response is that of the page whose cards came last, not of one that was
// read ahead.
func TestPrefetchLeavesTheCurrentPageInTheResponse(t *testing.T) {
	t.Parallel()
	s := &shelf{last: 6}
	var r Response
	n := 0
	for card, err := range clientOn(t, s).AllCards(t.Context(), ListCardsParams{}, WithPrefetch(3), WithResponse(&r)) {
		require.NoError(t, err)
		n++
		assert.Equal(t, shortPage(n, 6, shortCard(card.ID, "")), string(r.RevealBody()))
	}
	assert.Equal(t, 6, n)
}

// What a function of the caller's does to its goroutine it does to the caller's
// as well, as without prefetching, or it ends the iteration with an error.
func TestPrefetchAndFunctionsThatDoNotReturn(t *testing.T) {
	t.Parallel()
	fromSecondCall := func(do func()) Option {
		var calls atomic.Int32
		return WithObserver(Observer{CallEnd: func(context.Context, CallInfo, CallResult) {
			if calls.Add(1) > 1 {
				do()
			}
		}})
	}
	t.Run("a panic", func(t *testing.T) {
		t.Parallel()
		c := clientOn(t, &shelf{last: 9}, fromSecondCall(func() { panic("of the observer") }))
		assert.PanicsWithValue(t, "of the observer", func() {
			_, _ = walked(t.Context(), c, ListCardsParams{}, WithPrefetch(4))
		})
	})
	t.Run("a panic that nobody asked for", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := clientOn(t, &shelf{last: 9}, fromSecondCall(func() { panic("of the observer") }))
			assert.PanicsWithValue(t, "of the observer", func() {
				for _, err := range c.AllCards(t.Context(), ListCardsParams{}, WithPrefetch(1)) {
					assert.NoError(t, err)
					synctest.Wait()
					break
				}
			})
		})
	})
	t.Run("the end of the goroutine", func(t *testing.T) {
		t.Parallel()
		c := clientOn(t, &shelf{last: 9}, fromSecondCall(runtime.Goexit))
		ids, err := walked(t.Context(), c, ListCardsParams{}, WithPrefetch(4))
		assert.Equal(t, cardsOf(1, 1), ids)
		require.ErrorContains(t, err, "a callback called runtime.Goexit")
		assert.Equal(t, 2, failure(t, err).Page)
	})
}

func TestPrefetchIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 101} {
		_, err := walked(t.Context(), unasked(t), ListCardsParams{}, WithPrefetch(n))
		refusedBeforehand(t, err, "WithPrefetch")
	}
	var none context.Context
	_, err := walked(none, unasked(t), ListCardsParams{}, WithPrefetch(1))
	refusedBeforehand(t, err, "context")
}

func TestOtherOperationsIgnorePrefetch(t *testing.T) {
	t.Parallel()
	c := answered(t, "GET /shop/api/v1/account/capacity", success("3"))
	n, err := c.CardCapacity(t.Context(), WithPrefetch(7))
	require.NoError(t, err)
	assert.Equal(t, int64(3), n)
}

// namedProfile gives every parameter a name, none of them an assumed one.
func namedProfile() Profile {
	p := DefaultProfile()
	p.LimitParam, p.PageParam, p.SubAccountParam, p.StatusParam = "page_size", "page_no", "sub", "state"
	p.CardBINParam, p.CardIDParam = "bin[]", "card"
	p.CreatedFromParam, p.CreatedToParam = "c_from", "c_to"
	p.TransactedFromParam, p.TransactedToParam = "t_from", "t_to"
	return p
}

func TestListCardsQuery(t *testing.T) {
	t.Parallel()
	active := CardActive
	locked := CardLocked
	day := Date{2026, time.February, 3}
	later := Date{2026, time.November, 14}
	cases := map[string]struct {
		profile Profile
		params  ListCardsParams
		want    string
	}{
		"nothing":          {DefaultProfile(), ListCardsParams{}, ""},
		"assumed limit":    {DefaultProfile(), ListCardsParams{Limit: 20}, "?limit=20"},
		"assumed page":     {DefaultProfile(), ListCardsParams{Page: 7}, "?page=7"},
		"assumed status":   {DefaultProfile(), ListCardsParams{Status: &active}, "?status=0"},
		"assumed card BIN": {DefaultProfile(), ListCardsParams{CardBIN: "493193"}, "?card_bin=493193"},
		"limit":            {namedProfile(), ListCardsParams{Limit: 1}, "?page_size=1"},
		"page":             {namedProfile(), ListCardsParams{Page: 2}, "?page_no=2"},
		"sub-account":      {namedProfile(), ListCardsParams{SubAccountID: "s 1&2"}, "?sub=s+1%262"},
		"status below 0":   {namedProfile(), ListCardsParams{Status: &locked}, "?state=-1"},
		"card BIN":         {namedProfile(), ListCardsParams{CardBIN: "01234567"}, "?bin%5B%5D=01234567"},
		"created from":     {namedProfile(), ListCardsParams{CreatedFrom: day}, "?c_from=2026-02-03"},
		"created to":       {namedProfile(), ListCardsParams{CreatedTo: later}, "?c_to=2026-11-14"},
		"transacted from":  {namedProfile(), ListCardsParams{TransactedFrom: day}, "?t_from=2026-02-03"},
		"transacted to":    {namedProfile(), ListCardsParams{TransactedTo: later}, "?t_to=2026-11-14"},
		"one day":          {namedProfile(), ListCardsParams{CreatedFrom: day, CreatedTo: day}, "?c_from=2026-02-03&c_to=2026-02-03"},
		"everything": {
			namedProfile(),
			ListCardsParams{
				Limit: 50, Page: 3, SubAccountID: "s1", Status: &active, CardBIN: "493193",
				CreatedFrom: day, CreatedTo: later, TransactedFrom: day, TransactedTo: later,
			},
			"?page_size=50&page_no=3&sub=s1&state=0&bin%5B%5D=493193&c_from=2026-02-03&c_to=2026-11-14&t_from=2026-02-03&t_to=2026-11-14",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := answered(t, "GET /shop/api/v1/cards"+tc.want,
				success(`{"total":0,"per_page":20,"current_page":1,"last_page":1,"data":[]}`), WithProfile(func(own *Profile) { *own = tc.profile }))
			got, err := c.ListCards(t.Context(), tc.params)
			require.NoError(t, err)
			assert.Equal(t, &CardPage{PerPage: 20, CurrentPage: 1, LastPage: 1, Cards: []Card{}}, got)
		})
	}
}

func TestEveryStatusOfTheInterfaceCanBeAskedFor(t *testing.T) {
	t.Parallel()
	for status, want := range map[CardStatus]string{
		CardLocked: "-1", CardActive: "0", CardFrozen: "1", CardClosed: "2", CardClosing: "3", CardSuspended: "4",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := answered(t, "GET /shop/api/v1/cards?status="+want,
				pageText(edited(t, listedCardText, `"status":1`, `"status":`+want)))
			got, err := c.ListCards(t.Context(), ListCardsParams{Status: &status})
			require.NoError(t, err)
			assert.Equal(t, status, got.Cards[0].Status)
		})
	}
}

func TestAParameterWithoutANameIsNotSent(t *testing.T) {
	t.Parallel()
	active := CardActive
	day := Date{2026, time.February, 3}
	for field, params := range map[string]ListCardsParams{
		"LimitParam": {Limit: 20}, "PageParam": {Page: 2}, "SubAccountParam": {SubAccountID: "s1"},
		"StatusParam": {Status: &active}, "CardBINParam": {CardBIN: "493193"},
		"CreatedFromParam": {CreatedFrom: day}, "CreatedToParam": {CreatedTo: day},
		"TransactedFromParam": {TransactedFrom: day}, "TransactedToParam": {TransactedTo: day},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, err := unasked(t, WithProfile(func(own *Profile) { *own = Profile{} })).ListCards(t.Context(), params)
			refusedBeforehand(t, err, "Profile."+field)
		})
	}
	t.Run("CardIDParam", func(t *testing.T) {
		t.Parallel()
		_, err := unasked(t, WithProfile(func(own *Profile) { *own = Profile{} })).GetCard(t.Context(), "card-1")
		refusedBeforehand(t, err, "Profile.CardIDParam")
	})
	t.Run("CardIDParam, by order", func(t *testing.T) {
		t.Parallel()
		_, err := unasked(t, WithProfile(func(own *Profile) { *own = Profile{} })).GetCardByOrder(t.Context(), "order-1")
		refusedBeforehand(t, err, "Profile.CardIDParam")
	})
}

func TestListCardsRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	below, above := CardLocked-1, CardSuspended+1
	day, next := Date{2026, time.February, 3}, Date{2026, time.February, 4}
	for name, tc := range map[string]struct {
		params ListCardsParams
		names  string
	}{
		"limit":                    {ListCardsParams{Limit: -1}, "Limit"},
		"page":                     {ListCardsParams{Page: -1}, "Page"},
		"status too low":           {ListCardsParams{Status: &below}, "Status"},
		"status too high":          {ListCardsParams{Status: &above}, "Status"},
		"BIN with letters":         {ListCardsParams{CardBIN: "49319a"}, "CardBIN"},
		"BIN with a space":         {ListCardsParams{CardBIN: " 493193"}, "CardBIN"},
		"created backwards":        {ListCardsParams{CreatedFrom: next, CreatedTo: day}, "CreatedTo"},
		"transacted backwards":     {ListCardsParams{TransactedFrom: next, TransactedTo: day}, "TransactedTo"},
		"no such created from":     {ListCardsParams{CreatedFrom: Date{2026, time.February, 29}}, "CreatedFrom"},
		"no such created to":       {ListCardsParams{CreatedTo: Date{2026, time.April, 31}}, "CreatedTo"},
		"no such transacted from":  {ListCardsParams{TransactedFrom: Date{2026, 13, 1}}, "TransactedFrom"},
		"no such transacted to":    {ListCardsParams{TransactedTo: Date{2026, time.May, 0}}, "TransactedTo"},
		"a year that is not there": {ListCardsParams{CreatedFrom: Date{0, time.May, 1}}, "CreatedFrom"},
		"a year of five digits":    {ListCardsParams{CreatedTo: Date{10000, time.May, 1}, CreatedFrom: day}, "CreatedTo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := unasked(t, WithProfile(func(own *Profile) { *own = namedProfile() })).ListCards(t.Context(), tc.params)
			refusedBeforehand(t, err, tc.names)
		})
	}
}

// shortCard is a card of which little is known: the rest is missing, which is drift.
func shortCard(id, more string) string {
	return `{"id":"` + id + `","available":"1.000","pending":0,"frozen":0,"fee":"0.00"` + more + `}`
}

func shortPage(current, last int, cards ...string) string {
	return success(fmt.Sprintf(`{"total":9,"per_page":2,"current_page":%d,"last_page":%d,"data":[%s]}`,
		current, last, strings.Join(cards, ",")))
}

func TestPagesThatContradictTheParameters(t *testing.T) {
	t.Parallel()
	frozen := CardFrozen
	day := Date{2026, time.March, 10}
	created := func(at string) string { return shortPage(1, 1, shortCard("a", `,"create_time":"`+at+`"`)) }
	cases := map[string]struct {
		params ListCardsParams
		reply  string
		names  string // "": the page is fine
	}{
		"the page asked for":       {ListCardsParams{Page: 2}, shortPage(2, 3, shortCard("a", "")), ""},
		"another page":             {ListCardsParams{Page: 2}, shortPage(1, 3, shortCard("a", "")), "PageParam"},
		"another page at the end":  {ListCardsParams{Page: 3}, shortPage(1, 3, shortCard("a", "")), "PageParam"},
		"beyond the last page":     {ListCardsParams{Page: 4}, shortPage(4, 3), ""},
		"beyond, shown the last":   {ListCardsParams{Page: 4}, shortPage(3, 3, shortCard("a", "")), ""},
		"no page asked for":        {ListCardsParams{}, shortPage(2, 3, shortCard("a", "")), ""},
		"as many as asked for":     {ListCardsParams{Limit: 2}, shortPage(1, 3, shortCard("a", ""), shortCard("b", "")), ""},
		"fewer: the service's cap": {ListCardsParams{Limit: 3}, shortPage(1, 3, shortCard("a", "")), ""},
		"more than asked for":      {ListCardsParams{Limit: 1}, shortPage(1, 3, shortCard("a", ""), shortCard("b", "")), "LimitParam"},
		"the status asked for":     {ListCardsParams{Status: &frozen}, shortPage(1, 1, shortCard("a", `,"status":1`)), ""},
		"another status":           {ListCardsParams{Status: &frozen}, shortPage(1, 1, shortCard("a", `,"status":1`), shortCard("b", `,"status":0`)), "StatusParam"},
		"the BIN asked for":        {ListCardsParams{CardBIN: "493193"}, shortPage(1, 1, shortCard("a", `,"card_bin":"493193"`)), ""},
		"a longer BIN":             {ListCardsParams{CardBIN: "493193"}, shortPage(1, 1, shortCard("a", `,"card_bin":"49319301"`)), ""},
		"a shorter BIN":            {ListCardsParams{CardBIN: "49319301"}, shortPage(1, 1, shortCard("a", `,"card_bin":"493193"`)), ""},
		"no BIN":                   {ListCardsParams{CardBIN: "493193"}, shortPage(1, 1, shortCard("a", "")), ""},
		"another BIN":              {ListCardsParams{CardBIN: "493193"}, shortPage(1, 1, shortCard("a", `,"card_bin":"493194"`)), "CardBINParam"},
		// No zone is named, and zones lie up to 26 hours apart.
		"26 h before the first day": {ListCardsParams{CreatedFrom: day}, created("2026-03-08 22:00:00"), ""},
		"earlier than that":         {ListCardsParams{CreatedFrom: day}, created("2026-03-08 21:59:59"), "CreatedFromParam"},
		"26 h after the last day":   {ListCardsParams{CreatedTo: day}, created("2026-03-12 02:00:00"), ""},
		"later than that":           {ListCardsParams{CreatedTo: day}, created("2026-03-12 02:00:01"), "CreatedToParam"},
		"no time of creation":       {ListCardsParams{CreatedFrom: day, CreatedTo: day}, shortPage(1, 1, shortCard("a", "")), ""},
		"a time of creation of 0":   {ListCardsParams{CreatedFrom: day, CreatedTo: day}, created("0000-00-00 00:00:00"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.names == "" {
				_, err := answered(t, anything, tc.reply, WithProfile(func(own *Profile) { *own = namedProfile() })).ListCards(t.Context(), tc.params)
				require.NoError(t, err)
				return
			}
			t.Run("both times", func(t *testing.T) {
				t.Parallel()
				looks := []exchange{{want: anything, reply: tc.reply}, {want: anything, reply: tc.reply}}
				s := script(t, looks...)
				c := clientOn(t, s, WithProfile(func(own *Profile) { *own = namedProfile() }))
				page, err := c.ListCards(t.Context(), tc.params)
				require.ErrorIs(t, err, ErrParameterIgnored)
				require.ErrorContains(t, err, tc.names)
				assert.Equal(t, OutcomeExecuted, failure(t, err).Outcome)
				require.NotNil(t, page, "the page is returned together with the error")
				assert.Equal(t, "a", page.Cards[0].ID)
				assert.Equal(t, s.requests[0], s.requests[1])
			})
			t.Run("trusted", func(t *testing.T) {
				t.Parallel()
				profile := namedProfile()
				profile.TrustReplies = true
				page, err := answered(t, anything, tc.reply, WithProfile(func(own *Profile) { *own = profile })).ListCards(t.Context(), tc.params)
				require.NoError(t, err)
				assert.Equal(t, "a", page.Cards[0].ID)
			})
		})
	}
}

// A card's status can change while a page is read.
func TestASecondLookSettlesAContradiction(t *testing.T) {
	t.Parallel()
	frozen := CardFrozen
	const want = "GET /shop/api/v1/cards?status=1"
	c := converse(t, []exchange{
		{want: want, reply: shortPage(1, 1, shortCard("a", `,"status":1`), shortCard("b", `,"status":0`))},
		{want: want, reply: shortPage(1, 1, shortCard("c", `,"status":1`))},
	})
	page, err := c.ListCards(t.Context(), ListCardsParams{Status: &frozen})
	require.NoError(t, err)
	require.Len(t, page.Cards, 1)
	assert.Equal(t, "c", page.Cards[0].ID)
}

func TestASecondLookThatFailsReturnsNoPage(t *testing.T) {
	t.Parallel()
	frozen := CardFrozen
	c := converse(t, []exchange{
		{want: anything, reply: shortPage(1, 1, shortCard("b", `,"status":0`))},
		{want: anything, status: 404, reply: `{"code":404,"msg":"gone","data":null}`},
	})
	page, err := c.ListCards(t.Context(), ListCardsParams{Status: &frozen})
	assert.Nil(t, page)
	require.ErrorIs(t, err, ErrNotFound)
	assert.NotErrorIs(t, err, ErrParameterIgnored)
}

func TestWithoutRetryNoPageIsAskedForTwice(t *testing.T) {
	t.Parallel()
	c := answered(t, anything, shortPage(1, 3, shortCard("a", "")))
	page, err := c.ListCards(t.Context(), ListCardsParams{Page: 2}, WithoutRetry())
	require.ErrorIs(t, err, ErrParameterIgnored)
	assert.Equal(t, 1, page.CurrentPage)
}
