package cardwiretest_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// store is a shop whose customers may cancel.
type store struct{ *shop }

// Cancel closes the number first: what it cannot close has happened, or may have.
func (s store) Cancel(ctx context.Context, number string) error {
	i := cardwire.Intent{Op: "CreateTransfer", Reference: number}
	if err := s.world.Journal().Void(ctx, i, "Ada", "the customer canceled"); err != nil {
		return err
	}
	return s.save(number, cardwiretest.Failed)
}

func newStore(w *cardwiretest.World) cardwiretest.Program { return store{newShop(w).(*shop)} }

func TestSimulate(t *testing.T) {
	t.Parallel()
	cardwiretest.Simulate(t, newStore)
}

// failed is what NextStep takes for a final failure.
var failed = &cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeRefused, HTTPStatus: 422}

// client sends as it likes.
type client func(context.Context, cardwire.TransferParams) error

func (c client) CreateTransfer(
	ctx context.Context, p cardwire.TransferParams, _ ...cardwire.CallOption,
) (*cardwire.Transfer, error) {
	return new(cardwire.Transfer), c(ctx, p)
}

// send sends as a shop does.
func send(ctx context.Context, s sender, p cardwire.TransferParams) error {
	_, err := s.CreateTransfer(ctx, p)
	return err
}

// misread is a client of which some errors are taken for others.
func misread(mistake func(e *cardwire.Error, step cardwire.Step) (instead error, wrong bool)) func(sender) client {
	return func(right sender) client {
		return func(ctx context.Context, p cardwire.TransferParams) error {
			err := send(ctx, right, p)
			if e, ok := errors.AsType[*cardwire.Error](err); ok {
				if instead, wrong := mistake(e, cardwire.NextStep(err)); wrong {
					return instead
				}
			}
			return err
		}
	}
}

// missent is a client that is given something else.
func missent(change func(*cardwire.TransferParams)) func(sender) client {
	return func(right sender) client {
		return func(ctx context.Context, p cardwire.TransferParams) error {
			change(&p)
			return send(ctx, right, p)
		}
	}
}

// The defects of a shop that are in how it sends, and what is found of each.
var defectsInSending = map[string]struct {
	defect func(sender) client
	found  string
}{
	"fails on 403": {misread(func(e *cardwire.Error, _ cardwire.Step) (error, bool) {
		return failed, e.HTTPStatus == 403
	}), "was shown as failed, and executed"},
	"ignores StepWait": {misread(func(_ *cardwire.Error, step cardwire.Step) (error, bool) {
		return failed, step == cardwire.StepWait
	}), "was shown as failed, and executed"},
	"gives up without Void": {misread(func(_ *cardwire.Error, step cardwire.Step) (error, bool) {
		return failed, step == cardwire.StepRetry
	}), "was shown as failed, and executed"},
	"books by HTTP status": {misread(func(e *cardwire.Error, _ cardwire.Step) (error, bool) {
		return nil, e.HTTPStatus == 200
	}), "is shown as submitted, and was not executed"},
	"retries after Reconcile": {func(right sender) client {
		return func(ctx context.Context, p cardwire.TransferParams) error {
			err := send(ctx, right, p)
			if cardwire.NextStep(err) == cardwire.StepReconcile {
				p.MerchantOrderNo += "-again"
				err = send(ctx, right, p)
			}
			return err
		}
	}, "was executed 2 times"},
	"sends another amount": {missent(func(p *cardwire.TransferParams) {
		p.TransferAmount = p.TransferAmount.Add(decimal.New(1, 0))
	}), `was executed with the transferAmount "11.50", and "10.50" was ordered`},
	"pays somebody else": {missent(func(p *cardwire.TransferParams) {
		p.ReceiverBankAccountNumber = "DE99"
	}), `was executed with the receiverBankAccountNumber "DE99", and "DE0`},
	"sends numbers of its own": {missent(func(p *cardwire.TransferParams) {
		p.MerchantOrderNo = "x-" + p.MerchantOrderNo
	}), `was executed as x-order-`},
	"sends what nobody ordered": {missent(func(p *cardwire.TransferParams) {
		p.MerchantOrderNo = strings.Replace(p.MerchantOrderNo, "order", "invoice", 1)
	}), "was executed, and nobody ordered it"},
}

// cancelsUnasked does not close the number first.
type cancelsUnasked struct{ *shop }

func (s cancelsUnasked) Cancel(_ context.Context, number string) error {
	return s.save(number, cardwiretest.Failed)
}

// resolvesEarly says that support has looked when the journal believes that.
type resolvesEarly struct{ store }

func (s resolvesEarly) Support(ctx context.Context, number string, found cardwire.Resolution) error {
	i, _ := s.world.Journal().Last(number)
	<-time.After(time.Until(i.SettledBy))
	found.AsOf = time.Now()
	return s.store.Support(ctx, number, found)
}

// stale is a replica that never sees what changed.
type stale struct{ *shop }

func (stale) Show(string) cardwiretest.Shown { return cardwiretest.Pending }

func TestSimulateFindsDefectsOfAProgram(t *testing.T) {
	t.Parallel()
	finds := func(defect, found string, start func(*cardwiretest.World) cardwiretest.Program) {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, cardwiretest.FlawOf(t, start), found)
		})
	}
	for name, d := range defectsInSending {
		finds(name, d.found, func(w *cardwiretest.World) cardwiretest.Program {
			s := newStore(w).(store)
			s.client = d.defect(s.client)
			return s
		})
	}
	finds("resends after a crash without asking", " times", func(w *cardwiretest.World) cardwiretest.Program {
		s := newStore(w).(store)
		s.client = w.Client(cardwire.WithJournal(cardwire.NewMemoryJournal()))
		return s
	})
	finds("cancels without asking", "was shown as failed, and executed",
		func(w *cardwiretest.World) cardwiretest.Program { return cancelsUnasked{newShop(w).(*shop)} })
	finds("resolves before SettledBy", "executed",
		func(w *cardwiretest.World) cardwiretest.Program { return resolvesEarly{newStore(w).(store)} })
	finds("the second replica is stale", "was forgotten: it is still shown as submitted or pending",
		func(w *cardwiretest.World) cardwiretest.Program {
			started := w.Value("started", func() any { return new(int) }).(*int)
			if *started++; *started == 2 {
				return stale{newShop(w).(*shop)}
			}
			return newShop(w)
		})
}

// freezer is a program that does more than to transfer. Both replicas freeze the same card.
type freezer struct {
	*shop

	freezes *cardwire.Client
	frozen  func(cardwire.CardStatus)
}

func (f freezer) Run(ctx context.Context) {
	if page, err := f.freezes.ListCards(ctx, cardwire.ListCardsParams{Limit: 1}); err == nil {
		card := page.Cards[0].ID
		_, err := f.freezes.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: card, ClientTransactionID: freezeID})
		if read, readErr := f.freezes.GetCard(ctx, card); readErr == nil && cardwire.NextStep(err) == cardwire.StepDone {
			f.frozen(read.Status)
		}
	}
	f.shop.Run(ctx)
}

// There is one fake service, which gets the whole request, and keeps what it did.
func TestSimulateAProgramThatFreezesCards(t *testing.T) {
	t.Parallel()
	var statuses []cardwire.CardStatus
	cardwiretest.Simulate(t, func(w *cardwiretest.World) cardwiretest.Program {
		s := newShop(w).(*shop)
		return freezer{s, w.Client(), func(status cardwire.CardStatus) { statuses = append(statuses, status) }}
	}, cardwiretest.Seeds(1, 10))
	assert.Greater(t, len(statuses), 10)
	assert.Equal(t, []cardwire.CardStatus{cardwire.CardFrozen}, slices.Compact(statuses))
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

// Three of those that cost money once: a lost end that is told as StepFail, a denial from
// before SettledBy, and a number that two services share. [TestAForgetfulJournal] has the
// fourth.
func TestSimulateFindsDefectsOfAJournal(t *testing.T) {
	t.Parallel()
	for defect, found := range map[string]string{
		"serves two services":         "is shown as submitted, and was not executed",
		"believes a denial too early": "executed",
		"grants what is unknown":      "was executed 2 times",
		"reopens what is closed":      "was shown as failed, and executed",
		"loses ends without a word":   "was shown as failed, and executed",
		"forgets closing":             "was shown as failed, and executed",
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, cardwiretest.FlawOf(t, newStore, cardwiretest.JournalOf(func(*testing.T) cardwire.Journal {
				return &wrongJournal{MemoryJournal: cardwire.NewMemoryJournal(), defect: defect}
			})), found)
		})
	}
}

// A journal that forgets is not to be believed, and the shop believes it.
func TestAForgetfulJournal(t *testing.T) {
	t.Parallel()
	assert.Contains(t, cardwiretest.FlawOf(t, newStore, cardwiretest.ForgetfulJournal(10*time.Minute)), "was executed 2 times")
}

// The same seed tells the same story.
func TestSimulateIsDeterministic(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 20; seed++ {
		assert.Equal(t, cardwiretest.Stories(t, seed, newStore), cardwiretest.Stories(t, seed, newStore))
	}
}

// A seed of a failure is tried alone.
func TestSeedFlag(t *testing.T) {
	require.NoError(t, flag.Set("cardwire.seed", "4711"))
	defer func() { require.NoError(t, flag.Set("cardwire.seed", "0")) }()
	var tried []string
	cardwiretest.Simulate(t, newShop, cardwiretest.Seeds(1, 9), cardwiretest.JournalOf(func(t *testing.T) cardwire.Journal {
		tried = append(tried, t.Name())
		return cardwire.NewMemoryJournal()
	}))
	assert.Equal(t, []string{"TestSeedFlag/seed=4711"}, tried)
}

// locked has a mutex while it sends and while it shows.
type locked struct {
	*shop

	mu *sync.Mutex
}

func (l locked) Show(number string) cardwiretest.Shown {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shop.Show(number)
}

const holdsAMutex = "CARDWIRE_TEST_HOLDS_A_MUTEX"

// A mutex that is held over a call ends the tests, with the stacks.
func TestAMutexHeldOverACall(t *testing.T) {
	if os.Getenv(holdsAMutex) != "" {
		cardwiretest.RunFor(t, 500*time.Millisecond, func(w *cardwiretest.World) cardwiretest.Program {
			l := locked{newShop(w).(*shop), new(sync.Mutex)}
			right := l.client
			l.client = client(func(ctx context.Context, p cardwire.TransferParams) error {
				l.mu.Lock()
				defer l.mu.Unlock()
				return send(ctx, right, p)
			})
			return l
		})
		return
	}
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	command.Env = append(os.Environ(), holdsAMutex+"=1")
	output, err := command.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(output), "seed 1 did not end within 500ms: does the program hold a mutex over a call")
	assert.Contains(t, string(output), "cardwiretest_test.locked.Show", "the stack of what waits")
}
