package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
)

const longest = 130 // of the lengths that are tested one by one

// newRand returns random numbers from a seed that a failure prints.
func newRand(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// edges are where functions of floating-point numbers and conversions have their corners.
var edges = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 1e-3, 88.7, -104, 5e-324, 1e-45, -1e-40, 1.2e-38, 3.4e38, 1e300, -1e300,
	1 << 24, 1<<24 + 1, 1 << 31, 1 << 53, -1 << 63, 1 << 63, 1<<63 - 1024, math.Inf(1), math.Inf(-1), math.NaN(),
}

var intEdges = []int64{0, 1, -1, 2, 3, -7, 63, 64, 1 << 31, -1 << 40, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}

// element is a random value of type dt, often an edge, as Bits.
func element(rnd *rand.Rand, dt device.DType) uint64 {
	isEdge := rnd.IntN(3) == 0
	switch {
	case dt == device.Bool:
		return rnd.Uint64N(2)
	case dt == device.Int64 && isEdge:
		return uint64(intEdges[rnd.IntN(len(intEdges))])
	case dt == device.Int64:
		return uint64(rnd.Int64N(2000) - 1000)
	case dt.IsStorage():
		return rnd.Uint64() & (1<<(8*dt.Size()) - 1)
	case dt == device.Float32 && rnd.IntN(4) == 0: // halfway between numbers of 16 bits, or near that
		low := 16 - 3*rnd.IntN(2)
		return uint64(rnd.Uint32()>>low<<low + 1<<(low-1) + uint32(rnd.IntN(3)) - 1)
	case isEdge:
		return kernel.BitsOf(edges[rnd.IntN(len(edges))], dt)
	}
	return kernel.BitsOf(rnd.NormFloat64()*math.Pow(10, float64(rnd.IntN(9)-4)), dt)
}

func load(p unsafe.Pointer, size, i int) uint64 {
	p = unsafe.Add(p, i*size)
	switch size {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func fillRandom(rnd *rand.Rand, p unsafe.Pointer, dt device.DType, n int, not0 bool) {
	for i := range n {
		v := element(rnd, dt)
		if not0 && v == 0 {
			v = 1
		}
		Fill(unsafe.Add(p, i*dt.Size()), dt.Size(), v, 1)
	}
}

// same reports whether x and y are the Bits of the same number; all NaNs are one.
func same(dt device.DType, x, y uint64) bool {
	switch dt {
	case device.Float32:
		a, b := kernel.Value[float32](x), kernel.Value[float32](y)
		return x == y || a != a && b != b
	case device.Float64:
		a, b := kernel.Value[float64](x), kernel.Value[float64](y)
		return x == y || a != a && b != b
	case device.Float16:
		a, b := kernel.Value[device.Float16Bits](x).Float32(), kernel.Value[device.Float16Bits](y).Float32()
		return x == y || a != a && b != b
	case device.BFloat16:
		a, b := kernel.Value[device.BFloat16Bits](x).Float32(), kernel.Value[device.BFloat16Bits](y).Float32()
		return x == y || a != a && b != b
	}
	return x == y
}

// A loopCase is one loop and what it computes.
type loopCase struct {
	name string
	loop Loop
	in   []device.DType // of x, y and z
	out  device.DType
	form Form
	want func(in [3]uint64) uint64
	not0 bool // the operands are not 0
}

// primCases are the loops of all primitives for the current ISA.
func primCases() []loopCase {
	var all []loopCase
	for _, p := range kernel.Prims() {
		for _, dt := range device.DTypes() {
			if p.Func(dt) == nil {
				continue
			}
			e := &loopCase{in: make([]device.DType, p.Arity()), out: dt, not0: dt == device.Int64 && (p == kernel.PrimDiv || p == kernel.PrimPow)}
			for i := range e.in {
				e.in[i] = dt
			}
			switch p {
			case kernel.PrimWhere:
				e.in[0] = device.Bool
			case kernel.PrimEq, kernel.PrimNe, kernel.PrimLt, kernel.PrimLe:
				e.out = device.Bool
			}
			switch f := p.Func(dt); dt {
			case device.Float32:
				e.want = onBits[float32](f)
			case device.Float64:
				e.want = onBits[float64](f)
			case device.Int64:
				e.want = onBits[int64](f)
			default:
				e.want = onBits[bool](f)
			}
			for _, form := range []Form{NoScalar, FirstScalar, SecondScalar, ThirdScalar} {
				c := *e
				c.form, c.loop = form, PrimLoop(p, dt, form)
				c.name = fmt.Sprintf("%v/%v/%d", p, dt, form)
				if c.loop != nil {
					all = append(all, c)
				}
			}
		}
	}
	return append(all, addMulCases()...)
}

// addMulCases are the loops of a product and a sum or a difference for the current ISA, which give what a loop for each
// gives.
func addMulCases() []loopCase {
	var all []loopCase
	for _, dt := range []device.DType{device.Float32, device.Float64} {
		mul, add, sub := kernel.PrimMul.Func(dt), kernel.PrimAdd.Func(dt), kernel.PrimSub.Func(dt)
		for _, isMinus := range []bool{false, true} {
			join := add
			if isMinus {
				join = sub
			}
			for _, form := range []Form{NoScalar, FirstScalar, SecondScalar} {
				c := loopCase{name: fmt.Sprintf("addMul/%v/%v/%d", isMinus, dt, form), in: []device.DType{dt, dt, dt}, out: dt, form: form}
				c.loop, _ = AddMulLoop(isMinus, dt, form)
				c.want = func(in [3]uint64) uint64 {
					product := bitsOf(dt, mul)([3]uint64{in[0], in[1]})
					return bitsOf(dt, join)([3]uint64{in[2], product})
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// bitsOf is onBits for a type of floats that is known when the test runs.
func bitsOf(dt device.DType, f any) func(in [3]uint64) uint64 {
	if dt == device.Float64 {
		return onBits[float64](f)
	}
	return onBits[float32](f)
}

// onBits is f, the function of a primitive, of operands as Bits.
func onBits[T device.Element](f any) func(in [3]uint64) uint64 {
	v, b := kernel.Value[T], kernel.Bits[T]
	switch f := f.(type) { // in this order, as two forms are one type for bools
	case func(bool, T, T) T:
		return func(in [3]uint64) uint64 { return b(f(in[0] != 0, v(in[1]), v(in[2]))) }
	case func(T) T:
		return func(in [3]uint64) uint64 { return b(f(v(in[0]))) }
	case func(T, T) T:
		return func(in [3]uint64) uint64 { return b(f(v(in[0]), v(in[1]))) }
	case func(T, T) bool:
		return func(in [3]uint64) uint64 { return kernel.Bits(f(v(in[0]), v(in[1]))) }
	}
	panic("no primitive has such a function")
}

// castCases are the conversions for the current ISA.
func castCases() []loopCase {
	var all []loopCase
	for _, from := range device.DTypes() {
		for _, to := range device.DTypes() {
			if !kernel.Converts(from, to) {
				continue
			}
			expr := kernel.Cast(kernel.Arg(0, from), to)
			all = append(all, loopCase{name: fmt.Sprintf("%v to %v", from, to), loop: CastLoop(from, to), in: []device.DType{from}, out: to,
				want: func(in [3]uint64) uint64 { return expr.Eval(in[:1], nil) }})
		}
	}
	return all
}

func TestCastLoops(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, c := range castCases() {
			c.run(t, rnd)
		}
	})
}

func TestPrimLoops(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		rnd := newRand(t)
		for _, c := range primCases() {
			c.run(t, rnd)
		}
	})
}

// Every primitive has a loop without a scalar, whatever the machine has.
func TestPrimLoopsAreComplete(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		for _, p := range kernel.Prims() {
			for _, dt := range device.DTypes() {
				if got, want := PrimLoop(p, dt, NoScalar) != nil, p.Func(dt) != nil; got != want {
					t.Errorf("%v of %v: loop %v, function %v", p, dt, got, want)
				}
			}
		}
	})
}

// run runs the loop on every length, its operands flush against pages that can't be touched, at the end or at the
// beginning and at any alignment, and where an operand has the size of the result also in place.
func (c *loopCase) run(t *testing.T, rnd *rand.Rand) {
	t.Run(c.name, func(t *testing.T) {
		for _, atEnd := range []bool{true, false} {
			size := c.out.Size()
			out := guarded(t, (longest+1)*size, atEnd)
			var in [3]unsafe.Pointer
			for i, dt := range c.in {
				in[i] = guarded(t, (longest+1)*dt.Size(), atEnd)
			}
			for n := range longest + 1 {
				// from is how many elements there are before the first that the loop sees.
				at := func(p unsafe.Pointer, dt device.DType, from int) unsafe.Pointer { return unsafe.Add(p, from*dt.Size()) }
				from := 0
				if atEnd {
					from = longest + 1 - n
				}
				s := element(rnd, c.in[len(c.in)-1])
				if c.not0 && s == 0 {
					s = 1
				}
				want := make([]uint64, n)
				var p [3]unsafe.Pointer
				for i, dt := range c.in {
					fillRandom(rnd, in[i], dt, longest+1, c.not0)
					p[i] = at(in[i], dt, from)
				}
				for i := range want {
					var args [3]uint64
					for k, dt := range c.in {
						args[k] = load(p[k], dt.Size(), i)
					}
					if c.form != NoScalar {
						args[c.form-FirstScalar] = s
					}
					want[i] = c.want(args)
				}
				if c.form != NoScalar {
					p[c.form-FirstScalar] = nil
				}
				fillRandom(rnd, out, c.out, longest+1, false)
				dst := at(out, c.out, from)
				c.check(t, fmt.Sprintf("n=%d atEnd=%v", n, atEnd), dst, p, s, want, from, longest+1-n-from)
				for i, dt := range c.in {
					if dt.Size() != size || p[i] == nil {
						continue
					}
					// In place, the other operands being as they were.
					copyBytes(dst, p[i], n*size)
					q := p
					q[i] = dst
					c.check(t, fmt.Sprintf("n=%d atEnd=%v in place of operand %d", n, atEnd, i), dst, q, s, want, from, longest+1-n-from)
				}
			}
		}
	})
}

// check runs the loop and looks at the result and at what lies before and after it.
func (c *loopCase) check(t *testing.T, what string, dst unsafe.Pointer, p [3]unsafe.Pointer, s uint64, want []uint64, before, after int) {
	t.Helper()
	size, n := c.out.Size(), len(want)
	around := make([]uint64, 0, before+after)
	for i := -before; i < n+after; i++ {
		if i < 0 || i >= n {
			around = append(around, load(dst, size, i))
		}
	}
	c.loop(dst, p[0], p[1], p[2], s, n)
	for i, w := range want {
		if got := load(dst, size, i); !same(c.out, got, w) {
			t.Errorf("%s: element %d is %#x, want %#x", what, i, got, w)
			return
		}
	}
	for i := -before; i < n+after; i++ {
		if i < 0 || i >= n {
			if load(dst, size, i) != around[0] {
				t.Errorf("%s: the loop has written to element %d", what, i)
			}
			around = around[1:]
		}
	}
}

func copyBytes(dst, src unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
