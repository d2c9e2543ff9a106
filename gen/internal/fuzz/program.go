package fuzz

import (
	"reflect"
	"slices"
)

// A kind is the type of an expression. The shapes of tensors are those of the
// program that it stands in.
type kind uint8

const (
	none     kind = iota
	tBool         // bool
	tInt          // int
	tFloat        // float64
	tString       // string
	tFloats       // []float64
	tPair         // [2]float64
	tMap          // map[int]float64
	tStat         // stat, a struct
	tStatPtr      // *stat
	tFloatAt      // *float64
	tError        // error
	tMat          // a tensor with the program's shape and element type
	tVec          // one with the length of a row
	tOne          // one element, no axes
	tIMat         // the program's shape, int64
	tIOne         // one int64
	tBMat         // the program's shape, bool
	tMats         // []*tensor.Tensor, each a tMat
	tVecs         // the same of tVec
	tOnes         // the same of tOne
	tScanner      // *bufio.Scanner
	tState        // tensor.State, of all cells of the model
	numKinds
)

// kinds are what source and interpreter call them.
var kinds = [numKinds]struct {
	source string
	rtype  reflect.Type
}{
	tBool: {"bool", reflect.TypeFor[bool]()}, tInt: {"int", reflect.TypeFor[int]()}, tFloat: {"float64", reflect.TypeFor[float64]()},
	tString: {"string", reflect.TypeFor[string]()}, tFloats: {"[]float64", reflect.TypeFor[[]float64]()}, tPair: {"[2]float64", reflect.TypeFor[[2]float64]()},
	tMap: {"map[int]float64", reflect.TypeFor[map[int]float64]()}, tStat: {"stat", reflect.TypeFor[stat]()}, tStatPtr: {"*stat", reflect.TypeFor[*stat]()},
	tFloatAt: {"*float64", reflect.TypeFor[*float64]()}, tError: {"error", reflect.TypeFor[error]()},
	tMat: {"*tensor.Tensor", reflect.TypeFor[*value]()}, tVec: {"*tensor.Tensor", reflect.TypeFor[*value]()}, tOne: {"*tensor.Tensor", reflect.TypeFor[*value]()},
	tIMat: {"*tensor.Tensor", reflect.TypeFor[*value]()}, tIOne: {"*tensor.Tensor", reflect.TypeFor[*value]()}, tBMat: {"*tensor.Tensor", reflect.TypeFor[*value]()},
	tMats: {"[]*tensor.Tensor", reflect.TypeFor[[]*value]()}, tVecs: {"[]*tensor.Tensor", reflect.TypeFor[[]*value]()}, tOnes: {"[]*tensor.Tensor", reflect.TypeFor[[]*value]()},
	tScanner: {"*bufio.Scanner", reflect.TypeFor[*scanner]()}, tState: {"tensor.State", reflect.TypeFor[cells]()},
}

func (k kind) isTensor() bool { return tMat <= k && k <= tBMat }

// A stat is the struct type of programs, with the same fields.
type stat struct {
	Total float64
	Count int
	Hist  []float64
	Best  *value
}

// A variable of a program. Two may have one name, the inner one shadows. What
// is called _ is none.
type variable struct {
	name string
	kind kind
	fn   *function // what it holds, if it is a closure
}

// An exprKind is the form of an expression.
type exprKind uint8

const (
	eOp      exprKind = iota // op of args
	eVar                     // v
	eLiteral                 // lit
	eIndex                   // args[0][args[1]]
	eField                   // args[0].field
	eDeref                   // *args[0]
	eAddress                 // &args[0]
	eCall                    // v(args) or fn(args)
)

// An expr is an expression.
type expr struct {
	form  exprKind
	kind  kind
	op    *operation
	v     *variable
	fn    *function
	field string
	lit   any
	args  []*expr
}

// A stmtKind is the form of a statement.
type stmtKind uint8

const (
	sDeclare  stmtKind = iota // vars := rhs, of which one may give all, or var vars without rhs
	sAssign                   // lhs op rhs
	sIncDec                   // lhs op
	sCall                     // rhs[0]
	sPrint                    // a print of rhs to the writer named text, with format if there is one
	sIf                       // if init; rhs[0] { body } else { other }
	sSwitch                   // switch { case rhs[i]: cases[i] ... default: other }
	sRange                    // for vars := range rhs[0] { body }
	sCount                    // for vars[0] := 0; vars[0] < rhs[0]; vars[0]++ { body }
	sHead                     // for init; rhs[0]; post { body }
	sWhile                    // for rhs[0] { body }
	sEndless                  // for { body }
	sSequence                 // for vars[0] := range each(rhs[0]) { body }: over a function
	sBlock                    // { body }
	sBreak                    // break text
	sContinue                 // continue text
	sReturn                   // return rhs
	sPanic                    // panic(fmt.Sprint(rhs))
	sDefer                    // defer func() { body }(), or the same with text for a name: defer text()
	sRecover                  // if r := recover(); r != nil { body }
	sFunc                     // vars[0] := func(...) { ... }
	sTalk                     // m.Req <- rhs[0]; vars[0] := <-m.Resp
)

const inside = "inside" // op of a named sDefer: defer func() { text() }()

// A stmt is a statement.
type stmt struct {
	form   stmtKind
	vars   []*variable
	lhs    []*expr
	rhs    []*expr
	op     string
	text   string // of a loop: its label; of the last statement of an if: elseIf, if they are one
	format string
	init   *stmt
	post   *stmt
	body   []*stmt
	other  []*stmt
	cases  [][]*stmt
	fn     *function
	stays  bool // part of the frame of the program, or what makes a loop end: the shrinker leaves it
}

// A function is a helper or a closure.
type function struct {
	name   string
	params []*variable
	result kind
	also   kind // of the second result, if there is one
	body   []*stmt
	doc    string // a directive
	isAway bool   // in another package
}

// A program is one kernel and its helpers.
type program struct {
	seed    uint64
	name    string
	dtype   dtype
	rows    int
	cols    int
	window  int
	form    string // "function", "method" or "generic"
	named   bool   // results have names
	leaves  bool   // values end its loops
	params  map[string]*variable
	helpers []*function
	body    []*stmt
	inputs  []*Input
	kept    *kept // if it is one that has been kept, of which there is the text alone
}

// A kept program is what is left of one, or what somebody has written.
type kept struct {
	source string   // with one directive, and no options
	away   string   // functions of the package away
	want   []string // for each input; none if only its forms are compared with each other
}

// outcome returns what p does on its input i, if there is only one right answer that is known.
func (p *program) outcome(i int, in *Input) (text string, known bool) {
	if p.kept == nil {
		text, known, _ = p.run(in)
		return text, known
	}
	if i < len(p.kept.want) {
		return p.kept.want[i], true
	}
	return "", false
}

// An input is what a program is called with. Values are dealt from Seed.
type Input struct {
	Seed  uint64
	Mats  int // in xs
	Bad   int // the one among them that has failed; -1 for none
	Flag  bool
	N     int
	Lines []string // what the peer answers
}

// elseIf is the text of an if that follows the else of another.
const elseIf = "else if"

func (s *stmt) isLoop() bool { return sRange <= s.form && s.form <= sSequence }

// blocks are the lists of statements in s.
func (s *stmt) blocks() []*[]*stmt {
	list := []*[]*stmt{&s.body, &s.other}
	for i := range s.cases {
		list = append(list, &s.cases[i])
	}
	if s.fn != nil {
		list = append(list, &s.fn.body)
	}
	return list
}

// lists are all lists of statements of p, outer ones first.
func (p *program) lists() []*[]*stmt {
	all := []*[]*stmt{&p.body}
	for _, h := range p.helpers {
		all = append(all, &h.body)
	}
	for i := 0; i < len(all); i++ {
		for _, s := range *all[i] {
			all = append(all, s.blocks()...)
		}
	}
	return all
}

// clone copies the statements of p. Expressions and variables are shared: nothing changes them.
func (p *program) clone() *program {
	q := *p
	q.body = cloneAll(p.body)
	q.helpers = nil
	for _, h := range p.helpers {
		c := *h
		c.body = cloneAll(h.body)
		q.helpers = append(q.helpers, &c)
	}
	return &q
}

func cloneAll(list []*stmt) []*stmt {
	list = slices.Clone(list)
	for i, s := range list {
		c := *s
		list[i] = &c
		c.cases = slices.Clone(s.cases)
		if s.fn != nil {
			fn := *s.fn
			c.fn = &fn
		}
		for _, b := range c.blocks() {
			*b = cloneAll(*b)
		}
	}
	return list
}
