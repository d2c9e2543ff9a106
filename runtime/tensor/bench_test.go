package tensor_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// BenchmarkAddScalar is y = x + 1 on two elements, with everything: the handle and its collection, the queue, and
// the computation.
func BenchmarkAddScalar(b *testing.B) {
	x := tensor.Zeros(1, 2)
	b.ReportAllocs()
	for b.Loop() {
		x = x.AddScalar(1)
	}
	if err := x.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEnqueue is what y = x + 1 on two elements costs the program, with the handle, if others compute it. It
// enqueues 1,000 at a time into an empty queue. The best time excludes garbage collection; ns/op includes it, and
// the computation.
func BenchmarkEnqueue(b *testing.B) {
	x := tensor.Zeros(1, 2)
	const batch = 1000
	best := time.Duration(math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		y := x
		for range batch {
			y = x.AddScalar(1)
		}
		best = min(best, time.Since(start))
		if err := y.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(best.Nanoseconds())/batch, "best-ns/enqueue")
}

// BenchmarkItem is BenchmarkAddScalar with a read after every operation.
func BenchmarkItem(b *testing.B) {
	x := tensor.Zeros(1)
	b.ReportAllocs()
	for b.Loop() {
		x = x.AddScalar(1)
		x.Item()
	}
}

// BenchmarkBroadcast is a sum of a matrix and a row, whose command needs strides.
func BenchmarkBroadcast(b *testing.B) {
	x, row := tensor.Zeros(2, 2), tensor.Ones(2)
	b.ReportAllocs()
	for b.Loop() {
		x = x.Add(row)
	}
	if err := x.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSum is a structural operation on four elements.
func BenchmarkSum(b *testing.B) {
	x := tensor.Ones(2, 2)
	var y *tensor.Tensor
	b.ReportAllocs()
	for b.Loop() {
		y = x.Sum(0)
	}
	if err := y.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBackward is a chain of ten tracked operations and its gradient.
func BenchmarkBackward(b *testing.B) {
	w := tensor.NewParam(tensor.On(device.CPU()).Ones(4))
	b.ReportAllocs()
	for b.Loop() {
		y := w.Value()
		for range 9 {
			y = y.MulScalar(0.5)
		}
		y.Sum().Backward()
		w.ZeroGrad()
	}
	if err := w.Value().Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStack reports the time until a thousand rows of 64 elements are stacked, for each row: the best of many,
// in nanoseconds.
func BenchmarkStack(b *testing.B) {
	rows := make([]*tensor.Tensor, 1000)
	for i := range rows {
		rows[i] = tensor.Randn(64)
	}
	best := time.Duration(math.MaxInt64)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if err := tensor.Stack(0, rows...).Wait(); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Nanoseconds())/float64(len(rows)), "ns/row")
}

// BenchmarkAttention measures 32 heads of 1024 queries and keys with 64 elements each.
func BenchmarkAttention(b *testing.B) {
	q, k, v := tensor.Randn(4, 8, 1024, 64), tensor.Randn(4, 8, 1024, 64), tensor.Randn(4, 8, 1024, 64)
	for _, causal := range []bool{false, true} {
		how := tensor.AttentionOptions{Causal: causal}
		b.Run(fmt.Sprintf("causal=%v", causal), func(b *testing.B) {
			for range b.N {
				y := tensor.Attention(q, k, v, how)
				y.Wait()
				tensor.Dead(y)
			}
		})
		b.Run(fmt.Sprintf("causal=%v/gradient", causal), func(b *testing.B) {
			p := []*tensor.Param{tensor.NewParam(q), tensor.NewParam(k), tensor.NewParam(v)}
			for range b.N {
				tensor.Attention(p[0].Value(), p[1].Value(), p[2].Value(), how).Sum().Backward()
				for _, x := range p {
					x.Grad().Wait()
					x.ZeroGrad()
				}
			}
		})
	}
}
