package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// arm returns why what the device runs on one side of the choice of can't run though the program may not come to it, or
// nil.
func (r *chooser) arm(of ast.Stmt, list []ast.Stmt, c *choice, needs map[*types.Var]bool) *misfit {
	for _, s := range list {
		if !c.device[s] {
			continue
		}
		if _, ok := s.(*ast.IncDecStmt); ok {
			continue // of a number
		}
		if _, set, ok := settingIn(r.f, s); ok {
			if why := r.sets(set, of, needs); why != nil {
				return why
			}
			continue
		}
		a, ok := s.(*ast.AssignStmt)
		if !ok { // a choice, or an if, in it
			inner, _ := sides(s)
			for _, x := range inner {
				for _, e := range x.when {
					if why := r.panics(e, onOneSide); why != nil {
						return why
					}
				}
				if why := r.arm(of, x.body, c, needs); why != nil {
					return why
				}
			}
			continue
		}
		for i, rhs := range a.Rhs {
			if why := r.panics(rhs, onOneSide); why != nil {
				return why
			}
			if reads := itemsIn(r.f, rhs); len(reads) > 0 {
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
			case isScalar(v.Type()):
				needs[v] = true
				if why := r.fits(rhs, needs); why != nil {
					return why
				}
			default:
				return otherType(v, s)
			}
		}
	}
	return nil
}

// Where the program may not come to what the device computes in any case.
const (
	onOneSide = "on one side of a choice"
	ifTested  = "only where another test says so"
)

// panics returns why e, where the program may not come to it, may panic in the program itself, or nil.
func (r *locals) panics(e ast.Expr, where string) (why *misfit) {
	isConstant := func(e ast.Expr) bool { return r.f.Info.Types[e].Value != nil }
	ast.Inspect(e, func(n ast.Node) bool {
		may := false
		switch n := n.(type) {
		case *ast.IndexExpr:
			switch t := r.f.Info.TypeOf(n.X).Underlying().(type) {
			case *types.Slice, *types.Pointer:
				may = true
			case *types.Array:
				may = !isConstant(n.Index)
			case *types.Basic: // a string, of which a constant index may be beyond the end, too
				may = t.Info()&types.IsString != 0
			}
		case *ast.SliceExpr, *ast.StarExpr:
			may = true
		case *ast.SelectorExpr:
			sel := r.f.Info.Selections[n]
			may = sel != nil && sel.Kind() == types.FieldVal && sel.Indirect()
		case *ast.BinaryExpr:
			b, isBasic := r.f.Info.TypeOf(n).Underlying().(*types.Basic)
			may = (n.Op == token.QUO || n.Op == token.REM) && isBasic && b.Info()&types.IsInteger != 0 && !isConstant(n.Y)
		}
		if may && why == nil {
			text := types.ExprString(n.(ast.Expr))
			why = &misfit{plan.NoNumber, n.Pos(), "computes " + text + ", which may panic, " + where, "compute it before the if, if it can be computed in any case"}
		}
		return why == nil
	})
	return why
}

// otherType is that s, on one side of a choice, sets v, which the device can't choose.
func otherType(v *types.Var, s ast.Stmt) *misfit {
	hint := "do that in another statement"
	if _, isSlice := v.Type().Underlying().(*types.Slice); isSlice {
		hint = "let it set a tensor or a float64, and append that behind it: how long a slice is must not depend on a value"
	}
	return &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which is neither a tensor nor a float64", hint}
}

// A failing tensor on the side that is not taken would spoil what the device chooses. So each must go into what every
// side makes of a variable, or else its failure must have shown before: somebody has looked at what is made of it.

// spoils returns which tensor may spoil what s makes of what is chosen though the program does not
// use it there, or nil.
func (r *chooser) spoils(s ast.Stmt, all []side, c *choice) *misfit {
	var paths [][]ast.Stmt
	for _, x := range all {
		paths = append(paths, pathsOf(r.f, x.body, c)...)
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
			made = append(made, madeOf(r.f, v, path))
		}
		for _, side := range made {
			for _, text := range slices.Sorted(maps.Keys(side)) {
				e := side[text]
				everywhere := !slices.ContainsFunc(made, func(other map[string]ast.Expr) bool { return other[text] == nil })
				if !everywhere && !r.isLookedAt(e, v, s) {
					at := e.Pos()
					if !at.IsValid() {
						at = s.Pos()
					}
					return &misfit{plan.NoNumber, at, "uses " + text + " on one side only: if computing it has failed, " + v.Name() + " would be lost on the other, too",
						"look at a value of " + text + " first, or choose with tensor.Where"}
				}
			}
		}
	}
	return nil
}

// isLookedAt reports whether it is known at s that e, a variable, has not failed. What has no place
// in the source is v itself.
func (r *chooser) isLookedAt(e ast.Expr, v *types.Var, s ast.Stmt) bool {
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

// costsLittle returns why computing e can't be in vain, or nil.
func (r *chooser) costsLittle(e ast.Expr) (why *misfit) {
	no := func(n ast.Node, text string) {
		if why == nil {
			why = &misfit{plan.NoNumber, n.Pos(), text + " on one side of a choice", "do it before the if, if it may be done in any case"}
		}
	}
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.TypeAssertExpr, *ast.CompositeLit:
			no(n, "computes "+types.ExprString(n.(ast.Expr)))
		case *ast.Ident:
			v, ok := r.f.Info.Uses[n].(*types.Var)
			if ok && isScalar(v.Type()) && r.valued(n, make(map[*types.Var]bool)) && !r.inSink(n) {
				no(n, "looks at "+v.Name())
			}
		case *ast.CallExpr:
			if r.f.Info.Types[n.Fun].IsType() {
				break
			}
			fn, api, ok := r.f.Library(n)
			_, _, isNumber := function(r.f, n)
			switch {
			case isNumber:
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

// pathsOf are the assignments that the device may make in list, of which each path is one possibility.
func pathsOf(f *plan.Function, list []ast.Stmt, c *choice) [][]ast.Stmt {
	paths := [][]ast.Stmt{nil}
	for _, s := range list {
		if !c.device[s] {
			continue
		}
		ways := [][]ast.Stmt{{s}}
		if all, ok := sides(s); ok {
			ways = nil
			for _, x := range all {
				ways = append(ways, pathsOf(f, x.body, c)...)
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
func madeOf(f *plan.Function, v *types.Var, list []ast.Stmt) map[string]ast.Expr {
	known := make(map[types.Object]map[string]ast.Expr)
	of := func(v types.Object, at *ast.Ident) map[string]ast.Expr {
		if m, ok := known[v]; ok {
			return m
		}
		return map[string]ast.Expr{v.Name(): at}
	}
	for _, s := range list {
		a, ok := s.(*ast.AssignStmt)
		if !ok {
			continue // it makes no tensor
		}
		made := make([]map[string]ast.Expr, len(a.Rhs))
		for i, rhs := range a.Rhs {
			made[i] = make(map[string]ast.Expr)
			ast.Inspect(rhs, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok || !f.Info.Types[e].IsValue() && f.Info.ObjectOf(identOf(e)) == nil || !f.Analysis.API.IsTensor(f.Info.TypeOf(e)) {
					return true
				}
				switch e := ast.Unparen(e).(type) {
				case *ast.Ident:
					maps.Copy(made[i], of(f.Info.ObjectOf(e), e))
				case *ast.CallExpr:
					if _, api, ok := f.Library(e); ok && api.Kind != tensorapi.Value {
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
			known[f.Info.ObjectOf(ast.Unparen(lhs).(*ast.Ident))] = made[i]
		}
	}
	return of(v, ast.NewIdent(v.Name()))
}

// mayDivide are operations that fail on values only if these are integers: then Either lets nothing
// run that the program does not come to.
var mayDivide = map[string]bool{"Div": true, "DivScalar": true, "DivF64": true}

// costly are operations that are not done in vain.
var costly = map[string]bool{"MatMul": true, "Linear": true, "LinearReLU": true, "Conv2D": true, "CrossEntropy": true, "Forward": true, "Concat": true, "Stack": true}

// inSink reports whether n is a part of what an operation takes as a number.
func (r *restatement) inSink(n ast.Node) bool {
	for p := n; p != nil; p = r.f.Parent(p) {
		if call, ok := r.f.Parent(p).(*ast.CallExpr); ok && r.sinks[call].arg == p {
			return true
		}
	}
	return false
}
