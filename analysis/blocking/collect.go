package blocking

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// One walk over the syntax of a package. It notes what all other files ask for: the functions and
// literals, the calls in each, and the assignments to each variable and field. Then it finds out what
// each call calls, in three rounds, because each needs the results of the one before:
//
//	loss.Item()              // resolve: by name
//	step := newStep(net)     // resolve: newStep
//	step(b)                  // resolveValue: what newStep has returned
//	for _, h := range hooks {
//		h(loss)          // eachOf: the functions in hooks
//	}
//
// Assignments are kept as a list for each variable, without their order. Variables that closures share
// and fields need no further care then: the list has the assignments of all functions. A field stands
// for the field of all structs of its type, and a list for all of its elements.

// collect walks the package once and notes functions, calls and assignments.
func collect(pkg *Package, root inspector.Cursor) {
	for file := range root.Children() {
		walk(pkg, file, nil)
	}
	// Variables that hold a literal and nothing else stand for it.
	for v, defs := range pkg.Defs {
		if len(defs) == 1 && defs[0].Kind == DefValue && !v.IsField() {
			if lit, ok := ast.Unparen(defs[0].Value).(*ast.FuncLit); ok {
				f := pkg.Lits[lit]
				f.away = Callable
				pkg.bound[v] = f
			}
		}
	}
	// Find the callees: first those that have names, then the values that calls have returned, then the elements of
	// lists of functions.
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			resolve(pkg, c)
			if c.API.Kind == tensorapi.InPlace {
				// What it changes is what it returns.
				for _, e := range c.Operand(c.API.Arg) {
					define(pkg, e, Def{Value: c.Expr, Pos: c.Expr.Pos()}, f)
				}
			}
		}
	}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			resolveValue(pkg, c)
		}
	}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			c.Each = eachOf(pkg, c)
		}
	}
}

// collected are the nodes that walk looks at.
var collected = []ast.Node{
	(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil), (*ast.CallExpr)(nil), (*ast.AssignStmt)(nil),
	(*ast.ValueSpec)(nil), (*ast.RangeStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.ReturnStmt)(nil),
	(*ast.CompositeLit)(nil), (*ast.UnaryExpr)(nil), (*ast.TypeSwitchStmt)(nil),
}

// walk notes the functions, calls, assignments and returns below cur. They belong to f, which is nil at
// package level. Functions inside are walked by a call of their own, with themselves for f.
func walk(pkg *Package, cur inspector.Cursor, f *Func) {
	cur.Inspect(collected, func(c inspector.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				declare(pkg, c, n)
			}
			return false
		case *ast.FuncLit:
			literal(pkg, c, n, f)
			return false
		case *ast.CallExpr:
			call(pkg, c, n, f)
		case *ast.AssignStmt:
			assign(pkg, n, f)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Values) > 0 {
					define(pkg, name, valueOf(n.Values, i), f)
				}
			}
		case *ast.RangeStmt:
			if n.Key != nil {
				define(pkg, n.Key, Def{Kind: DefKey, Pos: n.Body.Lbrace, Value: n.X}, f)
			}
			if n.Value != nil {
				define(pkg, n.Value, Def{Kind: DefElem, Pos: n.Body.Lbrace, Value: n.X, Index: 1}, f)
			}
			// A range over an iterator calls it, with the body as yield. The made-up call is as long as
			// the iterator, so that the graph has a block for its place.
			if f != nil && syntax.IsFunc(pkg.Info.TypeOf(n.X)) {
				x, _ := c.FindNode(n.X)
				call := &ast.CallExpr{Fun: n.X, Lparen: n.X.End(), Rparen: n.X.End() - 1}
				f.Calls = append(f.Calls, &Call{Expr: call, In: f, Cur: x, iter: n})
				pkg.Calls[call] = f.Calls[len(f.Calls)-1]
			}
		case *ast.IncDecStmt:
			define(pkg, n.X, Def{Kind: DefStep, Pos: n.Pos()}, f)
		case *ast.ReturnStmt:
			if f != nil {
				f.Returns = append(f.Returns, n)
			}
		case *ast.CompositeLit:
			composite(pkg, n, f)
		case *ast.TypeSwitchStmt:
			typeSwitch(pkg, n, f)
		case *ast.UnaryExpr:
			// Somebody may assign the variable through the pointer.
			if n.Op == token.AND {
				if id, ok := ast.Unparen(n.X).(*ast.Ident); ok {
					define(pkg, id, Def{Kind: DefOther, Pos: n.Pos()}, f)
				}
			}
		}
		return true
	})
}

// declare adds a declared function, and walks its body. Functions without a body are in assembly;
// nothing is known of them.
func declare(pkg *Package, c inspector.Cursor, n *ast.FuncDecl) {
	fn, ok := pkg.Info.Defs[n.Name].(*types.Func)
	if !ok {
		return
	}
	f := newFunc(pkg, &Func{Body: n.Body, Cur: c, Sig: fn.Signature(), Name: fn.Name()})
	pkg.Decls[fn] = f
	addParams(pkg, f)
	body, _ := c.FindNode(n.Body)
	walk(pkg, body, f)
}

// literal adds a function literal that is written in parent, and notes how it is used: called on the spot, by go or by
// defer, or as an argument.
//
//	func() { f() }()        // ArgOf is the call, ArgNo -1: Once
//	defer func() { f() }()  // Deferred
//	each(xs, func() { f() }) // ArgNo 1
//
// An outer call is walked before its arguments, so its [Call] is there to note the literal in.
func literal(pkg *Package, c inspector.Cursor, n *ast.FuncLit, parent *Func) {
	sig, ok := pkg.Info.TypeOf(n).(*types.Signature)
	if !ok {
		return
	}
	f := newFunc(pkg, &Func{Body: n.Body, Lit: n, Parent: parent, Cur: c, Sig: sig, Name: "the function literal"})
	if parent != nil {
		parent.Nested = append(parent.Nested, f)
	}
	pkg.Lits[n] = f
	addParams(pkg, f)

	use := c.Parent()
	for syntax.IsParen(use.Node()) {
		use = use.Parent()
	}
	if call, ok := use.Node().(*ast.CallExpr); ok {
		f.ArgOf, f.ArgNo = call, -1
		for i, arg := range call.Args {
			if ast.Unparen(arg) == n {
				f.ArgNo = i
			}
		}
		if f.ArgNo < 0 {
			switch use.Parent().Node().(type) {
			case *ast.GoStmt:
				f.away = Detached
			case *ast.DeferStmt:
				f.away = Deferred
			default:
				f.away = Once
			}
		}
		if c := pkg.Calls[call]; c != nil {
			c.Lits = append(c.Lits, f)
		}
	}
	body, _ := c.FindNode(n.Body)
	walk(pkg, body, f)
}

// addParams notes the receiver and the first 30 parameters of f. Later ones have no place in a set of
// [Operands]; such a parameter counts as unknown.
func addParams(pkg *Package, f *Func) {
	if r := f.Sig.Recv(); r != nil {
		pkg.Params[r] = Param{f, tensorapi.Recv}
	}
	for i := range min(f.Sig.Params().Len(), 30) {
		pkg.Params[f.Sig.Params().At(i)] = Param{f, i}
	}
}

// call adds a call in f. Conversions and built-ins are none, and neither is a call at package level: it
// runs once, when the program starts, and in no loop.
func call(pkg *Package, c inspector.Cursor, n *ast.CallExpr, f *Func) {
	if f == nil {
		return // package initialisation is no loop
	}
	if tv := pkg.Info.Types[n.Fun]; tv.IsType() || tv.IsBuiltin() {
		return
	}
	call := &Call{Expr: n, In: f, Cur: c}
	switch c.Parent().Node().(type) {
	case *ast.GoStmt, *ast.DeferStmt:
		call.Away = true
	}
	f.Calls = append(f.Calls, call)
	pkg.Calls[n] = call
}

// resolve finds out what c calls by its name: a function of a library, of another package or of this
// one, or a method of an interface. What it finds are Callee, API and Lib, Target, Impls and the
// imported summary.
func resolve(pkg *Package, c *Call) {
	switch callee := typeutil.Callee(pkg.Info, c.Expr).(type) {
	case *types.Func:
		c.Callee = callee
		if api, lib := Libraries().Lookup(callee); lib != nil {
			c.API, c.Lib = api, lib
			return
		}
		// Facts and bodies are those of the generic function, whatever its type arguments are here.
		callee = callee.Origin()
		if types.IsInterface(syntax.RecvType(callee)) {
			c.Dynamic = true
			if c.Impls = implementations(pkg, callee); c.Impls == nil {
				c.summary = implementation(pkg, callee)
			}
			return
		}
		c.Target = pkg.Decls[callee]
		if callee.Pkg() != nil && callee.Pkg() != pkg.Pass.Pkg {
			s := new(Summary)
			if pkg.Pass.ImportObjectFact(callee, s) {
				c.summary = s
			}
		}
	}
}

// resolveValue finds out what c calls through a value of function type, and which functions are among
// its arguments. Either may be what another call has returned, so it comes after resolve for all calls.
func resolveValue(pkg *Package, c *Call) {
	if c.Callee == nil {
		if _, lit := ast.Unparen(c.Expr.Fun).(*ast.FuncLit); !lit {
			v := pkg.FuncValue(c.Expr.Fun, 0)
			c.Target, c.summary, c.Maker, c.result, c.recv = v.Fn, v.sum, v.maker, v.result, v.recv
			c.Dynamic = !v.IsKnown() && c.iter == nil && !resolveBound(pkg, c)
			if c.Dynamic {
				c.Impls, c.bound = setTo(pkg, c.Expr.Fun)
				c.summary = fieldOfOthers(pkg, c.Expr.Fun)
				c.held = heldFunc(pkg, c)
			}
		}
	}
	// What a library does with functions that it is given is in its profile.
	if c.API.Kind != tensorapi.Unknown && c.API.Kind != tensorapi.Call {
		return
	}
	// A method of an interface, perhaps of a value whose type is known here.
	if c.Callee != nil && c.Dynamic {
		resolveConcrete(pkg, c)
	}
	if less, ok := lessMethod(pkg, c); ok {
		c.FuncArgs = append(c.FuncArgs, less)
	}
	// Literals are in c.Lits already. What is left are functions that are passed by name.
	for i, arg := range c.Expr.Args {
		if !syntax.IsFunc(pkg.Info.TypeOf(arg)) {
			continue
		}
		v := pkg.FuncValue(arg, 0)
		if !v.IsKnown() {
			v = methodValue(pkg, arg)
		}
		if v.IsKnown() && (v.Fn == nil || v.Fn.Lit != ast.Unparen(arg)) {
			c.FuncArgs = append(c.FuncArgs, FuncArg{i, arg, v})
		}
	}
	// A package with the fact Reaches has summaries that say when a function calls its arguments. For
	// others, the signature has to do; see signatureCalls.
	if fn := c.Callee; fn != nil && !c.Dynamic && len(c.Lits)+len(c.FuncArgs) > 0 && fn.Pkg() != nil && fn.Pkg() != pkg.Pass.Pkg {
		c.foreign = !pkg.Pass.ImportPackageFact(fn.Pkg(), new(Reaches))
	}
}

// resolveBound reports whether c calls a variable that holds a library's function, or its method with or without the
// receiver, and notes it. The variable is set once. A field or a variable of the package holds no receiver.
//
//	get, item := loss.Item, (*tensor.Tensor).Item
//	get()
//	item(loss)
//	t := trainer{sync: asyncrt.WaitAll}
//	t.sync()
func resolveBound(pkg *Package, c *Call) bool {
	value, local := heldBy(pkg, c.Expr.Fun)
	if x, ok := value.(*ast.IndexExpr); ok {
		value = ast.Unparen(x.X)
	}
	sel, ok := value.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	isExpr, isBound := false, false
	if s := pkg.Info.Selections[sel]; s != nil {
		isExpr, isBound = s.Kind() == types.MethodExpr, s.Kind() == types.MethodVal
	}
	if isExpr && len(c.Expr.Args) != 1 || isBound && !local {
		return false
	}
	fn, ok := pkg.Info.Uses[sel.Sel].(*types.Func)
	if !ok {
		return false
	}
	if c.API, c.Lib = Libraries().Lookup(fn); c.Lib == nil {
		return false
	}
	c.Callee = fn
	switch {
	case isExpr:
		c.recv = c.Expr.Args[0]
	case isBound:
		c.recv = sel.X
	}
	return true
}

// heldFunc returns the facts about the function that c calls through a variable. The function is one of another
// package, or a method that takes its receiver as its first argument.
//
//	s := scorer{f: metrics.Mean.Of}
//	s.f(m, x)
func heldFunc(pkg *Package, c *Call) FuncValue {
	value, _ := heldBy(pkg, c.Expr.Fun)
	if value == nil || c.Impls != nil {
		return FuncValue{}
	}
	v := pkg.FuncValue(value, 0)
	if !v.IsKnown() {
		v = methodValue(pkg, value)
	}
	if v.sum == nil && !v.first {
		return FuncValue{}
	}
	return v
}

// heldBy returns what the variable e holds, if it is set once and nobody else can set it, or nil; and whether it is a
// local one.
func heldBy(pkg *Package, e ast.Expr) (value ast.Expr, local bool) {
	v := pkg.Local(e)
	if local = v != nil; local && pkg.Params[v].Of != nil {
		return nil, true
	}
	if !local {
		if _, isElement := ast.Unparen(e).(*ast.IndexExpr); isElement {
			return nil, false
		}
		if v = pkg.Variable(e); v == nil || v.Exported() || v.Pkg() != pkg.Pass.Pkg {
			return nil, false
		}
	}
	if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == DefValue && d[0].Value != nil {
		value = ast.Unparen(d[0].Value)
	}
	return value, local
}

// resolveConcrete finds the method that c calls through an interface, if the value is in a local
// variable that is set once, to a value of a concrete type:
//
//	var m Meter = &average{}
//	m.Update(loss) // (*average).Update
func resolveConcrete(pkg *Package, c *Call) {
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	v := pkg.Local(sel.X)
	d := pkg.Defs[v]
	if v == nil || len(d) != 1 || d[0].Kind != DefValue || pkg.Params[v].Of != nil {
		return
	}
	t := pkg.Info.TypeOf(syntax.OrNil(d[0].Value))
	if _, isTuple := t.(*types.Tuple); t == nil || isTuple || types.IsInterface(t) {
		return
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, c.Callee.Pkg(), c.Callee.Name())
	fn, ok := obj.(*types.Func)
	if !ok || types.IsInterface(syntax.RecvType(fn)) {
		return
	}
	if m := funcObject(pkg, fn, 0); m.IsKnown() {
		c.Target, c.summary, c.Impls, c.Dynamic = m.Fn, m.sum, nil, false
	}
}

// lessMethod returns the method Less of the argument of c, a call of sort.Sort or heap.Init. The method
// counts as a function argument of c, since it runs many times and may read:
//
//	func (s byLoss) Less(i, j int) bool { return s[i].Item() < s[j].Item() }
func lessMethod(pkg *Package, c *Call) (FuncArg, bool) {
	if !syntax.IsSorter(c.Callee) || len(c.Expr.Args) != 1 && c.Callee.Pkg().Path() != "container/heap" {
		return FuncArg{}, false
	}
	arg := c.Expr.Args[0]
	obj, _, _ := types.LookupFieldOrMethod(pkg.Info.TypeOf(arg), true, pkg.Pass.Pkg, "Less")
	less, ok := obj.(*types.Func)
	if !ok || types.IsInterface(syntax.RecvType(less)) {
		return FuncArg{}, false
	}
	v := funcObject(pkg, less, 0)
	v.recv = arg
	return FuncArg{0, &ast.SelectorExpr{X: arg, Sel: &ast.Ident{NamePos: arg.End(), Name: "Less"}}, v}, v.Fn != nil || v.sum != nil
}

// A FuncValue is what a value of function type is known to be: a function of this package, one of another package with
// a summary, or what a call returned. The zero FuncValue means that nothing is known.
type FuncValue struct {
	Fn     *Func    // a function of this package, or nil
	sum    *Summary // the fact about one of another package, or nil
	maker  *Call    // the call that returned it, or nil
	result int      // the number of maker's result
	recv   ast.Expr // the receiver in a method value, loss in loss.Item
	first  bool     // Fn is a method expression, (*T).M: its receiver is the first argument
}

// IsKnown reports whether anything is known of the value.
func (v FuncValue) IsKnown() bool { return v != FuncValue{} }

// Summary is what is known of the function; never nil. Its operands are numbered as a caller of the
// value passes them: see withFirst for method expressions.
func (v FuncValue) Summary() *Summary {
	switch {
	case v.Fn != nil && v.first:
		return v.Fn.Summary.withFirst()
	case v.Fn != nil:
		return &v.Fn.Summary
	case v.sum != nil:
		return v.sum
	case v.maker != nil && v.maker.returnedFunc(v.result) != nil:
		return v.maker.returnedFunc(v.result)
	}
	return &nothing
}

// A FuncArg is a function, known by name, that is passed to a call.
type FuncArg struct {
	// No is the number of the argument, and Expr the argument.
	No   int
	Expr ast.Expr
	FuncValue
}

// FuncValue finds out which function e is: a literal, a function or method by its name, a variable that
// is set once, or the result of a call. The depth bounds how many variables it looks through; callers
// pass 0.
func (pkg *Package) FuncValue(e ast.Expr, depth int) FuncValue {
	if depth > 4 {
		return FuncValue{} // perhaps a variable that is assigned itself
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return FuncValue{Fn: pkg.Lits[e]}
	case *ast.IndexExpr:
		if syntax.IsFunc(pkg.Info.TypeOf(e.X)) { // an instance of a generic function
			return pkg.FuncValue(e.X, depth+1)
		}
	case *ast.IndexListExpr:
		return pkg.FuncValue(e.X, depth+1)
	case *ast.Ident:
		return funcObject(pkg, pkg.Info.Uses[e], depth)
	case *ast.SelectorExpr:
		v := funcObject(pkg, pkg.Info.Uses[e.Sel], depth)
		if sel := pkg.Info.Selections[e]; sel != nil && v.IsKnown() {
			if sel.Kind() == types.MethodExpr {
				return FuncValue{} // its operands are others
			}
			v.recv = e.X
		}
		return v
	case *ast.CallExpr:
		if pkg.Info.Types[e.Fun].IsType() { // a conversion to a named type
			return pkg.FuncValue(e.Args[0], depth+1)
		}
		if c := pkg.Calls[e]; c != nil && c.Callee != nil && c.API.Kind == tensorapi.Unknown && !c.Dynamic {
			return FuncValue{maker: c}
		}
	}
	return FuncValue{}
}

// methodValue finds out which function e is, where FuncValue leaves it open: methods that take their
// receiver as the first argument, and functions of libraries, which have no [Func].
//
//	(*T).M, loss.Item, tensor.ItemOf[int64]
func methodValue(pkg *Package, e ast.Expr) FuncValue {
	e = ast.Unparen(e)
	if x, ok := e.(*ast.IndexExpr); ok {
		e = ast.Unparen(x.X)
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return FuncValue{}
	}
	fn, ok := pkg.Info.Uses[sel.Sel].(*types.Func)
	if !ok {
		return FuncValue{}
	}
	selection := pkg.Info.Selections[sel]
	isExpr := selection != nil && selection.Kind() == types.MethodExpr
	api, isLibrary := lookup(fn)
	if !isLibrary {
		v := funcObject(pkg, fn, 0)
		if !isExpr || !v.IsKnown() {
			return FuncValue{}
		}
		if v.sum != nil {
			return FuncValue{sum: v.sum.withFirst()}
		}
		v.first = true
		return v
	}
	v := FuncValue{sum: librarySummary(pkg, api, sel)}
	switch {
	case v.sum.isZero():
		return FuncValue{}
	case isExpr:
		v.sum = v.sum.withFirst()
	case selection != nil:
		v.recv = sel.X
	}
	return v
}

// librarySummary makes a summary of a library's function, which e names, from what its profile says.
func librarySummary(pkg *Package, api tensorapi.Func, e ast.Expr) *Summary {
	s := &Summary{Blocks: api.Waits(), Enqueues: api.Enqueues(), Mutates: api.Kind == tensorapi.Mutate}
	switch api.Kind {
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Save, tensorapi.Print:
		s.Waits = []Wait{{Operand: api.Arg, Chain: []Link{{pkg.PosOf(e.Pos()), types.ExprString(e)}}}}
	case tensorapi.Op, tensorapi.Draw, tensorapi.Host:
		sig, ok := pkg.Info.TypeOf(e).Underlying().(*types.Signature)
		s.Makes = ok && sig.Results().Len() == 1 && IsTensor(sig.Results().At(0).Type())
	}
	return s
}

// funcObject returns what is known of a function, or of a variable that is set once to a function, by this package or
// by the one that declares it. Library functions have no summary here; see methodValue.
func funcObject(pkg *Package, obj types.Object, depth int) FuncValue {
	switch obj := obj.(type) {
	case *types.Func:
		if _, ok := lookup(obj); ok || obj.Pkg() == nil {
			return FuncValue{}
		}
		fn := obj.Origin()
		if s := new(Summary); fn.Pkg() != pkg.Pass.Pkg && pkg.Pass.ImportObjectFact(fn, s) {
			return FuncValue{sum: s}
		}
		return FuncValue{Fn: pkg.Decls[fn]}
	case *types.Var:
		if f := pkg.bound[obj]; f != nil {
			return FuncValue{Fn: f}
		}
		if d := pkg.lastDefs(obj); len(d) == 1 && d[0].Kind == DefValue && !obj.IsField() && pkg.Params[obj].Of == nil {
			return pkg.FuncValue(d[0].Value, depth+1).at(d[0].Index)
		}
		// Another package's variable, that this one leaves as it is.
		if s := new(Summary); obj.Pkg() != nil && obj.Pkg() != pkg.Pass.Pkg && !obj.IsField() && len(pkg.Defs[obj]) == 0 && pkg.Pass.ImportObjectFact(obj, s) {
			return FuncValue{sum: s}
		}
	}
	return FuncValue{}
}

// maxImplementations is the number of possible callees up to which a call counts as what they agree on.
// With more, agreement says hardly anything.
const maxImplementations = 3

// implementations lists the methods of this package that a call of an interface's method may lead to. It returns nil
// if the interface is another package's, or if more than maxImplementations types have the method.
func implementations(pkg *Package, method *types.Func) []*Func {
	it, ok := syntax.RecvType(method).Underlying().(*types.Interface)
	if !ok || method.Pkg() != pkg.Pass.Pkg {
		return nil
	}
	list := pkg.Implementing(it, method.Name())
	if len(list) > maxImplementations {
		return nil
	}
	return list
}

// implementation returns what is known of the method that a call of an interface's method leads to in the packages that
// this one imports, if none of this package's types has it; or nil. There must be one such method, which a type
// may also have by embedding another. For an interface of another package, it is what the types of that package
// agree on.
func implementation(pkg *Package, method *types.Func) *Summary {
	it, ok := syntax.RecvType(method).Underlying().(*types.Interface)
	if !ok || len(pkg.Implementing(it, method.Name())) > 0 {
		return nil
	}
	if method.Pkg() != pkg.Pass.Pkg {
		if s := new(Summary); pkg.Pass.ImportObjectFact(method, s) {
			return s
		}
		return nil
	}
	var only *types.Func
	for _, imp := range pkg.Pass.Pkg.Imports() {
		if !pkg.Pass.ImportPackageFact(imp, new(Reaches)) || owned(imp.Path()) {
			continue
		}
		for _, name := range imp.Scope().Names() {
			t, ok := imp.Scope().Lookup(name).(*types.TypeName)
			if !ok || t.IsAlias() || types.IsInterface(t.Type()) || !types.Implements(types.NewPointer(t.Type()), it) {
				continue
			}
			fn, _, _ := types.LookupFieldOrMethod(t.Type(), true, imp, method.Name())
			m, ok := fn.(*types.Func)
			if !ok || only != nil && only != m.Origin() {
				return nil
			}
			only = m.Origin()
		}
	}
	if s := new(Summary); only != nil && pkg.Pass.ImportObjectFact(only, s) {
		return s
	}
	return nil
}

// Implementing lists the methods called name of the types of this package that implement an interface.
// Generic types are left out: which of their instances implement it, nobody asks.
func (pkg *Package) Implementing(it *types.Interface, name string) []*Func {
	var list []*Func
	for _, f := range pkg.Funcs {
		if f.Lit != nil || f.Name != name || f.Sig.Recv() == nil || f.Sig.RecvTypeParams().Len() > 0 {
			continue
		}
		if types.Implements(f.Sig.Recv().Type(), it) {
			list = append(list, f)
		}
	}
	return list
}

// assign notes the assignments of a statement. v += constant is a step.
func assign(pkg *Package, n *ast.AssignStmt, f *Func) {
	switch n.Tok {
	case token.ASSIGN, token.DEFINE:
		for i, lhs := range n.Lhs {
			d := valueOf(n.Rhs, i)
			if syntax.IsReceive(d.Value) {
				d.Pos = n.Lhs[0].Pos() // all of a select statement's case that is in the graph
			}
			define(pkg, lhs, d, f)
		}
	default:
		kind := DefOther
		if pkg.Info.Types[n.Rhs[0]].Value != nil {
			kind = DefStep
		}
		define(pkg, n.Lhs[0], Def{Kind: kind, Pos: n.Pos()}, f)
	}
}

// typeSwitch notes the value of the variable of a type switch. Each case has a variable of its own.
func typeSwitch(pkg *Package, n *ast.TypeSwitchStmt, f *Func) {
	assign, ok := n.Assign.(*ast.AssignStmt)
	if !ok {
		return
	}
	x := ast.Unparen(assign.Rhs[0]).(*ast.TypeAssertExpr).X
	for _, clause := range n.Body.List {
		if v, ok := pkg.Info.Implicits[clause].(*types.Var); ok {
			pkg.Defs[v] = append(pkg.Defs[v], Def{In: f, Value: x, Pos: x.Pos()})
		}
	}
}

// valueOf returns the assignment to variable number i by a list of values: value number i, or result
// number i of the only value, a call.
func valueOf(values []ast.Expr, i int) Def {
	if i < len(values) {
		return Def{Value: values[i], Pos: values[i].Pos()}
	}
	return Def{Value: values[0], Pos: values[0].Pos(), Index: i}
}

// define notes an assignment to lhs. One to an element or through a pointer counts for the list or the
// pointer, and one to a field for the field. In stores it counts for the local variable in front as
// well:
//
//	s.items[i] = x // Defs of items, stores of s
func define(pkg *Package, lhs ast.Expr, d Def, f *Func) {
	d.In = f
	v := pkg.Variable(lhs)
	if v == nil {
		return
	}
	pkg.Defs[v] = append(pkg.Defs[v], d)
	if base := base(pkg, lhs); base != nil && base != v {
		pkg.stores[base] = append(pkg.stores[base], d)
	}
}

// base returns the local variable that e is a part of: x for x.f[i].g. Compare Variable, which returns
// g.
func base(pkg *Package, e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := pkg.Info.ObjectOf(e).(*types.Var); ok && v.Parent() != pkg.Pass.Pkg.Scope() {
			return v
		}
	case *ast.SelectorExpr:
		return base(pkg, e.X)
	case *ast.IndexExpr:
		return base(pkg, e.X)
	case *ast.StarExpr:
		return base(pkg, e.X)
	}
	return nil
}

// Variable returns the variable or field that an assignment to e sets: f for x.f[i]. Fields of a
// generic struct are those of its declaration, so that all instances share one list of assignments.
func (pkg *Package) Variable(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := pkg.Info.ObjectOf(e).(*types.Var); ok {
			return v.Origin() // the key of a literal is a field, too
		}
	case *ast.SelectorExpr:
		v, _ := pkg.Info.ObjectOf(e.Sel).(*types.Var)
		if v != nil {
			return v.Origin()
		}
	case *ast.IndexExpr:
		return pkg.Variable(e.X)
	case *ast.StarExpr:
		return pkg.Variable(e.X)
	}
	return nil
}

// composite notes the fields that a literal of a struct sets, by name or by position.
func composite(pkg *Package, n *ast.CompositeLit, f *Func) {
	t := pkg.Info.TypeOf(n)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem() // an elided &T in a list
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				define(pkg, key, Def{Value: kv.Value, Pos: kv.Value.Pos()}, f)
			}
		} else if i < s.NumFields() {
			v := s.Field(i).Origin()
			pkg.Defs[v] = append(pkg.Defs[v], Def{In: f, Value: e, Pos: e.Pos()})
		}
	}
}
