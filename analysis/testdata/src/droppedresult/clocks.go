package droppedresult

import (
	"fmt"
	"time"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Behind the last clock, a barrier has another reason.

func endsUntimed(x *tensor.Tensor) {
	start := time.Now()
	y := x.AddScalar(1)
	fmt.Println(y.Item(), time.Since(start))
	asyncrt.WaitAll() // want `error of asyncrt.WaitAll is thrown away`
}

func beforeClock(x *tensor.Tensor) {
	asyncrt.WaitAll()
	start := time.Now()
	y := x.AddScalar(1)
	asyncrt.WaitAll()
	fmt.Println(y, time.Since(start))
}

func deferredClock(x *tensor.Tensor) {
	start := time.Now()
	defer func() { fmt.Println(time.Since(start)) }()
	fmt.Println(x.AddScalar(1))
	asyncrt.WaitAll()
}

func clockInLoop(xs []*tensor.Tensor) {
	start := time.Now()
	for _, x := range xs {
		fmt.Println(time.Since(start))
		start = time.Now()
		fmt.Println(x.AddScalar(1))
		asyncrt.WaitAll()
	}
}
