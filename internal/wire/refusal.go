package wire

import (
	"cmp"
	_ "embed" // of the list
	"errors"
	"html"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// ErrNoReason is the cause of a refusal that is not believed: Profile.RefusedMessages lacks its words.
var ErrNoReason = errors.New("cardwire: the refusal gives no reason that proves that nothing was executed")

// Said is what strings of a refusal say, by the list in phrases.txt.
type Said struct {
	Exists  bool // what was sent may exist
	Record  bool // a record was not found
	Trouble bool // something else failed
	Reason  bool // why it was refused
}

// Read adds what a string says, of which Words made words: the classes of the phrases in it that no
// other phrase in it contains.
func (s *Said) Read(words string) {
	l, end := phrases(), 0
	for at := 0; at < len(words); at += len(firstWord(words[at:])) {
		class := ""
		first, _ := utf8.DecodeRuneInString(words[at+1:])
		for _, p := range slices.Concat(l.phrases[first], l.phrases['*']) {
			if e := longest(words, at, p.slots, 0); e > end && strings.Contains(words, p.with) {
				end, class = e, p.class
			}
		}
		s.Exists, s.Record = s.Exists || class == "exists", s.Record || class == "record"
		s.Trouble, s.Reason = s.Trouble || class == "trouble", s.Reason || class == "reason"
	}
}

// longest returns where the longest match at a place ends; -1: there is none. The first of the
// slots has matched some words before it.
func longest(words string, at int, slots []slot, some int) int {
	if len(slots) == 0 {
		return at
	}
	e, end := slots[0], -1
	if some >= e.least {
		end = longest(words, at, slots[1:], 0)
	}
	for i := 0; i < len(e.words) && some < e.most; i++ {
		if length := matched(words[at:], e.words[i]); length > 0 {
			end = max(end, longest(words, at+length, slots, some+1))
		}
	}
	return end
}

// matched returns how much of words the word of a slot is; 0: nothing.
func matched(words, word string) int {
	isPattern := strings.Contains(word, "*")
	if !isPattern && !strings.HasPrefix(words, word) {
		return 0
	}
	first := firstWord(words)
	fits, _ := path.Match(word, first)
	switch {
	case isPattern && fits, !isPattern && slices.Contains(endings, strings.TrimPrefix(first, word)):
		return len(first)
	case !isPattern && strings.Count(word, " ") > 1: // Chinese
		return len(word)
	}
	return 0
}

// firstWord returns the first word, with the space before it.
func firstWord(words string) string {
	if i := strings.IndexByte(words[min(1, len(words)):], ' '); i >= 0 {
		return words[:i+1]
	}
	return words
}

// Words returns the words of s in lower case, each after a space: ORDER_EXISTS, orderExists and
// ORDEREXISTS have the same. A Chinese character is one, in its simplified form.
func Words(s string) string {
	l := phrases()
	var words strings.Builder
	isSeparator := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	s = l.single.ReplaceAllString(l.simplified.Replace(l.plain(s)), " $0 ")
	for field := range strings.FieldsFuncSeq(s, isSeparator) {
		known := l.apart(strings.ToLower(field))
		for part := range strings.FieldsSeq(l.humps.ReplaceAllString(field, "$1$3 $2$4")) {
			if part = strings.ToLower(part); known == "" {
				words.WriteString(cmp.Or(l.apart(part), " "+part))
			}
		}
		words.WriteString(known)
	}
	return words.String()
}

// plain returns s as a reader sees it: without escapes, tags, invisible characters and full-width letters.
func (l *lexicon) plain(s string) string {
	s = l.markup.ReplaceAllStringFunc(s, func(m string) string {
		switch m[0] {
		case '\\':
			code, _ := strconv.ParseUint(m[2:], 16, 16)
			return string(rune(code))
		case '&':
			return html.UnescapeString(m)
		case '<':
			return " "
		}
		return ""
	})
	return strings.Map(func(r rune) rune {
		if r > '\uff00' && r < '\uff5f' {
			return r - '\uff00' + ' '
		}
		return r
	}, s)
}

// apart returns the words of the list that word consists of; "": it has others.
func (l *lexicon) apart(word string) string {
	const longest = 40 // the ways multiply with the length
	for end := min(len(word), longest); end > 1 && len(word) <= longest; end-- {
		if rest := word[end:]; l.words[word[:end]] {
			if more := l.apart(rest); rest == "" || more != "" {
				return " " + word[:end] + more
			}
		}
	}
	return ""
}

// Own returns the words of the values that have at least four letters, the longest first.
func Own(values []string) (own []string) {
	for _, value := range values {
		if words := Words(value); letters(words) >= 4 {
			own = append(own, words+" ")
		}
	}
	slices.SortFunc(own, func(a, b string) int { return len(b) - len(a) })
	return own
}

// Without returns words without those that Own returned: a request's own may come back in any string.
func Without(words string, own []string) string {
	words += " "
	for _, value := range own {
		for strings.Contains(words, value) { // again, for one beside the other
			words = strings.ReplaceAll(words, value, " . ")
		}
	}
	return strings.TrimSuffix(words, " ")
}

func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) {
			n++
		}
	}
	return n
}

// Letters returns the letters and digits of s as Words reads them.
func Letters(s string) string { return strings.ReplaceAll(Words(s), " ", "") }

//go:embed phrases.txt
var text string

// lexicon is the list of phrases.
type lexicon struct {
	phrases    map[rune][]phrase // by the first character; '*': any
	sets       map[string]string
	words      map[string]bool   // of all phrases, with their endings
	simplified *strings.Replacer // and without apostrophes
	single     *regexp.Regexp    // what is a word whatever is beside it
	humps      *regexp.Regexp    // of orderExists and NOExists
	markup     *regexp.Regexp    // what a reader does not see, or sees as something else
}

type phrase struct {
	class, with string // with must be in the string too
	slots       []slot
}

type slot struct {
	words       []string // any of these, each after a space
	least, most int      // how often
}

// endings are those that a word may have.
var endings = []string{"", "s", "es", "d", "ed", "ing", "ly"}

// phrases reads the list, when the first refusal comes.
var phrases = sync.OnceValue(func() *lexicon {
	l := &lexicon{
		phrases: map[rune][]phrase{}, sets: map[string]string{}, words: map[string]bool{},
		single: regexp.MustCompile(`\p{Han}|\p{Nd}+`),
		humps:  regexp.MustCompile(`(\p{Ll})(\p{Lu})|(\p{Lu})(\p{Lu}\p{Ll})`),
		markup: regexp.MustCompile(`\\u[0-9a-fA-F]{4}|&#?[0-9a-zA-Z]{1,10};|</?(?:b|i|u|p|em|br|li|div|span|strong)\s*/?>|\p{Cf}`),
	}
	parts := strings.Split(text, "\n[")
	for line := range strings.Lines(parts[0]) {
		name, set, _ := strings.Cut(strings.TrimSpace(line), " = ")
		l.sets[name] = set
	}
	for _, part := range parts[1:] {
		head, lines, _ := strings.Cut(part, "]\n")
		class, with, _ := strings.Cut(head, " with")
		if class == "simplified" {
			l.simplified = strings.NewReplacer(append(strings.Fields(lines), "'", "", "’", "", "`", "", "´", "")...)
			continue
		}
		for text := range strings.FieldsFuncSeq(lines, func(r rune) bool { return r == ',' || r == '\n' }) {
			p := phrase{class: class, with: with}
			for word := range strings.FieldsSeq(text) {
				p.slots = append(p.slots, l.slot(word))
			}
			firsts := map[rune]bool{}
			for _, word := range p.slots[0].words {
				first, _ := utf8.DecodeRuneInString(word[1:])
				firsts[first] = true
			}
			for first := range firsts {
				l.phrases[first] = append(l.phrases[first], p)
			}
		}
	}
	return l
})

// slot reads a word of a phrase, or a set, and notes the words that it may be.
func (l *lexicon) slot(text string) slot {
	e := slot{least: 1, most: 1}
	switch text[len(text)-1] {
	case ')':
		e.least = 0
	case '+':
		e.least, e.most = 0, 6
	}
	for word := range strings.SplitSeq(strings.Trim(text, "()+"), "/") {
		switch set := l.sets[word]; {
		case set != "":
			e.words = append(e.words, l.slot(set).words...)
		case word[0] > unicode.MaxASCII:
			e.words = append(e.words, l.single.ReplaceAllString(word, " $0"))
		default:
			e.words = append(e.words, " "+word)
			for _, ending := range endings {
				l.words[word+ending] = true
			}
		}
	}
	return e
}
