package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/examples/apps/internal/apptest"
)

// The program as a whole: it says how to sign in, serves, and ends in order.
func TestTheProgram(t *testing.T) {
	server := cardwiretest.NewServer(t, cardwiretest.WithCards(7))
	hash, err := bcrypt.GenerateFromPassword([]byte(testPassword), bcrypt.DefaultCost)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		base, key string
		cards     string
	}{
		"the fake service": {"", "", "64"},
		"a service":        {server.URL, server.Key, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CARDWIRE_BASE_URL", tc.base)
			t.Setenv("CARDWIRE_API_KEY", tc.key)
			t.Setenv("BACKOFFICE_USER", testUser)
			t.Setenv("BACKOFFICE_PASSWORD_HASH", string(hash))
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			r, w := io.Pipe()
			log, ended := &apptest.Buffer{}, make(chan error, 1)
			go func() {
				err := run(ctx, w, log, []string{"-listen", "127.0.0.1:0", "-log", "debug", "-lose", "1", "-journal", filepath.Join(t.TempDir(), "j.db"), "-migrate"})
				ended <- errors.Join(err, w.Close())
			}()
			out := bufio.NewReader(r)
			user, password := testUser, testPassword
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			if tc.base == "" {
				require.Regexp(t, `^This is the fake service: no money moves. Sign in as demo with the password [a-z2-7]{12}\.\n$`, line)
				user, password = "demo", line[len(line)-14:len(line)-2]
				line, err = out.ReadString('\n')
				require.NoError(t, err)
			}
			address, ok := strings.CutPrefix(strings.TrimSuffix(line, "/ in a browser.\n"), "Open ")
			require.True(t, ok, line)

			jar, err := cookiejar.New(nil)
			require.NoError(t, err)
			browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
			form := url.Values{"user": {user}, "password": {password}}
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/login", strings.NewReader(form.Encode()))
			require.NoError(t, err)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			response, err := browser.Do(request)
			require.NoError(t, err)
			page, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Contains(t, string(page), `<span class="number">`+tc.cards+`</span> cards`)
			assert.Equal(t, tc.base == "", strings.Contains(string(page), "fake service"))
			end()
			require.NoError(t, <-ended)
			assert.Empty(t, filesIn(t, temp))
			assert.Contains(t, log.String(), "operation=CardCapacity")
			assert.NotContains(t, log.String(), password)
			assert.NotContains(t, log.String(), server.Key)
		})
	}
}

func TestTheCommandLine(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "")
	t.Setenv("CARDWIRE_API_KEY", "")
	t.Setenv("TMPDIR", t.TempDir())
	t.Chdir(t.TempDir())
	for want, args := range map[string][]string{
		"backoffice: flag provided but not defined: -nope: -help lists the flags\n":                            {"-nope"},
		"backoffice: unexpected argument \"now\": -help lists the flags\n":                                     {"now"},
		"backoffice: -https must be a host such as office.example, not \"https://x\": -help lists the flags\n": {"-https", "https://x"},
	} {
		var out, errs strings.Builder
		assert.Equal(t, 2, status(t.Context(), &out, &errs, args))
		assert.Equal(t, want, errs.String())
		assert.Empty(t, out.String())
	}
	var out, errs strings.Builder
	assert.Zero(t, status(t.Context(), &out, &errs, []string{"-help"}))
	assert.Empty(t, errs.String())
	for _, part := range []string{
		"pages to look after cards and transfers", "go run -C examples/apps ./backoffice", "\n  -listen address\n",
		"CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "BACKOFFICE_USER", "BACKOFFICE_PASSWORD_HASH",
	} {
		assert.Contains(t, out.String(), part)
	}
	assert.Contains(t, out.String(), `(default "127.0.0.1:8081")`, "no other server of the examples has this port")

	ctx, interrupt := context.WithCancel(t.Context())
	var started onFirst = func() { interrupt() }
	errs.Reset()
	assert.Zero(t, status(ctx, started, &errs, []string{"-listen", "127.0.0.1:0"}))
	assert.Equal(t, "backoffice: stopped\n", errs.String())
	assert.Empty(t, filesIn(t, os.TempDir()))
	assert.Empty(t, filesIn(t, "."))
}

// onFirst is a writer that calls the function when the address is printed.
type onFirst func()

func (f onFirst) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "in a browser") {
		f()
	}
	return len(p), nil
}

// Behind a proxy the program is not reached by the address that it listens on.
func TestTheAddressBehindAProxy(t *testing.T) {
	o := newTestOffice(t, cardwiretest.New())
	o.office.host = "office.example"
	ctx, end := context.WithCancel(t.Context())
	defer end()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(o.office.serve(ctx, w, "127.0.0.1:0"), w.Close()) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "Open https://office.example/ in a browser.\n", line)
	end()
	require.NoError(t, <-ended)
}

func filesIn(t *testing.T, dir string) []os.DirEntry {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	return entries
}

func TestWhatItDoesNotStartWith(t *testing.T) {
	const good = "$2a$10$abcdefghijklmnopqrstuv1234567890123456789012345678901"
	for name, tc := range map[string]struct {
		user, hash string
		args       []string
		want       string
	}{
		"no user":          {"", good, nil, "BACKOFFICE_USER is not set"},
		"a password":       {"amelia", testPassword, nil, "BACKOFFICE_PASSWORD_HASH must be a bcrypt hash of cost 10 or more"},
		"a cheap hash":     {"amelia", strings.Replace(good, "$10$", "$04$", 1), nil, "cost 10 or more"},
		"an argument":      {"amelia", good, []string{"now"}, `unexpected argument "now"`},
		"other machines":   {"amelia", good, []string{"-listen", "0.0.0.0:0", "-migrate"}, "put a proxy that speaks https in front"},
		"no host":          {"amelia", good, []string{"-https", "https://office.example"}, "-https must be a host such as office.example"},
		"no tables":        {"amelia", good, []string{"-journal", filepath.Join(t.TempDir(), "journal.db")}, "its tables are missing"},
		"no journal there": {"amelia", good, []string{"-journal", filepath.Join(t.TempDir(), "no", "journal.db")}, "reading the schema failed"},
		"a wrong database": {"amelia", good, []string{"-postgres", "postgres://u:secret@127.0.0.1:x/"}, "reading the schema failed"},
		"no database":      {"amelia", good, []string{"-postgres", "postgres://u:secret@127.0.0.1:1/"}, "reading the schema failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv("CARDWIRE_BASE_URL", "https://cards.example/api/v1")
			t.Setenv("CARDWIRE_API_KEY", "key")
			t.Setenv("BACKOFFICE_USER", tc.user)
			t.Setenv("BACKOFFICE_PASSWORD_HASH", tc.hash)
			err := run(t.Context(), io.Discard, io.Discard, tc.args)
			require.ErrorContains(t, err, tc.want)
			assert.NotContains(t, err.Error(), "secret")
		})
	}
}
