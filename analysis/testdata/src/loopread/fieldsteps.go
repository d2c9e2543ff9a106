package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// Loops that do some steps of a computation between two reads, in a field that a method looks at.

type field struct{ u, mask, seen *tensor.Tensor }

func (f *field) flow() *tensor.Tensor { return f.u.Transpose().AddScaled(f.u, -1) }

func (f *field) scaled(dt float64) *tensor.Tensor { return f.flow().MulScalar(dt) }

func (f *field) noise() *tensor.Tensor { return tensor.RandnLike(f.mask) }

func (f *field) record(dt float64, n int) (list []float64) {
	for range n {
		for range 100 {
			f.u = f.u.Add(f.flow().MulScalar(dt).Mul(f.mask))
		}
		list = append(list, f.u.Norm().Item())
	}
	return list
}

func (f *field) frames(n int) (list [][]float32) {
	for range n {
		for range 10 {
			f.u = f.u.Sub(f.flow())
		}
		list = append(list, f.u.Float32s())
	}
	return list
}

// f.seen is a sum, of two parts in each iteration.
func (f *field) sums(n int) (list []float64) {
	for range n {
		for range 2 {
			f.seen = f.seen.Add(f.noise())
		}
		list = append(list, f.seen.Sum().Item()) // want `AT001`
	}
	return list
}

func (f *field) each(dt float64, n int) (list []float64) {
	for range n {
		f.u = f.u.Add(f.flow().MulScalar(dt))
		list = append(list, f.u.Norm().Item()) // want `AT001`
	}
	return list
}

// Each iteration of the outer loop has a sum of its own.
func others(masks []*tensor.Tensor, n int) (list []float64) {
	for _, m := range masks {
		sum := tensor.Zeros()
		for range 2 {
			sum = sum.Add(m.Norm())
		}
		list = append(list, sum.Item()) // want `AT001`
	}
	return list
}
