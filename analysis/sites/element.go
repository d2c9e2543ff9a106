package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// An ElementRead is a read in a loop of a tensor that the loop does not change, or of its parts one by
// one. One read before the loop would give all of it.
//
//	for i := range n {
//		sum += x.At(i) // x.Float32s() once
//	}
type ElementRead struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	Name string           // how messages call the call
	// Tensor is what the loop does not change.
	Tensor ast.Expr
	// Whole reports whether each iteration reads the same: there are no parts.
	Whole bool
	Loop  *blocking.Loop
	// Certain reports whether a read before the loop waits for nothing that the program doesn't wait
	// for now: the loop runs at least once, its first iteration comes to the read, and no loop around
	// it has the same read.
	Certain bool
	Timed   bool
}

// ElementReads lists the element reads of a package, in the order of the source.
func ElementReads(pkg *blocking.Package) []*ElementRead {
	var list []*ElementRead
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			l := Innermost(f.Package, c)
			e := elementOf(f.Package, c, l)
			if e == nil || f.Package.Any(l, IsStreamed) || isShown(f.Package, c, l) {
				continue
			}
			switch f.Package.GuardOf(f, c.Expr.Pos(), l) {
			case blocking.Rarely:
				continue
			case blocking.Always:
			default: // a value that is read decides: its reading is the finding, but not for another tensor
				if e.Whole || slices.ContainsFunc(list, func(d *ElementRead) bool {
					return d.Loop == l && types.ExprString(d.Tensor) == types.ExprString(e.Tensor)
				}) {
					continue
				}
			}
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(x, y *ElementRead) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// isShown reports whether c prints in a loop that waits for somebody's answer.
func isShown(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	_, prints := c.Printer()
	return prints && pkg.Any(l, IsOutside)
}

// Innermost returns the innermost loop around c that isn't small, or nil.
func Innermost(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if c.Away {
		return nil
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small {
			continue
		}
		if l.Blocks == nil && l.Func.Runs() != blocking.Looping {
			return nil
		}
		return l
	}
	return nil
}

// elementOf returns c as an ElementRead in l, or nil. The parts that are read must be counted by the
// iterations: then all iterations together read a good part of the tensor.
func elementOf(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) *ElementRead {
	e, counted := settledPart(pkg, c, l)
	if e == nil {
		return nil
	}
	return &ElementRead{
		Call: c.Expr, Cur: c.Cur, Name: elementName(pkg, c, e), Tensor: e, Whole: !counted, Loop: l,
		Certain: !counted && isCertain(pkg, c, l), Timed: c.In.Outermost().Contains(blocking.TellsTime),
	}
}

// elementName is how messages call c, which reads parts of e.
func elementName(pkg *blocking.Package, c *blocking.Call, e ast.Expr) string {
	if _, prints := c.Printer(); c.API.Kind == tensorapi.Unknown && !prints {
		return blocking.CalleeName(c)
	}
	return pkg.CallName(c, blocking.CallWait{Kind: blocking.WaitRead, Operand: e})
}

// settledPart returns the tensor that c reads a part of in each iteration of l, or nil. It reports
// whether the parts are counted by the iterations.
func settledPart(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) (e ast.Expr, counted bool) {
	if l == nil {
		return nil, false
	}
	if c.API.Kind != tensorapi.Read || c.API.Arg != tensorapi.Recv && c.API.Arg != 0 {
		for _, w := range pkg.Waits(c) {
			// It prints the part, or gives it to a function that reads it once.
			if w.Operand == nil || w.Via != nil && (w.Via.InLoop || w.Via.Guarded || c.Enqueues()) || !blocking.IsTensor(pkg.Info.TypeOf(w.Operand)) {
				continue
			}
			if e, counted := settledView(pkg, w.Operand, l); counted {
				return e, true
			}
		}
		return partByCallee(pkg, c, l)
	}
	operands := c.Operand(c.API.Arg)
	if len(operands) != 1 || !blocking.IsTensor(pkg.Info.TypeOf(operands[0])) || tensorapi.IsNumber(pkg.Info.TypeOf(operands[0])) {
		return nil, false
	}
	args := c.Expr.Args
	if c.API.Arg == 0 {
		args = args[1:]
	}
	counted, ok := countedIn(pkg, args, l)
	if !ok || !c.Lib.Values && !copiesAll(pkg, c, l) {
		return nil, false
	}
	e, views := settledView(pkg, operands[0], l)
	return e, e != nil && (counted || views)
}

// copiesAll reports whether c copies all elements of a local tensor that l only reads. It is for
// libraries whose tensors may change.
func copiesAll(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	v := pkg.Local(c.Operand(c.API.Arg)[0])
	if v == nil || c.API.Calls != tensorapi.Never {
		return false
	}
	if _, basic := pkg.Info.TypeOf(c.Expr).Underlying().(*types.Basic); basic {
		return false
	}
	for use := range pkg.UsesOf(v, c.In) {
		f := pkg.FuncAt(use)
		if !pkg.Contains(l, f, use.Node().Pos()) {
			continue
		}
		var around *blocking.Call
		for cur := range use.Enclosing((*ast.CallExpr)(nil)) {
			around = pkg.Calls[cur.Node().(*ast.CallExpr)]
			break
		}
		if around == nil || around.API.Kind != tensorapi.Meta && (around.API.Kind != tensorapi.Read || strings.Contains(around.Callee.Name(), "Mutable")) {
			return false
		}
	}
	return true
}

// settledView returns the tensor behind e, a tensor or a view, if it is the same one in all iterations
// of l; otherwise nil. It reports whether the views select parts that the iterations count, as x.Row(i)
// does.
func settledView(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) (tensor ast.Expr, counted bool) {
	for {
		if list := PartedBy(pkg, e, l, "Unbind", "Split", "Chunk"); list != nil {
			return list, true
		}
		view := pkg.Calls[syntax.AsCall(viewIn(pkg, e, l))]
		if view == nil || blocking.IsParamValue(view) {
			break
		}
		if view.API.Kind != tensorapi.View || view.API.Arg != tensorapi.Recv {
			return nil, false
		}
		more, ok := countedIn(pkg, view.Expr.Args, l)
		if !ok {
			return nil, false
		}
		counted = counted || more
		e = view.Operand(tensorapi.Recv)[0]
	}
	if !isSettledTensor(pkg, e, l) || isAtHand(pkg, e, l) {
		return nil, false
	}
	return e, counted
}

// PartedBy returns a tensor if the variable e of l is one part of it after the other. Then l ranges over the views that
// one of the given methods returns. Else PartedBy returns nil.
//
//	for _, row := range x.Unbind(0) {
func PartedBy(pkg *blocking.Package, e ast.Expr, l *blocking.Loop, by ...string) ast.Expr {
	s, ok := l.Stmt.(*ast.RangeStmt)
	d := pkg.Defs[pkg.Local(e)]
	if !ok || len(d) != 1 || d[0].Kind != blocking.DefElem && d[0].Kind != blocking.DefKey || d[0].Value != s.X {
		return nil
	}
	x := s.X
	if of := pkg.Defs[pkg.Local(x)]; len(of) == 1 && of[0].Kind == blocking.DefValue && of[0].Index == 0 {
		x = of[0].Value
	}
	c := pkg.Calls[syntax.AsCall(x)]
	if c == nil || !slices.ContainsFunc(by, func(name string) bool { return c.IsFunc("Tensor." + name) }) {
		return nil
	}
	if whole := c.Operand(tensorapi.Recv)[0]; !isAtHand(pkg, whole, l) {
		return whole
	}
	return nil
}

// viewIn returns the view that e, a variable of an iteration of l, is set to; or e.
func viewIn(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) ast.Expr {
	if d := pkg.Defs[pkg.Local(e)]; len(d) == 1 && d[0].Kind == blocking.DefValue && pkg.Contains(l, d[0].In, d[0].Pos) {
		if c := pkg.Calls[syntax.AsCall(d[0].Value)]; c != nil && c.API.Kind == tensorapi.View {
			return d[0].Value
		}
	}
	return e
}

// isSettledTensor reports whether e is a variable, a field, an element of a list or the value of a parameter that is
// the same tensor in all iterations of l.
func isSettledTensor(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	if v := pkg.Local(e); v != nil {
		return isSettled(pkg, v, l)
	}
	if c := pkg.Calls[syntax.AsCall(e)]; c != nil && blocking.IsParamValue(c) { // of a parameter that l doesn't change
		recv := c.Operand(tensorapi.Recv)
		return len(recv) == 1 && IsSameHeader(pkg, recv[0], l) && !pkg.Any(l, (*blocking.Call).Mutates)
	}
	if x, ok := ast.Unparen(e).(*ast.IndexExpr); ok { // of a list, in which l sets nothing
		return IsPlain(x.Index) && !pkg.Varies(x.Index, l) && !pkg.IsHostList(x.X) && syntax.ElementType(typeOf(pkg, x.X)) != nil && isSettledTensor(pkg, x.X, l)
	}
	v := pkg.Variable(e)
	if v == nil || !isNamed(e) || mayAssign(pkg, l, v) && !isOfCopy(pkg, e, l) {
		return false
	}
	sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok || !v.IsField() {
		return true // of a package
	}
	base, ok := ast.Unparen(sel.X).(*ast.Ident)
	return isSettledTensor(pkg, sel.X, l) || ok && pkg.Local(base) != nil && isSettledBase(pkg, pkg.Local(base), l)
}

// isNamed reports whether e consists of names: x, s.x, pkg.x.
func isNamed(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return isNamed(e.X)
	}
	return false
}

// mayAssign reports whether l, or something that it calls, may assign the field or package variable v. A variable of
// another package may be assigned by any call of that package.
func mayAssign(pkg *blocking.Package, l *blocking.Loop, v *types.Var) bool {
	if slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.Kind == blocking.DefOther || pkg.Contains(l, d.In, d.Pos) || pkg.CalledFrom(l, d.In)
	}) {
		return true
	}
	return pkg.Any(l, func(c *blocking.Call) bool {
		return c.Dynamic && !isSetByMakers(pkg, v) || v.Pkg() != pkg.Pass.Pkg && c.Lib == nil && c.Callee != nil && c.Callee.Pkg() == v.Pkg()
	})
}

// isSetByMakers reports whether only functions of the package that make a new struct set its field v. An unknown
// function sets it in none that there is already.
func isSetByMakers(pkg *blocking.Package, v *types.Var) bool {
	isOfStruct := func(p *types.Var) bool {
		t := p.Type()
		if ptr, ok := t.Underlying().(*types.Pointer); ok {
			t = ptr.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		return ok && slices.ContainsFunc(slices.Collect(s.Fields()), func(f *types.Var) bool { return f.Origin() == v })
	}
	return v.IsField() && !v.Exported() && !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.In == nil || d.In.Lit != nil || d.In.Sig.Recv() != nil || slices.ContainsFunc(slices.Collect(d.In.Sig.Params().Variables()), isOfStruct)
	})
}

// countedIn reports whether one of the arguments counts the iterations of l. ok is false if some
// argument varies in another way.
func countedIn(pkg *blocking.Package, args []ast.Expr, l *blocking.Loop) (counted, ok bool) {
	for _, arg := range args {
		if t := pkg.Info.TypeOf(arg); blocking.IsTensor(t) {
			return false, false
		}
		more, ok := CountsIn(pkg, arg, l, 0)
		if !ok {
			return false, false
		}
		counted = counted || more
	}
	return counted, counted || !slices.ContainsFunc(args, func(e ast.Expr) bool { return pkg.Varies(e, l) })
}

// CountsIn reports whether e is computed from a counter of l's iterations: i, 2*i+1, n-i. ok is false
// if e depends on anything else that varies, or is looked up in a list. Elements of another tensor count like the
// places from which they are read.
func CountsIn(pkg *blocking.Package, e ast.Expr, l *blocking.Loop, depth int) (counted, ok bool) {
	if depth > 8 {
		return false, false
	}
	all := func(list ...ast.Expr) (counted, ok bool) {
		for _, e := range list {
			more, ok := CountsIn(pkg, e, l, depth+1)
			if !ok {
				return false, false
			}
			counted = counted || more
		}
		return counted, true
	}
	switch {
	case pkg.Counts(e, l) || adds(pkg, e, l) || isListed(pkg, e, l):
		return true, true
	case !pkg.Varies(e, l) && IsPlain(e), countsWithin(pkg, e, l):
		return false, true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		d := pkg.Defs[pkg.Local(e)]
		if len(d) != 1 {
			return false, false
		}
		if d[0].Kind == blocking.DefValue && d[0].Index == 0 {
			return all(d[0].Value)
		}
	case *ast.BinaryExpr:
		return all(e.X, e.Y)
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			return all(e.X)
		}
	case *ast.CallExpr:
		tv := pkg.Info.Types[e.Fun]
		c := pkg.Calls[e]
		switch {
		case isLen(e) && tv.IsBuiltin(), c != nil && c.API.Kind == tensorapi.Meta:
			return false, true // of a part
		case c != nil && c.API.Kind == tensorapi.Read && c.API.Arg == tensorapi.Recv && len(e.Args) > 0 && IsInteger(typeOf(pkg, e)):
			if !isSettledTensor(pkg, c.Operand(tensorapi.Recv)[0], l) {
				return false, false
			}
			return all(e.Args...)
		case tv.IsType(), tv.IsBuiltin(), c != nil && c.API.Kind == tensorapi.Pure: // such as tensor.At(i)
			return all(e.Args...)
		}
	}
	return false, false
}

// countsWithin reports whether e counts the iterations of a small loop in l, as one over channels.
func countsWithin(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	return l.Stmt != nil && slices.ContainsFunc(l.Func.Flow().Loops, func(m *blocking.Loop) bool {
		return m.Small && m.Stmt != nil && l.Stmt.Pos() < m.Stmt.Pos() && m.Stmt.End() <= l.Stmt.End() && pkg.Counts(e, m)
	})
}

// isLen recognises len(x) and cap(x).
func isLen(call *ast.CallExpr) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	return ok && (id.Name == "len" || id.Name == "cap")
}

// adds reports whether e is an integer variable, and l does nothing to it but to add: the place where
// the next part begins, as after at += width.
func adds(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(e)
	if v == nil || !IsInteger(v.Type()) {
		return false
	}
	found := false
	for _, d := range pkg.Defs[v] {
		if !pkg.Contains(l, d.In, d.Pos) {
			continue
		}
		if d.Kind != blocking.DefOther || !isAdded(pkg, d.Pos) {
			return false
		}
		found = true
	}
	return found
}

// isAdded reports whether the statement at pos is v += something.
func isAdded(pkg *blocking.Package, pos token.Pos) bool {
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.AssignStmt)(nil)) {
		return c.Node().(*ast.AssignStmt).Tok == token.ADD_ASSIGN
	}
	return false
}

// isListed reports whether e is a number that l takes from a list, another one in each iteration. Such
// a number is an index.
//
//	for _, i := range order {
//		sum += x.At(i)
//	}
func isListed(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := pkg.Local(e)
		return v != nil && syntax.IsNumeric(v.Type()) && isElement(pkg, e, l)
	case *ast.IndexExpr:
		if pkg.Info.Types[e.Index].Value != nil { // of a list of points
			return IsInteger(typeOf(pkg, e)) && isElement(pkg, e.X, l)
		}
		return syntax.IsNumeric(pkg.Info.TypeOf(e)) && !pkg.Varies(e.X, l) && pkg.Counts(e.Index, l)
	case *ast.SelectorExpr: // of a list of structs
		return IsInteger(typeOf(pkg, e)) && isElement(pkg, e.X, l)
	}
	return false
}

// isElement reports whether e is the element of a list that l goes through.
func isElement(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	d := pkg.Defs[pkg.Local(e)]
	return ok && !syntax.IsFunc(pkg.Info.TypeOf(s.X)) && !syntax.IsChan(pkg.Info.TypeOf(s.X)) && len(d) == 1 && d[0].Kind == blocking.DefElem && d[0].Value == s.X
}

// IsPlain reports whether e consists of names and constants: no calls, indexes or signs.
func IsPlain(e ast.Expr) bool {
	plain := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.CallExpr, *ast.FuncLit, *ast.UnaryExpr, *ast.IndexExpr:
			plain = false
		}
		return plain
	})
	return plain
}

// isSettledBase is isSettled for a variable of which fields are meant. That its address is taken changes nothing.
func isSettledBase(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	return !declaredIn(pkg, v, l) && !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool { return d.Kind != blocking.DefOther && pkg.Contains(l, d.In, d.Pos) })
}

// declaredIn reports whether each iteration of l has a v of its own.
func declaredIn(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	if l.Stmt != nil {
		return l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End()
	}
	return l.Func.Lit == nil || l.Func.Lit.Pos() <= v.Pos() && v.Pos() < l.Func.Lit.End()
}

// isSettled reports whether v holds the same tensor in all iterations of l.
func isSettled(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	if l.Stmt != nil && l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() {
		return false
	}
	f := l.Func
	if l.Blocks == nil && (v.Pos() < f.Lit.Pos() || f.Lit.End() <= v.Pos()) {
		f = f.Parent // it is captured
	} else if l.Blocks == nil {
		return false // the literal's own
	}
	for _, d := range pkg.Defs[v] {
		if d.Kind == blocking.DefOther || d.In != f && d.In != f.Outermost() || pkg.Contains(l, d.In, d.Pos) {
			return false
		}
	}
	return true
}

// isAtHand reports whether e is made of host data, and l enqueues nothing: to read an element is a copy, behind which
// no work has to wait. In a loop that keeps the device busy it is a round trip.
func isAtHand(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	return isHostMade(pkg, e) && !pkg.Any(l, (*blocking.Call).Enqueues)
}

// isHostMade reports whether e is made of host data.
func isHostMade(pkg *blocking.Package, e ast.Expr) bool {
	if v := pkg.Variable(e); v != nil && pkg.Local(e) == nil {
		return len(pkg.Defs[v]) > 0 && !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool { return d.Kind != blocking.DefValue || !isHostMade(pkg, d.Value) })
	}
	calls := pkg.MadeBy(e)
	return calls != nil && !slices.ContainsFunc(calls, func(call *ast.CallExpr) bool { return pkg.Calls[call].API.Kind != tensorapi.Host })
}

// isCertain reports whether l runs at least once, and its first iteration comes to c before it can
// leave the loop. Then a read before the loop waits for nothing new.
func isCertain(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	fl := c.In.Flow()
	if l.Func != c.In || l.Blocks == nil || !runs(l, pkg.Info) || len(pkg.ShortCircuits(c.Expr.Pos())) > 0 {
		return false
	}
	for outer := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if e, _ := settledPart(pkg, c, outer); outer != l && !outer.Small && e != nil {
			return false
		}
	}
	here := fl.BlockAt(c.Expr.Pos())
	for b := range l.Blocks {
		if b == l.Head {
			continue // runs tells that it does not leave the first time
		}
		for _, s := range fl.Blocks[b].Succs {
			if !l.Blocks[s.Index] && !fl.Dominates(here, b) || s.Index == l.Head && !fl.Dominates(here, b) {
				return false
			}
		}
	}
	return true
}

// runs reports whether l's statement shows that it runs at least once: for i := 0; i < 8; i++.
func runs(l *blocking.Loop, info *types.Info) bool {
	var n int64 = blocking.ManyTrips
	switch s := l.Stmt.(type) {
	case *ast.ForStmt:
		n = blocking.ForTrips(info, s)
	case *ast.RangeStmt:
		n = blocking.RangeTrips(info, s.X)
	}
	return 0 < n && n < blocking.ManyTrips
}
