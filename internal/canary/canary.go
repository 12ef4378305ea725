// Package canary finds card numbers, CVVs and keys in text, in many encodings. It is
// the search behind cardwiretest.NoLeaks, and behind this module's own tests of what
// is printed.
package canary

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Secrets are what must not appear: every canary number, and what is added.
// It is safe for concurrent use.
type Secrets struct {
	mu                  sync.Mutex
	keys, numbers, cvvs map[string]struct{}
}

// The shortest secrets that are searched for: shorter ones would be found
// everywhere.
const (
	minKey    = 8
	minNumber = 12
	minCVV    = 3
)

// AddKey adds an API key, or another string that is a secret as a whole.
func (s *Secrets) AddKey(v string) { s.add(&s.keys, v, minKey) }

// AddNumber adds a card number.
func (s *Secrets) AddNumber(v string) { s.add(&s.numbers, v, minNumber) }

// AddCVV adds a CVV, which counts only beside a word that names it.
func (s *Secrets) AddCVV(v string) { s.add(&s.cvvs, v, minCVV) }

func (s *Secrets) add(set *map[string]struct{}, v string, least int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *set == nil {
		*set = map[string]struct{}{}
	}
	if len(v) >= least {
		(*set)[v] = struct{}{}
	}
}

// IsKey reports whether v was added as a key.
func (s *Secrets) IsKey(v string) bool { return s.has(&s.keys, v) }

func (s *Secrets) has(set *map[string]struct{}, v string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := (*set)[v]
	return ok
}

// within reports whether the text contains one of the set.
func (s *Secrets) within(set *map[string]struct{}, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for v := range *set {
		if strings.Contains(text, v) {
			return true
		}
	}
	return false
}

// Find returns which kinds of secrets a text contains, without the secrets.
func (s *Secrets) Find(text string) (found []string) {
	forms := Forms(text)
	for _, kind := range []struct {
		name string
		in   func(string) bool
	}{
		{"a card number", s.containsNumber},
		{"a CVV", s.containsCVV},
		{"an API key", func(form string) bool { return s.within(&s.keys, form) }},
	} {
		if slices.ContainsFunc(forms, kind.in) {
			found = append(found, kind.name)
		}
	}
	return found
}

var (
	numberLike = regexp.MustCompile(`\d(?:[ -]?\d){11,}`)
	cvvLike    = regexp.MustCompile(`(?i)(?:cv[vc]2?|security[ _-]?code)[^0-9a-z*]{0,12}(\d{3,4})`)
)

// containsNumber searches every run of digits for a number, at every position: it may be
// printed next to other digits.
func (s *Secrets) containsNumber(text string) bool {
	for _, run := range numberLike.FindAllString(text, -1) {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(run)
		for i := range max(0, len(digits)-15) {
			if IsNumber(digits[i : i+16]) {
				return true
			}
		}
		if s.within(&s.numbers, digits) {
			return true
		}
	}
	return false
}

func (s *Secrets) containsCVV(text string) bool {
	for _, m := range cvvLike.FindAllStringSubmatch(text, -1) {
		if s.has(&s.cvvs, m[1]) {
			return true
		}
	}
	return false
}

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
