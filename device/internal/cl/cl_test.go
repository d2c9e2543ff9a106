package cl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

const source = `
typedef struct { long n; long add; } params;
__kernel void increase(__global long *x, params p) {
	long i = get_global_id(0);
	if (i < p.n) x[i] += p.add;
}`

// first opens OpenCL and returns a device of any type, or skips the test.
func first(t *testing.T) (*cl.Driver, cl.Device) {
	t.Helper()
	d, err := cl.Open()
	if err != nil {
		t.Skipf("no OpenCL: %v", err)
	}
	platforms, err := d.Platforms()
	if err != nil {
		t.Skipf("no platform of OpenCL: %v", err)
	}
	for _, p := range platforms {
		devices, err := d.Devices(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(devices) > 0 {
			return d, devices[0]
		}
	}
	t.Skip("no device of OpenCL")
	return nil, 0
}

// increase adds 5 to each of 1,000 numbers on the device, twice in one batch. It returns the first
// error of a call.
func increase(d *cl.Driver, v cl.Device) (err error) {
	const n, groups = 1000, 4
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; i >= 0; i-- {
			if failed := undo[i](); err == nil {
				err = failed
			}
		}
	}()
	context, err := d.CreateContext(v)
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return context.Release(d) })
	queue, err := d.CreateQueue(context, v)
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return queue.Release(d) })
	program, err := d.CreateProgram(context, source)
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return program.Release(d) })
	if log, err := d.Build(program, v, "-cl-std=CL1.2"); err != nil {
		return fmt.Errorf("%w: %s", err, log)
	}
	kernel, err := d.CreateKernel(program, "increase")
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return kernel.Release(d) })
	mem, err := d.CreateBuffer(context, 8*n)
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return mem.Release(d) })

	b, a := &cl.Batch{Driver: d}, new(ffi.Arena)
	host, hostAt := a.Words(n)
	for i := range host {
		host[i] = uint64(i)
	}
	memWord, memAt := a.Words(1)
	memWord[0] = uint64(mem)
	sizes, sizesAt := a.Words(2)
	sizes[0], sizes[1] = groups*256, 256
	event, eventAt := a.Words(1)
	params, paramsAt := a.Words(2)
	params[0], params[1] = n, 5
	b.Add(cl.EnqueueWriteBuffer, uintptr(queue), uintptr(mem), 0, 0, 8*n, hostAt, 0, 0, 0)
	for range 2 {
		b.Add(cl.SetKernelArg, uintptr(kernel), 0, 8, memAt)
		b.Add(cl.SetKernelArg, uintptr(kernel), 1, 16, paramsAt)
		b.Add(cl.EnqueueNDRangeKernel, uintptr(queue), uintptr(kernel), 1, 0, sizesAt, sizesAt+8, 0, 0, 0)
	}
	b.Add(cl.EnqueueReadBuffer, uintptr(queue), uintptr(mem), 0, 0, 8*n, hostAt, 0, 0, 0)
	b.Add(cl.EnqueueMarkerWithWaitList, uintptr(queue), 0, 0, eventAt)
	b.Add(cl.Flush, uintptr(queue))
	_, err = b.Run(0)
	done := cl.Event(event[0])
	if done != 0 {
		undo = append(undo, func() error { return done.Release(d) })
	}
	if err != nil {
		d.Finish(queue) // commands in flight still write into our memory
		return err
	}
	defer runtime.KeepAlive(a)
	if err := d.Wait([]cl.Event{done}); err != nil {
		d.Finish(queue)
		return err
	}
	if status, err := d.Status(done); err != nil || status != cl.Success {
		return fmt.Errorf("status %v, error %w", status, err)
	}
	for i, got := range host {
		if got != uint64(i+10) {
			return fmt.Errorf("element %d is %d, want %d", i, got, i+10)
		}
	}
	return nil
}

func TestBatchComputes(t *testing.T) {
	d, v := first(t)
	name, err := d.DeviceText(v, cl.DeviceName)
	if err != nil || name == "" {
		t.Errorf("name %q, error %v", name, err)
	}
	units, err := d.DeviceNumber(v, cl.DeviceMaxComputeUnits)
	if err != nil || units < 1 || units > 1<<16 {
		t.Errorf("%d compute units, error %v", units, err)
	}
	t.Logf("%s: %s, %d compute units", d.Name, name, units)
	if err := increase(d, v); err != nil {
		t.Error(err)
	}
}

// A counter makes the n-th call fail, and counts objects that are created and not released.
type counter struct {
	fail  int // the number of the call, from 1; 0: none
	calls int
	made  map[uintptr]int
	hit   cl.Fn
}

func (c *counter) Before(f cl.Fn) cl.Code {
	if c.calls++; c.calls == c.fail && !strings.HasPrefix(f.String(), "clRelease") {
		c.hit = f
		return cl.OutOfHostMemory
	}
	return cl.Success
}

func (c *counter) After(f cl.Fn, args *[ffi.MaxArgs]uintptr, result uintptr) {
	switch {
	case strings.HasPrefix(f.String(), "clCreate"):
		c.made[result]++
	case strings.HasPrefix(f.String(), "clRelease"):
		c.made[args[0]]--
	case f == cl.EnqueueMarkerWithWaitList && result == 0:
		address := args[3]
		c.made[**(**uintptr)(unsafe.Pointer(&address))]++
	}
}

// Whichever call fails, its error is returned, and all objects are released.
func TestHookFailsEachCall(t *testing.T) {
	d, v := first(t)
	for n := 1; ; n++ {
		c := &counter{fail: n, made: map[uintptr]int{}}
		d.Hook = c
		err := increase(d, v)
		d.Hook = nil
		for handle, count := range c.made {
			if count != 0 {
				t.Errorf("call %d, %v, failed: handle %#x is left %d times", n, c.hit, handle, count)
			}
		}
		if c.calls < n {
			if err != nil {
				t.Errorf("no call failed, and yet: %v", err)
			}
			if n < 20 {
				t.Errorf("there were only %d calls", c.calls)
			}
			return
		}
		var failed *cl.Error
		if isRelease := err == nil; !isRelease && (!errors.As(err, &failed) || failed.Fn != c.hit || !errors.Is(err, device.ErrOutOfMemory)) {
			t.Errorf("call %d, %v, failed: error %v", n, c.hit, err)
		}
	}
}

func TestBuildLog(t *testing.T) {
	d, v := first(t)
	context, err := d.CreateContext(v)
	if err != nil {
		t.Fatal(err)
	}
	defer context.Release(d)
	program, err := d.CreateProgram(context, "__kernel void f(__global int *x) { x[0] = nosuchname; }")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Release(d)
	log, err := d.Build(program, v, "")
	if err == nil || !strings.Contains(log, "nosuchname") {
		t.Errorf("error %v, log %q", err, log)
	}
}

func TestBinary(t *testing.T) {
	d, v := first(t)
	context, err := d.CreateContext(v)
	if err != nil {
		t.Fatal(err)
	}
	defer context.Release(d)
	program, err := d.CreateProgram(context, source)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Release(d)
	if _, err := d.Build(program, v, ""); err != nil {
		t.Fatal(err)
	}
	binary, err := d.Binary(program)
	if err != nil || len(binary) == 0 {
		t.Fatalf("%d bytes, error %v", len(binary), err)
	}
	again, err := d.CreateProgramFrom(context, v, binary)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Release(d)
	if log, err := d.Build(again, v, ""); err != nil {
		t.Fatalf("%v: %s", err, log)
	}
	kernel, err := d.CreateKernel(again, "increase")
	if err != nil {
		t.Fatal(err)
	}
	kernel.Release(d)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	text := filepath.Join(t.TempDir(), "libOpenCL.so.1")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := [][2]string{{missing, missing}, {text, text}}
	if runtime.GOOS == "linux" {
		tests = append(tests, [2]string{"libm.so.6", "libm.so.6 is no library of OpenCL 1.2"}, [2]string{"libm.so.6", "clGetPlatformIDs"})
	}
	for _, test := range tests {
		t.Setenv("ASYNCGEN_LIBOPENCL", test[0])
		if _, err := cl.Open(); err == nil || !strings.Contains(err.Error(), test[1]) {
			t.Errorf("ASYNCGEN_LIBOPENCL=%s: error %v does not say %q", test[0], err, test[1])
		}
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		err  cl.Error
		text string
		is   error
	}{
		{cl.Error{Fn: cl.CreateBuffer, Code: cl.AllocationFailure}, "clCreateBuffer: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)", device.ErrOutOfMemory},
		{cl.Error{Fn: cl.Flush, Code: cl.InvalidCommandQueue}, "clFlush: CL_INVALID_COMMAND_QUEUE (-36)", device.ErrLost},
		{cl.Error{Fn: cl.ReleaseEvent, Code: -777}, "clReleaseEvent: code -777", nil},
	} {
		if test.err.Error() != test.text {
			t.Errorf("got %q, want %q", test.err.Error(), test.text)
		}
		for _, cause := range []error{device.ErrOutOfMemory, device.ErrLost} {
			if got := errors.Is(&test.err, cause); got != (cause == test.is) {
				t.Errorf("%v is %v: %v", &test.err, cause, got)
			}
		}
	}
}
