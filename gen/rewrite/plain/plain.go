// Package plain writes the loops of a function in plain form, in which they can be planned part by part: what comes
// after a continue is in the if then, each assignment is of one thing, and conditions are taken apart.
package plain

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// Rewrite is plain-form: a loop is written in another form, if it gains from it.
//
//	if (i+1)%every != 0 {        if !((i+1)%every != 0) {
//		continue                     acc := x.Mean().Item()
//	}                     to     }
//	acc := x.Mean().Item()
//
//	sum, n = 0, 0         to     sum = 0; n = 0
//
//	if i%8 == 7 && x.Max().Item() > most {     to     if i%8 == 7 { if x.Max().Item() > most {
//
//	if y := x.Sum(); y.Item() > most {         to     { y := x.Sum(); if y.Item() > most {
//
//	} else if n++; n > most {                  to     } else { n++; if n > most {
//
// What comes after a continue is in the if then, so that it is known to run seldom, or by which value it is chosen.
// Of an assignment one half may come later than the other. What a condition reads is computed at a place of its own.
var Rewrite = &plan.Rewrite{
	Name: "plain-form",
	Code: plan.PlainForm,
	Does: "is written in another form first",
}

// A writer finds the edits that write the loops of a function in plain form.
type writer struct {
	f     *plan.Function
	edits []load.Edit
	at    []ast.Stmt // what is written otherwise
}

// Form returns f with its loops in plain form, and remarks on what is written otherwise. The function is nil if nothing
// is.
func Form(f *plan.Function) (plain *plan.Function, made []plan.Remark) {
	w := &writer{f: f}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ForStmt:
			w.loop(n.Body)
		case *ast.RangeStmt:
			w.loop(n.Body)
		}
		return true
	})
	if len(w.edits) == 0 {
		return nil, nil
	}
	g, err := f.Restate(w.edits)
	if err != nil {
		return nil, nil
	}
	for _, s := range w.at {
		made = append(made, Rewrite.Made(f, s.Pos(), firstLine(f, s)))
	}
	return g, made
}

// firstLine is the first line of s.
func firstLine(f *plan.Function, s ast.Stmt) string {
	first, _, _ := strings.Cut(f.Text(s.Pos(), s.End()), "\n")
	return strings.TrimSuffix(first, " {")
}

func (w *writer) edit(from, to token.Pos, text string) {
	w.edits = append(w.edits, load.Edit{Pos: from, End: to, Text: text})
}

func (w *writer) loop(body *ast.BlockStmt) {
	w.nest(body.List, body.Rbrace)
	w.split(body)
}

// nest puts what follows an if that goes on with the next iteration into it. list are the last statements of a body
// of a loop, up to end.
func (w *writer) nest(list []ast.Stmt, end token.Pos) {
	closing := ""
	for i, s := range list {
		n, ok := s.(*ast.IfStmt)
		if !ok {
			continue
		}
		if i == len(list)-1 {
			for n != nil {
				w.nest(n.Body.List, n.Body.Rbrace)
				switch e := n.Else.(type) {
				case *ast.IfStmt:
					n = e
					continue
				case *ast.BlockStmt:
					w.nest(e.List, e.Rbrace)
				}
				n = nil
			}
			continue
		}
		if n.Else != nil || len(n.Body.List) == 0 || !isContinue(n.Body.List[len(n.Body.List)-1]) || hides(n.Init, list[i+1:]) {
			continue
		}
		last := n.Body.List[len(n.Body.List)-1]
		switch {
		case len(n.Body.List) > 1:
			w.edit(n.Body.List[len(n.Body.List)-2].End(), last.End(), "")
			w.edit(n.End(), n.End(), " else {")
		case w.f.HasComments(n.Body):
			continue
		default:
			w.edit(n.Cond.Pos(), n.Body.End(), w.negated(n.Cond)+" {")
		}
		w.at = append(w.at, n)
		closing += "}; "
	}
	if closing != "" {
		w.edit(end, end, closing)
	}
}

// negated returns the text of an expression that is true if e is false.
func (w *writer) negated(e ast.Expr) string {
	opposite := map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR}
	whole := w.f.Text(e.Pos(), e.End())
	switch n := e.(type) {
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			return w.f.Text(n.X.Pos(), n.X.End())
		}
	case *ast.BinaryExpr:
		op, isComparison := opposite[n.Op]
		if !isComparison {
			break
		}
		if n.Op == token.EQL || n.Op == token.NEQ || syntax.IsInteger(w.f.Info.TypeOf(n.X)) { // NaN is neither
			return w.f.Text(e.Pos(), n.OpPos) + op.String() + w.f.Text(n.OpPos+token.Pos(len(n.Op.String())), e.End())
		}
	case *ast.ParenExpr, *ast.CallExpr, *ast.Ident:
		return "!" + whole
	}
	return "!(" + whole + ")"
}

// hides reports whether init, of an if, declares a name that occurs in list, where it means something else.
func hides(init ast.Stmt, list []ast.Stmt) (found bool) {
	a, ok := init.(*ast.AssignStmt)
	if !ok || a.Tok != token.DEFINE {
		return false
	}
	for _, lhs := range a.Lhs {
		for _, s := range list {
			ast.Inspect(s, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				found = found || ok && id.Name == lhs.(*ast.Ident).Name
				return !found
			})
		}
	}
	return found
}

// isContinue reports whether s is a continue without a label.
func isContinue(s ast.Stmt) bool {
	b, ok := s.(*ast.BranchStmt)
	return ok && b.Tok == token.CONTINUE && b.Label == nil
}

// split makes single assignments of those in body whose parts have nothing to do with each other.
func (w *writer) split(body *ast.BlockStmt) {
	for _, s := range body.List {
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt:
				return false
			case *ast.BlockStmt:
				w.splitIn(n.List)
			case *ast.CaseClause:
				w.splitIn(n.Body)
			}
			return true
		})
	}
	w.splitIn(body.List)
}

func (w *writer) splitIn(list []ast.Stmt) {
	for _, s := range list {
		if n, ok := s.(*ast.IfStmt); ok {
			w.condition(n)
			continue
		}
		a, ok := s.(*ast.AssignStmt)
		if !ok || a.Tok != token.ASSIGN || len(a.Lhs) < 2 || len(a.Lhs) != len(a.Rhs) || !w.isApart(a) {
			continue
		}
		var parts []string
		for i, lhs := range a.Lhs {
			parts = append(parts, w.f.Text(lhs.Pos(), lhs.End())+" = "+w.f.Text(a.Rhs[i].Pos(), a.Rhs[i].End()))
		}
		w.edit(a.Pos(), a.End(), strings.Join(parts, "; "))
		w.at = append(w.at, a)
	}
}

// condition takes the head of n apart. These become statements of their own: what it does first, unless that defines
// numbers; the tensor that it defines; what it asks before it reads.
func (w *writer) condition(n *ast.IfStmt) {
	if n.Init != nil && !isDefinition(n.Init) {
		w.edit(n.Pos(), n.Init.Pos(), "")
		w.edit(n.Init.End(), n.Cond.Pos(), "; if ")
		w.at = append(w.at, n)
	}
	for e, ok := n.Else.(*ast.IfStmt); ok; e, ok = e.Else.(*ast.IfStmt) {
		if e.Init != nil {
			w.edit(e.Pos(), e.Init.Pos(), "{ ")
			w.edit(e.Init.End(), e.Cond.Pos(), "; if ")
			w.edit(n.End(), n.End(), " }")
			w.at = append(w.at, e)
		}
	}
	if len(n.Body.List) > 0 && isContinue(n.Body.List[len(n.Body.List)-1]) {
		return // see nest
	}
	parts := plan.Conjuncts(n.Cond)
	first := slices.IndexFunc(parts, w.reads)
	defines := w.definesTensor(n.Init) && first >= 0
	divides := n.Else == nil && first > 0 && parts[0].Pos() == n.Cond.Pos() && strings.TrimSpace(w.f.Text(parts[first-1].End(), parts[first].Pos())) == "&&"
	if defines {
		w.edit(n.Pos(), n.Init.Pos(), "{ ")
		w.edit(n.Init.End(), n.Cond.Pos(), "; if ")
	}
	closing := ""
	if divides {
		w.edit(parts[first-1].End(), parts[first].Pos(), " { if ")
		closing += " }"
	}
	if defines {
		closing += " }"
	}
	if closing != "" {
		w.edit(n.End(), n.End(), closing)
		w.at = append(w.at, n)
	}
}

// isDefinition reports whether s is x := y.
func isDefinition(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && a.Tok == token.DEFINE
}

// definesTensor reports whether s defines one variable, a tensor.
func (w *writer) definesTensor(s ast.Stmt) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && a.Tok == token.DEFINE && len(a.Lhs) == 1 && w.f.Analysis.API.IsTensor(w.f.Info.TypeOf(a.Lhs[0]))
}

// reads reports whether e waits for a value.
func (w *writer) reads(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			_, api, ok := w.f.Library(call)
			found = found || ok && api.Waits()
		}
		_, isLit := n.(*ast.FuncLit)
		return !found && !isLit
	})
	return found
}

// isApart reports whether variables, or fields of one variable, get constants, and values of other variables.
func (w *writer) isApart(a *ast.AssignStmt) bool {
	base := func(e ast.Expr) types.Object { // of x.f
		if sel, ok := e.(*ast.SelectorExpr); ok {
			id, ok := sel.X.(*ast.Ident)
			if s := w.f.Info.Selections[sel]; ok && s != nil && len(s.Index()) == 1 { // not through an embedded pointer
				return w.f.Info.Uses[id]
			}
		}
		return nil
	}
	set := make(map[types.Object]bool)
	for _, e := range a.Lhs {
		id, isName := e.(*ast.Ident)
		switch {
		case isName && id.Name != "_":
			set[w.f.Info.ObjectOf(id)] = true
		case base(e) == nil || base(e) != base(a.Lhs[0]):
			return false
		}
	}
	return !set[base(a.Lhs[0])] && !slices.ContainsFunc(a.Rhs, func(e ast.Expr) bool {
		if w.f.Info.Types[e].Value != nil {
			return false
		}
		id, isName := e.(*ast.Ident)
		if !isName || set[w.f.Info.ObjectOf(id)] {
			return true
		}
		switch w.f.Info.TypeOf(e).Underlying().(type) {
		case *types.Struct, *types.Array: // which the fields may be in
			return true
		}
		return false
	})
}
