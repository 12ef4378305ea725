//go:build !unix

package cardwire

// openAtOnce is 0 where the file system has no named pipes.
const openAtOnce = 0
