package nn

import (
	"math"
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An Init says how the weights of a layer begin. Layers take it as an optional last argument:
//
//	nn.Dense(256, nn.Init{Weight: nn.KaimingNormal()})
//	nn.Conv2D(32, tensor.Both(3), tensor.Conv{}, nn.Init{NoBias: true})
type Init struct {
	Weight Initialiser // nil: what the layer's comment says
	Bias   Initialiser // nil: Zeros()
	NoBias bool        // the layer has no bias
}

// An Initialiser returns the first value of a parameter, of the given shape. It makes the value by on,
// which has the device and the element type. in is how many elements each result of the layer is a sum
// of, and out is how many results each element goes into: fan-in and fan-out.
//
// Those of this package draw from the default generator, when the layer sees its first input. They do
// not wait.
type Initialiser func(on tensor.Maker, in, out int, shape ...int) *tensor.Tensor

// Scaled returns an Initialiser whose numbers are c times as large. c is usually the gain of an
// activation: 5/3 for tanh, and 1/sqrt(1+slope²) for [LeakyReLU] after a Kaiming initialiser. PyTorch's
// default for Linear is KaimingUniform times sqrt(1/6).
//
//asyncgen:api pure
func (i Initialiser) Scaled(c float64) Initialiser {
	return func(on tensor.Maker, in, out int, shape ...int) *tensor.Tensor {
		x := i(on, in, out, shape...)
		y := x.MulScalar(c)
		tensor.Dead(x)
		return y
	}
}

// Zeros returns an Initialiser that sets all elements to 0.
//
//asyncgen:api pure
func Zeros() Initialiser { return Constant(0) }

// Ones returns an Initialiser that sets all elements to 1.
//
//asyncgen:api pure
func Ones() Initialiser { return Constant(1) }

// Constant returns an Initialiser that sets all elements to v.
//
//asyncgen:api pure
func Constant(v float64) Initialiser {
	return func(on tensor.Maker, _, _ int, shape ...int) *tensor.Tensor { return on.Full(v, shape...) }
}

// Uniform returns an Initialiser that draws uniformly from lo to hi.
//
//asyncgen:api pure
func Uniform(lo, hi float64) Initialiser {
	return func(on tensor.Maker, _, _ int, shape ...int) *tensor.Tensor { return on.Uniform(lo, hi, shape...) }
}

// Normal returns an Initialiser that draws from the normal distribution with the given mean and
// standard deviation.
//
//asyncgen:api pure
func Normal(mean, deviation float64) Initialiser {
	return func(on tensor.Maker, _, _ int, shape ...int) *tensor.Tensor {
		return moved(on.Randn(shape...), mean, deviation)
	}
}

// TruncatedNormal is [Normal] without what is more than two standard deviations from the mean. Its own
// standard deviation is 0.88 times as large.
//
//asyncgen:api pure
func TruncatedNormal(mean, deviation float64) Initialiser {
	return func(on tensor.Maker, _, _ int, shape ...int) *tensor.Tensor {
		u := on.Uniform(-withinTwo, withinTwo, shape...)
		x := inverseErf.Of(u)
		tensor.Dead(u)
		return moved(x, mean, deviation*math.Sqrt2)
	}
}

// moved returns x times scale plus shift, and lets go of x.
func moved(x *tensor.Tensor, shift, scale float64) *tensor.Tensor {
	scaled := x.MulScalar(scale)
	y := scaled.AddScalar(shift)
	tensor.Dead(x, scaled)
	return y
}

// withinTwo is the probability that a number drawn from a normal distribution is within two standard
// deviations of its mean.
var withinTwo = math.Erf(math.Sqrt2)

// inverseErf is the inverse of erf for numbers from -withinTwo to withinTwo, with a relative error
// below 1e-6. It is the branch for numbers that are not near 1 in M. Giles, Approximating the erfinv
// function (GPU Computing Gems, 2011).
var inverseErf = tensor.Fuse("inverseErf", 1, func(x ...*kernel.Expr) *kernel.Expr {
	w := kernel.Sub(kernel.Neg(kernel.Log1p(kernel.Neg(kernel.Mul(x[0], x[0])))), number(2.5, x[0]))
	sum := number(2.81022636e-08, x[0])
	for _, c := range []float64{3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941} {
		sum = kernel.Add(kernel.Mul(sum, w), number(c, x[0]))
	}
	return kernel.Mul(sum, x[0])
})

// Orthogonal returns an Initialiser of matrices with orthogonal rows or columns of length 1, whichever are
// fewer: the first axis of a parameter against all others (Saxe, McClelland and Ganguli 2014). The host computes
// it, in the queue.
//
//asyncgen:api pure
func Orthogonal() Initialiser {
	return func(on tensor.Maker, _, _ int, shape ...int) *tensor.Tensor {
		rows, columns := 1, 1
		if len(shape) > 0 {
			rows = shape[0]
			for _, n := range shape[1:] {
				columns *= n
			}
		}
		x := on.Randn(max(rows, columns), min(rows, columns))
		q, r := x.QR()
		diagonal := r.Diagonal(0)
		signs := diagonal.Sign() // so that all such matrices are equally likely
		m := q.Mul(signs)
		tensor.Dead(x, q, r, diagonal, signs)
		defer func() { tensor.Dead(m) }()
		if rows < columns {
			turned := m.T()
			tensor.Dead(m)
			m = turned
		}
		return m.Reshape(shape...)
	}
}

// XavierUniform returns an Initialiser that draws uniformly from -r to r with r = sqrt(6/(in+out))
// (Glorot and Bengio 2010).
//
//asyncgen:api pure
func XavierUniform() Initialiser {
	return uniformTo(func(in, out int) float64 { return 6 / float64(max(in+out, 1)) })
}

// XavierNormal returns an Initialiser that draws from the normal distribution with mean 0 and variance
// 2/(in+out) (Glorot and Bengio 2010).
//
//asyncgen:api pure
func XavierNormal() Initialiser {
	return normalOf(func(in, out int) float64 { return 2 / float64(max(in+out, 1)) })
}

// KaimingUniform returns an Initialiser that draws uniformly from -r to r with r = sqrt(6/in), for
// layers before a [ReLU] (He et al. 2015).
//
//asyncgen:api pure
func KaimingUniform() Initialiser {
	return uniformTo(func(in, _ int) float64 { return 6 / float64(max(in, 1)) })
}

// KaimingNormal returns an Initialiser that draws from the normal distribution with mean 0 and variance
// 2/in, for layers before a [ReLU] (He et al. 2015).
//
//asyncgen:api pure
func KaimingNormal() Initialiser {
	return normalOf(func(in, _ int) float64 { return 2 / float64(max(in, 1)) })
}

// uniformTo draws uniformly between the roots of square.
func uniformTo(square func(in, out int) float64) Initialiser {
	return func(on tensor.Maker, in, out int, shape ...int) *tensor.Tensor {
		r := math.Sqrt(square(in, out))
		return on.Uniform(-r, r, shape...)
	}
}

// normalOf draws from the normal distribution with mean 0 and the given variance.
func normalOf(variance func(in, out int) float64) Initialiser {
	return func(on tensor.Maker, in, out int, shape ...int) *tensor.Tensor {
		return moved(on.Randn(shape...), 0, math.Sqrt(variance(in, out)))
	}
}

// optional returns the optional argument of the function with the given name, or a zero one.
func optional[T any](name string, how []T) (one T) {
	switch {
	case len(how) > 1:
		wrong(name, "%d times %T, want one at most", len(how), one)
	case len(how) == 1:
		return how[0]
	}
	return one
}

// params returns a Param for the weight, and one for the bias unless there is to be none.
func (i Init) params(weight, bias []int) (w, b *Param) {
	if !i.NoBias {
		b = tensor.LazyParam(bias...)
	}
	return tensor.LazyParam(weight...), b
}

// areSet reports whether all parameters that are not nil have values. Those that were read from a file may have theirs
// before the others of a layer.
func areSet(params ...*Param) bool {
	return !slices.ContainsFunc(params, func(p *Param) bool { return p != nil && !p.IsSet() })
}

// words are what a layer says of i behind its other arguments.
func (i Init) words() string {
	if i.NoBias {
		return ", NoBias"
	}
	return ""
}

// set gives p, which may be nil or have a value already, a first value of the given shape, made by
// what; if what is nil, by otherwise.
func set(p *Param, what, otherwise Initialiser, on tensor.Maker, in, out int, shape ...int) {
	if p == nil || p.IsSet() {
		return
	}
	if what == nil {
		what = otherwise
	}
	x := what(on, in, out, shape...)
	if !x.Shape().Equal(device.Shape(shape)) {
		wrong("Init", "the Initialiser has made the shape %v, want %v", x.Shape(), shape)
	}
	p.Set(x)
	tensor.Dead(x)
}

// likeInput is like for what a layer computes with beside its input x. It panics if x has other numbers than
// floating-point ones.
func likeInput(x *tensor.Tensor) tensor.Maker {
	mustFloat(x)
	return like(x)
}

// mustFloat panics unless x, the input of a layer, has floating-point numbers: images, for one, are often uint8.
func mustFloat(x *tensor.Tensor) {
	if !x.DType().IsFloat() {
		wrong("Forward", "the input is %v, want floating-point numbers: convert with As", x.DType())
	}
}

// like makes tensors such as x: on its device, in its element type, in no scope.
func like(x *tensor.Tensor) tensor.Maker { return tensor.On(x.Device().Unscoped()).As(x.DType()) }
