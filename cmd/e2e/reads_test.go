package e2e_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/types/typeutil"
)

// rewrittenShare is what part of the reads in loops of the example programs is rewritten, at least. What is left
// can't come later: letters that are shown one by one, weights that are saved, a wait that is measured.
const rewrittenShare = 0.85

// TestReads finds, by types alone, every call in a loop of the example programs that waits for a
// tensor, and asks the generator what has become of it: it is rewritten, or it is refused, or the
// loop around it is. Each refusal says why. The test prints the table, and holds the share that is
// rewritten.
func TestReads(t *testing.T) {
	result := rewritePrograms(t)
	reads := readsInLoops(t, "./testdata/programs/...")
	table, rewritten := "", 0
	for _, read := range reads {
		answers := read.answers(result.Remarks)
		switch {
		case len(answers) == 0:
			t.Errorf("%v: nothing is said about %s", read.pos, read.text)
		case !slices.ContainsFunc(answers, func(m gen.Remark) bool { return m.Verdict != gen.Applied }):
			rewritten++
		}
		table += read.row(t, answers)
	}
	t.Logf("%d of %d reads in loops are rewritten:\n%s", rewritten, len(reads), table)
	if share := float64(rewritten) / float64(len(reads)); !(share >= rewrittenShare) {
		t.Errorf("%.0f %% of the reads in loops are rewritten, want %.0f %% at least", 100*share, 100*rewrittenShare)
	}
}

// A loopRead is a call in a loop that waits for a tensor.
type loopRead struct {
	text  string
	pos   token.Position
	own   []token.Position    // of what is read: the call, and the arguments that it prints
	loops [][2]token.Position // around it in its function, from begin to end, the innermost one first
}

// answers returns the remarks on the read itself, or on its innermost loop about which something is refused.
func (r loopRead) answers(remarks []gen.Remark) []gen.Remark {
	var own []gen.Remark
	for _, m := range remarks {
		if slices.ContainsFunc(r.own, func(p token.Position) bool {
			return m.Pos.Filename == p.Filename && m.Pos.Line == p.Line && m.Pos.Column == p.Column
		}) {
			own = append(own, m)
		}
	}
	if len(own) > 0 {
		return own
	}
	for _, loop := range r.loops {
		for _, m := range remarks {
			if m.Verdict == gen.Refused && m.Pos.Filename == r.pos.Filename && loop[0].Offset <= m.Pos.Offset && m.Pos.Offset < loop[1].Offset {
				own = append(own, m)
			}
		}
		if len(own) > 0 {
			return own
		}
	}
	return nil
}

// row is the read's part of the table: its line of source, and what has become of it.
func (r loopRead) row(t *testing.T, answers []gen.Remark) string {
	lines := strings.Split(readText(t, r.pos.Filename), "\n")
	program := filepath.Base(filepath.Dir(r.pos.Filename))
	row := fmt.Sprintf("%s/%s:%d: %s\n", program, filepath.Base(r.pos.Filename), r.pos.Line, strings.TrimSpace(lines[r.pos.Line-1]))
	for _, m := range answers {
		row += fmt.Sprintf("\t%s %v: %s\n", m.Code, m.Verdict, m.Message)
	}
	return row
}

// readsInLoops returns the calls in loops of the packages that wait for a tensor: to read it, or to
// print it. Calls that wait for everything are not among them.
func readsInLoops(t *testing.T, pattern string) []loopRead {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
	}, pattern)
	if err != nil || packages.PrintErrors(pkgs) > 0 {
		t.Fatalf("load %s: %v", pattern, err)
	}
	var reads []loopRead
	for _, pkg := range pkgs {
		for _, file := range pkg.Syntax {
			ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !waitsForTensor(pkg.TypesInfo, call) {
					return true
				}
				read := loopRead{text: types.ExprString(call), pos: pkg.Fset.Position(call.Pos())}
				read.own = []token.Position{read.pos}
				for _, arg := range call.Args {
					if isTensor(pkg.TypesInfo.TypeOf(arg)) {
						read.own = append(read.own, pkg.Fset.Position(arg.Pos()))
					}
				}
				for i := len(stack) - 1; i >= 0; i-- {
					if repeats(stack[i], call) {
						read.loops = append(read.loops, [2]token.Position{pkg.Fset.Position(stack[i].Pos()), pkg.Fset.Position(stack[i].End())})
					}
				}
				if len(read.loops) > 0 {
					reads = append(reads, read)
				}
				return true
			})
		}
	}
	return reads
}

// repeats reports whether n is a loop that evaluates the expression inside it each time.
func repeats(n ast.Node, inside ast.Expr) bool {
	var once ast.Node
	switch n := n.(type) {
	case *ast.ForStmt:
		if n.Init == nil {
			return true
		}
		once = n.Init
	case *ast.RangeStmt:
		once = n.X
	default:
		return false
	}
	return inside.End() <= once.Pos() || once.End() <= inside.Pos()
}

// waitsForTensor reports whether a call is a read of a tensor, or prints one.
func waitsForTensor(info *types.Info, call *ast.CallExpr) bool {
	fn, ok := typeutil.Callee(info, call).(*types.Func)
	if !ok || fn.Pkg() == nil {
		return false
	}
	if f, ok := tensorapi.Ours().Lookup(fn); ok {
		return f.Waits() && f.Kind != tensorapi.WaitAll
	}
	switch fn.Pkg().Path() {
	case "fmt", "log", "log/slog":
		return slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { return isTensor(info.TypeOf(arg)) })
	}
	return false
}

func isTensor(t types.Type) bool { return t.String() == "*"+module+"/runtime/tensor.Tensor" }
