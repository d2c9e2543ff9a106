package rewrite

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"github.com/asyncgen/asyncgen/gen/internal/syntax"
)

// The ways out of a loop are laid out when it is known what comes later: for each jump, what it needs of the iteration
// that it is decided in, and what has to be given back.

// exitsOf lays out the ways out of the loop of r that values decide, if any do.
func (a *layout) exitsOf(r *plan.Region) *plan.Reason {
	var x *plan.Exits
	for _, g := range r.Groups {
		for _, s := range g.Stmts {
			if !mayLeave(s) {
				continue
			}
			if x == nil {
				x = &plan.Exits{Keep: a.loop.Keep, Tests: a.loop.Tests}
			}
			if g.Jumps == nil {
				g.Jumps = make(map[ast.Stmt]*plan.Way)
			}
			jumps := plan.JumpsFrom(s.Node)
			if s.IsTest {
				jumps = []ast.Stmt{s.Node}
			}
			for _, jump := range jumps {
				if a.isEnd(s, jump) {
					continue
				}
				w, why := a.way(x, g, jump)
				if why != nil {
					return why
				}
				g.Jumps[jump] = w
			}
		}
	}
	if x == nil {
		return nil
	}
	a.joinReturns(r, x)
	slices.SortStableFunc(x.Ways, func(v, w *plan.Way) int { // the one past the end of the loop comes last
		switch {
		case v.Jump == nil:
			return 1
		case w.Jump == nil:
			return -1
		}
		return 0
	})
	slices.SortFunc(x.Fields, func(v, w *plan.Slot) int { return int(v.Var.Pos() - w.Var.Pos()) })
	r.Exits = x
	x.Cells, x.Guard = a.past.Cells, a.past.Guard
	if a.contained != nil {
		x.Iterate, x.Continues = true, a.restartsHere()
	}
	return a.places(r)
}

// way finds where the jump at the end of g leads, and what has to be kept for
// what comes there.
func (a *layout) way(x *plan.Exits, g *plan.Group, jump ast.Stmt) (*plan.Way, *plan.Reason) {
	w := &plan.Way{Uses: make(map[*ast.Ident]*plan.Slot), Outs: make(map[*ast.Ident]*plan.Out)}
	switch n := jump.(type) {
	case *ast.ReturnStmt:
		w.Jump = n
		if why := a.tail(x, g, w, n); why != nil {
			return nil, why
		}
		if len(n.Results) == 0 || syntax.HasCall(n) {
			for _, v := range a.past.Changed {
				// nothing outside the loop leads to captured variables that it declares
				if len(n.Results) == 0 && a.f.IsResult(v) || a.f.IsCaptured(v) && !contains(a.loop.Node, v.Pos()) {
					w.Restore = append(w.Restore, slot(x, v))
				}
			}
		}
	case *ast.BranchStmt:
		if l, ok := a.loop.Node.(*ast.LabeledStmt); n.Label != nil && (!ok || l.Label.Name != n.Label.Name) {
			w.Jump = n
		}
	}
	if _, returns := w.Jump.(*ast.ReturnStmt); !returns {
		for _, v := range a.past.Changed {
			if a.f.LiveAfter(v, a.loop.Node) {
				w.Restore = append(w.Restore, slot(x, v))
			}
		}
	}
	for _, s := range x.Fields {
		if why := a.declarable(s.Var); why != nil {
			return nil, why
		}
	}
	for _, o := range x.Ways {
		if sameWay(a.f, o, w) {
			return o, nil
		}
	}
	x.Ways = append(x.Ways, w)
	return w, nil
}

// slot returns the place of v in the state.
func slot(x *plan.Exits, v *types.Var) *plan.Slot {
	for _, s := range x.Fields {
		if s.Var == v {
			return s
		}
	}
	s := &plan.Slot{Var: v}
	x.Fields = append(x.Fields, s)
	return s
}

// tail finds what the results of a return, which is decided on in g, need of
// the iteration it is decided in.
func (a *layout) tail(x *plan.Exits, g *plan.Group, w *plan.Way, n *ast.ReturnStmt) (why *plan.Reason) {
	refuse := func(n ast.Node, text string) {
		if why == nil {
			why = &plan.Reason{Code: plan.ExitForm, Cause: plan.Cause{Pos: n.Pos(), Text: text}, Hint: "break out of the loop, and do it there"}
		}
	}
	loop := a.loop.Node
	ast.Inspect(n, func(m ast.Node) bool {
		switch m := m.(type) {
		case *ast.FuncLit:
			refuse(m, "returns a function that is made in the loop")
			return false
		case *ast.Ident:
			obj := a.f.Info.Uses[m]
			if obj == nil {
				return true
			}
			inside := loop.Pos() <= obj.Pos() && obj.Pos() < loop.End()
			v, isVar := obj.(*types.Var)
			switch {
			case isVar && v.IsField():
			case isVar && inside && isFunc(v.Type()):
				refuse(m, "calls "+obj.Name()+", which is made in the loop")
			case !isVar && inside:
				refuse(m, "returns "+obj.Name()+", which is declared in the loop")
			case !isVar:
			case a.f.Visible(v) && inside:
				refuse(m, "returns "+obj.Name()+", of which there is a pointer")
			case inside && (a.isPutOff(v) || inGroup(g, v)):
				w.Outs[m] = out(x, w, v)
				if r := a.declarable(v); r != nil {
					why = r
				}
			case inside || slices.Contains(a.past.Changed, v):
				w.Uses[m] = slot(x, v)
			}
		}
		return true
	})
	return why
}

// out returns the variable in which tests leave the value of v.
func out(x *plan.Exits, w *plan.Way, v *types.Var) *plan.Out {
	for _, w := range append(slices.Clip(x.Ways), w) {
		for _, o := range w.Outs {
			if o.Var == v {
				return o
			}
		}
	}
	return &plan.Out{Var: v}
}

// inGroup reports whether v is declared in the statements of g.
func inGroup(g *plan.Group, v *types.Var) bool {
	for _, s := range g.Stmts {
		if s.Node.Pos() <= v.Pos() && v.Pos() < s.Node.End() {
			return true
		}
	}
	return false
}

// declarable returns why a variable of the type of v can't be declared in
// front of the loop, or nil.
func (a *layout) declarable(v *types.Var) (why *plan.Reason) {
	from := a.outermost.Node.Pos()
	var visit func(t types.Type, depth int)
	visit = func(t types.Type, depth int) {
		if depth > 8 {
			return
		}
		switch t := types.Unalias(t).(type) {
		case *types.Named:
			if obj := t.Obj(); from <= obj.Pos() && obj.Pos() < a.f.Decl.End() && a.f.Decl.Pos() <= obj.Pos() {
				why = &plan.Reason{Code: plan.ExitForm, Cause: plan.Cause{Pos: obj.Pos(), Text: "declares the type of " + v.Name() + " in the loop"},
					Hint: "declare the type before the loop"}
			}
			for arg := range t.TypeArgs().Types() {
				visit(arg, depth+1)
			}
		case *types.Pointer:
			visit(t.Elem(), depth+1)
		case *types.Slice:
			visit(t.Elem(), depth+1)
		case *types.Array:
			visit(t.Elem(), depth+1)
		case *types.Map:
			visit(t.Key(), depth+1)
			visit(t.Elem(), depth+1)
		case *types.Chan:
			visit(t.Elem(), depth+1)
		}
	}
	visit(v.Type(), 0)
	return why
}

// sameWay reports whether two ways do the same.
func sameWay(f *plan.Function, v, w *plan.Way) bool {
	if v.Jump == nil || w.Jump == nil {
		return v.Jump == nil && w.Jump == nil
	}
	if len(v.Outs) > 0 || len(w.Outs) > 0 {
		return false
	}
	return wayKey(f, v.Jump) == wayKey(f, w.Jump)
}

// wayKey is a text that is the same for jumps that do the same, and for expressions that mean the same.
func wayKey(f *plan.Function, jump ast.Node) string {
	var b strings.Builder
	ast.Inspect(jump, func(n ast.Node) bool {
		switch n := n.(type) {
		case nil:
			b.WriteString(")")
		case *ast.Ident:
			b.WriteString(n.Name)
			if obj := f.Info.Uses[n]; obj != nil {
				b.WriteString("@" + f.Pkg.Fset.Position(obj.Pos()).String())
			}
		case *ast.BasicLit:
			b.WriteString(n.Value)
		case *ast.BinaryExpr:
			b.WriteString("(" + n.Op.String())
		case *ast.UnaryExpr:
			b.WriteString("(" + n.Op.String())
		case *ast.BranchStmt:
			b.WriteString(n.Tok.String())
		default:
			b.WriteString("(" + fmt.Sprintf("%T", n))
		}
		return true
	})
	return b.String()
}

// places checks that each way can be taken wherever an exit may be reported,
// and finds where a break needs a label.
func (a *layout) places(r *plan.Region) *plan.Reason {
	type place struct {
		stmt *plan.Stmt
		pos  token.Pos
	}
	var all []place
	for _, g := range r.Groups {
		if last := g.Stmts[len(g.Stmts)-1]; g.Jumps != nil && !last.IsTest {
			all = append(all, place{last, last.Node.End()})
		}
	}
	for _, s := range r.Flushes {
		all = append(all, place{s, s.Node.Pos()})
	}
	if g := r.Exits.Guard; g != nil {
		all = append(all, place{g.Before, g.Before.Node.Pos()})
	}
	if r.Exits.Iterate {
		all = []place{{r.Loop.Bodies[0][0], bodyOf(r.Loop).Rbrace}}
	}
	for _, w := range r.Exits.Ways {
		for _, at := range all {
			if w.Jump == nil || len(r.Exits.Ways) > 1 && !r.Endless {
				for p := at.stmt.Parent; p != nil && p != a.loop; p = p.Parent {
					r.Exits.Labels = r.Exits.Labels || isBreakable(p)
				}
			}
			for _, v := range a.needs(w) {
				if !a.f.Sees(at.pos, v) {
					return &plan.Reason{Code: plan.ExitForm, Cause: plan.Cause{Pos: at.pos, Text: "declares another " + v.Name() + ", which hides the one that the exit needs"},
						Hint: "give one of them another name"}
				}
			}
		}
	}
	return nil
}

// bodyOf returns the body of a loop.
func bodyOf(loop *plan.Stmt) *ast.BlockStmt {
	if n, ok := loop.Inner().(*ast.ForStmt); ok {
		return n.Body
	}
	return loop.Inner().(*ast.RangeStmt).Body
}

// needs lists what the text of a way refers to by name.
func (a *layout) needs(w *plan.Way) (objs []types.Object) {
	for _, s := range w.Restore {
		objs = append(objs, s.Var)
	}
	if n, ok := w.Jump.(*ast.ReturnStmt); ok {
		ast.Inspect(n, func(m ast.Node) bool {
			if e, ok := m.(ast.Expr); ok && w.Result(e) != nil {
				return false
			}
			if id, ok := m.(*ast.Ident); ok && w.Uses[id] == nil && w.Outs[id] == nil {
				if obj := a.f.Info.Uses[id]; obj != nil && obj.Pkg() == a.f.Pkg.Types && !isMember(obj) {
					objs = append(objs, obj)
				}
			}
			return true
		})
	}
	return objs
}

// isMember reports whether obj is a field or a method, which no scope has.
func isMember(obj types.Object) bool {
	switch obj := obj.(type) {
	case *types.Var:
		return obj.IsField()
	case *types.Func:
		return obj.Signature().Recv() != nil
	}
	return false
}
