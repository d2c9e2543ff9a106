package blocking

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"
)

// A printer is a function that formats its arguments from a first one on.
type printer struct {
	first  int
	format int // the parameter that is a format, or -1
}

// printerOf recognises the functions of the standard library that format
// their arguments.
func printerOf(fn *types.Func) (printer, bool) {
	if fn == nil || fn.Pkg() == nil || !fn.Signature().Variadic() {
		return printer{}, false
	}
	last := fn.Signature().Params().Len() - 1
	p := printer{first: last, format: -1}
	name := fn.Name()
	switch fn.Pkg().Path() {
	case "fmt":
		if strings.Contains(name, "can") {
			return printer{}, false // Scan, Sscanf
		}
	case "log":
	case "log/slog":
		if name == "Debug" || name == "DebugContext" {
			return printer{}, false // off by default
		}
	case "testing":
		switch name {
		case "Log", "Logf", "Error", "Errorf":
		default:
			return printer{}, false
		}
	default:
		return printer{}, false
	}
	if strings.HasSuffix(name, "f") {
		p.format = last - 1
	}
	return p, true
}

// printed returns the arguments of c that are tensors or visibly hold some,
// and which the call formats by value.
func (a *analyzer) printed(c *Call) []ast.Expr {
	p, ok := printerOf(c.Callee)
	if !ok || c.Expr.Ellipsis.IsValid() {
		return nil
	}
	var verbs []byte
	if p.format >= 0 && p.format < len(c.Expr.Args) {
		v := a.info.Types[c.Expr.Args[p.format]].Value
		if v == nil || v.Kind() != constant.String {
			return nil
		}
		if verbs, ok = parseVerbs(constant.StringVal(v)); !ok {
			return nil
		}
	}
	var args []ast.Expr
	for i := p.first; i < len(c.Expr.Args); i++ {
		if p.format >= 0 && (i-p.first >= len(verbs) || strings.IndexByte("Tpi", verbs[i-p.first]) >= 0) {
			continue // no value: the type, the address, the metadata
		}
		if a.shows(a.info.TypeOf(c.Expr.Args[i]), 3) {
			args = append(args, c.Expr.Args[i])
		}
	}
	return args
}

// parseVerbs returns the verb for each argument of a simple format: one
// without indexes and stars.
func parseVerbs(format string) (verbs []byte, ok bool) {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.", format[i]) >= 0; i++ {
		}
		switch {
		case i == len(format) || format[i] == '[' || format[i] == '*':
			return nil, false
		case format[i] != '%':
			verbs = append(verbs, format[i])
		}
	}
	return verbs, true
}

// shows reports whether formatting a value of type t formats a tensor. Fields
// that are not exported are printed as addresses.
func (a *analyzer) shows(t types.Type, depth int) bool {
	if isTensor(t) {
		return true
	}
	if depth == 0 || t == nil {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return a.shows(u.Elem(), depth-1)
	case *types.Array:
		return a.shows(u.Elem(), depth-1)
	case *types.Map:
		return a.shows(u.Elem(), depth-1)
	case *types.Pointer:
		_, isStruct := u.Elem().Underlying().(*types.Struct)
		return depth == 3 && isStruct && a.shows(u.Elem(), depth-1)
	case *types.Struct:
		if formatsItself(a.pass.Pkg, t) {
			return false
		}
		for f := range u.Fields() {
			if f.Exported() && a.shows(f.Type(), depth-1) {
				return true
			}
		}
	}
	return false
}

// formatsItself reports whether t has a method that package fmt would call.
func formatsItself(pkg *types.Package, t types.Type) bool {
	for _, name := range []string{"String", "Format", "Error"} {
		if obj, _, _ := types.LookupFieldOrMethod(t, true, pkg, name); obj != nil {
			if _, ok := obj.(*types.Func); ok {
				return true
			}
		}
	}
	return false
}
