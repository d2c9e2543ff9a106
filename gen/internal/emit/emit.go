// Package emit prints plans. The statements of a function are the user's own
// text with edits; jennifer builds what is around them: header, imports, new
// declarations.
package emit

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// A style is the way in which the pieces of new text are put together.
type style interface {
	// qualified is a name of another package.
	qualified(path, name string) string
	// lines joins new statements that stand before a statement of the user's.
	lines(statements ...string) string
	// spread reports whether comments move with their statements.
	spread() bool
	// window is the size of the backlog of a function.
	window(d *plan.Deferral) string
}

// A printer turns the plan for a function into edits.
type printer struct {
	*editor
	style
	fset     *token.FileSet
	comments []*ast.CommentGroup
	d        *plan.Deferral
	names    []edit // of the editor, when nothing has been rewritten
	results  string // what a function that is divided returns, with a space before it
}

// function makes the edits for one function.
func (p *printer) function() {
	p.names = slices.Clone(p.edits)
	p.keeps()
	p.closures(regions(p.d), p.d.Function.Decl)
	for _, l := range p.d.Laters {
		p.insert(p.start(l.Anchor), p.lines(append(p.declarations(l),
			fmt.Sprintf("%s := %s[%s](%s)%s", l.Name, p.qualified(load.RuntimePath, "NewLater"), p.stateType(l), p.window(p.d), p.options(l)),
			fmt.Sprintf("defer %s.Close()", l.Name))...))
		for _, r := range l.Regions {
			p.region(l, r)
		}
	}
	p.drop()
}

// options are what l is told: what its entries keep, and how far its loops run past tests at most.
func (p *printer) options(l *plan.Later) string {
	if l.KeepsReads {
		return ".KeepsReads()"
	}
	if p.d.Ahead == 0 || !slices.ContainsFunc(l.Regions, func(r *plan.Region) bool { return r.Exits != nil }) {
		return ""
	}
	return fmt.Sprintf(".Ahead(%d)", p.d.Ahead)
}

func (p *printer) region(l *plan.Later, r *plan.Region) {
	if lines := p.undo(l, r); len(lines) > 0 {
		p.insert(p.start(r.Loop.Node), p.lines(lines...))
	}
	if x := r.Exits; x != nil {
		if lines := p.beginning(l, r); len(lines) > 0 {
			p.insert(p.start(r.Loop.Node), p.lines(lines...))
		}
		if x.Iterate {
			p.iterate(l, r)
		}
		if x.Guard != nil {
			p.insert(p.start(x.Guard.Before.Node), p.lines(p.guard(l, r)))
		}
	}
	for _, s := range r.Flushes {
		if r.Flushed[s] {
			continue
		}
		p.insert(p.start(s.Node), p.lines(p.flush(l, r, s)))
	}
	p.entries(l, r)
	if !r.Endless {
		p.insert(p.end(r.Loop.Node), p.after(p.flush(l, r, nil)))
	}
}

// entries makes what is queued in r, and asks for what is ready.
func (p *printer) entries(l *plan.Later, r *plan.Region) {
	for _, loop := range r.Polls {
		p.insert(p.start(loop.Bodies[0][0].Node), p.lines(l.Name+".Poll()"))
	}
	for _, g := range r.Groups {
		p.group(l, r, g)
	}
}

// after is new text that comes after a statement of the user's.
func (p *printer) after(statement string) string {
	if p.spread() {
		return "\n" + statement
	}
	return "; " + statement
}

// start is where text goes that stands before s: in front of its comment.
func (p *printer) start(s ast.Stmt) token.Pos {
	if !p.spread() || !p.beginsLine(s.Pos()) {
		return s.Pos()
	}
	line := p.fset.PositionFor(s.Pos(), false).Line
	for _, c := range p.comments {
		if c.End() <= s.Pos() && p.fset.PositionFor(c.End(), false).Line == line-1 && p.beginsLine(c.Pos()) {
			return c.Pos()
		}
	}
	return s.Pos()
}

// beginsLine reports whether only white space is before pos on its line.
func (p *printer) beginsLine(pos token.Pos) bool {
	before := string(p.src[:p.offset(pos)])
	return strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) == ""
}

// end is where text goes that stands after s: behind a comment on its line.
func (p *printer) end(s ast.Stmt) token.Pos {
	if !p.spread() {
		return s.End()
	}
	line := p.fset.PositionFor(s.End(), false).Line
	for _, c := range p.comments {
		if c.Pos() >= s.End() && p.fset.PositionFor(c.Pos(), false).Line == line &&
			len(bytes.TrimSpace(p.src[p.offset(s.End()):p.offset(c.Pos())])) == 0 {
			return c.End()
		}
	}
	return s.End()
}

// group makes one entry of neighbouring statements.
func (p *printer) group(l *plan.Later, r *plan.Region, g *plan.Group) {
	first, last := g.Stmts[0].Node, g.Stmts[len(g.Stmts)-1].Node
	var head []string
	for _, c := range g.Copies {
		head = append(head, fmt.Sprintf("%s := %s", c.Name, c.Var.Name()))
		for _, id := range c.Uses {
			p.replace(id.Pos(), id.End(), c.Name)
		}
	}
	for _, r := range g.Here {
		head = append(head, r.Name+" := "+p.expr(r.Expr))
		p.replace(r.Expr.Pos(), r.Expr.End(), r.Name)
	}
	operands, held := make(map[*plan.Read]string), make(map[ast.Expr]string)
	for _, t := range g.Takes {
		if t.Held != nil {
			held[t.Held] = p.expr(t.Held)
			p.replace(t.Held.Pos(), t.Held.End(), t.Name)
			continue
		}
		operands[t.Read] = p.operand(t.Read, l.Name)
	}
	here := p.here(g)
	for _, s := range g.Stmts {
		_, reads := s.Deferred()
		for _, read := range reads {
			p.read(read, g.Names[read])
		}
	}
	for _, t := range g.Takes {
		if len(t.Raise) > 0 {
			head = append(head, p.raise(l.Name, t.Raise))
		}
		if t.Held != nil {
			head = append(head, t.Name+" := "+held[t.Held])
			continue
		}
		if t.Read.Assign != nil {
			head = append(head, p.assigned(t)+operands[t.Read])
			continue
		}
		head = append(head, t.Name+" := "+operands[t.Read])
	}
	head = append(head, declarations(g.Hoists, func(v *types.Var) string { return p.typeText(v.Type()) })...)
	for _, s := range g.Stmts {
		p.hoist(s, g)
	}
	p.absorb(g)
	for _, b := range g.Skips {
		end := "return"
		if g.Jumps != nil {
			end = "return false"
		}
		p.replace(b.Pos(), b.End(), end)
	}
	p.unlabel(r, g)
	start, end := p.start(first), p.end(last)
	if g.Jumps != nil {
		p.exit(l, r, g, head, start, end)
		return
	}
	opening, closing := l.Name+".Do(func() {", "})"
	if g.Returns {
		opening, closing = "return "+here+"func()"+p.results+" {", "}"
	}
	if body := p.render(start, end); p.spread() && isShort(body) {
		p.insert(start, p.lines(head...)+opening+" ")
		p.insert(end, " "+closing)
		if len(g.Stmts) == 1 {
			p.remark(g.Stmts[0], end)
		}
		return
	}
	p.remarks(g, end)
	p.insert(start, p.lines(append(head, opening)...))
	if p.spread() {
		p.insert(end, "\n"+closing)
	} else {
		p.insert(end, " "+closing)
	}
}

// declarations declare vars without values, neighbours of one type together.
func declarations(vars []*types.Var, typeOf func(v *types.Var) string) (lines []string) {
	for len(vars) > 0 {
		names, t := vars[0].Name(), typeOf(vars[0])
		for vars = vars[1:]; len(vars) > 0 && typeOf(vars[0]) == t; vars = vars[1:] {
			names += ", " + vars[0].Name()
		}
		lines = append(lines, "var "+names+" "+t)
	}
	return lines
}

// exit makes the end of the loop depend on a group.
func (p *printer) exit(l *plan.Later, r *plan.Region, g *plan.Group, head []string, start, end token.Pos) {
	opening, closing := p.test(l, r, g)
	if g.Stmts[0].IsTest {
		body := r.Loop.Inner().(*ast.ForStmt).Body.Lbrace + 1
		test := p.divide(r, g)
		if p.spread() {
			p.insert(body, "\n"+strings.Join(append(head, opening+test+closing), "\n"))
		} else {
			p.insert(body, " "+p.lines(append(head, opening+test+closing)...))
		}
		return
	}
	result, inText := p.decide(r, g)
	if inText && len(g.Stmts) == 1 && start == g.Stmts[0].Node.Pos() && isShort(result) {
		p.insert(start, p.lines(head...)+opening+" ")
		p.insert(end, " "+closing)
		return
	}
	p.insert(start, p.lines(append(head, opening)...))
	text := ""
	if !inText {
		text = p.after(result)
	}
	if p.spread() {
		text += "\n"
	} else {
		text += " "
	}
	p.insert(end, text+closing)
}

// remarks are those on the statements of an entry over several lines, which ends with end.
func (p *printer) remarks(g *plan.Group, end token.Pos) {
	for _, s := range g.Stmts {
		if why := p.failsOnly(s); s.Node.End() < end {
			p.remark(s, s.Node.End())
		} else if why != "" && p.spread() {
			p.insert(end, " // "+why)
		}
	}
}

// remark says behind s, which is all that stands before end, what it is there for if that is nothing but to fail.
func (p *printer) remark(s *plan.Stmt, end token.Pos) {
	why := p.failsOnly(s)
	if why == "" || !p.spread() {
		return
	}
	rest := p.src[p.offset(end):]
	blank := len(rest) - len(bytes.TrimLeft(rest, " \t"))
	if next := rest[blank:]; len(next) > 0 && next[0] == ';' { // of a statement that was put in
		p.replace(end, end+token.Pos(blank+1), " // "+why+"\n")
	} else if len(next) > 0 && next[0] == '\n' {
		p.insert(end, " // "+why)
	}
}

// failsOnly returns when s, a statement that looks at a value and does nothing with it, fails; or "".
func (p *printer) failsOnly(s *plan.Stmt) string {
	x, ok := s.Inner().(*ast.ExprStmt)
	if !ok || len(s.Reads) == 0 {
		return ""
	}
	var names []string
	for _, r := range s.Reads {
		if r.Plain == nil {
			return ""
		}
		if r.Expr == x.X {
			return "fails here if " + r.Plain.Name() + " does"
		}
		if !slices.Contains(names, r.Plain.Name()) {
			names = append(names, r.Plain.Name())
		}
	}
	call, ok := x.X.(*ast.CallExpr)
	if !ok {
		return ""
	}
	if _, api, ok := p.d.Function.Library(call); !ok || api.Kind != tensorapi.View && api.Kind != tensorapi.Op {
		return ""
	}
	return "fails here if " + strings.Join(names, " or ") + " is out of range"
}

// unlabel drops the label of the loop around g if the jumps that now end the entry were the last ones that named it.
func (p *printer) unlabel(r *plan.Region, g *plan.Group) {
	if len(g.Skips) == 0 {
		return
	}
	l, ok := g.Stmts[0].Parent.Node.(*ast.LabeledStmt)
	if !ok {
		return
	}
	for o := range r.Loop.All {
		b, ok := o.Inner().(*ast.BranchStmt)
		if !ok || b.Label == nil || b.Label.Name != l.Label.Name {
			continue
		}
		if !slices.ContainsFunc(r.Groups, func(g *plan.Group) bool { return slices.Contains(g.Skips, b) }) {
			return
		}
	}
	if x := r.Exits; x != nil && r.Loop.Node == ast.Stmt(l) &&
		(x.Behind || slices.ContainsFunc(x.Ways, func(w *plan.Way) bool { return w.Jump == nil })) {
		return // the way out uses it
	}
	end := l.Colon + 1
	if p.spread() && strings.TrimSpace(string(p.src[p.offset(end):p.offset(l.Stmt.Pos())])) == "" {
		end = l.Stmt.Pos()
	}
	p.replace(l.Label.Pos(), end, "")
}

// isShort reports whether an entry reads well on one line.
func isShort(body string) bool {
	return len(body) <= 80 && !strings.Contains(body, "\n") && !strings.Contains(body, "//") && !strings.HasSuffix(body, "}")
}

// read makes a read of a tensor one of the Read with the given name.
func (p *printer) read(r *plan.Read, name string) {
	if r.Lift != nil {
		p.replace(r.Expr.Pos(), r.Expr.End(), name+"()")
		return
	}
	if r.Rows != nil {
		if r.Method == "Item" || r.Method == "ItemInt" {
			p.replace(r.Expr.Pos(), r.Expr.End(), name+"."+r.Method+"("+r.Rows.Index.Name+")")
			return
		}
		name += ".At(" + r.Rows.Index.Name + ")"
	}
	p.replace(r.Operand.Pos(), r.Operand.End(), name)
	if r.Func != nil {
		p.replaceFunc(r.Func)
	}
	if call, ok := r.Expr.(*ast.CallExpr); ok && r.Method != "" {
		sel := ast.Unparen(call.Fun).(*ast.SelectorExpr).Sel
		if sel.Name != r.Method {
			p.replace(sel.Pos(), sel.End(), r.Method)
		}
	}
}

// replaceFunc makes tensor.ItemOf[float32] the function of package asyncrt.
func (p *printer) replaceFunc(fun ast.Expr) {
	switch f := ast.Unparen(fun).(type) {
	case *ast.IndexExpr:
		p.replaceFunc(f.X)
	case *ast.SelectorExpr:
		p.replace(f.Pos(), f.End(), p.qualified(load.RuntimePath, f.Sel.Name))
	case *ast.Ident: // of a package imported with a dot
		p.replace(f.Pos(), f.End(), p.qualified(load.RuntimePath, f.Name))
	}
}

// raise is an entry that raises the errors of reads: if there are any, the program does not come to what follows.
func (p *printer) raise(later string, reads []*plan.Read) string {
	var raise []string
	for _, r := range reads {
		raise = append(raise, p.render(r.Expr.Pos(), r.Expr.End()))
	}
	switch {
	case p.spread() && len(raise) == 1:
		return fmt.Sprintf("%s.Do(func() { %s }) // if this fails, what follows is never reached", later, raise[0])
	case p.spread():
		return fmt.Sprintf("%s.Do(func() {\n// If this fails, what follows is never reached.\n%s\n})", later, strings.Join(raise, "\n"))
	}
	return fmt.Sprintf("%s.Do(func() { %s })", later, strings.Join(raise, "; "))
}

// hoist makes the declaration of variables that are declared outside g an
// assignment.
func (p *printer) hoist(s *plan.Stmt, g *plan.Group) {
	hoisted := false
	for _, v := range g.Hoists {
		hoisted = hoisted || s.Declares[v]
	}
	if !hoisted || s.IsCompound() {
		return
	}
	switch n := s.Inner().(type) {
	case *ast.AssignStmt:
		p.replace(n.TokPos, n.TokPos+2, "=")
	case *ast.DeclStmt:
		p.assign(n.Decl.(*ast.GenDecl))
	}
}

// assign makes assignments of a declaration of variables. Those without values are zero where they are declared now.
func (p *printer) assign(d *ast.GenDecl) {
	end := d.TokPos + token.Pos(len("var"))
	if d.Lparen.IsValid() {
		end = d.Lparen + 1
		p.replace(p.afterText(d.Rparen), d.Rparen+1, "")
	}
	p.replace(d.Pos(), p.beforeText(end), "")
	for _, spec := range d.Specs {
		vs := spec.(*ast.ValueSpec)
		if len(vs.Values) == 0 {
			p.replace(vs.Pos(), p.beforeText(vs.End()), "")
			continue
		}
		var names []string
		for _, name := range vs.Names {
			names = append(names, name.Name)
		}
		p.replace(vs.Pos(), vs.Values[0].Pos(), strings.Join(names, ", ")+" = ")
	}
}

// beforeText is the first position from pos on at which there is text: on the same line, if lines must stay.
func (p *printer) beforeText(pos token.Pos) token.Pos {
	rest := string(p.src[p.offset(pos):])
	return pos + token.Pos(len(rest)-len(strings.TrimLeft(rest, p.blanks())))
}

// afterText is the position after the last text before pos.
func (p *printer) afterText(pos token.Pos) token.Pos {
	before := string(p.src[:p.offset(pos)])
	return pos - token.Pos(len(before)-len(strings.TrimRight(before, p.blanks())))
}

func (p *printer) blanks() string {
	if p.spread() {
		return " \t\r\n"
	}
	return " \t"
}

// runtimeName is the name by which new text in file calls package asyncrt: the
// one by which the file imports it, or else asyncrt, if they mean nothing else
// there.
func runtimeName(pkg *load.Package, file *ast.File) string {
	taken := make(map[string]bool)
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && !isRuntime(pkg.TypesInfo.ObjectOf(id)) {
			taken[id.Name] = true
		}
		return true
	})
	name := "asyncrt"
	for _, imp := range file.Imports {
		if path, _ := strconv.Unquote(imp.Path.Value); path != load.RuntimePath {
			taken[importName(pkg, imp)] = true
		} else if own := importName(pkg, imp); own != "_" && own != "." && !taken[own] {
			return own
		}
	}
	for i := 2; taken[name] || pkg.Types.Scope().Lookup(name) != nil; i++ {
		name = "asyncrt" + strconv.Itoa(i)
	}
	return name
}

func isRuntime(obj types.Object) bool {
	name, ok := obj.(*types.PkgName)
	return ok && name.Imported().Path() == load.RuntimePath
}

var qualifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x03([^\x04]*)\x04\\.([\\pL_][\\pL\\pN_]*)") })

// typeText is t as Go.
func (p *printer) typeText(t types.Type) string {
	s := types.TypeString(t, func(pkg *types.Package) string {
		if pkg == p.d.Function.Home.Types {
			return ""
		}
		return "\x03" + pkg.Path() + "\x04"
	})
	return qualifier().ReplaceAllStringFunc(s, func(m string) string {
		parts := qualifier().FindStringSubmatch(m)
		return p.qualified(parts[1], parts[2])
	})
}
