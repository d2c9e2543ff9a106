package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Whatever a command computes has the same bits for any number of workers, but for which NaN it is.
func TestWorkers(t *testing.T) {
	defer func(old int) { grain = old }(grain)
	grain = 1 << 10 // so that everything is shared
	rnd := newRand(t)
	for _, dt := range []device.DType{device.Float32, device.Float64} {
		for _, c := range sharedCommands(rnd, dt) {
			var want []byte
			for _, workers := range []int{1, 2, 7} {
				old := runtime.GOMAXPROCS(workers)
				for range 3 {
					out := slice[byte](c.Buf[0].Ptr, int(c.Buf[0].Bytes))
					fillSlice(out, 0xa5)
					if err := Run(&c); err != nil {
						t.Fatal(err)
					}
					if want == nil {
						want = slices.Clone(out)
					}
					if !sameElements(c.Kernel.Out, out, want) {
						t.Errorf("%s of %v, shape %v, strides %v: other bits with %d workers", c.Kernel.Name, dt, c.Args.Shape, c.Args.Strides, workers)
					}
				}
				runtime.GOMAXPROCS(old)
			}
		}
	}
}

// sameElements reports whether two results have the same bits, but for those of NaNs: which of two operands
// a sum that is NaN has them of is up to the compiler.
func sameElements(dt device.DType, x, y []byte) bool {
	if bytes.Equal(x, y) {
		return true
	}
	for at, size := 0, dt.Size(); at < len(x); at += size {
		var a, b [8]byte
		copy(a[:size], x[at:])
		copy(b[:size], y[at:])
		if !sameBits(dt, binary.LittleEndian.Uint64(a[:]), binary.LittleEndian.Uint64(b[:])) {
			return false
		}
	}
	return true
}

// sharedCommands are commands of codes that have the work of one result shared, or that of some.
func sharedCommands(rnd *rand.Rand, dt device.DType) (all []device.Command) {
	add := func(name string, code device.Code, body device.Body, n int, out device.DType, args device.Args, in ...*device.Buffer) {
		c := device.Command{N: n, Args: &args, Imm: [2]uint64{kernel.BitsOf(0.01, dt)}}
		types := []device.DType{dt, dt, dt}[:len(in)]
		if code == device.Gather || code == device.ScatterAdd {
			types[1] = device.Int64
		}
		c.Kernel = device.NewKernel(name, code, body, out, types...)
		c.Buf[0] = device.HostBuffer(int64(n * out.Size()))
		copy(c.Buf[1:], in)
		all = append(all, c)
	}
	numbers := func(n int) *device.Buffer { return randomBuffer(rnd, dt, n) }
	for _, shape := range []device.Shape{{150, 33}, {40, 1000}, {3, kernel.Block + 70}} {
		rows, n := shape[0], shape[1]
		for _, isColumns := range []bool{false, true} {
			args := device.Args{Shape: shape, Kept: 1, Ints: []int{0, 0}}
			if isColumns {
				args.Strides[0], args.Strides[1] = []int{1, rows}, []int{1, rows}
			}
			for _, f := range kernel.RowFuncs() {
				in := []*device.Buffer{numbers(rows * n)}
				if f.Norms() {
					in = append(in, numbers(n), numbers(n))
				}
				add(f.String(), device.Rows, f, rows*n, dt, args, in...)
			}
			add("cumsum", device.Scan, kernel.ReduceSum, rows*n, dt, args, numbers(rows*n))
			folded := args
			folded.Strides[0] = nil
			add("sum", device.Reduce, kernel.ReduceSum, rows, dt, folded, numbers(rows*n))
			add("argmax", device.ArgReduce, kernel.ReduceMax, rows, device.Int64, folded, numbers(rows*n))
			for _, k := range []int{3, n} {
				sorted := folded
				sorted.Ints = []int{k, rnd.IntN(2)}
				add(fmt.Sprintf("first %d", k), device.ArgSort, nil, rows*k, device.Int64, sorted, numbers(rows*n))
			}
		}
	}
	// how many indices, of how many rows, how long
	for _, s := range [][3]int{{300, 50, 200}, {5000, 20, 1}, {400, 10, 24}, {2000, 701, 9}} {
		count, rows, width := s[0], s[1], s[2]
		indices := make([]int64, count)
		for i := range indices {
			indices[i] = int64(rnd.IntN(2*rows) - rows)
		}
		args := device.Args{Shape: device.Shape{count, width}, Ints: []int{rows, width}}
		args.Strides[2] = []int{1, 0}
		from := args
		from.Strides[1] = []int{0, 1}
		add("gather", device.Gather, nil, count*width, dt, from, numbers(rows*width), bufferOf(indices))
		args.Strides[0] = []int{0, 1}
		add("scatteradd", device.ScatterAdd, nil, rows*width, dt, args, numbers(count*width), bufferOf(indices))
	}
	for range 10 {
		w := &[2]device.Window{randomWindow(rnd, 12), randomWindow(rnd, 40)}
		n := 1 + rnd.IntN(20)
		args := device.Args{Shape: device.Shape{n}, Window: w}
		places, in := n*w[0].Out*w[1].Out, n*w[0].In*w[1].In
		add("avgpool", device.Pool, kernel.ReduceSum, places, dt, args, numbers(in))
		add("maxpool", device.Pool, kernel.ReduceMax, places, dt, args, numbers(in))
		add("argpool", device.ArgPool, kernel.ReduceMax, places, device.Int64, args, numbers(in))
	}
	return all
}
