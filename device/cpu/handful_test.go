package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// Operations of few elements have the bits of the expression at each place, on operands that are
// broadcast or turned in all ways and end where memory does, also where the result takes the place
// of one.
func TestHandfuls(t *testing.T) { everySplit(t, testHandfuls) }

func testHandfuls(t *testing.T) {
	rnd := newRand(t)
	for _, dt := range []device.DType{device.Float32, device.Float64, device.Int64} {
		x, y, z := kernel.Arg(0, dt), kernel.Arg(1, dt), kernel.Arg(2, dt)
		for _, e := range []*kernel.Expr{
			kernel.Add(x, y), kernel.Sub(x, y), kernel.Mul(x, x), kernel.Lt(x, y), kernel.Add(kernel.Mul(x, y), z), kernel.Sub(y, kernel.Const(3, dt)),
			kernel.Where(kernel.Arg(0, device.Bool), y, z), kernel.Sub(kernel.Imm(0, dt), x), kernel.Neg(y),
		} {
			in := []device.DType{dt, dt, dt}
			for _, v := range e.Nodes() {
				if v.Kind() == kernel.Operand {
					in[v.Index()] = v.DType()
				}
			}
			k := device.NewKernel("handful of "+e.String(), device.Map, e, e.DType(), in[:max(e.Args(), 1)]...)
			for range 40 {
				testHandful(t, rnd, k)
			}
		}
	}
}

func testHandful(t *testing.T, rnd *rand.Rand, k *device.Kernel) {
	t.Helper()
	shape := make(device.Shape, rnd.IntN(4))
	for i := range shape {
		shape[i] = 1 + rnd.IntN(6)
	}
	n := shape.Size()
	c := device.Command{Kernel: k, N: n, Args: &device.Args{Shape: shape}, Imm: [2]uint64{kernel.BitsOf(5, k.Out)}}
	if k.Out == device.Bool {
		c.Imm[0] = 0
	}
	var places [device.MaxOperands][]int
	guard := func(operand int, dt device.DType, elements int) {
		b, free := guarded(t, int64(elements*dt.Size()), rnd.IntN(2) == 0)
		t.Cleanup(free)
		for i := range elements {
			store(b, dt, i, randomBits(rnd, dt))
		}
		c.Buf[operand] = b
	}
	guard(0, k.Out, n)
	for i, dt := range k.In {
		strides := shape.Strides()
		kind := rnd.IntN(4)
		least, most := 0, 0
		for axis, d := range shape {
			switch {
			case kind == 1 && rnd.IntN(2) == 0:
				strides[axis] = 0 // broadcast
			case kind == 2:
				strides[axis] = rnd.IntN(7) - 3 // anyhow
			case kind == 3 && axis < len(shape)-1:
				strides[axis] += 2 // rows with gaps
			}
			if span := (d - 1) * strides[axis]; span < 0 {
				least += span
			} else {
				most += span
			}
		}
		c.Off[i+1] = -least
		if kind > 0 {
			c.Args.Strides[i+1] = strides
		}
		guard(i+1, dt, most-least+1)
		for at := range n {
			place := c.Off[i+1]
			for axis := len(shape) - 1; axis >= 0; axis-- {
				place, at = place+at%shape[axis]*strides[axis], at/shape[axis]
			}
			places[i+1] = append(places[i+1], place)
		}
	}
	var want []uint64
	for at := range n {
		var args []uint64
		for i, dt := range k.In {
			args = append(args, load(c.Buf[i+1], dt, places[i+1][at]))
		}
		want = append(want, k.Body.(*kernel.Expr).Eval(args, c.Imm[:]))
	}
	if c.Args.Strides[1] == nil && k.In[0].Size() == k.Out.Size() && rnd.IntN(3) == 0 {
		c.Buf[0] = c.Buf[1] // in place
	}
	if err := Run(&c); err != nil {
		t.Fatal(err)
	}
	for at := range n {
		if got := load(c.Buf[0], k.Out, at); !sameBits(k.Out, got, want[at]) {
			t.Fatalf("%s of shape %v, strides %v: element %d has the bits %x, want %x", k.Name, shape, c.Args.Strides[1:], at, got, want[at])
		}
	}
}
