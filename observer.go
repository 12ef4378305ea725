package cardwire

import (
	"context"
	"log/slog"
	"time"

	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Observer has optional functions, which several goroutines may call at once.
type Observer struct {
	// CallStart is called before anything is sent or recorded, and returns the context to
	// continue with; nil: the call's own.
	CallStart func(ctx context.Context, c CallInfo) context.Context
	// CallEnd is called once, after the other functions.
	CallEnd func(ctx context.Context, c CallInfo, r CallResult)
	// Attempt is called after each request. Report an attempt with Resent as an error.
	Attempt func(ctx context.Context, c CallInfo, a Attempt)
	// Drift is called for each deviation in a response, once for each path and kind.
	Drift func(ctx context.Context, c CallInfo, d Drift)
	// JournalError is called if the journal failed, or if its record contradicts the
	// result: somebody may have been paid twice.
	JournalError func(ctx context.Context, c CallInfo, err error)
}

// CallInfo describes a call.
type CallInfo struct {
	Op     Op     // the operation, as in Error.Op
	Method string // the HTTP method
	// Path is the path below the base URL, without a query; like Method, "" for an invalid Call.
	Path      string
	Reference string // the caller's reference of a write; "": none
	ReadOnly  bool   // whether the operation changes nothing
}

// CallResult describes how a call ended.
type CallResult struct {
	HTTPStatus int           // the last status; 0: no response
	Code       int           // the envelope's code; 0: none was readable
	Outcome    Outcome       // the outcome of Err; OutcomeExecuted if Err is nil
	Duration   time.Duration // how long the whole call took
	Attempts   int           // the number of requests made
	Err        error         // the call's error, or nil
}

// Drift is a deviation from the API that was tolerated.
type Drift struct {
	Path string // the place, like "data.data[].fee". An unknown name, which is payload, is "*".
	Kind string // what deviates, like "unknown field" or "string for number"; never a value
}

func (s *spec) info() CallInfo {
	return CallInfo{
		Op: s.name, Method: s.method, Path: s.path, Reference: s.reference, ReadOnly: s.class != transport.Write,
	}
}

// logFailedWrite logs what a person needs to find the order and to know its next step.
func (c *config) logFailedWrite(ctx context.Context, e *Error) {
	level := slog.LevelWarn
	if e.Outcome == OutcomeUnknown {
		level = slog.LevelError
	}
	attrs := []slog.Attr{
		slog.String("operation", string(e.Op)), slog.String("reference", e.Reference),
		slog.String("outcome", e.Outcome.String()), slog.String("step", NextStep(e).String()),
		slog.Int("status", e.HTTPStatus), slog.Int("code", e.Code), slog.String("requestID", e.RequestID),
	}
	if e.Err != nil {
		attrs = append(attrs, slog.String("cause", e.Err.Error()))
	}
	c.log(ctx, level, "cardwire: a write failed", attrs...)
}

func (k *call) onAttempt(a transport.Attempt) {
	for _, o := range k.client.observers {
		if o.Attempt != nil {
			o.Attempt(k.ctx, k.op.info(), Attempt(a))
		}
	}
	if a.Resent {
		const message = "cardwire: the HTTP client sent a write more than once: see WithHTTPClient"
		k.logAttempt(slog.LevelError, message, a, nil)
	}
	if a.Wait == 0 {
		k.attempt = &a // logged once its outcome and code are known
		return
	}
	k.logAttempt(slog.LevelDebug, "cardwire: attempt", a, nil)
	k.logAttempt(slog.LevelWarn, "cardwire: the attempt failed and is retried", a, nil)
}

// logLast logs the last attempt, if there is one that was not logged.
func (k *call) logLast(failure *Error) {
	if k.attempt != nil {
		k.logAttempt(slog.LevelDebug, "cardwire: attempt", *k.attempt, failure)
		k.attempt = nil
	}
}

func (k *call) logAttempt(level slog.Level, message string, a transport.Attempt, failure *Error) {
	attrs := []slog.Attr{
		slog.String("operation", string(k.op.name)), slog.Int("status", a.HTTPStatus), slog.Duration("duration", a.Duration),
	}
	if k.last.codeSent {
		attrs = append(attrs, slog.Int("code", k.last.Code))
	}
	if failure != nil {
		attrs = append(attrs, slog.String("outcome", failure.Outcome.String()))
	}
	if cause := whyNoResponse(a); cause != "" {
		attrs = append(attrs, slog.String("cause", cause))
	}
	k.client.log(k.ctx, level, message, attrs...)
}

// whyNoResponse returns why an attempt has no response that could be read; "": it has one.
func whyNoResponse(a transport.Attempt) string {
	switch {
	case a.HTTPStatus == 0 && a.Phase == "connect":
		return "no connection"
	case a.HTTPStatus == 0:
		return "no response"
	case a.HTTPStatus/100 == 2 && a.Wait > 0:
		return "the response broke off"
	}
	return ""
}

func (c *config) log(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	if c.logger != nil {
		c.logger.LogAttrs(ctx, level, message, attrs...)
	}
}

// journalFailed reports that the journal failed, and returns an error that hides the cause.
func (k *call) journalFailed(message string, cause error) error {
	err := hideCause(message+": "+journalCause(cause), cause)
	for _, o := range k.client.observers {
		if o.JournalError != nil {
			o.JournalError(k.ctx, k.op.info(), err)
		}
	}
	k.client.log(k.ctx, slog.LevelError, "cardwire: the journal failed", slog.String("operation", string(k.op.name)),
		slog.String("reference", k.op.reference), slog.String("cause", err.Error()))
	return err
}

// drifted reports drift, and returns an error if there is any under WithStrictDrift.
func (k *call) drifted(drifts []wire.Drift) error {
	for _, d := range drifts {
		for _, o := range k.client.observers {
			if o.Drift != nil {
				o.Drift(k.ctx, k.op.info(), Drift(d))
			}
		}
		k.client.log(k.ctx, slog.LevelWarn, "cardwire: the response deviates from the API",
			slog.String("operation", string(k.op.name)), slog.String("path", d.Path), slog.String("kind", d.Kind))
	}
	if k.client.strictDrift && len(drifts) > 0 {
		return detailed(ErrDrift, drifts[0].Path+": "+drifts[0].Kind)
	}
	return nil
}
