package past

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// A loop of which an iteration may panic past the end, because a tensor grows or an index does, is not
// refused for that if each iteration is run by Iterate: a panic that the program does not come to
// is dropped there.
//
//	for n := range limit {                  for n := range limit {
//		x := step(cache, places.Row(n))     	if end, ok := later.Iterate(func() {
//		if x.Sum().Item() > most {          		x := step(cache, places.Row(n))
//			return n                        		sumAt := later.Read(x.Sum())
//		}                                   		isLarge := func() bool { return sumAt.Item() > most }
//		cache = tensor.Concat(0, cache, x)  		if _, ok := later.BreakIf(isLarge, end{n}); ok {
//	}                                       			return
//	                                        		}
//	                                        		cache = tensor.Concat(0, cache, x)
//	                                        	}); ok {
//	                                        		return end.n
//	                                        	}
//	                                        }
//
// What has to be proved is less then, but not nothing: what runs past the end must come to an end, and must not take
// memory or time beyond measure. So tensors may only grow by as much each time, the numbers that sizes are made of must
// not change, and of other tensors that come round Alike finds out whether they stay as they are. Calls of panic, draws
// of random numbers, and changes that can't be given back do harm all the same.

// limited returns what is known of the shapes of the tensors that v is given, in a loop whose iterations Iterate runs.
func (p *shapes) limited(v types.Object) shape {
	known := maps.Clone(p.shapeOf)
	p.shapeOf[v] = looped
	s := same
	for _, u := range p.Units {
		var t shape
		switch {
		case p.holdsTensors(v) && (p.writes(u, v) || u.All().Touches(plan.Loc{Kind: plan.Own, Obj: v})):
			t = p.put(u.Stmt, v)
		case p.writes(u, v):
			t = p.assigned(u.Stmt, v)
		default:
			continue
		}
		if p.comesAgain(v) {
			switch {
			case t < growing:
			case p.extends(u.Stmt, v):
				t = growing
			case !p.joins(u.Stmt, v) && (p.compared[v] || p.compare(v)):
				t = steady // or else the iteration waits
			default:
				t = changing
			}
			t = max(t, steady)
		}
		if t == growing && !p.comesAgain(v) && p.f.Mentions(u.Stmt.Inner(), map[types.Object]bool{v: true}) && !p.always(u.Stmt) {
			t = changing // it grows as often as an inner loop goes round
		}
		s = max(s, t)
	}
	if s == looped && p.comesAgain(v) {
		s = steady // whatever it is
	}
	p.shapeOf = known // what has been found meanwhile may be about the circle
	if !slices.Contains(slices.Collect(maps.Values(known)), looped) {
		p.shapeOf[v] = s
	}
	return s
}

// owned returns the variable that e is, if it is a slice of tensors that nothing else leads to. Its shape is the one of
// its elements.
func (p *shapes) owned(e ast.Expr) *types.Var {
	if v := p.f.Variable(e); v != nil && p.Contained && p.f.Owns(v) && p.holdsTensors(v) {
		return v
	}
	return nil
}

func (p *shapes) holdsTensors(v types.Object) bool {
	s, ok := v.Type().Underlying().(*types.Slice)
	return ok && p.f.Analysis.API.IsTensor(s.Elem())
}

// put returns what is known of the shapes of the tensors that s puts into v, a slice of the function's own.
func (p *shapes) put(s *plan.Stmt, v types.Object) shape {
	t := changing
	switch n := s.Inner().(type) {
	case *ast.AssignStmt:
		if len(n.Lhs) != len(n.Rhs) || slices.ContainsFunc(n.Rhs, p.copies) {
			return changing
		}
		t = same
		for i, lhs := range n.Lhs {
			if ix, ok := ast.Unparen(lhs).(*ast.IndexExpr); ok && p.f.Variable(ix.X) == v {
				t = max(t, p.shape(n.Rhs[i], s))
			} else if p.f.Variable(lhs) == v {
				t = max(t, p.elements(n.Rhs[i], s))
			}
		}
	case *ast.DeclStmt:
		t = same
		for _, spec := range n.Decl.(*ast.GenDecl).Specs {
			if len(spec.(*ast.ValueSpec).Values) > 0 {
				t = changing
			}
		}
	case *ast.ExprStmt:
		if p.copies(n.X) {
			t = p.elements(n.X.(*ast.CallExpr).Args[1], s)
		}
	}
	return t
}

// copies reports whether there is a call of copy in e.
func (p *shapes) copies(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			_, _, kind := p.f.Callee(call)
			found = found || kind == plan.CallsBuiltin && types.ExprString(call.Fun) == "copy"
		}
		return !found
	})
	return found
}

// elements returns what is known of the shapes of the tensors in e, a slice.
func (p *shapes) elements(e ast.Expr, in *plan.Stmt) shape {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if p.f.Info.Types[e].IsNil() {
			return same
		}
		if v := p.owned(e); v != nil {
			return p.variable(v)
		}
	case *ast.SliceExpr:
		return p.elements(e.X, in)
	case *ast.CompositeLit:
		return p.largest(e.Elts, in)
	case *ast.CallExpr:
		if _, _, kind := p.f.Callee(e); kind != plan.CallsBuiltin {
			break
		}
		switch types.ExprString(e.Fun) {
		case "make":
			return same
		case "append":
			if e.Ellipsis.IsValid() {
				return max(p.elements(e.Args[0], in), p.elements(e.Args[1], in))
			}
			return max(p.elements(e.Args[0], in), p.largest(e.Args[1:], in))
		}
	}
	return changing
}

// largest returns what is known of the shapes of all tensors in list.
func (p *shapes) largest(list []ast.Expr, in *plan.Stmt) shape {
	s := same
	for _, e := range list {
		s = max(s, p.shape(e, in))
	}
	return s
}

// extends reports whether s makes v longer by tensors that do not grow: v = tensor.Concat(0, v, x).
func (p *shapes) extends(s *plan.Stmt, v types.Object) bool {
	call, ok := ast.Unparen(assignedTo(p.f.Info, s, v.(*types.Var))).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, _, kind := p.f.Callee(call)
	if kind != plan.CallsLibrary || fn.Name() != "Concat" || call.Ellipsis.IsValid() || len(call.Args) == 0 || !p.fixed(call.Args[0]) {
		return false
	}
	known := p.shapeOf
	p.shapeOf = map[types.Object]shape{v: looped}
	defer func() { p.shapeOf = known }()
	itself := 0
	for _, arg := range call.Args[1:] {
		if id, ok := ast.Unparen(arg).(*ast.Ident); ok && p.f.Info.ObjectOf(id) == v {
			itself++
		} else if p.shape(arg, s) >= looped {
			return false
		}
	}
	return itself == 1
}

// joins reports whether s puts v together with something else.
func (p *shapes) joins(s *plan.Stmt, v types.Object) (found bool) {
	ast.Inspect(s.Inner(), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			fn, _, kind := p.f.Callee(call)
			found = found || kind == plan.CallsLibrary && (fn.Name() == "Concat" || fn.Name() == "Stack") && p.f.Mentions(call, map[types.Object]bool{p.root(v): true})
		}
		return !found
	})
	return found
}

// outcome returns what is known of the shape of the result of a call that Iterate runs, of operands of the shape s.
func (p *shapes) outcome(call *ast.CallExpr, s shape) shape {
	fn, api, kind := p.f.Callee(call)
	bounded := false
	switch kind {
	case plan.CallsLibrary:
		switch api.Kind {
		case tensorapi.Op, tensorapi.View, tensorapi.Host, tensorapi.Draw:
			bounded = selects[fn.Name()] || p.sized(call)
		}
	case plan.CallsFunction:
		bounded = p.goesByTensors(call) || p.sized(call) && isPlainWork(p.f, fn, make(map[*types.Func]bool))
	case plan.CallsUnknown:
		bounded = p.goesByTensors(call)
	}
	switch {
	case !bounded:
		return changing
	case s <= varying:
		return varying
	}
	return growing
}

// selects are operations whose results have no more elements than what they are given has, whatever else they are
// given.
var selects = set("From FromI64 Reshape Row RowI64 Slice SliceI64 Squeeze Tensor ConstInt Unsqueeze")

// oneRow are those of them whose results have one shape.
var oneRow = set("Row RowI64 Tensor")

// unlimited returns what in n, which Iterate runs, may take time or memory beyond measure, or ends more than the
// iteration; or nil.
func (p *host) unlimited(n ast.Node, in *plan.Stmt) (found *plan.Cause) {
	report := func(at ast.Node, text string) {
		if found == nil {
			found = &plan.Cause{Pos: at.Pos(), Text: text}
		}
	}
	info := p.f.Info
	ast.Inspect(n, func(m ast.Node) bool {
		call, ok := m.(*ast.CallExpr)
		if !ok || info.Types[call.Fun].IsType() {
			_, isLit := m.(*ast.FuncLit)
			return !isLit && found == nil
		}
		fn, api, kind := p.f.Callee(call)
		name := types.ExprString(call.Fun)
		switch kind {
		case plan.CallsTotal:
		case plan.CallsBuiltin:
			if name == "make" && slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool { return !p.fixed(e) && !p.isModest(e) }) {
				report(call, "makes something of a size that may be wrong")
			}
		case plan.CallsLibrary:
			switch {
			case p.f.IsChoice(call):
				for _, side := range plan.Sides(call) {
					if c := p.unlimited(side.Body, in); c != nil && found == nil {
						found = c
					}
				}
			case api.Kind == tensorapi.Pure && p.sized(call):
			case p.operands(call, in) == changing:
				report(call, "calls "+name+" with a tensor whose shape may change")
			case !selects[fn.Name()] && !p.sized(call):
				report(call, "calls "+name+" with another argument each time")
			}
		case plan.CallsFunction:
			if p.operands(call, in) == changing || !p.goesByTensors(call) && !(isPlainWork(p.f, fn, make(map[*types.Func]bool)) && p.sized(call)) {
				report(call, "calls "+name+", which may fail, with another argument each time")
			}
		default:
			if lit := p.f.Literal(call); lit != nil && !hasLoops(lit) {
				if c := p.unlimited(lit.Body, in); c != nil && found == nil {
					found = c
				}
			} else if p.operands(call, in) == changing || !p.goesByTensors(call) {
				report(call, "calls "+name+", which may fail, with another argument each time")
			}
		}
		return found == nil
	})
	return found
}

// isModest reports whether e grows by little in an iteration: it is a length, or what counts them, more or less a
// constant.
func (p *host) isModest(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := p.f.Variable(e)
		return v != nil && p.counts(v)
	case *ast.BinaryExpr:
		return (e.Op == token.ADD || e.Op == token.SUB) && p.f.Info.Types[e.Y].Value != nil && p.isModest(e.X)
	}
	return isLength(p.f.Info, e)
}

// isLength reports whether e is the length of something that there is.
func isLength(info *types.Info, e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	if !ok {
		return false
	}
	b, ok := info.Uses[id].(*types.Builtin)
	return ok && b.Name() == "len"
}

// hasLoops reports whether there is a loop in n.
func hasLoops(n ast.Node) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		switch m.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			found = true
		}
		return !found
	})
	return found
}

// isPlainWork reports whether fn does nothing but operations and arithmetic, each at most once.
func isPlainWork(from *plan.Function, fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := from.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	defer delete(seen, fn) // it may be called again, but not by itself
	f, plain := from.Analysis.Function(body.Pkg, body.Decl), true
	converts, operates := false, false // a number to one that may be a size
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit, *ast.ForStmt, *ast.RangeStmt, *ast.GoStmt, *ast.DeferStmt, *ast.SelectStmt, *ast.SendStmt, *ast.LabeledStmt:
			plain = false
		case *ast.CallExpr:
			if f.Info.Types[n.Fun].IsType() {
				converts = converts || syntax.IsInteger(f.Info.TypeOf(n)) && isFloat(f.Info.TypeOf(n.Args[0]))
				break
			}
			callee, api, kind := f.Callee(n)
			switch kind {
			case plan.CallsTotal:
			case plan.CallsBuiltin:
				name := types.ExprString(n.Fun)
				plain = plain && name != "make" && name != "panic"
			case plan.CallsLibrary:
				switch operates = true; api.Kind {
				case tensorapi.Op, tensorapi.View, tensorapi.Meta, tensorapi.Value, tensorapi.Pure:
				default:
					plain = false
				}
			case plan.CallsFunction:
				plain = plain && isPlainWork(f, callee, seen)
			default:
				plain = false
			}
		}
		return plain
	})
	return plain && !(converts && operates)
}
