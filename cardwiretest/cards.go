package cardwiretest

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cardwire/cardwire-go"
)

// inList returns a card as List cards sends it.
func inList(c *node) *node {
	fields := data().get("card")
	return c.only(fields.get("always"), fields.get("listed"))
}

const (
	maskedCVV    = "***"
	maskedExpiry = "**/****"
)

// single returns a card as Get card sends it.
func single(c *node) *node {
	fields := data().get("card")
	out := c.only(fields.get("always"), fields.get("single"))
	out.set("card_no", text(maskedNumber(c.str("card_no"))))
	out.set("cvv", text(maskedCVV))
	out.set("expire_date", text(maskedExpiry))
	return out
}

// maskedNumber keeps the first 6 digits and the last 4.
func maskedNumber(n string) string {
	if len(n) < 10 {
		return strings.Repeat("*", len(n))
	}
	return n[:6] + strings.Repeat("*", len(n)-10) + n[len(n)-4:]
}

// listParams are the parameters of List cards under the names of the profile.
func listParams(s *Service) []param {
	p := &s.profile
	return []param{
		{name: p.LimitParam, check: count},
		{name: p.PageParam, check: count},
		{name: p.SubAccountParam, check: notEmpty},
		{name: p.StatusParam, check: cardStatus},
		{name: p.CardBINParam, check: numeric},
		{name: p.CreatedFromParam, check: date},
		{name: p.CreatedToParam, check: date},
		{name: p.TransactedFromParam, check: date},
		{name: p.TransactedToParam, check: date},
	}
}

// admits reports whether the filters of a request admit a card.
func (s *Service) admits(r *request, c *node) bool {
	p, v := &s.profile, r.values
	is := func(param, field string) bool { return v[param] == "" || v[param] == c.str(field) }
	usedFrom, usedTo := v[p.TransactedFromParam], v[p.TransactedToParam]
	used := func(t *node) bool { return within(t.text, usedFrom, usedTo) }
	return is(p.SubAccountParam, "sub_account_id") && is(p.StatusParam, "status") && is(p.CardBINParam, "card_bin") &&
		within(c.str("create_time"), v[p.CreatedFromParam], v[p.CreatedToParam]) &&
		(usedFrom+usedTo == "" || slices.ContainsFunc(c.get("transaction_times").items, used))
}

// within compares dates as strings, which sort like the dates.
func within(t, from, to string) bool {
	day := t[:min(len(t), len(dateLayout))]
	return (from == "" || day >= from) && (to == "" || day <= to)
}

func listCards(s *Service, r *request) result {
	var cards []*node
	for _, c := range s.state.cards {
		if s.admits(r, c) {
			cards = append(cards, inList(c))
		}
	}
	number := func(param, absent string) int {
		n, _ := strconv.Atoi(cmp.Or(r.values[param], absent)) // it has been checked
		return n
	}
	size, page := min(number(s.profile.LimitParam, "20"), maxPageSize), number(s.profile.PageParam, "1")
	start := min((page-1)*size, len(cards))
	return success(fmt.Appendf(nil, `{"total":%d,"per_page":%d,"current_page":%d,"last_page":%d,"data":%s}`,
		len(cards), size, page, max((len(cards)+size-1)/size, 1),
		list(cards[start:min(start+size, len(cards))]...).json()))
}

func infoParams(s *Service) []param {
	return []param{{name: s.profile.CardIDParam, required: true, check: notEmpty}}
}

func getCard(s *Service, r *request) result {
	id := r.values[s.profile.CardIDParam]
	c := cmp.Or(find(s.state.cards, "id", id), find(s.state.cards, "order_id", id))
	if c == nil {
		return *refusal(http.StatusNotFound, "the parameter "+s.profile.CardIDParam+" names no card and no order")
	}
	return success(single(c).json())
}

var idFields = []param{{name: "cardId", required: true, check: notEmpty}}

const noCard = "the field cardId names no card"

func getSecrets(s *Service, r *request) result {
	c := find(s.state.cards, "id", r.values["cardId"])
	if c == nil {
		return *refusal(http.StatusNotFound, noCard)
	}
	pan := sha256.Sum256([]byte(c.str("id"))) // no cipher: the service's is undocumented
	return success(fmt.Appendf(nil, `{"card_no":%s,"cvv":"%s","expire_date":"%s","pan":"%s"}`,
		quoted(maskedNumber(c.str("card_no"))), maskedCVV, maskedExpiry, base64.StdEncoding.EncodeToString(pan[:])))
}

var freezeFields = []param{
	{name: "cardId", required: true, check: notEmpty},
	{name: "clientTransactionId", check: uuidString, reference: true},
}

func freezeCard(s *Service, r *request) result {
	c := find(s.state.cards, "id", r.values["cardId"])
	switch {
	case c == nil:
		return *refusal(http.StatusNotFound, noCard)
	case c.str("status") == "2" || c.str("status") == "3":
		return *refusal(http.StatusUnprocessableEntity, "the field cardId names a card that is closed or closing")
	}
	id := s.state.uuid("operation", s.state.executed)
	done := s.executed(r, Execution{ID: id, CardID: c.str("id"), Action: "freeze"}, success(quoted(id)))
	c.set("status", &node{kind: 'x', text: "1"})
	c.set("update_time", s.state.now())
	if r.reference() != "" {
		s.state.operations[strings.ToLower(r.reference())] = &cardOperation{kind: "freeze"}
	}
	return done
}

var adjustFields = []param{
	{name: "client_transaction_id", required: true, check: uuidString, reference: true},
	{name: "type", required: true, check: notEmpty},
}

// adjustable are the kinds of operations that can be canceled or retried.
var adjustable = []string{"transfer_in", "transfer_out", "freeze", "unfreeze", "close"}

func adjust(s *Service, r *request) result {
	action := r.values["type"]
	if action != "cancel" && r.op != cardwire.OpRetryOperation {
		return *refusal(http.StatusUnprocessableEntity, "the field type must be cancel or the value that retries")
	}
	o := s.state.operations[strings.ToLower(r.reference())]
	if o == nil || !o.failed || !slices.Contains(adjustable, o.kind) {
		return *refusal(http.StatusUnprocessableEntity,
			"the field client_transaction_id is invalid: it names no failed operation of a kind that can be adjusted")
	}
	o.failed = false
	return s.executed(r, Execution{Action: action, Kind: o.kind}, success([]byte("true")))
}
