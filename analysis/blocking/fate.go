package blocking

import (
	"go/ast"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// What becomes of a tensor after it was stored. A rule about kept histories asks: a sum of losses may
// be differentiated later, and then its history is needed. If only values are read from it, the history
// is kept for nothing:
//
//	total = total.Add(loss)         // keeps the history of each loss
//	fmt.Println(total.Item() / n)   // for a number
//
// The search follows the value forwards, from use to use, through variables, calls and results. It
// overestimates: a value that is stored where others can see it, or given to an unknown function,
// counts as escaping, and then no rule complains.

// A Fate says what becomes of tensors. It is a set: the zero Fate means that only values are read from
// them, and each member is a use that may need the history.
type Fate uint8

const (
	Escapes        Fate = 1 << iota // returned, stored, given away
	Differentiated                  // operand of Backward, Minimize, Grad or what may call these
)

// A fortune finds the Fate of the tensors in a variable. What operations compute from them counts as
// well, if gradients go through the operations. One fortune answers one question.
type fortune struct {
	*Package
	of   *types.Var          // the variable in question; storing something in it changes nothing
	seen map[*types.Var]bool // the variables whose uses are looked at, or have been
	back map[*Func]bool      // the functions whose callers are looked at, or have been
}

// FateOf says what becomes of the tensors in v, a field or a variable that f knows. What operations
// compute from them counts as well, if gradients go through the operations.
//
//	sum = sum.Add(loss)
//	fmt.Println(sum.Item()) // the fate of sum is 0: only values are read
//	sum.Backward()          // now it is Differentiated
func (pkg *Package) FateOf(v *types.Var, f *Func) Fate {
	t := &fortune{pkg, v, make(map[*types.Var]bool), make(map[*Func]bool)}
	return t.variable(v, f)
}

// FateAt says what becomes of the value of the expression at cur. Storing it in the variable of, which
// may be nil, is no fate: the caller asks about that variable by itself.
func (pkg *Package) FateAt(cur inspector.Cursor, of *types.Var) Fate {
	t := &fortune{pkg, of, make(map[*types.Var]bool), make(map[*Func]bool)}
	return t.value(cur)
}

// variable is the fate of what is in v: the union over all uses. The tensor escapes if v is exported, a
// named result, or a list that the caller has passed in.
func (t *fortune) variable(v *types.Var, f *Func) Fate {
	if t.seen[v] {
		return 0
	}
	t.seen[v] = true
	var known Fate
	uses := t.UsesInPackage(v)
	if shared := v.IsField() || v.Parent() == t.Pass.Pkg.Scope(); !shared {
		uses = t.UsesOf(v, f)
	} else if v.Exported() {
		known = Escapes
	}
	switch {
	case t.Params[v].Of != nil && !IsState(v.Type()):
		known = Escapes // the caller has the list
	case isNamedResult(t.Package, v, f):
		known = Escapes
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

// IsState reports whether t is a tensor, or a struct of tensors and nothing else, as the state of a recurrent network.
func IsState(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if IsTensor(t) || !ok {
		return IsTensor(t)
	}
	for f := range s.Fields() {
		if !IsTensor(f.Type()) {
			return false
		}
	}
	return s.NumFields() > 0
}

// UsesInPackage yields the identifiers that refer to v, a field or variable of the package. The keys of
// struct literals, which only say what is set, are left out.
func (pkg *Package) UsesInPackage(v *types.Var) func(func(inspector.Cursor) bool) {
	return func(yield func(inspector.Cursor) bool) {
		for c := range pkg.Root.Preorder((*ast.Ident)(nil)) {
			u, ok := pkg.Info.Uses[c.Node().(*ast.Ident)].(*types.Var)
			if ok && u.Origin() == v && c.ParentEdgeKind() != edge.KeyValueExpr_Key && !yield(c) {
				return
			}
		}
	}
}

// isNamedResult reports whether v is a named result of f or of a function around it.
func isNamedResult(pkg *Package, v *types.Var, f *Func) bool {
	for g := range f.In() {
		if pkg.IsResult(v, g) {
			return true
		}
	}
	return false
}

// value is the fate of the value at cur. It climbs the syntax tree while the value stays the same, or
// goes into another one, until the value is stored, passed or returned.
//
//	return []*tensor.Tensor{(loss)} // from loss up to the return: Escapes, or what callers do with it
//
// Syntax that it doesn't know lets the value escape.
func (t *fortune) value(cur inspector.Cursor) Fate {
	for {
		up := cur.Parent()
		kind, index := cur.ParentEdge()
		switch n := up.Node().(type) {
		// The same value, or a part of it.
		case *ast.ParenExpr, *ast.StarExpr, *ast.SliceExpr, *ast.TypeAssertExpr:
		case *ast.KeyValueExpr:
			if kind == edge.KeyValueExpr_Key {
				return 0
			}
		case *ast.SelectorExpr:
			if sel := t.Info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal && !t.HoldsTensors(sel.Type()) {
				return 0
			}
		case *ast.IndexExpr:
			if kind != edge.IndexExpr_X {
				return 0
			}
		// Compared, or thrown away.
		case *ast.BinaryExpr, *ast.ExprStmt:
			return 0
		case *ast.CompositeLit:
			if !IsTensors(t.Info.TypeOf(n)) && !IsState(t.Info.TypeOf(n)) {
				return Escapes
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
			var known Fate
			for i, lhs := range n.Lhs {
				if len(n.Lhs) != len(n.Rhs) || i == index {
					known |= t.stored(lhs, up)
				}
			}
			return known
		case *ast.ValueSpec:
			var known Fate
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
			return Escapes
		}
		cur = up
	}
}

// returned is the fate of result number index of the function around the return statement n: what its
// callers do with it. The result escapes if not all callers are known, as for exported functions and
// methods, and for those that are used as values or called through an interface.
func (t *fortune) returned(n *ast.ReturnStmt, index int, at inspector.Cursor) Fate {
	f := t.FuncAt(at)
	if f == nil || f.Lit != nil || ast.IsExported(f.Name) || len(n.Results) != f.Sig.Results().Len() || len(t.callers()[f]) == 0 {
		return Escapes
	}
	if t.back[f] {
		return 0
	}
	t.back[f] = true
	decl, _ := f.Cur.Node().(*ast.FuncDecl)
	var known Fate
	// Each use of the name must be one of the calls.
	uses := 0
	for c := range t.Root.Preorder((*ast.Ident)(nil)) {
		if fn, ok := t.Info.Uses[c.Node().(*ast.Ident)].(*types.Func); ok && fn.Origin() == t.Info.Defs[decl.Name] {
			uses++
		}
	}
	if uses != len(t.callers()[f]) {
		return Escapes // it is a value, too
	}
	for _, c := range t.callers()[f] {
		assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
		if ok && len(assign.Lhs) == f.Sig.Results().Len() && len(assign.Rhs) == 1 {
			known |= t.stored(assign.Lhs[index], c.Value().Parent())
		} else {
			known |= t.value(c.Value())
		}
	}
	return known
}

// stored is the fate of a value that is assigned to lhs. It is the fate of lhs if that is a local
// variable for tensors. Fields, package variables and structs let it escape.
func (t *fortune) stored(lhs ast.Expr, at inspector.Cursor) Fate {
	v := t.Package.Variable(lhs)
	switch {
	case isBlank(lhs) || v == t.of || v != nil && !t.HoldsTensors(v.Type()):
		return 0
	case v == nil || v.IsField() || v.Parent() == t.Pass.Pkg.Scope() || !IsTensors(v.Type()) && !IsState(v.Type()):
		return Escapes
	}
	f := t.FuncAt(at)
	if f == nil {
		return Escapes
	}
	return t.variable(v, f)
}

// isBlank reports whether e is the blank identifier.
func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// operandOf says what becomes of the operand at cur of the call n. If result is true, the operand lives
// on in the result of the call, as x does in x.Add(y), and the caller has to follow that. Otherwise the
// second result is its fate.
func (t *fortune) operandOf(n *ast.CallExpr, cur inspector.Cursor) (result bool, _ Fate) {
	if tv := t.Info.Types[n.Fun]; tv.IsType() {
		return true, 0
	} else if tv.IsBuiltin() {
		switch id, _ := ast.Unparen(n.Fun).(*ast.Ident); {
		case id == nil || id.Name == "copy":
			return false, Escapes
		default:
			return id.Name == "append", 0
		}
	}
	c := t.Calls[n]
	if c == nil || c.Away {
		return false, Escapes
	}
	switch c.API.Kind {
	case tensorapi.Read, tensorapi.Save, tensorapi.Print, tensorapi.Output, tensorapi.Wait, tensorapi.Meta, tensorapi.Poll, tensorapi.Transfer, tensorapi.Value:
		return false, 0
	case tensorapi.Draw, tensorapi.Host:
		return false, 0 // it has the shape of the operand
	case tensorapi.View:
		return c.Callee.Name() != "Detach" && c.Callee.Name() != "Track", 0
	case tensorapi.Op:
		switch name := c.Callee.Name(); {
		case isGrad(c):
			if cur.Node() != n.Args[0] {
				return false, 0 // the first argument is what is differentiated
			}
			// A gradient with respect to the variable itself begins there, so the history of the
			// variable isn't used.
			for _, x := range n.Args[1:] {
				if t.Local(x) != t.of {
					return false, Differentiated
				}
			}
			return true, 0
		default:
			return IsForward(c) || passesGradients(name) || name == "As" || name == "F64", 0
		}
	case tensorapi.Mutate:
		if c.Callee.Name() == "Set" {
			return false, 0 // it takes the elements
		}
		return false, Differentiated
	case tensorapi.Unknown:
		return t.given(c, cur)
	}
	return false, Escapes
}

// given is operandOf for c, the call of a user's function. An operand lives on in the result if that
// has tensors. If it has none, and the summary says that the function waits for the operand, the
// function reads its values. In all other cases the operand escapes.
func (t *fortune) given(c *Call, cur inspector.Cursor) (result bool, _ Fate) {
	if _, prints := c.Printer(); prints {
		return false, 0
	}
	op := slices.IndexFunc(c.Expr.Args, func(e ast.Expr) bool { return e == cur.Node() })
	if op < 0 {
		op = tensorapi.Recv
	}
	tensors := false
	for v := range t.ResultsOf(c).Variables() {
		tensors = tensors || t.HoldsTensors(v.Type())
		if _, isFunc := v.Type().Underlying().(*types.Signature); isFunc {
			return false, Escapes
		}
	}
	switch s := c.Summary(); {
	case isCollection(c.Callee) && tensors:
		return true, 0
	case c.Mutates():
		return false, Differentiated
	case tensors && (c.Target != nil || c.summary != nil || c.Dynamic):
		return true, 0
	case !tensors && waitOf(s.Waits, op) != nil:
		return false, 0
	}
	return false, Escapes
}
