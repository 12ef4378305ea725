package wiretest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go/internal/test/canary"
)

// watchedRun is set in the environment of tests whose output is being watched.
const watchedRun = "CARDWIRE_WATCHED_TESTS"

// Main is a TestMain. It runs the tests in a process of their own, and fails if a secret of
// theirs is in anything that the process writes, their log included, or if they leave
// goroutines behind.
func Main(m *testing.M) {
	flag.Parse()
	if os.Getenv(watchedRun) != "" || fuzzing() {
		goleak.VerifyTestMain(m)
		return
	}
	os.Exit(watch(os.Stdout, os.Stderr, os.Args[1:]))
}

// fuzzing reports whether this process is part of a fuzzing run, whose processes communicate
// by files that a process between them would not pass on.
func fuzzing() bool {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return true
		}
	}
	return false
}

// seed is the line of the testing package that -shuffle prints: its digits are the time, and
// one in some hundreds of them contains a canary number.
var seed = regexp.MustCompile(`(?m)^-test\.shuffle \d+$`)

// watch runs this test binary once more and returns its exit status, or that of a failure if
// a secret was written.
func watch(stdout, stderr io.Writer, args []string) int {
	program, err := os.Executable()
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "the tests cannot be started:", err)
		return 1
	}
	var out, errs bytes.Buffer
	tests := exec.Command(program, args...) //nolint:noctx // it ends with its own timeout
	tests.Env = append(os.Environ(), watchedRun+"=1")
	tests.Stdin = os.Stdin
	tests.Stdout = io.MultiWriter(stdout, &out)
	tests.Stderr = io.MultiWriter(stderr, &errs)
	if err := run(tests); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		_, _ = fmt.Fprintln(stderr, "the tests ended by:", err)
		return 2
	}
	status := 0
	secrets := watched()
	for name, written := range map[string]string{"standard output": out.String(), "standard error": errs.String()} {
		for _, what := range secrets.Find(seed.ReplaceAllString(written, "")) {
			_, _ = fmt.Fprintf(stderr, "--- FAIL: %s reached %s of the tests\n", what, name)
			status = 1
		}
	}
	return status
}

// run passes on the signals that end tests: "go test" sends one to this process
// only when the time is over.
func run(tests *exec.Cmd) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := tests.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case s := <-signals:
				_ = tests.Process.Signal(s) // it may have ended
			case <-done:
				return
			}
		}
	}()
	return tests.Wait()
}

// watched are the secrets that the tests use.
func watched() *canary.Secrets {
	s := new(canary.Secrets)
	const ofTheFake = "cwtest-canary-key-5f0c9d7e31ab4286"
	for _, key := range []string{CanaryKey, CanaryPAN, Key, ofTheFake} {
		s.AddKey(key)
	}
	for _, number := range []string{CanaryNumber, "4111111111111111"} {
		s.AddNumber(number)
	}
	s.AddCVV(CanaryCVV)
	s.AddCVV(LongCVV)
	return s
}
