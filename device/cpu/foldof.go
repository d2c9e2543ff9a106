package cpu

import (
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/device/pool"
)

// Folds of expressions. What the expression makes of a block of elements is folded while it is in
// the innermost cache, and never written to memory.

func newFoldOf(k *device.Kernel, f kernel.FoldOf) (runner, error) {
	p := newProgram(f.Expr, k.In)
	if p == nil || f.Expr.DType() != k.Out || f.By.Prim().Func(k.Out) == nil {
		return nil, unsupported(k)
	}
	hasImms := f.Expr.Imms() > 0
	switch k.Out {
	case device.Float32:
		return (&exprFolder[float32]{newFolder[float32](f.By), p, hasImms}).run, nil
	case device.Float64:
		return (&exprFolder[float64]{newFolder[float64](f.By), p, hasImms}).run, nil
	case device.Int64:
		return (&exprFolder[int64]{newFolder[int64](f.By), p, hasImms}).run, nil
	}
	return (&exprFolder[bool]{newFolder[bool](f.By), p, hasImms}).run, nil
}

// An exprFolder is a compiled kernel.FoldOf.
type exprFolder[T device.Element] struct {
	*folder[T]
	program *program
	hasImms bool
}

// run executes a Reduce command.
func (f *exprFolder[T]) run(c *device.Command) error {
	if c.N <= 0 {
		return nil
	}
	out, n := operand[T](c, 0, c.N), c.Args.Shape[c.Args.Kept:].Size()
	if n == 0 {
		fillSlice(out, f.identity)
		return nil
	}
	e := exprFold[T]{exprFolder: f, n: n, blocks: blocksOf(n)}
	if !e.place(c) {
		if err := e.prepare(c); err != nil {
			return err
		}
	}
	if e.blocks == 1 {
		e.share(out)
		return nil
	}
	mem := foldScratches.Get().(*foldScratch)
	defer foldScratches.Put(mem)
	if words := c.N * e.blocks; len(mem.results) < words {
		mem.results = make([]uint64, words)
	}
	results := slice[T](start(mem.results), c.N*e.blocks)
	e.share(results)
	for i := range out {
		out[i] = f.tree(results[i*e.blocks:][:e.blocks])
	}
	return nil
}

// An exprFold is one command.
type exprFold[T device.Element] struct {
	*exprFolder[T]
	n, blocks int // how many elements a result is made of, and how many blocks these are
	// where the inputs begin, if all lie in order, and nothing needs a tile of its own or depends on the command
	at      [maxOperands]unsafe.Pointer
	command *device.Command // else: of all elements, as of a Map
}

// place finds the inputs. It reports false if it takes more to read them.
func (e *exprFold[T]) place(c *device.Command) bool {
	p := e.program
	if p.slots > firstSlot || len(p.scalars) > 0 || e.hasImms {
		return false
	}
	for i := 1; i <= p.inputs; i++ {
		if c.Strides(i) != nil {
			return false
		}
		e.at[i] = pointer(c, i, p.sizes[i], c.N*e.n)
	}
	return true
}

// nowhere stands for an output that nobody sees.
var nowhere = &device.Buffer{Bytes: 1 << 62}

// prepare makes the command of all elements, and finds out whether it is right.
func (e *exprFold[T]) prepare(c *device.Command) error {
	all := *c
	all.N, all.Buf[0], all.Off[0] = c.N*e.n, nowhere, 0
	e.command = &all
	s := scratches.Get().(*scratch)
	err := s.open(e.program, e.command, e.program.tile)
	s.release()
	return err
}

// share computes the results of all blocks.
func (e *exprFold[T]) share(results []T) {
	if pool.Worth(len(results), e.grain()) {
		e.split(results)
		return
	}
	e.fold(results, 0)
}

// grain is how many blocks are worth another core.
func (e *exprFold[T]) grain() int { return grainOf((e.program.cost + 1) * min(e.n, kernel.Block)) }

func (e exprFold[T]) split(results []T) {
	pool.Run(len(results), e.grain(), func(lo, hi int) { e.fold(results[lo:hi], lo) })
}

// fold computes the results of the blocks from the given one on.
func (e *exprFold[T]) fold(results []T, from int) {
	mem := foldScratches.Get().(*foldScratch)
	defer foldScratches.Put(mem)
	var s *scratch
	if e.command != nil {
		s = scratches.Get().(*scratch)
		defer s.release()
		s.open(e.program, e.command, e.program.tile) // which is right, as prepare has seen
		s.isOutSlotOut = e.program.slots > outSlot
	}
	block, identity := unsafe.Pointer(&mem.block), kernel.Bits(e.identity)
	rows := max(1, tile/e.n) // whole ones, that are computed at once
	for i := 0; i < len(results); {
		first, m, together := (from+i)*e.n, e.n, 1
		if e.blocks > 1 {
			row, at := (from+i)/e.blocks*e.n, (from+i)%e.blocks*kernel.Block
			first, m = row+at, min(kernel.Block, e.n-at)
		} else {
			together = min(rows, len(results)-i)
		}
		if s == nil {
			e.compute(block, first, m*together)
		} else {
			e.gather(s, block, first, m*together)
		}
		for k := range together {
			results[i+k] = kernel.Value[T](e.block(unsafe.Add(block, k*m*e.program.sizes[0]), m, identity))
		}
		i += together
	}
}

// compute computes the expression for the m elements from the given one on, to a block.
func (e *exprFold[T]) compute(block unsafe.Pointer, first, m int) {
	p := e.program
	at := [firstSlot]unsafe.Pointer{0: block, outSlot: block}
	for i := 1; i <= p.inputs; i++ {
		at[i] = unsafe.Add(e.at[i], first*p.sizes[i])
	}
	for i := range p.steps {
		s := &p.steps[i]
		s.forms[0].loop(at[s.dst], at[s.in[0]], at[s.in[1]], at[s.in[2]], s.scalar.bits, m)
	}
}

// gather is compute for inputs that lie anyhow.
func (e *exprFold[T]) gather(s *scratch, block unsafe.Pointer, first, m int) {
	for at := 0; at < m; {
		part := s.most(first+at, first+m)
		s.compute(unsafe.Add(block, at*e.program.sizes[0]), first+at, part, false)
		at += part
	}
}
