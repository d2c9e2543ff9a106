package neon

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func init() {
	for name, r := range map[string]row{
		"MOVQ": moveGeneral("MOVD"), "MOVL": moveGeneral("MOVWU"), "MOVBLZX": moveGeneral("MOVBU"), "MOVWLZX": moveGeneral("MOVHU"),
		"ADDQ": arithmetic("ADD"), "SUBQ": arithmetic("SUB"), "ANDQ": arithmetic("AND"), "SHLQ": arithmetic("LSL"), "IMULQ": arithmetic("MUL"),
		"XORQ": func(f *function, ops []operand.Op) {
			if ops[0] != ops[1] {
				panic("only 0")
			}
			f.emit("MOVD $0, xD", f.general(ops[1]))
		},
		"INCQ": func(f *function, ops []operand.Op) { arithmetic("ADD")(f, []operand.Op{operand.U8(1), ops[0]}) },
		"DECQ": func(f *function, ops []operand.Op) { arithmetic("SUB")(f, []operand.Op{operand.U8(1), ops[0]}) },
		"NEGQ": func(f *function, ops []operand.Op) { f.emit("NEG xN, xD", f.general(ops[0]), f.general(ops[0])) },
		"LEAQ": loadAddress,
		"CMPQ": func(f *function, ops []operand.Op) { // Go's assembler has the operands of arm64 in the opposite order
			if r, ok := ops[1].(reg.Register); ok {
				f.emit("CMP xM, xN", f.general(r), f.general(ops[0]))
			} else {
				f.emit(fmt.Sprintf("CMP $%d, xN", number(ops[1])), f.general(ops[0]))
			}
		},
		"TESTQ": compareWith0, "TESTL": compareWith0,
		"TZCNTL": func(f *function, ops []operand.Op) {
			reversed := f.newGeneral()
			f.emit("RBIT xN, xD", f.general(ops[0]), reversed)
			f.emit("CLZ xN, xD", reversed, f.general(ops[1]))
		},
		"BTSQ": func(f *function, ops []operand.Op) {
			one := f.newGeneral()
			f.emit("MOVD $1, xD", one)
			f.emit("LSL xM, xN, xD", f.general(ops[0]), one, one)
			f.emit("ORR xM, xN, xD", one, f.general(ops[1]), f.general(ops[1]))
		},
		"PREFETCHT0": func(f *function, ops []operand.Op) {
			base, displacement := f.at(ops[0].(operand.Mem))
			f.emit(fmt.Sprintf("PRFM %d(xN), PLDL1KEEP", displacement), base)
		},
		"JMP": func(f *function, ops []operand.Op) { f.jump("JMP", string(ops[0].(operand.LabelRef))) },
		"RET": func(f *function, ops []operand.Op) { f.emit("RET") },
	} {
		rows[name] = r
	}
	for intel, arm := range map[string]string{"LE": "LE", "LT": "LT", "L": "LT", "GE": "GE", "GT": "GT", "G": "GT", "NE": "NE", "NZ": "NE", "E": "EQ", "Z": "EQ", "EQ": "EQ"} {
		rows["J"+intel] = func(f *function, ops []operand.Op) { f.jump("B"+arm, string(ops[0].(operand.LabelRef))) }
		rows["CMOVQ"+intel] = func(f *function, ops []operand.Op) {
			x, d := f.general(ops[0]), f.general(ops[1])
			f.emit("CSEL "+arm+", xN, xM, xD", x, d, d)
		}
	}
}

// arithmetic is an instruction of an operand and a register, which gets the result.
func arithmetic(name string) row {
	return func(f *function, ops []operand.Op) {
		name := name
		if f.setsFlags {
			name += "S"
		}
		d := f.general(ops[1])
		if r, ok := ops[0].(reg.Register); ok {
			f.emit(name+" xM, xN, xD", f.general(r), d, d)
		} else {
			f.emit(fmt.Sprintf("%s $%d, xN, xD", name, number(ops[0])), d, d)
		}
	}
}

func compareWith0(f *function, ops []operand.Op) {
	if ops[0] != ops[1] {
		panic("only of a register with itself")
	}
	f.emit("CMP $0, xN", f.general(ops[0]))
}

func loadAddress(f *function, ops []operand.Op) {
	m, d := ops[0].(operand.Mem), f.general(ops[1])
	f.emit("MOVD xN, xD", f.pointer(m), d)
}

// moveGeneral is MOVQ or one that reads fewer bytes.
func moveGeneral(name string) row {
	store := map[string]string{"MOVWU": "MOVW"}[name]
	if store == "" {
		store = name
	}
	return func(f *function, ops []operand.Op) {
		to, writes := ops[1].(operand.Mem)
		from, reads := ops[0].(operand.Mem)
		switch {
		case writes && to.Base == reg.FramePointer:
			f.emit(store+" xS, "+to.Asm(), f.general(ops[0]))
		case reads && from.Base == reg.FramePointer:
			f.emit(name+" "+from.Asm()+", xD", f.general(ops[1]))
		case writes:
			base, displacement := f.at(to)
			f.emit(fmt.Sprintf("%s xS, %d(xN)", store, displacement), f.general(ops[0]), base)
		case reads:
			base, displacement := f.at(from)
			f.emit(fmt.Sprintf("%s %d(xN), xD", name, displacement), base, f.general(ops[1]))
		default:
			if r, ok := ops[0].(reg.Register); ok {
				f.emit("MOVD xN, xD", f.general(r), f.general(ops[1]))
			} else {
				f.emit(fmt.Sprintf("MOVD $%d, xD", number(ops[0])), f.general(ops[1]))
			}
		}
	}
}
