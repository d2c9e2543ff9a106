package emit

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
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
		for _, g := range lifts[i].Region.Groups {
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
	param := l.Later.Name + " " + p.qualified(load.RuntimePath, "Reader")
	if len(decl.Type.Params.List) > 0 {
		param += ", "
	}
	if decl.Type.Results != nil {
		p.results = " " + p.resultTypes(l)
	}
	signature := p.render(decl.Type.Func, decl.Name.Pos()) + l.Name + p.render(decl.Name.End(), decl.Type.Params.Opening+1) + param + params + ") func()" + p.results + " "
	if line := func(pos token.Pos) int { return p.fset.PositionFor(pos, false).Line }; p.spread() && line(decl.Body.Lbrace) == line(decl.Body.Rbrace) {
		p.insert(decl.Body.Lbrace+1, "\n")
		p.insert(decl.Body.Rbrace, "\n")
	}
	for _, v := range l.Results {
		p.insert(decl.Body.Lbrace+1, p.first("var "+v.Name()+" "+p.resultType(l, v)))
	}
	if l.Outer {
		p.nameResults(l)
	}
	p.entries(l.Later, l.Region)
	if groups := l.Region.Groups; decl.Type.Results == nil && (len(groups) == 0 || !groups[len(groups)-1].Returns) {
		p.insert(decl.Body.Rbrace, p.last("return func() {}"))
	}
	return signature + trim(p.render(decl.Body.Lbrace, decl.End()))
}

// resultTypes are the results of what the variant of l returns.
func (p *printer) resultTypes(l *plan.Lift) string {
	decl := l.Function.Decl
	if !l.Outer {
		return strings.TrimSpace(p.render(decl.Type.Params.Closing+1, decl.Type.End()))
	}
	var texts []string
	for _, v := range l.Function.NamedResults() {
		texts = append(texts, p.resultType(l, v))
	}
	if len(texts) == 1 {
		return texts[0]
	}
	return "(" + strings.Join(texts, ", ") + ")"
}

// resultType is the type of a named result as it is written.
func (p *printer) resultType(l *plan.Lift, v *types.Var) string {
	for _, field := range l.Function.Decl.Type.Results.List {
		for _, name := range field.Names {
			if l.Function.Info.Defs[name] == v {
				return p.render(field.Type.Pos(), field.Type.End())
			}
		}
	}
	panic("emit: " + v.Name() + " is no result of " + l.Name)
}

// nameResults makes returns say what they return.
func (p *printer) nameResults(l *plan.Lift) {
	var names []string
	for _, v := range l.Function.NamedResults() {
		names = append(names, v.Name())
	}
	ast.Inspect(l.Function.Decl.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 0 {
			p.replace(r.Pos(), r.End(), "return "+strings.Join(names, ", "))
		}
		_, inner := n.(*ast.FuncLit)
		return !inner
	})
}

// first is a new statement at the beginning of a body.
func (p *printer) first(statement string) string {
	if p.spread() {
		return "\n" + statement
	}
	return " " + statement + ";"
}

// last is a new statement at the end of a body.
func (p *printer) last(statement string) string {
	if p.spread() {
		return statement + "\n"
	}
	return "; " + statement + " "
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
	if r.Number != "" {
		return later + "." + r.Number + "(" + p.render(r.Operand.Pos(), r.Operand.End()) + ")"
	}
	if r.Rows != nil {
		return p.rows(r, later)
	}
	return later + ".Read(" + p.render(r.Operand.Pos(), r.Operand.End()) + ")"
}

// marked returns an editor for the function of l, in which the names of other packages are those of st.
func marked(l *plan.Lift, st style) *editor {
	pkg, file := l.Function.Pkg, FileOf(l)
	e := &editor{file: pkg.Fset.File(file.FileStart), src: pkg.Source(file).Text}
	e.qualify(pkg, l.Function.Decl, st)
	return e
}
