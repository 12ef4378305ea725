package chaos

import (
	"context"
	"errors"
)

// Running is the faulty service with its ledger and its proxies, for tests that
// make their own calls.
type Running struct {
	service *service
	front   *proxies
}

// Start starts them. Who starts them stops them.
func Start(ctx context.Context, kinds []Kind) (*Running, error) {
	service, err := startService(ctx, kinds)
	if err != nil {
		return nil, err
	}
	front, err := startProxies(kinds, service.address)
	if err != nil {
		return nil, errors.Join(err, service.server.Close())
	}
	return &Running{service, front}, nil
}

// Base returns the base URL of each kind.
func (r *Running) Base() map[string]string { return r.front.base }

// Ledger returns what was executed.
func (r *Running) Ledger() *Ledger { return &r.service.ledger }

// Settle returns when nothing can be executed any more. The proxies still run: what
// they hold back arrives.
func (r *Running) Settle(ctx context.Context) error { return r.service.settle(ctx) }

// Stop stops the proxies, and the service if it has not settled.
func (r *Running) Stop() {
	r.front.stop()
	_ = r.service.server.Close() // of what is still open
}
