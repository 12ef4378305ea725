package main

import (
	"bufio"
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
	for name, rate := range map[string]string{"a service": "0", "replicas": "1000"} {
		t.Run(name, func(t *testing.T) {
			source := filepath.Join(t.TempDir(), "payouts.db")
			if name == "replicas" {
				source = postgresURL(t)
			}
			t.Setenv("CARDWIRE_BASE_URL", server.URL)
			t.Setenv("CARDWIRE_API_KEY", server.Key)
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			r, w := io.Pipe()
			log, ended := &buffer{}, make(chan error, 1)
			go func() {
				err := run(ctx, w, log, []string{"-migrate", "-rate", rate, "-db", source, "-listen", "127.0.0.1:0"})
				ended <- errors.Join(err, w.Close())
			}()
			out := bufio.NewReader(r)
			line, err := out.ReadString('\n')
			require.NoError(t, err)
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
			assert.Contains(t, send("GET", "/", ""), strings.TrimPrefix(server.URL, "http://"))
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
	require.True(t, out.Scan())
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

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	create := "-migrate -db " + filepath.Join(t.TempDir(), "new.db")
	for name, tc := range map[string]struct {
		args   string
		status int
		says   string
	}{
		"an unknown flag": {"-x", 2, "flag provided but not defined: -x\nPayouts submits each"},
		"an argument":     {"now", 1, "payouts: only flags are taken; "},
		"no service":      {"", 1, "payouts: set CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY"},
		"a short timeout": {"-rate 1 -timeout 19s", 1, "payouts: -timeout must be at least 20s with -rate"},
		"short password":  {create + "1 -listen 127.0.0.1:0", 1, "at least 12 characters"},
		"no workers":      {"-workers 0", 1, "payouts: only flags are taken; -workers and -timeout must be greater"},
		"other machines":  {create + "2 -listen 0.0.0.0:0", 1, "payouts: to listen for other machines set PAYOUTS"},
		"no tables":       {"-db " + filepath.Join(t.TempDir(), "none.db"), 1, "start once with -migrate\n"},
		"no database":     {"-db postgres://u:secret@127.0.0.1:1/", 1, "verifying the journal failed"},
		"help":            {"-help", 0, "CARDWIRE_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0])
			base, password := "https://cards.example/api/v1", ""
			switch name {
			case "no service":
				base = ""
			case "short password":
				password = "elevenchars"
			}
			command.Env = append(os.Environ(), "CARDWIRE_BASE_URL="+base, "CARDWIRE_API_KEY=key",
				"PAYOUTS_PASSWORD="+password, "PAYOUTS_TEST_ARGS="+tc.args)
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

// Flags that would be ignored are refused, also those of a time.
func TestFlagsThatWouldBeIgnored(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "https://payouts.example/api/v1")
	t.Setenv("CARDWIRE_API_KEY", "key")
	const at = " 2026-01-31T08:00:00Z"
	for args, want := range map[string]string{
		"-exported" + at: "-exported would be ignored: it needs -reconcile", "-closed x -exported" + at: "-exported",
		"-hold -reconcile x": "-hold would be ignored: it needs a start without", "-closed x -hold": "-hold",
		"-apply -status done=executed": "-apply would be ignored: it needs -reconcile", "-apply -closed x": "-apply",
		"-again -reconcile x": "-again would be ignored: it needs -apply", "-anyway -closed x": "-anyway",
		"-by A": "-by would be ignored: it needs -reconcile or -closed", "-out x": "-out",
		"-closed x -strays": "-strays", "-closed x -from" + at: "-from", "-closed x -until" + at: "-until",
		"-closed x -status done=executed": "-status would be ignored: it needs -reconcile or a start without",
		"-reconcile x -exported" + at:     "", "-from" + at: "", "-closed x -hold=false": "", "-strays": "",
		"-reconcile= -apply -by Ada -why x": "-reconcile needs the name of a file",
		"-closed= -by Ada -why x":           "-closed needs the name of a file",
		"-reconcile= -closed=":              "needs the name of a file",
	} {
		_, err := parse(strings.Fields(args))
		if want == "" {
			require.NoError(t, err, args)
			continue
		}
		require.ErrorContains(t, err, want, args)
	}
}
