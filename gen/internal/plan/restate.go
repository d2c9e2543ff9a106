package plan

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// Restate returns f in other words: with edits. What is said of its places is said of
// those of f.
func (f *Function) Restate(edits []load.Edit) (*Function, error) {
	r, err := f.Analysis.Program.Restate(f.Pkg, f.Decl, edits, f.Analysis.InPlace)
	if err != nil {
		return nil, err
	}
	if f.Restated != nil {
		r.From = f.Restated.From
	}
	g := f.Analysis.Function(r.Pkg, r.Decl)
	g.Restated, g.original, g.Counts, g.Home = r, f, f.Counts, f.Home
	g.Obj = f.Obj
	return g, nil
}

// HasComments reports whether there is a comment in n.
func (f *Function) HasComments(n ast.Node) bool {
	for _, syntax := range f.Pkg.Syntax {
		for _, c := range syntax.Comments {
			if n.Pos() <= c.Pos() && c.Pos() < n.End() {
				return true
			}
		}
	}
	return false
}

// Position returns where pos is in the file that the user wrote.
func (f *Function) Position(pos token.Pos) token.Position {
	if f.Restated != nil && f.Restated.File.FileStart <= pos && pos < f.Restated.File.FileEnd {
		return f.original.Position(f.Restated.Original(pos))
	}
	return f.Pkg.Fset.Position(pos)
}

// Text returns the source text from one place to another in the same file.
func (f *Function) Text(from, to token.Pos) string {
	file := f.Pkg.Fset.File(from)
	for _, syntax := range f.Pkg.Syntax {
		if syntax.FileStart <= from && from < syntax.FileEnd {
			return string(f.Pkg.Source(syntax).Text[file.Offset(from):file.Offset(to)])
		}
	}
	return ""
}

// Splice returns the text of e with edits inside it.
func (f *Function) Splice(e ast.Node, edits []load.Edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b load.Edit) int { return int(a.Pos - b.Pos) })
	var b strings.Builder
	at := e.Pos()
	for _, ed := range edits {
		b.WriteString(f.Text(at, ed.Pos) + ed.Text)
		at = ed.End
	}
	return b.String() + f.Text(at, e.End())
}

// StmtEffects returns what executing s does, reads included.
func (f *Function) StmtEffects(s ast.Stmt) *Effects { return f.walk(s, nil) }

// Shows reports whether e changes what others than the function can see, parameters on the device apart.
func (f *Function) Shows(e *Effects) bool {
	for l := range e.Writes {
		switch {
		case l.Kind == Cells:
		case l.Kind == Var || l.Kind == Own:
			if f.Visible(l.Obj) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// Mentions reports whether n uses or defines one of objs by name.
func (f *Function) Mentions(n ast.Node, objs map[types.Object]bool) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			found = found || objs[f.Info.ObjectOf(id)]
		}
		return !found
	})
	return found
}
