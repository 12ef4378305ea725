package hostile_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/contract"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// hostileMemory is what a hostile response may make the whole process allocate, in
// bytes, those included that are garbage by the end: it cannot grow by more.
const hostileMemory = 16_000_000

// hostileResponse is a response that is no success, whatever it pretends.
type hostileResponse struct {
	body        string         // of a 200; <data> is replaced by data that would be a success
	raw         func(net.Conn) // sends what goes out instead, if body is ""
	read, write string         // what is told of ListCards and of CreateTransfer; "": it is not called
}

// What most of them are reported as.
const (
	hostileUnreadable = "Unknown Unreadable, HTTP 200"
	hostileUnfit      = `Unknown Unreadable, HTTP 200, 200 "success"`
	hostileExecuted   = `Executed Unreadable, HTTP 200, 200 "success"`
	hostileRefusal    = `Unknown, HTTP 200, 422 "success"`
	hostileTooLarge   = "Unknown TooLarge, HTTP 200, received"
	hostileBroken     = "Unknown, HTTP 200, received"
	hostileNoResponse = "Unknown, sent"
)

// hostilePage is data that ListCards takes.
var hostilePage = contract.Data("only")

// alike are responses that reads and writes report alike.
func alike(told string, bodies ...string) (list []hostileResponse) {
	for _, body := range bodies {
		list = append(list, hostileResponse{body, nil, told, told})
	}
	return list
}

// hostileBodies are those that are large. What else may be wrong with an envelope
// TestAnEnvelopeThatIsNotStrictIsUnreadable says, and with an amount TestParseDecimal.
func hostileBodies(t *testing.T) (list []hostileResponse) {
	t.Helper()
	for _, code := range []string{
		`1e1000000000`, `200e-1000000000`, `1e` + nines(60_000), nines(60_000), `200` + zeros(60_000),
		`200.` + zeros(60_000),
	} {
		list = append(list, alike(hostileUnreadable, `{"code":`+code+`,"msg":"success","data":<data>}`,
			`{"data":<data>,"msg":"success","code":`+code+`}`)...)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	list = append(list, alike(hostileUnreadable, strings.Repeat("\x00", 1000),
		`{"x":`+deep+`,"code":200,"msg":"success","data":<data>}`, wiretest.Success(deep), strings.Repeat("[", 20_000),
		`{"data":`+deep+`,"code":200,"msg":"success"}`, strings.Repeat(`{"":`, 15_000))...)
	list = append(list, alike(hostileRefusal, `{"code":422,"Code":200,"msg":"success","data":<data>}`,
		`{"CODE":200,"msg":"success","data":<data>,"code":422}`)...)
	for literal, told := range map[string]string{
		`"pending":` + nines(30_000) + "." + nines(30_000): hostileUnfit, `"pending":` + nines(8_000_000): hostileUnfit,
		`"pending":` + nines(10_000_000): hostileTooLarge, `"pending":1e1000000000`: hostileUnfit,
	} {
		page := wiretest.Success(wiretest.Edited(t, hostilePage, `"pending":0`, literal))
		list = append(list, hostileResponse{page, nil, told, ""})
	}
	for literal, told := range map[string]string{ // it names the order
		`1e1000000000`: hostileExecuted, nines(10_000_000): hostileTooLarge,
	} {
		transfer := wiretest.Success(wiretest.Edited(t, wiretest.TransferData, `"A-1"`, literal))
		list = append(list, hostileResponse{transfer, nil, "", told})
	}
	return append(list,
		hostileResponse{`{"code":` + nines(10_000_000) + `,"data":<data>}`, nil, hostileTooLarge, hostileTooLarge},
		hostileResponse{`{"code":` + nines(8_000_000) + `,"data":<data>}`, nil, hostileUnreadable, hostileTooLarge},
		hostileResponse{strings.Repeat(`{"":`, 200_000), nil, hostileUnreadable, hostileTooLarge})
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
	list := []hostileResponse{
		{"", bomb(t, "gzip"), hostileTooLarge, hostileTooLarge},
		{"", bomb(t, "gzip, gzip"), hostileUnreadable, hostileUnreadable},
	}
	for told, streams := range map[string][][2]string{
		hostileTooLarge: {
			{inChunks, chunked(strings.Repeat(" ", 4096))},
			{inChunks + chunked(page), chunked(contract.Element("only", 0) + ",")},
			{inChunks + chunked(`{"msg":"`), chunked(`\u0000`)},
			{inChunks + chunked(wiretest.Success(hostilePage)), chunked(strings.Repeat("\n", 100))},
			{hostileHead + "\r\n", "[[[["}, {hostileHead + "Content-Length: 9223372036854775807\r\n\r\n", "[1,"},
		},
		hostileBroken: { // chunk extensions, and trailers
			{inChunks, "1;" + strings.Repeat("x", 1000) + "\r\n \r\n"}, {inChunks + "1;", "x"},
			{inChunks + chunked(wiretest.Success(hostilePage)) + "0\r\n", "X-Trailer: 1\r\n"},
		},
		hostileNoResponse: {
			{hostileHead, "X-Header: 1\r\n"}, {"HTTP/1.1 200 OK\r\n", "Set-Cookie: a=b\r\n"},
			{hostileHead + "X-Header: ", "1"}, {"HTTP/1.1 200 ", "O"},
			{"", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"}, {"", "HTTP/1.1 100 Continue\r\n\r\n"},
		},
	} {
		for _, s := range streams {
			list = append(list, hostileResponse{"", endlessly(s[0], s[1]), told, told})
		}
	}
	return list
}

// hostileTexts are no HTTP, or odd in it, and full of canaries, which net/http quotes.
func hostileTexts(t *testing.T) (list []hostileResponse) {
	t.Helper()
	const (
		number, key = wiretest.CanaryNumber, wiretest.CanaryKey
		secret      = number + " " + wiretest.LongCVV + " " + key
		end         = "\r\n\r\n"
		ok          = "HTTP/1.1 200 OK\r\n"
		inChunks    = ok + "Transfer-Encoding: chunked\r\n"
		empty       = "\r\nContent-Length: 0" + end
	)
	for told, texts := range map[string][]string{
		hostileNoResponse: {
			secret + "\r\n", "HTTP/1.1 " + number + " OK" + end, "HTTP/" + number + " 200 OK" + end, ok + secret + end,
			ok + " " + secret + end, ok + "Content-Length: " + secret + end, ok + "Content-Length: -" + number + end,
			ok + "Content-Length: 1\r\nContent-Length: " + number + end, ok + "Transfer-Encoding: " + secret + end,
			"HTTP/1.1 103 Early\r\nLink: <" + key + ">" + end + secret,
		},
		hostileBroken: {
			ok + "Content-Length: 999" + end + secret, inChunks + "\r\n" + number + "x\r\n" + secret,
			inChunks + "\r\n2\r\n" + secret, inChunks + "Trailer: " + number + end + "0\r\n" + secret + end,
		},
		hostileUnreadable: {
			ok + "X " + secret + ": 1" + end, ok + "Refresh: 0; url=/" + key + "\r\nContent-Length: 2" + end + "{}",
		},
		"Unknown Unreadable, HTTP 500": {
			"HTTP/1.1 500 No\r\nX-Request-Id: " + number + key + empty, "HTTP/1.1 500 " + secret + empty,
		},
		"Unknown Unreadable, HTTP 101": {
			"HTTP/1.1 101 Switching\r\nUpgrade: " + key + "\r\nConnection: upgrade" + end + secret,
		},
		"Unknown Redirect, HTTP 302": {
			"HTTP/1.1 302 Found\r\nLocation: https://" + key + ".example/?pan=" + number + empty,
		},
		"Unknown Redirect, HTTP 307":               {"HTTP/1.1 307 Moved\r\nLocation: ://" + secret + empty},
		"Refused RateLimited Unreadable, HTTP 429": {"HTTP/1.1 429 No\r\nRetry-After: " + secret + empty},
	} {
		for _, text := range texts {
			list = append(list, hostileResponse{"", loopback.Say(text), told, told})
		}
	}
	return list
}

// bomb sends a response of at most 40 KiB that is 32 MiB when it is decompressed.
func bomb(t *testing.T, encoding string) func(net.Conn) {
	t.Helper()
	var text bytes.Buffer
	z, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	require.NoError(t, err)
	_, err = z.Write(bytes.Repeat([]byte(" "), 32<<20))
	require.NoError(t, errors.Join(err, z.Close()))
	require.Less(t, text.Len(), 40<<10)
	return func(conn net.Conn) {
		head := hostileHead + "Content-Encoding: " + encoding + "\r\n"
		_, _ = fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", head, text.Len(), text.Bytes())
	}
}

// hostileCall sends the response to a call over loopback, and returns what was told
// and how many bytes the process allocated meanwhile.
func hostileCall(t *testing.T, h hostileResponse, write bool, opts ...cardwire.Option) (string, int) {
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
	c, err := cardwire.New(s.Base, wiretest.CanaryKey,
		append(opts, cardwire.WithRetry(cardwire.RetryPolicy{}), wiretest.InMemory())...)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	var r cardwire.Response
	var also []cardwire.CallOption
	if h.body == "" {
		also = append(also, cardwire.WithResponse(&r)) // which keeps the body
	}
	allocated := wiretest.Allocated(func() {
		if write {
			_, err = c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), also...)
		} else {
			_, err = c.ListCards(t.Context(), cardwire.ListCardsParams{}, also...)
		}
	})
	require.Error(t, err, "it was taken for a success")
	assert.EqualValues(t, 1, s.Requests.Load())
	assertErrorSilent(t, err, nil)
	r.Header.Del("Retry-After") // which is repeated
	assertErrorSilent(t, nil, &r)
	return wiretest.OutcomeOf(t, err), allocated
}

// Not parallel: what the process allocates is measured.
func TestHostileResponses(t *testing.T) {
	for i, h := range slices.Concat(hostileBodies(t), hostileStreams(t), hostileTexts(t)) {
		for write, want := range map[bool]string{false: h.read, true: h.write} {
			if want != "" {
				told, allocated := hostileCall(t, h, write)
				assert.Equal(t, want, told, "%d, write %t: %.100s", i, write, h.body)
				assert.Less(t, allocated, hostileMemory, "%d, write %t: %.100s", i, write, h.body)
			}
		}
	}
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
	response := wiretest.Success(one + one + `]},` + one + `]}]}`)
	client := wiretest.Respond(t, "GET /shop/api/v1/family", response, cardwire.WithMaskedCards())
	request := cardwire.Request{Op: "Family", Method: "GET", Path: "/family"}
	got, err := cardwire.Call[*family](t.Context(), client, request)
	require.NoError(t, err)
	assert.Equal(t, "493193******1234", got.Number.Reveal())
	assert.Equal(t, "493193******1234", got.Children[1].Number.Reveal())
}
