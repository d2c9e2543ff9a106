package opencl

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

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

func withSum(binary []byte) []byte {
	sum := sha256.Sum256(binary)
	return append(sum[:], binary...)
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

// A folder that can't be made, or written to, is no error.
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

// Programs for different devices, drivers or options don't meet.
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
	base.platform = pocl
	if c := cacheFor(&base); c.file("a") != "" {
		t.Errorf("what PoCL keeps itself is kept in %s", c.file("a"))
	}
}

// withoutKernels is a driver that takes binaries, and builds them, but finds no kernel in them.
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
