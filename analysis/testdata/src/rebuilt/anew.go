package rebuilt

import (
	"github.com/asyncgen/asyncgen/runtime/data"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type set = data.Dataset[float32, int64]

func loaders(net nn.Module, s set, epochs int, folds []set) {
	opt := optim.Adam(net.Params(), 1e-3)
	for epoch := range epochs {
		loader := data.NewLoader(s, 32, data.Options{Shuffle: true, Seed: 1}) // want `data.NewLoader gives the same order in each epoch, as the order depends on the seed and on how many epochs the loader has had; make it once, before the loop \[AT034\]`
		for b := range loader.All() {
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
		other := data.NewLoader(s, 32, data.Options{Shuffle: true, Seed: uint64(epoch)}) // another order
		for b := range other.All() {
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
		inOrder := data.NewLoader(s, 32) // each epoch has the same one on purpose
		for b := range inOrder.All() {
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
	}
	for _, fold := range folds {
		loader := data.NewLoader(fold, 32, data.Options{Shuffle: true}) // another set
		for b := range loader.All() {
			opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
		}
	}
	for range 8 {
		fresh := nn.Dense(2)
		opt := optim.Adam(fresh.Params(), 1e-3)
		loader := data.NewLoader(s, 32, data.Options{Shuffle: true}) // for a model of its own
		for b := range loader.All() {
			opt.Minimize(nn.MSELoss(fresh.Forward(b.X), b.Y))
		}
	}
	for range 8 {
		loader := data.NewLoader(s, 32, data.Options{Shuffle: true})
		for range epochs {
			for b := range loader.All() {
				opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
			}
		}
	}
}

func epoch(net nn.Module, opt *optim.Optimizer, s set) {
	loader := data.NewLoader(s, 32, data.Options{Shuffle: true}) // want `data.NewLoader gives the same order in each epoch`
	for b := range loader.All() {
		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
	}
}

func seeded(net nn.Module, opt *optim.Optimizer, s set, seed int) {
	loader := data.NewLoader(s, 32, data.Options{Shuffle: true, Seed: uint64(seed)})
	for b := range loader.All() {
		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
	}
}

func tune(net nn.Module, s set) {
	opt := optim.Adam(net.Params(), 1e-3)
	loader := data.NewLoader(s, 32, data.Options{Shuffle: true})
	for b := range loader.All() {
		opt.Minimize(nn.MSELoss(net.Forward(b.X), b.Y))
	}
}

func train(net nn.Module, s set, n int) {
	opt := optim.Adam(net.Params(), 1e-3)
	for i := range n {
		epoch(net, opt, s)
		seeded(net, opt, s, i)
	}
	for range n {
		tune(nn.Dense(2), s)
	}
}

func optimisers(net nn.Module, xs []*tensor.Tensor) {
	for _, x := range xs {
		opt := optim.Adam(net.Params(), 1e-3) // want `optim.Adam begins anew in each step, without the moments of the steps before; make it once, before the loop`
		opt.Minimize(net.Forward(x).Mean())
	}
	for _, x := range xs {
		plain := optim.SGD(net.Params(), 1e-3) // remembers nothing
		plain.Minimize(net.Forward(x).Mean())
	}
	for _, x := range xs {
		opt := optim.Adam(net.Params(), 1e-3) // for many steps
		for range 100 {
			opt.Minimize(net.Forward(x).Mean())
		}
	}
	for _, x := range xs {
		once(net, x)
	}
}

func once(net nn.Module, x *tensor.Tensor) {
	opt := optim.Adam(net.Params(), 1e-3) // want `optim.Adam begins anew in each step`
	opt.ZeroGrad()
	net.Forward(x).Mean().Backward()
	opt.Step()
}
