package extrawait

import (
	_ "embed"
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/sites"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

//go:embed doc.go
var doc string

// Analyzer is rule AT009.
var Analyzer = rule.Analyzer()

var rule = &lint.Rule{ID: "AT009", Package: "extrawait", Doc: doc, Infos: true, Fixes: true, Requires: []*analysis.Analyzer{sites.Analyzer}, Check: check}

func check(p *lint.Pass) {
	for _, b := range barriers(p) {
		if b.Unseen {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     b.Call.Pos(),
				End:     b.Call.End(),
				Message: b.Name + " computes something that nobody has, and waits for it; wait for what is used",
			})
			continue
		}
		if b.Handed {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     b.Call.Pos(),
				End:     b.Call.End(),
				Message: b.Name + " drops the error, and who gets the tensor waits when it is read; return the error, or don't wait",
			})
			continue
		}
		if b.List != nil {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:     b.Call.Pos(),
				End:     b.Call.End(),
				Message: b.Name + " waits for one tensor of " + types.ExprString(b.List) + " at a time; tensor.Wait(" + types.ExprString(b.List) + "...) waits for all",
			})
			continue
		}
		if b.Read != nil {
			p.Report(lint.Warning, analysis.Diagnostic{
				Pos:            b.Call.Pos(),
				End:            b.Call.End(),
				Message:        b.Name + " is not needed: what follows waits for the same",
				Related:        []analysis.RelatedInformation{{Pos: b.Read.Pos(), End: b.Read.End(), Message: "this waits"}},
				SuggestedFixes: remove(p, b),
			})
			continue
		}
		severity := lint.Warning
		if b.Outside {
			severity = lint.Info
		}
		p.Report(severity, analysis.Diagnostic{
			Pos:     b.Call.Pos(),
			End:     b.Call.End(),
			Message: "wait in loop: " + b.Name + " waits for the device in each iteration" + way(b.Chain) + remedy(b),
			Related: b.Loop.Related(),
		})
	}
}

// remove deletes the line of a wait, if there is nothing else on it.
func remove(p *lint.Pass, b *barrier) []analysis.SuggestedFix {
	if b.All {
		return nil // other goroutines may enqueue, too
	}
	stmt := b.Cur.Parent().Node()
	start, end, ok := p.Line(stmt)
	if !ok {
		return nil
	}
	return []analysis.SuggestedFix{{
		Message:   "Remove the wait",
		TextEdits: []analysis.TextEdit{{Pos: start, End: end}},
	}}
}

// way says how a function comes to wait.
func way(chain []blocking.Link) string {
	if len(chain) == 0 {
		return ""
	}
	var links []string
	for _, l := range chain {
		links = append(links, l.Call+" at "+l.Pos)
	}
	return " (" + strings.Join(links, ", then ") + ")"
}

// remedy says what to do instead, and what makes a wait for each step superfluous.
func remedy(b *barrier) string {
	switch {
	case b.Flush:
		return "; flush once after the loop, as each value is used or written when it has arrived"
	case b.Timer:
		return "; keep the timers, and ask them after the loop"
	case b.Trains:
		return "; wait once after the loop, as the runtime bounds how far it runs ahead"
	}
	return "; wait once after the loop"
}

// A barrier is a call that waits and gives the program nothing for it.
type barrier struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	Name string           // how messages call the call
	// Loop is the loop whose iterations each enqueue something and wait for it by this call.
	Loop *blocking.Loop
	// Read is set if there is no Loop: it is the call right after this one that waits for the same
	// tensor.
	Read *ast.CallExpr
	// Chain leads from the function called to the wait, if it is in that.
	Chain []blocking.Link
	// Outside reports whether the loop also waits for the world outside.
	Outside bool
	// Trains reports whether the loop trains, and nothing else in it waits. Such a wait is there to
	// bound the queue, which the library does by itself.
	Trains bool
	// Timer reports whether the call asks a Timer, which can be asked later, and Flush whether it flushes a backlog.
	Timer, Flush bool
	// All reports whether the call waits for all work there is.
	All bool
	// List is what holds the tensors for which a loop waits one after the other, and does nothing else.
	List ast.Expr
	// Unseen reports whether the call waits for a tensor that the statement computes, and which is gone then.
	Unseen bool
	// Handed reports whether the call drops its error right before its function returns the tensor.
	Handed bool
}

// barriers lists the waits that serialise a loop and the waits that a read follows, in the order of the
// source.
func barriers(p *lint.Pass) []*barrier {
	var list []*barrier
	for _, f := range p.Funcs {
		for _, c := range f.Calls {
			if c.Away {
				continue
			}
			if b := barrierOf(p, c); b != nil {
				list = append(list, b)
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *barrier) int { return int(x.Call.Pos() - y.Call.Pos()) })
	return list
}

// barrierOf returns the one that c is, or nil.
func barrierOf(p *lint.Pass, c *blocking.Call) *barrier {
	pkg := p.Package
	if read := readAfter(pkg, c); read != nil {
		return &barrier{Call: c.Expr, Cur: c.Cur, Name: pkg.CallName(c, blocking.CallWait{Kind: blocking.WaitRead}), Read: read.Expr}
	}
	if read := readAfterIdle(pkg, c); read != nil {
		return &barrier{Call: c.Expr, Cur: c.Cur, Name: types.ExprString(c.Expr), Read: read.Expr, All: true}
	}
	if isUnseen(pkg, c) {
		return &barrier{Call: c.Expr, Cur: c.Cur, Name: pkg.CallName(c, blocking.CallWait{Kind: blocking.WaitRead}), Unseen: true}
	}
	if isHanded(pkg, c) {
		return &barrier{Call: c.Expr, Cur: c.Cur, Name: pkg.CallName(c, blocking.CallWait{Kind: blocking.WaitRead}), Handed: true}
	}
	if list := waitedList(pkg, c); list != nil {
		return &barrier{Call: c.Expr, Cur: c.Cur, Name: pkg.CallName(c, blocking.CallWait{Kind: blocking.WaitRead}), List: list}
	}
	if l := flushed(pkg, c); l != nil {
		return &barrier{Call: c.Expr, Cur: c.Cur, Loop: l, Name: types.ExprString(c.Expr), Flush: true}
	}
	l, w := sites.Serialised(pkg, c)
	if l == nil {
		return nil
	}
	b := &barrier{
		Call: c.Expr, Cur: c.Cur, Loop: l, Name: pkg.CallName(c, w),
		Outside: pkg.Any(l, sites.IsOutside) || warming.MatchString(c.In.Outermost().Name) && !pkg.Any(l, (*blocking.Call).Mutates) || sites.IsAllowed(c) || sites.TakesData(pkg, l) && !pkg.Any(l, (*blocking.Call).Mutates) && !isPassedOn(pkg, c, w.Operand, l),
		Trains:  pkg.Any(l, (*blocking.Call).Mutates),
		Timer:   sites.IsTimerWait(c),
	}
	if w.Via != nil {
		b.Chain = w.Via.Chain
	}
	if (b.Trains && !looksAtError(c) || w.Via != nil) && waitsAfter(p, c, w.Operand, l) {
		return nil // that is the finding
	}
	return b
}

// isPassedOn reports whether c drops its error, and l sends the tensor e that c has waited for to somebody who can wait
// for it as well.
func isPassedOn(pkg *blocking.Package, c *blocking.Call, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(syntax.OrNil(e))
	if _, ok := dropped(pkg, c); !ok || v == nil || l.Stmt == nil {
		return false
	}
	for cur := range l.Func.Cur.Preorder((*ast.SendStmt)(nil)) {
		n := cur.Node().(*ast.SendStmt)
		if l.Stmt.Pos() <= n.Pos() && n.Pos() < l.Stmt.End() && pkg.HoldsTensors(pkg.Info.TypeOf(n.Value)) && pkg.Mentions(n.Value, v) {
			return true
		}
	}
	return false
}

// looksAtError reports whether the program does something with the error that c returns.
func looksAtError(c *blocking.Call) bool {
	assign, ok := c.Value().Parent().Node().(*ast.AssignStmt)
	return ok && !dropsError(assign)
}

// dropsError reports whether n assigns to the blank identifier alone.
func dropsError(n *ast.AssignStmt) bool {
	return !slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool {
		id, ok := e.(*ast.Ident)
		return !ok || id.Name != "_"
	})
}

// waitedList returns the slice over which a loop ranges that does nothing but wait for each tensor of it by c, leave if
// one has failed, and count; or nil.
//
//	for _, y := range ys {
//		if err := y.Wait(); err != nil {
//			return err
//		}
//	}
func waitedList(pkg *blocking.Package, c *blocking.Call) ast.Expr {
	if c.API.Kind != tensorapi.Wait || c.API.Arg != tensorapi.Recv || c.Lib != tensorapi.Ours() || len(c.Expr.Args) > 0 || c.In.IsTest() || c.In.Outermost().Contains(blocking.TellsTime) {
		return nil
	}
	for cur := range c.Cur.Enclosing((*ast.RangeStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := cur.Node().(*ast.RangeStmt)
		if !ok || !syntax.IsIdent(n.X) || n.Value == nil || !blocking.IsTensors(pkg.Info.TypeOf(n.X)) || pkg.Variable(n.Value) == nil || pkg.Local(c.Operand(tensorapi.Recv)[0]) != pkg.Variable(n.Value) {
			return nil
		}
		if _, ok := pkg.Info.TypeOf(n.X).Underlying().(*types.Slice); !ok {
			return nil
		}
		for _, stmt := range n.Body.List {
			switch stmt := stmt.(type) {
			case *ast.IncDecStmt:
			case *ast.IfStmt:
				assign, ok := stmt.Init.(*ast.AssignStmt)
				if !ok || len(assign.Rhs) != 1 || ast.Unparen(assign.Rhs[0]) != c.Expr || !pkg.IsFailure(stmt.Cond, true) || stmt.Else != nil || len(stmt.Body.List) != 1 {
					return nil
				}
				if _, ok := stmt.Body.List[0].(*ast.ReturnStmt); !ok {
					return nil
				}
			default:
				return nil
			}
		}
		return n.X
	}
	return nil
}

// warming matches the names of functions that compute something for the time it takes, before it is needed.
var warming = regexp.MustCompile(`(^w|W|[Pp]rew)arm|[Pp]reheat`)

// isUnseen reports whether c waits for the result of an operation that nobody has, and drops the error:
//
//	weights.Sum().Wait()
//
// It may be there for the time it takes, to warm up a device or to measure; a model is run for that. In a loop, other
// findings speak of the wait.
func isUnseen(pkg *blocking.Package, c *blocking.Call) bool {
	if c.API.Kind != tensorapi.Wait || c.API.Arg != tensorapi.Recv || c.Lib != tensorapi.Ours() || len(c.Expr.Args) > 0 || pkg.RunsInLoop(c.In, c) {
		return false
	}
	made := pkg.Calls[syntax.AsCall(c.Operand(tensorapi.Recv)[0])]
	if _, ok := dropped(pkg, c); !ok || made == nil || made.API.Kind != tensorapi.Op || blocking.IsForward(made) || made.Callee.Signature().Recv() == nil || sites.IsAllowed(c) {
		return false
	}
	outer := c.In.Outermost()
	return !c.In.IsTest() && !warming.MatchString(outer.Name) && !strings.Contains(strings.ToLower(outer.Name), "sync") && !outer.Contains(func(d *blocking.Call) bool {
		return blocking.TellsTime(d) || d.API.Kind == tensorapi.WaitAll
	})
}

// isHanded reports whether c waits for a tensor that its function has computed, drops the error, and the next statement
// returns the tensor. The error is in the tensor as well.
//
//	x := a.Solve(b)
//	x.Wait()
//	return x
func isHanded(pkg *blocking.Package, c *blocking.Call) bool {
	if c.API.Kind != tensorapi.Wait || c.API.Arg != tensorapi.Recv || c.Lib != tensorapi.Ours() || len(c.Expr.Args) > 0 || pkg.RunsInLoop(c.In, c) {
		return false
	}
	stmt, ok := dropped(pkg, c)
	if !ok {
		return false
	}
	next, ok := stmt.NextSibling()
	if !ok {
		return false
	}
	ret, ok := next.Node().(*ast.ReturnStmt)
	v := pkg.Local(c.Operand(tensorapi.Recv)[0])
	outer := c.In.Outermost()
	if !ok || v == nil || pkg.Params[v].Of != nil || c.In.IsTest() || meant.MatchString(outer.Name) || sites.IsAllowed(c) || outer.Contains(blocking.TellsTime) {
		return false
	}
	return slices.ContainsFunc(ret.Results, func(e ast.Expr) bool { return pkg.Local(e) == v })
}

// meant matches the names of functions that promise to have waited.
var meant = regexp.MustCompile(`(?i)warm|preheat|sync|wait|force|eager|material|reali[sz]e|finish|complete`)

// waitsAfter reports whether l has a finding about a read after c, or in it. If c waits for a variable, the read has to
// be of that.
func waitsAfter(p *lint.Pass, c *blocking.Call, operand ast.Expr, l *blocking.Loop) bool {
	v := p.Local(syntax.OrNil(operand))
	return slices.ContainsFunc(sites.Of(p), func(s *sites.Site) bool {
		return s.Call == c.Expr || s.Loop == l && s.Call.Pos() > c.Expr.Pos() && (v == nil || s.Operand == nil || p.Local(s.Operand) == v)
	})
}

// readAfter returns the call that waits for the same tensor as c, in the statement after c's; or nil.
// The statement of c must do nothing but wait, and drop the error.
func readAfter(pkg *blocking.Package, c *blocking.Call) *blocking.Call {
	if c.API.Kind != tensorapi.Wait || c.API.Arg != tensorapi.Recv || len(c.Expr.Args) > 0 {
		return nil
	}
	stmt, ok := dropped(pkg, c)
	if !ok {
		return nil
	}
	v := pkg.Local(c.Operand(tensorapi.Recv)[0])
	next, ok := stmt.NextSibling()
	if v == nil || !ok {
		return nil
	}
	switch next.Node().(type) {
	case *ast.ExprStmt, *ast.AssignStmt, *ast.ReturnStmt, *ast.DeclStmt:
	default:
		return nil
	}
	// The first call of the statement, in the order in which they run, has to
	// be the read: nothing may happen before it.
	var first *blocking.Call
	for cur := range next.Preorder((*ast.CallExpr)(nil), (*ast.FuncLit)(nil), (*ast.UnaryExpr)(nil), (*ast.BinaryExpr)(nil), (*ast.IndexExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			d := pkg.Calls[n]
			if d == nil {
				continue // a conversion or built-in
			}
			if first == nil || d.Expr.End() <= first.Expr.End() && d.Expr.Pos() >= first.Expr.Pos() {
				first = d // an operand of the one before, so it runs earlier
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				return nil
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				return nil
			}
		default:
			return nil
		}
	}
	if first == nil || first.API.Kind != tensorapi.Read || first.API.Arg != tensorapi.Recv || pkg.Local(first.Operand(tensorapi.Recv)[0]) != v {
		return nil
	}
	if strings.HasSuffix(first.Callee.Name(), "Context") {
		return nil // it may give up waiting
	}
	return first
}

// readAfterIdle returns the read that follows c, a call of asyncrt.WaitIdle, or nil. In between the
// program may only compute the tensor that is read; it must not read a clock.
func readAfterIdle(pkg *blocking.Package, c *blocking.Call) *blocking.Call {
	if c.API.Kind != tensorapi.WaitAll || !c.IsFunc("WaitIdle") || c.In.Outermost().Contains(blocking.TellsTime) || c.In.IsTest() {
		return nil
	}
	stmt, ok := dropped(pkg, c)
	for ok {
		if stmt, ok = stmt.NextSibling(); !ok {
			return nil
		}
		for cur := range stmt.Preorder((*ast.CallExpr)(nil), (*ast.FuncLit)(nil), (*ast.GoStmt)(nil), (*ast.DeferStmt)(nil), (*ast.SendStmt)(nil), (*ast.UnaryExpr)(nil)) {
			switch n := cur.Node().(type) {
			case *ast.CallExpr:
				d := pkg.Calls[n]
				if d == nil {
					continue // a conversion or built-in
				}
				switch d.API.Kind {
				case tensorapi.Op, tensorapi.View, tensorapi.Host, tensorapi.Draw, tensorapi.Value, tensorapi.Meta, tensorapi.Pure:
					continue
				case tensorapi.Read:
					switch stmt.Node().(type) {
					case *ast.ExprStmt, *ast.AssignStmt, *ast.ReturnStmt, *ast.DeclStmt:
						return d
					}
				}
				return nil
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					return nil
				}
			default:
				return nil
			}
		}
	}
	return nil
}

// flushed returns the loop in which c flushes a backlog or a writer of values, if each iteration also fills it; or nil.
func flushed(pkg *blocking.Package, c *blocking.Call) *blocking.Loop {
	if c.API.Kind != tensorapi.WaitAll || !c.IsFunc("Flush") || c.In.Outermost().Contains(blocking.TellsTime) {
		return nil
	}
	later := pkg.Variable(c.Operand(tensorapi.Recv)[0])
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small {
			continue
		}
		adds := pkg.Any(l, func(d *blocking.Call) bool {
			defers := d.IsFunc("Do") && d.API.Calls == tensorapi.Later || d.API.Kind == tensorapi.Output && d.Callee.Signature().Recv() != nil && d.TakesTensor()
			if !defers || pkg.Variable(d.Operand(tensorapi.Recv)[0]) != later || pkg.GuardOf(d.In, d.Expr.Pos(), l) == blocking.Rarely {
				return false
			}
			for m := range pkg.LoopsAround(d.In, d.Expr.Pos()) {
				return m == l
			}
			return false
		})
		if later == nil || !adds || l.Declares(later) || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always {
			return nil
		}
		return l
	}
	return nil
}

// dropped returns the statement around c if it drops the result of c, by itself or by the blank
// identifier.
func dropped(pkg *blocking.Package, c *blocking.Call) (inspector.Cursor, bool) {
	stmt := c.Cur.Parent()
	switch n := stmt.Node().(type) {
	case *ast.ExprStmt:
	case *ast.AssignStmt:
		id, ok := n.Lhs[0].(*ast.Ident)
		if len(n.Lhs) != 1 || !ok || id.Name != "_" {
			return stmt, false
		}
	default:
		return stmt, false
	}
	switch stmt.ParentEdgeKind() {
	case edge.BlockStmt_List, edge.CaseClause_Body, edge.CommClause_Body:
		return stmt, true
	}
	return stmt, false
}
