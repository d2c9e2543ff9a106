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

// A cache keeps the compiled programs of one device on disk. A program that can't be read or
// written there is compiled again. When a process is about to add its first program, it evicts the
// least recently used ones and removes files that other processes left unfinished. The driver runs
// what the cache holds, so only files that nobody else can have written are used: see usable.
type cache struct {
	folder string // "": there is no cache
	key    string // identifies the device and its driver
	isSlow bool   // binaries take long: when a program is first compiled, the cache only notes that it was
}

// pocl is a platform that takes long for a binary: it compiles each kernel once more, for any work
// group size, which takes as long as the first time. It keeps on disk what it has compiled, but to
// find that it runs the preprocessor on the source, which takes much longer than to take a binary.
const pocl = "Portable Computing Language"

// cacheFor returns the cache of programs compiled for f.
func cacheFor(f *found) cache {
	folder, err := os.UserCacheDir()
	if err != nil {
		return cache{}
	}
	return cache{filepath.Join(folder, "asyncgen", "opencl"), strings.Join([]string{f.platform, f.name, f.version, f.driverVersion, f.options()}, "\n"), f.platform == pocl}
}

// file returns the path of the program compiled from source, or "" without a cache.
func (c *cache) file(source string) string {
	if c.folder == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(c.key + "\n\n" + source))
	return filepath.Join(c.folder, hex.EncodeToString(sum[:])+".bin")
}

// sumOf returns a checksum of binary and of the name of its file, so a renamed file is not taken
// for another program.
func sumOf(file string, binary []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(filepath.Base(file)+"\n"), binary...))
}

// usable returns why the files in folder may not be used, or nil. folder and its parent, which is
// asyncgen's too, must be real folders (no symbolic links) that this user owns and only this user
// can write to. The folder that holds the parent must belong to this user or to root. Folders that
// don't exist yet are fine. On systems without file owners, the checks of owners pass.
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

// read returns the contents of a file that nobody else can have written, and when it was written.
// Otherwise it returns nil.
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

// load returns the binary that store has written to file, or nil. A file holds a checksum, then the
// binary.
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

// keep stores what binary returns for a program that was compiled.
func (c *cache) keep(file string, binary func() ([]byte, error)) {
	if file == "" {
		return
	}
	if c.isSlow {
		if noted, _ := read(file); noted == nil {
			store(file, nil)
			return
		}
	}
	if b, err := binary(); err == nil {
		store(file, b)
	}
}

// store writes binary to file atomically, or not at all. Several processes may store the same file.
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
	cacheMost  = 256 << 20      // bytes that tidy keeps; a kernel has about 10 to 100 KiB
	usedAgain  = 24 * time.Hour // load refreshes the time of a file that is older
	unfinished = "new-"         // prefix of the names of files that are being written
	abandoned  = time.Hour      // an unfinished file that is older was left by a process that has ended
)

var tidied sync.Once

// tidy removes abandoned unfinished files from folder. Then it removes the least recently used
// files until the rest fits in most bytes. Several processes may do so at once.
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
