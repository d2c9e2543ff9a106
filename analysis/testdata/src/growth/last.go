package growth

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func keptStates(net nn.Module, xs []*tensor.Tensor, train func(*tensor.Tensor)) {
	var kept, all []nn.State
	var ys []*tensor.Tensor
	for _, x := range xs {
		train(x)
		kept = append(kept, nn.Snapshot(net)) // want `kept keeps all, and only the last is used; keep that one in a variable \[AT022\]`
		all = append(all, nn.Snapshot(net))
		ys = append(ys, net.Forward(x)) // want `ys keeps all, and only the last is used`
	}
	use(kept[len(kept)-1])
	use(all[len(all)/2])
	println(len(ys), ys[len(ys)-1].Item())
}

func use(nn.State) {}
