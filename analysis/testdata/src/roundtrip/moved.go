package roundtrip

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Tensors that a function copies by way of the host.

func move(x *tensor.Tensor, dev device.Device) *tensor.Tensor {
	return tensor.FromOn(dev, x.Float32s(), x.Shape()...) // want `round trip: the elements go through the host and come back unchanged; a tensor never changes, so use it itself, Detach, As or To`
}

func moveByName(x *tensor.Tensor, dev device.Device) *tensor.Tensor {
	data := tensor.SliceOf[float32](x) // want `the elements go through the host and come back unchanged`
	return tensor.FromOn(dev, data, x.Shape()...)
}

func spread(x *tensor.Tensor, devs []device.Device) []*tensor.Tensor {
	data := x.Float32s() // want `the elements go through the host and come back unchanged`
	out := make([]*tensor.Tensor, len(devs))
	for i, dev := range devs {
		out[i] = tensor.FromOn(dev, data, len(data))
	}
	return out
}

func copied(x *tensor.Tensor) *tensor.Tensor {
	return tensor.From(slices.Clone(x.Float32s()), x.Shape()...) // want `the elements go through the host and come back unchanged`
}

func replaced(x *tensor.Tensor, other []float32) *tensor.Tensor {
	data := x.Float32s()
	if len(other) > 0 {
		data = other
	}
	return tensor.From(data, x.Shape()...)
}

type field struct{ u *tensor.Tensor }

func (f *field) cut() {
	f.u = tensor.From(f.u.Float32s(), f.u.Shape()...) // want `the elements go through the host and come back unchanged`
}

func copyOf(a, b nn.Module) {
	to := b.Params()
	for i, p := range a.Params() {
		to[i].Set(tensor.From(tensor.SliceOf[float32](p.Value()), p.Value().Shape()...)) // want `round trip in loop`
	}
}

func inOrder(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s() // want `round trip: x.Float32s\(\) waits for the device, and its value only goes back into tensor operations`
	slices.Sort(v)
	return tensor.From(v)
}

// Tensors that are added up on the host, device by device.

func mean(xs []*tensor.Tensor) *tensor.Tensor {
	sum := make([]float32, xs[0].Size())
	for _, x := range xs {
		for i, v := range x.Float32s() { // want `round trip: x.Float32s\(\) waits for the device`
			sum[i] += v / float32(len(xs))
		}
	}
	return tensor.FromOn(xs[0].Device(), sum, xs[0].Shape()...)
}

func masked(xs []*tensor.Tensor, dropped []int) *tensor.Tensor {
	sum := make([]float32, xs[0].Size())
	for _, x := range xs {
		for i, v := range x.Float32s() {
			sum[i] += v
		}
	}
	for _, i := range dropped {
		sum[i] = 0 // more than a sum
	}
	return tensor.From(sum)
}

func meanOfEach(shards [][]*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(shards[0]))
	for i := range out {
		sum := make([]float32, shards[0][i].Size())
		for _, s := range shards {
			for k, v := range s[i].Float32s() { // want `round trip`
				sum[k] += v
			}
		}
		for k := range sum {
			sum[k] /= float32(len(shards))
		}
		out[i] = tensor.From(sum)
	}
	return out
}

// Elements of another list, each from those at the same place.

func squares(x *tensor.Tensor) *tensor.Tensor {
	v := tensor.SliceOf[float32](x) // want `round trip`
	out := make([]float32, len(v))
	for i, e := range v {
		sq := e * e
		out[i] = sq + 1
	}
	return tensor.From(out)
}

func differences(x, y *tensor.Tensor) *tensor.Tensor {
	a, b := x.Float32s(), y.Float32s() // want `x.Float32s` `y.Float32s`
	out := make([]float32, len(a))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return tensor.From(out)
}

func positive(x *tensor.Tensor) *tensor.Tensor {
	var out []float32
	for _, e := range x.Float32s() { // want `round trip`
		out = append(out, max(e, 0))
	}
	return tensor.From(out)
}

// Silent.

func lookedUp(x *tensor.Tensor, table []float32) *tensor.Tensor {
	v := x.Float32s()
	out := make([]float32, len(v))
	for i, e := range v {
		out[i] = table[int(e)]
	}
	return tensor.From(out)
}

func smoothed(x *tensor.Tensor) *tensor.Tensor {
	v := x.Float32s()
	out, last := make([]float32, len(v)), float32(0)
	for i, e := range v {
		last = 0.9*last + 0.1*e
		out[i] = last
	}
	return tensor.From(out)
}

func chosen(x *tensor.Tensor) *tensor.Tensor {
	var out []float32
	for _, e := range x.Float32s() {
		if e > 0 {
			out = append(out, e)
		}
	}
	return tensor.From(out)
}

func applied(x *tensor.Tensor, f func(float32) float32) *tensor.Tensor {
	v := x.Float32s()
	out := make([]float32, len(v))
	for i, e := range v {
		out[i] = f(e)
	}
	return tensor.From(out)
}

type frame struct {
	data  []float32
	shape []int
}

func packed(x *tensor.Tensor) frame   { return frame{x.Float32s(), x.Shape()} }
func unpacked(f frame) *tensor.Tensor { return tensor.From(f.data, f.shape...) }

// logged shows the elements, too.
func logged(x *tensor.Tensor) *tensor.Tensor {
	data := x.Float32s()
	println(data[0])
	return tensor.From(data)
}

// matched needs the elements on the host, since where one is added depends on others.
func matched(xs []*tensor.Tensor, at func(int, float32) int) *tensor.Tensor {
	sum := make([]float32, xs[0].Size())
	for _, x := range xs {
		for i, v := range x.Float32s() {
			sum[at(i, v)] += v
		}
	}
	return tensor.From(sum)
}

// shown has the sums for the host.
func shown(xs []*tensor.Tensor) (*tensor.Tensor, float32) {
	sum := make([]float32, xs[0].Size())
	for _, x := range xs {
		for i, v := range x.Float32s() {
			sum[i] += v
		}
	}
	return tensor.From(sum), sum[0]
}
