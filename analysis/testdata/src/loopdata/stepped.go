package loopdata

import (
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that a loop calls, and that make the same tensor in each call.

type field interface{ advance(dt float64) }

type reaction struct {
	u      *tensor.Tensor
	points []int64
	width  int
}

func (r *reaction) advance(dt float64) {
	source := tensor.From(r.points).Reshape(r.width, -1) // want `tensor.From\(r.points\) makes the same tensor in each call, and a loop calls advance; make it once, and keep it \[AT025\]`
	r.u = r.u.Add(source.MulScalar(dt))
}

func newReaction(n int) field {
	return &reaction{u: tensor.Zeros(n), points: []int64{1, 2, 3}, width: n}
}

func run(f field, steps int) {
	for range steps {
		f.advance(0.1)
	}
}

var means = []float32{0.4, 0.5, 0.6}

func normal(x *tensor.Tensor) *tensor.Tensor { return x.Sub(tensor.From(means)) } // want `tensor.From\(means\) makes the same`

func classify(net nn.Module, x *tensor.Tensor) *tensor.Tensor { return net.Forward(normal(x)) }

func all(net nn.Module, xs []*tensor.Tensor) (ys []*tensor.Tensor) {
	for _, x := range xs {
		ys = append(ys, classify(net, x))
	}
	return ys
}

// Silent.

type agent struct {
	obs  []float32
	cost []float32
}

// look uploads what was seen, which is new each time.
func (a *agent) look() *tensor.Tensor { return tensor.From(a.obs) }

func (a *agent) play(n int) (xs []*tensor.Tensor) {
	for i := range n {
		a.obs[0] = float32(i)
		xs = append(xs, a.look())
	}
	return xs
}

// price is called once for each agent.
func (a *agent) price() *tensor.Tensor { return tensor.From(a.cost) }

func prices(agents []*agent) (xs []*tensor.Tensor) {
	for _, a := range agents {
		xs = append(xs, a.price())
	}
	return append(xs, (&agent{obs: nil, cost: []float32{1}}).price())
}

// A camera is known by its method only, but it can't set the field.
type camera interface{ picture() *tensor.Tensor }

type detector struct{ shift []float32 }

func (d *detector) detect(x *tensor.Tensor) *tensor.Tensor {
	return x.Sub(tensor.From(d.shift)) // want `tensor.From\(d.shift\) makes the same`
}

type tracker struct{ d *detector }

func (t *tracker) follow(c camera, n int) (ys []*tensor.Tensor) {
	for range n {
		ys = append(ys, t.d.detect(c.picture()))
	}
	return ys
}

func newTracker(shift []float32) *tracker { return &tracker{&detector{shift}} }
