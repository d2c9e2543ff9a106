package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Methods of which only the callers of a function know whether they read: those of values whose
// type is a type parameter, as in a mean of whatever has an Item, or an interface.

// addMethod notes that c, in g, calls a method of an operand of the function that g is part of, or of
// an element of it, or a function that does.
func (a *analyzer) addMethod(s *Summary, g *Func, c *Call) {
	if c.away || g.flow().blockAt(c.Expr.Pos()) < 0 {
		return
	}
	add := func(e ast.Expr, name string, via *Method) {
		if !isOpen(a.info.TypeOf(e)) {
			return
		}
		m := Method{Name: name, Wait: Wait{
			InLoop:  a.loops(g, c),
			Guarded: a.guardOf(g, c.Expr.Pos(), nil) != always,
			Chain:   []Link{{a.posOf(c.Expr.Pos()), a.callName(c, wait{kind: ReadSite})}},
		}}
		if via != nil {
			m.InLoop, m.Guarded = m.InLoop || via.InLoop, m.Guarded || via.Guarded
			m.Chain = append(m.Chain, via.Chain...)
		}
		o := a.origin(e, g)
		for op := tensorapi.Recv; op < 31; op++ {
			known := slices.ContainsFunc(s.Methods, func(n Method) bool { return n.Operand == op && n.Name == name })
			if o.From.Has(op) && !known && len(m.Chain) <= maxChain {
				m.Operand = op
				s.Methods = append(s.Methods, m)
			}
		}
	}
	if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok && c.dynamic && c.Callee != nil {
		add(sel.X, c.Callee.Name(), nil)
	}
	for i := range c.sum().Methods {
		m := &c.sum().Methods[i]
		for _, e := range c.operand(m.Operand) {
			add(e, m.Name, m)
		}
	}
}

// isOpen reports whether t is a type parameter or an interface with methods, or a list of such.
func isOpen(t types.Type) bool {
	if t == nil {
		return false
	}
	t = types.Unalias(t)
	if _, ok := t.(*types.TypeParam); ok {
		return true
	}
	if it, ok := t.Underlying().(*types.Interface); ok {
		return it.NumMethods() > 0 && !isError(t)
	}
	elem := elementType(t)
	return elem != nil && isOpen(elem)
}

// methodWaits lists what c waits for because its callee calls methods of what it is given. Those that
// read in a loop of the callee's read the list one by one.
func (a *analyzer) methodWaits(c *Call) []wait {
	var list []wait
	for i := range c.sum().Methods {
		m := &c.sum().Methods[i]
		for _, e := range c.operand(m.Operand) {
			if chain, ok := a.readsBy(a.info.TypeOf(e), m.Name); ok {
				via := m.Wait
				via.Chain = append(slices.Clone(m.Chain), chain...)
				list = append(list, wait{kind: CalleeSite, operand: e, via: &via, open: true})
			}
		}
	}
	return list
}

// readsBy reports whether the method of a name of values of type t, or of elements of such, reads its
// receiver always, and how, if it is no method of a library.
func (a *analyzer) readsBy(t types.Type, name string) ([]Link, bool) {
	if t == nil || isOpen(t) {
		return nil, false
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, a.pass.Pkg, name)
	fn, ok := obj.(*types.Func)
	if !ok {
		elem := elementType(t)
		if elem == nil {
			return nil, false
		}
		return a.readsBy(elem, name)
	}
	if api, ok := lookup(fn); ok {
		return nil, api.Kind == tensorapi.Read && api.Arg == tensorapi.Recv
	}
	w := waitOf(a.funcObject(fn, 0).summary().Waits, tensorapi.Recv)
	if w == nil || w.InLoop || w.Guarded {
		return nil, false
	}
	return w.Chain, true
}
