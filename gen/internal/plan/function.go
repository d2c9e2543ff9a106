package plan

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/types/typeutil"
)

// A Function is a function declaration and the facts about its variables that
// hold wherever they are used.
type Function struct {
	Analysis *Analysis
	Pkg      *load.Package
	Decl     *ast.FuncDecl
	Obj      *types.Func
	Info     *types.Info
	Home     *load.Package     // in which what is made of it stands: Pkg, or that of a function which calls its variant
	Restated *load.Restatement // nil if the function is as the user wrote it
	Lifts    bool              // reads in functions that are called may be taken out of them
	Takes    map[ast.Expr]bool // fields that are taken in their place for what comes later
	// what function literals change of it, of numbers and the like, comes later with what they look
	// at
	Counts bool

	// Here says which results are returned in their place, when the function is divided. It is nil if none is.
	Here []bool

	original   *Function // that has been restated
	outer      *Function // that this is a function literal of
	parents    map[ast.Node]ast.Node
	facts      map[*types.Var]*varFacts
	closures   map[*types.Var]*ast.FuncLit // variables that are only ever one function literal, and only called
	summarised bool                        // what it does is told to its callers
	hasDefer   bool
	goTo       *Cause // the first goto
	unsafe     *Cause // the first use of package unsafe
	looked     bool   // for it in functions that are called
	inProgress map[*ast.FuncLit]bool
	lifted     map[literalForm]lifting
	yield      *types.Var // what an iterator calls for each element: the body of a loop
}

// varFacts is what is known of one variable.
type varFacts struct {
	address  bool // its address is taken
	own      bool // memory that it leads to is led to by nothing else, before handed
	rows     bool // nor is that of the slices in it
	private  bool // it is a text or a random generator that is only used by its methods
	escapes  bool // a function literal that others may call uses it
	inDefer  bool // a deferred call uses it
	inGo     bool // another goroutine may use it
	isResult bool // it is a named result

	handed *ast.Ident // its last use, if that hands the memory on
	remade ast.Stmt   // gives it that memory, if it is a parameter
	of     *types.Var // it is only to look at a part of what that leads to
}

// Function returns the facts about the function decl of pkg.
func (a *Analysis) Function(pkg *load.Package, decl *ast.FuncDecl) *Function {
	f := newFunction(a, pkg, decl)
	f.Obj, _ = f.Info.Defs[decl.Name].(*types.Func)
	f.findFacts()
	return f
}

func newFunction(a *Analysis, pkg *load.Package, decl *ast.FuncDecl) *Function {
	return &Function{
		Analysis: a, Pkg: pkg, Home: pkg, Decl: decl, Info: pkg.TypesInfo,
		parents:    make(map[ast.Node]ast.Node),
		facts:      make(map[*types.Var]*varFacts),
		closures:   make(map[*types.Var]*ast.FuncLit),
		inProgress: make(map[*ast.FuncLit]bool),
		lifted:     make(map[literalForm]lifting),
	}
}

// findFacts finds all facts about f, of which those of functions around it are known.
func (f *Function) findFacts() {
	var stack []ast.Node
	ast.Inspect(f.Decl, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if len(stack) > 0 {
			f.parents[n] = stack[len(stack)-1]
		}
		stack = append(stack, n)
		return true
	})
	f.results()
	f.findClosures()
	f.findPrivate()
	f.findOwners()
	f.findUses()
}

// fact returns the facts of v, which may be changed.
func (f *Function) fact(v *types.Var) *varFacts {
	if f.facts[v] == nil {
		f.facts[v] = &varFacts{}
	}
	return f.facts[v]
}

// variable returns the variable that an identifier stands for, if it does.
func (f *Function) variable(id *ast.Ident) *types.Var {
	v, _ := f.Info.ObjectOf(id).(*types.Var)
	if v == nil || v.IsField() {
		return nil
	}
	return v
}

// isLocal reports whether v is declared in f, parameters and results included.
func (f *Function) isLocal(v types.Object) bool {
	return f.Decl.Pos() <= v.Pos() && v.Pos() < f.Decl.End()
}

// IsLiteral reports whether f is a function literal of a function.
func (f *Function) IsLiteral() bool { return f.outer != nil }

// Captures reports whether f is a function literal and v belongs to the function around it.
func (f *Function) Captures(v types.Object) bool { return !f.isLocal(v) && f.isInner(v) }

// HasLiterals reports whether f has function literals that look at values, so that [Function.Counts] may matter.
func (f *Function) HasLiterals() bool {
	for _, done := range f.lifted {
		if done.lift != nil || done.why != nil {
			return true
		}
	}
	return false
}

// Lifting returns f with [Function.Lifts]. It shares all facts with f, as does the next one.
func (f *Function) Lifting() *Function {
	g := *f
	g.Lifts = true
	return &g
}

// Taking returns f with the fields in [Function.Takes].
func (f *Function) Taking(fields map[ast.Expr]bool) *Function {
	g := *f
	g.Takes = fields
	return &g
}

// Again returns the facts about f anew, with [Function.Counts].
func (f *Function) Again() *Function {
	g := f.Analysis.Function(f.Pkg, f.Decl)
	g.Lifts, g.Counts, g.Here, g.Home = f.Lifts, true, f.Here, f.Home
	return g
}

// isInner reports whether v is declared in f or in the function that f is a literal of.
func (f *Function) isInner(v types.Object) bool {
	return f.isLocal(v) || f.outer != nil && f.outer.isInner(v)
}

func (f *Function) results() {
	if f.Decl.Type.Results == nil {
		return
	}
	for _, field := range f.Decl.Type.Results.List {
		for _, name := range field.Names {
			if v := f.variable(name); v != nil {
				f.fact(v).isResult = true
			}
		}
	}
}

// findUses finds the variables whose address is taken and those that function
// literals and deferred calls use.
func (f *Function) findUses() {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			if f.unsafe == nil && isUnsafe(f.Info.ObjectOf(n)) {
				f.unsafe = &Cause{Pos: n.Pos(), Text: "uses package unsafe, so that any memory may be reached as any other", Code: SharedMemory}
			}
		case *ast.UnaryExpr:
			if call, ok := f.parents[n].(*ast.CallExpr); n.Op == token.AND && !(ok && f.IsChoice(call)) {
				f.takeAddress(n.X)
			}
		case *ast.SliceExpr:
			if _, ok := f.Info.TypeOf(n.X).Underlying().(*types.Array); ok {
				f.takeAddress(n.X)
			}
		case *ast.SelectorExpr:
			if sel := f.Info.Selections[n]; sel != nil && sel.Kind() == types.MethodVal && takesPointer(sel) {
				f.takeAddress(n.X)
			}
		case *ast.DeferStmt:
			f.hasDefer = true
			f.mark(n, func(v *varFacts) { v.inDefer = true })
		case *ast.GoStmt:
			f.mark(n, func(v *varFacts) { v.inGo = true })
		case *ast.FuncLit:
			if !f.isTame(n) {
				f.mark(n, func(v *varFacts) { v.escapes = true })
			}
		case *ast.BranchStmt:
			if n.Tok == token.GOTO && f.goTo == nil {
				f.goTo = &Cause{Pos: n.Pos(), Text: "jumps with goto", Code: Jumps}
			}
		}
		return true
	})
	if f.hasDefer {
		for _, v := range f.facts {
			v.inDefer = v.inDefer || v.isResult
		}
	}
}

// takesPointer reports whether a method value or call takes the address of
// its operand. A function in a field does not.
func takesPointer(sel *types.Selection) bool {
	fn, ok := sel.Obj().(*types.Func)
	if !ok || fn.Signature().Recv() == nil {
		return false
	}
	_, wants := types.Unalias(fn.Signature().Recv().Type()).(*types.Pointer)
	_, has := sel.Recv().Underlying().(*types.Pointer)
	return wants && !has && !sel.Indirect()
}

// takeAddress records that the variable which e is part of has its address
// taken.
func (f *Function) takeAddress(e ast.Expr) {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			if v := f.variable(x); v != nil && !f.fact(v).private {
				f.fact(v).address = true // those of private ones go nowhere
			}
			return
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return
		}
	}
}

// mark applies set to the variables that are used in n and declared outside it.
func (f *Function) mark(n ast.Node, set func(*varFacts)) {
	for _, id := range f.reached(n) {
		set(f.fact(f.variable(id)))
	}
}

func isFunc(t types.Type) bool      { _, ok := t.Underlying().(*types.Signature); return ok }
func isInterface(t types.Type) bool { return types.IsInterface(t) }

// builtin returns the name of the builtin function that is called, or "".
func (f *Function) builtin(call *ast.CallExpr) string {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok {
		if b, ok := f.Info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// Visible reports whether others than the statements of f, in their order, may
// see the values that v has: through a pointer, from a deferred call, in
// another goroutine, or because v belongs to the package.
func (f *Function) Visible(v types.Object) bool {
	lv, ok := v.(*types.Var)
	if !ok || !f.isInner(v) {
		return true
	}
	facts := f.facts[lv]
	return facts != nil && (facts.address || facts.escapes || facts.inDefer || facts.inGo)
}

// CanCopy reports whether code that reads v can be given a copy of it: only
// identifiers in that code lead to it.
func (f *Function) CanCopy(v types.Object) bool {
	lv, ok := v.(*types.Var)
	if !ok || !f.isLocal(v) {
		return false
	}
	if facts := f.facts[lv]; facts != nil && (facts.address || facts.escapes || facts.inGo || facts.private && !isPointer(lv.Type())) {
		return false
	}
	for _, lit := range f.closures {
		if (lv.Pos() < lit.Pos() || lit.End() <= lv.Pos()) && f.uses(lit, lv) {
			return false
		}
	}
	return true
}

func (f *Function) uses(n ast.Node, v *types.Var) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok && f.variable(id) == v {
			found = true
		}
		return !found
	})
	return found
}

// IsResult reports whether v is a named result.
func (f *Function) IsResult(v *types.Var) bool { return f.facts[v] != nil && f.facts[v].isResult }

// IsCaptured reports whether a function literal uses v, which is declared outside it.
func (f *Function) IsCaptured(v *types.Var) (found bool) {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && (v.Pos() < lit.Pos() || lit.End() <= v.Pos()) {
			found = found || f.uses(lit, v)
		}
		return !found
	})
	return found
}

// ReturnsBare reports whether a return of f names no results.
func (f *Function) ReturnsBare() (found bool) {
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 0 {
			found = true
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
	return found
}

// LoopsAround returns the loops around n, innermost first.
func (f *Function) LoopsAround(n ast.Node) (loops []ast.Node) {
	for p := f.parents[n]; p != nil; p = f.parents[p] {
		if isLoop(p) {
			loops = append(loops, p)
		}
	}
	return loops
}

// Sees reports whether obj is what its name means at pos.
func (f *Function) Sees(pos token.Pos, obj types.Object) bool {
	scope := f.Pkg.Types.Scope().Innermost(pos)
	if scope == nil {
		return false
	}
	_, found := scope.LookupParent(obj.Name(), pos)
	return found == obj
}

// isUnsafe reports whether obj leads to memory under another type than its own: a function of
// package unsafe whose result is no constant, or what holds an unsafe.Pointer.
func isUnsafe(obj types.Object) bool {
	if obj == nil {
		return false
	}
	if obj.Pkg() == types.Unsafe {
		return obj.Name() != "Sizeof" && obj.Name() != "Alignof" && obj.Name() != "Offsetof"
	}
	b, ok := obj.Type().Underlying().(*types.Basic)
	return ok && b.Kind() == types.UnsafePointer
}

// Goto returns the first goto of f.
func (f *Function) Goto() *Cause { return f.goTo }

// Unsafe returns the first use of package unsafe in f or in a function that it calls, in a loop or
// not. What is found out about the memory that statements share is nothing then.
func (f *Function) Unsafe() *Cause {
	for f.outer != nil {
		f = f.outer
	}
	if f.unsafe == nil && !f.looked {
		f.unsafe, f.looked = f.walk(f.Decl.Body, nil).Unsafe, true
	}
	return f.unsafe
}

// Effects returns what evaluating e does, reads included.
func (f *Function) Effects(e ast.Expr) *Effects { return f.walk(e, nil) }

// NeverReturns reports whether a call ends the function or the program.
func (f *Function) NeverReturns(call *ast.CallExpr) bool {
	if f.builtin(call) == "panic" {
		return true
	}
	fn := typeutil.StaticCallee(f.Info, call)
	if fn == nil {
		return false
	}
	fact := facts.Of(fn)
	return fact != nil && fact.Has(facts.Ends|facts.Exits)
}

// AlwaysFirst reports whether e, an expression in s, is evaluated once whenever
// s runs or is evaluated, and before any statement in s that is not an initialisation.
func (f *Function) AlwaysFirst(e ast.Expr, s ast.Node) bool {
	var n ast.Node = e
	for n != s {
		p := f.parents[n]
		switch p := p.(type) {
		case nil:
			return false
		case *ast.BinaryExpr:
			if (p.Op == token.LAND || p.Op == token.LOR) && p.Y == n {
				return false
			}
		case *ast.IfStmt:
			if p != s || n != p.Init && n != p.Cond {
				return false
			}
		case *ast.SwitchStmt:
			if p != s || n != p.Init && n != p.Tag {
				return false
			}
		case *ast.RangeStmt:
			if p != s || n != p.X {
				return false
			}
		case *ast.ForStmt, *ast.TypeSwitchStmt, *ast.BlockStmt, *ast.CaseClause, *ast.FuncLit:
			return false
		}
		n = p
	}
	return true
}

// Parent returns the node that n is a part of, or nil.
func (f *Function) Parent(n ast.Node) ast.Node { return f.parents[n] }

// Library returns the function of the tensor library that call calls, and what is said about it.
func (f *Function) Library(call *ast.CallExpr) (*types.Func, tensorapi.Func, bool) {
	fn, _ := typeutil.Callee(f.Info, call).(*types.Func)
	if fn == nil {
		return nil, tensorapi.Func{}, false
	}
	api, ok := f.Analysis.API.Lookup(fn)
	return fn, api, ok
}

// IsStandard reports whether call calls a function of the standard library of which the effects are known.
func (f *Function) IsStandard(call *ast.CallExpr) bool {
	fn := typeutil.StaticCallee(f.Info, call)
	return fn != nil && facts.Of(fn) != nil && !takesFunc(facts.Of(fn), fn)
}
