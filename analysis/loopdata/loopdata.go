package loopdata

import (
	_ "embed"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT025.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT025", Package: "loopdata", Doc: doc, Infos: true, Values: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if l := refreezes(f.Package, c); l != nil {
				severity := lint.Warning
				if _, named := c.Value().Parent().Node().(*ast.AssignStmt); !named {
					severity = lint.Info // it costs a few handles
				}
				p.Report(severity, analysis.Diagnostic{
					Pos: c.Expr.Pos(), End: c.Expr.End(), Related: l.Related(),
					Message: types.ExprString(c.Expr) + " freezes the same weights in each iteration; freeze them before the loop",
				})
			}
		}
		for _, c := range f.Calls {
			if l := repeated(f.Package, c); l != nil {
				p.Report(lint.Warning, analysis.Diagnostic{
					Pos: c.Expr.Pos(), End: c.Expr.End(), Related: l.Related(),
					Message: types.ExprString(c.Expr) + " computes the same in each iteration, as nothing trains the network there; compute it before the loop",
				})
			}
		}
		for _, c := range f.Calls {
			if l := solved(f.Package, c); l != nil {
				p.Report(lint.Warning, analysis.Diagnostic{
					Pos: c.Expr.Pos(), End: c.Expr.End(), Related: l.Related(),
					Message: types.ExprString(c.Expr) + " computes the same in each call, and a loop calls " + f.Name + "; compute it once, and keep it",
				})
			}
			if l := stepped(f.Package, c); l != nil {
				p.Report(lint.Warning, analysis.Diagnostic{
					Pos: c.Expr.Pos(), End: c.Expr.End(), Related: l.Related(),
					Message: types.ExprString(c.Expr) + " makes the same tensor in each call, and a loop calls " + f.Name + "; make it once, and keep it",
				})
			}
		}
		for _, r := range remakes(f) {
			severity := lint.Warning
			if r.Begins || isCheap(f.Package, r.Call) || isAwaited(p, r.Loop) {
				severity = lint.Info
			}
			p.Report(severity, analysis.Diagnostic{
				Pos:     r.Call.Expr.Pos(),
				End:     r.Call.Expr.End(),
				Message: types.ExprString(r.Call.Expr) + " makes the same tensor in each iteration; make it before the loop",
				Related: r.Loop.Related(),
			})
		}
	}
}

// isAwaited reports whether each iteration of l waits for the world. What it makes on the device costs nothing beside
// that.
func isAwaited(p *lint.Pass, l *blocking.Loop) bool {
	return l.Stmt != nil && slices.ContainsFunc(sites.Of(p), func(s *sites.Site) bool { return s.Outside && s.Loop.Stmt == l.Stmt })
}

// refreezes returns the innermost loop around c if c freezes a network that is the same one in each iteration, and that
// the loop doesn't train; else nil.
func refreezes(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if c.Away || c.Lib != tensorapi.Ours() || !strings.HasSuffix(c.API.Name, "/nn.Frozen") || len(c.Expr.Args) != 1 {
		return nil
	}
	l := sites.Innermost(pkg, c)
	if l == nil || l.Stmt == nil || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || !sites.IsSameHeader(pkg, c.Expr.Args[0], l) ||
		pkg.Any(l, func(d *blocking.Call) bool { return d.Mutates() || d.Dynamic && d.API.Kind == tensorapi.Unknown }) {
		return nil
	}
	return l
}

// repeated returns the innermost loop around c if c computes the same in each iteration, by a network that is frozen or
// that no optimiser has of those which take steps in the loop; else nil.
//
//	for range steps {
//		want := features.Forward(goal)
//		opt.Minimize(nn.MSELoss(features.Forward(image.Value()), want)) // opt trains the image
//	}
func repeated(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if c.Away || !blocking.IsForward(c) || c.In.Outermost().Contains(blocking.TellsTime) || c.In.IsTest() {
		return nil
	}
	if _, isStmt := c.Value().Parent().Node().(*ast.ExprStmt); isStmt {
		return nil
	}
	l := sites.Innermost(pkg, c)
	net := c.Operand(tensorapi.Recv)[0]
	if l == nil || l.Stmt == nil || pkg.IsOuter(l, c) || sites.IsPaced(pkg, l) || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || !sites.IsSameHeader(pkg, net, l) ||
		slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return !sites.IsSteady(pkg, e, l) }) {
		return nil
	}
	if !pkg.Any(l, (*blocking.Call).Mutates) {
		if pkg.IsFrozen(net) {
			return l
		}
		return nil
	}
	v := pkg.Variable(net)
	t := pkg.Trainings()
	if v == nil || pkg.Any(l, func(d *blocking.Call) bool {
		if !d.Mutates() || d.IsFunc("Tensor.Backward") {
			return false
		}
		if recv := d.Operand(tensorapi.Recv); d.API.Kind == tensorapi.Unknown || len(recv) != 1 || !blocking.IsOptimiser(pkg.Info.TypeOf(recv[0])) || pkg.Variable(recv[0]) == nil {
			return true // it may train anything
		} else {
			return !t.Has(pkg.Variable(recv[0])) || slices.ContainsFunc(t.NetworksOf(pkg.Variable(recv[0])), func(n *types.Var) bool { return t.Overlap(n, v) || t.Overlap(n, t.Root(v)) })
		}
	}) {
		return nil
	}
	return l
}

// A remake is a call in a loop that makes the same tensor in each iteration. It is a constructor with
// host data, a function of the package that calls one, or a conversion of a tensor that the loop
// doesn't change.
type remake struct {
	Call *blocking.Call
	Loop *blocking.Loop
	// Begins reports whether it is what a variable begins with that the loop then computes.
	Begins bool
}

// remakes lists those of f, not of the literals in it.
func remakes(f *blocking.Func) []remake {
	var list []remake
	for _, c := range f.Calls {
		if c.Away || c.API.Kind != tensorapi.Host && !converts(f.Package, c) && !computes(c) && !sites.Makes(f.Package, c.Target) || within(list, c) {
			continue
		}
		if isOp := c.API.Kind == tensorapi.Op && !converts(f.Package, c); isOp && f.Outermost().Contains(blocking.TellsTime) {
			continue // it may be what is measured
		}
		for l := range f.Package.LoopsAround(f, c.Expr.Pos()) {
			if (l.Blocks != nil || f.Runs() == blocking.Looping) && !l.Small && f.Package.Any(l, (*blocking.Call).Enqueues) && !f.Package.IsOuter(l, c) &&
				!sites.IsPaced(f.Package, l) && f.Package.GuardOf(f, c.Expr.Pos(), l) == blocking.Always && isSameWork(f.Package, c, l) {
				list = append(list, remake{c, l, isBeginning(f.Package, c, l)})
			}
			break
		}
	}
	return list
}

// isCheap reports whether c fills a tensor on the device, or computes one by operations that are none of the costly
// ones. These pass over memory once, nothing waits for them, and they are often clearest where they are.
func isCheap(pkg *blocking.Package, c *blocking.Call) bool {
	cheap := true
	ast.Inspect(c.Expr, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		d := pkg.Calls[call]
		if !ok || d == nil {
			return true
		}
		switch d.API.Kind {
		case tensorapi.Op:
			cheap = cheap && !converts(pkg, d) && !isCostly(d)
		case tensorapi.Host:
			cheap = cheap && !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { // it copies data of the host
				_, isList := pkg.Info.TypeOf(e).Underlying().(*types.Slice)
				return isList
			})
		case tensorapi.Unknown:
			cheap = cheap && !d.Enqueues()
		}
		return cheap
	})
	return cheap
}

// isCostly recognises operations that are more than one pass over a tensor: those of linear algebra, sorting and the
// like.
func isCostly(c *blocking.Call) bool {
	return slices.ContainsFunc([]string{
		"Inverse", "PseudoInverse", "Solve", "SolveTriangular", "SolveCholesky", "Cholesky", "Det", "LogDet", "QR", "SVD", "Eigh", "MatrixExp", "MatrixPower",
		"Sort", "ArgSort", "TopK", "Quantile", "Median", "FFT", "RFFT", "IFFT", "IRFFT", "MatMul",
	}, func(name string) bool { return c.IsFunc("Tensor." + name) })
}

// computes reports whether c is an operation of our library on tensors alone, whose result depends on nothing else.
func computes(c *blocking.Call) bool {
	if c.Lib == tensorapi.Ours() && c.API.Kind == tensorapi.Op && isCostly(c) && c.In.Package.ResultsOf(c).Len() > 1 {
		return true // a decomposition into several tensors
	}
	return c.Lib == tensorapi.Ours() && c.API.Kind == tensorapi.Op && blocking.IsTensor(c.In.Package.Info.TypeOf(c.Expr)) &&
		!tensorapi.IsNumber(c.In.Package.Info.TypeOf(c.Expr)) && !blocking.IsForward(c)
}

// within reports whether c is an operand of a call in the list.
func within(list []remake, c *blocking.Call) bool {
	return slices.ContainsFunc(list, func(r remake) bool { return r.Call.Expr.Pos() <= c.Expr.Pos() && c.Expr.End() <= r.Call.Expr.End() })
}

// converts reports whether c converts the tensor that a variable holds to another type.
func converts(pkg *blocking.Package, c *blocking.Call) bool {
	if c.Lib != tensorapi.Ours() || c.Callee.Name() != "As" || c.API.Kind != tensorapi.Op || len(c.Operand(tensorapi.Recv)) == 0 {
		return false
	}
	recv := c.Operand(tensorapi.Recv)[0]
	return pkg.Local(recv) != nil && blocking.IsTensor(pkg.Info.TypeOf(recv))
}

// isSameWork reports whether c does the same in each iteration of l.
func isSameWork(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	return sites.IsSame(pkg, c.Expr, l) || isCostly(c) && !c.IsFunc("Tensor.MatMul") && sites.IsSteady(pkg, c.Expr, l)
}

// isBeginning reports whether c makes the first value of a variable in each iteration of l, and the
// iteration then assigns another value: the start of a sum, of the state of a network.
func isBeginning(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	for _, defs := range pkg.Defs {
		if slices.ContainsFunc(defs, func(d blocking.Def) bool { return d.Kind == blocking.DefValue && ast.Unparen(d.Value) == c.Expr }) {
			return slices.ContainsFunc(defs, func(d blocking.Def) bool {
				return pkg.Contains(l, d.In, d.Pos) && (d.Kind != blocking.DefValue || ast.Unparen(d.Value) != c.Expr)
			})
		}
	}
	return false
}
