package roundtrip

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Round trips outside of loops, in functions that map tensors to tensors.

func levels(x *tensor.Tensor) *tensor.Tensor {
	lo := x.Min().Item() // want `round trip: x.Min\(\).Item\(\) waits`
	hi := x.Max().Item() // want `round trip`
	return x.SubScalar(lo).DivScalar(hi - lo)
}

type columns struct{ data *tensor.Tensor }

func (c *columns) scaled(i int) *tensor.Tensor {
	col := c.data.Row(i)
	mean, std := col.Mean().Item(), col.Std(0).Item() // want `col.Mean\(\).Item\(\) waits` `col.Std\(0\).Item\(\) waits`
	return col.SubScalar(mean).MulScalar(1 / max(std, 1e-6))
}

func top(x *tensor.Tensor) float64 { return x.Max().Item() }

func byHelper(x *tensor.Tensor) *tensor.Tensor {
	return x.DivScalar(top(x)) // want `round trip: top waits`
}

var clipped = func(x *tensor.Tensor) *tensor.Tensor {
	limit := x.Norm().Item() // want `round trip`
	return x.Clamp(-limit, limit)
}

// The host only chooses between numbers.
func limited(g *tensor.Tensor, limit float64) *tensor.Tensor {
	n := g.Norm().Item() // want `round trip`
	scale := 1.0
	if n > limit {
		scale = limit / n
	}
	return g.MulScalar(scale)
}

func quantised(x *tensor.Tensor) (q, scale *tensor.Tensor) {
	s := top(x) / 127 // want `round trip: top waits`
	return x.DivScalar(s), x.AddScalar(s)
}

// What the receiver holds.
func (c *columns) normalise() {
	c.data = c.data.DivScalar(c.data.Norm().Item()) // want `round trip`
}

// Silent.

func told(x *tensor.Tensor) (*tensor.Tensor, float64) {
	top := x.Max().Item()
	return x.DivScalar(top), top
}

func guarded(x *tensor.Tensor, limit float64) *tensor.Tensor {
	if top := x.Max().Item(); top > limit {
		return x.MulScalar(limit / top)
	}
	return x
}

func firstFew(x *tensor.Tensor) *tensor.Tensor {
	n := int(x.Sum().Item())
	return x.Slice(0, 0, n)
}

type standard struct{ mean, std float64 }

func fitted(x *tensor.Tensor) standard { return standard{x.Mean().Item(), x.Std(0).Item()} }

func (s standard) of(x *tensor.Tensor) *tensor.Tensor { return x.SubScalar(s.mean).DivScalar(s.std) }

// Fields of the elements of a list.

type update struct {
	weights []*tensor.Tensor
	loss    *tensor.Tensor
}

func averaged(ups []update, us []*update) *tensor.Tensor {
	sum := tensor.Zeros(8)
	for _, u := range ups {
		sum = sum.AddScaled(u.weights[0], 1/u.loss.Item()) // want `the value of u.loss.Item\(\) goes back into a tensor operation`
	}
	for i := range us {
		sum = sum.AddScaled(us[i].weights[0], us[i].loss.Item()) // want `goes back`
	}
	return sum
}

// Numbers that the device draws for the host.

func hole(x *tensor.Tensor, n int) *tensor.Tensor {
	at := int(tensor.RandInt(0, x.Dim(0)-n).ItemInt()) // want `round trip: ItemInt waits until the device has drawn a number; draw it on the host, or use the tensor itself`
	return x.SetIndex(x.Norm(), tensor.Range(at, at+n))
}

func drawn(n int) int64 { return tensor.RandInt(0, n).ItemInt() } // asked for

// A function that waits in a loop anyway does not return at once without one more wait before it.
func spreadOut(x *tensor.Tensor, k int) *tensor.Tensor {
	first := int(tensor.RandInt(0, x.Dim(0)).ItemInt())
	c := x.Slice(0, first, first+1)
	for range k {
		far := x.Sub(c).Norm().Item() // want `goes back`
		c = c.AddScalar(far)
	}
	return c
}
