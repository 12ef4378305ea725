package wire

import (
	"strconv"
	"strings"
)

// Marshal writes v as an object of members. It has the signature of a
// MarshalJSON's result; the error is always nil.
func Marshal[T any](v *T, members []Member[T]) ([]byte, error) {
	c := &Codec{writing: true}
	writeObject(c, v, members)
	return c.out, nil
}

// Unmarshal reads one whole text as an object of members, in any of its forms.
// Null leaves v as it is, as encoding/json asks of an UnmarshalJSON.
func Unmarshal[T any](text []byte, v *T, members []Member[T]) error {
	c := NewReader(text, false)
	defer c.Release()
	if c.Null() {
		c.End()
	} else {
		var fresh T
		Object(c, &fresh, members, Lenient)
		c.End()
		if c.err == nil {
			*v = fresh
		}
	}
	if c.err != nil {
		return c.err
	}
	return nil
}

// Writing says whether the Codec writes. Only values of a shape of their own
// need to ask.
func (c *Codec) Writing() bool { return c.writing }

// Append appends JSON text as it stands.
func (c *Codec) Append(text ...byte) { c.out = append(c.out, text...) }

// AppendText appends s as a JSON text to the Codec's output.
func (c *Codec) AppendText(s string) { c.out = AppendText(c.out, s) }

func writeObject[T any](c *Codec, v *T, members []Member[T]) {
	separator := byte('{')
	for _, m := range members {
		c.out = append(c.out, separator)
		c.out = AppendText(c.out, m.Name)
		c.out = append(c.out, ':')
		m.Value(c, v)
		separator = ','
	}
	c.out = append(c.out, '}')
}

func writeList[T any](c *Codec, list []T, one func(*T)) {
	c.out = append(c.out, '[')
	for i := range list {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		one(&list[i])
	}
	c.out = append(c.out, ']')
}

// AppendText writes s as a JSON text. What is not valid UTF-8 is replaced, as
// encoding/json does; in a request it must have been refused beforehand.
func AppendText(dst []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	dst = append(dst, '"')
	for i := range len(s) {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b < ' ':
			dst = append(dst, '\\', 'u', '0', '0', "01"[b>>4], "0123456789abcdef"[b&15])
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
