package gen

import (
	"go/ast"
	"go/token"
	"slices"

	"golang.org/x/tools/go/ast/astutil"
)

// choice returns the if statement that s, a call of Either, stands for; nil if s is none, or one that loses something.
func (u *undoer) choice(s *ast.ExprStmt) *ast.IfStmt {
	call, ok := s.X.(*ast.CallExpr)
	if !ok || len(call.Args) < 3 {
		return nil
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Either" || !isName(sel.X, runtimeQualifier) {
		return nil
	}
	var chosen []string
	for _, arg := range call.Args[3:] {
		if p, ok := arg.(*ast.UnaryExpr); ok && p.Op == token.AND && isIdent(p.X) {
			chosen = append(chosen, p.X.(*ast.Ident).Name)
		}
	}
	then, ok := call.Args[1].(*ast.FuncLit)
	if !ok || losesAny(then, chosen) {
		return nil
	}
	n := &ast.IfStmt{Cond: call.Args[0], Body: then.Body}
	if otherwise, ok := call.Args[2].(*ast.FuncLit); ok {
		if losesAny(otherwise, chosen) {
			return nil
		}
		n.Else = otherwise.Body
		if list := otherwise.Body.List; len(list) == 1 {
			if next, ok := list[0].(*ast.IfStmt); ok { // of another Either: there is no other if in them
				n.Else = next
			}
		}
	}
	return n
}

// losesAny reports whether lit assigns to a variable from outside that is not among those with the given names.
func losesAny(lit *ast.FuncLit, chosen []string) (loses bool) {
	own := make(map[string]bool)
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, lhs := range a.Lhs {
			id, ok := lhs.(*ast.Ident)
			switch {
			case ok && a.Tok == token.DEFINE:
				own[id.Name] = true
			case !ok || !own[id.Name] && !slices.Contains(chosen, id.Name):
				loses = true
			}
		}
		return true
	})
	return loses
}

// headed returns the if statement in block, a definition and an if statement, with the definition in its head; or nil.
func headed(block *ast.BlockStmt) *ast.IfStmt {
	if len(block.List) != 2 {
		return nil
	}
	a, ok := block.List[0].(*ast.AssignStmt)
	n, isIf := block.List[1].(*ast.IfStmt)
	if !ok || !isIf || a.Tok != token.DEFINE || n.Init != nil {
		return nil
	}
	return &ast.IfStmt{Init: a, Cond: n.Cond, Body: n.Body, Else: n.Else}
}

// cases returns the if statement that is the switch n; nil if it is none.
func cases(n *ast.SwitchStmt) ast.Stmt {
	if n.Init != nil || len(n.Body.List) == 0 {
		return nil
	}
	var first, last *ast.IfStmt
	for i, clause := range n.Body.List {
		cc := clause.(*ast.CaseClause)
		body := &ast.BlockStmt{List: cc.Body}
		if fallsOut(body) || cc.List == nil && (i == 0 || i < len(n.Body.List)-1) {
			return nil
		}
		if cc.List == nil {
			last.Else = body
			continue
		}
		next := &ast.IfStmt{Body: body}
		for _, e := range cc.List {
			if n.Tag != nil {
				e = called("Eq", n.Tag, e)
			}
			if next.Cond == nil {
				next.Cond = e
			} else {
				next.Cond = called("Or", next.Cond, e)
			}
		}
		if first == nil {
			first = next
		} else {
			last.Else = next
		}
		last = next
	}
	return first
}

// fallsOut reports whether body, of a case, has a jump out of the switch to what follows, or into
// the next case. The rewrite asks the same in its own way: the check shares nothing with it.
func fallsOut(body *ast.BlockStmt) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
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

// A chain is an if statement with those behind its elses, and what is done if no condition holds at the end.
type chain struct {
	conds []ast.Expr
	arms  [][]ast.Stmt
}

// chainOf returns the chain of n.
func chainOf(n *ast.IfStmt) (c chain) {
	for {
		c.conds, c.arms = append(c.conds, n.Cond), append(c.arms, n.Body.List)
		switch e := n.Else.(type) {
		case *ast.IfStmt:
			n = e
			continue
		case *ast.BlockStmt:
			c.arms = append(c.arms, e.List)
		default:
			c.arms = append(c.arms, nil)
		}
		return c
	}
}

// chainLike returns the chain of n as far as its conditions are those of want: an empty one if the
// first is another. What is done if a condition of want does not hold, and nothing else, is an else
// as well.
func chainLike(n *ast.IfStmt, want chain) (c chain) {
	for _, cond := range want.conds {
		var rest []ast.Stmt
		switch sourceOf(n.Cond) {
		case sourceOf(cond):
			c.conds, c.arms = append(c.conds, n.Cond), append(c.arms, n.Body.List)
			switch e := n.Else.(type) {
			case *ast.IfStmt:
				rest = []ast.Stmt{e}
			case *ast.BlockStmt:
				rest = e.List
			}
		case sourceOf(called("Not", cond)):
			if n.Else != nil {
				return chain{}
			}
			c.conds, c.arms = append(c.conds, n.Cond.(*ast.CallExpr).Args[0]), append(c.arms, nil)
			rest = n.Body.List
		default:
			return chain{}
		}
		next, ok := only(&ast.BlockStmt{List: rest}).(*ast.IfStmt)
		if i := len(c.conds); !ok || i == len(want.conds) || !slices.Contains([]string{sourceOf(want.conds[i]), sourceOf(called("Not", want.conds[i]))}, sourceOf(next.Cond)) {
			c.arms = append(c.arms, rest)
			return c
		}
		n = next
	}
	return c
}

// only returns the statement of body if there is but one.
func only(body *ast.BlockStmt) ast.Stmt {
	if len(body.List) == 1 {
		return body.List[0]
	}
	return nil
}

// as returns c, a chain like want, with sides on which it does nothing, as many as want has. It is
// not ok if c does something on other conditions.
func (c chain) as(want chain) (longer chain, ok bool) {
	n := len(c.conds)
	if n == 0 || n < len(want.conds) && len(c.arms[n]) > 0 {
		return chain{}, false
	}
	arms := slices.Clone(c.arms)
	for len(arms) < len(want.arms) {
		arms = append(arms, nil)
	}
	return chain{c.conds, arms}, true
}

// doesNothing reports whether c is of the user, and not one of two that have been taken apart: these do something.
func (c chain) doesNothing() bool {
	return !slices.ContainsFunc(c.arms, func(arm []ast.Stmt) bool { return len(arm) > 0 })
}

// together puts together what the device chooses and what the host does on the same conditions, as
// the original has it, if it does not matter that they have been taken apart.
func (u *undoer) together(got, want *ast.FuncDecl) {
	var originals []*ast.IfStmt
	ast.Inspect(want, func(n ast.Node) bool {
		if s, ok := n.(*ast.IfStmt); ok {
			originals = append(originals, s)
		}
		return true
	})
	join := func(list []ast.Stmt) []ast.Stmt {
		list = slices.DeleteFunc(list, func(s ast.Stmt) bool { _, isEmpty := s.(*ast.EmptyStmt); return isEmpty })
		for i := 0; i+1 < len(list); i++ {
			a, isIf := list[i].(*ast.IfStmt)
			b, isToo := list[i+1].(*ast.IfStmt)
			if !isIf || !isToo || a.Init != nil || b.Init != nil {
				continue
			}
			if s := u.joinedAs(a, b, originals); s != nil {
				list = slices.Replace(list, i, i+2, ast.Stmt(s))
			}
		}
		return list
	}
	astutil.Apply(got, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.BlockStmt:
			n.List = join(n.List)
			if s := headed(n); s != nil && c.Index() >= 0 {
				c.Replace(s)
			}
		case *ast.CaseClause:
			n.Body = join(n.Body)
		case *ast.CommClause:
			n.Body = join(n.Body)
		}
		return true
	})
}

// joinedAs returns what a and b are together, as one of the originals is; or nil.
func (u *undoer) joinedAs(a, b *ast.IfStmt, originals []*ast.IfStmt) *ast.IfStmt {
	for _, o := range originals {
		want := chainOf(o)
		if s := u.joined(chainLike(a, want), chainLike(b, want), o); s != nil {
			return s
		}
	}
	return nil
}

// joined returns the statement that does what first does and then what second does, in the order of
// original; nil if that is no such statement, or the order matters.
func (u *undoer) joined(first, second chain, original *ast.IfStmt) *ast.IfStmt {
	want := chainOf(original)
	first, ok := first.as(want)
	second, too := second.as(want)
	if !ok || !too || first.doesNothing() || second.doesNothing() {
		return nil
	}
	for _, arm := range first.arms {
		set := setIn(arm)
		for _, cond := range second.conds {
			if u.mentionsNow(cond, set) {
				return nil // it would be another by then
			}
		}
	}
	var arms [][]ast.Stmt
	for i := range want.arms {
		arm, ok := interleaved(first.arms[i], second.arms[i], want.arms[i])
		if !ok {
			return nil
		}
		arms = append(arms, arm)
	}
	conds := first.conds
	if len(second.conds) > len(conds) {
		conds = second.conds
	}
	if len(conds) < len(want.conds) {
		return nil
	}
	return chain{conds, arms}.like(original)
}

// like returns c as an if statement with the elses of n.
func (c chain) like(n *ast.IfStmt) *ast.IfStmt {
	s := &ast.IfStmt{Cond: c.conds[0], Body: &ast.BlockStmt{List: c.arms[0]}}
	switch e := n.Else.(type) {
	case *ast.IfStmt:
		s.Else = chain{c.conds[1:], c.arms[1:]}.like(e)
	case *ast.BlockStmt:
		s.Else = &ast.BlockStmt{List: c.arms[1]}
	}
	return s
}

// mentionsNow reports whether e mentions one of the given names, and not a copy of before.
func (u *undoer) mentionsNow(e ast.Expr, set map[string]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			found = found || set[id.Name] && !u.copies[id]
		}
		return !found
	})
	return found
}

// interleaved returns the statements of first and second in the order that they have in want. It is
// not ok if want has others, or if it matters that they are in another order now.
func interleaved(first, second, want []ast.Stmt) (list []ast.Stmt, ok bool) {
	if len(first)+len(second) != len(want) {
		return nil, false
	}
	var before []ast.Stmt // statements of second that want has before some of first
	for _, s := range want {
		switch {
		case len(first) > 0 && sourceOf(s) == sourceOf(first[0]):
			if slices.ContainsFunc(before, func(b ast.Stmt) bool { return !exchangeable(b, s) }) {
				return nil, false
			}
			list, first = append(list, first[0]), first[1:]
		case len(second) > 0 && sourceOf(s) == sourceOf(second[0]):
			before, list, second = append(before, s), append(list, second[0]), second[1:]
		default:
			return nil, false
		}
	}
	return list, true
}

// exchangeable reports whether it makes no difference which of two statements comes first.
func exchangeable(a, b ast.Stmt) bool {
	for _, s := range []ast.Stmt{a, b} {
		leaves := false
		ast.Inspect(s, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.BranchStmt, *ast.ReturnStmt, *ast.FuncLit:
				leaves = true
			}
			return !leaves
		})
		if leaves {
			return false
		}
	}
	return !mentionsName(a, setIn([]ast.Stmt{b})) && !mentionsName(b, setIn([]ast.Stmt{a})) && (isArithmetic(a) || isArithmetic(b))
}

func mentionsName(n ast.Node, set map[string]bool) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			found = found || set[id.Name]
		}
		return !found
	})
	return found
}

// setIn returns the names of what list sets, or sets a part of.
func setIn(list []ast.Stmt) map[string]bool {
	set := make(map[string]bool)
	add := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				set[id.Name] = true
			}
			return true
		})
	}
	for _, s := range list {
		ast.Inspect(s, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, lhs := range n.Lhs {
					add(lhs)
				}
			case *ast.IncDecStmt:
				add(n.X)
			case *ast.RangeStmt:
				if n.Key != nil {
					add(n.Key)
				}
				if n.Value != nil {
					add(n.Value)
				}
			}
			return true
		})
	}
	return set
}

// isArithmetic reports whether n, in the form of numbers, makes no call but of what arithmetic is there.
func isArithmetic(n ast.Node) bool {
	ok := true
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			id, isID := n.Fun.(*ast.Ident)
			ok = ok && isID && (isNumberMethod(id.Name) || id.Name == "append" || id.Name == "len")
		case *ast.IndexExpr, *ast.SliceExpr, *ast.StarExpr, *ast.TypeAssertExpr:
			ok = false
		}
		return ok
	})
	return ok
}
