package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/time/rate"

	"github.com/cardwire/cardwire-go"
)

// pause is why the queue is paused, in its metadata: it outlives the replica that paused it,
// and any other resumes.
type pause struct {
	Why    string        `json:"why"`   // "": orders are sent
	Until  time.Time     `json:"until"` // when an order tests the way; zero: when the brake is released
	Tests  int           `json:"tests"` // that failed
	Since  time.Time     `json:"since"`
	Before time.Duration `json:"before"` // how long the queue was paused before, altogether
}

// The pauses of the queue: each is twice as long as the one before.
const (
	mostTests  = 10        // of which the last is a quarter of an hour after the one before
	hour       = time.Hour // the longest that a service may ask for
	someFail   = 3         // calls in a row that did not reach the service pause the queue
	keepEvery  = time.Second
	everyOrder = river.QueueDefault
	byHand     = "the queue was paused by hand"
	firstRate  = 2    // orders a second of a replica after a pause, then twice as many each second
	fullRate   = 1000 // as many as it can
)

// Text is what people are told; "": orders are sent.
func (p pause) Text() string {
	if p.Until.IsZero() {
		return p.Why
	}
	return fmt.Sprintf("%s; the next try is at %s UTC", p.Why, p.Until.UTC().Format(seconds))
}

// kind is why in a word of a few, for metrics: others would be a new series each.
func (p pause) kind() string {
	switch {
	case p.Why == onHold:
		return "hold"
	case p.Why == byHand:
		return "by hand"
	case p.Until.IsZero():
		return "brake"
	}
	return "trouble"
}

// pausedNow returns why the queue is paused.
func (s *service) pausedNow(ctx context.Context) (pause, error) {
	q, err := s.river.QueueGet(ctx, everyOrder)
	if errors.Is(err, river.ErrNotFound) { // no replica has run yet
		return pause{}, nil
	}
	if err != nil {
		return pause{}, err
	}
	p := pauseOf(q)
	if s.paused.Swap(p.Why != "") && p.Why == "" {
		s.ramp.SetLimit(firstRate)
	}
	return p, nil
}

// total is for how long the queue was paused, altogether.
func (p pause) total() time.Duration {
	if p.Why == "" {
		return p.Before
	}
	return p.Before + time.Since(p.Since)
}

func pauseOf(q *rivertype.Queue) (p pause) {
	_ = json.Unmarshal(q.Metadata, &p) // what is no pause is the zero one
	switch {
	case p.Why == onHold: // also where River's own page resumed the queue, which is no release
	case q.PausedAt == nil:
		return pause{Before: p.Before}
	case p.Why == "":
		p.Why, p.Since = byHand, *q.PausedAt
	}
	return p
}

// unpaused is the time by a clock that stops while the queue is paused.
func (s *service) unpaused(ctx context.Context) (time.Time, error) {
	p, err := s.pausedNow(ctx)
	return time.Now().UTC().Add(-p.total()), err
}

// troubled pauses the queue where the next order would fare no better: after a 429, where
// the key is refused, and after a few calls in a row that did nothing.
func (s *service) troubled(ctx context.Context, e *cardwire.Error) error {
	certain := errors.Is(e, cardwire.ErrRateLimited) || errors.Is(e, cardwire.ErrUnauthorized) ||
		errors.Is(e, cardwire.ErrSetup) || e.HTTPStatus == http.StatusTooManyRequests
	if s.troubles.Add(1) < someFail && !certain {
		return nil
	}
	return s.pause(ctx, pause{Why: e.Error(), Until: time.Now().Add(pauseFor(e, 0))})
}

// pauseFor is until the next test: as long as the service asked for, or longer each time.
func pauseFor(e *cardwire.Error, tests int) time.Duration {
	return min(max(e.RetryAfter, leastPause<<min(tests, mostTests)), hour)
}

// tooMany is why nothing is sent while too much is unresolved; "": it is not.
func (s *service) tooMany(ctx context.Context) (why string, err error) {
	err = braked(ctx, s.journal, s.brake)
	if errors.Is(err, errBraked) {
		return err.Error(), nil
	}
	return "", err
}

// brakes pauses the queue while too much is unresolved.
func (s *service) brakes(ctx context.Context) error {
	why, err := s.tooMany(ctx)
	if why != "" {
		err = s.pause(ctx, pause{Why: why})
	}
	return err
}

// pause pauses the queue for all replicas, unless it is paused.
func (s *service) pause(ctx context.Context, p pause) error {
	s.paused.Store(true)
	made := false
	err := s.change(ctx, func(now *pause) {
		if made = now.Why == ""; made {
			p.Since, p.Before = time.Now(), now.Before
			*now = p
		}
	})
	if err == nil && made {
		s.log.LogAttrs(ctx, slog.LevelError, "nothing is sent", slog.String("why", p.Text()))
	}
	return err
}

// resume resumes the queue, for all replicas. By is who or what found that it can. Only the pause
// since then ends, and where that is zero, any but a hold: it reports whether one did.
// While too much is unresolved the brake's follows one of trouble or a hold.
func (s *service) resume(ctx context.Context, by string, since time.Time) (ended bool, err error) {
	tooMany, err := s.tooMany(ctx)
	if err != nil {
		return false, err
	}
	var next pause
	err = s.change(ctx, func(p *pause) {
		ended = since.IsZero() && p.Why != onHold || p.Since.Equal(since)
		if !ended {
			return
		}
		next.Before = p.total()
		if kind := p.kind(); tooMany != "" && (kind == "hold" || kind == "trouble") {
			next.Why, next.Since = tooMany, time.Now()
		}
		*p = next
	})
	switch {
	case err != nil || !ended:
	case next.Why != "":
		s.log.LogAttrs(ctx, slog.LevelError, "another pause follows", slog.String("by", by), slog.String("why", next.Why))
	default:
		s.paused.Store(false)
		s.ramp.SetLimit(firstRate)
		s.troubles.Store(0)
		s.log.LogAttrs(ctx, slog.LevelWarn, "sending is resumed", slog.String("by", by))
	}
	return ended, err
}

// change changes the queue, and why it is paused, in one transaction. The queue's row is
// locked by what pauses it.
func (s *service) change(ctx context.Context, do func(*pause)) error {
	return s.transaction(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `
INSERT INTO river_queue (name, created_at, updated_at, metadata) VALUES ($1, $2, $2, '{}')
ON CONFLICT (name) DO UPDATE SET name = excluded.name`, everyOrder, time.Now().UTC())
		if err != nil {
			return err
		}
		q, err := s.river.QueueGetTx(ctx, tx, everyOrder)
		if err != nil {
			return err
		}
		p := pauseOf(q)
		do(&p)
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if p.Why == "" {
			err = s.river.QueueResumeTx(ctx, tx, everyOrder, nil)
		} else {
			err = s.river.QueuePauseTx(ctx, tx, everyOrder, nil)
		}
		if err == nil {
			_, err = s.river.QueueUpdateTx(ctx, tx, everyOrder, &river.QueueUpdateParams{Metadata: text})
		}
		return err
	})
}

// keep looks after the queue until ctx is done: each replica does.
func (s *service) keep(ctx context.Context) {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	swept := time.Time{}
	for {
		s.grow()
		err := s.look(ctx)
		if err == nil && time.Since(swept) >= s.sweepEvery {
			swept = time.Now()
			err = s.sweep(ctx)
			if s.purgeAfter > 0 {
				err = errors.Join(err, s.purge(ctx))
			}
		}
		if err != nil && ctx.Err() == nil {
			s.log.ErrorContext(ctx, "the queue could not be checked", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// grow lets more orders be sent, a moment after a pause.
func (s *service) grow() {
	limit := s.ramp.Limit() * 2
	if limit > fullRate {
		limit = rate.Inf
	}
	s.ramp.SetLimit(limit)
}

// look resumes the queue where it can go on. One replica has one order test the way.
func (s *service) look(ctx context.Context) error {
	p, err := s.pausedNow(ctx)
	switch {
	case err != nil || p.Why == "" || p.Why == byHand || time.Now().Before(p.Until):
		return err
	case p.Why == onHold:
		return s.holdOrders(ctx)
	}
	tooMany, err := s.tooMany(ctx)
	isBrakes := p.Until.IsZero()
	switch {
	case err != nil || isBrakes && tooMany != "":
		return err
	case isBrakes || tooMany != "": // whose pause follows one of trouble
		_, err = s.resume(ctx, "the brake", p.Since)
		return err
	}
	mine := false
	err = s.change(ctx, func(now *pause) {
		if mine = now.Why != "" && now.Until.Equal(p.Until); mine {
			now.Until = time.Now().Add(s.rescueAfter())
		}
	})
	if err != nil || !mine {
		return err
	}
	return s.test(context.WithoutCancel(ctx), p)
}

// test sends one order. If that meets trouble, the queue stays paused for longer, and for a moment if
// nothing was sent: no turn came, or the order is no longer to be sent.
func (s *service) test(ctx context.Context, seen pause) error {
	ctx, cancel := context.WithTimeout(ctx, s.jobTimeout())
	defer cancel()
	next, err := s.read(ctx, s.db, `order_no IN `+live+` AND state = 'queued' ORDER BY created_at LIMIT 1`)
	if err != nil {
		return err
	}
	if len(next) == 0 {
		_, err = s.resume(ctx, "nothing is queued", seen.Since)
		return err
	}
	snooze, trouble, err := s.send(ctx, next[0].Order, true)
	switch {
	case err != nil:
		return err
	case trouble == nil && snooze == 0:
		_, err = s.resume(ctx, "an order that was sent", seen.Since)
		return err
	}
	return s.change(ctx, func(p *pause) {
		switch {
		case p.Why == "" || !p.Since.Equal(seen.Since):
		case trouble == nil: // nothing was sent
			p.Until = time.Now().Add(leastPause)
		default:
			p.Why, p.Tests = trouble.Error(), seen.Tests+1
			p.Until = time.Now().Add(pauseFor(trouble, p.Tests))
		}
	})
}

// progress is how far the queue is.
type progress struct {
	Paused     string `json:"paused,omitempty"` // why nothing is sent; "": it is
	Since      moment `json:"since,omitzero"`   // which names the pause
	Until      moment `json:"until,omitzero"`   // when an order tests the way
	Waiting    int64  `json:"waiting"`          // orders that are to be sent
	LastMinute int64  `json:"last_minute"`      // orders whose jobs ended

	Live []total `json:"-"` // of what has not ended
}

// Left is how long that takes at the last minute's rate; 0: not known.
func (p progress) Left() time.Duration {
	if p.Paused != "" || p.LastMinute == 0 {
		return 0
	}
	return time.Minute * time.Duration(p.Waiting) / time.Duration(p.LastMinute)
}

func (s *service) progress(ctx context.Context) (p progress, err error) {
	if p.Live, err = s.liveTotals(ctx); err != nil {
		return p, err
	}
	paused, err := s.pausedNow(ctx)
	if err != nil {
		return p, err
	}
	p.Paused, p.Since, p.Until = paused.Text(), moment{paused.Since.UTC()}, moment{paused.Until}
	p.Waiting = countsOf(p.Live)[queued]
	aMinuteAgo := time.Now().UTC().Add(-time.Minute)
	err = s.db.QueryRowContext(ctx, `SELECT count(*) FROM river_job
WHERE state = 'completed' AND finalized_at > $1 AND kind = 'payout'`, aMinuteAgo).Scan(&p.LastMinute)
	return p, err
}
