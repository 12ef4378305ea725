package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
)

// forgetAll has the journal be empty, as where it alone is restored.
func (s *shop) forgetAll() {
	s.t.Helper()
	s.exec(`DELETE FROM cardwire_intents`)
}

// sentBefore has the service execute an order that nothing here knows, as before a restore.
func (s *shop) sentBefore(t *testing.T, number string) {
	t.Helper()
	client, err := cardwire.New(s.base, s.key, s.options...)
	require.NoError(t, err)
	_, err = client.CreateTransfer(t.Context(), paramsFor(number))
	require.NoError(t, err)
}

// endElsewhere has another program's call of the same request end.
func (s *shop) endElsewhere(t *testing.T, number string, r cardwire.IntentResult) {
	t.Helper()
	i := cardwire.Intent{Op: operation, Reference: number, BodySHA256: digestFor(t, s, number)}
	i.Call, i.Time = "elsewhere", time.Now()
	i.SendBy, i.SettledBy = i.Time, i.Time
	require.NoError(t, s.journal.Begin(t.Context(), i))
	require.NoError(t, s.journal.End(t.Context(), i, r))
}

func digestFor(t *testing.T, s *shop, number string) string {
	t.Helper()
	digest, err := s.digestOf(t.Context(), paramsFor(number))
	require.NoError(t, err)
	return digest
}

// voids closes a number in the journal alone.
func (s *shop) voids(number string) {
	s.t.Helper()
	i := cardwire.Intent{Op: operation, Reference: number}
	require.NoError(s.t, s.journal.Void(s.t.Context(), i, "Ada", "canceled"))
}

// applies applies a statement of the last hour.
func (s *shop) applies(t *testing.T, again bool, all ...string) (out string) {
	t.Helper()
	text := lines(append([]string{"first T-0 1.00 rejected"}, all...)...)
	do := task{reading: lastHour(), file: fileOf(t, text), apply: true}
	do.Strays, do.Anyway, do.Again = true, true, again
	out, err := s.runs(do)
	require.NoError(t, err)
	return out
}

// sendsHeld releases the hold, and sends all that is held.
func (s *shop) sendsHeld() {
	s.t.Helper()
	s.release()
	if strings.Contains(s.get("/?still=on"), `name="seen"`) {
		require.Equal(s.t, 303, s.post("/held", "by=Ada&why=our+own+records&then=send"+s.hidden("seen")).Code)
	}
}

// An end that the journal alone knew stands with the order: whatever is lost or restored of the
// journal, the order is not sent.
func TestAnEndStandsWithItsOrder(t *testing.T) {
	t.Parallel()
	executed := cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"}
	refused := cardwire.IntentResult{Outcome: cardwire.OutcomeRefused, Final: true}
	for name, tc := range map[string]struct {
		end  func(*testing.T, *shop)
		want string
	}{
		"closed before the order came": {func(t *testing.T, s *shop) {
			_, err := s.runs(task{closed: fileOf(t, "order\nA-1\n")})
			require.NoError(t, err)
			s.order("A-1")
		}, failed},
		"closed as the order came": {func(t *testing.T, s *shop) {
			s.order("A-1")
			s.voids("A-1")
			require.NoError(t, s.sweep(t.Context()))
		}, failed},
		"refused before, elsewhere": {func(t *testing.T, s *shop) {
			s.endElsewhere(t, "A-1", refused)
			s.order("A-1")
		}, failed},
		"refused elsewhere": {func(t *testing.T, s *shop) {
			s.order("A-1")
			s.endElsewhere(t, "A-1", refused)
			assert.Zero(t, s.work("A-1"))
		}, failed},
		"executed elsewhere": {func(t *testing.T, s *shop) {
			s.order("A-1")
			s.endElsewhere(t, "A-1", executed)
			assert.Zero(t, s.work("A-1"))
		}, submitted},
		"held, and executed elsewhere": {func(t *testing.T, s *shop) {
			s.putOnHold()
			s.endElsewhere(t, "A-1", executed)
			s.order("A-1")
			s.release()
		}, submitted},
		"a stray before the order came": {func(t *testing.T, s *shop) {
			s.applies(t, false, "A-1 T-1 12.50 done")
			s.order("A-1")
		}, submitted},
		"a stray": {func(t *testing.T, s *shop) {
			s.order("A-1")
			s.applies(t, false, "A-1 T-1 12.50 done")
		}, submitted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, func(t *testing.T, s *shop) {
				tc.end(t, s)
				assert.Equal(t, tc.want, s.state("A-1"))
				s.forgetAll()
				assert.Equal(t, tc.want, s.state("A-1"))
				assert.Zero(t, s.work("A-1"))
				require.NoError(t, s.sweep(t.Context()))
				assert.Equal(t, tc.want, s.state("A-1"))
				assert.Empty(t, s.fake.Requests())
				var looked int
				require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+live+` x`).Scan(&looked))
				assert.Zero(t, looked, "nothing has to look at it")
			})
		})
	}
}

// What the journal forgot of an order that ended can be corrected, as what it knows can be.
func TestAnEndThatTheJournalForgotIsCorrected(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.order("A-2")
		require.Equal(t, 200, s.cancelAs("A-1").StatusCode)
		s.applies(t, false, "A-2 T-2 12.50 done")
		s.forgetAll()
		s.resolves("A-1", "executed")
		s.exec(`UPDATE payouts SET missed_at = $1`, time.Now().UTC().Add(-time.Hour))
		s.resolves("A-2", "not_executed")
		assert.Equal(t, []string{submitted, failed}, s.statesOf("A-1", "A-2"))
	})
}

// What a person said of the money stays, also where the journal alone is older than that.
func TestPaidStaysPaidInAnOlderJournal(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.settle()
		s.resolves("A-1", "not_executed")
		s.resolves("A-1", "executed")
		s.resolves("A-1", "paid")
		s.exec(`UPDATE cardwire_intents SET state = 'refused', closed = TRUE`) // as it was then
		assert.Equal(t, paid, s.state("A-1"))
		s.settle()
		s.resolves("A-1", "not_executed")
		assert.Equal(t, failed, s.state("A-1"), "it can be corrected")
	})
}

// No statement undoes that an order failed or was canceled, nor frees a number without an order.
func TestAStatementUndoesNoEnd(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		numbers := []string{"canceled", "refused", "closed", "elsewhere", "said"}
		for _, number := range numbers {
			s.order(number)
		}
		require.Equal(t, 200, s.cancelAs("canceled").StatusCode)
		s.fails(cardwiretest.Fault{Status: 422})
		assert.Zero(t, s.work("refused"))
		s.voids("elsewhere")
		s.fails(lostResponse)
		assert.Zero(t, s.work("said"))
		s.settle()
		s.resolves("said", "not_executed")
		_, err := s.runs(task{closed: fileOf(t, "order\nclosed\nnowhere\n")})
		require.NoError(t, err)
		var pending, rejected []string
		for _, number := range append(numbers, "nowhere") {
			pending = append(pending, number+" T-"+number+" 12.50 processing")
			rejected = append(rejected, number+" T-"+number+" 12.50 rejected")
		}
		s.applies(t, false, pending...)
		assert.Equal(t, []string{unresolved, unresolved, unresolved, unresolved, unresolved}, s.statesOf(numbers...))
		s.settle()
		assert.Contains(t, s.applies(t, true, rejected...), "Recorded: 6.")
		assert.Equal(t, []string{canceled, failed, canceled, failed, failed}, s.statesOf(numbers...))
		e, err := s.journal.Lookup(t.Context(), operation, "nowhere")
		require.NoError(t, err)
		assert.True(t, e.Closed)
		assert.Equal(t, failed, s.order("nowhere").State)
	})
}

// Who said that it was paid is not contradicted by a statement: a person looks.
func TestAStatementDoesNotDenyWhatAPersonSaid(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.lost("A-1", true)
		s.settle()
		s.resolves("A-1", "executed")
		s.resolves("A-1", "paid")
		s.exec(`UPDATE cardwire_intents SET state = 'unknown'`) // as it was before
		assert.Equal(t, unresolved, s.state("A-1"))
		for _, again := range []bool{true, false} {
			assert.Contains(t, s.applies(t, again, "A-1 T-1 12.50 rejected"), "Recorded: 0. Changed meanwhile, or "+
				"contradicted, and left: 1")
			assert.Equal(t, unresolved, s.state("A-1"))
		}
	})
}

// What a statement has as executed is not sent again, whatever else it says of it.
func TestWhatAStatementHasAsExecutedIsNotSent(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"as it is": "A-1 T-1 12.50 done", "in cents": "A-1 T-1 1250 done", "in another currency": "A-1 T-1 13.40 done",
	} {
		for _, isFree := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				eachShop(t, func(t *testing.T, s *shop) {
					s.sentBefore(t, "A-1")
					s.order("A-1")
					if isFree {
						s.fails(rateLimited("1"))
						s.work("A-1")
					}
					s.putOnHold()
					out := s.applies(t, false, line, "a-1 T-2 7.00 done")
					assert.Contains(t, out, "Recorded: 2.")
					assert.Equal(t, line != "A-1 T-1 12.50 done", strings.Contains(out, "; here it is 12.50 EUR"), out)
					s.sendsHeld()
					assert.Zero(t, s.work("A-1"))
					assert.Equal(t, submitted, s.state("A-1"))
					assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
				})
			})
		}
	}
}

// What a statement has as pending is not sent either, though another line resembles it.
func TestWhatAStatementHasAsPendingIsNotSent(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.sentBefore(t, "A-1")
		s.putOnHold()
		s.order("A-1")
		out := s.applies(t, false, "A-1 T-1 12.50 processing", "a-1 T-2 12.50 done")
		assert.Contains(t, out, "Recorded: 2.")
		s.sendsHeld()
		s.work("A-1")
		assert.Equal(t, unresolved, s.state("A-1"))
		assert.Equal(t, 1, s.fake.Executions(operation, "A-1"))
	})
}

// Nor is the second of two lines with one service ID, as where the column is a batch's number.
func TestWhatAStatementHasWithAnothersServiceIDIsNotSent(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"A-1", "A-2"} {
			s.sentBefore(t, number)
		}
		s.putOnHold()
		s.order("A-1")
		s.order("A-2")
		out := s.applies(t, false, "A-1 BATCH-1 12.50 done", "A-2 BATCH-1 12.50 done")
		assert.Contains(t, out, `as "BATCH-1" in those of 2: check that the column is the number of one transfer`)
		assert.Contains(t, out, "Recorded: 2.")
		s.release()
		s.work("A-1")
		s.work("A-2")
		assert.Equal(t, []string{submitted, submitted}, s.statesOf("A-1", "A-2"))
		assert.Equal(t, 1, s.fake.Executions(operation, "A-2"))
	})
}

// A line of a number that resembles a waiting order's is a warning, and recorded under its own number, so
// that no late message pays it again.
func TestALineThatResemblesAWaitingOrder(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("B-1")
		s.work("B-1")
		s.forget("B-1")
		s.sentBefore(t, "7")
		assert.Contains(t, s.get("/payouts/B-1"), forgotten)
		s.putOnHold()
		s.order("007")
		s.order("inv-1")
		text := lines("first T-0 1.00 rejected", "7 T-1 12.50 done", "INV-1 T-2 12.50 done", "b-1 T-3 12.50 done")
		do := task{reading: lastHour(), file: fileOf(t, text), apply: true}
		do.Strays = true
		out, err := s.runs(do)
		require.ErrorIs(t, err, errDoubted)
		assert.Contains(t, out, "or leading zeros are ignored: 3, such as ")
		assert.Contains(t, out, `similar: "007": not in the statement`)
		assert.Contains(t, out, `stray: "7": in the statement: line 3`)
		do.Anyway = true
		out, err = s.runs(do)
		require.NoError(t, err)
		assert.Contains(t, out, "Recorded: 3.")
		assert.Equal(t, []string{held, held, forgotten}, s.statesOf("007", "inv-1", "B-1"))
		s.release()
		s.order("7")
		assert.Zero(t, s.work("7"))
		assert.Equal(t, submitted, s.state("7"))
		assert.Equal(t, 1, s.fake.Executions(operation, "7"))
	})
}

// The numbers that nobody has here are said: a spreadsheet may have changed them.
func TestClosedNumbersWithoutAnOrderAreSaid(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.putOnHold()
	s.order("007")
	s.order("8")
	out, err := s.runs(task{closed: fileOf(t, "order\n7\n8\n")})
	require.NoError(t, err)
	assert.Equal(t, "Closed: 2 of 2.\nWithout an order here: 1, as [\"7\"]: compare how they are written.\n", out)
	assert.Equal(t, []string{held, canceled}, s.statesOf("007", "8"))
}

// A test of the way whose order ends unresolved does not lift the brake, nor does an empty queue.
func TestATestOfTheWayDoesNotLiftTheBrake(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.brake = 2
		s := openShop(t, set)
		s.lost("A-1", true)
		s.order("A-2")
		isBraked := func() {
			t.Helper()
			require.NoError(t, s.pause(t.Context(), pause{Why: "a 429", Until: time.Now().Add(time.Minute)}))
			s.elapse()
			require.NoError(t, s.look(t.Context()))
			require.NoError(t, s.look(t.Context()))
			assert.Contains(t, s.get("/queue"), "too many orders are unresolved: resolve them first (unresolved: 2, ")
		}
		s.fails(lostResponse)
		isBraked()
		_, err := s.resume(t.Context(), "Ada", nil)
		require.NoError(t, err)
		isBraked()
		s.order("A-3")
		assert.Equal(t, leastPause, s.work("A-3"))
		s.resolves("A-1", "executed")
		require.NoError(t, s.look(t.Context()))
		s.ramp.SetLimit(rate.Inf)
		assert.Zero(t, s.work("A-3"))
		assert.Equal(t, submitted, s.state("A-3"))
	})
}

// Nobody is asked about a time that is not the forgotten call's, nor told why another one failed.
func TestAForgottenCallHasNoTime(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("earlier")
		s.fails(cardwiretest.Fault{Status: 403})
		s.work("earlier")
		s.exec(`UPDATE payouts SET calls = 2, note = ''`) // of which the journal lost one
		s.order("other")
		s.work("other")
		s.forget("other")
		s.otherRequest("other")
		for _, number := range []string{"earlier", "other"} {
			assert.Equal(t, forgotten, s.state(number))
			text := s.get("/orders/" + number)
			assert.Contains(t, text, "with the merchant order number "+number+" of 12.50 EUR?")
			assert.NotContains(t, text, "sent between")
			assert.NotContains(t, text, "<dt>Why</dt>")
			assert.Empty(t, s.found(number).Note)
		}
	})
}

// What is sent after a hold has a day of its own.
func TestWhatWasHeldHasADayOfItsOwn(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.fails(rateLimited("1"))
		s.work("A-1")
		s.putOnHold()
		s.release()
		s.exec(`UPDATE payouts SET retried_at = $1`, time.Now().UTC().Add(-2*s.giveUpAfter))
		_, err := s.sendHeld(t.Context(), "A-1", "Ada", "our own records")
		require.NoError(t, err)
		s.fails(rateLimited("1"))
		s.work("A-1")
		assert.Equal(t, queued, s.state("A-1"))
	})
}

// A person has an order be sent again while it is purged: it keeps what is sent.
func TestAPurgeLooksAgain(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	for _, number := range []string{"A-1", "A-2"} {
		s.lost(number, false)
		s.settle()
		s.resolves(number, "executed")
	}
	longAgo := time.Now().UTC().Add(-96 * time.Hour)
	s.exec(`UPDATE payouts SET created_at = $1`, longAgo)
	s.exec(`UPDATE cardwire_intents SET ended_at = $1`, longAgo.Format("2006-01-02T15:04:05.000000Z"))
	s.purgeAfter = 48 * time.Hour
	s.exec(`CREATE TRIGGER meanwhile AFTER UPDATE OF body ON payouts WHEN NEW.order_no = 'A-1' BEGIN
	UPDATE cardwire_intents SET state = 'not_sent', closed = FALSE WHERE reference = 'A-2';
	UPDATE payouts SET said = '' WHERE order_no = 'A-2';
END`)
	require.NoError(t, s.purge(t.Context()))
	assert.Equal(t, []string{submitted, queued}, s.statesOf("A-1", "A-2"))
	assert.Empty(t, s.found("A-1").Body)
	assert.NotEmpty(t, s.found("A-2").Body)
	assert.Zero(t, s.work("A-2"))
}

// A replica that saw the hold before its release holds nothing after it.
func TestAReleaseIsNotUndone(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.putOnHold()
		s.release()
		s.order("A-1")
		require.NoError(t, s.holdOrders(t.Context()))
		assert.Equal(t, queued, s.state("A-1"))
	})
}

// All that is held is decided about, however long it takes.
func TestManyThatAreHeldTakeTheirTime(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.putOnHold()
	s.order("A-1")
	form := strings.NewReader("by=Ada&why=our+own+records&then=close" + s.hidden("seen"))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "http://127.0.0.1/held", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	require.NoError(t, s.postHeld(httptest.NewRecorder(), r))
	assert.Equal(t, canceled, s.state("A-1"))
}

// Flags that would be ignored are refused, also those of a time.
func TestFlagsThatWouldBeIgnored(t *testing.T) {
	t.Setenv("CARDWIRE_BASE_URL", "https://payouts.example/api/v1")
	t.Setenv("CARDWIRE_API_KEY", "key")
	const at = " 2026-01-31T08:00:00Z"
	for args, want := range map[string]string{
		"-exported" + at: "-exported would be ignored: it needs -reconcile", "-closed x -exported" + at: "-exported",
		"-closed x -strays": "-strays", "-closed x -from" + at: "-from", "-closed x -until" + at: "-until",
		"-closed x -status done=executed": "-status would be ignored: it needs -reconcile or a start without",
		"-reconcile x -exported" + at:     "", "-from" + at: "", "-closed x -hold=false": "", "-strays": "",
		"-reconcile= -apply -by Ada -why x": "-reconcile needs the name of a file",
		"-closed= -by Ada -why x":           "-closed needs the name of a file",
		"-reconcile= -closed=":              "needs the name of a file",
	} {
		_, err := parse(strings.Fields(args))
		if want == "" {
			require.NoError(t, err, args)
			continue
		}
		require.ErrorContains(t, err, want, args)
	}
}

// Of many that guess at once one a second is told, and logged; the others wait for long.
func TestManyGuessesAtOnceSlowDown(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	synctest.Test(t, func(t *testing.T) {
		sign := s.signIn(http.NotFoundHandler(), "the password")
		from := time.Now()
		var soon atomic.Int64
		var group sync.WaitGroup
		for range 100 {
			group.Go(func() {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://payouts.example/", nil)
				r.SetBasicAuth("Ada", "a guess")
				w := httptest.NewRecorder()
				sign.ServeHTTP(w, r)
				assert.Equal(t, 401, w.Code)
				if time.Since(from) < 5*time.Second {
					soon.Add(1)
				}
			})
		}
		group.Wait()
		assert.Equal(t, int64(7), soon.Load())
	})
}

// What a statement knew first is not sent again by way of a correction: it may be another program's.
func TestWhatWasExecutedElsewhereIsNotFreed(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.applies(t, false, "A-1 T-1 99.00 done")
		s.order("A-1")
		assert.Equal(t, submitted, s.state("A-1"))
		s.refuses("A-1", "send_again", "not from a call of this program")
		s.resolves("A-1", "not_executed")
		assert.Equal(t, failed, s.state("A-1"))
		i := intentOf("A-1")
		require.ErrorIs(t, s.journal.Begin(t.Context(), i), cardwire.ErrDuplicateIntent)
	})
}

// It is said where the amount was another one: perhaps nobody was paid for the order.
func TestWhatWasExecutedElsewhereWithAnotherAmountIsSaid(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.applies(t, false, "A-1 T-1 99.00 done", "A-2 T-2 12.5 done", "A-3 T-3 12.50 done", "A-4 T-4 12.50 done")
		s.exec(`UPDATE cardwire_intents SET summary = '12.50 USD' WHERE reference = 'A-3'`)
		s.exec(`UPDATE cardwire_intents SET summary = '' WHERE reference = 'A-4'`)
		for number, isOther := range map[string]bool{"A-1": true, "A-2": false, "A-3": true, "A-4": false} {
			s.order(number)
			assert.Equal(t, submitted, s.state(number))
			said := strings.Contains(s.get("/orders/"+number), "executed with another amount")
			assert.Equal(t, isOther, said, number)
			logged := `level=ERROR msg=payout order=` + number + ` what="executed with another`
			assert.Equal(t, isOther, strings.Contains(s.log.String(), logged), number)
		}
		assert.Contains(t, s.get("/orders/A-1"), "before it came: 99.00 EUR; it is not sent")
		assert.NotContains(t, s.log.String(), "99.00")
	})
}

// A number that another request has is closed too, or it is said that it is not.
func TestANumberInConflictIsClosed(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.otherRequest("A-1")
		s.exec(`UPDATE cardwire_intents SET state = 'refused'`)
		s.order("A-2")
		s.otherRequest("A-2")
		assert.Equal(t, []string{conflicted, conflicted}, s.statesOf("A-1", "A-2"))
		out, err := s.runs(task{closed: fileOf(t, "order\nA-1\nA-2\n")})
		require.ErrorContains(t, err, `"A-2" is not closed`)
		assert.Equal(t, "Closed: 1 of 2.\n", out)
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.True(t, e.Closed)
	})
}

// A hold that is released gives way to the brake.
func TestAReleaseDoesNotLiftTheBrake(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.brake = 1
		s := openShop(t, set)
		s.lost("A-1", true)
		s.putOnHold()
		s.release()
		assert.True(t, s.paused.Load())
		assert.Contains(t, s.get("/queue"), "too many orders are unresolved: resolve them first (unresolved: 1, ")
		assert.Equal(t, 303, s.post("/resume", "by=Ada&why=we+know"+s.hidden("since")).Code)
		assert.NotContains(t, s.get("/queue"), "too many orders", "a person may")
	})
}

// The form for all that is held is not where a few are looked for, nor is an export's time kept for
// the next file.
func TestFormsAreAboutWhatIsSeen(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.putOnHold()
	s.order("A-1")
	s.order("A-2")
	assert.Contains(t, s.get("/?state=held&still=on"), `action="/held"`)
	assert.NotContains(t, s.get("/?state=held&still=on&find=A-1"), `action="/held"`)
	assert.NotContains(t, s.get("/?state=held&still=on&day="+time.Now().UTC().Format(time.DateOnly)), `action="/held"`)
	s.task.Exported = time.Now()
	assert.Contains(t, s.get("/statement"), `name="exported" type="datetime-local" step="1" required>`)
}

// A report that fails leaves no file of findings.
func TestAFailedReportLeavesNoFile(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	do := task{reading: lastHour(), file: fileOf(t, lines("A-1 T-1 12.50 done"))}
	do.out = filepath.Join(t.TempDir(), "out.csv")
	_, err := s.runs(do)
	require.ErrorContains(t, err, "more than half of the statement is not on record")
	assert.NoFileExists(t, do.out)
	do.Strays = true
	_, err = s.runs(do)
	require.NoError(t, err)
	assert.FileExists(t, do.out)
}

// pausing has the queue be paused while an order waits for its turn.
type pausing struct{ *shop }

// Wait implements cardwire.Limiter.
func (p pausing) Wait(context.Context) error {
	p.paused.Store(true)
	return nil
}

// What waited for its turn as the queue was paused is not sent.
func TestAPauseIsSeenAfterTheTurn(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.order("A-1")
	s.limiter = pausing{s}
	assert.Equal(t, leastPause, s.work("A-1"))
	assert.Empty(t, s.fake.Requests())
	assert.Zero(t, s.found("A-1").Calls)
}

// A conflict is as old as the order, and not as the other request.
func TestAConflictIsAsOldAsItsOrder(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.otherRequest("A-1")
		s.exec(`UPDATE cardwire_intents SET time = $1, ended_at = $1`,
			time.Now().UTC().Add(-96*time.Hour).Format("2006-01-02T15:04:05.000000Z"))
		s.order("A-1")
		assert.Equal(t, conflicted, s.state("A-1"))
		assert.WithinDuration(t, time.Now(), s.found("A-1").ChangedAt.Time, time.Hour)
	})
}

// Whoever sends what another person has closed meanwhile is told so.
func TestTwoPeopleDecideAboutWhatIsHeld(t *testing.T) {
	t.Parallel()
	s := shopInFile(t)
	s.putOnHold()
	for _, number := range []string{"A-1", "A-2", "A-3"} {
		s.order(number)
	}
	s.release()
	s.exec(`CREATE TRIGGER another AFTER UPDATE OF retried_at ON payouts WHEN NEW.order_no = 'A-1' BEGIN
	UPDATE payouts SET said = 'canceled' WHERE order_no = 'A-2';
END`)
	w := s.post("/held", "by=Ada&why=our+own+records&then=send"+s.hidden("seen"))
	assert.Equal(t, 409, w.Code)
	assert.Contains(t, w.Body.String(), "1 of 3 had changed state")
	assert.Equal(t, []string{queued, canceled, queued}, s.statesOf("A-1", "A-2", "A-3"))
}

// Whether the money arrived is recorded even if the journal has given the number to another request.
func TestTheMoneyOfAnOrderWhoseNumberIsAnothers(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.applies(t, false, "A-1 T-1 12.50 done")
		s.forget("A-1")
		s.otherRequest("A-1")
		assert.Equal(t, submitted, s.state("A-1"))
		s.resolves("A-1", "paid")
		assert.Equal(t, paid, s.state("A-1"))
	})
}

// The database of an earlier release is still its own service's, also where the journal has made no
// call and so does not know it.
func TestAnOldDatabaseStaysItsServices(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		s := openShop(t, set)
		s.exec(`CREATE TABLE payouts_service (one BIGINT PRIMARY KEY CHECK (one = 1), base_url TEXT NOT NULL)`)
		s.exec(`INSERT INTO payouts_service VALUES (1, $1)`, s.of)
		s.exec(`UPDATE cardwire_intents_journal SET service = ''`)
		s.order("A-1")
		other := set
		other.base = "https://staging.example/api/v1"
		for range 2 {
			_, err := open(t.Context(), other, s.service.log)
			require.ErrorContains(t, err, "the orders in this database are for "+s.of+", and not for "+other.base)
		}
		same, err := open(t.Context(), set, s.service.log)
		require.NoError(t, err)
		require.NoError(t, same.close())
	})
}

// An end stands also with an order that was sent before, and whose job does not run.
func TestAnEndStandsWhileTheQueueIsPaused(t *testing.T) {
	t.Parallel()
	for want, end := range map[string]func(*testing.T, *shop){
		failed: func(_ *testing.T, s *shop) { s.voids("A-1") },
		submitted: func(t *testing.T, s *shop) {
			s.endElsewhere(t, "A-1", cardwire.IntentResult{Outcome: cardwire.OutcomeExecuted, ServiceID: "T-1"})
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			eachShop(t, func(t *testing.T, s *shop) {
				s.order("A-1")
				s.fails(rateLimited("600"))
				s.work("A-1")
				s.exec(`CREATE TABLE backup AS SELECT * FROM cardwire_intents`)
				end(t, s)
				assert.Equal(t, want, s.state("A-1"))
				require.NoError(t, s.sweep(t.Context()))
				s.exec(`UPDATE cardwire_intents SET (state, closed, calls) = (SELECT state, closed, calls FROM backup)`)
				assert.Equal(t, want, s.state("A-1"))
				s.elapse()
				require.NoError(t, s.look(t.Context()))
				assert.Len(t, s.fake.Requests(), 1)
			})
		})
	}
}

// What is held stays so where a statement frees its number after the release: a person decides.
func TestAStatementReleasesNothing(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.putOnHold()
		s.order("A-1")
		s.applies(t, false, "A-1 T-1 12.50 processing")
		numbers := task{closed: fileOf(t, "order\nA-1\n")}
		_, err := s.runs(numbers)
		require.ErrorContains(t, err, `"A-1" is not closed: it is unresolved`)
		s.release()
		s.settle()
		assert.Contains(t, s.applies(t, true, "A-1 T-1 12.50 rejected"), "Recorded: 1.")
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, held, s.state("A-1"))
		assert.Empty(t, s.fake.Requests())
		_, err = s.runs(numbers)
		require.NoError(t, err)
		assert.Equal(t, canceled, s.state("A-1"))
	})
}

// What was said of an order is corrected also where the journal has given its number to another
// request, which is left as it is.
func TestAnEndIsCorrectedWhereTheNumberIsAnothers(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.applies(t, false, "A-1 T-1 12.50 done")
		s.forget("A-1")
		s.otherRequest("A-1")
		other, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		s.get("/orders/A-1") // which is the latest that it was found out
		s.exec(`UPDATE payouts SET missed_at = $1`, time.Now().UTC().Add(-time.Hour))
		s.refuses("A-1", "send_again", "use a new number")
		s.resolves("A-1", "not_executed")
		assert.Equal(t, failed, s.state("A-1"))
		assert.Equal(t, 200, s.cancelAs("A-1").StatusCode, "which closes no number of another request")
		s.resolves("A-1", "executed")
		assert.Equal(t, submitted, s.state("A-1"))
		e, err := s.journal.Lookup(t.Context(), operation, "A-1")
		require.NoError(t, err)
		assert.Equal(t, other, e)
	})
}

// noTurn is a limiter whose next turn is too far away.
type noTurn struct{}

// Wait implements cardwire.Limiter.
func (noTurn) Wait(context.Context) error { return errors.New("no turn within ten seconds") }

// canceling has the order be canceled while it waits for its turn.
type canceling struct{ *shop }

// Wait implements cardwire.Limiter.
func (c canceling) Wait(ctx context.Context) error {
	_, err := c.cancel(ctx, "A-1", "Ada", "no longer wanted")
	return err
}

// A test of the way that sends nothing ends no pause: the next is a moment later.
func TestATestThatSendsNothingProvesNothing(t *testing.T) {
	t.Parallel()
	for name, limiter := range map[string]func(*shop) cardwire.Limiter{
		"no turn":  func(*shop) cardwire.Limiter { return noTurn{} },
		"canceled": func(s *shop) cardwire.Limiter { return canceling{s} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachShop(t, func(t *testing.T, s *shop) {
				s.order("A-1")
				s.order("A-2")
				require.NoError(t, s.pause(t.Context(), pause{Why: "a 429", Until: time.Now().Add(time.Minute)}))
				s.elapse()
				turns := s.limiter
				s.limiter = limiter(s)
				require.NoError(t, s.look(t.Context()))
				p, _, err := s.pausedNow(t.Context())
				require.NoError(t, err)
				require.NotNil(t, p)
				assert.WithinDuration(t, time.Now(), p.Until, s.rescueAfter()/2)
				assert.Empty(t, s.fake.Requests())
				s.limiter = turns
				s.elapse()
				require.NoError(t, s.look(t.Context()))
				assert.Len(t, s.fake.Requests(), 1)
				assert.NotContains(t, s.get("/queue"), "a 429")
			})
		})
	}
}

// The brake comes before a test of the way: nothing is sent while too much is unresolved.
func TestTheBrakeComesBeforeATest(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.brake = 1
		s := openShop(t, set)
		for _, number := range []string{"A-1", "A-2", "A-3"} {
			s.order(number)
		}
		s.fails(rateLimited("60"))
		s.work("A-1")
		s.paused.Store(false) // a call in flight
		s.fails(lostResponse)
		s.work("A-2")
		s.elapse()
		require.NoError(t, s.look(t.Context()))
		assert.Len(t, s.fake.Requests(), 2)
		assert.Contains(t, s.get("/queue"), "too many orders are unresolved: resolve them first (unresolved: 1, ")
	})
}

// A number that is closed again is closed in the journal too, which may have lost it or know an
// earlier call of it: no other program sends it.
func TestClosingAgainClosesTheNumber(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		for _, number := range []string{"canceled", "failed", "free"} {
			s.order(number)
		}
		require.Equal(t, 200, s.cancelAs("canceled").StatusCode)
		s.fails(cardwiretest.Fault{Status: 422})
		s.work("failed")
		require.NoError(t, s.stands(t.Context(), s.found("failed")))
		s.forgetAll()
		s.exec(`UPDATE payouts SET calls = 0`)
		require.Equal(t, 200, s.cancelAs("free").StatusCode)
		s.exec(`UPDATE cardwire_intents SET closed = FALSE WHERE reference = 'free'`)
		numbers := []string{"canceled", "failed", "free"}
		assert.Equal(t, []string{canceled, failed, canceled}, s.statesOf(numbers...))
		out, err := s.runs(task{closed: fileOf(t, "order\ncanceled\nfailed\nfree\n")})
		require.NoError(t, err)
		assert.Equal(t, "Closed: 3 of 3.\n", out)
		for _, number := range numbers {
			require.ErrorIs(t, s.journal.Begin(t.Context(), intentOf(number)), cardwire.ErrDuplicateIntent, number)
		}
		assert.Equal(t, []string{canceled, failed, canceled}, s.statesOf(numbers...))
	})
}

// What the journal forgot, and a statement then has as executed, is looked at no more, but what is
// said of it can still be early.
func TestWhatWasForgottenAndRecordedIsNotLive(t *testing.T) {
	t.Parallel()
	eachShop(t, func(t *testing.T, s *shop) {
		s.order("A-1")
		s.work("A-1")
		s.forgetAll()
		assert.Zero(t, s.work("A-1"))
		assert.Equal(t, forgotten, s.state("A-1"))
		s.applies(t, false, "A-1 T-1 12.50 done")
		assert.Equal(t, submitted, s.state("A-1"))
		var looked int
		require.NoError(t, s.db.QueryRowContext(t.Context(), `SELECT count(*) FROM `+live+` x`).Scan(&looked))
		assert.Zero(t, looked)
		s.refuses("A-1", "not_executed", "ask again after")
	})
}
