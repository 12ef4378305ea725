package payouts

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
)

// askKeyEvery is how often a replica whose key is refused asks whether it is good again.
const askKeyEvery = time.Minute

// keyless is what a replica knows of its key since the service refused it. Its maintain alone uses the other fields.
type keyless struct {
	order   string    // whose call met that; "": the key is good
	idle    bool      // it takes no orders
	asked   time.Time // when it last asked
	version int64     // of the pause then
}

// isOfKey reports whether a failure is of this replica's key, and not of the service or an order.
func isOfKey(err error) bool {
	return errors.Is(err, cardwire.ErrUnauthorized) || errors.Is(err, cardwire.ErrSetup)
}

// refusedKey is the order whose call met a refusal of this replica's key; "": it is good.
func (s *Service) refusedKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key.order
}

// noteKey has this replica take no orders from here on, if the failure is of its key. Others go on: one of them sends the
// probe that ends the pause.
func (s *Service) noteKey(ctx context.Context, number string, e *cardwire.Error) {
	if !isOfKey(e) {
		return
	}
	s.mu.Lock()
	isNew := s.key.order == ""
	s.key.order = number
	s.mu.Unlock()
	if isNew {
		s.log.LogAttrs(ctx, slog.LevelError, "this replica takes no orders until its key is accepted", slog.String("why", troubleOf(*e)))
	}
}

// checkKey has a replica whose key is refused take no orders, and asks each minute, and once a person has resumed, whether
// it is good again.
func (s *Service) checkKey(ctx context.Context) error {
	number := s.refusedKey()
	if number == "" {
		return nil
	}
	if err := s.setIdle(ctx, true); errors.Is(err, context.DeadlineExceeded) {
		return nil // calls are in progress: the next look ends it
	} else if err != nil {
		return err
	}
	p, err := s.pausedNow(ctx, s.db)
	isResumed := p.Kind == "" && p.Probed == "" && p.version != s.key.version
	if err != nil || time.Since(s.key.asked) < askKeyEvery && !isResumed || s.limiter.Wait(ctx) != nil {
		return err
	}
	s.key.asked, s.key.version = time.Now(), p.version
	_, err = s.client.CardCapacity(ctx)
	e, _ := errors.AsType[*cardwire.Error](err)
	if err != nil && (e.HTTPStatus == 0 || isOfKey(err)) {
		return s.keepPaused(ctx, p, pause{
			Kind: inTrouble, Why: troubleOf(*e), Until: time.Now().Add(askKeyEvery), Probed: number,
		})
	}
	if err := s.setIdle(ctx, false); err != nil {
		return err
	}
	s.mu.Lock()
	s.key.order = ""
	s.mu.Unlock()
	s.log.WarnContext(ctx, "this replica's key is accepted again: it takes orders")
	return nil
}

// keepPaused pauses the queue for as long as no replica has a key that is accepted: none that has would send a probe.
func (s *Service) keepPaused(ctx context.Context, seen, next pause) error {
	able, err := query(ctx, s, s.db, database.One[bool], `SELECT coalesce(able_at >= @late, FALSE) FROM @payouts_control`)
	switch {
	case err != nil, able[0]:
		return err
	case seen.Kind == "":
		_, err = s.pause(ctx, next)
	case seen.Kind == inTrouble:
		next.Since, next.Probes = seen.Since, seen.Probes
		_, err = s.replacePause(ctx, seen, next)
	}
	return err
}

// setIdle has this replica take no orders, or take them again. River waits for the jobs in progress.
func (s *Service) setIdle(ctx context.Context, idle bool) (err error) {
	if s.key.idle == idle {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, maintainEvery)
	defer cancel()
	queues := s.river.Queues()
	if idle {
		err = queues.Remove(short, queue)
	} else if err = queues.Add(queue, s.queueConfig()); err != nil {
		_ = queues.Remove(short, queue) // it was added and did not start: otherwise it can never be added again
	}
	if err == nil {
		s.key.idle = idle
	}
	return err
}

func (s *Service) queueConfig() river.QueueConfig {
	return river.QueueConfig{MaxWorkers: s.config.Workers}
}
