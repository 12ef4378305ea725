package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/payouts"
	"github.com/cardwire/cardwire-go/payouts/internal/statement"
)

// postOrder takes an order, with the fields of a transfer by the service's names. The same again is
// the same order.
func (h *handler) postOrder(q *request) (any, error) {
	body, err := io.ReadAll(q.Body)
	var p cardwire.TransferParams
	if err != nil || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, newProblem(http.StatusBadRequest, "the body must be a transfer as JSON, of at most 64 KiB")
	}
	switch err := p.UnmarshalJSON(body); {
	case errors.Is(err, cardwire.ErrUnreadable):
		_, reason, _ := strings.Cut(err.Error(), "TransferParams: ")
		return nil, invalid("%s: each field is a string that is not empty, "+
			"and transferAmount has two decimals and is above zero, as in \"12.50\"", strings.TrimPrefix(reason, "*: "))
	case err != nil:
		return nil, err
	case p.Extra != nil: // a typo must not be a payout without what was meant
		return nil, invalid("the transfer has unknown fields")
	}
	o, err := h.svc.SubmitNow(q.ctx, p)
	if err == nil {
		q.w.Header().Set("Location", string(addressOf(o.Number)))
		writeJSON(q.w, "application/json", http.StatusAccepted, o)
	}
	return nil, err
}

// form reads the fields of a form, each at most once and by its exact name, and who sends it and why: what was
// meant otherwise must not be a payout. A field that is left out may be the service's number, without
// which an order is paid twice.
func (q *request) form(fields map[string]any) (by, why string, err error) {
	text, err := io.ReadAll(q.Body)
	form, err2 := url.ParseQuery(string(text))
	if err != nil || err2 != nil {
		return "", "", errBody
	}
	by, why, err = q.fields(form, fields)
	if err == nil && (by == "" || why == "") {
		err = errWho
	}
	return by, why, err
}

var errWho = invalid("by and why are required, for the history")

// fields reads those of a form.
func (q *request) fields(form url.Values, fields map[string]any) (by, why string, err error) {
	fields["by"], fields["why"] = &by, &why
	for key, values := range form {
		list, isList := fields[key].(*[]string)
		if isList {
			*list = values
			continue
		}
		if len(values) > 1 {
			return "", "", errBody
		}
		text := strings.TrimSpace(values[0])
		switch field := fields[key].(type) {
		case *string:
			*field = text
		case *time.Time:
			if text == "" {
				continue
			}
			if *field, err = statement.Moment(text); err != nil {
				return "", "", invalid("%s: %v", key, err)
			}
		default:
			return "", "", errBody
		}
	}
	if q.user != "" {
		by = q.user
	}
	return by, why, nil
}

// post is what somebody does to the queue.
func post(do func(ctx context.Context, by, why string) error) func(*request) (any, error) {
	return func(q *request) (any, error) {
		by, why, err := q.form(map[string]any{})
		if err == nil {
			err = do(q.ctx, by, why)
		}
		return address("./"), err
	}
}

// postResume ends the pause that a person has seen, and no other.
func (h *handler) postResume(q *request) (any, error) {
	var since time.Time
	by, why, err := q.form(map[string]any{"since": &since})
	if err != nil {
		return nil, err
	}
	if since.IsZero() {
		return nil, invalid("since is required: that of the pause to end, as GET queue has it")
	}
	return address("./"), h.svc.ResumeSince(q.ctx, since, by, why)
}

func (h *handler) postCancel(q *request) (any, error) {
	var number string
	by, why, err := q.form(map[string]any{"order": &number})
	if err != nil {
		return nil, err
	}
	return h.svc.Cancel(q.ctx, number, by, why)
}

// noCall is what a form has in place of a call, of an order without one.
const noCall = "-"

// choiceOf is an order's value in a form: its call, a space, and its number, which may have spaces too.
func choiceOf(o payouts.Order) string {
	switch {
	case o.Call != "":
		return o.Call + " " + o.Number
	case strings.Contains(o.Number, " "):
		return noCall + " " + o.Number
	}
	return o.Number
}

// chosen reads choiceOf.
func chosen(value string) (call, number string) {
	call, number, found := strings.Cut(value, " ")
	switch {
	case !found:
		return "", call
	case call == noCall:
		return "", number
	}
	return call, number
}

// resolutions reads a form of what a person found out about one order or several. isSure is false where a browser is to ask
// once more.
func (q *request) resolutions() (values []string, found payouts.Resolution, isSure bool, err error) {
	var sure string
	found.By, found.Why, err = q.form(map[string]any{
		"order": &values, "sure": &sure, "outcome": &found.Outcome, "service_id": &found.ServiceID, "as_of": &found.AsOf,
	})
	switch {
	case err != nil:
	case len(values) == 0:
		err = invalid("choose the orders first")
	case len(values) > 1 && found.ServiceID != "":
		err = invalid("service_id is only for one order that was executed")
	}
	return values, found, found.Outcome != "send_again" || sure != "" || !isBrowser(q.Request), err
}

// postResolutions records what a person found out about one order or several, each for
// itself. To pay again is asked once more, with the amounts and who gets them.
func (h *handler) postResolutions(q *request) (any, error) {
	values, found, isSure, err := q.resolutions()
	if err != nil {
		return nil, err
	}
	p := page{Template: "confirm.html", Found: found}
	var last payouts.Order
	for _, value := range values {
		var number string
		if found.Call, number = chosen(value); isSure {
			last, err = h.svc.Resolve(q.ctx, number, found)
		} else {
			err = h.askAgain(q.ctx, &p, found.Call, number)
		}
		if err != nil && len(values) == 1 {
			return nil, err
		}
		if err != nil {
			p.Failures = append(p.Failures, failure{number, h.problemOf(q, err).Detail})
		}
	}
	switch {
	case len(p.Failures) > 0:
		p.Template = "problem.html"
		p.Problem = newProblem(http.StatusConflict, "%d of %d were not recorded", len(p.Failures), len(values))
		return p, nil
	case !isSure:
		return p, nil
	case len(values) == 1:
		return last, nil
	}
	return address("./?state=unresolved"), nil
}

// askAgain puts an order on the page that asks whether it is to be paid again.
func (h *handler) askAgain(ctx context.Context, p *page, call, number string) error {
	d, err := h.svc.Details(ctx, number)
	d.Order.Call = call
	p.Orders, p.Payees = append(p.Orders, d.Order), append(p.Payees, d.Payee)
	return err
}
