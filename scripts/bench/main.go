// Bench measures what docs/speed.md says of speed, and prints it beside the bars
// that it is held to: pass or short.
//
//	go run ./scripts/bench [-long] [-only regexp] [-check] [-json file] [-svg file] [-md file] [-from file] [-v]
//
// It takes about five minutes, with -long several times as long. What the
// repository says of speed is written by
//
//	go run ./scripts/bench -json docs/speed.json -svg docs/speed.svg -md docs/speed.md
//
// Everything is compared with something that is measured in the same run: rounds are short and
// take turns, and what counts is the median of the rounds' ratios, so that a
// machine with other things to do disturbs both sides alike. Memory is that of
// processes that do nothing else; see the worker below this directory.
//
// The exit status is 0 however slow it is, unless -check is given: then it is 1
// where a bar is missed. It is 2 where something cannot be measured.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/scripts/internal/repo"
)

type options struct {
	long, check, verbose bool
	only                 *regexp.Regexp
	json, svg, md, from  string
}

func main() {
	o, err := parse()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		var short int
		short, err = run(ctx, o)
		stop()
		if err == nil && short > 0 && o.check {
			os.Exit(1)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
}

func parse() (o options, err error) {
	only := flag.String("only", "", "measure only the groups whose name matches this `regexp`: "+strings.Join(groupNames(), ", "))
	flag.BoolVar(&o.long, "long", false, "measure longer: more and longer rounds, and 1,000 pages")
	flag.BoolVar(&o.check, "check", false, "exit with status 1 where a bar is missed")
	flag.BoolVar(&o.verbose, "v", false, "print the median of each benchmark too")
	flag.StringVar(&o.json, "json", "", "write the figures to this `file`")
	flag.StringVar(&o.svg, "svg", "", "draw the chart into this `file`")
	flag.StringVar(&o.md, "md", "", "put the table into this `file`, in the place of the one that it holds")
	flag.StringVar(&o.from, "from", "", "measure nothing: take the figures from this `file`, which -json wrote")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, errors.New("there are no arguments but flags")
	}
	if *only != "" && o.md != "" {
		return o, errors.New("the document shows everything: -md goes without -only")
	}
	o.only, err = regexp.Compile(*only)
	return o, err
}

func run(ctx context.Context, o options) (short int, err error) {
	result, err := figures(ctx, o)
	if err != nil {
		return 0, err
	}
	fmt.Print(result.text(o.verbose))
	if o.json != "" {
		err = errors.Join(err, result.save(o.json))
	}
	if o.svg != "" {
		err = errors.Join(err, draw(o.svg, result))
	}
	if o.md != "" {
		err = errors.Join(err, publish(o.md, result.whole()))
	}
	return result.short(), err
}

func figures(ctx context.Context, o options) (_ *result, err error) {
	if o.from != "" {
		return load(o.from)
	}
	root, err := repo.Root(ctx)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	r := &runner{root: root, temp: temp, long: o.long, samples: samples{}, next: samples{}}
	start := time.Now()
	for _, g := range groups {
		if !o.only.MatchString(g.name) {
			continue
		}
		r.say("%s", g.name)
		if err := g.measure(ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	r.say("done in %s", time.Since(start).Round(time.Second))
	result, missing := newResult(r)
	if o.only.String() == "" && len(missing) > 0 {
		return nil, fmt.Errorf("nothing was measured of: %s", strings.Join(missing, ", "))
	}
	return result, nil
}

// runner measures, and keeps what it measured.
type runner struct {
	root, temp string
	long       bool
	samples    samples
	next       samples // by the next release of Go
	cpu        string  // the processor's name, as the benchmarks print it
}

// pick returns the first, or the second with -long.
func pick[T any](r *runner, normal, long T) T {
	if r.long {
		return long
	}
	return normal
}

func (r *runner) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// build makes a program, or a test's with "test", "-c" before the package, by a release
// of Go; "": that of this program.
func (r *runner) build(ctx context.Context, dir, name, target, release string, command ...string) (string, error) {
	out := filepath.Join(r.temp, name)
	if runtime.GOOS == "windows" {
		out += ".exe"
	}
	args := append(slices.Clone(command), "-o", out, target)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(r.root, dir)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOTOOLCHAIN="+cmp.Or(release, runtime.Version()))
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return out, nil
}
