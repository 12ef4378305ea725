package transport

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// framings are the ways in which the end of a body is told.
var framings = map[string]func(body string) string{
	"length": func(b string) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(b), b)
	},
	"chunked": func(b string) string {
		return fmt.Sprintf("HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"1;a=b\r\n%s\r\n%x\r\n%s\r\n0\r\nX-A: b\r\n\r\n", b[:1], len(b)-1, b[1:])
	},
	"none":        func(string) string { return "HTTP/1.1 204 None\r\nContent-Length: 9\r\n\r\n" },
	"until close": func(b string) string { return "HTTP/1.1 200 OK\r\n\r\n" + b },
}

// keepLog returns what is written to the standard logger until the test ends.
func keepLog(t *testing.T) *bytes.Buffer {
	t.Helper()
	out, before := new(bytes.Buffer), log.Writer() //nolint:forbidigo // what must not be written to
	log.SetOutput(out)                             //nolint:forbidigo // what must not be written to
	t.Cleanup(func() { log.SetOutput(before) })    //nolint:forbidigo // what must not be written to
	return out
}

// net/http logs what comes beyond a response, or takes it for the next one. Each request names
// the body of its response.
func TestNothingBeyondAResponseIsLoggedOrTakenForAnother(t *testing.T) {
	logged := keepLog(t)
	for framing, write := range framings {
		for what, extra := range map[string]string{
			"nothing": "", "a byte": "4", "a number": canary, "a response": framings["length"]("other"),
			"half a response": "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + canary,
		} {
			for _, later := range []bool{false, true} {
				connections := 0
				serve := func(conn net.Conn) {
					defer loopback.HangUp(conn)
					connections++
					for in := bufio.NewReader(conn); ; {
						r, err := http.ReadRequest(in)
						if err != nil {
							return
						}
						if said := write(r.URL.Query().Get("id")); later {
							say(conn, said)
							say(conn, extra)
						} else {
							say(conn, said+extra)
						}
						if framing == "until close" {
							return
						}
					}
				}
				for name, way := range routes(t, serve) {
					if way.transport.Proxy != nil || framing == "until close" && extra != "" {
						continue
					}
					t.Run(strings.Join([]string{framing, what, fmt.Sprint(later), name}, "/"), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							connections = 0
							e := own(t, Config{Transport: way.transport})
							for i := range 3 {
								body := fmt.Sprintf("body of %d", i)
								r := e.Do(t.Context(), get(t, way.scheme+"://service.test/?id="+url.QueryEscape(body)))
								require.NoError(t, r.Err)
								if framing != "none" {
									assert.Equal(t, body, string(r.Body))
								}
								synctest.Wait() // what is late has come
							}
							isKept := extra == "" && framing != "until close"
							assert.Equal(t, isKept, connections == 1, "%d", connections)
						})
						assert.Empty(t, logged.String())
					})
				}
			}
		}
	}
}

// A request that is written in parts is still being written when its response has come.
func TestAResponseThatComesBeforeItsRequestHasGone(t *testing.T) {
	logged := keepLog(t)
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int64
		e := own(t, Config{Transport: &http.Transport{DialContext: pipeTo(func(conn net.Conn) {
			defer loopback.HangUp(conn)
			connections.Add(1)
			in := bufio.NewReader(conn)
			_, _ = in.ReadString('\n')
			say(conn, ok)
			for line := "-"; line != "\r\n" && line != ""; {
				line, _ = in.ReadString('\n')
			}
			say(conn, framings["length"](canary))
		})}})
		in := get(t, service)
		in.Header = fixed{"X-Long": {strings.Repeat("a", 10<<10)}}
		for range 2 {
			r := e.Do(t.Context(), in)
			require.NoError(t, r.Err)
			assert.Equal(t, "hi", string(r.Body))
			synctest.Wait()
		}
		assert.EqualValues(t, 2, connections.Load())
	})
	assert.Empty(t, logged.String())
}

func TestWhatComesBeyondAResponseIsCleared(t *testing.T) {
	const malformed = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"
	for read, extra := range map[string]string{ok: canary, malformed: ""} {
		client, service := net.Pipe()
		kept := &keptConn{askedConn: newAskedConn(t.Context(), client, false)}
		go once(func(conn net.Conn) { say(conn, read+extra); say(conn, canary) })(service)
		_, err := io.WriteString(kept, "GET / HTTP/1.1\r\n\r\n")
		require.NoError(t, err)
		p := make([]byte, 200)
		n, err := kept.Read(p)
		require.ErrorIs(t, err, io.EOF, "with the last byte: net/http does not keep the connection then")
		assert.Equal(t, len(read), n)
		assert.Equal(t, read+strings.Repeat("\x00", 200-len(read)), string(p))
		assert.Empty(t, bytes.Trim(kept.frame.text[:cap(kept.frame.text)], "\x00"))
		n, err = kept.Read(p)
		assert.Zero(t, n)
		assert.Equal(t, io.EOF, err)
		loopback.HangUp(kept)
	}
}

// A kept connection has the configuration and the handshake timeout that net/http would use.
func TestTLSOfKeptConnections(t *testing.T) {
	srv, trusted := secure(t,
		func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.TLS.ServerName) })
	there := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
	}
	for configured, at := range map[string]string{"": "https://example.com",
		"example.com": "https://service.test:8443"} {
		trusted.ServerName = configured
		e := own(t, Config{Transport: &http.Transport{TLSClientConfig: trusted, DialContext: there}})
		r := e.Do(t.Context(), get(t, at))
		require.NoError(t, r.Err)
		assert.Equal(t, "example.com", string(r.Body))
	}

	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		silent := &http.Transport{DialContext: pipeTo(sink), TLSHandshakeTimeout: 3 * time.Second}
		r := own(t, Config{Transport: silent, Policy: policy}).Do(t.Context(), get(t, "https://service.test"))
		require.EqualError(t, r.Err, "timeout")
		assert.Equal(t, 3, r.Tries)
		assert.GreaterOrEqual(t, time.Since(began), 9*time.Second)
	})
}

var chunking = regexp.MustCompile("malformed chunked|chunk length|bare LF|invalid CR")

// net/http must not go on reading after the end of a response that a keptConn has found.
func FuzzFrame(f *testing.F) {
	for _, write := range framings {
		f.Add(write("a body")+canary, 7)
	}
	const head, chunked = "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, text := range []string{
		"HTTP/1.0 200 OK\nTransfer-Encoding: chunked\nContent-Length: 2\n\nhix", "HTTP/1.1 101 Other\r\n\r\nx",
		head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhix",
		head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
		head + "Content-Length: +2\r\n\r\nhi", head + "Content-Length:\r\n\r\n", head + "Content-Length: 0\r\n\r\nx",
		head + "A: b\r\n \r\n\r\nx", head + " A: b\r\n\r\n", head + "Transfer-Encoding: gzip, chunked\r\n\r\n",
		head + "Content-Length: 99\r\nTransfer-Encoding: Chunked\r\n\r\n2 \r\nhi\r\n0\r\n\nx\r\n\r\n",
		chunked + "0x2\r\nhi\r\n0\r\n\r\n", chunked + "2\nhi\r\n0\r\n\r\n", chunked + "2\r\nhix\r\n0\r\n\r\n",
		chunked + "+2\r\nhi\r\n0\r\n\r\n", chunked + "2;\rx\r\nhi\r\n0\r\n\r\n", chunked + "2 ;\r\nhi\r\n0\r\n\r\n",
	} {
		f.Add(text, 3)
	}
	f.Fuzz(func(t *testing.T, text string, step int) {
		var found frame
		at, result := 0, more
		for rest := text; rest != "" && result == more; {
			part := rest[:min(max(step, 1), len(rest))]
			var n int
			n, result = found.scan([]byte(part))
			at, rest = at+n, rest[len(part):]
		}

		source := strings.NewReader(text)
		in := bufio.NewReader(source)
		resp, err := http.ReadResponse(in, nil)
		for err == nil && resp.StatusCode/100 == 1 && resp.StatusCode != http.StatusSwitchingProtocols {
			resp, err = http.ReadResponse(in, nil)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
		}
		end := len(text) - source.Len() - in.Buffered()
		switch {
		case err != nil && chunking.MatchString(err.Error()):
			assert.NotEqual(t, complete, result, "%v", err)
		case err != nil: // net/http ends the connection
		case resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 && resp.Body != http.NoBody:
			assert.Equal(t, more, result)
		case result == malformed:
			assert.LessOrEqual(t, at, end)
		default:
			assert.Equal(t, complete, result)
			assert.Equal(t, end, at)
		}
	})
}
