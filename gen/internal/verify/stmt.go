package verify

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/types/typeutil"
)

// A frame is a call that is being executed.
type frame struct {
	*run
	fn       *Func
	results  []*cell
	deferred []func()
	env      *env
}

// A way says how control leaves a statement.
type way struct {
	kind  token.Token // 0: to the next one; BREAK, CONTINUE, RETURN
	label string
}

var onwards = way{}

// call executes c with arguments.
func (r *run) call(c *closure, args []value) (result value) {
	if r.depth++; r.depth > maxDepth {
		panic(cut{})
	}
	defer func() { r.depth-- }()
	f := &frame{run: r, fn: c.fn, env: &env{nil, c.env}}
	i := 0
	for _, field := range c.typ.Params.List {
		t := c.fn.Info.TypeOf(field.Type)
		_, isRest := field.Type.(*ast.Ellipsis)
		for _, name := range field.Names {
			f.declare(name, t, args[i])
			i++
		}
		if len(field.Names) == 0 {
			i++
		}
		if isRest && i < len(args) {
			panic(stop{"variable arguments"})
		}
	}
	if c.typ.Results != nil {
		for _, field := range c.typ.Results.List {
			t := c.fn.Info.TypeOf(field.Type)
			for _, name := range field.Names {
				f.results = append(f.results, f.declare(name, t, r.zero(t)))
			}
			if len(field.Names) == 0 {
				f.results = append(f.results, &cell{v: r.zero(t), typ: t})
			}
		}
	}
	f.run.body(f, c.body)
	return f.result()
}

// result is what the call returns.
func (f *frame) result() value {
	switch len(f.results) {
	case 0:
		return nil
	case 1:
		return f.get(f.results[0])
	}
	var all tuple
	for _, c := range f.results {
		all = append(all, f.get(c))
	}
	return all
}

// body executes the body of a function, and then what it has deferred, also if it panics.
func (r *run) body(f *frame, body *ast.BlockStmt) {
	defer func() {
		p := recover()
		if _, isRaise := p.(raise); p != nil && !isRaise {
			panic(p)
		}
		for len(f.deferred) > 0 {
			last := f.deferred[len(f.deferred)-1]
			f.deferred = f.deferred[:len(f.deferred)-1]
			outer := r.panicking
			if p != nil {
				q := p.(raise)
				r.panicking = &q
			} else {
				r.panicking = nil
			}
			q := caught(last)
			if p != nil && r.panicking == nil {
				p = nil // recovered
			}
			if r.panicking = outer; q != nil {
				p = q
			}
		}
		if p != nil {
			panic(p)
		}
	}()
	f.block(body.List)
}

// caught calls f and returns the panic of the program in it.
func caught(f func()) (p any) {
	defer func() {
		if p = recover(); p != nil {
			if _, isRaise := p.(raise); !isRaise {
				panic(p)
			}
		}
	}()
	f()
	return nil
}

func (f *frame) stop(n ast.Node, why string) { f.stopf(n, f.fn, why) }

func (f *frame) declare(id *ast.Ident, t types.Type, v value) *cell {
	c := &cell{v: clone(v), typ: t}
	if obj := f.fn.Info.Defs[id]; obj != nil {
		f.env.vars = append(f.env.vars, variable{obj, c})
	}
	return c
}

// scope executes g in a scope of its own. A panic leaves the scope as it is: see rangeFunc.
func (f *frame) scope(g func() way) way {
	outer := f.env
	f.env = &env{nil, outer}
	w := g()
	f.env = outer
	return w
}

func (f *frame) block(list []ast.Stmt) way {
	outer := f.env
	f.env = &env{nil, outer}
	w := onwards
	for _, s := range list {
		if w = f.stmt(s, ""); w != onwards {
			break
		}
	}
	f.env = outer
	return w
}

func (f *frame) stmt(s ast.Stmt, label string) way {
	f.step()
	if !f.known[s] {
		f.covered[s] = true
	}
	switch s := s.(type) {
	case nil, *ast.EmptyStmt:
	case *ast.BlockStmt:
		return f.block(s.List)
	case *ast.ExprStmt:
		f.expr(s.X)
	case *ast.AssignStmt:
		f.assign(s)
	case *ast.IncDecStmt:
		p := f.place(s.X)
		op := token.ADD
		if s.Tok == token.DEC {
			op = token.SUB
		}
		f.write(p, f.ts.binary(op, kindOf(f.typeOf(s.X)), f.term(f.read(p)), f.ts.int(1)))
	case *ast.DeclStmt:
		f.decl(s.Decl.(*ast.GenDecl))
	case *ast.LabeledStmt:
		return f.stmt(s.Stmt, s.Label.Name)
	case *ast.ReturnStmt:
		return f.returns(s)
	case *ast.BranchStmt:
		w := way{kind: s.Tok}
		if s.Label != nil {
			w.label = s.Label.Name
		}
		if s.Tok == token.GOTO {
			f.stop(s, s.Tok.String())
		}
		return w
	case *ast.IfStmt:
		return f.scope(func() way {
			f.stmt(s.Init, "")
			if f.decide(f.term(f.expr(s.Cond))) {
				return f.block(s.Body.List)
			}
			return f.stmt(s.Else, "")
		})
	case *ast.ForStmt:
		return f.forLoop(s, label)
	case *ast.RangeStmt:
		return f.rangeLoop(s, label)
	case *ast.SwitchStmt:
		return f.switches(s, label)
	case *ast.TypeSwitchStmt:
		return f.typeSwitch(s, label)
	case *ast.DeferStmt:
		f.defers(s)
	case *ast.SelectStmt:
		return f.selects(s, label)
	case *ast.SendStmt:
		f.channel("send", s.Chan, s.Value)
	case *ast.GoStmt:
		var ts []*term
		for _, v := range append(f.exprs(s.Call.Args), f.expr(s.Call.Fun)) {
			ts = append(ts, f.kept(v))
		}
		f.unknown("go", ts)
	default:
		f.stop(s, "a statement that is not interpreted")
	}
	return onwards
}

func (f *frame) returns(s *ast.ReturnStmt) way {
	var vs []value
	if len(s.Results) == 1 && len(f.results) > 1 {
		vs = f.several(f.expr(s.Results[0]), len(f.results))
	} else {
		for _, e := range s.Results {
			vs = append(vs, f.expr(e))
		}
	}
	for i, v := range vs {
		f.set(f.results[i], v)
	}
	return way{kind: token.RETURN}
}

// several takes the results of a call apart.
func (f *frame) several(v value, n int) []value {
	if all, ok := v.(tuple); ok {
		return all
	}
	vs := make([]value, n)
	for i := range vs {
		vs[i] = f.ts.of("result", f.termOf(v), f.ts.int(i))
	}
	return vs
}

func (f *frame) assign(s *ast.AssignStmt) {
	if s.Tok != token.ASSIGN && s.Tok != token.DEFINE {
		op := s.Tok - (token.ADD_ASSIGN - token.ADD)
		left := f.left(s.Lhs[0])
		var y *term
		if calls(s.Rhs[0]) {
			y = f.term(f.expr(s.Rhs[0]))
		}
		p := left.place()
		x := f.term(f.read(p))
		if y == nil {
			y = f.term(f.expr(s.Rhs[0]))
		}
		f.write(p, f.arithmetic(op, f.typeOf(s.Lhs[0]), x, y, s.Rhs[0]))
		return
	}
	var places []leftSide
	if s.Tok == token.ASSIGN {
		for _, l := range s.Lhs {
			places = append(places, f.left(l))
		}
	}
	var vs []value
	if len(s.Rhs) == len(s.Lhs) {
		for _, e := range s.Rhs {
			vs = append(vs, clone(f.expr(e)))
		}
	} else {
		vs = f.several(f.commaOK(s.Rhs[0]), len(s.Lhs))
	}
	for i, l := range s.Lhs {
		if s.Tok == token.ASSIGN {
			f.write(places[i].place(), vs[i])
			continue
		}
		id := l.(*ast.Ident)
		if obj := f.fn.Info.Defs[id]; obj != nil {
			f.declare(id, obj.Type(), vs[i])
		} else if id.Name != "_" {
			f.write(f.place(l), vs[i])
		}
	}
}

// A leftSide is the left side of an assignment. Go makes the calls on both sides first, in order. Only then does it
// find a nil pointer or an index out of range: place panics.
type leftSide struct {
	p    *place
	late any
}

func (l leftSide) place() *place {
	if l.late != nil {
		panic(l.late)
	}
	return l.p
}

// left evaluates the left side of an assignment.
func (f *frame) left(e ast.Expr) (l leftSide) {
	if _, ok := e.(*ast.Ident); ok {
		return leftSide{p: f.place(e)}
	}
	l.late = caught(func() { l.p = f.place(e) })
	if r, ok := l.late.(raise); ok && r.v.op != failsNil && r.v.op != failsIndex {
		panic(l.late)
	}
	return l
}

func (f *frame) decl(d *ast.GenDecl) {
	if d.Tok != token.VAR {
		return
	}
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		var vs []value
		if len(s.Values) == len(s.Names) {
			for _, e := range s.Values {
				vs = append(vs, f.expr(e))
			}
		} else if len(s.Values) == 1 {
			vs = f.several(f.commaOK(s.Values[0]), len(s.Names))
		}
		for i, id := range s.Names {
			obj := f.fn.Info.Defs[id]
			if obj == nil {
				continue
			}
			if vs == nil {
				f.declare(id, obj.Type(), f.zero(obj.Type()))
			} else {
				f.declare(id, obj.Type(), vs[i])
			}
		}
	}
}

// left says how a loop goes on after an iteration: whether it ends, and how control leaves it then.
func left(w way, label string) (ends bool, out way) {
	switch {
	case w == onwards:
		return false, onwards
	case w.kind == token.CONTINUE && (w.label == "" || w.label == label):
		return false, onwards
	case w.kind == token.BREAK && (w.label == "" || w.label == label):
		return true, onwards
	}
	return true, w
}

// polled executes what a select statement that does not wait receives: what has come meanwhile, the n-th time.
func (f *frame) polled(s ast.Stmt, n *term) {
	if !f.known[s] {
		f.covered[s] = true
	}
	switch s := s.(type) {
	case *ast.ExprStmt:
		f.expr(ast.Unparen(s.X).(*ast.UnaryExpr).X)
		return
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			ch := f.term(f.expr(ast.Unparen(s.Rhs[0]).(*ast.UnaryExpr).X))
			for i, l := range s.Lhs {
				if id := l.(*ast.Ident); f.fn.Info.Defs[id] != nil {
					f.declare(id, f.fn.Info.Defs[id].Type(), f.ts.of("received", ch, n, f.ts.int(i)))
				}
			}
			return
		}
	}
	f.stmt(s, "")
}

func (f *frame) switches(s *ast.SwitchStmt, label string) way {
	return f.scope(func() way {
		f.stmt(s.Init, "")
		var tag value = f.ts.bool(true)
		kind := "bool"
		if s.Tag != nil {
			tag, kind = f.expr(s.Tag), kindOf(f.typeOf(s.Tag))
		}
		var chosen, otherwise *ast.CaseClause
		for _, c := range s.Body.List {
			c := c.(*ast.CaseClause)
			if c.List == nil {
				otherwise = c
			}
			for _, e := range c.List {
				if chosen != nil {
					break
				}
				v := f.expr(e)
				is := f.term(v)
				if s.Tag != nil {
					is = f.compared(tag, v, kind)
				}
				if f.decide(is) {
					chosen = c
				}
			}
		}
		if chosen == nil {
			chosen = otherwise
		}
		for {
			w := f.clause(chosen, label)
			if w.kind != token.FALLTHROUGH {
				return w
			}
			chosen = s.Body.List[slices.Index(s.Body.List, ast.Stmt(chosen))+1].(*ast.CaseClause)
		}
	})
}

// clause executes the clause of a switch that has been chosen.
func (f *frame) clause(c *ast.CaseClause, label string) way {
	if c == nil {
		return onwards
	}
	w := f.block(c.Body)
	if w.kind == token.BREAK && (w.label == "" || w.label == label) {
		return onwards
	}
	return w
}

func (f *frame) typeSwitch(s *ast.TypeSwitchStmt, label string) way {
	return f.scope(func() way {
		f.stmt(s.Init, "")
		var x ast.Expr
		switch a := s.Assign.(type) {
		case *ast.ExprStmt:
			x = a.X.(*ast.TypeAssertExpr).X
		case *ast.AssignStmt:
			x = a.Rhs[0].(*ast.TypeAssertExpr).X
		}
		v := f.expr(x)
		var chosen, otherwise *ast.CaseClause
		for _, c := range s.Body.List {
			c := c.(*ast.CaseClause)
			if c.List == nil {
				otherwise = c
			}
			for _, e := range c.List {
				if chosen == nil && f.decide(f.isType(v, f.fn.Info.Types[e])) {
					chosen = c
				}
			}
		}
		if chosen == nil {
			chosen = otherwise
		}
		if chosen == nil {
			return onwards
		}
		return f.scope(func() way {
			if obj := f.fn.Info.Implicits[chosen]; obj != nil {
				f.env.vars = append(f.env.vars, variable{obj, &cell{v: clone(v), typ: obj.Type()}})
			}
			return f.clause(chosen, label)
		})
	})
}

// isType returns whether an interface value has a type.
func (f *frame) isType(v value, tv types.TypeAndValue) *term {
	if tv.IsNil() {
		return f.compared(v, f.ts.of("nil"), "?")
	}
	return f.ts.of("is "+f.p.typeName(tv.Type), f.term(v))
}

func (f *frame) defers(s *ast.DeferStmt) {
	atEnd := func(call func()) {
		f.deferred = append(f.deferred, func() {
			if f.panicking != nil { // and then may see cells that have run ahead
				f.run.cells = f.ts.of("cells after a failure")
			}
			call()
		})
	}
	fun := ast.Unparen(s.Call.Fun)
	if sel, ok := fun.(*ast.SelectorExpr); ok {
		if m := f.fn.Info.Selections[sel]; m != nil && m.Kind() == types.MethodVal {
			recv := f.receiver(sel, m)
			if l, ok := recv.(*later); ok {
				f.deferred = append(f.deferred, func() { l.close(f.run) })
				return
			}
			fn := m.Obj().(*types.Func)
			args := f.args(s.Call, fn.Signature())
			atEnd(func() { f.callOf(fn, recv, args, s.Call) })
			return
		}
	}
	sig, ok := f.typeOf(fun).Underlying().(*types.Signature)
	if !ok {
		f.stop(s, "a deferred call that is not interpreted")
	}
	if fn, ok := typeutil.Callee(f.fn.Info, s.Call).(*types.Func); ok {
		args := f.args(s.Call, sig)
		atEnd(func() { f.callOf(fn, nil, args, s.Call) })
		return
	}
	of := f.expr(fun)
	args := f.args(s.Call, sig)
	atEnd(func() { f.apply(of, args, s.Call) })
}

// selects executes the clause of a channel that happens to be ready. With a default clause this asks what changes by
// itself; otherwise it waits for the outside.
func (f *frame) selects(s *ast.SelectStmt, label string) way {
	var otherwise *ast.CommClause
	for _, c := range s.Body.List {
		if c := c.(*ast.CommClause); c.Comm == nil {
			otherwise = c
		}
	}
	if otherwise == nil {
		f.unknown("select", nil)
	}
	f.asked["select"]++
	n := f.ts.int(f.asked["select"])
	for k, c := range s.Body.List {
		c := c.(*ast.CommClause)
		isLast := otherwise == nil && k == len(s.Body.List)-1
		if c == otherwise || !isLast && !f.decide(f.ts.of("ready", n, f.ts.int(k))) {
			continue
		}
		return f.scope(func() way {
			if otherwise == nil {
				f.stmt(c.Comm, "")
			} else {
				f.polled(c.Comm, n)
			}
			return f.clause(&ast.CaseClause{Body: c.Body}, label)
		})
	}
	return f.clause(&ast.CaseClause{Body: otherwise.Body}, label)
}
