package sqljournal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// The journal in memory, those in each database, and the rules themselves say the same of the same
// steps, and have the same on record after each.
func TestTheJournalsAgree(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, at place) {
		db, j := openNew(t, at)
		for seed := range uint64(*flagHistories) {
			luck := rand.New(rand.NewPCG(seed, 7))
			h := &history{T: t, journal: j, reference: fmt.Sprint("M-", seed), start: time.Now()}
			memory := inMemory{journal.NewMemory()}
			var s recordState
			var told strings.Builder
			for range 40 {
				o := h.draw(luck)
				if seed%2 == 0 && o.what == "end" && !strings.Contains(s.begun, o.call.name) {
					continue // the memory forgets no Begin
				}
				next, want := h.step(s, o)
				fmt.Fprintf(&told, "%+v: %s\n", o, want)
				require.Equal(t, want, h.ask(t.Context(), j, o), "seed %d:\n%s", seed, &told)
				s = next
				h.compare(s.Record, told.String())
				switch {
				case seed%2 == 0:
					require.Equal(t, want, h.ask(t.Context(), memory, o), "seed %d, in memory:\n%s", seed, &told)
				case luck.IntN(4) == 0: // which is never on hold
					fmt.Fprintln(&told, h.holds(luck, db, at))
				}
			}
			execute(t, db, "UPDATE "+at.Table+"_journal SET held_by = '', floor = NULL, back = 0")
		}
	})
}

// draw returns any step.
func (h *history) draw(luck *rand.Rand) action {
	o := action{what: []string{"begin", "begin", "end", "end", "reserve", "void", "resolve", "resolve"}[luck.IntN(8)]}
	o.call = callOf(luck.IntN(5), uint64(luck.IntN(3))) // most steps are of a call that there was
	o.call.age = []time.Duration{isNew, isSent, isOver, isOver}[luck.IntN(4)]
	switch o.what {
	case "end":
		o.result = []string{"executed", "refused", "final", "not_sent", ""}[luck.IntN(5)]
	case "void":
		o.call.body = []string{o.call.body, ""}[luck.IntN(2)]
		o.call.name = []string{o.call.name, ""}[luck.IntN(2)] // the client's, or a person's
	case "reserve":
		o.call.body = []string{o.call.body, o.call.body, ""}[luck.IntN(3)]
	case "resolve":
		o.result = []string{"executed", "refused", "not_sent"}[luck.IntN(3)]
		o.isEarly = luck.IntN(4) == 0
	}
	if o.result == "executed" && luck.IntN(3) > 0 {
		o.id = h.id(o.call)
	}
	return o
}

// holds puts the journal on hold, lets its floor pass, releases it, or has it moved.
func (h *history) holds(luck *rand.Rand, db *sql.DB, at place) string {
	floor := -30 * time.Second // after whoever asked early
	switch what := []string{"hold", "floor", "release", "move"}[luck.IntN(4)]; {
	case what == "hold":
		require.NoError(h, h.journal.Hold(h.Context(), "Ada", "", 0))
		h.wasHeld, h.back, h.era = h.hold.By != "", h.hold.Era, h.era+1
		h.hold = journal.Hold{By: "Ada", Floor: h.start.Add(time.Hour), Era: h.era}
	case what == "move" && at.Dialect == sqljournal.PostgreSQL && h.hold.By != "":
		execute(h, db, "UPDATE "+at.Table+"_journal SET in_table = '1'")
		err := h.journal.Moved(h.Context(), "Ada", "")
		if h.wasHeld {
			require.ErrorIs(h, err, sqljournal.ErrDecided)
			execute(h, db, "UPDATE "+at.Table+"_journal SET in_table = tableoid::text")
			break
		}
		require.NoError(h, err)
		h.hold = journal.Hold{Floor: h.start, Era: h.back}
	case h.hold.Floor.After(h.start) && what == "floor":
		h.hold.Floor = h.start.Add(floor)
		text := time.Now().Add(floor).UTC().Format("2006-01-02T15:04:05.000000Z")
		execute(h, db, "UPDATE "+at.Table+"_journal SET floor = '"+text+"'")
	case what == "release" && !h.hold.Floor.After(h.start):
		require.NoError(h, h.journal.Release(h.Context(), "Ada", ""))
		h.hold.By = ""
	}
	return fmt.Sprintf("%+v", h.hold)
}

// compare compares the record with what the database has.
func (h *history) compare(want journal.Record, told string) {
	h.Helper()
	e, err := h.journal.Lookup(h.Context(), h.intent(callIn{}).Op, h.reference)
	if !want.Exists() {
		require.ErrorIs(h, err, sqljournal.ErrNoIntent, told)
		return
	}
	require.NoError(h, err, told)
	got := recordOf(e)
	for what, times := range map[string][2]time.Time{
		"Time": {want.Time, got.Time}, "SendBy": {want.SendBy, got.SendBy}, "SettledBy": {want.SettledBy, got.SettledBy},
		"EndedAt": {want.EndedAt, got.EndedAt},
	} {
		require.WithinDuration(h, times[0], times[1], time.Minute, "%s:\n%s", what, told)
	}
	want.Time, want.SendBy, want.SettledBy, want.EndedAt = got.Time, got.SendBy, got.SettledBy, got.EndedAt
	want = want.In(h.hold)
	want.Service, want.Closed, want.Era = got.Service, want.IsClosed(), 0
	require.Equal(h, want, got, told)
}

// inMemory is the journal in memory, with errors of this package.
type inMemory struct{ *journal.Memory }

func (j inMemory) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	if err := j.Memory.End(ctx, i, r); err != nil {
		return errors.Join(sqljournal.ErrContradiction, err)
	}
	return nil
}

func (j inMemory) Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error {
	err := j.Memory.Resolve(ctx, i, found)
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "nothing is on record"):
		return sqljournal.ErrNoIntent
	}
	return errors.Join(sqljournal.ErrDecided, err)
}
