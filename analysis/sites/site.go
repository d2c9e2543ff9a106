package sites

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

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

// looped returns c as a site, or nil. Its callee calls, in a loop, a function that c passes, and this
// function waits for work that the two enqueue, or the callee waits for what the function returns.
func looped(pkg *blocking.Package, c *blocking.Call) *Site {
	for i := range c.FuncArgs {
		arg := &c.FuncArgs[i]
		s := arg.Summary()
		compares := syntax.IsSorter(c.Callee)
		if cb := c.Callback(arg.No); cb != nil && cb.Slow {
			continue // at the end of an epoch
		}
		if c.CallsArg(arg.No) != tensorapi.Loop || !s.Enqueues && !c.Summary().Enqueues && !compares || s.Trains {
			continue
		}
		for _, w := range s.Waits {
			if pending, _ := pkg.HandedOperand(c, arg, w.Operand); !pending && !compares || w.InLoop || w.Guarded {
				continue
			}
			name := types.ExprString(arg.Expr)
			return handedSite(c, arg.Expr.Pos(), name, w.Chain)
		}
	}
	for _, w := range pkg.Waits(c) {
		if w.Open && w.Operand == nil && w.Via.InLoop && !w.Via.Guarded {
			return handedSite(c, c.Expr.Pos(), blocking.CalleeName(c), w.Via.Chain)
		}
	}
	return nil
}

// handedSite returns the site of c, whose callee calls the function at pos in a loop and waits by way of chain.
func handedSite(c *blocking.Call, pos token.Pos, name string, chain []blocking.Link) *Site {
	return &Site{
		Call: c.Expr, Cur: c.Cur, Kind: blocking.WaitCallee, Name: name, Callee: name, Chain: chain, In: c.In, At: c,
		Loop:  &blocking.Loop{Pos: pos, Func: c.In, Handed: true},
		Uses:  Passed,
		Timed: c.In.Outermost().Contains(blocking.TellsTime),
	}
}

// site returns the site that c is, or nil.
func site(pkg *blocking.Package, c *blocking.Call) *Site {
	number, why := waitedNumber(pkg, c)
	for _, w := range append(pkg.Waits(c), number...) {
		if IsOwnPace(c, w) && !isBesideStep(pkg, c, w) && !isGivenBack(pkg, c, w) {
			continue
		}
		l := hotLoop(pkg, c, w)
		if l == nil || pkg.GuardOf(c.In, c.Expr.Pos(), l) == blocking.Rarely || WaitedBefore(pkg, c, w.Operand, l) || isRequested(pkg, c, w.Operand, l) || w.Via != nil && takesLatency(pkg, c, l) {
			continue
		}
		s := &Site{
			Call: c.Expr, Cur: c.Cur, Kind: w.Kind, Operand: w.Operand, Loop: l, In: c.In, At: c,
			Name:    pkg.CallName(c, w),
			Outside: pkg.Any(l, func(d *blocking.Call) bool { return takesRequests(pkg, d) }) || streams(pkg, l) || convertsFiles(pkg, l) || answersAlone(pkg, c, l) || isOfHistories(pkg, l) || IsAllowed(c) || conversing.MatchString(c.In.Outermost().Name),
			Timed:   c.In.Outermost().Contains(blocking.TellsTime),
		}
		if w.Kind == blocking.WaitPrint {
			s.Uses = Printed
			s.Outside = s.Outside || isTableLine(pkg, c, l) || takesInput(pkg, l) && !pkg.Any(l, (*blocking.Call).Enqueues)
		}
		s.Outside = s.Outside || savesCollected(pkg, c, w.Operand, l) || isOverFolds(pkg, l)
		kept := false
		if w.Via != nil {
			s.Chain = w.Via.Chain
			s.Callee = pkg.CallName(c, w)
		}
		if why != "" {
			s.Outside = s.Outside || pkg.Any(l, IsOutside)
			s.Name, s.Why, s.pat = blocking.CalleeName(c), why, func() Pattern { return Reading }
			return s
		}
		if w.Kind != blocking.WaitPrint {
			s.Alarms = true
			searches, decides := true, false
			places := Uses(pkg, c, l)
			kept = len(places) > 0 && !slices.ContainsFunc(places, func(p Place) bool { return !isKept(pkg, p) })
			s.Outside = s.Outside || answersInput(pkg, places, l) || isTable(pkg, places, l)
			for _, p := range places {
				decides = decides || p.Use == Decides
				searches = searches && p.Use == Decides && isInSearch(pkg, p)
				s.Alarms = s.Alarms && (p.Use != Decides || p.Alarm)
				if send, ok := p.Cur.Parent().Node().(*ast.SendStmt); ok && Receives(pkg, l) && (pkg.Varies(send.Chan, l) || !pkg.Any(l, (*blocking.Call).Enqueues)) {
					s.Outside = true // a client waits, with a channel of its own, or to read is all that the loop does
				}
				s.Outside = s.Outside || isAwaited(pkg, p, w.Operand, l)
				s.Feeds = s.Feeds || feeds(pkg, p, l)
				if pkg.GuardOf(p.in, p.Pos, l) == blocking.Rarely {
					s.Rare |= p.Use
				} else {
					s.Uses |= p.Use
				}
			}
			s.Outside = s.Outside || decides && (searches || !s.Alarms && isCascade(pkg, l)) || s.Uses == Passed && takesInput(pkg, l) && !pkg.Any(l, (*blocking.Call).Enqueues)
		}
		s.Outside = s.Outside || s.Uses == Printed && isReport(pkg, l)
		s.Outside = s.Outside || pkg.Any(l, IsOutside) && !(kept && readsFiles(pkg, l))
		s.Outside = s.Outside && (IsAllowed(c) || !answersSingly(pkg, c, l))
		if s.Uses&Computes == 0 && (pkg.Any(l, func(d *blocking.Call) bool { return d != c && plays(pkg, d, 0) }) || actsWithin(pkg, l, c)) {
			continue
		}
		return s
	}
	return nil
}

// isReport reports whether l goes over the parameters of a network, and is a part of what a loop around it does rarely:
// it prints a line for each of them every so many steps.
func isReport(pkg *blocking.Package, l *blocking.Loop) bool {
	s, ok := l.Stmt.(*ast.RangeStmt)
	return ok && pkg.IsCell(blocking.Iterated(typeOf(pkg, s.X))) && pkg.GuardOfLoop(l) == blocking.Rarely
}

// isAwaited reports whether somebody waits for the value at p, which is read from e, in each iteration of l: the world,
// a reader, or the host, which goes on from it.
func isAwaited(pkg *blocking.Package, p Place, e ast.Expr, l *blocking.Loop) bool {
	return isSimulated(pkg, p, l) || isFedBack(pkg, p, e, l) || isHeard(pkg, p, e, l) || isActedOn(pkg, p, l) || isSpoken(pkg, p, e, l) || leadsOn(pkg, p, l) || isRanked(pkg, p, l) || isLive(pkg, p, l)
}

// runsAtEnd reports whether c is deferred in a literal that is called on the spot. It runs where that ends.
func runsAtEnd(c *blocking.Call) bool {
	_, ok := c.Cur.Parent().Node().(*ast.DeferStmt)
	h := c.In.Runs()
	return ok && (h == blocking.Once || h == blocking.Looping)
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

// nodeOf returns the expression at cur, or something that is none.
func nodeOf(cur inspector.Cursor) ast.Expr {
	e, _ := cur.Node().(ast.Expr)
	return syntax.OrNil(e)
}
