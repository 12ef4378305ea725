package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheDemonstration(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, 40))
	assert.Regexp(t, `\A40 orders go to the fake service\. .*
submitted \d+
failed    \d+
Orders and ledger agree: what was submitted was executed once, and nothing else was\.
\z`, out.String())
}
