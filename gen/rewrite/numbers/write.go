package numbers

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// A writer makes the edits of a restatement. They only insert text, and replace what is between two operands, so that
// the operands stay as they are written, with their own edits.
type writer struct {
	*restatement
	copied map[*ast.Ident]string // what stands for numbers that have changed
	edits  []load.Edit
	reads  []*ast.CallExpr // that stay on the device
	looks  []*ast.Ident    // where the host looks at numbers
	raises []ast.Stmt      // that read what they assign
}

func (r *writer) replace(pos, end token.Pos, text string) {
	r.edits = append(r.edits, load.Edit{Pos: pos, End: end, Text: text})
}

func (r *writer) insert(pos token.Pos, text string) { r.replace(pos, pos, text) }

func (r *writer) drop(pos, end token.Pos) {
	if pos < end {
		r.replace(pos, end, "")
	}
}

// dropAll drops the edits between pos and end.
func (r *writer) dropAll(pos, end token.Pos) {
	r.edits = slices.DeleteFunc(r.edits, func(e load.Edit) bool { return pos <= e.Pos && e.End <= end && e.Pos < e.End })
}

// restate makes the edits for n.
func (r *writer) restate(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok {
			r.nameReads(s)
			lister{r}.make(s)
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
		case *ast.ExprStmt:
			defer lister{r}.move(n)
		case *ast.AssignStmt:
			if (lister{r}).cuts(n) {
				return false
			}
			defer lister{r}.follow(n)
			return !r.assigns(n)
		case *ast.IncDecStmt:
			return !r.counts(n)
		case *ast.ValueSpec:
			return !r.declares(n)
		case *ast.CallExpr:
			if name := r.named[n]; name != "" {
				r.replace(n.Pos(), n.End(), name+look(typeOf(r.f, n)))
				return false
			}
			if t := r.counted(n); t != nil {
				r.replace(n.Args[0].Pos(), n.Args[0].End(), t.name)
				return false
			}
			if sel, form, ok := rateOf(r.f, n); ok && r.setsRates() && len(r.f.LoopsAround(n)) > 0 {
				r.replace(sel.Sel.Pos(), sel.Sel.End(), form)
				r.insert(n.End(), ".Item()")
				return false
			}
			s, ok := r.sinks[n]
			if !ok {
				return true
			}
			if s.list {
				lister{r}.sink(n, s)
				return false
			}
			if s.made {
				r.restateMade(n, s)
				return false
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
			if s.rated != nil && !r.isChosen(s.stmt) && !isRate(r.f.Info.Types[s.arg].Value) {
				r.insert(n.End(), "; "+check(types.ExprString(s.rated)))
			}
			return false
		case *ast.IndexExpr:
			if r.isElement(n) {
				r.restate(n.Index)
				r.insert(n.End(), look(types.Typ[types.Float64]))
				return false
			}
		case *ast.Ident:
			if v, ok := r.isNumber(n); ok && r.f.Info.Uses[n] != nil && !isFloats(v.Type()) {
				name := cmp.Or(r.copied[n], r.nameOf(v))
				switch {
				case types.Identical(v.Type(), types.Typ[types.Int]):
					r.replace(n.Pos(), n.End(), "int("+name+".ItemInt())")
				case isBool(v.Type()):
					r.replace(n.Pos(), n.End(), "("+name+".ItemInt() != 0)")
				default:
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
func (r *writer) nameReads(s ast.Stmt) {
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
			of, name := typeOf(r.f, call), r.named[call]
			r.insert(s.Pos(), fmt.Sprintf("%s := %s.%s(); ", name, r.render(ast.Unparen(call.Fun).(*ast.SelectorExpr).X), itemForm(r.f, call, of)))
			if !r.isChecked(call, before) && (len(before) > 1 || r.hasTwin(s) == nil) {
				r.insert(s.Pos(), name+look(of)+"; ")
			}
			r.reads = append(r.reads, call)
		default:
			r.insert(s.Pos(), r.check(call)+"; ")
		}
	}
}

// isChecked reports whether the next of what comes before a statement looks at read.
func (r *writer) isChecked(read *ast.CallExpr, before []ast.Expr) bool {
	i := slices.Index(before, ast.Expr(read)) + 1
	return i < len(before) && r.sinks[callOf(before[i])].index && before[i].Pos() <= read.Pos() && r.stems[before[i]] == ""
}

// render returns the text of e with its edits.
func (r *writer) render(e ast.Expr) string {
	return r.text(e, func(e ast.Expr) { r.restate(e) })
}

// text returns the text of n with the edits that edit makes.
func (r *writer) text(e ast.Expr, edit func(ast.Expr)) string {
	return r.edited(e, func() { edit(e) })
}

// edited returns the text of n with the edits that edit makes, all of them in n.
func (r *writer) edited(n ast.Node, edit func()) string {
	outer := r.edits
	r.edits = nil
	edit()
	inner := r.edits
	r.edits = outer
	return r.f.Splice(n, inner)
}

// check is the call of a sink as it is written, which panics if its index is wrong.
func (r *writer) check(call *ast.CallExpr) string {
	var args []string
	for _, arg := range call.Args {
		args = append(args, r.render(arg))
	}
	return fmt.Sprintf("%s(%s)", r.render(call.Fun), strings.Join(args, ", "))
}

// assigns makes the edits for an assignment to numbers, and reports whether it is one.
func (r *writer) assigns(n *ast.AssignStmt) bool {
	if !slices.ContainsFunc(n.Lhs, r.becomes) {
		return false
	}
	if n.Tok != token.ASSIGN && n.Tok != token.DEFINE {
		method, _ := tensorapi.NumberOperator((n.Tok - (token.ADD_ASSIGN - token.ADD)).String())
		name := r.place(n.Lhs[0])
		r.rename(n.Lhs[0])
		r.replace(n.Lhs[0].End(), n.Rhs[0].Pos(), fmt.Sprintf(" = %s.%s(", name, method))
		r.value(n, n.Rhs[0])
		r.insert(n.Rhs[0].End(), ")")
		r.raise(n)
		return true
	}
	for _, lhs := range n.Lhs {
		if !r.becomes(lhs) {
			r.restate(lhs)
		} else if _, index := element(r.f, lhs); index != nil {
			r.restate(index)
		}
		r.rename(lhs)
	}
	for i, rhs := range n.Rhs {
		if r.becomes(n.Lhs[i]) {
			r.value(n, rhs)
		} else {
			r.restate(rhs)
		}
	}
	r.raise(n)
	return true
}

// counts makes the edits for s, which adds 1 to a number, or takes it off, and reports whether it does.
func (r *writer) counts(s *ast.IncDecStmt) bool {
	if !r.becomes(s.X) {
		return false
	}
	method := "Add"
	if s.Tok == token.DEC {
		method = "Sub"
	}
	r.replace(s.Pos(), s.End(), fmt.Sprintf("%[1]s = %[1]s.%[2]s(%[3]s(1))", r.place(s.X), method, constOf(r.f.Info.TypeOf(s.X))))
	return true
}

// begin makes numbers of parameters and results with names.
func (r *writer) begin() {
	fields := r.f.Decl.Type.Params.List
	if r.f.Decl.Type.Results != nil {
		fields = slices.Concat(fields, r.f.Decl.Type.Results.List)
	}
	for _, field := range fields {
		for _, id := range field.Names {
			if v, is := r.isNumber(id); is {
				r.params[v] = r.names.Unused(v.Name() + "Now")
				r.insert(r.f.Decl.Body.Lbrace+1, fmt.Sprintf(" %s := %s(%s); ", r.params[v], constOf(v.Type()), v.Name()))
			}
		}
	}
}

// rename makes the edits for e if it is a parameter that becomes a number.
func (r *writer) rename(e ast.Expr) {
	if v, is := r.isNumber(e); is && r.params[v] != "" {
		r.replace(e.Pos(), e.End(), r.params[v])
	}
}

// nameOf is the name of v, a number.
func (r *restatement) nameOf(v *types.Var) string { return cmp.Or(r.params[v], v.Name()) }

// place returns the text of e, a number or an element of a slice of numbers.
func (r *writer) place(e ast.Expr) string {
	return r.text(e, func(e ast.Expr) {
		if _, index := element(r.f, e); index != nil {
			r.restate(index)
		}
		r.rename(e)
	})
}

// declares makes the edits for a declaration of numbers, and reports whether it is one.
func (r *writer) declares(n *ast.ValueSpec) bool {
	any := false
	for _, name := range n.Names {
		_, is := r.isNumber(name)
		any = any || is
	}
	if !any {
		return false
	}
	if n.Type != nil {
		text := load.RestatedRuntime + "." + form(r.f.Info.TypeOf(n.Type))
		if isFloats(r.f.Info.TypeOf(n.Type)) {
			text = "[]" + load.RestatedRuntime + ".F64"
		}
		r.replace(n.Type.Pos(), n.Type.End(), text)
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
func (r *writer) value(s ast.Node, e ast.Expr) {
	if tv := r.f.Info.Types[e]; isFloats(tv.Type) || tv.IsNil() {
		r.slice(s, e)
		return
	}
	if len(r.f.LoopsAround(s)) == 0 && !isBool(r.f.Info.TypeOf(e)) {
		r.known(e)
		return
	}
	r.number(e)
}

// known makes e a number that is known.
func (r *writer) known(e ast.Expr) {
	r.insert(e.Pos(), constOf(r.f.Info.TypeOf(e))+"(")
	r.restate(e)
	r.insert(e.End(), ")")
}

// truth makes e, a truth, a number.
func (r *writer) truth(e ast.Expr) {
	if v := r.f.Info.Types[e].Value; v != nil {
		r.replace(e.Pos(), e.End(), load.RestatedRuntime+map[bool]string{false: ".ConstInt(0)", true: ".ConstInt(1)"}[constant.BoolVal(v)])
		return
	}
	if _, is := r.isNumber(e); is {
		r.rename(e)
		return
	}
	r.comparison(e)
	r.insert(e.End(), ".I64()")
}

// number makes e a number.
func (r *writer) number(e ast.Expr) {
	if isBool(r.f.Info.TypeOf(e)) {
		r.truth(e)
		return
	}
	if !r.valued(e, make(map[*types.Var]bool)) {
		r.known(e)
		return
	}
	if call, sel, t, ok := read(r.f, e); ok {
		if name := r.named[call]; name != "" {
			r.replace(e.Pos(), e.End(), name)
			return
		}
		r.reads = append(r.reads, call)
		r.drop(e.Pos(), call.Pos())
		r.restate(sel.X)
		r.replace(sel.Sel.Pos(), sel.Sel.End(), itemForm(r.f, call, t))
		r.drop(call.End(), e.End())
		return
	}
	switch e := e.(type) {
	case *ast.Ident:
		r.rename(e)
	case *ast.IndexExpr: // of a slice of numbers, or of a list
		if isIntegers(r.f.Info.TypeOf(e.X)) {
			if r.twinOf(e.X) == nil {
				r.known(e)
				return
			}
			lister{r}.text(e.X)
		}
		r.restate(e.Index)
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
		if sel, form, ok := rateOf(r.f, e); ok {
			r.replace(sel.Sel.Pos(), sel.Sel.End(), form)
		} else if x, ok := rounded(r.f, e); ok {
			r.wrapped(e, x, ".Float32()")
		} else if r.f.Info.Types[e.Fun].IsType() {
			r.wrapped(e, e.Args[0], "")
		} else if method, _, _ := function(r.f, e); len(e.Args) == 1 {
			r.wrapped(e, e.Args[0], "."+method+"()")
		} else {
			r.drop(e.Pos(), e.Args[0].Pos())
			r.number(e.Args[0])
			end := ""
			for i, arg := range e.Args[1:] {
				r.replace(e.Args[i].End(), arg.Pos(), end+"."+method+"(")
				r.number(arg)
				end = ")"
			}
		}
	}
}

// wrapped makes x, in e, a number with a call after it, in the place of what is around it.
func (r *writer) wrapped(e, x ast.Expr, call string) {
	r.drop(e.Pos(), x.Pos())
	r.number(x)
	r.replace(x.End(), e.End(), call)
}

// restateMade makes the edits for a sink that makes a tensor of a number.
func (r *writer) restateMade(call *ast.CallExpr, s sink) {
	r.drop(call.Pos(), s.arg.Pos())
	r.number(s.arg)
	if len(call.Args) == 1 {
		r.replace(s.arg.End(), call.End(), "."+s.form+"()")
		return
	}
	r.replace(s.arg.End(), call.Args[1].Pos(), "."+s.form+"(")
	for _, arg := range call.Args[1:] {
		r.restate(arg)
	}
}

// restateIndexed makes the edits for a sink that is given an index.
func (r *writer) restateIndexed(call *ast.CallExpr, s sink) {
	r.restate(ast.Unparen(call.Fun).(*ast.SelectorExpr).X)
	r.replace(s.name.Pos(), s.name.End(), s.form)
	for _, arg := range call.Args {
		switch arg {
		case s.arg:
			r.number(arg)
		case s.to:
			r.replace(arg.Pos(), arg.End(), strconv.FormatInt(s.count, 10))
		default:
			r.restate(arg)
		}
	}
}

// form is the name of the type of numbers in the place of t.
func form(t types.Type) string {
	if isFloat64(t) {
		return "F64"
	}
	return "I64"
}

// constOf is the function that makes a number in the place of t of one that is known.
func constOf(t types.Type) string {
	if isFloat64(t) {
		return load.RestatedRuntime + ".Const"
	}
	return load.RestatedRuntime + ".ConstInt"
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
