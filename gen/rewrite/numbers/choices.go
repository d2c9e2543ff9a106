package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Choice is device-select: a value decides what becomes of tensors, or of numbers that stay on the
// device. The device computes both, and chooses.
//
//	norm := g.Norm().Item()         norm := g.Norm().ItemF64(); norm.Item()
//	if norm > limit {               asyncrt.Either(norm.Gt(asyncrt.Const(limit)), func() {
//		g = g.MulScalar(limit/norm)     	g = g.MulF64(asyncrt.Const(limit).Div(norm))
//	}                               }, nil, &g)
//
// It is a part of the round trips: the comparison is one of numbers, and so is what is assigned to
// them. What must not show, because the program does not do it, is in the hands of Either: it waits
// for the condition where it would show. What is left to prove is that both sides only compute and assign, in ways that
// can't fail on values, and cost little. What else the sides do, the host does in a statement of
// its own: see divided.go.
var Choice = &Part{
	Rewrite: &plan.Rewrite{
		Name: "device-select",
		Was:  "R10",
		Code: plan.ChosenThere,
		Does: "is a choice of the device, which computes both",
	},
	find: (*chooser).choices,
	made: (*writer).chosenOnes,
}

// chosenOnes says which statements are choices of the device.
func (r *writer) chosenOnes(as *plan.Rewrite) (made []plan.Remark) {
	for s, c := range r.chosen {
		var names []string
		for _, v := range c.vars {
			names = append(names, v.Name())
		}
		for _, of := range c.rated {
			names = append(names, "the rate of "+of)
		}
		made = append(made, as.Made(r.f, s.Pos(), "what becomes of "+strings.Join(names, ", ")))
	}
	return made
}

// A chooser finds the statements by which the device can choose.
type chooser struct {
	*finder
	ifs   []ast.Stmt         // ifs and switches in loops
	fates map[ast.Stmt]fates // what is known of failures where the device may choose: see failing.go
}

// A choice says what becomes of a statement, an if or a switch, by which the device chooses.
type choice struct {
	vars    []*types.Var          // what it chooses
	rated   []string              // and optimisers of which it chooses the rates
	checked []string              // those of rated that may be given none
	device  map[ast.Stmt]bool     // the statements of the sides that it runs
	host    bool                  // there are others, which the host runs
	first   bool                  // the device's come first; else after those of the host
	copies  map[*types.Var]string // of numbers that the conditions mention and that the device chooses first
}

// pointers is the end of a call of Either that chooses as c says.
func (r *restatement) pointers(c *choice) (text string) {
	for _, v := range c.vars {
		text += ", &" + r.nameOf(v)
	}
	for _, of := range c.rated {
		text += ", " + of
	}
	return text
}

// candidates finds the statements that may become choices, inner ones first, and the definitions in their heads.
func (r *chooser) candidates() {
	ast.Inspect(r.f.Decl.Body, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.IfStmt:
			if len(r.f.LoopsAround(s)) > 0 && inList(r.f, s) {
				r.ifs = append(r.ifs, s)
				if a, ok := s.Init.(*ast.AssignStmt); ok && a.Tok == token.DEFINE {
					r.heads[a] = s
				}
			}
		case *ast.SwitchStmt:
			if len(r.f.LoopsAround(s)) > 0 && inList(r.f, s) && s.Init == nil {
				r.ifs = append(r.ifs, s)
			}
		}
		_, isLit := n.(*ast.FuncLit)
		return !isLit
	})
	slices.Reverse(r.ifs)
}

// choices finds the statements by which the device can choose.
func (r *chooser) choices() {
	if r.heads == nil {
		r.heads = make(map[ast.Stmt]*ast.IfStmt)
		r.candidates()
	}
	for _, s := range r.ifs {
		if c := r.chosen[s]; c != nil && !r.isLeftToHost(s, c) {
			continue
		}
		delete(r.chosen, s)
		if all, ok := sides(s); ok && r.valuesDecide(s, all) {
			r.choice(s, all)
		}
	}
}

// choice makes s, with the given sides, a choice of the device if it can be one, and remarks why not if it can't.
func (r *chooser) choice(s ast.Stmt, all []side) {
	c, needs, why := r.chooses(s, all, true)
	if why != nil {
		if other, n, w := r.chooses(s, all, false); w == nil {
			c, needs, why = other, n, nil
		}
	}
	switch {
	case why != nil:
		r.refuse(conditionOf(s), why)
	case c != nil:
		r.chosen[s] = c
		for v := range needs {
			r.numbers[v] = true
		}
	}
}

// chooses returns how the device chooses in s, and which variables have to be numbers for that; or
// why it can't. With floats it computes all float64s that s sets, else only those that are numbers
// already. The choice is nil if there is nothing to choose.
func (r *chooser) chooses(s ast.Stmt, all []side, floats bool) (*choice, map[*types.Var]bool, *misfit) {
	needs := make(map[*types.Var]bool)
	c, why := r.divide(s, all, floats)
	if why != nil || len(c.rated) == 0 && !slices.ContainsFunc(c.vars, r.matters) {
		return nil, nil, why
	}
	for _, v := range c.vars {
		switch {
		case r.inner[v] || !r.f.CanCopy(v):
			return nil, nil, &misfit{plan.NoNumber, s.Pos(), "sets " + v.Name() + ", which a function literal or a pointer leads to", "assign to a local variable"}
		case r.f.Analysis.API.IsTensor(v.Type()):
		case isScalar(v.Type()):
			needs[v] = true
		default:
			return nil, nil, otherType(v, s)
		}
	}
	reads := itemsIn(r.f, conditionOf(s))
	why = r.condition(s, all, needs)
	for _, x := range all {
		if why == nil {
			why = r.arm(s, x.body, c, needs)
		}
	}
	if why == nil {
		why = r.setsTwice(all, c)
	}
	if why == nil {
		why = r.variables(needs)
	}
	if why == nil {
		why = r.spoils(s, all, c)
	}
	if why == nil {
		why = r.inTurn(s, all, c, needs)
	}
	if why == nil {
		why = r.nameableIn(s, reads)
	}
	return c, needs, why
}

// nameableIn gives names to the reads in the condition of s.
func (r *chooser) nameableIn(s ast.Stmt, reads []*ast.CallExpr) *misfit {
	if n, ok := s.(*ast.IfStmt); ok && len(reads) > 0 && n.Init != nil {
		return &misfit{plan.NoNumber, reads[0].Pos(), "reads " + types.ExprString(reads[0]) + " in the middle of a statement", "give the value a name before: v := " + types.ExprString(reads[0])}
	}
	cond := sink{arg: conditionOf(s), stmt: s}
	why := r.nameable(cond)
	if why == nil {
		r.name(cond)
	}
	return why
}

// matters reports whether the device needs v: it is a tensor or a number, or an operation takes it,
// or what is made of it.
func (r *restatement) matters(v *types.Var) bool {
	return r.f.Analysis.API.IsTensor(v.Type()) || r.numbers[v] || r.feeds(v, make(map[*types.Var]bool))
}

// isLeftToHost reports whether c leaves it to the host to set what has become a number since.
func (r *restatement) isLeftToHost(s ast.Stmt, c *choice) bool {
	all, _ := sides(s)
	for _, x := range all {
		for _, inner := range x.body {
			if !c.device[inner] && slices.ContainsFunc(assignedIn(r.f, inner), func(v *types.Var) bool { return r.numbers[v] }) {
				return true
			}
		}
	}
	return false
}
