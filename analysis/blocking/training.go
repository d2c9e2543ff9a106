package blocking

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Which networks an optimiser trains. Its constructor says so, where the package has it:
//
//	critic := optim.Adam(g.D.Params(), 1e-4) // trains g.D
//
// Networks and optimisers are known by their variables and fields. A field that is only ever set to a variable stands
// for what that holds.

// Trainings says which networks the optimisers of a package have.
type Trainings struct {
	*Package
	nets    map[*types.Var][]*types.Var // of each variable or field with an optimiser; none if not all are known
	trained map[*types.Var]bool         // the networks of any
}

// Trainings finds the optimisers of the package and their networks.
func (pkg *Package) Trainings() *Trainings {
	t := &Trainings{pkg, make(map[*types.Var][]*types.Var), make(map[*types.Var]bool)}
	for v, defs := range t.Defs {
		if !IsOptimiser(v.Type()) {
			continue
		}
		known := true
		var nets []*types.Var
		for _, d := range defs {
			if d.Kind != DefValue || d.Value == nil || !t.networks(d.Value, &nets, 0) {
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
	return t
}

// NetworksOf returns the networks of the optimiser in v, or nil if not all of them are known.
func (t *Trainings) NetworksOf(v *types.Var) []*types.Var {
	if nets := t.nets[v]; len(nets) > 0 {
		return nets
	}
	return t.nets[t.Root(v)]
}

// Has reports whether all is known that the optimiser in v trains: networks, or single parameters.
func (t *Trainings) Has(v *types.Var) bool {
	if _, ok := t.nets[v]; ok {
		return true
	}
	_, ok := t.nets[t.Root(v)]
	return ok || t.ofParameters(v)
}

// ofParameters reports whether the optimiser in v is made of a list of parameters that the package has made by
// themselves.
//
//	p := tensor.NewParam(image)
//	opt := optim.Adam([]*tensor.Param{p}, 0.01)
func (t *Trainings) ofParameters(v *types.Var) bool {
	d := t.Defs[t.Root(v)]
	if len(d) != 1 || d[0].Value == nil {
		return false
	}
	c := t.Calls[syntax.AsCall(d[0].Value)]
	if c == nil || len(c.Expr.Args) == 0 {
		return false
	}
	lit, ok := ast.Unparen(t.OnlyValue(c.Expr.Args[0])).(*ast.CompositeLit)
	return ok && !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
		made := t.Calls[syntax.AsCall(t.OnlyValue(e))]
		return made == nil || made.Callee == nil || made.Callee.Name() != "NewParam"
	})
}

// IsTrained reports whether some optimiser of the package has the network in v.
func (t *Trainings) IsTrained(v *types.Var) bool { return t.trained[t.Root(v)] }

// IsOptimiser recognises the type of optimisers.
func IsOptimiser(t types.Type) bool {
	p, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return false
	}
	named, ok := types.Unalias(p.Elem()).(*types.Named)
	return ok && named.Obj().Name() == "Optimizer" && named.Obj().Pkg() != nil && strings.HasSuffix(named.Obj().Pkg().Path(), "/optim")
}

// networks adds the networks whose parameters e is made of, an optimiser or a list of parameters. It returns false if
// there may be others.
func (t *Trainings) networks(e ast.Expr, nets *[]*types.Var, depth int) bool {
	if depth > 4 {
		return false
	}
	all := func(list []ast.Expr) bool {
		known := len(list) > 0
		for _, e := range list {
			switch t.Info.TypeOf(e).Underlying().(type) {
			case *types.Slice, *types.Pointer:
				known = t.networks(e, nets, depth+1) && known
			case *types.Basic, *types.Struct: // a rate, options
			default:
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
			known = d.Kind == DefValue && d.Value != nil && t.networks(d.Value, nets, depth+1) && known
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
			*nets = append(*nets, t.Root(t.ParamsOf(c)))
			return true
		case c.Callee.Name() == "Params":
			if recv := c.Operand(tensorapi.Recv); len(recv) == 1 && t.Variable(recv[0]) != nil {
				*nets = append(*nets, t.Root(t.Variable(recv[0])))
				return true
			}
			return false
		case IsOptimiser(t.Info.TypeOf(e)) && c.Lib == tensorapi.Ours(), syntax.IsFullName(c.Callee.Origin(), "slices.Concat"):
			return all(e.Args)
		}
	}
	return false
}

// Root returns the variable that v has its only value from, also by the only call of a function, or v.
func (t *Trainings) Root(v *types.Var) *types.Var {
	for range 5 {
		d := t.Defs[v]
		if p := t.Params[v]; p.Of != nil && len(d) == 0 {
			callers := t.callers()[p.Of]
			if len(callers) != 1 || len(callers[0].Operand(p.Operand)) != 1 || t.Variable(callers[0].Operand(p.Operand)[0]) == nil {
				break
			}
			v = t.Variable(callers[0].Operand(p.Operand)[0])
			continue
		}
		if len(d) != 1 || d[0].Kind != DefValue || d[0].Index != 0 || d[0].Value == nil {
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

// Overlap reports whether one of two networks may be a part of the other.
func (t *Trainings) Overlap(n, v *types.Var) bool {
	return n == v || t.holdsField(n.Type(), v, 3) || t.holdsField(v.Type(), n, 3) || t.madeOf(n, v) || t.madeOf(v, n)
}

// holdsField reports whether v is a field of the struct type typ, or of what it has in fields, or such a field is only
// ever set to v.
func (t *Trainings) holdsField(typ types.Type, v *types.Var, depth int) bool {
	if p, ok := typ.Underlying().(*types.Pointer); ok {
		typ = p.Elem()
	}
	if elem := syntax.ElementType(typ); elem != nil {
		return depth > 0 && t.holdsField(elem, v, depth-1)
	}
	s, ok := typ.Underlying().(*types.Struct)
	if !ok || depth == 0 {
		return false
	}
	for f := range s.Fields() {
		if f.Origin() == v || t.Root(f.Origin()) == v || t.holdsField(f.Type(), v, depth-1) {
			return true
		}
	}
	return false
}

// madeOf reports whether something that is assigned to n mentions v, other than to clone it.
func (t *Trainings) madeOf(n, v *types.Var) bool {
	return slices.ContainsFunc(t.Defs[n], func(d Def) bool {
		if d.Value == nil {
			return false
		}
		if c := t.Calls[syntax.AsCall(d.Value)]; c != nil && c.Callee != nil && c.Callee.Name() == "Clone" {
			return false
		}
		return t.Mentions(d.Value, v)
	})
}
