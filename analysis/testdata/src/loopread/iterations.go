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

// What the steps are called differs.
func lastOf(cov *tensor.Tensor, n, maxRounds, steps int) (variances []float64) {
	for range n {
		v := tensor.Randn(8)
		for range maxRounds {
			v = cov.MatMul(v).Sub(v)
		}
		variances = append(variances, v.Norm().Item())
		cov = cov.Sub(v.Mul(v))
	}
	for range n {
		x := tensor.Randn(8)
		for s := 0; s < steps; s++ {
			x = x.Sub(cov.MatMul(x))
		}
		variances = append(variances, x.Norm().Item())
	}
	return variances
}

// An item of the data may take few steps.
func attacked(net func(*tensor.Tensor) *tensor.Tensor, xs []*tensor.Tensor, steps int) (sum float64) {
	for _, x := range xs {
		for range steps {
			x = x.Sub(net(x))
		}
		sum += x.Norm().Item() // want `AT001`
	}
	return sum
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

// Each item takes many steps.
func polished(a *tensor.Tensor, starts []*tensor.Tensor) (all []float64) {
	for _, x := range starts {
		for range 50 {
			x = x.Sub(a.MatMul(x))
		}
		all = append(all, x.Norm().Item())
	}
	for _, x := range starts {
		for range 20 {
			x = x.Sub(a.MatMul(x))
		}
		all = append(all, x.Norm().Item()) // want `AT001`
	}
	return all
}

// The best few.
func best(score, x *tensor.Tensor) (total float64) {
	_, at := score.TopK(3, 0, tensor.Descending)
	for _, i := range at.Int64s() {
		total += x.Row(int(i)).Norm().Item()
	}
	for _, i := range score.Slice(0, 0, 3).Int64s() {
		total += x.Row(int(i)).Norm().Item()
	}
	_, many := score.TopK(30, 0, tensor.Descending)
	for _, i := range many.Int64s() {
		total += x.Row(int(i)).Norm().Item() // want `AT001`
	}
	_, each := score.TopK(3, 1, tensor.Descending)
	for _, i := range each.Int64s() {
		total += x.Row(int(i)).Norm().Item() // want `AT001`
	}
	return total
}

// A limit says nothing about how many steps there are.

func settle(a, x *tensor.Tensor, limit int) (*tensor.Tensor, int) {
	for step := range limit {
		next := x.Sub(a.MatMul(x))
		moved := next.Sub(x).Norm().Item() != 0
		x = next
		if !moved {
			return x, step
		}
	}
	return x, limit
}

func relax(a, x *tensor.Tensor, steps int) (*tensor.Tensor, int) {
	for range steps {
		x = x.Sub(a.MatMul(x))
	}
	return x, steps
}

func bestOfStarts(a *tensor.Tensor, n int) (best *tensor.Tensor) {
	lowest := 1e9
	for range n {
		x, _ := settle(a, tensor.Randn(8), 1000)
		if off := x.Square().Mean().Item(); off < lowest { // want `AT001`
			best, lowest = x, off
		}
	}
	for range n {
		x, _ := relax(a, tensor.Randn(8), 1000)
		if off := x.Square().Mean().Item(); off < lowest {
			best, lowest = x, off
		}
	}
	return best
}
