package tensor

import (
	"context"
	"fmt"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// An Unsure is what [VMapSure] panics with if the rows must not be computed at once, or only fewer at a time.
type Unsure struct {
	Why string
	// Rows is how many rows may be tried at once instead; 0 means one row at a time.
	Rows int
}

// Error says why.
//
//asyncgen:api meta
func (u *Unsure) Error() string { return "tensor: VMapSure: " + u.Why }

// sure is what VMapSure demands.
type sure struct {
	bytes  int64 // the most that a tensor for all rows may take, unless there is only one row
	detach bool  // results are not tracked
}

// VMapSure is [VMapRows] for generated code: its result can't be told from that of a loop over the rows. It panics
// with an [*Unsure] before it enqueues an operation
//
//   - on a device that does not promise the same bits (device.Caps.BatchInvariant);
//   - that values of one row could make fail for all rows: one with indices that are not known to be in range, or a
//     division of integers;
//   - on a tracked tensor, because gradients would be added up in another order. If detach is set, because nobody
//     asks for gradients, tracked tensors are used, and nothing is tracked;
//   - whose result takes more than the given number of bytes, if fewer rows would take less.
//
// A failure of the device itself is not covered: it fails all rows.
//
//asyncgen:api call 4 once
//go:noinline
func VMapSure(from, to int, bytes int64, detach bool, f func(row func(*Tensor) *Tensor) *Tensor) *Tensor {
	return vmapRows("VMapSure", from, to, &sure{bytes, detach}, f)
}

// unsure panics with an Unsure. It marks v as spoilt, in case f recovers.
func (v *vmap) unsure(rows int, format string, args ...any) {
	v.spoilt = true
	panic(&Unsure{Why: fmt.Sprintf(format, args...), Rows: rows})
}

// check panics with an Unsure unless s may be done for all rows of v at once. v.sure is set. It returns whether the
// result may be tracked.
func (v *vmap) check(s *op.Batch, tracking bool) bool {
	for _, x := range s.In {
		v.checkOperand(s.Def.Name, x.(*Tensor), tracking)
	}
	if s.Def.Fails && !isSafe(s) {
		v.unsure(0, "%s may fail for one row", s.Def.Name)
	}
	return tracking && !v.sure.detach
}

func (v *vmap) checkOperand(name string, x *Tensor, tracking bool) {
	switch {
	case !x.storage.Device().Caps().BatchInvariant:
		v.unsure(0, "rows computed together might have other bits")
	case x.node != nil && tracking && !v.sure.detach:
		v.unsure(0, "%s is tracked", name)
	}
}

// checkConcat is check for the concatenation of parts, each of which has all rows of v. It replaces tracked parts
// by detached ones.
func (v *vmap) checkConcat(parts []*Tensor) {
	bytes := int64(0)
	for i, x := range parts {
		v.checkOperand("Concat", x, true)
		if x.node != nil {
			parts[i] = x.detached()
			x.letGo()
		}
		bytes += bytesFor(x.size, x.dtype)
	}
	v.fits(bytes)
}

// isSafe reports whether s, which may fail, is known not to fail for any value of its operands. It does not wait
// for them.
func isSafe(s *op.Batch) bool {
	if s.Def.Expr != nil {
		return s.In[len(s.In)-1].DType().IsFloat() // integers can be divided by 0
	}
	if s.Def == op.HostArray {
		return s.Attr.Host == op.FFT || s.Attr.Host == op.InverseFFT // matrices can be singular
	}
	shape := s.In[0].Shape()
	axis := s.Attr.Axis
	switch {
	case s.Def == op.ScatterAdd || s.Def == op.AddAlong:
		shape = s.Attr.Shape
	case s.Has&1 != 0:
		axis++
	}
	return s.In[1].(*Tensor).isBelow(int64(shape[axis]))
}

// isBelow reports whether t's elements, int64, are known to be at least 0 and below n. It does not wait.
func (t *Tensor) isBelow(n int64) bool {
	if t.dead != 0 || !t.storage.Device().Caps().HostMemory || !t.storage.Ready() || t.storage.Err() != nil {
		return false
	}
	below := true
	for _, i := range gather[int64](context.Background(), t) {
		below = below && 0 <= i && i < n
	}
	return below
}

// fits panics with an Unsure if a tensor of the given size, for all rows, is too big for v. The Unsure says how
// many rows fit.
func (v *vmap) fits(bytes int64) {
	if v.sure == nil || bytes <= v.sure.bytes || v.n <= 1 {
		return
	}
	row := max(bytes/int64(v.n), 1)
	v.unsure(int(min(max(v.sure.bytes/row, 1), int64(v.n-1))), "%d bytes for %d rows", bytes, v.n)
}

// bytesOf returns the size of the result of d in bytes, without computing it. A view has 0.
func bytesOf(d *op.Def, a op.Attr, in operands) int64 {
	x := in[0]
	switch {
	case d.Expr != nil:
		shape := x.shape
		dt := x.dtype
		for _, y := range in[1:d.Tensors] {
			shape, _ = op.Broadcast(shape, y.shape)
			dt = y.dtype
		}
		return bytesFor(shape.Size(), d.Elements(dt))
	case d.View != nil:
		if _, ok := d.View(&a, x.view()); ok {
			return 0
		}
		return bytesFor(x.size, x.dtype)
	case d == op.To || d == op.Put:
		return bytesFor(x.size, x.dtype)
	case d == op.Scatter:
		return bytesFor(x.size/max(x.shape[a.Axis], 1)*a.To, x.dtype)
	}
	p := op.Plan{Attr: a}
	for i, y := range in {
		if y != nil {
			p.In[i], p.Types[i] = y.view(), y.dtype
		}
	}
	d.Run(&p)
	return bytesFor(p.Shape.Size(), p.DType)
}

func bytesFor(elements int, dt device.DType) int64 { return int64(elements) * int64(dt.Size()) }
