package loopdata

import (
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func power(x, v *tensor.Tensor, n int) *tensor.Tensor {
	for range n {
		v = x.T().MatMul(x).MatMul(v) // want `x.T\(\).MatMul\(x\) makes the same tensor in each iteration; make it before the loop \[AT025\]`
	}
	return v
}

// design depends on nothing but its operands.
func design(x *tensor.Tensor, tau float64) *tensor.Tensor {
	y := x.DivScalar(tau)
	return tensor.Stack(1, y, y.Square())
}

type fit struct {
	beta *tensor.Tensor
	tau  float64
}

func refine(x, y *tensor.Tensor, f fit) fit {
	b := f.beta
	for range 30 {
		d := design(x, f.tau) // want `design\(x, f.tau\) makes the same tensor`
		b = b.Add(d.T().MatMul(y.Sub(d.MatMul(b))))
	}
	return fit{b, f.tau}
}

func bounded(x, lo, hi *tensor.Tensor, n int) *tensor.Tensor {
	y := x
	for i := range n {
		y = y.Add(x.SubScalar(0.1)) // want `AT025`
		y = y.Add(x.MulScalar(float64(i)))
		y = y.Add(design(y, 2)).Add(tensor.RandnLike(x))
	}
	return y
}

func measured(x, y *tensor.Tensor) (took time.Duration) {
	for range 50 {
		start := time.Now()
		x.MatMul(y).Wait()
		took += time.Since(start)
	}
	return took
}
