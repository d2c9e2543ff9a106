package loopread

import (
	"gauges"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A generic type of another package keeps tensors.

func boxed(b *gauges.Box[*tensor.Tensor], xs []*tensor.Tensor) (sum float64) {
	for _, x := range xs {
		b.Put(x.MulScalar(2))
		sum += b.Take().Item() // want `b.Take\(\).Item\(\) waits for the device in each iteration`
	}
	return sum
}

func numbers(b *gauges.Box[int], xs []*tensor.Tensor) (sum int) {
	for _, x := range xs {
		x.MulScalar(2)
		sum += b.Take()
	}
	return sum
}

func pairs(xs []*tensor.Tensor) (sum float64) {
	for i, x := range xs {
		p := gauges.Both(x.MulScalar(2), i)
		sum += p.First.Item() // want `AT001`
		sum += float64(p.Second)
	}
	return sum
}
