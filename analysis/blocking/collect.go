package blocking

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"
)

// collect walks the package once and notes functions, calls and assignments.
func (a *analyzer) collect(root inspector.Cursor) {
	for file := range root.Children() {
		a.walk(file, nil)
	}
	for v, defs := range a.defs {
		if len(defs) == 1 && defs[0].kind == defValue && !v.IsField() {
			if lit, ok := ast.Unparen(defs[0].value).(*ast.FuncLit); ok {
				f := a.lits[lit]
				f.away = callable
				a.bound[v] = f
			}
		}
	}
	for _, f := range a.funcs {
		for _, c := range f.calls {
			a.resolve(c)
		}
	}
}

var collected = []ast.Node{
	(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil), (*ast.CallExpr)(nil), (*ast.AssignStmt)(nil),
	(*ast.ValueSpec)(nil), (*ast.RangeStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.ReturnStmt)(nil),
	(*ast.CompositeLit)(nil), (*ast.UnaryExpr)(nil),
}

// walk notes what is below cur, which belongs to f.
func (a *analyzer) walk(cur inspector.Cursor, f *Func) {
	cur.Inspect(collected, func(c inspector.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.FuncDecl:
			if n.Body != nil {
				a.declare(c, n)
			}
			return false
		case *ast.FuncLit:
			a.literal(c, n, f)
			return false
		case *ast.CallExpr:
			a.call(c, n, f)
		case *ast.AssignStmt:
			a.assign(n, f)
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if len(n.Values) > 0 {
					a.define(name, valueOf(n.Values, i), f)
				}
			}
		case *ast.RangeStmt:
			if n.Key != nil {
				a.define(n.Key, def{kind: defKey, pos: n.Body.Lbrace, value: n.X}, f)
			}
			if n.Value != nil {
				a.define(n.Value, def{kind: defElem, pos: n.Body.Lbrace, value: n.X}, f)
			}
		case *ast.IncDecStmt:
			a.define(n.X, def{kind: defStep, pos: n.Pos()}, f)
		case *ast.ReturnStmt:
			if f != nil {
				f.rets = append(f.rets, n)
			}
		case *ast.CompositeLit:
			a.composite(n, f)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				if id, ok := ast.Unparen(n.X).(*ast.Ident); ok {
					a.define(id, def{kind: defOther, pos: n.Pos()}, f)
				}
			}
		}
		return true
	})
}

func (a *analyzer) declare(c inspector.Cursor, n *ast.FuncDecl) {
	fn, ok := a.info.Defs[n.Name].(*types.Func)
	if !ok {
		return
	}
	f := a.newFunc(&Func{block: n.Body, cur: c, sig: fn.Signature(), name: fn.Name()})
	a.decls[fn] = f
	a.addParams(f)
	body, _ := c.FindNode(n.Body)
	a.walk(body, f)
}

func (a *analyzer) literal(c inspector.Cursor, n *ast.FuncLit, parent *Func) {
	sig, ok := a.info.TypeOf(n).(*types.Signature)
	if !ok {
		return
	}
	f := a.newFunc(&Func{block: n.Body, lit: n, parent: parent, cur: c, sig: sig, name: "the function literal"})
	if parent != nil {
		parent.nested = append(parent.nested, f)
	}
	a.lits[n] = f
	a.addParams(f)

	use := c.Parent()
	for isParen(use.Node()) {
		use = use.Parent()
	}
	if call, ok := use.Node().(*ast.CallExpr); ok {
		f.arg, f.argNo = call, -1
		for i, arg := range call.Args {
			if ast.Unparen(arg) == n {
				f.argNo = i
			}
		}
		if f.argNo < 0 {
			switch use.Parent().Node().(type) {
			case *ast.GoStmt:
				f.away = detached
			case *ast.DeferStmt:
				f.away = deferred
			default:
				f.away = once
			}
		}
		if c := a.calls[call]; c != nil {
			c.lits = append(c.lits, f)
		}
	}
	body, _ := c.FindNode(n.Body)
	a.walk(body, f)
}

func isParen(n ast.Node) bool { _, ok := n.(*ast.ParenExpr); return ok }

func (a *analyzer) addParams(f *Func) {
	if r := f.sig.Recv(); r != nil {
		a.params[r] = param{f, tensorapi.Recv}
	}
	for i := range min(f.sig.Params().Len(), 30) {
		a.params[f.sig.Params().At(i)] = param{f, i}
	}
}

func (a *analyzer) call(c inspector.Cursor, n *ast.CallExpr, f *Func) {
	if f == nil {
		return // package initialisation is no loop
	}
	if tv := a.info.Types[n.Fun]; tv.IsType() || tv.IsBuiltin() {
		return
	}
	call := &Call{Expr: n, in: f, cur: c}
	switch c.Parent().Node().(type) {
	case *ast.GoStmt, *ast.DeferStmt:
		call.away = true
	}
	f.calls = append(f.calls, call)
	a.calls[n] = call
}

// resolve finds out what a call calls. It needs the variables that are bound
// to literals.
func (a *analyzer) resolve(c *Call) {
	switch callee := typeutil.Callee(a.info, c.Expr).(type) {
	case *types.Func:
		c.Callee = callee
		if api, ok := lookup(callee); ok {
			c.api = api
			return
		}
		callee = callee.Origin()
		if types.IsInterface(recvType(callee)) {
			c.dynamic = true
			c.impls = a.implementations(callee)
			return
		}
		c.target = a.decls[callee]
		if callee.Pkg() != nil && callee.Pkg() != a.pass.Pkg {
			s := new(Summary)
			if a.pass.ImportObjectFact(callee, s) {
				c.summary = s
			}
		}
	case *types.Var:
		c.target = a.bound[callee]
		c.dynamic = c.target == nil
	default:
		_, lit := ast.Unparen(c.Expr.Fun).(*ast.FuncLit)
		c.dynamic = !lit
	}
}

// maxImplementations is the number of types up to which a method of an
// interface is taken for what these types agree on.
const maxImplementations = 3

// implementations returns the methods of this package that a call of the
// method of an interface of this package may lead to, or nil if there are
// more than a few.
func (a *analyzer) implementations(method *types.Func) []*Func {
	it, ok := recvType(method).Underlying().(*types.Interface)
	if !ok || method.Pkg() != a.pass.Pkg {
		return nil
	}
	var list []*Func
	for _, f := range a.funcs {
		if f.lit != nil || f.name != method.Name() || f.sig.Recv() == nil || f.sig.RecvTypeParams().Len() > 0 {
			continue
		}
		if types.Implements(f.sig.Recv().Type(), it) {
			list = append(list, f)
		}
	}
	if len(list) > maxImplementations {
		return nil
	}
	return list
}

func recvType(fn *types.Func) types.Type {
	if r := fn.Signature().Recv(); r != nil {
		return r.Type()
	}
	return types.Typ[types.Invalid]
}

func (a *analyzer) assign(n *ast.AssignStmt, f *Func) {
	switch n.Tok {
	case token.ASSIGN, token.DEFINE:
		for i, lhs := range n.Lhs {
			a.define(lhs, valueOf(n.Rhs, i), f)
		}
	default:
		kind := defOther
		if a.info.Types[n.Rhs[0]].Value != nil {
			kind = defStep
		}
		a.define(n.Lhs[0], def{kind: kind, pos: n.Pos()}, f)
	}
}

// valueOf is the definition of the i-th variable by a list of values, which
// may be one call with several results.
func valueOf(values []ast.Expr, i int) def {
	if i < len(values) {
		return def{value: values[i], pos: values[i].Pos()}
	}
	return def{value: values[0], pos: values[0].Pos(), index: i}
}

// define notes an assignment. One to an element of a container, or through a
// pointer, counts as one to the container or pointer.
func (a *analyzer) define(lhs ast.Expr, d def, f *Func) {
	d.in = f
	if v := a.variable(lhs); v != nil {
		a.defs[v] = append(a.defs[v], d)
	}
}

// variable returns the variable or field that an expression stores to.
func (a *analyzer) variable(e ast.Expr) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, _ := a.info.ObjectOf(e).(*types.Var)
		return v
	case *ast.SelectorExpr:
		v, _ := a.info.ObjectOf(e.Sel).(*types.Var)
		if v != nil {
			return v.Origin()
		}
	case *ast.IndexExpr:
		return a.variable(e.X)
	case *ast.StarExpr:
		return a.variable(e.X)
	}
	return nil
}

func (a *analyzer) composite(n *ast.CompositeLit, f *Func) {
	t := a.info.TypeOf(n)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem() // an elided &T in a list
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, e := range n.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				a.define(key, def{value: kv.Value, pos: kv.Value.Pos()}, f)
			}
		} else if i < s.NumFields() {
			v := s.Field(i).Origin()
			a.defs[v] = append(a.defs[v], def{in: f, value: e, pos: e.Pos()})
		}
	}
}
