package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
)

// kept are the results that End could not record.
type kept struct {
	mu  sync.Mutex
	all []*ending
}

// maxKept bounds them: what does not fit is for a person, who asks the service.
const maxKept = 10_000

// keep keeps a result that err has kept from the record, unless the database refuses it for its own sake.
func (j *Journal) keep(e *ending, err error) {
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	if !isRefused(err) && len(j.kept.all) < maxKept {
		e.isTried = true
		j.kept.all = append(j.kept.all, e)
	}
}

// isRefused reports whether PostgreSQL refuses what is to be stored, and always will: a string, or what a constraint of
// the merchant's own forbids.
func isRefused(err error) bool {
	state := database.State(err)
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23")
}

// Flush records the results that End could not, as while the database was away: call it on a timer, and before the
// program ends. Otherwise a result is recorded when the Journal next has to do with its reference; at most 10,000 are
// kept. Flush returns the failure of the database, which it can be called again after, and once what End would have
// returned of each that was recorded, or that the database refuses for its own sake, with its reference.
func (j *Journal) Flush(ctx context.Context) error {
	err := j.record(ctx, func(*ending) bool { return true })
	var told []error
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	j.kept.all = slices.DeleteFunc(j.kept.all, func(e *ending) bool {
		if e.over != nil {
			told = append(told, fmt.Errorf("sqljournal: the result of %s %s: %w", e.intent.Op, e.intent.Reference, e.over))
		}
		return e.over != nil
	})
	return errors.Join(append(told, err)...)
}

// flush is Flush for the reference of an intent, before anything else is done with it.
func (j *Journal) flush(ctx context.Context, i cardwire.Intent) error {
	return j.record(ctx, func(e *ending) bool { return e.intent.Op == i.Op && e.intent.Reference == i.Reference })
}

// record records some of what was kept, until the database fails. Others may do the same at the same time: a result is
// recorded once.
func (j *Journal) record(ctx context.Context, some func(*ending) bool) error {
	j.kept.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(j.kept.all), func(e *ending) bool { return e.over != nil || !some(e) })
	j.kept.mu.Unlock()
	for _, e := range all {
		try := *e
		flaw, err := j.end(ctx, &try)
		if err != nil && !isRefused(err) {
			return err
		}
		j.kept.mu.Lock()
		if e.over = cmp.Or(err, flaw); e.over == nil {
			j.kept.all = slices.DeleteFunc(j.kept.all, func(other *ending) bool { return other == e })
		}
		j.kept.mu.Unlock()
	}
	return nil
}
