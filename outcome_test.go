package cardwire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
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

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// responseCase is a response, and the facts of the error of a write that gets it.
type responseCase struct {
	name   string
	status string // with reason, as "200 OK"
	header string // lines
	body   string // <data> stands for the data of the operation's success
	raw    string // instead of all these: what goes out
	reset  bool   // the connection is reset after raw
	want   wiretest.Facts
}

// text is the response for an operation.
func (c responseCase) text(w wiretest.Write) string {
	if c.status == "" {
		return c.raw
	}
	return loopback.Response(c.status, c.header, strings.ReplaceAll(c.body, "<data>", w.Data))
}

// Responses that cannot be read: the outcome is unknown.
func brokenResponses() []responseCase {
	unknown := func(status int, is, phases string) wiretest.Facts {
		return wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: is, HTTPStatus: status, Phases: phases}
	}
	sent := unknown(0, "Unknown", "sent")
	return []responseCase{
		{name: "reset without a response", reset: true, want: sent},
		{name: "closed without a response", want: sent},
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
			want: wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 101},
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
func redirectResponses() []responseCase {
	var cases []responseCase
	for _, status := range []int{300, 301, 302, 303, 304, 305, 306, 307, 308, 399} {
		cases = append(cases, responseCase{
			name: fmt.Sprint("a redirect within the service, ", status),
			raw:  fmt.Sprintf("HTTP/1.1 %d Elsewhere\r\nLocation: /api/v1/cards\r\nContent-Length: 0\r\n\r\n", status),
			want: wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: status},
		})
	}
	return cases
}

// Readable envelopes whose code is not that of a success, under a status that is.
func codeResponses() []responseCase {
	var cases []responseCase
	for code, is := range wiretest.RefusalsByNumber {
		cases = append(cases, responseCase{
			name: fmt.Sprint("code ", code), status: "200 OK",
			body: fmt.Sprintf(`{"code":%d,"msg":"not possible","data":{"merchant_order_no":"M-2"}}`, code),
			want: wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: is, HTTPStatus: 200, Code: code, Message: "not possible"},
		})
	}
	for _, code := range []int{-200, -1, 1, 199, 201, 204, 402, 406, 408, 409, 410, 418, 423, 425, 500, 502, 503, 599, 1001, 20000} {
		cases = append(cases, responseCase{
			name: fmt.Sprint("code ", code), status: "200 OK",
			body: fmt.Sprintf(`{"code":%d,"msg":"who knows","data":null}`, code),
			want: wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: code, Message: "who knows"},
		})
	}
	return append(cases,
		responseCase{
			name: "code 0", status: "200 OK", body: `{"code":0,"msg":"success","data":<data>}`,
			want: wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Message: "success"},
		},
		responseCase{
			name: "a refusal under another status of success", status: "201 Created", body: `{"code":422,"msg":"no","data":null}`,
			want: wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: "Refused", HTTPStatus: 201, Code: 422, Message: "no"},
		},
		responseCase{
			name: "a refusal that says when to come again", status: "200 OK", header: "Retry-After: 7\r\n",
			body: `{"code":429,"msg":"slow down","data":null}`,
			want: wiretest.Facts{
				Outcome: cardwire.OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 200, Code: 429,
				Message: "slow down", RetryAfter: 7 * time.Second,
			},
		},
		responseCase{
			name: "an informational status before a refusal",
			raw:  "HTTP/1.1 103 Early Hints\r\n\r\n" + loopback.Response("200 OK", "", `{"code":422,"msg":"no","data":null}`),
			want: wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 422, Message: "no"},
		},
	)
}

// HTTP statuses of failures.
func statusResponses() []responseCase {
	var cases []responseCase
	for status, is := range wiretest.RefusalsByNumber {
		want := wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: is, HTTPStatus: status}
		unknown := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: strings.Replace(is, "Refused", "Unknown", 1), HTTPStatus: status}
		bare := unknown
		if slices.Contains([]int{401, 404, 405, 413, 429}, status) {
			bare = wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: is + " Unreadable", HTTPStatus: status}
		}
		for name, body := range map[string]string{"HTML": "<h1>Forbidden</h1>", "no body": "", "a list": "[]"} {
			cases = append(cases, responseCase{name: fmt.Sprint(status, " and ", name), status: fmt.Sprint(status, " No"), body: body, want: bare})
		}
		cases = append(cases, responseCase{
			name: fmt.Sprint(status, " and two codes"), status: fmt.Sprint(status, " No"),
			body: `{"code":200,"code":422,"msg":"m","data":null}`, want: unknown,
		})
		for _, code := range []int{1, 201, 422, 499, 600, 1001} {
			w := want
			w.Code, w.Message = code, "no"
			cases = append(cases, responseCase{
				name: fmt.Sprint(status, " and code ", code), status: fmt.Sprint(status, " No"),
				body: fmt.Sprintf(`{"code":%d,"msg":"no","data":null}`, code), want: w,
			})
		}
		// The status says no, the code says yes or that it does not know.
		for _, code := range []int{200, 500, 503, 599} {
			cases = append(cases, responseCase{
				name: fmt.Sprint(status, " and code ", code), status: fmt.Sprint(status, " No"),
				body: fmt.Sprintf(`{"code":%d,"msg":"hm","data":<data>}`, code),
				want: wiretest.Facts{
					Outcome: cardwire.OutcomeUnknown, Is: strings.Replace(is, "Refused", "Unknown", 1), HTTPStatus: status,
					Code: code, Message: "hm",
				},
			})
		}
	}
	limited := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown RateLimited", HTTPStatus: 429}
	bare := limited
	bare.Outcome, bare.Is = cardwire.OutcomeRefused, "Refused RateLimited Unreadable"
	const open = "HTTP/1.1 429 Slow\r\nConnection: close\r\n\r\n" // its body ends with the connection
	cases = append(cases,
		responseCase{name: "429 that may be cut before its body", raw: open, want: limited},
		responseCase{name: "429 that may be cut before the envelope", raw: open + " \n", want: limited},
		responseCase{name: "429 with a page that may be cut", raw: open + "<h1>Slow", want: bare},
		responseCase{name: "429 with a chunked body that is empty", raw: "HTTP/1.1 429 Slow\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", want: bare},
		responseCase{name: "429 with a page said to be as it is", status: "429 Slow", header: "Content-Encoding: identity\r\n", body: "<h1>Slow", want: bare},
		responseCase{name: "429 with bytes said to be gzip", status: "429 Slow", header: "Content-Encoding: gzip\r\n", body: "\x1f\x8b\x08\x00", want: limited},
	)
	cases = append(cases, responseCase{
		name: "429 that says when to come again", status: "429 Too Many Requests", header: "Retry-After: 40\r\n",
		body: `{"code":429,"msg":"slow down","data":null}`,
		want: wiretest.Facts{
			Outcome: cardwire.OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 429, Code: 429,
			Message: "slow down", RetryAfter: 40 * time.Second,
		},
	})
	for _, status := range []int{402, 406, 408, 409, 410, 418, 423, 425, 451, 499, 500, 501, 502, 503, 504, 505, 511, 599, 600, 999} {
		want := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: status}
		for name, body := range map[string]string{"HTML": "<h1>No</h1>", "no body": ""} {
			cases = append(cases, responseCase{name: fmt.Sprint(status, " and ", name), status: fmt.Sprint(status, " No"), body: body, want: want})
		}
		for _, code := range []int{200, 422, 500} {
			w := want
			w.Code, w.Message = code, "hm"
			cases = append(cases, responseCase{
				name: fmt.Sprint(status, " and code ", code), status: fmt.Sprint(status, " No"),
				body: fmt.Sprintf(`{"code":%d,"msg":"hm","data":<data>}`, code), want: w,
			})
		}
	}
	return cases
}

func TestOutcomeOfAWrite(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(brokenResponses(), redirectResponses(), codeResponses(), statusResponses())
	for _, w := range wiretest.AllWrites() {
		t.Run(w.Op, func(t *testing.T) {
			t.Parallel()
			for _, tc := range cases {
				t.Run(tc.name, func(t *testing.T) {
					s := loopback.Serve(t, func(conn net.Conn) {
						loopback.Say(tc.text(w))(conn)
						if tc.reset {
							loopback.Reset(conn)
						}
					})
					err := w.Call(t.Context(), wiretest.ClientOver(t, s.Base))
					assert.Equal(t, tc.want, wiretest.FactsOf(t, err))
					assert.Equal(t, w.Op, wiretest.Failure(t, err).Op)
					assert.Equal(t, w.Reference, wiretest.Failure(t, err).Reference)
					assert.EqualValues(t, 1, s.Requests.Load(), "the requests that reached the service")
				})
			}
		})
	}
}

// The code is that of a success, and the data is not what the API promises: it was
// executed only where the data names this order, or has the service's number for it.
func TestOutcomeOfAWriteWhoseDataIsNotThePromised(t *testing.T) {
	t.Parallel()
	executed := wiretest.Facts{Outcome: cardwire.OutcomeExecuted, Is: "Executed Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	unknown := wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"}
	wrong := map[string]map[string]wiretest.Facts{
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
		"FreezeCard": {
			`{}`: unknown, `[]`: unknown, `""`: unknown, `" \t"`: unknown, `null`: unknown, `true`: unknown, `1.5`: unknown,
			`"failed"`: unknown, `"Card not found"`: unknown, `"null"`: unknown, `0`: unknown, `"not found (404)"`: unknown, `"code:-1"`: unknown, `"00000000-0000-0000-0000-000000000000"`: unknown,
		},
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
	for _, w := range wiretest.AllWrites() {
		t.Run(w.Op, func(t *testing.T) {
			t.Parallel()
			bodies := map[string]wiretest.Facts{`{"code":200,"msg":"success"}`: unknown}
			for data, want := range wrong[w.Op] {
				bodies[`{"code":200,"msg":"success","data":`+data+`}`] = want
				bodies[`{"data":`+data+`,"msg":"success","code":200}`] = want
			}
			for body, want := range bodies {
				t.Run(body, func(t *testing.T) {
					s := loopback.Serve(t, loopback.Say(loopback.Response("200 OK", "", body)))
					err := w.Call(t.Context(), wiretest.ClientOver(t, s.Base))
					assert.Equal(t, want, wiretest.FactsOf(t, err))
					assert.Equal(t, w.Reference, wiretest.Failure(t, err).Reference)
					assert.EqualValues(t, 1, s.Requests.Load(), "the requests that reached the service")
				})
			}
		})
	}
}

func TestOutcomeOfAWriteThatSucceeds(t *testing.T) {
	t.Parallel()
	for _, w := range wiretest.AllWrites() {
		for name, response := range map[string]string{
			"200":                      loopback.Response("200 OK", "", `{"code":200,"msg":"success","data":`+w.Data+`}`),
			"201":                      loopback.Response("201 Created", "", `{"code":200,"msg":"Uploaded","data":`+w.Data+`}`),
			"data first":               loopback.Response("200 OK", "", `{"data":`+w.Data+`,"msg":"success","code":200}`),
			"an early hint before it":  "HTTP/1.1 103 Early Hints\r\n\r\n" + loopback.Response("200 OK", "", `{"code":200,"msg":"success","data":`+w.Data+`}`),
			"without a length":         "HTTP/1.1 200 OK\r\n\r\n" + `{"code":200,"msg":"success","data":` + w.Data + `}`,
			"of just 64 KiB":           loopback.Response("200 OK", "", fmt.Sprintf("%-*s", (64<<10), `{"code":200,"msg":"success","data":`+w.Data+`}`)),
			"Retry-After all the same": loopback.Response("200 OK", "Retry-After: 9\r\n", `{"code":200,"msg":"success","data":`+w.Data+`}`),
		} {
			t.Run(w.Op+" "+name, func(t *testing.T) {
				t.Parallel()
				s := loopback.Serve(t, loopback.Say(response))
				require.NoError(t, w.Call(t.Context(), wiretest.ClientOver(t, s.Base)))
				assert.EqualValues(t, 1, s.Requests.Load(), "the requests that reached the service")
			})
		}
	}
}

// "Executed" is claimed of a response without readable data only where its message
// does not contradict its code.
func TestASuccessWhoseMessageSaysOtherwise(t *testing.T) {
	t.Parallel()
	for msg, want := range map[string]cardwire.Outcome{
		`"msg":"success",`:              cardwire.OutcomeExecuted,
		`"msg":"Uploaded",`:             cardwire.OutcomeExecuted,
		`"msg":"",`:                     cardwire.OutcomeExecuted,
		``:                              cardwire.OutcomeExecuted,
		`"msg":"insufficient balance",`: cardwire.OutcomeUnknown,
	} {
		for _, data := range []string{`"data":{"merchant_order_no":"M-1"}`, `"data":{"merchant_order_no":"M-1","api_order_no":"","status":"failed"}`} {
			t.Run(msg+data, func(t *testing.T) {
				t.Parallel()
				c := wiretest.Respond(t, wiretest.Anything, `{"code":200,`+msg+data+`}`)
				_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
				require.ErrorIs(t, err, cardwire.ErrUnreadable)
				assert.Equal(t, want, wiretest.Failure(t, err).Outcome)
			})
		}
	}
}

func TestAWriteThatFindsNoConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	base := loopback.ClosedPort(t)
	for _, w := range wiretest.AllWrites() {
		for name, tc := range map[string]struct {
			retries int
			opts    []cardwire.CallOption
			phases  string
		}{
			"no retries":                {0, nil, "connect"},
			"one retry":                 {1, nil, "connect connect"},
			"two retries":               {2, nil, "connect connect connect"},
			"never more than two":       {9, nil, "connect connect connect"},
			"none if the call says so ": {2, []cardwire.CallOption{cardwire.WithoutRetry()}, "connect"},
		} {
			t.Run(w.Op+" "+name, func(t *testing.T) {
				t.Parallel()
				policy := wiretest.QuickRetry
				policy.MaxRetries = tc.retries
				err := w.Call(t.Context(), wiretest.ClientOver(t, base, cardwire.WithRetry(policy)), tc.opts...)
				assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeNotSent, Is: "NotSent", Phases: tc.phases}, wiretest.FactsOf(t, err))
				assert.Equal(t, w.Reference, wiretest.Failure(t, err).Reference)
				require.ErrorIs(t, err, syscall.ECONNREFUSED)
			})
		}
	}
}

// What is not encrypted with a trusted peer is no connection, and nothing is sent
// over it. Whom it cannot trust the client does not ask again.
func TestAWriteWhoseHandshakeFailsWasNotSent(t *testing.T) {
	t.Parallel()
	plain := loopback.Serve(t, func(net.Conn) {})
	var requests atomic.Int32
	stranger := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	stranger.Config.ErrorLog = log.New(io.Discard, "", 0) //nolint:forbidigo // silence for the handshakes that are to fail
	stranger.StartTLS()
	t.Cleanup(stranger.Close)
	for _, w := range wiretest.AllWrites() {
		t.Run(w.Op, func(t *testing.T) {
			err := w.Call(t.Context(), wiretest.ClientOver(t, strings.Replace(plain.Base, "http:", "https:", 1)))
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeNotSent, Is: "NotSent", Phases: "connect connect connect"}, wiretest.FactsOf(t, err))
			err = w.Call(t.Context(), wiretest.ClientOver(t, stranger.URL))
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeNotSent, Is: "NotSent", Phases: "connect"}, wiretest.FactsOf(t, err))
			assert.ErrorContains(t, err, "certificate not trusted")
			assert.Zero(t, plain.Requests.Load()+requests.Load())
		})
	}
}

// A connection that could not be had is sought again; a request that was sent
// on the second one is not sent on a third.
func TestAWriteIsSentOnceHoweverOftenItWasNotSent(t *testing.T) {
	t.Parallel()
	for _, w := range wiretest.AllWrites() {
		t.Run(w.Op, func(t *testing.T) {
			t.Parallel()
			s := loopback.Serve(t, func(net.Conn) {})
			var dials atomic.Int32
			c := wiretest.ClientOver(t, s.Base, cardwire.WithTransport(&http.Transport{
				DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					if dials.Add(1) == 1 {
						return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
					}
					return new(net.Dialer).DialContext(ctx, network, address)
				},
			}))
			err := w.Call(t.Context(), c)
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "connect sent"}, wiretest.FactsOf(t, err))
			assert.EqualValues(t, 1, s.Requests.Load(), "the requests that reached the service")
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

func TestAWriteWhoseContextEndsWhileItWaitsForTheResponse(t *testing.T) {
	t.Parallel()
	for _, w := range wiretest.AllWrites() {
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(w.Op+" "+cause.Error(), func(t *testing.T) {
				t.Parallel()
				ctx := &endingContext{Context: t.Context(), done: make(chan struct{}), err: cause}
				s := loopback.Serve(t, func(conn net.Conn) {
					close(ctx.done)
					_, _ = io.Copy(io.Discard, conn) // until the client closes it
				})
				err := w.Call(ctx, wiretest.ClientOver(t, s.Base))
				assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "sent"}, wiretest.FactsOf(t, err))
				require.ErrorIs(t, err, cause)
				assert.EqualValues(t, 1, s.Requests.Load(), "the requests that reached the service")
			})
		}
	}
}

func TestAWriteWhoseContextIsDoneWasNotSent(t *testing.T) {
	t.Parallel()
	shutdown := errors.New("the shop closes")
	s := loopback.Serve(t, func(net.Conn) {})
	for _, w := range wiretest.AllWrites() {
		t.Run(w.Op, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(shutdown)
			err := w.Call(ctx, wiretest.ClientOver(t, s.Base))
			assert.Equal(t, wiretest.Facts{Outcome: cardwire.OutcomeNotSent, Is: "NotSent"}, wiretest.FactsOf(t, err))
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, shutdown)
			assert.NotContains(t, err.Error(), "shop", "the text of a cause may hold anything")
		})
	}
	t.Cleanup(func() { assert.Zero(t, s.Requests.Load()) })
}

// The numbers that guarantee that nothing happened are the profile's.
func TestTheProfileSaysWhatIsARefusal(t *testing.T) {
	t.Parallel()
	p := cardwire.DefaultProfile()
	p.RefusedCodes = []int{1001, 503}
	p.RefusedStatuses = []int{409}
	p.BareRefusedStatuses = []int{410}
	for response, want := range map[string]wiretest.Facts{
		loopback.Response("200 OK", "", `{"code":1001,"msg":"no","data":null}`): {Outcome: cardwire.OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 1001, Message: "no"},
		loopback.Response("200 OK", "", `{"code":422,"msg":"no","data":null}`):  {Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 422, Message: "no"},
		loopback.Response("200 OK", "", `{"code":503,"msg":"no","data":null}`):  {Outcome: cardwire.OutcomeRefused, Is: "Refused", HTTPStatus: 200, Code: 503, Message: "no"},
		loopback.Response("409 Conflict", "", `{"code":503,"msg":"no"}`):        {Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 409, Code: 503, Message: "no"},
		loopback.Response("409 Conflict", "", `{"code":7,"msg":"no"}`):          {Outcome: cardwire.OutcomeRefused, Is: "Refused", HTTPStatus: 409, Code: 7, Message: "no"},
		loopback.Response("422 No", "", `{"code":7,"msg":"no"}`):                {Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 422, Code: 7, Message: "no"},
		loopback.Response("410 Gone", "", `no`):                                 {Outcome: cardwire.OutcomeRefused, Is: "Refused Unreadable", HTTPStatus: 410},
		loopback.Response("404 No", "", `no`):                                   {Outcome: cardwire.OutcomeUnknown, Is: "Unknown NotFound", HTTPStatus: 404},
	} {
		t.Run(response, func(t *testing.T) {
			t.Parallel()
			s := loopback.Serve(t, loopback.Say(response))
			_, err := wiretest.ClientOver(t, s.Base, cardwire.WithProfile(func(own *cardwire.Profile) { *own = p })).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, want, wiretest.FactsOf(t, err))
		})
	}
}

func TestOutcomeOfARead(t *testing.T) {
	t.Parallel()
	const asked = "GET /shop/api/v1/bins/maintenance"
	down := wiretest.Exchange{Want: asked, Status: 503, Response: "<h1>down</h1>"}
	busy := wiretest.Exchange{Want: asked, Status: 429, Header: "Retry-After: 7", Response: `{"code":429,"msg":"slow down","data":null}`}
	broken := wiretest.Exchange{Want: asked, Err: wiretest.ErrBroken}
	good := wiretest.Exchange{Want: asked, Response: `{"code":200,"msg":"success","data":["493193"]}`}
	for name, tc := range map[string]struct {
		responses []wiretest.Exchange
		opts      []cardwire.CallOption
		want      wiretest.Facts // zero: success
		attempts  []int          // statuses of the attempts that are told
		waited    time.Duration
	}{
		"one retry helps":    {responses: []wiretest.Exchange{down, good}, attempts: []int{503, 200}},
		"two retries help":   {responses: []wiretest.Exchange{broken, down, good}, attempts: []int{0, 503, 200}},
		"a clean first try":  {responses: []wiretest.Exchange{good}},
		"the wait asked for": {responses: []wiretest.Exchange{busy, good}, attempts: []int{429, 200}, waited: 7 * time.Second},
		"the last response is told": {
			responses: []wiretest.Exchange{broken, busy, {Want: asked, Status: 500, Response: `{"code":500,"msg":"database","data":null}`}},
			want: wiretest.Facts{
				Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 500, Code: 500, Message: "database", Phases: "sent received received",
			},
			attempts: []int{0, 429, 500}, waited: 7 * time.Second,
		},
		"nothing of a response before the last is told": {
			responses: []wiretest.Exchange{busy, broken, broken},
			want:      wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "received sent sent"},
			attempts:  []int{429, 0, 0}, waited: 7 * time.Second,
		},
		"without retries": {
			responses: []wiretest.Exchange{busy}, opts: []cardwire.CallOption{cardwire.WithoutRetry()},
			want: wiretest.Facts{
				Outcome: cardwire.OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 429, Code: 429, Message: "slow down", RetryAfter: 7 * time.Second,
			},
		},
		"too long a wait": {
			responses: []wiretest.Exchange{{Want: asked, Status: 429, Header: "Retry-After: 61", Response: `{"code":429,"msg":"slow down","data":null}`}},
			want: wiretest.Facts{
				Outcome: cardwire.OutcomeRefused, Is: "Refused RateLimited", HTTPStatus: 429, Code: 429, Message: "slow down", RetryAfter: 61 * time.Second,
			},
		},
		"a refusal is not retried": {
			responses: []wiretest.Exchange{{Want: asked, Status: 401, Response: `{"code":401,"msg":"bad key","data":null}`}},
			want:      wiretest.Facts{Outcome: cardwire.OutcomeRefused, Is: "Refused Unauthorized", HTTPStatus: 401, Code: 401, Message: "bad key"},
		},
		"another code is not retried": {
			responses: []wiretest.Exchange{{Want: asked, Status: 200, Response: `{"code":500,"msg":"hm","data":null}`}},
			want:      wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", HTTPStatus: 200, Code: 500, Message: "hm"},
		},
		"data of the wrong kind": {
			responses: []wiretest.Exchange{{Want: asked, Status: 200, Response: `{"code":200,"msg":"success","data":{}}`}},
			want:      wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200, Code: 200, Message: "success"},
		},
		"not the envelope": {
			responses: []wiretest.Exchange{{Want: asked, Status: 200, Response: `<html>`}},
			want:      wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		},
		"a redirect": {
			responses: []wiretest.Exchange{{Want: asked, Status: 302, Header: "Location: /elsewhere"}},
			want:      wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 302},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var r cardwire.Response
				start := time.Now()
				c := wiretest.Converse(t, tc.responses, cardwire.WithRetry(wiretest.QuickRetry))
				bins, err := c.ListBINsUnderMaintenance(t.Context(), append(tc.opts, cardwire.WithResponse(&r))...)
				assert.Equal(t, tc.waited, time.Since(start).Round(time.Second))
				var statuses []int
				for i, a := range r.Attempts {
					statuses = append(statuses, a.HTTPStatus)
					assert.Equal(t, i+1 < len(r.Attempts), a.Wait > 0, "there is a wait before a retry, and none after the last")
				}
				assert.Equal(t, tc.attempts, statuses)
				if tc.want == (wiretest.Facts{}) {
					require.NoError(t, err)
					assert.Equal(t, []string{"493193"}, bins)
					return
				}
				assert.Equal(t, tc.want, wiretest.FactsOf(t, err))
				assert.Equal(t, r.Attempts, wiretest.Failure(t, err).Attempts)
				assert.Nil(t, bins)
				assert.NotContains(t, err.Error(), "4111", "the text of a cause may hold anything")
				assert.Contains(t, err.Error(), "ListBINsUnderMaintenance")
			})
		})
	}
}

// Card secrets are retried as every read is.
func TestCardSecretsAreARead(t *testing.T) {
	t.Parallel()
	for status, requests := range map[int]int{429: 3, 502: 3, 503: 3, 504: 3, 500: 3, 408: 3, 425: 3, 501: 1} {
		s := loopback.Serve(t, loopback.Say(loopback.Response(fmt.Sprint(status, " No"), "", "")))
		_, err := wiretest.ClientOver(t, s.Base).GetCardSecrets(t.Context(), "c1")
		assert.Equal(t, status, wiretest.Failure(t, err).HTTPStatus)
		assert.EqualValues(t, requests, s.Requests.Load(), "after status %d", status)
	}
	lost := loopback.Serve(t, func(net.Conn) {})
	_, err := wiretest.ClientOver(t, lost.Base).GetCardSecrets(t.Context(), "c1")
	assert.Equal(t, wiretest.Facts{
		Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "sent sent sent",
	}, wiretest.FactsOf(t, err))

	_, err = wiretest.ClientOver(t, loopback.ClosedPort(t)).GetCardSecrets(t.Context(), "c1")
	assert.Equal(t, wiretest.Facts{
		Outcome: cardwire.OutcomeNotSent, Is: "NotSent", Phases: "connect connect connect",
	}, wiretest.FactsOf(t, err))
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
	closed := loopback.ClosedPort(t)
	s := loopback.Serve(t, func(conn net.Conn) {
		loopback.Say("HTTP/1.1 303 See Other\r\nLocation: /api/v1/done\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")(conn)
	})
	fresh := func() *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	}
	body := &closeRecorder{Reader: strings.NewReader(`{"code":422,"msg":"no","data":null}`)}
	for name, tc := range map[string]struct {
		doer cardwire.Doer
		base string
		want wiretest.Facts
	}{
		"an http.Client that would follow redirects": {
			fresh(), s.Base, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 303},
		},
		"an http.Client with a jar and a timeout": {
			&http.Client{Transport: fresh().Transport, Timeout: time.Minute}, s.Base,
			wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 303},
		},
		"an http.Client and a closed port": {
			fresh(), closed, wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "connect"},
		},
		"the response to another request": {
			wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				other := r.Clone(r.Context())
				other.Method, other.URL = "GET", &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/done"}
				return wiretest.Response(other, 200, `{"code":422,"msg":"no","data":null}`), nil
			}), wiretest.Base,
			wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 200},
		},
		"neither a response nor an error": {
			wiretest.RoundTripper(func(*http.Request) (*http.Response, error) { return nil, nil }), wiretest.Base,
			wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "sent"},
		},
		"a response and an error": {
			wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 422, Body: body, Request: r}, wiretest.ErrBroken
			}), wiretest.Base,
			wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "sent"},
		},
		"a response without a body": {
			wiretest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Request: r}, nil
			}), wiretest.Base,
			wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown Unreadable", HTTPStatus: 200},
		},
		"one that says that it could not connect, this time": {
			wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}), wiretest.Base,
			wiretest.Facts{Outcome: cardwire.OutcomeUnknown, Is: "Unknown", Phases: "connect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := wiretest.ClientOver(t, tc.base, cardwire.WithHTTPClient(tc.doer)).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, tc.want, wiretest.FactsOf(t, err))
		})
	}
	assert.True(t, body.closed, "the body that came with an error must be closed")
	assert.EqualValues(t, 2, s.Requests.Load(), "no redirect was followed")
}

// What a doer that follows redirects brings back may be the response to a GET of
// another place, whatever it says.
func TestADoerThatFollowsRedirectsIsFoundOut(t *testing.T) {
	t.Parallel()
	var responses atomic.Int32
	s := loopback.Serve(t, func(conn net.Conn) {
		if responses.Add(1) == 1 {
			loopback.Say("HTTP/1.1 303 See Other\r\nLocation: /api/v1/done\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")(conn)
			return
		}
		loopback.Say(loopback.Response("200 OK", "", wiretest.Success(`{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`)))(conn)
	})
	following := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	_, err := wiretest.ClientOver(t, s.Base, cardwire.WithHTTPClient(wiretest.RoundTripper(following.Do))).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, wiretest.Facts{
		Outcome: cardwire.OutcomeUnknown, Is: "Unknown Redirect", HTTPStatus: 200, Phases: "received",
	}, wiretest.FactsOf(t, err))
	assert.True(t, wiretest.Failure(t, err).Attempts[0].Resent)
	assert.EqualValues(t, 2, s.Requests.Load())
}

// A redirect tells where it leads, as far as that is no secret.
func TestRedirectNamesItsHost(t *testing.T) {
	t.Parallel()
	for location, want := range map[string]string{
		"https://www.example.com/login?pan=4111111111111111": "it leads to www.example.com: ",
		"https://4111111111111111.example.com:8443/":         "it leads to ****************.example.com:8443: ",
		"https://www.example.com/%zz":                        "the response is a redirect: ",
	} {
		moved := loopback.Response("307 Temporary Redirect", "Location: "+location+"\r\n", "")
		s := loopback.Serve(t, loopback.Say(moved))
		_, err := wiretest.ClientOver(t, s.Base).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
		require.ErrorIs(t, err, cardwire.ErrRedirect)
		assert.ErrorContains(t, err, want+"check the base URL")
		assert.NotContains(t, err.Error(), "4111")
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
		"refused at once":       {[]string{refusal}, "refused, HTTP 422", false},
		"done at once":          {[]string{success}, "", false},
		"refused after a retry": {[]string{busy, refusal}, `unknown outcome, HTTP 422, code 422, "insufficient funds": `, true},
		"broken after a retry":  {[]string{busy, ""}, "connection closed before the response was complete: ", true},
		"busy after a retry":    {[]string{busy, busy}, "unknown outcome, HTTP 503: ", true},
		"done after a retry":    {[]string{busy, success}, "", true},
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
				_, err := c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
				switch {
				case tc.want == "":
					require.NoError(t, err)
				case tc.resent:
					require.ErrorContains(t, err, tc.want+"the HTTP client sent the request more than once: see WithHTTPClient")
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

// With a caller's doer, too, what stops a call before the doer is asked is told
// as not sent.
func TestNotSentIsClaimedOfWhatFailsBeforeTheDoer(t *testing.T) {
	t.Parallel()
	asked := wiretest.RoundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("the doer was asked")
		return nil, wiretest.ErrBroken
	})
	broken := errors.New("broken")
	for name, opt := range map[string]cardwire.Option{
		"the limiter": cardwire.WithLimiter(wiretest.Limiter(func(context.Context) error { return broken })),
		"the journal": cardwire.WithJournal(&wiretest.Journal{OnBegin: func(context.Context, cardwire.Intent) error { return broken }}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wiretest.ClientOver(t, wiretest.Base, cardwire.WithHTTPClient(asked), opt).CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
			assert.Equal(t, cardwire.OutcomeNotSent, wiretest.Failure(t, err).Outcome)
			require.ErrorIs(t, err, broken)
		})
	}
}

// net/http gives such a connection away, with the end of the context no longer
// being its concern.
func TestASwitchOfProtocolsThatStaysOpenEndsTheCall(t *testing.T) {
	t.Parallel()
	leave := make(chan struct{})
	s := loopback.Serve(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-leave
	})
	t.Cleanup(func() { close(leave) })
	c, err := cardwire.New(s.Base, wiretest.Key)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	_, err = c.CreateTransfer(t.Context(), wiretest.SmallTransfer("M-1"))
	assert.Equal(t, cardwire.OutcomeUnknown, wiretest.Failure(t, err).Outcome)
	assert.Equal(t, 101, wiretest.Failure(t, err).HTTPStatus)
	_, err = c.CardCapacity(t.Context())
	assert.Equal(t, 101, wiretest.Failure(t, err).HTTPStatus)
}
