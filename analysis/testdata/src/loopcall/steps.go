package loopcall

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func lengthOfGrads(net nn.Module) float64 {
	var squares []*tensor.Tensor
	for _, p := range net.Params() {
		squares = append(squares, p.Grad().Square().Sum())
	}
	return tensor.Stack(0, squares...).Sum().Item()
}

// accumulated asks for the norm in each step of the optimiser, few as the iterations with one may be.
func accumulated(net nn.Module, opt *optim.Optimizer, data []Batch, every int) (norms []float64) {
	for i, b := range data {
		nn.MSELoss(net.Forward(b.X), b.Y).Backward()
		if (i+1)%every != 0 {
			continue
		}
		norms = append(norms, lengthOfGrads(net)) // want `AT010`
		opt.Step()
	}
	return norms
}

type whitened struct{ scale, kernel *tensor.Tensor }

// What is kept is made once.
func (s *whitened) apply(x *tensor.Tensor) *tensor.Tensor {
	if s.kernel == nil {
		s.kernel = x.MulScalar(x.Norm().Item())
	}
	return x.Mul(s.kernel)
}

func kept(s *whitened, all []*whitened, xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		ys = append(ys, s.apply(x.AddScalar(1)))
	}
	for i, x := range xs {
		y := x.AddScalar(1)
		if s.scale == nil {
			s.scale = x.MulScalar(lengthOf(y))
		}
		if all[i].scale == nil {
			all[i].scale = x.MulScalar(lengthOf(y)) // want `AT010`
		}
		ys = append(ys, y.Mul(s.scale))
	}
	return ys
}

func lengthOf(x *tensor.Tensor) float64 { return x.Norm().Item() }

// A function that takes many steps, and waits once.

type walker struct {
	x     *tensor.Tensor
	width float64
}

func (k *walker) walk(steps int) float64 {
	took := tensor.Zeros()
	for range steps {
		k.x = k.x.Add(tensor.RandnLike(k.x).MulScalar(k.width))
		took = took.Add(k.x.Norm())
	}
	return took.Item()
}

func (k *walker) tune(rounds int) {
	for range rounds {
		if k.walk(100) > 40 {
			k.width *= 1.2
		}
	}
	for range rounds {
		if k.walk(3) > 1 { // want `AT010`
			k.width *= 1.2
		}
	}
}

// Functions that join what there is to read it at once.

type limits struct{ low, high *tensor.Tensor }

func (l *limits) values() []float32 { return tensor.Stack(0, l.low, l.high).Float32s() }

func (l *limits) scaled() []float32 { return tensor.Stack(0, l.low, l.high).MulScalar(2).Float32s() }

func ranges(all []*limits, xs []*tensor.Tensor) (list [][]float32) {
	for _, l := range all {
		list = append(list, l.values())
	}
	for _, l := range all {
		list = append(list, l.scaled()) // want `AT010`
	}
	for i, l := range all {
		l.low = l.low.Add(xs[i])
		list = append(list, l.values()) // want `AT010`
	}
	return list
}
