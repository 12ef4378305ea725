package sqljournal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// What tests record. The times have a zone, and digits that no database keeps.
const (
	canaryReference = "CANARY-REF-77"
	canaryBody      = "ca9a41b0d1"
)

var morning = time.Date(2026, 11, 21, 9, 30, 15, 123456789, time.FixedZone("", 5*3600+1800))

func intent(reference string) cardwire.Intent {
	return cardwire.Intent{Op: "CreateTransfer", Reference: reference, BodySHA256: canaryBody, Time: morning, Unique: true}
}

// word puts what a journal returned into a word.
func word(err error) string {
	var taken *cardwire.DuplicateIntent
	_, bare := err.(*cardwire.DuplicateIntent) // as the client asks: it sends nothing where it is wrapped
	switch {
	case err == nil:
		return "ok"
	case bare && errors.As(err, &taken) && taken.Outcome == cardwire.OutcomeUnknown:
		return "may be retried"
	case errors.Is(err, cardwire.ErrOtherBody) && errors.Is(err, cardwire.ErrDuplicateIntent) && errors.As(err, &taken):
		return "other body, " + taken.Outcome.String()
	case errors.As(err, &taken):
		return "taken, " + taken.Outcome.String()
	case errors.Is(err, cardwire.ErrOtherBody):
		return "other body"
	case errors.Is(err, sqljournal.ErrNoIntent):
		return "no intent"
	case errors.Is(err, sqljournal.ErrDecided):
		return "decided"
	case errors.Is(err, sqljournal.ErrRecordedAgain):
		return "recorded again"
	}
	return err.Error()
}

var outcomes = map[string]cardwire.Outcome{
	"unknown": cardwire.OutcomeUnknown, "notsent": cardwire.OutcomeNotSent,
	"refused": cardwire.OutcomeRefused, "executed": cardwire.OutcomeExecuted,
	"strange": cardwire.Outcome(17),
}

// story is a reference and those who deal with it.
type story struct {
	journals map[string]*sqljournal.Journal
	unique   bool
	listed   []sqljournal.Entry
}

// does carries out a step: "A begins", "A begins other", "A ends refused ID",
// "resolve refused", "B lists" what is unresolved, or "answer refused", about the
// first entry of the list. A and a are two calls of one process, B is another's.
func (s *story) does(t *testing.T, step string) string {
	t.Helper()
	part := strings.Fields(step + " - -")
	i := intent(canaryReference)
	i.Unique = s.unique
	if part[0] == "a" {
		i.Time = i.Time.Add(time.Nanosecond)
	}
	if strings.Contains(step, "other") {
		i.BodySHA256 = "0" + canaryBody
	}
	journal := s.journals[strings.ToUpper(part[0])]
	switch part[1] {
	case "begins":
		return word(journal.Begin(t.Context(), i))
	case "ends":
		id := strings.Trim(part[3], "-")
		return word(journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcomes[part[2]], ServiceID: id}))
	case "lists":
		s.listed = list(t, journal, 0)
		return "ok"
	}
	if part[0] == "answer" {
		return word(s.journals["B"].Resolve(t.Context(), s.listed[0], sqljournal.Resolution{Outcome: outcomes[part[1]]}))
	}
	return word(resolved(t, s.journals["A"], i.Reference, outcomes[part[1]]))
}

// resolved resolves what Lookup finds.
func resolved(t *testing.T, journal *sqljournal.Journal, reference string, outcome cardwire.Outcome) error {
	t.Helper()
	e, err := journal.Lookup(t.Context(), "CreateTransfer", reference)
	require.NoError(t, err)
	return journal.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: outcome})
}

// rowsOf are the rows as the table has them: state, attempts, service_id, and
// whether there is an end.
func rowsOf(t *testing.T, db *sql.DB, table string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT state, attempts, service_id, ended_at IS NOT NULL FROM "+table+" ORDER BY id")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var state, id string
		var attempts int
		var ended bool
		require.NoError(t, rows.Scan(&state, &attempts, &id, &ended))
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %t %s", state, attempts, ended, id)))
	}
	require.NoError(t, rows.Err())
	return all
}

func TestTheLifeOfAUniqueIntent(t *testing.T) {
	t.Parallel()
	const unknown, executed = "taken, unknown", "taken, executed"
	for name, tc := range map[string]struct {
		steps steps
		row   string // state, attempts, whether it ended, service ID
	}{
		"begun":    {steps{{"A begins", "ok"}}, "open 1 false"},
		"executed": {steps{{"A begins", "ok"}, {"A ends executed X-1", "ok"}, {"A begins", executed}, {"B begins", executed}}, "executed 1 true X-1"},
		"unknown":  {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"A begins", unknown}, {"B begins", unknown}}, "unknown 1 true"},
		"refused":  {steps{{"A begins", "ok"}, {"A ends refused", "ok"}}, "refused 1 true"},
		"not sent": {steps{{"A begins", "ok"}, {"A ends notsent", "ok"}}, "not_sent 1 true"},
		"an outcome that does not exist is unknown": {steps{{"A begins", "ok"}, {"A ends strange", "ok"}, {"A begins", unknown}}, "unknown 1 true"},

		"open is taken by the same process":        {steps{{"A begins", "ok"}, {"a begins", unknown}}, "open 1 false"},
		"open is taken by another":                 {steps{{"A begins", "ok"}, {"B begins", unknown}}, "open 1 false"},
		"refused is begun again":                   {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}}, "open 2 false"},
		"not sent is begun again":                  {steps{{"A begins", "ok"}, {"A ends notsent", "ok"}, {"A begins", "ok"}}, "open 2 false"},
		"begun again it is taken again":            {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}, {"A begins", unknown}}, "open 2 false"},
		"begun again it is executed":               {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}, {"B ends executed X-2", "ok"}}, "executed 2 true X-2"},
		"begun again it ends unknown":              {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}, {"B ends unknown", "ok"}, {"A begins", unknown}}, "unknown 2 true"},
		"begun again, the first says refused late": {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}, {"A ends refused", "ok"}, {"A begins", unknown}}, "open 2 true"},

		"another body while open":      {steps{{"A begins", "ok"}, {"B begins other", "other body, unknown"}}, "open 1 false"},
		"another body while unknown":   {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"A begins other", "other body, unknown"}}, "unknown 1 true"},
		"another body when executed":   {steps{{"A begins", "ok"}, {"A ends executed", "ok"}, {"A begins other", "other body, executed"}}, "executed 1 true"},
		"another body when refused":    {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"A begins other", "other body"}, {"A begins", "ok"}}, "open 2 false"},
		"another body when not sent":   {steps{{"A begins", "ok"}, {"A ends notsent", "ok"}, {"B begins other", "other body"}}, "not_sent 1 true"},
		"the end of another body":      {steps{{"A begins", "ok"}, {"A ends executed other", "no intent"}}, "open 1 false"},
		"an end of another body later": {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"A ends executed other", "no intent"}}, "refused 1 true"},

		"executed stays so whatever is told after": {steps{{"A begins", "ok"}, {"A ends executed X-1", "ok"}, {"A ends unknown", "ok"}, {"A ends refused", "ok"}, {"A ends notsent", "ok"}}, "executed 1 true X-1"},

		"open resolved to executed":       {steps{{"A begins", "ok"}, {"resolve executed", "ok"}, {"A begins", executed}}, "executed 1 true"},
		"open resolved to refused":        {steps{{"A begins", "ok"}, {"resolve refused", "ok"}, {"B begins", "ok"}}, "open 2 false"},
		"unknown resolved to executed":    {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"resolve executed", "ok"}, {"A begins", executed}}, "executed 1 true"},
		"unknown resolved to not sent":    {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"resolve notsent", "ok"}, {"A begins", "ok"}}, "open 2 false"},
		"resolved, another body":          {steps{{"A begins", "ok"}, {"resolve refused", "ok"}, {"B begins other", "other body"}}, "refused 1 true"},
		"resolved, then executed":         {steps{{"A begins", "ok"}, {"resolve refused", "ok"}, {"A ends executed X-1", "ok"}, {"B begins", executed}}, "executed 1 true X-1"},
		"resolved, then unknown":          {steps{{"A begins", "ok"}, {"resolve notsent", "ok"}, {"A ends unknown", "ok"}, {"B begins", unknown}}, "unknown 1 true"},
		"executed cannot be resolved":     {steps{{"A begins", "ok"}, {"A ends executed", "ok"}, {"resolve refused", "decided"}}, "executed 1 true"},
		"refused cannot be resolved":      {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"resolve notsent", "decided"}}, "refused 1 true"},
		"refused can be corrected":        {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"resolve executed", "ok"}, {"A begins", executed}}, "executed 1 true"},
		"not sent cannot be resolved":     {steps{{"A begins", "ok"}, {"A ends notsent", "ok"}, {"resolve notsent", "decided"}}, "not_sent 1 true"},
		"resolved cannot be so once more": {steps{{"A begins", "ok"}, {"resolve notsent", "ok"}, {"resolve refused", "decided"}}, "not_sent 1 true"},

		"an answer about open":              {steps{{"A begins", "ok"}, {"B lists", "ok"}, {"answer executed", "ok"}, {"A begins", executed}}, "executed 1 true"},
		"an answer about unknown":           {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B lists", "ok"}, {"answer refused", "ok"}, {"A begins", "ok"}}, "open 2 false"},
		"an answer about open, then ended":  {steps{{"A begins", "ok"}, {"B lists", "ok"}, {"A ends unknown", "ok"}, {"answer notsent", "ok"}}, "not_sent 1 true"},
		"an answer about what was resolved": {steps{{"A begins", "ok"}, {"B lists", "ok"}, {"A ends executed", "ok"}, {"answer notsent", "decided"}}, "executed 1 true"},
		"an answer as another was":          {steps{{"A begins", "ok"}, {"B lists", "ok"}, {"resolve notsent", "ok"}, {"answer notsent", "decided"}}, "not_sent 1 true"},
		"an old answer about one under way": {
			steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B lists", "ok"}, {"resolve refused", "ok"}, {"A begins", "ok"},
				{"answer refused", "decided"}, {"B begins", unknown}}, "open 2 false"},
		"an old answer about a later unknown": {
			steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B lists", "ok"}, {"resolve refused", "ok"}, {"B begins", "ok"},
				{"B ends unknown", "ok"}, {"answer refused", "decided"}, {"A begins", unknown}}, "unknown 2 true"},
		"a new answer about a later unknown": {
			steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}, {"B ends unknown", "ok"}, {"B lists", "ok"},
				{"answer refused", "ok"}, {"A begins", "ok"}}, "open 3 false"},
		"unknown is no answer": {steps{{"A begins", "ok"}, {"B lists", "ok"},
			{"answer unknown", "sqljournal: the outcome must be executed, refused or not sent: leave the intent unresolved until one is known"}}, "open 1 false"},
		"unknown is no resolution": {steps{{"A begins", "ok"},
			{"resolve unknown", "sqljournal: the outcome must be executed, refused or not sent: leave the intent unresolved until one is known"}}, "open 1 false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, tc.steps, tc.row)
		})
	}
}

// steps are those of a story, each with what it must come to.
type steps [][2]string

// tell tells a story of a unique intent on every database, and compares the row.
func tell(t *testing.T, steps steps, row string, opts ...sqljournal.Option) {
	t.Helper()
	eachPlace(t, func(t *testing.T, at place) {
		db, _ := openNew(t, at)
		_, a := open(t, at, opts...)
		_, b := open(t, at, opts...)
		s := &story{journals: map[string]*sqljournal.Journal{"A": a, "B": b}, unique: true}
		for n, step := range steps {
			require.Equal(t, step[1], s.does(t, step[0]), "step %d: %s", n+1, step[0])
		}
		assert.Equal(t, []string{row}, rowsOf(t, db, at.Table))
	})
}

// As under Profile.ServerDeduplicates. A retry is on record before it is sent, so
// that from then on no refusal resolves it, whether or not the retry has an end.
func TestTheLifeOfARetriedIntent(t *testing.T) {
	t.Parallel()
	const again, executed = "may be retried", "taken, executed"
	for name, tc := range map[string]struct {
		steps steps
		row   string
	}{
		"of unknown, executed":         {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B begins", again}, {"B ends executed X-3", "ok"}, {"A begins", executed}}, "executed 2 true X-3"},
		"of unknown, unknown":          {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B begins", again}, {"B ends unknown", "ok"}}, "unknown 2 true"},
		"of unknown, refused":          {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B begins", again}, {"B ends refused", "ok"}, {"B begins", again}}, "unknown 3 false"},
		"of unknown, not sent":         {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"a begins", again}, {"a ends notsent", "ok"}}, "unknown 2 true"},
		"of unknown, crashed":          {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B begins", again}}, "unknown 2 false"},
		"the first identifier stays":   {steps{{"A begins", "ok"}, {"A ends unknown X-1", "ok"}, {"a begins", again}, {"a ends executed X-2", "ok"}}, "executed 2 true X-1"},
		"of open, executed":            {steps{{"A begins", "ok"}, {"B begins", again}, {"B ends executed X-3", "ok"}, {"A ends refused", "ok"}}, "executed 2 true X-3"},
		"of open, refused":             {steps{{"A begins", "ok"}, {"B begins", again}, {"B ends refused", "ok"}}, "unknown 2 true"},
		"of open, crashed":             {steps{{"A begins", "ok"}, {"B begins", again}}, "unknown 2 false"},
		"crashed, the first executed":  {steps{{"A begins", "ok"}, {"B begins", again}, {"A ends executed X-1", "ok"}, {"B begins", executed}}, "executed 2 true X-1"},
		"crashed, the first refused":   {steps{{"A begins", "ok"}, {"B begins", again}, {"A ends refused", "ok"}, {"A begins", again}}, "unknown 3 false"},
		"crashed, the first not sent":  {steps{{"A begins", "ok"}, {"a begins", again}, {"A ends notsent", "ok"}}, "unknown 2 true"},
		"of the same process, refused": {steps{{"A begins", "ok"}, {"a begins", again}, {"a ends refused", "ok"}, {"A ends refused", "ok"}}, "unknown 2 true"},
		"of refused is no retry":       {steps{{"A begins", "ok"}, {"A ends refused", "ok"}, {"B begins", "ok"}, {"B ends refused", "ok"}}, "refused 2 true"},
		"alone, refused":               {steps{{"A begins", "ok"}, {"A ends refused", "ok"}}, "refused 1 true"},
		"of another body":              {steps{{"A begins", "ok"}, {"B begins other", "other body, unknown"}, {"A ends refused", "ok"}}, "refused 1 true"},
		"of executed":                  {steps{{"A begins", "ok"}, {"A ends executed", "ok"}, {"B begins", executed}}, "executed 1 true"},
		"an answer from before it": {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B lists", "ok"}, {"B begins", again},
			{"answer refused", "decided"}}, "unknown 2 false"},
		"an answer from after it": {steps{{"A begins", "ok"}, {"A ends unknown", "ok"}, {"B begins", again}, {"B lists", "ok"},
			{"answer refused", "ok"}, {"A begins", "ok"}}, "open 3 false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(t, tc.steps, tc.row, sqljournal.WithRepeats())
		})
	}
}

// While a retry may be under way, its intent is as young as the retry.
func TestARetryIsNotTooOldForAnAnswer(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		openNew(t, at)
		db, journal := open(t, at, sqljournal.WithRepeats())
		i := intent("M-1")
		require.NoError(t, journal.Begin(t.Context(), i))
		date(t, db, at, "M-1", time.Now().Add(-time.Hour))
		require.Equal(t, []string{"M-1"}, references(t, journal, time.Minute))
		i.Time = time.Now()
		require.Equal(t, "may be retried", word(journal.Begin(t.Context(), i)))
		assert.Empty(t, references(t, journal, time.Minute))
		all := list(t, journal, 0)
		assert.True(t, all[0].Open, "no result was told since")
	})
}

// A record may fail again, so that each cancelling and retrying is its own.
func TestIntentsThatAreNotUniqueStandBesideEachOther(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, a := openNew(t, at)
		_, b := open(t, at)
		s := &story{journals: map[string]*sqljournal.Journal{"A": a, "B": b}}
		for _, step := range [][2]string{
			{"A begins", "ok"}, {"A begins", "ok"}, {"a begins other", "ok"}, {"B begins", "ok"}, {"B begins", "ok"},
			{"A ends executed X-1", "ok"}, {"A ends refused", "ok"}, {"B ends unknown", "ok"},
			{"a ends executed", "recorded again"},
		} {
			require.Equal(t, step[1], s.does(t, step[0]), step[0])
		}
		assert.Equal(t, []string{"executed 1 true X-1", "refused 1 true", "open 1 false", "unknown 1 true", "open 1 false", "executed 1 true"},
			rowsOf(t, db, at.Table))

		for _, e := range list(t, a, 0) {
			require.NoError(t, a.Resolve(t.Context(), e, sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent}))
		}
		assert.Equal(t, []string{"executed 1 true X-1", "refused 1 true", "not_sent 1 true", "not_sent 1 true", "not_sent 1 true", "executed 1 true"},
			rowsOf(t, db, at.Table), "what is resolved stays as it is")
		assert.Equal(t, "decided", s.does(t, "resolve executed"))

		unique := &story{journals: s.journals, unique: true}
		assert.Equal(t, "ok", unique.does(t, "A begins"), "a unique intent is another thing")
	})
}

func TestWhatWasNeverBegunIsNotFound(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		for _, try := range []string{"1-1", "", "1", "-", "x-1", "1-1-1"} {
			never := sqljournal.Entry{Op: "CreateTransfer", Reference: "M-1", Try: try}
			assert.Same(t, sqljournal.ErrNoIntent, journal.Resolve(t.Context(), never, sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}))
		}
		_, err := journal.Lookup(t.Context(), "CreateTransfer", "M-1")
		assert.Same(t, sqljournal.ErrNoIntent, err)
		_, err = journal.History(t.Context(), "CreateTransfer", "M-1")
		assert.Same(t, sqljournal.ErrNoIntent, err)
		assert.NoError(t, journal.Look(t.Context(), "CreateTransfer", "M-1"))
		assert.Empty(t, rowsOf(t, db, at.Table))
	})
}

func TestReferencesAreTakenByOperationAndToTheLetter(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		freeze := intent("M-1")
		freeze.Op = "FreezeCard"
		for _, i := range []cardwire.Intent{
			intent("M-1"), freeze, intent("m-1"), intent("M-1 "), intent("M-10"), intent("Ünïcode-№1"), intent("'; DROP TABLE x; --"),
		} {
			require.NoError(t, journal.Begin(t.Context(), i))
			assert.Equal(t, "taken, unknown", word(journal.Begin(t.Context(), i)))
		}
	})
}

// date makes the intent be begun at another time.
func date(t *testing.T, db *sql.DB, at place, reference string, begun time.Time) {
	t.Helper()
	var parameter any = begun
	if at.Dialect == sqljournal.SQLite {
		parameter = begun.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	_, err := db.ExecContext(t.Context(), "UPDATE "+at.Table+" SET created_at = $1, begun_at = $1, send_by = $1 WHERE reference = $2", parameter, reference)
	require.NoError(t, err)
}

// The clocks of several machines differ: PostgreSQL's alone counts there.
func TestWhoseClockCounts(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		i := intent("M-1")
		i.Time = time.Now().Add(-time.Hour) // a machine an hour behind
		require.NoError(t, journal.Begin(t.Context(), i))
		all := list(t, journal, 0)
		require.Len(t, all, 1)
		assert.Equal(t, all[0].BegunAt, all[0].CreatedAt)
		if at.Dialect == sqljournal.SQLite {
			assert.Equal(t, i.Time.UTC().Truncate(time.Microsecond), all[0].BegunAt)
			return
		}
		assert.WithinDuration(t, time.Now(), all[0].BegunAt, time.Minute)
		assert.Empty(t, references(t, journal, 30*time.Minute), "it has only just begun")
	})
}

func TestUnresolvedTellsWhatIsKnown(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		assert.Empty(t, list(t, journal, 0))

		for n, result := range []string{"", "unknown", "executed", "refused", "notsent"} {
			i := intent(fmt.Sprintf("M-%d", n))
			require.NoError(t, journal.Begin(t.Context(), i))
			date(t, db, at, i.Reference, morning.Add(-time.Duration(n)*time.Minute).Truncate(time.Microsecond)) // the later in the list, the older
			if result != "" {
				require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: outcomes[result], ServiceID: "X-9"}))
			}
		}
		cancel := cardwire.Intent{Op: "CancelOperation", Reference: "c-1", BodySHA256: "02", Time: time.Now()}
		require.NoError(t, journal.Begin(t.Context(), cancel))
		date(t, db, at, cancel.Reference, cancel.Time.Truncate(time.Microsecond))

		all := list(t, journal, 0)
		require.Len(t, all, 3)
		assert.WithinDuration(t, time.Now(), all[0].EndedAt, time.Minute)
		assert.Equal(t, all[0].EndedAt, all[0].SendBy, "after its end a call sends nothing")
		all[0].EndedAt, all[0].SendBy = time.Time{}, time.Time{}
		forgetTries(t, all)
		first := time.Date(2026, 11, 21, 4, 0, 15, 123456000, time.UTC)
		today := cancel.Time.UTC().Truncate(time.Microsecond)
		assert.Equal(t, []sqljournal.Entry{
			{Op: "CreateTransfer", Reference: "M-1", BodySHA256: canaryBody, Unique: true, Attempts: 1, ServiceID: "X-9",
				CreatedAt: first.Add(-time.Minute), BegunAt: first.Add(-time.Minute)},
			{Op: "CreateTransfer", Reference: "M-0", BodySHA256: canaryBody, Unique: true, Open: true, Attempts: 1, CreatedAt: first, BegunAt: first, SendBy: first},
			{Op: "CancelOperation", Reference: "c-1", BodySHA256: "02", Open: true, Attempts: 1, CreatedAt: today, BegunAt: today, SendBy: today},
		}, all)
	})
}

// forgetTries takes away what has no meaning outside the journal.
func forgetTries(t *testing.T, entries []sqljournal.Entry) {
	t.Helper()
	seen := map[string]bool{"": true}
	for n := range entries {
		require.NotContains(t, seen, entries[n].Try)
		seen[entries[n].Try], entries[n].Try = true, ""
	}
}

// Of intents beside each other, an answer resolves the one that was asked about.
func TestAnAnswerResolvesOneOfSeveralIntents(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		s := &story{journals: map[string]*sqljournal.Journal{"A": journal, "B": journal}}
		for _, step := range []string{"A begins", "a begins", "B lists", "answer executed"} {
			require.Equal(t, "ok", s.does(t, step), step)
		}
		assert.Equal(t, []string{"executed 1 true", "open 1 false"}, rowsOf(t, db, at.Table))
		assert.Equal(t, "decided", s.does(t, "answer executed"))
	})
}

func TestUnresolvedLeavesOutWhatIsYoung(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		for reference, age := range map[string]time.Duration{"ahead": -time.Hour, "young": 5 * time.Minute, "old": 2 * time.Hour} {
			require.NoError(t, journal.Begin(t.Context(), intent(reference)))
			date(t, db, at, reference, time.Now().Add(-age))
		}
		for grace, want := range map[time.Duration][]string{
			3 * time.Hour: {"ahead"}, time.Hour: {"old", "ahead"}, time.Minute: {"old", "young", "ahead"}, 0: {"old", "young", "ahead"}, -time.Minute: {"old", "young", "ahead"},
		} {
			assert.Equal(t, want, references(t, journal, grace), grace)
		}
	})
}

func references(t *testing.T, journal *sqljournal.Journal, grace time.Duration) (all []string) {
	t.Helper()
	for _, e := range list(t, journal, grace) {
		all = append(all, e.Reference)
	}
	return all
}

func list(t *testing.T, journal *sqljournal.Journal, grace time.Duration) (all []sqljournal.Entry) {
	t.Helper()
	for e, err := range journal.Unresolved(t.Context(), grace) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// Begun again, an intent keeps when it was first begun, and has no end yet.
func TestAnIntentThatIsBegunAgainKeepsItsFirstTime(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		i := intent("M-1")
		require.NoError(t, journal.Begin(t.Context(), i))
		require.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}))
		first := time.Date(2026, 1, 2, 4, 0, 15, 123456000, time.UTC)
		date(t, db, at, "M-1", first)
		i.Time = time.Now()
		require.NoError(t, journal.Begin(t.Context(), i))

		entries := list(t, journal, 0)
		forgetTries(t, entries)
		require.Len(t, entries, 1)
		require.WithinDuration(t, time.Now(), entries[0].BegunAt, time.Minute)
		assert.Equal(t, []sqljournal.Entry{{Op: "CreateTransfer", Reference: "M-1", BodySHA256: canaryBody, Unique: true, Open: true,
			Attempts: 2, CreatedAt: first, BegunAt: entries[0].BegunAt, SendBy: entries[0].BegunAt}}, entries)
	})
}

func TestADoneContextIsHonouredAndLeavesNoRow(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, journal.Begin(ctx, intent("M-2")), context.Canceled)
		require.ErrorIs(t, journal.End(ctx, intent("M-1"), cardwire.IntentResult{}), context.Canceled)
		e, err := journal.Lookup(t.Context(), "CreateTransfer", "M-1")
		require.NoError(t, err)
		_, lookup := journal.Lookup(ctx, e.Op, e.Reference)
		_, history := journal.History(ctx, e.Op, e.Reference)
		_, stats := journal.Stats(ctx)
		_, identity := journal.Identity(ctx)
		for _, err := range []error{
			journal.Resolve(ctx, e, sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}), journal.Void(ctx, e.Op, "M-3", "", ""),
			journal.Look(ctx, e.Op, e.Reference), journal.Migrate(ctx), journal.Verify(ctx), lookup, history, stats, identity,
		} {
			require.ErrorIs(t, err, context.Canceled)
		}
		for _, err := range journal.Unresolved(ctx, 0) {
			require.ErrorIs(t, err, context.Canceled)
		}
		assert.Equal(t, []string{"open 1 false"}, rowsOf(t, db, at.Table))
	})
}

// Where Begin fails, nothing is sent: the reference must then be free, although
// the row came to be. A statement that was begun is waited for even if its context
// is done, since a server may execute what nobody waits for after it was released.
func TestWhenBeginFailsTheReferenceIsFree(t *testing.T) {
	t.Parallel()
	eachPlace(t, unhurried(func(t *testing.T, at place) {
		openNew(t, at)
		journal, outage := during(t, at, context.Canceled)
		var failed, begun int
		for n := range 60 {
			i := intent(fmt.Sprintf("M-%d", n))
			ctx, cancel := context.WithCancel(t.Context())
			outage.executing = cancel
			if n > 0 { // not before its statement, but at some moment of it
				outage.executing = func() { go cancelLater(cancel, n) }
			}
			outage.lost.Store(int64(n % 2))
			err := journal.Begin(ctx, i)
			cancel()
			if err == nil {
				begun++
				continue
			}
			require.ErrorIs(t, err, context.Canceled)
			failed++
			require.Equal(t, "ok", word(journal.Begin(t.Context(), i)))
		}
		assert.Equal(t, 30, failed)
		assert.Equal(t, 30, begun)
	}))
}

// cancelLater lets others run n times before it cancels.
func cancelLater(cancel context.CancelFunc, n int) {
	for range n {
		runtime.Gosched()
	}
	cancel()
}

// A Begin that waits in vain ends two seconds after its context: one for its
// statement, one to release what it may have recorded.
func TestABeginThatWaitsInVainEnds(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	synctest.Test(t, func(t *testing.T) {
		db, journal := openNew(t, at)
		lock, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		defer func() { assert.NoError(t, lock.Rollback()) }()
		_, err = lock.ExecContext(t.Context(), "DELETE FROM "+at.Table)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, journal.Begin(ctx, intent("M-1")), context.DeadlineExceeded)
		assert.Equal(t, 30*time.Millisecond+2*time.Second, time.Since(start))
	})
}

// Two calls of one journal in one tick of the clock: that the second fails does
// not take from the first what it holds.
func TestACallThatFailsReleasesNoOthersIntent(t *testing.T) {
	t.Parallel()
	at := onSQLite(t, "")
	synctest.Test(t, func(t *testing.T) {
		db, journal := openNew(t, at)
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))

		lock, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = lock.ExecContext(t.Context(), "UPDATE "+at.Table+" SET attempts = attempts")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		unlocked := make(chan error, 1)
		context.AfterFunc(ctx, func() { unlocked <- lock.Rollback() })
		require.ErrorIs(t, journal.Begin(ctx, intent("M-1")), context.DeadlineExceeded)
		require.NoError(t, <-unlocked)
		assert.Equal(t, []string{"open 1 false"}, rowsOf(t, db, at.Table))
	})
}

func TestErrorsHoldNoReferenceAndNoHash(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		_, missing := open(t, place{at.Driver, at.Source, at.Dialect, "there_is_none"})
		i := intent(canaryReference)
		require.NoError(t, journal.Begin(t.Context(), i))
		other := i
		other.BodySHA256 = canaryBody + "0"
		broken := intent(canaryReference + "\xff\x00")
		e, err := journal.Lookup(t.Context(), i.Op, i.Reference)
		require.NoError(t, err)
		executed, notSent := sqljournal.Resolution{Outcome: cardwire.OutcomeExecuted}, sqljournal.Resolution{Outcome: cardwire.OutcomeNotSent}
		_, noTable := missing.Lookup(t.Context(), i.Op, i.Reference)
		early := i
		early.Reference, early.SendBy = canaryReference+"1", time.Now().Add(time.Hour)
		require.NoError(t, journal.Begin(t.Context(), early))
		tooEarly, err := journal.Lookup(t.Context(), i.Op, early.Reference)
		require.NoError(t, err)
		errs := map[string]error{
			"another try":     journal.Resolve(t.Context(), sqljournal.Entry{Op: i.Op, Reference: canaryReference, Try: canaryBody}, executed),
			"taken":           journal.Begin(t.Context(), i),
			"other body":      journal.Begin(t.Context(), other),
			"end":             journal.End(t.Context(), other, cardwire.IntentResult{}),
			"not found":       journal.Resolve(t.Context(), sqljournal.Entry{Op: i.Op, Reference: canaryReference + "0"}, executed),
			"unknown":         journal.Resolve(t.Context(), e, sqljournal.Resolution{}),
			"too early":       journal.Resolve(t.Context(), tooEarly, notSent),
			"void":            journal.Void(t.Context(), i.Op, canaryReference, "", canaryBody),
			"no table":        missing.Begin(t.Context(), i),
			"no table, end":   missing.End(t.Context(), i, cardwire.IntentResult{}),
			"no table, solve": missing.Resolve(t.Context(), e, executed),
			"no table, find":  noTable,
		}
		if at.Dialect == sqljournal.PostgreSQL { // SQLite takes any bytes
			errs["not UTF-8"] = journal.Begin(t.Context(), broken)
		}
		require.NoError(t, db.Close())
		errs["closed"] = journal.Begin(t.Context(), i)
		for name, err := range errs {
			require.Error(t, err, name)
			for _, verb := range []string{"%v", "%+v", "%s", "%q"} {
				text := fmt.Sprintf(verb, err)
				assert.NotContains(t, text, canaryReference, name)
				assert.NotContains(t, text, canaryBody, name)
				assert.Regexp(t, "^\"?(sqljournal|cardwire): ", text, name)
			}
		}
	})
}

func TestAnIntentNeedsAnOperationAndAReference(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := openNew(t, at)
		nameless := intent("M-1")
		nameless.Op = ""
		for _, i := range []cardwire.Intent{intent(""), nameless} {
			assert.EqualError(t, journal.Begin(t.Context(), i), "sqljournal: an intent needs an operation and a reference")
		}
		assert.Empty(t, rowsOf(t, db, at.Table))
	})
}

func TestTheTablesAreCreatedOnceHoweverOften(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, journal := open(t, at)
		var group sync.WaitGroup
		for range 8 {
			_, journal := open(t, at)
			group.Go(func() { assert.NoError(t, journal.Migrate(t.Context())) })
		}
		group.Wait()
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		require.NoError(t, journal.Migrate(t.Context()))
		assert.Equal(t, []string{"open 1 false"}, rowsOf(t, db, at.Table))
	})
}

func TestTablesAreApart(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		_, journal := openNew(t, at)
		require.NoError(t, journal.Begin(t.Context(), intent("M-1")))
		elsewhere := at
		elsewhere.Table = at.Table + "_2"
		db, other := openNew(t, elsewhere)
		t.Cleanup(func() { drop(t, db, elsewhere.Table) })
		assert.NoError(t, other.Begin(t.Context(), intent("M-1")))
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	db, _ := open(t, onSQLite(t, ""))
	for want, err := range map[string]error{
		"sqljournal: the database is nil":                      refusal(nil, sqljournal.SQLite),
		"sqljournal: the dialect must be SQLite or PostgreSQL": refusal(db, 0),
		"sqljournal: an option is nil":                         refusal(db, sqljournal.SQLite, nil),
	} {
		assert.EqualError(t, err, want)
	}
	for _, name := range []string{"", "1a", "a-b", "a b", "a;b", `a"b`, "A", "a.b.c", ".a", "s.", strings.Repeat("a", 49)} {
		assert.EqualError(t, refusal(db, sqljournal.SQLite, sqljournal.WithTable(name)),
			"sqljournal: the name of a table must be at most 48 of a-z, 0-9 and _, and not begin with a digit; a schema may precede it, as in payments.cardwire_intents", name)
	}
	assert.NoError(t, refusal(db, sqljournal.PostgreSQL, sqljournal.WithTable("_"+strings.Repeat("z", 47))))
	assert.Equal(t, "SQLite PostgreSQL Dialect(0)", fmt.Sprint(sqljournal.SQLite, sqljournal.PostgreSQL, sqljournal.Dialect(0)))
}

func refusal(db *sql.DB, dialect sqljournal.Dialect, opts ...sqljournal.Option) error {
	_, err := sqljournal.New(db, dialect, opts...)
	return err
}

// Of 64 calls that begin a reference at once, in four processes' journals, one
// does; and again after each refusal.
func TestOfManyThatBeginAtOnceOneDoes(t *testing.T) {
	t.Parallel()
	const rounds, callers = 3, 64
	eachPlace(t, unhurried(func(t *testing.T, at place) {
		openNew(t, at)
		var journals []*sqljournal.Journal
		for range 4 {
			db, journal := open(t, at)
			db.SetMaxOpenConns(8) // a server for tests takes only so many
			journals = append(journals, journal)
		}
		for round := range rounds {
			var winners atomic.Int32
			var winner atomic.Pointer[func()]
			start := make(chan struct{})
			var group sync.WaitGroup
			for n := range callers {
				journal, i := journals[n%len(journals)], intent("M-1")
				i.Time = i.Time.Add(time.Duration(n))
				group.Go(func() {
					<-start
					err := journal.Begin(t.Context(), i)
					if err != nil {
						assert.Equal(t, "taken, unknown", word(err))
						return
					}
					winners.Add(1)
					refused := func() {
						assert.NoError(t, journal.End(t.Context(), i, cardwire.IntentResult{Outcome: cardwire.OutcomeRefused}))
					}
					winner.Store(&refused)
				})
			}
			close(start)
			group.Wait()
			require.EqualValues(t, 1, winners.Load(), "round %d", round)
			(*winner.Load())()
		}
	}))
}
