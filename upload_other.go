//go:build !unix

package cardwire

// openAtOnce is nothing where no path of the file system is a named pipe.
const openAtOnce = 0
