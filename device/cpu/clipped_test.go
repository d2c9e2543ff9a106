package cpu

import (
	"bytes"
	"math"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// poolings are the kernels that look at windows.
func poolings(dt device.DType) []*device.Kernel {
	return []*device.Kernel{
		device.NewKernel("sumpool", device.Pool, kernel.ReduceSum, dt, dt),
		device.NewKernel("maxpool", device.Pool, kernel.ReduceMax, dt, dt),
		device.NewKernel("argpool", device.ArgPool, kernel.ReduceMax, device.Int64, dt),
	}
}

// TestClippedWindows: windows that are clipped give what those give of which all places are looked at, bit for bit.
func TestClippedWindows(t *testing.T) {
	defer func(old float64) { mostlyOutside = old }(mostlyOutside)
	rnd := newRand(t)
	clipped := 0
	for range 500 {
		w := &[2]device.Window{randomWindow(rnd, 9), randomWindow(rnd, 9)}
		for _, dt := range []device.DType{device.Float32, device.Float64} {
			planes := 1 + rnd.IntN(3)
			in := randomBuffer(rnd, dt, planes*w[0].In*w[1].In)
			for _, k := range poolings(dt) {
				n := planes * w[0].Out * w[1].Out
				c := device.Command{Kernel: k, N: n, Args: &device.Args{Shape: device.Shape{planes}, Window: w}}
				run := func(from float64) []byte {
					mostlyOutside = from
					c.Buf = [device.MaxOperands]*device.Buffer{device.HostBuffer(int64(n * k.Out.Size())), in}
					if err := Run(&c); err != nil {
						t.Fatal(err)
					}
					return slice[byte](c.Buf[0].Ptr, n*k.Out.Size())
				}
				got, want := run(0), run(math.Inf(1))
				if !sameElements(k.Out, got, want) {
					t.Fatalf("%s of %v by %+v: clipped windows give\n%v, want\n%v", k.Name, dt, *w, got, want)
				}
				if !bytes.Equal(got, make([]byte, len(got))) && w[0].Step*w[0].Step == 1 && w[1].Step*w[1].Step == 1 {
					clipped++
				}
			}
		}
	}
	if clipped < 100 {
		t.Errorf("%d commands had windows that can be clipped", clipped)
	}
}

// TestHugeWindow has windows of 2^40 places on planes of 15 elements, of which four windows have parts.
func TestHugeWindow(t *testing.T) {
	const size = 1 << 20
	w := &[2]device.Window{
		// what the first has ends behind 2, the second begins at 1
		{In: 3, Out: 2, Size: size, Stride: size - 1, Pad: size - 2, Step: 1, Holes: 1},
		// the first has 3 elements, the second the other two
		{In: 5, Out: 2, Size: size, Stride: size, Pad: size - 3, Step: 1, Holes: 1},
	}
	in := []float32{
		1, -2, 3, 4, 9,
		5, 6, 8, -1, 0,
		7, 2, 0, 1, 3,
	}
	want := map[string][]float64{
		"sumpool": {21, 12, 28, 3}, // rows 0 to 1, then 1 to 2
		"maxpool": {8, 9, 8, 3},
		"argpool": {7, 4, 7, 14},
	}
	for _, k := range poolings(device.Float32) {
		c := device.Command{Kernel: k, N: 4, Args: &device.Args{Window: w}}
		c.Buf = [device.MaxOperands]*device.Buffer{device.HostBuffer(32), bufferOf(in)}
		if err := Run(&c); err != nil {
			t.Fatal(err)
		}
		for i, want := range want[k.Name] {
			got := float64(0)
			if k.Out == device.Int64 {
				got = float64(device.Slice[int64](c.Buf[0], 0, 4)[i])
			} else {
				got = float64(device.Slice[float32](c.Buf[0], 0, 4)[i])
			}
			if got != want {
				t.Errorf("%s: result %d is %v, want %v", k.Name, i, got, want)
			}
		}
	}
}
