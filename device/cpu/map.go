package cpu

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// tile is how many elements of each operand and intermediate result are worked
// on at a time, so that they stay in the innermost cache.
const tile = 1024

// long is how many elements a loop is called for at most where nothing is gained by a tile. It keeps
// calls of assembly, which can't be interrupted, below some tens of microseconds.
const long = 8192

// large is how many bytes the operands of a command have together from which on its output is written
// past the caches. Beyond the last cache the add of such a loop was 1.3 to 1.7 times as fast as that of a plain one (Zen 4, 48 to 144 MB,
// a busy machine), as the output isn't read before it is overwritten. An output that would stay in the cache has to be read from memory later
// instead, which was not measured here. Others use this cache, too: that half of it is a command's share is a guess. Tests make it small.
var large = vec.LastCache() / 2

const cacheLine = 64

// A program is an expression compiled to loops that run over a tile at a time,
// one after the other. Its values live in slots: the output in slot 0, the
// inputs after it, then tiles of scratch memory.
//
//	slot 0        the output
//	     1 .. 3   inputs, where they lie or gathered into a tile
//	     4 ..     intermediate results, and scalars spread over a tile
type program struct {
	steps   []step
	scalars []scalar // those that no loop takes as they are
	inputs  int
	sizes   [device.MaxOperands]int // of the elements of the output and inputs
	slots   int
	cost    int // of an element, in simple operations
}

// A step is one primitive.
type step struct {
	loop vec.Loop
	// past is the loop that writes past the caches, for the output; nil: there is none, and loop is
	// used. To compute a tile and copy that past the caches took 0.8 to 1.3 times the time of plain stores there.
	past      vec.Loop
	dst       int
	x, y, z   int
	hasScalar bool
	scalar    scalar
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
		return c.Imm[s.imm]
	}
	return s.bits
}

func newMap(k *device.Kernel) (runner, error) {
	e, ok := k.Body.(*kernel.Expr)
	if !ok || e.DType() != k.Out || len(k.In) < e.Args() || len(k.In) >= device.MaxOperands {
		return nil, unsupported(k)
	}
	for _, x := range e.Nodes() {
		if x.Kind() == kernel.Operand && k.In[x.Index()] != x.DType() {
			return nil, unsupported(k)
		}
	}
	p := compileExpr(e)
	p.inputs = len(k.In)
	p.sizes[0] = k.Out.Size()
	for i, dt := range k.In {
		p.sizes[i+1] = dt.Size()
	}
	if len(p.steps) == 1 && len(p.scalars) == 0 {
		return p.runStep, nil
	}
	return p.run, nil
}

// A compiler turns an expression into a program.
type compiler struct {
	program
	slot map[*kernel.Expr]int // of operands, spread scalars and results that are still needed
	uses map[*kernel.Expr]int // how often a value is still to be read
	free []int
}

func compileExpr(e *kernel.Expr) *program {
	cc := compiler{slot: map[*kernel.Expr]int{}, uses: map[*kernel.Expr]int{}}
	cc.slots = device.MaxOperands
	nodes := e.Nodes()
	for _, x := range nodes {
		if x.Kind() == kernel.Operand {
			cc.slot[x] = x.Index() + 1
		}
		for _, in := range x.In() {
			cc.uses[in]++
		}
	}
	for _, x := range nodes {
		if x.Kind() == kernel.Application {
			cc.step(x, x == e)
		}
	}
	if e.Kind() != kernel.Application {
		cc.steps = append(cc.steps, step{loop: moveLoop(e.DType().Size()), x: cc.read(e)})
	}
	return &cc.program
}

// step adds the loop for x, which is the whole expression if isLast.
func (cc *compiler) step(x *kernel.Expr, isLast bool) {
	in := x.In()
	cc.cost += vec.Cost(x.Prim(), in[len(in)-1].DType())
	s, loop := step{}, vec.Loop(nil)
	if len(in) == 2 {
		loop = cc.scalarLoop(x, &s)
	}
	switch {
	case loop != nil:
	case x.Prim() == kernel.PrimCast:
		loop = vec.CastLoop(in[0].DType(), x.DType())
	default:
		loop = vec.PrimLoop(x.Prim(), in[len(in)-1].DType(), vec.NoScalar)
		s.past = vec.PrimStream(x.Prim(), in[len(in)-1].DType(), vec.NoScalar)
	}
	s.loop = loop
	operands := []*int{&s.x, &s.y, &s.z}
	for i, v := range in {
		if !(s.hasScalar && isScalar(v)) {
			*operands[i] = cc.read(v)
		}
	}
	// What is read here for the last time makes room for the result, as loops
	// read an element before they write it; but a wider result would run ahead.
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

// scalarLoop returns a loop that takes one of x's two operands as a scalar, if it is one and there is such a loop.
func (cc *compiler) scalarLoop(x *kernel.Expr, s *step) vec.Loop {
	a, b := x.In()[0], x.In()[1]
	which, v := vec.FirstScalar, a
	if isScalar(b) {
		which, v = vec.SecondScalar, b
	}
	if isScalar(a) == isScalar(b) {
		return nil
	}
	l := vec.PrimLoop(x.Prim(), a.DType(), which)
	if l != nil {
		s.hasScalar, s.scalar = true, scalarOf(v)
		s.past = vec.PrimStream(x.Prim(), a.DType(), which)
	}
	return l
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
	s.slot = cc.slots
	cc.slots++
	cc.slot[x] = s.slot
	cc.scalars = append(cc.scalars, s)
	return s.slot
}

func (cc *compiler) takeSlot(x *kernel.Expr) int {
	slot := cc.slots
	if n := len(cc.free); n > 0 {
		slot, cc.free = cc.free[n-1], cc.free[:n-1]
	} else {
		cc.slots++
	}
	cc.slot[x] = slot
	return slot
}

// runStep runs a program of one step, where everything is contiguous and small in one go.
func (p *program) runStep(c *device.Command) error {
	if c.Args != nil || c.N > long || pool.Worth(c.N, grainOf(p.cost)) {
		return p.run(c)
	}
	if c.N <= 0 {
		return nil
	}
	var at [device.MaxOperands]unsafe.Pointer
	for i := range p.inputs + 1 {
		at[i] = pointer(c, i, p.sizes[i], c.N)
	}
	s := &p.steps[0]
	var bits uint64
	if s.hasScalar {
		bits = s.scalar.value(c)
	}
	s.loop(at[0], at[s.x], at[s.y], at[s.z], bits, c.N)
	return nil
}

// scratch is the memory of one run of a program.
type scratch struct {
	memory []uint64         // a tile of words for each slot
	at     []unsafe.Pointer // of each slot
	views  [device.MaxOperands]view
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *scratch) grow(slots int) {
	if len(s.at) >= slots {
		return
	}
	s.memory = make([]uint64, slots*tile)
	s.at = make([]unsafe.Pointer, slots)
}

// rewind lets every slot point to its own tile again.
func (s *scratch) rewind(slots int) {
	for i := range slots {
		s.at[i] = unsafe.Pointer(&s.memory[i*tile])
	}
}

// run runs a program, split over the cores if there is much to do.
func (p *program) run(c *device.Command) error {
	if !pool.Worth(c.N, grainOf(p.cost)) {
		return p.runRange(c, 0, c.N)
	}
	return p.split(c)
}

func (p *program) split(c *device.Command) error {
	// If there is an error, there is one for every range.
	if err := p.runRange(c, 0, 1); err != nil {
		return err
	}
	command := *c // c itself must not escape: most commands are small
	pool.Run(c.N-1, grainOf(p.cost), func(lo, hi int) { p.runRange(&command, lo+1, hi+1) })
	return nil
}

// runRange computes the elements from lo to hi-1, tile by tile.
func (p *program) runRange(c *device.Command, lo, hi int) error {
	if lo >= hi {
		return nil
	}
	s := scratches.Get().(*scratch)
	defer s.release()
	s.grow(p.slots)
	s.rewind(p.slots)
	for i := range p.scalars {
		v := &p.scalars[i]
		vec.Fill(s.at[v.slot], v.size, v.value(c), min(hi-lo, tile))
	}
	// Where an operand begins; nil for those that are gathered.
	var base [device.MaxOperands]unsafe.Pointer
	base[0] = pointer(c, 0, p.sizes[0], c.N)
	for i := 1; i <= p.inputs; i++ {
		strides := stridesOf(c, i)
		v := &s.views[i]
		if strides != nil && !makeView(v, c.Args.Shape, strides) {
			return errRank(c.Args.Shape)
		}
		switch {
		case strides == nil || v.isContiguous():
			base[i] = pointer(c, i, p.sizes[i], c.N)
		case v.isScalar():
			gatherBits(s.at[i], min(hi-lo, tile), p.sizes[i], c, i, v, 0)
		}
	}
	chunk := tile
	if p.isPlain(&base) {
		chunk = long
	}
	streams := p.streams(c)
	if streams {
		defer vec.Fence()
	}
	for start := lo; start < hi; {
		n := min(chunk, hi-start)
		isAligned := true // a loop past the caches needs that
		if streams {
			if past := int(uintptr(base[0])+uintptr(start*p.sizes[0])) % cacheLine; past > 0 {
				n, isAligned = min(n, (cacheLine-past)/p.sizes[0]), false
			}
		}
		for i := range p.inputs + 1 {
			switch {
			case base[i] != nil:
				s.at[i] = unsafe.Add(base[i], start*p.sizes[i])
			case !s.views[i].isScalar():
				gatherBits(s.at[i], n, p.sizes[i], c, i, &s.views[i], start)
			}
		}
		for i := range p.steps {
			st := &p.steps[i]
			loop := st.loop
			if streams && isAligned && i == len(p.steps)-1 {
				loop = st.past
			}
			var bits uint64
			if st.hasScalar {
				bits = st.scalar.value(c)
			}
			loop(s.at[st.dst], s.at[st.x], s.at[st.y], s.at[st.z], bits, n)
		}
		start += n
	}
	return nil
}

// isPlain reports whether p is one step on operands that are used where they lie, so that there is no tile to stay in.
func (p *program) isPlain(base *[device.MaxOperands]unsafe.Pointer) bool {
	return len(p.steps) == 1 && len(p.scalars) == 0 && !slices.Contains(base[:p.inputs+1], nil)
}

// streams reports whether the output of c is written past the caches: when the operands together are
// large, so that it would push out of the caches what is read soon and be gone itself before it is read, and when it takes the
// place of no input, which would be in a cache already.
func (p *program) streams(c *device.Command) bool {
	if p.steps[len(p.steps)-1].past == nil || c.N < large/(device.MaxOperands*8) {
		return false
	}
	bytes := 0
	for i := range p.inputs + 1 {
		if i > 0 && c.Buf[i] == c.Buf[0] {
			return false
		}
		if stridesOf(c, i) == nil {
			bytes += c.N * p.sizes[i]
		}
	}
	return bytes > large
}

// release gives s back without references to the buffers of a command.
func (s *scratch) release() {
	clear(s.at)
	scratches.Put(s)
}
