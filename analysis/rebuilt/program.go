package rebuilt

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// A program is all that may decide what a call builds: the expressions in its operands, and the
// functions of the package that these name or call.
type program struct {
	pkg    *blocking.Package
	bodies []*blocking.Func    // that are part of it
	vars   map[*types.Var]bool // that it mentions; true: as a whole, not a field of it only
	random bool                // it asks for what nobody sets: random numbers, the time, a file
}

// newProgram returns an empty program.
func newProgram(pkg *blocking.Package) *program {
	return &program{pkg: pkg, vars: make(map[*types.Var]bool)}
}

// read adds an expression.
func (p *program) read(e ast.Node) {
	info := p.pkg.Info
	part := make(map[*ast.Ident]bool) // of which a field is asked for
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if f := p.pkg.Lits[n]; f != nil {
				p.enter(f)
				return false
			}
		case *ast.SelectorExpr:
			if id, ok := ast.Unparen(n.X).(*ast.Ident); ok {
				if sel := info.Selections[n]; sel != nil && (sel.Kind() == types.FieldVal || p.pkg.FuncValue(n, 0).IsKnown()) {
					part[id] = true
				}
			}
		case *ast.Ident:
			switch obj := info.Uses[n].(type) {
			case *types.Var:
				p.mention(obj, !part[n])
			case *types.Func:
				p.call(obj)
			}
		}
		return true
	})
}

// mention adds a variable, and the functions that it may stand for.
func (p *program) mention(v *types.Var, whole bool) {
	if v.IsField() {
		v = v.Origin()
	}
	known, seen := p.vars[v]
	p.vars[v] = known || whole
	if seen || !syntax.IsFunc(v.Type()) {
		return
	}
	for _, d := range p.pkg.Defs[v] {
		if d.Value != nil {
			p.read(d.Value)
		}
	}
}

// call adds a function that is mentioned.
func (p *program) call(fn *types.Func) {
	if f := p.pkg.Decls[fn.Origin()]; f != nil {
		p.enter(f)
		return
	}
	if fn.Pkg() != nil {
		switch fn.Pkg().Path() {
		case "math/rand", "math/rand/v2", "crypto/rand", "time", "os":
			p.random = true
		}
	}
}

// enter adds the body of a function.
func (p *program) enter(f *blocking.Func) {
	if !slices.Contains(p.bodies, f) {
		p.bodies = append(p.bodies, f)
		p.read(f.Body)
	}
}

// differs reports whether an iteration of l may change what c, which builds p, builds in the next one.
func (p *program) differs(c *blocking.Call, l *blocking.Loop) bool {
	if p.random {
		return true
	}
	for v, whole := range p.vars {
		if !p.declares(v) && (p.assigns(v, l) || whole && changes(p.pkg, v, c, l)) {
			return true
		}
	}
	return slices.ContainsFunc(c.Plans(), func(e ast.Expr) bool { return grows(p.pkg, e, c, l) })
}

// declares reports whether v is a variable of a function in p. Each run of the
// function has its own.
func (p *program) declares(v *types.Var) bool {
	return !v.IsField() && slices.ContainsFunc(p.bodies, func(f *blocking.Func) bool {
		n := f.Cur.Node()
		return n.Pos() <= v.Pos() && v.Pos() < n.End()
	})
}

// assigns reports whether l, what it calls, or p itself assigns v, or an element of it.
func (p *program) assigns(v *types.Var, l *blocking.Loop) bool {
	if p.pkg.IsOperand(v, l) {
		return true
	}
	for _, d := range p.pkg.Defs[v] {
		if p.pkg.Contains(l, d.In, d.Pos) || p.pkg.CalledFrom(l, d.In) || slices.Contains(p.bodies, d.In) {
			return true
		}
	}
	return false
}

// changes reports whether l may change what v refers to. It does if it assigns a part of it, calls a
// method of it as a statement, or hands it to a function that does not build.
func changes(pkg *blocking.Package, v *types.Var, c *blocking.Call, l *blocking.Loop) bool {
	if v.IsField() {
		return false // a field of which value nobody knows here
	}
	switch v.Type().Underlying().(type) {
	case *types.Basic, *types.Signature:
		return false
	}
	_, isInterface := v.Type().Underlying().(*types.Interface)
	for use := range pkg.UsesOf(v, l.Func) {
		if f := pkg.FuncAt(use); f == nil || !pkg.Contains(l, f, use.Node().Pos()) {
			continue
		}
		cur := use
		for cur.Parent().Node() != nil {
			up := cur.Parent()
			switch n := up.Node().(type) {
			case *ast.ParenExpr, *ast.StarExpr, *ast.SelectorExpr:
				cur = up
				continue
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					cur = up
					continue
				}
			case *ast.IndexExpr:
				if n.X == cur.Node() {
					cur = up
					continue
				}
			case *ast.AssignStmt:
				if slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return e == cur.Node() }) {
					return true
				}
			case *ast.IncDecStmt:
				return true
			case *ast.CallExpr:
				d := pkg.Calls[n]
				switch {
				case d == nil || d == c || blocking.Libraries().Rebuilds(d.Callee) || d.Summary().Builds:
				case n.Fun == cur.Node(): // a method of it
					_, isStmt := up.Parent().Node().(*ast.ExprStmt)
					if isStmt && d.Target == nil {
						return true
					}
				case !isInterface && d.Target == nil && cur == use:
					return true
				}
			}
			break
		}
	}
	return false
}

// grows reports whether e is a graph of a library to which l may add: l calls functions of the library
// that make parts of graphs.
func grows(pkg *blocking.Package, e ast.Expr, c *blocking.Call, l *blocking.Loop) bool {
	lib := pointsInto(pkg.Info.TypeOf(e))
	sig, ok := pkg.Info.TypeOf(c.Expr.Fun).Underlying().(*types.Signature)
	if lib == nil || !ok {
		return false
	}
	built := sig.Results()
	return pkg.Any(l, func(d *blocking.Call) bool {
		if d.Callee == nil || d.Callee.Pkg() == nil || !lib.Owns(d.Callee.Pkg().Path()) || blocking.Libraries().Rebuilds(d.Callee) {
			return false
		}
		for v := range d.Callee.Signature().Results().Variables() {
			if t := v.Type(); pointsInto(t) == lib && !blocking.IsTensor(t) && (built.Len() == 0 || !types.Identical(t, built.At(0).Type())) {
				return true
			}
		}
		return false
	})
}

// pointsInto returns the library that t is a pointer to a type of, or nil.
func pointsInto(t types.Type) *tensorapi.Profile {
	ptr, ok := types.Unalias(t).(*types.Pointer)
	if !ok {
		return nil
	}
	named, ok := types.Unalias(ptr.Elem()).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return nil
	}
	return blocking.Libraries().Owner(named.Obj().Pkg().Path())
}
