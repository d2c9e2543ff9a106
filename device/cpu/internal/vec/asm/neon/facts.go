package neon

import (
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Facts are what is true of vectors in the whole of a function, however often they are written.
type facts struct {
	isWide   map[reg.ID]bool // they are used with 256 bits
	isSplat  map[reg.ID]bool // all lanes are the same: one register is enough for both halves
	isMask   map[reg.ID]bool // each lane is all ones or all zeros
	isFactor map[reg.ID]bool // a number in all lanes, which only multiplies in sums of products: one lane is enough
}

func factsOf(f *ir.Function) facts {
	all := facts{isWide: map[reg.ID]bool{}, isSplat: map[reg.ID]bool{}, isMask: map[reg.ID]bool{}, isFactor: map[reg.ID]bool{}}
	for _, in := range f.Instructions() {
		for k, op := range in.Operands {
			r, ok := op.(reg.Register)
			if !ok || r.Kind() != reg.KindVector {
				continue
			}
			id := r.ID()
			all.isWide[id] = all.isWide[id] || r.Size() == 32
			note := func(fact map[reg.ID]bool, holds bool) {
				before, isKnown := fact[id]
				fact[id] = holds && (before || !isKnown)
			}
			if isWritten := k == len(in.Operands)-1 && in.Opcode != "VPTEST"; isWritten {
				note(all.isSplat, makesSplat(in))
				note(all.isFactor, (in.Opcode == "VBROADCASTSS" || in.Opcode == "VBROADCASTSD") && !isConstant(in.Operands[0]))
				all.isMask[id] = true
			} else {
				note(all.isFactor, strings.HasPrefix(in.Opcode, "VFMADD231"))
			}
		}
	}
	// A mask is a comparison's result or what logic makes of masks: take out what is neither until nothing changes.
	for changed := true; changed; {
		changed = false
		for _, in := range f.Instructions() {
			if len(in.Operands) == 0 || in.Opcode == "VPTEST" {
				continue
			}
			if r, ok := in.Operands[len(in.Operands)-1].(reg.Register); ok && all.isMask[r.ID()] && !all.makesMask(in) {
				all.isMask[r.ID()] = false
				changed = true
			}
		}
	}
	return all
}

func isConstant(op operand.Op) bool {
	m, ok := op.(operand.Mem)
	return ok && m.Base == reg.StaticBase
}

// makesSplat reports whether an instruction makes all lanes of 64 bits the same, in a whole vector.
func makesSplat(in *ir.Instruction) bool {
	ops := in.Operands
	if ops[len(ops)-1].(reg.Register).Size() != 32 {
		return false
	}
	return strings.HasPrefix(in.Opcode, "VPBROADCAST") || strings.HasPrefix(in.Opcode, "VBROADCASTS") || isZero(in) || isOnes(in)
}

// isZero reports whether an instruction makes zeros, and no more.
func isZero(in *ir.Instruction) bool {
	return (in.Opcode == "VPXOR" || in.Opcode == "VXORPS") && in.Operands[0] == in.Operands[1]
}

// isOnes is isZero for ones.
func isOnes(in *ir.Instruction) bool {
	return in.Opcode == "VPCMPEQQ" && in.Operands[0] == in.Operands[1]
}

func isLogic(in *ir.Instruction) bool {
	switch in.Opcode {
	case "VPAND", "VANDPS", "VANDPD", "VPOR", "VORPS", "VORPD", "VPXOR", "VXORPS", "VXORPD", "VPANDN", "VANDNPS", "VANDNPD":
		return true
	}
	return false
}

// makesMask reports whether the result of an instruction is a mask if those are that are taken for masks.
func (all facts) makesMask(in *ir.Instruction) bool {
	if isLogic(in) {
		for _, op := range in.Operands {
			if r, ok := op.(reg.Register); !ok || !all.isMask[r.ID()] {
				return isZero(in)
			}
		}
		return true
	}
	return strings.HasPrefix(in.Opcode, "VCMP") || strings.HasPrefix(in.Opcode, "VPCMP")
}
