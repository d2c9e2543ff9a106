package devicetest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

func testCaps(s *suite) {
	caps := s.b.Caps()
	if caps.Description == "" {
		s.Error("no description")
	}
	if caps.Synchronous && caps.Workers < 1 {
		s.Errorf("a synchronous backend with %d workers", caps.Workers)
	}
	if again := s.b.Caps(); again != caps {
		s.Errorf("Caps changed from %+v to %+v", caps, again)
	}
}

func testMemory(s *suite) {
	for _, bytes := range []int64{0, 1, 7, 8, 100, 4096, 1<<20 + 1} {
		buf, err := s.b.Alloc(bytes)
		if err != nil {
			s.Fatalf("Alloc(%d): %v", bytes, err)
		}
		if buf.Bytes < bytes {
			s.Errorf("Alloc(%d) gives %d bytes", bytes, buf.Bytes)
		}
		if got := buf.Ptr != nil; got != s.b.Caps().HostMemory {
			s.Errorf("HostMemory is %v, but Ptr is %v", s.b.Caps().HostMemory, buf.Ptr)
		}
		if uintptr(buf.Ptr)%8 != 0 {
			s.Errorf("Alloc(%d) is not aligned", bytes)
		}
		s.b.Free(buf)
	}
	for _, bytes := range []int64{-1, 1 << 60} {
		if _, err := s.b.Alloc(bytes); !errors.Is(err, device.ErrOutOfMemory) {
			s.Errorf("Alloc(%d): error %v does not wrap ErrOutOfMemory", bytes, err)
		}
	}
	// Buffers do not overlap.
	var bufs []*device.Buffer
	for i := range 20 {
		bufs = append(bufs, put(s, []int64{int64(i), int64(i)}))
	}
	for i, buf := range bufs {
		if got := get[int64](s, buf, 2); got[0] != int64(i) || got[1] != int64(i) {
			s.Errorf("buffer %d holds %v", i, got)
		}
	}
}

func increment() *device.Kernel {
	return mapKernel(kernel.Add(kernel.Arg(0, device.Int64), kernel.Const(1, device.Int64)))
}

// doubling computes 2x + 1. A chain of it shows whether a command was left out or done twice.
func doubling() *device.Kernel {
	x := kernel.Arg(0, device.Int64)
	return mapKernel(kernel.Add(kernel.Add(x, x), kernel.Const(1, device.Int64)))
}

func testTickets(s *suite) {
	if !s.b.Done(0) {
		s.Error("ticket 0 is not done")
	}
	x := put(s, []int64{0})
	c := device.Command{Kernel: increment(), N: 1, Buf: [4]*device.Buffer{x, x}}
	first, err := s.b.Submit([]device.Command{c})
	if err != nil {
		s.Fatal(err)
	}
	before := first
	for n := 1; n < 50; n += 7 {
		cmds := make([]device.Command, n)
		for i := range cmds {
			cmds[i] = c
		}
		last, err := s.b.Submit(cmds)
		if err != nil {
			s.Fatal(err)
		}
		if last != before+device.Ticket(n) {
			s.Fatalf("ticket %d after %d and %d commands", last, before, n)
		}
		before = last
	}
	if s.b.Done(before) && !s.b.Done(before-1) {
		s.Error("a command is done, but the one before it is not")
	}
	if err := s.b.Wait(context.Background(), before); err != nil {
		s.Fatal(err)
	}
	for t := range before + 1 {
		// Commands before first are those of other tests, and may have failed.
		if !s.b.Done(t) || t >= first && s.b.Failure(t) != nil {
			s.Fatalf("after Wait for %d: Done(%d) = %v, Failure = %v", before, t, s.b.Done(t), s.b.Failure(t))
		}
	}
}

func testOrder(s *suite) {
	// A chain in batches of many sizes; all arithmetic wraps around.
	k, want := doubling(), int64(0)
	x, y := put(s, []int64{0}), put(s, []int64{0})
	for i := 0; i < 2000; {
		var cmds []device.Command
		for range 1 + s.rnd.IntN(100) {
			cmds = append(cmds, device.Command{Kernel: k, N: 1, Buf: [4]*device.Buffer{y, x}})
			x, y = y, x
			want = 2*want + 1
			i++
		}
		if _, err := s.b.Submit(cmds); err != nil {
			s.Fatal(err)
		}
	}
	if got := get[int64](s, x, 1)[0]; got != want {
		s.Errorf("a chain of dependent commands gives %d, want %d", got, want)
	}

	// Copies among commands: each copies the contents as of its place in the queue.
	const n = 5000
	const rounds = 30
	up, down := kernelFor(device.Upload, device.Int64), kernelFor(device.Download, device.Int64)
	buf := s.alloc(8 * n)
	var cmds []device.Command
	var outs []*device.Buffer
	for i := range rounds {
		in := make([]int64, n)
		for j := range in {
			in[j] = int64(i * j)
		}
		out, later := device.HostBuffer(8*n), device.HostBuffer(8*n)
		cmds = append(cmds,
			device.Command{Kernel: up, N: n, Buf: [4]*device.Buffer{buf, host(in)}},
			device.Command{Kernel: k, N: n, Buf: [4]*device.Buffer{buf, buf}},
			device.Command{Kernel: down, N: n, Buf: [4]*device.Buffer{out, buf}},
			device.Command{Kernel: k, N: n, Buf: [4]*device.Buffer{buf, buf}},
			device.Command{Kernel: down, N: n, Buf: [4]*device.Buffer{later, buf}},
		)
		outs = append(outs, out, later)
	}
	s.do(cmds...)
	for i, out := range outs {
		for j, got := range device.Slice[int64](out, 0, n) {
			want := int64(2*(i/2*j) + 1)
			if i%2 == 1 {
				want = 2*want + 1
			}
			if got != want {
				s.Fatalf("download %d: element %d is %d, want %d", i, j, got, want)
			}
		}
	}
}

func testWait(s *suite) {
	x := put(s, make([]float32, 1<<16))
	c := device.Command{Kernel: mapKernel(kernel.Exp(kernel.Arg(0, device.Float32))), N: 1 << 16, Buf: [4]*device.Buffer{x, x}}
	last, err := s.b.Submit([]device.Command{c, c, c})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.b.Wait(ctx, last); err != nil && !errors.Is(err, context.Canceled) {
		s.Errorf("Wait with a cancelled context: %v", err)
	}
	// The end of the context ended the waiting, not the commands.
	if err := s.b.Wait(context.Background(), last); err != nil {
		s.Errorf("Wait: %v", err)
	}
	if !s.b.Done(last) || s.b.Failure(last) != nil {
		s.Errorf("Done = %v, Failure = %v", s.b.Done(last), s.b.Failure(last))
	}
	if err := s.b.Wait(ctx, last); err != nil {
		s.Errorf("Wait for what is done: %v", err)
	}
}

// nonsense is a Body that no backend knows.
type nonsense struct{}

func (nonsense) Key() string { return "nonsense" }

func testFailures(s *suite) {
	x, zero := put(s, []int64{1}), put(s, []int64{0})
	inc := device.Command{Kernel: increment(), N: 1, Buf: [4]*device.Buffer{x, x}}
	unknown := device.Command{Kernel: device.NewKernel("nonsense", device.Map, nonsense{}, device.Int64, device.Int64), N: 1, Buf: [4]*device.Buffer{x, x}}
	divide := device.Command{Kernel: mapKernel(kernel.Div(kernel.Const(1, device.Int64), kernel.Arg(0, device.Int64))), N: 1, Buf: [4]*device.Buffer{s.alloc(8), zero}}
	for range 2 {
		if err := s.try(unknown); !errors.Is(err, device.ErrUnsupported) {
			s.Errorf("a kernel that nobody knows: error %v does not wrap ErrUnsupported", err)
		}
		if err := s.try(divide); err == nil {
			s.Error("an integer division by zero does not fail")
		}
		// The device goes on.
		s.do(inc)
	}
	if got := get[int64](s, x, 1)[0]; got != 3 {
		s.Errorf("got %d, want 3", got)
	}
	if s.b.Caps().Synchronous {
		return
	}
	// The neighbours of a failed command in the queue run, and do not share its error.
	last, err := s.b.Submit([]device.Command{inc, divide, inc, divide, inc})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.b.Wait(context.Background(), last); err != nil {
		s.Fatal(err)
	}
	for i := range 5 {
		if err := s.b.Failure(last - device.Ticket(4-i)); (err != nil) != (i%2 == 1) {
			s.Errorf("command %d of 5: error %v", i, err)
		}
	}
	if got := get[int64](s, x, 1)[0]; got != 6 {
		s.Errorf("got %d, want 6", got)
	}
}

func testConcurrency(s *suite) {
	const submitters, each = 4, 300
	k := increment()
	var bufs []*device.Buffer
	for range submitters {
		bufs = append(bufs, put(s, []int64{0, 0, 0}))
	}
	var wg sync.WaitGroup
	for _, buf := range bufs {
		wg.Go(func() {
			c := device.Command{Kernel: k, N: 3, Buf: [4]*device.Buffer{buf, buf}}
			for range each {
				last, err := s.b.Submit([]device.Command{c, c})
				if err != nil {
					s.Error(err)
					return
				}
				if last%50 == 0 {
					if err := s.b.Wait(context.Background(), last); err != nil || !s.b.Done(last) {
						s.Errorf("Wait: %v, Done: %v", err, s.b.Done(last))
					}
				}
			}
		})
	}
	wg.Wait()
	for i, buf := range bufs {
		for _, got := range get[int64](s, buf, 3) {
			if got != 2*each {
				s.Errorf("submitter %d: got %d, want %d", i, got, 2*each)
			}
		}
	}
}

// A closed device computes nothing, but its results can be read: whole ones, and views, whose elements
// are collected on the device first.
func testClose(s *suite) {
	s.Cleanup(func() { // runs after all buffers are freed
		if m := device.MemoryOf(s.b); m != nil && m.Live() == 0 && m.Stats().Cached != 0 {
			s.Errorf("a closed device keeps %d bytes that nobody uses", m.Stats().Cached)
		}
	})
	x, y := put(s, []int64{0, 10, 20, 30}), s.alloc(4*8)
	c := device.Command{Kernel: increment(), N: 4, Buf: [4]*device.Buffer{x, x}}
	last, err := s.b.Submit([]device.Command{c, c, c})
	if err != nil {
		s.Fatal(err)
	}
	if err := s.b.Close(); err != nil {
		s.Errorf("Close: %v", err)
	}
	if !s.b.Done(last) || s.b.Wait(context.Background(), last) != nil {
		s.Error("Close has not waited for what was submitted")
	}
	refuses := func(when string) {
		s.Helper()
		copied := device.Command{Kernel: kernelFor(device.Copy, device.Int64), N: 4, Buf: [4]*device.Buffer{y, x}}
		for _, cmds := range [][]device.Command{
			{c},
			{{Kernel: kernelFor(device.Fill, device.Int64), N: 4, Buf: [4]*device.Buffer{x}}},
			{{Kernel: kernelFor(device.Upload, device.Int64), N: 4, Buf: [4]*device.Buffer{x, host([]int64{7, 7, 7, 7})}}},
			{c, copied},
		} {
			if _, err := s.b.Submit(cmds); !errors.Is(err, device.ErrClosed) {
				s.Errorf("Submit of %s %s: error %v does not wrap ErrClosed", cmds[0].Kernel.Name, when, err)
			}
		}
	}
	reads := func(when string) {
		s.Helper()
		if got, want := get[int64](s, x, 4), []int64{3, 13, 23, 33}; !slices.Equal(got, want) {
			s.Errorf("read %s: got %v, want %v", when, got, want)
		}
		view := s.alloc(3 * 8) // an element that nobody writes, then elements 1 and 3
		s.do(device.Command{Kernel: kernelFor(device.Copy, device.Int64), N: 2, Buf: [4]*device.Buffer{view, x}, Off: [4]int{1, 1},
			Args: &device.Args{Shape: device.Shape{2}, Strides: [4][]int{nil, {2}}}})
		if got := get[int64](s, view, 3)[1:]; !slices.Equal(got, []int64{13, 33}) {
			s.Errorf("a view read %s: got %v, want 13 and 33", when, got)
		}
		s.do(device.Command{Kernel: kernelFor(device.Copy, device.Int64), N: 4, Buf: [4]*device.Buffer{y, x}})
		if got, want := get[int64](s, y, 4), []int64{3, 13, 23, 33}; !slices.Equal(got, want) {
			s.Errorf("a copy read %s: got %v, want %v", when, got, want)
		}
	}
	reads("after Close")
	refuses("after Close")
	reads("after what was refused")
	if err := s.b.Close(); err != nil {
		s.Errorf("Close again: %v", err)
	}
	reads("after another Close")
	refuses("after another Close")
}
