package cardwire_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

func TestAllCards(t *testing.T) {
	t.Parallel()
	a, b, c, d := wiretest.ShortCard("a", ""), wiretest.ShortCard("b", ""), wiretest.ShortCard("c", ""), wiretest.ShortCard("d", "")
	cases := map[string]struct {
		params    cardwire.ListCardsParams
		exchanges []wiretest.Exchange
		ids       []string
	}{
		"one page": {
			cardwire.ListCardsParams{}, []wiretest.Exchange{{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 1, a, b)}}, []string{"a", "b"},
		},
		"three pages": {
			cardwire.ListCardsParams{},
			[]wiretest.Exchange{
				{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 3, a, b)},
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 3, c)},
				{Want: wiretest.PageRequest(3), Response: wiretest.ShortPage(3, 3, d)},
			}, []string{"a", "b", "c", "d"},
		},
		"from a page on": {
			cardwire.ListCardsParams{Page: 2},
			[]wiretest.Exchange{
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 3, c)},
				{Want: wiretest.PageRequest(3), Response: wiretest.ShortPage(3, 3, d)},
			}, []string{"c", "d"},
		},
		"with a filter on every page": {
			cardwire.ListCardsParams{Limit: 2, CardBIN: "4"},
			[]wiretest.Exchange{
				{Want: "GET /shop/api/v1/cards?limit=2&page=1&card_bin=4", Response: wiretest.ShortPage(1, 2, a, b)},
				{Want: "GET /shop/api/v1/cards?limit=2&page=2&card_bin=4", Response: wiretest.ShortPage(2, 2, c)},
			}, []string{"a", "b", "c"},
		},
		"pages are added on the way": {
			cardwire.ListCardsParams{},
			[]wiretest.Exchange{
				{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 2, a)},
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 3, b)},
				{Want: wiretest.PageRequest(3), Response: wiretest.ShortPage(3, 3, c)},
			}, []string{"a", "b", "c"},
		},
		"pages go away on the way": {
			cardwire.ListCardsParams{},
			[]wiretest.Exchange{
				{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 4, a)},
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 2, b)},
			}, []string{"a", "b"},
		},
		"the next page goes away": {
			cardwire.ListCardsParams{},
			[]wiretest.Exchange{
				{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 2, a)},
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 1)},
			}, []string{"a"},
		},
		"no cards":          {cardwire.ListCardsParams{}, []wiretest.Exchange{{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 1)}}, nil},
		"no pages":          {cardwire.ListCardsParams{}, []wiretest.Exchange{{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 0)}}, nil},
		"no last page":      {cardwire.ListCardsParams{}, []wiretest.Exchange{{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 0, a)}}, []string{"a"}},
		"an empty page":     {cardwire.ListCardsParams{}, []wiretest.Exchange{{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 2)}, {Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 2, b)}}, []string{"b"}},
		"beyond the last":   {cardwire.ListCardsParams{Page: 5}, []wiretest.Exchange{{Want: wiretest.PageRequest(5), Response: wiretest.ShortPage(5, 3)}}, nil},
		"beyond, shown one": {cardwire.ListCardsParams{Page: 5}, []wiretest.Exchange{{Want: wiretest.PageRequest(5), Response: wiretest.ShortPage(3, 3, a)}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ahead := range []int{0, 1} {
				client := wiretest.Converse(t, tc.exchanges)
				ids, err := wiretest.Walk(t.Context(), client, tc.params, cardwire.WithPrefetch(ahead))
				require.NoError(t, err)
				assert.Equal(t, tc.ids, ids, "pages read ahead: %d", ahead)
			}
		})
	}
}

func TestAllCardsStopsAtTheSamePage(t *testing.T) {
	t.Parallel()
	first := wiretest.Exchange{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 2, wiretest.ShortCard("a", ""), wiretest.ShortCard("b", ""))}
	again := wiretest.Exchange{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 2, wiretest.ShortCard("a", ""), wiretest.ShortCard("b", ""))}
	pages := func(t *testing.T, exchanges []wiretest.Exchange, opts ...cardwire.Option) *cardwire.Client {
		c := wiretest.Converse(t, exchanges, opts...)
		return c
	}
	t.Run("looked at once more", func(t *testing.T) {
		t.Parallel()
		moved := wiretest.Exchange{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(2, 2, wiretest.ShortCard("c", ""))}
		ids, err := wiretest.Walk(t.Context(), pages(t, []wiretest.Exchange{first, again, moved}), cardwire.ListCardsParams{})
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "c"}, ids)
	})
	t.Run("checked", func(t *testing.T) {
		t.Parallel()
		ids, err := wiretest.Walk(t.Context(), pages(t, []wiretest.Exchange{first, again, again}), cardwire.ListCardsParams{})
		assert.Equal(t, []string{"a", "b"}, ids)
		require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
		require.ErrorContains(t, err, "PageParam")
		e := wiretest.Failure(t, err)
		assert.Equal(t, 2, e.Page)
		assert.Equal(t, "ListCards", e.Op)
		assert.Equal(t, cardwire.OutcomeExecuted, e.Outcome)
		assert.Equal(t, []int{200, 200}, []int{e.HTTPStatus, e.Code})
		assert.NotContains(t, err.Error(), "it was done", "a list does nothing")
	})
	t.Run("trusted", func(t *testing.T) {
		t.Parallel()
		profile := cardwire.DefaultProfile()
		profile.TrustReplies = true
		ids, err := wiretest.Walk(t.Context(), pages(t, []wiretest.Exchange{first, again}, cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile })), cardwire.ListCardsParams{})
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b", "a", "b"}, ids)
	})
}

// A service that clamps page numbers repeats its last page for ever.
func TestAPageBeyondTheLastIsEmpty(t *testing.T) {
	t.Parallel()
	page, err := wiretest.Respond(t, wiretest.PageRequest(4), wiretest.ShortPage(3, 3, wiretest.ShortCard("a", ""))).ListCards(t.Context(), cardwire.ListCardsParams{Page: 4})
	require.NoError(t, err)
	assert.Equal(t, &cardwire.CardPage{Total: 9, PerPage: 2, CurrentPage: 3, LastPage: 3, Cards: []cardwire.Card{}}, page)
}

func TestAllCardsSaysWhereToResume(t *testing.T) {
	t.Parallel()
	profile := cardwire.DefaultProfile()
	profile.PageParam = ""
	first := wiretest.Exchange{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 3, wiretest.ShortCard("a", ""))}
	cases := map[string]struct {
		params    cardwire.ListCardsParams
		profile   cardwire.Profile
		exchanges []wiretest.Exchange
		ids       []string
		cause     error
		page      int
	}{
		"the first page fails": {
			cardwire.ListCardsParams{}, cardwire.DefaultProfile(),
			[]wiretest.Exchange{{Want: wiretest.PageRequest(1), Status: 404, Response: ""}}, nil, cardwire.ErrNotFound, 1,
		},
		"the second page fails": {
			cardwire.ListCardsParams{}, cardwire.DefaultProfile(),
			[]wiretest.Exchange{first, {Want: wiretest.PageRequest(2), Status: 404, Response: ""}}, []string{"a"}, cardwire.ErrNotFound, 2,
		},
		"a later page fails": {
			cardwire.ListCardsParams{Page: 7}, cardwire.DefaultProfile(),
			[]wiretest.Exchange{{Want: wiretest.PageRequest(7), Status: 404, Response: ""}}, nil, cardwire.ErrNotFound, 7,
		},
		"the page is ignored": {
			cardwire.ListCardsParams{}, cardwire.DefaultProfile(),
			[]wiretest.Exchange{
				first,
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(1, 3, wiretest.ShortCard("a", ""))},
				{Want: wiretest.PageRequest(2), Response: wiretest.ShortPage(1, 3, wiretest.ShortCard("a", ""))},
			}, []string{"a"}, cardwire.ErrParameterIgnored, 2,
		},
		// The first page can be had without a name for the parameter.
		"no name for the page": {
			cardwire.ListCardsParams{}, profile,
			[]wiretest.Exchange{{Want: "GET /shop/api/v1/cards", Response: wiretest.ShortPage(1, 2, wiretest.ShortCard("a", ""))}},
			[]string{"a"}, cardwire.ErrInvalidParams, 2,
		},
		"no name, a later page": {cardwire.ListCardsParams{Page: 2}, profile, nil, nil, cardwire.ErrInvalidParams, 2},
		"page below zero":       {cardwire.ListCardsParams{Page: -1}, cardwire.DefaultProfile(), nil, nil, cardwire.ErrInvalidParams, -1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ahead := range []int{0, 1} {
				c := wiretest.Converse(t, tc.exchanges, cardwire.WithProfile(func(own *cardwire.Profile) { *own = tc.profile }))
				ids, err := wiretest.Walk(t.Context(), c, tc.params, cardwire.WithPrefetch(ahead))
				assert.Equal(t, tc.ids, ids, "pages read ahead: %d", ahead)
				require.ErrorIs(t, err, tc.cause)
				assert.Equal(t, tc.page, wiretest.Failure(t, err).Page)
			}
		})
	}
}

// Observers may keep an error and read it while the caller goes on.
func TestThePageToResumeFromIsInAnErrorOfTheCallersOwn(t *testing.T) {
	t.Parallel()
	var told error
	c := wiretest.Respond(t, wiretest.PageRequest(3), `{"code":422,"msg":"no","data":null}`, cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) { told = r.Err },
	}))
	_, err := wiretest.Walk(t.Context(), c, cardwire.ListCardsParams{Page: 3})
	assert.Equal(t, 3, wiretest.Failure(t, err).Page)
	assert.Equal(t, 0, wiretest.Failure(t, told).Page)
}

func TestAllCardsAsksForNothingAfterABreak(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.PageRequest(1), wiretest.ShortPage(1, 3, wiretest.ShortCard("a", ""), wiretest.ShortCard("b", "")))
	for card, err := range c.AllCards(t.Context(), cardwire.ListCardsParams{}) {
		require.NoError(t, err)
		assert.Equal(t, "a", card.ID)
		break
	}
}

func TestAllCardsAsksForNothingBeforeItIsRead(t *testing.T) {
	t.Parallel()
	assert.NotNil(t, wiretest.Unasked(t).AllCards(t.Context(), cardwire.ListCardsParams{}))
}

func TestAllCardsStartsAnewEachTime(t *testing.T) {
	t.Parallel()
	page := wiretest.Exchange{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 1, wiretest.ShortCard("a", ""))}
	c := wiretest.Converse(t, []wiretest.Exchange{page, page})
	cards := c.AllCards(t.Context(), cardwire.ListCardsParams{})
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
	last := wiretest.ShortPage(2, 2, wiretest.ShortCard("b", ""))
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: wiretest.PageRequest(1), Response: wiretest.ShortPage(1, 2, wiretest.ShortCard("a", ""))},
		{Want: wiretest.PageRequest(2), Response: last},
	})
	var r cardwire.Response
	ids, err := wiretest.Walk(t.Context(), c, cardwire.ListCardsParams{}, cardwire.WithResponse(&r))
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, ids)
	assert.Equal(t, last, string(r.RevealBody()))
	assert.Equal(t, http.StatusOK, r.HTTPStatus)
}

// shelf serves pages of one card each, which is called "card-" and the page's
// number, after a time. Requests may come in any order.
type shelf struct {
	last     int                                      // the last page's number
	takes    time.Duration                            // how long a page takes
	soon     int                                      // the page that takes half as long; 0: none
	response func(page int) (status int, text string) // status 0, or nil: the card
	mu       sync.Mutex
	asked    []int // in order
	open     int   // requests under way
	most     int   // at one time
	left     []int // pages whose request ended with its context
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
	if s.response != nil {
		if status, text := s.response(page); status != 0 {
			return wiretest.Response(r, status, text), nil
		}
	}
	return wiretest.Response(r, 0, wiretest.ShortPage(page, s.last, wiretest.ShortCard(fmt.Sprintf("card-%d", page), ""))), nil
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
				ids, err := wiretest.Walk(t.Context(), wiretest.NewClient(t, s), cardwire.ListCardsParams{}, cardwire.WithPrefetch(tc.ahead))
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
		for card, err := range wiretest.NewClient(t, s).AllCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithPrefetch(3)) {
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
		for _, err := range wiretest.NewClient(t, s).AllCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithPrefetch(4)) {
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
		for card, err := range wiretest.NewClient(t, s).AllCards(ctx, cardwire.ListCardsParams{}, cardwire.WithPrefetch(4)) {
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
		assert.Equal(t, 6, wiretest.Failure(t, ended).Page)
		assert.Zero(t, s.open, "requests under way")
	})
}

// Everything before the failed page is yielded, and nothing is begun after the
// failure is known.
func TestPrefetchSaysWhereToResume(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{last: 50, takes: time.Second, soon: 4}
		s.response = func(page int) (int, string) {
			if page == 4 {
				return http.StatusNotFound, ""
			}
			return 0, ""
		}
		c := wiretest.NewClient(t, s)
		var ids []string
		var err error
		for card, e := range c.AllCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithPrefetch(5)) {
			synctest.Wait() // what was begun with this page has been asked for
			if err = e; e == nil {
				ids = append(ids, card.ID)
			}
		}
		assert.Equal(t, cardsOf(1, 3), ids)
		require.ErrorIs(t, err, cardwire.ErrNotFound)
		assert.Equal(t, 4, wiretest.Failure(t, err).Page)
		assert.Equal(t, numbers(1, 6), s.pagesAsked())

		s.response = nil
		ids, err = wiretest.Walk(t.Context(), c, cardwire.ListCardsParams{Page: 4}, cardwire.WithPrefetch(5))
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
			s.response = func(page int) (int, string) {
				switch {
				case page == tc.page:
					return http.StatusOK, wiretest.ShortPage(page, tc.last, wiretest.ShortCard(tc.id, ""))
				case page > tc.page && tc.last < 3:
					return http.StatusNotFound, ""
				case page > tc.page:
					return http.StatusOK, wiretest.ShortPage(page, tc.last, wiretest.ShortCard(fmt.Sprintf("card-%d", page), ""))
				}
				return 0, ""
			}
			ids, err := wiretest.Walk(t.Context(), wiretest.NewClient(t, s), cardwire.ListCardsParams{}, cardwire.WithPrefetch(2))
			require.NoError(t, err)
			assert.Equal(t, tc.want, ids)
		})
	}
}

func TestPrefetchNoticesTheSamePageTwice(t *testing.T) {
	t.Parallel()
	s := &shelf{last: 9}
	s.response = func(page int) (int, string) {
		return http.StatusOK, wiretest.ShortPage(page, 9, wiretest.ShortCard(fmt.Sprintf("card-%d", min(page, 3)), ""))
	}
	ids, err := wiretest.Walk(t.Context(), wiretest.NewClient(t, s), cardwire.ListCardsParams{}, cardwire.WithPrefetch(4))
	assert.Equal(t, cardsOf(1, 3), ids)
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	assert.Equal(t, 4, wiretest.Failure(t, err).Page)
}

// A call that is begun early waits longer at the limiter, and its own 30 seconds
// may end there. That is no failure: its turn has come when the page is asked for.
func TestPrefetchOutlastsASlowLimiter(t *testing.T) {
	t.Parallel()
	for name, limiter := range map[string]func(*testing.T) cardwire.Option{"anyone's turn": wiretest.OneASecond, "in turn": wiretest.InTurn} {
		for _, ahead := range []int{0, 8, 60, 100} {
			t.Run(name+" "+strconv.Itoa(ahead), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := &shelf{last: 120}
					ids, err := wiretest.Walk(t.Context(), wiretest.NewClient(t, s, limiter(t)), cardwire.ListCardsParams{}, cardwire.WithPrefetch(ahead))
					require.NoError(t, err)
					assert.Equal(t, cardsOf(1, 120), ids)
					assert.Equal(t, numbers(1, 120), s.pagesAsked())
				})
			})
		}
	}
}

// The filter of an iteration is the one it began with, whatever its caller does
// with the variable.
func TestAllCardsKeepsItsFilter(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 2} {
		var asked []string
		var mu sync.Mutex
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.URL.Query().Get("status"))
			page := r.URL.Query().Get("page")
			n, err := strconv.Atoi(page)
			if err != nil {
				return nil, err
			}
			return wiretest.Response(r, 0, wiretest.ShortPage(n, 5, wiretest.ShortCard(page, `,"status":1`))), nil
		}))
		status := cardwire.CardFrozen
		for _, err := range c.AllCards(t.Context(), cardwire.ListCardsParams{Status: &status}, cardwire.WithPrefetch(ahead)) {
			require.NoError(t, err)
			status = cardwire.CardClosed
		}
		assert.Equal(t, []string{"1", "1", "1", "1", "1"}, asked)
	}
}

func TestPrefetchWaitsForTheLimiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{last: 6}
		start := time.Now()
		ids, err := wiretest.Walk(t.Context(), wiretest.NewClient(t, s, wiretest.OneASecond(t)), cardwire.ListCardsParams{}, cardwire.WithPrefetch(5))
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
	var r cardwire.Response
	n := 0
	for card, err := range wiretest.NewClient(t, s).AllCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithPrefetch(3), cardwire.WithResponse(&r)) {
		require.NoError(t, err)
		n++
		assert.Equal(t, wiretest.ShortPage(n, 6, wiretest.ShortCard(card.ID, "")), string(r.RevealBody()))
	}
	assert.Equal(t, 6, n)
}

// What a caller-supplied function does to its goroutine it does to the caller's
// as well, as without prefetching, or it ends the iteration with an error.
func TestPrefetchAndFunctionsThatDoNotReturn(t *testing.T) {
	t.Parallel()
	const secondPage = `"current_page":2`
	fromSecondCall := func(do func()) cardwire.Option {
		var calls atomic.Int32
		return cardwire.WithObserver(cardwire.Observer{CallEnd: func(context.Context, cardwire.CallInfo, cardwire.CallResult) {
			if calls.Add(1) > 1 {
				do()
			}
		}})
	}
	t.Run("a panic", func(t *testing.T) {
		t.Parallel()
		c := wiretest.NewClient(t, &shelf{last: 9}, fromSecondCall(func() { panic("of the observer") }))
		var r cardwire.Response
		assert.PanicsWithValue(t, "of the observer", func() {
			_, _ = wiretest.Walk(t.Context(), c, cardwire.ListCardsParams{}, cardwire.WithPrefetch(4), cardwire.WithResponse(&r))
		})
		assert.Contains(t, string(r.RevealBody()), secondPage)
	})
	t.Run("a panic that nobody asked for", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := wiretest.NewClient(t, &shelf{last: 9}, fromSecondCall(func() { panic("of the observer") }))
			assert.PanicsWithValue(t, "of the observer", func() {
				for _, err := range c.AllCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithPrefetch(1)) {
					assert.NoError(t, err)
					synctest.Wait()
					break
				}
			})
		})
	})
	t.Run("the end of the goroutine", func(t *testing.T) {
		t.Parallel()
		c := wiretest.NewClient(t, &shelf{last: 9}, fromSecondCall(runtime.Goexit))
		var r cardwire.Response
		ids, err := wiretest.Walk(t.Context(), c, cardwire.ListCardsParams{}, cardwire.WithPrefetch(4), cardwire.WithResponse(&r))
		assert.Equal(t, cardsOf(1, 1), ids)
		assert.Contains(t, string(r.RevealBody()), secondPage)
		require.ErrorContains(t, err, "a callback called runtime.Goexit")
		assert.Equal(t, 2, wiretest.Failure(t, err).Page)
	})
}

func TestPrefetchIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 101} {
		_, err := wiretest.Walk(t.Context(), wiretest.Unasked(t), cardwire.ListCardsParams{}, cardwire.WithPrefetch(n))
		wiretest.RefusedBeforehand(t, err, "WithPrefetch")
	}
	var none context.Context
	_, err := wiretest.Walk(none, wiretest.Unasked(t), cardwire.ListCardsParams{}, cardwire.WithPrefetch(1))
	wiretest.RefusedBeforehand(t, err, "context")
}

func TestOtherOperationsIgnorePrefetch(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/account/capacity", wiretest.Success("3"))
	n, err := c.CardCapacity(t.Context(), cardwire.WithPrefetch(7))
	require.NoError(t, err)
	assert.Equal(t, int64(3), n)
}

// namedProfile gives every parameter a name, none of them an assumed one.
func namedProfile() cardwire.Profile {
	p := cardwire.DefaultProfile()
	p.LimitParam, p.PageParam, p.SubAccountParam, p.StatusParam = "page_size", "page_no", "sub", "state"
	p.CardBINParam, p.CardIDParam = "bin[]", "card"
	p.CreatedFromParam, p.CreatedToParam = "c_from", "c_to"
	p.TransactedFromParam, p.TransactedToParam = "t_from", "t_to"
	return p
}

func TestListCardsQuery(t *testing.T) {
	t.Parallel()
	active := cardwire.CardActive
	locked := cardwire.CardLocked
	day := cardwire.Date{2026, time.February, 3}
	later := cardwire.Date{2026, time.November, 14}
	cases := map[string]struct {
		profile cardwire.Profile
		params  cardwire.ListCardsParams
		want    string
	}{
		"nothing":          {cardwire.DefaultProfile(), cardwire.ListCardsParams{}, ""},
		"assumed limit":    {cardwire.DefaultProfile(), cardwire.ListCardsParams{Limit: 20}, "?limit=20"},
		"assumed page":     {cardwire.DefaultProfile(), cardwire.ListCardsParams{Page: 7}, "?page=7"},
		"assumed status":   {cardwire.DefaultProfile(), cardwire.ListCardsParams{Status: &active}, "?status=0"},
		"assumed card BIN": {cardwire.DefaultProfile(), cardwire.ListCardsParams{CardBIN: "493193"}, "?card_bin=493193"},
		"limit":            {namedProfile(), cardwire.ListCardsParams{Limit: 1}, "?page_size=1"},
		"page":             {namedProfile(), cardwire.ListCardsParams{Page: 2}, "?page_no=2"},
		"sub-account":      {namedProfile(), cardwire.ListCardsParams{SubAccountID: "s 1&2"}, "?sub=s+1%262"},
		"status below 0":   {namedProfile(), cardwire.ListCardsParams{Status: &locked}, "?state=-1"},
		"card BIN":         {namedProfile(), cardwire.ListCardsParams{CardBIN: "01234567"}, "?bin%5B%5D=01234567"},
		"created from":     {namedProfile(), cardwire.ListCardsParams{CreatedFrom: day}, "?c_from=2026-02-03"},
		"created to":       {namedProfile(), cardwire.ListCardsParams{CreatedTo: later}, "?c_to=2026-11-14"},
		"transacted from":  {namedProfile(), cardwire.ListCardsParams{TransactedFrom: day}, "?t_from=2026-02-03"},
		"transacted to":    {namedProfile(), cardwire.ListCardsParams{TransactedTo: later}, "?t_to=2026-11-14"},
		"one day":          {namedProfile(), cardwire.ListCardsParams{CreatedFrom: day, CreatedTo: day}, "?c_from=2026-02-03&c_to=2026-02-03"},
		"everything": {
			namedProfile(),
			cardwire.ListCardsParams{
				Limit: 50, Page: 3, SubAccountID: "s1", Status: &active, CardBIN: "493193",
				CreatedFrom: day, CreatedTo: later, TransactedFrom: day, TransactedTo: later,
			},
			"?page_size=50&page_no=3&sub=s1&state=0&bin%5B%5D=493193&c_from=2026-02-03&c_to=2026-11-14&t_from=2026-02-03&t_to=2026-11-14",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, "GET /shop/api/v1/cards"+tc.want,
				wiretest.Success(`{"total":0,"per_page":20,"current_page":1,"last_page":1,"data":[]}`), cardwire.WithProfile(func(own *cardwire.Profile) { *own = tc.profile }))
			got, err := c.ListCards(t.Context(), tc.params)
			require.NoError(t, err)
			assert.Equal(t, &cardwire.CardPage{PerPage: 20, CurrentPage: 1, LastPage: 1, Cards: []cardwire.Card{}}, got)
		})
	}
}

func TestEveryStatusOfTheAPICanBeAskedFor(t *testing.T) {
	t.Parallel()
	for status, want := range map[cardwire.CardStatus]string{
		cardwire.CardLocked: "-1", cardwire.CardActive: "0", cardwire.CardFrozen: "1", cardwire.CardClosed: "2", cardwire.CardClosing: "3", cardwire.CardSuspended: "4",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			c := wiretest.Respond(t, "GET /shop/api/v1/cards?status="+want,
				wiretest.Page(wiretest.Edited(t, wiretest.ListedCard, `"status":1`, `"status":`+want)))
			got, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Status: &status})
			require.NoError(t, err)
			assert.Equal(t, status, got.Cards[0].Status)
		})
	}
}

func TestAParameterWithoutANameIsNotSent(t *testing.T) {
	t.Parallel()
	active := cardwire.CardActive
	day := cardwire.Date{2026, time.February, 3}
	for field, params := range map[string]cardwire.ListCardsParams{
		"LimitParam": {Limit: 20}, "PageParam": {Page: 2}, "SubAccountParam": {SubAccountID: "s1"},
		"StatusParam": {Status: &active}, "CardBINParam": {CardBIN: "493193"},
		"CreatedFromParam": {CreatedFrom: day}, "CreatedToParam": {CreatedTo: day},
		"TransactedFromParam": {TransactedFrom: day}, "TransactedToParam": {TransactedTo: day},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.Unasked(t, cardwire.WithProfile(func(own *cardwire.Profile) { *own = cardwire.Profile{} })).ListCards(t.Context(), params)
			wiretest.RefusedBeforehand(t, err, "Profile."+field)
		})
	}
	t.Run("CardIDParam", func(t *testing.T) {
		t.Parallel()
		_, err := wiretest.Unasked(t, cardwire.WithProfile(func(own *cardwire.Profile) { *own = cardwire.Profile{} })).GetCard(t.Context(), "card-1")
		wiretest.RefusedBeforehand(t, err, "Profile.CardIDParam")
	})
	t.Run("CardIDParam, by order", func(t *testing.T) {
		t.Parallel()
		_, err := wiretest.Unasked(t, cardwire.WithProfile(func(own *cardwire.Profile) { *own = cardwire.Profile{} })).GetCardByOrder(t.Context(), "order-1")
		wiretest.RefusedBeforehand(t, err, "Profile.CardIDParam")
	})
}

func TestListCardsRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	below, above := cardwire.CardLocked-1, cardwire.CardSuspended+1
	day, next := cardwire.Date{2026, time.February, 3}, cardwire.Date{2026, time.February, 4}
	for name, tc := range map[string]struct {
		params cardwire.ListCardsParams
		names  string
	}{
		"limit":                    {cardwire.ListCardsParams{Limit: -1}, "Limit"},
		"page":                     {cardwire.ListCardsParams{Page: -1}, "Page"},
		"status too low":           {cardwire.ListCardsParams{Status: &below}, "Status"},
		"status too high":          {cardwire.ListCardsParams{Status: &above}, "Status"},
		"BIN with letters":         {cardwire.ListCardsParams{CardBIN: "49319a"}, "CardBIN"},
		"BIN with a space":         {cardwire.ListCardsParams{CardBIN: " 493193"}, "CardBIN"},
		"created backwards":        {cardwire.ListCardsParams{CreatedFrom: next, CreatedTo: day}, "CreatedTo"},
		"transacted backwards":     {cardwire.ListCardsParams{TransactedFrom: next, TransactedTo: day}, "TransactedTo"},
		"no such created from":     {cardwire.ListCardsParams{CreatedFrom: cardwire.Date{2026, time.February, 29}}, "CreatedFrom"},
		"no such created to":       {cardwire.ListCardsParams{CreatedTo: cardwire.Date{2026, time.April, 31}}, "CreatedTo"},
		"no such transacted from":  {cardwire.ListCardsParams{TransactedFrom: cardwire.Date{2026, 13, 1}}, "TransactedFrom"},
		"no such transacted to":    {cardwire.ListCardsParams{TransactedTo: cardwire.Date{2026, time.May, 0}}, "TransactedTo"},
		"a year that is not there": {cardwire.ListCardsParams{CreatedFrom: cardwire.Date{0, time.May, 1}}, "CreatedFrom"},
		"a year of five digits":    {cardwire.ListCardsParams{CreatedTo: cardwire.Date{10000, time.May, 1}, CreatedFrom: day}, "CreatedTo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.Unasked(t, cardwire.WithProfile(func(own *cardwire.Profile) { *own = namedProfile() })).ListCards(t.Context(), tc.params)
			wiretest.RefusedBeforehand(t, err, tc.names)
		})
	}
}

func TestPagesThatContradictTheParameters(t *testing.T) {
	t.Parallel()
	frozen := cardwire.CardFrozen
	day := cardwire.Date{2026, time.March, 10}
	created := func(at string) string {
		return wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"create_time":"`+at+`"`))
	}
	cases := map[string]struct {
		params   cardwire.ListCardsParams
		response string
		names    string // "": the page is fine
	}{
		"the page asked for":       {cardwire.ListCardsParams{Page: 2}, wiretest.ShortPage(2, 3, wiretest.ShortCard("a", "")), ""},
		"another page":             {cardwire.ListCardsParams{Page: 2}, wiretest.ShortPage(1, 3, wiretest.ShortCard("a", "")), "PageParam"},
		"another page at the end":  {cardwire.ListCardsParams{Page: 3}, wiretest.ShortPage(1, 3, wiretest.ShortCard("a", "")), "PageParam"},
		"beyond the last page":     {cardwire.ListCardsParams{Page: 4}, wiretest.ShortPage(4, 3), ""},
		"beyond, shown the last":   {cardwire.ListCardsParams{Page: 4}, wiretest.ShortPage(3, 3, wiretest.ShortCard("a", "")), ""},
		"no page asked for":        {cardwire.ListCardsParams{}, wiretest.ShortPage(2, 3, wiretest.ShortCard("a", "")), ""},
		"as many as asked for":     {cardwire.ListCardsParams{Limit: 2}, wiretest.ShortPage(1, 3, wiretest.ShortCard("a", ""), wiretest.ShortCard("b", "")), ""},
		"fewer: the service's cap": {cardwire.ListCardsParams{Limit: 3}, wiretest.ShortPage(1, 3, wiretest.ShortCard("a", "")), ""},
		"more than asked for":      {cardwire.ListCardsParams{Limit: 1}, wiretest.ShortPage(1, 3, wiretest.ShortCard("a", ""), wiretest.ShortCard("b", "")), "LimitParam"},
		"the status asked for":     {cardwire.ListCardsParams{Status: &frozen}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"status":1`)), ""},
		"another status":           {cardwire.ListCardsParams{Status: &frozen}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"status":1`), wiretest.ShortCard("b", `,"status":0`)), "StatusParam"},
		"the BIN asked for":        {cardwire.ListCardsParams{CardBIN: "493193"}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"card_bin":"493193"`)), ""},
		"a longer BIN":             {cardwire.ListCardsParams{CardBIN: "493193"}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"card_bin":"49319301"`)), ""},
		"a shorter BIN":            {cardwire.ListCardsParams{CardBIN: "49319301"}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"card_bin":"493193"`)), ""},
		"no BIN":                   {cardwire.ListCardsParams{CardBIN: "493193"}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", "")), ""},
		"another BIN":              {cardwire.ListCardsParams{CardBIN: "493193"}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"card_bin":"493194"`)), "CardBINParam"},
		// No zone is named, and zones lie up to 26 hours apart.
		"26 h before the first day": {cardwire.ListCardsParams{CreatedFrom: day}, created("2026-03-08 22:00:00"), ""},
		"earlier than that":         {cardwire.ListCardsParams{CreatedFrom: day}, created("2026-03-08 21:59:59"), "CreatedFromParam"},
		"26 h after the last day":   {cardwire.ListCardsParams{CreatedTo: day}, created("2026-03-12 02:00:00"), ""},
		"later than that":           {cardwire.ListCardsParams{CreatedTo: day}, created("2026-03-12 02:00:01"), "CreatedToParam"},
		"no time of creation":       {cardwire.ListCardsParams{CreatedFrom: day, CreatedTo: day}, wiretest.ShortPage(1, 1, wiretest.ShortCard("a", "")), ""},
		"a time of creation of 0":   {cardwire.ListCardsParams{CreatedFrom: day, CreatedTo: day}, created("0000-00-00 00:00:00"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.names == "" {
				_, err := wiretest.Respond(t, wiretest.Anything, tc.response, cardwire.WithProfile(func(own *cardwire.Profile) { *own = namedProfile() })).ListCards(t.Context(), tc.params)
				require.NoError(t, err)
				return
			}
			t.Run("both times", func(t *testing.T) {
				t.Parallel()
				looks := []wiretest.Exchange{{Want: wiretest.Anything, Response: tc.response}, {Want: wiretest.Anything, Response: tc.response}}
				s := wiretest.Script(t, looks...)
				c := wiretest.NewClient(t, s, cardwire.WithProfile(func(own *cardwire.Profile) { *own = namedProfile() }))
				page, err := c.ListCards(t.Context(), tc.params)
				require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
				require.ErrorContains(t, err, tc.names)
				assert.Equal(t, cardwire.OutcomeExecuted, wiretest.Failure(t, err).Outcome)
				require.NotNil(t, page, "the page is returned together with the error")
				assert.Equal(t, "a", page.Cards[0].ID)
				assert.Equal(t, s.Requests[0], s.Requests[1])
			})
			t.Run("trusted", func(t *testing.T) {
				t.Parallel()
				profile := namedProfile()
				profile.TrustReplies = true
				page, err := wiretest.Respond(t, wiretest.Anything, tc.response, cardwire.WithProfile(func(own *cardwire.Profile) { *own = profile })).ListCards(t.Context(), tc.params)
				require.NoError(t, err)
				assert.Equal(t, "a", page.Cards[0].ID)
			})
		})
	}
}

// A card's status can change while a page is read.
func TestASecondLookSettlesAContradiction(t *testing.T) {
	t.Parallel()
	frozen := cardwire.CardFrozen
	const want = "GET /shop/api/v1/cards?status=1"
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: want, Response: wiretest.ShortPage(1, 1, wiretest.ShortCard("a", `,"status":1`), wiretest.ShortCard("b", `,"status":0`))},
		{Want: want, Response: wiretest.ShortPage(1, 1, wiretest.ShortCard("c", `,"status":1`))},
	})
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Status: &frozen})
	require.NoError(t, err)
	require.Len(t, page.Cards, 1)
	assert.Equal(t, "c", page.Cards[0].ID)
}

func TestASecondLookThatFailsReturnsNoPage(t *testing.T) {
	t.Parallel()
	frozen := cardwire.CardFrozen
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: wiretest.Anything, Response: wiretest.ShortPage(1, 1, wiretest.ShortCard("b", `,"status":0`))},
		{Want: wiretest.Anything, Status: 404, Response: `{"code":404,"msg":"gone","data":null}`},
	})
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Status: &frozen})
	assert.Nil(t, page)
	require.ErrorIs(t, err, cardwire.ErrNotFound)
	assert.NotErrorIs(t, err, cardwire.ErrParameterIgnored)
}

func TestWithoutRetryNoPageIsAskedForTwice(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, wiretest.Anything, wiretest.ShortPage(1, 3, wiretest.ShortCard("a", "")))
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{Page: 2}, cardwire.WithoutRetry())
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	assert.Equal(t, 1, page.CurrentPage)
}
