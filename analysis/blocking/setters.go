package blocking

import (
	"cmp"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
)

// What functions of other packages change in what they are given. Here the body of the function tells; elsewhere the
// fact Sets does.
//
//	func (g *Gauge) Set(t *tensor.Tensor) { g.value = t } // sets tensors of a Gauge
//	func (s *Stopwatch) Start() { s.begin = time.Now() }  // starts a clock

// Sets is the fact about a function that sets fields to tensors, or has to do with clocks.
type Sets struct {
	// Types are the types, as "path.Name", in which the function sets fields to tensors, itself or by others that it
	// calls. They are sorted.
	Types []string
	// Starts reports whether it is a method that sets a field of its receiver to time.Now(), or a function that returns
	// a struct with such a field. Clock reports whether a clock is what it is about: it starts one, or tells the time.
	Starts, Clock bool
}

// AFact marks Sets as a fact of package analysis.
func (*Sets) AFact() {}

// String writes the fact as tests show it: "sets meters.Meter".
func (s *Sets) String() string {
	text := ""
	if len(s.Types) > 0 {
		text = " sets " + strings.Join(s.Types, ", ")
	}
	if s.Starts {
		text += " starts a clock"
	}
	if s.Clock {
		text += " reads a clock"
	}
	return strings.TrimSpace(text)
}

// exportSets finds out what the functions of the package set, and exports it.
func exportSets(pkg *Package) {
	pkg.sets = make(map[*Func]*Sets)
	for _, f := range pkg.Decls {
		pkg.sets[f] = &Sets{Types: directlySets(pkg, f), Starts: f.StartsClock() || f.Sig.Recv() == nil && f.returnsClock(), Clock: isStopwatch(f)}
	}
	// Then what they set by calling others.
	for changed := true; changed; {
		changed = false
		for f, s := range pkg.sets {
			f.Contains(func(c *Call) bool {
				for _, t := range c.sets().Types {
					if i, found := slices.BinarySearch(s.Types, t); !found {
						s.Types, changed = slices.Insert(s.Types, i, t), true
					}
				}
				return false
			})
		}
	}
	for fn, f := range pkg.Decls {
		if s := pkg.sets[f]; len(s.Types) > 0 || s.Starts || s.Clock {
			pkg.Pass.ExportObjectFact(fn, s)
		}
	}
}

// isStopwatch reports whether f reads a clock that its callers want to know of: it starts one for them, tells how much
// time has passed on theirs, or returns a time. A function that logs the time, as one that trains does, is none.
func isStopwatch(f *Func) bool {
	return f.Contains(IsClock) && (f.StartsClock() || f.returnsClock() || f.Summary.Clocks != 0 || slices.ContainsFunc(slices.Collect(f.Sig.Results().Variables()), func(v *types.Var) bool {
		name := nameOfType(v.Type())
		return name == "time.Duration" || name == "time.Time"
	}))
}

// directlySets lists the types in which f sets fields to tensors, or appends tensors to fields, by assignments of its
// own.
func directlySets(pkg *Package, f *Func) (names []string) {
	for cur := range f.Cur.Preorder((*ast.AssignStmt)(nil)) {
		n := cur.Node().(*ast.AssignStmt)
		for i, lhs := range n.Lhs {
			field, of := fieldSet(pkg, lhs), pkg.FuncAt(cur)
			if field == nil || of == nil || !pkg.HoldsTensors(pkg.Info.TypeOf(field)) && !isOpen(pkg.Info.TypeOf(field)) {
				continue
			}
			d := valueOf(n.Rhs, i)
			values := []ast.Expr{d.Value}
			if call := syntax.AsCall(d.Value); call != nil && syntax.IsBuiltin(pkg.Info, call, "append") {
				values = call.Args[1:]
			}
			if slices.ContainsFunc(values, func(e ast.Expr) bool { return newTracer(pkg, of).expr(e, d.Index, of) != Origin{} }) {
				names = append(names, nameOfType(pkg.Info.TypeOf(field.X)))
			}
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// fieldSet returns the field that an assignment to e sets, or sets an element of; or nil.
func fieldSet(pkg *Package, e ast.Expr) *ast.SelectorExpr {
	switch e := ast.Unparen(e).(type) {
	case *ast.IndexExpr:
		return fieldSet(pkg, e.X)
	case *ast.SelectorExpr:
		if v := pkg.Variable(e); v != nil && v.IsField() {
			return e
		}
	}
	return nil
}

// nameOfType returns the path and name of t, or of what it points to; or nothing if that has no name.
func nameOfType(t types.Type) string {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

// sets is what is known of what c's callee sets; never nil.
func (c *Call) sets() *Sets {
	s := new(Sets)
	switch fn := c.Callee; {
	case c.Target != nil && c.In.Package.sets[c.Target] != nil:
		return c.In.Package.sets[c.Target]
	case fn != nil && fn.Pkg() != nil && fn.Pkg() != c.In.Package.Pass.Pkg:
		c.In.Package.Pass.ImportObjectFact(fn.Origin(), s)
	}
	return s
}

// StartsClock reports whether c calls a method that starts a clock in a field of its receiver, or a function that
// returns one.
func (c *Call) StartsClock() bool { return c.sets().Starts }

// SetsIn reports whether l calls a function that sets fields to tensors in a value of type t, or in what such a value
// holds.
func (pkg *Package) SetsIn(t types.Type, l *Loop) bool {
	names := make(map[string]bool)
	visitTypes(t, 6, func(t types.Type) { names[nameOfType(t)] = true })
	return pkg.Any(l, func(c *Call) bool {
		return !c.Away && slices.ContainsFunc(c.sets().Types, func(name string) bool { return names[name] })
	})
}

// formatsPending reports whether values of type t, or values that they hold, format themselves by methods that read
// what functions of their package have set.
func formatsPending(pkg *Package, t types.Type) bool {
	found := false
	visitTypes(t, 6, func(t types.Type) {
		for _, json := range []bool{false, true} {
			fn, _, _ := types.LookupFieldOrMethod(t, true, pkg.Pass.Pkg, cmp.Or(ownMethod(pkg, t, json), "LogValue"))
			if m, ok := fn.(*types.Func); ok && waitOf(funcObject(pkg, m, 0).Summary().Waits, Own) != nil {
				found = true
			}
		}
	})
	return found
}

// visitTypes calls f for t and for the types of what values of type t hold, down to a depth. Tensors are left out.
func visitTypes(t types.Type, depth int, f func(types.Type)) {
	if t == nil || depth == 0 || IsTensor(t) {
		return
	}
	f(t)
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		visitTypes(u.Elem(), depth-1, f)
	case *types.Slice:
		visitTypes(u.Elem(), depth-1, f)
	case *types.Array:
		visitTypes(u.Elem(), depth-1, f)
	case *types.Map:
		visitTypes(u.Elem(), depth-1, f)
	case *types.Struct:
		for v := range u.Fields() {
			visitTypes(v.Type(), depth-1, f)
		}
	}
}
