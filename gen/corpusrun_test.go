package gen_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/gen/overlay"
	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
	"golang.org/x/tools/go/packages"
)

var (
	corpusRunFlag  = flag.String("corpusrun", "gonum/floats", "the folders of the corpus that TestCorpusRuns takes, see -corpus")
	corpusSeedFlag = flag.Uint64("corpusseed", 1, "decides which numbers TestCorpusRuns makes tensors of, and the arguments of calls")
	corpusPartFlag = flag.Uint64("corpuspart", 2, "TestCorpusRuns makes tensors of one in so many numbers")
)

// TestCorpusRuns makes tensors of numbers that other people's functions compute in loops: what is
// assigned or compared there goes through a tensor and is read from it. So the reads are where
// programs need values, in control flow that nobody has written for us. It generates, and calls the
// functions that it can make arguments for, as they were and rewritten: both print the same.
func TestCorpusRuns(t *testing.T) {
	turns.Take(t)
	t.Logf("go test ./gen -run TestCorpusRuns -corpusrun %q -corpusseed %d -corpuspart %d", *corpusRunFlag, *corpusSeedFlag, *corpusPartFlag)
	c := &corpus{dir: sametemp.Dir(t), module: "corpus.example", plain: true}
	c.goMod(t)
	for _, folder := range strings.Fields(*corpusRunFlag) {
		c.copyTree(t, folder)
	}
	names := c.packages(t)
	pkgs, err := packages.Load(&packages.Config{Dir: c.dir, Mode: packages.LoadSyntax}, names...)
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{corpus: c, rand: rand.New(rand.NewPCG(*corpusSeedFlag, 0)), called: make(map[string]bool)}
	for _, pkg := range pkgs {
		if len(pkg.Errors) > 0 {
			t.Fatal(pkg.Errors)
		}
		d.add(t, pkg)
	}
	if d.numbers == 0 || len(d.called) == 0 {
		t.Fatalf("%d numbers in tensors, %d functions called", d.numbers, len(d.called))
	}
	d.main(t)
	r := c.generate(t, append(names, c.module+"/zzmain"))
	rewritten := 0
	for _, m := range r.Remarks {
		if m.Code >= "AG900" {
			t.Errorf("%v", m)
		}
		if m.Verdict == gen.Applied && d.called[filepath.Dir(m.Pos.Filename)+" "+m.Function] {
			d.called[filepath.Dir(m.Pos.Filename)+" "+m.Function] = false
			rewritten++
		}
	}
	o, err := overlay.Of(r)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	want := d.run(t)
	got := d.run(t, o.Flag())
	t.Logf("%d packages, %d numbers in tensors, %d functions called, %d of them rewritten, %d lines of output", len(names), d.numbers, len(d.called), rewritten, bytes.Count(want, []byte("\n")))
	if rewritten == 0 {
		t.Error("nothing that is called is rewritten")
	}
	if !bytes.Equal(got, want) {
		g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("rewritten: %.300s\nas written: %.300s", g[i], w[i])
			}
		}
		if len(g) != len(w) {
			t.Errorf("%d lines, as written %d", len(g), len(w))
		}
	}
}

// A driver makes a program that calls the functions of a corpus.
type driver struct {
	*corpus
	rand    *rand.Rand
	numbers int             // in tensors
	called  map[string]bool // by folder and name
	imports []string
}

// add puts numbers of pkg into tensors, and adds a file that calls its functions.
func (d *driver) add(t *testing.T, pkg *packages.Package) {
	var calls strings.Builder
	for i, file := range pkg.Syntax {
		path := pkg.CompiledGoFiles[i]
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var edits []textEdit
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			found := d.picked(pkg, fn)
			if len(found) == 0 {
				continue
			}
			d.numbers += len(found)
			for _, e := range found {
				at, end := pkg.Fset.Position(e.Pos()).Offset, pkg.Fset.Position(e.End()).Offset
				edits = append(edits, textEdit{at, at, "zzOf("}, textEdit{end, end, ").Item()"})
			}
			if d.call(&calls, pkg, fn) {
				d.called[filepath.Dir(path)+" "+fn.Name.Name] = true
			}
		}
		if len(edits) > 0 {
			gentest.Write(t, path, edited(text, edits))
		}
	}
	dir := filepath.Dir(pkg.CompiledGoFiles[0])
	gentest.Write(t, filepath.Join(dir, "zz_tensor.go"), fmt.Appendf(nil, "package %s\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc zzOf(x float64) *tensor.Tensor { return tensor.From([]float64{x}) }\n", pkg.Name))
	if calls.Len() > 0 && !strings.Contains(pkg.PkgPath, "internal/") && pkg.Name != "main" {
		d.imports = append(d.imports, pkg.PkgPath)
		gentest.Write(t, filepath.Join(dir, "zz_calls.go"), fmt.Appendf(nil, `package %s

import "fmt"

func zzTry(what string, f func()) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Println(what, "panics:", r)
		}
	}()
	f()
}

func zzAll(results ...any) []any { return results }

func ZZCalls() {
%s}
`, pkg.Name, calls.String()))
	}
}

// picked are the numbers of fn that are put into tensors.
func (d *driver) picked(pkg *packages.Package, fn *ast.FuncDecl) (found []ast.Expr) {
	pick := func(e ast.Expr) bool {
		tv := pkg.TypesInfo.Types[e]
		if tv.Value != nil || !types.Identical(tv.Type, types.Typ[types.Float64]) {
			return false
		}
		literal := false
		ast.Inspect(e, func(n ast.Node) bool {
			_, lit := n.(*ast.FuncLit)
			literal = literal || lit
			return !literal
		})
		h := fnv.New64a()
		fmt.Fprint(h, *corpusSeedFlag, pkg.PkgPath, fn.Name.Name, e.Pos()-fn.Pos())
		return !literal && h.Sum64()%*corpusPartFlag == 0
	}
	var visit func(n ast.Node, loop bool)
	visit = func(n ast.Node, loop bool) {
		ast.Inspect(n, func(m ast.Node) bool {
			if m == n {
				return true
			}
			switch m := m.(type) {
			case *ast.ForStmt, *ast.RangeStmt:
				visit(m, true)
				return false
			case *ast.AssignStmt:
				if loop && len(m.Lhs) == len(m.Rhs) && !slices.ContainsFunc(m.Rhs, func(e ast.Expr) bool { return !pick(e) }) {
					found = append(found, m.Rhs...)
					return false
				}
			case *ast.BinaryExpr:
				if loop && m.Op.Precedence() == token.EQL.Precedence() && pick(m.X) {
					found = append(found, m.X)
					return false
				}
			}
			return true
		})
	}
	visit(fn.Body, false)
	return found
}

// call writes calls of fn, if arguments can be made for it and its results be printed.
func (d *driver) call(b *strings.Builder, pkg *packages.Package, fn *ast.FuncDecl) bool {
	sig := pkg.TypesInfo.Defs[fn.Name].(*types.Func).Signature()
	if sig.Recv() != nil || sig.TypeParams().Len() > 0 || fn.Name.Name == "init" || fn.Name.Name == "main" {
		return false
	}
	for v := range sig.Results().Variables() {
		if !printable(v.Type()) {
			return false
		}
	}
	for v := range sig.Params().Variables() {
		if d.argument(v.Type(), 1) == "" {
			return false
		}
	}
	for trial := range 6 {
		size := d.rand.IntN(5)
		fmt.Fprintf(b, "\tzzTry(%q, func() {\n", fmt.Sprint(pkg.PkgPath, ".", fn.Name.Name, " ", trial))
		var args, slices []string
		for v := range sig.Params().Variables() {
			arg := fmt.Sprint("a", len(args))
			fmt.Fprintf(b, "\t\t%s := %s\n", arg, d.argument(v.Type(), size))
			if _, ok := v.Type().Underlying().(*types.Slice); ok {
				slices = append(slices, arg)
			}
			args = append(args, arg)
		}
		fmt.Fprintf(b, "\t\tdefer func() { fmt.Println(%q, zzAll(%s)) }()\n", fn.Name.Name+" leaves", strings.Join(slices, ", "))
		call := fn.Name.Name + "(" + strings.Join(args, ", ")
		if sig.Variadic() {
			call += "..."
		}
		call += ")"
		if sig.Results().Len() > 0 {
			call = fmt.Sprintf("fmt.Println(%q, zzAll(%s))", fn.Name.Name, call)
		}
		fmt.Fprintf(b, "\t\t%s\n\t})\n", call)
	}
	return true
}

// printable reports whether fmt shows all of a value of type t.
func printable(t types.Type) bool {
	if types.Identical(t, types.Universe.Lookup("error").Type()) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.UnsafePointer
	case *types.Slice:
		return printable(u.Elem())
	case *types.Array:
		return printable(u.Elem())
	}
	return false
}

// argument is an expression of type t, or "" if there is none. Slices have size elements, mostly.
func (d *driver) argument(t types.Type, size int) string {
	number := func() string {
		return []string{"0", "1", "-1", "0.5", "2", "3", "1e-3", "-2.25", "1e3", "7.125"}[d.rand.IntN(10)]
	}
	switch u := t.(type) {
	case *types.Basic:
		switch u.Kind() {
		case types.Float64:
			return "float64(" + number() + ")"
		case types.Int:
			return fmt.Sprint(d.rand.IntN(size + 2))
		case types.Bool:
			return fmt.Sprint(d.rand.IntN(2) == 0)
		}
	case *types.Slice:
		if d.rand.IntN(12) == 0 {
			size++
		}
		var elems []string
		switch e, _ := u.Elem().(*types.Basic); {
		case e == nil:
		case e.Kind() == types.Float64:
			for range size {
				elems = append(elems, number())
			}
			return "[]float64{" + strings.Join(elems, ", ") + "}"
		case e.Kind() == types.Int:
			for range size {
				elems = append(elems, fmt.Sprint(d.rand.IntN(size+1)))
			}
			return "[]int{" + strings.Join(elems, ", ") + "}"
		}
	case *types.Signature:
		switch {
		case u.String() == "func(float64) float64":
			return "func(x float64) float64 { return x*x - 2 }"
		case u.String() == "func(float64) bool":
			return "func(x float64) bool { return x > 1 }"
		}
	}
	return ""
}

// main writes the program.
func (d *driver) main(t *testing.T) {
	var b strings.Builder
	b.WriteString("package main\n\nimport (\n")
	for i, path := range d.imports {
		fmt.Fprintf(&b, "\tp%d %q\n", i, path)
	}
	b.WriteString(")\n\nfunc main() {\n")
	for i := range d.imports {
		fmt.Fprintf(&b, "\tp%d.ZZCalls()\n", i)
	}
	b.WriteString("}\n")
	gentest.Write(t, filepath.Join(d.dir, "zzmain", "main.go"), []byte(b.String()))
}

// run runs the program.
func (d *driver) run(t *testing.T, flags ...string) []byte {
	cmd := exec.CommandContext(t.Context(), "go", append(append([]string{"run"}, flags...), "./zzmain")...)
	cmd.Dir = d.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%.3000s\n%.2000s", cmd, err, stderr.Bytes(), out[max(0, len(out)-2000):])
	}
	return out
}
