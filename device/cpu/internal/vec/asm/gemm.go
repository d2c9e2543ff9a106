package main

import (
	"fmt"

	"github.com/asyncgen/asyncgen/device/cpu/internal/vec/asm/neon"
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemm writes the loops of matrix products. These are tiles of the product, which stay in registers
// while the inner length goes by; sums of rows times a column; and copies of operands in the order in
// which tiles read them.
func gemm() {
	for _, e := range []*element{float32s, float64s} {
		for _, m := range isas {
			for _, s := range tileShapes(m) {
				tile(m, e, s)
			}
		}
		columns(e, false)
		columns(e, true)
		turn(e)
	}
	for _, m := range isas {
		for vectors := 1; vectors <= 2; vectors++ {
			copyRows(m, vectors)
		}
		peak(m)
	}
}

// A tileShape is how many rows and vectors of columns a tile has.
type tileShape struct{ rows, vectors int }

// tileShapes lists the tiles for m. A tile has one or two vectors, and as many rows as there are
// registers for. Tiles of one row have more vectors: with few, each step would wait for the sum of
// the one before.
func tileShapes(m *isa) (shapes []tileShape) {
	rows, wide := 6, []int{4, 8, 12}
	if m == avx512 {
		rows, wide = 14, []int{4, 8, 16}
	}
	for r := 1; r <= rows; r++ {
		shapes = append(shapes, tileShape{r, 1}, tileShape{r, 2})
	}
	for _, v := range wide {
		shapes = append(shapes, tileShape{1, v})
	}
	return shapes
}

// The instructions that differ between the types.
func (e *element) multiplyAdd(x, y Op, sum vector) { // sum += x*y, rounded once
	if e.size == 4 {
		VFMADD231PS(x, y, sum)
	} else {
		VFMADD231PD(x, y, sum)
	}
}

func (e *element) broadcast(from Mem, v vector) {
	if e.size == 4 {
		VBROADCASTSS(from, v)
	} else {
		VBROADCASTSD(from, v)
	}
}

func (m *isa) clear(v vector) {
	if m == avx512 {
		VPXORD(v, v, v)
	} else {
		VXORPS(v, v, v)
	}
}

// loadTailTo is loadTail to a given register.
func (m *isa) loadTailTo(from Mem, t tail, size int, v vector) {
	switch {
	case m == neons:
		neon.LoadTail(from, t.count, size, v)
	case m == avx2 && size == 4:
		VMASKMOVPS(from, t.ones, v)
	case m == avx2:
		VMASKMOVPD(from, t.ones, v)
	case size == 4:
		VMOVUPS_Z(from, t.mask, v)
	default:
		VMOVUPD_Z(from, t.mask, v)
	}
}

// A rowSet finds rows that lie a stride apart, by an address for every fifth.
type rowSet struct {
	bases           []reg.Register
	stride, stride3 reg.Register
}

func newRowSet(first, stride reg.GPVirtual, rows int) *rowSet {
	s := &rowSet{bases: []reg.Register{first}, stride: stride}
	if rows > 3 {
		stride3 := GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
		s.stride3 = stride3
	}
	for r := 5; r < rows; r += 5 {
		base := GP64()
		LEAQ(Mem{Base: s.bases[r/5-1], Index: stride, Scale: 4}, base)
		ADDQ(stride, base)
		s.bases = append(s.bases, base)
	}
	return s
}

// at is where row r is.
func (s *rowSet) at(r int) Mem {
	base := s.bases[r/5]
	switch r % 5 {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: s.stride3, Scale: 1}
	}
	return Mem{Base: base, Index: s.stride, Scale: uint8(r % 5)}
}

// move advances the start of every row by the given number of bytes.
func (s *rowSet) move(by Op) {
	for _, base := range s.bases {
		ADDQ(by, base)
	}
}

// tile writes the function for tiles of one shape.
func tile(m *isa, e *element, s tileShape) {
	name := fmt.Sprintf("tile%s%s%dx%d", e.name, m.name, s.rows, s.vectors)
	enter("tiles", m.name, fmt.Sprintf("tileKey{device.%s, %d, %d}", e.name, s.rows, s.vectors), name)
	TEXT(name, attr.NOSPLIT, "func(k int, a *byte, row, col int, b *byte, step int, c *byte, ld, more, last int, next *byte)")
	Pragma("noescape")
	k := param("k")
	t := m.first(param("last"), e.size)
	ld := param("ld")

	Comment("for i := range rows: prefetch next[i]")
	at := param("next")
	for i := range s.rows {
		for v := range min(s.vectors, 2) {
			PREFETCHT0(Mem{Base: at, Disp: v * m.bytes})
		}
		if i+1 < s.rows {
			ADDQ(ld, at)
		}
	}

	sums := make([][]vector, s.rows)
	for i := range sums {
		for range s.vectors {
			sums[i] = append(sums[i], m.new())
		}
	}
	more := param("more")
	TESTQ(more, more)
	JNZ(LabelRef("continue"))
	Comment("if more == 0: sums = 0")
	for _, row := range sums {
		for _, sum := range row {
			m.clear(sum)
		}
	}
	JMP(LabelRef("add"))
	Label("continue")
	Comment("else: sums = c")
	Load(Param("c"), at)
	for i, row := range sums {
		for v, sum := range row {
			if from := (Mem{Base: at, Disp: v * m.bytes}); v < s.vectors-1 {
				VMOVUPS(from, sum)
			} else {
				m.loadTailTo(from, t, e.size, sum)
			}
		}
		if i+1 < s.rows {
			ADDQ(ld, at)
		}
	}

	Label("add")
	a := newRowSet(param("a"), param("row"), s.rows)
	b, col, step := param("b"), param("col"), param("step")
	x, y := m.new(), make([]vector, s.vectors) // an element of a, and a row of b
	for v := range y {
		if s.rows > 1 || v == s.vectors-1 { // else each is used once, from memory
			y[v] = m.new()
		}
	}
	// loop writes the loop; the last vector of b has a tail or is a whole one.
	loop := func(label string, isMasked bool) {
		Label(label)
		Comment("for range k: sums[i][j] += a[i]*b[j]; a++; b++")
		for v := range y {
			if from := (Mem{Base: b, Disp: v * m.bytes}); v == s.vectors-1 && isMasked {
				m.loadTailTo(from, t, e.size, y[v])
			} else if y[v] != nil {
				VMOVUPS(from, y[v])
			}
		}
		for i, row := range sums {
			e.broadcast(a.at(i), x)
			for v, sum := range row {
				if y[v] != nil {
					e.multiplyAdd(y[v], x, sum)
				} else {
					e.multiplyAdd(Mem{Base: b, Disp: v * m.bytes}, x, sum)
				}
			}
		}
		a.move(col)
		ADDQ(step, b)
		DECQ(k)
		JNZ(LabelRef(label))
	}
	if m == avx512 {
		loop("loop", true)
		Comment("c = sums")
		storeTile(m, e, sums, &t)
		return
	}
	// Masked, AVX2 is slower.
	CMPQ(param("last"), Imm(uint64(m.bytes/e.size)))
	JNE(LabelRef("masked"))
	loop("whole", false)
	Comment("c = sums")
	storeTile(m, e, sums, nil)
	loop("masked", true)
	Comment("c = sums")
	storeTile(m, e, sums, &t)
}

// storeTile writes sums to c, whose last vector may have a tail, and returns.
func storeTile(m *isa, e *element, sums [][]vector, t *tail) {
	c, ld := param("c"), param("ld")
	for i, row := range sums {
		for v, sum := range row {
			if to := (Mem{Base: c, Disp: v * m.bytes}); t == nil || v < len(row)-1 {
				VMOVUPS(sum, to)
			} else {
				m.storeTail(sum, to, *t, m.bytes/e.size, e.size)
			}
		}
		if i+1 < len(sums) {
			ADDQ(ld, c)
		}
	}
	VZEROUPPER()
	RET()
}

// columnVectors is how many vectors of sums columns has: enough to hide the latency of an addition.
const columnVectors = 4

// columns writes sums of rows times a column. The rows are turned into columns in registers, so
// that each sum adds its products in order. It reads 16 bytes of each row at a time, for two
// vectors of rows before it adds anything. That halves the loads of x, and loads are what takes the
// time. Of rows that collide it reads a whole cache line, two squares, before it goes on to the
// next rows: by the time it came back, the line would have left the cache.
func columns(e *element, doCollide bool) {
	name, list := "columns"+e.name, 0
	if doCollide {
		name, list = "columns"+e.name+"ByLine", 1
	}
	enter(fmt.Sprintf("columns[%d]", list), base().name, "device."+e.name, name)
	TEXT(name, attr.NOSPLIT, "func(k int, a *byte, row int, x, sums *byte)")
	Pragma("noescape")
	lanes := 32 / e.size
	n := param("k")
	a := newRowSet(param("a"), param("row"), columnVectors*lanes)
	x, to := param("x"), param("sums")
	var sums [columnVectors]vector
	for v := range sums {
		sums[v] = YMM()
		VMOVUPS(Mem{Base: to, Disp: 32 * v}, sums[v])
	}
	rows := func(v, at int) func(r int) Mem { // of the rows of sums[v], at bytes in
		return func(r int) Mem { return a.at(v*lanes + r).Offset(at) }
	}
	factor := func(at int) vector {
		f := YMM()
		e.broadcast(Mem{Base: x, Disp: at}, f)
		return f
	}
	// block writes a loop that handles the given number of bytes of each row per iteration, while
	// that many are left.
	block := func(label string, bytes int, add func()) {
		cols := bytes / e.size
		SUBQ(Imm(uint64(cols)), n)
		JLT(LabelRef(label + "Done"))
		Label(label)
		Commentf("for ; k >= %d; k -= %d: so many columns of all rows", cols, cols)
		add()
		a.move(Imm(uint64(bytes)))
		ADDQ(Imm(uint64(bytes)), x)
		SUBQ(Imm(uint64(cols)), n)
		JGE(LabelRef(label))
		Label(label + "Done")
		ADDQ(Imm(uint64(cols)), n)
	}
	pieces := func(at int) { // 16 bytes of each row
		for v := 0; v < columnVectors; v += 2 {
			first, second := oblong(e, rows(v, at)), oblong(e, rows(v+1, at))
			for c := range first {
				f := factor(at + c*e.size)
				e.multiplyAdd(first[c], f, sums[v])
				e.multiplyAdd(second[c], f, sums[v+1])
			}
		}
	}
	if doCollide {
		block("lines", 64, func() {
			// Vector by vector: the additions to one sum wait for each other, and processors look ahead
			// as far as the next vectors.
			for v, sum := range sums {
				for at := 0; at < 64; at += 32 {
					for c, column := range square(e, rows(v, at)) {
						e.multiplyAdd(column, factor(at+c*e.size), sum)
					}
				}
			}
		})
	} else {
		block("pairs", 32, func() { pieces(0); pieces(16) })
	}
	block("parts", 16, func() { pieces(0) })
	TESTQ(n, n)
	JZ(LabelRef("done"))
	Label("elements")
	Comment("for ; k > 0; k--: one column")
	for v, sum := range sums {
		e.multiplyAdd(single(e, rows(v, 0)), factor(0), sum)
	}
	a.move(Imm(uint64(e.size)))
	ADDQ(Imm(uint64(e.size)), x)
	DECQ(n)
	JNZ(LabelRef("elements"))
	Label("done")
	for v, sum := range sums {
		VMOVUPS(sum, Mem{Base: to, Disp: 32 * v})
	}
	VZEROUPPER()
	RET()
}

// single returns the first elements of as many rows as a vector of AVX2 has elements.
func single(e *element, row func(r int) Mem) vector {
	column := YMM()
	avx2.clear(column)
	lanes := 16 / e.size
	for half := range 2 {
		part := XMM()
		for r := range lanes {
			switch from := row(half*lanes + r); {
			case r == 0 && e.size == 4:
				VMOVSS(from, part)
			case r == 0:
				VMOVSD(from, part)
			case e.size == 4:
				VINSERTPS(Imm(uint64(r<<4)), from, part, part)
			default:
				VMOVHPD(from, part, part)
			}
		}
		VINSERTF128(Imm(uint64(half)), part, column, column)
	}
	return column
}

// square returns the first columns, 32 bytes' worth of each row, of as many rows as a vector of AVX2 has
// elements. It reads 32 bytes at a time: smaller pieces are read one by one where they lie in the same place of
// their cache lines.
func square(e *element, row func(r int) Mem) (columns []vector) {
	half := func(first int) []vector { // half of the columns of half of the rows, and the other half of them above
		rows := make([]vector, 16/e.size)
		for r := range rows {
			rows[r] = YMM()
			VMOVUPS(row(first+r), rows[r])
		}
		return interleaved(e, rows)
	}
	low, high := half(0), half(16/e.size)
	for _, selection := range []uint64{0x20, 0x31} {
		for c := range low {
			column := YMM()
			VPERM2F128(Imm(selection), high[c], low[c], column)
			columns = append(columns, column)
		}
	}
	return columns
}

// oblong is square for 16 bytes' worth of each row of as many rows as a vector of AVX2 has elements.
func oblong(e *element, row func(r int) Mem) []vector {
	// Each vector gets two rows, so that the ones below are in its upper half.
	lanes := 32 / e.size
	rows := make([]vector, lanes/2)
	for r := range rows {
		rows[r] = YMM()
		VBROADCASTF128(row(r), rows[r])
		VINSERTF128(Imm(1), row(r+lanes/2), rows[r], rows[r])
	}
	return interleaved(e, rows)
}

// interleaved transposes 4 rows of float32, or 2 of float64: it returns their columns. The lower and
// the upper half of the vectors are handled alike, each on its own.
func interleaved(e *element, rows []vector) []vector {
	if e.size == 8 {
		return halves(rows[0], rows[1])
	}
	var low, high [2]vector
	for i := range low {
		low[i], high[i] = YMM(), YMM()
		VUNPCKLPS(rows[2*i+1], rows[2*i], low[i])
		VUNPCKHPS(rows[2*i+1], rows[2*i], high[i])
	}
	return append(halves(low[0], low[1]), halves(high[0], high[1])...)
}

// halves returns the first halves of all 16 bytes of x and y, and the second ones.
func halves(x, y vector) []vector {
	first, second := YMM(), YMM()
	VUNPCKLPD(y, x, first)
	VUNPCKHPD(y, x, second)
	return []vector{first, second}
}

// turnedRows is how many rows turn handles.
const turnedRows = 8

// turn writes the copy of a few rows as columns. Rows that do not exist are the last one once more.
func turn(e *element) {
	name := "turn" + e.name
	enter("turns", base().name, "device."+e.name, name)
	TEXT(name, attr.NOSPLIT, "func(k int, src *byte, row, rows int, dst *byte, step int)")
	Pragma("noescape")
	stride, rows := param("row"), param("rows")
	zero := GP64()
	XORQ(zero, zero)
	row := []reg.GPVirtual{param("src")}
	for r := 1; r < turnedRows; r++ {
		Commentf("rows[%d] = rows[%d], or the next one if there is one", r, r-1)
		CMPQ(rows, Imm(uint64(r)))
		CMOVQLE(zero, stride)
		next := GP64()
		LEAQ(Mem{Base: row[r-1], Index: stride, Scale: 1}, next)
		row = append(row, next)
	}
	dst, step, n := param("dst"), param("step"), param("k")
	i := GP64()
	XORQ(i, i)
	lanes := 32 / e.size
	// loop writes a loop that copies the given number of bytes of each row per iteration, while
	// that many are left.
	loop := func(label string, bytes int, turned func(e *element, row func(r int) Mem) []vector) {
		block := bytes / e.size
		SUBQ(Imm(uint64(block)), n)
		JLT(LabelRef(label + "Done"))
		Label(label)
		Commentf("for ; k >= %d; k -= %d", block, block)
		columns := make([][]vector, block)
		for first := 0; first < turnedRows; first += lanes {
			for c, column := range turned(e, func(r int) Mem { return Mem{Base: row[first+r], Index: i, Scale: 1} }) {
				columns[c] = append(columns[c], column)
			}
		}
		for _, column := range columns {
			for v := range column {
				VMOVUPS(column[v], Mem{Base: dst, Disp: 32 * v})
			}
			ADDQ(step, dst)
		}
		ADDQ(Imm(uint64(bytes)), i)
		SUBQ(Imm(uint64(block)), n)
		JGE(LabelRef(label))
		Label(label + "Done")
		ADDQ(Imm(uint64(block)), n)
	}
	loop("squares", 32, square)
	loop("parts", 16, oblong)
	TESTQ(n, n)
	JZ(LabelRef("done"))
	x := GP64()
	Label("restLoop")
	Comment("for ; k > 0; k--: element by element")
	for r := range turnedRows {
		from, to := Mem{Base: row[r], Index: i, Scale: 1}, Mem{Base: dst, Disp: r * e.size}
		if e.size == 4 {
			MOVL(from, x.As32())
			MOVL(x.As32(), to)
		} else {
			MOVQ(from, x)
			MOVQ(x, to)
		}
	}
	ADDQ(step, dst)
	ADDQ(Imm(uint64(e.size)), i)
	DECQ(n)
	JNZ(LabelRef("restLoop"))
	Label("done")
	VZEROUPPER()
	RET()
}

// copyRows writes the copy of parts of rows. It writes whole vectors; the last one reads only the
// elements that are left.
func copyRows(m *isa, vectors int) {
	name := fmt.Sprintf("copyRows%s%d", m.name, vectors)
	enter("copies", m.name, fmt.Sprint(vectors), name)
	TEXT(name, attr.NOSPLIT, "func(k int, src *byte, row int, dst *byte, step, last int)")
	Pragma("noescape")
	t := m.first(param("last"), 4)
	src, row, dst, step, n := param("src"), param("row"), param("dst"), param("step"), param("k")
	Label("loop")
	Comment("for range k: copy(dst, src); src += row; dst += step")
	for v := range vectors {
		PREFETCHT0(Mem{Base: src, Index: row, Scale: 8, Disp: v * m.bytes})
	}
	for v := range vectors {
		x := m.new()
		if from := (Mem{Base: src, Disp: v * m.bytes}); v < vectors-1 {
			VMOVUPS(from, x)
		} else {
			m.loadTailTo(from, t, 4, x)
		}
		VMOVUPS(x, Mem{Base: dst, Disp: v * m.bytes})
	}
	ADDQ(row, src)
	ADDQ(step, dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// peak writes a loop of nothing but independent multiplications and additions, which
// benchmarks are measured against.
func peak(m *isa) {
	name := "peak" + m.name
	enter("peaks", m.name, "0", name)
	TEXT(name, attr.NOSPLIT, "func(k int)")
	k := param("k")
	var sums [12]vector
	for i := range sums {
		sums[i] = m.new()
		m.clear(sums[i])
	}
	x := m.new()
	m.clear(x)
	Label("loop")
	Comment("for range k: sums[i] += 0*0")
	for _, sum := range sums {
		VFMADD231PS(x, x, sum)
	}
	DECQ(k)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
