package statement

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

const longest = 200 // bytes of a cell that is read

// What can be read in two ways is asked for, never guessed.
var (
	errDecimal = errors.New("1,234 can be read in two ways: say which character separates the decimal places")
	errDates   = errors.New("03/04/2026 can be read in two ways: say which comes first, the day or the month")
)

// readings are the forms of an amount, by what separates its decimal places. A space is here an apostrophe.
var readings = map[string][]*regexp.Regexp{
	".": {regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`), regexp.MustCompile(`^[1-9][0-9]{0,2}([,'][0-9]{3})+(\.[0-9]+)?$`)},
	",": {regexp.MustCompile(`^[0-9]+(,[0-9]+)?$`), regexp.MustCompile(`^[1-9][0-9]{0,2}([.'][0-9]{3})+(,[0-9]+)?$`)},
}

var (
	noGroups = strings.NewReplacer(",", "", ".", "", "'", "")
	spaces   = strings.NewReplacer(" ", "'", "\u00a0", "'", "\u202f", "'", "\u2009", "'", "’", "'")
	negative = regexp.MustCompile(`^(?:[+\-−] ?(.*)|(.*?) ?[\-−]|\((.*)\))$`)
)

// amountOf reads an amount, whatever its sign: banks write what leaves an account as -1234.50, 1234.50- or (1234.50).
// Point is what separates its decimal places; "": where that can be read in two ways it is errDecimal.
func amountOf(text, point string) (amount decimal.Decimal, err error) {
	if parts := negative.FindStringSubmatch(text); parts != nil {
		text = parts[1] + parts[2] + parts[3]
	}
	text = spaces.Replace(text)
	found := 0
	for of, forms := range readings {
		for _, form := range forms {
			if point != "" && of != point || !form.MatchString(text) {
				continue
			}
			whole, places, _ := strings.Cut(text, of)
			one, wrong := decimal.NewFromString(noGroups.Replace(whole) + "." + places)
			if wrong != nil {
				return one, wrong
			}
			if found == 0 || !one.Equal(amount) {
				found++
			}
			amount = one
		}
	}
	switch {
	case found == 0:
		return amount, errors.New("the amount must be as in 1234.50 or 1.234,50")
	case found > 1:
		return amount, errDecimal
	}
	return amount, nil
}

// when is a date of any usual form, a time if there is one, and its offset if there is one.
var when = regexp.MustCompile(`^(?:(\d{4})([-/.])(\d{1,2})([-/.])(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})([-/.])(\d{4})|(\d{1,2})[- ]([A-Za-z]{3})[- ](\d{4}))` +
	`(?:(?:T|,? +)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?(?: ?([AaPp][Mm]))?)?(?: ?(Z|UTC|[+-]\d{2}:?\d{2}))?$`)

// Moment reads a time that a person wrote, with its offset or in UTC: a clock without either may be any.
func Moment(text string) (time.Time, error) {
	at, err := timeOf(text, nil, "")
	if err != nil {
		err = errors.New("a time has its offset, as in 2026-01-31T15:04:05+01:00, or is in UTC, as in 2026-01-31 15:04:05 UTC")
	}
	return at, err
}

// errTime says which times of a file are read.
var errTime = errors.New("the time must be as in 2026-01-31T15:04:05Z, or 2026-01-31 15:04:05 in the zone that was chosen")

// timeOf reads a time of a file. One without an offset is in that zone; nil: it is refused. First is which comes first where
// the year is last, "day" or "month"; "": where that can be read in two ways it is errDates.
func timeOf(text string, zone *time.Location, first string) (at time.Time, err error) {
	if text = strings.TrimSpace(text); len(text) > longest {
		return at, errTime
	}
	p := when.FindStringSubmatch(text)
	if p == nil || p[2] != p[4] || p[7] != p[9] {
		return at, errTime
	}
	date, layout := p[1]+"-"+p[3]+"-"+p[5], "2006-1-2"
	switch {
	case p[11] != "":
		date, layout = p[13]+"-"+p[12]+"-"+p[11], "2006-Jan-2"
	case p[10] != "":
		day, month, err := dayAndMonth(p[6], p[8], p[7], first)
		if err != nil {
			return at, err
		}
		date = p[10] + "-" + month + "-" + day
	}
	date, layout = date+" "+cmp.Or(p[14], "0")+":"+cmp.Or(p[15], "00")+":"+cmp.Or(p[16], "00"), layout+" 15:04:05"
	if p[17] != "" {
		date += "." + p[17]
	}
	if p[18] != "" {
		date, layout = date+strings.ToUpper(p[18]), strings.Replace(layout, "15", "3", 1)+"PM"
	}
	switch offset := p[19]; offset {
	case "", "Z", "UTC":
	default:
		date, layout = date+strings.Replace(offset, ":", "", 1), layout+"-0700"
	}
	switch at, err = time.Parse(layout, date); {
	case err != nil, p[19] == "" && zone == nil:
		return time.Time{}, errTime
	case p[19] == "":
		return inZone(at, zone)
	}
	return at, nil
}

// dayAndMonth are the two numbers of a date that ends with its year. With dots the day comes first.
func dayAndMonth(a, b, separator, first string) (day, month string, err error) {
	m, _ := strconv.Atoi(a)
	n, _ := strconv.Atoi(b)
	switch {
	case separator == "." || first == "day" || first == "" && (m > 12 || m == n):
		return a, b, nil
	case first == "month" || n > 12:
		return b, a, nil
	}
	return "", "", errDates
}

// inZone is the moment at which a clock of the zone shows a time. On two days of the year clocks skip an hour, or show
// it twice.
func inZone(shown time.Time, zone *time.Location) (at time.Time, err error) {
	var all []time.Time
	for _, near := range []time.Time{shown.Add(-24 * time.Hour), shown.Add(24 * time.Hour)} {
		_, offset := near.In(zone).Zone()
		one := shown.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, is := one.Zone(); is == offset && (len(all) == 0 || !one.Equal(all[0])) {
			all = append(all, one)
		}
	}
	switch len(all) {
	case 1:
		return all[0], nil
	case 0:
		return at, errors.New("clocks of the zone skip this time: check the zone, or give the offset")
	}
	return at, errors.New("clocks of the zone show this time twice: it needs its offset")
}
