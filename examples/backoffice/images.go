package main

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/cardwire/cardwire-go"
)

// An image: its greatest size, and how much of it is kept in memory. The rest
// waits in a temporary file, since the service must be told the size before the
// first byte, and a browser does not tell it.
const (
	maxImage    = 10 << 20
	imageMemory = 256 << 10
)

func imagePage(fault string) page {
	p := page{Title: "Upload an image", Nav: "images", Inputs: inputs(url.Values{},
		input{Name: "File", Label: "Image", Kind: "file", Required: true, Hint: "A photograph or scan of at most 10 MB."})}
	p.Inputs[0].Error = fault
	return p
}

func (o *office) imageForm(w http.ResponseWriter, r *http.Request) {
	o.show(w, r, http.StatusOK, "images", imagePage(""))
}

func (o *office) uploadImage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxImage)
	defer func() {
		if r.MultipartForm != nil {
			_ = r.MultipartForm.RemoveAll()
		}
	}()
	image, fault := imageOf(r)
	if fault != "" {
		o.show(w, r, http.StatusUnprocessableEntity, "images", imagePage(fault))
		return
	}
	uploaded, err := o.client.UploadImage(r.Context(), cardwire.UploadImageParams{
		Filename: image.Filename, Size: image.Size,
		Open: func() (io.ReadCloser, error) { return image.Open() },
	})
	switch {
	case errors.Is(err, cardwire.ErrInvalidParams):
		field, text := problem(err)
		o.show(w, r, http.StatusUnprocessableEntity, "images", imagePage(words(field)+" "+text+"."))
	case err != nil:
		status, s := judge(ofWrites, "The upload", err)
		o.tell(w, r, status, s)
	default:
		o.tell(w, r, http.StatusOK, &said{Kind: "done", What: "The upload"}, option{uploaded.AttachmentKey, "Attachment key"})
	}
}

// imageOf reads the form as far as the image, or says what is wrong with it.
func imageOf(r *http.Request) (image *multipart.FileHeader, fault string) {
	var tooLarge *http.MaxBytesError
	switch err := r.ParseMultipartForm(imageMemory); {
	case errors.As(err, &tooLarge):
		return nil, "The image is larger than 10 MB."
	case err != nil:
		return nil, "The image did not arrive whole. Try again."
	case len(r.MultipartForm.File["File"]) != 1:
		return nil, "Choose an image."
	}
	return r.MultipartForm.File["File"][0], ""
}
