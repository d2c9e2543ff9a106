// Command timer says how long a device computes, and what the program waits for.
package main

import (
	"fmt"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func main() {
	before := asyncrt.Stats()
	timer := asyncrt.StartTimer()
	x := tensor.Ones(200, 200)
	for range 10 {
		x = x.MatMul(x).MulScalar(1.0 / 200)
	}
	timer.Stop()
	computing := timer.Wait()  // how long the device took
	asking := timer.Enqueued() // how long it took to ask for it
	after := asyncrt.Stats()
	fmt.Println(after.Enqueued-before.Enqueued, "operations;", computing > asking, x.Mean().Item())
}
