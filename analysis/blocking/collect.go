package blocking

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// collect walks the package once and notes functions, calls and assignments.
func (a *analyzer) collect(root inspector.Cursor) {
	for file := range root.Children() {
		a.walk(file, nil)
	}
	for v, defs := range a.defs {
		if len(defs) == 1 && defs[0].kind == defValue && !v.IsField() {
			if lit, ok := ast.Unparen(defs[0].value).(*ast.FuncLit); ok {
				f := a.lits[lit]
				f.away = callable
				a.bound[v] = f
			}
		}
	}
	for _, f := range a.funcs {
		for _, c := range f.calls {
			a.resolve(c)
			if c.api.Kind == tensorapi.InPlace {
				// What it changes is what it returns.
				for _, e := range c.operand(c.api.Arg) {
					a.define(e, def{value: c.Expr, pos: c.Expr.Pos()}, f)
				}
			}
		}
	}
	for _, f := range a.funcs {
		for _, c := range f.calls {
			a.resolveValue(c)
		}
	}
	for _, f := range a.funcs {
		for _, c := range f.calls {
			c.each = a.eachOf(c)
		}
	}
}

var collected = []ast.Node{
	(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil), (*ast.CallExpr)(nil), (*ast.AssignStmt)(nil),
	(*ast.ValueSpec)(nil), (*ast.RangeStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.ReturnStmt)(nil),
	(*ast.CompositeLit)(nil), (*ast.UnaryExpr)(nil),
}

// walk notes what is below cur, which belongs to f.
func (a *analyzer) walk(cur inspector.Cursor, f *Func) {
	cur.Inspect(collected, func(c inspector.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				a.declare(c, n)
			}
			return false
		case *ast.FuncLit:
			a.literal(c, n, f)
			return false
		case *ast.CallExpr:
			a.call(c, n, f)
		case *ast.AssignStmt:
			a.assign(n, f)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Values) > 0 {
					a.define(name, valueOf(n.Values, i), f)
				}
			}
		case *ast.RangeStmt:
			if n.Key != nil {
				a.define(n.Key, def{kind: defKey, pos: n.Body.Lbrace, value: n.X}, f)
			}
			if n.Value != nil {
				a.define(n.Value, def{kind: defElem, pos: n.Body.Lbrace, value: n.X, index: 1}, f)
			}
			if f != nil && isFunc(a.info.TypeOf(n.X)) {
				x, _ := c.FindNode(n.X)
				call := &ast.CallExpr{Fun: n.X, Lparen: n.X.End(), Rparen: n.X.End() - 1}
				f.calls = append(f.calls, &Call{Expr: call, in: f, cur: x, iter: n})
				a.calls[call] = f.calls[len(f.calls)-1]
			}
		case *ast.IncDecStmt:
			a.define(n.X, def{kind: defStep, pos: n.Pos()}, f)
		case *ast.ReturnStmt:
			if f != nil {
				f.rets = append(f.rets, n)
			}
		case *ast.CompositeLit:
			a.composite(n, f)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				if id, ok := ast.Unparen(n.X).(*ast.Ident); ok {
					a.define(id, def{kind: defOther, pos: n.Pos()}, f)
				}
			}
		}
		return true
	})
}

func (a *analyzer) declare(c inspector.Cursor, n *ast.FuncDecl) {
	fn, ok := a.info.Defs[n.Name].(*types.Func)
	if !ok {
		return
	}
	f := a.newFunc(&Func{block: n.Body, cur: c, sig: fn.Signature(), name: fn.Name()})
	a.decls[fn] = f
	a.addParams(f)
	body, _ := c.FindNode(n.Body)
	a.walk(body, f)
}

func (a *analyzer) literal(c inspector.Cursor, n *ast.FuncLit, parent *Func) {
	sig, ok := a.info.TypeOf(n).(*types.Signature)
	if !ok {
		return
	}
	f := a.newFunc(&Func{block: n.Body, lit: n, parent: parent, cur: c, sig: sig, name: "the function literal"})
	if parent != nil {
		parent.nested = append(parent.nested, f)
	}
	a.lits[n] = f
	a.addParams(f)

	use := c.Parent()
	for isParen(use.Node()) {
		use = use.Parent()
	}
	if call, ok := use.Node().(*ast.CallExpr); ok {
		f.arg, f.argNo = call, -1
		for i, arg := range call.Args {
			if ast.Unparen(arg) == n {
				f.argNo = i
			}
		}
		if f.argNo < 0 {
			switch use.Parent().Node().(type) {
			case *ast.GoStmt:
				f.away = detached
			case *ast.DeferStmt:
				f.away = deferred
			default:
				f.away = once
			}
		}
		if c := a.calls[call]; c != nil {
			c.lits = append(c.lits, f)
		}
	}
	body, _ := c.FindNode(n.Body)
	a.walk(body, f)
}

func isParen(n ast.Node) bool { _, ok := n.(*ast.ParenExpr); return ok }

func (a *analyzer) addParams(f *Func) {
	if r := f.sig.Recv(); r != nil {
		a.params[r] = param{f, tensorapi.Recv}
	}
	for i := range min(f.sig.Params().Len(), 30) {
		a.params[f.sig.Params().At(i)] = param{f, i}
	}
}

func (a *analyzer) call(c inspector.Cursor, n *ast.CallExpr, f *Func) {
	if f == nil {
		return // package initialisation is no loop
	}
	if tv := a.info.Types[n.Fun]; tv.IsType() || tv.IsBuiltin() {
		return
	}
	call := &Call{Expr: n, in: f, cur: c}
	switch c.Parent().Node().(type) {
	case *ast.GoStmt, *ast.DeferStmt:
		call.away = true
	}
	f.calls = append(f.calls, call)
	a.calls[n] = call
}

// resolve finds out what a call calls. It needs the variables that are bound
// to literals.
func (a *analyzer) resolve(c *Call) {
	switch callee := typeutil.Callee(a.info, c.Expr).(type) {
	case *types.Func:
		c.Callee = callee
		if api, lib := libraries().Lookup(callee); lib != nil {
			c.api, c.lib = api, lib
			return
		}
		callee = callee.Origin()
		if types.IsInterface(recvType(callee)) {
			c.dynamic = true
			c.impls = a.implementations(callee)
			return
		}
		c.target = a.decls[callee]
		if callee.Pkg() != nil && callee.Pkg() != a.pass.Pkg {
			s := new(Summary)
			if a.pass.ImportObjectFact(callee, s) {
				c.summary = s
			}
		}
	}
}

// resolveValue finds out what is called through a value of function type, and
// which functions are among the arguments. It needs the callees of other calls,
// which may have returned these functions.
func (a *analyzer) resolveValue(c *Call) {
	if c.Callee == nil {
		if _, lit := ast.Unparen(c.Expr.Fun).(*ast.FuncLit); !lit {
			v := a.funcValue(c.Expr.Fun, 0)
			c.target, c.summary, c.maker, c.recv = v.fn, v.sum, v.maker, v.recv
			c.dynamic = !v.isKnown() && c.iter == nil && !a.resolveBound(c)
			if c.dynamic {
				c.impls, c.bound = a.setTo(c.Expr.Fun)
			}
		}
	}
	if c.api.Kind != tensorapi.Unknown && c.api.Kind != tensorapi.Call {
		return
	}
	if c.Callee != nil && c.dynamic {
		a.resolveConcrete(c)
	}
	if less, ok := a.lessMethod(c); ok {
		c.args = append(c.args, less)
	}
	for i, arg := range c.Expr.Args {
		if !isFunc(a.info.TypeOf(arg)) {
			continue
		}
		v := a.funcValue(arg, 0)
		if !v.isKnown() {
			v = a.methodValue(arg)
		}
		if v.isKnown() && (v.fn == nil || v.fn.lit != ast.Unparen(arg)) {
			c.args = append(c.args, funcArg{i, arg, v})
		}
	}
	if fn := c.Callee; fn != nil && !c.dynamic && len(c.lits)+len(c.args) > 0 && fn.Pkg() != nil && fn.Pkg() != a.pass.Pkg {
		c.foreign = !a.pass.ImportPackageFact(fn.Pkg(), new(Reaches))
	}
}

// resolveBound finds out whether what is called is a local variable that is
// nothing but a method of a library with its receiver: get := loss.Item.
func (a *analyzer) resolveBound(c *Call) bool {
	v := a.local(c.Expr.Fun)
	d := a.defs[v]
	if v == nil || len(d) != 1 || d[0].kind != defValue || a.params[v].of != nil {
		return false
	}
	sel, ok := ast.Unparen(d[0].value).(*ast.SelectorExpr)
	if !ok || a.info.Selections[sel] == nil || a.info.Selections[sel].Kind() != types.MethodVal {
		return false
	}
	fn, ok := a.info.Uses[sel.Sel].(*types.Func)
	if !ok {
		return false
	}
	if c.api, c.lib = libraries().Lookup(fn); c.lib == nil {
		return false
	}
	c.Callee, c.recv = fn, sel.X
	return true
}

// resolveConcrete finds out which method c, a call through an interface, calls if that is in
// a local variable that is assigned once, a value of another type: var m Meter = &average{}.
func (a *analyzer) resolveConcrete(c *Call) {
	sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	v := a.local(sel.X)
	d := a.defs[v]
	if v == nil || len(d) != 1 || d[0].kind != defValue || a.params[v].of != nil {
		return
	}
	t := a.info.TypeOf(orNil(d[0].value))
	if _, isTuple := t.(*types.Tuple); t == nil || isTuple || types.IsInterface(t) {
		return
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, c.Callee.Pkg(), c.Callee.Name())
	fn, ok := obj.(*types.Func)
	if !ok || types.IsInterface(recvType(fn)) {
		return
	}
	if m := a.funcObject(fn, 0); m.isKnown() {
		c.target, c.summary, c.impls, c.dynamic = m.fn, m.sum, nil, false
	}
}

// lessMethod returns the method by which c, a call of sort.Sort or its like, compares
// the elements of its operand.
func (a *analyzer) lessMethod(c *Call) (funcArg, bool) {
	if !isSorter(c.Callee) || len(c.Expr.Args) != 1 {
		return funcArg{}, false
	}
	arg := c.Expr.Args[0]
	obj, _, _ := types.LookupFieldOrMethod(a.info.TypeOf(arg), true, a.pass.Pkg, "Less")
	less, ok := obj.(*types.Func)
	if !ok || types.IsInterface(recvType(less)) {
		return funcArg{}, false
	}
	v := a.funcObject(less, 0)
	v.recv = arg
	return funcArg{0, &ast.SelectorExpr{X: arg, Sel: &ast.Ident{NamePos: arg.End(), Name: "Less"}}, v}, v.fn != nil || v.sum != nil
}

// A funcValue is what a value of function type is known to be: a function of
// this package, one with a summary, or what a call returned.
type funcValue struct {
	fn    *Func
	sum   *Summary
	maker *Call
	recv  ast.Expr // of a method value
	first bool     // the receiver of fn is its first argument: a method expression
}

func (v funcValue) isKnown() bool { return v != funcValue{} }

// summary is what is known of the function; never nil.
func (v funcValue) summary() *Summary {
	switch {
	case v.fn != nil && v.first:
		return v.fn.sum.withFirst()
	case v.fn != nil:
		return &v.fn.sum
	case v.sum != nil:
		return v.sum
	case v.maker != nil && v.maker.sum().Func != nil:
		return v.maker.sum().Func
	}
	return &nothing
}

// A funcArg is a function, known by name, that is passed to a call.
type funcArg struct {
	no   int
	expr ast.Expr
	funcValue
}

// funcValue finds out which function e is: a literal, a function or method by
// its name, a variable that is nothing else, the result of a call.
func (a *analyzer) funcValue(e ast.Expr, depth int) funcValue {
	if depth > 4 {
		return funcValue{} // perhaps a variable that is assigned itself
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.FuncLit:
		return funcValue{fn: a.lits[e]}
	case *ast.IndexExpr:
		if isFunc(a.info.TypeOf(e.X)) { // an instance of a generic function
			return a.funcValue(e.X, depth+1)
		}
	case *ast.IndexListExpr:
		return a.funcValue(e.X, depth+1)
	case *ast.Ident:
		return a.funcObject(a.info.Uses[e], depth)
	case *ast.SelectorExpr:
		v := a.funcObject(a.info.Uses[e.Sel], depth)
		if sel := a.info.Selections[e]; sel != nil && v.isKnown() {
			if sel.Kind() == types.MethodExpr {
				return funcValue{} // its operands are others
			}
			v.recv = e.X
		}
		return v
	case *ast.CallExpr:
		if a.info.Types[e.Fun].IsType() { // a conversion to a named type
			return a.funcValue(e.Args[0], depth+1)
		}
		if c := a.calls[e]; c != nil && c.Callee != nil && c.api.Kind == tensorapi.Unknown && !c.dynamic {
			return funcValue{maker: c}
		}
	}
	return funcValue{}
}

// methodValue finds out which function e is if that takes its receiver as its first
// argument, or is a function or method of a library: (*T).M, loss.Item, tensor.ItemOf[int].
func (a *analyzer) methodValue(e ast.Expr) funcValue {
	e = ast.Unparen(e)
	if x, ok := e.(*ast.IndexExpr); ok {
		e = ast.Unparen(x.X)
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return funcValue{}
	}
	fn, ok := a.info.Uses[sel.Sel].(*types.Func)
	if !ok {
		return funcValue{}
	}
	selection := a.info.Selections[sel]
	isExpr := selection != nil && selection.Kind() == types.MethodExpr
	api, isLibrary := lookup(fn)
	if !isLibrary {
		v := a.funcObject(fn, 0)
		if !isExpr || !v.isKnown() {
			return funcValue{}
		}
		if v.sum != nil {
			return funcValue{sum: v.sum.withFirst()}
		}
		v.first = true
		return v
	}
	v := funcValue{sum: a.librarySummary(api, sel)}
	switch {
	case v.sum.isZero():
		return funcValue{}
	case isExpr:
		v.sum = v.sum.withFirst()
	case selection != nil:
		v.recv = sel.X
	}
	return v
}

// librarySummary is the summary of a function of a library that e names.
func (a *analyzer) librarySummary(api tensorapi.Func, e ast.Expr) *Summary {
	s := &Summary{Blocks: api.Waits(), Enqueues: api.Enqueues(), Mutates: api.Kind == tensorapi.Mutate}
	switch api.Kind {
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Print:
		s.Waits = []Wait{{Operand: api.Arg, Chain: []Link{{a.posOf(e.Pos()), types.ExprString(e)}}}}
	}
	return s
}

func (a *analyzer) funcObject(obj types.Object, depth int) funcValue {
	switch obj := obj.(type) {
	case *types.Func:
		if _, ok := lookup(obj); ok || obj.Pkg() == nil {
			return funcValue{}
		}
		fn := obj.Origin()
		if s := new(Summary); fn.Pkg() != a.pass.Pkg && a.pass.ImportObjectFact(fn, s) {
			return funcValue{sum: s}
		}
		return funcValue{fn: a.decls[fn]}
	case *types.Var:
		if f := a.bound[obj]; f != nil {
			return funcValue{fn: f}
		}
		if d := a.defs[obj]; len(d) == 1 && d[0].kind == defValue && !obj.IsField() && a.params[obj].of == nil {
			return a.funcValue(d[0].value, depth+1)
		}
	}
	return funcValue{}
}

func isFunc(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// maxImplementations is the number of types up to which a method of an
// interface is taken for what these types agree on.
const maxImplementations = 3

// implementations returns the methods of this package that a call of the
// method of an interface of this package may lead to, or nil if there are
// more than a few.
func (a *analyzer) implementations(method *types.Func) []*Func {
	it, ok := recvType(method).Underlying().(*types.Interface)
	if !ok || method.Pkg() != a.pass.Pkg {
		return nil
	}
	list := a.implementing(it, method.Name())
	if len(list) > maxImplementations {
		return nil
	}
	return list
}

// implementing lists the methods of a name of the types of this package that implement an
// interface.
func (a *analyzer) implementing(it *types.Interface, name string) []*Func {
	var list []*Func
	for _, f := range a.funcs {
		if f.lit != nil || f.name != name || f.sig.Recv() == nil || f.sig.RecvTypeParams().Len() > 0 {
			continue
		}
		if types.Implements(f.sig.Recv().Type(), it) {
			list = append(list, f)
		}
	}
	return list
}

// setTo returns the functions that a field of function type is set to in this
// package, or nil if there are none, more than a few, or others, and whether some are
// methods with their receivers.
func (a *analyzer) setTo(e ast.Expr) (list []*Func, bound bool) {
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return nil, false
	}
	v := a.variable(sel)
	if v == nil || !v.IsField() || len(a.defs[v]) > maxImplementations {
		return nil, false
	}
	for _, d := range a.defs[v] {
		if d.kind == defValue && isNil(a.info, d.value) {
			continue
		}
		if d.kind != defValue {
			return nil, false
		}
		f := a.funcValue(d.value, 0)
		if f.fn == nil {
			return nil, false
		}
		bound = bound || f.recv != nil
		list = append(list, f.fn)
	}
	return list, bound
}

func recvType(fn *types.Func) types.Type {
	if r := fn.Signature().Recv(); r != nil {
		return r.Type()
	}
	return types.Typ[types.Invalid]
}

func (a *analyzer) assign(n *ast.AssignStmt, f *Func) {
	switch n.Tok {
	case token.ASSIGN, token.DEFINE:
		for i, lhs := range n.Lhs {
			d := valueOf(n.Rhs, i)
			if isReceive(d.value) {
				d.pos = n.Lhs[0].Pos() // all of a select statement's case that is in the graph
			}
			a.define(lhs, d, f)
		}
	default:
		kind := defOther
		if a.info.Types[n.Rhs[0]].Value != nil {
			kind = defStep
		}
		a.define(n.Lhs[0], def{kind: kind, pos: n.Pos()}, f)
	}
}

// isReceive recognises what takes a value from a channel.
func isReceive(e ast.Expr) bool {
	u, ok := ast.Unparen(e).(*ast.UnaryExpr)
	return ok && u.Op == token.ARROW
}

// valueOf is the definition of the i-th variable by a list of values, which
// may be one call with several results.
func valueOf(values []ast.Expr, i int) def {
	if i < len(values) {
		return def{value: values[i], pos: values[i].Pos()}
	}
	return def{value: values[0], pos: values[0].Pos(), index: i}
}

// define notes an assignment. One to an element of a container, or through a
// pointer, counts as one to the container or pointer.
func (a *analyzer) define(lhs ast.Expr, d def, f *Func) {
	d.in = f
	v := a.variable(lhs)
	if v == nil {
		return
	}
	a.defs[v] = append(a.defs[v], d)
	if base := a.base(lhs); base != nil && base != v {
		a.stores[base] = append(a.stores[base], d)
	}
}

// base returns the local variable that an expression stores to a part of: x of
// x.f[i].g.
func (a *analyzer) base(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := a.info.ObjectOf(e).(*types.Var); ok && v.Parent() != a.pass.Pkg.Scope() {
			return v
		}
	case *ast.SelectorExpr:
		return a.base(e.X)
	case *ast.IndexExpr:
		return a.base(e.X)
	case *ast.StarExpr:
		return a.base(e.X)
	}
	return nil
}

// variable returns the variable or field that an expression stores to.
func (a *analyzer) variable(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := a.info.ObjectOf(e).(*types.Var)
		return v
	case *ast.SelectorExpr:
		v, _ := a.info.ObjectOf(e.Sel).(*types.Var)
		if v != nil {
			return v.Origin()
		}
	case *ast.IndexExpr:
		return a.variable(e.X)
	case *ast.StarExpr:
		return a.variable(e.X)
	}
	return nil
}

func (a *analyzer) composite(n *ast.CompositeLit, f *Func) {
	t := a.info.TypeOf(n)
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
				a.define(key, def{value: kv.Value, pos: kv.Value.Pos()}, f)
			}
		} else if i < s.NumFields() {
			v := s.Field(i).Origin()
			a.defs[v] = append(a.defs[v], def{in: f, value: e, pos: e.Pos()})
		}
	}
}
