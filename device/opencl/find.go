package opencl

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/device/internal/cl"
	"github.com/asyncgen/asyncgen/device/internal/dl"
	"github.com/asyncgen/asyncgen/device/kernel/clc"
)

// found is one OpenCL device, usable or not.
type found struct {
	driver *cl.Driver
	device cl.Device

	platform, name, version, driverVersion string
	kind                                   int64 // DeviceType bits
	groupSize, local, memory, maxBlock     int64
	units                                  int64
	single, double                         int64 // bits of SingleFPConfig and DoubleFPConfig; double 0: no float64
	flaw                                   error // why the device can't be used; nil: it can
}

var search struct {
	mu      sync.Mutex // guards all
	key     string     // the settings for which the rest was found
	driver  *cl.Driver
	all     []found
	trouble error
}

// find returns the usable devices, by the settings that the environment has now, or an error that
// says why there are none.
func find() ([]found, error) {
	all, err := findAll()
	if err != nil {
		return nil, err
	}
	var usable []found
	var flaws []string
	for _, f := range all {
		if f.flaw == nil {
			usable = append(usable, f)
		} else {
			flaws = append(flaws, fmt.Sprintf("%s: %v", f.name, f.flaw))
		}
	}
	if len(usable) == 0 {
		return nil, errors.New("no device can be used: " + strings.Join(flaws, "; "))
	}
	return usable, nil
}

// New starts usable device i, independently of the one that [device.Open] returns. hook is for
// tests: unless nil, it sees all calls of the driver.
func New(i int, hook cl.Hook) (*Backend, error) {
	all, err := find()
	if err != nil {
		return nil, fmt.Errorf("opencl: %w", err)
	}
	if i < 0 || i >= len(all) {
		return nil, fmt.Errorf("opencl: no device %d, there are %d", i, len(all))
	}
	f := all[i]
	if hook != nil {
		hooked := *f.driver
		hooked.Hook = hook
		f.driver = &hooked
	}
	return open(f)
}

// findAll returns all devices, usable or not. It opens the library again only when the settings
// have changed.
func findAll() ([]found, error) {
	if err := checkSettings(); err != nil {
		return nil, err
	}
	search.mu.Lock()
	defer search.mu.Unlock()
	key := strings.Join(cl.Libraries(), "\n") + "\n" + os.Getenv("ASYNCGEN_OPENCL_CPU")
	if key != search.key {
		search.key = key
		search.all, search.trouble = nil, nil
		if search.driver, search.trouble = cl.Open(); search.trouble == nil {
			dl.KeepSignals(func() { search.all, search.trouble = ask(search.driver) })
		}
	}
	return search.all, search.trouble
}

// checkSettings returns an error if the environment turns OpenCL off, or if a setting is invalid.
func checkSettings() error {
	switch v := os.Getenv("ASYNCGEN_OPENCL"); v {
	case "":
	case "off":
		return errors.New("turned off by ASYNCGEN_OPENCL=off")
	default:
		return fmt.Errorf("ASYNCGEN_OPENCL=%s: there is off", v)
	}
	if v := os.Getenv("ASYNCGEN_OPENCL_CPU"); v != "" && v != "0" && v != "1" {
		return fmt.Errorf("ASYNCGEN_OPENCL_CPU=%s: there are 0 and 1", v)
	}
	_, err := computeQueues()
	return err
}

// ask returns all devices of all platforms. CPUs come last, so opencl:0 is a GPU if there is one. A platform that
// fails is left out if another one has devices.
func ask(d *cl.Driver) (all []found, err error) {
	platforms, err := d.Platforms()
	if e := (*cl.Error)(nil); errors.As(err, &e) && e.Code == cl.PlatformNotFound || err == nil && len(platforms) == 0 {
		return nil, fmt.Errorf("%s was opened, but no driver is installed: %w", d.Name, errors.Join(err))
	}
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, p := range platforms {
		name, err := d.PlatformText(p, cl.PlatformName)
		var devices []cl.Device
		if err == nil {
			devices, err = d.Devices(p)
		}
		for _, v := range devices {
			f := found{driver: d, device: v, platform: name}
			if err = f.describe(); err != nil {
				break
			}
			all = append(all, f)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(all) == 0 && len(failed) > 0 {
		return nil, errors.Join(failed...)
	}
	if len(all) == 0 {
		return nil, errNoDevice(d.Name, len(platforms))
	}
	cpusLast(all)
	return all, nil
}

func cpusLast(all []found) {
	slices.SortStableFunc(all, func(x, y found) int { return cmp.Compare(x.kind&cl.DeviceTypeCPU, y.kind&cl.DeviceTypeCPU) })
}

// errNoDevice is the error for a library whose drivers, of the given number, have no device.
func errNoDevice(library string, drivers int) error {
	which := "its driver has"
	if drivers > 1 {
		which = fmt.Sprintf("its %d drivers have", drivers)
	}
	hint := ""
	if os.Getenv("HOME") == "" && runtime.GOOS != "windows" {
		hint = "; HOME is not set, without which some drivers find none"
	}
	return fmt.Errorf("%s was opened, but %s no device%s", library, which, hint)
}

// describe asks the driver for the properties of f.
func (f *found) describe() error {
	for _, p := range []struct {
		to   *string
		what uintptr
	}{{&f.name, cl.DeviceName}, {&f.version, cl.DeviceVersion}, {&f.driverVersion, cl.DriverVersion}} {
		var err error
		if *p.to, err = f.driver.DeviceText(f.device, p.what); err != nil {
			return err
		}
	}
	var available, compiler, little int64
	for _, p := range []struct {
		to   *int64
		what uintptr
	}{
		{&f.kind, cl.DeviceType}, {&f.groupSize, cl.DeviceMaxWorkGroupSize}, {&f.local, cl.DeviceLocalMemSize},
		{&f.units, cl.DeviceMaxComputeUnits}, {&f.memory, cl.DeviceGlobalMemSize}, {&f.maxBlock, cl.DeviceMaxMemAllocSize}, {&f.single, cl.DeviceSingleFPConfig}, {&f.double, cl.DeviceDoubleFPConfig},
		{&available, cl.DeviceAvailable}, {&compiler, cl.DeviceCompiler}, {&little, cl.DeviceEndianLittle},
	} {
		var err error
		if *p.to, err = f.driver.DeviceNumber(f.device, p.what); err != nil {
			return err
		}
	}
	f.flaw = f.flawOf(available != 0, compiler != 0, little != 0)
	return nil
}

const (
	leastGroup = 256      // work items of a work group
	leastLocal = 32 << 10 // bytes of local memory
)

// flawOf returns why f can't be used, or nil.
func (f *found) flawOf(available, compiler, little bool) error {
	switch {
	case f.isCPU() && os.Getenv("ASYNCGEN_OPENCL_CPU") != "1":
		return errors.New("it is a CPU, for which package device/cpu is better; ASYNCGEN_OPENCL_CPU=1 takes it all the same")
	case !available:
		return errors.New("it is not available")
	case !compiler:
		return errors.New("it has no compiler")
	case !little:
		return errors.New("it is big-endian")
	case f.groupSize < leastGroup:
		return fmt.Errorf("its work groups have %d items at most, %d are needed", f.groupSize, leastGroup)
	case f.local < leastLocal:
		return fmt.Errorf("its work groups have %d bytes of memory, %d are needed", f.local, leastLocal)
	}
	return nil
}

func (f *found) isCPU() bool { return f.kind&cl.DeviceTypeCPU != 0 }

// description describes f for people.
func (f *found) description() string {
	text := fmt.Sprintf("%s, %s, %s, driver %s", f.name, f.platform, f.version, f.driverVersion)
	if f.isCPU() {
		text += ", which is a CPU"
	}
	return text
}

func (f *found) limits() clc.Limits {
	return clc.Limits{FP64: f.double != 0, GroupSize: int(f.groupSize), LocalBytes: int(f.local), Units: int(f.units)}
}

// memoryLimit returns how many bytes the device's allocator may take: nine tenths of the device's
// memory, or 0 if ASYNCGEN_MEMORY, which the allocator reads, sets the limit.
func (f *found) memoryLimit() int64 {
	if os.Getenv("ASYNCGEN_MEMORY") != "" {
		return 0
	}
	return f.memory / 10 * 9
}

// options returns the compiler options for the device's programs.
func (f *found) options() string {
	if f.single&cl.FPCorrectDivideSqrt != 0 {
		return clc.Options + " -cl-fp32-correctly-rounded-divide-sqrt"
	}
	return clc.Options
}
