package gen

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A callee is a function whose variant is called: its name, and which results the variant returns
// in their place, before the function that makes the others. here is nil if it returns none so.
type callee struct {
	name string
	here []bool

	path   string // of its package, if that is another one than that of the variant
	method bool   // of that package
}

// callees are the functions whose variants are called, by the names of these.
type callees struct {
	functions map[string]callee            // of the package
	literals  map[string]map[string]callee // function literals, by the key of the generated function that they are in
}

func newCallees() callees {
	return callees{make(map[string]callee), make(map[string]map[string]callee)}
}

// calleesOf are the function literals of one function.
func calleesOf(lifts []*plan.Lift) map[string]callee {
	m := make(map[string]callee)
	for _, l := range lifts {
		m[l.Name] = callee{name: l.Closure.Var.Name(), here: l.Here}
	}
	return m
}

// in returns those that the generated function with the given key may call.
func (c callees) in(key string) map[string]callee {
	m := maps.Clone(c.functions)
	maps.Copy(m, c.literals[key])
	return m
}

// A mixedCall is a call of a variant that assigns results in their place.
type mixedCall struct {
	first *ast.AssignStmt // with the name of the second half as the last of what is assigned
	here  []bool
}

// learnMixed records what a is, if it calls a variant that returns results in their place. It reports whether it does.
func (u *undoer) learnMixed(a *ast.AssignStmt) bool {
	last, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
	if !ok || u.known[last.Name] || len(a.Rhs) != 1 {
		return false
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	name := calleeName(call.Fun)
	if name == nil {
		return false
	}
	here := u.variants[name.Name].here
	if here == nil || count(here) != len(a.Lhs)-1 || !u.learnCall(last.Name, call) {
		return false
	}
	u.mixed[last.Name] = &mixedCall{a, here}
	return true
}

func count(here []bool) (n int) {
	for _, is := range here {
		if is {
			n++
		}
	}
	return n
}

// whole returns the assignment of all results of a call, if s is the one of those that come later; or nil.
func (u *undoer) whole(s ast.Stmt) ast.Stmt {
	var later []ast.Expr
	var e ast.Expr
	tok := token.ASSIGN
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		if len(s.Rhs) != 1 {
			return nil
		}
		later, e, tok = s.Lhs, s.Rhs[0], s.Tok
		if u.firsts[s] {
			tok = token.DEFINE
		}
	}
	half, ok := e.(*ast.CallExpr)
	if !ok || len(half.Args) > 0 {
		return nil
	}
	id, ok := half.Fun.(*ast.Ident)
	if !ok || u.mixed[id.Name] == nil {
		return nil
	}
	m := u.mixed[id.Name]
	rest := len(m.here) - count(m.here)
	if _, alone := s.(*ast.ExprStmt); alone {
		for range rest {
			later = append(later, ast.NewIdent("_"))
		}
	}
	if len(later) != rest {
		return nil
	}
	first := m.first.Lhs[:len(m.first.Lhs)-1]
	for _, lhs := range first {
		if id, ok := lhs.(*ast.Ident); ok && id.Name != "_" && m.first.Tok == token.DEFINE {
			tok = token.DEFINE
		}
	}
	return &ast.AssignStmt{Lhs: merge(first, later, m.here), Tok: tok, Rhs: []ast.Expr{half}}
}

// merge puts two lists together: here says from which each element comes.
func merge[E any](first, later []E, here []bool) (all []E) {
	for _, is := range here {
		if is {
			all, first = append(all, first[0]), first[1:]
		} else {
			all, later = append(all, later[0]), later[1:]
		}
	}
	return all
}

// mergeTypes returns the results of o, if they are first and rest together, or nil.
func mergeTypes(first []*ast.Field, rest *ast.FieldList, here []bool, o *ast.FuncDecl) *ast.FieldList {
	var later []*ast.Field
	if rest != nil {
		later = rest.List
	}
	if len(first)+len(later) != len(here) || count(here) != len(first) || o.Type.Results == nil {
		return nil
	}
	all := merge(first, later, here)
	merged := &ast.FieldList{}
	for _, field := range o.Type.Results.List {
		f := &ast.Field{}
		for i := range max(1, len(field.Names)) {
			if len(all) == 0 || len(all[0].Names) > 0 || types.ExprString(all[0].Type) != types.ExprString(field.Type) {
				return nil
			}
			f.Type, all = all[0].Type, all[1:]
			if len(field.Names) > 0 {
				f.Names = append(f.Names, ast.NewIdent(field.Names[i].Name))
			}
		}
		merged.List = append(merged.List, f)
	}
	if len(all) > 0 {
		return nil
	}
	return merged
}

// mergeResults makes lit, what a variant returns after first, return first, too. It reports whether it can.
func mergeResults(lit *ast.FuncLit, first []ast.Expr, here []bool) bool {
	list := lit.Body.List
	rest := len(here) - count(here)
	if rest == 0 {
		lit.Body.List = append(list, &ast.ReturnStmt{Results: first})
		return true
	}
	if len(list) == 0 {
		return false
	}
	r, ok := list[len(list)-1].(*ast.ReturnStmt)
	if !ok || len(r.Results) != rest {
		return false
	}
	r.Results = merge(first, r.Results, here)
	return true
}
