package main

import (
	"bufio"
	"context"
	"io"
	"net/http/httptrace"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program on a free port, and returns a client of it, its address and the lines
// for a shell. end interrupts it, and returns what it printed then.
func start(t *testing.T, args ...string) (c *cardwire.Client, addr, script string, end func() string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	t.Cleanup(interrupt)
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- status(ctx, write, write, append([]string{"-addr", "127.0.0.1:0"}, args...))
		_ = write.Close()
	}()
	output, text := bufio.NewReader(read), ""
	for !strings.HasSuffix(text, "}'\n") { // the last curl line
		line, err := output.ReadString('\n')
		require.NoError(t, err, "the service did not start: %s", text)
		text += line
	}
	parts := regexp.MustCompile(`(?s)export CARDWIRE_BASE_URL=http://(\S+)/api/v1 .*`).FindStringSubmatch(text)
	c, err := cardwire.New("http://"+parts[1]+"/api/v1", cardwiretest.DefaultKey,
		cardwire.WithJournal(journal.NewMemory()))
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c, parts[1], parts[0], func() string {
		interrupt()
		rest, err := io.ReadAll(output)
		require.NoError(t, err)
		assert.Zero(t, <-code)
		return string(rest)
	}
}

// A request that hangs does not keep the program from ending, which prints what was executed.
func TestTheServiceRespondsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	c, addr, _, end := start(t, "-fail", "CreateTransfer:reset:executed",
		"-fail", "FreezeCard:rate-limited", "-fail", "CardCapacity:hang")
	var errs strings.Builder
	assert.Equal(t, 1, status(t.Context(), io.Discard, &errs, []string{"-addr", addr}))
	assert.Contains(t, errs.String(), "in use: -addr chooses another port\n")

	_, err := c.CreateTransfer(t.Context(), cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.New(25, 0),
	})
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
	sent, done := make(chan struct{}), make(chan error, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) },
	})
	go func() {
		_, err := c.CardCapacity(ctx, cardwire.WithoutRetry())
		done <- err
	}()
	<-sent
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{}) // meanwhile the hanging request arrives
	require.NoError(t, err)
	_, err = c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: page.Cards[0].ID})
	require.ErrorIs(t, err, cardwire.ErrRateLimited)
	freeze, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: page.Cards[0].ID})
	require.NoError(t, err)

	ledger := end()
	require.ErrorContains(t, <-done, "connection closed")
	assert.Regexp(t, `^\nExecuted: 2\nCreateTransfer "order-1" \w+ 25\.00 EUR\nFreezeCard "`+
		freeze.ClientTransactionID+`" `+freeze.ID+`\n$`, ledger)
}

// Each line is run as it is printed.
func TestCurlLinesGetResponses(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl on this machine")
	}
	_, _, script, end := start(t)
	script = strings.ReplaceAll(script, "curl ", "curl -sS --noproxy '*' ")
	text, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(text), `{"code":200,`), "%s", text)
	assert.Contains(t, end(), "\nExecuted: 2\nRetryOperation \""+failedFreeze+"\"\nCreateTransfer ")
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a mistake that is not noticed must not start the service
	const public = " is not on loopback: add -any-address if other machines are to reach it"
	for args, want := range map[string]string{
		"-nope":                "flag provided but not defined: -nope",
		"now":                  `unexpected argument "now"`,
		"-addr :1":             "-addr: :1" + public,
		"-addr 0.0.0.0:1":      "-addr: 0.0.0.0:1" + public,
		"-addr 127.0.0.1":      "-addr: address 127.0.0.1: missing port in address",
		"-fail CreateTransfer": `invalid value "CreateTransfer" for flag -fail: there is no kind "" of fault`,
		"-fail Transfer:reset": `invalid value "Transfer:reset" for flag -fail: ` +
			"cardwiretest: no operation has the name Transfer",
	} {
		var out, errs strings.Builder
		assert.Equal(t, 2, status(ctx, &out, &errs, strings.Fields(args)))
		assert.Equal(t, "fakeservice: "+want+": -help lists the flags\n", errs.String())
		assert.Empty(t, out.String())
	}
	for _, args := range []string{"", "-addr localhost:1", "-addr [::1]:1", "-addr :1 -any-address"} {
		_, err := parse(io.Discard, strings.Fields(args), cardwiretest.New())
		assert.NoError(t, err)
	}
	var out strings.Builder
	assert.Zero(t, status(t.Context(), &out, &out, []string{"-help"}))
	assert.True(t, strings.HasPrefix(out.String(), help))
	assert.Contains(t, out.String(), "\n  -addr address\n")
	assert.Contains(t, out.String(), `(default "127.0.0.1:8080")`, "no other server of the examples has this port")
	for kind := range cardwiretest.FaultDrift + 1 {
		name := strings.ReplaceAll(kind.String(), " ", "-")
		assert.Contains(t, out.String(), name)
		assert.Equal(t, kind, faults[name].Kind)
		assert.Equal(t, name == "slow", faults[name].Delay > 0)
	}
}
