package unusedread

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT030.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT030", Package: "unusedread", Doc: doc, Fixes: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.API.Kind != tensorapi.Read || c.Away || !returnsValue(c) || !isUnused(p, c) || f.IsTried() || c.EndsMeasurement() {
				continue
			}
			call := types.ExprString(c.Expr)
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:            c.Expr.Pos(),
				End:            c.Expr.End(),
				Message:        "value of " + call + " is not used, only waited for; call " + waiter(p, c) + " if the wait is wanted",
				SuggestedFixes: wait(p, c),
			})
		}
	}
}

// returnsValue reports whether the callee returns what it reads. Others give it to a function or a
// file.
func returnsValue(c *blocking.Call) bool {
	sig := c.Callee.Signature()
	for v := range sig.Params().Variables() {
		if _, isFunc := v.Type().Underlying().(*types.Signature); isFunc {
			return false
		}
	}
	return sig.Results().Len() > 0 && !types.Identical(sig.Results().At(0).Type(), types.Universe.Lookup("error").Type())
}

// isUnused reports whether nothing looks at the value that c reads. The error
// that some reads return beside it does not count.
func isUnused(p *lint.Pass, c *blocking.Call) bool {
	cur := c.Value()
	up := cur.Parent()
	switch n := up.Node().(type) {
	case *ast.ExprStmt:
		return true
	case *ast.AssignStmt:
		kind, i := cur.ParentEdge()
		if kind != edge.AssignStmt_Rhs || n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
			return false
		}
		return isBlank(n.Lhs[i]) || onlyBlanked(p, n.Lhs[i])
	case *ast.ValueSpec:
		_, i := cur.ParentEdge()
		return isBlank(n.Names[i]) || onlyBlanked(p, n.Names[i])
	}
	return false
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// onlyBlanked reports whether lhs is a local variable that is assigned, and used for nothing but _ = v.
func onlyBlanked(p *lint.Pass, lhs ast.Expr) bool {
	id, ok := lhs.(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := p.TypesInfo.ObjectOf(id).(*types.Var)
	if !ok {
		return false
	}
	uses, local := localUses(p.Package, v)
	for _, c := range uses {
		kind, i := c.ParentEdge()
		assign, ok := c.Parent().Node().(*ast.AssignStmt)
		switch {
		case !ok, assign.Tok != token.ASSIGN && assign.Tok != token.DEFINE:
			return false
		case kind == edge.AssignStmt_Lhs:
		case len(assign.Lhs) != len(assign.Rhs) || !isBlank(assign.Lhs[i]):
			return false
		}
	}
	return local
}

// waiter is how to call what waits and does not read: "y.Wait()".
func waiter(p *lint.Pass, c *blocking.Call) string {
	operand, method := waitMethod(p, c)
	switch {
	case method == "":
		return "what only waits"
	case method == "WaitContext":
		return types.ExprString(operand) + ".WaitContext"
	}
	return types.ExprString(operand) + ".Wait()"
}

// waitMethod returns the tensor that c reads, and the name of the tensor's method that waits. If the
// read takes a context, so does the method. The name is empty if there is no such method.
func waitMethod(p *lint.Pass, c *blocking.Call) (operand ast.Expr, method string) {
	list := c.Operand(c.API.Arg)
	if len(list) != 1 {
		return nil, ""
	}
	method = "Wait"
	if takesContext(c) {
		method = "WaitContext"
	}
	t := p.TypesInfo.TypeOf(list[0])
	if obj, _, _ := types.LookupFieldOrMethod(t, true, p.Pkg, method); obj == nil {
		return nil, ""
	}
	return list[0], method
}

func takesContext(c *blocking.Call) bool {
	params := c.Callee.Signature().Params()
	if params.Len() == 0 {
		return false
	}
	named, ok := types.Unalias(params.At(0).Type()).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "context" && named.Obj().Name() == "Context"
}

// wait replaces the statement with one that waits for the tensor.
func wait(p *lint.Pass, c *blocking.Call) []analysis.SuggestedFix {
	operand, method := waitMethod(p, c)
	stmt := c.Value().Parent().Node()
	if method == "" || p.HasComment(stmt.Pos(), stmt.End()) {
		return nil
	}
	tensor, ok := p.Source(operand)
	if !ok {
		return nil
	}
	var text string
	switch {
	case method == "WaitContext":
		text, ok = waitContext(p, c, tensor)
	case len(c.Expr.Args) == 0, c.API.Arg >= 0 && len(c.Expr.Args) == 1:
		text, ok = waitOrFail(p, c, tensor)
	default:
		return nil // operands of its own
	}
	if !ok {
		return nil
	}
	return []analysis.SuggestedFix{{
		Message:   "Wait without reading",
		TextEdits: []analysis.TextEdit{{Pos: stmt.Pos(), End: stmt.End(), NewText: []byte(text)}},
	}}
}

// waitContext is the statement around c with a call of WaitContext instead.
func waitContext(p *lint.Pass, c *blocking.Call, tensor string) (string, bool) {
	if len(c.Expr.Args) != 1 {
		return "", false
	}
	ctx, ok := p.Source(c.Expr.Args[0])
	call := tensor + ".WaitContext(" + ctx + ")"
	switch n := c.Value().Parent().Node().(type) {
	case *ast.ExprStmt:
		return call, ok
	case *ast.AssignStmt:
		if len(n.Lhs) != 2 || len(n.Rhs) != 1 {
			return "", false
		}
		err, isRead := p.Source(n.Lhs[1])
		return err + " " + n.Tok.String() + " " + call, ok && isRead
	}
	return "", false
}

// waitOrFail is the text that replaces the statement around c: a call of Wait, and what hands its error
// on. Where the function returns an error, that is a return; in a package main it is a panic, as for
// the read. Elsewhere there is none, since a library has to say by itself what it does with an error.
func waitOrFail(p *lint.Pass, c *blocking.Call, tensor string) (string, bool) {
	stmt, ok := lint.Statement(c.Cur)
	if !ok || stmt != c.Value().Parent() {
		return "", false
	}
	if n, ok := stmt.Node().(*ast.AssignStmt); ok && (len(n.Lhs) != 1 || !isBlank(n.Lhs[0])) {
		return "", false
	}
	if _, ok := stmt.Node().(*ast.DeclStmt); ok {
		return "", false
	}
	fail, ok := returnError(p, c)
	if !ok {
		if p.Pkg.Name() != "main" {
			return "", false
		}
		fail = "panic(err)"
	}
	indent, alone := p.Indentation(stmt.Node().Pos())
	return "if err := " + tensor + ".Wait(); err != nil {\n" + indent + "\t" + fail + "\n" + indent + "}", alone
}

// returnError is a return statement for the function around c: zeros, and err last. It reports false if
// the last result is not an error, or if a zero is hard to write.
func returnError(p *lint.Pass, c *blocking.Call) (string, bool) {
	sig := c.In.Sig
	n := sig.Results().Len()
	if n == 0 || !types.Identical(sig.Results().At(n-1).Type(), types.Universe.Lookup("error").Type()) {
		return "", false
	}
	text := "return "
	for i := range n - 1 {
		zero, ok := zeroOf(p, sig.Results().At(i), c.Expr.Pos())
		if !ok {
			return "", false
		}
		text += zero + ", "
	}
	return text + "err", true
}

// zeroOf is what a failing function returns for a result. If the result has a name that means it at
// pos, that is the name; otherwise the zero value.
func zeroOf(p *lint.Pass, result *types.Var, pos token.Pos) (string, bool) {
	if name := result.Name(); name != "" && name != "_" {
		_, obj := p.Pkg.Scope().Innermost(pos).LookupParent(name, pos)
		return name, obj == result && name != "err"
	}
	switch u := result.Type().Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Signature:
		return "nil", true
	case *types.Interface:
		_, generic := types.Unalias(result.Type()).(*types.TypeParam)
		return "nil", !generic
	case *types.Basic:
		switch {
		case u.Info()&types.IsNumeric != 0:
			return "0", true
		case u.Info()&types.IsString != 0:
			return `""`, true
		case u.Info()&types.IsBoolean != 0:
			return "false", true
		}
		return "nil", u.Kind() == types.UnsafePointer
	case *types.Struct:
		named, ok := types.Unalias(result.Type()).(*types.Named)
		if ok && named.Obj().Pkg() == p.Pkg && named.Obj().Parent() == p.Pkg.Scope() && named.TypeArgs().Len() == 0 {
			return named.Obj().Name() + "{}", true
		}
	}
	return "", false
}

// localUses lists the identifiers that refer to v. v must be a local variable and no result: then
// nobody else can see what it holds.
func localUses(pkg *blocking.Package, v *types.Var) (uses []inspector.Cursor, local bool) {
	scope := v.Parent()
	if v.IsField() || scope == nil || scope == pkg.Pass.Pkg.Scope() {
		return nil, false
	}
	cur, ok := pkg.Cursor(v.Pos())
	if !ok {
		return nil, false
	}
	f := pkg.FuncAt(cur)
	if f == nil {
		return nil, false
	}
	for i := range f.Sig.Results().Len() {
		if f.Sig.Results().At(i) == v {
			return nil, false
		}
	}
	return slices.Collect(f.Package.UsesOf(v, f)), true
}
