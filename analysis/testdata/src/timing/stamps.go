package timing

import (
	"fmt"
	"time"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Clocks that are numbers.

func stamped(x *tensor.Tensor) float64 {
	begin := time.Now().UnixNano()
	x.MatMul(x)
	return float64(time.Now().UnixNano()-begin) / 1e9 // want `time.Now\(\).UnixNano\(\) is the time it took to enqueue the work`
}

func stampedAndWaited(x *tensor.Tensor) int64 {
	begin := time.Now().UnixMilli()
	y := x.MatMul(x)
	y.Wait()
	return time.Now().UnixMilli() - begin
}

func named(x *tensor.Tensor) {
	name := time.Now().Unix()
	x.MatMul(x)
	fmt.Println(name)
}
