package hostile_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest/loopback"
)

// timeline is a service behind connections in memory. It responds to the n-th request
// with the n-th response, the last one again and again, and notes when each came.
type timeline struct {
	responses []timedResponse
	start     time.Time
	running   sync.WaitGroup

	mu      sync.Mutex
	arrived []time.Duration // without what is less than a millisecond
}

// timedResponse is a response and how long it takes; "": there is none.
type timedResponse struct {
	after time.Duration
	text  string
	drip  bool // one byte a second
}

func (s *timeline) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	s.running.Go(func() { s.serve(server) })
	return client, nil
}

// serve ends when the client has closed its end.
func (s *timeline) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	request, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if _, err := io.Copy(io.Discard, request.Body); err != nil {
		return
	}
	response := s.next()
	time.Sleep(response.after)
	step := len(response.text)
	if response.drip {
		step = 1
	}
	for text := response.text; text != ""; text = text[step:] {
		if _, err := io.WriteString(conn, text[:step]); err != nil {
			return
		}
		if response.drip {
			time.Sleep(time.Second)
		}
	}
	if response.text == "" {
		_, _ = r.ReadByte()
	}
}

func (s *timeline) next() timedResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, time.Since(s.start).Truncate(time.Millisecond))
	return s.responses[min(len(s.arrived), len(s.responses))-1]
}

func after(seconds ...time.Duration) (all []time.Duration) {
	for _, s := range seconds {
		all = append(all, s*time.Second)
	}
	return all
}

// When requests are sent and how long calls take, with the client's own engines
// and its defaults, but for the waits that are drawn by lot.
func TestWhenRequestsAreSentAndCallsEnd(t *testing.T) {
	t.Parallel()
	const write, read, upload = "CreateTransfer", "ListBINs", "UploadImage"
	done := loopback.Response("200 OK", "", wiretest.Success(`{"merchant_order_no":"M-1","api_order_no":"A-1","status":"wait_process"}`))
	list := loopback.Response("200 OK", "", wiretest.Success(`[]`))
	busy := func(retryAfter string) timedResponse {
		return timedResponse{text: loopback.Response("503 Service Unavailable", "Retry-After: "+retryAfter+"\r\n", "busy")}
	}
	for name, tc := range map[string]struct {
		op        string
		responses []timedResponse
		opts      []cardwire.Option
		arrived   []time.Duration
		took      time.Duration
		want      string // what is told; "": success
	}{
		"a write without a response":       {write, []timedResponse{{}}, nil, after(0), 30 * time.Second, "unknown"},
		"a write with a response in time":  {write, []timedResponse{{after: 29 * time.Second, text: done}}, nil, after(0), 29 * time.Second, ""},
		"a write with a response too late": {write, []timedResponse{{after: 31 * time.Second, text: done}}, nil, after(0), 30 * time.Second, "unknown"},
		"a write whose response drips":     {write, []timedResponse{{text: done, drip: true}}, nil, after(0), 30 * time.Second, "unknown"},
		"a write with a slow response":     {write, []timedResponse{{text: done, drip: true}}, []cardwire.Option{cardwire.WithTimeout(time.Hour)}, after(0), time.Duration(len(done)-1) * time.Second, ""},
		"a write that comes too early":     {write, []timedResponse{{text: loopback.Response("429 Too Many Requests", "Retry-After: 7\r\n", `{"code":429,"msg":"later","data":null}`)}}, nil, after(0), 0, "refused"},
		"a write whose gateway is busy":    {write, []timedResponse{busy("0")}, nil, after(0), 0, "unknown"},
		"an upload without a response":     {upload, []timedResponse{{}}, nil, after(0), 5 * time.Minute, "unknown"},

		"a read without a response":                  {read, []timedResponse{{}}, nil, after(0, 10, 20), 30 * time.Second, "unknown"},
		"a read with a response to the last attempt": {read, []timedResponse{{}, {}, {after: 9 * time.Second, text: list}}, nil, after(0, 10, 20), 29 * time.Second, ""},
		"a read whose response drips":                {read, []timedResponse{{text: list, drip: true}, {text: list}}, nil, after(0, 10), 10 * time.Second, ""},
		"a wait that the service asks for":           {read, []timedResponse{busy("7"), {text: list}}, nil, after(0, 7), 7 * time.Second, ""},
		"two such waits":                             {read, []timedResponse{busy("7"), busy("8"), {text: list}}, nil, after(0, 7, 15), 15 * time.Second, ""},
		"a wait until a date":                        {read, []timedResponse{busy("Sat, 01 Jan 2000 00:00:20 GMT"), {text: list}}, nil, after(0, 20), 20 * time.Second, ""},
		"a wait until a date gone by":                {read, []timedResponse{busy("Fri, 31 Dec 1999 23:59:59 GMT"), {text: list}}, nil, after(0, 0), 0, ""},
		"a wait of a year":                           {read, []timedResponse{busy("31536000")}, nil, after(0), 0, "unknown"},
		"a wait that outlasts the call":              {read, []timedResponse{busy("20")}, []cardwire.Option{cardwire.WithTimeout(19 * time.Second)}, after(0), 0, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // where it is midnight, 1 January 2000
				s := &timeline{responses: tc.responses, start: time.Now()}
				c := timedClient(t, s.dial, tc.opts...)
				err := wiretest.AllMethods()[tc.op](t.Context(), c)
				took := time.Since(s.start).Truncate(time.Millisecond)
				c.CloseIdleConnections()
				s.running.Wait()
				if tc.want == "" {
					require.NoError(t, err)
				} else {
					require.Error(t, err)
					assert.Equal(t, tc.want, wiretest.Failure(t, err).Outcome.String())
				}
				assert.Equal(t, tc.took, took, "how long the call took")
				assert.Equal(t, tc.arrived, s.arrived, "when requests came")
			})
		})
	}
}

func timedClient(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), opts ...cardwire.Option) *cardwire.Client {
	t.Helper()
	policy := cardwire.DefaultRetryPolicy()
	policy.MinDelay, policy.MaxDelay = 0, 0
	return wiretest.ClientOver(t, "http://127.0.0.1/api/v1", append([]cardwire.Option{
		cardwire.WithRetry(policy), cardwire.WithTransport(&http.Transport{DialContext: dial}),
	}, opts...)...)
}

// Nothing of a write has left while a connection is waited for; of reads that is
// not looked for. What is dialled goes on after the call, until its dialer gives up.
func TestADialThatHangsEndsTheCall(t *testing.T) {
	t.Parallel()
	for op, tc := range map[string]struct {
		dialled []time.Duration
		outcome cardwire.Outcome
	}{
		"CreateTransfer": {after(0), cardwire.OutcomeNotSent},
		"ListBINs":       {after(0, 10, 20), cardwire.OutcomeUnknown},
	} {
		t.Run(op, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start, giveUp := time.Now(), make(chan struct{})
				var mu sync.Mutex
				var dialled []time.Duration
				c := timedClient(t, func(context.Context, string, string) (net.Conn, error) {
					mu.Lock()
					dialled = append(dialled, time.Since(start).Truncate(time.Millisecond))
					mu.Unlock()
					<-giveUp
					return nil, wiretest.ErrBroken
				})
				err := wiretest.AllMethods()[op](t.Context(), c)
				assert.Equal(t, 30*time.Second, time.Since(start).Truncate(time.Millisecond))
				assert.Equal(t, tc.outcome, wiretest.Failure(t, err).Outcome)
				mu.Lock()
				assert.Equal(t, tc.dialled, dialled)
				mu.Unlock()
				close(giveUp)
				synctest.Wait()
			})
		})
	}
}
