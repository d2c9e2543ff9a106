package plan

import (
	"fmt"
	"go/ast"
	"go/types"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// Names finds names that mean nothing else anywhere in a function.
type Names struct {
	f     *Function
	taken map[string]bool
}

// NewNames returns the names of f, which are taken.
func NewNames(f *Function) *Names {
	n := &Names{f: f, taken: map[string]bool{"asyncrt": true}}
	ast.Inspect(f.Decl, func(m ast.Node) bool {
		if id, ok := m.(*ast.Ident); ok {
			n.taken[id.Name] = true
		}
		return true
	})
	for _, name := range types.Universe.Names() {
		n.taken[name] = true
	}
	return n
}

// Unused returns name, or the first of name2, name3, … that is not in use. From now on it is.
func (n *Names) Unused(name string) string {
	got := name
	for i := 2; n.taken[got] || n.f.Pkg.Types.Scope().Lookup(got) != nil || n.f.Home.Types.Scope().Lookup(got) != nil; i++ {
		got = fmt.Sprintf("%s%d", name, i)
	}
	n.taken[got] = true
	return got
}

// BaseName is the name that what holds e, or a Read of it, is called after.
func BaseName(e ast.Expr) string {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return load.Unexport(e.Name)
	case *ast.SelectorExpr:
		return load.Unexport(e.Sel.Name)
	case *ast.CallExpr:
		return BaseName(e.Fun)
	case *ast.IndexExpr:
		return BaseName(e.X)
	case *ast.StarExpr:
		return BaseName(e.X)
	}
	return "value"
}
