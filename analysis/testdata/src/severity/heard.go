package severity

import (
	"iter"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Listeners who hear each value, and say whether to go on.

func untilEnough(net nn.Module, x *tensor.Tensor, enough func(float64) bool) (n int) {
	net = nn.Frozen(net)
	for more := true; more; n++ {
		y := net.Forward(x)
		more = !enough(y.Item())
		x = tensor.Concat(1, x.Slice(1, 1, 8), y)
	}
	return n
}

type feed struct {
	net    nn.Module
	accept func(level float64, at int) bool
}

func (f *feed) run(x *tensor.Tensor) {
	net := nn.Frozen(f.net)
	for i := 0; ; i++ {
		x = net.Forward(x)
		if !f.accept(x.Mean().Item(), i) {
			return
		}
	}
}

func listened(net nn.Module, x *tensor.Tensor, n int, show func([]float32) (stop bool)) {
	net = nn.Frozen(net)
	for range n {
		x = net.Forward(x)
		if show(x.Float32s()) {
			break
		}
	}
}

// Listeners whom nobody asks, who hear of items that don't depend on each other, or of training.

func toldEach(net nn.Module, x *tensor.Tensor, n int, tell func(float64)) {
	net = nn.Frozen(net)
	for range n {
		x = net.Forward(x)
		tell(x.Item()) // want `AT001`
	}
}

func independent(net nn.Module, xs []*tensor.Tensor, enough func(float64) bool) {
	net = nn.Frozen(net)
	for _, x := range xs {
		y := net.Forward(x)
		if enough(y.Item()) { // want `AT001`
			break
		}
	}
}

func draw() float64 { return tensor.Randn(3).Sum().Item() }

func drawn(n int, enough func(float64) bool) {
	for range n {
		if enough(draw()) { // want `AT010`
			break
		}
	}
}

func fitted(opt *optim.Optimizer, net nn.Module, xs, ys []*tensor.Tensor, enough func(float64) bool) {
	for i, x := range xs {
		loss := nn.MSELoss(net.Forward(x), ys[i])
		opt.Minimize(loss)
		if enough(loss.Item()) { // want `AT001`
			break
		}
	}
}

func values(net nn.Module, x *tensor.Tensor) iter.Seq[float64] {
	net = nn.Frozen(net)
	return func(yield func(float64) bool) {
		for {
			x = net.Forward(x)
			if !yield(x.Item()) { // want `AT012`
				return
			}
		}
	}
}

// A reader who gets each token as a number, which was read as another.
func spoken(net nn.Module, x *tensor.Tensor, end int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		net := nn.Frozen(net)
		for {
			token := net.Forward(x).ArgMax(1)
			id := token.MulScalar(1).Item()
			if int64(id) == end || !yield(int64(id)) {
				return
			}
			x = net.Forward(token)
		}
	}
}
