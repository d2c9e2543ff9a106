package plan

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/simple"
)

// A Unit is a part of a loop that is moved as a whole: a simple statement,
// what stands before the bodies of a compound one, or a whole compound
// statement.
type Unit struct {
	Stmt  *Stmt
	Whole bool // with everything in it

	Effects *Effects // without reads and their operands
	Reads   []*Read
	Held    []ast.Expr // that take what a cell or a field holds
	Ahead   *Effects   // of the operands of Reads and of Held, which are evaluated in place
	index   int64
}

// All returns everything that u does if it stays where it is.
func (u *Unit) All() *Effects {
	e := &Effects{}
	e.add(u.Effects)
	e.add(u.Ahead)
	return e
}

// ID makes u a node of a graph.
func (u *Unit) ID() int64 { return u.index }

// Units divides loop into units. whole says which compound statements are one.
func Units(loop *Stmt, whole func(*Stmt) bool) []*Unit {
	var units []*Unit
	add := func(u *Unit) {
		u.Ahead = &Effects{}
		for _, r := range u.Reads {
			u.Ahead.add(r.Effects)
		}
		for _, e := range u.Held {
			u.Ahead.add(u.Stmt.f.walk(e, nil))
		}
		if u.Stmt.Here != nil {
			u.Ahead.add(u.Stmt.Here)
		}
		u.index = int64(len(units))
		units = append(units, u)
	}
	var visit func(s *Stmt)
	visit = func(s *Stmt) {
		if s.IsCompound() && whole(s) {
			e, reads := s.Deferred()
			add(&Unit{Stmt: s, Whole: true, Effects: e, Reads: reads, Held: s.Holds()})
			return
		}
		add(&Unit{Stmt: s, Effects: s.Head, Reads: s.Reads, Held: s.Held})
		for c := range s.Children {
			visit(c)
		}
	}
	visit(loop)
	return units
}

// declares reports whether u makes a new instance of the variable obj each
// time it runs, so that code put off earlier can't mean this one.
func (u *Unit) declares(obj types.Object) bool {
	if obj == nil {
		return false
	}
	if u.Stmt.Declares[obj] {
		return true
	}
	return u.Whole && u.Stmt.Node.Pos() <= obj.Pos() && obj.Pos() < u.Stmt.Node.End()
}

// Overtakes lists what forbids that ahead runs before late, which the program
// runs first: late is put off, ahead is not. Variables of which late needs
// only the value at its place are no obstacle: canCopy says which.
func Overtakes(late, ahead *Effects, by *Unit, canCopy func(types.Object) bool) []Conflict {
	var found []Conflict
	for _, c := range conflicts(late, ahead) {
		if _, hands := late.Hands[c.First.Obj]; hands && c.First.Kind == Own {
			continue // it does not use that memory again: what does uses that of another instance of the variable
		}
		if c.Kind != Flow && (c.Second.Kind == Var || c.Second.Kind == Own) && by.declares(c.Second.Obj) {
			continue
		}
		if c.Kind == Anti && c.First == c.Second && c.First.Kind == Var && canCopy(c.First.Obj) {
			continue
		}
		found = append(found, c)
	}
	slices.SortFunc(found, func(a, b Conflict) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Why.Pos, b.Why.Pos), cmp.Compare(a.Why.Text, b.Why.Text), sameFirst(a, b))
	})
	return found
}

// sameFirst orders conflicts about one place before those about places that may be one.
func sameFirst(a, b Conflict) int {
	switch {
	case a.First == a.Second && b.First != b.Second:
		return -1
	case a.First != a.Second && b.First == b.Second:
		return 1
	}
	return 0
}

// A Graph holds which units depend on which, inside one iteration and from
// one to the next.
type Graph struct {
	units []*Unit
	g     *simple.DirectedGraph
	whys  map[[2]int64]Conflict
}

// NewGraph returns the graph with an edge from u to v wherever follows finds a
// reason why v, which does all, must be put off if u is.
func NewGraph(units []*Unit, follows func(u, v *Unit, all *Effects) (Conflict, bool)) *Graph {
	d := &Graph{units: units, g: simple.NewDirectedGraph(), whys: make(map[[2]int64]Conflict)}
	for _, u := range units {
		d.g.AddNode(u)
	}
	for _, v := range units {
		all := v.All() // once: most of the work for long loops
		for _, u := range units {
			if u == v {
				continue
			}
			if c, ok := follows(u, v, all); ok {
				d.g.SetEdge(d.g.NewEdge(u, v))
				d.whys[[2]int64{u.index, v.index}] = c
			}
		}
	}
	return d
}

// A Step is one edge of the way from a seed to a unit.
type Step struct {
	From *Unit
	Conflict
}

// Reach returns the units that depend on seeds, directly or through others
// that pass lets through, in source order, and for each the step by which it
// is reached on a shortest way.
func (d *Graph) Reach(seeds []*Unit, pass func(*Unit) bool) (reached []*Unit, by map[*Unit]Step) {
	by = make(map[*Unit]Step)
	seen := make([]bool, len(d.units))
	queue := slices.Clone(seeds)
	for _, s := range seeds {
		seen[s.index] = true
	}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		reached = append(reached, u)
		if !pass(u) {
			continue
		}
		next := graph.NodesOf(d.g.From(u.index))
		slices.SortFunc(next, func(a, b graph.Node) int { return cmp.Compare(a.ID(), b.ID()) })
		for _, n := range next {
			if v := d.units[n.ID()]; !seen[v.index] {
				seen[v.index] = true
				by[v] = Step{u, d.whys[[2]int64{u.index, v.index}]}
				queue = append(queue, v)
			}
		}
	}
	slices.SortFunc(reached, func(a, b *Unit) int { return cmp.Compare(a.index, b.index) })
	return reached, by
}
