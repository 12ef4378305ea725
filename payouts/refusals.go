package payouts

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go"
)

// So many orders that are refused alike, and none accepted between, are no order's fault: an empty wallet would close all.
const (
	fewAlike    = 3
	alikeWithin = 10 * time.Minute
)

// checkRefusals stops payments until a person resumes, if the refusal of an order that is on record now is one of a few
// that are alike: of orders of different receivers, or of any where nobody knows what the words mean. It counts what all
// replicas recorded, by the journal's clock, since an order was accepted, or a person resumed.
func (s *Service) checkRefusals(ctx context.Context, o order, words string, e cardwire.Error) error {
	mine, err := s.find(ctx, s.db, o.Number)
	if err != nil {
		return err
	}
	const accepted = `NOT EXISTS (SELECT 1 FROM @intents i WHERE i.op = 'CreateTransfer' AND i.state = 'executed' AND i.proved
		AND i.ended_at `
	from, until := mine.ChangedAt.Add(-alikeWithin), mine.ChangedAt.Add(alikeWithin) // of another, whose words come first
	others, err := s.read(ctx, s.db, `order_no IN (SELECT order_no FROM @payouts WHERE tried_at > $2) AND state = $3
	AND note = (SELECT note FROM @intents WHERE op = 'CreateTransfer' AND reference = $1) AND changed_at BETWEEN $4 AND $5
	AND `+accepted+`BETWEEN changed_at AND $6) AND `+accepted+`BETWEEN $6 AND changed_at)
	AND NOT EXISTS (SELECT 1 FROM @payouts_control c WHERE c.resumed >= changed_at)
ORDER BY changed_at DESC LIMIT 100`, o.Number, s.moment(from.Add(-alikeWithin)), mine.State, s.moment(from), s.moment(until),
		s.moment(mine.ChangedAt))
	if err != nil {
		return err
	}
	alike := map[string]bool{} // the receivers, or the orders
	for _, o := range others {
		if gist(o, mine) == gist(mine, o) {
			alike[o.receiver()] = true
		}
	}
	if len(alike) < fewAlike {
		return nil
	}
	_, err = s.pause(ctx, pause{Kind: refused, Why: whyRefused(e, masked(words, mine.Body))})
	return err
}

// whyRefused is what people are told of orders that were refused alike, with the service's words.
func whyRefused(e cardwire.Error, words string) string {
	what := fmt.Sprintf("HTTP %d, code %d, %s", e.HTTPStatus, e.Code, words)
	if e.Outcome == cardwire.OutcomeUnknown {
		return fmt.Sprintf("%d orders in a row are unresolved for the same words (%s): if they mean that nothing was executed "+
			"add them to RefusedMessages, or ask the service, then resume", fewAlike, what)
	}
	return fmt.Sprintf("%d orders in a row, of different receivers, were refused for the same reason (%s): "+
		"check the balance and the account, or ask the service, then resume", fewAlike, what)
}

var amountOfDigits = regexp.MustCompile(`#(?:[.,'’ ]?#)*`)

// gist is why an order was refused, without what is of it or of the other one, and without amounts.
func gist(o, other order) string {
	return amountOfDigits.ReplaceAllString(masked(masked(o.Reason+" "+o.Words, o.Body), other.Body), "#")
}

// receiver is the account that an order is for. One that is unresolved, or has no account, is its own.
func (o order) receiver() string {
	var p cardwire.TransferParams
	_ = p.UnmarshalJSON([]byte(o.Body)) // what was purged is no transfer
	account := strings.Join(wordsOfText.FindAllString(fold(p.ReceiverBankAccountNumber), -1), "")
	if account == "" || o.State == StateUnresolved {
		return "order " + o.Number
	}
	return account
}
