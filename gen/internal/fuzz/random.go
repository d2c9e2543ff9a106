package fuzz

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A maker makes programs of decisions: choose(n) is one of 0 to n-1.
type maker struct {
	choose    func(n int) int
	p         *program
	scope     []*variable // innermost last
	loops     []*stmt     // around the statement, innermost last
	here      int         // where in scope the innermost block begins
	depth     int         // of blocks
	count     int         // of names
	left      int         // statements that may still be made
	off       []bool      // statements that this program has none of, so that others come together more often
	inSwitch  bool        // a break would leave a switch
	noCells   bool        // where cells may not be looked at
	noJumps   bool        // in a closure or a helper
	hostOnly  bool        // where there should be no work for the device
	shown     []*variable // by deferred functions
	total     *variable   // what the pointer called at points to
	clock     *variable   // in a loop that values end: a tensor that counts down
	outer     int         // how many loops there are up to that one
	before    []*variable // that the last loop of the kernel can see
	protected map[*variable]bool

	statements []statement // that stmt makes
}

// seeded returns the decisions of a seed.
func seeded(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 1)).IntN }

// fromBytes returns the decisions that b holds, and 0 when it has been used up.
func fromBytes(b []byte) func(int) int {
	return func(n int) int {
		if len(b) == 0 {
			return 0
		}
		x := int(b[0])
		b = b[1:]
		if n > 256 && len(b) > 0 {
			x, b = x<<8|int(b[0]), b[1:]
		}
		return x % n
	}
}

// newProgram makes the program of a seed.
func newProgram(seed uint64, name string) *program {
	choose := seeded(seed)
	for {
		p := makeProgram(choose, seed, name)
		if p.ends() {
			return p
		}
	}
}

// ends reports whether p comes to an end soon, on all its inputs.
func (p *program) ends() bool {
	for _, in := range p.inputs {
		if _, _, ended := p.run(in); !ended {
			return false
		}
	}
	return true
}

func makeProgram(choose func(int) int, seed uint64, name string) *program {
	p := &program{seed: seed, name: name, params: make(map[string]*variable)}
	g := &maker{choose: choose, p: p, protected: make(map[*variable]bool), statements: statements}
	p.leaves = g.chance(3)
	g.off = make([]bool, len(statements))
	for i := range g.off {
		g.off[i] = i > 0 && g.chance(3) || statements[i].where == spoils && g.chance(2)
	}
	p.dtype = dtype(choose(2))
	shape := [][2]int{{2, 2}, {2, 3}, {3, 1}, {1, 4}, {3, 3}}[choose(5)]
	p.rows, p.cols = shape[0], shape[1]
	p.form = g.pick("function", "function", "function", "method", "generic")
	p.named = g.chance(4)
	for range choose(3) {
		g.helper()
	}
	g.kernel()
	for k := range 2 {
		in := &Input{Seed: seed*31 + uint64(k), Mats: 2 + choose(5), Bad: -1, Flag: g.chance(2), N: choose(5)}
		if k == 1 {
			in.Mats = choose(8)
		}
		if g.chance(3) && in.Mats > 0 {
			in.Bad = choose(in.Mats)
		}
		for range choose(6) {
			in.Lines = append(in.Lines, strings.Repeat("x", choose(5)))
		}
		if in.Mats == 0 {
			in.Mats = 1
		}
		p.inputs = append(p.inputs, in)
	}
	if seed%4 == 3 {
		g.share() // last, so that other programs stay what they are
	}
	g.takeTurn(operations[seed%uint64(len(operations))])
	return p
}

func (g *maker) chance(oneIn int) bool { return g.choose(oneIn) == 0 }

func (g *maker) pick(list ...string) string { return list[g.choose(len(list))] }

// weighted returns the index of one of the weights.
func (g *maker) weighted(weights []int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	at := g.choose(total)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return len(weights) - 1
}

func (g *maker) declare(v *variable) *variable {
	g.scope = append(g.scope, v)
	return v
}

// fresh makes a variable. Now and then it shadows one of another block.
func (g *maker) fresh(k kind) *variable {
	g.count++
	return &variable{name: fmt.Sprintf("v%d", g.count), kind: k}
}

// visible are the variables of a kind that are not shadowed.
func (g *maker) visible(is func(*variable) bool) []*variable {
	var vs []*variable
	seen := make(map[string]bool)
	for _, v := range slices.Backward(g.scope) {
		if !seen[v.name] && is(v) {
			vs = append(vs, v)
		}
		seen[v.name] = true
	}
	return vs
}

func (g *maker) variable(k kind) *expr {
	vs := g.visible(func(v *variable) bool { return v.kind == k && v.fn == nil })
	if len(vs) == 0 {
		return nil
	}
	return of(vs[g.choose(len(vs))])
}

func of(v *variable) *expr { return &expr{form: eVar, kind: v.kind, v: v} }

func literal(k kind, x any) *expr { return &expr{form: eLiteral, kind: k, lit: x} }

func apply(o *operation, args ...*expr) *expr {
	return &expr{form: eOp, kind: o.result, op: o, args: args}
}

// index is an index below three that no one changes.
func (g *maker) index(limit int) *expr {
	vs := g.visible(func(v *variable) bool { return v.kind == tInt && g.protected[v] })
	if len(vs) == 0 || g.chance(4) {
		return literal(tInt, g.choose(limit))
	}
	o := &operation{source: fmt.Sprintf("$0 %% %d", limit), result: tInt, args: []kind{tInt}, eval: func(_ *machine, a []any) any { return a[0].(int) % limit }}
	return apply(o, of(vs[g.choose(len(vs))]))
}

// expr makes an expression of a kind; deep is how much it may nest.
func (g *maker) expr(k kind, deep int) *expr {
	x := g.variable(k)
	if x != nil && (deep <= 0 || g.chance(3) || g.hostOnly && k.isTensor()) {
		return x
	}
	if deep <= 0 {
		if x := g.leaf(k); x != nil {
			return x
		}
	}
	if k == tFloat && g.chance(4) {
		return g.element()
	}
	if k == tBool && g.chance(5) && deep > 0 {
		o := opAnd
		if g.chance(3) {
			o = opOr
		}
		return apply(o, g.expr(tBool, deep-1), g.expr(tBool, deep-1))
	}
	list, weights := g.makers(k, deep, common)
	if more, w := g.makers(k, deep, g.uncommon(k, deep)); len(more) > 0 && (len(list) == 0 || g.chance(3)) {
		list, weights = more, w
	}
	if len(list) == 0 {
		return x // or nil
	}
	o := list[g.weighted(weights)]
	args := make([]*expr, len(o.args))
	for i, a := range o.args {
		switch twice := strings.Count(o.source, fmt.Sprint("$", i)) > 1; {
		case o.source == "$0[$1%len($0)]" && i == 1:
			args[i] = g.index(3)
			if args[i].form == eOp {
				args[i] = args[i].args[0]
			}
		case twice:
			if args[i] = g.variable(a); args[i] == nil {
				return g.expr(k, 0)
			}
		case a == tFloat && o.device && (g.clock != nil && !g.chance(20) || !g.chance(4)):
			args[i] = g.leaf(a) // rather than a value that has to be waited for
		default:
			args[i] = g.expr(a, deep-1)
		}
	}
	return apply(o, args...)
}

// leaf is an expression without operands.
func (g *maker) leaf(k kind) *expr {
	switch k {
	case tBool:
		return literal(tBool, g.chance(2))
	case tInt:
		return literal(tInt, g.choose(4))
	case tFloat:
		return literal(tFloat, float64(g.choose(9)-4)/4)
	case tString:
		return literal(tString, g.pick("a", "bb", "-"))
	}
	return nil
}

// element is a number in memory.
func (g *maker) element() *expr {
	if x := g.place(tFloat); x != nil {
		return x
	}
	return g.leaf(tFloat)
}

// place is something that can be assigned to.
func (g *maker) place(k kind) *expr {
	var all []*expr
	for _, v := range g.visible(func(v *variable) bool { return !g.protected[v] && v.fn == nil }) {
		x := of(v)
		switch {
		case v.kind == k:
			all = append(all, x)
		case (v.kind == tStat || v.kind == tStatPtr) && k == tFloat:
			all = append(all, &expr{form: eField, kind: tFloat, field: "Total", args: []*expr{x}})
		case (v.kind == tStat || v.kind == tStatPtr) && k == tInt:
			all = append(all, &expr{form: eField, kind: tInt, field: "Count", args: []*expr{x}})
		case (v.kind == tStat || v.kind == tStatPtr) && k == tFloats:
			all = append(all, &expr{form: eField, kind: tFloats, field: "Hist", args: []*expr{x}})
		case v.kind == tFloatAt && k == tFloat:
			all = append(all, &expr{form: eDeref, kind: tFloat, args: []*expr{x}})
		case v.kind == tPair && k == tFloat:
			all = append(all, &expr{form: eIndex, kind: tFloat, args: []*expr{x, g.index(2)}})
		case v.kind == tMap && k == tFloat:
			all = append(all, &expr{form: eIndex, kind: tFloat, args: []*expr{x, g.index(3)}})
		case v.kind == tFloats && k == tFloat && v.name == "rates":
			all = append(all, &expr{form: eIndex, kind: tFloat, args: []*expr{x, g.index(3)}})
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[g.choose(len(all))]
}

// uncommon returns the operations that one expression in three is made of, however many there are.
func (g *maker) uncommon(k kind, deep int) []*operation {
	if (k == tMat || k == tVec || k == tOne) && deep > 0 && g.chance(50) {
		return unrounded
	}
	return others
}

// makers returns those of the operations that can make an expression of kind k here, and their weights.
func (g *maker) makers(k kind, deep int, from []*operation) (list []*operation, weights []int) {
	for _, o := range from {
		if o.result != k || o.cells && g.noCells || deep <= 0 && slices.Contains(o.args, k) || slices.Contains(o.args, tMats) && g.variable(tMats) == nil {
			continue
		}
		list = append(list, o)
		weights = append(weights, o.weight)
	}
	return list, weights
}

// reading is an expression that waits, of one of the kinds that reads give.
func (g *maker) reading() *expr {
	var list []*operation
	var weights []int
	for _, o := range operations {
		if o.reads && o.result == tFloat {
			list, weights = append(list, o), append(weights, o.weight)
		}
	}
	o := list[g.weighted(weights)]
	args := make([]*expr, len(o.args))
	for i, k := range o.args {
		if args[i] = g.variable(k); args[i] == nil || g.chance(3) && !g.hostOnly {
			args[i] = g.expr(k, 2)
		}
	}
	return apply(o, args...)
}

// number is one that is read, or on the host.
func (g *maker) number() *expr {
	switch g.choose(5) {
	case 0, 1:
		return g.reading()
	case 2:
		return apply(operationOf("$0 + $1", tFloat), g.reading(), g.expr(tFloat, 1))
	}
	return g.expr(tFloat, 2)
}

// operationOf finds the operation with a source and result.
func operationOf(source string, result kind) *operation {
	for _, o := range operations {
		if o.source == source && o.result == result {
			return o
		}
	}
	panic("fuzz: no operation " + source)
}

// changeCells changes what the model holds.
func (g *maker) changeCells() *stmt {
	o := []*operation{opSetParam, opSetBuffer, opLearn, opMinimize, opMinimize, opBackward, opStep, opZeroGrad, opSetRate, opSeed, opState}[g.choose(11)]
	var args []*expr
	for _, k := range o.args {
		args = append(args, g.expr(k, 1+g.choose(2)))
	}
	return call(apply(o, args...))
}

// checkpoint keeps what the model holds, or gives it back.
func (g *maker) checkpoint() []*stmt {
	kept := g.variable(tState)
	switch {
	case g.noCells:
		return nil
	case kept == nil:
		list := one(declaration(g.declare(g.fresh(tState)), apply(opSnapshot)))
		if kept := g.variable(tState); kept != nil && g.chance(2) { // few programs come here twice
			list = append(list, g.changeCells(), call(apply(opRestore, kept)))
		}
		return list
	case g.chance(2):
		return one(call(apply(opRestore, kept)))
	}
	better := apply(operationOf("$0 > $1", tBool), g.reading(), g.leaf(tFloat))
	return one(&stmt{form: sIf, rhs: []*expr{better}, body: one(assign(kept, "=", apply(opSnapshot)))})
}

// condition is cheap mostly, and depends on values now and then.
func (g *maker) condition() *expr {
	if g.chance(4) {
		return g.tested(g.number())
	}
	return g.expr(tBool, 2)
}

// block makes a list of statements in a scope of its own.
func (g *maker) block(n int) []*stmt {
	scope, here := len(g.scope), g.here
	g.here = scope
	g.depth++
	var list []*stmt
	for range n {
		list = append(list, g.stmt()...)
	}
	g.depth--
	g.scope, g.here = g.scope[:scope], here
	return list
}

func call(x *expr) *stmt { return &stmt{form: sCall, rhs: []*expr{x}} }

func assign(l *expr, op string, r *expr) *stmt {
	return &stmt{form: sAssign, lhs: []*expr{l}, op: op, rhs: []*expr{r}}
}

func declaration(v *variable, x *expr) *stmt {
	return &stmt{form: sDeclare, vars: []*variable{v}, rhs: []*expr{x}}
}

// print makes a print of several operands.
func (g *maker) print() *stmt {
	s := &stmt{form: sPrint, text: g.pick(outWriter, outWriter, outWriter, logWriter)}
	if g.chance(2) {
		for range 1 + g.choose(3) {
			switch g.choose(8) {
			case 0, 1:
				s.rhs = append(s.rhs, g.tensorOperand())
			case 2:
				s.rhs = append(s.rhs, g.expr(tInt, 1))
			case 3:
				if x := g.variable([]kind{tStat, tFloats, tPair, tMap, tString, tStatPtr}[g.choose(6)]); x != nil {
					s.rhs = append(s.rhs, x)
					break
				}
				fallthrough
			default:
				s.rhs = append(s.rhs, g.number())
			}
		}
		return s
	}
	switch g.choose(4) {
	case 0:
		s.format, s.rhs = "%.4f %v\n", []*expr{g.number(), g.number()}
	case 1:
		s.format, s.rhs = "loss %.3f of %d\n", []*expr{g.tensorOperand(), g.expr(tInt, 1)}
	case 2:
		s.format, s.rhs = "%d: %6.2f %8.3g\n", []*expr{g.expr(tInt, 1), g.number(), g.tensorOperand()}
	case 3:
		s.format, s.rhs = "%v|%s\n", []*expr{g.tensorOperand(), g.expr(tString, 1)}
	}
	return s
}

// tensorOperand is a tensor that is printed as such.
func (g *maker) tensorOperand() *expr {
	return g.expr([]kind{tMat, tVec, tOne, tOne}[g.choose(4)], 1)
}

// A maker of statements, and how often it is asked.
type statement struct {
	weight int
	where  place
	make   func(g *maker) []*stmt
}

// A place says where a statement does no harm to the rewriting of others.
type place uint8

const (
	anywhere  place = iota
	forDevice       // not where a value has decided that it runs
	spoils          // few places: most programs have none
)

func one(s *stmt) []*stmt {
	if s == nil {
		return nil
	}
	return []*stmt{s}
}

var statements []statement

func init() { // not an initialiser: they contain blocks
	statements = []statement{
		{8, forDevice, func(g *maker) []*stmt { return one(assign(of(g.local(tMat)), "=", g.expr(tMat, 3))) }},
		{4, forDevice, func(g *maker) []*stmt { return one(assign(of(g.local(tOne)), "=", g.expr(tOne, 2))) }},
		{9, anywhere, func(g *maker) []*stmt {
			return one(assign(g.place(tFloat), g.pick("+=", "+=", "-=", "=", "*="), g.number()))
		}},
		{8, anywhere, func(g *maker) []*stmt { return one(g.print()) }},
		{5, anywhere, (*maker).group},
		{5, anywhere, (*maker).feedBack},
		{3, forDevice, (*maker).roundTrip},
		{3, forDevice, (*maker).choice},
		{2, forDevice, (*maker).divided},
		{2, forDevice, (*maker).selection},
		{1, forDevice, (*maker).solver},
		{2, forDevice, (*maker).keptNumbers},
		{7, anywhere, (*maker).rows},
		{4, forDevice, (*maker).keptRows},
		{2, anywhere, (*maker).help},
		{6, anywhere, (*maker).overtake},
		{2, anywhere, (*maker).overwrite},
		{4, anywhere, func(g *maker) []*stmt {
			k := []kind{tFloat, tFloat, tInt, tString, tFloats, tBool}[g.choose(6)]
			x := g.expr(k, 2)
			if k == tFloat {
				x = g.number()
			}
			v := g.fresh(k)
			if g.chance(4) { // shadow something
				if vs := g.visible(func(v *variable) bool { return v.kind == k && v.fn == nil && !g.isHere(v) }); len(vs) > 0 {
					v.name = vs[g.choose(len(vs))].name
				}
			}
			s := declaration(v, x)
			g.declare(v)
			return one(s)
		}},
		{3, forDevice, func(g *maker) []*stmt {
			k := []kind{tMat, tVec, tOne, tOne, tIMat, tIOne, tBMat}[g.choose(7)]
			x := g.expr(k, 2)
			return one(declaration(g.declare(g.fresh(k)), x))
		}},
		{4, anywhere, func(g *maker) []*stmt {
			l := g.place(tFloats)
			if l.form == eVar && l.v.name == "rates" {
				return nil
			}
			return one(assign(l, "=", apply(opAppend, l, g.number())))
		}},
		{1, anywhere, func(g *maker) []*stmt {
			l := g.place(tFloats)
			if l.form == eVar && l.v.name == "rates" {
				return nil
			}
			return one(assign(l, "=", apply(opReslice, l)))
		}},
		{3, anywhere, func(g *maker) []*stmt {
			return one(&stmt{form: sIncDec, lhs: []*expr{g.place(tInt)}, op: g.pick("++", "++", "--")})
		}},
		{2, anywhere, func(g *maker) []*stmt { return one(assign(g.place(tInt), g.pick("=", "+="), g.expr(tInt, 2))) }},
		{2, anywhere, func(g *maker) []*stmt {
			x, y := g.variable(tFloat), g.variable(tFloat)
			if x == nil || y == nil || x.v == y.v {
				return nil
			}
			return one(&stmt{form: sAssign, lhs: []*expr{x, y}, op: "=", rhs: []*expr{g.number(), g.number()}})
		}},
		{2, anywhere, func(g *maker) []*stmt {
			x := g.expr(tString, 2)
			if x.form == eVar {
				x = g.leaf(tString) // a string that is added to itself doubles
			}
			return one(assign(of(g.local(tString)), "+=", x))
		}},
		{1, anywhere, func(g *maker) []*stmt { // aliases
			k := []kind{tStatPtr, tFloats, tMap, tFloatAt, tStatPtr}[g.choose(5)]
			v := g.fresh(k)
			var x *expr
			switch k {
			case tFloatAt:
				if x = g.variable(tFloat); x != nil {
					x = &expr{form: eAddress, kind: k, args: []*expr{x}}
				}
			case tStatPtr:
				if g.chance(2) {
					x = g.expr(tStatPtr, 1)
				} else if x = g.variable(tStat); x != nil {
					x = &expr{form: eAddress, kind: k, args: []*expr{x}}
				}
			default:
				x = g.variable(k)
			}
			if x == nil {
				return nil
			}
			return one(declaration(g.declare(v), x))
		}},
		{2, anywhere, func(g *maker) []*stmt {
			v := g.fresh(tStat)
			x := g.expr(tStat, 2)
			return one(declaration(g.declare(v), x))
		}},
		{3, anywhere, func(g *maker) []*stmt {
			o := opAddMethod
			if g.chance(3) {
				o = opKeepMethod
			}
			s := g.variable(tStatPtr)
			if g.chance(3) {
				if x := g.variable(tStat); x != nil {
					s = &expr{form: eAddress, kind: tStatPtr, field: "implicit", args: []*expr{x}}
				}
			}
			if s == nil {
				return nil
			}
			return one(call(apply(o, s, g.number())))
		}},
		{2, anywhere, func(g *maker) []*stmt {
			if g.chance(3) {
				return one(call(apply(opTally, g.number(), g.number())))
			}
			return one(call(apply(opReport, g.number())))
		}},
		{2, anywhere, func(g *maker) []*stmt { // a tensor in a struct
			x := g.variable([]kind{tStat, tStatPtr}[g.choose(2)])
			if x == nil {
				return nil
			}
			return one(assign(&expr{form: eField, kind: tMat, field: "Best", args: []*expr{x}}, "=", g.expr(tMat, 2)))
		}},
		{2, anywhere, func(g *maker) []*stmt { // memory of the host, as a whole
			x, y, dict := g.variable(tFloats), g.variable(tFloats), g.variable(tMap)
			switch {
			case dict != nil && g.chance(3):
				return one(call(apply(opDelete, dict, g.index(3))))
			case x == nil:
				return nil
			case x.v != y.v && g.chance(2):
				return one(call(apply(opCopy, x, y)))
			}
			return one(call(apply([]*operation{opClear, opSort}[g.choose(2)], x)))
		}},
		{2, anywhere, func(g *maker) []*stmt { // two at once
			v, w := g.fresh(tFloat), g.fresh(tFloat)
			s := &stmt{form: sDeclare, vars: []*variable{v, w}, rhs: []*expr{g.number(), g.number()}}
			g.declare(v)
			g.declare(w)
			return one(s)
		}},
		{1, anywhere, func(g *maker) []*stmt { // errors are values
			v := g.fresh(tError)
			s := &stmt{form: sIf, init: declaration(v, g.expr(tError, 1)), rhs: []*expr{apply(operationOf("$0 != nil", tBool), of(v))}}
			s.body = []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{g.expr(tInt, 1), of(v)}}}
			s.other = g.block(1)
			return one(s)
		}},
		{1, spoils, func(g *maker) []*stmt {
			if g.noJumps || g.noCells || g.depth > 3 {
				return nil
			}
			return one(g.deferred())
		}},
		{3, forDevice, func(g *maker) []*stmt {
			if g.noCells {
				return nil
			}
			return one(g.changeCells())
		}},
		{9, anywhere, (*maker).branch},
		{2, anywhere, func(g *maker) []*stmt {
			if g.depth > 5 {
				return nil
			}
			s := &stmt{form: sSwitch}
			was := g.inSwitch
			g.inSwitch = true
			for range 1 + g.choose(2) {
				s.rhs = append(s.rhs, g.condition())
				s.cases = append(s.cases, g.block(1+g.choose(2)))
			}
			s.other = g.block(g.choose(3))
			g.inSwitch = was
			return one(s)
		}},
		{4, anywhere, (*maker).loop},
		{1, anywhere, func(g *maker) []*stmt { return one(&stmt{form: sBlock, body: g.block(1 + g.choose(3))}) }},
		{3, spoils, (*maker).jump},
		{1, anywhere, func(g *maker) []*stmt { // reading fails, or the host panics
			return one(&stmt{form: sIf, rhs: []*expr{g.rare()}, body: []*stmt{{form: sPanic, rhs: []*expr{literal(tString, "stop "), g.expr(tInt, 1)}}}})
		}},
		{1, forDevice, func(g *maker) []*stmt {
			return one(&stmt{form: sIf, rhs: []*expr{g.rare()}, body: []*stmt{assign(of(g.local(tMat)), "=", apply(opMistake, g.expr(tMat, 1)))}})
		}},
		{1, forDevice, func(g *maker) []*stmt { // what comes first may fail first
			mistake := apply(operationOf("$0.At(0, {c}-1)", tFloat), apply(opMistake, g.expr(tMat, 1)))
			cond, x := g.rare(), g.reading()
			if g.chance(2) { // zeros are likely among these quarters
				cond = g.expr(tBool, 1)
				x = apply(operationOf("$0.At(0, {c}-1)", tFloat), apply(operationOf("$0.As(tensor.Int64).Div($1.As(tensor.Int64)).As(tensor.{T})", tMat), g.expr(tMat, 1), apply(operationOf("$0.DivScalar(4)", tMat), g.expr(tMat, 0))))
			}
			body := []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{x, mistake}}}
			if t := g.variable(tOne); t != nil && g.chance(3) { // a print shows that it has failed, and goes on
				body[0].rhs[0] = apply(operationOf("$0.Item()", tFloat), t)
				body = append(one(&stmt{form: sPrint, text: outWriter, rhs: []*expr{t}}), body...)
			} else if g.chance(3) { // or is not looked at
				body[0].rhs[0] = apply([]*operation{opAnd, opOr}[g.choose(2)], g.expr(tBool, 0), apply(operationOf("$0 > $1", tBool), x, g.leaf(tFloat)))
			}
			return one(&stmt{form: sIf, rhs: []*expr{cond}, body: body})
		}},
		{1, anywhere, func(g *maker) []*stmt { // an index out of range, perhaps
			x := g.variable(tFloats)
			if x == nil {
				return nil
			}
			at := g.index(3)
			if g.chance(2) {
				at = g.expr(tInt, 2)
			}
			return one(assign(&expr{form: eIndex, kind: tFloat, args: []*expr{x, at}}, g.pick("=", "+="), g.number()))
		}},
		{3, spoils, (*maker).calls},
		{8, forDevice, (*maker).helperCalls},
		{3, anywhere, (*maker).literal},
		{3, anywhere, (*maker).requests},
		{3, forDevice, (*maker).checkpoint},
		{4, anywhere, (*maker).onlySometimes},
		{1, anywhere, func(g *maker) []*stmt { // a value and an error
			x := g.variable(tOne)
			if x == nil {
				return nil
			}
			v, err := g.fresh(tFloat), g.fresh(tError)
			list := one(&stmt{form: sDeclare, vars: []*variable{v, err}, rhs: []*expr{apply(opItemContext, x)}})
			g.declare(v)
			g.declare(err)
			s := &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 != nil", tBool), of(err))}}
			s.body = []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{g.expr(tInt, 1), of(err)}}}
			if g.chance(2) {
				s.other = one(assign(g.place(tFloat), "+=", of(v)))
			}
			return append(list, s)
		}},
	}
}

// rare is a condition that holds in few iterations.
func (g *maker) rare() *expr {
	switch g.choose(3) {
	case 0:
		return apply(operationOf("math.IsNaN($0)", tBool), g.reading())
	case 1: // known without waiting
		return apply(opAnd, g.expr(tBool, 0), apply(operationOf("$0 > 2", tBool), g.index(4)))
	}
	return apply(opAnd, g.expr(tBool, 1), apply(operationOf("$0 > $1", tBool), g.number(), literal(tFloat, 4.0)))
}

// onlySometimes makes something that must not happen unless a value says so, or unless the first
// operand does, and whatever shows that it has.
func (g *maker) onlySometimes() []*stmt {
	if g.noCells {
		return nil
	}
	drawn := func() *expr {
		o := operationOf(g.pick("m.G.Rand({r}, {c}).As(tensor.{T})", "tensor.Rand({r}, {c}).As(tensor.{T})"), tMat)
		return apply(operationOf("$0.Item()", tFloat), apply(operationOf("$0.Sum()", tOne), apply(o)))
	}
	isMore := func(x *expr) *expr { return apply(operationOf("$0 > $1", tBool), x, g.leaf(tFloat)) }
	s := &stmt{form: sIf, body: one(g.print())}
	switch x := g.variable(tMat); g.choose(6) {
	case 0:
		s.rhs = []*expr{isMore(g.reading())}
		s.body = one(call(apply([]*operation{opSetParam, opSetBuffer, opMinimize}[g.choose(3)], x)))
	case 1:
		s.rhs = []*expr{isMore(g.reading())}
		s.body = one(call(apply([]*operation{opSeed, opState, opZeroGrad, opStep}[g.choose(4)])))
	case 2:
		s.rhs = []*expr{isMore(g.reading())}
		s.body = one(assign(g.place(tFloat), "+=", apply(operationOf("m.R.Float64()", tFloat))))
	case 3:
		s.rhs = []*expr{isMore(g.reading())}
		s.body = one(&stmt{form: sPrint, text: outWriter, rhs: []*expr{drawn()}})
	case 4:
		s.rhs = []*expr{apply([]*operation{opAnd, opOr}[g.choose(2)], g.expr(tBool, 1), isMore(drawn()))}
	case 5: // a mistake, which must not be made
		mistake := apply(operationOf("$0.At(0, {c}-1)", tFloat), apply(opMistake, x))
		s.rhs = []*expr{apply(opAnd, apply(operationOf("$0 > 2", tBool), g.expr(tInt, 0)), isMore(mistake))}
	}
	shows := &stmt{form: sPrint, text: outWriter, rhs: []*expr{g.reading(), apply(operationOf("$0.Sum()", tOne), apply(operationOf("m.P.Value()", tMat)))}}
	if g.chance(2) && !g.hostOnly {
		shows = g.draw()
	}
	return []*stmt{s, shows}
}

// isHere reports whether v is declared in the innermost block, so that its name can't be used again there.
func (g *maker) isHere(v *variable) bool { return slices.Index(g.scope, v) >= g.here }

// local is a variable that is assigned to.
func (g *maker) local(k kind) *variable {
	vs := g.visible(func(v *variable) bool { return v.kind == k && !g.protected[v] })
	return vs[g.choose(len(vs))]
}

// group makes several statements about one tensor: what is put off together.
func (g *maker) group() []*stmt {
	var list []*stmt
	item := operationOf("$0.Item()", tFloat)
	loss := g.fresh(tOne)
	list = append(list, declaration(loss, g.expr(tOne, 3)))
	g.declare(loss)
	read := apply(item, of(loss))
	for range 2 + g.choose(3) {
		switch g.choose(7) {
		case 0:
			list = append(list, assign(g.place(tFloat), "+=", read))
		case 1:
			list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{read, g.expr(tInt, 1), g.number()}})
		case 2:
			list = append(list, &stmt{form: sPrint, text: outWriter, format: "%.3f\n", rhs: []*expr{of(loss)}})
		case 3:
			if l := g.place(tFloats); l.form != eVar || l.v.name != "rates" {
				list = append(list, assign(l, "=", apply(opAppend, l, read)))
			}
		case 4:
			v := g.fresh(tFloat)
			list = append(list, declaration(v, read))
			g.declare(v)
		case 5:
			list = append(list, &stmt{form: sIf, rhs: []*expr{apply(operationOf("$0 > $1", tBool), read, g.leaf(tFloat))}, body: g.block(1)})
		case 6:
			if !g.hostOnly {
				list = append(list, assign(of(g.local(tMat)), "=", g.expr(tMat, 1)))
			}
		}
	}
	return list
}

// feedBack makes statements by which a value that was read comes back to the
// device through memory, which has two names now and then.
func (g *maker) feedBack() []*stmt {
	l := g.place(tFloat)
	var list []*stmt
	p := l
	if base := slices.Concat(l.args, []*expr{l})[0]; (base.kind == tFloats || base.kind == tMap || base.kind == tStatPtr) && g.chance(2) {
		v := g.fresh(base.kind)
		list = append(list, declaration(v, base))
		g.declare(v)
		again := *l
		again.args = append([]*expr{of(v)}, l.args[1:]...)
		p = &again
		if g.chance(2) {
			l, p = p, l
		}
	}
	list = append(list, assign(l, g.pick("=", "+="), g.reading()))
	if g.chance(2) {
		return append(list, assign(of(g.local(tMat)), "=", apply(operationOf("$0.AddScalar($1)", tMat), g.expr(tMat, 1), p)))
	}
	less := apply(operationOf("$0 > $1", tBool), p, g.leaf(tFloat))
	return append(list, &stmt{form: sIf, rhs: []*expr{less}, body: one(assign(of(g.local(tMat)), "=", g.expr(tMat, 1)))})
}

// overwrite puts a value that has to be waited for where another is put at once.
func (g *maker) overwrite() []*stmt {
	l := g.place(tFloat)
	list := one(assign(l, "=", g.number()))
	if g.chance(2) {
		list = append(list, g.print())
	}
	list = append(list, assign(l, "=", g.leaf(tFloat)))
	if g.chance(2) {
		list = append(list, &stmt{form: sPrint, text: outWriter, rhs: []*expr{g.reading(), l}})
	}
	return list
}

// overtake shows something of the host beside a value that has to be waited
// for, directly or through a closure, and then changes it at once.
func (g *maker) overtake() []*stmt {
	if at := g.variable(tFloatAt); at != nil && at.v.name == "at" && slices.Contains(g.visible(func(*variable) bool { return true }), g.total) && g.chance(2) {
		shown, changed := of(g.total), &expr{form: eDeref, kind: tFloat, args: []*expr{at}}
		if g.chance(2) {
			shown, changed = changed, shown
		}
		return []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{g.reading(), shown}}, assign(changed, "+=", literal(tFloat, 1.0))}
	}
	k := []kind{tFloats, tMap, tPair, tStat, tStatPtr, tStatPtr, tFloat, tInt, tString}[g.choose(9)]
	x := g.variable(k)
	if vs := g.visible(func(v *variable) bool { return slices.Contains(g.shown, v) && v.kind != tMat }); len(vs) > 0 && g.chance(2) {
		x = of(vs[g.choose(len(vs))])
		k = x.kind
	}
	if x == nil || g.protected[x.v] {
		return nil
	}
	shown := &stmt{form: sPrint, text: outWriter, rhs: []*expr{g.reading(), x}}
	if vs := g.visible(func(v *variable) bool { return v.fn != nil && v.fn.result == none }); len(vs) > 0 && !g.noJumps && g.chance(2) {
		v := vs[g.choose(len(vs))]
		shows := g.callOf(v)
		shows.args[len(shows.args)-1] = g.reading()
		shown = call(shows)
		if v.name == "show" {
			inside := v.fn.body[0].rhs[1+g.choose(2)]
			if slices.Contains(g.visible(func(*variable) bool { return true }), inside.v) && !g.protected[inside.v] {
				x, k = inside, inside.kind
			}
		}
	}
	one := literal(tFloat, 1.0)
	var change *stmt
	switch k {
	case tFloats:
		if g.chance(3) { // what is left of it is written over
			return []*stmt{shown, declaration(g.declare(g.fresh(tFloats)), apply(opAppend, apply(opReslice, x), one))}
		}
		if change = assign(x, "=", apply(opAppend, x, one)); x.v.name == "rates" { // has a length that others rely on
			change = assign(&expr{form: eIndex, kind: tFloat, args: []*expr{x, g.index(3)}}, "-=", one)
		}
	case tMap:
		change = assign(&expr{form: eIndex, kind: tFloat, args: []*expr{x, g.index(3)}}, "=", one)
	case tPair:
		change = assign(&expr{form: eIndex, kind: tFloat, args: []*expr{x, g.index(2)}}, "=", one)
	case tStat, tStatPtr:
		change = assign(&expr{form: eField, kind: tFloat, field: "Total", args: []*expr{x}}, "+=", one)
	case tFloat:
		change = assign(x, "+=", one)
	case tInt:
		change = &stmt{form: sIncDec, lhs: []*expr{x}, op: "++"}
	case tString:
		change = assign(x, "+=", literal(tString, "!"))
	}
	return []*stmt{shown, change}
}

func (g *maker) branch() []*stmt {
	if g.depth > 5 {
		return nil
	}
	s := &stmt{form: sIf}
	scope := len(g.scope)
	if g.chance(4) {
		v := g.fresh(tFloat)
		s.init = declaration(v, g.reading())
		g.declare(v)
		s.rhs = []*expr{apply(operationOf("$0 > $1", tBool), of(v), g.leaf(tFloat))}
	} else {
		s.rhs = []*expr{g.condition()}
	}
	was := g.hostOnly
	g.hostOnly = was || (s.init != nil || s.rhs[0].waits()) && !g.chance(4)
	s.body = g.block(1 + g.choose(3))
	if g.chance(3) {
		if s.other = g.block(1 + g.choose(2)); len(s.other) == 1 && s.other[0].form == sIf && g.chance(2) {
			s.other[0].text = elseIf
		}
	}
	g.scope, g.hostOnly = g.scope[:scope], was
	return one(s)
}

// waits reports whether x contains a read.
func (x *expr) waits() bool {
	return x.op != nil && x.op.reads || slices.ContainsFunc(x.args, (*expr).waits)
}

// loop makes a loop, three deep at most.
func (g *maker) loop() []*stmt {
	if len(g.loops) >= 3 || g.depth > 5 || g.noJumps && len(g.loops) > 0 {
		return nil
	}
	g.count++
	s := &stmt{text: fmt.Sprintf("loop%d", g.count)}
	var before, first []*stmt
	if g.chance(3) { // something that stays the same, and decides what the device does
		v := g.fresh(tOne)
		g.protected[v] = true
		before = append(before, declaration(v, g.expr(tOne, 1)))
		g.declare(v)
		isMore := apply(operationOf("$0 > $1", tBool), apply(operationOf("$0.Item()", tFloat), of(v)), g.leaf(tFloat))
		s := &stmt{form: sIf, rhs: []*expr{isMore}, body: one(assign(of(g.local(tMat)), "=", g.expr(tMat, 2)))}
		if !g.noCells && g.chance(2) {
			s.body = append(s.body, g.changeCells())
		}
		first = append(first, s)
	}
	scope := len(g.scope)
	body := 2 + g.choose(5)
	wasSwitch := g.inSwitch
	g.inSwitch = false
	index := func() {
		v := g.fresh(tInt)
		g.protected[v] = true
		s.vars = append(s.vars, v)
	}
	switch g.choose(9) {
	case 0, 1, 2:
		s.form, s.rhs = sRange, []*expr{g.variable(tMats)}
		if s.rhs[0] == nil {
			s.rhs[0] = literal(tInt, 3)
			index()
			break
		}
		index()
		s.vars = append(s.vars, g.fresh(tMat))
	case 3:
		s.form, s.rhs = sRange, []*expr{literal(tInt, 2+g.choose(4))}
		index()
	case 4:
		s.form, s.rhs = sCount, []*expr{literal(tInt, 2+g.choose(4))}
		index()
	case 5:
		s.form, s.rhs = sSequence, []*expr{literal(tInt, 2+g.choose(3))}
		index()
	case 6:
		s.form, s.rhs = sRange, []*expr{g.variable(tFloats)}
		index()
		s.vars = append(s.vars, g.fresh(tFloat))
	case 8: // with values in its head
		k, v := g.fresh(tInt), g.fresh(tFloat)
		g.protected[k], g.protected[v] = true, g.chance(2)
		s.form, s.init = sHead, &stmt{form: sDeclare, vars: []*variable{k, v}, rhs: []*expr{literal(tInt, 0), g.number()}}
		s.rhs = []*expr{apply(operationOf("$0 < $1", tBool), of(k), literal(tInt, 2+g.choose(4)))}
		s.post = &stmt{form: sIncDec, lhs: []*expr{of(k)}, op: "++"}
		g.declare(k)
		g.declare(v)
		if g.chance(2) {
			next := apply(operationOf("$0 + $1", tInt), of(k), literal(tInt, 1))
			s.post = &stmt{form: sAssign, lhs: []*expr{of(k), of(v)}, op: "=", rhs: []*expr{next, g.number()}}
		}
		if g.chance(3) {
			s.rhs[0] = apply(opAnd, s.rhs[0], apply(operationOf("$0 <= 0.5", tBool), of(v)))
		}
	case 7: // a loop that ends itself
		k := g.fresh(tInt)
		before = append(before, declaration(k, literal(tInt, 0)))
		before[len(before)-1].stays = true
		g.declare(k)
		g.protected[k] = true
		scope++
		first = append(first, &stmt{form: sIncDec, lhs: []*expr{of(k)}, op: "++", stays: true})
		limit := literal(tInt, 2+g.choose(4))
		isLess := apply(operationOf("$0 < $1", tBool), of(k), limit)
		if s.form = sWhile; g.chance(2) {
			s.form = sEndless
			first = append(first, &stmt{form: sIf, rhs: []*expr{apply(operationOf("!$0", tBool), isLess)}, body: []*stmt{{form: sBreak, stays: true}}, stays: true})
		} else if s.rhs = []*expr{isLess}; g.chance(3) {
			s.rhs[0] = apply(opAnd, s.rhs[0], apply(operationOf("$0 > $1", tBool), g.number(), literal(tFloat, -3.0)))
		}
	}
	if len(s.rhs) > 0 && s.rhs[0] == nil {
		s.rhs[0] = literal(tInt, 2)
		s.vars = s.vars[:1]
	}
	for _, v := range s.vars {
		g.declare(v)
	}
	g.loops = append(g.loops, s)
	s.body = append(first, g.block(body)...)
	g.loops = g.loops[:len(g.loops)-1]
	g.inSwitch = wasSwitch
	g.scope = g.scope[:scope]
	return append(before, s)
}

// jump makes a way out of a loop, or to its next iteration, under a condition.
func (g *maker) jump() []*stmt {
	if len(g.loops) == 0 {
		return nil
	}
	out := &stmt{form: []stmtKind{sBreak, sContinue, sContinue, sReturn}[g.choose(4)]}
	switch {
	case out.form == sReturn && g.noJumps:
		out.form = sContinue
	case out.form == sReturn && g.p.named && g.chance(2): // what the results hold
	case out.form == sReturn:
		out.rhs = []*expr{g.expr(tMat, 1), g.expr(tFloat, 1), g.expr(tFloats, 1)}
		if g.chance(3) {
			out.rhs[1] = g.number()
		}
	}
	if out.form != sReturn && (g.chance(2) || g.inSwitch) {
		out.text = g.loops[g.choose(len(g.loops))].text
	}
	cond := g.expr(tBool, 2)
	if g.chance(2) {
		cond = apply(operationOf("$0 > $1", tBool), g.number(), literal(tFloat, float64(g.choose(5))))
	}
	return one(&stmt{form: sIf, rhs: []*expr{cond}, body: one(out)})
}

// calls makes a call of a closure or a helper.
func (g *maker) calls() []*stmt {
	vs := g.visible(func(v *variable) bool { return v.fn != nil })
	fns := g.p.helpers
	if len(vs)+len(fns) == 0 || g.noJumps {
		return nil
	}
	if at := g.choose(len(vs) + len(fns)); at < len(vs) {
		return g.result(g.callOf(vs[at]))
	} else if !g.noCells {
		return g.result(g.callOfHelper(fns[at-len(vs)]))
	}
	return nil
}

// helperCalls makes a call of a helper.
func (g *maker) helperCalls() []*stmt {
	if len(g.p.helpers) == 0 || g.noJumps || g.noCells {
		return nil
	}
	return g.result(g.callOfHelper(g.p.helpers[g.choose(len(g.p.helpers))]))
}

func (g *maker) callOfHelper(fn *function) *expr {
	x := &expr{form: eCall, kind: fn.result, fn: fn}
	for _, p := range fn.params {
		x.args = append(x.args, g.argument(p.kind))
	}
	return x
}

// result makes a statement of x, a call.
func (g *maker) result(x *expr) []*stmt {
	if x.fn.also != none {
		return one(g.both(x))
	}
	switch x.kind {
	case none:
		return one(call(x))
	case tFloat:
		if g.chance(2) {
			return one(assign(of(g.local(tFloat)), g.pick("=", "+="), x))
		}
	}
	return one(declaration(g.declare(g.fresh(x.kind)), x))
}

func (g *maker) argument(k kind) *expr {
	if k == tFloat && g.chance(2) {
		return g.reading()
	}
	if k == tStatPtr {
		return g.variable(k)
	}
	return g.expr(k, 1)
}

func (g *maker) stmt() []*stmt {
	if g.left--; g.left < 0 {
		return nil
	}
	weights := make([]int, len(g.statements))
	for i, s := range g.statements {
		if !(g.clock == nil && g.off[i]) && !(g.hostOnly && s.where == forDevice) {
			weights[i] = s.weight
		}
	}
	return g.statements[g.weighted(weights)].make(g)
}

// function makes the body of a closure or helper, a block that begins at here in scope.
func (g *maker) function(fn *function, here, statements int) {
	scope, outer, loops, noJumps := len(g.scope), g.here, g.loops, g.noJumps
	g.here, g.loops, g.noJumps = here, nil, true
	for _, v := range fn.params {
		g.declare(v)
	}
	for range statements {
		fn.body = append(fn.body, g.stmt()...)
	}
	if fn.result != none {
		results := []*expr{g.expr(fn.result, 2)}
		if fn.also != none {
			results = append(results, g.expr(fn.also, 2))
		}
		fn.body = append(fn.body, &stmt{form: sReturn, rhs: results, stays: true})
	}
	g.scope, g.here, g.loops, g.noJumps = g.scope[:scope], outer, loops, noJumps
}

// helper makes a function beside the kernel.
func (g *maker) helper() {
	if g.chance(2) {
		g.awayHelper()
		return
	}
	fn := &function{result: []kind{tFloat, tMat, none}[g.choose(3)]}
	fn.params = []*variable{{name: "s", kind: tStatPtr}, {name: "x", kind: tMat}, {name: "v", kind: tFloat}}
	g.helperOf(fn)
}

// helperOf makes the body of fn, one of whose parameters is a tensor and the last one a number, and its name.
func (g *maker) helperOf(fn *function) {
	g.count++
	fn.name = fmt.Sprintf("Help%d", g.count)
	x := fn.params[slices.IndexFunc(fn.params, func(v *variable) bool { return v.kind == tMat })]
	scope := g.scope
	g.scope = nil
	g.left = 6
	var local []*stmt // so that every kind that statements assign to is there
	for _, d := range []struct {
		name string
		kind kind
		x    *expr
	}{{"n", tInt, literal(tInt, 1)}, {"text", tString, literal(tString, "h")}} {
		v := &variable{name: d.name, kind: d.kind}
		local = append(local, declaration(v, d.x))
		local[len(local)-1].stays = true
		g.declare(v)
	}
	list := &variable{name: "list", kind: tFloats}
	one := &variable{name: "total", kind: tOne}
	local = append(local, &stmt{form: sDeclare, vars: []*variable{list}, stays: true}, &stmt{form: sDeclare, vars: []*variable{one}, rhs: []*expr{apply(operationOf("$0.Sum()", tOne), of(x))}, stays: true})
	g.declare(list)
	g.declare(one)
	n := g.choose(3)
	if g.chance(4) {
		n += 2
	}
	g.function(fn, 0, n)
	if v := fn.params[len(fn.params)-1]; g.chance(2) {
		looks := apply(operationOf("$0.Item()", tFloat), apply(operationOf("$0.Sum()", tOne), of(x)))
		local = append(local, assign(of(v), g.pick("+=", "-=", "="), looks))
	}
	fn.body = append(local, fn.body...)
	g.scope = scope
	g.p.helpers = append(g.p.helpers, fn)
}

// closure makes a function literal.
func (g *maker) closure() *stmt {
	fn := &function{result: []kind{none, none, tFloat}[g.choose(3)]}
	g.count++
	fn.params = []*variable{{name: fmt.Sprintf("a%d", g.count), kind: tFloat}}
	was := g.left
	g.left = 4
	g.function(fn, len(g.scope), 1+g.choose(2))
	g.left = was
	v := &variable{name: fmt.Sprintf("call%d", g.count), fn: fn}
	g.declare(v)
	return &stmt{form: sFunc, vars: []*variable{v}, fn: fn}
}

// shower makes a function literal that prints its argument and variables around it.
func (g *maker) shower() *stmt {
	a := &variable{name: "shown", kind: tFloat}
	fn := &function{params: []*variable{a}}
	fn.body = []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{of(a), g.variable(tInt), g.variable(tFloat), g.variable([]kind{tFloats, tMap, tString}[g.choose(3)])}}}
	v := &variable{name: "show", fn: fn}
	g.declare(v)
	return &stmt{form: sFunc, vars: []*variable{v}, fn: fn}
}

// kernel makes the kernel itself.
func (g *maker) kernel() {
	p := g.p
	for name, k := range map[string]kind{"s": tStatPtr, "rates": tFloats, "w": tMat, "xs": tMats, "flag": tBool, "count": tInt} {
		p.params[name] = &variable{name: name, kind: k}
	}
	for _, name := range []string{"s", "rates", "w", "xs", "flag", "count"} {
		g.declare(p.params[name])
	}
	w := of(p.params["w"])
	if p.named {
		for name, k := range map[string]kind{"r0": tMat, "r1": tFloat, "r2": tFloats} {
			p.params[name] = &variable{name: name, kind: k}
		}
		// r0 is nil at first: nothing may compute with it.
		g.declare(p.params["r1"])
		g.declare(p.params["r2"])
	}
	add := func(s *stmt) {
		s.stays = true
		p.body = append(p.body, s)
	}
	local := func(name string, k kind, x *expr) *variable {
		v := &variable{name: name, kind: k}
		if x == nil {
			add(&stmt{form: sDeclare, vars: []*variable{v}})
		} else {
			add(declaration(v, x))
		}
		return g.declare(v)
	}
	local("n", tInt, literal(tInt, 0))
	g.total = local("total", tFloat, literal(tFloat, 0.0))
	local("rate", tFloat, literal(tFloat, 0.5))
	t := local("t", tMat, w)
	loss := local("loss", tOne, apply(operationOf("$0.Sum()", tOne), w))
	hist := local("hist", tFloats, nil)
	local("seen", tMap, apply(operationOf("map[int]float64{$0: 1}", tMap), literal(tInt, 7)))
	local("text", tString, literal(tString, ""))
	if g.chance(2) {
		local("pair", tPair, apply(operationOf("[2]float64{$0, $1}", tPair), literal(tFloat, 0.0), literal(tFloat, 1.0)))
	}
	if g.chance(2) {
		local("st", tStat, apply(operationOf("stat{Total: $0, Count: $1}", tStat), literal(tFloat, 0.0), literal(tInt, 1)))
	}
	if g.chance(3) && !p.leaves {
		at := &expr{form: eAddress, kind: tFloatAt, args: []*expr{of(g.total)}}
		local("at", tFloatAt, at)
	}
	if !p.leaves || g.chance(4) { // what functions see can't run past an exit
		if g.chance(2) {
			p.body = append(p.body, g.shower())
		}
		for range g.choose(2) {
			p.body = append(p.body, g.closure())
		}
		if g.chance(3) {
			p.body = append(p.body, g.stepper())
		}
		if g.chance(3) {
			p.body = append(p.body, g.deferred())
		}
	}
	g.left = 14 + g.choose(14)
	if g.chance(3) { // a few, which nothing else keeps from being put off
		g.left = 3 + g.choose(4)
	}
	loop := (*maker).loop
	if p.leaves {
		loop = (*maker).endings
	}
	for range 1 + g.choose(2) {
		p.body = append(p.body, loop(g)...)
		g.before = slices.Clone(g.scope)
		if g.chance(3) {
			p.body = append(p.body, g.stmt()...)
		}
	}
	add(&stmt{form: sPrint, text: outWriter, rhs: []*expr{literal(tString, "end"), of(g.total), of(t), of(loss), of(hist)}})
	add(&stmt{form: sReturn, rhs: []*expr{of(t), of(g.total), of(hist)}})
}

// deferred makes a deferred function, which may recover.
func (g *maker) deferred() *stmt {
	s := &stmt{form: sDefer}
	scope, here := len(g.scope), g.here
	noJumps, left, loops, inSwitch := g.noJumps, g.left, g.loops, g.inSwitch
	g.here, g.noCells, g.noJumps, g.left, g.loops, g.inSwitch = scope, true, true, 4, nil, false
	if g.chance(2) {
		s.body = append(s.body, &stmt{form: sRecover, body: []*stmt{{form: sPrint, text: outWriter, rhs: []*expr{literal(tString, "recovered"), g.expr(tFloat, 0)}}}, stays: true})
	}
	for range 1 + g.choose(2) {
		s.body = append(s.body, g.stmt()...)
	}
	shows := &stmt{form: sPrint, text: outWriter, rhs: []*expr{literal(tString, "deferred"), g.expr(tFloat, 0), g.expr(tFloats, 0), g.expr(tInt, 0), g.variable(tMat)}}
	for _, x := range shows.rhs {
		if x.form == eVar && slices.Index(g.scope, x.v) < scope {
			g.shown = append(g.shown, x.v)
		}
	}
	s.body = append(s.body, shows)
	if way := scope % 3; way > 0 { // it has a name
		g.count++
		s.text = fmt.Sprintf("ends%d", g.count)
		if way == 2 && s.body[0].form != sRecover {
			s.op = inside
		}
	}
	g.scope, g.here, g.noCells, g.noJumps, g.left, g.loops, g.inSwitch = g.scope[:scope], here, false, noJumps, left, loops, inSwitch
	return s
}
