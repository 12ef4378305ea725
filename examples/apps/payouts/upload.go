package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// upload is a statement on its page. The browser keeps the file until the report is applied:
// nothing of it is kept here.
type upload struct {
	comparison
	Text    string
	Seen    string // names the report that a person has seen, and applies
	Applied bool   // the report is what remains
}

const (
	mostUpload = 4 << 20              // of a file, some 40,000 lines; -reconcile reads any
	mostForm   = 2*mostUpload + 1<<16 // with the file as a field, in which a browser makes each LF a CRLF
	uploadTime = 10 * time.Minute     // for all of it; what was recorded until then stays
)

func (s *service) statementPage(http.ResponseWriter, *http.Request) (any, error) {
	return page{Template: "statement.html", Upload: &upload{comparison: s.task.comparison}}, nil
}

// postStatement shows what the file says, and applies what was seen to say.
func (s *service) postStatement(w http.ResponseWriter, r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), uploadTime)
	defer cancel()
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // not for a file that is uploaded slowly, nor of a test
	_ = c.SetWriteDeadline(time.Now().Add(uploadTime + time.Minute))
	u, err := uploaded(w, r)
	if err == nil {
		err = s.compare(ctx, &u.comparison, strings.NewReader(u.Text), look)
	}
	if err == nil && u.Seen != "" {
		err = s.applySeen(ctx, u)
	}
	return page{Template: "statement.html", Upload: u}, err
}

// applySeen applies the report that a person has seen, and reports what remains.
func (s *service) applySeen(ctx context.Context, u *upload) error {
	if err := check(u.By, u.Why); err != nil {
		return err
	}
	if u.Seen != u.Report.Seen() {
		return conflict("the journal has changed since the report: upload the file again, and check the new report")
	}
	err := s.compare(ctx, &u.comparison, strings.NewReader(u.Text), func(f sqljournal.Finding) error {
		return s.apply(ctx, &u.comparison, f)
	})
	if err == nil && u.isDoubted() {
		err = errDoubted
	}
	if err == nil {
		u.Applied = true
		err = s.compare(ctx, &u.comparison, strings.NewReader(u.Text), look)
	}
	return err
}

// uploaded reads the form: the file comes as one at first, and then as a field.
func uploaded(w http.ResponseWriter, r *http.Request) (*upload, error) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseMultipartForm(mostForm); err != nil {
		return nil, unreadable(err)
	}
	u := &upload{}
	form := flag.NewFlagSet("", flag.ContinueOnError)
	u.flags(form, parseTime)
	form.StringVar(&u.Text, "text", "", "")
	form.StringVar(&u.Seen, "seen", "", "")
	for name, values := range r.MultipartForm.Value {
		if form.Lookup(name) == nil || len(values) != 1 {
			return nil, errBody
		}
		if err := form.Set(name, values[0]); values[0] != "" && err != nil {
			return nil, invalid("%v", err)
		}
	}
	u.By = signedIn(r, u.By)
	if u.Exported.IsZero() { // for a file of the command line there is a default
		return nil, invalid("exported must be a time")
	}
	file, about, missing := r.FormFile("file")
	if missing != nil {
		return u, nil
	}
	if about.Size > mostUpload {
		return nil, unreadable(errors.New("the file is too large"))
	}
	text, err := io.ReadAll(file)
	u.Text = string(text)
	return u, err
}

func unreadable(err error) error {
	return invalid("the upload cannot be read: %v: it may have at most %d MiB; -reconcile reads files of any size",
		err, mostUpload>>20)
}
