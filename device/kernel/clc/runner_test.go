package clc_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/ffi"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

// A runner is the simplest backend that runs what a Lowering says: one command after the other, each of which is waited for. Every buffer has
// memory of its own, which begins skew bytes before it.
type runner struct {
	t       *testing.T
	driver  *cl.Driver
	device  cl.Device
	context cl.Context
	queue   cl.Queue
	fault   cl.Mem
	options string

	mu       sync.Mutex
	lowering clc.Lowering
	kernels  map[*clc.Source]cl.Kernel
	building time.Duration
	tickets  device.Ticket
	closed   bool
}

const skew = 24

// newRunner opens the first device of OpenCL, or skips the test.
func newRunner(t *testing.T) *runner {
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
		if err != nil || len(devices) == 0 {
			continue
		}
		r := &runner{t: t, driver: d, device: devices[0], kernels: map[*clc.Source]cl.Kernel{}, options: clc.Options}
		r.open()
		return r
	}
	t.Skip("no device of OpenCL")
	return nil
}

func (r *runner) open() {
	var err error
	check := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	r.context, err = r.driver.CreateContext(r.device)
	check(err)
	r.t.Cleanup(func() { r.context.Release(r.driver) })
	r.queue, err = r.driver.CreateQueue(r.context, r.device)
	check(err)
	r.t.Cleanup(func() { r.queue.Release(r.driver) })
	r.fault, err = r.driver.CreateBuffer(r.context, 8*clc.FaultWords*3)
	check(err)
	r.t.Cleanup(func() { r.fault.Release(r.driver) })
	extensions, err := r.driver.DeviceText(r.device, cl.DeviceExtensions)
	check(err)
	group, err := r.driver.DeviceNumber(r.device, cl.DeviceMaxWorkGroupSize)
	check(err)
	local, err := r.driver.DeviceNumber(r.device, cl.DeviceLocalMemSize)
	check(err)
	config, err := r.driver.DeviceNumber(r.device, cl.DeviceSingleFPConfig)
	check(err)
	if config&cl.FPCorrectDivideSqrt != 0 {
		r.options += " -cl-fp32-correctly-rounded-divide-sqrt"
	}
	r.lowering.Limits = clc.Limits{FP64: strings.Contains(extensions, "cl_khr_fp64"), GroupSize: int(group), LocalBytes: int(local)}
	name, err := r.driver.DeviceText(r.device, cl.DeviceName)
	check(err)
	r.t.Logf("%s, %+v, options %s", name, r.lowering.Limits, r.options)
	r.t.Cleanup(func() {
		r.t.Logf("%d kernels, built in %v", len(r.kernels), r.building)
		for _, k := range r.kernels {
			k.Release(r.driver)
		}
	})
}

func (r *runner) Alloc(bytes int64) (*device.Buffer, error) {
	switch {
	case r.closed:
		return nil, device.ErrClosed
	case bytes < 0 || bytes > 1<<31:
		return nil, device.ErrOutOfMemory
	}
	mem, err := r.driver.CreateBuffer(r.context, bytes+skew+8)
	if err != nil {
		return nil, err
	}
	return &device.Buffer{Bytes: bytes, Handle: mem}, nil
}

func (r *runner) Free(b *device.Buffer) { b.Handle.(cl.Mem).Release(r.driver) }

func (r *runner) Submit(cmds []device.Command) (device.Ticket, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, device.ErrClosed
	}
	r.tickets += device.Ticket(len(cmds))
	for i := range cmds {
		if err := r.run(&cmds[i]); err != nil {
			return r.tickets, err
		}
	}
	return r.tickets, nil
}

// run runs c and waits for it.
func (r *runner) run(c *device.Command) error {
	size := c.Kernel.Out.Size()
	switch c.Kernel.Code {
	case device.Upload:
		if c.N == 0 {
			return nil
		}
		return r.transfer(cl.EnqueueWriteBuffer, c.Buf[0], c.Off[0]*size, c.Buf[1], c.Off[1]*size, c.N*size)
	case device.Download:
		if c.N == 0 {
			return nil
		}
		return r.transfer(cl.EnqueueReadBuffer, c.Buf[1], c.Off[1]*size, c.Buf[0], c.Off[0]*size, c.N*size)
	}
	l := &r.lowering
	l.Reset()
	place := clc.Place{Base: [device.MaxOperands]int64{skew, skew, skew, skew}, Fault: 1}
	if c.Args != nil {
		for range c.Args.Parts {
			place.Parts = append(place.Parts, skew)
		}
	}
	if err := l.Lower(c, &place); err != nil {
		return err
	}
	a := new(ffi.Arena)
	mem, memAt := a.Words(1 + len(l.Scratch))
	mem[0] = uint64(r.fault)
	for i, bytes := range l.Scratch {
		m, err := r.driver.CreateBuffer(r.context, max(bytes, 1))
		if err != nil {
			return err
		}
		defer m.Release(r.driver)
		mem[1+i] = uint64(m)
	}
	slot, slotAt := a.Words(3 * clc.FaultWords)
	b := &cl.Batch{Driver: r.driver}
	b.Add(cl.EnqueueWriteBuffer, uintptr(r.queue), uintptr(r.fault), 1, 0, uintptr(8*len(slot)), slotAt, 0, 0, 0)
	for _, launch := range l.Launches {
		k, err := r.kernel(launch.Source)
		if err != nil {
			return err
		}
		for i, arg := range launch.Args {
			word, at := a.Words(1)
			switch arg.Kind {
			case clc.Buf:
				word[0] = uint64(c.Buf[arg.Index].Handle.(cl.Mem))
			case clc.Scratch:
				at = memAt + uintptr(8*(1+arg.Index))
			case clc.Fault:
				at = memAt
			case clc.Part:
				word[0] = uint64(c.Args.Parts[arg.Index].Buf.Handle.(cl.Mem))
			}
			b.Add(cl.SetKernelArg, uintptr(k), uintptr(i), 8, at)
		}
		params, at := a.Words(len(launch.Params))
		copy(params, launch.Params)
		b.Add(cl.SetKernelArg, uintptr(k), uintptr(len(launch.Args)), uintptr(8*len(params)), at)
		sizes, at := a.Words(2)
		sizes[0], sizes[1] = uint64(launch.Groups*launch.Local), uint64(launch.Local)
		b.Add(cl.EnqueueNDRangeKernel, uintptr(r.queue), uintptr(k), 1, 0, at, at+8, 0, 0, 0)
	}
	b.Add(cl.EnqueueReadBuffer, uintptr(r.queue), uintptr(r.fault), 1, 0, uintptr(8*len(slot)), slotAt, 0, 0, 0)
	b.Add(cl.Finish, uintptr(r.queue))
	if _, err := b.Run(0); err != nil {
		return err
	}
	words := make([]int64, clc.FaultWords)
	for i := range slot {
		v := slot[i]
		if i/clc.FaultWords != 1 && v != 0 || !l.CanFail && v != 0 {
			return fmt.Errorf("%s wrote %d to word %d of the fault slots", c.Kernel.Name, v, i)
		}
		words[i%clc.FaultWords] |= int64(v)
	}
	return clc.Failure(words)
}

// transfer copies n bytes between memory of the device and of the host.
func (r *runner) transfer(f cl.Fn, there *device.Buffer, off int, host *device.Buffer, hostOff, n int) error {
	a := new(ffi.Arena)
	data, at := a.Bytes(n)
	if f == cl.EnqueueWriteBuffer {
		copy(data, bytesOf(host, hostOff, n))
	}
	b := &cl.Batch{Driver: r.driver}
	b.Add(f, uintptr(r.queue), uintptr(there.Handle.(cl.Mem)), 1, uintptr(skew+off), uintptr(n), at, 0, 0, 0)
	_, err := b.Run(0)
	if f == cl.EnqueueReadBuffer {
		copy(bytesOf(host, hostOff, n), data)
	}
	return err
}

func bytesOf(b *device.Buffer, off, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(b.Ptr, off)), n)
}

// put returns memory of the device with these contents, until the test ends.
func put[T device.Element](t *testing.T, r *runner, values []T) *device.Buffer {
	t.Helper()
	host := device.HostBuffer(int64(len(values) * device.DTypeOf[T]().Size()))
	copy(device.Slice[T](host, 0, len(values)), values)
	b, err := r.Alloc(host.Bytes)
	if err == nil {
		t.Cleanup(func() { r.Free(b) })
		err = r.transfer(cl.EnqueueWriteBuffer, b, 0, host, 0, int(host.Bytes))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// get sets values to what b holds.
func get[T device.Element](t *testing.T, r *runner, b *device.Buffer, values []T) {
	t.Helper()
	host := device.HostBuffer(b.Bytes)
	if err := r.transfer(cl.EnqueueReadBuffer, b, 0, host, 0, int(b.Bytes)); err != nil {
		t.Fatal(err)
	}
	copy(values, device.Slice[T](host, 0, len(values)))
}

// kernel builds a source once.
func (r *runner) kernel(s *clc.Source) (cl.Kernel, error) {
	if k, ok := r.kernels[s]; ok {
		return k, nil
	}
	start := time.Now()
	p, err := r.driver.CreateProgram(r.context, s.Text)
	if err != nil {
		return 0, err
	}
	defer p.Release(r.driver)
	if log, err := r.driver.Build(p, r.device, r.options); err != nil {
		return 0, fmt.Errorf("%w: %s\n%s", err, log, s.Text)
	}
	k, err := r.driver.CreateKernel(p, s.Name)
	r.building += time.Since(start)
	r.kernels[s] = k
	return k, err
}

func (r *runner) Done(device.Ticket) bool                   { return true }
func (r *runner) Wait(context.Context, device.Ticket) error { return nil }
func (r *runner) Failure(device.Ticket) error               { return nil }
func (r *runner) Caps() device.Caps {
	return device.Caps{Synchronous: true, BatchInvariant: true, Description: "a runner of OpenCL", Workers: 1}
}

func (r *runner) Close() error {
	r.closed = true
	return nil
}
