package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// raise notes that s gives numbers values that it reads: truths everywhere, and others in loops.
func (r *writer) raise(s ast.Stmt) {
	isTruth := func(v *types.Var) bool { return isBool(v.Type()) && r.numbers[v] }
	if len(r.f.LoopsAround(s)) > 0 || slices.ContainsFunc(assignedIn(r.f, s), isTruth) {
		r.raises = append(r.raises, s)
	}
}

// forceReads makes the numbers raise the errors of the values that they are made of
// where the function would have read them, unless what follows does.
func (r *writer) forceReads() {
	for _, s := range r.raises {
		var names []string
		for _, v := range r.readInto(s) {
			if !r.implied(s, v) {
				names = append(names, r.nameOf(v)+look(v.Type()))
			}
		}
		if len(names) > 0 {
			r.insert(s.End(), "; "+strings.Join(names, "; "))
		}
	}
}

// readInto returns the numbers to which s assigns what it reads itself.
func (r *writer) readInto(s ast.Stmt) (vs []*types.Var) {
	for v := range r.numbers {
		if isFloats(v.Type()) {
			continue // what is put into slices has got a name
		}
		for _, d := range r.defs[v] {
			if at := d.stmt; d.value != nil && s.Pos() <= at.Pos() && at.End() <= s.End() && len(itemsIn(r.f, d.value)) > 0 {
				vs = append(vs, v)
			}
		}
	}
	slices.SortFunc(vs, func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) })
	return vs
}

// implied reports whether what comes after s in its list raises the error of v before anybody can
// tell that it has not been raised yet: something looks at a value that depends on v, and nothing
// in between shows.
func (r *writer) implied(s ast.Stmt, v *types.Var) bool {
	all := syntax.List(r.f.Parent(s))
	failing := map[types.Object]bool{v: true}
	for _, next := range all[slices.Index(all, s)+1:] {
		if r.looksAt(next, failing) {
			return true
		}
		if !r.isQuiet(next) {
			return false
		}
		r.spread(next, failing)
	}
	return false
}

// looksAt reports whether s begins with a look at one of the values in failing.
func (r *writer) looksAt(s ast.Stmt, failing map[types.Object]bool) bool {
	for _, id := range r.looks {
		if failing[r.f.Info.Uses[id]] && s.Pos() <= id.Pos() && id.End() <= s.End() && r.f.AlwaysFirst(id, s) {
			return true
		}
	}
	return false
}

// isQuiet reports whether nobody but the function can tell that s has run.
func (r *writer) isQuiet(s ast.Stmt) bool {
	if slices.ContainsFunc(r.before[s], func(e ast.Expr) bool { return r.sinks[callOf(e)].index && r.stems[e] == "" }) {
		return false // it may panic when it is its turn
	}
	switch s.(type) {
	case *ast.AssignStmt, *ast.DeclStmt:
	default:
		return false
	}
	e := r.f.StmtEffects(s)
	if e.Barrier != nil || e.HandsOut != nil || e.Ends != nil {
		return false
	}
	return !r.f.Shows(e)
}

// spread finds the variables to which s assigns what fails if something in failing does.
func (r *writer) spread(s ast.Stmt, failing map[types.Object]bool) {
	for v, defs := range r.defs {
		for _, d := range defs {
			if d.stmt != s && r.f.Parent(r.f.Parent(d.stmt)) != s {
				continue
			}
			fails := d.value != nil && fails(r.f, d.value, failing) || d.op != token.ILLEGAL && failing[v]
			if fails {
				failing[v] = true
			} else {
				delete(failing, v)
			}
		}
	}
}

// fails reports whether e fails if one of the variables in failing holds a value that has.
func fails(f *plan.Function, e ast.Expr, failing map[types.Object]bool) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return failing[f.Info.Uses[e]]
	case *ast.UnaryExpr:
		return fails(f, e.X, failing)
	case *ast.BinaryExpr:
		return fails(f, e.X, failing) || fails(f, e.Y, failing)
	case *ast.CallExpr:
		_, api, library := f.Library(e)
		switch _, sel, isItem := item(f, e); {
		case isItem:
			return fails(f, sel.X, failing)
		case library && (api.Kind == tensorapi.Op || api.Kind == tensorapi.View):
			if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok && f.Info.Selections[sel] != nil && fails(f, sel.X, failing) {
				return true
			}
		case library:
			return false
		default:
			if _, _, ok := function(f, e); !ok && !f.Info.Types[e.Fun].IsType() {
				return false
			}
		}
		return slices.ContainsFunc(e.Args, func(arg ast.Expr) bool { return fails(f, arg, failing) })
	}
	return false
}
