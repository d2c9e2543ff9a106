package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// head is how a trace begins.
const head = "[\n" + `{"ph":"M","name":"process_name","pid":1,`

// Create makes the file of a trace. In path, %p stands for the number of the process. A trace that is there already, or
// an empty file, is replaced; another file is an error. Another process that is still writing the old trace goes on
// with a file that has no name any more.
func Create(path string) (*os.File, error) {
	path = strings.ReplaceAll(path, "%p", strconv.Itoa(os.Getpid()))
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%q is a folder", path)
	case !info.Mode().IsRegular():
		return os.OpenFile(path, os.O_WRONLY, 0)
	default:
		if err := MayReplace(path, head, "a trace"); err != nil {
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// MayReplace returns an error if there is a file at path that is not empty and does not begin with first. What we write
// there begins so, and is what the error calls it. What is no regular file, such as a pipe, may be written to.
func MayReplace(path, first, what string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	have := make([]byte, len(first))
	if _, err := io.ReadFull(f, have); err != nil || string(have) != first {
		return fmt.Errorf("%s has something else in it than %s, and stays as it is", path, what)
	}
	return nil
}

// IsTrace reports whether a file begins like a trace.
func IsTrace(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 2)
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == head[:2]
}
