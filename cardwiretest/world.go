package cardwiretest

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/test/canary"
)

// epoch is when the service's time begins. Only executions advance it, by a second
// each, so that responses do not depend on the date.
var epoch = time.Date(2025, time.March, 3, 9, 30, 0, 0, time.UTC)

const (
	dateTimeLayout = "2006-01-02 15:04:05"
	dateLayout     = "2006-01-02"
)

func parseDate(v string) (time.Time, error) { return time.Parse(dateLayout, v) }

// world is the state of the service.
type world struct {
	seed       int64
	rand       *rand.Rand
	clock      time.Time
	bins       []BIN
	cards      []*Card
	byID       map[string]*Card
	byOrder    map[string]*Card
	operations map[string]*record // by client transaction id in lower case
	responses  map[string]result  // first responses, by operation and reference
	currencies []currency
	states     []state
	executed   int
	numbered   int // canary numbers handed out
}

// record is an operation record.
type record struct {
	kind   string
	failed bool
}

func newWorld(seed int64, cards int) world {
	w := world{
		seed:       seed,
		rand:       rand.New(rand.NewPCG(uint64(seed), 0x63617264)),
		clock:      epoch,
		byID:       map[string]*Card{},
		byOrder:    map[string]*Card{},
		operations: map[string]*record{},
		responses:  map[string]result{},
		currencies: seededCurrencies,
		states:     seededStates,
	}
	w.bins = seedBINs()
	for i := range cards {
		w.put(w.seedCard(i))
	}
	for i := range w.bins {
		for _, c := range w.cards {
			if c.BINID == w.bins[i].ID {
				w.bins[i].CardNums++
			}
		}
	}
	w.operations[w.uuid("failed", 0)] = &record{kind: "transfer_in", failed: true}
	w.operations[w.uuid("failed", 1)] = &record{kind: "close", failed: true}
	return w
}

// hash derives bytes from the seed, independent of the order of executions.
func (w *world) hash(kind string, n int) [sha256.Size]byte {
	b := binary.BigEndian.AppendUint64([]byte(kind), uint64(w.seed))
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(n)))
}

func (w *world) uuid(kind string, n int) string {
	h := w.hash(kind, n)
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	s := hex.EncodeToString(h[:16])
	return strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
}

func (w *world) token(kind string, n, length int) string {
	h := w.hash(kind, n)
	return hex.EncodeToString(h[:])[:length]
}

// cardID counts from a number that the seed chooses. Ten digits are too few to look
// like a card number.
func (w *world) cardID(n int) string {
	h := w.hash("card", 0)
	first := 2_000_000_000 + binary.BigEndian.Uint64(h[:])%6_000_000_000
	return strconv.FormatUint(first+uint64(n), 10)
}

// put adds a card, or replaces the one that has its ID.
func (w *world) put(c Card) {
	if c.OrderID == "" {
		c.OrderID = c.TradeID
	}
	if old := w.byID[c.ID]; old != nil {
		delete(w.byOrder, old.OrderID)
		*old = c
	} else {
		w.cards = append(w.cards, &c)
		w.byID[c.ID] = &c
	}
	w.byOrder[c.OrderID] = w.byID[c.ID]
}

// pattern gives every status to any six cards in a row, and most cards active.
var pattern = []int{0, 1, 2, 3, 4, -1, 0, 0, 0, 0, 0, 0}

func (w *world) seedCard(i int) Card {
	bin := &w.bins[i%len(w.bins)]
	created := epoch.AddDate(0, 0, -400).Add(time.Duration(i) * 26011 * time.Second % (399 * 24 * time.Hour))
	c := Card{
		ID: w.cardID(i), TradeID: w.uuid("trade", i),
		BINID: bin.ID, CardBIN: bin.BIN, CardNo: w.number(bin.BIN), CVV: w.cvv(i),
		Currency:   bin.Currency,
		Available:  w.money(90_000_000, 3),
		Pending:    json.Number(w.money(50_000, 2)),
		Frozen:     json.Number(w.money(20_000, 2)),
		ExpireDate: fmt.Sprintf("%02d/%d", 1+w.rand.IntN(12), 2027+w.rand.IntN(5)),
		CreateTime: created.Format(dateTimeLayout),
		UpdateTime: created.Add(time.Duration(w.rand.IntN(20*24*3600)) * time.Second).Format(dateTimeLayout),
		Status:     pattern[i%len(pattern)],
		Fee:        w.money(500, 2),
		Nickname:   fmt.Sprintf("card %d", i+1),
		Physical:   bin.Physical,

		AccountStatus: 1, ConsumptionSceneType: i % 3,
		TransactionTimes: []string{created.Add(49 * time.Hour).Format(dateTimeLayout)},
	}
	w.seedHolder(&c, i)
	w.seedExtras(&c, i)
	return c
}

// people have names that need escaping somewhere.
var people = []struct{ name, phone, code, email string }{
	{"Amelia Stone", "2025550143", "+1", "amelia.stone@example.com"},
	{"Zoë Ødegård", "40012345", "47", "zoe@example.no"},
	{"李 小龙", "13800138000", "+86", "xiaolong@example.cn"},
	{"Jörg \"JJ\" Weiß", "", "", ""},
	{"Siobhán O'Brien", "871234567", "353", "siobhan@example.ie"},
	{"Nguyễn Văn A / B", "912345678", "+84", "nguyen@example.vn"},
	{"R&D <Ops>", "2071838750", "", "ops@example.co.uk"},
}

var addresses = []*Address{
	{City: "Wilmington", State: "DE", Country: "US", PostalCode: "19801", AddressLine1: "1007 N Orange St", AddressLine2: "4th Floor / Suite 12"},
	nil,
	{City: "Zürich", State: "ZH", Country: "CH", PostalCode: "8001", AddressLine1: "Bahnhofstrasse 1", AddressLine2: ""},
	{City: "London", State: "", Country: "GB", PostalCode: "EC1A 1BB", AddressLine1: "2 St. Martin's le Grand", AddressLine2: "Unit 3"},
	nil,
}

func (w *world) seedHolder(c *Card, i int) {
	p := people[i%len(people)]
	c.HolderUsername, c.HolderPhone, c.HolderPhoneCode, c.HolderEmail = p.name, p.phone, p.code, p.email
	if a := addresses[i%len(addresses)]; a != nil {
		address := *a
		c.HolderAddress = &address
	}
}

func (w *world) seedExtras(c *Card, i int) {
	if i%3 == 0 {
		c.Label = new(fmt.Sprintf("marketing/%d", i))
	}
	if i%4 == 1 {
		c.Remark = new("überprüft")
	}
	if i%2 == 0 {
		c.SubAccountID = fmt.Sprintf("sub-%d", 1+i%4/2)
	}
	if c.Status == 2 || c.Status == 3 {
		c.DestoryReason = new("closed by customer")
	}
	if c.Physical == 1 {
		c.PhysicalStatus, c.DeliverStatus = 2, 1
		c.PlatformWaybillNumber = new("WB" + strings.ToUpper(w.token("waybill", i, 10)))
		c.PlatformWaybillCompany = new("DHL")
	}
	if i%2 == 1 {
		c.ConsumptionSceneConfig = []Scene{{Name: "Advertising / Ads", ChannelID: 7}, {Name: "Travel", ChannelID: 12}}
	}
}

// money returns an amount below limit hundredths or thousandths, by places.
func (w *world) money(limit, places int) string {
	n := w.rand.IntN(limit)
	unit := 1
	for range places {
		unit *= 10
	}
	return fmt.Sprintf("%d.%0*d", n/unit, places, n%unit)
}

// number returns the next canary for a BIN: the BIN, nines up to eight digits, and the
// digits that mark a canary.
func (w *world) number(bin string) string {
	n := w.numbered
	w.numbered++
	digits := canary.Number((bin + "99999999")[:8], n)
	if !canary.IsNumber(digits) { // an unusual BIN was added
		known.AddNumber(digits)
	}
	return digits
}

// canaryCVVs are few and unusual, so that NoLeaks can recognize them.
var canaryCVVs = []string{"907", "917", "927", "937", "947", "957", "967", "987"}

func (w *world) cvv(n int) string { return canaryCVVs[n%len(canaryCVVs)] }

// tick advances the service's time.
func (w *world) tick() string {
	w.executed++
	w.clock = w.clock.Add(time.Second)
	return w.clock.Format(dateTimeLayout)
}

// AddBIN adds a BIN, or replaces the one with the same ID. If they are empty, ID, BIN,
// Country, Currency and the level of AuthRequirement get default values.
func (s *Service) AddBIN(b BIN) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.ID == 0 {
		b.ID = 1001 + len(s.world.bins)
	}
	if b.BIN == "" {
		b.BIN = strconv.Itoa(440_000 + b.ID%1_000)
	}
	if b.Country == "" {
		b.Country = "US"
	}
	if b.Currency == "" {
		b.Currency = "USD"
	}
	if b.AuthLevel == 0 {
		b.AuthLevel = 1
	}
	if b.AuthRequirement.Level == "" {
		b.AuthRequirement.Level = map[bool]string{true: "advanced", false: "base"}[b.AuthLevel == 2]
	}
	for i := range s.world.bins {
		if s.world.bins[i].ID == b.ID {
			s.world.bins[i] = b
			return
		}
	}
	s.world.bins = append(s.world.bins, b)
}

// AddCard adds a card, or replaces the one with the same ID. Empty fields get a default
// value if the API never sends them empty: ID, TradeID, the BIN, a canary number and
// CVV, Currency, amounts, ExpireDate, CreateTime and UpdateTime. Do not use a real
// number as CardNo; NoLeaks searches for it.
func (s *Service) AddCard(c Card) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.world
	n := len(w.cards)
	known.AddNumber(c.CardNo)
	known.AddCVV(c.CVV)
	if c.CardBIN == "" || c.BINID == 0 {
		bin := w.findBIN(c.BINID, c.CardBIN)
		c.BINID, c.CardBIN = bin.ID, cmp.Or(c.CardBIN, bin.BIN)
	}
	defaults := []struct {
		field *string
		value func() string
	}{
		{&c.ID, func() string { return w.cardID(n) }},
		{&c.TradeID, func() string { return w.uuid("trade", n) }},
		{&c.CardNo, func() string { return w.number(c.CardBIN) }},
		{&c.CVV, func() string { return w.cvv(n) }},
		{&c.Currency, func() string { return "USD" }},
		{&c.Available, func() string { return "0.000" }},
		{&c.ExpireDate, func() string { return "12/2030" }},
		{&c.CreateTime, func() string { return w.clock.Format(dateTimeLayout) }},
		{&c.UpdateTime, func() string { return c.CreateTime }},
		{&c.Fee, func() string { return "0.00" }},
	}
	for _, d := range defaults {
		if *d.field == "" {
			*d.field = d.value()
		}
	}
	w.put(c)
}

// findBIN returns the first BIN if none matches.
func (w *world) findBIN(id int, digits string) *BIN {
	for i := range w.bins {
		if w.bins[i].ID == id || w.bins[i].BIN == digits {
			return &w.bins[i]
		}
	}
	return &w.bins[0]
}

// SetCardStatus sets the status of a card: -1 locked, 0 active, 1 frozen, 2
// closed, 3 closing, 4 suspended. It panics if there is no card with the ID.
func (s *Service) SetCardStatus(id string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.world.byID[id]
	if c == nil {
		panic("cardwiretest: no card has the ID given to SetCardStatus")
	}
	c.Status = status
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
	s.world.operations[id] = &record{kind: strings.ReplaceAll(kind, " ", "_"), failed: true}
	delete(s.world.responses, referenceKey("CancelOperation", id))
	delete(s.world.responses, referenceKey(opRetry, id))
}

func referenceKey(op, reference string) string { return op + "\x00" + reference }
