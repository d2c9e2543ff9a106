package lastread

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT002.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT002", Package: "lastread", Doc: doc, Infos: true, Fixes: true, Rewritten: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	moved := make(map[*blocking.Loop][]move)
	first := make(map[*blocking.Loop]*sites.Site)
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.LastWins {
			continue
		}
		if first[s.Loop] == nil {
			first[s.Loop] = s
		}
		if m, ok := moveOut(p, s); ok {
			moved[s.Loop] = append(moved[s.Loop], m)
		}
	}
	for _, s := range sites.Of(p) {
		if s.Pattern() != sites.LastWins {
			continue
		}
		var fixes []analysis.SuggestedFix
		if first[s.Loop] == s {
			fixes = combine(p, s.Loop.Stmt, moved[s.Loop])
		}
		p.Report(s.Severity(), analysis.Diagnostic{
			Pos:            s.Call.Pos(),
			End:            s.Call.End(),
			Message:        "blocking read in loop: " + s.Name + " waits for the device in each iteration, but only the last value is used; keep the tensor and read it after the loop",
			Related:        s.Loop.Related(),
			SuggestedFixes: fixes,
		})
	}
}

// A move is the change that takes one read out of a loop.
type move struct {
	name string              // of the new variable
	typ  string              // of it
	read string              // the statement that reads it
	edit []analysis.TextEdit // of the statement in the loop
}

// moveOut plans the move of a read, if it is safe; see doc.go.
func moveOut(p *lint.Pass, s *sites.Site) (move, bool) {
	assign := s.Assigns()
	sel, ok := ast.Unparen(s.Call.Fun).(*ast.SelectorExpr)
	if !ok || sel.X != s.Operand || len(s.Call.Args) > 0 || s.Timed || assign == nil || !leavesAtEnd(p, s) {
		return move{}, false
	}
	target := assign.Lhs[0].(*ast.Ident)
	typ, ok := spell(p, p.TypesInfo.TypeOf(s.Operand), s.Loop.Stmt.Pos())
	if !ok {
		return move{}, false
	}
	if declaresAny(p, s.Loop.Stmt, assign.Rhs[0], s.Operand) {
		return move{}, false
	}
	from, ok1 := p.Source(s.Operand)
	whole, ok2 := p.Source(assign)
	if !ok1 || !ok2 || p.HasComment(assign.Pos(), assign.End()) || strings.Contains(whole, "\n") {
		return move{}, false
	}
	m := move{name: p.NewName(target.Name+"Tensor", s.Loop.Stmt), typ: typ}
	start := int(s.Operand.Pos() - assign.Pos())
	m.read = whole[:start] + m.name + whole[start+len(from):]
	m.edit = []analysis.TextEdit{{Pos: assign.Pos(), End: assign.End(), NewText: []byte(m.name + " = " + from)}}
	return m, true
}

// declaresAny reports whether the loop declares something that e mentions
// outside of one of its operands.
func declaresAny(p *lint.Pass, loop ast.Stmt, e, operand ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		if n == operand {
			return false
		}
		if id, ok := n.(*ast.Ident); ok {
			obj := p.TypesInfo.Uses[id]
			found = found || obj != nil && loop.Pos() <= obj.Pos() && obj.Pos() < loop.End()
		}
		return !found
	})
	return found
}

// leavesAtEnd reports whether the code after the loop runs in all cases in which somebody can look at
// the variable that s assigns.
func leavesAtEnd(p *lint.Pass, s *sites.Site) bool {
	loop, ok := p.CursorOf(s.Loop.Stmt)
	if !ok || loop.ParentEdgeKind() != edge.BlockStmt_List && loop.ParentEdgeKind() != edge.CaseClause_Body && loop.ParentEdgeKind() != edge.CommClause_Body {
		return false // it has a label
	}
	v := p.TypesInfo.ObjectOf(s.Assigns().Lhs[0].(*ast.Ident)).(*types.Var)
	if p.IsOperand(v) || p.IsShared(v, s.Cur) {
		return false
	}
	for c := range loop.Preorder((*ast.BranchStmt)(nil)) {
		if b := c.Node().(*ast.BranchStmt); b.Label != nil {
			return false
		}
	}
	return true
}

// spell writes a type as the file at pos has to.
func spell(p *lint.Pass, t types.Type, pos token.Pos) (string, bool) {
	ok := true
	text := types.TypeString(t, func(pkg *types.Package) string {
		if pkg == p.Pkg {
			return ""
		}
		for _, spec := range p.FileOf(pos).Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			if path != pkg.Path() {
				continue
			}
			name := pkg.Name()
			if spec.Name != nil {
				name = spec.Name.Name
			}
			if _, obj := p.Pkg.Scope().Innermost(pos).LookupParent(name, pos); obj != nil {
				if pn, isPkg := obj.(*types.PkgName); isPkg && pn.Imported() == pkg {
					return name
				}
			}
		}
		ok = false
		return ""
	})
	_, isPointer := types.Unalias(t).(*types.Pointer)
	return text, ok && isPointer
}

// combine makes one fix of all the moves out of a loop.
func combine(p *lint.Pass, loop ast.Stmt, moves []move) []analysis.SuggestedFix {
	if len(moves) == 0 {
		return nil
	}
	before := p.Lead(loop.Pos())
	indent, alone := p.Indentation(before)
	before -= token.Pos(len(indent)) // apart from what another rule inserts before the loop
	after, ok := p.NextLine(loop.End())
	if !alone || !ok {
		return nil
	}
	var edits []analysis.TextEdit
	var vars, reads strings.Builder
	for _, m := range moves {
		vars.WriteString(indent + "var " + m.name + " " + m.typ + "\n")
		reads.WriteString(indent + "if " + m.name + " != nil {\n" + indent + "\t" + m.read + "\n" + indent + "}\n")
		edits = append(edits, m.edit...)
	}
	edits = append(edits,
		analysis.TextEdit{Pos: before, End: before, NewText: []byte(vars.String())},
		analysis.TextEdit{Pos: after, End: after, NewText: []byte(reads.String())},
	)
	return []analysis.SuggestedFix{{Message: "Read after the loop", TextEdits: edits}}
}
