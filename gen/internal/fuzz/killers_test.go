package fuzz

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/asyncgen/asyncgen/internal/turns"
)

// Of a program that has found a mistake of the table of mutants the text is kept: what is made of a seed
// changes with the grammar. Each is an archive in testdata/killers.

var (
	recordFlag   = flag.Bool("record", false, "write down what the kept programs do of which that is not known")
	killerFlag   = flag.String("killer", "", "use the kept programs whose names match this regular expression")
	huntFlag     = flag.String("hunt", "", "where TestHunt keeps the program that differs")
	baselineFlag = flag.String("baseline", "", "a file that says what programs are rewritten to without a mistake, written by the first -keep")
)

// killers is where they are.
const killers = "testdata/killers"

// An origin is what a kept program is beside its text.
type origin struct {
	Seed       uint64 // it was made of; which rewrites it is tried without depends on that
	Form       string
	DType      dtype
	Rows, Cols int
	Inputs     []*Input
}

// words are those of the name of a mutant.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || 'z' < r })
}

// killerName is what the program that finds the mutant with the given name is called.
func killerName(mutant string) string { return strings.Join(words(mutant), "-") }

// kernelName is the name of the kernel in a kept program.
func kernelName(killer string) (name string) {
	for _, w := range words(killer) {
		name += strings.ToUpper(w[:1]) + w[1:]
	}
	return name
}

// keep writes p, all the outcomes of which are known, to path.
func keep(p *program, path string) error {
	q := p.clone()
	q.name = kernelName(strings.TrimSuffix(filepath.Base(path), ".txtar"))
	of, err := json.MarshalIndent(origin{q.seed, q.form, q.dtype, q.rows, q.cols, q.inputs}, "", "\t")
	if err != nil {
		return err
	}
	a := &txtar.Archive{Files: []txtar.File{{Name: "kernel.go", Data: []byte(q.source(""))}, {Name: "origin", Data: append(of, '\n')}}}
	if away := q.away(); away != "" {
		a.Files = append(a.Files, txtar.File{Name: "away.go", Data: []byte(away)})
	}
	for i, in := range q.inputs {
		text, _ := q.outcome(i, in)
		a.Files = append(a.Files, txtar.File{Name: fmt.Sprint("want ", i), Data: []byte(text)})
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, txtar.Format(a), 0o666)
}

// readKept returns the program that path has.
func readKept(path string) (*program, error) {
	a, err := txtar.ParseFile(path)
	if err != nil {
		return nil, err
	}
	p := &program{kept: &kept{}, name: kernelName(strings.TrimSuffix(filepath.Base(path), ".txtar"))}
	var of origin
	for _, f := range a.Files {
		switch f.Name {
		case "kernel.go":
			p.kept.source = string(f.Data)
		case "away.go":
			p.kept.away = string(f.Data)
		case "origin":
			if err := json.Unmarshal(f.Data, &of); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
		default:
			p.kept.want = append(p.kept.want, string(f.Data))
		}
	}
	if n := strings.Count(p.kept.source, directive+"\n"); n != 1 {
		return nil, fmt.Errorf("%s: %d kernels, want one", path, n)
	}
	p.seed, p.form, p.dtype, p.rows, p.cols, p.inputs = of.Seed, of.Form, of.DType, of.Rows, of.Cols, of.Inputs
	return p, nil
}

// archives are the paths of the kept programs, by name.
func archives(t *testing.T) map[string]string {
	paths, err := filepath.Glob(killers + "/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]string)
	for _, path := range paths {
		m[strings.TrimSuffix(filepath.Base(path), ".txtar")] = path
	}
	return m
}

// TestKillers runs the programs that find mistakes: without one they do what they always did.
func TestKillers(t *testing.T) {
	choice := regexp.MustCompile(*killerFlag)
	var programs []*program
	paths := archives(t)
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if !choice.MatchString(name) || *killerFlag == "" && !*recordFlag && !turns.Has(t, name) {
			continue
		}
		p, err := readKept(paths[name])
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, p)
	}
	if len(programs) == 0 {
		t.Fatalf("no program is called %q", *killerFlag)
	}
	r, err := tryAll(t.Context(), Config{Root: moduleRoot(t), Seed: 1}, programs)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Different {
		t.Error(d)
	}
	if *recordFlag && !t.Failed() {
		record(t, slices.DeleteFunc(programs, func(p *program) bool { return len(p.kept.want) > 0 }))
	}
}

// record writes what programs do, in all forms, to their archives.
func record(t *testing.T, programs []*program) {
	b, err := newBatch(t.Context(), moduleRoot(t), programs)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	answers, err := b.answers(t.Context(), settings(1)[0])
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string]map[int]string)
	for _, a := range answers {
		if want[a.Name] == nil {
			want[a.Name] = make(map[int]string)
		}
		want[a.Name][a.Input] = a.Text
	}
	for name, path := range archives(t) {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(a.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want ") }) {
			continue
		}
		for i := range len(want[kernelName(name)]) {
			a.Files = append(a.Files, txtar.File{Name: fmt.Sprint("want ", i), Data: []byte(want[kernelName(name)][i])})
		}
		if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Each kept program finds a mutant of the table, and each mutant that programs find has one.
func TestKept(t *testing.T) {
	paths, used := archives(t), make(map[string]bool)
	for _, m := range mutants {
		if m.unit != "" {
			continue
		}
		if paths[m.killer()] == "" {
			t.Errorf("no program is kept that finds %q: go test ./gen/internal/fuzz -run 'Mutants$' -v -keep -mutants '^%s$' -timeout 0", m.name, m.name)
		}
		used[m.killer()] = true
	}
	for name, path := range paths {
		if !used[name] {
			t.Errorf("%s finds no mutant of the table: remove it", path)
		}
	}
}

// How many programs a mutant is hunted with, and how many of these are rewritten and built at once.
const (
	hunted   = 1600
	inChunk  = 100
	maxBuilt = 30
)

// TestHunt looks for a program that differs, makes it smaller, and keeps it.
func TestHunt(t *testing.T) {
	if *huntFlag == "" {
		t.Skip("TestMutants runs it, in code with a mistake: -keep -mutants REGEXP")
	}
	c := Config{Root: moduleRoot(t), Seed: 1}
	baseline := make(map[string]string)
	if *baselineFlag != "" {
		text, err := os.ReadFile(*baselineFlag)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &baseline); err != nil {
			t.Fatal(err)
		}
	}
	for at := 0; at < hunted; at += inChunk {
		programs := chunk(at)
		if len(baseline) > 0 {
			if texts, err := rewritten(t, c.Root, programs); err == nil { // or else it is found out which one is broken
				programs = slices.DeleteFunc(programs, func(p *program) bool { return texts[p.name] == baseline[p.name] })
			}
		}
		slices.SortStableFunc(programs, func(p, q *program) int { return p.statements() - q.statements() })
		for part := range slices.Chunk(programs, maxBuilt) {
			r, err := tryAll(t.Context(), c, part)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Different) == 0 {
				if len(baseline) == 0 {
					break // one part of each chunk
				}
				continue
			}
			least := slices.MinFunc(r.Different, func(d, e Difference) int { return d.program.statements() - e.program.statements() })
			name := least.program.name
			d, err := shrink(t.Context(), c, least.program)
			if err != nil {
				t.Fatal(err)
			}
			if d.program == nil { // the difference has not come again
				t.Logf("%s differs, and not again", name)
				continue
			}
			t.Logf("found by one of %d programs, %s", at+inChunk, name)
			if err := keep(d.program, *huntFlag); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Errorf("not found with %d programs", hunted)
}

// chunk makes programs, the first with the seed that follows at, all outcomes of which are known.
func chunk(at int) (programs []*program) {
	for i := range inChunk {
		seed := uint64(at + i + 1)
		p := newProgram(seed, fmt.Sprintf("K%05d", seed))
		if !slices.ContainsFunc(p.inputs, func(in *Input) bool { _, exact, _ := p.run(in); return !exact }) {
			programs = append(programs, p)
		}
	}
	return programs
}

// rewritten returns what each of the programs is rewritten to, its helpers included.
func rewritten(t *testing.T, root string, programs []*program) (map[string]string, error) {
	b, err := newRewritten(t.Context(), root, programs)
	if err != nil {
		return nil, err
	}
	defer b.close()
	text, err := os.ReadFile(filepath.Join(b.dir, "all", "in_async.go"))
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, 0)
	if err != nil {
		return nil, err
	}
	texts := make(map[string]string)
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if p := b.owner(fn.Name.Name); p != nil {
			texts[p.name] += string(text[fset.Position(d.Pos()).Offset:fset.Position(d.End()).Offset])
		}
	}
	return texts, nil
}

// writeBaseline writes what all programs that mutants are hunted with are rewritten to.
func writeBaseline(t *testing.T, path string) {
	all := make(map[string]string)
	for at := 0; at < hunted; at += inChunk {
		texts, err := rewritten(t, moduleRoot(t), chunk(at))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range texts {
			all[name] = text
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
}
