package tensor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// f64Edges are numbers at which arithmetic has its edge cases.
var f64Edges = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1.0 / 3, 2.5, -0.5, 1e308, -1e308, 1e-308, 5e-324, 1 << 53, 1<<53 + 2,
	math.Pi, 16777217, 3.4e38, 1e-46, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64}

// A pair is a number twice: as an F64, and as the host computes it.
type pair struct {
	later tensor.F64
	now   float64
}

// leaf returns a random number, known or from a tensor of any kind.
func leaf(r *rand.Rand, on []device.Device) pair {
	v := r.NormFloat64() * math.Pow(10, float64(r.IntN(9)-4))
	if r.IntN(2) == 0 {
		v = f64Edges[r.IntN(len(f64Edges))]
	}
	dev := on[r.IntN(len(on))]
	number := (*tensor.Tensor).F64
	if r.IntN(2) == 0 {
		number = (*tensor.Tensor).ItemF64
	}
	switch r.IntN(5) {
	case 0:
		return pair{tensor.Const(v), v}
	case 1:
		return pair{number(tensor.FromOn(dev, []float32{float32(v)})), float64(float32(v))}
	case 2:
		i := int64(r.Uint64())
		return pair{number(tensor.FromOn(dev, []int64{i}).Reshape(1, 1)), float64(i)}
	case 3:
		b := r.IntN(2)
		return pair{number(tensor.FromOn(dev, []bool{b == 1})), float64(b)}
	}
	return pair{number(tensor.FromOn(dev, []float64{7, v, 9}).Row(1)), v}
}

// product converts its result because the compiler may otherwise fuse a product with an addition.
func product(x, y float64) float64 { return float64(x * y) }

// tree returns a random expression of the given depth.
func tree(r *rand.Rand, on []device.Device, depth int) pair {
	if depth == 0 || r.IntN(8) == 0 {
		return leaf(r, on)
	}
	x := tree(r, on, depth-1)
	y := func() pair { return tree(r, on, depth-1) }
	switch r.IntN(20) {
	case 18, 19:
		m, z := mathMethods[r.IntN(len(mathMethods))], y()
		switch f := m.host.(type) {
		case func(float64) float64:
			return pair{m.later(x.later, z.later), f(x.now)}
		case func(float64, float64) float64:
			return pair{m.later(x.later, z.later), f(x.now, z.now)}
		}
	case 0, 1:
		y := y()
		return pair{x.later.Add(y.later), x.now + y.now}
	case 2, 3:
		y := y()
		return pair{x.later.Sub(y.later), x.now - y.now}
	case 4, 5:
		y := y()
		return pair{x.later.Mul(y.later), product(x.now, y.now)}
	case 6, 7:
		y := y()
		return pair{x.later.Div(y.later), x.now / y.now}
	case 8:
		y := y()
		return pair{x.later.Max(y.later), max(x.now, y.now)}
	case 9:
		y := y()
		return pair{x.later.Min(y.later), min(x.now, y.now)}
	case 10:
		y := y()
		return pair{x.later.MathMax(y.later), math.Max(x.now, y.now)}
	case 11:
		y := y()
		return pair{x.later.MathMin(y.later), math.Min(x.now, y.now)}
	case 12:
		return pair{x.later.Neg(), -x.now}
	case 13:
		return pair{x.later.Abs(), math.Abs(x.now)}
	case 14:
		return pair{x.later.Sqrt(), math.Sqrt(x.now)}
	case 15:
		switch r.IntN(3) {
		case 0:
			return pair{x.later.Floor(), math.Floor(x.now)}
		case 1:
			return pair{x.later.Ceil(), math.Ceil(x.now)}
		}
		return pair{x.later.RoundToEven(), math.RoundToEven(x.now)}
	case 16:
		return pair{x.later.Float32(), float64(float32(x.now))}
	}
	y1, c, now := y(), tensor.Cond{}, false
	switch r.IntN(7) {
	case 0:
		c, now = x.later.Lt(y1.later), x.now < y1.now
	case 1:
		c, now = x.later.Le(y1.later), x.now <= y1.now
	case 2:
		c, now = x.later.Gt(y1.later), x.now > y1.now
	case 3:
		c, now = x.later.Ge(y1.later), x.now >= y1.now
	case 4:
		c, now = x.later.Eq(y1.later), x.now == y1.now
	case 5:
		c, now = x.later.Ne(y1.later), x.now != y1.now
	}
	switch r.IntN(4) {
	case 0:
		c, now = c.Not(), !now
	case 1:
		c, now = c.And(y1.later.Eq(y1.later)), now && y1.now == y1.now
	case 2:
		c, now = c.Or(y1.later.Gt(tensor.Const(0))), now || y1.now > 0
	}
	if now {
		return pair{c.ChooseF64(x.later, y1.later), x.now}
	}
	return pair{c.ChooseF64(x.later, y1.later), y1.now}
}

func sameNumber(x, y float64) bool {
	return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y
}

// Random expressions of numbers from all devices have the bits of the host's arithmetic.
func TestF64Trees(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for i := range 150 {
			x := tree(r, []device.Device{on, on, device.CPU()}, 1+i%6)
			if got := x.later.Item(); !sameNumber(got, x.now) {
				t.Fatalf("expression %d is %v, the host has %v", i, got, x.now)
			}
		}
	})
}

// An operation with an F64 has the bits of the operation with the number as a constant.
func TestF64Operands(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		r := newRand(t)
		for _, o := range f64Ops {
			for _, dt := range []device.DType{tensor.Float32, tensor.Float64} {
				for i := range 2 * len(f64Edges) {
					c := f64Edges[i/2]
					var x []*tensor.Tensor
					for range o.def.Tensors {
						a := random(r, dt, []int{3, 4}, op.Interval{Lo: -2, Hi: 2})
						a.data[0], a.data[1] = math.NaN(), math.Copysign(0, -1)
						x = append(x, asView(r, a, on))
					}
					later := tensor.Const(c)
					if i%2 == 1 {
						from := []device.Device{on, device.CPU()}[r.IntN(2)]
						later = tensor.FromOn(from, []float64{c}).F64()
					}
					sameBits(t, fmt.Sprintf("%s of %v and %v", o.def.Name, dt, c), o.later(later, x...), o.call(c, x...))
				}
			}
			in := []array{random(r, tensor.Float64, []int{2, 2}, op.Interval{Lo: -2, Hi: 2}), random(r, tensor.Float64, []int{2}, op.Interval{Lo: -2, Hi: 2})}
			c := tensor.FromOn(on, []float64{1.5}).F64()
			if !o.def.Bool {
				checkGradient(t, r, on, o.def.Name, func(x ...*tensor.Tensor) *tensor.Tensor { return o.later(c, x...).Square() }, in[:o.def.Tensors]...)
			}
			x := tensor.On(on).As(tensor.Int64).Ones(2)
			if got, want := mistake(func() { o.later(c, x, x) }), mistake(func() { o.call(1.5, x, x) }); want == nil || got == nil || got.Error() != want.Error() {
				t.Errorf("%s of integers: %v, want %v", o.def.Name, got, want)
			}
		}
	})
}

// Conjugate gradients with and without waiting have the same bits.
func TestF64Solve(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		const n = 40
		g := tensor.NewGenerator(3)
		a := g.Randn(n, n).As(tensor.Float64).To(on)
		a = a.MatMul(a.T()).AddScaled(tensor.On(on).As(tensor.Float64).Eye(n), n)
		b := tensor.On(on).As(tensor.Float64).Ones(n)
		solve := func(later bool) (x, norm *tensor.Tensor) {
			x = b.MulScalar(0)
			r, p := b, b
			rs := r.Dot(r)
			for range 30 {
				ap := a.MatMul(p)
				next := rs
				if later {
					alpha := rs.F64().Div(p.Dot(ap).F64())
					x, r = x.Add(p.MulF64(alpha)), r.Sub(ap.MulF64(alpha))
					next = r.Dot(r)
					p = r.AddScaledF64(p, next.F64().Div(rs.F64()))
				} else {
					alpha := rs.Item() / p.Dot(ap).Item()
					x, r = x.Add(p.MulScalar(alpha)), r.Sub(ap.MulScalar(alpha))
					next = r.Dot(r)
					p = r.AddScaled(p, next.Item()/rs.Item())
				}
				rs = next
			}
			return x, rs
		}
		want, norm := solve(false)
		got, other := solve(true)
		sameBits(t, "x", got, want)
		sameBits(t, "the residual", other, norm)
		if residual := a.MatMul(got).Sub(b).Norm().Item(); !(residual < 1e-6) {
			t.Errorf("the residual is %v", residual)
		}
	})
}

// An F64 prints as a float64 does, and is not waited for before that.
func TestF64Format(t *testing.T) {
	for _, x := range []tensor.F64{tensor.Const(1.5), tensor.From([]float64{1.5}).F64()} {
		if got, want := fmt.Sprintf("%v %8.3f %+e %g", x, x, x, []tensor.F64{x}), fmt.Sprintf("%v %8.3f %+e %g", 1.5, 1.5, 1.5, []float64{1.5}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, err := json.Marshal(x); string(got) != "1.5" || err != nil {
			t.Errorf("as JSON %s, %v", got, err)
		}
		if !x.Ready() {
			t.Error("not ready after it was printed")
		}
		if got := x.As(tensor.Int64); got.ItemInt() != 1 || got.Rank() != 0 {
			t.Errorf("as an int64 %v", got)
		}
	}
	var zero tensor.F64
	if zero.Item() != 0 || zero.As(tensor.Float32).Item() != 0 || (tensor.Cond{}).Item() {
		t.Error("the zero F64 is not 0, or the zero Cond not false")
	}
	if m := mistake(func() { tensor.Zeros(2).F64() }); m == nil || m.Text != op.MistakeItem {
		t.Errorf("F64 of two elements: %v", m)
	}
	if m := mistake(func() { zero.As(99) }); m == nil || m.Text != op.MistakeType {
		t.Errorf("As of no type: %v", m)
	}
}

// A Cond chooses between tensors, even on another device.
func TestCondChoose(t *testing.T) {
	everywhere(t, func(t *testing.T, on device.Device) {
		x, y := tensor.FromOn(on, []float32{1, 2}), tensor.FromOn(on, []float32{3})
		for _, c := range []tensor.Cond{
			tensor.Const(2).Gt(tensor.Const(1)), tensor.From([]float64{2}).F64().Gt(tensor.Const(1)), tensor.FromOn(on, []float64{2}).F64().Gt(tensor.Const(1)),
		} {
			check(t, "true", c.Choose(x, y), array{tensor.Float32, []int{2}, []float64{1, 2}}, 0)
			check(t, "false", c.Not().Choose(x, y), array{tensor.Float32, []int{2}, []float64{3, 3}}, 0)
			if !c.Item() || c.Not().Item() || !c.Or(c.Not()).Item() || c.And(c.Not()).Item() {
				t.Error("Item, Not, Or or And")
			}
		}
		if m := mistake(func() { tensor.Cond{}.Choose(x, nil) }); m == nil || m.Text != op.MistakeNil {
			t.Errorf("Choose of nil: %v", m)
		}
	})
}

// A number belongs to the scope that it comes from, and so do results of operations with it.
func TestF64Scope(t *testing.T) {
	e := engine.New(engine.Options{Workers: 2})
	defer tensor.SetEngine(e)()
	for _, name := range []string{"cpu", "sim:0"} {
		plain, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		in := device.WithContext(ctx, plain)
		c := tensor.FromOn(in, []float64{2}).F64().Mul(tensor.Const(3))
		x := tensor.FromOn(plain, []float32{1, 2})
		y := x.MulF64(c)
		if got := y.Float32s(); got[0] != 6 || got[1] != 12 || y.Device().Scope() == nil || c.Sqrt().As(tensor.Float32).Device().Scope() == nil {
			t.Errorf("%v in %v", got, y.Device())
		}
		cancel()
		if err := x.AddF64(c.Exp()).Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the scope: %v", err)
		}
		if err := x.AddScalar(1).Wait(); err != nil {
			t.Errorf("what has nothing to do with it: %v", err)
		}
	}
	e.Close() // returns the cancelled operations once more
}

// A failure stays through arithmetic, and is raised where a value is used.
func TestF64Failure(t *testing.T) {
	e := engine.New(engine.Options{Workers: 2})
	defer tensor.SetEngine(e)()
	for _, number := range []func(*tensor.Tensor) tensor.F64{(*tensor.Tensor).F64, (*tensor.Tensor).ItemF64} {
		failsAsF64(t, number(tensor.From([]int64{1}).Div(tensor.From([]int64{0}))).Add(tensor.Const(1)).Sqrt())
	}
	e.Close() // returns the failures once more
}

func failsAsF64(t *testing.T, bad tensor.F64) {
	if got := fmt.Sprint(bad); !strings.HasPrefix(got, "<failed: ") {
		t.Errorf("prints %q", got)
	}
	if _, err := json.Marshal(bad); err == nil {
		t.Error("is JSON")
	}
	var failed *engine.OpError
	if err := tensor.Zeros(2).AddF64(bad).Wait(); !errors.As(err, &failed) {
		t.Errorf("what depends on it: %v", err)
	}
	func() {
		defer func() {
			if err, ok := recover().(error); !ok || !errors.As(err, &failed) {
				t.Errorf("Item panics with %v", err)
			}
		}()
		bad.Item()
	}()
}

// ItemF64 of a tensor of any type is known if computing it takes only a moment; otherwise it is F64.
func TestItemF64(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, on := range []device.Device{device.CPU(), sim} {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int64, tensor.Bool} {
			for i := range 3 {
				x := tensor.FromOn(on, []float64{0, 1, 1e9 / 3}).MulScalar(1).As(dtype)
				got, want := x.Row(i).ItemF64(), x.Row(i).Item()
				if v, ok := got.Known(); ok && on != sim {
					known++
				} else if ok || v != 0 {
					t.Errorf("on %v it is said to be %v", on, v)
				}
				if got.Item() != want {
					t.Errorf("%v: got %v, want %v", dtype, got, want)
				}
			}
		}
	}
	if known == 0 {
		t.Error("nothing is known on the CPU")
	}
	for _, x := range []*tensor.Tensor{tensor.Zeros(2), tensor.Zeros(0)} {
		want := mistake(func() { x.Item() })
		if m := mistake(func() { x.ItemF64() }); m == nil || m.Error() != want.Error() {
			t.Errorf("%v, want %v", m, want)
		}
	}
	dead := tensor.Ones(1)
	tensor.Dead(dead)
	if mistake(func() { dead.ItemF64() }) == nil || mistake(func() { dead.Soon() }) == nil {
		t.Error("a dead tensor can be used")
	}
}

// An operation with an F64 has the result of the operation with a constant, for integers too, or the same text of a
// mistake.
func TestF64FormsAsWithConstants(t *testing.T) {
	forms := []struct {
		name     string
		constant func(c float64, x, y *tensor.Tensor) *tensor.Tensor
		number   func(c tensor.F64, x, y *tensor.Tensor) *tensor.Tensor
	}{
		{"MulScalar", func(c float64, x, y *tensor.Tensor) *tensor.Tensor { return x.MulScalar(c) }, func(c tensor.F64, x, y *tensor.Tensor) *tensor.Tensor { return x.MulF64(c) }},
		{"DivScalar", func(c float64, x, y *tensor.Tensor) *tensor.Tensor { return x.DivScalar(c) }, func(c tensor.F64, x, y *tensor.Tensor) *tensor.Tensor { return x.DivF64(c) }},
		{"AddScaled", func(c float64, x, y *tensor.Tensor) *tensor.Tensor { return x.AddScaled(y, c) }, func(c tensor.F64, x, y *tensor.Tensor) *tensor.Tensor { return x.AddScaledF64(y, c) }},
	}
	tensors := []*tensor.Tensor{nil, tensor.From([]float32{1, 2}), tensor.From([]float64{1, 2, 3}), tensor.From([]float64{4, 5}), tensor.From([]int64{6, -7}),
		tensor.From([]bool{true, false}), tensor.FromOn(device.CPU(), []float64{8}), tensor.Zeros(3, 1)}
	outcome := func(f func() *tensor.Tensor) (text string) {
		defer func() {
			if p := recover(); p != nil {
				text = fmt.Sprint("panic: ", p)
			}
		}()
		y := f()
		return fmt.Sprint(y.DType(), y.Shape(), y)
	}
	made := 0
	for _, form := range forms {
		for i, x := range tensors {
			for j, y := range tensors {
				for _, c := range []float64{2, 0.5, -3, 0, math.Inf(1)} {
					number := tensor.From([]float64{c}).F64()
					want := outcome(func() *tensor.Tensor { return form.constant(c, x, y) })
					if got := outcome(func() *tensor.Tensor { return form.number(number, x, y) }); got != want {
						t.Errorf("%s of tensors %d and %d with %v: %s, want %s", form.name, i, j, c, got, want)
					}
					if !strings.HasPrefix(want, "panic: ") {
						made++
					}
				}
			}
		}
	}
	if made < 200 {
		t.Errorf("%d results", made)
	}
	vector := tensor.From([]float64{1, 2})
	want := outcome(func() *tensor.Tensor { return tensor.Scalar(vector.Item()) })
	if got := outcome(func() *tensor.Tensor { return vector.F64().As(tensor.Float64) }); got != want {
		t.Errorf("F64 of a vector: %s, want %s", got, want)
	}
}

// Full makes the tensors that the functions of that name make of the values, on any device.
func TestNumbersFull(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	bits := func(x *tensor.Tensor) (all []uint32) {
		for _, v := range x.Float32s() {
			all = append(all, math.Float32bits(v))
		}
		return all
	}
	for _, dev := range []device.Device{device.CPU(), sim} {
		for _, v := range []float64{0, math.Copysign(0, -1), 0.1, -1e300, 1e-300, math.Inf(-1), math.NaN(), 1 << 53} {
			x := tensor.From([]float64{v}).To(dev)
			for _, shape := range [][]int{nil, {1}, {1, 1}, {2, 3}, {0, 2}} {
				want := tensor.Full(v, shape...)
				for _, n := range []tensor.F64{x.F64(), tensor.Const(v)} {
					got := n.Full(shape...)
					if got.DType() != want.DType() || got.Device() != want.Device() || !slices.Equal(got.Shape(), want.Shape()) || !slices.Equal(bits(got), bits(want)) {
						t.Errorf("%v on %v, %v: %v of %v on %v, want %v", v, dev, shape, got, got.Shape(), got.Device(), want)
					}
				}
			}
		}
		for _, v := range []int64{0, -7, math.MaxInt64} {
			x := tensor.From([]int64{v}).To(dev)
			for _, shape := range [][]int{nil, {1}, {2, 3}, {0, 2}} {
				want := tensor.FullInt(v, shape...)
				for _, n := range []tensor.I64{x.I64(), tensor.ConstInt(v)} {
					if got := n.Full(shape...); got.Device() != want.Device() || !slices.Equal(got.Shape(), want.Shape()) || !slices.Equal(got.Int64s(), want.Int64s()) {
						t.Errorf("%v on %v, %v: %v, want %v", v, dev, shape, got, want)
					}
				}
			}
		}
	}
	for _, wrong := range []func(){func() { tensor.Ones(1).F64().Full(-1) }, func() { tensor.Const(1).Full(-1) }, func() { tensor.Zeros(1).As(tensor.Int64).I64().Full(2, -1) }} {
		func() {
			defer func() {
				if _, ok := recover().(*tensor.Mistake); !ok {
					t.Error("a negative dimension is no mistake")
				}
			}()
			wrong()
		}()
	}
}
