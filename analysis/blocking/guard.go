package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
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
// debugging, an error. Most of them have a function each in classify.go and rare.go, with an example.
//
// A condition that is not recognised counts as often true (Always). So a rare one of an unknown form
// gives a finding, which a directive can silence. A frequent one that looks like a rare one hides a
// finding, and nobody notices; the patterns are therefore narrow.

// A Guard says how often code under a condition runs, compared with the code around the condition.
type Guard uint8

// The guards, from often to seldom: of several conditions, the greatest counts.
const (
	Always Guard = iota // as often as the code around it, as far as we know
	byData              // depends on a value that was read
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
