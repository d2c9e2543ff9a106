package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Sizes lists the operands that the value which the site reads becomes in its
// loop, and that say how many elements something has: of make, and of calls of
// the library that take integers. Where a part begins, and which one it is, is no
// size.
func (s *Site) Sizes() []ast.Expr {
	if s.Kind != ReadSite {
		return nil
	}
	var list []ast.Expr
	for _, p := range s.in.a.uses(s.at, s.Loop) {
		if arg := s.in.a.size(p, s.Loop); arg != nil {
			list = append(list, arg)
		}
	}
	return list
}

// onlySizes reports whether all that the library makes of the value is sizes.
func (s *Site) onlySizes() bool {
	return !slices.ContainsFunc(s.in.a.uses(s.at, s.Loop), func(p place) bool { return p.use == Computes && s.in.a.size(p, s.Loop) == nil })
}

// size returns the operand that the use of a value in l is, if it is a size, or nil.
func (a *analyzer) size(p place, l *Loop) ast.Expr {
	arg, ok := p.cur.Node().(ast.Expr)
	call, isArg := p.cur.Parent().Node().(*ast.CallExpr)
	if !ok || !isArg || !isInteger(a.info.TypeOf(arg)) {
		return nil
	}
	if a.info.Types[call.Fun].IsBuiltin() {
		if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && id.Name == "make" {
			return arg
		}
		return nil
	}
	if i := slices.Index(call.Args, arg); i >= 0 && a.isSize(a.calls[call], i, l) {
		return arg
	}
	return nil
}

// isSize reports whether argument i of c says how many elements something has, as
// the name of the parameter tells.
func (a *analyzer) isSize(c *Call, i int, l *Loop) bool {
	if c == nil || c.api.Kind != tensorapi.Host && c.api.Kind != tensorapi.Draw && c.api.Kind != tensorapi.View {
		return false
	}
	if c.api.Kind == tensorapi.View && rearranges().MatchString(c.Callee.Name()) {
		return false
	}
	params := c.Callee.Signature().Params()
	name := func(i int) string { return params.At(min(i, params.Len()-1)).Name() }
	switch {
	case isPlace().MatchString(name(i)):
		return false
	case isStart().MatchString(name(i)), isStop().MatchString(name(i)):
		start, stop := -1, -1
		for j := range min(params.Len(), len(c.Expr.Args)) {
			switch {
			case isExtent().MatchString(name(j)):
				return false // the start of so many
			case isStart().MatchString(name(j)) && sameAxis(name(j), name(i)):
				start = j
			case isStop().MatchString(name(j)) && sameAxis(name(j), name(i)):
				stop = j
			}
		}
		return start < 0 || stop < 0 || !a.sameDistance(c.Expr.Args[start], c.Expr.Args[stop], l)
	}
	return true
}

// What the names of parameters say. A parameter without a name, or with another,
// is a size.
var (
	isPlace    = lazily(`(?i)^(i|j|at|row|col|column|channel|lo|low|hi|high|min|max|v|val|value|fill|fillvalue|seed|step|stride|d|dim\d*|axis\d*|axes|.*(index|idx|pos|position|offset))$`)
	isStart    = lazily(`^(from|start|begin)`)
	isStop     = lazily(`^(to|stop|end)`)
	isExtent   = lazily(`^(n|num.*|count|len|length|size|width)$`)
	rearranges = lazily(`^(Must)?(Row|Col|Select|Index|Idx|Get|Transpose|Permute|Swap|Move|T$|Squeeze|Unsqueeze|Flip|Roll|Diagonal)`)
)

// lazily compiles a pattern when it is first asked for: the go command starts the
// analysis anew for each package.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// sameAxis reports whether two bounds are of the same axis: fromRow and toRow.
func sameAxis(x, y string) bool {
	axis := func(name string) string {
		return strings.TrimPrefix(name, isStart().FindString(name)+isStop().FindString(name))
	}
	return axis(x) == axis(y)
}

// sameDistance reports whether the second of two numbers is as far from the first
// in each iteration of l: at and at+8.
func (a *analyzer) sameDistance(x, y ast.Expr, l *Loop) bool {
	from, okX := a.countedFrom(x, l, 0)
	to, okY := a.countedFrom(y, l, 0)
	return okX && okY && from == to
}

// countedFrom returns e without the summands that are the same in each iteration of l:
// what e is counted from. A variable that is set once is what it is set to,
// at most limit deep.
func (a *analyzer) countedFrom(e ast.Expr, l *Loop, depth int) (from any, ok bool) {
	const limit = 4
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := a.info.Uses[e].(*types.Var)
		if !ok || depth > limit {
			return nil, false
		}
		if d := a.defs[v]; len(d) == 1 && d[0].kind == defValue && d[0].value != nil {
			if from, ok := a.countedFrom(d[0].value, l, depth+1); ok {
				return from, true
			}
		}
		return v, depth == 0 || len(a.defs[v]) <= 1 // or it may have changed meanwhile
	case *ast.BinaryExpr:
		switch {
		case e.Op != token.ADD && e.Op != token.SUB:
		case a.isSame(e.Y, l):
			return a.countedFrom(e.X, l, depth)
		case e.Op == token.ADD && a.isSame(e.X, l):
			return a.countedFrom(e.Y, l, depth)
		}
	case *ast.CallExpr:
		if a.info.Types[e.Fun].IsType() && len(e.Args) == 1 {
			return a.countedFrom(e.Args[0], l, depth)
		}
		return e, true
	}
	return nil, false
}

func isInteger(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}
