package chaos

import (
	"context"
	"go/version"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// hostilities are responses to a whole request by which HTTP/2 says that it was not
// processed. Here it was.
var hostilities = map[string]struct {
	respond func(*http2.Framer, uint32) error
	until   string // the release of Go since which net/http does not send again after it; "": it does
}{
	"REFUSED_STREAM": {func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	}, ""},
	"GOAWAY": {func(f *http2.Framer, _ uint32) error {
		return f.WriteGoAway(0, http2.ErrCodeNo, nil)
	}, ""},
	"PROTOCOL_ERROR": {func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeProtocol)
	}, "go1.27"},
}

// serveHTTP2 counts whole requests, and responds to the first. What comes again ends the
// connection: net/http would go on.
func serveHTTP2(conn net.Conn, requests *atomic.Int32, respond func(*http2.Framer, uint32) error) error {
	defer hangUp(conn)
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	f := http2.NewFramer(conn, conn)
	f.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	err := f.WriteSettings()
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			break
		}
		ended := false
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			ended = frame.StreamEnded()
		case *http2.DataFrame:
			ended = frame.StreamEnded()
		}
		if ended {
			if requests.Add(1) > 1 {
				return nil
			}
			err = respond(f, frame.Header().StreamID)
		}
	}
	return err
}

// speakingHTTP2 is a transport that speaks nothing else, as a caller's client may.
func speakingHTTP2(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// By a caller's client that speaks HTTP/2 a write is sent once too, also one without a
// body, which net/http sends again most readily.
func TestHTTP2OfACallersClient(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, *cardwire.Client) error{
		"a write without a body": func(ctx context.Context, c *cardwire.Client) error {
			request := cardwire.Request{Op: "DeleteHook", Method: "DELETE", Path: "/hook", Reference: "h-1"}
			_, err := cardwire.Call[any](ctx, c, request)
			return err
		},
	}
	for _, op := range AllOps() {
		calls[op] = func(ctx context.Context, c *cardwire.Client) error {
			return send(ctx, c, Order{Op: op, Reference: "6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b"})
		}
	}
	for name, h := range hostilities {
		for op, call := range calls {
			t.Run(name+", "+op, func(t *testing.T) {
				t.Parallel()
				var requests atomic.Int32
				base := loopback.Listen(t, func(conn net.Conn) { _ = serveHTTP2(conn, &requests, h.respond) })
				c, err := cardwire.New(base, "chaos-key", cardwire.WithHTTPClient(speakingHTTP2(t)))
				require.NoError(t, err)
				require.ErrorIs(t, call(t.Context(), c), cardwire.ErrOutcomeUnknown)
				assert.EqualValues(t, 1, requests.Load())
			})
		}
		t.Run(name+", without cardwire", func(t *testing.T) { // the control
			t.Parallel()
			if h.until != "" && version.Compare(runtime.Version(), h.until) >= 0 {
				t.Skip("this release of net/http does not send it again")
			}
			var requests atomic.Int32
			base := loopback.Listen(t, func(conn net.Conn) { _ = serveHTTP2(conn, &requests, h.respond) })
			body := strings.NewReader("cardId=c1")
			_, err := speakingHTTP2(t).Post(base, "text/plain", body) //nolint:noctx // it ends
			require.Error(t, err)
			assert.EqualValues(t, 2, requests.Load())
		})
	}
}
