package cl

import (
	"bytes"
	"encoding/binary"
	"unsafe"

	"github.com/asyncgen/asyncgen/device/internal/ffi"
)

// What the functions make. 0 is none.
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

	// MigrateUndefined has memory be there, whatever is in it.
	MigrateUndefined = 1 << 1
)

// Platforms returns all platforms: the drivers that a loader has found.
func (d *Driver) Platforms() ([]Platform, error) {
	return list[Platform](d, GetPlatformIDs)
}

// Devices returns the devices of a platform, of which there may be none.
func (d *Driver) Devices(p Platform) ([]Device, error) {
	devices, err := list[Device](d, GetDeviceIDs, uintptr(p), deviceTypeAll)
	if e, ok := err.(*Error); ok && e.Code == DeviceNotFound {
		return nil, nil
	}
	return devices, err
}

// list calls f, which puts handles at an address, twice: to learn how many there are, and for them.
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

// info calls f, which puts what it knows at an address, twice: for the size, and for that.
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

// text is the part of a C string in front of the zero.
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

// made makes a call that returns a handle, and its code where the argument behind the given ones says.
func (d *Driver) made(f Fn, args func(a *ffi.Arena) []uintptr) (handle uintptr, err error) {
	with(func(a *ffi.Arena) {
		code, address := a.Words(1)
		handle = d.do(f, append(args(a), address)...)
		err = errorOf(f, Code(int32(code[0])))
	})
	return handle, err
}

// CreateContext returns a context of one device.
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

// CreateBuffer returns memory of the device.
func (d *Driver) CreateBuffer(c Context, bytes int64) (Mem, error) {
	h, err := d.made(CreateBuffer, func(*ffi.Arena) []uintptr { return []uintptr{uintptr(c), memReadWrite, uintptr(bytes), 0} })
	return Mem(h), err
}

// CreatePinned returns memory of the host from which the device copies without help.
func (d *Driver) CreatePinned(c Context, bytes int64) (Mem, error) {
	h, err := d.made(CreateBuffer, func(*ffi.Arena) []uintptr {
		return []uintptr{uintptr(c), memReadWrite | memAllocHostPtr, uintptr(bytes), 0}
	})
	return Mem(h), err
}

// Map returns the address of m for the host, to read and write, until Unmap. It waits for the queue.
func (d *Driver) Map(q Queue, m Mem, bytes int64) (unsafe.Pointer, error) {
	address, err := d.made(EnqueueMapBuffer, func(*ffi.Arena) []uintptr {
		const blocking = 1
		return []uintptr{uintptr(q), uintptr(m), blocking, mapReadWrite, 0, uintptr(bytes), 0, 0, 0}
	})
	return pointer(address), err
}

// Unmap takes the address back.
func (d *Driver) Unmap(q Queue, m Mem, p unsafe.Pointer) error {
	return d.status(EnqueueUnmapMemObject, uintptr(q), uintptr(m), uintptr(p), 0, 0, 0)
}

// Read reads bytes of m, from the given one on, to an address. It waits for them and for what is in the queue.
func (d *Driver) Read(q Queue, m Mem, at, bytes int64, to uintptr) error {
	const blocking = 1
	return d.status(EnqueueReadBuffer, uintptr(q), uintptr(m), blocking, uintptr(at), uintptr(bytes), to, 0, 0, 0)
}

// Provide enqueues that m has memory, which drivers else look for when it is used first.
func (d *Driver) Provide(q Queue, m Mem) (err error) {
	with(func(a *ffi.Arena) {
		mem, at := a.Words(1)
		mem[0] = uint64(m)
		err = d.status(EnqueueMigrateMemObjects, uintptr(q), 1, at, MigrateUndefined, 0, 0, 0)
	})
	return err
}

// CreateProgram returns a program of the given source. It is not built.
func (d *Driver) CreateProgram(c Context, source string) (Program, error) {
	h, err := d.made(CreateProgramWithSource, func(a *ffi.Arena) []uintptr {
		sources, at := a.Words(1)
		sources[0] = uint64(a.String(source))
		return []uintptr{uintptr(c), 1, at, 0}
	})
	return Program(h), err
}

// CreateProgramFrom returns a program of what Binary has returned. It is not built.
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

// Build compiles and links p. If that fails, log is what the compiler says.
func (d *Driver) Build(p Program, v Device, options string) (log string, err error) {
	with(func(a *ffi.Arena) {
		devices, at := a.Words(1)
		devices[0] = uint64(v)
		err = d.status(BuildProgram, uintptr(p), 1, at, a.String(options), 0, 0)
	})
	if err != nil {
		data, _ := d.info(GetProgramBuildInfo, uintptr(p), uintptr(v), programBuildLog) // without it, there is the code
		log = text(data)
	}
	return log, err
}

// Binary returns what p, which is built, was compiled to for its one device.
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

// Flush has the device begin with what is in q.
func (d *Driver) Flush(q Queue) error { return d.status(Flush, uintptr(q)) }

// Finish waits until q is empty.
func (d *Driver) Finish(q Queue) error { return d.status(Finish, uintptr(q)) }

// Wait waits for all the events.
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

// Status is how far the command of e has come: 0 when it is complete, less if it has failed.
func (d *Driver) Status(e Event) (status Code, err error) {
	with(func(a *ffi.Arena) {
		word, at := a.Words(1)
		err = d.status(GetEventInfo, uintptr(e), eventStatus, 4, at, 0)
		status = Code(int32(word[0]))
	})
	return status, err
}

// Retain keeps e until one more Release.
func (e Event) Retain(d *Driver) error { return d.status(RetainEvent, uintptr(e)) }

// Release gives e up. What the methods of this name return is of use to nobody but tests.
func (e Event) Release(d *Driver) error { return d.status(ReleaseEvent, uintptr(e)) }

// Release gives m up. The device keeps it while commands use it.
func (m Mem) Release(d *Driver) error { return d.status(ReleaseMemObject, uintptr(m)) }

// Release gives k up.
func (k Kernel) Release(d *Driver) error { return d.status(ReleaseKernel, uintptr(k)) }

// Release gives p up, which its kernels keep.
func (p Program) Release(d *Driver) error { return d.status(ReleaseProgram, uintptr(p)) }

// Release gives q up.
func (q Queue) Release(d *Driver) error { return d.status(ReleaseCommandQueue, uintptr(q)) }

// Release gives c up, which everything made in it keeps.
func (c Context) Release(d *Driver) error { return d.status(ReleaseContext, uintptr(c)) }
