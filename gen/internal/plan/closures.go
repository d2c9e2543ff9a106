package plan

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"golang.org/x/tools/go/types/typeutil"
)

// findClosures finds the variables that hold one function literal for all
// their life and are only called, perhaps by a defer statement.
func (f *Function) findClosures() {
	assigned := make(map[*types.Var]int)
	called := make(map[*types.Var]bool)
	lits := make(map[*types.Var]*ast.FuncLit)
	ast.Inspect(f.Decl, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		v := f.variable(id)
		if v == nil {
			return true
		}
		switch p := f.parents[id].(type) {
		case *ast.AssignStmt:
			for i, lhs := range p.Lhs {
				if lhs == id {
					assigned[v]++
					if lit, ok := litAt(p.Rhs, i, len(p.Lhs)); ok {
						lits[v] = lit
					}
					return true
				}
			}
			assigned[v] += 2 // it is copied
		case *ast.CallExpr:
			if _, isGo := f.parents[p].(*ast.GoStmt); isGo || p.Fun != id {
				assigned[v] += 2
			}
			called[v] = true
		case *ast.ValueSpec:
			for i, name := range p.Names {
				if name == id {
					assigned[v]++
					if lit, ok := litAt(p.Values, i, len(p.Names)); ok {
						lits[v] = lit
					}
				}
			}
		default:
			assigned[v] += 2
		}
		return true
	})
	for v, lit := range lits {
		if assigned[v] == 1 && called[v] {
			f.closures[v] = lit
		}
	}
}

// IsClosure reports whether v holds one function literal for all its life and is only called.
func (f *Function) IsClosure(v *types.Var) bool { return f.closures[v] != nil }

func litAt(rhs []ast.Expr, i, n int) (*ast.FuncLit, bool) {
	if len(rhs) != n {
		return nil, false
	}
	lit, ok := ast.Unparen(rhs[i]).(*ast.FuncLit)
	return lit, ok
}

// startsElsewhere reports whether a call is that of a go or defer statement.
func (f *Function) startsElsewhere(call *ast.CallExpr) bool {
	switch f.parents[call].(type) {
	case *ast.GoStmt, *ast.DeferStmt:
		return true
	}
	return false
}

// captured returns where n uses variables that are declared outside it.
func (f *Function) captured(n ast.Node) (uses []*ast.Ident) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			if v := f.variable(id); v != nil && (v.Pos() < n.Pos() || v.Pos() >= n.End()) {
				uses = append(uses, id)
			}
		}
		return true
	})
	return uses
}

// reached is captured of n and of the literals that n calls, however deep.
func (f *Function) reached(n ast.Node) (uses []*ast.Ident) {
	seen := make(map[ast.Node]bool)
	var add func(n ast.Node)
	add = func(n ast.Node) {
		seen[n] = true
		for _, id := range f.captured(n) {
			uses = append(uses, id)
			if lit := f.closures[f.variable(id)]; lit != nil && !seen[lit] {
				add(lit)
			}
		}
	}
	add(n)
	return uses
}

// CapturedBy returns the uses of outer variables in the function literal that call runs. Literals that this one calls
// count as well, but for their own names. Without a literal there are none.
func (f *Function) CapturedBy(call *ast.CallExpr) (uses []*ast.Ident) {
	lit := f.Literal(call)
	if lit == nil {
		return nil
	}
	return slices.DeleteFunc(f.reached(lit), func(id *ast.Ident) bool { return f.closures[f.variable(id)] != nil })
}

// isTame reports whether lit is called only where the source shows it: at
// once, through a variable that only holds it, or by a function that returns
// before anything else happens.
func (f *Function) isTame(lit *ast.FuncLit) bool {
	var n ast.Node = lit
	for {
		p, ok := f.parents[n].(*ast.ParenExpr)
		if !ok {
			break
		}
		n = p
	}
	switch p := f.parents[n].(type) {
	case *ast.CallExpr:
		if f.startsElsewhere(p) {
			return false
		}
		return p.Fun == n || f.isHigherOrder(p, lit)
	case *ast.AssignStmt, *ast.ValueSpec:
		for _, l := range f.closures {
			if l == lit {
				return true
			}
		}
	}
	return false
}

// isHigherOrder reports whether call calls its argument lit only before it returns.
func (f *Function) isHigherOrder(call *ast.CallExpr, lit *ast.FuncLit) bool {
	if f.IsChoice(call) {
		return true
	}
	fn := typeutil.StaticCallee(f.Info, call)
	if fn == nil || facts.Of(fn) == nil {
		return false
	}
	s := f.slotOf(call, fn, lit)
	return s.Has(facts.Calls) && !s.Has(facts.Keeps)
}

// slotOf returns what is known of the slot of fn that call hands e to.
func (f *Function) slotOf(call *ast.CallExpr, fn *types.Func, e ast.Expr) facts.Slot {
	_, slots := facts.Of(fn).Slots(fn.Origin().Signature())
	_, args := f.receiverOf(call)
	for i, arg := range args {
		if ast.Unparen(arg) == e && len(slots) > 0 {
			return slots[min(i, len(slots)-1)]
		}
	}
	return facts.Slot{}
}
