package cardwire

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Observer is a set of optional functions that are told of calls. They are
// called on the caller's goroutine, or one of the call's own, and must be safe
// for concurrent use and quick.
type Observer struct {
	// CallStart is told before anything is sent or recorded; the context that it
	// returns is the call's from then on.
	CallStart func(ctx context.Context, c CallInfo) context.Context
	// CallEnd is told last.
	CallEnd func(ctx context.Context, c CallInfo, r CallResult)
	// Attempt is told after each request.
	Attempt func(ctx context.Context, c CallInfo, a Attempt)
	// Drift is told of each kind of deviation in an answer, once a place.
	Drift func(ctx context.Context, c CallInfo, d Drift)
	// JournalError is told where Journal.End failed and the intent stays open.
	JournalError func(ctx context.Context, c CallInfo, err error)
}

// CallInfo describes a call.
type CallInfo struct {
	// Op is the operation, as in Error.Op.
	Op string
	// Method is the HTTP method.
	Method string
	// Path is the path below the base URL, without a query.
	Path string
	// Reference is the caller's reference of a write; "": none.
	Reference string
	// Write says that the call changes something.
	Write bool
}

// CallResult describes how a call ended.
type CallResult struct {
	// HTTPStatus is the last status; 0: no answer.
	HTTPStatus int
	// Code is the envelope's code; 0: none was readable.
	Code int
	// Outcome is meaningful when Err is not nil.
	Outcome Outcome
	// Duration is that of the whole call.
	Duration time.Duration
	// Attempts is the number of requests made.
	Attempts int
	// Err is the call's error, or nil.
	Err error
}

// Drift is a deviation from the interface that was tolerated.
type Drift struct {
	// Path is the place, like "data.data[].fee". Indices are left out, and an
	// unknown name is "*", since it is payload too.
	Path string
	// Kind is what deviates: "unknown member", "missing member", "text for
	// number" and the like; never a value.
	Kind string
}

// DriftLogger returns an [Observer] that logs drift at warning level; with nil, or
// a logger without a handler, it logs nothing.
func DriftLogger(l *slog.Logger) Observer {
	if l == nil || isNil(l.Handler()) {
		return Observer{}
	}
	return Observer{Drift: func(ctx context.Context, c CallInfo, d Drift) {
		l.WarnContext(ctx, "cardwire: the answer deviates from the interface",
			"operation", c.Op, "path", d.Path, "kind", d.Kind)
	}}
}

// info is what observers are told; made when one is.
func (k *call) info() CallInfo {
	return CallInfo{
		Op: k.op.name, Method: k.op.method, Path: k.op.path,
		Reference: k.op.reference, Write: k.op.class == transport.Write,
	}
}

// started, ended, onAttempt and drifted tell the observers.

func (k *call) started(ctx context.Context) context.Context {
	for _, o := range k.client.observers {
		if o.CallStart != nil {
			if next := o.CallStart(ctx, k.info()); next != nil {
				ctx = next
			}
		}
	}
	return ctx
}

func (k *call) ended(ctx context.Context, failure *Error) {
	if len(k.client.observers) == 0 {
		return
	}
	result := CallResult{
		HTTPStatus: k.last.status, Code: k.last.code,
		Duration: time.Since(k.start), Attempts: k.last.tries,
	}
	if failure != nil {
		result.Outcome, result.Err = failure.Outcome, failure
	}
	for _, o := range k.client.observers {
		if o.CallEnd != nil {
			o.CallEnd(ctx, k.info(), result)
		}
	}
}

// onAttempt returns nil where nobody listens, which spares the call the work.
func (k *call) onAttempt(ctx context.Context) func(transport.Attempt) {
	if k.client.logger == nil && len(k.client.observers) == 0 {
		return nil
	}
	return func(a transport.Attempt) {
		for _, o := range k.client.observers {
			if o.Attempt != nil {
				o.Attempt(ctx, k.info(), Attempt(a))
			}
		}
		if a.Wait == 0 {
			k.last.attempt = &a // to be logged when its outcome and code are known
			return
		}
		k.log(ctx, slog.LevelDebug, "cardwire: attempt", a, nil)
		k.log(ctx, slog.LevelWarn, "cardwire: the attempt failed and is repeated", a, nil)
	}
}

// logLast logs the attempt that no other followed.
func (k *call) logLast(ctx context.Context, failure *Error) {
	if k.last.attempt != nil {
		k.log(ctx, slog.LevelDebug, "cardwire: attempt", *k.last.attempt, failure)
	}
}

// log writes what is safe to write, and nothing else.
func (k *call) log(ctx context.Context, level slog.Level, text string, a transport.Attempt, failure *Error) {
	l := k.client.logger
	if l == nil || !l.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("operation", k.op.name), slog.Int("status", a.HTTPStatus), slog.Duration("duration", a.Duration),
	}
	if k.last.code != 0 {
		attrs = append(attrs, slog.Int("code", k.last.code))
	}
	if failure != nil {
		attrs = append(attrs, slog.String("outcome", failure.Outcome.String()))
	}
	l.LogAttrs(ctx, level, text, attrs...)
}

func (k *call) journalFailed(ctx context.Context, err error) {
	err = hideCause("the journal did not record the result: the intent stays open", err)
	for _, o := range k.client.observers {
		if o.JournalError != nil {
			o.JournalError(ctx, k.info(), err)
		}
	}
	if k.client.logger != nil {
		k.client.logger.WarnContext(ctx, "cardwire: the journal did not record the result", "operation", k.op.name)
	}
}

// drifted tells of drift, and returns an error under WithStrictDrift.
func (k *call) drifted(ctx context.Context, drifts []wire.Drift) error {
	for _, d := range drifts {
		for _, o := range k.client.observers {
			if o.Drift != nil {
				o.Drift(ctx, k.info(), Drift(d))
			}
		}
	}
	if k.client.strictDrift && len(drifts) > 0 {
		return &detailError{ErrDrift, drifts[0].Path + ": " + drifts[0].Kind}
	}
	return nil
}

// watchesDrift says whether anybody would hear of drift.
func (c *config) watchesDrift() bool {
	return c.strictDrift || slices.ContainsFunc(c.observers, func(o Observer) bool { return o.Drift != nil })
}
