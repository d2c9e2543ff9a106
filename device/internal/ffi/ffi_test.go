package ffi_test

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// function returns the address of a function of the system's C library.
func function(t testing.TB, name string) uintptr {
	t.Helper()
	library := map[string]string{"linux": "libc.so.6", "darwin": "/usr/lib/libSystem.B.dylib", "windows": "msvcrt.dll"}[runtime.GOOS]
	lib, err := dl.Open(library)
	if err != nil {
		t.Skipf("no C library: %v", err)
	}
	address, err := lib.Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// word returns a C int as a machine word.
func word(v int32) uintptr { return uintptr(uint32(v)) }

func TestDo(t *testing.T) {
	abs := function(t, "abs")
	for _, v := range []int32{0, 1, -1, 1 << 30, -5} {
		want := max(v, -v)
		if got := int32(ffi.Do(abs, word(v))); got != want {
			t.Errorf("abs(%d) = %d", v, got)
		}
	}
}

// snprintf gets more arguments than there are registers, and prints each in its place.
func TestEveryArgumentArrives(t *testing.T) {
	if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
		t.Skip("variadic functions have conventions of their own here")
	}
	snprintf := function(t, "snprintf")
	a := new(ffi.Arena)
	out, address := a.Bytes(200)
	n := ffi.Do(snprintf, address, uintptr(len(out)), a.String("%ld %ld %ld %ld %ld %ld %ld %ld %ld"), 11, 22, 33, 44, 55, 66, 77, 88, 99)
	runtime.KeepAlive(a)
	if got, want := string(out[:n]), "11 22 33 44 55 66 77 88 99"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestArena(t *testing.T) {
	strlen := function(t, "strlen")
	a := new(ffi.Arena)
	for range 3 {
		var all [][]uint64
		for n := range 200 {
			words, address := a.Words(n)
			if len(words) != n || n > 0 && uintptr(unsafe.Pointer(&words[0])) != address {
				t.Fatalf("%d words of %d", len(words), n)
			}
			for i, w := range words {
				if w != 0 {
					t.Fatalf("word %d of %d is %d", i, n, w)
				}
				words[i] = uint64(n)
			}
			all = append(all, words)
			text := strings.Repeat("x", n)
			if got := ffi.Do(strlen, a.String(text)); got != uintptr(n) {
				t.Fatalf("a string of %d bytes has %d", n, got)
			}
		}
		big, _ := a.Words(5000)
		if len(big) != 5000 {
			t.Fatalf("%d words of 5000", len(big))
		}
		for n, words := range all {
			for _, w := range words {
				if w != uint64(n) {
					t.Fatalf("words overlap: %d where %d was written", w, n)
				}
			}
		}
		a.Reset()
	}
	if n := testing.AllocsPerRun(20, func() { a.Words(900); a.Words(900); a.Reset() }); n > 0 {
		t.Errorf("it allocates %v times after Reset", n)
	}
}

func TestListStopsAtAFailure(t *testing.T) {
	abs := function(t, "abs")
	l := new(ffi.List)
	if got := l.Run(0); got != 0 {
		t.Errorf("an empty list stopped at %d", got)
	}
	for _, v := range []int32{0, 0, -7, 0, 3, 0} {
		l.Add(abs, word(v))
	}
	for _, step := range []struct{ from, stopped int }{{0, 2}, {3, 4}, {5, 6}, {6, 6}} {
		if got := l.Run(step.from); got != step.stopped {
			t.Errorf("from call %d it stopped at %d, want %d", step.from, got, step.stopped)
		}
	}
	if a, b := l.At(2).Status(), l.At(4).Status(); a != 7 || b != 3 {
		t.Errorf("results %d and %d, want 7 and 3", a, b)
	}
	l.Reset()
	l.Add(abs)
	if got := l.Run(0); got != 1 || l.Len() != 1 {
		t.Errorf("after Reset %d of %d calls were made: an old argument was passed", got, l.Len())
	}
}

// The upper half of the word that holds a C int is undefined.
func TestStatusIsAnInt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("longs are short here")
	}
	labs := function(t, "labs")
	l := new(ffi.List)
	l.Add(labs, 1<<40)
	l.Add(labs, 1<<32+1)
	if got := l.Run(0); got != 1 {
		t.Errorf("stopped at %d, want 1", got)
	}
}

// Long lists of calls run while the stacks of goroutines grow and the collector runs.
func TestManyGoroutines(t *testing.T) {
	abs := function(t, "abs")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for round := range 50 {
				l := new(ffi.List)
				for range 200 {
					l.Add(abs, 0)
				}
				if got := deep(round, func() int { return l.Run(0) }); got != 200 {
					t.Errorf("goroutine %d: %d calls", g, got)
				}
				if round%10 == 0 {
					runtime.GC()
				}
			}
		})
	}
	wg.Wait()
}

// deep calls f far down a stack.
func deep(levels int, f func() int) int {
	var room [256]byte
	if levels == 0 {
		return f()
	}
	n := deep(levels-1, f)
	runtime.KeepAlive(&room)
	return n
}

func TestNothingIsAllocated(t *testing.T) {
	if runtime.GOARCH != "amd64" || runtime.GOOS == "windows" {
		t.Skip("calls are made by other packages here, which allocate")
	}
	abs := function(t, "abs")
	l := new(ffi.List)
	list := func() {
		l.Reset()
		for range 5 {
			l.Add(abs, 0, 1, 2)
		}
		l.Run(0)
	}
	list()
	if n := testing.AllocsPerRun(100, list); n > 0 {
		t.Errorf("a list allocates %v times", n)
	}
}

func BenchmarkDo(b *testing.B) {
	abs := function(b, "abs")
	b.ReportAllocs()
	for b.Loop() {
		ffi.Do(abs, 0)
	}
}

// BenchmarkList measures one call of 64 in a list.
func BenchmarkList(b *testing.B) {
	abs := function(b, "abs")
	l := new(ffi.List)
	for range 64 {
		l.Add(abs, 0)
	}
	b.ReportAllocs()
	for i := 0; i < b.N; i += 64 {
		l.Run(0)
	}
}
