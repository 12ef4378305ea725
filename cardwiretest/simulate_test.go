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
	"github.com/cardwire/cardwire-go/internal/test/shop"
	"github.com/cardwire/cardwire-go/journal"
)

func newShop(w *cardwiretest.World) cardwiretest.Program { return shop.New(w) }

var flagSeeds = flag.Uint64("seeds", 100, "how many seeds TestSimulate tries")

func TestSimulate(t *testing.T) {
	t.Parallel()
	cardwiretest.Simulate(t, newShop, cardwiretest.Seeds(1, *flagSeeds))
}

// failed is what NextStep takes for a final failure.
var failed = &cardwire.Error{Op: "CreateTransfer", Outcome: cardwire.OutcomeRefused, HTTPStatus: 422}

// mistake sends an order in a way that is wrong.
type mistake func(send sending, p cardwire.TransferParams) error

type sending func(cardwire.TransferParams) error

// mistaken is a client with a mistake.
type mistaken struct {
	shop.Sender

	mistake mistake
}

func (m mistaken) CreateTransfer(
	ctx context.Context, p cardwire.TransferParams, _ ...cardwire.CallOption,
) (*cardwire.Transfer, error) {
	return new(cardwire.Transfer), m.mistake(func(p cardwire.TransferParams) error {
		_, err := m.Sender.CreateTransfer(ctx, p)
		return err
	}, p)
}

// takenFor takes some errors for another one.
func takenFor(other error, when func(e *cardwire.Error, step cardwire.Step) bool) mistake {
	return func(send sending, p cardwire.TransferParams) error {
		err := send(p)
		if e, ok := errors.AsType[*cardwire.Error](err); ok && when(e, cardwire.NextStep(err)) {
			return other
		}
		return err
	}
}

func changed(change func(*cardwire.TransferParams)) mistake {
	return func(send sending, p cardwire.TransferParams) error {
		change(&p)
		return send(p)
	}
}

// mistakes are wrong ways to send, each with the flaw that Simulate finds.
var mistakes = map[string]struct {
	mistake mistake
	found   string
}{
	"fails on 403": {takenFor(failed, func(e *cardwire.Error, _ cardwire.Step) bool {
		return e.HTTPStatus == 403
	}), "was shown as failed, but was executed"},
	"ignores StepWait": {takenFor(failed, func(_ *cardwire.Error, step cardwire.Step) bool {
		return step == cardwire.StepWait
	}), "was shown as failed, but was executed"},
	"gives up without Void": {takenFor(failed, func(_ *cardwire.Error, step cardwire.Step) bool {
		return step == cardwire.StepRetry
	}), "was shown as failed, but was executed"},
	"books by HTTP status": {takenFor(nil, func(e *cardwire.Error, _ cardwire.Step) bool {
		return e.HTTPStatus == 200
	}), "was shown as submitted, but had not been executed"},
	"retries after Reconcile": {func(send sending, p cardwire.TransferParams) error {
		err := send(p)
		if cardwire.NextStep(err) == cardwire.StepReconcile {
			p.MerchantOrderNo += "-again"
			err = send(p)
		}
		return err
	}, "was executed 2 times"},
	"sends another amount": {changed(func(p *cardwire.TransferParams) {
		p.TransferAmount = p.TransferAmount.Add(decimal.New(1, 0))
	}), `was executed with the transferAmount "11.01", but "10.01" was ordered`},
	"pays somebody else": {changed(func(p *cardwire.TransferParams) {
		p.ReceiverBankAccountNumber = "DE99"
	}), `was executed with the receiverBankAccountNumber "DE99", but "DE0`},
	"sends numbers of its own": {changed(func(p *cardwire.TransferParams) {
		p.MerchantOrderNo = "x-" + p.MerchantOrderNo
	}), `was executed as x-order-`},
	"sends what nobody ordered": {changed(func(p *cardwire.TransferParams) {
		p.MerchantOrderNo = strings.Replace(p.MerchantOrderNo, "order", "invoice", 1)
	}), "was executed, and nobody ordered it"},
}

// cancelsUnasked does not close the number first.
type cancelsUnasked struct{ *shop.Shop }

func (s cancelsUnasked) Cancel(_ context.Context, number string) error {
	return s.Save(number, cardwiretest.Failed)
}

// resolvesEarly gives support an AsOf that the journal accepts, though it asked earlier.
type resolvesEarly struct{ *shop.Shop }

func (s resolvesEarly) Support(ctx context.Context, number string, found journal.Resolution) error {
	<-time.After(time.Hour) // then any call is settled
	found.AsOf = time.Now()
	return s.Shop.Support(ctx, number, found)
}

// stale is a replica that never sees what changed.
type stale struct{ *shop.Shop }

func (stale) Show(string) cardwiretest.Shown { return cardwiretest.Pending }

// optimistic shows what is being sent as submitted.
type optimistic struct {
	*shop.Shop
	sent map[string]bool
}

func newOptimistic(w *cardwiretest.World) cardwiretest.Program {
	s := shop.New(w)
	o := optimistic{s, map[string]bool{}}
	s.Client = mistaken{s.Client, func(send sending, p cardwire.TransferParams) error {
		o.sent[p.MerchantOrderNo] = true
		defer delete(o.sent, p.MerchantOrderNo)
		return send(p)
	}}
	return o
}

func (o optimistic) Show(number string) cardwiretest.Shown {
	if o.sent[number] {
		return cardwiretest.Submitted
	}
	return o.Shop.Show(number)
}

func TestSimulateFindsDefectsOfAProgram(t *testing.T) {
	t.Parallel()
	finds := func(defect, found string, start func(*cardwiretest.World) cardwiretest.Program) {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, cardwiretest.FlawOf(t, start), found)
		})
	}
	for name, m := range mistakes {
		finds(name, m.found, func(w *cardwiretest.World) cardwiretest.Program {
			s := shop.New(w)
			s.Client = mistaken{s.Client, m.mistake}
			return s
		})
	}
	finds("resends after a crash without asking", " times", func(w *cardwiretest.World) cardwiretest.Program {
		s := shop.New(w)
		s.Client = w.Client(cardwire.WithJournal(journal.NewMemory()))
		return s
	})
	finds("cancels without asking", "was shown as failed, but was executed",
		func(w *cardwiretest.World) cardwiretest.Program { return cancelsUnasked{shop.New(w)} })
	finds("resolves before SettledBy", "executed",
		func(w *cardwiretest.World) cardwiretest.Program { return resolvesEarly{shop.New(w)} })
	finds("shows what is being sent as submitted", "was shown as submitted, but had not been executed", newOptimistic)
	finds("the second replica is stale", "was forgotten: it is still shown as pending or submitted",
		func(w *cardwiretest.World) cardwiretest.Program {
			started := w.Value("started", func() any { return new(int) }).(*int)
			if *started++; *started == 2 {
				return stale{shop.New(w)}
			}
			return newShop(w)
		})
}

// freezer is a program that does more than to transfer. Both replicas freeze the same card.
type freezer struct {
	*shop.Shop

	freezes *cardwire.Client
	frozen  func(cardwire.CardStatus)
}

func (f freezer) Run(ctx context.Context) {
	if page, err := f.freezes.ListCards(ctx, cardwire.ListCardsParams{PageSize: 1}); err == nil {
		card := page.Cards[0].ID
		_, err := f.freezes.FreezeCard(ctx, cardwire.FreezeCardParams{CardID: card, ClientTransactionID: freezeID})
		read, readErr := f.freezes.GetCard(ctx, card)
		if readErr == nil && cardwire.NextStep(err) == cardwire.StepDone {
			f.frozen(read.Status)
		}
	}
	f.Shop.Run(ctx)
}

// There is one fake service, which gets the whole request, and keeps what it did.
func TestSimulateAProgramThatFreezesCards(t *testing.T) {
	t.Parallel()
	var statuses []cardwire.CardStatus
	cardwiretest.Simulate(t, func(w *cardwiretest.World) cardwiretest.Program {
		s := shop.New(w)
		return freezer{s, w.Client(), func(status cardwire.CardStatus) { statuses = append(statuses, status) }}
	}, cardwiretest.Seeds(1, 10))
	assert.Greater(t, len(statuses), 10)
	assert.Equal(t, []cardwire.CardStatus{cardwire.CardFrozen}, slices.Compact(statuses))
}

// Two of these cost money once: a lost result that is told as StepFail, and a denial from
// before SettledBy.
func TestSimulateFindsDefectsOfAJournal(t *testing.T) {
	t.Parallel()
	for defect, found := range map[string]string{
		"an earlier look is believed": "executed",
		"unknown is not sent":         "was shown as failed, but was executed",
		"no refusal is final":         "was shown as failed, but was executed",
		"nothing is closed":           "was shown as failed, but was executed",
		"results are lost":            "was shown as failed, but was executed",
	} {
		t.Run(defect, func(t *testing.T) {
			t.Parallel()
			open := func(*testing.T) cardwire.Journal { return newBroken(defect) }
			assert.Contains(t, cardwiretest.FlawOf(t, newShop, cardwiretest.JournalOf(open)), found)
		})
	}
}

// The same seed gives the same story, and a few seeds cover everything that can happen.
func TestSimulateIsDeterministic(t *testing.T) {
	t.Parallel()
	told := ""
	for seed := uint64(1); seed <= 20; seed++ {
		stories := cardwiretest.Stories(t, seed, newShop)
		assert.Equal(t, stories, cardwiretest.Stories(t, seed, newShop))
		for _, lines := range stories {
			told += strings.Join(lines, "\n")
		}
	}
	for _, event := range []string{
		"it is down, and nothing is recorded", "it is recorded, and the response is lost", "crashes",
		"a: cancel", "b: other", "support says", "support is not believed", "busy",
		"a gateway delivers it twice", "a firewall", "before it is executed", "it is executed late",
		"without the order",
	} {
		assert.Contains(t, told, event)
	}
}

// A story has at most 40 lines: how it began, and how it ended.
func TestALongStory(t *testing.T) {
	t.Parallel()
	lines := strings.Fields(strings.Repeat("begin ", 10) + strings.Repeat("middle ", 20) + strings.Repeat("end ", 10))
	assert.Equal(t, strings.Join(lines, "\n"), cardwiretest.ShownOf(lines))
	lines = slices.Insert(lines, 11, "out")
	want := slices.Concat(lines[:10], []string{"    (2 lines are left out)"}, lines[12:])
	assert.Len(t, want, 40)
	assert.Equal(t, strings.Join(want, "\n"), cardwiretest.ShownOf(lines))
}

// The seed of a failure can be run alone.
func TestSeedFlag(t *testing.T) {
	require.NoError(t, flag.Set("cardwire.seed", "4711"))
	defer func() { require.NoError(t, flag.Set("cardwire.seed", "0")) }()
	var tried []string
	open := func(t *testing.T) cardwire.Journal {
		tried = append(tried, t.Name())
		return journal.NewMemory()
	}
	cardwiretest.Simulate(t, newShop, cardwiretest.Seeds(1, 9), cardwiretest.JournalOf(open))
	assert.Equal(t, []string{"TestSeedFlag/seed=4711"}, tried)
}

// locked holds a mutex during its calls, and in Show.
type locked struct {
	*shop.Shop

	mu *sync.Mutex
}

func (l locked) Show(number string) cardwiretest.Shown {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Shop.Show(number)
}

const makesAMistake = "CARDWIRE_TEST_MISTAKE"

// A mutex that is held during a call, and a goroutine that never ends, end the tests, which say what to do.
func TestAMutexHeldOverACall(t *testing.T) {
	mistake, patience, _ := strings.Cut(os.Getenv(makesAMistake), " ")
	switch mistake {
	case "mutex":
		d, err := time.ParseDuration(patience)
		require.NoError(t, err)
		cardwiretest.RunFor(t, d, func(w *cardwiretest.World) cardwiretest.Program {
			l := locked{shop.New(w), new(sync.Mutex)}
			l.Client = mistaken{l.Client, func(send sending, p cardwire.TransferParams) error {
				l.mu.Lock()
				defer l.mu.Unlock()
				return send(p)
			}}
			return l
		})
	case "goroutine":
		cardwiretest.Simulate(t, func(w *cardwiretest.World) cardwiretest.Program {
			w.Value("database", func() any { return newDatabase().ended })
			return newShop(w)
		}, cardwiretest.Seeds(1, 1))
	}
	if mistake != "" {
		return
	}
	t.Parallel()
	for name, wants := range map[string][]string{
		"mutex": {
			"s: check whether the program holds a mutex",
			"cardwiretest_test.locked.Show", // the stack of what waits
		},
		"goroutine": {"a goroutine that the program started never ends: end it in Program.Close"},
	} {
		output, last := "", wants[len(wants)-1]
		// A busy machine may need longer to come as far as that.
		for patience := time.Second; !strings.Contains(output, last) && patience < 10*time.Minute; patience *= 10 {
			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
			command.Env = append(os.Environ(), makesAMistake+"="+name+" "+patience.String())
			text, err := command.CombinedOutput()
			require.Error(t, err)
			output = string(text)
		}
		for _, want := range wants {
			assert.Contains(t, output, want)
		}
	}
}

// database has a goroutine until it is closed, as a sql.DB has.
type database struct{ ended chan struct{} }

func newDatabase() database {
	d := database{make(chan struct{})}
	go func() { <-d.ended }()
	return d
}

func (d database) Close() error {
	close(d.ended)
	return nil
}

// What a world keeps for the program is closed at the end.
func TestWhatAWorldKeepsIsClosed(t *testing.T) {
	t.Parallel()
	cardwiretest.Simulate(t, func(w *cardwiretest.World) cardwiretest.Program {
		w.Value("database", func() any { return newDatabase() })
		return newShop(w)
	}, cardwiretest.Seeds(1, 1))
}
