package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Conditions that hold now and then: each hundredth time, when something is full, when an interval is over.

// isRare recognises comparisons that seldom have the given outcome: i%100 == 0, err != nil, i == n-1, i
// < 3, rand.Float64() < 0.01, len(batch) == size. A comparison that must not hold is turned into the
// opposite one first, and a constant is moved to the right, so that each pattern is written once.
//
// Without a loop the question is how often calls of f come here. A parameter that is compared with
// something may be the counter of the caller, so i == n counts as rare.
func isRare(pkg *Package, e *ast.BinaryExpr, holds bool, f *Func, l *Loop) bool {
	x, y, op := ast.Unparen(e.X), ast.Unparen(e.Y), e.Op
	if !holds {
		op = syntax.Negated[op]
	}
	if pkg.Info.Types[x].Value != nil {
		x, y, op = y, x, mirrored(op) // the constant is on the right from here on
	}
	if l != nil && (op == token.EQL || op == token.GEQ || op == token.GTR) && isFull(pkg, x, y, e, l) {
		return true
	}
	if l != nil && (op == token.EQL || op == token.LEQ || op == token.LSS) && countsDown(pkg, x, y, e, l) {
		return true
	}
	switch op {
	case token.NEQ:
		// err != nil; or percent != last, when a percentage changes.
		return syntax.IsNil(pkg.Info, y) && syntax.IsError(pkg.Info.TypeOf(x)) || l != nil && isThreshold(pkg, y, e, l) && isQuotient(pkg, x, l)
	case token.EQL:
		if syntax.IsNil(pkg.Info, y) && fills(pkg, x, e, l) {
			return true
		}
		if isRemainder(pkg, x, 0) || isRemainder(pkg, y, 0) || isRandom(pkg, x) {
			return true // i%100 == 0, rand.IntN(100) == 0
		}
		if l == nil {
			return isIntParam(pkg, x) || isIntParam(pkg, y)
		}
		// i == n-1, i == next.
		return pkg.Counts(x, l) && (!pkg.Varies(y, l) || isThreshold(pkg, y, e, l)) ||
			pkg.Counts(y, l) && (!pkg.Varies(x, l) || isThreshold(pkg, x, e, l))
	case token.LSS, token.LEQ:
		if isRemainder(pkg, x, 0) {
			return true
		}
		if isRandom(pkg, x) && pkg.Info.Types[y].Value != nil {
			return true // a sample
		}
		// The first few.
		return l != nil && pkg.Counts(x, l) && (pkg.Info.Types[y].Value != nil || !pkg.Varies(y, l) && meansFew(nameOf(y)))
	case token.GTR, token.GEQ:
		if l != nil && isThreshold(pkg, y, e, l) && pkg.Counts(x, l) || l != nil && isInterval(pkg, x, e.Pos(), l) {
			return true
		}
		// The last few: i >= n-1, i+1 >= n. The last hundred are many in a row.
		return l != nil && pkg.Counts(x, l) && !pkg.Varies(y, l) && (isFewFrom(pkg.Info, x, token.ADD) || isFewFrom(pkg.Info, y, token.SUB))
	}
	return false
}

// meansFew reports whether the name of a number says that it is small beside the number of iterations.
func meansFew(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"warm", "first", "few", "preview"}, func(word string) bool { return strings.Contains(name, word) })
}

// mirrored returns the comparison with its sides exchanged: x < y is y > x.
func mirrored(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}

// isRemainder recognises i % k and i & mask, also through a variable that is set to one of them. A
// comparison of a remainder with a number holds once in k iterations. For a constant k of 1 or 2 that
// is often, and doesn't count.
func isRemainder(pkg *Package, e ast.Expr, depth int) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		k, constant := syntax.IntConst(pkg.Info, e.Y)
		return e.Op == token.REM && (!constant || k > 2) || e.Op == token.AND && (constant && k > 1 || isPredecessor(e.X, e.Y))
	case *ast.Ident:
		if v, ok := pkg.Info.Uses[e].(*types.Var); ok && depth < 4 {
			if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == DefValue {
				return isRemainder(pkg, d[0].Value, depth+1)
			}
		}
	}
	return false
}

// isQuotient recognises a whole number that grows with the iterations of l, but slower. A condition
// that such a number has changed holds rarely:
//
//	if percent := i * 100 / n; percent != last {
func isQuotient(pkg *Package, e ast.Expr, l *Loop) bool {
	if v := pkg.Local(e); v != nil {
		d := pkg.Defs[v]
		return len(d) == 1 && d[0].Kind == DefValue && !syntax.IsIdent(d[0].Value) && isQuotient(pkg, d[0].Value, l)
	}
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || b.Op != token.QUO {
		return false
	}
	x := ast.Unparen(b.X)
	if m, ok := x.(*ast.BinaryExpr); ok && m.Op == token.MUL {
		return pkg.Counts(m.X, l) || pkg.Counts(m.Y, l)
	}
	return pkg.Counts(x, l)
}

// answersRarely reports whether e calls a function of the package that rarely returns the given answer. Each of its
// results must be a constant, or an expression that classify finds rare, and there must be one of the latter:
//
//	func due(i int) bool { return i%100 == 0 }
func answersRarely(pkg *Package, e ast.Expr, answer bool, f *Func, l *Loop, depth int) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || c.Target == nil {
		return false
	}
	found := false
	for _, ret := range c.Target.Returns {
		if len(ret.Results) != 1 {
			return false
		}
		if pkg.Info.Types[ret.Results[0]].Value != nil && len(c.Target.Returns) > 1 {
			continue
		}
		if classify(pkg, ret.Results[0], answer, f, l, depth+1) != Rarely {
			return false
		}
		found = true
	}
	return found
}

// isPredecessor recognises y as x - 1, as in x & (x-1) == 0. That condition holds for powers of two,
// which get rare as x grows.
func isPredecessor(x, y ast.Expr) bool {
	b, ok := ast.Unparen(y).(*ast.BinaryExpr)
	return ok && b.Op == token.SUB && types.ExprString(ast.Unparen(x)) == types.ExprString(b.X) && types.ExprString(b.Y) == "1"
}

// Counts reports whether e is an integer variable that counts the iterations of l, or of a loop in l,
// perhaps with a constant added: i in for i := range xs, i + 1, n after n++ in the loop. Other
// assignments in l may only set it to constants, as for a counter that starts again.
func (pkg *Package) Counts(e ast.Expr, l *Loop) bool {
	e = ast.Unparen(e)
	if b, ok := e.(*ast.BinaryExpr); ok && isOffset(pkg.Info, e, b.Op) {
		e = ast.Unparen(b.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	found := pkg.IsOperand(v, l)
	for _, d := range pkg.Defs[v] {
		if !pkg.Contains(l, d.In, d.Pos) {
			continue
		}
		switch {
		case d.Kind == DefKey || d.Kind == DefStep:
			found = true
		case d.Kind != DefValue || pkg.Info.Types[d.Value].Value == nil:
			return false // not even set to zero again
		}
	}
	basic, _ := v.Type().Underlying().(*types.Basic)
	return found && basic != nil && basic.Info()&types.IsInteger != 0
}

// maxLast is how many iterations at the end of a loop are few.
const maxLast = 16

// isFewFrom recognises x + c and x - c, whichever op says, with a constant c of at most maxLast.
func isFewFrom(info *types.Info, e ast.Expr, op token.Token) bool {
	if !isOffset(info, e, op) {
		return false
	}
	c, ok := syntax.IntConst(info, ast.Unparen(e).(*ast.BinaryExpr).Y)
	return ok && c <= maxLast
}

// isOffset recognises x + c and x - c, whichever op says, with a constant c.
func isOffset(info *types.Info, e ast.Expr, op token.Token) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && b.Op == op && (op == token.ADD || op == token.SUB) && info.Types[b.Y].Value != nil
}

// Varies reports whether e mentions a variable that l assigns, or a parameter of the literal that is l's body.
func (pkg *Package) Varies(e ast.Expr, l *Loop) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := pkg.Info.Uses[id].(*types.Var); ok {
				found = found || pkg.IsOperand(v, l)
				for _, d := range pkg.Defs[v] {
					found = found || pkg.Contains(l, d.In, d.Pos)
				}
			}
		}
		return !found
	})
	return found
}

// IsOperand reports whether v is a parameter of the literal whose body l is. Such a parameter has
// another value in each iteration, like the variable of a range clause.
func (pkg *Package) IsOperand(v *types.Var, l *Loop) bool {
	return l.Blocks == nil && l.Func.Lit != nil && pkg.Params[v].Of == l.Func
}

// isThreshold reports whether e is a variable that l assigns only where the condition holds. Then the
// condition waits for a counter to reach a value that moves on each time:
//
//	if i == next {
//		fmt.Println(x)
//		next += every
//	}
func isThreshold(pkg *Package, e ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	cur, found := pkg.Cursor(cond.Pos())
	if !ok || !found {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		n := c.Node().(*ast.IfStmt)
		moves := false
		for _, d := range pkg.Defs[v] {
			if !pkg.Contains(l, d.In, d.Pos) {
				continue
			}
			if d.Pos < n.Body.Pos() || n.Body.End() <= d.Pos {
				return false
			}
			moves = true
		}
		return moves
	}
	return false
}

// isInterval reports whether e is the time since something that l then sets to the time of now, as far as the names of
// types tell: a duration, less a variable that l sets.
//
//	if e.At-last < time.Second {
//		continue
//	}
//	last = e.At
func isInterval(pkg *Package, e ast.Expr, pos token.Pos, l *Loop) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || b.Op != token.SUB || pkg.Info.TypeOf(b).String() != "time.Duration" {
		return false
	}
	v := pkg.Local(b.Y)
	return v != nil && !l.Declares(v) && slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		return d.Kind == DefValue && d.Pos > pos && pkg.Contains(l, d.In, d.Pos) && types.ExprString(d.Value) == types.ExprString(b.X)
	})
}

// fills reports whether x == nil asks for a place that is filled once and kept, like a cache:
//
//	if t.table == nil {
//		t.table = makeTable()
//	}
//
// It does not hold for a local variable, which each call of the function makes anew, for a field of a
// struct that varies in l, and for a place that is set to nil again: these are filled many times.
func fills(pkg *Package, x ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	v := pkg.Variable(x)
	cur, ok := pkg.Cursor(cond.Pos())
	if v == nil || !ok {
		return false
	}
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if l != nil && v.IsField() && pkg.Varies(x.X, l) {
			return false
		}
	case *ast.Ident:
		if l == nil && v.Parent() != pkg.Pass.Pkg.Scope() {
			return false
		}
	default:
		return false
	}
	// The body of the if must fill the place, and nothing else may empty it again.
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body, made := c.Node().(*ast.IfStmt).Body, false
		for _, d := range pkg.Defs[v] {
			inside := body.Pos() <= d.Pos && d.Pos < body.End()
			made = made || inside
			if !inside && (l == nil || pkg.Contains(l, d.In, d.Pos)) && syntax.IsNil(pkg.Info, syntax.OrNil(d.Value)) {
				return false // and is made again after that
			}
			// l fills the variable elsewhere too, so nil may mean something else.
			if !inside && l != nil && !v.IsField() && pkg.Contains(l, d.In, d.Pos) {
				return false
			}
		}
		return made
	}
	return false
}

// countsDown reports whether x is a variable that l counts down to the constant y, and sets back where
// it has got there:
//
//	if left--; left == 0 {
//		fmt.Println(x)
//		left = every
//	}
func countsDown(pkg *Package, x, y ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	v := pkg.Local(x)
	cur, ok := pkg.Cursor(cond.Pos())
	if v == nil || !ok || pkg.Info.Types[y].Value == nil {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		steps, anew := false, false
		for _, d := range pkg.Defs[v] {
			switch {
			case !pkg.Contains(l, d.In, d.Pos):
			case body.Pos() <= d.Pos && d.Pos < body.End():
				n, constant := syntax.IntConst(pkg.Info, syntax.OrNil(d.Value))
				anew = anew || d.Kind == DefValue && (!constant || n > 1)
			case d.Kind == DefStep:
				steps = true
			default:
				return false
			}
		}
		return steps && anew
	}
	return false
}

// pollingLoops lists the conditions of the for loops around pos that go on while something is ready. A
// read of what is ready waits for nothing. Conditions leaves out the conditions of loops, so these are
// added:
//
//	for len(queue) > 0 && queue[0].Ready() {
func pollingLoops(pkg *Package, pos token.Pos) []Condition {
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return nil
	}
	var list []Condition
	for c := range cur.Enclosing((*ast.ForStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := c.Node().(*ast.ForStmt)
		if !ok {
			break
		}
		if n.Body.Pos() <= pos && holdsWhenReady(pkg, n.Cond) {
			list = append(list, Condition{n.Cond, true, -1, -1, nil})
		}
	}
	return list
}

// holdsWhenReady reports whether cond, or an operand of its &&, asks whether something is ready.
func holdsWhenReady(pkg *Package, cond ast.Expr) bool {
	if b, ok := ast.Unparen(syntax.OrNil(cond)).(*ast.BinaryExpr); ok && b.Op == token.LAND {
		return holdsWhenReady(pkg, b.X) || holdsWhenReady(pkg, b.Y)
	}
	return polls(pkg, cond)
}

// polls reports whether e asks how far the device has got, as y.Ready() does. A read under this
// condition waits for nothing, so it counts as rare.
func polls(pkg *Package, e ast.Expr) bool {
	c := pkg.Calls[syntax.AsCall(syntax.OrNil(e))]
	return c != nil && c.API.Kind == tensorapi.Poll
}

// picks reports whether e asks whether the number of the iteration is in a set: milestones[i],
// slices.Contains(milestones, i). A set is taken to be small.
func picks(pkg *Package, e ast.Expr, l *Loop) bool {
	switch e := e.(type) {
	case *ast.IndexExpr:
		_, isMap := pkg.Info.TypeOf(e.X).Underlying().(*types.Map)
		return isMap && pkg.Counts(e.Index, l)
	case *ast.CallExpr:
		c := pkg.Calls[e]
		return c != nil && c.Callee != nil && c.Callee.FullName() == "slices.Contains" && pkg.Counts(e.Args[1], l)
	}
	return false
}

// isFull reports whether x is the length of a list that l empties where the length has reached y. Then
// the code runs once for y elements, and y must be at least 2:
//
//	if len(batch) == size {
//		flush(batch)
//		batch = batch[:0]
//	}
//
// It may also go on to the next iteration where the list is not full, and empty it behind that.
func isFull(pkg *Package, x, y ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	call := syntax.AsCall(x)
	n, constant := syntax.IntConst(pkg.Info, y)
	if call == nil || len(call.Args) != 1 || !pkg.Info.Types[call.Fun].IsBuiltin() || constant && n < 2 {
		return false
	}
	v := pkg.Variable(call.Args[0])
	cur, ok := pkg.Cursor(cond.Pos())
	if v == nil || !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		from, to := body.Pos(), body.End()
		if goesOn(body) && l.Stmt != nil {
			from, to = to, l.Stmt.End()
		}
		return slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
			if d.Kind != DefValue || d.In == nil || !isEmpty(pkg, d.Value) {
				return false
			}
			inside := from <= d.Pos && d.Pos < to && pkg.Contains(l, d.In, d.Pos)
			return inside || pkg.Any(l, func(c *Call) bool { // a function of the package empties it
				return c.Target == d.In && from <= c.Expr.Pos() && c.Expr.Pos() < to
			})
		})
	}
	return false
}

// goesOn reports whether body ends by going on to the next iteration.
func goesOn(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return false
	}
	last, ok := body.List[len(body.List)-1].(*ast.BranchStmt)
	return ok && last.Tok == token.CONTINUE
}

// isEmpty recognises an empty list: nil, list[:0], make([]T, 0, n), []T{}.
func isEmpty(pkg *Package, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.SliceExpr:
		n, ok := syntax.IntConst(pkg.Info, syntax.OrNil(e.High))
		return ok && n == 0
	case *ast.CallExpr:
		id, ok := ast.Unparen(e.Fun).(*ast.Ident)
		return ok && id.Name == "make"
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	}
	return syntax.IsNil(pkg.Info, e)
}
