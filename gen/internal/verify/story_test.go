package verify

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// A run that is not executed because another one got the same answers ends as if it were, and leaves the choices as if
// it were.
func TestToldRuns(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", `package p

func f(xs []int, test func(int) bool, p *int) (n int) {
	for i, x := range xs {
		if test(x) {
			n += i
		} else if p != nil && n > *p {
			break
		}
	}
	return n
}
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Defs: make(map[*ast.Ident]types.Object), Uses: make(map[*ast.Ident]types.Object),
		Implicits: make(map[ast.Node]types.Object), Selections: make(map[*ast.SelectorExpr]*types.Selection), Instances: make(map[*ast.Ident]types.Instance)}
	if _, err := new(types.Config).Check("p", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	fn := &Func{file.Decls[0].(*ast.FuncDecl), info, fset}
	program := NewProgram(func(*types.Func) *Func { return nil }, func(types.Object) (load.Effects, bool) { return load.Effects{}, false })
	c := &comparison{Program: program, ts: newTerms(), original: fn, stories: make(map[beginning]*story)}
	told := 0
	var ends []*outcome
	for path := range uint64(100) {
		fast, slow := choicesOf(path), choicesOf(path)
		got := c.run(fn, fast, schedule{})
		want := c.execute(c.ts, beginning{fn: fn}, slow, schedule{}, nil, new(story), nil)
		if slices.Contains(ends, got) {
			told++
		}
		ends = append(ends, got)
		if err := differ(want, got); err != nil || got.stopped != want.stopped || got.isCut != want.isCut || got.steps != want.steps || !slices.Equal(got.raised, want.raised) {
			t.Errorf("path %d: %v, stopped by %q and %q", path, err, got.stopped, want.stopped)
		}
		if !maps.Equal(fast.known, slow.known) || fast.asked != slow.asked || fast.random.Uint64() != slow.random.Uint64() {
			t.Errorf("path %d: the choices are not the same afterwards", path)
		}
	}
	if told < 20 || told > 80 {
		t.Errorf("%d of 100 runs were not executed", told)
	}
}
