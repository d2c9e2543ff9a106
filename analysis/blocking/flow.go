package blocking

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"sort"

	"golang.org/x/tools/go/cfg"
)

// maxTrips is the number of iterations up to which a loop with a constant
// trip count is no loop to us: waiting twice for two things is not a pattern.
const maxTrips = 4

// A flow is the control-flow graph of one function body with what we ask of
// it: dominators, natural loops, and the block that a piece of syntax is in.
type flow struct {
	blocks []*cfg.Block
	idom   []int32   // immediate dominators; -1 for the entry and dead blocks
	order  []int32   // reverse postorder number of live blocks, -1 of dead ones
	preds  [][]int32 // of live blocks, live predecessors
	spans  []span    // of all nodes of live blocks, by position
	loops  []*Loop   // outer loops before inner ones

	tags map[ast.Stmt]ast.Expr // of the clauses of switch statements with a tag
}

// A span says which block a node of the graph is in. Nodes don't overlap, as
// statements with bodies are not nodes.
type span struct {
	pos, end token.Pos
	block    int32
}

// newFlow builds the graph of a body.
func newFlow(info *types.Info, fn *Func) *flow {
	g := cfg.New(fn.block, func(call *ast.CallExpr) bool { return !neverReturns(info, call) })
	f := &flow{blocks: g.Blocks, tags: make(map[ast.Stmt]ast.Expr)}
	ast.Inspect(fn.block, func(n ast.Node) bool {
		if s, ok := n.(*ast.SwitchStmt); ok && s.Tag != nil {
			for _, clause := range s.Body.List {
				f.tags[clause] = s.Tag
			}
		}
		return true
	})
	f.number()
	f.dominators()
	for _, blk := range f.blocks {
		if !blk.Live {
			continue
		}
		for _, n := range blk.Nodes {
			f.spans = append(f.spans, span{n.Pos(), n.End(), blk.Index})
		}
		if s, ok := blk.Stmt.(*ast.RangeStmt); ok && blk.Kind == cfg.KindRangeBody {
			// The brace stands for the assignment to the loop's variables.
			f.spans = append(f.spans, span{s.Body.Lbrace, s.Body.Lbrace + 1, blk.Index})
		}
	}
	sort.SliceStable(f.spans, func(i, j int) bool { return f.spans[i].pos < f.spans[j].pos })
	f.findLoops(info, fn)
	return f
}

// blockAt returns the block that evaluates the syntax at pos, or -1 if that
// is dead code or no part of the graph.
func (f *flow) blockAt(pos token.Pos) int32 {
	i := sort.Search(len(f.spans), func(i int) bool { return f.spans[i].pos > pos }) - 1
	if i < 0 || pos >= f.spans[i].end {
		return -1
	}
	return f.spans[i].block
}

// number computes the reverse postorder and the predecessors.
func (f *flow) number() {
	f.order = make([]int32, len(f.blocks))
	f.preds = make([][]int32, len(f.blocks))
	var post []int32
	seen := make([]bool, len(f.blocks))
	var visit func(b *cfg.Block)
	visit = func(b *cfg.Block) {
		seen[b.Index] = true
		for _, s := range b.Succs {
			f.preds[s.Index] = append(f.preds[s.Index], b.Index)
			if !seen[s.Index] {
				visit(s)
			}
		}
		post = append(post, b.Index)
	}
	visit(f.blocks[0])
	for i := range f.order {
		f.order[i] = -1
	}
	for i, b := range post {
		f.order[b] = int32(len(post) - 1 - i)
	}
}

// dominators is the algorithm of Cooper, Harvey and Kennedy, "A Simple, Fast
// Dominance Algorithm" (2001).
func (f *flow) dominators() {
	f.idom = make([]int32, len(f.blocks))
	var rpo []int32
	for i := range f.blocks {
		f.idom[i] = -1
		if f.order[i] >= 0 {
			rpo = append(rpo, int32(i))
		}
	}
	sort.Slice(rpo, func(i, j int) bool { return f.order[rpo[i]] < f.order[rpo[j]] })
	entry := rpo[0]
	f.idom[entry] = entry
	for changed := true; changed; {
		changed = false
		for _, b := range rpo[1:] {
			idom := int32(-1)
			for _, p := range f.preds[b] {
				switch {
				case f.idom[p] < 0:
				case idom < 0:
					idom = p
				default:
					idom = f.meet(p, idom)
				}
			}
			if f.idom[b] != idom {
				f.idom[b] = idom
				changed = true
			}
		}
	}
	f.idom[entry] = -1
}

func (f *flow) meet(a, b int32) int32 {
	for a != b {
		if f.order[a] > f.order[b] {
			a = f.idom[a]
		} else {
			b = f.idom[b]
		}
	}
	return a
}

// dominates reports whether every path from the entry to b leads through a.
func (f *flow) dominates(a, b int32) bool {
	if a < 0 || b < 0 {
		return false
	}
	for b >= 0 && b != a {
		b = f.idom[b]
	}
	return b == a
}

// reaches reports whether control can get from block a to block b along at
// least one edge, without passing a block for which avoid is true.
func (f *flow) reaches(a, b int32, avoid func(int32) bool) bool {
	seen := make([]bool, len(f.blocks))
	work := []int32{a}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, s := range f.blocks[n].Succs {
			if s.Index == b {
				return true
			}
			if !seen[s.Index] && !avoid(s.Index) {
				seen[s.Index] = true
				work = append(work, s.Index)
			}
		}
	}
	return false
}

// A Loop is code that may run many times: a natural loop of a function's
// control-flow graph, or the whole body of a function literal that something
// calls in a loop, or the whole body of a recursive function.
type Loop struct {
	// Stmt is the loop's statement, nil if it has none.
	Stmt ast.Stmt
	// Pos is where the loop begins, for messages.
	Pos token.Pos

	fn     *Func
	head   int32
	blocks map[int32]bool // nil: the whole body
	handed bool           // not the body of fn, but a function that a call in it is handed
	small  bool           // runs at most maxTrips times
	why    repeated       // the body of fn, which nothing in this package is seen to loop over
}

// findLoops finds the natural loops: those of the edges whose head dominates
// their tail. Edges with the same head make one loop.
func (f *flow) findLoops(info *types.Info, fn *Func) {
	byHead := make(map[int32]*Loop)
	for _, tail := range f.blocks {
		if f.order[tail.Index] < 0 {
			continue
		}
		for _, head := range tail.Succs {
			if !f.dominates(head.Index, tail.Index) {
				continue
			}
			l := byHead[head.Index]
			if l == nil {
				l = &Loop{fn: fn, head: head.Index, blocks: map[int32]bool{head.Index: true}, Pos: fn.block.Pos()}
				l.describe(fn.a, head)
				byHead[head.Index] = l
				f.loops = append(f.loops, l)
			}
			f.extend(l, tail.Index)
		}
	}
	sort.SliceStable(f.loops, func(i, j int) bool { return len(f.loops[i].blocks) > len(f.loops[j].blocks) })
}

// extend adds the blocks from which tail is reached without passing l's head.
func (f *flow) extend(l *Loop, tail int32) {
	work := []int32{tail}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if l.blocks[n] {
			continue
		}
		l.blocks[n] = true
		work = append(work, f.preds[n]...)
	}
}

func (l *Loop) describe(a *analyzer, head *cfg.Block) {
	info := a.info
	switch s := head.Stmt.(type) {
	case *ast.ForStmt:
		l.Stmt, l.Pos = s, s.Pos()
		l.small = forTrips(info, s) <= maxTrips
	case *ast.RangeStmt:
		l.Stmt, l.Pos = s, s.Pos()
		l.small = min(rangeTrips(info, s.X), rangeTrips(info, a.onlyValue(s.X))) <= maxTrips
	default:
		if len(head.Nodes) > 0 {
			l.Pos = head.Nodes[0].Pos()
		}
	}
}

const manyTrips = 1 << 30

// forTrips returns the trip count of "for i := c; i < d; i++" and its like
// with constants, else manyTrips.
func forTrips(info *types.Info, s *ast.ForStmt) int64 {
	init, _ := s.Init.(*ast.AssignStmt)
	cond, _ := s.Cond.(*ast.BinaryExpr)
	post, _ := s.Post.(*ast.IncDecStmt)
	if init == nil || cond == nil || post == nil || len(init.Rhs) != 1 {
		return manyTrips
	}
	from, ok1 := intConst(info, init.Rhs[0])
	to, ok2 := intConst(info, cond.Y)
	if !ok1 || !ok2 {
		return manyTrips
	}
	n := to - from
	if post.Tok == token.DEC {
		n = -n
	}
	switch cond.Op {
	case token.LEQ, token.GEQ:
		n++
	case token.LSS, token.GTR, token.NEQ:
	default:
		return manyTrips
	}
	return n
}

// onlyValue is the value of a local variable that is never given another, or e.
func (a *analyzer) onlyValue(e ast.Expr) ast.Expr {
	if v := a.local(e); v != nil && a.params[v].of == nil {
		if d := a.defs[v]; len(d) == 1 && d[0].kind == defValue && d[0].index == 0 {
			return d[0].value
		}
	}
	return e
}

// rangeTrips returns how often a loop over x runs if its type or text says so.
func rangeTrips(info *types.Info, x ast.Expr) int64 {
	tv := info.Types[x]
	if n, ok := intConst(info, x); ok {
		return n
	}
	if tv.Value != nil && tv.Value.Kind() == constant.String {
		return int64(len(constant.StringVal(tv.Value)))
	}
	t := tv.Type.Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	if a, ok := t.(*types.Array); ok {
		return a.Len()
	}
	if lit, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
		if !slices.ContainsFunc(lit.Elts, isKeyed) || isMap(tv.Type) {
			return int64(len(lit.Elts))
		}
	}
	return manyTrips
}

func isKeyed(e ast.Expr) bool { _, ok := e.(*ast.KeyValueExpr); return ok }

func isMap(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok }

func intConst(info *types.Info, e ast.Expr) (int64, bool) {
	v := info.Types[e].Value
	if v == nil || v.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(v)
}

// outermost is the outermost loop of the function around l, or l.
func (l *Loop) outermost() *Loop {
	for _, around := range l.fn.flow().loops {
		if l.blocks != nil && around.blocks[l.head] {
			return around
		}
	}
	return l
}

// returns reports whether control can get from block b to the function's end.
func (f *flow) returns(b int32) bool {
	for _, blk := range f.blocks {
		if b >= 0 && blk.Live && blk.Return() != nil && (blk.Index == b || f.reaches(b, blk.Index, never)) {
			return true
		}
	}
	return false
}

// neverReturns reports whether a call ends the goroutine or the process.
func neverReturns(info *types.Info, call *ast.CallExpr) bool {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		b, ok := info.Uses[fun].(*types.Builtin)
		return ok && b.Name() == "panic"
	case *ast.SelectorExpr:
		fn, ok := info.Uses[fun.Sel].(*types.Func)
		if !ok || fn.Pkg() == nil {
			return false
		}
		switch fn.Pkg().Path() {
		case "os":
			return fn.Name() == "Exit"
		case "runtime":
			return fn.Name() == "Goexit"
		case "log":
			switch fn.Name() {
			case "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln":
				return true
			}
		case "testing":
			switch fn.Name() {
			case "Fatal", "Fatalf", "FailNow", "Skip", "Skipf", "SkipNow":
				return true
			}
		}
	}
	return false
}
