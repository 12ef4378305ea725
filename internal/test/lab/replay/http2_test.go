package replay

import (
	"context"
	"go/version"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cardwire/cardwire-go"
)

// hostility is a response to a whole request by which HTTP/2 says that it was not
// processed. Here it was.
type hostility struct {
	name    string
	respond func(*http2.Framer, uint32) error
	until   string // the release of Go since which net/http does not send again after it; "": it does
}

var hostilities = []hostility{
	{"REFUSED_STREAM", func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	}, ""},
	{"GOAWAY", func(f *http2.Framer, _ uint32) error {
		return f.WriteGoAway(0, http2.ErrCodeNo, nil)
	}, ""},
	{"PROTOCOL_ERROR", func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeProtocol)
	}, "go1.27"},
}

// serve serves one connection by HTTP/2: each request is executed and then
// gets a response. What comes again ends the connection instead: net/http would go on.
func (h hostility) serve(x *exchange) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(x.in, preface); err != nil {
		return
	}
	f := http2.NewFramer(x.conn, x.in)
	f.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	if err := f.WriteSettings(); err != nil {
		return
	}
	calls := map[uint32]*http.Request{}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			calls[frame.StreamID] = requestOf(frame)
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			ended = frame.StreamEnded()
		}
		stream := frame.Header().StreamID
		if ended {
			x.request = calls[stream]
			x.note(x.ref(), func(e *entry) {
				e.arrivals++
				e.overHTTP2++
			})
			x.execute()
			if x.of(x.ref()).arrivals > 1 {
				return
			}
			err = h.respond(f, stream)
		}
		if err != nil {
			return
		}
	}
}

// requestOf is what a service must know of a request.
func requestOf(frame *http2.MetaHeadersFrame) *http.Request {
	r := &http.Request{Method: frame.PseudoValue("method"), Header: http.Header{}}
	for _, h := range frame.RegularFields() {
		r.Header.Add(h.Name, h.Value)
	}
	return r
}

// start starts a service that offers HTTP/2, by TLS or in clear.
type start struct {
	name   string
	secure bool
	honest bool
	new    func(*testing.T) *service
}

func starts() (all []start) {
	for _, secure := range []bool{true, false} {
		over := map[bool]string{true: ", TLS", false: ", in clear"}[secure]
		all = append(all, start{"honest" + over, secure, true, func(t *testing.T) *service { return serveHonestly(t, secure) }})
		for _, h := range hostilities {
			all = append(all, start{h.name + over, secure, false, func(t *testing.T) *service {
				return serveHostilely(t, secure, h.serve)
			}})
		}
	}
	return all
}

// serveHostilely responds to HTTP/1.1 as the API promises, and to HTTP/2 so that
// net/http sends again.
func serveHostilely(t *testing.T, secure bool, respond func(*exchange)) *service {
	t.Helper()
	if secure {
		return serve(t, serverTLS("h2", "http/1.1"), respond)
	}
	return serve(t, nil, respond)
}

// serveHonestly is net/http's own server, which keeps the same ledger and knows
// no script.
func serveHonestly(t *testing.T, secure bool) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Protocols: new(http.Protocols), TLSConfig: serverTLS()}
	s := &service{base: "http://" + listener.Addr().String() + basePath, server: server}
	server.Handler = s
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	s.running.Go(func() {
		if secure {
			_ = server.ServeTLS(listener, "", "")
		} else {
			_ = server.Serve(listener)
		}
	})
	if secure {
		s.base = "https://" + listener.Addr().String() + basePath
	}
	t.Cleanup(func() {
		_ = server.Close()
		s.running.Wait()
	})
	return s
}

// ServeHTTP responds as the API promises.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	ref := r.Header.Get(callHeader)
	s.note(ref, func(e *entry) {
		e.arrivals++
		e.executions++
		if r.ProtoMajor == 2 {
			e.overHTTP2++
		}
	})
	if op := operationAt(r.URL.Path); op != nil {
		_, _ = io.WriteString(w, op.success(ref))
	}
}

// trusting leaves everything to the client but whom to trust.
func trusting(*testing.T) *http.Transport { return &http.Transport{TLSClientConfig: clientTLS()} }

// standard is a copy of the default transport, as programs make it.
func standard(t *testing.T) *http.Transport {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forbidigo // a copy, as callers make it
	transport.ForceAttemptHTTP2 = true
	transport.TLSClientConfig = clientTLS()
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// spoken is a transport over which HTTP/2 was spoken before it is copied.
func spoken(t *testing.T) *http.Transport {
	t.Helper()
	transport := standard(t)
	at := serveHonestly(t, true)
	require.NoError(t, post(t.Context(), transport, at.base+"/webhook", "1"))
	require.Equal(t, 1, at.of("1").overHTTP2)
	return transport
}

// insisting is a transport that speaks nothing but HTTP/2.
func insisting(t *testing.T) *http.Transport {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: clientTLS(), Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return transport
}

// post sends what a program without this client might.
func post(ctx context.Context, transport *http.Transport, at, ref string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader("cardId=c1"))
	if err != nil {
		return err
	}
	r.Header.Set(callHeader, ref)
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// The control: net/http sends again by itself what the service has executed.
func TestHTTP2WithoutThisClient(t *testing.T) {
	for _, h := range hostilities {
		if h.until != "" && version.Compare(runtime.Version(), h.until) >= 0 {
			continue
		}
		for name, tc := range map[string]struct {
			secure    bool
			transport func(*testing.T) *http.Transport
		}{
			"TLS, a copy of the default transport": {true, standard},
			"TLS, HTTP/2 only":                     {true, insisting},
			"in clear, HTTP/2 only":                {false, insisting},
		} {
			t.Run(h.name+", "+name, func(t *testing.T) {
				t.Parallel()
				s := serveHostilely(t, tc.secure, h.serve)
				require.Error(t, post(t.Context(), tc.transport(t), s.base+"/webhook", "1"))
				assert.Equal(t, 2, s.of("1").executions)
			})
		}
	}
}

func TestHTTP2(t *testing.T) {
	flat(t)
	cells := 0
	for _, service := range starts() {
		for _, client := range []struct {
			name      string
			transport func(*testing.T) *http.Transport
			callers   bool // it is handed over in an http.Client, and so speaks HTTP/2
		}{
			{"own engine", trusting, false},
			{"a copy of the default transport", standard, false},
			{"a transport that has spoken HTTP/2", spoken, false},
			{"a transport for HTTP/2 only", insisting, false},
			{"a caller's client for HTTP/2 only", insisting, true},
		} {
			ops := operations
			want, result := entry{arrivals: 1, executions: 1}, "success"
			if client.callers {
				ops = writes() // reads net/http may send again, and does
				want.overHTTP2 = 1
				if !service.honest {
					result = "unknown"
				}
			}
			cells += len(ops)
			t.Run(service.name+", "+client.name, func(t *testing.T) {
				s := service.new(t)
				transport := client.transport(t)
				opt := cardwire.WithTransport(transport)
				if client.callers {
					opt = cardwire.WithHTTPClient(&http.Client{Transport: transport})
				}
				c := newClient(t, s.base, opt)
				for i := range ops {
					assert.Equal(t, result, outcome(ops[i].do(t.Context(), c, reference(i))), ops[i].name)
				}
				c.CloseIdleConnections()
				transport.CloseIdleConnections()
				s.settle(t)
				for i := range ops {
					got := s.of(reference(i))
					got.heads, got.credentials = 0, 0 // not counted over HTTP/2
					assert.Equal(t, want, got, ops[i].name)
				}
			})
		}
	}
	t.Logf("%d cells", cells)
}
