package emit

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// keeps puts what is computed for all rows in front of its loops, and the rows in its places.
func (p *printer) keeps() {
	var texts []string
	for _, k := range p.d.Keeps { // all of them before anything is replaced: one may be a part of another
		texts = append(texts, p.keep(k))
	}
	for i, k := range p.d.Keeps {
		p.insert(p.start(k.Loop), p.lines(texts[i]))
		for _, e := range k.Places {
			p.replace(e.Pos(), e.End(), k.Name+".Row("+k.Index.Name+")")
		}
	}
	for _, s := range p.d.Idle {
		lhs := s.(*ast.AssignStmt).Lhs[0]
		p.insert(p.end(s), p.after("_ = "+p.render(lhs.Pos(), lhs.End())))
	}
}

// keep is the definition of the rows of k.
func (p *printer) keep(k *plan.Keep) string {
	edits := slices.Clone(p.edits)
	defer func() { p.edits = edits }()
	for _, call := range k.Calls {
		x := ast.Unparen(call.Fun).(*ast.SelectorExpr).X
		p.replace(call.Pos(), call.End(), k.Param+"("+p.render(x.Pos(), x.End())+")")
	}
	var defs []string
	for _, d := range k.Defs {
		if d.Of != nil {
			lhs := d.Stmt.(*ast.AssignStmt).Lhs[0]
			defs = append(defs, p.render(lhs.Pos(), lhs.End())+" := "+d.Of.Name+".This()")
			continue
		}
		defs = append(defs, p.render(p.start(d.Stmt), p.end(d.Stmt)))
	}
	result := p.render(k.Expr.Pos(), k.Expr.End())
	if d := k.Gone; d != nil && (p.start(d) < d.Pos() || p.end(d) > d.End()) { // it has a comment
		defs, result = append(defs, p.render(p.start(d), p.end(d))), p.render(d.Lhs[0].Pos(), d.Lhs[0].End())
	}
	of := p.ofRow(k.Param, defs, result)
	if k.First != nil {
		return fmt.Sprintf("%s := %s.Map(%s)", k.Name, k.First.Name, of)
	}
	text := fmt.Sprintf("%s := %s(%s, %s)", k.Name, p.qualified(load.RuntimePath, "MapRows"), p.count(k.Count, k.Len), of)
	if k.Detach {
		text += ".Detach()"
	}
	return text
}

// count is the number of rows.
func (p *printer) count(count ast.Expr, isLen bool) string {
	n := p.render(count.Pos(), count.End())
	if isLen {
		n = "len(" + n + ")"
	}
	return n
}

// ofRow is the function of one row.
func (p *printer) ofRow(param string, defs []string, result string) string {
	result = "return " + result
	signature := fmt.Sprintf("func(%s %s) *%s {", param, p.qualified(load.RuntimePath, "RowOf"), p.qualified(path.Join(load.RuntimePath, "tensor"), "Tensor"))
	if len(defs) == 0 && (!p.spread() || len(param)+len(result) < 70 && !strings.Contains(result, "\n")) {
		return signature + " " + result + " }"
	}
	body := append(defs, result)
	if !p.spread() {
		return signature + " " + strings.Join(body, "; ") + " }"
	}
	return signature + "\n" + strings.Join(body, "\n") + "\n}"
}

// drop takes out the definitions that nothing but functions of one row needs. What has been
// inserted in front of them stays.
func (p *printer) drop() {
	for _, s := range p.d.Gone {
		from, to := p.line(s)
		text := p.insertedIn(from, to)
		if text != "" && p.spread() {
			to = p.end(s)
		}
		p.replace(from, to, text)
	}
}

// insertedIn returns what is inserted from one position to before another.
func (p *printer) insertedIn(from, to token.Pos) string {
	var b strings.Builder
	for _, e := range p.edits {
		if e.pos == e.end && p.offset(from) < e.pos && e.pos < p.offset(to) {
			b.WriteString(e.text)
		}
	}
	return b.String()
}
