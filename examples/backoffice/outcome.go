package main

import (
	"errors"
	"net/http"
	"strings"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// said is what came of something; templates/said.html has the words for each kind.
type said struct {
	Kind      string
	What      string // what it is about, like "The transfer"
	Service   string // the service's own words; "": none
	Reference string // what to ask the service about; "": nothing
}

// verdict says what an error comes to that is all of these.
type verdict struct {
	kind   string
	status int
	is     []error
}

// ofWrites decides first whether it happened, and only then why not. The last
// takes whatever is left: what nobody decided may have happened.
var ofWrites = []verdict{
	{"other-body", http.StatusConflict, []error{sqljournal.ErrOtherBody}},
	{"done-before", http.StatusConflict, []error{cardwire.ErrDuplicateIntent, cardwire.ErrExecuted}},
	{"still-unknown", http.StatusConflict, []error{cardwire.ErrDuplicateIntent}},
	{"invalid", http.StatusUnprocessableEntity, []error{cardwire.ErrNotSent, cardwire.ErrInvalidParams}},
	{"not-sent", http.StatusServiceUnavailable, []error{cardwire.ErrNotSent}},
	{"refused", http.StatusUnprocessableEntity, []error{cardwire.ErrRefused}},
	{"executed", http.StatusOK, []error{cardwire.ErrExecuted}},
	{"unknown", http.StatusBadGateway, nil},
}

// ofReads is simpler: whatever went wrong, nothing was changed.
var ofReads = []verdict{
	{"invalid", http.StatusBadRequest, []error{cardwire.ErrInvalidParams}},
	{"ignored", http.StatusBadGateway, []error{cardwire.ErrParameterIgnored}},
	{"not-found", http.StatusNotFound, []error{cardwire.ErrNotFound}},
	{"wrong-key", http.StatusBadGateway, []error{cardwire.ErrUnauthorized}},
	{"busy", http.StatusServiceUnavailable, []error{cardwire.ErrRateLimited}},
	{"unreadable", http.StatusBadGateway, nil},
}

func judge(verdicts []verdict, what string, err error) (status int, s *said) {
	s = &said{What: what}
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		s.Service, s.Reference = failure.Message, failure.Reference
	}
	for _, v := range verdicts {
		if v.matches(err) {
			s.Kind = v.kind
			return v.status, s
		}
	}
	panic("the last verdict takes every error")
}

func (v verdict) matches(err error) bool {
	for _, target := range v.is {
		if !errors.Is(err, target) {
			return false
		}
	}
	return true
}

// problem is what the SDK says of a parameter: the name of its field in Go, and
// what is wrong with it.
func problem(err error) (field, text string) {
	var failure *cardwire.Error
	if errors.As(err, &failure) {
		err = failure.Unwrap()
	}
	field, text, _ = strings.Cut(strings.TrimPrefix(err.Error(), cardwire.ErrInvalidParams.Error()+": "), " ")
	return field, text
}
