package tensor

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/op"
)

// AttentionOptions say how [Attention] weighs the values. The zero value is plain scaled dot-product attention.
type AttentionOptions struct {
	// Causal hides later keys: of T queries and S keys, query i looks at the keys 0 to S-T+i. So the last query looks
	// at all keys, also if the first keys come from a cache. T must not exceed S.
	Causal bool
	// Mask has a shape that can be broadcast to that of the weights, (..., H, T, S). A bool mask is true where a query
	// may look at a key. A mask of numbers, in the type of the queries, is added to the scores. nil hides nothing.
	Mask *Tensor
	// Factors multiplies the weights, after the Softmax: random ones, 0 or 1/(1-p), are a dropout of weights. It is in
	// the type of the queries and has a shape that can be broadcast to that of the weights. nil multiplies by 1.
	Factors *Tensor
	// Scale multiplies the products of queries and keys. 0: 1/sqrt(D).
	Scale float64
}

// Attention returns Softmax(q·kᵀ*scale)·v: each query gets the mean of the values, weighed by how much their keys agree
// with it (Vaswani et al. 2017). q has the shape (..., H, T, D), with T queries for each of H heads, k (..., G, S, D)
// and v (..., G, S, E); the result has the shape (..., H, T, E). All have the same leading axes. If G is less than H,
// each group of H/G heads shares keys and values; H must be a multiple of G. Without heads, the axis H is left out
// everywhere. The element types are floating-point and the same.
//
// The weights of all queries are never in memory at the same time, neither here nor in the gradient: they are computed
// for some queries after the other, and computed again for the gradient (after Dao et al. 2022). Two cases keep them:
// a mask or factors that are tracked, and a [VMap].
//
// The result of a query that a bool mask and Causal leave nothing to look at is 0, also if all that it may look at has
// the score -Inf. Without a bool mask, the result of a query is NaN if all its scores are -Inf: those of a mask of
// numbers that hides everything, where PyTorch has 0.
//
// Attention enqueues the work and does not wait. It panics with a [*Mistake] if shapes, element types or devices do not
// fit.
//
//asyncgen:api op batch
//go:noinline
func Attention(q, k, v *Tensor, how AttentionOptions) *Tensor {
	newAttending(q, k, v, how) // panics if they don't fit
	in := []*Tensor{q, k, v}
	if how.Mask != nil && how.Mask.dtype != Bool {
		in = append(in, how.Mask)
	}
	if how.Factors != nil {
		in = append(in, how.Factors)
	}
	return inWide(in, func(x []*Tensor) *Tensor {
		how := how
		if how.Factors != nil {
			how.Factors = x[len(x)-1]
		}
		if how.Mask != nil && how.Mask.dtype != Bool {
			how.Mask = x[3]
		}
		return newAttending(x[0], x[1], x[2], how).of(x[0], x[1], x[2])
	})
}

// of returns the result.
func (a *attending) of(q, k, v *Tensor) *Tensor {
	inParts := true
	for _, x := range []*Tensor{q, k, v} {
		inParts = inParts && !x.isRow("Attention")
	}
	for _, x := range []*Tensor{a.mask, a.factors} {
		inParts = inParts && (x == nil || x.node == nil && !x.isRow("Attention"))
	}
	if !inParts {
		return a.whole(q, k, v)
	}
	out := structural(attention, op.Attr{Local: a}, operands{q, k, v}, true)
	if out.node == nil {
		a.LetGo()
	}
	return out
}

// LetGo lets go of what the gradient needs beside the operands. The tape calls it when it is not asked for any more.
func (a *attending) LetGo() { letGo(a.mask, a.factors) }

// attention is the operation without what Attr.Local says, an *attending. planned carries it out with forward.
var attention = &op.Def{
	Name: "Attention", Types: op.Floats, Unlisted: true, Saves: 1<<0 | 1<<1 | 1<<2 | op.SavesResult,
}

func init() { // not in the literal, as the gradient uses what uses it
	attention.VJP = func(b op.Builder, c *op.Call, i int, g op.Value) op.Value {
		return c.Attr.Local.(*attending).gradient(b.(*builder), c, i, g.(*Tensor))
	}
}

// attending is one call of Attention. Lead are the axes before T, with G for H; heads is H/G.
type attending struct {
	lead          device.Shape
	heads         int
	t, s, d, e    int
	scale         float64
	isCausal      bool
	mask, factors *Tensor // nil if there is none; from forward on handles of its own, of rank 2 at least
	dtype         DType
	dev           device.Device
	shape         device.Shape // of the result
	rows, columns *Tensor      // the numbers of the last key of each query, and of each key; nil if not causal

	mu      sync.Mutex // guards rows and columns while gradients are built, and the rest
	pending *Tensor    // the gradient of the result that share belongs to
	share   operands   // gradients of operands that were computed with that of another, and not asked for yet
}

// newAttending checks the operands.
func newAttending(q, k, v *Tensor, how AttentionOptions) *attending {
	const name = "Attention"
	for _, x := range []*Tensor{q, k, v} {
		if x == nil {
			wrong(name, op.MistakeNil)
		}
		x.floats(name)
	}
	rank := len(q.shape)
	if rank < 2 || len(k.shape) != rank || len(v.shape) != rank {
		wrong(name, op.MistakeRank+": want (..., H, T, D), (..., G, S, D) and (..., G, S, E)", q, k, v)
	}
	a := &attending{
		lead: k.shape[:rank-2], heads: 1, t: q.shape[rank-2], s: k.shape[rank-2], d: q.shape[rank-1], e: v.shape[rank-1],
		scale: how.Scale, isCausal: how.Causal, mask: how.Mask, factors: how.Factors, dtype: q.dtype,
	}
	if rank > 2 && a.lead[rank-3] > 0 && q.shape[rank-3]%a.lead[rank-3] == 0 {
		a.heads = q.shape[rank-3] / a.lead[rank-3]
	}
	a.shape = slices.Clone(q.shape)
	a.shape[rank-1] = a.e
	fits := a.s == v.shape[rank-2] && a.d == k.shape[rank-1] && slices.Equal(a.lead, v.shape[:rank-2])
	for i, n := range a.lead {
		if i == rank-3 {
			n *= a.heads
		}
		fits = fits && q.shape[i] == n
	}
	switch {
	case !fits:
		wrong(name, op.MistakeBroadcast+": want (..., H, T, D), (..., G, S, D) and (..., G, S, E)", q, k, v)
	case k.dtype != q.dtype || v.dtype != q.dtype:
		wrong(name, op.MistakeDTypes, q, k, v)
	case a.isCausal && a.t > a.s:
		wrong(name, fmt.Sprintf("%s: %d queries for %d keys can't be causal", op.MistakeRange, a.t, a.s), q, k, v)
	case math.IsNaN(a.scale) || math.IsInf(a.scale, 0):
		wrong(name, fmt.Sprintf("the scale is %v", a.scale), q, k, v)
	}
	a.dev = q.storage.Device()
	for _, x := range []*Tensor{k, v, a.mask, a.factors} {
		if x == nil {
			continue
		}
		same := true
		if a.dev, same = device.Join(a.dev, x.storage.Device()); !same {
			wrong(name, op.MistakeDevices, q, x)
		}
	}
	if m := a.mask; m != nil {
		if m.dtype != Bool && m.dtype != a.dtype {
			wrong(name, op.MistakeDTypes+": the mask is bool, or of the type of the queries", q, m)
		}
		a.mustFit(q, m, "mask")
	}
	if f := a.factors; f != nil {
		if f.dtype != a.dtype {
			wrong(name, op.MistakeDTypes+": the factors are of the type of the queries", q, f)
		}
		a.mustFit(q, f, "factors")
	}
	if a.scale == 0 {
		a.scale = 1 / math.Sqrt(float64(max(a.d, 1)))
	}
	return a
}

// mustFit panics unless m, the named operand, can be broadcast to the shape of the weights of q.
func (a *attending) mustFit(q, m *Tensor, name string) {
	m.isRow("Attention")
	weights := append(slices.Clone(a.shape[:len(a.shape)-1]), a.s)
	if both, ok := op.Broadcast(weights, m.shape); !ok || !slices.Equal(both, weights) {
		wrong("Attention", fmt.Sprintf("%s: the %s does not fit weights of shape %v", op.MistakeBroadcast, name, weights), q, m)
	}
}

// withAxes returns m, a mask, factors or nil, with axes for queries and keys. It lets go of m if it returns another.
func withAxes(m *Tensor) *Tensor {
	for m != nil && len(m.shape) < 2 {
		defer m.letGo()
		m = m.unsqueeze("Attention", 0)
	}
	return m
}

// whole computes the result in one piece, from operations that differentiate and batch themselves.
func (a *attending) whole(q, k, v *Tensor) *Tensor {
	var made handles
	defer made.letGo()
	for _, m := range []**Tensor{&a.mask, &a.factors} {
		for *m != nil && len((*m).shape) < 2 {
			*m = made.add((*m).unsqueeze("Attention", 0))
		}
	}
	if a.heads > 1 { // one more axis: (..., G, H/G, T, D)
		grouped := append(slices.Clone(a.lead), a.heads)
		at := len(a.lead)
		q = made.add(q.reshape(append(slices.Clone(grouped), a.t, a.d)))
		k, v = made.add(k.unsqueeze("Attention", at)), made.add(v.unsqueeze("Attention", at))
		a.mask, a.factors = a.split(&made, a.mask), a.split(&made, a.factors)
	}
	a.number(&made)
	weights, seen := a.weights(&made, made.add(q.MulScalar(a.scale)), k, a.mask, 0, a.t)
	if a.factors != nil {
		weights = made.add(weights.Mul(a.factors))
	}
	out := made.add(weights.MatMul(v))
	if seen != nil {
		out = made.add(Where(seen, out, made.add(a.zero())))
	}
	return out.reshape(a.shape)
}

// split returns m, a mask, factors or nil, with an axis for the heads of each group.
func (a *attending) split(made *handles, m *Tensor) *Tensor {
	if m == nil || len(m.shape) == 2 {
		return m
	}
	shape := slices.Clone(m.shape)
	split := []int{1, 1}
	if head := len(shape) - 3; shape[head] > 1 {
		split = []int{shape[head] / a.heads, a.heads}
	}
	return made.add(m.reshape(slices.Replace(shape, len(shape)-3, len(shape)-2, split...)))
}

// lowest is the score of a key that a bool mask hides: the least number, so that nothing becomes NaN.
func lowest(dt DType) float64 {
	if dt == Float64 {
		return -math.MaxFloat64
	}
	return -math.MaxFloat32
}

// hideLater gives later keys the score -Inf, as those of other keys may be any number: a mask of numbers may have the
// least of all.
var hideLater = Fuse("Attention", 3, func(x ...*kernel.Expr) *kernel.Expr {
	score, last, key := x[0], x[1], x[2]
	return kernel.Where(kernel.Le(key, last), score, kernel.Const(math.Inf(-1), score.DType()))
})

// hide gives keys the lowest score where a bool mask is false, and those that have the score -Inf.
var hide = &op.Def{
	Name: "Attention", Tensors: 2, Types: op.FullFloats, Cond: true, Unlisted: true,
	Expr: func(x ...*kernel.Expr) *kernel.Expr {
		least := kernel.Const(lowest(x[1].DType()), x[1].DType())
		return kernel.Where(x[0], kernel.Max(x[1], least), least)
	},
}

// number makes the numbers of keys by which Causal hides scores, if it does.
func (a *attending) number(made *handles) {
	if a.isCausal {
		on := On(a.dev).As(a.dtype)
		a.columns = made.add(on.Arange(0, float64(a.s), 1))
		a.rows = made.add(made.add(on.Arange(float64(a.s-a.t), float64(a.s), 1)).Reshape(a.t, 1))
	}
}

func (a *attending) zero() *Tensor { return filled(0, nil, a.dtype, a.dev) }

// weights returns the weights that the scaled queries q give to the keys k. q has the queries from to
// to-1 of each head, and k the first keys. mask is the part of the mask for them, or nil. seen says
// which queries look at any key; nil: all do.
func (a *attending) weights(made *handles, q, k, mask *Tensor, from, to int) (p, seen *Tensor) {
	order := make([]int, len(k.shape))
	for i := range order {
		order[i] = i
	}
	n := len(order)
	order[n-2], order[n-1] = n-1, n-2
	keys := k.shape[n-2]
	s := made.add(q.MatMul(made.add(k.Transpose(order...))))
	if mask != nil && mask.dtype != Bool {
		s = made.add(s.Add(mask))
	}
	if a.isCausal && from+a.s-a.t+1 < keys { // the first of these queries does not look at all of these keys
		s = made.add(hideLater.Of(s, made.add(a.rows.Slice(0, from, to)), made.add(a.columns.Slice(0, 0, keys))))
	}
	if mask != nil && mask.dtype == Bool {
		s = made.add(elementwise(hide, [2]float64{}, operands{mask, s}, true))
		greatest := made.add(made.add(s.Detach()).MaxKeep(-1))
		seen = made.add(greatest.NeScalar(lowest(a.dtype)))
	}
	return made.add(s.Softmax(-1)), seen
}

// handles are temporaries that are let go together.
type handles []*Tensor

func (h *handles) add(t *Tensor) *Tensor {
	*h = append(*h, t)
	return t
}

func (h *handles) letGo() { letGo(*h...) }

// A slab is the part of the work that is computed at once: some groups, one head of each, and some of its queries.
type slab struct{ group, groups, head, from, to int }

// slabSize is about how many weights are computed at once. On an AMD EPYC (Zen 5), 1<<17 to 1<<19 take the same time
// within 5 %, 1<<15 a fifth more.
var slabSize = 1 << 18

// slabs calls f for each slab. Those of one group, and of one head in it, follow each other, in order.
func (a *attending) slabs(f func(slab)) {
	groups, atOnce := a.lead.Size(), 1
	rows := min(max(slabSize/max(a.s, 1), 32), max(a.t, 1))
	// isSame reports whether m is the same for all groups and heads.
	isSame := func(m *Tensor) bool { return m == nil || m.shape[:len(m.shape)-2].Size() == 1 }
	if isSame(a.mask) && isSame(a.factors) {
		atOnce = max(slabSize/max(rows*a.s, 1), 1)
	}
	for group := 0; group < groups; group += atOnce {
		for head := range a.heads {
			for from := 0; from < a.t; from += rows {
				f(slab{group, min(atOnce, groups-group), head, from, min(from+rows, a.t)})
			}
		}
	}
}

// keys is how many keys the queries of s look at.
func (a *attending) keys(s slab) int {
	if a.isCausal {
		return a.s - a.t + s.to
	}
	return a.s
}

// flat are the operands with one axis for all groups.
type flat struct{ q, k, v *Tensor }

func (a *attending) flatten(made *handles, q, k, v *Tensor) flat {
	n := a.lead.Size()
	return flat{
		made.add(made.add(q.reshape(device.Shape{n, a.heads, a.t, a.d})).MulScalar(a.scale)),
		made.add(k.reshape(device.Shape{n, a.s, a.d})), made.add(v.reshape(device.Shape{n, a.s, a.e})),
	}
}

// queries returns the part of x, of shape (groups, heads, T, any), that belongs to s, without the axis of heads.
func (s slab) queries(made *handles, x *Tensor) *Tensor {
	x = made.add(x.Slice(0, s.group, s.group+s.groups))
	x = made.add(x.Slice(1, s.head, s.head+1))
	x = made.add(x.Slice(2, s.from, s.to))
	return made.add(x.Squeeze(1))
}

// upTo returns the part of x, of shape (groups, S, any), that belongs to s: the first keys.
func (s slab) upTo(made *handles, x *Tensor, keys int) *Tensor {
	return made.add(made.add(x.Slice(0, s.group, s.group+s.groups)).Slice(1, 0, keys))
}

// part returns the part for s of m, a mask, factors or nil.
func (a *attending) part(made *handles, m *Tensor, s slab) *Tensor {
	if m == nil {
		return nil
	}
	lead, index := a.lead, s.group*a.heads+s.head // of the weights: (..., G) becomes (..., H)
	if n := len(lead); n > 0 {
		lead = slices.Clone(lead)
		lead[n-1] *= a.heads
	}
	for axis, of := len(m.shape)-3, len(lead)-1; axis >= 0; axis, of = axis-1, of-1 {
		at := 0
		if m.shape[axis] > 1 {
			at = index % lead[of]
		}
		index /= lead[of]
		m = made.add(made.add(m.Slice(axis, at, at+1)).Squeeze(axis))
	}
	if m.shape[0] > 1 {
		m = made.add(m.Slice(0, s.from, s.to))
	}
	if m.shape[1] > 1 {
		m = made.add(m.Slice(1, 0, a.keys(s)))
	}
	return m
}

// forward computes the result.
func (a *attending) forward(q, k, v *Tensor) *Tensor {
	var made, parts handles
	defer made.letGo()
	defer parts.letGo()
	for _, m := range []**Tensor{&a.mask, &a.factors} {
		if *m != nil { // the program may declare its handle dead before Backward
			*m = withAxes((*m).Detach())
		}
	}
	x := a.flatten(&made, made.add(q.detached()), made.add(k.detached()), made.add(v.detached()))
	a.number(&made)
	pieces := pieces{a: a}
	a.slabs(func(s slab) {
		var made handles
		defer made.letGo()
		keys := a.keys(s)
		p, seen := a.weights(&made, s.queries(&made, x.q), s.upTo(&made, x.k, keys), a.part(&made, a.mask, s), s.from, s.to)
		if f := a.part(&made, a.factors, s); f != nil {
			p = made.add(p.Mul(f))
		}
		out := p.MatMul(s.upTo(&made, x.v, keys))
		if seen != nil {
			defer out.letGo()
			out = Where(seen, out, made.add(a.zero()))
		}
		pieces.add(s, out)
	})
	return pieces.joined(a.shape)
}

// pieces collects results of slabs, in their order.
type pieces struct {
	a                   *attending
	queries, heads, all []*Tensor
}

// add adds the result of s, of shape (groups, queries, any).
func (p *pieces) add(s slab, x *Tensor) {
	p.queries = append(p.queries, x)
	if s.to < p.a.t {
		return
	}
	p.heads = append(p.heads, joinAll(1, &p.queries))
	if s.head+1 < p.a.heads {
		return
	}
	if len(p.heads) > 1 {
		for i, h := range p.heads {
			p.heads[i] = h.unsqueeze("Attention", 1)
			h.letGo()
		}
	}
	p.all = append(p.all, joinAll(1, &p.heads))
}

// joined returns all results in one tensor of the given shape.
func (p *pieces) joined(shape device.Shape) *Tensor {
	if len(p.all) == 0 { // there are no queries
		return filled(0, shape, p.a.dtype, p.a.dev)
	}
	all := joinAll(0, &p.all)
	defer all.letGo()
	return all.reshape(shape)
}

// joinAll returns ts one after the other, and lets go of them.
func joinAll(axis int, ts *[]*Tensor) *Tensor {
	list := *ts
	*ts = nil
	if len(list) == 1 {
		return list[0]
	}
	defer letGo(list...)
	return concat("Attention", axis, list)
}

// gradient returns the gradient with respect to operand i. It computes those of the other tracked operands as well, as
// most of the work is the same, and keeps them until they are asked for.
func (a *attending) gradient(b *builder, c *op.Call, i int, g *Tensor) *Tensor {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending != g || a.share[i] == nil {
		letGo(a.share[:]...)
		a.pending, a.share = g, a.backward(b.tracking, c, g)
	}
	share := a.share[i]
	a.share[i] = nil
	if a.share == (operands{}) {
		a.pending = nil
	}
	return b.note(share)
}

// weightShare is the gradient of a score, by that of a weight, the weight, and the mean of these gradients.
var weightShare = Fuse("Attention'", 3, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Mul(kernel.Sub(x[0], x[2]), x[1])
})

var productOf = Fuse("Mul", 2, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Mul(x[0], x[1]) })

// backward returns the gradients with respect to the operands.
func (a *attending) backward(tracking bool, c *op.Call, g *Tensor) (grads operands) {
	var made handles
	defer made.letGo()
	handle := func(v op.Value) *Tensor { // the program may have declared its own dead
		t := v.(*Tensor)
		if tracking {
			return made.add(t.another())
		}
		return made.add(t.detached())
	}
	in := operands{handle(c.In[0]), handle(c.In[1]), handle(c.In[2])}
	out := handle(c.Out)
	g = handle(g)
	n := a.lead.Size()
	x := a.flatten(&made, in[0], in[1], in[2])
	flatG := made.add(g.reshape(device.Shape{n, a.heads, a.t, a.e}))
	flatOut := made.add(out.reshape(device.Shape{n, a.heads, a.t, a.e}))
	means := made.add(made.add(productOf.Sum([]int{3}, flatG, flatOut)).Unsqueeze(3))
	a.number(&made)
	ofQ := pieces{a: a}
	ofK, ofV := sums{rows: a.s}, sums{rows: a.s}
	a.slabs(func(s slab) {
		var made handles
		defer made.letGo()
		keys := a.keys(s)
		q, k, v, g := s.queries(&made, x.q), s.upTo(&made, x.k, keys), s.upTo(&made, x.v, keys), s.queries(&made, flatG)
		p, seen := a.weights(&made, q, k, a.part(&made, a.mask, s), s.from, s.to)
		if seen != nil {
			g = made.add(Where(seen, g, made.add(a.zero())))
		}
		ofWeights, used := made.add(g.MatMul(made.add(v.Transpose(0, 2, 1)))), p
		if f := a.part(&made, a.factors, s); f != nil {
			ofWeights, used = made.add(ofWeights.Mul(f)), made.add(p.Mul(f))
		}
		ofV.add(s, made.add(used.Transpose(0, 2, 1)).MatMul(g))
		share := made.add(weightShare.Of(ofWeights, p, s.queries(&made, means)))
		ofQ.add(s, share.MatMul(k))
		ofK.add(s, made.add(share.Transpose(0, 2, 1)).MatMul(q))
	})
	scaled := ofQ.joined(in[0].shape)
	defer scaled.letGo()
	return operands{scaled.MulScalar(a.scale), ofK.joined(a, in[1].shape), ofV.joined(a, in[2].shape)}
}

// sums collects gradients of keys or values: those of one group are added up.
type sums struct {
	rows int // how many keys there are
	at   int // the group of the last of all
	all  []*Tensor
}

// add adds what s contributes, of shape (groups, keys, any); it is 0 for the keys behind.
func (u *sums) add(s slab, x *Tensor) {
	if x.shape[1] < u.rows {
		defer x.letGo()
		x = structural(op.Scatter, op.Attr{Axis: 1, To: u.rows}, operands{x}, true)
	}
	if len(u.all) == 0 || u.at != s.group {
		u.at = s.group
		u.all = append(u.all, x)
		return
	}
	last := len(u.all) - 1
	defer letGo(u.all[last], x)
	u.all[last] = u.all[last].Add(x)
}

func (u *sums) joined(a *attending, shape device.Shape) *Tensor {
	if len(u.all) == 0 {
		return filled(0, shape, a.dtype, a.dev)
	}
	all := joinAll(0, &u.all)
	defer all.letGo()
	return all.reshape(shape)
}
