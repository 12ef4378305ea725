package cardwire

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

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
		full, masked := sealedNumber(t, digits), sealedNumber(t, digits[:6]+"******"+digits[12:])
		other := sealedNumber(t, "5200000000000007")
		secret, hidden := sealedCVV(t, code), sealedCVV(t, "***")
		pan, otherPAN := sealPAN([]byte(canaryPAN)), sealPAN([]byte("AAAA"+canaryPAN[4:]))
		for name, guessed := range map[string]bool{
			"the CVV, by the BIN beside it":   apply(digits[:3], full.b[:], secret.b[:]) == code,
			"the CVV, by a masked one":        apply("***", hidden.b[:], secret.b[:]) == code,
			"hidden digits, by a masked card": apply(masked.Reveal(), masked.b[:], full.b[:])[6:9] == digits[6:9],
			"hidden digits, by another card":  apply(other.Reveal(), other.b[:], full.b[:])[6:9] == digits[6:9],
			"a ciphertext, by another":        apply("AAAA", []byte(*otherPAN.p), []byte(*pan.p)) == canaryPAN[:4],
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
	a, b := sealedNumber(t, canaryNumber), sealedNumber(t, canaryNumber)
	assert.True(t, a == b)
	assert.True(t, reflect.DeepEqual(a, b))
	assert.Equal(t, "found", map[CardNumber]string{a: "found"}[b])
	for _, other := range []string{"4917365624401736", "491736562440173", "49173656244017350", "491736******1735"} {
		assert.False(t, a == sealedNumber(t, other), other)
	}
	assert.False(t, a == CardNumber{})

	v, w := sealedCVV(t, "123"), sealedCVV(t, "123")
	assert.True(t, v == w)
	assert.True(t, reflect.DeepEqual(v, w))
	assert.Equal(t, "found", map[CVV]string{v: "found"}[w])
	for _, other := range []string{"124", "1230", "***"} {
		assert.False(t, v == sealedCVV(t, other), other)
	}
	assert.False(t, v == CVV{})

	p := sealPAN([]byte(canaryPAN))
	assert.True(t, reflect.DeepEqual(p, sealPAN([]byte(canaryPAN))))
	assert.False(t, reflect.DeepEqual(p, sealPAN([]byte("AAAA"))))
}

func TestSealedValuesAreInline(t *testing.T) {
	t.Parallel()
	assert.EqualValues(t, 32, reflect.TypeFor[CardNumber]().Size())
	assert.EqualValues(t, 8, reflect.TypeFor[CVV]().Size())
}

// AllocsPerRun counts the whole process, so the next two tests run by themselves.
func TestSealingAllocatesNothing(t *testing.T) {
	digits, code := []byte(canaryNumber), []byte(canaryCVV)
	var n CardNumber
	var v CVV
	for name, f := range map[string]func(){
		"sealNumber":    func() { n = sealNumber(digits) },
		"sealCVV":       func() { v = sealCVV(code) },
		"NewCardNumber": func() { n, _ = NewCardNumber(canaryNumber) },
		"NewCVV":        func() { v, _ = NewCVV(canaryCVV) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, f), name)
	}
	assert.Equal(t, canaryNumber, n.Reveal())
	assert.Equal(t, canaryCVV, v.Reveal())
}

func TestDecodingSealedValuesAllocatesNothing(t *testing.T) {
	for _, masking := range []bool{false, true} {
		var card Card
		members := []wire.FieldOf[Card]{
			{Name: "card_no", Required: true, Value: func(c *wire.Codec, card *Card) {
				here := c.Mark()
				assert.Zero(t, testing.AllocsPerRun(100, func() { c.Rewind(here); numberValue(c, &card.Number) }), "masking: %t", masking)
			}},
			{Name: "cvv", Required: true, Value: func(c *wire.Codec, card *Card) {
				here := c.Mark()
				assert.Zero(t, testing.AllocsPerRun(100, func() { c.Rewind(here); cvvValue(c, &card.CVV) }), "masking: %t", masking)
			}},
		}
		c := wire.NewReader([]byte(`{"card_no":"`+canaryNumber+`","cvv":"`+canaryCVV+`"}`), false)
		c.Masking = masking
		wire.Object(c, &card, members, wire.Whole)
		require.Nil(t, c.Err())
		c.Release()
		assert.Equal(t, masking, card.Number.IsMasked())
		assert.Equal(t, masking, card.CVV.IsMasked())
		assert.Equal(t, "491736******1735", card.Number.Masked())
	}
}
