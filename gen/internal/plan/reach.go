package plan

import (
	"go/ast"
	"go/constant"
	"go/types"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/facts"
)

// formatted walks one formatted argument.
func (w *walker) formatted(arg ast.Expr, faithful bool) {
	t := w.f.Info.TypeOf(arg)
	if !w.f.Analysis.API.IsTensor(t) {
		if w.literalElements(arg) || w.attributes(arg, faithful) {
			return
		}
		w.expr(arg)
		w.methods(t, arg, make(map[types.Type]bool))
		w.deep(t, arg, false)
		return
	}
	if w.reads == nil || !faithful {
		w.expr(arg)
		why := "prints a tensor"
		if w.reads != nil {
			why = "prints a tensor in a way that only the tensor itself can"
		}
		note(&w.e.Waits, cause(arg, "%s", why).as(OnlyNow).with("print it with %v, or its Shape or Device"))
		return
	}
	w.addRead(&Read{Expr: arg, Operand: arg})
}

// faithfulVerbs reports whether the format of a call, if it has one, is a
// constant that prints each operand once, and none with a verb that tells a
// tensor from its Read: %T, %p, %#v, and %i, which names the device. What fmt
// says of an operand too many names its type as well.
func (w *walker) faithfulVerbs(fn *types.Func, call *ast.CallExpr) bool {
	if !strings.HasSuffix(fn.Name(), "f") {
		return true
	}
	at := fn.Signature().Params().Len() - 2
	if at < 0 || at >= len(call.Args) {
		return false
	}
	tv := w.f.Info.Types[call.Args[at]]
	if tv.Value == nil || tv.Value.Kind() != constant.String {
		return false
	}
	operands := 0
	for format := constant.StringVal(tv.Value); ; {
		_, rest, found := strings.Cut(format, "%")
		if !found {
			return operands == len(call.Args)-at-1
		}
		rest = strings.TrimLeft(rest, "+-0 123456789.")
		switch {
		case rest == "" || strings.ContainsRune("Tpi#[*", rune(rest[0])):
			return false
		case rest[0] != '%':
			operands++
		}
		format = rest[1:]
	}
}

// methods adds what formatting a value of type t may call.
func (w *walker) methods(t types.Type, at ast.Expr, seen map[types.Type]bool) {
	if t == nil || seen[t] {
		return
	}
	seen[t] = true
	if w.f.Analysis.API.IsTensor(t) {
		note(&w.e.Waits, cause(at, "prints %s, which holds tensors", text(at)).as(OnlyNow).with("print the tensors themselves"))
		return
	}
	if named, ok := derefNamed(t); ok && named.Obj().Pkg() != nil {
		path := named.Obj().Pkg().Path()
		if w.f.Analysis.API.Owns(path) {
			if w.f.Analysis.API.IsCell(t) || !strings.HasSuffix(path, "/device") {
				note(&w.e.Barrier, cause(at, "prints %s, which may hold tensors", text(at)).as(UnknownEffects))
			}
			return
		}
		for _, m := range textMethods {
			obj, _, _ := types.LookupFieldOrMethod(t, true, named.Obj().Pkg(), m)
			fn, ok := obj.(*types.Func)
			if !ok || isInterface(t) {
				continue
			}
			if fact := facts.Of(fn); fact != nil {
				return // it makes text of what it is
			}
			e := w.f.Analysis.Summary(fn, w.f.Home)
			if e.Waits != nil {
				c := e.Waits.with("print the tensors themselves")
				noting := *e
				noting.Waits, e = &c, &noting
			}
			w.e.addCall(e, at.Pos(), name(fn))
		}
	}
	switch u := t.Underlying().(type) {
	case *types.Interface:
		if isError(t) {
			w.errors(at, seen)
			return
		}
		note(&w.e.Barrier, cause(at, "formats %s, whose type is not known before the program runs", text(at)).as(UnknownEffects).with(knownType))
	case *types.Struct:
		for f := range u.Fields() {
			w.methods(f.Type(), at, seen)
		}
	case *types.Slice:
		w.methods(u.Elem(), at, seen)
	case *types.Array:
		w.methods(u.Elem(), at, seen)
	case *types.Map:
		w.methods(u.Key(), at, seen)
		w.methods(u.Elem(), at, seen)
	case *types.Pointer:
		w.methods(u.Elem(), at, seen)
	}
}

func derefNamed(t types.Type) (*types.Named, bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return n, ok
}

// deep adds reads, or writes, of all memory that a value of type t leads to, as far as types show:
// who looks behind an interface needs its methods.
func (w *walker) deep(t types.Type, at ast.Expr, writes bool) { w.reach(t, at, writes, false) }

// everything is deep for those who look behind interfaces, too.
func (w *walker) everything(t types.Type, at ast.Expr, writes bool) { w.reach(t, at, writes, true) }

func (w *walker) reach(t types.Type, at ast.Expr, writes, behind bool) {
	seen := make(map[types.Type]bool)
	var visit func(t types.Type)
	touch := func(l Loc) {
		w.touch(l, at, w.e.read, "reads what is behind")
		if writes {
			w.touch(l, at, w.e.write, "changes what is behind")
		}
	}
	kinds := &w.f.Analysis.types
	visit = func(t types.Type) {
		if t == nil || seen[t] || w.f.Analysis.API.IsTensor(t) {
			return
		}
		seen[t] = true
		switch u := t.Underlying().(type) {
		case *types.Slice:
			touch(Loc{Kind: Elem, Type: kinds.of(u.Elem())})
			visit(u.Elem())
		case *types.Pointer:
			touch(Loc{Kind: Deref, Type: kinds.of(u.Elem())})
			visit(u.Elem())
		case *types.Map:
			touch(Loc{Kind: MapElem, Type: kinds.of(u)})
			visit(u.Key())
			visit(u.Elem())
		case *types.Array:
			visit(u.Elem())
		case *types.Struct:
			for f := range u.Fields() {
				visit(f.Type())
			}
		case *types.Interface:
			switch {
			case isTypeParam(t), isError(t), behind && u.NumMethods() == 0:
				touch(Loc{Kind: Memory})
			case behind:
				for _, fn := range w.f.Analysis.Implementations(w.f.Home, u, u.Method(0).Name()) {
					visit(fn.Signature().Recv().Type())
					if !isPointer(fn.Signature().Recv().Type()) {
						visit(types.NewPointer(fn.Signature().Recv().Type()))
					}
				}
			}
		}
	}
	v, ok := w.owner(at)
	if !ok {
		visit(t)
		return
	}
	touch(Loc{Kind: Own, Obj: v})
	switch u := t.Underlying().(type) {
	case *types.Slice:
		visit(u.Elem())
	case *types.Pointer:
		visit(u.Elem())
	case *types.Map:
		visit(u.Key())
		visit(u.Elem())
	}
}
