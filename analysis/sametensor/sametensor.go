package sametensor

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT033.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT033", Package: "sametensor", Doc: doc, Infos: true, Values: true, InTests: true, Check: check}

func check(p *lint.Pass) {
	for cur := range p.Preorder((*ast.BinaryExpr)(nil), (*ast.CallExpr)(nil), (*ast.IndexExpr)(nil), (*ast.SwitchStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compare(p, n, n.X, n.Y, types.ExprString(n.X)+" "+n.Op.String()+" "+types.ExprString(n.Y), n.Op == token.EQL && isRefused(p, cur), isAnswer(p.Package, cur))
			}
		case *ast.SwitchStmt:
			for _, s := range n.Body.List {
				for _, e := range s.(*ast.CaseClause).List {
					if n.Tag != nil {
						compare(p, e, n.Tag, e, "case "+types.ExprString(e), false, false)
					}
				}
			}
		case *ast.IndexExpr:
			lookUp(p, cur, n)
		case *ast.CallExpr:
			deepEqual(p, n)
			if c := p.Calls[n]; c != nil {
				compareBy(p, c)
			}
		}
	}
}

// compare reports a comparison of x and y, written as text, if both are tensors. refused means that a
// test fails if the two are the same tensor, and answer that the comparison is all that a function does.
func compare(p *lint.Pass, n, x, y ast.Expr, text string, refused, answer bool) {
	if hasTensors(p, x) && hasTensors(p, y) {
		report(p, lint.Warning, n, text+" compares the tensors in two values by identity")
		return
	}
	if !isTensor(p, x) || !isTensor(p, y) || refused && !areNeighbours(p.Package, x, y) {
		return
	}
	severity := lint.Info
	says := "compares two tensors by identity, not by value"
	a, b := p.MadeBy(x), p.MadeBy(y)
	switch {
	case disjoint(a, b) || madeInside(p.Package, a, y) || madeInside(p.Package, b, x) || isCallOf(a, x) || isCallOf(b, y) ||
		isNew(p.Package, x, y) || isNew(p.Package, y, x) || isReplaced(p.Package, n, x, y) || isReplaced(p.Package, n, y, x):
		severity = lint.Warning
		says = "compares two tensors that are never the same one"
	case answer, areNeighbours(p.Package, x, y), isOfBefore(p.Package, n, x, y), isOfBefore(p.Package, n, y, x), correspond(p.Package, x, y), expected(p, n, x, y), isFound(p.Package, n, x, y), isFound(p.Package, n, y, x):
		severity = lint.Warning
	}
	report(p, severity, n, text+" "+says)
}

// report reports a comparison of tensors.
func report(p *lint.Pass, s lint.Severity, n ast.Expr, says string) {
	p.Report(s, analysis.Diagnostic{Pos: n.Pos(), End: n.End(), Message: says + "; compare elements with Eq, or what they are read as"})
}

// isRefused reports whether cur is the condition under which a test fails. The test then wants two
// different tensors, as one does that checks that a function returns a new one.
//
//	if got == x {
//		t.Error("changed in place")
//	}
func isRefused(p *lint.Pass, cur inspector.Cursor) bool {
	stmt, ok := cur.Parent().Node().(*ast.IfStmt)
	if !ok {
		return false
	}
	fails := false
	for c := range cur.Parent().Preorder((*ast.CallExpr)(nil)) {
		call := p.Calls[c.Node().(*ast.CallExpr)]
		fails = fails || call != nil && stmt.Body.Pos() <= call.Expr.Pos() && call.Expr.Pos() < stmt.Body.End() && blocking.FailsTest(call.Callee)
	}
	return fails
}

// expected reports whether a test fails if x and y, results of two calls of one function that computes, differ. It asks
// whether the function gives the same values twice.
//
//	if a, b := solve(x), solve(x); a != b {
//		t.Error("not deterministic")
//	}
func expected(p *lint.Pass, n ast.Node, x, y ast.Expr) bool {
	by := func(e ast.Expr) *blocking.Call {
		if d := p.Defs[p.Local(e)]; len(d) == 1 && d[0].Kind == blocking.DefValue {
			e = d[0].Value
		}
		return p.Calls[syntax.AsCall(syntax.OrNil(e))]
	}
	b, ok := n.(*ast.BinaryExpr)
	c, d := by(x), by(y)
	if !ok || b.Op != token.NEQ || c == nil || d == nil || c == d || types.ExprString(c.Expr.Fun) != types.ExprString(d.Expr.Fun) || !c.Enqueues() {
		return false
	}
	cur, ok := p.Cursor(n.Pos())
	if !ok {
		return false
	}
	for stmt := range cur.Enclosing((*ast.IfStmt)(nil)) {
		n := stmt.Node().(*ast.IfStmt)
		return n.Cond == b && slices.ContainsFunc(c.In.Calls, func(e *blocking.Call) bool {
			return n.Body.Pos() <= e.Expr.Pos() && e.Expr.Pos() < n.Body.End() && blocking.FailsTest(e.Callee)
		})
	}
	return false
}

// isOfBefore reports whether old holds what field held before a call that is given its struct, and the function returns
// the comparison. It asks whether the call has changed the values.
//
//	before := s.x
//	s.step()
//	return s.x == before
func isOfBefore(pkg *blocking.Package, n ast.Expr, field, old ast.Expr) bool {
	sel, ok := ast.Unparen(field).(*ast.SelectorExpr)
	d := pkg.Defs[pkg.Local(old)]
	cur, found := pkg.Cursor(n.Pos())
	if !ok || !found || len(d) != 1 || d[0].Kind != blocking.DefValue || types.ExprString(d[0].Value) != types.ExprString(sel) {
		return false
	}
	f := pkg.FuncAt(cur)
	returned := slices.ContainsFunc(f.Returns, func(r *ast.ReturnStmt) bool { return len(r.Results) == 1 && ast.Unparen(r.Results[0]) == n })
	return returned && !meansHandles(f.Name) && slices.ContainsFunc(f.Calls, func(c *blocking.Call) bool {
		return d[0].Pos < c.Expr.Pos() && c.Expr.Pos() < n.Pos() && c.Enqueues() && slices.ContainsFunc(c.AllOperands(), func(e ast.Expr) bool {
			return types.ExprString(e) == types.ExprString(sel.X)
		})
	})
}

// isReplaced reports whether old holds what now, a variable or field, held before it was always set to a new tensor: by
// the function itself, or by a function of the package that is given the struct. The two are never the same one.
//
//	before := s.x
//	s.step() // sets s.x
//	if s.x == before {
func isReplaced(pkg *blocking.Package, n ast.Node, now, old ast.Expr) bool {
	was, v := pkg.Local(old), pkg.Variable(now)
	cur, found := pkg.Cursor(n.Pos())
	if !found || was == nil || v == nil || was == v || pkg.Params[was].Of != nil || len(pkg.Defs[was]) == 0 {
		return false
	}
	f := pkg.FuncAt(cur)
	if f == nil || meansHandles(f.Name) || slices.ContainsFunc(pkg.Defs[was], func(d blocking.Def) bool {
		return d.In != f || d.Kind != blocking.DefValue || types.ExprString(d.Value) != types.ExprString(ast.Unparen(now))
	}) {
		return false
	}
	fl := f.Flow()
	here := fl.BlockAt(n.Pos())
	// last is where v was set for the last time before n, in the same iteration of the same loops.
	last, isNew := token.NoPos, false
	set := func(pos token.Pos, isNewThere bool) {
		if pos < n.Pos() && pos > last {
			there := fl.BlockAt(pos)
			last, isNew = pos, isNewThere && here >= 0 && there >= 0 && fl.Dominates(there, here) && !slices.ContainsFunc(fl.Loops, func(l *blocking.Loop) bool { return l.Blocks[here] != l.Blocks[there] })
		}
	}
	for _, e := range pkg.Defs[v] {
		value := e.Kind == blocking.DefValue && e.Index == 0 && isComputed(pkg, e.Value)
		if e.In == f {
			set(e.Pos, value)
			continue
		}
		sel, ok := ast.Unparen(now).(*ast.SelectorExpr)
		if e.In == nil || e.In.Lit != nil || !v.IsField() || !ok {
			continue
		}
		there := e.In.Flow()
		always := len(there.Conditions(there.BlockAt(e.Pos))) == 0
		for _, c := range f.Calls {
			if c.Target == e.In && !c.Away && slices.ContainsFunc(c.AllOperands(), func(o ast.Expr) bool { return types.ExprString(o) == types.ExprString(sel.X) }) {
				set(c.Expr.Pos(), value && always)
			}
		}
	}
	return isNew && !slices.ContainsFunc(pkg.Defs[was], func(d blocking.Def) bool { return last < d.Pos && d.Pos < n.Pos() })
}

// isComputed reports whether e is the result of an operation, which is always a new tensor.
func isComputed(pkg *blocking.Package, e ast.Expr) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	return c != nil && c.API.Kind == tensorapi.Op && c.Lib == tensorapi.Ours() && !blocking.IsForward(c)
}

// areNeighbours reports whether x and y are the first and the last element of one list, or one element and the next.
// Who compares these asks whether the values have changed from one to the other.
//
//	if history[0] == history[len(history)-1] {
func areNeighbours(pkg *blocking.Package, x, y ast.Expr) bool {
	a, ok := ast.Unparen(x).(*ast.IndexExpr)
	b, isIndex := ast.Unparen(y).(*ast.IndexExpr)
	if !ok || !isIndex || pkg.Variable(a.X) == nil || types.ExprString(a.X) != types.ExprString(b.X) || syntax.IsMap(pkg.Info.TypeOf(a.X)) {
		return false
	}
	cur, found := pkg.Cursor(x.Pos())
	if !found || pkg.FuncAt(cur) == nil || meansHandles(pkg.FuncAt(cur).Outermost().Name) {
		return false
	}
	i, j, last := types.ExprString(a.Index), types.ExprString(b.Index), "len("+types.ExprString(a.X)+") - "
	return i == "0" && j == last+"1" || j == "0" && i == last+"1" || i == last+"1" && j == last+"2" || j == last+"1" && i == last+"2" ||
		j == i+" - 1" || i == j+" - 1" || j == i+" + 1" || i == j+" + 1"
}

// isFound reports whether elem is what a loop goes through, wanted is a tensor that the function is given, and the
// function returns at once where they are the same. It looks for a value then, unless its name speaks of handles.
//
//	for name, v := range list {
//		if v == wanted {
//			return name
//		}
//	}
func isFound(pkg *blocking.Package, n ast.Node, elem, wanted ast.Expr) bool {
	d := pkg.Defs[pkg.Local(elem)]
	w := pkg.Local(wanted)
	b, ok := n.(*ast.BinaryExpr)
	cur, found := pkg.Cursor(n.Pos())
	if !ok || !found || b.Op != token.EQL || len(d) != 1 || d[0].Kind != blocking.DefElem || w == nil || pkg.Params[w].Of == nil || len(pkg.Defs[w]) > 0 {
		return false
	}
	f := pkg.FuncAt(cur)
	names := f.Outermost().Name
	if recv := f.Sig.Recv(); recv != nil {
		names += " " + recv.Type().String()
	}
	if isCache := strings.Contains(strings.ToLower(names), "cache") || strings.Contains(strings.ToLower(names), "memo"); isCache || meansHandles(names) || f.Sig.Results().Len() == 0 {
		return false
	}
	for stmt := range cur.Enclosing((*ast.IfStmt)(nil)) {
		n := stmt.Node().(*ast.IfStmt)
		if n.Cond != b || len(n.Body.List) != 1 {
			return false
		}
		_, isReturn := n.Body.List[0].(*ast.ReturnStmt)
		return isReturn
	}
	return false
}

// compareBy reports a call of a function that compares tensors by ==: a generic one, one of package slices or maps
// that compares all elements of two lists, and one that looks for a tensor in a list or map, if the call itself has
// made that, or only asks whether it is there.
//
//	slices.Index(keys, x.Flatten())
func compareBy(p *lint.Pass, c *blocking.Call) {
	var operands []ast.Expr
	for i, e := range c.Expr.Args {
		if c.Summary().Compares.Has(i) {
			operands = append(operands, e)
		}
	}
	if len(operands) == 2 {
		compare(p, c.Expr, operands[0], operands[1], types.ExprString(c.Expr), false, false)
		for i, e := range operands {
			if isTensor(p, e) && isList(p, operands[1-i]) && isUnknownElsewhere(p.Package, e) {
				report(p, lint.Warning, c.Expr, blocking.CalleeName(c)+" looks for a tensor that was just made, and so is in no list")
			}
		}
	}
	if c.Callee == nil {
		return
	}
	switch c.Callee.Origin().FullName() {
	case "slices.Equal", "maps.Equal":
		if isList(p, c.Expr.Args[0]) && isList(p, c.Expr.Args[1]) && correspond(p.Package, c.Expr.Args[0], c.Expr.Args[1]) {
			report(p, lint.Warning, c.Expr, types.ExprString(c.Expr)+" compares tensors by identity, not by value")
		}
	case "slices.Compact":
		if isList(p, c.Expr.Args[0]) {
			report(p, lint.Warning, c.Expr, types.ExprString(c.Expr)+" compares tensors by identity, not by value")
		}
	case "slices.Index", "slices.Contains":
		e := c.Expr.Args[1]
		switch {
		case !isTensor(p, e):
		case isUnknownElsewhere(p.Package, e):
			report(p, lint.Warning, c.Expr, blocking.CalleeName(c)+" looks for a tensor that was just made, and so is in no list")
		case answers(c):
			report(p, lint.Warning, c.Expr, blocking.CalleeName(c)+" compares tensors by identity, not by value")
		}
	case "(*sync.Map).Load", "(*sync.Map).LoadOrStore", "(*sync.Map).LoadAndDelete", "(*sync.Map).Delete":
		if e := c.Expr.Args[0]; isTensor(p, e) && isUnknownElsewhere(p.Package, e) {
			report(p, lint.Warning, c.Expr, blocking.CalleeName(c)+" looks for a tensor that was just made, and so is no key of a map")
		}
	}
}

// isAnswer reports whether a function returns the comparison at cur of two of its operands. If its name speaks of
// handles, that is what it is for.
//
//	list = slices.CompactFunc(list, func(x, y *tensor.Tensor) bool { return x == y })
func isAnswer(pkg *blocking.Package, cur inspector.Cursor) bool {
	for syntax.IsParen(cur.Parent().Node()) {
		cur = cur.Parent()
	}
	ret, ok := cur.Parent().Node().(*ast.ReturnStmt)
	n, f := cur.Node(), pkg.FuncAt(cur)
	for {
		paren, ok := n.(*ast.ParenExpr)
		if !ok {
			break
		}
		n = paren.X
	}
	b, isBinary := n.(*ast.BinaryExpr)
	if !ok || !isBinary || f == nil || len(ret.Results) != 1 || len(f.Returns) != 1 || meansHandles(f.Name) {
		return false
	}
	if c := f.PassedTo(); c != nil && syntax.IsFullName(c.Callee, "slices.ContainsFunc") {
		return answers(c)
	}
	x, y := pkg.Local(b.X), pkg.Local(b.Y)
	return x != nil && y != nil && x != y && pkg.Params[x].Of == f && pkg.Params[y].Of == f && len(pkg.Defs[x])+len(pkg.Defs[y]) == 0
}

// answers reports whether c is what its function returns, as whether a list has something.
func answers(c *blocking.Call) bool {
	ret, ok := c.Value().Parent().Node().(*ast.ReturnStmt)
	recv := c.In.Sig.Recv()
	return ok && len(ret.Results) == 1 && !meansHandles(c.In.Name) && (recv == nil || !meansHandles(recv.Type().String()))
}

// meansHandles reports whether the name of a function or type speaks of handles: whether they are shared, owned or
// still in use.
func meansHandles(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"alias", "share", "tied", "handle", "ident", "owns", "owned", "holds", "keep", "kept", "live", "track", "regist", "visit", "pinned"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}

// lookUp reports an element of a map whose key is a tensor that was just made: no element has that key. To set one for
// a tensor in a variable is no mistake, as others may ask for it.
//
//	if seen[x.Round()] {
func lookUp(p *lint.Pass, cur inspector.Cursor, n *ast.IndexExpr) {
	t := p.TypesInfo.TypeOf(n.X)
	if t == nil || !syntax.IsMap(t) {
		return
	}
	if lit, ok := ast.Unparen(p.OnlyValue(n.Index)).(*ast.CompositeLit); ok && hasTensors(p, n.Index) && cur.ParentEdgeKind() != edge.AssignStmt_Lhs {
		for _, e := range lit.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
			}
			if isTensor(p, e) && isUnknownElsewhere(p.Package, e) {
				report(p, lint.Warning, n, types.ExprString(n)+" looks for a key with a tensor that was just made, and so is in no key of a map")
				return
			}
		}
	}
	if !isTensor(p, n.Index) {
		return
	}
	if isSet := cur.ParentEdgeKind() == edge.AssignStmt_Lhs; isSet && !isCallOf(p.MadeBy(n.Index), n.Index) || !isUnknownElsewhere(p.Package, n.Index) {
		return
	}
	report(p, lint.Warning, n, types.ExprString(n)+" looks for a tensor that was just made, and so is no key of a map")
}

// isUnknownElsewhere reports whether nothing but e can be the tensor that e stands for.
func isUnknownElsewhere(pkg *blocking.Package, e ast.Expr) bool {
	return isCallOf(pkg.MadeBy(e), e) || isNew(pkg, e, nil)
}

// isList reports whether e is a slice or map of tensors.
func isList(p *lint.Pass, e ast.Expr) bool {
	t := p.TypesInfo.TypeOf(e)
	if t == nil {
		return false
	}
	elem := syntax.ElementType(t)
	return elem != nil && blocking.IsTensor(elem)
}

// isTensor reports whether e is a tensor, and not nil.
func isTensor(p *lint.Pass, e ast.Expr) bool {
	tv := p.TypesInfo.Types[e]
	return !tv.IsNil() && blocking.IsTensor(tv.Type)
}

// hasTensors reports whether e is a struct or array with tensors, which == compares.
func hasTensors(p *lint.Pass, e ast.Expr) bool {
	t := p.TypesInfo.TypeOf(e)
	if t == nil || blocking.IsTensor(t) {
		return false
	}
	switch t := t.Underlying().(type) {
	case *types.Array:
		return blocking.IsTensor(t.Elem())
	case *types.Struct:
		for f := range t.Fields() {
			if blocking.IsTensor(f.Type()) {
				return true
			}
		}
	}
	return false
}

// disjoint reports whether both lists are known and have no call in common.
func disjoint(x, y []*ast.CallExpr) bool {
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	for _, a := range x {
		for _, b := range y {
			if a == b {
				return false
			}
		}
	}
	return true
}

// isCallOf reports whether e itself is the only call in the list. Nobody else can have what it returns.
func isCallOf(calls []*ast.CallExpr, e ast.Expr) bool {
	return len(calls) == 1 && ast.Unparen(e) == calls[0]
}

func deepEqual(p *lint.Pass, n *ast.CallExpr) {
	fn, ok := typeutil.Callee(p.TypesInfo, n).(*types.Func)
	if !ok || fn.FullName() != "reflect.DeepEqual" || len(n.Args) != 2 || !holdsTensor(p.Package, n.Args[0]) || !holdsTensor(p.Package, n.Args[1]) {
		return
	}
	report(p, lint.Warning, n, types.ExprString(n.Fun)+" compares how tensors are kept, not their values")
}

// holdsTensor reports whether e is a tensor or contains some, in elements, fields
// or what it points to.
func holdsTensor(pkg *blocking.Package, e ast.Expr) bool {
	tv := pkg.Info.Types[e]
	return tv.Type != nil && !tv.IsNil() && pkg.HoldsTensors(tv.Type)
}

// madeInside reports whether param is a parameter that is never assigned, and the calls, which make
// tensors, are in its function. The tensor that was passed is then older than theirs.
func madeInside(pkg *blocking.Package, calls []*ast.CallExpr, param ast.Expr) bool {
	id, ok := ast.Unparen(param).(*ast.Ident)
	if !ok || len(calls) == 0 || len(pkg.Funcs) == 0 {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok || len(pkg.Defs[v]) > 0 {
		return false
	}
	p, ok := pkg.Params[v]
	return ok && !slices.ContainsFunc(calls, func(call *ast.CallExpr) bool {
		for f := range pkg.Calls[call].In.In() {
			if f == p.Of {
				return false
			}
		}
		return true
	})
}

// isNew reports whether x is a variable for whose only tensor, made on the way to x, nobody else has the handle: it was
// only an operand of library functions since. y, if not nil, must not be that variable.
//
//	next := f(x)
//	if next == cur {
func isNew(pkg *blocking.Package, x, y ast.Expr) bool {
	v := pkg.Local(x)
	if v == nil || len(pkg.Defs[v]) != 1 || pkg.Defs[v][0].Kind != blocking.DefValue || pkg.Params[v].Of != nil || y != nil && pkg.Local(y) == v {
		return false
	}
	made := pkg.Defs[v][0]
	if pkg.MadeBy(x) == nil || syntax.IsIdent(made.Value) || made.In == nil {
		return false
	}
	pos, ok := placeIn(pkg, made.In, x.Pos())
	if !ok {
		return false
	}
	fl := made.In.Flow()
	here := fl.BlockAt(pos)
	if !fl.Dominates(fl.BlockAt(made.Pos), here) {
		return false
	}
	for use := range pkg.UsesOf(v, made.In) {
		if isOperand(pkg, use) {
			continue
		}
		at := use.Node().Pos()
		between := at < pos || slices.ContainsFunc(fl.Loops, func(l *blocking.Loop) bool {
			return l.Blocks[here] && l.Blocks[fl.BlockAt(at)] && !l.Blocks[fl.BlockAt(made.Pos)]
		})
		if pkg.FuncAt(use) != made.In || between {
			return false // somebody else may have it
		}
	}
	return true
}

// placeIn returns the place in f where what is at pos runs: pos itself, or the literal that it is in, if that runs
// where it is written.
func placeIn(pkg *blocking.Package, f *blocking.Func, pos token.Pos) (token.Pos, bool) {
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return pos, false
	}
	g := pkg.FuncAt(cur)
	for g != nil && g != f {
		if h := g.Runs(); h != blocking.Once && h != blocking.Looping {
			return pos, false
		}
		pos, g = g.Lit.Pos(), g.Parent
	}
	return pos, g == f
}

// isOperand reports whether a use of a tensor gives nobody its handle: a comparison, an operand of a function of a
// library, or the key by which something is looked for.
func isOperand(pkg *blocking.Package, use inspector.Cursor) bool {
	parent := use.Parent()
	switch n := parent.Node().(type) {
	case *ast.BinaryExpr:
		return true
	case *ast.SelectorExpr:
		call, ok := parent.Parent().Node().(*ast.CallExpr)
		return ok && call.Fun == n && pkg.Calls[call] != nil && pkg.Calls[call].API.Kind != tensorapi.Unknown
	case *ast.IndexExpr:
		return n.Index == use.Node() && parent.ParentEdgeKind() != edge.AssignStmt_Lhs
	case *ast.CallExpr:
		c := pkg.Calls[n]
		if c == nil {
			return false
		}
		return c.API.Kind != tensorapi.Unknown && c.API.Kind != tensorapi.Call || syntax.IsFullName(c.Callee, "slices.Contains") || syntax.IsFullName(c.Callee, "slices.Index")
	}
	return false
}

// correspond reports whether x and y are the same part of two things of one type, each in a variable of the function:
// elements of two lists with one index, elements of two maps with one key, fields of two structs, or the lists
// themselves. Who compares these asks whether the two have the same values. Who compares a field with something else
// may ask whether that is what a result was computed from, which is a question about the handle.
//
//	for i, v := range a {
//		if v != b[i] {
func correspond(pkg *blocking.Package, x, y ast.Expr) bool {
	v, a := part(pkg, x, 0)
	w, b := part(pkg, y, 0)
	if v == nil || w == nil || v == w || a != b || !types.Identical(v.Type(), w.Type()) {
		return false
	}
	if a == "" && blocking.IsTensor(v.Type()) {
		return false // two tensors, and nothing says why
	}
	cur, ok := pkg.Cursor(x.Pos())
	return ok && pkg.FuncAt(cur) != nil && !meansHandles(pkg.FuncAt(cur).Outermost().Name)
}

// part returns the variable that e is a part of, and which part of it: ".f", "[i]". An element that a loop ranges over
// is that of its list. Of what is no part, it returns no variable.
func part(pkg *blocking.Package, e ast.Expr, depth int) (v *types.Var, path string) {
	if depth > 4 {
		return nil, ""
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := pkg.Local(e)
		if v == nil {
			return nil, ""
		}
		d := pkg.Defs[v]
		if len(d) != 1 || pkg.Params[v].Of != nil {
			return v, ""
		}
		switch value := ast.Unparen(syntax.OrNil(d[0].Value)).(type) {
		case *ast.IndexExpr:
			if d[0].Kind == blocking.DefValue && d[0].Index == 0 {
				return part(pkg, value, depth+1)
			}
		case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr:
			if d[0].Kind != blocking.DefElem {
				break
			}
			cur, ok := pkg.Cursor(d[0].Pos)
			if !ok {
				break
			}
			for c := range cur.Enclosing((*ast.RangeStmt)(nil)) {
				key := syntax.OrNil(c.Node().(*ast.RangeStmt).Key)
				list := d[0].Value
				if call := pkg.Calls[syntax.AsCall(list)]; call != nil { // an iterator over what it is given
					if of := call.AllOperands(); len(of) == 1 {
						list = of[0]
					}
				}
				v, path := part(pkg, list, depth+1)
				return v, path + "[" + types.ExprString(key) + "]"
			}
		}
		return v, ""
	case *ast.SelectorExpr:
		if s := pkg.Info.Selections[e]; s != nil && s.Kind() == types.FieldVal {
			v, path := part(pkg, e.X, depth+1)
			return v, path + "." + e.Sel.Name
		}
	case *ast.IndexExpr:
		v, path := part(pkg, e.X, depth+1)
		return v, path + "[" + types.ExprString(e.Index) + "]"
	}
	return nil, ""
}
