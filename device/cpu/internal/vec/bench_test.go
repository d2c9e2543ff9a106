//go:build amd64 && !noasm && !race

package vec

import (
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// levels are sizes of the three operands of a triad that fit into a level of
// the memory, in bytes.
var levels = []struct {
	name  string
	bytes int
}{{"L1", 8 << 10}, {"L2", 128 << 10}, {"L3", 2 << 20}, {"DRAM", 24 << 20}}

// bandwidth returns how many bytes a second f moves, the best of many windows of f and g in turn, and
// the same for g.
func bandwidth(f, g func(), fBytes, gBytes int) (float64, float64) {
	best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	calls := max(1, (100<<10)/max(fBytes, gBytes))
	begin := time.Now()
	for round := 0; round < 40 || time.Since(begin) < 300*time.Millisecond; round++ {
		for i, call := range []func(){f, g} {
			start := time.Now()
			for range calls {
				call()
			}
			best[i] = min(best[i], time.Since(start))
		}
	}
	return float64(fBytes*calls) / best[0].Seconds(), float64(gBytes*calls) / best[1].Seconds()
}

// BenchmarkOfTriad compares loops with the triad loop of the same ISA, in the same process and in
// turn. In memory beyond the caches both write past these.
func BenchmarkOfTriad(b *testing.B) {
	var memory [4][]byte
	for i := range memory {
		m := make([]byte, levels[len(levels)-1].bytes+64)
		for len(m) > 0 && uintptr(unsafe.Pointer(&m[0]))%64 != 0 {
			m = m[1:]
		}
		memory[i] = m
		clear(m)
	}
	at := func(i int) unsafe.Pointer { return unsafe.Pointer(&memory[i][0]) }
	for _, level := range levels {
		n := level.bytes / 4
		triad := triadAVX2
		switch {
		case Current() == AVX512 && level.name == "DRAM":
			triad = triadPastAVX512
		case Current() == AVX512:
			triad = triadAVX512
		case level.name == "DRAM":
			triad = triadPastAVX2
		}
		for _, test := range []struct {
			name     string
			loop     Loop
			operands int
			past     Loop // for memory beyond the caches
		}{
			{"add", PrimLoop(kernel.PrimAdd, device.Float32, NoScalar), 3, PrimStream(kernel.PrimAdd, device.Float32, NoScalar)},
			{"addScalar", PrimLoop(kernel.PrimAdd, device.Float32, SecondScalar), 2, PrimStream(kernel.PrimAdd, device.Float32, SecondScalar)},
			{"mul", PrimLoop(kernel.PrimMul, device.Float32, NoScalar), 3, PrimStream(kernel.PrimMul, device.Float32, NoScalar)},
			{"max", PrimLoop(kernel.PrimMax, device.Float32, NoScalar), 3, PrimStream(kernel.PrimMax, device.Float32, NoScalar)},
			{"sqrt", PrimLoop(kernel.PrimSqrt, device.Float32, NoScalar), 2, PrimStream(kernel.PrimSqrt, device.Float32, NoScalar)},
			{"neg", PrimLoop(kernel.PrimNeg, device.Float32, NoScalar), 2, PrimStream(kernel.PrimNeg, device.Float32, NoScalar)},
			{"stream", func(dst, x, _, _ unsafe.Pointer, _ uint64, n int) { Stream(dst, x, 4*n) }, 2, nil},
			{"sum", sumLoop(), 1, nil},
		} {
			b.Run(fmt.Sprintf("%s/%s", test.name, level.name), func(b *testing.B) {
				loop := func() {
					for i := 0; i < n; i += 32 << 10 {
						o := 4 * i
						test.loop(unsafe.Add(at(0), o), unsafe.Add(at(1), o), unsafe.Add(at(2), o), nil, 0, min(n-i, 32<<10))
					}
				}
				if level.name == "DRAM" && test.past != nil {
					test.loop = test.past
				}
				var got, want float64
				for b.Loop() {
					got, want = bandwidth(loop, func() { triad((*float32)(at(0)), (*float32)(at(1)), (*float32)(at(2)), n) }, test.operands*4*n, 12*n)
				}
				b.ReportMetric(got/1e9, "GB/s")
				b.ReportMetric(100*got/want, "%triad")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// sumLoop folds blocks, as a reduction of contiguous elements does.
func sumLoop() Loop {
	fold := FoldOf(kernel.PrimAdd, device.Float32)
	return func(_, x, _, _ unsafe.Pointer, _ uint64, n int) {
		for ; n > 0; n -= kernel.Block {
			fold(x, min(n, kernel.Block), 0)
			x = unsafe.Add(x, 4*kernel.Block)
		}
	}
}

// BenchmarkColumns tells how fast the rows of a matrix are read for its product with a column, in
// each level of the memory: the best of many windows. Rows that are a multiple of 1 KiB apart
// collide.
func BenchmarkColumns(b *testing.B) {
	mem := make([]byte, 40<<20)
	for len(mem) > 0 && uintptr(unsafe.Pointer(&mem[0]))%4096 != 0 {
		mem = mem[1:]
	}
	clear(mem)
	p := ProductsOf(device.Float32)
	for _, s := range [][3]int{{32, 128, 128}, {32, 128, 256}, {256, 512, 512}, {256, 512, 528}, {1024, 1024, 1024}, {1024, 1024, 1040}} {
		rows, k, stride := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%dx%d/stride=%d", rows, k, stride), func(b *testing.B) {
			x := make([]float32, k)
			sums := make([]float32, rows)
			best := time.Duration(math.MaxInt64)
			calls := max(1, 1_000_000/(rows*k))
			for b.Loop() {
				begin := time.Now()
				for range calls {
					for i := 0; i < rows; i += p.ColumnRows() {
						p.Columns(k, unsafe.Pointer(&mem[i*stride*4]), stride*4, unsafe.Pointer(&x[0]), unsafe.Pointer(&sums[i]))
					}
				}
				best = min(best, time.Since(begin))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(rows*k*4*calls)/best.Seconds()/1e9, "GB/s")
		})
	}
}
