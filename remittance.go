package cardwire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// The numeric codes that the interface gives a meaning.
const (
	// TransferTypeC2C is the TransferType of a transfer from person to person.
	TransferTypeC2C = "3"
	// PayoutMethodBankTransfer is the PayoutMethod that pays to a bank account.
	PayoutMethodBankTransfer = "1"
)

// RemittanceState is a country, or a part of one: several share a country.
type RemittanceState struct {
	// Code is the code of the state.
	Code string
	// Name is its name.
	Name string
	// Country is the country, ISO 3166-1 alpha-2.
	Country string
	// CountryStandardCode is the country, ISO 3166-1 alpha-3.
	CountryStandardCode string
}

// RemittanceCurrency is a currency that can be paid out, with what that costs.
// The units of the quotas are not shown.
type RemittanceCurrency struct {
	// ID is the service's identifier of the entry.
	ID int64
	// PayoutCurrency is the currency code: what TransferParams.PayoutCurrency takes.
	PayoutCurrency string
	// TransferTypeID is the code of TransferType: 3 is C2C. What
	// TransferParams.TransferType takes is its text, as of strconv.FormatInt.
	TransferTypeID int64
	// TransferType is transfer_type_value, like C2C.
	TransferType string
	// PayoutMethodID is the code of PayoutMethod: 1 is Bank Transfer. What
	// TransferParams.PayoutMethod takes is its text, too.
	PayoutMethodID int64
	// PayoutMethod is payout_method_value, like Bank Transfer.
	PayoutMethod string
	// Country is the country that is paid to, ISO 3166-1 alpha-3.
	Country string
	// CountryCode is the same, two letters.
	CountryCode string
	// FeeRate is a fee in proportion to the amount; whether 1 or 100 is all of it
	// is not shown.
	FeeRate decimal.Decimal
	// FixedFee is a fixed fee; in which currency is not shown.
	FixedFee decimal.Decimal
	// MinQuota is the least amount of a transfer.
	MinQuota decimal.Decimal
	// MaxQuota is the greatest amount of a transfer.
	MaxQuota decimal.Decimal
	// YearTransferAmountQuota is the amount that can be sent in a year.
	YearTransferAmountQuota decimal.Decimal
}

// TransferParams describes a transfer. Fields that are empty are not sent;
// which of them the service requires is not shown. Numeric codes are digits in
// text, from lists of the service. fmt and slog show the order number, the
// currency and the amount only; JSON is refused. Keep what RevealJSON returns to
// send a transfer later: UnmarshalJSON reads it.
type TransferParams struct {
	// MerchantOrderNo is the caller's order number, and must be given. Use one
	// for each transfer that is meant, and the same one for each try of it.
	MerchantOrderNo string
	// PayoutCurrency is the currency to pay out, from RemittanceCurrency.
	PayoutCurrency string
	// TransferType is a numeric code: TransferTypeC2C, or
	// strconv.FormatInt(c.TransferTypeID, 10) of a RemittanceCurrency c.
	TransferType string
	// PayoutMethod is a numeric code: PayoutMethodBankTransfer, or a
	// RemittanceCurrency's PayoutMethodID in the same way.
	PayoutMethod string
	// SenderBeneficiaryRelationship is a numeric code.
	SenderBeneficiaryRelationship string
	// TransferAmount is the amount in whole units, above zero and exact in two
	// fraction digits: it is never rounded. Of which currency it is, that of the
	// payout or of the wallet, is not shown: ask before the first transfer.
	TransferAmount decimal.Decimal
	// SenderSourceOfFund is a numeric code.
	SenderSourceOfFund string
	// PurposeOfRemittance is a numeric code.
	PurposeOfRemittance string
	// SenderFirstName is the sender's first name.
	SenderFirstName string
	// SenderLastName is the sender's last name.
	SenderLastName string
	// SenderGender is a value that the interface does not list.
	SenderGender string
	// SenderMobileNumber is the sender's telephone number.
	SenderMobileNumber string
	// SenderIDType is a numeric code.
	SenderIDType string
	// SenderIDNumber is the number of the sender's document.
	SenderIDNumber string
	// SenderDateOfBirth is the sender's day of birth; zero: not sent.
	SenderDateOfBirth Date
	// SenderNationality is a country code of two letters.
	SenderNationality string
	// SenderIDIssueCountry is the country that issued the document, a numeric code.
	SenderIDIssueCountry string
	// SenderCountry is a country code of two letters.
	SenderCountry string
	// SenderAddress is the sender's address in one text.
	SenderAddress string
	// ReceiverNativeFirstName is the receiver's first name in their own script.
	ReceiverNativeFirstName string
	// ReceiverNativeLastName is the receiver's last name in their own script.
	ReceiverNativeLastName string
	// ReceiverIDType is a numeric code.
	ReceiverIDType string
	// ReceiverIDNumber is the number of the receiver's document.
	ReceiverIDNumber string
	// ReceiverMobileNumber is the receiver's telephone number.
	ReceiverMobileNumber string
	// ReceiverBankAccountNumber is the account that is paid to.
	ReceiverBankAccountNumber string
	// Extra are further fields by their wire names, as the service's list of
	// required fields, which is not specified, may name them. nil: none.
	Extra map[string]string
}

// TransferStatus is the state of a transfer. Others than TransferWaitProcess are
// not shown, and kept as they were sent.
type TransferStatus string

// TransferWaitProcess is the state of a transfer that was just created.
const TransferWaitProcess TransferStatus = "wait_process"

// Transfer is the order that CreateTransfer created.
type Transfer struct {
	// MerchantOrderNo is the caller's order number as the service repeats it.
	MerchantOrderNo string
	// APIOrderNo is the service's order number: at most 128 bytes, all visible. What
	// exceeds that is left out, and reported to Observer.Drift.
	APIOrderNo string
	// Status is the state of the order.
	Status TransferStatus
}

// ListRemittanceStates returns the countries, and the parts of countries, that
// the service knows. It calls GET /remittance/states.
func (c *Client) ListRemittanceStates(ctx context.Context, opts ...CallOption) ([]RemittanceState, error) {
	return value(do(ctx, c, operation[[]RemittanceState]{
		spec: spec{name: "ListRemittanceStates", method: http.MethodGet, path: "/remittance/states"},
		read: rows(stateMembers),
	}, opts))
}

// ListRemittanceCurrencies returns the currencies that can be paid out. It calls
// GET /remittance/currency.
func (c *Client) ListRemittanceCurrencies(ctx context.Context, opts ...CallOption) ([]RemittanceCurrency, error) {
	return value(do(ctx, c, operation[[]RemittanceCurrency]{
		spec: spec{name: "ListRemittanceCurrencies", method: http.MethodGet, path: "/remittance/currency"},
		read: rows(currencyMembers),
	}, opts))
}

// CreateTransfer sends money. It calls POST /remittance/transfer and is sent once;
// do with the order what [NextStep] says of the error. A success means that the
// service accepted the order: Transfer.Status is how far it is. No operation of the
// API reads a transfer back: after [ErrOutcomeUnknown] ask the service about the
// order number, and do not send the money with another.
//
// A call is refused with [ErrDuplicateIntent] while another with its order number is
// in progress, and once one was executed, as far as the client remembers: the last
// 65,536. One whose outcome is unknown is sent again, since only the caller can know
// that it should be. With a [Journal] the journal alone decides.
//
// The call ends after WithTimeout even if ctx allows more: that is Intent.SendBy,
// after which nothing of it is sent.
func (c *Client) CreateTransfer(ctx context.Context, p TransferParams, opts ...CallOption) (*Transfer, error) {
	fields, err := p.fields()
	return do(ctx, c, operation[Transfer]{
		spec: spec{
			name: "CreateTransfer", method: http.MethodPost, path: "/remittance/transfer", class: transport.Write,
			body: jsonBody, fields: fields, invalid: err,
			reference: accepted(check.Given, p.MerchantOrderNo), unique: true, summary: p.summary(),
			proves: func(d *wire.Codec) bool { return provesTransfer(d, p.MerchantOrderNo) },
		},
		read: object(transferMembers, wire.Whole),
		verify: func(t *Transfer) error {
			if t.MerchantOrderNo != "" && t.MerchantOrderNo != p.MerchantOrderNo {
				return &detailError{ErrUnreadable, "it is the response to another order"}
			}
			return nil
		},
		id: func(t *Transfer) string { return t.APIOrderNo },
	}, opts)
}

// Validate returns what CreateTransfer would refuse before it sends anything, as an
// [ErrInvalidParams]; nil: nothing.
func (p TransferParams) Validate() error {
	_, err := p.fields()
	return err
}

// summary is amount and currency, as in "10.00 EUR".
func (p *TransferParams) summary() string {
	amount, _ := wire.Cents(p.TransferAmount)
	return strings.TrimSpace(amount + " " + p.PayoutCurrency)
}

// provesTransfer reports whether data that is no Transfer still proves that the order
// was accepted: it names the order, or has the service's number for it, and names no
// other order.
func provesTransfer(d *wire.Codec, sent string) bool {
	if d.Kind() != '{' {
		return false
	}
	named, numbered, other := false, false, false
	d.Map(func(name []byte) {
		field := string(name)
		var value string
		switch d.Kind() {
		case '"':
			value = strings.TrimSpace(string(d.Bytes()))
		case '0', '-':
			value = string(d.Span())
		default:
			d.Skip()
		}
		switch {
		case field == merchantOrderNo && value != "":
			named, other = value == sent, value != sent
		case field == apiOrderNo && value != "":
			numbered = true
		}
	})
	return (named || numbered) && !other
}

// fields returns what is sent, in the interface's order, or why it must not be.
func (p *TransferParams) fields() (wire.Fields, error) {
	own := p.own()
	f := make(wire.Fields, 0, len(own)+len(p.Extra))
	for _, field := range own {
		f.Add(field.name, field.value.String())
	}
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		f.Add(name, p.Extra[name])
	}
	return f, cmp.Or(p.valid(), p.validExtra(own))
}

// transferField is a field that TransferParams has: its name on the wire, and where
// its value is, which writes and reads itself as it is sent.
type transferField struct {
	name  string
	value textual
}

// own returns the fields that TransferParams has, also those that are empty.
func (p *TransferParams) own() []transferField {
	return []transferField{
		{"merchantOrderNo", (*plain)(&p.MerchantOrderNo)},
		{"payoutCurrency", (*plain)(&p.PayoutCurrency)},
		{"transferType", (*plain)(&p.TransferType)},
		{"payoutMethod", (*plain)(&p.PayoutMethod)},
		{"senderBeneficiaryRelationship", (*plain)(&p.SenderBeneficiaryRelationship)},
		{"transferAmount", (*cents)(&p.TransferAmount)},
		{"senderSourceOfFund", (*plain)(&p.SenderSourceOfFund)},
		{"purposeOfRemittance", (*plain)(&p.PurposeOfRemittance)},
		{"senderFirstName", (*plain)(&p.SenderFirstName)},
		{"senderLastName", (*plain)(&p.SenderLastName)},
		{"senderGender", (*plain)(&p.SenderGender)},
		{"senderMobileNumber", (*plain)(&p.SenderMobileNumber)},
		{"senderIdType", (*plain)(&p.SenderIDType)},
		{"senderIdNumber", (*plain)(&p.SenderIDNumber)},
		{"senderDateOfBirth", &p.SenderDateOfBirth},
		{"senderNationality", (*plain)(&p.SenderNationality)},
		{"senderIdIssueCountry", (*plain)(&p.SenderIDIssueCountry)},
		{"senderCountry", (*plain)(&p.SenderCountry)},
		{"senderAddress", (*plain)(&p.SenderAddress)},
		{"receiverNativeFirstName", (*plain)(&p.ReceiverNativeFirstName)},
		{"receiverNativeLastName", (*plain)(&p.ReceiverNativeLastName)},
		{"receiverIdType", (*plain)(&p.ReceiverIDType)},
		{"receiverIdNumber", (*plain)(&p.ReceiverIDNumber)},
		{"receiverMobileNumber", (*plain)(&p.ReceiverMobileNumber)},
		{"receiverBankAccountNumber", (*plain)(&p.ReceiverBankAccountNumber)},
	}
}

// plain is a text that is sent as it is.
type plain string

func (s *plain) String() string { return string(*s) }

func (s *plain) UnmarshalText(text []byte) error {
	*s = plain(text)
	return nil
}

// cents is an amount that is sent with two fraction digits, or "" if it cannot be.
type cents decimal.Decimal

func (a *cents) String() string {
	text, _ := wire.Cents(decimal.Decimal(*a))
	return text
}

func (a *cents) UnmarshalText(text []byte) error {
	amount, ok := wire.ParseDecimal(text, false)
	if sent, exact := wire.Cents(amount); !ok || !exact || sent != string(text) {
		return errors.New("an amount is like 12.50")
	}
	*a = cents(amount)
	return nil
}

func (p *TransferParams) valid() error {
	return checked(
		check.Given("MerchantOrderNo", p.MerchantOrderNo),
		check.Currency("PayoutCurrency", p.PayoutCurrency),
		check.Digits("TransferType", p.TransferType),
		check.Digits("PayoutMethod", p.PayoutMethod),
		check.Digits("SenderBeneficiaryRelationship", p.SenderBeneficiaryRelationship),
		checkAmount("TransferAmount", p.TransferAmount),
		check.Digits("SenderSourceOfFund", p.SenderSourceOfFund),
		check.Digits("PurposeOfRemittance", p.PurposeOfRemittance),
		check.UTF8("SenderFirstName", p.SenderFirstName),
		check.UTF8("SenderLastName", p.SenderLastName),
		check.UTF8("SenderGender", p.SenderGender),
		check.UTF8("SenderMobileNumber", p.SenderMobileNumber),
		check.Digits("SenderIDType", p.SenderIDType),
		check.UTF8("SenderIDNumber", p.SenderIDNumber),
		checkDate("SenderDateOfBirth", p.SenderDateOfBirth),
		check.Country("SenderNationality", p.SenderNationality),
		check.Digits("SenderIDIssueCountry", p.SenderIDIssueCountry),
		check.Country("SenderCountry", p.SenderCountry),
		check.UTF8("SenderAddress", p.SenderAddress),
		check.UTF8("ReceiverNativeFirstName", p.ReceiverNativeFirstName),
		check.UTF8("ReceiverNativeLastName", p.ReceiverNativeLastName),
		check.Digits("ReceiverIDType", p.ReceiverIDType),
		check.UTF8("ReceiverIDNumber", p.ReceiverIDNumber),
		check.UTF8("ReceiverMobileNumber", p.ReceiverMobileNumber),
		check.UTF8("ReceiverBankAccountNumber", p.ReceiverBankAccountNumber),
	)
}

// checkAmount refuses what could only be sent rounded, and what is no payment.
func checkAmount(name string, v decimal.Decimal) error {
	if v.Sign() <= 0 {
		return errors.New(name + " is not above zero")
	}
	switch _, exact := wire.Cents(v); {
	case !exact && v.Exponent() >= -2:
		return errors.New(name + " is too large")
	case !exact:
		return errors.New(name + " is not exact in two fraction digits")
	}
	return nil
}

func (p *TransferParams) validExtra(own []transferField) error {
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		switch {
		case name == "":
			return invalid("Extra holds an empty name")
		case check.Text("", name) != nil:
			return invalid("Extra holds a name with a control character, or that is not valid UTF-8")
		case check.UTF8("", p.Extra[name]) != nil:
			return invalid("Extra holds a text that is not valid UTF-8")
		}
		if slices.ContainsFunc(own, func(f transferField) bool { return strings.EqualFold(f.name, name) }) {
			return invalid("Extra holds the name of a field that TransferParams has")
		}
	}
	return nil
}

// Format writes the order number, the currency and the amount, whatever the verb.
func (p TransferParams) Format(f fmt.State, _ rune) {
	formatMasked(f, "cardwire.TransferParams{MerchantOrderNo: "+p.MerchantOrderNo+
		", PayoutCurrency: "+p.PayoutCurrency+
		", TransferAmount: "+string(wire.AppendDecimal(nil, p.TransferAmount))+", ...}")
}

// LogValue returns the order number, the currency and the amount.
func (p TransferParams) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("MerchantOrderNo", p.MerchantOrderNo),
		slog.String("PayoutCurrency", p.PayoutCurrency),
		slog.String("TransferAmount", string(wire.AppendDecimal(nil, p.TransferAmount))),
	)
}

// MarshalJSON returns an error: loggers, templates and expvar marshal whatever
// they are given, and a mask in an outbox would lose the transfer. See RevealJSON.
func (p TransferParams) MarshalJSON() ([]byte, error) {
	return nil, errors.New("cardwire: TransferParams does not marshal, because names and account numbers would reach logs: " +
		"RevealJSON returns what CreateTransfer sends")
}

// RevealJSON returns the JSON that CreateTransfer sends, names, identity and
// account numbers included, for an outbox. An error matches [ErrInvalidParams]:
// CreateTransfer would refuse the same.
func (p TransferParams) RevealJSON() ([]byte, error) {
	f, err := p.fields()
	if err != nil {
		return nil, err
	}
	return f.JSON(), nil
}

// UnmarshalJSON reads what RevealJSON returns, with its fields in any order, so
// that a transfer can be kept before it is sent: a name that TransferParams has no
// field for becomes one of Extra. Nothing of an earlier value is left, unless the
// string is null. What RevealJSON would not have written is [ErrUnreadable], or
// [ErrInvalidParams] where CreateTransfer refuses it.
func (p *TransferParams) UnmarshalJSON(text []byte) error {
	if p == nil {
		return errNilReceiver
	}
	c := wire.NewReader(text, false)
	defer c.Release()
	var fresh TransferParams
	null := c.Null() // which leaves p as it is, as encoding/json asks
	if !null {
		own := fresh.own()
		c.Map(func(name []byte) { fresh.read(c, own, name) })
	}
	c.End()
	if err := c.Err(); err != nil {
		return &detailError{ErrUnreadable, err.Error()}
	}
	if null {
		return nil
	}
	if _, err := fresh.fields(); err != nil {
		return err
	}
	*p = fresh
	return nil
}

// read reads the value of one member. An empty one is not sent, and so not written.
func (p *TransferParams) read(c *wire.Codec, own []transferField, member []byte) {
	name := string(member)
	if c.Kind() != '"' {
		c.Fail("text")
		return
	}
	text := c.Bytes()
	if len(text) == 0 {
		c.Fail("a text that is not empty")
		return
	}
	if i := slices.IndexFunc(own, func(f transferField) bool { return f.name == name }); i >= 0 {
		if own[i].value.UnmarshalText(text) != nil {
			c.Fail(name + " as it is sent")
		}
		return
	}
	if p.Extra == nil {
		p.Extra = map[string]string{}
	}
	p.Extra[name] = string(text)
}

var stateMembers = []wire.Member[RemittanceState]{
	{Name: "code", Required: true, Value: func(c *wire.Codec, v *RemittanceState) { c.RequiredCode(&v.Code) }},
	{Name: "name", Required: true, Value: func(c *wire.Codec, v *RemittanceState) { c.RequiredCode(&v.Name) }},
	{Name: "country", Required: true, Value: func(c *wire.Codec, v *RemittanceState) { c.RequiredCode(&v.Country) }},
	{Name: "countryStandardCode", Required: true, Value: func(c *wire.Codec, v *RemittanceState) { c.RequiredCode(&v.CountryStandardCode) }},
}

// MarshalJSON returns the state under the wire's names.
func (v RemittanceState) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, stateMembers) }

// UnmarshalJSON reads a state, as strictly as an answer.
func (v *RemittanceState) UnmarshalJSON(text []byte) error { return unmarshal(text, v, stateMembers) }

var currencyMembers = []wire.Member[RemittanceCurrency]{
	{Name: "id", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Int64(&v.ID) }},
	{Name: "payout_currency", Required: true, Value: func(c *wire.Codec, v *RemittanceCurrency) { c.ID(&v.PayoutCurrency) }},
	{Name: "transfer_type_id", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Int64(&v.TransferTypeID) }},
	{Name: "transfer_type_value", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Text(&v.TransferType) }},
	{Name: "payout_method_id", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Int64(&v.PayoutMethodID) }},
	{Name: "payout_method_value", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Text(&v.PayoutMethod) }},
	{Name: "country", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Text(&v.Country) }},
	{Name: "country_code", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Text(&v.CountryCode) }},
	{Name: "fee_rate", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.MoneyNumber(&v.FeeRate) }},
	{Name: "fixed_fee", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.MoneyNumber(&v.FixedFee) }},
	{Name: "min_quota", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.MoneyNumber(&v.MinQuota) }},
	{Name: "max_quota", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.MoneyNumber(&v.MaxQuota) }},
	{Name: "year_transfer_amount_quota", Value: func(c *wire.Codec, v *RemittanceCurrency) {
		c.MoneyNumber(&v.YearTransferAmountQuota)
	}},
}

// MarshalJSON returns the entry under the wire's names.
func (v RemittanceCurrency) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, currencyMembers) }

// UnmarshalJSON reads an entry, as strictly as an answer.
func (v *RemittanceCurrency) UnmarshalJSON(text []byte) error {
	return unmarshal(text, v, currencyMembers)
}

// The fields by which a response proves whose it is.
const (
	merchantOrderNo = "merchant_order_no"
	apiOrderNo      = "api_order_no"
)

var transferMembers = []wire.Member[Transfer]{
	{Name: merchantOrderNo, Value: func(c *wire.Codec, v *Transfer) { c.Code(&v.MerchantOrderNo) }},
	{Name: apiOrderNo, Required: true, Value: func(c *wire.Codec, v *Transfer) { serviceIDValue(c, &v.APIOrderNo) }},
	{Name: "status", Value: func(c *wire.Codec, v *Transfer) { c.Text((*string)(&v.Status)) }},
}

// MarshalJSON returns the transfer under the wire's names.
func (v Transfer) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, transferMembers) }

// UnmarshalJSON reads a transfer, as strictly as an answer.
func (v *Transfer) UnmarshalJSON(text []byte) error { return unmarshal(text, v, transferMembers) }
