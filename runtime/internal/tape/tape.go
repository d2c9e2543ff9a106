// Package tape is reverse-mode differentiation over the definitions of
// package op: it remembers which operation made a value from which, and walks
// that graph backwards.
//
// There is no list of everything that happened. Each tracked value points to
// the [Node] that made it, so what nobody holds is found by the garbage
// collector, and nothing depends on the goroutine that computes. The package
// computes nothing itself: gradients are built through an [op.Builder].
package tape

import (
	"slices"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Node is the origin of one tracked value: an operation, or a place where
// tracking begins. It is not changed after it was made, except by Release.
type Node struct {
	call    op.Call
	parents [op.MaxInputs]*Node // of tracked operands
	// Leaf receives the gradient in Backward; nil for operations, and for
	// leaves of which only Gradients is asked.
	leaf     Leaf
	released bool
}

// A Leaf takes up gradients: a parameter.
type Leaf interface {
	// Accumulate adds g to the gradient that the leaf holds.
	Accumulate(g op.Value)
}

// An Eager leaf takes up its gradient while Backward goes on.
type Eager interface {
	Leaf
	// Expect says, before anything else happens, that a node of the leaf is in the graph of a
	// Backward. Accumulate follows as soon as that node's gradient is complete, also if there is
	// none: g is nil then.
	Expect()
	// Share says that a share of the gradient has been built, of which there are as many as
	// operations that use the leaf. More of them may follow, and so will what else is built at the
	// same distance, before Accumulate.
	Share()
	// Finish says that Backward has come to its end. It is called once for each Expect.
	Finish()
}

// NewLeaf returns a Node where tracking begins. l may be nil.
func NewLeaf(l Leaf) *Node { return &Node{leaf: l} }

// A Keeper counts who uses a value, so that its memory can be given back after the last use.
type Keeper interface {
	// Hold counts another user of v.
	Hold(v op.Value)
	// LetGo says that one of them will not use v any more. Operations enqueued so far may.
	LetGo(v op.Value)
}

// A Builder builds gradients, and counts who uses them.
type Builder interface {
	op.Builder
	Keeper
	// Settle lets go of all that was built since the last Settle, but not of v, of which the caller becomes a user,
	// whether it was built or not. V may be nil.
	Settle(v op.Value)
}

// Record returns the Node of the result out of a call. Of the operands and the
// result it holds what the gradient looks at, and of the rest the shape alone.
// Parents are the nodes of the operands, nil for those that are not tracked.
func Record(k Keeper, c op.Call, parents [op.MaxInputs]*Node) *Node {
	tracked := uint8(0)
	for i, p := range parents {
		if p != nil {
			tracked |= 1 << i
		}
	}
	needed := c.Def.Needed(tracked)
	for i, x := range c.In {
		switch {
		case x == nil:
		case needed>>i&1 != 0:
			k.Hold(x)
		default:
			c.In[i] = &op.Meta{Dims: x.Shape(), Type: x.DType()}
		}
	}
	if needed&op.SavesResult != 0 {
		k.Hold(c.Out)
	} else {
		c.Out = nil
	}
	return &Node{call: c, parents: parents}
}

// A Graph is what one value depends on: where gradients are pulled through.
type Graph struct {
	nodes []*Node // operands before what uses them, the root last
}

// Trace returns the graph of root. It fails if a node that root depends on was released.
func Trace(root *Node) (Graph, bool) {
	g := Graph{order(root)}
	for _, n := range g.nodes {
		if n.released {
			return g, false
		}
	}
	return g, true
}

// Backward adds to each leaf the gradient of the root, whose own is seed, and
// lets go of what the nodes held, and of seed. Leaves take up their gradients in an order
// that depends on the graph alone: at the end, unless they are [Eager].
//
// If some are, the graph is walked by distance from the root, so that parts of it that are alike,
// such as the passes of several devices through one model, are walked side by side. Copies between
// devices and concatenations are no distance.
func (g Graph) Backward(b Builder, seed op.Value) {
	eager := g.eager()
	if len(eager) > 0 {
		g.nodes = byDistance(g.nodes)
	}
	for _, l := range eager {
		l.Expect()
	}
	grads := g.pull(b, seed, nil, true)
	for _, n := range g.nodes {
		if grad := grads[n]; grad != nil {
			if n.leaf != nil {
				n.leaf.Accumulate(grad)
			}
			b.LetGo(grad)
		}
		n.release(b)
	}
	for _, l := range eager {
		l.Finish()
	}
}

// eager lists the Eager leaves.
func (g Graph) eager() []Eager {
	var list []Eager
	for _, n := range g.nodes {
		if l, ok := n.leaf.(Eager); ok {
			list = append(list, l)
		}
	}
	return list
}

// byDistance returns nodes, in which operands are before what uses them and the root is last, in
// the order of their longest way to the root; of equals the first stay first, so that operands are
// before what uses them again.
func byDistance(nodes []*Node) []*Node {
	distance := make(map[*Node]int, len(nodes))
	for _, n := range slices.Backward(nodes) {
		d := distance[n]
		if n.call.Def != op.To && n.call.Def != op.Concat {
			d++
		}
		for _, p := range n.parents {
			if p != nil {
				distance[p] = max(distance[p], d)
			}
		}
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b *Node) int { return distance[b] - distance[a] })
	return nodes
}

// Gradients returns the gradients of the root, whose own is seed, with respect
// to the given nodes; nil where the root does not depend on one. The caller has to let go
// of each.
func (g Graph) Gradients(b Builder, seed op.Value, of []*Node) []op.Value {
	kept := map[*Node]bool{}
	for _, n := range of {
		kept[n] = true
	}
	grads := g.pull(b, seed, kept, false)
	values := make([]op.Value, len(of))
	for i, n := range of {
		if values[i] = grads[n]; values[i] != nil {
			b.Hold(values[i])
		}
	}
	for _, n := range g.nodes {
		if grads[n] != nil {
			b.LetGo(grads[n])
		}
	}
	return values
}

// pull walks backwards and returns the gradients of the leaves and of the kept nodes. Those of the
// others are let go of as soon as they have been passed on, and if release is set, as it is in
// Backward, so is what the nodes hold, and Eager leaves take up theirs.
func (g Graph) pull(b Builder, seed op.Value, kept map[*Node]bool, release bool) map[*Node]op.Value {
	grads := map[*Node]op.Value{g.nodes[len(g.nodes)-1]: seed}
	for _, n := range slices.Backward(g.nodes) {
		grad := grads[n]
		if l, ok := n.leaf.(Eager); ok && release {
			l.Accumulate(grad)
			if grad != nil {
				delete(grads, n)
				b.LetGo(grad)
			}
			continue
		}
		if grad == nil || n.call.Def == nil {
			continue
		}
		for k, p := range n.parents {
			if p == nil {
				continue
			}
			share := op.Pull(b, &n.call, k, grad)
			b.Settle(share)
			switch before := grads[p]; {
			case share == nil:
			case before == nil:
				grads[p] = share
			default:
				sum := b.Elementwise(op.Add, [2]float64{}, before, share)
				b.Settle(sum)
				b.LetGo(before)
				b.LetGo(share)
				grads[p] = sum
			}
			if l, ok := p.leaf.(Eager); ok && release && share != nil {
				l.Share()
			}
		}
		if !kept[n] {
			delete(grads, n)
			b.LetGo(grad)
		}
		if release {
			n.release(b)
		}
	}
	return grads
}

// order lists the nodes that root depends on, operands before what uses them,
// root last.
func order(root *Node) []*Node {
	type visit struct {
		n    *Node
		next int // the parent to look at
	}
	var nodes []*Node
	seen := map[*Node]bool{root: true}
	stack := []visit{{n: root}} // not recursion: a chain may have a million links
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if top.next == len(top.n.parents) {
			nodes = append(nodes, top.n)
			stack = stack[:len(stack)-1]
			continue
		}
		p := top.n.parents[top.next]
		top.next++
		if p != nil && !seen[p] {
			seen[p] = true
			stack = append(stack, visit{n: p})
		}
	}
	return nodes
}

// release lets go of values and of the nodes below. Leaves stay as they are, and so does what was released.
func (n *Node) release(k Keeper) {
	if n.call.Def == nil || n.released {
		return
	}
	for _, x := range append(n.call.In[:], n.call.Out) {
		if _, isMeta := x.(*op.Meta); x != nil && !isMeta {
			k.LetGo(x)
		}
	}
	n.call = op.Call{Def: n.call.Def}
	n.parents = [op.MaxInputs]*Node{}
	n.released = true
}
