// Package tape is reverse-mode differentiation over the definitions of package op: it remembers
// which operation made a value from which operands, and walks that graph backwards.
//
// There is no global list of operations. Each tracked value points to the [Node] that made it, so
// the garbage collector frees nodes that nobody holds, and it does not matter which goroutine
// computes. The package computes nothing itself: gradients are built through an [op.Builder].
package tape

import (
	"slices"

	"github.com/asyncgen/asyncgen/runtime/op"
)

// A Node is the origin of one tracked value: an operation, or a place where tracking begins. After it
// was made, only Backward changes it: it releases what the Node holds.
type Node struct {
	call    op.Call
	parents [op.MaxInputs]*Node // the nodes of tracked operands; nil for the others
	// Leaf receives the gradient in Backward. It is nil for operations, and for leaves whose gradient
	// only Gradients returns.
	leaf     Leaf
	released bool
}

// A Leaf collects gradients, as a parameter does.
type Leaf interface {
	// Accumulate adds g to the gradient that the leaf holds.
	Accumulate(g op.Value)
}

// An Eager leaf gets its gradient while Backward is still running, not at its end.
type Eager interface {
	Leaf
	// Expect says that a node of the leaf is in the graph of a Backward. It is called before anything
	// is built. Accumulate follows as soon as that node's gradient is complete; if the leaf gets no
	// gradient, g is nil.
	Expect()
	// Share says that one share of the gradient has been built. Each operation that uses the leaf
	// may add a share. Before Accumulate, more shares may follow, and everything else at the same
	// distance from the root is built.
	Share()
	// Finish says that Backward, with the Builder b, is done. It is called once for each Expect.
	Finish(b Builder)
}

// NewLeaf returns a Node where tracking begins. l may be nil.
func NewLeaf(l Leaf) *Node { return &Node{leaf: l} }

// A Keeper counts the users of each value, so that its memory can be given back after the last use.
type Keeper interface {
	// Hold counts another user of v.
	Hold(v op.Value)
	// LetGo says that a user of v will not use it any more. Operations enqueued so far still may.
	LetGo(v op.Value)
}

// A Builder builds gradients, and counts their users.
type Builder interface {
	op.Builder
	Keeper
	// Settle lets go of all values built since the last Settle, except v. The caller becomes a user
	// of v, whether it was built since or not. v may be nil.
	Settle(v op.Value)
	// Like returns v so that operations on it are lazy or not, and lets go of v as it was: the gradient of what was
	// computed in a chain is computed in a chain. uses is how many gradients are built from v.
	Like(lazy bool, uses int, v op.Value) op.Value
}

// Record returns the Node of the result of c. The Node holds those operands, and the result, whose
// values the gradient needs; of the others it keeps only shape and type. parents are the nodes of
// the operands, nil for those that are not tracked.
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

// A Graph is all nodes that one value, the root, depends on.
type Graph struct {
	nodes []*Node // operands before the operations that use them; the root is last
}

// Trace returns the graph of root. It returns false if a node that root depends on was released.
func Trace(root *Node) (Graph, bool) {
	g := Graph{order(root)}
	for _, n := range g.nodes {
		if n.released {
			return g, false
		}
	}
	return g, true
}

// Backward adds to each leaf the gradient of a loss with respect to it. seed is the gradient of the
// loss with respect to the root. Backward lets go of seed and of the values that the nodes held. It
// calls Accumulate at the end, except on [Eager] leaves, in an order that depends only on the graph.
//
// If there are Eager leaves, the graph is walked by distance from the root. So similar parts of the
// graph, such as the passes of several devices through one model, are walked side by side. Copies
// between devices and concatenations add nothing to the distance.
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
		l.Finish(b)
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

// byDistance sorts nodes by the length of their longest path to the root, longest first. Nodes at the
// same distance keep their order. So operands are still before the operations that use them, and
// the root is last, as they are in the argument.
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

// Gradients returns the gradients of a loss with respect to the given nodes; nil for a node that the
// root does not depend on. seed is the gradient with respect to the root; Gradients lets go of it.
// The caller has to let go of each result.
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

// pull walks backwards and returns the gradients of the leaves and of the kept nodes. The gradients
// of other nodes are let go as soon as they have been passed on. If release is set, as in Backward,
// the values that nodes hold are let go as well, and Eager leaves get their gradients.
func (g Graph) pull(b Builder, seed op.Value, kept map[*Node]bool, release bool) map[*Node]op.Value {
	grads := map[*Node]op.Value{g.nodes[len(g.nodes)-1]: seed}
	for _, n := range slices.Backward(g.nodes) {
		grad := grads[n]
		if grad != nil {
			uses := 0
			for _, p := range n.parents {
				if p != nil {
					uses++
				}
			}
			grad = b.Like(n.call.Lazy, uses, grad)
			grads[n] = grad
		}
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

// order lists the nodes that root depends on, operands before the operations that use them, root last.
func order(root *Node) []*Node {
	type visit struct {
		n    *Node
		next int // the parent to look at
	}
	var nodes []*Node
	seen := map[*Node]bool{root: true}
	stack := []visit{{n: root}} // no recursion: a chain may have a million nodes
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

// release lets go of the values that n holds, and drops its parents. It does nothing to a leaf, or to a
// node that was released before.
func (n *Node) release(k Keeper) {
	if n.call.Def == nil || n.released {
		return
	}
	for _, x := range append(n.call.In[:], n.call.Out) {
		if _, isMeta := x.(*op.Meta); x != nil && !isMeta {
			k.LetGo(x)
		}
	}
	if l, ok := n.call.Attr.Local.(interface{ LetGo() }); ok {
		l.LetGo()
	}
	n.call = op.Call{Def: n.call.Def}
	n.parents = [op.MaxInputs]*Node{}
	n.released = true
}
