package payouts

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/internal/database"
)

const (
	tellAtOnce   = 200
	tellEvery    = time.Second
	tellTogether = 20 * time.Millisecond // it waits for more: each that is told alone costs a transaction
)

// wakeTeller wakes tellAlways, so that what has just changed is told at once.
func (s *Service) wakeTeller() {
	select {
	case s.marked <- struct{}{}:
	default: // it is awake
	}
}

// tellAlways tells what changes until ctx is done: each replica does.
func (s *Service) tellAlways(ctx context.Context) {
	ticker := time.NewTicker(tellEvery)
	defer ticker.Stop()
	for {
		n, err := s.tell(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "changed orders could not be read", "error", err)
		}
		if n == tellAtOnce {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.marked:
			select {
			case <-ctx.Done():
			case <-time.After(tellTogether):
			}
		}
	}
}

// tell tells of some orders that have changed, and returns how many marks it has read; 0: there are none, or none of
// their orders could be told. With Changed each order has a transaction of its own, and is told later if that fails.
func (s *Service) tell(ctx context.Context) (n int, err error) {
	mine := ` AND NOT (SELECT tells FROM @payouts_control)`
	if s.config.Changed != nil {
		mine = ""
	}
	numbers, err := query(ctx, s, s.db, func(scan scan) (number string, err error) {
		marks := 0
		err = scan(&number, &marks)
		n += marks
		return number, err
	}, `SELECT order_no, count(*) FROM (SELECT * FROM @payouts_marks m WHERE due <= NOW() AND EXISTS (
	SELECT 1 FROM @payouts p WHERE p.order_no = m.order_no)`+mine+` ORDER BY due, number LIMIT `+strconv.Itoa(tellAtOnce)+`) few
GROUP BY order_no ORDER BY min(tries), min(due)`) // what failed before is the last: it may take all of Timeout
	if err != nil {
		return 0, err
	}
	size := max(len(numbers), 1)
	if s.config.Changed != nil {
		size = 1
	} else if n > 0 {
		s.mute.Do(func() { s.log.WarnContext(ctx, "no replica has Changed: nobody is told what becomes of orders") })
	}
	isTold := false
	for some := range slices.Chunk(numbers, size) {
		if err == nil {
			var told bool
			told, err = s.tellOf(ctx, some)
			isTold = isTold || told
		}
		if err != nil && s.config.Changed != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "an order could not be told: it is told again", "order", some[0], "error", err)
			err = s.tellLater(ctx, some[0])
		}
	}
	if !isTold {
		return 0, err
	}
	return n, err
}

// tellOf tells these orders. It locks them first, so that no other replica does, and then reads their marks and
// states. The journal's rows are not locked: a change leaves another mark.
func (s *Service) tellOf(ctx context.Context, numbers []string) (isTold bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	err = s.transaction(ctx, func(tx *sql.Tx) error {
		locked, err := query(ctx, s, tx, database.One[string],
			`SELECT order_no FROM @payouts WHERE order_no IN `+database.Placeholders(0, numbers)+` ORDER BY order_no @skip`, database.Parameters(numbers)...)
		if err != nil || len(locked) == 0 {
			return err
		}
		in := `order_no IN ` + database.Placeholders(0, locked)
		marks, err := query(ctx, s, tx, database.One[int64], `SELECT number FROM @payouts_marks WHERE `+in, database.Parameters(locked)...)
		if err != nil || len(marks) == 0 {
			return err
		}
		orders, err := s.read(ctx, tx, in, database.Parameters(locked)...)
		if err == nil {
			err = s.tellEach(ctx, tx, orders)
		}
		if err != nil {
			return err
		}
		isTold = true
		return s.exec(ctx, tx, `DELETE FROM @payouts_marks WHERE number IN `+database.Placeholders(0, marks), database.Parameters(marks)...)
	})
	return isTold && err == nil, err
}

// tellEach tells of orders that are locked, and keeps what was told.
func (s *Service) tellEach(ctx context.Context, tx *sql.Tx, orders []order) error {
	var values []string
	var args []any
	for _, o := range orders {
		state, id := o.State, o.ServiceID
		if state == StateQueued || state == StateSending {
			state, id = "", "" // so that it is told if it is unresolved again
		}
		if state == o.Told && id == o.ToldID {
			continue
		}
		if state == StateUnresolved && hasEnded(o.Told) && o.isFree() {
			s.logChange(ctx, slog.LevelError, o.Number, state, "payouts", "somebody has replaced its row in the journal: it was told as "+string(o.Told))
			continue // that it was told as ended keeps it from being sent
		}
		if state != "" && s.config.Changed != nil {
			if err := s.changed(ctx, tx, o.Order); err != nil {
				return err
			}
		}
		told := []string{o.Number, string(state), id}
		values, args = append(values, database.Placeholders(len(args), told)), append(args, database.Parameters(told)...)
	}
	if len(values) == 0 {
		return nil
	}
	return s.exec(ctx, tx, `UPDATE @payouts SET told = v.column2, told_id = v.column3
FROM (VALUES `+strings.Join(values, ", ")+`) AS v WHERE order_no = v.column1`, args...)
}

// changed calls Changed. A panic there must not end the calls in progress, and the program again at each start.
func (s *Service) changed(ctx context.Context, tx *sql.Tx, o Order) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("it panicked: %v\n%s", what, debug.Stack())
		}
	}()
	err = s.config.Changed(ctx, tx, o)
	if ctx.Err() != nil {
		err = fmt.Errorf("payouts: Changed took longer than Timeout (%s): have a job of your own do what takes long: %w",
			s.config.Timeout, cmp.Or(err, ctx.Err()))
	}
	return err
}

// tellLater has an order that could not be told wait, longer each time.
func (s *Service) tellLater(ctx context.Context, number string) error {
	tries, err := query(ctx, s, s.db, database.One[int64],
		`SELECT coalesce(max(tries), 0) FROM @payouts_marks WHERE order_no = $1`, number)
	if err != nil {
		return err
	}
	pause := min(minPause<<min(tries[0], maxProbes), maxPause)
	return s.exec(ctx, s.db, `UPDATE @payouts_marks SET due = $2, tries = $3 WHERE order_no = $1 AND due <= NOW()`,
		number, s.moment(time.Now().Add(pause)), tries[0]+1)
}

// noteTeller has replicas without Changed leave the marks to those with it from here on, also while none of these runs.
func (s *Service) noteTeller(ctx context.Context) error {
	if s.config.Changed == nil {
		return nil
	}
	return s.exec(ctx, s.db, `UPDATE @payouts_control SET tells = TRUE WHERE NOT tells`)
}

// markMissed marks orders that have changed without a mark: by time alone, as where a call never ended, or by a hold. It
// also removes the marks that calls of other programs left and that are of no order: one that comes later has its own.
func (s *Service) markMissed(ctx context.Context) error {
	err := s.exec(ctx, s.db, `INSERT INTO @payouts_marks (order_no) SELECT order_no FROM @payouts_orders
WHERE order_no IN @live AND state NOT IN (told, 'queued', 'sending')
	AND order_no NOT IN (SELECT order_no FROM @payouts_marks)`)
	if err != nil {
		return err
	}
	return s.exec(ctx, s.db, `DELETE FROM @payouts_marks WHERE NOT EXISTS (
	SELECT 1 FROM @payouts p WHERE p.order_no = @payouts_marks.order_no)`)
}
