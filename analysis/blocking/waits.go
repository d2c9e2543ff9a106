package blocking

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// What a call waits for. There are two kinds of waits. One learns a value: loss.Item(),
// fmt.Println(loss). The other only learns that something is done: y.Wait(), a barrier. Both are found
// in the same places: the call itself, the summary of its callee, and the functions that it gives to
// its callee.
//
//	loss.Item()                // Waits: Kind WaitRead, Operand loss
//	report(loss)               // Kind WaitCallee, Operand loss, Via the wait of report
//	slices.SortFunc(xs, byLoss) // Kind WaitCallee, Operand xs, Arg byLoss

// A WaitKind says how a site waits.
type WaitKind uint8

// The ways to wait.
const (
	WaitRead   WaitKind = iota // it reads a value
	WaitPrint                  // it formats a tensor
	WaitCallee                 // it calls a user's function that does either
)

// A CallWait is one thing that a call waits for to learn a value. A call may have several:
// fmt.Println(x, y) has two.
type CallWait struct {
	Kind WaitKind
	// Operand is the expression that is waited for, nil if the caller can't name it.
	Operand ast.Expr
	// Via is the wait of the callee that this one comes from, nil if the call itself waits.
	Via *Wait
	// Arg, if not nil, is a function among the arguments. It waits, because the callee calls it.
	Arg *FuncArg
	// Open reports whether the wait is in a method of the operand that the callee calls. Which method that is, the type
	// of the operand decides; the callee's code alone doesn't tell. Without an Operand it is a method of what a
	// function among the arguments returns.
	Open bool
	// Set reports whether it formats a value by a method of its own, such as String, and the method reads a field that
	// functions of its package set. The tensor may be pending, wherever the value comes from.
	Set bool
}

// Waits lists what a call waits for to learn a value: tensors that it reads or prints, what its callee
// waits for, and what the functions wait for that it gives to its callee, if the callee calls them
// before it returns.
func (pkg *Package) Waits(c *Call) []CallWait {
	var list []CallWait
	switch c.API.Kind {
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Save, tensorapi.Print:
		kind := WaitRead
		if c.API.Kind == tensorapi.Print {
			kind = WaitPrint
		}
		for _, e := range c.Operand(c.API.Arg) {
			if c.API.Kind == tensorapi.Save && !pkg.HoldsTensors(pkg.Info.TypeOf(e)) {
				e = nil // a model: what its cells hold has no name here
			}
			list = append(list, CallWait{Kind: kind, Operand: e})
		}
		return list
	case tensorapi.Unknown, tensorapi.Call:
	default:
		return nil
	}
	for i := range c.FuncArgs {
		list = append(list, handedWaits(pkg, c, &c.FuncArgs[i])...)
	}
	for _, e := range pkg.Printed(c) {
		list = append(list, CallWait{Kind: WaitPrint, Operand: e, Set: formatsPending(pkg, pkg.Info.TypeOf(e))})
	}
	list = append(list, methodWaits(pkg, c)...)
	return append(list, c.calleeWaits(c.Summary().Waits)...)
}

// Barriers lists what a call waits for only to know that it is done, as y.Wait() and asyncrt.WaitAll()
// do. A wait without an operand is one for all work.
func (pkg *Package) Barriers(c *Call) []CallWait {
	switch c.API.Kind {
	case tensorapi.Wait:
		var list []CallWait
		for _, e := range c.Operand(c.API.Arg) {
			list = append(list, CallWait{Operand: e})
		}
		return list
	case tensorapi.WaitAll:
		if c.Callee.Signature().Recv() == nil {
			return []CallWait{{}}
		}
	case tensorapi.Unknown, tensorapi.Call:
		return c.calleeWaits(c.Summary().Barriers)
	}
	return nil // WaitAll as a method: it waits for something of its own, like a backlog
}

// calleeWaits translates waits of c's callee: an operand of the callee is the expression that c passes for it.
func (c *Call) calleeWaits(of []Wait) []CallWait {
	var list []CallWait
	for i := range of {
		w := &of[i]
		if w.Operand == Own {
			list = append(list, CallWait{Kind: WaitCallee, Via: w})
			continue
		}
		for _, e := range c.Operand(w.Operand) {
			list = append(list, CallWait{Kind: WaitCallee, Operand: e, Via: w})
		}
	}
	return list
}

// handedWaits lists what c waits for because it gives arg to its callee, and the callee calls it, once
// or in a loop:
//
//	slices.SortFunc(list, func(a, b item) int { return cmp.Compare(a.score.Item(), b.score.Item()) })
//
// A function that the callee only stores, or starts on another goroutine, makes c wait for nothing.
func handedWaits(pkg *Package, c *Call, arg *FuncArg) []CallWait {
	when := c.CallsArg(arg.No)
	if when != tensorapi.Once && when != tensorapi.Loop {
		return nil
	}
	var list []CallWait
	s := arg.Summary()
	for i := range s.Waits {
		via := s.Waits[i]
		via.InLoop = via.InLoop || when == tensorapi.Loop
		pending, exprs := pkg.HandedOperand(c, arg, via.Operand)
		if pending {
			list = append(list, CallWait{Kind: WaitCallee, Via: &via, Arg: arg})
		}
		for _, e := range exprs {
			list = append(list, CallWait{Kind: WaitCallee, Operand: e, Via: &via, Arg: arg})
		}
	}
	return list
}

// HandedOperand says what operand op of the function arg is when c's callee calls it: a tensor that the
// callee has just enqueued (pending), one of the expressions that c passes, or both.
//
//	each(batches, func(b batch) { … }) // operand 0 of the literal: batches
func (pkg *Package) HandedOperand(c *Call, arg *FuncArg, op int) (pending bool, exprs []ast.Expr) {
	switch {
	case op == Own:
		return true, nil
	case op == tensorapi.Recv:
		if arg.recv != nil {
			exprs = []ast.Expr{arg.recv}
		}
		return false, exprs
	}
	cb := c.Callback(arg.No)
	if cb == nil {
		return false, elementsFor(pkg, c, arg, op)
	}
	if op >= len(cb.Args) {
		return false, nil
	}
	for from := tensorapi.Recv; from < 31; from++ {
		if cb.Args[op].From.Has(from) {
			exprs = append(exprs, c.Operand(from)...)
		}
	}
	return cb.Args[op].Pending, exprs
}

// elementsFor lists the arguments of c whose elements have the type of operand op of arg. It is for
// callees without facts, which are taken to call arg with each element.
//
//	lo.Map(tensors, func(t *tensor.Tensor, i int) float64 { return t.Item() }) // tensors
func elementsFor(pkg *Package, c *Call, arg *FuncArg, op int) []ast.Expr {
	sig, ok := pkg.Info.TypeOf(arg.Expr).Underlying().(*types.Signature)
	if !ok || op < 0 || op >= sig.Params().Len() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Expr.Args), func(e ast.Expr) bool {
		elem := syntax.ElementType(pkg.Info.TypeOf(e))
		return elem == nil || !types.Identical(elem, sig.Params().At(op).Type())
	})
}

// CallName is how messages call c: "loss.Item()", or "step" if the callee waits.
func (pkg *Package) CallName(c *Call, w CallWait) string {
	const long = 40
	if w.Arg != nil {
		return types.ExprString(w.Arg.Expr)
	}
	// The read itself: all of it, unless that is too long for a message.
	if w.Kind == WaitRead || w.Kind == WaitPrint && c.API.Kind == tensorapi.Print {
		if s := types.ExprString(c.Expr); len(s) <= long {
			return s
		}
		if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok && c.Callee != nil && c.Callee.Signature().Recv() != nil {
			return sel.Sel.Name
		}
	}
	return CalleeName(c)
}

// CalleeName is how messages call the callee of c: as it is written, or its name if that is long.
func CalleeName(c *Call) string {
	if s := types.ExprString(ast.Unparen(c.Expr.Fun)); len(s) <= 40 {
		return s
	}
	if c.Callee != nil {
		return c.Callee.Name()
	}
	if c.Target != nil {
		return c.Target.Name
	}
	return "the function"
}

// IsClock recognises calls that read a clock: time.Now, time.Since, time.Until.
func IsClock(c *Call) bool {
	fn := c.Callee
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "time" && (fn.Name() == "Now" || fn.Name() == "Since" || fn.Name() == "Until")
}

// TellsTime recognises calls by which a function shows that time is what it is about. These read a
// clock, call a function of the package that does, control a benchmark's timer, or ask how far the
// device has got.
func TellsTime(c *Call) bool {
	if IsClock(c) || c.API.Kind == tensorapi.Poll || c.Target != nil && c.Target.Outermost().Contains(IsClock) || c.Target == nil && c.sets().Clock {
		return true
	}
	fn := c.Callee
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "testing" && strings.HasSuffix(fn.Name(), "Timer")
}
