package opencl

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A cache is where on disk what was compiled for a device is kept. What can't be read or written
// there is compiled. The first that a process adds makes room: so much is kept as was used last,
// and what a process has left that ended while it wrote is removed. A driver runs what is kept, so
// only what nobody else can have written counts: see usable.
type cache struct {
	folder string // "": there is none
	key    string // of the device and its driver
}

// pocl is a platform that keeps what it has compiled by itself. Before it gives a binary it
// compiles each kernel once more, for groups of any size, which takes as long as the first time.
const pocl = "Portable Computing Language"

// cacheFor is the cache of what is compiled for f.
func cacheFor(f *found) cache {
	if f.platform == pocl {
		return cache{}
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return cache{}
	}
	return cache{filepath.Join(folder, "asyncgen", "opencl"), strings.Join([]string{f.platform, f.name, f.version, f.driverVersion, f.options()}, "\n")}
}

// file is where the program of a source is.
func (c *cache) file(source string) string {
	if c.folder == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.key + "\n\n" + source))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+".bin")
}

// sumOf is a checksum of binary and of the name of its file: under another name it is not what is looked for.
func sumOf(file string, binary []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(filepath.Base(file)+"\n"), binary...))
}

// usable returns why what is kept in folder may not be used, or nil: it or the folder around it,
// which is asyncgen's as well, is a symbolic link or something else than a folder, or others own it
// or may write to it; or both stand in a folder of another user. Systems where files have no owners
// have no such folders. What is not there yet is no obstacle.
func usable(folder string) error {
	around := filepath.Dir(folder)
	if info, err := os.Stat(filepath.Dir(around)); err == nil {
		if own, _ := ownership(info); !own && !isRoots(info) {
			return fmt.Errorf("%s belongs to another user", filepath.Dir(around))
		}
	}
	for _, dir := range []string{around, folder} {
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		own, shared := ownership(info)
		switch {
		case !info.IsDir():
			return fmt.Errorf("%s is no folder", dir)
		case !own:
			return fmt.Errorf("%s belongs to another user", dir)
		case shared:
			return fmt.Errorf("others may write to %s", dir)
		}
	}
	return nil
}

// read returns what is in a file that nobody else can have written, and when it was written; or nil.
func read(file string) ([]byte, time.Time) {
	link, err := os.Lstat(file)
	if err != nil || !link.Mode().IsRegular() || usable(filepath.Dir(file)) != nil {
		return nil, time.Time{}
	}
	f, err := os.OpenFile(file, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, time.Time{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}
	}
	if own, shared := ownership(info); !own || shared {
		return nil, time.Time{}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, time.Time{}
	}
	return data, info.ModTime()
}

// load returns what store has written, or nil. A file is the checksum of the rest, and that.
func load(file string) []byte {
	if file == "" {
		return nil
	}
	data, written := read(file)
	if len(data) <= sha256.Size {
		return nil
	}
	binary := data[sha256.Size:]
	if sumOf(file, binary) != [sha256.Size]byte(data) {
		return nil
	}
	if time.Since(written) > usedAgain {
		now := time.Now()
		os.Chtimes(file, now, now)
	}
	return binary
}

// store writes binary to file, at once or not at all: several processes may do so.
func store(file string, binary []byte) {
	folder := filepath.Dir(file)
	if usable(folder) != nil || os.MkdirAll(folder, 0o700) != nil || usable(folder) != nil {
		return
	}
	tidied.Do(func() { tidy(folder, cacheMost) })
	temp, err := os.CreateTemp(folder, unfinished+"*")
	if err != nil {
		return
	}
	sum := sumOf(file, binary)
	_, err = temp.Write(append(sum[:], binary...))
	if closed := temp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp.Name(), file)
	}
	if err != nil {
		os.Remove(temp.Name())
	}
}

const (
	cacheMost  = 256 << 20      // bytes that are kept; a kernel has about 10 to 100 KiB
	usedAgain  = 24 * time.Hour // after so long, the time of a file is when it was used again
	unfinished = "new-"         // how the name of a file begins that is being written
	abandoned  = time.Hour      // nobody writes a file for so long
)

var tidied sync.Once

// tidy removes from a folder what was being written by a process that is no more, and, of the rest,
// what was not used for the longest time, so that most bytes are kept. Several processes may do so.
func tidy(folder string, most int64) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	var kept []fs.FileInfo
	for _, entry := range entries {
		file, err := entry.Info()
		switch {
		case err != nil || !file.Mode().IsRegular():
		case strings.HasPrefix(file.Name(), unfinished):
			if time.Since(file.ModTime()) > abandoned {
				os.Remove(filepath.Join(folder, file.Name()))
			}
		default:
			kept = append(kept, file)
		}
	}
	slices.SortFunc(kept, func(x, y fs.FileInfo) int { return y.ModTime().Compare(x.ModTime()) })
	for _, file := range kept {
		if most -= file.Size(); most < 0 {
			os.Remove(filepath.Join(folder, file.Name()))
		}
	}
}
