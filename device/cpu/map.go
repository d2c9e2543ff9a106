package cpu

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/cpu/internal/vec"
	"github.com/asyncgen/asyncgen/device/pool"
)

// tile is how many elements of each operand and each intermediate result are worked on at a time, so
// that they stay in the innermost cache. Of elements with 8 bytes it is half as many.
const tile = 1024

// long is how many elements a loop gets at most where tiles gain nothing. Assembly can't be
// interrupted, and this keeps each call below some tens of microseconds.
const long = 8192

// large is how many bytes all operands of a command must have for its output to be written past the
// caches. Beyond the last cache the add of such a loop was 1.3 to 1.7 times as fast as that of a plain
// one (Zen 4, 48 to 144 MB, a busy machine), as the output isn't read before it is overwritten. An
// output that would stay in the cache has to be read from memory later instead, which was not measured
// here. Other commands use this cache, too; that one may have half of it is a guess. Tests make it
// small.
var large = vec.CachesOf().Last / 2

const cacheLine = 64

// The parts that a command is split into are multiples of unit elements. So each of them begins at
// a cache line if the whole command does. Tests make it small.
var unit = 64

// stepRunner runs a program of one step. Where everything is contiguous and short it does nothing but call the loop.
func (p *program) stepRunner() runner {
	s := &p.steps[0]
	loop, x, y, z := s.forms[0].loop, s.in[0]&3, s.in[1]&3, s.in[2]&3
	return func(c *device.Command) error {
		if !p.isShort(c) {
			if p.isFew(c) && p.runRows(c) {
				return nil
			}
			return p.run(c)
		}
		var at [device.MaxOperands]unsafe.Pointer
		n := c.N
		for i := range p.inputs + 1 { // as place does: a call of it would be a tenth of the whole
			b, off, size := c.Buf[i], c.Off[i], p.sizes[i]
			if uint(off) > uint(b.Bytes) || int64((off+n)*size) > b.Bytes {
				outside(c, i, n)
			}
			at[i] = unsafe.Add(b.Ptr, off*size)
		}
		var bits uint64
		if s.hasScalar {
			bits = s.scalar.value(c)
		}
		loop(at[0], at[x], at[y], at[z], bits, n)
		return nil
	}
}

// runShort runs a program of several steps, without much ado if everything is contiguous and short.
func (p *program) runShort(c *device.Command) error {
	if !p.isShort(c) {
		return p.run(c)
	}
	if p.slots == firstSlot && !p.isInPlace(c) {
		var at [firstSlot]unsafe.Pointer
		p.runSteps(c, at[:])
		return nil
	}
	s := scratches.Get().(*scratch)
	s.grow(p.slots, 0)
	for i := range p.scalars {
		v := &p.scalars[i]
		vec.Fill(s.at[v.slot], v.size, v.value(c), c.N)
	}
	p.runSteps(c, s.at)
	s.release()
	return nil
}

// handful is how many elements are not worth a thought about how they are found.
const handful = 32

// isFew reports whether c has few elements, some of whose operands are views.
func (p *program) isFew(c *device.Command) bool {
	return c.Args != nil && uint(c.N-1) < handful
}

// runRows runs a program of one step where its operands lie, row by row: to call the loop for a row
// takes less time than to gather the row. It needs rows whose elements are one after the other or, if
// the loop has a form for that, all equal. Otherwise it does nothing and reports false.
func (p *program) runRows(c *device.Command) bool {
	rows, length, rank := 1, 1, len(c.Args.Shape)
	switch rank {
	case 0:
	case 1:
		length = c.Args.Shape[0]
	case 2:
		rows, length = c.Args.Shape[0], c.Args.Shape[1]
	default:
		return false
	}
	var at [device.MaxOperands]unsafe.Pointer
	var down [device.MaxOperands]int // from row to row, in bytes
	equal := 0                       // the input that has one element for a whole row
	s := &p.steps[0]
	for i := 1; i <= p.inputs; i++ {
		size, strides := p.sizes[i], c.Args.Strides[i]
		if strides == nil {
			at[i], down[i] = pointer(c, i, size, c.N), length*size
			continue
		}
		across, step := 1, 0
		if rank > 0 {
			across = strides[rank-1]
		}
		if rank > 1 {
			step = strides[0]
		}
		if length > 1 && across != 1 {
			if across != 0 || equal != 0 || s.hasScalar {
				return false
			}
			equal = i
		}
		least, most := c.Off[i]+min(0, (rows-1)*step), c.Off[i]+max(0, (rows-1)*step)+(length-1)*across
		if least < 0 || int64(most+1)*int64(size) > c.Buf[i].Bytes {
			outside(c, i, c.N)
		}
		at[i], down[i] = unsafe.Add(c.Buf[i].Ptr, c.Off[i]*size), step*size
	}
	loop := s.forms[0].loop
	if equal != 0 {
		if loop = s.loopOf(equal); loop == nil {
			return false
		}
	}
	at[0], down[0] = pointer(c, 0, p.sizes[0], c.N), length*p.sizes[0]
	x, y, z := s.in[0]&3, s.in[1]&3, s.in[2]&3
	var bits uint64
	if s.hasScalar {
		bits = s.scalar.value(c)
	}
	for r := range rows {
		if equal != 0 {
			bits = loadBits(unsafe.Add(at[equal], r*down[equal]), p.sizes[equal])
		}
		loop(unsafe.Add(at[0], r*down[0]), unsafe.Add(at[x], r*down[x]), unsafe.Add(at[y], r*down[y]), unsafe.Add(at[z], r*down[z]), bits, length)
	}
	return true
}

// loopOf is the loop for an input whose elements are equal, which the step reads once, or nil.
func (s *step) loopOf(input int) (loop vec.Loop) {
	for k, slot := range s.in {
		switch {
		case slot == input && loop != nil:
			return nil
		case slot == input:
			loop = s.forms[k+1].loop
		}
	}
	return loop
}

// runSteps runs all steps on contiguous operands. Intermediate results go where at says; an empty place
// means the output's memory.
func (p *program) runSteps(c *device.Command, at []unsafe.Pointer) {
	p.place(c, at)
	if p.slots > outSlot && at[outSlot] == nil {
		at[outSlot] = at[0]
	}
	for i := range p.steps {
		s := &p.steps[i]
		var bits uint64
		if s.hasScalar {
			bits = s.scalar.value(c)
		}
		s.forms[0].loop(at[s.dst], at[s.in[0]], at[s.in[1]], at[s.in[2]], bits, c.N)
	}
}

// isShort reports whether c has so few elements, all of its operands being contiguous, that nobody
// need think about how to run it. It has some.
func (p *program) isShort(c *device.Command) bool {
	return c.Args == nil && uint(c.N-1) < uint(p.tile) && c.N*p.cost <= grain/finest
}

// place sets at to where the operands of a short command lie; see pointer.
func (p *program) place(c *device.Command, at []unsafe.Pointer) {
	n := c.N
	for i := range p.inputs + 1 {
		b, off, size := c.Buf[i], c.Off[i], p.sizes[i]
		if uint(off) > uint(b.Bytes) || int64((off+n)*size) > b.Bytes {
			outside(c, i, n)
		}
		at[i] = unsafe.Add(b.Ptr, off*size)
	}
}

// isInPlace reports whether the output takes the place of an input.
func (p *program) isInPlace(c *device.Command) bool {
	for i := 1; i <= p.inputs; i++ {
		if b, _ := c.Operand(i); b.Ptr == c.Buf[0].Ptr {
			return true
		}
	}
	return false
}

// isBetterApart reports whether c has a step of two primitives with more operands that are views than its loop takes.
func (p *program) isBetterApart(c *device.Command) bool {
	if p.apart == nil || c.Args == nil {
		return false
	}
	for i := range p.steps {
		s := &p.steps[i]
		views := 0
		if s.hasScalar {
			views++
		}
		for _, slot := range s.in {
			if 0 < slot && slot <= p.inputs && c.Strides(slot) != nil {
				views++
			}
		}
		if s.isOfTwo && views > 1 {
			return true
		}
	}
	return false
}

// run runs a program, split over the cores if there is much to do.
func (p *program) run(c *device.Command) error {
	if p.isBetterApart(c) {
		p = p.apart
	}
	if set := p.across(c); set != 0 {
		if ok, err := p.runAcross(c, set); ok {
			return err
		}
	}
	if c.N*p.cost <= grain/finest || !pool.Worth(c.N, grainOf(p.cost+p.moves)) {
		return p.runRange(c, 0, c.N)
	}
	return p.split(c)
}

func (p *program) split(c *device.Command) error {
	// What is wrong with the command is found before anything is written.
	s := scratches.Get().(*scratch)
	err := s.open(p, c, 0)
	s.release()
	if err != nil {
		return err
	}
	command := *c // c itself must not escape: most commands are small
	pool.Run((c.N+unit-1)/unit, grainOf((p.cost+p.moves)*unit), func(lo, hi int) { p.runRange(&command, lo*unit, min(hi*unit, command.N)) })
	return nil
}

// runRange computes the elements from lo to hi-1, tile by tile.
func (p *program) runRange(c *device.Command, lo, hi int) error {
	if lo >= hi {
		return nil
	}
	s := scratches.Get().(*scratch)
	if err := s.open(p, c, min(hi-lo, p.tile)); err != nil {
		return err
	}
	out := unsafe.Add(c.Buf[0].Ptr, c.Off[0]*p.sizes[0])
	streams := p.streams(c)
	if streams {
		defer vec.Fence()
	}
	s.isOutSlotOut = p.slots > outSlot && !streams && !p.isInPlace(c)
	for start := lo; start < hi; {
		dst := unsafe.Add(out, start*p.sizes[0])
		n, isAligned := s.most(start, hi), streams // a loop past the caches needs that
		if past := int(uintptr(dst)) % cacheLine; streams && past > 0 {
			n, isAligned = min(n, (cacheLine-past)/p.sizes[0]), false
		}
		s.compute(dst, start, n, isAligned)
		start += n
	}
	s.release()
	return nil
}

// streams reports whether the output of c is written past the caches. It is if the operands together are large: in the
// caches it would replace data that is read soon, and be replaced itself before it is read. It is not if the output
// takes the place of an input, which is in a cache already.
func (p *program) streams(c *device.Command) bool {
	if p.steps[len(p.steps)-1].forms[0].past == nil || c.N < large/(maxOperands*8) {
		return false
	}
	bytes := 0
	for i := range p.inputs + 1 {
		if b, _ := c.Operand(i); i > 0 && b.Ptr == c.Buf[0].Ptr {
			return false
		}
		if c.Strides(i) == nil {
			bytes += c.N * p.sizes[i]
		}
	}
	return bytes > large
}

// scratch is the memory of one run of a program.
type scratch struct {
	program      *program
	command      *device.Command
	memory       []uint64         // a tile for each slot
	at           []unsafe.Pointer // of each slot
	calls        []call           // one for each step
	sources      [maxOperands]source
	chunk        int  // how many elements are worked on at a time
	isOutSlotOut bool // intermediate results may lie in the place of the output
}

// A call is a step as one command has it.
type call struct {
	form
	bits uint64
	from int // the source that bits changes with; 0: none
}

// A source says how the elements of an input are found.
type source struct {
	kind   sourceKind
	base   unsafe.Pointer // of those in order
	length int            // of a row
	phase  int            // of a pattern: where in it the tile begins
	view   view
}

type sourceKind uint8

const (
	inOrder   sourceKind = iota // one after the other
	asScalar                    // all elements are one, which the loops take as a scalar
	inRows                      // rows that are long enough to be used where they lie
	rowScalar                   // rows of equal elements, long enough, which the loops take as scalars
	spread                      // all elements are one, spread over a tile
	pattern                     // one row, again and again, which fits into a tile
	gathered                    // anything else
)

// shortestRow is how many elements a row has at least that is worth loops of its own.
const shortestRow = 512

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// open prepares runs of p. A run is over at most n elements, or more if the operands are contiguous. It
// panics if an operand reaches outside of its buffer.
func (s *scratch) open(p *program, c *device.Command, n int) error {
	s.program, s.command, s.chunk, s.isOutSlotOut = p, c, p.tile, false
	pointer(c, 0, p.sizes[0], c.N)
	s.grow(p.slots, len(p.steps))
	isPlain := len(p.steps) == 1 && len(p.scalars) == 0
	for i := 1; i <= p.inputs; i++ {
		x := &s.sources[i]
		strides := c.Strides(i)
		if strides != nil && !makeView(&x.view, c.Args.Shape, strides) {
			return errRank(c.Args.Shape)
		}
		if strides == nil || x.view.isContiguous() {
			x.kind, x.base = inOrder, pointer(c, i, p.sizes[i], c.N)
			continue
		}
		s.choose(i)
		isPlain = isPlain && x.kind <= rowScalar
	}
	if isPlain {
		s.chunk = long
	}
	for i := range p.scalars {
		v := &p.scalars[i]
		vec.Fill(s.at[v.slot], v.size, v.value(c), n)
	}
	for i := range p.steps {
		s.calls[i] = s.callOf(&p.steps[i])
	}
	for i := 1; i <= p.inputs; i++ {
		if x := &s.sources[i]; x.kind == spread {
			gatherBits(s.at[i], n, p.sizes[i], c, i, &x.view, 0)
		}
	}
	return nil
}

// grow makes room for the given numbers of slots and steps, and points each slot to its own tile.
func (s *scratch) grow(slots, steps int) {
	if len(s.at) < slots {
		s.memory = make([]uint64, slots*tile)
		s.at = make([]unsafe.Pointer, slots)
	}
	if len(s.calls) < steps {
		s.calls = make([]call, steps)
	}
	for i := 1; i < slots; i++ {
		s.at[i] = unsafe.Pointer(&s.memory[i*tile])
	}
}

// choose says how the elements of input i are found, which are not in order.
func (s *scratch) choose(i int) {
	x, c := &s.sources[i], s.command
	v := &x.view
	b, off := c.Operand(i)
	if least, most := v.reach(); c.N > 0 && (off+least < 0 || int64(off+most+1)*int64(s.program.sizes[i]) > b.Bytes) {
		outside(c, i, c.N)
	}
	inner := v.rank - 1
	x.length = 0
	if inner >= 0 {
		x.length = v.dims[inner]
	}
	isShort := c.N <= shortestRow/8 // so that it does not pay to think about it
	switch {
	case v.isScalar() && isShort:
		x.kind = spread
	case isShort:
		x.kind = gathered
	case v.isScalar() && s.program.takesSingle(i, &s.sources):
		x.kind = asScalar
	case v.isScalar():
		x.kind = spread
	case x.length >= shortestRow && v.strides[inner] == 1:
		x.kind = inRows
	case x.length >= shortestRow && v.strides[inner] == 0 && s.program.takesSingle(i, &s.sources):
		x.kind = rowScalar
	case inner == 1 && v.strides[0] == 0 && s.chunk%x.length <= s.chunk/4:
		x.kind, x.phase = pattern, -1
		s.chunk -= s.chunk % x.length
	default:
		x.kind = gathered
	}
}

// takesSingle reports whether every step that reads input i has a loop that takes it as a scalar. A loop takes one
// scalar, once: the step must not read i twice, nor an input before i that is a scalar according to sources.
func (p *program) takesSingle(i int, sources *[maxOperands]source) bool {
	for k := range p.steps {
		st := &p.steps[k]
		found := false
		for j, slot := range st.in {
			switch {
			case slot == i && (found || st.hasScalar || st.forms[j+1].loop == nil):
				return false
			case slot == i:
				found = true
			}
		}
		if !found {
			continue
		}
		for _, slot := range st.in {
			if 0 < slot && slot < i && (sources[slot].kind == asScalar || sources[slot].kind == rowScalar) {
				return false
			}
		}
	}
	return true
}

// callOf is a step of the command.
func (s *scratch) callOf(st *step) call {
	if st.hasScalar {
		return call{form: st.forms[0], bits: st.scalar.value(s.command)}
	}
	for j, slot := range st.in {
		if 0 < slot && slot <= s.program.inputs {
			switch x := &s.sources[slot]; x.kind {
			case asScalar:
				return call{form: st.forms[j+1], bits: s.element(slot, 0)}
			case rowScalar:
				return call{form: st.forms[j+1], from: slot}
			}
		}
	}
	return call{form: st.forms[0]}
}

// element is one of input i.
func (s *scratch) element(i, at int) uint64 {
	b, off := s.command.Operand(i)
	return loadBits(unsafe.Add(b.Ptr, (off+at)*s.program.sizes[i]), s.program.sizes[i])
}

func loadBits(p unsafe.Pointer, size int) uint64 {
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

// most is how many elements from start on, before end, compute can do at once.
func (s *scratch) most(start, end int) int {
	n := min(s.chunk, end-start)
	for i := 1; i <= s.program.inputs; i++ {
		if x := &s.sources[i]; x.kind == inRows || x.kind == rowScalar {
			n = min(n, x.length-start%x.length)
		}
	}
	return n
}

// compute computes the n elements from start on to dst, by loops that write past the caches if past is set.
func (s *scratch) compute(dst unsafe.Pointer, start, n int, past bool) {
	p, c := s.program, s.command
	s.at[0] = dst
	if s.isOutSlotOut {
		s.at[outSlot] = dst
	}
	for i := 1; i <= p.inputs; i++ {
		switch x := &s.sources[i]; x.kind {
		case inOrder:
			s.at[i] = unsafe.Add(x.base, start*p.sizes[i])
		case inRows:
			b, off := c.Operand(i)
			s.at[i] = unsafe.Add(b.Ptr, (off+x.view.offset(start))*p.sizes[i])
		case rowScalar:
			bits := s.element(i, x.view.offset(start))
			for k := range p.steps {
				if s.calls[k].from == i {
					s.calls[k].bits = bits
				}
			}
		case pattern:
			if phase := start % x.length; x.phase != phase {
				x.phase = phase
				s.repeatRow(i, start, min(s.chunk, c.N-start))
			}
		case gathered:
			gatherBits(s.at[i], n, p.sizes[i], c, i, &x.view, start)
		}
	}
	for i := range p.steps {
		st, call := &p.steps[i], &s.calls[i]
		loop := call.loop
		if past && i == len(p.steps)-1 && call.past != nil {
			loop = call.past
		}
		loop(s.at[st.dst], s.at[st.in[0]], s.at[st.in[1]], s.at[st.in[2]], call.bits, n)
	}
}

// repeatRow gathers n elements of input i, which is a pattern, from start on: one row, and that again and again.
func (s *scratch) repeatRow(i, start, n int) {
	x, size := &s.sources[i], s.program.sizes[i]
	done := min(n, x.length)
	gatherBits(s.at[i], done, size, s.command, i, &x.view, start)
	all := slice[byte](s.at[i], n*size)
	for done *= size; done < len(all); {
		done += copy(all[done:], all[:done])
	}
}

// release gives s back without references to the buffers of a command.
func (s *scratch) release() {
	s.program, s.command = nil, nil
	clear(s.at)
	for i := range s.sources {
		s.sources[i].base = nil
	}
	scratches.Put(s)
}

// outside panics as operand i of c reaches outside of its buffer.
func outside(c *device.Command, i, n int) {
	b, off := c.Operand(i)
	panic(fmt.Sprintf("cpu: kernel %s: %d elements from %d of operand %d reach outside of its %d bytes", c.Kernel.Name, n, off, i, b.Bytes))
}
