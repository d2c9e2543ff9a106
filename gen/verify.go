package gen

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"golang.org/x/tools/go/ast/astutil"
)

// A mismatch says in which function generated text is not what it should be.
type mismatch struct {
	function string // by key; "" if it is none in particular
	text     string
}

// undone looks at a generated file as if it came from a stranger: undoing what
// the rewrites do must give the original functions, word for word, so that the
// same effects happen in the same order. The undoing is done in the syntax of
// the text and shares nothing with the code that wrote it. pairs maps the keys
// of generated functions to those of the originals.
// packages are those that the two files may import, by path, and variants has the
// names of the functions whose variants are called.
func undone(text, source []byte, pairs map[string]string, variants callees, packages map[string]*types.Package) []mismatch {
	return inPasses(func(pass int) ([]mismatch, int) { return undoneOf(text, source, pairs, variants, packages, pass) })
}

// inPasses returns what the first pass finds that finds something. Each says how many there have to be at least.
func inPasses(look func(pass int) (found []mismatch, passes int)) []mismatch {
	passes := 1
	for pass := 0; pass < passes; pass++ {
		found, least := look(pass)
		if len(found) > 0 {
			return found
		}
		passes = max(passes, least)
	}
	return nil
}

// undoneOf is undone for one form of each function literal that there are several of: see
// [undoer.closures]. It returns how many passes over these there have to be.
func undoneOf(text, source []byte, pairs map[string]string, variants callees, packages map[string]*types.Package, pass int) (found []mismatch, passes int) {
	generated, err := parse(text, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}, 0
	}
	originals, err := parse(source, packages)
	if err != nil {
		return []mismatch{{"", err.Error()}}, 0
	}
	for name, original := range pairs {
		g, o := generated.decls[name], originals.decls[original]
		if g == nil || o == nil {
			found = append(found, mismatch{name, "it is missing"})
			continue
		}
		u := newUndoer(o, variants.in(name))
		got, want := generated.side(g), originals.side(o)
		text, n := u.closures(g, o, pass)
		passes = max(passes, n)
		iterations(g)
		u.exits(g)
		if text == "" {
			text = u.difference(got, want, originals.dots)
		}
		if text != "" {
			found = append(found, mismatch{name, text})
		}
	}
	return found, passes
}

// A parsed is a file as the checks see it.
type parsed struct {
	decls map[string]*ast.FuncDecl // by key
	dots  map[string]bool          // the paths that it imports with a dot
	free  map[*ast.Ident]bool      // names that are not declared in it
}

// side is the function fn of p.
func (p *parsed) side(fn *ast.FuncDecl) side { return side{fn, fn.Pos(), fn.End(), p.free} }

// parse returns the functions of a file. What they use of other
// packages is qualified by the path of the package, whatever the file calls it.
func parse(text []byte, packages map[string]*types.Package) (*parsed, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		return nil, err
	}
	p := &parsed{decls: make(map[string]*ast.FuncDecl), dots: make(map[string]bool), free: make(map[*ast.Ident]bool)}
	paths := make(map[string]string)
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return nil, err
		}
		name := load.ImportName(imp)
		if p := packages[path]; p != nil && imp.Name == nil {
			name = p.Name()
		}
		paths[name], p.dots[path] = path, p.dots[path] || name == "."
	}
	for _, id := range file.Unresolved {
		p.free[id] = true
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		p.decls[key(fn)] = fn
		if fn.Body != nil {
			oneByOne(fn)
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := sel.X.(*ast.Ident); ok && p.free[id] && paths[id.Name] != "" {
					sel.X = ast.NewIdent(strconv.Quote(paths[id.Name]))
				}
			}
			return true
		})
	}
	return p, nil
}

// key names a function within its package.
func key(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	return types.ExprString(fn.Recv.List[0].Type) + "." + fn.Name.Name
}

// difference returns how got, with what the rewrites do undone, differs from want, or "".
// dots are the paths of the packages that the original imports with a dot.
func (u *undoer) difference(got, want side, dots map[string]bool) string {
	numbers := mentionsNumbers(got.FuncDecl)
	got.FuncDecl, want.FuncDecl = normal(u.undo(got.FuncDecl), dots), normal(want.FuncDecl, dots)
	text := sameText(plain(got.FuncDecl), plain(want.FuncDecl))
	if text != "" && numbers {
		f, original := newNumberForm(), newNumberForm()
		got.FuncDecl, want.FuncDecl = f.of(got.FuncDecl), original.of(want.FuncDecl)
		u.together(got.FuncDecl, want.FuncDecl)
		text = cmp.Or(sameText(plain(got.FuncDecl), plain(want.FuncDecl)), f.unchecked())
	}
	if text == "" {
		text = otherMeaning(got, want, u.rowVars())
	}
	return text
}

// sameText returns how got differs from want, line by line, or "".
func sameText(got, want string) string {
	if got == want {
		return ""
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("it has %q where the original has %q", g[i], w[i])
		}
	}
	return "it has not as many statements as the original"
}

func names(n ast.Node) map[string]bool {
	m := make(map[string]bool)
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			m[id.Name] = true
		}
		return true
	})
	return m
}

// plain prints a function without its name, comments and empty lines.
func plain(fn *ast.FuncDecl) string {
	var b bytes.Buffer
	err := printer.Fprint(&b, token.NewFileSet(), &ast.FuncDecl{Recv: fn.Recv, Name: ast.NewIdent("_"), Type: fn.Type, Body: fn.Body})
	if err != nil {
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// normal brings a function into the form in which functions are compared: var x = v is x := v, a
// read whose value is not used is nothing, the package of ItemOf does not matter, nor whether a
// variable is said to be used, nor whether a loop ends by its condition or by a test at its
// beginning, nor where a variable without a value is declared, if it is before the first statement
// that names it. What dots has needs no qualifier.
func normal(fn *ast.FuncDecl, dots map[string]bool) *ast.FuncDecl {
	plainBreaks(fn.Body, "")
	countContinues(fn.Body, nil)
	return astutil.Apply(fn, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.BlockStmt:
			n.List = declaredLast(n.List)
			if s := headed(n); s != nil && c.Index() >= 0 {
				c.Replace(s)
			}
		case *ast.CaseClause:
			n.Body = declaredLast(n.Body)
		case *ast.CommClause:
			n.Body = declaredLast(n.Body)
		case *ast.ForStmt:
			conditionFirst(n)
		case *ast.DeclStmt:
			g := n.Decl.(*ast.GenDecl)
			if g.Tok != token.VAR || len(g.Specs) != 1 {
				break
			}
			if vs := g.Specs[0].(*ast.ValueSpec); len(vs.Values) > 0 {
				var lhs []ast.Expr
				for _, name := range vs.Names {
					lhs = append(lhs, name)
				}
				c.Replace(&ast.AssignStmt{Lhs: lhs, Tok: token.DEFINE, Rhs: vs.Values})
			}
		case *ast.AssignStmt:
			if c.Index() >= 0 && isNothing(n) {
				c.Delete()
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && c.Index() >= 0 && isUnusedRead(call) {
				c.Delete()
			}
		case *ast.SelectorExpr:
			if n.Sel.Name == "ItemOf" || n.Sel.Name == "SliceOf" {
				n.X = ast.NewIdent("_")
			} else if id, ok := n.X.(*ast.Ident); ok && strings.HasPrefix(id.Name, `"`) && dots[strings.Trim(id.Name, `"`)] {
				c.Replace(n.Sel)
			}
		case *ast.Ident: // imported with a dot
			if c.Name() != "Sel" && (n.Name == "ItemOf" || n.Name == "SliceOf") {
				c.Replace(&ast.SelectorExpr{X: ast.NewIdent("_"), Sel: ast.NewIdent(n.Name)})
			}
		}
		return true
	}).(*ast.FuncDecl)
}

// isNothing reports whether s only says that a variable is used: _ = x.
func isNothing(s *ast.AssignStmt) bool {
	return s.Tok == token.ASSIGN && len(s.Lhs) == 1 && len(s.Rhs) == 1 && isName(s.Lhs[0], "_") && isIdent(s.Rhs[0])
}

func isUnusedRead(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "Item", "ItemInt", "At", "AtInt", "Float32s", "Float64s", "Int64s", "Bools", "Matrix", "MarshalJSON":
			return true
		}
	case *ast.IndexExpr:
		s, ok := f.X.(*ast.SelectorExpr)
		return ok && (s.Sel.Name == "ItemOf" || s.Sel.Name == "SliceOf")
	}
	return false
}

// An undoer undoes rewrites.
type undoer struct {
	known    map[string]bool       // names in the original: they mean what they mean there
	declared map[string][]declared // what it declares
	variants map[string]callee
	path     string          // of the package of the original, if that is another one
	own      map[string]bool // parameters for which variants read

	laters map[string]bool
	halves map[*ast.CallExpr]bool   // calls whose second half is called later
	mixed  map[string]*mixedCall    // those that assign results in their place, by the name of the second half
	uses   map[string]int           // of names
	rows   map[string]*rowsOf       // what is computed for all rows
	stands map[string]ast.Expr      // what a Read or a copy stands for
	stems  map[string]bool          // of these, tensors that the original has no names for
	copies map[*ast.Ident]bool      // what copies stand for
	hoists map[*ast.Object]bool     // variables that are declared in front of the entry that sets them first
	firsts map[*ast.AssignStmt]bool // where it sets them first
}

func newUndoer(original *ast.FuncDecl, variants map[string]callee) *undoer {
	return &undoer{known: names(original), declared: declaredIn(original), variants: variants, own: make(map[string]bool)}
}

func (u *undoer) undo(fn *ast.FuncDecl) *ast.FuncDecl {
	u.laters, u.stands, u.stems = maps.Clone(u.own), make(map[string]ast.Expr), make(map[string]bool)
	u.rows, u.copies = make(map[string]*rowsOf), make(map[*ast.Ident]bool)
	u.halves, u.uses, u.mixed = make(map[*ast.CallExpr]bool), make(map[string]int), make(map[string]*mixedCall)
	u.hoists, u.firsts = u.hoisted(fn), make(map[*ast.AssignStmt]bool)
	set := make(map[*ast.Object]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			u.learn(n)
			for _, lhs := range n.Lhs {
				if id, ok := lhs.(*ast.Ident); ok && n.Tok == token.ASSIGN && u.hoists[id.Obj] && !set[id.Obj] {
					set[id.Obj], u.firsts[n] = true, true
				}
			}
		case *ast.Ident:
			u.uses[n.Name]++
		}
		return true
	})
	undos := make(map[ast.Stmt]bool)
	ast.Inspect(fn, func(n ast.Node) bool {
		for _, s := range listOf(n) {
			if u.isUndo(s) {
				undos[s] = true
			}
		}
		return true
	})
	fn = astutil.Apply(fn, func(c *astutil.Cursor) bool {
		if s, ok := c.Node().(ast.Stmt); ok && undos[s] {
			c.Delete()
			return false
		}
		return true
	}, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.AssignStmt:
			if whole := u.whole(n); whole != nil {
				c.Replace(whole)
			} else if u.isNew(n) {
				c.Delete()
			} else if u.firsts[n] {
				n.Tok = token.DEFINE
			}
		case *ast.DeclStmt:
			if id := bareDecl(n); id != nil && (u.hoists[id.Obj] || u.mixed[id.Name] != nil) {
				c.Delete()
			}
		case *ast.DeferStmt:
			if u.isCall(n.Call, "Close") {
				c.Delete()
			}
		case *ast.ExprStmt:
			if choice := u.choice(n); choice != nil {
				c.Replace(choice)
			} else if whole := u.whole(n); whole != nil {
				c.Replace(whole)
			} else {
				u.statement(c, n)
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && u.stands[id.Name] != nil && n.Sel.Name == "Err" {
				n.Sel = ast.NewIdent("Wait")
			}
		}
		return true
	}).(*ast.FuncDecl)
	u.settle()
	u.standAgain(fn)
	u.apart(fn)
	fn = astutil.Apply(fn, nil, func(c *astutil.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.Ident:
			if c.Name() != "Sel" && u.stands[n.Name] != nil {
				c.Replace(u.stands[n.Name])
			}
		case *ast.CallExpr:
			if half, ok := n.Fun.(*ast.CallExpr); ok && u.halves[half] {
				c.Replace(half)
			}
		}
		return true
	}).(*ast.FuncDecl)
	return fn
}

// learn records what a definition of a new name stands for.
func (u *undoer) learn(a *ast.AssignStmt) {
	if u.learnMixed(a) {
		return
	}
	if a.Tok != token.DEFINE || len(a.Lhs) != 1 || len(a.Rhs) != 1 {
		return
	}
	name := a.Lhs[0].(*ast.Ident).Name
	if u.known[name] {
		return
	}
	switch rhs := a.Rhs[0].(type) {
	case *ast.Ident:
		u.stands[name], u.copies[rhs] = rhs, true
	case *ast.IndexExpr, *ast.SelectorExpr, *ast.StarExpr, *ast.TypeAssertExpr:
		u.stands[name], u.stems[name] = rhs, true
	case *ast.CallExpr:
		switch {
		case isNewLater(a):
			u.laters[name] = true
		case u.isCall(rhs, "Read"), u.isCall(rhs, "ReadF64"), u.isCall(rhs, "ReadI64"):
			u.stands[name] = rhs.Args[0]
		case isOnce(rhs):
			call := &ast.CallExpr{Fun: rhs.Args[0]}
			u.stands[name], u.halves[call] = call, true
		case isNamedRead(rhs), takesCell(rhs):
			u.stands[name] = rhs
		case u.isCall(rhs, "Rows"):
			u.learnRows(name, rhs.Args[1], false)
		case u.learnKept(name, rhs):
		case !u.learnCall(name, rhs):
			u.stands[name], u.stems[name] = rhs, true
		}
	}
}

// takesCell reports whether call does no more than take what cells hold.
func takesCell(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Value" && len(call.Args) == 0 || s.Sel.Name == "Snapshot")
}

// isNamedRead reports whether call makes a number of a tensor.
func isNamedRead(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isItemForm(s.Sel.Name) && len(call.Args) == 0
}

func (u *undoer) isNew(a *ast.AssignStmt) bool {
	id, ok := a.Lhs[len(a.Lhs)-1].(*ast.Ident)
	if ok && len(a.Rhs) == 1 && u.mixed[id.Name] != nil && u.mixed[id.Name].first == a {
		return true
	}
	id, ok = a.Lhs[0].(*ast.Ident)
	return ok && a.Tok == token.DEFINE && (u.laters[id.Name] || u.stands[id.Name] != nil || u.rows[id.Name] != nil)
}

func (u *undoer) isCall(call *ast.CallExpr, method string) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != method {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && u.laters[id.Name]
}

// statement puts the statements of an entry in the place of it, and drops
// flushes and polls.
func (u *undoer) statement(c *astutil.Cursor, s *ast.ExprStmt) {
	call, ok := s.X.(*ast.CallExpr)
	switch {
	case !ok:
	case u.isCall(call, "Flush"), u.isCall(call, "Poll"):
		c.Delete()
	case u.isCall(call, "Do"):
		lit := call.Args[0].(*ast.FuncLit)
		goesOn(lit)
		for _, inner := range lit.Body.List {
			if !u.isHalf(inner) {
				c.InsertBefore(inner)
			}
		}
		c.Delete()
	}
}

// goesOn makes the ends of an entry, other than its last statement, jumps to the next
// iteration again: recheck sees to it that there is nothing behind the entry.
func goesOn(entry *ast.FuncLit) { goesOnFrom(entry.Body, 0) }

// goesOnFrom is goesOn for n, which stands in that many loops of the entry.
func goesOnFrom(n ast.Node, loops int) {
	astutil.Apply(n, func(c *astutil.Cursor) bool {
		switch m := c.Node().(type) {
		case *ast.FuncLit:
			return false
		case *ast.ForStmt:
			goesOnFrom(m.Body, loops+1)
			return false
		case *ast.RangeStmt:
			goesOnFrom(m.Body, loops+1)
			return false
		case *ast.ReturnStmt:
			if len(m.Results) == 0 {
				c.Replace(&ast.BranchStmt{Tok: token.CONTINUE, Label: outwards(loops)})
			}
		}
		return true
	}, nil)
}

// outwards stands for the label of a loop, so many loops further out than the innermost one.
func outwards(loops int) *ast.Ident {
	if loops == 0 {
		return nil
	}
	return ast.NewIdent("^" + strconv.Itoa(loops))
}

// countContinues makes the labels of jumps to a next iteration say how many loops further out they lead, and drops
// the labels of loops that nothing else uses. labels are those of the loops around n.
func countContinues(n ast.Node, labels []string) {
	visit := func(body *ast.BlockStmt, label string) { countContinues(body, append(slices.Clip(labels), label)) }
	astutil.Apply(n, func(c *astutil.Cursor) bool {
		label := ""
		m := c.Node()
		if l, ok := m.(*ast.LabeledStmt); ok {
			label, m = l.Label.Name, l.Stmt
		}
		switch m := m.(type) {
		case *ast.ForStmt:
			visit(m.Body, label)
		case *ast.RangeStmt:
			visit(m.Body, label)
		case *ast.BranchStmt:
			if m.Tok == token.CONTINUE && m.Label != nil {
				if i := slices.Index(labels, m.Label.Name); i >= 0 {
					m.Label = outwards(len(labels) - 1 - i)
				}
			}
			return true
		default:
			return true
		}
		if label != "" && !usesLabel(m, label) {
			c.Replace(m)
		}
		return false
	}, nil)
}

func usesLabel(n ast.Node, label string) (found bool) {
	ast.Inspect(n, func(m ast.Node) bool {
		if b, ok := m.(*ast.BranchStmt); ok && b.Label != nil {
			found = found || b.Label.Name == label
		}
		return !found
	})
	return found
}

// isOnce reports whether call makes a function that reads a value once:
// sync.OnceValue(x.Item).
func isOnce(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "OnceValue" || len(call.Args) != 1 {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	_, method := call.Args[0].(*ast.SelectorExpr)
	return ok && method && (id.Name == `"sync"` || id.Name == "sync")
}

// settle puts what is read once, numbers with a name of their own, and second halves of calls, into
// what names stand for.
func (u *undoer) settle() {
	for name, e := range u.stands {
		whole := &ast.ParenExpr{X: e}
		astutil.Apply(whole, nil, func(c *astutil.Cursor) bool {
			if id, ok := c.Node().(*ast.Ident); ok && id.Name != name && c.Name() != "Sel" {
				if call, ok := u.stands[id.Name].(*ast.CallExpr); u.stems[id.Name] || ok && isNamedRead(call) {
					c.Replace(u.stands[id.Name])
				} else if of, ok := u.stands[id.Name].(*ast.Ident); ok && u.copies[of] {
					c.Replace(of)
				}
				return true
			}
			call, ok := c.Node().(*ast.CallExpr)
			if !ok || len(call.Args) > 0 {
				return true
			}
			if id, ok := call.Fun.(*ast.Ident); ok {
				if half, ok := u.stands[id.Name].(*ast.CallExpr); ok && u.halves[half] && half != call {
					c.Replace(half)
				}
			}
			return true
		})
		u.stands[name] = whole.X
	}
}
