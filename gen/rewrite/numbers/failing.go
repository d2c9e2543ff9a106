package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// Either fails if any tensor in it has failed, even on the side that the program does not take. So it has to be known
// that none has: the program would have got no further. A failure shows where a value is read. A tensor has not failed
// if another one that was read is made of it, or if it is one that has been read before: of copies such as the best
// weights so far, that is found out by following what failures would lead to each other, round the loops.

// fates is what is known of failures of local tensors. A tensor is fine if the program has looked at it and gone on. Of
// another one it is known with which tensors it fails: if it has failed, all of these have. A place that is never
// reached has nil.
type fates map[*types.Var]*fate

type fate struct {
	fine bool
	with map[*types.Var]bool
}

// A follower follows fates through a function.
type follower struct {
	*locals
	at     map[ast.Stmt]fates // where each choice that may be one decides
	breaks []fates            // from the loops and switches around, innermost last
	nexts  []fates            // those that go on with the next iteration, of the loops around
}

// implies reports whether v has failed only if one of others has.
func (f fates) implies(v *types.Var, others map[types.Object]bool) bool {
	if others[v] {
		return true
	}
	at := f[v]
	if at == nil {
		return false
	}
	for w := range at.with {
		if others[w] {
			return true
		}
	}
	return at.fine
}

func (f fates) clone() fates {
	if f == nil {
		return nil
	}
	g := make(fates)
	for v, at := range f {
		g[v] = &fate{at.fine, maps.Clone(at.with)}
	}
	return g
}

// meet returns what is known where f or g may hold.
func (f fates) meet(g fates) fates {
	switch {
	case f == nil:
		return g.clone()
	case g == nil:
		return f.clone()
	}
	both := make(fates)
	for v := range f {
		a, b := f[v], g[v]
		if b == nil {
			continue
		}
		at := &fate{a.fine && b.fine, make(map[*types.Var]bool)}
		for _, w := range slices.Collect(maps.Keys(a.with)) {
			if b.fine || b.with[w] {
				at.with[w] = true
			}
		}
		for _, w := range slices.Collect(maps.Keys(b.with)) {
			if a.fine || a.with[w] {
				at.with[w] = true
			}
		}
		both[v] = at
	}
	return both
}

func (f fates) equal(g fates) bool {
	return (f == nil) == (g == nil) && maps.EqualFunc(f, g, func(a, b *fate) bool { return a.fine == b.fine && maps.Equal(a.with, b.with) })
}

// follow finds what is known at each statement by which the device may choose. It is nothing in
// functions in which control takes ways that are not followed.
func (r *locals) follow() map[ast.Stmt]fates {
	f, followed := &follower{locals: r, at: make(map[ast.Stmt]fates)}, true
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.LabeledStmt, *ast.SelectStmt, *ast.TypeSwitchStmt:
			followed = false
		case *ast.BranchStmt:
			followed = followed && n.Tok != token.FALLTHROUGH
		}
		return followed
	})
	if followed {
		f.list(r.f.Decl.Body.List, make(fates))
	}
	return f.at
}

func (f *follower) list(list []ast.Stmt, now fates) fates {
	for _, s := range list {
		now = f.stmt(s, now)
	}
	return now
}

// stmt returns what is known after s, if it is now before.
func (f *follower) stmt(s ast.Stmt, now fates) fates {
	if s == nil || now == nil {
		return now
	}
	switch s := s.(type) {
	case *ast.BlockStmt:
		return f.list(s.List, now)
	case *ast.AssignStmt:
		return f.assign(s, f.look(s, now))
	case *ast.IfStmt:
		now = f.stmt(s.Init, now)
		now = f.look(s.Cond, now)
		f.at[s] = now.clone()
		then := f.list(s.Body.List, now.clone())
		return then.meet(f.stmt(s.Else, now.clone()))
	case *ast.SwitchStmt:
		return f.cases(s, now)
	case *ast.ForStmt:
		return f.loop(f.stmt(s.Init, now), func(now fates) (body, end fates) {
			if s.Cond != nil {
				now = f.look(s.Cond, now)
				end = now.clone()
			}
			return f.list(s.Body.List, now), end
		}, s.Post)
	case *ast.RangeStmt:
		now = f.look(s.X, now)
		return f.loop(now, func(now fates) (body, end fates) {
			end = now.clone()
			f.forget(s.Key, now)
			f.forget(s.Value, now)
			return f.list(s.Body.List, now), end
		}, nil)
	case *ast.ReturnStmt:
		return nil
	case *ast.BranchStmt:
		switch {
		case s.Tok == token.BREAK:
			f.breaks[len(f.breaks)-1] = f.breaks[len(f.breaks)-1].meet(now)
		case s.Tok == token.CONTINUE:
			f.nexts[len(f.nexts)-1] = f.nexts[len(f.nexts)-1].meet(now)
		}
		return nil
	}
	for _, v := range assignedIn(f.f, s) {
		f.set(v, now)
	}
	return f.look(s, now)
}

// cases is stmt of a switch.
func (f *follower) cases(s *ast.SwitchStmt, now fates) fates {
	now = f.stmt(s.Init, now)
	if s.Tag != nil {
		now = f.look(s.Tag, now)
	}
	f.at[s] = now.clone()
	f.breaks = append(f.breaks, nil)
	var after fates
	hasDefault := false
	for _, clause := range s.Body.List {
		cc := clause.(*ast.CaseClause)
		hasDefault = hasDefault || cc.List == nil
		after = after.meet(f.list(cc.Body, now.clone()))
	}
	if !hasDefault {
		after = after.meet(now)
	}
	after = after.meet(f.breaks[len(f.breaks)-1])
	f.breaks = f.breaks[:len(f.breaks)-1]
	return after
}

// loop is stmt of a loop, of which iterate is one iteration from its condition to the end of the
// body, and post what follows.
func (f *follower) loop(before fates, iterate func(fates) (body, end fates), post ast.Stmt) fates {
	for head := before; ; {
		f.breaks, f.nexts = append(f.breaks, nil), append(f.nexts, nil)
		body, end := iterate(head.clone())
		n := len(f.breaks) - 1
		body = f.stmt(post, body.meet(f.nexts[len(f.nexts)-1]))
		after := end.meet(f.breaks[n])
		f.breaks, f.nexts = f.breaks[:n], f.nexts[:len(f.nexts)-1]
		next := head.meet(body)
		if next.equal(head) {
			return after
		}
		head = next
	}
}

// look returns what is known after n has been evaluated, which reads values: of what has failed if
// they have, nothing has.
func (f *follower) look(n ast.Node, now fates) fates {
	for _, read := range itemsIn(f.f, n) {
		if !f.f.AlwaysFirst(read, n) {
			continue
		}
		made := f.operands(ast.Unparen(read.Fun).(*ast.SelectorExpr).X)
		for v := range made {
			if v := v.(*types.Var); now[v] == nil {
				now[v] = &fate{with: make(map[*types.Var]bool)}
			}
		}
		for v, at := range now {
			if now.implies(v, made) {
				at.fine = true
			}
		}
	}
	return now
}

// assign returns what is known after s, which sets variables.
func (f *follower) assign(s *ast.AssignStmt, now fates) fates {
	before, set := now.clone(), assignedIn(f.f, s)
	for i, lhs := range s.Lhs {
		id, ok := ast.Unparen(lhs).(*ast.Ident)
		if !ok {
			continue
		}
		v, ok := f.f.Info.ObjectOf(id).(*types.Var)
		if !ok {
			continue
		}
		f.set(v, now)
		if len(s.Lhs) == len(s.Rhs) && (s.Tok == token.ASSIGN || s.Tok == token.DEFINE) {
			f.give(v, s.Rhs[i], before, now, func(w *types.Var) bool { return w != v && slices.Contains(set, w) })
		}
	}
	return now
}

// set notes in now that v is given a value of which nothing is known.
func (f *follower) set(v *types.Var, now fates) {
	delete(now, v)
	for _, at := range now {
		delete(at.with, v)
	}
}

// give notes in now that v has the given value; before is what was known when that was computed. Variables that
// are given others in the same statement are not what they were: isOther tells which.
func (f *follower) give(v *types.Var, value ast.Expr, before, now fates, isOther func(*types.Var) bool) {
	if !f.f.Analysis.API.IsTensor(v.Type()) || f.inner[v] || !f.f.CanCopy(v) {
		return
	}
	at := &fate{with: make(map[*types.Var]bool)}
	if id, ok := ast.Unparen(value).(*ast.Ident); ok {
		from, ok := f.f.Info.ObjectOf(id).(*types.Var)
		if ok && !f.inner[from] && f.f.CanCopy(from) {
			at.with[from] = true
			if of := before[from]; of != nil {
				at.fine = of.fine
				maps.Copy(at.with, of.with)
			}
		}
		maps.DeleteFunc(at.with, func(w *types.Var, _ bool) bool { return w == v || isOther(w) })
	}
	now[v] = at
	made := f.operands(value)
	for w := range made { // nothing was known of some
		if w := w.(*types.Var); now[w] == nil && !isOther(w) {
			now[w] = &fate{with: make(map[*types.Var]bool)}
		}
	}
	for w, of := range now {
		if w != v && !isOther(w) && before.implies(w, made) {
			of.with[v] = true
		}
	}
}

// forget notes that e, a variable if it is one, has got a value of which nothing is known.
func (f *follower) forget(e ast.Expr, now fates) {
	if id, ok := e.(*ast.Ident); ok {
		if v, ok := f.f.Info.ObjectOf(id).(*types.Var); ok {
			f.set(v, now)
		}
	}
}
