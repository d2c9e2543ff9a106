package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What the names of parameters say. A parameter without a name, or with another,
// is a size.
var (
	isPlace    = lazily(`(?i)^(i|j|at|row|col|column|channel|lo|low|hi|high|min|max|v|val|value|fill|fillvalue|seed|step|stride|d|dim\d*|axis\d*|axes|.*(index|idx|pos|position|offset))$`)
	isStart    = lazily(`^(from|start|begin)`)
	isStop     = lazily(`^(to|stop|end)`)
	isExtent   = lazily(`^(n|num.*|count|len|length|size|width)$`)
	rearranges = lazily(`^(Must)?(Row|Col|Select|Index|Idx|Get|Transpose|Permute|Swap|Move|T$|Squeeze|Unsqueeze|Flip|Roll|Diagonal)`)
)

// Sizes lists the operands that the value of the site becomes in its loop, if they say how many
// elements something has: operands of make, and of functions of the library that take integers.
// Operands that say where a part begins, or which part it is, are no sizes.
func (s *Site) Sizes() []ast.Expr {
	if s.Kind != blocking.WaitRead {
		return nil
	}
	var list []ast.Expr
	for _, p := range Uses(s.In.Package, s.At, s.Loop) {
		if arg := size(s.In.Package, p, s.Loop); arg != nil {
			list = append(list, arg)
		}
	}
	return list
}

// onlySizes reports whether the library uses the value for sizes alone.
func (s *Site) onlySizes() bool {
	return !slices.ContainsFunc(Uses(s.In.Package, s.At, s.Loop), func(p Place) bool { return p.Use == Computes && size(s.In.Package, p, s.Loop) == nil })
}

// size returns the operand that the value at p becomes, if that is a size, or nil.
func size(pkg *blocking.Package, p Place, l *blocking.Loop) ast.Expr {
	arg, ok := p.Cur.Node().(ast.Expr)
	call, isArg := p.Cur.Parent().Node().(*ast.CallExpr)
	if !ok || !isArg || !IsInteger(pkg.Info.TypeOf(arg)) {
		return nil
	}
	if pkg.Info.Types[call.Fun].IsBuiltin() {
		if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && id.Name == "make" {
			return arg
		}
		return nil
	}
	if i := slices.Index(call.Args, arg); i >= 0 && isSize(pkg, pkg.Calls[call], i, l) {
		return arg
	}
	return nil
}

// isSize reports whether argument i of c says how many elements something has. The name of the parameter tells.
func isSize(pkg *blocking.Package, c *blocking.Call, i int, l *blocking.Loop) bool {
	if c == nil || c.API.Kind != tensorapi.Host && c.API.Kind != tensorapi.Draw && c.API.Kind != tensorapi.View {
		return false
	}
	if c.API.Kind == tensorapi.View && rearranges().MatchString(c.Callee.Name()) {
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
		return start < 0 || stop < 0 || !sameDistance(pkg, c.Expr.Args[start], c.Expr.Args[stop], l)
	}
	return true
}

// lazily compiles a pattern when it is first asked for. The go command starts the analysis anew for each package, and
// most packages need none.
func lazily(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// sameAxis reports whether the names of two bounds are of the same axis, as fromRow and toRow are.
func sameAxis(x, y string) bool {
	axis := func(name string) string {
		return strings.TrimPrefix(name, isStart().FindString(name)+isStop().FindString(name))
	}
	return axis(x) == axis(y)
}

// sameDistance reports whether y is as far from x in each iteration of l, as at+8 is from at.
func sameDistance(pkg *blocking.Package, x, y ast.Expr, l *blocking.Loop) bool {
	from, okX := countedFrom(pkg, x, l, 0)
	to, okY := countedFrom(pkg, y, l, 0)
	return okX && okY && from == to
}

// countedFrom returns e without those summands that are the same in each iteration of l. It looks
// through variables that are set once, up to a depth.
func countedFrom(pkg *blocking.Package, e ast.Expr, l *blocking.Loop, depth int) (from any, ok bool) {
	const limit = 4
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v, ok := pkg.Info.Uses[e].(*types.Var)
		if !ok || depth > limit {
			return nil, false
		}
		if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == blocking.DefValue && d[0].Value != nil {
			if from, ok := countedFrom(pkg, d[0].Value, l, depth+1); ok {
				return from, true
			}
		}
		return v, depth == 0 || len(pkg.Defs[v]) <= 1 // or it may have changed meanwhile
	case *ast.BinaryExpr:
		switch {
		case e.Op != token.ADD && e.Op != token.SUB:
		case IsSame(pkg, e.Y, l):
			return countedFrom(pkg, e.X, l, depth)
		case e.Op == token.ADD && IsSame(pkg, e.X, l):
			return countedFrom(pkg, e.Y, l, depth)
		}
	case *ast.CallExpr:
		if pkg.Info.Types[e.Fun].IsType() && len(e.Args) == 1 {
			return countedFrom(pkg, e.Args[0], l, depth)
		}
		return e, true
	}
	return nil, false
}

// IsInteger reports whether t is an integer type.
func IsInteger(t types.Type) bool {
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}
