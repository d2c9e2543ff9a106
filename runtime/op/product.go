package op

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
)

var matMul kernelsByType

// Products.
var MatMul = define(&Def{
	Name: "MatMul", Types: Numbers,
	Doc: "returns the product of two matrices, of a matrix and a vector, or of a vector and a matrix. " +
		"Each element is accumulated over the inner length in increasing order; integers wrap around. " +
		"Axes before the last two number matrices, and are broadcast: there is a product for each.",
	Run: func(p *Plan) {
		p.product("MatMul")
		p.Cmd.Kernel = matMul.of(p.DType, func() *device.Kernel {
			return device.NewKernel("MatMul", device.MatMul, nil, p.DType, p.DType, p.DType)
		})
	},
	Saves: 1<<0 | 1<<1,
	VJP: func(b Builder, c *Call, i int, g Value) Value {
		x, y := c.In[0], c.In[1]
		matMul := func(x, y Value) Value { return b.Structural(c.Def, Attr{}, x, y) }
		outer := func(col, row Value) Value {
			col = b.Structural(Reshape, Attr{Shape: device.Shape{col.Shape()[0], 1}}, col)
			return b.Elementwise(Mul, [2]float64{}, col, row)
		}
		if len(x.Shape()) > 2 || len(y.Shape()) > 2 {
			return matMulGradient(b, x, y, i, g, matMul)
		}
		switch {
		case len(x.Shape()) == 1 && i == 0: // x·Y
			return matMul(y, g)
		case len(x.Shape()) == 1:
			return outer(x, g)
		case len(y.Shape()) == 1 && i == 0: // X·y
			return outer(g, y)
		case i == 0:
			return matMul(g, flip(b, y))
		}
		return matMul(flip(b, x), g)
	},
	Batch: func(b Builder, s *Batch) Value {
		x, y := s.rank(0), s.rank(1)
		if x < 1 || y < 1 || x+y < 3 {
			s.wrong(MistakeRank + " (of two vectors there is Dot)")
		}
		if s.Has == 2 && x == 2 && y == 1 { // X·y is y·Xᵀ, bit by bit, and the vectors y are the rows of a matrix
			return b.Structural(s.Def, Attr{}, s.In[1], flip(b, s.In[0]))
		}
		if s.Has == 1 && y == 2 || y == 1 && s.Has == 1 && x == 2 {
			// The second operand is the same for all examples, so the examples are just more rows.
			return b.Structural(s.Def, Attr{}, s.In[0], s.In[1])
		}
		rank := max(x, y, 2)
		left, right := s.In[0], s.In[1]
		if x == 1 {
			left = s.insert(b, 0, 0)
		}
		if y == 1 {
			right = s.insert(b, 1, 1)
		}
		if s.has(0) {
			left = leading(b, left, rank)
		}
		if s.has(1) {
			right = leading(b, right, rank)
		}
		product := b.Structural(s.Def, Attr{}, left, right)
		shape := slices.Clone(product.Shape())
		if y == 1 {
			shape = shape[:len(shape)-1]
		}
		if x == 1 {
			at := len(shape) - 1
			if y > 1 {
				at--
			}
			shape = slices.Delete(shape, at, at+1)
		}
		return b.Structural(Reshape, Attr{Shape: shape}, product)
	},
})

// product plans the product of the first two operands, except for its kernel.
func (p *Plan) product(name string) {
	a, b := p.In[0], p.In[1]
	if len(a.Shape) < 1 || len(b.Shape) < 1 || len(a.Shape)+len(b.Shape) < 3 {
		p.wrong(name, MistakeRank+" (of two vectors there is Dot)", 2)
	}
	if a.Shape[len(a.Shape)-1] != b.Shape[max(len(b.Shape)-2, 0)] {
		p.wrong(name, MistakeMatMul, 2)
	}
	x, y := a.matrices(0), b.matrices(1)
	batch, ok := Broadcast(x.Shape[:len(x.Shape)-2], y.Shape[:len(y.Shape)-2])
	if !ok {
		p.wrong(name, MistakeBroadcast, 2)
	}
	m, k, n := x.rows(), x.columns(), y.columns()
	p.Shape = batch
	if len(a.Shape) > 1 {
		p.Shape = append(p.Shape, m)
	}
	if len(b.Shape) > 1 {
		p.Shape = append(p.Shape, n)
	}
	if len(y.Shape) == 2 && len(batch) > 0 {
		// All rows are multiplied by the same matrix: plan one product, if the rows lie evenly in memory.
		rows := device.Shape{m * batch.Size(), k}
		if strides, ok := x.reshape(rows); ok {
			x, batch, m = View{Shape: rows, Strides: strides}, nil, rows[0]
		}
	}
	args := &device.Args{Shape: slices.Clone(batch), Ints: []int{m, n, k}}
	args.Strides[1], args.Strides[2] = x.productStrides(batch), y.productStrides(batch)
	p.DType = p.Types[0]
	p.Cmd = device.Command{N: p.Shape.Size(), Args: args}
	p.Cost = int64(p.Cmd.N) * int64(k) / 4
}

// matrices returns v with at least two axes: a vector gets another axis of length 1, before (at 0) or
// after (at 1) its own.
func (v View) matrices(at int) View {
	if len(v.Shape) > 1 {
		return v
	}
	return View{Shape: slices.Insert(slices.Clone(v.Shape), at, 1), Strides: slices.Insert(slices.Clone(v.steps()), at, 0)}
}

func (v View) rows() int    { return v.Shape[len(v.Shape)-2] }
func (v View) columns() int { return v.Shape[len(v.Shape)-1] }

// productStrides returns the strides of matrices v over the axes of a batch, over rows and over columns.
func (v View) productStrides(batch device.Shape) []int {
	strides := v.BroadcastStrides(append(slices.Clone(batch), v.rows(), v.columns()))
	steps := v.steps()
	copy(strides[len(batch):], steps[len(steps)-2:])
	return strides
}

// flip exchanges the last two axes.
func flip(b Builder, x Value) Value {
	axes := make([]int, len(x.Shape()))
	for i := range axes {
		axes[i] = i
	}
	n := len(axes)
	axes[n-2], axes[n-1] = n-1, n-2
	return b.Structural(Transpose, Attr{Axes: axes}, x)
}

// matMulGradient is the VJP of MatMul for operands with more than two axes.
func matMulGradient(b Builder, x, y Value, i int, g Value, matMul func(x, y Value) Value) Value {
	reshape := func(x Value, shape device.Shape) Value { return b.Structural(Reshape, Attr{Shape: shape}, x) }
	xs, ys, gs := x.Shape(), y.Shape(), slices.Clone(g.Shape())
	left, right := slices.Clone(xs), slices.Clone(ys)
	if len(xs) == 1 {
		left = device.Shape{1, xs[0]}
		gs = slices.Insert(gs, len(gs)-1, 1)
	}
	if len(ys) == 1 {
		right = device.Shape{ys[0], 1}
		gs = append(gs, 1)
	}
	x, y, g = reshape(x, left), reshape(y, right), reshape(g, gs)
	if i == 0 {
		return reshape(Unbroadcast(b, matMul(g, flip(b, y)), left), xs)
	}
	if len(right) == 2 { // y is the same for all: one product over more rows sums over the batch
		rows := func(x Value) Value {
			s := x.Shape()
			return reshape(x, device.Shape{s[:len(s)-1].Size(), s[len(s)-1]})
		}
		return reshape(matMul(flip(b, rows(x)), rows(g)), ys)
	}
	return Unbroadcast(b, matMul(flip(b, x), g), ys)
}
