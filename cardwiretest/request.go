package cardwiretest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cardwire/cardwire-go"
)

// The content types of the API.
const (
	mediaJSON      = "application/json"
	mediaForm      = "application/x-www-form-urlencoded"
	mediaMultipart = "multipart/form-data"
)

// maxBody bounds a form and a JSON body.
const maxBody = 1 << 20

// request is a request as received.
type request struct {
	http          *http.Request
	method        string
	route         *route      // nil: the path does not exist
	op            cardwire.Op // the operation's name; "": none with this method
	authorization []string
	media         string // content type without parameters
	hasBody       bool
	query         []field
	queryProblem  string
	body          []field
	bodyProblem   *result

	values map[string]string // what was checked, by name
	file   *file
}

// reference returns the reference of the request; "": it has none.
func (r *request) reference() string {
	for _, f := range r.body {
		isIt := func(p param) bool { return p.reference && p.name == f.name }
		if r.route != nil && slices.ContainsFunc(r.route.fields, isIt) {
			return f.value
		}
	}
	return ""
}

// field is a parameter, a form field, a part or a JSON field.
type field struct {
	name, value string
	file        *file // nil: a plain value
	problem     string
}

// file is an uploaded file.
type file struct {
	size int
	sum  [sha256.Size]byte
}

// receive reads the request to its end. The error is from reading it.
func (s *Service) receive(r *http.Request) (*request, error) {
	in := &request{http: r, method: cmp.Or(r.Method, http.MethodGet), authorization: r.Header["Authorization"]}
	if path, ok := strings.CutPrefix(r.URL.EscapedPath(), basePath); ok {
		in.route = routes[path]
	}
	in.query, in.queryProblem = pairs(r.URL.RawQuery)
	if err := in.readBody(); err != nil {
		return nil, err
	}
	if in.route != nil && in.route.method() == in.method {
		in.op = in.route.name
	}
	retry := s.profile.RetryAction
	if in.op == cardwire.OpCancelOperation && retry != "" && slices.ContainsFunc(in.body, func(f field) bool {
		return f.name == "type" && f.value == retry
	}) {
		in.op = cardwire.OpRetryOperation
	}
	s.keep(in)
	return in, nil
}

// readBody reads the whole body, whatever it is: a connection whose request was not
// read is reset, and the client would never see the response.
func (r *request) readBody() error {
	if r.http.Body == nil {
		return nil
	}
	body, err := io.ReadAll(r.http.Body)
	switch length := r.http.ContentLength; {
	case r.http.Context().Err() != nil:
		return r.http.Context().Err()
	case err != nil:
		return err
	case length > 0 && length != int64(len(body)):
		return errors.New("cardwiretest: the length of the body is not its Content-Length")
	}
	r.hasBody = len(body) > 0
	media, params, err := mime.ParseMediaType(r.http.Header.Get("Content-Type"))
	if err == nil {
		r.media = media
	}
	var problem string
	switch {
	case r.media == mediaMultipart:
		problem = r.readParts(body, params["boundary"])
	case len(body) > maxBody:
		r.bodyProblem = refusal(http.StatusRequestEntityTooLarge, "the body is too large")
	case r.media == mediaJSON:
		problem = r.readJSON(body)
	case r.media == mediaForm:
		r.body, problem = pairs(string(body))
	}
	if problem != "" {
		r.bodyProblem = refusal(http.StatusBadRequest, "the body "+problem)
	}
	return nil
}

// pairs reads name=value&name=value, keeping the order and duplicates.
func pairs(text string) (list []field, problem string) {
	if text == "" {
		return nil, ""
	}
	for pair := range strings.SplitSeq(text, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil || name == "" || strings.Contains(pair, ";") ||
			!utf8.ValidString(name) || !utf8.ValidString(value) {
			return list, "must be names and values"
		}
		list = append(list, field{name: name, value: value})
	}
	return list, ""
}

// readJSON reads an object, keeping the order and duplicates of its fields.
func (r *request) readJSON(text []byte) (problem string) {
	object, err := parse(text)
	if err != nil || object.kind != '{' || !utf8.Valid(text) {
		return "must be an object"
	}
	for i, name := range object.names {
		f := field{name: name, value: object.items[i].text}
		if object.items[i].kind != '"' {
			f.problem = "must be a string"
		}
		r.body = append(r.body, f)
	}
	return ""
}

func (r *request) readParts(body []byte, boundary string) (problem string) {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return ""
		}
		if err == nil {
			err = r.readPart(p)
		}
		if err != nil {
			return "must be multipart/form-data"
		}
	}
}

func (r *request) readPart(p *multipart.Part) error {
	f := field{name: p.FormName()}
	value, err := io.ReadAll(p)
	switch {
	case p.FileName() != "":
		f.file = &file{size: len(value), sum: sha256.Sum256(value)}
	case !utf8.Valid(value):
		f.problem = "must be a string"
	default:
		f.value = string(value)
	}
	r.body = append(r.body, f)
	return err
}

// param is a parameter or a field of an operation.
type param struct {
	name     string
	required bool
	check    func(string) string // returns what the value must be, "" if it is valid; nil: it is a file

	reference bool // it is the reference of the request
}

func (r *request) checkQuery(params []param) *result {
	if r.queryProblem != "" {
		return refusal(http.StatusUnprocessableEntity, "the query "+r.queryProblem)
	}
	return r.check(params, r.query, "the parameter ")
}

func (r *request) checkBody() *result {
	want := r.route.media
	switch {
	case want == "" && r.hasBody:
		return refusal(http.StatusUnprocessableEntity, "the body must be empty")
	case want == "":
		return nil
	case r.media != want:
		return refusal(http.StatusUnsupportedMediaType, "Content-Type must be "+want)
	case r.bodyProblem != nil:
		return r.bodyProblem
	}
	return r.check(r.route.fields, r.body, "the field ")
}

// check compares what was sent with what the operation takes, in this order, so that
// the msg names the most likely mistake.
func (r *request) check(params []param, sent []field, what string) *result {
	if r.values == nil {
		r.values = map[string]string{}
	}
	var seen []string
	for _, f := range sent {
		i := slices.IndexFunc(params, func(p param) bool { return p.name != "" && p.name == f.name })
		var problem string
		switch {
		case i < 0:
			problem = "is not supported"
		case slices.Contains(seen, f.name):
			problem = "is invalid: it appears twice"
		default:
			problem = params[i].problem(f)
		}
		if problem != "" {
			return refusal(http.StatusUnprocessableEntity, what+plainName(f.name)+" "+problem)
		}
		seen = append(seen, f.name)
		r.values[f.name] = f.value
		if f.file != nil {
			r.file = f.file
		}
	}
	for _, p := range params {
		if p.required && !slices.Contains(seen, p.name) {
			return refusal(http.StatusUnprocessableEntity, what+plainName(p.name)+" is missing")
		}
	}
	return nil
}

func (p *param) problem(f field) string {
	switch {
	case f.problem != "":
		return f.problem
	case p.check == nil && f.file == nil:
		return "must be a file"
	case p.check == nil && f.file.size == 0:
		return "is empty"
	case p.check == nil:
		return ""
	case f.file != nil:
		return "must not be a file"
	}
	return p.check(f.value)
}

// plainName returns the name of a field if it looks like one: a stray card number
// must not appear in a refusal or a record, even as a name.
func plainName(name string) string {
	digits := 0
	for _, c := range name {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', strings.ContainsRune("_-.[]", c):
		default:
			return "***"
		}
	}
	if name == "" || digits > 3 || len(name) > 40 || known.IsKey(name) {
		return "***"
	}
	return name
}

// The rules for values.
var (
	notEmpty   = like(`(?s).`, "is empty")
	numeric    = like(`^\d+$`, "must be a numeric code")
	count      = like(`^[1-9]\d{0,8}$`, "must be a number, at least 1 and at most 999999999")
	cardStatus = like(`^(-1|[0-4])$`, "must be one of -1, 0, 1, 2, 3, 4")
	country    = like(`^[A-Za-z]{2}$`, "must be a country code of two letters")
	uuidString = like(`^[[:xdigit:]]{8}(-[[:xdigit:]]{4}){3}-[[:xdigit:]]{12}$`, "must be a UUID")
	decimals   = like(`^(0|[1-9]\d{0,14})\.\d\d$`, "must be a decimal with two decimal places")
	positive   = like(`[1-9]`, "must be greater than zero")
)

// like returns the rule of values that match.
func like(pattern, want string) func(string) string {
	valid := regexp.MustCompile(pattern)
	return func(v string) string {
		if valid.MatchString(v) {
			return ""
		}
		return want
	}
}

func date(v string) string {
	if _, err := time.Parse(dateLayout, v); err != nil {
		return "must be a date like 2006-01-02"
	}
	return ""
}

func amount(v string) string { return cmp.Or(decimals(v), positive(v)) }
