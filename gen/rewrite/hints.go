package rewrite

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"unicode"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// keepLocal says what to write in the place of a change that others can see, and would see too early.
func (a *target) keepLocal(c plan.Cause) string {
	place, isPlace := strings.CutPrefix(c.Text, "changes ")
	isPlace = isPlace && !strings.HasPrefix(place, "what is behind ") && !strings.HasSuffix(place, "...")
	called, _, isCall := strings.Cut(c.Text, ", which changes ")
	calls := strings.Split(called, "calls ")
	called = calls[len(calls)-1] // of those that call each other, the last
	list, isBehind := strings.CutPrefix(c.Text, "changes what is behind ")
	switch elem := a.appends(place, c.Pos); {
	case isBehind && a.isParameter(list):
		return fmt.Sprintf("let the function begin with %[1]s = slices.Clone(%[1]s): append may write behind what the caller has", list)
	case isPlace && token.IsIdentifier(place) && !a.isBefore(place): // it is declared in the loop, and led to by others
		return ""
	case isPlace && !a.isBefore(place):
	case isPlace && elem != "":
		return fmt.Sprintf("write var mine []%s before the loop, append to mine in the loop, and %s = append(%[2]s, mine...) after it", elem, place)
	case isPlace:
		return fmt.Sprintf("write mine := %s before the loop, mine in its place in the loop, and %[1]s = mine after it", place)
	case strings.Contains(c.Text, "draws from a random generator"):
		return "make the generator in the function, with r := rand.New(rand.NewPCG(1, 2)), or draw before the loop, into a slice"
	case strings.HasSuffix(c.Text, "writes to the outside"):
		return "print beside the read of a value, which comes later with it, and not where the tensor is computed"
	case strings.HasPrefix(c.Text, "calls ") && strings.HasSuffix(c.Text, ".Writer).Write"):
		return "keep what it writes in a slice, and write that after the loop"
	case isCall:
		return fmt.Sprintf("let %s return the new value, and store that after the loop", called)
	}
	return "keep it in memory that the function makes, and store it after the loop"
}

// isParameter reports whether the function has a parameter of that name.
func (a *target) isParameter(name string) bool {
	return slices.ContainsFunc(a.f.Decl.Type.Params.List, func(field *ast.Field) bool {
		return slices.ContainsFunc(field.Names, func(id *ast.Ident) bool { return id.Name == name })
	})
}

// isBefore reports whether the expression place means the same before the loop: nothing it names is declared there.
func (a *target) isBefore(place string) bool {
	e, err := parser.ParseExpr(place)
	if err != nil {
		return false
	}
	before := true
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		for def, obj := range a.f.Info.Defs {
			isVar := obj != nil && a.outermost.Node.Pos() <= def.Pos() && def.Pos() < a.outermost.Node.End()
			before = before && !(ok && isVar && def.Name == id.Name)
		}
		return before && !(ok && id.Name == "mine")
	})
	return before
}

// appends returns the type of the elements that the statement at pos appends to place, or "".
func (a *target) appends(place string, pos token.Pos) (elem string) {
	ast.Inspect(a.loop.Node, func(n ast.Node) bool {
		s, ok := n.(*ast.AssignStmt)
		if !ok || s.Pos() > pos || pos >= s.End() || len(s.Lhs) != 1 || len(s.Rhs) != 1 {
			return true
		}
		call, ok := s.Rhs[0].(*ast.CallExpr)
		if ok && types.ExprString(call.Fun) == "append" && types.ExprString(call.Args[0]) == place {
			t, isSlice := a.f.Info.TypeOf(call).Underlying().(*types.Slice)
			if !isSlice {
				return false
			}
			elem = types.TypeString(t.Elem(), func(pkg *types.Package) string {
				if pkg == a.f.Pkg.Types {
					return ""
				}
				return pkg.Name()
			})
		}
		return true
	})
	return elem
}

// testRarely says what to write in the place of s, which ends a loop by a value.
func (a *target) testRarely(s *plan.Stmt) string {
	if loop := s.Loop(); loop != nil && !a.buildsUp(loop, s) {
		return "it waits as long as one is tried after the other: compute several at once, as rows of one tensor, and take the first that will do"
	}
	return "test every so many iterations: the wait then comes as rarely"
}

// buildsUp reports whether iterations of loop go on with what those before have computed, apart from what exit does.
func (a *target) buildsUp(loop, exit *plan.Stmt) bool {
	var body []*plan.Effects
	for s := range loop.All {
		if s == loop || s.IsCompound() || s.Within(exit) {
			continue
		}
		e := a.f.StmtEffects(s.Inner())
		if _, sets := e.Writes[plan.Loc{Kind: plan.Cells}]; sets {
			return true
		}
		body = append(body, e)
	}
	holds := func(l plan.Loc) bool { // more than a number
		if l.Kind != plan.Var {
			return false
		}
		_, isBasic := l.Obj.Type().Underlying().(*types.Basic)
		return !isBasic
	}
	comesRound, made := make(map[plan.Loc]bool), make(map[plan.Loc]bool)
	for _, e := range body {
		for l := range e.Writes {
			if holds(l) && !contains(loop.Node, l.Obj.Pos()) {
				comesRound[l], made[l] = true, true
			}
		}
	}
	for n := -1; n != len(made); {
		n = len(made)
		for _, e := range body {
			for r := range e.Reads {
				for w := range e.Writes {
					if made[r] && comesRound[w] {
						return true
					}
					if made[r] && holds(w) {
						made[w] = true
					}
				}
			}
		}
	}
	return false
}

// onTensors says what to write in the place of c, in u, which a value decides.
func (a *target) onTensors(u *plan.Unit, c plan.Cause) string {
	if strings.HasSuffix(c.Text, "State).Restore") {
		return "break out of the loop there, and restore after it"
	}
	for _, r := range u.Reads {
		if call, ok := a.f.Parent(r.Expr).(*ast.CallExpr); ok && call.Pos() == c.Pos && strings.HasPrefix(c.Text, "calls tensor.From") {
			return "hand " + types.ExprString(r.Operand) + " on itself: tensors never change"
		}
	}
	if strings.HasSuffix(c.Text, "optim.Optimizer).Step") && a.looksForNaN(u) {
		return "let the optimiser look: if its field Guard is set, a Step changes nothing where a gradient is NaN or infinite"
	}
	return "keep the computation on tensors"
}

// looksForNaN reports whether a condition that u depends on asks whether a number is NaN or infinite.
func (a *target) looksForNaN(u *plan.Unit) (found bool) {
	for s := range a.loop.All {
		n, ok := s.Inner().(*ast.IfStmt)
		if !ok || s != u.Stmt && !u.Stmt.Within(s) && !(cuts(s) && isSkipped(s, u)) {
			continue
		}
		ast.Inspect(n.Cond, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				fn, _, _ := a.f.Callee(call)
				found = found || fn != nil && (fn.FullName() == "math.IsNaN" || fn.FullName() == "math.IsInf")
			}
			return !found
		})
	}
	return found
}

// takeBefore says how to take what e, a call or a field of which the value changes, is now.
func takeBefore(e ast.Expr, text string) string {
	name := "now"
	switch x := ast.Unparen(e).(type) {
	case *ast.CallExpr:
		if id := plan.CalleeName(x.Fun); id != nil {
			name = lower(id.Name)
		}
	case *ast.SelectorExpr:
		name = lower(x.Sel.Name)
	}
	return fmt.Sprintf("write %s := %s before the statement that looks at a value, and %[1]s in it", name, text)
}

func lower(name string) string {
	r := []rune(name)
	r[0] = unicode.ToLower(r[0])
	if s := string(r); token.IsIdentifier(s) {
		return s
	}
	return "now"
}
