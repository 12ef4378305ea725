package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Field is one named value of a request.
type Field struct {
	// Name is the wire's name.
	Name string
	// Value is what is sent under it; "" is sent as such.
	Value string
}

// Fields are the values of a request, in the order in which they are written.
type Fields []Field

// usualField is about how many bytes a field takes, so that few bodies grow.
const usualField = 64

// Add appends a field unless its value is "".
func (f *Fields) Add(name, value string) {
	if value != "" {
		*f = append(*f, Field{name, value})
	}
}

// Form writes the fields as application/x-www-form-urlencoded, or as a query.
func (f Fields) Form() string {
	var b strings.Builder
	b.Grow(usualField * len(f))
	for i, p := range f {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(url.QueryEscape(p.Name))
		b.WriteByte('=')
		b.WriteString(url.QueryEscape(p.Value))
	}
	return b.String()
}

// JSON writes the fields, of which there is one, as one JSON object of strings.
func (f Fields) JSON() []byte {
	b := make([]byte, 0, usualField*len(f))
	separator := byte('{')
	for _, p := range f {
		b = append(b, separator)
		b = append(AppendString(b, p.Name), ':')
		b = AppendString(b, p.Value)
		separator = ','
	}
	return append(b, '}')
}

// Parts returns the fields as parts of a multipart body.
func (f Fields) Parts() []Part {
	parts := make([]Part, len(f))
	for i, p := range f {
		parts[i] = Part{Name: p.Name, Value: []byte(p.Value)}
	}
	return parts
}

// Digest returns the SHA-256, in hex, of the fields sorted by name: the order of a name's values
// may matter. Each string is preceded by its length, so that two different sets of fields never
// hash the same bytes.
func (f Fields) Digest() string {
	sorted := slices.Clone(f)
	slices.SortStableFunc(sorted, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	b := make([]byte, 0, usualField*len(f))
	for _, p := range sorted {
		for _, s := range []string{p.Name, p.Value} {
			b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
			b = append(b, s...)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Part is a field of a multipart body, or a file.
type Part struct {
	// Name is the wire's name of the part.
	Name string
	// Value is the value of a field, or the bytes of a file.
	Value []byte
	// Filename is the file's name, without a directory; "": the part is a field.
	Filename string
	// ContentType is the media type of a file, like "image/png".
	ContentType string
}

// usualHeader is about how many bytes a part has around its value, so that few bodies grow.
const usualHeader = 256

// Multipart writes the parts, in their order, as multipart/form-data. The content type names
// the boundary.
func Multipart(parts []Part) (body []byte, contentType string) {
	size := usualHeader
	for _, p := range parts {
		size += len(p.Value) + usualHeader
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	w := multipart.NewWriter(b) // it fails only if b does, which never happens
	for _, p := range parts {
		if p.Filename == "" {
			_ = w.WriteField(p.Name, string(p.Value))
			continue
		}
		file, _ := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {multipart.FileContentDisposition(p.Name, p.Filename)},
			"Content-Type":        {p.ContentType},
		})
		_, _ = file.Write(p.Value)
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}
