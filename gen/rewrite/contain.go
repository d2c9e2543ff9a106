package rewrite

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
//		}                                   		if _, ok := later.BreakIf(func() bool { return sumAt.Item() > most }, end{n}); ok {
//		cache = tensor.Concat(0, cache, x)  			return
//	}                                       		}
//	                                        		cache = tensor.Concat(0, cache, x)
//	                                        	}); ok {
//	                                        		return end.n
//	                                        	}
//	                                        }
//
// What has to be proved is less then, but not nothing: what runs past the end must come to an end,
// and must not take memory or time beyond measure. So tensors may only grow by as much each time,
// the numbers that sizes are made of must not change, and of other tensors that come round Alike
// finds out whether they stay as they are.

// contain decides what becomes of the exits of a loop of which r is the harm past its end: its
// iterations are run by Iterate, or the exits wait for their values.
func (a *attempt) contain(r *plan.Reason) {
	if a.contained != nil {
		r, a.contained = a.contained, nil
	} else if r.Code == plan.PastFails && a.isClosed() {
		a.contained = r
		a.unsettle()
		return
	}
	a.giveUp(r)
}

// isClosed reports whether control leaves an iteration of the loop at its end alone, or because of a value, or goes on
// to the next: so the body can be a function.
func (a *attempt) isClosed() bool {
	if a.tests != nil {
		return false
	}
	for _, s := range a.here() {
		if a.exits(s) {
			return false
		}
		b, ok := s.Inner().(*ast.BranchStmt)
		if !ok {
			continue
		}
		switch b.Tok {
		case token.BREAK:
			if b.Label != nil || s.Loop() == a.loop && !a.breaksInside(s) {
				return false
			}
		case token.CONTINUE:
			if b.Label != nil {
				return false
			}
		case token.GOTO:
			return false
		}
	}
	return true
}

// here are the statements in the loop that do not come later.
func (a *attempt) here() (all []*plan.Stmt) {
	for _, u := range a.units {
		switch {
		case a.late[u]:
		case u.Whole:
			all = slices.AppendSeq(all, u.Stmt.All)
		default:
			all = append(all, u.Stmt)
		}
	}
	return all
}

// breaksInside reports whether s, a break without a label, is one of something in the loop.
func (a *attempt) breaksInside(s *plan.Stmt) bool {
	for p := s.Parent; p != nil && p != a.loop; p = p.Parent {
		if isBreakable(p) {
			return true
		}
	}
	return false
}

// restartsHere are the jumps to the next iteration in statements that do not come later: they end the
// function that an iteration is.
func (a *attempt) restartsHere() (jumps []*ast.BranchStmt) {
	for _, s := range a.here() {
		if restarts(s, a.loop) {
			jumps = append(jumps, s.Inner().(*ast.BranchStmt))
		}
	}
	return jumps
}

// unlimited returns what in n, which Iterate runs, may take time or memory beyond measure, or ends more than the
// iteration; or nil.
func (p *past) unlimited(n ast.Node, in *plan.Stmt) (found *plan.Cause) {
	report := func(at ast.Node, text string) {
		if found == nil {
			found = &plan.Cause{Pos: at.Pos(), Text: text}
		}
	}
	info := p.a.f.Info
	ast.Inspect(n, func(m ast.Node) bool {
		call, ok := m.(*ast.CallExpr)
		if !ok || info.Types[call.Fun].IsType() {
			_, isLit := m.(*ast.FuncLit)
			return !isLit && found == nil
		}
		fn, api, kind := p.a.f.Callee(call)
		name := types.ExprString(call.Fun)
		switch kind {
		case plan.CallsTotal:
		case plan.CallsBuiltin:
			if name == "make" && slices.ContainsFunc(call.Args[1:], func(e ast.Expr) bool { return !p.fixed(e) && !isLength(info, e) }) {
				report(call, "makes something of a size that may be wrong")
			}
		case plan.CallsLibrary:
			switch {
			case p.a.f.IsChoice(call):
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
			if p.operands(call, in) == changing || !p.goesByTensors(call) && !(p.isPlainWork(fn, make(map[*types.Func]bool)) && p.sized(call)) {
				report(call, "calls "+name+", which may fail, with another argument each time")
			}
		default:
			if lit := p.a.f.Literal(call); lit != nil && !hasLoops(lit) {
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

// selects are operations whose results have no more elements than what they are given has, whatever else they are given.
var selects = set("From Reshape Row RowI64 Slice SliceI64 Squeeze Tensor ConstInt Unsqueeze")

// sized reports whether the arguments of a call that may say how large something becomes are the same each time.
func (p *past) sized(call *ast.CallExpr) bool {
	f := p.a.f
	fn, _, _ := f.Callee(call)
	anyFloat := fn == nil || !needsNumbers[fn.Name()]
	for _, arg := range call.Args {
		if t := f.Info.TypeOf(arg); !f.Analysis.API.IsTensor(t) && !(anyFloat && isFloat(t)) && !tensorapi.IsNumber(t) && !p.fixed(arg) {
			return false
		}
	}
	return !call.Ellipsis.IsValid()
}

// isPlainWork reports whether fn does nothing but operations and arithmetic, each at most once.
func (p *past) isPlainWork(fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := p.a.f.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	defer delete(seen, fn) // it may be called again, but not by itself
	f, plain := p.a.f.Analysis.Function(body.Pkg, body.Decl), true
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
				plain = plain && p.isPlainWork(callee, seen)
			default:
				plain = false
			}
		}
		return plain
	})
	return plain && !(converts && operates)
}

// oneRow are those of them whose results have one shape.
var oneRow = set("Row RowI64 Tensor")

// isElement reports whether e is an element of something from outside that the loop does not change, or a part of one.
func (p *past) isElement(e ast.Expr) bool {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		v, ok := p.a.f.Info.ObjectOf(id).(*types.Var)
		return ok && p.fromElement(id, v)
	}
	ix, ok := elementOf(e)
	return ok && p.fixed(ix.X)
}

// limited returns what is known of the shapes of the tensors that v is given, in a loop whose iterations Iterate runs.
func (p *past) limited(v types.Object) shape {
	known := maps.Clone(p.shapes)
	p.shapes[v] = looped
	s := same
	for _, u := range p.a.units {
		if !p.writes(u, v) {
			continue
		}
		t := p.assigned(u.Stmt, v)
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
		s = max(s, t)
	}
	if s == looped && p.comesAgain(v) {
		s = steady // whatever it is
	}
	p.shapes = known // what has been found meanwhile may be about the circle
	if !slices.Contains(slices.Collect(maps.Values(known)), looped) {
		p.shapes[v] = s
	}
	return s
}

// comesAgain reports whether v keeps its value from one iteration to the next.
func (p *past) comesAgain(v types.Object) bool {
	body := p.a.loop.Bodies[0]
	return p.carried(v) || len(body) > 0 && v.Pos() < body[0].Node.Pos()
}

// extends reports whether s makes v longer by tensors that do not grow: v = tensor.Concat(0, v, x).
func (p *past) extends(s *plan.Stmt, v types.Object) bool {
	call, ok := ast.Unparen(assignedTo(p.a.f.Info, s, v.(*types.Var))).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn, _, kind := p.a.f.Callee(call)
	if kind != plan.CallsLibrary || fn.Name() != "Concat" || call.Ellipsis.IsValid() || len(call.Args) == 0 || !p.fixed(call.Args[0]) {
		return false
	}
	known := p.shapes
	p.shapes = map[types.Object]shape{v: looped}
	defer func() { p.shapes = known }()
	itself := 0
	for _, arg := range call.Args[1:] {
		if id, ok := ast.Unparen(arg).(*ast.Ident); ok && p.a.f.Info.ObjectOf(id) == v {
			itself++
		} else if p.shape(arg, s) >= looped {
			return false
		}
	}
	return itself == 1
}

// joins reports whether s puts v together with something else.
func (p *past) joins(s *plan.Stmt, v types.Object) (found bool) {
	ast.Inspect(s.Inner(), func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			fn, _, kind := p.a.f.Callee(call)
			found = found || kind == plan.CallsLibrary && (fn.Name() == "Concat" || fn.Name() == "Stack") && p.a.f.Mentions(call, map[types.Object]bool{p.root(v): true})
		}
		return !found
	})
	return found
}

// outcome returns what is known of the shape of the result of a call that Iterate runs, of operands of the shape s.
func (p *past) outcome(call *ast.CallExpr, s shape) shape {
	fn, api, kind := p.a.f.Callee(call)
	bounded := false
	switch kind {
	case plan.CallsLibrary:
		switch api.Kind {
		case tensorapi.Op, tensorapi.View, tensorapi.Host:
			bounded = selects[fn.Name()] || p.sized(call)
		}
	case plan.CallsFunction:
		bounded = p.goesByTensors(call) || p.sized(call) && p.isPlainWork(fn, make(map[*types.Func]bool))
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
