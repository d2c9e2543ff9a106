package opencltest

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type (
	unary  = func(*tensor.Tensor) *tensor.Tensor
	binary = func(x, y *tensor.Tensor) *tensor.Tensor
)

// A named function is a method; one that is inexact has functions in it that are not rounded correctly.
type named[F any] struct {
	name    string
	f       F
	inexact bool
}

var unaries = []named[unary]{
	{"Abs", (*tensor.Tensor).Abs, false}, {"Neg", (*tensor.Tensor).Neg, false}, {"Sign", (*tensor.Tensor).Sign, false},
	{"Square", (*tensor.Tensor).Square, false}, {"ReLU", (*tensor.Tensor).ReLU, false}, {"Reciprocal", (*tensor.Tensor).Reciprocal, false},
	{"Sqrt", (*tensor.Tensor).Sqrt, false}, {"Floor", (*tensor.Tensor).Floor, false}, {"Ceil", (*tensor.Tensor).Ceil, false}, {"Round", (*tensor.Tensor).Round, false},
	{"Exp", (*tensor.Tensor).Exp, true}, {"Log", (*tensor.Tensor).Log, true}, {"Log1p", (*tensor.Tensor).Log1p, true}, {"Expm1", (*tensor.Tensor).Expm1, true},
	{"Tanh", (*tensor.Tensor).Tanh, true}, {"Sigmoid", (*tensor.Tensor).Sigmoid, true}, {"GELU", (*tensor.Tensor).GELU, true}, {"SiLU", (*tensor.Tensor).SiLU, true},
	{"Sin", (*tensor.Tensor).Sin, true}, {"Cos", (*tensor.Tensor).Cos, true}, {"Erf", (*tensor.Tensor).Erf, true}, {"Norm", (*tensor.Tensor).Norm, false},
	{"Trunc", (*tensor.Tensor).Trunc, false}, {"Frac", (*tensor.Tensor).Frac, false}, {"HardSigmoid", (*tensor.Tensor).HardSigmoid, false},
	{"Rsqrt", (*tensor.Tensor).Rsqrt, true}, {"Exp2", (*tensor.Tensor).Exp2, true}, {"Log2", (*tensor.Tensor).Log2, true}, {"Log10", (*tensor.Tensor).Log10, true},
	{"Tan", (*tensor.Tensor).Tan, true}, {"Asin", (*tensor.Tensor).Asin, true}, {"Acos", (*tensor.Tensor).Acos, true}, {"Atan", (*tensor.Tensor).Atan, true},
	{"Sinh", (*tensor.Tensor).Sinh, true}, {"Cosh", (*tensor.Tensor).Cosh, true}, {"Asinh", (*tensor.Tensor).Asinh, true}, {"Acosh", (*tensor.Tensor).Acosh, true},
	{"Atanh", (*tensor.Tensor).Atanh, true}, {"Softplus", (*tensor.Tensor).Softplus, true},
	{"ELU", func(x *tensor.Tensor) *tensor.Tensor { return x.ELU(0.7) }, true}, {"LeakyReLU", func(x *tensor.Tensor) *tensor.Tensor { return x.LeakyReLU(0.1) }, false},
	{"Clamp", func(x *tensor.Tensor) *tensor.Tensor { return x.Clamp(-1, 2) }, false}, {"IsNaN", (*tensor.Tensor).IsNaN, false},
	{"IsInf", (*tensor.Tensor).IsInf, false}, {"IsFinite", (*tensor.Tensor).IsFinite, false},
}

var binaries = []named[binary]{
	{"Add", (*tensor.Tensor).Add, false}, {"Sub", (*tensor.Tensor).Sub, false}, {"Mul", (*tensor.Tensor).Mul, false}, {"Div", (*tensor.Tensor).Div, false},
	{"Maximum", (*tensor.Tensor).Maximum, false}, {"Minimum", (*tensor.Tensor).Minimum, false}, {"Pow", (*tensor.Tensor).Pow, true},
	{"AddScaled", func(x, y *tensor.Tensor) *tensor.Tensor { return x.AddScaled(y, -0.3) }, false},
	{"Fmod", (*tensor.Tensor).Fmod, false}, {"Remainder", (*tensor.Tensor).Remainder, false}, {"FloorDiv", (*tensor.Tensor).FloorDiv, false},
	{"Atan2", (*tensor.Tensor).Atan2, true}, {"Hypot", (*tensor.Tensor).Hypot, false}, {"LogAddExp", (*tensor.Tensor).LogAddExp, true},
	{"Lerp", func(x, y *tensor.Tensor) *tensor.Tensor { return x.Lerp(y, 0.3) }, false},
	{"IsClose", func(x, y *tensor.Tensor) *tensor.Tensor { return x.IsClose(y, 1e-3, 1e-8) }, false},
}

var bits = []named[binary]{
	{"BitAnd", (*tensor.Tensor).BitAnd, false}, {"BitOr", (*tensor.Tensor).BitOr, false}, {"BitXor", (*tensor.Tensor).BitXor, false},
	{"ShiftLeft", (*tensor.Tensor).ShiftLeft, false}, {"ShiftRight", (*tensor.Tensor).ShiftRight, false},
	{"BitNot", func(x, _ *tensor.Tensor) *tensor.Tensor { return x.BitNot() }, false},
}

var scans = []named[func(x *tensor.Tensor, axis int) *tensor.Tensor]{
	{"CumSum", (*tensor.Tensor).CumSum, false}, {"CumProd", (*tensor.Tensor).CumProd, false}, {"CumMax", (*tensor.Tensor).CumMax, false}, {"CumMin", (*tensor.Tensor).CumMin, false},
	{"Median", (*tensor.Tensor).Median, false}, {"Quantile", func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Quantile(0.3, axis) }, false},
	{"Flip", func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Flip(axis) }, false}, {"Roll", func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Roll(axis, 2) }, false},
	{"Pad", func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.Pad(axis, 2, 1, -3) }, false},
	{"PadWith", func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.PadWith(tensor.Reflect, axis, 1, 0) }, false},
	{"RepeatInterleave", func(x *tensor.Tensor, axis int) *tensor.Tensor { return x.RepeatInterleave(axis, 2) }, false},
	{"Tril", (*tensor.Tensor).Tril, false}, {"Triu", (*tensor.Tensor).Triu, false}, {"Diagonal", (*tensor.Tensor).Diagonal, false},
}

var comparisons = []named[binary]{
	{"Eq", (*tensor.Tensor).Eq, false}, {"Ne", (*tensor.Tensor).Ne, false}, {"Lt", (*tensor.Tensor).Lt, false},
	{"Le", (*tensor.Tensor).Le, false}, {"Gt", (*tensor.Tensor).Gt, false}, {"Ge", (*tensor.Tensor).Ge, false},
}

var folds = []named[func(x *tensor.Tensor, axes ...int) *tensor.Tensor]{
	{"Sum", (*tensor.Tensor).Sum, false}, {"Mean", (*tensor.Tensor).Mean, false}, {"Prod", (*tensor.Tensor).Prod, false}, {"Max", (*tensor.Tensor).Max, false},
	{"Min", (*tensor.Tensor).Min, false}, {"SumKeep", (*tensor.Tensor).SumKeep, false}, {"MeanKeep", (*tensor.Tensor).MeanKeep, false},
	{"ProdKeep", (*tensor.Tensor).ProdKeep, false}, {"MaxKeep", (*tensor.Tensor).MaxKeep, false}, {"MinKeep", (*tensor.Tensor).MinKeep, false},
	{"LogSumExp", (*tensor.Tensor).LogSumExp, true},
	{"Var", func(x *tensor.Tensor, axes ...int) *tensor.Tensor { return x.Var(1, axes...) }, false},
	{"StdKeep", func(x *tensor.Tensor, axes ...int) *tensor.Tensor { return x.StdKeep(0, axes...) }, false},
	{"VectorNorm of 3", func(x *tensor.Tensor, axes ...int) *tensor.Tensor { return x.VectorNorm(3, axes...) }, true},
	{"VectorNorm of Inf", func(x *tensor.Tensor, axes ...int) *tensor.Tensor { return x.VectorNorm(math.Inf(1), axes...) }, false},
}

var argFolds = []named[func(x *tensor.Tensor, axes ...int) *tensor.Tensor]{
	{"ArgMax", (*tensor.Tensor).ArgMax, false}, {"ArgMin", (*tensor.Tensor).ArgMin, false},
	{"ArgMaxKeep", (*tensor.Tensor).ArgMaxKeep, false}, {"ArgMinKeep", (*tensor.Tensor).ArgMinKeep, false},
}

var boolFolds = []named[func(x *tensor.Tensor, axes ...int) *tensor.Tensor]{
	{"Any", (*tensor.Tensor).Any, false}, {"All", (*tensor.Tensor).All, false},
	{"AnyKeep", (*tensor.Tensor).AnyKeep, false}, {"AllKeep", (*tensor.Tensor).AllKeep, false},
}

func draw[T any](s *session, from []T) T { return from[s.rnd.IntN(len(from))] }

// pick draws a tensor with the given property, or makes one.
func (s *session) pick(is func(t *twin) bool, otherwise tensor.DType) *twin {
	n := len(s.twins)
	if n > 0 {
		from := s.rnd.IntN(n)
		for i := range n {
			t := s.twins[(from+i)%n]
			if is(t) && (!t.mayFail || s.rnd.IntN(4) == 0) {
				return t
			}
		}
	}
	return s.leaf(otherwise, s.shape())
}

func isFloat(t *twin) bool { return t.cpu.DType().IsFloat() }

func isOf(dts ...tensor.DType) func(t *twin) bool {
	return func(t *twin) bool { return slices.Contains(dts, t.cpu.DType()) }
}

func (s *session) floats() *twin { return s.pick(isFloat, tensor.Float32) }
func (s *session) number() *twin {
	return s.pick(isOf(tensor.Float32, tensor.Float64, tensor.Int64, tensor.Float16, tensor.BFloat16), tensor.Float32)
}
func (s *session) any() *twin     { return s.pick(func(*twin) bool { return true }, tensor.Float32) }
func (s *session) boolean() *twin { return s.pick(isOf(tensor.Bool), tensor.Bool) }

// with returns a tensor of type dt that can be broadcast with one of the given shape.
func (s *session) with(dt tensor.DType, shape device.Shape) *twin {
	if s.rnd.IntN(8) > 0 {
		n := len(s.twins)
		from := s.rnd.IntN(n)
		for i := range n {
			t := s.twins[(from+i)%n]
			if t.cpu.DType() == dt && !t.mayFail && fits(t.cpu.Shape(), shape) {
				return t
			}
		}
	}
	other := slices.Clone(shape)
	switch s.rnd.IntN(4) {
	case 0:
		other = other[s.rnd.IntN(len(other)+1):]
	case 1:
		for i := range other {
			if s.rnd.IntN(2) == 0 {
				other[i] = 1
			}
		}
	}
	return s.leaf(dt, other)
}

// fits reports whether both can be broadcast to something small.
func fits(a, b device.Shape) bool {
	n := 1
	for i := 1; i <= max(len(a), len(b)); i++ {
		d, e := 1, 1
		if i <= len(a) {
			d = a[len(a)-i]
		}
		if i <= len(b) {
			e = b[len(b)-i]
		}
		if d != e && d != 1 && e != 1 {
			return false
		}
		if n *= max(d, e, 1); n > mostElements {
			return false
		}
	}
	return true
}

// joint is the shape that all can be broadcast to.
func joint(twins ...*twin) (shape device.Shape) {
	for _, t := range twins {
		other := t.cpu.Shape()
		for len(shape) < len(other) {
			shape = append(device.Shape{1}, shape...)
		}
		for i, d := range other {
			if at := len(shape) - len(other) + i; d != 1 {
				shape[at] = d
			}
		}
	}
	return shape
}

// slack is what results of functions may differ by that are not rounded correctly.
func (s *session) slack(inexact bool) float64 {
	if inexact {
		return *slackFlag
	}
	return 0
}

// step makes a call.
func (s *session) step() error {
	type kind struct {
		weight int
		make   func() ([]*twin, error)
	}
	kinds := []kind{
		{8, s.unary}, {10, s.binary}, {4, s.scalar}, {3, s.compare}, {2, s.logic}, {2, s.where}, {4, s.convert},
		{8, s.fold}, {3, s.argFold}, {2, s.boolFold}, {5, s.scan}, {3, s.sort}, {3, s.rows}, {5, s.matmul}, {2, s.linear},
		{3, s.conv}, {2, s.pool}, {4, s.take}, {4, s.scatter}, {2, s.resize}, {2, s.algebra}, {2, s.pickOne}, {2, s.oneHot}, {2, s.rowAt}, {12, s.view}, {4, s.join}, {3, s.random},
		{3, s.made}, {4, s.numbers}, {3, s.fused}, {3, s.vmap}, {2, s.there}, {1, s.allReduce},
	}
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := s.rnd.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			results, err := k.make()
			s.twins = append(s.twins, results...)
			return err
		}
	}
	return nil
}

// differentiable makes the call f, or asks for its gradients with respect to the operands that have some.
func (s *session) differentiable(name string, f call, inexact bool, from ...*twin) ([]*twin, error) {
	order := s.rnd.IntN(10) // 1: gradients, 2: gradients of gradients
	if order < 1 || order > 2 || !slices.ContainsFunc(from, isFloat) {
		return s.do(name, f, s.slack(inexact), false, from...)
	}
	squared := s.rnd.IntN(2) == 0
	grad := func(on device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		var tracked []*tensor.Tensor
		x = slices.Clone(x)
		for i, t := range x {
			if t.DType().IsFloat() {
				x[i] = t.Track()
				tracked = append(tracked, x[i])
			}
		}
		y := f(on, x)[0]
		if squared {
			y = y.Square()
		}
		g := tensor.Grad(y.Sum(), tracked...)
		if order == 2 {
			var sum *tensor.Tensor
			for _, t := range g {
				if part := t.Square().Sum().As(tensor.Float64); sum == nil {
					sum = part
				} else {
					sum = sum.Add(part)
				}
			}
			g = tensor.Grad(sum, tracked...)
		}
		for i := range g {
			g[i] = g[i].Detach()
		}
		return g
	}
	slack := 0.0
	if inexact && *slackFlag > 0 {
		slack = math.Inf(1) // differences of differences: only what is finite is compared
	}
	return s.do(fmt.Sprintf("gradient (order %d, squared %v) of %s", order, squared, name), grad, slack, false, from...)
}

func apply(f unary) call {
	return func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(x[0])} }
}

func apply2(f binary) call {
	return func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{f(x[0], x[1])} }
}

func (s *session) unary() ([]*twin, error) {
	u := draw(s, unaries)
	return s.differentiable(u.name, apply(u.f), u.inexact, s.number())
}

func (s *session) binary() ([]*twin, error) {
	b := draw(s, binaries)
	x := s.number()
	if slices.Contains([]string{"Div", "Fmod", "Remainder", "FloorDiv"}, b.name) && x.cpu.DType() == tensor.Int64 {
		return s.do(b.name, apply2(b.f), 0, true, x, s.with(tensor.Int64, x.cpu.Shape()))
	}
	y := s.with(x.cpu.DType(), x.cpu.Shape())
	if s.rnd.IntN(6) == 0 {
		y = x
	}
	return s.differentiable(b.name, apply2(b.f), b.inexact, x, y)
}

func (s *session) scalar() ([]*twin, error) {
	x := s.number()
	c := draw(s, float64Specials)
	if s.rnd.IntN(2) == 0 {
		c = s.rnd.NormFloat64()
	}
	which := s.rnd.IntN(4)
	f := func(t *tensor.Tensor) *tensor.Tensor {
		switch which {
		case 0:
			return t.AddScalar(c)
		case 1:
			return t.SubScalar(c)
		case 2:
			return t.MulScalar(c)
		}
		return t.DivScalar(c)
	}
	name := fmt.Sprintf("%sScalar(%v)", []string{"Add", "Sub", "Mul", "Div"}[which], c)
	if which == 3 && x.cpu.DType() == tensor.Int64 {
		return s.do(name, apply(f), 0, true, x)
	}
	return s.differentiable(name, apply(f), false, x)
}

func (s *session) compare() ([]*twin, error) {
	b := draw(s, comparisons)
	x := s.any()
	return s.do(b.name, apply2(b.f), 0, false, x, s.with(x.cpu.DType(), x.cpu.Shape()))
}

func (s *session) logic() ([]*twin, error) {
	if s.rnd.IntN(2) == 0 {
		b, x := draw(s, bits), s.pick(isOf(tensor.Int64), tensor.Int64)
		return s.do(b.name, apply2(b.f), 0, false, x, s.with(tensor.Int64, x.cpu.Shape()))
	}
	x := s.boolean()
	switch s.rnd.IntN(4) {
	case 0:
		return s.do("Not", apply((*tensor.Tensor).Not), 0, false, x)
	case 1:
		return s.do("Xor", apply2((*tensor.Tensor).Xor), 0, false, x, s.with(tensor.Bool, x.cpu.Shape()))
	case 2:
		return s.do("And", apply2((*tensor.Tensor).And), 0, false, x, s.with(tensor.Bool, x.cpu.Shape()))
	}
	return s.do("Or", apply2((*tensor.Tensor).Or), 0, false, x, s.with(tensor.Bool, x.cpu.Shape()))
}

func (s *session) where() ([]*twin, error) {
	x := s.any()
	y := x
	if s.rnd.IntN(4) > 0 {
		y = s.with(x.cpu.DType(), x.cpu.Shape())
	}
	c := s.with(tensor.Bool, joint(x, y))
	return s.differentiable("Where", func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		return []*tensor.Tensor{tensor.Where(x[0], x[1], x[2])}
	}, false, c, x, y)
}

func (s *session) convert() ([]*twin, error) {
	dt := draw(s, device.DTypes())
	return s.differentiable(fmt.Sprintf("As(%v)", dt), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.As(dt) }), false, s.any())
}

// axes draws some of those that a tensor has, or none.
func (s *session) axes(rank int) []int {
	var axes []int
	for i := range rank {
		if s.rnd.IntN(2) == 0 {
			if s.rnd.IntN(3) == 0 {
				i -= rank
			}
			axes = append(axes, i)
		}
	}
	s.rnd.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
	return axes
}

func (s *session) axis(rank int) int {
	if rank == 0 {
		return 0
	}
	return s.rnd.IntN(2*rank) - rank
}

func (s *session) fold() ([]*twin, error) {
	fold, x := draw(s, folds), s.number()
	axes := s.axes(x.cpu.Rank())
	return s.differentiable(fmt.Sprintf("%s(%v)", fold.name, axes), apply(func(t *tensor.Tensor) *tensor.Tensor { return fold.f(t, axes...) }), fold.inexact, x)
}

func (s *session) argFold() ([]*twin, error) {
	fold, x := draw(s, argFolds), s.number()
	axes := s.axes(x.cpu.Rank())
	return s.do(fmt.Sprintf("%s(%v)", fold.name, axes), apply(func(t *tensor.Tensor) *tensor.Tensor { return fold.f(t, axes...) }), 0, false, x)
}

func (s *session) boolFold() ([]*twin, error) {
	fold, x := draw(s, boolFolds), s.boolean()
	axes := s.axes(x.cpu.Rank())
	return s.do(fmt.Sprintf("%s(%v)", fold.name, axes), apply(func(t *tensor.Tensor) *tensor.Tensor { return fold.f(t, axes...) }), 0, false, x)
}

func (s *session) scan() ([]*twin, error) {
	scan, x := draw(s, scans), s.number()
	axis := s.axis(x.cpu.Rank())
	return s.differentiable(fmt.Sprintf("%s(%d)", scan.name, axis), apply(func(t *tensor.Tensor) *tensor.Tensor { return scan.f(t, axis) }), scan.inexact, x)
}

func (s *session) sort() ([]*twin, error) {
	x := s.number()
	axis := s.axis(x.cpu.Rank())
	order := tensor.Order(s.rnd.IntN(2) == 0)
	k := 0
	if x.cpu.Rank() > 0 {
		k = s.rnd.IntN(x.cpu.Dim(axis) + 1)
	}
	switch s.rnd.IntN(4) {
	case 0:
		right := s.rnd.IntN(2) == 0
		return s.do(fmt.Sprintf("SearchSorted(right %v)", right), apply(func(t *tensor.Tensor) *tensor.Tensor {
			return t.Flatten().Sort(0, tensor.Ascending).SearchSorted(t, right)
		}), 0, false, x)
	case 1:
		return s.differentiable(fmt.Sprintf("Sort(%d, %v)", axis, order), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.Sort(axis, order) }), false, x)
	case 2:
		return s.do(fmt.Sprintf("ArgSort(%d, %v)", axis, order), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.ArgSort(axis, order) }), 0, false, x)
	}
	return s.differentiable(fmt.Sprintf("TopK(%d, %d, %v)", k, axis, order), func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		v, i := x[0].TopK(k, axis, order)
		return []*tensor.Tensor{v, i}
	}, false, x)
}

func (s *session) rows() ([]*twin, error) {
	x := s.floats()
	axis := s.axis(x.cpu.Rank())
	from := []*twin{x}
	which := s.rnd.IntN(4)
	if which > 1 && x.cpu.Rank() > 0 {
		for range s.rnd.IntN(4 - which + 1) {
			from = append(from, s.leaf(x.cpu.DType(), device.Shape{x.cpu.Dim(axis)}))
		}
	}
	name := fmt.Sprintf("%s(%d)", []string{"Softmax", "LogSoftmax", "LayerNorm", "RMSNorm"}[which], axis)
	return s.differentiable(name, func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		switch which {
		case 0:
			return []*tensor.Tensor{x[0].Softmax(axis)}
		case 1:
			return []*tensor.Tensor{x[0].LogSoftmax(axis)}
		case 2:
			return []*tensor.Tensor{x[0].LayerNorm(axis, 1e-5, x[1:]...)}
		}
		return []*tensor.Tensor{x[0].RMSNorm(axis, 1e-5, x[1:]...)}
	}, which < 2, from...)
}

func (s *session) matmul() ([]*twin, error) {
	x := s.pick(func(t *twin) bool { return isFloat(t) && t.cpu.Rank() > 0 && t.cpu.Size() <= 1<<16 }, tensor.Float32)
	if x.cpu.Rank() == 0 {
		x = s.leaf(x.cpu.DType(), device.Shape{s.dims[0]})
	}
	k := x.cpu.Dim(-1)
	shape := device.Shape{k}
	if s.rnd.IntN(4) > 0 {
		shape = device.Shape{k, draw(s, []int{0, 1, 2, 3, 5, 8, 17, 64, 65, 130})}
		if k > 1025 {
			shape[1] = 1 + shape[1]%5
		}
		if x.cpu.Rank() > 2 && s.rnd.IntN(2) == 0 {
			shape = append(device.Shape{draw(s, []int{1, x.cpu.Dim(-3)})}, shape...)
		}
	}
	if x.cpu.Size()*shape.Size()/max(k, 1) > 1<<23 {
		return nil, nil
	}
	var y *twin
	if isTurned := len(shape) > 1 && s.rnd.IntN(2) == 0; isTurned {
		turned := slices.Clone(shape)
		n := len(turned)
		turned[n-1], turned[n-2] = turned[n-2], turned[n-1]
		t := s.leaf(x.cpu.DType(), turned)
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		order[n-1], order[n-2] = n-2, n-1
		y = &twin{cpu: t.cpu.Transpose(order...), dev: t.dev.Transpose(order...), by: "transposed data"}
	} else {
		y = s.leaf(x.cpu.DType(), shape)
	}
	return s.differentiable("MatMul", apply2((*tensor.Tensor).MatMul), false, x, y)
}

func (s *session) linear() ([]*twin, error) {
	x := s.pick(func(t *twin) bool {
		return isFloat(t) && t.cpu.Rank() > 0 && t.cpu.Size() <= 1<<16 && t.cpu.Dim(-1) < 300
	}, tensor.Float32)
	if x.cpu.Rank() == 0 || x.cpu.Dim(-1) > 300 {
		return nil, nil
	}
	n := draw(s, []int{1, 2, 3, 8, 33, 65})
	w, b := s.leaf(x.cpu.DType(), device.Shape{x.cpu.Dim(-1), n}), s.leaf(x.cpu.DType(), device.Shape{n})
	isReLU := s.rnd.IntN(2) == 0
	return s.differentiable(fmt.Sprintf("Linear (ReLU %v)", isReLU), func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		if isReLU {
			return []*tensor.Tensor{x[0].LinearReLU(x[1], x[2])}
		}
		return []*tensor.Tensor{x[0].Linear(x[1], x[2])}
	}, false, x, w, b)
}

func (s *session) pair(n int) tensor.Pair { return tensor.Pair{s.rnd.IntN(n), s.rnd.IntN(n)} }

func (s *session) conv() ([]*twin, error) {
	dt := draw(s, []tensor.DType{tensor.Float32, tensor.Float32, tensor.Float64})
	groups := draw(s, []int{1, 1, 1, 2, 3})
	in, out := groups*(1+s.rnd.IntN(4)), groups*(1+s.rnd.IntN(5))
	c := tensor.Conv{Stride: s.pair(4), Padding: s.pair(3), Dilation: s.pair(3), Groups: groups}
	image := device.Shape{in, 4 + s.rnd.IntN(16), 4 + s.rnd.IntN(16)}
	if s.rnd.IntN(3) > 0 {
		image = append(device.Shape{s.rnd.IntN(4)}, image...)
	}
	x, w := s.leaf(dt, image), s.leaf(dt, device.Shape{out, in / groups, 1 + s.rnd.IntN(4), 1 + s.rnd.IntN(4)})
	if s.rnd.IntN(3) == 0 { // planes that lie otherwise
		r := len(image)
		order := make([]int, r)
		for i := range order {
			order[i] = i
		}
		order[r-1], order[r-2] = r-2, r-1
		x = &twin{cpu: x.cpu.Transpose(order...), dev: x.dev.Transpose(order...), by: "transposed data"}
	}
	return s.differentiable(fmt.Sprintf("Conv2D(%+v)", c), apply2(func(x, y *tensor.Tensor) *tensor.Tensor { return x.Conv2D(y, c) }), false, x, w)
}

func (s *session) pool() ([]*twin, error) {
	x := s.pick(func(t *twin) bool { return isFloat(t) && t.cpu.Rank() >= 2 && t.cpu.Size() > 0 }, tensor.Float32)
	if x.cpu.Rank() < 2 {
		return nil, nil
	}
	p := tensor.Pool{Window: tensor.Pair{1 + s.rnd.IntN(4), 1 + s.rnd.IntN(4)}, Stride: s.pair(4)}
	p.Padding = tensor.Pair{s.rnd.IntN(p.Window[0]), s.rnd.IntN(p.Window[1])}
	isMax := s.rnd.IntN(2) == 0
	return s.differentiable(fmt.Sprintf("Pool(%+v, max %v)", p, isMax), apply(func(t *tensor.Tensor) *tensor.Tensor {
		if isMax {
			return t.MaxPool2D(p)
		}
		return t.AvgPool2D(p)
	}), false, x)
}

// indices makes indices of an axis of length n; perhaps one is out of range.
func (s *session) indices(n int, shape device.Shape) (t *twin, isBad bool) {
	return s.from(-n, n, shape)
}

// classes makes numbers of n classes; perhaps one is out of range.
func (s *session) classes(n int, shape device.Shape) (t *twin, isBad bool) {
	return s.from(0, n, shape)
}

// from makes indices from least to below n; perhaps one is out of range.
func (s *session) from(least, n int, shape device.Shape) (t *twin, isBad bool) {
	isBad = n == 0 && shape.Size() > 0
	t = leafOf(s, shape, func() int64 {
		if s.rnd.IntN(400) == 0 {
			isBad = true
			return draw(s, []int64{int64(n), int64(n) + 7, int64(least) - 1, math.MaxInt64, math.MinInt64})
		}
		return int64(least) + s.rnd.Int64N(int64(max(n-least, 1)))
	})
	t.mayFail = isBad
	return t, isBad
}

func (s *session) take() ([]*twin, error) {
	x := s.any()
	if x.cpu.Rank() == 0 {
		return nil, nil
	}
	axis := s.axis(x.cpu.Rank())
	shape := draw(s, []device.Shape{{}, {1}, {3}, {7}, {2, 3}, {0}, {70}, {300}})
	if x.cpu.Size()/max(x.cpu.Dim(axis), 1)*shape.Size() > mostElements {
		return nil, nil
	}
	index, isBad := s.indices(x.cpu.Dim(axis), shape)
	name := fmt.Sprintf("Take(%d)", axis)
	f := apply2(func(x, y *tensor.Tensor) *tensor.Tensor { return x.Take(axis, y) })
	if isBad {
		return s.do(name, f, 0, true, x, index)
	}
	return s.differentiable(name, f, false, x, index)
}

// scatter selects elements along an axis, or replaces or adds to them.
func (s *session) scatter() ([]*twin, error) {
	x := s.any()
	if x.cpu.Rank() == 0 || x.cpu.Size() == 0 {
		return nil, nil
	}
	axis, shape := s.axis(x.cpu.Rank()), x.cpu.Shape()
	at := (axis + len(shape)) % len(shape)
	n := shape[at]
	if shape[at] = draw(s, []int{0, 1, 2, 7, 33}); shape.Size() > mostElements {
		return nil, nil
	}
	which := s.rnd.IntN(5)
	each := shape
	if which > 2 {
		each = device.Shape{shape[at]}
	}
	index, isBad := s.indices(n, each)
	src := s.leaf(x.cpu.DType(), shape)
	name := fmt.Sprintf("%s(%d)", []string{"TakeAlong", "Scatter", "ScatterAdd", "IndexCopy", "IndexAdd"}[which], axis)
	f := func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		switch which {
		case 0:
			return []*tensor.Tensor{x[0].TakeAlong(axis, x[1])}
		case 1:
			return []*tensor.Tensor{x[0].Scatter(axis, x[1], x[2])}
		case 2:
			return []*tensor.Tensor{x[0].ScatterAdd(axis, x[1], x[2])}
		case 3:
			return []*tensor.Tensor{x[0].IndexCopy(axis, x[1], x[2])}
		}
		return []*tensor.Tensor{x[0].IndexAdd(axis, x[1], x[2])}
	}
	if isBad || which == 0 { // TakeAlong has no gradient for the last operand
		return s.do(name, f, 0, isBad, x, index, src)
	}
	return s.differentiable(name, f, false, x, index, src)
}

// resize makes planes of another size.
func (s *session) resize() ([]*twin, error) {
	x := s.pick(func(t *twin) bool { return isFloat(t) && t.cpu.Rank() >= 2 && t.cpu.Size() > 0 }, tensor.Float32)
	which, rows, columns := s.rnd.IntN(3), 1+s.rnd.IntN(9), 1+s.rnd.IntN(9)
	return s.differentiable(fmt.Sprintf("resize(%d, %d, %d)", which, rows, columns), apply(func(t *tensor.Tensor) *tensor.Tensor {
		if which == 2 {
			return t.AdaptiveAvgPool2D(rows, columns)
		}
		return t.Interpolate(tensor.Interpolation(which), rows, columns)
	}), false, x)
}

// algebra is what the CPU computes, wherever the operands are, and Einsum.
func (s *session) algebra() ([]*twin, error) {
	n := s.rnd.IntN(6)
	dt := draw(s, []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16})
	x, y := s.leaf(dt, device.Shape{1 + s.rnd.IntN(3), n, n}), s.leaf(dt, device.Shape{n, 2})
	which := s.rnd.IntN(5)
	return s.do([]string{"Det", "Solve", "QR", "FFT", "Einsum"}[which], func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		switch which {
		case 0:
			return []*tensor.Tensor{x[0].Det()}
		case 1:
			return []*tensor.Tensor{x[0].Solve(x[1])}
		case 2:
			q, r := x[0].QR()
			return []*tensor.Tensor{q, r}
		case 3:
			return []*tensor.Tensor{x[1].FFT()}
		}
		return []*tensor.Tensor{tensor.Einsum("bij,jk,bil->kl", x[0], x[1], x[0])}
	}, 0, true, x, y)
}

func (s *session) pickOne() ([]*twin, error) {
	x := s.any()
	if x.cpu.Rank() == 0 {
		return nil, nil
	}
	index, isBad := s.indices(x.cpu.Dim(-1), x.cpu.Shape()[:x.cpu.Rank()-1])
	f := apply2((*tensor.Tensor).Pick)
	if isBad {
		return s.do("Pick", f, 0, true, x, index)
	}
	return s.differentiable("Pick", f, false, x, index)
}

func (s *session) oneHot() ([]*twin, error) {
	n := s.rnd.IntN(9)
	index, isBad := s.classes(n, device.Shape{s.dims[0] % 100, s.rnd.IntN(4)})
	return s.do(fmt.Sprintf("OneHot(%d)", n), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.OneHot(n) }), 0, isBad, index)
}

func (s *session) rowAt() ([]*twin, error) {
	x := s.any()
	if x.cpu.Rank() == 0 {
		return nil, nil
	}
	index, isBad := s.indices(x.cpu.Dim(0), draw(s, []device.Shape{{}, {1}, {1, 1}}))
	which := s.rnd.IntN(3)
	n := s.rnd.IntN(2 + x.cpu.Dim(0))
	name := fmt.Sprintf("%s(n %d)", []string{"RowAt", "RowI64", "SliceI64"}[which], n)
	f := apply2(func(x, i *tensor.Tensor) *tensor.Tensor {
		switch which {
		case 0:
			return x.RowAt(i)
		case 1:
			return x.RowI64(i.I64().Add(tensor.ConstInt(0)))
		}
		return x.SliceI64(0, i.I64(), n)
	})
	if isBad || which == 2 {
		return s.do(name, f, 0, true, x, index)
	}
	return s.differentiable(name, f, false, x, index)
}

func (s *session) view() ([]*twin, error) {
	x := s.any()
	rank := x.cpu.Rank()
	switch s.rnd.IntN(8) {
	case 0:
		order := s.rnd.Perm(rank)
		return s.differentiable(fmt.Sprintf("Transpose(%v)", order), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.Transpose(order...) }), false, x)
	case 1, 2:
		if rank == 0 {
			return nil, nil
		}
		axis := s.axis(rank)
		to := s.rnd.IntN(x.cpu.Dim(axis) + 1)
		from := s.rnd.IntN(to + 1)
		return s.differentiable(fmt.Sprintf("Slice(%d, %d, %d)", axis, from, to), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.Slice(axis, from, to) }), false, x)
	case 3:
		if rank == 0 || x.cpu.Dim(0) == 0 {
			return nil, nil
		}
		i := s.rnd.IntN(2*x.cpu.Dim(0)) - x.cpu.Dim(0)
		return s.differentiable(fmt.Sprintf("Row(%d)", i), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.Row(i) }), false, x)
	case 4:
		return s.differentiable("Flatten", apply((*tensor.Tensor).Flatten), false, x)
	case 5:
		shape := x.cpu.Shape()
		for i := range shape {
			if shape[i] == 1 {
				shape[i] = draw(s, []int{0, 1, 2, 3, 5})
			}
		}
		if s.rnd.IntN(2) == 0 {
			shape = append(device.Shape{1 + s.rnd.IntN(4)}, shape...)
		}
		if shape.Size() > mostElements {
			return nil, nil
		}
		return s.differentiable(fmt.Sprintf("BroadcastTo(%v)", shape), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.BroadcastTo(shape...) }), false, x)
	case 6:
		axis := s.rnd.IntN(rank + 1)
		return s.differentiable(fmt.Sprintf("Unsqueeze(%d)", axis), apply(func(t *tensor.Tensor) *tensor.Tensor { return t.Unsqueeze(axis) }), false, x)
	}
	return s.differentiable("Squeeze", apply(func(t *tensor.Tensor) *tensor.Tensor { return t.Squeeze() }), false, x)
}

func (s *session) join() ([]*twin, error) {
	x := s.any()
	from := []*twin{x}
	for range s.rnd.IntN(5) {
		y := x
		for _, t := range s.twins {
			if s.rnd.IntN(2) == 0 && t.cpu.DType() == x.cpu.DType() && slices.Equal(t.cpu.Shape(), x.cpu.Shape()) {
				y = t
			}
		}
		from = append(from, y)
	}
	if x.cpu.Size()*len(from) > mostElements {
		return nil, nil
	}
	isStack := s.rnd.IntN(2) == 0
	rank := x.cpu.Rank()
	if isStack {
		rank++
	}
	axis := s.axis(rank)
	return s.differentiable(fmt.Sprintf("join (stack %v, axis %d)", isStack, axis), func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		if isStack {
			return []*tensor.Tensor{tensor.Stack(axis, x...)}
		}
		return []*tensor.Tensor{tensor.Concat(axis, x...)}
	}, false, from...)
}

// draws are those of one session at a time, as all have one generator.
var draws sync.Mutex

func (s *session) random() ([]*twin, error) {
	draws.Lock()
	defer draws.Unlock()
	g := tensor.DefaultGenerator()
	g.Set(tensor.FromOn(device.CPU(), []int64{s.rnd.Int64(), s.rnd.Int64N(1000)}))
	shape := s.shape()
	which, dt := s.rnd.IntN(4), draw(s, []tensor.DType{tensor.Float32, tensor.Float64})
	lo := draw(s, []int{0, -5, math.MinInt64, 1 << 40})
	hi := lo + draw(s, []int{1, 3, 1 << 33, math.MaxInt64})
	start := g.Value()
	return s.do(fmt.Sprintf("%s %v", []string{"Rand", "Randn", "Uniform", "RandInt"}[which], shape), func(on device.Device, _ []*tensor.Tensor) []*tensor.Tensor {
		g.Set(start)
		m := tensor.On(on).As(dt)
		switch which {
		case 0:
			return []*tensor.Tensor{m.Rand(shape...)}
		case 1:
			return []*tensor.Tensor{m.Randn(shape...)}
		case 2:
			return []*tensor.Tensor{m.Uniform(-3, 0.1, shape...)}
		}
		return []*tensor.Tensor{tensor.On(on).RandInt(lo, hi, shape...)}
	}, s.slack(which == 1), false)
}

func (s *session) made() ([]*twin, error) {
	which, dt, shape, v, n := s.rnd.IntN(4), s.dtype(), s.shape(), draw(s, float64Specials), s.rnd.IntN(200)
	return s.do(fmt.Sprintf("made(%d, %v, %v, %v, %d)", which, dt, shape, v, n), func(on device.Device, _ []*tensor.Tensor) []*tensor.Tensor {
		m := tensor.On(on).As(dt)
		switch which {
		case 0:
			return []*tensor.Tensor{m.Full(v, shape...)}
		case 1:
			return []*tensor.Tensor{m.Eye(n)}
		case 2:
			return []*tensor.Tensor{m.Arange(-3, float64(n)/3, 0.3)}
		}
		return []*tensor.Tensor{m.Linspace(-1, 7, n)}
	}, 0, false)
}

// numbers computes with numbers of the host that are not known yet.
func (s *session) numbers() ([]*twin, error) {
	x := s.pick(func(t *twin) bool { return isFloat(t) && t.cpu.Size() > 0 && t.cpu.Size() < 5000 }, tensor.Float32)
	if !isFloat(x) || x.cpu.Size() == 0 {
		return nil, nil
	}
	which := s.rnd.IntN(22)
	return s.do(fmt.Sprintf("numbers(%d)", which), func(on device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		t := x[0]
		a, b := t.Flatten().Row(0).F64(), t.Mean().F64()
		var c tensor.F64
		switch which {
		case 0:
			c = a.Add(b)
		case 1:
			c = a.Sub(b).Mul(a)
		case 2:
			c = a.Div(b)
		case 3:
			c = a.Abs().Sqrt().Neg()
		case 4:
			c = a.Max(b)
		case 5:
			c = a.MathMin(b)
		case 6:
			c = a.Exp().Log1p()
		case 7:
			c = a.Pow(b)
		case 8:
			c = a.Floor().Add(b.Ceil()).Add(a.Round()).Sub(b.RoundToEven())
		case 9:
			c = a.Gt(b).ChooseF64(a, b)
		case 10:
			c = a.Float32().Trunc()
		case 11:
			c = a.Mod(b)
		case 12:
			c = a.Remainder(tensor.Const(0.7)).Copysign(b)
		case 13:
			c = a.Sin().Add(b.Cos()).Tan()
		case 14:
			c = a
			tensor.Either(a.Lt(b).Or(b.Ge(tensor.Const(1))), func() { c = b.Add(tensor.Const(1)); t = t.Neg() }, func() { t = t.AddF64(b) }, &c, &t)
		case 15:
			i := t.Flatten().ArgMax().I64()
			return []*tensor.Tensor{t.Flatten().RowI64(i), i.Mul(tensor.ConstInt(3)).Sub(i).Add(i).Tensor(1).To(on), t.Flatten().SliceI64(0, i, 1)}
		case 16:
			return []*tensor.Tensor{a.Ne(b).And(a.Le(b)).Not().Choose(t, t.Neg())}
		case 17:
			c = a.MathMax(b).Min(a)
		case 18:
			c = a.Cbrt().Add(b.Hypot(a)).Atan2(b)
		case 19:
			c = a.Erf().Sub(b.Erfc())
		case 20:
			return []*tensor.Tensor{t.AddScaledF64(t, a), t.SubF64(b), t.DivF64(b), t.As(tensor.Int64).MulF64(b)}
		case 21:
			if a.Eq(b).Item() {
				c = tensor.Const(math.Float64frombits(math.Float64bits(a.Item())))
			} else {
				c = tensor.Const(b.Item())
			}
		}
		return []*tensor.Tensor{c.As(t.DType()).To(on), t.MulF64(c), tensor.FromOn(on, []float64{c.Item()})}
	}, 0, false, x)
}

var fusions = []struct {
	*tensor.Fused
	operands int
	inexact  bool
}{
	{tensor.Fuse("f1", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Add(kernel.Mul(x[0], x[0]), x[0]) }), 1, false},
	{tensor.Fuse("f2", 2, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Where(kernel.Lt(x[0], x[1]), kernel.Div(x[0], x[1]), kernel.Max(x[0], kernel.Sub(x[1], x[0])))
	}), 2, false},
	{tensor.Fuse("f3", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Sub(kernel.Mul(x[0], x[1]), kernel.Mul(x[1], x[2]))
	}), 3, false},
	{tensor.Fuse("f4", 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Eq(x[0], x[1]) }), 2, false},
	{tensor.Fuse("f5", 2, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Cast(kernel.Round(kernel.Sqrt(kernel.Abs(kernel.Min(x[0], x[1])))), x[0].DType())
	}), 2, false},
	{tensor.Fuse("f6", 1, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Mul(kernel.Tanh(x[0]), kernel.Exp(kernel.Neg(x[0])))
	}), 1, true},
}

func (s *session) fused() ([]*twin, error) {
	f := draw(s, fusions)
	x := s.floats()
	from := []*twin{x}
	for range f.operands - 1 {
		from = append(from, s.with(x.cpu.DType(), joint(from...)))
	}
	which := s.rnd.IntN(3)
	axes := s.axes(len(joint(from...)))
	inexact := f.inexact
	return s.differentiable(fmt.Sprintf("fused %v %d(%v)", f.operands, which, axes), func(_ device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		switch which {
		case 0:
			return []*tensor.Tensor{f.Of(x...)}
		case 1:
			return []*tensor.Tensor{f.Sum(axes, x...)}
		}
		return []*tensor.Tensor{f.Mean(axes, x...)}
	}, inexact, from...)
}

func (s *session) vmap() ([]*twin, error) {
	x := s.pick(func(t *twin) bool { return isFloat(t) && t.cpu.Rank() > 0 }, tensor.Float32)
	if x.cpu.Rank() == 0 || x.cpu.Dim(0) > 3000 {
		return nil, nil
	}
	which := s.rnd.IntN(8)
	return s.differentiable(fmt.Sprintf("VMap %d", which), apply(func(t *tensor.Tensor) *tensor.Tensor {
		return tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor {
			r := rows[0]
			switch which {
			case 0:
				return r.Sub(r.Mean())
			case 1:
				return r.Flatten().Dot(r.Flatten())
			case 2:
				return r.Flatten().CumSum(0)
			case 3:
				return r.Flatten().Sort(0, tensor.Descending)
			case 4:
				return r.Flatten().RowAt(r.Flatten().ArgMax())
			case 5:
				return r.Transpose().Sum()
			case 6:
				return tensor.Where(r.Gt(r.Neg()), r, r.MulScalar(0.5)).Add(t.Row(0))
			}
			return tensor.Concat(0, r.Flatten(), r.Flatten().ReLU())
		}, t)
	}), false, x)
}

// there takes a tensor to other devices and back.
func (s *session) there() ([]*twin, error) {
	x := s.any()
	var way []device.Device
	for range 1 + s.rnd.IntN(4) {
		way = append(way, draw(s, s.all))
	}
	return s.do(fmt.Sprintf("To %v and back", way), func(on device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		t := x[0]
		for _, d := range way {
			t = t.To(d)
		}
		return []*tensor.Tensor{t.To(on)}
	}, 0, x.mayFail, x)
}

// allReduce adds up what several devices have.
func (s *session) allReduce() ([]*twin, error) {
	x := s.number()
	var devs []device.Device
	for range 1 + s.rnd.IntN(6) {
		devs = append(devs, draw(s, s.all))
	}
	return s.do(fmt.Sprintf("AllReduce on %v", devs), func(on device.Device, x []*tensor.Tensor) []*tensor.Tensor {
		var parts []*tensor.Tensor
		for i, d := range devs {
			if on == s.host {
				d = s.host
			}
			parts = append(parts, x[0].To(d).MulScalar(float64(i+1)/2))
		}
		sums := tensor.AllReduce(parts...)
		return []*tensor.Tensor{sums[0].To(on), sums[len(sums)-1].To(on)}
	}, 0, x.mayFail, x)
}
