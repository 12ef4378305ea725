package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
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
	path    []step   // one entry for each open container
	names   [][]byte // of open objects whose names are not known beforehand
	scratch []byte   // the current string, unescaped
	slab    []byte   // the strings of the current element, to become one allocation
	pending []pendingString
	drifts  []Drift
	cost    int      // of the elements so far, in bytes
	amounts *amounts // nil: none so far
	observe bool
	// Masking asks the values of card data to mask what they read.
	Masking bool
	err     *Error

	writing bool
	out     []byte
}

// step is the position in an open container: an element, or a field, by the offset
// of its name. It is not a string because it is set for every field, and writing a
// pointer is expensive while the garbage collector runs.
type step int

const (
	nowhere step = -1 - iota // before the first field
	element
	anyName // a field whose name is payload
)

type pendingString struct {
	dst *string
	end int
}

// Drift is a tolerated deviation from the API.
type Drift struct {
	// Path is the place, like "data.data[].fee".
	Path string
	// Kind is what deviates, like "string for number"; never a value.
	Kind string
}

// Error is why a document could not be read. It contains no byte of the document.
type Error struct {
	// Path is the place, like "data.data[].fee"; "" for the whole document, and with
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
	isMissing      = ""
	isHTML         = "HTML"
	duplicateField = "a field name appears twice"
)

// Missing returns the error for a field that is missing at path.
func Missing(path string) *Error { return &Error{Path: path, Problem: isMissing} }

func (e *Error) Error() string {
	switch {
	case e.Malformed && e.Problem == isHTML:
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

var codecs = sync.Pool{New: func() any { return new(Codec) }}

// NewReader returns a Codec that reads body, from a pool: call [Codec.Release] when
// done. It records drift only if observe is true.
func NewReader(body []byte, observe bool) *Codec {
	c := codecs.Get().(*Codec)
	c.buf, c.observe = body, observe
	return c
}

// Release clears the Codec, so that no payload stays in the pool, and returns it to
// the pool. Buffers that an extraordinary document made large are dropped: clearing
// them would slow down every later one.
func (c *Codec) Release() {
	c.amounts.forget()
	*c = Codec{
		path: c.path[:0], names: emptied(c.names), scratch: emptied(c.scratch),
		slab: emptied(c.slab), pending: emptied(c.pending), amounts: c.amounts,
	}
	codecs.Put(c)
}

// maxKept is the capacity up to which a Codec keeps a buffer for its next document.
const maxKept = 64 << 10

func emptied[T any](s []T) []T {
	clear(s[:cap(s)])
	if cap(s) > maxKept {
		return nil
	}
	return s[:0]
}

// Err returns the first error, or nil.
func (c *Codec) Err() *Error { return c.err }

// Drifts returns the tolerated deviations, each path and kind once.
func (c *Codec) Drifts() []Drift { return c.drifts }

// End checks that nothing but white space follows.
func (c *Codec) End() {
	if c.peek() != 0 || (c.err == nil && c.pos < len(c.buf)) {
		c.malformed("bytes follow the end")
	}
	c.Flush()
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
	pos, path, names int
	step             step
}

// Mark returns the current place, which is within a container. The strings read so
// far are stored: Rewind forgets only those that come after it.
func (c *Codec) Mark() Mark {
	c.Flush()
	return Mark{c.pos, len(c.path), len(c.names), c.path[len(c.path)-1]}
}

// Rewind returns to m and forgets the error that came after it.
func (c *Codec) Rewind(m Mark) {
	c.pos, c.path, c.names, c.err = m.pos, c.path[:m.path], c.names[:m.names], nil
	c.path[len(c.path)-1] = m.step
	c.slab, c.pending = c.slab[:0], c.pending[:0]
}

// Drift records a tolerated deviation at the current field.
func (c *Codec) Drift(kind string) { c.driftAt("", kind) }

// driftAt is Drift for a field that is missing.
func (c *Codec) driftAt(missing, kind string) {
	if !c.observe || c.err != nil || len(c.drifts) == maxDrifts {
		return
	}
	var room [256]byte
	path := c.appendPath(room[:0], missing)
	for i := range c.drifts {
		if c.drifts[i].Kind == kind && c.drifts[i].Path == string(path) {
			return
		}
	}
	c.drifts = append(c.drifts, Drift{Path: string(path), Kind: kind})
}

// Fail records that the current value is not what was expected.
func (c *Codec) Fail(want string) { c.failAt("", want) }

// failAt is Fail for a field that is missing.
func (c *Codec) failAt(missing, want string) {
	if c.err == nil {
		c.err = &Error{Path: string(c.appendPath(nil, missing)), Problem: want}
	}
}

func (c *Codec) malformed(problem string) {
	if c.err == nil {
		c.err = &Error{Problem: problem, Malformed: true}
	}
}

// appendPath writes the current path, followed by the name of a missing field unless
// that is "".
func (c *Codec) appendPath(dst []byte, missing string) []byte {
	for _, p := range c.path {
		switch p {
		case nowhere:
		case element:
			dst = append(dst, "[]"...)
		case anyName:
			dst = append(withDot(dst), '*')
		default:
			dst = append(withDot(dst), c.nameAt(p)...)
		}
	}
	if missing != "" {
		dst = append(withDot(dst), missing...)
	}
	return dst
}

// nameAt reads a known name again, which therefore contains no quote.
func (c *Codec) nameAt(p step) []byte {
	_, name, _ := bytes.Cut(c.buf[p:], []byte{'"'})
	name, _, _ = bytes.Cut(name, []byte{'"'})
	name, _ = appendUnescaped(nil, name)
	return name
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

// Flush stores the strings read since the last Flush as parts of one: an element
// costs one allocation, not one for each string.
func (c *Codec) Flush() {
	if len(c.pending) == 0 {
		return
	}
	all := string(c.slab)
	start := 0
	for _, p := range c.pending {
		*p.dst = all[start:p.end]
		start = p.end
	}
	c.slab = c.slab[:0]
	c.pending = c.pending[:0]
}

func (c *Codec) keep(dst *string, value []byte) {
	if len(value) == 0 {
		*dst = ""
		return
	}
	// Not by append alone, which stores the slice's pointer each time: see step.
	if len(value) > cap(c.slab)-len(c.slab) {
		c.slab = slices.Grow(c.slab, len(value))
	}
	start := len(c.slab)
	c.slab = c.slab[:start+len(value)]
	copy(c.slab[start:], value)
	c.pending = append(c.pending, pendingString{dst, len(c.slab)})
}

// peek skips white space and returns the next byte, 0 at the end or after an error.
func (c *Codec) peek() byte {
	if c.pos < len(c.buf) && c.buf[c.pos] > ' ' && c.err == nil {
		return c.buf[c.pos]
	}
	return c.peekOn()
}

// peekOn is peek if white space or an error comes first.
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

func (c *Codec) open(bracket byte, what string) bool {
	if b := c.peek(); b != bracket {
		c.wrong(b, what)
		return false
	}
	if len(c.path) == maxDepth {
		c.malformed("it is nested too deep")
		return false
	}
	c.pos++
	place := nowhere
	if bracket == '[' {
		place = element
	}
	c.path = append(c.path, place)
	return true
}

func (c *Codec) close() { c.path = c.path[:len(c.path)-1] }

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

const valueMissing = "a value is missing"

// markup recognizes the HTML page of a gateway or a proxy in place of the response.
func (c *Codec) markup() string {
	page := bytes.ToLower(c.buf[c.pos:min(c.pos+len("<!doctype html"), len(c.buf))])
	if len(c.path) == 0 && (bytes.HasPrefix(page, []byte("<!doctype html")) || bytes.HasPrefix(page, []byte("<html"))) {
		return isHTML
	}
	return valueMissing
}

// more consumes the comma before the next element, or the closing bracket.
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

// fieldName consumes a name and its colon. The name is valid until the next string is
// read, or for good if it contains no escapes.
func (c *Codec) fieldName() []byte {
	if c.peek() != '"' {
		c.malformed("a field name is missing")
		return nil
	}
	name := c.readString()
	c.colon()
	return name
}

// take consumes a name and its colon if they come next without white space, as they
// do if the service keeps to one order. It saves reading the name's bytes twice.
func (c *Codec) take(name string) bool {
	rest, n := c.buf[c.pos:], len(name)
	if len(rest) < n+3 || rest[0] != '"' || string(rest[1:n+1]) != name || rest[n+1] != '"' || rest[n+2] != ':' {
		return false
	}
	c.pos += n + 3
	return true
}

func (c *Codec) colon() {
	if c.peek() != ':' {
		c.malformed("a colon is missing")
		return
	}
	c.pos++
}

// plain marks the bytes that are themselves in a string and need no check.
var plain = func() (t [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// readString consumes the string whose opening quote is next. The result is valid
// until the next string is read.
func (c *Codec) readString() []byte {
	start := c.pos + 1
	i := start
	for ; i+8 <= len(c.buf); i += 8 {
		if special := specialBytes(binary.LittleEndian.Uint64(c.buf[i:])); special != 0 {
			i += bits.TrailingZeros64(special) / 8
			break
		}
	}
	for i < len(c.buf) && plain[c.buf[i]] {
		i++
	}
	if i < len(c.buf) && c.buf[i] == '"' {
		c.pos = i + 1
		return c.buf[start:i]
	}
	return c.readStringOn(start, i)
}

// specialBytes examines eight bytes at once. The lowest bit that is set in the result
// belongs to the first byte that is not plain; 0: all are.
func specialBytes(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^(ones*'"'), w^(ones*'\\')
	return (w | (w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
}

// readStringOn continues at i, the first byte that is not plain.
func (c *Codec) readStringOn(start, i int) []byte {
	escaped := false
	for ; i < len(c.buf) && c.buf[i] != '"'; i++ {
		switch b := c.buf[i]; {
		case b == '\\':
			escaped = true
			i++ // an escaped quote does not end the string
		case b < ' ':
			c.malformed("a string contains a control character")
			return nil
		}
	}
	if i >= len(c.buf) {
		c.malformed("it ends too early")
		return nil
	}
	raw := c.buf[start:i]
	c.pos = i + 1
	if !utf8.Valid(raw) {
		c.malformed("a string is not valid UTF-8")
		return nil
	}
	if !escaped {
		return raw
	}
	var ok bool
	// The result is never longer than raw: one allocation is enough.
	c.scratch, ok = appendUnescaped(slices.Grow(c.scratch[:0], len(raw)), raw)
	if !ok {
		c.malformed("a string contains an invalid escape")
		return nil
	}
	return c.scratch
}

// nameSet is the set of names of one open object, kept on the Codec's stack.
type nameSet struct {
	base int
	many map[string]struct{}
}

// fewNames are compared one by one; more go into a map, so that an object of a
// million names does not take quadratic time.
const fewNames = 16

// sizeOfName is what a name takes in the map in addition to its bytes.
const sizeOfName = 64

// unique adds name to the set; a duplicate is an error.
func (c *Codec) unique(set *nameSet, name []byte) bool {
	known := c.names[set.base:]
	if set.many == nil && len(known) == fewNames {
		set.many = make(map[string]struct{}, 4*fewNames)
		for _, k := range known {
			set.many[string(k)] = struct{}{}
		}
	}
	duplicate := false
	if set.many != nil {
		if _, duplicate = set.many[string(name)]; !duplicate && c.Budget(sizeOfName+len(name)) {
			set.many[string(name)] = struct{}{}
		}
	} else {
		for _, k := range known {
			duplicate = duplicate || string(k) == string(name)
		}
		c.names = append(c.names, c.stable(name))
	}
	if duplicate {
		c.malformed(duplicateField)
	}
	return !duplicate
}

// stable returns name in memory that the next string does not overwrite.
func (c *Codec) stable(name []byte) []byte {
	if len(name) > 0 && len(c.scratch) > 0 && &name[0] == &c.scratch[0] {
		return append([]byte(nil), name...)
	}
	return name
}

// Skip consumes one value of any kind, and checks all of it.
func (c *Codec) Skip() {
	switch b := c.peek(); b {
	case '{':
		c.Map(func([]byte) { c.Skip() })
	case '[':
		c.Each(c.Skip)
	case '"':
		c.readString()
	case 't':
		c.word("true")
	case 'f':
		c.word("false")
	case 'n':
		c.word("null")
	default:
		if b == '-' || b >= '0' && b <= '9' {
			c.number()
			return
		}
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
	if rest := c.buf[c.pos:]; len(rest) < len(w) || string(rest[:len(w)]) != w {
		c.malformed("a value is misspelled")
		return false
	}
	c.pos += len(w)
	return true
}

// number consumes a number by JSON's grammar and returns its bytes.
func (c *Codec) number() []byte {
	start, i := c.pos, c.pos
	if i < len(c.buf) && c.buf[i] == '-' {
		i++
	}
	whole := digits(c.buf, i)
	ok := whole > i && (c.buf[i] != '0' || whole == i+1)
	i = whole
	if ok && i < len(c.buf) && c.buf[i] == '.' {
		fraction := digits(c.buf, i+1)
		ok, i = fraction > i+1, fraction
	}
	if ok && i < len(c.buf) && c.buf[i]|0x20 == 'e' {
		i++
		if i < len(c.buf) && (c.buf[i] == '+' || c.buf[i] == '-') {
			i++
		}
		exponent := digits(c.buf, i)
		ok, i = exponent > i, exponent
	}
	if !ok {
		c.malformed("a number is misspelled")
		return nil
	}
	c.pos = i
	return c.buf[start:i]
}

func digits(buf []byte, i int) int {
	for i < len(buf) && buf[i]-'0' <= 9 {
		i++
	}
	return i
}
