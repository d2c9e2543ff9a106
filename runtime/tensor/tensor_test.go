package tensor_test

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/devicetest"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var seed = flag.Uint64("seed", 1, "seed of the randomised tests")

func TestMain(m *testing.M) {
	devicetest.QuickSim()
	// Kernels and names of tests live as long as the tests do. Where memory is scarce, the library collects by itself.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// ownEngine has everything run on a new engine until done is called. What an engine keeps for each device that it
// has worked for goes with it.
func ownEngine() (e *engine.Engine, done func()) {
	e = engine.New(engine.Options{})
	restore := tensor.SetEngine(e)
	return e, func() {
		restore()
		e.Close() // what failed on it was expected, or the test has failed
	}
}

// newRand returns a random number generator for one test, and logs how to get the same numbers again.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	t.Logf("seed %d (go test -run '%s' -seed N)", *seed, t.Name())
	return rand.New(rand.NewPCG(*seed, 0))
}

// everywhere runs f on each device in each mode of the engine; with -short only in the mode with concurrency. f
// gets nothing but the device, because results must be the same everywhere.
func everywhere(t *testing.T, f func(t *testing.T, on device.Device)) {
	for _, name := range []string{"cpu", "sim:0"} {
		for mode, modeName := range map[engine.Mode]string{engine.Async: "async", engine.Naive: "naive", engine.Shuffle: "shuffle"} {
			if mode != engine.Async && testing.Short() {
				continue
			}
			t.Run(name+"/"+modeName, func(t *testing.T) {
				dev, err := device.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				e := engine.New(engine.Options{Mode: mode, Workers: 2})
				defer tensor.SetEngine(e)()
				f(t, dev)
				if err := e.Close(); err != nil && !t.Failed() {
					t.Errorf("a failure that the test did not expect: %v", err)
				}
			})
		}
	}
}

// An array is the plain model of a tensor: float64s, whatever the type.
type array struct {
	dtype device.DType
	shape []int
	data  []float64
}

func (a array) size() int { return device.Shape(a.shape).Size() }

// tensor returns the tensor that a is the model of.
func (a array) tensor(on device.Device) *tensor.Tensor {
	switch a.dtype {
	case tensor.Float32:
		return upload[float32](on, a)
	case tensor.Float64:
		return upload[float64](on, a)
	case tensor.Int64:
		return upload[int64](on, a)
	case tensor.Int32, tensor.Uint8, tensor.Float16, tensor.BFloat16:
		bits := make([]uint64, len(a.data))
		for i, v := range a.data {
			bits[i] = kernel.BitsOf(v, a.dtype)
		}
		return ofBits(a.dtype, bits).To(on).Reshape(a.shape...)
	}
	data := make([]bool, len(a.data))
	for i, v := range a.data {
		data[i] = v != 0
	}
	return tensor.FromOn(on, data).Reshape(a.shape...)
}

// ofBits returns a tensor of a type for storage whose elements have these Bits.
func ofBits(dt device.DType, bits []uint64) *tensor.Tensor {
	switch dt {
	case tensor.Int32:
		return tensor.Of(valuesOf[int32](bits))
	case tensor.Uint8:
		return tensor.Of(valuesOf[uint8](bits))
	case tensor.Float16:
		return tensor.Of(valuesOf[tensor.Float16Bits](bits))
	}
	return tensor.From(valuesOf[tensor.BFloat16Bits](bits))
}

func valuesOf[T device.Element](bits []uint64) []T {
	data := make([]T, len(bits))
	for i, b := range bits {
		data[i] = kernel.Value[T](b)
	}
	return data
}

// rounded returns v in the type dt, as a float64.
func rounded(v float64, dt device.DType) float64 {
	switch dt {
	case tensor.Float32:
		return float64(float32(v))
	case tensor.Float16:
		return float64(device.ToFloat16(device.OddFloat32(v)).Float32())
	case tensor.BFloat16:
		return float64(device.ToBFloat16(device.OddFloat32(v)).Float32())
	case tensor.Int64, tensor.Int32:
		return math.Round(v)
	case tensor.Uint8:
		return math.Round(math.Abs(v))
	}
	return v
}

func upload[T float32 | float64 | int64](on device.Device, a array) *tensor.Tensor {
	data := make([]T, len(a.data))
	for i, v := range a.data {
		data[i] = T(v)
	}
	return tensor.FromOn(on, data).Reshape(a.shape...)
}

// random returns an array with elements from an interval, rounded to its type.
func random(r *rand.Rand, dt device.DType, shape []int, in op.Interval) array {
	a := array{dt, shape, make([]float64, device.Shape(shape).Size())}
	for i := range a.data {
		v := in.Lo + (in.Hi-in.Lo)*r.Float64()
		if dt == tensor.Bool {
			v = float64(r.IntN(2))
		}
		a.data[i] = rounded(v, dt)
	}
	return a
}

// at returns a's element at an index of a shape that a is broadcast to.
func (a array) at(index []int) float64 { return a.data[a.place(index)] }

// place returns the index of that element in a.data.
func (a array) place(index []int) int {
	index = index[len(index)-len(a.shape):]
	at := 0
	for axis, n := range a.shape {
		i := index[axis]
		if n == 1 {
			i = 0
		}
		at = at*n + i
	}
	return at
}

// indices lists all indices of a shape in row-major order.
func indices(shape []int) [][]int {
	list := [][]int{{}}
	for _, n := range shape {
		var longer [][]int
		for _, head := range list {
			for i := range n {
				longer = append(longer, append(slices.Clone(head), i))
			}
		}
		list = longer
	}
	return list
}

// values returns the elements of x as float64s.
func values(x *tensor.Tensor) []float64 {
	all := make([]float64, 0, x.Size())
	switch x.DType() {
	case tensor.Float32:
		for _, v := range x.Float32s() {
			all = append(all, float64(v))
		}
	case tensor.Float64:
		all = x.Float64s()
	case tensor.Int64:
		for _, v := range x.Int64s() {
			all = append(all, float64(v))
		}
	case tensor.Bool:
		for _, v := range x.Bools() {
			all = append(all, float64(kernel.Bits(v)))
		}
	case tensor.Float16:
		for _, v := range tensor.SliceOf[tensor.Float16Bits](x) {
			all = append(all, float64(v.Float32()))
		}
	case tensor.BFloat16:
		for _, v := range tensor.SliceOf[tensor.BFloat16Bits](x) {
			all = append(all, float64(v.Float32()))
		}
	case tensor.Int32:
		for _, v := range tensor.SliceOf[int32](x) {
			all = append(all, float64(v))
		}
	case tensor.Uint8:
		for _, v := range tensor.SliceOf[uint8](x) {
			all = append(all, float64(v))
		}
	}
	return all
}

// ulps returns how many units in the last place of type dt lie between got and want.
func ulps(dt device.DType, got, want float64) float64 {
	if got == want || math.IsNaN(got) && math.IsNaN(want) {
		return 0
	}
	if !dt.IsFloat() {
		return math.Inf(1)
	}
	unit := math.Nextafter(math.Abs(want), math.Inf(1)) - math.Abs(want)
	switch w := float32(math.Abs(want)); dt {
	case tensor.Float32:
		unit = float64(math.Nextafter32(w, float32(math.Inf(1))) - w)
	case tensor.Float16:
		unit = float64((device.ToFloat16(w) + 1).Float32() - device.ToFloat16(w).Float32())
	case tensor.BFloat16:
		unit = float64((device.ToBFloat16(w) + 1).Float32() - device.ToBFloat16(w).Float32())
	}
	return math.Abs(got-want) / unit
}

// check compares the shape, type and elements of x with those of the model.
func check(t *testing.T, what string, x *tensor.Tensor, want array, maxULP float64) {
	t.Helper()
	if x.DType() != want.dtype || !slices.Equal(x.Shape(), want.shape) {
		t.Errorf("%s: got %v%v, want %v%v", what, x.DType(), x.Shape(), want.dtype, want.shape)
		return
	}
	for i, got := range values(x) {
		// Half a unit is the rounding error of the reference.
		if d := ulps(want.dtype, got, want.data[i]); !(d <= maxULP+0.5) {
			t.Errorf("%s: element %d is %v, want %v: %.2g ulp apart, %v allowed", what, i, got, want.data[i], d, maxULP)
			return
		}
	}
}

// mistake runs f and returns the Mistake that it panics with, or nil.
func mistake(f func()) (m *tensor.Mistake) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case *tensor.Mistake:
			m = v
		default:
			panic(v)
		}
	}()
	f()
	return nil
}

// A field too many in a storage once put every small result into a larger size class of Go's allocator, which took
// some 30 ns more.
func TestResultFitsItsSizeClass(t *testing.T) {
	if tensor.ResultSize > 256 {
		t.Errorf("a result takes %d bytes, more than 256", tensor.ResultSize)
	}
}
