package upload

import (
	"bytes"
	"context"
	"io"
	"iter"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// Part is a part of a multipart body.
type Part struct {
	// FormPart describes it. The ContentType of a file may be "": it is then detected.
	wire.FormPart
	// Source is the file; nil: the part is a field.
	Source *Source
}

// Field returns the part that is a field.
func Field(name, value string) Part { return Part{FormPart: wire.FormPart{Name: name, Value: value}} }

// Parts are those of a multipart body, in their order.
type Parts []Part

// Files iterates over the files among them.
func (p Parts) Files() iter.Seq[*Source] {
	return func(yield func(*Source) bool) {
		for _, part := range p {
			if part.Source != nil && !yield(part.Source) {
				return
			}
		}
	}
}

// Check returns why a file does not have as many bytes as it must: see [Source.Check].
func (p Parts) Check() error {
	for file := range p.Files() {
		if err := file.Check(); err != nil {
			return err
		}
	}
	return nil
}

// End releases the files.
func (p Parts) End() {
	for file := range p.Files() {
		file.End()
	}
}

// Body is a multipart body whose files are streamed.
type Body struct {
	// ContentType is its media type, with the boundary.
	ContentType string
	// Size is the number of its bytes.
	Size int64

	parts  Parts
	pieces [][]byte // before, between and after the files
}

// Begin opens the files for the first attempt. End must be called, also after an error.
func (p Parts) Begin(ctx context.Context, deadline time.Time) (*Body, error) {
	b := &Body{parts: p}
	form := make([]wire.FormPart, len(p))
	for i, part := range p {
		form[i] = part.FormPart
		if part.Source == nil {
			continue
		}
		err := part.Source.Begin(ctx, deadline)
		if err == nil && part.ContentType == "" {
			form[i].ContentType, err = part.Source.MediaType()
		}
		if err != nil {
			return nil, err
		}
		b.Size += part.Source.Size
	}
	m, err := wire.NewMultipart(form)
	if err != nil {
		return nil, err
	}
	for _, piece := range m.Pieces {
		b.Size += int64(len(piece))
	}
	b.ContentType, b.pieces = m.ContentType, m.Pieces
	return b, nil
}

// Open returns the bytes of one attempt.
func (b *Body) Open() (io.ReadCloser, error) {
	readers := []io.Reader{bytes.NewReader(b.pieces[0])}
	for file := range b.parts.Files() {
		fresh, err := file.Fresh()
		if err != nil {
			return nil, err
		}
		readers = append(readers, fresh, bytes.NewReader(b.pieces[(len(readers)+1)/2]))
	}
	return &attempt{bytes: io.MultiReader(readers...)}, nil
}

// attempt does not close the files, which are still to be checked after an early
// response.
type attempt struct {
	bytes  io.Reader
	closed atomic.Bool
}

func (a *attempt) Read(p []byte) (int, error) {
	if a.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	return a.bytes.Read(p)
}

func (a *attempt) Close() error {
	a.closed.Store(true)
	return nil
}
