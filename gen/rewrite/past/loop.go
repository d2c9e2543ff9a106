package past

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// known is what is known of a loop that runs past its exits.
type known struct {
	f *plan.Function
	*Loop
	written []*types.Var            // variables that it changes ahead of values, in source order
	changed *plan.Effects           // all that it changes
	fields  map[types.Object]*field // by what stands for them
}

func newKnown(f *plan.Function, l *Loop) *known {
	p := &known{f: f, Loop: l, changed: &plan.Effects{}, fields: make(map[types.Object]*field)}
	for _, u := range p.Units {
		p.changed.Add(u.All())
	}
	seen := make(map[*types.Var]bool)
	for _, u := range p.Ahead {
		for l := range p.effects(u).Writes {
			v, ok := l.Obj.(*types.Var)
			if ok && l.Kind == plan.Var && !seen[v] {
				seen[v] = true
				p.written = append(p.written, v)
			}
		}
	}
	slices.SortFunc(p.written, func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) })
	return p
}

// effects are what u does ahead of values.
func (p *known) effects(u *plan.Unit) *plan.Effects {
	if p.Late[u] {
		return u.Ahead
	}
	return u.All()
}

// nodes are the parts of u that run ahead.
func (p *known) nodes(u *plan.Unit) (nodes []ast.Node) {
	if p.Late[u] {
		for _, r := range u.Reads {
			if r.Rows != nil {
				nodes = append(nodes, r.Rows.Count) // what it computes fails where it is needed
				continue
			}
			if r.Assign != nil {
				nodes = append(nodes, r.Assign)
				continue
			}
			nodes = append(nodes, r.Operand)
		}
		for _, e := range u.Held {
			nodes = append(nodes, e)
		}
		return nodes
	}
	return u.InPlace()
}

// always reports whether s runs in every iteration, and as often in each.
func (p *known) always(s *plan.Stmt) bool {
	for c := s; c.Parent != nil; c = c.Parent {
		if c.Parent == p.Stmt {
			return !p.skipped(c)
		}
		switch n := c.Parent.Inner().(type) {
		case *ast.BlockStmt:
		case *ast.RangeStmt:
			if !p.fixed(n.X) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// skipped reports whether some iterations end before they come to s, a
// statement of the body.
func (p *known) skipped(s *plan.Stmt) bool { return p.skippedIn(p.Stmt, s) }

// skippedIn is skipped for an inner loop.
func (p *known) skippedIn(loop, s *plan.Stmt) bool {
	for _, c := range loop.Bodies[0] {
		if c == s {
			return false
		}
		for d := range c.All {
			if d.Restarts(loop) {
				return true
			}
		}
	}
	return false
}

// tests reports whether each iteration of loop, an inner one, comes to a test that ends the loop that is planned. Such
// a loop comes to an end: so many tests are ahead of their values at most.
func (p *known) tests(loop *plan.Stmt) bool {
	return slices.ContainsFunc(p.Exits, func(s *plan.Stmt) bool {
		for ; s != nil && s != loop; s = s.Parent {
			if _, isBlock := s.Parent.Inner().(*ast.BlockStmt); s.Parent != loop && !isBlock || s.Parent == loop && p.skippedIn(loop, s) {
				return false
			}
		}
		return s == loop
	})
}

// fixed reports whether e has the same value in every iteration.
func (p *known) fixed(e ast.Expr) bool {
	if tv := p.f.Info.Types[e]; tv.Value != nil || tv.IsType() {
		return true
	}
	if v := p.field(e, rootOf(p.f, e)); v != nil {
		return !slices.ContainsFunc(p.Units, func(u *plan.Unit) bool { return p.writes(u, v) })
	}
	found := p.f.Effects(e)
	return found.Barrier == nil && found.Clock == nil && found.Polls == nil && !found.Needs(p.changed)
}

// hasTests reports whether a part of the condition of the loop is tested later.
func (p *known) hasTests() bool {
	body := p.Stmt.Bodies[0]
	return len(body) > 0 && body[0].IsTest
}

// begins returns the first statement of the body of the loop after what is tested later of its condition, or nil.
func (p *known) begins() *plan.Stmt {
	for _, s := range p.Stmt.Bodies[0] {
		if !s.IsTest {
			return s
		}
	}
	return nil
}

// top returns the statement of the body that s is part of.
func (p *known) top(s *plan.Stmt) *plan.Stmt {
	for s.Parent != nil && s.Parent != p.Stmt {
		s = s.Parent
	}
	return s
}

// warm is how many iterations, at the least, come to their end before anything runs past an exit. A loop
// may run ahead of one test when two have been false.
func (p *known) warm() int {
	switch n := len(p.Exits); n {
	case 1, 2:
		for _, s := range p.Exits {
			if s.Loop() != p.Stmt && s != p.Stmt {
				return 0
			}
		}
		return 3 - n
	}
	return 0
}

// comesRound is how many tensors keep the values that iterations give them. All that matters is whether that is one.
func (p *known) comesRound() (n int) {
	for _, v := range p.written {
		switch {
		case !p.carried(v):
		case p.f.Analysis.API.IsTensor(v.Type()):
			n++
		case hasTensor(p.f, v.Type()):
			n += 2 // or more
		}
	}
	n += 2 * p.GivesBack // or none
	return n
}

// carried reports whether v keeps its value from one iteration to the next.
func (p *known) carried(v types.Object) bool {
	loop := p.Stmt.Node
	return v.Pos() < loop.Pos() || loop.End() <= v.Pos()
}

// comesAgain reports whether v is carried, or declared by the head of the loop.
func (p *known) comesAgain(v types.Object) bool {
	body := p.Stmt.Bodies[0]
	return p.carried(v) || len(body) > 0 && v.Pos() < body[0].Node.Pos()
}

// carriedIn returns the variables in n that keep their values from one iteration to the next.
func (p *known) carriedIn(n ast.Node) (vars []types.Object) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			if v, ok := p.f.Info.Uses[id].(*types.Var); ok && p.carried(v) && slices.Contains(p.written, v) {
				vars = append(vars, v)
			}
		}
		return true
	})
	return vars
}

// asItCame reports whether v, which comes round, still is what it was at the beginning of the iteration where the
// statement in begins.
func (p *known) asItCame(v types.Object, in *plan.Stmt) bool {
	return !slices.ContainsFunc(p.Units, func(u *plan.Unit) bool {
		if !p.writes(u, v) {
			return false
		}
		for s := in; s != nil && s != p.Stmt; s = s.Parent {
			if s.IsLoop() && u.Stmt.Within(s) {
				return true
			}
		}
		return u.Stmt.Node.Pos() < in.Node.Pos()
	})
}

// changedIn returns the variables that units in s change.
func changedIn(units []*plan.Unit, s *plan.Stmt) map[types.Object]bool {
	var in []*plan.Unit
	for _, u := range units {
		if u.Stmt.Within(s) {
			in = append(in, u)
		}
	}
	return plan.ChangedBy(in)
}
