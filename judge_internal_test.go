package cardwire

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/wire"
)

// judgeTable is what the rows of judge are about. docs/outcomes.md has them too, in the
// same order.
var judgeTable = []struct {
	row     string
	outcome Outcome
	cause   error
	about   []facts
}{
	{"nothing was sent", OutcomeNotSent, errUnsent, of(
		[]facts{
			{fate: unsent, cause: errUnsent},
			{fate: unsent, cause: errUnsent, status: 200, read: true, code: 200, data: readable},
		},
	)},
	{"one attempt wrote more than one request, and the last response is not a success", OutcomeUnknown, nil, of(
		[]facts{{resent: true, fate: lost, cause: errLost}},
		each(refused(422, 422), func(f *facts) { f.resent = true }),
		each(succeeded(otherOrder), func(f *facts) { f.resent = true }),
	)},
	{"sent, and no readable response: reset, end, timeout, cancellation, or too large", OutcomeUnknown, errLost, of(
		[]facts{
			{fate: lost, cause: errLost}, {fate: lost, cause: errLost, status: 200},
			{fate: lost, cause: errLost, status: 404, bare: true},
		},
	)},
	{"a redirect, which is never followed, or a response to another request", OutcomeUnknown, ErrRedirect, of(
		[]facts{{fate: elsewhere, cause: ErrRedirect, status: 302}, {fate: elsewhere, cause: ErrRedirect, status: 200}},
	)},
	{"2xx, code 200, data that is readable and of this operation", OutcomeExecuted, nil, of(
		succeeded(readable),
		each(succeeded(readable), func(f *facts) { f.status, f.message = 299, "duplicate" }),
		each(succeeded(readable), func(f *facts) { f.resent = true }),
	)},
	{"2xx, code 200, data that names another order", OutcomeUnknown, errUnread, of(succeeded(otherOrder))},
	{"2xx, code 200, a success message or none, data unreadable except for the identifier or our reference",
		OutcomeExecuted, errUnread, of(
			succeeded(thisOrder),
			each(succeeded(thisOrder), func(f *facts) { f.message = "Uploaded" }),
			each(succeeded(thisOrder), func(f *facts) { f.message = "" }),
		)},
	{"2xx, code 200, other data", OutcomeUnknown, errUnread, of(
		succeeded(proofless),
		each(succeeded(thisOrder), func(f *facts) { f.message = "balance too low" }),
	)},
	{"a code or a string that is the reference or says that it exists, or data that names this order",
		OutcomeUnknown, nil, of(
			refused(422, 1409), refused(200, 1409),
			each(refused(409, 1409), func(f *facts) { f.referenced = false }),
			saying("Order A-1 ALREADY EXISTS", "ORDER_ALREADY_EXISTS", "already  exists", "Duplicate order",
				"duplicate_order_no", "merchantOrderNo has already been taken", "order number already used",
				"订单重复", "重複的訂單", "订单已经存在", "订单号已被使用"),
			each(refused(200, 422), func(f *facts) { f.texts = []string{"no", "订单已存在"} }),
			each(refused(422, 422), func(f *facts) { f.data = thisOrder }),
		)},
	{"a refusal with 400, 404 or 422 that gives no reason, or says that something else failed", OutcomeUnknown,
		wire.ErrNoReason, of(
			each(numbers([]int{200}, []int{400, 404, 422}), func(f *facts) { f.texts = []string{"no"} }),
			each(numbers([]int{400, 404, 422}, []int{1, 401, 422}), func(f *facts) { f.texts = nil }),
			saying("", "Bad Request", "failed", "失败", "invalid response", "系统错误", "data not found"),
			each(saying("the remark NoLimit, no limit"), func(f *facts) { f.own = []string{"usd", "no limit"} }),
		)},
	{"2xx, a refusal whose code is in RefusedCodes", OutcomeRefused, nil, of(
		numbers([]int{200, 201, 299}, refusing),
		each(refused(200, 401), func(f *facts) { f.message, f.texts = "", nil }),
	)},
	{"4xx in RefusedStatuses, a refusal whose code is not 200 and not 500 to 599", OutcomeRefused, nil, of(
		numbers(refusing, []int{-1, 0, 1, 201, 422, 499, 600, 1020}),
		saying("the card does not exist", "请使用英文: 格式错误"),
		// Whoever names a record is told that it is missing; what a freeze did can be read.
		each(saying("record not found", "记录不存在"), func(f *facts) { f.ofRecord = true }),
		each(saying("it already exists", "no"), func(f *facts) { f.explains = false }),
		each(saying("it already exists"), func(f *facts) { f.referenced, f.explains = false, false }), // an upload
		// These numbers need no reason.
		each(numbers([]int{401, 403, 405, 413, 415, 429}, []int{1, 422}),
			func(f *facts) { f.texts = []string{"timeout"} }),
	)},
	{"4xx in BareRefusedStatuses, a body that is certainly no envelope", OutcomeRefused, errUnread, of(
		bare(401, 405, 411, 413, 429),
		each(bare(404), func(f *facts) { f.referenced = false }), // a read's, or an upload's
	)},
	{"anything else", OutcomeUnknown, nil, of(
		[]facts{{}, {status: 404}},
		numbers([]int{200}, []int{-200, -1, 0, 1, 199, 201, 204, 402, 408, 409, 410, 425, 500, 503, 599, 1020, 20000}),
		numbers(refusing, []int{200, 500, 503, 599}),
		numbers(unresolved, []int{200, 422, 500}),
		each(succeeded(readable), func(f *facts) { f.status = 400 }),
		each(refused(200, 422), func(f *facts) { f.hasMessage = false }),
		each(refused(422, 422), func(f *facts) { f.hasMessage = false }),
		each(refused(200, 422), func(f *facts) { f.message = "success" }),
		each(refused(422, 422), func(f *facts) { f.message = "Uploaded" }),
	)},
	{"anything else", OutcomeUnknown, errUnread, of(bare(200, 204, 400, 403, 404, 415, 422), bare(unresolved...))},
}

// refusing are the codes and statuses that refuse by the default profile; unresolved are
// other statuses.
var (
	refusing   = []int{400, 401, 403, 404, 405, 413, 415, 422, 429}
	unresolved = []int{100, 402, 406, 408, 409, 410, 418, 423, 425, 451, 499, 500, 502, 503, 504, 599, 600, 999}
)

var (
	errUnsent = errors.New("nothing was sent")
	errLost   = errors.New("the connection was reset")
	errUnread = errors.New("the response is unreadable")
)

// succeeded are the facts of a response with code 200.
func succeeded(data evidence) []facts {
	f := facts{status: 200, read: true, code: 200, hasMessage: true, message: "success", data: data, referenced: true}
	if data != readable {
		f.cause = errUnread
	}
	return []facts{f}
}

// refused are the facts of a response with another code.
func refused(status, code int) []facts { return numbers([]int{status}, []int{code}) }

// saying are the facts of refusals with each message.
func saying(messages ...string) (list []facts) {
	for _, message := range messages {
		list = append(list, each(refused(422, 422),
			func(f *facts) { f.message, f.texts = message, []string{message} })...)
	}
	return list
}

// numbers are the facts of refusals with each status and each code.
func numbers(statuses, codes []int) (list []facts) {
	for _, status := range statuses {
		for _, code := range codes {
			list = append(list, facts{
				status: status, read: true, code: code, hasMessage: true, message: "no", referenced: true,
				explains: true, texts: []string{"invalid account"},
			})
		}
	}
	return list
}

// bare are the facts of responses without an envelope.
func bare(statuses ...int) (list []facts) {
	for _, status := range statuses {
		list = append(list, facts{status: status, bare: true, cause: errUnread, referenced: true})
	}
	return list
}

// of are all these facts.
func of(lists ...[]facts) []facts { return slices.Concat(lists...) }

// each changes all facts.
func each(list []facts, change func(*facts)) []facts {
	for n := range list {
		change(&list[n])
	}
	return list
}

func TestJudge(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	p.DuplicateCodes = []int{1409}
	for _, r := range judgeTable {
		for _, f := range r.about {
			outcome, row, cause := judge(&p, &f)
			assert.Equal(t, r.row, row, "%+v", f)
			assert.Equal(t, r.outcome, outcome, "%s: %+v", r.row, f)
			if f.resent && outcome == OutcomeUnknown {
				assert.ErrorContains(t, cause, "more than once", "%+v", f)
				continue
			}
			assert.Equal(t, r.cause, cause, "%s: %+v", r.row, f)
		}
	}
}

// The numbers that guarantee that nothing happened are the profile's.
func TestJudgeByAnotherProfile(t *testing.T) {
	t.Parallel()
	p := Profile{
		RefusedCodes: []int{1001, 503, 1409, 422}, RefusedStatuses: []int{409, 400}, BareRefusedStatuses: []int{410},
		DuplicateCodes: []int{1409}, DuplicateMessages: []string{"Bereits"}, RefusedMessages: []string{"UNGÜLTIG!"},
	}
	texts := func(list []facts, texts ...string) []facts { return each(list, func(f *facts) { f.texts = texts }) }
	for _, tc := range []struct {
		want  Outcome
		about []facts
	}{
		{OutcomeRefused, of(refused(200, 1001), refused(200, 503), refused(409, 7), bare(410))},
		{OutcomeUnknown, of(refused(200, 401), refused(409, 503), refused(422, 7), bare(404), refused(200, 1409))},
		{OutcomeUnknown, texts(refused(409, 7), "invalid", "BE-REITS bekannt")},

		// A code that was added, or a phrase, is a reason, also where something else may have failed.
		{OutcomeRefused, texts(of(refused(200, 1001), refused(400, 1001)), "try again")},
		{OutcomeRefused, texts(of(refused(200, 422), refused(400, 7)), "try again", "Betrag un-gültig")},
		{OutcomeUnknown, texts(of(refused(200, 422), refused(400, 7), refused(400, 422)), "gültig")},
		{OutcomeUnknown, texts(of(refused(200, 1001), refused(400, 1001), refused(400, 7)), "ungültig",
			"order exists")},
		{OutcomeUnknown, each(refused(400, 7),
			func(f *facts) { f.own, f.texts = []string{"ungültig"}, []string{"Ungültig"} })},
	} {
		for _, f := range tc.about {
			outcome, _, _ := judge(&p, &f)
			assert.Equal(t, tc.want, outcome, "%+v", f)
		}
	}
}

// TestJudge compares the table above with the code, and this test with the document.
func TestTheTableOfTheJudge(t *testing.T) {
	t.Parallel()
	var documented []string
	for _, r := range judgeTable {
		if row := "| " + r.row + " | " + r.outcome.String() + " |"; !slices.Contains(documented, row) {
			documented = append(documented, row)
		}
	}
	document, err := os.ReadFile("docs/outcomes.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(document), "| what is known | outcome |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	assert.Equal(t, documented, strings.Split(table, "\n"))
}

// Whatever stands around it, and in whatever string.
func FuzzNothingInDoubtIsRefused(f *testing.F) {
	doubts := []string{
		"already", "duplicate", "DUP", "REPEATED", "unique", "taken", "occupied", "conflict", "idempotency", "success",
		"pending", "in progress", "processing", "merchantOrderNo", "order number", "ORDER_NOT_FOUND",
		"order does not exist", "ORDEREXISTS", "order status", "订单号", "订单不存在", "重复", "处理中",
		"订单已付款",
	}
	f.Add("invalid account:", "", uint16(422), uint16(422), uint8(0))
	f.Add("余额不足", "does not exist", uint16(200), uint16(1001), uint8(9))
	f.Add("not", "not found", uint16(401), uint16(0), uint8(16))
	p := DefaultProfile()
	p.RefusedCodes, p.RefusedMessages = append(p.RefusedCodes, 1001), []string{"a", "无"}
	f.Fuzz(func(t *testing.T, before, after string, status, code uint16, n uint8) {
		text := before + " " + doubts[int(n)%len(doubts)] + " " + after
		for _, texts := range [][]string{{text}, {"invalid account", text}} {
			facts := facts{
				status: int(status), code: int(code), read: true, hasMessage: true, referenced: true, explains: true,
				ofRecord: n > 127, texts: texts, own: []string{text, before},
			}
			if outcome, _, _ := judge(&p, &facts); outcome == OutcomeRefused {
				t.Errorf("%d, %d: %q was refused", status, code, text)
			}
		}
	})
}
