package nn

import (
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// normEps is what layers add to variances.
const normEps = 1e-5

// LayerNorm returns a layer that normalises its input along the last axis, of each sample alone:
// see [tensor.Tensor.LayerNorm], with an eps of 1e-5. The gain, 1 at first, and the bias, 0 at
// first, are parameters: vectors as long as that axis of the first input that Forward gets, on its
// device and in its element type.
//
//asyncgen:api pure
func LayerNorm() Module { return &layerNorm{gain: NewParam(nil), bias: NewParam(nil)} }

type layerNorm struct {
	gain *Param `nn:"weight"`
	bias *Param
}

// Forward implements Module.
//
//go:noinline
func (l *layerNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !l.gain.IsSet() {
		setOnes("LayerNorm", l.gain, x)
		l.bias.Set(tensor.On(x.Device().Unscoped()).As(x.DType()).Zeros(x.Dim(-1)))
	}
	gain, bias := l.gain.Value(), l.bias.Value()
	y := x.LayerNorm(-1, normEps, gain, bias)
	tensor.Dead(gain, bias)
	return y
}

// String is the call that makes such a layer.
func (*layerNorm) String() string { return "LayerNorm()" }

func (l *layerNorm) isDiscreet() bool { return true }

// Params implements Module.
func (l *layerNorm) Params() []*Param { return Params(l) }

// RMSNorm returns a layer that divides its input by the root of the mean of the squares along the
// last axis, of each sample alone: see [tensor.Tensor.RMSNorm], with an eps of 1e-5. The gain, 1 at
// first, is a parameter like that of [LayerNorm].
//
//asyncgen:api pure
func RMSNorm() Module { return &rmsNorm{NewParam(nil)} }

type rmsNorm struct {
	gain *Param `nn:"weight"`
}

// Forward implements Module.
//
//go:noinline
func (l *rmsNorm) Forward(x *tensor.Tensor) *tensor.Tensor {
	if !l.gain.IsSet() {
		setOnes("RMSNorm", l.gain, x)
	}
	gain := l.gain.Value()
	y := x.RMSNorm(-1, normEps, gain)
	tensor.Dead(gain)
	return y
}

// String is the call that makes such a layer.
func (*rmsNorm) String() string { return "RMSNorm()" }

func (l *rmsNorm) isDiscreet() bool { return true }

// Params implements Module.
func (l *rmsNorm) Params() []*Param { return Params(l) }

// setOnes gives p ones for the last axis of x.
func setOnes(name string, p *Param, x *tensor.Tensor) {
	if x.Rank() == 0 {
		wrong(name, "the input is a number, want a vector for each sample")
	}
	p.Set(tensor.On(x.Device().Unscoped()).As(x.DType()).Ones(x.Dim(-1)))
}
