package op

import (
	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A product of rows and a matrix, with a vector added and perhaps ReLU applied, in one command. The
// operands are the rows, the matrix, and a vector that is added to each row of the product. The bits
// are those of MatMul, Add and ReLU. They are for devices that promise that, see
// device.Caps.Epilogues.
var (
	Linear = define(&Def{Name: "Linear", Types: FullFloats, Unlisted: true, Saves: 1<<0 | 1<<1,
		Run: linear("Linear", func(sum *kernel.Expr) *kernel.Expr { return sum }),
		VJP: linearVJP,
	})
	LinearReLU = define(&Def{Name: "LinearReLU", Types: FullFloats, Unlisted: true, Saves: 1<<0 | 1<<1 | SavesResult,
		Run: linear("LinearReLU", func(sum *kernel.Expr) *kernel.Expr { return ReLU.Expr(sum) }),
		VJP: func(b Builder, c *Call, i int, g Value) Value {
			relu := ReLU.Gradient(0) // a function of the result and g
			return linearVJP(b, c, i, b.Elementwise(relu.Def, [2]float64{}, c.Out, g))
		},
	})
)

func init() { // not in the literals: the rules use the operations
	Linear.Batch, LinearReLU.Batch = linearBatch, linearBatch
}

// linear returns Def.Run of an operation that applies f to the sum of the product and the vector.
func linear(name string, f func(sum *kernel.Expr) *kernel.Expr) func(*Plan) {
	kernels := &kernelsByType{}
	return func(p *Plan) {
		w, v := p.In[1], p.In[2]
		if len(w.Shape) != 2 {
			p.wrong(name, MistakeRank, 3)
		}
		p.product(name)
		if n := w.columns(); len(v.Shape) != 1 || v.Shape[0] != n {
			p.wrong(name, MistakeBias, 3)
		}
		p.Cmd.Args.Strides[3] = v.Strides
		dt := p.DType
		p.Cmd.Kernel = kernels.of(dt, func() *device.Kernel {
			return device.NewKernel(name, device.MatMul, f(kernel.Add(kernel.Arg(0, dt), kernel.Arg(1, dt))), dt, dt, dt, dt)
		})
	}
}

// linearVJP is the VJP of Linear: the gradient of MatMul and, for the vector, that of Add.
func linearVJP(b Builder, c *Call, i int, g Value) Value {
	if i == 2 {
		return Unbroadcast(b, g, c.In[2].Shape())
	}
	return MatMul.VJP(b, &Call{Def: MatMul, In: c.In}, i, g)
}

// linearBatch is the batching rule. If the matrix or the vector differs between examples, it
// multiplies, adds and applies ReLU in separate operations.
func linearBatch(b Builder, s *Batch) Value {
	if s.rank(1) != 2 {
		s.wrong(MistakeRank)
	}
	if s.Has == 1 {
		return b.Structural(s.Def, Attr{}, s.In...)
	}
	var product Value
	if s.Has&3 == 0 {
		product = b.Structural(MatMul, Attr{}, s.In[:2]...)
	} else {
		product = Batched(b, &Batch{Def: MatMul, In: s.In[:2], Has: s.Has & 3, N: s.N})
	}
	v, rank := s.In[2], s.rank(0)
	if s.rank(2) != 1 || v.Shape()[len(v.Shape())-1] != product.Shape()[len(product.Shape())-1] {
		s.wrong(MistakeBias)
	}
	if s.has(2) {
		v = leading(b, v, rank)
	}
	y := b.Elementwise(Add, [2]float64{}, product, v)
	if s.Def == LinearReLU {
		y = b.Elementwise(ReLU, [2]float64{}, y)
	}
	return y
}
