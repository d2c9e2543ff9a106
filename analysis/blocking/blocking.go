// Package blocking computes facts about how functions wait for tensors, across
// functions and packages, and finds the places in loops where they do. It
// reports nothing itself; the rules do, from its [Result].
//
// It works on syntax, types and control-flow graphs that are built only where
// something may wait; it needs no SSA form. What a tensor library does comes
// from its profile (package tensorapi), never from its code. Facts are for
// users' functions.
//
// Whatever it cannot decide counts as harmless: tensors of unknown origin,
// conditions of unknown frequency, calls of which nobody knows where they
// lead. A method of an interface of the package itself, with up to three
// implementations there, is what these agree on, as is a field of function type that
// the package sets to up to three functions. Of other functions that are not known,
// one is assumed: what returns a tensor enqueues the work that makes it, unless it
// is called like what looks one up.
package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Analyzer computes a [Summary] for each function and the package's [Result].
var Analyzer = &analysis.Analyzer{
	Name:       "blocking",
	Doc:        "find out which functions wait for which tensors\n\nIt reports nothing; the rules of asyncgen vet build on it.",
	Flags:      flags(),
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	Run:        run,
	FactTypes:  []analysis.Fact{new(Summary), new(Reaches), new(InLoop)},
	ResultType: reflect.TypeFor[*Result](),
}

// A Result is what the rules ask about one package. Its methods may be called
// concurrently.
type Result struct {
	// Sites are the calls that wait in a loop, in the order of the source.
	Sites []*Site
	// Funcs are the functions and function literals with a body, in the
	// order of the source.
	Funcs []*Func

	root      inspector.Cursor
	libraries []string // the names of those that the package can reach
}

// Cursor returns the innermost node at pos.
func (r *Result) Cursor(pos token.Pos) (inspector.Cursor, bool) {
	return r.root.FindByPos(pos, pos)
}

func run(pass *analysis.Pass) (any, error) {
	root := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
	res := &Result{root: root, libraries: reached(pass)}
	if len(res.libraries) == 0 {
		return res, nil
	}
	pass.ExportPackageFact(&Reaches{res.libraries})
	if owned(pass.Pkg.Path()) {
		return res, nil // the profile says it all
	}
	a := &analyzer{
		pass:    pass,
		info:    pass.TypesInfo,
		res:     res,
		decls:   make(map[*types.Func]*Func),
		lits:    make(map[*ast.FuncLit]*Func),
		bound:   make(map[*types.Var]*Func),
		calls:   make(map[*ast.CallExpr]*Call),
		defs:    make(map[*types.Var][]def),
		stores:  make(map[*types.Var][]def),
		params:  make(map[*types.Var]param),
		callees: make(map[*Func]map[*Func]bool),
	}
	a.callers = sync.OnceValue(a.callersOf)
	a.asked = sync.OnceValue(a.parametersAsked)
	a.collect(root)
	a.summarize()
	a.addHoards()
	for fn, f := range a.decls {
		if !f.sum.isZero() {
			pass.ExportObjectFact(fn, &f.sum)
		}
	}
	res.Funcs = a.funcs
	res.Sites = a.sites()
	return res, nil
}

func owned(path string) bool { return libraries().Owner(path) != nil }

func lookup(fn *types.Func) (tensorapi.Func, bool) {
	f, lib := libraries().Lookup(fn)
	return f, lib != nil
}

func isTensor(t types.Type) bool {
	return tensorapi.IsNumber(t) || libraries().TensorOf(t) != nil
}

// reached lists the libraries that the package belongs to, or whose types it can
// name through its imports, by name.
func reached(pass *analysis.Pass) []string {
	names := make(map[string]bool)
	if lib := libraries().Owner(pass.Pkg.Path()); lib != nil {
		names[lib.Name] = true
	}
	for _, imp := range pass.Pkg.Imports() {
		for _, lib := range libraries().About(imp.Path()) {
			names[lib.Name] = true
		}
		var r Reaches
		if pass.ImportPackageFact(imp, &r) {
			for _, name := range r.Libraries {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// An analyzer is the state of the analysis of one package.
type analyzer struct {
	pass    *analysis.Pass
	info    *types.Info
	res     *Result
	funcs   []*Func                 // in source order
	decls   map[*types.Func]*Func   // declared functions
	lits    map[*ast.FuncLit]*Func  // literals
	bound   map[*types.Var]*Func    // literals that are the only value of a variable
	calls   map[*ast.CallExpr]*Call // all calls but conversions and built-ins
	defs    map[*types.Var][]def    // all assignments to variables and fields
	stores  map[*types.Var][]def    // assignments to fields of what local variables hold or point to
	params  map[*types.Var]param    // parameters and receivers
	holders sync.Map                // cache of holdsTensor: types.Type to bool

	keeps   map[*Func]Operands         // what keepers says
	callers func() map[*Func][]*Call   // what callersOf says
	asked   func() map[*types.Var]bool // what parametersAsked says

	mu      sync.Mutex               // guards callees: rules ask at the same time
	callees map[*Func]map[*Func]bool // cache of leadsTo
}

// A Func is a function or function literal with a body.
type Func struct {
	a      *analyzer
	block  *ast.BlockStmt
	lit    *ast.FuncLit     // nil for a declaration
	parent *Func            // the function that a literal is written in, nil at package level
	nested []*Func          // the literals written in it, but not in each other
	cur    inspector.Cursor // of the declaration or literal
	sig    *types.Signature
	calls  []*Call
	rets   []*ast.ReturnStmt
	sum    Summary
	scc    int  // functions with the same number call each other
	cyclic bool // it may call itself

	arg   *ast.CallExpr // the call that a literal is an operand of, or its own
	argNo int           // which one
	away  how           // if arg is nil or go or defer stands before it
	name  string

	flow      func() *flow // the control-flow graph, built when it is asked for
	wholeLoop func() *Loop // the body as a loop, likewise
}

// newFunc completes f and adds it to the functions of the package. Graphs are
// built once, whichever rule asks first.
func (a *analyzer) newFunc(f *Func) *Func {
	f.a = a
	f.flow = sync.OnceValue(func() *flow { return newFlow(a.info, f) })
	f.wholeLoop = sync.OnceValue(func() *Loop { return &Loop{Pos: f.block.Pos(), fn: f} })
	a.funcs = append(a.funcs, f)
	return f
}

// tree yields f and the literals in it, at whatever depth, in the order of
// the source.
func (f *Func) tree() iter.Seq[*Func] {
	return func(yield func(*Func) bool) { f.visit(yield) }
}

func (f *Func) visit(yield func(*Func) bool) bool {
	if !yield(f) {
		return false
	}
	for _, g := range f.nested {
		if !g.visit(yield) {
			return false
		}
	}
	return true
}

// how says when the body of a literal runs, seen from the function that it is
// written in.
type how uint8

const (
	detached how = iota // unknown, later or elsewhere
	once                // where it is written
	looping             // where it is written, many times
	deferred            // when the function returns
	callable            // where the variable that it is bound to is called
)

// how is asked anew each time, as it depends on summaries.
func (f *Func) how() how {
	switch {
	case f.lit == nil || f.parent == nil:
		return detached
	case f.away == deferred && f.arg != nil && f.argNo < 0:
		if h := f.parent.how(); h == once || h == looping {
			return once // at the end of a literal that is called where it is written
		}
		return deferred
	case f.arg == nil || f.away == deferred || f.away == callable:
		return f.away
	case f.argNo < 0:
		return f.away
	}
	c := f.a.calls[f.arg]
	if c == nil || c.away {
		return detached
	}
	switch c.calls(f.argNo) {
	case tensorapi.Once:
		return once
	case tensorapi.Loop:
		return looping
	}
	return detached
}

// owner is the function to whose summary the body of f counts: the nearest
// one that is not part of a larger one.
func (f *Func) owner() *Func {
	for {
		if h := f.how(); h == detached || h == callable {
			return f
		}
		f = f.parent
	}
}

// A Call is a call of a function, not a conversion or a built-in.
type Call struct {
	Expr *ast.CallExpr
	// Callee is the function or method called, nil if that is not known.
	Callee *types.Func

	in      *Func
	cur     inspector.Cursor
	api     tensorapi.Func     // the zero Func if it is not in a profile
	lib     *tensorapi.Profile // whose profile, nil if in none
	target  *Func              // of this package, or nil
	impls   []*Func            // what a method of an interface may be, or nil
	each    []funcValue        // what is called if the callee is an element of a list, or nil
	summary *Summary           // of another package, or nil
	dynamic bool               // through an interface or an unknown function value
	away    bool               // go or defer stands before it
	lits    []*Func            // literals among the arguments, or the callee itself
	bound   bool               // impls are methods with receivers of their own
	maker   *Call              // that returned the function called, or nil
	recv    ast.Expr           // of a method that is called through a variable, or nil
	args    []funcArg          // functions among the arguments that are no literals
	foreign bool               // takes functions, and is in a package without facts
	iter    *ast.RangeStmt     // that calls the iterator Expr.Fun, or nil: Expr is no syntax then
}

// sum is what is known of the callee; never nil.
func (c *Call) sum() *Summary {
	switch {
	case c.target != nil:
		return &c.target.sum
	case c.summary != nil:
		return c.summary
	case c.each != nil:
		return together(c.each)
	case c.impls != nil:
		s := agreement(c.impls)
		if c.bound {
			s.Waits = slices.DeleteFunc(s.Waits, func(w Wait) bool { return w.Operand == tensorapi.Recv })
			s.Barriers = slices.DeleteFunc(s.Barriers, func(w Wait) bool { return w.Operand == tensorapi.Recv })
		}
		return s
	case c.maker != nil && c.maker.sum().Func != nil:
		return c.maker.sum().Func
	}
	return &nothing
}

var nothing Summary

// calls returns when the callee calls its argument.
func (c *Call) calls(arg int) tensorapi.Calls {
	switch {
	case c.api.Calls != tensorapi.Never:
		return c.api.CallsArg(arg)
	case c.api.Kind != tensorapi.Unknown:
		return tensorapi.Never
	}
	if cb := c.callback(arg); cb != nil {
		return cb.When
	}
	if when := stdCalls(c.Callee); when != tensorapi.Never {
		return when
	}
	return c.signatureCalls(arg)
}

// callback says when the callee calls its argument; nil: never. Of a function that is
// called as one of a list in this package, eachOf knows.
func (c *Call) callback(arg int) *Callback {
	if sig, ok := c.in.a.info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature); ok && sig.Variadic() && !c.Expr.Ellipsis.IsValid() {
		if last := sig.Params().Len() - 1; arg >= last {
			if c.target != nil {
				return nil
			}
			arg = last
		}
	}
	return c.sum().callback(arg)
}

// signatureCalls says what the signature of a function tells about when it
// calls its argument, if the function is in a package that can't reach a tensor,
// so that there are no facts about it. One that is given a list and a
// function of the elements calls that in a loop; one that returns what its
// argument returns has called it.
func (c *Call) signatureCalls(arg int) tensorapi.Calls {
	if !c.foreign {
		return tensorapi.Never
	}
	sig := c.Callee.Origin().Signature()
	if arg < 0 || arg >= sig.Params().Len() {
		return tensorapi.Never
	}
	f, ok := sig.Params().At(arg).Type().Underlying().(*types.Signature)
	if !ok {
		return tensorapi.Never
	}
	for v := range sig.Params().Variables() {
		elem := elementType(v.Type())
		for p := range f.Params().Variables() {
			if elem != nil && types.Identical(p.Type(), elem) {
				return tensorapi.Loop
			}
		}
	}
	n := f.Results().Len()
	if n == 0 || n != sig.Results().Len() {
		return tensorapi.Never
	}
	for i := range n {
		if !types.Identical(f.Results().At(i).Type(), sig.Results().At(i).Type()) {
			return tensorapi.Never
		}
	}
	return tensorapi.Once
}

// elementType is the type of the elements of a list, nil of what is none.
func elementType(t types.Type) types.Type {
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return t.Elem()
	case *types.Array:
		return t.Elem()
	case *types.Map:
		return t.Elem()
	}
	return nil
}

// stdCalls says when functions of the standard library call their argument.
func stdCalls(fn *types.Func) tensorapi.Calls {
	if fn == nil || fn.Pkg() == nil {
		return tensorapi.Never
	}
	switch fn.Pkg().Path() {
	case "slices", "sort", "maps", "strings", "bytes", "path/filepath", "io/fs":
		return tensorapi.Loop
	case "testing":
		if fn.Name() == "Run" {
			return tensorapi.Once
		}
	case "sync":
		if fn.Name() == "Range" {
			return tensorapi.Loop
		}
	}
	return tensorapi.Never
}

// enqueues reports whether the call may put work on the device's queue.
func (c *Call) enqueues() bool {
	if c.api.Enqueues() || c.sum().Enqueues || c.makes() {
		return true
	}
	return c.anyArg(func(s *Summary) bool { return s.Enqueues }) || c.anyLit((*Call).enqueues)
}

// mutates reports whether the call may assign cells.
func (c *Call) mutates() bool {
	if c.api.Kind == tensorapi.Mutate || c.sum().Mutates {
		return true
	}
	return c.anyArg(func(s *Summary) bool { return s.Mutates }) || c.anyLit((*Call).mutates)
}

// makes reports whether the callee is not known, or calls a function that it is given,
// and returns tensors: a step, a layer, a loss function. It can hardly do that without
// enqueueing work, unless its name says that it looks the tensors up. One that returns
// what holds tensors does if it is given some.
func (c *Call) makes() bool {
	if c.api.Kind != tensorapi.Call && (!c.dynamic || c.impls != nil || c.looksUp()) {
		return false
	}
	sig, ok := c.in.a.info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if !ok {
		return false
	}
	for v := range sig.Results().Variables() {
		if isTensor(v.Type()) || c.in.a.holdsTensor(v.Type()) && c.takesTensor() {
			return true
		}
	}
	return false
}

// takesTensor reports whether an argument is a tensor, or may hold some.
func (c *Call) takesTensor() bool {
	return slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
		t := c.in.a.info.TypeOf(e)
		_, generic := types.Unalias(t).(*types.TypeParam) // which may stand for a batch
		return generic || c.in.a.holdsTensor(t)
	})
}

// looksUp reports whether the callee is called like what takes something from a
// collection or a stream, and is given no tensor.
func (c *Call) looksUp() bool {
	var name string
	switch fun := ast.Unparen(c.Expr.Fun).(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
	}
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"get", "next", "load", "read", "fetch", "batch", "label", "target", "param", "weight"}, func(word string) bool {
		return strings.HasPrefix(name, word)
	}) && !c.takesTensor()
}

// anyArg reports whether a function that is passed by name, and called at
// once, has the given property.
func (c *Call) anyArg(has func(*Summary) bool) bool {
	return slices.ContainsFunc(c.args, func(arg funcArg) bool {
		when := c.calls(arg.no)
		return (when == tensorapi.Once || when == tensorapi.Loop) && has(arg.summary())
	})
}

func (c *Call) anyLit(has func(*Call) bool) bool {
	for _, lit := range c.lits {
		if h := lit.how(); h != once && h != looping {
			continue
		}
		for _, inner := range lit.calls {
			if has(inner) {
				return true
			}
		}
	}
	return false
}

// operand returns the expressions passed for an operand: one, or those of a
// variadic parameter.
func (c *Call) operand(i int) []ast.Expr {
	if i == tensorapi.Recv {
		if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok {
			return []ast.Expr{sel.X}
		} else if c.recv != nil {
			return []ast.Expr{c.recv}
		}
		return nil
	}
	if i < 0 || i >= len(c.Expr.Args) {
		return nil
	}
	sig, _ := c.in.a.info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if sig != nil && sig.Variadic() && i == sig.Params().Len()-1 && !c.Expr.Ellipsis.IsValid() {
		return c.Expr.Args[i:]
	}
	return c.Expr.Args[i : i+1]
}

// A def is one assignment to a variable or field.
type def struct {
	kind  defKind
	in    *Func // nil at package level
	pos   token.Pos
	value ast.Expr // of defValue, defElem and defKey
	index int      // which result, if value is a call with several; which variable of a range clause
}

type defKind uint8

const (
	defValue defKind = iota // v = value
	defElem                 // for _, v = range value
	defKey                  // for v = range value
	defStep                 // v++, v += constant
	defOther                // v op= something, receiving it from a type switch, …
)

type param struct {
	of      *Func
	operand int
}

// posOf is how chains name a place: file name and line, the same on every
// machine.
func (a *analyzer) posOf(pos token.Pos) string {
	p := a.pass.Fset.Position(pos)
	return filepath.Base(p.Filename) + ":" + strconv.Itoa(p.Line)
}
