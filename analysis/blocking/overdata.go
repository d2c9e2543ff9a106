package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What loops go over: the parts of a model, or data.

// OverParts reports whether m goes through the parts of a model: functions and values that map tensors to tensors,
// cells, and what has parameters. Such a loop is one computation. If it assigns the cells that it goes through, and
// nothing else, it is one step of training:
//
//	for _, p := range params {
//		p.Set(p.Value().Sub(p.Grad().MulScalar(rate)))
//	}
func (pkg *Package) OverParts(m *Loop) bool {
	if pkg.Any(m, (*Call).Mutates) {
		return !pkg.Any(m, func(d *Call) bool { return d.Mutates() && !assignsPart(pkg, d, m) })
	}
	s, ok := m.Stmt.(*ast.RangeStmt)
	return ok && computes(pkg, Iterated(pkg.Info.TypeOf(s.X)))
}

// Iterated returns the type of what a loop over a value of type t is about: the elements of a list, the
// last variable that an iterator yields, or the one before an error. For other types it returns the
// invalid type.
func Iterated(t types.Type) types.Type {
	if elem := syntax.ElementType(t); elem != nil {
		return elem
	}
	if sig, ok := t.Underlying().(*types.Signature); ok && sig.Params().Len() == 1 {
		if yield, ok := sig.Params().At(0).Type().Underlying().(*types.Signature); ok && yield.Params().Len() > 0 {
			last := yield.Params().Len() - 1
			if last > 0 && types.Identical(yield.Params().At(last).Type(), types.Universe.Lookup("error").Type()) {
				last--
			}
			return yield.Params().At(last).Type()
		}
	}
	return types.Typ[types.Invalid]
}

// assignsPart reports whether the call assigns a cell, or the cells of an optimiser, and each iteration
// of m has another one: p.Set(…) in a loop over p does, net.bias.Set(…) doesn't.
func assignsPart(pkg *Package, d *Call, m *Loop) bool {
	// The cells: the receiver of Set, or whatever a user's function is given that can be set.
	var operands []ast.Expr
	if d.API.Kind == tensorapi.Mutate {
		operands = d.Operand(tensorapi.Recv)
	} else {
		operands = slices.DeleteFunc(slices.Concat(d.Operand(tensorapi.Recv), d.Expr.Args), func(e ast.Expr) bool { return !pkg.IsCell(pkg.Info.TypeOf(e)) })
	}
	return slices.ContainsFunc(operands, func(e ast.Expr) bool {
		made := pkg.Calls[syntax.AsCall(e)]
		if made == nil || made.API.Kind == tensorapi.Unknown {
			return pkg.Varies(e, m)
		}
		// An optimiser that is made for one step: its cells count, and not its rate.
		return slices.ContainsFunc(slices.Concat(made.Operand(tensorapi.Recv), made.Expr.Args), func(e ast.Expr) bool {
			return !syntax.IsNumeric(pkg.Info.TypeOf(e)) && pkg.Varies(e, m)
		})
	})
}

// IsCell recognises types that hold one tensor and can be given another, such as *tensor.Param: those
// with the methods Value and Set of a library. A type of a user that embeds such a cell counts as well.
func (pkg *Package) IsCell(t types.Type) bool {
	if t == nil || IsTensor(t) {
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

// OverData reports whether m goes through data. Around is the loop around m. There are three ways: a
// range over batches, over a channel, or over something that is the same in each iteration of around; a
// counter that is used as an index, as a bound of a slice, or as an argument that fetches a part; a
// condition or body that asks for the next part:
//
//	for _, b := range batches {}
//	for i := 0; i < n; i += size { x := data[i : i+size] }
//	for loader.Next() {}
//
// Lists that m assigns are a state, and lists of tensors in a loop over tensors are weights. Neither
// are data. Nor are metrics and the like, see isTold.
func (pkg *Package) OverData(m, around *Loop) bool {
	// The clauses come first. They say what the loop ranges over, or have a condition that fetches the next item.
	var body ast.Node
	counters := make(map[types.Object]bool)
	switch s := m.Stmt.(type) {
	case *ast.RangeStmt:
		body = s.Body
		switch t := pkg.Info.TypeOf(s.X).Underlying().(type) {
		case *types.Chan:
			return true
		case *types.Slice, *types.Array, *types.Pointer, *types.Map, *types.Signature:
			if elem := Iterated(t); pkg.IsData(elem) && !assignsIn(pkg, m, s.X) && !isTold(pkg, s, around) {
				if IsTensor(elem) && (overTensors(pkg, around) || isOfParts(pkg, s.X, 0)) {
					return false // the loop around it goes over the data, and this list is weights
				}
				if !dependsOnIteration(pkg, s.X, around) || !IsTensor(elem) && pkg.HoldsTensors(elem) {
					return true
				}
			}
		}
		for _, e := range []ast.Expr{s.Key, s.Value} {
			if id, ok := e.(*ast.Ident); ok {
				counters[pkg.Info.ObjectOf(id)] = true
			}
		}
	case *ast.ForStmt:
		body = s
		if c := pkg.Calls[syntax.AsCall(syntax.OrNil(s.Cond))]; c != nil && c.API.Kind == tensorapi.Unknown && !readsTensor(pkg, s.Cond, 0) {
			return true
		}
		if s.Init != nil {
			if assign, ok := s.Init.(*ast.AssignStmt); ok {
				for _, e := range assign.Lhs {
					if v := pkg.Variable(e); v != nil {
						counters[v] = true
					}
				}
			}
		}
	default:
		return true // a function that is called in a loop, or goto
	}
	// Then what the body does with the counters: it takes another part of something in each iteration.
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			found = found || n.Op == token.ARROW
		case *ast.IndexExpr:
			found = found || pkg.MentionsAny(n.Index, counters) && pkg.IsData(pkg.Info.TypeOf(n)) && !dependsOnIteration(pkg, n.X, around) &&
				!assignsIn(pkg, m, n.X) && !(IsTensor(pkg.Info.TypeOf(n)) && (overTensors(pkg, around) || isOfParts(pkg, n.X, 0)))
		case *ast.SliceExpr:
			found = found || (pkg.MentionsAny(n.Low, counters) || pkg.MentionsAny(n.High, counters)) && !dependsOnIteration(pkg, n.X, around)
		case *ast.CallExpr:
			found = found || fetches(pkg, pkg.Calls[n], counters, around)
		}
		return !found
	})
	return found
}

// isOfParts reports whether the list e has a tensor for each parameter of a model. Such are the gradients that
// tensor.Grad returns, values or gradients of parameters one after the other, what is computed from each of them, and
// lists of the same length. Depth bounds how many lists and callers it looks through.
func isOfParts(pkg *Package, e ast.Expr, depth int) bool {
	v := pkg.Variable(e)
	if v == nil || depth > 3 || !IsTensors(v.Type()) {
		return false
	}
	if p, ok := pkg.Params[v]; ok {
		return slices.ContainsFunc(pkg.callers()[p.Of], func(c *Call) bool {
			return slices.ContainsFunc(c.Operand(p.Operand), func(e ast.Expr) bool { return isOfParts(pkg, e, depth+1) })
		})
	}
	return slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		call := syntax.AsCall(syntax.OrNil(d.Value))
		if call == nil || d.Kind != DefValue {
			return false
		}
		if syntax.IsBuiltin(pkg.Info, call, "make") && len(call.Args) == 2 {
			n := syntax.AsCall(call.Args[1])
			return n != nil && syntax.IsBuiltin(pkg.Info, n, "len") && isOfParts(pkg, n.Args[0], depth+1)
		}
		if syntax.IsBuiltin(pkg.Info, call, "append") {
			return slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool {
				return ofPart(pkg, e)
			})
		}
		c := pkg.Calls[call]
		return c != nil && isGrad(c)
	})
}

// ofPart reports whether e is computed from the value or the gradient of one parameter of a model by methods.
//
//	p.Value().Detach().Sub(old)
func ofPart(pkg *Package, e ast.Expr) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || IsParamValue(c) || strings.HasSuffix(c.API.Name, ".Param).Grad") {
		return c != nil
	}
	recv := c.Operand(tensorapi.Recv)
	return (c.API.Kind == tensorapi.Op || c.API.Kind == tensorapi.View) && len(recv) == 1 && ofPart(pkg, recv[0])
}

// assignsIn reports whether m assigns to the list e or to its elements. Then e is a state, like
// weights, and no data.
func assignsIn(pkg *Package, m *Loop, e ast.Expr) bool {
	v := pkg.Variable(e)
	return v != nil && slices.ContainsFunc(pkg.Defs[v], func(d Def) bool { return pkg.Contains(m, d.In, d.Pos) })
}

// overTensors reports whether l ranges over tensors, or over structs or lists with tensors. Then these
// are the data, and a list of tensors that an iteration goes through is weights or the like.
func overTensors(pkg *Package, l *Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	return ok && pkg.HoldsTensors(Iterated(pkg.Info.TypeOf(s.X)))
}

// fetches reports whether the call takes a part of data: data.Batch(i), where counters has i, or
// loader.Next(). Neither the receiver nor an argument with tensors may depend on the iteration of
// around: a call with these computes something.
func fetches(pkg *Package, c *Call, counters map[types.Object]bool, around *Loop) bool {
	if c == nil || c.API.Kind != tensorapi.Unknown && c.API.Kind != tensorapi.View {
		return false
	}
	if slices.ContainsFunc(c.Operand(tensorapi.Recv), func(e ast.Expr) bool { return dependsOnIteration(pkg, e, around) }) {
		return false
	}
	if c.API.Kind == tensorapi.View && slices.ContainsFunc(c.Operand(tensorapi.Recv), func(e ast.Expr) bool { return pkg.dependsOnState(e, around) }) {
		return false
	}
	named := false
	for _, e := range c.Expr.Args {
		if pkg.HoldsTensors(pkg.Info.TypeOf(e)) && dependsOnIteration(pkg, e, around) {
			return false
		}
		named = named || pkg.MentionsAny(e, counters)
	}
	if c.API.Kind == tensorapi.View {
		return named
	}
	holds := false
	sig, ok := pkg.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if !ok {
		return false
	}
	for v := range sig.Results().Variables() {
		holds = holds || pkg.HoldsTensors(v.Type())
	}
	return holds && (named || len(c.Expr.Args) == 0 && !c.Summary().Enqueues)
}

// IsData reports whether a loop over data may go through values of type t: tensors, structs with
// tensors, strings and others. Numbers are counters, and types that compute are layers.
func (pkg *Package) IsData(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return !computes(pkg, t) && (!ok || basic.Info()&types.IsString != 0)
}

// MentionsAny reports whether one of the variables occurs in e, which may be nil.
func (pkg *Package) MentionsAny(e ast.Node, vars map[types.Object]bool) bool {
	if e == nil {
		return false
	}
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && vars[pkg.Info.Uses[id]]
		return !found
	})
	return found
}

// computes reports whether values of type t are layers or parameters: functions from tensors to
// tensors, types with such a method, or types with the method Value of a parameter.
func computes(pkg *Package, t types.Type) bool {
	if sig, ok := t.Underlying().(*types.Signature); ok {
		return mapsTensors(sig)
	}
	if IsTensor(t) {
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

// mapsTensors reports whether a function takes a tensor and returns one.
func mapsTensors(sig *types.Signature) bool {
	takes, makes := false, false
	for v := range sig.Params().Variables() {
		takes = takes || IsTensor(v.Type())
	}
	for v := range sig.Results().Variables() {
		makes = makes || IsTensor(v.Type())
	}
	return takes && makes
}

// isTold reports whether a range only calls methods of the elements, and gives them tensors of the present iteration of
// around: the elements are told of it, and are no data themselves.
//
//	for _, m := range metrics {
//		m.Update(scores, b.Y)
//	}
func isTold(pkg *Package, s *ast.RangeStmt, around *Loop) bool {
	id, ok := s.Value.(*ast.Ident)
	if !ok {
		return false
	}
	elem := pkg.Info.ObjectOf(id)
	receivers := make(map[*ast.Ident]bool)
	told, others := false, false
	ast.Inspect(s.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			sel, ok := ast.Unparen(n.Fun).(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := ast.Unparen(sel.X).(*ast.Ident); ok && pkg.Info.Uses[x] == elem && pkg.Info.Selections[sel] != nil && pkg.Info.Selections[sel].Kind() == types.MethodVal {
				receivers[x] = true
				told = told || slices.ContainsFunc(n.Args, func(e ast.Expr) bool {
					return pkg.HoldsTensors(pkg.Info.TypeOf(e)) && dependsOnIteration(pkg, e, around)
				})
			}
		case *ast.Ident:
			others = others || pkg.Info.Uses[n] == elem && !receivers[n]
		}
		return true
	})
	return told && !others
}
