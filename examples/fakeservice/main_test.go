package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs the program on a free port, and returns its base URL and the lines that it
// printed. end interrupts it, and returns what it printed then, and its error.
func start(t *testing.T, args ...string) (baseURL string, lines []string, end func() ([]string, error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, write, append([]string{"-addr", "127.0.0.1:0"}, args...))
		_ = write.CloseWithError(io.EOF)
		ended <- err
	}()
	scanner := bufio.NewScanner(read)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
		if url, ok := strings.CutPrefix(scanner.Text(), "export CARDWIRE_BASE_URL="); ok {
			var key string
			baseURL, key, _ = strings.Cut(url, " ")
			assert.Equal(t, "CARDWIRE_API_KEY="+cardwiretest.DefaultKey, key)
		}
		if strings.Contains(scanner.Text(), "/remittance/transfer") { // the last one
			break
		}
	}
	require.NotEmpty(t, baseURL, "the service did not start")
	last := make(chan []string, 1)
	go func() {
		var lines []string
		for scanner.Scan() {
			lines = append(lines, scanner.Text())
		}
		last <- lines
	}()
	return baseURL, lines, func() ([]string, error) {
		cancel()
		return <-last, <-ended
	}
}

const freezeID = "5f0c9c8e-3b8e-4d6f-9a53-0f6d1f1d7a01"

// inProcess returns the service that the flags make.
func inProcess(t *testing.T, args ...string) *cardwiretest.Service {
	t.Helper()
	s, err := parse(io.Discard, args)
	require.NoError(t, err)
	return s.service()
}

// over returns a client of the service.
func over(t *testing.T, service *cardwiretest.Service) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New("https://cards.example/api/v1", cardwiretest.DefaultKey,
		cardwire.WithHTTPClient(&http.Client{Transport: service}))
	require.NoError(t, err)
	return c
}

func client(t *testing.T, baseURL string) *cardwire.Client {
	t.Helper()
	c, err := cardwire.New(baseURL, cardwiretest.DefaultKey)
	require.NoError(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestServiceRespondsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	baseURL, _, end := start(t)
	c := client(t, baseURL)
	page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	assert.Equal(t, 25, page.Total)
	addr := strings.TrimSuffix(strings.TrimPrefix(baseURL, "http://"), "/api/v1")
	var errs strings.Builder
	assert.Equal(t, 1, status(t.Context(), io.Discard, &errs, []string{"-addr", addr}))
	assert.Contains(t, errs.String(), "in use: -addr chooses another port")

	lines, err := end()
	require.NoError(t, err)
	assert.Equal(t, []string{"", "Nothing was executed."}, lines)
	_, err = c.ListCards(t.Context(), cardwire.ListCardsParams{}, cardwire.WithoutRetry())
	var failure *cardwire.Error
	require.ErrorAs(t, err, &failure)
	assert.Zero(t, failure.HTTPStatus, "no server at that address")
}

// What the flags change is seen in what is served. The card of the curl lines is one of the cards.
func TestFlagsConfigureTheService(t *testing.T) {
	t.Parallel()
	for _, cards := range []int{0, 1, 7, 25} {
		c := over(t, inProcess(t, "-cards", strconv.Itoa(cards)))
		page, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
		require.NoError(t, err)
		assert.Equal(t, cards, page.Total)
		_, err = c.GetCard(t.Context(), cardID)
		assert.Equal(t, cards == 0, errors.Is(err, cardwire.ErrNotFound))
	}
	capacity, err := over(t, inProcess(t, "-seed", "2")).CardCapacity(t.Context())
	require.NoError(t, err)
	assert.NotEqualValues(t, 606, capacity, "that of the first seed")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		_, err := over(t, inProcess(t, "-latency", "3s")).CardCapacity(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, time.Since(began))
	})
}

func TestTheCommandLine(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"fakeservice: flag provided but not defined: -nope: -help lists the flags\n":                                                    {"-nope"},
		"fakeservice: unexpected argument \"now\": -help lists the flags\n":                                                             {"now"},
		"fakeservice: -addr: 0.0.0.0:1 is not on loopback: add -any-address if other machines are to reach it: -help lists the flags\n": {"-addr", "0.0.0.0:1"},
		"fakeservice: invalid value \"GetCard:x\" for flag -fail: there is no kind \"x\" of fault: -help lists the flags\n":             {"-fail", "GetCard:x"},
	} {
		var out, errs strings.Builder
		assert.Equal(t, 2, status(t.Context(), &out, &errs, args))
		assert.Equal(t, want, errs.String())
		assert.Empty(t, out.String())
	}
	var out, errs strings.Builder
	assert.Zero(t, status(t.Context(), &out, &errs, []string{"-help"}))
	assert.Empty(t, errs.String())
	for _, part := range []string{"serves the fake service", "go run ./examples/fakeservice", "CARDWIRE_BASE_URL", "CARDWIRE_API_KEY", "\n  -addr address\n"} {
		assert.Contains(t, out.String(), part)
	}
	assert.Contains(t, out.String(), `(default "127.0.0.1:8080")`, "no other server of the examples has this port")
}

func TestAnInterruptIsOneLine(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var errs strings.Builder
	assert.Zero(t, status(ctx, io.Discard, &errs, []string{"-addr", "127.0.0.1:0"}))
	assert.Equal(t, "fakeservice: stopped\n", errs.String())
}

// Not parallel, because NoLeaks has the outputs of the whole process.
func TestTheLedgerIsPrintedAtTheEnd(t *testing.T) {
	cardwiretest.NoLeaks(t)
	baseURL, lines, end := start(t, "-fail", "CreateTransfer:reset:executed:1", "-fail", "RetryOperation:reset:always")
	assert.Contains(t, lines, "CreateTransfer will fail 1x: reset, after it was executed.")
	assert.Contains(t, lines, "RetryOperation will fail always: reset, before it is executed, if it is at all.")
	c := client(t, baseURL)
	_, err := c.ListCards(t.Context(), cardwire.ListCardsParams{})
	require.NoError(t, err)
	transfer := cardwire.TransferParams{
		MerchantOrderNo: "order-1", PayoutCurrency: "EUR", TransferAmount: decimal.New(25, 0),
	}
	_, err = c.CreateTransfer(t.Context(), transfer)
	require.ErrorIs(t, err, cardwire.ErrOutcomeUnknown)
	require.ErrorIs(t, c.RetryOperation(t.Context(), failedFreeze), cardwire.ErrOutcomeUnknown)
	operation, err := c.FreezeCard(t.Context(), cardwire.FreezeCardParams{CardID: cardID, ClientTransactionID: freezeID})
	require.NoError(t, err)
	require.NoError(t, c.CancelOperation(t.Context(), failedTopUp))
	ledger, err := end()
	require.NoError(t, err)
	require.Len(t, ledger, 5)
	assert.Regexp(t, `^CreateTransfer "order-1", ID \w+, 25\.00 EUR$`, ledger[2])
	assert.Equal(t, []string{"", "This was executed:", ledger[2],
		`FreezeCard "` + freezeID + `", ID ` + operation.ID, `CancelOperation "` + failedTopUp + `"`}, ledger)
	_, _ = io.WriteString(os.Stdout, strings.Join(ledger, "\n")) // where NoLeaks looks
	assert.NotRegexp(t, `[0-9]{12}`, strings.ReplaceAll(strings.Join(lines, "\n"), freezeID, ""))
}

// A request that hangs must not keep the program from ending.
func TestHangingRequestDoesNotKeepTheServiceFromStopping(t *testing.T) {
	t.Parallel()
	baseURL, _, end := start(t, "-fail", "CardCapacity:hang")
	sent, done := make(chan struct{}), make(chan error, 1)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) },
	})
	go func() {
		_, err := client(t, baseURL).CardCapacity(ctx, cardwire.WithoutRetry())
		done <- err
	}()
	<-sent
	_, err := client(t, baseURL).ListBINs(t.Context()) // by the time of its response the first has arrived
	require.NoError(t, err)
	_, err = end()
	require.NoError(t, err)
	require.Error(t, <-done)
}

// Each line is run as it is printed.
func TestCurlLinesGetResponses(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl on this machine")
	}
	baseURL, lines, _ := start(t)
	asked := 0
	for _, line := range lines {
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		asked++
		command := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(line, "curl ", "curl -sS --noproxy '*' ", 1))
		command.Env = append(command.Environ(), "CARDWIRE_BASE_URL="+baseURL, "CARDWIRE_API_KEY="+cardwiretest.DefaultKey)
		text, err := command.CombinedOutput()
		require.NoError(t, err, line)
		var envelope struct{ Code int }
		require.NoError(t, json.Unmarshal(text, &envelope), line)
		assert.Equal(t, 200, envelope.Code, line)
	}
	assert.Equal(t, 14, asked, "twelve operations, two of which can be asked in two ways")
}

func TestFaultFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]fault{
		"CreateTransfer:reset":                     {"CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset}, 1},
		"CreateTransfer:reset:executed:2":          {"CreateTransfer", cardwiretest.Fault{Kind: cardwiretest.FaultReset, Executed: true}, 2},
		"ListCards:drift:always":                   {"ListCards", cardwiretest.Fault{Kind: cardwiretest.FaultDrift}, -1},
		"GetCard:late:delay=1500ms":                {"GetCard", cardwiretest.Fault{Kind: cardwiretest.FaultLate, Delay: 1500 * time.Millisecond}, 1},
		"ListBINs:status:status=503:retry-after=":  {"ListBINs", cardwiretest.Fault{Status: http.StatusServiceUnavailable}, 1},
		"FreezeCard:status:code=409:message=taken": {"FreezeCard", cardwiretest.Fault{Code: 409, Message: "taken"}, 1},
		"ListBINs:truncated:3":                     {"ListBINs", cardwiretest.Fault{Kind: cardwiretest.FaultTruncated}, 3},
		"ListBINs:rate-limited:retry-after=7":      {"ListBINs", cardwiretest.Fault{Kind: cardwiretest.FaultRateLimited, RetryAfter: "7"}, 1},
	} {
		got, err := parseFault(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestWrongFaultFlagIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"CreateTransfer":               "is not OPERATION:KIND",
		"CreateTransfer:explosion":     `there is no kind "explosion"`,
		"Transfer:reset":               "no operation has the name Transfer",
		"CreateTransfer:reset:0":       `"0" is neither`,
		"CreateTransfer:reset:-1":      `"-1" is neither`,
		"CreateTransfer:reset:often":   `"often" is neither`,
		"CreateTransfer:status:status": "invalid syntax",
		"CreateTransfer:hang:delay=1":  "missing unit",
	} {
		_, err := parseFault(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:0":    "",
		"127.8.0.1:8080": "",
		"[::1]:8080":     "",
		"localhost:8080": "",
		":8080":          "is not on loopback",
		"0.0.0.0:8080":   "is not on loopback",
		"[::]:8080":      "is not on loopback",
		"192.0.2.1:8080": "is not on loopback",
		"example.com:80": "is not on loopback",
		"127.0.0.1":      "missing port",
	} {
		_, err := parse(io.Discard, []string{"-addr", addr})
		if want == "" {
			require.NoError(t, err, addr)
			continue
		}
		require.ErrorContains(t, err, want, addr)
	}
	_, err := parse(io.Discard, []string{"-addr", "0.0.0.0:8080", "-any-address"})
	require.NoError(t, err)
}
