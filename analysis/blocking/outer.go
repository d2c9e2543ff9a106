package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What tells a loop over epochs, in which a wait costs little, from one over
// batches, whose iterations may have loops of their own: over parameters, over
// the steps of a sequence, over parts of the batch.

// isOuter reports whether l is a slow outer loop as seen from c, like one over
// epochs: most iterations have a pass over data that c is not part of, or a call
// that trains in a loop of its own.
func (a *analyzer) isOuter(l *Loop, c *Call) bool {
	for f := range l.fn.tree() {
		inner := f.flow().loops
		if f.how() == looping {
			inner = append(slices.Clip(inner), f.wholeLoop())
		}
		for _, m := range inner {
			if m != l && a.encloses(l, m, f) && !a.in(m, c.in, c.Expr.Pos()) && a.isPass(m, l) &&
				a.guardUnder(f.flow().conditions(m.head), f, l) != rarely {
				return true
			}
		}
	}
	return a.any(l, func(d *Call) bool {
		if d.iter != nil && ast.Stmt(d.iter) == l.Stmt {
			cb := d.callback(0) // the loop of the iterator is l itself
			return cb == nil && d.sum().Trains || cb != nil && cb.Slow
		}
		return d != c && d.Expr != l.fn.arg && d.sum().Trains && a.guardOf(d.in, d.Expr.Pos(), l) != rarely
	})
}

// recurs reports whether the call is what makes the whole body of a function a
// loop: the work that it leads to is that of other iterations.
func (c *Call) recurs(l *Loop) bool {
	return l.blocks == nil && l.fn.how() != looping && c.target != nil && c.target.scc == l.fn.scc
}

// isPass reports whether the loop m goes through data, as one over batches does,
// seen from the loop around it, or from a call of its function if that is the whole
// body. One that trains does, unless its part of a step is not the last, as with
// the critic of a pair of models. Where the loop around it takes the steps, they
// are what the data is for. A loop that neither trains nor is in one that does must not
// compute a tensor from the one before, as one over the steps of a sequence does. One that
// goes on until something has happened, and waits each time, is as long.
func (a *analyzer) isPass(m, around *Loop) bool {
	if m.small || a.overParts(m) || a.isSearch(m) || !a.any(m, func(d *Call) bool { return d.enqueues() && !d.recurs(around) }) {
		return false
	}
	if a.any(m, (*Call).steps) {
		return !a.stepsItself(around) || a.overData(m, around)
	}
	if s, ok := m.Stmt.(*ast.ForStmt); ok && s.Post == nil && a.any(m, func(d *Call) bool { return d.api.Kind == tensorapi.Read || len(d.sum().Waits) > 0 }) {
		return true
	}
	return !a.any(around, func(d *Call) bool { return d.steps() && a.guardOf(d.in, d.Expr.Pos(), around) != rarely }) &&
		a.overData(m, around) && !a.recurrent(m)
}

// steps reports whether the call may take a step of training. That it computes
// gradients, or sets a rate, is none.
func (c *Call) steps() bool {
	if c.api.Kind != tensorapi.Mutate {
		return c.sum().Steps || c.anyArg(func(s *Summary) bool { return s.Steps }) || c.anyLit((*Call).steps)
	}
	switch c.Callee.Name() {
	case "Backward", "ZeroGrad", "SetRate", "Seed", "Restore", "Sync", "Changing":
		return false
	case "Set":
		return strings.HasSuffix(c.api.Name, ".Param).Set")
	}
	return true
}

// stepsItself reports whether l takes a step of training in most iterations, not
// in a loop inside it.
func (a *analyzer) stepsItself(l *Loop) bool {
	return a.any(l, func(d *Call) bool {
		if !d.steps() || d.sum().Trains || a.guardOf(d.in, d.Expr.Pos(), l) == rarely {
			return false
		}
		for m := range a.loopsAround(d.in, d.Expr.Pos()) {
			return m == l
		}
		return true
	})
}

// overParts reports whether m goes through the parts of a model, which are things
// that compute: functions, things with methods that map tensors to tensors, cells
// and things with parameters. Such a loop is one computation, or one step if all
// that it assigns are the cells that it goes through. Training a part at a time is
// neither.
func (a *analyzer) overParts(m *Loop) bool {
	if a.any(m, (*Call).mutates) {
		return !a.any(m, func(d *Call) bool { return d.mutates() && !a.assignsPart(d, m) })
	}
	s, ok := m.Stmt.(*ast.RangeStmt)
	return ok && a.computes(iterated(a.info.TypeOf(s.X)))
}

// iterated is the type of what a loop over a value of type t is about: the
// elements of a list, the last of the variables that an iterator yields.
func iterated(t types.Type) types.Type {
	if elem := elementType(t); elem != nil {
		return elem
	}
	if sig, ok := t.Underlying().(*types.Signature); ok && sig.Params().Len() == 1 {
		if yield, ok := sig.Params().At(0).Type().Underlying().(*types.Signature); ok && yield.Params().Len() > 0 {
			return yield.Params().At(yield.Params().Len() - 1).Type()
		}
	}
	return types.Typ[types.Invalid]
}

// assignsPart reports whether the call assigns a cell, or the cells of an optimiser,
// that is another one in each iteration of m.
func (a *analyzer) assignsPart(d *Call, m *Loop) bool {
	var operands []ast.Expr
	if d.api.Kind == tensorapi.Mutate {
		operands = d.operand(tensorapi.Recv)
	} else {
		operands = slices.DeleteFunc(slices.Concat(d.operand(tensorapi.Recv), d.Expr.Args), func(e ast.Expr) bool { return !a.isCell(a.info.TypeOf(e)) })
	}
	return slices.ContainsFunc(operands, func(e ast.Expr) bool { return a.varies(e, m) })
}

// isCell recognises the types that hold one tensor and can be given another.
func (a *analyzer) isCell(t types.Type) bool {
	if t == nil || isTensor(t) {
		return false
	}
	value, set := false, false
	methods := types.NewMethodSet(t)
	for i := range methods.Len() {
		if fn, ok := methods.At(i).Obj().(*types.Func); ok {
			api, _ := lookup(fn)
			value = value || api.Kind == tensorapi.Value && fn.Name() == "Value"
			set = set || api.Kind == tensorapi.Mutate && fn.Name() == "Set"
		}
	}
	return value && set
}

// overData reports whether m goes through data, and no parts of a model: things that
// hold tensors, like batches, or things that are the same for each iteration of the loop
// around it, by ranging over them, by an index or a number that it counts, by asking for
// the next one, or by receiving it.
func (a *analyzer) overData(m, around *Loop) bool {
	var body ast.Node
	counters := make(map[types.Object]bool)
	switch s := m.Stmt.(type) {
	case *ast.RangeStmt:
		body = s.Body
		switch t := a.info.TypeOf(s.X).Underlying().(type) {
		case *types.Chan:
			return true
		case *types.Slice, *types.Array, *types.Pointer, *types.Map, *types.Signature:
			if elem := iterated(t); a.isData(elem) && !a.assignsIn(m, s.X) {
				if isTensor(elem) && a.overTensors(around) {
					return false
				}
				if !a.dependsOnIteration(s.X, around) || !isTensor(elem) && a.holdsTensor(elem) {
					return true
				}
			}
		}
		for _, e := range []ast.Expr{s.Key, s.Value} {
			if id, ok := e.(*ast.Ident); ok {
				counters[a.info.ObjectOf(id)] = true
			}
		}
	case *ast.ForStmt:
		body = s
		if c := a.calls[asCall(orNil(s.Cond))]; c != nil && c.api.Kind == tensorapi.Unknown && !a.readsTensor(s.Cond, 0) {
			return true
		}
		if s.Init != nil {
			if assign, ok := s.Init.(*ast.AssignStmt); ok {
				for _, e := range assign.Lhs {
					if v := a.variable(e); v != nil {
						counters[v] = true
					}
				}
			}
		}
	default:
		return true // a function that is called in a loop, or goto
	}
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.IndexExpr:
			found = found || a.mentionsAny(n.Index, counters) && a.isData(a.info.TypeOf(n)) && !a.dependsOnIteration(n.X, around) &&
				!a.assignsIn(m, n.X) && !(isTensor(a.info.TypeOf(n)) && a.overTensors(around))
		case *ast.SliceExpr:
			found = found || (a.mentionsAny(n.Low, counters) || a.mentionsAny(n.High, counters)) && !a.dependsOnIteration(n.X, around)
		case *ast.CallExpr:
			found = found || a.fetches(a.calls[n], counters, around)
		}
		return !found
	})
	return found
}

// assignsIn reports whether m assigns elements of the list e: it is a state, like
// weights, and no data.
func (a *analyzer) assignsIn(m *Loop, e ast.Expr) bool {
	v := a.variable(e)
	return v != nil && slices.ContainsFunc(a.defs[v], func(d def) bool { return a.in(m, d.in, d.pos) })
}

// overTensors reports whether l ranges over tensors, or what holds some: these are the
// data then, and lists of tensors in its iterations are weights or the like.
func (a *analyzer) overTensors(l *Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	return ok && a.holdsTensor(iterated(a.info.TypeOf(s.X)))
}

// fetches reports whether the call takes a part of data, one that the loop's
// counters name, or the next one.
func (a *analyzer) fetches(c *Call, counters map[types.Object]bool, around *Loop) bool {
	if c == nil || c.api.Kind != tensorapi.Unknown && c.api.Kind != tensorapi.View {
		return false
	}
	if slices.ContainsFunc(c.operand(tensorapi.Recv), func(e ast.Expr) bool { return a.dependsOnIteration(e, around) }) {
		return false
	}
	named := false
	for _, e := range c.Expr.Args {
		if a.holdsTensor(a.info.TypeOf(e)) && a.dependsOnIteration(e, around) {
			return false
		}
		named = named || a.mentionsAny(e, counters)
	}
	if c.api.Kind == tensorapi.View {
		return named
	}
	holds := false
	sig, ok := a.info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if !ok {
		return false
	}
	for v := range sig.Results().Variables() {
		holds = holds || a.holdsTensor(v.Type())
	}
	return holds && (named || len(c.Expr.Args) == 0 && !c.sum().Enqueues)
}

// isData recognises the types of what a loop over data goes through: tensors, what
// holds some, and other things that are no numbers and don't compute.
func (a *analyzer) isData(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return !a.computes(t) && (!ok || basic.Info()&types.IsString != 0)
}

func (a *analyzer) mentionsAny(e ast.Expr, vars map[types.Object]bool) bool {
	found := false
	ast.Inspect(orNil(e), func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && vars[a.info.Uses[id]]
		return !found
	})
	return found
}

// dependsOnIteration reports whether e, in l, is made of something that is another
// in each iteration of l, directly or by way of variables. Calls alone make nothing
// else: shuffled data is the same data.
func (a *analyzer) dependsOnIteration(e ast.Expr, l *Loop) bool {
	seen := make(map[*types.Var]bool)
	var depends func(e ast.Expr) bool
	depends = func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			v, ok := a.info.Uses[id].(*types.Var)
			if !ok || seen[v] {
				return true
			}
			seen[v] = true
			found = a.isOperand(v, l) && l.fn.how() == looping
			for _, d := range a.defs[v] {
				if found || !a.in(l, d.in, d.pos) {
					continue
				}
				own := l.Stmt != nil && d.pos == bodyOf(l.Stmt).Lbrace
				found = own || d.value == nil || depends(d.value)
			}
			return !found
		})
		return found
	}
	return depends(e)
}

func bodyOf(loop ast.Stmt) *ast.BlockStmt {
	if s, ok := loop.(*ast.ForStmt); ok {
		return s.Body
	}
	return loop.(*ast.RangeStmt).Body
}

// recurrent reports whether m computes a tensor from the one of the iteration
// before, other than by adding to it, comparing it or joining it with something: the
// state of a network, a vector that is multiplied over and over.
func (a *analyzer) recurrent(m *Loop) bool {
	for v, defs := range a.defs {
		if !isTensor(v.Type()) || m.Stmt != nil && m.Stmt.Pos() <= v.Pos() && v.Pos() < m.Stmt.End() {
			continue
		}
		for _, d := range defs {
			if d.kind == defValue && a.in(m, d.in, d.pos) && a.carries(m, d, v) && !a.gathers(d.value, v) {
				return true
			}
		}
	}
	return false
}

// gathers reports whether e adds something to the tensor in v, or the like.
func (a *analyzer) gathers(e ast.Expr, v *types.Var) bool {
	c := a.calls[asCall(e)]
	if c == nil || c.api.Kind != tensorapi.Op {
		return false
	}
	switch c.Callee.Name() {
	case "Add", "AddScaled", "Sub", "Mul", "Maximum", "Minimum", "And", "Or", "Concat", "Stack":
	default:
		return false
	}
	at := 0
	for _, e := range slices.Concat(c.operand(tensorapi.Recv), c.Expr.Args) {
		if a.mentions(e, v) {
			at++
		}
	}
	return at == 1
}

// isSearch reports whether l looks for a number, as a line search does: a value
// that it reads ends it, and all that it carries from one iteration to the next
// is numbers that it steps. Such a loop is part of a step, and short.
func (a *analyzer) isSearch(l *Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok || a.any(l, (*Call).mutates) || !a.endsByValue(l) {
		return false
	}
	for v, defs := range a.defs {
		if s.Pos() <= v.Pos() && v.Pos() < s.End() && (s.Init == nil || v.Pos() >= s.Init.End()) {
			continue // each iteration has its own
		}
		for _, d := range defs {
			steps := isNumeric(v.Type()) && (d.kind != defValue || !a.readsTensor(d.value, 0))
			if !steps && a.in(l, d.in, d.pos) && a.carries(l, d, v) {
				return false
			}
		}
	}
	return true
}

// endsByValue reports whether a comparison with a value that was read ends l.
func (a *analyzer) endsByValue(l *Loop) bool {
	fl := l.fn.flow()
	for b := range l.blocks {
		blk := fl.blocks[b]
		if len(blk.Succs) != 2 || len(blk.Nodes) == 0 || l.blocks[blk.Succs[0].Index] && l.blocks[blk.Succs[1].Index] {
			continue
		}
		if e, ok := blk.Nodes[len(blk.Nodes)-1].(ast.Expr); ok && a.comparesValue(e) {
			return true
		}
	}
	return false
}

// comparesValue reports whether e compares two numbers and one of them was read from a tensor.
func (a *analyzer) comparesValue(e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	if b.Op == token.LAND || b.Op == token.LOR {
		return a.comparesValue(b.X) || a.comparesValue(b.Y)
	}
	return isNumeric(a.info.TypeOf(b.X)) && a.readsTensor(b, 0)
}

// carries reports whether d, an assignment to v in l, depends on what an earlier
// one in l has assigned to v.
func (a *analyzer) carries(l *Loop, d def, v *types.Var) bool {
	seen := make(map[*types.Var]bool)
	var depends func(e ast.Expr) bool
	depends = func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			u, ok := a.info.Uses[id].(*types.Var)
			if found = ok && u == v; !ok || found || seen[u] {
				return !found
			}
			seen[u] = true
			for _, d := range a.defs[u] {
				found = found || d.value != nil && a.in(l, d.in, d.pos) && depends(d.value)
			}
			return !found
		})
		return found
	}
	return d.kind != defValue || depends(d.value)
}

// computes reports whether values of a type map tensors to tensors, or hold
// parameters.
func (a *analyzer) computes(t types.Type) bool {
	if sig, ok := t.Underlying().(*types.Signature); ok {
		return mapsTensors(sig)
	}
	if isTensor(t) {
		return false
	}
	methods := types.NewMethodSet(t)
	if _, isPointer := t.(*types.Pointer); !isPointer && !types.IsInterface(t) {
		methods = types.NewMethodSet(types.NewPointer(t))
	}
	for i := range methods.Len() {
		if sig, ok := methods.At(i).Type().(*types.Signature); ok && mapsTensors(sig) {
			return true
		}
		if fn, ok := methods.At(i).Obj().(*types.Func); ok {
			if api, ok := lookup(fn); ok && api.Kind == tensorapi.Value {
				return true // a parameter
			}
		}
	}
	return false
}

func mapsTensors(sig *types.Signature) bool {
	takes, makes := false, false
	for v := range sig.Params().Variables() {
		takes = takes || isTensor(v.Type())
	}
	for v := range sig.Results().Variables() {
		makes = makes || isTensor(v.Type())
	}
	return takes && makes
}

// encloses reports whether the loop m of f is inside l.
func (a *analyzer) encloses(l, m *Loop, f *Func) bool {
	if f != l.fn {
		return a.in(l, f, token.NoPos)
	}
	if l.blocks == nil {
		return m.blocks != nil
	}
	if m.blocks == nil || len(m.blocks) >= len(l.blocks) {
		return false
	}
	for b := range m.blocks {
		if !l.blocks[b] {
			return false
		}
	}
	return true
}
