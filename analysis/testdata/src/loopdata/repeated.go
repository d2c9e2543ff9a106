package loopdata

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// What a network computes of the same input, where nothing trains it.
func styled(features nn.Module, goal *tensor.Tensor, n int) {
	own := nn.Dense(2)
	opt := optim.SGD(own.Params(), 0.1)
	for range n {
		want := features.Forward(goal) // want `features.Forward\(goal\) computes the same in each iteration, as nothing trains the network there; compute it before the loop`
		opt.Minimize(nn.MSELoss(own.Forward(goal), want))
	}
	all := optim.SGD(append(own.Params(), features.Params()...), 0.1)
	for range n {
		want := features.Forward(goal) // it is trained, too
		all.Minimize(nn.MSELoss(own.Forward(goal), want))
	}
	for range n {
		want := features.Forward(goal) // who knows what step does
		step(opt, features, nn.MSELoss(own.Forward(goal), want))
	}
}

func step(opt *optim.Optimizer, net nn.Module, loss *tensor.Tensor) {
	opt.Minimize(loss)
	net.Params()[0].Set(net.Params()[0].Value().MulScalar(0.9))
}

func compared(net nn.Module, goal *tensor.Tensor, xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	frozen := nn.Frozen(net)
	for _, x := range xs {
		ys = append(ys, frozen.Forward(x).Sub(frozen.Forward(goal))) // want `frozen.Forward\(goal\) computes the same in each iteration`
	}
	for range xs {
		ys = append(ys, net.Forward(goal)) // another one each time, by Dropout
	}
	for range xs {
		frozen.Forward(goal) // to warm up
	}
	return ys
}
