package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// temporary is what the names of unfinished files contain, between their name and a number.
const temporary = ".unfinished-"

// writeFile lets write fill a file that takes the place of the one at path, if there is one. If anything fails, the
// folder is left as it was.
func writeFile(path string, write func(f *os.File) error) error {
	dir, err := openFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	p, err := begin(path, write)
	if err != nil {
		return err
	}
	if err := p.finish(); err != nil {
		abandon([]*pending{p})
		return err
	}
	return syncFolder(dir)
}

// A pending is a file that is written, but has not taken its place.
type pending struct{ name, path string }

// begin lets write fill a file for the place at path, and forces it to the disk.
func begin(path string, write func(f *os.File) error) (*pending, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("files: %s is a folder", path)
	}
	f, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	p := &pending{f.Name(), path}
	isWhole := false
	defer func() { // also if write panics
		if !isWhole {
			f.Close()
			abandon([]*pending{p})
		}
	}()
	if err := write(f); err != nil {
		return nil, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	isWhole = true
	return p, nil
}

// finish puts the file in its place.
func (p *pending) finish() error {
	if err := os.Rename(p.name, p.path); err != nil {
		return fmt.Errorf("files: %w", err)
	}
	return nil
}

// abandon removes files that have not taken their places.
func abandon(list []*pending) {
	for _, p := range list {
		os.Remove(p.name)
	}
}

// create makes a new file beside the one at path. Nobody may do more with it than with that one, if there is one.
func create(path string) (f *os.File, err error) {
	rights := fs.FileMode(0o666)
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
		rights = info.Mode().Perm()
	}
	for range 100 {
		name := fmt.Sprintf("%s%s%08x", path, temporary, rand.Uint32())
		f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, rights)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = path
	}
	return f, err
}

// unfinished returns the name that a file is to get which create has made.
func unfinished(name string) (to string, ok bool) {
	to, number, ok := strings.Cut(name, temporary)
	return to, ok && len(number) == 8 && strings.Trim(number, "0123456789abcdef") == ""
}

// makeFolder makes a folder, and those above it, unless they are there. Their names are forced to the disk.
func makeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := makeFolder(above); err != nil {
			return err
		}
	}
	folder, err := openFolder(above)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := os.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) { // another program may have made it
		return fmt.Errorf("files: %w", err)
	}
	return syncFolder(folder)
}

// openFolder opens a folder before anything in it changes: one that can't be read can't be forced to the disk.
func openFolder(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	return d, nil
}

// syncFolder forces the names in a folder to the disk, on systems that can.
func syncFolder(d *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("files: %w", err)
	}
	return nil
}
