package nn

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Func returns a layer without parameters that computes f. It is called name where the model is
// printed, by a call if possible: "Row(0)". Parameters that f uses belong to no module: they are not
// listed, frozen or copied. f must only compute: what draws, counts or remembers is a [Module].
//
//	nn.Func("Transpose()", func(x *tensor.Tensor) *tensor.Tensor { return x.T() })
//
//asyncgen:api pure
func Func(name string, f func(x *tensor.Tensor) *tensor.Tensor) Module { return function{name, f} }

type function struct {
	name string
	f    func(x *tensor.Tensor) *tensor.Tensor
}

// Forward implements Module.
//
//go:noinline
func (l function) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	return l.f(x)
}

// String is the name of the function.
func (l function) String() string { return l.name }

// Params implements Module.
func (function) Params() []*Param { return nil }

// An activation is a function of this package, whose results nobody else has.
type activation struct{ function }

func (activation) isDiscreet() bool { return true }

func activate(f func(x *tensor.Tensor) *tensor.Tensor, format string, args ...any) Module {
	return activation{function{fmt.Sprintf(format, args...), f}}
}

// Sigmoid returns a layer without parameters that computes 1 / (1 + exp(-x)).
//
//asyncgen:api pure
func Sigmoid() Module { return activate((*tensor.Tensor).Sigmoid, "Sigmoid()") }

// Tanh returns a layer without parameters that computes tanh(x).
//
//asyncgen:api pure
func Tanh() Module { return activate((*tensor.Tensor).Tanh, "Tanh()") }

// GELU returns a layer without parameters that computes x · (1 + erf(x/√2)) / 2 (Hendrycks and Gimpel 2016).
//
//asyncgen:api pure
func GELU() Module { return activate((*tensor.Tensor).GELU, "GELU()") }

// SiLU returns a layer without parameters that computes x / (1 + exp(-x)), which is also called swish.
//
//asyncgen:api pure
func SiLU() Module { return activate((*tensor.Tensor).SiLU, "SiLU()") }

// Softmax returns a layer without parameters that computes the softmax along an axis, see
// [tensor.Tensor.Softmax]. [CrossEntropy] takes scores, without it.
//
//asyncgen:api pure
func Softmax(axis int) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.Softmax(axis) }, "Softmax(%d)", axis)
}

// LogSoftmax returns a layer without parameters that computes the logarithm of the softmax along an
// axis, see [tensor.Tensor.LogSoftmax].
//
//asyncgen:api pure
func LogSoftmax(axis int) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.LogSoftmax(axis) }, "LogSoftmax(%d)", axis)
}

// LeakyReLU returns a layer without parameters that multiplies numbers that are not positive by slope,
// such as 0.01 (Maas, Hannun and Ng 2013). At 0 the derivative is slope.
//
//asyncgen:api pure
func LeakyReLU(slope float64) Module { return withConstant(leakyReLU, slope, "LeakyReLU(%v)", slope) }

// PReLU is [LeakyReLU] with slopes that are learnt (He et al. 2015). If slopes is 1, all elements share
// one; otherwise each channel, along axis 1, has one. The slopes are a parameter called weight, a
// vector, and begin at 0.25.
//
//asyncgen:api pure
func PReLU(slopes int) Module {
	if slopes < 1 {
		wrong("PReLU", "%d slopes", slopes)
	}
	return &pReLU{slopes: slopes, weight: tensor.LazyParam(slopes)}
}

type pReLU struct {
	place
	slopes int
	weight *Param
}

// Forward implements Module.
//
//go:noinline
func (l *pReLU) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	if l.slopes > 1 && (x.Rank() < 2 || x.Dim(1) != l.slopes) {
		wrong("PReLU", "the input has shape %v, want [N C ...] with %d channels", x.Shape(), l.slopes)
	}
	if !l.weight.IsSet() {
		set(l.weight, nil, Constant(0.25), likeInput(x), l.slopes, l.slopes, l.slopes)
	}
	w := l.weight.Value()
	defer tensor.Dead(w)
	var slopes *tensor.Tensor
	if l.slopes == 1 {
		slopes = w.Row(0)
	} else {
		slopes = channels(w, x.Rank())
	}
	defer tensor.Dead(slopes)
	return leakyReLU.Of(x, slopes)
}

// String is the call that makes such a layer.
func (l *pReLU) String() string { return fmt.Sprintf("PReLU(%d)", l.slopes) }

func (l *pReLU) isDiscreet() bool { return true }

// Params implements Module.
func (l *pReLU) Params() []*Param { return Params(l) }

// HardSwish returns a layer without parameters that computes x · min(max(x+3, 0), 6) / 6 (Howard et al.
// 2019).
//
//asyncgen:api pure
func HardSwish() Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return hardSwish.Of(x) }, "HardSwish()")
}

// Identity returns a layer without parameters whose result is its input: a place for another layer.
//
//asyncgen:api pure
func Identity() Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return x.As(x.DType()) }, "Identity()")
}

// ELU returns a layer without parameters that computes alpha · (exp(x) - 1) where x is not positive,
// and x elsewhere (Clevert, Unterthiner and Hochreiter 2015).
//
//asyncgen:api pure
func ELU(alpha float64) Module { return withConstant(elu, alpha, "ELU(%v)", alpha) }

// Softplus returns a layer without parameters that computes log(1 + exp(x)). It does not overflow.
//
//asyncgen:api pure
func Softplus() Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return softplus.Of(x) }, "Softplus()")
}

// withConstant returns a layer that computes f of its input and a number.
func withConstant(f *tensor.Fused, c float64, format string, args ...any) Module {
	return activate(func(x *tensor.Tensor) *tensor.Tensor { return ofConstant(f, c, x) }, format, args...)
}

// ofConstant returns f of x and a number behind them.
func ofConstant(f *tensor.Fused, c float64, x ...*tensor.Tensor) *tensor.Tensor {
	number := likeInput(x[0]).Scalar(c)
	defer tensor.Dead(number)
	return f.Of(append(x[:len(x):len(x)], number)...)
}

var leakyReLU = tensor.Fuse("LeakyReLU", 2, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Where(kernel.Gt(x[0], number(0, x[0])), x[0], kernel.Mul(x[0], x[1]))
})

var hardSwish = tensor.Fuse("HardSwish", 1, func(x ...*kernel.Expr) *kernel.Expr {
	three := number(3, x[0])
	middle := kernel.Div(kernel.Mul(x[0], kernel.Add(x[0], three)), number(6, x[0]))
	above := kernel.Where(kernel.Ge(x[0], three), x[0], middle)
	return kernel.Where(kernel.Le(x[0], number(-3, x[0])), number(0, x[0]), above)
})

var elu = tensor.Fuse("ELU", 2, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Where(kernel.Gt(x[0], number(0, x[0])), x[0], kernel.Mul(x[1], kernel.Expm1(x[0])))
})

var softplus = tensor.Fuse("Softplus", 1, func(x ...*kernel.Expr) *kernel.Expr { return logOnePlusExp(x[0]) })

// logOnePlusExp is log(1 + exp(x)). Each branch is used where its exponential is at most 1, and the
// derivative at 0 is 1/2.
func logOnePlusExp(x *kernel.Expr) *kernel.Expr {
	return kernel.Where(kernel.Gt(x, number(0, x)), kernel.Add(x, kernel.Log1p(kernel.Exp(kernel.Neg(x)))), kernel.Log1p(kernel.Exp(x)))
}

// number is a constant of the type of x.
func number(v float64, x *kernel.Expr) *kernel.Expr { return kernel.Const(v, x.DType()) }

// Dropout returns a layer that in training replaces each element by 0 with probability p, and divides
// the others by 1-p (Srivastava et al. 2014). It draws from the default generator. [Frozen], it gives
// its input as it is:
//
//	validation := nn.Frozen(net).Forward(x)
//
//asyncgen:api pure
func Dropout(p float64) Module {
	if !(p >= 0 && p <= 1) {
		wrong("Dropout", "a probability of %v", p)
	}
	return &dropout{name: "Dropout", p: p}
}

// Dropout2D is [Dropout] of whole channels, which the first two axes of its input [N C ...] number
// (Tompson et al. 2014).
//
//asyncgen:api pure
func Dropout2D(p float64) Module {
	if !(p >= 0 && p <= 1) {
		wrong("Dropout2D", "a probability of %v", p)
	}
	return &dropout{name: "Dropout2D", whole: true, p: p}
}

type dropout struct {
	place
	stateless
	name  string
	whole bool // it drops channels
	p     float64
	mode  Mode
}

// Forward implements Module.
//
//go:noinline
func (l *dropout) Forward(x *tensor.Tensor) *tensor.Tensor {
	defer inLayer(l)
	shape := x.Shape()
	if l.whole {
		if len(shape) < 2 {
			wrong(l.name, "the input has shape %v, want [N C ...]", shape)
		}
		for i := range shape[2:] {
			shape[2+i] = 1
		}
	}
	if !l.mode.IsTraining() || l.p == 0 {
		return x.As(x.DType()) // a handle of its own
	}
	mustFloat(x)
	u := tensor.On(x.Device()).As(x.DType()).Rand(shape...)
	defer tensor.Dead(u)
	return ofConstant(dropped, l.p, x, u)
}

var dropped = tensor.Fuse("Dropout", 3, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Where(kernel.Lt(x[1], x[2]), number(0, x[0]), kernel.Div(x[0], kernel.Sub(number(1, x[0]), x[2])))
})

// String is the call that makes such a layer.
func (l *dropout) String() string { return fmt.Sprintf("%s(%v)", l.name, l.p) }
