package sites

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// A Pattern says what is wrong with a site. Each site has one pattern and each pattern one rule, so no
// site is reported twice.
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

// pattern finds the pattern of s. The order of the cases decides where several apply.
func pattern(pkg *blocking.Package, s *Site) Pattern {
	used := s.Uses &^ Printed
	switch {
	case !s.At.Away && isDeferred(s.Cur):
		return Deferring
	case s.Kind == blocking.WaitCallee:
		return Calling
	case s.Kind == blocking.WaitPrint || s.Uses == Printed:
		return Printing
	case s.Compares():
		return Hidden
	case used&Decides != 0:
		return Steering
	case used == 0 && s.Rare != 0:
		return Seldom
	case used == 0 && !s.In.IsTried():
		return Unused
	case used&Computes != 0 && s.onlySizes():
		return Sizing
	case used&Computes != 0:
		return Returning
	case elementOf(pkg, s.At, Innermost(pkg, s.At)) != nil:
		return Element
	case lastWins(pkg, s) != nil:
		return LastWins
	case isHidden(pkg, s.Loop) || isYielded(pkg, s):
		return Hidden
	}
	return Reading
}

// isDeferred reports whether cur is an operand of a deferred call: it is evaluated now, and the call runs later.
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

// isHidden reports whether the function doesn't show that l is a loop: its code is called many times by
// another function, or the loop is in an iterator. The iterator of a library, such as a loader's, goes
// through data as a list does, and hides nothing.
func isHidden(pkg *blocking.Package, l *blocking.Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		maker := pkg.Calls[syntax.AsCall(s.X)]
		return syntax.IsFunc(pkg.Info.TypeOf(s.X)) && (maker == nil || maker.API.Kind == tensorapi.Unknown)
	}
	return l.Why != 0 || l.Blocks == nil && l.Func.Lit != nil && l.Func.Runs() == blocking.Looping
}

// Compares reports whether the site is in a function by which something is sorted, or calls such a
// function. The values can be read before, all at once.
func (s *Site) Compares() bool {
	if s.Loop.Handed {
		return syntax.IsSorter(s.At.Callee)
	}
	return isComparison(s.In.Package, s.Loop)
}

// isYielded reports whether the value is given to the function that an iterator yields to.
func isYielded(pkg *blocking.Package, s *Site) bool {
	for _, p := range Uses(pkg, s.At, s.Loop) {
		call, ok := p.Cur.Parent().Node().(*ast.CallExpr)
		if !ok || p.Use != Passed {
			continue
		}
		if v := pkg.Local(call.Fun); v != nil && isYield(pkg, v) {
			return true
		}
	}
	return false
}

// isYield reports whether v is the only parameter of a function, and itself one that reports whether to go on: the
// function may be an iterator.
func isYield(pkg *blocking.Package, v *types.Var) bool {
	f := pkg.Params[v].Of
	sig, ok := v.Type().Underlying().(*types.Signature)
	return f != nil && ok && f.Sig.Params().Len() == 1 && sig.Results().Len() == 1 && types.Identical(sig.Results().At(0).Type(), types.Typ[types.Bool])
}

// lastWins returns the statement that assigns the value of a site, perhaps converted, to a variable
// which is not used before the loop is over; or nil. Only the value of the last iteration is used then.
func lastWins(pkg *blocking.Package, s *Site) *ast.AssignStmt {
	if s.Kind != blocking.WaitRead || s.Uses != Kept || s.Rare != 0 || s.Loop.Func != s.In || s.Loop.Blocks == nil {
		return nil
	}
	cur := s.Cur
	for {
		up := cur.Parent()
		if call, ok := up.Node().(*ast.CallExpr); ok && pkg.Info.Types[call.Fun].IsType() || syntax.IsParen(up.Node()) {
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
	v := pkg.Local(id)
	if v == nil || s.Loop.Stmt == nil || s.Loop.Stmt.Pos() <= v.Pos() && v.Pos() < s.Loop.Stmt.End() {
		return nil
	}
	for _, d := range pkg.Defs[v] {
		if d.Pos != assign.Rhs[0].Pos() && pkg.Contains(s.Loop, d.In, d.Pos) {
			return nil
		}
	}
	// Each use in the loop would have been followed.
	for use := range pkg.UsesOf(v, s.In) {
		if pkg.FuncAt(use) != s.In {
			return nil // a literal, which may run in the loop
		}
		if use.Node() != ast.Node(id) && pkg.Contains(s.Loop, s.In, use.Node().Pos()) {
			return nil
		}
	}
	return assign
}
