package blocking

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/cfg"
)

// How often the code under a condition runs. A read that only every hundredth iteration comes to costs
// little, so rules skip what is guarded. The answer has two steps:
//
//	if i%100 == 0 && verbose { // Conditions finds the two conditions around the read;
//		fmt.Println(loss)      // classify says Rarely for each of them
//	}
//
// What decides a block are the edges of the graph that dominate it; what decides an operand of && and
// || is in the syntax. classify then recognises the ways in which Go programs write "now and then": a
// remainder, a counter and a threshold, a first time, a clock, a batch that is full, a flag for
// debugging, an error. Most of them have a function each in this file, with an example.
//
// A condition that is not recognised counts as often true (Always). So a rare one of an unknown form
// gives a finding, which a directive can silence. A frequent one that looks like a rare one hides a
// finding, and nobody notices; the patterns are therefore narrow.

// A Guard says how often code under a condition runs, compared with the code around the condition.
type Guard uint8

// The guards, from often to seldom: of several conditions, the greatest counts.
const (
	Always Guard = iota // as often as the code around it, as far as we know
	byData              // depends on a value that was read: the reading is the finding
	Rarely              // in a share of the iterations that does not grow with them
)

func (g Guard) String() string { return [...]string{"always", "by data", "rarely"}[g] }

// A Condition decides whether some code runs: the code runs only if the condition has a certain
// outcome. In the body of an if it holds; after an if that ends in a return it doesn't.
type Condition struct {
	// Expr is the condition, and Holds its outcome where the code runs. Expr is nil for a case of a
	// select.
	Expr  ast.Expr
	Holds bool
	// Block is the block of the control-flow graph that evaluates Expr, or -1 if that is the one with
	// the code, as for the operand of &&. The block other runs with the opposite outcome; -1: nobody
	// asks for it.
	Block int32
	other int32
	// clause is the case of a select statement that was chosen, nil for others.
	clause *ast.CommClause
}

// GuardOf says how often the code at pos in f runs, compared with the iterations of l, or with the calls of the
// function if l is nil. It takes the conditions that decide whether the code runs, from the syntax (x && y) and from
// the control-flow graph, and classifies each:
//
//	for i, b := range batches {
//		loss := step(b)
//		if i%100 == 0 {
//			fmt.Println(loss) // Rarely
//		}
//	}
func (pkg *Package) GuardOf(f *Func, pos token.Pos, l *Loop) Guard {
	fl := f.Flow()
	conditions := append(withoutLoopCondition(pkg.ShortCircuits(pos), pos, l), fl.Conditions(fl.BlockAt(pos))...)
	conditions = append(conditions, pollingLoops(pkg, pos)...)
	conditions = slices.DeleteFunc(conditions, func(c Condition) bool { return isVerdict(pkg, c.Expr, pos) })
	// What all steps of the loop have in common makes none of them rare.
	if l != nil {
		conditions = withoutStepping(pkg, conditions, l)
	}
	// The text of an error is formatted rarely, if any condition decides whether it is.
	if isComplaint(pkg, pos) && slices.ContainsFunc(conditions, func(c Condition) bool { return l == nil || f != l.Func || c.Divides(l) }) {
		return Rarely
	}
	return guardUnder(pkg, conditions, f, pos, l)
}

// withoutLoopCondition removes operands of && in the condition of l itself: where one of them doesn't hold, the loop
// ends.
//
//	for i < n && x.At(i) > 0 { // i < n holds where x.At(i) runs, in all iterations
func withoutLoopCondition(conditions []Condition, pos token.Pos, l *Loop) []Condition {
	if l == nil {
		return conditions
	}
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok || s.Cond == nil || pos < s.Cond.Pos() || s.Cond.End() <= pos {
		return conditions
	}
	if b, ok := ast.Unparen(s.Cond).(*ast.BinaryExpr); !ok || b.Op != token.LAND {
		return conditions
	}
	return slices.DeleteFunc(conditions, func(c Condition) bool { return c.Holds })
}

// withoutStepping removes the conditions under which l takes all its steps of training. Code under the
// same conditions runs in each step, so these don't make it rare:
//
//	if (i+1)%accumulate == 0 {
//		opt.Step()
//		total += sum.Item() // once for each step
//	}
//
// It removes none if some step is taken in another loop, or if a call trains in a loop of its own: then
// these conditions are not what divides the iterations into steps.
func withoutStepping(pkg *Package, conditions []Condition, l *Loop) []Condition {
	if !slices.ContainsFunc(conditions, func(c Condition) bool { return c.Expr != nil && c.Divides(l) }) {
		return conditions
	}
	// guarded becomes what the conditions of all steps have in common; optimises is whether one of the
	// steps is an optimiser's, and not only an assignment of a parameter.
	optimises, guarded := false, conditions
	elsewhere := pkg.Any(l, func(d *Call) bool {
		if !d.Steps() {
			return false
		}
		for m := range pkg.LoopsAround(d.In, d.Expr.Pos()) {
			if m != l || d.Summary().Trains {
				return true
			}
			break
		}
		optimises = optimises || d.API.Kind == tensorapi.Mutate && d.Callee.Name() != "Set"
		guarded = common(guarded, conditionsOf(pkg, d, l))
		return false
	})
	if elsewhere || !optimises || len(guarded) == 0 {
		return conditions
	}
	return slices.DeleteFunc(conditions, func(c Condition) bool { return c.isAmong(guarded) })
}

// conditionsOf lists the conditions under which an iteration of l comes to the call c, which may be in a literal in l.
func conditionsOf(pkg *Package, c *Call, l *Loop) []Condition {
	var list []Condition
	f, pos := c.In, c.Expr.Pos()
	for {
		fl := f.Flow()
		list = append(list, fl.Conditions(fl.BlockAt(pos))...)
		if f == l.Func || f.Parent == nil {
			return list
		}
		pos, f = f.Lit.Pos(), f.Parent
	}
}

// common returns the conditions that are in both lists.
func common(x, y []Condition) []Condition {
	var list []Condition
	for _, c := range x {
		if c.isAmong(y) {
			list = append(list, c)
		}
	}
	return list
}

// isAmong reports whether list has the same condition with the same outcome.
func (c Condition) isAmong(list []Condition) bool {
	return c.Expr != nil && slices.ContainsFunc(list, func(d Condition) bool { return d.Block == c.Block && d.Expr == c.Expr && d.Holds == c.Holds })
}

// isVerdict reports whether the syntax at pos computes the new value of the variable that the condition
// e asks. Such a condition holds until something is found, which may be never, so code under it isn't
// rare:
//
//	ok = ok && x.Item() > 0 // pos is at x.Item(), e is the first ok
func isVerdict(pkg *Package, e ast.Expr, pos token.Pos) bool {
	if not, ok := ast.Unparen(syntax.OrNil(e)).(*ast.UnaryExpr); ok && not.Op == token.NOT {
		e = not.X
	}
	v := pkg.Variable(syntax.OrNil(e))
	return v != nil && isBool(v.Type()) && slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
		return d.Kind == DefValue && d.Value.Pos() <= pos && pos < d.Value.End()
	})
}

// isComplaint reports whether the syntax at pos is an operand of fmt.Errorf, or of a method that makes
// a test fail. Programs come to these rarely:
//
//	t.Errorf("loss is %v", loss.Item())
func isComplaint(pkg *Package, pos token.Pos) bool {
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing() {
		switch n := c.Node().(type) {
		case *ast.CallExpr:
			if call := pkg.Calls[n]; call != nil && (syntax.IsFullName(call.Callee, "fmt.Errorf") || FailsTest(call.Callee)) {
				return true
			}
		case ast.Stmt:
			return false
		}
	}
	return false
}

// FailsTest recognises the methods of package testing that say what is wrong: t.Errorf, b.Fatal, t.Skip.
func FailsTest(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "testing" {
		return false
	}
	switch fn.Name() {
	case "Error", "Errorf", "Fatal", "Fatalf", "Skip", "Skipf":
		return true
	}
	return false
}

// guardUnder is GuardOf for the code at pos in f under the given conditions. If f is a literal that runs
// as a part of the functions around it, it adds the conditions there, up to the function with the loop
// l. Of several conditions the rarest decides, as all of them must be met.
func guardUnder(pkg *Package, conditions []Condition, f *Func, pos token.Pos, l *Loop) Guard {
	at := pos
	g := Always
	for { // f, then the functions around it that it is a part of
		for _, c := range conditions {
			if l != nil && f == l.Func && !c.Divides(l) {
				continue // all iterations but the last have this outcome
			}
			if c.clause != nil {
				if l != nil && takesWork(pkg, c.clause) {
					continue
				}
				return Rarely
			}
			if h := classify(pkg, c.Expr, c.Holds, f, l, 0); h != byData || !asksFor(pkg, l, c.Expr, at) && !pkg.skips(c, pos, l) {
				g = max(g, h)
			}
		}
		if l != nil && f == l.Func {
			break
		}
		if h := f.Runs(); h == Detached || h == Callable {
			break
		}
		if c := f.PassedTo(); c != nil {
			if cb := c.Callback(f.ArgNo); cb != nil && cb.Rare {
				return Rarely
			}
		}
		pos = f.Lit.Pos()
		f = f.Parent
		fl := f.Flow()
		conditions = append(pkg.ShortCircuits(pos), fl.Conditions(fl.BlockAt(pos))...)
	}
	return g
}

// asksFor reports whether all that e asks for was read by an earlier iteration of l at pos itself. That read
// is the only one, and the one to report.
//
//	if last > limit {
//		last = step(b).Item()
//	}
func asksFor(pkg *Package, l *Loop, e ast.Expr, pos token.Pos) bool {
	own, others := false, false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			others = others || readsTensorIn(pkg, l, n, 0)
		case *ast.Ident:
			v, _ := pkg.Info.Uses[n].(*types.Var)
			if v != nil && slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
				return d.Kind == DefValue && d.Value.Pos() <= pos && pos < d.Value.End()
			}) {
				own = true
			} else {
				others = others || readsTensorIn(pkg, l, n, 0)
			}
		}
		return !others
	})
	return own && !others
}

// skips reports whether the condition only says which iterations of l are skipped: where it holds, the iteration ends
// at once. The code at pos is in the rest of the iteration, which goes on with the loop's work, so most iterations come
// to it, and wait a second time.
//
//	if norm.Item() > limit {
//		continue
//	}
//	opt.Step()
//	total += loss.Item()
func (pkg *Package) skips(c Condition, pos token.Pos, l *Loop) bool {
	if c.Expr == nil || c.Holds || l == nil {
		return false
	}
	cur, ok := pkg.Cursor(c.Expr.Pos())
	if !ok {
		return false
	}
	for at := range cur.Enclosing((*ast.IfStmt)(nil)) {
		n := at.Node().(*ast.IfStmt)
		if n.Else != nil || n.Cond.End() < c.Expr.End() || pos < n.End() || len(n.Body.List) == 0 {
			return false
		}
		last, ok := n.Body.List[len(n.Body.List)-1].(*ast.BranchStmt)
		if !ok || last.Tok != token.CONTINUE {
			return false
		}
		works := false
		for d := range pkg.callsIn(l) {
			pos := d.Expr.Pos()
			if n.Pos() <= pos && pos < n.End() && pos >= n.Body.Pos() && (d.Enqueues() || d.Mutates()) {
				return false // it does something else instead
			}
			works = works || pos > n.End() && (d.Enqueues() || d.Mutates())
		}
		return works
	}
	return false
}

// Divides reports whether both outcomes of the condition stay in the loop. If one of them leaves it, all iterations
// but the last have the other outcome:
//
//	if done {
//		break // the code after it runs in each iteration
//	}
func (c Condition) Divides(l *Loop) bool {
	return l.Blocks == nil || (c.Block < 0 || l.Blocks[c.Block]) && (c.other < 0 || l.Blocks[c.other])
}

// ShortCircuits lists the operands of && and || that decide whether the expression at pos is evaluated.
// If pos is in y, that is x, which holds in x && y and doesn't in x || y:
//
//	if i%100 == 0 && loss.Item() > limit { // i%100 == 0 holds where loss.Item() runs
func (pkg *Package) ShortCircuits(pos token.Pos) []Condition {
	var list []Condition
	cur, ok := pkg.Cursor(pos)
	if !ok {
		return nil
	}
	for c := range cur.Enclosing() {
		if _, ok := c.Node().(ast.Expr); !ok {
			break
		}
		if n, ok := c.Node().(*ast.BinaryExpr); ok && n.Y.Pos() <= pos && (n.Op == token.LAND || n.Op == token.LOR) {
			list = append(list, Condition{n.X, n.Op == token.LAND, -1, -1, nil})
		}
	}
	return list
}

// Conditions lists what decides whether block b runs: the conditions one of whose edges dominates b,
// inner ones first. A case of a select statement is a condition without an expression.
//
//	if p {          // doesn't hold at b, nor at c
//		return
//	}
//	for more() {    // decides nothing at b: a loop's own condition is not asked
//		if q {  // holds at b
//			b()
//		}
//	}
//	c()             // more() decides nothing here either: the loop has no other way out
//
// It goes up the tree of dominators. Where a dominator has one predecessor with two successors, all
// ways to b take the edge between them.
func (f *Flow) Conditions(b int32) []Condition {
	var list []Condition
	target := b
	for ; b >= 0; b = f.idom[b] {
		blk := f.Blocks[b]
		if blk.Kind == cfg.KindSelectCaseBody {
			clause, _ := blk.Stmt.(*ast.CommClause)
			list = append(list, Condition{Block: b, other: -1, clause: clause})
			continue
		}
		if len(f.Preds[b]) != 1 || blk.Kind == cfg.KindForBody || blk.Kind == cfg.KindRangeBody {
			continue // not decided by one edge, or by that of a loop
		}
		p := f.Blocks[f.Preds[b][0]]
		if len(p.Succs) != 2 || len(p.Nodes) == 0 || p.Succs[0] == p.Succs[1] || f.isOnlyExit(p.Index, b, target) {
			continue
		}
		if e, ok := p.Nodes[len(p.Nodes)-1].(ast.Expr); ok {
			// The first successor of a condition is the one where it holds.
			holds := p.Succs[0] == blk
			other := p.Succs[0]
			if holds {
				other = p.Succs[1]
			}
			if tag := f.tags[blk.Stmt]; tag != nil { // case e of a switch over tag is tag == e
				e = &ast.BinaryExpr{X: tag, Op: token.EQL, OpPos: tag.End(), Y: e}
			}
			list = append(list, Condition{e, holds, p.Index, other.Index, nil})
		}
	}
	return list
}

// isOnlyExit reports whether a loop around p is left only by the edge from p to b, apart from ways that
// end in a panic. target is a block outside of that loop. Every run that gets past the loop takes this
// edge, so the condition at p decides nothing.
func (f *Flow) isOnlyExit(p, b, target int32) bool {
	return slices.ContainsFunc(f.Loops, func(l *Loop) bool {
		if !l.Blocks[p] || l.Blocks[b] || l.Blocks[target] {
			return false
		}
		for from := range l.Blocks {
			for _, s := range f.Blocks[from].Succs {
				// Another way out, unless it ends in a panic.
				if !l.Blocks[s.Index] && (from != p || s.Index != b) && (f.returns(s.Index) || f.Reaches(s.Index, l.Head, never)) {
					return false
				}
			}
		}
		return true
	})
}

// takesWork reports whether a case of a select statement receives the work of its loop: the body reads or enqueues
// something with what was received, and the statement has no default. Other cases are ticks, requests to stop and the
// like, which come rarely:
//
//	select {
//	case x := <-work:
//		y := model.Forward(x) // the loop's work
//	case <-ticker.C:
//		fmt.Println(loss) // rare
//	}
func takesWork(pkg *Package, clause *ast.CommClause) bool {
	received, ok := clause.Comm.(*ast.AssignStmt)
	cur, found := pkg.Cursor(clause.Pos())
	if !ok || !found {
		return false
	}
	v := pkg.Variable(received.Lhs[0])
	// With a default the loop does something else meanwhile: what it receives is not its only work.
	for c := range cur.Enclosing((*ast.SelectStmt)(nil)) {
		for _, s := range c.Node().(*ast.SelectStmt).Body.List {
			if s.(*ast.CommClause).Comm == nil {
				return false // does not wait
			}
		}
		break
	}
	// Something in the case uses what was received, and enqueues or waits.
	takes := false
	for _, s := range clause.Body {
		ast.Inspect(s, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && pkg.Calls[call] != nil && (pkg.Calls[call].Enqueues() || len(pkg.Waits(pkg.Calls[call])) > 0) {
				takes = takes || v != nil && pkg.Mentions(call, v)
			}
			return !takes
		})
	}
	return takes
}

// Mentions reports whether v occurs in e.
func (pkg *Package) Mentions(e ast.Expr, v *types.Var) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && pkg.Info.Uses[id] == v
		return !found
	})
	return found
}

// classify says how often the condition e holds or, if holds is false, doesn't hold. It looks through
// negation, && and ||, variables with one definition, and calls of functions of the package; the depth
// bounds that. For x && y to hold both must, so the rarer decides; for it not to hold one is enough, so
// the more frequent decides. It is the other way round for ||.
func classify(pkg *Package, e ast.Expr, holds bool, f *Func, l *Loop, depth int) Guard {
	if depth > 8 || l == nil && !holds && turnsOff(e) {
		return Always
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return classify(pkg, e.X, !holds, f, l, depth+1)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			x := classify(pkg, e.X, holds, f, l, depth+1)
			y := classify(pkg, e.Y, holds, f, l, depth+1)
			if (e.Op == token.LAND) == holds {
				return max(x, y) // both are so
			}
			return min(x, y) // one of them is so
		}
		if isRare(pkg, e, holds, f, l) {
			return Rarely
		}
	// Questions with an answer: ready(), set[i], due(i).
	case *ast.IndexExpr, *ast.CallExpr:
		if holds && (polls(pkg, e) || l != nil && picks(pkg, e, l)) {
			return Rarely
		}
		if answersRarely(pkg, e, holds, f, l, depth) {
			return Rarely
		}
	case *ast.Ident:
		if l != nil && isSpent(pkg, e, holds, l) {
			return Rarely
		}
		if l == nil && holds && isTensorAssertion(pkg, e) {
			return Always // callers know what they pass
		}
		if v, ok := pkg.Info.Uses[e].(*types.Var); ok {
			if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == DefValue && !isCall(d[0].Value) && !isFirstLookup(pkg, d[0]) {
				if g := classify(pkg, d[0].Value, holds, f, l, depth+1); g != Always {
					return g
				}
			}
		}
	}
	if holds && isVerbose(e) || l == nil && isFlag(pkg.Info, e) || asksEnvironment(pkg, e) {
		return Rarely
	}
	if readsTime(pkg, e) {
		if !holds && asksForTimeOver(pkg, e) {
			return Always // until then
		}
		return Rarely
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && isFinite(pkg, b, holds) {
		return Always
	}
	// The condition itself reads: a rule reports that read, and not the one under the condition as
	// well.
	if readsTensorIn(pkg, l, e, depth) {
		return byData
	}
	return Always
}

// isFinite reports whether the condition e, with the outcome holds, says that a tensor has no NaN or Inf. That is how
// it should be in each iteration:
//
//	if x.IsNaN().Any().Item() != 0 {
//		continue
//	}
func isFinite(pkg *Package, e *ast.BinaryExpr, holds bool) bool {
	zero := pkg.Info.Types[e.Y].Value
	if zero == nil || zero.Kind() != constant.Int && zero.Kind() != constant.Float || constant.Sign(zero) != 0 || e.Op != token.EQL && e.Op != token.NEQ {
		return false
	}
	name := ""
	ast.Inspect(e.X, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if c := pkg.Calls[call]; c != nil && (c.IsFunc("Tensor.IsNaN") || c.IsFunc("Tensor.IsInf") || c.IsFunc("Tensor.IsFinite")) {
				name = c.Callee.Name()
			}
		}
		return name == ""
	})
	isZero := (e.Op == token.EQL) == holds
	return name != "" && isZero == (name != "IsFinite")
}

// isSpent reports whether the condition e, a variable, holds only once: where it holds, l sets it to
// the opposite constant, and l never sets it back.
//
//	if first {
//		fmt.Println(x)
//		first = false
//	}
func isSpent(pkg *Package, e *ast.Ident, holds bool, l *Loop) bool {
	v := pkg.Local(e)
	cur, ok := pkg.Cursor(e.Pos())
	if v == nil || !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		spent := false
		for _, d := range pkg.Defs[v] {
			if !pkg.Contains(l, d.In, d.Pos) {
				continue
			}
			value := pkg.Info.Types[syntax.OrNil(d.Value)].Value
			if d.Kind != DefValue || value == nil || value.Kind() != constant.Bool || constant.BoolVal(value) == holds {
				return false
			}
			spent = spent || body.Pos() <= d.Pos && d.Pos < body.End()
		}
		return spent
	}
	return false
}

// isCall reports whether e is a call.
func isCall(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.CallExpr); return ok }

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
		// The last few: i >= n-1, i+1 >= n.
		return l != nil && pkg.Counts(x, l) && !pkg.Varies(y, l) && (isOffset(pkg.Info, x, token.ADD) || isOffset(pkg.Info, y, token.SUB))
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
		return slices.ContainsFunc(pkg.Defs[v], func(d Def) bool {
			if d.Kind != DefValue || d.In == nil || !isEmpty(pkg, d.Value) {
				return false
			}
			inside := body.Pos() <= d.Pos && d.Pos < body.End() && pkg.Contains(l, d.In, d.Pos)
			return inside || pkg.Any(l, func(c *Call) bool { // a function of the package empties it
				return c.Target == d.In && body.Pos() <= c.Expr.Pos() && c.Expr.Pos() < body.End()
			})
		})
	}
	return false
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

// isRandom recognises a random number: a call of a function of math/rand.
func isRandom(pkg *Package, e ast.Expr) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || c.Callee == nil || c.Callee.Pkg() == nil {
		return false
	}
	path := c.Callee.Pkg().Path()
	return path == "math/rand" || path == "math/rand/v2"
}

// isIntParam reports whether e is an integer parameter.
func isIntParam(pkg *Package, e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	_, ok = pkg.Params[v]
	basic, _ := v.Type().Underlying().(*types.Basic)
	return ok && basic != nil && basic.Info()&types.IsInteger != 0
}

// isVerbose recognises conditions that ask whether to say more: *verbose, testing.Verbose(),
// logger.Enabled(level), opts.Debug. It goes by their names alone.
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

// isVerboseName reports whether a name, in lower case, speaks of being verbose.
func isVerboseName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "verbose") || strings.Contains(name, "debug") || name == "enabled" || name == "trace"
}

// isFlag recognises a boolean variable or field. It is asked where there is no loop: only the callers
// of the function know how often the flag is set, so code under it is not held against them.
func isFlag(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return isBool(info.TypeOf(e))
	}
	return false
}

// turnsOff recognises flags that turn something off, by their names. They aren't set as a rule.
//
//	if Disabled {
//		return
//	}
func turnsOff(e ast.Expr) bool { return offName.MatchString(nameOf(e)) }

// offName matches the names of such flags.
var offName = regexp.MustCompile(`(?i)^(is)?_?(disabled?|off|paused|stopped|closed)$`)

// isBool reports whether t is a boolean type.
func isBool(t types.Type) bool {
	basic, _ := t.Underlying().(*types.Basic)
	return basic != nil && basic.Info()&types.IsBoolean != 0
}

// readsTime reports whether e uses something of package time. Such a condition, like time.Since(last) >
// time.Second, holds once in a while, however fast the iterations are.
func readsTime(pkg *Package, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if fn, ok := pkg.Info.Uses[id].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" {
				found = true
			}
		}
		return !found
	})
	return found
}

// asksForTimeOver reports whether e asks whether a time has come: now.After(end), time.Since(start) >
// limit. Where e does not hold, the time is still to come, so code there runs often:
//
//	if time.Since(start) > limit {
//		break
//	}
//	train() // often
func asksForTimeOver(pkg *Package, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		c := pkg.Calls[e]
		return c != nil && syntax.IsFullName(c.Callee, "(time.Time).After")
	case *ast.BinaryExpr:
		return e.Op == token.GTR || e.Op == token.GEQ
	}
	return false
}

// readsTensor reports whether e depends on a value that was read from a tensor, directly or by way of local variables.
func readsTensor(pkg *Package, e ast.Expr, depth int) bool { return readsTensorIn(pkg, nil, e, depth) }

// readsTensorIn is readsTensor for values that are read in l, or anywhere if l is nil. It follows local
// variables to what is assigned to them, up to a depth; callers pass 0. A field may be set by anybody
// and is not followed.
func readsTensorIn(pkg *Package, l *Loop, e ast.Expr, depth int) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			if isNilTensor(pkg, n) {
				return false
			}
		case *ast.CallExpr:
			// A call that reads is enough, whatever becomes of its value.
			if c := pkg.Calls[n]; c != nil && (c.API.Kind == tensorapi.Read || len(c.Summary().Waits) > 0) {
				found = true
			}
		case *ast.Ident:
			// An error says that something failed, which is no value.
			if v, ok := pkg.Info.Uses[n].(*types.Var); ok && depth < 4 && !v.IsField() && !syntax.IsError(v.Type()) {
				for _, d := range pkg.Defs[v] {
					if d.Kind == DefValue && d.Value != nil && d.Value != e && !isFirstLookup(pkg, d) && (l == nil || pkg.Contains(l, d.In, d.Pos)) {
						found = found || readsTensorIn(pkg, l, d.Value, depth+1)
					}
					if maker := pkg.Calls[syntax.AsCall(syntax.OrNil(d.Value))]; (d.Kind == DefKey || d.Kind == DefElem) && syntax.IsNumeric(v.Type()) && maker != nil && maker.Summary().Func != nil {
						found = found || len(maker.Summary().Func.Waits) > 0 // an iterator that reads what it yields
					}
				}
			}
		}
		return !found
	})
	return found
}

// isNilTensor reports whether e asks whether a variable has a tensor. That depends on no value.
func isNilTensor(pkg *Package, e *ast.BinaryExpr) bool {
	x := e.X
	if syntax.IsNil(pkg.Info, x) {
		x = e.Y
	} else if !syntax.IsNil(pkg.Info, e.Y) {
		return false
	}
	return pkg.Variable(x) != nil && IsTensor(pkg.Info.TypeOf(x))
}

// isFirstLookup reports whether d says whether a map that the function has made holds a key: it does if the key has
// come before, whatever the value is. A map that was there before may be a cache, which holds most keys.
//
//	if _, ok := out[name]; ok {
//		continue
//	}
func isFirstLookup(pkg *Package, d Def) bool {
	x, ok := ast.Unparen(d.Value).(*ast.IndexExpr)
	if !ok || d.Index != 1 {
		return false
	}
	v := pkg.Local(x.X)
	return v != nil && pkg.Params[v].Of == nil && slices.ContainsFunc(pkg.Defs[v], func(e Def) bool {
		call := syntax.AsCall(syntax.OrNil(e.Value))
		_, isLit := ast.Unparen(syntax.OrNil(e.Value)).(*ast.CompositeLit)
		return isLit || call != nil && syntax.IsBuiltin(pkg.Info, call, "make")
	})
}

// asksEnvironment reports whether e asks for a variable of the environment, as os.Getenv("DEBUG") != ""
// does. Such variables usually turn on more output.
func asksEnvironment(pkg *Package, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || pkg.Calls[call] == nil || len(call.Args) != 1 {
			return !found
		}
		fn, name := pkg.Calls[call].Callee, pkg.Info.Types[call.Args[0]].Value
		found = found || (syntax.IsFullName(fn, "os.Getenv") || syntax.IsFullName(fn, "os.LookupEnv")) && name != nil && isVerboseName(name.ExactString())
		return !found
	})
	return found
}

// isTensorAssertion reports whether e says if something is a tensor or a part of a model: t, ok := v.(*tensor.Tensor).
func isTensorAssertion(pkg *Package, e *ast.Ident) bool {
	d := pkg.Defs[pkg.Local(e)]
	if len(d) != 1 || d[0].Kind != DefValue || d[0].Index != 1 {
		return false
	}
	x, ok := ast.Unparen(d[0].Value).(*ast.TypeAssertExpr)
	return ok && x.Type != nil && (IsTensor(pkg.Info.TypeOf(x.Type)) || computes(pkg, pkg.Info.TypeOf(x.Type)))
}
