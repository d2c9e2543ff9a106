package gen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
)

// recheck compiles the package with the generated files, in memory, and looks
// at every entry of a backlog of the rewritten functions again: no statement outside entries may use a
// variable that an entry changes before the backlog is flushed, nor change one
// that an entry uses. So an entry may run at any place in the loop, and it does
// not matter where the loop polls. Like undone it trusts nothing that the planning found.
// So it is in variants, the functions that are called in two parts, until their end.
// names are those of the functions whose variants are called, by theirs.
func recheck(pkg *load.Package, generated map[string][]byte, rewritten, variants map[string]bool, names callees, packages map[string]*types.Package) []mismatch {
	fset := token.NewFileSet()
	var files []*ast.File
	own := make(map[*ast.File]bool)
	for path, text := range generated {
		file, err := parser.ParseFile(fset, path, stripLine(text), parser.SkipObjectResolution)
		if err != nil {
			return []mismatch{{"", err.Error()}}
		}
		files, own[file] = append(files, file), true
	}
	for _, file := range pkg.Syntax {
		src := pkg.Source(file)
		if _, replaced := generated[src.Path]; replaced {
			continue
		}
		file, err := parser.ParseFile(fset, src.Path, src.Text, parser.SkipObjectResolution)
		if err != nil {
			return []mismatch{{"", err.Error()}}
		}
		files = append(files, file)
	}
	info, found := compiled(pkg, fset, files, own, packages)
	if len(found) > 0 {
		return found
	}
	iterates := false
	for file := range own {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && iterations(fn) {
				iterates = true
			}
		}
	}
	if iterates { // its own functions are no entries
		info, _ = compiled(pkg, fset, files, own, packages)
	}
	for file := range own {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && (rewritten[key(fn)] || variants[key(fn)]) {
				lits := variantLiterals(fn, info, names.literals[key(fn)])
				text := outOfTurn(fn, variants[key(fn)], info, lits)
				for _, lit := range lits.inOrder() {
					if text == "" {
						text = outOfTurn(&ast.FuncDecl{Name: fn.Name, Type: lit.Type, Body: lit.Body}, true, info, lits)
					}
				}
				if text != "" {
					found = append(found, mismatch{key(fn), text})
				}
			}
		}
	}
	return found
}

// compiled finds the types of files, which are all of a package, and what does not compile.
func compiled(pkg *load.Package, fset *token.FileSet, files []*ast.File, own map[*ast.File]bool, packages map[string]*types.Package) (*types.Info, []mismatch) {
	var found []mismatch
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object), Defs: make(map[*ast.Ident]types.Object)}
	conf := types.Config{
		Importer:    importer(packages),
		Sizes:       pkg.TypesSizes,
		FakeImportC: true,
		Error: func(err error) {
			e, ok := err.(types.Error)
			if !ok || e.Soft && strings.Contains(e.Msg, "imported and not used") && !inOwn(own, e.Pos) {
				return
			}
			found = append(found, mismatch{functionAt(own, e.Pos), "it does not compile: " + err.Error()})
		},
	}
	if pkg.Module != nil && pkg.Module.GoVersion != "" {
		conf.GoVersion = "go" + pkg.Module.GoVersion
	}
	conf.Check(pkg.PkgPath, fset, files, info) // errors come through conf.Error
	return info, found
}

// stripLine drops the line directive at the top of an overlay, so that
// positions are those of the text.
func stripLine(text []byte) []byte {
	if strings.HasPrefix(string(text), "//line ") {
		return append([]byte("//     "), text[len("//line "):]...)
	}
	return text
}

type importer map[string]*types.Package

func (m importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if p, ok := m[path]; ok && p.Complete() {
		return p, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

// known returns all packages that the types of a program come from.
func known(prog *load.Program) map[string]*types.Package {
	m := make(map[string]*types.Package)
	var visit func(p *types.Package)
	visit = func(p *types.Package) {
		if p == nil || m[p.Path()] != nil && (m[p.Path()].Complete() || !p.Complete()) {
			return
		}
		m[p.Path()] = p
		for _, imp := range p.Imports() {
			visit(imp)
		}
	}
	for _, pkg := range prog.Roots {
		visit(pkg.Types)
	}
	visit(prog.Runtime)
	return m
}

func inOwn(own map[*ast.File]bool, pos token.Pos) bool {
	for f := range own {
		if f.FileStart <= pos && pos <= f.FileEnd {
			return true
		}
	}
	return false
}

func functionAt(own map[*ast.File]bool, pos token.Pos) string {
	for f := range own {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Pos() <= pos && pos < fn.End() {
				return key(fn)
			}
		}
	}
	return ""
}

// An entry is a function that is given to a backlog.
type entry struct {
	lit   *ast.FuncLit
	rows  bool       // or one of a single row, which may run at once and until the backlog is flushed
	next  bool       // the backlog is flushed before anything else runs
	at    ast.Node   // where it is queued: itself, or the call of the function literal that it is in
	root  ast.Node   // where it may run: a loop, or the body of a variant
	loops []ast.Node // around it in root, outermost first
	last  bool       // it is the last statement of the body of a loop
}

// outOfTurn returns how a statement of fn, which may be a variant, disturbs an entry, or "". lits
// are the function literals that are called in two parts: what is in them counts where they are
// called.
func outOfTurn(fn *ast.FuncDecl, variant bool, info *types.Info, lits variants) string {
	laters := make(map[types.Object]bool)
	if variant {
		laters[info.Defs[fn.Type.Params.List[0].Names[0]]] = true
	}
	backlogs := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && isNewLater(a) {
			laters[info.Defs[a.Lhs[0].(*ast.Ident)]] = true
			backlogs++
		}
		return true
	})
	for _, lit := range lits.called {
		laters[info.Defs[lit.Type.Params.List[0].Names[0]]] = true
	}
	var entries []entry
	var stack []ast.Node
	flushed := make(map[ast.Node]bool) // statements after a flush, before the next entry
	ended := make(map[ast.Node]bool)   // statements right before one
	var collect func(in, call ast.Node)
	collect = func(in, call ast.Node) {
		ast.Inspect(in, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			if lit, ok := n.(*ast.FuncLit); ok && n != in && lits.has(lit) {
				return false
			}
			stack = append(stack, n)
			markFlushed(listOf(n), flushed, ended, info, laters)
			if n, ok := n.(*ast.CallExpr); ok {
				if lit := lits.calledBy(n, info); lit != nil {
					at := call
					if at == nil {
						at = n
					}
					collect(lit, at)
				}
				e := entry{loops: loopsIn(stack, ended), last: call != nil || isLast(stack), next: isNext(stack, info, laters), at: call}
				if variant {
					e.root = fn.Body
				} else if len(e.loops) > 0 {
					e.root = e.loops[0]
				}
				switch method(n, info, laters) {
				case "BreakIf":
					e.lit, e.next = n.Args[0].(*ast.FuncLit), false
					e.last = !goesOnEarly(e.lit) || len(stack) > 2 && isLast(stack[:len(stack)-1])
					entries = append(entries, e)
				case "Do":
					e.lit = n.Args[0].(*ast.FuncLit)
					entries = append(entries, e)
				case "Rows":
					e.lit, e.rows = n.Args[1].(*ast.FuncLit), true
					entries = append(entries, e)
				}
			}
			return true
		})
	}
	collect(fn, nil)
	if text := unclosed(fn, info, laters, backlogs); text != "" && !variant {
		return text
	}
	if variant {
		entries = append(entries, returned(fn.Body)...)
	}
	if text := notOnce(fn, info); text != "" {
		return text
	}
	if text := changedRows(fn, info); text != "" {
		return text
	}
	for _, e := range entries {
		if e.next {
			continue
		}
		if e.root == nil {
			return "an entry is outside all loops"
		}
		if f, ok := e.root.(*ast.ForStmt); !variant && !ended[e.root] && (!ok || f.Cond != nil) {
			return "the backlog is not flushed after the loop"
		}
		if !e.last && !e.rows && returns(e.lit) {
			return "an entry that may end early is not the end of an iteration"
		}
		if text := e.disturbed(fn, info, entries, flushed, laters, lits); text != "" {
			return text
		}
	}
	if text := notUndone(fn, info, entries, flushed, laters, lits); text != "" && !variant {
		return text
	}
	return lost(fn, info, laters)
}

// returned are the functions that a variant with the given body returns. They run when its entries
// have, and nothing else of it does then.
func returned(body *ast.BlockStmt) (entries []entry) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			for _, e := range n.Results {
				if lit, ok := e.(*ast.FuncLit); ok {
					entries = append(entries, entry{lit: lit, next: true})
				}
			}
			return false
		}
		return true
	})
	return entries
}

// notOnce returns that a value which is read once changes in the loop behind, or "".
func notOnce(fn *ast.FuncDecl, info *types.Info) (text string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		block, ok := n.(*ast.BlockStmt)
		if !ok {
			return true
		}
		for i, s := range block.List {
			a, ok := s.(*ast.AssignStmt)
			if !ok || len(a.Rhs) != 1 {
				continue
			}
			call, ok := a.Rhs[0].(*ast.CallExpr)
			if !ok || !isOnce(call) {
				continue
			}
			id, ok := call.Args[0].(*ast.SelectorExpr).X.(*ast.Ident)
			if !ok {
				continue
			}
			for _, behind := range block.List[i+1:] {
				ast.Inspect(behind, func(m ast.Node) bool {
					for _, v := range assigned(m, info) {
						if v == info.Uses[id] {
							text = "what is read once, " + id.Name + ", changes"
						}
					}
					return true
				})
				if isLoop(behind) {
					break
				}
			}
		}
		return true
	})
	return text
}

// isLoop reports whether s is a loop, perhaps with a label.
func isLoop(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.LabeledStmt:
		return isLoop(s.Stmt)
	case *ast.ForStmt, *ast.RangeStmt:
		return true
	}
	return false
}

// isNext reports whether the statement that the call at the end of stack is in, which is no
// part of a compound one, is followed by an entry, if it is none itself, and by a flush,
// with nothing but reads between.
func isNext(stack []ast.Node, info *types.Info, laters map[types.Object]bool) bool {
	for i := len(stack) - 1; i > 0; i-- {
		list := listOf(stack[i-1])
		first := slices.IndexFunc(list, func(s ast.Stmt) bool { return s == stack[i] })
		if first < 0 {
			continue
		}
		entries := 0
		for _, s := range list[first:] {
			switch s := s.(type) {
			case *ast.AssignStmt:
				call, ok := s.Rhs[0].(*ast.CallExpr)
				if !ok {
					return false
				}
				if name := method(call, info, laters); name != "Rows" && name != "Read" {
					return false
				}
			case *ast.ExprStmt:
				call, ok := s.X.(*ast.CallExpr)
				if !ok {
					return false
				}
				switch method(call, info, laters) {
				case "Do":
					entries++
				case "Flush":
					return entries == 1
				default:
					return false
				}
			default:
				return false
			}
		}
		return false
	}
	return false
}

// listOf returns the statements that n consists of.
func listOf(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// isLast reports whether the call at the end of stack is the last statement of the
// body of a loop.
func isLast(stack []ast.Node) bool {
	n := len(stack)
	if n < 4 {
		return false
	}
	block, ok := stack[n-3].(*ast.BlockStmt)
	if !ok || block.List[len(block.List)-1] != stack[n-2] {
		return false
	}
	switch loop := stack[n-4].(type) {
	case *ast.ForStmt:
		return loop.Body == block
	case *ast.RangeStmt:
		return loop.Body == block
	}
	return false
}

// goesOnEarly reports whether lit, a test, says before its end that the loop does not end.
func goesOnEarly(lit *ast.FuncLit) (found bool) {
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			found = found || n != lit.Body.List[len(lit.Body.List)-1] && len(n.Results) == 1 && isName(n.Results[0], "false")
		}
		return !found
	})
	return found
}

// returns reports whether lit has a return, not counting those of literals in it.
func returns(lit *ast.FuncLit) (found bool) {
	ast.Inspect(lit.Body, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			found = true
		}
		return !found
	})
	return found
}

// unclosed returns that a backlog of fn is not closed on every way out, or "".
func unclosed(fn *ast.FuncDecl, info *types.Info, laters map[types.Object]bool, backlogs int) string {
	closed := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		if d, ok := n.(*ast.DeferStmt); ok && method(d.Call, info, laters) == "Close" {
			closed++
		}
		return true
	})
	if closed != backlogs {
		return "a backlog is not closed when the function panics"
	}
	return ""
}

func isNewLater(a *ast.AssignStmt) bool {
	if len(a.Rhs) != 1 || a.Tok != token.DEFINE {
		return false
	}
	call, ok := a.Rhs[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	if s, ok := call.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Ahead" {
		if call, ok = s.X.(*ast.CallExpr); !ok {
			return false
		}
	}
	ix, ok := call.Fun.(*ast.IndexExpr)
	if !ok {
		return false
	}
	s, ok := ix.X.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "NewLater"
}

func method(call *ast.CallExpr, info *types.Info, laters map[types.Object]bool) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if id, ok := s.X.(*ast.Ident); ok && laters[info.Uses[id]] {
			return s.Sel.Name
		}
	}
	return ""
}

func markFlushed(list []ast.Stmt, flushed, ended map[ast.Node]bool, info *types.Info, laters map[types.Object]bool) {
	for i, s := range list {
		if !flushes(s, info, laters) {
			continue
		}
		for _, next := range list[i+1:] {
			if queues(next, info, laters) {
				break
			}
			flushed[next] = true
		}
		if i > 0 {
			before := list[i-1]
			for {
				ended[before] = true
				l, ok := before.(*ast.LabeledStmt)
				if !ok {
					break
				}
				before = l.Stmt
			}
		}
	}
}

// queues reports whether something in n makes an entry.
func queues(n ast.Node, info *types.Info, laters map[types.Object]bool) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if call, ok := m.(*ast.CallExpr); ok {
			name := method(call, info, laters)
			found = found || name == "Do" || name == "BreakIf"
		}
		return !found
	})
	return found
}

// flushes reports whether s flushes the backlog, and may leave the loop if a
// value has decided so.
func flushes(s ast.Stmt, info *types.Info, laters map[types.Object]bool) bool {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.AssignStmt:
		e = s.Rhs[0]
	case *ast.IfStmt:
		if s.Init != nil {
			return flushes(s.Init, info, laters)
		}
		not, ok := s.Cond.(*ast.UnaryExpr) // if !ended { end, ended = later.Flush() }
		return ok && not.Op == token.NOT && isIdent(not.X) && len(s.Body.List) == 1 && flushes(s.Body.List[0], info, laters)
	}
	call, ok := e.(*ast.CallExpr)
	return ok && method(call, info, laters) == "Flush"
}

func isIdent(e ast.Expr) bool { _, ok := e.(*ast.Ident); return ok }

// loopsIn returns the loops of stack, from the innermost one after which the
// backlog is flushed.
func loopsIn(stack []ast.Node, ended map[ast.Node]bool) (loops []ast.Node) {
	for _, n := range stack {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			if ended[n] {
				loops = nil
			}
			loops = append(loops, n)
		}
	}
	return loops
}

// disturbed returns how a statement outside entries, in the loops around e,
// gets in the way of e.
func (e entry) disturbed(fn *ast.FuncDecl, info *types.Info, entries []entry, flushed map[ast.Node]bool, laters map[types.Object]bool, lits variants) string {
	used, changed := make(map[types.Object]bool), make(map[types.Object]bool)
	called := closuresCalled(fn, info, lits)
	called.inspect(e.lit, info, func(n, _ ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			if v, ok := info.Uses[id].(*types.Var); ok && !v.IsField() && (v.Pos() < e.lit.Pos() || v.Pos() >= e.lit.End()) && !lits.declares(v, fn) {
				used[v] = true
			}
		}
		for _, v := range assigned(n, info) {
			changed[v] = true
		}
		return true
	})
	text := ""
	report := func(v types.Object, what string) {
		if text == "" {
			text = fmt.Sprintf("a statement %s %s out of turn", what, v.Name())
		}
	}
	var closures []*ast.FuncLit // of the user
	_, isBody := e.root.(*ast.BlockStmt)
	called.inspect(e.root, info, func(n, at ast.Node) bool {
		for _, o := range entries {
			if n == o.lit && (!o.rows || o.lit == e.lit) {
				return false
			}
		}
		if lit, ok := n.(*ast.FuncLit); ok {
			closures = append(closures, lit)
		}
		if flushed[n] || isWayOut(n, e.root, info, laters) {
			return false
		}
		if ret, ok := n.(*ast.ReturnStmt); ok && text == "" && !isBody && !inRows(ret, entries) {
			within := func(lit *ast.FuncLit) bool { return lit.Pos() <= ret.Pos() && ret.Pos() < lit.End() }
			if !slices.ContainsFunc(closures, within) {
				text = "the backlog is not flushed before a return"
			}
		}
		for _, v := range assigned(n, info) {
			if used[v] && e.after(v, at) {
				report(v, "changes")
			}
		}
		if id, ok := n.(*ast.Ident); ok {
			if v := info.Uses[id]; v != nil && changed[v] && used[v] {
				report(v, "uses")
			}
		}
		return true
	})
	return text
}

// calledClosures are the function literals that nothing is done with but call them, by the
// variables that they are called by.
type calledClosures struct {
	by   map[types.Object]*ast.FuncLit
	lits variants
}

func closuresCalled(fn *ast.FuncDecl, info *types.Info, lits variants) calledClosures {
	m, callees := maps.Clone(lits.called), make(map[*ast.Ident]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 && len(n.Rhs) == 1 && n.Tok == token.DEFINE {
				if lit, ok := n.Rhs[0].(*ast.FuncLit); ok {
					m[info.Defs[n.Lhs[0].(*ast.Ident)]] = lit
				}
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok {
				callees[id] = true
			}
		}
		return true
	})
	ast.Inspect(fn, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && m[info.Uses[id]] != nil && !callees[id] {
			delete(m, info.Uses[id])
		}
		return true
	})
	return calledClosures{m, lits}
}

// inspect calls f for the nodes in root in the order of [ast.Inspect], with those of functions of m
// not where they stand, but where they are called: at is the call in root then, and n otherwise.
func (m calledClosures) inspect(root ast.Node, info *types.Info, f func(n, at ast.Node) bool) {
	lits, inside := make(map[*ast.FuncLit]bool), make(map[*ast.FuncLit]bool)
	for _, lit := range m.by {
		lits[lit] = true
	}
	for _, rests := range m.lits.rests {
		for _, lit := range rests {
			lits[lit] = true
		}
	}
	var visit func(root, call ast.Node)
	visit = func(root, call ast.Node) {
		ast.Inspect(root, func(n ast.Node) bool {
			if lit, ok := n.(*ast.FuncLit); ok && lits[lit] && n != root {
				return false
			}
			at := call
			if at == nil {
				at = n
			}
			if n == nil || !f(n, at) {
				return false
			}
			if c, ok := n.(*ast.CallExpr); ok {
				if id, ok := c.Fun.(*ast.Ident); ok {
					all := m.lits.rests[info.Uses[id]]
					if lit := m.by[info.Uses[id]]; lit != nil {
						all = []*ast.FuncLit{lit}
					}
					for _, lit := range all {
						if !inside[lit] {
							inside[lit] = true
							visit(lit, at)
							inside[lit] = false
						}
					}
				}
			}
			return true
		})
	}
	visit(root, nil)
}

// inRows reports whether n is in the function of one row.
func inRows(n ast.Node, entries []entry) bool {
	return slices.ContainsFunc(entries, func(e entry) bool { return e.rows && e.lit.Pos() <= n.Pos() && n.Pos() < e.lit.End() })
}

// after reports whether n, an assignment to v, may run between e being queued
// and e running, for one instance of v.
func (e entry) after(v types.Object, n ast.Node) bool {
	if f, ok := n.(*ast.ForStmt); ok && f.Pos() <= v.Pos() && v.Pos() < f.End() {
		return false
	}
	at := ast.Node(e.lit)
	if e.at != nil {
		at = e.at
	}
	if n.Pos() > at.Pos() {
		return true
	}
	for _, l := range e.loops {
		if l.Pos() <= n.Pos() && n.Pos() < l.End() && (v.Pos() < l.Pos() || v.Pos() >= l.End()) {
			return true
		}
	}
	return false
}

// assigned returns the variables that the node n itself assigns, without
// those that it declares.
func assigned(n ast.Node, info *types.Info) (vs []types.Object) {
	add := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.ParenExpr:
				e = x.X
				continue
			case *ast.Ident:
				if v, ok := info.Uses[x].(*types.Var); ok {
					vs = append(vs, v)
				}
			}
			return
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, lhs := range n.Lhs {
			add(lhs)
		}
	case *ast.IncDecStmt:
		add(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			add(n.Key)
			add(n.Value)
		}
	}
	return vs
}
