package gen_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/internal/sametemp"
)

var corpusFlag = flag.String("corpus", "std/container std/encoding/hex std/text/template/parse", "the folders of the corpus that TestCorpus takes: of std, gonum and tools; \"all\" of those that are to be tried, minutes")

// everything is what "all" stands for. Packages that need what they can't have outside the standard
// library are left out of them.
const everything = "std/container std/sort std/text std/encoding std/go std/regexp std/math std/image std/compress std/archive std/html std/index std/mime std/net/http" +
	" std/net/netip std/net/url std/database std/log std/strings std/bytes std/bufio std/slices std/maps std/strconv std/unicode std/path std/io std/context std/flag std/fmt std/crypto" +
	" gonum tools"

// TestCorpus sends other people's code through the generator, every function as if it were to be
// rewritten: nothing panics, the output has no mistakes of syntax and types, and what was generated
// once is not changed by generating again.
//
// As that code knows no tensors, it gets some: each function that loops has one, and reads it in
// each iteration of each loop, so that all its loops are candidates, with whatever is in them.
func TestCorpus(t *testing.T) {
	dir := sametemp.Dir(t)
	c := &corpus{dir: dir, module: "corpus.example"}
	c.goMod(t)
	folders := strings.Fields(*corpusFlag)
	if *corpusFlag == "all" {
		folders = strings.Fields(everything)
	}
	for _, folder := range folders {
		c.copyTree(t, folder)
	}
	packages := c.packages(t)
	if len(packages) == 0 || c.loops == 0 {
		t.Fatalf("%d packages, %d loops", len(packages), c.loops)
	}

	start := time.Now()
	first := c.generate(t, packages)
	took := time.Since(start)
	for _, f := range first.Files {
		if err := os.WriteFile(f.Path, f.Text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	again := c.generate(t, packages) // also says whether there are mistakes in what it reads
	for _, f := range again.Files {
		old, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range changedAgain(t, old, f.Text) {
			t.Errorf("%s: generating again changes %s", f.Path, name)
		}
	}
	for _, r := range again.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("generating again: %v", r)
		}
	}
	applied, codes := 0, make(map[string]int)
	for _, r := range first.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("%v", r)
		}
		if r.Verdict == gen.Applied {
			applied++
		}
		codes[string(r.Code)]++
	}
	t.Logf("%d packages, %d functions, %d loops: %d files in %v, %d remarks, %d of them on what is rewritten", len(packages), c.functions, c.loops,
		len(first.Files), took.Round(time.Millisecond), len(first.Remarks), applied)
	for _, code := range slices.SortedFunc(maps.Keys(codes), func(a, b string) int { return cmp.Compare(codes[b], codes[a]) }) {
		t.Logf("%s %d", code, codes[code])
	}
	if applied == 0 {
		t.Error("nothing is rewritten")
	}
}

// changedAgain returns the functions of old that were rewritten and are others in text. Those that were not may
// be now: to them, what they call has changed.
func changedAgain(t *testing.T, old, text []byte) (names []string) {
	functions := func(text []byte) map[string]string {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		m := make(map[string]string)
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				name := fn.Name.Name
				if fn.Recv != nil {
					name = types.ExprString(fn.Recv.List[0].Type) + "." + name
				}
				m[name] = string(text[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset])
			}
		}
		return m
	}
	now := functions(text)
	for name, body := range functions(old) {
		if strings.Contains(body, "asyncrt.NewLater[") && now[name] != body {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A corpus is a module made of other people's packages.
type corpus struct {
	dir, module string
	plain       bool // without tensors
	functions   int  // copied
	loops       int  // that read a tensor now
	copied      map[string]bool
}

// goMod makes the corpus a module that has what this one has.
func (c *corpus) goMod(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(gentest.Root(t), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "\n")
	gentest.Write(t, filepath.Join(c.dir, "go.mod"), fmt.Appendf(nil, "module %s\n%s\nrequire github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => %s\n", c.module, rest, gentest.Root(t)))
	sum, err := os.ReadFile(filepath.Join(gentest.Root(t), "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	gentest.Write(t, filepath.Join(c.dir, "go.sum"), sum)
	c.copied = make(map[string]bool)
}

// source is the folder that a folder of the corpus is copied from.
func (c *corpus) source(t *testing.T, folder string) string {
	tree, rest, _ := strings.Cut(folder, "/")
	args := map[string][]string{
		"std":   {"env", "GOROOT"},
		"gonum": {"list", "-m", "-f", "{{.Dir}}", "gonum.org/v1/gonum"},
		"tools": {"list", "-m", "-f", "{{.Dir}}", "golang.org/x/tools"},
	}[tree]
	if args == nil {
		t.Fatalf("-corpus: there is no tree %q", tree)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	if tree == "std" {
		dir = filepath.Join(dir, "src")
	}
	return filepath.Join(dir, rest)
}

// copyTree copies a folder with what is below it.
func (c *corpus) copyTree(t *testing.T, folder string) {
	from := c.source(t, folder)
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if name := d.Name(); path != from && (name == "testdata" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		c.copyPackage(t, filepath.ToSlash(filepath.Join(folder, rel)), path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// copyPackage copies the package of a folder, and the internal ones of the standard library that it needs.
func (c *corpus) copyPackage(t *testing.T, folder, from string) {
	if c.copied[folder] {
		return
	}
	c.copied[folder] = true
	entries, err := os.ReadDir(from)
	if err != nil {
		return // an internal package that is not a folder: the go command says so
	}
	name := ""
	for _, e := range entries {
		switch ext := filepath.Ext(e.Name()); {
		case e.IsDir() || strings.HasSuffix(e.Name(), "_test.go") || ext != ".go" && ext != ".s" && ext != ".h":
		default:
			text, err := os.ReadFile(filepath.Join(from, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if ext == ".go" {
				text, name = c.rewrite(t, e.Name(), text)
			}
			gentest.Write(t, filepath.Join(c.dir, folder, e.Name()), text)
		}
	}
	if name != "" && !c.plain {
		gentest.Write(t, filepath.Join(c.dir, folder, "zz_tensor.go"), fmt.Appendf(nil,
			"package %s\n\nimport \"github.com/asyncgen/asyncgen/runtime/tensor\"\n\nfunc zzTensor() *tensor.Tensor { return tensor.Ones(2) }\n", name))
	}
	if name != "" {
		gentest.Write(t, filepath.Join(c.dir, folder, "zz_empty.s"), nil) // functions may have no bodies
	}
}

// rewrite makes a file import the corpus instead of the originals, and puts a read into each loop.
func (c *corpus) rewrite(t *testing.T, name string, text []byte) (out []byte, pkg string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return text, ""
	}
	var edits []textEdit
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	insert := func(p token.Pos, text string) { edits = append(edits, textEdit{at(p), at(p), text}) }
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if to, ok := c.instead(t, path); ok {
			edits = append(edits, textEdit{at(imp.Path.Pos()), at(imp.Path.End()), strconv.Quote(to)})
		}
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || c.plain {
			continue
		}
		c.functions++
		before := c.loops
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.ForStmt:
				body = n.Body
			case *ast.RangeStmt:
				body = n.Body
			default:
				return true
			}
			c.loops++
			insert(body.Lbrace+1, " zzSum += zzX.Sum().Item();")
			return true
		})
		if c.loops > before {
			insert(fn.Body.Lbrace+1, " zzSum, zzX := 0.0, zzTensor(); _ = zzSum;")
		}
	}
	return edited(text, edits), file.Name.Name
}

// A textEdit replaces a part of a text.
type textEdit struct {
	from, to int
	text     string
}

// edited returns text with edits, of which none is in another.
func edited(text []byte, edits []textEdit) (out []byte) {
	slices.SortStableFunc(edits, func(a, b textEdit) int { return cmp.Compare(a.from, b.from) })
	done := 0
	for _, e := range edits {
		out = append(append(out, text[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, text[done:]...)
}

// instead returns the path in the corpus of what is imported, if it has to be there: what it
// imports it does not find elsewhere, or would be of other types.
func (c *corpus) instead(t *testing.T, path string) (string, bool) {
	for from, to := range map[string]string{"gonum.org/v1/gonum": "gonum", "golang.org/x/tools": "tools"} {
		if rest, ok := strings.CutPrefix(path, from); ok && (rest == "" || rest[0] == '/') {
			folder := to + rest
			c.copyPackage(t, folder, c.source(t, folder))
			return c.module + "/" + folder, true
		}
	}
	first, _, _ := strings.Cut(path, "/")
	if strings.Contains(first, ".") || !slices.Contains(strings.Split(path, "/"), "internal") {
		return "", false // anybody may import it
	}
	folder := "std/" + path
	c.copyPackage(t, folder, c.source(t, folder))
	return c.module + "/" + folder, true
}

// packages returns the packages of the corpus that compile: some need modules that are not here.
func (c *corpus) packages(t *testing.T) []string {
	cmd := exec.Command("go", "list", "-e", "-export", "-f", "{{if and (not .Error) (not .DepsErrors)}}{{.ImportPath}}{{end}}", "./...")
	cmd.Dir = c.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	if stderr.Len() > 0 {
		t.Logf("%v:\n%.4000s", cmd, stderr.Bytes())
	}
	return strings.Fields(string(out))
}

// generate rewrites every function of the packages.
func (c *corpus) generate(t *testing.T, packages []string) *gen.Result {
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	r, err := gen.Generate(context.Background(), gen.Config{Dir: c.dir, Patterns: packages, All: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
