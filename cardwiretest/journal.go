package cardwiretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/journal"
)

// TestJournal tests the rules that every [cardwire.Journal] must follow, so that nothing is
// sent twice. It is for authors of journals. Each subtest uses its own journal, which
// open returns and which must be empty. If the journal has a Resolve or a Reserve like those of
// [journal.Memory], they are tested too.
//
// TestJournal cannot test what a journal loses when its process or its database dies:
// the intent must be on durable storage before Begin returns.
func TestJournal(t *testing.T, open func(t *testing.T) cardwire.Journal) {
	t.Helper()
	run := func(name string, test func(*journalTest)) {
		t.Run(name, func(t *testing.T) {
			test(&journalTest{T: t, journal: open(t), reference: "order-1", calls: map[string]cardwire.Intent{}})
		})
	}
	for _, r := range rules {
		run(r.onRecord, func(j *journalTest) { j.row(r) })
	}
	for _, s := range stories {
		name, story, _ := strings.Cut(s, " | ")
		run(name, func(j *journalTest) { j.tell(story) })
	}
	optional := func(method string, stories []string, has func(cardwire.Journal) bool) {
		for _, s := range stories {
			name, story, _ := strings.Cut(s, " | ")
			run(name, func(j *journalTest) {
				if !has(j.journal) {
					j.Skip("the journal has no " + method)
				}
				j.tell(story)
			})
		}
	}
	optional("Resolve", resolutions, func(j cardwire.Journal) bool { _, ok := j.(resolver); return ok })
	optional("Reserve", reservations, func(j cardwire.Journal) bool { _, ok := j.(reserver); return ok })
	run("references are compared by operation and byte", (*journalTest).references)
	run("one of many concurrent Begins succeeds", (*journalTest).atOnce)
}

// rule is what Begin and Void return in a state.
type rule struct {
	onRecord            string
	past                string // the story that leads to the state
	same, other, voided string
}

var rules = []rule{
	{"nothing", "", "ok", "ok", "ok"},
	{"refused", "begin a; end a refused", "ok", "another body", "ok"},
	{"not sent", "begin a; end a not_sent", "ok", "another body", "ok"},
	{"closed by a final refusal", "begin a; end a refused final", "refused", "refused", "ok"},
	{"closed as not sent", "begin a; end a not_sent final", "not_sent", "not_sent", "ok"},
	{"voided", "void", "not_sent", "not_sent", "ok"},
	{"voided after a refusal", "begin a; end a refused; void", "refused", "refused", "ok"},
	{"open before SendBy", "begin a", "in progress", "in progress, another body", "in progress"},
	{"open after SendBy", "begin a past", "unknown", "unknown, another body", "unknown"},
	{"unknown", "begin a; end a unknown", "unknown", "unknown, another body", "unknown"},
	{"executed", "begin a; end a executed", "executed T-a", "executed T-a, another body", "executed T-a"},
}

// row tests what each of the three calls returns, each on its own reference. A refusal changes
// nothing, and a closed reference stays closed.
func (j *journalTest) row(r rule) {
	j.reference = "same"
	j.tell(r.past + "; begin b = " + r.same)
	if r.same != "ok" {
		j.tell("begin b = " + r.same)
	}
	j.reference = "other"
	j.tell(r.past + "; begin b other = " + r.other)
	if r.other != "ok" {
		j.tell("begin c other = " + r.other)
	}
	j.reference = "voided"
	j.tell(r.past + "; void = " + r.voided + "; void = " + r.voided)
	if r.onRecord == "executed" {
		j.tell("void other = executed T-a, another body")
	}
}

// stories have a name, and steps with what they return, unless that is "ok". See step.
var stories = []string{
	`a Begin that is repeated is one Begin | begin a; begin a; begin b = in progress; end a refused; begin c`,
	`a result that is recorded twice | begin a; end a executed; end a executed; begin b = executed T-a`,
	`a refusal that is recorded twice | begin a; end a refused final; end a refused final; begin b = refused`,
	`what did not happen may begin again, and again | begin a; end a refused; begin b; end b not_sent; begin c;
		end c executed; begin d = executed T-c`,
	`executed, from a call that was thought to be over | begin a; end a refused; end a executed = executed T-a;
		begin b = executed T-a`,
	`executed twice: both are told, and the first number stays | begin a; end a not_sent; begin b;
		end a executed = executed T-a; end b executed = executed T-a; begin c = executed T-a`,
	`executed under a closed reference | void; end a executed = executed T-a; begin b = executed T-a;
		void = executed T-a`,
	`nothing undoes executed | begin a; end a executed; end a unknown = executed T-a; end a refused = executed T-a;
		end a not_sent final = executed T-a; begin b = executed T-a`,
	`a late refusal of another call | begin a; end a not_sent; begin b; end a refused = in progress;
		end a not_sent final = in progress; begin c = in progress; end b executed; begin c = executed T-b`,
	`a refusal does not end what is unknown | begin a; end a unknown; end a refused = unknown;
		end a not_sent final = unknown; begin b = unknown`,
	`unknown, of an earlier call | begin a; end a not_sent; begin b; end a unknown; begin c = unknown;
		end b refused = unknown; begin c = unknown`,
	`unknown opens what was closed since | void; end a unknown = unknown; begin b = unknown; void = unknown`,
	`unknown opens what another call closed | begin a; end a not_sent; begin b; end b refused final;
		end a unknown = unknown; begin c = unknown`,
	`a context that is done | begin a; end a not_sent canceled = canceled; begin b = in progress; on order-2;
		begin a canceled = canceled; begin b; on order-3; void canceled = canceled; begin b`,
	`a journal belongs to one service | begin a; end a executed; begin b elsewhere = another service;
		void elsewhere = another service; on order-2; begin a elsewhere = another service;
		void elsewhere = another service; begin b; on order-3; begin a; end a executed elsewhere;
		begin b = executed T-a`,
	`a journal belongs to one account | begin a; end a executed; begin b account = another account;
		void account = another account; on order-2; begin a account = another account; void account = another account;
		begin b; on order-3; begin a; end a executed account; begin b = executed T-a`,
	`no account is an account too | void account; begin a account = not_sent; on order-2; begin b = another account;
		void serviceless; begin c account = not_sent`,
	`an operation that nobody has begun | void uncalled mistyped = error; void mistyped; on order-2; begin a unlisted;
		on order-3; void uncalled unlisted; begin a unlisted = not_sent`,
	`no operation, no call, nobody | begin a nameless = error; begin b uncalled = error; void nameless = error;
		void anonymous = error; begin c`,
}

// resolutions are stories of what a person may say.
var resolutions = []string{
	`a person: executed | begin a; end a unknown; resolve a executed as X; begin b = executed X`,
	`a person: executed, while it is sent | begin a; resolve a executed as X; end a executed as X;
		begin b = executed X`,
	`a person: refused closes | lost a; resolve a refused; begin b = refused; void`,
	`a person: not sent frees | lost a; resolve a not_sent; begin b`,
	`a person: of what has not ended | begin a settled; resolve a not_sent; begin b`,
	`a person: of a refusal for now | begin a settled; end a refused; resolve a not_sent; begin b`,
	`a person: closes a refusal for now | begin a; end a refused; resolve a refused; begin b = refused`,
	`a person: before SendBy | begin a; resolve a not_sent = error; resolve a refused = error; begin b = in progress`,
	`a person: before SettledBy | begin a past; end a unknown; resolve a not_sent = error; resolve a refused = error;
		begin b = unknown`,
	`a person: before the earlier call is settled | begin a; end a refused; begin b settled; end a unknown;
		resolve b not_sent = error; begin c = unknown`,
	`a person: before the later call is settled | begin a settled; end a refused; begin b; end a unknown;
		resolve b not_sent = error; begin c = unknown`,
	`one number is of one operation | begin a; resolve a executed as X; begin r unlisted; resolve r executed unlisted as X`,
	`a person: as of an earlier look | lost a; resolve a not_sent early = error; begin b = unknown`,
	`a person: as of the future | lost a; resolve a not_sent future = error; begin b = unknown`,
	`a person: as of the future, again | lost a; resolve a not_sent; resolve a not_sent future = error`,
	`a person: as of no time | lost a; resolve a refused never = error; begin b = unknown`,
	`a person: the same again | lost a; resolve a refused; resolve a refused; begin b = refused`,
	`a person: nothing is on record | resolve a executed as X = error; resolve a not_sent = error; begin b`,
	`a person: an outcome that is none | lost a; resolve a unknown = error; begin b = unknown`,
	`a person: nobody | lost a; resolve a not_sent anonymous = error; begin b = unknown`,
	`a denial is of one call | lost a; resolve a not_sent; lost b; resolve a refused = error; begin c = unknown`,
	`executed counts of any call | lost a; resolve a not_sent; begin b; resolve a executed as X; begin c = executed X`,
	`executed twice: the one that has not ended is told | lost a; resolve a not_sent; begin b; resolve a executed as X;
		end b executed = executed X; begin c = executed X`,
	`executed twice: the person is told | lost a; resolve a not_sent; begin b; end b executed;
		resolve a executed as nothing = error; resolve a executed as T-b; begin c = executed T-b`,
	`of a number that had no body, any is it | void undigested; resolve void executed as X; begin b = executed X;
		begin b other = executed X; void other = executed X`,
	`corrected: not sent to refused | lost a; resolve a not_sent; resolve a refused; begin b = refused`,
	`corrected: not sent to executed | lost a; resolve a not_sent; resolve a executed as X; begin b = executed X`,
	`corrected: executed is never free again | lost a; resolve a executed as X; resolve a not_sent = error;
		begin b = executed X`,
	`corrected: executed to refused | lost a; resolve a executed as X; resolve a refused; begin b = refused`,
	`corrected: a mistyped number | begin a; end a unknown; resolve a executed as X; resolve a executed as Y;
		begin b = executed Y`,
	`corrected: closed, to executed | lost a; resolve a refused; resolve a not_sent = error;
		resolve a executed as X; void = executed X; begin b = executed X`,
	`corrected: voided, to executed | begin a settled; end a not_sent; void; resolve a not_sent = error;
		resolve a refused; resolve a executed as X; begin b = executed X`,
	`closed once, and never free again | lost a; resolve a refused; resolve a executed as X; resolve a not_sent = error;
		resolve a refused; begin b = refused`,
	`closed, and unknown since | begin a settled; end a not_sent; begin b settled; end b refused final;
		end a unknown = unknown; resolve b not_sent = error; resolve b refused; begin c = refused`,
	`asked before it was recorded as executed | lost a; resolve a executed as X; resolve a not_sent before = error;
		resolve a refused before = error; begin b = executed X`,
	`a person: of an operation that nobody has begun | resolve a executed as X uncalled mistyped = error`,
	`what a response proved is not corrected | begin a settled; end a executed; resolve a not_sent = error;
		resolve a refused = error; resolve a executed as X = error; resolve a executed as T-a; begin b = executed T-a`,
	`a late success outlives a denial | lost a; resolve a refused; end a executed = executed T-a;
		begin b = executed T-a`,
	`a late unknown does not undo a denial | lost a; resolve a refused; end a unknown = refused; begin b = refused`,
	`nor does it after a later Begin | lost a; resolve a not_sent; begin b; end a unknown = in progress; end b refused;
		begin c`,
	`a late refusal does not undo a person | begin a; resolve a executed as X; end a refused = executed X;
		begin b = executed X`,
	`one number is of one reference | begin a; end a unknown; resolve a executed as X; on order-2; begin b;
		end b unknown; resolve b executed as X = error; begin c = unknown`,
	`a number of a response is not for others | begin a; end a executed; on order-2; begin b; end b unknown;
		resolve b executed as T-a = error; begin c = unknown`,
}

// reservations are stories of what is pinned before it is sent.
var reservations = []string{
	`reserved: nothing has happened | reserve; reserve; begin a; begin b = in progress; end a refused;
		begin c other = reserved, another body; begin d`,
	`reserved: another body leaves it as it is | reserve; begin a other = reserved, another body;
		void other = reserved, another body; reserve other = another body; begin b; end b executed; begin c = executed T-b`,
	`reserved: closed by its own body | reserve; void; begin a = not_sent; reserve = not_sent`,
	`reserved: closed by a person | reserve; void undigested; begin a = not_sent`,
	`reserved: what is free | begin a; end a refused; reserve other = another body; begin b other = another body; reserve;
		begin b other = reserved, another body; begin c`,
	`reserved: what is open | begin a; reserve = in progress; end a not_sent; begin b other = reserved, another body;
		begin c`,
	`reserved: what is unknown | lost a; reserve = unknown; resolve a not_sent; begin b other = reserved, another body;
		begin c`,
	`reserved: what is executed | begin a; end a executed; reserve = executed T-a;
		reserve other = executed T-a, another body`,
	`reserved: what is closed | begin a; end a refused final; reserve = refused; reserve other = refused, another body`,
	`reserved: a number without a body | void undigested; reserve = not_sent; resolve void executed as X;
		begin a = executed X; begin b other = executed X, another body`,
	`reserved: not without a body | reserve undigested = error; reserve nameless = error; begin a other`,
	`reserved: of one service and account | reserve; on order-2; reserve elsewhere = another service;
		reserve account = another account; begin a account = another account; begin b`,
	`reserved: a context that is done | reserve canceled = canceled; begin a other`,
}

type reserver interface {
	Reserve(ctx context.Context, i cardwire.Intent) error
}

type journalTest struct {
	*testing.T

	journal   cardwire.Journal
	reference string
	calls     map[string]cardwire.Intent
}

type resolver interface {
	Resolve(ctx context.Context, i cardwire.Intent, found journal.Resolution) error
}

// tell does the steps of a story, and compares what they return.
func (j *journalTest) tell(story string) {
	j.Helper()
	for step := range strings.SplitSeq(story, ";") {
		do, want, _ := strings.Cut(step, "=")
		words := strings.Fields(do)
		if len(words) == 0 {
			continue
		}
		if want = strings.TrimSpace(want); want == "" {
			want = "ok"
		}
		if got := j.step(words); got != want && (want != "error" || got == "ok") {
			j.Fatalf("%q of %s returned %q, want %q", strings.TrimSpace(do), j.reference, got, want)
		}
	}
}

// step does one step:
//
//	on REFERENCE
//	begin CALL [past|settled] [other] [nameless|unlisted] [uncalled] [elsewhere] [canceled]
//	end CALL OUTCOME [final] [elsewhere] [canceled] [as ID]
//	lost CALL, which is begin CALL settled; end CALL unknown
//	void [other|undigested] [nameless|mistyped] [uncalled] [anonymous] [elsewhere] [canceled]
//	reserve [other|undigested] [nameless] [elsewhere] [canceled]
//	resolve CALL OUTCOME [early|before|future|never] [anonymous] [mistyped] [uncalled] [as ID]
//
// Where there is elsewhere, there may also be account, for another account, or serviceless.
func (j *journalTest) step(words []string) string {
	has := func(word string) bool { return strings.Contains(" "+strings.Join(words, " ")+" ", " "+word+" ") }
	ctx, cancel := context.WithCancel(j.Context())
	defer cancel()
	if has("canceled") {
		cancel()
	}
	switch words[0] {
	case "on":
		j.reference = words[1]
		return "ok"
	case "lost":
		j.tell("begin " + words[1] + " settled; end " + words[1] + " unknown")
		return "ok"
	case "reserve":
		return kindOf(j.journal.(reserver).Reserve(ctx, j.intent("reserve", has)))
	case "void":
		by := "Ada"
		if has("anonymous") {
			by = ""
		}
		return kindOf(j.journal.Void(ctx, j.intent("void", has), by, "canceled"))
	}
	key := j.reference + " " + words[1]
	i, begun := j.calls[key]
	if !begun {
		i = j.intent(words[1], has)
	}
	switch words[0] {
	case "begin":
		j.calls[key] = i
		return kindOf(j.journal.Begin(ctx, i))
	case "end":
		r := cardwire.IntentResult{Outcome: outcomes[words[2]], Final: has("final")}
		if r.Outcome == cardwire.OutcomeExecuted {
			r.ServiceID, r.Status = serviceID(words), "wait_process"
		}
		j.moves(&i, has)
		return kindOf(j.journal.End(ctx, i, r))
	case "resolve":
		return kindOf(j.journal.(resolver).Resolve(ctx, i, resolution(i, words, has)))
	}
	j.Fatalf("there is no step %q", words[0])
	return ""
}

var outcomes = map[string]cardwire.Outcome{
	"unknown": cardwire.OutcomeUnknown, "not_sent": cardwire.OutcomeNotSent,
	"refused": cardwire.OutcomeRefused, "executed": cardwire.OutcomeExecuted,
}

// serviceID is the last word after "as", and otherwise that of the call.
func serviceID(words []string) string {
	if n := len(words); words[n-2] == "as" {
		return strings.TrimPrefix(words[n-1], "nothing")
	}
	return "T-" + words[1]
}

// The bodies and services of intents.
const (
	usualService = "https://api.example.com/api/v1"
	otherService = "https://api.example.org/api/v1"

	usualBody = "7d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
	otherBody = "0d1a54127b222502f5b79b5fb0803061152a44f92b37e23c6527baf665d4da9a"
)

// intent returns an intent as the client creates it.
func (j *journalTest) intent(call string, has func(string) bool) cardwire.Intent {
	i := cardwire.Intent{
		Call: j.Name() + " " + j.reference + " " + call, Op: cardwire.OpCreateTransfer, Reference: j.reference,
		BodySHA256: usualBody, Amount: decimal.New(10, 0), Currency: "EUR", Service: usualService, Time: time.Now(),
	}
	if has("other") {
		i.BodySHA256 = otherBody
	}
	j.moves(&i, has)
	if has("undigested") {
		i.BodySHA256 = ""
	}
	if has("uncalled") {
		i.Call = ""
	}
	switch {
	case has("nameless"):
		i.Op = ""
	case has("mistyped"):
		i.Op = "transfer"
	case has("unlisted"):
		i.Op = "CloseCard"
	}
	switch {
	case has("settled"):
		i.Time = i.Time.Add(-5 * time.Hour)
	case has("past"):
		i.Time = i.Time.Add(-2 * time.Hour)
	}
	i.SendBy = i.Time.Add(time.Hour)
	i.SettledBy = i.SendBy.Add(2 * time.Hour)
	return i
}

// moves has an intent be of another service, or of another account.
func (j *journalTest) moves(i *cardwire.Intent, has func(string) bool) {
	switch {
	case has("elsewhere"):
		i.Service = otherService
	case has("account"):
		i.Account = "another one"
	case has("serviceless"):
		i.Service = ""
	}
}

func resolution(i cardwire.Intent, words []string, has func(string) bool) journal.Resolution {
	r := journal.Resolution{Outcome: outcomes[words[2]], By: "Ada", Note: "ticket 7", AsOf: time.Now()}
	switch {
	case has("early"):
		r.AsOf = i.SettledBy.Add(-time.Second)
	case has("before"):
		r.AsOf = time.Now().Add(-time.Minute)
	case has("future"):
		r.AsOf = time.Now().Add(time.Hour)
	case has("never"):
		r.AsOf = time.Time{}
	}
	if has("anonymous") {
		r.By = ""
	}
	if r.Outcome == cardwire.OutcomeExecuted {
		r.ServiceID = serviceID(words)
	}
	return r
}

// kindOf puts what a journal returned into words.
func kindOf(err error) string {
	d, known := errors.AsType[*cardwire.DuplicateIntent](err)
	var words []string
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case strings.Contains(err.Error(), usualService) && strings.Contains(err.Error(), otherService):
		return "another service"
	case strings.Contains(err.Error(), "another one"):
		return "another account"
	case known && !errors.Is(err, cardwire.ErrDuplicateIntent):
		return "a DuplicateIntent that is no ErrDuplicateIntent"
	case known && (d.InProgress != (d.Remaining > 0) || d.InProgress && d.Outcome != cardwire.OutcomeUnknown):
		return "a DuplicateIntent that contradicts itself"
	case known && d.Reserved:
		words = []string{"reserved"}
	case known && d.InProgress:
		words = []string{"in progress"}
	case known && d.Outcome == cardwire.OutcomeExecuted:
		words = []string{"executed " + d.ServiceID}
	case known:
		words = []string{d.Outcome.String()}
	}
	if errors.Is(err, cardwire.ErrOtherBody) {
		words = append(words, "another body")
	}
	if len(words) == 0 {
		return "error: " + err.Error()
	}
	return strings.Join(words, ", ")
}

func (j *journalTest) references() {
	for _, reference := range []string{"order-1", "Order-1", "order-10", "ordér-1", "№ 1'; --"} {
		j.reference = reference
		j.tell("begin a; begin b = in progress; begin r unlisted") // of another operation
	}
}

// atOnce begins a reference in 64 goroutines, of which one is granted.
func (j *journalTest) atOnce() {
	for round := range 3 {
		var group sync.WaitGroup
		var got [64]string
		start := make(chan struct{})
		call := func(n int) string { return fmt.Sprintf("%d.%d", round, n) }
		for n := range got {
			i := j.intent(call(n), func(string) bool { return false })
			group.Go(func() {
				<-start
				got[n] = kindOf(j.journal.Begin(j.Context(), i))
			})
		}
		close(start)
		group.Wait()
		won := slices.Index(got[:], "ok")
		want := slices.Repeat([]string{"in progress"}, len(got))
		want[max(won, 0)] = "ok"
		if !slices.Equal(got[:], want) {
			j.Fatalf("round %d: 64 Begins of one reference returned %q, want ok once, and in progress", round, got)
		}
		j.tell("end " + call(won) + " refused")
	}
}
