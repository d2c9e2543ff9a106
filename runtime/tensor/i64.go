package tensor

import (
	"encoding/json"
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// An I64 is an int64 that may not have been computed yet: what ItemInt returns, without the wait. It is for indices
// that the device computes:
//
//	token := scores.ArgMax().I64()
//	x := embedding.RowI64(token) // as embedding.Row(int(token.ItemInt())), and returns at once
//
// Its arithmetic wraps around, as Go's does. An I64 is on the device of the tensor that it comes from, and moves to
// the device of the tensor that it is used with. [ConstInt] makes an I64 of a known number; the zero I64 is 0. If
// the tensor fails, so does everything that is computed from the I64, and ItemInt panics.
type I64 struct {
	t *Tensor // untracked, int64, without axes; nil if the number is known: v
	v int64
	_ [0]func() // not comparable: == would compare handles
}

// ConstInt returns v as an I64.
//
//asyncgen:api pure
func ConstInt[T int | int64](v T) I64 { return I64{v: int64(v)} }

// ConstInts returns vs as numbers, in a slice of their own. It has the same length and capacity, and the same numbers
// behind the length.
//
//asyncgen:api pure
func ConstInts[T int | int64](vs []T) []I64 {
	xs := make([]I64, cap(vs))
	for i, v := range vs[:cap(vs)] {
		xs[i] = ConstInt(v)
	}
	return xs[:len(vs)]
}

// FromI64 is [From] of numbers that may not have been computed yet: it returns an int64 tensor on the default device,
// and panics as From does. If one of the numbers fails, so does the tensor.
//
//asyncgen:api op
//go:noinline
func FromI64(xs []I64, shape ...int) *Tensor {
	s, m := shapeOf("From", make([]struct{}, len(xs)), Int64, shape)
	if m != nil {
		panic(m)
	}
	dev := device.Device{}.Or()
	var parts []*Tensor
	defer func() { letGo(parts...) }()
	var known []int64 // that come next
	flush := func() {
		if len(known) > 0 {
			parts, known = append(parts, upload(dev, known, device.Shape{len(known)})), nil
		}
	}
	for _, x := range xs {
		if v, ok := x.there(); ok {
			known = append(known, v)
			continue
		}
		flush()
		parts = append(parts, x.t.near(dev))
	}
	if len(parts) == 0 { // all are known
		return from("From", device.Device{}, known, s)
	}
	flush()
	return joinWhole(dev, s, 1, parts)
}

// there returns the number if it is known, or if it has been computed where the program can look at it.
func (x I64) there() (v int64, ok bool) {
	switch {
	case x.t == nil:
		return x.v, true
	case x.t.Ready() && x.t.storage.Device().Caps().HostMemory && x.t.storage.Err() == nil:
		return int64(x.t.element(x.t.off)), true
	}
	return 0, false
}

// I64 returns what ItemInt returns, as a number that may not have been computed yet. It panics, as ItemInt does, if
// t has a floating-point type, or unless it has exactly one element.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) I64() I64 {
	t.whole("ItemInt")
	t.single("ItemInt")
	x := structural(op.Reshape, op.Attr{Shape: device.Shape{}}, operands{t}, false)
	if x.dtype == Int64 {
		return I64{t: x}
	}
	defer x.letGo()
	return I64{t: structural(op.As, op.Attr{DType: Int64}, operands{x}, false)}
}

// ItemInt returns the number. It waits if it has not been computed yet.
//
//asyncgen:api read
//go:noinline
func (x I64) ItemInt() int64 {
	if x.t == nil {
		return x.v
	}
	return int64(x.t.item("ItemInt"))
}

// Ready reports whether ItemInt would return, or panic, without waiting. It never waits.
//
//asyncgen:api poll
func (x I64) Ready() bool { return x.t == nil || x.t.Ready() }

// Tensor returns the number as a tensor, as From([]int64{x}, shape...) does: on the default device, with one axis
// if no shape is given. It panics unless the shape has exactly one element.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Tensor(shape ...int) *Tensor {
	if x.t == nil {
		return from("From", device.Device{}, []int64{x.v}, shape)
	}
	s, m := shapeOf("From", []int64{0}, Int64, shape)
	if m != nil {
		panic(m)
	}
	t := x.t.near(device.Device{}.Or())
	defer t.letGo()
	return structural(op.Reshape, op.Attr{Shape: s}, operands{t}, false)
}

// Full returns an int64 tensor on the default device whose elements are all x, as FullInt(x.ItemInt(), shape...) does.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Full(shape ...int) *Tensor {
	if x.t == nil {
		return here().FullInt(x.v, shape...)
	}
	s := checked("FullInt", shape)
	t := x.t.near(device.Device{}.Or())
	defer t.letGo()
	return structural(op.BroadcastTo, op.Attr{Shape: s}, operands{t}, true)
}

// Format waits for the number and prints it as fmt prints an int64. If the number failed, Format prints the error.
//
//asyncgen:api print
//go:noinline
func (x I64) Format(s fmt.State, verb rune) {
	if x.t != nil {
		if err := x.t.Wait(); err != nil {
			x.t.Format(s, 'v')
			return
		}
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), x.ItemInt())
}

// MarshalJSON waits for the number and encodes it as an int64. It returns the error if the number failed.
//
//asyncgen:api read
//go:noinline
func (x I64) MarshalJSON() ([]byte, error) {
	if x.t != nil {
		if err := x.t.Wait(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(x.ItemInt())
}

// Add returns x + y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Add(y I64) I64 {
	return x.with(y, op.Add, func(x, y int64) int64 { return x + y })
}

// Sub returns x - y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Sub(y I64) I64 {
	return x.with(y, op.Sub, func(x, y int64) int64 { return x - y })
}

// Mul returns x * y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Mul(y I64) I64 {
	return x.with(y, op.Mul, func(x, y int64) int64 { return x * y })
}

// Lt reports whether x < y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Lt(y I64) Cond { return x.compare(y, op.Lt, func(x, y int64) bool { return x < y }) }

// Le reports whether x <= y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Le(y I64) Cond { return x.compare(y, op.Le, func(x, y int64) bool { return x <= y }) }

// Gt reports whether x > y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Gt(y I64) Cond { return x.compare(y, op.Gt, func(x, y int64) bool { return x > y }) }

// Ge reports whether x >= y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Ge(y I64) Cond { return x.compare(y, op.Ge, func(x, y int64) bool { return x >= y }) }

// Eq reports whether x == y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Eq(y I64) Cond { return x.compare(y, op.Eq, func(x, y int64) bool { return x == y }) }

// Ne reports whether x != y.
//
//asyncgen:api op batch
//go:noinline
func (x I64) Ne(y I64) Cond { return x.compare(y, op.Ne, func(x, y int64) bool { return x != y }) }

// compare is like with, for comparisons.
func (x I64) compare(y I64, d *op.Def, f func(x, y int64) bool) Cond {
	if x.t == nil && y.t == nil {
		return Cond{v: f(x.v, y.v)}
	}
	a, b := x.meet(y)
	defer letGo(a, b)
	return Cond{t: elementwise(d, [2]float64{}, operands{a, b}, false)}
}

// with returns f(x, y) if both are known, and d of both otherwise.
func (x I64) with(y I64, d *op.Def, f func(x, y int64) int64) I64 {
	if x.t == nil && y.t == nil {
		return I64{v: f(x.v, y.v)}
	}
	a, b := x.meet(y)
	defer letGo(a, b)
	return I64{t: elementwise(d, [2]float64{}, operands{a, b}, false)}
}

// meet is like the meet of an F64.
func (x I64) meet(y I64) (a, b *Tensor) {
	at := x.t
	if at == nil {
		at = y.t
	}
	on := at.storage.Device()
	return x.on(on), y.on(on)
}

// on returns a handle of x as a tensor on dev.
func (x I64) on(dev device.Device) *Tensor {
	if x.t != nil {
		return x.t.near(dev)
	}
	return upload(dev, []int64{x.v}, device.Shape{})
}

// RowI64 is like [Tensor.Row], but the index may not have been computed yet. If the index turns out to be out of
// range, the result fails, unless it has no elements. If t is tracked, RowI64 waits for the index. The result is a
// view if the index is known or was waited for.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) RowI64(i I64) *Tensor {
	if i.t == nil {
		return t.Row(int(i.v))
	}
	if len(t.shape) == 0 {
		wrong("Row", op.MistakeRank, t)
	}
	if v, ok := t.settled(i); ok && v >= -int64(t.shape[0]) && v < int64(t.shape[0]) {
		return t.Row(int(v))
	}
	index := i.t.near(t.storage.Device())
	defer index.letGo()
	return structural(op.Gather, op.Attr{}, operands{t, index}, true)
}

// SliceI64 is like [Tensor.Slice] of n elements along axis, but the index of the first one may not have been
// computed yet. If some of the elements turn out to be out of range, the result fails. If t is tracked, SliceI64
// waits for the index. The result is a view if the index is known or was waited for.
//
//asyncgen:api op batch fails
//go:noinline
func (t *Tensor) SliceI64(axis int, from I64, n int) *Tensor {
	if from.t == nil {
		return t.Slice(axis, int(from.v), int(from.v)+n)
	}
	axis = t.axis("Slice", axis)
	if n < 0 {
		wrong("Slice", fmt.Sprintf("%s: %d elements", op.MistakeRange, n), t)
	}
	if v, ok := t.settled(from); ok && v >= 0 && v <= int64(t.shape[axis]-n) {
		return t.Slice(axis, int(v), int(v)+n)
	}
	dev := t.storage.Device()
	first := from.t.near(dev)
	defer first.letGo()
	index := structural(op.Reshape, op.Attr{Shape: device.Shape{1}}, operands{first}, false)
	defer func() { index.letGo() }()
	if n != 1 {
		steps := make([]int64, n)
		for i := range steps {
			steps[i] = int64(i)
		}
		one, rest := index, upload(dev, steps, device.Shape{n})
		defer letGo(one, rest)
		index = elementwise(op.Add, [2]float64{}, operands{one, rest}, false)
	}
	return structural(op.Gather, op.Attr{Axis: axis}, operands{t, index}, true)
}

// settled waits for i and returns it, if t is tracked. ok is false if t is not tracked, or if i has failed. A
// tracked tensor needs the number because of its gradient: that of a Row or Slice is put into zeros, whereas that
// of a Gather is added to zeros, which turns -0 into 0.
func (t *Tensor) settled(i I64) (v int64, ok bool) {
	if t.node == nil || i.t.Wait() != nil {
		return 0, false
	}
	return i.ItemInt(), true
}
