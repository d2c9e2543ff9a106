package blocking

import (
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Containers for anything, of packages that know nothing of tensors. Nothing is known of their methods, but two guesses
// are safe: what a method is given is in the container afterwards, and what an iterator yields was in there.
//
//	w.Push(loss)                // w holds loss
//	for t := range w.All() {}   // t is one of those
//
// A method that returns an element may return an old one, so nothing is guessed of results.

// isForeign reports whether c calls a function of a package that can't reach a tensor, or of the standard library.
func (c *Call) isForeign() bool {
	fn, pkg := c.Callee, c.In.Package
	return fn != nil && c.API.Kind == tensorapi.Unknown && fn.Pkg() != nil && fn.Pkg() != pkg.Pass.Pkg && !pkg.Pass.ImportPackageFact(fn.Pkg(), new(Reaches))
}

// storeInContainers notes the tensors that are given to methods of containers.
func storeInContainers(pkg *Package) {
	for _, f := range pkg.Funcs {
		for _, c := range f.Calls {
			recv := c.Operand(tensorapi.Recv)
			if c.Callee == nil || c.Callee.Signature().Recv() == nil || len(recv) != 1 || !c.isForeign() {
				continue
			}
			for _, e := range c.Expr.Args {
				if !pkg.HoldsTensors(pkg.Info.TypeOf(e)) {
					continue
				}
				d := Def{In: f, Pos: e.Pos(), Value: e}
				if v := pkg.Variable(recv[0]); v != nil && v.IsField() {
					pkg.stores[v] = append(pkg.stores[v], d)
				}
				if v := base(pkg, recv[0]); v != nil {
					pkg.stores[v] = append(pkg.stores[v], d)
				}
			}
		}
	}
}

// yielded returns the origin of what the iterator yields that maker returns, a call of a function of another package:
// what it was given, or what is in its receiver.
func (t *tracer) yielded(maker *Call) Origin {
	var o Origin
	for _, e := range slices.Concat(maker.Operand(tensorapi.Recv), maker.Expr.Args) {
		o = o.union(t.expr(e, 0, maker.In))
	}
	return o
}
