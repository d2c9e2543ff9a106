package tensor

import (
	"fmt"
	"math"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// Draws that are made of uniform numbers: events, orders, choices.

// Dropout returns t with each element replaced by 0 with probability p, and the others divided by 1-p, so that the
// expectation stays (Srivastava and others 2014). It draws one number for each element from the generator. The
// gradient passes where the element stayed, times 1/(1-p). In a [VMap], all rows lose the same elements. Dropout panics
// unless t is a tensor of floats and 0 <= p <= 1.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Dropout(t *Tensor, p float64) *Tensor { return g.dropout(t, p) }

// Dropout is [Generator.Dropout] with the default generator.
//
//asyncgen:api draw none
//go:noinline
func (t *Tensor) Dropout(p float64) *Tensor { return defaultGenerator.dropout(t, p) }

func (g *Generator) dropout(t *Tensor, p float64) *Tensor {
	if t == nil {
		wrong("Dropout", op.MistakeNil)
	}
	t.floats("Dropout")
	probability("Dropout", p)
	scale := 0.0
	if p < 1 {
		scale = 1 / (1 - p)
	}
	return t.inWide(func(t *Tensor) *Tensor {
		u := like(t).draw(g, "Dropout", op.Uniform, t.shape)
		defer u.letGo()
		return elementwise(op.Dropout, [2]float64{p, scale}, operands{t, u}, true)
	})
}

// Bernoulli returns ones with probability p and zeros otherwise, float32, on the default device. It panics unless
// 0 <= p <= 1.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Bernoulli(p float64, shape ...int) *Tensor { return here().events(g, p, shape) }

// Bernoulli returns ones with probability p and zeros otherwise (true and false if the Maker makes bool tensors),
// drawn from the default generator. It panics unless 0 <= p <= 1.
//
//asyncgen:api draw none
//go:noinline
func (m Maker) Bernoulli(p float64, shape ...int) *Tensor {
	return m.events(defaultGenerator, p, shape)
}

// Bernoulli returns ones with probability p and zeros otherwise, float32, on the default device, drawn from the
// default generator. It panics unless 0 <= p <= 1.
//
//asyncgen:api draw none
//go:noinline
func Bernoulli(p float64, shape ...int) *Tensor { return here().events(defaultGenerator, p, shape) }

func (m Maker) events(g *Generator, p float64, shape []int) *Tensor {
	probability("Bernoulli", p)
	u := Maker{m.dev, Float32}.draw(g, "Bernoulli", op.Uniform, shape)
	defer u.letGo()
	return m.convert(elementwise(op.LtScalar, [2]float64{p}, operands{u}, false))
}

func probability(name string, p float64) {
	if !(p >= 0 && p <= 1) {
		panic(&Mistake{Op: name, Text: fmt.Sprintf("%s: %v", op.MistakeProbability, p)})
	}
}

// Permutation returns the integers from 0 to n-1 in random order, int64, on the default device. It draws n numbers
// from the generator and sorts them.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Permutation(n int) *Tensor { return here().permutation(g, n) }

// Permutation returns the integers from 0 to n-1 in random order, int64, drawn from the default generator.
//
//asyncgen:api draw none
//go:noinline
func (m Maker) Permutation(n int) *Tensor { return m.permutation(defaultGenerator, n) }

// Permutation returns the integers from 0 to n-1 in random order, int64, on the default device, drawn from the default
// generator.
//
//asyncgen:api draw none
//go:noinline
func Permutation(n int) *Tensor { return here().permutation(defaultGenerator, n) }

func (m Maker) permutation(g *Generator, n int) *Tensor {
	checked("Permutation", []int{n})
	keys := m.ints(g, 0, math.MaxInt64, []int{n}) // of n = 2^20, two are equal once in 2^24 calls
	defer keys.letGo()
	return keys.first(n, 0, Ascending)
}

// Multinomial draws n indices along the last axis of t, the weights: the probability of an index is its weight divided
// by the sum. The result, int64, has t's other axes and a last one of length n. Without replacement, no index is drawn
// twice, and indices with weight 0 come last. With replacement, it draws one number from the generator for each
// result, otherwise one for each weight.
//
// The weights have to be finite and not negative, with a sum above 0. Otherwise an index may be the length of the axis,
// so that selection by it fails. Multinomial panics unless t is a tensor of floats with an axis, and n is from 0 to the
// length of the axis, or any number not below 0 with replacement.
//
//asyncgen:api draw
//go:noinline
func (g *Generator) Multinomial(t *Tensor, n int, replacement bool) *Tensor {
	return g.multinomial(t, n, replacement)
}

// Multinomial is [Generator.Multinomial] with the default generator.
//
//asyncgen:api draw none
//go:noinline
func (t *Tensor) Multinomial(n int, replacement bool) *Tensor {
	return defaultGenerator.multinomial(t, n, replacement)
}

func (g *Generator) multinomial(t *Tensor, n int, replacement bool) *Tensor {
	if t == nil {
		wrong("Multinomial", op.MistakeNil)
	}
	t.floats("Multinomial")
	last := len(t.shape) - 1
	if last < 0 {
		wrong("Multinomial", op.MistakeRank, t)
	}
	k := t.shape[last]
	if n < 0 || n > k && !replacement || n > 0 && k == 0 {
		wrong("Multinomial", fmt.Sprintf("%s: %d of %d", op.MistakeRange, n, k), t)
	}
	if t.dtype.IsStorage() { // whose numbers from [0, 1) may be rounded to 1
		t = t.widened()
		defer t.letGo()
	}
	if !replacement {
		// Exponential waiting times with the weights as rates: the first n come in the order in which they would be
		// drawn (Efraimidis and Spirakis 2006).
		u := like(t).draw(g, "Multinomial", op.Uniform, t.shape)
		times := elementwise(op.Waiting, [2]float64{}, operands{u, t}, false)
		defer letGo(u, times)
		return times.first(n, last, Ascending)
	}
	shape := append(t.Shape()[:last], n)
	u := like(t).draw(g, "Multinomial", op.Uniform, shape)
	defer u.letGo()
	if n == 0 {
		return create(op.Fill, op.Attr{Shape: shape, DType: Int64}, t.storage.Device())
	}
	sums := structural(op.CumSum, op.Attr{Axis: last}, operands{t}, false)
	total := structural(op.Slice, op.Attr{Axis: last, From: k - 1, To: k}, operands{sums}, false)
	// u is 2^-p or more below 1, where p is the precision, so that u*total rounds to less than total.
	at := elementwise(op.Mul, [2]float64{}, operands{u, total}, false)
	defer letGo(sums, total, at)
	return sums.searchSorted("Multinomial", at, true)
}

// like makes tensors of t's element type on t's device.
func like(t *Tensor) Maker { return Maker{t.storage.Device(), t.dtype} }

// ZerosLike returns a tensor of zeros with the shape, element type and device of t.
//
//asyncgen:api host
//go:noinline
func ZerosLike(t *Tensor) *Tensor { return likeWith("ZerosLike", t, 0) }

// OnesLike returns a tensor of ones with the shape, element type and device of t.
//
//asyncgen:api host
//go:noinline
func OnesLike(t *Tensor) *Tensor { return likeWith("OnesLike", t, 1) }

// FullLike returns a tensor whose elements are all v, with the shape, element type and device of t. See [Maker.Full]
// about int64.
//
//asyncgen:api host
//go:noinline
func FullLike(t *Tensor, v float64) *Tensor { return likeWith("FullLike", t, v) }

func likeWith(name string, t *Tensor, v float64) *Tensor {
	if t == nil {
		wrong(name, op.MistakeNil)
	}
	return like(t).fill(name, v, t.shape)
}

// RandLike returns numbers from [0, 1) with the shape, element type and device of t, drawn from the default generator.
// It panics unless t is a tensor of floats.
//
//asyncgen:api draw none
//go:noinline
func RandLike(t *Tensor) *Tensor { return drawnLike("RandLike", t, op.Uniform) }

// RandnLike returns numbers from the normal distribution with mean 0 and variance 1, with the shape, element type and
// device of t, drawn from the default generator. It panics unless t is a tensor of floats.
//
//asyncgen:api draw none
//go:noinline
func RandnLike(t *Tensor) *Tensor { return drawnLike("RandnLike", t, op.Normal) }

func drawnLike(name string, t *Tensor, d *op.Def) *Tensor {
	if t == nil {
		wrong(name, op.MistakeNil)
	}
	t.floats(name)
	return like(t).draw(defaultGenerator, name, d, t.shape)
}

// SearchSorted returns, for each element v of values, the place along t's last axis where v can be
// inserted so that the axis stays sorted: before the elements that are equal to v or, if right is set,
// behind them. t has to be sorted along that axis in ascending order, with NaNs last, as [Tensor.Sort]
// leaves it. The result is int64 and has the shape of values. SearchSorted panics if the element types
// of t and values differ. It also panics if their shapes differ in any axis but the last; if t has only
// one axis, values may have any shape.
//
//asyncgen:api op batch
//go:noinline
func (t *Tensor) SearchSorted(values *Tensor, right bool) *Tensor {
	if values == nil {
		wrong("SearchSorted", op.MistakeNil, t)
	}
	return t.searchSorted("SearchSorted", values, right)
}

func (t *Tensor) searchSorted(name string, values *Tensor, right bool) *Tensor {
	t.isRow(name)
	values.isRow(name)
	if t.dtype != values.dtype {
		wrong(name, op.MistakeDTypes, t, values)
	}
	if !op.Ordered.Has(t.dtype) {
		wrong(name, op.Unsupported(op.Ordered), t, values)
	}
	last := len(t.shape) - 1
	if last < 0 {
		wrong(name, op.MistakeRank, t)
	}
	if last == 0 && len(values.shape) != 1 {
		flat := values.reshape(device.Shape{values.size})
		found := t.searchSorted(name, flat, right)
		defer letGo(flat, found)
		return found.reshape(values.Shape())
	}
	if len(values.shape) != len(t.shape) || !values.shape[:last].Equal(t.shape[:last]) {
		wrong(name, op.MistakeBroadcast+fmt.Sprintf(": lengths other than that of axis %d differ", last), t, values)
	}
	n := t.shape[last]
	before := op.Before
	if right {
		before = op.NotAfter
	}
	// In each step, at counts elements that are known to be before v, and the steps halve.
	at := create(op.Fill, op.Attr{Shape: values.shape, DType: Int64}, values.storage.Device())
	if n == 0 {
		return at
	}
	step := 1
	for step <= n/2 {
		step *= 2
	}
	for ; step > 0; step /= 2 {
		next := elementwise(op.Clamped, [2]float64{float64(step), float64(n)}, operands{at}, false)
		place := elementwise(op.SubScalar, [2]float64{1}, operands{next}, false)
		there := structural(op.Along, op.Attr{Axis: last}, operands{t, place}, false)
		is := elementwise(before, [2]float64{}, operands{there, values}, false)
		further := elementwise(op.Where, [2]float64{}, operands{is, next, at}, false)
		letGo(at, next, place, there, is)
		at = further
	}
	return at
}
