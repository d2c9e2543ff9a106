package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// What loops take from channels, and values that answer it.

// isRequested reports whether c reads e, a tensor of other iterations, where a message that l has received, or a line
// that it has read, asks for it:
//
//	switch m := <-messages; m.kind {
//	case "train":
//		sum = sum.Add(step(m.x))
//	case "report":
//		fmt.Println(sum.Item())
//	}
func isRequested(pkg *blocking.Package, c *blocking.Call, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(syntax.OrNil(e))
	if v == nil || l.Stmt == nil || l.Declares(v) || !Receives(pkg, l) && !pkg.Any(l, IsOutside) {
		return false
	}
	for cur := range c.Cur.Enclosing((*ast.CaseClause)(nil), (*ast.FuncLit)(nil)) {
		clause, ok := cur.Node().(*ast.CaseClause)
		if !ok || clause.Pos() < l.Stmt.Pos() {
			return false
		}
		if len(clause.List) == 0 || pkg.Info.Types[clause.List[0]].Value == nil {
			continue // no message, but a condition
		}
		return !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
			return pkg.Contains(l, d.In, d.Pos) && clause.Pos() <= d.Pos && d.Pos < clause.End()
		})
	}
	return false
}

// answersInput reports whether l takes data, and no tensors, from a channel, and passes each value on: it is sent,
// perhaps with what it is for, or given to a function. Somebody waits for each, as for the result of a job.
func answersInput(pkg *blocking.Package, places []Place, l *blocking.Loop) bool {
	if len(places) == 0 || pkg.Any(l, (*blocking.Call).Mutates) || !TakesData(pkg, l) {
		return false
	}
	return !slices.ContainsFunc(places, func(p Place) bool { return p.Use != Passed && !isSent(p) && !isText(pkg, p) })
}

// isSent reports whether the value at p is sent on a channel, as a part of something.
func isSent(p Place) bool {
	for cur := range p.Cur.Enclosing() {
		switch cur.Node().(type) {
		case *ast.SendStmt:
			return true
		case *ast.CompositeLit, *ast.KeyValueExpr, *ast.UnaryExpr, *ast.ParenExpr, *ast.Ident, *ast.CallExpr, *ast.BinaryExpr:
		default:
			return false
		}
	}
	return false
}

// TakesData reports whether l receives what holds no tensors, and is no signal. What its function sends itself, as from
// a list to workers, doesn't count: it has all of it.
func TakesData(pkg *blocking.Package, l *blocking.Loop) bool {
	isData := func(ch ast.Expr) bool {
		t, ok := pkg.Info.TypeOf(ch).Underlying().(*types.Chan)
		if !ok || isDealtOut(pkg, ch, l.Func.Outermost(), 0) {
			return false
		}
		s, isStruct := t.Elem().Underlying().(*types.Struct)
		return !pkg.HoldsTensors(t.Elem()) && !(isStruct && s.NumFields() == 0)
	}
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		return isData(s.X)
	}
	return slices.ContainsFunc(ReceivesOf(pkg, l), func(e *ast.UnaryExpr) bool { return isData(e.X) })
}

// answersSingly reports whether l takes messages from a channel, makes a tensor of each, and has a network compute it.
// For a network a batch of all messages that have come in the meantime is little more work than a single one, and
// others wait for their turn. What trains, is streamed, or acts on the world by an unknown function has its own pace.
//
//	for r := range s.queue {
//		r.reply <- s.net.Forward(tensor.From(r.row, 1, -1)).Item()
//	}
func answersSingly(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if !TakesData(pkg, l) || conversing.MatchString(c.In.Outermost().Name) || pkg.Any(l, func(d *blocking.Call) bool { return d.Mutates() || IsStreamed(d) || IsOutside(d) }) {
		return false
	}
	m := message(pkg, l)
	if m == nil {
		return false
	}
	if list, ok := m.Type().Underlying().(*types.Slice); ok && !syntax.IsNumeric(list.Elem()) {
		return false // a batch already
	}
	if slices.ContainsFunc(Uses(pkg, c, l), func(p Place) bool {
		d := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
		return p.Use == Passed && d != nil && d.Dynamic
	}) {
		return false
	}
	for v, defs := range pkg.Defs {
		if pkg.HoldsTensors(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d blocking.Def) bool {
			return d.In != nil && d.Kind != blocking.DefOther && (pkg.Contains(l, d.In, d.Pos) || v.IsField() && pkg.CalledFrom(l, d.In))
		}) {
			return false // each answer depends on those before
		}
	}
	return pkg.Any(l, func(d *blocking.Call) bool {
		return (d.API.Kind == tensorapi.Host || d.Summary().Makes) && slices.ContainsFunc(d.AllOperands(), func(e ast.Expr) bool { return pkg.Mentions(e, m) })
	}) && pkg.Any(l, func(d *blocking.Call) bool { return runsNetwork(d, 0) })
}

// message returns the variable that each iteration of l sets to what it takes from a channel; nil if l takes more than
// one thing at a time. Signals don't count.
func message(pkg *blocking.Package, l *blocking.Loop) (m *types.Var) {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		if len(ReceivesOf(pkg, l)) > 0 {
			return nil
		}
		return pkg.Variable(syntax.OrNil(s.Key))
	}
	for cur := range l.Func.Cur.Preorder((*ast.AssignStmt)(nil)) {
		n := cur.Node().(*ast.AssignStmt)
		u, ok := ast.Unparen(n.Rhs[0]).(*ast.UnaryExpr)
		if !ok || u.Op != token.ARROW || !pkg.Contains(l, pkg.FuncAt(cur), n.Lhs[0].Pos()) {
			continue
		}
		if m != nil {
			return nil
		}
		m = pkg.Variable(n.Lhs[0])
		for inner := range pkg.LoopsAround(pkg.FuncAt(cur), n.Lhs[0].Pos()) {
			if inner != l {
				return nil
			}
			break
		}
	}
	return m
}

// runsNetwork reports whether c calls Forward of a network, or a function that does. Depth bounds the functions
// between.
func runsNetwork(c *blocking.Call, depth int) bool {
	if c.Away || depth > 3 {
		return false
	}
	return blocking.IsForward(c) || c.Target != nil && slices.ContainsFunc(c.Target.Calls, func(d *blocking.Call) bool { return runsNetwork(d, depth+1) })
}

// isDealtOut reports whether the channel ch is made by f, which sends to it in loops over lists or numbers, and gives
// it to nobody who may send. Literals belong to the function. An unexported function is given such a channel if all
// its callers pass one; depth bounds how many it looks through.
//
//	for _, d := range docs {
//		jobs <- d
//	}
func isDealtOut(pkg *blocking.Package, ch ast.Expr, f *blocking.Func, depth int) bool {
	v := pkg.Local(ch)
	d := pkg.Defs[v]
	if p := pkg.Params[v]; v != nil && p.Of == f && len(d) == 0 {
		callers := pkg.CallersOf(f)
		return depth < 2 && !ast.IsExported(f.Name) && len(callers) > 0 && !slices.ContainsFunc(callers, func(c *blocking.Call) bool {
			given := c.Operand(p.Operand)
			return len(given) != 1 || !isDealtOut(pkg, given[0], c.In.Outermost(), depth+1)
		})
	}
	if v == nil || pkg.Params[v].Of != nil || len(d) != 1 || syntax.AsCall(syntax.OrNil(d[0].Value)) == nil {
		return false
	}
	if call := syntax.AsCall(d[0].Value); !syntax.IsBuiltin(pkg.Info, call, "make") {
		return false
	}
	sent := false
	for use := range pkg.UsesOf(v, f) {
		switch n := use.Parent().Node().(type) {
		case *ast.SendStmt:
			if n.Chan != use.Node() || !isOverList(pkg, use) {
				return false
			}
			sent = true
		case *ast.CallExpr:
			if !pkg.Info.Types[n.Fun].IsBuiltin() && !onlyReceives(pkg, n, nodeOf(use)) {
				return false
			}
		case *ast.RangeStmt, *ast.UnaryExpr, *ast.AssignStmt, *ast.ValueSpec:
		default:
			return false
		}
	}
	return sent
}

// onlyReceives reports whether call is given the channel e by a type that only receives.
func onlyReceives(pkg *blocking.Package, call *ast.CallExpr, e ast.Expr) bool {
	sig, ok := typeOf(pkg, call.Fun).Underlying().(*types.Signature)
	i := slices.Index(call.Args, e)
	if !ok || i < 0 || i >= sig.Params().Len() {
		return false
	}
	ch, ok := sig.Params().At(i).Type().Underlying().(*types.Chan)
	return ok && ch.Dir() == types.RecvOnly
}

// isOverList reports whether the innermost loop around cur goes over a list or numbers, and waits for nobody.
func isOverList(pkg *blocking.Package, cur inspector.Cursor) bool {
	for l := range pkg.LoopsAround(pkg.FuncAt(cur), cur.Node().Pos()) {
		switch s := l.Stmt.(type) {
		case *ast.RangeStmt:
			t := typeOf(pkg, s.X)
			return !syntax.IsChan(t) && !syntax.IsFunc(t) && !pkg.Any(l, IsOutside)
		case *ast.ForStmt:
			return s.Post != nil && !pkg.Any(l, IsOutside) && len(ReceivesOf(pkg, l)) == 0
		}
		return false
	}
	return false
}

// takesInput reports whether l receives tensors for which others have enqueued the work.
func takesInput(pkg *blocking.Package, l *blocking.Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok && syntax.IsChan(pkg.Info.TypeOf(s.X)) {
		return pkg.IsInput(s.X, l.Func)
	}
	return slices.ContainsFunc(ReceivesOf(pkg, l), func(e *ast.UnaryExpr) bool { return pkg.IsInput(e.X, l.Func) })
}

// ReceivesOf lists the expressions in l that receive from channels.
func ReceivesOf(pkg *blocking.Package, l *blocking.Loop) []*ast.UnaryExpr {
	var list []*ast.UnaryExpr
	for cur := range l.Func.Cur.Preorder((*ast.UnaryExpr)(nil)) {
		n := cur.Node().(*ast.UnaryExpr)
		pos := n.Pos()
		if assign, ok := cur.Parent().Node().(*ast.AssignStmt); ok {
			pos = assign.Lhs[0].Pos()
		}
		if f := pkg.FuncAt(cur); n.Op == token.ARROW && f != nil && pkg.Contains(l, f, pos) {
			list = append(list, n)
		}
	}
	return list
}

// Receives reports whether l takes what it works on from a channel.
func Receives(pkg *blocking.Package, l *blocking.Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		return syntax.IsChan(pkg.Info.TypeOf(s.X))
	}
	return len(ReceivesOf(pkg, l)) > 0
}
