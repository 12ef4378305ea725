package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cardwire/cardwire-go/payouts/internal/statement"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// upload is a statement on its page. The browser keeps the file until the report is applied:
// nothing of it is kept here but the report.
type upload struct {
	statement.File
	statement.Sample
	Name, Text         string
	Began, Ended, Made string // its times, as somebody typed them
	In                 string // their time zone
	Report             *statement.Report
	applied, left      int
	Done               bool
}

const (
	maxUpload  = 32 << 20            // of a file
	maxLines   = 200_000             // of it
	maxForm    = 2*maxUpload + 1<<18 // with the file as a field, in which a browser makes each LF a CRLF
	uploadTime = 10 * time.Minute    // for all of it; what was recorded until then stays
)

// Result is what came of applying it.
func (u *upload) Result() string {
	return fmt.Sprintf("Recorded: %d. Changed meanwhile, or contradicted, and left: %d; the log says why.",
		u.applied, u.left)
}

// column is a field that somebody chooses a column for.
type column struct {
	Label, Chosen string
	IsOptional    bool
}

// Fields are those of a statement.
func (u *upload) Fields() (all []column) {
	labels := map[string]string{
		"order": "The merchant order number", "amount": "The amount", "status": "The status", "time": "When it was received",
		"id": "The service’s number", "currency": "The currency",
	}
	for _, field := range statement.Fields {
		all = append(all, column{labels[field], u.Columns[field], statement.IsOptional(field)})
	}
	return all
}

// About is the address of the orders that a finding names: its own, and those that its line may be about.
func (u *upload) About(f sqljournal.Finding) string {
	names := []string{f.Reference}
	for _, quoted := range inQuotes.FindAllString(f.Note, -1) {
		if name, err := strconv.Unquote(quoted); err == nil {
			names = append(names, name)
		}
	}
	return filter{Find: strings.Join(names, "\n"), Still: "on"}.At("./")
}

var inQuotes = regexp.MustCompile(`"(\\.|[^"\\])*"`)

// postStatement asks what the columns and statuses of a file are, shows what it says, and applies what was seen to say.
func (h *handler) postStatement(q *request) (any, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.ctx), uploadTime)
	defer cancel()
	c := http.NewResponseController(q.w)
	_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // not for a file that is uploaded slowly, nor of a test
	_ = c.SetWriteDeadline(time.Now().Add(uploadTime + time.Minute))
	q.Body = http.MaxBytesReader(q.w, q.Body, maxForm)
	if err := q.ParseMultipartForm(maxForm); err != nil {
		return nil, invalid("the upload cannot be read: %v: it may have at most %d MiB; "+
			"payouts -reconcile reads files of any size", err, maxUpload>>20)
	}
	u := &upload{}
	form, err := u.read(q)
	if err != nil {
		return nil, err
	}
	isWhole, err := u.choose(form.columns, form.words, form.means)
	if err == nil && isWhole && form.again == "" {
		err = h.reconcile(ctx, u, form)
	}
	p := page{Template: "statement.html", Upload: u}
	if err != nil {
		p.Problem, err = h.problemOf(q, err), nil
	}
	if p.Problem != nil && p.Problem.Status != http.StatusConflict {
		u.Report = nil
	}
	return p, err
}

// uploadForm is what a form says besides what the page shows again.
type uploadForm struct {
	columns, words, means []string
	seen, again, by, why  string
}

// read reads the form, with its file.
func (u *upload) read(q *request) (f uploadForm, err error) {
	var text []string // which keeps its white space: a []string is not trimmed
	var strays string
	u.Most = maxLines
	f.by, f.why, err = q.fields(q.MultipartForm.Value, map[string]any{
		"name": &u.Name, "text": &text, "from": &u.Began, "until": &u.Ended, "exported": &u.Made, "strays": &strays,
		"zone": &u.In, "decimal": &u.Decimal, "dates": &u.First,
		"column": &f.columns, "word": &f.words, "means": &f.means, "seen": &f.seen, "again": &f.again,
	})
	if err != nil {
		return f, err
	}
	if file, about, missing := q.FormFile("file"); missing == nil { // at first, and then it is a field
		content, err := statement.Text(file)
		if err != nil {
			return f, invalid("%v", err)
		}
		u.Name, text = about.Filename, []string{content}
	}
	if !utf8.ValidString(u.Name) {
		return f, invalid("the file's name is not in UTF-8")
	}
	u.Strays, u.Text = strays != "", strings.Join(text, "")
	return f, nil
}

// choose reads what somebody chose, and reports whether that is all.
func (u *upload) choose(columns, words, means []string) (isWhole bool, err error) {
	if isWhole = len(columns) == len(statement.Fields); isWhole {
		u.Columns = map[string]string{}
		for i, field := range statement.Fields {
			u.Columns[field] = columns[i]
		}
	}
	zoneErr := u.SetZone(u.In)
	u.Sample, err = u.Look(strings.NewReader(u.Text))
	err = cmp.Or(zoneErr, err)
	u.Statuses = map[string]sqljournal.StatementStatus{}
	for i := range min(len(words), len(means)) {
		if slices.Contains(u.Words, words[i]) && means[i] != "" {
			u.Statuses[words[i]] = sqljournal.StatementStatus(means[i])
		}
	}
	for _, t := range []struct {
		at   *time.Time
		text string
	}{{&u.From, u.Began}, {&u.Until, u.Ended}, {&u.Exported, u.Made}} {
		if t.text == "" {
			isWhole = false
			continue
		}
		var wrong error
		if *t.at, wrong = statement.Moment(t.text); wrong != nil {
			err = cmp.Or(err, invalid("%v", wrong))
		}
	}
	return isWhole && len(u.Statuses) == len(u.Words) && !u.AsksDecimal && !u.AsksFirst, err
}

// reconcile makes the report, and records what was seen of it.
func (h *handler) reconcile(ctx context.Context, u *upload, form uploadForm) error {
	compare := func(by, why string) error {
		u.Report = statement.NewReport()
		return h.svc.Reconcile(ctx, u.Name, u.Statement(strings.NewReader(u.Text)), by, why, u.Report.Add)
	}
	err := compare("", "")
	switch {
	case err != nil || form.seen == "":
		return err
	case form.by == "" || form.why == "":
		return errWho
	case form.seen != u.Report.Seen():
		return newProblem(http.StatusConflict, "the journal has changed since the report: check the new one")
	}
	if err := compare(form.by, form.why); err != nil {
		return err
	}
	u.Done, u.applied, u.left = true, u.Report.Certain-u.Report.Left, u.Report.Left
	return compare("", "") // what remains
}
