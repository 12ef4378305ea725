package main

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// unpublished is what is known of most numeric codes.
const unpublished = "A code of digits. The API does not publish them: ask the service for its list."

// transferFields are those of the form, named like the fields of TransferParams. The
// codes that the API publishes become options.
var transferFields = []field{
	{Legend: "Payment", Name: "MerchantOrderNo", Label: "Order number", Required: true, ReadOnly: true, Hint: "One number, one transfer: it is never sent twice."},
	{Name: "PayoutCurrency", Label: "Payout currency", Required: true, Hint: "A code in three letters, as in EUR: one that the service pays out."},
	{Name: "TransferAmount", Label: "Transfer amount", Required: true, Mode: "decimal", Hint: "At most two decimal places, as in 1250.00, within the quotas below."},
	{Name: "TransferType", Label: "Transfer type", Hint: "A code of the service: 3 is C2C."},
	{Name: "PayoutMethod", Label: "Payout method", Hint: "A code of the service: 1 is Bank Transfer."},
	{Name: "SenderBeneficiaryRelationship", Label: "Relationship to receiver", Mode: "numeric", Hint: unpublished},
	{Name: "SenderSourceOfFund", Label: "Source of funds", Mode: "numeric", Hint: unpublished},
	{Name: "PurposeOfRemittance", Label: "Purpose", Mode: "numeric", Hint: unpublished},
	{Legend: "Sender", Name: "SenderFirstName", Label: "Sender first name", Hint: "As in the document."},
	{Name: "SenderLastName", Label: "Sender last name", Hint: "As in the document."},
	{Name: "SenderGender", Label: "Sender gender", Hint: "The API does not publish the words for it: ask the service."},
	{Name: "SenderMobileNumber", Label: "Sender mobile number", Mode: "tel", Hint: "The API does not publish the form: ask the service."},
	{Name: "SenderIDType", Label: "Sender ID type", Mode: "numeric", Hint: unpublished},
	{Name: "SenderIDNumber", Label: "Sender ID number", Hint: "As in the document."},
	{Name: "SenderDateOfBirth", Label: "Sender date of birth", Kind: "date", Hint: "A date, as in 1990-05-17."},
	{Name: "SenderNationality", Label: "Sender nationality", Hint: "A country in two letters, as in GB."},
	{Name: "SenderIDIssueCountry", Label: "Sender ID issue country", Mode: "numeric", Hint: unpublished},
	{Name: "SenderCountry", Label: "Sender country", Hint: "A country in two letters, as in GB."},
	{Name: "SenderAddress", Label: "Sender address", Hint: "All of it, in one line."},
	{Legend: "Receiver", Name: "ReceiverNativeFirstName", Label: "Receiver native first name", Hint: "In the receiver’s own script."},
	{Name: "ReceiverNativeLastName", Label: "Receiver native last name", Hint: "In the receiver’s own script."},
	{Name: "ReceiverIDType", Label: "Receiver ID type", Mode: "numeric", Hint: unpublished},
	{Name: "ReceiverIDNumber", Label: "Receiver ID number", Hint: "As in the document."},
	{Name: "ReceiverMobileNumber", Label: "Receiver mobile number", Mode: "tel", Hint: "The API does not publish the form: ask the service."},
	{Name: "ReceiverBankAccountNumber", Label: "Receiver bank account number", Hint: "As the receiver’s bank writes it."},
}

// transferForm makes an order number with each form. It comes back with it, so
// that a form that is sent twice is still one order.
func (o *office) transferForm(r *http.Request) (page, error) {
	if r.Form.Has("said") {
		return o.result(r)
	}
	return o.transferPage(r.Context(), page{Form: url.Values{
		"MerchantOrderNo": {newOrder()}, "TransferType": {cardwire.TransferTypeC2C}, "PayoutMethod": {cardwire.PayoutMethodBankTransfer},
	}})
}

func newOrder() string { return "bo-" + strings.ToLower(rand.Text()) }

// transferPage shows the form, also where the service's currencies cannot be
// read: what was put in must not be lost.
func (o *office) transferPage(ctx context.Context, p page) (page, error) {
	currencies, err := o.client.ListRemittanceCurrencies(ctx)
	if err != nil && p.Said == nil {
		p.Said = o.judgeRead(ctx, err)
	}
	p.name, p.Fields, p.Data = "transfer", slices.Clone(transferFields), currencies
	for i := range p.Fields {
		f := &p.Fields[i]
		for _, c := range currencies {
			offer := map[string]option{
				"PayoutCurrency": {c.PayoutCurrency, c.PayoutCurrency},
				"TransferType":   coded(c.TransferTypeID, c.TransferType),
				"PayoutMethod":   coded(c.PayoutMethodID, c.PayoutMethod),
			}[f.Name]
			if offer.Value != "" && !slices.Contains(f.Options, offer) {
				f.Options = append(f.Options, offer)
			}
		}
	}
	return p, nil
}

func coded(id int64, name string) option {
	code := strconv.FormatInt(id, 10)
	return option{code, code + ": " + name}
}

// checkTransfer keeps what was put in, to be confirmed on a page of its own.
func (o *office) checkTransfer(r *http.Request) (page, error) {
	if _, faults := readTransfer(r.PostForm); len(faults) > 0 {
		return o.transferPage(r.Context(), page{Form: r.PostForm, Faults: faults})
	}
	return page{to: "/transfers/confirm", Said: &said{Kind: draft, Form: r.PostForm}}, nil
}

// draft is the kind of a transfer that is not confirmed yet.
const draft = "draft"

// confirmTransfer shows what will be sent, and what the service charges for it.
func (o *office) confirmTransfer(r *http.Request) (page, error) {
	token := r.Form.Get("said")
	s := o.results.find(token)
	if s == nil || s.Form == nil {
		return notice("no-draft", http.StatusNotFound), nil
	}
	params, _ := readTransfer(s.Form)
	p := page{name: "confirm"}
	fees, err := o.client.ListRemittanceCurrencies(r.Context())
	if err != nil {
		p.Said = o.judgeRead(r.Context(), err)
	}
	fees = slices.DeleteFunc(fees, func(c cardwire.RemittanceCurrency) bool { return c.PayoutCurrency != params.PayoutCurrency })
	p.Data = map[string]any{"Token": token, "Transfer": params, "Fees": fees}
	return p, nil
}

// sendTransfer sends what was confirmed.
func (o *office) sendTransfer(r *http.Request) (page, error) {
	confirmed := o.results.find(r.PostForm.Get("said"))
	if confirmed == nil || confirmed.Form == nil {
		return notice("no-draft", http.StatusNotFound), nil
	}
	params, _ := readTransfer(confirmed.Form)
	transfer, err := o.client.CreateTransfer(r.Context(), params)
	s := judgeWrite("The transfer", err)
	switch s.Step {
	case cardwire.StepDone:
		if transfer != nil {
			s.Status, s.Reference, s.ServiceID = string(transfer.Status), transfer.MerchantOrderNo, transfer.APIOrderNo
		}
	case cardwire.StepFail: // a corrected one is another transfer
		s.Form = maps.Clone(confirmed.Form)
		s.Form.Set("MerchantOrderNo", newOrder())
	case cardwire.StepRetry, cardwire.StepWait: // an earlier click may have sent it, so the number stays
		s.Form = confirmed.Form
	}
	return page{to: "/transfers", Said: s}, nil
}

// readTransfer reads the form into the fields of the same names. Whether one can be
// sent is the SDK's to say, which names one at a time: so each is asked about alone,
// beside harmless values of those that must not be empty.
func readTransfer(form url.Values) (p cardwire.TransferParams, faults map[string]string) {
	faults = map[string]string{}
	for _, f := range transferFields {
		if err := set(&p, f.Name, form.Get(f.Name)); err != nil {
			faults[f.Name] = err.Error()
			continue
		}
		alone := cardwire.TransferParams{MerchantOrderNo: "x", TransferAmount: decimal.NewFromInt(1)}
		_ = set(&alone, f.Name, form.Get(f.Name))
		if err := alone.Validate(); err != nil {
			_, faults[f.Name] = problem(err)
		}
	}
	return p, faults
}

// set reads an input into the field of that name. The error follows the input's label.
func set(params any, name, value string) (err error) {
	value = strings.TrimSpace(value)
	switch field := reflect.ValueOf(params).Elem().FieldByName(name).Addr().Interface().(type) {
	case *string:
		*field = value
	case *decimal.Decimal:
		if *field, err = decimal.NewFromString(value); err != nil || strings.ContainsAny(value, "eE") { // it takes 1e9
			return errors.New("must be an amount such as 1250.00")
		}
	case *cardwire.Date:
		if *field, err = cardwire.ParseDate(value); err != nil && value != "" {
			return errors.New("is not a valid date, as in 1990-05-17")
		}
	case **cardwire.CardStatus:
		if value == "" {
			return nil
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return errors.New("must be one of the list")
		}
		*field = new(cardwire.CardStatus(n))
	}
	return nil
}
