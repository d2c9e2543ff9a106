package droppedresult

import (
	"go/ast"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

const gone = " is thrown away, with which the failures are gone; handle it"

// loses reports whether c returns a failure that nobody is told of again, and is at a place where that matters. Where
// time is taken, a barrier is there for the sake of the clock.
func loses(c *blocking.Call, isTimed func(*blocking.Call) bool) bool {
	if !hasError(c) || isAfterFailure(c) {
		return false
	}
	if isRecord(c) {
		return !isHandled(c)
	}
	barrier, alone := isBarrier(c), false
	if !barrier {
		barrier, alone = passesOn(c, 0)
	}
	return barrier && !isTimed(c) && (alone || !returnsTensors(c.In))
}

// passesOn reports whether c calls a function of the package that returns nothing but the failure of what it waits for,
// and has the only wait for what it computes itself, so that alone its error tells of that:
//
//	func (s *server) check() error { return s.net.Forward(s.zeros).Wait() }
//
// Depth bounds the functions that it calls for that.
func passesOn(c *blocking.Call, depth int) (barrier, alone bool) {
	_, runs := c.Value().Parent().Node().(*ast.DeferStmt)
	if c.Target == nil || depth > 2 || runs || c.Target.Sig.Results().Len() != 1 || !hasError(c) || strings.Contains(strings.ToLower(c.Target.Name), "warm") {
		return false, false
	}
	for _, d := range c.Target.Calls {
		switch use := d.Value().Parent().Node().(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt:
			continue
		case *ast.AssignStmt:
			if ignores(use) {
				continue
			}
		}
		if d.Away || !hasError(d) {
			continue
		}
		more, own := passesOn(d, depth+1)
		own = own || isOfOwn(d)
		barrier, alone = barrier || more || own || isBarrier(d), alone || own
	}
	return barrier, alone
}

// isOfOwn reports whether c waits for the result of an operation or network that nobody else has.
func isOfOwn(c *blocking.Call) bool {
	if !c.IsFunc("Tensor.Wait") && !c.IsFunc("Tensor.WaitContext") {
		return false
	}
	e := c.Operand(tensorapi.Recv)[0]
	if v := c.In.Package.Local(e); v != nil {
		uses := 0
		for range c.In.Package.UsesOf(v, c.In) {
			uses++
		}
		if uses > 1 {
			return false
		}
	}
	made := c.In.Package.Calls[syntax.AsCall(c.In.Package.OnlyValue(e))]
	return made != nil && made.In == c.In && (made.API.Kind == tensorapi.Op || blocking.IsForward(made))
}

// isMeasuredCall is isMeasured for the function around c.
func isMeasuredCall(c *blocking.Call) bool { return isMeasured(c.In) }

// isForClock reports whether c is in a function that is timed, and a clock may be read after c. Behind the last clock,
// a barrier is there to wait for the work.
//
//	log.Println(time.Since(start))
//	asyncrt.WaitAll()
func isForClock(c *blocking.Call) bool {
	if !isTimed(c.In) || isMeasured(c.In) || c.In.Lit != nil {
		return isTimed(c.In)
	}
	for range c.In.Package.LoopsAround(c.In, c.Expr.Pos()) {
		return true
	}
	return c.In.Contains(func(d *blocking.Call) bool {
		_, deferred := d.Value().Parent().Node().(*ast.DeferStmt)
		return readsClock(d) && (d.Expr.Pos() > c.Expr.Pos() || deferred || d.In != c.In)
	})
}

// isBarrier recognises asyncrt.WaitAll, Synchronize and Try. These return a failure once. Tensor.Wait is not among
// them: whoever reads the tensor later finds its failure. WaitContext is: only its error says whether it has waited.
func isBarrier(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.WaitAll && syntax.RecvName(c.Callee) == "" || c.IsFunc("Try") || c.IsFunc("Tensor.WaitContext")
}

// isRecord recognises calls that write results to files or to other ranks, or read checkpoints. Only their error says
// that the results are missing. Close counts, too, as it may write what was recorded. It does not count for
// a file that was only read, or for a data set in memory.
func isRecord(c *blocking.Call) bool {
	switch c.API.Kind {
	case tensorapi.WaitAll, tensorapi.Save:
		return !isBarrier(c)
	case tensorapi.Control:
		return strings.HasSuffix(c.Callee.Pkg().Path(), "/files") && !c.IsFunc("File.Close") || c.IsFunc("Save")
	}
	return syntax.IsFullName(c.Callee, "(*github.com/asyncgen/asyncgen/device/wire.Job).Close")
}

// isHandled reports whether the function calls the same method of the same thing elsewhere and looks at the error. A
// deferred Close is then for the other ways out.
func isHandled(c *blocking.Call) bool {
	recv := c.Operand(tensorapi.Recv)
	if len(recv) == 0 {
		return false
	}
	return c.In.Outermost().Contains(func(d *blocking.Call) bool {
		if d == c || d.Callee != c.Callee || types.ExprString(d.Expr.Fun) != types.ExprString(c.Expr.Fun) {
			return false
		}
		switch use := d.Value().Parent().Node().(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt:
			return false
		case *ast.AssignStmt:
			return !ignores(use)
		}
		return true
	})
}

// isAfterFailure reports whether c is where the program already has an error to tell: if err != nil { w.Close(); … }.
func isAfterFailure(c *blocking.Call) bool {
	info := c.In.Package.Info
	for cur := range c.Value().Enclosing((*ast.IfStmt)(nil)) {
		n := cur.Node().(*ast.IfStmt)
		if n.Body.Pos() > c.Expr.Pos() {
			continue
		}
		for e := range ast.Preorder(n.Cond) {
			if id, ok := e.(*ast.Ident); ok && info.TypeOf(id) != nil && syntax.IsError(info.TypeOf(id)) {
				return true
			}
		}
	}
	return false
}

// ignores reports whether n assigns one value to the blank identifier.
func ignores(n *ast.AssignStmt) bool {
	id := asIdent(n.Lhs[0])
	return len(n.Lhs) == 1 && len(n.Rhs) == 1 && id != nil && id.Name == "_"
}

// isOverwritten reports whether n sets a variable to the error of a call in a loop, and the next iteration sets it
// again before anybody has looked. The error of the last iteration is all that is left.
func isOverwritten(f *blocking.Func, n *ast.AssignStmt) bool {
	pkg := f.Package
	v := pkg.Local(n.Lhs[len(n.Lhs)-1])
	if v == nil || len(n.Rhs) != 1 || !syntax.IsError(v.Type()) {
		return false
	}
	for l := range pkg.LoopsAround(f, n.Pos()) {
		if l.Stmt == nil || l.Stmt.Pos() <= v.Pos() {
			return false
		}
		for use := range pkg.UsesOf(v, f) {
			if id := use.Node(); l.Stmt.Pos() <= id.Pos() && id.Pos() < l.Stmt.End() && id.Pos() != n.Lhs[len(n.Lhs)-1].Pos() {
				return false
			}
		}
		return true
	}
	return false
}

// returnsTensors reports whether f returns tensors. Failures of their work come out with them.
func returnsTensors(f *blocking.Func) bool {
	for v := range f.Sig.Results().Variables() {
		if f.Package.HoldsTensors(v.Type()) {
			return true
		}
	}
	return false
}

// hasError reports whether the last result of the callee is an error.
func hasError(c *blocking.Call) bool {
	results := c.In.Package.ResultsOf(c)
	return results.Len() > 0 && syntax.IsError(results.At(results.Len()-1).Type())
}

// returnsError reports whether a function with the signature sig returns an error as its last result.
func returnsError(sig *types.Signature) bool {
	results := sig.Results()
	return results.Len() > 0 && syntax.IsError(results.At(results.Len()-1).Type())
}
