package cpu

import (
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Operands that lie across the result, some of them among those that have no place in the command itself, have the bits
// of the definition, in one band and in several.
func TestMapAcross(t *testing.T) { everySplit(t, testMapAcross) }

func testMapAcross(t *testing.T) {
	defer func(f, b int) { fewestAcross, bandBytes = f, b }(fewestAcross, bandBytes)
	rnd := newRand(t)
	f32, f64, i64 := device.Float32, device.Float64, device.Int64
	in := []device.DType{f32, i64, f64, f32, f64, f32}
	e := kernel.Cast(kernel.Arg(0, in[0]), f64)
	for i, dt := range in[1:] {
		x := kernel.Arg(i+1, dt)
		if dt != f64 {
			x = kernel.Cast(x, f64)
		}
		e = kernel.Apply([]kernel.Prim{kernel.PrimSub, kernel.PrimMul}[i%2], e, x)
	}
	k := device.NewKernel("across", device.Map, e, f64, in...)
	for _, shape := range []device.Shape{{40, 50}, {1, 1, 37, 25}, {5, 33, 7}, {33, 5, 7}, {3, 4, 5, 6}, {4, 700}, {1, 7}} {
		for _, bandBytes = range []int{1, 2000, 1 << 20} {
			fewestAcross = 1
			c := device.Command{Kernel: k, N: shape.Size(), Args: &device.Args{Shape: shape, Parts: make([]device.Part, len(in)-3)}}
			c.Off[0] = rnd.IntN(3)
			c.Buf[0] = randomBuffer(rnd, f64, c.N+c.Off[0])
			first := rnd.IntN(4)
			for i, dt := range in {
				size, off := c.N, rnd.IntN(3)
				var strides []int
				switch (i + first) % 4 {
				case 0, 1:
					strides, size = randomView(rnd, shape)
				case 2: // the last axis is the outermost in memory
					strides = make([]int, len(shape))
					n := 1
					for axis := range shape {
						strides[axis], n = n, n*shape[axis]
					}
				}
				buf := randomBuffer(rnd, dt, size+off)
				if i < 3 {
					c.Buf[i+1], c.Off[i+1], c.Args.Strides[i+1] = buf, off, strides
				} else {
					c.Args.Parts[i-3] = device.Part{Buf: buf, Off: off, Strides: strides}
				}
			}
			if err := Run(&c); err != nil {
				t.Fatal(err)
			}
			for at := range c.N {
				args := make([]uint64, len(in))
				for i, dt := range in {
					buf, off := c.Operand(i + 1)
					args[i] = load(buf, dt, off+inView(shape, c.Strides(i+1), at))
				}
				got, want := load(c.Buf[0], f64, c.Off[0]+at), e.Eval(args, c.Imm[:])
				if !sameBits(f64, got, want) {
					t.Fatalf("element %d of %v (args %+v, bands of %d bytes) is %#x, want %#x", at, shape, c.Args, bandBytes, got, want)
				}
			}
		}
	}
}

// inView is where element i in row-major order lies; without strides, at i.
func inView(shape device.Shape, strides []int, i int) (at int) {
	if strides == nil {
		return i
	}
	for axis := len(shape) - 1; axis >= 0; axis-- {
		at += i % shape[axis] * strides[axis]
		i /= shape[axis]
	}
	return at
}
