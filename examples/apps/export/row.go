package main

import (
	"regexp"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
)

// columns are those of the file, and how a card fills them. The first identifies it.
var columns = []struct {
	name string
	text func(*cardwire.Card) string
}{
	{"id", func(c *cardwire.Card) string { return harmless(c.ID) }},
	{"trade_id", func(c *cardwire.Card) string { return harmless(c.TradeID) }},
	{"label", func(c *cardwire.Card) string { return harmless(c.Label) }},
	{"bin", func(c *cardwire.Card) string { return harmless(c.CardBIN) }},
	{"number", func(c *cardwire.Card) string { return c.Number.Masked() }},
	{"expiry", func(c *cardwire.Card) string { return c.Expiry.String() }},
	{"status", func(c *cardwire.Card) string { return c.Status.String() }},
	{"currency", func(c *cardwire.Card) string { return harmless(c.Currency) }},
	{"available", func(c *cardwire.Card) string { return exact(c.Available) }},
	{"pending", func(c *cardwire.Card) string { return exact(c.Pending) }},
	{"frozen", func(c *cardwire.Card) string { return exact(c.Frozen) }},
	{"fee", func(c *cardwire.Card) string { return exact(c.Fee) }},
	{"holder", func(c *cardwire.Card) string { return harmless(c.HolderUsername) }},
	{"email", func(c *cardwire.Card) string { return harmless(c.HolderEmail) }},
	{"created", func(c *cardwire.Card) string { return c.CreateTime.String() }},
	{"updated", func(c *cardwire.Card) string { return c.UpdateTime.String() }},
	{"remark", func(c *cardwire.Card) string { return harmless(c.Remark) }},
}

// names is the first row.
func names() []string {
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = column.name
	}
	return row
}

func rowOf(c *cardwire.Card) []string {
	row := make([]string, len(columns))
	for i, column := range columns {
		row[i] = column.text(c)
	}
	return row
}

// exact writes an amount with the scale that was sent: 1.500 has three digits.
func exact(d decimal.Decimal) string { return d.StringFixed(max(-d.Exponent(), 0)) }

var (
	// cells are what a spreadsheet splits a string into, whatever separators it is told to use.
	cells = regexp.MustCompile(`[^;|\t\r\n]*[;|\t\r\n]?`)
	// formula matches a cell that a spreadsheet may calculate, even after quotation marks and
	// invisible characters, or that begins with what is removed when the file is read.
	formula = regexp.MustCompile(`^[\s\pZ\pC"]*[=+@'＝＋＠﹦﹢﹫⁼⁺₌₊﬩\p{Pd}−⁻₋]|^[\t\r\n]`)
)

// harmless keeps spreadsheets from calculating a cardholder's string: it puts an apostrophe
// before each cell that may be taken for a formula. Different strings stay different, and each
// is read back as it was written: a line feed never follows a carriage return.
func harmless(text string) string {
	return cells.ReplaceAllStringFunc(text, func(cell string) string {
		if formula.MatchString(cell) {
			return "'" + cell
		}
		return cell
	})
}
