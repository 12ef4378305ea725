package cardwiretest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cardwire/cardwire-go"
)

// shop is a merchant that does what NextStep says.
type shop struct {
	client  *cardwire.Client
	world   *World
	journal *SimulatedJournal
	orders  *orders
	defect  string // what it does wrong; "": nothing
}

// orders is its table, which outlives it.
type orders struct {
	mu   sync.Mutex
	rows map[string]*shopRow
}

type shopRow struct {
	params cardwire.TransferParams
	shown  Shown
	after  time.Time // when it is sent next
}

func newShop(w *World) Program { return newShopThat("")(w) }

func newShopThat(defect string) func(w *World) Program {
	return func(w *World) Program {
		table := w.Value("orders", func() any { return &orders{rows: map[string]*shopRow{}} })
		var opts []cardwire.Option
		if defect == "resends after a crash without asking" {
			opts = append(opts, cardwire.WithJournal(cardwire.NewMemoryJournal()))
		}
		return &shop{w.Client(opts...), w, w.Journal(), table.(*orders), defect}
	}
}

func (s *shop) Take(_ context.Context, p cardwire.TransferParams) error {
	return s.world.Do("insert "+p.MerchantOrderNo, func() error {
		s.orders.mu.Lock()
		defer s.orders.mu.Unlock()
		switch r := s.orders.rows[p.MerchantOrderNo]; {
		case r == nil:
			s.orders.rows[p.MerchantOrderNo] = &shopRow{params: p}
		case r.shown == Failed:
			r.shown, r.params = Pending, p // the journal knows that it failed, and says so again
		}
		return nil
	})
}

func (s *shop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		for _, p := range s.due() {
			s.send(ctx, p)
		}
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
}

func (s *shop) due() (list []cardwire.TransferParams) {
	s.orders.mu.Lock()
	defer s.orders.mu.Unlock()
	for _, number := range []string{"order-1", "order-2", "order-3", "order-4"} {
		if r := s.orders.rows[number]; r != nil && r.shown == Pending && !r.after.After(time.Now()) {
			list = append(list, r.params)
		}
	}
	return list
}

func (s *shop) send(ctx context.Context, p cardwire.TransferParams) {
	_, err := s.client.CreateTransfer(ctx, p)
	shown := map[cardwire.Step]Shown{
		cardwire.StepDone: Submitted, cardwire.StepFail: Failed, cardwire.StepReconcile: Unresolved,
	}[cardwire.NextStep(err)]
	_ = s.save(p.MerchantOrderNo, s.wrongly(ctx, p, err, shown))
}

// wrongly is what the shop shows, with its defect.
func (s *shop) wrongly(ctx context.Context, p cardwire.TransferParams, err error, shown Shown) Shown {
	e, _ := errors.AsType[*cardwire.Error](err)
	switch {
	case e == nil:
	case s.defect == "retries after Reconcile" && shown == Unresolved:
		p.MerchantOrderNo += "-again"
		if _, err := s.client.CreateTransfer(ctx, p); err == nil {
			return Submitted
		}
	case s.defect == "fails on 403" && e.HTTPStatus == 403:
		return Failed
	case s.defect == "gives up without Void" && cardwire.NextStep(err) == cardwire.StepRetry:
		return Failed
	case s.defect == "ignores StepWait" && cardwire.NextStep(err) == cardwire.StepWait:
		return Failed
	case s.defect == "books by HTTP status" && e.HTTPStatus == 200:
		return Submitted
	}
	return shown
}

func (s *shop) save(number string, shown Shown) error {
	return s.world.Do("update "+number, func() error {
		s.orders.mu.Lock()
		defer s.orders.mu.Unlock()
		r := s.orders.rows[number]
		r.shown, r.after = shown, time.Now().Add(time.Minute)
		return nil
	})
}

func (s *shop) Support(ctx context.Context, number string, found cardwire.Resolution) error {
	i, _ := s.journal.Last(number)
	if s.defect == "resolves before SettledBy" && !found.AsOf.IsZero() {
		<-time.After(time.Until(i.SettledBy))
		found.AsOf = time.Now()
	}
	err := s.journal.Resolve(ctx, i, found)
	// The next call is told what the journal knows, also if it has known that for long, and
	// the shop crashed before it could say so.
	return errors.Join(err, s.save(number, Pending))
}

// Cancel closes the number first: what it cannot close has happened, or may have.
func (s *shop) Cancel(ctx context.Context, number string) error {
	i := cardwire.Intent{Op: "CreateTransfer", Reference: number}
	if s.defect != "cancels without asking" {
		if err := s.journal.Void(ctx, i, "Ada", "the customer canceled"); err != nil {
			return err
		}
	}
	return s.save(number, Failed)
}

func (s *shop) Show(number string) Shown {
	s.orders.mu.Lock()
	defer s.orders.mu.Unlock()
	if r := s.orders.rows[number]; r != nil {
		return r.shown
	}
	return Pending
}

func (s *shop) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	Simulate(t, newShop)
}

// flawOf returns the first flaw that is found within 200 seeds.
func flawOf(t *testing.T, start func(*World) Program, options ...SimulationOption) string {
	t.Helper()
	s := newSimulation(options)
	for seed := uint64(1); seed <= 200; seed++ {
		if flaw := s.run(t, seed, start).flaw; flaw != "" {
			return flaw
		}
	}
	return ""
}

func TestSimulateFindsDefectsOfAProgram(t *testing.T) {
	t.Parallel()
	for defect, want := range map[string]string{
		"resends after a crash without asking": " times",
		"retries after Reconcile":              "was executed 2 times",
		"fails on 403":                         "was shown as failed, and executed",
		"cancels without asking":               "was shown as failed, and executed",
		"ignores StepWait":                     "was shown as failed, and executed",
		"books by HTTP status":                 "is shown as submitted, and was not executed",
		"resolves before SettledBy":            "executed",
		"gives up without Void":                "was shown as failed, and executed",
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, flawOf(t, newShopThat(defect)), want)
		})
	}
}

// wrongJournal is the memory journal with a defect.
type wrongJournal struct {
	*cardwire.MemoryJournal

	defect string
}

func (j *wrongJournal) Begin(ctx context.Context, i cardwire.Intent) error {
	switch j.defect {
	case "serves two services":
		i.Service = ""
	case "believes a denial too early":
		i.SettledBy = i.Time
	}
	err := j.MemoryJournal.Begin(ctx, i)
	d, known := errors.AsType[*cardwire.DuplicateIntent](err)
	grants := j.defect == "grants what is unknown" && known && d.Outcome == cardwire.OutcomeUnknown && !d.InProgress ||
		j.defect == "reopens what is closed" && known && d.Outcome != cardwire.OutcomeUnknown && d.Outcome != cardwire.OutcomeExecuted
	if grants {
		return nil
	}
	return err
}

func (j *wrongJournal) End(ctx context.Context, i cardwire.Intent, r cardwire.IntentResult) error {
	switch {
	case j.defect == "loses ends without a word" && r.Outcome != cardwire.OutcomeExecuted:
		return nil
	case j.defect == "forgets closing":
		r.Final = false
	case j.defect == "believes a denial too early":
		i.SettledBy = i.Time
	}
	return j.MemoryJournal.End(ctx, i, r)
}

func (j *wrongJournal) Void(ctx context.Context, i cardwire.Intent, by, note string) error {
	if j.defect == "forgets closing" {
		return nil
	}
	return j.MemoryJournal.Void(ctx, i, by, note)
}

// Those that cost money once: a lost end that is told as StepFail, a denial from before
// SettledBy, and a number that two services share. [TestAForgetfulJournal] has the fourth.
func TestSimulateFindsDefectsOfAJournal(t *testing.T) {
	t.Parallel()
	for _, defect := range []string{
		"serves two services", "believes a denial too early", "grants what is unknown", "reopens what is closed",
		"loses ends without a word", "forgets closing",
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			flaw := flawOf(t, newShop, JournalOf(func(*testing.T) cardwire.Journal {
				return &wrongJournal{MemoryJournal: cardwire.NewMemoryJournal(), defect: defect}
			}))
			assert.NotEmpty(t, flaw)
		})
	}
}

// A journal that forgets is not to be believed, and the shop believes it.
func TestAForgetfulJournal(t *testing.T) {
	t.Parallel()
	assert.Contains(t, flawOf(t, newShop, ForgetfulJournal(10*time.Minute)), "executed")
}

// The same seed tells the same story.
func TestSimulateIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 20; seed++ {
		s := newSimulation(nil)
		assert.Equal(t, s.run(t, seed, newShop).stories, s.run(t, seed, newShop).stories)
	}
}
