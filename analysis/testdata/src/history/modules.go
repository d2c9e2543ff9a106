package history

import (
	"batch"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Layers behind the interface.

type trainer struct {
	net      nn.Module
	deployed nn.Module
	unknown  nn.Module
}

func newTrainer(net, unknown nn.Module) *trainer {
	return &trainer{net: net, deployed: nn.Frozen(net), unknown: unknown}
}

func build() nn.Module { return nn.Sequential(nn.Dense(3), nn.ReLU()) }

func (t *trainer) loss(b batch.Batch) *tensor.Tensor { return nn.MSELoss(t.net.Forward(b.X), b.Y) }

func (t *trainer) evaluate(data []batch.Batch) float64 {
	total, now, other := tensor.Zeros(), tensor.Zeros(), tensor.Zeros()
	for _, b := range data {
		total = total.Add(t.loss(b)) // want `total keeps the history of t.loss\(b\)`
		now = now.Add(nn.MSELoss(t.deployed.Forward(b.X), b.Y))
		other = other.Add(nn.MSELoss(t.unknown.Forward(b.X), b.Y)) // want `AT023`
	}
	return total.Item() + now.Item() + other.Item()
}

func sum(net nn.Module, data []batch.Batch) float64 {
	total := tensor.Zeros()
	for _, b := range data {
		total = total.Add(nn.MSELoss(net.Forward(b.X), b.Y)) // want `total keeps the history`
	}
	return total.Item()
}

func sumFrozen(net nn.Module, data []batch.Batch) float64 {
	total := tensor.Zeros()
	for _, b := range data {
		total = total.Add(nn.MSELoss(net.Forward(b.X), b.Y))
	}
	return total.Item()
}

func Sum(net nn.Module, data []batch.Batch) float64 {
	total := tensor.Zeros()
	for _, b := range data {
		total = total.Add(nn.MSELoss(net.Forward(b.X), b.Y)) // want `AT023`
	}
	return total.Item()
}

func ensemble(models []nn.Module, x *tensor.Tensor) float64 {
	total := tensor.Zeros()
	for _, m := range models {
		total = total.Add(m.Forward(x))
	}
	return total.Item()
}

func trains(net nn.Module, data []batch.Batch, weights func([]*nn.Param)) float64 {
	weights(net.Params())
	total := tensor.Zeros()
	for _, b := range data {
		total = total.Add(nn.MSELoss(net.Forward(b.X), b.Y)) // want `AT023`
	}
	return total.Item()
}

func calls(data []batch.Batch) float64 {
	net := build()
	t := newTrainer(net, nil)
	ours, raw, tracked := nn.Frozen(net), tensor.Zeros(), tensor.Zeros()
	p := tensor.Param{}
	for _, b := range data {
		raw = raw.Add(ours.Forward(b.X))
		tracked = tracked.Add(ours.Forward(p.Value().Mul(b.X))) // want `AT023`
	}
	return raw.Item() + tracked.Item() + t.evaluate(data) + sum(net, data) + sumFrozen(net, data) + sumFrozen(ours, data)
}
