package tensor_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var storageTypes = []device.DType{tensor.Float16, tensor.BFloat16, tensor.Int32, tensor.Uint8}

// elementBits returns the Bits of x's elements, which are of any type.
func elementBits(x *tensor.Tensor) []uint64 {
	switch x.DType() {
	case tensor.Float32:
		return everyBits(tensor.SliceOf[float32](x))
	case tensor.Float64:
		return everyBits(tensor.SliceOf[float64](x))
	case tensor.Int64:
		return everyBits(tensor.SliceOf[int64](x))
	case tensor.Bool:
		return everyBits(tensor.SliceOf[bool](x))
	case tensor.Float16:
		return everyBits(tensor.SliceOf[tensor.Float16Bits](x))
	case tensor.BFloat16:
		return everyBits(tensor.SliceOf[tensor.BFloat16Bits](x))
	case tensor.Int32:
		return everyBits(tensor.SliceOf[int32](x))
	}
	return everyBits(tensor.SliceOf[uint8](x))
}

func everyBits[T device.Element](data []T) []uint64 {
	bits := make([]uint64, len(data))
	for i, v := range data {
		bits[i] = kernel.Bits(v)
	}
	return bits
}

// Views, copies, concatenation, selection and moves between devices change no bit, even of NaNs.
func TestStorageMoves(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range storageTypes {
			const rows, columns = 5, 7
			data := make([]uint64, rows*columns)
			for i := range data {
				data[i] = r.Uint64() & (1<<(8*dt.Size()) - 1)
			}
			pick := func(n int, at func(i int) int) []uint64 {
				want := make([]uint64, n)
				for i := range want {
					want[i] = data[at(i)]
				}
				return want
			}
			x := ofBits(dt, data).To(on).Reshape(rows, columns)
			index := tensor.FromOn(on, []int64{4, 0, -1})
			c := x.Transpose().Slice(0, 1, 4) // 3 columns of 5
			turned := func(i int) int { return i%rows*columns + 1 + i/rows }
			for name, test := range map[string]struct {
				got  *tensor.Tensor
				want []uint64
			}{
				"the whole":   {x, data},
				"transposed":  {x.T(), pick(len(data), func(i int) int { return i%rows*columns + i/rows })},
				"a slice":     {c, pick(3*rows, turned)},
				"reshaped":    {c.Reshape(3*rows, 1), pick(3*rows, turned)},
				"a row":       {x.Row(-2), pick(columns, func(i int) int { return 3*columns + i })},
				"broadcast":   {x.Row(1).BroadcastTo(3, columns), pick(3*columns, func(i int) int { return columns + i%columns })},
				"taken":       {x.Take(0, index), pick(3*columns, func(i int) int { return []int{4, 0, 4}[i/columns]*columns + i%columns })},
				"concat":      {tensor.Concat(0, x.Row(0), c.Row(1)), pick(columns+rows, func(i int) int { return map[bool]int{true: i, false: (i-columns)*columns + 2}[i < columns] })},
				"stacked":     {tensor.Stack(1, x.Row(3), x.Row(2)), pick(2*columns, func(i int) int { return (3-i%2)*columns + i/2 })},
				"elsewhere":   {x.T().To(device.CPU()).T(), data},
				"there, back": {c.To(device.CPU()).To(on), pick(3*rows, turned)},
			} {
				if test.got.DType() != dt || !slices.Equal(elementBits(test.got), test.want) {
					t.Errorf("%v, %s: %v %#x, want %#x", dt, name, test.got.DType(), elementBits(test.got), test.want)
				}
			}
		}
	})
}

// Item, At and their like read elements of all types; printing shows the fewest digits that tell them apart.
func TestStorageReads(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x := tensor.FromOn(on, []float64{0.1, -2.5, 300})
		for _, test := range []struct {
			dt         device.DType
			values     []float64
			text, json string
			one        string
		}{
			{tensor.Float16, []float64{0.0999755859375, -2.5, 300}, "[ 1.0e-01 -2.5e+00  3.0e+02]", "[0.099975586,-2.5,300]", "0.1"},
			{tensor.BFloat16, []float64{0.10009765625, -2.5, 300}, "[ 1.0e-01 -2.5e+00  3.0e+02]", "[0.100097656,-2.5,300]", "0.1"},
			{tensor.Int32, []float64{0, -2, 300}, "[  0  -2 300]", "[0,-2,300]", "0"},
			{tensor.Uint8, []float64{0, 0, 255}, "[  0   0 255]", "[0,0,255]", "0"},
		} {
			y := x.As(test.dt)
			for i, want := range test.values {
				if got := []float64{y.At(i), y.Row(i).Item(), y.As(tensor.Float64).At(i)}; slices.ContainsFunc(got, func(v float64) bool { return v != want }) {
					t.Errorf("%v: element %d is %v, want %v", test.dt, i, got, want)
				}
				if !test.dt.IsFloat() && (y.AtInt(i) != int64(want) || y.Row(i).ItemInt() != int64(want)) {
					t.Errorf("%v: element %d is %d and %d, want %v", test.dt, i, y.AtInt(i), y.Row(i).ItemInt(), want)
				}
			}
			if got := y.String(); got != test.text {
				t.Errorf("%v prints as %s, want %s", test.dt, got, test.text)
			}
			if got := y.Row(0).String(); got != test.one {
				t.Errorf("one %v prints as %s, want %s", test.dt, got, test.one)
			}
			if got, err := json.Marshal(y); err != nil || string(got) != test.json {
				t.Errorf("%v is %s as JSON, %v, want %s", test.dt, got, err, test.json)
			}
			if got, want := fmt.Sprintf("%i", y), fmt.Sprintf("%v[3] on %v", test.dt, on); got != want {
				t.Errorf("%%i prints %s, want %s", got, want)
			}
		}
		h := tensor.FromOn(on, []float64{1.0 / 3, 2, math.NaN()}).As(tensor.BFloat16)
		if got, want := h.String(), "[0.334 2.      NaN]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := tensor.OfOn(on, []uint8{7, 255}, 2, 1); got.DType() != tensor.Uint8 || got.Device() != on || got.AtInt(1, 0) != 255 {
			t.Errorf("OfOn is %v on %v", got, got.Device())
		}
		if got := tensor.Of([]int32{-7, 1 << 30}, 2, 1).To(on); got.DType() != tensor.Int32 || got.AtInt(0, 0) != -7 || got.AtInt(1, 0) != 1<<30 {
			t.Errorf("Of made %v %v", got.DType(), got)
		}
		if got := tensor.FromOn(on, []uint8{200}); got.DType() != tensor.Int64 || got.ItemInt() != 200 {
			t.Errorf("From made %v %v", got.DType(), got)
		}
	})
}

// Every number of 16 bits is converted to float32 and back, also through views.
func TestHalfConversions(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		bits := make([]uint64, 1<<16)
		for i := range bits {
			bits[i] = uint64(i)
		}
		for dt, value := range map[device.DType]func(i int) float32{
			tensor.Float16:  func(i int) float32 { return tensor.Float16Bits(i).Float32() },
			tensor.BFloat16: func(i int) float32 { return tensor.BFloat16Bits(i).Float32() },
		} {
			x := ofBits(dt, bits).To(on).Reshape(256, 256)
			wide := x.T().As(tensor.Float32).T()
			for i, got := range wide.Reshape(1 << 16).Float32s() {
				if want := value(i); got != want && (got == got || want == want) {
					t.Fatalf("%v %#x is %v, want %v", dt, i, got, want)
				}
			}
			for i, got := range elementBits(wide.As(dt)) {
				if v := value(i); got != uint64(i) && v == v {
					t.Fatalf("%v %#x is %#x after a round trip", dt, i, got)
				}
			}
		}
		// All pairs of types.
		x := tensor.FromOn(on, []float64{-1.5, 0, 2.5, 1, 65519, 65520, 70000, 1e300, math.NaN(), math.Inf(-1), 255.9, 256, 3e9, 1 + 0x1p-11 + 0x1p-40})
		for _, from := range device.DTypes() {
			y := x.As(from)
			of := elementBits(y)
			for _, to := range device.DTypes() {
				e := kernel.Cast(kernel.Arg(0, from), to)
				for i, got := range elementBits(y.As(to)) {
					if want := e.Eval(of[i:i+1], nil); got != want {
						t.Errorf("%v %#x is %#x as %v, want %#x", from, of[i], got, to, want)
					}
				}
			}
		}
	})
}

// sixteenths returns numbers of few digits, whose products and sums are exact in float32, but not in a type of 16 bits.
func sixteenths(t *testing.T, dt device.DType, shape ...int) array {
	r := newRand(t)
	a := array{dt, shape, make([]float64, device.Shape(shape).Size())}
	for i := range a.data {
		a.data[i] = float64(r.IntN(128)-40) / 16
	}
	return a
}

// Products and sums accumulate in float32, and are rounded once.
func TestHalfSums(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		for _, dt := range []device.DType{tensor.Float16, tensor.BFloat16} {
			const m, k, n = 7, 600, 9
			a, b := sixteenths(t, dt, m, k), sixteenths(t, dt, k, n)
			x, y := a.tensor(on), b.T().tensor(on).T()
			product := array{dt, []int{m, n}, make([]float64, m*n)}
			for i := range m {
				for j := range n {
					sum := 0.0
					for p := range k {
						sum += a.data[i*k+p] * b.data[p*n+j]
					}
					product.data[i*n+j] = rounded(sum, dt)
				}
			}
			check(t, "MatMul", x.MatMul(y), product, -0.5)
			sums, means, maxima := array{dt, []int{m}, nil}, array{dt, []int{m}, nil}, array{dt, []int{m}, nil}
			dots := make([]float64, 0, m)
			for i := range m {
				row := a.data[i*k:][:k]
				sum, dot := 0.0, 0.0
				for _, v := range row {
					sum += v
					dot += rounded(v*v, dt)
				}
				sums.data = append(sums.data, rounded(sum, dt))
				means.data = append(means.data, rounded(float64(float32(sum/k)), dt))
				maxima.data = append(maxima.data, slices.Max(row))
				dots = append(dots, rounded(dot, dt))
			}
			check(t, "Sum", x.Sum(1), sums, -0.5)
			check(t, "Sum of columns", x.T().Sum(0), sums, -0.5)
			check(t, "Mean", x.Mean(1), means, -0.5)
			check(t, "Max", x.Max(1), maxima, -0.5)
			for i := range m {
				if got := x.Row(i).Dot(x.Row(i)); got.DType() != dt || got.Item() != dots[i] {
					t.Errorf("%v: Dot is %v, want %v", dt, got, dots[i])
				}
			}
		}
		// The sum is no float16.
		if got := tensor.On(on).As(tensor.Float16).Full(60000, 1000).Mean(); got.Item() != 60000 {
			t.Errorf("the mean of many 60000 is %v", got)
		}
		if got := tensor.On(on).As(tensor.Float16).Full(60000, 1000).Sum(); !math.IsInf(got.Item(), 1) {
			t.Errorf("the sum of many 60000 is %v", got)
		}
		if got := tensor.On(on).As(tensor.BFloat16).Ones(100_000).Sum(); got.Item() != 99840 {
			t.Errorf("the sum of 100000 ones is %v", got)
		}
	})
}

// T returns the transposed matrix.
func (a array) T() array {
	rows, columns := a.shape[0], a.shape[1]
	b := array{a.dtype, []int{columns, rows}, make([]float64, len(a.data))}
	for i, v := range a.data {
		b.data[i%columns*rows+i/columns] = v
	}
	return b
}

// Every operation that computes with float16 and bfloat16 gives its result in float32, rounded once, and so does its
// gradient where it is one operation.
func TestHalfIsRoundedOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		window := tensor.Pool{Window: tensor.Both(2)}
		for _, dt := range []device.DType{tensor.Float16, tensor.BFloat16} {
			x, y := random(r, dt, []int{4, 6}, op.Interval{Lo: -2, Hi: 2}).tensor(on), random(r, dt, []int{6, 3}, op.Interval{Lo: -2, Hi: 2}).tensor(on)
			v, w := random(r, dt, []int{6}, op.Interval{Lo: 0.5, Hi: 2}).tensor(on), random(r, dt, []int{1, 1, 4, 4}, op.Interval{Lo: -2, Hi: 2}).tensor(on)
			for name, test := range map[string]struct {
				f  func(x ...*tensor.Tensor) *tensor.Tensor
				in []*tensor.Tensor
			}{
				"MatMul":     {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[1]) }, []*tensor.Tensor{x, y}},
				"Tanh":       {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Tanh() }, []*tensor.Tensor{x}},
				"SiLU":       {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].SiLU() }, []*tensor.Tensor{x}},
				"Mul":        {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[1]) }, []*tensor.Tensor{x, x.Neg()}},
				"Softmax":    {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Softmax(1) }, []*tensor.Tensor{x}},
				"LogSoftmax": {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSoftmax(0) }, []*tensor.Tensor{x}},
				"LogSumExp":  {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LogSumExp(1) }, []*tensor.Tensor{x}},
				"LayerNorm":  {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(1, 1e-5, x[1], x[2]) }, []*tensor.Tensor{x, v, v.Neg()}},
				"Mean":       {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mean(0) }, []*tensor.Tensor{x}},
				"Max":        {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Max(1) }, []*tensor.Tensor{x}},
				"CumSum":     {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].CumSum(1) }, []*tensor.Tensor{x}},
				"AvgPool2D":  {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AvgPool2D(window) }, []*tensor.Tensor{w}},
				"MaxPool2D":  {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MaxPool2D(window) }, []*tensor.Tensor{w}},
				"Var":        {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Var(1, 1) }, []*tensor.Tensor{x}},
				"Std":        {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Std(0) }, []*tensor.Tensor{x}},
				"VectorNorm": {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].VectorNorm(3, 1) }, []*tensor.Tensor{x}},
				"Quantile":   {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Quantile(0.3, 1) }, []*tensor.Tensor{x}},
				"Einsum":     {func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Einsum("ij,jk,j->k", x...) }, []*tensor.Tensor{x, y, v}},
				"IndexAdd": {func(x ...*tensor.Tensor) *tensor.Tensor {
					return x[0].IndexAdd(0, tensor.FromOn(on, []int{2, 0, 2}), x[1])
				},
					[]*tensor.Tensor{x, y.T()}},
				"Interpolate":       {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Interpolate(tensor.Bilinear, 5, 7) }, []*tensor.Tensor{w}},
				"AdaptiveAvgPool2D": {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].AdaptiveAvgPool2D(3, 3) }, []*tensor.Tensor{w}},
				"Attention": {func(x ...*tensor.Tensor) *tensor.Tensor {
					return tensor.Attention(x[0], x[1], x[2], tensor.AttentionOptions{Causal: true})
				},
					[]*tensor.Tensor{y, y.Neg(), y}},
				"Solve": {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Solve(x[1]) }, []*tensor.Tensor{w.Reshape(4, 4), x}},
				"Conv2D": {func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Conv2D(x[1], tensor.Conv{}) },
					[]*tensor.Tensor{w, w.Slice(2, 0, 2).Slice(3, 1, 3)}},
			} {
				var in, wide []*tensor.Tensor
				for _, x := range test.in {
					in, wide = append(in, x.Track()), append(wide, x.As(tensor.Float32).Track())
				}
				got, want := test.f(in...), test.f(wide...)
				if got.DType() != dt || !slices.Equal(elementBits(got), elementBits(want.As(dt))) {
					t.Errorf("%v: %s is %v, want %v", dt, name, got, want.As(dt))
				}
				g := random(r, dt, got.Shape(), op.Interval{Lo: 0.5, Hi: 1}).tensor(on)
				grads := tensor.Grad(got.Mul(g).Sum(), in...)
				for i, want := range tensor.Grad(want.Mul(g.As(tensor.Float32)).Sum(), wide...) {
					limit := 0.0
					switch name {
					case "Tanh", "Softmax", "LogSoftmax", "LogSumExp": // from the result, which is rounded
						limit = 0.02
					}
					for k, v := range grads[i].As(tensor.Float64).Reshape(grads[i].Size()).Float64s() {
						if w := rounded(want.As(tensor.Float64).Reshape(want.Size()).At(k), dt); grads[i].DType() != dt || !(math.Abs(v-w) <= limit) {
							t.Errorf("%v: element %d of gradient %d of %s is %v, want %v", dt, k, i, name, v, w)
							break
						}
					}
				}
			}
		}
	})
}

// Rows computed together have the bits of each alone, where the rule of an operation is made of several.
func TestHalfVMap(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float16, tensor.BFloat16} {
			draw := func(shape ...int) *tensor.Tensor { return random(r, dt, shape, op.Interval{Lo: -2, Hi: 2}).tensor(on) }
			x, v, w := draw(5, 3, 4), draw(5, 4), draw(5, 4, 4)
			for name, f := range map[string]func(x ...*tensor.Tensor) *tensor.Tensor{
				"LayerNorm": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LayerNorm(1, 1e-5, x[1], x[1]) },
				"Std":       func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Std(1, 1) },
				"Einsum":    func(x ...*tensor.Tensor) *tensor.Tensor { return tensor.Einsum("ij,j,jk->ik", x[0], x[1], x[2]) },
				"IsClose":   func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].IsClose(x[1], 0.3, 0.1) },
				"Attention": func(x ...*tensor.Tensor) *tensor.Tensor {
					return tensor.Attention(x[0], x[2], x[2], tensor.AttentionOptions{})
				},
				"IndexAdd": func(x ...*tensor.Tensor) *tensor.Tensor {
					return x[0].IndexAdd(0, tensor.FromOn(on, []int{2, 0, 2}), x[1])
				},
				"Linear": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].LinearReLU(x[2], x[1]) },
				"Mean":   func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].Mul(x[1]).Mean(0) },
				"MatMul": func(x ...*tensor.Tensor) *tensor.Tensor { return x[0].MatMul(x[2]).MatMul(x[1]) },
			} {
				all := tensor.VMap(f, x, v, w)
				for i := range 5 {
					if got, want := elementBits(all.Row(i)), elementBits(f(x.Row(i), v.Row(i), w.Row(i))); !slices.Equal(got, want) {
						t.Errorf("%v: row %d of %s is %#x, want %#x", dt, i, name, got, want)
					}
				}
			}
			if got, want := elementBits(x.Linear(w.Row(0), v.Row(0))), elementBits(x.MatMul(w.Row(0)).Add(v.Row(0))); !slices.Equal(got, want) {
				t.Errorf("%v: Linear is %#x, want %#x", dt, got, want)
			}
		}
	})
}

// What Fuse defines is rounded once, and Sum and Mean have the bits of the operations one by one. A constant that the
// device computes is rounded like one that the program knows.
func TestHalfFused(t *testing.T) {
	gate := tensor.Fuse("gate", 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(kernel.Tanh(x[0]), x[1]) })
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, dt := range []device.DType{tensor.Float16, tensor.BFloat16} {
			x, y := random(r, dt, []int{5, 300}, op.Interval{Lo: -2, Hi: 2}).tensor(on), random(r, dt, []int{300}, op.Interval{Lo: -2, Hi: 2}).tensor(on)
			of := gate.Of(x, y)
			c := tensor.FromOn(on, []float64{0.1}).ItemF64()
			for name, pair := range map[string][2]*tensor.Tensor{
				"Of":             {of, gate.Of(x.As(tensor.Float32), y.As(tensor.Float32)).As(dt)},
				"Sum":            {gate.Sum([]int{1}, x, y), of.Sum(1)},
				"Sum of columns": {gate.Sum([]int{0}, x, y), of.Sum(0)},
				"Mean":           {gate.Mean([]int{1}, x, y), of.Mean(1)},
				"MulF64":         {x.MulF64(c), x.MulScalar(0.1)},
				"MulScalar":      {x.MulScalar(0.1), x.Mul(tensor.On(on).As(dt).Scalar(0.1))},
				"AddScaled":      {x.AddScaled(y, 0.1), x.As(tensor.Float32).AddScaled(y.As(tensor.Float32), tensor.Scalar(0.1).As(dt).Item()).As(dt)},
			} {
				if got, want := elementBits(pair[0]), elementBits(pair[1]); pair[0].DType() != dt || !slices.Equal(got, want) {
					t.Errorf("%v: %s is %v, want %v", dt, name, pair[0], pair[1])
				}
			}
			in := []*tensor.Tensor{x.Track(), y.Track()}
			one := tensor.Grad(gate.Sum(nil, in...), in...)
			for i, want := range tensor.Grad(gate.Of(in...).Sum(), in...) {
				if !slices.Equal(elementBits(one[i]), elementBits(want)) {
					t.Errorf("%v: gradient %d of the sum is %v, want %v", dt, i, one[i], want)
				}
			}
		}
	})
}

// What makes tensors makes them of all types, as float64 rounded once.
func TestStorageMakers(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		wide := tensor.On(on).As(tensor.Float64)
		for _, dt := range storageTypes {
			m := tensor.On(on).As(dt)
			for name, pair := range map[string][2]*tensor.Tensor{
				"Zeros": {m.Zeros(2, 3), wide.Zeros(2, 3)}, "Ones": {m.Ones(4), wide.Ones(4)}, "Full": {m.Full(7, 2), wide.Full(7, 2)},
				"Scalar": {m.Scalar(200), wide.Scalar(200)}, "Eye": {m.Eye(3), wide.Eye(3)}, "Arange": {m.Arange(0, 9, 0.7), wide.Arange(0, 9, 0.7)},
				"Linspace": {m.Linspace(0, 1, 7), wide.Linspace(0, 1, 7)},
			} {
				if want := pair[1].As(dt); pair[0].DType() != dt || !slices.Equal(elementBits(pair[0]), elementBits(want)) {
					t.Errorf("%v: %s is %v, want %v", dt, name, pair[0], want)
				}
			}
			if !dt.IsFloat() {
				continue
			}
			draws := func(m tensor.Maker) []*tensor.Tensor {
				tensor.Seed(5)
				return []*tensor.Tensor{m.Rand(300), m.Randn(300), m.Uniform(-3, 5, 300)}
			}
			got, want := draws(m), draws(tensor.On(on))
			for i := range got {
				if got[i].DType() != dt || !slices.Equal(elementBits(got[i]), elementBits(want[i].As(dt))) {
					t.Errorf("%v: draw %d is %v, want %v", dt, i, got[i], want[i])
				}
			}
		}
	})
}

// A model learns in bfloat16, with weights that are kept in float32.
func TestMasterWeights(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		x := random(r, tensor.BFloat16, []int{64, 3}, op.Interval{Lo: -1, Hi: 1}).tensor(on)
		y := x.MatMul(tensor.FromOn(on, []float32{1, -2, 0.5}).As(tensor.BFloat16))
		w := tensor.On(on).Zeros(3)
		for range 60 {
			w = w.Track()
			miss := x.MatMul(w.As(tensor.BFloat16)).Sub(y)
			g := tensor.Grad(miss.Square().Mean().As(tensor.Float32), w)[0]
			if g.DType() != tensor.Float32 {
				t.Fatalf("the gradient of the weights is %v", g.DType())
			}
			w = w.Detach().Sub(g.MulScalar(0.8))
		}
		for i, want := range []float64{1, -2, 0.5} {
			if got := w.At(i); math.Abs(got-want) > 0.02 {
				t.Errorf("weight %d is %v, want %v", i, got, want)
			}
		}
	})
}

// What small integers don't do, and numbers that they are not.
func TestStorageMistakes(t *testing.T) {
	e := engine.New(engine.Options{Workers: 1})
	defer e.Close()
	defer tensor.SetEngine(e)()
	i, u := tensor.Of([]int32{1, 2}), tensor.Of([]uint8{1, 255})
	h := tensor.From([]float32{1, 2}).As(tensor.Float16)
	single, brain := h.As(tensor.Float32), h.As(tensor.BFloat16)
	enqueued := e.Stats().Enqueued
	for want, f := range map[string]func(){
		"Add: " + op.Unsupported(op.Numbers) + ": int32[2], int32[2]":                                 func() { i.Add(i) },
		"Sum: " + op.Unsupported(op.Numbers) + ": uint8[2]":                                           func() { u.Sum() },
		"MatMul: " + op.Unsupported(op.Numbers) + ": int32[1 2], int32[2]":                            func() { i.Reshape(1, 2).MatMul(i) },
		"LtScalar: " + op.MistakeRounds + ": 300 is no uint8: uint8[2]":                               func() { u.LtScalar(300) },
		"EqScalar: " + op.MistakeScalar + ": int32[2]":                                                func() { i.EqScalar(0.5) },
		"Full: " + op.MistakeRounds + ": -1 is no uint8: -1":                                          func() { tensor.On(device.CPU()).As(tensor.Uint8).Full(-1, 2) },
		"Add: " + op.MistakeDTypes + ": float16[2], float32[2]":                                       func() { h.Add(single) },
		"MatMul: " + op.MistakeMatMul + ": float16[1 2], float16[1 2]":                                func() { h.Reshape(1, 2).MatMul(h.Reshape(1, 2)) },
		"MatMul: " + op.MistakeDTypes + ": float16[1 2], bfloat16[2]":                                 func() { h.Reshape(1, 2).MatMul(brain) },
		"OfOn: " + op.MistakeLength + ": 2 elements, want 3: uint8[3]":                                func() { tensor.OfOn(device.CPU(), []uint8{1, 2}, 3) },
		"Of: " + op.MistakeLength + ": 2 elements, want 3: uint8[3]":                                  func() { tensor.Of([]uint8{1, 2}, 3) },
		"Take: " + op.MistakeIndices + ": float16[2], int32[2]":                                       func() { h.Take(0, i) },
		"Rand: " + op.MistakeType + " (it takes " + op.Floats.String() + ")":                          func() { tensor.On(device.CPU()).As(tensor.Uint8).Rand(2) },
		"Float32s: " + op.MistakeType + " (it takes float32: convert with As): float16[2]":            func() { h.Float32s() },
		"ItemInt: " + op.MistakeType + " (it takes int64 or bool or int32 or uint8: convert with As)": func() { h.Row(0).ItemInt() },
		"AvgPool2D: " + op.MistakeRank:                                                                func() { h.AvgPool2D(tensor.Pool{Window: tensor.Both(2)}) },
	} {
		if got := mistake(f); got == nil || !strings.HasPrefix(got.Error(), "tensor: "+want) {
			t.Errorf("got  %v\nwant tensor: %s", got, want)
		}
		if n := e.Stats().Enqueued; n != enqueued {
			t.Errorf("%d operations were enqueued before the mistake %s", n-enqueued, want)
			enqueued = n
		}
	}
	// These they do.
	if got := u.GtScalar(254).Bools(); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("u > 254 is %v", got)
	}
	if got := tensor.SliceOf[int32](i.Maximum(i.Slice(0, 1, 2))); !slices.Equal(got, []int32{2, 2}) {
		t.Errorf("the maximum is %v", got)
	}
	if got := u.ArgMax().ItemInt(); got != 1 {
		t.Errorf("the place of the greatest is %d", got)
	}
	if got := tensor.SliceOf[uint8](u.Sort(0, tensor.Descending)); !slices.Equal(got, []uint8{255, 1}) {
		t.Errorf("sorted: %v", got)
	}
}
