package plan

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// A Lift is a function that looks at values only to make its results, and does
// so last. It is divided: a variant of it does what comes before, and returns
// a function that does the rest when the values have arrived.
type Lift struct {
	Name     string // of the variant
	Param    string // its first parameter, the Later for which it reads
	Function *Function
	Rest     *Group   // the last statements; of no statements if the body ends with a return in Returns
	Returns  []*Group // the returns before them, one statement each

	Ahead *Effects // of what the variant does
	Late  *Effects // of the rest
}

// Groups calls yield for the groups of l in source order.
func (l *Lift) Groups(yield func(*Group) bool) {
	for _, g := range l.Returns {
		if !yield(g) {
			return
		}
	}
	if len(l.Rest.Stmts) > 0 {
		yield(l.Rest)
	}
}

// lifting is the outcome of an attempt to divide a function.
type lifting struct {
	lift *Lift
	why  *Cause // why not, in the function; nil if it has no waits
}

// Lift divides fn. If it can't be, why says what in it is in the way; both
// are nil if there is nothing to gain.
func (a *Analysis) Lift(fn *types.Func) (l *Lift, why *Cause) {
	fn = fn.Origin()
	if done, ok := a.lifts[fn]; ok {
		return done.lift, done.why
	}
	a.lifts[fn] = lifting{} // it calls itself: the inner call waits
	body, ok := a.Program.Body(fn)
	if !ok || body.Stub || a.Summary(fn).Waits == nil {
		return nil, nil
	}
	d := &divider{f: a.Function(body.Pkg, body.Decl)}
	d.f.Lifts = true
	l, why = d.divide(a.variantName(body))
	a.lifts[fn] = lifting{l, why}
	return l, why
}

// variantName is a name that nothing in the package of body is called by.
func (a *Analysis) variantName(body *load.Body) string {
	taken := a.idents[body.Pkg]
	if taken == nil {
		taken = make(map[string]bool)
		for _, file := range body.Pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					taken[id.Name] = true
				}
				return true
			})
		}
		a.idents[body.Pkg] = taken
	}
	return free(taken, body.Decl.Name.Name+"Later")
}

// free returns name, or the first of name2, name3, … that is not taken, and takes it.
func free(taken map[string]bool, name string) string {
	got := name
	for i := 2; taken[got]; i++ {
		got = fmt.Sprintf("%s%d", name, i)
	}
	taken[got] = true
	return got
}

// A divider divides one function.
type divider struct {
	f     *Function
	stmts []*Stmt // of the body
	ahead *Effects
	late  *Effects
}

func (d *divider) divide(name string) (*Lift, *Cause) {
	f := d.f
	if f.hasDefer {
		return nil, &Cause{Pos: f.Decl.Pos(), Text: "defers a call, which would run before the values are there"}
	}
	if g := f.Goto(); g != nil {
		return nil, g
	}
	d.stmts = f.list(f.Decl.Body.List, nil)
	d.ahead, d.late = &Effects{}, &Effects{}
	l := &Lift{Name: name, Function: f, Rest: &Group{Names: make(map[*Read]string)}}
	first := d.first()
	for _, s := range d.stmts[:first] {
		for c := range s.All {
			if _, ok := c.Node.(*ast.ReturnStmt); ok {
				l.Returns = append(l.Returns, &Group{Stmts: []*Stmt{c}, Names: make(map[*Read]string)})
				continue
			}
			d.ahead.add(c.Head)
		}
	}
	for _, c := range []*Cause{d.ahead.Clock, d.ahead.Polls} {
		if c != nil {
			return nil, c
		}
	}
	l.Rest.Stmts = d.stmts[first:]
	for g := range l.Groups {
		if why := d.group(g); why != nil {
			return nil, why
		}
	}
	if why := d.results(first); why != nil {
		return nil, why
	}
	outside := func(loc Loc) bool { return (loc.Kind == Var || loc.Kind == Own) && f.isLocal(loc.Obj) }
	l.Ahead, l.Late = d.ahead.outside(outside), d.late.outside(outside)
	return l, nil
}

// first returns the index of the first statement that has to wait for values,
// or of one before it: what is on the host alone, and others can see, goes with them.
func (d *divider) first() int {
	first := slices.IndexFunc(d.stmts, func(s *Stmt) bool {
		for c := range s.All {
			if _, ok := c.Node.(*ast.ReturnStmt); !ok && (len(c.Reads) > 0 || c.Head.Waits != nil) || ok && c == s {
				return true
			}
		}
		return false
	})
	if first < 0 {
		return len(d.stmts)
	}
	found := first
	for i := first - 1; i >= 0; i-- {
		e, _ := d.stmts[i].Total()
		if d.onDevice(e) != nil || Leaves(d.stmts[i].Node) != nil {
			break
		}
		if d.shows(e) {
			found = i
		}
	}
	return found
}

// onDevice returns why code with the effects e can't come later.
func (d *divider) onDevice(e *Effects) *Cause {
	for _, c := range []*Cause{e.Barrier, e.Waits, e.Leaves, e.Enqueues, e.Clock, e.Polls} {
		if c != nil {
			return c
		}
	}
	for _, set := range []locSet{e.Reads, e.Writes} {
		if c, ok := set[Loc{Kind: Cells}]; ok {
			return &c
		}
	}
	return nil
}

// shows reports whether e changes what others can see.
func (d *divider) shows(e *Effects) bool {
	for l := range e.Writes {
		if l.Kind == World || l.IsMemory() || (l.Kind == Var || l.Kind == Own) && d.f.Visible(l.Obj) {
			return true
		}
	}
	return false
}

// group checks that the statements of g can come later, and finds what they read.
func (d *divider) group(g *Group) *Cause {
	before := &Effects{} // of the statements so far
	simple := true       // they only keep values
	for _, s := range g.Stmts {
		e, reads := s.Total()
		if why := d.onDevice(e); why != nil {
			return why
		}
		for _, r := range reads {
			if why := d.operand(g, s, r, before, simple); why != nil {
				return why
			}
			d.ahead.add(r.Effects)
			g.Takes = append(g.Takes, Take{Read: r})
		}
		before.add(e)
		d.late.add(e)
		simple = simple && isKeep(s)
	}
	return nil
}

// operand checks that the operand of r, in the statement s of g, can be evaluated
// before the statements of g run; before is what those in front of s do.
func (d *divider) operand(g *Group, s *Stmt, r *Read, before *Effects, simple bool) *Cause {
	if why := d.onDeviceOnly(r.Effects); why != nil {
		return why
	}
	if c := conflicts(before, r.Effects); len(c) > 0 {
		return &Cause{Pos: r.Operand.Pos(), Text: "computes a tensor with a value", Code: FeedsDevice}
	}
	if r.Plain != nil {
		for _, o := range g.Stmts {
			e, _ := o.Total()
			_, writes := e.Writes[Loc{Kind: Var, Obj: r.Plain}]
			if writes || o.Node.Pos() <= r.Plain.Pos() && r.Plain.Pos() < o.Node.End() {
				return &Cause{Pos: r.Operand.Pos(), Text: "sets " + r.Plain.Name() + " among what needs values", Code: Entangled}
			}
		}
		return nil
	}
	if !simple || !d.f.AlwaysFirst(r.Expr, s.Inner()) || d.callsBefore(s, r) {
		return &Cause{Pos: r.Operand.Pos(), Text: "computes " + text(r.Operand) + " in the middle of what needs values", Code: Entangled}
	}
	return nil
}

// onDeviceOnly returns why an operand with the effects e can't be evaluated ahead.
func (d *divider) onDeviceOnly(e *Effects) *Cause {
	for _, c := range []*Cause{e.Barrier, e.Waits, e.Leaves} {
		if c != nil {
			return c
		}
	}
	return nil
}

// callsBefore reports whether s calls something with effects before it evaluates the operand of r.
func (d *divider) callsBefore(s *Stmt, r *Read) (found bool) {
	ast.Inspect(s.Node, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		if slices.ContainsFunc(s.Reads, func(o *Read) bool { return o.Expr == call }) {
			return false
		}
		found = call.End() <= r.Operand.Pos() && len(d.f.walk(call, nil).Writes) > 0
		return !found
	})
	return found
}

// isKeep reports whether s does no more than give variables the values of reads.
func isKeep(s *Stmt) bool {
	a, ok := s.Inner().(*ast.AssignStmt)
	if !ok || a.Tok != token.DEFINE && a.Tok != token.ASSIGN {
		return false
	}
	for _, rhs := range a.Rhs {
		if !slices.ContainsFunc(s.Reads, func(r *Read) bool { return r.Expr == ast.Unparen(rhs) }) {
			return false
		}
	}
	for _, lhs := range a.Lhs {
		if _, ok := ast.Unparen(lhs).(*ast.Ident); !ok {
			return false
		}
	}
	return true
}

// results checks that named results are set among the last statements alone,
// which are in a function with results of its own.
func (d *divider) results(first int) (why *Cause) {
	for _, s := range d.stmts[:first] {
		ast.Inspect(s.Node, func(n ast.Node) bool {
			if _, ok := n.(*ast.ReturnStmt); ok && why == nil {
				if len(n.(*ast.ReturnStmt).Results) > 0 {
					return true
				}
			}
			if id, ok := n.(*ast.Ident); ok && why == nil {
				if v := d.f.variable(id); v != nil && d.f.facts[v] != nil && d.f.facts[v].isResult {
					why = &Cause{Pos: id.Pos(), Text: "sets the result " + id.Name + " before the values are there", Code: Entangled}
				}
			}
			return true
		})
	}
	return why
}

// lifted walks a call of a function that is divided: the variant is called in
// place, and what it returns where the call stands.
func (w *walker) lifted(l *Lift, fn *types.Func, call *ast.CallExpr) {
	args := w.outer()
	args.e = &Effects{}
	args.operands(call)
	args.e.addCall(l.Ahead, call.Pos(), name(fn))
	w.e.addCall(l.Late, call.Pos(), name(fn))
	*w.reads = append(*w.reads, &Read{Expr: call, Operand: call, Lift: l, Effects: args.e})
}
