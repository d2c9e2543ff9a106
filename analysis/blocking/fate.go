package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A fate says what becomes of tensors, beyond that values are read from them: nothing, or
// what may need their history. Fates form a set.
type fate uint8

const (
	escapes        fate = 1 << iota // returned, stored, given away
	differentiated                  // operand of Backward, Minimize, Grad or what may call these
)

// A fortune finds the fate of the tensors in a variable and of what is computed from
// them by operations that gradients pass.
type fortune struct {
	*analyzer
	of   *types.Var
	seen map[*types.Var]bool
	back map[*Func]bool // the functions whose callers are looked at
}

// fateOf is the fate of what is in v, a variable that f or a function around it knows,
// or a field.
func (a *analyzer) fateOf(v *types.Var, f *Func) fate {
	t := &fortune{a, v, make(map[*types.Var]bool), make(map[*Func]bool)}
	return t.variable(v, f)
}

func (t *fortune) variable(v *types.Var, f *Func) fate {
	if t.seen[v] {
		return 0
	}
	t.seen[v] = true
	var known fate
	uses := t.usesInPackage(v)
	if shared := v.IsField() || v.Parent() == t.pass.Pkg.Scope(); !shared {
		uses = t.usesOf(v, f)
	} else if v.Exported() {
		known = escapes
	}
	switch {
	case t.params[v].of != nil && !isTensor(v.Type()):
		known = escapes // the caller has the list
	case t.isNamedResult(v, f):
		known = escapes
	}
	for use := range uses {
		cur := use
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			cur = use.Parent()
		}
		known |= t.value(cur)
	}
	return known
}

// usesInPackage yields the identifiers that refer to v, a field or a variable of the
// package, but not those that say which field of a literal is set.
func (a *analyzer) usesInPackage(v *types.Var) func(func(inspector.Cursor) bool) {
	return func(yield func(inspector.Cursor) bool) {
		for c := range a.res.root.Preorder((*ast.Ident)(nil)) {
			u, ok := a.info.Uses[c.Node().(*ast.Ident)].(*types.Var)
			if ok && u.Origin() == v && c.ParentEdgeKind() != edge.KeyValueExpr_Key && !yield(c) {
				return
			}
		}
	}
}

func (a *analyzer) isNamedResult(v *types.Var, f *Func) bool {
	for g := range f.In() {
		if a.isResult(v, g) {
			return true
		}
	}
	return false
}

// value is the fate of what the expression at cur stands for.
func (t *fortune) value(cur inspector.Cursor) fate {
	for {
		up := cur.Parent()
		kind, index := cur.ParentEdge()
		switch n := up.Node().(type) {
		case *ast.ParenExpr, *ast.StarExpr, *ast.SliceExpr, *ast.TypeAssertExpr:
		case *ast.KeyValueExpr:
			if kind == edge.KeyValueExpr_Key {
				return 0
			}
		case *ast.SelectorExpr:
			if sel := t.info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal && !t.holdsTensor(sel.Type()) {
				return 0
			}
		case *ast.IndexExpr:
			if kind != edge.IndexExpr_X {
				return 0
			}
		case *ast.BinaryExpr, *ast.ExprStmt:
			return 0
		case *ast.CompositeLit:
			if !isTensors(t.info.TypeOf(n)) {
				return escapes
			}
		case *ast.CallExpr:
			result, fate := t.operandOf(n, cur)
			if !result {
				return fate
			}
		case *ast.AssignStmt:
			if kind == edge.AssignStmt_Lhs {
				return 0
			}
			var known fate
			for i, lhs := range n.Lhs {
				if len(n.Lhs) != len(n.Rhs) || i == index {
					known |= t.stored(lhs, up)
				}
			}
			return known
		case *ast.ValueSpec:
			var known fate
			for i, name := range n.Names {
				if len(n.Names) != len(n.Values) || i == index {
					known |= t.stored(name, up)
				}
			}
			return known
		case *ast.RangeStmt:
			if n.Value == nil {
				return 0
			}
			return t.stored(n.Value, up)
		case *ast.ReturnStmt:
			return t.returned(n, index, up)
		default:
			return escapes
		}
		cur = up
	}
}

// returned is the fate of a result of a function: what becomes of it where the function is
// called, if nobody else can call it.
func (t *fortune) returned(n *ast.ReturnStmt, index int, at inspector.Cursor) fate {
	f := t.funcAt(at)
	if f == nil || f.lit != nil || ast.IsExported(f.name) || f.sig.Recv() != nil || len(n.Results) != f.sig.Results().Len() || len(t.callers()[f]) == 0 {
		return escapes
	}
	if t.back[f] {
		return 0
	}
	t.back[f] = true
	decl, _ := f.cur.Node().(*ast.FuncDecl)
	var known fate
	uses := 0
	for c := range t.res.root.Preorder((*ast.Ident)(nil)) {
		if fn, ok := t.info.Uses[c.Node().(*ast.Ident)].(*types.Func); ok && fn.Origin() == t.info.Defs[decl.Name] {
			uses++
		}
	}
	if uses != len(t.callers()[f]) {
		return escapes // it is a value, too
	}
	for _, c := range t.callers()[f] {
		assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
		if ok && len(assign.Lhs) == f.sig.Results().Len() && len(assign.Rhs) == 1 {
			known |= t.stored(assign.Lhs[index], c.Value().Parent())
		} else {
			known |= t.value(c.Value())
		}
	}
	return known
}

// stored is the fate of what is assigned to lhs.
func (t *fortune) stored(lhs ast.Expr, at inspector.Cursor) fate {
	v := t.analyzer.variable(lhs)
	switch {
	case isBlank(lhs) || v == t.of || v != nil && !t.holdsTensor(v.Type()):
		return 0
	case v == nil || v.IsField() || v.Parent() == t.pass.Pkg.Scope() || !isTensors(v.Type()):
		return escapes
	}
	f := t.funcAt(at)
	if f == nil {
		return escapes
	}
	return t.variable(v, f)
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// operandOf is the fate of an operand of a call, and reports whether it is that of the
// result.
func (t *fortune) operandOf(n *ast.CallExpr, cur inspector.Cursor) (result bool, _ fate) {
	if tv := t.info.Types[n.Fun]; tv.IsType() {
		return true, 0
	} else if tv.IsBuiltin() {
		switch id, _ := ast.Unparen(n.Fun).(*ast.Ident); {
		case id == nil || id.Name == "copy":
			return false, escapes
		default:
			return id.Name == "append", 0
		}
	}
	c := t.calls[n]
	if c == nil || c.away {
		return false, escapes
	}
	switch c.api.Kind {
	case tensorapi.Read, tensorapi.Print, tensorapi.Wait, tensorapi.Meta, tensorapi.Poll, tensorapi.Transfer, tensorapi.Value:
		return false, 0
	case tensorapi.View:
		return c.Callee.Name() != "Detach", 0
	case tensorapi.Op:
		switch name := c.Callee.Name(); {
		case isGrad(c):
			if cur.Node() != n.Args[0] {
				return false, 0 // the first argument is what is differentiated
			}
			for _, x := range n.Args[1:] {
				if t.local(x) != t.of {
					return false, differentiated
				}
			}
			return true, 0
		default:
			return isForward(c) || passesGradients(name) || name == "As" || name == "F64", 0
		}
	case tensorapi.Mutate:
		if c.Callee.Name() == "Set" {
			return false, 0 // it takes the elements
		}
		return false, differentiated
	case tensorapi.Unknown:
		return t.given(c, cur)
	}
	return false, escapes
}

// given is the fate of an operand of c, a function of a user.
func (t *fortune) given(c *Call, cur inspector.Cursor) (result bool, _ fate) {
	if _, prints := c.printer(); prints {
		return false, 0
	}
	op := slices.IndexFunc(c.Expr.Args, func(e ast.Expr) bool { return e == cur.Node() })
	if op < 0 {
		op = tensorapi.Recv
	}
	tensors := false
	for v := range t.resultsOf(c).Variables() {
		tensors = tensors || t.holdsTensor(v.Type())
		if _, isFunc := v.Type().Underlying().(*types.Signature); isFunc {
			return false, escapes
		}
	}
	switch s := c.sum(); {
	case isCollection(c.Callee) && tensors:
		return true, 0
	case c.mutates():
		return false, differentiated
	case tensors && (c.target != nil || c.summary != nil || c.dynamic):
		return true, 0
	case !tensors && waitOf(s.Waits, op) != nil:
		return false, 0
	}
	return false, escapes
}

// isLeaf reports whether e is the value of a parameter, or of a tensor that is tracked from
// here on, that nothing has been computed from.
func (a *analyzer) isLeaf(e ast.Expr) bool {
	c := a.calls[asCall(e)]
	return c != nil && (isParamValue(c) || c.api.Kind == tensorapi.View && c.Callee.Name() == "Track")
}

// isReleased reports whether e, in f, is differentiated by itself, or comes from a function
// that takes a step: Backward has released its history, or soon will.
func (a *analyzer) isReleased(e ast.Expr, f *Func) bool {
	released := false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if c := a.calls[call]; ok && c != nil {
			released = released || c.mutates()
		}
		return !released
	})
	v := a.local(e)
	if released || v == nil {
		return released
	}
	for use := range a.usesOf(v, f) {
		if call, ok := use.Parent().Node().(*ast.CallExpr); ok {
			if c := a.calls[call]; c != nil && c.mutates() {
				return true
			}
		}
		if sel, ok := use.Parent().Node().(*ast.SelectorExpr); ok && sel.Sel.Name == "Backward" {
			return true
		}
	}
	return slices.ContainsFunc(a.defs[v], func(d def) bool {
		return d.kind == defValue && asCall(d.value) != nil && a.isReleased(d.value, f)
	})
}
