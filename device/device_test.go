package device

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// A fakeBackend has an identity and Caps. Other methods must not be called.
type fakeBackend struct {
	Backend
	number int
	caps   Caps
	asked  int // how often, for caps
}

func (b *fakeBackend) Caps() Caps {
	b.asked++
	return b.caps
}

// withDrivers runs a test with a registry of its own.
func withDrivers(t *testing.T, drivers ...Driver) {
	saved := registry.drivers
	savedOpened, savedDefault, savedOnOpen := registry.opened, registry.def, registry.onOpen
	registry.drivers, registry.opened, registry.def, registry.onOpen = nil, nil, nil, nil
	t.Cleanup(func() {
		registry.drivers, registry.opened, registry.def, registry.onOpen = saved, savedOpened, savedDefault, savedOnOpen
	})
	for _, d := range drivers {
		Register(d)
	}
}

func driver(name string, kind Kind, n int) Driver {
	return Driver{Name: name, Kind: kind,
		Count: func() (int, error) { return n, nil },
		Open:  func(i int) (Backend, error) { return &fakeBackend{number: i}, nil },
	}
}

func mustOpen(t *testing.T, name string) Device {
	t.Helper()
	d, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOpen(t *testing.T) {
	withDrivers(t, driver("sim", KindSimulated, 2), driver("cpu", KindCPU, 1))
	for name, want := range map[string]string{"cpu": "cpu", "cpu:0": "cpu", "sim": "sim:0", "sim:1": "sim:1"} {
		d := mustOpen(t, name)
		if d.Name() != want || d.String() != want {
			t.Errorf("Open(%q) is %v, want %v", name, d, want)
		}
		if again := mustOpen(t, name); again != d {
			t.Errorf("Open(%q) gives another device the second time", name)
		}
	}
	if d := mustOpen(t, "sim:1"); d.Backend().(*fakeBackend).number != 1 || d.Kind() != KindSimulated {
		t.Errorf("sim:1 is %+v", d.Backend())
	}
	if mustOpen(t, "sim:0").Index() == mustOpen(t, "sim:1").Index() {
		t.Error("two devices have one index")
	}
	wrapped := Wrap("cpu", KindCPU, &fakeBackend{})
	if wrapped == mustOpen(t, "cpu") || wrapped.Name() != "cpu" {
		t.Error("Wrap does not give a device of its own")
	}
}

// Everybody gets the backend that OnOpen's function returned.
func TestOnOpen(t *testing.T) {
	withDrivers(t, driver("sim", KindSimulated, 3), driver("cpu", KindCPU, 1))
	before := mustOpen(t, "sim:0")
	type wrapper struct {
		Backend
		name string
	}
	OnOpen(func(name string, b Backend) (Backend, error) {
		if name == "sim:2" {
			return nil, errors.New("not this one")
		}
		return &wrapper{b, name}, nil
	})
	OnOpen(func(_ string, b Backend) (Backend, error) { return &wrapper{b, "outer"}, nil })
	if _, ok := mustOpen(t, "sim:0").Backend().(*fakeBackend); !ok || mustOpen(t, "sim:0") != before {
		t.Error("a device that was open has changed")
	}
	for _, d := range []Device{mustOpen(t, "sim:1"), CPU(), Default()} {
		outer, ok := d.Backend().(*wrapper)
		if !ok || outer.name != "outer" || outer.Backend.(*wrapper).name != d.Name() {
			t.Errorf("the backend of %v is %+v", d, d.Backend())
		}
	}
	if CPU() != mustOpen(t, "cpu") || Default() != CPU() {
		t.Error("the device was opened twice")
	}
	if _, err := Open("sim:2"); err == nil || err.Error() != "device: open sim:2: not this one" {
		t.Errorf("the error is %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	broken := driver("broken", KindGPU, 1)
	broken.Open = func(int) (Backend, error) { return nil, errors.New("no such library") }
	sick := driver("sick", KindGPU, 0)
	sick.Count = func() (int, error) { return 0, errors.New("bad settings") }
	withDrivers(t, driver("cpu", KindCPU, 1), broken, sick)
	for name, want := range map[string]string{
		"gpu":      `device: unknown device "gpu": this program has broken, cpu, sick; import _ "github.com/asyncgen/asyncgen/device/opencl" for GPUs, which are opencl:0 and so on`,
		"tpu":      `device: unknown device "tpu": this program has broken, cpu, sick`,
		"opencl:1": `device: unknown device "opencl:1": this program has broken, cpu, sick; import _ "github.com/asyncgen/asyncgen/device/opencl" for that`,
		"cpu:1":    "device: no cpu:1, there are 1",
		"cpu:x":    `device: "cpu:x": the part after the colon must be a number from 0`,
		"cpu:-1":   `device: "cpu:-1": the part after the colon must be a number from 0`,
		"broken:0": "device: open broken:0: no such library",
		"sick":     "device: sick: bad settings",
	} {
		if _, err := Open(name); err == nil || err.Error() != want {
			t.Errorf("Open(%q): error %v, want %s", name, err, want)
		}
	}
}

// A bad ASYNCGEN_MEMORY is an error of Open, though NewAllocator, which backends call, panics.
func TestOpenWithAMemoryThatIsNoNumber(t *testing.T) {
	thrifty := driver("thrifty", KindGPU, 1)
	thrifty.Open = func(int) (Backend, error) {
		NewAllocator(&fakeSource{}, 0)
		return &fakeBackend{}, nil
	}
	withDrivers(t, thrifty)
	t.Setenv("ASYNCGEN_MEMORY", "3GB")
	const want = "device: open thrifty:0: ASYNCGEN_MEMORY=3GB: want a number of bytes"
	if _, err := Open("thrifty:0"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	t.Setenv("ASYNCGEN_MEMORY", "3000000000")
	mustOpen(t, "thrifty:0")
}

func TestDefault(t *testing.T) {
	withDrivers(t, driver("sim", KindSimulated, 1), driver("cpu", KindCPU, 1))
	t.Setenv("ASYNCGEN_DEVICE", "")
	if d := Default(); d != CPU() || (Device{}).Or() != d || (Device{}).Name() != "cpu" || mustOpen(t, "") != d {
		t.Errorf("the default device is %v", d)
	}

	registry.def = nil
	t.Setenv("ASYNCGEN_DEVICE", "sim:0")
	if d := Default(); d.Name() != "sim:0" {
		t.Errorf("the default device is %v", d)
	}

	registry.def = nil
	t.Setenv("ASYNCGEN_DEVICE", "tpu:0")
	const want = `ASYNCGEN_DEVICE: device: unknown device "tpu:0": this program has cpu, sim`
	if _, err := Open(""); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestGPUs(t *testing.T) {
	sick := driver("sick", KindGPU, 0)
	sick.Count = func() (int, error) { return 0, errors.New("no library") }
	withDrivers(t, driver("cpu", KindCPU, 1), driver("sim", KindSimulated, 1), sick)
	if _, err := GPU(0); err == nil || !strings.Contains(err.Error(), "no backend in this program has found a GPU: sick: no library") {
		t.Errorf("GPU(0): %v", err)
	}
	if d := TryGPU(0); d.Name() != "cpu" {
		t.Errorf("TryGPU(0) is %v", d)
	}
	Register(driver("fast", KindGPU, 2))
	if d, err := GPU(1); err != nil || d.Name() != "fast:1" || TryGPU(1) != d {
		t.Errorf("GPU(1) = %v, %v", d, err)
	}
	if _, err := GPU(2); err == nil || err.Error() != "device: no GPU 2, there are 2" {
		t.Errorf("GPU(2): %v", err)
	}
}

func TestRegisterTwicePanics(t *testing.T) {
	withDrivers(t, driver("cpu", KindCPU, 1))
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Register(driver("cpu", KindCPU, 1))
}

func TestDTypes(t *testing.T) {
	for _, test := range []struct {
		dt   DType
		name string
		size uintptr
	}{
		{DTypeOf[float32](), "float32", unsafe.Sizeof(float32(0))},
		{DTypeOf[float64](), "float64", unsafe.Sizeof(float64(0))},
		{DTypeOf[int64](), "int64", unsafe.Sizeof(int64(0))},
		{DTypeOf[bool](), "bool", unsafe.Sizeof(false)},
	} {
		if test.dt.String() != test.name || test.dt.Size() != int(test.size) || test.dt.IsFloat() != strings.HasPrefix(test.name, "float") {
			t.Errorf("%v: size %d, float %v", test.dt, test.dt.Size(), test.dt.IsFloat())
		}
	}
	if Invalid.String() != "invalid" || DType(77).String() != "dtype(77)" || Download.String() != "download" || Code(77).String() != "code(77)" {
		t.Error("what is no type or code has a wrong name")
	}
}

func TestShape(t *testing.T) {
	for _, test := range []struct {
		shape   Shape
		text    string
		size    int
		strides []int
	}{
		{Shape{}, "[]", 1, []int{}},
		{Shape{2, 3}, "[2 3]", 6, []int{3, 1}},
		{Shape{4, 0, 5}, "[4 0 5]", 0, []int{0, 5, 1}},
	} {
		if got := test.shape.String(); got != test.text {
			t.Errorf("String() = %s, want %s", got, test.text)
		}
		if got := test.shape.Size(); got != test.size {
			t.Errorf("%v has size %d", test.shape, got)
		}
		if got := test.shape.Strides(); !Shape(got).Equal(test.strides) {
			t.Errorf("%v has strides %v, want %v", test.shape, got, test.strides)
		}
	}
	if (Shape{1, 2}).Equal(Shape{1, 2, 3}) || !(Shape{1, 2}).Equal(Shape{1, 2}) {
		t.Error("Equal is wrong")
	}
}

func TestHostBuffer(t *testing.T) {
	b := HostBuffer(13)
	x := Slice[bool](b, 0, 13)
	if len(x) != 13 || b.Bytes != 13 || uintptr(b.Ptr)%8 != 0 {
		t.Errorf("%d elements, %d bytes at %v", len(x), b.Bytes, b.Ptr)
	}
	Slice[float32](b, 0, 3)[2] = 1
	if got := Slice[float32](b, 2, 1)[0]; got != 1 {
		t.Errorf("element 2 is %v", got)
	}
	if empty := HostBuffer(0); empty.Ptr == nil || len(Slice[float64](empty, 0, 0)) != 0 {
		t.Error("an empty buffer has no address")
	}
	for name, f := range map[string]func(){
		"too long":   func() { Slice[float32](b, 0, 4) },
		"offset":     func() { Slice[float32](b, 1, 3) },
		"negative":   func() { Slice[float32](b, -1, 1) },
		"length":     func() { Slice[float32](b, 0, -1) },
		"overflow":   func() { Slice[float64](b, 1, math.MaxInt64/8) },
		"not memory": func() { Slice[float32](&Buffer{Bytes: 100}, 0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestKernelsAreNumbered(t *testing.T) {
	a := NewKernel("a", Fill, nil, Float32)
	b := NewKernel("b", Map, nil, Float32, Bool, Int64)
	if b.ID != a.ID+1 || b.Out != Float32 || len(b.In) != 2 || b.Code != Map {
		t.Errorf("%+v, %+v", a, b)
	}
}

// Open once returned a wrapped device with the name of a device that was not opened yet.
func TestOpenDoesNotFindWrapped(t *testing.T) {
	withDrivers(t, driver("cpu", KindCPU, 1))
	w := Wrap("cpu", KindCPU, &fakeBackend{number: 7})
	if d := mustOpen(t, "cpu"); d == w || d.Backend().(*fakeBackend).number != 0 {
		t.Errorf("Open returns what Wrap has made: %+v", d.Backend())
	}
}

// A device has the Caps of its backend, in a scope and without, and asks for them once.
func TestCaps(t *testing.T) {
	b := &fakeBackend{caps: Caps{HostMemory: true, Workers: 3}}
	d := Wrap("caps", KindCPU, b)
	for _, d := range []Device{d, WithContext(t.Context(), d), d} {
		if got := d.Caps(); got != b.caps {
			t.Errorf("%+v", got)
		}
	}
	if b.asked != 1 {
		t.Errorf("the backend was asked %d times", b.asked)
	}
}
