package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/sqljournal"
)

// upload is a statement on its page. The browser keeps the file until the report is applied:
// nothing of it is kept here.
type upload struct {
	reading
	application
	Text    string
	Report  *report // nil: nothing was uploaded
	Applied bool    // the report is what remains
}

const (
	mostUpload = 4 << 20              // of a file, some 40,000 lines; -reconcile reads any
	mostForm   = 2*mostUpload + 1<<16 // with the file as a field, in which a browser makes each LF a CRLF
	uploadTime = 10 * time.Minute     // for all of it; what was recorded until then stays
)

func (s *service) statementPage(http.ResponseWriter, *http.Request) (any, error) {
	return page{Template: "statement.html", Upload: &upload{reading: s.task.reading}}, nil
}

// postStatement shows what the file says, and applies what was seen to say.
func (s *service) postStatement(w http.ResponseWriter, r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), uploadTime)
	defer cancel()
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // not for a file that is uploaded slowly, nor of a test
	_ = c.SetWriteDeadline(time.Now().Add(uploadTime + time.Minute))
	u, seen, err := uploaded(w, r)
	if err == nil {
		u.Report, err = s.compare(ctx, u.reading, strings.NewReader(u.Text), look)
	}
	if err == nil && seen != "" {
		err = s.applySeen(ctx, u, seen)
	}
	return page{Template: "statement.html", Upload: u}, err
}

// applySeen applies the report that a person has seen, and reports what remains.
func (s *service) applySeen(ctx context.Context, u *upload, seen string) (err error) {
	if err := check(u.By, u.Why); err != nil {
		return err
	}
	if seen != u.Report.Seen() {
		return conflict("the journal has changed since the report: upload the file again, and check the new report")
	}
	_, err = s.compare(ctx, u.reading, strings.NewReader(u.Text), func(f sqljournal.Finding) error {
		return s.apply(ctx, &u.application, f)
	})
	if err == nil && u.doubted {
		err = errDoubted
	}
	if err == nil {
		u.Applied = true
		u.Report, err = s.compare(ctx, u.reading, strings.NewReader(u.Text), look)
	}
	return err
}

// uploaded reads the form: the file comes as one at first, and then as a field.
func uploaded(w http.ResponseWriter, r *http.Request) (u *upload, seen string, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	if err := r.ParseMultipartForm(mostForm); err != nil {
		return nil, "", unreadable(err)
	}
	var from, until, exported, strays, again, anyway string
	u = &upload{}
	err = decodeForm(url.Values(r.MultipartForm.Value).Encode(), map[string]any{
		"from": &from, "until": &until, "exported": &exported, "columns": &u.Columns, "status": &u.Statuses,
		"strays": &strays, "text": &u.Text, "seen": &seen, "again": &again, "anyway": &anyway,
		"by": &u.By, "why": &u.Why,
	})
	if err != nil {
		return u, seen, err
	}
	if u.From, err = parseTime("from", from); err == nil {
		u.Until, err = parseTime("until", until)
	}
	if err == nil {
		u.Exported, err = parseTime("exported", exported)
	}
	u.Strays, u.Again, u.Anyway, u.By = strays != "", again != "", anyway != "", signedIn(r, u.By)
	if file, about, missing := r.FormFile("file"); err == nil && missing == nil {
		if about.Size > mostUpload {
			return u, seen, unreadable(errors.New("the file is too large"))
		}
		text, failed := io.ReadAll(file)
		u.Text, err = string(text), failed
	}
	return u, seen, err
}

func unreadable(err error) error {
	return invalid("the upload cannot be read: %v: it may have at most %d MiB; -reconcile reads files of any size",
		err, mostUpload>>20)
}
