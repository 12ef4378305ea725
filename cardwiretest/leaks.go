package cardwiretest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// NoLeaks fails tb if, from now on until tb ends, a canary reaches the standard
// logger, slog's default logger, os.Stdout or os.Stderr: a card number or an API
// key of any service in this process, or a CVV beside a word that says what it
// is. All else that is written goes on to where it went before.
//
// Numbers and keys are found as text, also with spaces or hyphens between the
// digits, and in base64, hex and lists of decimal bytes. A CVV of three digits
// alone would be found everywhere: it counts only after cvv, cvc, cvv2, cvc2 or
// security code. Card numbers and CVVs given to AddCard are looked for like the
// service's own; keys if they have at least 8 characters.
//
// The outputs belong to the whole process. NoLeaks therefore cannot be used in
// parallel tests and panics there. What a program wrote to a copy of os.Stdout
// or os.Stderr made before NoLeaks, or tb's own log, is not seen.
func NoLeaks(tb testing.TB) {
	tb.Helper()
	tb.Setenv("CARDWIRETEST_NO_LEAKS", "1") // refuses parallel tests, which share the outputs
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
			for _, what := range leaks(o.text.Bytes()) {
				tb.Errorf("cardwiretest: %s reached %s", what, o.name)
			}
		}
	})
}

// capture holds what was written.
type capture struct{ outputs []*output }

// output is one place that was written to.
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

// redirect puts a pipe in the place of a file, and passes on what is written.
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

// captureLoggers listens in on the loggers, which may have been given other
// outputs than the ones of the process.
func (c *capture) captureLoggers() (restore func()) {
	oldSlog, oldWriter, oldFlags := slog.Default(), log.Writer(), log.Flags()
	// slog's own default handler writes to the standard logger, and must not be
	// wrapped: SetDefault would then make the standard logger write to it, for ever.
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

// tee gives every record to two handlers.
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

// registry holds what the services of this process must keep to themselves and
// cannot be known by its looks.
type registry struct {
	mu                  sync.Mutex
	keys, numbers, cvvs map[string]struct{}
}

var known = registry{
	keys: map[string]struct{}{}, numbers: map[string]struct{}{}, cvvs: map[string]struct{}{},
}

func (r *registry) add(set map[string]struct{}, v string, least int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(v) >= least {
		set[v] = struct{}{}
	}
}

func (r *registry) addKey(v string)    { r.add(r.keys, v, 8) }
func (r *registry) addNumber(v string) { r.add(r.numbers, v, 12) }
func (r *registry) addCVV(v string)    { r.add(r.cvvs, v, 3) }

func (r *registry) isKey(v string) bool { return r.has(r.keys, v) }

func (r *registry) has(set map[string]struct{}, v string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := set[v]
	return ok
}

// holds says whether one of the set stands in the text.
func (r *registry) holds(set map[string]struct{}, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for v := range set {
		if strings.Contains(text, v) {
			return true
		}
	}
	return false
}

func holdsKey(text string) bool { return known.holds(known.keys, text) }

// leaks says what a text shows, in words that do not show it again.
func leaks(text []byte) (found []string) {
	forms := append(decoded(text), string(text))
	if slices.ContainsFunc(forms, holdsNumber) {
		found = append(found, "a card number")
	}
	if slices.ContainsFunc(forms, holdsCVV) {
		found = append(found, "a CVV")
	}
	if slices.ContainsFunc(forms, holdsKey) {
		found = append(found, "an API key")
	}
	return found
}

var (
	numberLike  = regexp.MustCompile(`\d(?:[ -]?\d){11,}`)
	cvvLike     = regexp.MustCompile(`(?i)(?:cv[vc]2?|security[ _-]?code)[^0-9a-z*]{0,12}(\d{3,4})`)
	base64Like  = regexp.MustCompile(`[A-Za-z0-9+/_-]{11,}`)
	hexLike     = regexp.MustCompile(`(?:[0-9a-fA-F]{2}[ :]?){8,}`)
	dumpLike    = regexp.MustCompile(`(?m)^[0-9a-fA-F]{8} ((?: {1,2}[0-9a-fA-F]{2}){1,16})`)
	decimalLike = regexp.MustCompile(`\d{2,3}(?:,? \d{2,3}){7,}`)
)

// holdsNumber looks for a canary in every run of digits, at every place: what is
// printed beside a number may be digits too.
func holdsNumber(text string) bool {
	for _, run := range numberLike.FindAllString(text, -1) {
		digits := strings.NewReplacer(" ", "", "-", "").Replace(run)
		for i := range len(digits) - 15 {
			if isCanary(digits[i : i+16]) {
				return true
			}
		}
		if known.holds(known.numbers, digits) {
			return true
		}
	}
	return false
}

// isCanary knows a number by its looks; see world.number.
func isCanary(n string) bool {
	return n[0] >= '3' && n[0] <= '6' && n[8:8+len(marker)] == marker &&
		int(n[15]-'0') == (luhn(n[:15])+5)%10
}

func holdsCVV(text string) bool {
	for _, m := range cvvLike.FindAllStringSubmatch(text, -1) {
		if slices.Contains(canaryCVVs, m[1]) || known.has(known.cvvs, m[1]) {
			return true
		}
	}
	return false
}

// decoded returns what stands in the text in other forms.
func decoded(text []byte) []string {
	return slices.Concat(fromBase64(text), fromHex(text), fromDecimals(text))
}

func fromBase64(text []byte) (forms []string) {
	for _, run := range base64Like.FindAll(text, -1) {
		s := strings.NewReplacer("-", "+", "_", "/").Replace(string(run))
		for skip := range min(4, len(s)) { // what comes before may look like base64 too
			part := s[skip:]
			if len(part)%4 == 1 { // no base64 has this length: what comes after was taken in
				part = part[:len(part)-1]
			}
			b, _ := base64.RawStdEncoding.DecodeString(part) // as far as it goes
			forms = append(forms, string(b))
		}
	}
	return forms
}

func fromHex(text []byte) (forms []string) {
	var dump []byte // a dump breaks what it shows into lines
	for _, line := range dumpLike.FindAllSubmatch(text, -1) {
		b, _ := hex.DecodeString(strings.ReplaceAll(string(line[1]), " ", ""))
		dump = append(dump, b...)
	}
	forms = append(forms, string(dump))
	for _, run := range hexLike.FindAll(text, -1) {
		s := strings.NewReplacer(" ", "", ":", "").Replace(string(run))
		for skip := range 2 {
			part := s[skip:]
			b, _ := hex.DecodeString(part[:len(part)/2*2])
			forms = append(forms, string(b))
		}
	}
	return forms
}

func fromDecimals(text []byte) (forms []string) {
	for _, run := range decimalLike.FindAllString(string(text), -1) {
		var b []byte
		for _, n := range strings.FieldsFunc(run, func(r rune) bool { return r == ' ' || r == ',' }) {
			if v, err := strconv.ParseUint(n, 10, 8); err == nil {
				b = append(b, byte(v))
			}
		}
		forms = append(forms, string(b))
	}
	return forms
}
