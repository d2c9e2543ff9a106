// Package blocking answers the questions of rules about a package: its functions and calls, the values
// a call waits for, the loops and conditions around it, and the origin of a tensor. Facts carry the
// waits of a function from package to package. This package reports nothing itself.
//
// A rule mostly asks four questions about a call, here about loss.Item():
//
//	for i, b := range batches {
//		loss := step(b)
//		if i%100 == 0 {
//			sum += loss.Item()
//		}
//	}
//
// The questions, with the methods that answer them:
//
//   - What does it wait for? [Package.Waits]: for loss.
//   - In which loop is it? [Package.LoopsAround]: in the one over batches.
//   - Has that loop enqueued the work? [Package.Fresh]: yes, step did.
//   - How often does the loop come to it? [Package.GuardOf]: rarely, so no rule reports it.
//
// The analysis works on syntax, types and control-flow graphs. A graph is built only for a function
// that somebody asks about; no SSA form is needed. What a tensor library does is said by its profile
// (package tensorapi) and never found out from its code. Facts are for users' functions.
//
// What it can't decide counts as harmless: a tensor of unknown origin, a condition of unknown
// frequency, a call with an unknown callee. So a finding is rather missed than invented. Three guesses
// are made:
//
//   - A call through an interface of the package leads to the implementations in the package, if there
//     are at most three. It does what all of them do.
//   - A field of function type holds one of the functions that the package assigns to it, if there are
//     at most three of them.
//   - An unknown function that returns a tensor enqueues the work for it, unless its name says that it
//     looks the tensor up, like next or getWeight.
//
// The files, in the order in which to read them:
//
//	blocking.go   Package, Func, Call and Def: what everything else is about
//	collect.go    finds the functions, calls and assignments of a package
//	callbacks.go  what is known of functions in variables, fields and lists
//	returned.go   what is known of functions that a function returns
//	wrappers.go   which functions become part of another one
//	flow.go       control-flow graphs, dominators and loops
//	guard.go      how often the code under a condition runs
//	conditions.go which conditions code is under
//	delay.go      which reads are for an earlier iteration, in a loop or a function that it calls
//	classify.go   how often a condition holds
//	rare.go       which comparisons hold now and then
//	outer.go      which loops are over epochs or the like, as seen from a call in them
//	elsewhere.go  which calls do what an inner loop would do
//	overdata.go   which loops go over data, and which over parts of a model
//	carried.go    what an iteration takes over from the one before, and what ends a loop
//	origin.go     which tensors an expression may stand for, and whether a loop makes them
//	makers.go     which fields have what a constructor was given
//	tracked.go    which tensors have a history that gradients go through
//	fate.go       what becomes of a tensor that is stored
//	history.go    which functions keep the histories of what they are given
//	waits.go      what a call waits for
//	print.go      which calls print their operands
//	methods.go    which methods are called on operands of interface type
//	setters.go    what functions of other packages set
//	containers.go what containers of other packages hold
//	parts.go      which functions read a part of a tensor that their callers choose
//	clock.go      which calls read clocks, and what is waited for between two places
//	bench.go      the loops of benchmarks
//	rebuild.go    which calls build an operation or a graph
//	summary.go    what is known of a function, as a fact
//	summarize.go  computes the summaries, callees first
//	exports.go    which facts other packages get
//	query.go      questions about one function or call
//	syntax.go     questions about one variable
//	libraries.go  the profiles that are known
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

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
)

// Analyzer computes a [Summary] for each function of a package, and makes its [Package].
var Analyzer = &analysis.Analyzer{
	Name:       "blocking",
	Doc:        "find out which functions wait for which tensors\n\nIt reports nothing; the rules of asyncgen vet build on it.",
	Requires:   []*analysis.Analyzer{inspect.Analyzer},
	Run:        run,
	FactTypes:  []analysis.Fact{new(Summary), new(Reaches), new(Sets), new(Part)},
	ResultType: reflect.TypeFor[*Package](),
}

// Cursor returns the innermost node at pos. It is false for a place that is in no file of the package.
func (pkg *Package) Cursor(pos token.Pos) (inspector.Cursor, bool) {
	return pkg.Root.FindByPos(pos, pos)
}

// run analyses one package in three passes. collect notes the functions, calls and assignments;
// summarize computes the summaries of the functions from each other, until nothing changes; addHoards
// adds what it can only find with all summaries at hand. Then the summaries become facts.
//
// A package that can't reach a tensor library is left alone. It doesn't even get the fact Reaches, and
// its importers take the missing fact as the sign that there are no summaries to look for.
func run(pass *analysis.Pass) (any, error) {
	root := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root()
	pkg := &Package{
		Root:         root,
		LibraryNames: reached(pass),
		Pass:         pass,
		Info:         pass.TypesInfo,
		Decls:        make(map[*types.Func]*Func),
		Lits:         make(map[*ast.FuncLit]*Func),
		bound:        make(map[*types.Var]*Func),
		Calls:        make(map[*ast.CallExpr]*Call),
		Defs:         make(map[*types.Var][]Def),
		stores:       make(map[*types.Var][]Def),
		Params:       make(map[*types.Var]Param),
		callees:      make(map[*Func]map[*Func]bool),
	}
	if len(pkg.LibraryNames) == 0 {
		return pkg, nil
	}
	pass.ExportPackageFact(&Reaches{pkg.LibraryNames})
	if owned(pass.Pkg.Path()) {
		return pkg, nil // the profile says it all
	}
	pkg.callers = sync.OnceValue(func() map[*Func][]*Call { return callersOf(pkg) })
	pkg.asked = sync.OnceValue(func() map[*types.Var]bool { return parametersAsked(pkg) })
	collect(pkg, root)
	storeInContainers(pkg)
	summarize(pkg)
	addHoards(pkg)
	export(pkg)
	return pkg, nil
}

// IsTensor reports whether t is a tensor, a pointer to one, or a number or condition that the device
// may still be computing (see [tensorapi.IsNumber]). It is false for nil.
func IsTensor(t types.Type) bool {
	return t != nil && (tensorapi.IsNumber(t) || Libraries().TensorOf(t) != nil)
}

// reached lists the libraries that the package belongs to, or whose types it can
// name through its imports, by name.
func reached(pass *analysis.Pass) []string {
	names := make(map[string]bool)
	if lib := Libraries().Owner(pass.Pkg.Path()); lib != nil {
		names[lib.Name] = true
	}
	for _, imp := range pass.Pkg.Imports() {
		for _, lib := range Libraries().About(imp.Path()) {
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

// A Package is what is known of one package. It doesn't change once its analyzer has run, so rules may ask it, and
// what it consists of, at the same time.
type Package struct {
	// Pass is that of [Analyzer], Info what its type checker found out, and Root the cursor of the package's files.
	Pass *analysis.Pass
	Info *types.Info
	Root inspector.Cursor
	// LibraryNames are the names of the tensor libraries that the package can reach.
	LibraryNames []string
	// Funcs are the functions and function literals with a body, in the order of the source. There are none if the
	// package can't reach a tensor.
	Funcs []*Func
	// Decls finds declared functions by their objects, and Lits literals by their syntax.
	Decls map[*types.Func]*Func
	Lits  map[*ast.FuncLit]*Func
	// Calls finds calls by their syntax. Conversions and calls of built-ins have no [Call].
	Calls map[*ast.CallExpr]*Call
	// Defs lists the assignments to each variable and field.
	Defs map[*types.Var][]Def
	// Params says of parameters and receivers whose they are.
	Params map[*types.Var]Param

	// Each map and function below is filled by run, or computed at the first question.
	bound   map[*types.Var]*Func       // literals that are the only value of a variable
	stores  map[*types.Var][]Def       // assignments to fields of what local variables hold or point to
	holders sync.Map                   // cache of HoldsTensors: types.Type to bool
	keeps   map[*Func]Operands         // what keepers says
	sets    map[*Func]*Sets            // what exportSets says
	callers func() map[*Func][]*Call   // what callersOf says
	asked   func() map[*types.Var]bool // what parametersAsked says

	mu      sync.Mutex               // guards callees: rules ask at the same time
	callees map[*Func]map[*Func]bool // cache of leadsTo
}

// A Func is a function or function literal with a body.
type Func struct {
	// Package is where f is, and Name its name. A literal has the name of the function around it, and a number.
	Package *Package
	Name    string
	// Cur is the cursor of the declaration or literal. Lit is nil for declarations.
	Cur  inspector.Cursor
	Lit  *ast.FuncLit
	Body *ast.BlockStmt
	Sig  *types.Signature
	// Parent is the function that a literal is written in, nil at package level. Nested are the literals written in
	// f, but not in each other.
	Parent *Func
	Nested []*Func
	// Calls and Returns are those in f but not in its literals, in the order of the source.
	Calls   []*Call
	Returns []*ast.ReturnStmt
	// Summary is what callers of f know of it.
	Summary Summary
	// Two functions with the same SCC call each other, directly or through others: SCC numbers the
	// strongly connected components of the call graph. A Cyclic function may call itself, perhaps
	// through others.
	SCC    int
	Cyclic bool
	// ArgOf is the call that a literal is an argument of, and ArgNo the number of the argument. In
	// func() { … }() the literal itself is called: ArgOf is this call, and ArgNo negative.
	ArgOf *ast.CallExpr
	ArgNo int
	// away is when a literal runs, as far as the syntax around it tells: after go or defer, in a call on
	// the spot, or through the variable it is bound to. For an argument, Runs asks the callee instead.
	away When

	// Flow returns the control-flow graph of the body. WholeLoop returns the whole body as a loop, for
	// literals that something calls in a loop and for functions that call themselves.
	Flow      func() *Flow
	WholeLoop func() *Loop
}

// newFunc completes f and adds it to the functions of the package. Graph and loop are built at the
// first question and once only; rules that run at the same time share them.
func newFunc(pkg *Package, f *Func) *Func {
	f.Package = pkg
	f.Flow = sync.OnceValue(func() *Flow { return newFlow(pkg.Info, f) })
	f.WholeLoop = sync.OnceValue(func() *Loop { return &Loop{Pos: f.Body.Pos(), Func: f} })
	pkg.Funcs = append(pkg.Funcs, f)
	return f
}

// Tree yields f and the literals in it, at whatever depth, in the order of
// the source.
func (f *Func) Tree() iter.Seq[*Func] {
	return func(yield func(*Func) bool) { f.visit(yield) }
}

// visit is Tree in the form that recursion needs: it returns false once yield wants no more.
func (f *Func) visit(yield func(*Func) bool) bool {
	if !yield(f) {
		return false
	}
	for _, g := range f.Nested {
		if !g.visit(yield) {
			return false
		}
	}
	return true
}

// When says when the body of a literal runs, seen from the function that it is written in.
//
//	go func() { … }()             // Detached
//	func() { … }()                // Once
//	each(xs, func(x T) { … })     // Looping, if each calls its argument in a loop
//	defer func() { … }()          // Deferred
//	log := func() { … }           // Callable
type When uint8

// The times at which literals run.
const (
	Detached When = iota // unknown, later or elsewhere
	Once                 // where it is written
	Looping              // where it is written, many times
	Deferred             // when the function returns
	Callable             // where the variable that it is bound to is called
)

// Runs says when the body of f runs. For a literal among the arguments of a call, the answer is what
// the callee's summary says; so it can change while summaries are computed, from Detached to Once or
// Looping.
func (f *Func) Runs() When {
	switch {
	case f.Lit == nil || f.Parent == nil:
		return Detached
	case f.away == Deferred && f.ArgOf != nil && f.ArgNo < 0:
		if h := f.Parent.Runs(); h == Once || h == Looping {
			return Once // at the end of a literal that is called where it is written
		}
		return Deferred
	case f.ArgOf == nil || f.away == Deferred || f.away == Callable:
		return f.away
	case f.ArgNo < 0:
		return f.away
	}
	c := f.Package.Calls[f.ArgOf]
	if c == nil || c.Away {
		return Detached
	}
	switch c.CallsArg(f.ArgNo) {
	case tensorapi.Once:
		return Once
	case tensorapi.Loop:
		return Looping
	}
	return Detached
}

// Owner returns the function whose summary says what the body of f does. That is f itself, or the
// function around it if f runs as a part of that one: called on the spot, deferred, or by a callee.
//
//	func train() {                               // owns both
//		each(batches, func(b batch) { step(b) }) // Looping: a part of train
//		defer func() { … }()                     // Deferred: a part of train
//		go func() { … }()                        // Detached: owns itself
//	}
func (f *Func) Owner() *Func {
	for {
		if h := f.Runs(); h == Detached || h == Callable {
			return f
		}
		f = f.Parent
	}
}

// Outermost is the declaration, or literal at package level, around f.
func (f *Func) Outermost() *Func {
	for f.Parent != nil {
		f = f.Parent
	}
	return f
}

// Contains reports whether f, or a literal in it, has a call with the given property. It doesn't ask
// whether the literal ever runs.
func (f *Func) Contains(has func(*Call) bool) bool {
	for g := range f.Tree() {
		if slices.ContainsFunc(g.Calls, has) {
			return true
		}
	}
	return false
}

// A Call is a call of a function, not a conversion or a built-in.
type Call struct {
	// Expr is the call, and Cur its cursor. A range over an iterator calls the iterator: such a Call
	// has an Expr that is in no file, and Cur is the cursor of the iterator.
	Expr *ast.CallExpr
	Cur  inspector.Cursor
	// In is the innermost function around the call.
	In *Func
	// Away reports whether go or defer stands before the call.
	Away bool
	// Callee is the function or method called, nil if that is not known.
	Callee *types.Func
	// API is what a profile says about the callee, and Lib the profile. Its Kind is Unknown for functions of users.
	API tensorapi.Func
	Lib *tensorapi.Profile
	// Target is the callee if its body is in this package. If the callee is a method of an interface,
	// Impls are the methods of this package that it may lead to; if it is a field of function type,
	// Impls are the functions that the package assigns to it. If it is an element of a list of
	// functions, Each is what the list holds. Summary says which of these counts if there are several.
	Target *Func
	Impls  []*Func
	Each   []FuncValue
	// Dynamic reports whether the call goes through an interface or an unknown function value.
	Dynamic bool
	// Maker is the call that returned the called function, or nil.
	//
	//	step := newStep(net)
	//	step(b) // its Maker is the call of newStep
	Maker *Call
	// Lits are the literals among the arguments, or the callee itself; FuncArgs are the other functions among them.
	Lits     []*Func
	FuncArgs []FuncArg

	summary *Summary       // the fact about a callee in another package, or nil
	bound   bool           // Impls has method values, whose receivers were fixed when they were assigned
	recv    ast.Expr       // loss in get := loss.Item; get(), or nil
	held    FuncValue      // the one in a variable that is set once, if Target is nil
	result  int            // the number of Maker's result that is called
	foreign bool           // the callee takes functions, and its package has no facts
	iter    *ast.RangeStmt // the statement that calls the iterator Expr.Fun, or nil
}

// Summary is what is known of the callee; never nil. It comes from the first of these that is known:
//
//   - the body of the callee, in this package;
//   - a fact about the callee, in another package;
//   - the functions in a list (Each): the call does what any of them does, as a loop calls them all;
//   - several possible callees (Impls): the call does what all of them do;
//   - the function that Maker returned.
//
// A method value has its own receiver, which the call doesn't name. What it waits for of this receiver
// is left out, as no expression of the caller stands for it.
func (c *Call) Summary() *Summary {
	switch {
	case c.Target != nil:
		return &c.Target.Summary
	case c.summary != nil:
		return c.summary
	case c.Each != nil:
		return together(c.Each)
	case c.Impls != nil:
		s := agreement(c.Impls)
		if c.bound {
			s = s.withoutReceiver()
		}
		return s
	case c.held.IsKnown():
		s := c.held.Summary()
		if c.held.recv != nil {
			s = s.withoutReceiver()
		}
		return s
	case c.Maker != nil && c.Maker.returnedFunc(c.result) != nil:
		return c.Maker.returnedFunc(c.result)
	}
	return &nothing
}

// nothing is the summary of an unknown function. Nobody writes to it.
var nothing Summary

// CallsArg returns when the callee calls its argument with the given number.
func (c *Call) CallsArg(arg int) tensorapi.Calls {
	switch {
	case c.API.Calls != tensorapi.Never:
		return c.API.CallsArg(arg)
	case c.API.Kind != tensorapi.Unknown:
		return tensorapi.Never
	}
	if cb := c.Callback(arg); cb != nil {
		return cb.When
	}
	if when := stdCalls(c.Callee); when != tensorapi.Never {
		return when
	}
	return c.signatureCalls(arg)
}

// Callback returns what is known of how the callee calls its argument number arg, nil if it doesn't.
// The arguments for a variadic parameter are one operand. If the callee is in this package, functions
// among them are elements of a list: eachOf finds them where the callee calls an element.
func (c *Call) Callback(arg int) *Callback {
	if sig, ok := c.In.Package.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature); ok && sig.Variadic() && !c.Expr.Ellipsis.IsValid() {
		if last := sig.Params().Len() - 1; arg >= last {
			if c.Target != nil {
				return nil
			}
			arg = last
		}
	}
	return c.Summary().callback(arg)
}

// signatureCalls guesses from the signature of the callee when it calls its argument. It is for
// functions of packages that can't reach a tensor, about which there are no facts.
//
//	lo.Map(xs, func(x T, i int) R { … })  // is given a []T and a func of T: Loop
//	retry.Do(func() (R, error) { … })     // returns (R, error), as its argument does: Once
//
// The first guess is wrong for a callee that calls its argument with one element only. Such functions
// are rare.
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
	// A list of T beside a function of T.
	for v := range sig.Params().Variables() {
		elem := syntax.ElementType(v.Type())
		for p := range f.Params().Variables() {
			if elem != nil && types.Identical(p.Type(), elem) {
				return tensorapi.Loop
			}
		}
	}
	// The same results as the function has.
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

// stdCalls says when a function of the standard library calls its argument. The packages that are
// listed take functions of elements, like slices.SortFunc and strings.Map.
func stdCalls(fn *types.Func) tensorapi.Calls {
	if fn == nil || fn.Pkg() == nil {
		return tensorapi.Never
	}
	switch fn.Pkg().Path() {
	case "slices", "sort", "maps", "strings", "bytes", "container/heap", "path/filepath", "io/fs":
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

// Enqueues reports whether the call may put work on the device's queue: the callee itself, or a
// function that it is given and calls. Unknown callees that return tensors count, see makes.
func (c *Call) Enqueues() bool {
	if c.API.Enqueues() || c.Summary().Enqueues || c.makes() {
		return true
	}
	return c.anyArg(func(s *Summary) bool { return s.Enqueues }) || c.anyLit((*Call).Enqueues)
}

// Mutates reports whether the call may assign cells, such as parameters of a model.
func (c *Call) Mutates() bool {
	if c.API.Kind == tensorapi.Mutate || c.Summary().Mutates {
		return true
	}
	return c.anyArg(func(s *Summary) bool { return s.Mutates }) || c.anyLit((*Call).Mutates)
}

// makes reports whether the callee is unknown, or calls a function that it is given, and returns
// tensors: a step, a layer, a loss function. It can hardly do so without enqueueing work, unless its
// name says that it looks the tensors up. A callee that returns a struct or list with tensors counts if
// it is also given tensors: step(batch) does, loadBatch(i) doesn't.
func (c *Call) makes() bool {
	if c.pulls() {
		return true
	}
	// Known callees say by themselves whether they enqueue.
	if c.API.Kind != tensorapi.Call && (!c.Dynamic || c.Impls != nil || c.summary != nil || c.looksUp()) {
		return false
	}
	sig, ok := c.In.Package.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if !ok {
		return false
	}
	for v := range sig.Results().Variables() {
		if IsTensor(v.Type()) || c.In.Package.HoldsTensors(v.Type()) && c.TakesTensor() {
			return true
		}
	}
	return false
}

// TakesTensor reports whether an argument is a tensor, or may hold some.
func (c *Call) TakesTensor() bool {
	return slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
		t := c.In.Package.Info.TypeOf(e)
		_, generic := types.Unalias(t).(*types.TypeParam) // which may stand for a batch
		return generic || c.In.Package.HoldsTensors(t)
	})
}

// looksUp reports whether the callee is named like one that takes something from a collection or a
// stream, such as next or getWeight, and is given no tensor.
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
	}) && !c.TakesTensor()
}

// anyArg reports whether a function has the given property that is passed by name, as in each(xs,
// step), and that the callee calls before it returns.
func (c *Call) anyArg(has func(*Summary) bool) bool {
	return slices.ContainsFunc(c.FuncArgs, func(arg FuncArg) bool {
		when := c.CallsArg(arg.No)
		return (when == tensorapi.Once || when == tensorapi.Loop) && has(arg.Summary())
	})
}

// anyLit reports whether a literal among the arguments, or as the callee, has a call with the given
// property and runs before c returns.
func (c *Call) anyLit(has func(*Call) bool) bool {
	for _, lit := range c.Lits {
		if h := lit.Runs(); h != Once && h != Looping {
			continue
		}
		for _, inner := range lit.Calls {
			if has(inner) {
				return true
			}
		}
	}
	return false
}

// Operand returns the expressions that c passes for operand i of the callee: one, or any number for a
// variadic parameter. The receiver is operand [tensorapi.Recv]. It returns nil if c doesn't name the
// operand, as for the receiver of a method value in a field.
func (c *Call) Operand(i int) []ast.Expr {
	if c.Callee != nil && c.recv == nil && c.isMethodExpr() {
		i++ // the receiver is the first argument
	} else if i == tensorapi.Recv {
		if c.recv != nil {
			return []ast.Expr{c.recv}
		} else if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok {
			return []ast.Expr{sel.X}
		}
		return nil
	}
	if i < 0 || i >= len(c.Expr.Args) {
		return nil
	}
	sig, _ := c.In.Package.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if sig != nil && sig.Variadic() && i == sig.Params().Len()-1 && !c.Expr.Ellipsis.IsValid() {
		return c.Expr.Args[i:]
	}
	return c.Expr.Args[i : i+1]
}

// isMethodExpr reports whether c calls a method expression: (*tensor.Tensor).Item(loss).
func (c *Call) isMethodExpr() bool {
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	s := c.In.Package.Info.Selections[sel]
	return s != nil && s.Kind() == types.MethodExpr
}

// A Def is one assignment to a variable or field. The list of all of them stands for the variable
// wherever the analysis is flow-insensitive, which it mostly is; see reaching for the exception.
type Def struct {
	Kind DefKind
	// In is the function with the assignment, nil at package level, and Pos its place in the graph of
	// In.
	In  *Func
	Pos token.Pos
	// Value is the assigned expression or, for DefElem and DefKey, the one that is ranged over; nil for
	// other kinds. If Value is a call with several results, Index is the number of the assigned one.
	Value ast.Expr
	Index int
}

// A DefKind is a way to assign.
type DefKind uint8

// The ways to assign.
const (
	DefValue DefKind = iota // v = value
	DefElem                 // for _, v = range value
	DefKey                  // for v = range value
	DefStep                 // v++, v += constant
	DefOther                // v op= something, receiving it from a type switch, …
)

// A Param says which operand of which function a parameter or receiver is: [tensorapi.Recv], or 0 and up.
type Param struct {
	Of      *Func
	Operand int
}

// PosOf is how the chains of summaries name a place: base name of the file, and line. It has no folder,
// so facts and golden files are the same on every machine.
func (pkg *Package) PosOf(pos token.Pos) string {
	p := pkg.Pass.Fset.Position(pos)
	return filepath.Base(p.Filename) + ":" + strconv.Itoa(p.Line)
}
