package blocking

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/cfg"
)

// A guard says how often code under a condition runs.
type guard uint8

const (
	always guard = iota // as often as the code around it, as far as we know
	byData              // depends on a value that was read: the reading is the finding
	rarely              // in a share of the iterations that does not grow with them
)

// A condition is one that holds, or does not hold, wherever some code runs.
type condition struct {
	expr  ast.Expr
	holds bool
	block int32 // that evaluates it; -1: the one with the code
	other int32 // that runs otherwise; -1 if it is of no interest
	// clause is the case of a select statement that was chosen, and expr nil.
	clause *ast.CommClause
}

// guardOf says how often the code at pos in f runs, relative to the loop, or
// to a call of the function if l is nil.
func (a *analyzer) guardOf(f *Func, pos token.Pos, l *Loop) guard {
	fl := f.flow()
	conditions := append(a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...)
	conditions = append(conditions, a.pollingLoops(pos)...)
	conditions = slices.DeleteFunc(conditions, func(c condition) bool { return a.isVerdict(c.expr, pos) })
	if l != nil {
		conditions = a.withoutStepping(conditions, l)
	}
	if a.isComplaint(pos) && slices.ContainsFunc(conditions, func(c condition) bool { return l == nil || f != l.fn || c.divides(l) }) {
		return rarely
	}
	return a.guardUnder(conditions, f, l)
}

// withoutStepping removes the conditions under which l takes all its steps of training, as with
// gradients that are accumulated over several iterations: what runs under these runs in each step.
func (a *analyzer) withoutStepping(conditions []condition, l *Loop) []condition {
	if !slices.ContainsFunc(conditions, func(c condition) bool { return c.expr != nil && c.divides(l) }) {
		return conditions
	}
	optimises, guarded := false, conditions
	elsewhere := a.any(l, func(d *Call) bool {
		if !d.steps() {
			return false
		}
		for m := range a.loopsAround(d.in, d.Expr.Pos()) {
			if m != l || d.sum().Trains {
				return true
			}
			break
		}
		optimises = optimises || d.api.Kind == tensorapi.Mutate && d.Callee.Name() != "Set"
		guarded = common(guarded, a.conditionsOf(d, l))
		return false
	})
	if elsewhere || !optimises || len(guarded) == 0 {
		return conditions
	}
	return slices.DeleteFunc(conditions, func(c condition) bool { return c.isAmong(guarded) })
}

// conditionsOf lists the conditions under which l comes to the call c.
func (a *analyzer) conditionsOf(c *Call, l *Loop) []condition {
	var list []condition
	f, pos := c.in, c.Expr.Pos()
	for {
		fl := f.flow()
		list = append(list, fl.conditions(fl.blockAt(pos))...)
		if f == l.fn || f.parent == nil {
			return list
		}
		pos, f = f.lit.Pos(), f.parent
	}
}

// common lists the conditions that are in both lists.
func common(x, y []condition) []condition {
	var list []condition
	for _, c := range x {
		if c.isAmong(y) {
			list = append(list, c)
		}
	}
	return list
}

// isAmong reports whether one of a list is the same expression, with the same outcome.
func (c condition) isAmong(list []condition) bool {
	return c.expr != nil && slices.ContainsFunc(list, func(d condition) bool { return d.block == c.block && d.expr == c.expr && d.holds == c.holds })
}

// isVerdict reports whether e asks a variable, or its opposite, that is true or
// false so far and becomes what the syntax at pos tells: ok = ok && test(value).
// That holds until something is found, which may be never.
func (a *analyzer) isVerdict(e ast.Expr, pos token.Pos) bool {
	if not, ok := ast.Unparen(orNil(e)).(*ast.UnaryExpr); ok && not.Op == token.NOT {
		e = not.X
	}
	v := a.variable(orNil(e))
	return v != nil && isBool(v.Type()) && slices.ContainsFunc(a.defs[v], func(d def) bool {
		return d.kind == defValue && d.value.Pos() <= pos && pos < d.value.End()
	})
}

// isComplaint reports whether the syntax at pos is part of the making of an
// error, or of the failing of a test, which programs expect to do rarely.
func (a *analyzer) isComplaint(pos token.Pos) bool {
	cur, ok := a.res.Cursor(pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing() {
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			if call := a.calls[n]; call != nil && (isFullName(call.Callee, "fmt.Errorf") || failsTest(call.Callee)) {
				return true
			}
		case ast.Stmt:
			return false
		}
	}
	return false
}

func isFullName(fn *types.Func, name string) bool { return fn != nil && fn.FullName() == name }

// failsTest recognises the methods by which a test says what is wrong.
func failsTest(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "testing" {
		return false
	}
	switch fn.Name() {
	case "Error", "Errorf", "Fatal", "Fatalf", "Skip", "Skipf":
		return true
	}
	return false
}

// guardUnder is guardOf code that is in f and under the given conditions.
func (a *analyzer) guardUnder(conditions []condition, f *Func, l *Loop) guard {
	g := always
	for {
		for _, c := range conditions {
			if l != nil && f == l.fn && !c.divides(l) {
				continue
			}
			if c.clause != nil {
				if l != nil && a.takesWork(c.clause) {
					continue
				}
				return rarely
			}
			g = max(g, a.classify(c.expr, c.holds, f, l, 0))
		}
		if l != nil && f == l.fn {
			break
		}
		if h := f.how(); h == detached || h == callable {
			break
		}
		pos := f.lit.Pos()
		f = f.parent
		fl := f.flow()
		conditions = append(a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...)
	}
	return g
}

// divides reports whether both outcomes of the condition are in the loop. If
// one of them leaves it, the other is what all iterations but the last do.
func (c condition) divides(l *Loop) bool {
	return l.blocks == nil || (c.block < 0 || l.blocks[c.block]) && (c.other < 0 || l.blocks[c.other])
}

// shortCircuits lists the operands that decide whether the expression at pos
// is evaluated: x in x && y and x || y, seen from y.
func (a *analyzer) shortCircuits(pos token.Pos) []condition {
	var list []condition
	cur, ok := a.res.Cursor(pos)
	if !ok {
		return nil
	}
	for c := range cur.Enclosing() {
		if _, ok := c.Node().(ast.Expr); !ok {
			break
		}
		if n, ok := c.Node().(*ast.BinaryExpr); ok && n.Y.Pos() <= pos && (n.Op == token.LAND || n.Op == token.LOR) {
			list = append(list, condition{n.X, n.Op == token.LAND, -1, -1, nil})
		}
	}
	return list
}

// conditions lists what decides whether block b runs: the conditions whose
// true or false edge dominates it, and as conditions without expression the
// select cases. The only way out of a loop decides nothing.
func (f *flow) conditions(b int32) []condition {
	var list []condition
	target := b
	for ; b >= 0; b = f.idom[b] {
		blk := f.blocks[b]
		if blk.Kind == cfg.KindSelectCaseBody {
			clause, _ := blk.Stmt.(*ast.CommClause)
			list = append(list, condition{block: b, other: -1, clause: clause})
			continue
		}
		if len(f.preds[b]) != 1 || blk.Kind == cfg.KindForBody || blk.Kind == cfg.KindRangeBody {
			continue // not decided by one edge, or by that of a loop
		}
		p := f.blocks[f.preds[b][0]]
		if len(p.Succs) != 2 || len(p.Nodes) == 0 || p.Succs[0] == p.Succs[1] || f.isOnlyExit(p.Index, b, target) {
			continue
		}
		if e, ok := p.Nodes[len(p.Nodes)-1].(ast.Expr); ok {
			holds := p.Succs[0] == blk
			other := p.Succs[0]
			if holds {
				other = p.Succs[1]
			}
			if tag := f.tags[blk.Stmt]; tag != nil {
				e = &ast.BinaryExpr{X: tag, Op: token.EQL, OpPos: tag.End(), Y: e}
			}
			list = append(list, condition{e, holds, p.Index, other.Index, nil})
		}
	}
	return list
}

// isOnlyExit reports whether the edge from p to b is the only one that leaves a loop
// without target in it, but for edges to where the program ends.
func (f *flow) isOnlyExit(p, b, target int32) bool {
	return slices.ContainsFunc(f.loops, func(l *Loop) bool {
		if !l.blocks[p] || l.blocks[b] || l.blocks[target] {
			return false
		}
		for from := range l.blocks {
			for _, s := range f.blocks[from].Succs {
				if !l.blocks[s.Index] && (from != p || s.Index != b) && (f.returns(s.Index) || f.reaches(s.Index, l.head, never)) {
					return false
				}
			}
		}
		return true
	})
}

// takesWork reports whether a case of a select statement is what its loop is
// about: it receives what it enqueues work for or reads, and the loop does nothing until
// one of the cases is due. Others are ticks, requests to stop and the like.
func (a *analyzer) takesWork(clause *ast.CommClause) bool {
	received, ok := clause.Comm.(*ast.AssignStmt)
	cur, found := a.res.Cursor(clause.Pos())
	if !ok || !found {
		return false
	}
	v := a.variable(received.Lhs[0])
	for c := range cur.Enclosing((*ast.SelectStmt)(nil)) {
		for _, s := range c.Node().(*ast.SelectStmt).Body.List {
			if s.(*ast.CommClause).Comm == nil {
				return false // does not wait
			}
		}
		break
	}
	takes := false
	for _, s := range clause.Body {
		ast.Inspect(s, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && a.calls[call] != nil && (a.calls[call].enqueues() || len(a.waits(a.calls[call])) > 0) {
				takes = takes || v != nil && a.mentions(call, v)
			}
			return !takes
		})
	}
	return takes
}

// mentions reports whether a variable occurs in e.
func (a *analyzer) mentions(e ast.Expr, v *types.Var) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && a.info.Uses[id] == v
		return !found
	})
	return found
}

// classify says how often the condition e holds, or does not hold.
func (a *analyzer) classify(e ast.Expr, holds bool, f *Func, l *Loop, depth int) guard {
	if depth > 8 {
		return always
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return a.classify(e.X, !holds, f, l, depth+1)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			x := a.classify(e.X, holds, f, l, depth+1)
			y := a.classify(e.Y, holds, f, l, depth+1)
			if (e.Op == token.LAND) == holds {
				return max(x, y) // both are so
			}
			return min(x, y) // one of them is so
		}
		if a.isRare(e, holds, f, l) {
			return rarely
		}
	case *ast.IndexExpr, *ast.CallExpr:
		if holds && (a.polls(e) || l != nil && a.picks(e, l)) {
			return rarely
		}
		if a.answersRarely(e, holds, f, l, depth) {
			return rarely
		}
	case *ast.Ident:
		if l != nil && a.isSpent(e, holds, l) {
			return rarely
		}
		if v, ok := a.info.Uses[e].(*types.Var); ok {
			if d := a.defs[v]; len(d) == 1 && d[0].kind == defValue && !isCall(d[0].value) {
				if g := a.classify(d[0].value, holds, f, l, depth+1); g != always {
					return g
				}
			}
		}
	}
	if holds && isVerbose(e) || l == nil && isFlag(a.info, e) {
		return rarely
	}
	if a.readsTime(e) {
		if !holds && a.asksForTimeOver(e) {
			return always // until then
		}
		return rarely
	}
	if a.readsTensorIn(l, e, depth) {
		return byData
	}
	return always
}

// isSpent reports whether the condition e, a variable, holds once: all that l
// assigns to it is the opposite, where it holds: if first { …; first = false }.
func (a *analyzer) isSpent(e *ast.Ident, holds bool, l *Loop) bool {
	v := a.local(e)
	cur, ok := a.res.Cursor(e.Pos())
	if v == nil || !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		spent := false
		for _, d := range a.defs[v] {
			if !a.in(l, d.in, d.pos) {
				continue
			}
			value := a.info.Types[orNil(d.value)].Value
			if d.kind != defValue || value == nil || value.Kind() != constant.Bool || constant.BoolVal(value) == holds {
				return false
			}
			spent = spent || body.Pos() <= d.pos && d.pos < body.End()
		}
		return spent
	}
	return false
}

func isCall(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.CallExpr); return ok }

// isRare recognises comparisons that hold rarely: i%100 == 0, err != nil,
// the first and the last iteration.
func (a *analyzer) isRare(e *ast.BinaryExpr, holds bool, f *Func, l *Loop) bool {
	x, y, op := ast.Unparen(e.X), ast.Unparen(e.Y), e.Op
	if !holds {
		op = negated[op]
	}
	if a.info.Types[x].Value != nil {
		x, y, op = y, x, mirrored(op)
	}
	if l != nil && (op == token.EQL || op == token.GEQ || op == token.GTR) && a.isFull(x, y, e, l) {
		return true
	}
	if l != nil && (op == token.EQL || op == token.LEQ || op == token.LSS) && a.countsDown(x, y, e, l) {
		return true
	}
	switch op {
	case token.NEQ:
		// Or when a percentage changes.
		return isNil(a.info, y) && isError(a.info.TypeOf(x)) || l != nil && a.isThreshold(y, e, l) && a.isQuotient(x, l)
	case token.EQL:
		if isNil(a.info, y) && a.fills(x, e, l) {
			return true
		}
		if a.isRemainder(x, 0) || a.isRemainder(y, 0) || a.isRandom(x) {
			return true
		}
		if l == nil {
			return a.isIntParam(x) || a.isIntParam(y)
		}
		return a.counts(x, l) && (!a.varies(y, l) || a.isThreshold(y, e, l)) ||
			a.counts(y, l) && (!a.varies(x, l) || a.isThreshold(x, e, l))
	case token.LSS, token.LEQ:
		if a.isRemainder(x, 0) {
			return true
		}
		if a.isRandom(x) && a.info.Types[y].Value != nil {
			return true // a sample
		}
		// The first few.
		return l != nil && a.counts(x, l) && a.info.Types[y].Value != nil
	case token.GTR, token.GEQ:
		if l != nil && a.isThreshold(y, e, l) && a.counts(x, l) {
			return true
		}
		// The last few: i >= n-1, i+1 >= n.
		return l != nil && a.counts(x, l) && !a.varies(y, l) && (isOffset(a.info, x, token.ADD) || isOffset(a.info, y, token.SUB))
	}
	return false
}

var negated = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS,
	token.GTR: token.LEQ, token.LEQ: token.GTR,
}

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

func isNil(info *types.Info, e ast.Expr) bool { return info.Types[e].IsNil() }

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// isRemainder recognises i % k and i & mask, directly or by way of a variable.
// The remainder by a constant 1 or 2 is no guard: every other iteration is many.
func (a *analyzer) isRemainder(e ast.Expr, depth int) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		k, constant := intConst(a.info, e.Y)
		return e.Op == token.REM && (!constant || k > 2) || e.Op == token.AND && (constant && k > 1 || isPredecessor(e.X, e.Y))
	case *ast.Ident:
		if v, ok := a.info.Uses[e].(*types.Var); ok && depth < 4 {
			if d := a.defs[v]; len(d) == 1 && d[0].kind == defValue {
				return a.isRemainder(d[0].value, depth+1)
			}
		}
	}
	return false
}

// isQuotient recognises a whole number that grows with the iterations, but
// slower, directly or by way of a variable: i * 100 / n.
func (a *analyzer) isQuotient(e ast.Expr, l *Loop) bool {
	if v := a.local(e); v != nil {
		d := a.defs[v]
		return len(d) == 1 && d[0].kind == defValue && !isIdent(d[0].value) && a.isQuotient(d[0].value, l)
	}
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	if !ok || b.Op != token.QUO {
		return false
	}
	x := ast.Unparen(b.X)
	if m, ok := x.(*ast.BinaryExpr); ok && m.Op == token.MUL {
		return a.counts(m.X, l) || a.counts(m.Y, l)
	}
	return a.counts(x, l)
}

func isIdent(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.Ident); return ok }

// answersRarely reports whether e calls a function that rarely returns the given
// answer: all that it returns are constants and expressions that rarely have that
// value, of which there is one at least.
func (a *analyzer) answersRarely(e ast.Expr, answer bool, f *Func, l *Loop, depth int) bool {
	c := a.calls[asCall(e)]
	if c == nil || c.target == nil {
		return false
	}
	found := false
	for _, ret := range c.target.rets {
		if len(ret.Results) != 1 {
			return false
		}
		if a.info.Types[ret.Results[0]].Value != nil && len(c.target.rets) > 1 {
			continue
		}
		if a.classify(ret.Results[0], answer, f, l, depth+1) != rarely {
			return false
		}
		found = true
	}
	return found
}

// isPredecessor recognises y as x - 1: x & (x-1) is zero for powers of two.
func isPredecessor(x, y ast.Expr) bool {
	b, ok := ast.Unparen(y).(*ast.BinaryExpr)
	return ok && b.Op == token.SUB && types.ExprString(ast.Unparen(x)) == types.ExprString(b.X) && types.ExprString(b.Y) == "1"
}

// counts reports whether e is a variable that counts iterations of l or of a
// loop in it, perhaps with a constant added.
func (a *analyzer) counts(e ast.Expr, l *Loop) bool {
	e = ast.Unparen(e)
	if b, ok := e.(*ast.BinaryExpr); ok && isOffset(a.info, e, b.Op) {
		e = ast.Unparen(b.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	found := a.isOperand(v, l)
	for _, d := range a.defs[v] {
		if !a.in(l, d.in, d.pos) {
			continue
		}
		switch {
		case d.kind == defKey || d.kind == defStep:
			found = true
		case d.kind != defValue || a.info.Types[d.value].Value == nil:
			return false // not even set to zero again
		}
	}
	basic, _ := v.Type().Underlying().(*types.Basic)
	return found && basic != nil && basic.Info()&types.IsInteger != 0
}

// isOffset recognises x + c and x - c.
func isOffset(info *types.Info, e ast.Expr, op token.Token) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && b.Op == op && (op == token.ADD || op == token.SUB) && info.Types[b.Y].Value != nil
}

// varies reports whether e mentions a variable that differs between the
// iterations of l.
func (a *analyzer) varies(e ast.Expr, l *Loop) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := a.info.Uses[id].(*types.Var); ok {
				found = found || a.isOperand(v, l)
				for _, d := range a.defs[v] {
					found = found || a.in(l, d.in, d.pos)
				}
			}
		}
		return !found
	})
	return found
}

// isOperand reports whether v is a parameter of the function literal that l is
// the body of, which has another value in each iteration.
func (a *analyzer) isOperand(v *types.Var, l *Loop) bool {
	return l.blocks == nil && l.fn.lit != nil && a.params[v].of == l.fn
}

// isThreshold reports whether e is a variable that l assigns only where the
// condition on it holds: if i == next { …; next += every }.
func (a *analyzer) isThreshold(e ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	cur, found := a.res.Cursor(cond.Pos())
	if !ok || !found {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		n := c.Node().(*ast.IfStmt)
		moves := false
		for _, d := range a.defs[v] {
			if !a.in(l, d.in, d.pos) {
				continue
			}
			if d.pos < n.Body.Pos() || n.Body.End() <= d.pos {
				return false
			}
			moves = true
		}
		return moves
	}
	return false
}

// fills reports whether the condition on x, that it is nil, is followed by making it what is kept
// from then on: if t.table == nil { t.table = … }. What is kept by a variable of the function alone
// is made anew in each call, and what the iterations of l keep in several places in each of these.
func (a *analyzer) fills(x ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	v := a.variable(x)
	cur, ok := a.res.Cursor(cond.Pos())
	if v == nil || !ok {
		return false
	}
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if l != nil && v.IsField() && a.varies(x.X, l) {
			return false
		}
	case *ast.Ident:
		if l == nil && v.Parent() != a.pass.Pkg.Scope() {
			return false
		}
	default:
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body, made := c.Node().(*ast.IfStmt).Body, false
		for _, d := range a.defs[v] {
			inside := body.Pos() <= d.pos && d.pos < body.End()
			made = made || inside
			if !inside && (l == nil || a.in(l, d.in, d.pos)) && isNil(a.info, orNil(d.value)) {
				return false // and is made again after that
			}
			if !inside && l != nil && !v.IsField() && a.in(l, d.in, d.pos) {
				return false
			}
		}
		return made
	}
	return false
}

// countsDown reports whether x is a variable that the iterations count down to
// a constant, and that l sets anew where the condition on it holds:
// if left--; left == 0 { …; left = every }.
func (a *analyzer) countsDown(x, y ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	v := a.local(x)
	cur, ok := a.res.Cursor(cond.Pos())
	if v == nil || !ok || a.info.Types[y].Value == nil {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		steps, anew := false, false
		for _, d := range a.defs[v] {
			switch {
			case !a.in(l, d.in, d.pos):
			case body.Pos() <= d.pos && d.pos < body.End():
				n, constant := intConst(a.info, orNil(d.value))
				anew = anew || d.kind == defValue && (!constant || n > 1)
			case d.kind == defStep:
				steps = true
			default:
				return false
			}
		}
		return steps && anew
	}
	return false
}

// pollingLoops lists the conditions of the loops around pos that go on while
// something is ready: for len(queue) > 0 && queue[0].Ready().
func (a *analyzer) pollingLoops(pos token.Pos) []condition {
	cur, ok := a.res.Cursor(pos)
	if !ok {
		return nil
	}
	var list []condition
	for c := range cur.Enclosing((*ast.ForStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := c.Node().(*ast.ForStmt)
		if !ok {
			break
		}
		if n.Body.Pos() <= pos && a.holdsWhenReady(n.Cond) {
			list = append(list, condition{n.Cond, true, -1, -1, nil})
		}
	}
	return list
}

func (a *analyzer) holdsWhenReady(cond ast.Expr) bool {
	if b, ok := ast.Unparen(orNil(cond)).(*ast.BinaryExpr); ok && b.Op == token.LAND {
		return a.holdsWhenReady(b.X) || a.holdsWhenReady(b.Y)
	}
	return a.polls(cond)
}

// polls reports whether e asks how far the device has got: what is read when
// it is done waits for nothing.
func (a *analyzer) polls(e ast.Expr) bool {
	c := a.calls[asCall(orNil(e))]
	return c != nil && c.api.Kind == tensorapi.Poll
}

// picks reports whether e asks whether the number of the iteration is in a set:
// milestones[i], slices.Contains(milestones, i).
func (a *analyzer) picks(e ast.Expr, l *Loop) bool {
	switch e := e.(type) {
	case *ast.IndexExpr:
		_, isMap := a.info.TypeOf(e.X).Underlying().(*types.Map)
		return isMap && a.counts(e.Index, l)
	case *ast.CallExpr:
		c := a.calls[e]
		return c != nil && c.Callee != nil && c.Callee.FullName() == "slices.Contains" && a.counts(e.Args[1], l)
	}
	return false
}

// isFull reports whether x is the length of a list that l empties where the
// condition on it holds: if len(batch) == size { …; batch = batch[:0] }.
func (a *analyzer) isFull(x, y ast.Expr, cond *ast.BinaryExpr, l *Loop) bool {
	call := asCall(x)
	n, constant := intConst(a.info, y)
	if call == nil || len(call.Args) != 1 || !a.info.Types[call.Fun].IsBuiltin() || constant && n < 2 {
		return false
	}
	v := a.variable(call.Args[0])
	cur, ok := a.res.Cursor(cond.Pos())
	if v == nil || !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		return slices.ContainsFunc(a.defs[v], func(d def) bool {
			return body.Pos() <= d.pos && d.pos < body.End() && a.in(l, d.in, d.pos) && d.kind == defValue && a.isEmpty(d.value)
		})
	}
	return false
}

// isEmpty recognises an empty list: nil, list[:0], make(…), a literal.
func (a *analyzer) isEmpty(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.SliceExpr:
		n, ok := intConst(a.info, orNil(e.High))
		return ok && n == 0
	case *ast.CallExpr:
		id, ok := ast.Unparen(e.Fun).(*ast.Ident)
		return ok && id.Name == "make"
	case *ast.CompositeLit:
		return len(e.Elts) == 0
	}
	return isNil(a.info, e)
}

// isRandom recognises a random number.
func (a *analyzer) isRandom(e ast.Expr) bool {
	c := a.calls[asCall(e)]
	if c == nil || c.Callee == nil || c.Callee.Pkg() == nil {
		return false
	}
	path := c.Callee.Pkg().Path()
	return path == "math/rand" || path == "math/rand/v2"
}

func (a *analyzer) isIntParam(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	_, ok = a.params[v]
	basic, _ := v.Type().Underlying().(*types.Basic)
	return ok && basic != nil && basic.Info()&types.IsInteger != 0
}

// isVerbose recognises what asks whether to say more, by its name: the flag
// *verbose, testing.Verbose(), logger.Enabled(...), opts.Debug.
func isVerbose(e ast.Expr) bool {
	var name string
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.StarExpr:
		return isVerbose(e.X)
	case *ast.CallExpr:
		return isVerbose(e.Fun)
	}
	return isVerboseName(name)
}

func isVerboseName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "verbose") || strings.Contains(name, "debug") || name == "enabled" || name == "trace"
}

// isFlag recognises a boolean variable or field that a callee asks; how often
// it is set is for its callers to know.
func isFlag(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return isBool(info.TypeOf(e))
	}
	return false
}

func isBool(t types.Type) bool {
	basic, _ := t.Underlying().(*types.Basic)
	return basic != nil && basic.Info()&types.IsBoolean != 0
}

// readsTime reports whether e compares times: once a second is rare.
func (a *analyzer) readsTime(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if fn, ok := a.info.Uses[id].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" {
				found = true
			}
		}
		return !found
	})
	return found
}

// asksForTimeOver reports whether e asks whether a time has come, by name or by
// comparing how much has passed: now.After(end), time.Since(start) > limit. Until then
// it has not.
func (a *analyzer) asksForTimeOver(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		c := a.calls[e]
		return c != nil && isFullName(c.Callee, "(time.Time).After")
	case *ast.BinaryExpr:
		return e.Op == token.GTR || e.Op == token.GEQ
	}
	return false
}

// readsTensor reports whether e depends on a value that was read from a
// tensor, directly or by way of local variables.
func (a *analyzer) readsTensor(e ast.Expr, depth int) bool { return a.readsTensorIn(nil, e, depth) }

// readsTensorIn is readsTensor for what is read in l, if that is not nil.
func (a *analyzer) readsTensorIn(l *Loop, e ast.Expr, depth int) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if c := a.calls[n]; c != nil && (c.api.Kind == tensorapi.Read || len(c.sum().Waits) > 0) {
				found = true
			}
		case *ast.Ident:
			// An error says that something failed, which is no value.
			if v, ok := a.info.Uses[n].(*types.Var); ok && depth < 4 && !v.IsField() && !isError(v.Type()) {
				for _, d := range a.defs[v] {
					if d.kind == defValue && d.value != nil && d.value != e && (l == nil || a.in(l, d.in, d.pos)) {
						found = found || a.readsTensorIn(l, d.value, depth+1)
					}
				}
			}
		}
		return !found
	})
	return found
}
