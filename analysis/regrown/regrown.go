package regrown

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT035.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT035", Package: "regrown", Doc: doc, Values: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if l, what := changesPart(f.Package, c); l != nil {
				p.Report(lint.Warning, analysis.Diagnostic{
					Pos:     c.Expr.Pos(),
					End:     c.Expr.End(),
					Message: types.ExprString(c.Operand(tensorapi.Recv)[0]) + " is copied in each iteration to change one " + what,
					Related: l.Related(),
				})
			}
		}
		for _, r := range regrowths(f) {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     r.Call.Expr.Pos(),
				End:     r.Call.Expr.End(),
				Message: types.ExprString(r.All) + " is copied " + r.often() + " to grow by a piece; " + r.remedy(),
				Related: r.Loop.Related(),
			})
		}
	}
}

// changesPart returns the loop in which c copies a tensor to change a part of it, another one in each iteration, if the
// copy takes the tensor's place; or nil. It also says what the part is, and what to do instead.
//
//	x = x.SetIndex(y, tensor.At(i), tensor.At(j))
//	x = x.SetIndex(row, tensor.At(i))
func changesPart(pkg *blocking.Package, c *blocking.Call) (l *blocking.Loop, what string) {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	if !ok || c.Away || len(assign.Lhs) != 1 || len(c.Expr.Args) < 2 || len(c.Operand(tensorapi.Recv)) != 1 ||
		types.ExprString(assign.Lhs[0]) != types.ExprString(c.Operand(tensorapi.Recv)[0]) {
		return nil, ""
	}
	isElement := len(c.Expr.Args) > 2
	switch {
	case c.IsFunc("Tensor.SetIndex"):
	case c.IsFunc("Tensor.IndexCopy") || c.IsFunc("Tensor.IndexAdd") || c.IsFunc("Tensor.Scatter") || c.IsFunc("Tensor.ScatterAdd"):
		if !isOneIndex(pkg, c.Expr.Args[1]) {
			return nil, ""
		}
		isElement = false
	default:
		return nil, ""
	}
	for _, e := range c.Expr.Args[1:] {
		if !c.IsFunc("Tensor.SetIndex") {
			break
		}
		d := pkg.Calls[syntax.AsCall(pkg.OnlyValue(e))]
		if d == nil || d.Callee == nil || d.API.Kind == tensorapi.Unknown || slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return blocking.IsTensor(pkg.Info.TypeOf(e)) }) {
			return nil, "" // of values on the device
		}
		isElement = isElement && d.Callee.Name() == "At"
	}
	v := pkg.Variable(assign.Lhs[0])
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small {
			continue
		}
		if v == nil || l.Stmt == nil || !v.IsField() && l.Declares(v) || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always ||
			!slices.ContainsFunc(c.Expr.Args[1:], func(e ast.Expr) bool { return pkg.Varies(e, l) }) {
			break
		}
		switch {
		case isElement:
			return l, "element; change the elements on the host, or all at once with ScatterAdd"
		case !isKept(pkg, v, c, l) && onlyGrows(pkg, v, c, l) && addsTo(pkg, c):
			return l, "part, to which it adds; add all at once with IndexAdd or ScatterAdd"
		case !isKept(pkg, v, c, l) && onlyGrows(pkg, v, c, l):
			return l, "part; collect the parts in a list and Stack them after the loop, or set all at once with IndexCopy"
		}
		break
	}
	return nil, ""
}

// addsTo reports whether the part that c sets is computed from the same part.
func addsTo(pkg *blocking.Package, c *blocking.Call) bool {
	return slices.ContainsFunc(c.In.Calls, func(d *blocking.Call) bool { return d.Lib == tensorapi.Ours() && isSamePart(pkg, d, c) })
}

// isSamePart reports whether d takes the part of a tensor that c, a call of SetIndex, sets:
//
//	x = x.SetIndex(x.Index(part).Add(y), part)
//	x = x.SetIndex(x.Row(i).Add(y), tensor.At(i))
func isSamePart(pkg *blocking.Package, d, c *blocking.Call) bool {
	at := c.Expr.Args[1:]
	if !c.IsFunc("Tensor.SetIndex") || !isIn(pkg, d, c.Expr.Args[0]) || len(d.Operand(tensorapi.Recv)) != 1 ||
		types.ExprString(d.Operand(tensorapi.Recv)[0]) != types.ExprString(c.Operand(tensorapi.Recv)[0]) {
		return false
	}
	same := func(x, y ast.Expr) bool { return types.ExprString(x) == types.ExprString(y) }
	if d.IsFunc("Tensor.Index") {
		return slices.EqualFunc(d.Expr.Args, at, same)
	}
	one := pkg.Calls[syntax.AsCall(pkg.OnlyValue(at[0]))]
	return d.IsFunc("Tensor.Row") && len(at) == 1 && one != nil && one.Callee.Name() == "At" && slices.EqualFunc(d.Expr.Args, one.Expr.Args, same)
}

// isIn reports whether d is a part of e, or of the only value of a variable that e alone uses.
func isIn(pkg *blocking.Package, d *blocking.Call, e ast.Expr) bool {
	in := func(n ast.Node) bool { return e.Pos() <= n.Pos() && n.End() <= e.End() }
	assign, ok := d.Value().Parent().Node().(*ast.AssignStmt)
	if in(d.Expr) || !ok || len(assign.Lhs) != 1 {
		return in(d.Expr)
	}
	v := pkg.Variable(assign.Lhs[0])
	if v == nil || v.IsField() || len(pkg.Defs[v]) != 1 {
		return false
	}
	for use := range pkg.UsesOf(v, d.In) {
		if !syntax.IsTarget(use) && !in(use.Node()) {
			return false
		}
	}
	return true
}

// isOneIndex reports whether e makes a tensor of one number.
func isOneIndex(pkg *blocking.Package, e ast.Expr) bool {
	d := pkg.Calls[syntax.AsCall(e)]
	if d == nil || d.API.Kind != tensorapi.Host || len(d.Expr.Args) == 0 {
		return false
	}
	lit, ok := ast.Unparen(d.Expr.Args[0]).(*ast.CompositeLit)
	return ok && len(lit.Elts) == 1
}

// A regrowth is a call that copies a tensor to add a piece to it. It is in a loop, or in a method that
// is called again and again.
type regrowth struct {
	Call *blocking.Call
	All  ast.Expr // the tensor that grows
	Loop *blocking.Loop
	// Used reports whether each iteration needs what there is so far.
	Used bool
}

func (r regrowth) often() string {
	if r.Loop.Stmt == nil {
		return "by each call"
	}
	return "in each iteration"
}

func (r regrowth) remedy() string {
	const collect = "collect the pieces in a list and concatenate once"
	switch {
	case r.Used:
		return "that takes longer each time; bound it, or add many pieces at once"
	case r.Loop.Stmt == nil:
		return collect + ", when they are asked for"
	}
	return collect + " after the loop"
}

// regrowths lists those of f, not of the literals in it.
func regrowths(f *blocking.Func) []regrowth {
	var list []regrowth
	for _, c := range f.Calls {
		all := regrownBy(f.Package, c)
		if all == nil {
			continue
		}
		v := f.Package.Variable(all)
		inLoop := false
		for l := range f.Package.LoopsAround(f, c.Expr.Pos()) {
			inLoop = true
			if isRegrown(f.Package, all, c, l) {
				used := !onlyGrows(f.Package, v, c, l)
				if used && (isBounded(f.Package, l) || f.Package.Any(l, asksWorld)) {
					break // each iteration needs all that there is, such as what the world has answered
				}
				list = append(list, regrowth{c, all, l, used})
				break
			}
		}
		if l := loopOfLiteral(f, all, c); !inLoop && l != nil {
			list = append(list, regrowth{c, all, l, !onlyGrows(f.Package, v, c, l)})
		} else if l := f.WholeLoop(); !inLoop && isRegrownByCalls(f.Package, v, c, l) {
			list = append(list, regrowth{c, all, l, false})
		}
	}
	return list
}

// isBounded reports whether the statement of l says when to end: it counts, or compares sizes.
//
//	for tokens.Dim(0) < longest {
func isBounded(pkg *blocking.Package, l *blocking.Loop) bool {
	isSize := func(e ast.Expr) bool {
		basic, ok := pkg.Info.TypeOf(e).Underlying().(*types.Basic)
		return ok && basic.Info()&types.IsInteger != 0
	}
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		return isSize(s.X)
	case *ast.ForStmt:
		found := false
		ast.Inspect(syntax.OrNil(s.Cond), func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			found = found || ok && slices.Contains([]token.Token{token.LSS, token.LEQ, token.GTR, token.GEQ, token.NEQ}, b.Op) && isSize(b.X)
			return !found
		})
		return found
	}
	return false
}

// loopOfLiteral returns a loop that calls f, a literal in a variable, in each iteration, if c copies all there; or nil.
//
//	add := func(x *tensor.Tensor) { all = tensor.Concat(0, all, x) }
//	for _, x := range xs {
//		add(x)
//	}
func loopOfLiteral(f *blocking.Func, all ast.Expr, c *blocking.Call) *blocking.Loop {
	pkg := f.Package
	v := pkg.Local(all)
	if f.Lit == nil || f.Runs() != blocking.Callable || v == nil || pkg.Params[v].Of == f || f.Lit.Pos() <= v.Pos() && v.Pos() < f.Lit.End() || pkg.GuardOf(f, c.Expr.Pos(), nil) != blocking.Always {
		return nil
	}
	for g := range f.Outermost().Tree() {
		for _, d := range g.Calls {
			if d.Target != f || d.Away {
				continue
			}
			for l := range pkg.LoopsAround(g, d.Expr.Pos()) {
				if l.Small || l.Stmt == nil || l.Declares(v) {
					continue
				}
				if pkg.GuardOf(g, d.Expr.Pos(), l) == blocking.Always && !beginsAnew(pkg, v, c, l) && !isKept(pkg, v, c, l) {
					return l
				}
				break
			}
		}
	}
	return nil
}

// asksWorld reports whether c calls an unknown function that is given numbers and returns some, as an experiment does.
func asksWorld(c *blocking.Call) bool {
	results := c.In.Package.ResultsOf(c)
	return c.Dynamic && c.API.Kind == tensorapi.Unknown && !c.TakesTensor() && len(c.Expr.Args) > 0 && results.Len() > 0 && syntax.IsNumeric(results.At(0).Type())
}

// regrownBy returns the variable or field that is assigned what c joins to it, perhaps by way of another variable; or
// nil.
//
//	next := tensor.Concat(0, all, x)
//	all = next
func regrownBy(pkg *blocking.Package, c *blocking.Call) ast.Expr {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || c.Away {
		return nil
	}
	joined := joinedBy(pkg, c)
	isJoined := func(e ast.Expr) bool {
		return isNamed(e) && pkg.Variable(e) != nil && slices.ContainsFunc(joined, func(x ast.Expr) bool {
			return types.ExprString(ast.Unparen(x)) == types.ExprString(e)
		})
	}
	if isJoined(assign.Lhs[0]) {
		return assign.Lhs[0]
	}
	next := pkg.Variable(assign.Lhs[0])
	if next == nil || next.IsField() || len(pkg.Defs[next]) != 1 || len(joined) == 0 {
		return nil
	}
	for use := range pkg.UsesOf(next, c.In) {
		then, ok := use.Parent().Node().(*ast.AssignStmt)
		if ok && len(then.Lhs) == 1 && then.Rhs[0] == use.Node() && isJoined(then.Lhs[0]) {
			return then.Lhs[0]
		}
	}
	return nil
}

// joinedBy lists the tensors that c joins, by itself or by a function of the package that does nothing else. Of a list
// of tensors, it lists the elements that are written there.
func joinedBy(pkg *blocking.Package, c *blocking.Call) []ast.Expr {
	if tensorapi.Joins(c.Callee) {
		if c.Expr.Ellipsis.IsValid() {
			last := ast.Unparen(c.Expr.Args[len(c.Expr.Args)-1])
			if call := syntax.AsCall(last); call != nil && syntax.IsBuiltin(pkg.Info, call, "append") {
				last = ast.Unparen(call.Args[0])
			}
			if lit, ok := last.(*ast.CompositeLit); ok {
				return lit.Elts
			}
		}
		return c.Expr.Args[1:]
	}
	d := joinOf(pkg, c.Target)
	if d == nil {
		return nil
	}
	var list []ast.Expr
	for _, e := range joinedBy(pkg, d) {
		if p, ok := pkg.Params[pkg.Local(e)]; ok && p.Of == c.Target {
			list = append(list, c.Operand(p.Operand)...)
		}
	}
	return list
}

// joinOf returns the only call in f that joins tensors, if f does nothing but return what that does, or one of its
// operands before that, as where there is nothing yet; else nil.
//
//	if a == nil {
//		return b
//	}
//	return tensor.Concat(0, a, b)
func joinOf(pkg *blocking.Package, f *blocking.Func) (join *blocking.Call) {
	if f == nil || len(f.Body.List) != len(f.Returns) || len(f.Parts()) != 1 {
		return nil
	}
	for _, ret := range f.Returns {
		if len(ret.Results) != 1 {
			return nil
		}
		d := pkg.Calls[syntax.AsCall(ret.Results[0])]
		switch {
		case d != nil && tensorapi.Joins(d.Callee) && join == nil:
			join = d
		case pkg.Params[pkg.Local(ret.Results[0])].Of != f:
			return nil
		}
	}
	return join
}

// isNamed reports whether e is a variable, a field of one, an element of one, or what one points to.
func isNamed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return syntax.IsIdent(e.X)
	case *ast.IndexExpr:
		return syntax.IsIdent(e.X)
	case *ast.StarExpr:
		return syntax.IsIdent(e.X)
	}
	return false
}

// isRegrown reports whether c copies all in each iteration of l. all is a variable or field that begins
// outside of l, never begins anew in l, and is not kept as it is in each iteration.
func isRegrown(pkg *blocking.Package, all ast.Expr, c *blocking.Call, l *blocking.Loop) bool {
	base := pkg.Local(all)
	if sel, ok := all.(*ast.SelectorExpr); ok {
		base = pkg.Local(sel.X)
		if base == nil || slices.ContainsFunc(pkg.Defs[base], func(d blocking.Def) bool { return d.Kind != blocking.DefOther && pkg.Contains(l, d.In, d.Pos) }) {
			return false
		}
	}
	if x, ok := all.(*ast.IndexExpr); ok && !pkg.Varies(x.Index, l) {
		base = pkg.Local(x.X)
	}
	if p, ok := all.(*ast.StarExpr); ok {
		base = pkg.Local(p.X)
	}
	if base == nil || l.Stmt == nil || l.Small || l.Declares(base) || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always {
		return false
	}
	return !beginsAnew(pkg, pkg.Variable(all), c, l) && !isKept(pkg, pkg.Variable(all), c, l)
}

// isKept reports whether l puts the tensor in v into a list or another variable, other than by c: each of its values is
// wanted.
func isKept(pkg *blocking.Package, v *types.Var, c *blocking.Call, l *blocking.Loop) bool {
	for use := range pkg.UsesOf(v, l.Func) {
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		if f := pkg.FuncAt(use); f == nil || !pkg.Contains(l, f, use.Node().Pos()) || use.ParentEdgeKind() == edge.AssignStmt_Lhs ||
			c.Expr.Pos() <= use.Node().Pos() && use.Node().Pos() < c.Expr.End() {
			continue
		}
		switch n := use.Parent().Node().(type) {
		case *ast.CallExpr:
			if syntax.IsBuiltin(pkg.Info, n, "append") {
				return true
			}
		case *ast.AssignStmt, *ast.KeyValueExpr, *ast.CompositeLit, *ast.SendStmt:
			return true
		}
	}
	return false
}

// isRegrownByCalls reports whether each call of a method copies the field v to add the method's
// operand, and nothing in the package begins the field anew. The body of the method is l.
func isRegrownByCalls(pkg *blocking.Package, v *types.Var, c *blocking.Call, l *blocking.Loop) bool {
	f := c.In
	if !v.IsField() || v.Exported() || f.Lit != nil || f.Sig.Recv() == nil || pkg.GuardOf(f, c.Expr.Pos(), nil) != blocking.Always || beginsAnew(pkg, v, c, l) || !onlyGrows(pkg, v, c, l) {
		return false
	}
	given := slices.ContainsFunc(slices.Collect(f.Sig.Params().Variables()), func(p *types.Var) bool {
		return slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return pkg.Mentions(e, p) })
	})
	return given && !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		if d.In == nil || d.In == f || d.Kind != blocking.DefValue || isLiteral(pkg, d) {
			return false
		}
		other := pkg.Calls[syntax.AsCall(d.Value)]
		return other == nil || pkg.Variable(syntax.OrNil(regrownBy(pkg, other))) != v
	})
}

// isLiteral reports whether d sets a field in a literal of its struct.
func isLiteral(pkg *blocking.Package, d blocking.Def) bool {
	cur, ok := pkg.Cursor(d.Pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.KeyValueExpr)(nil), (*ast.AssignStmt)(nil)) {
		_, ok := c.Node().(*ast.KeyValueExpr)
		return ok
	}
	return false
}

// beginsAnew reports whether l assigns something else to v than c, now and then. A first piece doesn't count.
func beginsAnew(pkg *blocking.Package, v *types.Var, c *blocking.Call, l *blocking.Loop) bool {
	for _, d := range pkg.Defs[v] {
		switch {
		case d.Kind == blocking.DefValue && pkg.OnlyValue(syntax.OrNil(d.Value)) == c.Expr:
		case pkg.Contains(l, d.In, d.Pos) && !isFirst(pkg, v, d, l), v.IsField() && d.In != nil && pkg.CalledFrom(l, d.In) && d.In != l.Func:
			return true
		}
	}
	return false
}

// onlyGrows reports whether l does nothing with v but let it grow by c, and ask for its shape or whether
// there is anything.
func onlyGrows(pkg *blocking.Package, v *types.Var, c *blocking.Call, l *blocking.Loop) bool {
	uses := pkg.UsesOf(v, l.Func)
	if v.IsField() {
		uses = pkg.UsesInPackage(v)
	}
	for use := range uses {
		f := pkg.FuncAt(use)
		if f == nil || !pkg.Contains(l, f, use.Node().Pos()) && !(v.IsField() && f != l.Func && pkg.CalledFrom(l, f)) {
			continue
		}
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		if syntax.IsTarget(use) || use.ParentEdgeKind() == edge.AssignStmt_Lhs {
			continue
		}
		parent := use.Parent()
		if parent.Node() == c.Expr {
			continue
		}
		if b, ok := parent.Node().(*ast.BinaryExpr); ok && (syntax.IsNil(pkg.Info, b.X) || syntax.IsNil(pkg.Info, b.Y)) {
			continue
		}
		if sel, ok := parent.Node().(*ast.SelectorExpr); ok && sel.X == use.Node() {
			if call, ok := parent.Parent().Node().(*ast.CallExpr); ok && pkg.Calls[call] != nil && (pkg.Calls[call].API.Kind == tensorapi.Meta || pkg.Calls[call] == c || isSamePart(pkg, pkg.Calls[call], c)) {
				continue
			}
		}
		return false
	}
	return true
}

// isFirst reports whether d sets v where it is nil, or in the first iteration: i == 0.
func isFirst(pkg *blocking.Package, v *types.Var, d blocking.Def, l *blocking.Loop) bool {
	cur, ok := pkg.Cursor(d.Pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		n := c.Node().(*ast.IfStmt)
		b, ok := ast.Unparen(n.Cond).(*ast.BinaryExpr)
		if !ok || b.Op != token.EQL || d.Pos < n.Body.Pos() || n.Body.End() <= d.Pos {
			continue
		}
		if pkg.Variable(b.X) == v && syntax.IsNil(pkg.Info, b.Y) || pkg.Info.Types[b.Y].Value != nil && syntax.IsIdent(b.X) && pkg.Counts(b.X, l) {
			return true
		}
	}
	return false
}
