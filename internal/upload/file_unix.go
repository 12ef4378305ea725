//go:build unix

package upload

import "syscall"

// openAtOnce keeps os.OpenFile from waiting for a writer if the path is a named pipe.
const openAtOnce = syscall.O_NONBLOCK
