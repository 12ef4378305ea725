package cardwire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

var outcomeOf = wiretest.OutcomeOf

// transferOver sends the transfer M-1 to the service at base.
func transferOver(t *testing.T, base string, opts ...cardwire.Option) error {
	t.Helper()
	_, err := wiretest.ClientOver(t, base, opts...).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	return err
}

// Responses to a write, as they go over the wire: one for each fact that is read from one.
// What the facts mean is judge's table. <data> is the data of the operation's success.
var writeResponses = []struct{ name, response, want string }{
	{"no response", "", "Unknown, sent"},
	{"an end within the status line", "HTTP/1.", "Unknown, sent"},
	{"an end within the header", "HTTP/1.1 200 OK\r\nContent-Le", "Unknown, sent"},
	{"an informational status alone", "HTTP/1.1 199 Strange\r\n\r\n", "Unknown, sent"},

	{"a body cut off", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + refusal, "Unknown, HTTP 200, received"},
	{"a refusal cut off", "HTTP/1.1 422 No\r\nContent-Length: 500\r\n\r\n" + refusal, "Unknown, HTTP 422, received"},
	{"a chunk cut off", chunked("200 OK") + "ff\r\n" + refusal, "Unknown, HTTP 200, received"},
	{"over 64 KiB", response("200 OK", padded(64<<10+1)), "Unknown TooLarge, HTTP 200, received"},
	{"a refusal over 64 KiB", response("422 No", padded(64<<10+1)), "Unknown TooLarge, HTTP 422, received"},
	{"a refusal of 64 KiB", response("422 No", padded(64<<10)), refused422},

	{"a page of HTML", response("200 OK", "<!doctype html><p>Welcome"), "Unknown Unreadable, HTTP 200"},
	{"an empty body", response("200 OK", ""), "Unknown Unreadable, HTTP 200"},
	{"no content", "HTTP/1.1 204 No Content\r\n\r\n", "Unknown Unreadable, HTTP 204"},
	{"another object", response("200 OK", `{"status":"ok"}`), "Unknown Unreadable, HTTP 200"},
	{"gzip", response("200 OK", "\x1f\x8b\x08", "Content-Encoding: gzip\r\n"), "Unknown Unreadable, HTTP 200"},
	{"a code in a string", response("200 OK", `{"code":"422","msg":"no"}`), `Unknown Unreadable, HTTP 200, 422 "no"`},
	{"another order after what is no text",
		response("200 OK", `{"code":200,"msg":"success","data":{"api_order_no":"A-1",`+
			`"status":[],"note":"`+"\xff"+`","merchant_order_no":"other"}}`),
		`Unknown Unreadable, HTTP 200, 200 "success"`},
	{"a message that is no text", response("422 No", "{\"code\":422,\"msg\":\"\xd6\xd8\xb8\xb4\"}"),
		"Unknown Unreadable, HTTP 422, 422 \"\ufffd\u0638\ufffd\""},
	{"two codes", response("422 No", `{"code":200,"code":422,"msg":"no"}`), "Unknown Unreadable, HTTP 422"},
	{"no message", response("422 No", `{"code":422}`), `Unknown, HTTP 422, 422 ""`},
	{"no JSON", response("200 OK", `{"code":200,"msg":"success","data":nothing}`), "Unknown Unreadable, HTTP 200"},
	{"a gateway", response("502 Bad Gateway", "<h1>502</h1>"), "Unknown Unreadable, HTTP 502"},

	{"300", redirect("300 Choices"), "Unknown Redirect, HTTP 300"},
	{"304", "HTTP/1.1 304 Not Modified\r\n\r\n", "Unknown Redirect, HTTP 304"},
	{"307", redirect("307 Elsewhere"), "Unknown Redirect, HTTP 307"},
	{"399", redirect("399 Elsewhere"), "Unknown Redirect, HTTP 399"},

	{"a success", response("200 OK", success, "Retry-After: 9\r\n"), "success"},
	{"201", response("201 Created", strings.Replace(success, "success", "Uploaded", 1)), "success"},
	{"a success after a hint", "HTTP/1.1 103 Early Hints\r\n\r\n" + response("200 OK", success), "success"},
	{"a success without a length", "HTTP/1.1 200 OK\r\n\r\n" + success, "success"},
	{"a refusal", response("422 No", refusal), refused422},
	{"a code that refuses", response("200 OK", refusal), `Refused, HTTP 200, 422 "invalid account"`},
	{"in chunks", chunked("422 No") + "5\r\n{\"cod\r\n1f\r\ne\":422,\"msg\":\"invalid account\"}\r\n0\r\n\r\n",
		refused422},
	{"after an early hint", "HTTP/1.1 103 Early Hints\r\n\r\n" + response("422 No", refusal), refused422},
	{"a code under no status of success", response("409 No", refusal), `Unknown, HTTP 409, 422 "invalid account"`},
	{"a success under one of a refusal", response("422 No", success), `Unknown, HTTP 422, 200 "success"`},
	{"code 0", response("200 OK", `{"code":0,"msg":"success","data":<data>}`), `Unknown, HTTP 200, 0 "success"`},
	{
		"when to call again", response("429 Slow", `{"code":429,"msg":"slow"}`, "Retry-After: 40\r\n"),
		`Refused RateLimited, HTTP 429, 429 "slow", again after 40s`,
	},
	{"it exists", response("422 No", `{"code":422,"msg":"ALREADY Exist"}`), `Unknown, HTTP 422, 422 "ALREADY Exist"`},
	{"in Chinese", response("200 OK", `{"code":422,"msg":"单号重复"}`), `Unknown, HTTP 200, 422 "单号重复"`},
	{"a success's message", response("422 No", `{"code":422,"msg":"SUCCESS "}`), `Unknown, HTTP 422, 422 "SUCCESS "`},
	{"its data", response("422 No", `{"code":422,"msg":"no","data":<data>}`), `Unknown, HTTP 422, 422 "no"`},
	{"it is elsewhere", response("422 No", `{"code":422,"msg":"no","result":["<REFERENCE>"]}`),
		`Unknown, HTTP 422, 422 "no"`},

	{"bare, a page", response("429 Slow", "<h1>Slow"), bareRefusal},
	{"bare, empty", response("429 Slow", ""), bareRefusal},
	{"bare, no chunk", chunked("429 Slow") + "0\r\n\r\n", bareRefusal},
	{"bare, perhaps cut off before its body", open, bareUnknown},
	{"bare, perhaps cut off before an envelope", open + " \n", bareUnknown},
	{"bare, a page perhaps cut off", open + "<h1>Slow", bareRefusal},
	{"bare, not encoded", response("429 Slow", "<h1>Slow", encoded+"Identity\r\n"), bareRefusal},
	{"bare, encoded", response("429 Slow", "\x1f\x8b\x08", encoded+"gzip\r\n"), bareUnknown},
	{"bare, encoded twice", response("429 Slow", "\x1f\x8b", encoded+"identity\r\n", encoded+"gzip\r\n"), bareUnknown},
	{"bare, a duplicate", response("429 Slow", "Duplicate request: it was already submitted"), bareUnknown},
	{"bare, a page whose style repeats", response("429 Slow", "<style>background: no-repeat"), bareRefusal},
	{"bare, the reference", response("429 Slow", "<h1>no <REFERENCE>"), bareUnknown},
}

const (
	refused422  = `Refused, HTTP 422, 422 "invalid account"`
	refusal     = `{"code":422,"msg":"invalid account","data":null}`
	success     = `{"code":200,"msg":"success","data":<data>}`
	switching   = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
	open        = "HTTP/1.1 429 Slow\r\nConnection: close\r\n\r\n" // its body ends with the connection
	encoded     = "Content-Encoding: "
	bareRefusal = "Refused RateLimited Unreadable, HTTP 429"
	bareUnknown = "Unknown RateLimited Unreadable, HTTP 429"
)

func chunked(status string) string {
	return "HTTP/1.1 " + status + "\r\nTransfer-Encoding: chunked\r\n\r\n"
}

func redirect(status string) string {
	return "HTTP/1.1 " + status + "\r\nLocation: /api/v1/cards\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
}

// response is one whose length is written when its body is known.
func response(status, body string, header ...string) string {
	return "HTTP/1.1 " + status + "\r\n" + strings.Join(header, "") +
		"Content-Length: <length>\r\nConnection: close\r\n\r\n" + body
}

// padded is a refusal of so many bytes.
func padded(size int) string { return fmt.Sprintf("%-*s", size, refusal) }

// responseTo is a response as it goes out for an operation.
func responseTo(w wiretest.Write, response string) string {
	response = strings.ReplaceAll(response, "<data>", w.Data)
	response = strings.ReplaceAll(response, "<REFERENCE>", strings.ToUpper(w.Reference))
	_, last, _ := strings.Cut(response, "<length>")
	_, body, _ := strings.Cut(last, "\r\n\r\n")
	return strings.Replace(response, "<length>", strconv.Itoa(len(body)), 1)
}

func TestOutcomeOfAWrite(t *testing.T) {
	t.Parallel()
	for n, w := range wiretest.AllWrites() {
		for _, tc := range writeResponses {
			if n > 1 && !slices.Contains([]string{"a success", "a refusal", "a gateway", "no response"}, tc.name) {
				continue // a transfer and a freeze have them all
			}
			if w.Op == cardwire.OpFreezeCard &&
				slices.Contains([]string{"it exists", "in Chinese", "bare, a duplicate"}, tc.name) {
				continue // it can be read back
			}
			t.Run(string(w.Op)+", "+tc.name, func(t *testing.T) {
				t.Parallel()
				s := loopback.Serve(t, loopback.Say(responseTo(w, tc.response)))
				err := w.Call(t.Context(), wiretest.ClientOver(t, s.Base))
				assert.Equal(t, tc.want, outcomeOf(t, err))
				assert.EqualValues(t, 1, s.Requests.Load(), "the requests that reached the service")
				if err != nil {
					e := wiretest.Failure(t, err)
					assert.Equal(t, string(w.Op)+" "+w.Reference, string(e.Op)+" "+e.Reference)
				}
			})
		}
	}
}

// The code is that of a success: it was executed if the data names this order, or is or has
// the service's number for it.
func TestDataThatIsNotThePromised(t *testing.T) {
	t.Parallel()
	const executed, unknown = "Executed Unreadable", "Unknown Unreadable"
	for _, tc := range []struct {
		op   cardwire.Op
		want string
		data []string
	}{
		{"CreateTransfer", unknown, []string{
			`"M-1"`, `7`, `true`, `false`, `null`, `[]`, `{}`, `[{"merchant_order_no":"M-1","api_order_no":"A-1"}]`,
			`{"status":"wait_process"}`, `{"api_order_no":" ","status":"wait_process"}`, `{"api_order_no":true}`,
			`{"api_order_no":0}`, `{"api_order_no":"0.00"}`, `{"api_order_no":-1}`, `{"api_order_no":"-"}`,
			`{"api_order_no":"null"}`, `{"api_order_no":"failed"}`, `{"api_order_no":"余额不足"}`,
			`{"api_order_no":"error 404"}`, `{"api_order_no":"failed","status":{}}`,
		}},
		{"CreateTransfer", executed, []string{
			`{"api_order_no":"A-1","status":5}`, `{"api_order_no":7,"status":{}}`, `{"merchant_order_no":"M-1"}`,
			`{"merchant_order_no":"M-1","api_order_no":null}`, `{"merchant_order_no":"M-1","api_order_no":" "}`,
			`{"merchant_order_no":"M-1","api_order_no":""}`,
			`{"merchant_order_no":"M-1","api_order_no":{}}`, `{"merchant_order_no":"M-1","api_order_no":"failed"}`,
			`{"merchant_order_no":"M-1","api_order_no":"A-1","status":5}`,
		}},
		{"CreateTransfer", unknown, []string{ // another order's
			`{"merchant_order_no":"M-2"}`, `{"merchant_order_no":"M-2","api_order_no":"A-1","status":"wait_process"}`,
			`{"merchant_order_no":"M-2","api_order_no":"A-1","status":{}}`,
			`{"merchant_order_no":["M-2"],"api_order_no":"A-1"}`,
			`{"merchant_order_no":{"no":"M-2"},"api_order_no":"A-1"}`,
			`{"merchant_order_no":"m-1","api_order_no":"A-1"}`,
			`{"merchant_order_no":"M-1 ","api_order_no":"A-1"}`, `{"merchant_order_no":"M-10","api_order_no":"A-1"}`,
			`{"merchant_order_no":"\u004d-2","api_order_no":"A-1","status":"wait_process"}`,
			`{"api_order_no":null,"merchant_order_no":"M-2"}`, `{"merchant_order_no":1,"api_order_no":"A-1"}`,
			`{"status":[{}],"api_order_no":"A-1","merchant_order_no":7}`,
		}},
		{"FreezeCard", unknown, []string{`null`, `""`, `true`, `{}`, `["` + wiretest.OperationID + `"]`}},
		{"CancelOperation", unknown, []string{`{}`, `[]`, `"yes"`, `""`, `2`, `null`, `false`, `0`, `"0"`}},
		{"RetryOperation", unknown, []string{`"done"`, `null`, `false`}},
		{"UploadImage", unknown, []string{
			`"k-1"`, `null`, `[]`, `{}`,
			`{"attachment_key":null}`, `{"attachment_key":" "}`, `{"attachment_key":["k"]}`,
		}},
		{"CloseCard", unknown, []string{`"T-9"`, `[]`, `null`, `{"ticket":9}`}},
	} {
		writes := wiretest.AllWrites()
		w := writes[slices.IndexFunc(writes, func(w wiretest.Write) bool { return w.Op == tc.op })]
		for _, data := range tc.data {
			for _, body := range []string{wiretest.Success(data), `{"data":` + data + `,"msg":"success","code":200}`} {
				err := w.Call(t.Context(), wiretest.NewClient(t, wiretest.Always(200, body)))
				assert.Equal(t, tc.want+`, HTTP 200, 200 "success"`, outcomeOf(t, err), "%s %s", tc.op, body)
			}
		}
		err := w.Call(t.Context(), wiretest.NewClient(t, wiretest.Always(200, `{"code":200,"msg":"success"}`)))
		assert.Equal(t, `Unknown Unreadable, HTTP 200, 200 "success"`, outcomeOf(t, err), tc.op)
	}
	again := `{"code":200,"msg":"success","data":{"z":1,"api_order_no":true},"z":1}` // names of data are forgotten
	err := send(t, wiretest.NewClient(t, wiretest.Always(200, again)))
	assert.Equal(t, `Unknown Unreadable, HTTP 200, 200 "success"`, outcomeOf(t, err))
	contradicted := `{"code":200,"msg":"balance too low","data":{"merchant_order_no":"M-1"}}`
	err = send(t, wiretest.NewClient(t, wiretest.Always(200, contradicted)))
	assert.Equal(t, `Unknown Unreadable, HTTP 200, 200 "balance too low"`, outcomeOf(t, err))
}

func TestAWriteThatFindsNoConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	c := wiretest.ClientOver(t, loopback.ClosedPort(t))
	assert.Equal(t, "NotSent, connect connect connect", outcomeOf(t, send(t, c)))
	_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"), cardwire.WithoutRetry())
	assert.Equal(t, "NotSent, connect", outcomeOf(t, err))
}

func TestOutcomeOfARead(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/bins/maintenance"
	exchange := func(status int, body string) wiretest.Exchange {
		return wiretest.Exchange{Want: asked, Status: status, Response: body}
	}
	limited := func(after string) wiretest.Exchange {
		e := exchange(429, `{"code":429,"msg":"slow"}`)
		e.Header = "Retry-After: " + after
		return e
	}
	good := exchange(200, wiretest.Success(`["493193"]`))
	broken := wiretest.Exchange{Want: asked, Err: wiretest.ErrBroken}
	const seven = 7 * time.Second
	type conversation = []wiretest.Exchange
	for name, tc := range map[string]struct {
		responses conversation
		want      string
		attempts  []int // statuses of the attempts that are told
		waited    time.Duration
	}{
		"a clean first try":  {conversation{good}, "success", nil, 0},
		"the wait asked for": {conversation{limited("7"), good}, "success", []int{429, 200}, seven},
		"the last response is told": {
			conversation{broken, limited("7"), exchange(500, `{"code":500,"msg":"database"}`)},
			`Unknown, HTTP 500, 500 "database", sent received received`, []int{0, 429, 500}, seven,
		},
		"nothing of a response before the last is told": {
			conversation{limited("7"), broken, broken}, "Unknown, received sent sent", []int{429, 0, 0}, seven,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r cardwire.Response
				start := time.Now()
				c := wiretest.Converse(t, tc.responses, cardwire.WithRetry(wiretest.QuickRetry))
				bins, err := c.ListBINsUnderMaintenance(t.Context(), cardwire.WithResponse(&r))
				assert.Equal(t, tc.want, outcomeOf(t, err))
				assert.Equal(t, tc.waited, time.Since(start).Round(time.Second))
				var statuses []int
				for i, a := range r.Attempts {
					statuses = append(statuses, a.HTTPStatus)
					assert.Equal(t, i+1 < len(r.Attempts), a.Wait > 0, "a wait before each retry")
				}
				assert.Equal(t, tc.attempts, statuses)
				if err == nil {
					assert.Equal(t, []string{"493193"}, bins)
					return
				}
				assert.Nil(t, bins)
				assert.Equal(t, r.Attempts, wiretest.Failure(t, err).Attempts)
				assert.NotContains(t, err.Error(), "4111", "the text of a cause may hold anything")
			})
		})
	}
}

// closeRecorder notes whether a body was closed.
type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

// With a caller-supplied doer nothing proves that nothing was sent, once it was called.
func TestOutcomeOfAWriteByACallersDoer(t *testing.T) {
	t.Parallel()
	moved := loopback.Serve(t, loopback.Say(redirect("303 See Other")))
	fresh := &http.Transport{DisableKeepAlives: true}
	body := &closeRecorder{Reader: strings.NewReader(refusal)}
	type doer = wiretest.RoundTripper
	for _, tc := range []struct {
		name, base string
		doer       cardwire.Doer
		want       string
	}{
		{"an http.Client", moved.Base, &http.Client{Transport: fresh}, "Unknown Redirect, HTTP 303"},
		{"a closed port", loopback.ClosedPort(t), &http.Client{Transport: fresh}, "Unknown, connect"},
		{"the response to another request", wiretest.Base, doer(func(r *http.Request) (*http.Response, error) {
			other := r.Clone(r.Context())
			other.Method, other.URL = "GET", &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/done"}
			return wiretest.Response(other, 200, refusal), nil
		}), "Unknown Redirect, HTTP 200"},
		{"neither a response nor an error", wiretest.Base, doer(func(*http.Request) (*http.Response, error) {
			return nil, nil
		}), "Unknown, sent"},
		{"a response and an error", wiretest.Base, doer(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 422, Body: body, Request: r}, wiretest.ErrBroken
		}), "Unknown, sent"},
		{"a response without a body", wiretest.Base, doer(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Request: r}, nil
		}), "Unknown Unreadable, HTTP 200"},
		{"no connection, it says", wiretest.Base, doer(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}), "Unknown, connect"},
	} {
		assert.Equal(t, tc.want, outcomeOf(t, transferOver(t, tc.base, cardwire.WithHTTPClient(tc.doer))), tc.name)
	}
	assert.True(t, body.closed, "the body that came with an error must be closed")
	assert.EqualValues(t, 1, moved.Requests.Load(), "no redirect was followed")
}

// TestHostileResponses finds no secret where it leads.
func TestRedirectNamesItsHost(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"https://www.example.com/login": "it leads to www.example.com: ",
		"https://www.example.com/%zz":   "the response is a redirect: ",
	} {
		moved := loopback.Response("307 Temporary Redirect", "Location: "+location+"\r\n", "")
		s := loopback.Serve(t, loopback.Say(moved))
		require.ErrorContains(t, transferOver(t, s.Base), want+"check the base URL")
	}
}

// retrying is a client that retries by itself after a 5xx, which callers must not use.
type retrying struct{ transport http.RoundTripper }

func (r retrying) Do(in *http.Request) (*http.Response, error) { return r.RoundTrip(in) }

func (r retrying) RoundTrip(in *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		again := in.Clone(in.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := r.transport.RoundTrip(again)
		if err != nil || resp.StatusCode < 500 || !first {
			return resp, err
		}
		resp.Body.Close()
	}
}

// The last response proves nothing about the requests before it, unless it is a success.
func TestHTTPClientThatRetriesByItself(t *testing.T) {
	t.Parallel()
	busy := loopback.Response("503 Busy", "", "")
	refusal := loopback.Response("422 No", "", `{"code":422,"msg":"insufficient funds","data":null}`)
	success := loopback.Response("200 OK", "", wiretest.Success(wiretest.TransferData))
	for name, tc := range map[string]struct {
		responses []string
		want      string // of the error, before the words; "": none
		resent    bool
	}{
		"refused at once": {[]string{refusal}, "refused, HTTP 422", false},
		"done at once":    {[]string{success}, "", false},
		"refused after a retry": {
			[]string{busy, refusal}, `unknown outcome, HTTP 422, code 422, "insufficient funds": `, true,
		},
		"broken after a retry": {[]string{busy, ""}, "connection closed before the response was complete: ", true},
		"busy after a retry": {
			[]string{busy, busy}, "HTTP 503: the response is from a gateway in front of the service: ", true,
		},
		"done after a retry": {[]string{busy, success}, "executed, HTTP 200", true},
	} {
		send := retrying{&http.Transport{DisableKeepAlives: true}}
		for kind, doer := range map[string]cardwire.Doer{"Doer": send, "http.Client": &http.Client{Transport: send}} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				var sent atomic.Int32
				s := loopback.Serve(t, func(conn net.Conn) { loopback.Say(tc.responses[sent.Add(1)-1])(conn) })
				var log bytes.Buffer
				var told []cardwire.Attempt
				observe := func(_ context.Context, _ cardwire.CallInfo, a cardwire.Attempt) { told = append(told, a) }
				c := wiretest.ClientOver(t, s.Base, cardwire.WithHTTPClient(doer),
					cardwire.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
					cardwire.WithObserver(cardwire.Observer{Attempt: observe}))
				order, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
				switch {
				case tc.want == "":
					require.NoError(t, err)
				case strings.HasPrefix(tc.want, "executed"):
					require.ErrorContains(t, err, "the HTTP client sent the request more than once: see WithHTTPClient")
					require.ErrorContains(t, err, tc.want)
					require.ErrorIs(t, err, cardwire.ErrSetup)
					assert.Equal(t, cardwire.StepDone, cardwire.NextStep(err))
					assert.NotEmpty(t, order.APIOrderNo, "the result is returned, too")
				case tc.resent:
					const twice = "the HTTP client sent the request more than once: see WithHTTPClient"
					require.ErrorContains(t, err, tc.want+twice)
					assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome)
					assert.Equal(t, cardwire.StepReconcile, cardwire.NextStep(err))
				default:
					require.ErrorContains(t, err, tc.want)
				}
				require.Len(t, told, 1)
				assert.Equal(t, tc.resent, told[0].Resent)
				assert.Equal(t, tc.resent, strings.Contains(log.String(), `level=ERROR msg="cardwire: `+
					`the HTTP client sent a write more than once: see WithHTTPClient" operation=CreateTransfer`))
			})
		}
	}
}

// net/http gives such a connection away, with the end of the context no longer
// being its concern.
func TestASwitchOfProtocolsThatStaysOpenEndsTheCall(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	s := loopback.Serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, switching)
		<-leave
	})
	t.Cleanup(func() { close(leave) })
	assert.Equal(t, "Unknown Unreadable, HTTP 101", outcomeOf(t, transferOver(t, s.Base)))
	_, err := wiretest.ClientOver(t, s.Base).CardCapacity(t.Context())
	assert.Equal(t, "Unknown Unreadable, HTTP 101", outcomeOf(t, err))
}

func refusedWith(t *testing.T, status int, body string) told {
	t.Helper()
	return toldBy(t, send(t, wiretest.NewClient(t, wiretest.Always(status, body))))
}

// A gateway that delivers a request twice gets a refusal for the second delivery, in whatever
// form the service's framework has for it. Which strings say so is in internal/wire.
func TestARefusalThatMayBeOfASecondDelivery(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"code":422,"msg":"The given data was invalid.","data":{"errors":` +
			`{"merchantOrderNo":["The merchant order no has already been taken."]}}}`,
		`{"code":422,"msg":"no","data":"商户订单号重复"}`,
		`{"code":422,"msg":"no","data":null,"sub_code":"DUPLICATE_ORDER"}`,
		`{"sub_code":"ORDER_NO_EXISTS","code":422,"msg":"no"}`,
		`{"data":[[{"x":"order number taken"}]],"code":422,"msg":"no"}`,
		`{"code":422,"msg":"merchantOrderNo has exists","data":null}`,
		"\ufeff" + `{"code":422,"msg":"\u8ba2\u5355\u53f7\u5b58\u5728","data":null}`,
	} {
		assert.Equal(t, "Unknown", refusedWith(t, 422, body).is, body)
		assert.Equal(t, "Unknown", refusedWith(t, 200, body).is, body)
	}
	for _, body := range []string{
		`{"code":422,"msg":"no","data":{"errors":{"card":["card does not exist"]}},"sub_code":"CARD_NOT_EXIST"}`,
		`{"code":422,"msg":"invalid","data":{"already_exists":false,"duplicate":7,"taken":null}}`, // names
	} {
		assert.Equal(t, "Refused", refusedWith(t, 422, body).is, body)
	}

	// What a freeze did can be read back.
	for body, want := range map[string]string{
		`{"code":422,"msg":"operation exists"}`: "Refused", `{"code":422,"msg":"no"}`: "Refused",
		`{"code":422,"msg":"no such operation: ` + wiretest.FreezeID + `"}`: "Unknown",
	} {
		assert.Equal(t, want, toldBy(t, wiretest.AllMethods()["FreezeCard"](t.Context(),
			wiretest.NewClient(t, wiretest.Always(422, body)))).is, body)
	}

	c := wiretest.NewClient(t, wiretest.Always(422, `{"code":422,"msg":"image exists"}`))
	err := wiretest.AllMethods()["UploadImage"](t.Context(), c)
	assert.Equal(t, "Refused", toldBy(t, err).is, "it has no reference")
}

// What a refusal says no to may be the second delivery of an order that was executed.
func TestARefusalThatNamesTheOrderIsUnknown(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		wiretest.TransferData, `{"merchant_order_no":" M-1 "}`, `{"api_order_no":"A-1","status":"wait_process"}`,
		`"M-1"`, `["M-1"]`, `{"M-1":"exists"}`, `{"order":{"no":"m-1"}}`, `[{"a":[1,{"b":"\u004d-1"}]}]`,
	} {
		assert.Equal(t, "Unknown", refusedWith(t, 422, `{"code":422,"msg":"no","data":`+data+`}`).is, data)
		assert.Equal(t, "Unknown", refusedWith(t, 200, `{"data":`+data+`,"code":422,"msg":"no"}`).is, data)
	}
	for _, data := range []string{
		`{"merchant_order_no":"M-2"}`, `{"merchant_order_no":"M-2","api_order_no":"A-2"}`, `{"api_order_no":[]}`,
		`null`, `{}`, `"M-12"`, `["M1"]`, `7`,
	} {
		for _, body := range []string{
			`{"code":422,"msg":"invalid account","data":` + data + `}`,
			`{"data":` + data + `,"code":422,"msg":"invalid account"}`,
		} {
			heard, drifts := wiretest.Drifts()
			err := send(t, wiretest.NewClient(t, wiretest.Always(422, body), heard))
			assert.Equal(t, refused422, outcomeOf(t, err), body)
			assert.Empty(t, *drifts, "drift is told of successes")
		}
	}
}

// Which words say why is in internal/wire.
func TestARefusalIsBelievedIfItSaysWhy(t *testing.T) {
	t.Parallel()
	const good, silent, trouble = "invalid account", "Bad Request", "invalid, try again"
	const exists, record = "order exists", "record not found"
	for _, tc := range []struct {
		status, code int
		refused      []string
		unknown      []string
	}{
		{400, 1, []string{good}, []string{silent, trouble, exists, record, ""}},
		{404, 404, []string{good}, []string{silent, trouble, exists, record}},
		{422, 401, []string{good}, []string{silent, trouble, exists}},
		{200, 422, []string{good}, []string{silent, trouble, exists}},
		{401, 422, []string{good, silent, trouble, ""}, []string{exists, record}},
		{429, 1, []string{good, silent, trouble, ""}, []string{exists, record}},
		{200, 403, []string{good, silent, trouble, ""}, []string{exists, record}},
	} {
		for _, w := range wiretest.AllWrites() {
			outcome := func(message string) string {
				body := fmt.Sprintf(`{"code":%d,"msg":%q,"data":null}`, tc.code, message)
				return toldBy(t, w.Call(t.Context(), wiretest.NewClient(t, wiretest.Always(tc.status, body)))).is
			}
			ofRecord := strings.HasSuffix(string(w.Op), "Operation")
			for _, message := range tc.refused {
				assert.Contains(t, outcome(message), "Refused", "%s, %d, %d: %s", w.Op, tc.status, tc.code, message)
			}
			for _, message := range tc.unknown {
				want := "Unknown"
				if w.Op == "FreezeCard" || w.Op == "UploadImage" || ofRecord && message == record {
					want = "Refused"
				}
				assert.Contains(t, outcome(message), want, "%s, %d, %d: %s", w.Op, tc.status, tc.code, message)
			}
		}
	}
}

// A reason is none if the service only says what it was sent: in JSON, a form, parts or a query.
func TestWhatTheRequestSaysIsNoReason(t *testing.T) {
	t.Parallel()
	c := wiretest.NewClient(t, wiretest.Always(422, `{"code":422,"msg":"no: No-Limit / 餘額不足 (invalid1)"}`))
	values := []string{"no limit", "余额不足", "Invalid1"}
	params := wiretest.SmallTransfer("M-1")
	params.Extra = map[string]string{"remark": values[0], "note": values[1], "tag": values[2]}
	_, err := c.CreateTransfer(t.Context(), params)
	assert.Equal(t, "Unknown", toldBy(t, err).is)
	for n, request := range []cardwire.Request{
		{JSON: map[string]any{"x": []any{values[0], map[string]any{"y": values[1], "z": values[2]}}}},
		{Form: url.Values{"x": values}},
		{Multipart: []cardwire.Part{{Name: "x", Value: values[0]}, {Name: "y", Value: values[1]}},
			Query: url.Values{"z": values[2:]}},
		{Query: url.Values{"z": values[:2]}}, // the third is a word of the service's
	} {
		request.Op, request.Method, request.Path, request.Reference = "Close", "POST", "/close", fmt.Sprint("C-", n)
		_, err := cardwire.Call[any](t.Context(), c, request)
		assert.Equal(t, []string{"Unknown", "Refused"}[n/3], toldBy(t, err).is, n)
	}
}

func TestARefusalThatIsNotBelievedSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"code":404,"msg":"no","data":null}`: `unknown outcome, HTTP 404, code 404, "no": the refusal gives no ` +
			"reason that proves that nothing was executed: ask the service about M-1 before sending it again; once " +
			"support has said what these words mean, add them to Profile.RefusedMessages",
		"<h1>no": "unknown outcome, HTTP 404: the response is not strict JSON: a value is missing: check that the " +
			"base URL ends in /api/v1; if it does, ask the service about M-1 before sending it again",
	} {
		err := send(t, wiretest.NewClient(t, wiretest.Always(404, body)))
		assert.EqualError(t, err, "cardwire: CreateTransfer M-1: "+want)
	}
	c := wiretest.NewClient(t, wiretest.Always(404, `{"code":404,"msg":"the account does not exist"}`))
	assert.Equal(t, told{"Refused NotFound", cardwire.StepRetry}, toldBy(t, send(t, c)),
		"it names nothing that could be missing")
	for _, op := range []string{"GetCard", "UploadImage"} {
		err := wiretest.AllMethods()[op](t.Context(), wiretest.NewClient(t, wiretest.Always(404, "<h1>no")))
		assert.Equal(t, told{"Refused NotFound Unreadable", cardwire.StepFail}, toldBy(t, err), op)
	}
}

// A client of go-retryablehttp is refused where it would retry.
func TestAnHTTPClientThatRetriesIsRefused(t *testing.T) {
	t.Parallel()
	retries := retryablehttp.NewClient()
	once := retryablehttp.NewClient()
	once.RetryMax = 0
	for name, tc := range map[string]struct {
		client  *http.Client
		refused bool
	}{
		"its standard client": {retries.StandardClient(), true},
		"its default client":  {&http.Client{Transport: &retryablehttp.RoundTripper{}}, true},
		"one that does not":   {once.StandardClient(), false},
		"another":             {&http.Client{}, false},
	} {
		_, err := cardwire.New(wiretest.Base, "k", cardwire.WithHTTPClient(tc.client))
		if !tc.refused {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, cardwire.ErrSetup, name)
		require.ErrorContains(t, err,
			"WithHTTPClient: the client retries requests, and would send a transfer twice: set RetryMax to 0")
	}
}
