package wire

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of a document. The depth counts every open object and array.
const (
	maxDepth  = 64
	maxDrifts = 100
)

// A Codec reads or writes one JSON document. After the first error every call does
// nothing, so that callers check once, at the end.
type Codec struct {
	buf     []byte
	pos     int
	path    []step          // one for each open container
	names   [][]byte        // of open objects whose names are not known beforehand
	kept    strings.Builder // the strings that were read last: see keep
	drifts  []Drift
	cost    int // of the elements so far, in bytes
	observe bool
	// Masking asks the values of card data to mask what they read.
	Masking bool
	// Replaced reports whether bytes or escapes that are no characters were replaced.
	Replaced   bool
	lax        bool // strings that are skipped may be free text
	unreadable []Unreadable
	err        *Error

	// Writing reports whether the Codec writes. Only values with an unusual shape need to ask.
	Writing bool
	out     []byte

	room [8]step // for path, deep enough for every response of the API
}

// step is the position in an open container: an element, by its index below that of the
// first, or a field, by the offset of its name. It is not a string because it is set for
// every field, and writing a pointer is expensive while the garbage collector runs.
type step int

const (
	nowhere step = -1 - iota // before the first field
	anyName                  // a field whose name is payload
	element                  // the first element
)

// Drift is a tolerated deviation from the API.
type Drift struct {
	// Path is the place, like "data.data[].fee".
	Path string
	// Kind is what deviates, like "string for number"; never a value.
	Kind string
}

// Error is why a document could not be read. It contains no byte of the document.
type Error struct {
	// Path is the place, like "data.data[6].fee"; "" for the whole document, and with
	// Malformed.
	Path string
	// Problem is what was expected there; "": the field is missing. With Malformed, it
	// is what is wrong with the JSON.
	Problem string
	// Malformed reports that the document is not strict JSON, as opposed to JSON of
	// the wrong shape.
	Malformed bool
}

const (
	isMissing    = ""
	isHTML       = "HTML"
	valueMissing = "a value is missing"
)

// Missing returns the error for a field that is missing at path.
func Missing(path string) *Error { return &Error{Path: path, Problem: isMissing} }

func (e *Error) Error() string {
	switch {
	case e.Problem == isHTML:
		return "the response is HTML, not JSON: check the base URL and any proxy"
	case e.Malformed:
		return "the response is " + e.Detail()
	}
	return e.Detail()
}

// Detail is Error for a document that is not a response.
func (e *Error) Detail() string {
	switch {
	case e.Malformed:
		return "not strict JSON: " + e.Problem
	case e.Problem == isMissing:
		return e.Path + " is missing"
	case e.Path == "":
		return "expected " + e.Problem
	}
	return e.Path + ": expected " + e.Problem
}

// NewReader returns a Codec that reads body, which must not change before the last
// call of the Codec. It records drift only if observe is true.
func NewReader(body []byte, observe bool) *Codec {
	c := &Codec{buf: body, observe: observe}
	c.path = c.room[:0]
	return c
}

// Err returns the first error, or nil.
func (c *Codec) Err() *Error { return c.err }

// Drifts returns the tolerated deviations, each path and kind once.
func (c *Codec) Drifts() []Drift { return c.drifts }

// SkipBOM skips a byte order mark, which is drift.
func (c *Codec) SkipBOM() {
	if c.pos == 0 && bytes.HasPrefix(c.buf, []byte("\ufeff")) {
		c.pos = len("\ufeff")
		c.Drift("byte order mark")
	}
}

// End checks that nothing but white space follows.
func (c *Codec) End() {
	if c.peek() != 0 || c.pos < len(c.buf) {
		c.malformed("bytes follow the end")
	}
}

// Kind returns the first byte of the next value: one of { [ " t f n 0 -, with every
// digit as '0', or 0 if there is none.
func (c *Codec) Kind() byte {
	b := c.peek()
	if b >= '0' && b <= '9' {
		return '0'
	}
	return b
}

// Mark is a place to return to with [Codec.Rewind].
type Mark struct {
	pos, depth, names int
	step              step
}

// Mark returns the current place, which is within a container.
func (c *Codec) Mark() Mark {
	return Mark{c.pos, len(c.path), len(c.names), c.path[len(c.path)-1]}
}

// Rewind returns to m and forgets the error that came after it.
func (c *Codec) Rewind(m Mark) {
	c.pos, c.path, c.names, c.err = m.pos, c.path[:m.depth], c.names[:m.names], nil
	c.path[len(c.path)-1] = m.step
}

// Drift records a tolerated deviation at the current field.
func (c *Codec) Drift(kind string) { c.driftAt("", kind) }

// driftAt is Drift for a field that is missing.
func (c *Codec) driftAt(missing, kind string) {
	if !c.observe || c.err != nil || len(c.drifts) == maxDrifts {
		return
	}
	var room [256]byte
	path := c.appendPath(room[:0], missing, false)
	for i := range c.drifts {
		if c.drifts[i].Kind == kind && c.drifts[i].Path == string(path) {
			return
		}
	}
	c.drifts = append(c.drifts, Drift{Path: string(path), Kind: kind})
}

// Fail records that the current value is not what was expected.
func (c *Codec) Fail(want string) { c.FailAt("", want) }

// FailAt is Fail for a field of the current object that is missing, or was read before.
func (c *Codec) FailAt(missing, want string) {
	if c.err == nil {
		c.err = &Error{Path: string(c.appendPath(nil, missing, true)), Problem: want}
	}
}

func (c *Codec) malformed(problem string) {
	if c.err == nil {
		c.err = &Error{Problem: problem, Malformed: true}
	}
}

// appendPath writes the current path, with the indices of elements if indexed is true,
// followed by the name of a missing field unless that is "".
func (c *Codec) appendPath(dst []byte, missing string, indexed bool) []byte {
	for _, s := range c.path {
		switch {
		case s == nowhere:
		case s == anyName:
			dst = append(withDot(dst), '*')
		case s <= element:
			dst = append(dst, '[')
			if indexed {
				dst = strconv.AppendInt(dst, int64(element-s), 10)
			}
			dst = append(dst, ']')
		default:
			again := Codec{buf: c.buf, pos: int(s)}
			dst = append(withDot(dst), again.fieldName()...)
		}
	}
	if missing != "" {
		dst = append(withDot(dst), missing...)
	}
	return dst
}

func withDot(path []byte) []byte {
	if len(path) == 0 {
		return path
	}
	return append(path, '.')
}

// What a document may cost in memory: a multiple of its length, and an allowance for
// short ones. Elements with all their fields cost less than twice their length; a
// document that exceeds this has nothing in it worth reading.
const (
	costPerByte = 4
	costFree    = 256 << 10
)

// Budget counts the n bytes that the next element takes, and fails if a document of
// tiny elements would cost a multiple of its length.
func (c *Codec) Budget(n int) bool {
	if c.cost += n; c.left() < 0 {
		c.malformed("it has too many tiny elements")
	}
	return c.err == nil
}

// left is how many bytes the elements that follow may take.
func (c *Codec) left() int { return costFree + costPerByte*len(c.buf) - c.cost }

// peek skips white space and returns the next byte, 0 at the end or after an error.
func (c *Codec) peek() byte {
	if c.pos < len(c.buf) && c.buf[c.pos] > ' ' && c.err == nil {
		return c.buf[c.pos]
	}
	return c.peekOn()
}

// peekOn is peek if white space or an error comes first: apart, so that peek is inlined.
func (c *Codec) peekOn() byte {
	for c.err == nil && c.pos < len(c.buf) {
		switch b := c.buf[c.pos]; b {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return b
		}
	}
	return 0
}

func (c *Codec) open(bracket byte, place step, what string) bool {
	if b := c.peek(); b != bracket {
		c.wrong(b, what)
		return false
	}
	if len(c.path) == maxDepth {
		c.malformed("it is nested too deep")
		return false
	}
	c.pos++
	c.path = append(c.path, place)
	return true
}

// more consumes the comma before the next element, or the closing bracket: the caller then
// leaves the path, since to do it here makes every field slower.
func (c *Codec) more(closing byte, first bool) bool {
	b := c.peek()
	switch {
	case c.err != nil:
		return false
	case b == closing:
		c.pos++
		return false
	case first:
		return true
	case b == ',':
		c.pos++
		return true
	case b == 0:
		c.malformed("it ends too early")
	default:
		c.malformed("a comma or a closing bracket is missing")
	}
	return false
}

// wrong fails with what was expected if the next value, which begins with b, is of
// another kind, and as malformed if there is no value.
func (c *Codec) wrong(b byte, want string) {
	switch b {
	case '{', '[', '"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
		c.Fail(want)
	case 0:
		c.malformed("it ends too early")
	case '<':
		c.malformed(c.markup())
	default:
		c.malformed(valueMissing)
	}
}

// markup recognizes the HTML page of a gateway or a proxy in place of the response.
func (c *Codec) markup() string {
	page := bytes.ToLower(c.buf[c.pos:min(c.pos+len("<!doctype html"), len(c.buf))])
	if len(c.path) == 0 && (bytes.HasPrefix(page, []byte("<!doctype html")) || bytes.HasPrefix(page, []byte("<html"))) {
		return isHTML
	}
	return valueMissing
}

// fieldName consumes a name and its colon.
func (c *Codec) fieldName() []byte {
	if c.peek() != '"' {
		c.malformed("a field name is missing")
		return nil
	}
	name := c.readString(false)
	if c.peek() != ':' {
		c.malformed("a colon is missing")
		return nil
	}
	c.pos++
	return name
}

// take consumes a name and its colon if they come next without white space, as they do where a
// service keeps to the order of the list. Without it a list of 100 cards takes 21 % more
// instructions (BenchmarkCardwire).
func (c *Codec) take(name string) bool {
	rest, n := c.buf[c.pos:], len(name)
	if len(rest) < n+3 || rest[0] != '"' || string(rest[1:n+1]) != name || rest[n+1] != '"' || rest[n+2] != ':' {
		return false
	}
	c.pos += n + 3
	return true
}

// Skip consumes one value of any kind, and checks all of it.
func (c *Codec) Skip() {
	switch b := c.peek(); b {
	case '{':
		c.Map(func([]byte) { c.Skip() })
	case '[':
		c.Each(c.Skip)
	case '"':
		c.readString(c.lax)
	case 't':
		c.word("true")
	case 'f':
		c.word("false")
	case 'n':
		c.word("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		c.number()
	default:
		c.wrong(b, "a value")
	}
}

// Span consumes one value of any kind and returns its JSON as part of the body: the
// caller copies what it keeps.
func (c *Codec) Span() []byte {
	c.peek()
	start := c.pos
	c.Skip()
	if c.err != nil {
		return nil
	}
	return c.buf[start:c.pos]
}

func (c *Codec) word(w string) bool {
	if !bytes.HasPrefix(c.buf[c.pos:], []byte(w)) {
		c.malformed("a value is misspelled")
		return false
	}
	c.pos += len(w)
	return true
}

// number consumes a number and returns its bytes, and whether it is an integer: without
// fraction and exponent.
func (c *Codec) number() (lit []byte, integer bool) {
	rest := c.buf[c.pos:]
	whole, _, end := numberIn(rest)
	if end == 0 {
		c.malformed("a number is misspelled")
		return nil, false
	}
	c.pos += end
	return rest[:end], whole == end
}

// numberIn measures the number by JSON's grammar that text begins with: where its whole
// part, its mantissa and the number end; 0: it is not a number.
func numberIn(text []byte) (whole, mantissa, end int) {
	i := 0
	if len(text) > 0 && text[0] == '-' {
		i = 1
	}
	whole = digits(text, i)
	if whole == i || text[i] == '0' && whole > i+1 {
		return 0, 0, 0
	}
	mantissa = whole
	if mantissa < len(text) && text[mantissa] == '.' {
		if mantissa = digits(text, whole+1); mantissa == whole+1 {
			return 0, 0, 0
		}
	}
	end = mantissa
	if end < len(text) && text[end]|0x20 == 'e' {
		i = end + 1
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if end = digits(text, i); end == i {
			return 0, 0, 0
		}
	}
	return whole, mantissa, end
}

// digits returns where the digits that begin at i end.
func digits(text []byte, i int) int {
	for i < len(text) && text[i]-'0' <= 9 {
		i++
	}
	return i
}

// readString consumes the string whose opening quote is next. The result is a part of
// the body, unless it contains escapes. In free text, what is no character is replaced.
func (c *Codec) readString(free bool) []byte {
	rest := c.buf[c.pos+1:]
	i := 0
	for i < len(rest) && plain[rest[i]] {
		i++
	}
	if i < len(rest) && rest[i] == '"' {
		c.pos += i + 2
		return rest[:i]
	}
	return c.readSpecial(rest, i, free)
}

// plain marks the bytes that are themselves in a string and need no check.
var plain = func() (t [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// readSpecial is readString for a string in which the byte at i needs a closer look.
func (c *Codec) readSpecial(rest []byte, i int, free bool) []byte {
	escaped := false
	for ; i < len(rest) && rest[i] != '"'; i++ {
		switch b := rest[i]; {
		case b == '\\':
			escaped = true
			i++ // an escaped quote does not end the string
		case b < ' ':
			c.malformed("a string contains a control character")
			return nil
		}
	}
	if i >= len(rest) {
		c.malformed("it ends too early")
		return nil
	}
	c.pos += i + 2
	value, broken := rest[:i], !utf8.Valid(rest[:i])
	if broken && !free {
		c.malformed("a string is not valid UTF-8")
		return nil
	}
	if broken {
		value = bytes.ToValidUTF8(value, []byte("\ufffd"))
	}
	if escaped {
		var halves, ok bool
		if value, halves, ok = unescaped(value); !ok || halves && !free {
			c.malformed("a string contains an invalid escape")
			return nil
		}
		broken = broken || halves
	}
	if broken {
		c.Replaced = true
		c.Drift("invalid character")
	}
	return value
}

// unescaped replaces escapes, and reports whether it replaced halves of surrogate pairs. Only
// free text may have these: an order number with a replaced character would be another one.
func unescaped(raw []byte) (value []byte, halves, ok bool) {
	value = make([]byte, 0, len(raw)) // which is never longer
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			value = append(value, raw[i])
			continue
		}
		i++ // there is a next one: a backslash does not end a string
		if short := strings.IndexByte(`"\/bfnrt`, raw[i]); short >= 0 {
			value = append(value, "\"\\/\b\f\n\r\t"[short])
			continue
		}
		r, length := unicodeEscape(raw[i:])
		if length == 0 {
			return nil, halves, false
		}
		halves = halves || utf16.IsSurrogate(r)
		value = utf8.AppendRune(value, r) // U+FFFD of half a pair
		i += length - 1
	}
	return value, halves, true
}

// unicodeEscape reads u and four digits, with the second half of a surrogate pair if that
// follows, and returns how many bytes it read; 0: the escape is invalid.
func unicodeEscape(raw []byte) (rune, int) {
	r, ok := hex4(raw)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) && len(raw) > 6 && raw[5] == '\\' {
		low, _ := hex4(raw[6:]) // 0, which is no half, if it is none
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, 11
		}
	}
	return r, 5
}

func hex4(raw []byte) (rune, bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	return rune(n), err == nil
}

// sharedMemory is how many bytes of strings share an allocation: about those of a card.
const sharedMemory = 512

// keep returns a value as a string. Strings that are read one after another share their
// memory, which halves the allocations of a list.
func (c *Codec) keep(value []byte) string {
	if len(value) > c.kept.Cap()-c.kept.Len() {
		c.kept.Reset()
		c.kept.Grow(max(len(value), min(sharedMemory, len(c.buf)-c.pos)))
	}
	start := c.kept.Len()
	c.kept.Write(value)
	return c.kept.String()[start:]
}

// sizeOfName is what a remembered name takes in addition to its bytes.
const sizeOfName = 48

// remember adds the name of a field that is not known beforehand to those of its object.
func (c *Codec) remember(name []byte) {
	if c.Budget(sizeOfName) {
		c.names = append(c.names, name)
	}
}

// forget ends an object whose remembered names begin at base, and refuses it if one of
// them came twice.
func (c *Codec) forget(base int) {
	names := c.names[base:]
	slices.SortFunc(names, bytes.Compare)
	for i := range names {
		if i > 0 && bytes.Equal(names[i-1], names[i]) {
			c.malformed(duplicateField)
		}
	}
	c.names = c.names[:base]
	c.cost -= len(names) * sizeOfName // the memory is used again
}

const duplicateField = "a field name appears twice"
