package mutation

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"time"
)

// Program is a command that tries mutants and reports the results.
type Program struct {
	// Name begins what it says of errors.
	Name string
	// Find finds the mutants.
	Find Find
	// Exempt are what Find leaves out, with the reasons; -list prints them.
	Exempt map[string]string
	// Skip is a regexp of tests that are not run; "": all are.
	Skip string
	// Tell prints a result as it comes; with verbose it prints all.
	Tell func(r Result, verbose bool)
	// Report prints all results, and returns how many mutants are alive: those
	// that the tests did not notice.
	Report func(results []Result, took time.Duration) (alive int, err error)
}

// Main runs the program with the flags of the command line, and ends it where it
// does not succeed: with status 1 if a mutant is alive, and 2 if nothing can be said.
func (p Program) Main() {
	var (
		verbose = flag.Bool("v", false, "print each mutant as it is tried")
		list    = flag.Bool("list", false, "list the mutants, check that they fit the code, and run nothing")
		pattern = flag.String("run", "", "try only mutants whose line in -list matches this `regexp`")
		jobs    = flag.Int("jobs", runtime.GOMAXPROCS(0), "try `n` mutants at a time")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var alive int
	var err error
	if *list {
		err = p.list(ctx, *pattern)
	} else {
		alive, err = p.run(ctx, *pattern, *jobs, *verbose)
	}
	stop()
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		os.Exit(2)
	case alive > 0:
		os.Exit(1)
	}
}

func (p Program) list(ctx context.Context, pattern string) error {
	mutants, err := List(ctx, pattern, p.Find)
	if err != nil {
		return err
	}
	for _, m := range mutants {
		fmt.Println(m.Name)
	}
	fmt.Printf("%d in all\n", len(mutants))
	for _, name := range slices.Sorted(maps.Keys(p.Exempt)) {
		fmt.Printf("exempt: %s: %s\n", name, p.Exempt[name])
	}
	return nil
}

func (p Program) run(ctx context.Context, pattern string, jobs int, verbose bool) (alive int, err error) {
	plan := Plan{Jobs: jobs, Skip: p.Skip, Log: os.Stderr}
	plan.Report = func(r Result) { p.Tell(r, verbose) }
	started := time.Now()
	results, err := Run(ctx, pattern, p.Find, plan)
	if err != nil {
		return 0, err
	}
	return p.Report(results, time.Since(started))
}
