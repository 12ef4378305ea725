package cardwire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

func TestCardNumberMasks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		number, masked, bin, last4 string
		isMasked                   bool
	}{
		{"", "", "", "", false},
		{"1", "*", "", "", false},
		{"411111111111", "************", "", "", false},
		{"41111111****", "************", "", "", true},
		{"4111112345678", "411111***5678", "411111", "5678", false},
		{"371449635398431", "371449*****8431", "371449", "8431", false},
		{"4917365624401735", "491736******1735", "491736", "1735", false},
		{"6304985028090561515", "630498*********1515", "630498", "1515", false},
		{"491736******1735", "491736******1735", "491736", "1735", true},
		{"****************", "****************", "******", "****", true},
		{"4917********1735", "4917**" + "******1735", "4917**", "1735", true},
		{strings.Repeat("7", 31), "777777" + strings.Repeat("*", 21) + "7777", "777777", "7777", false},
	} {
		n := sealNumber([]byte(tc.number))
		assert.Equal(t, tc.number, n.Reveal())
		assert.Equal(t, tc.masked, n.Masked(), tc.number)
		assert.Equal(t, tc.masked, n.String(), tc.number)
		assert.Equal(t, tc.masked, n.LogValue().String(), tc.number)
		assert.Equal(t, tc.bin, n.BIN(), tc.number)
		assert.Equal(t, tc.last4, n.Last4(), tc.number)
		assert.Equal(t, tc.isMasked, n.IsMasked(), tc.number)
		assert.Equal(t, tc.masked, marshalledText(t, n), tc.number)
		assert.Equal(t, `"`+tc.masked+`"`, marshalledJSON(t, n), tc.number)
	}
	assert.Equal(t, sealNumber(nil), CardNumber{})
}

type textMarshaler interface{ MarshalText() ([]byte, error) }

func marshalledText(t *testing.T, v textMarshaler) string {
	t.Helper()
	text, err := v.MarshalText()
	require.NoError(t, err)
	return string(text)
}

func marshalledJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestCVVMasks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cvv, masked string
		isMasked    bool
	}{
		{"", "", false},
		{"123", "***", false},
		{"7351", "***", false},
		{"***", "***", true},
		{"****", "***", true},
		{"1**", "***", true},
	} {
		v := sealCVV([]byte(tc.cvv))
		assert.Equal(t, tc.cvv, v.Reveal())
		assert.Equal(t, tc.masked, v.String(), tc.cvv)
		assert.Equal(t, tc.masked, v.LogValue().String(), tc.cvv)
		assert.Equal(t, tc.isMasked, v.IsMasked(), tc.cvv)
		assert.Equal(t, tc.masked, marshalledText(t, v), tc.cvv)
		assert.Equal(t, `"`+tc.masked+`"`, marshalledJSON(t, v), tc.cvv)
	}
	assert.Equal(t, sealCVV(nil), CVV{})
}

func TestEncryptedPANMasks(t *testing.T) {
	t.Parallel()
	p := sealPAN([]byte(canaryPAN))
	assert.Equal(t, canaryPAN, p.Reveal())
	assert.Equal(t, "***", p.String())
	assert.Equal(t, "***", p.LogValue().String())
	assert.Equal(t, "***", marshalledText(t, p))
	assert.Equal(t, `"***"`, marshalledJSON(t, p))

	var none EncryptedPAN
	assert.Empty(t, none.Reveal())
	assert.Empty(t, none.String())
	assert.Empty(t, none.LogValue().String())
	assert.Empty(t, marshalledText(t, none))
	assert.Equal(t, `""`, marshalledJSON(t, none))
}

// Tables of cards are lined up with widths, which must work on the mask.
func TestMasksHonourWidthAndPrecision(t *testing.T) {
	t.Parallel()
	n, v, p := sealedNumber(t, "4917365624401735"), sealedCVV(t, "735"), sealPAN([]byte("AAAA"))
	for _, tc := range []struct {
		format, number, cvv string
	}{
		{"%s", "491736******1735", "***"},
		{"%-20s|", "491736******1735    |", "***                 |"},
		{"%20v", "    491736******1735", "                 ***"},
		{"%20d", "    491736******1735", "                 ***"},
		{"%2s", "491736******1735", "***"},
		{"%.2s", "49", "**"},
		{"%.7x", "491736*", "***"},
		{"%q", "491736******1735", "***"},
		{"%#v", "491736******1735", "***"},
		{"%+v", "491736******1735", "***"},
	} {
		assert.Equal(t, tc.number, fmt.Sprintf(tc.format, n), tc.format)
		assert.Equal(t, tc.cvv, fmt.Sprintf(tc.format, v), tc.format)
		assert.Equal(t, tc.cvv, fmt.Sprintf(tc.format, p), tc.format)
	}
	assert.Equal(t, "[] [] []", fmt.Sprintf("[%v] [%v] [%v]", CardNumber{}, CVV{}, EncryptedPAN{}))
}

func TestNewCardNumber(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"411111111111", "4111111111111", "4917365624401735", "6304985028090561515", "491736******1735",
		"************", "*******************",
	} {
		n, err := NewCardNumber(s)
		require.NoError(t, err, s)
		assert.Equal(t, s, n.Reveal())
	}
	for _, s := range []string{
		"", "4", "73519735197", "73519735197351973519", strings.Repeat("7", 300), "7351 9735 1973 5197", "7351-9735-1973-5197",
		"735197351973519x", "735197351973519#", "735197351973519/", "735197351973519:", "735197351973519\x00", "+735197351973519",
		" 735197351973519", "７３５１９７３５１９７３", "735197351973XXXX", "735197351973••••",
	} {
		n, err := NewCardNumber(s)
		assert.EqualError(t, err, "cardwire: a card number has 12 to 19 digits or asterisks", "%q", s)
		assert.Zero(t, n, "%q", s)
	}
}

func TestNewCVV(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"000", "735", "7351", "***", "****", "7**"} {
		v, err := NewCVV(s)
		require.NoError(t, err, s)
		assert.Equal(t, s, v.Reveal())
	}
	for _, s := range []string{"", "7", "73", "73519", strings.Repeat("7", 300), "73x", "7 3", "-73", "735\n", "７３５", "73\x00", "•••"} {
		v, err := NewCVV(s)
		assert.EqualError(t, err, "cardwire: a CVV has 3 or 4 digits or asterisks", "%q", s)
		assert.Zero(t, v, "%q", s)
	}
}

func TestCiphertext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		want       []byte
	}{
		{"standard, padded twice", "+/8BAg==", []byte{0xfb, 0xff, 0x01, 0x02}},
		{"standard, bare", "+/8BAg", []byte{0xfb, 0xff, 0x01, 0x02}},
		{"URL, padded twice", "-_8BAg==", []byte{0xfb, 0xff, 0x01, 0x02}},
		{"URL, bare", "-_8BAg", []byte{0xfb, 0xff, 0x01, 0x02}},
		{"padded once", "+/8BAgM=", []byte{0xfb, 0xff, 0x01, 0x02, 0x03}},
		{"no padding needed", "+/8B", []byte{0xfb, 0xff, 0x01}},
		{"one byte", "AA==", []byte{0}},
	} {
		got, err := sealPAN([]byte(tc.text)).Ciphertext()
		require.NoError(t, err, tc.name)
		assert.Equal(t, tc.want, got, tc.name)
	}
	for _, text := range []string{
		"", "=", "====", "\n", "A", "AAAAA", "AA=A", "AB==", "A A=", "AAA.", "735197351973519*", "ÄÄÄÄ", "\x00\x00\x00\x00",
	} {
		got, err := sealPAN([]byte(text)).Ciphertext()
		assert.EqualError(t, err, "cardwire: the encrypted PAN is not base64", "%q", text)
		assert.Nil(t, got, "%q", text)
	}
	_, err := EncryptedPAN{}.Ciphertext()
	assert.EqualError(t, err, "cardwire: the encrypted PAN is not base64")
}

func TestExpiryText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Expiry{
		"09/2028": {2028, time.September},
		"12/9999": {9999, time.December},
		"01/0001": {1, time.January},
		"**/****": {},
	} {
		assert.Equal(t, text, want.String())
		assert.Equal(t, text, marshalledText(t, want))
		assert.Equal(t, text == "**/****", want.IsMasked(), text)
		got := Expiry{1999, time.May}
		require.NoError(t, got.UnmarshalText([]byte(text)))
		assert.Equal(t, want, got)
	}
	for _, text := range []string{
		"", "9/2028", "00/2028", "13/2028", "09/0000", "09/28", "09-2028", "2028/09", "09/2028 ", " 09/2028", "+9/2028",
		"09/-028", "**/2028", "09/****", "*/****", `09\/2028`, "０９/2028", "09/20280",
	} {
		kept := Expiry{1999, time.May}
		assert.EqualError(t, kept.UnmarshalText([]byte(text)), "cardwire: not a valid expiry, as in 09/2028", "%q", text)
		assert.Equal(t, Expiry{1999, time.May}, kept, "%q", text)
	}
}

// notDays are texts that are no day of the calendar.
var notDays = []string{
	"2026-02-29", "2100-02-29", "2026-02-30", "2026-04-31", "2026-06-31", "2026-09-31", "2026-11-31", "2026-01-32",
	"2026-00-01", "2026-13-01", "2026-01-00", "0000-01-01", "2026-1-01", "2026-01-1", "26-01-01", "2026/01/01",
	"20260101", "2026-01-01 ", " 2026-01-01", "2026-01-01T00:00:00Z", "-026-01-01", "2026-01-+1", "today", "２０２６-01-01",
}

func TestDateText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Date{
		"2026-02-28": {2026, time.February, 28},
		"2028-02-29": {2028, time.February, 29},
		"2000-02-29": {2000, time.February, 29},
		"2026-01-31": {2026, time.January, 31},
		"2026-08-31": {2026, time.August, 31},
		"2026-12-31": {2026, time.December, 31},
		"0001-01-01": {1, time.January, 1},
		"9999-12-31": {9999, time.December, 31},
	} {
		assert.Equal(t, text, want.String())
		assert.Equal(t, text, marshalledText(t, want))
		assert.False(t, want.IsZero())
		assert.True(t, want.exists())
		parsed, err := ParseDate(text)
		require.NoError(t, err)
		assert.Equal(t, want, parsed)
		var got Date
		require.NoError(t, got.UnmarshalText([]byte(text)))
		assert.Equal(t, want, got)
	}
	for _, text := range notDays {
		_, err := ParseDate(text)
		assert.EqualError(t, err, "cardwire: not a valid date, as in 2026-01-31", "%q", text)
		kept := Date{1999, time.May, 5}
		assert.EqualError(t, kept.UnmarshalText([]byte(text)), "cardwire: not a valid date, as in 2026-01-31", "%q", text)
		assert.Equal(t, Date{1999, time.May, 5}, kept, "%q", text)
	}
}

func TestTheZeroDateIsAbsent(t *testing.T) {
	t.Parallel()
	assert.True(t, Date{}.IsZero())
	assert.Empty(t, Date{}.String())
	assert.Empty(t, marshalledText(t, Date{}))
	d := Date{2026, time.May, 5}
	require.NoError(t, d.UnmarshalText(nil))
	assert.Zero(t, d)
	// A text that should be a day and is empty is a mistake, not "no bound".
	_, err := ParseDate("")
	assert.Error(t, err)
}

func TestDatesThatAreNoDay(t *testing.T) {
	t.Parallel()
	for _, d := range []Date{
		{2026, time.February, 29}, {2026, 13, 1}, {2026, 0, 1}, {2026, time.May, 0}, {2026, time.May, -1}, {2026, time.May, 32},
		{0, time.May, 1}, {-1, time.May, 1}, {10000, time.May, 1}, {Day: 1},
	} {
		assert.False(t, d.exists(), "%d-%d-%d", d.Year, int(d.Month), d.Day)
		assert.False(t, d.IsZero())
		assert.EqualError(t, checkDate("CreatedFrom", d), "CreatedFrom is not a valid date, as in 2026-01-31")
	}
	assert.NoError(t, checkDate("CreatedFrom", Date{}))
	assert.NoError(t, checkDate("CreatedFrom", Date{2028, time.February, 29}))
}

func TestDateOfIsTheDayInTheTimesOwnZone(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("", 2*3600)
	moment := time.Date(2026, time.January, 1, 0, 30, 0, 0, east)
	assert.Equal(t, Date{2026, time.January, 1}, DateOf(moment))
	assert.Equal(t, Date{2025, time.December, 31}, DateOf(moment.UTC()))
	assert.Equal(t, Date{2025, time.December, 31}, DateOf(moment.In(time.FixedZone("", -11*3600))))
	assert.Equal(t, Date{2028, time.February, 29}, DateOf(time.Date(2028, time.February, 28, 23, 0, 0, 0, time.UTC).In(east)))
}

func TestDateTimeText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]DateTime{
		"2026-02-28 23:59:59": {Date{2026, time.February, 28}, 23, 59, 59},
		"2028-02-29 00:00:00": {Date{2028, time.February, 29}, 0, 0, 0},
		"2026-10-05 04:03:02": {Date{2026, time.October, 5}, 4, 3, 2},
	} {
		assert.Equal(t, text, want.String())
		assert.Equal(t, text, marshalledText(t, want))
		var got DateTime
		require.NoError(t, got.UnmarshalText([]byte(text)))
		assert.Equal(t, want, got)
	}
	bad := []string{
		"2026-02-28", "2026-02-28 ", "2026-02-28T23:59:59", "2026-02-28 24:00:00", "2026-02-28 23:60:00", "2026-02-28 23:59:60",
		"2026-02-28 23:59", "2026-02-28 3:59:59", "2026-02-28 23-59-59", "2026-02-28 23:59:5x", "2026-02-28  3:59:59",
		"2026-02-28 23:59:59Z", "2026-02-28 23:59:59.0", "2026-02-28\t23:59:59", "0000-00-00 00:00:00", " ",
	}
	for _, day := range notDays {
		bad = append(bad, day+" 00:00:00")
	}
	for _, text := range bad {
		kept := DateTime{Date: Date{1999, time.May, 5}, Hour: 7}
		assert.EqualError(t, kept.UnmarshalText([]byte(text)), "cardwire: not a valid date and time, as in 2026-01-31 23:59:59", "%q", text)
		assert.Equal(t, DateTime{Date: Date{1999, time.May, 5}, Hour: 7}, kept, "%q", text)
	}
}

func TestTheZeroDateTimeIsAbsent(t *testing.T) {
	t.Parallel()
	assert.True(t, DateTime{}.IsZero())
	assert.Empty(t, DateTime{}.String())
	assert.Empty(t, marshalledText(t, DateTime{}))
	at := DateTime{Date{2026, time.May, 5}, 1, 2, 3}
	require.NoError(t, at.UnmarshalText([]byte{}))
	assert.Zero(t, at)
	assert.True(t, DateTime{}.In(time.FixedZone("", 3600)).IsZero())
	at = DateTime{Date{2026, time.February, 28}, 23, 59, 58}
	assert.Equal(t, time.Date(2026, time.February, 28, 23, 59, 58, 0, time.UTC), at.In(nil))
}

func TestDateTimeInAZone(t *testing.T) {
	t.Parallel()
	at := DateTime{Date{2026, time.January, 1}, 0, 30, 15}
	for offset, want := range map[int]string{
		0:          "2026-01-01T00:30:15Z",
		2 * 3600:   "2025-12-31T22:30:15Z",
		-11 * 3600: "2026-01-01T11:30:15Z",
	} {
		zone := time.FixedZone("", offset)
		got := at.In(zone)
		assert.Equal(t, want, got.UTC().Format(time.RFC3339))
		assert.Equal(t, zone, got.Location())
		assert.Equal(t, at.Date, DateOf(got))
	}
}

// times are as a program of a user's keeps them.
type times struct {
	Expiry   Expiry       `json:"expiry"`
	Date     Date         `json:"date"`
	DateTime DateTime     `json:"time"`
	PerDay   map[Date]int `json:"per_day"`
	Optional Date         `json:"optional,omitzero"`
}

func TestTimesAsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]times{
		`{"expiry":"09/2028","date":"2028-02-29","time":"2026-12-31 23:59:59","per_day":{"2026-02-28":3},"optional":"2026-01-02"}`: {
			Expiry{2028, time.September}, Date{2028, time.February, 29}, DateTime{Date{2026, time.December, 31}, 23, 59, 59},
			map[Date]int{{2026, time.February, 28}: 3}, Date{2026, time.January, 2},
		},
		`{"expiry":"**/****","date":"","time":"","per_day":null}`: {},
	} {
		assert.Equal(t, text, marshalledJSON(t, want))
		var got times
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		assert.Equal(t, want, got)
	}
	escaped := times{}
	require.NoError(t, json.Unmarshal([]byte(`{"expiry":"09\/2028","date":"2028\u002d02-29","time":null}`), &escaped))
	assert.Equal(t, times{Expiry: Expiry{2028, time.September}, Date: Date{2028, time.February, 29}}, escaped)
	for _, text := range []string{
		`{"expiry":"9/2028"}`, `{"expiry":92028}`, `{"expiry":""}`, `{"date":"2026-02-29"}`, `{"date":20260228}`, `{"date":{}}`,
		`{"time":"2026-02-28"}`, `{"time":1767225600}`, `{"per_day":{"2026-02-29":1}}`,
	} {
		assert.Error(t, json.Unmarshal([]byte(text), new(times)), text)
	}
}

func TestAddressAsJSON(t *testing.T) {
	t.Parallel()
	const text = `{"city":"São Paulo","state":"SP","country":"BR","postalCode":"01310-100","addressLine1":"Av. \"Paulista\" 1","addressLine2":"C:\\9\u0009b"}`
	want := Address{
		City: "São Paulo", State: "SP", Country: "BR", PostalCode: "01310-100", Line1: `Av. "Paulista" 1`, Line2: "C:\\9\tb",
	}
	direct, err := want.MarshalJSON()
	require.NoError(t, err)
	assert.Equal(t, text, string(direct))
	assert.Equal(t, `{"city":"","state":"","country":"","postalCode":"","addressLine1":"","addressLine2":""}`, marshalledJSON(t, Address{}))

	var got Address
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	assert.Equal(t, want, got)

	for name, tc := range map[string]struct {
		text string
		want Address
	}{
		"null keeps what was there": {`null`, Address{City: "Porto"}},
		"null texts":                {`{"city":null,"state":null,"country":null,"addressLine1":null,"addressLine2":null}`, Address{}},
		"a code as a number":        {`{"postalCode":1100}`, Address{PostalCode: "1100"}},
		"members that are unknown":  {`{"City":"no","zip":"1"}`, Address{}},
	} {
		got := Address{City: "Porto"}
		require.NoError(t, json.Unmarshal([]byte(tc.text), &got), name)
		assert.Equal(t, tc.want, got, name)
	}
	for name, text := range map[string]string{
		"repeated member": `{"city":"Porto","city":"Lisbon"}`,
		"array":           `[]`,
		"text":            `"Lisbon"`,
		"member's kind":   `{"city":{}}`,
	} {
		got := Address{City: "Porto"}
		assert.ErrorIs(t, json.Unmarshal([]byte(text), &got), ErrUnreadable, name)
		assert.Equal(t, Address{City: "Porto"}, got, name)
	}
}

// cardWith is the least that is a card, and one member more.
func cardWith(member string) string {
	return `{"id":"c1","available":"0.000","pending":0,"frozen":0,"fee":"0.00",` + member + `}`
}

func TestSealedMembersOfACard(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ member, number, cvv string }{
		{`"card_no":"4917365624401735","cvv":"7351"`, "4917365624401735", "7351"},
		{`"card_no":"491736******1735","cvv":"***"`, "491736******1735", "***"},
		{`"card_no":"\u0034917365624401735","cvv":"\u003735"`, "4917365624401735", "735"},
		{`"card_no":"7777777777777777777777777777777","cvv":"7777777"`, "7777777777777777777777777777777", "7777777"},
		{`"card_no":4917365624401735`, "4917365624401735", ""},
		{`"card_no":"","cvv":""`, "", ""},
		{`"card_no":null,"cvv":null`, "", ""},
	} {
		var card Card
		require.NoError(t, json.Unmarshal([]byte(cardWith(tc.member)), &card), tc.member)
		assert.Equal(t, tc.number, card.Number.Reveal(), tc.member)
		assert.Equal(t, tc.cvv, card.CVV.Reveal(), tc.member)
	}
	for member, want := range map[string]string{
		`"card_no":"77777777777777777777777777777777"`: "card_no: expected a card number",
		`"card_no":"4917 3656 2440 1735"`:              "card_no: expected a card number",
		`"card_no":"491736xxxxxx1735"`:                 "card_no: expected a card number",
		`"card_no":-4917365624401735`:                  "card_no: expected a card number",
		`"card_no":["4917365624401735"]`:               "card_no: expected a string",
		`"cvv":"77777777"`:                             "cvv: expected a CVV",
		`"cvv":"73a"`:                                  "cvv: expected a CVV",
		`"cvv":735`:                                    "cvv: expected a string",
		`"expire_date":"9/2028"`:                       "expire_date: expected a month like 09/2028 or **/****",
		`"expire_date":92028`:                          "expire_date: expected a string",
		`"expire_date":"00/0000"`:                      "expire_date: expected a month like 09/2028 or **/****",
		`"expire_date":"0000-00-00"`:                   "expire_date: expected a month like 09/2028 or **/****",
		`"create_time":"2026-02-29 00:00:00"`:          "create_time: expected a date and time like 2026-02-28 23:59:59",
		`"create_time":"0000-00-00 00:00:01"`:          "create_time: expected a date and time like 2026-02-28 23:59:59",
		`"create_time":"0000-00-00T00:00:00"`:          "create_time: expected a date and time like 2026-02-28 23:59:59",
		`"create_time":"0000-01-00 00:00:00"`:          "create_time: expected a date and time like 2026-02-28 23:59:59",
		`"update_time":"2026-00-00 00:00:00"`:          "update_time: expected a date and time like 2026-02-28 23:59:59",
		`"update_time":"0000-00"`:                      "update_time: expected a date and time like 2026-02-28 23:59:59",
	} {
		var card Card
		err := json.Unmarshal([]byte(cardWith(member)), &card)
		require.ErrorIs(t, err, ErrUnreadable, member)
		assert.EqualError(t, err, "cardwire: cannot unmarshal Card: "+want, member)
		assert.Zero(t, card, member)
	}
}

func TestTimeMembersOfACard(t *testing.T) {
	t.Parallel()
	var card Card
	require.NoError(t, json.Unmarshal([]byte(cardWith(`"expire_date":"09\/2028","create_time":"2026-02-28 23:59:59"`)), &card))
	assert.Equal(t, Expiry{2028, time.September}, card.Expiry)
	assert.Equal(t, DateTime{Date{2026, time.February, 28}, 23, 59, 59}, card.CreateTime)
	for _, absent := range []string{`"expire_date":"","create_time":""`, `"expire_date":null,"create_time":null`, `"expire_date":"**/****"`} {
		card = Card{}
		require.NoError(t, json.Unmarshal([]byte(cardWith(absent)), &card), absent)
		assert.Zero(t, card.Expiry, absent)
		assert.Zero(t, card.CreateTime, absent)
	}
}

func TestEmptyTimesAreDrift(t *testing.T) {
	t.Parallel()
	c := wire.NewReader([]byte(cardWith(`"expire_date":"","create_time":"","update_time":null`)), true)
	defer c.Release()
	var card Card
	wire.Object(c, &card, cardFields, wire.Lenient)
	require.Nil(t, c.Err())
	assert.Equal(t, []wire.Drift{
		{Path: "expire_date", Kind: "empty string"}, {Path: "create_time", Kind: "empty string"}, {Path: "update_time", Kind: "null for string"},
	}, c.Drifts())
}

// A service in PHP has them from a database that knows no absent date.
func TestZeroDatesAreAbsentDates(t *testing.T) {
	t.Parallel()
	c := wire.NewReader([]byte(cardWith(`"create_time":"0000-00-00","update_time":"0000-00-00 00:00:00"`)), true)
	defer c.Release()
	var card Card
	wire.Object(c, &card, cardFields, wire.Lenient)
	require.Nil(t, c.Err())
	assert.Zero(t, card.CreateTime)
	assert.Zero(t, card.UpdateTime)
	assert.Equal(t, []wire.Drift{{Path: "create_time", Kind: "zero date"}, {Path: "update_time", Kind: "zero date"}}, c.Drifts())
}

func TestMaskingAsCardsAreDecoded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ member, number, cvv string }{
		{`"card_no":"4917365624401735","cvv":"7351"`, "491736******1735", "***"},
		{`"card_no":"411111111111","cvv":"735"`, "************", "***"},
		{`"card_no":"491736******1735","cvv":"***"`, "491736******1735", "***"},
		{`"card_no":"","cvv":""`, "", ""},
	} {
		c := wire.NewReader([]byte(cardWith(tc.member)), false)
		c.Masking = true
		var card Card
		wire.Object(c, &card, cardFields, wire.Lenient)
		require.Nil(t, c.Err())
		c.Release()
		assert.Equal(t, tc.number, card.Number.Reveal(), tc.member)
		assert.Equal(t, tc.cvv, card.CVV.Reveal(), tc.member)
	}
}

func TestSealedMembersAsJSON(t *testing.T) {
	t.Parallel()
	got := marshalledJSON(t, CardSecrets{
		Number: sealedNumber(t, canaryNumber), CVV: sealedCVV(t, canaryCVV), Expiry: Expiry{2028, time.September}, PAN: sealPAN([]byte(canaryPAN)),
	})
	assert.Equal(t, `{"card_no":"491736******1735","cvv":"***","expire_date":"09/2028","pan":"***"}`, got)
	got = marshalledJSON(t, Card{Number: sealedNumber(t, canaryNumber), CreateTime: DateTime{Date{2026, time.May, 5}, 6, 7, 8}})
	for _, want := range []string{
		`"card_no":"491736******1735"`, `"cvv":""`, `"expire_date":"**/****"`, `"create_time":"2026-05-05 06:07:08"`, `"update_time":""`,
	} {
		assert.Contains(t, got, want)
	}
}

func TestNothingIsUnmarshalledIntoNil(t *testing.T) {
	t.Parallel()
	for _, v := range []interface{ UnmarshalText([]byte) error }{(*Date)(nil), (*DateTime)(nil), (*Expiry)(nil)} {
		require.ErrorIs(t, v.UnmarshalText(nil), errNilReceiver, "%T", v)
	}
	for _, v := range []json.Unmarshaler{(*Card)(nil), (*TransferParams)(nil)} {
		require.ErrorIs(t, v.UnmarshalJSON([]byte(`{"merchantOrderNo":"o","transferAmount":"1.00"}`)), errNilReceiver, "%T", v)
	}
}

// What was marshalled reads back: the digits as their mask.
func TestCardNumberReadsWhatItMarshals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"4111111111111111"`: "4111111111111111", `"411111******1111"`: "411111******1111", `""`: "",
	} {
		var n CardNumber
		require.NoError(t, json.Unmarshal([]byte(text), &n))
		assert.Equal(t, want, n.Reveal())
		masked, err := json.Marshal(n)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(masked, &n))
		assert.Equal(t, n.Masked(), n.Reveal())
	}
	n := sealedNumber(t, "4111111111111111")
	for _, text := range []string{`"4111"`, `"4111 1111 1111 1111"`, `7`} {
		err := json.Unmarshal([]byte(text), &n)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "4111")
		assert.Equal(t, "4111111111111111", n.Reveal(), "nothing is lost")
	}
	require.Error(t, (*CardNumber)(nil).UnmarshalText([]byte("4111111111111111")))
}

func TestNewEncryptedPAN(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"3q2+7w==", "3q2-7w", "3q2+7w"} {
		p, err := NewEncryptedPAN(text)
		require.NoError(t, err)
		assert.Equal(t, text, p.Reveal())
		b, err := p.Ciphertext()
		require.NoError(t, err)
		assert.Equal(t, []byte{0xde, 0xad, 0xbe, 0xef}, b)
	}
	for _, text := range []string{"", "4111 no", "?"} {
		p, err := NewEncryptedPAN(text)
		require.EqualError(t, err, "cardwire: the encrypted PAN is not base64")
		assert.Equal(t, EncryptedPAN{}, p)
	}
}
