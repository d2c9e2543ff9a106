package plan

import (
	"go/ast"
	"go/token"
	"go/types"
	"go/version"
)

// A Stmt is a statement of a loop as the rewrites see it: what it does, the
// values that it looks at, and the statements in it.
type Stmt struct {
	Node   ast.Stmt // with its label, if it has one
	Parent *Stmt    // nil for the loop itself
	Bodies [][]*Stmt

	// Of the statement itself or, if it has bodies, of what is before them:
	// the condition, the range expression.
	Head     *Effects // without the reads and their operands
	Reads    []*Read
	Held     []ast.Expr // that only take what a cell or a field holds; that is no part of Head
	Here     *Effects   // of a return: of the results that are returned in their place; that is no part of Head
	Declares map[types.Object]bool
	Begins   bool // it is a loop, and waits for values before its first iteration
	Absorbed bool // it goes into the function of one row, see [Rows]

	// Keep and Tests are the condition of a for statement, divided: what stays where it is, and what is tested by the
	// first statement of the body. Both are nil if it is not: see [Function.SplitTree].
	Keep, Tests []ast.Expr

	// IsTest says that the statement is no statement of the program, but a part
	// of the condition of the loop that it is the first of: see [Function.SplitTree].
	IsTest bool

	// IsCall says that the statement is no statement of the program, but stands
	// for the calls of a function with this body: see [Function.Body].
	IsCall bool

	f *Function
}

// Inner is the statement without its label.
func (s *Stmt) Inner() ast.Stmt {
	n := s.Node
	for {
		l, ok := n.(*ast.LabeledStmt)
		if !ok {
			return n
		}
		n = l.Stmt
	}
}

// IsLoop reports whether s is a loop.
func (s *Stmt) IsLoop() bool { return isLoop(s.Inner()) }

func isLoop(n ast.Node) bool {
	switch n.(type) {
	case *ast.ForStmt, *ast.RangeStmt:
		return true
	}
	return false
}

// IsBounded reports whether the loop s looks as if it came to an end by itself:
// it ranges over something finite, or has a comparison for a condition.
func (s *Stmt) IsBounded() bool {
	if s.IsCall {
		return true
	}
	switch n := s.Inner().(type) {
	case *ast.ForStmt:
		return bounds(n.Cond)
	case *ast.RangeStmt:
		switch s.f.Info.TypeOf(n.X).Underlying().(type) {
		case *types.Chan, *types.Signature:
			return false
		}
	}
	return true
}

// bounds reports whether a condition contains a comparison that must hold.
func bounds(cond ast.Expr) bool {
	c, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if !ok || c.Op == token.LOR {
		return false
	}
	return c.Op != token.LAND || bounds(c.X) || bounds(c.Y)
}

// Condition are the parts of the condition of the for statement s that are evaluated in its head.
func (s *Stmt) Condition() []ast.Expr {
	switch n := s.Inner().(*ast.ForStmt); {
	case s.Tests != nil:
		return s.Keep
	case n.Cond != nil:
		return Conjuncts(n.Cond)
	}
	return nil
}

// IsCompound reports whether s has statements in it.
func (s *Stmt) IsCompound() bool { return s.Bodies != nil }

// Children calls yield for the statements directly in s.
func (s *Stmt) Children(yield func(*Stmt) bool) {
	for _, body := range s.Bodies {
		for _, c := range body {
			if !yield(c) {
				return
			}
		}
	}
}

// All calls yield for s and everything in it, in source order.
func (s *Stmt) All(yield func(*Stmt) bool) { s.all(yield) }

func (s *Stmt) all(yield func(*Stmt) bool) bool {
	if !yield(s) {
		return false
	}
	for c := range s.Children {
		if !c.all(yield) {
			return false
		}
	}
	return true
}

// Within reports whether s is o or in it.
func (s *Stmt) Within(o *Stmt) bool {
	for ; s != nil; s = s.Parent {
		if s == o {
			return true
		}
	}
	return false
}

// Loop returns the innermost loop around s; s itself does not count.
func (s *Stmt) Loop() *Stmt {
	for p := s.Parent; p != nil; p = p.Parent {
		if p.IsLoop() {
			return p
		}
	}
	return nil
}

// InCall reports whether s is part of the body of a function that is divided.
func (s *Stmt) InCall() bool {
	for s.Parent != nil {
		s = s.Parent
	}
	return s.IsCall
}

// Total returns the effects of s with everything in it, and its reads.
// The operands of the reads are not included.
func (s *Stmt) Total() (*Effects, []*Read) {
	e, reads := &Effects{}, []*Read(nil)
	for c := range s.All {
		e.add(c.Head)
		reads = append(reads, c.Reads...)
	}
	return e, reads
}

// Tree returns the loop n, which stands in f, as a tree.
func (f *Function) Tree(n ast.Stmt) *Stmt { return f.stmt(n, nil) }

func (f *Function) list(list []ast.Stmt, parent *Stmt) []*Stmt {
	out := make([]*Stmt, 0, len(list))
	for _, n := range list {
		if _, empty := n.(*ast.EmptyStmt); !empty {
			out = append(out, f.stmt(n, parent))
		}
	}
	return out
}

func (f *Function) stmt(n ast.Stmt, parent *Stmt) *Stmt {
	s := &Stmt{Node: n, Parent: parent, Declares: make(map[types.Object]bool), f: f}
	w := &walker{f: f, e: &Effects{}, reads: &s.Reads, held: &s.Held}
	s.Head = w.e
	switch n := s.Inner().(type) {
	case *ast.BlockStmt:
		s.Bodies = [][]*Stmt{f.list(n.List, s)}
	case *ast.IfStmt:
		s.ifs(w, n)
	case *ast.ForStmt:
		s.begin(w, n.Init)
		w.expr(n.Cond)
		w.stmt(n.Post)
		s.declare(n.Init)
		s.Bodies = [][]*Stmt{f.list(n.Body.List, s)}
	case *ast.RangeStmt:
		s.begin(w, f.rangesOver(n))
		w.rangeSteps(n)
		if n.Tok == token.DEFINE {
			s.declareExprs(n.Key, n.Value)
		}
		s.Bodies = [][]*Stmt{f.list(n.Body.List, s)}
	case *ast.SwitchStmt:
		w.stmt(n.Init)
		w.expr(n.Tag)
		s.declare(n.Init)
		s.clauses(w, n.Body)
	case *ast.TypeSwitchStmt:
		w.stmt(n.Init)
		w.stmt(n.Assign)
		s.declare(n.Init)
		s.declare(n.Assign)
		s.clauses(w, n.Body)
	case *ast.SelectStmt:
		if !f.polls(n) {
			w.stmt(n)
			break
		}
		w.asks(n)
		s.Bodies = [][]*Stmt{}
		for _, c := range n.Body.List {
			s.Bodies = append(s.Bodies, f.list(c.(*ast.CommClause).Body, s))
		}
	case *ast.ReturnStmt:
		if f.Here != nil {
			f.returns(w, s, n)
		} else {
			w.stmt(n)
		}
	default:
		w.stmt(n)
		s.declare(n)
	}
	if isLoop(s.Inner()) && !f.perIteration() {
		clear(s.Declares) // one variable for all iterations
	}
	return s
}

// begin walks what a loop evaluates once, before its first iteration. Where s is
// the loop of the tree, nothing is on its way then: it may wait, for whatever it likes.
func (s *Stmt) begin(w *walker, n ast.Node) {
	if s.Parent != nil {
		reads, waits := len(s.Reads), s.Head.Waits
		w.node(n)
		s.Begins = len(s.Reads) > reads || s.Head.Waits != waits
		return
	}
	once := &walker{f: s.f, e: &Effects{}, held: w.held}
	once.node(n)
	once.e.Waits, once.e.Barrier = nil, nil
	w.e.add(once.e)
}

// ifs takes a chain of ifs as one statement: nothing can be put between else
// and if.
func (s *Stmt) ifs(w *walker, n *ast.IfStmt) {
	for {
		w.stmt(n.Init)
		w.expr(n.Cond)
		s.declare(n.Init)
		s.Bodies = append(s.Bodies, s.f.list(n.Body.List, s))
		switch e := n.Else.(type) {
		case nil:
			return
		case *ast.BlockStmt:
			s.Bodies = append(s.Bodies, s.f.list(e.List, s))
			return
		case *ast.IfStmt:
			n = e
		}
	}
}

func (s *Stmt) clauses(w *walker, body *ast.BlockStmt) {
	s.Bodies = [][]*Stmt{}
	for _, c := range body.List {
		c := c.(*ast.CaseClause)
		for _, e := range c.List {
			if !s.f.Info.Types[e].IsType() {
				w.expr(e)
			}
		}
		if v, ok := s.f.Info.Implicits[c].(*types.Var); ok {
			s.Declares[v] = true
			w.e.write(Loc{Kind: Var, Obj: v}, cause(c, "sets %s", v.Name()))
		}
		s.Bodies = append(s.Bodies, s.f.list(c.Body, s))
	}
}

// declare records the variables that a simple statement declares.
func (s *Stmt) declare(n ast.Stmt) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			s.declareExprs(n.Lhs...)
		}
	case *ast.DeclStmt:
		for _, spec := range n.Decl.(*ast.GenDecl).Specs {
			if vs, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range vs.Names {
					s.declareExprs(name)
				}
			}
		}
	}
}

func (s *Stmt) declareExprs(list ...ast.Expr) {
	for _, e := range list {
		if id, ok := e.(*ast.Ident); ok {
			if v, ok := s.f.Info.Defs[id].(*types.Var); ok {
				s.Declares[v] = true
			}
		}
	}
}

// perIteration reports whether each iteration of a loop has its own copy of
// the variables that the loop declares, as since Go 1.22.
func (f *Function) perIteration() bool {
	v := ""
	for _, file := range f.Pkg.Syntax {
		if file.FileStart <= f.Decl.Pos() && f.Decl.Pos() < file.FileEnd {
			v = f.Info.FileVersions[file]
		}
	}
	return v == "" || version.Compare(v, "go1.22") >= 0
}
