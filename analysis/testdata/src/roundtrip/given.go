package roundtrip

import (
	"math/rand/v2"

	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Functions that make tensors of numbers of the host.

type series struct {
	name   string
	values []float32
}

func normalised(s series) *tensor.Tensor {
	x := tensor.From(s.values)
	mean := x.Mean()
	return x.SubScalar(mean.Item()) // want `round trip: mean.Item\(\) waits for the device, and its value only goes back`
}

func scaledList(v []float32) *tensor.Tensor {
	x := tensor.From(v)
	top := x.Max().Item() // want `round trip: x.Max\(\).Item\(\) waits`
	return x.DivScalar(top)
}

func scaledWith(v []float32) (*tensor.Tensor, float64) {
	x := tensor.From(v)
	top := x.Max().Item() // who calls it wants the number
	return x.DivScalar(top), top
}

func start(seed int) *tensor.Tensor {
	x := tensor.Randn(seed)
	return x.DivScalar(x.Norm().Item()) // once
}

func normalisedThere(s series) *tensor.Tensor {
	x := tensor.From(s.values)
	return x.Sub(x.Mean())
}

// Steps of training that others call.

type balance struct {
	net   nn.Module
	opt   *optim.Optimizer
	ratio float64
}

func (b *balance) Step(x, y *tensor.Tensor) *tensor.Tensor {
	out := b.net.Forward(x)
	first, second := nn.MSELoss(out, y), out.Square().Mean()
	k := first.Item() / (second.Item() + 1e-9) // want `round trip in loop: first.Item\(\) waits` `second.Item`
	loss := first.Add(second.MulScalar(k * b.ratio))
	b.opt.Minimize(loss)
	return loss
}

func (b *balance) Clipped(x, y *tensor.Tensor) *tensor.Tensor {
	loss := nn.MSELoss(b.net.Forward(x), y)
	b.opt.Minimize(loss.DivScalar(loss.Item())) // want `round trip in loop: loss.Item\(\) waits`
	return loss
}

func (b *balance) Reported(x, y *tensor.Tensor) (float64, *tensor.Tensor) {
	loss := nn.MSELoss(b.net.Forward(x), y)
	v := loss.Item() // the caller asks for it
	b.opt.Minimize(loss.DivScalar(v))
	return v, loss
}

func (b *balance) Careful(x, y *tensor.Tensor) bool {
	loss := nn.MSELoss(b.net.Forward(x), y)
	if loss.Item() > 100 {
		return false
	}
	b.opt.Minimize(loss)
	return true
}

func (b *balance) Now(x, y *tensor.Tensor, i int) {
	loss := nn.MSELoss(b.net.Forward(x), y)
	if i%100 == 0 {
		loss = loss.DivScalar(loss.Item())
	}
	b.opt.Minimize(loss)
}

// Numbers that the device draws for a variable.

func shifted(by int) func(*tensor.Tensor) *tensor.Tensor {
	return func(x *tensor.Tensor) *tensor.Tensor {
		at := tensor.RandInt(0, by, 2)
		top, left := int(at.AtInt(0)), int(at.AtInt(1)) // want `at.AtInt\(0\) waits until the device has drawn a number` `at.AtInt\(1\)`
		return x.Slice(0, top, top+8).Slice(1, left, left+8)
	}
}

func flipped(x *tensor.Tensor) *tensor.Tensor {
	coin := tensor.RandInt(0, 2)
	if coin.ItemInt() == 1 { // want `coin.ItemInt\(\) waits until the device has drawn`
		return x.T()
	}
	return x
}

func jittered(x *tensor.Tensor) *tensor.Tensor {
	noise := tensor.RandnLike(x)
	if noise.At(0, 0) > 3 { // the tensor is used as well
		return x
	}
	return x.Add(noise)
}

func given(x, at *tensor.Tensor) *tensor.Tensor {
	i := int(at.AtInt(0))
	return x.Slice(0, i, i+8)
}

func sampled(x *tensor.Tensor) *tensor.Tensor {
	row := x.Take(0, tensor.RandInt(0, x.Dim(0)))
	if row.AtInt(0) > 0 {
		return row
	}
	return x
}

// Elements that are changed in place.

func brighter(x *tensor.Tensor) *tensor.Tensor {
	pixels := x.Float32s() // want `round trip: x.Float32s\(\) waits for the device`
	each := len(pixels) / x.Dim(0)
	for i := 0; i < len(pixels); i += each {
		gain := 0.8 + 0.4*rand.Float32()
		for j := range each {
			pixels[i+j] *= gain
		}
	}
	return tensor.From(pixels, x.Dim(0), each)
}

func shiftedRows(x *tensor.Tensor, rows int, by float32) *tensor.Tensor {
	v := x.Float32s() // want `round trip: x.Float32s\(\) waits for the device`
	for i := range rows {
		v[i*x.Dim(1)] -= by
	}
	return tensor.From(v, x.Dim(0), x.Dim(1))
}

func running(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s()
	for i := 1; i < len(v); i++ {
		v[i] += v[i-1]
	}
	return tensor.From(v)
}

func byTable(x *tensor.Tensor, table []float32) *tensor.Tensor {
	v := x.Float32s()
	for i := 0; i < len(v); i++ {
		v[i] *= table[i%len(table)]
	}
	return tensor.From(v)
}

func byOthers(x *tensor.Tensor, gain func(int) float32) *tensor.Tensor {
	v := x.Float32s()
	for i := 0; i < len(v); i++ {
		v[i] *= gain(i)
	}
	return tensor.From(v)
}
