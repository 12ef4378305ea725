package sqljournal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
)

// kept are the results that End could not record, and those of calls whose Begin failed, until they could not send any
// more: what such a Begin has left may come late, and is ended whenever the reference is used.
type kept struct {
	mu  sync.Mutex
	all []*ending
}

// maxKept bounds them: what does not fit is for a person, who asks the service.
const maxKept = 10_000

// keep keeps a result that err has kept from the record, unless the database refuses it for its own sake. What was sent
// takes the place of what was not.
func (j *Journal) keep(e *ending, err error) {
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	n := slices.IndexFunc(j.kept.all, func(e *ending) bool { return e.isUnsent })
	if len(j.kept.all) >= maxKept && n >= 0 {
		j.kept.all = slices.Delete(j.kept.all, n, n+1)
	}
	if !isRefused(err) && len(j.kept.all) < maxKept {
		j.kept.all = append(j.kept.all, e)
	}
}

// isUnsent reports whether the Begin of a call has failed.
func (j *Journal) isUnsent(call string) bool {
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	return slices.ContainsFunc(j.kept.all, func(e *ending) bool { return e.isUnsent && e.intent.Call == call })
}

// isRefused reports whether PostgreSQL refuses what is to be stored, and always will: a string, or what a constraint of
// the merchant's own forbids.
func isRefused(err error) bool {
	state := database.State(err)
	return strings.HasPrefix(state, "22") || strings.HasPrefix(state, "23")
}

// Flush records the results that End could not, as while the database was away, and ends what a Begin that failed has
// left: call it on a timer, and before the program ends. Otherwise a result is recorded when the Journal next has to do
// with its reference; at most 10,000 are kept. Flush returns the first failure of the database, which it can be called
// again after, and once what End would have returned of each that was recorded, or that the database refuses for its own
// sake, with its reference.
func (j *Journal) Flush(ctx context.Context) error {
	err := j.record(ctx, func(*ending) bool { return true })
	var told []error
	j.kept.mu.Lock()
	defer j.kept.mu.Unlock()
	j.kept.all = slices.DeleteFunc(j.kept.all, func(e *ending) bool {
		if e.flaw != nil {
			told = append(told, fmt.Errorf("sqljournal: the result of %s %s: %w", e.intent.Op, e.intent.Reference, e.flaw))
		}
		return e.flaw != nil
	})
	return errors.Join(append(told, err)...)
}

// flush is Flush for the reference of an intent, before anything else is done with it.
func (j *Journal) flush(ctx context.Context, i cardwire.Intent) error {
	return j.record(ctx, func(e *ending) bool { return e.intent.Op == i.Op && e.intent.Reference == i.Reference })
}

// record records some of what was kept, and returns the first failure: of one result it does not keep others from the
// record, unless the database is away or locked. Others may do the same at the same time: a result is recorded once.
func (j *Journal) record(ctx context.Context, some func(*ending) bool) (err error) {
	for _, e := range j.kept.some(some) {
		try := &ending{intent: e.intent, result: e.result, isUnsent: e.isUnsent, isTried: true, vanished: e.vanished}
		var flaw error
		failed := database.Again(ctx, j.busy, func() (err error) {
			flaw, err = j.end(ctx, try)
			return err
		})
		if failed != nil && !isRefused(failed) {
			err = cmp.Or(err, failed)
			if _, away := j.Identity(ctx); away != nil || j.busy(failed) {
				return err
			}
			continue
		}
		j.kept.end(e, cmp.Or(failed, flaw))
	}
	return err
}

// some returns some of those that are to be recorded.
func (k *kept) some(some func(*ending) bool) []*ending {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(k.all), func(e *ending) bool { return e.flaw != nil || !some(e) })
}

// end notes that a result is on record, or refused. What a failed Begin has left may come until the call could not send.
func (k *kept) end(e *ending, flaw error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.flaw = flaw; flaw == nil && !(e.isUnsent && time.Now().Before(e.intent.SendBy)) {
		k.all = slices.DeleteFunc(k.all, func(other *ending) bool { return other == e })
	}
}
