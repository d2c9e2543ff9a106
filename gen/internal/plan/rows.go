package plan

import (
	"go/ast"
	"go/types"
)

// Rows is how what a Read looks at, one row of it in each iteration of a loop, is
// computed for all rows at once.
type Rows struct {
	Loop  *Stmt
	Index *ast.Ident // the variable of Loop that numbers the rows
	Count ast.Expr   // how many rows there are, or what has as many elements
	Len   bool       // the latter

	Calls []*ast.CallExpr // x.Row(index): each gives the row
	Defs  []*Stmt         // statements of Loop that define what Operand is made of, and nothing else, in order
	Only  bool            // there is no operation but Row
	Param string          // the name for what gives rows, in the function of one row
}

// A Keep is how what a loop makes of one row of tensors in each iteration, and keeps as a tensor, is
// computed for many rows at once.
type Keep struct {
	Loop  ast.Stmt   // with its label, if it has one
	Index *ast.Ident // the variable of Loop that numbers the rows
	Count ast.Expr   // how many rows there are, or what has as many elements
	Len   bool       // the latter

	Expr  ast.Expr        // what is computed
	Gone  *ast.AssignStmt // the definition that Expr comes from, if nothing else needs it; or nil
	Calls []*ast.CallExpr // x.Row(index), in Expr and in Defs
	Defs  []KeepDef       // what Expr is made of, in order
	// where the loop takes a row of it: Expr, and what is the same; none if only others are made of
	// it
	Places []ast.Expr
	First  *Keep  // what it is declared with, if it is made of others
	Detach bool   // nobody asks for gradients that go through it
	Name   string // of the variable that holds the rows
	Param  string // the name for what gives rows, in the function of one row
}

// A KeepDef defines something that the function of one row needs.
type KeepDef struct {
	Stmt ast.Stmt // of the loop
	Of   *Keep    // what it defines is kept, too; or nil
}

// Without returns the effects of e but those on places that drop says.
func (e *Effects) Without(drop func(Loc) bool) *Effects { return e.outside(drop) }

// ReadsBut returns what e reads but the places that drop says, and nothing else that e does.
func (e *Effects) ReadsBut(drop func(Loc) bool) *Effects {
	return &Effects{Reads: e.outside(drop).Reads}
}

// Absorb takes s, which defines a tensor for Reads that are Rows, out of the
// effects of its loop.
func (s *Stmt) Absorb() { s.Head, s.Reads, s.Absorbed = &Effects{}, nil, true }

// OnlyReads reports whether e does nothing but read variables and memory of the host.
func (e *Effects) OnlyReads() bool {
	for l := range e.Reads {
		if l.Kind != Var && l.Kind != Own && !l.IsMemory() {
			return false
		}
	}
	for _, c := range []*Cause{e.Enqueues, e.Waits, e.Barrier, e.Clock, e.Polls, e.Stamps, e.HandsOut, e.Ends} {
		if c != nil {
			return false
		}
	}
	return len(e.Writes) == 0
}

// Variable returns the local variable that e is, or nil.
func (f *Function) Variable(e ast.Expr) *types.Var {
	if id, ok := ast.Unparen(e).(*ast.Ident); ok {
		if v := f.variable(id); v != nil && f.isLocal(v) {
			return v
		}
	}
	return nil
}

// CannotFail reports whether evaluating e can't panic: it is a variable, a constant, a field of one, a length.
func (f *Function) CannotFail(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.BasicLit, *ast.Ident:
		return true
	case *ast.SelectorExpr:
		sel := f.Info.Selections[e]
		if sel == nil {
			return true // of a package
		}
		return sel.Kind() == types.FieldVal && !sel.Indirect() && f.CannotFail(e.X)
	case *ast.CallExpr:
		if name := f.builtin(e); name == "len" || name == "cap" {
			return !isPointer(f.Info.TypeOf(e.Args[0])) && f.CannotFail(e.Args[0])
		}
	}
	return false
}
