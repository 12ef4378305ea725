package payouts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/internal/database"
)

// The kinds of pauses, in a word of a few: for metrics others would be a new series each.
const (
	inTrouble = "trouble" // with the service: one order is tried now and then
	brake     = "brake"   // too much is unresolved
	byHand    = "by hand" // until a person resumes
	refused   = "refused" // orders alike, until a person resumes
	onHold    = "hold"    // of the journal: after a restore, until a person releases it
)

// pause is why nothing is sent, for all replicas. It is in a table of its own, which outlives the
// replica that paused, and is read with each order before its call. The queue goes on meanwhile, as slowly as after a pause.
type pause struct {
	Kind   string // "": orders are sent
	Why    string
	Since  time.Time
	Until  time.Time // of trouble: when an order is sent as a probe
	Probes int       // different orders that met the same trouble as probes
	Probed string    // the last order that was a probe

	Floor     time.Time // of the last hold: before it nobody can say that something was not executed
	version   int64     // of what stands
	isResumed bool      // a person has seen what was refused before
}

const (
	maxProbes   = 10   // twice as long after each, at most so often
	maxTroubles = 3    // orders in a row that did not reach the service pause the queue
	firstRate   = 2    // orders a second of a replica after a pause, then twice as many each second
	fullRate    = 1000 // as many as it can

	longTurnless = 5 * time.Minute  // much longer than a replica waits among many
	probeEvery   = 16 * time.Second // at least: an outage that is over ends soon
)

// Text is what people are told; "": orders are sent.
func (p pause) Text() string {
	if p.Until.IsZero() {
		return p.Why
	}
	return fmt.Sprintf("%s; the next try is at %s UTC, and at once after Resume", p.Why, p.Until.UTC().Format(time.DateTime))
}

// pausedNow returns why nothing is sent: a hold before anything else.
func (s *Service) pausedNow(ctx context.Context, db querier) (pause, error) {
	all, err := query(ctx, s, db, func(scan scan) (p pause, err error) {
		var by, why string
		var since, floor time.Time
		err = scan(&p.version, &p.Kind, &p.Why, database.Moment(&p.Since), database.Moment(&p.Until), &p.Probes, &p.Probed,
			&by, &why, database.Moment(&since), database.Moment(&floor))
		if by != "" {
			p = pause{Kind: onHold, Why: "put on hold by " + by + ": " + why, Since: since}
		}
		p.Floor = floor
		return p, err
	}, `SELECT c.version, c.kind, c.why, c.since, c.until, c.tests, c.tested, h.held_by, h.held_why, h.held_at, h.floor
FROM @payouts_control c, @intents_journal h`)
	return append(all, pause{})[0], err
}

// replacePause sets the next pause if the current one is still the one that was seen (zero: none), and reports whether it
// did. A pause that only a person ends replaces any other kind, whatever was seen.
func (s *Service) replacePause(ctx context.Context, seen, next pause) (changed bool, err error) {
	var since, until any
	if next.Kind != "" {
		since = s.moment(next.Since)
	}
	if !next.Until.IsZero() {
		until = s.moment(next.Until)
	}
	const people = `('` + byHand + `', '` + refused + `')`
	n, err := query(ctx, s, s.db, database.One[int64], `
UPDATE @payouts_control SET version = version + 1, kind = $1, why = $2, since = $3, until = $4, tests = $5, tested = $6,
	resumed = CASE WHEN $9 THEN NOW() ELSE resumed END WHERE CASE WHEN $1 = '`+byHand+`' THEN kind <> $1 WHEN $1 = '`+refused+`' THEN kind NOT IN `+people+`
	WHEN $7 = '' THEN kind = '' ELSE version = $8 END RETURNING version`,
		next.Kind, next.Why, since, until, next.Probes, next.Probed, seen.Kind, seen.version, next.isResumed)
	return len(n) > 0, err
}

// noteTrouble pauses the queue where the next order would fare no better: after a 429, where
// the key is refused, and after a few orders in a row that did nothing. One order proves nothing of
// the others: the next probe is another one.
func (s *Service) noteTrouble(ctx context.Context, number string, e *cardwire.Error) error {
	certain := errors.Is(e, cardwire.ErrRateLimited) || isOfKey(e)
	s.mu.Lock()
	s.troubles[number] = true
	few := len(s.troubles) < maxTroubles
	s.mu.Unlock()
	if few && !certain {
		return nil
	}
	_, err := s.pause(ctx, pause{Kind: inTrouble, Why: troubleOf(*e), Until: time.Now().Add(pauseFor(e, 0)), Probed: number})
	return err
}

// troubleOf is what is wrong, whichever order met it.
func troubleOf(e cardwire.Error) string {
	e.Reference, e.RequestID, e.RetryAfter = "", "", 0
	return e.Error()
}

// noteTurn notes whether an order had its turn. If none had one for five minutes it pauses the queue, so that people
// see why: waiting logs nothing.
func (s *Service) noteTurn(ctx context.Context, hasTurn bool) error {
	s.mu.Lock()
	if hasTurn {
		s.turnless = time.Time{}
	} else if s.turnless.IsZero() {
		s.turnless = time.Now()
	}
	since := s.turnless
	s.mu.Unlock()
	if hasTurn || time.Since(since) < longTurnless {
		return nil
	}
	_, err := s.pause(ctx, pause{Kind: inTrouble, Until: time.Now().Add(minPause), Why: "for five minutes " +
		"no order had its turn: check Rate, and the clock of the database"})
	return err
}

// clearTroubles forgets the troubles: an order reached the service.
func (s *Service) clearTroubles() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.troubles)
}

// pauseFor returns how long to wait before the next probe: as long as the service asked for, of which the client
// believes an hour at most, or longer each time.
func pauseFor(e *cardwire.Error, probes int) time.Duration {
	return max(e.RetryAfter, min(minPause<<min(probes, maxProbes), probeEvery))
}

// whyBraked returns why the brake stops the queue; "": it does not. Orders that are unresolved only for a hold, since
// nothing of them had happened, do not count.
func (s *Service) whyBraked(ctx context.Context) (why string, err error) {
	most := int64(s.config.Brake)
	if most < 0 {
		return "", nil
	}
	n, err := query(ctx, s, s.db, database.One[int64], `
SELECT count(*) FROM @payouts_orders WHERE state = 'unresolved' AND journal NOT IN ('refused', 'not_sent') AND order_no IN (
	SELECT order_no FROM @payouts WHERE `+candidates(StateUnresolved)+` UNION SELECT order_no FROM @payouts_marks)`)
	if err == nil && n[0] >= most {
		why = fmt.Sprintf("too many orders are unresolved: resolve them first (unresolved: %d, Brake: %d)", n[0], most)
	}
	return why, err
}

// checkBrake pauses the queue while too much is unresolved.
func (s *Service) checkBrake(ctx context.Context) error {
	why, err := s.whyBraked(ctx)
	if why != "" {
		_, err = s.pause(ctx, pause{Kind: brake, Why: why})
	}
	return err
}

// pause pauses the queue for all replicas, unless it is paused, and reports whether it did.
func (s *Service) pause(ctx context.Context, p pause) (changed bool, err error) {
	p.Since = time.Now()
	changed, err = s.replacePause(ctx, pause{}, p)
	if changed {
		s.log.LogAttrs(ctx, slog.LevelError, "nothing is sent", slog.String("why", p.Text()))
	}
	return changed, err
}

// resume ends the pause that was seen, for all replicas, since a person says so. By is who. Refusals from before no longer
// count: that person has seen them.
func (s *Service) resume(ctx context.Context, by string, seen pause) (ended bool, err error) {
	if seen.Kind == "" {
		return false, nil
	}
	return s.endPause(ctx, by, seen, pause{isResumed: true})
}

// endPause ends the pause that was seen. By is who or what found that it can. While too much is unresolved the brake's
// follows any other.
func (s *Service) endPause(ctx context.Context, by string, seen, next pause) (ended bool, err error) {
	if seen.Kind != brake {
		why, err := s.whyBraked(ctx)
		if err != nil {
			return false, err
		}
		if why != "" {
			next = pause{Kind: brake, Why: why, Since: time.Now(), isResumed: next.isResumed}
		}
	}
	ended, err = s.replacePause(ctx, seen, next)
	if ended {
		s.clearTroubles()
		s.log.LogAttrs(ctx, slog.LevelWarn, "the pause has ended", slog.String("by", by), slog.String("next", next.Why))
	}
	return ended, err
}

// checkPause resumes the queue where it can go on. One replica sends one order as a probe.
func (s *Service) checkPause(ctx context.Context) error {
	err1 := s.checkKey(ctx)
	p, err2 := s.pausedNow(ctx, s.db)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if p.Kind != "" {
		s.ramp.SetLimit(firstRate)
	}
	if p.Kind == onHold && !p.Since.Equal(s.held) {
		s.held = p.Since
		s.log.ErrorContext(ctx, "nothing is sent: the journal is on hold", "why", p.Why)
	}
	switch {
	case p.Kind == brake:
		if why, err := s.whyBraked(ctx); why != "" || err != nil {
			return err
		}
		_, err := s.endPause(ctx, "the brake", p, pause{})
		return err
	case p.Kind == inTrouble && !time.Now().Before(p.Until) && s.refusedKey() == "":
		mine := p
		mine.Until = time.Now().Add(s.rescueAfter())
		if isMine, err := s.replacePause(ctx, p, mine); err != nil || !isMine {
			return err
		}
		mine.version++
		return s.sendProbe(context.WithoutCancel(ctx), mine)
	}
	return nil
}

// sendProbe sends one order. If that meets trouble, the queue stays paused: for longer if the trouble is the same and the
// order another one, or as long as this order waits. If nothing was sent, since no turn came or the order is no longer to
// be sent, it is for a moment.
func (s *Service) sendProbe(ctx context.Context, seen pause) error {
	ctx, cancel := context.WithTimeout(ctx, s.jobTimeout())
	defer cancel()
	next, err := s.nextProbe(ctx, seen.version/2%2 == 0) // each probe has two versions
	if err != nil {
		return err
	}
	if len(next) == 0 {
		_, err = s.endPause(ctx, "nothing is queued", seen, pause{Probed: seen.Probed})
		return err
	}
	number := next[0].Number
	snooze, failure, err := s.send(ctx, number, true)
	then := seen
	then.Probed = number
	switch {
	case err != nil:
		return err
	case failure != nil:
		then.Why = troubleOf(*failure)
		if then.Why == seen.Why && number != seen.Probed {
			then.Probes++
		}
		then.Until = time.Now().Add(max(pauseFor(failure, then.Probes), min(snooze, probeEvery)))
	case snooze == 0:
		_, err = s.endPause(ctx, "an order that was sent", seen, pause{Probed: number})
		return err
	default:
		then.Until = time.Now().Add(minPause)
	}
	_, err = s.replacePause(ctx, seen, then)
	return err
}

// nextProbe returns the order that is tried next: the newest or the oldest of those that were never tried in vain, or else
// the one whose last try is the longest ago. Whoever is refused holds up nobody.
func (s *Service) nextProbe(ctx context.Context, newest bool) ([]order, error) {
	direction := ""
	if newest {
		direction = " DESC"
	}
	return s.read(ctx, s.db, `order_no IN @live AND state = 'queued'
ORDER BY (SELECT p.tried_at FROM @payouts p WHERE p.order_no = o.order_no) NULLS FIRST, created_at`+direction+`, order_no`+direction+` LIMIT 1`)
}
