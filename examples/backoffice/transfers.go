package main

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// The fields of a transfer that are not plain text, or need a word of explanation.
// All others are inputs by their names in Go.
var transferInputs = map[string]input{
	"MerchantOrderNo":               {Label: "Order number", ReadOnly: true, Required: true, Hint: "One number, one transfer: it is never sent twice."},
	"PayoutCurrency":                {Kind: "select", Required: true, Options: []option{{"", "choose"}}},
	"TransferType":                  {Kind: "select", Options: []option{{"", "choose"}, {cardwire.TransferTypeC2C, "C2C"}}},
	"PayoutMethod":                  {Kind: "select", Options: []option{{"", "choose"}, {cardwire.PayoutMethodBankTransfer, "Bank transfer"}}},
	"TransferAmount":                {Mode: "decimal", Required: true, Hint: "At most two decimals, like 1250.00."},
	"SenderBeneficiaryRelationship": {Label: "Relationship to receiver", Mode: "numeric", Hint: code},
	"SenderSourceOfFund":            {Label: "Source of funds", Mode: "numeric", Hint: code},
	"PurposeOfRemittance":           {Label: "Purpose", Mode: "numeric", Hint: code},
	"SenderIDType":                  {Mode: "numeric", Hint: code},
	"SenderDateOfBirth":             {Kind: "date"},
	"SenderNationality":             {Hint: letters},
	"SenderIDIssueCountry":          {Mode: "numeric", Hint: code},
	"SenderCountry":                 {Hint: letters},
	"ReceiverIDType":                {Mode: "numeric", Hint: code},
}

const (
	code    = "A numeric code."
	letters = "Two letters, like GB."
)

// transferForm makes an order number with each form. It comes back with it, so
// that a form that is sent twice is still one order.
func (o *office) transferForm(w http.ResponseWriter, r *http.Request) {
	o.showTransfer(w, r, http.StatusOK, nil, filledTransfer(url.Values{
		"MerchantOrderNo": {newOrder()},
		"TransferType":    {cardwire.TransferTypeC2C}, "PayoutMethod": {cardwire.PayoutMethodBankTransfer},
	}))
}

func newOrder() string { return "bo-" + strings.ToLower(rand.Text()) }

// filledTransfer makes an input of each field but Extra: those that are always
// needed first, otherwise in their order.
func filledTransfer(values url.Values) []*input {
	var form []input
	for _, f := range reflect.VisibleFields(reflect.TypeFor[cardwire.TransferParams]()) {
		if f.Type.Kind() != reflect.Map {
			in := transferInputs[f.Name]
			in.Name = f.Name
			form = append(form, in)
		}
	}
	slices.SortStableFunc(form, func(a, b input) int { return map[bool]int{true: 1}[b.Required] - map[bool]int{true: 1}[a.Required] })
	return inputs(values, form...)
}

// showTransfer shows the form, also where the service's currencies cannot be
// read: what was put in must not be lost.
func (o *office) showTransfer(w http.ResponseWriter, r *http.Request, status int, s *said, form []*input) {
	currencies, err := o.client.ListRemittanceCurrencies(r.Context())
	if err != nil && s == nil {
		status, s = judge(ofReads, "", err)
	}
	for _, in := range form {
		for _, c := range currencies {
			if in.Name == "PayoutCurrency" {
				in.offer(c.PayoutCurrency)
			}
		}
		in.offer(in.Value)
	}
	o.show(w, r, status, "transfer", page{Title: "New transfer", Nav: "transfers", Said: s, Inputs: form, Data: currencies})
}

func (o *office) transfer(w http.ResponseWriter, r *http.Request) {
	if !o.readForm(w, r) {
		return
	}
	form := filledTransfer(r.PostForm)
	params, ok := readTransfer(form)
	if !ok {
		o.showTransfer(w, r, http.StatusUnprocessableEntity, nil, form)
		return
	}
	transfer, err := o.client.CreateTransfer(r.Context(), params)
	if err == nil {
		o.tell(w, r, http.StatusOK, &said{Kind: "done", What: "The transfer", Status: string(transfer.Status), Reference: transfer.MerchantOrderNo},
			option{transfer.APIOrderNo, "The service's order number"})
		return
	}
	status, s := judge(ofWrites, "The transfer", err)
	switch s.Kind {
	case "refused":
		form[0].Value = newOrder() // it did not happen, and the journal keeps a number to its first body
		o.showTransfer(w, r, status, s, form)
	case "not-sent": // this time: an earlier click of this form may have sent it, so the number stays
		o.showTransfer(w, r, status, s, form)
	default:
		o.tell(w, r, status, s)
	}
}

// readTransfer reads the form into the fields of the same names, and puts beside
// each input what is wrong with it.
func readTransfer(form []*input) (cardwire.TransferParams, bool) {
	var p cardwire.TransferParams
	good := true
	for _, in := range form {
		if err := set(&p, in.Name, in.Value); err != nil {
			in.Error, good = in.Label+" "+err.Error()+".", false
		}
	}
	return p, check(p, form) && good
}

// amountText is a plain number: decimal.NewFromString takes 1e9 as well.
var amountText = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,15})?$`)

// set reads one field. Whether it can be sent is the SDK's to say.
func set(p *cardwire.TransferParams, name, text string) (err error) {
	switch name {
	case "TransferAmount":
		if !amountText.MatchString(text) {
			return errors.New("is not an amount like 1250.00")
		}
		p.TransferAmount, err = decimal.NewFromString(text)
	case "SenderDateOfBirth":
		p.SenderDateOfBirth = cardwire.Date{}
		if text != "" {
			p.SenderDateOfBirth, err = cardwire.ParseDate(text)
		}
		if err != nil {
			return errors.New("is not a day like 1990-05-17")
		}
	default:
		reflect.ValueOf(p).Elem().FieldByName(name).SetString(text)
	}
	return err
}

// harmless are values of the fields that must not be empty.
var harmless = map[string]string{"MerchantOrderNo": "x", "TransferAmount": "1"}

// check asks the SDK what it would refuse. It names one field at a time: that is
// replaced by something that it takes, until it has no more to say.
func check(p cardwire.TransferParams, form []*input) bool {
	good := true
	for range form {
		_, err := p.MarshalJSON()
		if err == nil {
			return good
		}
		good = false
		if !blame(form, err) {
			return false
		}
		name, _ := problem(err)
		_ = set(&p, name, harmless[name])
	}
	return good
}
