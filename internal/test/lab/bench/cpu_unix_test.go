//go:build unix

package bench

import (
	"syscall"
	"time"
)

// cpu is the time that this process has spent on all processors, the collector included.
// Other processes disturb it far less than the time on the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
