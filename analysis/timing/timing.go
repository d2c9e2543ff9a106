package timing

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT020.
var Analyzer = rule.Analyzer()

var rule = &blocking.Rule{ID: "AT020", Package: "timing", Doc: doc, InTests: true, Check: check}

func check(p *blocking.Pass) {
	for _, f := range p.Funcs {
		for _, c := range f.Clocks() {
			if saysSo(c) {
				continue
			}
			p.Report(blocking.Warning, analysis.Diagnostic{
				Pos:     c.Call.Pos(),
				End:     c.Call.End(),
				Message: types.ExprString(c.Call) + " is the time it took to enqueue the work, not to do it; wait before reading the clock",
				Related: []analysis.RelatedInformation{{
					Pos:     c.Op.Pos(),
					End:     c.Op.End(),
					Message: "this may be unfinished",
				}},
				SuggestedFixes: wait(p, c),
			})
		}
	}
}

// saysSo reports whether the text around the clock says that the time of
// enqueueing is meant.
func saysSo(c blocking.Clock) bool {
	words := c.Fn.Name()
	if stmt, ok := statement(c.Cur); ok {
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
	words = strings.ToLower(words)
	for _, w := range []string{"enqueue", "queue", "dispatch", "launch", "submit", "issue"} {
		if strings.Contains(words, w) {
			return true
		}
	}
	return false
}

// statement returns the simple statement around cur that stands in a list of
// statements.
func statement(cur inspector.Cursor) (inspector.Cursor, bool) {
	for c := range cur.Enclosing() {
		if _, ok := c.Node().(ast.Stmt); !ok {
			continue
		}
		switch c.ParentEdgeKind() {
		case edge.BlockStmt_List, edge.CaseClause_Body, edge.CommClause_Body:
			switch c.Node().(type) {
			case *ast.ExprStmt, *ast.AssignStmt, *ast.DeclStmt, *ast.ReturnStmt, *ast.SendStmt:
				return c, true
			}
		}
		return c, false
	}
	return cur, false
}

// The control package of the runtime and the name it is imported by.
const (
	control = "github.com/asyncgen/asyncgen/runtime"
	alias   = "asyncrt"
)

// wait inserts a wait for all work before the statement that reads the clock.
func wait(p *blocking.Pass, c blocking.Clock) []analysis.SuggestedFix {
	file := p.FileOf(c.Read)
	cur, ok := p.Cursor(c.Read)
	if !ok || file == nil || c.Fn.InLoop(c.Read) {
		return nil
	}
	stmt, ok := statement(cur)
	if !ok {
		return nil
	}
	pos := lead(p, file, stmt.Node().Pos())
	indent, ok := p.Indentation(pos)
	if !ok {
		return nil
	}
	name, edits, ok := importControl(p, file, pos)
	if !ok {
		return nil
	}
	text := "if err := " + name + ".WaitAll(); err != nil {\n" + indent + "\tpanic(err)\n" + indent + "}\n" + indent
	return []analysis.SuggestedFix{{
		Message:   "Wait before reading the clock",
		TextEdits: append(edits, analysis.TextEdit{Pos: pos, End: pos, NewText: []byte(text)}),
	}}
}

// lead returns where the comment directly above pos begins, or pos.
func lead(p *blocking.Pass, file *ast.File, pos token.Pos) token.Pos {
	line := func(pos token.Pos) int { return p.Fset.Position(pos).Line }
	for _, g := range file.Comments {
		if line(g.End()) == line(pos)-1 {
			if _, alone := p.Indentation(g.Pos()); alone {
				return g.Pos()
			}
		}
	}
	return pos
}

// importControl returns the name of the control package at pos and the edit
// that imports it, if one is needed. It fails if the name is taken.
func importControl(p *blocking.Pass, file *ast.File, pos token.Pos) (name string, edits []analysis.TextEdit, ok bool) {
	name = alias
	imported := false
	for _, spec := range file.Imports {
		if importPath(spec) == control {
			imported = true
			if spec.Name != nil {
				name = spec.Name.Name
			}
		}
	}
	if name == "." || name == "_" {
		return "", nil, false
	}
	_, obj := p.Pkg.Scope().Innermost(pos).LookupParent(name, pos)
	if imported {
		pkg, isPkg := obj.(*types.PkgName)
		return name, nil, isPkg && pkg.Imported().Path() == control
	}
	if obj != nil || used(file, name) {
		return "", nil, false
	}
	edit, ok := importEdit(p, file)
	return name, []analysis.TextEdit{edit}, ok
}

// used reports whether a file mentions a name, which an import would capture
// or which would hide the import.
func used(file *ast.File, name string) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

// importEdit adds the import of the control package beside the import that
// comes next to it in gofmt's order, within a group of module imports.
func importEdit(p *blocking.Pass, file *ast.File) (analysis.TextEdit, bool) {
	spec := alias + " " + strconv.Quote(control)
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.IMPORT || !decl.Lparen.IsValid() {
			continue
		}
		for i, s := range decl.Specs {
			at := s.(*ast.ImportSpec)
			host, _, _ := strings.Cut(importPath(at), "/")
			if !strings.Contains(host, ".") || importPath(at) < control || !firstAbove(p, decl, i) {
				continue
			}
			pos := at.Pos()
			if at.Doc != nil {
				pos = at.Doc.Pos()
			}
			return analysis.TextEdit{Pos: pos, End: pos, NewText: []byte(spec + "\n\t")}, true
		}
		last := decl.Specs[len(decl.Specs)-1].(*ast.ImportSpec)
		if last.Comment != nil {
			return analysis.TextEdit{}, false
		}
		return analysis.TextEdit{Pos: last.End(), End: last.End(), NewText: []byte("\n\n\t" + spec)}, true
	}
	if len(file.Imports) == 0 {
		return analysis.TextEdit{}, false
	}
	last := file.Imports[len(file.Imports)-1]
	if last.Comment != nil {
		return analysis.TextEdit{}, false
	}
	return analysis.TextEdit{Pos: last.End(), End: last.End(), NewText: []byte("\nimport " + spec)}, true
}

// firstAbove reports whether the import before the i-th one, in the same group
// of lines, sorts before the control package.
func firstAbove(p *blocking.Pass, decl *ast.GenDecl, i int) bool {
	if i == 0 {
		return true
	}
	prev, at := decl.Specs[i-1].(*ast.ImportSpec), decl.Specs[i].(*ast.ImportSpec)
	start := at.Pos()
	if at.Doc != nil {
		start = at.Doc.Pos()
	}
	sameGroup := p.Fset.Position(prev.End()).Line == p.Fset.Position(start).Line-1
	return !sameGroup || importPath(prev) < control
}

func importPath(spec *ast.ImportSpec) string {
	s, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return s
}
