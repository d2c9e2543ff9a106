package emit

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// stateType is the type argument of a Later.
func (p *printer) stateType(l *plan.Later) string {
	if len(l.State.Fields) == 0 {
		return "struct{}"
	}
	return l.State.Type
}

// declarations are what stands in front of a Later.
func (p *printer) declarations(l *plan.Later) (lines []string) {
	if len(l.State.Fields) > 0 {
		var fields []string
		for _, s := range l.State.Fields {
			fields = append(fields, s.Name+" "+p.typeText(s.Var.Type()))
		}
		if p.spread() && len(fields) == 1 {
			lines = append(lines, "type "+l.State.Type+" struct{ "+fields[0]+" }")
		} else {
			lines = append(lines, p.block("type "+l.State.Type+" struct", fields))
		}
	}
	for _, o := range l.Outs {
		lines = append(lines, "var "+o.Name+" "+p.typeText(o.Var.Type()))
	}
	for _, r := range l.Regions {
		if r.Exits != nil && r.Exits.Which != "" {
			lines = append(lines, r.Exits.Which+" := 0")
		}
	}
	return lines
}

// beginning are the statements in front of the loop of r.
func (p *printer) beginning(l *plan.Later, r *plan.Region) (lines []string) {
	if r.Exits.Ended != "" {
		if len(r.Exits.Fields) > 0 {
			lines = append(lines, "var "+r.Exits.End+" "+p.stateType(l))
		}
		lines = append(lines, r.Exits.Ended+" := false")
	}
	if r.Exits.Label != "" {
		lines = append(lines, r.Exits.Label+":")
	}
	return lines
}

// block is head with statements in braces.
func (p *printer) block(head string, statements []string) string {
	if p.spread() {
		return head + " {\n" + strings.Join(statements, "\n") + "\n}"
	}
	return head + " { " + strings.Join(statements, "; ") + " }"
}

// flush is what runs all that is queued, and leaves the loop if a value has
// decided so. at is the statement that it stands before; nil: it stands after the loop.
func (p *printer) flush(l *plan.Later, r *plan.Region, at *plan.Stmt) string {
	call := l.Name + ".Flush()"
	if r.Exits == nil {
		return call
	}
	if r.Exits.Behind && at == nil {
		get := fmt.Sprintf("%s, %s = %s", p.endName(r), r.Exits.Ended, call)
		sep := "\n"
		if !p.spread() {
			sep = "; "
		}
		if r.Exits.Ended == "" {
			return call + sep + p.choice(l, r)
		}
		return p.block("if !"+r.Exits.Ended, []string{get}) + sep + p.choice(l, r)
	}
	way := p.wayOut(r, at)
	if len(way) == 0 {
		return call
	}
	return p.block(p.ifEnded(r, call, r.Exits.Iterate && at != nil), way)
}

// iterate makes the body of the loop of r a function that Iterate runs.
func (p *printer) iterate(l *plan.Later, r *plan.Region) {
	var body *ast.BlockStmt
	switch n := r.Loop.Inner().(type) {
	case *ast.ForStmt:
		body = n.Body
	case *ast.RangeStmt:
		body = n.Body
	}
	for _, b := range r.Exits.Continues {
		p.replace(b.Pos(), b.End(), "return")
	}
	open := p.ifEnded(r, l.Name+".Iterate(func() {", false)
	open, told, _ := cutLast(open, "; ")
	closing := p.block("}); "+told, p.leaving(r, r.Loop.Bodies[0][0]))
	if p.spread() {
		p.insert(body.Lbrace+1, "\n"+open)
		p.insert(body.Rbrace, closing+"\n")
		return
	}
	p.insert(body.Lbrace+1, " "+open)
	p.insert(body.Rbrace, closing+" ")
}

// cutLast is strings.Cut at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// ifEnded is the head of an if that asks whether the loop has ended: inside the function of an iteration, or not.
func (p *printer) ifEnded(r *plan.Region, call string, inside bool) string {
	if inside {
		return fmt.Sprintf("if _, %s := %s; %[1]s", r.Exits.OK, call)
	}
	op := ":="
	if r.Exits.Ended != "" {
		op = "="
	}
	return fmt.Sprintf("if %s, %s %s %s; %s", p.endName(r), r.Exits.Told(), op, call, r.Exits.Told())
}

// endName is the variable for the state, if anything uses it.
func (p *printer) endName(r *plan.Region) string {
	if len(r.Exits.Fields) == 0 {
		return "_"
	}
	return r.Exits.End
}

// wayOut are the statements that leave the loop of r from the statement at, or
// from the end of the loop if that is nil. An iteration that is a function only ends: what calls it leaves the loop.
func (p *printer) wayOut(r *plan.Region, at *plan.Stmt) (statements []string) {
	if r.Exits.Iterate && at != nil {
		return []string{"return"}
	}
	return p.leaving(r, at)
}

// leaving is wayOut where the statement at is no part of a function.
func (p *printer) leaving(r *plan.Region, at *plan.Stmt) (statements []string) {
	ways := r.Exits.Ways
	if r.Exits.Behind {
		return []string{p.leave(r, at)}
	}
	for i, w := range ways {
		way := p.way(r, w, at)
		if i < len(ways)-1 {
			way = []string{p.block(fmt.Sprintf("if %s == %d", r.Exits.Which, i+1), way)}
		}
		statements = append(statements, way...)
	}
	return statements
}

// way are the statements of one way out.
func (p *printer) way(r *plan.Region, w *plan.Way, at *plan.Stmt) (statements []string) {
	if len(w.Restore) > 0 {
		var vars, values []string
		for _, s := range w.Restore {
			vars, values = append(vars, s.Var.Name()), append(values, r.Exits.End+"."+s.Name)
		}
		statements = append(statements, strings.Join(vars, ", ")+" = "+strings.Join(values, ", "))
	}
	switch {
	case w.Jump != nil:
		statements = append(statements, p.jump(r, w))
	case at != nil:
		statements = append(statements, p.leave(r, at))
	}
	return statements
}

// leave ends the loop of r at the statement at. A label of the user's may have
// no other use left.
func (p *printer) leave(r *plan.Region, at *plan.Stmt) string {
	if _, labelled := r.Loop.Node.(*ast.LabeledStmt); labelled || p.needsLabel(r, at) {
		return "break " + label(r)
	}
	return "break"
}

// choice takes, after the loop of r, the way that has been decided on, if one has. In another loop, that may have been
// in an iteration before.
func (p *printer) choice(l *plan.Later, r *plan.Region) string {
	var cases []string
	ways := r.Exits.Ways
	once := r.Exits.TakenOnce(l)
	for i, w := range ways {
		if way := p.way(r, w, nil); once && len(ways) == 2 && len(p.way(r, ways[1-i], nil)) == 0 {
			return p.block(fmt.Sprintf("if %s == %d", r.Exits.Which, i+1), way)
		}
	}
	for i, w := range ways {
		if way := p.way(r, w, nil); len(way) > 0 {
			sep := "\n"
			if !p.spread() {
				sep = "; "
			}
			which := fmt.Sprintf("case %d:", i+1)
			if w.Jump != nil && i == len(ways)-1 {
				which = "default:"
			}
			cases = append(cases, which+strings.ReplaceAll(sep, ";", "")+strings.Join(way, sep))
		}
	}
	choice := p.block("switch "+r.Exits.Which, cases)
	if once {
		return choice
	}
	return p.block("if "+r.Exits.Ended, []string{choice})
}

// label is the label of the loop of r.
func label(r *plan.Region) string {
	if l, ok := r.Loop.Node.(*ast.LabeledStmt); ok {
		return l.Label.Name
	}
	return r.Exits.Label
}

// needsLabel reports whether a break at the statement at is not one of the loop of r.
func (p *printer) needsLabel(r *plan.Region, at *plan.Stmt) bool {
	for s := at.Parent; s != nil && s != r.Loop; s = s.Parent {
		switch s.Inner().(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return true
		}
	}
	return false
}

// jump is the jump of a way as written, with what the state has in the place
// of variables.
func (p *printer) jump(r *plan.Region, w *plan.Way) string {
	e := &editor{file: p.file, src: p.src, edits: slices.Clone(p.names)}
	for id, s := range w.Uses {
		e.replace(id.Pos(), id.End(), r.Exits.End+"."+s.Name)
	}
	for id, o := range w.Outs {
		e.replace(id.Pos(), id.End(), o.Name)
	}
	for i, res := range w.Results {
		switch at := w.Jump.(*ast.ReturnStmt).Results[i]; {
		case res == nil:
		case res.Out != nil:
			e.replace(at.Pos(), at.End(), res.Out.Name)
		default:
			e.replace(at.Pos(), at.End(), r.Exits.End+"."+res.Slot.Name)
		}
	}
	text := e.render(w.Jump.Pos(), w.Jump.End())
	if !p.spread() {
		text = oneLine(text)
	}
	return text
}

// oneLine is Go text without line ends and comments.
func oneLine(text string) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", -1, len(text)), []byte(text), nil, 0)
	var words []string
	for {
		_, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return strings.Join(words, " ")
		case tok == token.SEMICOLON:
			words = append(words, ";")
		case tok.IsLiteral() && strings.Contains(lit, "\n"): // a raw string
			words = append(words, fmt.Sprintf("%q", strings.Trim(lit, "`")))
		case lit != "":
			words = append(words, lit)
		default:
			words = append(words, tok.String())
		}
	}
}

// test opens and closes the call of BreakIf of a group: open stands before its
// statements, end after them.
func (p *printer) test(l *plan.Later, r *plan.Region, g *plan.Group) (open, end string) {
	last := g.Stmts[len(g.Stmts)-1]
	open, told, _ := cutLast(p.ifEnded(r, l.Name+".BreakIf(func() bool {", r.Exits.Iterate), "; ")
	state := p.stateType(l) + "{" + p.stateValues(l, g) + "}"
	end = fmt.Sprintf("}, %s%s); %s", state, p.cells(r), told)
	return open, p.block(end, p.wayOut(r, last))
}

// stateValues are the elements of a composite literal for what the ways need that g decides on.
func (p *printer) stateValues(l *plan.Later, g *plan.Group) string {
	needs := make(map[*types.Var]string)
	for jump, w := range g.Jumps {
		for _, s := range w.Restore {
			needs[s.Var] = s.Var.Name()
		}
		for _, s := range w.Uses {
			needs[s.Var] = s.Var.Name()
		}
		for i, res := range w.Results {
			if res != nil && res.Slot != nil {
				needs[res.Slot.Var] = types.ExprString(jump.(*ast.ReturnStmt).Results[i])
			}
		}
	}
	var values []string
	for _, s := range l.State.Fields {
		value, needed := needs[s.Var]
		if len(needs) < len(l.State.Fields) {
			value = s.Name + ": " + value
		}
		if needed {
			values = append(values, value)
		}
	}
	return strings.Join(values, ", ")
}

// cells are the last arguments of BreakIf, with a comma before them.
func (p *printer) cells(r *plan.Region) string {
	var single, lists []string
	for _, c := range r.Exits.Cells {
		switch c.Form {
		case plan.IsCell:
			single = append(single, c.Of)
		case plan.HasCells:
			lists = append(lists, c.Of+".Cells()")
		}
	}
	switch {
	case len(lists) == 0 && len(single) == 0:
		return ""
	case len(lists) == 0:
		return ", " + strings.Join(single, ", ")
	case len(lists) == 1 && len(single) == 0:
		return ", " + lists[0] + "..."
	}
	all := "[]" + p.qualified(load.RuntimePath+"/tensor", "Cell") + "{" + strings.Join(single, ", ") + "}"
	for _, list := range lists {
		all = "append(" + all + ", " + list + "...)"
	}
	return ", " + all + "..."
}

// decide makes the jumps at the end of g say that the loop ends. It returns the
// statement with which the test ends, and whether it is a part of the text of the user.
func (p *printer) decide(r *plan.Region, g *plan.Group) (result string, inText bool) {
	last := g.Stmts[len(g.Stmts)-1]
	if n, ok := last.Inner().(*ast.IfStmt); ok && p.spread() && len(g.Jumps) == 1 && p.isBare(r, g, n) {
		result = "return " + p.render(n.Cond.Pos(), n.Cond.End())
		p.replace(n.Pos(), n.End(), result)
		return result, true
	}
	for jump, w := range g.Jumps {
		var lines []string
		written := make(map[*plan.Out]bool)
		for _, o := range w.Outs {
			if !written[o] {
				written[o] = true
				lines = append(lines, o.Name+" = "+o.Var.Name())
			}
		}
		slices.Sort(lines)
		var outs, results []string
		for i, res := range w.Results {
			if res != nil && res.Out != nil {
				e := jump.(*ast.ReturnStmt).Results[i]
				text := p.render(e.Pos(), e.End())
				if !p.spread() {
					text = oneLine(text)
				}
				outs, results = append(outs, res.Out.Name), append(results, text)
			}
		}
		if outs != nil {
			lines = append(lines, strings.Join(outs, ", ")+" = "+strings.Join(results, ", "))
		}
		if r.Exits.Which != "" {
			lines = append(lines, fmt.Sprintf("%s = %d", r.Exits.Which, slices.Index(r.Exits.Ways, w)+1))
		}
		lines = append(lines, "return true")
		sep := "\n"
		if !p.spread() {
			sep = "; "
		}
		p.replace(jump.Pos(), jump.End(), strings.Join(lines, sep))
	}
	return "return false", false
}

// isBare reports whether n consists of a condition and a jump, of which
// nothing has to be told.
func (p *printer) isBare(r *plan.Region, g *plan.Group, n *ast.IfStmt) bool {
	if n.Init != nil || n.Else != nil || len(n.Body.List) != 1 || r.Exits.Which != "" {
		return false
	}
	w := g.Jumps[n.Body.List[0]]
	if w == nil || len(w.Outs) > 0 || slices.ContainsFunc(w.Results, func(r *plan.ExitResult) bool { return r != nil && r.Out != nil }) {
		return false
	}
	return !slices.ContainsFunc(p.comments, func(c *ast.CommentGroup) bool { return n.Pos() <= c.Pos() && c.Pos() < n.End() })
}

// divide takes the tests out of the condition of the loop of r, and returns
// the statements that test them, in the braces of a function.
func (p *printer) divide(r *plan.Region, g *plan.Group) string {
	x := r.Exits
	n := r.Loop.Inner().(*ast.ForStmt)
	negate := func(e ast.Expr) string { return "!(" + p.render(e.Pos(), e.End()) + ")" }
	var tests []string
	for _, e := range x.Tests {
		text := p.render(e.Pos(), e.End())
		if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.LOR {
			text = "(" + text + ")"
		}
		tests = append(tests, text)
	}
	test := "!(" + strings.Join(tests, " && ") + ")"
	if u, ok := x.Tests[0].(*ast.UnaryExpr); ok && len(x.Tests) == 1 && u.Op == token.NOT {
		test = p.render(u.X.Pos(), u.X.End())
	} else if len(x.Tests) == 1 {
		test = negate(x.Tests[0])
	}
	var keep []string
	for _, e := range x.Keep {
		keep = append(keep, p.render(e.Pos(), e.End()))
	}
	text := strings.Join(keep, " && ")
	if !p.spread() {
		test = oneLine(test)
		lines := strings.Count(string(p.src[p.offset(n.Cond.Pos()):p.offset(n.Cond.End())]), "\n")
		text = strings.Repeat("\n", lines) + oneLine(text)
	}
	p.replace(n.Cond.Pos(), n.Cond.End(), text)
	if r.Exits.Which == "" {
		return " return " + test + " "
	}
	which := fmt.Sprintf("%s = %d", r.Exits.Which, slices.Index(r.Exits.Ways, g.Jumps[g.Stmts[0].Node])+1)
	body := []string{p.block("if "+test, []string{which, "return true"}), "return false"}
	if p.spread() {
		return "\n" + strings.Join(body, "\n") + "\n"
	}
	return " " + strings.Join(body, "; ") + " "
}

// guard is what finds out whether an iteration is like those before.
func (p *printer) guard(l *plan.Later, r *plan.Region) string {
	g := r.Exits.Guard
	var asks []string
	for _, q := range []struct {
		method  string
		tensors []ast.Expr
	}{{"Alike", g.Tensors}, {"Floats", g.Floats}} {
		var tensors []string
		for _, e := range q.tensors {
			tensors = append(tensors, types.ExprString(e))
		}
		if len(tensors) > 0 || g.First && q.method == "Alike" {
			asks = append(asks, fmt.Sprintf("!%s.%s(%s)", l.Name, q.method, strings.Join(tensors, ", ")))
		}
	}
	return p.block("if "+strings.Join(asks, " || "), []string{p.flush(l, r, g.Before)})
}
