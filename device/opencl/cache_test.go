package opencl

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

func filesIn(t *testing.T, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func damage(t *testing.T, file string, f func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, f(data), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func withSum(file string, binary []byte) []byte {
	sum := sumOf(file, binary)
	return append(sum[:], binary...)
}

// private makes a folder that nobody else may write to.
func private(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "asyncgen", "opencl")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a", "b", "program.bin")
	if got := load(file); got != nil {
		t.Errorf("what is not there is %q", got)
	}
	store(file, []byte("program"))
	if got := load(file); string(got) != "program" {
		t.Errorf("got %q", got)
	}
	store(file, []byte("another"))
	if got := load(file); string(got) != "another" {
		t.Errorf("got %q", got)
	}
	damage(t, file, func([]byte) []byte { return nil })
	if got := load(file); got != nil {
		t.Errorf("an empty file is %q", got)
	}
}

// A cache folder that can't be created or written to is no error.
func TestStoreWhereNothingCanBe(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "asyncgen")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(inTheWay, "opencl", "program.bin")
	store(file, []byte("program"))
	if got := load(file); got != nil {
		t.Errorf("got %q", got)
	}
	store("", []byte("program"))
	if got := load(""); got != nil {
		t.Errorf("got %q", got)
	}
}

// Files and folders that others may have written are neither read nor written, nor are symbolic
// links followed.
func TestForeignKernels(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have lists of who may write to them")
	}
	chmod := func(mode fs.FileMode, path ...string) func(folder string) error {
		return func(folder string) error { return os.Chmod(filepath.Join(append([]string{folder}, path...)...), mode) }
	}
	chown := func(path ...string) func(folder string) error {
		return func(folder string) error {
			if os.Geteuid() != 0 {
				return fs.ErrPermission // only root gives files away
			}
			return os.Lchown(filepath.Join(append([]string{folder}, path...)...), 1, -1)
		}
	}
	link := func(path ...string) func(folder string) error {
		return func(folder string) error {
			at := filepath.Join(append([]string{folder}, path...)...)
			if err := os.Rename(at, at+"-elsewhere"); err != nil {
				return err
			}
			return os.Symlink(at+"-elsewhere", at)
		}
	}
	for what, c := range map[string]struct {
		spoil   func(folder string) error
		mended  bool // the next store replaces it by a file of its own
		isNotes bool // the notes say why
	}{
		"a folder of a group":          {chmod(0o770), false, true},
		"a folder of all":              {chmod(0o707), false, true},
		"a folder around of a group":   {chmod(0o720, ".."), false, true},
		"a folder of another":          {chown(), false, true},
		"a folder around of another":   {chown(".."), false, true},
		"a cache of another":           {chown("..", ".."), false, true},
		"a folder behind a link":       {link(), false, true},
		"a folder around, behind one":  {link(".."), false, true},
		"a file of a group":            {chmod(0o660, "program.bin"), true, false},
		"a file of all":                {chmod(0o602, "program.bin"), true, false},
		"a file of another":            {chown("program.bin"), true, false},
		"a file behind a link":         {link("program.bin"), true, false},
		"a file that others may read":  {chmod(0o644, "program.bin"), true, false},
		"a folder that others may see": {chmod(0o755), true, false},
	} {
		folder := private(t)
		file := filepath.Join(folder, "program.bin")
		store(file, []byte("program"))
		if err := c.spoil(folder); errors.Is(err, fs.ErrPermission) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		if got := load(file); got != nil != strings.Contains(what, " that others may ") {
			t.Errorf("%s: load returns %q", what, got)
		}
		if err := usable(folder); (err != nil) != c.isNotes {
			t.Errorf("%s: %v", what, err)
		}
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		store(file, []byte("another"))
		got := load(file)
		if after, err := os.ReadFile(file); err != nil || c.mended != (string(got) == "another") || !c.mended && !bytes.Equal(before, after) {
			t.Errorf("%s: after store, load returns %q, and the file changed from %q to %q, %v", what, got, before, after, err)
		}
	}
}

// A file with a flipped bit, or a truncated one, counts as missing.
func TestDamagedFile(t *testing.T) {
	file := filepath.Join(private(t), "program.bin")
	whole := withSum(file, []byte("a program of some bytes"))
	look := func(what string, at int, data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := load(file); got != nil {
			t.Errorf("%s %d: got %q", what, at, got)
		}
	}
	for i := range whole {
		for bit := range 8 {
			data := slices.Clone(whole)
			data[i] ^= 1 << bit
			look("a wrong bit in byte", i, data)
		}
		look("cut off at byte", i, whole[:i])
	}
	look("of another name", 0, withSum("another.bin", []byte("a program of some bytes")))
}

// A file that several write at once is, whenever it is read, what one of them has written. No
// unfinished file is left.
func TestStoreAtOnce(t *testing.T) {
	file := filepath.Join(private(t), "program.bin")
	var work sync.WaitGroup
	for i := range 4 {
		binary := bytes.Repeat([]byte{byte(i)}, 5000*(i+1))
		work.Go(func() {
			for range 50 {
				store(file, binary)
				got := load(file)
				if len(got) == 0 || len(got) != 5000*(int(got[0])+1) {
					t.Errorf("%d bytes are there", len(got))
				}
			}
		})
	}
	work.Wait()
	if got := filesIn(t, filepath.Dir(file)); !slices.Equal(got, []string{file}) {
		t.Errorf("files %v", got)
	}
}

// tidy keeps the files that were used last, up to its limit, and unfinished ones that may still be
// written.
func TestTidy(t *testing.T) {
	folder := private(t)
	name := func(file string) string { return filepath.Join(folder, file) }
	add := func(file string, age time.Duration) {
		store(name(file), make([]byte, 100-sha256.Size))
		at := time.Now().Add(-age)
		if err := os.Chtimes(name(file), at, at); err != nil {
			t.Fatal(err)
		}
	}
	add("oldest.bin", 100*time.Hour)
	add("older.bin", 99*time.Hour)
	add("old.bin", 98*time.Hour)
	add("young.bin", time.Hour)
	add("new-1", 2*abandoned)
	add("new-2", 0)
	if err := os.Mkdir(name("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if load(name("oldest.bin")) == nil {
		t.Error("a file is not read")
	}
	expect := func(most int64, files ...string) {
		t.Helper()
		tidy(folder, most)
		for i := range files {
			files[i] = name(files[i])
		}
		if got := filesIn(t, folder); !slices.Equal(got, files) {
			t.Errorf("of %d bytes there are %v, want %v", most, got, files)
		}
	}
	expect(1000, "new-2", "old.bin", "older.bin", "oldest.bin", "young.bin")
	expect(300, "new-2", "old.bin", "oldest.bin", "young.bin")
	expect(299, "new-2", "oldest.bin", "young.bin")
	expect(0, "new-2")
	if _, err := os.Stat(name("folder")); err != nil {
		t.Error(err)
	}
	tidy(name("nowhere"), 0)

	add("new-3", 2*abandoned)
	tidied = sync.Once{}
	store(name("first.bin"), []byte("program"))
	add("new-4", 2*abandoned)
	store(name("second.bin"), []byte("program"))
	if got, want := filesIn(t, folder), []string{name("first.bin"), name("new-2"), name("new-4"), name("second.bin")}; !slices.Equal(got, want) {
		t.Errorf("after two files: %v, want %v", got, want)
	}
}

// Programs for different devices, drivers or options have different files.
func TestCacheKey(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	base := found{platform: "p", name: "n", version: "v", driverVersion: "d"}
	files := map[string]bool{}
	for _, change := range []func(f *found){
		func(*found) {}, func(f *found) { f.platform = "q" }, func(f *found) { f.name = "m" }, func(f *found) { f.version = "w" },
		func(f *found) { f.driverVersion = "e" }, func(f *found) { f.single = -1 },
	} {
		f := base
		change(&f)
		c := cacheFor(&f)
		for _, source := range []string{"a", "b"} {
			files[c.file(source)] = true
		}
	}
	if len(files) != 12 {
		t.Errorf("%d files, want 12", len(files))
	}
}

// A compiler counts the programs that are made of sources and of binaries.
type compiler struct{ sources, binaries int }

func (c *compiler) Before(f cl.Fn) cl.Code {
	switch f {
	case cl.CreateProgramWithSource:
		c.sources++
	case cl.CreateProgramWithBinary:
		c.binaries++
	}
	return cl.Success
}

func (c *compiler) After(cl.Fn, *[ffi.MaxArgs]uintptr, uintptr) {}

// Where binaries take long, those programs are kept that were compiled twice.
func TestSlowBinaries(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for times, want := range []compiler{{sources: 1}, {sources: 1}, {binaries: 1}, {binaries: 1}} {
		f, driver := first(t), new(compiler)
		d := *f.driver
		d.Hook = driver
		f.driver, f.platform = &d, pocl
		b, err := open(f)
		if err != nil {
			t.Fatal(err)
		}
		x, out := alloc(t, b, 2), hostOf(0, 0)
		mustDo(t, b, command(upload, 2, x, hostOf(3, 4)), command(double, 2, x, x), command(download, 2, out, x))
		if got := device.Slice[int64](out, 0, 2); got[0] != 6 || got[1] != 8 {
			t.Errorf("got %v", got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if *driver != want {
			t.Errorf("used %d times before: %+v, want %+v", times, *driver, want)
		}
	}
}

// withoutKernels is a driver that takes and builds binaries, but finds no kernel in them.
type withoutKernels struct {
	isBinary bool
	binaries int
}

func (w *withoutKernels) Before(f cl.Fn) cl.Code {
	if f == cl.CreateKernel && w.isBinary {
		return -46 // CL_INVALID_KERNEL_NAME
	}
	return cl.Success
}

func (w *withoutKernels) After(f cl.Fn, _ *[ffi.MaxArgs]uintptr, _ uintptr) {
	switch f {
	case cl.CreateProgramWithBinary:
		w.isBinary = true
		w.binaries++
	case cl.CreateProgramWithSource:
		w.isBinary = false
	}
}

// A binary in which the driver does not find the kernel is compiled again.
func TestBinaryWithoutKernel(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	driver := new(withoutKernels)
	for range 2 {
		f := first(t)
		d := *f.driver
		d.Hook = driver
		f.driver, f.platform = &d, "test"
		b, err := open(f)
		if err != nil {
			t.Fatal(err)
		}
		x, out := alloc(t, b, 2), hostOf(0, 0)
		mustDo(t, b, command(upload, 2, x, hostOf(3, 4)), command(double, 2, x, x), command(download, 2, out, x))
		if got := device.Slice[int64](out, 0, 2); got[0] != 6 || got[1] != 8 {
			t.Errorf("got %v", got)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if driver.isBinary || driver.binaries != 1 {
		t.Errorf("%d binaries, want one, and its source after it", driver.binaries)
	}
}
