package upload

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNotRegular is the error of a path that is not a regular file.
var ErrNotRegular = errors.New("not a regular file")

var errReplaced = errors.New("the file was replaced or its size has changed since ImageFile: call ImageFile again")

// File returns the size of the regular file at path, and a function that opens it, and fails if
// it is no longer the same file with the same size. The error of File is an *fs.PathError.
func File(path string) (size int64, open func() (io.ReadCloser, error), err error) {
	seen, err := os.Stat(path)
	if err == nil && !seen.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return 0, nil, err
	}
	os.SameFile(seen, seen) // Windows reads a file's identity when it is first compared
	return seen.Size(), func() (io.ReadCloser, error) { return openAgain(path, seen) }, nil
}

// openAgain does not wait for a writer if the path has become a named pipe.
func openAgain(path string, seen fs.FileInfo) (io.ReadCloser, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openAtOnce, 0)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	same := err == nil && opened.Mode().IsRegular() && os.SameFile(seen, opened) && opened.Size() == seen.Size()
	if err == nil && !same {
		err = errReplaced
	}
	if err != nil {
		_ = f.Close() // only read from
		return nil, err
	}
	return f, nil
}
