package cardwiretest

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// quirks returns the response with deviations that a client tolerates. The seed and
// the response itself choose them, so that equal responses stay equal whatever was
// requested before.
func quirks(seed int64, body []byte) []byte {
	sum := fnv.New64a()
	_, _ = sum.Write(body) // never fails; see its documentation
	q := quirk{rand.New(rand.NewPCG(uint64(seed), sum.Sum64()))}
	n := parseBytes(body)
	for i, name := range n.names {
		if name == "data" { // code is the one field that a client must read strictly
			q.field("data", n.items[i])
		}
	}
	q.object(n)
	return n.append(nil, true)
}

type quirk struct{ *rand.Rand }

func (q quirk) seldom() bool { return q.IntN(4) == 0 }

// Fields by the kind of their value, under the API's names.
var (
	// codes are strings that may arrive as numbers.
	codes = []string{
		"id", "trade_id", "card_bin", "card_no", "holder_phone", "holder_phone_code", "postalCode",
		"code", "bin", "merchant_order_no", "api_order_no",
	}
	// flags are the numbers 0 and 1 that may arrive as booleans.
	flags = []string{"physical", "avs", "3ds", "apple_pay", "google_wallet", "is_card_count_limited"}
	// opaque values have no documented fields, so a deviation in them would be
	// indistinguishable from a value.
	opaque = []string{"auth_fee_config", "refund_fee_config", "reversal_fee_config", "cashback_fee_config"}
	// droppable fields are left out when they are null.
	droppable = []string{"label", "remark", "destory_reason", "platform_waybill_number", "platform_waybill_company"}
)

// field changes the value of the field called name, and everything in it.
func (q quirk) field(name string, n *node) {
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

// within changes the fields of an object. The names in a table of fees are data:
// none can be added.
func (q quirk) within(name string, n *node) {
	for i, name := range n.names {
		q.field(name, n.items[i])
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

// empty replaces one form of an empty value by another.
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

// scalar writes a value as another JSON type.
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

// canonical reports whether a string is an integer in JSON's own notation.
func canonical(text string) bool {
	return numeric(text) == "" && (text == "0" || text[0] != '0')
}
