package cardwire

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
