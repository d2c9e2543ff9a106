// Package rows takes rows together: where a loop reads, or computes, one row of a tensor after the other, one operation
// for all of them does.
//
//	for i := range n {                       sumRows := later.Rows(n, func(row asyncrt.RowOf) *tensor.Tensor {
//		fmt.Println(x.Row(i).Sum().Item())   	return row(x).Sum()
//	}                                        })
//	                                         later.Do(func() { for i := range n { fmt.Println(sumRows.Item(i)) } })
//
// [Together] is for values that are read, before it is planned what comes later. [Keep] is for tensors that nobody
// looks at, after that. Both have to know what an expression has to do with the rows of a loop: loops.go says which row
// an iteration is about, rows.go and keep.go which expressions are of it alone.
package rows

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/plan"
	"golang.org/x/tools/go/types/typeutil"
)

// A Part is a rewrite of reads of rows.
type Part struct {
	*plan.Rewrite

	// takes reports whether m, a read in a loop over rows, is taken together with the other rows.
	takes func(b *batcher, m *match) bool
}

// WholeSlice is read-rows: a loop looks at one row of a tensor after the other. The
// tensor is read once.
//
//	for j := range n {              rows := later.Rows(n, func(row asyncrt.RowOf) *tensor.Tensor { return row(t) })
//		total += t.Row(j).Item()    later.Do(func() {
//	}                               	for j := range n {
//	                                		total += rows.Item(j)
//	                                	}
//	                                })
var WholeSlice = &Part{
	Rewrite: &plan.Rewrite{
		Name: "read-rows",
		Was:  "R8",
		Code: plan.ReadTogether,
		Does: "is read with the other rows, once",
	},
	takes: isSlice,
}

// Batched is batch-rows: a loop computes something of one row after the other, and
// looks at it. It is computed for all rows at once, if each operation has a batching rule.
//
//	for j := range labels {                          best := later.Rows(len(labels), func(row asyncrt.RowOf) *tensor.Tensor {
//		if x.Row(j).ArgMax().ItemInt() == labels[j] {    	return row(x).ArgMax()
//			correct++                                    })
//		}                                                later.Do(func() {
//	}                                                	for j := range labels {
//	                                                 		if best.ItemInt(j) == labels[j] {
//	                                                 			correct++
//	                                                 		}
//	                                                 	}
//	                                                 })
//
// The runtime computes a row alone, in its place, whenever it can't be computed with others. So
// nothing has to be proved of the number of rows, of shapes and devices, and of failures. What has to be
// proved is that the rows depend on nothing that the loop, or what comes before the entry has run, changes.
//
// Several reads beside each other need nothing: those of one entry arrive together.
var Batched = &Part{
	Rewrite: &plan.Rewrite{
		Name: "batch-rows",
		Was:  "R15",
		Code: plan.ComputedTogether,
		Does: "is computed for all rows at once",
	},
	takes: isComputed,
}

// Together has what loop reads of rows, and what these are made of, taken by parts, if that is all that it enqueues. It
// reports whether it is. What is taken is no part of the loop then, but has to stay as it is until the loop has run.
func Together(f *plan.Function, loop *plan.Stmt, parts []*Part) bool {
	b := newBatcher(f, loop)
	if b == nil {
		return false
	}
	b.parts = parts
	if !b.match() {
		return false
	}
	b.apply()
	return true
}

// Made returns the rewrite by which r is taken together with other rows, or nil.
func Made(r *plan.Read) *plan.Rewrite {
	switch {
	case r.Rows == nil:
		return nil
	case r.Rows.Only:
		return WholeSlice.Rewrite
	}
	return Batched.Rewrite
}

// computes reports whether what has the effects uses only computes, with operations or on the host.
func computes(uses *plan.Effects) bool {
	return cmp.Or(uses.Waits, uses.Barrier, uses.Clock, uses.Polls, uses.Stamps, uses.HandsOut) == nil && len(uses.Writes) == 0
}

// A batcher looks at one loop.
type batcher struct {
	f     *plan.Function
	parts []*Part
	loop  *plan.Stmt
	index *ast.Ident
	count ast.Expr
	len   bool
	total *plan.Effects

	defs  map[*types.Var]*plan.Stmt // x := …, for variables that are never assigned again
	found []*match
	fixed []*plan.Read
}

// A match is a Read and what was found out about it.
type match struct {
	read  *plan.Read
	calls []*ast.CallExpr
	defs  []*plan.Stmt
	fixed bool          // the tensor is the same for all rows
	ops   int           // calls but those of Row
	uses  *plan.Effects // of the operands that are the same for all rows
}

// match reports whether all that the loop enqueues is for reads of rows.
func (b *batcher) match() bool {
	if plan.Leaves(b.loop.Node) != nil {
		return false
	}
	for s := range b.loop.All {
		if v := b.definition(s); v != nil {
			b.defs[v] = s
		}
	}
	_, reads := b.loop.Total()
	for _, r := range reads {
		if !b.read(r) {
			return false
		}
	}
	if len(b.found) == 0 && len(b.fixed) == 0 {
		return false
	}
	var defs []*plan.Stmt
	for _, m := range b.found {
		for _, d := range m.defs {
			if !slices.Contains(defs, d) {
				defs = append(defs, d)
			}
		}
	}
	for s := range b.loop.All {
		if s.Head.Enqueues != nil && !slices.Contains(defs, s) {
			return false
		}
	}
	return !slices.ContainsFunc(defs, func(d *plan.Stmt) bool { return !b.absorbs(d, defs) })
}

// definition returns the variable that s defines, once and for all and alone, or nil.
func (b *batcher) definition(s *plan.Stmt) *types.Var {
	n, ok := s.Node.(*ast.AssignStmt)
	if !ok || n.Tok != token.DEFINE || len(n.Lhs) != 1 || len(n.Rhs) != 1 || len(s.Reads) > 0 {
		return nil
	}
	v, ok := b.f.Info.Defs[n.Lhs[0].(*ast.Ident)].(*types.Var)
	if !ok || !b.isLazy(v.Type()) || b.isAssigned(v) || b.f.Visible(v) {
		return nil
	}
	return v
}

// isLazy reports whether values of type t may be results of operations.
func (b *batcher) isLazy(t types.Type) bool { return b.f.Analysis.API.IsTensor(t) }

// read reports whether r can stay a read in the loop when that is one unit.
func (b *batcher) read(r *plan.Read) bool {
	if r.Lift != nil || r.Number != "" {
		return false
	}
	if r.Plain != nil && !b.declares(r.Plain) {
		return !b.total.Sets(r.Plain)
	}
	m := &match{read: r, uses: &plan.Effects{}}
	if r.Plain == nil && !b.mentionsLoop(r.Operand) && b.f.CannotFail(r.Operand) {
		e := b.f.Effects(r.Operand)
		if m.fixed = true; !e.OnlyReads() || e.Needs(b.total) || !b.together(m) {
			return false
		}
		b.fixed = append(b.fixed, r)
		return true
	}
	if !b.chain(m, r.Operand) || len(m.calls) == 0 || !b.isIndexAt(r.Expr) {
		return false
	}
	if !b.together(m) {
		return false
	}
	b.found = append(b.found, m)
	return true
}

// together reports whether a part takes m together with the other rows.
func (b *batcher) together(m *match) bool {
	return slices.ContainsFunc(b.parts, func(p *Part) bool { return p.takes(b, m) })
}

// isSlice reports whether m is a row of a tensor, or the same in all iterations.
func isSlice(_ *batcher, m *match) bool { return m.fixed || m.ops == 0 }

// isComputed reports whether m is computed of a row, in each iteration: else it might be computed for many rows and
// needed for few.
func isComputed(b *batcher, m *match) bool { return !isSlice(b, m) && b.always(m.read) }

// chain reports whether e is a tensor, or a number on the device, made by operations with batching rules of rows
// and of what is the same for all rows.
func (b *batcher) chain(m *match, e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		v := b.f.Variable(e)
		d := b.defs[v]
		if v == nil || d == nil {
			return b.same(m, e)
		}
		if slices.Contains(m.defs, d) {
			return true
		}
		if !b.chain(m, d.Node.(*ast.AssignStmt).Rhs[0]) {
			return false
		}
		m.defs = append(m.defs, d) // after those that it needs
		return true
	case *ast.CallExpr:
		fn, ok := typeutil.Callee(b.f.Info, e).(*types.Func)
		if !ok {
			return b.same(m, e)
		}
		if b.mentionsLoop(e) && b.helper(m, e, fn) {
			return true
		}
		api, ok := b.f.Analysis.API.Lookup(fn)
		if !ok || api.Batch == tensorapi.Alone || api.Kind != tensorapi.Op && api.Kind != tensorapi.View || e.Ellipsis.IsValid() {
			return b.same(m, e)
		}
		return b.operation(m, e, fn)
	}
	return b.same(m, e)
}

// operation is chain for the call of an operation.
func (b *batcher) operation(m *match, call *ast.CallExpr, fn *types.Func) bool {
	if fn.Signature().Recv() != nil {
		sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
		if !ok || b.f.Info.Types[sel.X].IsType() {
			return false
		}
		if b.isRow(call, fn) {
			if b.same(m, sel.X) {
				m.calls = append(m.calls, call)
				return true
			}
			before, ops := len(m.calls), m.ops
			if !b.chain(m, sel.X) || len(m.calls) > before { // a row of a row
				return false
			}
			m.calls, m.ops = append(m.calls, call), ops
			return true
		}
		if !b.chain(m, sel.X) {
			return false
		}
	}
	m.ops++
	for _, arg := range call.Args {
		if !b.chain(m, arg) {
			return false
		}
	}
	return true
}

// helper is chain for the call of a function of the program that does nothing but operations on what it is given.
func (b *batcher) helper(m *match, call *ast.CallExpr, fn *types.Func) bool {
	if call.Ellipsis.IsValid() || !b.onlyOperates(call, b.f, make(map[*types.Func]bool)) {
		return false
	}
	uses := b.f.Effects(call)
	if !computes(uses) {
		return false
	}
	// operations are said to read cells
	uses = uses.ReadsBut(func(l plan.Loc) bool { return l.Kind == plan.Cells || b.isOwn(l) })
	if uses.Needs(b.total) {
		return false
	}
	operands := call.Args
	if sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && fn.Signature().Recv() != nil {
		operands = append(slices.Clip(operands), sel.X)
	}
	calls, defs := len(m.calls), len(m.defs)
	for _, x := range operands {
		if !b.chain(m, x) {
			m.calls, m.defs = m.calls[:calls], m.defs[:defs]
			return false
		}
	}
	m.uses.Add(uses)
	m.ops++
	return true
}

// onlyOperates reports whether call, in f, calls a function of the program which, with those that
// it calls, makes tensors of tensors and does nothing else on a device: it takes nothing from
// cells.
func (b *batcher) onlyOperates(call *ast.CallExpr, f *plan.Function, seen map[*types.Func]bool) bool {
	fn, api, kind := f.Callee(call)
	switch {
	case kind == plan.CallsBuiltin, kind == plan.CallsTotal, kind == plan.CallsStandard, f.Info.Types[call.Fun].IsType():
		return len(seen) > 0
	case kind == plan.CallsLibrary:
		return len(seen) > 0 && (api.Kind == tensorapi.Meta || api.Batch != tensorapi.Alone && (api.Kind == tensorapi.Op || api.Kind == tensorapi.View))
	case kind != plan.CallsFunction:
		return false
	case seen[fn]:
		return true
	}
	seen[fn] = true
	body, ok := b.f.Analysis.Program.Body(fn)
	if !ok {
		return false
	}
	only, inner := true, b.f.Analysis.Function(body.Pkg, body.Decl)
	ast.Inspect(body.Decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			only = false
		case *ast.CallExpr:
			only = only && b.onlyOperates(n, inner, seen)
		}
		return only
	})
	return only
}

// isOwn reports whether l is a variable of the loop.
func (b *batcher) isOwn(l plan.Loc) bool {
	v, ok := l.Obj.(*types.Var)
	return ok && (l.Kind == plan.Var || l.Kind == plan.Own) && b.declares(v)
}

// isRow reports whether a call takes the row of a tensor that the index says.
func (b *batcher) isRow(call *ast.CallExpr, fn *types.Func) bool {
	return fn.Name() == "Row" && len(call.Args) == 1 && b.f.Analysis.API.IsTensor(fn.Signature().Recv().Type()) &&
		b.f.Variable(call.Args[0]) == b.f.Variable(b.index)
}

// same reports whether e is the same for all rows, and evaluating it does nothing else.
func (b *batcher) same(m *match, e ast.Expr) bool {
	if b.mentionsLoop(e) {
		return false
	}
	uses := b.f.Effects(e)
	if !uses.OnlyReads() || uses.Needs(b.total) {
		return false
	}
	m.uses.Add(uses)
	return true
}

// absorbs reports whether d, one of defs, can go into the functions of one row: nothing else uses its variable, and
// the next statement that is not one of defs begins with what needs all of those before it. So
// if that function runs for one row alone, it does it where the program does.
func (b *batcher) absorbs(d *plan.Stmt, defs []*plan.Stmt) bool {
	v := b.f.Info.Defs[d.Node.(*ast.AssignStmt).Lhs[0].(*ast.Ident)]
	for id, obj := range b.f.Info.Uses {
		if obj == v && !b.isInside(id, defs) {
			return false
		}
	}
	list := d.Parent.Bodies[slices.IndexFunc(d.Parent.Bodies, func(body []*plan.Stmt) bool { return slices.Contains(body, d) })]
	i := slices.Index(list, d)
	end := i
	for end < len(list) && slices.Contains(defs, list[end]) {
		end++
	}
	if end == len(list) {
		return false
	}
	next := list[end]
	for _, m := range b.found {
		if slices.Contains(next.Reads, m.read) && slices.Contains(m.defs, d) && b.begins(m.read.Expr, next) {
			return true
		}
	}
	return false
}

// isInside reports whether id is in one of defs or in what is read.
func (b *batcher) isInside(id *ast.Ident, defs []*plan.Stmt) bool {
	within := func(n ast.Node) bool { return n.Pos() <= id.Pos() && id.End() <= n.End() }
	return slices.ContainsFunc(defs, func(d *plan.Stmt) bool { return within(d.Node) }) ||
		slices.ContainsFunc(b.found, func(m *match) bool { return within(m.read.Operand) })
}

// begins reports whether s evaluates x before anything in it can fail or do something.
func (b *batcher) begins(x ast.Expr, s *plan.Stmt) bool {
	if !b.f.AlwaysFirst(x, s.Inner()) {
		return false
	}
	var target ast.Node // of an assignment, which comes last
	if n, ok := s.Inner().(*ast.AssignStmt); ok && len(n.Lhs) == 1 {
		if ix, ok := ast.Unparen(n.Lhs[0]).(*ast.IndexExpr); ok && b.f.Variable(ix.X) != nil && b.f.Variable(ix.Index) != nil && n.Tok == token.ASSIGN {
			target = n.Lhs[0]
		}
	}
	harmless := true
	ast.Inspect(s.Node, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if n == target && n != nil || n != nil && n.Pos() >= x.Pos() {
			return false
		}
		if !ok || e.End() > x.Pos() {
			return true
		}
		switch e := e.(type) {
		case *ast.IndexExpr:
			harmless = harmless && b.isElement(e)
			return false
		case *ast.CallExpr:
			harmless = harmless && (b.f.Info.Types[e.Fun].IsType() || b.f.CannotFail(e))
		case *ast.StarExpr, *ast.SliceExpr, *ast.TypeAssertExpr, *ast.FuncLit:
			harmless = false
		case *ast.SelectorExpr:
			harmless = harmless && b.f.CannotFail(e)
			return false
		case *ast.BinaryExpr:
			harmless = harmless && e.Op != token.QUO && e.Op != token.REM && e.Op != token.SHL && e.Op != token.SHR
		}
		return harmless
	})
	return harmless
}

// apply changes the tree of the loop.
func (b *batcher) apply() {
	count := b.f.Effects(b.count)
	for _, r := range b.fixed {
		r.Fixed = true
		b.loop.Head.Add(r.Effects)
	}
	for _, m := range b.found {
		r := m.read
		enqueues := plan.Cause{Pos: r.Operand.Pos(), Text: "computes rows of tensors"}
		slices.SortFunc(m.defs, func(x, y *plan.Stmt) int { return int(x.Node.Pos() - y.Node.Pos()) })
		r.Rows = &plan.Rows{Loop: b.loop, Index: b.index, Count: b.count, Len: b.len, Calls: m.calls, Defs: m.defs, Only: m.ops == 0}
		r.Plain = nil
		r.Effects = &plan.Effects{Enqueues: &enqueues}
		r.Effects.Add(m.uses)
		r.Effects.Add(count)
		b.loop.Head.Add(m.uses)
		for _, d := range m.defs {
			d.Absorb()
		}
	}
}
