package history

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type forger struct {
	maker, judge nn.Module
	make, hone   *optim.Optimizer
}

func newForger() *forger {
	f := &forger{maker: nn.Dense(8), judge: nn.Dense(1)}
	f.make = optim.SGD(f.maker.Params(), 0.1)
	f.hone = optim.SGD(f.judge.Params(), 0.1)
	return f
}

func (f *forger) judged(z, x *tensor.Tensor) {
	fake := f.maker.Forward(z)
	f.hone.Minimize(f.judge.Forward(fake).Sub(f.judge.Forward(x)).Mean())  // want `gradients go through f.maker, but the step doesn't train it; use fake.Detach\(\), or nn.Frozen\(f.maker\) \[AT023\]`
	f.hone.Minimize(f.judge.Forward(f.maker.Forward(z)).Mean())            // want `but the step doesn't train it; use f.maker.Forward\(z\).Detach\(\)`
	f.hone.Minimize(f.judge.Forward(f.maker.Forward(z).Detach()).Mean())   // silent
	f.hone.Minimize(f.judge.Forward(nn.Frozen(f.maker).Forward(z)).Mean()) // silent
}

// The gradient has to go through the judge, and the maker is what is trained.
func (f *forger) made(z *tensor.Tensor) { f.make.Minimize(f.judge.Forward(f.maker.Forward(z)).Mean()) }

// evaluate uses a network in training.
func (f *forger) evaluate(xs []*tensor.Tensor) (labels []*tensor.Tensor) {
	for _, x := range xs {
		labels = append(labels, f.judge.Forward(x).ArgMax(1)) // want `f.judge.Forward\(x\) keeps what a gradient needs, and behaves as in training, but is only read; use nn.Frozen\(f.judge\)`
	}
	judge := nn.Frozen(f.judge)
	for _, x := range xs {
		labels = append(labels, judge.Forward(x).ArgMax(1))
	}
	f.judge.Forward(xs[0]) // gives it weights
	return labels
}

// An adapter adds to what a network computes that it doesn't train.
type adapter struct {
	Base nn.Module `nn:"-"`
	Head nn.Module
}

func (a *adapter) Forward(x *tensor.Tensor) *tensor.Tensor {
	return a.Head.Forward(a.Base.Forward(x)) // want `gradients go through a.Base.Forward\(x\), but a.Base is no part of what is trained; use nn.Frozen\(a.Base\)`
}

func (a *adapter) Params() []*nn.Param { return a.Head.Params() }

// A still one is made of what is frozen.
type still struct {
	Base nn.Module `nn:"-"`
	Head nn.Module
}

func newStill(base nn.Module) *still { return &still{nn.Frozen(base), nn.Dense(2)} }

func (s *still) Forward(x *tensor.Tensor) *tensor.Tensor { return s.Head.Forward(s.Base.Forward(x)) }

func (s *still) Params() []*nn.Param { return s.Head.Params() }

// Whole networks and their parts.
func fit(x *tensor.Tensor) {
	body, head := nn.Dense(8), nn.Dense(2)
	net := nn.Sequential(body, head)
	opt := optim.SGD(head.Params(), 0.1)
	opt.Minimize(net.Forward(x).Mean())
	other := nn.Dense(2)
	opt.Minimize(other.Forward(x).Sub(head.Forward(x)).Mean()) // want `gradients go through other, but the step`
}

// The results of Grad have a history. Track begins a new one.
func ascend(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, n int) *tensor.Tensor {
	for i := range n {
		leaf := x.Track()
		g := tensor.Grad(f(leaf), leaf)[0]
		x = x.Add(g.MulScalar(0.1 / float64(i+1))).Add(tensor.RandnLike(x)) // want `x keeps the history of every iteration before`
	}
	return x.Detach()
}

func climb(f func(*tensor.Tensor) *tensor.Tensor, start *tensor.Tensor, n int) *tensor.Tensor {
	x := start
	for range n {
		leaf := x.Track()
		g := tensor.Grad(f(leaf), leaf)[0]
		x = x.Add(g) // want `x keeps the history of g`
		y := x.Detach()
		_ = y
	}
	return x.Detach()
}

func descend(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		leaf := x.Track()
		x = x.Sub(tensor.Grad(f(leaf), leaf)[0].Detach())
	}
	return x.Detach()
}

// Players that have networks and their optimisers, all made by one function. Which network it was given, nobody knows.
type player struct {
	nn.Module
	opt *optim.Optimizer
}

func newPlayer(m nn.Module) *player { return &player{m, optim.SGD(m.Params(), 0.1)} }

type game struct{ maker, judge *player }

func newGame() *game { return &game{newPlayer(nn.Dense(8)), newPlayer(nn.Dense(1))} }

func (g *game) round(z, x *tensor.Tensor) {
	fake := g.maker.Forward(z)
	yes, no := g.judge.Forward(x), g.judge.Forward(fake.Detach())
	g.judge.opt.Minimize(yes.Sub(no).Mean())
	g.maker.opt.Minimize(g.judge.Forward(fake).Mean())
}
