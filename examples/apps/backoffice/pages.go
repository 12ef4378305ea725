package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

func (o *office) overview(r *http.Request) (page, error) {
	capacity, err := o.client.CardCapacity(r.Context())
	if err != nil {
		return page{}, err
	}
	cards, err := o.client.ListCards(r.Context(), cardwire.ListCardsParams{Limit: 1})
	if err != nil {
		return page{}, err
	}
	entries, _, err := o.entries(r.Context())
	return page{name: "overview", Data: map[string]any{"Capacity": capacity, "Cards": cards.Total, "Unresolved": len(entries)}}, err
}

// cards lists a page of cards. The SDK checks the filter, and also that the
// service honored it.
func (o *office) cards(r *http.Request) (page, error) {
	p := page{name: "cards", Form: r.Form, Fields: o.filters(), Faults: map[string]string{}}
	params := cardwire.ListCardsParams{Limit: 12}
	for _, f := range p.Fields {
		if err := set(&params, f.Name, r.Form.Get(f.Name)); err != nil {
			p.Faults[f.Name] = err.Error()
		}
	}
	if len(p.Faults) > 0 {
		return p, nil
	}
	if number, err := strconv.ParseUint(r.Form.Get("page"), 10, 31); err == nil { // else the first
		params.Page = int(number)
	}
	found, err := o.client.ListCards(r.Context(), params)
	p.Data = found
	return p, err
}

// filters are those whose parameters the profile has a name for.
func (o *office) filters() []field {
	names := reflect.ValueOf(o.profile)
	return slices.DeleteFunc(slices.Clone(forms["cards"]), func(f field) bool {
		return names.FieldByName(strings.TrimSuffix(f.Name, "ID") + "Param").IsZero()
	})
}

func (o *office) card(r *http.Request) (page, error) {
	card, err := o.client.GetCard(r.Context(), r.PathValue("id"))
	return page{name: "card", Data: card}, err
}

// freezeForm asks whether it is meant. The number is made with the form, so that
// two clicks are one freeze.
func (o *office) freezeForm(r *http.Request) (page, error) {
	card, err := o.client.GetCard(r.Context(), r.PathValue("id"))
	return page{name: "freeze", Data: map[string]any{"Card": card, "Number": uuid.NewString()}}, err
}

func (o *office) freeze(r *http.Request) (page, error) {
	params := cardwire.FreezeCardParams{CardID: r.PathValue("id"), ClientTransactionID: r.PostForm.Get("ClientTransactionID")}
	operation, err := o.client.FreezeCard(r.Context(), params)
	s := judgeWrite("The freeze", err)
	s.CardID = params.CardID
	if err == nil {
		s.Reference, s.ServiceID = operation.ClientTransactionID, operation.ID
	}
	return page{to: "/result", Said: s}, nil
}

// The operations that failed, as far as the fake service is concerned.
const (
	failedTopUp  = "0c5b7a1e-2f4d-4c8a-9b3e-6d1f8a7c2e50"
	failedFreeze = "7e9d3b2a-5c1f-4e6b-8a4d-1b2c3d4e5f6a"
)

// retryOrCancel does what the button says.
func (o *office) retryOrCancel(r *http.Request) (page, error) {
	do, what := o.client.RetryOperation, "The retry"
	switch action := r.PostForm.Get("action"); {
	case action == "cancel":
		do, what = o.client.CancelOperation, "The cancellation"
	case action != "retry":
		return notice("bad-form", http.StatusUnprocessableEntity), nil
	}
	err := do(r.Context(), strings.TrimSpace(r.PostForm.Get("clientTransactionID")))
	s := judgeWrite(what, err)
	if s.Kind == "invalid" {
		return page{name: "operations", Fields: forms["operations"], Form: r.PostForm}, err
	}
	return page{to: "/result", Said: s}, nil
}

func (o *office) bins(r *http.Request) (page, error) {
	bins, err := o.client.ListBINs(r.Context())
	if err != nil {
		return page{}, err
	}
	maintained, err := o.client.ListBINsUnderMaintenance(r.Context())
	for i := range bins { // the service says it in two places
		bins[i].Maintain = bins[i].Maintain || slices.Contains(maintained, bins[i].BIN)
	}
	return page{name: "bins", Data: bins}, err
}

func imagesPage(faults map[string]string) page {
	return page{name: "images", Fields: forms["images"], Faults: faults}
}

// uploadImage keeps the image in memory: the service must be told the size before
// the first byte, and a browser does not tell it.
func (o *office) uploadImage(r *http.Request) (page, error) {
	_, image, err := r.FormFile("File")
	if err != nil {
		return imagesPage(map[string]string{"File": "did not arrive: choose one of at most 10 MB"}), nil
	}
	uploaded, err := o.client.UploadImage(r.Context(), cardwire.UploadImageParams{
		Filename: image.Filename, Size: image.Size, Open: func() (io.ReadCloser, error) { return image.Open() },
	})
	if errors.Is(err, cardwire.ErrInvalidParams) {
		name, fault := problem(err)
		return imagesPage(map[string]string{"File": "cannot be sent: " + name + " " + fault}), nil
	}
	s := judgeWrite("The upload", err)
	if err == nil {
		s.ServiceID = uploaded.AttachmentKey
	}
	return page{to: "/result", Said: s}, nil
}

// said is what came of something; templates/said.html has the words for each kind.
type said struct {
	Kind      string
	Step      cardwire.Step // after a write: what may be done next
	What      string        // what it is about, like "The transfer"
	Service   string        // the service's own words; "": none
	Status    string        // the service's, of what it accepted; "": none
	Reference string        // what to ask the service about; "": nothing
	ServiceID string        // what the service calls it; "": not known
	Cause     string        // why it failed; "": the kind says it
	CardID    string        // the card that it is about; "": none
	status    int           // of the page that says it
	Form      url.Values    // what was put in, to be sent again; nil: nothing
}

// verdict says what an error comes to that is all of these.
type verdict struct {
	kind   string
	status int
	is     []error
}

// ofWrites has the words for each step: why it is this one. What is done next depends
// on the step alone.
var ofWrites = map[cardwire.Step][]verdict{
	cardwire.StepDone: {
		{"done", http.StatusOK, []error{nil}},
		{"done-before", http.StatusConflict, []error{cardwire.ErrDuplicateIntent}},
		{"executed", http.StatusOK, nil},
	},
	cardwire.StepRetry: {
		{"not-sent", http.StatusServiceUnavailable, []error{cardwire.ErrNotSent}},
		{"wrong-key", http.StatusBadGateway, []error{cardwire.ErrRefused, cardwire.ErrUnauthorized}},
		{"refused-for-now", http.StatusServiceUnavailable, []error{cardwire.ErrRefused}},
		{"harmless", http.StatusBadGateway, nil},
	},
	cardwire.StepFail: {
		{"closed", http.StatusConflict, []error{cardwire.ErrDuplicateIntent}},
		{"invalid", http.StatusUnprocessableEntity, []error{cardwire.ErrInvalidParams}},
		{"refused", http.StatusUnprocessableEntity, nil},
	},
	cardwire.StepWait: {
		{"under-way", http.StatusConflict, nil},
	},
	cardwire.StepReconcile: {
		{"other-body", http.StatusConflict, []error{cardwire.ErrOtherBody}},
		{"still-unknown", http.StatusConflict, []error{cardwire.ErrDuplicateIntent}},
		{"unknown", http.StatusBadGateway, nil},
	},
}

// ofReads has the words for reads: whatever went wrong, nothing was changed.
var ofReads = []verdict{
	{"invalid", http.StatusBadRequest, []error{cardwire.ErrInvalidParams}},
	{"ignored", http.StatusBadGateway, []error{cardwire.ErrParameterIgnored}},
	{"not-found", http.StatusNotFound, []error{cardwire.ErrNotFound}},
	{"wrong-key", http.StatusBadGateway, []error{cardwire.ErrUnauthorized}},
	{"busy", http.StatusServiceUnavailable, []error{cardwire.ErrRateLimited}},
	{"no-journal", http.StatusServiceUnavailable, []error{errNoJournal}},
	{"unreadable", http.StatusBadGateway, nil},
}

// ofResolutions has the words for the recording of an outcome.
var ofResolutions = []verdict{
	{"recorded", http.StatusOK, []error{nil}},
	{"too-early", http.StatusConflict, []error{cardwire.ErrDuplicateIntent}},
	{"no-outcome", http.StatusUnprocessableEntity, []error{errNoOutcome}},
	{"moved-on", http.StatusConflict, []error{sqljournal.ErrDecided}},
	{"moved-on", http.StatusConflict, []error{sqljournal.ErrNoIntent}},
	{"not-recorded", http.StatusServiceUnavailable, nil},
}

func judgeWrite(what string, err error) *said {
	step := cardwire.NextStep(err)
	s := judge(ofWrites[step], what, err)
	s.Step = step
	return s
}

func judge(verdicts []verdict, what string, err error) *said {
	s := &said{What: what}
	if failure, ok := errors.AsType[*cardwire.Error](err); ok {
		s.Service, s.Reference = failure.Message, failure.Reference
		switch {
		case failure.Err != nil:
			s.Cause = strings.TrimPrefix(failure.Err.Error(), "cardwire: ")
		case failure.HTTPStatus != 0:
			s.Cause = "HTTP " + strconv.Itoa(failure.HTTPStatus)
		}
	}
	i := slices.IndexFunc(verdicts, func(v verdict) bool {
		return !slices.ContainsFunc(v.is, func(target error) bool { return !errors.Is(err, target) })
	})
	s.Kind, s.status = verdicts[i].kind, verdicts[i].status
	return s
}

// problem is what the SDK says of a parameter: the name of its field in Go, and
// what is wrong with it.
func problem(err error) (field, fault string) {
	if failure, ok := errors.AsType[*cardwire.Error](err); ok {
		err = failure.Unwrap()
	}
	field, fault, _ = strings.Cut(strings.TrimPrefix(err.Error(), cardwire.ErrInvalidParams.Error()+": "), " ")
	return field, fault
}

// careful is a journal that also lets nobody retry or cancel a failed operation while
// its last retry or cancellation in this program is unresolved.
type careful struct {
	*sqljournal.Journal
	looking sync.Mutex // until the one that begins is on record
}

func (j *careful) Begin(ctx context.Context, i cardwire.Intent) error {
	if i.Unique { // the journal itself sees to that
		return j.Journal.Begin(ctx, i)
	}
	j.looking.Lock()
	defer j.looking.Unlock()
	unresolved, err := j.isUnresolved(ctx, i.Reference)
	switch {
	case err != nil:
		return err
	case unresolved: // wrapped, so that it applies whatever the Profile says
		return fmt.Errorf("unresolved: %w", &cardwire.DuplicateIntent{Outcome: cardwire.OutcomeUnknown})
	}
	return j.Journal.Begin(ctx, i)
}

// isUnresolved reports whether a retry or a cancellation of the record is in progress
// or unresolved.
func (j *careful) isUnresolved(ctx context.Context, reference string) (bool, error) {
	for _, op := range []string{"RetryOperation", "CancelOperation"} {
		e, err := j.Lookup(ctx, op, reference)
		if err != nil && !errors.Is(err, sqljournal.ErrNoIntent) {
			return false, err
		}
		if e.InProgress {
			return true, nil
		}
	}
	for e, err := range j.Unresolved(ctx, 0) {
		if err != nil || !e.Unique && strings.EqualFold(e.Reference, reference) { // a UUID in either case
			return true, err
		}
	}
	return false, nil
}

// entries returns what is unresolved, and how many calls are under way: nobody need ask
// about those yet. The journal's clock tells the two apart.
func (o *office) entries(ctx context.Context) (entries []sqljournal.Entry, underWay int64, err error) {
	for e, err := range o.journal.Unresolved(ctx, 0) {
		if err != nil {
			return nil, 0, o.noJournal(ctx, err)
		}
		entries = append(entries, e)
	}
	stats, err := o.journal.Stats(ctx)
	if err != nil {
		return nil, 0, o.noJournal(ctx, err)
	}
	return entries, stats.InProgress, nil
}

func (o *office) noJournal(ctx context.Context, err error) error {
	o.log.ErrorContext(ctx, errNoJournal.Error(), "error", err)
	return errNoJournal
}

func (o *office) unresolved(r *http.Request) (page, error) {
	entries, underWay, err := o.entries(r.Context())
	data := map[string]any{"Entries": entries, "UnderWay": underWay}
	return page{name: "unresolved", Said: o.results.find(r.Form.Get("said")), Data: data}, err
}

// outcomes are what a person may record.
var (
	outcomes     = map[string]cardwire.Outcome{"executed": cardwire.OutcomeExecuted, "refused": cardwire.OutcomeRefused}
	errNoOutcome = errors.New("neither executed nor refused")
	errNoJournal = errors.New("the journal could not be read")
)

// resolve records what the service said of the one try that the page showed: that
// proves nothing about a later one. It is the one page that can let something be sent
// again, and leaves a trace in the log.
func (o *office) resolve(r *http.Request) (page, error) {
	form := r.PostForm
	tried := sqljournal.Entry{Op: form.Get("op"), Reference: form.Get("reference"), Try: form.Get("try")}
	outcome, ok := outcomes[form.Get("outcome")]
	err := errNoOutcome
	if ok {
		err = o.journal.Resolve(r.Context(), tried, sqljournal.Resolution{Outcome: outcome, By: o.account.name, Note: "recorded in the back office"})
	}
	s := judge(ofResolutions, outcome.String(), err)
	s.Reference = tried.Reference
	o.log.InfoContext(r.Context(), "resolve", "operation", tried.Op, "reference", tried.Reference, "try", tried.Try,
		"outcome", s.What, "result", s.Kind)
	return page{to: "/unresolved", Said: s}, nil
}
