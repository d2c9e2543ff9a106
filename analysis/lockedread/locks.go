package lockedread

import (
	"cmp"
	"go/ast"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A lockedWait is a call that waits for the device while a mutex is held.
type lockedWait struct {
	Call *blocking.Call
	// Name is how messages call the call: "loss.Item()".
	Name string
	// Chain is how a function of a user comes to wait, empty for others.
	Chain []blocking.Link
	// Lock is the call that locked the mutex, and Mutex its operand.
	Lock  *ast.CallExpr
	Mutex ast.Expr
	// Shared reports whether all locks that are held are for reading, nobody in the package locks for writing, and
	// there is one wait and no loop of them.
	Shared bool
	// Probe reports whether what is waited for is computed from nothing: the wait checks that the device works.
	Probe bool
}

// lockedWaits lists the calls in f that wait while a mutex is certainly held, which f or a function
// around it has locked.
//
//	s.mu.Lock()
//	defer s.mu.Unlock()
//	return s.loss.Item()
func lockedWaits(f *blocking.Func) []lockedWait {
	if !locks(f) {
		return nil
	}
	var list []lockedWait
	underLocks(f, func(c *blocking.Call, held lockSet) {
		lock := held.latest()
		if lock == nil || f.Package.GuardOf(f, c.Expr.Pos(), f.WholeLoop()) == blocking.Rarely {
			return
		}
		if w := pendingWait(f.Package, c); w != nil {
			w.Lock, w.Mutex, w.Shared, w.Probe = lock, mutexOf(lock), held.isShared(f.Package) && !inLoop(c), isProbe(c)
			list = append(list, *w)
		}
	})
	return list
}

// A mutexKey names a mutex by the expression for it: s.mu of that variable s.
type mutexKey struct {
	root *types.Var
	path string
}

// A lockSet has the mutexes that are held, each with the call that locked it.
type lockSet map[mutexKey]*ast.CallExpr

// latest returns the call that locked the last mutex, in the order of the source; nil if none is held.
func (s lockSet) latest() *ast.CallExpr {
	var last *ast.CallExpr
	for _, lock := range s {
		if last == nil || last.Pos() < lock.Pos() {
			last = lock
		}
	}
	return last
}

// isShared reports whether all mutexes are locked for reading, and the package locks none of them for writing: nobody
// has to wait. While a writer waits, sync.RWMutex lets in no other readers either.
func (s lockSet) isShared(pkg *blocking.Package) bool {
	for _, lock := range s {
		if c := pkg.Calls[lock]; c == nil || c.Callee.Name() != "RLock" || hasWriter(pkg, lock) {
			return false
		}
	}
	return true
}

// hasWriter reports whether the package has a call that locks the mutex of lock for writing.
func hasWriter(pkg *blocking.Package, lock *ast.CallExpr) bool {
	mutex := placeOf(pkg, lock)
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			if isLock(c) && c.Callee.Name() == "Lock" && placeOf(pkg, c.Expr) == mutex {
				return true
			}
		}
	}
	return false
}

// placeOf returns what the mutex of a lock is in, whatever the value: a field, a variable or, if the mutex is embedded,
// a type.
func placeOf(pkg *blocking.Package, lock *ast.CallExpr) any {
	e := mutexOf(lock)
	t := pkg.Info.TypeOf(syntax.OrNil(e))
	if t == nil {
		return nil
	}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok && named.Obj().Pkg() == pkg.Pass.Pkg {
		return named.Origin()
	}
	return pkg.Variable(e)
}

// inLoop reports whether c is in a loop of its function that isn't short.
func inLoop(c *blocking.Call) bool {
	for l := range c.In.Package.LoopsAround(c.In, c.Expr.Pos()) {
		if !l.Small {
			return true
		}
	}
	return false
}

// meet returns the mutexes that are held on both of two ways. A nil set is that of a way that isn't known yet.
func (s lockSet) meet(t lockSet) lockSet {
	if s == nil {
		return maps.Clone(t)
	}
	maps.DeleteFunc(s, func(k mutexKey, _ *ast.CallExpr) bool { return t[k] == nil })
	return s
}

// locks reports whether f, or a function around it, may lock a mutex that f holds.
func locks(f *blocking.Func) bool {
	for g := range f.In() {
		if slices.ContainsFunc(g.Calls, func(c *blocking.Call) bool { return isLock(c) || locker(c) != nil }) {
			return true
		}
		if c := g.PassedTo(); c != nil && c.Target != nil && slices.ContainsFunc(c.Target.Calls, isLock) {
			return true
		}
		if h := g.Runs(); h != blocking.Once && h != blocking.Looping {
			return false
		}
	}
	return false
}

// underLocks calls visit for each call in f, with the mutexes that are held there on all ways to the
// call. It solves a forward data-flow problem over the control-flow graph, with intersection where ways
// meet.
func underLocks(f *blocking.Func, visit func(c *blocking.Call, held lockSet)) {
	fl := f.Flow()
	calls := make([][]*blocking.Call, len(fl.Blocks)) // by block, in the order in which they return
	for _, c := range f.Calls {
		if b := fl.BlockAt(c.Expr.Pos()); b >= 0 {
			calls[b] = append(calls[b], c)
		}
	}
	for _, list := range calls {
		slices.SortFunc(list, func(c, d *blocking.Call) int { return cmp.Compare(c.Expr.End(), d.Expr.End()) })
	}
	exit := make([]lockSet, len(fl.Blocks))
	entry := func(b int32) lockSet {
		if fl.Order[b] == 0 {
			return heldAtEntry(f)
		}
		var held lockSet
		for _, p := range fl.Preds[b] {
			if exit[p] != nil {
				held = held.meet(exit[p])
			}
		}
		return held
	}
	for changed := true; changed; {
		changed = false
		for b := range fl.Blocks {
			if fl.Order[b] < 0 {
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

// heldAtEntry returns the mutexes that are held when f begins. There are none, unless f is a literal
// that runs where it is written. Then they are those held there, and those that the callee holds
// whenever it calls the literal.
func heldAtEntry(f *blocking.Func) lockSet {
	held := make(lockSet)
	if h := f.Runs(); h != blocking.Once && h != blocking.Looping {
		return held
	}
	underLocks(f.Parent, func(c *blocking.Call, at lockSet) {
		if c.Expr == f.ArgOf {
			maps.Copy(held, at)
		}
	})
	if c := f.PassedTo(); c != nil && c.Target != nil {
		maps.Copy(held, heldForCallback(c.Target, f.ArgNo))
	}
	return held
}

// heldForCallback returns the mutexes that f has locked itself wherever it calls its operand.
func heldForCallback(f *blocking.Func, operand int) lockSet {
	var held lockSet
	underLocks(f, func(c *blocking.Call, at lockSet) {
		if op, ok := f.Package.FuncParam(f, c.Expr.Fun); ok && op == operand {
			held = held.meet(at)
		}
	})
	return held
}

// locker returns the call in c's callee that locks a mutex of the caller, or nil. The callee must
// always make this call, and must not unlock the mutex.
//
//	func (s *server) lock() { s.mu.Lock() }
func locker(c *blocking.Call) *blocking.Call {
	f := c.Target
	if f == nil || c.Away || f.Contains(isUnlock) {
		return nil
	}
	for _, d := range f.Calls {
		if at := f.Flow().BlockAt(d.Expr.Pos()); isLock(d) && at >= 0 && len(f.Flow().Conditions(at)) == 0 {
			return d
		}
	}
	return nil
}

// lockedBy names the mutex that d locks in c's callee, as it is called where c is.
func lockedBy(c *blocking.Call, d *blocking.Call) (mutexKey, bool) {
	pkg := c.In.Package
	k, ok := keyOf(pkg, mutexOf(d.Expr))
	p, isParam := pkg.Params[k.root]
	if !ok || !isParam {
		return k, ok && k.root.Parent() == pkg.Pass.Pkg.Scope()
	}
	operands := c.Operand(p.Operand)
	if p.Of != c.Target || len(operands) != 1 || len(pkg.Defs[k.root]) > 0 {
		return mutexKey{}, false
	}
	outer, ok := keyOf(pkg, operands[0])
	return mutexKey{outer.root, outer.path + strings.TrimPrefix(k.path, k.root.Name())}, ok
}

// after changes s into the mutexes held after the call.
func (s lockSet) after(c *blocking.Call) {
	switch {
	case c.Away:
	case isLock(c):
		if k, ok := keyOf(c.In.Package, mutexOf(c.Expr)); ok {
			s[k] = c.Expr
		}
	case isUnlock(c):
		k, _ := keyOf(c.In.Package, mutexOf(c.Expr))
		if _, held := s[k]; held {
			delete(s, k)
		} else {
			clear(s) // one of them, by another name
		}
	case mayRelease(c):
		clear(s)
	default:
		if d := locker(c); d != nil {
			if k, ok := lockedBy(c, d); ok {
				s[k] = d.Expr
			}
		}
	}
}

// mayRelease reports whether c, a call of something other than a mutex, may unlock a mutex of its caller.
func mayRelease(c *blocking.Call) bool {
	if c.Target != nil && releases(c.Target, make(map[*blocking.Func]bool)) {
		return true
	}
	for _, lit := range c.Lits {
		if releases(lit, make(map[*blocking.Func]bool)) {
			return true
		}
	}
	if c.Dynamic && c.Callee == nil {
		sig, _ := c.In.Package.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
		return sig != nil && sig.Params().Len()+sig.Results().Len() == 0 // unlock := s.lock(); …; unlock()
	}
	return false
}

// releases reports whether f, or a function of this package that it calls, unlocks a mutex that it hasn't locked
// itself.
func releases(f *blocking.Func, seen map[*blocking.Func]bool) bool {
	if seen[f] {
		return false
	}
	seen[f] = true
	for _, c := range f.Calls {
		if isUnlock(c) && !locksItself(f, mutexOf(c.Expr)) {
			return true
		}
		if c.Target != nil && releases(c.Target, seen) {
			return true
		}
	}
	return slices.ContainsFunc(f.Nested, func(g *blocking.Func) bool { return releases(g, seen) })
}

// locksItself reports whether f or a function around it locks the mutex.
func locksItself(f *blocking.Func, mutex ast.Expr) bool {
	k, ok := keyOf(f.Package, mutex)
	if !ok {
		return false
	}
	for g := range f.In() {
		for _, c := range g.Calls {
			if l, ok := keyOf(g.Package, mutexOf(c.Expr)); ok && isLock(c) && l == k {
				return true
			}
		}
	}
	return false
}

// mutexOf returns the receiver of a call of a mutex's method.
func mutexOf(call *ast.CallExpr) ast.Expr {
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		return sel.X
	}
	return nil
}

// keyOf names the mutex that e stands for.
func keyOf(pkg *blocking.Package, e ast.Expr) (mutexKey, bool) {
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
			if id, ok := n.X.(*ast.Ident); ok && isPackage(pkg.Info.Uses[id]) {
				x = n.Sel
			}
		case *ast.IndexExpr:
			x = n.X
		case *ast.StarExpr:
			x = n.X
		case *ast.Ident:
			v, ok := pkg.Info.Uses[n].(*types.Var)
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

// isPackage reports whether obj is the name of an imported package.
func isPackage(obj types.Object) bool { _, ok := obj.(*types.PkgName); return ok }

// isLock recognises the methods of package sync that lock a mutex.
func isLock(c *blocking.Call) bool {
	if c.Callee == nil {
		return false
	}
	switch c.Callee.FullName() {
	case "(*sync.Mutex).Lock", "(*sync.RWMutex).Lock", "(*sync.RWMutex).RLock", "(sync.Locker).Lock":
		return !c.Away
	}
	return false
}

// isUnlock recognises methods that unlock something by their names. Types that wrap a mutex have such methods, too.
func isUnlock(c *blocking.Call) bool {
	return c.Callee != nil && (c.Callee.Name() == "Unlock" || c.Callee.Name() == "RUnlock") && c.Callee.Signature().Recv() != nil
}

// pendingWait returns how c waits for something that may not be computed yet; nil if it doesn't.
func pendingWait(pkg *blocking.Package, c *blocking.Call) *lockedWait {
	if c.Away {
		return nil
	}
	name := types.ExprString(c.Expr)
	if len(name) > 40 {
		name = blocking.CalleeName(c)
	}
	switch c.API.Kind {
	case tensorapi.WaitAll:
		return &lockedWait{Call: c, Name: name}
	case tensorapi.Wait:
		for _, e := range c.Operand(c.API.Arg) {
			if mayPend(pkg, e, c) {
				return &lockedWait{Call: c, Name: name}
			}
		}
		return nil
	}
	for _, w := range pkg.Waits(c) {
		if w.Via != nil && w.Via.Guarded || w.Operand != nil && !mayPend(pkg, w.Operand, c) {
			continue
		}
		lw := &lockedWait{Call: c, Name: pkg.CallName(c, w)}
		if w.Via != nil {
			lw.Chain = w.Via.Chain
		}
		return lw
	}
	return nil
}

// isProbe reports whether c waits for a tensor that is computed from constants alone, as a check of the device does.
//
//	err := tensor.Ones(4).Sum().Wait()
func isProbe(c *blocking.Call) bool {
	list := c.Operand(c.API.Arg)
	if c.API.Kind != tensorapi.Wait && c.API.Kind != tensorapi.Read || len(list) != 1 {
		return false
	}
	constant := true
	ast.Inspect(c.In.Package.OnlyValue(list[0]), func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			_, isVar := c.In.Package.Info.Uses[id].(*types.Var)
			constant = constant && !isVar
		}
		return constant
	})
	return constant
}

// mayPend reports whether the tensor e may not be computed yet when c asks for it: an operation made it, here or in
// the caller, and nothing has waited for it before.
func mayPend(pkg *blocking.Package, e ast.Expr, c *blocking.Call) bool {
	o := pkg.OriginOf(e, c.In)
	return (o.Pending || o.From != 0 || isHandedIn(pkg, e, 0)) && !sites.WaitedBefore(pkg, c, e, c.In.WholeLoop())
}

// isHandedIn reports whether e is a field or package variable, or part of one, that a function sets to
// an operand of its own.
func isHandedIn(pkg *blocking.Package, e ast.Expr, depth int) bool {
	if depth > 4 {
		return false
	}
	var v *types.Var
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ = pkg.Info.Uses[e].(*types.Var)
	case *ast.SelectorExpr:
		if v, _ = pkg.Info.Uses[e.Sel].(*types.Var); v != nil {
			v = v.Origin()
		}
	case *ast.IndexExpr:
		return isHandedIn(pkg, e.X, depth+1)
	case *ast.StarExpr:
		return isHandedIn(pkg, e.X, depth+1)
	}
	if v == nil {
		return false
	}
	shared := v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope()
	return slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		if d.Kind != blocking.DefValue && d.Kind != blocking.DefElem || d.In == nil {
			return false
		}
		return shared && pkg.OriginOf(d.Value, d.In).From != 0 || !shared && isHandedIn(pkg, d.Value, depth+1)
	})
}
