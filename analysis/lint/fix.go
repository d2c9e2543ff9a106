package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// What the fixes of several rules are made of.

// Statement returns the simple statement around cur, if it stands in a list of statements.
func Statement(cur inspector.Cursor) (inspector.Cursor, bool) {
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

	waitIdle = ".WaitIdle()"
)

// WaitBefore returns the edits that insert a wait for all work before the statement at pos, and before
// a comment above it. The wait leaves failures to those who read the results. It reports false if this
// can't be done in good form.
func (p *Pass) WaitBefore(pos token.Pos) ([]analysis.TextEdit, bool) {
	file := p.FileOf(pos)
	if file == nil {
		return nil, false
	}
	pos = p.lead(file, pos)
	indent, alone := p.Indentation(pos)
	name, edits, ok := p.importControl(file, pos)
	if !alone || !ok {
		return nil, false
	}
	text := name + waitIdle + "\n" + indent
	return append(edits, analysis.TextEdit{Pos: pos, End: pos, NewText: []byte(text)}), true
}

// WaitAfter is WaitBefore for the lines after a statement.
func (p *Pass) WaitAfter(stmt ast.Stmt) ([]analysis.TextEdit, bool) {
	file := p.FileOf(stmt.Pos())
	if file == nil {
		return nil, false
	}
	indent, alone := p.Indentation(stmt.Pos())
	next, ok := p.nextLine(stmt.End())
	if !alone || !ok {
		return nil, false
	}
	name, edits, ok := p.importControl(file, stmt.End())
	if !ok {
		return nil, false
	}
	text := indent + name + waitIdle + "\n"
	return append(edits, analysis.TextEdit{Pos: next, End: next, NewText: []byte(text)}), true
}

// nextLine returns where the line after the one of pos begins, if nothing but a
// comment stands behind pos on its line.
func (p *Pass) nextLine(pos token.Pos) (token.Pos, bool) {
	f := p.Fset.File(pos)
	src, err := p.ReadFile(f.Name())
	if err != nil || LineOf(f, pos) >= f.LineCount() {
		return 0, false
	}
	next := f.LineStart(LineOf(f, pos) + 1)
	rest := strings.TrimSpace(string(src[f.Offset(pos):f.Offset(next)]))
	return next, rest == "" || strings.HasPrefix(rest, "//")
}

// Source returns the text of n in its file.
func (p *Pass) Source(n ast.Node) (string, bool) {
	f := p.Fset.File(n.Pos())
	src, err := p.ReadFile(f.Name())
	if err != nil {
		return "", false
	}
	return string(src[f.Offset(n.Pos()):f.Offset(n.End())]), true
}

// HasComment reports whether there is a comment between pos and end. A fix that replaces the text would lose it.
func (p *Pass) HasComment(pos, end token.Pos) bool {
	for _, g := range p.FileOf(pos).Comments {
		if g.Pos() < end && pos < g.End() {
			return true
		}
	}
	return false
}

// Lead returns where the comment directly above pos begins, or pos.
func (p *Pass) Lead(pos token.Pos) token.Pos { return p.lead(p.FileOf(pos), pos) }

// NextLine returns where the line after the one of pos begins, if nothing but a
// comment stands behind pos on its line.
func (p *Pass) NextLine(pos token.Pos) (token.Pos, bool) { return p.nextLine(pos) }

// Line returns the line of a statement, if nothing else is on it.
func (p *Pass) Line(stmt ast.Node) (start, end token.Pos, ok bool) {
	f := p.Fset.File(stmt.Pos())
	_, alone := p.Indentation(stmt.Pos())
	end, ok = p.nextLine(stmt.End())
	if !alone || !ok || LineOf(f, stmt.Pos()) != LineOf(f, stmt.End()) || p.HasComment(stmt.End(), end) {
		return 0, 0, false
	}
	return f.LineStart(LineOf(f, stmt.Pos())), end, true
}

// NewName returns a name for a new variable at a statement: name, or name with a number. The name has
// no other meaning in the function around the statement, and no other fix of the rule uses it.
func (p *Pass) NewName(name string, stmt ast.Stmt) string {
	scope := p.Pkg.Scope().Innermost(stmt.Pos())
	var decl ast.Node
	if cur, ok := p.CursorOf(stmt); ok {
		for fn := range cur.Enclosing((*ast.FuncDecl)(nil)) {
			decl = fn.Node()
		}
	}
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try += strconv.Itoa(n)
		}
		if _, obj := scope.LookupParent(try, token.NoPos); obj == nil && (decl == nil || !mentions(decl, try)) && !p.names[newName{decl, try}] {
			p.names[newName{decl, try}] = true
			return try
		}
	}
}

// A newName is a name that a fix gives to a variable in a function.
type newName struct {
	in   ast.Node
	name string
}

// CursorOf returns the cursor of a node.
func (p *Pass) CursorOf(n ast.Node) (inspector.Cursor, bool) { return p.Root.FindNode(n) }

// IsOperand reports whether v is a parameter, receiver or result of a function.
func (p *Pass) IsOperand(v *types.Var) bool { return v.Kind() != types.LocalVar }

// IsShared reports whether v, a variable of the function around cur, is used in a function literal or
// has its address taken.
func (p *Pass) IsShared(v *types.Var, cur inspector.Cursor) bool {
	f := p.FuncAt(cur)
	if f == nil {
		return true
	}
	for use := range f.Package.UsesOf(v, f) {
		if u, ok := use.Parent().Node().(*ast.UnaryExpr); ok && u.Op == token.AND {
			return true
		}
		if v.Pos() < p.FuncAt(use).Cur.Node().Pos() {
			return true
		}
	}
	return false
}

// lead returns where the comment directly above pos begins, or pos.
func (p *Pass) lead(file *ast.File, pos token.Pos) token.Pos {
	for _, g := range file.Comments {
		if p.line(g.End()) == p.line(pos)-1 {
			if _, alone := p.Indentation(g.Pos()); alone {
				return g.Pos()
			}
		}
	}
	return pos
}

// importControl returns the name of package asyncrt at pos, and the edit that imports it if the file doesn't. It fails
// if the name is taken.
func (p *Pass) importControl(file *ast.File, pos token.Pos) (name string, edits []analysis.TextEdit, ok bool) {
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
	if obj != nil || mentions(file, name) {
		return "", nil, false
	}
	edit, ok := p.importEdit(file)
	return name, []analysis.TextEdit{edit}, ok
}

// mentions reports whether n has an identifier with a name. An import would capture it, or be hidden by it.
func mentions(n ast.Node, name string) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

// importEdit adds the import of package asyncrt to the group of imports of modules, in gofmt's order.
func (p *Pass) importEdit(file *ast.File) (analysis.TextEdit, bool) {
	spec := alias + " " + strconv.Quote(control)
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.IMPORT || !decl.Lparen.IsValid() {
			continue
		}
		for i, s := range decl.Specs {
			at := s.(*ast.ImportSpec)
			host, _, _ := strings.Cut(importPath(at), "/")
			if !strings.Contains(host, ".") || importPath(at) < control || !p.firstAbove(decl, i) {
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

// firstAbove reports whether the import before number i, in the same group of lines, sorts before package asyncrt.
func (p *Pass) firstAbove(decl *ast.GenDecl, i int) bool {
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

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string {
	s, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return s
}
