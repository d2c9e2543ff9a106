package emit

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// Lifts returns the functions of the package whose variants the planned functions call, sorted by name.
func Lifts(ds []*plan.Deferral) []*plan.Lift {
	var all []*plan.Region
	for _, d := range ds {
		all = append(all, regions(d)...)
	}
	lifts := reached(all, func(*plan.Lift) bool { return true })
	lifts = slices.DeleteFunc(lifts, func(l *plan.Lift) bool { return l.Closure != nil })
	slices.SortFunc(lifts, func(a, b *plan.Lift) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(load.Receiver(a.Function.Decl), load.Receiver(b.Function.Decl)))
	})
	return lifts
}

// LiteralsOf returns the function literals of the planned function whose variants it calls.
func LiteralsOf(d *plan.Deferral) []*plan.Lift {
	return reached(regions(d), func(l *plan.Lift) bool { return l.Closure != nil })
}

// reached returns the functions among those of interest whose variants are called in regions, or by one of them.
func reached(regions []*plan.Region, ofInterest func(*plan.Lift) bool) (all []*plan.Lift) {
	add := func(regions []*plan.Region) {
		for l := range called(regions) {
			if ofInterest(l) && !slices.Contains(all, l) {
				all = append(all, l)
			}
		}
	}
	add(regions)
	for i := 0; i < len(all); i++ { // it grows
		add([]*plan.Region{all[i].Region})
	}
	return all
}

// regions are the loops of d that are rewritten.
func regions(d *plan.Deferral) (rs []*plan.Region) {
	for _, l := range d.Laters {
		rs = append(rs, l.Regions...)
	}
	return rs
}

// called returns the functions whose variants are called in regions, and how often.
func called(regions []*plan.Region) map[*plan.Lift]int {
	calls := make(map[*plan.Lift]int)
	for _, r := range regions {
		for _, g := range r.Groups {
			for read := range g.Names {
				if read.Lift != nil {
					calls[read.Lift]++
				}
			}
		}
	}
	return calls
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
	p := &printer{editor: e, style: st, fset: f.Pkg.Fset, comments: FileOf(l).Comments, d: &plan.Deferral{Function: f}, names: slices.Clone(e.edits)}
	p.closures([]*plan.Region{l.Region}, decl)
	begin, fields := p.render(decl.Type.Func, decl.Name.Pos()), decl.Type.Params.List
	if f.IsForeign() && decl.Recv != nil {
		begin, fields = "func ", append(slices.Clone(decl.Recv.List), fields...)
	}
	params := ""
	for i, field := range fields {
		if i > 0 {
			params += ", "
		}
		if len(field.Names) == 0 {
			params += "_ "
		}
		params += p.render(field.Pos(), field.End())
	}
	param := l.Later.Name + " " + p.qualified(load.RuntimePath, "Reader")
	if len(fields) > 0 {
		param += ", "
	}
	signature := begin + l.Name + p.render(decl.Name.End(), decl.Type.Params.Opening+1) + param + params + ")" + p.signature(l) + " "
	p.open(decl.Body)
	p.parts(l)
	return signature + trim(p.render(decl.Body.Lbrace, decl.End()))
}

// open makes room in a body that is on one line.
func (p *printer) open(body *ast.BlockStmt) {
	line := func(pos token.Pos) int { return p.fset.PositionFor(pos, false).Line }
	if p.spread() && line(body.Lbrace) == line(body.Rbrace) {
		p.insert(body.Lbrace+1, "\n")
		p.insert(body.Rbrace, "\n")
	}
}

// parts makes the two parts of the body of l.
func (p *printer) parts(l *plan.Lift) {
	for _, line := range declarations(l.Results, func(v *types.Var) string { return p.resultType(l, v) }) {
		p.insert(l.Function.Decl.Body.Lbrace+1, p.first(line))
	}
	if l.Outer {
		p.nameResults(l)
	}
	p.entries(l.Later, l.Region)
	if groups := l.Region.Groups; l.Function.Decl.Type.Results == nil && (len(groups) == 0 || !groups[len(groups)-1].Returns) {
		p.insert(l.Function.Decl.Body.Rbrace, p.last("return func() {}"))
	}
}

// closures makes variants of the function literals in the function n that regions, of n, call in
// two parts: in the place of the literals, or after them if something else calls these as they are.
func (p *printer) closures(regions []*plan.Region, n ast.Node) {
	calls := make(map[*plan.Lift]int)
	add := func(regions []*plan.Region) {
		for l, times := range called(regions) {
			if lit := l.Closure; lit != nil && n.Pos() < lit.Lit.Pos() && lit.Lit.Pos() < n.End() {
				calls[l] += times
			}
		}
	}
	add(regions)
	again := make(map[*ast.FuncLit]int) // how often literals are there once more
	for len(calls) > 0 {
		forms := lastForms(calls)
		c := forms[0].Closure
		needed, all := uses(forms[0], nil), 0
		for lit, times := range again {
			needed += times * uses(forms[0], lit)
		}
		for _, l := range forms {
			all += calls[l]
			delete(calls, l) // what it calls stands before it, or in it
			add([]*plan.Region{l.Region})
		}
		maps.DeleteFunc(calls, func(inner *plan.Lift, _ int) bool {
			return c.Lit.Pos() < inner.Closure.Lit.Pos() && inner.Closure.Lit.End() < c.Lit.End()
		})
		again[c.Lit] = len(forms)
		if all == needed {
			p.closure(forms[0])
			forms = forms[1:]
			again[c.Lit]--
		}
		text := ""
		for _, l := range forms {
			q := *p
			q.editor = &editor{file: p.file, src: p.src, edits: slices.Clone(p.names)}
			q.closure(l)
			text += p.another(q.render(c.Stmt.Pos(), c.Stmt.End()), c.Stmt)
		}
		if text != "" {
			p.insert(p.end(c.Stmt), text)
		}
	}
}

// lastForms returns the variants, among those in calls, of the function literal that stands last,
// in the order of their names.
func lastForms(calls map[*plan.Lift]int) (forms []*plan.Lift) {
	var last *plan.Closure
	for l := range calls {
		if last == nil || l.Closure.Lit.Pos() > last.Lit.Pos() {
			last = l.Closure
		}
	}
	for l := range calls {
		if l.Closure.Lit == last.Lit {
			forms = append(forms, l)
		}
	}
	slices.SortFunc(forms, func(a, b *plan.Lift) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return forms
}

// uses is how often the variable of a function literal is used, in the literal lit if there is one.
func uses(l *plan.Lift, lit *ast.FuncLit) (n int) {
	for id, obj := range l.Function.Info.Uses {
		if obj == types.Object(l.Closure.Var) && (lit == nil || lit.Pos() < id.Pos() && id.Pos() < lit.End()) {
			n++
		}
	}
	return n
}

// another is text, made of the statement s, after which it comes.
func (p *printer) another(text string, s ast.Stmt) string {
	if p.spread() {
		return "\n" + text
	}
	from, to := p.fset.PositionFor(s.Pos(), false), p.fset.PositionFor(s.End(), false)
	return fmt.Sprintf("\n//line %s:%d\n%s\n//line %[1]s:%[4]d\n", tensorapi.Visible(from.Filename), from.Line, text, to.Line)
}

// closure makes a variant of a function literal.
func (p *printer) closure(l *plan.Lift) {
	lit, decl := l.Closure.Lit, l.Function.Decl
	switch s := l.Closure.Stmt.(type) {
	case *ast.AssignStmt:
		p.replace(s.Lhs[0].Pos(), s.Lhs[0].End(), l.Name)
	default: // var report = func, perhaps with a type
		p.replace(s.Pos(), lit.Pos(), l.Name+" := ")
	}
	q := &printer{editor: p.editor, style: p.style, fset: p.fset, comments: p.comments, d: p.d, names: p.names}
	param := l.Later.Name + " " + p.qualified(load.RuntimePath, "Reader")
	if len(lit.Type.Params.List) > 0 {
		param += ", "
	}
	p.insert(lit.Type.Params.Opening+1, param)
	for _, field := range lit.Type.Params.List {
		if len(field.Names) == 0 {
			p.insert(field.Pos(), "_ ")
		}
	}
	results := q.signature(l)
	p.replace(lit.Type.Params.Closing+1, lit.Type.End(), results)
	q.closures([]*plan.Region{l.Region}, lit)
	q.open(decl.Body)
	q.parts(l)
}

// signature is what the variant of l returns, after its parameters.
func (p *printer) signature(l *plan.Lift) string {
	if l.Function.Decl.Type.Results == nil {
		return " func()"
	}
	if l.Here == nil {
		p.results = " " + p.resultTypes(l)
		return " func()" + p.results
	}
	var here, later []string
	i := 0
	for _, field := range l.Function.Decl.Type.Results.List {
		for range max(1, len(field.Names)) {
			text := p.render(field.Type.Pos(), field.Type.End())
			if l.Here[i] {
				here = append(here, text)
			} else {
				later = append(later, text)
			}
			i++
		}
	}
	switch len(later) {
	case 0:
	case 1:
		p.results = " " + later[0]
	default:
		p.results = " (" + strings.Join(later, ", ") + ")"
	}
	return " (" + strings.Join(here, ", ") + ", func()" + p.results + ")"
}

// here takes what is computed or assigned in its place out of the statements of g. It returns what g, if that is what a
// function returns, returns so, with a comma behind it.
func (p *printer) here(g *plan.Group) (here string) {
	for _, s := range g.Stmts {
		switch n := s.Inner().(type) {
		case *ast.ReturnStmt:
			for _, e := range n.Results {
				if s.IsHere(e) {
					here += p.render(e.Pos(), e.End()) + ", "
				}
			}
			if here != "" && !p.without(s, n.Results) {
				p.replace(n.Pos(), n.End(), "")
			}
		case *ast.AssignStmt:
			switch {
			case !slices.ContainsFunc(n.Lhs, s.IsHere):
			case !p.without(s, n.Lhs):
				p.replace(n.Pos(), n.Rhs[0].Pos(), "")
			case n.Tok == token.DEFINE && !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
				return !s.IsHere(e) && p.d.Function.Info.Defs[e.(*ast.Ident)] != nil && e.(*ast.Ident).Name != "_"
			}):
				p.replace(n.TokPos, n.TokPos+2, "=")
			}
		}
	}
	return here
}

// without drops those of list, in s, that are computed or assigned in their place. It reports
// whether anything else is left, other than _, of which all go with them.
func (p *printer) without(s *plan.Stmt, list []ast.Expr) bool {
	var kept []ast.Expr
	for _, e := range list {
		if !s.IsHere(e) {
			kept = append(kept, e)
		}
	}
	if !slices.ContainsFunc(kept, func(e ast.Expr) bool { id, ok := e.(*ast.Ident); return !ok || id.Name != "_" }) {
		return false
	}
	if first := kept[0]; first != list[0] {
		p.replace(list[0].Pos(), first.Pos(), "")
	}
	for i, e := range kept[1:] {
		if at := slices.Index(list, kept[i]); list[at+1] != e {
			p.replace(kept[i].End(), e.Pos(), ", ")
		}
	}
	if last := kept[len(kept)-1]; last != list[len(list)-1] {
		p.replace(last.End(), list[len(list)-1].End(), "")
	}
	return true
}

// assigned is what assigns the results of the variant that t calls: those that are assigned in
// their place, and the function that makes the others.
func (p *printer) assigned(t plan.Take) string {
	s := t.Read.Assign
	var lhs, later []string
	names := false
	results, _ := p.d.Function.Info.TypeOf(t.Read.Expr).(*types.Tuple)
	for i, e := range s.Lhs {
		if t.Read.Lift.Here[i] {
			lhs = append(lhs, e.(*ast.Ident).Name)
			names = names || e.(*ast.Ident).Name != "_"
		} else if results != nil {
			later = append(later, p.typeText(results.At(i).Type()))
		}
	}
	text := strings.Join(append(lhs, t.Name), ", ")
	if s.Tok == token.DEFINE || !names {
		return text + " := "
	}
	of := ""
	switch len(later) {
	case 0:
	case 1:
		of = " " + later[0]
	default:
		of = " (" + strings.Join(later, ", ") + ")"
	}
	return p.lines("var "+t.Name+" func()"+of) + text + " = "
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
	name := plan.CalleeName(call.Fun)
	if l.Closure == nil && l.Function.IsForeign() {
		later += p.foreignName(e, l, call)
	} else {
		e.replace(name.Pos(), name.End(), l.Name)
	}
	if len(call.Args) > 0 {
		later += ", "
	}
	e.insert(call.Lparen+1, later)
	return e.expr(call)
}

// foreignName puts the name of the variant of l, of another package, in the place of what call
// calls: of a method as well. It returns the receiver as an argument after the first, or "".
func (p *printer) foreignName(e *editor, l *plan.Lift, call *ast.CallExpr) (receiver string) {
	fun := operator(call.Fun)
	if l.Function.Decl.Recv != nil {
		sel := fun.(*ast.SelectorExpr)
		receiver = ", " + e.render(sel.X.Pos(), sel.X.End())
		_, wants := l.Function.Obj.Signature().Recv().Type().(*types.Pointer)
		_, has := p.d.Function.Info.TypeOf(sel.X).Underlying().(*types.Pointer)
		switch {
		case wants && !has:
			receiver = ", &" + receiver[2:]
		case has && !wants:
			receiver = ", *" + receiver[2:]
		}
	}
	e.replace(fun.Pos(), fun.End(), l.Name)
	return receiver
}

// operator is the operand of a call without type arguments and parentheses.
func operator(fun ast.Expr) ast.Expr {
	switch f := ast.Unparen(fun).(type) {
	case *ast.IndexExpr:
		return operator(f.X)
	case *ast.IndexListExpr:
		return operator(f.X)
	default:
		return f
	}
}

// operand is what declares the Read of r: a Read of a tensor, or the rest of a function.
func (p *printer) operand(r *plan.Read, later string) string {
	if r.Lift != nil {
		return p.variantCall(r.Lift, r.Expr.(*ast.CallExpr), later)
	}
	if r.Number != "" {
		return later + "." + r.Number + "(" + p.expr(r.Operand) + ")"
	}
	if r.Rows != nil {
		return p.rows(r, later)
	}
	return later + ".Read(" + p.expr(r.Operand) + ")"
}

// marked returns an editor for the function of l, in which the names of other packages are those of st.
func marked(l *plan.Lift, st style) *editor {
	pkg, file := l.Function.Pkg, FileOf(l)
	e := &editor{file: pkg.Fset.File(file.FileStart), src: pkg.Source(file).Text}
	e.qualify(pkg, l.Function.Home, l.Function.Decl, st)
	return e
}
