package cardwire_test

import (
	"bytes"
	"encoding"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
)

// isWritten asserts that text is what v is printed and marshaled as, and is read as v.
func isWritten[T interface {
	fmt.Stringer
	encoding.TextMarshaler
}, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, text string, v, other T) {
	t.Helper()
	assert.Equal(t, text, v.String())
	marshaled, err := v.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, text, string(marshaled))
	require.NoError(t, P(&other).UnmarshalText([]byte(text)))
	assert.Equal(t, v, other)
}

func TestExpiryString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cardwire.Expiry{
		"09/2028": {2028, time.September},
		"12/9999": {9999, time.December},
		"01/0001": {1, time.January},
		"**/****": {},
	} {
		isWritten(t, text, want, cardwire.Expiry{1999, time.May})
		assert.Equal(t, text == "**/****", want.IsMasked(), text)
	}
	for text, want := range map[string]cardwire.Expiry{
		"09/28": {2028, time.September}, "9/2028": {2028, time.September}, "2028-09": {2028, time.September},
		"0928": {2028, time.September}, "2809": {2028, time.September}, "1/30": {2030, time.January},
		"XX/XXXX": {}, "••/••": {}, "****": {}, "00/0000": {}, "invalid": invalidExpiry,
	} {
		e := cardwire.Expiry{1999, time.May}
		require.NoError(t, e.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want, e, text)
	}
	refuses(t, cardwire.Expiry{1999, time.May}, "cardwire: not a valid expiry, as in 09/2028",
		"", "13/2028", "**/2028", "09/****", "/", "0912", "1212", "2828", "0028", "13/28", "2028-13", "2028-9", "928",
		"09/2/8", "09-28", "4111111111111111")
	printsInvalid(t, invalidExpiry, cardwire.Expiry{2028, 13}, cardwire.Expiry{2028, 0}, cardwire.Expiry{0, 9},
		cardwire.Expiry{10000, 9})
	assert.False(t, invalidExpiry.IsMasked())
}

var (
	invalidExpiry = cardwire.Expiry{Year: -1}
	invalidTime   = cardwire.DateTime{Date: cardwire.Date{Year: -1}}
)

// printsInvalid asserts that values which are no dates print, log and marshal as that.
func printsInvalid[T interface {
	fmt.Stringer
	IsValid() bool
}](t *testing.T, values ...T) {
	t.Helper()
	for _, v := range values {
		assert.False(t, v.IsValid(), "%#v", v)
		var text, log strings.Builder
		slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		assert.Equal(t, "invalid", fmt.Sprint(v))
		assert.Contains(t, text.String(), " v=invalid\n")
		assert.Contains(t, log.String(), `"v":"invalid"}`)
		encodes(t, v, `"invalid"`)
	}
	assert.True(t, (*new(T)).IsValid(), "what is absent is not invalid")
}

// refuses asserts that strings are not read as a T, which keeps its value. The other forms
// are in internal/wire.
func refuses[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](t *testing.T, kept T, message string, list ...string) {
	t.Helper()
	for _, text := range list {
		v := kept
		assert.EqualError(t, P(&v).UnmarshalText([]byte(text)), message, "%q", text)
		assert.Equal(t, kept, v, "%q", text)
	}
}

func TestDateString(t *testing.T) {
	t.Parallel()
	c := wiretest.NewClient(t, wiretest.Always(200, ""))
	for text, want := range map[string]cardwire.Date{
		"2026-02-28": {2026, time.February, 28},
		"2028-02-29": {2028, time.February, 29},
		"2000-02-29": {2000, time.February, 29},
		"2026-01-31": {2026, time.January, 31},
		"2026-08-31": {2026, time.August, 31},
		"2026-12-31": {2026, time.December, 31},
		"0001-01-01": {1, time.January, 1},
		"9999-12-31": {9999, time.December, 31},
	} {
		isWritten(t, text, want, cardwire.Date{})
		assert.False(t, want.IsZero())
		_, err := c.ListCards(t.Context(), cardwire.ListCardsParams{CreatedFrom: want})
		assert.NotContains(t, err.Error(), "valid date", text)
	}
	isWritten(t, "", cardwire.Date{}, cardwire.Date{2026, time.May, 5})
	isWritten(t, "invalid", cardwire.Date{Year: -1}, cardwire.Date{2026, time.May, 5})
	printsInvalid(t, cardwire.Date{2026, time.February, 29}, cardwire.Date{Day: 1}, cardwire.Date{10000, 1, 1})
	refuses(t, cardwire.Date{1999, time.May, 5}, "cardwire: not a valid date, as in 2026-01-31",
		"2026-02-29", "0000-01-01", "2026-01-01 ", "2026-01-01T00:00:00Z", " ")
}

func TestDateOfIsTheDayInTheTimesOwnZone(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, time.January, 1, 0, 30, 0, 0, time.FixedZone("", 2*3600))
	assert.Equal(t, cardwire.Date{2026, time.January, 1}, cardwire.DateOf(moment))
	assert.Equal(t, cardwire.Date{2025, time.December, 31}, cardwire.DateOf(moment.UTC()))
}

func TestDateTimeString(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cardwire.DateTime{
		"2026-02-28 23:59:59": dateTime(cardwire.Date{2026, time.February, 28}, 23, 59, 59),
		"2028-02-29 00:00:00": dateTime(cardwire.Date{2028, time.February, 29}, 0, 0, 0),
		"2026-10-05 04:03:02": dateTime(cardwire.Date{2026, time.October, 5}, 4, 3, 2),
	} {
		isWritten(t, text, want, cardwire.DateTime{})
	}
	isWritten(t, "", cardwire.DateTime{}, dateTime(cardwire.Date{2026, time.May, 5}, 1, 2, 3))
	isWritten(t, "invalid", invalidTime, cardwire.DateTime{})
	refuses(t, dateTime(cardwire.Date{1999, time.May, 5}, 7, 0, 0),
		"cardwire: not a valid date and time, as in 2026-01-31 23:59:59",
		"2026-02-28", "2026-02-28 ", "2026-02-28 24:00:00", "2026-02-28 23:59:60", "2026-02-28\t23:59:59",
		"2026-02-29 00:00:00", "2026-02-29T00:00Z", "2026-02-28 23:59:59.", "2026-02-28 23:59:59+25:00", " ",
		"2026-02-28 23:59:59.1234567890",
		"2026-02-28 23:59:59.1234567890Z", "2026-02-28 23:59:59"+strings.Repeat(" ", 30), "0000-01-01T00:00:00Z",
		"1000000000.5", "999999999", "4133980800000", "4133980800", "978307199999", "12345678901", "-1700000000")
	day := cardwire.Date{2026, time.February, 28}
	printsInvalid(t, invalidTime, dateTime(day, 24, 0, 0), dateTime(day, 0, 60, 0), dateTime(day, 0, 0, -1))
}

// What was sent with a zone is an instant, and is written with the zone.
func TestDateTimesInOtherForms(t *testing.T) {
	t.Parallel()
	tokyo := time.FixedZone("", 9*3600)
	for text, want := range map[string]struct{ written, inTokyo string }{
		"2026-01-02T03:04:05":         {"2026-01-02 03:04:05", "2026-01-02T03:04:05+09:00"},
		"2026-01-02T03:04":            {"2026-01-02 03:04:00", "2026-01-02T03:04:00+09:00"},
		"2026-01-02 03:04:05.120":     {"2026-01-02 03:04:05.12", "2026-01-02T03:04:05.12+09:00"},
		"2026-01-02T03:04:05Z":        {"2026-01-02T03:04:05Z", "2026-01-02T12:04:05+09:00"},
		"2026-01-02 03:04Z":           {"2026-01-02T03:04:00Z", "2026-01-02T12:04:00+09:00"},
		"2026-01-02 03:04:05+0800":    {"2026-01-02T03:04:05+08:00", "2026-01-02T04:04:05+09:00"},
		"2026-01-02T03:04:05.5-03:30": {"2026-01-02T03:04:05.5-03:30", "2026-01-02T15:34:05.5+09:00"},
		"2026-01-02 03:04:05 +08:00":  {"2026-01-02T03:04:05+08:00", "2026-01-02T04:04:05+09:00"},
		"2026-01-02T03:04:05+08":      {"2026-01-02T03:04:05+08:00", "2026-01-02T04:04:05+09:00"},
		"1000000000":                  {"2001-09-09T01:46:40Z", "2001-09-09T10:46:40+09:00"},
		"1700000000123":               {"2023-11-14T22:13:20.123Z", "2023-11-15T07:13:20.123+09:00"},
		"0000-00-00 00:00:00":         {"", "0001-01-01T00:00:00Z"},
		"0001-01-01T00:00:00Z":        {"", "0001-01-01T00:00:00Z"},
		"0001-01-01 00:00:00":         {"", "0001-01-01T00:00:00Z"},
		"0001-01-01T08:05:43+08:05":   {"", "0001-01-01T00:00:00Z"},
		"0000-12-31T19:03:58-04:56":   {"", "0001-01-01T00:00:00Z"},
		"0000-00-00T00:00:00+00:00":   {"", "0001-01-01T00:00:00Z"},
		"-0001-11-30 00:00:00":        {"", "0001-01-01T00:00:00Z"},
		"-0001-11-30T00:00:00+08:00":  {"", "0001-01-01T00:00:00Z"},
	} {
		at := dateTime(cardwire.Date{1999, time.May, 5}, 7, 0, 0)
		require.NoError(t, at.UnmarshalText([]byte(text)), text)
		assert.Equal(t, want.inTokyo, at.In(tokyo).Format(time.RFC3339Nano), text)
		assert.Equal(t, strings.Contains(want.written, "T"), at.HasZone(), text)
		assert.Equal(t, at.HasZone(), at.In(nil).Equal(at.In(tokyo)) && !at.IsZero(), text)
		assert.True(t, at.IsValid(), text)
		isWritten(t, want.written, at, cardwire.DateTime{})
	}
	assert.True(t, invalidTime.In(tokyo).IsZero())
}

// Of its fields alone gob would drop the zone and the fraction, and say nothing.
func TestDatesSurviveGob(t *testing.T) {
	t.Parallel()
	type kept struct {
		Time    cardwire.DateTime
		Day     cardwire.Date
		Expiry  cardwire.Expiry
		Pointer *cardwire.DateTime
	}
	for _, text := range []string{
		"2026-01-02T03:04:05.123456789+08:00", "2026-01-02T03:04:05Z", "2026-01-02 03:04:05.5", "2026-01-02 03:04:05",
		"invalid", "",
	} {
		var at cardwire.DateTime
		require.NoError(t, at.UnmarshalText([]byte(text)))
		for _, v := range []kept{
			{at, cardwire.Date{2026, time.May, 5}, cardwire.Expiry{2028, time.September}, &at},
			{at, at.Date, invalidExpiry, &at},
		} {
			var stored bytes.Buffer
			require.NoError(t, gob.NewEncoder(&stored).Encode(v))
			var back kept
			require.NoError(t, gob.NewDecoder(&stored).Decode(&back))
			assert.Equal(t, v, back, text)
			assert.Equal(t, text, back.Time.String())
			assert.Equal(t, strings.Contains(text, "T"), back.Time.HasZone(), text)
		}
	}
}

func TestDateTimeInAZone(t *testing.T) {
	t.Parallel()
	at := dateTime(cardwire.Date{2026, time.January, 1}, 0, 30, 15)
	for offset, want := range map[int]string{
		0:          "2026-01-01T00:30:15Z",
		2 * 3600:   "2025-12-31T22:30:15Z",
		-11 * 3600: "2026-01-01T11:30:15Z",
	} {
		zone := time.FixedZone("", offset)
		got := at.In(zone)
		assert.Equal(t, want, got.UTC().Format(time.RFC3339))
		assert.Equal(t, zone, got.Location())
		assert.Equal(t, at.Date, cardwire.DateOf(got))
	}
	assert.Equal(t, at.In(time.UTC), at.In(nil))
	assert.True(t, cardwire.DateTime{}.In(time.FixedZone("", 3600)).IsZero())
}

// In JSON a status is the number that it is on the wire, and a program keeps the others.
func TestLogsHaveWords(t *testing.T) {
	t.Parallel()
	var text, log strings.Builder
	for _, handler := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("m",
			"outcome", cardwire.OutcomeRefused, "step", cardwire.StepFail, "status", cardwire.CardFrozen)
	}
	assert.Contains(t, text.String(), "msg=m outcome=refused step=fail status=frozen\n")
	assert.Contains(t, log.String(), `"outcome":"refused","step":"fail","status":"frozen"}`)

	failure, err := json.Marshal(&cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeExecuted})
	require.NoError(t, err)
	assert.Contains(t, string(failure), `{"Op":"CreateTransfer","Outcome":"executed",`)

	type kept struct {
		Outcome cardwire.Outcome
		Step    cardwire.Step
		Status  cardwire.CardStatus
	}
	for want, v := range map[string]kept{
		`{"Outcome":"unknown","Step":"reconcile","Status":0}`: {},
		`{"Outcome":"not_sent","Step":"wait","Status":-1}`:    {cardwire.OutcomeNotSent, cardwire.StepWait, -1},
		`{"Outcome":"executed","Step":"done","Status":1}`:     {cardwire.OutcomeExecuted, cardwire.StepDone, 1},
		`{"Outcome":"refused","Step":"retry","Status":5}`:     {cardwire.OutcomeRefused, cardwire.StepRetry, 5},
	} {
		encodes(t, v, want)
		var back kept
		require.NoError(t, json.Unmarshal([]byte(want), &back))
		assert.Equal(t, v, back)
	}
	assert.Equal(t, "Outcome(-1) Outcome(4) Step(-1) Step(5)",
		fmt.Sprint(cardwire.Outcome(-1), cardwire.Outcome(4), cardwire.Step(-1), cardwire.Step(5)))
	err = json.Unmarshal([]byte(`{"Outcome":"Executed"}`), new(kept))
	require.EqualError(t, err, "cardwire: Outcome must be one of unknown, not_sent, refused, executed")
	err = json.Unmarshal([]byte(`{"Step":""}`), new(kept))
	require.EqualError(t, err, "cardwire: Step must be one of reconcile, done, retry, fail, wait")
}

func TestNothingIsUnmarshalledIntoNil(t *testing.T) {
	t.Parallel()
	for _, v := range []encoding.TextUnmarshaler{
		(*cardwire.Date)(nil), (*cardwire.DateTime)(nil), (*cardwire.Expiry)(nil), (*cardwire.Outcome)(nil),
		(*cardwire.Step)(nil),
	} {
		require.EqualError(t, v.UnmarshalText(nil), "cardwire: cannot unmarshal into a nil pointer", "%T", v)
	}
	for _, v := range []json.Unmarshaler{(*cardwire.Card)(nil), (*cardwire.TransferParams)(nil)} {
		err := v.UnmarshalJSON([]byte(`{"merchantOrderNo":"o","transferAmount":"1.00"}`))
		require.EqualError(t, err, "cardwire: cannot unmarshal into a nil pointer", "%T", v)
	}
}

// plainCard has the fields of a Card and none of its methods.
type plainCard cardwire.Card

// Only JSON has what identifies a person.
func TestPeopleAreNeitherPrintedNorLogged(t *testing.T) {
	t.Parallel()
	type holder struct{ V any }
	card, transfer := listedCardWanted(t), fullTransfer()
	page := pageOf(card)
	const person = "Maria|Silva|Rua|Lisbon|@|912345678|Rizal|0001234567|keep|travel"
	assert.Regexp(t, person, fmt.Sprint(plainCard(card)), "without the methods it would be shown")
	for printed, v := range map[string]any{
		"cardwire.Card{ID: card-1, TradeID: trade-2, BINID: 37, CardBIN: 493193, Number: 493193******1234, " +
			"Currency: USD, Available: 123.450, Pending: 7.25, Frozen: 3, Fee: 1.50, Status: frozen, ...}": &card,
		"cardwire.CardPage{Total: 41, PerPage: 20, CurrentPage: 1, LastPage: 3, Cards: [card-1], ...}": page,
		"cardwire.Address{...}": card.HolderAddress,
		"cardwire.TransferParams{MerchantOrderNo: order-1, PayoutCurrency: PHP, TransferAmount: 250.5, ...}": &transfer,
		"cardwire.UploadImageParams{ContentType: , Size: 11, ...}": &cardwire.UploadImageParams{
			Filename: "Maria.png", Data: []byte("Maria Silva"),
		},
	} {
		value := reflect.ValueOf(v).Elem().Interface()
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
			assert.Equal(t, printed, fmt.Sprintf(verb, v))
			assert.Equal(t, printed, fmt.Sprintf(verb, value))
			for _, around := range []any{[]any{value}, map[string]any{"k": value}, holder{v}, &holder{value}} {
				assert.Contains(t, fmt.Sprintf(verb, around), printed)
			}
			assert.Equal(t, "<nil>", fmt.Sprintf(verb, reflect.Zero(reflect.TypeOf(v))))
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("m", "value", value, "pointer", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "value", value, "pointer", v)
		assert.NotRegexp(t, person, log.String())
	}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("", "page", page, "address", card.HolderAddress, "transfer", transfer)
	assert.Contains(t, log.String(), `"page":{"Total":41,"PerPage":20,"CurrentPage":1,"LastPage":3,`+
		`"Cards":["card-1"]},"address":"cardwire.Address{...}",`+
		`"transfer":{"MerchantOrderNo":"order-1","PayoutCurrency":"PHP","TransferAmount":"250.5"}}`)
}

func dateTime(day cardwire.Date, hour, minute, second int) cardwire.DateTime {
	return cardwire.DateTime{Date: day, Hour: hour, Minute: minute, Second: second}
}
