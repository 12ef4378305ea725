package canary

import "fmt"

// marker are the digits of a canary number after its BIN.
const marker = "77"

// Number returns a canary number: eight digits, the marker, n in five digits and
// a check digit that is wrong by five, so that none can be real.
func Number(eight string, n int) string {
	digits := eight + marker + fmt.Sprintf("%05d", n%100_000)
	return digits + string(rune('0'+(luhn(digits)+5)%10))
}

// IsNumber reports whether 16 digits are a canary number.
func IsNumber(n string) bool {
	return n[0] >= '3' && n[0] <= '6' && n[8:8+len(marker)] == marker &&
		int(n[15]-'0') == (luhn(n[:15])+5)%10
}

// luhn returns the correct check digit.
func luhn(digits string) int {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return (10 - sum%10) % 10
}
