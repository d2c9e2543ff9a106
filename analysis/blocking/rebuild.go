package blocking

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
)

// A Rebuild is a call that builds or compiles the same graph or plan in each
// iteration of a loop.
type Rebuild struct {
	Call *Call
	Loop *Loop // nil: in each call of the function that it is in, for ever
}

// Rebuilds lists those of f, not of the literals in it.
func (f *Func) Rebuilds() []Rebuild {
	var list []Rebuild
	for _, c := range f.calls {
		if c.away || !libraries().Rebuilds(c.Callee) && !c.sum().Builds {
			continue
		}
		if f.a.definesForNobody(f, c) {
			list = append(list, Rebuild{Call: c})
			continue
		}
		for l := range f.a.loopsAround(f, c.Expr.Pos()) {
			if l.blocks != nil && !l.small && !f.a.isOuter(l, c) && !f.isConditional(c, l) && f.a.buildsSame(c, l) {
				list = append(list, Rebuild{c, l})
			}
			break
		}
	}
	return list
}

// definesForNobody reports whether c, outside of loops, defines an operation of ours, which is kept for ever, that
// f uses and nobody after it: the next call of f defines the same again. The program's first function and tests
// run once.
func (a *analyzer) definesForNobody(f *Func, c *Call) bool {
	decl, ok := f.cur.Node().(*ast.FuncDecl)
	if !ok || decl.Recv == nil && runsOnce(decl.Name.Name) || !tensorapi.Ours().Rebuilds[c.Callee.FullName()] || a.loops(f, c) {
		return false
	}
	parent := c.cur.Parent()
	if assign, ok := parent.Node().(*ast.AssignStmt); ok && len(assign.Lhs) == 1 {
		id, ok := assign.Lhs[0].(*ast.Ident)
		if !ok {
			return false
		}
		v, ok := a.info.Defs[id].(*types.Var)
		if !ok {
			return false
		}
		for use := range a.usesOf(v, f) {
			if use.ParentEdgeKind() != edge.SelectorExpr_X || use.Parent().ParentEdgeKind() != edge.CallExpr_Fun {
				return false
			}
		}
	} else if c.cur.ParentEdgeKind() != edge.SelectorExpr_X || parent.ParentEdgeKind() != edge.CallExpr_Fun {
		return false
	}
	own := false // whether it is defined by what f was given
	for _, e := range c.Expr.Args {
		ast.Inspect(e, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				v, ok := a.info.Uses[id].(*types.Var)
				own = own || ok && !v.IsField() && v.Parent() != a.pass.Pkg.Scope() && !(e.Pos() <= v.Pos() && v.Pos() < e.End())
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

// isConditional reports whether some iterations of l, which is in f, don't come
// to c: it may be what fills a cache.
func (f *Func) isConditional(c *Call, l *Loop) bool {
	pos := c.Expr.Pos()
	fl := f.flow()
	for _, cond := range append(f.a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...) {
		if cond.divides(l) {
			return true
		}
	}
	return false
}

// buildsSame reports whether what c builds, and for what, is the same in each
// iteration.
func (a *analyzer) buildsSame(c *Call, l *Loop) bool {
	p := a.program()
	for _, e := range c.plans() {
		if a.varies(e, l) || !isSettledExpr(e) {
			return false
		}
		p.read(e)
	}
	if c.target != nil {
		p.enter(c.target)
	}
	return !p.differs(c, l)
}

// plans are the operands of c that say what to build: the fixed parameters of a
// function of a library, as those that follow are what it is used on, or what a
// function of the user passes on for them.
func (c *Call) plans() []ast.Expr {
	var list []ast.Expr
	if c.sum().Builds {
		for op := tensorapi.Recv; op < 31; op++ {
			if c.sum().BuiltOf.Has(op) {
				list = append(list, c.operand(op)...)
			}
		}
		return list
	}
	if !libraries().Rebuilds(c.Callee) {
		return nil
	}
	sig := c.Callee.Signature()
	n := sig.Params().Len()
	if sig.Variadic() {
		n--
	}
	if sig.Recv() != nil {
		list = append(list, c.operand(tensorapi.Recv)...)
	}
	return append(list, c.Expr.Args[:min(n, len(c.Expr.Args))]...)
}

// builtOf says of which operands of f its part g makes what the call c builds; ok
// is false if it may build nothing, or something else in each call of f.
func (a *analyzer) builtOf(f, g *Func, c *Call) (of Operands, ok bool) {
	if c.away || !libraries().Rebuilds(c.Callee) && !c.sum().Builds {
		return 0, false
	}
	pos := c.Expr.Pos()
	fl := g.flow()
	if fl.blockAt(pos) < 0 || g != f && g.how() != once {
		return 0, false
	}
	for _, cond := range append(a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...) {
		if cond.expr == nil || !a.isFailure(cond.expr, !cond.holds) {
			return 0, false // it may fill a cache
		}
	}
	seen := make(map[*types.Var]bool)
	var made func(e ast.Expr) bool
	made = func(e ast.Expr) bool {
		settled := isSettledExpr(e)
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || !settled {
				return settled
			}
			v, ok := a.info.Uses[id].(*types.Var)
			if !ok || v.IsField() || seen[v] || e.Pos() <= v.Pos() && v.Pos() < e.End() {
				return true
			}
			seen[v] = true
			p, isParam := a.params[v]
			switch {
			case isParam && p.of == f && len(a.defs[v]) == 0:
				of |= operands(p.operand)
			case isParam:
				settled = false
			case v.Parent() == a.pass.Pkg.Scope() || v.Pkg() != a.pass.Pkg:
				settled = len(a.defs[v]) <= 1
			default:
				for _, d := range a.defs[v] {
					settled = settled && d.kind == defValue && made(d.value)
				}
			}
			return settled
		})
		return settled
	}
	return of, !slices.ContainsFunc(c.plans(), func(e ast.Expr) bool { return !made(e) })
}

// isSettledExpr reports whether e, outside the literals in it, calls nothing.
func isSettledExpr(e ast.Expr) bool {
	settled := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			settled = false
		case *ast.UnaryExpr:
			settled = settled && n.Op.String() != "<-"
		}
		return settled
	})
	return settled
}
