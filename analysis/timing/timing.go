package timing

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT020.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT020", Package: "timing", Doc: doc, Fixes: true, InTests: true, Clocks: true, Check: check}

func check(p *lint.Pass) {
	for _, f := range p.Funcs {
		for _, c := range clocks(f) {
			if saysSo(f, c.Cur) {
				continue
			}
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     c.Call.Pos(),
				End:     c.Call.End(),
				Message: message(c),
				Related: []analysis.RelatedInformation{{
					Pos:     c.Op.Pos(),
					End:     c.Op.End(),
					Message: "this may be unfinished",
				}},
				SuggestedFixes: wait(p, c),
			})
		}
		for _, r := range rates(f) {
			if saysSo(f, r.Cur) {
				continue
			}
			n := r.Cur.Node().(ast.Expr)
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     n.Pos(),
				End:     n.End(),
				Message: types.ExprString(n) + " counts work that was enqueued in time, finished or not; wait for it in the loop, or behind it, and read the clock then",
				Related: []analysis.RelatedInformation{{Pos: r.Op.Pos(), End: r.Op.End(), Message: "this may be unfinished"}},
			})
		}
		for _, c := range f.Calls {
			if isMislabelled(f, c) {
				p.Report(lint.Warning, analysis.Diagnostic{
					Pos:     c.Expr.Pos(),
					End:     c.Expr.End(),
					Message: types.ExprString(c.Expr) + " is the time it took to enqueue the work, not to do it, and nothing here says so; ask Wait",
				})
			}
		}
	}
}

// isMislabelled reports whether a statement asks a Timer for the time of enqueueing, by c, and has a
// text about something else. If the statement also asks for the time of the work, the author knows the
// difference.
//
//	fmt.Println("forward pass:", timer.Enqueued())
func isMislabelled(f *blocking.Func, c *blocking.Call) bool {
	if !c.IsFunc("Timer.Enqueued") {
		return false
	}
	stmt, ok := lint.Statement(c.Cur)
	if !ok {
		return false
	}
	words, hasText := f.Outermost().Name, false
	ast.Inspect(stmt.Node(), func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if other := f.Package.Calls[n]; other != nil && (other.IsFunc("Timer.Wait") || other.IsFunc("Timer.Elapsed")) {
				words += " enqueue"
			}
		case *ast.Ident:
			if n.Name != "Enqueued" {
				words += " " + n.Name
			}
		case *ast.BasicLit:
			words += " " + n.Value
			hasText = hasText || n.Kind == token.STRING
		}
		return true
	})
	return hasText && !blocking.SpeaksOfEnqueueing(words)
}

func message(c clock) string {
	const work = " the time it took to enqueue the work, not to do it; wait "
	switch {
	case c.Inside:
		return c.By + " tells" + work + "at the end of the function that it times"
	case c.By != "":
		return c.By + " tells" + work + "before it reads the clock"
	}
	return types.ExprString(c.Call) + " is" + work + "before reading the clock"
}

// saysSo reports whether the text around a clock or rate in f says that the time of enqueueing is meant.
func saysSo(f *blocking.Func, cur inspector.Cursor) bool {
	words := f.Outermost().Name
	if stmt, ok := lint.Statement(cur); ok {
		ast.Inspect(stmt.Node(), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				words += " " + n.Name
			case *ast.BasicLit:
				words += " " + n.Value
			}
			return true
		})
	}
	return blocking.SpeaksOfEnqueueing(words)
}

// wait inserts a wait for all work before the statement that reads the clock.
func wait(p *lint.Pass, c clock) []analysis.SuggestedFix {
	if !c.Read.IsValid() {
		return nil
	}
	cur, ok := p.Cursor(c.Read)
	if !ok || inLoop(c.Fn, c.Read) {
		return nil
	}
	stmt, ok := lint.Statement(cur)
	if !ok {
		return nil
	}
	edits, ok := p.WaitBefore(stmt.Node().Pos())
	if !ok {
		return nil
	}
	return []analysis.SuggestedFix{{Message: "Wait before reading the clock", TextEdits: edits}}
}
