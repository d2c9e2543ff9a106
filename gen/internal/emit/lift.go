package emit

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Lifts returns the functions whose variants the planned functions call, sorted by name.
func Lifts(ds []*plan.Deferral) (lifts []*plan.Lift) {
	add := func(names map[*plan.Read]string) {
		for r := range names {
			if r.Lift != nil && !slices.Contains(lifts, r.Lift) {
				lifts = append(lifts, r.Lift)
			}
		}
	}
	for _, d := range ds {
		for _, l := range d.Laters {
			for _, r := range l.Regions {
				for _, g := range r.Groups {
					add(g.Names)
				}
			}
		}
	}
	for i := 0; i < len(lifts); i++ { // it grows
		for g := range lifts[i].Groups {
			add(g.Names)
		}
	}
	slices.SortFunc(lifts, func(a, b *plan.Lift) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(load.Receiver(a.Function.Decl), load.Receiver(b.Function.Decl)))
	})
	return lifts
}

// FileOf returns the file that the function of l is in.
func FileOf(l *plan.Lift) *ast.File {
	for _, file := range l.Function.Pkg.Syntax {
		if file.FileStart <= l.Function.Decl.Pos() && l.Function.Decl.Pos() < file.FileEnd {
			return file
		}
	}
	return nil
}

// variant is the declaration of the variant of a function, without its comment.
// The names of other packages in e are marked as st wants them.
func variant(l *plan.Lift, e *editor, st style) string {
	f := l.Function
	decl := f.Decl
	p := &printer{editor: e, style: st, fset: f.Pkg.Fset, comments: FileOf(l).Comments, d: &plan.Deferral{Function: f}}
	params := ""
	for i, field := range decl.Type.Params.List {
		if i > 0 {
			params += ", "
		}
		if len(field.Names) == 0 {
			params += "_ "
		}
		params += p.render(field.Pos(), field.End())
	}
	param := l.Param + " " + p.qualified(load.RuntimePath, "Reader")
	if len(decl.Type.Params.List) > 0 {
		param += ", "
	}
	results := ""
	if decl.Type.Results != nil {
		results = " " + strings.TrimSpace(p.render(decl.Type.Params.Closing+1, decl.Type.End()))
	}
	signature := p.render(decl.Type.Func, decl.Name.Pos()) + l.Name + p.render(decl.Name.End(), decl.Type.Params.Opening+1) + param + params + ") func()" + results + " "
	if line := func(pos token.Pos) int { return p.fset.PositionFor(pos, false).Line }; p.spread() && line(decl.Body.Lbrace) == line(decl.Body.Rbrace) {
		p.insert(decl.Body.Lbrace+1, "\n")
		p.insert(decl.Body.Rbrace, "\n")
	}
	for g := range l.Groups {
		p.rest(l, g, results)
	}
	return signature + trim(p.render(decl.Body.Lbrace, decl.End()))
}

// rest makes the statements of g a function that is returned.
func (p *printer) rest(l *plan.Lift, g *plan.Group, results string) {
	first, last := g.Stmts[0].Node, g.Stmts[len(g.Stmts)-1].Node
	head := p.takes(l.Param, g)
	start, end := p.start(first), p.end(last)
	opening := "return func()" + results + " {"
	if body := p.render(start, end); p.spread() && isShort(body) {
		p.insert(start, p.lines(head...)+opening+" ")
		p.insert(end, " }")
		return
	}
	p.insert(start, p.lines(append(head, opening)...))
	p.insert(end, p.closing())
}

// closing ends a function literal that was opened on a line of its own.
func (p *printer) closing() string {
	if p.spread() {
		return "\n}"
	}
	return " }"
}

// variantCall is the call of the variant in the place of call, which calls the original.
func (p *printer) variantCall(l *plan.Lift, call *ast.CallExpr, later string) string {
	e := &editor{file: p.file, src: p.src, edits: slices.Clone(p.edits)}
	e.edits = slices.DeleteFunc(e.edits, func(ed edit) bool { // as written
		return ed.pos == e.offset(call.Pos()) && ed.end == e.offset(call.End())
	})
	name := calleeName(call.Fun)
	e.replace(name.Pos(), name.End(), l.Name)
	if len(call.Args) > 0 {
		later += ", "
	}
	e.insert(call.Lparen+1, later)
	return e.render(call.Pos(), call.End())
}

// calleeName is the name of the function in the operand of a call.
func calleeName(fun ast.Expr) *ast.Ident {
	switch f := ast.Unparen(fun).(type) {
	case *ast.IndexExpr:
		return calleeName(f.X)
	case *ast.IndexListExpr:
		return calleeName(f.X)
	case *ast.SelectorExpr:
		return f.Sel
	case *ast.Ident:
		return f
	}
	panic(fmt.Sprintf("emit: a static call of %T", fun))
}

// operand is what declares the Read of r: a Read of a tensor, or the rest of a function.
func (p *printer) operand(r *plan.Read, later string) string {
	if r.Lift != nil {
		return p.variantCall(r.Lift, r.Expr.(*ast.CallExpr), later)
	}
	if r.Number {
		return later + ".ReadF64(" + p.render(r.Operand.Pos(), r.Operand.End()) + ")"
	}
	if r.Rows != nil {
		return p.rows(r, later)
	}
	return later + ".Read(" + p.render(r.Operand.Pos(), r.Operand.End()) + ")"
}

// takes reads what the statements of g look at, and returns the lines that do.
func (p *printer) takes(later string, g *plan.Group) (lines []string) {
	operands := make(map[*plan.Read]string)
	for _, t := range g.Takes {
		operands[t.Read] = p.operand(t.Read, later)
	}
	for r, name := range g.Names {
		p.read(r, name)
	}
	for i, t := range g.Takes {
		if t.Force {
			if entry := p.force(later, g, i); entry != "" {
				lines = append(lines, entry)
			}
		}
		lines = append(lines, t.Name+" := "+operands[t.Read])
	}
	return lines
}

// marked returns an editor for the function of l, in which the names of other packages are those of st.
func marked(l *plan.Lift, st style) *editor {
	pkg, file := l.Function.Pkg, FileOf(l)
	e := &editor{file: pkg.Fset.File(file.FileStart), src: pkg.Source(file).Text}
	e.qualify(pkg, l.Function.Decl, st)
	return e
}
