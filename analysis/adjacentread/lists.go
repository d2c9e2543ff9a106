package adjacentread

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
)

// Lists of tensors whose numbers are read one by one after all work was enqueued. The first read waits
// for most of the work, so the loop holds up nothing. But each read is a call into the runtime and, on
// a GPU, a copy of a few bytes; one read would do for all.

// A listRead is a read of a number of one element of a list of tensors in each iteration of a loop.
type listRead struct {
	Call *ast.CallExpr
	Name string // how messages call the call
	// List is what holds the tensors.
	List ast.Expr
	Loop *blocking.Loop // nil: the loop is in the function called
	// Joined reports whether all elements are read, and appended to those of the others.
	Joined bool
	// Numbers reports whether the elements are numbers such as tensor.F64, and no tensors.
	Numbers bool
}

// listReads lists the list reads in loops that enqueue nothing, in the order of the source.
func listReads(p *lint.Pass) []*listRead {
	atSite := make(map[*ast.CallExpr]bool)
	for _, s := range sites.Of(p) {
		atSite[s.Call] = true
	}
	var list []*listRead
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.Away || atSite[c.Expr] || f.IsBenchmark() {
				continue
			}
			if e := listReadOf(f.Package, c); e != nil {
				list = append(list, e)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *listRead) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// listReadOf returns c as a listRead, or nil.
func listReadOf(pkg *blocking.Package, c *blocking.Call) *listRead {
	if e := listReadInCallee(pkg, c); e != nil {
		return e
	}
	l := sites.Innermost(pkg, c)
	joined := isJoined(pkg, c)
	key := isKey(pkg, c, l)
	_, prints := c.Printer()
	if l == nil || !joined && !key && !prints && !isNumber(pkg.ResultsOf(c)) && !c.IsFunc("ItemOf") && !(c.API.Kind == tensorapi.Unknown && areNumbers(pkg.ResultsOf(c))) {
		return nil
	}
	if list := listOfCallee(pkg, c, l); list != nil && readsAll(pkg, c, l) {
		return &listRead{Call: c.Expr, Name: blocking.CalleeName(c), List: list, Loop: l}
	}
	for _, w := range pkg.Waits(c) {
		if w.Operand == nil {
			w.Operand = readOfReceiver(pkg, c)
		}
		number := w.Operand != nil && tensorapi.IsNumber(pkg.Info.TypeOf(w.Operand))
		if number && w.Kind != blocking.WaitPrint || w.Kind == blocking.WaitPrint && !key && !number || w.Operand == nil || w.Via != nil && (w.Via.InLoop || w.Via.Guarded || c.Dynamic) {
			continue
		}
		list := listAround(pkg, w.Operand, l, 0)
		if list == nil || !pkg.HoldsTensors(pkg.Info.TypeOf(list)) && !syntax.IsFunc(pkg.Info.TypeOf(list)) || key && !pkg.HoldsTensors(pkg.Info.TypeOf(w.Operand)) || isQueue(pkg, list) || pkg.IsHostList(list) || isWaitedFor(pkg, list, c, l) || !readsAll(pkg, c, l) {
			continue
		}
		return &listRead{Call: c.Expr, Name: pkg.CallName(c, w), List: list, Loop: l, Joined: joined, Numbers: number}
	}
	return nil
}

// readOfReceiver returns the receiver of c, if c's callee reads a tensor in a field of it, once and not computed anew;
// or nil.
//
//	func (p point) x() float64 { return p.at.At(0) }
func readOfReceiver(pkg *blocking.Package, c *blocking.Call) ast.Expr {
	f, recv := c.Target, c.Operand(tensorapi.Recv)
	if f == nil || f.Sig.Recv() == nil || len(recv) != 1 || f.Summary.Enqueues {
		return nil
	}
	for _, d := range f.Calls {
		if d.API.Kind != tensorapi.Read || d.API.Arg != tensorapi.Recv || d.Away || pkg.RunsInLoop(f, d) || pkg.GuardOf(f, d.Expr.Pos(), nil) != blocking.Always {
			continue
		}
		if sel, ok := ast.Unparen(d.Operand(tensorapi.Recv)[0]).(*ast.SelectorExpr); ok && pkg.Local(sel.X) == f.Sig.Recv() {
			return recv[0]
		}
	}
	return nil
}

// listOfCallee returns the list or map that c's callee reads one element of, or nil. The list is in a field of the
// callee's receiver, and c passes the counter or key of l as the index.
//
//	for name := range m.sums {
//		out[name] = m.value(name) // return m.sums[name].Item()
//	}
func listOfCallee(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) ast.Expr {
	f := c.Target
	if f == nil || c.Away || f.Sig.Recv() == nil {
		return nil
	}
	for _, d := range f.Calls {
		if d.API.Kind != tensorapi.Read || d.API.Arg != tensorapi.Recv || d.Away || len(d.Operand(tensorapi.Recv)) != 1 || pkg.RunsInLoop(f, d) {
			continue
		}
		x, ok := ast.Unparen(d.Operand(tensorapi.Recv)[0]).(*ast.IndexExpr)
		if !ok || pkg.GuardOf(f, d.Expr.Pos(), nil) != blocking.Always {
			continue
		}
		field, isField := ast.Unparen(x.X).(*ast.SelectorExpr)
		p, isParam := pkg.Params[pkg.Local(x.Index)]
		if !isField || !isParam || p.Of != f || p.Operand < 0 || pkg.Local(field.X) != f.Sig.Recv() || pkg.IsHostList(x.X) {
			continue
		}
		if given := c.Operand(p.Operand); len(given) == 1 && isIterated(pkg, given[0], l) {
			return x.X
		}
	}
	return nil
}

// isIterated reports whether e is the counter of l, or a key that l ranges over.
func isIterated(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	if pkg.Counts(e, l) {
		return true
	}
	s, ok := l.Stmt.(*ast.RangeStmt)
	d := pkg.Defs[pkg.Local(e)]
	return ok && len(d) == 1 && (d[0].Kind == blocking.DefElem || d[0].Kind == blocking.DefKey) && d[0].Value == s.X
}

// listReadInCallee returns c as a listRead, or nil, for a loop that is in c's callee. The callee reads
// the elements by a function that c passes, or by a method of a type that c chooses; so only c tells
// that it reads.
//
//	mean(losses)                                      // calls Item of each
//	apply(losses, func(t *tensor.Tensor) float64 { return t.Item() })
func listReadInCallee(pkg *blocking.Package, c *blocking.Call) *listRead {
	for _, w := range pkg.Waits(c) {
		if w.Operand == nil || w.Via == nil || !w.Via.InLoop || w.Via.Guarded || !w.Open && w.Arg == nil || c.Summary().Enqueues {
			continue
		}
		if w.Arg != nil && (!isNumber(pkg.Info.TypeOf(w.Arg.Expr).Underlying().(*types.Signature).Results()) || syntax.IsSorter(c.Callee)) {
			continue
		}
		if syntax.ElementType(pkg.Info.TypeOf(w.Operand)) == nil || pkg.IsHostList(w.Operand) || isWaitedFor(pkg, w.Operand, c, nil) ||
			sites.IsAllowed(c) || pkg.GuardOf(c.In, c.Expr.Pos(), nil) == blocking.Rarely || isFew(pkg, w.Operand) {
			continue
		}
		return &listRead{Call: c.Expr, Name: pkg.CallName(c, w), List: w.Operand}
	}
	return nil
}

// isKey reports whether c makes a text of what it is given, by printing or by a function that does, to have a key: of
// a map, or in a function that is called after one.
//
//	key := fmt.Sprint(x)
//	seen[key] = true
func isKey(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if _, prints := c.Printer(); l != nil && prints && isHashing(pkg, c.Expr) {
		return true
	}
	if l == nil || pkg.ResultsOf(c).Len() != 1 {
		return false
	}
	if basic, ok := pkg.ResultsOf(c).At(0).Type().Underlying().(*types.Basic); !ok || basic.Info()&types.IsString == 0 {
		return false
	}
	return isKeyName(c.In.Outermost().Name) || slices.ContainsFunc(sites.Uses(pkg, c, l), func(p sites.Place) bool {
		switch x := p.Cur.Parent().Node().(type) {
		case *ast.IndexExpr:
			return x.Index == p.Cur.Node() && syntax.IsMap(pkg.Info.TypeOf(x.X))
		case *ast.CallExpr:
			return isHashing(pkg, x)
		}
		return false
	})
}

// isKeyName reports whether a function makes keys, by its name.
func isKeyName(name string) bool {
	name = strings.ToLower(name)
	return name == "name" || name == "nameof" || slices.ContainsFunc([]string{"key", "keys", "hash", "digest", "checksum", "signature", "fingerprint"}, func(word string) bool {
		return strings.HasPrefix(name, word) || strings.HasSuffix(name, word)
	})
}

// isHashing reports whether the call adds to a hash.
func isHashing(pkg *blocking.Package, call *ast.CallExpr) bool {
	operands := call.Args
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok {
		operands = append([]ast.Expr{sel.X}, operands...)
	}
	return slices.ContainsFunc(operands, func(e ast.Expr) bool {
		t := pkg.Info.TypeOf(e)
		return t != nil && syntax.HasMethod(pkg.Pass.Pkg, t, []string{"Sum32", "Sum64", "BlockSize"})
	})
}

// isQueue reports whether the list is one from whose front the package takes elements: what is left in it is little.
func isQueue(pkg *blocking.Package, list ast.Expr) bool {
	v := pkg.Variable(list)
	return v != nil && slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
		s, ok := ast.Unparen(syntax.OrNil(d.Value)).(*ast.SliceExpr)
		return ok && s.Low != nil && pkg.Variable(s.X) == v
	})
}

// isFew reports whether a list has no more elements than a small loop has iterations.
func isFew(pkg *blocking.Package, list ast.Expr) bool {
	return pkg.Trips(list) <= blocking.MaxTrips
}

// isNumber reports whether results are one number, perhaps with an error. Other results may differ in
// size, so the tensors can't be stacked.
func isNumber(results *types.Tuple) bool {
	if results.Len() == 0 || results.Len() == 2 && !syntax.IsError(results.At(1).Type()) || results.Len() > 2 {
		return false
	}
	return syntax.IsNumeric(results.At(0).Type())
}

// readsAll reports whether most iterations of l come to c, and the value is used. No iteration may
// enqueue anything, wait for anything else, or leave the loop because of the value.
func readsAll(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	if pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || sites.IsAllowed(c) || sites.Receives(pkg, l) || sites.IsPaced(pkg, l) ||
		pkg.IsSpawned(c.In.Owner(), 0) ||
		pkg.Any(l, func(d *blocking.Call) bool {
			return d.Enqueues() || d.Mutates() || sites.IsOutside(d) || sites.IsStreamed(d) || d.API.Kind == tensorapi.Wait
		}) {
		return false
	}
	places := sites.Uses(pkg, c, l)
	_, prints := c.Printer()
	return (len(places) > 0 || prints || isHashing(pkg, c.Expr)) && !slices.ContainsFunc(places, func(p sites.Place) bool { return p.Use == sites.Decides && !p.Alarm })
}

// areNumbers reports whether results are a few numbers, as the coordinates of a point.
func areNumbers(results *types.Tuple) bool {
	for v := range results.Variables() {
		if !syntax.IsNumeric(v.Type()) {
			return false
		}
	}
	return 0 < results.Len() && results.Len() <= 4
}

// isJoined reports whether c reads a list that is appended to another: append(all, c...).
func isJoined(pkg *blocking.Package, c *blocking.Call) bool {
	call, ok := c.Value().Parent().Node().(*ast.CallExpr)
	if !ok || !call.Ellipsis.IsValid() || len(call.Args) != 2 || !pkg.Info.Types[call.Fun].IsBuiltin() {
		return false
	}
	return c.API.Kind == tensorapi.Read && ast.Unparen(call.Args[1]) == c.Expr
}

// listAround returns the list that e is an element of, or a part of an element, if each iteration of l
// has another element; or nil.
func listAround(pkg *blocking.Package, e ast.Expr, l *blocking.Loop, depth int) ast.Expr {
	if depth > 6 {
		return nil
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.SelectorExpr:
		if sel := pkg.Info.Selections[e]; sel != nil && sel.Kind() == types.FieldVal {
			return listAround(pkg, e.X, l, depth+1)
		}
	case *ast.StarExpr:
		return listAround(pkg, e.X, l, depth+1)
	case *ast.CallExpr:
		if c := pkg.Calls[e]; c != nil && c.API.Kind == tensorapi.View && c.API.Arg == tensorapi.Recv {
			return listAround(pkg, c.Operand(tensorapi.Recv)[0], l, depth+1)
		}
	case *ast.IndexExpr:
		if !pkg.Varies(e.Index, l) && pkg.Varies(e.X, l) {
			return listAround(pkg, e.X, l, depth+1) // the same part of each element
		}
		if syntax.ElementType(pkg.Info.TypeOf(e.X)) == nil || pkg.Varies(e.X, l) {
			return nil
		}
		if counted, ok := sites.CountsIn(pkg, e.Index, l, 0); ok && counted || pkg.IsOperand(pkg.Local(e.Index), l) || isKeyOf(pkg, e, l) {
			return e.X
		}
	case *ast.Ident:
		return listOfVariable(pkg, e, l, depth)
	}
	return nil
}

// isKeyOf reports whether e is an element of a map, with a key that l ranges over.
func isKeyOf(pkg *blocking.Package, e *ast.IndexExpr, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || !syntax.IsMap(pkg.Info.TypeOf(e.X)) {
		return false
	}
	d := pkg.Defs[pkg.Local(e.Index)]
	return len(d) == 1 && (d[0].Kind == blocking.DefElem || d[0].Kind == blocking.DefKey) && d[0].Value == s.X
}

// listOfVariable is listAround for a variable.
func listOfVariable(pkg *blocking.Package, e *ast.Ident, l *blocking.Loop, depth int) ast.Expr {
	v := pkg.Local(e)
	if v == nil {
		return nil
	}
	if pkg.IsOperand(v, l) {
		return iteratedBy(pkg, l, v)
	}
	d := pkg.Defs[v]
	if len(d) != 1 || !pkg.Contains(l, d[0].In, d[0].Pos) {
		return nil
	}
	s, _ := l.Stmt.(*ast.RangeStmt)
	switch {
	case d[0].Kind == blocking.DefValue && d[0].Index == 0:
		return listAround(pkg, d[0].Value, l, depth+1)
	case s == nil || s.X != d[0].Value:
		return nil
	case d[0].Kind == blocking.DefElem, d[0].Kind == blocking.DefKey && syntax.IsFunc(pkg.Info.TypeOf(s.X)):
		return s.X
	}
	return nil
}

// iteratedBy returns the list whose elements l's literal gets as v, or nil. The list is an argument of
// the call that also gets the literal.
//
//	slices.IndexFunc(losses, func(t *tensor.Tensor) bool { … })
func iteratedBy(pkg *blocking.Package, l *blocking.Loop, v *types.Var) ast.Expr {
	c := pkg.Calls[l.Func.ArgOf]
	if c == nil {
		return nil
	}
	for _, e := range c.Expr.Args {
		if types.Identical(blocking.Iterated(pkg.Info.TypeOf(e)), v.Type()) {
			return e
		}
	}
	return nil
}

// isWaitedFor reports whether c's function has waited for all of the list before l, or before c if l is nil. A wait
// for all work doesn't count where the function asks for its error: it is for that.
func isWaitedFor(pkg *blocking.Package, list ast.Expr, c *blocking.Call, l *blocking.Loop) bool {
	text := types.ExprString(list)
	return slices.ContainsFunc(c.In.Calls, func(d *blocking.Call) bool {
		if d.Expr.End() > c.Expr.Pos() || l != nil && pkg.Contains(l, d.In, d.Expr.Pos()) {
			return false
		}
		_, plain := d.Value().Parent().Node().(*ast.ExprStmt)
		return d.API.Kind == tensorapi.WaitAll && plain || d.API.Kind == tensorapi.Wait && slices.ContainsFunc(d.Operand(d.API.Arg), func(e ast.Expr) bool {
			return types.ExprString(e) == text
		})
	})
}
