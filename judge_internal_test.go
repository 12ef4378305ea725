package cardwire

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judgeTable is the table of judge: what is known, the outcome, and facts that it is
// about. The cases of judge and docs/outcomes.md have the same rows in the same order.
var judgeTable = []struct {
	row     string
	outcome Outcome
	cause   error
	about   []facts
}{
	{"nothing was sent", OutcomeNotSent, errUnsent, []facts{
		{unsent: errUnsent}, {unsent: errUnsent, status: 200, read: true, code: 200, data: readable},
	}},
	{"more than one request was written for one attempt, and the last is no success", OutcomeUnknown, errResent, []facts{
		{resent: true, lost: errLost}, refused(422, 422, func(f *facts) { f.resent = true }),
		succeeded(otherOrder, func(f *facts) { f.resent = true }),
	}},
	{"sent, and no readable response: reset, end, timeout, cancellation, or too large", OutcomeUnknown, errLost, []facts{
		{lost: errLost}, {lost: errLost, status: 200}, {lost: errLost, status: 404, bare: true},
	}},
	{"a redirect, which is never followed, or a response to another request", OutcomeUnknown, ErrRedirect, []facts{
		{elsewhere: true, status: 302}, {elsewhere: true, status: 200},
	}},
	{"2xx, code 200, data that is readable and of this operation", OutcomeExecuted, nil, []facts{
		succeeded(readable, nil), succeeded(readable, func(f *facts) { f.status, f.message = 299, "duplicate" }),
		succeeded(readable, func(f *facts) { f.resent = true }),
	}},
	{"2xx, code 200, data that names another order", OutcomeUnknown, errUnread, []facts{succeeded(otherOrder, nil)}},
	{"2xx, code 200, data with the identifier or our reference, otherwise unreadable", OutcomeExecuted, errUnread, []facts{
		succeeded(thisOrder, nil), succeeded(thisOrder, func(f *facts) { f.message = "" }),
	}},
	{"2xx, code 200, other data", OutcomeUnknown, errUnread, []facts{
		succeeded(proofless, nil), succeeded(thisOrder, func(f *facts) { f.message = "balance too low" }),
	}},
	{"a code or a message that says that the reference exists, or data that names this order", OutcomeUnknown, nil, []facts{
		refused(422, 1409, nil), refused(200, 1409, nil), refused(409, 1409, func(f *facts) { f.referenced = false }),
		refused(422, 422, func(f *facts) { f.message = "Order A-1 ALREADY EXISTS" }),
		refused(200, 422, func(f *facts) { f.message = "订单已存在" }),
		refused(422, 422, func(f *facts) { f.data = thisOrder }),
	}},
	{"2xx, an envelope whose code is in RefusedCodes", OutcomeRefused, nil, []facts{
		refused(200, 422, nil), refused(299, 401, func(f *facts) { f.message = "" }),
	}},
	{"4xx in RefusedStatuses, an envelope whose code is not 200 and not 500 to 599", OutcomeRefused, nil, []facts{
		refused(422, 422, nil), refused(400, 1020, nil), refused(404, 0, nil), refused(429, 600, nil), refused(401, -1, nil),
		refused(422, 422, func(f *facts) { f.referenced, f.message = false, "it already exists" }),
	}},
	{"4xx in BareRefusedStatuses, a body that is certainly no envelope", OutcomeRefused, errUnread, []facts{
		{status: 401, bare: true, unreadable: errUnread}, {status: 429, bare: true, unreadable: errUnread},
	}},
	{"anything else", OutcomeUnknown, nil, []facts{
		{}, {status: 500, bare: true}, {status: 403, bare: true}, {status: 404}, refused(200, 1020, nil),
		refused(200, 422, func(f *facts) { f.hasMessage = false }),
		refused(200, 422, func(f *facts) { f.message = "success" }), refused(409, 422, nil), refused(422, 200, nil), refused(422, 500, nil),
		refused(422, 599, nil), refused(422, 422, func(f *facts) { f.hasMessage = false }), refused(502, 422, nil),
		refused(422, 422, func(f *facts) { f.message = "Uploaded" }), refused(100, 422, nil),
	}},
}

var (
	errUnsent = errors.New("nothing was sent")
	errLost   = errors.New("the connection was reset")
	errUnread = errors.New("the response is unreadable")
)

// succeeded are the facts of a response with code 200.
func succeeded(data evidence, change func(*facts)) facts {
	f := facts{status: 200, read: true, code: 200, hasMessage: true, message: "success", data: data, referenced: true}
	if data != readable {
		f.unreadable = errUnread
	}
	return changed(f, change)
}

// refused are the facts of a response with another code.
func refused(status, code int, change func(*facts)) facts {
	f := facts{status: status, read: true, code: code, hasMessage: true, message: "no", referenced: true}
	return changed(f, change)
}

func changed(f facts, change func(*facts)) facts {
	if change != nil {
		change(&f)
	}
	return f
}

func TestJudge(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	p.DuplicateCodes = []int{1409}
	for _, r := range judgeTable {
		for _, f := range r.about {
			outcome, cause := judge(&p, &f)
			assert.Equal(t, r.outcome, outcome, "%s: %+v", r.row, f)
			assert.Equal(t, r.cause, cause, "%s: %+v", r.row, f)
		}
	}
}

// The code, the table above and the document are one table.
func TestTheTableOfTheJudge(t *testing.T) {
	t.Parallel()
	var rows, documented []string
	for _, r := range judgeTable {
		rows = append(rows, r.row)
		documented = append(documented, "| "+r.row+" | "+r.outcome.String()+" |")
	}
	source, err := os.ReadFile("judge.go")
	require.NoError(t, err)
	var cases []string
	for _, match := range regexp.MustCompile(`(?m)^\t(?:case .*|default):\n\t\t// (.*)$`).FindAllStringSubmatch(string(source), -1) {
		cases = append(cases, match[1])
	}
	assert.Equal(t, rows, cases)

	document, err := os.ReadFile("docs/outcomes.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(document), "| what is known | outcome |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	assert.Equal(t, documented, strings.Split(table, "\n"))
}
