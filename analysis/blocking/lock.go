package blocking

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A LockedWait is a call that waits for the device while a mutex is held.
type LockedWait struct {
	Call *Call
	// Name is how messages call the call: "loss.Item()".
	Name string
	// Chain is how a function of a user comes to wait, empty for others.
	Chain []Link
	// Lock is the call that locked the mutex, and Mutex its operand.
	Lock  *ast.CallExpr
	Mutex ast.Expr
}

// LockedWaits lists the waits of f while a mutex is held that f, or a function
// that it is written and called in, has locked for certain.
func (f *Func) LockedWaits() []LockedWait {
	if !f.locks() {
		return nil
	}
	var list []LockedWait
	f.underLocks(func(c *Call, held lockSet) {
		lock := held.latest()
		if lock == nil || f.a.guardOf(f, c.Expr.Pos(), f.wholeLoop()) == rarely {
			return
		}
		if w := f.a.pendingWait(c); w != nil {
			w.Lock, w.Mutex = lock, mutexOf(lock)
			list = append(list, *w)
		}
	})
	return list
}

// A mutexKey names a mutex as far as its expression does: s.mu of that s.
type mutexKey struct {
	root *types.Var
	path string
}

// A lockSet holds the calls that locked the mutexes that are held.
type lockSet map[mutexKey]*ast.CallExpr

// latest is the lock that was written last, nil if none is held.
func (s lockSet) latest() *ast.CallExpr {
	var last *ast.CallExpr
	for _, lock := range s {
		if last == nil || last.Pos() < lock.Pos() {
			last = lock
		}
	}
	return last
}

// meet is what is held whichever way control came. A nil set is that of a way
// that is not known yet.
func (s lockSet) meet(t lockSet) lockSet {
	if s == nil {
		return maps.Clone(t)
	}
	maps.DeleteFunc(s, func(k mutexKey, _ *ast.CallExpr) bool { return t[k] == nil })
	return s
}

// locks reports whether a mutex may be held in f: one that it locks, or a
// function that it is part of.
func (f *Func) locks() bool {
	for g := range f.In() {
		if slices.ContainsFunc(g.calls, func(c *Call) bool { return isLock(c) || c.locker() != nil }) {
			return true
		}
		if c := g.PassedTo(); c != nil && c.target != nil && slices.ContainsFunc(c.target.calls, isLock) {
			return true
		}
		if h := g.how(); h != once && h != looping {
			return false
		}
	}
	return false
}

// underLocks calls visit for the calls in f, with the mutexes held then: the
// solution of a forward data-flow problem over the control-flow graph.
func (f *Func) underLocks(visit func(c *Call, held lockSet)) {
	fl := f.flow()
	calls := make([][]*Call, len(fl.blocks)) // by block, in the order in which they return
	for _, c := range f.calls {
		if b := fl.blockAt(c.Expr.Pos()); b >= 0 {
			calls[b] = append(calls[b], c)
		}
	}
	for _, list := range calls {
		slices.SortFunc(list, func(c, d *Call) int { return cmp.Compare(c.Expr.End(), d.Expr.End()) })
	}
	exit := make([]lockSet, len(fl.blocks))
	entry := func(b int32) lockSet {
		if fl.order[b] == 0 {
			return f.heldAtEntry()
		}
		var held lockSet
		for _, p := range fl.preds[b] {
			if exit[p] != nil {
				held = held.meet(exit[p])
			}
		}
		return held
	}
	for changed := true; changed; {
		changed = false
		for b := range fl.blocks {
			if fl.order[b] < 0 {
				continue
			}
			held := entry(int32(b))
			if held == nil {
				continue // none of the ways here is known yet
			}
			for _, c := range calls[b] {
				held.after(c)
			}
			if exit[b] == nil || len(held) != len(exit[b]) {
				exit[b], changed = held, true
			}
		}
	}
	for b, list := range calls {
		if len(list) == 0 {
			continue
		}
		held := entry(int32(b))
		for _, c := range list {
			visit(c, held)
			held.after(c)
		}
	}
}

// heldAtEntry is what is held when f begins: nothing, or, if f is a literal that runs
// where it is written, what is held there, and what the function that it is passed
// to holds whenever it calls it.
func (f *Func) heldAtEntry() lockSet {
	held := make(lockSet)
	if h := f.how(); h != once && h != looping {
		return held
	}
	f.parent.underLocks(func(c *Call, at lockSet) {
		if c.Expr == f.arg {
			maps.Copy(held, at)
		}
	})
	if c := f.PassedTo(); c != nil && c.target != nil {
		maps.Copy(held, c.target.heldForCallback(f.argNo))
	}
	return held
}

// heldForCallback is what f itself has locked wherever it calls its operand.
func (f *Func) heldForCallback(operand int) lockSet {
	var held lockSet
	f.underLocks(func(c *Call, at lockSet) {
		if op, ok := f.a.funcParam(f, c.Expr.Fun); ok && op == operand {
			held = held.meet(at)
		}
	})
	return held
}

// locker returns the call by which the function that c calls locks a mutex of its
// caller's, always and without unlocking it; or nil.
func (c *Call) locker() *Call {
	f := c.target
	if f == nil || c.away || f.contains(isUnlock) {
		return nil
	}
	for _, d := range f.calls {
		if at := f.flow().blockAt(d.Expr.Pos()); isLock(d) && at >= 0 && len(f.flow().conditions(at)) == 0 {
			return d
		}
	}
	return nil
}

// lockedBy names, where c is, the mutex that d locks in the function that c calls.
func (c *Call) lockedBy(d *Call) (mutexKey, bool) {
	a := c.in.a
	k, ok := a.mutexKey(mutexOf(d.Expr))
	p, isParam := a.params[k.root]
	if !ok || !isParam {
		return k, ok && k.root.Parent() == a.pass.Pkg.Scope()
	}
	operands := c.operand(p.operand)
	if p.of != c.target || len(operands) != 1 || len(a.defs[k.root]) > 0 {
		return mutexKey{}, false
	}
	outer, ok := a.mutexKey(operands[0])
	return mutexKey{outer.root, outer.path + strings.TrimPrefix(k.path, k.root.Name())}, ok
}

// after changes s into what is held after the call.
func (s lockSet) after(c *Call) {
	switch {
	case c.away:
	case isLock(c):
		if k, ok := c.in.a.mutexKey(mutexOf(c.Expr)); ok {
			s[k] = c.Expr
		}
	case isUnlock(c):
		k, _ := c.in.a.mutexKey(mutexOf(c.Expr))
		if _, held := s[k]; held {
			delete(s, k)
		} else {
			clear(s) // one of them, by another name
		}
	case c.mayRelease():
		clear(s)
	default:
		if d := c.locker(); d != nil {
			if k, ok := c.lockedBy(d); ok {
				s[k] = d.Expr
			}
		}
	}
}

// mayRelease reports whether a call of something else than a mutex may unlock
// one of its caller's.
func (c *Call) mayRelease() bool {
	if c.target != nil && c.target.releases(make(map[*Func]bool)) {
		return true
	}
	for _, lit := range c.lits {
		if lit.releases(make(map[*Func]bool)) {
			return true
		}
	}
	if c.dynamic && c.Callee == nil {
		sig, _ := c.in.a.info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
		return sig != nil && sig.Params().Len()+sig.Results().Len() == 0 // unlock := s.lock(); …; unlock()
	}
	return false
}

// releases reports whether f, or what it calls in this package, unlocks a
// mutex that it has not locked itself.
func (f *Func) releases(seen map[*Func]bool) bool {
	if seen[f] {
		return false
	}
	seen[f] = true
	for _, c := range f.calls {
		if isUnlock(c) && !f.locksItself(mutexOf(c.Expr)) {
			return true
		}
		if c.target != nil && c.target.releases(seen) {
			return true
		}
	}
	return slices.ContainsFunc(f.nested, func(g *Func) bool { return g.releases(seen) })
}

func (f *Func) locksItself(mutex ast.Expr) bool {
	k, ok := f.a.mutexKey(mutex)
	if !ok {
		return false
	}
	for g := range f.In() {
		for _, c := range g.calls {
			if l, ok := g.a.mutexKey(mutexOf(c.Expr)); ok && isLock(c) && l == k {
				return true
			}
		}
	}
	return false
}

// mutexOf is the operand of a call of a method of a mutex.
func mutexOf(call *ast.CallExpr) ast.Expr {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return sel.X
	}
	return nil
}

// mutexKey names the mutex that e stands for, by its variable and the way from
// there.
func (a *analyzer) mutexKey(e ast.Expr) (mutexKey, bool) {
	if e == nil {
		return mutexKey{}, false
	}
	var root *types.Var
	for x := e; root == nil; {
		switch n := x.(type) {
		case *ast.ParenExpr:
			x = n.X
		case *ast.SelectorExpr:
			x = n.X
			if id, ok := n.X.(*ast.Ident); ok && isPackage(a.info.Uses[id]) {
				x = n.Sel
			}
		case *ast.IndexExpr:
			x = n.X
		case *ast.StarExpr:
			x = n.X
		case *ast.Ident:
			v, ok := a.info.Uses[n].(*types.Var)
			if !ok {
				return mutexKey{}, false
			}
			root = v
		default:
			return mutexKey{}, false
		}
	}
	return mutexKey{root, types.ExprString(e)}, true
}

func isPackage(obj types.Object) bool { _, ok := obj.(*types.PkgName); return ok }

func isLock(c *Call) bool {
	if c.Callee == nil {
		return false
	}
	switch c.Callee.FullName() {
	case "(*sync.Mutex).Lock", "(*sync.RWMutex).Lock", "(*sync.RWMutex).RLock", "(sync.Locker).Lock":
		return !c.away
	}
	return false
}

// isUnlock recognises the methods that unlock something, by their name alone:
// types that wrap a mutex have them, too.
func isUnlock(c *Call) bool {
	return c.Callee != nil && (c.Callee.Name() == "Unlock" || c.Callee.Name() == "RUnlock") && c.Callee.Signature().Recv() != nil
}

// pendingWait returns how c waits for something that may not be computed yet,
// nil if it doesn't.
func (a *analyzer) pendingWait(c *Call) *LockedWait {
	if c.away {
		return nil
	}
	name := types.ExprString(c.Expr)
	if len(name) > 40 {
		name = calleeName(c)
	}
	switch c.api.Kind {
	case tensorapi.WaitAll:
		return &LockedWait{Call: c, Name: name}
	case tensorapi.Wait:
		for _, e := range c.operand(c.api.Arg) {
			if a.mayPend(e, c) {
				return &LockedWait{Call: c, Name: name}
			}
		}
		return nil
	}
	for _, w := range a.waits(c) {
		if w.via != nil && w.via.Guarded || w.operand != nil && !a.mayPend(w.operand, c) {
			continue
		}
		lw := &LockedWait{Call: c, Name: a.callName(c, w)}
		if w.via != nil {
			lw.Chain = w.via.Chain
		}
		return lw
	}
	return nil
}

// mayPend reports whether the tensor e may be computed no earlier than c asks
// for it: an operation made it, or the caller did, and nothing has waited for
// it before.
func (a *analyzer) mayPend(e ast.Expr, c *Call) bool {
	o := a.origin(e, c.in)
	return (o.Pending || o.From != 0 || a.isHandedIn(e, 0)) && !a.waitedBefore(c, e, c.in.wholeLoop())
}

// isHandedIn reports whether e is, or is part of, a field or a package variable
// that a function sets to what its caller has passed.
func (a *analyzer) isHandedIn(e ast.Expr, depth int) bool {
	if depth > 4 {
		return false
	}
	var v *types.Var
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ = a.info.Uses[e].(*types.Var)
	case *ast.SelectorExpr:
		if v, _ = a.info.Uses[e.Sel].(*types.Var); v != nil {
			v = v.Origin()
		}
	case *ast.IndexExpr:
		return a.isHandedIn(e.X, depth+1)
	case *ast.StarExpr:
		return a.isHandedIn(e.X, depth+1)
	}
	if v == nil {
		return false
	}
	shared := v.IsField() || v.Parent() == a.pass.Pkg.Scope()
	return slices.ContainsFunc(a.defs[v], func(d def) bool {
		if d.kind != defValue && d.kind != defElem || d.in == nil {
			return false
		}
		return shared && a.origin(d.value, d.in).From != 0 || !shared && a.isHandedIn(d.value, depth+1)
	})
}
