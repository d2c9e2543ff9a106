package roundtrip

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type scaled struct {
	w     *nn.Param
	u     *tensor.Tensor
	debug bool
	worst float64
}

func (s *scaled) Params() []*nn.Param { return []*nn.Param{s.w} }

func (s *scaled) Forward(x *tensor.Tensor) *tensor.Tensor {
	top := x.Max().Item() // want `round trip in loop: x.Max\(\).Item\(\) waits for the device in each iteration, and its value goes back`
	for range 2 {
		s.u = s.u.MulScalar(1 / s.u.Norm().Item()) // want `AT003`
	}
	if s.debug {
		s.worst = x.Norm().Item()
		x = x.MulScalar(s.worst)
	}
	return x.MulScalar(1 / top)
}

func copies(from, to []*nn.Param) {
	for i, p := range to {
		p.Set(tensor.From(from[i].Value().Float32s())) // want `AT003`
	}
}

func cloned(ps []*nn.Param) (list []*tensor.Tensor) {
	for _, p := range ps {
		list = append(list, tensor.From(p.Value().Float32s(), 3)) // want `the elements go through the host and come back unchanged; a tensor never changes, so use it itself, or Detach`
	}
	return list
}

func weighted(xs, weights []*tensor.Tensor) *tensor.Tensor {
	sum := tensor.Zeros()
	for i, x := range xs {
		c := 1 - weights[i].Item() // want `round trip in loop: the value of weights\[i\].Item\(\) goes back into a tensor operation; use the tensor itself`
		sum = sum.Add(x.MulScalar(c))
	}
	return sum
}

type plain struct{}

func (plain) Forward(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(x.Max().Item()) } // want `round trip: x.Max\(\).Item\(\) waits for the device, and its value only goes back into tensor operations`

// Silent from here on.

func known(xs []*tensor.Tensor) *tensor.Tensor {
	weights := []*tensor.Tensor{tensor.Ones(1), tensor.Zeros(1), tensor.Ones(1), tensor.Ones(1), tensor.Ones(1)}
	sum := tensor.Zeros()
	for i, x := range xs {
		sum = sum.Add(x.MulScalar(weights[i].Item()))
	}
	return sum
}
