package elementread

import (
	_ "embed"
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT006.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT006", Package: "elementread", Doc: doc, Fixes: true, Check: check}

func check(p *lint.Pass) {
	reads := sites.ElementReads(p.Package)
	fixed := make(map[*blocking.Loop]bool)
	for _, e := range reads {
		what := " reads one part of " + types.ExprString(e.Tensor) + " in each iteration; read it once before the loop"
		if e.Whole {
			what = " reads the same in each iteration; read it once before the loop"
		}
		var fixes []analysis.SuggestedFix
		if !fixed[e.Loop] {
			fixed[e.Loop] = true
			fixes = hoist(p, e.Loop.Stmt, ofLoop(reads, e.Loop))
		}
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:            e.Call.Pos(),
			End:            e.Call.End(),
			Message:        "repeated read in loop: " + e.Name + what,
			Related:        e.Loop.Related(),
			SuggestedFixes: fixes,
		})
	}
}

func ofLoop(reads []*sites.ElementRead, l *blocking.Loop) []*sites.ElementRead {
	return slices.DeleteFunc(slices.Clone(reads), func(e *sites.ElementRead) bool { return e.Loop != l })
}

// hoist moves reads of whole tensors from a loop to variables before it, where that is safe; see
// doc.go.
func hoist(p *lint.Pass, loop ast.Stmt, reads []*sites.ElementRead) []analysis.SuggestedFix {
	if loop == nil {
		return nil
	}
	cur, ok := p.CursorOf(loop)
	if !ok || cur.ParentEdgeKind() != edge.BlockStmt_List && cur.ParentEdgeKind() != edge.CaseClause_Body && cur.ParentEdgeKind() != edge.CommClause_Body {
		return nil // it has a label
	}
	at := p.Lead(loop.Pos())
	indent, alone := p.Indentation(at)
	if !alone {
		return nil
	}
	var before strings.Builder
	var edits []analysis.TextEdit
	values := make(map[string]string) // the new variable for each call
	for _, e := range reads {
		text, ok := p.Source(e.Call)
		if !ok || !canHoist(p, e) {
			continue
		}
		if values[text] == "" {
			values[text] = p.NewName(nameOf(e.Tensor)+"Value", loop)
			before.WriteString(values[text] + " := " + text + "\n" + indent)
		}
		edits = append(edits, analysis.TextEdit{Pos: e.Call.Pos(), End: e.Call.End(), NewText: []byte(values[text])})
	}
	if len(edits) == 0 {
		return nil
	}
	edits = append(edits, analysis.TextEdit{Pos: at, End: at, NewText: []byte(before.String())})
	return []analysis.SuggestedFix{{Message: "Read before the loop", TextEdits: edits}}
}

// nameOf is the last part of a name.
func nameOf(e ast.Expr) string {
	if sel, ok := ast.Unparen(e).(*ast.SelectorExpr); ok {
		return sel.Sel.Name
	}
	return types.ExprString(e)
}

// canHoist reports whether a read before the loop gives the same value, and is as certain to happen.
// For a slice it doesn't: each read gives a new slice, which the program may write to.
func canHoist(p *lint.Pass, e *sites.ElementRead) bool {
	sel, ok := ast.Unparen(e.Call.Fun).(*ast.SelectorExpr)
	_, isNumber := p.TypesInfo.TypeOf(e.Call).Underlying().(*types.Basic)
	return ok && isNumber && e.Certain && !e.Timed && sel.X == e.Tensor && len(e.Call.Args) == 0 && !p.HasComment(e.Call.Pos(), e.Call.End())
}
