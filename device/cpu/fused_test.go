package cpu

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// unfused is a command for each application in e, the operands being those of c, with memory of its
// own for each result. That of the last one is returned. E is an application of some.
func unfused(e *kernel.Expr, c *device.Command) (cmds []device.Command, out *device.Buffer) {
	results := map[*kernel.Expr]*device.Buffer{}
	for _, x := range e.Nodes() {
		if x.Kind() != kernel.Application {
			continue
		}
		one := device.Command{N: c.N, Imm: c.Imm}
		if c.Args != nil {
			one.Args = &device.Args{Shape: c.Args.Shape}
		}
		var types []device.DType
		operands := make([]*kernel.Expr, len(x.In()))
		for i, in := range x.In() {
			if isScalar(in) {
				operands[i] = in
				continue
			}
			operands[i] = kernel.Arg(len(types), in.DType())
			types = append(types, in.DType())
			at := len(types)
			if in.Kind() != kernel.Operand {
				one.Buf[at] = results[in]
				continue
			}
			one.Buf[at], one.Off[at] = c.Buf[in.Index()+1], c.Off[in.Index()+1]
			if c.Args != nil {
				one.Args.Strides[at] = c.Args.Strides[in.Index()+1]
			}
		}
		var alone *kernel.Expr
		if x.Prim() == kernel.PrimCast {
			alone = kernel.Cast(operands[0], x.DType())
		} else {
			alone = kernel.Apply(x.Prim(), operands...)
		}
		one.Kernel = device.NewKernel(x.Prim().String(), device.Map, alone, x.DType(), types...)
		results[x] = device.HostBuffer(int64(c.N * x.DType().Size()))
		one.Buf[0] = results[x]
		cmds = append(cmds, one)
	}
	return cmds, results[e]
}

// TestFusedIsUnfused runs expressions of several primitives as one command and as one for each,
// with any number of workers. The results have the same bits. TestMapIsEval compares with the
// definition.
func TestFusedIsUnfused(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			everySplit(t, testFusedIsUnfused)
		})
	}
}

func testFusedIsUnfused(t *testing.T) {
	rnd := newRand(t)
	dts := device.DTypes()
	for range 25 {
		in := make([]device.DType, 1+rnd.IntN(3))
		for i := range in {
			in[i] = dts[rnd.IntN(len(dts))]
		}
		e := randomExpr(rnd, in)
		if e.Kind() != kernel.Application {
			continue
		}
		k := device.NewKernel("random", device.Map, e, e.DType(), in...)
		// Rows that are short, that make a pattern, and that loops run along.
		for _, width := range []int{1 + rnd.IntN(9), 20 + rnd.IntN(200), shortestRow + rnd.IntN(2*tile)} {
			shape := device.Shape{1 + rnd.IntN(3+3*tile/width), width}
			c := device.Command{Kernel: k, N: shape.Size(), Imm: [2]uint64{randomBits(rnd, device.Float32), randomBits(rnd, device.Float64)},
				Args: &device.Args{Shape: shape}}
			for i, dt := range in {
				strides := [][]int{nil, {0, 0}, {0, 1}, {1, 0}, {0, -1}, {2 * width, 2}, {width + 3, 1}, {1, shape[0]}}[rnd.IntN(8)]
				size, off := c.N, rnd.IntN(4)
				if strides != nil {
					size = 1
					for axis, s := range strides {
						if size += (shape[axis] - 1) * max(s, -s); s < 0 {
							off += (shape[axis] - 1) * -s
						}
					}
				}
				c.Args.Strides[i+1], c.Off[i+1] = strides, off
				c.Buf[i+1] = randomBuffer(rnd, dt, size+4)
			}
			c.Off[0] = rnd.IntN(4)
			c.Buf[0] = randomBuffer(rnd, e.DType(), c.N+c.Off[0])
			alone, want := unfused(e, &c)
			for _, cmd := range append(alone, c) {
				if err := Run(&cmd); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.N {
				if got, want := load(c.Buf[0], e.DType(), c.Off[0]+i), load(want, e.DType(), i); !sameBits(e.DType(), got, want) {
					t.Fatalf("%v\nof %v: element %d of %v (args %+v) is %#x, and %#x by one command for each primitive", e, in, i, shape, c.Args, got, want)
				}
			}
		}
	}
}

// TestStepsOfTwo tells which products and sums become one step, and for which commands they don't.
func TestStepsOfTwo(t *testing.T) {
	x, y, z := kernel.Arg(0, device.Float32), kernel.Arg(1, device.Float32), kernel.Arg(2, device.Float32)
	one, whole := kernel.Const(1.5, device.Float32), kernel.Arg(0, device.Int64)
	product := kernel.Mul(x, y)
	for _, test := range []struct {
		name  string
		e     *kernel.Expr
		steps int
	}{
		{"x*y + z", kernel.Add(product, z), 1},
		{"z + x*y", kernel.Add(z, product), 1},
		{"z - x*y", kernel.Sub(z, product), 1},
		{"x*y - z", kernel.Sub(product, z), 2},
		{"1.5*x + z", kernel.Add(kernel.Mul(one, x), z), 1},
		{"x*y + 1.5", kernel.Add(product, one), 2},
		{"x*y + y*z", kernel.Add(product, kernel.Mul(y, z)), 2},
		{"x*y + x*y", kernel.Add(product, product), 2},
		{"(x*y + z) * x*y", kernel.Mul(kernel.Add(product, z), product), 3},
		{"int64s", kernel.Add(kernel.Mul(whole, whole), whole), 2},
	} {
		if got := len(compileExpr(test.e, true).steps); got != test.steps {
			t.Errorf("%s: %d steps, want %d", test.name, got, test.steps)
		}
	}
	row, cell := []int{0, 1}, []int{0, 0}
	for _, test := range []struct {
		name    string
		e       *kernel.Expr
		strides [device.MaxOperands][]int
		apart   bool
	}{
		{"no views", kernel.Add(product, z), [device.MaxOperands][]int{}, false},
		{"a view", kernel.Add(product, z), [device.MaxOperands][]int{2: cell}, false},
		{"two views", kernel.Add(product, z), [device.MaxOperands][]int{2: row, 3: row}, true},
		{"a view and a number", kernel.Add(kernel.Mul(one, x), z), [device.MaxOperands][]int{3: row}, true},
		{"two views of two steps", kernel.Add(kernel.Mul(kernel.Add(x, y), y), z), [device.MaxOperands][]int{1: row, 3: row}, false},
	} {
		k := device.NewKernel(test.name, device.Map, test.e, device.Float32, device.Float32, device.Float32, device.Float32)
		p := programOf(compileExpr(test.e, true), test.e, k.In)
		p.apart = newProgram(test.e, k.In)
		c := device.Command{Kernel: k, N: 6, Args: &device.Args{Shape: device.Shape{2, 3}, Strides: test.strides}}
		if got := p.isBetterApart(&c); got != test.apart {
			t.Errorf("%s: apart: %t, want %t", test.name, got, test.apart)
		}
	}
}

// TestFoldsOfManyBlocks folds rows of several blocks, some blocks by each worker. The results are
// those of the definition.
func TestFoldsOfManyBlocks(t *testing.T) {
	rnd := newRand(t)
	for _, workers := range []int{1, 2, 7} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
			defer func(g int) { grain = g }(grain)
			for _, grain = range []int{1 << 18, 8} {
				for _, r := range []kernel.Reducer{kernel.ReduceSum, kernel.ReduceMax} {
					k := device.NewKernel(r.String(), device.Reduce, r, device.Float32, device.Float32)
					for _, shape := range []device.Shape{{3, kernel.Block + 1}, {2, 3*kernel.Block + 70}, {9 * kernel.Block}} {
						c := device.Command{Kernel: k, N: shape[:len(shape)-1].Size(), Args: &device.Args{Shape: shape, Kept: len(shape) - 1}}
						c.Off[0], c.Off[1] = rnd.IntN(3), rnd.IntN(3)
						c.Buf[0], c.Buf[1] = device.HostBuffer(int64(4*(c.N+3))), device.HostBuffer(int64(4*(shape.Size()+3)))
						x := device.Slice[float32](c.Buf[1], c.Off[1], shape.Size())
						for i := range x {
							x[i] = float32(rnd.NormFloat64())
						}
						if err := Run(&c); err != nil {
							t.Fatal(err)
						}
						n := shape[len(shape)-1]
						for i, got := range device.Slice[float32](c.Buf[0], c.Off[0], c.N) {
							if want := kernel.Fold(r, x[i*n:][:n]); got != want {
								t.Errorf("%v of row %d of %v is %v, want %v (grain %d)", r, i, shape, got, want, grain)
							}
						}
					}
				}
			}
		})
	}
}
