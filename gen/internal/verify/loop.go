package verify

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/facts"
	"golang.org/x/tools/go/types/typeutil"
)

func (f *frame) forLoop(s *ast.ForStmt, label string) way {
	return f.scope(func() way {
		f.stmt(s.Init, "")
		for n := 0; ; n++ {
			if s.Cond != nil && !f.holds(s.Cond, n, isComparison(s.Cond) && !f.p.moved[s]) {
				return onwards
			}
			if s.Cond == nil && n > 100 {
				panic(cut{}) // it ends by itself, or not at all
			}
			ends, out := left(f.block(s.Body.List), label)
			if ends {
				return out
			}
			fresh := &env{slices.Clone(f.env.vars), f.env.parent} // each iteration has variables of its own
			for i, v := range fresh.vars {
				fresh.vars[i].cell = &cell{v: f.get(v.cell), typ: v.cell.typ}
			}
			f.env = fresh
			f.stmt(s.Post, "")
		}
	})
}

// holds reports whether the condition of a loop that has had n iterations is true. isShort is that of goesOn: parts of
// a condition may move into the function of an exit.
func (f *frame) holds(e ast.Expr, n int, isShort bool) bool {
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && b.Op == token.LAND {
		return f.holds(b.X, n, false) && f.holds(b.Y, n, false)
	}
	return f.goesOn(f.term(f.expr(e)), n, isShort)
}

// movedTests returns the loops of original with tests that are in no head of a loop of generated, where loops without a
// test have them in functions of exits. So they don't end early in both.
func movedTests(original, generated *ast.FuncDecl) map[*ast.ForStmt]bool {
	heads := make(map[string]bool)
	without := 0
	for _, s := range forLoops(generated) {
		if s.Cond == nil {
			without++
		} else {
			heads[types.ExprString(s.Cond)] = true
		}
	}
	moved := make(map[*ast.ForStmt]bool)
	for _, s := range forLoops(original) {
		if s.Cond == nil {
			without--
		} else if !heads[types.ExprString(s.Cond)] {
			moved[s] = true
		}
	}
	if without <= 0 {
		return nil
	}
	return moved
}

func forLoops(fn *ast.FuncDecl) (list []*ast.ForStmt) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, ok := n.(*ast.ForStmt); ok {
			list = append(list, s)
		}
		return true
	})
	return list
}

// isComparison reports whether e compares two values that are no calls.
func isComparison(e ast.Expr) bool {
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && b.Op != token.LAND && b.Op != token.LOR && !calls(b)
}

// calls reports whether there is a call in e.
func calls(e ast.Expr) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		_, isCall := n.(*ast.CallExpr)
		found = found || isCall
		return !found
	})
	return found
}

func (f *frame) rangeLoop(s *ast.RangeStmt, label string) way {
	x := f.expr(s.X)
	t := f.typeOf(s.X)
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if u.Info()&types.IsInteger != 0 {
			return f.iterate(s, label, f.term(x), nil)
		}
		x := f.term(x)
		return f.iterate(s, label, f.ts.of("runes", x), func(i *term) value { return f.ts.of("rune", x, i) })
	case *types.Slice:
		return f.iterate(s, label, f.lenOf(x, t), func(i *term) value { return f.element(x, i, u.Elem()) })
	case *types.Array:
		return f.iterate(s, label, f.ts.int(int(u.Len())), func(i *term) value { return f.elementOf(x, i) })
	case *types.Map:
		if l, ok := x.(*list); ok {
			l.mem.flatten(f.run)
		}
		m := f.mapOf(x, u)
		return f.iterate(s, label, f.ts.of("len", m), func(i *term) value { return f.ts.of("entry", m, i) })
	case *types.Signature:
		if c, ok := x.(*closure); ok {
			return f.rangeFunc(s, label, c)
		}
		if c, ok := x.(*term); ok && c.op != "nil" {
			return f.iterator(s, label, c)
		}
	case *types.Chan:
		return f.iterator(s, label, f.term(x))
	case *types.Pointer:
		a := u.Elem().Underlying().(*types.Array)
		whole := f.pointed(x, u.Elem())
		return f.iterate(s, label, f.ts.int(int(a.Len())), func(i *term) value { return f.read(&place{array: whole, index: i, typ: a.Elem()}) })
	}
	f.stop(s, "a range that is not interpreted")
	return onwards
}

// iterate executes a range loop with n iterations. For a map, at returns an entry.
func (f *frame) iterate(s *ast.RangeStmt, label string, n *term, at func(i *term) value) way {
	_, isMap := f.typeOf(s.X).Underlying().(*types.Map)
	for i := 0; ; i++ {
		f.step()
		index := f.ts.int(i)
		if !f.goesOn(f.ts.binary(token.LSS, "int", index, n), i, true) {
			return onwards
		}
		w := f.scope(func() way {
			var key value = index
			if isMap {
				key = f.ts.of("key", f.term(at(index)))
			}
			f.bind(s, s.Key, key)
			if s.Value != nil && !isBlank(s.Value) {
				v := at(index)
				if isMap {
					v = f.ts.of("value", f.term(v))
				}
				f.bind(s, s.Value, v)
			}
			return f.block(s.Body.List)
		})
		if ends, out := left(w, label); ends {
			return out
		}
	}
}

func isBlank(e ast.Expr) bool { id, ok := e.(*ast.Ident); return ok && id.Name == "_" }

// bind gives a variable of a range statement its value.
func (f *frame) bind(s *ast.RangeStmt, e ast.Expr, v value) {
	switch {
	case e == nil || isBlank(e):
	case s.Tok == token.DEFINE:
		id := e.(*ast.Ident)
		f.declare(id, f.fn.Info.Defs[id].Type(), v)
	default:
		f.write(f.place(e), v)
	}
}

// iterator executes a loop over a function of a library, or a channel. That of a library may draw in each step. A
// channel, and a function of which nothing is known, may do anything.
func (f *frame) iterator(s *ast.RangeStmt, label string, x *term) way {
	does := func(ts []*term) *term { return f.term(f.unknown("next", ts)) }
	if call, ok := ast.Unparen(s.X).(*ast.CallExpr); ok {
		fn, _ := typeutil.Callee(f.fn.Info, call).(*types.Func)
		if api, ok := f.p.api.Lookup(origin(fn)); ok && api.Kind == tensorapi.Draw {
			does = func(ts []*term) *term {
				t := f.ts.of("next", append(ts, f.cells)...)
				f.run.cells = f.ts.of("changed", t)
				return t
			}
		} else if fact := facts.Of(origin(fn)); ok && api.Kind == tensorapi.Meta || fact != nil && fact.Has(facts.Lazy) {
			does = func(ts []*term) *term { return f.ts.of("next", ts...) }
		} else if d, ok := f.p.declared(origin(fn)); ok {
			does = func(ts []*term) *term {
				return f.term(f.declared(d, "next", types.NewSignatureType(nil, nil, nil, nil, nil, false), nil, anys(ts), call))
			}
		}
	} else if obj := f.said(ast.Unparen(s.X)); obj != nil {
		d, _ := f.p.declared(obj)
		does = func(ts []*term) *term {
			return f.term(f.declared(d, "next", types.NewSignatureType(nil, nil, nil, nil, nil, false), nil, anys(ts), nil))
		}
	}
	for i := 0; ; i++ {
		next := does([]*term{x, f.ts.int(i)})
		if !f.goesOn(f.ts.of("more", next), i, false) {
			return onwards
		}
		w := f.scope(func() way {
			f.bind(s, s.Key, f.ts.of("key", next))
			op := "value"
			if s.Value != nil && f.p.typeName(f.typeOf(s.Value)) == "error" { // mostly nil, like those of calls
				op = "result"
			}
			f.bind(s, s.Value, f.ts.of(op, next))
			return f.block(s.Body.List)
		})
		if ends, out := left(w, label); ends {
			return out
		}
	}
}

func anys(ts []*term) (vs []value) {
	for _, t := range ts {
		vs = append(vs, t)
	}
	return vs
}

func origin(fn *types.Func) *types.Func {
	if fn == nil {
		return types.NewFunc(token.NoPos, nil, "", types.NewSignatureType(nil, nil, nil, nil, nil, false))
	}
	return fn.Origin()
}

// rangeFunc executes a loop over the function c: its body is what c calls.
func (f *frame) rangeFunc(s *ast.RangeStmt, label string, c *closure) way {
	out, over, outer := onwards, false, f.env
	yield := native(func(r *run, args []value) value {
		if over {
			panic(stop{"an iterator goes on after its end"})
		}
		f.env = outer
		w := f.scope(func() way {
			for i, e := range []ast.Expr{s.Key, s.Value} {
				if e != nil && i < len(args) {
					f.bind(s, e, args[i])
				}
			}
			return f.block(s.Body.List)
		})
		over, out = left(w, label)
		return r.ts.bool(!over)
	})
	f.run.call(c, []value{yield})
	f.env = outer // also if c has recovered from a panic of the body
	return out
}
