package loopread

import "github.com/asyncgen/asyncgen/runtime/tensor"

// A read once for many steps of a computation.

func principal(cov *tensor.Tensor, n, iters int) (variances []float64) {
	for range n {
		v := tensor.Randn(8)
		for range iters {
			v = cov.MatMul(v).Sub(v)
		}
		variances = append(variances, v.Norm().Item())
		cov = cov.Sub(v.Mul(v))
	}
	return variances
}

func restartsOf(a *tensor.Tensor, n int) (least float64) {
	for range n {
		x := tensor.Randn(8)
		for i := 0; i < 50; i++ {
			x = x.Sub(a.MatMul(x))
		}
		if v := x.Norm().Item(); v < least {
			least = v
		}
	}
	return least
}

// Few steps, steps of the same computation one by one, and as many as an item has.

func fewSteps(a *tensor.Tensor, n, depth int) (all []float64) {
	for range n {
		x := tensor.Randn(8)
		for range 5 {
			x = x.Sub(a.MatMul(x))
		}
		all = append(all, x.Norm().Item()) // want `AT001`
	}
	for range n {
		x := tensor.Randn(8)
		for range depth {
			x = x.Sub(a.MatMul(x))
		}
		all = append(all, x.Norm().Item()) // want `AT001`
	}
	for range n {
		x := tensor.Randn(8)
		for range 50 {
			x = x.Sub(a.MatMul(x))
			all = append(all, x.Norm().Item()) // want `AT001`
		}
	}
	return all
}

// Lists whose length the package shows.

var methods = []func(*tensor.Tensor) *tensor.Tensor{(*tensor.Tensor).Square, (*tensor.Tensor).Norm, step2, step2, step2}

var grown = []func(*tensor.Tensor) *tensor.Tensor{(*tensor.Tensor).Square}

func init() { grown = append(grown, step2, step2, step2, step2) }

func step2(x *tensor.Tensor) *tensor.Tensor { return x.MulScalar(2) }

func comparedBy(x *tensor.Tensor) (total float64) {
	for _, m := range methods[1:] {
		total += m(x).Item()
	}
	for _, m := range methods {
		total += m(x).Item() // want `AT001`
	}
	for _, m := range grown[1:] {
		total += m(x).Item() // want `AT001`
	}
	sizes := []float64{1, 2, 3, 4, 5, 6}
	for _, s := range sizes[4:] {
		total += x.MulScalar(s).Item()
	}
	for _, s := range sizes[1:] {
		total += x.MulScalar(s).Item() // want `AT001`
	}
	return total
}
