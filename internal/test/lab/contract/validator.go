// Package contract holds recorded exchanges against the OpenAPI document of the
// interface, with a validator that had no part in writing either.
package contract

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/cardwire/cardwire-go/internal/test/contract"
)

// Validator holds exchanges against a document. The library does most of it, by
// JSON Schema 2020-12, as OpenAPI 3.1 has it; where a schema has none of its
// newer keywords, by rules of its own that come to the same. It takes no notice
// of parameters and form fields that the document does not have, nor of one that
// comes twice, nor of whether a part is a file, so that these are looked at here.
// A JSON field that comes twice is noticed by neither: the last counts.
type Validator struct {
	router  routers.Router
	options openapi3filter.Options
}

// NewValidator reads a document, and makes sure that it is valid OpenAPI 3.1,
// examples included.
func NewValidator(ctx context.Context, document []byte) (*Validator, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(ctx); err != nil {
		return nil, err
	}
	// The origin is the caller's, which the router cannot take from a variable.
	doc.Servers = openapi3.Servers{{URL: "/api/v1"}}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	return &Validator{router: router, options: openapi3filter.Options{
		RejectWhenRequestBodyNotSpecified: true, IncludeResponseStatus: true, AuthenticationFunc: bearer,
	}}, nil
}

// Check returns the operation of an exchange, and what is wrong with it.
func (v *Validator) Check(ctx context.Context, e contract.Exchange) (operation string, err error) {
	request, err := http.NewRequestWithContext(ctx, e.Method, "http://cards.example"+e.Target, bytes.NewReader(e.Body))
	if err != nil {
		return "", err
	}
	request.Header = e.Header.Clone()
	route, params, err := v.router.FindRoute(request)
	if err != nil {
		return "", fmt.Errorf("no operation: %w", err)
	}
	operation = route.Operation.OperationID
	in := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: params, Route: route, Options: &v.options,
	}
	if err := openapi3filter.ValidateRequest(ctx, in); err != nil {
		return operation, fmt.Errorf("request: %w", err)
	}
	if err := names(route.Operation, request, e.Body); err != nil {
		return operation, fmt.Errorf("request: %w", err)
	}
	if err := openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: e.Status, Header: e.ResponseHeader,
		Body: io.NopCloser(bytes.NewReader(e.ResponseBody)), Options: &v.options,
	}); err != nil {
		return operation, fmt.Errorf("response: %w", err)
	}
	return operation, nil
}

// bearer is the API's authentication.
func bearer(_ context.Context, in *openapi3filter.AuthenticationInput) error {
	values := in.RequestValidationInput.Request.Header["Authorization"]
	if len(values) != 1 {
		return fmt.Errorf("%d Authorization headers", len(values))
	}
	if key, ok := strings.CutPrefix(values[0], "Bearer "); !ok || key == "" {
		return errors.New("no bearer key in Authorization")
	}
	return nil
}

// names looks at what the library passes over.
func names(op *openapi3.Operation, request *http.Request, body []byte) error {
	query, err := url.ParseQuery(request.URL.RawQuery)
	if err != nil {
		return err
	}
	known := func(name string) bool { return op.Parameters.GetByInAndName(openapi3.ParameterInQuery, name) != nil }
	if err := each(query, "query parameter", known); err != nil || op.RequestBody == nil {
		return err
	}
	media, params, err := mime.ParseMediaType(request.Header.Get("Content-Type"))
	if err != nil {
		return err
	}
	schema := op.RequestBody.Value.Content.Get(media).Schema.Value
	known = func(name string) bool { return schema.Properties[name] != nil }
	switch media {
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return err
		}
		return each(form, "form field", known)
	case "multipart/form-data":
		form, err := parts(schema, multipart.NewReader(bytes.NewReader(body), params["boundary"]))
		if err != nil {
			return err
		}
		return each(form, "part", known)
	}
	return nil
}

// each looks for values that have no name in the document, or a name in common.
func each(values url.Values, kind string, known func(string) bool) error {
	for name, list := range values {
		switch {
		case !known(name):
			return fmt.Errorf("%s %s is not in the document", kind, name)
		case len(list) > 1:
			return fmt.Errorf("%s %s is repeated", kind, name)
		}
	}
	return nil
}

// parts are the values of plain parts, and the names of files.
func parts(schema *openapi3.Schema, r *multipart.Reader) (url.Values, error) {
	values := url.Values{}
	for {
		part, err := r.NextPart()
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, err
		}
		name := part.FormName()
		p := schema.Properties[name]
		if p != nil && (p.Value.Format == "binary") != (part.FileName() != "") {
			return nil, fmt.Errorf("part %s: only a file has a file name, and it must have one", name)
		}
		values.Add(name, part.FileName())
	}
}
