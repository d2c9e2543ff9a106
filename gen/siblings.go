package gen

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// A Sibling is a generated function that is there already, and where the program itself uses it
// instead of what it was made from.
type Sibling struct {
	Name     string
	Original string         // "" if it is not there any more
	Used     token.Position // where first, in files that are not generated; its Line is 0 if it is not
	Both     bool           // they use the original, too
}

// siblings returns the generated functions of a program, as they are on disk, by the place of their use and by name.
func siblings(prog *load.Program) []Sibling {
	originals := make(map[types.Object]types.Object) // of generated functions
	for _, pkg := range prog.Roots {
		for _, file := range pkg.Syntax {
			if !pkg.Source(file).Generated {
				continue
			}
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok {
					originals[pkg.TypesInfo.Defs[fn.Name]] = nil
				}
			}
		}
		for decl, k := range pkg.Kernels {
			original := pkg.TypesInfo.Defs[decl.Name]
			for generated := range originals {
				if generated.Pkg() == pkg.Types && generated.Name() == load.SiblingName(decl.Name.Name, k) && typeOf(generated) == typeOf(original) {
					originals[generated] = original
				}
			}
		}
	}
	first := make(map[types.Object]token.Position)
	for _, pkg := range prog.Roots {
		for _, file := range pkg.Syntax {
			if pkg.Source(file).Generated {
				continue
			}
			for _, d := range file.Decls {
				var self types.Object // that a function calls itself makes no use of it
				if fn, ok := d.(*ast.FuncDecl); ok {
					self = pkg.TypesInfo.Defs[fn.Name]
				}
				ast.Inspect(d, func(n ast.Node) bool {
					id, ok := n.(*ast.Ident)
					if !ok {
						return true
					}
					fn, ok := pkg.TypesInfo.Uses[id].(*types.Func)
					if !ok || fn.Origin() == self {
						return true
					}
					if _, seen := first[fn.Origin()]; !seen {
						first[fn.Origin()] = pkg.Fset.Position(id.Pos())
					}
					return true
				})
			}
		}
	}
	var found []Sibling
	for generated, original := range originals {
		sibling := Sibling{Name: generated.Name(), Used: first[generated]}
		if original != nil {
			sibling.Original = original.Name()
			_, sibling.Both = first[original]
		}
		found = append(found, sibling)
	}
	slices.SortFunc(found, func(a, b Sibling) int {
		return cmp.Or(cmp.Compare(a.Used.Filename, b.Used.Filename), cmp.Compare(a.Used.Offset, b.Used.Offset), cmp.Compare(a.Name, b.Name))
	})
	return found
}

// typeOf is the name of the type that fn is a method of, or "".
func typeOf(fn types.Object) string {
	recv := fn.(*types.Func).Signature().Recv()
	if recv == nil {
		return ""
	}
	t := recv.Type()
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return ""
}
