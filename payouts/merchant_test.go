package payouts

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// A merchant's own module, outside this repository, imports the package, submits in its own transaction, is
// told what became of it, and has the page.
func TestAMerchantsOwnModule(t *testing.T) {
	t.Parallel()
	source := newDatabase(t)
	s := openShop(t, source, nil)
	s.do(`CREATE TABLE withdrawals (number TEXT PRIMARY KEY, state TEXT NOT NULL)`)
	program := buildMerchant(t, "merchant")
	service := cardwiretest.NewServer(t)
	// No connection is given a port as low as this.
	address := fmt.Sprintf("127.0.0.1:%d", 20_000+os.Getpid()%10_000)
	command := exec.CommandContext(t.Context(), program, address)
	command.Env = append(os.Environ(), "DATABASE_URL="+source, "CARDWIRE_BASE_URL="+service.URL,
		"CARDWIRE_API_KEY="+service.Key)
	var said buffer
	command.Stderr = &said
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	send := func(method, path string) (status int, text string) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, nil)
		require.NoError(t, err)
		r, err := client.Do(request)
		if err != nil {
			return 0, ""
		}
		defer r.Body.Close()
		said, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(said)
	}
	require.Eventually(t, func() bool {
		status, _ := send(http.MethodPost, "/withdraw?number=W-1&iban=DE00")
		return status == http.StatusOK
	}, waitFor, 50*tick)
	require.Eventually(t, func() bool {
		return valuesOf[string](s, `SELECT state FROM withdrawals`)[0] == "submitted"
	}, waitFor, tick)
	_, text := send(http.MethodGet, "/payouts/order?number=W-1")
	assert.Contains(t, text, `"state":"submitted","currency":"EUR"`)
}

// A merchant's own module does by methods what people do on the page.
func TestEveryDoorIsOpenToAMerchant(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), buildMerchant(t, "doors")).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "all doors are open\n", string(out))
}

// buildMerchant builds a module of testdata elsewhere.
func buildMerchant(t *testing.T, name string) (program string) {
	t.Helper()
	dir := t.TempDir()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	mod := strings.Replace(read("go.mod"), "module github.com/cardwire/cardwire-go/payouts",
		"module merchant.example/shop", 1)
	mod = regexp.MustCompile(`=> \.\.`).ReplaceAllString(mod, "=> "+root)
	mod = strings.Replace(mod, "replace (",
		"require github.com/cardwire/cardwire-go/payouts v0.0.0-00010101000000-000000000000\n\nreplace (\n"+
			"\tgithub.com/cardwire/cardwire-go/payouts => "+root+"/payouts", 1)
	main := read("testdata/" + name + "/main.go.txt")
	for name, text := range map[string]string{"go.mod": mod, "go.sum": read("go.sum"), "main.go": main} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", "shop", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "shop")
}
