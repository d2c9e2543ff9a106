package data_test

import (
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/data"
)

// BenchmarkEpoch loads 60,000 shuffled images of 28×28 pixels in batches of 64, on two workers.
func BenchmarkEpoch(b *testing.B) {
	b.Run("float32", benchmarkEpoch[float32])
	b.Run("uint8", benchmarkEpoch[uint8])
}

func benchmarkEpoch[T device.Element](b *testing.B) {
	const n, pixels = 60_000, 28 * 28
	x := data.Array[T]{Data: make([]T, n*pixels), Shape: []int{n, 28, 28}}
	y := data.Array[int64]{Data: make([]int64, n), Shape: []int{n}}
	l := data.NewLoader(data.Pair(x, y), 64, data.Options{Shuffle: true, Workers: 2})
	b.SetBytes(int64(n * (pixels*device.DTypeOf[T]().Size() + 8)))
	for b.Loop() {
		for _, err := range l.All() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*l.Len())/b.Elapsed().Seconds(), "batches/s")
}
