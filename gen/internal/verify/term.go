package verify

import (
	"go/constant"
	"go/token"
	"hash/maphash"
	"slices"
	"strings"
)

// A term is a value of which only its origin is known: a parameter, or what a function or an operator makes of other
// terms. Terms that were made in the same way are the same pointer, in both runs.
type term struct {
	op   string
	args []*term
	id   int
	c    constant.Value // of a constant

	hash uint64
	next *term // of the same chain in terms
}

// terms makes terms, each once.
type terms struct {
	seed   maphash.Seed
	chains []*term // by hash; as many as there are terms, or up to four times as many: a power of two
	n      int     // how many terms there are

	ints      map[int]*term            // constants
	constants map[constant.Value]*term // those of which constant has been asked for
	yes, no   *term                    // nil until they are needed
	fresh     map[*term]bool           // see isFresh
}

func newTerms() *terms {
	return &terms{seed: maphash.MakeSeed(), chains: make([]*term, 1024), ints: make(map[int]*term), constants: make(map[constant.Value]*term), fresh: make(map[*term]bool)}
}

// of returns the term that op makes of args.
func (ts *terms) of(op string, args ...*term) *term {
	hash := maphash.String(ts.seed, op)
	for _, a := range args {
		hash = (hash ^ uint64(a.id)) * 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio
		hash ^= hash >> 32
	}
	for t := ts.chains[hash&uint64(len(ts.chains)-1)]; t != nil; t = t.next {
		if t.hash == hash && t.c == nil && t.op == op && slices.Equal(t.args, args) {
			return t
		}
	}
	return ts.add(&term{op: op, args: slices.Clone(args), hash: hash})
}

// add adds a term that there is not yet.
func (ts *terms) add(t *term) *term {
	if ts.n++; ts.n > len(ts.chains) {
		old := ts.chains
		ts.chains = make([]*term, 4*len(old))
		for _, chain := range old {
			for chain != nil {
				next := chain.next
				ts.link(chain)
				chain = next
			}
		}
	}
	t.id = ts.n
	ts.link(t)
	return t
}

func (ts *terms) link(t *term) {
	chain := &ts.chains[t.hash&uint64(len(ts.chains)-1)]
	t.next, *chain = *chain, t
}

// constant returns the term of a constant. Numbers of one value are one term, whatever their types are.
func (ts *terms) constant(v constant.Value) *term {
	t := ts.constants[v]
	if t == nil {
		t = ts.constantOf(v)
		ts.constants[v] = t
	}
	return t
}

func (ts *terms) constantOf(v constant.Value) *term {
	if v.Kind() == constant.Float || v.Kind() == constant.Int {
		if i := constant.ToInt(v); i.Kind() == constant.Int {
			v = i
		}
	}
	switch v.Kind() {
	case constant.Int:
		if n, isExact := constant.Int64Val(v); isExact && int64(int(n)) == n {
			return ts.int(int(n))
		}
	case constant.Bool:
		return ts.bool(constant.BoolVal(v))
	}
	return ts.exact(v)
}

// exact is constant for a value that no term is kept for elsewhere.
func (ts *terms) exact(v constant.Value) *term {
	op := v.ExactString()
	hash := maphash.String(ts.seed, op) + uint64(v.Kind())
	for t := ts.chains[hash&uint64(len(ts.chains)-1)]; t != nil; t = t.next {
		if t.c != nil && t.op == op && t.c.Kind() == v.Kind() {
			return t
		}
	}
	return ts.add(&term{op: op, c: v, hash: hash})
}

func (ts *terms) int(n int) *term {
	t := ts.ints[n]
	if t == nil {
		t = ts.exact(constant.MakeInt64(int64(n)))
		ts.ints[n] = t
	}
	return t
}

func (ts *terms) bool(b bool) *term {
	t := &ts.no
	if b {
		t = &ts.yes
	}
	if *t == nil {
		*t = ts.exact(constant.MakeBool(b))
	}
	return *t
}

// String returns t, or the beginning of it: terms that are used more than once make texts grow exponentially.
func (t *term) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t *term) write(b *strings.Builder) {
	const most = 400
	if b.Len() > most {
		return
	}
	b.WriteString(t.op)
	for i, a := range t.args {
		if b.Len() > most {
			b.WriteString("...")
			return
		}
		b.WriteString([]string{"(", ", "}[min(i, 1)])
		a.write(b)
	}
	if len(t.args) > 0 {
		b.WriteByte(')')
	}
}

// isTrue reports whether t is the constant true, and isFalse whether it is the constant false.
func (t *term) isTrue() bool {
	return t.c != nil && t.c.Kind() == constant.Bool && constant.BoolVal(t.c)
}

func (t *term) isFalse() bool {
	return t.c != nil && t.c.Kind() == constant.Bool && !constant.BoolVal(t.c)
}

// asInt returns the value of a constant integer.
func (t *term) asInt() (int, bool) {
	if t.c == nil || t.c.Kind() != constant.Int {
		return 0, false
	}
	n, ok := constant.Int64Val(t.c)
	return int(n), ok
}

// binary returns the term of an operation on two values of a basic type. kind tells types apart that compute
// differently: "int" also stands for int64.
func (ts *terms) binary(op token.Token, kind string, x, y *term) *term {
	if kind == "int" && x.c != nil && y.c != nil && x.c.Kind() == constant.Int && y.c.Kind() == constant.Int {
		switch op {
		case token.ADD, token.SUB, token.MUL:
			return ts.constant(constant.BinaryOp(x.c, op, y.c))
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return ts.bool(constant.Compare(x.c, op, y.c))
		case token.REM, token.QUO:
			if constant.Sign(y.c) != 0 {
				if op == token.QUO {
					op = token.QUO_ASSIGN // integer division
				}
				return ts.constant(constant.BinaryOp(x.c, op, y.c))
			}
		}
	}
	if x.c != nil && y.c != nil && isNumber(x.c) && isNumber(y.c) {
		switch op {
		case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return ts.bool(constant.Compare(x.c, op, y.c))
		}
	}
	if (op == token.EQL || op == token.NEQ) && x.op == truth && y == ts.int(0) {
		if op == token.EQL {
			return ts.not(x.args[0])
		}
		return x.args[0]
	}
	switch op {
	case token.LAND:
		switch {
		case x.isTrue():
			return y
		case x.isFalse():
			return x
		case y.isTrue():
			return x
		}
	case token.LOR:
		switch {
		case x.isFalse():
			return y
		case x.isTrue():
			return x
		case y.isFalse():
			return x
		}
	case token.GTR: // so that a > b and b < a are the same
		return ts.binary(token.LSS, kind, y, x)
	case token.GEQ:
		return ts.binary(token.LEQ, kind, y, x)
	case token.LEQ:
		if kind != "float64" && kind != "float32" { // which may be NaN
			return ts.not(ts.binary(token.LSS, kind, y, x))
		}
	case token.EQL, token.NEQ:
		if x == y && kind != "float64" && kind != "float32" {
			return ts.bool(op == token.EQL)
		}
		if x.id > y.id {
			x, y = y, x
		}
	}
	if op == token.NEQ {
		return ts.not(ts.of("==:"+kind, x, y))
	}
	return ts.of(op.String()+":"+kind, x, y)
}

func isNumber(v constant.Value) bool { return v.Kind() == constant.Int || v.Kind() == constant.Float }

func (ts *terms) not(x *term) *term {
	switch {
	case x.isTrue(), x.isFalse():
		return ts.bool(x.isFalse())
	case x.op == "!":
		return x.args[0]
	}
	return ts.of("!", x)
}

// sel returns what memory m, a chain of stores, holds at an address.
func (ts *terms) sel(m, addr *term) *term {
	for m.op == "store" {
		if m.args[1] == addr {
			return m.args[2]
		}
		if !distinct(m.args[1], addr) {
			break
		}
		m = m.args[0]
	}
	if m.op == "list" && addr.op == "at" {
		if i, ok := addr.args[1].asInt(); ok && 0 <= i && i < len(m.args) {
			return m.args[i]
		}
	}
	return ts.of("select", m, addr)
}

// store returns memory m after a store. A store that changes nothing is none, and of two at one address the first is
// none. One to an element of a list makes another list.
func (ts *terms) store(m, addr, v *term) *term {
	if ts.sel(m, addr) == v {
		return m
	}
	m = ts.without(m, addr)
	if ts.sel(m, addr) == v {
		return m
	}
	if m.op == "list" && addr.op == "at" {
		if i, ok := addr.args[1].asInt(); ok && 0 <= i && i < len(m.args) {
			args := slices.Clone(m.args)
			args[i] = v
			return ts.of("list", args...)
		}
	}
	return ts.of("store", m, addr, v)
}

// without returns m without what was stored at addr last.
func (ts *terms) without(m, addr *term) *term {
	switch {
	case m.op != "store":
		return m
	case m.args[1] == addr:
		return m.args[0]
	case !distinct(m.args[1], addr):
		return m
	}
	return ts.of("store", ts.without(m.args[0], addr), m.args[1], m.args[2])
}

// at is the address of an element of a list, or of an entry of a map, that is known by its content.
func (ts *terms) at(index *term) *term { return ts.of("at", ts.of("list"), index) }

// distinct reports whether two addresses are not the same, given that they are other terms. Pointers that are other
// terms lead to other objects: where parameters may lead to one object, some paths have the same term for both. But
// two elements of one slice, or entries of one map, may be one.
func distinct(a, b *term) bool {
	if a == b {
		return false
	}
	return a.op != "at" || b.op != "at" || a.args[0] != b.args[0] || a.args[1].c != nil && b.args[1].c != nil
}
