package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A Pattern says what is wrong with a site. Each site has one, so that the
// rules divide the sites among themselves and none is reported twice.
type Pattern uint8

// The patterns, each with the rule that speaks of it.
const (
	Unused    Pattern = iota // AT030: nothing becomes of the value
	Deferring                // AT014: it is an argument of a deferred call, and evaluated now
	Calling                  // AT010: a function of the user waits
	Printing                 // AT004: the value is only printed
	Steering                 // AT005: the value decides what the loop does next
	Seldom                   // AT008: the value is used in few iterations
	Sizing                   // AT026: the value says how many elements something on the device has
	Returning                // AT003: the value goes back into a tensor operation
	Element                  // AT006: one part after the other of the same tensor
	LastWins                 // AT002: each iteration overwrites the value of the one before
	Hidden                   // AT012: the loop is in the function that calls, or yields to, this code
	Reading                  // AT001: everything else
)

// Pattern says what is wrong with the site.
func (s *Site) Pattern() Pattern { return s.pat() }

func (a *analyzer) pattern(s *Site) Pattern {
	used := s.Uses &^ Printed
	switch {
	case !s.at.away && isDeferred(s.Cur):
		return Deferring
	case s.Kind == CalleeSite:
		return Calling
	case s.Kind == PrintSite || s.Uses == Printed:
		return Printing
	case s.Compares():
		return Hidden
	case used&Decides != 0:
		return Steering
	case used == 0 && s.Rare != 0:
		return Seldom
	case used == 0:
		return Unused
	case used&Computes != 0 && s.onlySizes():
		return Sizing
	case used&Computes != 0:
		return Returning
	case a.elementOf(s.at, a.innermost(s.at)) != nil:
		return Element
	case a.lastWins(s) != nil:
		return LastWins
	case s.Loop.isHidden(a.info) || a.isYielded(s):
		return Hidden
	}
	return Reading
}

// isDeferred reports whether cur is evaluated as an operand of a deferred call.
func isDeferred(cur inspector.Cursor) bool {
	for c := range cur.Enclosing() {
		switch c.Node().(type) {
		case *ast.FuncLit:
			return false
		case *ast.DeferStmt:
			return true
		case ast.Stmt:
			return false
		}
	}
	return false
}

// isHidden reports whether no statement shows that l is a loop, or one over an
// iterator, whose own loop is somewhere else.
func (l *Loop) isHidden(info *types.Info) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		return isFunc(info.TypeOf(s.X))
	}
	return l.why != 0 || l.blocks == nil && l.fn.lit != nil && l.fn.how() == looping
}

// Compares reports whether the site is, or is in, a function by which something is
// sorted. What is compared can be read before, at once.
func (s *Site) Compares() bool {
	if s.Loop.handed {
		return isSorter(s.at.Callee)
	}
	return s.in.a.isComparison(s.Loop)
}

// isSorter recognises the functions of the standard library that compare elements
// by a function that they are given, or by a method of their operand.
func isSorter(fn *types.Func) bool {
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
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

// isYielded reports whether the value goes to the function that an iterator
// yields to.
func (a *analyzer) isYielded(s *Site) bool {
	for _, p := range a.uses(s.at, s.Loop) {
		call, ok := p.cur.Parent().Node().(*ast.CallExpr)
		if !ok || p.use != Passed {
			continue
		}
		v := a.local(call.Fun)
		if v == nil || a.params[v].of == nil {
			continue
		}
		sig := v.Type().Underlying().(*types.Signature)
		if p := a.params[v].of; p.sig.Params().Len() == 1 && sig.Results().Len() == 1 &&
			types.Identical(sig.Results().At(0).Type(), types.Typ[types.Bool]) {
			return true
		}
	}
	return false
}

// lastWins returns the statement that assigns the value that a site reads, or
// a conversion of it, to a variable which is not used before the loop is over;
// or nil.
func (a *analyzer) lastWins(s *Site) *ast.AssignStmt {
	if s.Kind != ReadSite || s.Uses != Kept || s.Rare != 0 || s.Loop.fn != s.in || s.Loop.blocks == nil {
		return nil
	}
	cur := s.Cur
	for {
		up := cur.Parent()
		if call, ok := up.Node().(*ast.CallExpr); ok && a.info.Types[call.Fun].IsType() || isParen(up.Node()) {
			cur = up
			continue
		}
		break
	}
	if cur.ParentEdgeKind() != edge.AssignStmt_Rhs {
		return nil
	}
	assign := cur.Parent().Node().(*ast.AssignStmt)
	if assign.Tok != token.ASSIGN || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 {
		return nil
	}
	id, ok := assign.Lhs[0].(*ast.Ident)
	if !ok {
		return nil
	}
	v := a.local(id)
	if v == nil || s.Loop.Stmt == nil || s.Loop.Stmt.Pos() <= v.Pos() && v.Pos() < s.Loop.Stmt.End() {
		return nil
	}
	for _, d := range a.defs[v] {
		if d.pos != assign.Rhs[0].Pos() && a.in(s.Loop, d.in, d.pos) {
			return nil
		}
	}
	// Each use in the loop would have been followed.
	for use := range a.usesOf(v, s.in) {
		if a.funcAt(use) != s.in {
			return nil // a literal, which may run in the loop
		}
		if use.Node() != ast.Node(id) && a.in(s.Loop, s.in, use.Node().Pos()) {
			return nil
		}
	}
	return assign
}
