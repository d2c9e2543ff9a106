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
	t := trainings{pkg, make(map[*types.Var][]*types.Var), make(map[*types.Var]bool)}
	t.collect()
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
			switch fate := pkg.FateAt(c.Value(), nil); {
			case isExcluded(pkg, net) && !t.trained[t.root(v)]:
				k.Kind = excluding
			case fate == blocking.Differentiated && t.trainsOthers(c, v):
				k.Kind = untraining
				t.atUse(&k, c)
			case fate == 0 && t.trained[t.root(v)] && isEvaluation(pkg, c):
				k.Kind = evaluating
			default:
				continue
			}
			list = append(list, k)
		}
	}
	return list
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

// isEvaluation reports whether c runs in a loop over data, in a function that takes no step of training and gives
// nobody the network.
func isEvaluation(pkg *blocking.Package, c *blocking.Call) bool {
	if _, isStmt := c.Value().Parent().Node().(*ast.ExprStmt); isStmt || c.In.Owner().Contains((*blocking.Call).Mutates) {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if !l.Small {
			return !pkg.OverParts(l)
		}
	}
	return false
}

// trainings says which networks the optimisers of a package have.
type trainings struct {
	*blocking.Package
	nets    map[*types.Var][]*types.Var // of each variable or field with an optimiser; none if not all are known
	trained map[*types.Var]bool         // the networks of any
}

// collect finds the optimisers.
func (t *trainings) collect() {
	for v, defs := range t.Defs {
		if !isOptimiser(v.Type()) {
			continue
		}
		known := true
		var nets []*types.Var
		for _, d := range defs {
			if d.Kind != blocking.DefValue || d.Value == nil || !t.networks(d.Value, &nets, 0) {
				known = false
			}
		}
		for _, n := range nets {
			t.trained[n] = true
		}
		if known {
			t.nets[v] = nets
		}
	}
}

// isOptimiser recognises the type of optimisers.
func isOptimiser(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(p.Elem()).(*types.Named)
	return ok && named.Obj().Name() == "Optimizer" && named.Obj().Pkg() != nil && strings.HasSuffix(named.Obj().Pkg().Path(), "/optim")
}

// networks adds the networks whose parameters e is made of, an optimiser or a list of parameters. It returns false if
// there may be others.
func (t *trainings) networks(e ast.Expr, nets *[]*types.Var, depth int) bool {
	if depth > 4 {
		return false
	}
	all := func(list []ast.Expr) bool {
		known := len(list) > 0
		for _, e := range list {
			switch u := t.Info.TypeOf(e).Underlying().(type) {
			case *types.Slice, *types.Pointer:
				known = t.networks(e, nets, depth+1) && known
			case *types.Basic, *types.Struct: // a rate, options
			default:
				_ = u
				known = false
			}
		}
		return known
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		v := t.Variable(e)
		if v == nil || t.Params[v].Of != nil || len(t.Defs[v]) == 0 {
			return false
		}
		known := true
		for _, d := range t.Defs[v] {
			known = d.Kind == blocking.DefValue && d.Value != nil && t.networks(d.Value, nets, depth+1) && known
		}
		return known
	case *ast.CallExpr:
		if syntax.IsBuiltin(t.Info, e, "append") {
			return all(e.Args)
		}
		c := t.Calls[e]
		switch {
		case c == nil || c.Callee == nil:
			return false
		case t.ParamsOf(c) != nil:
			*nets = append(*nets, t.root(t.ParamsOf(c)))
			return true
		case c.Callee.Name() == "Params":
			if recv := c.Operand(tensorapi.Recv); len(recv) == 1 && t.Variable(recv[0]) != nil {
				*nets = append(*nets, t.root(t.Variable(recv[0])))
				return true
			}
			return false
		case isOptimiser(t.Info.TypeOf(e)) && c.Lib == tensorapi.Ours(), syntax.IsFullName(c.Callee.Origin(), "slices.Concat"):
			return all(e.Args)
		}
	}
	return false
}

// root returns the variable that v has its only value from, or v.
func (t *trainings) root(v *types.Var) *types.Var {
	for range 5 {
		d := t.Defs[v]
		if len(d) != 1 || d[0].Kind != blocking.DefValue || d[0].Index != 0 || d[0].Value == nil {
			break
		}
		w := t.Variable(d[0].Value)
		if w == nil {
			break
		}
		v = w
	}
	return v
}

// trainsOthers reports whether the function around c takes steps of training, all by optimisers that have networks,
// and none of them has the network in v or a part of it.
func (t *trainings) trainsOthers(c *blocking.Call, v *types.Var) bool {
	root := t.root(v)
	if p := t.Params[root]; p.Of != nil && (p.Of.Lit != nil || ast.IsExported(p.Of.Name)) {
		return false // callers may pass a frozen one
	}
	steps := 0
	for _, d := range c.In.Owner().Calls {
		if !d.Mutates() {
			continue
		}
		if d.API.Kind == tensorapi.Unknown {
			return false
		}
		recv := d.Operand(tensorapi.Recv)
		if len(recv) != 1 || !isOptimiser(t.Info.TypeOf(recv[0])) {
			continue
		}
		opt := t.Variable(recv[0])
		nets := t.nets[opt]
		if opt != nil && len(nets) == 0 {
			nets = t.nets[t.root(opt)]
		}
		if len(nets) == 0 || slices.ContainsFunc(nets, func(n *types.Var) bool { return t.overlap(n, root) || t.overlap(n, v) }) {
			return false
		}
		steps++
	}
	return steps > 0
}

// overlap reports whether one of two networks may be a part of the other.
func (t *trainings) overlap(n, v *types.Var) bool {
	return n == v || holdsField(n.Type(), v, 3) || holdsField(v.Type(), n, 3) || t.madeOf(n, v) || t.madeOf(v, n)
}

// holdsField reports whether v is a field of the struct type typ, or of what it has in fields.
func holdsField(typ types.Type, v *types.Var, depth int) bool {
	if p, ok := typ.Underlying().(*types.Pointer); ok {
		typ = p.Elem()
	}
	if elem := syntax.ElementType(typ); elem != nil {
		return depth > 0 && holdsField(elem, v, depth-1)
	}
	s, ok := typ.Underlying().(*types.Struct)
	if !ok || depth == 0 {
		return false
	}
	for f := range s.Fields() {
		if f.Origin() == v || holdsField(f.Type(), v, depth-1) {
			return true
		}
	}
	return false
}

// madeOf reports whether something that is assigned to n mentions v, other than to clone it.
func (t *trainings) madeOf(n, v *types.Var) bool {
	return slices.ContainsFunc(t.Defs[n], func(d blocking.Def) bool {
		if d.Value == nil {
			return false
		}
		if c := t.Calls[syntax.AsCall(d.Value)]; c != nil && c.Callee != nil && c.Callee.Name() == "Clone" {
			return false
		}
		return t.Mentions(d.Value, v)
	})
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
