package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Choice is R10: a value decides what becomes of tensors, or of numbers that stay on the
// device. The device computes both, and chooses.
//
//	norm := g.Norm().Item()         norm := g.Norm().F64()
//	if norm > limit {               asyncrt.Either(norm.Gt(asyncrt.Const(limit)), func() {
//		g = g.MulScalar(limit/norm)     	g = g.MulF64(asyncrt.Const(limit).Div(norm))
//	}                               }, nil, &g)
//
// It is a part of the round trips: the comparison is one of numbers, and so is what is assigned to them. What must not
// show, because the program does not do it, is in the hands of Either: it waits where it would. What is left to prove is that
// both sides only compute and assign, in ways that can't fail on values, and cost little.
var Choice = &Rewrite{
	ID:   "R10",
	Code: plan.ChosenThere,
	Does: "is a choice of the device, which computes both",
}

// candidates finds the statements that may become choices, and the definitions in their heads.
func (r *restater) candidates() {
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.IfStmt); ok && len(r.f.LoopsAround(s)) > 0 && r.inList(s) {
			r.ifs = append(r.ifs, s)
			if a, ok := s.Init.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
				r.heads[a] = s
			}
		}
		_, isLit := n.(*ast.FuncLit)
		return !isLit
	})
}

// choices finds the statements by which the device can choose.
func (r *restater) choices() {
	for _, s := range r.ifs {
		if r.chosen[s] == nil && r.decides(s) {
			r.choice(s)
		}
	}
}

// isTorn reports whether something that the head of a statement defines becomes a number, and the statement is no choice.
func (r *restater) isTorn() bool {
	for a, s := range r.heads {
		for _, lhs := range a.(*ast.AssignStmt).Lhs {
			if _, is := r.isNumber(lhs); is && r.chosen[s] == nil {
				return true
			}
		}
	}
	return false
}

// decides reports whether values decide in s, and nothing but what tensors and numbers of the device become.
func (r *restater) decides(s *ast.IfStmt) bool {
	if !r.valuedIf(s) {
		return false
	}
	vars, ok := r.targets(s)
	return ok && slices.ContainsFunc(vars, func(v *types.Var) bool { return r.f.Analysis.API.IsTensor(v.Type()) || r.numbers[v] })
}

// valuedIf reports whether one of the conditions of s depends on a value that is read.
func (r *restater) valuedIf(s *ast.IfStmt) bool {
	if r.valued(s.Cond, make(map[*types.Var]bool)) {
		return true
	}
	next, ok := s.Else.(*ast.IfStmt)
	return ok && r.valuedIf(next)
}

// targets returns the variables from outside that s assigns to, in order. It is not ok if s does anything else.
func (r *restater) targets(s *ast.IfStmt) (vars []*types.Var, ok bool) {
	ok = true
	visit := func(list []ast.Stmt) {
		for _, inner := range list {
			a, isAssign := inner.(*ast.AssignStmt)
			if !isAssign || len(a.Lhs) != len(a.Rhs) {
				ok = false
				return
			}
			for _, lhs := range a.Lhs {
				id, isID := ast.Unparen(lhs).(*ast.Ident)
				if !isID {
					ok = false
					return
				}
				v, isVar := r.f.Info.ObjectOf(id).(*types.Var)
				if !isVar {
					ok = ok && id.Name == "_"
					continue
				}
				if v.Pos() < s.Pos() || s.End() <= v.Pos() {
					if !slices.Contains(vars, v) {
						vars = append(vars, v)
					}
				}
			}
		}
	}
	for next := s; next != nil; {
		visit(next.Body.List)
		switch e := next.Else.(type) {
		case *ast.BlockStmt:
			visit(e.List)
			next = nil
		case *ast.IfStmt:
			next = e
			ok = ok && e.Init == nil
		default:
			next = nil
		}
	}
	return vars, ok
}

// choice makes s a choice of the device if it can be one, and remarks why not if it can't.
func (r *restater) choice(s *ast.IfStmt) {
	needs := make(map[*types.Var]bool)
	vars, _ := r.targets(s)
	var why *misfit
	for _, v := range vars {
		switch {
		case r.inner[v] || !r.f.CanCopy(v):
			why = &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which a function literal or a pointer leads to", "assign to a local variable"}
		case r.f.Analysis.API.IsTensor(v.Type()):
		case isFloat64(v.Type()):
			needs[v] = true
		default:
			why = &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which is neither a tensor nor a float64", "do that in another statement"}
		}
	}
	reads := r.itemsIn(s.Cond)
	if why == nil {
		why = r.condition(s, needs)
	}
	for next := s; next != nil && why == nil; next, _ = next.Else.(*ast.IfStmt) {
		why = r.arm(next.Body.List, needs)
		if e, ok := next.Else.(*ast.BlockStmt); ok && why == nil {
			why = r.arm(e.List, needs)
		}
	}
	if why == nil {
		why = r.variables(needs)
	}
	if why == nil {
		why = r.spoils(s, vars)
	}
	if why == nil {
		why = r.nameableIn(s, reads)
	}
	if why != nil {
		r.refuse(s.Cond, why)
		return
	}
	r.chosen[s] = vars
	for v := range needs {
		r.numbers[v] = true
	}
}

// nameableIn gives names to the reads in the condition of s.
func (r *restater) nameableIn(s *ast.IfStmt, reads []*ast.CallExpr) *misfit {
	if len(reads) > 0 && s.Init != nil {
		return &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " in the middle of a statement", "give the value a name before: v := " + types.ExprString(reads[0])}
	}
	return r.nameable(sink{arg: s.Cond, stmt: s})
}

// condition returns why the conditions of s have no form in numbers, or nil.
func (r *restater) condition(s *ast.IfStmt, needs map[*types.Var]bool) *misfit {
	if s.Init != nil {
		a, ok := s.Init.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || len(a.Lhs) != len(a.Rhs) {
			return &misfit{plan.NoNumber, s.Init.Pos(), "has a statement in the head of the if that is not a definition", "put it before"}
		}
		for i, lhs := range a.Lhs {
			v, ok := r.f.Info.Defs[lhs.(*ast.Ident)].(*types.Var)
			if !ok || !isFloat64(v.Type()) || !r.valued(a.Rhs[i], make(map[*types.Var]bool)) {
				return &misfit{plan.NoNumber, lhs.Pos(), "defines " + types.ExprString(lhs) + " in the head of the if", "put that before"}
			}
			needs[v] = true
		}
	}
	for next := s; next != nil; next, _ = next.Else.(*ast.IfStmt) {
		if why := r.compares(next.Cond, next == s, needs); why != nil {
			return why
		}
	}
	return nil
}

// compares returns why e, a condition, has no form in numbers, or nil. It may read values itself if first says that it
// is always evaluated.
func (r *restater) compares(e ast.Expr, first bool, needs map[*types.Var]bool) *misfit {
	no := &misfit{plan.NoNumber, e.Pos(), "tests " + types.ExprString(e) + ", which numbers have no form of", "compare numbers of type float64, each with a name"}
	if !first && len(r.itemsIn(e)) > 0 {
		return no
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return r.compares(e.X, first, needs)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			if why := r.compares(e.X, first, needs); why != nil {
				return why
			}
			return r.compares(e.Y, false, needs)
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
			for _, x := range []ast.Expr{e.X, e.Y} {
				if t := r.f.Info.TypeOf(x); !isFloat64(t) && r.f.Info.Types[x].Value == nil {
					return no
				}
				if why := r.fits(x, needs); why != nil {
					return why
				}
			}
			return nil
		}
	}
	return no
}

// arm returns why the statements on one side of a choice can't run though the program may not come to them, or nil.
func (r *restater) arm(list []ast.Stmt, needs map[*types.Var]bool) *misfit {
	for _, s := range list {
		a := s.(*ast.AssignStmt)
		for i, rhs := range a.Rhs {
			if reads := r.itemsIn(rhs); len(reads) > 0 {
				return &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " on one side of a choice", "give the value a name before: v := " + types.ExprString(reads[0])}
			}
			id := ast.Unparen(a.Lhs[i]).(*ast.Ident)
			v, _ := r.f.Info.ObjectOf(id).(*types.Var)
			switch t := r.f.Info.TypeOf(rhs); {
			case v == nil:
				return &misfit{plan.NoNumber, s.Pos(), "computes what it does not use", "leave it out"}
			case r.f.Analysis.API.IsTensor(t):
				if why := r.costsLittle(rhs); why != nil {
					return why
				}
			case isFloat64(v.Type()):
				needs[v] = true
				if why := r.fits(rhs, needs); why != nil {
					return why
				}
			default:
				return &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which is neither a tensor nor a float64", "do that in another statement"}
			}
		}
	}
	return nil
}

// A failing tensor on the side that is not taken would spoil what the device chooses. So each must go into what every
// side makes of a variable, or else its failure must have shown before: somebody has looked at what is made of it.

// spoils returns which tensor may spoil what s makes of vars though the program does not use it there, or nil.
func (r *restater) spoils(s *ast.IfStmt, vars []*types.Var) *misfit {
	for _, v := range vars {
		if !r.f.Analysis.API.IsTensor(v.Type()) {
			continue // numbers have been looked at
		}
		var sides []map[string]ast.Expr
		for next := s; next != nil; next, _ = next.Else.(*ast.IfStmt) {
			sides = append(sides, r.madeOf(v, next.Body.List))
			switch e := next.Else.(type) {
			case nil:
				sides = append(sides, r.madeOf(v, nil))
			case *ast.BlockStmt:
				sides = append(sides, r.madeOf(v, e.List))
			}
		}
		for _, side := range sides {
			for text, e := range side {
				everywhere := !slices.ContainsFunc(sides, func(other map[string]ast.Expr) bool { return other[text] == nil })
				if !everywhere && !r.isLookedAt(e, s) {
					return &misfit{plan.NoNumber, e.Pos(), "takes " + text + " on one side, and if that has failed, what the other side makes of " + v.Name() + " would be spoiled",
						"use it on both sides"}
				}
			}
		}
	}
	return nil
}

// madeOf returns the tensors that v is made of after the statements in list, by their texts.
func (r *restater) madeOf(v *types.Var, list []ast.Stmt) map[string]ast.Expr {
	known := make(map[types.Object]map[string]ast.Expr)
	of := func(v types.Object, at *ast.Ident) map[string]ast.Expr {
		if m, ok := known[v]; ok {
			return m
		}
		return map[string]ast.Expr{v.Name(): at}
	}
	for _, s := range list {
		a := s.(*ast.AssignStmt)
		made := make([]map[string]ast.Expr, len(a.Rhs))
		for i, rhs := range a.Rhs {
			made[i] = make(map[string]ast.Expr)
			ast.Inspect(rhs, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok || !r.f.Info.Types[e].IsValue() && r.f.Info.ObjectOf(identOf(e)) == nil || !r.f.Analysis.API.IsTensor(r.f.Info.TypeOf(e)) {
					return true
				}
				switch e := ast.Unparen(e).(type) {
				case *ast.Ident:
					maps.Copy(made[i], of(r.f.Info.ObjectOf(e), e))
				case *ast.CallExpr:
					if _, api, ok := r.f.Library(e); ok && api.Kind != tensorapi.Value {
						return true // it is made of its operands
					}
					made[i][types.ExprString(e)] = e
				default:
					made[i][types.ExprString(e)] = e
				}
				return false
			})
		}
		for i, lhs := range a.Lhs {
			known[r.f.Info.ObjectOf(ast.Unparen(lhs).(*ast.Ident))] = made[i]
		}
	}
	return of(v, ast.NewIdent(v.Name()))
}

func identOf(e ast.Expr) *ast.Ident {
	id, _ := e.(*ast.Ident)
	return id
}

// isLookedAt reports whether the program has looked at something that fails if e, a variable, has failed, in the
// condition of s or in the statements right before it that nothing else shows in.
func (r *restater) isLookedAt(e ast.Expr, s *ast.IfStmt) bool {
	id, ok := e.(*ast.Ident)
	if !ok || r.f.Info.Uses[id] == nil {
		return false
	}
	failing := map[types.Object]bool{r.f.Info.Uses[id]: true}
	looks := func(n ast.Node) bool {
		return slices.ContainsFunc(r.itemsIn(n), func(read *ast.CallExpr) bool {
			return r.f.AlwaysFirst(read, n) && r.fails(ast.Unparen(read.Fun).(*ast.SelectorExpr).X, failing)
		})
	}
	if s.Init != nil && looks(s.Init) || looks(s.Cond) {
		return true
	}
	all := list(r.f.Parent(s))
	for i := slices.Index(all, ast.Stmt(s)) - 1; i >= 0; i-- {
		a, ok := all[i].(*ast.AssignStmt)
		if !ok {
			return false
		}
		for _, lhs := range a.Lhs {
			if id, ok := ast.Unparen(lhs).(*ast.Ident); !ok || failing[r.f.Info.ObjectOf(id)] {
				return false
			}
		}
		if looks(a) {
			return true
		}
	}
	return false
}

// mayDivide are operations that fail on values only if these are integers: then Either lets nothing run that the program
// does not come to.
var mayDivide = set("Div DivScalar DivF64")

// costly are operations that are not done in vain.
var costly = set("MatMul CrossEntropy Forward Concat Stack")

// costsLittle returns why computing e can't be in vain, or nil.
func (r *restater) costsLittle(e ast.Expr) (why *misfit) {
	no := func(n ast.Node, text string) {
		if why == nil {
			why = &misfit{plan.NoNumber, n.Pos(), text + " on one side of a choice", "do it before"}
		}
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.TypeAssertExpr, *ast.CompositeLit:
			no(n, "computes "+types.ExprString(n.(ast.Expr)))
		case *ast.Ident:
			v, ok := r.f.Info.Uses[n].(*types.Var)
			if ok && (isFloat64(v.Type()) || isIndex(v.Type())) && r.valued(n, make(map[*types.Var]bool)) && !r.inSink(n) {
				no(n, "looks at "+v.Name())
			}
		case *ast.CallExpr:
			if r.f.Info.Types[n.Fun].IsType() {
				break
			}
			fn, api, ok := r.f.Library(n)
			switch {
			case !ok:
				no(n, "calls "+types.ExprString(n.Fun))
			case costly[fn.Name()], fn.Name() == "As":
				no(n, "calls "+types.ExprString(n.Fun)+", which costs too much")
			case api.Kind == tensorapi.View, api.Kind == tensorapi.Meta, api.Kind == tensorapi.Value:
			case api.Kind == tensorapi.Op && (api.Batch == tensorapi.Batched || mayDivide[fn.Name()]):
			default:
				no(n, "calls "+types.ExprString(n.Fun)+", which may fail on values,")
			}
		}
		return why == nil
	})
	return why
}

// inSink reports whether n is a part of what an operation takes as a number.
func (r *restater) inSink(n ast.Node) bool {
	for p := n; p != nil; p = r.f.Parent(p) {
		if call, ok := r.f.Parent(p).(*ast.CallExpr); ok && r.sinks[call].arg == p {
			return true
		}
	}
	return false
}

// restateChoice makes the edits for s, by which the device chooses.
func (r *restater) restateChoice(s *ast.IfStmt) {
	open := load.RestatedRuntime + ".Either("
	if s.Init == nil {
		r.replace(s.Pos(), s.Cond.Pos(), open)
	} else {
		a := s.Init.(*ast.AssignStmt)
		r.replace(s.Pos(), a.Pos(), "{ ")
		raise := ""
		for i, lhs := range a.Lhs {
			r.value(a, a.Rhs[i])
			raise += lhs.(*ast.Ident).Name + ".Item(); "
		}
		r.replace(a.End(), s.Cond.Pos(), "; "+raise+open)
	}
	vars := ""
	for _, v := range r.chosen[s] {
		vars += ", &" + v.Name()
	}
	r.restateArms(s, vars)
	if s.Init != nil {
		r.insert(s.End(), " }")
	}
}

// restateArms makes the edits for the condition of s and for what follows it, in a call of Either that ends with vars.
func (r *restater) restateArms(s *ast.IfStmt, vars string) {
	r.comparison(s.Cond)
	r.replace(s.Cond.End(), s.Body.Lbrace+1, ", func() {")
	for _, inner := range s.Body.List {
		r.restate(inner)
	}
	switch e := s.Else.(type) {
	case *ast.BlockStmt:
		r.replace(s.Body.Rbrace+1, e.Lbrace+1, ", func() {")
		for _, inner := range e.List {
			r.restate(inner)
		}
		r.insert(e.Rbrace+1, vars+")")
	case *ast.IfStmt:
		r.replace(s.Body.Rbrace+1, e.Cond.Pos(), ", func() { "+load.RestatedRuntime+".Either(")
		r.restateArms(e, vars)
		r.insert(e.End(), " }"+vars+")")
	default:
		r.insert(s.Body.Rbrace+1, ", nil"+vars+")")
	}
}

// comparison makes e one of numbers.
func (r *restater) comparison(e ast.Expr) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		r.drop(e.Pos(), x.X.Pos())
		r.comparison(x.X)
		r.drop(x.X.End(), e.End())
	case *ast.UnaryExpr:
		r.drop(e.Pos(), x.X.Pos())
		r.comparison(x.X)
		r.insert(e.End(), ".Not()")
	case *ast.BinaryExpr:
		operands := r.number
		method, ok := tensorapi.ConditionOperator(x.Op.String())
		if ok {
			operands = r.comparison
		} else {
			method, _ = tensorapi.NumberOperator(x.Op.String())
		}
		operands(x.X)
		r.replace(x.X.End(), x.Y.Pos(), "."+method+"(")
		operands(x.Y)
		r.insert(x.Y.End(), ")")
	}
}

// chosenRemarks say which statements are choices of the device.
func (r *restater) chosenRemarks() (applied []plan.Remark) {
	for s, vars := range r.chosen {
		var names []string
		for _, v := range vars {
			names = append(names, v.Name())
		}
		applied = append(applied, plan.Remark{Code: Choice.Code, Rule: Choice.ID, Verdict: plan.Applied, Pos: r.f.Position(s.Pos()), Function: r.f.Decl.Name.Name,
			Message: "what becomes of " + strings.Join(names, ", ") + " " + Choice.Does})
	}
	return applied
}
