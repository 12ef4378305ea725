//go:build unix

package cardwire

import "syscall"

// openAtOnce has os.OpenFile not wait for a writer where the path is a named pipe.
const openAtOnce = syscall.O_NONBLOCK
