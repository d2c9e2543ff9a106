package emit

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
)

// rows is what r looks at, for all rows: the user's own text with x.Row(j) become row(x).
func (p *printer) rows(r *plan.Read, later string) string {
	for _, call := range r.Rows.Calls {
		x := ast.Unparen(call.Fun).(*ast.SelectorExpr).X
		p.replace(call.Pos(), call.End(), r.Rows.Param+"("+p.render(x.Pos(), x.End())+")")
	}
	var defs []string
	for _, d := range r.Rows.Defs {
		defs = append(defs, p.render(p.start(d.Node), p.end(d.Node)))
	}
	return later + ".Rows(" + p.count(r.Rows.Count, r.Rows.Len) + ", " + p.ofRow(r.Rows.Param, defs, p.render(r.Operand.Pos(), r.Operand.End())) + ")"
}

// absorb takes what the functions of one row define out of the entry g.
func (p *printer) absorb(g *plan.Group) {
	for _, s := range g.Stmts {
		for d := range s.All {
			if d.Absorbed {
				from, to := p.line(d.Node)
				p.replace(from, to, "")
			}
		}
	}
}

// line is s with its comments, and the end of its line if there is nothing else on it.
func (p *printer) line(s ast.Stmt) (from, to token.Pos) {
	from, to = p.start(s), p.end(s)
	if !p.spread() {
		return from, to
	}
	after := string(p.src[p.offset(to):])
	rest, _, ok := strings.Cut(after, "\n")
	if !ok || strings.TrimSpace(rest) != "" || !p.beginsLine(from) {
		return from, to
	}
	before := string(p.src[:p.offset(from)])
	return from - token.Pos(len(before)-strings.LastIndexByte(before, '\n')-1), to + token.Pos(len(rest)+1)
}
