package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
)

// onHold is why nothing is sent until somebody releases it: after a restore nothing on record
// knows which of the orders that wait, or come again, have failed or were canceled since the backup.
const onHold = "on hold until somebody releases it"

// isOnHold is whether it is, in SQL, and heldNow what is said of an order that would be queued.
const (
	isOnHold = `EXISTS (SELECT 1 FROM river_queue WHERE name = '` + everyOrder + `' AND metadata ->> 'why' = '` + onHold + `')`
	heldNow  = `CASE WHEN ` + isOnHold + ` THEN 'held' ELSE '' END`
)

// hold pauses the queue for all replicas, also where it is paused, and holds what is queued.
func (s *service) hold(ctx context.Context) error {
	s.paused.Store(true)
	err := s.change(ctx, func(p *pause) {
		if p.Why != onHold {
			*p = pause{Why: onHold, Since: time.Now(), Before: p.total()}
		}
	})
	if err == nil {
		err = s.holdOrders(ctx)
	}
	return err
}

// holdOrders holds what is queued, or would be if the journal forgot another's request. Each replica
// repeats it while it is on hold: an order may have come just before.
func (s *service) holdOrders(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, `UPDATE payouts SET said = 'held', said_at = $1
WHERE said = '' AND `+isOnHold+` AND order_no IN (
	SELECT order_no FROM payouts_states WHERE order_no IN (`+unheld+`) AND state IN ('queued', 'conflict'))`, time.Now().UTC())
	return err
}

// sendHeld releases an order that was held, with a day of its own.
func (s *service) sendHeld(ctx context.Context, number, by, why string) (o order, err error) {
	p, err := s.pausedNow(ctx)
	switch {
	case err != nil:
		return o, err
	case p.Why == onHold:
		return o, conflict("the program is on hold: release the hold first")
	}
	return s.decide(ctx, number, by, "released", func(tx *sql.Tx, o order) error {
		if o.State != held {
			return errMoved
		}
		err := agree(ctx, tx, o, "send_again")
		return cmp.Or(err, record(ctx, tx, number, "released", by, why))
	})
}

// heldNumbers are the orders that are held, and what names all of them: a person decides about
// those that were seen.
func (s *service) heldNumbers(ctx context.Context) (numbers []string, digest string, err error) {
	err = sqlscan.Select(ctx, s.db, &numbers, `SELECT order_no FROM payouts_states
WHERE order_no IN `+live+` AND state = 'held' ORDER BY created_at, order_no`)
	return numbers, fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(numbers, "\x00")))), err
}

// postHeld sends or closes all orders that are held, and that were seen to be.
func (s *service) postHeld(w http.ResponseWriter, r *http.Request) (any, error) {
	var then, seen string
	by, why, err := decodeBy(r, map[string]any{"then": &then, "seen": &seen})
	if err != nil {
		return nil, err
	}
	do := map[string]decision{"send": s.sendHeld, "close": s.cancel}[then]
	if do == nil {
		return nil, invalid("then must be send or close")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), uploadTime) // they may be many
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(uploadTime + time.Minute)) // not of a test
	numbers, digest, err := s.heldNumbers(ctx)
	if err != nil {
		return nil, err
	}
	if seen != digest {
		return nil, conflict("seen does not match the orders that are held now: check them again")
	}
	done := 0
	for _, number := range numbers {
		switch _, err := do(ctx, number, by, why); {
		case err == nil:
			done++
		case !errors.Is(err, errMoved):
			p := s.problemOf(r, err)
			return nil, newProblem(p.Status, "%d of %d were done: %s", done, len(numbers), p.Detail)
		}
	}
	if moved := len(numbers) - done; moved > 0 {
		return nil, newProblem(http.StatusConflict, "%d of %d had changed state, and were left as they are: check them",
			moved, len(numbers))
	}
	return address("/"), nil
}

// ready responds where orders are accepted, and says that none is sent, but not why: it asks for
// no password.
func (s *service) ready(_ http.ResponseWriter, r *http.Request) (any, error) {
	status := map[string]string{"status": "up"}
	err := s.verify(r.Context())
	if err != nil {
		return nil, err
	}
	p, err := s.pausedNow(r.Context())
	switch {
	case p.Why == "":
	case p.Why == onHold:
		status["paused"] = "on hold"
	default:
		status["paused"] = "paused"
	}
	return status, err
}
