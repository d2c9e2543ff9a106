package opencl

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
	"github.com/asyncgen/asyncgen/internal/turns"
)

var (
	uploadBytes   = device.NewKernel("upload", device.Upload, nil, device.Bool, device.Bool)
	downloadBytes = device.NewKernel("download", device.Download, nil, device.Bool, device.Bool)
)

// bytesOf returns n bytes of buf, which is host memory.
func bytesOf(buf *device.Buffer, at, n int) []byte {
	return unsafe.Slice((*byte)(buf.Ptr), buf.Bytes)[at : at+n]
}

// callsOf returns how many calls of the given functions do makes.
func callsOf(c *clfault.Calls, do func(), of ...cl.Fn) []int {
	counts := make([]int, len(of))
	for i, f := range of {
		counts[i] = -c.Count(f)
	}
	do()
	for i, f := range of {
		counts[i] += c.Count(f)
	}
	return counts
}

// withPacking compiles the pack kernel of b, if possible. No other goroutine uses b yet.
func withPacking(b *Backend) *Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.compileLocked(&newSource{b.packing, compute})
	return b
}

// watched is a device whose calls are counted, with the pack kernel compiled.
func watched(t *testing.T) (*Backend, *clfault.Calls) {
	c := clfault.New()
	b, err := open(hooked(t, c))
	if err != nil {
		t.Fatal(err)
	}
	withPacking(b)
	t.Cleanup(func() {
		b.Close()
		nothingIsLeft(t, c)
	})
	return b, c
}

// Small Downloads submitted together come to the host in one read, whatever their places and
// lengths.
func TestReadsArePacked(t *testing.T) {
	b, c := watched(t)
	const room = 5000
	source := alloc(t, b, room/8)
	all := device.HostBuffer(room)
	for i := range bytesOf(all, 0, room) {
		bytesOf(all, 0, room)[i] = byte(i*7 + i>>8)
	}
	mustDo(t, b, command(uploadBytes, room, source, all))
	var cmds []device.Command
	var outs []*device.Buffer
	for i := range maxCommands {
		n, at := 1+i*i%90, i*13%800
		switch i {
		case 5:
			n, at = 4096, 4
		case 6:
			n, at = 4095, 3
		}
		k, size := downloadBytes, 1
		if i%3 == 0 && i != 6 {
			k, size, n, at = download, 8, max(n/8, 1), at/8
		}
		out := device.HostBuffer(int64(n*size + 2))
		x := command(k, n, out, source)
		x.Off[1] = at
		if size == 1 {
			x.Off[0] = 1
		}
		cmds, outs = append(cmds, x), append(outs, out)
	}
	do := func() { mustDo(t, b, cmds...) }
	do() // compiles the kernels
	if got := callsOf(c, do, cl.EnqueueReadBuffer, cl.EnqueueNDRangeKernel); !slices.Equal(got, []int{1, 1}) {
		t.Errorf("%d reads: %d of the driver and %d launches, want 1 and 1", len(cmds), got[0], got[1])
	}
	for i, x := range cmds {
		size, off := x.Kernel.Out.Size(), x.Off[0]
		got, want := bytesOf(outs[i], 0, x.N*size+2), bytesOf(all, x.Off[1]*size, x.N*size)
		if !slices.Equal(got[off:off+len(want)], want) || off == 1 && got[0] != 0 || got[len(got)-1] != 0 {
			t.Errorf("read %d of %d elements of %d bytes from %d: %v, want %v", i, x.N, size, x.Off[1], got, want)
		}
	}
	// A few Downloads are read one by one, and so are large ones.
	for _, n := range []int{1, packLeast - 1} {
		do := func() { mustDo(t, b, cmds[:n]...) }
		if got := callsOf(c, do, cl.EnqueueReadBuffer, cl.EnqueueNDRangeKernel); !slices.Equal(got, []int{n, 0}) {
			t.Errorf("%d reads: %d of the driver and %d launches, want %[1]d and 0", n, got[0], got[1])
		}
	}
	large := command(downloadBytes, 4097, device.HostBuffer(4097), source)
	do = func() { mustDo(t, b, large, large, large, large, large) }
	if got := callsOf(c, do, cl.EnqueueReadBuffer, cl.EnqueueNDRangeKernel); !slices.Equal(got, []int{5, 0}) {
		t.Errorf("5 large reads: %d of the driver and %d launches, want 5 and 0", got[0], got[1])
	}
}

// Reads from different memory objects are packed by one launch for each object.
func TestReadsOfSeveralSlabs(t *testing.T) {
	b, c := watched(t)
	var cmds []device.Command
	var outs []*device.Buffer
	slabs := map[*slab]bool{}
	for i := range 12 {
		x := alloc(t, b, 8<<20>>(i%3)) // 64, 32 or 16 MiB
		slabs[x.Handle.(*block).slab] = true
		out := hostOf(0)
		one := command(upload, 1, x, hostOf(int64(i)))
		one.Off[0] = i
		mustDo(t, b, one)
		read := command(download, 1, out, x)
		read.Off[1] = i
		cmds, outs = append(cmds, read), append(outs, out)
	}
	if len(slabs) < 2 {
		t.Fatal("all memory is in one object")
	}
	do := func() { mustDo(t, b, cmds...) }
	if got := callsOf(c, do, cl.EnqueueReadBuffer, cl.EnqueueNDRangeKernel); !slices.Equal(got, []int{1, len(slabs)}) {
		t.Errorf("%d reads: %d of the driver and %d launches, want 1 and %d", len(cmds), got[0], got[1], len(slabs))
	}
	for i, out := range outs {
		if got := device.Slice[int64](out, 0, 1)[0]; got != int64(i) {
			t.Errorf("read %d is %d", i, got)
		}
	}
}

// The reads of a loop come together although what they read is overwritten in between. They don't
// wait for a lot of work in between.
func TestReadsOfALoop(t *testing.T) {
	for _, queues := range []string{"1", "4"} {
		for _, set := range []func(*Backend) *Backend{spread, func(b *Backend) *Backend { return b }} {
			t.Setenv("ASYNCGEN_OPENCL_QUEUES", queues)
			b, c := watched(t)
			set(b)
			x, y := alloc(t, b, 1), alloc(t, b, 1<<22)
			mustDo(t, b, command(upload, 1, x, hostOf(1)), command(double, 1, x, x), command(fill, 1<<22, y))
			loop := func(between ...device.Command) (cmds []device.Command, outs []*device.Buffer) {
				cmds = append(cmds, command(upload, 1, x, hostOf(1)))
				for range 5 {
					out := hostOf(0)
					cmds, outs = append(cmds, command(double, 1, x, x), command(download, 1, out, x)), append(outs, out)
					cmds = append(cmds, between...)
				}
				return cmds, outs
			}
			check := func(wantReads int, want func(i int) int64, between ...device.Command) {
				t.Helper()
				cmds, outs := loop(between...)
				do := func() { mustDo(t, b, cmds...) }
				if got := callsOf(c, do, cl.EnqueueReadBuffer); got[0] != wantReads {
					t.Errorf("%s queues: %d reads of the driver, want %d", queues, got[0], wantReads)
				}
				for i, out := range outs {
					if got := device.Slice[int64](out, 0, 1)[0]; got != want(i) {
						t.Errorf("%s queues: read %d is %d, want %d", queues, i, got, want(i))
					}
				}
			}
			doubled := func(i int) int64 { return 2 << i }
			check(1, doubled)
			check(1, func(i int) int64 { return 2 + 4*int64(min(i, 1)) }, command(upload, 1, x, hostOf(1)), command(upload, 1, x, hostOf(3)))
			check(5, doubled, command(fill, 1<<22, y))
		}
	}
}

// readProgram is a program for testEachCallOf: some reads are packed at once, some when their
// source is overwritten.
func readProgram(t *testing.T, b *Backend, injected error) error {
	x, err := b.Alloc(8)
	if err != nil {
		return err
	}
	defer b.Free(x)
	y, err := b.Alloc(100)
	if err != nil {
		return err
	}
	defer b.Free(y)
	numbers := device.HostBuffer(100)
	for i := range bytesOf(numbers, 0, 100) {
		bytesOf(numbers, 0, 100)[i] = byte(i)
	}
	cmds := []device.Command{command(uploadBytes, 100, y, numbers), command(upload, 1, x, hostOf(1))}
	var outs []*device.Buffer
	for range 4 {
		out := hostOf(0)
		outs = append(outs, out)
		cmds = append(cmds, command(double, 1, x, x), command(download, 1, out, x)) // 3, 5, 7, 9
	}
	for i := range 6 { // 10 to 15
		out := hostOf(0)
		outs = append(outs, out)
		c := command(downloadBytes, 5, out, y)
		c.Off[1] = 3 * i
		cmds = append(cmds, c)
	}
	last, err := b.Submit(cmds)
	if err != nil {
		return err
	}
	if err := b.Wait(t.Context(), last); err != nil {
		return err
	}
	failed := make([]error, len(cmds))
	for i := range cmds {
		failed[i] = b.Failure(last - device.Ticket(len(cmds)-1-i))
		if failed[i] != nil && !errors.Is(failed[i], injected) {
			t.Errorf("command %d fails with %v", i, failed[i])
		}
	}
	intact := failed[1] == nil
	for i := range 4 {
		intact = intact && failed[2+2*i] == nil
		if got := device.Slice[int64](outs[i], 0, 1)[0]; intact && failed[3+2*i] == nil && got != 2<<i {
			t.Errorf("read %d is %d, want %d", i, got, 2<<i)
		}
	}
	for i := range 6 {
		got, want := bytesOf(outs[4+i], 0, 8), bytesOf(numbers, 3*i, 5)
		if failed[0] == nil && failed[10+i] == nil && !slices.Equal(got, append(slices.Clone(want), 0, 0, 0)) {
			t.Errorf("read %d is %v, want %v", 4+i, got, want)
		}
	}
	return errors.Join(failed...)
}

func TestEachCallOfReadsRunsOutOfMemory(t *testing.T) {
	turns.Take(t)
	testEachCallOf(readProgram, t, cl.OutOfHostMemory, device.ErrOutOfMemory, func(b *Backend) *Backend { return b })
}

func TestEachCallOfReadsInManyQueuesRunsOutOfMemory(t *testing.T) {
	turns.Take(t)
	testEachCallOf(readProgram, t, cl.OutOfHostMemory, device.ErrOutOfMemory, func(b *Backend) *Backend { return spread(withPacking(b)) })
}

func TestEachCallOfReadsLosesTheDevice(t *testing.T) {
	turns.Take(t)
	testEachCallOf(readProgram, t, cl.DeviceNotAvailable, device.ErrLost, func(b *Backend) *Backend { return spread(withPacking(b)) })
}

// readsOf reads the number in x often enough for packing.
func readsOf(x *device.Buffer) (cmds []device.Command) {
	for range packLeast {
		cmds = append(cmds, command(download, 1, hostOf(0), x))
	}
	return cmds
}

// If the pack kernel can't be compiled, no command fails.
func TestReadsWithoutPacking(t *testing.T) {
	const invalid = cl.Code(-30) // CL_INVALID_VALUE: wraps no error of package device
	for _, fail := range []cl.Fn{cl.CreateProgramWithSource, cl.BuildProgram, cl.CreateKernel} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		f, refusal := first(t), &refusing{fail, invalid}
		driver := *f.driver
		driver.Hook = refusal
		f.driver = &driver
		b, err := open(f)
		if err != nil {
			t.Fatal(err)
		}
		x := alloc(t, b, 1)
		mustDo(t, b, command(upload, 1, x, hostOf(1)))
		for range 2 {
			cmds := readsOf(x)
			mustDo(t, b, cmds...)
			for i := range cmds {
				if got := device.Slice[int64](cmds[i].Buf[0], 0, 1)[0]; got != 1 {
					t.Errorf("without %v: read %d is %d", fail, i, got)
				}
			}
		}
		if !b.packFails {
			t.Errorf("without %v, it was compiled", fail)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A refusing driver fails all calls of one function.
type refusing struct {
	fn   cl.Fn
	code cl.Code
}

func (r *refusing) Before(f cl.Fn) cl.Code {
	if f == r.fn {
		return r.code
	}
	return cl.Success
}

func (r *refusing) After(cl.Fn, *[ffi.MaxArgs]uintptr, uintptr) {}

// If the calls that pack reads, or the read of a pack, fail, no command fails.
func TestReadsThatCannotBePacked(t *testing.T) {
	const invalid = cl.Code(-30) // CL_INVALID_VALUE: wraps no error of package device
	seen := map[string]bool{}
	for n := 1; n <= 12; n++ {
		b, c := watched(t)
		x := alloc(t, b, 1)
		mustDo(t, b, command(upload, 1, x, hostOf(1)))
		b.attendants.Wait() // attend makes no more calls
		cmds := readsOf(x)
		c.Fail(n, invalid)
		failed, err := do(b, cmds...)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range c.Failed() {
			seen[f] = true
		}
		for i := range cmds {
			if got := device.Slice[int64](cmds[i].Buf[0], 0, 1)[0]; failed[i] != nil || got != 1 {
				t.Errorf("call %d, %v, has failed: read %d is %d, error %v", n, c.Failed(), i, got, failed[i])
			}
		}
	}
	for _, f := range []cl.Fn{cl.CreateBuffer, cl.CreateKernel, cl.SetKernelArg, cl.EnqueueNDRangeKernel, cl.EnqueueReadBuffer, cl.EnqueueMarkerWithWaitList} {
		if !seen[f.String()] {
			t.Errorf("%v has never failed: only %v", f, seen)
		}
	}
}

// BenchmarkReads downloads one number at a time, all submitted at once, one by one and packed.
// least-ns is the fastest round.
func BenchmarkReads(b *testing.B) {
	d := newTest(b)
	for _, n := range []int{1, 2, 3, 4, 8, 64} {
		var cmds []device.Command
		for i := range n {
			x := alloc(b, d, 1)
			mustDo(b, d, command(upload, 1, x, hostOf(int64(i))))
			cmds = append(cmds, command(download, 1, hostOf(0), x))
		}
		for _, packed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/packed=%v", n, packed), func(b *testing.B) {
				d.packFails = !packed
				mustDo(b, d, cmds...)
				least := time.Hour
				for b.Loop() {
					begin := time.Now()
					last, _ := d.Submit(cmds)
					d.Wait(b.Context(), last)
					least = min(least, time.Since(begin))
				}
				b.ReportMetric(float64(least.Nanoseconds()), "least-ns")
			})
		}
	}
}
