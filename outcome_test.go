package cardwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replyCase is a reply, and what is told of it to one who sent a write.
type replyCase struct {
	name   string
	status string // with reason, as "200 OK"
	header string // lines
	body   string // <data> stands for the data of the operation's success
	raw    string // instead of all these: what goes out
	reset  bool   // the connection is reset after raw
	want   facts
}

// text is what goes out for an operation.
func (c replyCase) text(w writeOp) string {
	if c.status == "" {
		return c.raw
	}
	return replyText(c.status, c.header, strings.ReplaceAll(c.body, "<data>", w.data))
}

// Replies that no answer can be read from: whatever was done, nobody knows.
func brokenReplies() []replyCase {
	unknown := func(status int, is, phases string) facts {
		return facts{Outcome: OutcomeUnknown, Is: is, HTTPStatus: status, Phases: phases}
	}
	sent := unknown(0, "Unknown", "sent")
	return []replyCase{
		{name: "reset without an answer", reset: true, want: sent},
		{name: "closed without an answer", want: sent},
		{name: "closed within the status line", raw: "HTTP/1.", want: sent},
		{name: "closed within the headers", raw: "HTTP/1.1 200 OK\r\nContent-Le", want: sent},
		{name: "garbage", raw: "SSH-2.0-OpenSSH_9.6\r\n", want: sent},
		{name: "a status that is no number", raw: "HTTP/1.1 OK 200\r\n\r\n", want: sent},
		{name: "two lengths", raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 30\r\n\r\n{}", want: sent},
		{
			name: "a flood of headers",
			raw:  "HTTP/1.1 200 OK\r\nX-Flood: " + strings.Repeat("f", 80<<10) + "\r\nContent-Length: 2\r\n\r\n{}",
			want: sent,
		},
		{name: "an informational status and no more", raw: "HTTP/1.1 199 Strange\r\n\r\n", want: sent},
		{
			name: "switching protocols",
			raw:  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" + `{"code":422,"msg":"no","data":null}`,
			want: facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 101},
		},
		{
			name: "a body that ends too early",
			raw:  "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + `{"code":422,"msg":"no","data":null}`,
			want: unknown(200, "Unknown", "received"),
		},
		{
			name: "a refusal whose body ends too early",
			raw:  "HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 500\r\n\r\n" + `{"code":422,`,
			want: unknown(422, "Unknown", "received"),
		},
		{
			name: "a chunk that ends too early",
			raw:  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n" + `{"code":422,`,
			want: unknown(200, "Unknown", "received"),
		},
		{
			name: "a chunk whose size is no number",
			raw:  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + `{"code":422,`,
			want: unknown(200, "Unknown", "received"),
		},
		{name: "a page of HTML", status: "200 OK", body: "<!doctype html><p>Welcome", want: unknown(200, "Unknown Unreadable", "")},
		{name: "an empty body", status: "200 OK", want: unknown(200, "Unknown Unreadable", "")},
		{name: "no content", raw: "HTTP/1.1 204 No Content\r\n\r\n", want: unknown(204, "Unknown Unreadable", "")},
		{name: "another object", status: "200 OK", body: `{"status":"ok"}`, want: unknown(200, "Unknown Unreadable", "")},
		{
			name: "bytes said to be gzip", status: "200 OK", header: "Content-Encoding: gzip\r\n",
			body: "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", want: unknown(200, "Unknown Unreadable", ""),
		},
		{
			name: "a byte over 64 KiB", status: "200 OK", body: paddedRefusal((64 << 10) + 1),
			want: unknown(200, "Unknown TooLarge", "received"),
		},
		{
			name: "a refusal of over 64 KiB", status: "422 Unprocessable Entity", body: paddedRefusal((64 << 10) + 1),
			want: unknown(422, "Unknown TooLarge", "received"),
		},
		{
			name: "a code in a string", status: "200 OK", body: `{"code":"422","msg":"no","data":null}`,
			want: unknown(200, "Unknown Unreadable", ""),
		},
		{
			name: "data that is no JSON", status: "200 OK", body: `{"code":200,"msg":"success","data":nothing}`,
			want: unknown(200, "Unknown Unreadable", ""),
		},
		{
			name: "data of the wrong kind in a body that is no JSON", status: "200 OK", body: `{"code":200,"msg":"success","data":1.5`,
			want: unknown(200, "Unknown Unreadable", ""),
		},
	}
}

// paddedRefusal is a refusal of so many bytes.
func paddedRefusal(size int) string {
	const text = `{"code":422,"msg":"no","data":null}`
	return text + strings.Repeat(" ", size-len(text))
}

// Redirects are never followed: what was sent may have been executed before.
func redirectReplies() []replyCase {
	var cases []replyCase
	for _, status := range []int{300, 301, 302, 303, 304, 305, 306, 307, 308, 399} {
		cases = append(cases, replyCase{
			name: fmt.Sprint("a redirect within the service, ", status),
			raw:  fmt.Sprintf("HTTP/1.1 %d Elsewhere\r\nLocation: /api/v1/cards\r\nContent-Length: 0\r\n\r\n", status),
			want: facts{Outcome: OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: status},
		})
	}
	return cases
}

// refusalsByNumber are the numbers that guarantee, by the default profile, that
// nothing happened, with what else they say.
var refusalsByNumber = map[int]string{
	400: "Refused", 401: "Refused Unauthorized", 403: "Refused", 404: "Refused NotFound", 405: "Refused",
	413: "Refused", 415: "Refused", 422: "Refused", 429: "Refused RateLimited",
}

// Readable envelopes whose code is not that of a success, under a status that is.
func codeReplies() []replyCase {
	var cases []replyCase
	for code, is := range refusalsByNumber {
		cases = append(cases, replyCase{
			name: fmt.Sprint("code ", code), status: "200 OK",
			body: fmt.Sprintf(`{"code":%d,"msg":"not possible","data":{"merchant_order_no":"M-2"}}`, code),
			want: facts{Outcome: OutcomeRefused, Is: is, HTTPStatus: 200, Code: code, Message: "not possible"},
		})
	}
	for _, code := range []int{-200, -1, 1, 199, 201, 204, 402, 406, 408, 409, 410, 418, 423, 425, 500, 502, 503, 599, 1001, 20000} {
		cases = append(cases, replyCase{
			name: fmt.Sprint("code ", code), status: "200 OK",
			body: fmt.Sprintf(`{"code":%d,"msg":"who knows","data":null}`, code),
			want: facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: code, Message: "who knows"},
		})
	}
	return append(cases,
		replyCase{
			name: "code 0", status: "200 OK", body: `{"code":0,"msg":"success","data":<data>}`,
			want: facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Message: "success"},
		},
		replyCase{
			name: "a refusal under another status of success", status: "201 Created", body: `{"code":422,"msg":"no","data":null}`,
			want: facts{Outcome: OutcomeRefused, Is: "Refused", HTTPStatus: 201, Code: 422, Message: "no"},
		},
		replyCase{
			name: "a refusal that says when to come again", status: "200 OK", header: "Retry-After: 7\r\n",
			body: `{"code":429,"msg":"slow down","data":null}`,
			want: facts{
				Outcome: OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 200, Code: 429,
				Message: "slow down", RetryAfter: 7 * time.Second,
			},
		},
		replyCase{
			name: "an informational status before a refusal",
			raw:  "HTTP/1.1 103 Early Hints\r\n\r\n" + replyText("200 OK", "", `{"code":422,"msg":"no","data":null}`),
			want: facts{Outcome: OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 422, Message: "no"},
		},
	)
}

// HTTP statuses of failures.
func statusReplies() []replyCase {
	var cases []replyCase
	for status, is := range refusalsByNumber {
		want := facts{Outcome: OutcomeRefused, Is: is, HTTPStatus: status}
		unknown := facts{Outcome: OutcomeUnknown, Is: strings.Replace(is, "Refused", "Unknown", 1), HTTPStatus: status}
		bare := unknown
		if slices.Contains([]int{401, 404, 405, 413, 429}, status) {
			bare = facts{Outcome: OutcomeRefused, Is: is + " Unreadable", HTTPStatus: status}
		}
		for name, body := range map[string]string{"HTML": "<h1>Forbidden</h1>", "no body": "", "a list": "[]"} {
			cases = append(cases, replyCase{name: fmt.Sprint(status, " and ", name), status: fmt.Sprint(status, " No"), body: body, want: bare})
		}
		cases = append(cases, replyCase{
			name: fmt.Sprint(status, " and two codes"), status: fmt.Sprint(status, " No"),
			body: `{"code":200,"code":422,"msg":"m","data":null}`, want: unknown,
		})
		for _, code := range []int{1, 201, 422, 499, 600, 1001} {
			w := want
			w.Code, w.Message = code, "no"
			cases = append(cases, replyCase{
				name: fmt.Sprint(status, " and code ", code), status: fmt.Sprint(status, " No"),
				body: fmt.Sprintf(`{"code":%d,"msg":"no","data":null}`, code), want: w,
			})
		}
		// The status says no, the code says yes or that it does not know.
		for _, code := range []int{200, 500, 503, 599} {
			cases = append(cases, replyCase{
				name: fmt.Sprint(status, " and code ", code), status: fmt.Sprint(status, " No"),
				body: fmt.Sprintf(`{"code":%d,"msg":"hm","data":<data>}`, code),
				want: facts{
					Outcome: OutcomeUnknown, Is: strings.Replace(is, "Refused", "Unknown", 1), HTTPStatus: status,
					Code: code, Message: "hm",
				},
			})
		}
	}
	cases = append(cases, replyCase{
		name: "429 that says when to come again", status: "429 Too Many Requests", header: "Retry-After: 40\r\n",
		body: `{"code":429,"msg":"slow down","data":null}`,
		want: facts{
			Outcome: OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 429, Code: 429,
			Message: "slow down", RetryAfter: 40 * time.Second,
		},
	})
	for _, status := range []int{402, 406, 408, 409, 410, 418, 423, 425, 451, 499, 500, 501, 502, 503, 504, 505, 511, 599, 600, 999} {
		want := facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: status}
		for name, body := range map[string]string{"HTML": "<h1>No</h1>", "no body": ""} {
			cases = append(cases, replyCase{name: fmt.Sprint(status, " and ", name), status: fmt.Sprint(status, " No"), body: body, want: want})
		}
		for _, code := range []int{200, 422, 500} {
			w := want
			w.Code, w.Message = code, "hm"
			cases = append(cases, replyCase{
				name: fmt.Sprint(status, " and code ", code), status: fmt.Sprint(status, " No"),
				body: fmt.Sprintf(`{"code":%d,"msg":"hm","data":<data>}`, code), want: w,
			})
		}
	}
	return cases
}

func TestOutcomeOfAWrite(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(brokenReplies(), redirectReplies(), codeReplies(), statusReplies())
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			for _, tc := range cases {
				t.Run(tc.name, func(t *testing.T) {
					s := serveReplies(t, func(conn net.Conn) {
						sayAndClose(tc.text(w))(conn)
						if tc.reset {
							resetConn(conn)
						}
					})
					err := w.call(t.Context(), clientOver(t, s.base))
					assert.Equal(t, tc.want, factsOf(t, err))
					assert.Equal(t, w.op, failure(t, err).Op)
					assert.Equal(t, w.reference, failure(t, err).Reference)
					assert.EqualValues(t, 1, s.requests.Load(), "the requests that reached the service")
				})
			}
		})
	}
}

// The code is that of a success, and the data is not what the API promises: it was
// executed only where the data names this order, or has the service's number for it.
func TestOutcomeOfAWriteWhoseDataIsNotThePromised(t *testing.T) {
	t.Parallel()
	executed := facts{Outcome: OutcomeExecuted, Is: "Executed Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	unknown := facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	wrong := map[string]map[string]facts{
		"CreateTransfer": {
			`"A-1"`: unknown, `7`: unknown, `true`: unknown, `null`: unknown, `[]`: unknown, `{}`: unknown,
			`{"status":"wait_process"}`:                                                   unknown,
			`[{"merchant_order_no":"M-1","api_order_no":"A-1"}]`:                          unknown,
			`{"api_order_no":"A-1","status":5}`:                                           executed,
			`{"merchant_order_no":"M-1","status":"wait_process"}`:                         executed,
			`{"merchant_order_no":"M-1","api_order_no":null,"status":"wait_process"}`:     executed,
			`{"merchant_order_no":"M-1","api_order_no":"","status":"wait_process"}`:       executed,
			`{"merchant_order_no":"M-1","api_order_no":" ","status":"wait_process"}`:      executed,
			`{"merchant_order_no":"M-1","api_order_no":{},"status":"wait_process"}`:       executed,
			`{"merchant_order_no":"M-1","api_order_no":"A-1","status":5}`:                 executed,
			`{"merchant_order_no":"M-2","api_order_no":"A-1","status":"wait_process"}`:    unknown,
			`{"merchant_order_no":"m-1","api_order_no":"A-1","status":"wait_process"}`:    unknown,
			`{"merchant_order_no":"M-1 ","api_order_no":"A-1","status":"wait_process"}`:   unknown,
			`{"merchant_order_no":"M-1\n","api_order_no":"A-1","status":"wait_process"}`:  unknown,
			`{"merchant_order_no":"M-10","api_order_no":"A-1","status":"wait_process"}`:   unknown,
			`{"merchant_order_no":"\u004d-2","api_order_no":"A-1","status":"wait_proce"}`: unknown,
		},
		"FreezeCard": {`{}`: unknown, `[]`: unknown, `""`: unknown, `" \t"`: unknown, `null`: unknown, `true`: unknown, `1.5`: unknown},
		"CancelOperation": {
			`{}`: unknown, `[]`: unknown, `"yes"`: unknown, `""`: unknown, `2`: unknown, `null`: unknown,
			`false`: unknown, `0`: unknown, `"0"`: unknown,
		},
		"RetryOperation": {`"done"`: unknown, `null`: unknown, `false`: unknown},
		"UploadImage": {
			`"k-1"`: unknown, `null`: unknown, `[]`: unknown, `{}`: unknown,
			`{"attachment_key":null}`: unknown, `{"attachment_key":""}`: unknown, `{"attachment_key":" "}`: unknown, `{"attachment_key":["k"]}`: unknown,
		},
		"CloseCard": {`"T-9"`: unknown, `[]`: unknown, `null`: unknown, `{"ticket":9}`: unknown},
	}
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			bodies := map[string]facts{`{"code":200,"msg":"success"}`: unknown}
			for data, want := range wrong[w.op] {
				bodies[`{"code":200,"msg":"success","data":`+data+`}`] = want
				bodies[`{"data":`+data+`,"msg":"success","code":200}`] = want
			}
			for body, want := range bodies {
				t.Run(body, func(t *testing.T) {
					s := serveReplies(t, sayAndClose(replyText("200 OK", "", body)))
					err := w.call(t.Context(), clientOver(t, s.base))
					assert.Equal(t, want, factsOf(t, err))
					assert.Equal(t, w.reference, failure(t, err).Reference)
					assert.EqualValues(t, 1, s.requests.Load(), "the requests that reached the service")
				})
			}
		})
	}
}

func TestOutcomeOfAWriteThatSucceeds(t *testing.T) {
	t.Parallel()
	for _, w := range allWrites() {
		for name, reply := range map[string]string{
			"200":                      replyText("200 OK", "", `{"code":200,"msg":"success","data":`+w.data+`}`),
			"201":                      replyText("201 Created", "", `{"code":200,"msg":"Uploaded","data":`+w.data+`}`),
			"data first":               replyText("200 OK", "", `{"data":`+w.data+`,"msg":"success","code":200}`),
			"an early hint before it":  "HTTP/1.1 103 Early Hints\r\n\r\n" + replyText("200 OK", "", `{"code":200,"msg":"success","data":`+w.data+`}`),
			"without a length":         "HTTP/1.1 200 OK\r\n\r\n" + `{"code":200,"msg":"success","data":` + w.data + `}`,
			"of just 64 KiB":           replyText("200 OK", "", fmt.Sprintf("%-*s", (64<<10), `{"code":200,"msg":"success","data":`+w.data+`}`)),
			"Retry-After all the same": replyText("200 OK", "Retry-After: 9\r\n", `{"code":200,"msg":"success","data":`+w.data+`}`),
		} {
			t.Run(w.op+" "+name, func(t *testing.T) {
				t.Parallel()
				s := serveReplies(t, sayAndClose(reply))
				require.NoError(t, w.call(t.Context(), clientOver(t, s.base)))
				assert.EqualValues(t, 1, s.requests.Load(), "the requests that reached the service")
			})
		}
	}
}

// "Executed" is claimed of a response without readable data only where its message
// does not contradict its code.
func TestASuccessWhoseMessageSaysOtherwise(t *testing.T) {
	t.Parallel()
	for msg, want := range map[string]Outcome{
		`"msg":"success",`:              OutcomeExecuted,
		`"msg":"Uploaded",`:             OutcomeExecuted,
		`"msg":"",`:                     OutcomeExecuted,
		``:                              OutcomeExecuted,
		`"msg":"insufficient balance",`: OutcomeUnknown,
	} {
		for _, data := range []string{`"data":{"merchant_order_no":"M-1"}`, `"data":{"merchant_order_no":"M-1","api_order_no":"","status":"failed"}`} {
			t.Run(msg+data, func(t *testing.T) {
				t.Parallel()
				c := answered(t, anything, `{"code":200,`+msg+data+`}`)
				_, err := c.CreateTransfer(t.Context(), smallTransfer("M-1"))
				require.ErrorIs(t, err, ErrUnreadable)
				assert.Equal(t, want, failure(t, err).Outcome)
			})
		}
	}
}

func TestAWriteThatFindsNoConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	base := closedPort(t)
	for _, w := range allWrites() {
		for name, tc := range map[string]struct {
			retries int
			opts    []CallOption
			phases  string
		}{
			"no repeats":                {0, nil, "connect"},
			"one repeat":                {1, nil, "connect connect"},
			"two repeats":               {2, nil, "connect connect connect"},
			"never more than two":       {9, nil, "connect connect connect"},
			"none if the call says so ": {2, []CallOption{WithoutRetry()}, "connect"},
		} {
			t.Run(w.op+" "+name, func(t *testing.T) {
				t.Parallel()
				policy := quickPolicy
				policy.MaxRetries = tc.retries
				err := w.call(t.Context(), clientOver(t, base, WithRetry(policy)), tc.opts...)
				assert.Equal(t, facts{Outcome: OutcomeNotSent, Is: "NotSent", Phases: tc.phases}, factsOf(t, err))
				assert.Equal(t, w.reference, failure(t, err).Reference)
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			})
		}
	}
}

// What is not encrypted with a trusted peer is no connection, and nothing is sent
// over it. Whom it cannot trust the client does not ask again.
func TestAWriteWhoseHandshakeFailsWasNotSent(t *testing.T) {
	t.Parallel()
	plain := serveReplies(t, func(net.Conn) {})
	var requests atomic.Int32
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // silence for the handshakes that are to fail
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			err := w.call(t.Context(), clientOver(t, strings.Replace(plain.base, "http:", "https:", 1)))
			assert.Equal(t, facts{Outcome: OutcomeNotSent, Is: "NotSent", Phases: "connect connect connect"}, factsOf(t, err))
			err = w.call(t.Context(), clientOver(t, stranger.URL))
			assert.Equal(t, facts{Outcome: OutcomeNotSent, Is: "NotSent", Phases: "connect"}, factsOf(t, err))
			assert.ErrorContains(t, err, "certificate not trusted")
			assert.Zero(t, plain.requests.Load()+requests.Load())
		})
	}
}

// A connection that could not be had is sought again; a request that was sent
// on the second one is not sent on a third.
func TestAWriteIsSentOnceHoweverOftenItWasNotSent(t *testing.T) {
	t.Parallel()
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			s := serveReplies(t, func(net.Conn) {})
			var dials atomic.Int32
			c := clientOver(t, s.base, WithTransport(&http.Transport{
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials.Add(1) == 1 {
						return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
					}
					return new(net.Dialer).DialContext(ctx, network, address)
				},
			}))
			err := w.call(t.Context(), c)
			assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "connect sent"}, factsOf(t, err))
			assert.EqualValues(t, 1, s.requests.Load(), "the requests that reached the service")
			assert.EqualValues(t, 2, dials.Load())
		})
	}
}

// endingContext is a context that ends when the test says so, in the way it says.
type endingContext struct {
	context.Context
	done chan struct{}
	err  error
}

func (e *endingContext) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (e *endingContext) Done() <-chan struct{}       { return e.done }

func (e *endingContext) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

func TestAWriteWhoseContextEndsWhileItWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	for _, w := range allWrites() {
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(w.op+" "+cause.Error(), func(t *testing.T) {
				t.Parallel()
				ctx := &endingContext{Context: t.Context(), done: make(chan struct{}), err: cause}
				s := serveReplies(t, func(conn net.Conn) {
					close(ctx.done)
					_, _ = io.Copy(io.Discard, conn) // until the client closes it
				})
				err := w.call(ctx, clientOver(t, s.base))
				assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "sent"}, factsOf(t, err))
				require.ErrorIs(t, err, cause)
				assert.EqualValues(t, 1, s.requests.Load(), "the requests that reached the service")
			})
		}
	}
}

func TestAWriteWhoseContextIsDoneWasNotSent(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("the shop closes")
	s := serveReplies(t, func(net.Conn) {})
	for _, w := range allWrites() {
		t.Run(w.op, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(shutdown)
			err := w.call(ctx, clientOver(t, s.base))
			assert.Equal(t, facts{Outcome: OutcomeNotSent, Is: "NotSent"}, factsOf(t, err))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, shutdown)
			assert.NotContains(t, err.Error(), "shop", "the text of a cause may hold anything")
		})
	}
	t.Cleanup(func() { assert.Zero(t, s.requests.Load()) })
}

// The numbers that guarantee that nothing happened are the profile's.
func TestTheProfileSaysWhatIsARefusal(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	p.RefusedCodes = []int{1001}
	p.RefusedStatuses = []int{409}
	p.BareRefusedStatuses = []int{410}
	for reply, want := range map[string]facts{
		replyText("200 OK", "", `{"code":1001,"msg":"no","data":null}`): {Outcome: OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 1001, Message: "no"},
		replyText("200 OK", "", `{"code":422,"msg":"no","data":null}`):  {Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 422, Message: "no"},
		replyText("409 Conflict", "", `{"code":7,"msg":"no"}`):          {Outcome: OutcomeRefused, Is: "Refused", HTTPStatus: 409, Code: 7, Message: "no"},
		replyText("422 No", "", `{"code":7,"msg":"no"}`):                {Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 422, Code: 7, Message: "no"},
		replyText("410 Gone", "", `no`):                                 {Outcome: OutcomeRefused, Is: "Refused Unreadable", HTTPStatus: 410},
		replyText("404 No", "", `no`):                                   {Outcome: OutcomeUnknown, Is: "Unknown NotFound", HTTPStatus: 404},
	} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			s := serveReplies(t, sayAndClose(reply))
			_, err := clientOver(t, s.base, WithProfile(func(own *Profile) { *own = p })).CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, want, factsOf(t, err))
		})
	}
}

func TestOutcomeOfARead(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/bins/maintenance"
	down := exchange{want: asked, status: 503, reply: "<h1>down</h1>"}
	busy := exchange{want: asked, status: 429, header: "Retry-After: 7", reply: `{"code":429,"msg":"slow down","data":null}`}
	broken := exchange{want: asked, err: errBrokenNetwork}
	good := exchange{want: asked, reply: `{"code":200,"msg":"success","data":["493193"]}`}
	for name, tc := range map[string]struct {
		replies  []exchange
		opts     []CallOption
		want     facts // zero: success
		attempts []int // statuses of the attempts that are told
		waited   time.Duration
	}{
		"one repeat helps":   {replies: []exchange{down, good}, attempts: []int{503, 200}},
		"two repeats help":   {replies: []exchange{broken, down, good}, attempts: []int{0, 503, 200}},
		"a clean first try":  {replies: []exchange{good}},
		"the wait asked for": {replies: []exchange{busy, good}, attempts: []int{429, 200}, waited: 7 * time.Second},
		"the last answer is told": {
			replies: []exchange{broken, busy, {want: asked, status: 500, reply: `{"code":500,"msg":"database","data":null}`}},
			want: facts{
				Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 500, Code: 500, Message: "database", Phases: "sent received received",
			},
			attempts: []int{0, 429, 500}, waited: 7 * time.Second,
		},
		"nothing of an answer before the last is told": {
			replies:  []exchange{busy, broken, broken},
			want:     facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "received sent sent"},
			attempts: []int{429, 0, 0}, waited: 7 * time.Second,
		},
		"without repeats": {
			replies: []exchange{busy}, opts: []CallOption{WithoutRetry()},
			want: facts{
				Outcome: OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 429, Code: 429, Message: "slow down", RetryAfter: 7 * time.Second,
			},
		},
		"too long a wait": {
			replies: []exchange{{want: asked, status: 429, header: "Retry-After: 61", reply: `{"code":429,"msg":"slow down","data":null}`}},
			want: facts{
				Outcome: OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 429, Code: 429, Message: "slow down", RetryAfter: 61 * time.Second,
			},
		},
		"a refusal is not repeated": {
			replies: []exchange{{want: asked, status: 401, reply: `{"code":401,"msg":"bad key","data":null}`}},
			want:    facts{Outcome: OutcomeRefused, Is: "Refused Unauthorized", HTTPStatus: 401, Code: 401, Message: "bad key"},
		},
		"another code is not repeated": {
			replies: []exchange{{want: asked, status: 200, reply: `{"code":500,"msg":"hm","data":null}`}},
			want:    facts{Outcome: OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 500, Message: "hm"},
		},
		"data of the wrong kind": {
			replies: []exchange{{want: asked, status: 200, reply: `{"code":200,"msg":"success","data":{}}`}},
			want:    facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"},
		},
		"not the envelope": {
			replies: []exchange{{want: asked, status: 200, reply: `<html>`}},
			want:    facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		},
		"a redirect": {
			replies: []exchange{{want: asked, status: 302, header: "Location: /elsewhere"}},
			want:    facts{Outcome: OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 302},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r Response
				start := time.Now()
				c := converse(t, tc.replies, WithRetry(quickPolicy))
				bins, err := c.ListBINsUnderMaintenance(t.Context(), append(tc.opts, WithResponse(&r))...)
				assert.Equal(t, tc.waited, time.Since(start).Round(time.Second))
				var statuses []int
				for i, a := range r.Attempts {
					statuses = append(statuses, a.HTTPStatus)
					assert.Equal(t, i+1 < len(r.Attempts), a.Wait > 0, "there is a wait before a repeat, and none after the last")
				}
				assert.Equal(t, tc.attempts, statuses)
				if tc.want == (facts{}) {
					require.NoError(t, err)
					assert.Equal(t, []string{"493193"}, bins)
					return
				}
				assert.Equal(t, tc.want, factsOf(t, err))
				assert.Equal(t, r.Attempts, failure(t, err).Attempts)
				assert.Nil(t, bins)
				assert.NotContains(t, err.Error(), "4111", "the text of a cause may hold anything")
				assert.Contains(t, err.Error(), "ListBINsUnderMaintenance")
			})
		})
	}
}

// Card secrets are read by a POST on a connection of its own: one repeat at most.
func TestCardSecretsAreAskedForTwiceAtMost(t *testing.T) {
	t.Parallel()
	for status, requests := range map[int]int{429: 2, 502: 2, 503: 2, 504: 2, 500: 1, 408: 1, 425: 1, 501: 1} {
		s := serveReplies(t, sayAndClose(replyText(fmt.Sprint(status, " No"), "", "")))
		_, err := clientOver(t, s.base).GetCardSecrets(t.Context(), "c1")
		assert.Equal(t, status, failure(t, err).HTTPStatus)
		assert.EqualValues(t, requests, s.requests.Load(), "after status %d", status)
	}
	lost := serveReplies(t, func(net.Conn) {})
	_, err := clientOver(t, lost.base).GetCardSecrets(t.Context(), "c1")
	assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "sent"}, factsOf(t, err))
	assert.EqualValues(t, 1, lost.requests.Load(), "a POST whose answer was lost is not repeated")

	_, err = clientOver(t, closedPort(t)).GetCardSecrets(t.Context(), "c1")
	assert.Equal(t, facts{Outcome: OutcomeNotSent, Is: "NotSent", Phases: "connect connect"}, factsOf(t, err))
}

// closeRecorder notes whether a body was closed.
type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

// With a caller's own doer nothing can prove that nothing was sent, once it was asked.
func TestOutcomeOfAWriteByACallersDoer(t *testing.T) {
	t.Parallel()
	closed := closedPort(t)
	s := serveReplies(t, func(conn net.Conn) {
		sayAndClose("HTTP/1.1 303 See Other\r\nLocation: /api/v1/done\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")(conn)
	})
	fresh := func() *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	body := &closeRecorder{Reader: strings.NewReader(`{"code":422,"msg":"no","data":null}`)}
	for name, tc := range map[string]struct {
		doer Doer
		base string
		want facts
	}{
		"an http.Client that would follow redirects": {
			fresh(), s.base, facts{Outcome: OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 303},
		},
		"an http.Client with a jar and a timeout": {
			&http.Client{Transport: fresh().Transport, Timeout: time.Minute}, s.base,
			facts{Outcome: OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 303},
		},
		"an http.Client and a closed port": {
			fresh(), closed, facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "connect"},
		},
		"the answer to another request": {
			carrier(func(r *http.Request) (*http.Response, error) {
				other := r.Clone(r.Context())
				other.Method, other.URL = "GET", &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/done"}
				return httpReply(other, 200, `{"code":422,"msg":"no","data":null}`), nil
			}), testBase,
			facts{Outcome: OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 200},
		},
		"neither an answer nor an error": {
			carrier(func(*http.Request) (*http.Response, error) { return nil, nil }), testBase,
			facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "sent"},
		},
		"an answer and an error": {
			carrier(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 422, Body: body, Request: r}, errBrokenNetwork
			}), testBase,
			facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "sent"},
		},
		"an answer without a body": {
			carrier(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Request: r}, nil
			}), testBase,
			facts{Outcome: OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		},
		"one that says that it could not connect, this time": {
			carrier(func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}), testBase,
			facts{Outcome: OutcomeUnknown, Is: "Unknown", Phases: "connect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clientOver(t, tc.base, WithHTTPClient(tc.doer)).CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, tc.want, factsOf(t, err))
		})
	}
	assert.True(t, body.closed, "the body that came with an error must be closed")
	assert.EqualValues(t, 2, s.requests.Load(), "no redirect was followed")
}

// What a doer that follows redirects brings back may be the answer to a GET of
// another place, whatever it says.
func TestADoerThatFollowsRedirectsIsFoundOut(t *testing.T) {
	t.Parallel()
	var replies atomic.Int32
	s := serveReplies(t, func(conn net.Conn) {
		if replies.Add(1) == 1 {
			sayAndClose("HTTP/1.1 303 See Other\r\nLocation: /api/v1/done\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")(conn)
			return
		}
		sayAndClose(replyText("200 OK", "", success(`{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`)))(conn)
	})
	following := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := clientOver(t, s.base, WithHTTPClient(carrier(following.Do))).CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, facts{Outcome: OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 200}, factsOf(t, err))
	assert.EqualValues(t, 2, s.requests.Load())
}

// With a caller's doer, too, what stops a call before the doer is asked is told
// as not sent.
func TestNotSentIsClaimedOfWhatFailsBeforeTheDoer(t *testing.T) {
	t.Parallel()
	asked := carrier(func(*http.Request) (*http.Response, error) {
		t.Error("the doer was asked")
		return nil, errBrokenNetwork
	})
	broken := errors.New("broken")
	for name, opt := range map[string]Option{
		"the limiter": WithLimiter(limiterFunc(func(context.Context) error { return broken })),
		"the journal": WithJournal(&scriptedJournal{begin: func(context.Context, Intent) error { return broken }}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := clientOver(t, testBase, WithHTTPClient(asked), opt).CreateTransfer(t.Context(), smallTransfer("M-1"))
			assert.Equal(t, OutcomeNotSent, failure(t, err).Outcome)
			require.ErrorIs(t, err, broken)
		})
	}
}

// net/http gives such a connection away, with the end of the context no longer
// being its concern.
func TestASwitchOfProtocolsThatStaysOpenEndsTheCall(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	s := serveReplies(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-leave
	})
	t.Cleanup(func() { close(leave) })
	c, err := New(s.base, testKey)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	_, err = c.CreateTransfer(t.Context(), smallTransfer("M-1"))
	assert.Equal(t, OutcomeUnknown, failure(t, err).Outcome)
	assert.Equal(t, 101, failure(t, err).HTTPStatus)
	_, err = c.CardCapacity(t.Context())
	assert.Equal(t, 101, failure(t, err).HTTPStatus)
}
