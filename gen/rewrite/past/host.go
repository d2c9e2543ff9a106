package past

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// host finds out what may fail on the host, or not come to an end.
type host struct{ *floats }

func newHost(l *known) *host {
	return &host{&floats{shapes: &shapes{counting: &counting{l}, shapeOf: make(map[types.Object]shape), compared: make(map[types.Object]bool)}}}
}

// harm returns the harm that u could do past an exit, or nil.
func (p *host) harm(u *plan.Unit) *Harm {
	if c := u.All().Waits; c != nil && !p.Late[u] && u.Stmt != p.Stmt {
		// Waiting past an exit, for what is never computed, would be a failure.
		r := plan.ReasonOf(*c, plan.WaitsInside)
		return &Harm{Reason: &r, By: u}
	}
	always := u.Stmt == p.Stmt || p.always(u.Stmt)
	r := p.mayFail(u, always)
	switch {
	case r == nil:
		return nil
	case always || p.Contained:
		return &Harm{Reason: r}
	}
	return &Harm{Reason: r, By: u}
}

// mayFail returns why u may fail past an exit, or draw what is not given back, or nil. always says that every iteration
// comes to it.
func (p *host) mayFail(u *plan.Unit, always bool) *plan.Reason {
	e := p.effects(u)
	if c, ok := e.Writes[plan.Loc{Kind: plan.Random}]; ok {
		return &plan.Reason{Code: plan.PastRandom, Cause: c, Hint: "draw them before the loop, or with tensor.Rand"}
	}
	if c := plan.FirstOf(e.Ends, e.Waits); c != nil {
		return fails(*c)
	}
	if c := p.endless(u); c != nil {
		return fails(*c)
	}
	for _, n := range p.nodes(u) {
		if c := p.partial(n, always, u.Stmt); c != nil {
			return fails(*c)
		}
	}
	if c := p.head(u, always); c != nil && !p.Late[u] && !p.Contained {
		return fails(*c)
	}
	return nil
}

// head returns what may fail between the parts of the head of u, or nil: a comparison of a switch, a nil array.
func (p *host) head(u *plan.Unit, always bool) *plan.Cause {
	info := p.f.Info
	isFixed := func(e ast.Expr) bool { return always && p.fixed(e) }
	switch n := u.Stmt.Inner().(type) {
	case *ast.SwitchStmt:
		if n.Tag == nil || !syntax.MayNotCompare(info.TypeOf(n.Tag)) || isFixed(n.Tag) {
			return nil
		}
		return &plan.Cause{Pos: n.Tag.Pos(), Text: "may compare what can't be compared"}
	case *ast.RangeStmt:
		if _, isPointer := info.TypeOf(n.X).Underlying().(*types.Pointer); isPointer && u.Stmt != p.Stmt && n.Value != nil && !isFixed(n.X) {
			return &plan.Cause{Pos: n.X.Pos(), Text: "follows a pointer that may be nil, " + types.ExprString(n.X)}
		}
	}
	return nil
}

// fails is the reason that past an exit c may fail.
func fails(c plan.Cause) *plan.Reason {
	hint := sooner(c)
	c.Text += ", and the loop runs past its end until the value is there"
	return &plan.Reason{Code: plan.PastFails, Cause: c, Hint: hint}
}

// sooner says what to write in the place of what may fail past the end of a loop.
func sooner(c plan.Cause) string {
	const rarely = "test the value in few iterations, as with if i%8 == 7 && ..."
	before, of, isIndex := strings.Cut(c.Text, "may index beyond the end of ")
	called, _, isCall := strings.Cut(strings.TrimPrefix(c.Text, "calls "), " with ")
	switch {
	case isIndex && before == "":
		return fmt.Sprintf("let the loop range over %s, or %s", of, rarely)
	case strings.HasSuffix(c.Text, "whose shape may change"):
		return "give the tensor the same shape in every iteration, or " + rarely
	case isCall && strings.HasSuffix(c.Text, "with another argument each time"):
		called, _, _ = strings.Cut(called, ", which ")
		return fmt.Sprintf("call %s before the loop, for all iterations, or %s", called, rarely)
	case c.Text == "may go on for ever":
		return "let that loop count, as with for i := range n, or i += 16 up to a bound that it does not change"
	case strings.Contains(c.Text, " in some iterations only"):
		return "let an inner loop run from one test of the value to the next, or call it once before the loop"
	case strings.HasPrefix(c.Text, "may divide by zero"):
		return "divide by a constant, or on the device, or " + rarely
	}
	return "do it before the loop, or " + rarely
}

// partial returns what in n may fail although it did not in the iterations
// before, or nil. always says that every iteration comes to n.
func (p *host) partial(n ast.Node, always bool, in *plan.Stmt) (found *plan.Cause) {
	if p.Contained && in != p.Stmt {
		return p.unlimited(n, in)
	}
	report := func(at ast.Node, format string, args ...any) {
		if found == nil {
			found = &plan.Cause{Pos: at.Pos(), Text: fmt.Sprintf(format, args...)}
		}
	}
	same := func(list ...ast.Expr) bool {
		return always && !slices.ContainsFunc(list, func(e ast.Expr) bool { return e != nil && !p.fixed(e) })
	}
	info := p.f.Info
	store := func(lhs ast.Expr) {
		if ix, ok := ast.Unparen(lhs).(*ast.IndexExpr); ok && isMap(info.TypeOf(ix.X)) && !same(ix.X) {
			report(ix, "stores in %s, which may be nil", types.ExprString(ix.X))
		}
	}
	ast.Inspect(n, func(m ast.Node) bool {
		if found != nil {
			return false
		}
		switch m := m.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IndexExpr:
			if t, ok := info.TypeOf(m.X).Underlying().(*types.Map); ok && syntax.MayNotCompare(t.Key()) && !same(m.Index) {
				report(m, "may look for a key in %s that can't be compared", types.ExprString(m.X))
			}
			if !p.inRange(m) && !same(m.X, m.Index) {
				report(m, "may index beyond the end of %s", types.ExprString(m.X))
			}
		case *ast.CompositeLit:
			if hasOpenKeys(info.TypeOf(m)) && !same(m) {
				report(m, "may look for a key in %s that can't be compared", types.ExprString(m))
			}
		case *ast.SliceExpr:
			if !same(m.X, m.Low, m.High, m.Max) {
				report(m, "may slice beyond the end of %s", types.ExprString(m.X))
			}
		case *ast.BinaryExpr:
			switch m.Op {
			case token.QUO, token.REM:
				if syntax.IsInteger(info.TypeOf(m)) && !isNonzero(info, m.Y) && !same(m.Y) {
					report(m, "may divide by zero")
				}
			case token.SHL, token.SHR:
				if info.Types[m.Y].Value == nil && !isUnsigned(info.TypeOf(m.Y)) && !same(m.Y) {
					report(m, "may shift by a negative number")
				}
			case token.EQL, token.NEQ:
				if syntax.MayNotCompare(info.TypeOf(m.X)) && syntax.MayNotCompare(info.TypeOf(m.Y)) && !same(m.X, m.Y) {
					report(m, "may compare what can't be compared")
				}
			}
		case *ast.AssignStmt:
			switch m.Tok {
			case token.QUO_ASSIGN, token.REM_ASSIGN:
				if syntax.IsInteger(info.TypeOf(m.Lhs[0])) && !isNonzero(info, m.Rhs[0]) && !same(m.Rhs[0]) {
					report(m, "may divide by zero")
				}
			case token.SHL_ASSIGN, token.SHR_ASSIGN:
				if info.Types[m.Rhs[0]].Value == nil && !isUnsigned(info.TypeOf(m.Rhs[0])) && !same(m.Rhs[0]) {
					report(m, "may shift by a negative number")
				}
			}
			p.assigns(m, always, report)
			for _, lhs := range m.Lhs {
				store(lhs)
			}
		case *ast.IncDecStmt:
			store(m.X)
		case *ast.StarExpr:
			if info.Types[m].IsValue() && !same(m.X) {
				report(m, "follows a pointer that may be nil, %s", types.ExprString(m.X))
			}
		case *ast.SelectorExpr:
			if (followsPointer(info.Selections[m]) || isMethodValue(p.f, m)) && !same(m.X) {
				report(m, "follows a pointer that may be nil, %s", types.ExprString(m.X))
			}
		case *ast.TypeAssertExpr:
			if m.Type != nil && !same(m.X) {
				report(m, "asserts a type")
			}
		case *ast.CallExpr:
			for _, e := range append([]ast.Expr{m.Fun}, m.Args...) { // what is wrong first comes first
				if c := p.partial(e, always, in); c != nil {
					found = c
					return false
				}
			}
			p.call(m, always, in, report)
			return false
		}
		return found == nil
	})
	return found
}

// assigns checks that tensors which come round again keep their shapes.
func (p *host) assigns(n *ast.AssignStmt, always bool, report func(ast.Node, string, ...any)) {
	for i, lhs := range n.Lhs {
		id, ok := ast.Unparen(lhs).(*ast.Ident)
		if !ok {
			continue
		}
		v, _ := p.f.Info.ObjectOf(id).(*types.Var)
		if v != nil && !always && p.swaps(v, n, i) {
			report(n, "may give %s another shape in some iterations", v.Name())
			return
		}
	}
}

func isUnsigned(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsUnsigned != 0
}

func isNonzero(info *types.Info, e ast.Expr) bool {
	v := info.Types[e].Value
	return v != nil && constant.Sign(v) != 0
}
