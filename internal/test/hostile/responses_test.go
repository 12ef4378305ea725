package hostile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// hostileMemory is what a hostile response may make the whole process allocate, in
// bytes, those included that are garbage by the end: it cannot grow by more.
const hostileMemory = 16_000_000

// hostileResponse is a response that is no success, whatever it pretends.
type hostileResponse struct {
	name string
	// body is that of a 200; <data> is replaced by data that would be a success.
	body string
	// raw goes out instead, if body is "".
	raw func(net.Conn)
	// read and write are the facts of the errors of ListCards and of CreateTransfer.
	read, write wiretest.Facts
}

// The facts of most of them.
var (
	hostileUnreadable = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200}
	hostileUnfit      = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	hostileExecuted   = wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed Unreadable", HTTPStatus: 200, Code: 200, Message: "success"} // it names the order
	hostileTooLarge   = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown TooLarge", HTTPStatus: 200, Phases: "received"}
	hostileBroken     = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Phases: "received"}
	hostileNoResponse = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "sent"}
	hostileRefusal    = wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 422, Message: "success"}
)

// hostilePage is data that ListCards takes.
const hostilePage = `{"total":1,"per_page":1,"current_page":1,"last_page":1,"data":[` + wiretest.ListedCard + `]}`

func hostileCodes() []hostileResponse {
	var cases []hostileResponse
	for name, code := range map[string]string{
		"a fraction": `200.0`, "an exponent": `2e2`, "text": `"200"`, "null": `null`, "true": `true`, "an array": `[200]`, "an object": `{"code":200}`,
		"empty string": `""`, "a leading zero": `0200`, "a sign": `+200`, "hexadecimal": `0xc8`, "NaN": `NaN`, "beyond 64 bits": `18446744073709551816`,
		"a huge exponent": `1e1000000000`, "a tiny one": `200e-1000000000`, "an exponent of many digits": `1e` + strings.Repeat("9", 60_000),
		"many digits": strings.Repeat("2", 60_000), "many zeros after it": `200` + strings.Repeat("0", 60_000), "a long fraction": `200.` + strings.Repeat("0", 60_000),
	} {
		cases = append(cases,
			hostileResponse{"the code is " + name, `{"code":` + code + `,"msg":"success","data":<data>}`, nil, hostileUnreadable, hostileUnreadable},
			hostileResponse{"the last code is " + name, `{"data":<data>,"msg":"success","code":` + code + `}`, nil, hostileUnreadable, hostileUnreadable})
	}
	const many = 10_000_000
	return append(cases, []hostileResponse{
		{"the code is missing", `{"msg":"success","data":<data>}`, nil, hostileUnreadable, hostileUnreadable},
		{"the code twice", `{"code":200,"code":200,"msg":"success","data":<data>}`, nil, hostileUnreadable, hostileUnreadable},
		{"a code and a refusal", `{"code":200,"msg":"success","data":<data>,"code":422}`, nil, hostileUnreadable, hostileUnreadable},
		{"a refusal and a code", `{"code":422,"code":200,"msg":"success","data":<data>}`, nil, hostileUnreadable, hostileUnreadable},
		{"a second code in escapes", `{"code":200,"msg":"success","data":<data>,"\u0063\u006f\u0064\u0065":200}`, nil, hostileUnreadable, hostileUnreadable},
		{"Code", `{"Code":200,"msg":"success","data":<data>}`, nil, hostileUnreadable, hostileUnreadable},
		{"CODE", `{"CODE":200,"msg":"success","data":<data>}`, nil, hostileUnreadable, hostileUnreadable},
		{"a code with the long s", "{\"code\u017f\":200,\"msg\":\"success\",\"data\":<data>}", nil, hostileUnreadable, hostileUnreadable},
		{"a refusal before Code", `{"code":422,"Code":200,"msg":"success","data":<data>}`, nil, hostileRefusal, hostileRefusal},
		{"a refusal after CODE", `{"CODE":200,"msg":"success","data":<data>,"code":422}`, nil, hostileRefusal, hostileRefusal},
		{"a code of ten million digits", `{"code":` + strings.Repeat("2", many) + `,"data":<data>}`, nil, hostileTooLarge, hostileTooLarge},
		{"a code of as many digits as may come", `{"code":` + strings.Repeat("2", 8_000_000) + `,"data":<data>}`, nil, hostileUnreadable, hostileTooLarge},
	}...)
}

func hostileEnvelopes() []hostileResponse {
	const html = "<!doctype html><html><head><title>502</title></head><body>Bad Gateway</body></html>"
	good := wiretest.Success("<data>")
	deep := func(open, closing string) string {
		return strings.Repeat(open, 20_000) + strings.Repeat(closing, 20_000)
	}
	var cases []hostileResponse
	for name, body := range map[string]string{
		"an array": `[` + good + `]`, "an empty array": `[]`, "a number": `200`, "text": `"success"`, "true": `true`, "null": `null`, "an empty object": `{}`,
		"HTML": html, "HTML and then JSON": html + good, "white space": " \r\n\t", "a byte order mark": "\ufeff" + good, "UTF-16": "\xff\xfe{\x00}\x00",
		"NUL before it": "\x00" + good, "NUL after it": good + "\x00", "NUL within": strings.Replace(good, ",", "\x00,", 1), "nothing but NUL": strings.Repeat("\x00", 1000),
		"a bracket after it": good + "}", "a comma after it": good + ",", "another after it": good + good, "text after it": good + " ok", "a line before it": ")]}',\n" + good,
		"20,000 arrays in a field": `{"x":` + deep("[", "]") + `,"code":200,"msg":"success","data":<data>}`,
		"20,000 arrays as data":    wiretest.Success(deep("[", "]")), "20,000 open arrays": strings.Repeat("[", 20_000),
		"20,000 arrays before the code": `{"data":` + deep("[", "]") + `,"code":200,"msg":"success"}`,
		"20,000 open objects":           strings.Repeat(`{"":`, 15_000),
		"the data twice":                `{"code":200,"msg":"success","data":<data>,"data":<data>}`,
		"a card twice":                  `{"code":200,"msg":"success","data":{"api_order_no":"1","api_order_no":"2","data":[],"data":[]}}`,
		"a message that is no text":     `{"code":200,"msg":["success"],"data":<data>}`,
	} {
		cases = append(cases, hostileResponse{name, body, nil, hostileUnreadable, hostileUnreadable})
	}
	for name, body := range map[string]string{
		"data that is null": wiretest.Success(`null`), "no data": `{"code":200,"msg":"success"}`, "Data": `{"code":200,"msg":"success","Data":<data>}`,
		"data that is true": wiretest.Success(`true`), "data in text": wiretest.Success(`"{}"`), "data in an array": wiretest.Success(`[<data>]`), "an empty array": wiretest.Success(`[]`),
	} {
		cases = append(cases, hostileResponse{name, body, nil, hostileUnfit, hostileUnfit})
	}
	return append(cases,
		hostileResponse{"200,000 open objects", strings.Repeat(`{"":`, 200_000), nil, hostileUnreadable, hostileTooLarge},
		hostileResponse{"nothing", "", func(conn net.Conn) { _, _ = conn.Write([]byte(hostileHead + "Content-Length: 0\r\n\r\n")) }, hostileUnreadable, hostileUnreadable})
}

// hostileMoney are numbers where amounts and identifiers stand.
func hostileMoney(t *testing.T) []hostileResponse {
	t.Helper()
	page := func(old, literal string) string {
		return wiretest.Success(wiretest.Edited(t, hostilePage, old, literal))
	}
	transfer := func(old, literal string) string {
		return wiretest.Success(wiretest.Edited(t, wiretest.TransferData, old, literal))
	}
	var cases []hostileResponse
	for name, literal := range map[string]string{
		"a huge exponent": `1e1000000000`, "a tiny one": `1e-1000000000`, "an exponent just too large": `1e31`, "41 digits": strings.Repeat("7", 41),
		"an exponent of many digits": `1e` + strings.Repeat("9", 60_000), "many digits and a fraction": strings.Repeat("7", 30_000) + "." + strings.Repeat("7", 30_000),
	} {
		cases = append(cases,
			hostileResponse{name: name + " as a number", body: page(`"pending":7.25`, `"pending":`+literal), read: hostileUnfit},
			hostileResponse{name: name + " as text", body: page(`"available":"123.450"`, `"available":"`+literal+`"`), read: hostileUnfit},
			hostileResponse{name: name + " in place of text", body: page(`"available":"123.450"`, `"available":`+literal), read: hostileUnfit})
	}
	digits := strings.Repeat("7", 8_000_000)
	return append(cases, []hostileResponse{
		{name: "as many digits as may come", body: page(`"pending":7.25`, `"pending":`+digits), read: hostileUnfit},
		{name: "as many digits as may come in text", body: page(`"available":"123.450"`, `"available":"`+digits+`"`), read: hostileUnfit},
		{name: "as many digits as may come as a count", body: wiretest.Success(wiretest.Edited(t, hostilePage, `"total":1`, `"total":`+digits)), read: hostileUnfit},
		{name: "ten million digits", body: page(`"pending":7.25`, `"pending":77`+digits+digits[:2_000_000]), read: hostileTooLarge},
		{name: "a huge exponent as an order's number", body: transfer(`"A-1"`, `1e1000000000`), write: hostileExecuted},
		{name: "a fraction as an order's number", body: transfer(`"A-1"`, `9.0`), write: hostileExecuted},
		{name: "ten million digits as an order's number", body: transfer(`"A-1"`, digits+digits[:2_000_000]), write: hostileTooLarge},
	}...)
}

// hostileHead is the head of a response but for what says how long its body is.
const hostileHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"

// endlessly writes start, and then block until the client has gone.
func endlessly(start, block string) func(net.Conn) {
	first, next := []byte(start), bytes.Repeat([]byte(block), 1+(16<<10)/len(block))
	return func(conn net.Conn) {
		for _, err := conn.Write(first); err == nil; {
			_, err = conn.Write(next)
		}
	}
}

// chunked is a body in one chunk after the other.
func chunked(text string) string {
	return strconv.FormatInt(int64(len(text)), 16) + "\r\n" + text + "\r\n"
}

func hostileStreams(t *testing.T) []hostileResponse {
	t.Helper()
	const inChunks = hostileHead + "Transfer-Encoding: chunked\r\n\r\n"
	page := `{"code":200,"msg":"success","data":{"total":1,"per_page":1,"current_page":1,"last_page":1,"data":[`
	bomb := gzipBomb(t)
	return []hostileResponse{
		{"an endless body of white space", "", endlessly(inChunks, chunked(strings.Repeat(" ", 4096))), hostileTooLarge, hostileTooLarge},
		{"an endless list of cards", "", endlessly(inChunks+chunked(page), chunked(wiretest.ListedCard+",")), hostileTooLarge, hostileTooLarge},
		{"an endless text", "", endlessly(inChunks+chunked(`{"msg":"`), chunked(`\u0000`)), hostileTooLarge, hostileTooLarge},
		{"endless white space after it", "", endlessly(inChunks+chunked(wiretest.Success(hostilePage)), chunked(strings.Repeat("\n", 100))), hostileTooLarge, hostileTooLarge},
		{"an endless body without a length", "", endlessly(hostileHead+"\r\n", "[[[["), hostileTooLarge, hostileTooLarge},
		{"a body longer than any", "", endlessly(hostileHead+"Content-Length: 9223372036854775807\r\n\r\n", "[1,"), hostileTooLarge, hostileTooLarge},
		{"endless chunk extensions", "", endlessly(inChunks, "1;"+strings.Repeat("x", 1000)+"\r\n \r\n"), hostileBroken, hostileBroken},
		{"one endless chunk extension", "", endlessly(inChunks+"1;", "x"), hostileBroken, hostileBroken},
		{"endless trailers", "", endlessly(inChunks+chunked(wiretest.Success(hostilePage))+"0\r\n", "X-Trailer: 1\r\n"), hostileBroken, hostileBroken},
		{"endless headers", "", endlessly(hostileHead, "X-Header: 1\r\n"), hostileNoResponse, hostileNoResponse},
		{"endless headers of one name", "", endlessly("HTTP/1.1 200 OK\r\n", "Set-Cookie: a=b\r\n"), hostileNoResponse, hostileNoResponse},
		{"one endless header", "", endlessly(hostileHead+"X-Header: ", "1"), hostileNoResponse, hostileNoResponse},
		{"an endless status line", "", endlessly("HTTP/1.1 200 ", "O"), hostileNoResponse, hostileNoResponse},
		{"endless early hints", "", endlessly("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), hostileNoResponse, hostileNoResponse},
		{"endless continues", "", endlessly("", "HTTP/1.1 100 Continue\r\n\r\n"), hostileNoResponse, hostileNoResponse},
		{"a gigabyte in gzip", "", func(conn net.Conn) {
			_, _ = fmt.Fprintf(conn, "%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", hostileHead, len(bomb))
			_, _ = conn.Write(bomb)
		}, hostileUnreadable, hostileTooLarge},
		{"a gigabyte in gzip over gzip", "", func(conn net.Conn) {
			_, _ = fmt.Fprintf(conn, "%sContent-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n", hostileHead, len(bomb))
			_, _ = conn.Write(bomb)
		}, hostileUnreadable, hostileTooLarge},
	}
}

// gzipBomb is about 1 MB of gzip that becomes 1 GB of white space: gzip is a
// series of members, so one is made and repeated.
func gzipBomb(t *testing.T) []byte {
	t.Helper()
	var member bytes.Buffer
	z, err := gzip.NewWriterLevel(&member, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(bytes.Repeat([]byte(" "), 1<<20))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	bomb := bytes.Repeat(member.Bytes(), 1000)
	require.InDelta(t, 1_000_000, len(bomb), 200_000)

	r, err := gzip.NewReader(bytes.NewReader(bomb))
	require.NoError(t, err)
	n, err := io.CopyN(io.Discard, r, 5<<20)
	require.NoError(t, err)
	require.EqualValues(t, 5<<20, n, "members follow each other")
	return bomb
}

// hostileCall sends the response to a call over loopback, and returns what was told
// and how many bytes the process allocated meanwhile.
func hostileCall(t *testing.T, h hostileResponse, write bool, opts ...cardwire.Option) (wiretest.Facts, uint64) {
	t.Helper()
	data := hostilePage
	if write {
		data = wiretest.TransferData
	}
	response := h.raw
	if h.body != "" {
		text := strings.ReplaceAll(h.body, "<data>", data)
		out := []byte(hostileHead + "Content-Length: " + strconv.Itoa(len(text)) + "\r\n\r\n" + text)
		response = func(conn net.Conn) { _, _ = conn.Write(out) }
	}
	s := loopback.Serve(t, response)
	c := wiretest.ClientOver(t, s.Base, append([]cardwire.Option{cardwire.WithRetry(cardwire.RetryPolicy{})}, opts...)...)
	var err error
	_, allocated := measured(func() {
		if write {
			_, err = c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		} else {
			_, err = c.ListCards(t.Context(), cardwire.ListCardsParams{})
		}
	})
	require.Error(t, err, "it was taken for a success")
	assert.EqualValues(t, 1, s.Requests.Load())
	return wiretest.FactsOf(t, err), allocated
}

// Not parallel: what the process allocates is measured.
func TestHostileResponses(t *testing.T) {
	cases := append(hostileCodes(), hostileEnvelopes()...)
	cases = append(append(cases, hostileMoney(t)...), hostileStreams(t)...)
	for _, h := range cases {
		for _, way := range []struct {
			name  string
			want  wiretest.Facts
			write bool
		}{{"read", h.read, false}, {"write", h.write, true}} {
			if way.want == (wiretest.Facts{}) {
				continue
			}
			t.Run(h.name+"/"+way.name, func(t *testing.T) {
				told, allocated := hostileCall(t, h, way.write)
				assert.Equal(t, way.want, told)
				assert.Less(t, allocated, uint64(hostileMemory))
				t.Logf("%d bytes", allocated)
			})
		}
	}
}

// A caller-supplied client asks for gzip, and decompresses what comes: what counts
// against the limit is what that becomes.
func TestAGzipBombThatACallersClientDecompresses(t *testing.T) {
	carrier := &http.Transport{}
	t.Cleanup(carrier.CloseIdleConnections)
	bomb := gzipBomb(t)
	h := hostileResponse{raw: func(conn net.Conn) {
		_, _ = fmt.Fprintf(conn, "%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", hostileHead, len(bomb))
		_, _ = conn.Write(bomb)
	}}
	for _, write := range []bool{false, true} {
		told, allocated := hostileCall(t, h, write, cardwire.WithHTTPClient(&http.Client{Transport: carrier}))
		assert.Equal(t, hostileTooLarge, told)
		assert.Less(t, allocated, uint64(hostileMemory))
	}
}

// What the hostile responses are made of is a success without what is wrong with them.
func TestHostileResponsesAreNearlyGood(t *testing.T) {
	t.Parallel()
	c := wiretest.Converse(t, []wiretest.Exchange{
		{Want: "GET /shop/api/v1/cards", Response: wiretest.Success(hostilePage)}, {Want: wiretest.SmallTransferRequest("M-1"), Response: wiretest.Success(wiretest.TransferData)},
	}, cardwire.WithStrictDrift())
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	assert.Len(t, page.Cards, 1)
	transfer, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	require.NoError(t, err)
	assert.Equal(t, "A-1", transfer.APIOrderNo)
}

// family is a type whose values contain each other.
type family struct {
	Number   cardwire.CardNumber
	Children []*family
	parent   *family
	Parent   **family `json:"-"`
}

func (f *family) UnmarshalJSON(data []byte) error {
	type plain family
	if err := json.Unmarshal(data, (*plain)(f)); err != nil {
		return err
	}
	for _, child := range f.Children {
		child.parent = f
		child.Parent = &child.parent
	}
	return nil
}

func TestCallMasksTypesThatContainThemselves(t *testing.T) {
	t.Parallel()
	const one = `{"Number":"4931930000001234","Children":[`
	client := wiretest.Respond(t, wiretest.Anything, wiretest.Success(one+one+`]},`+one+`]}]}`), cardwire.WithMaskedCards())
	got, err := cardwire.Call[*family](t.Context(), client, cardwire.Request{Op: "Family", Method: "GET", Path: "/family"})
	require.NoError(t, err)
	assert.Equal(t, "493193******1234", got.Number.Reveal())
	assert.Equal(t, "493193******1234", got.Children[1].Number.Reveal())
}

// A refusal whose data mentions the order may be that of a second delivery.
func TestARefusalThatMentionsTheOrder(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]cardwire.Outcome{
		`"Order m-1 already exists"`:                       cardwire.OutcomeUnknown,
		`{"errors":["merchantOrderNo: 'M-1' duplicated"]}`: cardwire.OutcomeUnknown,
		`"order AM-1 or M-12 is wrong, or XM-1, or M-1x"`:  cardwire.OutcomeRefused,
	} {
		response := `{"code":422,"msg":"no","data":` + data + `}`
		c := wiretest.Converse(t, []wiretest.Exchange{{Want: wiretest.SmallTransferRequest("M-1"), Status: 422, Response: response}})
		assert.Equal(t, want, wiretest.TransferOutcome(t, c, "M-1"), data)
	}
}
