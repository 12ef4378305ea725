//go:build unix

package transport

import "syscall"

// readNow reads what is in a socket, and does not wait; 0: nothing. Sockets of package net do not block.
func readNow(raw syscall.RawConn, p []byte) (n int) {
	_ = raw.Control(func(fd uintptr) { n, _ = syscall.Read(int(fd), p) }) // nothing is there if it is closed
	return max(n, 0)
}
