package cardwire

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

const (
	sampleNumber = "4917365624401735"
	sampleCVV    = "7351"
	samplePAN    = "q83vEjRW+JCrze8S/FZ4kA=="
)

// masked asserts how a sealed value shows itself, and that it opens again.
func masked[T interface {
	fmt.Stringer
	MarshalText() ([]byte, error)
	Reveal() string
}](t *testing.T, v T, mask, inside string) {
	t.Helper()
	assert.Equal(t, inside, v.Reveal())
	text, err := v.MarshalText()
	require.NoError(t, err)
	inJSON, err := json.Marshal(v)
	require.NoError(t, err)
	assert.Equal(t, []string{mask, mask, `"` + mask + `"`}, []string{v.String(), string(text), string(inJSON)}, inside)
	var log, jsonLog strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("", "v", v)
	slog.New(slog.NewJSONHandler(&jsonLog, nil)).Info("", "v", v)
	assert.Equal(t, []bool{true, true}, []bool{
		strings.Contains(log.String(), " v="+mask) || mask == "", strings.Contains(jsonLog.String(), `"v":"`+mask+`"`),
	}, inside)
}

func TestSealedValuesMask(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		number, mask, last4 string
		isMasked            bool
	}{
		{"", "", "", false},
		{"1", "*", "", false},
		{"411111111111", "************", "", false},
		{"41111111****", "************", "", true},
		{"****0002", "****0002", "0002", true},
		{"********0002", "********0002", "0002", true},
		{"**11*0002", "*********", "", true},
		{"0002", "****", "", false},
		{"4111112345678", "411111***5678", "5678", false},
		{"371449635398431", "371449*****8431", "8431", false},
		{"4917365624401735", "491736******1735", "1735", false},
		{"6304985028090561515", "630498*********1515", "1515", false},
		{"491736******1735", "491736******1735", "1735", true},
		{"****************", "****************", "****", true},
		{"4917********1735", "4917**" + "******1735", "1735", true},
		{strings.Repeat("7", 22), "777777" + strings.Repeat("*", 12) + "7777", "7777", false},
	} {
		n := sealNumber([]byte(tc.number))
		masked(t, n, tc.mask, tc.number)
		assert.Equal(t, []string{tc.mask, tc.last4}, []string{n.Masked(), n.Last4()}, tc.number)
		assert.Equal(t, tc.isMasked, n.IsMasked(), tc.number)
	}
	for cvv, mask := range map[string]string{
		"": "", "123": "***", "7351": "***", "***": "***", "****": "***", "1**": "***",
	} {
		v := sealCVV([]byte(cvv))
		masked(t, v, mask, cvv)
		assert.Equal(t, strings.Contains(cvv, "*"), v.IsMasked(), cvv)
	}
	masked(t, sealPAN([]byte(samplePAN)), "***", samplePAN)
	masked(t, EncryptedPAN{}, "", "")
	assert.Equal(t, sealNumber(nil), CardNumber{})
	assert.Equal(t, sealCVV(nil), CVV{})
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
		"", "4", "73519735197", "73519735197351973519", strings.Repeat("7", 300), "7351 9735 1973 5197",
		"735197351973519x", "735197351973519/", "735197351973519:", "735197351973519\x00", "+735197351973519",
		" 735197351973519", "７３５１９７３５１９７３", "735197351973••••",
	} {
		n, err := NewCardNumber(s)
		assert.EqualError(t, err, "cardwire: a card number must have 12 to 19 digits or asterisks", "%q", s)
		assert.Zero(t, n, "%q", s)
	}
}

func TestCiphertext(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "=", "====", "\n", "A", "AAAAA", "AA=A", "AB==", "A A=", "AAA.", "735197351973519*", "ÄÄÄÄ",
		"\x00\x00\x00\x00",
	} {
		got, err := sealPAN([]byte(s)).Ciphertext()
		assert.EqualError(t, err, "cardwire: the encrypted PAN is not base64", "%q", s)
		assert.Nil(t, got, "%q", s)
	}
	for text, want := range map[string]string{
		"+/8BAg==": "\xfb\xff\x01\x02", "+/8BAg": "\xfb\xff\x01\x02", // standard, padded and bare
		"-_8BAg==": "\xfb\xff\x01\x02", "-_8BAg": "\xfb\xff\x01\x02", // of URLs
		"+/8BAgM=": "\xfb\xff\x01\x02\x03", "+/8B": "\xfb\xff\x01", "AA==": "\x00",
	} {
		got, err := sealPAN([]byte(text)).Ciphertext()
		require.NoError(t, err, text)
		assert.Equal(t, want, string(got))
	}
}

// What was marshalled reads back: the digits as their mask.
func TestCardNumberReadsWhatItMarshals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"4111111111111111"`: "4111111111111111", `"411111******1111"`: "411111******1111", `""`: "",
		`"****1111"`: "****1111",
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

func TestNoSealedByteIsADigit(t *testing.T) {
	t.Parallel()
	const all = "0123456789*0123456789*"
	require.Len(t, all, 22)
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
	assert.Equal(t, "found", map[CardNumber]string{a: "found"}[b])
	for _, other := range []string{"", "4917365624401736", "491736562440173", "49173656244017350", "491736******1735"} {
		assert.False(t, a == sealNumber([]byte(other)), other)
	}
	v, w := sealCVV([]byte("123")), sealCVV([]byte("123"))
	assert.True(t, v == w)
	assert.Equal(t, "found", map[CVV]string{v: "found"}[w])
	for _, other := range []string{"", "124", "1230", "***"} {
		assert.False(t, v == sealCVV([]byte(other)), other)
	}
	p := sealPAN([]byte(samplePAN))
	assert.True(t, reflect.DeepEqual(p, sealPAN([]byte(samplePAN))))
	assert.False(t, reflect.DeepEqual(p, sealPAN([]byte("AAAA"))))
}

// Not parallel: AllocsPerRun counts the whole process.
func TestDecodingSealedValuesAllocatesNothing(t *testing.T) {
	for _, masking := range []bool{false, true} {
		var card Card
		inPlace := func(read func(c *wire.Codec, card *Card)) func(*wire.Codec, *Card) {
			return func(c *wire.Codec, card *Card) {
				here := c.Mark()
				allocated := testing.AllocsPerRun(100, func() { c.Rewind(here); read(c, card) })
				assert.Zero(t, allocated, "masking: %t", masking)
			}
		}
		number := inPlace(func(c *wire.Codec, card *Card) { numberValue(c, &card.Number) })
		cvv := inPlace(func(c *wire.Codec, card *Card) { cvvValue(c, &card.CVV) })
		c := wire.NewReader([]byte(`{"card_no":"`+sampleNumber+`","cvv":"`+sampleCVV+`"}`), false)
		c.Masking = masking
		fields := []wire.FieldOf[Card]{{Name: "card_no", Value: number}, {Name: "cvv", Value: cvv}}
		wire.Object(c, &card, fields, wire.Whole)
		require.Nil(t, c.Err())
		assert.Equal(t, masking, card.Number.IsMasked())
		assert.Equal(t, masking, card.CVV.IsMasked())
		assert.Equal(t, "491736******1735", card.Number.Masked())
	}
}

// Lists are as large as their cards: BenchmarkCardwire.
func TestSizeOfACard(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, int(unsafe.Sizeof(Card{})), 528)
}
