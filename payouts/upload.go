package payouts

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

	"github.com/cardwire/cardwire-go/internal/database"
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
	orders             map[string]bool // that the report names
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

// Has reports whether there is such an order.
func (u *upload) Has(number string) bool { return u.orders[number] }

// About are the orders that a note names.
func (u *upload) About(note string) []string {
	return slices.DeleteFunc(namesIn(note), func(number string) bool { return !u.orders[number] })
}

var inQuotes = regexp.MustCompile(`"(\\.|[^"\\])*"`)

func namesIn(note string) (names []string) {
	for _, quoted := range inQuotes.FindAllString(note, -1) {
		if name, err := strconv.Unquote(quoted); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// postStatement asks what the columns and statuses of a file are, shows what it says, and applies what was seen to say.
func (s *Service) postStatement(q *request) (any, error) {
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
	u.Most = maxLines
	var columns, words, means, text []string // text keeps its white space: a []string is not trimmed
	var strays, seen, again string
	by, why, err := q.fields(q.MultipartForm.Value, map[string]any{
		"name": &u.Name, "text": &text, "from": &u.Began, "until": &u.Ended, "exported": &u.Made, "strays": &strays,
		"zone": &u.In, "decimal": &u.Decimal, "dates": &u.First,
		"column": &columns, "word": &words, "means": &means, "seen": &seen, "again": &again,
	})
	if file, about, missing := q.FormFile("file"); err == nil && missing == nil { // at first, and then it is a field
		var content string
		content, err = statement.Text(file)
		u.Name, text = about.Filename, []string{content}
		if err != nil {
			err = invalid("%v", err)
		}
	}
	if err == nil && !isText(u.Name) {
		err = errText
	}
	if err != nil {
		return nil, err
	}
	u.Strays, u.Text = strays != "", strings.Join(text, "")
	isWhole, err := u.choose(columns, words, means)
	if err == nil && isWhole && again == "" {
		err = s.reconcile(ctx, u, seen, by, why)
	}
	p := page{Template: "statement.html", Upload: u, Problem: refusal(err)}
	if p.Problem != nil {
		err = nil
		if p.Problem.Status != http.StatusConflict {
			u.Report = nil
		}
		// What comes behind the last prefix is for people. The problem may be a variable of the package: it stays as it is.
		const prefix = "invalid parameters: "
		detail := p.Problem.Detail
		p.Problem = newProblem(p.Problem.Status, "%s", detail[strings.LastIndex(prefix+detail, prefix):])
	}
	if err == nil && u.Report != nil {
		u.orders, err = s.ordersIn(ctx, u.Report)
	}
	return p, err
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
		if *t.at, wrong = u.TimeOf(t.text); wrong != nil {
			err = cmp.Or(err, invalid("%v", wrong))
		}
	}
	return isWhole && len(u.Statuses) == len(u.Words) && !u.AsksDecimal && !u.AsksFirst, err
}

// reconcile makes the report, and records what was seen of it.
func (s *Service) reconcile(ctx context.Context, u *upload, seen, by, why string) error {
	compare := func(by, why string) error {
		u.Report = statement.NewReport()
		return s.Reconcile(ctx, u.Name, u.Statement(strings.NewReader(u.Text)), by, why, u.Report.Add)
	}
	err := compare("", "")
	if err != nil || seen == "" {
		return err
	}
	if err := checkWho(by, why); err != nil {
		return err
	}
	if seen != u.Report.Seen() {
		return conflict("the journal has changed since the report: check the new one")
	}
	if err := compare(by, why); err != nil {
		return err
	}
	u.Done, u.applied, u.left = true, u.Report.Certain-u.Report.Left, u.Report.Left
	return compare("", "") // what remains
}

// ordersIn returns which of the orders that a report names there are.
func (s *Service) ordersIn(ctx context.Context, r *statement.Report) (map[string]bool, error) {
	var names []string
	for _, kind := range r.Kinds {
		for _, f := range kind.First {
			names = append(append(names, f.Reference), namesIn(f.Note)...)
		}
	}
	known := map[string]bool{}
	for some := range slices.Chunk(names, maxFind) {
		found, err := query(ctx, s, s.db, database.One[string], `SELECT order_no FROM @payouts WHERE order_no IN `+database.Placeholders(0, some), database.Parameters(some)...)
		if err != nil {
			return nil, err
		}
		for _, number := range found {
			known[number] = true
		}
	}
	return known, nil
}
