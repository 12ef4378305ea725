package cardwire

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// CardStatus is the state of a card. An undocumented value is kept as sent.
type CardStatus int

// The documented statuses.
const (
	CardLocked    CardStatus = -1 // CardLocked is -1, locked.
	CardActive    CardStatus = 0  // CardActive is 0, active.
	CardFrozen    CardStatus = 1  // CardFrozen is 1, frozen.
	CardClosed    CardStatus = 2  // CardClosed is 2, closed.
	CardClosing   CardStatus = 3  // CardClosing is 3, being closed.
	CardSuspended CardStatus = 4  // CardSuspended is 4, suspended.
)

// String returns "active", "frozen" and so on, or "CardStatus(9)".
func (s CardStatus) String() string {
	if s == CardLocked {
		return "locked"
	}
	return named("CardStatus", int(s), []string{"active", "frozen", "closed", "closing", "suspended"})
}

// LogValue returns String. JSON is the number, as on the wire.
func (s CardStatus) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Blocked reports whether the card is frozen or suspended, as by FreezeCard.
func (s CardStatus) Blocked() bool { return s == CardFrozen || s == CardSuspended }

// Card is a card as ListCards and GetCard return it. A string that is null is "". Amounts are
// in Currency. fmt and slog print no personal data.
type Card struct {
	ID                     string             // the service's identifier: what GetCard and FreezeCard take
	TradeID                string             // the card's client or trade identifier
	Label                  string             // free text; "": none
	BINID                  int64              // the ID of the card's BIN, as in BIN.ID. ListCards only.
	CardBIN                string             // the first digits of the number, as in BIN.BIN
	Number                 CardNumber         // the card number: in full from ListCards, masked from GetCard
	CVV                    CVV                // the verification value: masked like Number
	Physical               bool               // whether there is a physical card
	Expiry                 Expiry             // the month of expiry; zero: masked, as from GetCard
	Currency               string             // the currency code of the amounts
	Available              decimal.Decimal    // what can be spent, sent with three decimal places
	Pending                decimal.Decimal    // the amount that is being processed
	Frozen                 decimal.Decimal    // the amount that is held back
	Fee                    decimal.Decimal    // an undocumented fee, sent with two decimal places
	HolderUsername         string             // the cardholder's display name
	HolderAddress          *Address           // the cardholder's address; nil: none
	HolderPhone            string             // the cardholder's telephone number, as sent; "": none
	HolderPhoneCode        string             // the calling code, with or without "+"; "": none
	HolderEmail            string             // the cardholder's email address; "": none
	CreateTime             DateTime           // when the card was created, in an undocumented zone
	UpdateTime             DateTime           // when it was last changed. ListCards only.
	Status                 CardStatus         // the state of the card
	Remark                 string             // free text; "": none. ListCards only.
	DestroyReason          string             // why the card was closed; "": none. ListCards only.
	Nickname               string             // free text. ListCards only.
	PhysicalStatus         int                // an undocumented number
	DeliverStatus          int                // an undocumented number
	PlatformWaybillNumber  string             // the tracking number of the delivery; "": none
	PlatformWaybillCompany string             // the carrier of the delivery; "": none
	AccountStatus          int                // an undocumented number. GetCard only.
	ConsumptionSceneType   int                // an undocumented number. GetCard only.
	ConsumptionSceneConfig []ConsumptionScene // where the card may be used. GetCard only.
}

// The forms of a Card.
const (
	cardInList wire.Variant = 1 << 1 // an element of List cards
	singleCard wire.Variant = 1 << 2 // the response of Get card
)

var cardFields = []wire.FieldOf[Card]{
	{Name: "id", Required: true, Value: func(c *wire.Codec, v *Card) { c.Text(&v.ID, wire.ID) }},
	{Name: "trade_id", Value: func(c *wire.Codec, v *Card) { c.Text(&v.TradeID, wire.Code) }},
	{Name: "label", Value: func(c *wire.Codec, v *Card) { c.Text(&v.Label, wire.FreeNull) }},
	{Name: "bin_id", In: cardInList, Value: func(c *wire.Codec, v *Card) { wire.Int(c, &v.BINID) }},
	{Name: "card_bin", Value: func(c *wire.Codec, v *Card) { c.Text(&v.CardBIN, wire.Code) }},
	{Name: "card_no", Value: func(c *wire.Codec, v *Card) { numberValue(c, &v.Number) }},
	{Name: "cvv", Value: func(c *wire.Codec, v *Card) { cvvValue(c, &v.CVV) }},
	{Name: "currency", Value: func(c *wire.Codec, v *Card) { c.String(&v.Currency) }},
	{Name: "available", Required: true, Value: func(c *wire.Codec, v *Card) { c.DecimalString(&v.Available) }},
	{Name: "pending", Required: true, Value: func(c *wire.Codec, v *Card) { c.DecimalNumber(&v.Pending) }},
	{Name: "frozen", Required: true, Value: func(c *wire.Codec, v *Card) { c.DecimalNumber(&v.Frozen) }},
	{Name: "expire_date", Value: func(c *wire.Codec, v *Card) { wire.Date(c, &v.Expiry, v.Expiry.isDocumented) }},
	{Name: "holder_username", Value: func(c *wire.Codec, v *Card) { c.Text(&v.HolderUsername, wire.Free) }},
	{Name: "holder_address", Value: func(c *wire.Codec, v *Card) { addressValue(c, &v.HolderAddress) }},
	{Name: "create_time", Value: func(c *wire.Codec, v *Card) { wire.Date(c, &v.CreateTime, v.CreateTime.isDocumented) }},
	{Name: "update_time", In: cardInList, Value: func(c *wire.Codec, v *Card) {
		wire.Date(c, &v.UpdateTime, v.UpdateTime.isDocumented)
	}},
	{Name: "status", Value: func(c *wire.Codec, v *Card) { wire.IntOf(c, &v.Status, wire.Required) }},
	{Name: "remark", In: cardInList, Value: func(c *wire.Codec, v *Card) { c.Text(&v.Remark, wire.FreeNull) }},
	{Name: "holder_phone", Value: func(c *wire.Codec, v *Card) { c.Text(&v.HolderPhone, wire.Code) }},
	{Name: "holder_phone_code", Value: func(c *wire.Codec, v *Card) { c.Text(&v.HolderPhoneCode, wire.Code) }},
	{Name: "holder_email", Value: func(c *wire.Codec, v *Card) { c.String(&v.HolderEmail) }},
	{Name: "fee", Required: true, Value: func(c *wire.Codec, v *Card) { c.DecimalString(&v.Fee) }},
	{Name: "destory_reason", In: cardInList, Value: func(c *wire.Codec, v *Card) {
		c.Text(&v.DestroyReason, wire.FreeNull)
	}},
	{Name: "nickname", In: cardInList, Value: func(c *wire.Codec, v *Card) { c.Text(&v.Nickname, wire.Free) }},
	{Name: "physical", Value: func(c *wire.Codec, v *Card) { c.Flag(&v.Physical) }},
	{Name: "physical_status", Value: func(c *wire.Codec, v *Card) { wire.Int(c, &v.PhysicalStatus) }},
	{Name: "deliver_status", Value: func(c *wire.Codec, v *Card) { wire.Int(c, &v.DeliverStatus) }},
	{Name: "platform_waybill_number", Value: func(c *wire.Codec, v *Card) {
		c.Text(&v.PlatformWaybillNumber, wire.FreeNull)
	}},
	{Name: "platform_waybill_company", Value: func(c *wire.Codec, v *Card) {
		c.Text(&v.PlatformWaybillCompany, wire.FreeNull)
	}},
	{Name: "account_status", In: singleCard, Value: func(c *wire.Codec, v *Card) { wire.Int(c, &v.AccountStatus) }},
	{Name: "consumption_scene_type", In: singleCard, Value: func(c *wire.Codec, v *Card) {
		wire.Int(c, &v.ConsumptionSceneType)
	}},
	{Name: "consumption_scene_config", In: singleCard, Value: func(c *wire.Codec, v *Card) {
		wire.List(c, &v.ConsumptionSceneConfig, sceneFields)
	}},
}

// MarshalJSON returns the card under the wire's names, with secrets masked.
func (v Card) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, cardFields) }

// UnmarshalJSON reads a card in either form, as strictly as a response.
func (v *Card) UnmarshalJSON(data []byte) error { return unmarshal(data, v, cardFields) }

// Format writes what LogValue returns, whatever the verb.
func (v Card) Format(f fmt.State, _ rune) { formatLogged(f, "Card", v) }

// LogValue returns identifiers, amounts, the status and the masked number.
func (v Card) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("ID", v.ID), slog.String("TradeID", v.TradeID),
		slog.Int64("BINID", v.BINID), slog.String("CardBIN", v.CardBIN), slog.String("Number", v.Number.Masked()),
		slog.String("Currency", v.Currency), loggedAmount("Available", v.Available), loggedAmount("Pending", v.Pending),
		loggedAmount("Frozen", v.Frozen), loggedAmount("Fee", v.Fee), slog.String("Status", v.Status.String()),
	)
}

// ConsumptionScene is one place or kind of use.
type ConsumptionScene struct {
	Name      string // the scene's name
	ChannelID int64  // the identifier of its channel
}

var sceneFields = []wire.FieldOf[ConsumptionScene]{
	{Name: "name", Value: func(c *wire.Codec, v *ConsumptionScene) { c.Text(&v.Name, wire.Free) }},
	{Name: "channel_id", Value: func(c *wire.Codec, v *ConsumptionScene) { wire.Int(c, &v.ChannelID) }},
}

// CardSecrets is what GetCardSecrets returns.
type CardSecrets struct {
	Number CardNumber   // the number as the service masks it
	CVV    CVV          // masked
	Expiry Expiry       // the zero value, because the service masks it
	PAN    EncryptedPAN // the ciphertext of the number
}

var secretsFields = []wire.FieldOf[CardSecrets]{
	{Name: "card_no", Value: func(c *wire.Codec, v *CardSecrets) { numberValue(c, &v.Number) }},
	{Name: "cvv", Value: func(c *wire.Codec, v *CardSecrets) { cvvValue(c, &v.CVV) }},
	{Name: "expire_date", Value: func(c *wire.Codec, v *CardSecrets) { wire.Date(c, &v.Expiry, v.Expiry.isDocumented) }},
	{Name: "pan", Required: true, Value: func(c *wire.Codec, v *CardSecrets) { panValue(c, &v.PAN) }},
}

// MarshalJSON returns the secrets under the wire's names, all of them masked.
func (v CardSecrets) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, secretsFields) }

// UnmarshalJSON reads secrets, as strictly as a response.
func (v *CardSecrets) UnmarshalJSON(data []byte) error { return unmarshal(data, v, secretsFields) }

// FreezeCardParams selects the card to freeze.
type FreezeCardParams struct {
	CardID string // the card's identifier
	// ClientTransactionID is a UUID of this freeze only, for CancelOperation and
	// RetryOperation; "": a random one, which CardOperation and Error.Reference contain.
	ClientTransactionID string
}

// CardOperation is the record of an operation on a card.
type CardOperation struct {
	ID                  string // the service's identifier of the record: a UUID; any other form is drift
	ClientTransactionID string // the identifier that was sent
}

var cardOperationFields = []wire.FieldOf[CardOperation]{
	{Name: "id", Value: func(c *wire.Codec, v *CardOperation) { c.Text(&v.ID, wire.Code) }},
	{Name: "clientTransactionId", Value: func(c *wire.Codec, v *CardOperation) {
		c.Text(&v.ClientTransactionID, wire.Code)
	}},
}

// MarshalJSON returns the record as id and clientTransactionId.
func (v CardOperation) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, cardOperationFields) }

// UnmarshalJSON reads what MarshalJSON returns.
func (v *CardOperation) UnmarshalJSON(data []byte) error {
	return unmarshal(data, v, cardOperationFields)
}

// GetCard returns a card, its secrets masked. It calls GET /cards/info, and once more if that
// returns another card.
func (c *Client) GetCard(ctx context.Context, cardID string, opts ...CallOption) (*Card, error) {
	op := c.getCard(OpGetCard, "cardID", cardID)
	op.verify = func(card *Card) error {
		if c.settings().profile.TrustResponses || card.ID == cardID {
			return nil
		}
		return ignored("another card was returned", "CardIDParam")
	}
	return do(ctx, c, op, opts)
}

// GetCardByOrder is [Client.GetCard] with the identifier of an order.
func (c *Client) GetCardByOrder(ctx context.Context, orderID string, opts ...CallOption) (*Card, error) {
	return do(ctx, c, c.getCard(OpGetCardByOrder, "orderID", orderID), opts)
}

// getCard is what both ways of reading a card have in common.
func (c *Client) getCard(name Op, param, id string) operation[Card] {
	var q query
	q.add(c.settings().profile.CardIDParam, "CardIDParam", id)
	return operation[Card]{
		spec: spec{
			name: name, method: http.MethodGet, path: "/cards/info", query: q.fields.Form(),
			cards: true, fresh: name == OpGetCardByOrder,
			invalid: cmp.Or(checked(check.Given(param, id)), q.err),
		},
		read: object(cardFields, singleCard),
	}
}

// GetCardSecrets returns a card's encrypted number. It calls POST /cards/private.
func (c *Client) GetCardSecrets(ctx context.Context, cardID string, opts ...CallOption) (*CardSecrets, error) {
	return do(ctx, c, operation[CardSecrets]{
		spec: spec{
			name: OpGetCardSecrets, method: http.MethodPost, path: "/cards/private", fresh: true,
			body: formBody, fields: wire.Fields{{Name: "cardId", Value: cardID}},
			invalid: checked(check.Given("cardID", cardID)),
		},
		read: object(secretsFields, wire.Whole),
	}, opts)
}

// FreezeCard freezes or suspends a card: which of the two is undocumented. It calls POST
// /cards/suspend once. A success means that the service accepted the operation; it may still
// fail. After OutcomeUnknown, read the card.
func (c *Client) FreezeCard(ctx context.Context, p FreezeCardParams, opts ...CallOption) (*CardOperation, error) {
	if p.ClientTransactionID == "" {
		p.ClientTransactionID = uuid.NewString()
	}
	return do(ctx, c, operation[CardOperation]{
		spec: spec{
			name: OpFreezeCard, method: http.MethodPost, path: "/cards/suspend", class: transport.Write,
			body: multipartBody,
			fields: wire.Fields{
				{Name: "cardId", Value: p.CardID}, {Name: "clientTransactionId", Value: p.ClientTransactionID},
			},
			invalid: checked(check.Given("CardID", p.CardID),
				check.UUID("ClientTransactionID", p.ClientTransactionID)),
			reference: accepted(check.UUID, strings.ToLower(p.ClientTransactionID)),
			proves:    func(d *wire.Codec) bool { return isOperationID(scalar(d)) },
		},
		read: func(d *wire.Codec, o *CardOperation) {
			o.ClientTransactionID = p.ClientTransactionID
			serviceIDValue(d, &o.ID)
			switch {
			case !isOperationID(o.ID): // "failed", 0, "error: 404"
				d.Fail("a UUID")
			case check.UUID("", o.ID) != nil:
				d.Drift("identifier that is not a UUID")
			}
		},
		record: func(o *CardOperation) (string, string) { return accepted(check.UUID, o.ID), "" },
	}, opts)
}

// isOperationID reports whether data can be the identifier of an operation record: an identifier
// that is a word of at most 64 letters, digits, "-" and "_".
func isOperationID(id string) bool {
	other := func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	return len(id) <= 64 && !strings.ContainsFunc(id, other) && isServiceID(id)
}

// cancelAction is the value of the field type that cancels.
const cancelAction = "cancel"

// CancelOperation cancels a failed transfer in or out, freeze, unfreeze or close. It calls
// POST /cards/adjustAction once. Of a record one call at a time is sent by this client and its copies:
// after an unknown outcome no other begins until the first is executed, if ever.
func (c *Client) CancelOperation(ctx context.Context, clientTransactionID string, opts ...CallOption) error {
	return c.adjust(ctx, OpCancelOperation, clientTransactionID, cancelAction, opts)
}

// RetryOperation retries what CancelOperation cancels, by Profile.RetryAction.
func (c *Client) RetryOperation(ctx context.Context, clientTransactionID string, opts ...CallOption) error {
	return c.adjust(ctx, OpRetryOperation, clientTransactionID, c.settings().profile.RetryAction, opts)
}

func (c *Client) adjust(ctx context.Context, name Op, id, action string, opts []CallOption) error {
	fields := wire.Fields{{Name: "client_transaction_id", Value: id}, {Name: "type", Value: action}}
	err := checked(check.UUID("clientTransactionID", id))
	if err == nil && action == "" {
		err = badSetup("retrying needs the API's value of type: set Profile.RetryAction")
	}
	_, err = do(ctx, c, operation[bool]{
		spec: spec{
			name: name, method: http.MethodPost, path: "/cards/adjustAction", class: transport.Write,
			body: formBody, fields: fields, invalid: err,
			reference: accepted(check.UUID, strings.ToLower(id)),
		},
		read: (*wire.Codec).Bool,
		verify: func(done *bool) error {
			if *done {
				return nil
			}
			return detailed(ErrUnreadable, "the service did not confirm the change: "+
				"the operation may have been canceled or retried before")
		},
	}, opts)
	return err
}
