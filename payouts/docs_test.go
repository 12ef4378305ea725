package payouts

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

var goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// The guides and the package's comment show what is tested, to the letter.
func TestTheGuidesShowThisCode(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	for guide, files := range map[string][]string{
		"payouts.md":    {"testdata/merchant/main.go.txt"},
		"operations.md": {"support_test.go", "support_test.go"},
	} {
		blocks := goBlock.FindAllStringSubmatch(read("../docs/"+guide), -1)
		require.Len(t, blocks, len(files), guide)
		for i, block := range blocks {
			assert.Contains(t, "\n"+read(files[i]), "\n"+block[1], guide)
		}
	}
	assert.LessOrEqual(t, strings.Count(read("testdata/merchant/main.go.txt"), "\n"), 61)
	comment, _, _ := strings.Cut(read("service.go"), "\npackage payouts")
	code := regexp.MustCompile(`(?m)^//(\t.*\n)`).FindAllStringSubmatch(comment, -1)
	require.NotEmpty(t, code)
	var shown strings.Builder
	for _, line := range code {
		_, _ = shown.WriteString(line[1])
	}
	assert.Contains(t, read("example_test.go"), ") error {\n"+shown.String()+"}\n")
}

// What docs/payouts.md says of the defaults and of River's settings, and that it names what there is.
func TestTheGuideIsRight(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/payouts.md")
	require.NoError(t, err)
	for _, name := range []string{
		"POST orders", "GET order?number=", "POST resolve", "POST cancel", "GET readyz", "not_executed", "send_again",
		"service_id", "-identity ", "payouts/sqlite",
	} {
		assert.Contains(t, string(text), name)
	}
	for _, state := range states {
		assert.Contains(t, string(text), "`"+string(state)+"`")
	}
	words := strings.Fields(regexp.MustCompile(`(?s)<!--.*?-->`).ReplaceAllString(string(text), ""))
	assert.LessOrEqual(t, len(words), 1800)
	db, dialect := openDB(t, newFile(t))
	s, err := New(db, dialect, Config{BaseURL: "https://cards.example/api/v1", APIKey: "k"})
	require.NoError(t, err)
	config := s.queue()
	assert.Equal(t, []time.Duration{45 * time.Second, time.Minute},
		[]time.Duration{config.JobTimeout, config.RescueStuckJobsAfter})
	assert.Equal(t, []any{8, 20, 10 * time.Minute}, []any{s.config.Workers, s.config.Brake, s.config.LateExecution})
	for attempt, want := range map[int]time.Duration{1: time.Second, 7: 7 * time.Second, 900: time.Minute} {
		next := (&submitter{}).NextRetry(&river.Job[submit]{JobRow: &rivertype.JobRow{Attempt: attempt}})
		assert.WithinDuration(t, time.Now().Add(want), next, 10*time.Second)
	}
}

// What docs/operations.md shows records an order as paid, once, and tells support of it.
func TestRecordPaid(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.orders("waits")
	s.loseResponse("lost", true)
	for _, number := range []string{"not in the journal", "waits", "lost"} {
		for range 2 {
			require.NoError(t, recordPaid(t.Context(), s.journal, number, "T-"+number, "Ada", "ticket 7"))
		}
		e, err := s.journal.Lookup(t.Context(), operation, number)
		require.NoError(t, err)
		assert.Equal(t, []any{cardwire.OutcomeExecuted, "T-" + number}, []any{e.Outcome, e.ServiceID})
		history, err := s.journal.History(t.Context(), operation, number)
		require.NoError(t, err)
		last := history[len(history)-1]
		assert.Equal(t, []any{cardwire.OutcomeExecuted, "Ada", "ticket 7"}, []any{last.Outcome, last.By, last.Note})
	}
	require.ErrorIs(t, recordPaid(t.Context(), s.journal, "pasted ", "T-1", "Ada", ""), cardwire.ErrInvalidParams)
	var out bytes.Buffer
	require.NoError(t, tell(t.Context(), &out, s.journal, "lost"))
	assert.Regexp(t, `\Alost, 12.50 EUR: executed, service ID "T-lost", in progress false, closed false
20\S+Z reserved: not_sent "" ""
20\S+Z begun: unknown "" ""
20\S+Z ended: unknown "" "unknown outcome: connection reset by the peer"
20\S+Z resolved: executed "Ada" "ticket 7"
\z`, out.String())
	require.ErrorIs(t, tell(t.Context(), &out, s.journal, "M-9"), sqljournal.ErrNoIntent)
}
