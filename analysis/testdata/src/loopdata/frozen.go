package loopdata

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type student struct{ teacher, net nn.Module }

func (s *student) targets(xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		t := nn.Frozen(s.teacher) // want `nn.Frozen\(s.teacher\) freezes the same weights in each iteration; freeze them before the loop \[AT025\]`
		ys = append(ys, t.Forward(x))
	}
	for _, x := range xs {
		ys = append(ys, nn.Frozen(s.teacher).Forward(x)) // want `freezes the same weights`
	}
	return ys
}

func (s *student) train(xs []*tensor.Tensor) {
	opt := optim.SGD(s.net.Params(), 0.1)
	for i, x := range xs {
		old := nn.Frozen(s.net) // it learns
		opt.Minimize(nn.MSELoss(s.net.Forward(x), old.Forward(x)))
		if i%100 == 0 {
			s.teacher = nn.Frozen(s.net)
		}
	}
}

func ensemble(nets []nn.Module, x *tensor.Tensor) (ys []*tensor.Tensor) {
	for _, net := range nets {
		f := nn.Frozen(net) // another one
		ys = append(ys, f.Forward(x))
	}
	return ys
}

func gains(x *tensor.Tensor, bs []*tensor.Tensor) (ks []*tensor.Tensor) {
	for _, b := range bs {
		ks = append(ks, x.Inverse().MatMul(b)) // want `x.Inverse\(\) makes the same tensor in each iteration`
	}
	return ks
}
