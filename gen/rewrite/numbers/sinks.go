package numbers

import (
	"go/ast"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A sink is a call of an operation with a float64, or an index, that has a form with a number.
type sink struct {
	name  *ast.Ident // of the method
	form  string
	arg   ast.Expr
	stmt  ast.Stmt   // that it is in
	loop  bool       // it is in a loop
	index bool       // arg is an index: see integers.go
	made  bool       // a tensor is made of arg: form is a method of the number
	list  bool       // a tensor is made of arg, a list: see lists.go
	to    ast.Expr   // the index behind the last one; nil if there is but one
	count int64      // how many there are then
	stems []ast.Expr // what is evaluated before it, in order
	rated ast.Expr   // the optimiser that gets a rate; nil for operations: see rates.go
}

// eachSink calls visit for every operation with a float64, or an index, that has a form with a number.
func eachSink(f *plan.Function, visit func(*ast.CallExpr, sink)) {
	var stack []ast.Node
	ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if _, ok := n.(*ast.FuncLit); ok {
			return false
		}
		stack = append(stack, n)
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := sinkOf(f, call)
		if !ok {
			return true
		}
		for _, around := range stack {
			switch around := around.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				s.loop = true
			case *ast.AssignStmt, *ast.DeclStmt, *ast.ExprStmt, *ast.ReturnStmt:
				s.stmt = around.(ast.Stmt)
			}
		}
		visit(call, s)
		return true
	})
}

// sinkOf returns the form of call with a number.
func sinkOf(f *plan.Function, call *ast.CallExpr) (s sink, ok bool) {
	if s, ok := indexed(f, call); ok {
		return s, true
	}
	if s, ok := filled(f, call); ok {
		return s, true
	}
	if s, ok := setting(f, call); ok {
		return s, true
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || f.Info.Selections[sel] == nil {
		return sink{}, false
	}
	fn, api, ok := f.Library(call)
	if !ok || api.F64 == "" || api.Kind != tensorapi.Op || len(call.Args) != fn.Signature().Params().Len() {
		return sink{}, false
	}
	for i := range fn.Signature().Params().Len() {
		if isFloat64(fn.Signature().Params().At(i).Type()) {
			s = sink{name: sel.Sel, form: api.F64, arg: call.Args[i]}
		}
	}
	return s, s.arg != nil
}

// filled returns the form of a call of Full, FullInt or Scalar, which make tensors of one number.
func filled(f *plan.Function, call *ast.CallExpr) (s sink, ok bool) {
	fn, _, ok := f.Library(call)
	if !ok || fn.Signature().Recv() != nil || len(call.Args) == 0 || call.Ellipsis.IsValid() {
		return sink{}, false
	}
	switch fn.Name() {
	case "Full", "FullInt", "Scalar":
		return sink{form: "Full", arg: call.Args[0], made: true}, true
	}
	return sink{}, false
}
