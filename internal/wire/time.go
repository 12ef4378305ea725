package wire

import "time"

// ParseDate reads YYYY-MM-DD, which must be a valid date.
func ParseDate(b []byte) (year, month, day int, ok bool) {
	if len(b) != 10 || b[4] != '-' || b[7] != '-' {
		return 0, 0, 0, false
	}
	year, ok1 := number(b[0:4])
	month, ok2 := number(b[5:7])
	day, ok3 := number(b[8:10])
	ok = ok1 && ok2 && ok3 && year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month)
	return year, month, day, ok
}

// ParseClock reads HH:MM:SS.
func ParseClock(b []byte) (hour, minute, second int, ok bool) {
	if len(b) != 8 || b[2] != ':' || b[5] != ':' {
		return 0, 0, 0, false
	}
	hour, ok1 := number(b[0:2])
	minute, ok2 := number(b[3:5])
	second, ok3 := number(b[6:8])
	return hour, minute, second, ok1 && ok2 && ok3 && hour < 24 && minute < 60 && second < 60
}

// ParseMonth reads MM/YYYY.
func ParseMonth(b []byte) (year, month int, ok bool) {
	if len(b) != 7 || b[2] != '/' {
		return 0, 0, false
	}
	month, ok1 := number(b[0:2])
	year, ok2 := number(b[3:7])
	return year, month, ok1 && ok2 && year > 0 && month >= 1 && month <= 12
}

func daysIn(year, month int) int {
	if month == 2 {
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 + (month+month/8)%2
}

// number reads digits and nothing else; the caller fixes how many.
func number(b []byte) (n int, ok bool) {
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = n*10 + int(d-'0')
	}
	return n, true
}

// AppendDate writes YYYY-MM-DD.
func AppendDate(dst []byte, year int, month time.Month, day int) []byte {
	dst = append(appendPadded(dst, year, 4), '-')
	dst = append(appendPadded(dst, int(month), 2), '-')
	return appendPadded(dst, day, 2)
}

// AppendClock writes HH:MM:SS.
func AppendClock(dst []byte, hour, minute, second int) []byte {
	dst = append(appendPadded(dst, hour, 2), ':')
	dst = append(appendPadded(dst, minute, 2), ':')
	return appendPadded(dst, second, 2)
}

// AppendMonth writes MM/YYYY.
func AppendMonth(dst []byte, year int, month time.Month) []byte {
	dst = append(appendPadded(dst, int(month), 2), '/')
	return appendPadded(dst, year, 4)
}

func appendPadded(dst []byte, n, width int) []byte {
	start := len(dst)
	dst = appendInt(dst, int64(n))
	for len(dst)-start < width {
		dst = append(dst, 0)
		copy(dst[start+1:], dst[start:])
		dst[start] = '0'
	}
	return dst
}
