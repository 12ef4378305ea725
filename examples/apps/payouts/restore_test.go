package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/sqljournal"
)

// fates are orders with their fates, one after the other.
type fates struct {
	*shop
	all map[string]string // by number
}

// end makes an order, and ends it as its number says.
func (f *fates) end(number string) {
	f.t.Helper()
	f.order(number)
	fate, _, _ := strings.Cut(number, "-")
	switch fate {
	case "refused":
		f.fails(cardwiretest.Fault{Status: 422})
	case "canceled":
		require.Equal(f.t, 200, f.cancelAs(number).StatusCode)
	case "lost":
		f.fails(lostResponse)
	case "unsent":
		f.fails(cardwiretest.Fault{Kind: cardwiretest.FaultReset})
	}
	f.work(number)
	f.all[number] = fate
}

// A database that was restored, or that a standby lost the last seconds of, has forgotten what
// 60 orders came to: executed, refused for good, canceled, or unknown and executed or not. On
// hold, with the service's ledger and the merchant's own records, none is paid twice, none of
// those that failed is paid, and each that was executed is booked.
func TestARestoreOnHold(t *testing.T) {
	t.Parallel()
	for name, isFailover := range map[string]bool{"a backup": false, "a failover": true} {
		t.Run(name, func(t *testing.T) {
			eachShop(t, func(t *testing.T, s *shop) {
				f := &fates{s, map[string]string{}}
				for n := range 20 {
					f.end(fateOf(n, "before"))
				}
				for n := range 10 { // they end after the backup
					s.order(fateOf(n, "waiting"))
				}
				restore := s.backUp(everyTable)
				for n := range 10 {
					f.end(fateOf(n, "waiting"))
				}
				for n := range 60 {
					f.end(fateOf(n, "after"))
				}
				land := s.takesOff(t, "executed-flying")
				f.all["executed-flying"] = "executed"
				restore()
				if !isFailover { // no process is left
					land()
					restore()
				}
				f.reconcile(t, land)
			})
		})
	}
}

func fateOf(n int, when string) string {
	return []string{"executed", "refused", "canceled", "lost", "unsent"}[n%5] + fmt.Sprintf("-%s-%d", when, n)
}

// backUp copies the tables, and returns what has them be as they were.
func (s *shop) backUp(tables []string) (restore func()) {
	s.t.Helper()
	over := ""
	if s.dialect == sqljournal.PostgreSQL {
		over = "OVERRIDING SYSTEM VALUE"
	}
	for _, table := range tables {
		s.exec(`CREATE TABLE backup_` + table + ` AS SELECT * FROM ` + table)
	}
	return func() {
		for _, table := range tables {
			s.exec(`DELETE FROM ` + table)
			s.exec(`INSERT INTO ` + table + ` ` + over + ` SELECT * FROM backup_` + table)
		}
	}
}

// takesOff makes a call that reaches the service, and returns what ends it without a response.
func (s *shop) takesOff(t *testing.T, number string) (land func()) {
	t.Helper()
	s.order(number)
	s.fails(cardwiretest.Fault{Kind: cardwiretest.FaultHang, Executed: true})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { _, _ = s.client.CreateTransfer(ctx, paramsFor(number)) })
	require.Eventually(t, func() bool { return s.fake.Executions(operation, number) == 1 }, waitFor, tick)
	return func() {
		cancel()
		group.Wait()
	}
}

// The result of a call that a failover lost is recorded, also of an order that is on hold since.
func TestAResultThatComesOnHold(t *testing.T) {
	eachDatabase(t, func(t *testing.T, source string) {
		set := settingsOf(source)
		set.timeout = time.Minute // it could still send
		s := openShop(t, set)
		s.order("A-1")
		restore := s.backUp(everyTable)
		land := s.takesOff(t, "A-1")
		restore()
		s.putOnHold()
		land()
		assert.Equal(t, unresolved, s.state("A-1"))
	})
}

// reconcile follows docs/operations.md.
func (f *fates) reconcile(t *testing.T, land func()) {
	t.Helper()
	set := f.settings
	set.options = []cardwire.Option{cardwire.WithHTTPClient(&http.Client{Transport: f.fake})}
	service, err := open(t.Context(), set, slog.New(slog.NewTextHandler(f.log, nil)))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, service.close()) })
	s := &shop{service: service, t: t, log: f.log, fake: f.fake}
	s.putOnHold()
	land() // of a process that goes on
	var numbers, closed []string
	for number, fate := range f.all {
		numbers = append(numbers, number)
		if fate == "refused" {
			closed = append(closed, number)
		}
	}
	deliver := func() {
		for _, number := range numbers {
			s.order(number)
			s.work(number)
		}
	}
	sent := len(f.fake.Requests())
	deliver()
	s.settle()
	do := task{comparison: lastHour(), file: fileOf(t, s.ledger()), apply: true}
	_, err = s.runs(do)
	require.ErrorContains(t, err, "more than half of the statement is not on record")
	do.Strays, do.Anyway = true, true
	_, err = s.runs(do)
	require.NoError(t, err)
	_, err = s.runs(task{closed: fileOf(t, "order\n"+strings.Join(closed, "\n"))})
	require.NoError(t, err)
	s.release()
	deliver()
	assert.Equal(t, sent, len(f.fake.Requests()), "nothing is sent before a person decides")
	for number, fate := range f.all { // which the merchant's records did not have
		if fate == "canceled" && s.state(number) == held {
			require.Equal(t, 200, s.cancelAs(number).StatusCode)
		}
	}
	require.Equal(t, 303, s.post("/held", "by=Ada&why=our+own+records&then=send"+s.hidden("seen")).Code)
	deliver()
	for number, fate := range f.all {
		want, paid := []string{submitted}, 1
		switch {
		case fate == "refused", fate == "canceled":
			want, paid = []string{failed, canceled}, 0
		case strings.HasPrefix(number, "unsent-before"):
			want, paid = []string{unresolved}, 0 // a person asks the service
		}
		assert.Contains(t, want, s.state(number), number)
		assert.Equal(t, paid, s.fake.Executions(operation, number), number)
	}
}
