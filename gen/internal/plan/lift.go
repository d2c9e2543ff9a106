package plan

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"

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
	Closure  *Closure // if it is a function literal

	// Here says which results the variant returns in their place, before the
	// function that makes the others. It is nil if none is.
	Here []bool

	// Named results are results of what the variant returns, or, if other parts
	// of the function use them, variables of the variant: those of Results.
	Outer   bool
	Results []*types.Var

	Ahead  *Effects // of what is done in its place
	Late   *Effects // of the rest
	Queued *Effects // of that part of the rest which is in the backlog before what is returned is called

	Once bool // what is returned must not be called twice
}

// A Closure is a function literal that one variable stands for all its life.
type Closure struct {
	Var  *types.Var
	Lit  *ast.FuncLit
	Stmt ast.Stmt // that declares Var, and nothing else
}

// A functionForm is a function in one of its forms: tensors among the results are returned in their
// place, or not. Each package that calls its variant has one of its own.
type functionForm struct {
	fn   *types.Func
	here bool
	home *load.Package
}

// A literalForm is a function literal in one of its forms.
type literalForm struct {
	v    *types.Var
	here bool
}

// lifting is the outcome of an attempt to divide a function.
type lifting struct {
	lift *Lift
	why  *Cause // why not, in the function; nil if it has no waits
}

// Lift divides fn. If it can't be, why says what in it is in the way; both are nil if there is
// nothing to gain. The variant, which stands in the package home, returns tensors in their place if
// here says so.
func (a *Analysis) Lift(fn *types.Func, here bool, home *load.Package) (l *Lift, why *Cause) {
	form := functionForm{fn.Origin(), here, home}
	if done, ok := a.lifts[form]; ok {
		return done.lift, done.why
	}
	a.lifts[form] = lifting{} // it calls itself: the inner call waits
	body, ok := a.Program.Body(form.fn)
	if !ok || body.Stub || a.Summary(form.fn, home).Waits == nil {
		return nil, nil
	}
	f := a.Function(body.Pkg, body.Decl)
	f.Lifts = true
	if f.Pkg != home {
		f.Home = home
	}
	if here && !f.returnsHere() {
		return nil, nil
	}
	if l, why = a.divide(f); l != nil {
		l.Name = a.variantName(body, home)
	}
	a.lifts[form] = lifting{l, why}
	return l, why
}

// returnsHere sets f.Here, and reports whether that makes sense: some results are tensors, and each
// return says what it returns.
func (f *Function) returnsHere() bool {
	if f.Decl.Type.Results == nil {
		return false
	}
	any := false
	for _, field := range f.Decl.Type.Results.List {
		is := f.Analysis.API.IsTensor(f.Info.TypeOf(field.Type))
		any = any || is
		for range max(1, len(field.Names)) {
			f.Here = append(f.Here, is)
		}
	}
	for _, v := range f.NamedResults() {
		any = any && !f.uses(f.Decl.Body, v)
	}
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok {
			any = any && len(r.Results) == len(f.Here)
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return any
}

// returns walks s, a return: what it returns in its place is no part of what it does later.
func (f *Function) returns(w *walker, s *Stmt, n *ast.ReturnStmt) {
	s.Here = &Effects{}
	for i, e := range n.Results {
		if f.Here[i] {
			s.Here.add(f.walk(e, nil))
		} else {
			w.expr(e)
		}
	}
}

// mixed walks an assignment of the results of a function that can be divided, some of which are
// tensors: these are assigned in their place. It reports whether s is one.
func (w *walker) mixed(s *ast.AssignStmt) bool {
	if w.reads == nil || !w.f.Lifts || len(s.Rhs) != 1 || s.Tok != token.ASSIGN && s.Tok != token.DEFINE {
		return false
	}
	switch w.f.parents[s].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
	default:
		return false
	}
	call, ok := s.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	l, name := w.liftHere(call)
	if l == nil || len(l.Here) != len(s.Lhs) {
		return false
	}
	results, _ := w.f.Info.TypeOf(call).(*types.Tuple)
	for i, lhs := range s.Lhs {
		id, ok := lhs.(*ast.Ident)
		switch {
		case !l.Here[i]:
			if s.Tok == token.ASSIGN && results != nil && !w.f.CanWrite(results.At(i).Type()) {
				return false
			}
		case !ok, id.Name != "_" && (w.f.variable(id) == nil || !w.f.isInner(w.f.variable(id))):
			return false
		}
	}
	args := w.divided(l, name, call)
	for i, lhs := range s.Lhs {
		if l.Here[i] {
			args.store(lhs)
		} else {
			w.store(lhs)
		}
	}
	(*w.reads)[len(*w.reads)-1].Assign = s
	return true
}

// liftHere divides the function that call calls so that it returns tensors in their place, if it can be; and its name.
func (w *walker) liftHere(call *ast.CallExpr) (*Lift, string) {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if v := w.f.variable(id); v != nil {
			if w.f.closures[v] == nil {
				return nil, ""
			}
			l, _ := w.f.liftClosure(v, true)
			return l, v.Name()
		}
	}
	fn, _, sort := w.f.Callee(call)
	if sort != CallsFunction {
		return nil, ""
	}
	if _, ok := w.f.Analysis.Program.Effects(fn); ok {
		return nil, ""
	}
	l, _ := w.f.Analysis.Lift(fn, true, w.f.Home)
	if l == nil || w.f.apart(l, call) != nil {
		return nil, ""
	}
	return l, name(fn)
}

// unexported finds names of other packages that are theirs alone.
var unexported = regexp.MustCompile(`\x00\.\P{Lu}`)

// CanWrite reports whether the package that what is made of f stands in has a name for t.
func (f *Function) CanWrite(t types.Type) bool {
	return !unexported.MatchString(types.TypeString(t, func(pkg *types.Package) string {
		if pkg == f.Home.Types {
			return ""
		}
		if !importable(pkg.Path(), f.Home.PkgPath) {
			return "\x00."
		}
		return "\x00"
	}))
}

// IsHere reports whether e, in s, is a result that is returned in its place, or what one is assigned to.
func (s *Stmt) IsHere(e ast.Expr) bool {
	if r, ok := s.Inner().(*ast.ReturnStmt); ok && s.Here != nil {
		i := slices.Index(r.Results, e)
		return i >= 0 && s.f.Here[i]
	}
	for _, r := range s.Reads {
		if r.Assign != nil {
			i := slices.Index(r.Assign.Lhs, e)
			return i >= 0 && r.Lift.Here[i]
		}
	}
	return false
}

// liftClosure divides the function literal that v stands for, as [Analysis.Lift] does.
func (f *Function) liftClosure(v *types.Var, here bool) (l *Lift, why *Cause) {
	for f.outer != nil && !f.isLocal(v) {
		f = f.outer
	}
	form := literalForm{v, here}
	if done, ok := f.lifted[form]; ok {
		return done.lift, done.why
	}
	f.lifted[form] = lifting{}
	c := &Closure{Var: v, Lit: f.closures[v]}
	if f.walk(c.Lit.Body, nil).Waits == nil {
		return nil, nil
	}
	if c.Stmt = f.declaresOnly(c.Lit); c.Stmt == nil {
		why = &Cause{Pos: c.Lit.Pos(), Text: "is declared in a statement with something else"}
	} else if g := f.literal(c); here && !g.returnsHere() {
		return nil, nil
	} else if l, why = f.Analysis.divide(g); l != nil {
		l.Closure = c
	}
	f.lifted[form] = lifting{l, why}
	return l, why
}

// declaresOnly returns the statement of a list that declares the variable of lit, and does nothing else, or nil.
func (f *Function) declaresOnly(lit *ast.FuncLit) ast.Stmt {
	n := f.parents[lit]
	for {
		p, ok := n.(*ast.ParenExpr)
		if !ok {
			break
		}
		n = f.parents[p]
	}
	switch d := n.(type) {
	case *ast.ValueSpec:
		decl, ok := f.parents[d].(*ast.GenDecl)
		if !ok || len(decl.Specs) > 1 || len(d.Names) > 1 {
			return nil
		}
		n = f.parents[decl]
	case *ast.AssignStmt:
		if len(d.Lhs) > 1 {
			return nil
		}
	}
	switch f.parents[n].(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		s, _ := n.(ast.Stmt)
		return s
	}
	return nil
}

// literal returns the function literal of c as a function. What it takes from f has the facts that it has there.
func (f *Function) literal(c *Closure) *Function {
	g := newFunction(f.Analysis, f.Pkg, &ast.FuncDecl{Name: &ast.Ident{NamePos: c.Lit.Pos(), Name: c.Var.Name()}, Type: c.Lit.Type, Body: c.Lit.Body})
	g.outer, g.original, g.Restated, g.Lifts, g.Counts, g.Home = f, f.original, f.Restated, true, f.Counts, f.Home
	maps.Copy(g.parents, f.parents)
	maps.Copy(g.closures, f.closures)
	for v, facts := range f.facts {
		if !g.isLocal(v) {
			known := *facts
			known.isResult = false // of g
			g.facts[v] = &known
		}
	}
	g.findFacts()
	return g
}

// variantName is a name for the variant of body, in home, that nothing in home or in the package of body is called by.
func (a *Analysis) variantName(body *load.Body, home *load.Package) string {
	name := body.Decl.Name.Name + "Later"
	if home != body.Pkg {
		if recv := load.Receiver(body.Decl); recv != "" {
			name = recv + strings.ToUpper(name[:1]) + name[1:]
		}
		name = load.Unexport(name)
	}
	got := name
	for i := 2; a.IsTaken(home, got) || a.identsOf(body.Pkg)[got]; i++ {
		got = fmt.Sprintf("%s%d", name, i)
	}
	if a.variants[home] == nil {
		a.variants[home] = make(map[string]bool)
	}
	a.variants[home][got] = true
	return got
}

// identsOf returns all identifiers in pkg.
func (a *Analysis) identsOf(pkg *load.Package) map[string]bool {
	idents := a.idents[pkg]
	if idents == nil {
		idents = make(map[string]bool)
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					idents[id.Name] = true
				}
				return true
			})
		}
		if a.InPlace { // generated files stay as they are
			for _, name := range pkg.Written() {
				idents[name] = true
			}
		}
		a.idents[pkg] = idents
	}
	return idents
}

// IsTaken reports whether something in pkg has that name, or a variant of a function that stands there.
func (a *Analysis) IsTaken(pkg *load.Package, name string) bool {
	return a.identsOf(pkg)[name] || a.variants[pkg][name]
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

// Results are the results of f; those without a name have "".
func (f *Function) Results() (vs []*types.Var) {
	if f.Decl.Type.Results == nil {
		return nil
	}
	for _, field := range f.Decl.Type.Results.List {
		t := f.Info.TypeOf(field.Type)
		for _, name := range field.Names {
			vs = append(vs, types.NewVar(name.Pos(), f.Pkg.Types, name.Name, t))
		}
		if field.Names == nil {
			vs = append(vs, types.NewVar(field.Pos(), f.Pkg.Types, "", t))
		}
	}
	return vs
}

// apart returns why f can't call the variant of l in the place of call, or nil. The variant stands in a
// file of a function that calls it: that has to be built whenever the function of l is, and no other
// file can have another function in its place then.
func (f *Function) apart(l *Lift, call *ast.CallExpr) *Cause {
	g := l.Function
	if !f.Analysis.InPlace && f.constraint() != g.constraint() {
		return &Cause{Pos: g.Decl.Name.Pos(), Text: "is in a file with another build constraint"}
	}
	if !g.IsForeign() {
		return nil
	}
	return cmp.Or(f.notPassed(g, call), l.unfit())
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
func (w *walker) lifted(l *Lift, name string, call *ast.CallExpr) { w.divided(l, name, call) }

// divided is lifted. It returns the walker of what is done in place.
func (w *walker) divided(l *Lift, name string, call *ast.CallExpr) *walker {
	args := w.outer()
	args.e = &Effects{}
	args.operands(call)
	args.e.addCall(l.Ahead, call.Pos(), name)
	w.e.addCall(l.Late, call.Pos(), name)
	*w.reads = append(*w.reads, &Read{Expr: call, Operand: call, Lift: l, Effects: args.e})
	return args
}
