// Package syntax answers small questions about expressions, types and functions: whether a type is a channel, what an
// integer constant is worth, whether a call ends the program.
package syntax

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// ElementType is the type of the elements of a list, nil of what is none.
func ElementType(t types.Type) types.Type {
	switch t := t.Underlying().(type) {
	case *types.Slice:
		return t.Elem()
	case *types.Array:
		return t.Elem()
	case *types.Map:
		return t.Elem()
	}
	return nil
}

// IsTime reports whether fn is the function or method of package time with the given name.
func IsTime(fn *types.Func, name string) bool {
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "time" && fn.Name() == name
}

// IsParen reports whether n is an expression in parentheses.
func IsParen(n ast.Node) bool { _, ok := n.(*ast.ParenExpr); return ok }

// IsFunc reports whether t is the type of a function. It is not if t is nil.
func IsFunc(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// RecvType is the type of fn's receiver, nil if fn is no method.
func RecvType(fn *types.Func) types.Type {
	if r := fn.Signature().Recv(); r != nil {
		return r.Type()
	}
	return types.Typ[types.Invalid]
}

// IsReceive recognises what takes a value from a channel.
func IsReceive(e ast.Expr) bool {
	u, ok := ast.Unparen(e).(*ast.UnaryExpr)
	return ok && u.Op == token.ARROW
}

// IsMap reports whether t is a map.
func IsMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

// IntConst returns the value of e, if that is an integer constant.
func IntConst(info *types.Info, e ast.Expr) (int64, bool) {
	v := info.Types[e].Value
	if v == nil || v.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(v)
}

// NeverReturns reports whether a call ends the goroutine or the process.
func NeverReturns(info *types.Info, call *ast.CallExpr) bool {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		b, ok := info.Uses[fun].(*types.Builtin)
		return ok && b.Name() == "panic"
	case *ast.SelectorExpr:
		fn, ok := info.Uses[fun.Sel].(*types.Func)
		if !ok || fn.Pkg() == nil {
			return false
		}
		switch fn.Pkg().Path() {
		case "os":
			return fn.Name() == "Exit"
		case "runtime":
			return fn.Name() == "Goexit"
		case "log":
			switch fn.Name() {
			case "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln":
				return true
			}
		case "testing":
			switch fn.Name() {
			case "Fatal", "Fatalf", "FailNow", "Skip", "Skipf", "SkipNow":
				return true
			}
		}
	}
	return false
}

// IsFullName reports whether fn is the function with a full name such as "(*sync.Mutex).Lock".
func IsFullName(fn *types.Func, name string) bool { return fn != nil && fn.FullName() == name }

// Negated maps a comparison to the one that holds when it does not.
var Negated = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS,
	token.GTR: token.LEQ, token.LEQ: token.GTR,
}

// IsNil reports whether e is nil.
func IsNil(info *types.Info, e ast.Expr) bool { return info.Types[e].IsNil() }

// IsError reports whether t is the type error. It is not if t is nil.
func IsError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// IsIdent reports whether e is an identifier.
func IsIdent(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.Ident); return ok }

// IsChan reports whether t is a channel. It is not if t is nil.
func IsChan(t types.Type) bool {
	if t == nil {
		return false
	}
	_, ok := t.Underlying().(*types.Chan)
	return ok
}

// HasMethod reports whether t has one of the methods.
func HasMethod(pkg *types.Package, t types.Type, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		obj, _, _ := types.LookupFieldOrMethod(t, true, pkg, name)
		_, ok := obj.(*types.Func)
		return ok
	})
}

// IsTesting reports whether t is one of the types of package testing, or a pointer
// to one.
func IsTesting(t types.Type, names ...string) bool {
	if t == nil {
		return false
	}
	if ptr, ok := types.Unalias(t).(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "testing" && slices.Contains(names, named.Obj().Name())
}

// IsTarget reports whether an identifier is only assigned to: v = x, v += x.
func IsTarget(cur inspector.Cursor) bool {
	switch cur.ParentEdgeKind() {
	case edge.AssignStmt_Lhs, edge.IncDecStmt_X:
		return true
	}
	return false
}

// IsSorter recognises the functions of the standard library that compare elements
// by a function that they are given, or by a method of their operand.
func IsSorter(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "container/heap":
		return fn.Signature().Recv() == nil
	case "sort":
		return strings.HasPrefix(fn.Name(), "S") && fn.Name() != "Search" || fn.Name() == "IsSorted"
	case "slices":
		switch fn.Name() {
		case "SortFunc", "SortStableFunc", "SortedFunc", "SortedStableFunc", "IsSortedFunc", "MinFunc", "MaxFunc":
			return true
		}
	}
	return false
}

// OrNil returns e, or something that is no expression of any kind if e is nil.
func OrNil(e ast.Expr) ast.Expr {
	if e == nil {
		return &ast.BadExpr{}
	}
	return e
}

// AsCall returns e as a call, without parentheses around it; nil if it is none.
func AsCall(e ast.Expr) *ast.CallExpr {
	call, _ := ast.Unparen(e).(*ast.CallExpr)
	return call
}

// StartsGoroutine recognises the methods that run their operand on a goroutine.
func StartsGoroutine(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil || fn.Name() != "Go" {
		return false
	}
	path := fn.Pkg().Path()
	return path == "sync" || path == "golang.org/x/sync/errgroup"
}

// IsNumeric reports whether t is a numeric type.
func IsNumeric(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

// IsBuiltin reports whether call calls the built-in function with the given name.
func IsBuiltin(info *types.Info, call *ast.CallExpr, name string) bool {
	id, ok := ast.Unparen(call.Fun).(*ast.Ident)
	return ok && info.Uses[id] == types.Universe.Lookup(name)
}

// RecvName is the name of the type that fn is a method of, or empty.
func RecvName(fn *types.Func) string {
	t := RecvType(fn)
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}
