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
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// The numeric codes with a documented meaning.
const (
	TransferTypeC2C          = "3" // TransferTypeC2C is the TransferType of a transfer from person to person.
	PayoutMethodBankTransfer = "1" // PayoutMethodBankTransfer is the PayoutMethod that pays to a bank account.
)

// RemittanceState is a country, or one of the parts of a country.
type RemittanceState struct {
	Code                string // the code of the state
	Name                string // its name
	Country             string // the country, ISO 3166-1 alpha-2
	CountryStandardCode string // the country, ISO 3166-1 alpha-3
}

var stateFields = []wire.FieldOf[RemittanceState]{
	{Name: "code", Required: true, Value: func(c *wire.Codec, v *RemittanceState) { c.Text(&v.Code, wire.Required) }},
	{Name: "name", Required: true, Value: func(c *wire.Codec, v *RemittanceState) { c.Text(&v.Name, wire.FreeRequired) }},
	{Name: "country", Required: true, Value: func(c *wire.Codec, v *RemittanceState) {
		c.Text(&v.Country, wire.Required)
	}},
	{Name: "countryStandardCode", Required: true, Value: func(c *wire.Codec, v *RemittanceState) {
		c.Text(&v.CountryStandardCode, wire.Required)
	}},
}

// MarshalJSON returns the state under the wire's names.
func (v RemittanceState) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, stateFields) }

// UnmarshalJSON reads a state, as strictly as a response.
func (v *RemittanceState) UnmarshalJSON(data []byte) error { return unmarshal(data, v, stateFields) }

// RemittanceCurrency is a currency to pay out. Its units are undocumented.
type RemittanceCurrency struct {
	ID                      int64           // the service's identifier of the entry
	PayoutCurrency          string          // the code for TransferParams.PayoutCurrency
	TransferTypeID          string          // the code for TransferParams.TransferType; "": none
	TransferType            string          // the name of the type, like C2C
	PayoutMethodID          string          // the code for TransferParams.PayoutMethod; "": none
	PayoutMethod            string          // the name of the method, like Bank Transfer
	Country                 string          // the country that is paid to, ISO 3166-1 alpha-3
	CountryCode             string          // the same, two letters
	FeeRate                 decimal.Decimal // a fee in proportion: a fraction or percent, undocumented
	FixedFee                decimal.Decimal // a fixed fee
	MinQuota                decimal.Decimal // the minimum amount of a transfer
	MaxQuota                decimal.Decimal // the maximum amount of a transfer
	YearTransferAmountQuota decimal.Decimal // the amount that can be sent in a year
}

var currencyFields = []wire.FieldOf[RemittanceCurrency]{
	{Name: "id", Value: func(c *wire.Codec, v *RemittanceCurrency) { wire.Int(c, &v.ID) }},
	{Name: "payout_currency", Required: true, Value: func(c *wire.Codec, v *RemittanceCurrency) {
		c.Text(&v.PayoutCurrency, wire.ID)
	}},
	{Name: "transfer_type_id", Value: func(c *wire.Codec, v *RemittanceCurrency) { codeValue(c, &v.TransferTypeID) }},
	{Name: "transfer_type_value", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Text(&v.TransferType, wire.Free) }},
	{Name: "payout_method_id", Value: func(c *wire.Codec, v *RemittanceCurrency) { codeValue(c, &v.PayoutMethodID) }},
	{Name: "payout_method_value", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.Text(&v.PayoutMethod, wire.Free) }},
	{Name: "country", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.String(&v.Country) }},
	{Name: "country_code", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.String(&v.CountryCode) }},
	{Name: "fee_rate", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.DecimalNumber(&v.FeeRate) }},
	{Name: "fixed_fee", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.DecimalNumber(&v.FixedFee) }},
	{Name: "min_quota", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.DecimalNumber(&v.MinQuota) }},
	{Name: "max_quota", Value: func(c *wire.Codec, v *RemittanceCurrency) { c.DecimalNumber(&v.MaxQuota) }},
	{Name: "year_transfer_amount_quota", Value: func(c *wire.Codec, v *RemittanceCurrency) {
		c.DecimalNumber(&v.YearTransferAmountQuota)
	}},
}

// MarshalJSON returns the entry under the wire's names.
func (v RemittanceCurrency) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, currencyFields) }

// UnmarshalJSON reads an entry, as strictly as a response.
func (v *RemittanceCurrency) UnmarshalJSON(data []byte) error {
	return unmarshal(data, v, currencyFields)
}

// codeValue is a code that the API sends as a number, and takes as a string. "" is null.
func codeValue(c *wire.Codec, code *string) {
	if !c.Writing {
		var n int64
		isNumber := c.Kind() != 'n'
		wire.Int(c, &n)
		*code = ifTrue(isNumber, strconv.FormatInt(n, 10))
		return
	}
	n, err := strconv.ParseInt(*code, 10, 64)
	if err != nil {
		c.Append('n', 'u', 'l', 'l')
		return
	}
	wire.Int(c, &n)
}

// TransferParams describes a transfer. Empty fields are not sent; which are required is
// undocumented. It prints order number, currency, amount.
type TransferParams struct {
	// MerchantOrderNo is the caller's order number, of at most 128 bytes, and required. Use
	// a new one for each transfer, and the same one for each retry.
	MerchantOrderNo               string
	PayoutCurrency                string // the currency to pay out, from RemittanceCurrency
	TransferType                  string // TransferTypeC2C, or a TransferTypeID
	PayoutMethod                  string // PayoutMethodBankTransfer, or a PayoutMethodID
	SenderBeneficiaryRelationship string // a numeric code
	// TransferAmount must be greater than zero and have at most two decimal places: it is
	// never rounded. Whether it is in the currency of the payout or of the wallet is
	// undocumented: ask first.
	TransferAmount            decimal.Decimal
	SenderSourceOfFund        string            // a numeric code
	PurposeOfRemittance       string            // a numeric code
	SenderFirstName           string            // the sender's first name
	SenderLastName            string            // the sender's last name
	SenderGender              string            // an undocumented value
	SenderMobileNumber        string            // the sender's telephone number
	SenderIDType              string            // a numeric code
	SenderIDNumber            string            // the number of the sender's document
	SenderDateOfBirth         Date              // the sender's day of birth; zero: not sent
	SenderNationality         string            // a country code of two letters
	SenderIDIssueCountry      string            // the numeric code of a country
	SenderCountry             string            // a country code of two letters
	SenderAddress             string            // the sender's address in one string
	ReceiverNativeFirstName   string            // the first name in the receiver's script
	ReceiverNativeLastName    string            // the last name in the receiver's script
	ReceiverIDType            string            // a numeric code
	ReceiverIDNumber          string            // the number of the receiver's document
	ReceiverMobileNumber      string            // the receiver's telephone number
	ReceiverBankAccountNumber string            // the account to pay to, of at most 128 visible bytes
	Extra                     map[string]string // further fields that the service requires, by wire name
}

// TransferStatus is a transfer's state. An undocumented value is kept as sent.
type TransferStatus string

// TransferWaitProcess is the state of a transfer that was just created.
const TransferWaitProcess TransferStatus = "wait_process"

// Transfer is the order that CreateTransfer created.
type Transfer struct {
	MerchantOrderNo string         // the caller's order number as the service returns it
	APIOrderNo      string         // the service's order number, of at most 128 visible bytes
	Status          TransferStatus // the state of the order
}

// The fields that prove to which order a response belongs.
const (
	merchantOrderNo = "merchant_order_no"
	apiOrderNo      = "api_order_no"
)

var transferFields = []wire.FieldOf[Transfer]{
	{Name: merchantOrderNo, Value: func(c *wire.Codec, v *Transfer) { c.Text(&v.MerchantOrderNo, wire.Code) }},
	{Name: apiOrderNo, Required: true, Value: func(c *wire.Codec, v *Transfer) { serviceIDValue(c, &v.APIOrderNo) }},
	{Name: "status", Value: func(c *wire.Codec, v *Transfer) { c.String((*string)(&v.Status)) }},
}

// MarshalJSON returns the transfer under the wire's names.
func (v Transfer) MarshalJSON() ([]byte, error) { return wire.Marshal(&v, transferFields) }

// UnmarshalJSON reads a transfer, as strictly as a response.
func (v *Transfer) UnmarshalJSON(data []byte) error { return unmarshal(data, v, transferFields) }

// ListRemittanceStates returns countries and their parts. It calls GET /remittance/states.
func (c *Client) ListRemittanceStates(ctx context.Context, opts ...CallOption) ([]RemittanceState, error) {
	return orZero(do(ctx, c, get(OpListRemittanceStates, "/remittance/states", rows(stateFields)), opts))
}

// ListRemittanceCurrencies returns what can be paid out. It calls GET /remittance/currency.
func (c *Client) ListRemittanceCurrencies(ctx context.Context, opts ...CallOption) ([]RemittanceCurrency, error) {
	return orZero(do(ctx, c, get(OpListRemittanceCurrencies, "/remittance/currency", rows(currencyFields)), opts))
}

// CreateTransfer sends money. It calls POST /remittance/transfer once, within WithTimeout even
// if ctx allows more; do with the order what [NextStep] returns. A success means that the
// service accepted it. No operation of the API reads a transfer back: after
// OutcomeUnknown, ask the service, and do not send the transfer under another number.
func (c *Client) CreateTransfer(ctx context.Context, p TransferParams, opts ...CallOption) (*Transfer, error) {
	fields, err := p.fields()
	return do(ctx, c, operation[Transfer]{
		spec: spec{
			name: OpCreateTransfer, method: http.MethodPost, path: "/remittance/transfer", class: transport.Write,
			body: jsonBody, fields: fields, invalid: err, journal: true,
			reference: accepted(check.Given, p.MerchantOrderNo), amount: p.TransferAmount, currency: p.PayoutCurrency,
			proves: func(d *wire.Codec) bool { return provesTransfer(d, p.MerchantOrderNo) },
		},
		read: object(transferFields, wire.Whole),
		verify: func(t *Transfer) error {
			if t.MerchantOrderNo != "" && t.MerchantOrderNo != p.MerchantOrderNo {
				return detailed(ErrUnreadable, "the response is about a different order")
			}
			return nil
		},
		record: func(t *Transfer) (string, string) { return t.APIOrderNo, accepted(check.Visible, string(t.Status)) },
	}, opts)
}

// Validate returns what CreateTransfer would refuse before it sends anything: an [*Error] with
// [ErrInvalidParams]. It closes no order number.
func (p TransferParams) Validate() error {
	_, err := p.fields()
	return unsendable(err)
}

// unsendable returns the error of a transfer that cannot be sent, or nil.
func unsendable(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: OpCreateTransfer, Outcome: OutcomeNotSent, Err: err}
}

// Digest returns what Intent.BodySHA256 is for p, for a journal's Reserve: a hash that is the same
// in every release. That of invalid parameters differs from those of all valid ones.
func (p TransferParams) Digest() string { return digest(p.fields()) }

// provesTransfer reports whether data that is no Transfer still proves that the order was
// accepted: it names the order, or has the service's number for it, and names no other.
func provesTransfer(d *wire.Codec, sent string) bool {
	if d.Kind() != '{' {
		return false
	}
	named, numbered, other := false, false, false
	d.Map(func(name []byte) {
		field, kind := string(name), d.Kind()
		value := scalar(d)
		switch {
		case field == merchantOrderNo && (kind == '{' || kind == '[' || kind == 't' || kind == 'f'):
			other = true // it names another order
		case field == merchantOrderNo && value != "":
			named, other = value == sent, value != sent
		case field == apiOrderNo:
			numbered = isServiceID(value)
		}
	})
	return (named || numbered) && !other
}

// fields returns what is sent, in the documented order, or why it must not be sent.
func (p *TransferParams) fields() (wire.Fields, error) {
	own := p.own()
	f := make(wire.Fields, 0, len(own)+len(p.Extra))
	var wrong error
	for _, field := range own {
		sent := field.value.String()
		wrong = cmp.Or(wrong, field.check(field.param, sent))
		f.Add(field.name, sent)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		f.Add(name, p.Extra[name])
		wrong = cmp.Or(wrong, checkExtra(own, name, p.Extra[name]))
	}
	return f, checked(wrong)
}

// transferField is a field of TransferParams: its name on the wire and its own, a pointer
// to its value, which reads and writes the form that is sent, and what is wrong with it.
type transferField struct {
	name, param string
	value       wire.Textual
	check       func(param, sent string) error
}

// own returns all fields of TransferParams but Extra, also empty ones.
func (p *TransferParams) own() []transferField {
	text := func(field *string) wire.Textual { return (*wire.Plain)(field) }
	birthday := func(param, _ string) error { return checkDate(param, p.SenderDateOfBirth) }
	return []transferField{
		{"merchantOrderNo", "MerchantOrderNo", text(&p.MerchantOrderNo), check.Given},
		{"payoutCurrency", "PayoutCurrency", text(&p.PayoutCurrency), check.Currency},
		{"transferType", "TransferType", text(&p.TransferType), check.Digits},
		{"payoutMethod", "PayoutMethod", text(&p.PayoutMethod), check.Digits},
		{
			"senderBeneficiaryRelationship", "SenderBeneficiaryRelationship",
			text(&p.SenderBeneficiaryRelationship), check.Digits,
		},
		{"transferAmount", "TransferAmount", (*wire.TwoPlaces)(&p.TransferAmount), p.checkAmount},
		{"senderSourceOfFund", "SenderSourceOfFund", text(&p.SenderSourceOfFund), check.Digits},
		{"purposeOfRemittance", "PurposeOfRemittance", text(&p.PurposeOfRemittance), check.Digits},
		{"senderFirstName", "SenderFirstName", text(&p.SenderFirstName), check.UTF8},
		{"senderLastName", "SenderLastName", text(&p.SenderLastName), check.UTF8},
		{"senderGender", "SenderGender", text(&p.SenderGender), check.UTF8},
		{"senderMobileNumber", "SenderMobileNumber", text(&p.SenderMobileNumber), check.UTF8},
		{"senderIdType", "SenderIDType", text(&p.SenderIDType), check.Digits},
		{"senderIdNumber", "SenderIDNumber", text(&p.SenderIDNumber), check.UTF8},
		{"senderDateOfBirth", "SenderDateOfBirth", &p.SenderDateOfBirth, birthday},
		{"senderNationality", "SenderNationality", text(&p.SenderNationality), check.Country},
		{"senderIdIssueCountry", "SenderIDIssueCountry", text(&p.SenderIDIssueCountry), check.Digits},
		{"senderCountry", "SenderCountry", text(&p.SenderCountry), check.Country},
		{"senderAddress", "SenderAddress", text(&p.SenderAddress), check.UTF8},
		{"receiverNativeFirstName", "ReceiverNativeFirstName", text(&p.ReceiverNativeFirstName), check.UTF8},
		{"receiverNativeLastName", "ReceiverNativeLastName", text(&p.ReceiverNativeLastName), check.UTF8},
		{"receiverIdType", "ReceiverIDType", text(&p.ReceiverIDType), check.Digits},
		{"receiverIdNumber", "ReceiverIDNumber", text(&p.ReceiverIDNumber), check.UTF8},
		{"receiverMobileNumber", "ReceiverMobileNumber", text(&p.ReceiverMobileNumber), check.UTF8},
		{"receiverBankAccountNumber", "ReceiverBankAccountNumber", text(&p.ReceiverBankAccountNumber), check.Visible},
	}
}

func (p *TransferParams) checkAmount(name, sent string) error {
	switch v := p.TransferAmount; {
	case v.Sign() <= 0:
		return errors.New(name + " must be greater than zero")
	case sent == "" && v.Exponent() >= -2:
		return errors.New(name + " is too large")
	case sent == "":
		return errors.New(name + " has more than two decimal places")
	}
	return nil
}

func checkExtra(own []transferField, name, value string) error {
	switch {
	case name == "":
		return errors.New("Extra contains an empty name")
	case check.Text("", name) != nil:
		return errors.New("Extra contains a name with a control character or invalid UTF-8")
	case check.UTF8("", value) != nil:
		return errors.New("Extra contains a value that is not valid UTF-8")
	case slices.ContainsFunc(own, func(f transferField) bool { return strings.EqualFold(f.name, name) }):
		return errors.New("Extra contains the name of a field of TransferParams")
	}
	return nil
}

// Format writes what LogValue returns, whatever the verb.
func (p TransferParams) Format(f fmt.State, _ rune) { formatLogged(f, "TransferParams", p) }

// LogValue returns the order number, the currency and the amount.
func (p TransferParams) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("MerchantOrderNo", p.MerchantOrderNo),
		slog.String("PayoutCurrency", p.PayoutCurrency),
		loggedAmount("TransferAmount", p.TransferAmount),
	)
}

// MarshalJSON returns an error: loggers marshal anything. See RevealJSON.
func (p TransferParams) MarshalJSON() ([]byte, error) {
	return nil, errors.New("cardwire: TransferParams cannot be marshaled, " +
		"because names and account numbers would reach logs: use RevealJSON")
}

// RevealJSON returns what CreateTransfer sends, or the error of Validate.
func (p TransferParams) RevealJSON() ([]byte, error) {
	f, err := p.fields()
	if err != nil {
		return nil, unsendable(err)
	}
	return f.JSON(), nil
}

// UnmarshalJSON reads what RevealJSON returns, in any order, into a new value; other names
// become Extra. JSON that RevealJSON would not write is [ErrUnreadable], or
// [ErrInvalidParams] if CreateTransfer would refuse it.
func (p *TransferParams) UnmarshalJSON(data []byte) error {
	if p == nil {
		return errNilReceiver
	}
	c := wire.NewReader(data, false)
	var fresh TransferParams
	null := c.Null() // leaves p unchanged, as encoding/json requires
	if !null {
		own := fresh.own()
		c.Map(func(name []byte) { fresh.read(c, own, name) })
	}
	c.End()
	err := cannotUnmarshal[TransferParams](c.Err())
	if null || err != nil {
		return unsendable(err)
	}
	if err = fresh.Validate(); err == nil {
		*p = fresh
	}
	return err
}

// read reads the value of one field. It refuses "", which RevealJSON does not write.
func (p *TransferParams) read(c *wire.Codec, own []transferField, field []byte) {
	name := string(field)
	i := slices.IndexFunc(own, func(f transferField) bool { return f.name == name })
	which := ifTrue(i >= 0, name+" as ") // any other name may be payload
	if c.Kind() != '"' {
		c.Fail(which + "a string")
		return
	}
	text := c.Bytes(wire.Text)
	switch {
	case len(text) == 0:
		c.Fail(which + "a string that is not empty")
	case i >= 0 && own[i].value.UnmarshalText(text) != nil:
		c.Fail(name + " in the form that is sent")
	case i < 0 && p.Extra == nil:
		p.Extra = map[string]string{name: string(text)}
	case i < 0:
		p.Extra[name] = string(text)
	}
}
