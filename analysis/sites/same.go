package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// Makes reports whether f returns a tensor that depends on nothing but its operands, on
// fields of its receiver and the values of parameters in these, on variables around it if it is a literal, and on what
// never changes:
//
//	func mask(n int) *tensor.Tensor { return tensor.Ones(n, n).Tril() }
func Makes(pkg *blocking.Package, f *blocking.Func) bool {
	_, ok := ingredients(pkg, f, 0)
	return ok && blocking.IsTensor(f.Sig.Results().At(0).Type())
}

// ingredients lists the fields and the variables around f that its result depends on: a tensor that f makes, as Makes
// says, or data that it computes. It returns false for ok if f does anything else. Depth bounds the calls that it
// follows.
func ingredients(pkg *blocking.Package, f *blocking.Func, depth int) (list []*types.Var, ok bool) {
	if f == nil || f.Sig.Results().Len() != 1 || len(f.Parts()) != 1 || depth > 3 {
		return nil, false
	}
	result := f.Sig.Results().At(0).Type()
	if !blocking.IsTensor(result) && !isData(result) {
		return nil, false
	}
	hosts := false
	for p := range f.Sig.Params().Variables() {
		if !isData(p.Type()) && !blocking.IsTensor(p.Type()) {
			return nil, false
		}
		hosts = hosts || blocking.IsTensor(p.Type())
	}
	for _, c := range f.Calls {
		switch {
		case c.Away || c.Dynamic || c.Target == f:
			return nil, false
		case c.API.Kind == tensorapi.Host:
			hosts = true
		case c.API.Kind == tensorapi.Op || c.API.Kind == tensorapi.View || c.API.Kind == tensorapi.Meta || c.API.Kind == tensorapi.Pure:
			hosts = hosts || c.API.Kind == tensorapi.Op && c.Lib == tensorapi.Ours() && !blocking.IsForward(c)
		case blocking.IsParamValue(c):
		case c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math":
		default:
			more, ok := ingredients(pkg, c.Target, depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, more...)
			hosts = hosts || blocking.IsTensor(pkg.Info.TypeOf(c.Expr))
		}
	}
	for cur := range f.Cur.Preorder((*ast.Ident)(nil), (*ast.GoStmt)(nil), (*ast.SendStmt)(nil), (*ast.UnaryExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.Ident:
			v, isVar := pkg.Info.Uses[n].(*types.Var)
			around := isVar && (v.Pos() < f.Cur.Node().Pos() || f.Cur.Node().End() <= v.Pos())
			switch {
			case !isVar, v.IsField():
			case v.Parent() == pkg.Pass.Pkg.Scope():
				_, basic := v.Type().Underlying().(*types.Basic)
				if !basic || slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool { return d.In != nil }) {
					return nil, false
				}
			case around && (isData(v.Type()) || blocking.IsTensor(v.Type())):
				list = append(list, v)
			case around && !blocking.IsTensor(v.Type()) || v == f.Sig.Recv():
				if call, ok := cur.Parent().Parent().Node().(*ast.CallExpr); ok && v == f.Sig.Recv() && call.Fun == cur.Parent().Node() && pkg.Calls[call] != nil && pkg.Calls[call].Target != nil {
					continue // another method, whose fields are listed
				}
				field, isField := fieldAt(pkg, cur)
				if !isField || len(pkg.Defs[v]) > 1 {
					return nil, false
				}
				list = append(list, field)
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return list, hosts || isData(result)
}

// fieldAt returns the field that is asked for of the variable at cur, if it is data, a tensor or a parameter, and not
// assigned.
func fieldAt(pkg *blocking.Package, cur inspector.Cursor) (*types.Var, bool) {
	sel, ok := cur.Parent().Node().(*ast.SelectorExpr)
	if !ok || syntax.IsTarget(cur.Parent()) {
		return nil, false
	}
	v, ok := pkg.Info.Uses[sel.Sel].(*types.Var)
	if !ok || !isData(v.Type()) && !blocking.IsTensor(v.Type()) && !pkg.IsCell(v.Type()) {
		return nil, false
	}
	return v.Origin(), true
}

// isData reports whether t is a basic type, or a list of data.
func isData(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Slice:
		return isData(t.Elem())
	case *types.Array:
		return isData(t.Elem())
	}
	return false
}

// IsSame reports whether e has the same value in each iteration of l.
func IsSame(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	if pkg.Info.Types[e].Value != nil || syntax.IsNil(pkg.Info, e) {
		return true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := pkg.Info.Uses[e].(*types.Var)
		return ok && !mayChange(pkg, v, l)
	case *ast.SelectorExpr:
		v, ok := pkg.Info.Uses[e.Sel].(*types.Var)
		if !ok {
			return false
		}
		v = v.Origin()
		return !mayChange(pkg, v, l) && (!v.IsField() || IsSame(pkg, e.X, l) || (IsSetOnce(pkg, v) || isValue(v.Type()) || pkg.IsCell(v.Type())) && IsSameHeader(pkg, e.X, l))
	case *ast.BinaryExpr:
		return IsSame(pkg, e.X, l) && IsSame(pkg, e.Y, l)
	case *ast.UnaryExpr:
		return e.Op.String() == "-" && IsSame(pkg, e.X, l)
	case *ast.IndexExpr:
		if _, generic := pkg.Info.TypeOf(e.X).Underlying().(*types.Signature); generic {
			return true
		}
		return IsSame(pkg, e.X, l) && IsSame(pkg, e.Index, l)
	case *ast.CompositeLit:
		for _, elt := range e.Elts {
			if kv, ok := elt.(*ast.KeyValueExpr); ok {
				elt = kv.Value
			}
			if !IsSame(pkg, elt, l) {
				return false
			}
		}
		return true
	case *ast.CallExpr:
		return isSameCall(pkg, e, l)
	}
	return false
}

// isValue reports whether what a variable of type t holds changes only by an assignment to the variable.
func isValue(t types.Type) bool {
	_, basic := t.Underlying().(*types.Basic)
	return basic || blocking.IsTensor(t)
}

// isSameCall is IsSame for calls: conversions, len, constructors, and questions that need no value of
// the tensor, such as its shape.
func isSameCall(pkg *blocking.Package, e *ast.CallExpr, l *blocking.Loop) bool {
	tv := pkg.Info.Types[e.Fun]
	switch {
	case tv.IsType():
	case tv.IsBuiltin():
		id, ok := ast.Unparen(e.Fun).(*ast.Ident)
		switch {
		case ok && id.Name == "len" && IsSameHeader(pkg, e.Args[0], l):
			return true
		case !ok || id.Name != "len" && id.Name != "min" && id.Name != "max":
			return false
		}
	default:
		c := pkg.Calls[e]
		if c == nil {
			return false
		}
		if got := got(pkg, c); got != nil && AreSame(pkg, e.Args, l) && IsSameHeader(pkg, c.Operand(tensorapi.Recv)[0], l) && IsSame(pkg, got, l) {
			return true
		}
		var recv []ast.Expr
		if c.Callee != nil && c.Callee.Signature().Recv() != nil {
			recv = c.Operand(tensorapi.Recv)
		}
		switch c.API.Kind {
		case tensorapi.Value:
			if !blocking.IsParamValue(c) || !AreSame(pkg, recv, l) {
				return false
			}
		case tensorapi.Op, tensorapi.View:
			if c.Lib != tensorapi.Ours() || !AreSame(pkg, recv, l) {
				return false
			}
		case tensorapi.Host, tensorapi.Meta, tensorapi.Pure:
			if !AreSame(pkg, recv, l) {
				return false
			}
		default:
			if c.Callee != nil && c.Callee.Pkg() != nil && c.Callee.Pkg().Path() == "math" {
				break
			}
			vars, ok := ingredients(pkg, c.Target, 0)
			if !ok || slices.ContainsFunc(vars, func(v *types.Var) bool { return mayChange(pkg, v, l) }) ||
				len(vars) > 0 && slices.ContainsFunc(recv, func(e ast.Expr) bool { return !IsSameHeader(pkg, e, l) }) {
				return false
			}
		}
	}
	return AreSame(pkg, e.Args, l)
}

// AreSame reports whether each of es has the same value in each iteration of l.
func AreSame(pkg *blocking.Package, es []ast.Expr, l *blocking.Loop) bool {
	return !slices.ContainsFunc(es, func(e ast.Expr) bool { return !IsSame(pkg, e, l) })
}

// got returns the expression that c's callee returns, if the callee is a getter; otherwise nil. A
// getter is a method of the package that does nothing else, and calls nothing but len.
func got(pkg *blocking.Package, c *blocking.Call) ast.Expr {
	f := c.Target
	if f == nil || c.Away || f.Cyclic || f.Sig.Recv() == nil || f.Sig.Params().Len() > 0 || f.Body == nil || len(f.Body.List) != 1 {
		return nil
	}
	ret, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return nil
	}
	return ret.Results[0]
}

// IsSameHeader reports whether a variable, or a field of one, holds the same list, struct or pointer in each iteration
// of l. What is in there may change.
func IsSameHeader(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	var v *types.Var
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ = pkg.Info.Uses[e].(*types.Var)
	case *ast.SelectorExpr:
		v, _ = pkg.Info.Uses[e.Sel].(*types.Var)
		if v != nil && v.IsField() && !IsSameHeader(pkg, e.X, l) {
			return false
		}
	}
	if v == nil {
		return false
	}
	v = v.Origin()
	shared := v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope()
	if pkg.IsOperand(v, l) {
		return false
	}
	for _, d := range pkg.Defs[v] {
		if pkg.Contains(l, d.In, d.Pos) || shared && pkg.CalledFrom(l, d.In) {
			return false
		}
	}
	return !shared || IsSetOnce(pkg, v) || !pkg.Any(l, func(c *blocking.Call) bool { return c.Dynamic })
}

// mayChange reports whether v, or what it refers to, may change in l. A tensor doesn't. A list doesn't
// if l only asks for its length and its elements.
func mayChange(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	shared := v.IsField() || v.Parent() == pkg.Pass.Pkg.Scope()
	if pkg.IsOperand(v, l) {
		return true
	}
	if !isSetAlike(pkg, v, l) {
		for _, d := range pkg.Defs[v] {
			if pkg.Contains(l, d.In, d.Pos) || shared && pkg.CalledFrom(l, d.In) {
				return true
			}
		}
	}
	once := shared && IsSetOnce(pkg, v)
	if shared && !once && pkg.Any(l, func(c *blocking.Call) bool { return c.Dynamic }) {
		return true // who knows what it sets
	}
	switch v.Type().Underlying().(type) {
	case *types.Basic:
		return false
	case *types.Slice, *types.Array:
		return shared && !once || !shared && escapesIn(pkg, v, l)
	}
	if pkg.IsCell(v.Type()) {
		return pkg.Any(l, func(c *blocking.Call) bool { return c.Mutates() || c.Dynamic && c.API.Kind == tensorapi.Unknown })
	}
	return !blocking.IsTensor(v.Type()) && !isStructOfBasics(v.Type()) && !tensorapi.IsDevice(v.Type())
}

// isSetAlike reports whether v is a local variable that each iteration of l sets once, to the same value. Variables in
// the value must be declared before v: then the questions about them end.
//
//	kernel := []float32{0, 1, 0}
func isSetAlike(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	d := pkg.Defs[v]
	return !v.IsField() && v.Parent() != pkg.Pass.Pkg.Scope() && len(d) == 1 && d[0].Kind == blocking.DefValue && d[0].Index == 0 &&
		pkg.Contains(l, d[0].In, d[0].Pos) && !blocking.IsTensors(v.Type()) && !mentionsLater(pkg, d[0].Value, v) && IsSame(pkg, d[0].Value, l)
}

// mentionsLater reports whether e mentions v, or a local variable that is declared after v.
func mentionsLater(pkg *blocking.Package, e ast.Expr, v *types.Var) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			u := pkg.Local(id)
			found = found || u != nil && u.Pos() >= v.Pos()
		}
		return !found
	})
	return found
}

// IsSetOnce reports whether v is an unexported field or variable of the package that is set where it is made and never
// again: in the literal of its struct, or by the function that has made the struct. If v is a list, the package may
// otherwise only read its elements and make tensors from it.
func IsSetOnce(pkg *blocking.Package, v *types.Var) bool {
	if v.Exported() || v.Pkg() != pkg.Pass.Pkg || slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool { return d.In != nil && !isInLiteral(pkg, d) && !isBuilding(pkg, v, d) }) {
		return false
	}
	if syntax.ElementType(v.Type()) == nil {
		return true
	}
	for use := range pkg.UsesInPackage(v) {
		if use.ParentEdgeKind() == edge.SelectorExpr_Sel {
			use = use.Parent()
		}
		if sel, ok := use.Node().(*ast.SelectorExpr); ok && isMadeHere(pkg, sel.X) {
			continue
		}
		switch n := use.Parent().Node().(type) {
		case *ast.IndexExpr, *ast.RangeStmt:
			continue
		case *ast.CallExpr:
			if c := pkg.Calls[n]; c != nil && c.API.Kind == tensorapi.Host || syntax.IsBuiltin(pkg.Info, n, "len") {
				continue
			}
		}
		return false
	}
	return true
}

// isInLiteral reports whether d sets a field in a literal of its struct.
func isInLiteral(pkg *blocking.Package, d blocking.Def) bool {
	cur, ok := pkg.Cursor(d.Pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.CompositeLit)(nil), (*ast.AssignStmt)(nil)) {
		n, ok := c.Node().(*ast.CompositeLit)
		if !ok {
			return false
		}
		if _, isStruct := typeOf(pkg, n).Underlying().(*types.Struct); isStruct {
			return true
		}
	}
	return false
}

// isBuilding reports whether d sets the field v, or an element of it, of a struct that the function has just made.
func isBuilding(pkg *blocking.Package, v *types.Var, d blocking.Def) bool {
	cur, ok := pkg.Cursor(d.Pos)
	if !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.AssignStmt)(nil), (*ast.IncDecStmt)(nil)) {
		built := false
		for sel := range c.Preorder((*ast.SelectorExpr)(nil)) {
			n := sel.Node().(*ast.SelectorExpr)
			if pkg.Variable(n) == v {
				if !isMadeHere(pkg, n.X) {
					return false
				}
				built = true
			}
		}
		return built
	}
	return false
}

// isMadeHere reports whether e is a local variable that holds a struct, or the pointer to one, made for it.
func isMadeHere(pkg *blocking.Package, e ast.Expr) bool {
	v := pkg.Local(e)
	d := pkg.Defs[v]
	if v == nil || len(d) == 0 || pkg.Params[v].Of != nil {
		return false
	}
	made := ast.Unparen(syntax.OrNil(d[0].Value))
	if u, ok := made.(*ast.UnaryExpr); ok {
		made = u.X
	}
	call := syntax.AsCall(made)
	_, isLit := made.(*ast.CompositeLit)
	return isLit || call != nil && syntax.IsBuiltin(pkg.Info, call, "new")
}

// isStructOfBasics reports whether t is a struct whose fields have basic types.
func isStructOfBasics(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		if _, ok := f.Type().Underlying().(*types.Basic); !ok {
			return false
		}
	}
	return true
}

// escapesIn reports whether l uses the slice v in any other way than to index it, range over it, ask
// for its length, or make tensors of it.
func escapesIn(pkg *blocking.Package, v *types.Var, l *blocking.Loop) bool {
	for use := range pkg.UsesOf(v, l.Func) {
		if !pkg.Contains(l, pkg.FuncAt(use), use.Node().Pos()) {
			continue
		}
		switch n := use.Parent().Node().(type) {
		case *ast.IndexExpr, *ast.RangeStmt:
			continue
		case *ast.CallExpr:
			if pkg.Info.Types[n.Fun].IsBuiltin() {
				if id, ok := ast.Unparen(n.Fun).(*ast.Ident); ok && (id.Name == "len" || id.Name == "cap") {
					continue
				}
			}
			if c := pkg.Calls[n]; c != nil && c.API.Kind == tensorapi.Host {
				continue
			}
		}
		return true
	}
	return false
}
