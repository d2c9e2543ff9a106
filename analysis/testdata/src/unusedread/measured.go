package unusedread

import (
	"fmt"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Reads that a clock measures.

func speed(a, b *tensor.Tensor) time.Duration {
	begin := time.Now()
	a.MatMul(b).Sum().Item()
	return time.Since(begin)
}

func latency(x *tensor.Tensor, n int) time.Duration {
	begin := time.Now()
	for range n {
		y := x.Square().Sum()
		_ = y.Item()
	}
	end := time.Now()
	return end.Sub(begin) / time.Duration(n)
}

func took(work func()) time.Duration {
	begin := time.Now()
	work()
	return time.Since(begin)
}

func compared(a, b *tensor.Tensor) {
	fmt.Println(took(func() { a.MatMul(b).Float32s() }), took(func() { _ = a.Add(b).Sum().Item() }))
}

// Reads that are beside it.

func before(a, b *tensor.Tensor) time.Duration {
	a.Sum().Item() // want `AT030`
	begin := time.Now()
	fmt.Println(a.MatMul(b).Sum().Item())
	return time.Since(begin)
}

func between(a, b *tensor.Tensor) time.Duration {
	begin := time.Now()
	a.MatMul(b).Sum().Item() // want `AT030`
	c := a.Add(b)
	took := time.Since(begin)
	fmt.Println(c)
	return took
}

func after(a, b *tensor.Tensor) {
	begin := time.Now()
	fmt.Println(a.MatMul(b).Sum().Item(), time.Since(begin))
	b.Sum().Item() // want `AT030`
}
