// Package verify compares a function with what the generator has made of it, by executing both.
//
// Values are terms: a parameter, or what an operation makes of other terms. Two values are the same if they were made
// in the same way. A condition of which only the term is known turns out one way or the other as a random choice says,
// which both functions share. The functions of a backlog run at once, as late as they may, or at random times in
// between. Whatever the choices are, the outside must see the same: what is printed, in which order, the results, what
// memory and cells hold afterwards, and where the function panics if an operation or a read fails. On some paths
// failures are tried, up to twenty of them one by one.
//
// The check knows nothing of plans or rewrites. Of generated code it knows what the calls mean (later.go). It shares
// with the planner what functions of the libraries do: packages facts and tensorapi. Functions of the program are
// executed. What can't be executed is an error of its own, see Unknown.
//
// This is a test with many inputs, and no proof: loops have few iterations, and paths are drawn at random. For a
// given pair of functions it always gives the same answer. Five things are left to the planner's proofs: that shapes
// fit where a loop runs past its end, that the side of a choice which is not taken does not fail, that pointers which
// are read from memory lead to different objects (those that are parameters may lead to one), which elements a slice
// of an array shares with the array, and what cells hold after a failure.
package verify

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// A Func is a function with the types of its package.
type Func struct {
	Decl *ast.FuncDecl
	Info *types.Info
	Fset *token.FileSet
}

// A Program finds what functions call.
type Program struct {
	api      *tensorapi.Profile
	bodyOf   func(fn *types.Func) *Func
	declared func(obj types.Object) (load.Effects, bool)

	types   map[types.Type]*named
	classes map[types.Type][]class
	known   map[*types.Func]*known
	calls   map[*ast.CallExpr]*callee
	moved   map[*ast.ForStmt]bool // see movedTests
}

// A known is what tables say of a function.
type known struct {
	name  string // in full, without type parameters
	api   tensorapi.Func
	isAPI bool
	fact  *facts.Entry

	ofNumber  bool // a method of a number that may not have been computed yet
	usesCells bool // of a function of the library: see Program.usesCells
}

func (p *Program) knownOf(fn *types.Func) *known {
	k := p.known[fn]
	if k == nil {
		k = &known{name: fn.Origin().FullName(), fact: facts.Of(fn)}
		if from := strings.IndexByte(k.name, '['); from >= 0 {
			k.name = k.name[:from] + k.name[strings.LastIndexByte(k.name, ']')+1:]
		}
		k.api, k.isAPI = p.api.Lookup(fn)
		r := fn.Signature().Recv()
		k.ofNumber, k.usesCells = r != nil && tensorapi.IsNumber(r.Type()), k.isAPI && p.usesCells(fn)
		p.known[fn] = k
	}
	return k
}

// NewProgram returns a Program. body returns nil for a function of which the body is not known; declared returns what
// directives and tables say of a function, or of a parameter, a field or a type of functions.
func NewProgram(body func(fn *types.Func) *Func, declared func(obj types.Object) (load.Effects, bool)) *Program {
	return &Program{tensorapi.Ours(), body, declared, make(map[types.Type]*named), make(map[types.Type][]class), make(map[*types.Func]*known), make(map[*ast.CallExpr]*callee), nil}
}

func (p *Program) body(fn *types.Func) *Func { return p.bodyOf(fn.Origin()) }

// Unknown is the error of Same if a function can't be executed on terms.
var Unknown = errors.New("the function can't be executed on terms")

// How much is tried.
const (
	leastPaths  = 32  // choices of how conditions turn out
	mostPaths   = 150 // as long as there are statements that no path has executed
	patience    = 50  // but no more than this many in a row that find none
	schedules   = 4   // of backlogs, for each of the first paths
	everyWhen   = 8   // as many are the first paths; on others backlogs run as late as possible, and in one other way
	failedPaths = 12  // on which failures are tried
	failures    = 10  // on each
	fewestPaths = 8   // of functions that take long
	mostSteps   = 2e6 // statements and expressions, after which no more is tried: a second
)

// Same returns nil if generated does what original does, an error that wraps [Unknown] if that can't be said, and
// otherwise how they differ.
func (p *Program) Same(original, generated *Func) error {
	p.moved = movedTests(original.Decl, generated.Decl)
	c := &comparison{p, newTerms(), original, generated, make(map[ast.Stmt]bool), 0, make(map[beginning]*story)}
	compared, last := 0, uint64(0) // the last path that executed what no other did
	for path := range uint64(mostPaths) {
		isEnough := path >= leastPaths && (path > last+patience || c.isCovered()) || path >= fewestPaths && c.isLong()
		if isEnough && (compared > 0 || c.steps > 4*mostSteps) {
			break
		}
		before := len(c.covered)
		n, err := c.path(path)
		if err != nil {
			return err
		}
		if compared += n; len(c.covered) > before {
			last = path
		}
	}
	if compared == 0 {
		return fmt.Errorf("%w: no path ends", Unknown)
	}
	return nil
}

// A comparison is one call of Same.
type comparison struct {
	*Program
	ts                  *terms
	original, generated *Func
	covered             map[ast.Stmt]bool // that paths which were compared have executed
	steps               int
	stories             map[beginning]*story
}

// A beginning is what tells the runs of a comparison apart, but for the answers that they get.
type beginning struct {
	fn          *Func
	aliases     bool
	fails, also *term
}

func (c *comparison) isLong() bool { return c.steps > mostSteps }

// run executes one of the functions, unless it has and knows how that ends.
func (c *comparison) run(fn *Func, shared *choices, when schedule, fail ...*term) *outcome {
	from := beginning{fn: fn, aliases: shared.aliases}
	if len(fail) > 0 {
		from.fails, from.also = fail[0], fail[len(fail)-1]
	}
	begin := c.stories[from]
	if begin == nil {
		begin = new(story)
		c.stories[from] = begin
	}
	o, told := begin.goOn(shared, when)
	if o == nil {
		o = c.execute(c.ts, from, shared, when, c.covered, begin, told)
	}
	c.steps += o.steps
	return o
}

// path compares the functions on one path and returns how often it did.
func (c *comparison) path(path uint64) (compared int, err error) {
	shared := choicesOf(path)
	want := c.run(c.original, shared, schedule{})
	if want.isCut {
		return 0, nil
	}
	if want.stopped != "" {
		return 0, fmt.Errorf("%w: %s", Unknown, want.stopped)
	}
	var past []*term // what may fail in the generated function, and then what may only there
	late := make(map[*term]bool)
	for s := range schedules {
		if path >= everyWhen && s < schedules-1 && s != int(path%(schedules-1)) {
			continue
		}
		got := c.run(c.generated, shared, scheduled(path, s))
		if got.isCut {
			continue
		}
		if err := c.differ(want, got); err != nil {
			return 0, err
		}
		compared++
		past = append(past, got.raised...)
		maps.Copy(late, got.late)
	}
	if path >= failedPaths {
		return compared, nil
	}
	try := func(s int, fail ...*term) error {
		if c.isLong() {
			return nil
		}
		want := c.run(c.original, shared, schedule{}, fail...)
		got := c.run(c.generated, shared, scheduled(path, s), fail...)
		if want.isCut || got.isCut {
			return nil
		}
		if want.stopped != "" {
			return fmt.Errorf("%w: %s", Unknown, want.stopped)
		}
		if isNilFailure(want.panics) && got.panics == fail[0] || isNilFailure(got.panics) && want.panics == fail[0] {
			return nil // Go leaves open which comes first in p.x += f()
		}
		if err := c.differ(want, got); err != nil {
			return fmt.Errorf("if %v: %w", fail, err)
		}
		return nil
	}
	both := unique(want.raised)
	for i, fails := range some(both) {
		if err := try(i+int(path), fails); err != nil {
			return 0, err
		}
		if fails.op != unread || !slices.Contains(past, fails) {
			continue
		}
		// Of two failures the first is seen. Late ones may be looked at after operations that are mistakes.
		for _, next := range both[slices.Index(both, fails)+1:] {
			if next.op != unread && !(isMistake(next) && late[fails.args[0]]) {
				if err := try(i+int(path), fails, next); err != nil {
					return 0, err
				}
				break
			}
		}
	}
	past = slices.DeleteFunc(unique(past), func(t *term) bool { return slices.Contains(both, t) })
	for _, fails := range some(past) {
		if err := try(schedules-1, fails); err != nil {
			return 0, err
		}
	}
	return compared, nil
}

// choicesOf returns how the conditions of a path turn out. Paths differ in how often they are true.
func choicesOf(path uint64) *choices {
	only := 0
	if path%2 == 1 { // loops end in each of their first iterations
		only = 1 + int(path/2)%16
	}
	c := &choices{
		random:     rand.New(rand.NewPCG(path, 1)),
		only:       only,
		known:      make(map[*term]bool),
		percent:    []int{50, 5, 85, 20}[path/2%4],
		onwards:    []int{90, 95, 60, 30}[path/2%4],
		nils:       []int{2, 10, 2, 50}[path/2%4],
		iterations: []int{5, 14, 8}[path%3],
		longest:    []int{24, 60, 24, 40, 130}[path%5],
		aliases:    path%5 == 2,
	}
	if path == 14 || path == 30 { // loops are long: programs compare how often they went on with constants
		c.percent, c.iterations, c.longest, c.onwards = 100*int(path/16), 70, 130, 100
	}
	if path%16 == 12 { // so that programs with loops in loops in loops come to their end
		c.percent, c.iterations, c.longest = 50, 2, 3
	}
	if path%4 == 3 { // loops end by themselves after the iteration of the one true condition, or after the next one
		n := only + int(path/8)%2
		if path%8 == 7 { // where there are two in an iteration
			n = only/2 + int(path/8)%2
		}
		c.iterations, c.longest, c.onwards = n, n, 100
	}
	return c
}

// scheduled returns the i-th way to run backlogs: as early as possible, as late as possible, or in between.
func scheduled(path uint64, i int) schedule {
	s := schedule{window: i % schedules}
	switch {
	case s.window == schedules-1:
		s.ahead = s.window
	case s.window > 0:
		s.random = rand.New(rand.NewPCG(path, uint64(i)))
	}
	return s
}

// isCovered reports whether all statements of both functions have been executed, literals included.
func (c *comparison) isCovered() bool {
	for _, f := range []*Func{c.original, c.generated} {
		all := true
		ast.Inspect(f.Decl.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause, nil:
			case ast.Stmt:
				all = all && c.covered[n]
			}
			return all
		})
		if !all {
			return false
		}
	}
	return true
}

// differ returns how got differs from want, and notes what has been executed.
func (c *comparison) differ(want, got *outcome) error {
	if got.stopped != "" {
		return fmt.Errorf("%w: %s", Unknown, got.stopped)
	}
	maps.Copy(c.covered, want.covered)
	maps.Copy(c.covered, got.covered)
	return differ(want, got)
}

// isMistake reports whether t is the failure of an operation because of a mistake in the program. Where only the
// generated function executes the operation, past the end of a loop, the planner has proved that shapes fit.
func isMistake(t *term) bool { return t.op == mistake }

// some returns the first of ts and some of the others, at equal distances.
func some(ts []*term) []*term {
	if len(ts) <= failures {
		return ts
	}
	all := slices.Clone(ts[:failures/2])
	for i := range failures / 2 {
		all = append(all, ts[failures/2+i*(len(ts)-failures/2)/(failures/2)])
	}
	return all
}

func isNilFailure(t *term) bool { return t != nil && t.op == failsNil }

func unique(ts []*term) (all []*term) {
	seen := make(map[*term]bool)
	for _, t := range ts {
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

// An outcome is what can be seen of a run.
type outcome struct {
	trace   []*term
	results *term
	panics  *term // nil: it has returned
	memory  map[string]*term
	epoch   *term
	cells   *term
	random  map[*term]*term

	raised  []*term
	late    map[*term]bool
	covered map[ast.Stmt]bool
	steps   int
	stopped string // why the run could not go on
	isCut   bool

	hasFailed bool // something failed that can fail
	isOpen    bool // a backlog is not closed
}

// execute runs a function. Nothing is known of its parameters. It notes which statements it covers, but for those in
// known. It adds the run to the story that starts at begin. The answers to the run's first questions are in told.
func (p *Program) execute(ts *terms, from beginning, shared *choices, when schedule, known map[ast.Stmt]bool, begin *story, told []bool) (o *outcome) {
	fn := from.fn
	r := &run{p: p, ts: ts, choices: shared, when: when, fails: from.fails, also: from.also, same: make(map[string]value), memory: make(map[string]*term), cross: make(map[string]*term),
		epoch: ts.of("memory"), cells: ts.of("cells"), news: make(map[*term]int), random: make(map[*term]*term), asked: make(map[string]int), late: make(map[*term]bool), held: make(map[*term]bool), known: known, covered: make(map[ast.Stmt]bool), told: told, at: begin}
	o = &outcome{}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case raise:
			o.panics = p.v
		case stop:
			o.stopped = p.why
		case cut:
			o.isCut = true
		default: // a mistake here must not stop the generator
			o.stopped = fmt.Sprint(p)
		}
		o.trace, o.memory, o.epoch, o.cells, o.random = r.trace, r.memory, r.epoch, r.cells, r.random
		o.raised, o.late, o.covered, o.steps, o.hasFailed = r.raised, r.late, r.covered, r.steps, r.hasFailed
		o.isOpen = slices.ContainsFunc(r.laters, func(l *later) bool { return !l.isClosed })
		r.at.end = o
	}()
	c := &closure{typ: fn.Decl.Type, body: fn.Decl.Body, fn: fn, name: fn.Decl.Name.Name}
	n := 0
	parameter := func(field *ast.Field) value {
		n++
		return r.parameter(ts.of(fmt.Sprintf("parameter %d", n)), fn.Info.TypeOf(field.Type))
	}
	if fn.Decl.Recv != nil {
		c.env = (&frame{run: r, fn: fn}).receiverEnv(fn, parameter(fn.Decl.Recv.List[0]))
	}
	var args []value
	same := make(map[string]value) // by type: parameters that lead to memory may lead to the same
	for _, field := range fn.Decl.Type.Params.List {
		for range max(1, len(field.Names)) {
			name := p.typeName(fn.Info.TypeOf(field.Type))
			arg := parameter(field)
			if same[name] != nil && shared.aliases && leads(fn.Info.TypeOf(field.Type)) {
				arg = same[name]
			}
			same[name] = arg
			args = append(args, arg)
			if _, isTerm := arg.(*term); isTerm && shared.aliases && leads(fn.Info.TypeOf(field.Type)) {
				r.same[name] = arg
			}
		}
	}
	o.results = r.termOf(r.call(c, args))
	return o
}

// leads reports whether values of type t lead to memory.
func leads(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Slice, *types.Map:
		return true
	}
	return false
}

// parameter returns a value of type t of which nothing is known.
func (r *run) parameter(t *term, typ types.Type) value {
	if isStruct(typ) {
		rec := &record{typ: typ}
		for f := range typ.Underlying().(*types.Struct).Fields() {
			rec.fields = append(rec.fields, r.parameter(r.ts.of("field "+f.Name(), t), f.Type()))
		}
		return rec
	}
	return t
}

// differ returns how got differs from want.
func differ(want, got *outcome) error {
	for i := range max(len(want.trace), len(got.trace)) {
		switch {
		case i >= len(want.trace):
			return fmt.Errorf("it also does %v", got.trace[i])
		case i >= len(got.trace):
			return fmt.Errorf("it does not do %v", want.trace[i])
		case want.trace[i] != got.trace[i]:
			return fmt.Errorf("it does %v in place of %v", got.trace[i], want.trace[i])
		}
	}
	if got.isOpen {
		return errors.New("it does not close a backlog")
	}
	if want.panics != got.panics {
		return fmt.Errorf("it panics with %v instead of %v", got.panics, want.panics)
	}
	if want.results != got.results {
		return fmt.Errorf("it returns %v instead of %v", got.results, want.results)
	}
	if want.epoch != got.epoch {
		return fmt.Errorf("memory changes by %v instead of %v", got.epoch, want.epoch)
	}
	if want.panics != nil { // objects of the function are lost
		want.memory, got.memory = maps.Clone(want.memory), maps.Clone(got.memory)
		for _, o := range []*outcome{want, got} {
			for class, m := range o.memory {
				o.memory[class] = withoutNew(m)
			}
		}
	}
	classes := maps.Clone(want.memory)
	maps.Copy(classes, got.memory)
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		w, g := want.memory[class], got.memory[class]
		if w != g && (w != nil && g != nil || isChanged(w) || isChanged(g)) {
			return fmt.Errorf("%s hold %v instead of %v", strings.ReplaceAll(class, "\x00", " of type "), g, w)
		}
	}
	for of, state := range got.random {
		if strings.HasPrefix(of.op, "parameter ") && state != want.random[of] {
			return fmt.Errorf("%v is %v instead of %v", of, state, want.random[of])
		}
	}
	if !want.hasFailed && want.panics == nil && want.cells != got.cells {
		return fmt.Errorf("cells hold %v instead of %v", got.cells, want.cells)
	}
	return nil
}

// withoutNew returns the last store of m that is not into a new object, and what was before.
func withoutNew(m *term) *term {
	for m.op == "store" && strings.HasPrefix(m.args[1].op, "new ") {
		m = m.args[0]
	}
	return m
}

// isChanged reports whether memory holds something else than at the beginning.
func isChanged(m *term) bool {
	return m != nil && !strings.HasPrefix(m.op, "memory ")
}
