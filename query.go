package cardwire

import (
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// query gathers query parameters by names that may not be known.
type query struct {
	fields wire.Fields
	err    error
}

func (q *query) add(param, field, value string) {
	if value != "" && param == "" && q.err == nil {
		q.err = badSetup("the service's name for a parameter is not known: set Profile." + field)
	}
	q.fields.Add(param, value)
}

func (c *Client) listQuery(p ListCardsParams) (string, error) {
	var q query
	names := c.profile()
	q.add(names.LimitParam, "LimitParam", positive(p.Limit))
	q.add(names.PageParam, "PageParam", positive(p.Page))
	q.add(names.SubAccountParam, "SubAccountParam", p.SubAccountID)
	if p.Status != nil {
		q.add(names.StatusParam, "StatusParam", strconv.Itoa(int(*p.Status)))
	}
	q.add(names.CardBINParam, "CardBINParam", p.CardBIN)
	q.add(names.CreatedFromParam, "CreatedFromParam", p.CreatedFrom.String())
	q.add(names.CreatedToParam, "CreatedToParam", p.CreatedTo.String())
	q.add(names.TransactedFromParam, "TransactedFromParam", p.TransactedFrom.String())
	q.add(names.TransactedToParam, "TransactedToParam", p.TransactedTo.String())
	if err := p.valid(); err != nil {
		return "", err
	}
	return q.fields.Form(), q.err
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (p *ListCardsParams) valid() error {
	switch {
	case p.Limit < 0:
		return invalid("Limit is negative")
	case p.Page < 0:
		return invalid("Page is negative")
	case p.Status != nil && (*p.Status < CardLocked || *p.Status > CardSuspended):
		return invalid("Status is none of the interface's six")
	case before(p.CreatedTo, p.CreatedFrom):
		return invalid("CreatedTo is before CreatedFrom")
	case before(p.TransactedTo, p.TransactedFrom):
		return invalid("TransactedTo is before TransactedFrom")
	}
	var sub error
	if p.SubAccountID != "" {
		sub = check.ID("SubAccountID", p.SubAccountID)
	}
	return checked(
		sub, check.Digits("CardBIN", p.CardBIN),
		checkDate("CreatedFrom", p.CreatedFrom), checkDate("CreatedTo", p.CreatedTo),
		checkDate("TransactedFrom", p.TransactedFrom), checkDate("TransactedTo", p.TransactedTo),
	)
}

// before says whether a is before b; an absent day is before nothing.
func before(a, b Date) bool {
	return !a.IsZero() && !b.IsZero() && a.String() < b.String()
}

// verifyPage says which parameter the page shows to have been ignored.
func (c *Client) verifyPage(p ListCardsParams, page *CardPage) error {
	if c.profile().TrustReplies {
		return nil
	}
	switch {
	case p.Page >= 1 && p.Page <= page.LastPage && page.CurrentPage != p.Page:
		return ignored("another page was returned", "PageParam")
	case p.Limit > 0 && len(page.Cards) > p.Limit:
		return ignored("more cards than Limit were returned", "LimitParam")
	}
	for i := range page.Cards {
		if field := p.contradicted(&page.Cards[i]); field != "" {
			return ignored("a card outside the filter was returned", field)
		}
	}
	return nil
}

// endAfterLast empties a page beyond the last one for which the service sent
// another page's cards, as one that clamps page numbers does.
func (v *CardPage) endAfterLast(asked int) {
	if asked > v.LastPage && asked != v.CurrentPage {
		v.Cards = []Card{}
	}
}

// zoneSlack is how far a creation time may lie outside the days asked for: no
// zone is named, and zones lie up to 26 hours apart.
const zoneSlack = 26 * time.Hour

// contradicted returns the Profile field of a filter that the card fails.
func (p *ListCardsParams) contradicted(card *Card) string {
	created := card.CreateTime.In(time.UTC)
	switch {
	case p.Status != nil && card.Status != *p.Status:
		return "StatusParam"
	case !strings.HasPrefix(card.CardBIN, p.CardBIN) && !strings.HasPrefix(p.CardBIN, card.CardBIN):
		return "CardBINParam"
	case created.IsZero():
		return ""
	case !p.CreatedFrom.IsZero() && created.Before(DateTime{Date: p.CreatedFrom}.In(time.UTC).Add(-zoneSlack)):
		return "CreatedFromParam"
	case !p.CreatedTo.IsZero() && created.After(DateTime{Date: p.CreatedTo}.In(time.UTC).Add(24*time.Hour+zoneSlack)):
		return "CreatedToParam"
	}
	return ""
}
