package main

import (
	"bytes"
	"testing"
	_ "time/tzdata" // zones by name, also where the system has none

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// In a zone east of Greenwich: a queue that compared times of different zones as strings
// would sleep for hours.
func TestTheDemonstrationInAnyTimeZone(t *testing.T) {
	t.Setenv("TZ", "Asia/Tokyo")
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, "", 40))
	assert.Regexp(t, `\A40 orders go to the fake service\. .*
submitted \d+
failed    \d+
Orders and ledger agree: what was submitted was executed once, and nothing else was\.
\z`, out.String())
}

// A ledger that says otherwise is an error.
func TestTheDemonstrationCompares(t *testing.T) {
	t.Parallel()
	s := &shop{fake: cardwiretest.New(), base: "http://127.0.0.1:1"} // which has no orders
	var out bytes.Buffer
	require.ErrorIs(t, s.judge(t.Context(), &out, "batch", 2), errDisagree)
	assert.NotContains(t, out.String(), "agree")
}
