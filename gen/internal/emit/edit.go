package emit

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// An edit replaces a part of a file. Insertions at one place apply in the order
// in which they were made; of two replacements of one part the later holds,
// and one inside the replaced part of another is lost.
type edit struct {
	pos, end int // offsets
	text     string
}

// An editor collects edits of one file. Nothing is reformatted: what is not
// edited stays as its author wrote it.
type editor struct {
	file  *token.File
	src   []byte
	edits []edit
}

func (e *editor) offset(p token.Pos) int { return e.file.Offset(p) }

// replace replaces the text from pos to end.
func (e *editor) replace(pos, end token.Pos, text string) {
	e.edits = append(e.edits, edit{e.offset(pos), e.offset(end), text})
}

// insert inserts text before pos.
func (e *editor) insert(pos token.Pos, text string) { e.replace(pos, pos, text) }

// render returns the text from pos to end with the edits made so far.
func (e *editor) render(pos, end token.Pos) string { return e.between(e.offset(pos), e.offset(end)) }

// expr returns the text of x with the edits made so far, but for what stands before the statement that begins with x.
func (e *editor) expr(x ast.Expr) string {
	at := e.offset(x.Pos())
	inside := &editor{file: e.file, src: e.src, edits: slices.DeleteFunc(slices.Clone(e.edits), func(ed edit) bool { return ed.pos == at && ed.end == at })}
	return inside.render(x.Pos(), x.End())
}

func (e *editor) between(from, to int) string {
	var inside []edit
	for _, ed := range e.edits {
		if from > ed.pos || ed.end > to {
			continue
		}
		if i := slices.IndexFunc(inside, func(o edit) bool { return o.pos == ed.pos && o.end == ed.end && ed.pos < ed.end }); i >= 0 {
			inside[i] = ed
			continue
		}
		inside = append(inside, ed)
	}
	slices.SortStableFunc(inside, func(a, b edit) int {
		if a.pos != b.pos {
			return cmp.Compare(a.pos, b.pos)
		}
		// Insertions come before the replacement that begins at the same
		// place, and long replacements before those inside them.
		if (a.pos == a.end) != (b.pos == b.end) {
			if a.pos == a.end {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.end, a.end)
	})
	var out strings.Builder
	at := from
	for _, ed := range inside {
		if ed.pos < at {
			continue
		}
		out.Write(e.src[at:ed.pos])
		out.WriteString(ed.text)
		at = ed.end
	}
	out.Write(e.src[at:to])
	return out.String()
}
