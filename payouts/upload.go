package payouts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/payouts/internal/statement"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// upload is a statement on its page. The browser keeps the file until the report is applied:
// nothing of it is kept here but the report.
type upload struct {
	statement.File
	Name, Text       string
	ColumnsOf, Means string // as in "order=Order No", "done=executed"
	Report           *statement.Report
	Applied, left    int
	Done             bool
}

const (
	mostUpload = 32 << 20             // of a file
	mostLines  = 200_000              // of it
	mostForm   = 2*mostUpload + 1<<16 // with the file as a field, in which a browser makes each LF a CRLF
	uploadTime = 10 * time.Minute     // for all of it; what was recorded until then stays
)

// Result is what came of applying it.
func (u *upload) Result() string {
	return fmt.Sprintf("Recorded: %d. Changed meanwhile, or contradicted, and left: %d; the log says why.",
		u.Applied, u.left)
}

// postStatement shows what the file says, and applies what was seen to say.
func (s *Service) postStatement(q *request) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.ctx), uploadTime)
	defer cancel()
	c := http.NewResponseController(q.w)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // not for a file that is uploaded slowly, nor of a test
	_ = c.SetWriteDeadline(time.Now().Add(uploadTime + time.Minute))
	u, seen, by, why, err := q.uploaded()
	if err != nil {
		return nil, err
	}
	look := func(sqljournal.Finding) error { return nil }
	compare := func(do func(sqljournal.Finding) error) error {
		u.Report, err = u.Compare(ctx, s.journal, strings.NewReader(u.Text), do)
		return err
	}
	err = compare(look)
	unexplained := u.Report.Unexplained // what is recorded of these explains no order either
	if err == nil && seen != "" {
		if err = check(by, why); err == nil && seen != u.Report.Seen() {
			err = conflict("the journal has changed since the report: upload the file again, and check the new report")
		}
		if err == nil {
			err = compare(func(f sqljournal.Finding) error { return s.apply(ctx, u, f, by, why) })
		}
		if u.Done = err == nil; u.Done {
			err = compare(look) // what remains
		}
	}
	if err == nil {
		err = s.keepReport(ctx, u.Name, unexplained)
	}
	return page{Template: "statement.html", Upload: u}, err
}

// keepReport keeps what a comparison found, with what others have found since the hold began, for its release.
func (s *Service) keepReport(ctx context.Context, name string, unexplained []string) error {
	r, err := s.releasable(ctx, s.db)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(r.Unexplained, "\n") {
		if line != "" && !slices.Contains(unexplained, line) {
			unexplained = append(unexplained, line)
		}
	}
	return s.exec(ctx, s.db, `INSERT INTO payouts_reports (one, at, file, unexplained) VALUES (1, NOW(), $1, $2)
ON CONFLICT (one) DO UPDATE SET at = excluded.at, file = excluded.file, unexplained = excluded.unexplained`,
		name, strings.Join(unexplained, "\n"))
}

// apply records what a finding proves. What changed since the report, or contradicts it, is left.
func (s *Service) apply(ctx context.Context, u *upload, f sqljournal.Finding, by, why string) error {
	if !f.Applies() {
		return nil
	}
	err := s.journal.Apply(ctx, f, by, why)
	if refusal(err) != nil {
		u.left++
		s.log.WarnContext(ctx, "not reconciled", "order", f.Reference, "error", err)
		return nil
	}
	u.Applied++
	return err
}

// uploaded reads the form: the file comes as one at first, and then as a field.
func (q *request) uploaded() (u *upload, seen, by, why string, err error) {
	q.Body = http.MaxBytesReader(q.w, q.Body, mostForm)
	if err := q.ParseMultipartForm(mostForm); err != nil {
		return nil, "", "", "", invalid("the upload cannot be read: %v: it may have at most %d MiB; "+
			"payouts -reconcile reads files of any size", err, mostUpload>>20)
	}
	u = &upload{}
	u.Most = mostLines
	var strays string
	by, why, err = q.fields(q.MultipartForm.Value, map[string]any{
		"from": &u.From, "until": &u.Until, "exported": &u.Exported, "columns": &u.ColumnsOf, "status": &u.Means,
		"strays": &strays, "name": &u.Name, "text": &u.Text, "seen": &seen,
	})
	if err == nil {
		u.Strays = strays != ""
		err = u.Names(u.ColumnsOf, u.Means)
	}
	if err != nil {
		return nil, "", "", "", err
	}
	if file, about, missing := q.FormFile("file"); missing == nil {
		u.Name = about.Filename
		text, err := io.ReadAll(file)
		u.Text = string(text)
		return u, seen, by, why, err
	}
	return u, seen, by, why, nil
}
