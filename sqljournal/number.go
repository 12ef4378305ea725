package sqljournal

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// changedForms are what a spreadsheet may make of an order's number, each as plainForm writes it: of fifteen digits and
// zeros, or as a float64 has it. A listed number of such a form proves nothing: it may be this order's.
func changedForms(order string) []string {
	plain := plainForm(order)
	forms := []string{plain}
	if len(plain) <= exactDigits || !isDigits(plain) {
		return forms
	}
	zeros := strings.Repeat("0", len(plain)-exactDigits)
	add := func(form string) {
		if form = plainForm(form); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	add(plain[:exactDigits] + zeros)
	f, _ := strconv.ParseFloat(plain, 64) // at most 128 digits are no infinity
	exact, _ := big.NewFloat(f).Int(nil)
	add(exact.String())
	for _, digits := range []int{-1, exactDigits - 1, exactDigits + 1} { // the shortest, and rounded to 15 and 17
		rounded, _ := new(big.Float).SetPrec(512).SetString(strconv.FormatFloat(f, 'e', digits, 64))
		whole, _ := rounded.Int(nil)
		add(whole.String())
	}
	return forms
}

const exactDigits = 15 // that a spreadsheet keeps

// plainForm is a number without what a spreadsheet, or who copies it, may lose or add.
func plainForm(number string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.In(r, unicode.C, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, number)
	if isDigits(visible) {
		return strings.TrimLeft(visible, "0")
	}
	return visible
}

func isDigits(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
