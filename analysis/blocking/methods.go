package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Some methods may read or not, and only callers know. Two kinds of functions call such methods:
// generic ones, on a value of a type parameter, and functions with a parameter of an interface type. So do functions
// with a parameter that returns such a value.
//
//	func mean[T interface{ Item() float64 }](list []T) float64 { … } // waits if T is a tensor
//
// The summary of the function names the method and the operand (Method). At each call the type of the
// argument is known, and with it the method: methodWaits makes a wait of it if that method reads its
// receiver.

// addMethod notes in s that c, in g, calls a method of an operand of g's owner, or calls a function
// that does so. Whether the method reads depends on the type of what the callers pass.
//
//	func mean[T interface{ Item() float64 }](list []T) (sum float64) {
//		for _, x := range list {
//			sum += x.Item() // a method of operand 0, in a loop
//		}
//		return sum / float64(len(list))
//	}
//
// Of several calls of one method, one that is not guarded replaces one that is.
func addMethod(pkg *Package, s *Summary, g *Func, c *Call) {
	if c.Away || g.Flow().BlockAt(c.Expr.Pos()) < 0 {
		return
	}
	add := func(e ast.Expr, name string, via *Method) {
		if !isOpen(pkg.Info.TypeOf(e)) {
			return
		}
		m := Method{Name: name, Wait: Wait{
			InLoop:  pkg.RunsInLoop(g, c),
			Guarded: pkg.GuardOf(g, c.Expr.Pos(), nil) != Always,
			Chain:   []Link{{pkg.PosOf(c.Expr.Pos()), pkg.CallName(c, CallWait{Kind: WaitRead})}},
		}}
		if via != nil {
			m.InLoop, m.Guarded = m.InLoop || via.InLoop, m.Guarded || via.Guarded
			m.Chain = append(m.Chain, via.Chain...)
		}
		o := pkg.OriginOf(e, g)
		for op := tensorapi.Recv; op < 31; op++ {
			if !o.From.Has(op) || len(m.Chain) > maxChain {
				continue
			}
			m.Operand = op
			known := slices.IndexFunc(s.Methods, func(n Method) bool { return n.Operand == op && n.Name == name })
			if known < 0 {
				s.Methods = append(s.Methods, m)
			} else if s.Methods[known].Guarded && !m.Guarded {
				s.Methods[known] = m
			}
		}
	}
	if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok && c.Dynamic && c.Callee != nil {
		of := sel.X
		if made := syntax.AsCall(pkg.OnlyValue(of)); made != nil {
			if _, ok := pkg.FuncParam(g.Owner(), made.Fun); ok {
				of = made.Fun // what the operand returns: f(x).Item()
			}
		}
		add(of, c.Callee.Name(), nil)
	}
	for i := range c.Summary().Methods {
		m := &c.Summary().Methods[i]
		for _, e := range c.Operand(m.Operand) {
			add(e, m.Name, m)
		}
	}
}

// isOpen reports whether only callers know the methods of a value of type t: it is a type parameter, an
// interface with methods other than error, a list of these, or a function that returns one.
func isOpen(t types.Type) bool {
	if t == nil {
		return false
	}
	t = types.Unalias(t)
	if _, ok := t.(*types.TypeParam); ok {
		return true
	}
	if it, ok := t.Underlying().(*types.Interface); ok {
		return it.NumMethods() > 0 && !syntax.IsError(t)
	}
	if result := resultType(t); result != nil {
		return isOpen(result)
	}
	elem := syntax.ElementType(t)
	return elem != nil && isOpen(elem)
}

// resultType returns the type of the only result of a function type, or nil.
func resultType(t types.Type) types.Type {
	sig, ok := t.Underlying().(*types.Signature)
	if !ok || sig.Results().Len() != 1 {
		return nil
	}
	return sig.Results().At(0).Type()
}

// isAny reports whether t is an interface without methods.
func isAny(t types.Type) bool {
	it, ok := types.Unalias(t).Underlying().(*types.Interface)
	_, generic := types.Unalias(t).(*types.TypeParam)
	return ok && !generic && it.NumMethods() == 0
}

// isAnyOf reports whether t is an interface without methods, or a list of such.
func isAnyOf(t types.Type) bool {
	if elem := syntax.ElementType(t); elem != nil {
		t = elem
	}
	return isAny(t)
}

// methodWaits lists the waits of c in methods of its operands, which the callee calls, be it to format them. The types
// of the arguments of c say which methods these are. Only methods that read their receivers count.
func methodWaits(pkg *Package, c *Call) []CallWait {
	var list []CallWait
	for i := range c.Summary().Methods {
		m := &c.Summary().Methods[i]
		for _, e := range c.Operand(m.Operand) {
			chain, ok := readsBy(pkg, pkg.Info.TypeOf(e), m.Name)
			if !ok {
				continue
			}
			via := m.Wait
			via.Chain = append(slices.Clone(m.Chain), chain...)
			w := CallWait{Kind: WaitCallee, Operand: e, Via: &via, Open: true}
			if syntax.IsFunc(pkg.Info.TypeOf(e)) {
				// It waits for what the function returns, which is pending if the function has enqueued it.
				if !mayEnqueue(pkg, e) {
					continue
				}
				w.Operand = nil
			}
			list = append(list, w)
		}
	}
	return append(list, formatWaits(pkg, c)...)
}

// formatWaits lists the waits of c in its arguments' own methods for formatting, such as String. Only methods that read
// what they have computed count: they wait, whatever the argument is.
//
//	func (p *Pair) String() string { return fmt.Sprint(norm(p.a), norm(p.b)) }
func formatWaits(pkg *Package, c *Call) (list []CallWait) {
	p, _ := c.Printer()
	for _, e := range pkg.Printed(c) {
		t := pkg.Info.TypeOf(e)
		if IsTensor(t) {
			continue
		}
		obj, _, _ := types.LookupFieldOrMethod(t, true, pkg.Pass.Pkg, ownMethod(pkg, t, p.JSON))
		fn, ok := obj.(*types.Func)
		if !ok {
			continue
		}
		if s := funcObject(pkg, fn, 0).Summary(); s.Enqueues {
			for i := range s.Waits {
				if w := &s.Waits[i]; w.Operand == Own && !w.Guarded {
					list = append(list, CallWait{Kind: WaitCallee, Via: w})
				}
			}
		}
	}
	return list
}

// mayEnqueue reports whether the function e enqueues work, or isn't known.
func mayEnqueue(pkg *Package, e ast.Expr) bool {
	v := pkg.FuncValue(e, 0)
	if !v.IsKnown() {
		v = methodValue(pkg, e)
	}
	return !v.IsKnown() || v.Summary().Enqueues || v.Fn != nil && v.Fn.Contains((*Call).Enqueues)
}

// readsBy reports whether the method called name reads its receiver, once and in every call, for a
// receiver of type t, for an element of a list of type t, or for what a function of type t returns. If it is a user's
// method, the links lead from it to the read.
func readsBy(pkg *Package, t types.Type, name string) ([]Link, bool) {
	if t == nil || isOpen(t) {
		return nil, false
	}
	obj, _, _ := types.LookupFieldOrMethod(t, true, pkg.Pass.Pkg, name)
	fn, ok := obj.(*types.Func)
	if !ok {
		elem := syntax.ElementType(t)
		if result := resultType(t); result != nil {
			elem = result
		}
		if elem == nil {
			return nil, false
		}
		return readsBy(pkg, elem, name)
	}
	if api, ok := lookup(fn); ok {
		return nil, api.Kind == tensorapi.Read && api.Arg == tensorapi.Recv
	}
	for _, w := range funcObject(pkg, fn, 0).Summary().Waits {
		if isOfReceiver(w) && !w.InLoop && !w.Guarded {
			return w.Chain, true
		}
	}
	return nil, false
}
