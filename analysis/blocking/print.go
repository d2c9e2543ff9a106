package blocking

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Which calls print their operands. To format a tensor reads all of its elements, so fmt.Println(loss)
// waits like loss.Item(), only that nobody sees it. Three things have to be found out: whether the
// callee formats its arguments, whether it does so with this one (%p and %T don't), and whether
// formatting the argument comes to a tensor.
//
//	fmt.Printf("%d: %v\n", i, loss)               // yes
//	slog.Info("step", slog.Any("loss", loss))     // yes
//	slog.Debug("step", "loss", loss)              // no: off by default
//	fmt.Println(struct{ loss *tensor.Tensor }{y}) // no: prints the address

// A Printer is a function that formats its arguments, from the parameter First on.
type Printer struct {
	First  int
	Format int // the parameter that is a format, or -1
	// JSON reports whether it encodes its arguments as encoding/json does,
	// which asks for other methods than fmt.
	JSON bool
}

// printerOf recognises functions that format their arguments: those of fmt, log, log/slog, testing,
// encoding/json and the template packages, and those that a profile lists as printers.
func printerOf(fn *types.Func) (Printer, bool) {
	if fn == nil || fn.Pkg() == nil {
		return Printer{}, false
	}
	if fn.Pkg().Path() == "encoding/json" {
		name := fn.Name()
		return Printer{First: 0, Format: -1, JSON: true}, name == "Marshal" || name == "MarshalIndent" || name == "Encode"
	}
	if path := fn.Pkg().Path(); path == "text/template" || path == "html/template" {
		last := fn.Signature().Params().Len() - 1
		return Printer{First: last, Format: -1}, fn.Name() == "Execute" || fn.Name() == "ExecuteTemplate"
	}
	// The rest is printers with a list of arguments at the end.
	if !fn.Signature().Variadic() {
		return Printer{}, false
	}
	last := fn.Signature().Params().Len() - 1
	p := Printer{First: last, Format: -1}
	name := fn.Name()
	switch fn.Pkg().Path() {
	case "fmt":
		if strings.Contains(name, "can") {
			return Printer{}, false // Scan, Sscanf
		}
	case "log":
	case "log/slog":
		if name == "Debug" || name == "DebugContext" { // off by default
			return Printer{}, false
		}
		if isAttr(fn) {
			return Printer{}, false // for others to print
		}
	case "testing":
		switch name {
		case "Log", "Logf", "Error", "Errorf":
		default:
			return Printer{}, false
		}
	default:
		if !Libraries().IsPrinter(fn) {
			return Printer{}, false
		}
	}
	if strings.HasSuffix(name, "f") && last > 0 {
		p.Format = last - 1
	}
	return p, true
}

// Printer says which arguments the callee formats: by its name or, for a user's function, by its
// summary. Calls that log for debugging format none, as that is off by default. A method LogValue is only called by a
// logger, so the attributes that it wraps count as formatted there.
func (c *Call) Printer() (Printer, bool) {
	if p, ok := printerOf(c.Callee); ok {
		return p, !c.isDebugLog()
	}
	if p := c.Summary().Prints; p != nil {
		return *p, true
	}
	if f := c.In.Owner(); isAttr(c.Callee) && f.Name == "LogValue" && f.Sig.Recv() != nil {
		return Printer{First: 0, Format: -1}, true // the logger that asks for it does
	}
	return c.logger()
}

// logger recognises calls of functions that nobody knows, behind a variable, a field or an interface, and that log by
// their names and types: logf(format, args...), l.Infow("step", "loss", loss).
func (c *Call) logger() (Printer, bool) {
	sig, ok := c.In.Package.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if !ok || !c.Dynamic || c.Impls != nil || !sig.Variadic() {
		return Printer{}, false
	}
	last := sig.Params().Len() - 1
	if !isAnyOf(sig.Params().At(last).Type()) || !logs[strings.ToLower(nameOf(c.Expr.Fun))] {
		return Printer{}, false
	}
	p := Printer{First: last, Format: -1}
	if strings.HasSuffix(nameOf(c.Expr.Fun), "f") && last > 0 {
		p.Format = last - 1
	}
	return p, true
}

// logs are the names, in lower case, of functions that log what they are given. Debugging is off by default.
var logs = map[string]bool{
	"print": true, "printf": true, "println": true, "log": true, "logf": true, "logln": true,
	"info": true, "infof": true, "infow": true, "infoln": true, "warn": true, "warnf": true, "warnw": true, "warnln": true,
}

// nameOf returns the last name of e: f of x.f.
func nameOf(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// isDebugLog recognises calls of package log/slog with the level LevelDebug or a lower one: log.Log(ctx,
// slog.LevelDebug, "loss", loss).
func (c *Call) isDebugLog() bool {
	if name := c.Callee.Name(); c.Callee.Pkg().Path() != "log/slog" || name != "Log" && name != "LogAttrs" {
		return false
	}
	for _, e := range c.Expr.Args[:min(2, len(c.Expr.Args))] {
		if v := c.In.Package.Info.Types[e].Value; v != nil && v.Kind() == constant.Int && constant.Sign(v) < 0 {
			return true
		}
	}
	return false
}

// isAttr recognises the functions of package log/slog that wrap a value for a logger: slog.Any("loss", loss).
func isAttr(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "log/slog" || fn.Signature().Recv() != nil {
		return false
	}
	switch fn.Name() {
	case "Any", "AnyValue", "Group", "GroupAttrs", "GroupValue":
		return true
	}
	return false
}

// forwards returns the Printer that f is, because the call c prints the last parameters of f; or nil.
// The call is in g, a part of f.
//
//	func logf(format string, args ...any) { log.Printf(format, args...) }
//
// Some functions print and are no Printer all the same: those whose name speaks of debugging, and those
// that print under a condition, make an error of it, or don't return. Their callers are not to blame.
func forwards(pkg *Package, f, g *Func, c *Call) *Printer {
	p, ok := c.Printer()
	if !ok || f.Sig.Params().Len() == 0 {
		return nil
	}
	if c.Callee != nil && c.Callee.FullName() == "fmt.Errorf" || !g.Flow().returns(g.Flow().BlockAt(c.Expr.Pos())) {
		return nil
	}
	if isVerboseName(f.Name) || pkg.GuardOf(g, c.Expr.Pos(), nil) != Always {
		return nil
	}
	last := f.Sig.Params().Len() - 1
	// f is a Printer of its last parameter, or of its last ones if it is not variadic.
	own := Printer{First: last, Format: -1, JSON: p.JSON}
	if !c.Expr.Ellipsis.IsValid() {
		own.First = firstPassedOn(pkg, f, formatted(pkg, c), last)
		if own.First > last {
			return nil
		}
		return &own
	}
	if !f.Sig.Variadic() || len(c.Expr.Args) != p.First+1 || passedOn(pkg, f, c.Expr.Args[p.First]) != last {
		return nil
	}
	if p.Format >= 0 {
		own.Format = passedOn(pkg, f, c.Expr.Args[p.Format])
	}
	return &own
}

// firstPassedOn returns the number of the first parameter from which on all, up to the last, are of interface types,
// or lists of these, and they or their elements are among args. It returns last+1 if there is none.
func firstPassedOn(pkg *Package, f *Func, args []ast.Expr, last int) int {
	first := last + 1
	for first > 0 && slices.ContainsFunc(args, func(e ast.Expr) bool {
		return types.IsInterface(pkg.Info.TypeOf(e)) && paramOf(pkg, f, e, 0) == first-1
	}) {
		first--
	}
	return first
}

// passedOn returns the number of the parameter of f that e is, or -1. A parameter that f assigns
// anywhere is none.
func passedOn(pkg *Package, f *Func, e ast.Expr) int {
	v := pkg.Local(e)
	p, ok := pkg.Params[v]
	if v == nil || !ok || p.Of != f || len(pkg.Defs[v]) > 0 {
		return -1
	}
	return p.Operand
}

// Printed lists the arguments of c whose formatting comes to a tensor: a tensor, or something with
// tensors in elements or in exported fields.
func (pkg *Package) Printed(c *Call) []ast.Expr {
	var args []ast.Expr
	p, _ := c.Printer()
	for _, e := range formatted(pkg, c) {
		if t := pkg.Info.TypeOf(e); c.Callee != nil && c.Callee.Pkg().Path() == "log/slog" && !IsTensor(t) && syntax.HasMethod(pkg.Pass.Pkg, t, []string{"LogValue"}) {
			if readsAnyhow(pkg, t, "LogValue") {
				args = append(args, e)
			}
			continue
		}
		if shows(pkg, pkg.Info.TypeOf(e), p.JSON, 3) || isListOf(pkg, e, p.JSON) {
			args = append(args, e)
		}
	}
	return args
}

// formatted lists the arguments that c formats by value. It leaves out those for %T and %p, and for the
// verb by which a library prints metadata (%i). Of slog.Any("loss", loss) it lists loss. If the format
// is no constant it lists none.
func formatted(pkg *Package, c *Call) []ast.Expr {
	p, ok := c.Printer()
	if !ok || c.Expr.Ellipsis.IsValid() {
		return nil
	}
	// One verb for each argument, if there is a format.
	var verbs []byte
	if p.Format >= 0 && p.Format < len(c.Expr.Args) {
		v := pkg.Info.Types[c.Expr.Args[p.Format]].Value
		if v == nil || v.Kind() != constant.String {
			return nil
		}
		if verbs, ok = parseVerbs(constant.StringVal(v)); !ok {
			return nil
		}
	}
	var args []ast.Expr
	for i := p.First; i < len(c.Expr.Args); i++ {
		if p.Format >= 0 && (i-p.First >= len(verbs) || strings.IndexByte("Tpi", verbs[i-p.First]) >= 0) {
			continue // no value: the type, the address, the metadata
		}
		args = append(args, unwrapped(pkg, c.Expr.Args[i])...)
	}
	return args
}

// unwrapped lists the values of the attributes that an argument of a logger is made of, or e itself.
func unwrapped(pkg *Package, e ast.Expr) []ast.Expr {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || !isAttr(c.Callee) {
		return []ast.Expr{e}
	}
	var args []ast.Expr
	for _, arg := range c.Expr.Args {
		args = append(args, unwrapped(pkg, arg)...)
	}
	return args
}

// isListOf reports whether e is a literal of a list or map with a value that shows a tensor, though the
// element type doesn't say so: map[string]any{"loss": loss}.
func isListOf(pkg *Package, e ast.Expr, json bool) bool {
	e = ast.Unparen(e)
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = ast.Unparen(u.X)
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	if _, isStruct := pkg.Info.TypeOf(lit).Underlying().(*types.Struct); isStruct {
		return false // see shows
	}
	return slices.ContainsFunc(lit.Elts, func(elt ast.Expr) bool {
		if kv, ok := elt.(*ast.KeyValueExpr); ok {
			elt = kv.Value
		}
		return shows(pkg, pkg.Info.TypeOf(elt), json, 2) || isListOf(pkg, elt, json)
	})
}

// parseVerbs returns the verb for each argument of a format. It returns false for formats with indexes or stars, as in
// %[1]d and %*d.
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

// shows reports whether formatting a value of type t, by package fmt or as JSON, comes to a tensor.
// Depth bounds how far it looks into elements and fields; callers pass 3 for an argument. A type with a
// method of its own for formatting shows nothing. Package fmt prints unexported fields as addresses,
// and follows a pointer only at the top; JSON leaves unexported fields out, and follows all pointers.
func shows(pkg *Package, t types.Type, json bool, depth int) bool {
	if t == nil {
		return false
	}
	if lib := Libraries().TensorOf(t); lib != nil {
		if json {
			return lib.Encodes(t)
		}
		return lib.Formats(t)
	}
	if tensorapi.IsNumber(t) {
		return syntax.HasMethod(pkg.Pass.Pkg, t, ownMethods(json))
	}
	if depth == 0 {
		return false
	}
	if name := ownMethod(pkg, t, json); name != "" {
		return readsAnyhow(pkg, t, name)
	}
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return shows(pkg, u.Elem(), json, depth-1)
	case *types.Array:
		return shows(pkg, u.Elem(), json, depth-1)
	case *types.Map:
		return shows(pkg, u.Elem(), json, depth-1)
	case *types.Pointer:
		_, isStruct := u.Elem().Underlying().(*types.Struct)
		if json {
			return isStruct && shows(pkg, u.Elem(), json, depth)
		}
		return depth == 3 && isStruct && shows(pkg, u.Elem(), json, depth-1)
	case *types.Struct:
		if syntax.HasMethod(pkg.Pass.Pkg, t, ownMethods(json)) {
			return false // of a pointer, if at all
		}
		for i := range u.NumFields() {
			f := u.Field(i)
			if f.Exported() && !(json && reflect.StructTag(u.Tag(i)).Get("json") == "-") && shows(pkg, f.Type(), json, depth-1) {
				return true
			}
		}
	}
	return false
}

// ownMethod returns the name of the method by which values of type t format themselves, or nothing.
func ownMethod(pkg *Package, t types.Type, json bool) string {
	if _, generic := types.Unalias(t).(*types.TypeParam); generic || types.IsInterface(t) {
		return ""
	}
	for _, name := range ownMethods(json) {
		if obj, _, _ := types.LookupFieldOrMethod(t, false, pkg.Pass.Pkg, name); obj != nil {
			if _, ok := obj.(*types.Func); ok {
				return name
			}
		}
	}
	return ""
}

// readsAnyhow reports whether the method with the given name, of values of type t, always reads what is in its
// receiver, be it in a loop.
func readsAnyhow(pkg *Package, t types.Type, name string) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, false, pkg.Pass.Pkg, name)
	fn, ok := obj.(*types.Func)
	if !ok {
		return false
	}
	return slices.ContainsFunc(funcObject(pkg, fn, 0).Summary().Waits, func(w Wait) bool { return isOfReceiver(w) && !w.Guarded })
}

// isOfReceiver reports whether a method without operands waits for what is in its receiver. Where the package shows
// what the fields are set to, that counts as the function's own.
func isOfReceiver(w Wait) bool { return w.Operand == tensorapi.Recv || w.Operand == Own }

// ownMethods lists the methods by which a type says how it is formatted.
func ownMethods(json bool) []string {
	if json {
		return []string{"MarshalJSON", "MarshalText"}
	}
	return []string{"Format", "Error", "String"}
}
