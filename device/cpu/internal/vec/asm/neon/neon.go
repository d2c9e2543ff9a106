// Package neon translates functions that avo has written for AVX2, before their registers are allocated, into the
// assembly of Go for arm64. A vector of AVX2 becomes two of NEON, its halves; a general register becomes one.
//
// Each instruction of AVX2 has a row in a table (rows.go), which writes those of NEON. These are forms (forms.go),
// which say how an instruction looks in text and as a word. Then registers are allocated (allocate.go).
//
// Instructions that AVX2 lacks and NEON has are written as those of AVX-512, or as one of the functions here, which
// stand for no instruction of Intel's at all.
package neon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Max sets r to the larger elements of x and y, NaN if one is NaN; 0 is above -0. Elements are of the given size.
func Max(size int, x, y, r reg.Register) { extreme("fmax", size, x, y, r) }

// Min is Max for the smaller elements.
func Min(size int, x, y, r reg.Register) { extreme("fmin", size, x, y, r) }

func extreme(name string, size int, x, y, r reg.Register) {
	build.Instruction(&ir.Instruction{Opcode: fmt.Sprint(name, size), Operands: []operand.Op{x, y, r}})
}

// LoadTail reads the first count elements of the given size, at most as many as v has, and makes the others 0.
func LoadTail(from operand.Mem, count reg.Register, size int, v reg.Register) {
	build.Instruction(&ir.Instruction{Opcode: "loadTail", Operands: []operand.Op{operand.Imm(uint64(size)), from, count, v}})
}

// StoreTail writes what LoadTail reads.
func StoreTail(v reg.Register, count reg.Register, size int, to operand.Mem) {
	build.Instruction(&ir.Instruction{Opcode: "storeTail", Operands: []operand.Op{operand.Imm(uint64(size)), v, count, to}})
}

// Translate returns the text of the file for arm64, without the notice at its beginning.
func Translate(file *ir.File) (string, error) {
	var text strings.Builder
	globals := map[string]*ir.Global{}
	for _, s := range file.Sections {
		if g, ok := s.(*ir.Global); ok {
			globals[g.Symbol.Name] = g
		}
	}
	for _, s := range file.Sections {
		switch s := s.(type) {
		case *ir.Function:
			f := &function{ir: s, name: s.Name, globals: globals}
			if err := f.translate(); err != nil {
				return "", err
			}
			f.print(&text)
		case *ir.Global:
			text.WriteString("\n")
			for _, d := range s.Data {
				fmt.Fprintf(&text, "DATA %s+%d(SB)/%d, %s\n", s.Symbol, d.Offset, d.Value.Bytes(), d.Value.Asm())
			}
			fmt.Fprintf(&text, "GLOBL %s(SB), %s, $%d\n", s.Symbol, s.Attributes.Asm(), s.Size)
		}
	}
	return text.String(), nil
}

// A function is one that is translated.
type function struct {
	ir        *ir.Function
	name      string
	globals   map[string]*ir.Global
	code      []instruction
	isGeneral []bool // each register

	vectors  map[reg.ID][2]register // the halves of those of AVX2
	generals map[reg.ID]register
	facts

	opcode    string // of the instruction that is translated
	setsFlags bool   // and whether the next one reads flags

	entry     []instruction       // what comes before everything else
	once      map[string]register // results of that
	addresses []address           // that are in registers, the newest last
	labels    int                 // that are ours
}

// An address is base + index*scale, and the register that has it.
type address struct {
	base, index register
	scale       uint8
	sum         register
}

// fewAddresses is how many are kept in registers.
const fewAddresses = 6

func (f *function) translate() (err error) {
	f.vectors, f.generals = map[reg.ID][2]register{}, map[reg.ID]register{}
	f.once = map[string]register{}
	f.facts = factsOf(f.ir)
	var in *ir.Instruction
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %s: %v", f.name, describe(in), r)
		}
	}()
	nodes := f.ir.Nodes
	for k, node := range nodes {
		switch node := node.(type) {
		case ir.Label:
			f.label(string(node))
		case *ir.Comment:
			for _, line := range node.Lines {
				f.code = append(f.code, instruction{comment: line})
			}
		case *ir.Instruction:
			in = node
			row, ok := rows[in.Opcode]
			if !ok {
				panic("no row")
			}
			f.opcode, f.setsFlags = in.Opcode, k+1 < len(nodes) && readsFlags(nodes[k+1])
			row(f, in.Operands)
		}
	}
	f.code = append(f.entry, f.code...)
	f.prune()
	f.split()
	f.prune()
	return f.allocate()
}

// readsFlags reports whether a node is a jump or a move under a condition.
func readsFlags(n ir.Node) bool {
	in, ok := n.(*ir.Instruction)
	return ok && (in.IsBranch && in.IsConditional || strings.HasPrefix(in.Opcode, "CMOV"))
}

func describe(in *ir.Instruction) string {
	text := in.Opcode
	for _, op := range in.Operands {
		text += " " + op.Asm()
	}
	return text
}

// print writes the function.
func (f *function) print(text *strings.Builder) {
	frame := 0
	if f.ir.LocalSize > 0 {
		frame = f.ir.LocalSize + locals
	}
	fmt.Fprintf(text, "\n// %s\nTEXT ·%s(SB), %s, $%d-%d\n", f.ir.Stub(), f.name, f.ir.Attributes.Asm(), frame, f.ir.ArgumentBytes())
	for _, in := range f.code {
		switch {
		case in.label != "":
			fmt.Fprintf(text, "\n%s:\n", in.label)
		case in.form == nil:
			fmt.Fprintf(text, "\t// %s\n", in.comment)
		default:
			registers := make([]int, len(in.registers))
			for k, r := range in.registers {
				registers[k] = int(r)
			}
			s := in.format(registers, in.number)
			switch {
			case !in.isGo():
				s = fmt.Sprintf("WORD $0x%08x // %s", in.encode(registers, in.number), s)
			case in.target != "" && len(registers) > 0:
				s += ", " + in.target
			case in.target != "":
				s += " " + in.target
			}
			fmt.Fprintf(text, "\t%s\n", s)
		}
	}
}

// register is a new one.
func (f *function) register(isGeneral bool) register {
	f.isGeneral = append(f.isGeneral, isGeneral)
	return register(len(f.isGeneral) - 1)
}

func (f *function) vector() register     { return f.register(false) }
func (f *function) newGeneral() register { return f.register(true) }

// emit writes an instruction: the text of its form, and its registers in the order in which they stand there.
func (f *function) emit(text string, registers ...register) { f.emitNumber(text, 0, registers...) }

// emitNumber is emit for a form with a number.
func (f *function) emitNumber(text string, number int, registers ...register) {
	f.code = append(f.code, f.instruction(text, number, registers...))
	in := &f.code[len(f.code)-1]
	in.changes(func(k int) {
		r := in.registers[k]
		f.addresses = slices.DeleteFunc(f.addresses, func(a address) bool { return a.base == r || a.index == r })
	})
}

func (f *function) instruction(text string, number int, registers ...register) instruction {
	in := instruction{form: forms[text], number: number, registers: registers}
	if in.form == nil {
		if in.form = newForm(text, 0); !in.isGo() {
			panic("no form " + text)
		}
	}
	if len(registers) != len(in.slots) {
		panic(fmt.Sprintf("%d registers for %s", len(registers), text))
	}
	for k, s := range in.slots {
		if s.isGeneral != f.isGeneral[registers[k]] {
			panic(fmt.Sprintf("register %d of %s has the wrong kind", k, text))
		}
	}
	in.keep = true
	in.changes(func(int) { in.keep = false })
	if in.isGo() && (strings.HasPrefix(text, "SUBS") || strings.HasPrefix(text, "ADDS") || strings.HasPrefix(text, "ANDS")) {
		in.keep = true // for the flags
	}
	return in
}

// jump writes a jump: B with a condition, or JMP.
func (f *function) jump(name, target string, registers ...register) {
	f.emit(name, registers...)
	f.code[len(f.code)-1].target = target
}

// label begins a block.
func (f *function) label(name string) {
	f.addresses = nil
	f.code = append(f.code, instruction{label: name})
}

// ownLabels returns a function that makes labels that no other call has made.
func (f *function) ownLabels() func(name string) string {
	f.labels++
	n := f.labels
	return func(name string) string { return fmt.Sprintf("%s_%d", name, n) }
}

// onEntry is a register of the given kind that write sets when the function is entered; key says to what.
func (f *function) onEntry(key string, isGeneral bool, write func(r register)) register {
	r, ok := f.once[key]
	if !ok {
		r = f.register(isGeneral)
		f.once[key] = r
		code := f.code
		f.code = nil
		write(r)
		f.entry, f.code = append(f.entry, f.code...), code
	}
	return r
}

// general is the register of a general one of AVX2's.
func (f *function) general(op operand.Op) register {
	r := op.(reg.Register)
	if r.Kind() != reg.KindGP || !r.ID().IsVirtual() {
		panic("no virtual general register: " + r.Asm())
	}
	g, ok := f.generals[r.ID()]
	if !ok {
		g = f.newGeneral()
		f.generals[r.ID()] = g
	}
	return g
}

// half is the lower half of a vector, or the upper one. They are the same where all lanes are.
func (f *function) half(op operand.Op, half int) register {
	r := op.(reg.Register)
	if r.Kind() != reg.KindVector || !r.ID().IsVirtual() {
		panic("no virtual vector: " + r.Asm())
	}
	v, ok := f.vectors[r.ID()]
	if !ok {
		v[0] = f.vector()
		if v[1] = v[0]; !f.isSplat[r.ID()] {
			v[1] = f.vector()
		}
		f.vectors[r.ID()] = v
	}
	return v[half]
}

// halves calls write for each half of what is written to op. A vector of AVX2 that is written as one of 128 bits
// gets zeros above.
func (f *function) halves(op operand.Op, write func(half int)) {
	r := op.(reg.Register)
	write(0)
	switch {
	case f.isSplat[r.ID()]:
	case r.Size() == 32:
		write(1)
	case f.isWide[r.ID()]:
		f.emit("movi vD.2d, #0000000000000000", f.half(op, 1))
	}
}

// locals is where local memory begins above the stack pointer.
const locals = 16

// at is a register and a displacement that give the address of m.
func (f *function) at(m operand.Mem) (base register, displacement int) {
	switch m.Base {
	case reg.FramePointer:
		panic("the address of a parameter")
	case reg.StackPointer:
		return f.onEntry("locals", true, func(r register) { f.emit(fmt.Sprintf("ADD $%d, RSP, xD", locals), r) }), m.Disp
	case reg.StaticBase:
		return f.onEntry(m.Symbol.Name, true, func(r register) { f.emit(fmt.Sprintf("MOVD $%s(SB), xD", m.Symbol), r) }), m.Disp
	}
	base = f.general(m.Base)
	if m.Index == nil {
		return base, m.Disp
	}
	index := f.general(m.Index)
	for _, a := range f.addresses {
		if a.base == base && a.index == index && a.scale == m.Scale {
			return a.sum, m.Disp
		}
	}
	sum := f.newGeneral()
	f.emit(fmt.Sprintf("ADD xM<<%d, xN, xD", shiftOf(m.Scale)), index, base, sum)
	f.addresses = append(f.addresses, address{base, index, m.Scale, sum})
	if len(f.addresses) > fewAddresses {
		f.addresses = f.addresses[1:]
	}
	return sum, m.Disp
}

func shiftOf(scale uint8) int { return map[uint8]int{1: 0, 2: 1, 4: 2, 8: 3}[scale] }

// pointer is a register with the address of m.
func (f *function) pointer(m operand.Mem) register {
	base, displacement := f.at(m)
	return f.plus(base, displacement)
}

func (f *function) plus(base register, displacement int) register {
	if displacement == 0 {
		return base
	}
	r := f.newGeneral()
	if displacement < 0 {
		f.emit(fmt.Sprintf("SUB $%d, xN, xD", -displacement), base, r)
	} else {
		f.emit(fmt.Sprintf("ADD $%d, xN, xD", displacement), base, r)
	}
	return r
}

// access reads or writes a vector, or its first bytes; name is ldr or str, and letter is b, h, s, d or q.
func (f *function) access(name, letter string, v register, m operand.Mem) {
	size := map[string]int{"b": 1, "h": 2, "s": 4, "d": 8, "q": 16}[letter]
	what := name + " " + letter + map[string]string{"ldr": "D", "str": "S"}[name]
	if m.Index != nil && m.Disp == 0 && (m.Scale == 1 || size < 16 && int(m.Scale) == size) {
		by := ""
		if m.Scale > 1 {
			by = fmt.Sprintf(", lsl #%d", shiftOf(m.Scale))
		}
		f.emit(what+", [xN, xM"+by+"]", v, f.general(m.Base), f.general(m.Index))
		return
	}
	base, displacement := f.at(m)
	f.accessAt(name, letter, v, base, displacement)
}

func (f *function) accessAt(name, letter string, v, base register, displacement int) {
	size := map[string]int{"b": 1, "h": 2, "s": 4, "d": 8, "q": 16}[letter]
	what := name + " " + letter + map[string]string{"ldr": "D", "str": "S"}[name] + ", [xN, #I]"
	switch {
	case displacement >= 0 && displacement%size == 0 && displacement < 4096*size:
		f.emitNumber(what, displacement, v, base)
	case displacement >= -256 && displacement < 256:
		f.emitNumber(strings.Replace(what, "r ", "ur ", 1), displacement, v, base)
	default:
		f.emitNumber(what, 0, v, f.plus(base, displacement))
	}
}

// pair reads or writes two vectors that follow each other.
func (f *function) pair(name string, v, w register, m operand.Mem) {
	base, displacement := f.at(m)
	if displacement%16 != 0 || displacement < -1024 || displacement > 1008 {
		base, displacement = f.plus(base, displacement), 0
	}
	text := map[string]string{"ldr": "ldp qD, qE, [xN, #I]", "str": "stp qS, qF, [xN, #I]"}[name]
	f.emitNumber(text, displacement, v, w, base)
}

// source is half of an operand: a register, or one into which it is read.
func (f *function) source(op operand.Op, half int) register {
	m, ok := op.(operand.Mem)
	if !ok {
		return f.half(op, half)
	}
	v := f.vector()
	if !f.repeats(m) {
		m.Disp += 16 * half
	}
	f.access("ldr", "q", v, m)
	return v
}

// copied is source in a register that may be changed.
func (f *function) copied(op operand.Op, half int) register {
	if _, ok := op.(operand.Mem); ok {
		return f.source(op, half)
	}
	return f.copy(f.half(op, half))
}

func (f *function) copy(v register) register {
	w := f.vector()
	f.emit(moveText, w, v)
	return w
}

// repeats reports whether m is 32 bytes of constants whose two halves are equal.
func (f *function) repeats(m operand.Mem) bool {
	if m.Base != reg.StaticBase {
		return false
	}
	g := f.globals[m.Symbol.Name]
	values := map[int]string{}
	for _, d := range g.Data {
		values[d.Offset] = d.Value.Asm()
	}
	for at := m.Disp; at < m.Disp+16; at++ {
		if values[at] != values[at+16] {
			return false
		}
	}
	return true
}
