// Package hostile_test calls every exported function and method with what no
// caller should give them.
package hostile_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"go/ast"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/cardwire/cardwire-go"
	"github.com/cardwire/cardwire-go/cardwiretest"
	"github.com/cardwire/cardwire-go/internal/test/wiretest"
	"github.com/cardwire/cardwire-go/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// functions are all that are exported, by their names; of Call, some instances.
var functions = named(
	cardwire.Call[any], cardwire.Call[int], cardwire.Call[*cardwire.Card], cardwire.DateOf, cardwire.DefaultProfile,
	cardwire.DefaultRetryPolicy, cardwire.New, cardwire.NewCVV,
	cardwire.NewCardNumber, cardwire.NewEncryptedPAN, cardwire.NewFromEnv, journal.NewMemory, cardwire.NextStep,
	cardwire.RetryAfter, cardwire.ServiceID, cardwire.WithAnyBasePath,
	cardwire.WithAccount, cardwire.WithHTTPClient, cardwire.WithHeader, cardwire.WithInsecureHTTP, cardwire.WithJournal,
	cardwire.WithKeySource, cardwire.WithLimiter, cardwire.WithLogger, cardwire.WithMaskedCards,
	cardwire.WithMaxResponseBytes, cardwire.WithObserver, cardwire.WithPrefetch, cardwire.WithProfile,
	cardwire.WithResponse, cardwire.WithRetry, cardwire.WithStrictDrift, cardwire.WithTLSConfig, cardwire.WithTimeout,
	cardwire.WithTransport,
	cardwire.WithUserAgent, cardwire.WithoutRetry,
)

func named(list ...any) map[string]any {
	all := map[string]any{}
	for _, f := range list {
		name := strings.Replace(runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name(), "cardwire-go.", "cardwire.", 1)
		name, instance, _ := strings.Cut(filepath.Base(name), "[")
		if instance != "" {
			name += fmt.Sprintf("[%T]", f)
		}
		all[name] = f
	}
	return all
}

// receivers are all exported types but interfaces: those that functions and methods take
// and return, and two errors.
var receivers = func() (types []reflect.Type) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		ours := of.PkgPath() == reflect.TypeFor[cardwire.Client]().PkgPath()
		if seen[of] || of.Name() != "" && !ours {
			return
		}
		seen[of] = true
		if ours && of.Kind() != reflect.Interface && ast.IsExported(of.Name()) {
			types = append(types, of)
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			walk(of.Elem())
		case reflect.Func:
			for in := range of.Ins() {
				walk(in)
			}
			for out := range of.Outs() {
				walk(out)
			}
		case reflect.Struct:
			for i := range of.NumField() {
				walk(of.Field(i).Type)
			}
		}
		for _, with := range []reflect.Type{of, reflect.PointerTo(of)} {
			for m := range with.Methods() {
				walk(m.Type)
			}
		}
	}
	for _, f := range functions {
		walk(reflect.TypeOf(f))
	}
	walk(reflect.TypeFor[cardwire.Error]())
	walk(reflect.TypeFor[cardwire.DuplicateIntent]())
	walk(reflect.TypeFor[journal.Record]())
	slices.SortFunc(types, func(a, b reflect.Type) int { return strings.Compare(a.String(), b.String()) })
	return types
}()

func TestTheListsAreComplete(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for name := range functions {
		name, _, _ = strings.Cut(name, "[")
		found[name] = true
	}
	for _, typ := range receivers {
		found[typ.String()] = true
	}
	for _, file := range wiretest.Source(t, "../../..") {
		ast.Inspect(file, func(n ast.Node) bool {
			name := ""
			switch d := n.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					name = d.Name.Name
				}
			case *ast.TypeSpec:
				if _, isInterface := d.Type.(*ast.InterfaceType); !isInterface {
					name = d.Name.Name
				}
			}
			assert.True(t, !ast.IsExported(name) || found["cardwire."+name], "%s is in no list", name)
			return true
		})
	}
}

// values makes arguments, the same ones in each run.
type values struct {
	t      *testing.T
	server *cardwiretest.Server
	random *rand.Rand
	made   map[reflect.Type][]reflect.Value // the first is the most usual: others meet a call that succeeds
	failed map[string]bool
}

func newValues(t *testing.T) *values {
	t.Helper()
	v := &values{
		t: t, server: cardwiretest.NewServer(t), random: rand.New(rand.NewPCG(1, 2)),
		made: map[reflect.Type][]reflect.Value{}, failed: map[string]bool{},
	}
	v.given()
	return v
}

func set[T any](v *values, list ...T) {
	typ := reflect.TypeFor[T]()
	for i := range list {
		v.made[typ] = append(v.made[typ], reflect.ValueOf(&list[i]).Elem())
	}
}

// given are the values of types that do not follow from their kind.
func (v *values) given() {
	done, cancel := context.WithCancelCause(v.t.Context())
	cancel(io.ErrNoProgress)
	late, cancelLate := context.WithDeadline(v.t.Context(), time.Unix(0, 0))
	v.t.Cleanup(cancelLate)
	set[context.Context](v, v.t.Context(), nil, done, late)
	set(v, slices.Concat([]string{"f47ac10b-58cc-4372-a567-0e02b2c3d479", "", "card-1", "/cards", "%s%n", "-1", "null", "{}",
		"1e999999999", "4111111111111111", "2026-02-30", "09/2028", "GET", "POST", "CreateTransfer", "X-Trace",
		v.server.URL, v.server.Key, "http://[::1]:0", "https://127.0.0.1:1", // hosts of this machine
	}, hostile)...)
	set[[]byte](v, nil, []byte{}, []byte("\x00"), []byte(`null`), []byte(`{"id":"c1"}`), []byte(`[[`),
		[]byte(`{"merchantOrderNo":"o","transferAmount":"1.00"}`), []byte("2026-01-02 03:04:05"),
		bytes.Repeat([]byte("["), 10_000))
	set(v, time.Time{}, time.Unix(0, 0), time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0))
	set[time.Duration](v, 0, 1, -1, math.MaxInt64, math.MinInt64)
	set(v, decimal.Decimal{}, decimal.New(1, -2), decimal.New(-1, 0), decimal.New(1, math.MaxInt32),
		decimal.New(1, math.MinInt32), decimal.New(math.MaxInt64, 400))
	set(v, nil, time.UTC, new(time.Location))
	set[error](v, nil, io.EOF, (*cardwire.Error)(nil), new(cardwire.Error), (*cardwire.DuplicateIntent)(nil),
		cardwire.ErrDrift, cardwire.ErrOutcomeUnknown, cardwire.ErrNotFound)

	set(v, cardwire.TransferParams{MerchantOrderNo: "o-1", PayoutCurrency: "EUR", TransferAmount: decimal.New(1, 0)})
	set(v, cardwire.FreezeCardParams{CardID: "card-1"})
	set(v, cardwire.UploadImageParams{Filename: "a.png", Data: []byte("a")})
	set(v, cardwire.Request{Op: "Capacity", Method: http.MethodGet, Path: "/account/capacity"})
	client := v.server.Client()
	set(v, client, nil, new(cardwire.Client))
	set[cardwire.Doer](v, &http.Client{Transport: v.server.Service}, nil, (*http.Client)(nil), (*odd)(nil), odd{},
		new(http.Client), miscounted{odd{}}, miscounted{negative{}})
	set[cardwire.Limiter](v, odd{}, nil, (*odd)(nil))
	set[cardwire.Journal](v, odd{}, nil, (*odd)(nil))
	set(v, nil, new(slog.Logger), slog.New(slog.DiscardHandler))
	set(v, nil, new(http.Transport))
	set(v, nil, new(tls.Config))
	set(v, nil, func(context.Context) (string, error) { return "\x00", nil })
	set(v, nil, func(p *cardwire.Profile) { *p = cardwire.Profile{} })
	set(v, journal.NewMemory())
}

// draw returns a value of the type: often a given one, the most usual of them every other time.
func (v *values) draw(t reflect.Type) reflect.Value {
	given, x := v.made[t], reflect.New(t).Elem()
	switch n := v.random.IntN(8); {
	case len(given) > 0 && n < 4:
		return given[0]
	case len(given) > 0 && t.Kind() != reflect.Struct:
		return given[v.random.IntN(len(given))]
	case n == 7:
		return x
	case len(given) > 0:
		x.Set(given[0])
		v.drawField(x)
		return x
	}
	switch t.Kind() {
	case reflect.Bool:
		x.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x.SetInt([]int64{1, -1, 7, math.MaxInt64, math.MinInt64}[v.random.IntN(5)] >> (64 - t.Bits()))
	case reflect.String:
		x.SetString(v.draw(reflect.TypeFor[string]()).String())
	case reflect.Pointer:
		x.Set(reflect.New(t.Elem()))
		x.Elem().Set(v.draw(t.Elem()))
	case reflect.Slice:
		for range 1 + v.random.IntN(3) {
			x = reflect.Append(x, v.draw(t.Elem()))
		}
	case reflect.Map:
		x.Set(reflect.MakeMap(t))
		for range v.random.IntN(3) {
			x.SetMapIndex(v.draw(t.Key()), v.draw(t.Elem()))
		}
	case reflect.Func:
		return v.drawFunc(t)
	case reflect.Struct:
		for range t.NumField() {
			v.drawField(x)
		}
	}
	return x
}

func (v *values) drawField(of reflect.Value) {
	if i := v.random.IntN(max(of.NumField(), 1)); i < of.NumField() && of.Type().Field(i).IsExported() {
		of.Field(i).Set(v.draw(of.Type().Field(i).Type))
	}
}

// drawFunc returns a function that does nothing, or an option that one of the functions makes.
func (v *values) drawFunc(t reflect.Type) reflect.Value {
	var makers []reflect.Value
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		if f := reflect.ValueOf(functions[name]); f.Type().NumOut() == 1 && f.Type().Out(0) == t {
			makers = append(makers, f)
		}
	}
	if len(makers) > 0 {
		f := makers[v.random.IntN(len(makers))]
		return v.invoke(f, v.drawArgs(f.Type()))[0]
	}
	return reflect.MakeFunc(t, func([]reflect.Value) (results []reflect.Value) {
		for out := range t.Outs() {
			results = append(results, reflect.Zero(out))
		}
		return results
	})
}

func (v *values) drawArgs(f reflect.Type) (args []reflect.Value) {
	for in := range f.Ins() {
		args = append(args, v.draw(in))
	}
	return args
}

func (v *values) invoke(f reflect.Value, args []reflect.Value) []reflect.Value {
	if f.Type().IsVariadic() {
		return f.CallSlice(args)
	}
	return f.Call(args)
}

// What hangs, or panics on a goroutine of the package's own, ends the process, whose last words name it.
func TestNothingPanicsOrHangs(t *testing.T) {
	v := newValues(t)
	t.Setenv("CARDWIRE_BASE_URL", v.server.URL)
	t.Setenv("CARDWIRE_API_KEY", v.server.Key)
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f, draws := reflect.ValueOf(functions[name]), 200
		if name == "cardwire.NewFromEnv" {
			draws = 2000 // clients of all options
		}
		for range draws {
			v.call(name, f, v.drawArgs(f.Type()))
		}
	}
	for _, typ := range receivers {
		for method := range reflect.PointerTo(typ).Methods() {
			if method.Name == "Format" {
				continue // the printers of this package call it
			}
			_, ofValue := typ.MethodByName(method.Name)
			for range 100 {
				args := v.drawArgs(method.Type)
				if !args[0].IsNil() || !ofValue { // of nil Go itself panics
					v.call(typ.String()+"."+method.Name, method.Func, args)
				}
			}
		}
	}
}

func (v *values) call(name string, f reflect.Value, args []reflect.Value) {
	defer func() {
		if problem := recover(); problem != nil && !documented(name, problem) && !v.failed[name] {
			v.failed[name] = true // once is enough
			v.t.Errorf("%s panics: %.200v\nwith %.1000s", name, problem, fmt.Sprintf("%+v", args))
		}
	}()
	for _, result := range v.invoke(f, args) {
		v.use(result)
	}
}

// use uses a result as callers do.
func (v *values) use(result reflect.Value) {
	switch r := result.Interface().(type) {
	case *cardwire.Client:
		_, _ = r.CardCapacity(v.t.Context(), cardwire.WithoutRetry())
		p := cardwire.TransferParams{MerchantOrderNo: "o", TransferAmount: decimal.New(1, 0)}
		_, _ = r.CreateTransfer(v.t.Context(), p, cardwire.WithoutRetry())
		r.CloseIdleConnections()
	case iter.Seq2[cardwire.Card, error]:
		looped(r)
	case iter.Seq2[*cardwire.CardPage, error]:
		looped(r)
	case error:
		_ = r.Error()
	default:
		if result.Kind() == reflect.Func && strings.HasPrefix(result.Type().PkgPath(), "iter") {
			v.t.Errorf("a result of type %s is not used", result.Type())
		}
	}
}

// looped leaves one loop early, and completes another.
func looped[T any](all iter.Seq2[T, error]) {
	for _, err := range all {
		_ = err
		break
	}
	for _, err := range all {
		_ = err
	}
}

// documented reports whether the method says that it panics so: at a nil context.
func documented(name string, problem any) bool {
	_, isNil := problem.(runtime.Error)
	withContext := []string{"Begin", "End", "Void", "Reserve", "Resolve"}
	return isNil && slices.Contains(withContext, strings.TrimPrefix(name, "journal.Memory."))
}

// odd implements each method wrongly.
type odd struct{}

func (odd) Do(*http.Request) (*http.Response, error)     { return nil, nil }
func (odd) Wait(context.Context) error                   { return nil }
func (odd) Begin(context.Context, cardwire.Intent) error { return (*cardwire.DuplicateIntent)(nil) }
func (odd) Void(context.Context, cardwire.Intent, string, string) error {
	return (*cardwire.DuplicateIntent)(nil)
}
func (odd) End(context.Context, cardwire.Intent, cardwire.IntentResult) error {
	return (*cardwire.Error)(nil)
}
func (odd) Read(p []byte) (int, error) { return len(p) + 1, nil }

// miscounted responds with a body whose Read returns a wrong count.
type miscounted struct{ io.Reader }

func (m miscounted) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(m.Reader)}, nil
}

// negative is a reader whose count is negative.
type negative struct{}

func (negative) Read([]byte) (int, error) { return -1, nil }
