package blocking

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"sort"

	"github.com/asyncgen/asyncgen/analysis/internal/syntax"
	"github.com/asyncgen/asyncgen/analysis/tensorapi"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/cfg"
)

// The control-flow graph of one function, with what rules and the other files ask of it: dominators,
// loops, and the block that a place belongs to.
//
//	for i := range n { // block 1, the head: dominates 2 and 3
//		if p(i) {
//			use(i)     // block 2
//		}
//		next()         // block 3, with the edge back to 1: blocks 1 to 3 are the loop
//	}
//
// Graphs of package cfg have statements and conditions as nodes, in the order in which they run. A
// literal has a graph of its own: it is one node's part in the graph of the function around it.

// MaxTrips is the number of iterations up to which a loop with a constant trip count is Small, and no
// loop to the rules: to wait twice for two things is not a pattern.
const MaxTrips = 4

// A Flow is the control-flow graph of one function body with what we ask of it: dominators, natural
// loops, and the block that a piece of syntax is in. Blocks are named by their indexes in Blocks. A
// block is dead if no way leads to it from the entry, block 0; dead blocks have no dominator and no
// predecessors.
type Flow struct {
	Blocks []*cfg.Block
	idom   []int32   // immediate dominators; -1 for the entry and dead blocks
	Order  []int32   // reverse postorder number of live blocks, -1 of dead ones
	Preds  [][]int32 // of live blocks, live predecessors
	spans  []span    // of all nodes of live blocks, by position
	Loops  []*Loop   // outer loops before inner ones

	tags map[ast.Stmt]ast.Expr // of the clauses of switch statements with a tag
}

// A span says which block a node of the graph is in. Nodes don't overlap, as statements with bodies are
// no nodes, so the spans sorted by position can be searched by bisection.
type span struct {
	pos, end token.Pos
	block    int32
}

// newFlow builds the graph of the body of fn. A call that never returns, such as panic or os.Exit, ends
// its block.
func newFlow(info *types.Info, fn *Func) *Flow {
	g := cfg.New(fn.Body, func(call *ast.CallExpr) bool { return !syntax.NeverReturns(info, call) })
	f := &Flow{Blocks: g.Blocks, tags: make(map[ast.Stmt]ast.Expr)}
	// The graph has only e for "case e" of a switch with a tag. The tag is kept, since the condition is
	// tag == e.
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		if s, ok := n.(*ast.SwitchStmt); ok && s.Tag != nil {
			for _, clause := range s.Body.List {
				f.tags[clause] = s.Tag
			}
		}
		return true
	})
	f.number()
	f.dominators()
	for _, blk := range f.Blocks {
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

// BlockAt returns the block that evaluates the syntax at pos, or -1 if that
// is dead code or no part of the graph.
func (f *Flow) BlockAt(pos token.Pos) int32 {
	i := sort.Search(len(f.spans), func(i int) bool { return f.spans[i].pos > pos }) - 1
	if i < 0 || pos >= f.spans[i].end {
		return -1
	}
	return f.spans[i].block
}

// number computes the reverse postorder and the predecessors, by a depth-first search from the entry.
// In this order a block comes before all that it dominates, and an edge of a loop is the only one that
// leads backwards.
func (f *Flow) number() {
	f.Order = make([]int32, len(f.Blocks))
	f.Preds = make([][]int32, len(f.Blocks))
	var post []int32
	seen := make([]bool, len(f.Blocks))
	var visit func(b *cfg.Block)
	visit = func(b *cfg.Block) {
		seen[b.Index] = true
		for _, s := range b.Succs {
			f.Preds[s.Index] = append(f.Preds[s.Index], b.Index)
			if !seen[s.Index] {
				visit(s)
			}
		}
		post = append(post, b.Index)
	}
	visit(f.Blocks[0])
	for i := range f.Order {
		f.Order[i] = -1
	}
	for i, b := range post {
		f.Order[b] = int32(len(post) - 1 - i)
	}
}

// dominators computes the immediate dominators by the algorithm of Cooper, Harvey and Kennedy, "A
// Simple, Fast Dominance Algorithm" (2001): the dominator of a block is what those of its predecessors
// have in common, until nothing changes. In reverse postorder, two rounds are enough for a body without
// goto.
func (f *Flow) dominators() {
	f.idom = make([]int32, len(f.Blocks))
	var rpo []int32
	for i := range f.Blocks {
		f.idom[i] = -1
		if f.Order[i] >= 0 {
			rpo = append(rpo, int32(i))
		}
	}
	sort.Slice(rpo, func(i, j int) bool { return f.Order[rpo[i]] < f.Order[rpo[j]] })
	entry := rpo[0]
	f.idom[entry] = entry
	for changed := true; changed; {
		changed = false
		for _, b := range rpo[1:] {
			idom := int32(-1)
			for _, p := range f.Preds[b] {
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

// meet returns the last block that dominates both a and b. It goes up the tree of dominators from the
// one that is later in reverse postorder, until both are the same.
func (f *Flow) meet(a, b int32) int32 {
	for a != b {
		if f.Order[a] > f.Order[b] {
			a = f.idom[a]
		} else {
			b = f.idom[b]
		}
	}
	return a
}

// Dominates reports whether every path from the entry to b leads through a.
func (f *Flow) Dominates(a, b int32) bool {
	if a < 0 || b < 0 {
		return false
	}
	for b >= 0 && b != a {
		b = f.idom[b]
	}
	return b == a
}

// Reaches reports whether control can get from block a to block b along at least one edge, without
// passing a block for which avoid is true. Neither a nor b has to be allowed itself: it is a question
// about the way between them. Reaches(a, a, never) asks whether a is in a loop.
func (f *Flow) Reaches(a, b int32, avoid func(int32) bool) bool {
	seen := make([]bool, len(f.Blocks))
	work := []int32{a}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		for _, s := range f.Blocks[n].Succs {
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

// A Loop is code that may run many times. There are three kinds, and a fourth that rules make:
//
//   - a natural loop in the graph of a function, which has Blocks and mostly a Stmt;
//   - the whole body of a literal that its callee calls in a loop (Func.Runs says Looping);
//   - the whole body of a function that calls itself (Func.Cyclic);
//   - the whole body of a function that is likely to be called in a loop elsewhere; Why has the reason.
type Loop struct {
	// Stmt is the loop's statement, nil if it has none.
	Stmt ast.Stmt
	// Pos is where the loop begins, for messages.
	Pos token.Pos

	// Func is the function with the loop. Blocks are those of the loop in its control-flow graph, nil if the loop is
	// the whole body, and Head is the one that every iteration begins with.
	Func   *Func
	Head   int32
	Blocks map[int32]bool
	// Handed reports whether the loop is inside a callee: it loops over a function that a call in Func
	// gives it, by name and not as a literal.
	Handed bool
	// Small reports whether it runs at most MaxTrips times.
	Small bool
	// Why is set if nothing in this package is seen to loop over the body of Func.
	Why Repeated
}

// A Repeated says why a function counts as the body of a loop, though nothing in this package is seen
// to loop over it. Package sites makes such loops from what the function does:
//
//	func (m *meter) Update(loss *tensor.Tensor) { m.sum += loss.Item() } // Accumulating
//
// A function like this makes sense only if somebody calls it again and again.
type Repeated uint8

// The reasons why a function is repeated.
const (
	Chosen       Repeated = iota + 1 // a loop calls it through a variable or an interface
	Measuring                        // the same, and the loop only adds up what it returns
	Accumulating                     // it adds to a field
	Stepping                         // it takes a step of training
	Layered                          // it computes a layer of a model
)

// Declares reports whether each iteration may have a v of its own: v is declared in l's statement, or l
// has none. Other variables carry values from one iteration to the next.
func (l *Loop) Declares(v *types.Var) bool {
	return l.Stmt == nil || l.Stmt.Pos() <= v.Pos() && v.Pos() < l.Stmt.End()
}

// findLoops finds the natural loops. An edge whose head dominates its tail closes one; edges with the
// same head, as for continue, make one loop. Larger loops come first, so outer ones come before inner
// ones.
func (f *Flow) findLoops(info *types.Info, fn *Func) {
	byHead := make(map[int32]*Loop)
	for _, tail := range f.Blocks {
		if f.Order[tail.Index] < 0 {
			continue
		}
		for _, head := range tail.Succs {
			if !f.Dominates(head.Index, tail.Index) {
				continue
			}
			l := byHead[head.Index]
			if l == nil {
				l = &Loop{Func: fn, Head: head.Index, Blocks: map[int32]bool{head.Index: true}, Pos: fn.Body.Pos()}
				l.describe(fn.Package, head)
				byHead[head.Index] = l
				f.Loops = append(f.Loops, l)
			}
			f.extend(l, tail.Index)
		}
	}
	sort.SliceStable(f.Loops, func(i, j int) bool { return len(f.Loops[i].Blocks) > len(f.Loops[j].Blocks) })
}

// extend adds the blocks from which tail is reached without passing l's head. These are the loop that the edge from
// tail to head closes.
func (f *Flow) extend(l *Loop, tail int32) {
	// Backwards from tail; the head is in Blocks from the start, so the search ends there.
	work := []int32{tail}
	for len(work) > 0 {
		n := work[len(work)-1]
		work = work[:len(work)-1]
		if l.Blocks[n] {
			continue
		}
		l.Blocks[n] = true
		work = append(work, f.Preds[n]...)
	}
}

// describe sets the statement, the place and the size of l. A loop of gotos has no statement.
func (l *Loop) describe(pkg *Package, head *cfg.Block) {
	info := pkg.Info
	switch s := head.Stmt.(type) {
	case *ast.ForStmt:
		l.Stmt, l.Pos = s, s.Pos()
		l.Small = ForTrips(info, s) <= MaxTrips
	case *ast.RangeStmt:
		l.Stmt, l.Pos = s, s.Pos()
		l.Small = pkg.Trips(s.X) <= MaxTrips
	default:
		if len(head.Nodes) > 0 {
			l.Pos = head.Nodes[0].Pos()
		}
	}
}

// ManyTrips is the trip count of a loop whose count is unknown.
const ManyTrips = 1 << 30

// ForTrips returns the trip count of a for statement with constant bounds that counts by one; otherwise
// ManyTrips. It may be 0 or less for a loop that never runs.
//
//	for i := 0; i < 3; i++ {} // 3
//	for i := 9; i >= 0; i-- {} // 10
func ForTrips(info *types.Info, s *ast.ForStmt) int64 {
	init, _ := s.Init.(*ast.AssignStmt)
	cond, _ := s.Cond.(*ast.BinaryExpr)
	post, _ := s.Post.(*ast.IncDecStmt)
	if init == nil || cond == nil || post == nil || len(init.Rhs) != 1 {
		return ManyTrips
	}
	from, ok1 := syntax.IntConst(info, init.Rhs[0])
	to, ok2 := syntax.IntConst(info, cond.Y)
	if !ok1 || !ok2 {
		return ManyTrips
	}
	// The step is one, up or down.
	n := to - from
	if post.Tok == token.DEC {
		n = -n
	}
	switch cond.Op {
	case token.LEQ, token.GEQ:
		n++
	case token.LSS, token.GTR, token.NEQ:
	default:
		return ManyTrips
	}
	return n
}

// OnlyValue returns the value of a local variable that is assigned once, and e itself if it is something else.
//
//	names := []string{"a", "b"}
//	for _, n := range names {} // OnlyValue(names) is the literal
func (pkg *Package) OnlyValue(e ast.Expr) ast.Expr {
	if v := pkg.Local(e); v != nil && pkg.Params[v].Of == nil {
		if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == DefValue && d[0].Index == 0 {
			return d[0].Value
		}
	}
	return e
}

// RangeTrips returns the trip count of a range over x if the type or text of x has it: a constant, an
// array, a literal of a list, a part of a list with constant bounds. Otherwise it returns ManyTrips.
func RangeTrips(info *types.Info, x ast.Expr) int64 {
	tv := info.Types[x]
	if n, ok := syntax.IntConst(info, x); ok {
		return n
	}
	if tv.Value != nil && tv.Value.Kind() == constant.String {
		return int64(len(constant.StringVal(tv.Value)))
	}
	if s, ok := ast.Unparen(x).(*ast.SliceExpr); ok {
		low, isConst := syntax.IntConst(info, syntax.OrNil(s.Low))
		high, ok := syntax.IntConst(info, syntax.OrNil(s.High))
		if ok && (isConst || s.Low == nil) {
			return high - low
		}
	}
	t := tv.Type.Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	if a, ok := t.(*types.Array); ok {
		return a.Len()
	}
	if lit, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
		if !slices.ContainsFunc(lit.Elts, isKeyed) || syntax.IsMap(tv.Type) {
			return int64(len(lit.Elts))
		}
	}
	return ManyTrips
}

// Trips returns the number of iterations, as RangeTrips does. It knows more: variables that are assigned once, slices
// of these from some element on, and the sizes of what TopK and Slice make.
//
//	var cases = []testCase{{"plain", run}, {"fused", runFused}}
//	for _, c := range cases[1:] {} // 1
func (pkg *Package) Trips(x ast.Expr) int64 {
	n := RangeTrips(pkg.Info, x)
	if s, ok := ast.Unparen(x).(*ast.SliceExpr); ok && s.Low != nil && s.High == nil {
		low, isConst := syntax.IntConst(pkg.Info, s.Low)
		if all := pkg.Trips(s.X); isConst && all < ManyTrips {
			return all - low
		}
	}
	if v := pkg.Variable(x); v != nil && syntax.IsIdent(ast.Unparen(x)) && pkg.Params[v].Of == nil {
		if d := pkg.Defs[v]; len(d) == 1 && d[0].Kind == DefValue && d[0].Index == 0 {
			n = min(n, RangeTrips(pkg.Info, d[0].Value))
		}
	}
	return min(n, pkg.elements(x))
}

// elements returns how many elements x has, a list that is read from a tensor, if the call says so that makes the
// tensor. Otherwise it returns ManyTrips.
//
//	_, at := loss.TopK(3, 0, tensor.Descending)
//	for _, i := range at.Int64s() {} // 3
func (pkg *Package) elements(x ast.Expr) int64 {
	c := pkg.Calls[syntax.AsCall(pkg.OnlyValue(x))]
	if c == nil || c.API.Kind != tensorapi.Read || c.API.Arg != tensorapi.Recv || c.Lib != tensorapi.Ours() {
		return ManyTrips
	}
	of := c.Operand(tensorapi.Recv)[0]
	if d := pkg.Defs[pkg.Local(of)]; len(d) == 1 && d[0].Kind == DefValue {
		of = d[0].Value // of any index
	}
	made := pkg.Calls[syntax.AsCall(of)]
	if made == nil || len(made.Expr.Args) < 3 {
		return ManyTrips
	}
	switch at := made.Expr.Args; {
	case made.IsFunc("Tensor.TopK"):
		k, known := syntax.IntConst(pkg.Info, at[0])
		if dim, ok := syntax.IntConst(pkg.Info, at[1]); ok && known && dim == 0 {
			return k
		}
	case made.IsFunc("Tensor.Slice"):
		dim, ok := syntax.IntConst(pkg.Info, at[0])
		low, isLow := syntax.IntConst(pkg.Info, at[1])
		high, isHigh := syntax.IntConst(pkg.Info, at[2])
		if ok && dim == 0 && isLow && isHigh && 0 <= low && low <= high && typeIsIntegers(pkg, x) {
			return high - low
		}
	}
	return ManyTrips
}

// typeIsIntegers reports whether x is a list of integers, such as places of elements.
func typeIsIntegers(pkg *Package, x ast.Expr) bool {
	elem := syntax.ElementType(pkg.Info.TypeOf(x))
	if elem == nil {
		return false
	}
	basic, ok := elem.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsInteger != 0
}

// isKeyed reports whether an element of a literal has a key. A list with keys, []int{9: 1}, may be longer than its
// elements.
func isKeyed(e ast.Expr) bool { _, ok := e.(*ast.KeyValueExpr); return ok }

// Outermost returns the outermost loop around l in the same function, which may be l itself. Loops are
// sorted by size, so the first that contains l's head is the outermost.
func (l *Loop) Outermost() *Loop {
	for _, around := range l.Func.Flow().Loops {
		if l.Blocks != nil && around.Blocks[l.Head] {
			return around
		}
	}
	return l
}

// returns reports whether control can get from block b to a return, or to the end of the function. From
// a block that ends in a panic it can't.
func (f *Flow) returns(b int32) bool {
	for _, blk := range f.Blocks {
		if b >= 0 && blk.Live && blk.Return() != nil && (blk.Index == b || f.Reaches(b, blk.Index, never)) {
			return true
		}
	}
	return false
}

// LoopsAround yields the loops in which the syntax at pos in f runs, inner ones first: the loops of f,
// then those of the functions around f while f is a literal that runs where it is written. Two kinds of
// bodies are loops as well: that of a literal called in a loop, and that of a recursive function.
//
//	for _, b := range batches {                // second
//		each(b.parts, func(p part) { use(p) }) // first, if each calls its argument in a loop
//	}
func (pkg *Package) LoopsAround(f *Func, pos token.Pos) func(func(*Loop) bool) {
	return func(yield func(*Loop) bool) {
		for {
			fl := f.Flow()
			b := fl.BlockAt(pos)
			if b < 0 {
				return // dead code
			}
			for _, l := range slices.Backward(fl.Loops) {
				if l.Blocks[b] && !yield(l) {
					return
				}
			}
			h := f.Runs()
			if (h == Looping || f.Cyclic && recurs(pkg, f, b)) && !yield(f.WholeLoop()) {
				return
			}
			if h != Once && h != Looping {
				return
			}
			pos, f = f.Lit.Pos(), f.Parent
		}
	}
}

// recurs reports whether the code of block b runs many times because f calls itself. It does on a path through such a
// call. It also does where the recursion ends, if a path has several such calls: then there are as many ends as a tree
// has leaves.
//
//	func walk(n *node) {
//		if n == nil {
//			return
//		}
//		walk(n.left)
//		use(n) // many times
//		walk(n.right)
//	}
func recurs(pkg *Package, f *Func, b int32) bool {
	fl := f.Flow()
	var calls []int32 // by block
	for _, c := range f.Calls {
		if c.Target == nil || c.Target.SCC != f.SCC {
			continue
		}
		r := fl.BlockAt(c.Expr.Pos())
		if r < 0 {
			continue
		}
		// On a path through the call.
		if r == b || fl.Reaches(b, r, never) || fl.Reaches(r, b, never) {
			return true
		}
		// A second call on one path with it, or the same call again in a loop.
		for _, other := range append(calls, r) {
			if fl.Reaches(other, r, never) || fl.Reaches(r, other, never) || other == r && slices.Contains(calls, r) {
				return true
			}
		}
		calls = append(calls, r)
	}
	return false
}

// never avoids no block, for Reaches.
func never(int32) bool { return false }

// Related returns the loop's place and a few words about it, for a diagnostic.
func (l *Loop) Related() []analysis.RelatedInformation {
	what := "the loop"
	if l.Blocks == nil {
		what = "called in a loop"
		switch {
		case l.Why == Accumulating:
			what = "this function adds to a field, as it is called again and again"
		case l.Why == Stepping:
			what = "this function takes a step of training, as it is called again and again"
		case l.Why == Layered:
			what = "this function computes a layer, in each step that a model takes"
		case l.Why == 0 && !l.Handed && l.Func.Cyclic && l.Func.Runs() != Looping:
			what = "this function calls itself"
		}
	}
	return []analysis.RelatedInformation{{Pos: l.Pos, Message: what}}
}
