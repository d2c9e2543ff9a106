// Package numbers restates a function so that what it computes of values stays on the device, as numbers: a number is
// an [asyncrt.F64] or an [asyncrt.I64], a float64 or an integer that may not have been computed yet. The result is
// planned as if the user had written it.
//
//	for range steps {                      for range steps {
//		n := g.Norm().Item()               	n := g.Norm().ItemF64()
//		                                   	n.Item()
//		if n > limit {                     	asyncrt.Either(n.Gt(asyncrt.Const(limit)), func() {
//			g = g.MulScalar(limit / n)     		g = g.MulF64(asyncrt.Const(limit).Div(n))
//		}                                  	}, nil, &g)
//		fmt.Println(n)                     	fmt.Println(n.Item())
//	}                                      }
//
// As it was written, the loop waits for n in every iteration, since the device needs to know what becomes of g. Then
// nothing but the host looks at n, and n.Item() is a read like any other, which later rewrites put off. The first one
// is there to raise the error of a tensor that has failed where the program would have.
//
// [Restate] is the whole of it, and [Prepare] what makes more of it possible. To read on:
//
//   - locals is what the function says of its variables. What expressions and statements say is in functions: exprs.go,
//     sinks.go, integers.go, rounding.go, sides.go.
//   - restatement is what becomes of the function. It is filled by the next two, until neither finds more.
//   - finder decides which operations take a number that stays on the device, and which variables become numbers for
//     that: roundtrip.go, integers.go for numbers of rows, rates.go for learning rates, slices.go and lists.go for
//     slices of numbers.
//   - chooser decides by which ifs and switches the device chooses: choices.go. Their conditions are in conditions.go,
//     what the device may compute in vain in arms.go and failing.go, and what is left to the host in divided.go.
//   - slices of numbers are in slices.go: L-BFGS keeps some from one iteration to the next.
//   - writer makes the edits: write.go, writechoice.go for choices, and raise.go for errors.
//
// Each embeds what it is based on, and is r in its methods. What can't stay is a misfit, which says why.
package numbers

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A Part is one of the two rewrites of this stage.
type Part struct {
	*plan.Rewrite

	// find looks for what can stay on the device. It is called until nothing more is found.
	find func(r *chooser)

	// made are the remarks on what it found, in the name of the rewrite.
	made func(r *writer, as *plan.Rewrite) []plan.Remark
}

// Restate returns f in numbers that stay on the device, as far as parts can do that, with remarks on what stays there
// and on what does not. The function is nil if nothing does.
func Restate(f *plan.Function, parts []*Part) (restated *plan.Function, applied, refused []plan.Remark) {
	found := &restatement{locals: newLocals(f), names: plan.NewNames(f), numbers: make(map[*types.Var]bool), lists: make(map[*types.Var]*twin), parts: make(map[*types.Var]bool), sinks: make(map[*ast.CallExpr]sink),
		named: make(map[*ast.CallExpr]string), stems: make(map[ast.Expr]string), before: make(map[ast.Stmt][]ast.Expr), chosen: make(map[ast.Stmt]*choice), params: make(map[*types.Var]string)}
	look := &chooser{finder: &finder{restatement: found, twins: make(map[*types.Var]*twin)}}
	for n := -1; n != found.size(); { // what becomes a number for one thing may be of use to another
		n = found.size()
		look.refused = nil
		for _, part := range parts {
			part.find(look)
		}
	}
	if found.isTorn() || len(found.sinks) == 0 && len(found.chosen) == 0 {
		return nil, nil, look.refused
	}
	write := &writer{restatement: found, copied: make(map[*ast.Ident]string)}
	write.begin()
	write.restate(f.Decl.Body)
	write.forceReads()
	restated, err := f.Restate(write.edits)
	if err != nil {
		return nil, nil, look.refused
	}
	for _, part := range parts {
		applied = append(applied, part.made(write, part.Rewrite)...)
	}
	return restated, applied, look.refused
}

// A restatement is what becomes of a function.
type restatement struct {
	*locals
	names   *plan.Names
	numbers map[*types.Var]bool      // local variables of type float64, int64, int, bool or []float64 that become ones
	lists   map[*types.Var]*twin     // lists of integers that have a twin
	parts   map[*types.Var]bool      // variables for parts of lists that become parts of twins
	sinks   map[*ast.CallExpr]sink   // operations that take a number instead
	named   map[*ast.CallExpr]string // reads that get a name of their own
	stems   map[ast.Expr]string      // as do tensors that are evaluated before a sink
	before  map[ast.Stmt][]ast.Expr  // what comes before a statement: these, and sinks that may panic
	chosen  map[ast.Stmt]*choice     // by which the device chooses
	heads   map[ast.Stmt]*ast.IfStmt // definitions in the heads of ifs
	rated   *bool                    // see setsRates
	params  map[*types.Var]string    // the names of numbers that parameters, and results with names, become
}

// A misfit is why something has no form in numbers, and stays on the host.
type misfit struct {
	code plan.Code
	pos  token.Pos
	text string
	hint string
}

// size counts what has been found.
func (r *restatement) size() int { return len(r.numbers) + len(r.lists) + len(r.sinks) + len(r.chosen) }

// isNumber reports whether e is a variable that becomes a number.
func (r *restatement) isNumber(e ast.Expr) (*types.Var, bool) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil, false
	}
	v, ok := r.f.Info.ObjectOf(id).(*types.Var)
	return v, ok && r.numbers[v]
}

// valued reports whether e depends on a value that is read, directly or through variables.
func (r *restatement) valued(e ast.Node, seen map[*types.Var]bool) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if found {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if _, _, ok := item(r.f, n); ok {
				found = true
			}
			if isBuiltin(r.f, n, "len") || isBuiltin(r.f, n, "cap") {
				return false
			}
			if _, _, ok := rateOf(r.f, n); ok && r.setsRates() {
				found = true
			}
			_, api, ok := r.f.Library(n)
			if ok && !api.Waits() {
				return false // what a tensor is made of is no value
			}
		case *ast.Ident:
			v, ok := r.f.Info.Uses[n].(*types.Var)
			if ok && r.numbers[v] {
				found = true
			}
			if !ok || seen[v] || !isScalar(v.Type()) && !isFloats(v.Type()) && !isIntegers(v.Type()) {
				break
			}
			seen[v] = true
			for _, d := range slices.Concat(r.stores[v], r.defs[v]) {
				found = found || d.value != nil && r.valued(d.value, seen) || r.depends(d, v, seen)
			}
		}
		return !found
	})
	return found
}

// depends reports whether a value decides whether d gives v another value: v is declared outside of what it decides.
func (r *restatement) depends(d definition, v *types.Var, seen map[*types.Var]bool) bool {
	return r.decided(d.stmt, func(n ast.Node) bool { return v.Pos() < n.Pos() || n.End() <= v.Pos() }, seen)
}

// decided reports whether a value decides whether n runs, in one of the statements around it as far as those are in.
func (r *restatement) decided(n ast.Node, in func(ast.Node) bool, seen map[*types.Var]bool) bool {
	for n := r.f.Parent(n); n != nil && in(n); n = r.f.Parent(n) {
		if s, ok := n.(ast.Stmt); ok {
			if all, ok := sides(s); ok && r.decide(s, all, seen) {
				return true
			}
		}
	}
	return false
}

// isValued reports whether e depends on a value that is read.
func (r *restatement) isValued(e ast.Expr) bool { return r.valued(e, make(map[*types.Var]bool)) }

// valuesDecide reports whether one of the conditions in s depends on a value that is read.
func (r *restatement) valuesDecide(s ast.Stmt, all []side) bool {
	return r.decide(s, all, make(map[*types.Var]bool))
}

func (r *restatement) decide(s ast.Stmt, all []side, seen map[*types.Var]bool) bool {
	isValued := func(e ast.Expr) bool { return r.valued(e, seen) }
	tag := tagOf(s)
	return tag != nil && isValued(tag) || slices.ContainsFunc(all, func(x side) bool { return slices.ContainsFunc(x.when, isValued) })
}

// isTorn reports whether something that the head of a statement defines becomes a number, and the
// statement is no choice.
func (r *restatement) isTorn() bool {
	for a, s := range r.heads {
		for _, lhs := range a.(*ast.AssignStmt).Lhs {
			if _, is := r.isNumber(lhs); is && r.chosen[s] == nil {
				return true
			}
		}
	}
	return false
}
