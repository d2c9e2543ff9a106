package fuzz

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	mutantFlag = flag.String("mutants", "", "make these mistakes, by a regular expression, and see that they are found: -mutants .")
	keepFlag   = flag.Bool("keep", false, "hunt those that are not found, and keep the program that finds each")
)

// A mutant is a mistake, made by replacing text that occurs once.
type mutant struct {
	name string
	file string
	old  string
	new  string
	// the program that finds it, or the names of tests as a regular expression; by default the
	// program that is called like it
	by   string
	unit string // a package whose own tests find it, if programs can't
	why  string // programs can't
}

const (
	locs      = "gen/internal/plan/locs.go"
	effects   = "gen/internal/plan/effects.go"
	deps      = "gen/internal/plan/deps.go"
	functions = "gen/internal/plan/function.go"
	aliases   = "gen/internal/plan/aliases.go"
	walks     = "gen/internal/plan/walk.go"
	calls     = "gen/internal/plan/calls.go"
	library   = "gen/internal/plan/std.go"
	summaries = "gen/internal/plan/analysis.go"
	variants  = "gen/internal/plan/lift.go"
	attempts  = "gen/rewrite/attempt.go"
	schedule  = "gen/rewrite/schedule.go"
	obstacles = "gen/rewrite/obstacles.go"
	region    = "gen/rewrite/region.go"
	namer     = "gen/rewrite/naming/reads.go"
	ways      = "gen/rewrite/ways.go"
	pastCells = "gen/rewrite/past/cells.go"
	lift      = "gen/rewrite/lift.go"
	emitter   = "gen/internal/emit/emit.go"
	later     = "runtime/later.go"
	fewBytes  = "they have enough memory for the backlog"
	breakIf   = "runtime/exit.go"
	opsFile   = "runtime/op/elementwise.go"
	viewsFile = "runtime/op/view.go"
	prims     = "device/kernel/prim.go"
	draws     = "device/kernel/random.go"
	casts     = "device/kernel/eval.go"
	folds     = "device/cpu/reduce.go"
	formats   = "runtime/tensor/format.go"
	tensorOps = "runtime/tensor/ops.go"
	generator = "runtime/tensor/random.go"

	arms        = "gen/rewrite/numbers/arms.go"
	raising     = "gen/rewrite/numbers/raise.go"
	writing     = "gen/rewrite/numbers/write.go"
	indices     = "gen/rewrite/numbers/integers.go"
	hoists      = "gen/rewrite/hoists.go"
	pastCalls   = "gen/rewrite/past/calls.go"
	pastHost    = "gen/rewrite/past/host.go"
	backlogs    = "gen/internal/verify/later.go"
	comparing   = "gen/internal/verify/verify.go"
	either      = "runtime/tensor/either.go"
	numbersFile = "runtime/tensor/f64.go"
	iterate     = "runtime/iterate.go"
	undoes      = "gen/rewrite/undo.go"
	giveBack    = "runtime/undo.go"

	outputOnly = "nothing that it looks at is wrong"
)

// mutants are mistakes in each part that what is rewritten depends on.
var mutants = []mutant{
	// The analysis.
	{name: "elements are never the same", file: locs,
		old: "func overlap(a, b Loc) bool {\n", new: "func overlap(a, b Loc) bool {\n\tif a.Kind == Elem && b.Kind == Elem {\n\t\treturn false\n\t}\n"},
	{name: "fields are never the same", file: locs,
		old: "func overlap(a, b Loc) bool {\n", new: "func overlap(a, b Loc) bool {\n\tif a.Kind == Field && b.Kind == Field {\n\t\treturn false\n\t}\n"},
	{name: "elements of maps are never the same", by: "maps", file: locs,
		old: "func overlap(a, b Loc) bool {\n", new: "func overlap(a, b Loc) bool {\n\tif a.Kind == MapElem && b.Kind == MapElem {\n\t\treturn false\n\t}\n"},
	{name: "what is put off may write what runs ahead reads", by: "flow", file: effects, old: "\tpairs(Flow, first.Writes, second.Reads)\n", new: ""},
	{name: "two writes may change places", by: "writes", file: effects, old: "\tpairs(Output, first.Writes, second.Writes)\n", new: ""},
	{name: "a write may overtake a read", by: "overtakes", file: effects, old: "\tpairs(Anti, first.Reads, second.Writes)\n", new: ""},
	{name: "every variable can be copied", by: "closures", file: deps,
		old: "c.First.Kind == Var && canCopy(c.First.Obj)", new: "c.First.Kind == Var"},
	{name: "deferred functions see nothing", by: "deferred", file: functions,
		old: "return facts != nil && (facts.address || facts.escapes || facts.inDefer || facts.inGo)", new: "return facts != nil && (facts.address || facts.inGo)"},
	{name: "closures see copies", by: "closures", file: functions, old: "lit.End() <= lv.Pos()) && f.uses(lit, lv) {\n", new: "lit.End() <= lv.Pos()) && lit == nil {\n"},
	{name: "parameters own what they lead to", by: "params", file: aliases,
		old: "ok[v] = v.Pos() >= f.Decl.Body.Pos() || f.fact(v).isResult", new: "ok[v] = true"},
	{name: "an alias is new memory", by: "fresh", file: aliases, old: "\t\treturn f.Info.Types[e].IsNil()\n", new: "\t\treturn true\n"},
	{name: "the right operand of && is always evaluated", by: "conditions", file: functions,
		old: "\t\t\tif (p.Op == token.LAND || p.Op == token.LOR) && p.Y == n {\n\t\t\t\treturn false\n", new: "\t\t\tif (p.Op == token.LAND || p.Op == token.LOR) && p.Y == n {\n\t\t\t\treturn true\n"},
	{name: "prints have no order", by: "sums", file: library, old: "\tif fact.Has(facts.Prints | facts.Stamps) {\n", new: "\tif fact.Has(facts.Stamps) {\n"},
	{name: "random numbers can be drawn later", by: "draws", file: calls,
		old: "\tcase tensorapi.Draw, tensorapi.Mutate:\n\t\tnote(&w.e.Enqueues, c)\n\t\tw.e.read(Loc{Kind: Cells}, c)\n\t\tw.e.write(Loc{Kind: Cells}, c)\n", new: "\tcase tensorapi.Draw, tensorapi.Mutate:\n"},
	{name: "append leaves elements alone", by: "appends", file: calls,
		old: "\t\tif l, ok := w.elementsOf(call.Args[0]); ok {\n\t\t\tw.touch(l, call.Args[0], w.e.write, \"changes what is behind\")\n\t\t}\n\t\tif call.Ellipsis.IsValid() {", new: "\t\tif call.Ellipsis.IsValid() {"},
	{name: "a variable is not reached through its address", by: "pointers", file: walks,
		old: "\t\t\trecord(w.memoryOf(v, e), c)\n", new: "\t\t\t_ = c\n"},
	{name: "increments read nothing and write nothing", by: "counts", file: walks,
		old: "\t\tw.update(s.X)\n", new: ""},
	{name: "calls of closures do nothing", by: "calls", file: calls,
		old: "\tw.outer().stmt(lit.Body)\n", new: "\t_ = lit\n"},
	{name: "input waits for nothing", by: "asks", file: summaries,
		old: "\t\tnote(&e.Barrier, Cause{Pos: pos, Text: \"may wait for the outside\", Code: Blocks})\n", new: "\t\t_ = pos\n"},
	{name: "callees write nothing", by: "reports", file: effects,
		old: "\tfor l, c := range callee.Writes {\n\t\te.write(l, through(c))\n\t}\n", new: ""},

	{name: "first parts of function literals do nothing", by: "first-parts", file: variants,
		old: "\targs.e.addCall(l.Ahead, call.Pos(), name)\n", new: ""},
	{name: "second parts of function literals do nothing", by: "second-parts", file: variants,
		old: "\tw.e.addCall(l.Late, call.Pos(), name)\n", new: ""},

	// The rewrites.
	{name: "what others see may run ahead", by: "shows", file: attempts,
		old: "len(u.Reads) > 0 || a.shows(u.Effects, u.Stmt) || ", new: "len(u.Reads) > 0 || "},
	{name: "nobody sees memory", by: "shows", file: schedule, old: "\treturn l.Kind == plan.World || l.IsMemory()\n", new: "\treturn l.Kind == plan.World\n"},
	{name: "operands are computed whether they are needed or not", by: "conditions", file: obstacles,
		old: "\t\tc := a.conditional(u, r)\n", new: "\t\tvar c *plan.Cause\n"},
	{name: "operands need nothing that is put off", by: "lengths", file: obstacles,
		old: "\t\tif !a.late[u] || len(u.Reads) == 0 && len(u.Held) == 0 && u.Stmt.Here == nil {\n\t\t\tcontinue\n\t\t}\n\t\tif c := plan.FirstOf(", new: "\t\tif true {\n\t\t\tcontinue\n\t\t}\n\t\tif c := plan.FirstOf("},
	{name: "nothing is copied", by: "counts", file: region,
		old: "first.Pos() <= v.Pos() && v.Pos() < last.End() || !a.changesAfter(v, first) {", new: "first != nil || last != nil {"},
	{name: "variables change only further down", by: "round", file: schedule,
		old: "\t\t\tif !declaredIn && at.Pos() < l.Node.End() {", new: "\t\t\tif false && !declaredIn && at.Pos() < l.Node.End() {"},
	{name: "variables change only in the next iteration", by: "counts", file: schedule,
		old: "\t\tif u.Stmt.Node.Pos() > at.Pos() || !a.loop.Node.Pos().IsValid() {\n\t\t\treturn true\n\t\t}\n", new: ""},
	{name: "computed operands share an entry with what comes before", by: "mistakes", file: region,
		old: "\t\treturn r.Plain == nil && !r.Fixed && (r.Rows", new: "\t\treturn false && !r.Fixed && (r.Rows"},
	{name: "a statement that runs now does not wait for those before", by: "asks", file: region,
		old: "\t\t\tr.Flushes = append(r.Flushes, s)\n", new: ""},
	{name: "a Read serves for good", by: "again", file: namer,
		old: "\t\tif from.Node.Pos() <= s.Node.Pos() && s.Node.Pos() <= to.Node.Pos() {\n\t\t\treturn false\n\t\t}\n", new: ""},
	{name: "a Read serves in the next iteration", by: "goes-on", file: namer,
		old: "\t\t\tif s.Within(l) {\n\t\t\t\treturn false\n\t\t\t}\n", new: "\t\t\t_ = l\n"},

	// Loops that values end, values that stay the same, functions that wait.
	{name: "variables are not given back after a break", by: "exits", file: ways,
		old: "\t\t\tif a.f.LiveAfter(v, a.loop.Node) {\n", new: "\t\t\tif false {\n"},
	{name: "a return gives what variables hold by then", by: "returns", file: ways,
		old: "\t\t\tcase inside || slices.Contains(a.past.Changed, v):\n", new: "\t\t\tcase inside:\n"},
	{name: "nothing comes round again", by: "comes-round", file: "gen/internal/plan/exit.go",
		old: "\t\t\treturn true // it comes round again\n", new: "\t\t\tcontinue\n"},
	{name: "cells don't say that they change", by: "exits", file: "runtime/tensor/cell.go",
		old: "\tif g := engine.Default().Changing(c); g != nil {\n", new: "\tif g := engine.Default().Changing(c); false {\n"},
	{name: "the generator of all does not say that it changes", by: "seeds", file: "runtime/tensor/random.go",
		old: "\tChanging(defaultGenerator)\n", new: ""},
	{name: "memory need not be given back", by: "memory", file: pastCells,
		old: "\t\t\treturn l.Kind == plan.Own && ", new: "\t\t\treturn false && l.Kind == plan.Own && "},
	{name: "what functions compute where they read it is one value", by: "sizes", file: namer,
		old: "return t.v == read.Plain && t.v != nil && n.visible(t, g, r)", new: "return t.v == read.Plain && n.visible(t, g, r)"},
	{name: "a loop in a function that is called in two parts runs where its result is made", by: "adds-up", file: lift,
		old: "\tg.Returns = last == body[len(body)-1] && ", new: "\tg.Returns = true || last == body[len(body)-1] && "},

	// Choices, round trips and indices.
	{name: "what fails on one side of a choice spoils nothing", by: "spoils", file: arms, old: "\t\t\t\tif !everywhere && !r.isLookedAt(e, v, s) {\n", new: "\t\t\t\tif false && !everywhere {\n"},
	{name: "everything has been looked at before a choice", by: "looked", file: arms, old: "\treturn at != nil && at.fine && !r.inner[v] && r.f.CanCopy(v)\n", new: "\treturn at != at || true\n"},
	{name: "the head of a choice raises nothing", by: "heads", file: "gen/rewrite/numbers/writechoice.go", old: "\t\t\traise += lhs.(*ast.Ident).Name + look(r.f.Info.TypeOf(lhs)) + \"; \"\n", new: "\t\t\t_ = lhs\n"},
	{name: "the device chooses the other tensor", by: "sides", file: either, old: "*v = c.Choose(a, b)", new: "*v = c.Choose(b, a)"},
	{name: "the device chooses the other number", by: "sides", file: either, old: "c.ChooseF64(x[i].(F64), y[i].(F64))", new: "c.ChooseF64(y[i].(F64), x[i].(F64))"},
	{name: "one side of a choice sees what the other has made", by: "sides", file: either, old: "\t\t\t\t*v = before[i].(*Tensor)\n", new: "\t\t\t\t_, _ = v, before[i]\n"},
	{name: "numbers raise nothing where they are read", by: "numbers", file: raising, old: "\t\t\tif !r.implied(s, v) {\n", new: "\t\t\tif false && !r.implied(s, v) {\n"},
	{name: "every operation may be on a side that is not taken", by: "not-taken", file: arms, old: "api.Kind == tensorapi.Op && (api.Batch == tensorapi.Batched || mayDivide[fn.Name()]):\n", new: "api.Kind == tensorapi.Op:\n"},
	{name: "integers are divided on both sides", by: "divides", file: either, old: "a.dtype == b.dtype && a.dtype.IsFloat() && ", new: "a.dtype == b.dtype && "},
	{name: "nobody can tell what runs before a number is looked at", by: "late-looks", file: raising, old: "\treturn !r.f.Shows(e)\n", new: "\treturn true\n"},
	{name: "the device does not round to a float32", by: "numbers", file: numbersFile, old: "\trounded := x.As(Float32)\n", new: "\trounded := x.As(Float64)\n"},
	{name: "numbers of the device change places", by: "numbers", file: numbersFile,
		old: "\ta, b := x.meet(y)\n\tdefer letGo(a, b)\n\treturn F64{t: ", new: "\tb, a := x.meet(y)\n\tdefer letGo(a, b)\n\treturn F64{t: "},
	{name: "a number that is not there is taken", by: "hastens", file: "runtime/internal/engine/hasten.go", old: "\treturn ready\n", new: "\treturn ready || ops >= 0\n"},
	{name: "results with names are numbers whoever recovers", file: "gen/rewrite/numbers/roundtrip.go", old: "\t\t\tcase r.f.Defers():\n", new: "\t\t\tcase false:\n", unit: "./gen/internal/gentest", by: "^TestGolden$/^numbers$", why: "the check refuses what comes of it"},
	{name: "slices of numbers may be handed on", file: "gen/rewrite/numbers/slices.go", old: "\t\t\treturn cannot(id.Pos(), \"hands on \"+v.Name())\n", new: "\t\t\tcontinue\n", unit: "./gen/rewrite/numbers", by: "^TestRestate$", why: "what is written does not compile"},
	{name: "what literals take from around them stays as it is", file: "gen/rewrite/past/values.go", old: "return slices.ContainsFunc(p.f.CapturedBy(call), ", new: "return false && slices.ContainsFunc(p.f.CapturedBy(call), ", unit: "./gen/rewrite/past", by: "^TestProve$", why: "the check refuses what is written"},
	{name: "functions give tensors of the shapes of their operands", file: "gen/rewrite/past/results.go", old: "\t\tif s == same && p.goesByTensors(call) {\n\t\t\treturn same\n\t\t}\n\t\treturn changing\n", new: "\t\treturn s\n", unit: "./gen/internal/gentest", by: "^TestGolden$/^alike$", why: "functions that get functions are no part of them"},
	{name: "no index is negative", by: "slices", file: indices, old: "\t\treturn isPosition(r.f, sel.X)\n\t}\n\tswitch", new: "\t\treturn isPosition(r.f, sel.X) || true\n\t}\n\tswitch"},
	{name: "an index that there is not is selected", by: "found-again", file: writing, old: "\t\t\tr.insert(s.Pos(), r.check(call)+\"; \")\n", new: "\t\t\t_ = r.check(call)\n"},
	{name: "the device selects the next row", by: "finds", file: "runtime/tensor/i64.go", old: "\tindex := i.t.near(", new: "\tindex := i.Add(ConstInt(1)).t.near("},

	// What runs past the end of a loop.
	{name: "panics past the end go on", by: "beyond", file: iterate, old: "\t\t\t_ = recover()", new: "\t\t\t"},
	{name: "nothing runs before a panic past the end", by: "beyond", file: iterate, old: "\t\tif l.runAll(); l.exits.taken != nil {\n", new: "\t\tif l.exits.taken != nil {\n"},
	{name: "an iteration does not say that an exit was reported in it", by: "beyond", file: iterate, old: "\tif l.told != nil {\n", new: "\tif false {\n"},
	{name: "indices are in range past the end", by: "beyond", file: pastHost, old: "\t\t\tif !p.inRange(m) && ", new: "\t\t\tif false && "},
	{name: "rows are there past the end", by: "beyond-rows", file: pastCalls, old: "\t\tcase fn.Name() == \"Row\" && p.rowOf(call): ", new: "\t\tcase fn.Name() == \"Row\": "},
	{name: "a generator of the host is the same after a draw", by: "beyond-draws", file: library, old: "both(Memory, Cause{", new: "w.e.read(Loc{Kind: Memory}, Cause{"},
	{name: "what was guessed behind later tests stays", file: breakIf, old: "\tfor _, e := range rest {\n\t\tl.discardAfter(e.test)\n\t}\n", new: "",
		unit: "./runtime", by: "^TestExit", why: "programs end before they are far ahead"},
	{name: "an exit has no state", by: "exits", file: breakIf, old: "\treturn t.state, true\n", new: "\treturn state, true\n"},

	// What entries declare, and functions in two parts.
	{name: "what an entry declares nobody else uses", by: "declares", file: hoists, old: "needed = needed || a.usedOutside(", new: "needed = needed && a.usedOutside("},
	{name: "what is declared before an entry hides nothing", by: "hides", file: hoists, old: "\t\t\t\t\tif !isMember(a.f.Info.Uses[id]) && ", new: "\t\t\t\t\tif false && "},
	{name: "functions in two parts change nothing", by: "says", file: lift, old: "\t\tif c := o.Lift.Late.Writes.First(func(plan.Loc) bool { return true", new: "\t\tif c := o.Lift.Late.Writes.First(func(plan.Loc) bool { return false"},
	{name: "the second part of a function can run twice", by: "tallies", file: lift, old: "\t\tif o.Lift.Once {\n", new: "\t\tif false {\n"},
	{name: "what comes before a function in two parts may come after it", by: "bumps", file: lift, old: "\tif r.Lift == nil {\n\t\treturn nil\n", new: "\tif true {\n\t\treturn nil\n"},
	{name: "one read raises what another does", by: "shown", file: namer, old: "\treturn o.Method == r.Method && r.Method != \"At\" && r.Method != \"AtInt\"\n", new: "\treturn true\n"},
	{name: "what is not always read comes first all the same", by: "perhaps", file: obstacles, old: "\t\t\tif o.Raises() && o.Expr.Pos()", new: "\t\t\tif false && o.Expr.Pos()"},

	{name: "a literal does not know who else sees what it captures", by: "captures", file: variants, old: "\t\tif !g.isLocal(v) {\n\t\t\tknown := *facts\n", new: "\t\tif false {\n\t\t\tknown := *facts\n"},

	{name: "packages have names for everything in others", by: "from-away", file: "gen/internal/plan/foreign.go", old: "\tcase isLabelOrLocal(obj) || obj.Exported():\n", new: "\tcase isLabelOrLocal(obj) || obj.Pkg() != nil:\n"},

	// Rows.
	{name: "what rows are kept with stays the same", by: "kept-change", file: "gen/rewrite/rows/keep.go", old: " && !uses.Needs(k.outer) && ", new: " && "},
	{name: "no row fails alone", by: "kept-fails", file: "runtime/tensor/vmapsure.go", old: "\tif s.Def.Fails && !isSafe(s) {\n", new: "\tif s.Def.Fails && !isSafe(s) && v.n < 0 {\n"},

	// What a loop changes ahead of values, and gives back.
	{name: "what places held is not given back after a panic", by: "gives-back", file: breakIf, old: "\trestorePlaces(e.held)\n", new: ""},
	{name: "what places held is not given back after an exit", by: "gives-back-at-exits", file: breakIf, old: "\trestorePlaces(t.held)\n", new: ""},
	{name: "a variable held what it holds", by: "gives-back", file: giveBack, old: "{ *h.p = h.value }", new: "{ h.value = *h.p }"},
	{name: "elements held what they hold", by: "gives-back-elements", file: giveBack, old: "{e.s, slices.Clone(e.s)}", new: "{e.s, e.s}"},
	{name: "all slices are one place", by: "gives-back-elements", file: giveBack, old: "ok && len(p.s) == len(e.s) && (len(e.s) == 0 || &p.s[0] == &e.s[0])", new: "ok && (len(p.s) >= 0 || len(e.s) >= 0)"},
	{name: "what an entry queues belongs to no place of the program", file: giveBack, old: "\tif l.inside {\n\t\treturn l.holding\n\t}\n", new: "\tif l.inside {\n\t\treturn nil\n\t}\n",
		unit: "./runtime", by: "^TestUndoInside$", why: "entries queue entries where they call functions that were rewritten, which kernels don't"},
	{name: "places are for good", file: giveBack, old: "\t\tl.places = nil\n", new: "\t\t_ = l.places\n",
		unit: "./runtime", by: "^TestUndoForgets$", why: "what a place of the loop before is given back is mostly what it holds"},
	{name: "places of the loop before stay", file: "gen/internal/emit/undo.go", old: "len(l.Regions) > 1 || r.Loop.Node != l.Anchor", new: "len(l.Regions) < 0",
		unit: "./gen/internal/gentest", by: "^TestGolden$/^undo$", why: "what a place of the loop before is given back is mostly what it holds"},
	{name: "every pointer leads somewhere", by: "gives-back", file: undoes, old: "\tif isPointer(f.Info.TypeOf(e.X)) {\n\t\tp.guard", new: "\tif false {\n\t\tp.guard"},
	{name: "what callees change need not be given back", by: "gives-back", file: undoes, old: "\t\tc.in(inner, body.Decl.Body, c.standFor(f, call, body.Decl, inner, as), depth+1)\n", new: "\t\t_ = inner\n"},
	{name: "what reads are of changes nothing", by: "gives-back-steps", file: undoes, old: "\t\t\tnodes = append(nodes, r.Operand)\n", new: "\t\t\tcontinue\n"},
	{name: "increments need not be given back", by: "gives-back", file: undoes, old: "\t\t\tc.change(f, m.X, as)\n", new: "\t\t\t_ = m\n"},
	{name: "nothing has to be given back", file: backlogs, old: "\tr.cells = e.cells\n\tr.writeAll(l.places, e.held)\n", new: "\tr.cells = e.cells\n", unit: "./gen/internal/gentest", by: "^TestGolden$/^undoexits$", why: outputOnly},

	// The second look at the output, which sees mistakes that the generator does not make.
	{name: "backlogs are empty", file: backlogs, old: "for len(l.backlog) > 0 && r.ask(question{asksRoom, nil, len(l.backlog)}) {", new: "for len(l.backlog) > 0 {", unit: "./gen", by: "^TestCheckNotices$", why: outputOnly},
	{name: "results need not be the same", file: comparing, old: "if want.results != got.results {", new: "if false {", unit: "./gen", by: "^TestCheckNotices$", why: outputOnly},
	{name: "memory need not be the same", file: comparing, old: "if w != g && (w != nil", new: "if false && (w != nil", unit: "./gen/internal/verify", by: "^TestSame$", why: outputOnly},
	{name: "tensors that memory holds spoil nothing", file: backlogs, old: "if f.held[operand] && ", new: "if false && ", unit: "./gen/internal/verify", by: "^TestSame$", why: outputOnly},
	{name: "all of a list is cleared", file: "gen/internal/verify/builtin.go", old: "if l.isMap || l.from == nil && l.mem.isWithin(l.len) {", new: "if true {", unit: "./gen/internal/verify", by: "^TestSame$", why: outputOnly},
	{name: "nothing fails", file: "gen/internal/verify/run.go", old: "if (t == r.fails || t == r.also) &&", new: "if false &&", unit: "./gen/internal/verify", by: "^TestSame$", why: outputOnly},

	// The emitter.
	{name: "no flush after the loop", by: "sums", file: emitter, old: "\tif !r.Endless {\n", new: "\tif false {\n"},
	{name: "no close", by: "sums", file: emitter,
		old: "fmt.Sprintf(\"defer %s.Close()\", l.Name)", new: "fmt.Sprintf(\"_ = %s.Close\", l.Name)"},
	{name: "copies are not used", by: "counts", file: emitter,
		old: "\t\t\tp.replace(id.Pos(), id.End(), c.Name)\n", new: "\t\t\tp.replace(id.Pos(), id.End(), c.Var.Name())\n\t\t\thead = append(head, \"_ = \"+c.Name)\n"},
	{name: "errors of earlier reads are not raised first", by: "raises", file: emitter, old: "\t\tif len(t.Raise) > 0 {\n", new: "\t\tif false {\n"},

	// Later.
	{name: "backlogs leave no memory to others", file: later, old: "\t\tcase room == engine.None:\n\t\t\tl.runUntil(0)\n", new: "",
		unit: "./runtime", by: "^TestLaterMemory$", why: fewBytes},
	{name: "backlogs keep all that fits", file: later, old: "case room == engine.Little && l.pending() > 1:", new: "case false:",
		unit: "./runtime", by: "^TestLaterKeeps$", why: fewBytes},
	{name: "waits of a backlog don't end where memory is short", file: later, old: "if l.known == nil || l.isShort {", new: "if true {",
		unit: "./runtime", by: "^TestLaterGivesBack$", why: fewBytes},
	{name: "Flush runs nothing", by: "late", file: later, old: "\tl.runAll()\n\treturn l.end()\n", new: "\treturn l.end()\n"},
	{name: "Close runs nothing", by: "closes", file: later, old: "\tl.runAll()\n\tl.end()\n\tif l.known", new: "\tl.end()\n\tif l.known"},
	{name: "entries after a panic run", by: "late", file: later, old: "\t\tif !returned && !inside {\n", new: "\t\tif !returned {\n\t\t\tl.backlog, l.head = rest, head\n\t\t}\n\t\tif !returned && !inside {\n"},
	{name: "a long backlog loses its first entry", by: "late", file: later, old: "rest, head = slices.Delete(rest, 0, head), 0", new: "rest, head = slices.Delete(rest, 0, min(head+1, len(rest))), 0"},
	{name: "the newest entry runs first", by: "late", file: later,
		old: "\te := l.backlog[l.head]\n", new: "\tif last := len(l.backlog) - 1; last > l.head {\n\t\tl.backlog[l.head], l.backlog[last] = l.backlog[last], l.backlog[l.head]\n\t}\n\te := l.backlog[l.head]\n"},
	{name: "Do forgets when the window is full", by: "late", file: later,
		old: "\tl.queue(entry[S]{do: f})\n", new: "\tif l.pending() < l.window {\n\t\tl.queue(entry[S]{do: f})\n\t}\n"},

	{name: "what a backlog keeps is not bounded", file: "runtime/internal/engine/room.go", old: "\t\t\troom = max(room, st.roomFor(kept))\n", new: "\t\t\troom = max(room, Ample)\n",
		unit: "./runtime", by: "^TestLaterMemory$", why: "programs have little to keep, but for a few that are large"},
	{name: "what is read for a backlog is not bounded", file: "runtime/internal/engine/room.go", old: "\t\troom = max(room, st.roomFor(kept))\n\t}\n\treturn room\n}\n\n// partOf", new: "\t\t_ = st\n\t}\n\treturn room\n}\n\n// partOf",
		unit: "./runtime", by: "^TestKeepsReads$", why: "programs have little to keep, but for a few that are large"},
	{name: "an operation waits for no backlog", file: "runtime/internal/engine/relief.go", old: "p == forNone || ", new: "true || ",
		unit: "./runtime", by: "^TestLaterGivesBack$", why: "programs seldom need much more in one iteration than in others"},

	{name: "entries behind an exit run", by: "exits", file: later,
		old: "\t\tl.take(e.test, rest[head:])\n\t\tl.known", new: "\t\tl.take(e.test, nil)\n\t\tl.backlog, l.head = rest, head\n\t\tl.known"},
	{name: "what comes when an exit is taken is queued", file: later,
		old: "\tif l.exits.taken == nil {\n\t\tif l.few {", new: "\tif true {\n\t\tif l.few {",
		unit: "./runtime", by: "^TestExit", why: "it takes luck that an exit is taken there"},
	{name: "cells keep what they got past the exit", by: "exits", file: breakIf,
		old: "\tl.restore()\n\tl.exits, l.reads = ", new: "\tl.exits, l.reads = "},
	{name: "cells keep what they got before a panic", file: breakIf,
		old: "\tl.restore()\n\tl.exits = ", new: "\tl.exits = ",
		by: "^TestExitPanics$", unit: "./runtime", why: "programs do not look at cells after a panic"},
	{name: "a test that can run at once ends no loop", by: "exits", file: breakIf, old: "\tif !isExit {\n", new: "\tif true || !isExit {\n"},
	{name: "a test that can run at once has no state", by: "exits", file: breakIf, old: "\tl.exits.taken = &test[S]{state: state}\n", new: "\tl.exits.taken = &test[S]{}\n"},
	{name: "an exit is not reported", by: "exits", file: breakIf,
		old: "\tif l.exits.taken != nil {\n\t\treturn l.report()\n\t}\n", new: "\tif l.exits.taken != nil {\n\t\tl.exits = exits[S]{}\n\t}\n"},

	// Operations.
	{name: "scaled addition subtracts", by: "operations", file: opsFile, old: "k.Add(x[0], k.Mul(x[2], x[1]))", new: "k.Sub(x[0], k.Mul(x[2], x[1]))"},
	{name: "the greatest is not NaN", file: prims,
		old: "func maximum[T number](x, y T) T { return max(x, y) }", new: "func maximum[T number](x, y T) T {\n\tif x > y {\n\t\treturn x\n\t}\n\treturn y\n}",
		by: "^TestFloatPrimitives$", unit: "./device/kernel", why: "kernels of the CPU have loops of their own for it"},
	{name: "halves round up", by: "operations", file: prims, old: "float(math.RoundToEven)", new: "float(math.Round)"},
	{name: "less or equal is less", file: prims, old: "funcs(le[float32], le[float64], le[int64])", new: "funcs(lt[float32], lt[float64], lt[int64])",
		by: "^Test(Float|Integer)Primitives$", unit: "./device/kernel", why: "kernels of the CPU have loops of their own for it"},
	{name: "the gradient of a product is the wrong factor", by: "operations", file: prims,
		old: "\t\t\tfunc(e *Expr, k int) *Expr { return e.in[1-k] }},\n\t\tPrimDiv", new: "\t\t\tfunc(e *Expr, k int) *Expr { return e.in[k] }},\n\t\tPrimDiv"},
	{name: "random numbers of another generator", by: "operations", file: draws, old: "0xD2511F53", new: "0xD2511F57"},
	{name: "a generator advances too far", by: "operations", file: generator, old: "\tg.pos += uint64(n)\n", new: "\tg.pos += uint64(n) + 1\n"},
	{name: "numbers are converted to the next integer", by: "operations", file: casts, old: "\treturn int64(x)\n}\n\nfunc fromBool", new: "\treturn int64(math.Floor(float64(x)))\n}\n\nfunc fromBool"},
	{name: "columns are summed from top to bottom", file: folds, old: "lanes[k%width*w:][:w]", new: "lanes[:w]",
		by: "^Test", unit: "./device/cpu", why: "programs add few rows, most of them exactly"},
	{name: "sums are in another order", by: "operations", file: "device/cpu/internal/vec/fold.go",
		old: "\tfor half := width / 2; half > 0; half /= 2 {\n\t\tcombine(lanes, lanes, unsafe.Add(lanes, half*size), nil, 0, half)\n", new: "\tfor i := 1; i < width; i++ {\n\t\tcombine(lanes, lanes, unsafe.Add(lanes, i*size), nil, 0, 1)\n"},
	{name: "means divide by the number of elements", by: "operations", file: tensorOps, old: "\t\tn *= shape[axis]\n\t}\n\tdefer", new: "\t\tn = shape.Size() * shape[axis] / shape[axis]\n\t}\n\tdefer"},
	{name: "the last row is the first", by: "operations", file: viewsFile, old: "Off: in.Off + a.From*steps[0]}.tidy()", new: "Off: in.Off}.tidy()"},
	{name: "tensors print a digit less", by: "operations", file: formats, old: "maxDigits = 8", new: "maxDigits = 1"},
}

// apply returns the mutated text of the file of m.
func (m mutant) apply(root string) (path string, text []byte, err error) {
	path = filepath.Join(root, filepath.FromSlash(m.file))
	text, err = os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return "", nil, fmt.Errorf("%s: the text to replace occurs %d times in %s: change the mutant with the code", m.name, n, m.file)
	}
	return path, bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// Mutants have to fit the code.
func TestMutantsApply(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range mutants {
		if _, _, err := m.apply(moduleRoot(t)); err != nil {
			t.Error(err)
		}
		if seen[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		seen[m.name] = true
	}
	if len(mutants) < 40 {
		t.Errorf("%d mutants, want 40 at least", len(mutants))
	}
}

// TestMutants makes the mistakes that -mutants names, one after the other, and fails for those that are not found by
// the program that is kept for each, or by the tests that the table names.
func TestMutants(t *testing.T) {
	if *mutantFlag == "" {
		t.Skip("makes mistakes in a copy of the code, minutes for all: -mutants . makes all, -mutants REGEXP some")
	}
	choice, err := regexp.Compile(*mutantFlag)
	if err != nil {
		t.Fatal(err)
	}
	baseline := *baselineFlag
	if baseline == "" {
		baseline = filepath.Join(t.TempDir(), "baseline")
	}
	var table strings.Builder
	n, found, start := 0, 0, time.Now()
	for _, m := range mutants {
		if !choice.MatchString(m.name) {
			continue
		}
		how, isKilled := m.run(t)
		if !isKilled && m.unit == "" && m.by == "" && *keepFlag {
			if _, err := os.Stat(baseline); err != nil {
				writeBaseline(t, baseline)
			}
			how, isKilled = m.hunt(t, baseline)
		}
		fmt.Fprintf(&table, "%-60s %-32s %s\n", m.name, m.file, how)
		t.Logf("%s: %s", m.name, how)
		if n++; isKilled {
			found++
		} else {
			t.Errorf("%s, in %s: %s", m.name, m.file, how)
		}
	}
	t.Logf("%d mutants of %d found in %v:\n%s", found, n, time.Since(start).Round(time.Second), table.String())
}

// run says how m was found, or that it wasn't.
func (m mutant) run(t *testing.T) (how string, isKilled bool) {
	if m.unit != "" {
		return killed(m.test(t, "-failfast", "-timeout=5m", "-run="+m.by, m.unit)) // what fails may hang as well
	}
	if m.isOfTools() {
		return killed(m.test(t, "./gen/internal/fuzz", "-run=^TestKillers$", "-killer=^"+m.killer()+"$"))
	}
	// What rewrites the program is right: there is no need to build that once more.
	p, err := readKept(filepath.Join(killers, m.killer()+".txtar"))
	if err != nil {
		return err.Error(), false
	}
	flags := os.Getenv("GOFLAGS")
	defer os.Setenv("GOFLAGS", flags)
	os.Setenv("GOFLAGS", flags+m.flags(t))
	switch r, err := tryAll(t.Context(), Config{Root: moduleRoot(t), Seed: 1}, []*program{p}); {
	case err != nil:
		return err.Error(), false
	case len(r.Different) == 0:
		return "not found", false
	default:
		d := r.Different[0]
		return fmt.Sprintf("%s: %s", d.Variant, strings.ReplaceAll(d.Text, "\n", " ")), true
	}
}

// isOfTools reports whether m is a mistake of what rewrites programs.
func (m mutant) isOfTools() bool {
	return strings.HasPrefix(m.file, "gen/") || strings.HasPrefix(m.file, "analysis/")
}

// killer is the name of the program that finds m.
func (m mutant) killer() string { return cmp.Or(m.by, killerName(m.name)) }

// hunt looks for a program that finds m, and keeps it. Whether it does, and nothing else, is tried
// as often as it takes to believe it.
func (m mutant) hunt(t *testing.T, baseline string) (how string, isKilled bool) {
	path, err := filepath.Abs(filepath.Join(killers, m.killer()+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"./gen/internal/fuzz", "-run=^TestHunt$", "-v", "-hunt=" + path}
	if m.isOfTools() { // others change no text
		args = append(args, "-baseline="+baseline)
	}
	if out, failed := m.test(t, args...); failed {
		return firstFailure(out), false
	}
	for range 3 {
		if how, isKilled = m.run(t); !isKilled {
			return "its program does not always find it: " + how, false
		}
	}
	if out, failed := goTest(t, "", "./gen/internal/fuzz", "-run=^TestKillers$", "-killer=^"+m.killer()+"$"); failed {
		return "its program differs without it, too: " + firstFailure(out), false
	}
	return how, true
}

// killed says how tests have failed. Code that does not compile is no mistake that tests find.
func killed(out []byte, failed bool) (how string, isKilled bool) {
	switch {
	case !failed:
		return "not found", false
	case bytes.Contains(out, []byte("\npanic: test timed out after ")):
		return "out of time", false
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return "it does not compile: " + firstFailure(out), false
	}
	return firstFailure(out), true
}

// test runs tests with m in place of what is right. A mutant that takes too long is not found.
func (m mutant) test(t *testing.T, args ...string) (out []byte, failed bool) {
	return goTest(t, m.flags(t), args...) // also for the programs
}

// flags are those by which go commands have m in place of what is right.
func (m mutant) flags(t *testing.T) string {
	path, text, err := m.apply(moduleRoot(t))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated := filepath.Join(dir, "mutated.go")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(dir, "overlay.json")
	for name, text := range map[string][]byte{mutated: text, overlay: list} {
		if err := os.WriteFile(name, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return " -overlay=" + overlay
}

// goTest runs tests, with more flags for all go commands.
func goTest(t *testing.T, flags string, args ...string) (out []byte, failed bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-vet=off", "-count=1", "-ldflags=-s -w"}, args...)...)
	cmd.Dir = moduleRoot(t)
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+flags)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return []byte("out of time"), false
	}
	return out, err != nil
}

var failure = regexp.MustCompile(`(?m)^ +\w+_test.go:\d+: (.*)$|^(.*\.go:\d+:\d+: .*)$|^panic: (.*)$`)

// firstFailure is the line that tells most of a failed test.
func firstFailure(out []byte) string {
	for _, m := range failure.FindAllSubmatch(out, -1) {
		if text := bytes.Join(m[1:], nil); !report.Match(text) {
			return string(text)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// report are the lines that tests print whether they fail or not.
var report = regexp.MustCompile(`^go test |^seed \d+$|^\d+ programs, `)

func moduleRoot(t *testing.T) string {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}
