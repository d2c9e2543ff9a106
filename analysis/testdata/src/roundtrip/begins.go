package roundtrip

import "github.com/asyncgen/asyncgen/runtime/tensor"

// The number that a loop begins with is read once.
func conjugate(a, b *tensor.Tensor, n int) *tensor.Tensor {
	x, r := tensor.Zeros(8), b
	p, rr := r, r.Dot(r).Item()
	for range n {
		ap := a.MatMul(p)
		alpha := rr / p.Dot(ap).Item() // want `round trip in loop`
		x, r = x.AddScaled(p, alpha), r.AddScaled(ap, -alpha)
		next := r.Dot(r).Item() // want `round trip in loop`
		p = r.AddScaled(p, next/rr)
		rr = next
	}
	return x
}
