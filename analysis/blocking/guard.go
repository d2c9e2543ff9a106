package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/cfg"
)

// A guard says how often code under a condition runs.
type guard uint8

const (
	always guard = iota // as often as the code around it, as far as we know
	byData              // depends on a value that was read: the reading is the finding
	rarely              // in a share of the iterations that does not grow with them
)

// A condition is one that holds, or does not hold, wherever some code runs.
type condition struct {
	expr  ast.Expr
	holds bool
	block int32 // that evaluates it; -1: the one with the code
	other int32 // that runs otherwise; -1 if it is of no interest
}

// guardOf says how often the code at pos in f runs, relative to the loop, or
// to a call of the function if l is nil.
func (a *analyzer) guardOf(f *Func, pos token.Pos, l *Loop) guard {
	fl := f.flow()
	return a.guardUnder(append(a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...), f, l)
}

// guardUnder is guardOf code that is in f and under the given conditions.
func (a *analyzer) guardUnder(conditions []condition, f *Func, l *Loop) guard {
	g := always
	for {
		for _, c := range conditions {
			if l != nil && f == l.fn && !c.divides(l) {
				continue
			}
			if c.expr == nil {
				return rarely // a case of a select statement
			}
			g = max(g, a.classify(c.expr, c.holds, f, l, 0))
		}
		if l != nil && f == l.fn {
			break
		}
		if h := f.how(); h == detached || h == callable {
			break
		}
		pos := f.lit.Pos()
		f = f.parent
		fl := f.flow()
		conditions = append(a.shortCircuits(pos), fl.conditions(fl.blockAt(pos))...)
	}
	return g
}

// divides reports whether both outcomes of the condition are in the loop. If
// one of them leaves it, the other is what all iterations but the last do.
func (c condition) divides(l *Loop) bool {
	return l.blocks == nil || (c.block < 0 || l.blocks[c.block]) && (c.other < 0 || l.blocks[c.other])
}

// shortCircuits lists the operands that decide whether the expression at pos
// is evaluated: x in x && y and x || y, seen from y.
func (a *analyzer) shortCircuits(pos token.Pos) []condition {
	var list []condition
	cur, ok := a.res.Cursor(pos)
	if !ok {
		return nil
	}
	for c := range cur.Enclosing() {
		if _, ok := c.Node().(ast.Expr); !ok {
			break
		}
		if n, ok := c.Node().(*ast.BinaryExpr); ok && n.Y.Pos() <= pos && (n.Op == token.LAND || n.Op == token.LOR) {
			list = append(list, condition{n.X, n.Op == token.LAND, -1, -1})
		}
	}
	return list
}

// conditions lists what decides whether block b runs: the conditions whose
// true or false edge dominates it, and as conditions without expression the
// select cases.
func (f *flow) conditions(b int32) []condition {
	var list []condition
	for ; b >= 0; b = f.idom[b] {
		blk := f.blocks[b]
		if blk.Kind == cfg.KindSelectCaseBody {
			list = append(list, condition{block: b, other: -1})
			continue
		}
		if len(f.preds[b]) != 1 || blk.Kind == cfg.KindForBody || blk.Kind == cfg.KindRangeBody {
			continue // not decided by one edge, or by that of a loop
		}
		p := f.blocks[f.preds[b][0]]
		if len(p.Succs) != 2 || len(p.Nodes) == 0 || p.Succs[0] == p.Succs[1] {
			continue
		}
		if e, ok := p.Nodes[len(p.Nodes)-1].(ast.Expr); ok {
			holds := p.Succs[0] == blk
			other := p.Succs[0]
			if holds {
				other = p.Succs[1]
			}
			list = append(list, condition{e, holds, p.Index, other.Index})
		}
	}
	return list
}

// classify says how often the condition e holds, or does not hold.
func (a *analyzer) classify(e ast.Expr, holds bool, f *Func, l *Loop, depth int) guard {
	if depth > 8 {
		return always
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			return a.classify(e.X, !holds, f, l, depth+1)
		}
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			x := a.classify(e.X, holds, f, l, depth+1)
			y := a.classify(e.Y, holds, f, l, depth+1)
			if (e.Op == token.LAND) == holds {
				return max(x, y) // both are so
			}
			return min(x, y) // one of them is so
		}
		if a.isRare(e, holds, f, l) {
			return rarely
		}
	case *ast.Ident:
		if v, ok := a.info.Uses[e].(*types.Var); ok {
			if d := a.defs[v]; len(d) == 1 && d[0].kind == defValue && !isCall(d[0].value) {
				if g := a.classify(d[0].value, holds, f, l, depth+1); g != always {
					return g
				}
			}
		}
	}
	if holds && isVerbose(e) || l == nil && isFlag(a.info, e) {
		return rarely
	}
	if a.readsTime(e) {
		return rarely
	}
	if a.readsTensor(e, depth) {
		return byData
	}
	return always
}

func isCall(e ast.Expr) bool { _, ok := ast.Unparen(e).(*ast.CallExpr); return ok }

// isRare recognises comparisons that hold rarely: i%100 == 0, err != nil,
// the first and the last iteration.
func (a *analyzer) isRare(e *ast.BinaryExpr, holds bool, f *Func, l *Loop) bool {
	x, y, op := ast.Unparen(e.X), ast.Unparen(e.Y), e.Op
	if !holds {
		op = negated[op]
	}
	if a.info.Types[x].Value != nil {
		x, y, op = y, x, mirrored(op)
	}
	switch op {
	case token.NEQ:
		return isNil(a.info, y) && isError(a.info.TypeOf(x))
	case token.EQL:
		if a.isRemainder(x, 0) || a.isRemainder(y, 0) {
			return true
		}
		if l == nil {
			return a.isIntParam(x) || a.isIntParam(y)
		}
		return a.counts(x, l) && !a.varies(y, l) || a.counts(y, l) && !a.varies(x, l)
	case token.LSS, token.LEQ:
		if a.isRemainder(x, 0) {
			return true
		}
		// The first few.
		return l != nil && a.counts(x, l) && a.info.Types[y].Value != nil
	case token.GTR, token.GEQ:
		// The last few: i >= n-1, i+1 >= n.
		return l != nil && a.counts(x, l) && !a.varies(y, l) && (isOffset(a.info, x, token.ADD) || isOffset(a.info, y, token.SUB))
	}
	return false
}

var negated = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.GEQ, token.GEQ: token.LSS,
	token.GTR: token.LEQ, token.LEQ: token.GTR,
}

func mirrored(op token.Token) token.Token {
	switch op {
	case token.LSS:
		return token.GTR
	case token.LEQ:
		return token.GEQ
	case token.GTR:
		return token.LSS
	case token.GEQ:
		return token.LEQ
	}
	return op
}

func isNil(info *types.Info, e ast.Expr) bool { return info.Types[e].IsNil() }

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

// isRemainder recognises i % k and i & mask, directly or by way of a variable.
// The remainder by a constant 1 is no guard.
func (a *analyzer) isRemainder(e ast.Expr, depth int) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BinaryExpr:
		k, constant := intConst(a.info, e.Y)
		return e.Op == token.REM && (!constant || k > 1) || e.Op == token.AND && constant && k > 0
	case *ast.Ident:
		if v, ok := a.info.Uses[e].(*types.Var); ok && depth < 4 {
			if d := a.defs[v]; len(d) == 1 && d[0].kind == defValue {
				return a.isRemainder(d[0].value, depth+1)
			}
		}
	}
	return false
}

// counts reports whether e is a variable that counts iterations of l or of a
// loop in it, perhaps with a constant added.
func (a *analyzer) counts(e ast.Expr, l *Loop) bool {
	e = ast.Unparen(e)
	if b, ok := e.(*ast.BinaryExpr); ok && isOffset(a.info, e, b.Op) {
		e = ast.Unparen(b.X)
	}
	id, ok := e.(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	found := false
	for _, d := range a.defs[v] {
		if !a.in(l, d.in, d.pos) {
			continue
		}
		switch {
		case d.kind == defKey || d.kind == defStep:
			found = true
		case d.kind != defValue || a.info.Types[d.value].Value == nil:
			return false // not even set to zero again
		}
	}
	basic, _ := v.Type().Underlying().(*types.Basic)
	return found && basic != nil && basic.Info()&types.IsInteger != 0
}

// isOffset recognises x + c and x - c.
func isOffset(info *types.Info, e ast.Expr, op token.Token) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && b.Op == op && (op == token.ADD || op == token.SUB) && info.Types[b.Y].Value != nil
}

// varies reports whether e mentions a variable that l assigns.
func (a *analyzer) varies(e ast.Expr, l *Loop) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := a.info.Uses[id].(*types.Var); ok {
				for _, d := range a.defs[v] {
					found = found || a.in(l, d.in, d.pos)
				}
			}
		}
		return !found
	})
	return found
}

func (a *analyzer) isIntParam(e ast.Expr) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	_, ok = a.params[v]
	basic, _ := v.Type().Underlying().(*types.Basic)
	return ok && basic != nil && basic.Info()&types.IsInteger != 0
}

// isVerbose recognises what asks whether to say more, by its name: the flag
// *verbose, testing.Verbose(), logger.Enabled(...), opts.Debug.
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
	name = strings.ToLower(name)
	return strings.Contains(name, "verbose") || strings.Contains(name, "debug") || name == "enabled" || name == "trace"
}

// isFlag recognises a boolean variable or field that a callee asks; how often
// it is set is for its callers to know.
func isFlag(info *types.Info, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident, *ast.SelectorExpr:
		basic, _ := info.TypeOf(e).Underlying().(*types.Basic)
		return basic != nil && basic.Info()&types.IsBoolean != 0
	}
	return false
}

// readsTime reports whether e compares times: once a second is rare.
func (a *analyzer) readsTime(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if fn, ok := a.info.Uses[id].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg().Path() == "time" {
				found = true
			}
		}
		return !found
	})
	return found
}

// readsTensor reports whether e depends on a value that was read from a
// tensor, directly or by way of local variables.
func (a *analyzer) readsTensor(e ast.Expr, depth int) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.CallExpr:
			if c := a.calls[n]; c != nil && (c.api.Kind == tensorapi.Read || len(c.sum().Waits) > 0) {
				found = true
			}
		case *ast.Ident:
			if v, ok := a.info.Uses[n].(*types.Var); ok && depth < 4 && !v.IsField() {
				for _, d := range a.defs[v] {
					if d.kind == defValue && d.value != nil && d.value != e {
						found = found || a.readsTensor(d.value, depth+1)
					}
				}
			}
		}
		return !found
	})
	return found
}
