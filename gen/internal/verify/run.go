package verify

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Bounds of one run.
const (
	maxSteps = 4e4 // statements and expressions
	maxDepth = 12  // calls
)

// A run executes a function on terms.
type run struct {
	p       *Program
	ts      *terms
	choices *choices
	when    schedule
	fails   *term            // what fails in this run, where it is first noticed; nil: nothing does
	also    *term            // another failure, or the same
	same    map[string]value // by type: a parameter that is what memory holds at first; none in most runs

	// What the run has done.
	trace     []*term          // what the outside sees
	memory    map[string]*term // by class, see fieldClass
	cross     map[string]*term // by type: what was stored through pointers, of which the class is not known
	epoch     *term            // what has changed all memory
	random    map[*term]*term  // the state of random generators of the host
	asked     map[string]int   // how often the program has asked what changes by itself
	cells     *term            // the state of parameters, generators and the like
	failed    map[*term]bool   // what has failed with fails
	hasFailed bool             // the failure was noticed
	raised    []*term          // what may have failed, in order
	late      map[*term]bool   // tensors that are numbers of the device
	held      map[*term]bool   // what memory holds that operations take for tensors
	news      map[*term]int    // objects that got an address, by what they held then

	told []bool // the answers to its next questions, if they are known
	at   *story // of all runs that have got the same answers

	panicking    *raise // the panic that deferred functions run for
	laters       []*later
	known        map[ast.Stmt]bool // what other runs have executed
	covered      map[ast.Stmt]bool // what else has been executed
	steps, depth int
	row          *term          // for which row the function of a MappedRows runs
	entries      int            // functions of backlogs that are running
	vain         map[*term]bool // what the side of a choice has computed that is not taken, while it runs; else nil
}

// A choices says how conditions turn out of which only the term is known. Both runs of a path share it.
type choices struct {
	random *rand.Rand
	known  map[*term]bool

	percent    int  // of conditions that are true
	only       int  // or the one that is true; 0: percent of them
	asked      int  // how many have been asked for
	onwards    int  // percent of loops that go on
	nils       int  // percent of pointers that are nil
	iterations int  // of a loop whose end is not known
	longest    int  // iterations of any loop, at most
	aliases    bool // parameters of one type lead to the same memory
}

// A schedule says when entries of a backlog run.
type schedule struct {
	window int        // how many may wait
	ahead  int        // how many tests may wait, if as many have been false
	random *rand.Rand // decides which of those that may run do; nil: none
}

// A raise is a panic of the program that is executed.
type raise struct{ v *term }

// A stop says that the program can't be executed on terms.
type stop struct{ why string }

// A cut ends a run that has become too long.
type cut struct{}

func (r *run) stopf(n ast.Node, f *Func, why string) {
	panic(stop{why + " (" + f.Fset.Position(n.Pos()).String() + ")"})
}

func (r *run) step() {
	if r.steps++; r.steps > maxSteps {
		panic(cut{})
	}
}

// decide returns how a condition turns out.
func (r *run) decide(c *term) bool {
	switch {
	case c.isTrue():
		return true
	case c.isFalse():
		return false
	case c.op == "!":
		return !r.decide(c.args[0])
	case c.op == "&&:bool":
		return r.decide(c.args[0]) && r.decide(c.args[1])
	case c.op == "||:bool":
		return r.decide(c.args[0]) || r.decide(c.args[1])
	}
	return r.ask(question{asksCondition, c, 0})
}

// goesOn is decide for the condition of a loop that has had n iterations. isShort says that the condition only compares
// numbers of the host: then a long loop ends early in both functions, as if a constant of the program were smaller.
func (r *run) goesOn(c *term, n int, isShort bool) bool {
	if c.c != nil {
		isLong := r.ask(question{asksLong, nil, n})
		if isLong && !isShort {
			panic(cut{})
		}
		return c.isTrue() && !isLong
	}
	if r.ask(question{asksEndless, nil, n}) {
		panic(cut{})
	}
	if c.op != "!" {
		r.ask(question{asksOnwards, c, n})
	}
	return r.decide(c)
}

// contains reports whether the value that fails in this run is one of those that t was computed of.
func (r *run) contains(t *term) bool {
	if r.fails == nil || r.fails.op != unread {
		return false
	}
	if r.failed == nil {
		r.failed = map[*term]bool{r.fails.args[0]: true}
	}
	has, known := r.failed[t]
	if !known {
		has = slices.ContainsFunc(t.args, r.contains)
		r.failed[t] = has
	}
	return has
}

// Failures.
const (
	unread     = "fails: unread" // of a tensor whose value is read
	failsNil   = "fails: nil"
	failsIndex = "fails: index"
	failsSlice = "fails: slice"

	mistake  = "fails: mistake" // of a call of the library
	failsFor = "fails: panics"  // a function for a reason that is not known
)

// raise panics in the program that is executed.
func (r *run) raise(v *term) {
	r.hasFailed = true
	panic(raise{v})
}

// looks reads a tensor, or a number that may still be computed. That panics if a value has failed that it was computed
// of.
func (r *run) looks(t *term) {
	if r.contains(t) {
		r.raise(r.fails)
	}
}

// mayFail notes that the run may be left here by a panic, and leaves it if it is the one that fails in this run.
func (r *run) mayFail(failure string, args ...*term) {
	t := r.ts.of(failure, args...)
	r.raised = append(r.raised, t)
	if (t == r.fails || t == r.also) && !(isMistake(t) && r.isPast()) {
		r.raise(t)
	}
}

// isPast reports whether the run is past an exit that is taken when all functions of backlogs have run, which they may
// do now. There the planner has proved that shapes fit.
func (r *run) isPast() bool {
	if r.entries > 0 {
		return false
	}
	for _, l := range r.laters {
		if l.iterating {
			continue // whose panics do no harm
		}
		if l.taken == nil && slices.ContainsFunc(l.backlog, func(e *entry) bool { return e.isTest }) {
			l.all(r)
		}
		if l.taken != nil {
			return true
		}
	}
	return false
}

func (r *run) event(op string, args ...*term) *term {
	t := r.ts.of(op, args...)
	r.trace = append(r.trace, t)
	return t
}

// A named is what a type is called in the same words for both runs.
type named struct {
	name              string
	elements, pointed string // classes of memory, see fieldClass
}

// typeName is the name of a type.
func (p *Program) typeName(t types.Type) string { return p.named(t).name }

func (p *Program) named(t types.Type) *named {
	n := p.types[t]
	if n == nil {
		like := t
		// structs with other tags are converted into each other, and pointers to them
		if s, ok := t.(*types.Struct); ok {
			like = types.NewStruct(slices.Collect(s.Fields()), nil)
		}
		switch { // what may not have been computed yet is what it will be
		case tensorapi.IsInteger(t):
			like = types.Typ[types.Int64]
		case tensorapi.IsCondition(t):
			like = types.Typ[types.Bool]
		case tensorapi.IsNumber(t):
			like = types.Typ[types.Float64]
		}
		name := types.TypeString(like, func(p *types.Package) string { return p.Path() })
		n = &named{name, "elements\x00" + name, "pointed\x00" + name}
		p.types[t] = n
	}
	return n
}

// kindOf is the name of a type in operations: integers of 64 bits are one kind.
func kindOf(t types.Type) string {
	if t == nil {
		return "?"
	}
	b, ok := t.Underlying().(*types.Basic)
	switch {
	case !ok:
		return "?"
	case b.Kind() == types.Int, b.Kind() == types.Int64, b.Kind() == types.UntypedInt:
		return "int"
	case b.Kind() == types.UntypedFloat:
		return "float64"
	case b.Kind() == types.UntypedBool:
		return "bool"
	}
	return b.Name()
}

// isStruct reports whether values of type t are kept as their fields.
func isStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok && !tensorapi.IsNumber(t)
}

func (p *Program) structName(t types.Type) string { return p.typeName(t.Underlying()) }

// field returns a field of a struct.
func (r *run) field(v value, t types.Type, i int) value {
	if rec, ok := v.(*record); ok {
		return rec.fields[i]
	}
	held := r.termOf(v)
	if held.op == "struct "+r.p.structName(t) {
		return held.args[i]
	}
	return r.ts.of("field "+t.Underlying().(*types.Struct).Field(i).Name(), held)
}

// termOf returns a term for v. What it leads to can be reached by code that is not interpreted from now on.
func (r *run) termOf(v value) *term {
	switch v := v.(type) {
	case nil:
		return r.ts.of("nil")
	case *term:
		return v
	case *record:
		return r.ts.of("struct "+r.p.structName(v.typ), r.termsOf(v.fields)...)
	case *list:
		if v.isMap {
			return r.ts.of("map", v.mem.whole(r))
		}
		if v.from != nil {
			return r.ts.of("slice", v.mem.whole(r), v.len, v.from)
		}
		return r.ts.of("slice", v.mem.whole(r), v.len)
	case *array:
		return v.mem.whole(r)
	case *ref:
		return r.address(v)
	case tuple:
		return r.ts.of("results", r.termsOf(v)...)
	case *closure:
		return r.function(v)
	case *bound:
		return r.ts.of("method "+v.fn.FullName(), r.termOf(v.recv))
	case *reading:
		return v.of
	case *pointer:
		return r.addressOf(v.at)
	case spread:
		return r.ts.of("slice", r.ts.of("list", r.termsOf(v)...), r.ts.int(len(v)))
	}
	panic(stop{"a value that can't be handed on"})
}

func (r *run) termsOf(vs []value) []*term {
	ts := make([]*term, len(vs))
	for i, v := range vs {
		ts[i] = r.termOf(v)
	}
	return ts
}

// function returns a term for a function: what it is written as, whatever its variables are called, and the values of
// those around it that it uses.
func (r *run) function(c *closure) *term {
	if c.env == nil {
		return r.ts.of("func " + c.name)
	}
	var args []*term
	var form strings.Builder
	numbers := make(map[types.Object]int)
	ast.Inspect(c.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil:
			form.WriteByte(')')
		case *ast.Ident:
			obj := c.fn.Info.ObjectOf(n)
			v, ok := obj.(*types.Var)
			if !ok || v.IsField() {
				form.WriteString(n.Name)
				break
			}
			if numbers[obj] == 0 {
				numbers[obj] = len(numbers) + 1
				if cell := c.env.lookup(obj); cell != nil && (v.Pos() < c.body.Pos() || c.body.End() <= v.Pos()) {
					args = append(args, r.termOf(r.get(cell)))
				}
			}
			fmt.Fprintf(&form, "$%d", numbers[obj])
		case *ast.BasicLit:
			form.WriteString(n.Value)
		case *ast.BinaryExpr:
			form.WriteString(n.Op.String())
		case *ast.UnaryExpr:
			form.WriteString(n.Op.String())
		case *ast.AssignStmt:
			form.WriteString(n.Tok.String())
		case *ast.IncDecStmt:
			form.WriteString(n.Tok.String())
		case *ast.BranchStmt:
			form.WriteString(n.Tok.String())
		}
		if n != nil {
			fmt.Fprintf(&form, "%T(", n)
		}
		return true
	})
	if c.recv != nil {
		args = append(args, r.termOf(c.recv))
	}
	return r.ts.of("func "+form.String(), args...)
}

// zero returns the zero value of t.
func (r *run) zero(t types.Type) value {
	if tensorapi.IsNumber(t) {
		return r.zero(types.Typ[types.Float64])
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		rec := &record{typ: t}
		for f := range u.Fields() {
			rec.fields = append(rec.fields, r.zero(f.Type()))
		}
		return rec
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return r.ts.bool(false)
		case u.Info()&types.IsNumeric != 0:
			return r.ts.int(0)
		case u.Info()&types.IsString != 0:
			return r.ts.of(`""`)
		}
	case *types.Slice:
		return &list{mem: &memory{content: r.ts.of("list")}, len: r.ts.int(0)}
	case *types.Array:
		return r.ts.of("zeros")
	}
	return r.ts.of("nil")
}

// compared returns a == b for values that are more than terms.
func (r *run) compared(x, y value, kind string) *term {
	if t, ok := x.(*term); ok && t.op == "recovered" && isNil(y) {
		return r.ts.bool(false)
	}
	if t, ok := x.(*term); ok && t.op == method+"Wait" && isNil(y) {
		return r.ts.bool(!r.contains(t))
	}
	if isMade(x) && isNil(y) || isMade(y) && isNil(x) {
		return r.ts.bool(false)
	}
	if l, ok := x.(*list); ok && isNil(y) {
		return r.ts.binary(token.EQL, "int", l.len, r.ts.int(0)) // of the same cases: nil or made
	}
	if l, ok := y.(*list); ok && isNil(x) {
		return r.ts.binary(token.EQL, "int", l.len, r.ts.int(0))
	}
	return r.ts.binary(token.EQL, kind, r.termOf(x), r.termOf(y))
}

// isMade reports whether v is a pointer to an object, a function or a map, which is not nil.
func isMade(v value) bool {
	switch v := v.(type) {
	case *ref, *pointer, *closure, *bound, native:
		return true
	case *list:
		return v.isMap
	}
	return false
}

func isNil(v value) bool {
	t, ok := v.(*term)
	return v == nil || ok && t.op == "nil"
}
