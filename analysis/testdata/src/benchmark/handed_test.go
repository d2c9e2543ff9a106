package benchmark

import (
	"testing"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// Loops that are given what to do.

func repeat(b *testing.B, f func()) {
	b.Helper()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		f()
	}
}

func repeatAll(b *testing.B, f func()) {
	for range b.N {
		f()
	}
	asyncrt.WaitIdle()
}

func repeatSome(b *testing.B, f func()) {
	for i := range b.N {
		if i%100 == 0 {
			f()
		}
	}
}

func BenchmarkHanded(b *testing.B) {
	x := tensor.Randn(64, 64)
	repeat(b, func() { x.MatMul(x) }) // want `the benchmark's clock stops before this work is finished; wait for it, here or after the loop`
}

func BenchmarkHandedWaits(b *testing.B) {
	x := tensor.Randn(64, 64)
	repeat(b, func() { x.MatMul(x).Wait() }) // waits
	repeatAll(b, func() { x.MatMul(x) })     // waits after the loop
	repeat(b, func() { _ = x.Dim(0) })
	repeatSome(b, func() { x.MatMul(x) }) // not in each iteration
}

func BenchmarkHandedEnqueue(b *testing.B) {
	x := tensor.Randn(64, 64)
	repeat(b, func() { x.MatMul(x) }) // is about enqueueing
}

func BenchmarkHandedThenWaited(b *testing.B) {
	x := tensor.Randn(64, 64)
	repeat(b, func() { x.MatMul(x) })
	asyncrt.WaitIdle()
}
