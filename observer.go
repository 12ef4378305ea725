package cardwire

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/cardwire/cardwire-go/internal/check"
	"github.com/cardwire/cardwire-go/internal/transport"
	"github.com/cardwire/cardwire-go/internal/wire"
)

// Observer has optional functions, which several goroutines may call at once.
type Observer struct {
	// CallStart is called before anything is sent or recorded, and returns the context to
	// continue with; nil: the call's own.
	CallStart   func(ctx context.Context, c CallInfo) context.Context
	CallEnd     func(ctx context.Context, c CallInfo, r CallResult) // called once, at the end
	TraceParent func(ctx context.Context) string                    // the header traceparent for own connections; "": none
	Attempt     func(ctx context.Context, c CallInfo, a Attempt)    // after each request: report Resent as an error
	Drift       func(ctx context.Context, c CallInfo, d Drift)      // of a response, once for each path and kind
	// JournalError is called if the journal failed, or if its record contradicts the
	// result: somebody may have been paid twice.
	JournalError func(ctx context.Context, c CallInfo, err error)
}

// CallInfo describes a call.
type CallInfo struct {
	Op     Op     // the operation, as in Error.Op
	Server string // the host and the port of the base URL
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

func (k *call) info() CallInfo {
	s := k.op
	return CallInfo{
		Op: s.name, Server: k.client.server, Method: s.method, Path: s.path, Reference: s.reference,
		ReadOnly: s.class != transport.Write,
	}
}

func (k *call) addTraceParent(h http.Header) {
	for _, o := range k.client.observers {
		if k.client.doer != nil || o.TraceParent == nil {
			continue
		}
		if v := o.TraceParent(k.ctx); v != "" && check.Header("traceparent", v) == nil {
			h["Traceparent"] = []string{v}
		}
	}
}

func (k *call) onAttempt(a transport.Attempt) {
	for _, o := range k.client.observers {
		if o.Attempt != nil {
			o.Attempt(k.ctx, k.info(), Attempt(a))
		}
	}
	attrs := []slog.Attr{slog.Int("status", a.HTTPStatus), slog.Duration("duration", a.Duration)}
	if cause := whyNoResponse(a); cause != "" {
		attrs = append(attrs, slog.String("cause", cause))
	}
	k.log(slog.LevelDebug, "cardwire: attempt", attrs...)
	if a.Resent {
		const message = "cardwire: the HTTP client sent a write more than once: see WithHTTPClient"
		k.log(slog.LevelError, message, attrs...)
	}
	if a.Wait > 0 {
		k.log(slog.LevelWarn, "cardwire: the attempt failed and is retried", attrs...)
	}
}

// logEnd logs how the call ended: of a write that failed, what a person needs to find the
// order and to know its next step.
func (k *call) logEnd(failure *Error) {
	if failure == nil {
		k.log(slog.LevelDebug, "cardwire: call", slog.String("outcome", "success"), slog.Int("code", k.last.Code))
		return
	}
	step, level, message := NextStep(failure), slog.LevelDebug, "cardwire: call"
	switch {
	case failure.ReadOnly:
	case step == StepReconcile:
		level, message = slog.LevelError, "cardwire: a write failed"
	case step == StepRetry || step == StepFail:
		level, message = slog.LevelWarn, "cardwire: a write failed"
	default: // it is done, or another call does it
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{
		slog.String("reference", failure.Reference),
		slog.String("outcome", failure.Outcome.String()), slog.String("step", step.String()),
		slog.Int("status", failure.HTTPStatus), slog.Int("code", failure.Code), slog.String("requestID", failure.RequestID),
	}
	if failure.Err != nil {
		attrs = append(attrs, slog.String("cause", failure.Err.Error()))
	}
	k.log(level, message, attrs...)
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

func (k *call) log(level slog.Level, message string, attrs ...slog.Attr) {
	if k.client.logger != nil {
		attrs = append([]slog.Attr{slog.String("operation", string(k.op.name))}, attrs...)
		k.client.logger.LogAttrs(k.ctx, level, message, attrs...)
	}
}

// journalFailed reports that the journal failed, and returns an error that hides the cause.
func (k *call) journalFailed(message string, cause error) error {
	err := hideCause(message+": "+journalCause(cause), cause)
	if safeWords(cause) != "" {
		err = matching(err, errExplained)
	}
	for _, o := range k.client.observers {
		if o.JournalError != nil {
			o.JournalError(k.ctx, k.info(), err)
		}
	}
	k.log(slog.LevelError, "cardwire: the journal failed",
		slog.String("reference", k.op.reference), slog.String("cause", err.Error()))
	return err
}

// drifted reports drift, and returns an error if there is any under WithStrictDrift.
func (k *call) drifted(drifts []wire.Drift) error {
	for _, d := range drifts {
		for _, o := range k.client.observers {
			if o.Drift != nil {
				o.Drift(k.ctx, k.info(), Drift(d))
			}
		}
		k.log(slog.LevelWarn, "cardwire: the response deviates from the API",
			slog.String("path", d.Path), slog.String("kind", d.Kind))
	}
	if k.client.strictDrift && len(drifts) > 0 {
		return detailed(ErrDrift, drifts[0].Path+": "+drifts[0].Kind)
	}
	return nil
}
