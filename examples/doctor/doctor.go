package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
)

// state is what is known of an assumption.
type state string

const (
	documented   state = "documented" // the API document says so, and the service keeps to it
	confirmed    state = "confirmed"
	contradicted state = "contradicted"
	unchecked    state = "cannot be checked"
)

// finding is a line of the report.
type finding struct {
	what    string
	assumed string
	state   state
	advice  string
}

// doctor examines a service.
type doctor struct {
	connect  func(...cardwire.Option) (*cardwire.Client, error)
	baseURL  string           // of the environment; "": the fake service's
	profile  cardwire.Profile // as far as it is known by now
	secrets  bool
	whole    *cardwire.CardPage // the first page of all cards
	drift    map[string][]string
	findings []finding
	settings []string // Go statements about a Profile p
	obstacle error    // why nothing could be examined; nil: it could
}

func (d *doctor) healthy() bool {
	return !slices.ContainsFunc(d.findings, func(f finding) bool { return f.state == contradicted })
}

func (d *doctor) find(what, assumed string, s state, advice string) {
	d.findings = append(d.findings, finding{what, assumed, s, advice})
}

// examine asks everything that can be asked without changing anything. It fails where
// nothing can be found out.
func (d *doctor) examine(ctx context.Context) error {
	// The doctor judges the responses itself.
	d.profile.TrustResponses = true
	d.drift = map[string][]string{}
	var response cardwire.Response
	whole, err := d.list(ctx, d.profile, cardwire.ListCardsParams{}, cardwire.WithResponse(&response))
	if d.findings = d.obstacles(err, response.RevealBody()); len(d.findings) > 0 {
		d.obstacle = err
		return nil
	}
	if err != nil {
		return fmt.Errorf("the cards cannot be listed: %w", err)
	}
	d.whole = whole
	for _, p := range parameters {
		if err := d.parameter(ctx, p); err != nil {
			return err
		}
	}
	if err := d.responses(ctx); err != nil {
		return err
	}
	for _, f := range beyondReading {
		d.find(f.what, f.assumed, unchecked, f.advice)
	}
	return nil
}

// obstacles returns what keeps every call from its response, if that is to be configured.
func (d *doctor) obstacles(err error, body []byte) (list []finding) {
	if err == nil {
		return nil
	}
	add := func(what, assumed, advice string) { list = append(list, finding{what, assumed, contradicted, advice}) }
	failure, _ := errors.AsType[*cardwire.Error](err)
	responded := failure != nil && failure.HTTPStatus != 0
	if d.baseURL != "" && responded && !strings.HasSuffix(strings.TrimSuffix(d.baseURL, "/"), "/api/v1") {
		add("base URL", "ends in /api/v1", "it does not: set CARDWIRE_BASE_URL to the service's address followed by /api/v1")
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		add("response", "JSON", "it is an HTML page: from a proxy? Set HTTPS_PROXY or NO_PROXY, or correct CARDWIRE_BASE_URL")
	}
	switch {
	case errors.Is(err, cardwire.ErrSetup):
		add("environment", "valid", "correct CARDWIRE_BASE_URL or CARDWIRE_API_KEY")
	case errors.Is(err, cardwire.ErrUnauthorized):
		add("API key", "accepted", "it is not: set CARDWIRE_API_KEY to a key from this service's console")
	case errors.Is(err, cardwire.ErrRedirect):
		add("response", "no redirect", "it is one: correct CARDWIRE_BASE_URL, or sign in at the proxy")
	case is[x509.UnknownAuthorityError](err):
		add("certificate", "trusted", "it is not: behind a proxy set SSL_CERT_FILE to a file with its CA, or RootCAs by cardwire.WithTransport")
	case is[x509.HostnameError](err):
		add("certificate", "of this host", "it is another host's: correct CARDWIRE_BASE_URL")
	case is[*tls.CertificateVerificationError](err):
		add("certificate", "valid", "it is not: check this machine's clock, then ask the service's support")
	case is[*net.DNSError](err):
		add("base URL", "a host", "its name cannot be looked up: correct CARDWIRE_BASE_URL, or check the network")
	}
	return list
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// beyondReading are the assumptions that no read can confirm or contradict.
var beyondReading = []finding{
	{what: "RetryAction", assumed: `"retry"`, advice: "ask for the value of type that retries"},
	{what: "RefusedCodes", assumed: "400 401 403 404 405 413 415 422 429", advice: "ask which codes guarantee that nothing happened"},
	{what: "RefusedStatuses", assumed: "the same numbers", advice: "ask which HTTP statuses guarantee it"},
	{what: "order IDs in GetCardByOrder", assumed: "as CardIDParam", advice: "try one: no field of the response contains it"},
	{what: "zone of all times", assumed: "none", advice: "ask for it, and use DateTime.In"},
}

// parameter is a query parameter whose name is undocumented.
type parameter struct {
	field  string
	name   func(*cardwire.Profile) *string
	likely []string
	// tells reports whether there are cards by which a response can tell.
	tells func(*doctor) bool
	// honored reports whether the service responds as only one that knows the name does.
	honored func(context.Context, *doctor, cardwire.Profile) (bool, error)
}

// parameters come in the order in which later ones need earlier ones.
var parameters = []parameter{
	{
		"LimitParam", func(p *cardwire.Profile) *string { return &p.LimitParam },
		[]string{"limit", "per_page", "page_size", "pageSize", "perPage", "size", "rows", "count"},
		twoCards, limitHonored,
	},
	{
		"PageParam", func(p *cardwire.Profile) *string { return &p.PageParam },
		[]string{"page", "page_no", "pageNo", "page_num", "pageNum", "current_page", "currentPage", "p"},
		twoPages, pageHonored,
	},
	{
		"StatusParam", func(p *cardwire.Profile) *string { return &p.StatusParam },
		[]string{"status", "card_status", "cardStatus", "state"},
		anyCard, statusHonored,
	},
	{
		"CardBINParam", func(p *cardwire.Profile) *string { return &p.CardBINParam },
		[]string{"card_bin", "cardBin", "bin", "card_bins", "binCode", "bin_code"},
		twoBINs, binHonored,
	},
	{
		"SubAccountParam", func(p *cardwire.Profile) *string { return &p.SubAccountParam },
		[]string{"sub_account_id", "subAccountId", "sub_account", "subAccount", "account_id", "accountId"},
		anyCard, narrows(func(p *cardwire.ListCardsParams, none bool) {
			if none {
				p.SubAccountID = "cardwire-doctor-no-such-account"
			}
		}),
	},
	{
		"CreatedFromParam", func(p *cardwire.Profile) *string { return &p.CreatedFromParam },
		[]string{"created_from", "create_time_start", "createTimeStart", "create_time_from", "start_time", "startTime", "start_date", "startDate", "create_start", "begin_time", "from"},
		anyCard, narrows(func(p *cardwire.ListCardsParams, none bool) { p.CreatedFrom = day(none) }),
	},
	{
		"CreatedToParam", func(p *cardwire.Profile) *string { return &p.CreatedToParam },
		[]string{"created_to", "create_time_end", "createTimeEnd", "create_time_to", "end_time", "endTime", "end_date", "endDate", "create_end", "to"},
		anyCard, narrows(func(p *cardwire.ListCardsParams, none bool) { p.CreatedTo = day(!none) }),
	},
	{
		"TransactedFromParam", func(p *cardwire.Profile) *string { return &p.TransactedFromParam },
		[]string{"transacted_from", "transaction_time_start", "transactionTimeStart", "trans_time_start", "transaction_start", "trade_time_start", "transaction_from"},
		anyCard, narrows(func(p *cardwire.ListCardsParams, none bool) { p.TransactedFrom = day(none) }),
	},
	{
		"TransactedToParam", func(p *cardwire.Profile) *string { return &p.TransactedToParam },
		[]string{"transacted_to", "transaction_time_end", "transactionTimeEnd", "trans_time_end", "transaction_end", "trade_time_end", "transaction_to"},
		anyCard, narrows(func(p *cardwire.ListCardsParams, none bool) { p.TransactedTo = day(!none) }),
	},
	{
		"CardIDParam", func(p *cardwire.Profile) *string { return &p.CardIDParam },
		[]string{"id", "card_id", "cardId", "cardID", "card"},
		anyCard, idHonored,
	},
}

// parameter tries the assumed name and then the likely ones, and keeps the first
// that is honored.
func (d *doctor) parameter(ctx context.Context, p parameter) error {
	assumed := *p.name(&d.profile)
	names := p.likely
	if assumed != "" {
		names = slices.Insert(slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == assumed }), 0, assumed)
	}
	if !p.tells(d) {
		d.find(p.field, quoted(assumed), unchecked, "there are too few cards, or they are too much alike, to tell")
		return nil
	}
	for _, name := range names {
		profile := d.profile
		*p.name(&profile) = name
		honored, err := p.honored(ctx, d, profile)
		if err := tried(err); err != nil {
			return fmt.Errorf("the check cannot continue: %w", err)
		}
		if honored {
			d.found(p, assumed, name)
			return nil
		}
	}
	advice := fmt.Sprintf("ask for the name: none of %d likely ones is honored", len(names))
	if assumed == "" {
		d.find(p.field, quoted(assumed), unchecked, advice)
		return nil
	}
	*p.name(&d.profile) = ""
	d.settings = append(d.settings, fmt.Sprintf("p.%s = \"\"", p.field))
	d.find(p.field, quoted(assumed), contradicted, advice)
	return nil
}

func (d *doctor) found(p parameter, assumed, name string) {
	if name == assumed {
		d.find(p.field, quoted(assumed), confirmed, "")
		return
	}
	*p.name(&d.profile) = name
	s := confirmed
	if assumed != "" {
		s = contradicted
	}
	d.find(p.field, quoted(assumed), s, fmt.Sprintf("set it to %q", name))
	d.settings = append(d.settings, fmt.Sprintf("p.%s = %q", p.field, name))
}

func quoted(name string) string {
	if name == "" {
		return "no name"
	}
	return fmt.Sprintf("%q", name)
}

// list asks for a page with the names of a profile.
func (d *doctor) list(ctx context.Context, profile cardwire.Profile, p cardwire.ListCardsParams, opts ...cardwire.CallOption) (*cardwire.CardPage, error) {
	client, err := d.client(profile)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	return client.ListCards(ctx, p, opts...)
}

// client returns one that keeps what drifts.
func (d *doctor) client(profile cardwire.Profile) (*cardwire.Client, error) {
	return d.connect(cardwire.WithProfile(func(p *cardwire.Profile) { *p = profile }), cardwire.WithObserver(cardwire.Observer{
		Drift: func(_ context.Context, c cardwire.CallInfo, drift cardwire.Drift) {
			seen := drift.Path + " (" + drift.Kind + ")"
			if !slices.Contains(d.drift[c.Op], seen) {
				d.drift[c.Op] = append(d.drift[c.Op], seen)
			}
		},
	}))
}

// tried returns nil for the refusal of a name, which is then the wrong one, and any
// other failure, which proves nothing about the name.
func tried(err error) error {
	if err == nil || errors.Is(err, cardwire.ErrRateLimited) || errors.Is(err, cardwire.ErrUnauthorized) {
		return err
	}
	if errors.Is(err, cardwire.ErrRefused) || errors.Is(err, cardwire.ErrInvalidParams) {
		return nil
	}
	return err
}

func anyCard(d *doctor) bool { return len(d.whole.Cards) > 0 }

func twoCards(d *doctor) bool { return len(d.whole.Cards) > 1 }

func twoPages(d *doctor) bool {
	return twoCards(d) && (d.profile.LimitParam != "" || d.whole.LastPage > 1)
}

func twoBINs(d *doctor) bool {
	return anyCard(d) && d.whole.Cards[0].CardBIN != "" && slices.ContainsFunc(d.whole.Cards, d.otherBIN)
}

func (d *doctor) otherBIN(c cardwire.Card) bool { return c.CardBIN != d.whole.Cards[0].CardBIN }

func limitHonored(ctx context.Context, d *doctor, profile cardwire.Profile) (bool, error) {
	page, err := d.list(ctx, profile, cardwire.ListCardsParams{Limit: 1})
	return err == nil && len(page.Cards) == 1, err
}

func pageHonored(ctx context.Context, d *doctor, profile cardwire.Profile) (bool, error) {
	params := cardwire.ListCardsParams{Page: 2}
	if profile.LimitParam != "" {
		params.Limit = 1
	}
	page, err := d.list(ctx, profile, params)
	return err == nil && page.CurrentPage == 2 && len(page.Cards) > 0 && page.Cards[0].ID != d.whole.Cards[0].ID, err
}

func statusHonored(ctx context.Context, d *doctor, profile cardwire.Profile) (bool, error) {
	other := cardwire.CardClosed
	if d.whole.Cards[0].Status == other {
		other = cardwire.CardActive
	}
	page, err := d.list(ctx, profile, cardwire.ListCardsParams{Status: &other})
	another := func(c cardwire.Card) bool { return c.Status != other }
	return err == nil && page.Total < d.whole.Total && !slices.ContainsFunc(page.Cards, another), err
}

func binHonored(ctx context.Context, d *doctor, profile cardwire.Profile) (bool, error) {
	page, err := d.list(ctx, profile, cardwire.ListCardsParams{CardBIN: d.whole.Cards[0].CardBIN})
	return err == nil && page.Total < d.whole.Total && !slices.ContainsFunc(page.Cards, d.otherBIN), err
}

// narrows tries a filter whose effect is visible in no card: one that lets none
// through must give none, and one that lets all through must not.
func narrows(
	set func(p *cardwire.ListCardsParams, none bool),
) func(context.Context, *doctor, cardwire.Profile) (bool, error) {
	return func(ctx context.Context, d *doctor, profile cardwire.Profile) (bool, error) {
		for _, none := range []bool{true, false} {
			var p cardwire.ListCardsParams
			set(&p, none)
			page, err := d.list(ctx, profile, p)
			if err != nil || (page.Total == 0) != none {
				return false, err
			}
		}
		return true, nil
	}
}

// day is one after all cards, or one before.
func day(future bool) cardwire.Date {
	if future {
		return cardwire.DateOf(time.Now().AddDate(10, 0, 0))
	}
	return cardwire.Date{Year: 1971, Month: time.January, Day: 1}
}

func idHonored(ctx context.Context, d *doctor, profile cardwire.Profile) (bool, error) {
	client, err := d.client(profile)
	if err != nil {
		return false, err
	}
	defer client.CloseIdleConnections()
	id := d.whole.Cards[len(d.whole.Cards)-1].ID
	card, err := client.GetCard(ctx, id)
	return err == nil && card.ID == id, err
}

// responses compares the response to each read with the API document.
func (d *doctor) responses(ctx context.Context) error {
	client, err := d.client(d.profile)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for _, r := range d.reads(ctx, client) {
		wrong, err := r.call()
		drift := d.drift[r.name]
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, cardwire.ErrUnreadable):
			d.find("response to "+r.name, "the API's", contradicted, "tell the client's maintainers: "+err.Error())
		case err != nil:
			d.find("response to "+r.name, "the API's", unchecked, err.Error())
		case wrong != "":
			d.find("response to "+r.name, "the API's", contradicted, "ask the service's support: "+wrong)
		case len(drift) > 0:
			d.find("response to "+r.name, "the API's", contradicted, "tolerated: "+strings.Join(drift, ", "))
		default:
			d.find("response to "+r.name, "the API's", documented, "")
		}
	}
	return nil
}

// read is a call, which returns what the API document rules out and the client tolerates.
type read struct {
	name string
	call func() (wrong string, err error)
}

func (d *doctor) reads(ctx context.Context, c *cardwire.Client) []read {
	list := []read{
		{"ListCards", func() (string, error) {
			page, err := c.ListCards(ctx, cardwire.ListCardsParams{})
			if err != nil {
				return "", err
			}
			return each(page.Cards, nil)(wrongListed)
		}},
		{"ListBINs", func() (string, error) { return each(c.ListBINs(ctx))(wrongBIN) }},
		{"ListBINsUnderMaintenance", func() (string, error) {
			return each(c.ListBINsUnderMaintenance(ctx))(wrongDigits)
		}},
		{"CardCapacity", func() (string, error) { _, err := c.CardCapacity(ctx); return "", err }},
		{"ListRemittanceStates", func() (string, error) { return each(c.ListRemittanceStates(ctx))(wrongState) }},
		{"ListRemittanceCurrencies", func() (string, error) {
			return each(c.ListRemittanceCurrencies(ctx))(wrongCurrency)
		}},
	}
	if len(d.whole.Cards) == 0 {
		return list
	}
	listed := &d.whole.Cards[0]
	list = append(list, read{"GetCard", func() (string, error) {
		card, err := c.GetCard(ctx, listed.ID)
		if err != nil {
			return "", err
		}
		return wrongSingle(card, listed), nil
	}})
	if d.secrets {
		list = append(list, read{"GetCardSecrets", func() (string, error) {
			secrets, err := c.GetCardSecrets(ctx, listed.ID)
			if err != nil {
				return "", err
			}
			return wrongSecrets(secrets, listed), nil
		}})
	}
	return list
}
