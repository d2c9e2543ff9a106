package gen

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/ast/astutil"
)

// rowsOf is what was computed for all rows, as the function of one row has it.
type rowsOf struct {
	param  string
	defs   []ast.Stmt // before the result
	result ast.Expr
	apart  bool      // the rows in them are x.Row(j) again
	of     []*rowsOf // others that they have rows of
	kept   bool      // the rows are tensors, and taken where the program computes them
}

// learnRows records what name := later.Rows(…, of) stands for, or what is kept by a function of.
func (u *undoer) learnRows(name string, of ast.Expr, kept bool) {
	lit, ok := of.(*ast.FuncLit)
	if !ok || len(lit.Body.List) == 0 {
		return
	}
	last := len(lit.Body.List) - 1
	ret, ok := lit.Body.List[last].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return
	}
	u.rows[name] = &rowsOf{param: lit.Type.Params.List[0].Names[0].Name, defs: lit.Body.List[:last], result: ret.Results[0], kept: kept}
}

// learnKept records what name := asyncrt.MapRows(…) stands for, or name := others.Map(…), if call is one of these.
func (u *undoer) learnKept(name string, call *ast.CallExpr) bool {
	if maps := mapsRows(call); maps != nil && len(maps.Args) == 2 {
		u.learnRows(name, maps.Args[1], true)
		return true
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Map" && len(call.Args) == 1 {
		if id, ok := s.X.(*ast.Ident); ok && u.rows[id.Name] != nil && u.rows[id.Name].kept {
			u.learnRows(name, call.Args[0], true)
			return true
		}
	}
	return false
}

// this returns what the call rows.This() in the function of one row has of others, or nil.
func (u *undoer) this(n ast.Node) *rowsOf {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return nil
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "This" {
		if id, ok := s.X.(*ast.Ident); ok && u.rows[id.Name] != nil && u.rows[id.Name].kept {
			return u.rows[id.Name]
		}
	}
	return nil
}

// standAgain puts the reads of rows that are kept where the entries look at them.
func (u *undoer) standAgain(fn *ast.FuncDecl) {
	astutil.Apply(fn, nil, func(c *astutil.Cursor) bool {
		id, ok := c.Node().(*ast.Ident)
		if !ok || c.Name() == "Sel" || u.stands[id.Name] == nil {
			return true
		}
		isKept := false
		ast.Inspect(u.stands[id.Name], func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				r := u.isRow(call)
				isKept = isKept || r != nil && r.kept
			}
			return true
		})
		if isKept {
			c.Replace(u.stands[id.Name])
		}
		return true
	})
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
				result := u.one(r, n.Args[0])
				if method := n.Fun.(*ast.SelectorExpr).Sel; method.Name != "At" && !r.kept {
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
	id, ok := s.X.(*ast.Ident)
	if !ok || u.rows[id.Name] == nil {
		return nil
	}
	switch s.Sel.Name {
	case "Item", "ItemInt", "At", "AtInt":
		if !u.rows[id.Name].kept {
			return u.rows[id.Name]
		}
	case "Row":
		if u.rows[id.Name].kept {
			return u.rows[id.Name]
		}
	}
	return nil
}

// mapsRows returns the call of asyncrt.MapRows that call is, or that Detach is called of.
func mapsRows(call *ast.CallExpr) *ast.CallExpr {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return nil
	}
	if inner, ok := s.X.(*ast.CallExpr); ok && s.Sel.Name == "Detach" && len(call.Args) == 0 {
		return mapsRows(inner)
	}
	id, ok := s.X.(*ast.Ident)
	if !ok || s.Sel.Name != "MapRows" || strings.Trim(id.Name, `"`) != load.RuntimePath {
		return nil
	}
	return call
}

// one returns the result for one row.
func (u *undoer) one(r *rowsOf, index ast.Expr) ast.Expr {
	if !r.apart {
		r.apart = true
		body := &ast.BlockStmt{List: append(r.defs[:len(r.defs):len(r.defs)], &ast.ReturnStmt{Results: []ast.Expr{r.result}})}
		astutil.Apply(body, nil, func(c *astutil.Cursor) bool {
			if others := u.this(c.Node()); others != nil {
				r.of = append(r.of, others)
				c.Replace(u.one(others, index))
			} else if call, ok := c.Node().(*ast.CallExpr); ok {
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

// all returns what r is made of, and r.
func (r *rowsOf) all() (list []*rowsOf) {
	for _, others := range r.of {
		list = append(list, others.all()...)
	}
	return append(list, r)
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
			if a, ok := n.(*ast.AssignStmt); ok && a.Tok == token.DEFINE && len(a.Lhs) == 1 {
				have[a.Lhs[0].(*ast.Ident).Name] = true // it is there
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
				u.one(r, n.Args[0])
				found = append(found, r.all()...)
			}
		}
		return true
	})
	return found
}
