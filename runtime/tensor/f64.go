package tensor

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// An F64 is a float64 that may not have been computed yet: what Item returns, without the wait. Its arithmetic has
// the bits of Go's: each operation is done in float64 and rounded once.
//
//	alpha := rr.F64().Div(p.Dot(ap).F64())
//	x = x.Add(p.MulF64(alpha)) // as p.MulScalar(alpha.Item()), and returns at once
//
// An F64 is on the device of the tensor that it comes from, and moves to the device of the tensor that it is used
// with. Functions of package math whose results are not correctly rounded, such as Exp, are computed by the CPU.
// [Const] makes an F64 of a known number; the zero F64 is 0. Gradients end at an F64, as they do at Item. If the
// tensor fails, so does everything that is computed from the F64, and Item panics.
type F64 struct {
	t *Tensor // untracked, float64, without axes; nil if the number is known: v
	v float64
	_ [0]func() // not comparable: == would compare handles
}

// A Cond is a comparison of numbers that may not have been computed yet. The
// zero Cond is false.
type Cond struct {
	t *Tensor // untracked, bool, without axes; nil if the truth is known: v
	v bool
	_ [0]func()
}

// Const returns v as an F64.
//
//asyncgen:api pure
func Const(v float64) F64 { return F64{v: v} }

// F64 returns what Item returns, as a number that may not have been computed yet. It panics, as Item does, unless t
// has exactly one element.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) F64() F64 {
	t.single("Item")
	x := structural(op.Reshape, op.Attr{Shape: device.Shape{}}, operands{t}, false)
	if x.dtype == Float64 {
		return F64{t: x}
	}
	defer x.letGo()
	return F64{t: structural(op.As, op.Attr{DType: Float64}, operands{x}, false)}
}

// ItemF64 is like F64, but if the calling goroutine can compute t itself in about 50 µs, as [Tensor.Soon] does,
// ItemF64 computes it, and the number is known. It never waits, and does not panic if t has failed.
//
//	alpha := rr.Div(p.Dot(ap).ItemF64())
//	x = x.Add(p.MulF64(alpha)) // on the CPU like p.MulScalar(alpha.Item()); elsewhere it returns at once
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) ItemF64() F64 {
	t.single("Item")
	if t.dead == 0 && t.storage.Device().Caps().HostMemory && t.storage.Hasten() && t.storage.Err() == nil {
		return F64{v: number(t.element(t.off), t.dtype)}
	}
	return t.F64()
}

// Item returns the number. It waits if it has not been computed yet.
//
//asyncgen:api read
//go:noinline
func (x F64) Item() float64 {
	if x.t == nil {
		return x.v
	}
	return number(x.t.item("Item"), Float64)
}

// Known returns the number and true if x was made of a known number, as by [Const]. It returns false for the number
// of a tensor, even if that has been computed.
//
//asyncgen:api poll
func (x F64) Known() (v float64, ok bool) { return x.v, x.t == nil }

// Ready reports whether Item would return, or panic, without waiting. It never waits.
//
//asyncgen:api poll
func (x F64) Ready() bool { return x.t == nil || x.t.Ready() }

// As returns the number as a tensor without axes, rounded once to the given type. The tensor is on the device of x,
// or on the default device if x is [F64.Known].
//
//asyncgen:api op batch
//go:noinline
func (x F64) As(dtype DType) *Tensor {
	if !op.All.Has(dtype) {
		wrong("As", op.MistakeType)
	}
	dev := device.Device{}.Or()
	if x.t != nil {
		dev = x.t.storage.Device()
	}
	t := x.on(dev)
	if dtype == Float64 {
		return t
	}
	defer t.letGo()
	return structural(op.As, op.Attr{DType: dtype}, operands{t}, false)
}

// Full returns a float32 tensor on the default device whose elements are all x, as Full(x.Item(), shape...) does.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Full(shape ...int) *Tensor {
	s := checked("Full", shape)
	if x.t == nil {
		return filled(x.v, s, Float32, device.Device{}.Or())
	}
	t := x.on(device.Device{}.Or())
	defer t.letGo()
	one := structural(op.As, op.Attr{DType: Float32}, operands{t}, false)
	defer one.letGo()
	return structural(op.BroadcastTo, op.Attr{Shape: s}, operands{one}, true)
}

// Format waits for the number and prints it as fmt prints a float64. If the number failed, Format prints the error.
//
//asyncgen:api print
//go:noinline
func (x F64) Format(s fmt.State, verb rune) {
	if x.t != nil {
		if err := x.t.Wait(); err != nil {
			x.t.Format(s, 'v')
			return
		}
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), x.Item())
}

// MarshalJSON waits for the number and encodes it as a float64. It returns the error if the number failed.
//
//asyncgen:api read
//go:noinline
func (x F64) MarshalJSON() ([]byte, error) {
	if x.t != nil {
		if err := x.t.Wait(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(x.Item())
}

// Add returns x + y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Add(y F64) F64 {
	return x.with(y, op.Add, op.AddScalar, func(x, y float64) float64 { return x + y })
}

// Sub returns x - y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Sub(y F64) F64 {
	return x.with(y, op.Sub, op.SubScalar, func(x, y float64) float64 { return x - y })
}

// Mul returns x * y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Mul(y F64) F64 {
	return x.with(y, op.Mul, op.MulScalar, func(x, y float64) float64 { return x * y })
}

// Div returns x / y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Div(y F64) F64 {
	return x.with(y, op.Div, op.DivScalar, func(x, y float64) float64 { return x / y })
}

// Max returns max(x, y), the builtin function: NaN if either is.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Max(y F64) F64 {
	return x.with(y, op.Maximum, nil, func(x, y float64) float64 { return max(x, y) })
}

// Min returns min(x, y), the builtin function: NaN if either is.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Min(y F64) F64 {
	return x.with(y, op.Minimum, nil, func(x, y float64) float64 { return min(x, y) })
}

// MathMax returns math.Max(x, y), which is +Inf if either is, also with NaN.
//
//asyncgen:api op batch
//go:noinline
func (x F64) MathMax(y F64) F64 { return x.with(y, op.MathMax, nil, math.Max) }

// MathMin returns math.Min(x, y), which is -Inf if either is, also with NaN.
//
//asyncgen:api op batch
//go:noinline
func (x F64) MathMin(y F64) F64 { return x.with(y, op.MathMin, nil, math.Min) }

// Neg returns -x.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Neg() F64 { return x.apply(op.Neg, func(x float64) float64 { return -x }) }

// Abs returns math.Abs(x).
//
//asyncgen:api op batch
//go:noinline
func (x F64) Abs() F64 { return x.apply(op.Abs, math.Abs) }

// Sqrt returns math.Sqrt(x).
//
//asyncgen:api op batch
//go:noinline
func (x F64) Sqrt() F64 { return x.apply(op.Sqrt, math.Sqrt) }

// Floor returns math.Floor(x).
//
//asyncgen:api op batch
//go:noinline
func (x F64) Floor() F64 { return x.apply(op.Floor, math.Floor) }

// Ceil returns math.Ceil(x).
//
//asyncgen:api op batch
//go:noinline
func (x F64) Ceil() F64 { return x.apply(op.Ceil, math.Ceil) }

// RoundToEven returns math.RoundToEven(x).
//
//asyncgen:api op batch
//go:noinline
func (x F64) RoundToEven() F64 { return x.apply(op.Round, math.RoundToEven) }

// Float32 returns float64(float32(x)): x rounded to a float32.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Float32() F64 {
	if x.t == nil {
		return F64{v: float64(float32(x.v))}
	}
	rounded := x.As(Float32)
	defer rounded.letGo()
	return rounded.F64()
}

// Lt reports whether x < y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Lt(y F64) Cond { return x.compare(y, op.Lt, func(x, y float64) bool { return x < y }) }

// Le reports whether x <= y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Le(y F64) Cond { return x.compare(y, op.Le, func(x, y float64) bool { return x <= y }) }

// Gt reports whether x > y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Gt(y F64) Cond { return x.compare(y, op.Gt, func(x, y float64) bool { return x > y }) }

// Ge reports whether x >= y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Ge(y F64) Cond { return x.compare(y, op.Ge, func(x, y float64) bool { return x >= y }) }

// Eq reports whether x == y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Eq(y F64) Cond { return x.compare(y, op.Eq, func(x, y float64) bool { return x == y }) }

// Ne reports whether x != y.
//
//asyncgen:api op batch
//go:noinline
func (x F64) Ne(y F64) Cond { return x.compare(y, op.Ne, func(x, y float64) bool { return x != y }) }

// And reports whether c and d are both true. Unlike &&, it uses d even if c is false: if d fails, so does the result.
//
//asyncgen:api op batch
//go:noinline
func (c Cond) And(d Cond) Cond {
	if c.t == nil && d.t == nil {
		return Cond{v: c.v && d.v}
	}
	a, b := c.meet(d)
	defer letGo(a, b)
	return Cond{t: elementwise(op.And, [2]float64{}, operands{a, b}, false)}
}

// Or reports whether c or d is true. Unlike ||, it uses d even if c is true: if d fails, so does the result.
//
//asyncgen:api op batch
//go:noinline
func (c Cond) Or(d Cond) Cond {
	if c.t == nil && d.t == nil {
		return Cond{v: c.v || d.v}
	}
	a, b := c.meet(d)
	defer letGo(a, b)
	return Cond{t: elementwise(op.Or, [2]float64{}, operands{a, b}, false)}
}

// Not reports whether c is false.
//
//asyncgen:api op batch
//go:noinline
func (c Cond) Not() Cond {
	if c.t == nil {
		return Cond{v: !c.v}
	}
	return Cond{t: elementwise(op.Not, [2]float64{}, operands{c.t}, false)}
}

// I64 returns 1 if c is true, and 0 otherwise.
//
//asyncgen:api op batch
//go:noinline
func (c Cond) I64() I64 {
	switch {
	case c.t != nil:
		return I64{t: structural(op.As, op.Attr{DType: Int64}, operands{c.t}, false)}
	case c.v:
		return ConstInt(1)
	}
	return I64{}
}

// Item returns whether c is true. It waits if that has not been computed yet.
//
//asyncgen:api read
//go:noinline
func (c Cond) Item() bool {
	if c.t == nil {
		return c.v
	}
	return c.t.item("Item") != 0
}

// ChooseF64 returns x if c is true, and y otherwise.
//
//asyncgen:api op batch
//go:noinline
func (c Cond) ChooseF64(x, y F64) F64 {
	if c.t == nil {
		if c.v {
			return x
		}
		return y
	}
	on := c.t.storage.Device()
	a, b := x.on(on), y.on(on)
	defer letGo(a, b)
	return F64{t: elementwise(op.Where, [2]float64{}, operands{c.t, a, b}, false)}
}

// Choose returns x if c is true, and y otherwise, with broadcasting as in [Where]. Gradients go to both; that of
// the tensor not chosen is 0.
//
//asyncgen:api op batch
//go:noinline
func (c Cond) Choose(x, y *Tensor) *Tensor {
	if x == nil || y == nil {
		wrong("Choose", op.MistakeNil)
	}
	cond := c.on(x.storage.Device())
	defer cond.letGo()
	return elementwise(op.Where, [2]float64{}, operands{cond, x, y}, true)
}

// math returns f of x, and of y if f takes two numbers. It is computed by the CPU, wherever x is, because only the
// host's package math has its bits.
func (x F64) math(f kernel.MathFunc, y F64) F64 {
	if x.t == nil && y.t == nil {
		return F64{v: f.Call(x.v, y.v)}
	}
	cpu := device.CPU()
	in := operands{x.on(cpu)}
	if f.Arity() == 2 {
		in[1] = y.on(cpu)
	}
	defer letGo(in[:]...)
	return F64{t: structural(op.HostMath, op.Attr{Func: f}, in, false)}
}

// apply returns f(x) if x is known, and d of x otherwise.
func (x F64) apply(d *op.Def, f func(float64) float64) F64 {
	if x.t == nil {
		return F64{v: f(x.v)}
	}
	return F64{t: elementwise(d, [2]float64{}, operands{x.t}, false)}
}

// with returns f(x, y) if both are known, and d of both otherwise. If only y is known, it uses scalar, d with a
// constant, unless scalar is nil.
func (x F64) with(y F64, d, scalar *op.Def, f func(x, y float64) float64) F64 {
	switch {
	case x.t == nil && y.t == nil:
		return F64{v: f(x.v, y.v)}
	case y.t == nil && scalar != nil:
		return F64{t: elementwise(scalar, [2]float64{y.v}, operands{x.t}, false)}
	}
	a, b := x.meet(y)
	defer letGo(a, b)
	return F64{t: elementwise(d, [2]float64{}, operands{a, b}, false)}
}

// compare is like with, for comparisons.
func (x F64) compare(y F64, d *op.Def, f func(x, y float64) bool) Cond {
	if x.t == nil && y.t == nil {
		return Cond{v: f(x.v, y.v)}
	}
	a, b := x.meet(y)
	defer letGo(a, b)
	return Cond{t: elementwise(d, [2]float64{}, operands{a, b}, false)}
}

// meet returns x and y as tensors on one device. At least one of them must be a tensor already. The device is that of
// x if x is a tensor, and otherwise that of y.
func (x F64) meet(y F64) (a, b *Tensor) {
	at := x.t
	if at == nil {
		at = y.t
	}
	on := at.storage.Device()
	return x.on(on), y.on(on)
}

// meet is like the meet of an F64.
func (c Cond) meet(d Cond) (a, b *Tensor) {
	at := c.t
	if at == nil {
		at = d.t
	}
	on := at.storage.Device()
	return c.on(on), d.on(on)
}

// on returns a handle of x as a tensor on dev.
func (x F64) on(dev device.Device) *Tensor {
	if x.t != nil {
		return x.t.near(dev)
	}
	return filled(x.v, nil, Float64, dev)
}

// on returns a handle of c as a tensor on dev.
func (c Cond) on(dev device.Device) *Tensor {
	if c.t != nil {
		return c.t.near(dev)
	}
	truth := 0.0
	if c.v {
		truth = 1
	}
	return filled(truth, nil, Bool, dev)
}

// near returns t as an operand for an operation on dev: another handle if t is on dev, and a copy on dev otherwise.
func (t *Tensor) near(dev device.Device) *Tensor {
	if from := t.storage.Device(); from.Unscoped() != dev.Unscoped() {
		return structural(op.To, op.Attr{Device: dev.Unscoped().Within(from), Origin: from}, operands{t}, false)
	}
	return t.same("F64")
}

// withF64 enqueues d, which has one constant, with c as the constant. name is the name of this form of d, such as
// MulF64. Mistakes have the texts of d, because the program may have been written with d. If the operands are not
// floating-point, the constant must be an integer: then withF64 waits for c.
func withF64(d *op.Def, name string, c F64, in operands) *Tensor {
	if slices.Contains(in[:d.Tensors], nil) {
		wrong(d.Name, op.MistakeNil)
	}
	if dt := in[d.Tensors-1].dtype; c.t == nil || !dt.IsFloat() {
		return elementwise(d, [2]float64{c.Item()}, in, true)
	}
	match(d, in[:d.Tensors])
	x := c.t.near(in[0].storage.Device())
	defer func() { x.letGo() }()
	if dt := in[0].dtype; dt != Float64 {
		number := x
		x = structural(op.As, op.Attr{DType: dt}, operands{number}, false)
		number.letGo()
	}
	in[d.Tensors] = x
	return elementwise(d.Lifted(name), [2]float64{}, in, true)
}

// match panics if the operands of d, which is elementwise, differ in element type or device, or can't be broadcast.
func match(d *op.Def, in []*Tensor) {
	first := in[0]
	shape, dev := first.shape, first.storage.Device()
	for _, x := range in[1:] {
		if x.dtype != first.dtype {
			wrong(d.Name, op.MistakeDTypes, in...)
		}
		same := true
		if dev, same = device.Join(dev, x.storage.Device()); !same {
			wrong(d.Name, op.MistakeDevices, in...)
		}
		ok := true
		if shape, ok = op.Broadcast(shape, x.shape); !ok {
			wrong(d.Name, op.MistakeBroadcast, in...)
		}
	}
}
