package past

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// isTotal reports whether call, of the operation fn, works on tensors of all shapes.
func isTotal(fn *types.Func, call *ast.CallExpr) bool {
	if recv := fn.Signature().Recv(); recv != nil && tensorapi.IsNumber(recv.Type()) {
		return fn.Name() != "Full" && fn.Name() != "Tensor" // which are given a shape
	}
	switch fn.Name() {
	case "Sum", "Mean", "Norm":
		return len(call.Args) == 0
	}
	return canNotFail[fn.Name()]
}

// canNotFail are operations that work on tensors of all shapes.
var canNotFail = set(`
	Abs AddF64 AddScalar Ceil Cos Detach DType Eager Erf Exp Expm1 Flatten Floor Lazy Log Log1p MulF64 MulScalar Neg Rank Reciprocal ReLU Round
	Shape Sigmoid Sign Sin Size Sqrt Square SubF64 SubScalar Tanh Value`)

// keepsShape are operations of which the result has a shape that does not
// change any more if it comes back as an operand.
var keepsShape = set(`
	Abs Add AddF64 AddScalar AddScaled AddScaledF64 And As BroadcastTo Ceil Cos Detach Div DivF64 DivScalar Eager Eq Erf Exp Expm1 Flatten Floor Ge Gt Lazy Le Linear LinearReLU Log
	Log1p Lt MatMul Maximum MaxKeep MeanKeep Minimum MinKeep Mul MulF64 MulScalar Ne Neg Not Or Pow Reciprocal ReLU Round Sigmoid
	Sign Sin Sqrt Square Sub SubF64 SubScalar SumKeep Tanh To Track Where`)

// reductions without an axis have results without axes.
var reductions = set("Sum Mean Max Min Prod All Any Norm Dot MSELoss")

// assigned returns what is known of what s assigns to v.
func (p *shapes) assigned(s *plan.Stmt, v types.Object) shape {
	info := p.f.Info
	switch n := s.Inner().(type) {
	case *ast.AssignStmt:
		for i, lhs := range n.Lhs {
			id, ok := ast.Unparen(lhs).(*ast.Ident)
			if ok && info.ObjectOf(id) == v || p.fields[v] != nil && p.isField(lhs, v) {
				switch {
				case n.Tok != token.ASSIGN && n.Tok != token.DEFINE:
				case len(n.Rhs) == len(n.Lhs):
					return p.shape(n.Rhs[i], s)
				case len(n.Rhs) == 1:
					return p.shape(n.Rhs[0], s)
				}
			}
		}
	case *ast.DeclStmt:
		for _, spec := range n.Decl.(*ast.GenDecl).Specs {
			vs, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range vs.Names {
				if info.ObjectOf(name) == v && len(vs.Values) == len(vs.Names) {
					return p.shape(vs.Values[i], s)
				}
			}
		}
	case *ast.RangeStmt:
		switch of := p.owned(n.X); {
		case of != nil && s != p.Stmt:
			return p.variable(of)
		case !p.fixed(n.X):
		case s != p.Stmt:
			return same // the same ones each time
		case p.Contained:
			return varying
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && p.f.IsChoice(call) {
			return p.chosen(call, s, v)
		}
	}
	return changing
}

// assignedTo returns what the assignment s gives to v, or nil.
func assignedTo(info *types.Info, s *plan.Stmt, v *types.Var) ast.Expr {
	n, ok := s.Inner().(*ast.AssignStmt)
	if !ok || len(n.Lhs) != len(n.Rhs) {
		return nil
	}
	for i, lhs := range n.Lhs {
		if id, ok := ast.Unparen(lhs).(*ast.Ident); ok && info.ObjectOf(id) == v {
			return n.Rhs[i]
		}
	}
	return nil
}

// chosen returns what is known of what a choice, in s, assigns to v.
func (p *shapes) chosen(call *ast.CallExpr, s *plan.Stmt, v types.Object) shape {
	found := varying
	for _, side := range plan.Sides(call) {
		ast.Inspect(side.Body, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for i, lhs := range a.Lhs {
				if id, ok := ast.Unparen(lhs).(*ast.Ident); ok && p.f.Info.ObjectOf(id) == v && len(a.Lhs) == len(a.Rhs) {
					found = max(found, p.shape(a.Rhs[i], s))
				}
			}
			return true
		})
	}
	return found
}

// result returns what is known of the shape of the result of a call.
func (p *shapes) result(call *ast.CallExpr, in *plan.Stmt) shape {
	s := p.operands(call, in)
	if s == changing {
		return s
	}
	fn, api, kind := p.f.Callee(call)
	if kind == plan.CallsUnknown && !p.Contained {
		if s == same && p.goesByTensors(call) {
			return same
		}
		return changing
	}
	if p.Contained && (kind == plan.CallsUnknown || !oneRow[fn.Name()] && !p.sized(call)) {
		return p.outcome(call, s)
	}
	switch kind {
	case plan.CallsLibrary:
		switch {
		case api.Kind == tensorapi.Value && p.setsCells():
			return p.inCells()
		case api.Kind == tensorapi.Value:
			return same
		case reductions[fn.Name()] && (len(call.Args) == 0 || fn.Name() == "Dot" || fn.Name() == "MSELoss"):
			return same
		case s == same || keepsShape[fn.Name()]:
			return s
		}
	case plan.CallsFunction:
		if !plainly(p.f, fn) && p.chooses(call) {
			return varying
		}
		if s == same || keepsShapes(p.f, fn, make(map[*types.Func]bool)) {
			return s
		}
	}
	if p.Contained {
		return p.outcome(call, s)
	}
	return changing
}

// keepsShapes reports whether fn computes with operations alone that keep shapes.
func keepsShapes(from *plan.Function, fn *types.Func, seen map[*types.Func]bool) bool {
	body, ok := from.Analysis.Program.Body(fn)
	if !ok || seen[fn] {
		return false
	}
	seen[fn] = true
	f, keeps := from.Analysis.Function(body.Pkg, body.Decl), true
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || f.Info.Types[call.Fun].IsType() {
			return keeps
		}
		callee, api, kind := f.Callee(call)
		switch kind {
		case plan.CallsLibrary:
			keeps = keeps && (keepsShape[callee.Name()] || reductions[callee.Name()] && len(call.Args) == 0 || api.Kind == tensorapi.Value || api.Kind == tensorapi.Meta)
		case plan.CallsFunction:
			keeps = keeps && keepsShapes(f, callee, seen)
		case plan.CallsBuiltin, plan.CallsTotal:
		default:
			keeps = false
		}
		return keeps
	})
	return keeps
}

// swaps reports whether n assigns to v, as its i-th operand, what is not made of v itself in a way that
// keeps its shape. v is a tensor that comes round and is used in the loop.
func (p *shapes) swaps(v *types.Var, n *ast.AssignStmt, i int) bool {
	id, ok := ast.Unparen(n.Lhs[i]).(*ast.Ident)
	if !ok || p.f.Info.ObjectOf(id) != v || !p.f.Analysis.API.IsTensor(v.Type()) || !p.carried(v) {
		return false
	}
	used := slices.ContainsFunc(p.Units, func(u *plan.Unit) bool {
		_, reads := u.All().Reads[plan.Loc{Kind: plan.Var, Obj: v}]
		return reads
	})
	if !used || len(n.Lhs) != len(n.Rhs) {
		return used
	}
	e := n.Rhs[i]
	for {
		call, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok {
			break
		}
		fn, _, kind := p.f.Callee(call)
		sel, isSel := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if kind != plan.CallsLibrary || !isSel || !canNotFail[fn.Name()] || !keepsShape[fn.Name()] || fn.Name() == "Flatten" {
			return true
		}
		e = sel.X
	}
	from, ok := ast.Unparen(e).(*ast.Ident)
	return !ok || p.f.Info.ObjectOf(from) != v
}

// inCells returns what is known of the shapes of tensors in cells. The loop sets some of these.
func (p *shapes) inCells() shape {
	if p.warm() < 2 {
		return varying
	}
	if p.held == 0 {
		p.held = steady // in a circle
		s := steady
		for _, u := range p.Ahead {
			for _, n := range p.nodes(u) {
				s = max(s, p.setIn(n, u.Stmt))
			}
		}
		p.held = s
	}
	return p.held
}

// setIn returns what is known of the shapes of the tensors that n puts into cells. n is a part of the statement in.
func (p *shapes) setIn(n ast.Node, in *plan.Stmt) shape {
	s := same
	ast.Inspect(n, func(m ast.Node) bool {
		call, ok := m.(*ast.CallExpr)
		if !ok || !callsMutator(p.f, call, []string{"Set", "Restore"}, make(map[*types.Func]bool)) {
			return true
		}
		fn, _, kind := p.f.Callee(call)
		switch {
		case kind != plan.CallsLibrary:
			s = max(s, varying)
		case fn.Name() == "Set" && len(call.Args) == 1:
			s = max(s, p.shape(call.Args[0], in))
		case fn.Name() == "Restore":
			s = max(s, varying)
		}
		return true
	})
	if s > steady {
		return varying
	}
	return s
}

// setsCells reports whether the loop gives cells tensors of its own making, which may have another shape.
func (p *shapes) setsCells() (found bool) {
	for _, u := range p.Ahead {
		for _, n := range p.nodes(u) {
			found = found || callsMutator(p.f, n, []string{"Set", "Restore"}, make(map[*types.Func]bool))
		}
	}
	return found
}
