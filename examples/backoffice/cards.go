package main

import (
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/cardwire/cardwire-go"
)

// cardsPerPage fits a screen.
const cardsPerPage = 12

var cardFilter = []input{
	{Name: "Status", Kind: "select", Options: []option{
		{"", "any"}, {"0", "active"}, {"1", "frozen"}, {"4", "suspended"}, {"-1", "locked"}, {"3", "closing"}, {"2", "closed"},
	}},
	{Name: "CardBIN", Label: "BIN", Mode: "numeric"},
}

type cardsData struct {
	*cardwire.CardPage
	Prev, Next string // addresses; "": there is none
}

// cards lists a page of cards. The SDK checks the filter, and also that the
// service honoured it.
func (o *office) cards(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	p := page{Title: "Cards", Nav: "cards", Inputs: inputs(asked, cardFilter...)}
	found, err := o.client.ListCards(r.Context(), cardParams(asked.Get("page"), p.Inputs))
	status := http.StatusOK
	switch {
	case errors.Is(err, cardwire.ErrInvalidParams) && blame(p.Inputs, err):
		status = http.StatusBadRequest
	case err != nil:
		status, p.Said = judge(ofReads, "", err)
	default:
		p.Data = cardsData{found, neighbour(asked, found, -1), neighbour(asked, found, +1)}
	}
	o.show(w, r, status, "cards", p)
}

func cardParams(number string, filter []*input) cardwire.ListCardsParams {
	p := cardwire.ListCardsParams{Limit: cardsPerPage, CardBIN: filter[1].Value}
	p.Page, _ = strconv.Atoi(number) // what is no number is the first
	if text := filter[0].Value; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			n = int(cardwire.CardLocked) - 1 // none of the six, which is the SDK's to say
		}
		p.Status = new(cardwire.CardStatus(n))
	}
	return p
}

// neighbour is the address of the page before or after the one that was found.
func neighbour(asked url.Values, found *cardwire.CardPage, step int) string {
	to := found.CurrentPage + step
	if to < 1 || to > found.LastPage {
		return ""
	}
	q := url.Values{"page": {strconv.Itoa(to)}, "Status": asked["Status"], "CardBIN": asked["CardBIN"]}
	return "/cards?" + q.Encode()
}

// find reads the card that the address names, or says why there is none.
func (o *office) find(w http.ResponseWriter, r *http.Request) *cardwire.Card {
	card, err := o.client.GetCard(r.Context(), r.PathValue("id"))
	if err != nil {
		o.unread(w, r, err)
		return nil
	}
	return card
}

func (o *office) card(w http.ResponseWriter, r *http.Request) {
	if card := o.find(w, r); card != nil {
		o.show(w, r, http.StatusOK, "card", page{Title: "Card " + card.ID, Nav: "cards", Data: card})
	}
}

type freezeData struct {
	*cardwire.Card
	ClientTransactionID string // made with the form: two clicks are one freeze
}

// freezeForm asks whether it is meant.
func (o *office) freezeForm(w http.ResponseWriter, r *http.Request) {
	if card := o.find(w, r); card != nil {
		o.show(w, r, http.StatusOK, "freeze", page{
			Title: "Freeze card " + card.ID, Nav: "cards", Data: freezeData{card, uuid.NewString()},
		})
	}
}

func (o *office) freeze(w http.ResponseWriter, r *http.Request) {
	if !o.readForm(w, r) {
		return
	}
	operation, err := o.client.FreezeCard(r.Context(), cardwire.FreezeCardParams{
		CardID: r.PathValue("id"), ClientTransactionID: r.PostForm.Get("ClientTransactionID"),
	})
	if err != nil {
		o.unwritten(w, r, "The freeze", err)
		return
	}
	o.tell(w, r, http.StatusOK, &said{Kind: "done", What: "The freeze", Reference: operation.ClientTransactionID},
		option{operation.ID, "The service's operation"})
}

// The operations that failed, as far as the fake service is concerned.
const (
	failedTopUp  = "0c5b7a1e-2f4d-4c8a-9b3e-6d1f8a7c2e50"
	failedFreeze = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"
)

func operationPage(values url.Values) page {
	return page{
		Title: "Failed operations", Nav: "operations", Inputs: inputs(values, input{
			Name: "clientTransactionID", Label: "Transaction ID", Required: true,
			Hint: "The UUID of the failed top-up, withdrawal, freeze, unfreeze or close.",
		}),
		Data: []option{{failedTopUp, "a failed top-up"}, {failedFreeze, "a failed freeze"}},
	}
}

func (o *office) operationForm(w http.ResponseWriter, r *http.Request) {
	o.show(w, r, http.StatusOK, "operations", operationPage(nil))
}

// settleOperation does what the button says.
func (o *office) settleOperation(w http.ResponseWriter, r *http.Request) {
	if !o.readForm(w, r) {
		return
	}
	p := operationPage(r.PostForm)
	settle, what := o.client.RetryOperation, "The retry"
	if r.PostForm.Get("action") == "cancel" {
		settle, what = o.client.CancelOperation, "The cancellation"
	}
	err := settle(r.Context(), p.Inputs[0].Value)
	switch {
	case errors.Is(err, cardwire.ErrInvalidParams) && blame(p.Inputs, err):
		o.show(w, r, http.StatusUnprocessableEntity, "operations", p)
	case err != nil:
		o.unwritten(w, r, what, err)
	default:
		o.tell(w, r, http.StatusOK, &said{Kind: "done", What: what, Reference: p.Inputs[0].Value})
	}
}

// product is a BIN and whether it is under maintenance, which the service says
// in two places.
type product struct {
	cardwire.BIN
	Maintained bool
}

func (o *office) bins(w http.ResponseWriter, r *http.Request) {
	bins, err := o.client.ListBINs(r.Context())
	var maintained []string
	if err == nil {
		maintained, err = o.client.ListBINsUnderMaintenance(r.Context())
	}
	if err != nil {
		o.unread(w, r, err)
		return
	}
	var products []product
	for _, b := range bins {
		products = append(products, product{b, b.Maintain || slices.Contains(maintained, b.BIN)})
	}
	o.show(w, r, http.StatusOK, "bins", page{Title: "BINs", Nav: "bins", Data: products})
}

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
		o.unwritten(w, r, "The upload", err)
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
