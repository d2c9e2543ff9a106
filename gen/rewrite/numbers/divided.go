package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// A choice of the device may have other work on its sides, which the host does in a statement of its own, later if need
// be. That of the host comes first if nobody can tell. Else that of the device does, and the host has copies of what
// the device has changed.
//
//	if loss > best {      if loss.Item() > best.Item() {
//		rate *= 0.5       	worse++
//		worse++           }
//	}                     asyncrt.Either(loss.Gt(best), func() { rate = rate.Mul(asyncrt.Const(0.5)) }, nil, &rate)

// divide finds which statements on the sides of s the device runs. With floats it
// computes all float64s that are set there, else only those that are numbers already.
func (r *chooser) divide(s ast.Stmt, all []side, floats bool) (*choice, *misfit) {
	c := &choice{device: make(map[ast.Stmt]bool), copies: make(map[*types.Var]string)}
	why := r.share(s, all, floats, c)
	for _, x := range all {
		for _, inner := range x.body {
			if !c.device[inner] {
				c.host = true
				continue
			}
			for _, v := range assignedIn(r.f, inner) {
				if (v.Pos() < s.Pos() || s.End() <= v.Pos()) && !slices.Contains(c.vars, v) {
					c.vars = append(c.vars, v)
				}
			}
		}
	}
	return c, why
}

// share adds to c the statements on the given sides of s that the device runs.
func (r *chooser) share(s ast.Stmt, all []side, floats bool, c *choice) *misfit {
	for _, x := range all {
		for _, inner := range x.body {
			switch n := inner.(type) {
			case *ast.ExprStmt:
				if _, s, ok := settingIn(r.f, n); ok {
					c.device[n] = true
					text := types.ExprString(s.rated)
					if !slices.Contains(c.rated, text) {
						c.rated = append(c.rated, text)
					}
					if !isRate(r.f.Info.Types[s.arg].Value) && !slices.Contains(c.checked, text) {
						c.checked = append(c.checked, text)
					}
				}
			case *ast.IncDecStmt:
				c.device[n] = slices.ContainsFunc(assignedIn(r.f, n), func(v *types.Var) bool { return r.isForDevice(v, floats) })
			case *ast.AssignStmt:
				if !slices.ContainsFunc(assignedIn(r.f, n), func(v *types.Var) bool { return r.isForDevice(v, floats) }) {
					continue
				}
				if len(n.Lhs) != len(n.Rhs) || slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return !isName(e) }) {
					return &misfit{plan.NoNumber, n.Pos(), "sets several things at once on one side of a choice", "set them one by one"}
				}
				c.device[n] = true
			case *ast.IfStmt, *ast.SwitchStmt:
				if why := r.shareInner(inner, floats, c); why != nil {
					return why
				}
			}
		}
	}
	return nil
}

// shareInner adds s, a statement on a side, and those on its own sides to c, if the device runs any of them.
func (r *chooser) shareInner(s ast.Stmt, floats bool, c *choice) *misfit {
	all, ok := sides(s)
	if !ok {
		return nil
	}
	if why := r.share(s, all, floats, c); why != nil {
		return why
	}
	mixed, some, valued := false, false, r.valuesDecide(s, all)
	for _, x := range all {
		for _, inner := range x.body {
			some = some || c.device[inner]
			mixed = mixed || !c.device[inner]
		}
	}
	if !some {
		return nil
	}
	at := conditionOf(s)
	c.device[s] = true
	n, isIf := s.(*ast.IfStmt)
	switch inner := r.chosen[s]; {
	case mixed:
		return &misfit{plan.NoNumber, at.Pos(), "tests " + types.ExprString(at) + " on one side of a choice, for the host as well as for the device", "test it for each alone"}
	case isIf && n.Init != nil || len(itemsIn(r.f, s)) > 0:
		return &misfit{plan.NoNumber, at.Pos(), "tests " + types.ExprString(at) + ", which is computed on one side of a choice", "compute it before"}
	case valued && inner == nil:
		return &misfit{plan.NoNumber, at.Pos(), "tests " + types.ExprString(at) + " on one side of a choice", "compare numbers of type float64 or int64, each with a name"}
	}
	if valued {
		return nil
	}
	for _, x := range all {
		for _, e := range x.when {
			if why := leaf(r.f, e); why != nil {
				return why
			}
		}
	}
	return nil
}

// inTurn decides whether the device's statements of s come before the host's or after them, and
// returns why neither will do; or nil. needs are variables that become numbers.
func (r *chooser) inTurn(s ast.Stmt, all []side, c *choice, needs map[*types.Var]bool) *misfit {
	if !c.host {
		return nil
	}
	if why := apart(r.f, all, c); why != nil {
		return why
	}
	conds := slices.DeleteFunc([]ast.Expr{tagOf(s)}, func(e ast.Expr) bool { return e == nil })
	for _, x := range all {
		conds = append(conds, x.when...)
	}
	wrong := outOfTurn(r.f, all, c, false)
	if wrong == nil {
		wrong = unsettling(r.f, all, c, conds)
	}
	if wrong == nil {
		return nil
	}
	if at := outOfTurn(r.f, all, c, true); at != nil {
		return &misfit{plan.NoNumber, wrong.Pos(), "does host work and device work in turns on one side of a choice, and it matters which comes first", "do all of one before the other"}
	}
	c.first = true
	for _, e := range conds {
		for _, v := range c.vars {
			if !r.f.Mentions(e, map[types.Object]bool{v: true}) {
				continue
			}
			if !needs[v] {
				return &misfit{plan.NoNumber, e.Pos(), "tests " + v.Name() + ", which the device chooses", "give what is tested a name before"}
			}
			if c.copies[v] == "" {
				c.copies[v] = v.Name() + "Before"
			}
		}
	}
	return nil
}

// isForDevice reports whether the device computes what is assigned to v.
func (r *restatement) isForDevice(v *types.Var, floats bool) bool {
	return r.f.Analysis.API.IsTensor(v.Type()) || r.numbers[v] || floats && isFloat64(v.Type())
}

// apart returns what on one side of a choice the host and the device both use, or nil.
func apart(f *plan.Function, all []side, c *choice) *misfit {
	for _, x := range all {
		for _, s := range x.body {
			for _, t := range x.body {
				if c.device[s] == c.device[t] {
					continue
				}
				for _, v := range assignedIn(f, s) {
					if s.Pos() <= v.Pos() && v.Pos() < s.End() && f.Mentions(t, map[types.Object]bool{v: true}) {
						return &misfit{plan.NoNumber, t.Pos(), "uses " + v.Name() + " on the host and on the device, on one side of a choice", "compute it before"}
					}
				}
			}
			if c.device[s] && (f.HasComments(s) || strings.Contains(f.Splice(s, nil), "`")) {
				return &misfit{plan.NoNumber, s.Pos(), "has a comment in the middle of a statement", "put it before"}
			}
		}
	}
	return nil
}

// outOfTurn returns a statement that can't come after all of the others, if those of the device
// (or, unless first says so, those of the host) come first; nil if there is none.
func outOfTurn(f *plan.Function, all []side, c *choice, first bool) ast.Stmt {
	for _, x := range all {
		for i, s := range x.body {
			for _, t := range x.body[i+1:] {
				if c.device[s] != first && c.device[t] == first && !commute(f, s, t) {
					return s
				}
			}
		}
	}
	return nil
}

// unsettling returns a statement of the host that changes what conds, the conditions of its choice,
// depend on: the device must have looked at them by then. It is nil if there is none.
func unsettling(f *plan.Function, all []side, c *choice, conds []ast.Expr) ast.Stmt {
	for _, x := range all {
		for _, s := range x.body {
			if c.device[s] {
				continue
			}
			changes := f.StmtEffects(s)
			if slices.ContainsFunc(conds, func(e ast.Expr) bool { return f.Effects(e).Needs(changes) }) {
				return s
			}
		}
	}
	return nil
}

// commute reports whether nobody can tell whether s, or t behind it, runs first: one is of the
// device and one of the host.
func commute(f *plan.Function, s, t ast.Stmt) bool {
	if jumps(s) || jumps(t) || !cannotFail(f, s) && !cannotFail(f, t) {
		return false
	}
	e, o := f.StmtEffects(s), f.StmtEffects(t)
	for _, x := range []struct {
		e    *plan.Effects
		fail bool
	}{{e, !cannotFail(f, t)}, {o, !cannotFail(f, s)}} {
		if x.e.Barrier != nil || x.e.Ends != nil || x.e.HandsOut != nil || x.fail && f.Shows(x.e) {
			return false
		}
	}
	return plan.Independent(e, o)
}

// cannotFail reports whether n does nothing but arithmetic with variables, none of which panics.
func cannotFail(f *plan.Function, n ast.Node) bool {
	ok := true
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.AssignStmt, *ast.IncDecStmt, *ast.IfStmt, *ast.BlockStmt, *ast.ExprStmt, *ast.Ident, *ast.BasicLit, *ast.ParenExpr:
		case *ast.BinaryExpr:
			isDivision := n.Op == token.QUO || n.Op == token.REM || n.Op == token.SHL || n.Op == token.SHR
			ok = ok && !(isDivision && syntax.IsInteger(f.Info.TypeOf(n))) && !syntax.MayNotCompare(f.Info.TypeOf(n.X))
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		case *ast.SelectorExpr:
			sel := f.Info.Selections[n]
			ok = ok && (sel == nil || sel.Kind() == types.FieldVal && !sel.Indirect())
		case *ast.CallExpr:
			_, _, isMath := function(f, n)
			_, _, asks := asks(f, n)
			id, isID := ast.Unparen(n.Fun).(*ast.Ident)
			appends := isID && id.Name == "append" && f.Info.Uses[id] != nil && f.Info.Uses[id].Pkg() == nil
			ok = ok && (isMath || asks || appends || f.Info.Types[n.Fun].IsType() && !syntax.IsSliceToArray(f.Info, n))
		default:
			ok = false
		}
		return ok
	})
	if a, isAssign := n.(*ast.AssignStmt); isAssign {
		divides := a.Tok == token.QUO_ASSIGN || a.Tok == token.REM_ASSIGN || a.Tok == token.SHL_ASSIGN || a.Tok == token.SHR_ASSIGN
		ok = ok && !(divides && syntax.IsInteger(f.Info.TypeOf(a.Lhs[0])))
	}
	return ok
}

// jumps reports whether control may leave s.
func jumps(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return plan.Leaves(s) != nil
}
