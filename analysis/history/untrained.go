package history

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
)

// Networks that compute in training although nothing trains them there. Each result has a history. It is for a network
// that
//
//   - is differentiated by a step of an optimiser which has other networks (untraining), as when the critic of a GAN
//     is trained on what the generator has made;
//   - is a field with the tag nn:"-", whose parameters are no parameters of the module (excluding);
//   - an optimiser trains elsewhere, and here only values are read of what it computes (evaluating).

// untrained lists the calls of such networks, without what is in found.
func untrained(pkg *blocking.Package, found []keeping) (list []keeping) {
	t := trainings{pkg.Trainings()}
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if c.Away || !isNetwork(c) || slices.ContainsFunc(found, func(k keeping) bool { return k.Pos <= c.Expr.Pos() && c.Expr.Pos() < k.End }) {
				continue
			}
			net := c.Operand(tensorapi.Recv)[0]
			v := pkg.Variable(net)
			if v == nil || pkg.IsFrozen(net) || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return pkg.HasHistory(e, f) }) {
				continue
			}
			k := keeping{Pos: c.Expr.Pos(), End: c.Expr.End(), Kept: types.ExprString(net), Part: c.Expr}
			if want := bootstraps(pkg, c, v); want != nil {
				list = append(list, keeping{Kind: aiming, Pos: want.Expr.Pos(), End: want.Expr.End(), Kept: types.ExprString(net), Part: c.Expr})
				continue
			}
			switch fate := pkg.FateAt(c.Value(), nil); {
			case isExcluded(pkg, net) && !t.IsTrained(v):
				k.Kind = excluding
			case fate&blocking.Differentiated != 0 && t.trainsOthers(c, v):
				k.Kind = untraining
				t.atUse(&k, c)
			case fate == 0 && (t.IsTrained(v) || t.isFrozenToo(v)) && isEvaluation(pkg, c):
				k.Kind = evaluating
			default:
				continue
			}
			list = append(list, k)
		}
	}
	return list
}

// bootstraps returns a sum that is the target of a loss, or nil. One part of the sum is c, a result of the network in
// v; the rest is data, such as a reward. The loss is differentiated, and compares the sum with another result of the
// same network. Gradients should change that other result, and not the target.
//
//	want := reward.Add(net.Forward(next).Max(1).MulScalar(gamma))
//	opt.Minimize(nn.MSELoss(net.Forward(x).Pick(action), want))
func bootstraps(pkg *blocking.Package, c *blocking.Call, v *types.Var) *blocking.Call {
	for _, loss := range c.In.Calls {
		if loss.Lib != tensorapi.Ours() || !strings.HasSuffix(loss.API.Name, "Loss") || len(loss.Expr.Args) < 2 || loss.API.Kind != tensorapi.Op {
			continue
		}
		want := pkg.Calls[syntax.AsCall(pkg.OnlyValue(loss.Expr.Args[1]))]
		if want == nil || !want.IsFunc("Tensor.Add") || len(want.Expr.Args) != 1 || !flowsTo(pkg, c, want.Expr, nil) {
			continue
		}
		data := slices.ContainsFunc(want.AllOperands(), func(e ast.Expr) bool {
			return !pkg.HasHistory(e, c.In) && !flowsTo(pkg, c, e, nil)
		})
		same := slices.ContainsFunc(c.In.Calls, func(d *blocking.Call) bool {
			return d != c && isNetwork(d) && pkg.Variable(d.Operand(tensorapi.Recv)[0]) == v && flowsTo(pkg, d, loss.Expr.Args[0], nil)
		})
		if data && same && pkg.FateAt(loss.Value(), nil)&blocking.Differentiated != 0 {
			return want
		}
	}
	return nil
}

// flowsTo reports whether e is computed from the result of c, by operations and by way of variables that are set once,
// and gradients go through.
func flowsTo(pkg *blocking.Package, c *blocking.Call, e ast.Expr, seen map[*types.Var]bool) bool {
	if seen == nil {
		seen = make(map[*types.Var]bool)
	}
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			d := pkg.Calls[n]
			found = found || d == c
			return !found && (d == nil || !isCut(d))
		case *ast.Ident:
			v := pkg.Local(n)
			if v != nil && !seen[v] && len(pkg.Defs[v]) == 1 && pkg.Defs[v][0].Value != nil {
				seen[v] = true
				found = found || flowsTo(pkg, c, pkg.Defs[v][0].Value, seen)
			}
		}
		return !found
	})
	return found
}

// isNetwork recognises calls of Forward of a network.
func isNetwork(c *blocking.Call) bool {
	return blocking.IsForward(c) || c.Callee != nil && c.Callee.Name() == "Forward" && c.Callee.Signature().Recv() != nil && blocking.IsTensor(c.In.Package.Info.TypeOf(c.Expr)) &&
		len(c.Operand(tensorapi.Recv)) == 1
}

// isExcluded reports whether net is a field of the receiver of a module, with the tag nn:"-".
func isExcluded(pkg *blocking.Package, net ast.Expr) bool {
	sel, ok := ast.Unparen(net).(*ast.SelectorExpr)
	if !ok || pkg.Info.Selections[sel] == nil {
		return false
	}
	t := pkg.Info.TypeOf(sel.X)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || !syntax.HasMethod(pkg.Pass.Pkg, t, []string{"Params"}) {
		return false
	}
	for i := range s.NumFields() {
		if s.Field(i).Origin() == pkg.Variable(net) {
			return reflect.StructTag(s.Tag(i)).Get("nn") == "-"
		}
	}
	return false
}

// isDetached reports whether the result of c, or what methods compute from it at once, is detached: the author has
// thought of the history.
//
//	value := critic.Forward(x).Squeeze(1).Detach()
func isDetached(pkg *blocking.Package, c *blocking.Call) bool {
	for sel := c.Value().Parent(); sel.ParentEdgeKind() == edge.CallExpr_Fun; {
		d := pkg.Calls[syntax.AsCall(sel.Parent().Node().(ast.Expr))]
		if d == nil || isCut(d) {
			return d != nil
		}
		sel = d.Value().Parent()
	}
	return false
}

// isEvaluation reports whether c runs in a loop over data, in a function that takes no step of training and gives
// nobody the network.
func isEvaluation(pkg *blocking.Package, c *blocking.Call) bool {
	if _, isStmt := c.Value().Parent().Node().(*ast.ExprStmt); isStmt || isDetached(pkg, c) || c.In.Owner().Contains((*blocking.Call).Mutates) {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if !l.Small {
			return !pkg.OverParts(l)
		}
	}
	return false
}

// trainings adds questions about one step of training.
type trainings struct{ *blocking.Trainings }

// trainsOthers reports whether the function around c takes steps of training, all by optimisers that have networks,
// and none of them has the network in v or a part of it. If it takes none, the functions count that call it.
func (t *trainings) trainsOthers(c *blocking.Call, v *types.Var) bool {
	root := t.Root(v)
	if p := t.Params[root]; p.Of != nil && (p.Of.Lit != nil || ast.IsExported(p.Of.Name)) && !t.IsTrained(v) {
		return false // callers may pass a frozen one
	}
	if steps := t.stepsWith(c); len(steps) > 0 {
		return t.trainsOthersIn(c.In.Owner(), steps, root, v, 0)
	}
	return t.trainsOthersIn(c.In.Owner(), c.In.Owner().Calls, root, v, 0)
}

// stepsWith lists the steps in the function around c that differentiate the result of c: calls of Minimize with it, and
// calls of Step after Backward. The list is empty if some step may be missing.
//
//	dLoss := critic.Forward(maker.Forward(z)).Mean()
//	optD.Minimize(dLoss) // this one
//	optG.Minimize(critic.Forward(maker.Forward(z)).Mean().Neg())
func (t *trainings) stepsWith(c *blocking.Call) (steps []*blocking.Call) {
	var loss *types.Var
	for cur := range c.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.CallExpr)(nil), (*ast.FuncLit)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.FuncLit:
			return nil
		case *ast.CallExpr:
			if d := t.Calls[n]; d != nil && d.IsFunc("Optimizer.Minimize") {
				return []*blocking.Call{d}
			}
			continue
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 {
				loss = t.Variable(n.Lhs[0])
			}
		}
		break
	}
	if loss == nil || loss.IsField() || len(t.Defs[loss]) != 1 {
		return nil
	}
	isOf := func(e ast.Expr) bool { return dependsOn(t.Package, e, loss, make(map[*types.Var]bool)) }
	var pending *blocking.Call // a call of Backward that no step has followed yet
	for _, d := range c.In.Calls {
		switch {
		case !d.Mutates() || d.Expr.Pos() < c.Expr.Pos() || d.API.Kind == tensorapi.Unknown && !slices.ContainsFunc(d.Expr.Args, isOf):
		case d.IsFunc("Optimizer.Minimize"):
			if slices.ContainsFunc(d.Expr.Args, isOf) {
				steps = append(steps, d)
			}
		case d.IsFunc("Tensor.Backward"):
			if pending != nil {
				return nil
			}
			if slices.ContainsFunc(d.Operand(tensorapi.Recv), isOf) {
				pending = d
			}
		case d.IsFunc("Optimizer.Step"):
			if pending != nil {
				steps = append(steps, d)
			}
			pending = nil
		case d.API.Kind == tensorapi.Unknown:
			return nil
		}
	}
	if pending != nil {
		return nil
	}
	return steps
}

// isFrozenToo reports whether the package makes a frozen copy of the network in v, and trains neither. That shows that
// the network evaluates.
func (t *trainings) isFrozenToo(v *types.Var) bool {
	for _, f := range t.Funcs {
		for _, c := range f.Calls {
			if c.IsFunc("Frozen") && len(c.Expr.Args) == 1 && t.Variable(c.Expr.Args[0]) == v && !t.reassigns(c, v) {
				return true
			}
		}
	}
	return false
}

// reassigns reports whether v is set to the result of c.
func (t *trainings) reassigns(c *blocking.Call, v *types.Var) bool {
	return slices.ContainsFunc(t.Defs[v], func(d blocking.Def) bool { return ast.Unparen(syntax.OrNil(d.Value)) == c.Expr })
}

// trainsOthersIn is trainsOthers for the function f and calls of it. Depth bounds the callers.
func (t *trainings) trainsOthersIn(f *blocking.Func, calls []*blocking.Call, root, v *types.Var, depth int) bool {
	steps := 0
	for _, d := range calls {
		if !d.Mutates() {
			continue
		}
		if d.API.Kind == tensorapi.Unknown {
			return false
		}
		recv := d.Operand(tensorapi.Recv)
		if len(recv) != 1 || !blocking.IsOptimiser(t.Info.TypeOf(recv[0])) {
			continue
		}
		opt := t.Variable(recv[0])
		if opt == nil {
			return false
		}
		nets := t.NetworksOf(opt)
		if len(nets) == 0 || slices.ContainsFunc(nets, func(n *types.Var) bool { return t.Overlap(n, root) || t.Overlap(n, v) }) {
			return false
		}
		steps++
	}
	if callers := t.CallersOf(f); steps == 0 && depth < 2 && len(callers) > 0 && !ast.IsExported(f.Name) {
		return !slices.ContainsFunc(callers, func(d *blocking.Call) bool {
			return d.Away || !t.trainsOthersIn(d.In.Owner(), d.In.Owner().Calls, root, v, depth+1)
		})
	}
	return steps > 0
}

// atUse moves k to the place where the result of c, a variable, is given to another network, if there is one: that is
// where to detach it.
func (t *trainings) atUse(k *keeping, c *blocking.Call) {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || assign.Tok != token.DEFINE {
		return
	}
	for use := range t.UsesOf(t.Variable(assign.Lhs[0]), c.In) {
		call, ok := use.Parent().Node().(*ast.CallExpr)
		if d := t.Calls[call]; ok && d != nil && isNetwork(d) && d != c {
			k.Pos, k.End, k.Part = call.Pos(), call.End(), use.Node().(ast.Expr)
			return
		}
	}
}
