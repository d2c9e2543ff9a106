package gen

import (
	"go/ast"
	"go/token"

	"golang.org/x/tools/go/ast/astutil"
)

// rowsOf is what was computed for all rows, as the function of one row has it.
type rowsOf struct {
	param  string
	defs   []ast.Stmt // before the result
	result ast.Expr
	apart  bool // the rows in them are x.Row(j) again
}

// learnRows records what name := later.Rows(…) stands for.
func (u *undoer) learnRows(name string, call *ast.CallExpr) {
	lit, ok := call.Args[1].(*ast.FuncLit)
	if !ok || len(call.Args) != 2 || len(lit.Body.List) == 0 {
		return
	}
	last := len(lit.Body.List) - 1
	ret, ok := lit.Body.List[last].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return
	}
	u.rows[name] = &rowsOf{param: lit.Type.Params.List[0].Names[0].Name, defs: lit.Body.List[:last], result: ret.Results[0]}
}

// apart makes what is computed for all rows of a function what is computed for
// one, in the place where it is asked for.
func (u *undoer) apart(fn *ast.FuncDecl) {
	if len(u.rows) == 0 {
		return
	}
	u.defineAgain(fn.Body, make(map[string]bool))
	astutil.Apply(fn, func(c *astutil.Cursor) bool {
		if n, ok := c.Node().(*ast.SelectorExpr); ok && n.Sel.Name == "Err" {
			if call, ok := n.X.(*ast.CallExpr); ok && u.isRow(call) != nil {
				n.Sel = ast.NewIdent("Wait")
			}
		}
		return true
	}, func(c *astutil.Cursor) bool {
		if n, ok := c.Node().(*ast.CallExpr); ok {
			if r := u.isRow(n); r != nil {
				result := r.one(n.Args[0])
				if method := n.Fun.(*ast.SelectorExpr).Sel; method.Name != "At" {
					result = &ast.CallExpr{Fun: &ast.SelectorExpr{X: result, Sel: method}}
				}
				c.Replace(result)
			}
		}
		return true
	})
}

// isRow returns what a call asks for a row of, or nil.
func (u *undoer) isRow(call *ast.CallExpr) *rowsOf {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 1 {
		return nil
	}
	switch s.Sel.Name {
	case "Item", "ItemInt", "At":
		if id, ok := s.X.(*ast.Ident); ok {
			return u.rows[id.Name]
		}
	}
	return nil
}

// one returns the result for one row.
func (r *rowsOf) one(index ast.Expr) ast.Expr {
	if !r.apart {
		r.apart = true
		body := &ast.BlockStmt{List: append(r.defs[:len(r.defs):len(r.defs)], &ast.ReturnStmt{Results: []ast.Expr{r.result}})}
		astutil.Apply(body, nil, func(c *astutil.Cursor) bool {
			if call, ok := c.Node().(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && id.Name == r.param && len(call.Args) == 1 {
					c.Replace(&ast.CallExpr{Fun: &ast.SelectorExpr{X: call.Args[0], Sel: ast.NewIdent("Row")}, Args: []ast.Expr{index}})
				}
			}
			return true
		})
		r.defs, r.result = body.List[:len(body.List)-1], body.List[len(body.List)-1].(*ast.ReturnStmt).Results[0]
	}
	return r.result
}

// defineAgain puts the definitions of functions of one row in front of the first statements
// that ask for what they are needed for. have has the names of those that are there.
func (u *undoer) defineAgain(body ast.Node, have map[string]bool) {
	astutil.Apply(body, func(c *astutil.Cursor) bool {
		if c.Node() == body {
			return true
		}
		switch n := c.Node().(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.FuncLit:
			inner := make(map[string]bool)
			for name := range have {
				inner[name] = true
			}
			u.defineAgain(n, inner)
			return false
		case ast.Stmt:
			if c.Index() < 0 {
				break
			}
			for _, r := range u.asked(n) {
				for _, d := range r.defs {
					a, ok := d.(*ast.AssignStmt)
					if !ok || a.Tok != token.DEFINE || len(a.Lhs) != 1 {
						continue
					}
					if name := a.Lhs[0].(*ast.Ident).Name; !have[name] {
						have[name] = true
						c.InsertBefore(d)
					}
				}
			}
		}
		return true
	}, nil)
}

// asked returns what s, but for the statements in it, asks for rows of.
func (u *undoer) asked(s ast.Stmt) (found []*rowsOf) {
	ast.Inspect(s, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, *ast.FuncLit:
			return n == s
		case *ast.CallExpr:
			if r := u.isRow(n); r != nil {
				r.one(n.Args[0])
				found = append(found, r)
			}
		}
		return true
	})
	return found
}
