package plan

import (
	"go/ast"
	"go/types"
	"maps"
	"slices"
)

// A State is the type of what a Later hands over when an exit is taken.
type State struct {
	Type   string // "" for no fields: struct{}
	Fields []*Slot
}

// A Slot is one variable of a State, or a result of the function.
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
	Behind bool   // the way is taken behind the loop
	Ended  string // the variable that tells there whether the loop has ended so; "" if Which does
	End    string // the variable with the state, and the one that tells whether there is one
	OK     string
}

// Told is the variable that tells whether the loop has ended, where that is asked.
func (x *Exits) Told() string {
	if x.Ended != "" {
		return x.Ended
	}
	return x.OK
}

// TakenOnce reports whether Which alone tells behind the loop which way is to be taken: the loop is in no other one, so
// that there has been none before, and one of the ways goes on there.
func (x *Exits) TakenOnce(l *Later) bool {
	return x.Ways[len(x.Ways)-1].Jump == nil && slices.ContainsFunc(l.Regions, func(r *Region) bool { return r.Exits == x && r.Loop.Node == l.Anchor })
}

// A Way is one way out of a loop.
type Way struct {
	Jump    ast.Stmt // as written; nil: to the statement after the loop
	Restore []*Slot  // variables that get back, before the jump, what they held
	Uses    map[*ast.Ident]*Slot
	Outs    map[*ast.Ident]*Out // and those of which only the test knows the values

	// Results stand for results of Jump, a return, if the way is for several returns and they differ there; nil: they
	// do not.
	Results []*ExitResult
}

// Has reports whether w uses s.
func (w *Way) Has(s *Slot) bool {
	return slices.Contains(w.Restore, s) || slices.Contains(slices.Collect(maps.Values(w.Uses)), s) ||
		slices.ContainsFunc(w.Results, func(r *ExitResult) bool { return r != nil && r.Slot == s })
}

// Take adds what e, a result of the return of o, needs.
func (w *Way) Take(o *Way, e ast.Expr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && o.Uses[id] != nil {
			w.Uses[id] = o.Uses[id]
		} else if ok && o.Outs[id] != nil {
			w.Outs[id] = o.Outs[id]
		}
		return true
	})
}

// Result is what stands for e, a result of the return of w, or nil.
func (w *Way) Result(e ast.Expr) *ExitResult {
	n, ok := w.Jump.(*ast.ReturnStmt)
	if !ok || w.Results == nil {
		return nil
	}
	if i := slices.Index(n.Results, e); i >= 0 {
		return w.Results[i]
	}
	return nil
}

// An ExitResult is what several returns have in common by its place only: each has a literal, which the
// state has, or an expression that the test computes.
type ExitResult struct {
	Slot *Slot
	Out  *Out
}

// An Out is a variable in which a test leaves the value of a variable of its
// own, or of a result, for the way out.
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

// LiveAfter reports whether somebody may look at v, which the loop changes,
// after the loop.
func (f *Function) LiveAfter(v *types.Var, loop ast.Node) bool {
	if loop.Pos() <= v.Pos() && v.Pos() < loop.End() {
		return false
	}
	for _, around := range f.LoopsAround(loop) {
		if v.Pos() < around.Pos() || around.End() <= v.Pos() {
			return true // it comes round again
		}
	}
	for id, obj := range f.Info.Uses {
		if obj == types.Object(v) && id.Pos() >= loop.End() {
			return true
		}
	}
	return f.IsCaptured(v) || f.IsResult(v) && f.ReturnsBare()
}
