package gen

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// exits puts jumps back where values decide on them, in a generated function:
// a call of BreakIf with what follows if the loop has ended is the condition that
// it is given, and the jump.
func (u *undoer) exits(fn *ast.FuncDecl) {
	e := &exitUndoer{undoer: u, fields: make(map[string][]string), choices: make(map[string][]ast.Stmt), flags: make(map[string]ast.Node)}
	ast.Inspect(fn, func(n ast.Node) bool {
		for _, s := range listOf(n) {
			if a, ok := s.(*ast.AssignStmt); ok && e.isFlag(a) {
				e.flags[a.Lhs[0].(*ast.Ident).Name] = n
			}
		}
		if s, ok := n.(*ast.SwitchStmt); ok && e.isStrange(s.Tag) {
			e.choices[s.Tag.(*ast.Ident).Name] = s.Body.List
		}
		if s, ok := n.(*ast.IfStmt); ok && e.isChoice(s) {
			eq := s.Cond.(*ast.BinaryExpr)
			e.choices[eq.X.(*ast.Ident).Name] = []ast.Stmt{&ast.CaseClause{List: []ast.Expr{eq.Y}, Body: s.Body.List}}
		}
		if ts, ok := n.(*ast.TypeSpec); ok && !u.known[ts.Name.Name] {
			if s, ok := ts.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, name := range f.Names {
						e.fields[ts.Name.Name] = append(e.fields[ts.Name.Name], name.Name)
					}
				}
			}
		}
		return true
	})
	astutil.Apply(fn.Body, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.SwitchStmt:
			if e.isStrange(n.Tag) && e.isFresh(c.Parent(), n.Tag) {
				c.Delete()
			}
		case *ast.IfStmt:
			e.ifs(c, n)
		case *ast.DeclStmt:
			if e.isNew(n) {
				c.Delete()
			}
		case *ast.AssignStmt: // exit := 0
			if e.isFlag(n) && c.Index() >= 0 {
				c.Delete()
			}
		case *ast.LabeledStmt:
			if !u.known[n.Label.Name] {
				c.Replace(n.Stmt)
			}
		}
		return true
	})
}

// An exitUndoer undoes the rewriting of exits.
type exitUndoer struct {
	*undoer
	fields  map[string][]string   // of the types of states
	outs    map[string]ast.Expr   // variables of the way out that a test sets, and to what
	flags   map[string]ast.Node   // variables that tell ways apart, and whether one is taken, and the block of each
	choices map[string][]ast.Stmt // cases of the switches on variables that tell ways apart
}

// isFlag reports whether n declares a variable that tells whether the loop has ended, or how.
func (e *exitUndoer) isFlag(n *ast.AssignStmt) bool {
	id, ok := n.Lhs[0].(*ast.Ident)
	if !ok || n.Tok != token.DEFINE || e.known[id.Name] || len(n.Rhs) != 1 {
		return false
	}
	_, number := n.Rhs[0].(*ast.BasicLit)
	return number || isName(n.Rhs[0], "false")
}

// isNew reports whether d declares something that the original has not, and
// that is no variable of an entry.
func (e *exitUndoer) isNew(d *ast.DeclStmt) bool {
	switch s := d.Decl.(*ast.GenDecl).Specs[0].(type) {
	case *ast.TypeSpec:
		return !e.known[s.Name.Name]
	case *ast.ValueSpec:
		return len(s.Values) == 0 && !e.known[s.Names[0].Name]
	}
	return false
}

// ifs undoes one if statement, if it asks whether the loop has ended.
func (e *exitUndoer) ifs(c *astutil.Cursor, n *ast.IfStmt) {
	// if ended, if exit == 1
	if n.Init == nil && e.isStrange(n.Cond) || e.isChoice(n) && e.isFresh(c.Parent(), n.Cond.(*ast.BinaryExpr).X) {
		c.Delete()
		return
	}
	if not, ok := n.Cond.(*ast.UnaryExpr); ok && not.Op == token.NOT {
		if e.isStrange(not.X) {
			c.Delete()
			return
		}
	}
	if e.asks(n.Cond) {
		c.Delete()
		return
	}
	a, ok := n.Init.(*ast.AssignStmt)
	if !ok || len(a.Lhs) != 2 || len(a.Rhs) != 1 || !e.isStrange(a.Lhs[1]) {
		return
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	switch {
	case !ok:
	case e.calls(call, "Flush"):
		c.Delete()
	case e.calls(call, "BreakIf"):
		for _, s := range e.test(call, a.Lhs[0].(*ast.Ident).Name, n.Body.List) {
			c.InsertBefore(s)
		}
		c.Delete()
	}
}

// isChoice reports whether n, behind the loop, asks which way has been decided on, and takes one.
func (e *exitUndoer) isChoice(n *ast.IfStmt) bool {
	eq, ok := n.Cond.(*ast.BinaryExpr)
	if !ok || n.Init != nil || n.Else != nil || eq.Op != token.EQL || !e.isStrange(eq.X) {
		return false
	}
	return e.flags[eq.X.(*ast.Ident).Name] != nil
}

// isFresh reports whether flag, which is asked for in block, has no value from before the loop: block declares it.
func (e *exitUndoer) isFresh(block ast.Node, flag ast.Expr) bool {
	id, ok := flag.(*ast.Ident)
	return ok && block != nil && e.flags[id.Name] == block
}

// isStrange reports whether x is a variable that the original has not.
func (e *exitUndoer) isStrange(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && !e.known[id.Name]
}

// calls reports whether call is one of a method of something that the original has not.
func (e *exitUndoer) calls(call *ast.CallExpr, method string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != method {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && !e.known[id.Name]
}

// asks reports whether cond asks whether an iteration is like those before.
func (e *exitUndoer) asks(cond ast.Expr) bool {
	switch cond := cond.(type) {
	case *ast.BinaryExpr:
		return cond.Op == token.LOR && e.asks(cond.X) && e.asks(cond.Y)
	case *ast.UnaryExpr:
		call, ok := cond.X.(*ast.CallExpr)
		return ok && cond.Op == token.NOT && (e.calls(call, "Alike") || e.calls(call, "Floats"))
	}
	return false
}

// test returns the statements that a call of BreakIf stands for. ended is what
// follows if the loop has ended, with the state in the variable end.
func (e *exitUndoer) test(call *ast.CallExpr, end string, ended []ast.Stmt) []ast.Stmt {
	body := call.Args[0].(*ast.FuncLit).Body
	values := make(map[string]ast.Expr) // of fields
	if lit, ok := call.Args[1].(*ast.CompositeLit); ok {
		name := ""
		if id, ok := lit.Type.(*ast.Ident); ok {
			name = id.Name
		}
		for i, el := range lit.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				values[kv.Key.(*ast.Ident).Name] = kv.Value
			} else if i < len(e.fields[name]) {
				values[e.fields[name][i]] = el
			}
		}
	}
	var result ast.Expr // of the test, unless that ends the loop
	last := len(body.List) - 1
	if r, ok := body.List[last].(*ast.ReturnStmt); ok && len(r.Results) == 1 && !isName(r.Results[0], "true") {
		result, body.List = r.Results[0], body.List[:last]
	}
	e.goOn(body, 0) // before there are jumps of the original in it, which may look the same
	e.decisions(body, func(exit, which string) ast.Stmt {
		if clauses, ok := e.choices[exit]; ok {
			if jump := e.chosen(clauses, which, end, values); jump != nil {
				return jump
			}
		}
		return e.jump(ended, which, end, values)
	})
	if result != nil && !isName(result, "false") {
		body.List = append(body.List, &ast.IfStmt{Cond: result, Body: &ast.BlockStmt{List: []ast.Stmt{e.jump(ended, "", end, values)}}})
	}
	return body.List
}

// goOn makes what says that the loop does not end, in n and not at the end of the test, jumps to the next iteration.
func (e *exitUndoer) goOn(n ast.Node, loops int) {
	astutil.Apply(n, func(c *astutil.Cursor) bool {
		switch m := c.Node().(type) {
		case *ast.FuncLit:
			return false
		case *ast.ForStmt:
			e.goOn(m.Body, loops+1)
			return false
		case *ast.RangeStmt:
			e.goOn(m.Body, loops+1)
			return false
		case *ast.ReturnStmt:
			if len(m.Results) == 1 && isName(m.Results[0], "false") {
				c.Replace(&ast.BranchStmt{Tok: token.CONTINUE, Label: outwards(loops)})
			}
		}
		return true
	}, nil)
}

// decisions replaces what says that the loop ends, in n, by jumps.
func (e *exitUndoer) decisions(n ast.Node, jump func(exit, which string) ast.Stmt) {
	replace := func(list []ast.Stmt) (replaced []ast.Stmt) {
		for _, s := range list { // what follows a jump in the original is still there
			r, ok := s.(*ast.ReturnStmt)
			if !ok || len(r.Results) != 1 || !isName(r.Results[0], "true") {
				replaced = append(replaced, s)
				continue
			}
			kept, exit, which := e.without(replaced)
			replaced = append(kept, jump(exit, which))
		}
		return replaced
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BlockStmt:
			n.List = replace(n.List)
		case *ast.CaseClause:
			n.Body = replace(n.Body)
		}
		return true
	})
}

// without returns list without the assignments at its end that say how the loop ends, and the
// variable and the number by which they tell ways apart.
func (e *exitUndoer) without(list []ast.Stmt) (kept []ast.Stmt, exit, which string) {
	e.outs = make(map[string]ast.Expr)
	last := len(list) - 1
	for ; last >= 0; last-- {
		a, ok := list[last].(*ast.AssignStmt)
		if !ok || a.Tok != token.ASSIGN || len(a.Lhs) != len(a.Rhs) || !e.sets(a) {
			break
		}
		if id := a.Lhs[0].(*ast.Ident); e.flags[id.Name] != nil {
			exit, which = id.Name, types.ExprString(a.Rhs[0])
		}
	}
	return list[:last+1], exit, which
}

// sets notes what a sets variables of the way out to, and reports whether it sets nothing else, and nothing twice.
func (e *exitUndoer) sets(a *ast.AssignStmt) bool {
	for _, lhs := range a.Lhs {
		if id, ok := lhs.(*ast.Ident); !ok || e.known[id.Name] || e.outs[id.Name] != nil {
			return false
		}
	}
	for i, lhs := range a.Lhs {
		e.outs[lhs.(*ast.Ident).Name] = a.Rhs[i]
	}
	return true
}

func isName(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// chosen returns the jump in the clause for which, or nil if there is none: the
// loop is only left.
func (e *exitUndoer) chosen(clauses []ast.Stmt, which, end string, values map[string]ast.Expr) ast.Stmt {
	i := slices.IndexFunc(clauses, func(c ast.Stmt) bool {
		list := c.(*ast.CaseClause).List
		return len(list) == 1 && types.ExprString(list[0]) == which
	})
	if i < 0 {
		i = slices.IndexFunc(clauses, func(c ast.Stmt) bool { return c.(*ast.CaseClause).List == nil })
	}
	if i >= 0 {
		c := clauses[i].(*ast.CaseClause)
		switch c.Body[len(c.Body)-1].(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			return e.jump(c.Body, which, end, values)
		}
	}
	return nil
}

// jump returns the jump in the statements of the way out with the number which.
func (e *exitUndoer) jump(ended []ast.Stmt, which, end string, values map[string]ast.Expr) ast.Stmt {
	var way []ast.Stmt
	for _, s := range ended {
		n, ok := s.(*ast.IfStmt)
		if !ok {
			way = append(way, s)
			continue
		}
		if eq, ok := n.Cond.(*ast.BinaryExpr); ok && types.ExprString(eq.Y) == which {
			way = n.Body.List
			break
		}
	}
	if len(way) > 1 { // what gives variables back what they held
		way = way[1:]
	}
	if len(way) != 1 {
		return &ast.EmptyStmt{}
	}
	jump := copyStmt(way[0])
	if b, ok := jump.(*ast.BranchStmt); ok && b.Label != nil && !e.known[b.Label.Name] {
		return &ast.BranchStmt{Tok: b.Tok}
	}
	return astutil.Apply(jump, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.SelectorExpr:
			if isName(n.X, end) && values[n.Sel.Name] != nil {
				c.Replace(values[n.Sel.Name])
			}
		case *ast.Ident:
			if c.Name() != "Sel" && e.outs[n.Name] != nil && !e.known[n.Name] {
				c.Replace(e.outs[n.Name])
			}
		}
		return true
	}).(ast.Stmt)
}

// conditionFirst makes the condition of a loop tests at the beginning of its
// body. Those that are there already, and the parts of it, come in alphabetical order.
func conditionFirst(n *ast.ForStmt) {
	var parts []ast.Expr // that go on
	var add func(e ast.Expr, negated bool)
	add = func(e ast.Expr, negated bool) {
		switch x := e.(type) {
		case *ast.ParenExpr:
			add(x.X, negated)
			return
		case *ast.UnaryExpr:
			if x.Op == token.NOT {
				add(x.X, !negated)
				return
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND && !negated {
				add(x.X, false)
				add(x.Y, false)
				return
			}
		}
		if negated {
			e = not(e)
		}
		parts = append(parts, e)
	}
	if n.Cond != nil {
		add(n.Cond, false)
	}
	body := n.Body.List
	for len(body) > 0 {
		test, ok := body[0].(*ast.IfStmt)
		if !ok || test.Init != nil || test.Else != nil || len(test.Body.List) != 1 {
			break
		}
		if b, ok := test.Body.List[0].(*ast.BranchStmt); !ok || b.Tok != token.BREAK || b.Label != nil {
			break
		}
		add(test.Cond, true)
		body = body[1:]
	}
	slices.SortStableFunc(parts, func(a, b ast.Expr) int { return strings.Compare(sourceOf(a), sourceOf(b)) })
	var tests []ast.Stmt
	for _, e := range parts {
		tests = append(tests, &ast.IfStmt{Cond: not(e), Body: &ast.BlockStmt{List: []ast.Stmt{&ast.BranchStmt{Tok: token.BREAK}}}})
	}
	n.Cond, n.Body.List = nil, append(tests, body...)
}

func not(e ast.Expr) ast.Expr { return &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: e}} }

// plainBreaks takes the labels from breaks in n that end the loop called label
// and would without.
func plainBreaks(n ast.Node, label string) {
	ast.Inspect(n, func(m ast.Node) bool {
		switch m := m.(type) {
		case *ast.LabeledStmt:
			switch s := m.Stmt.(type) {
			case *ast.ForStmt:
				plainBreaks(s.Body, m.Label.Name)
				return false
			case *ast.RangeStmt:
				plainBreaks(s.Body, m.Label.Name)
				return false
			}
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			if m != n {
				for _, body := range bodiesOf(m) {
					plainBreaks(body, "")
				}
				return false
			}
		case *ast.BranchStmt:
			if m.Tok == token.BREAK && m.Label != nil && m.Label.Name == label {
				m.Label = nil
			}
		}
		return true
	})
}

func bodiesOf(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.ForStmt:
		return []ast.Node{n.Body}
	case *ast.RangeStmt:
		return []ast.Node{n.Body}
	case *ast.SwitchStmt:
		return []ast.Node{n.Body}
	case *ast.TypeSwitchStmt:
		return []ast.Node{n.Body}
	case *ast.SelectStmt:
		return []ast.Node{n.Body}
	}
	return nil
}

// copyStmt returns a copy of s, which can be changed.
func copyStmt(s ast.Stmt) ast.Stmt {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc f() {\n"+sourceOf(s)+"\n}\n", 0)
	if err != nil {
		return s
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if lit, ok := sel.X.(*ast.BasicLit); ok {
				sel.X = ast.NewIdent(lit.Value) // a package, see [parse]
			}
		}
		return true
	})
	if body := file.Decls[0].(*ast.FuncDecl).Body.List; len(body) == 1 {
		return body[0]
	}
	return s
}

// sourceOf is n as Go.
func sourceOf(n ast.Node) string {
	var b strings.Builder
	if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
		return err.Error()
	}
	return b.String()
}
