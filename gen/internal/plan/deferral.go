package plan

import (
	"go/ast"
	"go/types"
)

// A Deferral is the plan for one function: which statements are put off, and
// what stands around them. It is data; package emit prints it.
type Deferral struct {
	Function *Function
	Window   int
	Ahead    int // see load.Kernel
	Laters   []*Later
	Keeps    []*Keep
	Gone     []ast.Stmt        // definitions that only functions of one row still need
	Idle     []ast.Stmt        // the same, but they may fail before something else does
	Refusals map[ast.Stmt]Code // loops that stay as they are although they wait
}

// A Later is one backlog: it is declared before the statement Anchor.
type Later struct {
	Name    string
	Anchor  ast.Stmt
	Regions []*Region
	State   State  // what exits hand over
	Outs    []*Out // declared before it

	KeepsReads bool // entries keep no tensors but those that are read for them: see asyncrt.Later.KeepsReads
}

// A Region is a loop whose backlog is empty before and after it.
type Region struct {
	Loop    *Stmt
	Endless bool // control never reaches the end of the loop
	Waits   bool // some of it waits, or flushes, in the middle
	Flushes []*Stmt
	Flushed map[*Stmt]bool // those of them before which nothing can be queued
	Polls   []*Stmt        // loops that begin each iteration by running what is ready
	Groups  []*Group
	Undo    []Place
	Exits   *Exits // nil if no value decides that the loop ends
}

// A Group is a run of neighbouring statements that become one entry of the
// backlog.
type Group struct {
	Later  *Later
	Stmts  []*Stmt
	Takes  []Take
	Copies []*Copy
	Skips  []*ast.BranchStmt // jumps to the next iteration: they end the entry
	Hoists []*types.Var      // declared by the statements and used outside them
	Jumps  map[ast.Stmt]*Way // tests of exits, the last statement or what values may skip, and where they lead
	Names  map[*Read]string

	Returns bool     // they end a function that is divided, which returns them: see [Lift]
	Here    []Result // computed before what is read, in place
}

// A Result is a result of a function that is returned in its place, and has a name.
type Result struct {
	Expr ast.Expr
	Name string
}

// A Take reads a tensor for the entry of a group, in its place before it.
type Take struct {
	Read  *Read
	Held  ast.Expr // instead of Read: it takes what a cell or a field holds
	Name  string   // of the Read that the step declares
	Raise []*Read  // the program reads these first: before Read, an entry raises their errors
}

// A Copy keeps the value that a variable has at the place of the group.
type Copy struct {
	Var  *types.Var
	Name string
	Uses []*ast.Ident
}

// WaitsLeft reports whether loops still wait in some places.
func (d *Deferral) WaitsLeft() bool {
	for _, l := range d.Laters {
		for _, r := range l.Regions {
			if r.Waits {
				return true
			}
		}
	}
	return len(d.Refusals) > 0
}
