package blocking

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"sync"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// A Site is a call that waits for the device in each iteration of a loop that
// keeps the device busy.
type Site struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	Kind SiteKind
	// Name is how messages call the call: "loss.Item()", "fmt.Println".
	Name string
	// Operand is what is waited for, nil if the caller can't name it.
	Operand ast.Expr
	// Loop is the innermost loop in which the call waits for what the loop
	// enqueued.
	Loop *Loop
	// Uses is what becomes of the value within the loop where it is used in
	// most iterations, and Rare what becomes of it where it is not.
	Uses, Rare Use
	// Callee and Chain, for a CalleeSite, are the function called and how
	// it comes to wait.
	Callee string
	Chain  []Link
	// Outside reports whether the loop also waits for the world outside:
	// input, the network, time, a channel from which it takes questions, or a function that
	// makes tensors of the value. It can't run far ahead then. So does one in which
	// somebody has allowed this wait.
	Outside bool
	// Timed reports whether clocks are read in the function, or by what it
	// calls, so that moving the wait changes what they measure.
	Timed bool
	// Alarms reports whether all that the value decides is whether to give up: it
	// should never be what is asked for.
	Alarms bool

	in  *Func
	at  *Call
	pat func() Pattern
}

// Assigns is the statement that assigns the value to a variable, if the
// pattern is LastWins.
func (s *Site) Assigns() *ast.AssignStmt { return s.in.a.lastWins(s) }

// Severity is Info if the loop can't run far ahead anyway.
func (s *Site) Severity() Severity {
	if s.Outside {
		return Info
	}
	return Warning
}

// A SiteKind says how a site waits.
type SiteKind uint8

// The kinds of sites.
const (
	ReadSite   SiteKind = iota // it reads a value
	PrintSite                  // it formats a tensor
	CalleeSite                 // it calls a user's function that does either
)

// A wait is one thing a call waits for to learn a value.
type wait struct {
	kind    SiteKind
	operand ast.Expr // nil: Own
	via     *Wait    // of a callee
	arg     *funcArg // the callee is not the function called but this one, which that one calls
	open    bool     // by a method that the callee calls, and of which only the type of the operand tells
}

// waits lists what a call waits for to learn a value.
func (a *analyzer) waits(c *Call) []wait {
	var list []wait
	switch c.api.Kind {
	case tensorapi.Read, tensorapi.Transfer, tensorapi.Print:
		kind := ReadSite
		if c.api.Kind == tensorapi.Print {
			kind = PrintSite
		}
		for _, e := range c.operand(c.api.Arg) {
			list = append(list, wait{kind: kind, operand: e})
		}
		return list
	case tensorapi.Unknown, tensorapi.Call:
	default:
		return nil
	}
	for i := range c.args {
		list = append(list, a.handedWaits(c, &c.args[i])...)
	}
	for _, e := range a.printed(c) {
		list = append(list, wait{kind: PrintSite, operand: e})
	}
	list = append(list, a.methodWaits(c)...)
	return append(list, c.calleeWaits(c.sum().Waits)...)
}

// barriers lists what a call waits for to know that it is done.
func (a *analyzer) barriers(c *Call) []wait {
	switch c.api.Kind {
	case tensorapi.Wait:
		var list []wait
		for _, e := range c.operand(c.api.Arg) {
			list = append(list, wait{operand: e})
		}
		return list
	case tensorapi.WaitAll:
		if c.Callee.Signature().Recv() == nil {
			return []wait{{}}
		}
	case tensorapi.Unknown, tensorapi.Call:
		return c.calleeWaits(c.sum().Barriers)
	}
	return nil // it waits for something of its own, like a backlog
}

// calleeWaits says what the waits of c's callee are where c is.
func (c *Call) calleeWaits(of []Wait) []wait {
	var list []wait
	for i := range of {
		w := &of[i]
		if w.Operand == Own {
			list = append(list, wait{kind: CalleeSite, via: w})
			continue
		}
		for _, e := range c.operand(w.Operand) {
			list = append(list, wait{kind: CalleeSite, operand: e, via: w})
		}
	}
	return list
}

// isOwnPace reports whether w is a wait of c's callee that a loop around c adds little
// to: a rare one, or one in or beside a loop of the callee's.
func (c *Call) isOwnPace(w wait) bool {
	return w.via != nil && (w.via.InLoop && (w.operand == nil || c.enqueues()) || w.via.Guarded || c.sum().Trains || c.target != nil && c.target.scc == c.in.owner().scc)
}

// isBesideStep reports whether w is a wait of c's callee in, or after, a loop of its own
// over data, and the loop around c takes a step of training in each iteration, with other
// data: a model is evaluated after every step.
func (a *analyzer) isBesideStep(c *Call, w wait) bool {
	if w.via == nil || !w.via.InLoop || w.via.Guarded || w.operand != nil || c.sum().Steps || c.target != nil && c.target.scc == c.in.owner().scc {
		return false
	}
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if !l.small {
			return l.blocks != nil && a.stepsItself(l) && !a.isOuter(l, c) && a.overData(l, l.fn.wholeLoop())
		}
	}
	return false
}

// handedWaits lists what a call waits for because of a function that it is
// handed and calls.
func (a *analyzer) handedWaits(c *Call, arg *funcArg) []wait {
	when := c.calls(arg.no)
	if when != tensorapi.Once && when != tensorapi.Loop {
		return nil
	}
	var list []wait
	s := arg.summary()
	for i := range s.Waits {
		via := s.Waits[i]
		via.InLoop = via.InLoop || when == tensorapi.Loop
		pending, exprs := a.handedOperand(c, arg, via.Operand)
		if pending {
			list = append(list, wait{kind: CalleeSite, via: &via, arg: arg})
		}
		for _, e := range exprs {
			list = append(list, wait{kind: CalleeSite, operand: e, via: &via, arg: arg})
		}
	}
	return list
}

// handedOperand says what an operand of a function is that c is handed and
// calls: a tensor that is pending, expressions where c is, or both.
func (a *analyzer) handedOperand(c *Call, arg *funcArg, op int) (pending bool, exprs []ast.Expr) {
	switch {
	case op == Own:
		return true, nil
	case op == tensorapi.Recv:
		if arg.recv != nil {
			exprs = []ast.Expr{arg.recv}
		}
		return false, exprs
	}
	cb := c.callback(arg.no)
	if cb == nil {
		return false, a.elementsFor(c, arg, op)
	}
	if op >= len(cb.Args) {
		return false, nil
	}
	for from := tensorapi.Recv; from < 31; from++ {
		if cb.Args[op].From.Has(from) {
			exprs = append(exprs, c.operand(from)...)
		}
	}
	return cb.Args[op].Pending, exprs
}

// elementsFor lists the operands of c, a call of a function without facts, whose elements are of
// the type of an operand of the function that c is handed.
func (a *analyzer) elementsFor(c *Call, arg *funcArg, op int) []ast.Expr {
	sig, ok := a.info.TypeOf(arg.expr).Underlying().(*types.Signature)
	if !ok || op < 0 || op >= sig.Params().Len() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Expr.Args), func(e ast.Expr) bool {
		elem := elementType(a.info.TypeOf(e))
		return elem == nil || !types.Identical(elem, sig.Params().At(op).Type())
	})
}

// looped returns the site that c is because it calls, in a loop, a function
// that it is handed and that waits for what the two enqueue; or nil.
func (a *analyzer) looped(c *Call) *Site {
	for i := range c.args {
		arg := &c.args[i]
		s := arg.summary()
		compares := isSorter(c.Callee)
		if c.calls(arg.no) != tensorapi.Loop || !s.Enqueues && !c.sum().Enqueues && !compares || s.Trains {
			continue
		}
		for _, w := range s.Waits {
			if pending, _ := a.handedOperand(c, arg, w.Operand); !pending && !compares || w.InLoop || w.Guarded {
				continue
			}
			name := types.ExprString(arg.expr)
			return &Site{
				Call: c.Expr, Cur: c.cur, Kind: CalleeSite, Name: name, Callee: name, Chain: w.Chain, in: c.in, at: c,
				Loop:  &Loop{Pos: arg.expr.Pos(), fn: c.in, handed: true},
				Uses:  Passed,
				Timed: c.in.outermost().contains(tellsTime),
			}
		}
	}
	return nil
}

// sites finds the package's sites.
func (a *analyzer) sites() []*Site {
	var list []*Site
	// One finding for the calls of a function on a line is enough, unless
	// only one of them decides what the loop does.
	type key struct {
		loop    *Loop
		callee  *types.Func
		line    string
		decides bool
	}
	reported := make(map[key]bool)
	repeated := a.repeatedFuncs()
	for _, f := range a.funcs {
		for _, c := range f.calls {
			if c.away && !c.runsAtEnd() {
				continue
			}
			var s *Site
			if len(a.divided(c)) == 0 {
				s = a.site(c)
			}
			if s == nil {
				s = a.looped(c)
			}
			if l := repeated[f.owner()]; s == nil && l != nil {
				s = a.repeatedSite(c, l)
			}
			if s == nil {
				continue
			}
			if s.Kind == CalleeSite && c.Callee != nil {
				k := key{s.Loop, c.Callee, a.posOf(s.Call.Pos()), s.Uses&Decides != 0}
				if reported[k] {
					continue
				}
				reported[k] = true
			}
			s.pat = sync.OnceValue(func() Pattern { return a.pattern(s) })
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(s, t *Site) int { return int(s.Call.Pos() - t.Call.Pos()) })
	return list
}

// site returns the site that c is, or nil.
func (a *analyzer) site(c *Call) *Site {
	for _, w := range a.waits(c) {
		if c.isOwnPace(w) && !a.isBesideStep(c, w) {
			continue
		}
		l := a.hotLoop(c, w)
		if l == nil || a.guardOf(c.in, c.Expr.Pos(), l) != always || a.waitedBefore(c, w.operand, l) {
			continue
		}
		s := &Site{
			Call: c.Expr, Cur: c.cur, Kind: w.kind, Operand: w.operand, Loop: l, in: c.in, at: c,
			Name:    a.callName(c, w),
			Outside: a.any(l, isOutside) || isAllowed(c),
			Timed:   c.in.outermost().contains(tellsTime),
		}
		if w.kind == PrintSite {
			s.Uses = Printed
		}
		if w.via != nil {
			s.Chain = w.via.Chain
			s.Callee = a.callName(c, w)
		}
		if w.kind != PrintSite {
			s.Alarms = true
			for _, p := range a.uses(c, l) {
				s.Alarms = s.Alarms && (p.use != Decides || p.alarm)
				if send, ok := p.cur.Parent().Node().(*ast.SendStmt); ok && a.receives(l) && (a.varies(send.Chan, l) || !a.any(l, (*Call).enqueues)) {
					s.Outside = true // a client waits, with a channel of its own, or to read is all that the loop does
				}
				s.Outside = s.Outside || a.isSimulated(p)
				if a.guardOf(p.in, p.pos, l) == rarely {
					s.Rare |= p.use
				} else {
					s.Uses |= p.use
				}
			}
		}
		return s
	}
	return nil
}

// hotLoop returns the innermost loop around c that enqueues what c waits for,
// in each of many iterations.
func (a *analyzer) hotLoop(c *Call, w wait) *Loop {
	for l := range a.loopsAround(c.in, c.Expr.Pos()) {
		if a.isComparison(l) && a.varies(c.Expr, l) && (w.operand == nil || !a.isHostList(w.operand)) {
			return l
		}
		if l.small || !a.any(l, (*Call).enqueues) && !a.takesInput(l) || a.appliesList(c, l) {
			continue
		}
		if a.isOuter(l, c) {
			return nil // and so is every loop around it
		}
		if stops, _ := a.isMeasured(l); stops && w.kind != PrintSite {
			return nil // it has to wait while the clock runs
		}
		if w.operand == nil && a.any(l, (*Call).enqueues) || w.operand != nil && (a.fresh(w.operand, c.in, l) || a.arrives(w.operand, c.in, l)) {
			if a.isDelayed(c, w.operand, l) || a.any(l, isStreamed) || a.isPaced(l) {
				return nil
			}
			return l
		}
	}
	return nil
}

// isComparison reports whether l is a function literal by which something is sorted: what it
// reads is read more than once for each element, whoever has enqueued it.
func (a *analyzer) isComparison(l *Loop) bool {
	return l.blocks == nil && l.fn.how() == looping && isSorter(a.calls[l.fn.arg].Callee)
}

// loopsAround yields the loops in which the syntax at pos in f runs, inner
// ones first.
func (a *analyzer) loopsAround(f *Func, pos token.Pos) func(func(*Loop) bool) {
	return func(yield func(*Loop) bool) {
		for {
			fl := f.flow()
			b := fl.blockAt(pos)
			if b < 0 {
				return // dead code
			}
			for _, l := range slices.Backward(fl.loops) {
				if l.blocks[b] && !yield(l) {
					return
				}
			}
			h := f.how()
			if (h == looping || f.cyclic && a.recurs(f, b)) && !yield(f.wholeLoop()) {
				return
			}
			if h != once && h != looping {
				return
			}
			pos, f = f.lit.Pos(), f.parent
		}
	}
}

// recurs reports whether the code of block b runs many times because f calls
// itself: on a path through b, or more than once on a path, so that as many calls
// as there are leaves of a tree come to where the recursion ends.
func (a *analyzer) recurs(f *Func, b int32) bool {
	fl := f.flow()
	var calls []int32 // by block
	for _, c := range f.calls {
		if c.target == nil || c.target.scc != f.scc {
			continue
		}
		r := fl.blockAt(c.Expr.Pos())
		if r < 0 {
			continue
		}
		if r == b || fl.reaches(b, r, never) || fl.reaches(r, b, never) {
			return true
		}
		for _, other := range append(calls, r) {
			if fl.reaches(other, r, never) || fl.reaches(r, other, never) || other == r && slices.Contains(calls, r) {
				return true
			}
		}
		calls = append(calls, r)
	}
	return false
}

func never(int32) bool { return false }

// runsAtEnd reports whether the call is deferred in a literal that is called where it
// is written, at whose end it runs.
func (c *Call) runsAtEnd() bool {
	_, ok := c.cur.Parent().Node().(*ast.DeferStmt)
	h := c.in.how()
	return ok && (h == once || h == looping)
}

// waitedBefore reports whether the iteration has waited for the same tensor
// already: reading it again waits no more.
func (a *analyzer) waitedBefore(c *Call, operand ast.Expr, l *Loop) bool {
	id, ok := ast.Unparen(orNil(operand)).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := a.info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	fl := c.in.flow()
	here := fl.blockAt(c.Expr.Pos())
	for _, d := range c.in.calls {
		if d == c || d.Expr.Pos() >= c.Expr.Pos() || !a.waitsFor(d, v) || !a.in(l, d.in, d.Expr.Pos()) || a.isSilentWait(d) {
			continue
		}
		if there := fl.blockAt(d.Expr.Pos()); !fl.dominates(there, here) || len(a.shortCircuits(d.Expr.Pos())) > 0 {
			continue
		}
		assigned := slices.ContainsFunc(a.defs[v], func(x def) bool { return x.pos > d.Expr.End() && x.pos < c.Expr.Pos() })
		if !assigned {
			return true
		}
	}
	return false
}

// isSilentWait reports whether d only waits, and is no finding itself: as in a loop
// that trains, where a wait for each step may be what bounds the queue. If a read
// follows, that is the finding.
func (a *analyzer) isSilentWait(d *Call) bool {
	if d.api.Kind != tensorapi.Wait && d.api.Kind != tensorapi.WaitAll {
		return false
	}
	l, _ := a.serialised(d)
	return l == nil || a.any(l, (*Call).mutates)
}

func orNil(e ast.Expr) ast.Expr {
	if e == nil {
		return &ast.BadExpr{}
	}
	return e
}

// waitsFor reports whether d waits for the tensor in v, in whatever way.
func (a *analyzer) waitsFor(d *Call, v *types.Var) bool {
	var list []ast.Expr
	if d.api.Kind == tensorapi.Wait {
		list = d.operand(d.api.Arg)
	}
	for _, w := range a.waits(d) {
		if w.operand != nil && (w.via == nil || !w.via.Guarded) {
			list = append(list, w.operand)
		}
	}
	return d.api.Kind == tensorapi.WaitAll || slices.ContainsFunc(list, func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && a.info.Uses[id] == v
	})
}

// callName is how messages call a call.
func (a *analyzer) callName(c *Call, w wait) string {
	const long = 40
	if w.arg != nil {
		return types.ExprString(w.arg.expr)
	}
	if w.kind == ReadSite || w.kind == PrintSite && c.api.Kind == tensorapi.Print {
		if s := types.ExprString(c.Expr); len(s) <= long {
			return s
		}
		if sel, ok := ast.Unparen(c.Expr.Fun).(*ast.SelectorExpr); ok && c.Callee != nil && c.Callee.Signature().Recv() != nil {
			return sel.Sel.Name
		}
	}
	return calleeName(c)
}

func calleeName(c *Call) string {
	if s := types.ExprString(ast.Unparen(c.Expr.Fun)); len(s) <= 40 {
		return s
	}
	if c.Callee != nil {
		return c.Callee.Name()
	}
	if c.target != nil {
		return c.target.name
	}
	return "the function"
}

// isOutside recognises calls that wait for the world outside the process.
func isOutside(c *Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch name := fn.Name(); fn.Pkg().Path() {
	case "bufio":
		return name == "Scan" || len(name) >= 4 && name[:4] == "Read"
	case "fmt":
		return slices.Contains([]string{"Scan", "Scanf", "Scanln", "Fscan", "Fscanf", "Fscanln"}, name)
	case "net", "os/exec":
		return true
	case "net/http":
		return !isAnswering(fn)
	case "time":
		return name == "Sleep"
	}
	return false
}

// isAnswering recognises what a handler does with a request that it has got and with its
// answer: nothing that waits for others, so that a loop in a handler is like any.
func isAnswering(fn *types.Func) bool {
	switch name := fn.Name(); recvName(fn) {
	case "ResponseWriter", "Header", "Request":
		return true
	case "":
		return name == "Error" || name == "SetCookie" || name == "Redirect" || name == "NotFound" || name == "StatusText"
	}
	return false
}

// recvName is the name of the type that fn is a method of, or empty.
func recvName(fn *types.Func) string {
	t := recvType(fn)
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	if named, ok := types.Unalias(t).(*types.Named); ok {
		return named.Obj().Name()
	}
	return ""
}

// isAllowed reports whether c is in a function literal for asyncrt.AllowSync: somebody
// has said that this wait is meant.
func isAllowed(c *Call) bool {
	for f := range c.in.In() {
		if outer := f.PassedTo(); outer != nil && outer.IsFunc("AllowSync") {
			return true
		}
	}
	return false
}

// isSimulated reports whether the value at cur is given to a function that returns
// tensors and is given none: an environment that needs an action, a collection that is
// asked for an element. Nothing can be enqueued before it has answered.
func (a *analyzer) isSimulated(p place) bool {
	call, ok := p.cur.Parent().Node().(*ast.CallExpr)
	if !ok || p.use != Passed {
		return false
	}
	c := a.calls[call]
	if c == nil || c.api.Kind != tensorapi.Unknown || c.takesTensor() {
		return false
	}
	for v := range a.resultsOf(c).Variables() {
		if a.holdsTensor(v.Type()) {
			return true
		}
	}
	return false
}

// takesInput reports whether l receives tensors that others have enqueued the work for.
func (a *analyzer) takesInput(l *Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok && isChan(a.info.TypeOf(s.X)) {
		return a.isInput(s.X, l.fn)
	}
	return slices.ContainsFunc(a.receivesOf(l), func(e *ast.UnaryExpr) bool { return a.isInput(e.X, l.fn) })
}

// receivesOf lists the expressions that receive from channels in l.
func (a *analyzer) receivesOf(l *Loop) []*ast.UnaryExpr {
	var list []*ast.UnaryExpr
	for cur := range l.fn.cur.Preorder((*ast.UnaryExpr)(nil)) {
		n := cur.Node().(*ast.UnaryExpr)
		pos := n.Pos()
		if assign, ok := cur.Parent().Node().(*ast.AssignStmt); ok {
			pos = assign.Lhs[0].Pos()
		}
		if f := a.funcAt(cur); n.Op == token.ARROW && f != nil && a.in(l, f, pos) {
			list = append(list, n)
		}
	}
	return list
}

// receives reports whether l takes what it works on from a channel.
func (a *analyzer) receives(l *Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		return isChan(a.info.TypeOf(s.X))
	}
	return len(a.receivesOf(l)) > 0
}

// isPaced reports whether a clock says when the next iteration of l begins: it
// receives the time from a channel, as of a time.Ticker, before anything else.
func (a *analyzer) isPaced(l *Loop) bool {
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		ch, ok := a.info.TypeOf(s.X).Underlying().(*types.Chan)
		return ok && isTimeType(ch.Elem())
	case *ast.ForStmt:
		if len(s.Body.List) == 0 {
			return false
		}
		stmt, ok := s.Body.List[0].(*ast.ExprStmt)
		if !ok {
			return false
		}
		u, ok := ast.Unparen(stmt.X).(*ast.UnaryExpr)
		return ok && u.Op == token.ARROW && isTimeType(a.info.TypeOf(u))
	}
	return false
}

func isTimeType(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Time"
}

// isStreamed recognises calls that send what was written to somebody at once:
// each value is meant to be seen when it is there.
func isStreamed(c *Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "net/http":
		return fn.Name() == "Flush"
	case "net":
		return fn.Name() == "Write"
	case "fmt", "io":
		return strings.HasPrefix(fn.Name(), "Fprint") && isConn(c.in.a.info.TypeOf(c.Expr.Args[0])) ||
			fn.Name() == "WriteString" && isConn(c.in.a.info.TypeOf(c.Expr.Args[0]))
	}
	return false
}

// isConn recognises the connections of package net.
func isConn(t types.Type) bool {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "net" && strings.HasSuffix(named.Obj().Name(), "Conn")
}

// isClock recognises the calls that read a clock.
func isClock(c *Call) bool {
	fn := c.Callee
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "time" && (fn.Name() == "Now" || fn.Name() == "Since" || fn.Name() == "Until")
}

// tellsTime recognises the calls that read a clock, those of functions of the
// package that do, those that time a benchmark, and those that ask how far the
// device has got.
func tellsTime(c *Call) bool {
	if isClock(c) || c.api.Kind == tensorapi.Poll || c.target != nil && c.target.outermost().contains(isClock) {
		return true
	}
	fn := c.Callee
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "testing" && strings.HasSuffix(fn.Name(), "Timer")
}

// outermost is the declaration, or literal at package level, around f.
func (f *Func) outermost() *Func {
	for f.parent != nil {
		f = f.parent
	}
	return f
}

// contains reports whether f, or a literal in it, has a call with the given
// property.
func (f *Func) contains(has func(*Call) bool) bool {
	for g := range f.tree() {
		if slices.ContainsFunc(g.calls, has) {
			return true
		}
	}
	return false
}

// Related points to the loop, for a diagnostic.
func (l *Loop) Related() []analysis.RelatedInformation {
	what := "the loop"
	if l.blocks == nil {
		what = "called in a loop"
		switch {
		case l.why == accumulating:
			what = "this function adds to a field, as it is called again and again"
		case l.why == stepping:
			what = "this function takes a step of training, as it is called again and again"
		case l.why == 0 && !l.handed && l.fn.cyclic && l.fn.how() != looping:
			what = "this function calls itself"
		}
	}
	return []analysis.RelatedInformation{{Pos: l.Pos, Message: what}}
}
