package tensor

import (
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// VMap returns what f gives for the rows of xs, stacked along axis 0, with each
// operation done once for all rows: f is called once, with tensors that stand
// for any one row of each of xs, and sees their shapes. The result has the bits
// of
//
//	tensor.Stack(0, f(xs[0].Row(0), ...), f(xs[0].Row(1), ...), ...)
//
// on devices that promise it (device.Caps.BatchInvariant), and xs without rows give a result without rows.
//
//	best := tensor.VMap(func(x ...*tensor.Tensor) *tensor.Tensor {
//		return x[0].Sub(mean).Softmax(0).ArgMax()
//	}, logits)
//
// Other tensors that f uses are the same for all rows, and so is what it draws
// at random. VMap calls may be nested. A row has no value: reading it, and
// differentiating within f, panics with a [*Mistake]; the result can be
// differentiated. If a value of one row makes an operation fail, such as an index
// out of range, it fails for all. Rows can't be used after f has returned.
//
// VMap panics if xs have no axes or not the same number of rows, or if there are none. For
// other axes than the first there are Transpose and [Concat].
//
//asyncgen:api call 0 once
//go:noinline
func VMap(f func(rows ...*Tensor) *Tensor, xs ...*Tensor) *Tensor {
	return VMapAll(func(rows ...*Tensor) []*Tensor { return []*Tensor{f(rows...)} }, xs...)[0]
}

// VMapAll is [VMap] of an f with several results.
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
	n      int    // how many rows
	number uint64 // an inner call has a higher one than those around it
	ids    []uint32
	sure   *sure // nil: of a VMap that anything may be done in
	spoilt bool  // a row was used as a row can't be: f may have recovered from that, but not the result
}

// rowBit is the bit of Tensor.dead that the row of a VMap has; the others are
// its number in the list of rows. All that uses a handle looks there anyway.
const rowBit = 1 << 31

// rows is what the handles of rows stand for. They have a shape and an element
// type of their own, and the storage of the tensor that they are rows of, for its device.
var rows struct {
	mu    sync.Mutex // guards the rest
	list  map[uint32]rowOf
	last  uint32
	calls uint64
}

type rowOf struct {
	v    *vmap
	full *Tensor // a handle of the list's own
}

func newVMap(n int) *vmap {
	rows.mu.Lock()
	defer rows.mu.Unlock()
	rows.calls++
	return &vmap{n: n, number: rows.calls}
}

// row returns the handle of any row of full, which it takes over.
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

// end lets go of all rows.
func (v *vmap) end() {
	rows.mu.Lock()
	var held []*Tensor
	for _, id := range v.ids {
		if r, ok := rows.list[id]; ok && r.v == v { // else it was dropped
			held = append(held, r.full)
			delete(rows.list, id)
		}
	}
	rows.mu.Unlock()
	letGo(held...)
}

// find returns what t is a row of. It fails if t is no row, or not any more.
func (t *Tensor) find() (rowOf, bool) {
	if t.dead&rowBit == 0 {
		return rowOf{}, false
	}
	rows.mu.Lock()
	defer rows.mu.Unlock()
	r, ok := rows.list[t.dead&^rowBit]
	return r, ok
}

// drop releases the tensor of which t, a row, is a part.
func (t *Tensor) drop() {
	rows.mu.Lock()
	r, ok := rows.list[t.dead&^rowBit]
	delete(rows.list, t.dead&^rowBit)
	rows.mu.Unlock()
	if ok {
		r.full.letGo()
	}
}

// whole returns a handle of the tensor of which t is a row in v. If t is the same for all rows, it is t, repeated.
func (v *vmap) whole(t *Tensor) *Tensor {
	if r, ok := t.find(); ok && r.v == v {
		return r.full.same("VMap")
	}
	return structural(op.BroadcastTo, op.Attr{Shape: append(device.Shape{v.n}, t.shape...)}, operands{t}, true)
}

// isRow reports whether t is the row of a VMap. It panics if t must not be used in name.
func (t *Tensor) isRow(name string) bool { return t.dead != 0 && t.isLiveRow(name) }

func (t *Tensor) isLiveRow(name string) bool {
	if _, ok := t.find(); !ok {
		t.resurrected(name)
	}
	return true
}

// same returns one more handle of t, or of the row that t is, for use in the operation name.
func (t *Tensor) same(name string) *Tensor {
	if r, ok := t.find(); ok {
		return r.v.row(r.full.same(name))
	}
	t.mustLive(name)
	return t.another()
}

// noRow is the mistake of using a row, or one of a VMap that has ended, in name.
func (t *Tensor) noRow(name string) {
	if r, ok := t.find(); ok {
		r.v.spoilt = true
		wrong(name, op.MistakeRow, t)
	}
	wrong(name, op.MistakeRowEnded, t)
}

// innermost returns the VMap in which an operation on in is done, if one of them is a row.
func innermost(in []*Tensor) (inner *vmap) {
	for _, x := range in {
		if r, ok := x.find(); ok && (inner == nil || r.v.number > inner.number) {
			inner = r.v
		}
	}
	return inner
}

// batched does d for all rows, if one of the operands is a row.
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

// batchBuilder carries out batching rules. Operands may be rows of a VMap further out.
type batchBuilder struct {
	tracking bool
	of       *vmap
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

// fits panics if the result of d is too big for a VMap that wants to be sure.
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

// concatRows is concat of ts, one of which is a row: for all rows at once.
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
