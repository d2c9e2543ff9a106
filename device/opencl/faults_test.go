package opencl

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/opencl/clfault"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// failing returns calls whose n-th, from 1, fails; with 0 none does.
func failing(n int, code cl.Code) *clfault.Calls {
	c := clfault.New()
	c.Fail(n, code)
	return c
}

// nothingIsLeft fails the test if something was not released.
func nothingIsLeft(t *testing.T, c *clfault.Calls) {
	t.Helper()
	if n := c.Left(); n > 0 {
		t.Errorf("%d objects of the driver are left", n)
	}
}

// hooked returns a device whose calls c sees. Its programs are kept on disk, as on most platforms.
func hooked(t *testing.T, c *clfault.Calls) found {
	f := first(t)
	d := *f.driver
	d.Hook = c
	f.driver = &d
	f.platform = "test"
	return f
}

// program runs copies and kernels on a fresh device on which any call may fail. It returns what is
// wrong: results must be right, or fail with the injected error if they depend on the failed call.
func program(t *testing.T, b *Backend, injected error) error {
	const n = 200 << 10 // 1.6 MB: more than passes through the ring
	var bufs []*device.Buffer
	defer func() {
		for _, buf := range bufs {
			b.Free(buf)
		}
	}()
	for range 4 {
		buf, err := b.Alloc(8 * n)
		if err != nil {
			return err
		}
		bufs = append(bufs, buf)
	}
	x, y, z, index := bufs[0], bufs[1], bufs[2], bufs[3]
	large := device.HostBuffer(8 * n)
	for i, values := 0, device.Slice[int64](large, 0, n); i < n; i++ {
		values[i] = int64(i)
	}
	small, whole := hostOf(0, 0, 0), device.HostBuffer(8*n)
	pick := command(gather, 3, z, x, index)
	pick.Args = &device.Args{Shape: device.Shape{3}, Strides: [device.MaxOperands][]int{nil, {0}, {1}}, Ints: []int{n, 1}}
	wrong := pick
	wrong.Buf[0] = y
	wrong.Off[0] = 10
	wrong.Args = &device.Args{Shape: device.Shape{3}, Strides: pick.Args.Strides, Ints: []int{7, 1}}
	cmds := []device.Command{
		command(upload, n, x, large),               // 0
		command(upload, 3, index, hostOf(5, 7, 9)), // 1
		command(sum, n, y, x, x),                   // 2: y = 2x
		pick,                                       // 3: z = 5, 7, 9
		command(download, 3, small, z),             // 4
		command(double, 3, z, y),                   // 5: z = 0, 4, 8
		command(upload, 3, x, hostOf(1, 1, 1)),     // 6: behind what reads x
		wrong,                                      // 7: 7 is out of range
		command(sum, 3, z, z, x),                   // 8: z = 1, 5, 9
		command(download, n, whole, y),             // 9
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
		var e *device.IndexError
		if isWrong := (i == 7 || i == 3 && failed[1] != nil) && errors.As(failed[i], &e); failed[i] != nil && !isWrong && !errors.Is(failed[i], injected) {
			t.Errorf("command %d fails with %v", i, failed[i])
		}
	}
	intact := func(cmds ...int) bool {
		return !slices.ContainsFunc(cmds, func(i int) bool { return failed[i] != nil })
	}
	if intact(0, 1, 3, 4) && !slices.Equal(device.Slice[int64](small, 0, 3), []int64{5, 7, 9}) {
		t.Errorf("the first download gives %v", device.Slice[int64](small, 0, 3))
	}
	if intact(0, 1, 2, 7) {
		t.Error("a wrong index is no failure")
	}
	if got := device.Slice[int64](whole, 0, n); intact(0, 2, 9) && (got[5] != 10 || got[n-1] != 2*(n-1)) {
		t.Errorf("the second download gives %d and %d", got[5], got[n-1])
	}
	again, err := b.Submit([]device.Command{command(download, 3, small, z)})
	if err != nil {
		return err
	}
	if err := b.Wait(t.Context(), again); err != nil {
		return err
	}
	if intact(0, 2, 5, 6, 8) && b.Failure(again) == nil && !slices.Equal(device.Slice[int64](small, 0, 3), []int64{1, 5, 9}) {
		t.Errorf("the last download gives %v", device.Slice[int64](small, 0, 3))
	}
	for _, err := range append(failed, b.Failure(again)) {
		if errors.Is(err, injected) {
			return err
		}
	}
	return nil
}

// Whichever driver call fails, its error is reported or makes no difference, results that do not
// depend on it are right, nothing hangs, and nothing leaks.
func testEachCall(t *testing.T, code cl.Code, cause error) {
	testEachCallWith(t, code, cause, func(b *Backend) *Backend { return b })
}

func testEachCallWith(t *testing.T, code cl.Code, cause error, set func(*Backend) *Backend) {
	testEachCallOf(program, t, code, cause, set)
}

// onFresh opens a device, configures it with set, and calls use with it.
func onFresh(f found, set func(*Backend) *Backend, use func(*Backend) error) (err error) {
	b, err := open(f)
	if err != nil {
		return err
	}
	defer func() {
		if closed := b.Close(); err == nil {
			err = closed
		}
	}()
	set(b)
	return use(b)
}

// testEachCallOf makes each driver call of a program fail, one at a time.
func testEachCallOf(program func(*testing.T, *Backend, error) error, t *testing.T, code cl.Code, cause error, set func(*Backend) *Backend) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for n := 0; ; n++ { // 0 fills the cache
		c := failing(n, code)
		f := hooked(t, c)
		err := onFresh(f, set, func(b *Backend) error { return program(t, b, cause) })
		nothingIsLeft(t, c)
		if err != nil && !errors.Is(err, cause) {
			t.Errorf("call %d, %v: error %v", n, c.Failed(), err)
		}
		if err != nil && len(c.Failed()) == 0 {
			t.Errorf("no call failed, and yet: %v", err)
		}
		if t.Failed() {
			t.Fatalf("it was call %d, %v, that failed", n, c.Failed())
		}
		if n > 0 && len(c.Failed()) == 0 {
			t.Logf("%d calls, each of which has failed once", n-1)
			return
		}
	}
}

func TestEachCallRunsOutOfMemory(t *testing.T) {
	turns.Take(t)
	testEachCall(t, cl.OutOfHostMemory, device.ErrOutOfMemory)
}
func TestEachCallLosesTheDevice(t *testing.T) {
	turns.Take(t)
	testEachCall(t, cl.DeviceNotAvailable, device.ErrLost)
}

// A lost device stays lost for all its users, and Close still releases everything.
func TestLost(t *testing.T) {
	c := clfault.New()
	b, err := open(hooked(t, c))
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.Alloc(8)
	if err != nil {
		t.Fatal(err)
	}
	good, err := b.Submit([]device.Command{command(fill, 1, x)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	c.Fail(1, cl.DeviceNotAvailable)
	last, err := b.Submit([]device.Command{command(fill, 1, x), command(fill, 1, x)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(t.Context(), last); !errors.Is(err, device.ErrLost) || !b.Done(last) {
		t.Errorf("Wait: %v, Done: %v", err, b.Done(last))
	}
	for ticket := good + 1; ticket <= last; ticket++ {
		if err := b.Failure(ticket); !errors.Is(err, device.ErrLost) || !strings.Contains(err.Error(), b.name) {
			t.Errorf("command %d: %v", ticket, err)
		}
	}
	if err := b.Failure(good); err != nil {
		t.Errorf("a command that was done: %v", err)
	}
	if err := b.Wait(t.Context(), good); err != nil {
		t.Errorf("Wait for a command that was done: %v", err)
	}
	if _, err := b.Submit([]device.Command{command(fill, 1, x)}); !errors.Is(err, device.ErrLost) {
		t.Errorf("Submit: %v", err)
	}
	if _, err := b.Alloc(8); !errors.Is(err, device.ErrLost) {
		t.Errorf("Alloc: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	b.Free(x)
	nothingIsLeft(t, c)
}

// Compiled programs are kept on disk for the next device. A file that can't be used is compiled
// again.
func TestCacheOnDisk(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	compile := func() (sources, binaries int) {
		t.Helper()
		c := clfault.New()
		b, err := open(hooked(t, c))
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.Alloc(64)
		if err != nil {
			t.Fatal(err)
		}
		out := hostOf(0)
		mustDo(t, b, command(upload, 1, x, hostOf(21)), command(double, 1, x, x), command(double, 1, x, x), command(download, 1, out, x))
		if got := device.Slice[int64](out, 0, 1)[0]; got != 84 {
			t.Errorf("got %d", got)
		}
		b.Free(x)
		b.Close()
		nothingIsLeft(t, c)
		return c.Count(cl.CreateProgramWithSource), c.Count(cl.CreateProgramWithBinary)
	}
	expect := func(when string, wantSources, wantBinaries int) {
		t.Helper()
		if sources, binaries := compile(); sources != wantSources || binaries != wantBinaries {
			t.Errorf("%s: %d programs from source and %d from disk, want %d and %d", when, sources, binaries, wantSources, wantBinaries)
		}
	}
	expect("at first", 1, 0)
	expect("again", 0, 1)
	files := filesIn(t, folder)
	if len(files) != 1 {
		t.Fatalf("files %v", files)
	}
	damage(t, files[0], func(data []byte) []byte { return data[:len(data)/2] })
	expect("half a file", 1, 0)
	expect("after that", 0, 1)
	damage(t, files[0], func(data []byte) []byte { data[len(data)-1] ^= 1; return data })
	expect("a wrong bit", 1, 0)
	damage(t, files[0], func([]byte) []byte { return withSum(files[0], []byte("no program")) })
	expect("not a program", 1, 1)
	if got := filesIn(t, folder); !slices.Equal(got, files) {
		t.Errorf("files %v, want %v", got, files)
	}
	for _, file := range files {
		if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	expect("a folder in its place", 1, 0)
	if got := filesIn(t, folder); len(got) != 0 {
		t.Errorf("files %v beside the folder", got)
	}
}
