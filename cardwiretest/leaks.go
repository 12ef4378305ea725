package cardwiretest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/cardwire/cardwire-go/internal/canary"
)

// NoLeaks fails tb if, from now on until tb ends, a canary reaches the standard
// logger, slog's default logger, os.Stdout or os.Stderr: a card number or an API
// key of any service in this process, or a CVV beside a word that names it. What is written
// still reaches its destination.
//
// Numbers and keys are found as plain strings, also with spaces or hyphens between the
// digits; quoted or escaped as in Go, JSON, XML and URLs; in base64 and hex; and
// as the codes of bytes, as fmt prints a []byte. Three digits alone
// would be found everywhere, so a CVV counts only after cvv, cvc, cvv2, cvc2 or
// security code. Card numbers and CVVs given to SetCard are searched for like the service's
// own, and so are keys given to WithKey that have at least 8 characters.
//
// The outputs belong to the whole process, so NoLeaks panics in a parallel test. It does not
// see what a program writes to a copy of os.Stdout or os.Stderr that was made earlier, or to
// tb's own log.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	tb.Setenv("CARDWIRETEST_NO_LEAKS", "1") // panics in a parallel test, which would share the outputs
	c := &capture{}
	restore := []func(){
		c.redirect(tb, "os.Stdout", &os.Stdout),
		c.redirect(tb, "os.Stderr", &os.Stderr),
		c.captureLoggers(),
	}
	tb.Cleanup(func() {
		tb.Helper()
		for _, f := range slices.Backward(restore) {
			f()
		}
		for _, o := range c.outputs {
			for _, what := range known.Find(o.text.String()) {
				tb.Errorf("cardwiretest: %s reached %s", what, o.name)
			}
		}
	})
}

// capture collects what was written.
type capture struct{ outputs []*output }

// output is one destination.
type output struct {
	name string
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (c *capture) output(name string) *output {
	o := &output{name: name}
	c.outputs = append(c.outputs, o)
	return o
}

// redirect replaces a file by a pipe, and passes on what is written.
func (c *capture) redirect(tb testing.TB, name string, file **os.File) (restore func()) {
	tb.Helper()
	old := *file
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatalf("cardwiretest: no pipe for %s: %v", name, err)
		return func() {}
	}
	out := c.output(name)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.MultiWriter(out, old), r)
	}()
	*file = w
	return func() {
		*file = old
		_ = w.Close()
		<-done
		_ = r.Close()
	}
}

// captureLoggers also captures the loggers, which may write to other outputs than
// those of the process.
func (c *capture) captureLoggers() (restore func()) {
	oldSlog, oldWriter, oldFlags := slog.Default(), log.Writer(), log.Flags()
	// slog's own default handler writes to the standard logger, and must not be
	// wrapped: SetDefault would then make the standard logger write to it, endlessly.
	if fmt.Sprintf("%T", oldSlog.Handler()) != "*slog.defaultHandler" {
		copied := slog.NewTextHandler(c.output("slog"), &slog.HandlerOptions{Level: slog.LevelDebug - 100})
		slog.SetDefault(slog.New(&tee{oldSlog.Handler(), copied}))
	}
	log.SetOutput(io.MultiWriter(c.output("log"), oldWriter))
	log.SetFlags(oldFlags)
	return func() {
		slog.SetDefault(oldSlog)
		log.SetOutput(oldWriter)
		log.SetFlags(oldFlags)
	}
}

// tee passes every record to two handlers.
type tee struct{ old, copied slog.Handler }

func (t *tee) Enabled(ctx context.Context, l slog.Level) bool { return t.old.Enabled(ctx, l) }

func (t *tee) Handle(ctx context.Context, r slog.Record) error {
	_ = t.copied.Handle(ctx, r.Clone()) // into memory
	return t.old.Handle(ctx, r)
}

func (t *tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tee{t.old.WithAttrs(attrs), t.copied.WithAttrs(attrs)}
}

func (t *tee) WithGroup(name string) slog.Handler {
	return &tee{t.old.WithGroup(name), t.copied.WithGroup(name)}
}

// known are the secrets of the services in this process.
var known = func() *canary.Secrets {
	s := new(canary.Secrets)
	for _, v := range canaryCVVs {
		s.AddCVV(v)
	}
	return s
}()
