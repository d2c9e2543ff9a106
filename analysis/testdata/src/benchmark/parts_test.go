package benchmark

import (
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

func BenchmarkPart(b *testing.B) {
	for range b.N {
		b.StopTimer()
		x := tensor.Randn(100)
		asyncrt.WaitIdle()
		b.StartTimer()
		y := x.MatMul(w)
		b.StopTimer() // want `the benchmark's clock stops before this work is finished`
		y.Wait()
	}
	for range b.N {
		b.StopTimer()
		x := tensor.Randn(100)
		asyncrt.WaitIdle()
		b.StartTimer()
		x.MatMul(w).Wait()
		b.StopTimer()
	}
}
