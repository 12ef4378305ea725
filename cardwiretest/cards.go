package cardwiretest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Card is a card, with the fields of the wire. Amounts are in Currency, in whole
// units with a fraction.
type Card struct {
	// ID is id: what Get card, Get card secrets and Freeze card take.
	ID string
	// TradeID is trade_id.
	TradeID string
	// Label is label; nil: null.
	Label *string
	// BINID is bin_id, the ID of a BIN. List cards only.
	BINID int
	// CardBIN is card_bin: the digits of the BIN.
	CardBIN string
	// CardNo is card_no, in full. List cards sends it in full, the other operations masked.
	CardNo string
	// CVV is cvv. List cards sends it in full, the other operations masked.
	CVV string
	// Currency is currency, a code like USD.
	Currency string
	// Available is available: an amount with three decimal places, sent as a string.
	Available string
	// Pending is pending: an amount, sent as a number; "": 0.
	Pending json.Number
	// Frozen is frozen: an amount, sent as a number; "": 0.
	Frozen json.Number
	// ExpireDate is expire_date, like 09/2028. The other operations mask it.
	ExpireDate string
	// HolderUsername is holder_username.
	HolderUsername string
	// HolderAddress is holder_address; nil: an empty array.
	HolderAddress *Address
	// CreateTime is create_time, like 2025-03-03 09:30:00.
	CreateTime string
	// UpdateTime is update_time, like CreateTime. List cards only.
	UpdateTime string
	// Status is status: -1 locked, 0 active, 1 frozen, 2 closed, 3 closing, 4 suspended.
	Status int
	// Remark is remark; nil: null. List cards only.
	Remark *string
	// HolderPhone is holder_phone; "" is sent as an empty string.
	HolderPhone string
	// HolderPhoneCode is holder_phone_code, with or without a leading "+"; "" is sent as
	// an empty string.
	HolderPhoneCode string
	// HolderEmail is holder_email; "" is sent as an empty string.
	HolderEmail string
	// Fee is fee: an amount with two decimal places, sent as a string.
	Fee string
	// DestoryReason is destory_reason; nil: null. List cards only.
	DestoryReason *string
	// Nickname is nickname. List cards only.
	Nickname string
	// Physical is physical: 1 for a physical card, 0 for another.
	Physical int
	// PhysicalStatus is physical_status. The meaning of its values is undocumented.
	PhysicalStatus int
	// DeliverStatus is deliver_status. The meaning of its values is undocumented.
	DeliverStatus int
	// PlatformWaybillNumber is platform_waybill_number; nil: null.
	PlatformWaybillNumber *string
	// PlatformWaybillCompany is platform_waybill_company; nil: null.
	PlatformWaybillCompany *string
	// AccountStatus is account_status. Get card only. The meaning of its values is
	// undocumented.
	AccountStatus int
	// ConsumptionSceneType is consumption_scene_type. Get card only. The meaning of
	// its values is undocumented.
	ConsumptionSceneType int
	// ConsumptionSceneConfig is consumption_scene_config; nil: an empty array. Get card only.
	ConsumptionSceneConfig []Scene

	// OrderID is the order ID by which Get card also finds the card; "": TradeID. It
	// is not sent.
	OrderID string
	// SubAccountID is the sub-account that List cards filters by; "": none. It is not sent.
	SubAccountID string
	// TransactionTimes are when the card was used, like CreateTime, for the
	// filters of List cards; nil: never. They are not sent.
	TransactionTimes []string
}

// Address is a holder_address.
type Address struct {
	// City is city.
	City string
	// State is state.
	State string
	// Country is country.
	Country string
	// PostalCode is postalCode.
	PostalCode string
	// AddressLine1 is addressLine1.
	AddressLine1 string
	// AddressLine2 is addressLine2.
	AddressLine2 string
}

// Scene is an element of consumption_scene_config.
type Scene struct {
	// Name is name.
	Name string
	// ChannelID is channel_id.
	ChannelID int
}

// listed writes a card as List cards does: every field of the API's table, in its
// order.
func (c *Card) listed() []byte {
	var o object
	o.str("id", c.ID)
	o.str("trade_id", c.TradeID)
	o.optional("label", c.Label)
	o.integer("bin_id", c.BINID)
	o.str("card_bin", c.CardBIN)
	o.str("card_no", c.CardNo)
	o.str("cvv", c.CVV)
	c.amounts(&o)
	o.str("expire_date", c.ExpireDate)
	c.holder(&o)
	o.str("create_time", c.CreateTime)
	o.str("update_time", c.UpdateTime)
	o.integer("status", c.Status)
	o.optional("remark", c.Remark)
	c.contact(&o)
	o.optional("destory_reason", c.DestoryReason)
	o.str("nickname", c.Nickname)
	c.delivery(&o)
	return o.end()
}

// single writes a card as Get card does: without five fields, and with three others
// at the end.
func (c *Card) single() []byte {
	var o object
	o.str("id", c.ID)
	o.str("trade_id", c.TradeID)
	o.optional("label", c.Label)
	o.str("card_bin", c.CardBIN)
	o.str("card_no", maskedNumber(c.CardNo))
	o.str("cvv", maskedCVV)
	c.amounts(&o)
	o.str("expire_date", maskedExpiry)
	c.holder(&o)
	o.str("create_time", c.CreateTime)
	o.integer("status", c.Status)
	c.contact(&o)
	c.delivery(&o)
	o.integer("account_status", c.AccountStatus)
	o.integer("consumption_scene_type", c.ConsumptionSceneType)
	o.raw("consumption_scene_config", array(c.ConsumptionSceneConfig, func(v Scene) []byte {
		var o object
		o.str("name", v.Name)
		o.integer("channel_id", v.ChannelID)
		return o.end()
	}))
	return o.end()
}

func (c *Card) amounts(o *object) {
	o.str("currency", c.Currency)
	o.str("available", c.Available)
	o.number("pending", c.Pending)
	o.number("frozen", c.Frozen)
}

func (c *Card) holder(o *object) {
	o.str("holder_username", c.HolderUsername)
	if c.HolderAddress == nil {
		o.raw("holder_address", []byte("[]"))
		return
	}
	o.raw("holder_address", c.HolderAddress.json())
}

func (a *Address) json() []byte {
	var o object
	o.str("city", a.City)
	o.str("state", a.State)
	o.str("country", a.Country)
	o.str("postalCode", a.PostalCode)
	o.str("addressLine1", a.AddressLine1)
	o.str("addressLine2", a.AddressLine2)
	return o.end()
}

func (c *Card) contact(o *object) {
	o.str("holder_phone", c.HolderPhone)
	o.str("holder_phone_code", c.HolderPhoneCode)
	o.str("holder_email", c.HolderEmail)
	o.str("fee", c.Fee)
}

func (c *Card) delivery(o *object) {
	o.integer("physical", c.Physical)
	o.integer("physical_status", c.PhysicalStatus)
	o.integer("deliver_status", c.DeliverStatus)
	o.optional("platform_waybill_number", c.PlatformWaybillNumber)
	o.optional("platform_waybill_company", c.PlatformWaybillCompany)
}

const (
	maskedCVV    = "***"
	maskedExpiry = "**/****"
)

// maskedNumber keeps the first 6 digits and the last 4.
func maskedNumber(n string) string {
	if len(n) < 10 {
		return strings.Repeat("*", len(n))
	}
	return n[:6] + strings.Repeat("*", len(n)-10) + n[len(n)-4:]
}

// listParams are the parameters of List cards under the names of the profile.
func listParams(n names) []param {
	return []param{
		{name: n.limit, check: count},
		{name: n.page, check: count},
		{name: n.subAccount, check: notEmpty},
		{name: n.status, check: oneOf("-1", "0", "1", "2", "3", "4")},
		{name: n.cardBIN, check: numeric},
		{name: n.createdFrom, check: date},
		{name: n.createdTo, check: date},
		{name: n.transactedFrom, check: date},
		{name: n.transactedTo, check: date},
	}
}

// filter is what a card must be to be listed; "": anything.
type filter struct {
	subAccount, status, cardBIN                          string
	createdFrom, createdTo, transactedFrom, transactedTo string
}

func (s *Service) filter(r *request) filter {
	if r.twist == ignoreFilters {
		return filter{}
	}
	value := func(name string) string {
		if name == "" {
			return ""
		}
		return r.values[name]
	}
	n := s.names
	return filter{
		value(n.subAccount), value(n.status), value(n.cardBIN),
		value(n.createdFrom), value(n.createdTo), value(n.transactedFrom), value(n.transactedTo),
	}
}

func (f *filter) admits(c *Card) bool {
	return (f.subAccount == "" || f.subAccount == c.SubAccountID) &&
		(f.status == "" || f.status == strconv.Itoa(c.Status)) &&
		(f.cardBIN == "" || f.cardBIN == c.CardBIN) &&
		within(c.CreateTime, f.createdFrom, f.createdTo) &&
		(f.transactedFrom == "" && f.transactedTo == "" ||
			slices.ContainsFunc(c.TransactionTimes, func(t string) bool { return within(t, f.transactedFrom, f.transactedTo) }))
}

// within compares dates as strings, which sort like the dates.
func within(t, from, to string) bool {
	day := t[:min(len(t), len(dateLayout))]
	return (from == "" || day >= from) && (to == "" || day <= to)
}

func listCards(s *Service, r *request) result {
	f := s.filter(r)
	var cards []*Card
	for _, c := range s.world.cards {
		if f.admits(c) {
			cards = append(cards, c)
		}
	}
	size, page := s.paging(r)
	from := page
	if r.twist == repeatPage && from > 1 {
		from-- // the cards of the page before, under the number that was asked for
	}
	start := min((from-1)*size, len(cards))
	var o object
	o.integer("total", len(cards))
	o.integer("per_page", size)
	o.integer("current_page", page)
	o.integer("last_page", max((len(cards)+size-1)/size, 1))
	o.raw("data", array(cards[start:min(start+size, len(cards))], (*Card).listed))
	return success(o.end())
}

func (s *Service) paging(r *request) (size, page int) {
	if r.twist == ignorePaging {
		return min(defaultPageSize, s.maxPageSize), 1
	}
	number := func(name string, absent int) int {
		if n, err := strconv.Atoi(r.values[name]); name != "" && err == nil {
			return n
		}
		return absent
	}
	return min(number(s.names.limit, defaultPageSize), s.maxPageSize), number(s.names.page, 1)
}

func infoParams(n names) []param {
	return []param{{name: n.cardID, required: true, check: notEmpty}}
}

func getCard(s *Service, r *request) result {
	id := r.values[s.names.cardID]
	c := s.world.byID[id]
	if c == nil {
		c = s.world.byOrder[id]
	}
	if c == nil {
		return *refusal(http.StatusNotFound, "the parameter "+s.names.cardID+" names no card and no order")
	}
	if r.twist == otherResponse {
		c = s.world.another(c)
	}
	return success(c.single())
}

// another returns another card, or an invented one if there is none.
func (w *world) another(c *Card) *Card {
	for _, other := range w.cards {
		if other.ID != c.ID {
			return other
		}
	}
	other := *c
	other.ID = w.cardID(1 << 20)
	return &other
}

var secretsFields = []param{{name: "cardId", required: true, check: notEmpty}}

func getSecrets(s *Service, r *request) result {
	c := s.world.byID[r.values["cardId"]]
	if c == nil {
		return *refusal(http.StatusNotFound, "the field cardId names no card")
	}
	if r.twist == otherResponse {
		c = s.world.another(c)
	}
	var o object
	o.str("card_no", maskedNumber(c.CardNo))
	o.str("cvv", maskedCVV)
	o.str("expire_date", maskedExpiry)
	o.str("pan", encrypt(s.key, c))
	return success(o.end())
}

// encrypt returns the pan that the package documentation describes.
func encrypt(key string, c *Card) string {
	secret, iv := sha256.Sum256([]byte(key)), sha256.Sum256([]byte(c.ID))
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		panic(err) // not with a key of 32 bytes
	}
	pan := append(iv[:aes.BlockSize], c.CardNo...)
	number := pan[aes.BlockSize:]
	cipher.NewCTR(block, pan[:aes.BlockSize]).XORKeyStream(number, number)
	return base64.StdEncoding.EncodeToString(pan)
}

var freezeFields = []param{
	{name: "cardId", required: true, check: notEmpty},
	{name: "clientTransactionId", check: uuidString},
}

func freezeCard(s *Service, r *request) result {
	c := s.world.byID[r.values["cardId"]]
	switch {
	case c == nil:
		return *refusal(http.StatusNotFound, "the field cardId names no card")
	case c.Status == 2 || c.Status == 3:
		return *refusal(http.StatusUnprocessableEntity, "the field cardId names a card that is closed or closing")
	}
	e := Execution{Op: r.op, Reference: r.values["clientTransactionId"], CardID: c.ID, Action: "freeze"}
	e.ID = s.world.uuid("operation", s.world.executed)
	return s.once(r, e, appendString(nil, e.ID, false), func(now string) {
		c.Status, c.UpdateTime = 1, now
		if e.Reference != "" {
			s.world.operations[strings.ToLower(e.Reference)] = &record{kind: "freeze"}
		}
	})
}

var adjustFields = []param{
	{name: "client_transaction_id", required: true, check: uuidString},
	{name: "type", required: true, check: notEmpty},
}

// adjustable are the kinds of operations that can be canceled or retried.
var adjustable = []string{"transfer_in", "transfer_out", "freeze", "unfreeze", "close"}

func adjust(s *Service, r *request) result {
	action := r.values["type"]
	if action != "cancel" && r.op != opRetry {
		return *refusal(http.StatusUnprocessableEntity, "the field type is neither cancel nor the value that retries")
	}
	id := strings.ToLower(r.values["client_transaction_id"])
	e := Execution{Op: r.op, Reference: r.values["client_transaction_id"], Action: action}
	if first, ok := s.firstResponse(e); ok {
		return first
	}
	record := s.world.operations[id]
	if record == nil || !record.failed || !slices.Contains(adjustable, record.kind) {
		return *refusal(http.StatusUnprocessableEntity, "the field client_transaction_id names no failed operation of a kind that can be adjusted")
	}
	e.Kind = record.kind
	return s.once(r, e, []byte("true"), func(string) { record.failed = false })
}

func capacity(s *Service, _ *request) result {
	h := s.world.hash("capacity", 0)
	return success(strconv.AppendInt(nil, 500+int64(h[0]), 10))
}
