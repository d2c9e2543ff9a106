package history

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type memory struct{ h, c *tensor.Tensor }

type reader struct {
	cell, out nn.Module
	state     *tensor.Tensor
	last      memory
	opt       *optim.Optimizer
}

func (r *reader) run(x, h *tensor.Tensor) (scores, next *tensor.Tensor) {
	next = r.cell.Forward(x.Add(h))
	return r.out.Forward(next), next
}

func (r *reader) both(x *tensor.Tensor, m memory) (*tensor.Tensor, memory) {
	h := r.cell.Forward(x.Add(m.h))
	return r.out.Forward(h), memory{h, h.Add(m.c)}
}

// Windows of a long text, with a state that goes from one to the next.
func (r *reader) windows(xs []*tensor.Tensor, h *tensor.Tensor, m memory) {
	opt := optim.SGD(nn.Params(r), 0.1)
	state := h
	for _, x := range xs {
		scores, next := r.run(x, state)
		opt.Minimize(scores.Mean())
		state = next // want `state keeps the history of every step before, which each step has differentiated; assign next without it, by Detach \[AT023\]`
	}
	for _, x := range xs {
		scores, next := r.both(x, m)
		loss := scores.Mean()
		loss.Backward()
		opt.Step()
		m = next // want `m keeps the history of every step before`
	}
	for _, x := range xs {
		scores, next := r.run(x, h)
		opt.Minimize(scores.Mean())
		h = next.Detach() // silent
	}
	for _, x := range xs {
		scores, next := r.both(x, m)
		opt.Minimize(scores.Mean())
		m = memory{next.h.Detach(), next.c.Detach()}
	}
}

// cut cuts the history of a state in a function, or now and then.
func (r *reader) cut(xs []*tensor.Tensor, h *tensor.Tensor, start memory) {
	opt := optim.SGD(nn.Params(r), 0.1)
	m := start
	for _, x := range xs {
		scores, next := r.both(x, m)
		opt.Minimize(scores.Mean())
		m = next
		m.forget()
	}
	// One step for several inputs: the gradient goes through all of them.
	sum := tensor.Zeros()
	state := h
	for i, x := range xs {
		scores, next := r.run(x, state)
		sum = sum.Add(scores.Mean())
		state = next
		if i%8 == 7 {
			opt.Minimize(sum)
			state, sum = state.Detach(), tensor.Zeros()
		}
	}
}

func (m *memory) forget() { m.h, m.c = m.h.Detach(), m.c.Detach() }

// step keeps the state in a field.
func (r *reader) step(x *tensor.Tensor) {
	scores, next := r.run(x, r.state)
	r.opt.Minimize(scores.Mean())
	r.state = next // want `state keeps the history of every step before`
}

// learn takes a step and returns the state after it.
func (r *reader) learn(x, h *tensor.Tensor) *tensor.Tensor {
	scores, next := r.run(x, h)
	r.opt.Minimize(scores.Mean())
	return next
}

func (r *reader) all(xs []*tensor.Tensor) {
	h := tensor.Zeros(8)
	for _, x := range xs {
		h = r.learn(x, h) // want `h keeps the history of every step before`
	}
	frozen := nn.Frozen(r)
	for _, x := range xs {
		_, h = frozen.run(x, h) // silent
	}
}

// A listener computes its state anew in each call.
type listener struct {
	cell  nn.Module
	state *tensor.Tensor
	quiet *tensor.Tensor
}

func newListener() *listener {
	l := &listener{cell: nn.Dense(8)}
	optim.SGD(l.cell.Params(), 0.1)
	return l
}

func (l *listener) hear(x *tensor.Tensor) int64 {
	l.state = l.cell.Forward(x.Add(l.state)) // want `state keeps the history of every call before, and nothing is differentiated through it`
	return l.state.ArgMax(0).ItemInt()
}

func (l *listener) hearQuietly(x *tensor.Tensor) int64 {
	l.quiet = l.cell.Forward(x.Add(l.quiet)).Detach()
	return l.quiet.ArgMax(0).ItemInt()
}

// A tensor that is tracked before the loop stays so.
func slide(f func(*tensor.Tensor) *tensor.Tensor, start *tensor.Tensor, n int) *tensor.Tensor {
	x := start.Track()
	for range n {
		x = x.Sub(tensor.Grad(f(x), x)[0].Detach().MulScalar(0.1)) // want `x keeps the history of every iteration before`
	}
	return x.Detach()
}

// Of a descent that is differentiated itself, the history is what counts.
func inner(f func(*tensor.Tensor) *tensor.Tensor, start *tensor.Tensor, n int) *tensor.Tensor {
	x := start.Track()
	for range n {
		x = x.Sub(tensor.Grad(f(x), x)[0].MulScalar(0.1))
	}
	return x
}

// A number by which a tensor is made is no index of a layer.
func denoise(net, times nn.Module, x *tensor.Tensor, n int) []float32 {
	for t := range n {
		x = x.Sub(net.Forward(x.Add(times.Forward(tensor.Ones(4, t+1))))) // want `x keeps the history of every iteration before`
	}
	return x.Float32s()
}

// Two players, each with a step of its own.
type players struct {
	maker, judge nn.Module
	make, hone   *optim.Optimizer
}

func newPlayers() *players {
	p := &players{maker: nn.Dense(8), judge: nn.Dense(1)}
	p.make, p.hone = optim.SGD(p.maker.Params(), 0.1), optim.SGD(p.judge.Params(), 0.1)
	return p
}

func (p *players) round(z, x *tensor.Tensor) {
	honed := p.judge.Forward(x).Mean().Sub(p.judge.Forward(p.maker.Forward(z)).Mean()) // want `gradients go through p.maker, but the step doesn't train it`
	p.hone.Minimize(honed)
	made := p.judge.Forward(p.maker.Forward(z)).Mean() // silent: through both
	p.make.Minimize(made)
	critique := p.judge.Forward(p.maker.Forward(z)).Mean() // want `gradients go through p.maker, but the step`
	p.hone.ZeroGrad()
	critique.Backward()
	p.hone.Step()
	both := p.judge.Forward(p.maker.Forward(z)).Mean() // silent: one pass for two steps
	both.Backward()
	p.make.Step()
	p.hone.Step()
}

// A network that evaluates, once frozen and once not.
func accuracies(net nn.Module, xs, ys []*tensor.Tensor) (right []*tensor.Tensor) {
	frozen := nn.Frozen(net)
	for i, x := range xs {
		right = append(right, frozen.Forward(x).ArgMax(1).Eq(ys[i]))
		right = append(right, net.Forward(x).ArgMax(1).Eq(ys[i])) // want `net.Forward\(x\) keeps what a gradient needs, and behaves as in training, but is only read; use nn.Frozen\(net\)`
	}
	return right
}

func accuracy(net nn.Module, xs, ys []*tensor.Tensor) (right []*tensor.Tensor) {
	net = nn.Frozen(net)
	for i, x := range xs {
		right = append(right, net.Forward(x).ArgMax(1).Eq(ys[i]))
	}
	return right
}

// A state of several tensors that only chooses: no gradient goes through it.
func (r *reader) babble(x *tensor.Tensor, n int) []int64 {
	opt := optim.SGD(r.cell.Params(), 0.1)
	opt.ZeroGrad()
	m := memory{tensor.Zeros(8), tensor.Zeros(8)}
	var out []*tensor.Tensor
	for range n {
		y, next := r.both(x, m)
		m = next // want `m keeps the history of every iteration before, and nothing is differentiated through it`
		x = y.ArgMax(0)
		out = append(out, x)
	}
	return tensor.Concat(0, out...).Int64s()
}

func (r *reader) listen(x *tensor.Tensor) int64 {
	y, next := r.both(x, r.last)
	r.last = next // want `last keeps the history of every call before`
	return y.ArgMax(0).ItemInt()
}

// unroll differentiates through the states of all steps, once.
func (r *reader) unroll(xs []*tensor.Tensor, m memory) {
	sum := tensor.Zeros()
	for _, x := range xs {
		y, next := r.both(x, m)
		m = next
		sum = sum.Add(y.Mean())
	}
	r.opt.Minimize(sum)
}

func (r *reader) end(xs []*tensor.Tensor) memory {
	m := memory{tensor.Zeros(8), tensor.Zeros(8)}
	for _, x := range xs {
		_, m = r.both(x, m) // the caller may differentiate
	}
	return m
}

// A target that the network itself is a part of.
func (p *players) predict(x, next, reward *tensor.Tensor, gamma float64) {
	opt := optim.SGD(p.judge.Params(), 0.1)
	best := p.judge.Forward(next).Max(1)
	want := reward.Add(best.MulScalar(gamma)) // want `gradients go through p.judge.Forward\(next\), which is a part of what p.judge is to predict; use Detach`
	opt.Minimize(nn.MSELoss(p.judge.Forward(x).Max(1), want))

	cut := reward.Add(p.judge.Forward(next).Max(1).Detach().MulScalar(gamma))
	opt.Minimize(nn.MSELoss(p.judge.Forward(x).Max(1), cut))

	opt.Minimize(nn.MSELoss(p.judge.Forward(x), p.judge.Forward(next))) // two views of one thing

	own := reward.Add(p.maker.Forward(next).Detach())
	opt.Minimize(nn.MSELoss(p.judge.Forward(x), own))
}

// Wasserstein trains both that it is given, so neither is frozen.
func Wasserstein(maker, judge nn.Module, xs []*tensor.Tensor) {
	make, hone := optim.SGD(maker.Params(), 0.1), optim.SGD(judge.Params(), 0.1)
	for _, x := range xs {
		fake := maker.Forward(tensor.Randn(8))
		honed := judge.Forward(fake).Sub(judge.Forward(x)).Mean() // want `gradients go through maker, but the step doesn't train it; use fake.Detach`
		hone.ZeroGrad()
		honed.Backward()
		hone.Step()
		make.Minimize(judge.Forward(maker.Forward(tensor.Randn(8))).Mean())
	}
}

// spoken only reads what the network makes of its state.
func spoken(r *reader, xs []*tensor.Tensor) (last float64) {
	var m memory
	for _, x := range xs {
		_, m = r.both(x, m) // want `m keeps the history of every iteration before, and nothing is differentiated through it; assign what Detach makes of it, or compute it with frozen layers`
		last = m.h.Item()
	}
	return last
}
