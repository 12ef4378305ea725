package wire

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"
)

// Limits of what is read. Depth counts every open object and array.
const (
	maxDepth  = 64
	maxDrifts = 100
)

// A Codec reads one JSON text or writes one. Its errors stick: after the first
// one every call does nothing, so that callers check once, at the end.
type Codec struct {
	buf     []byte
	pos     int
	path    []step   // one entry an open container
	names   [][]byte // of open objects whose names are not known beforehand
	scratch []byte   // the current text, unescaped
	slab    []byte   // the texts of the current element, to become one string
	pending []pendingText
	drifts  []Drift
	cost    int      // of the elements so far, in bytes
	amounts *amounts // nil: there was none yet
	block   any      // of Part: what is left of it
	observe bool
	// Masking asks the values of card data to mask what they read.
	Masking bool
	err     *Error

	writing bool
	out     []byte
}

// step is where in an open container the Codec is: at an element, or at a member,
// by the place of its name in the text. It is no string because it is set once a
// member, and a pointer that is set costs most where the collector runs.
type step int

const (
	nowhere step = -1 - iota // before the first member
	element
	anyName // a member whose name is payload
)

type pendingText struct {
	dst *string
	end int
}

// Drift is a deviation from the interface that was tolerated.
type Drift struct {
	// Path is where it is, like "data.data[].fee".
	Path string
	// Kind is what it is, like "text for number"; never a value.
	Kind string
}

// Error says why a text could not be read. It holds no byte of the text.
type Error struct {
	// Path is where it is, like "data.data[].fee"; "" for the whole answer, and
	// with Malformed.
	Path string
	// Problem is what was wanted there; with Malformed, what is not JSON.
	Problem string
	// Malformed says that it is not strict JSON, as against JSON of the wrong kind.
	Malformed bool
}

func (e *Error) Error() string {
	switch {
	case e.Malformed:
		return "the answer is not strict JSON: " + e.Problem
	case e.Path == "":
		return "the answer: want " + e.Problem
	}
	return e.Path + ": want " + e.Problem
}

var codecs = sync.Pool{New: func() any { return new(Codec) }}

// NewReader returns a Codec that reads body, from a pool: call [Codec.Release]
// when done. Where observe is false no drift is kept.
func NewReader(body []byte, observe bool) *Codec {
	c := codecs.Get().(*Codec)
	c.buf, c.observe = body, observe
	return c
}

// Release clears the Codec, so that no payload stays in the pool, and gives it
// back. What an extraordinary text made grow is left to the collector: cleared
// each time, it would cost every later one.
func (c *Codec) Release() {
	c.amounts.forget()
	*c = Codec{
		path: c.path[:0], names: emptied(c.names), scratch: emptied(c.scratch),
		slab: emptied(c.slab), pending: emptied(c.pending), amounts: c.amounts,
	}
	codecs.Put(c)
}

// maxKept is the capacity up to which a Codec keeps a buffer for its next text.
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

// Drifts returns what was tolerated, each path and kind once.
func (c *Codec) Drifts() []Drift { return c.drifts }

// End checks that nothing but white space follows.
func (c *Codec) End() {
	if c.peek() != 0 || (c.err == nil && c.pos < len(c.buf)) {
		c.malformed("bytes follow the end")
	}
	c.Flush()
}

// Kind returns the first byte of the next value: one of { [ " t f n 0 -, with
// every digit as '0', or 0 where there is none.
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
	member           step
}

// Mark returns the current place, which is within a container. The texts read
// so far are handed out: Rewind forgets only those that come after it.
func (c *Codec) Mark() Mark {
	c.Flush()
	return Mark{c.pos, len(c.path), len(c.names), c.path[len(c.path)-1]}
}

// Rewind returns to m and forgets the error that came after it.
func (c *Codec) Rewind(m Mark) {
	c.pos, c.path, c.names, c.err = m.pos, c.path[:m.path], c.names[:m.names], nil
	c.path[len(c.path)-1] = m.member
	c.slab, c.pending = c.slab[:0], c.pending[:0]
}

// Drift reports a tolerated deviation at the current member.
func (c *Codec) Drift(kind string) { c.driftAt("", kind) }

// driftAt is Drift for a member that is not there.
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

// Fail says that the current value is not what was wanted.
func (c *Codec) Fail(want string) { c.failAt("", want) }

// failAt is Fail for a member that is not there.
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

// appendPath writes where the Codec is, and there the member that is missing, if
// it is not "".
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

// nameAt reads a name once more that is known, and so holds no quote.
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

// What a text may cost in memory: some times its own length, and an allowance
// that makes short ones no matter. Elements with all their members cost less
// than twice their text; what exceeds this holds nothing worth reading.
const (
	costPerByte = 4
	costFree    = 256 << 10
)

// Charge counts the bytes that the next element takes, and fails where a text
// of tiny elements would cost a multiple of its length.
func (c *Codec) Charge(n int) bool {
	if c.cost += n; c.cost > costFree+costPerByte*len(c.buf) {
		c.malformed("its elements are too many for their size")
	}
	return c.err == nil
}

// Flush turns the texts gathered since the last Flush into one string and
// hands each place its part: an element costs one allocation, not one a text.
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

func (c *Codec) keep(dst *string, text []byte) {
	if len(text) == 0 {
		*dst = ""
		return
	}
	// Not by append alone, which stores the slice's pointer each time: see step.
	if len(text) > cap(c.slab)-len(c.slab) {
		c.slab = slices.Grow(c.slab, len(text))
	}
	start := len(c.slab)
	c.slab = c.slab[:start+len(text)]
	copy(c.slab[start:], text)
	c.pending = append(c.pending, pendingText{dst, len(c.slab)})
}

// peek skips white space and returns the next byte, 0 at the end or after an error.
func (c *Codec) peek() byte {
	if c.pos < len(c.buf) && c.buf[c.pos] > ' ' && c.err == nil {
		return c.buf[c.pos]
	}
	return c.peekOn()
}

// peekOn is peek where something stands before the next byte.
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
		c.malformed("it is nested too deeply")
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

// wrong fails with what was wanted where a value of another kind stands, and
// as malformed where no value does.
func (c *Codec) wrong(b byte, want string) {
	switch b {
	case '{', '[', '"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
		c.Fail(want)
	case 0:
		c.malformed("it ends too early")
	default:
		c.malformed("a value is missing")
	}
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

// memberName consumes a name and its colon. The name is valid until the next
// text is read, or for good where it holds no escapes.
func (c *Codec) memberName() []byte {
	if c.peek() != '"' {
		c.malformed("a member name is missing")
		return nil
	}
	name := c.text()
	c.colon()
	return name
}

// take consumes a name and its colon if they come next without white space, as
// they do where the service keeps to one order. It spares looking at the name's
// bytes twice.
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

// plain marks the bytes that stand for themselves in a text and need no check.
var plain = func() (t [256]bool) {
	for b := ' '; b < utf8.RuneSelf; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// text consumes the text whose opening quote is next. The result is valid
// until the next text is read.
func (c *Codec) text() []byte {
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
	return c.slowText(start, i)
}

// specialBytes looks at eight bytes at once. The lowest bit that is set in the
// result belongs to the first byte that is not plain; 0 says that all are.
func specialBytes(w uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^(ones*'"'), w^(ones*'\\')
	return (w | (w-ones*' ')&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops
}

// slowText goes on at i, where the first byte stands that needs attention.
func (c *Codec) slowText(start, i int) []byte {
	escaped := false
	for ; i < len(c.buf) && c.buf[i] != '"'; i++ {
		switch b := c.buf[i]; {
		case b == '\\':
			escaped = true
			i++ // an escaped quote does not end the text
		case b < ' ':
			c.malformed("a text holds a control character")
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
		c.malformed("a text is not valid UTF-8")
		return nil
	}
	if !escaped {
		return raw
	}
	var ok bool
	// Never longer than raw: growing little by little would cost a multiple of it.
	c.scratch, ok = appendUnescaped(slices.Grow(c.scratch[:0], len(raw)), raw)
	if !ok {
		c.malformed("a text holds an invalid escape")
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
// million names costs no square of it.
const fewNames = 16

// sizeOfName is what a name takes in the map beside its bytes.
const sizeOfName = 64

// unique adds name to the set; a repeated one is an error.
func (c *Codec) unique(set *nameSet, name []byte) bool {
	known := c.names[set.base:]
	if set.many == nil && len(known) == fewNames {
		set.many = make(map[string]struct{}, 4*fewNames)
		for _, k := range known {
			set.many[string(k)] = struct{}{}
		}
	}
	repeated := false
	if set.many != nil {
		if _, repeated = set.many[string(name)]; !repeated && c.Charge(sizeOfName+len(name)) {
			set.many[string(name)] = struct{}{}
		}
	} else {
		for _, k := range known {
			repeated = repeated || string(k) == string(name)
		}
		c.names = append(c.names, c.stable(name))
	}
	if repeated {
		c.malformed("a member name is repeated")
	}
	return !repeated
}

// stable returns name in memory that outlives the next text.
func (c *Codec) stable(name []byte) []byte {
	if len(name) > 0 && len(c.scratch) > 0 && &name[0] == &c.scratch[0] {
		return append([]byte(nil), name...)
	}
	return name
}

// Skip consumes one value of any kind, checking all of it.
func (c *Codec) Skip() {
	switch b := c.peek(); b {
	case '{':
		c.Map(func([]byte) { c.Skip() })
	case '[':
		c.Each(c.Skip)
	case '"':
		c.text()
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

// Span consumes one value of any kind and returns its text as it stands in the
// body: the caller copies what it keeps.
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
		c.malformed("a value is misspelt")
		return false
	}
	c.pos += len(w)
	return true
}

// number consumes a number by JSON's grammar and returns its text.
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
		c.malformed("a number is misspelt")
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
