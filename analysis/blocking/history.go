package blocking

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A Keeping is a place in a loop, or in a method that is called in one, that keeps what has a
// history, which gradients would follow, for longer than the iteration, although nothing
// follows it there.
type Keeping struct {
	Kind KeepingKind
	Pos  token.Pos
	End  token.Pos
	Kept string   // what keeps the history
	Part ast.Expr // what has it
	Loop *Loop    // nil in a method
}

// A KeepingKind says how a history is kept.
type KeepingKind uint8

// The kinds of keepings.
const (
	Summed   KeepingKind = iota // added to a tensor of which values are read
	Averaged                    // added, beside steps of training, to one that outlives the loop
	Carried                     // each value is computed from the one of the iteration before
	Listed                      // put into a list of tensors of which values are read
	Copied                      // computed by a network that nothing trains, and differentiated
	Given                       // given to a function that keeps it so
	Held                        // put into a field of which values are read, of a struct that is kept
)

// Keepings lists those of the package, in the order of the source.
func (r *Result) Keepings() []Keeping {
	if len(r.Funcs) == 0 {
		return nil
	}
	a := r.Funcs[0].a
	var list []Keeping
	for _, f := range r.Funcs {
		list = append(list, f.sums()...)
	}
	summed := make(map[token.Pos]bool)
	for _, k := range list {
		summed[k.Pos] = true
	}
	for v, defs := range a.defs {
		for _, d := range defs {
			if d.kind != defValue || d.in == nil {
				continue
			}
			switch shared := v.IsField() || v.Parent() == a.pass.Pkg.Scope(); {
			case isTensor(v.Type()) && shared:
			case isTensor(v.Type()):
				if k, ok := a.carried(v, d); ok && !slices.ContainsFunc(list, func(s Keeping) bool { return s.Pos <= k.Pos && k.Pos < s.End }) {
					list = append(list, k)
				}
			case isTensors(v.Type()):
				list = append(list, a.listed(v, d)...)
			}
		}
	}
	list = append(list, a.held()...)
	list = append(list, a.given()...)
	list = append(list, a.differentiatedCopies()...)
	slices.SortFunc(list, func(k, m Keeping) int { return cmp.Compare(k.Pos, m.Pos) })
	return list
}

// sums lists the statements of f that add to a sum.
func (f *Func) sums() []Keeping {
	var list []Keeping
	for _, c := range f.calls {
		assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
		if !ok || c.api.Kind != tensorapi.Op || len(assign.Lhs) != 1 || assign.Tok != token.ASSIGN {
			continue
		}
		if k, ok := f.a.sum(c, assign); ok {
			list = append(list, k)
		}
	}
	return list
}

// sum returns what the assignment of the result of c is, if it adds to a sum.
func (a *analyzer) sum(c *Call, assign *ast.AssignStmt) (Keeping, bool) {
	total := assign.Lhs[0]
	v := a.variable(total)
	if v == nil || !isTensors(v.Type()) || isTensor(v.Type()) && a.params[v].of != nil {
		return Keeping{}, false
	}
	k := Keeping{Kind: Summed, Pos: assign.Pos(), End: assign.End(), Kept: types.ExprString(total)}
	if at, ok := a.addends(c, total); ok {
		if k.Part = a.partWithHistory(c, at, v); k.Part == nil {
			return Keeping{}, false
		}
	} else {
		return Keeping{}, false
	}
	shared := v.IsField() || v.Parent() == a.pass.Pkg.Scope()
	var inner *Loop // the last one around, whose counters take the same values again
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if l.small || !shared && a.declaredInLoop(v, l) || a.anotherIn(total, l, inner) {
			inner = l
			continue
		}
		if a.overParts(l) {
			return Keeping{}, false // a model has so many
		}
		if !isTensor(v.Type()) || shared {
			// Others see it: only what the loop trains away is surely of no use.
			if fate := a.fateOf(v, c.in); fate != 0 && (fate&differentiated != 0 || !a.trainsBeside(c, l) || a.isReset(v, l)) {
				return Keeping{}, false
			} else if fate != 0 {
				k.Kind = Averaged
			}
		} else if a.fateOf(v, c.in) != 0 {
			return Keeping{}, false
		}
		if !a.isLeafOrFresh(k.Part, c.in, l) {
			return Keeping{}, false
		}
		k.Loop = l
		return k, true
	}
	if recv := a.rootParam(total); shared && recv != nil && c.in.lit == nil && a.fateOf(v, c.in) == 0 {
		return k, true
	}
	return Keeping{}, false
}

// rootParam returns the parameter or receiver that e is a part of, or nil.
func (a *analyzer) rootParam(e ast.Expr) *types.Var {
	v, _ := a.rootOf(e, 0)
	if v == nil || a.params[v].of == nil {
		return nil
	}
	return v
}

func (a *analyzer) isLeafOrFresh(e ast.Expr, f *Func, l *Loop) bool {
	return a.isLeaf(e) && a.any(l, (*Call).mutates) || a.fresh(e, f, l)
}

// trainsBeside reports whether l takes a step of training in each iteration.
func (a *analyzer) trainsBeside(c *Call, l *Loop) bool {
	return a.any(l, func(d *Call) bool { return d.steps() && d != c })
}

// anotherIn reports whether e is another one in each iteration of l: its index is
// declared there, and not by inner, a loop in it.
func (a *analyzer) anotherIn(e ast.Expr, l, inner *Loop) bool {
	another := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, _ := a.info.Uses[id].(*types.Var)
			another = another || v != nil && !v.IsField() && l.Stmt != nil && l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() && !inner.counts(v)
		}
		return !another
	})
	return another
}

// counts reports whether v is a variable that the loop's own clauses set.
func (l *Loop) counts(v *types.Var) bool {
	if l == nil {
		return false
	}
	switch s := l.Stmt.(type) {
	case *ast.ForStmt:
		return s.Pos() <= v.Pos() && v.Pos() < s.Body.Pos()
	case *ast.RangeStmt:
		return s.Pos() <= v.Pos() && v.Pos() < s.Body.Pos()
	}
	return false
}

// isReset reports whether l assigns to v what is not computed from it.
func (a *analyzer) isReset(v *types.Var, l *Loop) bool {
	return slices.ContainsFunc(a.defs[v], func(d def) bool {
		return a.in(l, d.in, d.pos) && (d.kind != defValue || !a.dependsOn(d.value, v, make(map[*types.Var]bool)))
	})
}

// carried returns what the assignment d to v is, if v carries a history from one iteration
// of a loop to the next that nothing follows.
func (a *analyzer) carried(v *types.Var, d def) (Keeping, bool) {
	for l := range a.loopsAround(d.in, d.pos) {
		if l.small || a.declaredInLoop(v, l) {
			continue
		}
		if a.overParts(l) || slices.ContainsFunc(a.defs[v], func(d def) bool {
			return a.in(l, d.in, d.pos) && (d.kind != defValue || !a.continues(d.value, d.index, d.in, v))
		}) {
			break
		}
		if a.isPlainSum(v, d) || !a.historyOf(d.value, d.index, d.in) || a.ofParts(d, l) || a.fateOf(v, d.in) != 0 {
			break
		}
		return Keeping{Carried, d.pos, d.value.End(), v.Name(), d.value, l}, true
	}
	return Keeping{}, false
}

// isPlainSum reports whether the value of d is v and what does not depend on it: if anything,
// that is a sum.
func (a *analyzer) isPlainSum(v *types.Var, d def) bool {
	c := a.calls[asCall(d.value)]
	if c == nil || c.api.Kind != tensorapi.Op {
		return false
	}
	of := 0
	for _, e := range c.operandList() {
		if a.dependsOn(e, v, make(map[*types.Var]bool)) {
			of++
		}
	}
	at := slices.IndexFunc(c.operandList(), func(e ast.Expr) bool { return a.localTensor(a.unscaled(e)) == v })
	return of == 1 && at >= 0
}

// ofParts reports whether the layers that compute the value of d may be others in each
// iteration of l: a network of layers.
func (a *analyzer) ofParts(d def, l *Loop) bool {
	found := false
	look := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || a.calls[call] == nil {
				return true
			}
			c := a.calls[call]
			for op := tensorapi.Recv; op < len(call.Args); op++ {
				for _, e := range c.operand(op) {
					if t := a.info.TypeOf(e); t != nil && !isTensors(t) && !a.isData(t) {
						found = found || a.anotherIn(e, l, nil)
					}
				}
			}
			return true
		})
	}
	look(d.value)
	if v := a.local(d.value); v != nil {
		for _, d := range a.defs[v] {
			if d.value != nil {
				look(d.value)
			}
		}
	}
	return found
}

// listed returns what the assignment d to v, a list, is, if it puts tensors with a history
// into a list from which values are read.
func (a *analyzer) listed(v *types.Var, d def) (list []Keeping) {
	parts := []ast.Expr{d.value}
	if call := a.selfAppend(v, d); call != nil {
		parts = call.Args[1:]
	}
	for _, e := range parts {
		if !isTensor(a.info.TypeOf(e)) || a.isLeaf(e) {
			continue
		}
		for l := range a.loopsAround(d.in, d.pos) {
			if l.small || !v.IsField() && a.declaredInLoop(v, l) {
				continue
			}
			if !a.overParts(l) && a.fresh(e, d.in, l) && a.history(e, d.in) && !a.isReleased(e, d.in) && a.fateOf(v, d.in) == 0 {
				list = append(list, Keeping{Listed, e.Pos(), e.End(), v.Name(), e, l})
			}
			break
		}
	}
	return list
}

// held lists the tensors with a history that loops put into structs which outlive the
// iteration, in fields from which values are read, if that.
func (a *analyzer) held() (list []Keeping) {
	for cur := range a.res.root.Preorder((*ast.CompositeLit)(nil)) {
		lit := cur.Node().(*ast.CompositeLit)
		f := a.funcAt(cur)
		named := a.structOf(lit)
		if f == nil || named == nil {
			continue
		}
		for i, e := range lit.Elts {
			field := named.Underlying().(*types.Struct).Field(min(i, named.Underlying().(*types.Struct).NumFields()-1))
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
				field, _ = a.info.Uses[kv.Key.(*ast.Ident)].(*types.Var)
			}
			if field == nil || !isTensor(field.Type()) || a.isLeaf(e) {
				continue
			}
			for l := range a.loopsAround(f, lit.Pos()) {
				if l.small {
					continue
				}
				if !a.overParts(l) && a.fresh(e, f, l) && a.history(e, f) && !a.isReleased(e, f) && a.onlyValues(field.Origin(), named) && a.outlives(cur, f, l, named.Obj().Exported() && field.Exported(), 0) {
					list = append(list, Keeping{Held, e.Pos(), e.End(), named.Obj().Name() + "." + field.Name(), e, l})
				}
				break
			}
		}
	}
	return list
}

// structOf returns the type of a literal, if it is a struct type of this package.
func (a *analyzer) structOf(lit *ast.CompositeLit) *types.Named {
	t := a.info.TypeOf(lit)
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem() // an elided &T in a list
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() != a.pass.Pkg || named.Obj().Parent() != a.pass.Pkg.Scope() {
		return nil
	}
	if s, ok := named.Underlying().(*types.Struct); !ok || s.NumFields() == 0 {
		return nil
	}
	return named
}

// onlyValues reports whether the package does no more with a field of a struct type than to
// read values. Of one that other packages see, it has to use another field at least: what
// the structs are for is here, then.
func (a *analyzer) onlyValues(field *types.Var, of *types.Named) bool {
	t := &fortune{a, field, make(map[*types.Var]bool), make(map[*Func]bool)}
	for use := range a.usesInPackage(field) {
		if use.ParentEdgeKind() != edge.SelectorExpr_Sel || t.value(use.Parent()) != 0 {
			return false
		}
	}
	if !field.Exported() || !of.Obj().Exported() {
		return true
	}
	s := of.Underlying().(*types.Struct)
	for other := range s.Fields() {
		for use := range a.usesInPackage(other.Origin()) {
			if use.ParentEdgeKind() == edge.SelectorExpr_Sel && !isTarget(use.Parent()) {
				return true
			}
		}
	}
	return false
}

// outlives reports whether the struct at cur, in f, is put where it outlives an iteration of l.
// If it is seen by other packages, a list that is handed to them does not count: they may
// follow the history.
func (a *analyzer) outlives(cur inspector.Cursor, f *Func, l *Loop, seen bool, depth int) bool {
	for {
		up := cur.Parent()
		kind, index := cur.ParentEdge()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.UnaryExpr, *ast.CompositeLit, *ast.KeyValueExpr:
		case *ast.CallExpr:
			if isBuiltin(a.info, n, "append") {
				break
			}
			c := a.calls[n]
			return kind == edge.CallExpr_Args && c != nil && c.sum().Keeps.Has(index)
		case *ast.AssignStmt:
			if kind != edge.AssignStmt_Rhs || len(n.Lhs) != len(n.Rhs) {
				return false
			}
			v := a.variable(n.Lhs[index])
			if v == nil {
				return false
			}
			if v.IsField() || v.Parent() == a.pass.Pkg.Scope() {
				return !seen
			}
			if !a.declaredInLoop(v, l) {
				return elementType(v.Type()) != nil && (!seen || a.fateOf(v, f) == 0)
			}
			if depth < 3 {
				for use := range a.usesOf(v, f) {
					if !isTarget(use) && a.outlives(use, f, l, seen, depth+1) {
						return true
					}
				}
			}
			return false
		default:
			return false
		}
		cur = up
	}
}

// given lists the tensors with a history that loops give to functions which keep them.
func (a *analyzer) given() (list []Keeping) {
	for _, f := range a.funcs {
		for _, c := range f.calls {
			s := c.sum()
			if c.Callee == nil || c.impls != nil || c.each != nil || c.away || s.Sums|s.Hoards == 0 {
				continue
			}
			for i, e := range c.Expr.Args {
				sums := s.Sums.Has(i) && c.target == nil // in this package the sum is what is reported
				if sums || s.Hoards.Has(i) && !a.isLeaf(e) && !a.isReleased(e, f) {
					if l := a.keptOver(c, e); l != nil {
						list = append(list, Keeping{Given, e.Pos(), e.End(), types.ExprString(c.Expr.Fun), e, l})
					}
				}
			}
		}
	}
	return list
}

// keptOver returns the loop in whose iterations c gives e to the same receiver, if
// e has a history there, or nil.
func (a *analyzer) keptOver(c *Call, e ast.Expr) *Loop {
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if l.small || slices.ContainsFunc(c.operand(tensorapi.Recv), func(e ast.Expr) bool { return a.anotherIn(e, l, nil) }) {
			continue
		}
		if !a.overParts(l) && a.fresh(e, c.in, l) && a.history(e, c.in) {
			return l
		}
		break
	}
	return nil
}

// addHoards completes the summaries of functions that keep what they are given in fields
// of which only values are read. What is known to have a history, is reported there.
func (a *analyzer) addHoards() {
	for v, defs := range a.defs {
		if !v.IsField() || v.Exported() || !isTensors(v.Type()) {
			continue
		}
		for _, d := range defs {
			if d.kind != defValue || d.in == nil || d.in.lit != nil {
				continue
			}
			if call := a.selfAppend(v, d); call != nil {
				for _, e := range call.Args[1:] {
					if op, ok := a.asPassed(e, d.in); ok && a.fateOf(v, d.in) == 0 {
						d.in.sum.Hoards |= op
					}
				}
			}
			c := a.calls[asCall(d.value)]
			if c == nil || c.api.Kind != tensorapi.Op {
				continue
			}
			at := slices.IndexFunc(c.operandList(), func(e ast.Expr) bool { return a.variable(a.unscaled(e)) == v })
			for i, e := range c.operandList() {
				if op, ok := a.asPassed(e, d.in); ok && at >= 0 && i != at && !a.isLoss(e, d.in) && a.fateOf(v, d.in) == 0 {
					d.in.sum.Sums |= op
				}
			}
		}
	}
}

// asPassed returns the operand that e is in f, as it was passed.
func (a *analyzer) asPassed(e ast.Expr, f *Func) (Operands, bool) {
	v := a.local(e)
	p, ok := a.params[v]
	if v == nil || !ok || p.of != f || !isTensor(v.Type()) {
		return 0, false
	}
	assigned, _ := a.reaching(v, e.Pos(), f)
	return operands(p.operand), len(assigned) == 0
}

// keepers says which of their operands functions put into lists and maps that outlive the
// call.
func (a *analyzer) keepers() map[*Func]Operands {
	keep := make(map[*Func]Operands)
	for v, defs := range a.defs {
		if !v.IsField() && v.Parent() != a.pass.Pkg.Scope() {
			continue
		}
		for _, d := range defs {
			if d.kind != defValue || d.in == nil {
				continue
			}
			parts := []ast.Expr{d.value}
			if call := a.selfAppend(v, d); call != nil {
				parts = call.Args[1:]
			} else if types.Identical(a.info.TypeOf(d.value), v.Type()) {
				continue
			}
			for _, e := range parts {
				if u := a.local(e); u != nil && a.params[u].of == d.in {
					keep[d.in] |= operands(a.params[u].operand)
				}
			}
		}
	}
	return keep
}

// localTensor returns the local variable that e is, if it is a tensor and no
// parameter.
func (a *analyzer) localTensor(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Parent() == a.pass.Pkg.Scope() || !isTensor(v.Type()) {
		return nil
	}
	if _, isParam := a.params[v]; isParam {
		return nil
	}
	return v
}

func (a *analyzer) declaredInLoop(v *types.Var, l *Loop) bool {
	return l.Stmt != nil && l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() || l.Stmt == nil
}

// addends finds the operand of c that is the total, or is computed from it with numbers
// alone.
func (a *analyzer) addends(c *Call, total ast.Expr) (at int, ok bool) {
	v, name := a.variable(total), types.ExprString(total)
	at = slices.IndexFunc(c.operandList(), func(e ast.Expr) bool {
		e = a.unscaled(e)
		return a.variable(e) == v && types.ExprString(ast.Unparen(e)) == name
	})
	return at, at >= 0
}

// operandList lists the receiver and the arguments.
func (c *Call) operandList() []ast.Expr { return slices.Concat(c.operand(tensorapi.Recv), c.Expr.Args) }

// partWithHistory returns an operand of the accumulating call c beside that at a place, not
// computed from total, that has a history. What is computed from total is a recurrence,
// whose history may be what it is about.
func (a *analyzer) partWithHistory(c *Call, at int, total *types.Var) ast.Expr {
	for i, e := range c.operandList() {
		if i != at && isTensor(a.info.TypeOf(e)) && !a.dependsOn(e, total, make(map[*types.Var]bool)) && (a.history(e, c.in) || a.isLoss(e, c.in)) {
			return e
		}
	}
	return nil
}

// isLoss reports whether e is a parameter called like what is differentiated, of an exported
// method that the package does not call: others do, and have computed it.
func (a *analyzer) isLoss(e ast.Expr, f *Func) bool {
	if _, ok := a.asPassed(e, f); !ok || f.lit != nil || f.sig.Recv() == nil || !ast.IsExported(f.name) {
		return false
	}
	return len(a.callers()[f]) == 0 && strings.HasSuffix(strings.ToLower(a.local(e).Name()), "loss")
}

// unscaled returns what e is computed from with numbers alone: avg of
// avg.MulScalar(0.9).
func (a *analyzer) unscaled(e ast.Expr) ast.Expr {
	for {
		c := a.calls[asCall(e)]
		if c == nil || c.api.Kind != tensorapi.Op || len(c.Expr.Args) == 0 || slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return a.holdsTensor(a.info.TypeOf(e)) }) {
			return e
		}
		operand := c.operand(tensorapi.Recv)
		if len(operand) != 1 {
			return e
		}
		e = operand[0]
	}
}

// dependsOn reports whether v, or a local variable that is computed from it, is
// part of e.
func (a *analyzer) dependsOn(e ast.Expr, v *types.Var, seen map[*types.Var]bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok || found {
			return !found
		}
		u, ok := a.info.Uses[id].(*types.Var)
		if !ok || u.IsField() || seen[u] {
			return true
		}
		seen[u] = true
		found = u == v || slices.ContainsFunc(a.defs[u], func(d def) bool { return d.value != nil && a.dependsOn(d.value, v, seen) })
		return !found
	})
	return found
}
