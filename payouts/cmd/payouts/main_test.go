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
	"sync"
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
	require.ErrorIs(t, run(t.Context(), io.Discard, io.Discard, []string{"-db", db, "-identity", "x", "-migrate"}),
		sqljournal.ErrSchema)
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
	assert.Contains(t, send("POST", "orders",
		`{"merchantOrderNo":"A-1","payoutCurrency":"EUR","transferAmount":"12.50"}`), `"order":"A-1"`)
	require.Eventually(t, func() bool {
		return strings.Contains(send("GET", "order?number=A-1", ""), `"state":"submitted"`)
	}, time.Minute, 10*time.Millisecond)
	assert.Contains(t, send("GET", "metrics", ""), `payouts_orders{state="queued"} 0`)
	assert.Contains(t, send("GET", "readyz", ""), `"up"`)
	end()
	require.NoError(t, <-ended)

	file := filepath.Join(t.TempDir(), "statement.csv")
	now := time.Now().UTC().Truncate(time.Second)
	at := now.Add(-time.Minute).Format(time.RFC3339)
	lines := "order,amount,status,time\nA-1,12.50,done," + at + "\nA-2,7.00,done," + at + "\n"
	require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
	args := []string{"-reconcile", file, "-status", "done=executed", "-from", now.Add(-time.Hour).Format(time.RFC3339),
		"-until", now.Format(time.RFC3339), "-exported", now.Format(time.RFC3339), "-strays", "-apply", "-by", "Ada",
		"-why", "the statement", "-db", db}
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
	assert.Contains(t, said, "ask: not known")
	assert.Contains(t, said, "Recorded: 1. Left: 0.")
	text, err := os.ReadFile(findings)
	require.NoError(t, err)
	assert.Contains(t, string(text), "agrees,,A-1,12.5,,false,")
	assert.Contains(t, string(text), "ask,not known,A-2,7,,true,")
	assert.Regexp(t, `^Adathe statement: statement\.csv, from .* until .*Z$`, kept())
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(lines, "7.00", "7.00 EUR", 1)), 0o600))
	assert.Contains(t, task(append(args, "-zone", "Europe/Berlin")...),
		`unread: "A-2": line 3: column "amount": the amount must be as in`)
	for flag, says := range map[string]string{
		"-zone":  "-zone: cardwire: invalid parameters: the time zone must have an IANA name",
		"-until": "-until: a time has its offset",
	} {
		require.ErrorContains(t, run(t.Context(), io.Discard, io.Discard, append(args, flag, "soon")), says)
	}
	task("-hold", "-by", "Ada", "-why", "a restore", "-listen", ":8082")
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args   string
		status int
		says   string
	}{
		"an unknown flag":       {"-x", 2, "flag provided but not defined: -x\nPayouts submits each"},
		"an argument":           {"now", 1, "payouts: only flags are taken: "},
		"no service":            {"", 1, "payouts: set CARDWIRE_BASE_URL, which ends in /api/v1, and CARDWIRE_API_KEY"},
		"a short timeout":       {"-rate 1 -timeout 19s", 1, "payouts: with -rate, -timeout must be at least 20s"},
		"few workers":           {"-workers -1", 1, "payouts: -workers is -1: it must be at least 1"},
		"no scheme":             {"", 1, "CARDWIRE_BASE_URL has no scheme"},
		"a port":                {"-listen 127.0.0.1:none", 1, `-listen "127.0.0.1:none" must be`},
		"no directory":          {"-migrate -db nowhere/a.db", 1, "nowhere/a.db: unable to open"},
		"a password in Latin-1": {"", 1, "PAYOUTS_PASSWORD is not in UTF-8"},
		"short password":        {"-listen 127.0.0.1:0", 1, "at least 12 bytes"},
		"other machines":        {"-listen 0.0.0.0:0", 1, "payouts: to listen for other machines set PAYOUTS_PASSWORD"},
		"nobody":                {"-hold", 1, "-hold and -apply need -by and -why"},
		"no database": {"-migrate -db postgres://u:secret@127.0.0.1:1/", 1,
			"payouts: its tables cannot be read: "},
		"another database":    {"-db mysql://u:secret@127.0.0.1/", 1, "-db must be a file's name, postgres://"},
		"a file with = in it": {"-db secret=1.db", 1, "-db must be"},
		"a password with /": {"-db postgres://u:secret/x@127.0.0.1/shop", 1,
			"-db cannot be read: its user or password has one of / ? # [ ], which a URL has as %2F"},
		"a password with %": {"-db postgres://u:secret%x@127.0.0.1/shop", 1,
			"-db cannot be read: it must be as in postgres://"},
		"an open quote":     {"-db dbname='secret", 1, "-db cannot be read: put single quotes around"},
		"a name in Latin-1": {"-hold -by J\xf6rg -why x", 1, `-by "J\xf6rg" is not in UTF-8`},
		"no tables":         {"-listen 127.0.0.1:0", 1, "call Migrate"},
		"a column": {"-reconcile main_test.go -from 2026-01-01Z -until 2026-01-02Z -exported 2026-01-02Z " +
			"-columns order -status a=pending", 1, `-columns: "order"`},
		"a status": {"-reconcile main_test.go -from 2026-01-01Z -until 2026-01-02Z -exported 2026-01-02Z " +
			"-status paid", 1, `-status: "paid"`},
		"an origin without a scheme": {"-origins https://shop.example,shop.example", 2, "scheme is required"},
		"help":                       {"-help", 0, "CARDWIRE_API_KEY"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), os.Args[0])
			base, password := "https://cards.example/api/v1", ""
			switch name {
			case "no service":
				base = ""
			case "no scheme":
				base = "cards.example"
			case "short password":
				password = "elevenchars"
			case "a password in Latin-1":
				password = "twelve_secr\xe8t"
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
		"postgres://shop:secret@db/shop":    sqljournal.PostgreSQL,
		"host=db user=shop password=secret": sqljournal.PostgreSQL,
		"password=secret dbname=shop":       sqljournal.PostgreSQL,
		"payouts.db":                        sqljournal.SQLite,
	} {
		db, dialect, err := open(source, 1)
		require.NoError(t, err, source)
		require.NoError(t, db.Close())
		assert.Equal(t, want, dialect, source)
	}
}

// Without a password this machine is served, by its own names. With one, guesses of all addresses are compared one a
// second, whether their clients hang up or not, and each is logged; who knows the password does not wait for them.
func TestSignInsThatFailSlowDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := &gate{next: http.NotFoundHandler(), password: "the password",
			log:      slog.New(slog.NewTextHandler(&log, nil)),
			failures: rate.NewLimiter(1, 3)}
		from := time.Now()
		try := func(ctx context.Context, user, password string) (status int, after time.Duration, text string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://payouts.example/", nil)
			if password != "" {
				r.SetBasicAuth(user, password)
			}
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			return w.Code, time.Since(from), w.Body.String()
		}
		signIn := func() []any {
			status, after, _ := try(t.Context(), "Ada", "the password")
			return []any{status, after}
		}
		assert.Equal(t, []any{404, time.Duration(0)}, signIn())
		for _, want := range []time.Duration{0, 0, 0, time.Second, 2 * time.Second} {
			status, after, _ := try(t.Context(), "CANARY", "a guess")
			assert.Equal(t, []any{401, want}, []any{status, after})
		}
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for range 10 {
			status, _, _ := try(gone, "CANARY", "a guess")
			assert.Equal(t, 401, status)
		}
		var guessers sync.WaitGroup
		for range 100 { // one guesser, behind the proxy of all
			guessers.Go(func() {
				_, after, _ := try(t.Context(), "CANARY", "a guess")
				assert.Greater(t, after, 2*time.Second)
			})
		}
		synctest.Wait()
		assert.Equal(t, []any{404, 2 * time.Second}, signIn(), "who knows it does not wait")
		guessers.Wait()
		assert.Equal(t, []any{404, 17 * time.Second}, signIn(), "no guess waits for longer than 15 s")
		status, _, text := try(t.Context(), "", "")
		assert.Equal(t, []any{401, "Sign in with your name and the password.\n"}, []any{status, text},
			"a browser asks first")
		status, after, text := try(t.Context(), "J\xf6rg", "the password")
		assert.Equal(t, []any{401, 17 * time.Second}, []any{status, after})
		assert.Contains(t, text, "your name in UTF-8")
		assert.Equal(t, 115, strings.Count(log.String(), "a sign-in failed"))
		assert.NotContains(t, log.String(), "CANARY")
		g.password = ""
		for host, want := range map[string]int{"localhost:8082": 404, "127.0.0.1": 404, "[::1]:1": 404,
			"evil.example": 421, "192.0.2.9": 421} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.Host = host
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			assert.Equal(t, want, w.Code, host)
		}
	})
}
