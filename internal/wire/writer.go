package wire

import "strings"

// Marshal writes v as an object of fields. It has the signature of a
// MarshalJSON's result; the error is always nil.
func Marshal[T any](v *T, fields []FieldOf[T]) ([]byte, error) {
	c := &Codec{Writing: true}
	writeObject(c, v, fields)
	return c.out, nil
}

// Unmarshal reads one whole document as an object of fields, in any of its forms.
// Null leaves v unchanged, as encoding/json requires of an UnmarshalJSON.
func Unmarshal[T any](text []byte, v *T, fields []FieldOf[T]) error {
	c := NewReader(text, false)
	fresh := *v
	if !c.Null() {
		fresh = *new(T)
		Object(c, &fresh, fields, Lenient)
	}
	if c.End(); c.err == nil && len(c.unreadable) > 0 {
		c.err = c.unreadable[0].Err
	}
	if c.err != nil {
		return c.err
	}
	*v = fresh
	return nil
}

// Append appends raw JSON.
func (c *Codec) Append(raw ...byte) { c.out = append(c.out, raw...) }

// AppendString appends s as a JSON string to the Codec's output.
func (c *Codec) AppendString(s string) { c.out = AppendString(c.out, s) }

func writeObject[T any](c *Codec, v *T, fields []FieldOf[T]) {
	separator := byte('{')
	for _, m := range fields {
		c.out = append(c.out, separator)
		c.out = append(AppendString(c.out, m.Name), ':')
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

// AppendString writes s as a JSON string. It replaces invalid UTF-8, as encoding/json
// does; a request must have been refused for it beforehand.
func AppendString(dst []byte, s string) []byte {
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
