package tensor

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/internal/engine"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// A lazy operation makes a result that waits: it has a shape and a type, but the operation is not enqueued. What it has
// to compute is known from its operands, which it holds. When somebody needs the elements, one command computes the
// operation together with those of its operands that wait, too:
//
//	h := x.Lazy().MulScalar(2)  h waits for MulScalar of x
//	y := h.Add(b).Tanh()        y waits for Tanh of the sum, which waits for Add of h and b
//	y.Eager()                   enqueues MulScalar+Add+Tanh, of x and b
//
// Nothing but this file and the places where operands are taken knows of it. Gradients are recorded for each operation,
// as they always are, and a gradient that needs h gets the tensor that waits: so its operations are lazy as well, and
// compute h once more from x instead of reading it from memory. A function such as exp is dearer than that. So where
// there will be a gradient, its result is enqueued at once, and the chain goes on from there.
//
// A result that waits is computed for good only once, as part of a result that stays a part. It is computed again
// wherever it is needed; the program says by Eager what is needed more than once.

// laziness says how operations treat a handle as an operand.
type laziness uint8

const (
	isEager  laziness = iota
	isLeader          // elementwise operations on it are lazy; its elements are like any
	isWaiter          // the result of a lazy operation; its storage is in a waiterBody
)

// Lazy returns t as the beginning of a chain: elementwise operations on it, and on their results, are put off until
// their elements are needed. Then one command computes them together, so that results in between are never in memory.
//
//	y := x.Lazy().MulScalar(2).Add(b).Tanh().Eager() // one command, with the bits of three
//
// Every operation, read and gradient works on a lazy result as on any other, and has the same bits. Only when a result
// is computed is different, and how often: it is computed anew in each chain that it is part of. Call [Tensor.Eager] on
// the last result of a chain, and on those that more than one chain needs.
//
// An operation joins the chain if it is elementwise, Where or As, if the operands that wait have the shape of its
// result, and if the command has room: 7 operands from memory, 8 constants. Otherwise the operands are computed first.
// A sum of a lazy result over its last axes joins as well.
//
// A command of several operations that fails is named after all of them, and its line is the one that needs the
// elements. It belongs to the scopes of its operands until then, see [device.WithContext].
//
// The gradient of a chain is a chain. It computes once more what it needs of the results, but for those of exp, tanh
// and other functions: where there will be a gradient, these end a part of the chain and stay in memory. So does a
// gradient that several others are made of, if that takes less time.
//
// Lazy does nothing to a tensor of less than 4096 elements: to put an operation off costs more than it saves then. (In
// the engine's mode shuffle, which is for tests, every tensor can be lazy.)
//
//asyncgen:api view
func (t *Tensor) Lazy() *Tensor {
	switch {
	case t == nil || t.dead != 0:
		return t.asIs()
	case t.size < lazyFrom && eng().Mode() != engine.Shuffle:
		return t.another()
	}
	return t.leader()
}

// leader is Lazy for a handle that the library has.
func (t *Tensor) leader() *Tensor {
	u := t.another()
	u.lazy = max(u.lazy, isLeader)
	return u
}

// lazyFrom is from how many elements on Lazy has an effect. Tests make it small.
var lazyFrom = 4096

// Eager returns t without what [Tensor.Lazy] says: operations on the result are enqueued at once. If t waits to be
// computed, Eager enqueues that. It does not wait.
//
//asyncgen:api op
//go:noinline
func (t *Tensor) Eager() *Tensor {
	if t == nil || t.dead != 0 {
		return t.asIs()
	}
	return t.eager()
}

// asIs returns another handle if t is a row, and t if it is nil or dead: the next operation says so.
func (t *Tensor) asIs() *Tensor {
	if t != nil {
		if _, isRow := t.find(); isRow {
			return t.same("Lazy")
		}
	}
	return t
}

// eager is Eager for a handle that the library has.
func (t *Tensor) eager() *Tensor {
	u := t.now().another()
	u.lazy, u.node = isEager, t.node // which elements that are computed apart don't have
	return u
}

// A waiterBody is the body of a result that waits. The storage is the first thing in it, so that handles find the rest.
type waiterBody struct {
	body
	waiter
}

// A waiter is an operation that is put off. lazies.mu guards what changes.
type waiter struct {
	kernel *device.Kernel
	imm    [2]uint64
	imms   int // how many of them there are
	// guess is what the goroutine guessed that made it. If the elements are needed where something else is guessed,
	// they are computed apart, as those that are discarded must not be missing later.
	guess *engine.Guess
	// capture is what the goroutine captured that made it.
	capture *engine.Capture

	state   waiterState
	apart   *Tensor       // the elements, computed apart in the guess apartIn
	apartIn *engine.Guess // nil: they were not
	in      operands      // handles of its own; nil once they are not needed any more
	holders int           // beside the first, as in engine.Storage
}

type waiterState uint8

const (
	isPutOff waiterState = iota
	isBeingEnqueued
	isEnqueued
	isDropped
)

// lazies orders what goroutines do with waiters. It is never held while something is enqueued.
var lazies struct{ mu sync.Mutex }

// waiter returns what t waits for, or nil if it never waited.
func (t *Tensor) waiter() *waiter {
	if t.lazy != isWaiter {
		return nil
	}
	return &(*waiterBody)(unsafe.Pointer(t.storage)).waiter
}

// putOff returns a result of the given shape and type that waits for k, with so many constants, of the operands in.
func putOff(k *device.Kernel, imm [2]uint64, imms int, in []*Tensor, dev device.Device, dt DType, shape device.Shape) *Tensor {
	b := &waiterBody{}
	t := &Tensor{size: shape.Size(), dtype: dt, lazy: isWaiter, storage: &b.own}
	if len(shape) <= inlineRank {
		t.shape = b.dims[:copy(b.dims[:], shape):len(shape)]
	} else {
		t.shape = slices.Clone(shape)
	}
	b.own.Init(eng(), dev, bytesFor(t.size, dt))
	b.kernel, b.imm, b.imms, b.guess, b.capture = k, imm, imms, eng().Guessing(), eng().Capturing()
	for i, x := range in {
		if x.lazy == isWaiter && !slices.Equal(x.shape, shape) {
			x = x.now() // to compute it for each element that it is broadcast to would be a waste
		}
		b.in[i] = x.another()
	}
	// Make room: the operand that more is put together for is computed first.
	for {
		lazies.mu.Lock()
		var c chain
		fits := c.add(&b.waiter) >= 0
		lazies.mu.Unlock()
		if fits {
			return t
		}
		most, length := 0, 0
		for i, x := range b.in {
			if n := x.chainLength(); n > length {
				most, length = i, n
			}
		}
		x := b.in[most]
		b.in[most] = x.stored()
		x.letGo()
	}
}

// stored returns another handle of t, which waits: of elements that a chain finds in memory.
func (t *Tensor) stored() *Tensor {
	y := t.now().another()
	y.lazy = min(y.lazy, isLeader)
	return y
}

// chainLength returns how many operations are put off for t: 0 if its elements are enqueued, and more than a command
// has room for if it must be computed in parts, as something that it waited for is enqueued now.
func (t *Tensor) chainLength() int {
	if t == nil || t.waiter() == nil {
		return 0
	}
	lazies.mu.Lock()
	defer lazies.mu.Unlock()
	var c chain
	switch w := t.waiter(); {
	case !w.isWaiting():
		return 0
	case c.add(w) < 0:
		return op.MaxChain + 1
	}
	return c.n
}

// isWorthStoring reports whether t waits, and so many results need it, each in a command of its own, that it had
// better be computed once before. In units of an operation on elements in the innermost cache, to read an element takes
// 2, and to store one for a later command and read it there takes 3 for each command. That was measured with gradients
// by two operands, of 131072 float32 in the last cache (one core, Zen 4).
func (t *Tensor) isWorthStoring(uses int) bool {
	w := t.waiter()
	if w == nil || uses < 2 {
		return false
	}
	lazies.mu.Lock()
	defer lazies.mu.Unlock()
	var c chain
	if !w.isWaiting() || c.add(w) < 0 {
		return false
	}
	cost := c.n
	for _, x := range c.in[:c.inputs] {
		if x.size == t.size { // else it is broadcast, and in a cache
			cost += 2
		}
	}
	return (uses-1)*cost > 3*uses
}

func (w *waiter) isWaiting() bool { return w.state == isPutOff || w.state == isBeingEnqueued }

// A chain is waiters that one command computes.
type chain struct {
	op.Chain
	waiters [op.MaxChain]*waiter
	n       int
	in      [device.MaxInputs]*Tensor // from memory
	inputs  int
	imm     [device.MaxImms]uint64
	imms    int
	capture *engine.Capture // what the goroutine captures now
	isAlien bool            // one of the waiters was made outside of that
}

// add adds w and what it waits for. It returns the number of its link, or -1 if a command has no room for all that.
// lazies.mu is held.
func (c *chain) add(w *waiter) int8 {
	if at := slices.Index(c.waiters[:c.n], w); at >= 0 {
		return int8(at)
	}
	var l op.Link
	for i, x := range w.in {
		if x == nil {
			break
		}
		if of := x.waiter(); of != nil && of.isWaiting() {
			if l.In[i] = c.add(of); l.In[i] < 0 {
				return -1
			}
			continue
		}
		at := c.input(x)
		if at < 0 {
			return -1
		}
		l.In[i] = ^int8(at)
	}
	if c.n == op.MaxChain || c.imms+w.imms > len(c.imm) {
		return -1
	}
	l.Imm = uint8(c.imms)
	c.imms += copy(c.imm[c.imms:], w.imm[:w.imms])
	c.isAlien = c.isAlien || c.capture != nil && c.capture != w.capture
	c.waiters[c.n] = w
	c.n++
	return c.Add(w.kernel, l)
}

// input returns the number of x among the operands from memory, or -1 if there is no room for another.
func (c *chain) input(x *Tensor) int {
	for i, y := range c.in[:c.inputs] {
		if x.storage == y.storage && x.off == y.off && slices.Equal(x.shape, y.shape) && slices.Equal(x.strides, y.strides) {
			return i
		}
	}
	if c.inputs == len(c.in) {
		return -1
	}
	c.in[c.inputs] = x
	c.inputs++
	return c.inputs - 1
}

// now returns a handle whose elements are enqueued: t, or another one with the same elements if t waits and can't be
// computed for good here.
func (t *Tensor) now() *Tensor {
	if t.lazy != isWaiter {
		return t
	}
	return t.enqueued(t.waiter())
}

// enqueued is now for a t that waits for w.
//
//go:noinline
func (t *Tensor) enqueued(w *waiter) *Tensor {
	k, c, forGood, apart := w.take(false)
	defer letGo(c.in[:c.inputs]...)
	switch {
	case apart != nil:
		return apart
	case k == nil:
		return t
	case !forGood:
		out := newResult(t.storage.Device(), t.dtype, t.shape, false)
		out.enqueue(k, c)
		if guess := eng().Guessing(); guess != nil {
			lazies.mu.Lock()
			w.apart, w.apartIn = out, guess
			lazies.mu.Unlock()
		}
		return out
	}
	state := isPutOff // if the engine panics
	defer func() {
		lazies.mu.Lock()
		var in operands
		if w.state = state; state == isEnqueued {
			in, w.in = w.in, operands{}
			w.apart, w.apartIn = nil, nil
		}
		lazies.mu.Unlock()
		letGo(in[:]...)
	}()
	t.enqueue(k, c)
	state = isEnqueued
	return t
}

// take returns the chain of w and its kernel; a nil kernel says that w is enqueued, or that apart has its elements.
// The caller has to let go of c.in. forGood says that the caller must enqueue the chain as the result of w. It is not
// set if the elements are only a part, if w is being enqueued, or if another guess than that of w began meanwhile.
func (w *waiter) take(asPart bool) (k *device.Kernel, c *chain, forGood bool, apart *Tensor) {
	guess, capture := eng().Guessing(), eng().Capturing()
	lazies.mu.Lock()
	defer lazies.mu.Unlock()
	c = &chain{capture: capture}
	switch {
	case w.state == isEnqueued:
		return nil, c, false, nil
	case w.state == isDropped:
		panic("tensor: a result that nobody held is needed")
	case guess != nil && guess == w.apartIn && !asPart:
		return nil, c, false, w.apart
	}
	if c.add(w) >= 0 {
		k = c.Kernel()
	}
	if c.isAlien || capture != nil && capture != w.capture {
		capture.RefuseTensor()
	}
	if k == nil {
		// A part was enqueued meanwhile, and the rest needs more operands than before.
		k, c = w.kernel, &chain{n: 1, inputs: len(w.kernel.In), imms: w.imms}
		copy(c.in[:], w.in[:])
		copy(c.imm[:], w.imm[:])
	}
	for i, x := range c.in[:c.inputs] {
		x.holdLocked()
		c.in[i] = x.copied()
	}
	if c.n == 1 {
		lazies.mu.Unlock()
		for i, x := range c.in[:c.inputs] {
			if y := x.now(); y != x { // computed apart
				c.in[i] = y.another()
				x.letGo()
			}
		}
		lazies.mu.Lock()
		if w.state == isEnqueued { // by somebody else
			return nil, c, false, nil
		}
	}
	if !asPart && w.state == isPutOff && (guess == nil || guess == w.guess) {
		// From here on, others who need the elements compute them apart. They can't wait for the caller: one of them
		// may be a function that the engine calls, in the middle of Enqueue, to make room.
		w.state = isBeingEnqueued
		forGood = true
	}
	return k, c, forGood, nil
}

// sumLazily is the sum of t over axes together with what t waits for. It returns nil if that can't be one command.
func (t *Tensor) sumLazily(a op.Attr, tracked bool) *Tensor {
	w := t.waiter()
	if w == nil || !op.Numbers.Has(t.dtype) || t.dtype.IsStorage() || !areLast(t.shape, a.Axes) {
		return nil
	}
	k, c, _, _ := w.take(true)
	defer letGo(c.in[:c.inputs]...)
	if k == nil || c.inputs >= device.MaxOperands && len(t.shape) > device.MaxWideAxes {
		return nil
	}
	var shape device.Shape
	for axis, n := range t.shape {
		switch {
		case !slices.Contains(a.Axes, axis):
			shape = append(shape, n)
		case a.Keep:
			shape = append(shape, 1)
		}
	}
	kept := len(t.shape)
	for kept > 0 && (t.shape[kept-1] == 1 || slices.Contains(a.Axes, kept-1)) {
		kept--
	}
	out := newResult(t.storage.Device(), t.dtype, shape, tracked)
	o := c.command(op.SumOfChain(k), out, t.shape)
	o.Cmd.Args.Kept = kept
	eng().Enqueue(&o)
	return out
}

// enqueue enqueues the command of c, whose kernel is k, with the result t.
func (t *Tensor) enqueue(k *device.Kernel, c *chain) {
	o := c.command(k, t, t.shape)
	eng().Enqueue(&o)
}

// command returns the request for the command of c, whose kernel is k, over elements of the given shape.
func (c *chain) command(k *device.Kernel, out *Tensor, shape device.Shape) engine.Op {
	o := engine.Op{Cost: int64(shape.Size()) * int64(c.n)}
	args := &device.Args{Shape: shape}
	o.Cmd.Kernel, o.Cmd.N, o.Cmd.Args = k, out.size, args
	if n := copy(o.Cmd.Imm[:], c.imm[:c.imms]); n < c.imms {
		args.Imm = slices.Clone(c.imm[n:c.imms])
	}
	o.Operands[0], o.Shapes[0] = out.storage, &out.shape
	isPlain := k.Code == device.Map && args.Imm == nil && c.inputs < device.MaxOperands
	for i, x := range c.in[:c.inputs] {
		var strides []int
		if x.strides != nil || !slices.Equal(shape, x.shape) {
			strides, isPlain = x.view().BroadcastStrides(shape), false
		}
		if i++; i < device.MaxOperands {
			o.Operands[i], o.Shapes[i], o.Cmd.Off[i], args.Strides[i] = x.storage, &x.shape, x.off, strides
			continue
		}
		o.Reads = append(o.Reads, x.storage)
		args.Parts = append(args.Parts, device.Part{Off: x.off, Strides: strides})
	}
	if isPlain {
		o.Cmd.Args = nil
	}
	return o
}

// hold counts another holder of t's elements.
func (t *Tensor) hold() {
	if t.lazy == isWaiter {
		lazies.mu.Lock()
		defer lazies.mu.Unlock()
	}
	t.holdLocked()
}

// holdLocked is hold. If t is a waiter, lazies.mu is held.
func (t *Tensor) holdLocked() {
	if w := t.waiter(); w != nil {
		w.holders++
	}
	t.storage.Hold()
}

// unhold says that a holder of t's elements will not use them any more. It reports whether that took effect at once,
// see engine.Storage.LetGo. A result that waits and that nobody holds lets go of its operands.
func (t *Tensor) unhold() bool {
	w := t.waiter()
	if w == nil || eng().Guessing() != nil {
		return t.storage.LetGo()
	}
	lazies.mu.Lock()
	w.holders--
	var in operands
	if w.holders < 0 && w.state == isPutOff {
		w.state = isDropped
		in, w.in = w.in, operands{}
	}
	dropped := w.state == isDropped
	lazies.mu.Unlock()
	if dropped {
		letGo(in[:]...)
		return true
	}
	return t.storage.LetGo()
}
