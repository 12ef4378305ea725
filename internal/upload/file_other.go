//go:build !unix

package upload

// openAtOnce is 0 where the file system has no named pipes.
const openAtOnce = 0
