package rebuilt

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
)

// A rebuild is a call that builds or compiles the same graph or plan in each
// iteration of a loop.
type rebuild struct {
	Call *blocking.Call
	Loop *blocking.Loop // nil: in each call of the function that it is in, for ever
}

// rebuilds lists the rebuilds in f, but not in its literals.
func rebuilds(f *blocking.Func) []rebuild {
	var list []rebuild
	for _, c := range f.Calls {
		if c.Away || !blocking.Libraries().Rebuilds(c.Callee) && !c.Summary().Builds {
			continue
		}
		if definesForNobody(f.Package, f, c) {
			list = append(list, rebuild{Call: c})
			continue
		}
		for l := range f.Package.LoopsAround(f, c.Expr.Pos()) {
			if l.Blocks != nil && !l.Small && !f.Package.IsOuter(l, c) && !isConditional(f, c, l) && buildsSame(f.Package, c, l) {
				list = append(list, rebuild{c, l})
			}
			break
		}
	}
	return list
}

// definesForNobody reports whether c defines an operation of ours outside of loops, and nobody has the
// operation after f has returned. The next call of f defines it again, and all of them are kept for
// ever. Functions that run once, such as main, are left out.
func definesForNobody(pkg *blocking.Package, f *blocking.Func, c *blocking.Call) bool {
	decl, ok := f.Cur.Node().(*ast.FuncDecl)
	if !ok || decl.Recv == nil && runsOnce(decl.Name.Name) || !tensorapi.Ours().Rebuilds[c.Callee.FullName()] || pkg.RunsInLoop(f, c) {
		return false
	}
	parent := c.Cur.Parent()
	if assign, ok := parent.Node().(*ast.AssignStmt); ok && len(assign.Lhs) == 1 {
		id, ok := assign.Lhs[0].(*ast.Ident)
		if !ok {
			return false
		}
		v, ok := pkg.Info.Defs[id].(*types.Var)
		if !ok {
			return false
		}
		for use := range pkg.UsesOf(v, f) {
			if use.ParentEdgeKind() != edge.SelectorExpr_X || use.Parent().ParentEdgeKind() != edge.CallExpr_Fun {
				return false
			}
		}
	} else if c.Cur.ParentEdgeKind() != edge.SelectorExpr_X || parent.ParentEdgeKind() != edge.CallExpr_Fun {
		return false
	}
	own := false // whether it is defined by what f was given
	for _, e := range c.Expr.Args {
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				v, ok := pkg.Info.Uses[id].(*types.Var)
				own = own || ok && !v.IsField() && v.Parent() != pkg.Pass.Pkg.Scope() && !(e.Pos() <= v.Pos() && v.Pos() < e.End())
			}
			return !own
		})
	}
	return !own
}

// runsOnce reports whether a function of that name runs once in a program, or in a test.
func runsOnce(name string) bool {
	return name == "main" || name == "init" || strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Benchmark") || strings.HasPrefix(name, "Example")
}

// isConditional reports whether some iterations of l, which is in f, don't come to c. Then c may be
// what fills a cache.
func isConditional(f *blocking.Func, c *blocking.Call, l *blocking.Loop) bool {
	pos := c.Expr.Pos()
	fl := f.Flow()
	for _, cond := range append(f.Package.ShortCircuits(pos), fl.Conditions(fl.BlockAt(pos))...) {
		if cond.Divides(l) {
			return true
		}
	}
	return false
}

// buildsSame reports whether c builds the same in each iteration of l.
func buildsSame(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	p := newProgram(pkg)
	for _, e := range c.Plans() {
		if pkg.Varies(e, l) || !blocking.IsSettledExpr(e) {
			return false
		}
		p.read(e)
	}
	if c.Target != nil {
		p.enter(c.Target)
	}
	return !p.differs(c, l)
}
