package tensor_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/sim"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
	"gonum.org/v1/gonum/mat"
)

// A tensor that has adopted a slice has its memory, where the host computes. Elsewhere it has its values.
func TestAdopt(t *testing.T) {
	bits := make([]int32, 100)
	x := tensor.Adopt(device.CPU(), bits, 4, 25)
	bits[26] = 7
	if got := tensor.SliceOf[int32](x); got[26] != 7 || !slices.Equal(x.Shape(), []int{4, 25}) || x.DType() != tensor.Int32 {
		t.Errorf("%v %v has %v", x.DType(), x.Shape(), got)
	}
	far := device.Wrap("sim", device.KindSimulated, sim.New(sim.Options{}))
	y := tensor.Adopt(far, []float64{1, 2, 3})
	if got := y.Float64s(); y.Device() != far || !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("on %v: %v", y.Device(), got)
	}
	defer func() {
		if m, ok := recover().(*tensor.Mistake); !ok || m.Op != "Adopt" {
			t.Errorf("panics with %v", m)
		}
	}()
	tensor.Adopt(device.CPU(), []bool{true}, 2)
}

func TestCreation(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		f32 := func(shape []int, data ...float64) array { return array{tensor.Float32, shape, data} }
		m := tensor.On(on)
		for what, c := range map[string]struct {
			got  *tensor.Tensor
			want array
		}{
			"Zeros":          {m.Zeros(2, 1), f32([]int{2, 1}, 0, 0)},
			"Ones":           {m.Ones(2), f32([]int{2}, 1, 1)},
			"Full":           {m.As(tensor.Int64).Full(7, 1), array{tensor.Int64, []int{1}, []float64{7}}},
			"Full bool":      {m.As(tensor.Bool).Ones(2), array{tensor.Bool, []int{2}, []float64{1, 1}}},
			"Scalar":         {m.As(tensor.Float64).Scalar(0.1), array{tensor.Float64, []int{}, []float64{0.1}}},
			"Eye":            {m.Eye(2), f32([]int{2, 2}, 1, 0, 0, 1)},
			"Eye 0":          {m.Eye(0), f32([]int{0, 0})},
			"Arange":         {m.Arange(1, 2, 0.25), f32([]int{4}, 1, 1.25, 1.5, 1.75)},
			"Arange down":    {m.Arange(3, 0, -1.5), f32([]int{2}, 3, 1.5)},
			"Arange none":    {m.Arange(3, 0, 1), f32([]int{0})},
			"Arange int64":   {m.As(tensor.Int64).Arange(-1, 2, 1), array{tensor.Int64, []int{3}, []float64{-1, 0, 1}}},
			"Linspace":       {m.Linspace(0, 1, 5), f32([]int{5}, 0, 0.25, 0.5, 0.75, 1)},
			"Linspace 1":     {m.Linspace(3, 9, 1), f32([]int{1}, 3)},
			"Linspace 0":     {m.Linspace(3, 9, 0), f32([]int{0})},
			"FromOn":         {tensor.FromOn(on, []int64{1, 2, 3}), array{tensor.Int64, []int{3}, []float64{1, 2, 3}}},
			"FromOn nothing": {tensor.FromOn(on, []float32{}, 0, 4), f32([]int{0, 4})},
			"FromOn odd":     {tensor.FromOn(on, []bool{true, false, true}), array{tensor.Bool, []int{3}, []float64{1, 0, 1}}},
		} {
			if c.got.Device() != on {
				t.Errorf("%s: on %v", what, c.got.Device())
			}
			check(t, what, c.got, c.want, 0)
		}
	})
}

// The package functions make float32 tensors on the default device.
func TestDefaults(t *testing.T) {
	for what, x := range map[string]*tensor.Tensor{
		"Zeros": tensor.Zeros(3), "Ones": tensor.Ones(3), "Full": tensor.Full(2, 3), "Eye": tensor.Eye(2), "Scalar": tensor.Scalar(1),
		"Arange": tensor.Arange(0, 3, 1), "Linspace": tensor.Linspace(0, 1, 3), "Rand": tensor.Rand(3), "Randn": tensor.Randn(3),
		"Uniform": tensor.Uniform(0, 1, 3),
	} {
		if x.DType() != tensor.Float32 || x.Device() != device.Default() {
			t.Errorf("%s: %i", what, x)
		}
	}
	if x := tensor.RandInt(0, 9, 3); x.DType() != tensor.Int64 {
		t.Errorf("RandInt: %i", x)
	}
}

// From copies: later changes of the data or of the tensor don't affect the other.
func TestFromCopies(t *testing.T) {
	data := []float64{1, 2}
	x := tensor.From(data)
	data[0] = 9
	got := x.Float64s()
	got[1] = 9
	shape := x.Shape()
	shape[0] = 9
	check(t, "From", x, array{tensor.Float64, []int{2}, []float64{1, 2}}, 0)
}

func TestTryFrom(t *testing.T) {
	if x, err := tensor.TryFrom([]float32{1, 2, 3, 4}, 2, 2); err != nil || !slices.Equal(x.Shape(), []int{2, 2}) {
		t.Errorf("TryFrom: %v, %v", x, err)
	}
	for _, shape := range [][]int{{3}, {-1, 4}, {math.MaxInt, math.MaxInt}, {0}} {
		if x, err := tensor.TryFrom([]float32{1, 2, 3, 4}, shape...); err == nil {
			t.Errorf("TryFrom in shape %v: %i", shape, x)
		}
	}
}

func TestDense(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		m := mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6})
		x := tensor.FromDense(m.T()).To(on)
		check(t, "FromDense", x, array{tensor.Float64, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}}, 0)
		if got := x.T().As(tensor.Float32).Matrix(); !mat.Equal(got, m) {
			t.Errorf("Matrix: %v", mat.Formatted(got))
		}
	})
}

// Random numbers depend on seed and position alone: not on device, mode, or how draws are divided.
func TestRandom(t *testing.T) {
	type sample struct{ rand, randn, uniform, ints []float64 }
	var first *sample
	everywhere(t, func(t *testing.T, on device.Device) {
		g := tensor.NewGenerator(42)
		if on != device.CPU() {
			defer tensor.Seed(0)
			tensor.Seed(42)
		}
		var s sample
		if on == device.CPU() { // package functions and generators share the stream of a seed
			s = sample{values(g.Rand(2, 50)), values(g.Randn(100)), values(g.Uniform(-2, 3, 100)), values(g.RandInt(-5, 5, 100))}
		} else {
			m := tensor.On(on)
			s = sample{values(m.Rand(2, 50)), values(m.Randn(100)), values(m.Uniform(-2, 3, 100)), values(m.RandInt(-5, 5, 100))}
		}
		if first == nil {
			first = &s
		}
		for what, pair := range map[string][2][]float64{"Rand": {s.rand, first.rand}, "Randn": {s.randn, first.randn},
			"Uniform": {s.uniform, first.uniform}, "RandInt": {s.ints, first.ints}} {
			if !slices.Equal(pair[0], pair[1]) {
				t.Errorf("%s: other numbers than elsewhere", what)
			}
		}
		for i := range 100 {
			if s.rand[i] < 0 || s.rand[i] >= 1 || s.uniform[i] < -2 || s.uniform[i] > 3 || s.ints[i] < -5 || s.ints[i] >= 5 {
				t.Errorf("out of range: %v %v %v", s.rand[i], s.uniform[i], s.ints[i])
			}
		}
	})
}

func TestRandomIsSplittable(t *testing.T) {
	whole := values(tensor.NewGenerator(7).Randn(1000))
	g := tensor.NewGenerator(7)
	var parts []float64
	for _, n := range []int{1, 2, 3, 5, 489, 500} {
		parts = append(parts, values(g.Randn(n))...)
	}
	if !slices.Equal(whole, parts) {
		t.Error("six draws are not the parts of one")
	}
	mean, square := 0.0, 0.0
	for _, v := range whole {
		mean += v / 1000
		square += v * v / 1000
	}
	if math.Abs(mean) > 0.15 || math.Abs(square-1) > 0.2 {
		t.Errorf("mean %v, mean square %v of normal numbers", mean, square)
	}
}

// A generator is a cell: its state can be kept and restored.
func TestGeneratorState(t *testing.T) {
	g := tensor.NewGenerator(math.MaxUint64 - 1)
	g.Rand(3)
	var cell tensor.Cell = g
	state := cell.Value()
	first := g.Rand(4).Float32s()
	cell.Set(state)
	if again := g.Rand(4).Float32s(); !slices.Equal(first, again) {
		t.Errorf("after Set %v, before %v", again, first)
	}
	if m := mistake(func() { g.Set(tensor.Zeros(2)) }); m == nil || !strings.HasPrefix(m.Text, op.MistakeShape) {
		t.Errorf("Set of something else: %v", m)
	}
}
