package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// The conditions under which code runs, from the syntax and from the control-flow graph.

// Divides reports whether both outcomes of the condition stay in the loop. If one of them leaves it, all iterations
// but the last have the other outcome:
//
//	if done {
//		break // the code after it runs in each iteration
//	}
func (c Condition) Divides(l *Loop) bool {
	return l.Blocks == nil || (c.Block < 0 || l.Blocks[c.Block]) && (c.other < 0 || l.Blocks[c.other])
}

// ShortCircuits lists the operands of && and || that decide whether the expression at pos is evaluated.
// If pos is in y, that is x, which holds in x && y and doesn't in x || y:
//
//	if i%100 == 0 && loss.Item() > limit { // i%100 == 0 holds where loss.Item() runs
func (pkg *Package) ShortCircuits(pos token.Pos) []Condition {
	var list []Condition
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return nil
	}
	for c := range cur.Enclosing() {
		if _, ok := c.Node().(ast.Expr); !ok {
			break
		}
		if n, ok := c.Node().(*ast.BinaryExpr); ok && n.Y.Pos() <= pos && (n.Op == token.LAND || n.Op == token.LOR) {
			list = append(list, Condition{n.X, n.Op == token.LAND, -1, -1, nil})
		}
	}
	return list
}

// Conditions lists what decides whether block b runs: the conditions one of whose edges dominates b,
// inner ones first. A case of a select statement is a condition without an expression.
//
//	if p {          // doesn't hold at b, nor at c
//		return
//	}
//	for more() {    // decides nothing at b: a loop's own condition is not asked
//		if q {  // holds at b
//			b()
//		}
//	}
//	c()             // more() decides nothing here either: the loop has no other way out
//
// It goes up the tree of dominators. Where a dominator has one predecessor with two successors, all
// ways to b take the edge between them.
func (f *Flow) Conditions(b int32) []Condition {
	var list []Condition
	target := b
	for ; b >= 0; b = f.idom[b] {
		blk := f.Blocks[b]
		if blk.Kind == cfg.KindSelectCaseBody {
			clause, _ := blk.Stmt.(*ast.CommClause)
			list = append(list, Condition{Block: b, other: -1, clause: clause})
			continue
		}
		if len(f.Preds[b]) != 1 || blk.Kind == cfg.KindForBody || blk.Kind == cfg.KindRangeBody {
			continue // not decided by one edge, or by that of a loop
		}
		p := f.Blocks[f.Preds[b][0]]
		if len(p.Succs) != 2 || len(p.Nodes) == 0 || p.Succs[0] == p.Succs[1] || f.isOnlyExit(p.Index, b, target) {
			continue
		}
		if e, ok := p.Nodes[len(p.Nodes)-1].(ast.Expr); ok {
			// The first successor of a condition is the one where it holds.
			holds := p.Succs[0] == blk
			other := p.Succs[0]
			if holds {
				other = p.Succs[1]
			}
			if tag := f.tags[blk.Stmt]; tag != nil { // case e of a switch over tag is tag == e
				e = &ast.BinaryExpr{X: tag, Op: token.EQL, OpPos: tag.End(), Y: e}
			}
			list = append(list, Condition{e, holds, p.Index, other.Index, nil})
		}
	}
	return list
}

// isOnlyExit reports whether a loop around p is left only by the edge from p to b, apart from ways that
// end in a panic. target is a block outside of that loop. Every run that gets past the loop takes this
// edge, so the condition at p decides nothing.
func (f *Flow) isOnlyExit(p, b, target int32) bool {
	return slices.ContainsFunc(f.Loops, func(l *Loop) bool {
		if !l.Blocks[p] || l.Blocks[b] || l.Blocks[target] {
			return false
		}
		for from := range l.Blocks {
			for _, s := range f.Blocks[from].Succs {
				// Another way out, unless it ends in a panic.
				if !l.Blocks[s.Index] && (from != p || s.Index != b) && (f.returns(s.Index) || f.Reaches(s.Index, l.Head, never)) {
					return false
				}
			}
		}
		return true
	})
}

// takesWork reports whether a case of a select statement receives the work of its loop: the body reads or enqueues
// something with what was received, and the statement has no default. Other cases are ticks, requests to stop and the
// like, which come rarely:
//
//	select {
//	case x := <-work:
//		y := model.Forward(x) // the loop's work
//	case <-ticker.C:
//		fmt.Println(loss) // rare
//	}
func takesWork(pkg *Package, clause *ast.CommClause) bool {
	received, ok := clause.Comm.(*ast.AssignStmt)
	cur, found := pkg.Cursor(clause.Pos())
	if !ok || !found {
		return false
	}
	v := pkg.Variable(received.Lhs[0])
	// With a default the loop does something else meanwhile: what it receives is not its only work.
	for c := range cur.Enclosing((*ast.SelectStmt)(nil)) {
		for _, s := range c.Node().(*ast.SelectStmt).Body.List {
			if s.(*ast.CommClause).Comm == nil {
				return false // does not wait
			}
		}
		break
	}
	// Something in the case uses what was received, and enqueues or waits.
	takes := false
	for _, s := range clause.Body {
		ast.Inspect(s, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && pkg.Calls[call] != nil && (pkg.Calls[call].Enqueues() || len(pkg.Waits(pkg.Calls[call])) > 0) {
				takes = takes || v != nil && pkg.Mentions(call, v)
			}
			return !takes
		})
	}
	return takes
}

// Mentions reports whether v occurs in e.
func (pkg *Package) Mentions(e ast.Expr, v *types.Var) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && pkg.Info.Uses[id] == v
		return !found
	})
	return found
}
