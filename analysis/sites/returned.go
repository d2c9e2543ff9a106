package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// A Return is a read in a loop whose value goes back to the device. The loop doesn't compute what is
// read, so the read is no [Site].
type Return struct {
	Call *blocking.Call
	Name string // how messages call the call
	Loop *blocking.Loop
	// Copied reports whether all elements come back unchanged.
	//
	//	q.Set(tensor.From(p.Value().Float32s(), p.Value().Shape()...))
	Copied bool
	// Drawn reports whether a detour reads a number that the device draws for it.
	Drawn bool
}

// Returned lists the returns of the package of p, in the order of the source. There are two kinds:
// elements of a list of tensors that are read one by one for a tensor operation, and tensors that are
// copied by way of the host.
func Returned(p *lint.Pass) []Return {
	var list []Return
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.Away || IsAllowed(c) || slices.ContainsFunc(Of(p), func(s *Site) bool { return s.Call == c.Expr }) {
				continue
			}
			l := Innermost(p.Package, c)
			if l == nil || l.Blocks == nil || p.GuardOf(f, c.Expr.Pos(), l) != blocking.Always || p.IsOuter(l, c) || p.Any(l, IsOutside) {
				continue
			}
			if slices.ContainsFunc(Uses(p.Package, c, l), func(at Place) bool { return isRanked(p.Package, at, l) }) {
				continue
			}
			if w, ok := copies(p.Package, c, l); ok {
				list = append(list, Return{Call: c, Name: p.CallName(c, w), Loop: l})
				continue
			}
			if c.API.Kind != tensorapi.Read || c.Lib != tensorapi.Ours() || c.API.Arg != tensorapi.Recv && !isPlainRead(c) {
				continue
			}
			name := p.CallName(c, blocking.CallWait{Kind: blocking.WaitRead})
			if r := (Return{Call: c, Name: name, Loop: l, Copied: isCopied(p.Package, c, l)}); r.Copied || isListElement(p.Package, c, l) || isRemade(p.Package, c, l) {
				list = append(list, r)
			}
		}
	}
	return list
}

// Detours lists the reads outside of loops, in the order of the source, whose numbers go nowhere but back into
// operations on tensors, or which only read a number that the device draws, as the host can by itself. They are in
// functions that compute tensors of tensors, which callers take to return at once.
//
//	func rescale(x *tensor.Tensor) *tensor.Tensor {
//		top := x.Abs().Max().Item()
//		return x.DivScalar(top)
//	}
func Detours(p *lint.Pass) []Return {
	var list []Return
	for _, f := range p.Funcs {
		if !takesAndMakes(p.Package, f) && !f.Contains(setsParam) {
			continue
		}
		for _, c := range f.Calls {
			if c.Away || IsAllowed(c) || p.GuardOf(f, c.Expr.Pos(), nil) != blocking.Always {
				continue
			}
			inLoop := Innermost(p.Package, c) != nil
			if copied := !inLoop && isMoved(p.Package, c); copied || !inLoop && (isMapped(p.Package, c) || isMappedInto(p.Package, c)) || isSummed(p.Package, c) {
				list = append(list, Return{Call: c, Name: p.CallName(c, blocking.CallWait{Kind: blocking.WaitRead}), Copied: copied})
				continue
			}
			if inLoop {
				continue
			}
			if !syntax.IsNumeric(typeOf(p.Package, c.Expr)) || slices.ContainsFunc(Of(p), func(s *Site) bool { return s.Call == c.Expr }) {
				continue
			}
			waits := p.Waits(c)
			if len(waits) != 1 {
				continue
			}
			// A function that waits in a loop anyway is not expected to return at once.
			waitsOn := slices.ContainsFunc(Of(p), func(s *Site) bool { return s.In.Outermost() == f.Outermost() && s.Severity() == lint.Warning })
			if detour, drawn := isDetour(p.Package, c, waits[0]), isDraw(p.Package, c) && !waitsOn; detour || drawn {
				list = append(list, Return{Call: c, Name: p.CallName(c, waits[0]), Drawn: drawn && !detour})
			}
		}
	}
	return list
}

// isDraw reports whether c reads a number that the device has drawn. The drawn tensor is the operand itself, or a
// variable of it that is used for nothing but reads of numbers.
func isDraw(pkg *blocking.Package, c *blocking.Call) bool {
	if c.API.Kind != tensorapi.Read || c.API.Arg != tensorapi.Recv || c.Lib != tensorapi.Ours() {
		return false
	}
	of := c.Operand(tensorapi.Recv)[0]
	d := pkg.Calls[syntax.AsCall(pkg.OnlyValue(of))]
	if d == nil || d.API.Kind != tensorapi.Draw || d.In != c.In {
		return false
	}
	if v := pkg.Local(of); v != nil {
		for use := range pkg.UsesOf(v, c.In) {
			read := pkg.Calls[syntax.AsCall(nodeOf(use.Parent().Parent()))]
			if !syntax.IsTarget(use) && (read == nil || read.API.Kind != tensorapi.Read || read.Expr.Fun != nodeOf(use.Parent()) || !syntax.IsNumeric(typeOf(pkg, read.Expr))) {
				return false
			}
		}
	}
	return true
}

// isMapped reports whether c reads all elements of a tensor, and its function does nothing with them but to go through
// them one after the other, with arithmetic, to sum or change them in place, and to make a tensor of them. Operations
// on tensors do all that on the device.
//
//	v := x.Float32s()
//	for i := range v {
//		v[i] *= 2
//	}
//	return tensor.From(v)
func isMapped(pkg *blocking.Package, c *blocking.Call) bool {
	if !readsElements(pkg, c) {
		return false
	}
	v := elementsIn(pkg, c)
	if v == nil || slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.Kind == blocking.DefValue && d.Value != c.Expr && types.Identical(pkg.Info.TypeOf(d.Value), v.Type())
	}) {
		return false
	}
	made, looped, ok := mapsList(pkg, v, c.In, 0)
	return ok && made && looped
}

// mapsList reports whether all that f does with the list v is to go through it with arithmetic, by itself or in
// functions of the package, and to make tensors of it; and which of these it does. Depth bounds the functions.
func mapsList(pkg *blocking.Package, v *types.Var, f *blocking.Func, depth int) (made, looped, ok bool) {
	for use := range pkg.UsesOf(v, f) {
		if syntax.IsTarget(use) {
			continue
		}
		switch n := use.Parent().Node().(type) {
		case *ast.RangeStmt:
			if !onlyComputes(pkg, n.Body, v) {
				return made, looped, false
			}
			looped = true
		case *ast.IndexExpr:
			if n.X == use.Node() && isChangedAlone(pkg, use, v) {
				looped = true
			} else if n.X != use.Node() || !isKeyIn(pkg, use, n.Index, v) {
				return made, looped, false
			}
		case *ast.CallExpr:
			switch {
			case syntax.IsBuiltin(pkg.Info, n, "len"):
			case isSort(pkg, n), isMappedBy(pkg, n, nodeOf(use), depth):
				looped = true
			case isHost(pkg, n):
				up := use.Parent().Parent()
				for isConverted(pkg, up) {
					up = up.Parent().Parent()
				}
				_, returned := up.Node().(*ast.ReturnStmt)
				d := pkg.Calls[syntax.AsCall(nodeOf(up))]
				made = made || returned || d != nil && setsParam(d)
			default:
				return made, looped, false
			}
		default:
			return made, looped, false
		}
	}
	return made, looped, true
}

// isConverted reports whether cur is what selects a method that only gives a tensor another form: t.As(x.DType()).
func isConverted(pkg *blocking.Package, cur inspector.Cursor) bool {
	_, ok := cur.Node().(*ast.SelectorExpr)
	c := pkg.Calls[syntax.AsCall(nodeOf(cur.Parent()))]
	return ok && c != nil && c.Expr.Fun == cur.Node() && c.Lib == tensorapi.Ours() && (c.API.Kind == tensorapi.View || c.Callee.Name() == "As" || c.Callee.Name() == "To")
}

// isMappedBy reports whether the call is of a function of the package that returns nothing, and goes through the list
// e, an argument, with arithmetic. That is all that it does with the list.
//
//	scale(v, 1-rate)
func isMappedBy(pkg *blocking.Package, call *ast.CallExpr, e ast.Expr, depth int) bool {
	c := pkg.Calls[call]
	i := slices.Index(call.Args, e)
	if c == nil || c.Target == nil || depth > 2 || i < 0 || call.Ellipsis.IsValid() || c.Target.Sig.Variadic() || c.Target.Sig.Results().Len() > 0 {
		return false
	}
	made, looped, ok := mapsList(pkg, c.Target.Sig.Params().At(i), c.Target, depth+1)
	return ok && looped && !made
}

// isKeyIn reports whether index is the key of a loop around the use that ranges over v.
func isKeyIn(pkg *blocking.Package, use inspector.Cursor, index ast.Expr, v *types.Var) bool {
	for cur := range use.Enclosing((*ast.RangeStmt)(nil)) {
		n := cur.Node().(*ast.RangeStmt)
		return n.Key != nil && pkg.Local(n.X) == v && pkg.Local(index) != nil && pkg.Local(index) == pkg.Variable(n.Key)
	}
	return false
}

// isChangedAlone reports whether the use of v is an element that an assignment such as *= changes, in loops that do
// nothing but compute with numbers, also random ones. No element depends on another one.
//
//	for i := 0; i < len(v); i += each {
//		gain := 0.8 + 0.4*rand.Float32()
//		for j := range each {
//			v[i+j] *= gain
//		}
//	}
func isChangedAlone(pkg *blocking.Package, use inspector.Cursor, v *types.Var) bool {
	assign, ok := use.Parent().Parent().Node().(*ast.AssignStmt)
	if !ok || assign.Tok == token.ASSIGN || assign.Tok == token.DEFINE || assign.Lhs[0] != nodeOf(use.Parent()) || pkg.Mentions(assign.Rhs[0], v) {
		return false
	}
	var loop ast.Node // the outermost
	for cur := range use.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil)) {
		if _, ok := cur.Node().(*ast.FuncLit); ok {
			break
		}
		loop = cur.Node()
	}
	if loop == nil {
		return false
	}
	alone := true
	ast.Inspect(loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			alone = alone && pkg.Local(n.X) == v
		case *ast.CallExpr:
			c := pkg.Calls[n]
			alone = alone && (c == nil && !syntax.IsBuiltin(pkg.Info, n, "append") || c != nil && (c.API.Kind == tensorapi.Meta || c.Callee != nil && c.Callee.Pkg() != nil && strings.HasPrefix(c.Callee.Pkg().Path(), "math")))
		case *ast.SendStmt, *ast.BranchStmt, *ast.ReturnStmt, *ast.FuncLit:
			alone = false
		}
		return alone
	})
	return alone
}

// onlyComputes reports whether a loop over the list v consists of assignments, perhaps under conditions, that compute
// with numbers and functions of package math, and index no other list. A loop that sets elements sets nothing else: an
// element that depends on the one before is for the host.
func onlyComputes(pkg *blocking.Package, body *ast.BlockStmt, v *types.Var) bool {
	ok := true
	writes, carries := false, false // elements; variables from one iteration to the next
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, lhs := range n.Lhs {
				_, element := ast.Unparen(lhs).(*ast.IndexExpr)
				w := pkg.Variable(lhs)
				writes = writes || element
				carries = carries || !element && w != nil && (w.Pos() < body.Pos() || body.End() <= w.Pos())
			}
		case nil, *ast.BlockStmt, *ast.IncDecStmt, *ast.IfStmt, *ast.Ident, *ast.BasicLit, *ast.BinaryExpr, *ast.UnaryExpr, *ast.ParenExpr:
		case *ast.SelectorExpr:
			return false
		case *ast.IndexExpr:
			ok = ok && pkg.Local(n.X) == v
		case *ast.CallExpr:
			tv := pkg.Info.Types[n.Fun]
			c := pkg.Calls[n]
			ok = ok && (tv.IsType() || tv.IsBuiltin() && !syntax.IsBuiltin(pkg.Info, n, "append") || c != nil && c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math")
		default:
			ok = false
		}
		return ok
	})
	return ok && !(writes && carries)
}

// takesAndMakes reports whether f returns tensors, and is given some, or lists of numbers to make them of, by itself or
// in its receiver. A method without results changes what the receiver holds.
func takesAndMakes(pkg *blocking.Package, f *blocking.Func) bool {
	holds := func(of *types.Tuple) bool {
		return slices.ContainsFunc(slices.Collect(of.Variables()), func(v *types.Var) bool { return pkg.HoldsTensors(v.Type()) })
	}
	ofTensors := f.Sig.Recv() != nil && pkg.HoldsTensors(f.Sig.Recv().Type())
	ofNumbers := slices.ContainsFunc(slices.Collect(f.Sig.Params().Variables()), func(v *types.Var) bool { return isNumbers(v.Type()) })
	return holds(f.Sig.Results()) && (holds(f.Sig.Params()) || ofTensors || ofNumbers) || ofTensors && f.Sig.Results().Len() == 0
}

// setsParam recognises a call that sets a parameter of a model to numbers of the host:
//
//	p.Set(tensor.From(sum, shape...))
func setsParam(c *blocking.Call) bool {
	if !c.Mutates() || c.API.Kind == tensorapi.Unknown || len(c.Expr.Args) != 1 {
		return false
	}
	call := syntax.AsCall(c.Expr.Args[0])
	return call != nil && isHost(c.In.Package, call)
}

// isDetour reports whether c, which waits for w, reads a number of what its function computes or is given, and each use
// of the number is an operand for which an operation on tensors takes a tensor as well. A condition may choose between
// numbers: a minimum does that on the device.
func isDetour(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) bool {
	if assign, ok := c.Value().Parent().Node().(*ast.AssignStmt); ok && len(assign.Lhs) == len(assign.Rhs) {
		if i := slices.Index(assign.Rhs, ast.Expr(c.Expr)); i >= 0 && len(pkg.Defs[pkg.Variable(assign.Lhs[i])]) > 1 {
			return false // the number that something begins with
		}
	}
	known := c.API.Kind == tensorapi.Read && c.Lib == tensorapi.Ours() && len(c.Expr.Args) == 0 ||
		c.API.Kind == tensorapi.Unknown && w.Kind == blocking.WaitCallee && w.Via != nil && !w.Via.InLoop && !w.Via.Guarded
	switch {
	case !known:
		return false
	case w.Operand == nil && !c.TakesTensor(): // it reads something of its own
		return false
	case w.Operand != nil && !pkg.Fresh(w.Operand, c.In, c.In.WholeLoop()) && !isOfParam(pkg, w.Operand, c.In):
		return false
	}
	computes := false
	for _, p := range Uses(pkg, c, c.In.WholeLoop()) {
		d := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
		switch {
		case p.Use == Kept && isCondition(p):
		case p.Use != Computes || d == nil || d.Lib != tensorapi.Ours() || !takesNumber(d, p):
			return false
		default:
			computes = true
		}
	}
	return computes
}

// takesNumber reports whether d computes with the number at p, or makes a tensor of it.
func takesNumber(d *blocking.Call, p Place) bool {
	name := d.Callee.Name()
	if d.API.Kind == tensorapi.Host {
		return (name == "Full" || name == "Scalar") && d.Expr.Args[0] == nodeOf(p.Cur)
	}
	return d.API.Kind == tensorapi.Op && (strings.HasSuffix(name, "Scalar") || name == "AddScaled" || name == "Clamp")
}

// copies reports whether c calls a function that reads a tensor, another one in each iteration of l, and returns one
// that it makes of host data; and what it waits for. The function enqueues nothing, so it makes a copy.
//
//	func toDevice(t *tensor.Tensor) *tensor.Tensor { return tensor.FromOn(gpu, t.Float32s(), t.Shape()...) }
func copies(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) (blocking.CallWait, bool) {
	s := c.Summary()
	if c.API.Kind != tensorapi.Unknown || !s.Makes || s.Enqueues || c.Dynamic {
		return blocking.CallWait{}, false
	}
	for _, w := range pkg.Waits(c) {
		if w.Operand != nil && !w.Via.Guarded && blocking.IsTensor(pkg.Info.TypeOf(w.Operand)) && pkg.Varies(w.Operand, l) {
			return w, true
		}
	}
	return blocking.CallWait{}, false
}

// isCopied reports whether c reads all elements of another tensor in each iteration of l, only to make
// a tensor of them.
func isCopied(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	call, ok := c.Value().Parent().Node().(*ast.CallExpr)
	return ok && readsAll(pkg, c, l) && isHost(pkg, call)
}

// isHost reports whether a call of a function of ours makes a tensor of host data.
func isHost(pkg *blocking.Package, call *ast.CallExpr) bool {
	d := pkg.Calls[call]
	return d != nil && d.API.Kind == tensorapi.Host && d.Lib == tensorapi.Ours()
}

// isRemade reports whether c reads all elements of something else in each iteration of l, which changes them, or has a
// function do that, and makes a tensor of them.
//
//	w := p.Value().Float32s()
//	for i := range w {
//		w[i] *= decay
//	}
//	p.Set(tensor.From(w, p.Value().Shape()...))
func isRemade(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if !readsAll(pkg, c, l) {
		return false
	}
	for cur := range c.Cur.Enclosing() {
		var v *types.Var
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			if isHost(pkg, n) {
				return true
			}
			if n == c.Expr || isNumbers(typeOf(pkg, n)) {
				continue
			}
			// A function of others that is given where to put its result.
			if d := pkg.Calls[n]; d != nil && d.Lib == nil && d.Target == nil {
				for _, e := range n.Args {
					if u, ok := ast.Unparen(e).(*ast.UnaryExpr); ok && u.Op == token.AND {
						e = u.X
					}
					if v := pkg.Local(e); v != nil && l.Declares(v) && becomesTensor(pkg, map[types.Object]bool{v: true}, l) {
						return true
					}
				}
			}
			return false
		case *ast.ParenExpr, *ast.SliceExpr:
			continue
		case *ast.AssignStmt:
			if i := slices.IndexFunc(n.Rhs, func(e ast.Expr) bool { return e.Pos() <= c.Expr.Pos() && c.Expr.End() <= e.End() }); i >= 0 {
				v = pkg.Variable(n.Lhs[i])
			}
		case *ast.RangeStmt:
			if n.Value != nil && n.X.Pos() <= c.Expr.Pos() && c.Expr.End() <= n.X.End() {
				v = pkg.Variable(n.Value)
			}
		}
		return v != nil && !v.IsField() && becomesTensor(pkg, map[types.Object]bool{v: true}, l)
	}
	return false
}

// readsAll reports whether c reads all elements of something else in each iteration of l.
func readsAll(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	_, isNumber := typeOf(pkg, c.Expr).Underlying().(*types.Basic)
	return !isNumber && !blocking.IsTensor(typeOf(pkg, c.Expr)) && pkg.Varies(c.Operand(c.API.Arg)[0], l)
}

// isListElement reports whether c reads an element of a list that l goes through, or a field of one, and the value only
// becomes an operand of what l enqueues. The tensors in the list were made elsewhere.
func isListElement(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	of := ast.Unparen(c.Operand(c.API.Arg)[0])
	for {
		sel, ok := of.(*ast.SelectorExpr)
		if !ok {
			break
		}
		of = ast.Unparen(sel.X)
	}
	var list ast.Expr
	switch e := of.(type) {
	case *ast.IndexExpr:
		if !pkg.Counts(e.Index, l) {
			return false
		}
		list = e.X
	case *ast.Ident:
		s, ok := l.Stmt.(*ast.RangeStmt)
		d := pkg.Defs[pkg.Local(e)]
		if !ok || len(d) != 1 || d[0].Kind != blocking.DefElem || d[0].Value != s.X {
			return false
		}
		list = s.X
	}
	if list == nil || pkg.Varies(list, l) || pkg.IsHostList(list) || !isPlainRead(c) {
		return false
	}
	places := Uses(pkg, c, l)
	return len(places) > 0 && !slices.ContainsFunc(places, func(p Place) bool { return p.Use != Computes })
}
