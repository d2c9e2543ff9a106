package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Parts that end where memory does, and begin where it does, are put side by side: nothing beside
// them is read or written.
func TestConcat(t *testing.T) { everySplit(t, testConcat) }

func testConcat(t *testing.T) {
	rnd := newRand(t)
	k := device.NewKernel("concat", device.Concat, nil, device.Float32)
	for _, atEnd := range []bool{false, true} {
		guard := func(bytes int64) *device.Buffer {
			b, free := guarded(t, bytes, atEnd)
			t.Cleanup(free)
			return b
		}
		for _, rows := range []int{1, 2, 3, 100} {
			for _, count := range []int{1, 2, 5, 40} {
				c := device.Command{Kernel: k, Args: &device.Args{Shape: device.Shape{rows}}}
				width := 0
				for range count {
					n := []int{0, 1, 1 + rnd.IntN(8), 1 + rnd.IntN(300)}[rnd.IntN(4)]
					c.Args.Parts = append(c.Args.Parts, device.Part{Buf: guard(int64(4 * rows * n)), N: n})
					for i := range rows * n {
						device.Slice[float32](c.Args.Parts[len(c.Args.Parts)-1].Buf, 0, rows*n)[i] = rnd.Float32()
					}
					width += n
				}
				c.N = rows * width
				c.Buf[0] = guard(int64(4 * c.N))
				if err := Run(&c); err != nil {
					t.Fatal(err)
				}
				out := device.Slice[float32](c.Buf[0], 0, c.N)
				for row := range rows {
					for i, p := range c.Args.Parts {
						for j, want := range device.Slice[float32](p.Buf, row*p.N, p.N) {
							if out[0] != want {
								t.Fatalf("%d rows of %d parts: element %d of part %d in row %d is %v, want %v", rows, count, j, i, row, out[0], want)
							}
							out = out[1:]
						}
					}
				}
			}
		}
	}
}

// What is wrong with a command is found before anything is written.
func TestConcatOutside(t *testing.T) {
	k := device.NewKernel("concat", device.Concat, nil, device.Float32)
	for name, part := range map[string]device.Part{
		"reaches outside":  {Buf: device.HostBuffer(40), Off: 3, N: 4},
		"don't make up":    {Buf: device.HostBuffer(400), N: 3},
		"reaches outside ": {Buf: device.HostBuffer(400), Off: -1, N: 4},
	} {
		c := device.Command{Kernel: k, N: 8, Args: &device.Args{Shape: device.Shape{2}, Parts: []device.Part{part}}}
		c.Buf[0] = device.HostBuffer(32)
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, strings.TrimSpace(name)) {
					t.Errorf("%v: %s", part, p)
				}
			}()
			Run(&c)
		}()
	}
}

// BenchmarkConcat compares what putting parts side by side moves with what copying as much moves,
// in one process and in turn.
func BenchmarkConcat(b *testing.B) {
	f32 := device.Float32
	k, one := device.NewKernel("concat", device.Concat, nil, f32), device.NewKernel("copy", device.Copy, nil, f32, f32)
	for _, s := range [][3]int{{1024, 2, 1024}, {1, 2, 1 << 20}, {1, 1000, 64}, {1 << 20, 2, 1}, {4096, 2, 4096}} {
		rows, count, n := s[0], s[1], s[2]
		b.Run(fmt.Sprintf("%d rows of %d parts of %d", rows, count, n), func(b *testing.B) {
			all := rows * count * n
			c := device.Command{Kernel: k, N: all, Args: &device.Args{Shape: device.Shape{rows}}}
			for range count {
				c.Args.Parts = append(c.Args.Parts, device.Part{Buf: device.HostBuffer(int64(4 * rows * n)), N: n})
			}
			c.Buf[0] = device.HostBuffer(int64(4 * all))
			whole := device.Command{Kernel: one, N: all, Buf: [4]*device.Buffer{c.Buf[0], device.HostBuffer(int64(4 * all))}}
			var got, want float64
			for b.Loop() {
				got, want = rates(func() { Run(&c) }, func() { Run(&whole) }, 8*all, 8*all)
			}
			b.ReportMetric(got/1e9, "GB/s")
			b.ReportMetric(100*got/want, "%copy")
			b.ReportMetric(0, "ns/op")
		})
	}
}
