package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cardwire/cardwire-go/cardwiretest"
)

// fault is what a -fail flag asks for.
type fault struct {
	op    string
	fault cardwiretest.Fault
	times int // negative: always
}

// String says what will happen.
func (f fault) String() string {
	when := "before it is executed, if it is at all"
	if f.fault.Executed {
		when = "after it was executed"
	}
	times := strconv.Itoa(f.times) + "x"
	if f.times < 0 {
		times = "always"
	}
	return fmt.Sprintf("%s will fail %s: %s, %s.", f.op, times, f.fault.Kind, when)
}

// kinds returns the names of all kinds, as they are written in the flag.
func kinds() []string {
	var names []string
	for k := cardwiretest.FaultKind(0); ; k++ {
		name := k.String()
		if strings.HasPrefix(name, "FaultKind(") {
			return names
		}
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
}

func parseFault(flag string) (fault, error) {
	parts := strings.Split(flag, ":")
	if len(parts) < 2 {
		return fault{}, fmt.Errorf("%q is not OPERATION:KIND[:executed][:TIMES]", flag)
	}
	kind := slices.Index(kinds(), parts[1])
	if kind < 0 {
		return fault{}, fmt.Errorf("there is no kind %q of fault", parts[1])
	}
	f := fault{op: parts[0], fault: cardwiretest.Fault{Kind: cardwiretest.FaultKind(kind)}, times: 1}
	for _, part := range parts[2:] {
		if err := f.set(part); err != nil {
			return fault{}, err
		}
	}
	return f, f.try()
}

// set reads one of the parts that need not be given.
func (f *fault) set(part string) (err error) {
	name, value, _ := strings.Cut(part, "=")
	switch name {
	case "executed":
		f.fault.Executed = true
	case "always":
		f.times = -1
	case "status":
		f.fault.Status, err = strconv.Atoi(value)
	case "code":
		f.fault.Code, err = strconv.Atoi(value)
	case "message":
		f.fault.Message = value
	case "retry-after":
		f.fault.RetryAfter = value
	case "delay":
		f.fault.Delay, err = time.ParseDuration(value)
	default:
		if f.times, err = strconv.Atoi(part); err != nil || f.times < 1 {
			err = fmt.Errorf("%q is neither executed, nor always, nor a number above 0", part)
		}
	}
	return err
}

// try asks a service of its own, which panics at what cannot be scripted: that is
// a mistake in a test, but here only one at the command line.
func (f *fault) try() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	cardwiretest.New(cardwiretest.WithCards(0)).Fail(f.op, f.fault, f.times)
	return nil
}
