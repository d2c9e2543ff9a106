package plan

import (
	"go/ast"
	"go/types"
)

// A State is the type of what a Later hands over when an exit is taken.
type State struct {
	Type   string // "" for no fields: struct{}
	Fields []*Slot
}

// A Slot is one variable of a State.
type Slot struct {
	Var  *types.Var
	Name string
}

// Exits are the ways out of a loop that values decide. The loop runs on past
// them until the values are there.
type Exits struct {
	Ways   []*Way // one past the end of the loop, if there is one, is the last
	Fields []*Slot
	Cells  []CellsOf
	Guard  *Guard // nil if an iteration is given nothing from outside

	// The condition of the loop, divided: the first stays, the second is
	// tested at the beginning of the body. Both are nil if it is left alone.
	Keep, Tests []ast.Expr

	Iterate   bool              // an iteration may panic past the end of the loop, and is a function that Iterate runs
	Continues []*ast.BranchStmt // jumps to the next one in it, of what does not come later

	Labels bool   // a break of the loop needs a label
	Label  string // for the loop; "" if it has one, or needs none
	Which  string // the variable that tells several Ways apart
	// the variable that tells after the loop whether it has ended so; "" if that is dealt with in the
	// loop
	Ended string
	End   string // the variable with the state, and the one that tells whether there is one
	OK    string
}

// Told is the variable that tells whether the loop has ended, where that is asked.
func (x *Exits) Told() string {
	if x.Ended != "" {
		return x.Ended
	}
	return x.OK
}

// A Way is one way out of a loop.
type Way struct {
	Jump    ast.Stmt // as written; nil: to the statement after the loop
	Restore []*Slot  // variables that get back, before the jump, what they held
	Uses    map[*ast.Ident]*Slot
	Outs    map[*ast.Ident]*Out // and those of which only the test knows the values
}

// An Out is a variable in which a test leaves the value of a variable of its
// own for the way out.
type Out struct {
	Var  *types.Var
	Name string
}

// CellsOf is an expression for cells that a loop changes and that may not say so.
type CellsOf struct {
	Form CellsForm
	Of   string // the variable, with its fields
}

// A CellsForm says how the cells of a variable are got.
type CellsForm uint8

const (
	IsCell   CellsForm = iota // it is one
	HasCells                  // its method Cells lists them
)

// A Guard finds out whether an iteration is like those before: whether the
// tensors that it is given from outside are, and whether some have
// floating-point numbers, which take any number as an operand.
type Guard struct {
	Before  *Stmt
	Tensors []ast.Expr
	Floats  []ast.Expr
	First   bool // all that matters is whether the iteration is the first
}
