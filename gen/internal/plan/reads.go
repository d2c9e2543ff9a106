package plan

import (
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A Read is a place where the program looks at a tensor's values.
type Read struct {
	Expr    ast.Expr // the whole read: loss.Item(), or the loss of fmt.Println(loss)
	Operand ast.Expr // what is read: loss
	Method  string   // of asyncrt.Read: "Item"; "" where a Read stands for the tensor
	Func    ast.Expr // the generic function that is called: tensor.ItemOf[float32]; or nil
	Effects *Effects // of evaluating Operand
	// the method of a Later that reads Operand, if that is a number that may not have been computed
	// yet
	Number string
	Plain  *types.Var // the local variable that Operand is, or nil
	Rows   *Rows      // Operand is a row of what is computed for all iterations of a loop at once
	Fixed  bool       // Operand is the same in all iterations of the loop around it that is one unit, and always there
	Lift   *Lift      // Expr calls a function that does not wait in its variant; Operand is the call

	// Assign, if Lift returns some results in their place, assigns them.
	Assign *ast.AssignStmt
}

// Raises reports whether r panics if what it reads has failed: prints show that it has, and Wait returns it.
func (r *Read) Raises() bool {
	switch r.Method {
	case "", "String", "Err", "MarshalJSON":
		return r.Func != nil || r.Lift != nil
	}
	return true
}

// What is the text by which messages call r.
func (r *Read) What() string {
	return text(r.Expr)
}

// addRead records a read that can be put off.
func (w *walker) addRead(r *Read) {
	r.Effects = w.f.walk(r.Operand, nil)
	switch t := w.f.Info.TypeOf(r.Operand); {
	case tensorapi.IsInteger(t):
		r.Number = "ReadI64"
	case tensorapi.IsNumber(t):
		r.Number = "ReadF64"
	}
	if id, ok := ast.Unparen(r.Operand).(*ast.Ident); ok {
		if v := w.f.variable(id); v != nil && w.f.isInner(v) {
			r.Plain = v
		}
	}
	*w.reads = append(*w.reads, r)
}

// readMethods are the reads that asyncrt.Read offers too: the method of
// Tensor, and what generated code calls in its place.
var readMethods = map[string]string{
	"Item": "Item", "ItemInt": "ItemInt", "At": "At", "AtInt": "AtInt", "Matrix": "Matrix", "MarshalJSON": "MarshalJSON",
	"Float32s": "Float32s", "Float64s": "Float64s", "Int64s": "Int64s", "Bools": "Bools",
	"String": "String", "Wait": "Err",
}

// readFuncs are the generic functions that package asyncrt has for a Read as
// package tensor has them for a Tensor.
var readFuncs = map[string]bool{"ItemOf": true, "SliceOf": true}

// isDropped reports whether nothing uses the result of a call: then waiting
// was the purpose of it.
func (f *Function) isDropped(call *ast.CallExpr) bool {
	switch p := f.parents[call].(type) {
	case *ast.ExprStmt:
		return true
	case *ast.AssignStmt:
		for _, lhs := range p.Lhs {
			if id, ok := lhs.(*ast.Ident); !ok || id.Name != "_" {
				return false
			}
		}
		return true
	}
	return false
}

// isTensorValue reports whether e is a tensor, and not the type as in
// (*tensor.Tensor).Item(t).
func (w *walker) isTensorValue(e ast.Expr) bool {
	tv := w.f.Info.Types[e]
	return tv.IsValue() && w.f.Analysis.API.IsTensor(tv.Type)
}

// isNumber reports whether call reads a number.
func (w *walker) isNumber(call *ast.CallExpr) bool {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok || !w.f.Info.Types[sel.X].IsValue() || !tensorapi.IsNumber(w.f.Info.TypeOf(sel.X)) {
		return false
	}
	return sel.Sel.Name == "Item" && isFloat64(w.f.Info.TypeOf(call)) || sel.Sel.Name == "ItemInt"
}

func isFloat64(t types.Type) bool { return types.Identical(t, types.Typ[types.Float64]) }

// read walks a call that waits for a tensor.
func (w *walker) read(api tensorapi.Func, fn *types.Func, call *ast.CallExpr) {
	if w.reads != nil && (!w.f.isDropped(call) || w.f.Restated != nil && w.isNumber(call)) {
		if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && api.Arg == tensorapi.Recv && (w.isTensorValue(sel.X) || w.isNumber(call)) {
			if method, ok := readMethods[fn.Name()]; ok {
				w.exprs(call.Args)
				w.addRead(&Read{Expr: call, Operand: sel.X, Method: method})
				return
			}
		}
		if api.Arg == 0 && readFuncs[fn.Name()] && len(call.Args) == 1 {
			w.addRead(&Read{Expr: call, Operand: call.Args[0], Func: call.Fun})
			return
		}
	}
	w.operands(call)
	note(&w.e.Waits, cause(call, "calls %s, which waits", name(fn)).as(OnlyNow).with(w.onlyNow(fn, call)))
}
