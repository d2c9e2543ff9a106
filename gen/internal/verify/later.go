package verify

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// This file says what the calls mean that generated code makes. It is all that the check knows of rewrites.

const (
	tensorPath = load.RuntimePath + "/tensor"
	method     = "(*" + tensorPath + ".Tensor)."
	item       = method + "Item"
	itemInt    = method + "ItemInt"
)

// A later is a backlog: see asyncrt.Later.
type later struct {
	backlog   []*entry
	taken     *entry // the test whose exit was taken and is not reported yet
	places    []*place
	passed    int // how many tests were false in this loop
	inside    bool
	holding   []value // what the places held when the running function was queued
	iterating bool
	told      *entry
	isClosed  bool

	compared, unlike, asked bool // see Later.Alike
}

// An entry is a function of a backlog, or a test.
type entry struct {
	do     value
	isTest bool
	state  value
	cells  *term
	held   []value
}

// A reading is a Read: a tensor, or a number, that a function of a backlog may look at.
type reading struct {
	of       *term
	isNumber bool
}

// An elements stands for all elements of a slice, see asyncrt.Elems.
type elements struct {
	of  value
	typ types.Type
}

// holdElements returns what the elements of a slice hold.
func (f *frame) holdElements(e *elements) value {
	if l, ok := e.of.(*list); ok {
		l.mem.flatten(f.run)
		return l.mem.content
	}
	return f.mem(f.p.elemClass(e.typ), f.p.typeName(e.typ))
}

// restoreElements takes back what has been stored into the elements of a slice since they held that.
func (f *frame) restoreElements(e *elements, held *term) {
	if l, ok := e.of.(*list); ok {
		l.mem.content, l.mem.parts = held, nil
		return
	}
	class, slice := f.p.elemClass(e.typ), f.term(e.of)
	var since []*term
	now := f.mem(class, f.p.typeName(e.typ))
	for ; now != held && now.op == "store"; now = now.args[0] {
		if now.args[1].op != "at" || now.args[1].args[0] != slice {
			since = append(since, now)
		}
	}
	for _, s := range slices.Backward(since) {
		held = f.ts.store(held, s.args[1], s.args[2])
	}
	f.memory[class] = held
}

// A rows is what Later.Rows and asyncrt.MapRows return.
type rows struct {
	of *closure
	n  *term // how many
}

func (l *later) queue(r *run, e *entry) {
	e.cells = r.cells
	if l.taken != nil {
		return
	}
	if e.held = l.holding; !l.inside {
		e.held = r.readAll(l.places)
	}
	l.backlog = append(l.backlog, e)
}

func (r *run) readAll(places []*place) (vs []value) {
	for _, p := range places {
		vs = append(vs, clone((&frame{run: r}).read(p)))
	}
	return vs
}

func (r *run) writeAll(places []*place, vs []value) {
	for i, v := range vs {
		(&frame{run: r}).write(places[i], v)
	}
}

// some runs those functions whose values happen to have arrived, and those for which there is no more room.
func (l *later) some(r *run) {
	for len(l.backlog) > 0 && r.ask(question{asksRoom, nil, len(l.backlog)}) {
		l.next(r)
	}
	for len(l.backlog) > 0 && r.happens(2) {
		l.next(r)
	}
}

// tests is how many tests wait.
func (l *later) tests() (n int) {
	for _, e := range l.backlog {
		if e.isTest {
			n++
		}
	}
	return n
}

// isAhead reports whether the loop runs ahead of more tests than it may: half as many as have been false, or, so that
// short loops do it, nearly as many.
func (l *later) isAhead(r *run) bool {
	n := l.tests()
	switch {
	case n == 0 || !l.unlike && n <= l.passed/2:
		return false
	case l.unlike || n > l.passed-1:
		return true
	}
	return r.ask(question{asksAhead, nil, n})
}

func (l *later) all(r *run) {
	for len(l.backlog) > 0 {
		l.next(r)
	}
}

// next runs the function at the front. What it queues comes before the rest.
func (l *later) next(r *run) {
	e, rest := l.backlog[0], l.backlog[1:]
	inside, holding := l.inside, l.holding
	l.backlog, l.inside, l.holding = nil, true, e.held
	r.entries++
	returned := false
	defer func() {
		l.inside, l.holding = inside, holding
		r.entries--
		if !returned && !inside {
			r.writeAll(l.places, e.held)
			l.taken = nil
		}
	}()
	result := (&frame{run: r}).apply(e.do, nil, nil)
	returned = true
	if e.isTest {
		if r.decide(r.termOf(result)) {
			l.taken, l.backlog = e, nil
			return
		}
		l.passed++
	}
	l.backlog = append(l.backlog, rest...)
}

func (l *later) report(r *run, t types.Type) tuple {
	e := l.taken
	if e == nil {
		return tuple{r.zero(t), r.ts.bool(false)}
	}
	l.taken, l.passed = nil, 0
	l.compared, l.unlike, l.asked = false, false, false
	if l.iterating {
		l.told = e
	}
	r.cells = e.cells
	r.writeAll(l.places, e.held)
	return tuple{e.state, r.ts.bool(true)}
}

func (l *later) close(r *run) {
	l.isClosed = true
	defer func() {
		if len(l.backlog) > 0 {
			l.close(r)
		}
	}()
	l.all(r)
	if l.taken != nil {
		l.report(r, types.NewStruct(nil, nil))
	}
}

func (l *later) iterate(r *run, f value, t types.Type) (result tuple) {
	l.iterating = true
	returned := false
	defer func() {
		l.iterating, l.told = false, nil
		if returned {
			return
		}
		p := recover()
		if _, isRaise := p.(raise); !isRaise {
			panic(p)
		}
		if l.all(r); l.taken == nil {
			panic(p)
		}
		result = l.report(r, t)
	}()
	(&frame{run: r}).apply(f, nil, nil)
	returned = true
	if l.told != nil {
		return tuple{l.told.state, r.ts.bool(true)}
	}
	return tuple{r.zero(t), r.ts.bool(false)}
}

// runtime calls what only generated code calls, and what numbers are computed by. It reports whether fn is that.
func (f *frame) runtime(fn *types.Func, known *known, recv value, args []value, e *ast.CallExpr) (value, bool) {
	switch recv := recv.(type) {
	case *later:
		return f.ofLater(recv, fn.Name(), args, e), true
	case *reading:
		return f.ofRead(recv, fn.Name(), args, e), true
	case *rows:
		return f.ofRows(recv, fn.Name(), args, e), true
	case *ref:
		if v, ok := f.read(&place{cell: recv.cell, path: recv.path}).(*reading); ok {
			return f.ofRead(v, fn.Name(), args, e), true
		}
	}
	switch known.name {
	case load.RuntimePath + ".NewLater":
		l := &later{}
		f.run.laters = append(f.run.laters, l)
		return l, true
	case load.RuntimePath + ".Const", tensorPath + ".Const", load.RuntimePath + ".ConstInt", tensorPath + ".ConstInt":
		return args[0], true
	case load.RuntimePath + ".ConstInts", tensorPath + ".ConstInts":
		if l, ok := args[0].(*list); ok {
			return &list{mem: &memory{content: l.mem.content, parts: maps.Clone(l.mem.parts)}, len: l.len}, true
		}
		return args[0], true
	case load.RuntimePath + ".Either", tensorPath + ".Either":
		f.either(args)
		return nil, true
	case load.RuntimePath + ".MapRows":
		return &rows{f.rowFunction(args[1], e), f.term(args[0])}, true
	case load.RuntimePath + ".Var":
		return args[0], true
	case load.RuntimePath + ".Elems":
		return &elements{args[0], f.typeOf(e.Args[0]).Underlying().(*types.Slice).Elem()}, true
	case load.RuntimePath + ".ItemOf", load.RuntimePath + ".SliceOf":
		x := args[0].(*reading)
		f.looks(x.of)
		return f.ts.of(tensorPath+"."+fn.Name()+" "+f.p.typeName(f.typeOf(e)), x.of), true
	case tensorPath + ".ItemOf", tensorPath + ".SliceOf":
		x := f.term(args[0])
		f.reads(x)
		return f.ts.of(known.name+" "+f.p.typeName(f.typeOf(e)), x), true
	}
	if known.ofNumber {
		return f.number(fn, fn.Signature().Recv().Type(), f.termsOfArgs(recv, args), e), true
	}
	return nil, false
}

func (f *frame) ofLater(l *later, method string, args []value, e *ast.CallExpr) value {
	state := func() types.Type {
		if t, ok := f.typeOf(e).(*types.Tuple); ok {
			return t.At(0).Type()
		}
		return types.NewStruct(nil, nil)
	}
	switch method {
	case "Ahead", "KeepsReads":
		return l
	case "Read":
		return &reading{of: f.term(args[0])}
	case "ReadF64", "ReadI64":
		return &reading{of: f.term(args[0]), isNumber: true}
	case "Do":
		l.queue(f.run, &entry{do: args[0]})
		l.some(f.run)
		return nil
	case "Poll":
		l.some(f.run)
		return nil
	case "BreakIf":
		if l.taken == nil {
			l.some(f.run)
		}
		if l.taken == nil {
			l.queue(f.run, &entry{do: args[0], isTest: true, state: clone(args[1])})
			l.some(f.run)
			for l.isAhead(f.run) {
				l.next(f.run)
			}
		}
		return l.report(f.run, state())
	case "Flush":
		l.all(f.run)
		if !l.asked {
			l.compared, l.unlike = false, false
		}
		l.asked = false
		result := l.report(f.run, state())
		l.passed = 0
		return result
	case "Iterate":
		return l.iterate(f.run, args[0], state())
	case "Alike", "Floats":
		is := !f.happens(4)
		if method == "Alike" {
			is = is && l.compared // in the first iteration there is nothing to compare with
			l.compared = true
		}
		l.unlike, l.asked = !is, !is
		return f.ts.bool(is)
	case "Rows":
		return &rows{f.rowFunction(args[1], e), f.term(args[0])}
	case "Undo":
		f.undo(l, args, e)
		return nil
	}
	f.stop(e, "calls Later."+method)
	return nil
}

// undo adds places to those that l restores.
func (f *frame) undo(l *later, args []value, e *ast.CallExpr) {
	var vs []value
	switch a := args[0].(type) {
	case spread:
		vs = a
	case *list:
		vs = nil
		if n, ok := a.len.asInt(); !ok || n > 0 {
			f.stop(e, "places that are not known")
		}
	}
	if len(vs) == 0 {
		l.places = nil
	}
	for _, v := range vs {
		switch v := v.(type) {
		case *ref:
			l.places = append(l.places, &place{cell: v.cell, path: v.path})
		case *pointer:
			l.places = append(l.places, v.at)
		case *elements:
			l.places = append(l.places, &place{all: v})
		default:
			f.stop(e, "a place that is not known")
		}
	}
}

func (f *frame) ofRead(x *reading, name string, args []value, e *ast.CallExpr) value {
	switch {
	case x.isNumber && (name == "Item" || name == "ItemInt"):
		f.looks(x.of)
		return x.of
	case x.isNumber:
		f.stop(e, "calls Read."+name+" of a number")
	case name == "Err":
		return f.ts.of(method+"Wait", x.of)
	case name == "String", name == "MarshalJSON", name == "LogValue":
	default:
		f.reads(x.of)
	}
	return f.ts.of(method+name, append([]*term{x.of}, f.termsOfArgs(nil, args)...)...)
}

// reads notes that a tensor is read by the program itself.
func (f *frame) reads(x *term) {
	f.run.raised = append(f.run.raised, f.ts.of(unread, x))
	f.looks(x)
}

// rowFunction is the function of one row, with the values that its variables have now or, in some runs, when it runs.
func (f *frame) rowFunction(v value, e *ast.CallExpr) *closure {
	c, ok := v.(*closure)
	if !ok {
		f.stop(e, "a function of rows that is not known")
	}
	if f.happens(2) {
		copied := *c
		copied.env = c.env.copied()
		return &copied
	}
	return c
}

func (f *frame) ofRows(x *rows, name string, args []value, e *ast.CallExpr) value {
	switch name {
	case "Detach":
		return x
	case "Map":
		return &rows{f.rowFunction(args[0], e), x.n}
	case "This":
		return f.ofRow(x, f.row)
	case "Row":
		return f.ofRow(x, f.term(args[0]))
	case "Item", "ItemInt", "At":
		t := f.ofRow(x, f.term(args[0]))
		if name == "At" {
			return &reading{of: t}
		}
		f.looks(t)
		return f.ts.of(method+name, t)
	}
	f.stop(e, "calls "+name+" of rows")
	return nil
}

func (f *frame) ofRow(x *rows, j *term) *term {
	if is := f.ts.binary(token.LSS, "int", j, x.n); !f.decide(is) {
		f.run.raise(f.ts.of("fails: no such row", is))
	}
	outer := f.row
	f.run.row = j
	defer func() { f.run.row = outer }()
	row := native(func(r *run, args []value) value {
		t := r.ts.of(method+"Row", r.termOf(args[0]), j)
		r.mayFail(mistake, t)
		return t
	})
	return f.term(f.run.call(x.of, []value{row}))
}

// either runs both sides and keeps what one of them sets, as the device decides. If a value fails that the other side
// computes with, what it keeps has failed, too.
func (f *frame) either(args []value) {
	cond := f.term(args[0])
	chosen := f.decide(cond)
	var places []*place
	rated := make(map[*term]bool) // optimisers
	switch vs := args[3].(type) {
	case *list: // nothing but optimisers
		for _, t := range vs.mem.content.args {
			rated[t] = true
		}
	case spread:
		for _, v := range vs {
			switch v := v.(type) {
			case *ref:
				places = append(places, &place{cell: v.cell, path: v.path})
			case *term:
				rated[v] = true
			default:
				panic(stop{"a choice of what is not known"})
			}
		}
	}
	side := func(v value) {
		if !isNil(v) {
			f.apply(v, nil, nil)
		}
	}
	before, cells := f.readAll(places), f.run.cells
	vain, kept := args[2], args[1]
	if !chosen {
		vain, kept = kept, vain
	}
	raised, fails, also, outer := f.raised, f.fails, f.also, f.vain
	f.run.fails, f.run.also, f.run.vain = nil, nil, make(map[*term]bool)
	side(vain)
	computed := f.vain
	f.run.raised, f.run.fails, f.run.also, f.run.vain = raised, fails, also, outer
	// What the side computes itself may have failed elsewhere, where it was computed once more. Here it fails if an
	// operand has.
	spoils := fails != nil && !(fails.op == unread && computed[fails.args[0]] && f.areGood(fails.args[0].args, cond))
	others := f.readAll(places)
	spoiled := spoils && f.contains(f.run.cells)
	for t := f.run.cells; t != cells; t = t.args[0].args[2] { // back to what they were
		if t.op != "changed" || t.args[0].op != setRate || !rated[t.args[0].args[0]] {
			panic(stop{"a choice of what is not given back"})
		}
	}
	f.run.cells = cells
	f.writeAll(places, before)
	side(kept)
	if spoiled && !f.contains(f.run.cells) {
		f.run.cells = f.ts.of("spoiled", f.run.cells)
	}
	for i, p := range places {
		other, isTerm := others[i].(*term)
		if !isTerm || others[i] == before[i] {
			continue
		}
		for _, operand := range other.args {
			if f.held[operand] && f.p.api.IsTensor(p.cell.typ) { // nobody else may read it
				f.run.raised = append(f.run.raised, f.ts.of(unread, operand))
			}
		}
		if now := f.term(f.read(p)); spoils && f.contains(other) && !f.contains(now) {
			f.write(p, f.ts.of("spoiled", now, other))
		}
	}
}

// areGood reports whether none of ts has failed, where a choice has been made by a condition: it would have been seen
// there, or in a read before.
func (f *frame) areGood(ts []*term, cond *term) bool {
	return !slices.ContainsFunc(ts, func(t *term) bool {
		switch {
		case t.c != nil || isOf(cond, t):
			return false
		case t.op == "list" || t.op == "slice":
			return !f.areGood(t.args, cond)
		}
		return !slices.ContainsFunc(f.raised, func(r *term) bool { return r.op == unread && isOf(r.args[0], t) })
	})
}

// isOf reports whether t was made of part, or is part.
func isOf(t, part *term) bool {
	seen := make(map[*term]bool)
	var is func(t *term) bool
	is = func(t *term) bool {
		if t == part {
			return true
		}
		if seen[t] || t.id < part.id { // a term is made after those that it is of
			return false
		}
		seen[t] = true
		return slices.ContainsFunc(t.args, is)
	}
	return is(t)
}

// truth is the operator that makes a number of a condition: 1 if it is true, else 0.
const truth = "truth"

// number computes with numbers as Go does with those of the host.
func (f *frame) number(fn *types.Func, t types.Type, ts []*term, e *ast.CallExpr) value {
	kind := "float64"
	if tensorapi.IsInteger(t) {
		kind = "int"
	}
	name := fn.Name()
	switch name { // of numbers
	case "Item", "ItemInt":
		f.looks(ts[0])
		return ts[0]
	case "Neg":
		return f.ts.of("-:"+kind, ts[0])
	case "Not":
		return f.ts.not(ts[0])
	case "I64": // of a condition
		switch {
		case ts[0].isTrue():
			return f.ts.int(1)
		case ts[0].isFalse():
			return f.ts.int(0)
		}
		return f.ts.of(truth, ts[0])
	case "And":
		return f.ts.binary(token.LAND, "bool", ts[0], ts[1])
	case "Or":
		return f.ts.binary(token.LOR, "bool", ts[0], ts[1])
	case "Max", "Min":
		return f.ts.of(strings.ToLower(name)+":"+kind, ts...)
	case "MathMax", "MathMin":
		return f.ts.of("math."+strings.TrimPrefix(name, "Math"), ts...)
	case "Float32":
		if c := ts[0].c; c != nil && c.Kind() == constant.Int && holds(types.Typ[types.Float32], c) {
			return ts[0] // as for converted
		}
		return f.ts.of("rounded", ts...)
	case "Full":
		if tensorapi.IsInteger(fn.Signature().Recv().Type()) {
			return f.operation(tensorPath+".FullInt", ts)
		}
		return f.filled(tensorPath+".Full", ts)
	case "Tensor":
		return f.operation(tensorPath+".From", append([]*term{f.ts.of("slice", f.ts.of("list", ts[0]), f.ts.int(1))}, ts[1:]...))
	}
	for _, op := range []token.Token{token.ADD, token.SUB, token.MUL, token.QUO, token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ} {
		if m, ok := tensorapi.NumberOperator(op.String()); ok && m == name {
			return f.ts.binary(op, kind, ts[0], ts[1])
		}
	}
	if m, ok := tensorapi.NumberFunc("math." + name); ok && m == name {
		return f.ts.of("math."+name, ts...)
	}
	f.stop(e, "calls "+name+" of a number")
	return nil
}
