package plan

import (
	"fmt"
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// A Lift is a function that looks at values, but not to decide what the device
// does. Its variant runs as the loops do that call it: work for the device is done
// in its place, and what needs values later, in the backlog of the caller. What
// the variant returns is a function that makes the results when that has run.
type Lift struct {
	Name     string // of the variant
	Function *Function
	Later    *Later // the backlog, which the variant gets as its first parameter
	Region   *Region

	// Named results are results of what the variant returns, or, if other parts
	// of the function use them, variables of the variant: those of Results.
	Outer   bool
	Results []*types.Var

	Ahead  *Effects // of what is done in its place
	Late   *Effects // of the rest
	Queued *Effects // of that part of the rest which is in the backlog before what is returned is called

	Once bool // what is returned must not be called twice
}

// lifting is the outcome of an attempt to divide a function.
type lifting struct {
	lift *Lift
	why  *Cause // why not, in the function; nil if it has no waits
}

// Lift divides fn. If it can't be, why says what in it is in the way; both
// are nil if there is nothing to gain.
func (a *Analysis) Lift(fn *types.Func) (l *Lift, why *Cause) {
	fn = fn.Origin()
	if done, ok := a.lifts[fn]; ok {
		return done.lift, done.why
	}
	a.lifts[fn] = lifting{} // it calls itself: the inner call waits
	body, ok := a.Program.Body(fn)
	if !ok || body.Stub || a.Summary(fn).Waits == nil {
		return nil, nil
	}
	f := a.Function(body.Pkg, body.Decl)
	f.Lifts = true
	if l, why = a.divide(f); l != nil {
		l.Name = a.variantName(body)
	}
	a.lifts[fn] = lifting{l, why}
	return l, why
}

// variantName is a name that nothing in the package of body is called by.
func (a *Analysis) variantName(body *load.Body) string {
	taken := a.idents[body.Pkg]
	if taken == nil {
		taken = make(map[string]bool)
		for _, file := range body.Pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					taken[id.Name] = true
				}
				return true
			})
		}
		a.idents[body.Pkg] = taken
	}
	return free(taken, body.Decl.Name.Name+"Later")
}

// free returns name, or the first of name2, name3, … that is not taken, and takes it.
func free(taken map[string]bool, name string) string {
	got := name
	for i := 2; taken[got]; i++ {
		got = fmt.Sprintf("%s%d", name, i)
	}
	taken[got] = true
	return got
}

// Body returns the body of f as a tree. It is that of a loop without an end: f may
// be called again before what comes later has run.
func (f *Function) Body() *Stmt {
	s := &Stmt{
		Node: &ast.ForStmt{For: f.Decl.Pos(), Body: f.Decl.Body},
		Head: &Effects{}, Declares: make(map[types.Object]bool), IsCall: true, f: f,
	}
	s.Bodies = [][]*Stmt{f.list(f.Decl.Body.List, s)}
	return s
}

// Defers reports whether f defers a call.
func (f *Function) Defers() bool { return f.hasDefer }

// NamedResults are the results of f that have names, in order.
func (f *Function) NamedResults() (vs []*types.Var) {
	if f.Decl.Type.Results == nil {
		return nil
	}
	for _, field := range f.Decl.Type.Results.List {
		for _, name := range field.Names {
			if v, ok := f.Info.Defs[name].(*types.Var); ok {
				vs = append(vs, v)
			}
		}
	}
	return vs
}

// apart returns why f can't call the variant of g, or nil. The variant stands in a
// file of a function that calls it: that has to be built whenever g is, and no other
// file can have another function in the place of g then.
func (f *Function) apart(g *Function) *Cause {
	switch {
	case f.Pkg.Types != g.Pkg.Types:
		return &Cause{Text: "is in another package"}
	case !f.Analysis.InPlace && f.constraint() != g.constraint():
		return &Cause{Text: "is in a file with another build constraint"}
	}
	return nil
}

// constraint is what restricts when the file of f is built.
func (f *Function) constraint() string {
	for _, file := range f.Pkg.Syntax {
		if file.FileStart <= f.Decl.Pos() && f.Decl.Pos() < file.FileEnd {
			return f.Pkg.Source(file).Constraint()
		}
	}
	return ""
}

// Outside returns what of e a caller of f can tell.
func (f *Function) Outside(e *Effects) *Effects {
	return e.outside(func(l Loc) bool { return (l.Kind == Var || l.Kind == Own) && f.isLocal(l.Obj) })
}

// lifted walks a call of a function that is divided: the variant is called in
// place, and what it returns where the call stands.
func (w *walker) lifted(l *Lift, fn *types.Func, call *ast.CallExpr) {
	args := w.outer()
	args.e = &Effects{}
	args.operands(call)
	args.e.addCall(l.Ahead, call.Pos(), name(fn))
	w.e.addCall(l.Late, call.Pos(), name(fn))
	*w.reads = append(*w.reads, &Read{Expr: call, Operand: call, Lift: l, Effects: args.e})
}
