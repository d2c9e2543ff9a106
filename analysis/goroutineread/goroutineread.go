package goroutineread

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT013.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT013", Package: "goroutineread", Doc: doc, Infos: true, Check: check}

func check(p *lint.Pass) {
	for _, g := range goroutines(p.Package) {
		if ack := ackOf(p.Package, g.Call, g.Lits, g.Loop); ack != nil {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     ack.Pos(),
				End:     ack.End(),
				Message: "goroutine for each iteration: the loop waits here for one that waits in " + g.Name + ", as if it read itself; keep the tensors and read them after the loop",
				Related: g.Loop.Related(),
			})
			continue
		}
		if isOverWorkers(p.Package, g.Loop) {
			continue
		}
		severity, at := lint.Info, g.Call.Expr
		if g.Prints || onlyWaits(p.Package, g) {
			severity, at = lint.Warning, g.Read
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     at.Pos(),
			End:     at.End(),
			Message: "goroutine for each iteration: it waits in " + g.Name + ", and nothing bounds how many do; keep the tensors and read them after the loop",
			Related: g.Loop.Related(),
		})
	}
	for _, a := range answers(p.Package) {
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:     a.Receive.Pos(),
			End:     a.Receive.End(),
			Message: "the loop waits here in each iteration for a goroutine that waits in " + a.Name + ", as if it read itself; keep the tensors and read them after the loop",
			Related: a.Loop.Related(),
		})
	}
}

// goroutines lists the calls in loops that start a goroutine which waits once and ends. It waits for
// work that the loop or the goroutine itself has enqueued.
func goroutines(pkg *blocking.Package) []*sites.Spawn {
	return sites.Spawns(pkg, func(c *blocking.Call) []*blocking.Func {
		if blocking.IsGo(c) || syntax.StartsGoroutine(c.Callee) && !isBounded(c) {
			return c.Lits
		}
		return nil
	}, blocking.IsGo, pkg.Waits)
}

// onlyWaits reports whether the goroutines only wait, and the function waits for all of them after the
// loop. Then it could as well read there.
func onlyWaits(pkg *blocking.Package, g *sites.Spawn) bool {
	if len(g.Lits) == 0 || !slices.ContainsFunc(g.Call.In.Calls, func(d *blocking.Call) bool {
		return d.Expr.Pos() > g.Call.Expr.End() && !pkg.Contains(g.Loop, d.In, d.Expr.Pos()) && waitsForGroup(pkg, d, g.Call, g.Lits)
	}) {
		return false
	}
	return !slices.ContainsFunc(g.Lits, func(lit *blocking.Func) bool {
		return lit.Contains(func(c *blocking.Call) bool {
			isSync := c.Callee != nil && c.Callee.Pkg() != nil && (c.Callee.Pkg().Path() == "sync" || c.Callee.Pkg().Path() == "sync/atomic")
			_, isLit := ast.Unparen(c.Expr.Fun).(*ast.FuncLit) // whose calls are asked, too
			return c.API.Kind == tensorapi.Unknown && !isSync && !isLit && !(c.TakesTensor() && c.Summary().Enqueues && !c.Summary().Blocks) || c.Mutates()
		})
	})
}

// isBounded reports whether c starts a goroutine of a group for which c's function sets a limit.
func isBounded(c *blocking.Call) bool {
	group := c.In.Package.Variable(c.Operand(tensorapi.Recv)[0])
	return c.In.Outermost().Contains(func(d *blocking.Call) bool {
		return syntax.IsFullName(d.Callee, "(*golang.org/x/sync/errgroup.Group).SetLimit") && c.In.Package.Variable(d.Operand(tensorapi.Recv)[0]) == group
	})
}

// ackOf returns the expression by which each iteration of l waits for the goroutine that c has started:
// a wait for its group, or a receive from a channel that one of the literals sends to or closes. If
// there are no literals, c's callee is what runs. Otherwise it returns nil.
func ackOf(pkg *blocking.Package, c *blocking.Call, lits []*blocking.Func, l *blocking.Loop) ast.Expr {
	if len(lits) == 0 && c.Target != nil {
		lits = []*blocking.Func{c.Target}
	}
	sent := make(map[*types.Var]bool)
	for _, lit := range lits {
		for cur := range lit.Cur.Preorder((*ast.SendStmt)(nil), (*ast.CallExpr)(nil)) {
			switch n := cur.Node().(type) {
			case *ast.SendStmt:
				sent[passedFor(pkg, n.Chan, c)] = true
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "close" && pkg.Info.Types[id].IsBuiltin() {
					sent[passedFor(pkg, n.Args[0], c)] = true
				}
			}
		}
	}
	for _, d := range c.In.Calls {
		if d.Expr.Pos() > c.Expr.End() && pkg.Contains(l, d.In, d.Expr.Pos()) && waitsForGroup(pkg, d, c, lits) && isUnconditional(pkg, c.In, d.Expr.Pos(), l) {
			return d.Expr
		}
	}
	for _, e := range sites.ReceivesOf(pkg, l) {
		v := pkg.Variable(e.X)
		if v != nil && sent[v] && e.Pos() > c.Expr.End() && isUnconditional(pkg, c.In, e.Pos(), l) {
			return e
		}
	}
	return nil
}

// passedFor returns the variable or field that e stands for in a function that c starts. If e is a parameter of that
// function, this is what c passes.
func passedFor(pkg *blocking.Package, e ast.Expr, c *blocking.Call) *types.Var {
	v := pkg.Variable(e)
	if p, ok := pkg.Params[v]; ok && (p.Of == c.Target || p.Of.ArgOf == c.Expr) {
		if given := c.Operand(p.Operand); len(given) == 1 {
			e = ast.Unparen(given[0])
			if u, ok := e.(*ast.UnaryExpr); ok {
				e = u.X // &wg
			}
			return pkg.Variable(e)
		}
	}
	return v
}

// waitsForGroup reports whether d waits for a group of goroutines to which the one that c starts
// belongs. Either c is a method of the group, or one of the literals tells the group that it is done.
func waitsForGroup(pkg *blocking.Package, d, c *blocking.Call, lits []*blocking.Func) bool {
	if !syntax.IsFullName(d.Callee, "(*sync.WaitGroup).Wait") && !syntax.IsFullName(d.Callee, "(*golang.org/x/sync/errgroup.Group).Wait") {
		return false
	}
	group := pkg.Variable(d.Operand(tensorapi.Recv)[0])
	if group == nil {
		return false
	}
	if syntax.StartsGoroutine(c.Callee) {
		return pkg.Variable(c.Operand(tensorapi.Recv)[0]) == group
	}
	return slices.ContainsFunc(lits, func(lit *blocking.Func) bool {
		return lit.Contains(func(e *blocking.Call) bool {
			return syntax.IsFullName(e.Callee, "(*sync.WaitGroup).Done") && passedFor(pkg, e.Operand(tensorapi.Recv)[0], c) == group
		})
	})
}

// isUnconditional reports whether all iterations of l but those that leave it come to pos, in f.
func isUnconditional(pkg *blocking.Package, f *blocking.Func, pos token.Pos, l *blocking.Loop) bool {
	conditions := append(pkg.ShortCircuits(pos), f.Flow().Conditions(f.Flow().BlockAt(pos))...)
	return !slices.ContainsFunc(conditions, func(c blocking.Condition) bool { return c.Divides(l) })
}
