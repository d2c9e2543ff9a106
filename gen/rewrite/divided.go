package rewrite

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A choice of the device may have other work on its sides, which the host does in a statement of
// its own, later if need be. Of the two the first is that of which the statements come first; where
// they are mixed, it must not matter.
//
//	if loss > best {                asyncrt.Either(loss.Gt(best), func() { rate = rate.Mul(asyncrt.Const(0.5)) }, nil, &rate)
//		rate *= 0.5                 if loss.Item() > best.Item() {
//		worse++                     	worse++
//	}                               }

// A side is what a statement does on a condition.
type side struct {
	when []ast.Expr // one of these holds, or is equal to the tag of the switch; nil: otherwise
	body []ast.Stmt

	begin token.Pos // behind the brace or the colon in front of body
}

// otherwise reports whether x is what is done if no condition holds.
func (x side) otherwise() bool { return x.when == nil }

// sides returns the sides of an if or a switch. It is not ok if they are not done one or the other,
// on conditions alone.
func sides(s ast.Stmt) (all []side, ok bool) {
	switch s := s.(type) {
	case *ast.IfStmt:
		for next := s; next != nil; {
			if next != s && next.Init != nil {
				return nil, false
			}
			all = append(all, side{[]ast.Expr{next.Cond}, next.Body.List, next.Body.Lbrace + 1})
			switch e := next.Else.(type) {
			case *ast.BlockStmt:
				all = append(all, side{nil, e.List, e.Lbrace + 1})
				next = nil
			case *ast.IfStmt:
				next = e
			default:
				next = nil
			}
		}
		return all, true
	case *ast.SwitchStmt:
		for i, clause := range s.Body.List {
			cc := clause.(*ast.CaseClause)
			if cc.List == nil && (i == 0 || i < len(s.Body.List)-1) || slices.ContainsFunc(cc.Body, leavesSwitch) {
				return nil, false
			}
			all = append(all, side{cc.List, cc.Body, cc.Colon + 1})
		}
		return all, s.Init == nil && len(all) > 0
	}
	return nil, false
}

// leavesSwitch reports whether s, in a case of a switch, may leave the switch for what comes after
// it, or for the next case.
func leavesSwitch(s ast.Stmt) (found bool) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return false
		case *ast.BranchStmt:
			found = found || n.Tok == token.FALLTHROUGH || n.Tok == token.BREAK && n.Label == nil
		}
		return !found
	})
	return found
}

// tagOf returns what a switch is about; nil if that is the truth, and for an if.
func tagOf(s ast.Stmt) ast.Expr {
	if n, ok := s.(*ast.SwitchStmt); ok {
		return n.Tag
	}
	return nil
}

// divide finds which statements on the sides of s the device runs. With floats it
// computes all float64s that are set there, else only those that are numbers already.
func (r *restater) divide(s ast.Stmt, all []side, floats bool) (*choice, *misfit) {
	c := &choice{device: make(map[ast.Stmt]bool), copies: make(map[*types.Var]string)}
	why := r.share(s, all, floats, c)
	for _, x := range all {
		for _, inner := range x.body {
			if !c.device[inner] {
				c.host = true
				continue
			}
			for _, v := range r.assignedIn(inner) {
				if (v.Pos() < s.Pos() || s.End() <= v.Pos()) && !slices.Contains(c.vars, v) {
					c.vars = append(c.vars, v)
				}
			}
		}
	}
	return c, why
}

// share adds to c the statements on the given sides of s that the device runs.
func (r *restater) share(s ast.Stmt, all []side, floats bool, c *choice) *misfit {
	for _, x := range all {
		for _, inner := range x.body {
			switch n := inner.(type) {
			case *ast.AssignStmt:
				if !slices.ContainsFunc(r.assignedIn(n), func(v *types.Var) bool { return r.isForDevice(v, floats) }) {
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
func (r *restater) shareInner(s ast.Stmt, floats bool, c *choice) *misfit {
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
	case isIf && n.Init != nil || len(r.itemsIn(s)) > 0:
		return &misfit{plan.NoNumber, at.Pos(), "tests " + types.ExprString(at) + ", which is computed on one side of a choice", "compute it before"}
	case valued && inner == nil:
		return &misfit{plan.NoNumber, at.Pos(), "tests " + types.ExprString(at) + " on one side of a choice", "compare numbers of type float64 or int64, each with a name"}
	}
	if valued {
		return nil
	}
	for _, x := range all {
		for _, e := range x.when {
			if why := r.leaf(e); why != nil {
				return why
			}
		}
	}
	return nil
}

// isForDevice reports whether the device computes what is assigned to v.
func (r *restater) isForDevice(v *types.Var, floats bool) bool {
	return r.f.Analysis.API.IsTensor(v.Type()) || r.numbers[v] || floats && isFloat64(v.Type())
}

func isName(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.Ident); return ok }

// assignedIn returns the variables that s sets or declares by name, each once.
func (r *restater) assignedIn(s ast.Stmt) (vars []*types.Var) {
	add := func(e ast.Expr) {
		if id, ok := ast.Unparen(e).(*ast.Ident); ok {
			if v, ok := r.f.Info.ObjectOf(id).(*types.Var); ok && !slices.Contains(vars, v) {
				vars = append(vars, v)
			}
		}
	}
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				add(lhs)
			}
		case *ast.IncDecStmt:
			add(n.X)
		case *ast.RangeStmt:
			if n.Tok != token.ILLEGAL {
				add(n.Key)
				if n.Value != nil {
					add(n.Value)
				}
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				add(name)
			}
		}
		return true
	})
	return vars
}

// inTurn decides whether the device's statements of s come before the host's or after them, and
// returns why neither will do; or nil. needs are variables that become numbers.
func (r *restater) inTurn(s ast.Stmt, all []side, c *choice, needs map[*types.Var]bool) *misfit {
	if !c.host {
		return nil
	}
	if why := r.apart(all, c); why != nil {
		return why
	}
	conds := slices.DeleteFunc([]ast.Expr{tagOf(s)}, func(e ast.Expr) bool { return e == nil })
	for _, x := range all {
		conds = append(conds, x.when...)
	}
	wrong := r.outOfTurn(all, c, false)
	if wrong == nil {
		wrong = r.unsettling(all, c, conds)
	}
	if wrong == nil {
		return nil
	}
	if at := r.outOfTurn(all, c, true); at != nil {
		return &misfit{plan.NoNumber, wrong.Pos(), "does host work and device work in turns on one side of a choice, and it matters which comes first", "do all of one before the other"}
	}
	c.first = true
	for _, e := range conds {
		for _, v := range c.vars {
			if !mentionsAny(r.f, e, map[types.Object]bool{v: true}) {
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

// apart returns what on one side of a choice the host and the device both use, or nil.
func (r *restater) apart(all []side, c *choice) *misfit {
	for _, x := range all {
		for _, s := range x.body {
			for _, t := range x.body {
				if c.device[s] == c.device[t] {
					continue
				}
				for _, v := range r.assignedIn(s) {
					if s.Pos() <= v.Pos() && v.Pos() < s.End() && mentionsAny(r.f, t, map[types.Object]bool{v: true}) {
						return &misfit{plan.NoNumber, t.Pos(), "uses " + v.Name() + " on the host and on the device, on one side of a choice", "compute it before"}
					}
				}
			}
			if c.device[s] && (r.f.HasComments(s) || strings.Contains(r.f.Splice(s, nil), "`")) {
				return &misfit{plan.NoNumber, s.Pos(), "has a comment in the middle of a statement", "put it before"}
			}
		}
	}
	return nil
}

// outOfTurn returns a statement that can't come after all of the others, if those of the device
// (or, unless first says so, those of the host) come first; nil if there is none.
func (r *restater) outOfTurn(all []side, c *choice, first bool) ast.Stmt {
	for _, x := range all {
		for i, s := range x.body {
			for _, t := range x.body[i+1:] {
				if c.device[s] != first && c.device[t] == first && !r.commute(s, t) {
					return s
				}
			}
		}
	}
	return nil
}

// unsettling returns a statement of the host that changes what conds, the conditions of its choice,
// depend on: the device must have looked at them by then. It is nil if there is none.
func (r *restater) unsettling(all []side, c *choice, conds []ast.Expr) ast.Stmt {
	for _, x := range all {
		for _, s := range x.body {
			if c.device[s] {
				continue
			}
			changes := r.f.StmtEffects(s)
			if slices.ContainsFunc(conds, func(e ast.Expr) bool { return r.f.Effects(e).Needs(changes) }) {
				return s
			}
		}
	}
	return nil
}

// commute reports whether nobody can tell whether s, or t behind it, runs first: one is of the
// device and one of the host.
func (r *restater) commute(s, t ast.Stmt) bool {
	if jumps(s) || jumps(t) || !r.cannotFail(s) && !r.cannotFail(t) {
		return false
	}
	e, o := r.f.StmtEffects(s), r.f.StmtEffects(t)
	for _, x := range []struct {
		e    *plan.Effects
		fail bool
	}{{e, !r.cannotFail(t)}, {o, !r.cannotFail(s)}} {
		if x.e.Barrier != nil || x.e.Ends != nil || x.e.Leaves != nil || x.fail && r.f.Shows(x.e) {
			return false
		}
	}
	return plan.Independent(e, o)
}

// jumps reports whether control may leave s.
func jumps(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return plan.Leaves(s) != nil
}

// cannotFail reports whether n does nothing but arithmetic with variables, none of which panics.
func (r *restater) cannotFail(n ast.Node) bool {
	ok := true
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil, *ast.AssignStmt, *ast.IncDecStmt, *ast.IfStmt, *ast.BlockStmt, *ast.ExprStmt, *ast.Ident, *ast.BasicLit, *ast.ParenExpr:
		case *ast.BinaryExpr:
			isDivision := n.Op == token.QUO || n.Op == token.REM || n.Op == token.SHL || n.Op == token.SHR
			ok = ok && !(isDivision && isInteger(r.f.Info.TypeOf(n))) && !mayNotCompare(r.f.Info.TypeOf(n.X))
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		case *ast.SelectorExpr:
			sel := r.f.Info.Selections[n]
			ok = ok && (sel == nil || sel.Kind() == types.FieldVal && !sel.Indirect())
		case *ast.CallExpr:
			_, _, isMath := r.function(n)
			_, _, asks := r.asks(n)
			id, isID := ast.Unparen(n.Fun).(*ast.Ident)
			appends := isID && id.Name == "append" && r.f.Info.Uses[id] != nil && r.f.Info.Uses[id].Pkg() == nil
			ok = ok && (isMath || asks || appends || r.f.Info.Types[n.Fun].IsType() && !isSliceToArray(r.f.Info, n))
		default:
			ok = false
		}
		return ok
	})
	if a, isAssign := n.(*ast.AssignStmt); isAssign {
		divides := a.Tok == token.QUO_ASSIGN || a.Tok == token.REM_ASSIGN || a.Tok == token.SHL_ASSIGN || a.Tok == token.SHR_ASSIGN
		ok = ok && !(divides && isInteger(r.f.Info.TypeOf(a.Lhs[0])))
	}
	return ok
}

// restateDivided makes the edits for s, by which the device chooses as c says, and in which the
// host has other work. What comes before it begins at begin with open, and shut is behind it.
func (r *restater) restateDivided(s ast.Stmt, c *choice, begin token.Pos, open, shut string) {
	all, _ := sides(s)
	either := r.eitherText(s, all, c)
	head := s.Pos()
	if n, ok := s.(*ast.IfStmt); ok && n.Init != nil {
		head = n.Cond.Pos()
	}
	if c.first {
		for _, v := range c.vars {
			if name := c.copies[v]; name != "" {
				c.copies[v] = r.namer.unused(name)
				open += c.copies[v] + " := " + v.Name() + "; "
			}
		}
		open += either + "; "
	} else {
		shut = "; " + either + shut
	}
	if head != s.Pos() {
		open += "if "
	}
	r.replace(begin, head, open)
	if tag := tagOf(s); tag != nil {
		r.left(tag, c)
	}
	for _, x := range all {
		for _, e := range x.when {
			r.left(e, c)
		}
		for i, inner := range x.body {
			if !c.device[inner] {
				r.restate(inner)
				continue
			}
			from := x.begin
			if i > 0 {
				from = x.body[i-1].End()
			}
			if strings.Trim(r.f.Text(from, inner.Pos()), " \t\n\r;") != "" { // a comment stays
				from = inner.Pos()
			}
			r.drop(from, inner.End())
		}
	}
	if n, ok := s.(*ast.IfStmt); ok {
		r.dropEmpty(n, c)
	}
	r.insert(s.End(), shut)
}

// left makes the edits for e, a condition that the host tests, with copies of what the device has chosen before.
func (r *restater) left(e ast.Expr, c *choice) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := r.f.Info.Uses[id].(*types.Var); ok && c.copies[v] != "" {
				r.copied[id] = c.copies[v]
			}
		}
		return true
	})
	r.restate(e)
}

// dropEmpty drops the sides of s on which the host does nothing, at the end, or else at the
// beginning if there are but two.
func (r *restater) dropEmpty(s *ast.IfStmt, c *choice) {
	isIdle := func(list []ast.Stmt) bool {
		return !slices.ContainsFunc(list, func(s ast.Stmt) bool { return !c.device[s] })
	}
	if e, ok := s.Else.(*ast.BlockStmt); ok && isIdle(s.Body.List) && !isIdle(e.List) {
		r.dropAll(s.Cond.End(), e.Lbrace)
		// in front of what is there
		r.edits = slices.Insert(r.edits, 0, load.Edit{Pos: s.Cond.Pos(), End: s.Cond.Pos(), Text: "!("})
		r.replace(s.Cond.End(), e.Lbrace, ") ")
		return
	}
	last := s // with work
	for next := s; next != nil; {
		if !isIdle(next.Body.List) {
			last = next
		}
		switch e := next.Else.(type) {
		case *ast.BlockStmt:
			if !isIdle(e.List) {
				return
			}
			next = nil
		case *ast.IfStmt:
			next = e
		default:
			next = nil
		}
	}
	if last.Else != nil {
		r.dropAll(last.Body.Rbrace+1, s.End())
		r.drop(last.Body.Rbrace+1, s.End())
	}
}

// dropAll drops the edits between pos and end.
func (r *restater) dropAll(pos, end token.Pos) {
	r.edits = slices.DeleteFunc(r.edits, func(e load.Edit) bool { return pos <= e.Pos && e.End <= end && e.Pos < e.End })
}

// eitherText is the call by which the device chooses between its statements on the given sides of s.
func (r *restater) eitherText(s ast.Stmt, all []side, c *choice) string {
	vars := c.pointers()
	otherwise := "nil"
	for _, x := range slices.Backward(all) {
		var list []string
		for _, inner := range x.body {
			if c.device[inner] {
				list = append(list, onOneLine(r.edited(inner, func() { r.restate(inner) })))
			}
		}
		body := "func() { " + strings.Join(list, "; ") + " }"
		switch {
		case x.otherwise():
			if len(list) > 0 {
				otherwise = body
			}
		case len(list) > 0 || otherwise != "nil":
			when := r.whenText(s, x.when)
			if len(list) == 0 {
				when, body, otherwise = when+".Not()", otherwise, "nil"
			}
			text := load.RestatedRuntime + ".Either(" + when + ", " + body + ", " + otherwise + vars + ")"
			otherwise = "func() { " + text + " }"
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(otherwise, "func() { "), " }")
}

// onOneLine joins the lines of a statement without comments.
func onOneLine(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Join(lines, " ")
}

// whenText is the condition that one of list holds, or is what the switch s is about.
func (r *restater) whenText(s ast.Stmt, list []ast.Expr) string {
	var text string
	for i, e := range list {
		one := ""
		if tag := tagOf(s); tag != nil {
			one = r.text(tag, r.number) + ".Eq(" + r.text(e, r.number) + ")"
		} else {
			one = r.text(e, r.comparison)
		}
		if i > 0 {
			one = ".Or(" + one + ")"
		}
		text += one
	}
	return onOneLine(text)
}
