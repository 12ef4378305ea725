package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// RecordTo is the environment variable that names a file to which tests add
// every exchange between client and fake service, one a line; unset: none.
const RecordTo = "CARDWIRE_RECORD"

// Exchange is a request and its response, as they were on the wire. It contains all
// data, so use it only for services with invented data.
type Exchange struct {
	// Method is the request's.
	Method string
	// Target is the path, and a query if there is one.
	Target string
	// Header is the request's.
	Header http.Header
	// Body is the request's; nil: none.
	Body []byte
	// Status is the response's.
	Status int
	// ResponseHeader is the response's.
	ResponseHeader http.Header
	// ResponseBody is the response's body.
	ResponseBody []byte
}

// Recorder stands before a fake service, as the handler of a server or as the
// transport of a client, and records what passes.
type Recorder struct {
	tb      testing.TB
	service http.Handler
	file    string
}

// NewRecorder returns a recorder before a service. It writes to the file that
// RecordTo names, and nothing if that is not set.
func NewRecorder(tb testing.TB, service http.Handler) *Recorder {
	tb.Helper()
	return &Recorder{tb, service, os.Getenv(RecordTo)}
}

// ServeHTTP passes the request on to the service.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	response := r.pass(request)
	for name, values := range response.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(response.Code)
	_, _ = response.Body.WriteTo(w) // the client may have disconnected
}

// RoundTrip passes the request on to the service, in process.
func (r *Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		defer request.Body.Close()
	}
	response := r.pass(request).Result()
	response.Request = request
	return response, nil
}

func (r *Recorder) pass(request *http.Request) *httptest.ResponseRecorder {
	r.tb.Helper()
	e := Exchange{Method: request.Method, Target: request.URL.RequestURI(), Header: request.Header.Clone()}
	inner := request.Clone(request.Context())
	if request.Body != nil {
		var err error
		if e.Body, err = io.ReadAll(request.Body); err != nil {
			r.tb.Errorf("the request could not be read: %v", err)
		}
		inner.Body = io.NopCloser(bytes.NewReader(e.Body))
	}
	response := httptest.NewRecorder()
	r.service.ServeHTTP(response, inner)
	e.Status, e.ResponseHeader, e.ResponseBody = response.Code, response.Header(), bytes.Clone(response.Body.Bytes())
	if err := e.appendTo(r.file); err != nil {
		r.tb.Errorf("the exchange could not be recorded: %v", err)
	}
	return response
}

// appendTo writes a line in one go, so that several processes can write to one file.
func (e *Exchange) appendTo(file string) error {
	if file == "" {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
