package cpu

import (
	"slices"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
)

// A program is an expression compiled to loops that run over a tile at a time,
// one after the other. Its values live in slots: the output in slot 0, the
// inputs after it, then intermediate results.
//
//	slot 0        the output
//	     1 .. 7   inputs, where they lie or gathered into a tile
//	     8        an intermediate result with elements of the output's size: in the place of the
//	              output, unless an input lies there or it is written past the caches
//	     9 ..     other intermediate results, and scalars spread over a tile
type program struct {
	steps   []step
	scalars []scalar // those that no loop takes as they are
	inputs  int
	sizes   [maxOperands]int // of the elements of the output and inputs
	slots   int
	tile    int // how many elements are worked on at a time
	cost    int // of an element, in simple operations
	moves   int // how many of them its reads and writes are worth besides, where they do not fit the caches of a core
	// apart is a program for the same with a step for each primitive, if this one has steps of two. Those take one
	// operand that is a view as it lies, where two steps could take one each.
	apart *program
}

const (
	maxOperands = 1 + device.MaxInputs // of a program

	outSlot   = maxOperands
	firstSlot = outSlot + 1 // of those that have a tile of their own
)

// A step is one primitive, or a product and the sum or difference that it goes into.
type step struct {
	// forms are its loops. The first one is the usual one; loop k is for a command in which operand k
	// is the same for all elements. A form without a loop doesn't exist.
	forms     [4]form
	dst       int
	in        [3]int // where the operands are
	hasScalar bool   // the usual loop takes a scalar, instead of one of the operands
	scalar    scalar
	isOfTwo   bool // primitives
}

// A form is one of the loops for a step.
type form struct {
	loop vec.Loop
	// past is the loop that writes the output past the caches. If there is none, past is nil and loop
	// is used: to compute a tile and then copy it past the caches took 0.8 to 1.3 times as long as
	// plain stores.
	past vec.Loop
}

func formOf(p kernel.Prim, dt device.DType, f vec.Form) form {
	return form{vec.PrimLoop(p, dt, f), vec.PrimStream(p, dt, f)}
}

// An addMul is a sum or difference and a multiplication whose result goes there and nowhere else.
type addMul struct {
	in      []*kernel.Expr // the factors, and what it is added to or taken from
	isMinus bool
}

func (j *addMul) formOf(dt device.DType, f vec.Form) form {
	loop, past := vec.AddMulLoop(j.isMinus, dt, f)
	return form{loop, past}
}

// A scalar is a constant or an immediate of the command.
type scalar struct {
	bits uint64
	imm  int // which immediate; -1: bits
	slot int // where it is spread out, if it is
	size int
}

func (s *scalar) value(c *device.Command) uint64 {
	if s.imm >= 0 {
		return c.Immediate(s.imm)
	}
	return s.bits
}

func newMap(k *device.Kernel) (runner, error) {
	e, ok := k.Body.(*kernel.Expr)
	if !ok || e.DType() != k.Out {
		return nil, unsupported(k)
	}
	p := newProgram(e, k.In)
	if p == nil {
		return nil, unsupported(k)
	}
	if joined := programOf(compileExpr(e, true), e, k.In); len(joined.steps) < len(p.steps) {
		joined.apart = p
		p = joined
	}
	if len(p.steps) == 1 && len(p.scalars) == 0 && p.inputs < device.MaxOperands {
		return p.stepRunner(), nil
	}
	return p.runShort, nil
}

// bytesPerOperation is how many bytes are moved in the time of a simple operation, at the speed of the third cache: a
// sum of float32s moves 12 and takes 0.14 ns an element there (AMD EPYC, Zen 4).
const bytesPerOperation = 8

// newProgram compiles an expression over inputs of the given types. It returns nil if they don't fit.
func newProgram(e *kernel.Expr, in []device.DType) *program {
	if len(in) < e.Args() || len(in) > device.MaxInputs {
		return nil
	}
	for _, x := range e.Nodes() {
		if x.Kind() == kernel.Operand && in[x.Index()] != x.DType() {
			return nil
		}
	}
	return programOf(compileExpr(e, false), e, in)
}

// programOf is p, what e over inputs of the given types compiles to, with what is known of these.
func programOf(p *program, e *kernel.Expr, in []device.DType) *program {
	p.inputs = len(in)
	p.sizes[0] = e.DType().Size()
	for i, dt := range in {
		p.sizes[i+1] = dt.Size()
	}
	bytes := 0
	for _, size := range p.sizes {
		bytes += size
	}
	p.moves = bytes / bytesPerOperation
	return p
}

// A compiler turns an expression into a program.
type compiler struct {
	program
	size          int // of the elements of the output
	isOutSlotUsed bool
	slot          map[*kernel.Expr]int // of operands, spread scalars and results that are still needed
	uses          map[*kernel.Expr]int // how often a value is still to be read
	free          []int
	addMuls       map[*kernel.Expr]*addMul // by the sum or difference
}

// compileExpr compiles e. Where joins is set, a product and its sum become one step: t + x*y of 256K float32s takes
// 65 µs then, and 77 to 85 in two steps (AMD EPYC, Zen 3).
func compileExpr(e *kernel.Expr, joins bool) *program {
	cc := compiler{size: e.DType().Size(), slot: map[*kernel.Expr]int{}, uses: map[*kernel.Expr]int{}, addMuls: map[*kernel.Expr]*addMul{}}
	cc.slots = outSlot
	cc.tile = tile
	nodes := e.Nodes()
	for _, x := range nodes {
		if x.DType().Size() == 8 {
			cc.tile = tile / 2
		}
		if x.Kind() == kernel.Operand {
			cc.slot[x] = x.Index() + 1
		}
		for _, in := range x.In() {
			cc.uses[in]++
		}
	}
	joined := map[*kernel.Expr]bool{} // multiplications that have no step of their own
	for _, x := range nodes {
		if joins {
			cc.join(x, joined)
		}
	}
	for _, x := range nodes {
		if x.Kind() == kernel.Application && !joined[x] {
			cc.step(x, x == e)
		}
	}
	if e.Kind() != kernel.Application {
		s := step{in: [3]int{cc.read(e)}}
		s.forms[0].loop = moveLoop(e.DType().Size())
		cc.steps = append(cc.steps, s)
	}
	return &cc.program
}

// join makes one step of x and a product that it adds or takes away, if it has one that nothing else reads.
func (cc *compiler) join(x *kernel.Expr, joined map[*kernel.Expr]bool) {
	if x.Kind() != kernel.Application || !x.DType().IsFloat() || x.Prim() != kernel.PrimAdd && x.Prim() != kernel.PrimSub {
		return
	}
	in := x.In()
	for k, v := range in {
		rest := in[1-k]
		if v.Kind() != kernel.Application || v.Prim() != kernel.PrimMul || cc.uses[v] > 1 || isScalar(rest) || k == 0 && x.Prim() == kernel.PrimSub {
			continue
		}
		cc.addMuls[x] = &addMul{in: append(slices.Clone(v.In()), rest), isMinus: x.Prim() == kernel.PrimSub}
		joined[v] = true
		return
	}
}

// step adds the loop for x, which is the whole expression if isLast.
func (cc *compiler) step(x *kernel.Expr, isLast bool) {
	in := x.In()
	dt := in[len(in)-1].DType()
	cc.cost += vec.Cost(x.Prim(), dt)
	s := step{}
	formOf := func(dt device.DType, f vec.Form) form { return formOf(x.Prim(), dt, f) }
	if j := cc.addMuls[x]; j != nil {
		in, formOf, s.isOfTwo = j.in, j.formOf, true
		cc.cost += vec.Cost(kernel.PrimMul, dt)
	}
	which := takeScalar(in, formOf, &s)
	switch {
	case s.hasScalar:
	case x.Prim() == kernel.PrimCast:
		s.forms[0].loop = vec.CastLoop(dt, x.DType())
	default:
		s.forms[0] = formOf(dt, vec.NoScalar)
		for k, v := range in {
			if v.Kind() == kernel.Operand {
				s.forms[k+1] = formOf(dt, vec.Form(k+1))
			}
		}
	}
	for k, v := range in {
		if !s.hasScalar || k != which {
			s.in[k] = cc.read(v)
		}
	}
	// An operand that is read here for the last time makes room for the result, since loops read an
	// element before they write it. A result with wider elements would overwrite what isn't read yet.
	var freed []int
	for _, v := range in {
		if cc.uses[v]--; cc.uses[v] == 0 && v.Kind() == kernel.Application {
			if v.DType().Size() == x.DType().Size() {
				cc.free = append(cc.free, cc.slot[v])
			} else {
				freed = append(freed, cc.slot[v])
			}
		}
	}
	if !isLast {
		s.dst = cc.takeSlot(x)
	}
	cc.free = append(cc.free, freed...)
	cc.steps = append(cc.steps, s)
}

// takeScalar chooses a loop for a step that takes one of its operands as a scalar, and returns that operand's number.
// If all operands are scalars, none is, or there is no such loop, it chooses nothing: s.hasScalar stays false.
func takeScalar(in []*kernel.Expr, formOf func(device.DType, vec.Form) form, s *step) (which int) {
	if !slices.ContainsFunc(in, func(v *kernel.Expr) bool { return !isScalar(v) }) {
		return 0
	}
	for k, v := range in {
		if !isScalar(v) {
			continue
		}
		if f := formOf(in[len(in)-1].DType(), vec.Form(k+1)); f.loop != nil {
			s.forms[0], s.hasScalar, s.scalar = f, true, scalarOf(v)
			return k
		}
	}
	return 0
}

func isScalar(x *kernel.Expr) bool {
	return x.Kind() == kernel.Constant || x.Kind() == kernel.Immediate
}

func scalarOf(x *kernel.Expr) scalar {
	if x.Kind() == kernel.Immediate {
		return scalar{imm: x.Index(), size: x.DType().Size()}
	}
	return scalar{imm: -1, bits: x.Bits(), size: x.DType().Size()}
}

// read returns the slot of x. A scalar is spread over a tile of its own, once
// for all tiles of a command.
func (cc *compiler) read(x *kernel.Expr) int {
	if slot, ok := cc.slot[x]; ok {
		return slot
	}
	s := scalarOf(x)
	s.slot = cc.newSlot()
	cc.slot[x] = s.slot
	cc.scalars = append(cc.scalars, s)
	return s.slot
}

func (cc *compiler) newSlot() int {
	slot := max(cc.slots, firstSlot)
	cc.slots = slot + 1
	return slot
}

// takeSlot finds room for x, which is not the whole expression.
func (cc *compiler) takeSlot(x *kernel.Expr) int {
	slot := cc.chooseSlot(x.DType().Size() == cc.size)
	cc.slot[x] = slot
	return slot
}

// chooseSlot returns a slot that is free. One that the output has room for goes there rather than elsewhere.
func (cc *compiler) chooseSlot(fitsOutput bool) int {
	if fitsOutput && !cc.isOutSlotUsed {
		cc.isOutSlotUsed = true
		cc.slots = max(cc.slots, firstSlot)
		return outSlot
	}
	best := -1
	for i, slot := range cc.free {
		if (fitsOutput || slot != outSlot) && (best < 0 || cc.free[best] != outSlot) {
			best = i
		}
	}
	if best < 0 {
		return cc.newSlot()
	}
	slot := cc.free[best]
	cc.free = slices.Delete(cc.free, best, best+1)
	return slot
}
