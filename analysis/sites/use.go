package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A Use says what becomes of a value that was read in a loop, within the loop. Uses form a set.
type Use uint8

// The uses.
const (
	Kept     Use = 1 << iota // added up, appended, stored: the loop does not act on it
	Printed                  // formatted and written
	Decides                  // it decides what the loop does next
	Computes                 // it becomes the operand of a tensor operation
	Passed                   // given to a function, returned, used in another way
	Recorded                 // given to an output of the library, which takes tensors as well
)

// A Place is one use of a value.
type Place struct {
	Use   Use
	in    *blocking.Func
	Pos   token.Pos
	Cur   inspector.Cursor
	Alarm bool // what it decides is whether to give up
}

// A follower finds what becomes of the value of a call in a loop.
type follower struct {
	*blocking.Package
	loop   *blocking.Loop
	seen   map[*types.Var]bool
	places []Place
	depth  int // of conditions that assign variables that conditions ask
}

// Uses lists what becomes of the value of c in l.
func Uses(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) []Place {
	w := follower{Package: pkg, loop: l, seen: make(map[*types.Var]bool)}
	w.value(c.Cur, c.In)
	w.handedOn(c)
	return w.places
}

// handedOn follows a value that the call c doesn't return. c gives the value to a function among its
// arguments, puts it where another argument points to, or writes it to a file.
func (w *follower) handedOn(c *blocking.Call) {
	if c.API.Kind == tensorapi.Save {
		w.add(Passed, c.Cur, c.In)
		return
	}
	if c.API.Kind != tensorapi.Read || c.Callee == nil {
		return
	}
	before := len(w.places)
	if c.API.Calls != tensorapi.Never {
		for _, lit := range c.Lits {
			for v := range lit.Sig.Params().Variables() {
				w.followUses(v, lit)
			}
		}
	} else {
		for v := range c.Callee.Signature().Results().Variables() {
			if !syntax.IsError(v.Type()) {
				return
			}
		}
	}
	if len(w.places) == before {
		w.add(Passed, c.Cur, c.In)
	}
}

// add notes a use of the value at cur.
func (w *follower) add(use Use, cur inspector.Cursor, f *blocking.Func) {
	w.places = append(w.places, Place{Use: use, in: f, Pos: cur.Node().Pos(), Cur: cur})
}

// value follows the value of the expression at cur up the syntax tree, to where it is used.
func (w *follower) value(cur inspector.Cursor, f *blocking.Func) {
	for {
		up := cur.Parent()
		kind, index := cur.ParentEdge()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.BinaryExpr, *ast.SelectorExpr, *ast.StarExpr, *ast.SliceExpr:
			// The value is part of a larger one.
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				w.add(Passed, cur, f)
				return
			}
		case *ast.IndexExpr:
			if kind != edge.IndexExpr_X {
				w.add(Passed, cur, f)
				return
			}
		case *ast.CallExpr:
			if kind == edge.CallExpr_Fun {
				break // a method of the value
			}
			use, through := w.argument(n)
			if !through {
				w.add(use, cur, f)
				return
			}
		case *ast.CompositeLit:
			if _, ok := up.Parent().Node().(*ast.CallExpr); !ok {
				w.add(Kept, cur, f)
				return
			}
			// What is given to a function is a use of the value, too: a letter of its number.
		case *ast.KeyValueExpr:
			w.add(Kept, cur, f)
			return
		case *ast.AssignStmt:
			if kind == edge.AssignStmt_Rhs {
				w.assigned(n, index, cur, f)
			}
			return
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Names) == len(n.Values) && i != index {
					continue
				}
				w.variable(name, false, cur, f)
			}
			return
		case *ast.RangeStmt:
			if n.Value == nil {
				w.add(Passed, cur, f)
			} else {
				w.variable(n.Value, false, cur, f)
			}
			return
		case *ast.IfStmt, *ast.ForStmt, *ast.SwitchStmt:
			w.condition(up, cur, f)
			return
		case *ast.CaseClause:
			w.condition(up.Parent().Parent(), cur, f)
			return
		case *ast.ExprStmt:
			return // the value is dropped
		default:
			w.add(Passed, cur, f)
			return
		}
		cur = up
	}
}

// argument says what a call does with an argument. If through is true, its result is what to follow.
func (w *follower) argument(n *ast.CallExpr) (use Use, through bool) {
	tv := w.Info.Types[n.Fun]
	switch {
	case tv.IsType():
		return 0, true
	case tv.IsBuiltin():
		if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok {
			switch id.Name {
			case "append", "len", "cap": // how many there are was known before
				return Kept, false
			case "min", "max", "real", "imag", "complex":
				return 0, true
			}
		}
		return Passed, false
	}
	c := w.Calls[n]
	if c == nil {
		return Passed, false
	}
	switch c.API.Kind {
	case tensorapi.Op, tensorapi.Draw, tensorapi.Host, tensorapi.Mutate, tensorapi.View:
		return Computes, false
	case tensorapi.Output:
		return Recorded, false
	case tensorapi.Pure:
		return 0, true
	}
	if _, ok := c.Printer(); ok {
		return Printed, false
	}
	return Passed, isArithmetic(c.Callee)
}

// assigned follows the value into the variable that it is assigned to, the one with the given index.
func (w *follower) assigned(n *ast.AssignStmt, index int, cur inspector.Cursor, f *blocking.Func) {
	if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
		w.variable(n.Lhs[0], true, cur, f) // v += value
		return
	}
	for i, lhs := range n.Lhs {
		if len(n.Lhs) == len(n.Rhs) && i != index {
			continue
		}
		w.variable(lhs, w.mentions(n.Rhs[min(i, len(n.Rhs)-1)], lhs), cur, f)
	}
}

// mentions reports whether e uses the variable that is called id.
func (w *follower) mentions(e, id ast.Expr) bool {
	name, ok := ast.Unparen(id).(*ast.Ident)
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		use, isIdent := n.(*ast.Ident)
		found = found || ok && isIdent && w.Info.Uses[use] == w.Info.ObjectOf(name)
		return !found
	})
	return found
}

// variable follows the value into a variable, and through its uses in the loop. Unless the variable is blank or the
// loop's own, the value is kept for after the loop if there are no uses, and for later iterations if it is added to
// what the variable had, so that uses in few of them need the values of all.
func (w *follower) variable(lhs ast.Expr, added bool, cur inspector.Cursor, f *blocking.Func) {
	id, ok := ast.Unparen(lhs).(*ast.Ident)
	if !ok {
		w.add(Kept, cur, f)
		return
	}
	v, ok := w.Info.ObjectOf(id).(*types.Var)
	if !ok || id.Name == "_" || w.seen[v] || syntax.IsError(v.Type()) {
		return
	}
	w.seen[v] = true
	before := len(w.places)
	w.followUses(v, f)
	if outlives := !w.declaredIn(v, f); outlives && (added || len(w.places) == before) {
		w.add(Kept, cur, f)
	}
}

// followUses follows the value of v from all its uses in the loop.
func (w *follower) followUses(v *types.Var, f *blocking.Func) {
	for use := range w.UsesOf(v, f) {
		if g := w.FuncAt(use); w.Contains(w.loop, g, use.Node().Pos()) && !syntax.IsTarget(use) {
			w.value(use, g)
		}
	}
}

// declaredIn reports whether each iteration of the loop has a v of its own.
func (w *follower) declaredIn(v *types.Var, f *blocking.Func) bool {
	g := f
	for g.Parent != nil && (v.Pos() < g.Lit.Pos() || v.Pos() >= g.Lit.End()) {
		g = g.Parent
	}
	return w.Contains(w.loop, g, v.Pos())
}

// condition handles a value that a statement branches on. It decides only if the branches differ in what they enqueue
// or where they go. Keeping the largest value on the host holds up nothing:
//
//	if v > best {
//		best = v
//	}
func (w *follower) condition(stmt, cur inspector.Cursor, f *blocking.Func) {
	if _, ok := stmt.Node().(*ast.ForStmt); ok {
		w.add(Decides, cur, f)
		return
	}
	var body token.Pos // the condition's own calls don't count
	switch n := stmt.Node().(type) {
	case *ast.IfStmt:
		body = n.Body.Pos()
	case *ast.SwitchStmt:
		body = n.Body.Pos()
	}
	decides, acts := false, false
	for c := range stmt.Preorder((*ast.BranchStmt)(nil), (*ast.ReturnStmt)(nil), (*ast.CallExpr)(nil), (*ast.SendStmt)(nil)) {
		if c.Node().Pos() < body {
			continue
		}
		switch n := c.Node().(type) {
		case *ast.BranchStmt:
			_, inSwitch := stmt.Node().(*ast.SwitchStmt)
			isOfSwitch := inSwitch && n.Label == nil && n.Tok == token.BREAK
			decides = decides || !isOfSwitch && n.Tok != token.FALLTHROUGH
		case *ast.ReturnStmt:
			decides = true
		case *ast.SendStmt:
			acts = true
		case *ast.CallExpr:
			call := w.Calls[n]
			decides = decides || syntax.NeverReturns(w.Info, n) || call != nil && (call.Enqueues() || call.Mutates())
			acts = acts || call != nil && !isArithmetic(call.Callee)
		}
	}
	switch {
	case decides || w.leadsToDecision(stmt, body, cur, f):
		w.add(Decides, cur, f)
		w.places[len(w.places)-1].Alarm = w.isAlarm(stmt)
	case acts:
		w.add(Passed, cur, f) // it picks what the host does: what is printed, who is told
	default:
		w.add(Kept, cur, f)
	}
}

// isAlarm reports whether an if statement looks for something that should not happen: it asks for NaN
// or an infinity, or its body only ends in an error.
//
//	if math.IsNaN(loss.Item()) {
//		return errDiverged
//	}
func (w *follower) isAlarm(stmt inspector.Cursor) bool {
	n, ok := stmt.Node().(*ast.IfStmt)
	if !ok {
		return false
	}
	asks := false
	ast.Inspect(n.Cond, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && w.Calls[call] != nil {
			fn := w.Calls[call].Callee
			asks = asks || syntax.IsFullName(fn, "math.IsNaN") || syntax.IsFullName(fn, "math.IsInf")
		}
		return !asks
	})
	return asks || n.Else == nil && len(n.Body.List) > 0 && w.complains(n.Body.List[len(n.Body.List)-1])
}

// complains reports whether a statement returns an error that is not nil, or never returns.
func (w *follower) complains(stmt ast.Stmt) bool {
	switch stmt := stmt.(type) {
	case *ast.ReturnStmt:
		return slices.ContainsFunc(stmt.Results, func(e ast.Expr) bool { return !syntax.IsNil(w.Info, e) && w.makesError(e) })
	case *ast.ExprStmt:
		call := syntax.AsCall(stmt.X)
		return call != nil && syntax.NeverReturns(w.Info, call)
	}
	return false
}

// makesError reports whether the type of e is an error type.
func (w *follower) makesError(e ast.Expr) bool {
	t := w.Info.TypeOf(e)
	return t != nil && types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

// isArithmetic recognises functions that only compute, like math.Sqrt and strconv.FormatFloat. A value
// that is given to one lives on in the result.
func isArithmetic(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil || fn.Signature().Recv() != nil {
		return false // a method of strings.Builder keeps it
	}
	switch fn.Pkg().Path() {
	case "math", "strconv", "strings", "math/cmplx", "math/bits", "cmp":
		return true
	}
	return false
}

// leadsToDecision reports whether the branches of a statement, which begin at body, assign a variable that decides
// what the loop does next, such as a count of steps without progress.
func (w *follower) leadsToDecision(stmt inspector.Cursor, body token.Pos, cur inspector.Cursor, f *blocking.Func) bool {
	for c := range stmt.Preorder((*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil)) {
		if c.Node().Pos() < body {
			continue
		}
		var lhs []ast.Expr
		switch n := c.Node().(type) {
		case *ast.AssignStmt:
			lhs = n.Lhs
		case *ast.IncDecStmt:
			lhs = []ast.Expr{n.X}
		}
		for _, e := range lhs {
			if w.decides(e, cur, f) || w.isComputedWith(e) {
				return true
			}
		}
	}
	return false
}

// isComputedWith reports whether e is a variable or field whose tensors are operands of what the loop
// enqueues: x, in a loop that accepts or rejects a new x.
func (w *follower) isComputedWith(e ast.Expr) bool {
	v := w.Package.Variable(e)
	return v != nil && w.HoldsTensors(v.Type()) &&
		w.Any(w.loop.Outermost(), func(c *blocking.Call) bool { return c.Enqueues() && w.Mentions(c.Expr, v) })
}

// decides reports whether the variable e, which is assigned at cur, decides what the loop does next.
func (w *follower) decides(e ast.Expr, cur inspector.Cursor, f *blocking.Func) bool {
	if w.Local(e) == nil || w.depth > 2 {
		return false
	}
	further := follower{Package: w.Package, loop: w.loop, seen: maps.Clone(w.seen), depth: w.depth + 1}
	further.variable(e, false, cur, f)
	return slices.ContainsFunc(further.places, func(p Place) bool { return p.Use == Decides })
}
