package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/scripts/internal/work"
)

// group is what is measured together, and can be chosen by -only.
type group struct {
	name    string
	measure func(context.Context, *runner) error
}

var groups = []group{
	{"responses", func(ctx context.Context, r *runner) error {
		return r.benchmarks(ctx, ".", ".", "^Benchmark(Memory|Doer|Loopback)$", pick(r, 15, 51), pick(r, "50ms", "150ms"), next)
	}},
	{"parallel", func(ctx context.Context, r *runner) error {
		return r.benchmarks(ctx, ".", ".", "^BenchmarkParallel$", pick(r, 15, 51), pick(r, "5000x", "20000x"))
	}},
	{"peers", func(ctx context.Context, r *runner) error {
		return r.benchmarks(ctx, "internal/test/lab", "./peers", "^Benchmark(List|Tiny)$", pick(r, 15, 51), pick(r, "50ms", "150ms"), next)
	}},
	{"upload", measureUpload},
	{"cards", measureCards},
	{"pages", measurePages},
	{"hello", measureHello},
}

// next is the newer of the two releases of Go that are supported, whose encoding/json is
// another one. The other is that of this program.
const next = "go1.27.1"

func groupNames() []string {
	var names []string
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

// benchmarks runs the benchmarks of a package in rounds: each round is a process
// of its own and runs each once, so that baselines and what is compared with
// them take turns. Processes that other releases of Go built take turns too.
func (r *runner) benchmarks(ctx context.Context, dir, target, pattern string, rounds int, each string, releases ...string) error {
	programs := map[string]string{}
	for _, release := range append(releases, "") {
		program, err := r.build(ctx, dir, "benchmarks"+release, target, release, "test", "-c")
		if err != nil {
			return err
		}
		programs[release] = program
	}
	for round := range rounds {
		r.say("round %d of %d", round+1, rounds)
		if err := r.round(ctx, programs[""], pattern, each, r.samples); err != nil {
			return err
		}
		for _, release := range releases {
			if round%rarer > 0 {
				continue
			}
			if err := r.round(ctx, programs[release], pattern, each, r.next); err != nil {
				return err
			}
		}
	}
	return nil
}

// rarer is how many rounds there are for each of the next release of Go, whose figures
// are held to no bar.
const rarer = 3

func (r *runner) round(ctx context.Context, program, pattern, each string, into samples) error {
	cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench="+pattern, "-test.benchtime="+each)
	cmd.Dir = r.temp
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return r.read(into, text)
}

// A line of a benchmark's: name and processors, iterations, values with units.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// read takes the values out of what benchmarks print.
func (r *runner) read(into samples, text []byte) error {
	found := false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "cpu: "); ok {
			r.cpu = name
		}
		parts := benchmarkLine.FindStringSubmatch(line)
		if parts == nil {
			continue
		}
		found = true
		values := strings.Fields(parts[2])
		for i := 0; i+1 < len(values); i += 2 {
			v, err := strconv.ParseFloat(values[i], 64)
			if err != nil {
				return fmt.Errorf("a benchmark printed %q", line)
			}
			into.add(parts[1]+" "+values[i+1], v)
		}
	}
	if !found {
		return errors.New("no benchmark ran")
	}
	return nil
}

func measureUpload(ctx context.Context, r *runner) error {
	const size = 256 << 20
	w, err := r.worker(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	base, err := w.serve(ctx)
	if err != nil {
		return err
	}
	for range pick(r, 5, 15) {
		idle, err := w.run(ctx, "idle", "-base="+base)
		if err != nil {
			return err
		}
		upload, err := w.run(ctx, "upload", "-base="+base, "-bytes="+strconv.Itoa(size))
		if err != nil {
			return err
		}
		r.samples.add("idle MiB", idle.PeakMiB())
		r.samples.add("upload MiB", upload.PeakMiB())
	}
	return nil
}

// What is measured of pages: 20 ms each, where they take time, and eight ahead.
const (
	latency = 20 * time.Millisecond
	ahead   = 8
)

func measureCards(ctx context.Context, r *runner) error {
	return r.listCards(ctx, 1000, 0, pick(r, 5, 15), func(plain, prefetched *work.Report) {
		r.samples.add("cards MiB", plain.PeakMiB())
		r.samples.add("cards ahead MiB", prefetched.PeakMiB())
	})
}

func measurePages(ctx context.Context, r *runner) error {
	pages := pick(r, 200, 1000)
	least := float64(time.Duration(pages) * latency)
	return r.listCards(ctx, pages, latency, 3, func(plain, prefetched *work.Report) {
		r.samples.add("pages", float64(plain.Elapsed)/least)
		r.samples.add("pages ahead", float64(prefetched.Elapsed)/(least/ahead))
	})
}

// listCards lists all cards of a service, several times, once page by page and
// once with prefetching.
func (r *runner) listCards(ctx context.Context, pages int, latency time.Duration, times int, note func(plain, prefetched *work.Report)) error {
	w, err := r.worker(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	base, err := w.serve(ctx, "-pages="+strconv.Itoa(pages), "-latency="+latency.String())
	if err != nil {
		return err
	}
	for range times {
		plain, err := w.cards(ctx, base, pages, 0)
		if err != nil {
			return err
		}
		prefetched, err := w.cards(ctx, base, pages, ahead)
		if err != nil {
			return err
		}
		note(plain, prefetched)
	}
	return nil
}

// worker is the program of that name, and the service that it may have.
type worker struct {
	program string
	service *exec.Cmd
	stdin   io.Closer
}

func (r *runner) worker(ctx context.Context) (*worker, error) {
	program, err := r.build(ctx, ".", "worker", "./scripts/bench/worker", "", "build")
	return &worker{program: program}, err
}

// serve starts the service and returns its base URL.
func (w *worker) serve(ctx context.Context, args ...string) (base string, err error) {
	w.service = exec.CommandContext(ctx, w.program, append([]string{"serve"}, args...)...)
	w.service.Stderr = os.Stderr
	if w.stdin, err = w.service.StdinPipe(); err != nil {
		return "", err
	}
	stdout, err := w.service.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := w.service.Start(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	return strings.TrimSpace(line), err
}

// end stops the service, which ends with its stdin.
func (w *worker) end() {
	if w.service != nil && w.service.Process != nil {
		w.stdin.Close()
		_ = w.service.Wait()
	}
}

func (w *worker) run(ctx context.Context, args ...string) (*work.Report, error) {
	cmd := exec.CommandContext(ctx, w.program, args...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, complaint.Bytes())
	}
	report := new(work.Report)
	return report, json.Unmarshal(out.Bytes(), report)
}

func (w *worker) cards(ctx context.Context, base string, pages, prefetch int) (*work.Report, error) {
	report, err := w.run(ctx, "cards", "-base="+base, "-prefetch="+strconv.Itoa(prefetch))
	if err == nil && report.Cards != pages*work.PerPage {
		err = fmt.Errorf("%d cards arrived", report.Cards)
	}
	return report, err
}

// measureHello builds two programs as go build does by itself, with symbols.
func measureHello(ctx context.Context, r *runner) error {
	for _, name := range []string{"bare", "cardwire"} {
		program, err := r.build(ctx, ".", "hello-"+name, "./scripts/bench/hello/"+name, "", "build")
		if err != nil {
			return err
		}
		info, err := os.Stat(program)
		if err != nil {
			return err
		}
		r.samples.add("hello "+name+" MiB", float64(info.Size())/(1<<20))
	}
	return nil
}
