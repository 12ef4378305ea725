package merchant

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"sync"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/test/lab/chaos"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// desk is the service's support.
type desk struct{ url string }

// question asks about orders. Late says that the merchant has waited for as long as
// the service may take.
type question struct {
	References []string
	Late       bool
}

// What support says of an order. It may also say nothing yet.
const (
	executed = "executed"
	notFound = "not found"
)

func (d desk) ask(ctx context.Context, q question) (found map[string]string, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := new(http.Client).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("support responded with %s", resp.Status)
	}
	return found, json.NewDecoder(resp.Body).Decode(&found)
}

// support asks about what is unresolved, and writes down what it hears.
func (m *merchant) support(ctx context.Context) error {
	for ctx.Err() == nil {
		// "Executed" is true whenever it is said. "Not found" is so only once nothing
		// of the call can be sent, and the service has had its time.
		for _, late := range []bool{false, true} {
			if m.journal != nil {
				_ = m.resolveJournal(ctx, late) // the next round tries again: its database may be away
			} else if err := m.resolveTable(ctx, late); err != nil && ctx.Err() == nil {
				return err
			}
		}
		if pause(ctx, supportEvery) != nil {
			return nil
		}
	}
	return nil
}

func (m *merchant) grace(late bool) time.Duration {
	if late {
		return m.Grace
	}
	return 0
}

func (m *merchant) resolveJournal(ctx context.Context, late bool) error {
	var entries []sqljournal.Entry
	q := question{Late: late}
	asked := time.Now()
	for e, err := range m.journal.Unresolved(ctx) {
		if err != nil {
			return err
		}
		if late && asked.Before(e.SettledBy) {
			continue
		}
		entries, q.References = append(entries, e), append(q.References, e.Reference)
	}
	found, err := m.desk.ask(ctx, q)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := m.resolve(ctx, e, found[e.Reference], late, asked); err != nil && !errors.Is(err, sqljournal.ErrDecided) {
			return err // another process has resolved it already
		}
	}
	return nil
}

func (m *merchant) resolve(ctx context.Context, e sqljournal.Entry, found string, late bool, asked time.Time) error {
	r := cardwire.Resolution{By: "support", Note: found, AsOf: asked}
	switch {
	case found == executed:
		r.Outcome, r.ServiceID = cardwire.OutcomeExecuted, "AO-"+e.Reference
	case found == notFound && late:
		r.Outcome = cardwire.OutcomeNotSent
	default:
		return nil // it is asked again
	}
	if err := m.journal.Resolve(ctx, e.Intent, r); err != nil || r.Outcome == cardwire.OutcomeExecuted || dice(e.Reference, 3) != 0 {
		return err
	}
	// The customer did not wait. The next message is told that the order is closed; if
	// one was faster, it was sent again, and this one is too late.
	err := m.journal.Void(ctx, e.Intent, "merchant", "the customer has gone")
	if errors.Is(err, cardwire.ErrDuplicateIntent) {
		return nil
	}
	return err
}

// resolveTable is for a merchant without a journal.
func (m *merchant) resolveTable(ctx context.Context, late bool) error {
	references, err := m.table.unresolved(ctx, m.grace(late))
	if err != nil || len(references) == 0 {
		return err
	}
	found, err := m.desk.ask(ctx, question{references, late})
	if err != nil {
		return err
	}
	var errs []error
	for _, reference := range references {
		switch {
		case found[reference] == executed:
			errs = append(errs, m.table.resolve(ctx, reference, stateSubmitted, "AO-"+reference))
		case found[reference] == notFound && late && dice(reference, 3) == 0:
			errs = append(errs, m.table.resolve(ctx, reference, stateFailed, ""))
		case found[reference] == notFound && late:
			errs = append(errs, m.table.resolve(ctx, reference, stateNew, ""))
		}
	}
	return errors.Join(errs...)
}

// dice is always the same for a reference.
func dice(reference string, sides uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(reference))
	return h.Sum32() >> 8 % sides
}

// supporter is who sits at the desk, with the ledger.
type supporter struct {
	ledger *chaos.Ledger

	mu    sync.Mutex
	asked map[string]int
	wrong map[string]bool // who was told "not found" of what was on its way to be executed
}

func (s *supporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, "not a question", http.StatusBadRequest)
		return
	}
	found := map[string]string{}
	for _, reference := range q.References {
		found[reference] = s.look(reference, q.Late)
	}
	_ = json.NewEncoder(w).Encode(found) // who has gone asks again
}

// look says nothing at first of two orders in three.
func (s *supporter) look(reference string, late bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := chaos.Order{Op: operation, Reference: reference}
	s.asked[reference]++
	switch {
	case s.asked[reference] <= int(dice("patience "+reference, 3)):
		return ""
	case s.ledger.Executions(order) > 0:
		return executed
	case s.ledger.Pending(order) && late:
		return "" // of what is on its way, it is not said that it was not found
	case s.ledger.Pending(order):
		s.wrong[reference] = true
	}
	return notFound
}

// wrongs returns how often "not found" was said of what was executed in the end.
func (s *supporter) wrongs() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for reference := range s.wrong {
		if s.ledger.Executions(chaos.Order{Op: operation, Reference: reference}) > 0 {
			n++
		}
	}
	return n
}
