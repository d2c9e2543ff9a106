package timing

import (
	"time"

	rt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func imported(x *tensor.Tensor) time.Duration {
	start := time.Now()
	x.MatMul(w)
	return time.Since(start) // want `AT020`
}

func waits(x *tensor.Tensor) time.Duration {
	start := time.Now()
	x.MatMul(w)
	if err := rt.WaitAll(); err != nil {
		panic(err)
	}
	return time.Since(start)
}
