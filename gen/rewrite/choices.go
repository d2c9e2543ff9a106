package rewrite

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Choice is device-select: a value decides what becomes of tensors, or of numbers that stay on the
// device. The device computes both, and chooses.
//
//	norm := g.Norm().Item()         norm := g.Norm().F64()
//	if norm > limit {               asyncrt.Either(norm.Gt(asyncrt.Const(limit)), func() {
//		g = g.MulScalar(limit/norm)     	g = g.MulF64(asyncrt.Const(limit).Div(norm))
//	}                               }, nil, &g)
//
// It is a part of the round trips: the comparison is one of numbers, and so is what is assigned to
// them. What must not show, because the program does not do it, is in the hands of Either: it waits
// where it would. What is left to prove is that both sides only compute and assign, in ways that
// can't fail on values, and cost little. What else the sides do, the host does in a statement of
// its own: see divided.go.
var Choice = &Rewrite{
	Name: "device-select",
	Was:  "R10",
	Code: plan.ChosenThere,
	Does: "is a choice of the device, which computes both",
}

// A choice says what becomes of a statement, an if or a switch, by which the device chooses.
type choice struct {
	vars   []*types.Var          // what it chooses
	device map[ast.Stmt]bool     // the statements of the sides that it runs
	host   bool                  // there are others, which the host runs
	first  bool                  // the device's come first; else after those of the host
	copies map[*types.Var]string // of numbers that the conditions mention and that the device chooses first
}

// candidates finds the statements that may become choices, inner ones first, and the definitions in their heads.
func (r *restater) candidates() {
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.IfStmt:
			if len(r.f.LoopsAround(s)) > 0 && r.inList(s) {
				r.ifs = append(r.ifs, s)
				if a, ok := s.Init.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
					r.heads[a] = s
				}
			}
		case *ast.SwitchStmt:
			if len(r.f.LoopsAround(s)) > 0 && r.inList(s) && s.Init == nil {
				r.ifs = append(r.ifs, s)
			}
		}
		_, isLit := n.(*ast.FuncLit)
		return !isLit
	})
	slices.Reverse(r.ifs)
}

// choices finds the statements by which the device can choose.
func (r *restater) choices() {
	if r.heads == nil {
		r.heads = make(map[ast.Stmt]*ast.IfStmt)
		r.candidates()
	}
	for _, s := range r.ifs {
		if c := r.chosen[s]; c != nil && !r.isLeftToHost(s, c) {
			continue
		}
		delete(r.chosen, s)
		if all, ok := sides(s); ok && r.valuesDecide(s, all) {
			r.choice(s, all)
		}
	}
}

// valuesDecide reports whether one of the conditions in s depends on a value that is read.
func (r *restater) valuesDecide(s ast.Stmt, all []side) bool {
	tag := tagOf(s)
	return tag != nil && r.isValued(tag) || slices.ContainsFunc(all, func(x side) bool { return slices.ContainsFunc(x.when, r.isValued) })
}

// isLeftToHost reports whether c leaves it to the host to set what has become a number since.
func (r *restater) isLeftToHost(s ast.Stmt, c *choice) bool {
	all, _ := sides(s)
	for _, x := range all {
		for _, inner := range x.body {
			if !c.device[inner] && slices.ContainsFunc(r.assignedIn(inner), func(v *types.Var) bool { return r.numbers[v] }) {
				return true
			}
		}
	}
	return false
}

// isTorn reports whether something that the head of a statement defines becomes a number, and the
// statement is no choice.
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

// isValued reports whether e depends on a value that is read.
func (r *restater) isValued(e ast.Expr) bool { return r.valued(e, make(map[*types.Var]bool)) }

// choice makes s, with the given sides, a choice of the device if it can be one, and remarks why not if it can't.
func (r *restater) choice(s ast.Stmt, all []side) {
	c, needs, why := r.chooses(s, all, true)
	if why != nil {
		if other, n, w := r.chooses(s, all, false); w == nil {
			c, needs, why = other, n, nil
		}
	}
	switch {
	case why != nil:
		r.refuse(conditionOf(s), why)
	case c != nil:
		r.chosen[s] = c
		for v := range needs {
			r.numbers[v] = true
		}
	}
}

// chooses returns how the device chooses in s, and which variables have to be numbers for that; or
// why it can't. With floats it computes all float64s that s sets, else only those that are numbers
// already. The choice is nil if there is nothing to choose.
func (r *restater) chooses(s ast.Stmt, all []side, floats bool) (*choice, map[*types.Var]bool, *misfit) {
	needs := make(map[*types.Var]bool)
	c, why := r.divide(s, all, floats)
	if why != nil || len(c.vars) == 0 || !slices.ContainsFunc(c.vars, r.matters) {
		return nil, nil, why
	}
	for _, v := range c.vars {
		switch {
		case r.inner[v] || !r.f.CanCopy(v):
			return nil, nil, &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which a function literal or a pointer leads to", "assign to a local variable"}
		case r.f.Analysis.API.IsTensor(v.Type()):
		case isFloat64(v.Type()) || isIndex(v.Type()) && r.numbers[v]:
			needs[v] = true
		default:
			return nil, nil, &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which is neither a tensor nor a float64", "do that in another statement"}
		}
	}
	reads := r.itemsIn(conditionOf(s))
	why = r.condition(s, all, needs)
	for _, x := range all {
		if why == nil {
			why = r.arm(x.body, c, needs)
		}
	}
	if why == nil {
		why = r.variables(needs)
	}
	if why == nil {
		why = r.spoils(s, all, c)
	}
	if why == nil {
		why = r.inTurn(s, all, c, needs)
	}
	if why == nil {
		why = r.nameableIn(s, reads)
	}
	return c, needs, why
}

// matters reports whether the device needs v: it is a tensor or a number, or an operation takes it,
// or what is made of it.
func (r *restater) matters(v *types.Var) bool {
	return r.f.Analysis.API.IsTensor(v.Type()) || r.numbers[v] || r.feeds(v, make(map[*types.Var]bool))
}

// feeds reports whether an operation takes v, a float64, as a number, or something that is made of it.
func (r *restater) feeds(v *types.Var, seen map[*types.Var]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for _, id := range r.uses[v] {
		for n := ast.Node(id); n != nil; n = r.f.Parent(n) {
			if call, ok := r.f.Parent(n).(*ast.CallExpr); ok {
				if s, ok := r.sinkOf(call); ok && s.arg == n {
					return true
				}
			}
			if a, ok := r.f.Parent(n).(*ast.AssignStmt); ok {
				i := slices.Index(a.Rhs, ast.Expr(nil))
				if e, ok := n.(ast.Expr); ok {
					i = slices.Index(a.Rhs, e)
				}
				if i < 0 || len(a.Lhs) != len(a.Rhs) {
					break
				}
				if to, ok := ast.Unparen(a.Lhs[i]).(*ast.Ident); ok {
					if w, ok := r.f.Info.ObjectOf(to).(*types.Var); ok && isFloat64(w.Type()) && r.feeds(w, seen) {
						return true
					}
				}
				break
			}
		}
	}
	return false
}

// conditionOf returns the first expression by which s decides.
func conditionOf(s ast.Stmt) ast.Expr {
	switch s := s.(type) {
	case *ast.IfStmt:
		return s.Cond
	case *ast.SwitchStmt:
		if s.Tag != nil {
			return s.Tag
		}
		return s.Body.List[0].(*ast.CaseClause).List[0]
	}
	return nil
}

// nameableIn gives names to the reads in the condition of s.
func (r *restater) nameableIn(s ast.Stmt, reads []*ast.CallExpr) *misfit {
	if n, ok := s.(*ast.IfStmt); ok && len(reads) > 0 && n.Init != nil {
		return &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " in the middle of a statement", "give the value a name before: v := " + types.ExprString(reads[0])}
	}
	return r.nameable(sink{arg: conditionOf(s), stmt: s})
}

// condition returns why the conditions of s have no form in numbers, or nil.
func (r *restater) condition(s ast.Stmt, all []side, needs map[*types.Var]bool) *misfit {
	if n, ok := s.(*ast.IfStmt); ok && n.Init != nil {
		a, ok := n.Init.(*ast.AssignStmt)
		if !ok || a.Tok != token.DEFINE || len(a.Lhs) != len(a.Rhs) {
			return &misfit{plan.NoNumber, n.Init.Pos(), "has a statement in the head of the if that is not a definition", "put it before"}
		}
		for i, lhs := range a.Lhs {
			v, ok := r.f.Info.Defs[lhs.(*ast.Ident)].(*types.Var)
			if !ok || !isFloat64(v.Type()) && !isIndex(v.Type()) || !r.isValued(a.Rhs[i]) {
				return &misfit{plan.NoNumber, lhs.Pos(), "defines " + types.ExprString(lhs) + " in the head of the if", "put that before"}
			}
			needs[v] = true
		}
	}
	tag := tagOf(s)
	if tag != nil {
		if why := r.compared(tag, tag, true, needs); why != nil {
			return why
		}
	}
	for i, x := range all {
		for j, e := range x.when {
			var why *misfit
			if tag != nil {
				why = r.compared(e, tag, false, needs)
			} else {
				why = r.compares(e, i == 0 && j == 0, needs)
			}
			if why != nil {
				return why
			}
		}
	}
	return nil
}

// compares returns why e, a condition, has no form in numbers, or nil. It may read values itself if first says that it
// is always evaluated.
func (r *restater) compares(e ast.Expr, first bool, needs map[*types.Var]bool) *misfit {
	switch x := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if x.Op == token.NOT {
			return r.compares(x.X, first, needs)
		}
	case *ast.BinaryExpr:
		switch x.Op {
		case token.LAND, token.LOR:
			if why := r.compares(x.X, first, needs); why != nil {
				return why
			}
			return r.compares(x.Y, false, needs)
		case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
			if why := r.compared(x.X, e, first, needs); why != nil {
				return why
			}
			return r.compared(x.Y, e, first, needs)
		}
	case *ast.CallExpr:
		if arg, _, ok := r.asks(x); ok {
			return r.compared(arg, e, first, needs)
		}
	}
	return notCompared(e)
}

func notCompared(e ast.Expr) *misfit {
	return &misfit{plan.NoNumber, e.Pos(), "tests " + types.ExprString(e) + ", which numbers have no form of", "compare numbers of type float64 or int64, each with a name"}
}

// compared returns why x, an operand of the condition in, has no form as a number, or nil.
func (r *restater) compared(x, in ast.Expr, first bool, needs map[*types.Var]bool) *misfit {
	if t := r.f.Info.TypeOf(x); !isFloat64(t) && !isIndex(t) && r.f.Info.Types[x].Value == nil || !first && len(r.itemsIn(x)) > 0 {
		return notCompared(in)
	}
	return r.fits(x, needs)
}

// asks returns the operand of math.IsNaN or math.IsInf, a variable or a read, and what numbers have
// instead; or that e is neither.
func (r *restater) asks(e *ast.CallExpr) (arg ast.Expr, form func(arg, pkg string) string, ok bool) {
	sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr)
	if !ok || len(e.Args) == 0 {
		return nil, nil, false
	}
	arg = ast.Unparen(e.Args[0])
	if _, isID := arg.(*ast.Ident); !isID {
		if _, _, isItem := r.item(arg); !isItem {
			return nil, nil, false
		}
	}
	fn, ok := r.f.Info.Uses[sel.Sel].(*types.Func)
	if !ok {
		return nil, nil, false
	}
	switch fn.FullName() {
	case "math.IsNaN":
		return arg, func(arg, _ string) string { return arg + ".Ne(" + arg + ")" }, true
	case "math.IsInf":
		sign, abs := "1", ""
		switch v := r.f.Info.Types[e.Args[1]].Value; {
		case v == nil:
			return nil, nil, false
		case constant.Sign(v) == 0:
			abs = ".Abs()"
		case constant.Sign(v) < 0:
			sign = "-1"
		}
		return arg, func(arg, pkg string) string {
			return arg + abs + ".Eq(" + load.RestatedRuntime + ".Const(" + pkg + ".Inf(" + sign + ")))"
		}, true
	}
	return nil, nil, false
}

// arm returns why what the device runs on one side of a choice can't run though the program may not come to it, or nil.
func (r *restater) arm(list []ast.Stmt, c *choice, needs map[*types.Var]bool) *misfit {
	for _, s := range list {
		if !c.device[s] {
			continue
		}
		a, ok := s.(*ast.AssignStmt)
		if !ok { // a choice, or an if, in it
			inner, _ := sides(s)
			for _, x := range inner {
				if why := r.arm(x.body, c, needs); why != nil {
					return why
				}
			}
			continue
		}
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
			case isFloat64(v.Type()) || isIndex(v.Type()) && r.numbers[v]:
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

// spoils returns which tensor may spoil what s makes of what is chosen though the program does not
// use it there, or nil.
func (r *restater) spoils(s ast.Stmt, all []side, c *choice) *misfit {
	var paths [][]ast.Stmt
	for _, x := range all {
		paths = append(paths, r.paths(x.body, c)...)
	}
	if !all[len(all)-1].otherwise() {
		paths = append(paths, nil)
	}
	if len(paths) > 64 {
		return &misfit{plan.NoNumber, s.Pos(), "decides too many things at once", "divide it"}
	}
	for _, v := range c.vars {
		if !r.f.Analysis.API.IsTensor(v.Type()) {
			continue // numbers have been looked at
		}
		var made []map[string]ast.Expr
		for _, path := range paths {
			made = append(made, r.madeOf(v, path))
		}
		for _, side := range made {
			for text, e := range side {
				everywhere := !slices.ContainsFunc(made, func(other map[string]ast.Expr) bool { return other[text] == nil })
				if !everywhere && !r.isLookedAt(e, v, s) {
					at := e.Pos()
					if !at.IsValid() {
						at = s.Pos()
					}
					return &misfit{plan.NoNumber, at, "takes " + text + " on one side, and if that has failed, what the other side makes of " + v.Name() + " would be spoiled",
						"use it on both sides"}
				}
			}
		}
	}
	return nil
}

// paths are the assignments that the device may make in list, of which each path is one possibility.
func (r *restater) paths(list []ast.Stmt, c *choice) [][]ast.Stmt {
	paths := [][]ast.Stmt{nil}
	for _, s := range list {
		if !c.device[s] {
			continue
		}
		ways := [][]ast.Stmt{{s}}
		if _, ok := s.(*ast.AssignStmt); !ok {
			all, _ := sides(s)
			ways = nil
			for _, x := range all {
				ways = append(ways, r.paths(x.body, c)...)
			}
			if !all[len(all)-1].otherwise() {
				ways = append(ways, nil)
			}
		}
		var longer [][]ast.Stmt
		for _, p := range paths {
			for _, w := range ways {
				longer = append(longer, slices.Concat(p, w))
			}
		}
		if paths = longer; len(paths) > 64 {
			return paths
		}
	}
	return paths
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

// isLookedAt reports whether it is known at s that e, a variable, has not failed. What has no place
// in the source is v itself.
func (r *restater) isLookedAt(e ast.Expr, v *types.Var, s ast.Stmt) bool {
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	if used, ok := r.f.Info.Uses[id].(*types.Var); ok {
		v = used
	} else if id.Pos().IsValid() {
		return false
	}
	if r.fates == nil {
		r.fates = r.follow()
	}
	at := r.fates[s][v]
	return at != nil && at.fine && !r.inner[v] && r.f.CanCopy(v)
}

// mayDivide are operations that fail on values only if these are integers: then Either lets nothing
// run that the program does not come to.
var mayDivide = set("Div DivScalar DivF64")

// costly are operations that are not done in vain.
var costly = set("MatMul Linear LinearReLU Conv2D CrossEntropy Forward Concat Stack")

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

// restateChoice makes the edits for s, by which the device chooses as c says.
func (r *restater) restateChoice(s ast.Stmt, c *choice) {
	open, shut := "", ""
	begin := s.Pos()
	if n, ok := s.(*ast.IfStmt); ok && n.Init != nil {
		a := n.Init.(*ast.AssignStmt)
		r.replace(s.Pos(), a.Pos(), "{ ")
		raise := ""
		for i, lhs := range a.Lhs {
			r.value(a, a.Rhs[i])
			raise += lhs.(*ast.Ident).Name + look(r.f.Info.TypeOf(lhs)) + "; "
		}
		open, shut, begin = "; "+raise, " }", a.End()
	}
	if c.host {
		r.restateDivided(s, c, begin, open, shut)
		return
	}
	vars := c.pointers()
	if n, ok := s.(*ast.SwitchStmt); ok {
		r.restateCases(n, vars)
		return
	}
	n := s.(*ast.IfStmt)
	r.replace(begin, n.Cond.Pos(), open+load.RestatedRuntime+".Either(")
	r.restateArms(n, vars)
	if shut != "" {
		r.insert(s.End(), shut)
	}
}

// pointers is the end of a call of Either that chooses as c says.
func (c *choice) pointers() (text string) {
	for _, v := range c.vars {
		text += ", &" + v.Name()
	}
	return text
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

// restateCases is restateArms of a switch.
func (r *restater) restateCases(s *ast.SwitchStmt, vars string) {
	shut := "}, nil" + vars + ")"
	for i, clause := range s.Body.List {
		cc, at := clause.(*ast.CaseClause), clause.Pos()
		open := "}, func() {"
		switch {
		case cc.List == nil:
			shut = "}" + vars + ")"
		case i == 0:
			at, open = s.Pos(), load.RestatedRuntime+".Either("+r.whenText(s, cc.List)+", func() {"
		default:
			open += " " + load.RestatedRuntime + ".Either(" + r.whenText(s, cc.List) + ", func() {"
			defer r.insert(s.End(), " }"+vars+")")
		}
		r.replace(at, cc.Colon+1, open)
		for _, inner := range cc.Body {
			r.restate(inner)
		}
	}
	r.replace(s.Body.Rbrace, s.End(), shut)
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
	case *ast.CallExpr:
		arg, form, _ := r.asks(x)
		pkg := ""
		if id, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr).X.(*ast.Ident); ok {
			pkg = id.Name
		}
		r.replace(e.Pos(), e.End(), form(r.text(arg, r.number), pkg))
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
	for s, c := range r.chosen {
		var names []string
		for _, v := range c.vars {
			names = append(names, v.Name())
		}
		applied = append(applied, plan.Remark{Code: Choice.Code, Rule: Choice.Name, Verdict: plan.Applied, Pos: r.f.Position(s.Pos()), Function: r.f.Decl.Name.Name,
			Message: "what becomes of " + strings.Join(names, ", ") + " " + Choice.Does})
	}
	return applied
}
