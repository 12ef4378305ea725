package cardwiretest

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// quirks returns the reply with deviations that a client tolerates. They are
// chosen by the seed and the reply itself, so that equal replies stay equal
// whatever was asked before.
func quirks(seed int64, reply []byte) []byte {
	sum := fnv.New64a()
	_, _ = sum.Write(reply) // never fails; see its documentation
	q := quirk{rand.New(rand.NewPCG(uint64(seed), sum.Sum64()))}
	n := parseText(reply)
	for i, name := range n.names {
		if name == "data" { // code is the one member that no client may be lax about
			q.member("data", n.items[i])
		}
	}
	q.object(n)
	return n.append(nil, true)
}

type quirk struct{ *rand.Rand }

func (q quirk) seldom() bool { return q.IntN(4) == 0 }

// Members by the kind of their value, under the interface's names.
var (
	// codes are texts that may come as numbers.
	codes = []string{
		"id", "trade_id", "card_bin", "card_no", "holder_phone", "holder_phone_code", "postalCode",
		"code", "bin", "merchant_order_no", "api_order_no",
	}
	// flags are the numbers 0 and 1 that may come as booleans.
	flags = []string{"physical", "avs", "3ds", "apple_pay", "google_wallet", "is_card_count_limited"}
	// opaque values have no members that the interface shows, so nothing in them
	// can be told from what was meant.
	opaque = []string{"auth_fee_config", "refund_fee_config", "reversal_fee_config", "cashback_fee_config"}
	// droppable members are left out when they are null.
	droppable = []string{"label", "remark", "destory_reason", "platform_waybill_number", "platform_waybill_company"}
)

// member changes the value of the member called name, and all within it.
func (q quirk) member(name string, n *node) {
	switch {
	case slices.Contains(opaque, name):
		if n.text == "null" && q.seldom() {
			*n = node{kind: '['}
		}
	case len(n.items) == 0 && (n.kind == '[' || n.kind == '{'):
		q.empty(name, n)
	case n.kind == '{':
		q.within(name, n)
	case n.kind == '[':
		for _, item := range n.items {
			q.element(name, item)
		}
	case q.seldom():
		q.scalar(name, n)
	}
}

// element changes an element of the list called name.
func (q quirk) element(name string, n *node) {
	switch {
	case n.kind == '{':
		q.within(name, n)
	case name == "data" && q.seldom() && canonical(n.text): // BINs under maintenance
		n.kind = 'x'
	}
}

// within changes the members of an object. The names in a table of fees are
// data, to which none can be added.
func (q quirk) within(name string, n *node) {
	for i, name := range n.names {
		q.member(name, n.items[i])
	}
	if name == "foreign_fee_config" {
		q.shuffle(n)
		return
	}
	q.object(n)
}

func (q quirk) object(n *node) {
	for i := len(n.names) - 1; i >= 0; i-- {
		if n.items[i].text == "null" && slices.Contains(droppable, n.names[i]) && q.seldom() {
			n.delete(i)
		}
	}
	if q.seldom() {
		n.names = append(n.names, "_extra")
		n.items = append(n.items, &node{kind: '[', items: []*node{{kind: '"', text: "ü/😀"}, {kind: 'x', text: "1.5e3"}}})
	}
	q.shuffle(n)
}

func (q quirk) shuffle(n *node) {
	q.Shuffle(len(n.names), func(i, j int) {
		n.names[i], n.names[j] = n.names[j], n.names[i]
		n.items[i], n.items[j] = n.items[j], n.items[i]
	})
}

// empty swaps the ways in which nothing is written.
func (q quirk) empty(name string, n *node) {
	switch {
	case name == "holder_address" && q.seldom():
		*n = node{kind: '{'}
	case name == "holder_address" && q.seldom():
		*n = node{kind: 'x', text: "null"}
	case name == "foreign_fee_config" && q.seldom():
		*n = node{kind: '['}
	}
}

// scalar writes a value as another kind.
func (q quirk) scalar(name string, n *node) {
	switch {
	case n.text == "null" && n.kind == 'x':
	case n.kind == '"' && (name == "available" || name == "fee"),
		n.kind == '"' && slices.Contains(codes, name) && canonical(n.text):
		n.kind = 'x'
	case n.kind == '"':
	case n.text == "true" || n.text == "false":
		n.text = map[string]string{"true": "1", "false": "0"}[n.text]
		n.kind = `x"`[q.IntN(2)]
	case slices.Contains(flags, name) && q.seldom():
		n.text = strconv.FormatBool(n.text != "0")
	case !strings.ContainsAny(n.text, "eE"):
		n.kind = '"'
	}
}

// canonical says whether a text is an integer just as JSON writes it.
func canonical(text string) bool {
	return numeric(text) == "" && (text == "0" || text[0] != '0')
}
