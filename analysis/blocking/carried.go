package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
)

// What an iteration takes over from the one before, and what ends a loop.

// carriesTensors reports whether m computes a tensor, or something with tensors, from the one that the iteration before
// has computed, or calls a method that changes what it belongs to. To add to a tensor or a list doesn't count.
func (pkg *Package) carriesTensors(m *Loop) bool {
	for v, defs := range pkg.Defs {
		if syntax.ElementType(v.Type()) != nil || !pkg.HoldsTensors(v.Type()) || m.Stmt.Pos() <= v.Pos() && v.Pos() < m.Stmt.End() {
			continue
		}
		if slices.ContainsFunc(defs, func(d Def) bool {
			return d.Kind == DefValue && pkg.Contains(m, d.In, d.Pos) && carries(pkg, m, d, v) && !(gathers(pkg, d.Value, v) && !addsToItself(pkg, m, d, v))
		}) {
			return true
		}
	}
	return pkg.Any(m, func(d *Call) bool {
		recv := d.Operand(tensorapi.Recv)
		return d.Target != nil && !d.Away && d.Target.Sig.Recv() != nil && len(recv) == 1 && pkg.Local(recv[0]) != nil && !pkg.Varies(recv[0], m) &&
			pkg.setsField(d.Target, d.Target.Sig.Recv(), m, 0)
	})
}

// changesElsewhere reports whether m calls a method of another package that computes, and sets tensors in what it
// belongs to, as a step of a simulation does.
func (pkg *Package) changesElsewhere(m *Loop) bool {
	return pkg.Any(m, func(d *Call) bool {
		return d.Target == nil && pkg.advances(d, m) && slices.Contains(d.sets().Types, nameOfType(pkg.Info.TypeOf(d.Operand(tensorapi.Recv)[0])))
	})
}

// addsToItself reports whether what d adds to the tensor in v is computed from v, too: w = w.AddScaled(slope(w), -r).
func addsToItself(pkg *Package, m *Loop, d Def, v *types.Var) bool {
	return slices.ContainsFunc(pkg.Calls[syntax.AsCall(d.Value)].AllOperands(), func(e ast.Expr) bool {
		return !isScaled(pkg, e, v) && carries(pkg, m, Def{DefValue, d.In, d.Pos, e, 0}, v)
	})
}

// assignsField reports whether l assigns a field with tensors of the receiver recv of its function, by itself or by a
// method that it calls.
func (pkg *Package) assignsField(l *Loop, recv *types.Var) bool {
	return pkg.setsField(l.Func, recv, l, 0)
}

// setsField reports whether f assigns a field with tensors of what is in base, by itself or by methods of base that it
// calls, and l uses the field. If f is l's function, only what is in l counts. Depth bounds the methods.
func (pkg *Package) setsField(f *Func, base *types.Var, l *Loop, depth int) bool {
	for cur := range f.Cur.Preorder((*ast.AssignStmt)(nil)) {
		for _, lhs := range cur.Node().(*ast.AssignStmt).Lhs {
			sel, ok := ast.Unparen(lhs).(*ast.SelectorExpr)
			if ok && pkg.Local(sel.X) == base && pkg.HoldsTensors(pkg.Info.TypeOf(lhs)) && pkg.isUsedIn(pkg.Variable(sel), l) && (f != l.Func || pkg.Contains(l, pkg.FuncAt(cur), lhs.Pos())) {
				return true
			}
		}
	}
	return depth < 3 && slices.ContainsFunc(f.Calls, func(d *Call) bool {
		return d.Target != nil && d.Target != f && d.Target.Sig.Recv() != nil && (f != l.Func || pkg.Contains(l, f, d.Expr.Pos())) &&
			slices.ContainsFunc(d.Operand(tensorapi.Recv), func(e ast.Expr) bool { return pkg.Local(e) == base }) &&
			pkg.setsField(d.Target, d.Target.Sig.Recv(), l, depth+1)
	})
}

// isUsedIn reports whether l uses the field v, by itself or by functions that it calls, other than to set it.
func (pkg *Package) isUsedIn(v *types.Var, l *Loop) bool {
	for use := range pkg.UsesInPackage(v) {
		cur := use
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			cur = use.Parent()
		}
		if f := pkg.FuncAt(use); !syntax.IsTarget(cur) && f != nil && (pkg.Contains(l, f, use.Node().Pos()) || pkg.CalledFrom(l, f)) {
			return true
		}
	}
	return false
}

// advances reports whether d, in m, calls a method that computes a field with a tensor from itself. What
// has the field is the same in all iterations.
//
//	func (p *plate) tick() { p.u = p.u.Add(flow(p.u)) }
func (pkg *Package) advances(d *Call, m *Loop) bool {
	recv := d.Operand(tensorapi.Recv)
	if d.Away || len(recv) != 1 || pkg.Local(recv[0]) == nil || pkg.Varies(recv[0], m) {
		return false
	}
	if d.Target == nil {
		// A method of another package that computes, and is given the same each time. To call it again and again
		// is of no use unless it changes what it belongs to.
		return d.API.Kind == tensorapi.Unknown && !d.Dynamic && d.Callee != nil && d.Enqueues() && !slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Varies(e, m) })
	}
	if d.Target.Sig.Recv() == nil {
		return false
	}
	for v, defs := range pkg.Defs {
		if v.IsField() && IsTensor(v.Type()) && slices.ContainsFunc(defs, func(x Def) bool {
			return x.In == d.Target && x.Kind == DefValue && pkg.Mentions(x.Value, v)
		}) {
			return true
		}
	}
	return false
}

// dependsOnIteration reports whether e is made of something that each iteration of l has anew, directly
// or through variables. A call alone makes nothing new: data that is shuffled in each epoch is the same
// data.
//
//	for epoch := range epochs {
//		list := shuffled(data) // doesn't depend on the iteration
//		part := data[epoch]    // does
//	}
func dependsOnIteration(pkg *Package, e ast.Expr, l *Loop) bool {
	return pkg.reaches(e, func(v *types.Var) bool { return pkg.IsOperand(v, l) && l.Func.Runs() == Looping }, func(v *types.Var, d Def) (found, goOn bool) {
		if !pkg.Contains(l, d.In, d.Pos) {
			return false, false
		}
		own := l.Stmt != nil && d.Pos == bodyOf(l.Stmt).Lbrace // a variable of l's clauses
		return own || d.Value == nil, true
	})
}

// dependsOnState reports whether e is computed from a tensor that each iteration of l computes from the one before.
func (pkg *Package) dependsOnState(e ast.Expr, l *Loop) bool {
	if l.Stmt == nil {
		return false
	}
	return pkg.reaches(e, func(*types.Var) bool { return false }, func(v *types.Var, d Def) (found, goOn bool) {
		if v.IsField() || !IsTensors(v.Type()) || d.Value == nil || !pkg.Contains(l, d.In, d.Pos) {
			return false, false
		}
		return !l.Declares(v) && d.Kind == DefValue && carries(pkg, l, d, v), true
	})
}

// reaches reports whether is holds for a variable that e is computed from, or by for a definition of one. It goes on to
// what a definition assigns if by says so.
func (pkg *Package) reaches(e ast.Expr, is func(v *types.Var) bool, by func(v *types.Var, d Def) (found, goOn bool)) bool {
	seen := make(map[*types.Var]bool)
	var visit func(e ast.Expr) bool
	visit = func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			v, ok := pkg.Info.Uses[id].(*types.Var)
			if !ok || seen[v] {
				return true
			}
			seen[v] = true
			found = is(v)
			for _, d := range pkg.Defs[v] {
				if found {
					break
				}
				reached, goOn := by(v, d)
				found = reached || goOn && visit(d.Value)
			}
			return !found
		})
		return found
	}
	return visit(e)
}

// bodyOf returns the body of a for or range statement, the statements that a Loop can have.
func bodyOf(loop ast.Stmt) *ast.BlockStmt {
	if s, ok := loop.(*ast.ForStmt); ok {
		return s.Body
	}
	return loop.(*ast.RangeStmt).Body
}

// recurrent reports whether m computes a tensor from the one that the iteration before has computed,
// like the state of a network or a power iteration. To add to a tensor, compare it or join it doesn't
// count:
//
//	h = cell.Forward(x, h) // recurrent
//	sum = sum.Add(loss)    // not
//
// The iterations of a recurrent loop can't be reordered or batched, so it is one long computation.
func recurrent(pkg *Package, m *Loop) bool {
	for v, defs := range pkg.Defs {
		if !IsTensor(v.Type()) || m.Stmt != nil && m.Stmt.Pos() <= v.Pos() && v.Pos() < m.Stmt.End() {
			continue
		}
		for _, d := range defs {
			if d.Kind == DefValue && pkg.Contains(m, d.In, d.Pos) && carries(pkg, m, d, v) && !gathers(pkg, d.Value, v) {
				return true
			}
		}
	}
	return false
}

// gathers reports whether e adds the tensor in v to something, joins it or compares it: e is an
// operation such as Add or Concat, and exactly one of its operands mentions v. This operand is v, perhaps
// scaled: m.MatMul(v).Add(b) computes another v.
func gathers(pkg *Package, e ast.Expr, v *types.Var) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || c.API.Kind != tensorapi.Op {
		return false
	}
	switch c.Callee.Name() {
	case "Add", "AddScaled", "Sub", "Mul", "Maximum", "Minimum", "And", "Or", "Concat", "Stack":
	default:
		return false
	}
	at := 0
	for _, e := range slices.Concat(c.Operand(tensorapi.Recv), c.Expr.Args) {
		switch {
		case isScaled(pkg, e, v):
			at++
		case pkg.Mentions(e, v):
			return false
		}
	}
	return at == 1
}

// isScaled reports whether e is the tensor in v, a view of it, or its product or sum with a number.
func isScaled(pkg *Package, e ast.Expr, v *types.Var) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil {
		return pkg.Variable(e) == v
	}
	recv := c.Operand(tensorapi.Recv)
	if c.API.Kind == tensorapi.Op {
		switch c.Callee.Name() {
		case "MulScalar", "DivScalar", "AddScalar", "SubScalar", "As", "Detach":
		default:
			return false
		}
	} else if c.API.Kind != tensorapi.View {
		return false
	}
	return len(recv) == 1 && isScaled(pkg, recv[0], v)
}

// IsSearch reports whether l looks for a number, as a line search does. A value that it reads must end
// it, and all that it carries from one iteration to the next must be numbers which it steps. Such a
// loop is short, and part of a step:
//
//	for rate := 1.0; loss(rate).Item() > limit; rate /= 2 {}
func IsSearch(pkg *Package, l *Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok || pkg.Any(l, (*Call).Mutates) || !pkg.EndsByValue(l) {
		return false
	}
	for v, defs := range pkg.Defs {
		if s.Pos() <= v.Pos() && v.Pos() < s.End() && (s.Init == nil || v.Pos() >= s.Init.End()) {
			continue // each iteration has its own
		}
		for _, d := range defs {
			// A number may be carried on, unless it was read.
			steps := syntax.IsNumeric(v.Type()) && (d.Kind != DefValue || !readsTensor(pkg, d.Value, 0))
			if !steps && pkg.Contains(l, d.In, d.Pos) && carries(pkg, l, d, v) {
				return false
			}
		}
	}
	return true
}

// EndsByValue reports whether a condition that can leave l compares a value that was read from a
// tensor.
func (pkg *Package) EndsByValue(l *Loop) bool {
	fl := l.Func.Flow()
	for b := range l.Blocks {
		blk := fl.Blocks[b]
		if len(blk.Succs) != 2 || len(blk.Nodes) == 0 || l.Blocks[blk.Succs[0].Index] && l.Blocks[blk.Succs[1].Index] {
			continue
		}
		if e, ok := blk.Nodes[len(blk.Nodes)-1].(ast.Expr); ok && comparesValue(pkg, e) {
			return true
		}
	}
	return false
}

// comparesValue reports whether e compares a number that was read from a tensor, itself or in an
// operand of && and ||. Only comparisons of numbers count: a loop that asks for err != nil doesn't
// search for a value.
func comparesValue(pkg *Package, e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok {
		return false
	}
	if b.Op == token.LAND || b.Op == token.LOR {
		return comparesValue(pkg, b.X) || comparesValue(pkg, b.Y)
	}
	return syntax.IsNumeric(pkg.Info.TypeOf(b.X)) && readsTensor(pkg, b, 0)
}

// carries reports whether d, an assignment to v in l, may use the value that an earlier iteration has
// assigned to v: v += 1, or v = f(w) after w = v. It ignores the order of the assignments in l, so it
// also says yes where this iteration has assigned v before.
func carries(pkg *Package, l *Loop, d Def, v *types.Var) bool {
	seen := make(map[*types.Var]bool)
	var depends func(e ast.Expr) bool
	depends = func(e ast.Expr) bool {
		found := false
		ast.Inspect(e, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && v.IsField() && pkg.Calls[call] != nil {
				found = found || pkg.looksAt(pkg.Calls[call].Target, v)
			}
			id, ok := n.(*ast.Ident)
			if !ok || found {
				return !found
			}
			u, ok := pkg.Info.Uses[id].(*types.Var)
			if found = ok && u == v; !ok || found || seen[u] {
				return !found
			}
			seen[u] = true
			for _, d := range pkg.Defs[u] {
				found = found || d.Value != nil && pkg.Contains(l, d.In, d.Pos) && depends(d.Value)
			}
			return !found
		})
		return found
	}
	return d.Kind != DefValue || depends(d.Value)
}

// looksAt reports whether f is a method that uses the field v of its receiver and doesn't only set it. f may be nil.
func (pkg *Package) looksAt(f *Func, v *types.Var) bool {
	if f == nil || f.Sig.Recv() == nil {
		return false
	}
	for use := range pkg.UsesInPackage(v) {
		sel := use.Parent()
		if n, ok := sel.Node().(*ast.SelectorExpr); ok && pkg.Local(n.X) == f.Sig.Recv() && !syntax.IsTarget(sel) {
			return true
		}
	}
	return false
}

// IsRetry reports whether l is left when c returns no error: it goes on only after a failure.
//
//	for ; n > 0; n /= 2 {
//		y := f(n)
//		if err := y.Wait(); err == nil {
//			return y
//		}
//	}
func (pkg *Package) IsRetry(c *Call, l *Loop) bool {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	if !ok || l.Func != c.In || l.Blocks == nil {
		return false
	}
	err := pkg.Variable(assign.Lhs[len(assign.Lhs)-1])
	fl := c.In.Flow()
	for at := range l.Blocks {
		blk := fl.Blocks[at]
		if len(blk.Succs) != 2 || len(blk.Nodes) == 0 {
			continue
		}
		e, ok := blk.Nodes[len(blk.Nodes)-1].(*ast.BinaryExpr)
		if !ok || err == nil || !pkg.Mentions(e, err) || e.Pos() < c.Expr.Pos() {
			continue
		}
		for i, s := range blk.Succs {
			if !l.Blocks[s.Index] && pkg.IsFailure(e, i != 0) {
				return true
			}
		}
	}
	return false
}
