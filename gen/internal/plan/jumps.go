package plan

import (
	"go/ast"
	"go/token"
	"slices"
)

// Leaves returns a jump by which control may leave n other than at its end,
// or nil: return, goto, and break and continue of what is around n.
func Leaves(n ast.Stmt) ast.Stmt {
	if jumps := JumpsFrom(n); len(jumps) > 0 {
		return jumps[0]
	}
	return nil
}

// JumpsFrom returns all jumps by which control may leave n other than at its end.
func JumpsFrom(n ast.Stmt) (jumps []ast.Stmt) {
	var visit func(n ast.Node, breakable, continuable bool, labels []string)
	visit = func(n ast.Node, breakable, continuable bool, labels []string) {
		ast.Inspect(n, func(m ast.Node) bool {
			if m == n {
				switch m := m.(type) {
				case *ast.ForStmt, *ast.RangeStmt:
					breakable, continuable = true, true
				case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
					breakable = true
				case *ast.LabeledStmt:
					labels = append(slices.Clip(labels), m.Label.Name)
				case *ast.ReturnStmt:
					jumps = append(jumps, m)
				case *ast.BranchStmt:
					switch {
					case m.Tok == token.FALLTHROUGH:
					case m.Label != nil && slices.Contains(labels, m.Label.Name):
					case m.Label == nil && m.Tok == token.BREAK && breakable:
					case m.Label == nil && m.Tok == token.CONTINUE && continuable:
					default:
						jumps = append(jumps, m)
					}
				}
				return true
			}
			switch m.(type) {
			case *ast.FuncLit, nil:
				return false
			case ast.Stmt, *ast.CaseClause, *ast.CommClause:
				visit(m, breakable, continuable, labels)
				return false
			}
			return true
		})
	}
	visit(n, false, false, nil)
	return jumps
}

// Deferred is [Stmt.Total] without what the returns in s compute: if s runs
// later, that is done when the function returns. What a function returns that is divided is made later.
func (s *Stmt) Deferred() (*Effects, []*Read) {
	if s.InCall() {
		return s.Total()
	}
	jumps := JumpsFrom(s.Node)
	e, reads := &Effects{}, []*Read(nil)
	for c := range s.All {
		if c != s && slices.Contains(jumps, c.Node) {
			continue
		}
		e.add(c.Head)
		reads = append(reads, c.Reads...)
	}
	return e, reads
}

// Holds returns the expressions in s that take what a cell or a field holds, without those in what
// [Stmt.Deferred] leaves out.
func (s *Stmt) Holds() (list []ast.Expr) {
	jumps := JumpsFrom(s.Node)
	for c := range s.All {
		if c == s || s.InCall() || !slices.Contains(jumps, c.Node) {
			list = append(list, c.Held...)
		}
	}
	return list
}

// Conjuncts returns the parts of a condition that all have to be true, in the
// order in which they are evaluated.
func Conjuncts(cond ast.Expr) []ast.Expr {
	if b, ok := ast.Unparen(cond).(*ast.BinaryExpr); ok && b.Op == token.LAND {
		return append(Conjuncts(b.X), Conjuncts(b.Y)...)
	}
	return []ast.Expr{cond}
}

// SplitTree is [Function.Tree] of a for statement whose condition is divided:
// keep stays where it is, and tests become the first statement of the body.
func (f *Function) SplitTree(n ast.Stmt, keep, tests []ast.Expr) *Stmt {
	s := f.stmt(n, nil)
	loop := s.Inner().(*ast.ForStmt)
	s.Keep, s.Tests = keep, tests
	s.Head, s.Reads = &Effects{}, nil
	w := &walker{f: f, e: s.Head, reads: &s.Reads}
	s.begin(w, loop.Init)
	w.exprs(keep)
	w.stmt(loop.Post)
	all := tests[0]
	for _, t := range tests[1:] {
		all = &ast.BinaryExpr{X: all, OpPos: t.Pos(), Op: token.LAND, Y: t}
	}
	test := &Stmt{Node: &ast.ExprStmt{X: all}, Parent: s, IsTest: true, f: f}
	test.Head = f.walk(all, &test.Reads)
	s.Bodies[0] = slices.Insert(s.Bodies[0], 0, test)
	return s
}

// Restarts reports whether s is a jump to the next iteration of loop.
func (s *Stmt) Restarts(loop *Stmt) bool {
	b, ok := s.Inner().(*ast.BranchStmt)
	if !ok || b.Tok != token.CONTINUE {
		return false
	}
	if b.Label == nil {
		return s.Loop() == loop
	}
	l, ok := loop.Node.(*ast.LabeledStmt)
	return ok && l.Label.Name == b.Label.Name
}
