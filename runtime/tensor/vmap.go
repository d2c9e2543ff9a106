package tensor

import (
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// VMap applies f to each row of xs and stacks the results along axis 0, but calls f only once: with one tensor for
// each of xs, which stands for any row of it and has the shape of a row. So each operation is done once for all
// rows. The result has the bits of
//
//	tensor.Stack(0, f(xs[0].Row(0), ...), f(xs[0].Row(1), ...), ...)
//
// on devices that promise it (device.Caps.BatchInvariant). If xs have no rows, neither has the result.
//
//	best := tensor.VMap(func(x ...*tensor.Tensor) *tensor.Tensor {
//		return x[0].Sub(mean).Softmax(0).ArgMax()
//	}, logits)
//
// Other tensors that f uses are the same for all rows, and so are the random numbers that f draws. Calls of VMap
// may be nested. A row has no value: to read it, or to differentiate within f, panics with a [*Mistake]. The result
// of VMap can be differentiated. If a value of one row makes an operation fail, such as an index out of range, the
// operation fails for all rows. Rows can't be used after f has returned.
//
// VMap panics if there are no xs, if one of them has no axes, or if they differ in their numbers of rows. To map
// over another axis than the first, move that axis to the front with Transpose.
//
//asyncgen:api call 0 once
//go:noinline
func VMap(f func(rows ...*Tensor) *Tensor, xs ...*Tensor) *Tensor {
	return VMapAll(func(rows ...*Tensor) []*Tensor { return []*Tensor{f(rows...)} }, xs...)[0]
}

// VMapAll is [VMap] for an f with several results.
//
//asyncgen:api call 0 once
//go:noinline
func VMapAll(f func(rows ...*Tensor) []*Tensor, xs ...*Tensor) []*Tensor {
	if len(xs) == 0 {
		wrong("VMap", op.MistakeNothing)
	}
	for _, x := range xs {
		if x == nil {
			wrong("VMap", op.MistakeNil)
		}
		if len(x.shape) == 0 {
			wrong("VMap", op.MistakeRank, x)
		}
		if x.shape[0] != xs[0].shape[0] {
			wrong("VMap", op.MistakeBroadcast+": numbers of rows differ", xs[0], x)
		}
	}
	v := newVMap(xs[0].shape[0])
	defer v.end()
	rows := make([]*Tensor, len(xs))
	for i, x := range xs {
		rows[i] = v.row(x.same("VMap"))
	}
	results := slices.Clone(f(rows...))
	for i, r := range results {
		if r == nil {
			wrong("VMap", op.MistakeNil)
		}
		results[i] = v.whole(r)
	}
	return results
}

// A vmap is one call of VMap.
type vmap struct {
	n      int      // how many rows
	number uint64   // inner calls have higher numbers than those around them
	ids    []uint32 // of its rows, in rows.list
	sure   *sure    // what VMapSure demands; nil for others
	spoilt bool     // a row was misused, which panicked; the result is not valid even if f recovered
}

// rowBit is set in Tensor.dead if the handle is a row of a VMap. The other bits are its number in rows.list. Every
// use of a handle looks at dead anyway, so rows cost other handles nothing.
const rowBit = 1 << 31

// rows lists the rows of all VMaps that run. A row's handle has a shape and an element type of its own. It shares
// the storage of the tensor with all rows, but only to know its device.
var rows struct {
	mu    sync.Mutex // guards the rest
	list  map[uint32]rowOf
	last  uint32
	calls uint64
}

type rowOf struct {
	v    *vmap
	full *Tensor // the tensor with all rows; a handle of the list's own
}

func newVMap(n int) *vmap {
	rows.mu.Lock()
	defer rows.mu.Unlock()
	rows.calls++
	return &vmap{n: n, number: rows.calls}
}

// row returns a handle that stands for any row of full. It takes over full.
func (v *vmap) row(full *Tensor) *Tensor {
	rows.mu.Lock()
	defer rows.mu.Unlock()
	if rows.list == nil {
		rows.list = map[uint32]rowOf{}
	}
	for {
		rows.last = (rows.last + 1) % rowBit
		if _, taken := rows.list[rows.last]; !taken {
			break
		}
	}
	rows.list[rows.last] = rowOf{v, full}
	v.ids = append(v.ids, rows.last)
	shape := slices.Clone(full.shape[1:])
	return &Tensor{storage: full.storage, shape: shape, size: shape.Size(), dtype: full.dtype, dead: rowBit | rows.last}
}

// end drops all rows of v.
func (v *vmap) end() {
	rows.mu.Lock()
	var held []*Tensor
	for _, id := range v.ids {
		if r, ok := rows.list[id]; ok && r.v == v { // otherwise it was dropped before
			held = append(held, r.full)
			delete(rows.list, id)
		}
	}
	rows.mu.Unlock()
	letGo(held...)
}

// find returns what t is a row of. It returns false if t is not a row, or if its VMap has ended.
func (t *Tensor) find() (rowOf, bool) {
	if t.dead&rowBit == 0 {
		return rowOf{}, false
	}
	rows.mu.Lock()
	defer rows.mu.Unlock()
	r, ok := rows.list[t.dead&^rowBit]
	return r, ok
}

// drop removes t, a row, from the list, and lets go of the tensor that it is a row of.
func (t *Tensor) drop() {
	rows.mu.Lock()
	r, ok := rows.list[t.dead&^rowBit]
	delete(rows.list, t.dead&^rowBit)
	rows.mu.Unlock()
	if ok {
		r.full.letGo()
	}
}

// whole returns a tensor with the values of t for all rows of v. That is the tensor that t is a row of,
// or t repeated if it is the same for all rows.
func (v *vmap) whole(t *Tensor) *Tensor {
	if r, ok := t.find(); ok && r.v == v {
		return r.full.same("VMap")
	}
	return structural(op.BroadcastTo, op.Attr{Shape: append(device.Shape{v.n}, t.shape...)}, operands{t}, true)
}

// isRow reports whether t is a row of a VMap that runs. It panics, naming the operation, if t is dead or if its
// VMap has ended.
func (t *Tensor) isRow(name string) bool { return t.dead != 0 && t.isLiveRow(name) }

func (t *Tensor) isLiveRow(name string) bool {
	if _, ok := t.find(); !ok {
		t.resurrected(name)
	}
	return true
}

// same returns another handle of t, which may be a row. It panics, naming the operation, if t is dead or if its
// VMap has ended.
func (t *Tensor) same(name string) *Tensor {
	if r, ok := t.find(); ok {
		return r.v.row(r.full.same(name))
	}
	t.mustLive(name)
	return t.another()
}

// noRow panics because t, a row or once a row, can't be used in the named operation.
func (t *Tensor) noRow(name string) {
	if r, ok := t.find(); ok {
		r.v.spoilt = true
		wrong(name, op.MistakeRow, t)
	}
	wrong(name, op.MistakeRowEnded, t)
}

// innermost returns the innermost VMap that one of in is a row of, or nil.
func innermost(in []*Tensor) (inner *vmap) {
	for _, x := range in {
		if r, ok := x.find(); ok && (inner == nil || r.v.number > inner.number) {
			inner = r.v
		}
	}
	return inner
}

// batched enqueues d once for all rows of the innermost VMap. At least one operand is a row.
func batched(d *op.Def, a op.Attr, in []*Tensor, tracking bool) *Tensor {
	v := innermost(in)
	s := &op.Batch{Def: d, Attr: a, N: v.n}
	for i, x := range in {
		if r, ok := x.find(); ok && r.v == v {
			x = r.full
			s.Has |= 1 << i
		}
		s.In = append(s.In, x)
	}
	if d.Expr == nil && d.Batch == nil {
		wrong(d.Name, op.MistakeRow, in...)
	}
	if v.sure != nil {
		tracking = v.check(s, tracking)
	}
	b := &batchBuilder{tracking: tracking, of: v}
	full := op.Batched(b, s).(*Tensor)
	for _, t := range b.made {
		if t != full {
			t.letGo()
		}
	}
	return v.row(full)
}

// batchBuilder enqueues what batching rules ask for. Operands may be rows of outer VMaps.
type batchBuilder struct {
	tracking bool
	of       *vmap // whose rows are computed
	made     []*Tensor
}

func (b *batchBuilder) Elementwise(d *op.Def, scalars [2]float64, x ...op.Value) op.Value {
	b.fits(d, op.Attr{}, x)
	return b.note(elementwise(d, scalars, tensors(x), b.tracking))
}

func (b *batchBuilder) Structural(d *op.Def, a op.Attr, x ...op.Value) op.Value {
	b.fits(d, a, x)
	return b.note(structural(d, a, tensors(x), b.tracking))
}

// fits panics with an Unsure if the result of d is too big for VMapSure.
func (b *batchBuilder) fits(d *op.Def, a op.Attr, x []op.Value) {
	if b.of.sure != nil {
		b.of.fits(bytesOf(d, a, tensors(x)))
	}
}

func (b *batchBuilder) Zeros(x op.Value) op.Value { return b.note(zerosLike(x.(*Tensor))) }

func (b *batchBuilder) note(t *Tensor) *Tensor {
	b.made = append(b.made, t)
	return t
}

// concatRows concatenates ts for all rows of the innermost VMap at once. At least one of ts is a row.
func concatRows(name string, axis int, ts []*Tensor) *Tensor {
	v := innermost(ts)
	full := make([]*Tensor, len(ts))
	for i, t := range ts {
		full[i] = v.whole(t)
	}
	defer letGo(full...)
	if v.sure != nil {
		v.checkConcat(full)
	}
	return v.row(concat(name, axis+1, full))
}
