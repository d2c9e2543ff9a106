package blocking

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// How often a condition holds, as far as its text and the names in it tell.

// classify says how often the condition e holds or, if holds is false, doesn't hold. It looks through
// negation, && and ||, variables with one definition, and calls of functions of the package; the depth
// bounds that. For x && y to hold both must, so the rarer decides; for it not to hold one is enough, so
// the more frequent decides. It is the other way round for ||.
func classify(pkg *Package, e ast.Expr, holds bool, f *Func, l *Loop, depth int) Guard {
	if depth > 8 || l == nil && !holds && turnsOff(e) {
		return Always
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return classify(pkg, e.X, !holds, f, l, depth+1)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			x := classify(pkg, e.X, holds, f, l, depth+1)
			y := classify(pkg, e.Y, holds, f, l, depth+1)
			if (e.Op == token.LAND) == holds {
				return max(x, y) // both are so
			}
			return min(x, y) // one of them is so
		}
		if isRare(pkg, e, holds, f, l) {
			return Rarely
		}
	// Questions with an answer: ready(), set[i], due(i).
	case *ast.IndexExpr, *ast.CallExpr:
		if holds && (polls(pkg, e) || l != nil && picks(pkg, e, l)) {
			return Rarely
		}
		if answersRarely(pkg, e, holds, f, l, depth) {
			return Rarely
		}
	case *ast.Ident:
		if l != nil && isSpent(pkg, e, holds, l) {
			return Rarely
		}
		if l == nil && holds && isTensorAssertion(pkg, e) {
			return Always // callers know what they pass
		}
		if v, ok := pkg.Info.Uses[e].(*types.Var); ok {
			if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == DefValue && !isCall(d[0].Value) && !isFirstLookup(pkg, d[0]) {
				if g := classify(pkg, d[0].Value, holds, f, l, depth+1); g != Always {
					return g
				}
			}
		}
	}
	if holds && isVerbose(e) || l == nil && isFlag(pkg.Info, e) || asksEnvironment(pkg, e) {
		return Rarely
	}
	if readsTime(pkg, e) {
		if !holds && asksForTimeOver(pkg, e) {
			return Always // until then
		}
		return Rarely
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && isFinite(pkg, b, holds) {
		return Always
	}
	// The condition itself reads: a rule reports that read, and not the one under the condition as
	// well.
	if readsTensorIn(pkg, l, e, depth) {
		return byData
	}
	return Always
}

// isFinite reports whether the condition e, with the outcome holds, says that a tensor has no NaN or Inf. That is how
// it should be in each iteration:
//
//	if x.IsNaN().Any().Item() != 0 {
//		continue
//	}
func isFinite(pkg *Package, e *ast.BinaryExpr, holds bool) bool {
	zero := pkg.Info.Types[e.Y].Value
	if zero == nil || zero.Kind() != constant.Int && zero.Kind() != constant.Float || constant.Sign(zero) != 0 || e.Op != token.EQL && e.Op != token.NEQ {
		return false
	}
	name := ""
	ast.Inspect(e.X, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if c := pkg.Calls[call]; c != nil && (c.IsFunc("Tensor.IsNaN") || c.IsFunc("Tensor.IsInf") || c.IsFunc("Tensor.IsFinite")) {
				name = c.Callee.Name()
			}
		}
		return name == ""
	})
	isZero := (e.Op == token.EQL) == holds
	return name != "" && isZero == (name != "IsFinite")
}

// isSpent reports whether the condition e, a variable, holds only once: where it holds, l sets it to
// the opposite constant, and l never sets it back.
//
//	if first {
//		fmt.Println(x)
//		first = false
//	}
func isSpent(pkg *Package, e *ast.Ident, holds bool, l *Loop) bool {
	v := pkg.Local(e)
	cur, ok := pkg.Cursor(e.Pos())
	if v == nil || !ok {
		return false
	}
	for c := range cur.Enclosing((*ast.IfStmt)(nil)) {
		body := c.Node().(*ast.IfStmt).Body
		spent := false
		for _, d := range pkg.Defs[v] {
			if !pkg.Contains(l, d.In, d.Pos) {
				continue
			}
			value := pkg.Info.Types[syntax.OrNil(d.Value)].Value
			if d.Kind != DefValue || value == nil || value.Kind() != constant.Bool || constant.BoolVal(value) == holds {
				return false
			}
			spent = spent || body.Pos() <= d.Pos && d.Pos < body.End()
		}
		return spent
	}
	return false
}

// isCall reports whether e is a call.
func isCall(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.CallExpr); return ok }

// isRandom recognises a random number: a call of a function of math/rand.
func isRandom(pkg *Package, e ast.Expr) bool {
	c := pkg.Calls[syntax.AsCall(e)]
	if c == nil || c.Callee == nil || c.Callee.Pkg() == nil {
		return false
	}
	path := c.Callee.Pkg().Path()
	return path == "math/rand" || path == "math/rand/v2"
}

// isIntParam reports whether e is an integer parameter.
func isIntParam(pkg *Package, e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	_, ok = pkg.Params[v]
	basic, _ := v.Type().Underlying().(*types.Basic)
	return ok && basic != nil && basic.Info()&types.IsInteger != 0
}

// isVerbose recognises conditions that ask whether to say more: *verbose, testing.Verbose(),
// logger.Enabled(level), opts.Debug. It goes by their names alone.
func isVerbose(e ast.Expr) bool {
	var name string
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.StarExpr:
		return isVerbose(e.X)
	case *ast.CallExpr:
		return isVerbose(e.Fun)
	}
	return isVerboseName(name)
}

// isVerboseName reports whether a name, in lower case, speaks of being verbose.
func isVerboseName(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "verbose") || strings.Contains(name, "debug") || name == "enabled" || name == "trace"
}

// isFlag recognises a boolean variable or field. It is asked where there is no loop: only the callers
// of the function know how often the flag is set, so code under it is not held against them.
func isFlag(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		return isBool(info.TypeOf(e))
	}
	return false
}

// turnsOff recognises flags that turn something off, by their names. They aren't set as a rule.
//
//	if Disabled {
//		return
//	}
func turnsOff(e ast.Expr) bool { return offName.MatchString(nameOf(e)) }

// offName matches the names of such flags.
var offName = regexp.MustCompile(`(?i)^(is)?_?(disabled?|off|paused|stopped|closed)$`)

// isBool reports whether t is a boolean type.
func isBool(t types.Type) bool {
	basic, _ := t.Underlying().(*types.Basic)
	return basic != nil && basic.Info()&types.IsBoolean != 0
}

// readsTime reports whether e uses something of package time. Such a condition, like time.Since(last) >
// time.Second, holds once in a while, however fast the iterations are.
func readsTime(pkg *Package, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if fn, ok := pkg.Info.Uses[id].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" {
				found = true
			}
		}
		return !found
	})
	return found
}

// asksForTimeOver reports whether e asks whether a time has come: now.After(end), time.Since(start) >
// limit. Where e does not hold, the time is still to come, so code there runs often:
//
//	if time.Since(start) > limit {
//		break
//	}
//	train() // often
func asksForTimeOver(pkg *Package, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		c := pkg.Calls[e]
		return c != nil && syntax.IsFullName(c.Callee, "(time.Time).After")
	case *ast.BinaryExpr:
		return e.Op == token.GTR || e.Op == token.GEQ
	}
	return false
}

// readsTensor reports whether e depends on a value that was read from a tensor, directly or by way of local variables.
func readsTensor(pkg *Package, e ast.Expr, depth int) bool { return readsTensorIn(pkg, nil, e, depth) }

// readsTensorIn is readsTensor for values that are read in l, or anywhere if l is nil. It follows local
// variables to what is assigned to them, up to a depth; callers pass 0. A field may be set by anybody
// and is not followed.
func readsTensorIn(pkg *Package, l *Loop, e ast.Expr, depth int) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BinaryExpr:
			if isNilTensor(pkg, n) {
				return false
			}
		case *ast.CallExpr:
			// A call that reads is enough, whatever becomes of its value.
			if c := pkg.Calls[n]; c != nil && (c.API.Kind == tensorapi.Read || len(c.Summary().Waits) > 0) {
				found = true
			}
		case *ast.Ident:
			// An error says that something failed, which is no value.
			if v, ok := pkg.Info.Uses[n].(*types.Var); ok && depth < 4 && !v.IsField() && !syntax.IsError(v.Type()) {
				for _, d := range pkg.Defs[v] {
					if d.Kind == DefValue && d.Value != nil && d.Value != e && !isFirstLookup(pkg, d) && (l == nil || pkg.Contains(l, d.In, d.Pos)) {
						found = found || readsTensorIn(pkg, l, d.Value, depth+1)
					}
					if maker := pkg.Calls[syntax.AsCall(syntax.OrNil(d.Value))]; (d.Kind == DefKey || d.Kind == DefElem) && syntax.IsNumeric(v.Type()) && maker != nil && maker.Summary().Func != nil {
						found = found || len(maker.Summary().Func.Waits) > 0 // an iterator that reads what it yields
					}
				}
			}
		}
		return !found
	})
	return found
}

// isNilTensor reports whether e asks whether a variable has a tensor. That depends on no value.
func isNilTensor(pkg *Package, e *ast.BinaryExpr) bool {
	x := e.X
	if syntax.IsNil(pkg.Info, x) {
		x = e.Y
	} else if !syntax.IsNil(pkg.Info, e.Y) {
		return false
	}
	return pkg.Variable(x) != nil && IsTensor(pkg.Info.TypeOf(x))
}

// isFirstLookup reports whether d says whether a map that the function has made holds a key: it does if the key has
// come before, whatever the value is. A map that was there before may be a cache, which holds most keys.
//
//	if _, ok := out[name]; ok {
//		continue
//	}
func isFirstLookup(pkg *Package, d Def) bool {
	x, ok := ast.Unparen(d.Value).(*ast.IndexExpr)
	if !ok || d.Index != 1 {
		return false
	}
	v := pkg.Local(x.X)
	return v != nil && pkg.Params[v].Of == nil && slices.ContainsFunc(pkg.Defs[v], func(e Def) bool {
		call := syntax.AsCall(syntax.OrNil(e.Value))
		_, isLit := ast.Unparen(syntax.OrNil(e.Value)).(*ast.CompositeLit)
		return isLit || call != nil && syntax.IsBuiltin(pkg.Info, call, "make")
	})
}

// asksEnvironment reports whether e asks for a variable of the environment, as os.Getenv("DEBUG") != ""
// does. Such variables usually turn on more output.
func asksEnvironment(pkg *Package, e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || pkg.Calls[call] == nil || len(call.Args) != 1 {
			return !found
		}
		fn, name := pkg.Calls[call].Callee, pkg.Info.Types[call.Args[0]].Value
		found = found || (syntax.IsFullName(fn, "os.Getenv") || syntax.IsFullName(fn, "os.LookupEnv")) && name != nil && isVerboseName(name.ExactString())
		return !found
	})
	return found
}

// isTensorAssertion reports whether e says if something is a tensor or a part of a model: t, ok := v.(*tensor.Tensor).
func isTensorAssertion(pkg *Package, e *ast.Ident) bool {
	d := pkg.Defs[pkg.Local(e)]
	if len(d) != 1 || d[0].Kind != DefValue || d[0].Index != 1 {
		return false
	}
	x, ok := ast.Unparen(d[0].Value).(*ast.TypeAssertExpr)
	return ok && x.Type != nil && (IsTensor(pkg.Info.TypeOf(x.Type)) || computes(pkg, pkg.Info.TypeOf(x.Type)))
}
