package blocking

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/cfg"
)

// Calls that do what an inner loop would do: they train, fit or take many steps in a function. A loop around such a
// call is an outer one.

// trainsBeside reports whether d waits for goroutines that train: for those that it starts itself, as a function of the
// package, or for a group of those that l starts.
//
//	for i, c := range clients {
//		wg.Go(func() { updates[i] = c.Train() })
//	}
//	wg.Wait()
func trainsBeside(pkg *Package, d *Call, l *Loop) bool {
	if d.Away {
		return false
	}
	trains := func(e *Call) bool { return e.Summary().Trains }
	if waitsForGroup(d) {
		for f := range l.Func.Tree() {
			if f.Lit != nil && f.Parent != nil && pkg.Contains(l, f.Parent, f.Lit.Pos()) && f.isGoroutine() && f.Contains(trains) {
				return true
			}
		}
		return false
	}
	return d.Target != nil && d.Target.Contains(trains) && d.Target.Contains(waitsForGroup)
}

// waitsForGroup recognises calls that wait for a group of goroutines.
func waitsForGroup(c *Call) bool {
	return syntax.IsFullName(c.Callee, "(*sync.WaitGroup).Wait") || syntax.IsFullName(c.Callee, "(*golang.org/x/sync/errgroup.Group).Wait")
}

// fits reports whether d calls a function that nobody knows and that, by its name, trains from the beginning to
// the end. A function that takes a step would return a loss, or be given a batch.
func (d *Call) fits() bool {
	if !d.Dynamic || d.Away || d.API.Kind != tensorapi.Unknown || d.Impls != nil || d.TakesTensor() {
		return false
	}
	name := strings.ToLower(nameOf(d.Expr.Fun))
	return (strings.HasPrefix(name, "fit") || strings.HasPrefix(name, "train") || strings.HasPrefix(name, "learn")) && !strings.Contains(name, "step") && !strings.Contains(name, "batch") &&
		!slices.ContainsFunc(slices.Collect(d.In.Package.ResultsOf(d).Variables()), func(v *types.Var) bool { return IsTensor(v.Type()) })
}

// repeats reports whether d, in l, calls a method of the package that changes what it belongs to many times, as one
// that fits a model by a number of iterations. l is no loop over data, and doesn't train.
//
//	for range restarts {
//		m := newMixture(k)
//		m.fit(x, 500)
//		if score := m.likelihood(x).Item(); score > best {
func repeats(pkg *Package, d *Call, l *Loop) bool {
	f := d.Target
	if f == nil || d.Away || f == l.Func || f.SCC == l.Func.SCC || l.Stmt == nil || f.Sig.Recv() == nil || pkg.StepsItself(l) || pkg.OverData(l, l.Func.WholeLoop()) {
		return false
	}
	recv := f.Sig.Recv()
	return slices.ContainsFunc(f.Flow().Loops, func(m *Loop) bool {
		if m.Small || m.Stmt == nil || pkg.OverParts(m) || pkg.OverData(m, f.WholeLoop()) || !pkg.Any(m, (*Call).Enqueues) || f.Flow().Conditions(m.Head) != nil {
			return false
		}
		return pkg.assignsField(m, recv)
	})
}

// goesOver reports whether d, in l, calls a function of the package that goes over a loader: a data set for each
// iteration of l, which takes no step of training by itself.
func goesOver(pkg *Package, d *Call, l *Loop) bool {
	f := d.Target
	return f != nil && !d.Away && f.SCC != l.Func.SCC && !pkg.StepsItself(l) && slices.ContainsFunc(f.Flow().Loops, func(m *Loop) bool {
		s, ok := m.Stmt.(*ast.RangeStmt)
		if !ok || f.Flow().Conditions(m.Head) != nil {
			return false
		}
		c := pkg.Calls[syntax.AsCall(s.X)]
		return c != nil && c.IsFunc("Loader.All")
	})
}

// IsBlock reports whether d, in l, calls a function that does as many steps of a computation as l says,
// and l goes on until a value is small enough or the like, or says by a name that it does something every so many
// steps, or by a number that they are many. It asks once for many steps.
//
//	for {
//		x = walk(x, block)
//		if spread(x).Item() < limit {
//			return x
//		}
//	}
func (pkg *Package) IsBlock(d *Call, l *Loop) bool {
	f := d.Target
	if d.Away || l.Stmt == nil || f != nil && f.SCC == l.Func.SCC || pkg.StepsItself(l) {
		return false
	}
	ends := pkg.EndsByValue(l)
	if f == nil && d.Summary().Repeats == 0 {
		return false
	}
	isCount := func(op int, mayLeave bool) bool {
		return slices.ContainsFunc(d.Operand(op), func(e ast.Expr) bool {
			n, ok := syntax.IntConst(pkg.Info, e)
			return syntax.IsNumeric(pkg.Info.TypeOf(e)) && !pkg.Varies(e, l) && (ends && (!ok || n >= fewSteps) || n >= manySteps && !mayLeave || blockName.MatchString(nameOf(e)))
		})
	}
	if f == nil {
		for op := range d.Summary().Repeats.all() {
			if isCount(op, false) {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(f.Flow().Loops, func(m *Loop) bool {
		op, ok := pkg.stepsBy(f, m)
		return ok && isCount(op, leavesEarly(m))
	})
}

// stepsBy returns the operand of f that says how many steps of a computation the loop m takes in each call.
func (pkg *Package) stepsBy(f *Func, m *Loop) (operand int, ok bool) {
	p := pkg.Params[pkg.Local(syntax.OrNil(boundOf(m)))]
	return p.Operand, p.Of == f && f.Flow().Conditions(m.Head) == nil && pkg.Any(m, (*Call).Enqueues) && (pkg.carriesTensors(m) || pkg.changesElsewhere(m))
}

// repeated returns the operands of f that say how many steps f takes, if it takes all.
func repeated(pkg *Package, f *Func) (all Operands) {
	for _, m := range f.Flow().Loops {
		if op, ok := pkg.stepsBy(f, m); ok && !leavesEarly(m) && f.Lit == nil {
			all |= operands(op)
		}
	}
	return all
}

// leavesEarly reports whether l may end before its statement says so, as a loop with a limit does.
func leavesEarly(l *Loop) bool {
	blocks := l.Func.Flow().Blocks
	for b := range l.Blocks {
		if b != l.Head && slices.ContainsFunc(blocks[b].Succs, func(s *cfg.Block) bool { return !l.Blocks[s.Index] }) {
			return true
		}
	}
	return false
}

// blockName matches the names of numbers of steps after which something is looked at.
var blockName = regexp.MustCompile(`(?i)^(every|block|chunk|stride|interval|burst)|per(Block|Frame|Chunk|Check|Report)`)

// fewSteps are less than a block of steps: the leaps of one sample, the sweeps of one cycle.
const fewSteps = 10

// manySteps take so long that one wait for all of them costs nothing to speak of.
const manySteps = 50

// fitsApart reports whether d, in l, calls a function that fits something, and no iteration of l goes on with what the
// one before has computed: l goes over folds, sizes or restarts.
//
//	for k := 1; k <= 8; k++ {
//		m, likelihood := fit(x, k)
//		fmt.Println(k, likelihood, m.weights)
//	}
func fitsApart(pkg *Package, d *Call, l *Loop) bool {
	return d.Summary().Fits && !d.Away && l.Stmt != nil && !pkg.StepsItself(l) && !pkg.carriesTensors(l)
}

// isFit reports whether each iteration of m computes tensors from those of the one before, and m ends when a value that
// it reads, in each iteration or now and then, is small enough or the like. It may also take a fixed number of steps,
// if its function says that it fits or solves something.
func (pkg *Package) isFit(m *Loop) bool {
	return !m.Small && m.Stmt != nil && !pkg.OverParts(m) && pkg.Any(m, (*Call).Enqueues) && (pkg.carriesTensors(m) || pkg.changesElsewhere(m)) &&
		(pkg.EndsByValue(m) || fitName.MatchString(m.Func.Outermost().Name) && !pkg.OverData(m, m.Func.WholeLoop()))
}

// fitName matches the names of functions that fit or solve something from the beginning to the end.
var fitName = regexp.MustCompile(`^(?i:fit|solve|optimi[sz]e|minimi[sz]e)([A-Z_0-9]|$)`)
