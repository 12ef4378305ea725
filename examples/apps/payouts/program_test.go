package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	_ "time/tzdata" // zones by name, also where the system has none

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// The program as a whole: it says where to look, serves, and ends in order.
func TestTheProgram(t *testing.T) {
	server := cardwiretest.NewServer(t)
	for name, tc := range map[string]struct {
		base, key string
		args      []string
		says      string // the page
	}{
		"the fake service": {"", "", nil, "fake service: no money moves"},
		"a service":        {server.URL, server.Key, []string{"-migrate"}, "real service: money moves"},
		"replicas":         {server.URL, server.Key, []string{"-migrate", "-rate", "1000"}, "real service: money"},
	} {
		t.Run(name, func(t *testing.T) {
			switch name {
			case "a service":
				tc.args = append(tc.args, "-db", filepath.Join(t.TempDir(), "payouts.db"))
			case "replicas":
				tc.args = append(tc.args, "-db", postgresURL(t))
			}
			t.Setenv("CARDWIRE_BASE_URL", tc.base)
			t.Setenv("CARDWIRE_API_KEY", tc.key)
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			r, w := io.Pipe()
			log, ended := &buffer{}, make(chan error, 1)
			go func() {
				err := run(ctx, w, log, append(tc.args, "-listen", "127.0.0.1:0"))
				ended <- errors.Join(err, w.Close())
			}()
			out := bufio.NewReader(r)
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			if tc.base == "" {
				assert.Equal(t, "This is the fake service: no money moves.\n", line)
				line, err = out.ReadString('\n')
				require.NoError(t, err)
			}
			says := regexp.MustCompile(`\AOpen (http://127\.0\.0\.1:\d+)/ in a browser\. Ctrl-C ends it\.\n\z`)
			address := says.FindStringSubmatch(line)
			require.Len(t, address, 2, line)

			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			send := func(method, path, text string) string {
				body := strings.NewReader(text)
				request, err := http.NewRequestWithContext(t.Context(), method, address[1]+path, body)
				require.NoError(t, err)
				response, err := client.Do(request)
				require.NoError(t, err)
				defer response.Body.Close()
				return textOf(t, response)
			}
			assert.Contains(t, send("GET", "/", ""), tc.says)
			assert.Contains(t, send("POST", "/payouts", a1), `"order":"A-1"`)
			require.Eventually(t, func() bool {
				return strings.Contains(send("GET", "/payouts/A-1", ""), `"state":"submitted"`)
			}, waitFor, tick)

			end()
			line, err = out.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "Stopping: waiting for calls in progress.\n", line)
			require.NoError(t, <-ended)
			entries, err := os.ReadDir(temp)
			require.NoError(t, err)
			assert.Empty(t, entries, "files that were left")
			assert.NotContains(t, log.String(), server.Key)
		})
	}
}

// While a slow client keeps the server, no call begins.
func TestAReplicaThatStopsBeginsNoCall(t *testing.T) {
	t.Parallel()
	set := settingsOf(filepath.Join(t.TempDir(), "payouts.db"))
	set.listen = "127.0.0.1:0"
	s := openShop(t, set)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.serve(ctx, w, "")
		ended <- errors.Join(err, w.Close())
	}()
	out := bufio.NewScanner(r)
	for range 2 { // the first line is about the fake service
		require.True(t, out.Scan())
	}
	address := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(out.Text())
	go func() { _, _ = io.Copy(io.Discard, r) }()
	slow, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer slow.Close()
	_, err = io.WriteString(slow, "POST /payouts HTTP/1.1\r\nHost: "+address+
		"\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
	require.NoError(t, err)
	_, err = bufio.NewReader(slow).ReadString('\n') // its handler reads the body
	require.NoError(t, err)

	stop()
	<-s.river.Stopped()
	s.order("A-1")
	require.NoError(t, slow.Close())
	require.NoError(t, <-ended)
	assert.Equal(t, queued, s.state("A-1"))
	assert.Empty(t, s.fake.Ledger())
}

// On SQLite, in a zone east of Greenwich. It starts a process, because the zone is the
// process's: a queue that compared times of different zones as strings would sleep for hours.
func TestTheDemonstrationInAnyTimeZone(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	command.Env = append(os.Environ(), "PAYOUTS_TEST_ARGS=-demo", "TZ=Asia/Tokyo", "TMPDIR="+t.TempDir())
	out, err := command.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Regexp(t, `\A200 orders go to the fake service\. .*
submitted 1\d\d
failed    +\d\d
Orders and ledger agree: what was submitted was executed once, and nothing else was\.
\z`, string(out))
}

func TestTheDemonstrationOnPostgreSQL(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, io.Discard, []string{"-demo", "-migrate", "-db", postgresURL(t)}))
	assert.Contains(t, out.String(), "Orders and ledger agree: ")
}

// A ledger that says otherwise is an error.
func TestTheDemonstrationCompares(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.lost("A-1", true)
	s.order("A-2")
	assert.Zero(t, s.work("A-2"))
	var out bytes.Buffer
	err := s.compareDemo(t.Context(), &out, []string{"A-1", "A-2"})
	require.ErrorIs(t, err, errDisagree)
	assert.Equal(t, "A-1 is unresolved, and was executed 1 times\nsubmitted 1\nfailed    0\n", out.String())
}

// interrupt is a Ctrl-C at the first line.
type interrupt func()

func (f interrupt) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestTheDemonstrationIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	args := []string{"-demo", "-migrate", "-db", filepath.Join(t.TempDir(), "payouts.db")}
	err := run(ctx, interrupt(stop), io.Discard, args)
	require.EqualError(t, err, "the demonstration was interrupted")
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args   string
		status int
		says   string
	}{
		"an unknown flag": {"-x", 2, "flag provided but not defined: -x\nPayouts submits each"},
		"an argument":     {"now", 1, "payouts: only flags are taken; "},
		"no workers":      {"-workers 0", 1, "payouts: only flags are taken; -workers and -timeout must be greater"},
		"other machines":  {"-listen 0.0.0.0:0", 1, "payouts: to listen for other machines set PAYOUTS_PASSWORD"},
		"no tables":       {"-db " + filepath.Join(t.TempDir(), "none.db"), 1, "start once with -migrate\n"},
		"no database":     {"-db postgres://u:secret@127.0.0.1:1/", 1, "reading the schema failed"},
		"help":            {"-help", 0, "CARDWIRE_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
			command.Env = append(os.Environ(), "CARDWIRE_BASE_URL=", "CARDWIRE_API_KEY=", "PAYOUTS_PASSWORD=",
				"PAYOUTS_TEST_ARGS="+tc.args, "TMPDIR="+t.TempDir())
			var out, complaint strings.Builder
			command.Stdout, command.Stderr = &out, &complaint
			_ = command.Run() // its status is what counts
			assert.Equal(t, tc.status, command.ProcessState.ExitCode())
			assert.Empty(t, out.String())
			assert.Contains(t, complaint.String(), tc.says)
			assert.NotContains(t, complaint.String(), "secret")
			if tc.status == 1 {
				assert.Equal(t, 1, strings.Count(complaint.String(), "payouts: "), "the error, once")
			} else {
				for _, word := range []string{"CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "PAYOUTS_PASSWORD", "-listen"} {
					assert.Contains(t, complaint.String(), word)
				}
			}
		})
	}
}
