package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/blocking"
	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/lint"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/ast/inspector"
)

// A Site is a call that waits for the device in each iteration of a loop that keeps the device busy.
type Site struct {
	Call *ast.CallExpr
	Cur  inspector.Cursor // of Call
	Kind blocking.WaitKind
	// Name is how messages call the call: "loss.Item()", "fmt.Println".
	Name string
	// Operand is what is waited for, nil if the caller can't name it.
	Operand ast.Expr
	// Loop is the innermost loop in which the call waits for what the loop
	// enqueued.
	Loop *blocking.Loop
	// Uses is what the loop does with the value in most iterations. Rare is what it does with it only
	// in few.
	Uses, Rare Use
	// Callee and Chain, for a CalleeSite, are the function called and how
	// it comes to wait.
	Callee string
	Chain  []blocking.Link
	// Outside reports whether the loop can't run far ahead anyway, or somebody has allowed this wait.
	// It waits for input, the network, time, a channel from which it takes questions, or a function
	// that makes tensors of the value.
	Outside bool
	// Timed reports whether the function, or one that it calls, reads a clock. To move the wait would
	// change what the clock measures.
	Timed bool
	// Feeds reports whether Loop makes a tensor of what it has kept of the value, as a text that grows.
	Feeds bool
	// Alarms reports whether the value only decides whether to give up, for something that should never
	// happen.
	Alarms bool

	// Why says why the call waits, and what does not, if that is not plain.
	Why string

	In  *blocking.Func
	At  *blocking.Call
	pat func() Pattern
}

// Assigns returns the statement that assigns the value to a variable, if the pattern is LastWins.
func (s *Site) Assigns() *ast.AssignStmt { return lastWins(s.In.Package, s) }

// Severity is Info if the loop can't run far ahead anyway.
func (s *Site) Severity() lint.Severity {
	if s.Outside {
		return lint.Info
	}
	return lint.Warning
}

// conversing matches the names of functions that talk to a person.
var conversing = regexp.MustCompile(`(?i)interactive|repl$|^chat|converse|prompt$|console`)

// IsOwnPace reports whether w, a wait of c's callee, gets no worse by a loop around c. It is a rare
// one, or in or beside a loop of the callee.
func IsOwnPace(c *blocking.Call, w blocking.CallWait) bool {
	return w.Via != nil && (w.Via.InLoop && (w.Operand == nil || c.Enqueues()) || w.Via.Guarded || c.Summary().Trains || c.Target != nil && c.Target.SCC == c.In.Owner().SCC)
}

// isBesideStep reports whether a loop over batches takes a step of training in each iteration, and then
// evaluates the model by c. The callee of c waits after a loop over other data.
//
//	for _, b := range batches {
//		opt.Minimize(loss(b))
//		fmt.Println(accuracy(valid)) // after every step
//	}
func isBesideStep(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) bool {
	if w.Via == nil || !w.Via.InLoop || w.Via.Guarded || w.Operand != nil || c.Summary().Steps || c.Target != nil && c.Target.SCC == c.In.Owner().SCC {
		return false
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if !l.Small {
			return l.Blocks != nil && pkg.StepsItself(l) && !pkg.IsOuter(l, c) && pkg.OverData(l, l.Func.WholeLoop())
		}
	}
	return false
}

// isGivenBack reports whether the callee of c waits in a loop of its own, and a loop around c makes tensors of
// what it returns, or computes with it, in each iteration. Both loops wait: no iteration of the outer one can be
// enqueued before the one before has ended.
//
//	for range rounds {
//		s := best(x, y.Sub(pred)) // reads a score for each feature
//		pred = pred.Add(apply(s, x))
//	}
func isGivenBack(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) bool {
	if w.Via == nil || !w.Via.InLoop || w.Via.Guarded || c.Summary().Trains || c.Summary().Mutates || c.Target == nil || c.Target.SCC == c.In.Owner().SCC || c.Target.Contains(asksWorld) {
		return false
	}
	for v := range pkg.ResultsOf(c).Variables() {
		if pkg.HoldsTensors(v.Type()) {
			return false // nobody needs to have waited for these
		}
	}
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if l.Small {
			continue
		}
		return l.Stmt != nil && slices.ContainsFunc(Uses(pkg, c, l), func(p Place) bool {
			d := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
			return p.Use == Computes || p.Use == Passed && d != nil && d.API.Kind == tensorapi.Unknown && !d.Away && d.Enqueues()
		})
	}
	return false
}

// asksWorld reports whether c calls an unknown function without tensors, such as that of an environment, which is given
// an action.
func asksWorld(c *blocking.Call) bool {
	return c.Dynamic && c.API.Kind == tensorapi.Unknown && !c.TakesTensor()
}

// looped returns c as a site, or nil. Its callee calls, in a loop, a function that c passes, and this
// function waits for work that the two enqueue.
func looped(pkg *blocking.Package, c *blocking.Call) *Site {
	for i := range c.FuncArgs {
		arg := &c.FuncArgs[i]
		s := arg.Summary()
		compares := syntax.IsSorter(c.Callee)
		if c.CallsArg(arg.No) != tensorapi.Loop || !s.Enqueues && !c.Summary().Enqueues && !compares || s.Trains {
			continue
		}
		for _, w := range s.Waits {
			if pending, _ := pkg.HandedOperand(c, arg, w.Operand); !pending && !compares || w.InLoop || w.Guarded {
				continue
			}
			name := types.ExprString(arg.Expr)
			return &Site{
				Call: c.Expr, Cur: c.Cur, Kind: blocking.WaitCallee, Name: name, Callee: name, Chain: w.Chain, In: c.In, At: c,
				Loop:  &blocking.Loop{Pos: arg.Expr.Pos(), Func: c.In, Handed: true},
				Uses:  Passed,
				Timed: c.In.Outermost().Contains(blocking.TellsTime),
			}
		}
	}
	return nil
}

// site returns the site that c is, or nil.
func site(pkg *blocking.Package, c *blocking.Call) *Site {
	number, why := waitedNumber(pkg, c)
	for _, w := range append(pkg.Waits(c), number...) {
		if IsOwnPace(c, w) && !isBesideStep(pkg, c, w) && !isGivenBack(pkg, c, w) {
			continue
		}
		l := hotLoop(pkg, c, w)
		if l == nil || pkg.GuardOf(c.In, c.Expr.Pos(), l) != blocking.Always || WaitedBefore(pkg, c, w.Operand, l) || isRequested(pkg, c, w.Operand, l) {
			continue
		}
		s := &Site{
			Call: c.Expr, Cur: c.Cur, Kind: w.Kind, Operand: w.Operand, Loop: l, In: c.In, At: c,
			Name:    pkg.CallName(c, w),
			Outside: pkg.Any(l, IsOutside) || pkg.Any(l, func(d *blocking.Call) bool { return takesRequests(pkg, d) }) || streams(pkg, l) || convertsFiles(pkg, l) || IsAllowed(c) || conversing.MatchString(c.In.Outermost().Name),
			Timed:   c.In.Outermost().Contains(blocking.TellsTime),
		}
		if w.Kind == blocking.WaitPrint {
			s.Uses = Printed
		}
		if w.Via != nil {
			s.Chain = w.Via.Chain
			s.Callee = pkg.CallName(c, w)
		}
		if why != "" {
			s.Name, s.Why, s.pat = blocking.CalleeName(c), why, func() Pattern { return Reading }
			return s
		}
		if w.Kind != blocking.WaitPrint {
			s.Alarms = true
			searches, decides := true, false
			places := Uses(pkg, c, l)
			s.Outside = s.Outside || answersInput(pkg, places, l) || isTable(pkg, places, l)
			for _, p := range places {
				decides = decides || p.Use == Decides
				searches = searches && p.Use == Decides && isInSearch(pkg, p)
				s.Alarms = s.Alarms && (p.Use != Decides || p.Alarm)
				if send, ok := p.Cur.Parent().Node().(*ast.SendStmt); ok && Receives(pkg, l) && (pkg.Varies(send.Chan, l) || !pkg.Any(l, (*blocking.Call).Enqueues)) {
					s.Outside = true // a client waits, with a channel of its own, or to read is all that the loop does
				}
				s.Outside = s.Outside || isSimulated(pkg, p, l) || isFedBack(pkg, p, w.Operand, l) || isActedOn(pkg, p, l) || isSpoken(pkg, p, w.Operand, l) || leadsOn(pkg, p, l)
				s.Feeds = s.Feeds || feeds(pkg, p, l)
				if pkg.GuardOf(p.in, p.Pos, l) == blocking.Rarely {
					s.Rare |= p.Use
				} else {
					s.Uses |= p.Use
				}
			}
			s.Outside = s.Outside || decides && (searches || !s.Alarms && isCascade(pkg, l)) || s.Uses == Passed && takesInput(pkg, l) && !pkg.Any(l, (*blocking.Call).Enqueues)
		}
		if s.Uses&Computes == 0 && (pkg.Any(l, func(d *blocking.Call) bool { return d != c && plays(pkg, d, 0) }) || actsWithin(pkg, l, c)) {
			continue
		}
		return s
	}
	return nil
}

// isRequested reports whether c reads e, a tensor of other iterations, where a message that l has received, or a line
// that it has read, asks for it:
//
//	switch m := <-messages; m.kind {
//	case "train":
//		sum = sum.Add(step(m.x))
//	case "report":
//		fmt.Println(sum.Item())
//	}
func isRequested(pkg *blocking.Package, c *blocking.Call, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(syntax.OrNil(e))
	if v == nil || l.Stmt == nil || l.Declares(v) || !Receives(pkg, l) && !pkg.Any(l, IsOutside) {
		return false
	}
	for cur := range c.Cur.Enclosing((*ast.CaseClause)(nil), (*ast.FuncLit)(nil)) {
		clause, ok := cur.Node().(*ast.CaseClause)
		if !ok || clause.Pos() < l.Stmt.Pos() {
			return false
		}
		if len(clause.List) == 0 || pkg.Info.Types[clause.List[0]].Value == nil {
			continue // no message, but a condition
		}
		return !slices.ContainsFunc(pkg.Defs[v], func(d blocking.Def) bool {
			return pkg.Contains(l, d.In, d.Pos) && clause.Pos() <= d.Pos && d.Pos < clause.End()
		})
	}
	return false
}

// hotLoop returns the innermost loop around c that enqueues what c waits for in each of many iterations; or nil.
func hotLoop(pkg *blocking.Package, c *blocking.Call, w blocking.CallWait) *blocking.Loop {
	own := computesSize(c)
	for l := range pkg.LoopsAround(c.In, c.Expr.Pos()) {
		if isComparison(pkg, l) && pkg.Varies(c.Expr, l) && (w.Operand == nil || !pkg.IsHostList(w.Operand)) {
			return l
		}
		switch paceOf(pkg, c, l, own) {
		case idle:
			continue
		case outer:
			return nil // and so is every loop around it
		}
		if stops, _ := pkg.IsMeasured(l); stops && w.Kind != blocking.WaitPrint {
			return nil // it has to wait while the clock runs
		}
		if w.Operand == nil && pkg.Any(l, (*blocking.Call).Enqueues) || w.Kind == blocking.WaitPrint && setsFields(pkg, w.Operand, l) || w.Operand != nil && (own && pkg.Varies(w.Operand, l) || pkg.Fresh(w.Operand, c.In, l) || pkg.Arrives(w.Operand, c.In, l)) {
			if isDelayed(pkg, c, w.Operand, l) || pkg.Any(l, IsStreamed) || IsPaced(pkg, l) {
				return nil
			}
			return l
		}
	}
	return nil
}

// setsFields reports whether e is no tensor but a struct, or the pointer to one, that formats itself, and l calls a
// function that sets a field of it to a tensor.
func setsFields(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	t := typeOf(pkg, e)
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	if !ok || blocking.IsTensor(t) {
		return false
	}
	for f := range s.Fields() {
		if blocking.IsTensor(f.Type()) && slices.ContainsFunc(pkg.Defs[f.Origin()], func(d blocking.Def) bool {
			return d.In != nil && d.In != l.Func && pkg.CalledFrom(l, d.In)
		}) {
			return true
		}
	}
	return false
}

// computesSize reports whether c computes a tensor whose size depends on values, as Unique and NonZero do. It waits
// for its own work, even if its operand is finished.
func computesSize(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Read && c.Lib == tensorapi.Ours() && blocking.IsTensor(typeOf(c.In.Package, c.Expr))
}

// plays reports whether d calls a function of the package that acts on a world in a loop of its own, as in the episodes
// of a game. It waits for each action; one more wait for each episode costs little. Depth bounds the functions between.
func plays(pkg *blocking.Package, d *blocking.Call, depth int) bool {
	f := d.Target
	if f == nil || d.Away || depth > 2 || f.SCC == d.In.Owner().SCC || pkg.GuardOf(d.In, d.Expr.Pos(), nil) == blocking.Rarely {
		return false
	}
	return slices.ContainsFunc(f.Calls, func(e *blocking.Call) bool {
		if m := Innermost(pkg, e); m != nil && m.Stmt != nil {
			return acts(pkg, e, m)
		}
		return plays(pkg, e, depth+1)
	})
}

// actsWithin is plays for a loop in l that c is not in.
func actsWithin(pkg *blocking.Package, l *blocking.Loop, c *blocking.Call) bool {
	return pkg.Any(l, func(e *blocking.Call) bool {
		m := Innermost(pkg, e)
		return m != nil && m != l && m.Stmt != nil && !pkg.Contains(m, c.In, c.Expr.Pos()) && acts(pkg, e, m)
	})
}

// acts reports whether e waits in each iteration of m for a value that goes to a world.
func acts(pkg *blocking.Package, e *blocking.Call, m *blocking.Loop) bool {
	return len(pkg.Waits(e)) > 0 && pkg.GuardOf(e.In, e.Expr.Pos(), m) == blocking.Always &&
		slices.ContainsFunc(Uses(pkg, e, m), func(p Place) bool { return isSimulated(pkg, p, m) || isActedOn(pkg, p, m) })
}

// doubles reports whether l multiplies an integer counter in each iteration. There are few.
//
//	for n := 100; len(trials) > 1; n *= 2 {
func doubles(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok {
		return false
	}
	assign, ok := s.Post.(*ast.AssignStmt)
	if !ok || assign.Tok != token.MUL_ASSIGN && assign.Tok != token.SHL_ASSIGN {
		return false
	}
	basic, ok := typeOf(pkg, assign.Lhs[0]).Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// isComparison reports whether l is the body of a literal by which something is sorted. It reads each element more
// than once, whoever has enqueued the work.
func isComparison(pkg *blocking.Package, l *blocking.Loop) bool {
	return l.Blocks == nil && l.Func.Runs() == blocking.Looping && syntax.IsSorter(pkg.Calls[l.Func.ArgOf].Callee)
}

// runsAtEnd reports whether c is deferred in a literal that is called on the spot. It runs where that ends.
func runsAtEnd(c *blocking.Call) bool {
	_, ok := c.Cur.Parent().Node().(*ast.DeferStmt)
	h := c.In.Runs()
	return ok && (h == blocking.Once || h == blocking.Looping)
}

// WaitedBefore reports whether the iteration of l has waited for the same tensor before c, or for one that is computed
// from it. Then c doesn't wait any more.
//
//	action := scores.ArgMax().ItemInt()
//	fmt.Println(scores) // WaitedBefore
func WaitedBefore(pkg *blocking.Package, c *blocking.Call, operand ast.Expr, l *blocking.Loop) bool {
	id, ok := ast.Unparen(syntax.OrNil(operand)).(*ast.Ident)
	if !ok {
		return false
	}
	v, ok := pkg.Info.Uses[id].(*types.Var)
	if !ok {
		return false
	}
	fl := c.In.Flow()
	here := fl.BlockAt(c.Expr.Pos())
	for _, d := range c.In.Calls {
		if d == c || d.Expr.Pos() >= c.Expr.Pos() || !pkg.Contains(l, d.In, d.Expr.Pos()) {
			continue
		}
		since := waitsFor(pkg, d, v, l)
		if !since.IsValid() || isSilentWait(pkg, d) {
			continue
		}
		if there := fl.BlockAt(d.Expr.Pos()); !fl.Dominates(there, here) || len(pkg.ShortCircuits(d.Expr.Pos())) > 0 {
			continue
		}
		assigned := slices.ContainsFunc(pkg.Defs[v], func(x blocking.Def) bool { return x.Pos > since && x.Pos < c.Expr.Pos() })
		if !assigned {
			return true
		}
	}
	return false
}

// isSilentWait reports whether d only waits and is no finding, like a wait in a loop that trains, which
// may be there to bound the queue. A read after it is the finding then.
func isSilentWait(pkg *blocking.Package, d *blocking.Call) bool {
	if d.API.Kind != tensorapi.Wait && d.API.Kind != tensorapi.WaitAll {
		return false
	}
	l, _ := Serialised(pkg, d)
	return l == nil || pkg.Any(l, (*blocking.Call).Mutates)
}

// waitsFor returns the place from which on the tensor in v is the one that d waits for, in whatever way, in an
// iteration of l: the end of d, or of what it waits for. If d doesn't wait for it, there is none.
func waitsFor(pkg *blocking.Package, d *blocking.Call, v *types.Var, l *blocking.Loop) token.Pos {
	var list []ast.Expr
	if d.API.Kind == tensorapi.Wait {
		list = d.Operand(d.API.Arg)
	}
	for _, w := range pkg.Waits(d) {
		if w.Operand != nil && (w.Via == nil || !w.Via.Guarded) {
			list = append(list, w.Operand)
		}
	}
	if d.API.Kind == tensorapi.WaitAll {
		return d.Expr.End()
	}
	for _, e := range list {
		if since := needs(pkg, e, v, l, 0); since.IsValid() {
			return since
		}
	}
	return token.NoPos
}

// needs returns the end of an expression that mentions v, if e is v or is computed from it by operations, in this
// iteration of l. Else it returns no place. Depth bounds the variables between.
func needs(pkg *blocking.Package, e ast.Expr, v *types.Var, l *blocking.Loop, depth int) token.Pos {
	if u := pkg.Local(e); u != nil {
		d := pkg.Defs[u]
		switch {
		case u == v:
			return e.End()
		case depth < 4 && len(d) == 1 && d[0].Kind == blocking.DefValue && l.Declares(u):
			return needs(pkg, d[0].Value, v, l, depth+1)
		}
		return token.NoPos
	}
	if c := pkg.Calls[syntax.AsCall(e)]; c != nil && c.Lib == tensorapi.Ours() && (c.API.Kind == tensorapi.Op || c.API.Kind == tensorapi.View) {
		for _, e := range c.AllOperands() {
			if since := needs(pkg, e, v, l, depth); since.IsValid() {
				return since
			}
		}
	}
	return token.NoPos
}

// IsOutside recognises calls that wait for the world outside the process: the network, a file, a user, time.
func IsOutside(c *blocking.Call) bool {
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
	case "encoding/json", "encoding/gob", "encoding/xml":
		return name == "Decode" || name == "Token"
	case "encoding/binary", "io":
		return name == "Read" || name == "ReadFull" || name == "ReadAtLeast"
	}
	return c.Dynamic && isReader(fn)
}

// isReader recognises the method of an interface that fills a list of numbers, like that of io.Reader: samples of a
// microphone, frames of a camera.
//
//	Read(buf []float32) (int, error)
func isReader(fn *types.Func) bool {
	params, results := fn.Signature().Params(), fn.Signature().Results()
	return strings.HasPrefix(fn.Name(), "Read") && params.Len() == 1 && isNumbers(params.At(0).Type()) &&
		results.Len() == 2 && syntax.IsNumeric(results.At(0).Type()) && syntax.IsError(results.At(1).Type())
}

// convertsFiles reports whether l reads a file and writes one in each iteration, by itself or by functions of the
// package. It is as fast as the files.
func convertsFiles(pkg *blocking.Package, l *blocking.Loop) bool {
	calls := func(ours string, names ...string) func(*blocking.Call) bool {
		is := func(c *blocking.Call) bool {
			if c.Lib == tensorapi.Ours() && strings.HasSuffix(c.Callee.Pkg().Path(), "/runtime/files") {
				return strings.HasPrefix(c.Callee.Name(), ours)
			}
			return slices.ContainsFunc(names, func(name string) bool { return syntax.IsFullName(c.Callee, name) })
		}
		return func(c *blocking.Call) bool { return is(c) || c.Target != nil && c.Target.Contains(is) }
	}
	return pkg.Any(l, calls("Read", "os.Open", "os.ReadFile")) && pkg.Any(l, calls("Write", "os.Create", "os.WriteFile", "os.OpenFile")) && !pkg.Any(l, (*blocking.Call).Mutates)
}

// takesRequests reports whether c is a function of the package that receives requests, values that come
// with a channel for the answer. Whoever calls it again and again serves clients, and these wait.
func takesRequests(pkg *blocking.Package, c *blocking.Call) bool {
	if c.Target == nil || c.Away {
		return false
	}
	for cur := range c.Target.Cur.Preorder((*ast.UnaryExpr)(nil)) {
		n := cur.Node().(*ast.UnaryExpr)
		if s, ok := typeOf(pkg, n).Underlying().(*types.Struct); ok && n.Op == token.ARROW && !pkg.HoldsTensors(s) {
			for f := range s.Fields() {
				if syntax.IsChan(f.Type()) {
					return true
				}
			}
		}
	}
	return false
}

// typeOf is the type of e, or the invalid type if it isn't known or e has several values. For v, ok :=
// e it is the type of v.
func typeOf(pkg *blocking.Package, e ast.Expr) types.Type {
	t := pkg.Info.TypeOf(e)
	if tuple, ok := t.(*types.Tuple); ok && tuple.Len() > 0 {
		t = tuple.At(0).Type()
	}
	if t == nil {
		return types.Typ[types.Invalid]
	}
	return t
}

// streams reports whether l sends values to somebody who may give up. It has no end of its own and
// doesn't train, so there is no place after it where the values could be read.
//
//	for {
//		…
//		select {
//		case to <- token:
//		case <-ctx.Done():
//			return ctx.Err()
//		}
//	}
func streams(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.ForStmt)
	if !ok || s.Cond != nil || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	for cur := range l.Func.Cur.Preorder((*ast.SelectStmt)(nil)) {
		n := cur.Node().(*ast.SelectStmt)
		if !pkg.Contains(l, pkg.FuncAt(cur), n.Body.List[0].Pos()) && (n.Pos() < s.Body.Pos() || s.Body.End() <= n.Pos()) {
			continue
		}
		sends, receives := false, false
		for _, clause := range n.Body.List {
			switch comm := clause.(*ast.CommClause).Comm.(type) {
			case *ast.SendStmt:
				sends = sends || !pkg.HoldsTensors(pkg.Info.TypeOf(comm.Value))
			case *ast.ExprStmt:
				receives = true
			}
		}
		if sends && receives {
			return true
		}
	}
	return false
}

// isCascade reports whether l asks one network after the other until the answer of one is good enough. It waits so that
// the others need not run.
//
//	for _, net := range nets {
//		if y := net.Forward(x); y.Max().Item() > sure {
//			return y
//		}
//	}
func isCascade(pkg *blocking.Package, l *blocking.Loop) bool {
	_, ok := l.Stmt.(*ast.RangeStmt)
	return ok && !pkg.Any(l, (*blocking.Call).Mutates) && pkg.OverParts(l) && pkg.EndsByValue(l)
}

// isInSearch reports whether the value at p is asked for by the condition of a loop that looks for a number, as a line
// search does, or in such a loop that multiplies its counter. Each trial decides whether there is another. The search
// must be in a loop of steps: it is a part of a step then, and short beside the others.
func isInSearch(pkg *blocking.Package, p Place) bool {
	for cur := range p.Cur.Enclosing((*ast.ForStmt)(nil)) {
		if !isInLoop(cur) {
			return false
		}
		n := cur.Node().(*ast.ForStmt)
		for _, l := range p.in.Flow().Loops {
			if l.Stmt == n {
				asks := n.Cond != nil && n.Cond.Pos() <= p.Pos && p.Pos < n.Cond.End() || multiplies(l)
				return asks && blocking.IsSearch(pkg, l)
			}
		}
		return false
	}
	return false
}

// isInLoop reports whether there is a loop around the statement at cur, in the same function.
func isInLoop(cur inspector.Cursor) bool {
	for around := range cur.Parent().Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil)) {
		_, isLit := around.Node().(*ast.FuncLit)
		return !isLit
	}
	return false
}

// isAnswering recognises calls by which an HTTP handler looks at its request or writes its answer. Such
// calls don't wait for anybody else.
func isAnswering(fn *types.Func) bool {
	switch name := fn.Name(); syntax.RecvName(fn) {
	case "ResponseWriter", "Header", "Request":
		return true
	case "":
		return name == "Error" || name == "SetCookie" || name == "Redirect" || name == "NotFound" || name == "StatusText"
	}
	return false
}

// IsAllowed reports whether c is in a literal for asyncrt.AllowSync: somebody has said that this wait is meant.
func IsAllowed(c *blocking.Call) bool {
	for f := range c.In.In() {
		if outer := f.PassedTo(); outer != nil && outer.IsFunc("AllowSync") {
			return true
		}
	}
	return false
}

// isSimulated reports whether the value at p goes to a function on the host, and l needs its answer: an
// environment that is given an action, a data set that is asked for an element. Such a function gets no
// tensors. It returns tensors, or numbers of which l makes tensors. Nothing can be enqueued before it
// has answered.
func isSimulated(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	at := p.Cur.Parent()
	if x, ok := at.Node().(*ast.IndexExpr); ok && x.Index == p.Cur.Node() && !pkg.HoldsTensors(typeOf(pkg, x)) {
		at = at.Parent() // what a list on the host has for it
	}
	call, ok := at.Node().(*ast.CallExpr)
	if !ok || p.Use != Passed {
		return false
	}
	return actsOn(pkg, pkg.Calls[call], l, 0)
}

// actsOn is isSimulated for c, the call of the function. What a function of the world answers may go to another one:
// a person's choice, for a game. Depth bounds how many.
func actsOn(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop, depth int) bool {
	if c == nil || c.API.Kind != tensorapi.Unknown || c.TakesTensor() || depth > 2 {
		return false
	}
	if outer, ok := c.Value().Parent().Node().(*ast.CallExpr); ok && c.Dynamic && outer.Fun != c.Expr && actsOn(pkg, pkg.Calls[outer], l, depth+1) {
		return true
	}
	for v := range pkg.ResultsOf(c).Variables() {
		if pkg.HoldsTensors(v.Type()) {
			return true
		}
	}
	if changesState(pkg, c, l) {
		return true
	}
	if answersNumber(pkg, c, l) {
		return true
	}
	assign, ok := c.Cur.Parent().Node().(*ast.AssignStmt)
	if isMethod := c.Callee != nil && c.Callee.Signature().Recv() != nil; !ok || len(assign.Rhs) != 1 || !c.Dynamic && !isMethod {
		return false // a function that only computes is no world
	}
	made := make(map[types.Object]bool)
	for _, lhs := range assign.Lhs {
		if v := pkg.Variable(lhs); v != nil && isNumbers(v.Type()) {
			made[v] = true
		}
	}
	return len(made) > 0 && becomesTensor(pkg, made, l)
}

// leadsOn reports whether the value at p says what l reads next, to give it to the world: the place of the next
// experiment, of which the result is awaited.
//
//	x := candidates.Row(promising(candidates))
//	y := measure(x.Float32s())
func leadsOn(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	for cur := range p.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.FuncLit)(nil)) {
		n, ok := cur.Node().(*ast.AssignStmt)
		if !ok || len(n.Lhs) != 1 {
			return false
		}
		x := pkg.Variable(n.Lhs[0])
		return x != nil && l.Stmt != nil && l.Declares(x) && pkg.Any(l, func(d *blocking.Call) bool {
			return slices.ContainsFunc(d.AllOperands(), func(e ast.Expr) bool { return pkg.Mentions(e, x) }) && acts(pkg, d, l)
		})
	}
	return false
}

// isTable reports whether l goes over sizes and makes its tensors by them, or over a map of networks, and prints one
// line for each: a table of few lines, in which the size or the name stands beside the values.
//
//	for _, n := range sizes {
//		fmt.Println(n, condition(tensor.Randn(n, n)).Item())
//	}
func isTable(pkg *blocking.Package, places []Place, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	if !ok || s.Value == nil || len(places) == 0 || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	label := pkg.Variable(s.Value)
	if elem := syntax.ElementType(typeOf(pkg, s.X)); syntax.IsMap(typeOf(pkg, s.X)) && elem != nil && syntax.HasMethod(pkg.Pass.Pkg, elem, []string{"Forward"}) {
		label = pkg.Variable(s.Key)
	} else if !isWhole(typeOf(pkg, s.X)) || label == nil || !pkg.Any(l, func(d *blocking.Call) bool {
		makes := d.API.Kind == tensorapi.Host || d.API.Kind == tensorapi.Draw || d.API.Kind == tensorapi.Unknown && d.Target != nil && d.Enqueues()
		return makes && !d.TakesTensor() && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Mentions(e, label) })
	}) {
		return false
	}
	for v, defs := range pkg.Defs {
		if pkg.HoldsTensors(v.Type()) && !l.Declares(v) && slices.ContainsFunc(defs, func(d blocking.Def) bool { return pkg.Contains(l, d.In, d.Pos) }) {
			return false // one goes on from the other
		}
	}
	return label != nil && !slices.ContainsFunc(places, func(p Place) bool {
		call := syntax.AsCall(nodeOf(p.Cur.Parent()))
		return p.Use != Printed || call == nil || !slices.ContainsFunc(call.Args, func(e ast.Expr) bool { return e != p.Cur.Node() && pkg.Mentions(e, label) })
	})
}

// isActedOn reports whether the value at p goes at once to something outside of the program: a function that nobody
// knows, or a method, which draws or plays it by its name; or one in a loop that makes its tensors of what another
// such function measures, and that doesn't train.
//
//	for draw(x.Float32s()) {
//		x = step(x)
//	}
func isActedOn(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
	if p.Use != Passed || c == nil || !c.Dynamic || c.API.Kind != tensorapi.Unknown || c.TakesTensor() {
		return false
	}
	name := blocking.CalleeName(c)
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return actingName.MatchString(name) || !pkg.Any(l, (*blocking.Call).Mutates) && measures(pkg, l)
}

// actingName matches the names of functions that bring something to somebody's eyes or ears.
var actingName = regexp.MustCompile(`(?i)^(draw|render|paint|play|speak)`)

// measures reports whether l makes tensors of numbers that a function nobody knows returns in each iteration, without
// operands but a context: a camera, a sensor.
func measures(pkg *blocking.Package, l *blocking.Loop) bool {
	measured := make(map[types.Object]bool)
	direct := pkg.Any(l, func(d *blocking.Call) bool {
		if !d.Dynamic || d.API.Kind != tensorapi.Unknown || len(d.Expr.Args) > 1 || d.TakesTensor() {
			return false
		}
		assign, ok := d.Value().Parent().Node().(*ast.AssignStmt)
		if !ok {
			made := pkg.Calls[syntax.AsCall(nodeOf(d.Value().Parent()))]
			return made != nil && made.API.Kind == tensorapi.Host && isNumbers(typeOf(pkg, d.Expr))
		}
		if v := pkg.Variable(assign.Lhs[0]); v != nil && isNumbers(v.Type()) {
			measured[v] = true
		}
		return false
	})
	return direct || len(measured) > 0 && becomesTensor(pkg, measured, l)
}

// answersNumber reports whether c calls an unknown function, and l computes with the number that it returns. It may
// ask the world, as for the outcome of an experiment.
//
//	y := measure(at.ItemInt())
//	sum = sum.AddScalar(y)
func answersNumber(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	assign, ok := c.Cur.Parent().Node().(*ast.AssignStmt)
	if !ok || !c.Dynamic || len(assign.Lhs) == 0 {
		return false
	}
	v := pkg.Variable(assign.Lhs[0])
	return v != nil && syntax.IsNumeric(v.Type()) && pkg.Any(l, func(d *blocking.Call) bool {
		return (d.API.Kind == tensorapi.Op || d.API.Kind == tensorapi.Host) && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool { return pkg.Mentions(e, v) })
	})
}

// changesState reports whether c is a method of a world of which l asks the state to make a tensor: by another method,
// whose result may be in a variable, or as a field that c's method sets.
//
//	over = g.Play(pick(tensor.From(g.State())))
func changesState(pkg *blocking.Package, c *blocking.Call, l *blocking.Loop) bool {
	recv := c.Operand(tensorapi.Recv)
	if len(recv) == 0 || c.Callee == nil || c.Callee.Signature().Recv() == nil {
		return false
	}
	world := pkg.Variable(recv[0])
	if world == nil {
		return false
	}
	isState := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			d := pkg.Calls[n]
			return d != nil && d.API.Kind == tensorapi.Unknown && len(n.Args) == 0 && len(d.Operand(tensorapi.Recv)) > 0 &&
				pkg.Variable(d.Operand(tensorapi.Recv)[0]) == world && pkg.Params[world].Operand != tensorapi.Recv
		case *ast.Ident:
			v := pkg.Local(n)
			d := pkg.Defs[v]
			if v == nil || len(d) != 1 || d[0].Kind != blocking.DefValue || !isNumbers(v.Type()) || !pkg.Contains(l, d[0].In, d[0].Pos) {
				return false
			}
			call := pkg.Calls[syntax.AsCall(d[0].Value)]
			return call != nil && call.API.Kind == tensorapi.Unknown && len(call.Expr.Args) == 0 && len(call.Operand(tensorapi.Recv)) > 0 &&
				pkg.Variable(call.Operand(tensorapi.Recv)[0]) == world && pkg.Params[world].Operand != tensorapi.Recv
		case *ast.SelectorExpr:
			field := pkg.Variable(n)
			return field != nil && field.IsField() && c.Target != nil && slices.ContainsFunc(pkg.Defs[field], func(d blocking.Def) bool { return d.In == c.Target })
		}
		return false
	}
	return pkg.Any(l, func(d *blocking.Call) bool {
		return makesTensors(d) && slices.ContainsFunc(d.Expr.Args, func(e ast.Expr) bool {
			found := false
			ast.Inspect(e, func(n ast.Node) bool {
				found = found || isState(n)
				return !found
			})
			return found
		})
	})
}

// isNumbers reports whether t is a list of numbers, one of such lists, or a struct with some: the state of a world.
func isNumbers(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if s, ok := t.Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			if elem := syntax.ElementType(f.Type()); elem != nil && syntax.IsNumeric(elem) {
				return true
			}
		}
		return false
	}
	elem := syntax.ElementType(t)
	return elem != nil && (syntax.IsNumeric(elem) || isNumbers(elem))
}

// isFedBack reports whether the value at p goes to somebody at once, by a function that l's function is given, by the
// yield of an iterator or on a channel, and l makes its next tensor of it: a text that a client reads word by word.
//
//	if !yield(token) {
//		return
//	}
//	tokens = append(tokens, token)
//
// The next tensor may also be computed from e, of which an integer is the value.
func isFedBack(pkg *blocking.Package, p Place, e ast.Expr, l *blocking.Loop) bool {
	v := pkg.Local(valueOf(p))
	if v == nil || p.Use != Passed || pkg.HoldsTensors(v.Type()) {
		return false
	}
	at := p.Cur.Parent()
	if text, ok := becomesText(pkg, p); ok {
		at = text.Parent() // what it stands for
	} else if _, ok := at.Node().(*ast.IndexExpr); ok {
		at = at.Parent() // its name, in a list on the host
	}
	switch n := at.Node().(type) {
	case *ast.SendStmt:
	case *ast.CallExpr:
		if fn := pkg.Variable(n.Fun); fn == nil || pkg.Params[fn].Of == nil && !fn.IsField() || pkg.Calls[n] == nil || pkg.Calls[n].TakesTensor() {
			return false // what is given tensors computes
		}
	default:
		return false
	}
	return becomesTensor(pkg, map[types.Object]bool{v: true}, l) || isWhole(v.Type()) && isFed(pkg, e, l)
}

// isWhole reports whether t is an integer, or a list of integers.
func isWhole(t types.Type) bool {
	if elem := syntax.ElementType(t); elem != nil {
		t = elem
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// isSpoken reports whether the value at p becomes a word that a reader at a terminal sees at once, and l computes its
// next tensor from e, of which it is the value: a text that is written word by word.
//
//	fmt.Print(words[token.ItemInt()], " ")
//	x = model.Forward(token)
func isSpoken(pkg *blocking.Package, p Place, e ast.Expr, l *blocking.Loop) bool {
	if !isFed(pkg, e, l) {
		return false
	}
	text, ok := becomesText(pkg, p)
	if !ok {
		c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
		return c != nil && showsAtOnce(c) && slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool {
			v := pkg.Info.Types[e].Value
			return v != nil && strings.Contains(v.String(), "%c")
		})
	}
	switch n := text.Parent().Node().(type) {
	case *ast.SendStmt:
		return true
	case *ast.CallExpr:
		if fn := pkg.Variable(n.Fun); fn != nil && syntax.IsFunc(fn.Type()) && (pkg.Params[fn].Of != nil || fn.IsField()) {
			return true
		}
	}
	return pkg.Any(l, showsAtOnce)
}

// becomesText reports whether the value at p chooses a string, or a function makes one of it that doesn't format
// numbers, as by an alphabet. It returns where the string is.
func becomesText(pkg *blocking.Package, p Place) (text inspector.Cursor, ok bool) {
	for cur := range p.Cur.Enclosing() {
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			if c := pkg.Calls[n]; c != nil && cur != p.Cur {
				if _, prints := c.Printer(); prints || c.API.Kind != tensorapi.Unknown && c.API.Kind != tensorapi.Pure {
					return cur, false
				}
			}
		case *ast.IndexExpr, *ast.Ident, *ast.ParenExpr, *ast.SelectorExpr, *ast.CompositeLit:
		default:
			return cur, false
		}
		if basic, ok := typeOf(pkg, nodeOf(cur)).Underlying().(*types.Basic); ok && basic.Info()&types.IsString != 0 {
			return cur, true
		}
	}
	return p.Cur, false
}

// isFed reports whether l computes its next tensor from e, a variable, and doesn't train.
func isFed(pkg *blocking.Package, e ast.Expr, l *blocking.Loop) bool {
	token := pkg.Local(syntax.OrNil(e))
	if token == nil || pkg.Any(l, (*blocking.Call).Mutates) {
		return false
	}
	for v, defs := range pkg.Defs {
		if blocking.IsTensor(v.Type()) && !l.Declares(v) && (v == token || slices.ContainsFunc(defs, func(d blocking.Def) bool {
			return d.Value != nil && pkg.Contains(l, d.In, d.Pos) && pkg.Mentions(d.Value, token)
		})) {
			return true
		}
	}
	return false
}

// showsAtOnce recognises calls that bring what is written to a reader: prints on the terminal, and Flush of a buffer.
func showsAtOnce(c *blocking.Call) bool {
	fn := c.Callee
	if fn == nil || fn.Pkg() == nil {
		return false
	}
	switch fn.Pkg().Path() {
	case "bufio":
		return fn.Name() == "Flush"
	case "fmt":
		return strings.HasPrefix(fn.Name(), "Print") || strings.HasPrefix(fn.Name(), "Fprint") && isTerminal(c.Expr.Args[0])
	case "os", "io":
		return fn.Name() == "WriteString" && slices.ContainsFunc(c.AllOperands(), isTerminal)
	}
	return false
}

// isTerminal recognises os.Stdout and os.Stderr.
func isTerminal(e ast.Expr) bool {
	name := types.ExprString(e)
	return name == "os.Stdout" || name == "os.Stderr"
}

// feeds reports whether the value at p is kept, and l makes its next tensor of what it is kept in.
//
//	next := scores(tensor.From(tokens)).ArgMax(0).ItemInt()
//	tokens = append(tokens, next)
func feeds(pkg *blocking.Package, p Place, l *blocking.Loop) bool {
	if p.Use != Kept {
		return false
	}
	vars := make(map[types.Object]bool)
	addAssigned(pkg, p, vars, isNumbers)
	return len(vars) > 0 && becomesTensor(pkg, vars, l)
}

// addAssigned adds to vars the variables that the statement around p assigns, of the types that are asked for.
func addAssigned(pkg *blocking.Package, p Place, vars map[types.Object]bool, of func(types.Type) bool) {
	for cur := range p.Cur.Enclosing((*ast.AssignStmt)(nil), (*ast.FuncLit)(nil)) {
		if n, ok := cur.Node().(*ast.AssignStmt); ok {
			for _, lhs := range n.Lhs {
				if v := pkg.Variable(lhs); v != nil && syntax.IsIdent(lhs) && of(v.Type()) {
					vars[v] = true
				}
			}
		}
		return
	}
}

// valueOf returns the expression at p, without conversions and calls that only compute, and the only element of a list.
func valueOf(p Place) ast.Expr {
	pkg := p.in.Package
	e, _ := p.Cur.Node().(ast.Expr)
	for {
		if lit, ok := e.(*ast.CompositeLit); ok && len(lit.Elts) == 1 {
			e = lit.Elts[0]
		}
		call := syntax.AsCall(syntax.OrNil(e))
		if call == nil || len(call.Args) != 1 {
			return syntax.OrNil(e)
		}
		if c := pkg.Calls[call]; !pkg.Info.Types[call.Fun].IsType() && (c == nil || c.API.Kind != tensorapi.Pure) {
			return e
		}
		e = call.Args[0]
	}
}

// answersInput reports whether l takes data, and no tensors, from a channel, and passes each value on: it is sent,
// perhaps with what it is for, or given to a function. Somebody waits for each, as for the result of a job.
func answersInput(pkg *blocking.Package, places []Place, l *blocking.Loop) bool {
	if len(places) == 0 || pkg.Any(l, (*blocking.Call).Mutates) || !TakesData(pkg, l) {
		return false
	}
	return !slices.ContainsFunc(places, func(p Place) bool { return p.Use != Passed && !isSent(p) && !isText(pkg, p) })
}

// isText reports whether the value at p becomes a part of a text.
func isText(pkg *blocking.Package, p Place) bool {
	c := pkg.Calls[syntax.AsCall(nodeOf(p.Cur.Parent()))]
	return p.Use == Printed && c != nil && c.Callee != nil && strings.HasPrefix(c.Callee.Name(), "Sprint")
}

// nodeOf returns the expression at cur, or something that is none.
func nodeOf(cur inspector.Cursor) ast.Expr {
	e, _ := cur.Node().(ast.Expr)
	return syntax.OrNil(e)
}

// isSent reports whether the value at p is sent on a channel, as a part of something.
func isSent(p Place) bool {
	for cur := range p.Cur.Enclosing() {
		switch cur.Node().(type) {
		case *ast.SendStmt:
			return true
		case *ast.CompositeLit, *ast.KeyValueExpr, *ast.UnaryExpr, *ast.ParenExpr, *ast.Ident, *ast.CallExpr, *ast.BinaryExpr:
		default:
			return false
		}
	}
	return false
}

// TakesData reports whether l receives what holds no tensors, and is no signal.
func TakesData(pkg *blocking.Package, l *blocking.Loop) bool {
	isData := func(ch ast.Expr) bool {
		t, ok := pkg.Info.TypeOf(ch).Underlying().(*types.Chan)
		if !ok {
			return false
		}
		s, isStruct := t.Elem().Underlying().(*types.Struct)
		return !pkg.HoldsTensors(t.Elem()) && !(isStruct && s.NumFields() == 0)
	}
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		return isData(s.X)
	}
	return slices.ContainsFunc(ReceivesOf(pkg, l), func(e *ast.UnaryExpr) bool { return isData(e.X) })
}

// becomesTensor reports whether l makes a tensor of what is in one of the variables, directly or by way of others.
func becomesTensor(pkg *blocking.Package, vars map[types.Object]bool, l *blocking.Loop) bool {
	for grown := true; grown; {
		grown = false
		for v, defs := range pkg.Defs {
			if !vars[v] && isNumbers(v.Type()) && slices.ContainsFunc(defs, func(d blocking.Def) bool {
				return d.Value != nil && pkg.Contains(l, d.In, d.Pos) && pkg.MentionsAny(d.Value, vars)
			}) {
				vars[v], grown = true, true
			}
		}
	}
	return pkg.Any(l, func(c *blocking.Call) bool {
		return makesTensors(c) && slices.ContainsFunc(c.Expr.Args, func(e ast.Expr) bool { return pkg.MentionsAny(e, vars) })
	})
}

// makesTensors reports whether c makes a tensor of host data, by itself or in a function that computes with it.
func makesTensors(c *blocking.Call) bool {
	return c.API.Kind == tensorapi.Host || c.API.Kind == tensorapi.Unknown && c.Enqueues()
}

// takesInput reports whether l receives tensors for which others have enqueued the work.
func takesInput(pkg *blocking.Package, l *blocking.Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok && syntax.IsChan(pkg.Info.TypeOf(s.X)) {
		return pkg.IsInput(s.X, l.Func)
	}
	return slices.ContainsFunc(ReceivesOf(pkg, l), func(e *ast.UnaryExpr) bool { return pkg.IsInput(e.X, l.Func) })
}

// ReceivesOf lists the expressions in l that receive from channels.
func ReceivesOf(pkg *blocking.Package, l *blocking.Loop) []*ast.UnaryExpr {
	var list []*ast.UnaryExpr
	for cur := range l.Func.Cur.Preorder((*ast.UnaryExpr)(nil)) {
		n := cur.Node().(*ast.UnaryExpr)
		pos := n.Pos()
		if assign, ok := cur.Parent().Node().(*ast.AssignStmt); ok {
			pos = assign.Lhs[0].Pos()
		}
		if f := pkg.FuncAt(cur); n.Op == token.ARROW && f != nil && pkg.Contains(l, f, pos) {
			list = append(list, n)
		}
	}
	return list
}

// Receives reports whether l takes what it works on from a channel.
func Receives(pkg *blocking.Package, l *blocking.Loop) bool {
	if s, ok := l.Stmt.(*ast.RangeStmt); ok {
		return syntax.IsChan(pkg.Info.TypeOf(s.X))
	}
	return len(ReceivesOf(pkg, l)) > 0
}

// IsPaced reports whether a clock says when the next iteration of l begins: l receives from a
// time.Ticker or the like before it does anything else.
func IsPaced(pkg *blocking.Package, l *blocking.Loop) bool {
	switch s := l.Stmt.(type) {
	case *ast.RangeStmt:
		ch, ok := pkg.Info.TypeOf(s.X).Underlying().(*types.Chan)
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
		return ok && u.Op == token.ARROW && isTimeType(pkg.Info.TypeOf(u))
	}
	return false
}

// isTimeType reports whether t is time.Time.
func isTimeType(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "time" && named.Obj().Name() == "Time"
}

// IsStreamed recognises calls that send what was written to somebody at once, such as
// http.Flusher.Flush. A reader wants to see each value as soon as it is there.
func IsStreamed(c *blocking.Call) bool {
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
		return strings.HasPrefix(fn.Name(), "Fprint") && isConn(c.In.Package.Info.TypeOf(c.Expr.Args[0])) ||
			fn.Name() == "WriteString" && isConn(c.In.Package.Info.TypeOf(c.Expr.Args[0]))
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
