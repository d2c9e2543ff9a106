package benchmark

import (
	"testing"

	"batch"

	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var w, x, sink *tensor.Tensor

func BenchmarkN(b *testing.B) {
	for range b.N {
		sink = x.MatMul(w) // want `the benchmark's clock stops before this work is finished; wait for it after the loop \[AT021\]`
	}
}

func BenchmarkClassic(tb *testing.B) {
	tb.SetBytes(8)
	// The comment stays.
	for i := 0; i < tb.N; i++ {
		sink = batch.Loss(w, batch.Batch{X: x, Y: x})
	} // and this
	tb.StopTimer() // want `AT021`
	asyncrt.WaitAll()
}

func BenchmarkLoop(b *testing.B) {
	for b.Loop() { // want `b.Loop stops the clock before this work is finished; wait in each iteration, or loop over b.N and wait after the loop \[AT021\]`
		sink = x.MatMul(w)
	}
	asyncrt.WaitAll()
}

func BenchmarkSub(b *testing.B) {
	for _, n := range []int{1, 2} {
		b.Run("matmul", func(b *testing.B) {
			for i := range b.N {
				sink = x.AddScalar(float64(i + n)) // want `AT021`
			}
			if n > 1 {
				sink.Wait()
			}
		})
	}
}

func BenchmarkHidden(b *testing.B) {
	for range b.N {
		func() { sink = x.MatMul(w) }() // want `AT021`
	}
	if testing.Short() {
		b.Fatal("never here")
	}
}

func BenchmarkNoFix(b *testing.B) {
	defer asyncrt.WaitAll()
	for b.Loop() { // want `AT021`
		sink = x.MatMul(w)
		continue
	}
	func() {
		for range b.N {
			sink = x.MatMul(w)
		}
	}()
}

// Silent from here on.

func BenchmarkWaits(b *testing.B) {
	for b.Loop() {
		sink = x.MatMul(w)
		sink.Wait()
	}
	for range b.N {
		sink = x.MatMul(w)
	}
	if err := asyncrt.WaitAll(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	sink = x.MatMul(w)
}

func BenchmarkReads(b *testing.B) {
	for b.Loop() {
		batch.Value(x.MatMul(w))
	}
	ys := make([]*tensor.Tensor, 3)
	for range b.N {
		for i := range ys {
			ys[i] = x.MatMul(w)
		}
	}
	for _, y := range ys {
		y.Wait()
	}
}

func BenchmarkDeferred(b *testing.B) {
	defer func() { asyncrt.WaitAll() }()
	for range b.N {
		sink = x.MatMul(w)
	}
}

func BenchmarkUnknown(b *testing.B) {
	run := func(f func()) { f() }
	for _, f := range []func(*tensor.Tensor){nil} {
		for b.Loop() {
			f(x.MatMul(w))
		}
	}
	run(nil)
	for b.Loop() {
		x.Dim(0)
	}
	//asyncgen:ignore AT021 an example
	for b.Loop() {
		sink = x.MatMul(w)
	}
}

func BenchmarkEnqueue(b *testing.B) {
	for b.Loop() {
		sink = x.MatMul(w)
	}
}

func BenchmarkOthers(b *testing.B) {
	b.Run("async", func(b *testing.B) {
		for b.Loop() {
			sink = x.MatMul(w)
		}
	})
	for range 10 {
		sink = x.MatMul(w)
	}
}

func notOne(n int) {
	for range n {
		sink = x.MatMul(w)
	}
}

func BenchmarkParallel(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		var y *tensor.Tensor
		for pb.Next() {
			y = x.MatMul(w) // want `the benchmark's clock stops before this work is finished; wait for it after the loop`
		}
		sink = y
	})
}

func BenchmarkParallelSilent(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		y := x
		for pb.Next() {
			y = x.MatMul(y)
		}
		y.Wait()
	})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			x.MatMul(w).Wait()
		}
	})
}

func BenchmarkParallelWaits(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			sink = x.MatMul(w)
		}
	})
	asyncrt.WaitAll()
}

func BenchmarkDown(b *testing.B) {
	y := x
	for n := b.N; n > 0; n-- {
		y = y.MatMul(w) // want `AT021`
	}
}

func BenchmarkVariable(b *testing.B) {
	y, n := x, b.N
	for i := 0; i < n; i++ {
		y = y.MatMul(w) // want `AT021`
	}
}

// One iteration that waits does not do for the others.
func BenchmarkLogsOnce(b *testing.B) {
	for i := range b.N {
		y := x.MatMul(w) // want `AT021`
		if i == 0 {
			b.Log(y)
		}
	}
}

func BenchmarkDownWaits(b *testing.B) {
	y := x
	for n := b.N; n > 0; n-- {
		y = y.MatMul(w)
	}
	y.Wait()
}
