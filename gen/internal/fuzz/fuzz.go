// Package fuzz holds the generator against random programs. Each program is
// an abstract one, of which there are three forms: Go source as written, the
// same as rewritten, and what an interpreter, which knows nothing of the
// library or of rewriting, says it does. All have to write the same, return the
// same and fail in the same way, under every window, engine and device that is tried.
//
//	report, err := fuzz.Run(ctx, fuzz.Config{Root: root, Seed: seed, Programs: 300})
//
// A third of them runs with large matrices, too, where there is hardly more memory than it needs as
// written: the rewritten form has to do the same.
//
// A program that differs is shrunk by leaving out statements and reported as
// source, with its seed. What is not promised is not compared: see the README about
// "identical"; and there is no third judge where a value has two right answers.
//
// From the root of the module:
//
//	go test ./gen/internal/fuzz                                          # a few programs, always the same
//	go test ./gen/internal/fuzz -run TestLong -v -pairs 20000 -seed 0 -timeout 0
//	go test ./gen/internal/fuzz -run TestPrograms -accept=false -shrink -seed 4711 -programs 1
//	go test ./gen/internal/fuzz -run 'Mutants$' -v -mutants . -timeout 0 # are mistakes found?
//
// A program that has found a mistake is kept as text, in testdata/killers. Without a mistake all of
// them run in each go test.
package fuzz

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/rewrite"
	"github.com/asyncgen/asyncgen/internal/sametemp"
)

// A Config says what to try.
type Config struct {
	Root     string // of the module of the library
	Seed     uint64 // of the first program; the next have the next seeds
	Programs int
	Shrink   bool     // programs that differ
	Except   []string // seeds that are left out
}

// A Report is what came of it.
type Report struct {
	Programs  int
	Pairs     int            // of an original and a rewritten kernel: with all rewrites, and with some
	Changed   int            // pairs in which something was rewritten
	Runs      int            // of a kernel on an input, compared with another
	Tight     int            // programs compared where there is little memory
	Judged    int            // inputs of which the interpreter knew the outcome
	Inputs    int            // all
	Panics    int            // inputs on which the program fails
	Applied   map[string]int // reads put off, by rewrite
	Refused   map[string]int // reads that stay, by reason
	Waits     [2]int64       // as written; with the widest window
	Different []Difference
}

func newReport() *Report {
	return &Report{Applied: make(map[string]int), Refused: make(map[string]int)}
}

// add adds what another report has counted.
func (r *Report) add(o *Report) {
	r.Programs += o.Programs
	r.Pairs += o.Pairs
	r.Changed += o.Changed
	r.Runs += o.Runs
	r.Tight += o.Tight
	r.Judged += o.Judged
	r.Inputs += o.Inputs
	r.Panics += o.Panics
	r.Different = append(r.Different, o.Different...)
	for i, n := range o.Waits {
		r.Waits[i] += n
	}
	for rule, n := range o.Applied {
		r.Applied[rule] += n
	}
	for code, n := range o.Refused {
		r.Refused[code] += n
	}
}

// A Difference is a program that does not do the same in all forms.
type Difference struct {
	Seed    uint64
	Variant string // what was run
	Source  string // shrunk, if that was asked for
	Text    string // how the outcomes differ

	program *program
}

func (d Difference) String() string {
	return fmt.Sprintf("seed %d, %s:\n%s\n%s", d.Seed, d.Variant, d.Text, d.Source)
}

// rewrites are those that can be switched off.
var rewrites = rewrite.Names()

// off are the rewrites that p is not tried with in its second form, of which the given ones were made
// in the first: all but one of them, or that one. Where one was made alone there is no second form.
func (p *program) off(made []string) []string {
	made = slices.DeleteFunc(made, func(r string) bool { return r == rewrite.Bound.Name }) // alone it makes nothing
	slices.Sort(made)
	if made = slices.Compact(made); len(made) < 2 {
		return nil
	}
	one := made[p.seed%uint64(len(made))]
	if p.leaves && p.seed%4 == 0 && slices.Contains(made, rewrite.Exit.Name) {
		one = rewrite.Exit.Name
	}
	if p.seed%2 == 0 {
		return []string{one}
	}
	return slices.DeleteFunc(slices.Clone(rewrites), func(r string) bool { return r == one })
}

// A setting is one run of the program with all kernels. The loops of the CPU are those in Go if isa
// says so, and may have other last places then: "" are those that suit the machine.
type setting struct{ name, engine, device, isa string }

func settings(seed uint64) []setting {
	return []setting{
		{"naive", "naive", "cpu", "go"},
		{"async", "async", "cpu", ""},
		{"shuffled", fmt.Sprintf("shuffle:%d", seed), "cpu", ""},
		{"on sim:0", "async", "sim:0", ""},
	}
}

// Run tries random programs.
func Run(ctx context.Context, c Config) (*Report, error) {
	var programs []*program
	for i := range c.Programs {
		if slices.Contains(c.Except, fmt.Sprint(c.Seed+uint64(i))) {
			continue
		}
		programs = append(programs, newProgram(c.Seed+uint64(i), fmt.Sprintf("K%03d", i)))
	}
	r, err := tryAll(ctx, c, programs)
	if err != nil || !c.Shrink {
		return r, err
	}
	for i, d := range r.Different {
		if r.Different[i], err = shrink(ctx, c, d.program); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// tryAll compares programs in all their forms. One that does not compile, or
// ends the process or never ends, is a difference, and the others are tried without it.
func tryAll(ctx context.Context, c Config, programs []*program) (*Report, error) {
	var out []Difference
	for {
		r, err := try(ctx, c, programs)
		var bad *brokenError
		if errors.As(err, &bad) && len(out) < maxBroken {
			p := bad.program
			out = append(out, Difference{Seed: p.seed, Variant: bad.step, Source: p.listing(), Text: bad.text, program: p})
			programs = slices.DeleteFunc(slices.Clone(programs), func(q *program) bool { return q == p })
			if len(programs) > 0 {
				continue
			}
			r, err = newReport(), nil
		}
		if err != nil {
			return nil, err
		}
		r.Programs += len(out)
		r.Different = append(r.Different, out...)
		return r, nil
	}
}

func try(ctx context.Context, c Config, programs []*program) (*Report, error) {
	b, err := newBatch(ctx, c.Root, programs)
	if err != nil {
		return nil, err
	}
	defer b.close()
	return b.run(ctx, c.Seed)
}

// maxBroken is how many programs of a batch are left out: it is built anew without each.
const maxBroken = 5

// A brokenError says which program stops all others of its batch.
type brokenError struct {
	program *program
	step    string
	text    string
}

func (e *brokenError) Error() string {
	return fmt.Sprintf("fuzz: seed %d, %s: %s", e.program.seed, e.step, e.text)
}

// atLine is where the go command says what is wrong.
var atLine = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: .*$`)

// broken returns the program that the go command complains about in text, which may be about none.
func (b *batch) broken(step, text string) error {
	for _, m := range atLine.FindAllStringSubmatch(text, -1) {
		file, err := os.ReadFile(filepath.Join(b.dir, filepath.FromSlash(strings.TrimPrefix(m[1], b.dir))))
		line, _ := strconv.Atoi(m[2])
		if err != nil {
			continue
		}
		for _, l := range slices.Backward(strings.Split(string(file), "\n")[:line]) {
			f := declared.FindStringSubmatch(l)
			if f == nil {
				continue
			}
			if p := b.owner(f[1]); p != nil {
				return &brokenError{p, step, text}
			}
		}
	}
	return fmt.Errorf("fuzz: %s:\n%s", step, text)
}

// owner returns the program that a function is of: its kernel, or one of its helpers, the names of which begin with
// that of the program; nil if there is none.
func (b *batch) owner(function string) (owner *program) {
	for _, p := range b.programs {
		if strings.HasPrefix(strings.ToLower(function), strings.ToLower(p.name)) && (owner == nil || len(p.name) > len(owner.name)) {
			owner = p
		}
	}
	return owner
}

// declared is how functions and methods begin.
var declared = regexp.MustCompile(`^func (?:\([^)]*\) )?(\w+)`)

// A batch is a module of programs and the binary that runs them.
type batch struct {
	dir      string
	programs []*program
	remarks  []gen.Remark
	// of a package: the programs that it has, and whether something in them was rewritten
	forms map[string]map[string]bool
}

func (b *batch) close() { os.RemoveAll(b.dir) }

// atWindow is where generated code says how far it may run ahead.
var atWindow = regexp.MustCompile(`\]\(\w+Window\d*\)`)

// newBatch rewrites and builds programs.
func newBatch(ctx context.Context, root string, programs []*program) (*batch, error) {
	b, err := newRewritten(ctx, root, programs)
	if err != nil {
		return nil, err
	}
	if err := b.build(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// newRewritten makes a module of programs, with all rewrites.
func newRewritten(ctx context.Context, root string, programs []*program) (b *batch, err error) {
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return nil, err
	}
	mod, err := moduleOf(root)
	if err != nil {
		return nil, err
	}
	dir, err := sametemp.Make(fmt.Sprint("fuzz-", programs[0].seed))
	if err != nil {
		return nil, err
	}
	b = &batch{dir: dir, programs: programs, forms: make(map[string]map[string]bool)}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	files := map[string]string{
		"go.mod":  mod,
		"go.sum":  string(sum),
		"main.go": mainFile,

		"help/help.go": helpFile,
		"away/away.go": awayHead,
	}
	for _, p := range programs {
		files["away/away.go"] += p.away()
	}
	if err := b.write(files); err != nil {
		return nil, err
	}
	options := make(map[string]string)
	for _, p := range programs {
		options[p.name] = ""
	}
	if err := b.rewrite(ctx, "all", options); err != nil {
		return nil, err
	}
	return b, nil
}

// moduleLine is where a go.mod says what the module is called.
var moduleLine = regexp.MustCompile(`(?m)^module .*$`)

// moduleOf is the go.mod of a module that uses the one at root, and requires what that requires.
func moduleOf(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	const library = "github.com/asyncgen/asyncgen"
	return moduleLine.ReplaceAllString(string(text), "module example.com/fuzz") +
		"\nrequire " + library + " v0.0.0\n\nreplace " + library + " => " + root + "\n", nil
}

// build adds the programs with some rewrites, and builds the binary.
func (b *batch) build(ctx context.Context) error {
	made := make(map[string][]string)
	for _, m := range b.remarks {
		if m.Verdict == gen.Applied && slices.Contains(rewrites, m.Rule) {
			made[m.Function] = append(made[m.Function], m.Rule)
		}
	}
	options := make(map[string]string)
	for _, p := range b.programs {
		if p.isTight() {
			options[p.name] = ""
		} else if off := p.off(made[p.name]); off != nil {
			options[p.name] = " off=" + strings.Join(off, ",")
		}
	}
	if err := b.rewrite(ctx, "some", options); err != nil {
		return err
	}
	// without what debuggers need
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", b.binary(), ".")
	build.Dir = b.dir
	if out, err := build.CombinedOutput(); err != nil {
		return b.broken("go build", fmt.Sprintf("%v\n%s", err, out))
	}
	return nil
}

// rewrite writes a package of the programs for which there are options, and rewrites it.
func (b *batch) rewrite(ctx context.Context, pkg string, options map[string]string) error {
	source, kernels := header, kernelsHead
	forms := make(map[string]bool)
	for _, p := range b.programs {
		if o, ok := options[p.name]; ok {
			if pkg == "some" && p.isTight() {
				p = p.large()
			}
			source += p.source(o)
			forms[p.name] = false
		}
	}
	if err := b.write(map[string]string{pkg + "/in.go": source}); err != nil {
		return err
	}
	rewritten := "package p\n"
	if len(forms) > 0 {
		result, err := gen.Generate(ctx, gen.Config{Dir: b.dir, Patterns: []string{"./" + pkg}})
		if err != nil {
			return b.broken("the generator", err.Error())
		}
		if err := result.Commit(); err != nil {
			return err
		}
		b.remarks = append(b.remarks, result.Remarks...)
		text, err := os.ReadFile(filepath.Join(b.dir, pkg, "in_async.go"))
		if err != nil {
			return err
		}
		rewritten = string(text)
	}
	for _, list := range [][2]string{{"originals", ""}, {"rewritten", "Async"}} {
		kernels += "\nvar " + list[0] + " = map[string]callable{\n"
		for _, p := range b.programs {
			if _, ok := forms[p.name]; ok {
				kernels += fmt.Sprintf("\t%q: %s,\n", p.name, p.adapter(list[1]))
				forms[p.name] = !strings.Contains(rewritten, fmt.Sprintf("\n// %sAsync is [%s]: nothing in it can run later.\n", p.name, p.qualified()))
			}
		}
		kernels += "}\n"
	}
	b.forms[pkg] = forms
	return b.write(map[string]string{
		pkg + "/in_async.go": atWindow.ReplaceAllString(rewritten, "](Window)"),
		pkg + "/run.go":      runner,
		pkg + "/kernels.go":  kernels,
	})
}

// kernelsHead begins the file that lists the kernels of a package, of which there may be none.
const kernelsHead = `package p

import (
	"bufio"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

var (
	_ *bufio.Reader
	_ io.Writer
	_ *tensor.Tensor
)
`

// qualified is the name of the kernel in documentation.
func (p *program) qualified() string {
	if p.form == "method" {
		return "model." + p.name
	}
	return p.name
}

// adapter is the kernel as a function of the common type.
func (p *program) adapter(suffix string) string {
	params := "out, errs, in, s, rates, w, xs, flag, count"
	call := p.name + suffix + "(m, " + params + ")"
	switch p.form {
	case "method":
		call = "m." + p.name + suffix + "(" + params + ")"
	case "generic":
		call = p.name + suffix + "(0, m, " + params + ")"
	}
	return "func(m *model, out, errs io.Writer, in *bufio.Reader, s *stat, rates []float64, w *tensor.Tensor, xs []*tensor.Tensor, flag bool, count int) (*tensor.Tensor, float64, []float64) { return " + call + " }"
}

func (b *batch) binary() string { return filepath.Join(b.dir, "fuzz.exe") }

func (b *batch) write(files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(b.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// An answer is one outcome that the binary reports; one without text says what begins.
type answer struct {
	Name    string
	Input   int
	Variant string
	Text    string
	Waits   int64
}

// run runs the binary in all settings and compares.
func (b *batch) run(ctx context.Context, seed uint64) (*Report, error) {
	r := newReport()
	r.Programs = len(b.programs)
	for _, forms := range b.forms {
		r.Pairs += len(forms)
		for _, isChanged := range forms {
			if isChanged {
				r.Changed++
			}
		}
	}
	r.count(b)
	type key struct {
		name  string
		input int
	}
	want := make(map[key]string)             // as the interpreter has it
	first := make(map[string]map[key]string) // as written, where it does not know, by the loops of the CPU
	byName := make(map[string]*program)
	for _, p := range b.programs {
		byName[p.name] = p
		for i, in := range p.inputs {
			r.Inputs++
			if text, known := p.outcome(i, in); known {
				r.Judged++
				want[key{p.name, i}] = text
			}
		}
	}
	differs := make(map[string]bool)
	for at, s := range settings(seed) {
		answers, err := b.answers(ctx, s)
		if err != nil {
			return nil, err
		}
		if first[s.isa] == nil {
			first[s.isa] = make(map[key]string)
		}
		for _, a := range answers {
			k := key{a.Name, a.Input}
			isOriginal := a.Variant == "as written"
			if at == 0 && isOriginal {
				if !strings.Contains(a.Text, "\npanic \"\"\n") && !strings.HasPrefix(a.Text, "panic \"\"\n") {
					r.Panics++
				}
			}
			wanted, judged := want[k]
			if !judged {
				known := false
				if wanted, known = first[s.isa][k]; !known {
					wanted = a.Text
					first[s.isa][k] = wanted
					r.Runs--
				}
			}
			if s.device != "cpu" && isOriginal {
				r.Waits[0] += a.Waits
			}
			if s.device != "cpu" && a.Variant == "window 64" {
				r.Waits[1] += a.Waits
			}
			r.Runs++
			if a.Text == wanted || differs[a.Name] {
				continue
			}
			differs[a.Name] = true
			p := byName[a.Name]
			r.Different = append(r.Different, Difference{
				Seed: p.seed, Variant: fmt.Sprintf("%s, %s, input %d", a.Variant, s.name, a.Input), Source: p.listing(),
				Text: differences(wanted, a.Text), program: p,
			})
		}
	}
	for _, p := range b.programs {
		if !p.isTight() || differs[p.name] || !b.forms["some"][p.name] {
			continue
		}
		d, tried, err := b.tight(ctx, p)
		if err != nil {
			return nil, err
		}
		if tried {
			r.Tight++
		}
		if d != nil {
			r.Different = append(r.Different, *d)
		}
	}
	return r, nil
}

// maxRun is how long the programs of a batch may take: seconds, unless one never ends.
const maxRun = 5 * time.Minute

// A job is one program for the binary.
type job struct {
	Name     string
	Variants []string
	Inputs   []sent
}

// sent is an input as the binary gets it.
type sent struct {
	DType, Rows, Cols int
	Input
}

// job is p, for the binary, in the given variants.
func (p *program) job(variants ...string) job {
	j := job{Name: p.name, Variants: variants}
	for _, in := range p.inputs {
		j.Inputs = append(j.Inputs, sent{int(p.dtype), p.rows, p.cols, *in})
	}
	return j
}

// answers runs the binary with all programs.
func (b *batch) answers(ctx context.Context, s setting) ([]answer, error) {
	var jobs []job
	for _, p := range b.programs {
		variants := []string{"as written", "window 64"}
		if b.forms["all"][p.name] {
			variants = append(variants, "window 1", "window 2")
		}
		if b.forms["some"][p.name] && !p.isTight() {
			variants = append(variants, "window 2, some rewrites")
		}
		jobs = append(jobs, p.job(variants...))
	}
	ctx, cancel := context.WithTimeout(ctx, maxRun)
	defer cancel()
	return b.exec(ctx, s, jobs)
}

// exec runs the binary, with more in its environment.
func (b *batch) exec(ctx context.Context, s setting, jobs []job, more ...string) ([]answer, error) {
	text, err := json.Marshal(jobs)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.binary())
	cmd.Stdin = bytes.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "ASYNCGEN_ENGINE="+s.engine, "ASYNCGEN_DEVICE="+s.device, "ASYNCGEN_SIM=n=1,launch=0us,latency=1us,copy=1us", "ASYNCGEN_REPORT=")
	cmd.Env = append(cmd.Env, more...)
	if s.isa != "" {
		cmd.Env = append(cmd.Env, "ASYNCGEN_ISA="+s.isa)
	}
	stdout, runErr := cmd.Output()
	var answers []answer
	var begun answer
	for d := json.NewDecoder(bufio.NewReader(bytes.NewReader(stdout))); ; {
		var a answer
		if err := d.Decode(&a); err != nil {
			if !errors.Is(err, io.EOF) && runErr == nil {
				return nil, err
			}
			break
		}
		if a.Text == "" {
			begun = a
			continue
		}
		answers = append(answers, a)
	}
	if runErr == nil {
		return answers, nil
	}
	if ctx.Err() != nil {
		runErr = ctx.Err()
	}
	text = fmt.Appendf(nil, "%v\n%s", runErr, stderr.Bytes())
	for _, p := range b.programs {
		if p.name == begun.Name {
			return nil, &brokenError{p, fmt.Sprintf("%s, %s, input %d", begun.Variant, s.name, begun.Input), string(text)}
		}
	}
	return nil, fmt.Errorf("fuzz: %s: %s", s.name, text)
}

// count counts what the generator did and what it didn't.
func (r *Report) count(b *batch) {
	for _, m := range b.remarks {
		if filepath.Base(filepath.Dir(m.Pos.Filename)) != "all" && m.Code < "AG900" {
			continue
		}
		switch {
		case m.Code >= "AG900":
			for _, p := range b.programs {
				if p.name == m.Function {
					r.Different = append(r.Different, Difference{Seed: p.seed, Variant: "the generator's own check", Source: p.listing(), Text: m.String(), program: p})
				}
			}
		case m.Verdict == gen.Applied && m.Rule != "":
			r.Applied[m.Rule]++
		case m.Verdict == gen.Refused:
			r.Refused[string(m.Code)]++
		}
	}
}

// differences are the first lines in which two outcomes differ.
func differences(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d of the outcome:\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}
