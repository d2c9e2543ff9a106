package plan

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"golang.org/x/tools/go/types/typeutil"
)

// findOwners finds the local variables whose memory nothing else leads to:
// every value they are given is new, and no use hands it on before the
// function returns, or only the last one.
func (f *Function) findOwners() {
	ok := make(map[*types.Var]bool)
	var order []*ast.Ident
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if id, isID := n.(*ast.Ident); isID {
			if v := f.variable(id); v != nil && f.isLocal(v) && leads(v.Type()) {
				if _, seen := ok[v]; !seen {
					f.fact(v).remade = f.remakes(v)
					ok[v] = v.Pos() >= f.Decl.Body.Pos() || f.fact(v).isResult || f.fact(v).remade != nil
				}
				order = append(order, id)
			}
		}
		return true
	})
	defs, handed := make(map[*types.Var]*ast.Ident), make(map[*types.Var]*ast.Ident)
	for _, id := range order {
		v := f.variable(id)
		if f.Info.Defs[id] != nil {
			defs[v] = id
		}
		switch {
		case !ok[v] || f.isBefore(id, v) || f.keepsOwner(id, v):
		case handed[v] == nil && f.handsOn(id, defs[v]):
			handed[v] = id
		default:
			ok[v] = false
		}
	}
	for _, id := range order {
		v := f.variable(id)
		if last := handed[v]; last != nil && (id.Pos() > last.Pos() || f.literalAround(id) != f.literalAround(last)) {
			ok[v] = false
		}
	}
	for _, id := range order {
		if of := f.fact(f.variable(id)).of; of != nil && handed[of] != nil && id.Pos() > handed[of].Pos() {
			ok[of] = false
		}
	}
	for v, own := range ok {
		// the variable of a clause of a type switch has what is switched over
		if own && (defs[v] != nil || f.fact(v).isResult || f.fact(v).remade != nil) {
			f.fact(v).own, f.fact(v).handed, f.fact(v).rows = true, handed[v], handed[v] == nil && f.ownsRows(v)
		}
	}
}

// remakes returns the statement of f that gives the parameter v memory of its own, whatever f does then: tokens =
// slices.Clone(tokens). It is nil if there is none.
func (f *Function) remakes(v *types.Var) ast.Stmt {
	if v.Pos() >= f.Decl.Body.Pos() || f.fact(v).isResult || f.Goto() != nil {
		return nil
	}
	for _, s := range f.Decl.Body.List {
		a, ok := s.(*ast.AssignStmt)
		if ok && a.Tok == token.ASSIGN && len(a.Lhs) == 1 && len(a.Rhs) == 1 && f.Variable(a.Lhs[0]) == v && f.isNew(a.Rhs[0], new(types.Var)) {
			return s
		}
		literal := false
		ast.Inspect(s, func(n ast.Node) bool {
			_, ok := n.(*ast.FuncLit)
			literal = literal || ok
			return !literal
		})
		if literal {
			return nil // it may use the variable later
		}
	}
	return nil
}

// isBefore reports whether id, which means v, stands where v does not have the memory of its own yet.
func (f *Function) isBefore(id *ast.Ident, v *types.Var) bool {
	s := f.fact(v).remade
	return s != nil && id.Pos() < s.End()
}

// handsOn reports whether id, a use of the variable that def declares, makes something else lead to its memory,
// once for each instance of the variable: next, of kept = next.
func (f *Function) handsOn(id, def *ast.Ident) bool {
	if def == nil || id == def || !slices.Equal(f.LoopsAround(id), f.LoopsAround(def)) {
		return false
	}
	if p, ok := f.parents[def].(*ast.AssignStmt); ok {
		if _, ok := f.parents[p].(*ast.ForStmt); ok {
			return false // the next iteration has a copy
		}
	}
	switch p := f.parents[id].(type) {
	case *ast.AssignStmt:
		return slices.Contains(p.Rhs, ast.Expr(id))
	case *ast.CompositeLit:
		return p.Type != id
	case *ast.KeyValueExpr:
		return p.Value == id
	case *ast.CallExpr:
		if f.builtin(p) == "" {
			return p.Fun != id && !f.Info.Types[p.Fun].IsType() && !f.startsElsewhere(p)
		}
		return f.builtin(p) == "append" && p.Args[0] != id && !p.Ellipsis.IsValid()
	}
	return false
}

// isReturned reports whether f returns e.
func (f *Function) isReturned(e ast.Expr) bool {
	_, ok := f.parents[e].(*ast.ReturnStmt)
	return ok && !f.inLiteral(e)
}

// leads reports whether values of type t lead to memory in one step.
func leads(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Slice, *types.Map, *types.Pointer:
		return true
	}
	return false
}

// keepsOwner reports whether one use of v keeps the memory it leads to its own.
func (f *Function) keepsOwner(id *ast.Ident, v *types.Var) bool {
	switch p := f.parents[id].(type) {
	case *ast.IndexExpr:
		return p.X == id
	case *ast.SelectorExpr:
		sel := f.Info.Selections[p]
		return p.X == id && sel != nil && sel.Kind() == types.FieldVal
	case *ast.StarExpr:
		return true
	case *ast.SliceExpr:
		call, ok := f.parents[p].(*ast.CallExpr)
		return p.X == id && (f.comesBack(p, v) || f.isReturned(p) || f.looksInto(p, v) || ok && f.isMadeOf(call) || f.isLookedAt(p, v))
	case *ast.RangeStmt:
		return p.X == id
	case *ast.BinaryExpr:
		return true // compared, with nil
	case *ast.ReturnStmt:
		return f.isReturned(id)
	case *ast.AssignStmt:
		for i, lhs := range p.Lhs {
			if lhs == id {
				return len(p.Rhs) == len(p.Lhs) && f.isNew(p.Rhs[i], v)
			}
		}
		return f.isLookedAt(id, v)
	case *ast.ValueSpec:
		for i, name := range p.Names {
			if name == id {
				return len(p.Values) == 0 || len(p.Values) == len(p.Names) && f.isNew(p.Values[i], v)
			}
		}
		return false
	case *ast.CallExpr:
		return f.onlyLooks(p, id, v)
	}
	return false
}

// inLiteral reports whether n stands in a function literal.
func (f *Function) inLiteral(n ast.Node) bool {
	for ; n != nil; n = f.parents[n] {
		if _, ok := n.(*ast.FuncLit); ok {
			return true
		}
	}
	return false
}

// assignsTo reports whether e is what v is assigned.
func (f *Function) assignsTo(e ast.Expr, v *types.Var) bool {
	a, ok := f.parents[e].(*ast.AssignStmt)
	if !ok || len(a.Lhs) != len(a.Rhs) {
		return false
	}
	for i, rhs := range a.Rhs {
		if rhs == e {
			id, ok := a.Lhs[i].(*ast.Ident)
			return ok && f.variable(id) == v
		}
	}
	return false
}

// looksInto reports whether nothing keeps e, a part of the memory of v.
func (f *Function) looksInto(e *ast.SliceExpr, v *types.Var) bool {
	switch p := f.parents[e].(type) {
	case *ast.IndexExpr:
		return p.X == e
	case *ast.RangeStmt:
		return p.X == e
	case *ast.CallExpr:
		return f.onlyLooks(p, e, v)
	}
	return false
}

// comesBack reports whether v is assigned e, a part of its memory, or what is made of that by appending or slicing.
func (f *Function) comesBack(e ast.Expr, v *types.Var) bool {
	switch p := f.parents[e].(type) {
	case *ast.SliceExpr:
		return p.X == e && f.comesBack(p, v)
	case *ast.CallExpr:
		return f.builtin(p) == "append" && p.Args[0] == e && f.comesBack(p, v)
	}
	return f.assignsTo(e, v)
}

// isNew reports whether e makes new memory, or is memory that v owns already.
func (f *Function) isNew(e ast.Expr, v *types.Var) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CompositeLit:
		return true
	case *ast.UnaryExpr:
		_, ok := ast.Unparen(e.X).(*ast.CompositeLit)
		return e.Op == token.AND && ok
	case *ast.Ident:
		return f.Info.Types[e].IsNil()
	case *ast.SliceExpr:
		id, ok := ast.Unparen(e.X).(*ast.Ident)
		return ok && f.variable(id) == v
	case *ast.CallExpr:
		if f.Info.Types[e.Fun].IsType() {
			_, ofString := f.Info.TypeOf(e.Args[0]).Underlying().(*types.Basic)
			return ofString || f.isNew(e.Args[0], v)
		}
		switch f.builtin(e) {
		case "make", "new":
			return true
		case "append":
			if id, ok := ast.Unparen(e.Args[0]).(*ast.Ident); ok && f.variable(id) == v {
				return true
			}
			return f.isNew(e.Args[0], v)
		}
		if fn := typeutil.StaticCallee(f.Info, e); fn != nil {
			if _, api, ok := f.Library(e); ok {
				return api.Kind == tensorapi.Pure && fn.Name() == "ConstInts"
			}
			fact := facts.Of(fn)
			return fact != nil && fact.Has(facts.Fresh)
		}
	}
	return false
}

// isLookedAt reports whether e, which is v or a part of it, is assigned to a variable that is for looking at parts of v
// alone: window := tokens[from:].
func (f *Function) isLookedAt(e ast.Expr, v *types.Var) bool {
	a, ok := f.parents[e].(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return false
	}
	id, ok := a.Lhs[0].(*ast.Ident)
	if !ok {
		return false
	}
	w := f.variable(id)
	if w == nil || w == v || w.Pos() < f.Decl.Body.Pos() || !f.CanCopy(w) {
		return false
	}
	only := true
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && f.variable(id) == w {
			only = only && f.looksAtPart(id, w, v)
		}
		return only
	})
	if only {
		f.fact(w).of = v
	}
	return only
}

// looksAtPart reports whether id, a use of w, looks at a part of v, or makes w one.
func (f *Function) looksAtPart(id *ast.Ident, w, v *types.Var) bool {
	switch p := f.parents[id].(type) {
	case *ast.AssignStmt:
		if len(p.Lhs) != 1 || len(p.Rhs) != 1 || p.Lhs[0] != id {
			return false
		}
		of := ast.Unparen(p.Rhs[0])
		if s, ok := of.(*ast.SliceExpr); ok {
			of = ast.Unparen(s.X)
		}
		return f.Variable(of) == v || f.Variable(of) == w
	case *ast.SliceExpr:
		call, ok := f.parents[p].(*ast.CallExpr)
		return p.X == id && (f.assignsTo(p, w) || ok && f.isMadeOf(call))
	case *ast.CallExpr:
		return (f.builtin(p) == "len" || f.isMadeOf(p)) && !f.inLiteral(p)
	}
	return false
}

// PartOf returns the owner of the memory that v is for looking at a part of, or nil.
func (f *Function) PartOf(v *types.Var) *types.Var {
	if facts := f.facts[v]; facts != nil && facts.of != nil && f.Owns(facts.of) {
		return facts.of
	}
	return nil
}

// isMadeOf reports whether call makes a tensor of numbers, which copies them.
func (f *Function) isMadeOf(call *ast.CallExpr) bool {
	fn, _, ok := f.Library(call)
	return ok && slices.Contains([]string{"From", "FromOn", "FromI64", "Of"}, fn.Name())
}

// Owns reports whether nothing leads to the memory of v but v, before its last use.
func (f *Function) Owns(v *types.Var) bool {
	return v != nil && f.facts[v] != nil && f.facts[v].own && !f.facts[v].address
}

// onlyLooks reports whether a call that is given v does not keep it.
func (f *Function) onlyLooks(call *ast.CallExpr, id ast.Expr, v *types.Var) bool {
	switch f.builtin(call) {
	case "len", "cap", "copy", "delete", "clear":
		return true
	case "append":
		return call.Args[0] == id && (f.comesBack(call, v) || f.isReturned(call)) || call.Ellipsis.IsValid() && call.Args[0] != id
	}
	fn := typeutil.StaticCallee(f.Info, call)
	if fn == nil {
		return false
	}
	if _, ok := f.Analysis.API.Lookup(fn); ok {
		return true // tensors copy what they are made of
	}
	if fact := facts.Of(fn); fact == nil || fact.Has(facts.Blocks|facts.Lazy) {
		return false
	}
	s := f.slotOf(call, fn, id)
	return s.Word != 0 && !s.Has(facts.Keeps|facts.Returns|facts.Fills|facts.Calls) && !(s.Has(facts.Formats) && formatsItself(v.Type(), make(map[types.Type]bool)))
}
