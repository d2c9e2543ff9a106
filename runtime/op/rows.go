package op

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Functions of all elements along Attr.Axis together, in one command each.
var (
	Softmax = define(&Def{
		Name: "Softmax", Types: Floats, Unlisted: true,
		Run: rowFunc("Softmax", kernel.Softmax), Batch: batchAxis,
		Saves: SavesResult,
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			return b.Elementwise(softmaxShare, [2]float64{}, g, c.Out, Dot.along(b, c.Attr.Axis, g, c.Out))
		},
	})
	LogSoftmax = define(&Def{
		Name: "LogSoftmax", Types: Floats, Unlisted: true,
		Run: rowFunc("LogSoftmax", kernel.LogSoftmax), Batch: batchAxis,
		Saves: SavesResult,
		VJP: func(b Builder, c *Call, _ int, g Value) Value {
			sum := b.Structural(Sum, Attr{Axes: []int{c.Attr.Axis}, Keep: true}, g)
			return b.Elementwise(logSoftmaxShare, [2]float64{}, g, c.Out, sum)
		},
	})
	// LayerNorm reads Attr.Axis and Attr.Scalars[0], which is added to the variance. The second and the
	// third operand are optional vectors along the axis: results are multiplied by the second one, and
	// then the third one is added.
	LayerNorm = define(&Def{Name: "LayerNorm", Types: Floats, Unlisted: true, Run: rowFunc("LayerNorm", kernel.LayerNorm), Saves: 1<<0 | 1<<1, Batch: batchNorm})
	// RMSNorm is LayerNorm without subtracting the mean.
	RMSNorm = define(&Def{Name: "RMSNorm", Types: Floats, Unlisted: true, Run: rowFunc("RMSNorm", kernel.RMSNorm), Saves: 1<<0 | 1<<1, Batch: batchNorm})
)

// Parts of their gradients, each of several steps in one command.
var (
	// gradient, result, sum of their products
	softmaxShare = formula("Softmax'", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Sub(kernel.Mul(x[0], x[1]), kernel.Mul(x[1], x[2]))
	})
	// gradient, result, sum of the gradient
	logSoftmaxShare = formula("LogSoftmax'", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Sub(x[0], kernel.Mul(kernel.Exp(x[1]), x[2]))
	})
	squaredDistance = SumOf("SquaredDistance", formula("SquaredDifference", 2, func(x ...*kernel.Expr) *kernel.Expr {
		d := kernel.Sub(x[0], x[1])
		return kernel.Mul(d, d)
	}))
	standardized = formula("Standardized", 3, func(x ...*kernel.Expr) *kernel.Expr { // numbers, mean, deviation
		return kernel.Div(kernel.Sub(x[0], x[1]), x[2])
	})
	// gradient, result, mean of their products
	lessShare = formula("LessShare", 3, func(x ...*kernel.Expr) *kernel.Expr {
		return kernel.Sub(x[0], kernel.Mul(x[1], x[2]))
	})
)

// SumPowers sums e to the power of (first operand - second operand).
var SumPowers = SumOf("LogSumExp", formula("Power", 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Exp(kernel.Sub(x[0], x[1])) }))

func formula(name string, operands int, e func(x ...*kernel.Expr) *kernel.Expr) *Def {
	return &Def{Name: name, Types: Floats, Tensors: operands, Unlisted: true, Expr: e}
}

func init() { // not in the literals: the gradient with respect to the second operand uses the operation
	LayerNorm.VJP, RMSNorm.VJP = normVJP, normVJP
}

// rowFunc returns Def.Run of the function f of rows.
func rowFunc(name string, f kernel.RowFunc) func(*Plan) {
	var kernels [MaxInputs]kernelsByType
	return func(p *Plan) {
		x, axis, inputs := p.In[0], p.Attr.Axis, 1
		p.Shape, p.DType = x.Shape, p.Types[0]
		args := x.along(axis, x.Shape[axis])
		for ; inputs < MaxInputs && p.In[inputs].Shape != nil; inputs++ {
			if v := p.In[inputs]; len(v.Shape) != 1 || v.Shape[0] != x.Shape[axis] {
				p.wrong(name, MistakeVector, inputs+1)
			}
			args.Strides[inputs+1] = p.In[inputs].Strides
		}
		in := []device.DType{p.DType, p.DType, p.DType}[:inputs]
		p.Cmd = device.Command{Kernel: kernels[inputs-1].of(p.DType, func() *device.Kernel {
			return device.NewKernel(name, device.Rows, f, p.DType, in...)
		}), N: x.Shape.Size(), Args: args}
		p.Cmd.Imm[0] = kernel.BitsOf(p.Attr.Scalars[0], p.DType)
		p.Cost = 2 * int64(p.Cmd.N)
	}
}

// batchNorm is the batching rule. If a vector differs between examples, it multiplies and adds in
// separate operations.
func batchNorm(b Builder, s *Batch) Value {
	if of := s.In[0].DType(); of.IsStorage() && s.Has != 1 { // nothing is rounded between the operations
		wide := *s
		wide.In = make([]Value, len(s.In))
		for i, x := range s.In {
			wide.In[i] = widen(b, x)
		}
		return b.Structural(As, Attr{DType: of}, batchNorm(b, &wide))
	}
	a := s.Attr
	if s.Has == 1 {
		a.Axis++
		return b.Structural(s.Def, a, s.In...)
	}
	rank := s.rank(0)
	if s.has(0) {
		a.Axis++
	}
	y := b.Structural(s.Def, a, s.In[0])
	for i, d := range []*Def{Mul, Add}[:len(s.In)-1] {
		v := s.In[i+1]
		shape := slices.Clone(v.Shape()) // gets axes of length 1 at its end, up to the last axis
		for range rank - 1 - s.Attr.Axis {
			shape = append(shape, 1)
		}
		v = b.Structural(Reshape, Attr{Shape: shape}, v)
		if s.has(i + 1) {
			v = leading(b, v, rank)
		}
		y = b.Elementwise(d, [2]float64{}, y, v)
	}
	return y
}

// normVJP is the VJP of LayerNorm and RMSNorm.
func normVJP(b Builder, c *Call, i int, g Value) Value {
	x, axis := c.In[0], c.Attr.Axis
	rank := len(x.Shape())
	var others []int
	for k := range rank {
		if k != axis {
			others = append(others, k)
		}
	}
	plain := func() Value { return b.Structural(c.Def, Attr{Axis: axis, Scalars: c.Attr.Scalars}, x) }
	switch i {
	case 1:
		return b.Structural(Sum, Attr{Axes: others}, b.Elementwise(Mul, [2]float64{}, g, plain()))
	case 2:
		return b.Structural(Sum, Attr{Axes: others}, g)
	}
	if c.In[1] != nil {
		shape := make(device.Shape, rank)
		for k := range shape {
			shape[k] = 1
		}
		shape[axis] = x.Shape()[axis]
		g = b.Elementwise(Mul, [2]float64{}, g, b.Structural(Reshape, Attr{Shape: shape}, c.In[1]))
	}
	n := [2]float64{float64(x.Shape()[axis])}
	mean := func(sum Value) Value { return b.Elementwise(DivScalar, n, sum) }
	sum := func(v Value) Value { return b.Structural(Sum, Attr{Axes: []int{axis}, Keep: true}, v) }
	deviation := func(squares Value) Value {
		return b.Elementwise(Sqrt, [2]float64{}, b.Elementwise(AddScalar, c.Attr.Scalars, mean(squares)))
	}
	if c.Def == RMSNorm {
		d := deviation(SumSquares.along(b, axis, x))
		y := b.Elementwise(Div, [2]float64{}, x, d)
		g = b.Elementwise(lessShare, [2]float64{}, g, y, mean(Dot.along(b, axis, g, y)))
		return b.Elementwise(Div, [2]float64{}, g, d)
	}
	m := mean(sum(x))
	d := deviation(squaredDistance.along(b, axis, x, m))
	y := b.Elementwise(standardized, [2]float64{}, x, m, d)
	g = b.Elementwise(lessShare, [2]float64{}, g, y, mean(Dot.along(b, axis, g, y)))
	return b.Elementwise(standardized, [2]float64{}, g, mean(sum(g)), d)
}
