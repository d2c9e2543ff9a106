package rows

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Kept is map-rows: nobody looks at what a loop computes of one row after the other. It is kept, in
// a list, in a sum, or for a read of something else that is made of it. The loop stays, and takes
// the rows of what is computed at once.
//
//	for i := range n {                               hidden := asyncrt.MapRows(n, func(row asyncrt.RowOf) *tensor.Tensor {
//		h := x.Row(i).MatMul(w)                      	h := row(x).MatMul(w)
//		outs = append(outs, h.Tanh())                	return h.Tanh()
//	}                                                })
//	y := tensor.Stack(0, outs...)                    for i := range n {
//	                                                 	outs = append(outs, hidden.Row(i))
//	                                                 }
//	                                                 y := tensor.Stack(0, outs...)
//
// Whether rows can be computed together, and nobody can tell, the runtime decides, as it knows
// shapes, devices and what is tracked: else it calls the function for each row where the loop asks
// for it. What has to be proved is that the function only computes, and that what it uses stays the
// same while the loop runs.
var Kept = &plan.Rewrite{
	Name: "map-rows",
	Was:  "R15",
	Code: plan.KeptTogether,
	Does: "is computed for all rows at once",
}

// Keep adds to d, in which it is decided what comes later, what the loops of the function compute for all rows at once.
// What is put off is left alone. It returns remarks on it.
func Keep(d *plan.Deferral) (made []plan.Remark) {
	f := d.Function
	if f.Goto() != nil || f.Unsafe() != nil {
		return nil
	}
	late, takes, changes := put(d)
	detach := sync.OnceValue(f.NeverDifferentiates)
	loop := func(n ast.Stmt) {
		b := newBatcher(f, f.Tree(n))
		if b == nil || late(n) {
			return
		}
		k := &keeper{batcher: b, late: late, takes: takes, changes: changes}
		for _, keep := range k.find() {
			keep.Detach = detach()
			d.Keeps = append(d.Keeps, keep)
			for _, e := range keep.Places {
				made = append(made, Kept.Made(f, e.Pos(), types.ExprString(e)))
			}
		}
		d.Gone = append(d.Gone, k.gone...)
		d.Idle = append(d.Idle, k.idle...)
	}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.LabeledStmt:
			loop(n)
		case *ast.ForStmt, *ast.RangeStmt:
			if _, labelled := f.Parent(n).(*ast.LabeledStmt); !labelled {
				loop(n.(ast.Stmt))
			}
		}
		return true
	})
	return made
}

// put returns what reports whether a statement is put off, the reads whose tensors are computed in
// their places before that, and what the statements that are put off do.
func put(d *plan.Deferral) (late func(ast.Stmt) bool, takes map[ast.Expr]bool, changes *plan.Effects) {
	var stmts []ast.Stmt
	takes, changes = make(map[ast.Expr]bool), &plan.Effects{}
	for _, l := range d.Laters {
		for _, r := range l.Regions {
			for _, g := range r.Groups {
				for _, s := range g.Stmts {
					stmts = append(stmts, s.Node)
					e, reads := s.Deferred()
					changes.Add(e)
					for _, r := range reads {
						if r.Rows == nil && r.Lift == nil && r.Plain == nil && !r.Fixed {
							takes[r.Expr] = true
						}
					}
				}
			}
		}
	}
	return func(n ast.Stmt) bool {
		return slices.ContainsFunc(stmts, func(s ast.Stmt) bool { return s.Pos() <= n.Pos() && n.End() <= s.End() })
	}, takes, changes
}

// A keeper looks at what one loop keeps.
type keeper struct {
	*batcher
	late    func(ast.Stmt) bool
	takes   map[ast.Expr]bool
	changes *plan.Effects // of what is put off

	outer *plan.Effects // what the loop does, to anything but its own variables
	gone  []ast.Stmt
	idle  []ast.Stmt

	shared map[*plan.Stmt]*keepable // definitions whose variables ofRows takes as they are
}

// A keepable is an expression that may be computed for all rows at once.
type keepable struct {
	match
	expr ast.Expr
	stmt *plan.Stmt // that it is in, of the body
}

// find returns what can be computed at once, and notes which definitions nobody else needs.
func (k *keeper) find() []*plan.Keep {
	if k.mayEnd() {
		return nil
	}
	for s := range k.loop.All {
		if v := k.definition(s); v != nil && s.Parent == k.loop {
			k.defs[v] = s
		}
	}
	total, reads := k.loop.Total()
	for _, r := range reads {
		total.Add(k.f.Effects(r.Operand))
	}
	// there would be so many rows only once what is put off has run
	if total.Barrier != nil || k.f.Effects(k.count).Needs(k.changes) {
		return nil
	}
	k.outer = total.Without(func(l plan.Loc) bool { return k.isOwn(l) })

	var others, defined []*keepable
	for _, s := range k.loop.Bodies[0] {
		if k.isDefinition(s) {
			defined = append(defined, k.keepables(s)...)
		} else {
			others = append(others, k.keepables(s)...)
		}
		if jumpsOn(s) {
			break // the others are computed in some iterations
		}
	}
	// What becomes of definitions depends on what is kept, and the other way round.
	kept := slices.Concat(others, defined)
	for range len(kept) + 1 {
		gone := k.unneeded(kept)
		var next []*keepable
		for _, c := range slices.Concat(others, defined) {
			d := k.defs[k.f.Variable(c.expr)]
			if d != nil && !slices.Contains(gone, d) || slices.Contains(gone, c.stmt) {
				continue // the definition is the place, or none
			}
			next = append(next, c)
		}
		if slices.Equal(next, kept) {
			for _, d := range gone {
				k.gone = append(k.gone, d.Node)
			}
			for _, d := range k.defs {
				if !slices.Contains(gone, d) && k.isMade(d, kept) && !k.isUsed(d, gone, kept) {
					k.idle = append(k.idle, d.Node)
				}
			}
			return k.together(kept, gone)
		}
		kept = next
	}
	k.gone = nil
	return nil
}

// mayEnd reports whether the loop may end before its last row.
func (k *keeper) mayEnd() bool {
	return slices.ContainsFunc(k.loop.Bodies[0], func(s *plan.Stmt) bool {
		return slices.ContainsFunc(plan.JumpsFrom(s.Node), func(n ast.Stmt) bool {
			b, ok := n.(*ast.BranchStmt)
			return !ok || b.Tok != token.CONTINUE || plan.Leaves(k.loop.Node) != nil
		})
	})
}

func (k *keeper) isDefinition(s *plan.Stmt) bool {
	for _, d := range k.defs {
		if d == s {
			return true
		}
	}
	return false
}

// jumpsOn reports whether what comes after s in the body of the loop does not run in all iterations.
func jumpsOn(s *plan.Stmt) bool {
	return slices.ContainsFunc(plan.JumpsFrom(s.Node), func(n ast.Stmt) bool {
		b, ok := n.(*ast.BranchStmt)
		return ok && b.Tok == token.CONTINUE
	})
}

// keepables returns the largest expressions of s, a statement of the body, that can be computed for all rows at once.
func (k *keeper) keepables(s *plan.Stmt) (found []*keepable) {
	if k.late(s.Node) {
		for _, r := range s.Reads {
			if k.takes[r.Expr] && k.f.AlwaysFirst(r.Expr, s.Inner()) {
				found = append(found, k.largest(s, r.Operand)...)
			}
		}
		return found
	}
	switch n := s.Inner().(type) {
	case *ast.AssignStmt:
		for _, e := range n.Rhs {
			found = append(found, k.largest(s, e)...)
		}
	case *ast.DeclStmt:
		if g, ok := n.Decl.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				for _, e := range spec.(*ast.ValueSpec).Values {
					found = append(found, k.largest(s, e)...)
				}
			}
		}
	case *ast.ExprStmt:
		found = append(found, k.largest(s, n.X)...)
	}
	return found
}

func (k *keeper) largest(s *plan.Stmt, root ast.Expr) (found []*keepable) {
	ast.Inspect(root, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		e, ok := n.(ast.Expr)
		if !ok || k.f.Info.Types[e].IsType() {
			return true
		}
		if t, ok := k.f.Info.TypeOf(e).(*types.Pointer); !ok || !k.f.Analysis.API.IsTensor(t) || !k.f.Info.Types[e].IsValue() {
			return true
		}
		c := &keepable{expr: e, stmt: s, match: match{uses: &plan.Effects{}}}
		if !k.ofRows(&c.match, e) || len(c.calls) == 0 || c.ops == 0 || !k.f.AlwaysFirst(e, s.Inner()) || !k.isIndexAt(e) || !k.onlyComputes(&c.match, e) {
			return true
		}
		slices.SortFunc(c.defs, func(x, y *plan.Stmt) int { return int(x.Node.Pos() - y.Node.Pos()) })
		found = append(found, c)
		return false
	})
	return found
}

// ofRows reports whether e uses the variables of the loop for nothing but x.Row(index), directly or
// through definitions.
func (k *keeper) ofRows(m *match, e ast.Expr) (ok bool) {
	ok = true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			ok = false
		case *ast.CallExpr:
			ok = ok && k.callOfRows(m, n)
			if len(m.calls) > 0 && m.calls[len(m.calls)-1] == n {
				return false
			}
		case *ast.Ident:
			v, isVar := k.f.Info.ObjectOf(n).(*types.Var)
			if !isVar || v.IsField() || !k.declares(v) {
				break
			}
			d := k.defs[v]
			if ok = ok && d != nil; ok && !slices.Contains(m.defs, d) {
				if k.shared[d] == nil {
					ok = k.ofRows(m, d.Node.(*ast.AssignStmt).Rhs[0])
				}
				m.defs = append(m.defs, d)
			}
		}
		return ok
	})
	return ok
}

// callOfRows is ofRows for a call, without its operands unless it takes a row.
func (k *keeper) callOfRows(m *match, call *ast.CallExpr) bool {
	fn, api, kind := k.f.Callee(call)
	switch kind {
	case plan.CallsLibrary:
		if fn.Signature().Recv() != nil && k.isRow(call, fn) {
			m.calls = append(m.calls, call)
			sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
			return ok && !k.mentionsLoop(sel.X)
		}
		switch api.Kind {
		case tensorapi.Op:
			m.ops++
			return api.Batch != tensorapi.Alone || fn.Name() == "Forward"
		case tensorapi.View:
			return api.Batch != tensorapi.Alone
		case tensorapi.Pure, tensorapi.Meta, tensorapi.Value, tensorapi.Host:
			return true
		}
		return false
	case plan.CallsFunction, plan.CallsUnknown:
		if !k.f.Info.Types[call.Fun].IsType() {
			m.ops++
		}
	}
	return true
}

// onlyComputes reports whether evaluating e, and what it is made of, does nothing else, and what
// that needs stays the same while the loop runs.
func (k *keeper) onlyComputes(m *match, e ast.Expr) bool {
	uses := k.f.Effects(e)
	for _, d := range m.defs {
		uses.Add(k.f.Effects(d.Node.(*ast.AssignStmt).Rhs[0]))
	}
	if !computes(uses) {
		return false
	}
	// What is put off has run where a row is asked for, if that needs it; but not where the function is written down.
	at := plan.Loc{Kind: plan.Cells}
	_, takes := uses.Reads[at]
	_, sets := k.outer.Writes[at]
	return !(takes && sets) && !uses.Needs(k.outer) && !uses.Needs(k.changes)
}

// unneeded returns the definitions that nothing but the functions of kept needs, and that may as
// well be there: the first one runs right behind them.
func (k *keeper) unneeded(kept []*keepable) (gone []*plan.Stmt) {
	for _, c := range kept {
		for _, d := range c.defs {
			if !slices.Contains(gone, d) {
				gone = append(gone, d)
			}
		}
	}
	for n := -1; n != len(gone); {
		n = len(gone)
		gone = slices.DeleteFunc(slices.Clone(gone), func(d *plan.Stmt) bool {
			return k.isUsed(d, gone, kept) || !k.movesTo(d, gone, kept)
		})
	}
	return gone
}

// isMade reports whether something of kept is made of what d defines.
func (k *keeper) isMade(d *plan.Stmt, kept []*keepable) bool {
	return slices.ContainsFunc(kept, func(c *keepable) bool { return slices.Contains(c.defs, d) })
}

// isUsed reports whether anything but kept, and what is gone, uses the variable that d defines.
func (k *keeper) isUsed(d *plan.Stmt, gone []*plan.Stmt, kept []*keepable) bool {
	v := k.f.Info.Defs[d.Node.(*ast.AssignStmt).Lhs[0].(*ast.Ident)]
	for id, obj := range k.f.Info.Uses {
		within := func(n ast.Node) bool { return n.Pos() <= id.Pos() && id.End() <= n.End() }
		if obj == v && !slices.ContainsFunc(gone, func(d *plan.Stmt) bool { return within(d.Node) }) &&
			!slices.ContainsFunc(kept, func(c *keepable) bool { return within(c.expr) }) {
			return true
		}
	}
	return false
}

// movesTo reports whether d may be evaluated at the beginning of the first of kept that needs it.
func (k *keeper) movesTo(d *plan.Stmt, gone []*plan.Stmt, kept []*keepable) bool {
	body := k.loop.Bodies[0]
	next := slices.Index(body, d)
	for next < len(body) && slices.Contains(gone, body[next]) {
		next++
	}
	if next == len(body) {
		return false
	}
	return slices.ContainsFunc(kept, func(c *keepable) bool {
		return c.stmt == body[next] && slices.Contains(c.defs, d) && k.begins(c.expr, c.stmt)
	})
}

// together makes one of what is the same, and of what several are made of.
func (k *keeper) together(kept []*keepable, gone []*plan.Stmt) (keeps []*plan.Keep) {
	slices.SortStableFunc(kept, func(a, b *keepable) int { return int(a.expr.Pos() - b.expr.Pos()) })
	var first []*keepable // of those that are the same
	places := make(map[*keepable][]ast.Expr)
	for _, c := range kept {
		i := slices.IndexFunc(first, func(o *keepable) bool {
			return types.ExprString(o.expr) == types.ExprString(c.expr) && slices.Equal(o.defs, c.defs)
		})
		if i < 0 {
			first, i = append(first, c), len(first)
		}
		places[first[i]] = append(places[first[i]], c.expr)
	}
	of := k.share(first, gone, places)
	made := make(map[*keepable]*plan.Keep)
	any := false
	for _, c := range slices.Concat(k.sharedOf(of), first) {
		if made[c] != nil {
			continue
		}
		keep := &plan.Keep{Loop: k.loop.Node, Index: k.index, Count: k.count, Len: k.len, Expr: c.expr, Places: places[c]}
		m := &match{}
		k.shared = of
		if c.stmt != nil && of[c.stmt] == c { // not of itself
			k.shared = maps.Clone(of)
			delete(k.shared, c.stmt)
		}
		k.ofRows(m, c.expr)
		k.shared = nil
		if d := of[c.stmt]; d == c && slices.Contains(gone, c.stmt) {
			keep.Gone = c.stmt.Node.(*ast.AssignStmt)
		}
		keep.Calls = m.calls
		slices.SortFunc(m.defs, func(x, y *plan.Stmt) int { return int(x.Node.Pos() - y.Node.Pos()) })
		for _, d := range m.defs {
			keep.Defs = append(keep.Defs, plan.KeepDef{Stmt: d.Node, Of: made[of[d]]})
			any = any || of[d] != nil
		}
		made[c] = keep
		keeps = append(keeps, keep)
	}
	if any {
		for _, keep := range keeps[1:] {
			keep.First = keeps[0]
		}
	}
	return keeps
}

// share returns the definitions that are kept themselves and that others are made of, or that
// several are made of, and what is kept of each.
func (k *keeper) share(kept []*keepable, gone []*plan.Stmt, places map[*keepable][]ast.Expr) map[*plan.Stmt]*keepable {
	of, users := make(map[*plan.Stmt]*keepable), make(map[*plan.Stmt]int)
	for _, c := range kept {
		for _, d := range c.defs {
			users[d]++
		}
	}
	for d, n := range users {
		i := slices.IndexFunc(kept, func(c *keepable) bool { return c.stmt == d })
		switch {
		case i >= 0 && kept[i].expr == ast.Unparen(d.Node.(*ast.AssignStmt).Rhs[0]):
			of[d] = kept[i]
		case n > 1 && slices.Contains(gone, d):
			rhs := d.Node.(*ast.AssignStmt).Rhs[0]
			c := &keepable{expr: rhs, stmt: d, match: match{uses: &plan.Effects{}}}
			if k.ofRows(&c.match, rhs) && c.ops > 0 {
				of[d] = c
			}
		}
	}
	return of
}

// sharedOf returns what is kept of definitions, in their order.
func (k *keeper) sharedOf(of map[*plan.Stmt]*keepable) (list []*keepable) {
	for _, c := range of {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *keepable) int { return int(a.expr.Pos() - b.expr.Pos()) })
	return list
}
