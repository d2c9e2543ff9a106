package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Where tensors come from. A read waits only for work that isn't finished, so what counts is whether
// the loop around the read has enqueued the work:
//
//	x := model.Forward(in)
//	for range n {
//		y := step()
//		y.Item() // Fresh: waits for the step of this iteration
//		x.Item() // not: only the first iteration can wait
//	}
//
// A tracer follows an expression backwards, through variables, fields, lists, views and the results of
// functions. It ignores the order of assignments and takes one field for the fields of all structs, so
// it may call a tensor fresh that isn't, if one variable is used for both. What it doesn't know has no
// origin, so it may also miss one.

// A tracer finds where the tensors that an expression stands for come from. It answers one question and
// is thrown away.
//
// It is flow-insensitive. A variable stands for every value assigned to it anywhere, and a container for
// every value put into it. A field stands for every assignment to it in the package, in any struct.
//
// With a loop, only what happens in the loop counts: a tensor that was made before the loop is not what
// an iteration waits for. Without a loop, parameters stand for what the caller passes.
type tracer struct {
	*Package
	loop *Loop               // nil: the origin in terms of fn's operands
	fn   *Func               // the function whose operands the origin names, if there is no loop
	seen map[*types.Var]bool // the variables that were asked about; a second time adds nothing

	inputs bool  // whether what the loop receives from a channel counts as pending
	within *Loop // without a loop: parameters stand for what calls pass that this one leads to
}

// OriginOf says where the tensors that e stands for come from: from operations that may not be finished, or from
// operands of the function that e is in.
//
//	func f(x *tensor.Tensor) {
//		y := x           // OriginOf(y) is operand 0
//		z := y.Exp()     // pending
//		w := x.Reshape(-1) // operand 0: a view
//	}
func (pkg *Package) OriginOf(e ast.Expr, in *Func) Origin {
	return newTracer(pkg, in).expr(e, 0, in)
}

// newTracer returns a tracer for the operands of the function that f is part of.
func newTracer(pkg *Package, f *Func) *tracer {
	return &tracer{Package: pkg, fn: f.Owner(), seen: make(map[*types.Var]bool)}
}

// Fresh reports whether e, evaluated in l, may stand for a tensor whose work l has enqueued. A tensor
// from before the loop is not fresh: the first iteration that reads it waits, and the others don't.
func (pkg *Package) Fresh(e ast.Expr, in *Func, l *Loop) bool {
	t := tracer{Package: pkg, loop: l, seen: make(map[*types.Var]bool)}
	return t.expr(e, 0, in).Pending
}

// Arrives reports whether e, evaluated in l, may stand for a tensor that l has received from a channel.
func (pkg *Package) Arrives(e ast.Expr, in *Func, l *Loop) bool {
	t := tracer{Package: pkg, loop: l, seen: make(map[*types.Var]bool), inputs: true}
	return t.expr(e, 0, in).Pending
}

// expr returns the origin of e. If e is a call with several results, it is that of result number i.
func (t *tracer) expr(e ast.Expr, i int, in *Func) Origin {
	if o, ok := t.ofStruct(e, in); ok {
		return o
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := t.Info.ObjectOf(e).(*types.Var); ok {
			return t.variable(v)
		}
	// A field: what the package assigns to it, and what comes with the struct if others assign it.
	case *ast.SelectorExpr:
		if v, ok := t.Info.ObjectOf(e.Sel).(*types.Var); ok {
			o := t.variable(v.Origin())
			if v.IsField() && (v.Pkg() != t.Pass.Pkg || len(t.Defs[v.Origin()]) == 0 || t.inputs || t.loop == nil && o.Pending) && t.HoldsTensors(v.Type()) {
				// Others assign it, or may have: it comes from where the struct does.
				o = o.union(t.expr(e.X, 0, in))
			}
			return o
		}
	case *ast.CallExpr:
		return t.call(e, i, in)
	case *ast.IndexExpr:
		return t.expr(e.X, 0, in)
	case *ast.SliceExpr:
		return t.expr(e.X, 0, in)
	case *ast.StarExpr:
		return t.expr(e.X, 0, in)
	case *ast.TypeAssertExpr:
		return t.expr(e.X, 0, in)
	case *ast.UnaryExpr:
		switch e.Op {
		case token.AND:
			return t.expr(e.X, 0, in)
		case token.ARROW:
			return t.received(e.X, in)
		}
	case *ast.CompositeLit:
		var o Origin
		for _, elt := range e.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			o = o.union(t.expr(elt, 0, in))
		}
		return o
	}
	return Origin{}
}

// variable returns the origin of the value of v. It is the union over the arguments passed for v, and
// over the assignments to v, to its fields and to its elements. A variable that was asked about before
// adds nothing, so cycles of assignments end.
func (t *tracer) variable(v *types.Var) Origin {
	if t.seen[v] || !t.HoldsTensors(v.Type()) && !isOpen(v.Type()) && !isAnyOf(v.Type()) {
		return Origin{}
	}
	t.seen[v] = true
	shared := v.IsField() || v.Parent() == t.Pass.Pkg.Scope()
	var o Origin
	// What was passed for it.
	if p, ok := t.Params[v]; ok {
		if t.loop == nil && p.Of == t.fn {
			o.From = operands(p.Operand)
		} else {
			o = t.parameter(p)
		}
	}
	// What is assigned to it.
	for _, d := range t.Defs[v] {
		switch {
		case d.Kind == DefKey || d.Kind == DefElem:
			if t.loop == nil || t.Contains(t.loop, d.In, d.Pos) {
				o = o.union(t.element(d.Value, d.Index, d.In))
			}
		case d.Kind != DefValue:
		case t.loop == nil, t.Contains(t.loop, d.In, d.Pos):
			o = o.union(t.expr(d.Value, d.Index, d.In))
		case shared && t.CalledFrom(t.loop, d.In):
			// A function that the loop calls assigns it. That function's text is not in the loop, so a tracer
			// without a loop has to say what the value is.
			outside := tracer{Package: t.Package, seen: maps.Clone(t.seen), within: t.loop}
			o.Pending = o.Pending || outside.expr(d.Value, d.Index, d.In).Pending
		}
	}
	// What is assigned to fields and elements of it.
	for _, d := range t.stores[v] {
		if d.Kind == DefValue && (t.loop == nil || t.Contains(t.loop, d.In, d.Pos)) {
			o = o.union(t.expr(d.Value, d.Index, d.In))
		}
	}
	return o
}

// call returns the origin of result number i of the call e. For a library's function, the kind in its
// profile decides; for a user's function, its summary; a conversion has the origin of what it converts.
// With a loop, calls outside of the loop give nothing.
func (t *tracer) call(e *ast.CallExpr, i int, in *Func) Origin {
	if tv := t.Info.Types[e.Fun]; tv.IsType() {
		return t.expr(e.Args[0], 0, in)
	} else if tv.IsBuiltin() {
		return t.builtin(e, in)
	}
	c := t.Calls[e]
	if c == nil || t.loop != nil && !t.Contains(t.loop, in, e.Pos()) {
		return Origin{}
	}
	switch c.API.Kind {
	case tensorapi.Unknown:
		return t.result(c, i)
	case tensorapi.View:
		return t.operand(c, c.API.Arg)
	case tensorapi.Op, tensorapi.Draw, tensorapi.Mutate, tensorapi.InPlace:
		return Origin{Pending: true}
	case tensorapi.Call:
		return Origin{Pending: c.makes()}
	case tensorapi.Meta:
		if isReadAhead(c) {
			return t.operand(c, 0)
		}
	case tensorapi.Value:
		// A cell that the loop does not assign was settled before it.
		return Origin{Pending: t.loop == nil || t.Any(t.loop, (*Call).Mutates)}
	}
	return Origin{}
}

// isReadAhead recognises the methods by which a backlog takes a tensor that a later function reads:
// later.Read(t). To read it anywhere else waits for the tensor.
func isReadAhead(c *Call) bool {
	switch c.Callee.Name() {
	case "Read", "ReadF64", "ReadI64":
		return c.Lib == tensorapi.Ours() && len(c.Expr.Args) == 1 && syntax.RecvName(c.Callee) != ""
	}
	return false
}

// result returns the origin of result number i of a user's function or one of the standard library.
func (t *tracer) result(c *Call, i int) Origin {
	results := c.Summary().Results
	switch {
	case i < len(results):
		return t.translate(results[i], c)
	case c.Each != nil:
		var o Origin
		for _, v := range c.Each {
			if list := v.Summary().Results; i < len(list) {
				o = o.union(t.translate(list[i], c))
			}
		}
		return o
	case c.makes():
		return Origin{Pending: true}
	case isCollection(c.Callee):
		var o Origin
		for _, e := range c.Expr.Args {
			o = o.union(t.expr(e, 0, c.In))
		}
		return o
	}
	return Origin{}
}

// isCollection recognises functions of the packages slices and maps. What they return, or yield, are
// elements of what they are given.
func isCollection(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	path := fn.Pkg().Path()
	return path == "slices" || path == "maps"
}

// translate expresses an origin from the summary of c's callee in terms of the caller: each operand is
// replaced by the origin of what c passes for it.
func (t *tracer) translate(o Origin, c *Call) Origin {
	in := Origin{Pending: o.Pending}
	for op := tensorapi.Recv; op < 31; op++ {
		if o.From.Has(op) {
			in = in.union(t.operand(c, op))
		}
	}
	return in
}

// operand returns the origin of what c passes for operand number op of its callee.
func (t *tracer) operand(c *Call, op int) Origin {
	var o Origin
	for _, e := range c.Operand(op) {
		o = o.union(t.expr(e, 0, c.In))
	}
	return o
}

// parameter returns the origin of a parameter of a literal: of what the callee passes when it calls the
// literal, as its summary says.
//
//	each(batches, func(b batch) { use(b.x) }) // b comes from batches
//
// A parameter of a declared function, as of one that sets a field, comes from the calls in the loop that t is within,
// or without one from all calls. Other packages may call what is exported, and pass what they have just computed. What
// a constructor is given was there before.
//
//	func (m *Meter) Update(loss *tensor.Tensor) { m.last = loss }
func (t *tracer) parameter(p Param) Origin {
	if p.Of.Lit == nil && t.loop == nil {
		isConstructor := p.Of.Sig.Recv() == nil && p.Of.Sig.Results().Len() > 0
		o := Origin{Pending: t.within == nil && ast.IsExported(p.Of.Name) && !isConstructor}
		for _, c := range t.callers()[p.Of] {
			if t.within == nil || t.Contains(t.within, c.In, c.Expr.Pos()) || t.CalledFrom(t.within, c.In) {
				o = o.union(t.operand(c, p.Operand))
			}
		}
		return o
	}
	if p.Of.Lit == nil || p.Of.ArgOf == nil || p.Of.ArgNo < 0 {
		return Origin{}
	}
	if h := p.Of.Runs(); h != Once && h != Looping {
		return Origin{}
	}
	c := t.Calls[p.Of.ArgOf]
	cb := c.Callback(p.Of.ArgNo)
	if cb == nil || p.Operand >= len(cb.Args) || p.Operand < 0 {
		return Origin{}
	}
	return t.translate(cb.Args[p.Operand], c)
}

// element returns the origin of variable number i in a range over x: the elements of a list, what
// arrives on a channel, or what an iterator yields. An index stands for no tensor.
func (t *tracer) element(x ast.Expr, i int, in *Func) Origin {
	if syntax.IsChan(t.Info.TypeOf(x)) {
		return t.received(x, in)
	}
	if !syntax.IsFunc(t.Info.TypeOf(x)) {
		if i == 0 {
			return Origin{} // an index
		}
		return t.expr(x, 0, in)
	}
	for _, c := range in.Calls {
		if c.iter == nil || c.iter.X != x {
			continue
		}
		if cb := c.Callback(0); cb != nil {
			if i < len(cb.Args) {
				return t.translate(cb.Args[i], c)
			}
			return Origin{}
		}
		if maker := t.Calls[syntax.AsCall(x)]; maker != nil && (isCollection(maker.Callee) || maker.isForeign()) {
			return t.yielded(maker)
		}
	}
	return Origin{}
}

// received returns the origin of what is received from ch. It is pending only for [Package.Arrives], as
// work that another goroutine has enqueued is not the loop's own.
func (t *tracer) received(ch ast.Expr, in *Func) Origin {
	return Origin{Pending: t.inputs && t.IsInput(ch, in)}
}

// IsInput reports whether others send tensors to the function on the channel ch, which is a parameter
// or field. It is false if the function runs on a goroutine of its own, or those who send do. Then it is likely to be
// the reader beside a loop that enqueues, where waiting is what it is for.
func (pkg *Package) IsInput(ch ast.Expr, in *Func) bool {
	t := pkg.Info.TypeOf(ch)
	if !syntax.IsChan(t) || !pkg.HoldsTensors(t.Underlying().(*types.Chan).Elem()) {
		return false
	}
	v := pkg.Variable(ch)
	if _, isParam := pkg.Params[v]; v == nil || !isParam && !v.IsField() {
		return false
	}
	return !pkg.IsSpawned(in.Owner(), 0) && !pkg.isSentBeside(v)
}

// isSentBeside reports whether all calls in the package pass for the parameter ch a channel to which a goroutine sends
// that they start, or a function that they call.
//
//	go train(net, losses)
//	watch(losses)
func (pkg *Package) isSentBeside(ch *types.Var) bool {
	p := pkg.Params[ch]
	if p.Of == nil || len(pkg.callers()[p.Of]) == 0 {
		return false
	}
	return !slices.ContainsFunc(pkg.callers()[p.Of], func(c *Call) bool {
		given := c.Operand(p.Operand)
		if len(given) != 1 {
			return true
		}
		if maker := pkg.Calls[syntax.AsCall(given[0])]; maker != nil {
			return maker.Target == nil || !maker.Target.Contains(IsGo)
		}
		w := pkg.Local(given[0])
		if w == nil {
			return true
		}
		for use := range pkg.UsesOf(w, c.In) {
			f := pkg.FuncAt(use)
			switch n := use.Parent().Node().(type) {
			case *ast.CallExpr:
				i := slices.Index(n.Args, ast.Expr(use.Node().(*ast.Ident)))
				if d := pkg.Calls[n]; d != nil && IsGo(d) && d.Target != nil && i >= 0 && maySend(d.Target.param(i)) {
					return false
				}
			case *ast.SendStmt:
				if f != nil && f.Lit != nil && n.Chan == use.Node() && pkg.IsSpawned(f, 0) {
					return false
				}
			}
		}
		return true
	})
}

// maySend reports whether v, a parameter, is a channel to which its function may send.
func maySend(v *types.Var) bool {
	if v == nil {
		return false
	}
	ch, ok := v.Type().Underlying().(*types.Chan)
	return ok && ch.Dir() != types.RecvOnly
}

// IsSpawned reports whether f, or a function that calls it, is started on a goroutine of its own, as
// far as this package shows: by go, sync.WaitGroup.Go or an errgroup. Depth bounds how many callers up
// it looks; callers pass 0.
func (pkg *Package) IsSpawned(f *Func, depth int) bool {
	if f.isGoroutine() {
		return true
	}
	if f.Parent != nil && pkg.IsSpawned(f.Parent, depth) {
		return true
	}
	// f by name: go f(), wg.Go(f), or a function that calls f and is started so.
	for _, g := range pkg.Funcs {
		for _, c := range g.Calls {
			handed := syntax.StartsGoroutine(c.Callee) && slices.ContainsFunc(c.FuncArgs, func(arg FuncArg) bool { return arg.Fn == f })
			if handed || c.Target == f && (IsGo(c) || depth < 3 && g != f && pkg.IsSpawned(g.Owner(), depth+1)) {
				return true
			}
		}
	}
	return false
}

// isGoroutine reports whether f is a literal that a go statement or a method of a group starts.
func (f *Func) isGoroutine() bool {
	c := f.Package.Calls[f.ArgOf]
	return c != nil && (IsGo(c) || syntax.StartsGoroutine(c.Callee))
}

// builtin returns the origin of the list that append returns. Other built-ins return no tensors.
func (t *tracer) builtin(e *ast.CallExpr, in *Func) Origin {
	var o Origin
	if id, ok := ast.Unparen(e.Fun).(*ast.Ident); ok && id.Name == "append" {
		for _, arg := range e.Args {
			o = o.union(t.expr(arg, 0, in))
		}
	}
	return o
}

// HoldsTensors reports whether values of a type are tensors or contain some, in elements, in fields or behind
// pointers.
func (pkg *Package) HoldsTensors(typ types.Type) bool { return holds(pkg, typ, 4) }

// holds is HoldsTensors down to a depth, which ends the search in recursive types. Only answers for the
// whole depth are cached: others may be no for lack of depth.
func holds(pkg *Package, typ types.Type, depth int) bool {
	if IsTensor(typ) {
		return true
	}
	if depth == 0 {
		return false
	}
	if known, ok := pkg.holders.Load(typ); ok {
		return known.(bool)
	}
	found := false
	switch u := typ.Underlying().(type) {
	case *types.Pointer:
		found = holds(pkg, u.Elem(), depth-1)
	case *types.Slice:
		found = holds(pkg, u.Elem(), depth-1)
	case *types.Array:
		found = holds(pkg, u.Elem(), depth-1)
	case *types.Map:
		found = holds(pkg, u.Elem(), depth-1)
	case *types.Struct:
		for f := range u.Fields() {
			found = found || holds(pkg, f.Type(), depth-1)
		}
	}
	if depth == 4 {
		pkg.holders.Store(typ, found)
	}
	return found
}

// Contains reports whether the syntax at pos, which belongs to f, runs in the iterations of l. A
// literal that runs where it is written is part of what surrounds it. A block of the loop counts,
// whatever its condition; see GuardOf for that.
func (pkg *Package) Contains(l *Loop, f *Func, pos token.Pos) bool {
	for f != nil {
		if f == l.Func {
			return l.Blocks == nil || l.Blocks[f.Flow().BlockAt(pos)]
		}
		if h := f.Runs(); h != Once && h != Looping {
			return false
		}
		pos, f = f.Lit.Pos(), f.Parent
	}
	return false
}

// callsIn yields the calls that run in l.
func (pkg *Package) callsIn(l *Loop) func(func(*Call) bool) {
	return func(yield func(*Call) bool) {
		pkg.Any(l, func(c *Call) bool { return pkg.Contains(l, c.In, c.Expr.Pos()) && !yield(c) })
	}
}

// Any reports whether a call with the given property runs in l. That includes the call that loops over
// a literal, if the literal is the body of l, and the call of the iterator that l ranges over.
func (pkg *Package) Any(l *Loop, has func(*Call) bool) bool {
	if l.Blocks == nil && l.Func.Runs() == Looping && has(pkg.Calls[l.Func.ArgOf]) {
		return true
	}
	for f := range l.Func.Tree() {
		for _, c := range f.Calls {
			if has(c) && (pkg.Contains(l, f, c.Expr.Pos()) || c.iter != nil && c.iter == l.Stmt) {
				return true
			}
		}
	}
	return false
}

// CalledFrom reports whether a call in l leads to f, directly or through other functions of the
// package. A literal that runs as part of a function counts as that function.
func (pkg *Package) CalledFrom(l *Loop, f *Func) bool {
	if f == nil {
		return false
	}
	f = f.Owner()
	return pkg.Any(l, func(c *Call) bool { return c.Target != nil && leadsTo(pkg, c.Target, f) })
}

// LeadsTo reports whether f calls g, directly or through other functions of the package, or is g.
func (f *Func) LeadsTo(g *Func) bool { return leadsTo(f.Package, f, g) }

// leadsTo reports whether a call of from may call to, at whatever depth. The set of functions that from
// leads to is computed once.
func leadsTo(pkg *Package, from, to *Func) bool {
	if from == to {
		return true
	}
	pkg.mu.Lock()
	defer pkg.mu.Unlock()
	reached := pkg.callees[from]
	if reached == nil {
		reached = make(map[*Func]bool)
		reach(pkg, from, reached)
		pkg.callees[from] = reached
	}
	return reached[to]
}

// reach adds to reached all functions of the package that from calls, directly or through others.
func reach(pkg *Package, from *Func, reached map[*Func]bool) {
	for _, f := range from.Parts() {
		for _, c := range f.Calls {
			if c.Target != nil && !reached[c.Target] {
				reached[c.Target] = true
				reach(pkg, c.Target, reached)
			}
		}
	}
}
