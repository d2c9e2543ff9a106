package optim

import (
	"iter"
	"math"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A Plateau lowers the learning rate when a loss no longer falls. It compares losses on the device and holds there what
// the rate is multiplied by, so that nothing waits:
//
//	opt.Plateau = &optim.Plateau{Patience: 5}
//	for range epochs {
//		train(net, opt)
//		opt.Plateau.Observe(nn.MSELoss(net.Forward(valid.X), valid.Y))
//	}
//
// The fields are options, which must not change after the first Observe. Several optimisers may share a Plateau. A Step
// with one takes one pass more over each parameter.
type Plateau struct {
	// Factor multiplies the scale when the loss has not fallen for too long, from 0 to less than 1; 0: 0.1.
	Factor float64
	// Patience is how many losses in a row may fail to be better; the next one lowers the scale. 0: 10.
	Patience int
	// Threshold is the share of the best loss so far by which a better one is less; 0: 1e-4.
	Threshold float64
	// Cooldown is how many losses don't count after the scale was lowered.
	Cooldown int
	// Min is what the scale does not fall below.
	Min float64
	// Greater says that what is observed is better if it is greater: a share of right answers.
	Greater bool

	scale, best, bad tensor.Buffer
}

var _ nn.Stateful = (*Plateau)(nil)

// Observe takes note of a loss, a tensor of one element. One that is NaN is not better. All losses are on one device
// and of one element type, float32 or float64. Observe enqueues the comparison and does not wait. It panics with a
// [tensor.Mistake] if the loss is of another kind, or if an option is out of its range.
//
//asyncgen:api mutate
//go:noinline
func (p *Plateau) Observe(loss *tensor.Tensor) {
	if loss == nil || loss.Size() != 1 || !loss.DType().IsFloat() {
		wrong("Observe", "want one floating-point number")
	}
	factor := option("Observe", "Factor", p.Factor, 0.1, 1)
	patience := option("Observe", "Patience", float64(p.Patience), 10, inf)
	threshold := option("Observe", "Threshold", p.Threshold, 1e-4, inf)
	cooldown := option("Observe", "Cooldown", float64(p.Cooldown), 0, inf)
	lowest := option("Observe", "Min", p.Min, 0, inf)

	var temps []*tensor.Tensor
	defer func() { tensor.Dead(temps...) }()
	temp := func(t *tensor.Tensor) *tensor.Tensor {
		temps = append(temps, t)
		return t
	}
	on := tensor.On(loss.Device().Unscoped()).As(loss.DType())
	number := func(v float64) *tensor.Tensor { return temp(on.Scalar(v)) }
	if !p.best.IsSet() {
		worst := math.Inf(1)
		if p.Greater {
			worst = math.Inf(-1)
		}
		p.best.Set(number(worst))
		p.bad.Set(number(0))
	}
	if !p.scale.IsSet() {
		p.scale.Set(number(1))
	}

	now, best, bad, scale := temp(temp(loss.Detach()).Reshape()), temp(p.best.Value()), temp(p.bad.Value()), temp(p.scale.Value())
	var isBetter *tensor.Tensor
	if p.Greater {
		isBetter = temp(now.Gt(temp(best.MulScalar(1 + threshold))))
	} else {
		isBetter = temp(now.Lt(temp(best.MulScalar(1 - threshold))))
	}
	// bad counts losses that are not better. Below 0, it counts those that are left of a cooldown.
	isCounting := temp(bad.GeScalar(0))
	bad = temp(tensor.Where(temp(isBetter.And(isCounting)), number(0), temp(bad.AddScalar(1))))
	isTooLong := temp(bad.GtScalar(patience))
	lower := temp(temp(scale.MulScalar(factor)).Maximum(number(lowest)))
	p.best.Set(temp(tensor.Where(isBetter, now, best)))
	p.bad.Set(temp(tensor.Where(isTooLong, number(-cooldown), bad)))
	p.scale.Set(temp(tensor.Where(isTooLong, lower, scale)))
}

// Scale returns what the rate is multiplied by, as a tensor without axes; 1 before the first Observe.
//
//asyncgen:api value
func (p *Plateau) Scale() *tensor.Tensor {
	if !p.scale.IsSet() {
		return tensor.Scalar(1)
	}
	return p.scale.Value()
}

// State is the sequence of what Observe changes, with names: "scale", "best", the best loss so far, and "bad", which
// counts the losses since then that were not better. They have no value before the first Observe.
//
//asyncgen:api meta
func (p *Plateau) State() iter.Seq2[string, tensor.Cell] {
	return func(yield func(string, tensor.Cell) bool) {
		_ = yield("scale", &p.scale) && yield("best", &p.best) && yield("bad", &p.bad)
	}
}

// Cells lists the cells of [Plateau.State]. Those of an optimiser with a Plateau have them, too.
//
//asyncgen:api meta
func (p *Plateau) Cells() []tensor.Cell { return []tensor.Cell{&p.scale, &p.best, &p.bad} }
