package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// restateChoice makes the edits for s, by which the device chooses as c says.
func (r *writer) restateChoice(s ast.Stmt, c *choice) {
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
	shut = r.checks(s, c) + shut
	vars := r.pointers(c)
	if n, ok := s.(*ast.SwitchStmt); ok {
		r.restateCases(n, vars)
		r.insert(s.End(), shut)
		return
	}
	n := s.(*ast.IfStmt)
	r.replace(begin, n.Cond.Pos(), open+load.RestatedRuntime+".Either(")
	r.restateArms(n, vars)
	if shut != "" {
		r.insert(s.End(), shut)
	}
}

// checks are the checks that follow the choice c of s, which is not a part of another one.
func (r *writer) checks(s ast.Stmt, c *choice) (text string) {
	if r.isChosen(s) {
		return ""
	}
	for _, of := range c.checked {
		text += "; " + check(of)
	}
	return text
}

// isChosen reports whether s is what the device runs on a side of a choice.
func (r *writer) isChosen(s ast.Stmt) bool {
	for _, c := range r.chosen {
		if c.device[s] {
			return true
		}
	}
	return false
}

// restateArms makes the edits for the condition of s and for what follows it, in a call of Either that ends with vars.
func (r *writer) restateArms(s *ast.IfStmt, vars string) {
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
func (r *writer) restateCases(s *ast.SwitchStmt, vars string) {
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
func (r *writer) comparison(e ast.Expr) {
	switch x := e.(type) {
	case *ast.Ident:
		r.rename(e)
		r.insert(e.End(), ".Ne("+load.RestatedRuntime+".ConstInt(0))")
	case *ast.ParenExpr:
		r.drop(e.Pos(), x.X.Pos())
		r.comparison(x.X)
		r.drop(x.X.End(), e.End())
	case *ast.UnaryExpr:
		r.drop(e.Pos(), x.X.Pos())
		r.comparison(x.X)
		r.insert(e.End(), ".Not()")
	case *ast.CallExpr:
		arg, form, _ := asks(r.f, x)
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

// whenText is the condition that one of list holds, or is what the switch s is about.
func (r *writer) whenText(s ast.Stmt, list []ast.Expr) string {
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

// restateDivided makes the edits for s, by which the device chooses as c says, and in which the
// host has other work. What comes before it begins at begin with open, and shut is behind it.
func (r *writer) restateDivided(s ast.Stmt, c *choice, begin token.Pos, open, shut string) {
	all, _ := sides(s)
	either := r.eitherText(s, all, c) + r.checks(s, c)
	head := s.Pos()
	if n, ok := s.(*ast.IfStmt); ok && n.Init != nil {
		head = n.Cond.Pos()
	}
	if c.first {
		for _, v := range c.vars {
			name := c.copies[v]
			if name == "" || !r.tests(s, all, c, v) {
				delete(c.copies, v)
				continue
			}
			c.copies[v] = r.names.Unused(name)
			open += c.copies[v] + " := " + r.nameOf(v) + "; "
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

// isIdle reports whether the host has nothing to do in list.
func (c *choice) isIdle(list []ast.Stmt) bool {
	return !slices.ContainsFunc(list, func(s ast.Stmt) bool { return !c.device[s] })
}

// tests reports whether a condition of s that dropEmpty leaves mentions v.
func (r *writer) tests(s ast.Stmt, all []side, c *choice, v *types.Var) bool {
	if _, ok := s.(*ast.IfStmt); ok {
		for len(all) > 1 && c.isIdle(all[len(all)-1].body) {
			all = all[:len(all)-1]
		}
	}
	mentions := func(e ast.Expr) bool { return r.f.Mentions(e, map[types.Object]bool{v: true}) }
	tag := tagOf(s)
	return tag != nil && mentions(tag) || slices.ContainsFunc(all, func(x side) bool { return slices.ContainsFunc(x.when, mentions) })
}

// left makes the edits for e, a condition that the host tests, with copies of what the device has chosen before.
func (r *writer) left(e ast.Expr, c *choice) {
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
func (r *writer) dropEmpty(s *ast.IfStmt, c *choice) {
	if e, ok := s.Else.(*ast.BlockStmt); ok && c.isIdle(s.Body.List) && !c.isIdle(e.List) {
		r.dropAll(s.Cond.End(), e.Lbrace)
		// in front of what is there
		r.edits = slices.Insert(r.edits, 0, load.Edit{Pos: s.Cond.Pos(), End: s.Cond.Pos(), Text: "!("})
		r.replace(s.Cond.End(), e.Lbrace, ") ")
		return
	}
	last := s // with work
	for next := s; next != nil; {
		if !c.isIdle(next.Body.List) {
			last = next
		}
		switch e := next.Else.(type) {
		case *ast.BlockStmt:
			if !c.isIdle(e.List) {
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

// eitherText is the call by which the device chooses between its statements on the given sides of s.
func (r *writer) eitherText(s ast.Stmt, all []side, c *choice) string {
	vars := r.pointers(c)
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
