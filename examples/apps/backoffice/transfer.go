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
	p.name, p.Fields, p.Data = "transfer", slices.Clone(forms["transfer"]), currencies
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

func coded(code, name string) option { return option{code, code + ": " + name} }

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
	for _, f := range forms["transfer"] {
		alone := cardwire.TransferParams{MerchantOrderNo: "x", TransferAmount: decimal.NewFromInt(1)}
		if err := set(&p, f.Name, form.Get(f.Name)); err != nil {
			faults[f.Name] = err.Error()
		} else if f.Required && strings.TrimSpace(form.Get(f.Name)) == "" {
			faults[f.Name] = "is missing"
		} else if err := errors.Join(set(&alone, f.Name, form.Get(f.Name)), alone.Validate()); err != nil {
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
