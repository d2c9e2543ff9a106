package growth

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A field that one loop bounds, and another doesn't.

type policy struct{ buffer, seen, kept, past, recent, few []*tensor.Tensor }

func newPolicy() *policy {
	return &policy{buffer: make([]*tensor.Tensor, 0, 64), kept: []*tensor.Tensor{}}
}

func (p *policy) replay(step func() *tensor.Tensor) {
	for {
		p.buffer = append(p.buffer, step())     // want `p.buffer keeps a tensor of every iteration`
		p.kept = append(p.kept, w.AddScalar(1)) // want `p.kept keeps`
		p.seen = append(p.seen, w.AddScalar(1))
		if len(p.buffer)%1000 == 0 {
			println(len(p.buffer), len(p.kept))
		}
	}
}

func (p *policy) ring(step func() *tensor.Tensor) {
	for {
		p.buffer = append(p.buffer, step())
		if len(p.buffer) > 64 {
			p.buffer = p.buffer[1:]
		}
	}
}

func (p *policy) remember(x *tensor.Tensor) { p.past = append(p.past, x) } // want `p.past keeps a tensor of every iteration`

func (p *policy) recall(x *tensor.Tensor) {
	p.recent = append(p.recent, x)
	if len(p.recent) > 8 {
		p.recent = p.recent[1:]
	}
}

func (p *policy) some(x *tensor.Tensor) { p.few = append(p.few, x) }

func (p *policy) act(step func() *tensor.Tensor, n int) int {
	for range n {
		p.some(step())
	}
	for {
		x := w.AddScalar(1)
		p.remember(x)
		p.recall(x)
		step()
	}
}

func (p *policy) sum() *tensor.Tensor { return tensor.Stack(0, p.past[0], p.recent[0], p.few[0]) }

func (p *policy) flush() { p.seen = nil }

func (p *policy) last() *tensor.Tensor { return p.kept[len(p.kept)-1] }
