package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A tracer finds where the tensors that an expression stands for come from.
//
// It is flow-insensitive: a variable stands for everything that is assigned to
// it anywhere, a container for everything that is put into it, a field for
// everything that the package assigns to that field of any struct.
//
// With a loop, only what happens in the loop counts: a tensor that was made
// before the loop is not what an iteration waits for. Without one, parameters
// stand for what the caller passes.
type tracer struct {
	*analyzer
	loop *Loop
	fn   *Func // whose operands are meant, without a loop
	seen map[*types.Var]bool

	inputs bool // what the loop receives counts as pending
}

// origin says where the tensors that e stands for come from.
func (a *analyzer) origin(e ast.Expr, in *Func) Origin {
	return a.tracer(in).expr(e, 0, in)
}

// tracer returns one for the operands of the function that f is part of.
func (a *analyzer) tracer(f *Func) *tracer {
	return &tracer{analyzer: a, fn: f.owner(), seen: make(map[*types.Var]bool)}
}

// fresh reports whether e, evaluated in a loop, may stand for a tensor that is
// pending because of what the loop enqueued.
func (a *analyzer) fresh(e ast.Expr, in *Func, l *Loop) bool {
	t := tracer{analyzer: a, loop: l, seen: make(map[*types.Var]bool)}
	return t.expr(e, 0, in).Pending
}

// arrives reports whether e, evaluated in a loop, may stand for a tensor that the
// loop has received.
func (a *analyzer) arrives(e ast.Expr, in *Func, l *Loop) bool {
	t := tracer{analyzer: a, loop: l, seen: make(map[*types.Var]bool), inputs: true}
	return t.expr(e, 0, in).Pending
}

// expr is the origin of e, or of result number i if e is a call.
func (t *tracer) expr(e ast.Expr, i int, in *Func) Origin {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := t.info.ObjectOf(e).(*types.Var); ok {
			return t.variable(v)
		}
	case *ast.SelectorExpr:
		if v, ok := t.info.ObjectOf(e.Sel).(*types.Var); ok {
			o := t.variable(v.Origin())
			returned := asCall(e.X) != nil && len(t.defs[v.Origin()]) == 0
			if v.IsField() && (v.Pkg() != t.pass.Pkg || returned || t.inputs) && t.holdsTensor(v.Type()) {
				// Others assign it: it comes from where the struct does.
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

func (t *tracer) variable(v *types.Var) Origin {
	if t.seen[v] || !t.holdsTensor(v.Type()) && !isOpen(v.Type()) {
		return Origin{}
	}
	t.seen[v] = true
	shared := v.IsField() || v.Parent() == t.pass.Pkg.Scope()
	var o Origin
	if p, ok := t.params[v]; ok {
		if t.loop == nil && p.of == t.fn {
			o.From = operands(p.operand)
		} else {
			o = t.parameter(p)
		}
	}
	for _, d := range t.defs[v] {
		switch {
		case d.kind == defKey || d.kind == defElem:
			if t.loop == nil || t.in(t.loop, d.in, d.pos) {
				o = o.union(t.element(d.value, d.index, d.in))
			}
		case d.kind != defValue:
		case t.loop == nil, t.in(t.loop, d.in, d.pos):
			o = o.union(t.expr(d.value, d.index, d.in))
		case shared && t.calledFrom(t.loop, d.in):
			// A function called in the loop assigns it.
			outside := tracer{analyzer: t.analyzer, seen: maps.Clone(t.seen)}
			o.Pending = o.Pending || outside.expr(d.value, d.index, d.in).Pending
		}
	}
	for _, d := range t.stores[v] {
		if d.kind == defValue && (t.loop == nil || t.in(t.loop, d.in, d.pos)) {
			o = o.union(t.expr(d.value, d.index, d.in))
		}
	}
	return o
}

func (t *tracer) call(e *ast.CallExpr, i int, in *Func) Origin {
	if tv := t.info.Types[e.Fun]; tv.IsType() {
		return t.expr(e.Args[0], 0, in)
	} else if tv.IsBuiltin() {
		return t.builtin(e, in)
	}
	c := t.calls[e]
	if c == nil || t.loop != nil && !t.in(t.loop, in, e.Pos()) {
		return Origin{}
	}
	switch c.api.Kind {
	case tensorapi.Unknown:
		return t.result(c, i)
	case tensorapi.View:
		return t.operand(c, c.api.Arg)
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
		return Origin{Pending: t.loop == nil || t.any(t.loop, (*Call).mutates)}
	}
	return Origin{}
}

// isReadAhead recognises the methods of a backlog that take what its functions will
// read. Outside of these, to read it waits.
func isReadAhead(c *Call) bool {
	switch c.Callee.Name() {
	case "Read", "ReadF64", "ReadI64":
		return c.lib == tensorapi.Ours() && len(c.Expr.Args) == 1 && recvName(c.Callee) != ""
	}
	return false
}

// result is the origin of what a user's function, or one of the standard
// library, returns.
func (t *tracer) result(c *Call, i int) Origin {
	results := c.sum().Results
	switch {
	case i < len(results):
		return t.translate(results[i], c)
	case c.each != nil:
		var o Origin
		for _, v := range c.each {
			if list := v.summary().Results; i < len(list) {
				o = o.union(t.translate(list[i], c))
			}
		}
		return o
	case c.makes():
		return Origin{Pending: true}
	case isCollection(c.Callee):
		var o Origin
		for _, e := range c.Expr.Args {
			o = o.union(t.expr(e, 0, c.in))
		}
		return o
	}
	return Origin{}
}

// isCollection recognises the packages whose functions return, or iterate
// over, elements of what they are given.
func isCollection(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	path := fn.Pkg().Path()
	return path == "slices" || path == "maps"
}

// translate says what an origin that speaks of the operands of c's callee
// means where c is.
func (t *tracer) translate(o Origin, c *Call) Origin {
	in := Origin{Pending: o.Pending}
	for op := tensorapi.Recv; op < 31; op++ {
		if o.From.Has(op) {
			in = in.union(t.operand(c, op))
		}
	}
	return in
}

func (t *tracer) operand(c *Call, op int) Origin {
	var o Origin
	for _, e := range c.operand(op) {
		o = o.union(t.expr(e, 0, c.in))
	}
	return o
}

// parameter is the origin of what the callee of a call hands to a literal.
func (t *tracer) parameter(p param) Origin {
	if p.of.lit == nil || p.of.arg == nil || p.of.argNo < 0 {
		return Origin{}
	}
	if h := p.of.how(); h != once && h != looping {
		return Origin{}
	}
	c := t.calls[p.of.arg]
	cb := c.callback(p.of.argNo)
	if cb == nil || p.operand >= len(cb.Args) || p.operand < 0 {
		return Origin{}
	}
	return t.translate(cb.Args[p.operand], c)
}

// element is the origin of what a loop gets from an iterator: its variable
// number i.
func (t *tracer) element(x ast.Expr, i int, in *Func) Origin {
	if isChan(t.info.TypeOf(x)) {
		return t.received(x, in)
	}
	if !isFunc(t.info.TypeOf(x)) {
		if i == 0 {
			return Origin{} // an index
		}
		return t.expr(x, 0, in)
	}
	for _, c := range in.calls {
		if c.iter == nil || c.iter.X != x {
			continue
		}
		if cb := c.callback(0); cb != nil {
			if i < len(cb.Args) {
				return t.translate(cb.Args[i], c)
			}
			return Origin{}
		}
		if maker := t.calls[asCall(x)]; maker != nil && isCollection(maker.Callee) {
			return t.result(maker, 0)
		}
	}
	return Origin{}
}

// received is the origin of what a loop receives from a channel.
func (t *tracer) received(ch ast.Expr, in *Func) Origin {
	return Origin{Pending: t.inputs && t.isInput(ch, in)}
}

// isInput reports whether tensors, or what holds some, come from the channel ch in such
// a way that to receive and read one after the other keeps the device waiting: others
// send them to the function, whoever that is, and it runs on no goroutine of its
// own, where it would be the reader beside a loop that enqueues.
func (a *analyzer) isInput(ch ast.Expr, in *Func) bool {
	t := a.info.TypeOf(ch)
	if !isChan(t) || !a.holdsTensor(t.Underlying().(*types.Chan).Elem()) {
		return false
	}
	v := a.variable(ch)
	if _, isParam := a.params[v]; v == nil || !isParam && !v.IsField() {
		return false
	}
	return !a.isSpawned(in.owner(), 0)
}

func isChan(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Chan)
	return ok
}

// isSpawned reports whether f runs on a goroutine of its own, as the package shows, or
// a function that it is called from does.
func (a *analyzer) isSpawned(f *Func, depth int) bool {
	if f.arg != nil {
		if c := a.calls[f.arg]; c != nil && (isGo(c) || startsGoroutine(c.Callee)) {
			return true
		}
	}
	if f.parent != nil && a.isSpawned(f.parent, depth) {
		return true
	}
	for _, g := range a.funcs {
		for _, c := range g.calls {
			handed := startsGoroutine(c.Callee) && slices.ContainsFunc(c.args, func(arg funcArg) bool { return arg.fn == f })
			if handed || c.target == f && (isGo(c) || depth < 3 && g != f && a.isSpawned(g.owner(), depth+1)) {
				return true
			}
		}
	}
	return false
}

func (t *tracer) builtin(e *ast.CallExpr, in *Func) Origin {
	var o Origin
	if id, ok := ast.Unparen(e.Fun).(*ast.Ident); ok && id.Name == "append" {
		for _, arg := range e.Args {
			o = o.union(t.expr(arg, 0, in))
		}
	}
	return o
}

// holdsTensor reports whether values of a type are tensors or contain some.
func (a *analyzer) holdsTensor(typ types.Type) bool { return a.holds(typ, 4) }

func (a *analyzer) holds(typ types.Type, depth int) bool {
	if isTensor(typ) {
		return true
	}
	if depth == 0 {
		return false
	}
	if known, ok := a.holders.Load(typ); ok {
		return known.(bool)
	}
	found := false
	switch u := typ.Underlying().(type) {
	case *types.Pointer:
		found = a.holds(u.Elem(), depth-1)
	case *types.Slice:
		found = a.holds(u.Elem(), depth-1)
	case *types.Array:
		found = a.holds(u.Elem(), depth-1)
	case *types.Map:
		found = a.holds(u.Elem(), depth-1)
	case *types.Struct:
		for f := range u.Fields() {
			found = found || a.holds(f.Type(), depth-1)
		}
	}
	if depth == 4 {
		a.holders.Store(typ, found)
	}
	return found
}

// in reports whether the syntax at pos, which belongs to f, runs in each
// iteration of l. Literals that are called where they are written are part of
// what surrounds them.
func (a *analyzer) in(l *Loop, f *Func, pos token.Pos) bool {
	for f != nil {
		if f == l.fn {
			return l.blocks == nil || l.blocks[f.flow().blockAt(pos)]
		}
		if h := f.how(); h != once && h != looping {
			return false
		}
		pos, f = f.lit.Pos(), f.parent
	}
	return false
}

// any reports whether a call with the given property runs in l. What calls the
// body of l, if that is a literal, or hands it the loop's variables counts.
func (a *analyzer) any(l *Loop, has func(*Call) bool) bool {
	if l.blocks == nil && l.fn.how() == looping && has(a.calls[l.fn.arg]) {
		return true
	}
	for f := range l.fn.tree() {
		for _, c := range f.calls {
			if has(c) && (a.in(l, f, c.Expr.Pos()) || c.iter != nil && c.iter == l.Stmt) {
				return true
			}
		}
	}
	return false
}

// calledFrom reports whether l calls f, at whatever depth, within the package.
func (a *analyzer) calledFrom(l *Loop, f *Func) bool {
	if f == nil {
		return false
	}
	f = f.owner()
	return a.any(l, func(c *Call) bool { return c.target != nil && a.leadsTo(c.target, f) })
}

// leadsTo reports whether a call of from may call to.
func (a *analyzer) leadsTo(from, to *Func) bool {
	if from == to {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	reached := a.callees[from]
	if reached == nil {
		reached = make(map[*Func]bool)
		a.reach(from, reached)
		a.callees[from] = reached
	}
	return reached[to]
}

func (a *analyzer) reach(from *Func, reached map[*Func]bool) {
	for _, f := range from.parts() {
		for _, c := range f.calls {
			if c.target != nil && !reached[c.target] {
				reached[c.target] = true
				a.reach(c.target, reached)
			}
		}
	}
}
