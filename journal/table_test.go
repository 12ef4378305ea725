package journal_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

var start = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// at is a time of the story: a call begins at zero, sends for a minute, and is settled after eleven.
func at(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }

// intent is a call of the order M-1 that begins at zero.
func intent(call, body string) cardwire.Intent {
	return cardwire.Intent{
		Call: call, Op: cardwire.OpCreateTransfer, Reference: "M-1", BodySHA256: body, Amount: decimal.New(1250, -2),
		Currency: "EUR", Time: at(0), SendBy: at(1), SettledBy: at(11),
	}
}

// word puts what a rule returned into a word.
func word(err error) string {
	d, isDuplicate := errors.AsType[*cardwire.DuplicateIntent](err)
	word := "ok"
	switch {
	case !isDuplicate:
	case d.Reserved:
		word = "reserved"
	case d.InProgress:
		word = "in progress"
	default:
		word = d.Outcome.String()
	}
	switch {
	case errors.Is(err, cardwire.ErrOtherBody):
		return strings.TrimPrefix(word+", other body", "ok, ")
	case errors.Is(err, journal.ErrOnHold):
		return "on hold"
	case err != nil && !isDuplicate:
		return "error"
	}
	return word
}

// The table in the comment of the package is what the rules say.
func TestTheTableOfRules(t *testing.T) {
	t.Parallel()
	free := journal.Record{Intent: intent("a", "b-1"), Outcome: cardwire.OutcomeRefused, EndedAt: at(1)}
	states := []struct {
		name   string
		change func(*journal.Record)
	}{
		{"nothing", func(r *journal.Record) { *r = journal.Record{} }},
		{"refused, not sent", func(*journal.Record) {}},
		{"reserved", func(r *journal.Record) { r.Reserved = true }},
		{"closed", func(r *journal.Record) { r.Closed = true }},
		{"open", func(r *journal.Record) { r.Open, r.Outcome, r.SendBy = true, cardwire.OutcomeUnknown, at(13) }},
		{"open after SendBy", func(r *journal.Record) { r.Open, r.Outcome = true, cardwire.OutcomeUnknown }},
		{"unknown", func(r *journal.Record) { r.Outcome = cardwire.OutcomeUnknown }},
		{"executed", func(r *journal.Record) { r.Outcome = cardwire.OutcomeExecuted }},
	}
	rules := []func(r journal.Record, body string) error{
		func(r journal.Record, body string) error {
			return second(r.Begin(intent("b", body), journal.Hold{}, at(12)))
		},
		func(r journal.Record, body string) error {
			return second(r.Void(intent("b", body), journal.Hold{}, at(12)))
		},
		func(r journal.Record, body string) error {
			return second(r.Reserve(intent("b", body), journal.Hold{}, at(12)))
		},
	}
	table := fmt.Sprintf("//\t%-18s| %-12s%-24s| %-12s%-24s| %-12s%s\n", "on record", "Begin", "other body", "Void",
		"other body", "Reserve", "other body")
	for _, state := range states {
		r := free
		state.change(&r)
		line := fmt.Sprintf("//\t%-18s", state.name)
		for _, rule := range rules {
			line += fmt.Sprintf("| %-12s%-24s", word(rule(r, "b-1")), word(rule(r, "b-2")))
		}
		table += strings.TrimRight(line, " ") + "\n"
	}
	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	assert.Contains(t, string(comment), table)
}

// second is what a rule returned, without the record.
func second(_ journal.Record, err error) error { return err }
