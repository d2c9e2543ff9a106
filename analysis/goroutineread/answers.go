package goroutineread

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/sites"
)

// Goroutines that a loop doesn't start by itself, and whose answers it waits for in each iteration.

// An answer is a receive in a loop, of what a goroutine sends after it has read a tensor of the iteration.
type answer struct {
	Receive *ast.UnaryExpr
	Name    string // how messages call the read
	Loop    *blocking.Loop
}

// answers lists the answers in loops that enqueue work. There are two kinds of goroutines: one that a function starts
// which returns the channel, and one beside the loop to which the iteration has just sent a tensor.
//
//	sum += <-ask(loss)
//
//	requests <- loss
//	sum += <-replies
func answers(pkg *blocking.Package) []answer {
	var list []answer
	for _, f := range pkg.Funcs {
		for _, l := range f.Flow().Loops {
			if l.Small || !pkg.Any(l, (*blocking.Call).Enqueues) {
				continue
			}
			for _, e := range sites.ReceivesOf(pkg, l) {
				if isRepeated(list, e) || !isUnconditional(pkg, f, e.Pos(), l) {
					continue
				}
				if name := readFor(pkg, f, e, l); name != "" {
					list = append(list, answer{e, name, l})
				}
			}
		}
	}
	return list
}

func isRepeated(list []answer, e *ast.UnaryExpr) bool {
	return slices.ContainsFunc(list, func(a answer) bool { return a.Receive == e })
}

// readFor returns the name of the read whose value e, in l, receives; or nothing.
func readFor(pkg *blocking.Package, f *blocking.Func, e *ast.UnaryExpr, l *blocking.Loop) string {
	call := syntax.AsCall(e.X)
	if v := pkg.Local(e.X); v != nil && l.Declares(v) && len(pkg.Defs[v]) == 1 {
		call = syntax.AsCall(syntax.OrNil(pkg.Defs[v][0].Value))
	}
	if c := pkg.Calls[call]; c != nil {
		if c.Target == nil || !slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
			return blocking.IsTensor(pkg.Info.TypeOf(e)) && pkg.Fresh(e, f, l)
		}) {
			return ""
		}
		for _, g := range c.Target.Nested {
			if started := pkg.Calls[g.ArgOf]; started != nil && blocking.IsGo(started) && g.ArgNo < 0 && !hasLoop(g) {
				if name := readAndSent(pkg, g, nil); name != "" {
					return name
				}
			}
		}
		return ""
	}
	replies := pkg.Local(e.X)
	if replies == nil || l.Declares(replies) {
		return ""
	}
	// A goroutine beside the loop takes what the iteration sends, reads it and sends the value back.
	for _, g := range f.Nested {
		started := pkg.Calls[g.ArgOf]
		if started == nil || !blocking.IsGo(started) || g.ArgNo >= 0 || pkg.Contains(l, f, started.Expr.Pos()) || !takesFrom(pkg, g, f, e, l) {
			continue
		}
		if name := readAndSent(pkg, g, replies); name != "" {
			return name
		}
	}
	return ""
}

// hasLoop reports whether g has a loop.
func hasLoop(g *blocking.Func) bool { return len(g.Flow().Loops) > 0 }

// readAndSent returns the name of a read in g whose value g sends: on the channel ch, or on any if ch is nil.
func readAndSent(pkg *blocking.Package, g *blocking.Func, ch *types.Var) string {
	for cur := range g.Cur.Preorder((*ast.SendStmt)(nil)) {
		n := cur.Node().(*ast.SendStmt)
		if ch != nil && pkg.Local(n.Chan) != ch || pkg.FuncAt(cur) != g {
			continue
		}
		for _, c := range g.Calls {
			for _, w := range pkg.Waits(c) {
				if w.Via == nil || !w.Via.Guarded {
					return pkg.CallName(c, w)
				}
			}
		}
	}
	return ""
}

// takesFrom reports whether g receives tensors from a channel on which the iteration of l sends one before it comes
// to e.
func takesFrom(pkg *blocking.Package, g, f *blocking.Func, e *ast.UnaryExpr, l *blocking.Loop) bool {
	sent := make(map[*types.Var]bool)
	for cur := range f.Cur.Preorder((*ast.SendStmt)(nil)) {
		n := cur.Node().(*ast.SendStmt)
		if n.Pos() < e.Pos() && pkg.FuncAt(cur) == f && pkg.Contains(l, f, n.Pos()) && pkg.HoldsTensors(pkg.Info.TypeOf(n.Value)) {
			sent[pkg.Local(n.Chan)] = true
		}
	}
	delete(sent, nil)
	for cur := range g.Cur.Preorder((*ast.RangeStmt)(nil), (*ast.UnaryExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.RangeStmt:
			if sent[pkg.Local(n.X)] {
				return true
			}
		case *ast.UnaryExpr:
			if sent[pkg.Local(n.X)] {
				return true
			}
		}
	}
	return false
}
