package cardwiretest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/canary"
)

// epoch is when the service's time begins. Only executions advance it, by a second
// each, so that responses do not depend on the date.
var epoch = time.Date(2025, time.March, 3, 9, 30, 0, 0, time.UTC)

const (
	dateTimeLayout = "2006-01-02 15:04:05"
	dateLayout     = "2006-01-02"
)

// state is what the service has.
type state struct {
	seed       int64
	clock      time.Time
	bins       []*node
	cards      []*node                   // each with all fields, also those that are not sent
	currencies []*node                   // never changed
	operations map[string]*cardOperation // by client transaction id in lower case
	responses  map[string]result         // first responses, by operation and reference
	executed   int
}

// cardOperation is an operation on a card, which may have failed.
type cardOperation struct {
	kind   string
	failed bool
}

func newState(seed int64, cards int) state {
	w := state{
		seed: seed, clock: epoch, bins: seeded("bins"), currencies: seeded("currencies"),
		responses: map[string]result{},
	}
	for i := range cards {
		w.seedCard(i)
	}
	w.operations = map[string]*cardOperation{
		w.uuid("failed", 0): {kind: "transfer_in", failed: true},
		w.uuid("failed", 1): {kind: "close", failed: true},
	}
	return w
}

// seeded returns a list of the data, each element with all fields.
func seeded(name string) (all []*node) {
	items := data().get(name).items
	for _, item := range items {
		all = append(all, items[0].with(item))
	}
	return all
}

// seedCard adds the ith card, with the values that differ from card to card.
func (w *state) seedCard(i int) {
	cards := data().get("cards").items
	fields := cards[i%len(cards)]
	c := w.setCard(fields)
	created := epoch.AddDate(0, 0, -400).Add(time.Duration(i) * 26011 * time.Second % (399 * 24 * time.Hour))
	after := func(days int) *node { return text(created.AddDate(0, 0, days).Format(dateTimeLayout)) }
	c.set("create_time", after(0))
	c.set("update_time", after(9))
	c.set("transaction_times", list(after(2)))
	c.set("nickname", text(fmt.Sprintf("card %d", i+1)))
	if fields.get("available") == nil {
		h := w.hash("available", i)
		n := binary.BigEndian.Uint32(h[:]) % 90_000_000
		c.set("available", text(fmt.Sprintf("%d.%03d", n/1000, n%1000)))
	}
}

// hash derives bytes from the seed, independent of the order of executions.
func (w *state) hash(kind string, n int) [sha256.Size]byte {
	b := binary.BigEndian.AppendUint64([]byte(kind), uint64(w.seed))
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(n)))
}

func (w *state) uuid(kind string, n int) string {
	h := w.hash(kind, n)
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	s := hex.EncodeToString(h[:16])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

func (w *state) token(kind string, n, length int) string {
	h := w.hash(kind, n)
	return hex.EncodeToString(h[:])[:length]
}

// cardID counts from a number that the seed chooses. Ten digits are too few to look
// like a card number.
func (w *state) cardID(n int) string {
	h := w.hash("card", 0)
	first := 2_000_000_000 + binary.BigEndian.Uint64(h[:])%6_000_000_000
	return strconv.FormatUint(first+uint64(n), 10)
}

// canaryNumber returns the nth canary for a BIN: the BIN, nines up to eight digits, and
// the digits that mark a canary.
func canaryNumber(bin string, n int) string {
	digits := canary.Number((bin + "99999999")[:8], n)
	if !canary.IsNumber(digits) { // an unusual BIN was added
		known.AddNumber(digits)
	}
	return digits
}

// canaryCVVs are few and unusual, so that NoLeaks can recognize them.
var canaryCVVs = []string{"907", "917", "927", "937", "947", "957", "967", "987"}

// tick advances the service's time.
func (w *state) tick() {
	w.executed++
	w.clock = w.clock.Add(time.Second)
}

func (w *state) now() *node { return text(w.clock.Format(dateTimeLayout)) }

// find returns the first object whose field is v; nil: there is none.
func find(objects []*node, field, v string) *node {
	i := slices.IndexFunc(objects, func(o *node) bool { return o.str(field) == v })
	if i < 0 {
		return nil
	}
	return objects[i]
}

// SetCard changes the card that has the given id, or adds one. fields is a JSON object:
// names of the API, and the values to send, even values that the API does not have.
//
//	service.SetCard(`{"id":"card-1","status":1,"available":"-12.500"}`)
//
// Omitted fields keep their value. Those of a new card are empty or 0, except that it gets an
// id, a trade_id, a BIN, a canary as card_no, a cvv and times. Do not use a real card_no;
// NoLeaks searches for the one you set.
//
// Three fields are never sent: order_id, by which Get card also finds the card, trade_id by
// default; and for the filters of List cards sub_account_id and transaction_times, a list
// of times like create_time.
//
// SetCard panics if fields is not an object or has a field that no card has.
func (s *Service) SetCard(fields string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.setCard(object(fields))
}

// object parses the JSON object of a test.
func object(fields string) *node {
	n, err := parse([]byte(fields))
	if err != nil || n.kind != '{' {
		panic("cardwiretest: the fields are not a JSON object")
	}
	return n
}

func (w *state) setCard(fields *node) *node {
	known.AddNumber(fields.str("card_no"))
	known.AddCVV(fields.str("cvv"))
	c := find(w.cards, "id", fields.str("id"))
	if c == nil {
		c = w.newCard(fields).with(fields)
		w.cards = append(w.cards, c)
		return c
	}
	*c = *c.with(fields)
	return c
}

// newCard returns a card with the fields that every card needs.
func (w *state) newCard(fields *node) *node {
	c, n := &node{kind: '{'}, len(w.cards)
	for _, part := range data().get("card").items {
		c.names = append(c.names, part.names...)
		c.items = append(c.items, part.items...)
	}
	bin := cmp.Or(find(w.bins, "id", fields.str("bin_id")), find(w.bins, "bin", fields.str("card_bin")), w.bins[0])
	c.set("id", text(w.cardID(n)))
	c.set("trade_id", text(w.uuid("trade", n)))
	c.set("order_id", cmp.Or(fields.get("trade_id"), c.get("trade_id")))
	c.set("bin_id", bin.get("id"))
	c.set("card_bin", bin.get("bin"))
	c.set("card_no", text(canaryNumber(cmp.Or(fields.str("card_bin"), bin.str("bin")), n)))
	c.set("cvv", text(canaryCVVs[n%len(canaryCVVs)]))
	created := cmp.Or(fields.get("create_time"), w.now())
	c.set("create_time", created)
	c.set("update_time", created)
	return c
}

// SetBIN changes the BIN that has the given id, or adds one that is like the first. fields
// is a JSON object as for SetCard, and SetBIN panics like it.
func (s *Service) SetBIN(fields string) {
	given := object(fields)
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.state
	if b := find(w.bins, "id", given.str("id")); b != nil {
		*b = *b.with(given)
		return
	}
	n := 1001 + len(w.bins)
	added := w.bins[0].with(object(fmt.Sprintf(`{"id":%d,"bin":"%d"}`, n, 440_000+n)))
	w.bins = append(w.bins, added.with(given))
}

// AddFailedOperation adds the record of a failed card operation. If its kind is
// transfer_in, transfer_out, freeze, unfreeze or close, it can be canceled or retried
// once; spaces may replace underscores. The service refuses other kinds, and operations
// that were already canceled or retried. Adding a known identifier makes it fail again.
// AddFailedOperation panics if clientTransactionID is not a UUID, which no request could
// name.
func (s *Service) AddFailedOperation(clientTransactionID, kind string) {
	if uuidString(clientTransactionID) != "" {
		panic("cardwiretest: the client transaction id of a failed operation must be a UUID")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strings.ToLower(clientTransactionID)
	s.state.operations[id] = &cardOperation{kind: strings.ReplaceAll(kind, " ", "_"), failed: true}
	delete(s.state.responses, referenceKey(cardwire.OpCancelOperation, id))
	delete(s.state.responses, referenceKey(cardwire.OpRetryOperation, id))
}
