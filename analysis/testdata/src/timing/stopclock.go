package timing

import (
	"fmt"
	"stopclock"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// A stopwatch of another package.

func lapsOfSizes(sizes []int) {
	var w stopclock.Watch
	for _, n := range sizes {
		x := tensor.Randn(n, n)
		w.Start()
		y := x.MatMul(x)
		fmt.Println(w.Lap(), y.Dim(0)) // want `w.Lap tells the time it took to enqueue the work`
	}
	for range 5 {
		w.Start()
		for range 100 {
			tensor.Randn(8).Square()
		}
		took := w.Lap() // want `w.Lap tells the time it took to enqueue the work`
		fmt.Println(took)
	}
}

func lapsFromNew(x *tensor.Tensor) {
	for range 5 {
		w := stopclock.New()
		x.MatMul(x)
		fmt.Println(w.Lap()) // want `w.Lap tells the time it took to enqueue the work`
	}
}

// Silent.

func lapsWithWaits(x *tensor.Tensor) {
	var w stopclock.Watch
	w.Start()
	x.MatMul(x)
	fmt.Println(w.Done())
	w.Start()
	y := x.MatMul(x)
	y.Wait()
	fmt.Println(w.Lap())
	x.MatMul(x)
	w.Start()
	fmt.Println(w.Lap())
	x.MatMul(x)
	fmt.Println(w.Next())
	z := stopclock.Zero()
	x.MatMul(x)
	fmt.Println(z.Lap())
}
