package wire

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"slices"
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

// Add appends a field unless its value is "".
func (f *Fields) Add(name, value string) {
	if value != "" {
		*f = append(*f, Field{name, value})
	}
}

// Form writes the fields as application/x-www-form-urlencoded, or as a query.
func (f Fields) Form() string {
	var b strings.Builder
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

// JSON writes the fields as one JSON object of texts.
func (f Fields) JSON() []byte {
	if len(f) == 0 {
		return []byte("{}")
	}
	var b []byte
	separator := byte('{')
	for _, p := range f {
		b = append(b, separator)
		b = append(AppendText(b, p.Name), ':')
		b = AppendText(b, p.Value)
		separator = ','
	}
	return append(b, '}')
}

// Digest is the SHA-256, in hex, of the sorted fields. Each text is preceded by
// its length, so that no two sets of fields share what is hashed.
func (f Fields) Digest() string {
	sorted := slices.Clone(f)
	slices.SortFunc(sorted, func(a, b Field) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	h := sha256.New()
	for _, p := range sorted {
		for _, s := range []string{p.Name, p.Value} {
			h.Write(appendInt(nil, int64(len(s))))
			h.Write([]byte{':'})
			h.Write([]byte(s))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Multipart is a multipart/form-data body in three parts: Head, the bytes of
// the file if there is one, and Tail.
type Multipart struct {
	// ContentType is the value of that header; it names the boundary.
	ContentType string
	// Head is what stands before the file's bytes.
	Head []byte
	// Tail is what stands behind them.
	Tail []byte
}

// File describes the file part of a [Multipart]. Its bytes are the caller's.
type File struct {
	// Field is the wire's name of the part.
	Field string
	// Name is the file's name, without a directory.
	Name string
	// ContentType is the media type, like "image/png".
	ContentType string
}

// NewMultipart writes the fields, and the head of a file part unless file is nil.
func NewMultipart(f Fields, file *File) (Multipart, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range f {
		if err := w.WriteField(p.Name, p.Value); err != nil {
			return Multipart{}, err
		}
	}
	if file != nil {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", multipart.FileContentDisposition(file.Field, file.Name))
		h.Set("Content-Type", file.ContentType)
		if _, err := w.CreatePart(h); err != nil {
			return Multipart{}, err
		}
	}
	head := b.Len()
	if err := w.Close(); err != nil {
		return Multipart{}, err
	}
	return Multipart{ContentType: w.FormDataContentType(), Head: b.Bytes()[:head:head], Tail: b.Bytes()[head:]}, nil
}
