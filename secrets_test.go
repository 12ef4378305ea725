package cardwire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

const (
	sampleNumber = "4917365624401735"
	sampleCVV    = "7351"
	samplePAN    = "q83vEjRW+JCrze8S/FZ4kA=="
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
	p := sealPAN([]byte(samplePAN))
	assert.Equal(t, samplePAN, p.Reveal())
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
	n, v, p := sealNumber([]byte("4917365624401735")), sealCVV([]byte("735")), sealPAN([]byte("AAAA"))
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
		assert.EqualError(t, err, "cardwire: a card number must have 12 to 19 digits or asterisks", "%q", s)
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
		assert.EqualError(t, err, "cardwire: a CVV must have 3 or 4 digits or asterisks", "%q", s)
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

func TestScrambledFieldsOfACard(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ field, number, cvv string }{
		{`"card_no":"4917365624401735","cvv":"7351"`, "4917365624401735", "7351"},
		{`"card_no":"491736******1735","cvv":"***"`, "491736******1735", "***"},
		{`"card_no":"\u0034917365624401735","cvv":"\u003735"`, "4917365624401735", "735"},
		{`"card_no":"7777777777777777777777777777777","cvv":"7777777"`, "7777777777777777777777777777777", "7777777"},
		{`"card_no":4917365624401735`, "4917365624401735", ""},
		{`"card_no":"","cvv":""`, "", ""},
		{`"card_no":null,"cvv":null`, "", ""},
	} {
		var card Card
		require.NoError(t, json.Unmarshal([]byte(cardWith(tc.field)), &card), tc.field)
		assert.Equal(t, tc.number, card.Number.Reveal(), tc.field)
		assert.Equal(t, tc.cvv, card.CVV.Reveal(), tc.field)
	}
	for field, want := range map[string]string{
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
		err := json.Unmarshal([]byte(cardWith(field)), &card)
		require.ErrorIs(t, err, ErrUnreadable, field)
		assert.EqualError(t, err, "cardwire: cannot unmarshal Card: "+want, field)
		assert.Zero(t, card, field)
	}
}

func TestMaskingAsCardsAreDecoded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ field, number, cvv string }{
		{`"card_no":"4917365624401735","cvv":"7351"`, "491736******1735", "***"},
		{`"card_no":"411111111111","cvv":"735"`, "************", "***"},
		{`"card_no":"491736******1735","cvv":"***"`, "491736******1735", "***"},
		{`"card_no":"","cvv":""`, "", ""},
	} {
		c := wire.NewReader([]byte(cardWith(tc.field)), false)
		c.Masking = true
		var card Card
		wire.Object(c, &card, cardFields, wire.Lenient)
		require.Nil(t, c.Err())
		assert.Equal(t, tc.number, card.Number.Reveal(), tc.field)
		assert.Equal(t, tc.cvv, card.CVV.Reveal(), tc.field)
	}
}

func TestScrambledFieldsAsJSON(t *testing.T) {
	t.Parallel()
	got := marshalledJSON(t, CardSecrets{
		Number: sealNumber([]byte(sampleNumber)), CVV: sealCVV([]byte(sampleCVV)), Expiry: Expiry{2028, time.September}, PAN: sealPAN([]byte(samplePAN)),
	})
	assert.Equal(t, `{"card_no":"491736******1735","cvv":"***","expire_date":"09/2028","pan":"***"}`, got)
	got = marshalledJSON(t, Card{Number: sealNumber([]byte(sampleNumber)), CreateTime: DateTime{Date{2026, time.May, 5}, 6, 7, 8}})
	for _, want := range []string{
		`"card_no":"491736******1735"`, `"cvv":""`, `"expire_date":"**/****"`, `"create_time":"2026-05-05 06:07:08"`, `"update_time":""`,
	} {
		assert.Contains(t, got, want)
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
	n := sealNumber([]byte("4111111111111111"))
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

func TestNoSealedByteIsADigit(t *testing.T) {
	t.Parallel()
	const all = "0123456789*0123456789*012345678"
	require.Len(t, all, 31)
	n := sealNumber([]byte(all))
	v := sealCVV([]byte(all[:7]))
	p := sealPAN([]byte(strings.Repeat(all, 3)))
	short := sealNumber([]byte("7"))
	for name, sealed := range map[string][]byte{
		"CardNumber": n.b[:], "CardNumber of one digit": short.b[:16], "CVV": v.b[:], "EncryptedPAN": []byte(*p.p),
	} {
		for i, b := range sealed {
			assert.GreaterOrEqual(t, b, byte(0x80), "byte %d of a %s", i, name)
		}
	}
	assert.Equal(t, all, n.Reveal())
	assert.Equal(t, all[:7], v.Reveal())
	assert.Equal(t, strings.Repeat(all, 3), p.Reveal())
}

// A dump of a card shows its BIN beside the sealed bytes, and those of a masked
// card are known altogether. Neither must be a key to other sealed bytes.
func TestWhatIsKnownOfASealedValueTellsNothingOfAnother(t *testing.T) {
	t.Parallel()
	// apply undoes on sealed what turned known into shown, as if it were a pad.
	apply := func(known string, shown, sealed []byte) string {
		out := make([]byte, min(len(known), len(sealed)))
		for i := range out {
			out[i] = known[i] ^ shown[i] ^ sealed[i]
		}
		return string(out)
	}
	learned := map[string]int{}
	for i := range 20 {
		digits := fmt.Sprintf("49173656244017%02d", 10+i)
		code := fmt.Sprintf("%03d", 100+37*i)
		full, masked := sealNumber([]byte(digits)), sealNumber([]byte(digits[:6]+"******"+digits[12:]))
		other := sealNumber([]byte("5200000000000007"))
		secret, hidden := sealCVV([]byte(code)), sealCVV([]byte("***"))
		pan, otherPAN := sealPAN([]byte(samplePAN)), sealPAN([]byte("AAAA"+samplePAN[4:]))
		for name, guessed := range map[string]bool{
			"the CVV, by the BIN beside it":   apply(digits[:3], full.b[:], secret.b[:]) == code,
			"the CVV, by a masked one":        apply("***", hidden.b[:], secret.b[:]) == code,
			"hidden digits, by a masked card": apply(masked.Reveal(), masked.b[:], full.b[:])[6:9] == digits[6:9],
			"hidden digits, by another card":  apply(other.Reveal(), other.b[:], full.b[:])[6:9] == digits[6:9],
			"a ciphertext, by another":        apply("AAAA", []byte(*otherPAN.p), []byte(*pan.p)) == samplePAN[:4],
		} {
			if guessed {
				learned[name]++
			}
		}
	}
	for name, n := range learned {
		assert.Less(t, n, 3, name) // one in two million by chance
	}
}

func TestSealedValuesCompareByWhatTheyHold(t *testing.T) {
	t.Parallel()
	a, b := sealNumber([]byte(sampleNumber)), sealNumber([]byte(sampleNumber))
	assert.True(t, a == b)
	assert.True(t, reflect.DeepEqual(a, b))
	assert.Equal(t, "found", map[CardNumber]string{a: "found"}[b])
	for _, other := range []string{"4917365624401736", "491736562440173", "49173656244017350", "491736******1735"} {
		assert.False(t, a == sealNumber([]byte(other)), other)
	}
	assert.False(t, a == CardNumber{})

	v, w := sealCVV([]byte("123")), sealCVV([]byte("123"))
	assert.True(t, v == w)
	assert.True(t, reflect.DeepEqual(v, w))
	assert.Equal(t, "found", map[CVV]string{v: "found"}[w])
	for _, other := range []string{"124", "1230", "***"} {
		assert.False(t, v == sealCVV([]byte(other)), other)
	}
	assert.False(t, v == CVV{})

	p := sealPAN([]byte(samplePAN))
	assert.True(t, reflect.DeepEqual(p, sealPAN([]byte(samplePAN))))
	assert.False(t, reflect.DeepEqual(p, sealPAN([]byte("AAAA"))))
}

func TestSealedValuesAreInline(t *testing.T) {
	t.Parallel()
	assert.EqualValues(t, 32, reflect.TypeFor[CardNumber]().Size())
	assert.EqualValues(t, 8, reflect.TypeFor[CVV]().Size())
}

// AllocsPerRun counts the whole process, so the next two tests run by themselves.
func TestSealingAllocatesNothing(t *testing.T) {
	digits, code := []byte(sampleNumber), []byte(sampleCVV)
	var n CardNumber
	var v CVV
	for name, f := range map[string]func(){
		"sealNumber":    func() { n = sealNumber(digits) },
		"sealCVV":       func() { v = sealCVV(code) },
		"NewCardNumber": func() { n, _ = NewCardNumber(sampleNumber) },
		"NewCVV":        func() { v, _ = NewCVV(sampleCVV) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, f), name)
	}
	assert.Equal(t, sampleNumber, n.Reveal())
	assert.Equal(t, sampleCVV, v.Reveal())
}

func TestDecodingSealedValuesAllocatesNothing(t *testing.T) {
	for _, masking := range []bool{false, true} {
		var card Card
		fields := []wire.FieldOf[Card]{
			{Name: "card_no", Required: true, Value: func(c *wire.Codec, card *Card) {
				here := c.Mark()
				assert.Zero(t, testing.AllocsPerRun(100, func() { c.Rewind(here); numberValue(c, &card.Number) }), "masking: %t", masking)
			}},
			{Name: "cvv", Required: true, Value: func(c *wire.Codec, card *Card) {
				here := c.Mark()
				assert.Zero(t, testing.AllocsPerRun(100, func() { c.Rewind(here); cvvValue(c, &card.CVV) }), "masking: %t", masking)
			}},
		}
		c := wire.NewReader([]byte(`{"card_no":"`+sampleNumber+`","cvv":"`+sampleCVV+`"}`), false)
		c.Masking = masking
		wire.Object(c, &card, fields, wire.Whole)
		require.Nil(t, c.Err())
		assert.Equal(t, masking, card.Number.IsMasked())
		assert.Equal(t, masking, card.CVV.IsMasked())
		assert.Equal(t, "491736******1735", card.Number.Masked())
	}
}

func marshalledText(t *testing.T, v interface{ MarshalText() ([]byte, error) }) string {
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

func cardWith(field string) string {
	return `{"id":"c1","available":"0.000","pending":0,"frozen":0,"fee":"0.00",` + field + `}`
}
