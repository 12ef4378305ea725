package wire

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the value of a JSON string; raw is the part between its
// quotes. Half of a surrogate pair is refused, not replaced: an order number with a
// replaced character would be another order number.
func appendUnescaped(dst, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			continue
		}
		i++
		if i == len(raw) {
			return dst, false
		}
		switch raw[i] {
		case '"', '\\', '/':
			dst = append(dst, raw[i])
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, used := unicodeEscape(raw[i+1:])
			if used == 0 {
				return dst, false
			}
			dst = utf8.AppendRune(dst, r)
			i += used
		default:
			return dst, false
		}
	}
	return dst, true
}

// unicodeEscape reads what follows \u, with the second half of a surrogate pair, and
// returns how many bytes it read; 0: the escape is invalid.
func unicodeEscape(raw []byte) (rune, int) {
	r, ok := hex4(raw)
	if !ok {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(raw) < 10 || raw[4] != '\\' || raw[5] != 'u' {
		return 0, 0
	}
	low, ok := hex4(raw[6:])
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		return 0, 0
	}
	return r, 10
}

func hex4(raw []byte) (r rune, ok bool) {
	if len(raw) < 4 {
		return 0, false
	}
	for _, b := range raw[:4] {
		switch {
		case b >= '0' && b <= '9':
			b -= '0'
		case b|0x20 >= 'a' && b|0x20 <= 'f':
			b = b | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(b)
	}
	return r, true
}
