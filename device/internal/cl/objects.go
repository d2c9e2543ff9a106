package cl

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// Handles of objects. 0 is no object.
type (
	Platform uintptr
	Device   uintptr
	Context  uintptr
	Queue    uintptr
	Program  uintptr
	Kernel   uintptr
	Mem      uintptr
	Event    uintptr
)

// Constants of cl.h.
const (
	PlatformVersion = 0x0901
	PlatformName    = 0x0902

	DeviceTypeCPU         = 1 << 1
	DeviceTypeGPU         = 1 << 2
	DeviceTypeAccelerator = 1 << 3
	deviceTypeAll         = 0xffffffff

	DeviceType             = 0x1000
	DeviceMaxComputeUnits  = 0x1002
	DeviceMaxWorkGroupSize = 0x1004
	DeviceMaxMemAllocSize  = 0x1010
	DeviceSingleFPConfig   = 0x101b
	DeviceGlobalMemSize    = 0x101f
	DeviceLocalMemSize     = 0x1023
	DeviceEndianLittle     = 0x1026
	DeviceAvailable        = 0x1027
	DeviceCompiler         = 0x1028
	DeviceName             = 0x102b
	DeviceVendor           = 0x102c
	DriverVersion          = 0x102d
	DeviceVersion          = 0x102f
	DeviceExtensions       = 0x1030
	DeviceDoubleFPConfig   = 0x1032

	FPDenorm            = 1 << 0
	FPInfNaN            = 1 << 1
	FPRoundToNearest    = 1 << 2
	FPFMA               = 1 << 5
	FPCorrectDivideSqrt = 1 << 7

	memReadWrite    = 1 << 0
	memAllocHostPtr = 1 << 4

	mapReadWrite = 1<<0 | 1<<1

	programBinarySizes = 0x1165
	programBinaries    = 0x1166
	programBuildLog    = 0x1183

	eventStatus = 0x11d3

	// MigrateUndefined migrates memory without its contents: it is allocated, and nothing is copied.
	MigrateUndefined = 1 << 1
)

// Platforms returns all platforms: the drivers that the OpenCL loader has found.
func (d *Driver) Platforms() ([]Platform, error) {
	return list[Platform](d, GetPlatformIDs)
}

// Devices returns the devices of a platform. There may be none.
func (d *Driver) Devices(p Platform) ([]Device, error) {
	devices, err := list[Device](d, GetDeviceIDs, uintptr(p), deviceTypeAll)
	if e, ok := err.(*Error); ok && e.Code == DeviceNotFound {
		return nil, nil
	}
	return devices, err
}

// list calls f, which writes handles to an address, twice: for their number, and for the handles.
func list[T ~uintptr](d *Driver, f Fn, args ...uintptr) (all []T, err error) {
	with(func(a *ffi.Arena) {
		count, address := a.Words(1)
		if err = d.status(f, append(args, 0, 0, address)...); err != nil || count[0] == 0 {
			return
		}
		handles, out := a.Words(int(count[0]))
		if err = d.status(f, append(args, uintptr(count[0]), out, 0)...); err != nil {
			return
		}
		for _, h := range handles {
			all = append(all, T(h))
		}
	})
	return all, err
}

// info calls f, which writes data to an address, twice: for the size, and for the data.
func (d *Driver) info(f Fn, args ...uintptr) (data []byte, err error) {
	with(func(a *ffi.Arena) {
		size, address := a.Words(1)
		if err = d.status(f, append(args, 0, 0, address)...); err != nil {
			return
		}
		out, at := a.Bytes(int(size[0]))
		if err = d.status(f, append(args, uintptr(size[0]), at, 0)...); err == nil {
			data = bytes.Clone(out)
		}
	})
	return data, err
}

// text returns the C string in data, without spaces around it.
func text(data []byte) string {
	data, _, _ = bytes.Cut(data, []byte{0})
	return string(bytes.TrimSpace(data))
}

// PlatformText returns a property of p that is text.
func (d *Driver) PlatformText(p Platform, what uintptr) (string, error) {
	data, err := d.info(GetPlatformInfo, uintptr(p), what)
	return text(data), err
}

// DeviceText returns a property of v that is text.
func (d *Driver) DeviceText(v Device, what uintptr) (string, error) {
	data, err := d.info(GetDeviceInfo, uintptr(v), what)
	return text(data), err
}

// DeviceNumber returns a property of v that is an integer of any size.
func (d *Driver) DeviceNumber(v Device, what uintptr) (int64, error) {
	data, err := d.info(GetDeviceInfo, uintptr(v), what)
	var word [8]byte
	copy(word[:], data)
	return int64(binary.LittleEndian.Uint64(word[:])), err
}

// made makes a call that returns a handle and writes its code to an address. args returns the
// arguments except that address, which is the last one.
func (d *Driver) made(f Fn, args func(a *ffi.Arena) []uintptr) (handle uintptr, err error) {
	with(func(a *ffi.Arena) {
		code, address := a.Words(1)
		handle = d.do(f, append(args(a), address)...)
		err = errorOf(f, Code(int32(code[0])))
	})
	return handle, err
}

// CreateContext returns a context with one device.
func (d *Driver) CreateContext(v Device) (Context, error) {
	h, err := d.made(CreateContext, func(a *ffi.Arena) []uintptr {
		devices, at := a.Words(1)
		devices[0] = uint64(v)
		return []uintptr{0, 1, at, 0, 0}
	})
	return Context(h), err
}

// CreateQueue returns a queue whose commands run in order.
func (d *Driver) CreateQueue(c Context, v Device) (Queue, error) {
	h, err := d.made(CreateCommandQueue, func(*ffi.Arena) []uintptr { return []uintptr{uintptr(c), uintptr(v), 0} })
	return Queue(h), err
}

// CreateBuffer returns device memory.
func (d *Driver) CreateBuffer(c Context, bytes int64) (Mem, error) {
	h, err := d.made(CreateBuffer, func(*ffi.Arena) []uintptr { return []uintptr{uintptr(c), memReadWrite, uintptr(bytes), 0} })
	return Mem(h), err
}

// CreatePinned returns pinned host memory: the device accesses it directly.
func (d *Driver) CreatePinned(c Context, bytes int64) (Mem, error) {
	h, err := d.made(CreateBuffer, func(*ffi.Arena) []uintptr {
		return []uintptr{uintptr(c), memReadWrite | memAllocHostPtr, uintptr(bytes), 0}
	})
	return Mem(h), err
}

// Map returns the address at which the host can read and write m until Unmap. It waits until all
// commands in q have ended.
func (d *Driver) Map(q Queue, m Mem, bytes int64) (unsafe.Pointer, error) {
	address, err := d.made(EnqueueMapBuffer, func(*ffi.Arena) []uintptr {
		const blocking = 1
		return []uintptr{uintptr(q), uintptr(m), blocking, mapReadWrite, 0, uintptr(bytes), 0, 0, 0}
	})
	return pointer(address), err
}

// Unmap ends the mapping of m at p. It is enqueued in q.
func (d *Driver) Unmap(q Queue, m Mem, p unsafe.Pointer) error {
	return d.status(EnqueueUnmapMemObject, uintptr(q), uintptr(m), uintptr(p), 0, 0, 0)
}

// Read copies bytes of m, from offset at, to an address. It waits until they are there, after all
// commands in q.
func (d *Driver) Read(q Queue, m Mem, at, bytes int64, to uintptr) error {
	const blocking = 1
	return d.status(EnqueueReadBuffer, uintptr(q), uintptr(m), blocking, uintptr(at), uintptr(bytes), to, 0, 0, 0)
}

// Provide enqueues the allocation of m's memory. Without it, drivers allocate at the first use.
func (d *Driver) Provide(q Queue, m Mem) (err error) {
	with(func(a *ffi.Arena) {
		mem, at := a.Words(1)
		mem[0] = uint64(m)
		err = d.status(EnqueueMigrateMemObjects, uintptr(q), 1, at, MigrateUndefined, 0, 0, 0)
	})
	return err
}

// CreateProgram returns a program with the given source. It is not built yet.
func (d *Driver) CreateProgram(c Context, source string) (Program, error) {
	h, err := d.made(CreateProgramWithSource, func(a *ffi.Arena) []uintptr {
		sources, at := a.Words(1)
		sources[0] = uint64(a.String(source))
		return []uintptr{uintptr(c), 1, at, 0}
	})
	return Program(h), err
}

// CreateProgramFrom returns a program made from a result of Binary. It is not built yet.
func (d *Driver) CreateProgramFrom(c Context, v Device, binary []byte) (Program, error) {
	h, err := d.made(CreateProgramWithBinary, func(a *ffi.Arena) []uintptr {
		devices, devicesAt := a.Words(1)
		lengths, lengthsAt := a.Words(1)
		binaries, binariesAt := a.Words(1)
		data, dataAt := a.Bytes(len(binary))
		copy(data, binary)
		devices[0], lengths[0], binaries[0] = uint64(v), uint64(len(binary)), uint64(dataAt)
		return []uintptr{uintptr(c), 1, devicesAt, lengthsAt, binariesAt, 0}
	})
	return Program(h), err
}

// Build compiles and links p. If that fails, log is the compiler's output.
func (d *Driver) Build(p Program, v Device, options string) (log string, err error) {
	with(func(a *ffi.Arena) {
		devices, at := a.Words(1)
		devices[0] = uint64(v)
		err = d.status(BuildProgram, uintptr(p), 1, at, a.String(options), 0, 0)
	})
	if err != nil {
		// If this fails too, there is still the code of err.
		data, _ := d.info(GetProgramBuildInfo, uintptr(p), uintptr(v), programBuildLog)
		log = text(data)
	}
	return log, err
}

// Binary returns the compiled form of p, which is built for one device.
func (d *Driver) Binary(p Program) (binary []byte, err error) {
	with(func(a *ffi.Arena) {
		size, at := a.Words(1)
		if err = d.status(GetProgramInfo, uintptr(p), programBinarySizes, 8, at, 0); err != nil {
			return
		}
		data, dataAt := a.Bytes(int(size[0]))
		pointers, pointersAt := a.Words(1)
		pointers[0] = uint64(dataAt)
		if err = d.status(GetProgramInfo, uintptr(p), programBinaries, 8, pointersAt, 0); err == nil {
			binary = bytes.Clone(data)
		}
	})
	return binary, err
}

// CreateKernel returns the kernel of p with the given name.
func (d *Driver) CreateKernel(p Program, name string) (Kernel, error) {
	h, err := d.made(CreateKernel, func(a *ffi.Arena) []uintptr { return []uintptr{uintptr(p), a.String(name)} })
	return Kernel(h), err
}

// Flush makes the device begin with the commands in q.
func (d *Driver) Flush(q Queue) error { return d.status(Flush, uintptr(q)) }

// Finish waits until q is empty.
func (d *Driver) Finish(q Queue) error { return d.status(Finish, uintptr(q)) }

// Wait waits for all events.
func (d *Driver) Wait(events []Event) (err error) {
	with(func(a *ffi.Arena) {
		handles, at := a.Words(len(events))
		for i, e := range events {
			handles[i] = uint64(e)
		}
		err = d.status(WaitForEvents, uintptr(len(events)), at)
	})
	return err
}

// Status returns the state of the command of e: 0 when it is complete, less than 0 if it has
// failed, more than 0 before.
func (d *Driver) Status(e Event) (status Code, err error) {
	with(func(a *ffi.Arena) {
		word, at := a.Words(1)
		err = d.status(GetEventInfo, uintptr(e), eventStatus, 4, at, 0)
		status = Code(int32(word[0]))
	})
	return status, err
}

// Retain adds a reference to e.
func (e Event) Retain(d *Driver) error { return d.status(RetainEvent, uintptr(e)) }

// Release drops a reference to e. Only tests have a use for the errors of the Release methods.
func (e Event) Release(d *Driver) error { return d.status(ReleaseEvent, uintptr(e)) }

// Release drops the reference to m. The driver keeps m while commands use it.
func (m Mem) Release(d *Driver) error { return d.status(ReleaseMemObject, uintptr(m)) }

// Release drops the reference to k.
func (k Kernel) Release(d *Driver) error { return d.status(ReleaseKernel, uintptr(k)) }

// Release drops the reference to p. Its kernels keep it alive.
func (p Program) Release(d *Driver) error { return d.status(ReleaseProgram, uintptr(p)) }

// Release drops the reference to q.
func (q Queue) Release(d *Driver) error { return d.status(ReleaseCommandQueue, uintptr(q)) }

// Release drops the reference to c. The objects created in it keep it alive.
func (c Context) Release(d *Driver) error { return d.status(ReleaseContext, uintptr(c)) }
