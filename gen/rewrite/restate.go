package rewrite

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// What follows makes the edits of a restater. They only insert text, and replace what is
// between two operands, so that the operands stay as they are written, with their own edits.

func (r *restater) replace(pos, end token.Pos, text string) {
	r.edits = append(r.edits, load.Edit{Pos: pos, End: end, Text: text})
}

func (r *restater) insert(pos token.Pos, text string) { r.replace(pos, pos, text) }

// isNumber reports whether e is a variable that becomes a number.
func (r *restater) isNumber(e ast.Expr) (*types.Var, bool) {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil, false
	}
	v, ok := r.f.Info.ObjectOf(id).(*types.Var)
	return v, ok && r.numbers[v]
}

// restate makes the edits for n.
func (r *restater) restate(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok {
			r.nameReads(s)
		}
		if e, ok := n.(ast.Expr); ok && r.stems[e] != "" {
			r.replace(e.Pos(), e.End(), r.stems[e])
			return false
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.IfStmt, *ast.SwitchStmt:
			if c := r.chosen[n.(ast.Stmt)]; c != nil {
				r.restateChoice(n.(ast.Stmt), c)
				return false
			}
		case *ast.AssignStmt:
			return !r.assigns(n)
		case *ast.ValueSpec:
			return !r.declares(n)
		case *ast.CallExpr:
			if name := r.named[n]; name != "" {
				r.replace(n.Pos(), n.End(), name+look(r.typeOf(n)))
				return false
			}
			s, ok := r.sinks[n]
			if !ok {
				return true
			}
			if s.index {
				r.restateIndexed(n, s)
				return false
			}
			r.restate(ast.Unparen(n.Fun).(*ast.SelectorExpr).X)
			r.replace(s.name.Pos(), s.name.End(), s.form)
			for _, arg := range n.Args {
				if arg == s.arg {
					r.number(arg)
				} else {
					r.restate(arg)
				}
			}
			return false
		case *ast.Ident:
			if v, ok := r.isNumber(n); ok && r.f.Info.Uses[n] != nil {
				name := cmp.Or(r.copied[n], n.Name)
				if types.Identical(v.Type(), types.Typ[types.Int]) {
					r.replace(n.Pos(), n.End(), "int("+name+".ItemInt())")
				} else {
					r.replace(n.Pos(), n.End(), name+look(v.Type()))
				}
				r.looks = append(r.looks, n)
			}
		}
		return true
	})
}

// nameReads puts before s what has to come before it, in the order in which s evaluates it: reads and tensors
// get names, and indices that may be wrong are used.
func (r *restater) nameReads(s ast.Stmt) {
	before := slices.SortedFunc(slices.Values(r.before[s]), func(x, y ast.Expr) int { return int(x.End() - y.End()) })
	for _, e := range before {
		call, _ := e.(*ast.CallExpr)
		switch {
		case r.stems[e] != "":
			name := r.stems[e]
			delete(r.stems, e) // while it is rendered
			r.insert(s.Pos(), name+" := "+r.render(ast.Unparen(e))+"; ")
			r.stems[e] = name
		case r.named[call] != "":
			of, name := r.typeOf(call), r.named[call]
			r.insert(s.Pos(), fmt.Sprintf("%s := %s.%s(); ", name, r.render(ast.Unparen(call.Fun).(*ast.SelectorExpr).X), r.itemForm(call, of)))
			if !r.isChecked(call, before) {
				r.insert(s.Pos(), name+look(of)+"; ")
			}
			r.reads = append(r.reads, call)
		default:
			r.insert(s.Pos(), r.check(call)+"; ")
		}
	}
}

// isChecked reports whether the next of what comes before a statement looks at read.
func (r *restater) isChecked(read *ast.CallExpr, before []ast.Expr) bool {
	i := slices.Index(before, ast.Expr(read)) + 1
	return i < len(before) && r.sinks[callOf(before[i])].index && before[i].Pos() <= read.Pos() && r.stems[before[i]] == ""
}

func callOf(e ast.Expr) *ast.CallExpr {
	call, _ := e.(*ast.CallExpr)
	return call
}

// itemForm is the name of the method that returns what read does as a number in the place of t.
func (r *restater) itemForm(read *ast.CallExpr, t types.Type) string {
	if !isFloat64(t) {
		return "I64"
	}
	_, api, _ := r.f.Library(read)
	return api.F64
}

// form is the name of the type of numbers in the place of t.
func form(t types.Type) string {
	if isFloat64(t) {
		return "F64"
	}
	return "I64"
}

// look is the call that looks at a number in the place of t.
func look(t types.Type) string {
	if isFloat64(t) {
		return ".Item()"
	}
	return ".ItemInt()"
}

// operator returns the method of a number in the place of t that is the operator op.
func operator(t types.Type, op token.Token) (method string, ok bool) {
	if isFloat64(t) {
		return tensorapi.NumberOperator(op.String())
	}
	return tensorapi.IntegerOperator(op.String())
}

// render returns the text of e with its edits.
func (r *restater) render(e ast.Expr) string {
	return r.text(e, func(e ast.Expr) { r.restate(e) })
}

// text returns the text of n with the edits that edit makes.
func (r *restater) text(e ast.Expr, edit func(ast.Expr)) string {
	return r.edited(e, func() { edit(e) })
}

// edited returns the text of n with the edits that edit makes, all of them in n.
func (r *restater) edited(n ast.Node, edit func()) string {
	outer := r.edits
	r.edits = nil
	edit()
	inner := r.edits
	r.edits = outer
	return r.f.Splice(n, inner)
}

// assigns makes the edits for an assignment to numbers, and reports whether it is one.
func (r *restater) assigns(n *ast.AssignStmt) bool {
	any := false
	for _, lhs := range n.Lhs {
		_, is := r.isNumber(lhs)
		any = any || is
	}
	if !any {
		return false
	}
	if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
		method, _ := tensorapi.NumberOperator((n.Tok - (token.ADD_ASSIGN - token.ADD)).String())
		name := ast.Unparen(n.Lhs[0]).(*ast.Ident).Name
		r.replace(n.Lhs[0].End(), n.Rhs[0].Pos(), fmt.Sprintf(" = %s.%s(", name, method))
		r.value(n, n.Rhs[0])
		r.insert(n.Rhs[0].End(), ")")
		r.raise(n)
		return true
	}
	for _, lhs := range n.Lhs {
		if _, is := r.isNumber(lhs); !is {
			r.restate(lhs)
		}
	}
	for i, rhs := range n.Rhs {
		if _, is := r.isNumber(n.Lhs[i]); is {
			r.value(n, rhs)
		} else {
			r.restate(rhs)
		}
	}
	r.raise(n)
	return true
}

// declares makes the edits for a declaration of numbers, and reports whether it is one.
func (r *restater) declares(n *ast.ValueSpec) bool {
	any := false
	for _, name := range n.Names {
		_, is := r.isNumber(name)
		any = any || is
	}
	if !any {
		return false
	}
	if n.Type != nil {
		r.replace(n.Type.Pos(), n.Type.End(), load.RestatedRuntime+"."+form(r.f.Info.TypeOf(n.Type)))
	}
	for i, value := range n.Values {
		if _, is := r.isNumber(n.Names[i]); is {
			r.value(n, value)
		} else {
			r.restate(value)
		}
	}
	if s, ok := r.f.Parent(r.f.Parent(n)).(*ast.DeclStmt); ok {
		r.raise(s)
	}
	return true
}

// value makes e, which s assigns to a number, one. What is not in a loop is
// computed as it is written.
func (r *restater) value(s ast.Node, e ast.Expr) {
	if len(r.f.LoopsAround(s)) == 0 {
		r.known(e)
		return
	}
	r.number(e)
}

// known makes e a number that is known.
func (r *restater) known(e ast.Expr) {
	name := ".Const("
	if isIndex(r.f.Info.TypeOf(e)) {
		name = ".ConstInt("
	}
	r.insert(e.Pos(), load.RestatedRuntime+name)
	r.restate(e)
	r.insert(e.End(), ")")
}

// number makes e a number.
func (r *restater) number(e ast.Expr) {
	if !r.valued(e, make(map[*types.Var]bool)) {
		r.known(e)
		return
	}
	if call, sel, t, ok := r.read(e); ok {
		if name := r.named[call]; name != "" {
			r.replace(e.Pos(), e.End(), name)
			return
		}
		r.reads = append(r.reads, call)
		r.drop(e.Pos(), call.Pos())
		r.restate(sel.X)
		r.replace(sel.Sel.Pos(), sel.Sel.End(), r.itemForm(call, t))
		r.drop(call.End(), e.End())
		return
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		r.drop(e.Pos(), e.X.Pos())
		r.number(e.X)
		r.drop(e.X.End(), e.End())
	case *ast.UnaryExpr:
		r.drop(e.Pos(), e.X.Pos())
		r.number(e.X)
		if e.Op == token.SUB {
			r.insert(e.X.End(), ".Neg()")
		}
	case *ast.BinaryExpr:
		method, _ := tensorapi.NumberOperator(e.Op.String())
		r.number(e.X)
		r.replace(e.X.End(), e.Y.Pos(), "."+method+"(")
		r.number(e.Y)
		r.insert(e.Y.End(), ")")
	case *ast.CallExpr:
		if x, ok := r.rounded(e); ok {
			r.wrapped(e, x, ".Float32()")
		} else if r.f.Info.Types[e.Fun].IsType() {
			r.wrapped(e, e.Args[0], "")
		} else if method, _, _ := r.function(e); len(e.Args) == 1 {
			r.wrapped(e, e.Args[0], "."+method+"()")
		} else {
			r.drop(e.Pos(), e.Args[0].Pos())
			r.number(e.Args[0])
			r.replace(e.Args[0].End(), e.Args[1].Pos(), "."+method+"(")
			r.number(e.Args[1])
		}
	}
}

// wrapped makes x, in e, a number with a call after it, in the place of what is around it.
func (r *restater) wrapped(e, x ast.Expr, call string) {
	r.drop(e.Pos(), x.Pos())
	r.number(x)
	r.replace(x.End(), e.End(), call)
}

func (r *restater) drop(pos, end token.Pos) {
	if pos < end {
		r.replace(pos, end, "")
	}
}

// raise notes that s gives numbers values that it reads.
func (r *restater) raise(s ast.Stmt) {
	if len(r.f.LoopsAround(s)) > 0 {
		r.raises = append(r.raises, s)
	}
}

// forceReads makes the numbers raise the errors of the values that they are made of
// where the function would have read them, unless what follows does.
func (r *restater) forceReads() {
	for _, s := range r.raises {
		var names []string
		for _, v := range r.readInto(s) {
			if !r.implied(s, v) {
				names = append(names, v.Name()+look(v.Type()))
			}
		}
		if len(names) > 0 {
			r.insert(s.End(), "; "+strings.Join(names, "; "))
		}
	}
}

// readInto returns the numbers to which s assigns what it reads itself.
func (r *restater) readInto(s ast.Stmt) (vs []*types.Var) {
	for v := range r.numbers {
		for _, d := range r.defs[v] {
			if at := d.stmt; d.value != nil && s.Pos() <= at.Pos() && at.End() <= s.End() && len(r.itemsIn(d.value)) > 0 {
				vs = append(vs, v)
			}
		}
	}
	slices.SortFunc(vs, func(v, w *types.Var) int { return int(v.Pos() - w.Pos()) })
	return vs
}

// itemsIn returns the reads in e that have no name.
func (r *restater) itemsIn(e ast.Node) (reads []*ast.CallExpr) {
	ast.Inspect(e, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if _, _, ok := r.item(call); ok {
				reads = append(reads, call)
				return false
			}
		}
		return true
	})
	return reads
}

// implied reports whether what comes after s in its list raises the error of v before anybody can
// tell that it has not been raised yet: something looks at a value that depends on v, and nothing
// in between shows.
func (r *restater) implied(s ast.Stmt, v *types.Var) bool {
	all := list(r.f.Parent(s))
	failing := map[types.Object]bool{v: true}
	for _, next := range all[slices.Index(all, s)+1:] {
		if r.looksAt(next, failing) {
			return true
		}
		if !r.isQuiet(next) {
			return false
		}
		r.spread(next, failing)
	}
	return false
}

// looksAt reports whether s begins with a look at one of the values in failing.
func (r *restater) looksAt(s ast.Stmt, failing map[types.Object]bool) bool {
	for _, id := range r.looks {
		if failing[r.f.Info.Uses[id]] && s.Pos() <= id.Pos() && id.End() <= s.End() && r.f.AlwaysFirst(id, s) {
			return true
		}
	}
	return false
}

// isQuiet reports whether nobody but the function can tell that s has run.
func (r *restater) isQuiet(s ast.Stmt) bool {
	if slices.ContainsFunc(r.before[s], func(e ast.Expr) bool { return r.sinks[callOf(e)].index && r.stems[e] == "" }) {
		return false // it may panic when it is its turn
	}
	switch s.(type) {
	case *ast.AssignStmt, *ast.DeclStmt:
	default:
		return false
	}
	e := r.f.StmtEffects(s)
	if e.Barrier != nil || e.Leaves != nil || e.Ends != nil {
		return false
	}
	return !r.f.Shows(e)
}

// spread finds the variables to which s assigns what fails if something in failing does.
func (r *restater) spread(s ast.Stmt, failing map[types.Object]bool) {
	for v, defs := range r.defs {
		for _, d := range defs {
			if d.stmt != s && r.f.Parent(r.f.Parent(d.stmt)) != s {
				continue
			}
			fails := d.value != nil && r.fails(d.value, failing) || d.op != token.ILLEGAL && failing[v]
			if fails {
				failing[v] = true
			} else {
				delete(failing, v)
			}
		}
	}
}

// fails reports whether e fails if one of the variables in failing holds a value that has.
func (r *restater) fails(e ast.Expr, failing map[types.Object]bool) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return failing[r.f.Info.Uses[e]]
	case *ast.UnaryExpr:
		return r.fails(e.X, failing)
	case *ast.BinaryExpr:
		return r.fails(e.X, failing) || r.fails(e.Y, failing)
	case *ast.CallExpr:
		_, api, library := r.f.Library(e)
		switch _, sel, isItem := r.item(e); {
		case isItem:
			return r.fails(sel.X, failing)
		case library && (api.Kind == tensorapi.Op || api.Kind == tensorapi.View):
			if sel, ok := ast.Unparen(e.Fun).(*ast.SelectorExpr); ok && r.f.Info.Selections[sel] != nil && r.fails(sel.X, failing) {
				return true
			}
		case library:
			return false
		default:
			if _, _, ok := r.function(e); !ok && !r.f.Info.Types[e.Fun].IsType() {
				return false
			}
		}
		return slices.ContainsFunc(e.Args, func(arg ast.Expr) bool { return r.fails(arg, failing) })
	}
	return false
}
