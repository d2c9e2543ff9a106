package cpu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Parts that end where memory does, and begin where it does, are put side by side: nothing beside them is read or written.
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
