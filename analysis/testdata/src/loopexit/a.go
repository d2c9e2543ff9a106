package loopexit

import (
	"fmt"
	"math"

	"batch"

	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type Batch = batch.Batch

func improve(x *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
	y := x.MulScalar(0.5)
	return y, y.Sub(x).Norm()
}

func condition(x *tensor.Tensor, eps float64) *tensor.Tensor {
	r := x.Norm()
	for r.Item() > eps { // want `value decides in loop: r.Item\(\) is waited for in each iteration before more can be enqueued; decide every so many iterations, or one iteration late \[AT005\]`
		x, r = improve(x)
	}
	return x
}

func leaves(x *tensor.Tensor, eps float64) *tensor.Tensor {
	for {
		var r *tensor.Tensor
		x, r = improve(x)
		if v := r.Item(); math.Abs(v) < eps { // want `AT005`
			break
		}
	}
	for {
		var r *tensor.Tensor
		x, r = improve(x)
		v := r.Item() // want `AT005`
		fmt.Println(v)
		if small := v < eps; small {
			return x
		}
	}
}

func chooses(x *tensor.Tensor, data []Batch, opt *optim.Optimizer) {
	for _, b := range data {
		loss := batch.Loss(x, b)
		switch v := loss.Item(); { // want `AT005`
		case v > 100:
			opt.Minimize(loss.MulScalar(0.1))
		default:
			opt.Minimize(loss)
		}
	}
	for _, b := range data {
		loss := batch.Loss(x, b)
		if math.IsNaN(loss.Item()) { // want `AT005`
			panic("diverged")
		}
	}
}

func silent(x *tensor.Tensor, data []Batch) (best float64) {
	for i, b := range data {
		loss := batch.Loss(x, b)
		if v := loss.Item(); v > best { // AT001: only the host looks at it
			best = v
		}
		if i%10 == 0 && loss.AddScalar(1).Item() < 0 {
			break
		}
	}
	for i, b := range data {
		loss := batch.Loss(x, b)
		if i%10 != 0 || loss.Item() > 0 {
			continue
		}
		break
	}
	return best
}

// patience decides by way of a count.
func patience(x *tensor.Tensor, data []Batch) {
	best, bad, most := math.Inf(1), 0, 0.0
	for _, b := range data {
		if v := batch.Loss(x, b).Item(); v < best { // want `AT005`
			best, bad = v, 0
		} else {
			bad++
		}
		if bad > 3 {
			break
		}
		if v := batch.Loss(x, b).Item(); v > most { // AT001
			most = v
		}
	}
}

// rewritten is the business of the generator.
//
//asyncgen:kernel
func rewritten(x *tensor.Tensor, data []Batch) {
	for _, b := range data {
		if batch.Loss(x, b).Item() < 0.1 {
			break
		}
	}
}

// The only read is under a condition that asks for its own value.
func balanced(w *tensor.Tensor, data []Batch) (skipped int) {
	last := 1.0
	for _, b := range data {
		if last < 0.1 {
			skipped++
			last = 1
			continue
		}
		last = batch.Loss(w, b).Item() // want `value decides in loop`
	}
	return skipped
}
