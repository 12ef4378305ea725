package wiretest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOfAWatchedRun is what TestWatch runs. It does nothing alone.
func TestOfAWatchedRun(t *testing.T) {
	if os.Getenv(watchedRun) == "" {
		return
	}
	switch os.Args[len(os.Args)-1] {
	case "prints":
		fmt.Fprintln(os.Stdout, "card", CanaryNumber)
	case "logs":
		fmt.Fprintf(os.Stderr, "%x\n", CanaryKey)
	case "fails":
		t.Error("no")
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		status int
		said   string
	}{
		"passes": {0, ""},
		"fails":  {1, ""},
		"prints": {1, "reached standard output of the tests"},
		"logs":   {1, "reached standard error of the tests"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			assert.Equal(t, want.status, watch(&stdout, &stderr, []string{
				// The seed contains a canary number.
				"-test.run=^TestOfAWatchedRun$", "-test.count=1", "-test.shuffle=1795395502077381681", what,
			}))
			assert.Contains(t, stderr.String(), want.said)
			assert.NotEmpty(t, stdout.String())
		})
	}
}
