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

type float interface{ float32 | float64 }

// An arena is memory between guards.
type arena struct {
	p     unsafe.Pointer
	bytes int
}

func newArena(t *testing.T, bytes int) arena { return arena{guarded(t, bytes, true), bytes} }

// take returns room for n numbers, at either end.
func take[T float](a arena, rnd *rand.Rand, n int) []T {
	size := n * int(unsafe.Sizeof(T(0)))
	at := 0
	if rnd.IntN(2) == 0 {
		at = a.bytes - size
	}
	return unsafe.Slice((*T)(unsafe.Add(a.p, at)), n)
}

// some fills x with numbers of which a few are special.
func some[T float](rnd *rand.Rand, x []T) []T {
	special := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64, 1e-45, -1e-40, 3e38}
	for i := range x {
		x[i] = T(rnd.NormFloat64())
		if rnd.IntN(200) == 0 {
			x[i] = T(special[rnd.IntN(len(special))])
		}
	}
	return x
}

func sameNumber[T float](x, y T) bool {
	return kernel.Bits(x) == kernel.Bits(y) || x != x && y != y
}

// eachProducts runs test for the loops of each instruction set that the machine has.
func eachProducts(t *testing.T, test32, test64 func(*testing.T, *Products, *rand.Rand)) {
	defer Use(Current())
	for _, isa := range Has()[1:] {
		Use(isa)
		for dt, test := range map[device.DType]func(*testing.T, *Products, *rand.Rand){device.Float32: test32, device.Float64: test64} {
			p := ProductsOf(dt)
			t.Run(fmt.Sprintf("%v/%v", isa, dt), func(t *testing.T) { test(t, p, rand.New(rand.NewPCG(1, 2))) })
		}
	}
}

func TestTile(t *testing.T) { eachProducts(t, testTile[float32], testTile[float64]) }

func testTile[T float](t *testing.T, p *Products, rnd *rand.Rand) {
	aa, ba, ca := newArena(t, 1<<16), newArena(t, 1<<16), newArena(t, 1<<16)
	shape := func(rows, cols int, tile func(k int, a unsafe.Pointer, row, col int, b unsafe.Pointer, step int, c unsafe.Pointer, ld int, more bool)) {
		k := 1 + rnd.IntN(9)
		row, col := k+rnd.IntN(3), 1
		if rnd.IntN(2) == 0 {
			row, col = 1, rows+rnd.IntN(3)
		}
		step, ld := cols+rnd.IntN(3), cols+rnd.IntN(3)
		a := some(rnd, take[T](aa, rnd, (rows-1)*row+(k-1)*col+1))
		b := some(rnd, take[T](ba, rnd, (k-1)*step+cols))
		c := some(rnd, take[T](ca, rnd, (rows-1)*ld+cols))
		more := rnd.IntN(2) == 0
		want := append([]T(nil), c...)
		for i := range rows {
			for j := range cols {
				sum := T(0)
				if more {
					sum = c[i*ld+j]
				}
				for q := range k {
					sum = kernel.MulAdd(a[i*row+q*col], b[q*step+j], sum)
				}
				want[i*ld+j] = sum
			}
		}
		tile(k, unsafe.Pointer(&a[0]), row*p.Size, col*p.Size, unsafe.Pointer(&b[0]), step*p.Size, unsafe.Pointer(&c[0]), ld*p.Size, more)
		for i := range want {
			if !sameNumber(c[i], want[i]) {
				t.Fatalf("%dx%dx%d, strides %d %d, %d, %d, more %v: element %d of the memory is %v, want %v", rows, cols, k, row, col, step, ld, more, i, c[i], want[i])
			}
		}
	}
	for rows := 1; rows <= p.Rows; rows++ {
		for cols := 1; cols <= 2*p.Lanes; cols++ {
			for range 3 {
				shape(rows, cols, func(k int, a unsafe.Pointer, row, col int, b unsafe.Pointer, step int, c unsafe.Pointer, ld int, more bool) {
					p.Tile(rows, cols, k, a, row, col, b, step, c, ld, more, c)
				})
			}
		}
	}
	for i, vectors := range p.Wide {
		for range 20 {
			shape(1, vectors*p.Lanes, func(k int, a unsafe.Pointer, _, col int, b unsafe.Pointer, step int, c unsafe.Pointer, _ int, more bool) {
				p.Row(i, k, a, col, b, step, c, more)
			})
		}
	}
}

func TestColumns(t *testing.T) { eachProducts(t, testColumns[float32], testColumns[float64]) }

func testColumns[T float](t *testing.T, p *Products, rnd *rand.Rand) {
	aa, xa, sa := newArena(t, 1<<16), newArena(t, 1<<12), newArena(t, 1<<12)
	for k := 1; k <= 70; k++ {
		row := k + rnd.IntN(4)
		if rnd.IntN(3) == 0 {
			row = collide / p.Size
		}
		a := some(rnd, take[T](aa, rnd, (p.ColumnRows()-1)*row+k))
		x := some(rnd, take[T](xa, rnd, k))
		sums := some(rnd, take[T](sa, rnd, p.ColumnRows()))
		want := append([]T(nil), sums...)
		for i := range want {
			for q := range k {
				want[i] = kernel.MulAdd(a[i*row+q], x[q], want[i])
			}
		}
		p.Columns(k, unsafe.Pointer(&a[0]), row*p.Size, unsafe.Pointer(&x[0]), unsafe.Pointer(&sums[0]))
		for i := range want {
			if !sameNumber(sums[i], want[i]) {
				t.Fatalf("%d columns, rows %d apart: sum %d is %v, want %v", k, row, i, sums[i], want[i])
			}
		}
	}
}

func TestTurnAndCopy(t *testing.T) { eachProducts(t, testCopies[float32], testCopies[float64]) }

func testCopies[T float](t *testing.T, p *Products, rnd *rand.Rand) {
	from, to := newArena(t, 1<<16), newArena(t, 1<<16)
	check := func(what string, got, want []T) {
		t.Helper()
		for i := range want {
			if !sameNumber(got[i], want[i]) {
				t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	for k := 1; k <= 40; k++ {
		for rows := 1; rows <= TurnRows; rows++ {
			row, step := k+rnd.IntN(3), rows+rnd.IntN(TurnRows)
			src := some(rnd, take[T](from, rnd, (rows-1)*row+k))
			dst := some(rnd, take[T](to, rnd, (k-1)*step+TurnRows))
			want := append([]T(nil), dst...)
			for q := range k {
				for i := range TurnRows {
					want[q*step+i] = src[min(i, rows-1)*row+q]
				}
			}
			p.Turn(k, unsafe.Pointer(&src[0]), row*p.Size, rows, unsafe.Pointer(&dst[0]), step*p.Size)
			check(fmt.Sprintf("turn %d rows of %d, %d apart, step %d", rows, k, row, step), dst, want)
		}
	}
	for cols := 1; cols <= 2*p.Lanes; cols++ {
		whole := (cols + p.Lanes - 1) / p.Lanes * p.Lanes
		for range 5 {
			k, row, step := 1+rnd.IntN(9), cols+rnd.IntN(3), cols+rnd.IntN(3)
			src := some(rnd, take[T](from, rnd, (k-1)*row+cols))
			dst := some(rnd, take[T](to, rnd, (k-1)*step+whole))
			want := append([]T(nil), dst...)
			for q := range k {
				clear(want[q*step:][:whole])
				copy(want[q*step:], src[q*row:][:cols])
			}
			p.Copy(k, cols, unsafe.Pointer(&src[0]), row*p.Size, unsafe.Pointer(&dst[0]), step*p.Size)
			check(fmt.Sprintf("copy %d rows of %d, %d apart, step %d", k, cols, row, step), dst, want)
		}
	}
}

func TestProductsOfTwins(t *testing.T) {
	defer Use(Current())
	Use(Go)
	if p := ProductsOf(device.Float32); p != nil || ProductsOf(device.Int64) != nil || Peak(1) != 0 {
		t.Errorf("Go has %v", p)
	}
}
