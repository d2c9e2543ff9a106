// Package device is the seam between the runtime and what computes: element
// types, shapes, buffers, commands, the Backend interface, and the registry
// from which a program picks its devices.
//
// It does not schedule. The order in which commands run is the business of
// runtime/internal/engine; what a command computes is defined in
// device/kernel and runtime/op. Backends live in folders of their own and
// register themselves: device/cpu and device/sim come with the runtime.
//
// A device is named by its backend and a number: "cpu", "sim:0". The default
// is ASYNCGEN_DEVICE or else the CPU. [WithContext] makes part of the work on a
// device a scope: it can be waited for and cancelled without the rest.
package device

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/internal/bubble"
)

// A Device is one place where tensors live and operations run. Devices are
// values and can be compared; the zero Device is the default device.
type Device struct{ d *state }

type state struct {
	name    string
	index   int // among all devices
	kind    Kind
	backend Backend
	scope   *Scope // nil: none
	base    *state // in a scope: the device without it

	asked sync.Once // sets caps; not used in a scope
	caps  Caps
}

// A Kind tells what a device is made of.
type Kind uint8

const (
	KindCPU Kind = iota
	KindGPU
	KindSimulated
)

// A Driver finds the devices of one backend.
type Driver struct {
	Name string // "cpu", "sim"
	Kind Kind
	// Count is how many devices there are now; the error says why there are none.
	Count func() (int, error)
	// Open starts device i. It is called once for each device of a process.
	Open func(i int) (Backend, error)
	// Notes returns lines for people who wonder why a device is used or not. They say what was looked
	// for and where, and what was found but not used. A driver that has nothing to say leaves Notes
	// nil.
	Notes func() []string
}

var registry struct {
	mu      sync.Mutex // guards all
	drivers []Driver
	opened  []*state // by Open
	made    int      // devices so far, those of Wrap among them
	def     *state
	onOpen  []func(name string, b Backend) (Backend, error)
}

// Register adds a driver. It is called from init functions. It panics if the name is taken.
func Register(d Driver) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, have := range registry.drivers {
		if have.Name == d.Name {
			panic("device: driver " + d.Name + " registered twice")
		}
	}
	registry.drivers = append(registry.drivers, d)
	slices.SortFunc(registry.drivers, func(a, b Driver) int { return strings.Compare(a.Name, b.Name) })
}

// OnOpen has f replace the backend of each device that is opened from now on. It is for packages that wrap the devices
// of a program without a change to the program. It is called from init functions.
func OnOpen(f func(name string, b Backend) (Backend, error)) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.onOpen = append(registry.onOpen, f)
}

// Open returns the device with the given name: "cpu", "sim:0", or "" for the
// default. The error lists the names that exist.
func Open(name string) (Device, error) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	if name == "" {
		d, err := defaultLocked()
		return Device{d}, err
	}
	d, err := openLocked(name)
	return Device{d}, err
}

func openLocked(name string) (*state, error) {
	driverName, number, numbered := strings.Cut(name, ":")
	i := 0
	if numbered {
		var err error
		if i, err = strconv.Atoi(number); err != nil || i < 0 {
			return nil, fmt.Errorf("device: %q: the part after the colon must be a number from 0", name)
		}
	}
	for _, drv := range registry.drivers {
		if drv.Name != driverName {
			continue
		}
		n, err := drv.Count()
		if err != nil {
			return nil, fmt.Errorf("device: %s: %w", name, err)
		}
		if i >= n {
			return nil, fmt.Errorf("device: no %s:%d, there are %d", driverName, i, n)
		}
		full := driverName
		if drv.Kind != KindCPU {
			full = fmt.Sprintf("%s:%d", driverName, i)
		}
		for _, d := range registry.opened {
			if d.name == full {
				return d, nil
			}
		}
		b, err := drv.start(i)
		for _, f := range registry.onOpen {
			if err == nil {
				b, err = f(full, b)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("device: open %s: %w", full, err)
		}
		d := &state{name: full, index: registry.made, kind: drv.Kind, backend: b}
		registry.made++
		registry.opened = append(registry.opened, d)
		return d, nil
	}
	var names []string
	for _, drv := range registry.drivers {
		names = append(names, drv.Name)
	}
	hint := ""
	switch {
	case slices.Contains(names, "opencl"):
	case driverName == "opencl":
		hint = `; import _ "github.com/asyncgen/asyncgen/device/opencl" for that`
	case driverName == "gpu" || driverName == "cuda":
		hint = `; import _ "github.com/asyncgen/asyncgen/device/opencl" for GPUs, which are opencl:0 and so on`
	}
	return nil, fmt.Errorf("device: unknown device %q: this program has %s%s", name, strings.Join(names, ", "), hint)
}

// start opens device i. It returns an error if ASYNCGEN_MEMORY is not a number of bytes.
func (drv *Driver) start(i int) (Backend, error) {
	if _, err := limitFromEnv(); err != nil {
		return nil, err
	}
	var b Backend
	var err error
	bubble.Outside(func() { b, err = drv.Open(i) }) // backends start goroutines and read the clock
	return b, err
}

func defaultLocked() (*state, error) {
	if registry.def != nil {
		return registry.def, nil
	}
	name, from := os.Getenv("ASYNCGEN_DEVICE"), "ASYNCGEN_DEVICE: "
	if name == "" {
		name, from = "cpu", ""
	}
	d, err := openLocked(name)
	if err != nil {
		return nil, fmt.Errorf("%s%w", from, err)
	}
	registry.def = d
	return d, nil
}

// Default returns the device that ASYNCGEN_DEVICE names, or else the CPU. If that can't be opened, the settings are
// wrong, and the program ends as by [Misconfigured]. Open("") returns the error instead.
func Default() Device {
	d, err := Open("")
	if err != nil {
		Misconfigured(err)
	}
	return d
}

// CPU returns the device made of the program's own threads. If the settings are wrong, the program
// ends as by [Misconfigured].
func CPU() Device {
	d, err := Open("cpu")
	if err != nil {
		Misconfigured(err)
	}
	return d
}

// Misconfigured ends the program with status 2 because of an error in its settings, the environment
// variables ASYNCGEN_*. It prints the error on one line of standard error. There is no stack, as no
// code is wrong.
func Misconfigured(err error) {
	fmt.Fprintf(os.Stderr, "asyncgen: %s\n", strings.ReplaceAll(err.Error(), "\n", " "))
	os.Exit(2)
}

// HostMemoryLimit is how much memory the process may have, in bytes. On Linux, this is the machine's
// memory, or less if the process's control groups have a limit. Elsewhere it is only a bound.
func HostMemoryLimit() int64 { return hostMemory() }

// GPU returns the i-th GPU that a backend in this program has found. The error says, for each backend,
// why there is none. A simulated device is no GPU.
func GPU(i int) (Device, error) {
	gpus, why := findGPUs()
	if i >= 0 && i < len(gpus) {
		return gpus[i], nil
	}
	if len(gpus) > 0 {
		return Device{}, fmt.Errorf("device: no GPU %d, there are %d", i, len(gpus))
	}
	if why != nil {
		return Device{}, fmt.Errorf("device: no GPU %d: no backend in this program has found a GPU: %w", i, why)
	}
	return Device{}, fmt.Errorf("device: no GPU %d: no backend in this program has found a GPU", i)
}

// TryGPU returns GPU(i) or else the CPU.
func TryGPU(i int) Device {
	if d, err := GPU(i); err == nil {
		return d
	}
	return CPU()
}

// GPUs lists the GPUs that the backends in this program have found.
func GPUs() []Device {
	found, _ := findGPUs()
	return found
}

// findGPUs returns the GPUs, and why there are no more: the errors of backends that find none or can't open one.
func findGPUs() (found []Device, why error) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	for _, drv := range registry.drivers {
		if drv.Kind != KindGPU {
			continue
		}
		n, err := drv.Count()
		if err != nil {
			why = errors.Join(why, fmt.Errorf("%s: %w", drv.Name, err))
			continue
		}
		for i := range n {
			d, err := openLocked(fmt.Sprintf("%s:%d", drv.Name, i))
			if err != nil {
				why = errors.Join(why, err)
				continue
			}
			found = append(found, Device{d})
		}
	}
	return found, why
}

// Wrap returns a new device that runs on b. Its name need not be unique: Open never returns this
// device. Wrap is for tests and wrappers of backends.
func Wrap(name string, kind Kind, b Backend) Device {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	d := &state{name: name, index: registry.made, kind: kind, backend: b}
	registry.made++
	return Device{d}
}

func (d Device) state() *state {
	if d.d == nil {
		return Default().d
	}
	return d.d
}

// Or returns d, or the default device if d is the zero Device.
func (d Device) Or() Device { return Device{d.state()} }

// Name is the name that Open knows: "cpu", "sim:0".
func (d Device) Name() string { return d.state().name }

// String is Name.
func (d Device) String() string { return d.Name() }

// Index numbers the devices of a process, from 0, in the order in which they were opened.
func (d Device) Index() int { return d.state().index }

// Kind tells what the device is made of.
func (d Device) Kind() Kind { return d.state().kind }

// Backend runs the device's commands.
func (d Device) Backend() Backend { return d.state().backend }

// Caps says what the device promises. It asks the Backend only once: each read of a number needs Caps,
// and making up a Description would take longer than the rest of the read.
func (d Device) Caps() Caps {
	s := d.state()
	if s.base != nil {
		s = s.base
	}
	s.asked.Do(func() { s.caps = s.backend.Caps() })
	return s.caps
}
