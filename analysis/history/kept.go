package history

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A keeping is a place that keeps a tensor with a history beyond the iteration, though nothing is
// differentiated through it. It is in a loop, or in a method that is called in one.
type keeping struct {
	Kind keepingKind
	Pos  token.Pos
	End  token.Pos
	Kept string         // what keeps the history
	Part ast.Expr       // what has it
	Loop *blocking.Loop // nil in a method
	// Given reports whether the history is there only if layers have parameters which others have made, who may have
	// frozen them.
	Given bool
}

// A keepingKind says how a history is kept.
type keepingKind uint8

// keepings lists the keepings of a package, in the order of the source.
func keepings(pkg *blocking.Package) []keeping {
	var list []keeping
	for _, f := range pkg.Funcs {
		list = append(list, sums(f)...)
	}
	summed := make(map[token.Pos]bool)
	for _, k := range list {
		summed[k.Pos] = true
	}
	for _, v := range variables(pkg) {
		for _, d := range pkg.Defs[v] {
			if d.Kind != blocking.DefValue || d.In == nil {
				continue
			}
			switch shared := v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope(); {
			case blocking.IsState(v.Type()) && shared:
				if k, ok := carriedByCalls(pkg, v, d); ok {
					list = append(list, k)
				}
			case blocking.IsState(v.Type()):
				if k, ok := carried(pkg, v, d); ok && !slices.ContainsFunc(list, func(s keeping) bool { return s.Pos <= k.Pos && k.Pos < s.End }) {
					list = append(list, k)
				}
			case blocking.IsTensors(v.Type()) && !pkg.DropsFirst(v):
				list = append(list, listed(pkg, v, d)...)
			}
		}
	}
	list = append(list, rewound(pkg, list)...)
	list = append(list, held(pkg)...)
	list = append(list, appended(pkg)...)
	list = append(list, given(pkg)...)
	list = append(list, differentiatedCopies(pkg)...)
	list = append(list, untrained(pkg, list)...)
	slices.SortFunc(list, func(k, m keeping) int { return cmp.Compare(k.Pos, m.Pos) })
	return list
}

// sums lists the statements of f that add a tensor with a history to a sum.
//
//	total = total.Add(loss)
func sums(f *blocking.Func) []keeping {
	var list []keeping
	for _, c := range f.Calls {
		assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
		if !ok || c.API.Kind != tensorapi.Op || len(assign.Lhs) != len(assign.Rhs) || assign.Tok != token.ASSIGN {
			continue
		}
		_, i := c.Value().ParentEdge()
		k, ok := sum(f.Package, c, assign.Lhs[i])
		if !ok {
			continue
		}
		if k.Pos, k.End = assign.Pos(), assign.End(); len(assign.Lhs) > 1 {
			k.Pos, k.End = assign.Rhs[i].Pos(), assign.Rhs[i].End()
		}
		list = append(list, k)
	}
	return list
}

// sum returns the keeping, without its place, that an assignment of the result of c to total is, if it adds to a sum.
func sum(pkg *blocking.Package, c *blocking.Call, total ast.Expr) (keeping, bool) {
	v := pkg.Variable(total)
	if v == nil || !blocking.IsTensors(v.Type()) || blocking.IsTensor(v.Type()) && pkg.Params[v].Of != nil {
		return keeping{}, false
	}
	k := keeping{Kind: summing, Kept: types.ExprString(total)}
	if at, ok := addends(pkg, c, total); ok {
		if k.Part = partWithHistory(pkg, c, at, v); k.Part == nil {
			return keeping{}, false
		}
	} else {
		return keeping{}, false
	}
	shared := v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope()
	var inner *blocking.Loop // the last one around, whose counters take the same values again
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small || !shared && l.Declares(v) || anotherIn(pkg, total, l, inner) {
			inner = l
			continue
		}
		if pkg.OverParts(l) {
			return keeping{}, false // a model has so many
		}
		if !blocking.IsTensor(v.Type()) || shared {
			// Others see it: only what the loop trains away is surely of no use.
			if fate := pkg.FateOf(v, c.In); fate != 0 && (fate&blocking.Differentiated != 0 || !trainsBeside(pkg, c, l) || isReset(pkg, v, l)) {
				return keeping{}, false
			} else if fate != 0 {
				k.Kind = averaging
			}
		} else if pkg.FateOf(v, c.In) != 0 {
			return keeping{}, false
		}
		if !isLeafOrFresh(pkg, k.Part, c.In, l) || pkg.IsGivenHistory(k.Part, c.In) {
			return keeping{}, false
		}
		k.Loop = l
		return k, true
	}
	if recv := rootParam(pkg, total); shared && recv != nil && c.In.Lit == nil && (pkg.FateOf(v, c.In) == 0 || isMetered(pkg, v, recv)) {
		return k, true
	}
	// An average of parameters, in a list that the caller has.
	if list := pkg.Params[v].Of; list == c.In && inner != nil && isLeaf(pkg, k.Part) && pkg.FateOf(v, c.In)&blocking.Differentiated == 0 && !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.Kind != blocking.DefValue || !dependsOn(pkg, d.Value, v, make(map[*types.Var]bool))
	}) {
		k.Kind = averaging
		return k, true
	}
	return keeping{}, false
}

// meter matches the names of types that are there to be looked at.
var meter = regexp.MustCompile(`(?i)meter|metric|gauge`)

// isMetered reports whether v is an exported field of a meter, as the type of recv says by its name, and the package
// itself only reads values from it. What others may do with a loss that a meter holds is to read it as well.
func isMetered(pkg *blocking.Package, v, recv *types.Var) bool {
	t := recv.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || !v.IsField() || !meter.MatchString(n.Obj().Name()) {
		return false
	}
	for use := range pkg.UsesInPackage(v) {
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		if pkg.FateAt(use, v) != 0 {
			return false
		}
	}
	return true
}

// rootParam returns the parameter or receiver that e is a part of, or nil.
func rootParam(pkg *blocking.Package, e ast.Expr) *types.Var {
	v, _ := pkg.RootOf(e, 0)
	if v == nil || pkg.Params[v].Of == nil {
		return nil
	}
	return v
}

// isLeafOrFresh reports whether e was computed in the iteration of l, or is the value of a parameter that l changes.
func isLeafOrFresh(pkg *blocking.Package, e ast.Expr, f *blocking.Func, l *blocking.Loop) bool {
	return isLeaf(pkg, e) && pkg.Any(l, (*blocking.Call).Mutates) || pkg.Fresh(e, f, l)
}

// trainsBeside reports whether l takes a step of training by a call other than c.
func trainsBeside(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	return pkg.Any(l, func(d *blocking.Call) bool { return d.Steps() && d != c })
}

// anotherIn reports whether e is another element in each iteration of l: its index is declared in l,
// and not in inner, a loop inside l.
func anotherIn(pkg *blocking.Package, e ast.Expr, l, inner *blocking.Loop) bool {
	another := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, _ := pkg.Info.Uses[id].(*types.Var)
			another = another || v != nil && !v.IsField() && l.Stmt != nil && l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End() && !counts(inner, v)
		}
		return !another
	})
	return another
}

// counts reports whether the clauses of l's statement set v.
func counts(l *blocking.Loop, v *types.Var) bool {
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

// isReset reports whether l assigns something to v that isn't computed from it.
func isReset(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	return slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return pkg.Contains(l, d.In, d.Pos) && (d.Kind != blocking.DefValue || !dependsOn(pkg, d.Value, v, make(map[*types.Var]bool)))
	})
}

// carried returns d as a keeping, or nothing. d assigns v, by which a history gets from one iteration
// to the next, and nothing is differentiated through v.
//
//	state = cell.Forward(x, state)
func carried(pkg *blocking.Package, v *types.Var, d blocking.Def) (keeping, bool) {
	for l := range pkg.LoopsAround(d.In, d.Pos) {
		if l.Small || l.Declares(v) {
			continue
		}
		if pkg.OverParts(l) || slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
			return pkg.Contains(l, d.In, d.Pos) && (d.Kind != blocking.DefValue || !continues(pkg, v, d))
		}) {
			break
		}
		if isPlainSum(pkg, v, d) && !beginsTracked(pkg, v, l) || !computesHistory(pkg, v, d) || ofParts(pkg, d, l) || pkg.FateOf(v, d.In) != 0 {
			break
		}
		return keeping{carrying, d.Pos, d.Value.End(), v.Name(), d.Value, l, false}, true
	}
	return keeping{}, false
}

// carriedByCalls is carried for v, a field: each call of the function around d computes it from itself.
//
//	func (d *decoder) next(x *tensor.Tensor) { d.state = d.cell.Forward(x, d.state) }
func carriedByCalls(pkg *blocking.Package, v *types.Var, d blocking.Def) (keeping, bool) {
	if !v.IsField() || d.In.Lit != nil || !continues(pkg, v, d) || isPlainSum(pkg, v, d) || !computesHistory(pkg, v, d) ||
		detaches(pkg, v) || pkg.FateOf(v, d.In) != 0 {
		return keeping{}, false
	}
	for l := range pkg.LoopsAround(d.In, d.Pos) {
		if !l.Small {
			if pkg.OverParts(l) || ofParts(pkg, d, l) {
				return keeping{}, false
			}
			return keeping{carrying, d.Pos, d.Value.End(), v.Name(), d.Value, l, false}, true
		}
	}
	if rootParam(pkg, fieldAt(pkg, v, d)) == nil {
		return keeping{}, false
	}
	return keeping{carrying, d.Pos, d.Value.End(), v.Name(), d.Value, nil, false}, true
}

// continues reports whether d computes what it assigns to v from v. Of a struct it asks what its tensors are made of.
func continues(pkg *blocking.Package, v *types.Var, d blocking.Def) bool {
	if blocking.IsTensor(v.Type()) {
		return pkg.Continues(d.Value, d.Index, d.In, v)
	}
	return dependsOn(pkg, d.Value, v, make(map[*types.Var]bool)) && !detaches(pkg, v)
}

// fieldAt returns the expression of the field v to which d assigns, or something that is none.
func fieldAt(pkg *blocking.Package, v *types.Var, d blocking.Def) ast.Expr {
	cur, ok := pkg.Cursor(d.Pos)
	if !ok {
		return syntax.OrNil(nil)
	}
	for c := range cur.Enclosing((*ast.AssignStmt)(nil)) {
		for _, lhs := range c.Node().(*ast.AssignStmt).Lhs {
			if pkg.Variable(lhs) == v {
				return lhs
			}
		}
		break
	}
	return syntax.OrNil(nil)
}

// beginsTracked reports whether v is tracked before l, so that all that l adds to it has a history.
//
//	x := start.Track()
//	for range steps {
//		x = x.Sub(move(x).Detach())
//	}
func beginsTracked(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	return slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		return d.Kind == blocking.DefValue && d.In == l.Func && !pkg.Contains(l, d.In, d.Pos) && isLeaf(pkg, d.Value)
	})
}

// isPlainSum reports whether d adds something to v that doesn't depend on v. That is a sum, if anything.
func isPlainSum(pkg *blocking.Package, v *types.Var, d blocking.Def) bool {
	c := pkg.Calls[syntax.AsCall(d.Value)]
	if c == nil || c.API.Kind != tensorapi.Op {
		return false
	}
	of := 0
	for _, e := range c.AllOperands() {
		if dependsOn(pkg, e, v, make(map[*types.Var]bool)) {
			of++
		}
	}
	at := slices.IndexFunc(c.AllOperands(), func(e ast.Expr) bool {
		return localTensor(pkg, pkg.Unscaled(e)) == v || v.IsField() && pkg.Variable(pkg.Unscaled(e)) == v
	})
	return of == 1 && at >= 0
}

// ofParts reports whether the value of d may come from other layers in each iteration of l, as in a
// loop over the layers of a network.
func ofParts(pkg *blocking.Package, d blocking.Def, l *blocking.Loop) bool {
	found := false
	look := func(e ast.Expr) {
		ast.Inspect(e, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || pkg.Calls[call] == nil {
				return true
			}
			c := pkg.Calls[call]
			for op := tensorapi.Recv; op < len(call.Args); op++ {
				for _, e := range c.Operand(op) {
					if t := pkg.Info.TypeOf(e); t != nil && !blocking.IsTensors(t) && !pkg.IsData(t) && !isFactor(c, t) {
						found = found || anotherIn(pkg, e, l, nil)
					}
				}
			}
			return true
		})
	}
	look(d.Value)
	if v := pkg.Local(d.Value); v != nil {
		for _, d := range pkg.Defs[v] {
			if d.Value != nil {
				look(d.Value)
			}
		}
	}
	return found
}

// isFactor reports whether an operand of c, of type t, is a number to compute with or to make a tensor of, and no index
// of a layer.
func isFactor(c *blocking.Call, t types.Type) bool {
	return (c.API.Kind == tensorapi.Op || c.API.Kind == tensorapi.Host || c.API.Kind == tensorapi.Draw) && syntax.IsNumeric(t)
}

// listed returns the keepings in d, an assignment that puts tensors with a history into the list v.
// Only values are read from v.
//
//	losses = append(losses, loss)
func listed(pkg *blocking.Package, v *types.Var, d blocking.Def) (list []keeping) {
	parts := []ast.Expr{d.Value}
	if tuple, ok := pkg.Info.TypeOf(d.Value).(*types.Tuple); ok { // of a call with several results
		if call := pkg.Calls[syntax.AsCall(d.Value)]; call != nil && blocking.IsTensor(tuple.At(d.Index).Type()) && !call.Mutates() && pkg.HistoryOf(d.Value, d.Index, d.In) && pkg.FateOf(v, d.In) == 0 {
			for l := range pkg.LoopsAround(d.In, d.Pos) {
				if l.Small || !v.IsField() && l.Declares(v) {
					continue
				}
				if !pkg.OverParts(l) && pkg.Any(l, func(c *blocking.Call) bool { return c == call && c.Enqueues() }) {
					list = append(list, keeping{listing, d.Value.Pos(), d.Value.End(), v.Name(), d.Value, l, false})
				}
				break
			}
		}
		return list
	}
	if call := pkg.SelfAppend(v, d); call != nil {
		parts = call.Args[1:]
		if lit, ok := ast.Unparen(parts[0]).(*ast.CompositeLit); ok && len(parts) == 1 && blocking.IsTensors(pkg.Info.TypeOf(lit)) {
			parts = lit.Elts
		}
	}
	for _, e := range parts {
		if !blocking.IsTensor(pkg.Info.TypeOf(e)) || isLeaf(pkg, e) {
			continue
		}
		for l := range pkg.LoopsAround(d.In, d.Pos) {
			if l.Small || !v.IsField() && l.Declares(v) {
				continue
			}
			if !pkg.OverParts(l) && pkg.Fresh(e, d.In, l) && pkg.HasHistory(e, d.In) && !pkg.IsGivenHistory(e, d.In) && !isReleased(pkg, e, d.In) && pkg.FateOf(v, d.In) == 0 {
				list = append(list, keeping{listing, e.Pos(), e.End(), v.Name(), e, l, !v.IsField() && !pkg.KnowsHistory(e, d.In)})
			}
			break
		}
	}
	return list
}

// appended lists the tensors with a history that functions append to a list which they are given and return. Callers
// put the longer list in the place of the one before, in a loop, and read only values from it.
//
//	func step(losses []*tensor.Tensor, b batch) []*tensor.Tensor { … return append(losses, loss) }
//
//	losses = step(losses, b)
func appended(pkg *blocking.Package) (list []keeping) {
	for _, f := range pkg.Funcs {
		for _, ret := range f.Returns {
			if len(ret.Results) != 1 {
				continue
			}
			call := syntax.AsCall(onlyAppend(pkg, ret.Results[0]))
			if call == nil || !syntax.IsBuiltin(pkg.Info, call, "append") || !blocking.IsTensors(pkg.Info.TypeOf(call)) {
				continue
			}
			p, ok := pkg.Params[pkg.Local(call.Args[0])]
			if !ok || p.Of != f {
				continue
			}
			for _, e := range call.Args[1:] {
				if !blocking.IsTensor(pkg.Info.TypeOf(e)) || isLeaf(pkg, e) || !pkg.HasHistory(e, f) || isReleased(pkg, e, f) {
					continue
				}
				if l, v := listedBy(pkg, f, p.Operand); l != nil {
					list = append(list, keeping{listing, e.Pos(), e.End(), v.Name(), e, l, false})
				}
			}
		}
	}
	return list
}

// onlyAppend returns a call of append, if e is a parameter and that call is all that is assigned to it. Else it
// returns e.
func onlyAppend(pkg *blocking.Package, e ast.Expr) ast.Expr {
	v := pkg.Local(e)
	if d := pkg.Defs[v]; v != nil && len(d) == 1 && d[0].Kind == blocking.DefValue && pkg.SelfAppend(v, d[0]) != nil {
		return d[0].Value
	}
	return e
}

// listedBy returns a loop and a list: the loop calls f with the list as operand op, and assigns the result to the list.
// It returns nil unless only values are read from the list.
func listedBy(pkg *blocking.Package, f *blocking.Func, op int) (*blocking.Loop, *types.Var) {
	for _, c := range pkg.CallersOf(f) {
		assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != 1 || len(c.Operand(op)) != 1 {
			continue
		}
		v := pkg.Local(assign.Lhs[0])
		if v == nil || v != pkg.Local(c.Operand(op)[0]) {
			continue
		}
		fate := blocking.Fate(0)
		for use := range pkg.UsesOf(v, c.In) {
			if pos := use.Node().Pos(); pos < c.Expr.Pos() || c.Expr.End() <= pos {
				fate |= pkg.FateAt(use, v)
			}
		}
		for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
			if l.Small || l.Declares(v) {
				continue
			}
			if fate == 0 {
				return l, v
			}
			break
		}
	}
	return nil, nil
}

// held lists the tensors with a history that loops put into fields of structs. The structs outlive the iteration, and
// only values are read from the fields.
func held(pkg *blocking.Package) (list []keeping) {
	for cur := range pkg.Root.Preorder((*ast.CompositeLit)(nil)) {
		lit := cur.Node().(*ast.CompositeLit)
		f := pkg.FuncAt(cur)
		named := structOf(pkg, lit)
		if f == nil || named == nil {
			continue
		}
		for i, e := range lit.Elts {
			field := named.Underlying().(*types.Struct).Field(min(i, named.Underlying().(*types.Struct).NumFields()-1))
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				e = kv.Value
				field, _ = pkg.Info.Uses[kv.Key.(*ast.Ident)].(*types.Var)
			}
			if field == nil || !blocking.IsTensor(field.Type()) || isLeaf(pkg, e) {
				continue
			}
			for l := range pkg.LoopsAround(f, lit.Pos()) {
				if l.Small {
					continue
				}
				if !pkg.OverParts(l) && pkg.Fresh(e, f, l) && pkg.HasHistory(e, f) && !isReleased(pkg, e, f) && onlyValues(pkg, field.Origin(), named) && outlives(pkg, cur, f, l, named.Obj().Exported() && field.Exported(), 0) {
					list = append(list, keeping{holding, e.Pos(), e.End(), named.Obj().Name() + "." + field.Name(), e, l, false})
				}
				break
			}
		}
	}
	return list
}

// structOf returns the type of a literal, if it is a struct type of this package.
func structOf(pkg *blocking.Package, lit *ast.CompositeLit) *types.Named {
	t := pkg.Info.TypeOf(lit)
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem() // an elided &T in a list
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() != pkg.Pass.Pkg || named.Obj().Parent() != pkg.Pass.Pkg.Scope() {
		return nil
	}
	if s, ok := named.Underlying().(*types.Struct); !ok || s.NumFields() == 0 {
		return nil
	}
	return named
}

// onlyValues reports whether the package only reads values from a field of the struct type of. If other
// packages see the field, this one must use another field of the type: that shows that it is the
// package which works with the structs.
func onlyValues(pkg *blocking.Package, field *types.Var, of *types.Named) bool {
	for use := range pkg.UsesInPackage(field) {
		if use.ParentEdgeKind() != edge.SelectorExpr_Sel || pkg.FateAt(use.Parent(), field) != 0 {
			return false
		}
	}
	if !field.Exported() || !of.Obj().Exported() {
		return true
	}
	s := of.Underlying().(*types.Struct)
	for other := range s.Fields() {
		for use := range pkg.UsesInPackage(other.Origin()) {
			if use.ParentEdgeKind() == edge.SelectorExpr_Sel && !syntax.IsTarget(use.Parent()) {
				return true
			}
		}
	}
	return false
}

// outlives reports whether the struct at cur, in f, is put where it outlives an iteration of l. If
// other packages see the field (seen), giving them a list doesn't count, as they may follow the
// history.
func outlives(pkg *blocking.Package, cur inspector.Cursor, f *blocking.Func, l *blocking.Loop, seen bool, depth int) bool {
	for {
		up := cur.Parent()
		kind, index := cur.ParentEdge()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.UnaryExpr, *ast.CompositeLit, *ast.KeyValueExpr:
		case *ast.CallExpr:
			if syntax.IsBuiltin(pkg.Info, n, "append") {
				break
			}
			c := pkg.Calls[n]
			return kind == edge.CallExpr_Args && c != nil && c.Summary().Keeps.Has(index)
		case *ast.AssignStmt:
			if kind != edge.AssignStmt_Rhs || len(n.Lhs) != len(n.Rhs) {
				return false
			}
			v := pkg.Variable(n.Lhs[index])
			if v == nil {
				return false
			}
			if v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope() {
				return !seen
			}
			if !l.Declares(v) {
				return syntax.ElementType(v.Type()) != nil && (!seen || pkg.FateOf(v, f) == 0)
			}
			if depth < 3 {
				for use := range pkg.UsesOf(v, f) {
					if !syntax.IsTarget(use) && outlives(pkg, use, f, l, seen, depth+1) {
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

// given lists the tensors with a history that loops give to functions that keep them.
func given(pkg *blocking.Package) (list []keeping) {
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			s := c.Summary()
			if c.Callee == nil || c.Impls != nil || c.Each != nil || c.Away || s.Sums|s.Hoards == 0 {
				continue
			}
			for i, e := range c.Expr.Args {
				sums := s.Sums.Has(i) && c.Target == nil // in this package the sum is what is reported
				if sums || s.Hoards.Has(i) && !isLeaf(pkg, e) && !isReleased(pkg, e, f) {
					if l := keptOver(pkg, c, e); l != nil {
						list = append(list, keeping{giving, e.Pos(), e.End(), types.ExprString(c.Expr.Fun), e, l, false})
					}
				}
			}
		}
	}
	return list
}

// keptOver returns the loop in whose iterations c gives e to the same receiver, if e has a history there; else nil.
func keptOver(pkg *blocking.Package, c *blocking.Call, e ast.Expr) *blocking.Loop {
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small || slices.ContainsFunc(c.Operand(tensorapi.Recv), func(e ast.Expr) bool { return anotherIn(pkg, e, l, nil) }) {
			continue
		}
		if !pkg.OverParts(l) && pkg.Fresh(e, c.In, l) && pkg.HasHistory(e, c.In) {
			return l
		}
		break
	}
	return nil
}

// localTensor returns the local variable that e is, if it holds a tensor and is no parameter.
func localTensor(pkg *blocking.Package, e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok || v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope() || !blocking.IsTensor(v.Type()) {
		return nil
	}
	if _, isParam := pkg.Params[v]; isParam {
		return nil
	}
	return v
}

// addends returns the number of the operand of c that is total, a local variable set to that, or computed from it with
// numbers alone.
//
//	old, ok := m.sums[name]
//	m.sums[name] = old.Add(loss)
func addends(pkg *blocking.Package, c *blocking.Call, total ast.Expr) (at int, ok bool) {
	v, name := pkg.Variable(total), types.ExprString(total)
	at = slices.IndexFunc(c.AllOperands(), func(e ast.Expr) bool {
		e = pkg.Unscaled(e)
		if w := pkg.Local(e); w != nil && w != v && len(pkg.Defs[w]) == 1 {
			if d := pkg.Defs[w][0]; d.Kind == blocking.DefValue && d.Index == 0 && d.Value != nil {
				e = d.Value
			}
		}
		return pkg.Variable(e) == v && types.ExprString(ast.Unparen(e)) == name
	})
	return at, at >= 0
}

// partWithHistory returns an operand of c that has a history, other than operand number at. It leaves
// out what is computed from total: that is a recurrence, whose history may be wanted.
func partWithHistory(pkg *blocking.Package, c *blocking.Call, at int, total *types.Var) ast.Expr {
	for i, e := range c.AllOperands() {
		if i != at && blocking.IsTensor(pkg.Info.TypeOf(e)) && !dependsOn(pkg, e, total, make(map[*types.Var]bool)) && (pkg.HasHistory(e, c.In) || pkg.IsLoss(e, c.In)) {
			return e
		}
	}
	return nil
}

// dependsOn reports whether v, or a local variable that is computed from v, is part of e. What Detach and Track return
// has no history of before, and doesn't count.
func dependsOn(pkg *blocking.Package, e ast.Expr, v *types.Var, seen map[*types.Var]bool) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if c := pkg.Calls[call]; c != nil && isCut(c) {
				return false
			}
		}
		id, ok := n.(*ast.Ident)
		if !ok || found {
			return !found
		}
		u, ok := pkg.Info.Uses[id].(*types.Var)
		if found = ok && u.Origin() == v; !ok || found || u.IsField() || seen[u] {
			return !found
		}
		seen[u] = true
		found = slices.ContainsFunc(pkg.Defs[u], func(d blocking.Def) bool { return d.Value != nil && dependsOn(pkg, d.Value, v, seen) })
		return !found
	})
	return found
}

const (
	summing    keepingKind = iota // added to a tensor of which values are read
	averaging                     // added, beside steps of training, to one that outlives the loop
	carrying                      // each value is computed from the one of the iteration before
	rewinding                     // as carrying, and each iteration differentiates through it
	listing                       // put into a list of tensors of which values are read
	copying                       // computed by a network that nothing trains, and differentiated
	giving                        // given to a function that keeps it so
	untraining                    // computed by a network that the step of training doesn't train, and differentiated
	excluding                     // computed by a network whose parameters a tag keeps out of training
	evaluating                    // computed by a network in training, and only read
	aiming                        // computed for the target of a loss by the network that the loss trains
	holding                       // put into a field of which values are read, of a struct that is kept
)
