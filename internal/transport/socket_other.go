//go:build !unix

package transport

import "syscall"

// readNow reads nothing, since a socket may block here.
func readNow(syscall.RawConn, []byte) int { return 0 }
