package neon

import (
	"fmt"
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// NEON has no masks for what it reads and writes. The elements of a tail are in pieces, one for each bit of their
// number: first the largest that there is.

// bit is which bit of a number of elements stands for so many bytes.
func bit(bytes, size int) int { return bits.TrailingZeros(uint(bytes / size)) }

// unless jumps where the bit of count is 0.
func (f *function) unless(count register, bit int, label string) {
	f.jump(fmt.Sprintf("TBZ $%d, xN", bit), label, count)
}

// loadTail is [LoadTail].
func loadTail(f *function, ops []operand.Op) {
	size, from, count := number(ops[0]), ops[1].(operand.Mem), f.general(ops[2])
	d := ops[3].(reg.Register)
	own := f.ownLabels()
	p := f.pointer(from)
	low, part := f.half(d, 0), f.vector()
	if d.Size() == 32 {
		high := f.half(d, 1)
		f.unless(count, bit(32, size), own("less"))
		f.emitNumber("ldp qD, qE, [xN, #I]", 0, low, high, p)
		f.jump("JMP", own("done"))
		f.label(own("less"))
		f.partOf(false, part, count, size, f.behindHalf(p, count, size), own)
		f.emit(moveText, low, part)
		f.emit("movi vD.2d, #0000000000000000", high)
		f.unless(count, bit(16, size), own("done"))
		f.emit(moveText, high, part)
		f.emitNumber("ldr qD, [xN, #I]", 0, low, p)
		f.label(own("done"))
		return
	}
	f.unless(count, bit(16, size), own("less"))
	f.emitNumber("ldr qD, [xN, #I]", 0, low, p)
	f.jump("JMP", own("done"))
	f.label(own("less"))
	f.partOf(false, part, count, size, p, own)
	f.emit(moveText, low, part)
	f.label(own("done"))
	f.halves(d, func(int) {})
}

// storeTail is [StoreTail].
func storeTail(f *function, ops []operand.Op) {
	size, x, count := number(ops[0]), ops[1].(reg.Register), f.general(ops[2])
	own := f.ownLabels()
	p := f.pointer(ops[3].(operand.Mem))
	low, part := f.half(x, 0), f.vector()
	f.emit(moveText, part, low)
	if x.Size() == 32 {
		high := f.half(x, 1)
		f.unless(count, bit(32, size), own("less"))
		f.emitNumber("stp qS, qF, [xN, #I]", 0, low, high, p)
		f.jump("JMP", own("done"))
		f.label(own("less"))
		f.unless(count, bit(16, size), own("part"))
		f.emitNumber("str qS, [xN, #I]", 0, low, p)
		f.emit(moveText, part, high)
		f.label(own("part"))
		f.partOf(true, part, count, size, f.behindHalf(p, count, size), own)
		f.label(own("done"))
		return
	}
	f.unless(count, bit(16, size), own("less"))
	f.emitNumber("str qS, [xN, #I]", 0, low, p)
	f.jump("JMP", own("done"))
	f.label(own("less"))
	f.partOf(true, part, count, size, p, own)
	f.label(own("done"))
}

// behindHalf is p, or 16 bytes behind it where count has the bit for these.
func (f *function) behindHalf(p, count register, size int) register {
	t, q := f.newGeneral(), f.newGeneral()
	f.emit(fmt.Sprintf("AND $%d, xN, xD", 16/size), count, t)
	f.emit(fmt.Sprintf("ADD xM<<%d, xN, xD", bits.TrailingZeros(uint(size))), t, p, q)
	return q
}

// partOf reads or writes the first elements of v, fewer than it has, as the last bits of count say. Where it reads, it
// makes the others 0.
func (f *function) partOf(writes bool, v, count register, size int, p register, own func(string) string) {
	text := map[bool]string{false: "ldr %sD, [xN, #I]", true: "str %sS, [xN, #I]"}[writes]
	if !writes {
		f.emit("movi vD.2d, #0000000000000000", v)
	}
	end := own("end")
	if size == 8 {
		f.unless(count, 0, end)
		f.emit(fmt.Sprintf(text, "d"), v, p)
		f.label(end)
		return
	}
	f.unless(count, 1, own("single"))
	f.emit(fmt.Sprintf(text, "d"), v, p)
	f.unless(count, 0, end)
	third := f.plus(p, 8)
	if writes {
		f.emit("st1 { vS.s }[2], [xN]", v, third)
	} else {
		f.emit("ld1 { vT.s }[2], [xN]", v, third)
	}
	f.jump("JMP", end)
	f.label(own("single"))
	f.unless(count, 0, end)
	f.emit(fmt.Sprintf(text, "s"), v, p)
	f.label(end)
}
