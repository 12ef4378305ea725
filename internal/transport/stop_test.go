//go:build unix

package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// stopsVariable is how often each subtest stops its process; unset: 10 times.
	stopsVariable = "CARDWIRE_STOPS"
	// senderVariable is the URL that the process sends to.
	senderVariable = "CARDWIRE_SENDER"
	senderTimeout  = 20 * time.Millisecond
	numberHeader   = "X-Number"
)

// TestSender is the process that TestStoppedProcess stops: it sends one write
// after the other until its input ends, and prints which of them were reported
// as not sent, and which were handed to the network after their deadline.
func TestSender(t *testing.T) {
	at := os.Getenv(senderVariable)
	if at == "" {
		t.Skip("it is run by TestStoppedProcess")
	}
	var over atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		over.Store(true)
	}()
	e := own(t, Config{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return &watchedConn{conn, ctx.Value(testKey{}).(*Request)}, err
		},
	}})
	for i := 0; !over.Load(); i++ {
		in := post(t, at, Write)
		in.Deadline = time.Now().Add(senderTimeout)
		in.Header = fixed{numberHeader: {strconv.Itoa(i)}}
		if e.Do(context.WithValue(t.Context(), testKey{}, in), in).NotSent {
			tell("unsent", in)
		}
	}
}

// watchedConn prints the number of its write when that is late.
type watchedConn struct {
	net.Conn
	in *Request
}

func (c *watchedConn) Write(p []byte) (int, error) {
	if !time.Now().Before(c.in.Deadline) {
		tell("late", c.in)
	}
	return c.Conn.Write(p)
}

func tell(what string, in *Request) {
	fmt.Println(what, in.Header.Header().Get(numberHeader)) //nolint:forbidigo // for the process that runs this one
}

// TestStoppedProcess stops a process for longer than its writes may take, each
// time at another moment of a write. A stop between the look at the clocks and
// the system call is not noticed: one of some thousands, so one is tolerated.
func TestStoppedProcess(t *testing.T) {
	stops := 10
	if more, err := strconv.Atoi(os.Getenv(stopsVariable)); err == nil {
		stops = more
	}
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			var received sync.Map // the number of each request
			first, begin := make(chan struct{}), sync.Once{}
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				received.Store(r.Header.Get(numberHeader), nil)
				begin.Do(func() { close(first) })
			}))
			srv.Config.ErrorLog = quietLog
			if scheme == "https" {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			t.Cleanup(srv.Close)
			process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSender$")
			process.Env = append(os.Environ(), senderVariable+"="+srv.URL)
			var printed bytes.Buffer
			process.Stdout, process.Stderr = &printed, os.Stderr
			input, err := process.StdinPipe()
			require.NoError(t, err)
			require.NoError(t, process.Start())
			select {
			case <-first:
			case <-time.After(time.Minute):
				require.Fail(t, "the process sends nothing")
			}
			for range stops {
				pause(2*time.Millisecond + rand.N(3*time.Millisecond))
				require.NoError(t, process.Process.Signal(syscall.SIGSTOP))
				pause(2 * senderTimeout)
				require.NoError(t, process.Process.Signal(syscall.SIGCONT))
			}
			pause(senderTimeout)
			require.NoError(t, input.Close())
			require.NoError(t, process.Wait())

			unsent, late := 0, map[string]bool{}
			for line := range strings.Lines(printed.String()) {
				what, number, _ := strings.Cut(strings.TrimSpace(line), " ")
				_, arrived := received.Load(number)
				switch {
				case what == "unsent":
					unsent++
					assert.False(t, arrived, "write %s arrived, but is said not to be sent", number)
				case what == "late" && arrived: // not only its handshake was late
					late[number] = true
				}
			}
			t.Logf("after %d stops %d requests were sent late, and %d not at all", stops, len(late), unsent)
			assert.LessOrEqual(t, len(late), 1+stops/1000)
		})
	}
}
