package loopexit

import (
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type particle struct{ at, best *tensor.Tensor }

func step(x *tensor.Tensor) *tensor.Tensor { return x.AddScalar(1) }

// accepted decides what the next iteration computes with.
func accepted(x *tensor.Tensor, n int, limit float64) (best *tensor.Tensor, chain []*tensor.Tensor) {
	at := x.Norm()
	for range n {
		y := step(x)
		next := y.Norm()
		if next.Sub(at).Item() < limit { // want `AT005`
			x, at = y, next
		}
		chain = append(chain, x)
	}
	cur := math.Inf(1)
	for range n {
		y := step(x)
		v := y.Norm().Item() // want `AT005`
		if v < cur {
			x, cur = y, v
		}
	}
	for range n {
		y := step(x)
		if v := y.Norm().Item(); v < cur { // AT001: it is only remembered which one was best
			best, cur = y, v
		}
	}
	return best, chain
}

// swarm decides about fields that a loop around it computes with.
func swarm(ps []particle, steps int) {
	for range steps {
		for i := range ps {
			ps[i].at = step(ps[i].best)
		}
		for i, p := range ps {
			d := p.at.Norm()
			if d.Item() < 1 { // want `AT005`
				ps[i].best = p.at
			}
		}
	}
}

type plate struct{ u *tensor.Tensor }

func (p *plate) tick() *tensor.Tensor {
	change := p.u.MulScalar(0.1)
	p.u = p.u.Sub(change)
	return change
}

func (p *plate) settle(tolerance float64) (n int) {
	for {
		var change *tensor.Tensor
		for range 100 {
			change = p.tick()
		}
		n += 100
		if change.Max().Item() < tolerance { // once in a hundred ticks
			return n
		}
	}
}

type ticker interface{ tick() *tensor.Tensor }

// cools looks at the last of some ticks. What a tick changes can't be seen from here.
func cools(p ticker, tolerance float64) (n int) {
	for {
		var change *tensor.Tensor
		for range 10 {
			change = p.tick()
		}
		n += 10
		if change.Max().Item() < tolerance { // once in ten ticks
			return n
		}
	}
}

// spreads looks at all of them.
func spreads(p ticker, tolerance float64) (n int) {
	for {
		var change *tensor.Tensor
		for range 10 {
			if now := p.tick(); change == nil {
				change = now
			} else {
				change = change.Add(now)
			}
		}
		n += 10
		if change.Max().Item() < tolerance { // want `AT005`
			return n
		}
	}
}
