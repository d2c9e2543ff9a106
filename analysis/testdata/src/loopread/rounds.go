package loopread

import (
	"sync"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Loops whose iterations each do many steps somewhere else.

type mixture struct{ mean, weight *tensor.Tensor }

func (m *mixture) step(x *tensor.Tensor) { m.mean = x.Sub(m.mean).Mul(m.weight).Mean(0) }

func (m *mixture) fit(x *tensor.Tensor, n int) {
	for range n {
		m.step(x)
	}
}

func (m *mixture) anneal(x *tensor.Tensor) {
	for t := 1.0; t > 0.01; t -= 0.01 {
		m.mean = m.mean.Add(x.MulScalar(t))
	}
}

func (m *mixture) score(x *tensor.Tensor) *tensor.Tensor { return x.Sub(m.mean).Norm() }

func restarts(x *tensor.Tensor, n int) (best *mixture) {
	top := 0.0
	for range n {
		m := &mixture{tensor.Randn(8), tensor.Ones(8)}
		m.fit(x, 500)
		if s := m.score(x).Item(); s > top { // once for each fit
			best, top = m, s
		}
	}
	for range n {
		m := &mixture{tensor.Randn(8), tensor.Ones(8)}
		m.anneal(x)
		top += m.score(x).Item()
	}
	for range n {
		m := &mixture{tensor.Randn(8), tensor.Ones(8)}
		m.step(x)
		top += m.score(x).Item() // want `AT001`
	}
	return best
}

func scores(m *mixture, data []*tensor.Tensor) (sum float64) {
	for _, x := range data { // a part of data in each iteration
		m.fit(x, 3)
		sum += m.score(x).Item() // want `AT001`
	}
	return sum
}

// Rounds of goroutines, and rounds that double.

type member struct {
	p    *nn.Param
	opt  *optim.Optimizer
	loss *tensor.Tensor
	last float64
}

func (m *member) train(xs []*tensor.Tensor) {
	for _, x := range xs {
		m.loss = m.p.Value().Mul(x).Mean()
		m.opt.Minimize(m.loss)
	}
}

type club struct{ members []*member }

func (c *club) round(xs []*tensor.Tensor) {
	var wg sync.WaitGroup
	for _, m := range c.members {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m.train(xs)
		}()
	}
	wg.Wait()
}

func (c *club) run(xs []*tensor.Tensor, rounds int) (sum float64) {
	for range rounds {
		c.round(xs)
		sum += tensor.Stack(0, c.members[0].loss, c.members[1].loss).Mean().Item()
	}
	return sum
}

// The group of a round may be started, and waited for, in the loop itself.
func (c *club) runHere(xs []*tensor.Tensor, rounds int) (sum float64) {
	for range rounds {
		var wg sync.WaitGroup
		for _, m := range c.members {
			wg.Go(func() { m.train(xs) })
		}
		wg.Wait()
		sum += tensor.Stack(0, c.members[0].loss, c.members[1].loss).Mean().Item()
	}
	return sum
}

// A group that trains for nothing but a step at a time makes no round of them.
func (c *club) runSteps(xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		var wg sync.WaitGroup
		for _, m := range c.members {
			wg.Go(func() { m.opt.Minimize(m.p.Value().Mul(x).Mean()) })
		}
		wg.Wait()
		sum += c.members[0].p.Value().Mul(x).Mean().Item() // want `AT001`
	}
	return sum
}

func halving(ms []*member, train func(m *member, n int) *tensor.Tensor) *member {
	for n := 100; len(ms) > 1; n *= 2 {
		losses := make([]*tensor.Tensor, len(ms))
		for i, m := range ms {
			losses[i] = train(m, n)
		}
		for i, v := range tensor.Stack(0, losses...).Float32s() {
			ms[i].last = float64(v)
		}
		ms = ms[:len(ms)/2]
	}
	return ms[0]
}

// Steps in chunks.
func chunks(m, x, b *tensor.Tensor, n int) (sum float64) {
	for k := 0; k < n; k += 50 {
		old := x
		for range 50 {
			x = m.MatMul(x).MulScalar(0.85).Add(b)
		}
		sum += x.Sub(old).Norm().Item()
	}
	return sum
}

// A reset of the weights is no step.
func sweep(p *nn.Param, x *tensor.Tensor, opts []*optim.Optimizer) (sum float64) {
	for i := range opts {
		p.Set(tensor.Zeros(8))
		var loss *tensor.Tensor
		for range 500 {
			loss = p.Value().Mul(x).Mean()
			opts[i].Minimize(loss)
		}
		sum += loss.Item()
	}
	return sum
}

// A ring that a pointer goes through.
func ringed(xs []*tensor.Tensor) (sum float64) {
	var ring [32]*tensor.Tensor
	for i, x := range xs {
		slot := &ring[i%len(ring)]
		if *slot != nil {
			sum += (*slot).Item()
		}
		*slot = x.Norm()
	}
	for i, x := range xs {
		slot := &ring[i%len(ring)]
		*slot = x.Norm()
		sum += (*slot).Item() // want `AT001`
	}
	return sum
}

func rates(fit func(rate float64) nn.Module, x *tensor.Tensor) (best float64) {
	low := 1e30
	for rate := 1e-6; rate < 1; rate += 1e-3 {
		if v := fit(rate).Forward(x).Mean().Item(); v < low { // once per fit
			low, best = v, rate
		}
	}
	return best
}
