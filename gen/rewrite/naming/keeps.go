package naming

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// keepsReads reports whether the entries of l keep no tensor that its loops make but those that are read for them.
// Then the loops may run as far ahead as the window allows, however large what they compute is:
// asyncrt.Later.KeepsReads. Loops with exits keep what they give back.
func keepsReads(f *plan.Function, l *plan.Later) bool {
	k := &keeping{seen: make(map[*plan.Lift]bool)}
	for _, r := range l.Regions {
		if r.Exits != nil || len(r.Undo) > 0 || !k.region(f, r, []ast.Node{r.Loop.Node}) {
			return false
		}
	}
	return true
}

// keeping finds out what entries keep.
type keeping struct {
	seen map[*plan.Lift]bool
}

// region reports whether the entries of r keep only what is read for them. The variables of an iteration are those
// that are declared in scopes.
func (k *keeping) region(f *plan.Function, r *plan.Region, scopes []ast.Node) bool {
	return !slices.ContainsFunc(r.Groups, func(g *plan.Group) bool { return !k.group(f, g, scopes) })
}

func (k *keeping) group(f *plan.Function, g *plan.Group, scopes []ast.Node) bool {
	if slices.ContainsFunc(g.Copies, func(c *plan.Copy) bool { return mayHold(c.Var.Type()) }) {
		return false
	}
	for _, t := range g.Takes {
		switch {
		case t.Held != nil:
			if mayHold(f.Info.TypeOf(t.Held)) {
				return false
			}
		case t.Read.Rows != nil:
			return false
		}
	}
	for read := range g.Names {
		if read.Lift != nil && !k.lift(read.Lift, scopes) {
			return false
		}
	}
	for _, s := range g.Stmts {
		elsewhere := s.Holds() // what stands for a Read, or for what is computed before the entry
		_, reads := s.Deferred()
		for _, r := range reads {
			elsewhere = append(elsewhere, r.Operand)
		}
		for _, r := range g.Here {
			elsewhere = append(elsewhere, r.Expr)
		}
		if k.uses(f, g, s.Node, elsewhere, scopes) {
			return false
		}
	}
	return true
}

// uses reports whether n, a statement of g, uses a variable of an iteration that may lead to a tensor, other than in
// the expressions elsewhere.
func (k *keeping) uses(f *plan.Function, g *plan.Group, n ast.Node, elsewhere []ast.Expr, scopes []ast.Node) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && slices.Contains(elsewhere, e) {
			return false
		}
		if id, ok := n.(*ast.Ident); ok {
			v, ok := f.Info.Uses[id].(*types.Var)
			found = found || ok && !v.IsField() && isDeclaredIn(v, scopes) && !isDeclaredIn(v, nodesOf(g)) && mayHold(v.Type())
		}
		return !found
	})
	return found
}

func isDeclaredIn(v *types.Var, scopes []ast.Node) bool {
	return slices.ContainsFunc(scopes, func(n ast.Node) bool { return n.Pos() <= v.Pos() && v.Pos() < n.End() })
}

func nodesOf(g *plan.Group) (all []ast.Node) {
	for _, s := range g.Stmts {
		all = append(all, s.Node)
	}
	return all
}

// lift reports whether what the variant of a function queues and returns keeps only what is read for it.
func (k *keeping) lift(l *plan.Lift, scopes []ast.Node) bool {
	if known, ok := k.seen[l]; ok {
		return known
	}
	k.seen[l] = false // it calls itself
	var scope ast.Node = l.Function.Decl
	if l.Closure != nil {
		scope = l.Closure.Lit
	}
	k.seen[l] = k.region(l.Function, l.Region, append(slices.Clip(scopes), scope))
	return k.seen[l]
}

// mayHold reports whether a value of type t may lead to a tensor. An error leads to none that is worth mentioning, and
// a number of the device to one element.
func mayHold(t types.Type) bool { return mayHoldPast(t, make(map[types.Type]bool)) }

func mayHoldPast(t types.Type, seen map[types.Type]bool) bool {
	if seen[t] || tensorapi.IsNumber(t) || types.Identical(t, types.Universe.Lookup("error").Type()) {
		return false
	}
	seen[t] = true
	if tensorapi.Ours().IsTensor(t) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return false
	case *types.Pointer:
		return mayHoldPast(u.Elem(), seen)
	case *types.Slice:
		return mayHoldPast(u.Elem(), seen)
	case *types.Array:
		return mayHoldPast(u.Elem(), seen)
	case *types.Map:
		return mayHoldPast(u.Key(), seen) || mayHoldPast(u.Elem(), seen)
	case *types.Struct:
		for field := range u.Fields() {
			if mayHoldPast(field.Type(), seen) {
				return true
			}
		}
		return false
	}
	return true // an interface, a function, a channel, a type parameter
}
