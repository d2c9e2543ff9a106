package fuzz

import (
	"bytes"
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

var mutantFlag = flag.String("mutants", "", "make these mistakes, by a regular expression, and see that they are found: -mutants .")

// A mutant is a mistake, made by replacing text that occurs once.
type mutant struct {
	name string
	file string
	old  string
	new  string
	unit string // a package whose own tests find it, if programs can't; and why they can't
	why  string
}

const (
	locs      = "gen/internal/plan/locs.go"
	effects   = "gen/internal/plan/effects.go"
	deps      = "gen/internal/plan/deps.go"
	functions = "gen/internal/plan/function.go"
	walks     = "gen/internal/plan/walk.go"
	summaries = "gen/internal/plan/analysis.go"
	deferral  = "gen/rewrite/deferral.go"
	region    = "gen/rewrite/region.go"
	namer     = "gen/rewrite/names.go"
	exits     = "gen/rewrite/exit.go"
	pastCells = "gen/rewrite/cells.go"
	hoist     = "gen/rewrite/hoist.go"
	lift      = "gen/rewrite/lift.go"
	emitter   = "gen/internal/emit/emit.go"
	later     = "runtime/later.go"
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
)

// mutants are mistakes in each part that what is rewritten depends on.
var mutants = []mutant{
	// The analysis.
	{name: "elements are never the same", file: locs,
		old: "func overlap(a, b Loc) bool {\n", new: "func overlap(a, b Loc) bool {\n\tif a.Kind == Elem && b.Kind == Elem {\n\t\treturn false\n\t}\n"},
	{name: "fields are never the same", file: locs,
		old: "func overlap(a, b Loc) bool {\n", new: "func overlap(a, b Loc) bool {\n\tif a.Kind == Field && b.Kind == Field {\n\t\treturn false\n\t}\n"},
	{name: "elements of maps are never the same", file: locs,
		old: "func overlap(a, b Loc) bool {\n", new: "func overlap(a, b Loc) bool {\n\tif a.Kind == MapElem && b.Kind == MapElem {\n\t\treturn false\n\t}\n"},
	{name: "what is put off may write what runs ahead reads", file: effects, old: "\tpairs(Flow, first.Writes, second.Reads)\n", new: ""},
	{name: "two writes may change places", file: effects, old: "\tpairs(Output, first.Writes, second.Writes)\n", new: ""},
	{name: "a write may overtake a read", file: effects, old: "\tpairs(Anti, first.Reads, second.Writes)\n", new: ""},
	{name: "every variable can be copied", file: deps,
		old: "c.First.Kind == Var && canCopy(c.First.Obj)", new: "c.First.Kind == Var"},
	{name: "deferred functions see nothing", file: functions,
		old: "return facts != nil && (facts.address || facts.escapes || facts.inDefer || facts.inGo)", new: "return facts != nil && (facts.address || facts.inGo)"},
	{name: "closures see copies", file: functions, old: "\t\tif f.uses(lit, lv) {\n", new: "\t\tif false && f.uses(lit, lv) {\n"},
	{name: "parameters own what they lead to", file: functions,
		old: "ok[v] = v.Pos() >= f.Decl.Body.Pos() || f.fact(v).isResult", new: "ok[v] = true"},
	{name: "an alias is new memory", file: functions, old: "\t\treturn f.Info.Types[e].IsNil()\n", new: "\t\treturn true\n"},
	{name: "the right operand of && is always evaluated", file: functions,
		old: "\t\t\tif (p.Op == token.LAND || p.Op == token.LOR) && p.Y == n {\n\t\t\t\treturn false\n", new: "\t\t\tif (p.Op == token.LAND || p.Op == token.LOR) && p.Y == n {\n\t\t\t\treturn true\n"},
	{name: "prints have no order", file: walks, old: "\t\tif kind != stdFormats {\n", new: "\t\tif kind == stdStamps {\n"},
	{name: "random numbers can be drawn later", file: walks,
		old: "\tcase tensorapi.Draw, tensorapi.Mutate:\n\t\tnote(&w.e.Enqueues, c)\n\t\tw.e.read(Loc{Kind: Cells}, c)\n\t\tw.e.write(Loc{Kind: Cells}, c)\n", new: "\tcase tensorapi.Draw, tensorapi.Mutate:\n"},
	{name: "append leaves elements alone", file: walks,
		old: "\t\tif l, ok := w.elementsOf(call.Args[0]); ok {\n\t\t\tw.touch(l, call, w.e.write, \"changes\")\n\t\t}\n\t\tif call.Ellipsis.IsValid() {", new: "\t\tif call.Ellipsis.IsValid() {"},
	{name: "a variable is not reached through its address", file: walks,
		old: "\t\t\trecord(Loc{Kind: Deref, Type: w.f.Analysis.types.of(v.Type())}, c)\n", new: "\t\t\t_ = c\n"},
	{name: "increments read nothing and write nothing", file: walks,
		old: "\t\tw.update(s.X)\n", new: ""},
	{name: "calls of closures do nothing", file: walks,
		old: "\tw.outer().stmt(lit.Body)\n", new: "\t_ = lit\n"},
	{name: "input waits for nothing", file: summaries,
		old: "\t\tnote(&e.Barrier, Cause{Pos: pos, Text: \"may wait for the outside\", Code: Blocks})\n", new: "\t\t_ = pos\n"},
	{name: "callees write nothing", file: effects,
		old: "\tfor l, c := range callee.Writes {\n\t\te.write(l, through(c))\n\t}\n", new: ""},

	// The rewrites.
	{name: "what others see may run ahead", file: deferral,
		old: "len(u.Reads) > 0 || a.shows(u.Effects, u.Stmt) || ", new: "len(u.Reads) > 0 || "},
	{name: "nobody sees memory", file: deferral, old: "\treturn l.Kind == plan.World || l.IsMemory()\n", new: "\treturn l.Kind == plan.World\n"},
	{name: "operands are computed whether they are needed or not", file: deferral,
		old: "\t\tc := a.conditional(u, r)\n", new: "\t\tvar c *plan.Cause\n"},
	{name: "operands need nothing that is put off", file: deferral,
		old: "\t\tif !a.late[u] || len(u.Reads) == 0 && len(u.Held) == 0 {\n\t\t\tcontinue\n\t\t}\n\t\tif c := firstOf(", new: "\t\tif true {\n\t\t\tcontinue\n\t\t}\n\t\tif c := firstOf("},
	{name: "conditions are independent of what they guard", file: deferral,
		old: "\t\t\ta.whole[u.Stmt] = true\n\t\t\treturn true\n", new: "\t\t\ta.late[u] = true\n"},
	{name: "nothing is copied", file: region,
		old: "first.Pos() <= v.Pos() && v.Pos() < last.End() || !a.changesAfter(v, first) {", new: "first != nil || last != nil {"},
	{name: "variables change only further down", file: region,
		old: "\t\t\tif !declaredIn && at.Pos() < l.Node.End() {", new: "\t\t\tif false && !declaredIn && at.Pos() < l.Node.End() {"},
	{name: "variables change only in the next iteration", file: region,
		old: "\t\tif u.Stmt.Node.Pos() > at.Pos() || !a.loop.Node.Pos().IsValid() {\n\t\t\treturn true\n\t\t}\n", new: ""},
	{name: "computed operands share an entry with what comes before", file: region,
		old: "\t\treturn r.Plain == nil && !r.Fixed && (r.Rows", new: "\t\treturn false && !r.Fixed && (r.Rows"},
	{name: "a statement that runs now does not wait for those before", file: region,
		old: "\t\t\tr.Flushes = append(r.Flushes, s)\n", new: ""},
	{name: "a Read serves for good", file: namer,
		old: "\t\tif from.Node.Pos() <= s.Node.Pos() && s.Node.Pos() <= to.Node.Pos() {\n\t\t\treturn false\n\t\t}\n", new: ""},
	{name: "a Read serves in the next iteration", file: namer,
		old: "\t\t\tif s.Within(l) {\n\t\t\t\treturn false\n\t\t\t}\n", new: "\t\t\t_ = l\n"},

	// Loops that values end, values that stay the same, functions that wait.
	{name: "variables are not given back after a break", file: exits,
		old: "\t\t\tif a.liveAfter(v) {\n", new: "\t\t\tif false {\n"},
	{name: "a return gives what variables hold by then", file: exits,
		old: "\t\t\tcase inside || slices.Contains(a.past.written, v):\n", new: "\t\t\tcase inside:\n"},
	{name: "nothing comes round again", file: exits,
		old: "\t\t\treturn true // it comes round again\n", new: "\t\t\tcontinue\n"},
	{name: "cells don't say that they change", file: "runtime/tensor/cell.go",
		old: "\tif g := engine.Default().Changing(c); g != nil {\n", new: "\tif g := engine.Default().Changing(c); false {\n"},
	{name: "the generator of all does not say that it changes", file: "runtime/tensor/random.go",
		old: "\tChanging(defaultGenerator)\n", new: ""},
	{name: "memory need not be given back", file: pastCells,
		old: "\t\t\tif l.Kind != plan.Own || ", new: "\t\t\tif true || l.Kind != plan.Own || "},
	{name: "values that change are read once", file: hoist,
		old: "if f.Visible(v) || writes(e, v) {", new: "if f.Visible(v) {"},
	{name: "what functions compute where they read it is one value", file: namer,
		old: "return t.v == read.Plain && t.v != nil && n.visible(t, g, r)", new: "return t.v == read.Plain && n.visible(t, g, r)"},
	{name: "a loop in a function that is called in two parts runs where its result is made", file: lift,
		old: "\tg.Returns = last == body[len(body)-1] && ", new: "\tg.Returns = true || last == body[len(body)-1] && "},

	// The emitter.
	{name: "no flush after the loop", file: emitter, old: "\tif !r.Endless {\n", new: "\tif false {\n"},
	{name: "no close", file: emitter,
		old: "fmt.Sprintf(\"defer %s.Close()\", l.Name)", new: "fmt.Sprintf(\"_ = %s.Close\", l.Name)"},
	{name: "copies are not used", file: emitter,
		old: "\t\t\tp.replace(id.Pos(), id.End(), c.Name)\n", new: "\t\t\tp.replace(id.Pos(), id.End(), c.Var.Name())\n\t\t\thead = append(head, \"_ = \"+c.Name)\n"},
	{name: "errors of earlier reads are not raised first", file: emitter, old: "\t\tif t.Force {\n", new: "\t\tif false {\n"},

	// Later.
	{name: "Flush runs nothing", file: later, old: "\tl.runAll()\n\treturn l.end()\n", new: "\treturn l.end()\n"},
	{name: "Close runs nothing", file: later, old: "\tl.runAll()\n\tl.end()\n}", new: "\tl.end()\n}"},
	{name: "entries after a panic run", file: later, old: "\t\tl.inside = inside\n\t\tif !returned", new: "\t\tif !returned {\n\t\t\tl.backlog, l.head = rest, head\n\t\t}\n\t\tl.inside = inside\n\t\tif !returned"},
	{name: "a long backlog loses its first entry", file: later, old: "rest, head = slices.Delete(rest, 0, head), 0", new: "rest, head = slices.Delete(rest, 0, min(head+1, len(rest))), 0"},
	{name: "the newest entry runs first", file: later,
		old: "\te := l.backlog[l.head]\n", new: "\tif last := len(l.backlog) - 1; last > l.head {\n\t\tl.backlog[l.head], l.backlog[last] = l.backlog[last], l.backlog[l.head]\n\t}\n\te := l.backlog[l.head]\n"},
	{name: "Do forgets when the window is full", file: later,
		old: "\tl.queue(entry[S]{do: f})\n", new: "\tif l.pending() < l.window {\n\t\tl.queue(entry[S]{do: f})\n\t}\n"},

	{name: "entries behind an exit run", file: later,
		old: "\t\tl.take(e.test, rest[head:])\n\t\treturn\n", new: "\t\tl.take(e.test, nil)\n\t\tl.backlog, l.head = rest, head\n\t\treturn\n"},
	{name: "what comes when an exit is taken is queued", file: later,
		old: "\tif l.exits.taken == nil {\n\t\tl.backlog", new: "\tif true {\n\t\tl.backlog"},
	{name: "cells keep what they got past the exit", file: breakIf,
		old: "\tl.restore()\n\tl.exits, l.reads = ", new: "\tl.exits, l.reads = "},
	{name: "cells keep what they got before a panic", file: breakIf,
		old: "\tl.restore()\n\tl.exits = ", new: "\tl.exits = ",
		unit: "./runtime", why: "programs do not look at cells after a panic"},
	{name: "an exit is not reported", file: breakIf,
		old: "\tif l.exits.taken != nil {\n\t\treturn l.report()\n\t}\n", new: "\tif l.exits.taken != nil {\n\t\tl.exits = exits[S]{}\n\t}\n"},

	// Operations.
	{name: "scaled addition subtracts", file: opsFile, old: "k.Add(x[0], k.Mul(x[2], x[1]))", new: "k.Sub(x[0], k.Mul(x[2], x[1]))"},
	{name: "the greatest is not NaN", file: prims,
		old: "func maximum[T number](x, y T) T { return max(x, y) }", new: "func maximum[T number](x, y T) T {\n\tif x > y {\n\t\treturn x\n\t}\n\treturn y\n}",
		unit: "./device/...", why: "kernels of the CPU have loops of their own for it"},
	{name: "halves round up", file: prims, old: "float(math.RoundToEven)", new: "float(math.Round)"},
	{name: "less or equal is less", file: prims, old: "funcs(le[float32], le[float64], le[int64])", new: "funcs(lt[float32], lt[float64], lt[int64])",
		unit: "./device/...", why: "kernels of the CPU have loops of their own for it"},
	{name: "the gradient of a product is the wrong factor", file: prims,
		old: "\t\t\tfunc(e *Expr, k int) *Expr { return e.in[1-k] }},\n\t\tPrimDiv", new: "\t\t\tfunc(e *Expr, k int) *Expr { return e.in[k] }},\n\t\tPrimDiv"},
	{name: "random numbers of another generator", file: draws, old: "0xD2511F53", new: "0xD2511F57"},
	{name: "a generator advances too far", file: generator, old: "\tg.pos += uint64(n)\n", new: "\tg.pos += uint64(n) + 1\n"},
	{name: "numbers are converted to the next integer", file: casts, old: "\treturn int64(x)\n}\n\nfunc fromBool", new: "\treturn int64(math.Floor(float64(x)))\n}\n\nfunc fromBool"},
	{name: "columns are summed from top to bottom", file: folds, old: "lanes[k%width*w:][:w]", new: "lanes[:w]",
		unit: "./device/...", why: "programs add few rows, most of them exactly"},
	{name: "sums are in another order", file: folds,
		old: "\tfor half := width / 2; half > 0; half /= 2 {\n\t\tf.combine(lanes[:half], lanes[:half], lanes[half:2*half])\n", new: "\tfor i := 1; i < width; i++ {\n\t\tf.combine(lanes[:1], lanes[:1], lanes[i:i+1])\n"},
	{name: "means divide by the number of elements", file: tensorOps, old: "\t\tn *= t.shape[axis]\n\t}\n\tsum := ", new: "\t\tn = t.size * t.shape[axis] / t.shape[axis]\n\t}\n\tsum := "},
	{name: "the last row is the first", file: viewsFile, old: "Off: in.Off + a.From*steps[0]}.tidy()", new: "Off: in.Off}.tidy()"},
	{name: "tensors print a digit less", file: formats, old: "maxDigits = 8", new: "maxDigits = 1"},
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

// TestMutants makes the mistakes that -mutants names, one after the other, and
// fails for those that are not found.
func TestMutants(t *testing.T) {
	if *mutantFlag == "" {
		t.Skip("makes mistakes in a copy of the code, minutes for all: -mutants . makes all, -mutants REGEXP some")
	}
	choice, err := regexp.Compile(*mutantFlag)
	if err != nil {
		t.Fatal(err)
	}
	// What differs without a mistake is no proof.
	var except []string
	out, _ := (mutant{file: later, old: "package asyncrt\n", new: "package asyncrt\n"}).hunt(t, "-batch=150")
	for _, m := range differing.FindAllSubmatch(out, -1) {
		except = append(except, string(m[1]))
	}
	if !bytes.Contains(out, []byte("the next seed is")) {
		t.Fatalf("without a mistake: %s", firstFailure(out))
	}
	t.Logf("without a mistake, these seeds differ: %v", except)
	var table strings.Builder
	for _, m := range mutants {
		if !choice.MatchString(m.name) {
			continue
		}
		how, killed := m.run(t, strings.Join(except, ","))
		fmt.Fprintf(&table, "%-60s %-32s %s\n", m.name, m.file, how)
		t.Logf("%s: %s", m.name, how)
		if !killed {
			t.Errorf("%s, in %s: not found", m.name, m.file)
		}
	}
	t.Logf("mutants:\n%s", table.String())
}

// hunted is how many pairs a mutant has to be found with.
const hunted = 700

var (
	differing = regexp.MustCompile(`(?m)^ +fuzz_test.go:\d+: seed (\d+), `)
	tried     = regexp.MustCompile(`(?m)^ +fuzz_test.go:\d+: (\d+) programs, `)
)

// run says how m was found, or that it wasn't. The programs with the seeds in except are not asked.
func (m mutant) run(t *testing.T, except string) (how string, killed bool) {
	if m.unit != "" {
		out, failed := m.test(t, "test", "-vet=off", "-count=1", m.unit)
		return fmt.Sprintf("by the tests of %s, as %s: %s", m.unit, m.why, firstFailure(out)), failed
	}
	out, failed := m.hunt(t, "-batch=30", "-first", "-except="+except)
	switch {
	case !failed:
		return "not found", false
	case bytes.Contains(out, []byte("[build failed]")):
		return "it does not compile: " + firstFailure(out), false
	}
	n := "no"
	if all := tried.FindSubmatch(out); all != nil {
		n = string(all[1])
	}
	return fmt.Sprintf("%s programs: %s", n, firstFailure(out)), true
}

// hunt runs programs with m.
func (m mutant) hunt(t *testing.T, args ...string) (out []byte, failed bool) {
	return m.test(t, append([]string{"test", "-vet=off", "-count=1", "-ldflags=-s -w", "./gen/internal/fuzz", "-run=^TestLong$", "-v", "-accept=false", "-seed=1", fmt.Sprint("-pairs=", hunted)}, args...)...)
}

// test runs the go command with m in place of what is right. A mutant that takes too long is not found.
func (m mutant) test(t *testing.T, args ...string) (out []byte, failed bool) {
	root := moduleRoot(t)
	path, text, err := m.apply(root)
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
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay) // also for the programs
	cmd.WaitDelay = time.Second
	out, err = cmd.CombinedOutput()
	if ctx.Err() != nil {
		return []byte("out of time"), false
	}
	return out, err != nil
}

var failure = regexp.MustCompile(`(?m)^ +fuzz_test.go:\d+: (.*)$|^(.*\.go:\d+:\d+: .*)$|^panic: (.*)$`)

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
