package gentest_test

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/gentest"
)

// TestLength: what is generated is not much longer than what was written, and the median does not grow. The smallest
// loop gets four lines, whatever is around it: the backlog, its end, a read and the flush. So short functions grow by
// more than long ones, and loops that end by a value by more than others.
func TestLength(t *testing.T) {
	type pair struct {
		name     string
		from, to int // lines
	}
	var pairs []pair
	for _, g := range gentest.Read(t, "") {
		written, generated := functionLengths(t, g.Section("in.go")), functionLengths(t, g.Section("want_async.go"))
		for name, from := range written {
			if to := generated[name+"Async"]; to > 3 { // 3: it calls the original
				pairs = append(pairs, pair{g.Name + ": " + name, from, to})
			}
		}
	}
	slices.SortFunc(pairs, func(p, q pair) int {
		return cmp.Or(cmp.Compare(p.to*q.from, q.to*p.from), strings.Compare(p.name, q.name))
	})
	for _, c := range []struct {
		least int // lines
		bound float64
	}{{0, 1.72}, {16, 1.55}} {
		some := slices.DeleteFunc(slices.Clone(pairs), func(p pair) bool { return p.from < c.least })
		ratio := func(p pair) float64 { return float64(p.to) / float64(p.from) }
		median := ratio(some[len(some)/2])
		t.Logf("%d functions of at least %d lines: the median is %.2f times as long", len(some), c.least, median)
		for _, p := range some[len(some)-5:] {
			t.Logf("%5.2f times: %s, from %d to %d lines", ratio(p), p.name, p.from, p.to)
		}
		if median > c.bound {
			t.Errorf("of at least %d lines: the median is %.3f times as long, want at most %.2f", c.least, median, c.bound)
		}
	}
}

// functionLengths returns how many lines each function of a file has, by its receiver and name.
func functionLengths(t *testing.T, text []byte) map[string]int {
	lines := make(map[string]int)
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			name := fn.Name.Name
			if fn.Recv != nil {
				name = string(text[fset.Position(fn.Recv.Opening).Offset:fset.Position(fn.Recv.Closing).Offset+1]) + name
			}
			lines[name] = fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		}
	}
	return lines
}
