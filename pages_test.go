package cardwire_test

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

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// filter selects cards; the zero value all.
type filter = cardwire.ListCardsParams

// pageText is a page of cards, each an ID that fields may follow: `a,"status":1`.
func pageText(number, last int, cards ...string) string {
	var documents []string
	for _, card := range cards {
		id, _, _ := strings.Cut(card, ",")
		documents = append(documents, wiretest.ShortCard(id, card[len(id):]))
	}
	return wiretest.ShortPage(number, last, documents...)
}

// page is the request for a page and its response.
func page(number, last int, cards ...string) wiretest.Exchange {
	return wiretest.Exchange{Want: wiretest.PageRequest(number), Response: pageText(number, last, cards...)}
}

// walk returns the IDs of all cards, with pages read ahead.
func walk(t *testing.T, c *cardwire.Client, f filter, ahead int) (ids string, err error) {
	t.Helper()
	list, err := wiretest.Walk(t.Context(), c, f, cardwire.WithPrefetch(ahead))
	return strings.Join(list, " "), err
}

func TestAllCards(t *testing.T) {
	t.Parallel()
	filtered := func(e wiretest.Exchange, query string) wiretest.Exchange {
		e.Want = "GET /shop/api/v1/cards?" + query
		return e
	}
	shownTheLast := wiretest.Exchange{Want: wiretest.PageRequest(5), Response: pageText(3, 3, "a")}
	odd := func(number int, total, current, last, cards string) wiretest.Exchange {
		counts := `{"total":` + total + `,"per_page":2,"current_page":` + current + `,"last_page":` + last
		return wiretest.Exchange{
			Want: wiretest.PageRequest(number), Response: wiretest.Success(counts + `,"data":` + cards + `}`),
		}
	}
	a := wiretest.ShortCard("a", "")
	type pages = []wiretest.Exchange
	for name, tc := range map[string]struct {
		ids    string
		filter filter
		pages  pages
	}{
		"one page":       {"a b", filter{}, pages{page(1, 1, "a", "b")}},
		"three pages":    {"a b c d", filter{}, pages{page(1, 3, "a", "b"), page(2, 3, "c"), page(3, 3, "d")}},
		"from a page on": {"c d", filter{Page: 2}, pages{page(2, 3, "c"), page(3, 3, "d")}},
		"with a filter on every page": {"a b c", filter{PageSize: 2, CardBIN: "4"}, pages{
			filtered(page(1, 2, "a", "b"), "limit=2&page=1&card_bin=4"),
			filtered(page(2, 2, "c"), "limit=2&page=2&card_bin=4"),
		}},
		"pages are added on the way": {"a b c", filter{}, pages{page(1, 2, "a"), page(2, 3, "b"), page(3, 3, "c")}},
		"pages go away on the way":   {"a b", filter{}, pages{page(1, 4, "a"), page(2, 2, "b")}},
		"the next page goes away":    {"a", filter{}, pages{page(1, 2, "a"), page(2, 1)}},
		"no cards":                   {"", filter{}, pages{page(1, 1)}},
		"no pages":                   {"", filter{}, pages{page(1, 0)}},
		"no last page":               {"a", filter{}, pages{page(1, 0, "a")}},
		"an empty page":              {"b", filter{}, pages{page(1, 2), page(2, 2, "b")}},
		"empty pages in a row": {"b", filter{},
			pages{page(1, 5), page(2, 5), page(3, 5, "b"), page(4, 5), page(5, 5)}},
		"more pages than cards": {"a b", filter{}, pages{
			odd(1, `3`, `1`, `4`, `[`+a+`]`), odd(2, `3`, `2`, `4`, `[]`), odd(3, `3`, `3`, `4`, `[]`),
			odd(4, `3`, `4`, `4`, `[`+wiretest.ShortCard("b", "")+`]`),
		}},
		"more cards than pages": {"a b", filter{}, pages{
			odd(1, `5`, `1`, `1`, `[`+a+`]`), odd(2, `5`, `2`, `1`, `[`+wiretest.ShortCard("b", "")+`]`),
			odd(3, `5`, `3`, `1`, `[]`),
		}},
		"counts in other forms":  {"a b", filter{}, pages{odd(1, `"4"`, `1.0`, `"2"`, `{"4":`+a+`}`), page(2, 2, "b")}},
		"null beyond the last":   {"", filter{Page: 5}, pages{odd(5, `6`, `3`, `3`, `null`)}},
		"none, as {}":            {"", filter{}, pages{odd(1, `0`, `1`, `1e0`, `{}`)}},
		"beyond the last":        {"", filter{Page: 5}, pages{page(5, 3)}},
		"beyond, shown the last": {"", filter{Page: 5}, pages{shownTheLast}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ahead := range []int{0, 1} {
				ids, err := walk(t, wiretest.Converse(t, tc.pages), tc.filter, ahead)
				require.NoError(t, err)
				assert.Equal(t, tc.ids, ids, "pages read ahead: %d", ahead)
			}
		})
	}
}

// A walk through pages that are all empty ends, and says so.
func TestAllCardsEndsAfterManyEmptyPages(t *testing.T) {
	t.Parallel()
	pages := []wiretest.Exchange{page(1, 1e9, "a")}
	for n := 2; n <= 101; n++ {
		pages = append(pages, page(n, 1e9))
	}
	for _, ahead := range []int{0, 1} {
		ids, err := walk(t, wiretest.Converse(t, pages), filter{}, ahead)
		assert.Equal(t, "a", ids)
		require.ErrorIs(t, err, cardwire.ErrUnreadable)
		require.ErrorContains(t, err, "page 101: the response is unreadable: 100 pages in a row are empty")
		assert.Equal(t, 101, wiretest.Failure(t, err).Page)
	}
}

// Counts are drift if they cannot all be true.
func TestCountsThatContradictEachOther(t *testing.T) {
	t.Parallel()
	for counts, contradict := range map[string]bool{
		`"total":3,"per_page":2,"current_page":1,"last_page":4`:  true,
		`"total":3,"per_page":2,"current_page":1,"last_page":1`:  true,
		`"total":3,"per_page":2,"current_page":1,"last_page":2`:  false,
		`"total":4,"per_page":2,"current_page":1,"last_page":2`:  false,
		`"total":0,"per_page":2,"current_page":1,"last_page":0`:  false,
		`"total":0,"per_page":2,"current_page":1,"last_page":1`:  false,
		`"total":0,"per_page":2,"current_page":1,"last_page":2`:  true,
		`"total":3,"per_page":0,"current_page":1,"last_page":4`:  true,
		`"total":3,"per_page":0,"current_page":1,"last_page":3`:  false,
		`"total":3,"per_page":-2,"current_page":1,"last_page":1`: false,
	} {
		c := wiretest.Respond(t, wiretest.Anything, wiretest.Success(`{`+counts+`,"data":[]}`),
			cardwire.WithStrictDrift())
		_, err := c.ListCards(t.Context(), filter{})
		if !contradict {
			require.NoError(t, err, counts)
			continue
		}
		require.ErrorIs(t, err, cardwire.ErrDrift, counts)
		require.ErrorContains(t, err, "data: counts that contradict each other", counts)
	}
}

func TestAllCardsStopsAtTheSamePage(t *testing.T) {
	t.Parallel()
	first, again := page(1, 2, "a", "b"), page(2, 2, "a", "b")
	ids, err := walk(t, wiretest.Converse(t, []wiretest.Exchange{first, again, page(2, 2, "c")}), filter{}, 0)
	require.NoError(t, err, "of a page that was asked for once more")
	assert.Equal(t, "a b c", ids)

	ids, err = walk(t, wiretest.Converse(t, []wiretest.Exchange{first, again}, trusting), filter{}, 0)
	require.NoError(t, err)
	assert.Equal(t, "a b a b", ids)

	for _, ahead := range []int{0, 1} {
		ids, err = walk(t, wiretest.Converse(t, []wiretest.Exchange{first, again, again}), filter{}, ahead)
		assert.Equal(t, "a b", ids)
		assert.Equal(t, `Executed ParameterIgnored, HTTP 200, 200 ""`, outcomeOf(t, err))
		require.ErrorContains(t, err, "PageParam")
		assert.Equal(t, 2, wiretest.Failure(t, err).Page)
		assert.Equal(t, cardwire.OpListCards, wiretest.Failure(t, err).Op)
	}
}

// noAmount is what is wrong with the cards whose `,"fee":null` makes them unreadable.
const noAmount = "data.data[%d].fee: expected a decimal amount"

// unreadablePage is a page whose card with that ID, in JSON, cannot be read.
func unreadablePage(number, last int, id string, others ...string) wiretest.Exchange {
	e := page(number, last, append(others, "x")...)
	unreadable := `{"label":"\ud83d","fee":null,"id":` + id + `}`
	e.Response = strings.Replace(e.Response, wiretest.ShortCard("x", ""), unreadable, 1)
	return e
}

func TestAllCardsGoesOnAfterACardThatIsUnreadable(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 2} {
		c := wiretest.NewClient(t, wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			pages := map[string]wiretest.Exchange{
				"1": unreadablePage(1, 3, `"card-27"`, "a", "b"), "2": unreadablePage(2, 3, `"Maria 2"`, "c"),
				"3": page(3, 3, "d"),
			}
			return wiretest.Response(r, 200, pages[r.URL.Query().Get("page")].Response), nil
		}))
		var seen []string
		for card, err := range c.AllCards(t.Context(), filter{}, cardwire.WithPrefetch(ahead)) {
			if errors.Is(err, cardwire.ErrElements) {
				failure := wiretest.Failure(t, err)
				assert.Equal(t, cardwire.Card{ID: failure.Elements[0].ID}, card)
				assert.Equal(t, cardwire.StepRetry, cardwire.NextStep(err))
				seen = append(seen, fmt.Sprintf("page %d %s: %s", failure.Page, card.ID, failure.Elements[0].Err))
				assert.Len(t, failure.Elements, 1)
				continue
			}
			require.NoError(t, err)
			seen = append(seen, card.ID)
		}
		assert.Equal(t, []string{
			"a", "b", "page 1 card-27: " + fmt.Sprintf(noAmount, 2), "c", "page 2 : " + fmt.Sprintf(noAmount, 1), "d",
		}, seen)
		pages := 0
		for page, err := range c.AllPages(t.Context(), filter{}, cardwire.WithPrefetch(ahead)) {
			pages++
			assert.Equal(t, pages < 3, errors.Is(err, cardwire.ErrElements))
			assert.NotEmpty(t, page.Cards)
		}
		assert.Equal(t, 3, pages)
		for _, err := range c.AllCards(t.Context(), filter{Page: 2}, cardwire.WithPrefetch(ahead)) {
			if err != nil {
				break // and nothing goes on
			}
		}
	}
}

// Of a page nothing of which can be read there is nothing to go on from.
func TestAPageOfUnreadableCardsEndsTheIteration(t *testing.T) {
	t.Parallel()
	pages := []wiretest.Exchange{page(1, 3, "a"), unreadablePage(2, 3, `"card-3"`)}
	ids, err := walk(t, wiretest.Converse(t, pages), filter{}, 0)
	assert.Equal(t, "a", ids)
	assert.Equal(t, `Unknown Unreadable, HTTP 200, 200 "success"`, outcomeOf(t, err))
	failure := wiretest.Failure(t, err)
	assert.Equal(t, []any{2, []cardwire.UnreadableElement(nil)}, []any{failure.Page, failure.Elements})
	assert.ErrorContains(t, err, fmt.Sprintf(noAmount, 0)+" (ID card-3): report it to the service: ")
}

func TestListsHaveAllElementsThatCanBeRead(t *testing.T) {
	t.Parallel()
	number := `"` + wiretest.CanaryNumber + `"`
	lists := map[string]func(c *cardwire.Client) (int, error){
		"ListBINs": func(c *cardwire.Client) (int, error) { l, err := c.ListBINs(t.Context()); return len(l), err },
		"ListRemittanceStates": func(c *cardwire.Client) (int, error) {
			l, err := c.ListRemittanceStates(t.Context())
			return len(l), err
		},
		"ListRemittanceCurrencies": func(c *cardwire.Client) (int, error) {
			l, err := c.ListRemittanceCurrencies(t.Context())
			return len(l), err
		},
	}
	for op, one := range map[string]string{
		"ListBINs": oneBIN, "ListRemittanceStates": oneState, "ListRemittanceCurrencies": oneCurrency,
	} {
		data := `{"0":` + one + `,"2":{"id":` + number + `,"bin":"411111","weigh":""},"3":7,"4":` + one + `}`
		n, err := lists[op](wiretest.Respond(t, wiretest.Anything, wiretest.Success(data)))
		assert.Equal(t, 2, n, op)
		assert.Equal(t, `Executed Elements Unreadable, HTTP 200, 200 "success"`, outcomeOf(t, err), op)
		elements := wiretest.Failure(t, err).Elements
		require.Len(t, elements, 2, op)
		assert.Equal(t, []any{1, "411111", 2, ""},
			[]any{elements[0].Index, elements[0].ID, elements[1].Index, elements[1].ID}, op)
		require.EqualError(t, elements[1].Err, "data[2]: expected an object", op)
		require.ErrorIs(t, elements[0].Err, cardwire.ErrUnreadable, op)
		assert.Regexp(t,
			`: failed, HTTP 200, code 200: some elements are unreadable: 2, the first is data\[1\]\.\w+(:|`+
				` is) .*\(ID 411111\): report it to the service; the others were returned$`, err)
		for _, none := range []string{`null`, `{}`, `[]`} {
			n, err = lists[op](wiretest.Respond(t, wiretest.Anything, wiretest.Success(none)))
			require.NoError(t, err, op)
			assert.Zero(t, n, op)
		}
		n, err = lists[op](wiretest.Respond(t, wiretest.Anything, wiretest.Success(`[`+one+`,{"id":1,"id":2}]`)))
		assert.Zero(t, n, op)
		assert.Equal(t, "Unknown Unreadable, HTTP 200", outcomeOf(t, err), op)
	}
}

func TestAllCardsSaysWhereToResume(t *testing.T) {
	t.Parallel()
	missing := func(number int) wiretest.Exchange {
		return wiretest.Exchange{Want: wiretest.PageRequest(number), Status: 404}
	}
	ignored := wiretest.Exchange{Want: wiretest.PageRequest(2), Response: pageText(1, 3, "a")}
	nameless := cardwire.WithProfile(func(p *cardwire.Profile) { p.PageParam = "" })
	for name, tc := range map[string]struct {
		from      int
		exchanges []wiretest.Exchange
		ids       string
		cause     error
		page      int
		opts      []cardwire.Option
	}{
		"the first page fails": {0, []wiretest.Exchange{missing(1)}, "", cardwire.ErrNotFound, 1, nil},
		"the second page fails": {
			0, []wiretest.Exchange{page(1, 3, "a"), missing(2)}, "a", cardwire.ErrNotFound, 2, nil,
		},
		"a later page fails": {7, []wiretest.Exchange{missing(7)}, "", cardwire.ErrNotFound, 7, nil},
		"the page is ignored": {
			0, []wiretest.Exchange{page(1, 3, "a"), ignored, ignored}, "a", cardwire.ErrParameterIgnored, 2, nil,
		},
		// The first page can be had without a name for the parameter.
		"no name for the page": {
			0, []wiretest.Exchange{{Want: "GET /shop/api/v1/cards", Response: pageText(1, 2, "a")}},
			"a", cardwire.ErrSetup, 2, []cardwire.Option{nameless},
		},
		"no name, a later page": {2, nil, "", cardwire.ErrSetup, 2, []cardwire.Option{nameless}},
		"page below zero":       {-1, nil, "", cardwire.ErrInvalidParams, -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, ahead := range []int{0, 1} {
				ids, err := walk(t, wiretest.Converse(t, tc.exchanges, tc.opts...), filter{Page: tc.from}, ahead)
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
	observe := cardwire.WithObserver(cardwire.Observer{
		CallEnd: func(_ context.Context, _ cardwire.CallInfo, r cardwire.CallResult) { told = r.Err },
	})
	c := wiretest.Respond(t, wiretest.PageRequest(3), `{"code":422,"msg":"no","data":null}`, observe)
	_, err := walk(t, c, filter{Page: 3}, 0)
	assert.Equal(t, 3, wiretest.Failure(t, err).Page)
	assert.Equal(t, 0, wiretest.Failure(t, told).Page)
}

// Nothing is asked for before the iteration or after a break, and each iteration begins anew.
func TestAllCardsAsksForWhatIsRead(t *testing.T) {
	t.Parallel()
	assert.NotNil(t, wiretest.Unasked(t).AllCards(t.Context(), filter{}))
	first := page(1, 3, "a", "b")
	cards := wiretest.Converse(t, []wiretest.Exchange{first, first}).AllCards(t.Context(), filter{})
	for range 2 {
		for card, err := range cards {
			require.NoError(t, err)
			assert.Equal(t, "a", card.ID)
			break
		}
	}
}

// shelf serves pages of one card each, which is called "card-" and the page's
// number, after a time. Requests may come in any order.
type shelf struct {
	last     int                                      // the last page's number
	takes    time.Duration                            // how long a page takes
	soon     int                                      // the page that takes half as long; 0: none
	response func(page int) (status int, text string) // status 0, or nil: the card
	mu       sync.Mutex
	asked    []int    // in order
	statuses []string // that they were asked for with
	open     int      // requests under way
	most     int      // at one time
	left     []int    // pages whose request ended with its context
}

func (s *shelf) RoundTrip(r *http.Request) (*http.Response, error) {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, page)
	s.statuses = append(s.statuses, r.URL.Query().Get("status"))
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
	return wiretest.Response(r, 0, pageText(page, s.last, fmt.Sprintf("card-%d", page))), nil
}

// pagesAsked are the pages that were asked for, in the order of their numbers.
func (s *shelf) pagesAsked() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.asked))
}

// cardsOf are the IDs of the cards of pages, as walk returns them.
func cardsOf(first, last int) string {
	var ids []string
	for _, n := range numbers(first, last) {
		ids = append(ids, fmt.Sprintf("card-%d", n))
	}
	return strings.Join(ids, " ")
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
	for _, tc := range []struct{ ahead, takes, most int }{{0, 17, 1}, {1, 17, 1}, {2, 9, 2}, {8, 3, 8}, {100, 2, 16}} {
		t.Run(strconv.Itoa(tc.ahead), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &shelf{last: 17, takes: time.Second}
				start := time.Now()
				ids, err := walk(t, wiretest.NewClient(t, s), filter{}, tc.ahead)
				require.NoError(t, err)
				assert.Equal(t, cardsOf(1, 17), ids)
				assert.Equal(t, numbers(1, 17), s.pagesAsked())
				assert.Equal(t, time.Duration(tc.takes)*time.Second, time.Since(start))
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
		var r cardwire.Response
		ahead, response := cardwire.WithPrefetch(3), cardwire.WithResponse(&r)
		for card, err := range wiretest.NewClient(t, s).AllCards(t.Context(), filter{}, ahead, response) {
			require.NoError(t, err)
			used++
			synctest.Wait() // whatever is to be read ahead has been
			assert.Equal(t, fmt.Sprintf("card-%d", used), card.ID)
			assert.Equal(t, numbers(1, min(used+3, 9)), s.pagesAsked())
			assert.Equal(t, pageText(used, 9, card.ID), string(r.RevealBody()), "of the current page")
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
		for _, err := range wiretest.NewClient(t, s).AllCards(t.Context(), filter{}, cardwire.WithPrefetch(4)) {
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
		last := ""
		var ended error
		for card, err := range wiretest.NewClient(t, s).AllCards(ctx, filter{}, cardwire.WithPrefetch(4)) {
			if ended = err; err != nil {
				break
			}
			if last = card.ID; last == "card-2" {
				synctest.Wait()
				cancel(gone)
			}
		}
		require.ErrorIs(t, ended, context.Canceled)
		require.ErrorIs(t, ended, gone)
		assert.Equal(t, "card-5", last, "pages 3 to 5 came together with page 2")
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
		last := ""
		var err error
		for card, e := range c.AllCards(t.Context(), filter{}, cardwire.WithPrefetch(5)) {
			synctest.Wait() // what was begun with this page has been asked for
			if err = e; e == nil {
				last = card.ID
			}
		}
		assert.Equal(t, "card-3", last)
		require.ErrorIs(t, err, cardwire.ErrNotFound)
		assert.Equal(t, 4, wiretest.Failure(t, err).Page)
		assert.Equal(t, numbers(1, 6), s.pagesAsked())

		s.response = nil
		ids, err := walk(t, c, filter{Page: 4}, 5)
		require.NoError(t, err)
		assert.Equal(t, cardsOf(4, 50), ids)
	})
}

// Pages that were read ahead and have gone since are not missed, whatever the
// service says of them.
func TestPrefetchGoesByTheNewestLastPage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ page, last int }{{2, 2}, {3, 5}} {
		s := &shelf{last: 3}
		s.response = func(page int) (int, string) {
			switch {
			case page > tc.last:
				return http.StatusNotFound, ""
			case page >= tc.page:
				return http.StatusOK, pageText(page, tc.last, fmt.Sprintf("card-%d", page))
			}
			return 0, ""
		}
		ids, err := walk(t, wiretest.NewClient(t, s), filter{}, 2)
		require.NoError(t, err)
		assert.Equal(t, cardsOf(1, tc.last), ids)
	}
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
				start := time.Now()
				ids, err := walk(t, wiretest.NewClient(t, s, wiretest.InTurn()), filter{}, ahead)
				require.NoError(t, err)
				assert.Equal(t, cardsOf(1, 120), ids)
				assert.Equal(t, numbers(1, 120), s.pagesAsked())
				assert.GreaterOrEqual(t, time.Since(start), 119*time.Second, "it is waited for before each page")
			})
		})
	}
}

// The filter of an iteration is the one it began with, whatever its caller does
// with the variable.
func TestAllCardsKeepsItsFilter(t *testing.T) {
	t.Parallel()
	for _, ahead := range []int{0, 2} {
		s := &shelf{last: 5, response: func(page int) (int, string) {
			return http.StatusOK, pageText(page, 5, fmt.Sprintf(`card-%d,"status":1`, page))
		}}
		status := cardwire.CardFrozen
		f := filter{Status: &status}
		for _, err := range wiretest.NewClient(t, s).AllCards(t.Context(), f, cardwire.WithPrefetch(ahead)) {
			require.NoError(t, err)
			status = cardwire.CardClosed
		}
		assert.Equal(t, []string{"1", "1", "1", "1", "1"}, s.statuses)
	}
}

// What a caller-supplied function does to its goroutine it does to the caller's
// as well, as without prefetching, or it ends the iteration with an error.
func TestPrefetchAndFunctionsThatDoNotReturn(t *testing.T) {
	t.Parallel()
	const secondPage = `"current_page":2`
	fromSecondCall := func(do func()) *cardwire.Client {
		var calls atomic.Int32
		observe := func(context.Context, cardwire.CallInfo, cardwire.CallResult) {
			if calls.Add(1) > 1 {
				do()
			}
		}
		return wiretest.NewClient(t, &shelf{last: 9}, cardwire.WithObserver(cardwire.Observer{CallEnd: observe}))
	}
	breaks := func() { panic("of the observer") }
	t.Run("a panic", func(t *testing.T) {
		t.Parallel()
		var r cardwire.Response
		assert.PanicsWithValue(t, "of the observer", func() {
			ahead, response := cardwire.WithPrefetch(4), cardwire.WithResponse(&r)
			_, _ = wiretest.Walk(t.Context(), fromSecondCall(breaks), filter{}, ahead, response)
		})
		assert.Contains(t, string(r.RevealBody()), secondPage)
	})
	t.Run("a panic that nobody asked for", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			assert.PanicsWithValue(t, "of the observer", func() {
				for _, err := range fromSecondCall(breaks).AllCards(t.Context(), filter{}, cardwire.WithPrefetch(1)) {
					assert.NoError(t, err)
					synctest.Wait()
					break
				}
			})
		})
	})
	t.Run("the end of the goroutine", func(t *testing.T) {
		t.Parallel()
		var r cardwire.Response
		ahead, response := cardwire.WithPrefetch(4), cardwire.WithResponse(&r)
		ids, err := wiretest.Walk(t.Context(), fromSecondCall(runtime.Goexit), filter{}, ahead, response)
		assert.Equal(t, []string{"card-1"}, ids)
		assert.Contains(t, string(r.RevealBody()), secondPage)
		require.ErrorContains(t, err, "a callback called runtime.Goexit")
		assert.Equal(t, 2, wiretest.Failure(t, err).Page)
	})
}

func TestPrefetchIsBounded(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 101} {
		_, err := walk(t, wiretest.Unasked(t), filter{}, n)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "WithPrefetch")
	}
	var none context.Context
	_, err := wiretest.Walk(none, wiretest.Unasked(t), filter{}, cardwire.WithPrefetch(1))
	wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "context")
	_, err = wiretest.Unasked(t).ListCards(t.Context(), filter{}, cardwire.WithPrefetch(7))
	wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "WithPrefetch is for AllPages and AllCards")
}

// named gives every parameter a name, none of them an assumed one.
var named = cardwire.WithProfile(func(p *cardwire.Profile) {
	p.LimitParam, p.PageParam, p.SubAccountParam, p.StatusParam = "page_size", "page_no", "sub", "state"
	p.CardBINParam, p.CardIDParam = "bin[]", "card"
	p.CreatedFromParam, p.CreatedToParam = "c_from", "c_to"
	p.TransactedFromParam, p.TransactedToParam = "t_from", "t_to"
})

func TestListCardsQuery(t *testing.T) {
	t.Parallel()
	c := wiretest.Respond(t, "GET /shop/api/v1/cards?page_size=50&page_no=1&sub=s+1%262&state=-1&bin%5B%5D=01234567"+
		"&c_from=2026-02-03&c_to=2026-11-14&t_from=2026-02-04&t_to=2026-11-13",
		wiretest.Success(`{"total":0,"per_page":20,"current_page":1,"last_page":1,"data":[]}`), named)
	got, err := c.ListCards(t.Context(), filter{
		PageSize: 50, Page: 1, SubAccountID: "s 1&2", Status: new(cardwire.CardLocked), CardBIN: "01234567",
		CreatedFrom: cardwire.Date{2026, 2, 3}, CreatedTo: cardwire.Date{2026, 11, 14},
		TransactedFrom: cardwire.Date{2026, 2, 4}, TransactedTo: cardwire.Date{2026, 11, 13},
	})
	require.NoError(t, err)
	assert.Equal(t, &cardwire.CardPage{PerPage: 20, CurrentPage: 1, LastPage: 1, Cards: []cardwire.Card{}}, got)
}

func TestAParameterWithoutANameIsNotSent(t *testing.T) {
	t.Parallel()
	day := cardwire.Date{2026, time.February, 3}
	c := wiretest.Unasked(t, cardwire.WithProfile(func(p *cardwire.Profile) { *p = cardwire.Profile{} }))
	for field, f := range map[string]filter{
		"LimitParam": {PageSize: 20}, "PageParam": {Page: 2}, "SubAccountParam": {SubAccountID: "s1"},
		"StatusParam": {Status: new(cardwire.CardActive)}, "CardBINParam": {CardBIN: "493193"},
		"CreatedFromParam": {CreatedFrom: day}, "CreatedToParam": {CreatedTo: day},
		"TransactedFromParam": {TransactedFrom: day}, "TransactedToParam": {TransactedTo: day},
	} {
		_, err := c.ListCards(t.Context(), f)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "Profile."+field)
	}
	_, err := c.GetCard(t.Context(), "card-1")
	wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "Profile.CardIDParam")
	_, err = c.GetCardByOrder(t.Context(), "order-1")
	wiretest.RefusedBeforehand(t, err, cardwire.ErrSetup, "Profile.CardIDParam")
}

func TestListCardsRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	below, above := cardwire.CardLocked-1, cardwire.CardSuspended+1
	day, next := cardwire.Date{2026, time.February, 3}, cardwire.Date{2026, time.February, 4}
	none := cardwire.Date{2026, time.February, 29}
	for _, tc := range []struct {
		filter filter
		names  string
	}{
		{filter{PageSize: -1}, "PageSize"},
		{filter{Page: -1}, "Page"},
		{filter{Status: &below}, "Status"},
		{filter{Status: &above}, "Status"},
		{filter{CardBIN: "49319a"}, "CardBIN"},
		{filter{CreatedFrom: next, CreatedTo: day}, "CreatedTo"},
		{filter{TransactedFrom: next, TransactedTo: day}, "TransactedTo"},
		{filter{CreatedFrom: none}, "CreatedFrom"},
		{filter{CreatedTo: none}, "CreatedTo"},
		{filter{TransactedFrom: none}, "TransactedFrom"},
		{filter{TransactedTo: none}, "TransactedTo"},
		{filter{CreatedFrom: cardwire.Date{0, time.May, 1}}, "CreatedFrom is not a valid date, as in 2026-01-31"},
		{filter{CreatedFrom: cardwire.Date{2026, 13, 1}}, "CreatedFrom"},
		{filter{CreatedFrom: cardwire.Date{2026, time.May, -1}}, "CreatedFrom"},
		{filter{CreatedFrom: cardwire.Date{-1, time.May, 1}}, "CreatedFrom"},
		{filter{CreatedFrom: cardwire.Date{Day: 1}}, "CreatedFrom"},
		{filter{CreatedTo: cardwire.Date{10000, time.May, 1}, CreatedFrom: day}, "CreatedTo"},
	} {
		_, err := wiretest.Unasked(t, named).ListCards(t.Context(), tc.filter)
		wiretest.RefusedBeforehand(t, err, cardwire.ErrInvalidParams, tc.names)
	}
}

func TestPagesThatContradictTheParameters(t *testing.T) {
	t.Parallel()
	frozen, day := new(cardwire.CardFrozen), cardwire.Date{2026, time.March, 10}
	const isFrozen = `a,"status":1`
	created := func(at string) string { return pageText(1, 1, `a,"create_time":"`+at+`"`) }
	for name, tc := range map[string]struct {
		filter   filter
		response string
		names    string // "": the page is fine
	}{
		"the page asked for":       {filter{Page: 2}, pageText(2, 3, "a"), ""},
		"another page":             {filter{Page: 2}, pageText(1, 3, "a"), "PageParam"},
		"another page at the end":  {filter{Page: 3}, pageText(1, 3, "a"), "PageParam"},
		"beyond the last page":     {filter{Page: 4}, pageText(4, 3), ""},
		"beyond, shown the last":   {filter{Page: 4}, pageText(3, 3, "a"), ""},
		"no page asked for":        {filter{}, pageText(2, 3, "a"), ""},
		"as many as asked for":     {filter{PageSize: 2}, pageText(1, 3, "a", "b"), ""},
		"fewer: the service's cap": {filter{PageSize: 3}, pageText(1, 3, "a"), ""},
		"more than asked for":      {filter{PageSize: 1}, pageText(1, 3, "a", "b"), "LimitParam"},
		"the status asked for":     {filter{Status: frozen}, pageText(1, 1, isFrozen), ""},
		"another status":           {filter{Status: frozen}, pageText(1, 1, isFrozen, `b,"status":0`), "StatusParam"},
		"the BIN asked for":        {filter{CardBIN: "493193"}, pageText(1, 1, `a,"card_bin":"493193"`), ""},
		"a longer BIN":             {filter{CardBIN: "493193"}, pageText(1, 1, `a,"card_bin":"49319301"`), ""},
		"a shorter BIN":            {filter{CardBIN: "49319301"}, pageText(1, 1, `a,"card_bin":"493193"`), ""},
		"no BIN":                   {filter{CardBIN: "493193"}, pageText(1, 1, "a"), ""},
		"another BIN":              {filter{CardBIN: "493193"}, pageText(1, 1, `a,"card_bin":"51"`), "CardBINParam"},
		// No zone is named, and zones lie up to 26 hours apart.
		"26 h before the first day": {filter{CreatedFrom: day}, created("2026-03-08 22:00:00"), ""},
		"earlier than that":         {filter{CreatedFrom: day}, created("2026-03-08 21:59:59"), "CreatedFromParam"},
		"26 h after the last day":   {filter{CreatedTo: day}, created("2026-03-12 02:00:00"), ""},
		"later than that":           {filter{CreatedTo: day}, created("2026-03-12 02:00:01"), "CreatedToParam"},
		"no time of creation":       {filter{CreatedFrom: day, CreatedTo: day}, pageText(1, 1, "a"), ""},
		"a time of creation of 0":   {filter{CreatedFrom: day, CreatedTo: day}, created("0000-00-00 00:00:00"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := wiretest.Exchange{Want: wiretest.Anything, Response: tc.response}
			if tc.names == "" {
				_, err := wiretest.Converse(t, []wiretest.Exchange{look}, named).ListCards(t.Context(), tc.filter)
				require.NoError(t, err)
				return
			}
			s := wiretest.Script(t, look, look)
			page, err := wiretest.NewClient(t, s, named).ListCards(t.Context(), tc.filter)
			require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
			require.ErrorContains(t, err, tc.names)
			assert.Equal(t, cardwire.OutcomeExecuted, wiretest.Failure(t, err).Outcome)
			require.NotNil(t, page, "the page is returned together with the error")
			assert.Equal(t, "a", page.Cards[0].ID)
			assert.Equal(t, s.Requests[0], s.Requests[1])

			c := wiretest.Converse(t, []wiretest.Exchange{look}, named,
				cardwire.WithProfile(func(p *cardwire.Profile) { p.TrustResponses = true }))
			page, err = c.ListCards(t.Context(), tc.filter)
			require.NoError(t, err)
			assert.Equal(t, "a", page.Cards[0].ID)
		})
	}
}

// A card's status can change while a page is read.
func TestASecondLookSettlesAContradiction(t *testing.T) {
	t.Parallel()
	const want = "GET /shop/api/v1/cards?status=1"
	contradicts := wiretest.Exchange{Want: want, Response: pageText(1, 1, `a,"status":1`, `b,"status":0`)}
	frozen := filter{Status: new(cardwire.CardFrozen)}
	second := wiretest.Success(`{"current_page":1,"last_page":1,"total":1,"data":[]}`)
	c := wiretest.Converse(t, []wiretest.Exchange{contradicts, {Want: want, Response: second}})
	page, err := c.ListCards(t.Context(), frozen)
	require.NoError(t, err)
	assert.Equal(t, &cardwire.CardPage{Total: 1, CurrentPage: 1, LastPage: 1, Cards: []cardwire.Card{}}, page, "alone")

	gone := wiretest.Exchange{Want: want, Status: 404, Response: `{"code":404,"msg":"gone","data":null}`}
	page, err = wiretest.Converse(t, []wiretest.Exchange{contradicts, gone}).ListCards(t.Context(), frozen)
	assert.Nil(t, page)
	require.ErrorIs(t, err, cardwire.ErrNotFound)
	require.NotErrorIs(t, err, cardwire.ErrParameterIgnored)

	c = wiretest.Converse(t, []wiretest.Exchange{contradicts})
	page, err = c.ListCards(t.Context(), frozen, cardwire.WithoutRetry())
	require.ErrorIs(t, err, cardwire.ErrParameterIgnored)
	assert.Equal(t, 1, page.CurrentPage)
}
