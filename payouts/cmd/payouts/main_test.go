package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// A test that needs a process of its own starts this program again.
func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv("PAYOUTS_TEST_ARGS"); ok {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// The program as a whole: it says where to look, serves, is a task of the command line, and ends in order.
func TestTheProgram(t *testing.T) {
	server := cardwiretest.NewServer(t)
	t.Setenv("CARDWIRE_BASE_URL", server.URL)
	t.Setenv("CARDWIRE_API_KEY", server.Key)
	db := filepath.Join(t.TempDir(), "payouts.db")
	task := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out, io.Discard, append(args, "-db", db)))
		return out.String()
	}
	says := regexp.MustCompile(`\AStart it with -identity (\w{32})\n\z`).FindStringSubmatch(task("-migrate"))
	require.Len(t, says, 2)
	require.ErrorIs(t, run(t.Context(), io.Discard, io.Discard, []string{"-db", db, "-identity", "x", "-migrate"}), sqljournal.ErrSchema)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, w, io.Discard, []string{"-db", db, "-identity", says[1], "-listen", "127.0.0.1:0"})
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(line)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(method, path, text string) string {
		request, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(text))
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return string(body)
	}
	assert.Contains(t, send("POST", "orders", `{"merchantOrderNo":"A-1","payoutCurrency":"EUR","transferAmount":"12.50"}`), `"order":"A-1"`)
	require.Eventually(t, func() bool {
		return strings.Contains(send("GET", "order?number=A-1", ""), `"state":"submitted"`)
	}, time.Minute, 10*time.Millisecond)
	assert.Contains(t, send("GET", "metrics", ""), `payouts_orders{state="queued"} 0`)
	assert.Contains(t, send("GET", "readyz", ""), `"up"`)
	end()
	require.NoError(t, <-ended)

	file := filepath.Join(t.TempDir(), "statement.csv")
	now := time.Now().UTC().Truncate(time.Second)
	lines := "order,amount,status,time\nA-1,12.50,done," + now.Format(time.RFC3339) + "\nA-2,=7.00,done,x\n"
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	args := []string{"-reconcile", file, "-status", "done=executed", "-from", now.Add(-time.Hour).Format(time.RFC3339),
		"-until", now.Format(time.RFC3339), "-exported", now.Format(time.RFC3339), "-strays", "-apply", "-by", "Ada", "-why", "the statement", "-db", db}
	require.ErrorContains(t, run(t.Context(), io.Discard, io.Discard, args), `line 3, column "amount"`)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(lines, "=7.00,done,x", "7.00,done,"+now.Format(time.RFC3339), 1)), 0o600))
	shop, _, err := open(db, 1)
	require.NoError(t, err)
	defer func() { require.NoError(t, shop.Close()) }()
	kept := func() (text string) { // for the release of a hold
		t.Helper()
		const last = `SELECT coalesce(max(who || note), '') FROM cardwire_payouts_history WHERE what = 'reconciled'`
		require.NoError(t, shop.QueryRowContext(t.Context(), last).Scan(&text))
		return text
	}
	task(slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "-apply" })...)
	assert.Empty(t, kept(), "nothing was recorded")
	findings := filepath.Join(t.TempDir(), "findings.csv")
	said := task(append(args, "-out", findings)...)
	assert.Contains(t, said, "stray")
	assert.Contains(t, said, "Recorded: 1. Left: 0.")
	text, err := os.ReadFile(findings)
	require.NoError(t, err)
	assert.Contains(t, string(text), "agrees,A-1,12.5,,false,")
	assert.Contains(t, string(text), "stray,A-2,7,,true,")
	assert.Regexp(t, `^Adathe statement: statement\.csv, from .* until .*Z$`, kept())
	task("-hold", "-by", "Ada", "-why", "a restore", "-listen", ":8082")
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args   string
		status int
		says   string
	}{
		"an unknown flag":     {"-x", 2, "flag provided but not defined: -x\nPayouts submits each"},
		"an argument":         {"now", 1, "payouts: only flags are taken: "},
		"no service":          {"", 1, "payouts: set CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY"},
		"a short timeout":     {"-rate 1 -timeout 19s", 1, "Timeout must be at least 20s"},
		"short password":      {"-listen 127.0.0.1:0", 1, "at least 12 bytes"},
		"other machines":      {"-listen 0.0.0.0:0", 1, "payouts: to listen for other machines set PAYOUTS_PASSWORD"},
		"nobody":              {"-hold", 1, "-hold and -apply need -by and -why"},
		"no database":         {"-migrate -db postgres://u:secret@127.0.0.1:1/", 1, "payouts: its tables cannot be read: "},
		"another database":    {"-db mysql://u:secret@127.0.0.1/", 1, "-db must be a file's name, postgres://"},
		"a file with = in it": {"-db secret=1.db", 1, "-db must be"},
		"help":                {"-help", 0, "CARDWIRE_API_KEY"},
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
			command.Dir = t.TempDir()
			command.Env = append(os.Environ(), "CARDWIRE_BASE_URL="+base, "CARDWIRE_API_KEY=key",
				"PAYOUTS_PASSWORD="+password, "PAYOUTS_TEST_ARGS="+tc.args)
			var complaint strings.Builder
			command.Stderr = &complaint
			_ = command.Run() // its status is what counts
			assert.Equal(t, tc.status, command.ProcessState.ExitCode())
			assert.Contains(t, complaint.String(), tc.says)
			assert.NotContains(t, complaint.String(), "secret")
		})
	}
}

// Both forms of PostgreSQL are that, and never the name of a file.
func TestWhichDatabase(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]sqljournal.Dialect{
		"postgres://shop:secret@db/shop": sqljournal.PostgreSQL, "host=db user=shop password=secret": sqljournal.PostgreSQL,
		"password=secret dbname=shop": sqljournal.PostgreSQL, "payouts.db": sqljournal.SQLite,
	} {
		db, dialect, err := open(source, 1)
		require.NoError(t, err, source)
		require.NoError(t, db.Close())
		assert.Equal(t, want, dialect, source)
	}
}

// Without a password this machine is served, by its own names. With one, guesses of unknown addresses are compared
// one a second, also those of clients that hang up, and each is logged before it waits; who is known does not wait.
func TestSignInsThatFailSlowDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := &gate{next: http.NotFoundHandler(), password: "the password", log: slog.New(slog.NewTextHandler(&log, nil)),
			turns: rate.NewLimiter(1, 3)}
		from := time.Now()
		try := func(ctx context.Context, host, password string) (status int, after time.Duration) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://payouts.example/", nil)
			r.RemoteAddr = host + ":1"
			if password != "" {
				r.SetBasicAuth("CANARY", password)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w.Code, time.Since(from)
		}
		status, after := try(t.Context(), "192.0.2.1", "the password")
		assert.Equal(t, []any{404, time.Duration(0)}, []any{status, after})
		for _, want := range []time.Duration{0, 0, time.Second, 2 * time.Second} {
			status, after := try(t.Context(), "192.0.2.2", "a guess")
			assert.Equal(t, []any{401, want}, []any{status, after})
		}
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for range 1000 {
			status, _ = try(gone, "192.0.2.3", "the password")
			assert.Equal(t, 401, status, "it was not compared")
		}
		status, after = try(t.Context(), "192.0.2.1", "the password")
		assert.Equal(t, []any{404, 2 * time.Second}, []any{status, after}, "who knows it does not wait")
		status, _ = try(t.Context(), "192.0.2.1", "")
		assert.Equal(t, 401, status, "a browser asks first")
		status, _ = try(t.Context(), "192.0.2.1", "a guess")
		assert.Equal(t, 401, status)
		status, after = try(t.Context(), "192.0.2.1", "the password")
		assert.Equal(t, []any{404, 3 * time.Second}, []any{status, after}, "who has guessed waits")
		assert.Equal(t, 1006, strings.Count(log.String(), "somebody signs in"))
		assert.NotContains(t, log.String(), "CANARY")
		g.password = ""
		for host, want := range map[string]int{"localhost:8082": 404, "127.0.0.1": 404, "[::1]:1": 404, "evil.example": 421, "192.0.2.9": 421} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = host
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, host)
		}
	})
}
