package loopread

import (
	"outputs"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type holder struct {
	*outputs.Model[string]
	total float64
}

// Fields of structs of other packages come from where the struct does.
func (w *holder) fields(xs []*tensor.Tensor) (out []float64) {
	for _, x := range xs {
		o := w.Step(x)
		w.total += o.Loss.Item() // want `AT001`
		o.Name = "step"
	}
	for _, x := range xs {
		out = append(out, w.Step(x).Parts[0].Norm().Item()) // want `AT001`
	}
	for _, x := range xs {
		o := outputs.Fill(x)
		out = append(out, o.Loss.Item()) // want `AT001`
	}
	for _, x := range xs {
		var o outputs.Output
		o.Acc = x.Norm()
		out = append(out, o.Acc.Item()) // want `AT001`
	}
	return out
}

func given(os []outputs.Output, x *tensor.Tensor) (sum float64) {
	var all []outputs.Output
	for _, o := range os {
		x = x.AddScalar(1)
		sum += o.Loss.Item() // was given
		all = append(all, outputs.Step(x))
	}
	for _, o := range all {
		sum += o.Loss.Item()
	}
	return sum
}

// A field that a method sets to what it is given.

type side struct {
	p    *nn.Param
	opt  *optim.Optimizer
	last *tensor.Tensor
	lag  *tensor.Tensor
}

func (s *side) step(loss *tensor.Tensor) {
	s.opt.Minimize(loss)
	s.last = loss.Detach()
}

func (s *side) note(t *tensor.Tensor) { s.lag = t }

type rivals struct{ a, b side }

func (r *rivals) both(x *tensor.Tensor) {
	r.a.step(r.a.p.Value().Mul(x).Mean())
	r.b.step(r.b.p.Value().Mul(x).Mean())
}

func (r *rivals) fit(xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		r.both(x)
		sum += r.a.last.Item() // want `AT001`
	}
	for _, x := range xs {
		r.a.note(x)
		sum += r.a.lag.Item() // what the loop is given
	}
	r.a.note(xs[0].Square()) // before the loop
	return sum
}
