package sites

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Values that go to a world, such as an environment or an experiment, of which the loop needs the answer.

// asksWorld reports whether c calls an unknown function without tensors, such as that of an environment, which is given
// an action.
func asksWorld(c *blocking.Call) bool {
	return c.Dynamic && c.API.Kind == tensorapi.Unknown && !c.TakesTensor()
}

// plays reports whether d calls a function of the package that acts on a world in a loop of its own, as in the episodes
// of a game. It waits for each action; one more wait for each episode costs little. Depth bounds the functions between.
func plays(pkg *blocking.Package, d *blocking.Call, depth int) bool {
	f := d.Target
	if f == nil || d.Away || depth > 2 || f.SCC == d.In.Owner().SCC || pkg.GuardOf(d.In, d.Expr.Pos(), nil) == blocking.Rarely {
		return false
	}
	return slices.ContainsFunc(f.Calls, func(e *blocking.Call) bool {
		if m := Innermost(pkg, e); m != nil && m.Stmt != nil {
			return acts(pkg, e, m)
		}
		return plays(pkg, e, depth+1)
	})
}

// actsWithin is plays for a loop in l that c is not in.
func actsWithin(pkg *blocking.Package, l *blocking.Loop, c *blocking.Call) bool {
	return pkg.Any(l, func(e *blocking.Call) bool {
		m := Innermost(pkg, e)
		return m != nil && m != l && m.Stmt != nil && !pkg.Contains(m, c.In, c.Expr.Pos()) && acts(pkg, e, m)
	})
}

// acts reports whether e waits in each iteration of m for a value that goes to a world.
func acts(pkg *blocking.Package, e *blocking.Call, m *blocking.Loop) bool {
	return len(pkg.Waits(e)) > 0 && pkg.GuardOf(e.In, e.Expr.Pos(), m) == blocking.Always &&
		slices.ContainsFunc(Uses(pkg, e, m), func(p Place) bool { return isSimulated(pkg, p, m) || isActedOn(pkg, p, m) })
}

// isSimulated reports whether the value at p goes to a function on the host, and l needs its answer: an
// environment that is given an action, a data set that is asked for an element. Such a function gets no
// tensors. It returns tensors, or numbers of which l makes tensors. Nothing can be enqueued before it
// has answered.
func isSimulated(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	at := p.Cur.Parent()
	if x, ok := at.Node().(*ast.IndexExpr); ok && x.Index == p.Cur.Node() && !pkg.HoldsTensors(typeOf(pkg, x)) {
		at = at.Parent() // what a list on the host has for it
	}
	call, ok := at.Node().(*ast.CallExpr)
	if !ok || p.Use != Passed {
		return false
	}
	return actsOn(pkg, pkg.Calls[call], l, 0)
}

// actsOn is isSimulated for c, the call of the function. What a function of the world answers may go to another one:
// a person's choice, for a game. Depth bounds how many.
func actsOn(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop, depth int) bool {
	if c == nil || c.API.Kind != tensorapi.Unknown || c.TakesTensor() || depth > 2 {
		return false
	}
	if outer, ok := c.Value().Parent().Node().(*ast.CallExpr); ok && c.Dynamic && outer.Fun != c.Expr && actsOn(pkg, pkg.Calls[outer], l, depth+1) {
		return true
	}
	for v := range pkg.ResultsOf(c).Variables() {
		if pkg.HoldsTensors(v.Type()) {
			return true
		}
	}
	if changesState(pkg, c, l) {
		return true
	}
	if answersNumber(pkg, c, l) || answersChoice(pkg, c, l) {
		return true
	}
	assign, ok := c.Cur.Parent().Node().(*ast.AssignStmt)
	if isMethod := c.Callee != nil && c.Callee.Signature().Recv() != nil; !ok || len(assign.Rhs) != 1 || !c.Dynamic && !isMethod {
		return false // a function that only computes is no world
	}
	made := make(map[types.Object]bool)
	for _, lhs := range assign.Lhs {
		if v := pkg.Variable(lhs); v != nil && isNumbers(v.Type()) {
			made[v] = true
		}
	}
	return len(made) > 0 && becomesTensor(pkg, made, l)
}

// leadsOn reports whether the value at p says what l reads next, to give it to the world: the place of the next
// experiment, of which the result is awaited.
//
//	x := candidates.Row(promising(candidates))
//	y := measure(x.Float32s())
func leadsOn(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	for cur := range p.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := cur.Node().(*ast.AssignStmt)
		if !ok || len(n.Lhs) != 1 {
			return false
		}
		x := pkg.Variable(n.Lhs[0])
		return x != nil && l.Stmt != nil && l.Declares(x) && pkg.Any(l, func(d *blocking.Call) bool {
			return slices.ContainsFunc(d.AllOperands(), func(e ast.Expr) bool { return pkg.Mentions(e, x) }) && acts(pkg, d, l)
		})
	}
	return false
}

// isActedOn reports whether the value at p goes at once to something outside of the program: a function that nobody
// knows, or a method, which draws or plays it by its name; or one in a loop that makes its tensors of what another
// such function measures, and that doesn't train.
//
//	for draw(x.Float32s()) {
//		x = step(x)
//	}
func isActedOn(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
	if p.Use != Passed || c == nil || !c.Dynamic || c.API.Kind != tensorapi.Unknown || c.TakesTensor() {
		return false
	}
	name := blocking.CalleeName(c)
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return actingName.MatchString(name) || !pkg.Any(l, (*blocking.Call).Mutates) && measures(pkg, l)
}

// actingName matches the names of functions that bring something to somebody's eyes or ears.
var actingName = regexp.MustCompile(`(?i)^(draw|render|paint|play|speak)`)

// measures reports whether l makes tensors of numbers that a function nobody knows returns in each iteration, without
// operands but a context: a camera, a sensor.
func measures(pkg *blocking.Package, l *blocking.Loop) bool {
	measured := make(map[types.Object]bool)
	direct := pkg.Any(l, func(d *blocking.Call) bool {
		if !d.Dynamic || d.API.Kind != tensorapi.Unknown || len(d.Expr.Args) > 1 || d.TakesTensor() {
			return false
		}
		assign, ok := d.Value().Parent().Node().(*ast.AssignStmt)
		if !ok {
			made := pkg.Calls[syntax.AsCall(nodeOf(d.Value().Parent()))]
			return made != nil && made.API.Kind == tensorapi.Host && isNumbers(typeOf(pkg, d.Expr))
		}
		if v := pkg.Variable(assign.Lhs[0]); v != nil && isNumbers(v.Type()) {
			measured[v] = true
		}
		return false
	})
	return direct || len(measured) > 0 && becomesTensor(pkg, measured, l)
}

// answersNumber reports whether c calls an unknown function, and l computes with the number that it returns. It may
// ask the world, as for the outcome of an experiment.
//
//	y := measure(at.ItemInt())
//	sum = sum.AddScalar(y)
func answersNumber(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	assign, ok := c.Cur.Parent().Node().(*ast.AssignStmt)
	if !ok || !c.Dynamic || len(assign.Lhs) == 0 {
		return false
	}
	v := pkg.Variable(assign.Lhs[0])
	return v != nil && syntax.IsNumeric(v.Type()) && pkg.Any(l, func(d *blocking.Call) bool {
		return (d.API.Kind == tensorapi.Op || d.API.Kind == tensorapi.Host) && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Mentions(e, v) })
	})
}

// answersChoice reports whether c calls an unknown function, and its answer decides whether l goes on from other
// tensors.
//
//	if user.Show(arm.ItemInt()) {
//		wins = wins.Add(one)
//	}
func answersChoice(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	n, ok := c.Value().Parent().Node().(*ast.IfStmt)
	return ok && c.Dynamic && n.Cond.Pos() <= c.Expr.Pos() && c.Expr.End() <= n.Cond.End() && pkg.Any(l, (*blocking.Call).Enqueues) && changesTensors(pkg, n, l)
}

// changesTensors reports whether a branch of n assigns a tensor that is declared outside of l.
func changesTensors(pkg *blocking.Package, n *ast.IfStmt, l *blocking.Loop) bool {
	for v, defs := range pkg.Defs {
		if blocking.IsTensor(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d blocking.Def) bool { return n.Body.Pos() <= d.Pos && d.Pos < n.End() }) {
			return true
		}
	}
	return false
}

// changesState reports whether c is a method of a world of which l asks the state to make a tensor: by another method,
// whose result may be in a variable, or as a field of numbers that c's method sets.
//
//	over = g.Play(pick(tensor.From(g.State())))
func changesState(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	recv := c.Operand(tensorapi.Recv)
	if len(recv) == 0 || c.Callee == nil || c.Callee.Signature().Recv() == nil {
		return false
	}
	world := pkg.Variable(recv[0])
	if world == nil {
		return false
	}
	isState := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			d := pkg.Calls[n]
			return d != nil && d.API.Kind == tensorapi.Unknown && len(n.Args) == 0 && len(d.Operand(tensorapi.Recv)) > 0 &&
				pkg.Variable(d.Operand(tensorapi.Recv)[0]) == world && pkg.Params[world].Operand != tensorapi.Recv
		case *ast.Ident:
			v := pkg.Local(n)
			d := pkg.Defs[v]
			if v == nil || len(d) != 1 || d[0].Kind != blocking.DefValue || !isNumbers(v.Type()) || !pkg.Contains(l, d[0].In, d[0].Pos) {
				return false
			}
			call := pkg.Calls[syntax.AsCall(d[0].Value)]
			return call != nil && call.API.Kind == tensorapi.Unknown && len(call.Expr.Args) == 0 && len(call.Operand(tensorapi.Recv)) > 0 &&
				pkg.Variable(call.Operand(tensorapi.Recv)[0]) == world && pkg.Params[world].Operand != tensorapi.Recv
		case *ast.SelectorExpr:
			field := pkg.Variable(n)
			return field != nil && field.IsField() && !pkg.HoldsTensors(field.Type()) && c.Target != nil && slices.ContainsFunc(pkg.Defs[field], func(d blocking.Def) bool { return d.In == c.Target })
		}
		return false
	}
	return pkg.Any(l, func(d *blocking.Call) bool {
		return makesTensors(d) && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool {
			found := false
			ast.Inspect(e, func(n ast.Node) bool {
				found = found || isState(n)
				return !found
			})
			return found
		})
	})
}
