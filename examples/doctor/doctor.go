package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
)

// What is known of an assumption.
const (
	confirmed    = "confirmed"
	contradicted = "contradicted"
	unchecked    = "cannot be checked"
)

// finding is a line of the report.
type finding struct{ what, assumed, state, advice string }

// doctor examines a service.
type doctor struct {
	profile  cardwire.Profile // as far as it is known by now
	all      *cardwire.CardPage
	drift    map[cardwire.Op][]string // by operation
	findings []finding
	settings []string // Go statements about a Profile p
}

// examine checks everything that can be checked without changing anything. It fails if nothing
// can be found out.
func (d *doctor) examine(ctx context.Context, secrets bool) (err error) {
	d.profile.TrustResponses = true // the doctor judges them itself
	if d.all, err = d.list(ctx, cardwire.ListCardsParams{}); err != nil {
		base := strings.TrimSuffix(os.Getenv("CARDWIRE_BASE_URL"), "/")
		if base != "" && !strings.HasSuffix(base, "/api/v1") {
			err = fmt.Errorf("%w; CARDWIRE_BASE_URL does not end in /api/v1", err) // whatever responds there
		}
		return fmt.Errorf("nothing can be checked before the cards can be listed: %w", err)
	}
	for _, p := range d.parameters() {
		if err := d.parameter(ctx, p); err != nil {
			return fmt.Errorf("the check cannot continue: %w", err)
		}
	}
	return d.responses(ctx, secrets)
}

// parameter is a query parameter whose name is undocumented.
type parameter struct {
	field  string
	name   *string // in the doctor's profile
	likely string
	// honored reports whether the service responds as only one that knows the name does. It
	// fails with errAlike if the cards are such that no response can tell.
	honored func(context.Context) (bool, error)
}

var errAlike = errors.New("there are too few cards, or they are too much alike, to tell")

// parameters are in an order in which each needs only earlier ones.
func (d *doctor) parameters() []parameter {
	type cards = cardwire.ListCardsParams
	p := &d.profile
	past := cardwire.Date{Year: 1971, Month: time.January, Day: 1} // before all cards
	future := cardwire.DateOf(time.Now().AddDate(10, 0, 0))
	return []parameter{
		{"LimitParam", &p.LimitParam, "limit per_page page_size pageSize perPage size rows count", d.limitHonored},
		{"PageParam", &p.PageParam, "page page_no pageNo page_num pageNum current_page currentPage p", d.pageHonored},
		{"StatusParam", &p.StatusParam, "status card_status cardStatus state", d.statusHonored},
		{"CardBINParam", &p.CardBINParam, "card_bin cardBin bin card_bins binCode bin_code", d.binHonored},
		{
			"SubAccountParam", &p.SubAccountParam,
			"sub_account_id subAccountId sub_account subAccount account_id accountId",
			d.narrows(cards{SubAccountID: "cardwire-doctor-no-such-account"}, cards{}),
		},
		{
			"CreatedFromParam", &p.CreatedFromParam, "created_from create_time_start createTimeStart " +
				"create_time_from start_time startTime start_date startDate create_start begin_time from",
			d.narrows(cards{CreatedFrom: future}, cards{CreatedFrom: past}),
		},
		{
			"CreatedToParam", &p.CreatedToParam, "created_to create_time_end createTimeEnd create_time_to " +
				"end_time endTime end_date endDate create_end to",
			d.narrows(cards{CreatedTo: past}, cards{CreatedTo: future}),
		},
		{
			"TransactedFromParam", &p.TransactedFromParam, "transacted_from transaction_time_start " +
				"transactionTimeStart trans_time_start transaction_start trade_time_start transaction_from",
			d.narrows(cards{TransactedFrom: future}, cards{TransactedFrom: past}),
		},
		{
			"TransactedToParam", &p.TransactedToParam, "transacted_to transaction_time_end " +
				"transactionTimeEnd trans_time_end transaction_end trade_time_end transaction_to",
			d.narrows(cards{TransactedTo: past}, cards{TransactedTo: future}),
		},
		{"CardIDParam", &p.CardIDParam, "id card_id cardId cardID card", d.idHonored},
	}
}

// parameter tries the likely names, of which the assumed one is the first, and keeps the
// first that is honored.
func (d *doctor) parameter(ctx context.Context, p parameter) error {
	assumed, names := *p.name, strings.Fields(p.likely)
	honored, err := false, errAlike
	for _, *p.name = range names {
		if len(d.all.Cards) > 0 {
			honored, err = p.honored(ctx)
		}
		if honored || err != nil && !isRefusal(err) {
			break
		}
	}
	s, advice := contradicted, fmt.Sprintf("set it to %q", *p.name)
	if assumed == "" {
		s = confirmed
	}
	switch {
	case honored && *p.name == assumed:
		s, advice = confirmed, ""
	case honored:
	case errors.Is(err, errAlike):
		*p.name = assumed
		s, advice = unchecked, err.Error()
	case err != nil && !isRefusal(err):
		return err
	default:
		advice = fmt.Sprintf("ask for the name: none of %d likely ones is honored", len(names))
		if *p.name = ""; assumed == "" {
			s = unchecked
		}
	}
	d.findings = append(d.findings, finding{p.field, cmp.Or(assumed, "no name"), s, advice})
	if *p.name != assumed {
		d.settings = append(d.settings, fmt.Sprintf("p.%s = %q", p.field, *p.name))
	}
	return nil
}

// isRefusal reports whether err is the refusal of a name, which is then wrong. Any other
// failure proves nothing about the name.
func isRefusal(err error) bool {
	e, failed := errors.AsType[*cardwire.Error](err)
	return failed && !errors.Is(err, cardwire.ErrRateLimited) && !errors.Is(err, cardwire.ErrUnauthorized) &&
		(e.Outcome == cardwire.OutcomeRefused || errors.Is(err, cardwire.ErrInvalidParams))
}

// client returns one with the names of the profile, which keeps what drifts.
func (d *doctor) client() (*cardwire.Client, error) {
	profile := d.profile
	drifts := func(_ context.Context, c cardwire.CallInfo, drift cardwire.Drift) {
		if seen := drift.Path + " (" + drift.Kind + ")"; !slices.Contains(d.drift[c.Op], seen) {
			d.drift[c.Op] = append(d.drift[c.Op], seen)
		}
	}
	return connect(cardwire.WithProfile(func(p *cardwire.Profile) { *p = profile }),
		cardwire.WithObserver(cardwire.Observer{Drift: drifts}))
}

// list asks for a page.
func (d *doctor) list(ctx context.Context, p cardwire.ListCardsParams) (*cardwire.CardPage, error) {
	client, err := d.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	return client.ListCards(ctx, p)
}

func (d *doctor) limitHonored(ctx context.Context) (bool, error) {
	if len(d.all.Cards) < 2 {
		return false, errAlike
	}
	page, err := d.list(ctx, cardwire.ListCardsParams{PageSize: 1})
	return err == nil && len(page.Cards) == 1, err
}

func (d *doctor) pageHonored(ctx context.Context) (bool, error) {
	params := cardwire.ListCardsParams{Page: 2}
	if d.profile.LimitParam != "" {
		params.PageSize = 1
	}
	if len(d.all.Cards) < 2 || params.PageSize == 0 && d.all.LastPage < 2 {
		return false, errAlike
	}
	page, err := d.list(ctx, params)
	return err == nil && page.CurrentPage == 2 && len(page.Cards) > 0 && page.Cards[0].ID != d.all.Cards[0].ID, err
}

func (d *doctor) statusHonored(ctx context.Context) (bool, error) {
	status := cardwire.CardClosed
	if d.all.Cards[0].Status == status {
		status = cardwire.CardActive
	}
	page, err := d.list(ctx, cardwire.ListCardsParams{Status: &status})
	another := func(c cardwire.Card) bool { return c.Status != status }
	return err == nil && page.Total < d.all.Total && !slices.ContainsFunc(page.Cards, another), err
}

func (d *doctor) binHonored(ctx context.Context) (bool, error) {
	another := func(c cardwire.Card) bool { return c.CardBIN != d.all.Cards[0].CardBIN }
	if !slices.ContainsFunc(d.all.Cards, another) || d.all.Cards[0].CardBIN == "" {
		return false, errAlike
	}
	page, err := d.list(ctx, cardwire.ListCardsParams{CardBIN: d.all.Cards[0].CardBIN})
	return err == nil && page.Total < d.all.Total && !slices.ContainsFunc(page.Cards, another), err
}

// narrows tries a filter whose effect no card shows: with a value that matches no card there
// must be none, and with one that matches all there must be some.
func (d *doctor) narrows(none, all cardwire.ListCardsParams) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		empty, err := d.list(ctx, none)
		if err != nil || empty.Total != 0 {
			return false, err
		}
		page, err := d.list(ctx, all)
		return err == nil && page.Total != 0, err
	}
}

func (d *doctor) idHonored(ctx context.Context) (bool, error) {
	client, err := d.client()
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	id := d.all.Cards[len(d.all.Cards)-1].ID
	card, err := client.GetCard(ctx, id)
	return err == nil && card.ID == id, err
}
