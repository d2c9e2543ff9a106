package vec

import (
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
)

// Products are the loops that matrix products are made of. Strides and other distances are in bytes. A
// loop reads and writes nothing but what its comment says. Products have no twins in Go: without
// assembly, another way than tiles is faster.
type Products struct {
	Size  int // of an element
	Lanes int // elements of a vector; for NEON, of two registers
	Rows  int // of the largest tile, which has two vectors of columns
	Wide  []int

	tiles    [2][]tileFunc  // by the vectors and the rows, less one
	wide     []tileFunc     // of one row, by the index in Wide
	copies   [2]copyFunc    // by the vectors, less one
	collects [2]collectFunc // likewise
	turn     turnFunc
	columns  [2]columnsFunc // the second for rows that collide
}

type (
	tileKey struct {
		dt            device.DType
		rows, vectors int
	}
	tileFunc    = func(k int, a unsafe.Pointer, row, col int, b unsafe.Pointer, step int, c unsafe.Pointer, ld, more, last int, next unsafe.Pointer)
	copyFunc    = func(k int, src unsafe.Pointer, row int, dst unsafe.Pointer, step, last int)
	turnFunc    = func(k int, src unsafe.Pointer, row, rows int, dst unsafe.Pointer, step int)
	columnsFunc = func(k int, a unsafe.Pointer, row int, x, sums unsafe.Pointer)
)

var (
	tiles   table[tileKey, tileFunc]
	copies  table[int, copyFunc]
	turns   table[device.DType, turnFunc]
	columns [2]table[device.DType, columnsFunc]
	peaks   table[int, func(k int)]
)

// ProductsOf returns the loops of the current ISA for float32 or float64, or nil if
// there are none.
func ProductsOf(dt device.DType) *Products {
	switch dt {
	case device.Float32:
		return products()[Current()][0]
	case device.Float64:
		return products()[Current()][1]
	}
	return nil
}

// products are the Products of each ISA for float32 and float64.
var products = sync.OnceValue(func() (all [isas][2]*Products) {
	for a := range isas {
		for i, dt := range []device.DType{device.Float32, device.Float64} {
			if tiles[a] != nil {
				all[a][i] = newProducts(a, dt)
			}
		}
	}
	return all
})

func newProducts(a ISA, dt device.DType) *Products {
	bytes, narrow := 32, a // what there is only once is for vectors of 32 bytes
	if a == AVX512 {
		bytes, narrow = 64, AVX2
	}
	p := &Products{Size: dt.Size(), turn: turns[narrow][dt], columns: [2]columnsFunc{columns[0][narrow][dt], columns[1][narrow][dt]}}
	p.Lanes = bytes / p.Size
	for v := range p.tiles {
		p.copies[v] = copies[a][v+1]
		p.collects[v] = collects[a][v+1]
		for r := 1; ; r++ {
			f, ok := tiles[a][tileKey{dt, r, v + 1}]
			if !ok {
				break
			}
			p.tiles[v] = append(p.tiles[v], f)
		}
	}
	p.Rows = len(p.tiles[1])
	for v := 16; v > 2; v-- {
		if f, ok := tiles[a][tileKey{dt, 1, v}]; ok {
			p.Wide, p.wide = append(p.Wide, v), append(p.wide, f)
		}
	}
	return p
}

// Tile is, for 1 to Rows rows and 1 to 2*Lanes columns, and k > 0,
//
//	for i := range rows {
//		for j := range cols {
//			sum := 0, or c[i,j] if more
//			for p := range k {
//				sum = fma(a[i,p], b[p,j], sum)
//			}
//			c[i,j] = sum
//		}
//	}
//
// where a[i,p] is at a + i*row + p*col, b[p,j] at b + p*step + j*Size, c[i,j] at
// c + i*ld + j*Size. A NaN may be any. Next is where the next c is, a hint.
func (p *Products) Tile(rows, cols, k int, a unsafe.Pointer, row, col int, b unsafe.Pointer, step int, c unsafe.Pointer, ld int, more bool, next unsafe.Pointer) {
	v := 0
	if cols > p.Lanes {
		cols -= p.Lanes
		v = 1
	}
	p.tiles[v][rows-1](k, a, row, col, b, step, c, ld, bit(more), cols, next)
}

// Row is Tile for one row and Wide[i]*Lanes columns.
func (p *Products) Row(i, k int, a unsafe.Pointer, col int, b unsafe.Pointer, step int, c unsafe.Pointer, more bool) {
	p.wide[i](k, a, 0, col, b, step, c, 0, bit(more), p.Lanes, c)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Rows that are a multiple of collide bytes apart share few sets of the first cache, so only few of
// them fit into it side by side. (Its sets repeat every 4 KiB, and each has 8 or 12 lines.)
const collide = 1 << 10

// ColumnRows is how many rows Columns handles.
func (p *Products) ColumnRows() int { return 128 / p.Size }

// Columns is, for k > 0,
//
//	for i := range ColumnRows() {
//		for p := range k {
//			sums[i] = fma(a[i,p], x[p], sums[i])
//		}
//	}
//
// where a[i,p] is at a + i*row + p*Size. It is for long rows: a tile of a
// column would use one element of each vector.
func (p *Products) Columns(k int, a unsafe.Pointer, row int, x, sums unsafe.Pointer) {
	which := 0
	if row%collide == 0 {
		which = 1
	}
	p.columns[which](k, a, row, x, sums)
}

// TurnRows is how many rows Turn handles at most.
const TurnRows = 8

// Turn is, for 1 to TurnRows rows and k > 0,
//
//	for p := range k {
//		for i := range TurnRows {
//			dst[p,i] = src[min(i, rows-1),p]
//		}
//	}
//
// in this order, where src[i,p] is at src + i*row + p*Size, dst[p,i] at dst + p*step + i*Size.
func (p *Products) Turn(k int, src unsafe.Pointer, row, rows int, dst unsafe.Pointer, step int) {
	p.turn(k, src, row, rows, dst, step)
}

// Copy copies 1 to 2*Lanes elements from each of k > 0 rows, which are row apart, to dst,
// dst + step and so on, in this order. It writes whole vectors: those behind the elements are 0.
func (p *Products) Copy(k, cols int, src unsafe.Pointer, row int, dst unsafe.Pointer, step int) {
	v := 0
	if cols > p.Lanes {
		cols -= p.Lanes
		v = 1
	}
	p.copies[v](k, src, row, dst, step, cols*p.Size/4)
}

// Peak makes k rounds of as many float32 multiplications and additions as the
// processor can have under way, and returns how many that were. What it takes is what
// products are measured against.
func Peak(k int) (operations int) {
	f, ok := peaks.get(0)
	if !ok {
		return 0
	}
	f(k)
	return 12 * 2 * products()[Current()][0].Lanes * k
}
