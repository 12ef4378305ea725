//go:build unix

package payouts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall" // its signals to stop and go on are those of Unix
	"time"
)

// build compiles the program as it is.
func build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "payouts")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/payouts")
	command.Dir = filepath.Join("..", "..", "..", "..", "payouts")
	command.Env = append(os.Environ(), "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w: %s", err, out)
	}
	return program, nil
}

// replica is a process of the program, and those that take its place.
type replica struct {
	program, service string
	args             []string

	mu      sync.Mutex
	command *exec.Cmd
	exited  chan struct{} // closed when the process has ended
	base    string        // the address of its API
	errors  bytes.Buffer  // what it wrote of itself
}

// migrate creates the tables.
func (r *replica) migrate(ctx context.Context) error {
	command := exec.CommandContext(ctx, r.program, append(slices.Clone(r.args), "-migrate")...)
	command.Env = append(os.Environ(), "CARDWIRE_BASE_URL="+r.service, "CARDWIRE_API_KEY="+key)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the tables: %w: %s", err, out)
	}
	return nil
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start starts a process, and returns when it serves.
func (r *replica) start(ctx context.Context) error {
	for ctx.Err() == nil {
		command := exec.CommandContext(ctx, r.program, r.args...)
		command.Env = append(os.Environ(), "CARDWIRE_BASE_URL="+r.service, "CARDWIRE_API_KEY="+key)
		command.Stderr = &r.errors
		out, err := command.StdoutPipe()
		if err != nil {
			return err
		}
		if err := command.Start(); err != nil {
			return err
		}
		base := ""
		for in := bufio.NewScanner(out); base == "" && in.Scan(); {
			base = address.FindString(in.Text())
		}
		exited := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, out)
			_ = command.Wait()
			close(exited)
		}()
		r.mu.Lock()
		r.command, r.exited, r.base = command, exited, base
		r.mu.Unlock()
		if base != "" {
			return nil
		}
		<-exited // PostgreSQL is down: again
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (r *replica) url() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.base
}

// signal sends a signal to the process.
func (r *replica) signal(s os.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.command.Process.Signal(s)
}

// kill ends the process at once, and starts another.
func (r *replica) kill(ctx context.Context) error {
	if err := r.signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-r.exited
	return r.start(ctx)
}

// halt stops the process for a while.
func (r *replica) halt(ctx context.Context, d time.Duration) error {
	err := r.signal(syscall.SIGSTOP)
	switch {
	case errors.Is(err, os.ErrProcessDone): // it began while PostgreSQL was down
		return r.kill(ctx)
	case err != nil:
		return err
	}
	err = pause(ctx, d)
	return errors.Join(err, r.signal(syscall.SIGCONT))
}

// end ends the process in order, and returns what it wrote of itself.
func (r *replica) end() string {
	if r.command == nil || r.exited == nil {
		return ""
	}
	_ = r.signal(syscall.SIGCONT) // or it would not hear the other one
	_ = r.signal(os.Interrupt)
	select {
	case <-r.exited:
	case <-time.After(30 * time.Second):
		_ = r.signal(syscall.SIGKILL)
		<-r.exited
	}
	lines := strings.Split(strings.TrimSpace(r.errors.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// blows kills or stops one replica every second until ctx is done, and returns when all
// of them run again.
func blows(ctx context.Context, replicas []*replica) (kills, stops int, err error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	busy := make([]bool, len(replicas))
	outlast := context.WithoutCancel(ctx)
	for i := 0; pause(ctx, time.Second) == nil; i++ {
		n := rand.N(len(replicas))
		mu.Lock()
		taken := busy[n]
		busy[n] = true
		mu.Unlock()
		if taken {
			continue // it is down, or stopped, as it is
		}
		do := func() error { return replicas[n].kill(outlast) }
		if rand.N(2) == 0 {
			stops++
			d := 500*time.Millisecond + rand.N(4*time.Second)
			do = func() error { return replicas[n].halt(outlast, d) }
		} else {
			kills++
		}
		group.Go(func() {
			err := do()
			mu.Lock()
			defer mu.Unlock()
			busy[n], errs = false, append(errs, err)
		})
	}
	group.Wait()
	return kills, stops, errors.Join(errs...)
}
