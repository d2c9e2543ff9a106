package guardedread

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT008.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT008", Package: "guardedread", Doc: doc, Fixes: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	moves := make(map[*blocking.Loop][]move)
	for _, s := range sites.Of(p) {
		if s.Pattern() == sites.Seldom {
			if m, ok := sink(p, s); ok {
				moves[s.Loop] = append(moves[s.Loop], m)
			}
		}
	}
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.Seldom {
			continue
		}
		fixes := combine(moves[s.Loop])
		delete(moves, s.Loop) // the first finding has the fix of them all
		p.Report(lint.Warning, analysis.Diagnostic{
			Pos:            s.Call.Pos(),
			End:            s.Call.End(),
			Message:        "blocking read in loop: " + s.Name + " waits for the device in each iteration, but its value is used in few; read it where it is used",
			Related:        s.Loop.Related(),
			SuggestedFixes: fixes,
		})
	}
}

// A move is the change that takes a statement into an if statement.
type move struct {
	from, to token.Pos // the line of the statement
	at       token.Pos // where it goes
	text     string    // what goes there
}

// combine makes one fix of the moves in a loop.
func combine(moves []move) []analysis.SuggestedFix {
	if len(moves) == 0 {
		return nil
	}
	var edits []analysis.TextEdit
	inserted := make(map[token.Pos]int) // the edit that inserts there
	for _, m := range moves {
		edits = append(edits, analysis.TextEdit{Pos: m.from, End: m.to})
		if i, ok := inserted[m.at]; ok {
			edits[i].NewText = append(edits[i].NewText, m.text...)
			continue
		}
		inserted[m.at] = len(edits)
		edits = append(edits, analysis.TextEdit{Pos: m.at, End: m.at, NewText: []byte(m.text)})
	}
	return []analysis.SuggestedFix{{Message: "Read the value where it is used", TextEdits: edits}}
}

// sink moves the statement "v := x.Item()" into the if statement that alone
// uses v, if that is safe; see doc.go.
func sink(p *lint.Pass, s *sites.Site) (move, bool) {
	if s.Timed || s.Cur.ParentEdgeKind() != edge.AssignStmt_Rhs {
		return move{}, false
	}
	stmt := s.Cur.Parent()
	assign := stmt.Node().(*ast.AssignStmt)
	if assign.Tok != token.DEFINE || len(assign.Lhs) != 1 || len(assign.Rhs) != 1 || stmt.ParentEdgeKind() != edge.BlockStmt_List {
		return move{}, false
	}
	value, ok := p.TypesInfo.Defs[assign.Lhs[0].(*ast.Ident)].(*types.Var)
	if !ok {
		return move{}, false
	}
	tensor, ok := ast.Unparen(s.Operand).(*ast.Ident)
	if !ok || len(s.Call.Args) != 0 {
		return move{}, false
	}
	of, ok := p.TypesInfo.Uses[tensor].(*types.Var)
	if !ok || of.IsField() || of.Parent() == p.Pkg.Scope() || p.IsShared(of, s.Cur) {
		return move{}, false // other code may assign it
	}
	guard := target(p, stmt, value, of)
	if guard == nil || len(guard.Body.List) == 0 {
		return move{}, false
	}
	scope := p.TypesInfo.Scopes[guard.Body]
	if scope == nil || scope.Lookup(value.Name()) != nil {
		return move{}, false
	}
	at := start(p, guard.Body)
	if _, obj := scope.LookupParent(tensor.Name, at); obj != p.TypesInfo.Uses[tensor] {
		return move{}, false // another variable of that name hides it there
	}
	from, to, text, ok := line(p, assign)
	indent, alone := p.Indentation(at)
	if !ok || !alone {
		return move{}, false
	}
	return move{from, to, at, text + "\n" + indent}, true
}

// target returns the if statement after stmt whose body alone uses value. It returns nil if there is
// none, or if a statement before it assigns the tensor.
func target(p *lint.Pass, stmt inspector.Cursor, value *types.Var, tensor types.Object) *ast.IfStmt {
	var guard *ast.IfStmt
	for next, ok := stmt.NextSibling(); ok; next, ok = next.NextSibling() {
		uses, inBody := count(p, next, value)
		switch {
		case guard != nil && uses > 0:
			return nil
		case guard == nil && uses > 0:
			n, isIf := next.Node().(*ast.IfStmt)
			if !isIf || inBody != uses {
				return nil
			}
			guard = n
		}
		if guard == nil && assigns(p, next, tensor) {
			return nil
		}
	}
	if guard == nil || assignsHeader(p, guard, tensor) {
		return nil
	}
	return guard
}

// count counts the uses of v below cur and, if cur is an if statement, those in its body.
func count(p *lint.Pass, cur inspector.Cursor, v *types.Var) (all, inBody int) {
	ifStmt, _ := cur.Node().(*ast.IfStmt)
	for c := range cur.Preorder((*ast.Ident)(nil)) {
		id := c.Node().(*ast.Ident)
		if p.TypesInfo.Uses[id] != v {
			continue
		}
		all++
		if ifStmt != nil && ifStmt.Body.Pos() <= id.Pos() && id.Pos() < ifStmt.Body.End() {
			inBody++
		}
	}
	return all, inBody
}

// assigns reports whether the statement at cur may assign v.
func assigns(p *lint.Pass, cur inspector.Cursor, v types.Object) bool {
	for c := range cur.Preorder((*ast.Ident)(nil)) {
		if p.TypesInfo.Uses[c.Node().(*ast.Ident)] == v && changes(c) {
			return true
		}
	}
	return false
}

// changes reports whether an identifier is assigned, or its address taken.
func changes(c inspector.Cursor) bool {
	switch c.ParentEdgeKind() {
	case edge.AssignStmt_Lhs, edge.RangeStmt_Key, edge.RangeStmt_Value:
		return true
	case edge.UnaryExpr_X:
		return c.Parent().Node().(*ast.UnaryExpr).Op == token.AND
	}
	return false
}

func assignsHeader(p *lint.Pass, n *ast.IfStmt, v types.Object) bool {
	found := false
	for _, part := range []ast.Node{n.Init, n.Cond} {
		if part == nil || part == ast.Stmt(nil) {
			continue
		}
		ast.Inspect(part, func(n ast.Node) bool {
			if a, ok := n.(*ast.AssignStmt); ok {
				for _, lhs := range a.Lhs {
					id, ok := ast.Unparen(lhs).(*ast.Ident)
					found = found || ok && p.TypesInfo.Uses[id] == v
				}
			}
			return !found
		})
	}
	return found
}

// start returns the place where the first statement of a block begins, or the comment above it.
func start(p *lint.Pass, block *ast.BlockStmt) token.Pos {
	first := block.List[0].Pos()
	for _, g := range p.FileOf(first).Comments {
		if block.Lbrace < g.Pos() && g.Pos() < first {
			if _, alone := p.Indentation(g.Pos()); alone {
				return g.Pos()
			}
		}
	}
	return first
}

// line returns the line that a statement has for itself, and what is on it:
// the statement and perhaps a comment.
func line(p *lint.Pass, n ast.Node) (from, to token.Pos, text string, ok bool) {
	f := p.Fset.File(n.Pos())
	src, err := p.ReadFile(f.Name())
	at := lint.LineOf(f, n.Pos())
	if err != nil || at != lint.LineOf(f, n.End()) || at >= f.LineCount() {
		return 0, 0, "", false
	}
	from, to = f.LineStart(at), f.LineStart(at+1)
	text = strings.TrimSpace(string(src[f.Offset(from):f.Offset(to)]))
	rest, ok := strings.CutPrefix(text, string(src[f.Offset(n.Pos()):f.Offset(n.End())]))
	rest = strings.TrimSpace(rest)
	return from, to, text, ok && (rest == "" || strings.HasPrefix(rest, "//"))
}
