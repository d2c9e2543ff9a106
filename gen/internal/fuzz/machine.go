package fuzz

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
)

// A machine runs one program on one input, statement by statement. It is the
// third judge: it imports nothing of the library, knows nothing of rewriting, and so
// makes other mistakes than they do.
type machine struct {
	cells
	p         *program
	in        *Input
	journal   strings.Builder // what was written, in order, each piece with its writer
	written   int             // bytes
	lines     []string        // that the peer has not said yet
	rate      float64         // of learning
	common    stream          // the default generator
	own       *stat           // the parameter s, which the model leads to, too
	host      *rand.Rand      // the generator of the host
	steps     int             // that are left
	inexact   bool            // what follows has more than one right answer
	recovered bool
}

// The cells of a model that a Snapshot keeps.
type cells struct {
	param     *value
	grad      *value // of param, or nil
	buffer    *value
	generator stream
}

// A raised is the panic of a program, as text: its type and its root cause.
type raised struct{ text string }

// stopped is the panic of a machine that ran out of steps.
type stopped struct{}

// maxSteps bounds how many statements a program runs.
const maxSteps = 20000

// maxText bounds how many bytes it writes, and how long a string gets.
const maxText = 1 << 16

// The names of the writers of a program.
const (
	outWriter = "out"
	logWriter = "errs"
)

// journalWriter is one writer of a program.
type journalWriter struct {
	m    *machine
	name string
}

func (w journalWriter) Write(b []byte) (int, error) {
	w.m.written += len(b)
	if w.m.written > maxText {
		panic(stopped{})
	}
	fmt.Fprintf(&w.m.journal, "%s %q\n", w.name, b)
	return len(b), nil
}

func (m *machine) out(name string) io.Writer { return journalWriter{m, name} }

// line is the next line of the peer, which notes how much it has been told by then.
func (m *machine) line() string {
	fmt.Fprintf(&m.journal, "asked after %d\n", m.written)
	if len(m.lines) == 0 {
		return ""
	}
	l := m.lines[0]
	m.lines = m.lines[1:]
	return l
}

// product is a MatMul.
func (m *machine) product(x, y *value) *value {
	z, exact := matmul(x, y)
	m.inexact = m.inexact || !exact
	return z
}

// A scanner reads the lines of the peer.
type scanner struct {
	m    *machine
	text string
	done bool
}

// scan is Scan of a bufio.Scanner.
func (s *scanner) scan() bool {
	if s.done {
		return false
	}
	s.done = len(s.m.lines) == 0
	s.text = s.m.line()
	return !s.done
}

// A tuple is what an expression gives that has several values.
type tuple []any

// An env holds the variables of a block.
type env struct {
	outer *env
	cells map[*variable]reflect.Value
}

func (e *env) inner() *env { return &env{outer: e} }

func (e *env) cell(v *variable) reflect.Value {
	for ; e != nil; e = e.outer {
		if c, ok := e.cells[v]; ok {
			return c
		}
	}
	panic("fuzz: variable " + v.name + " has no value")
}

// declare makes a new instance of v.
func (e *env) declare(v *variable, x any) {
	if e.cells == nil {
		e.cells = make(map[*variable]reflect.Value)
	}
	t := kinds[v.kind].rtype
	if v.fn != nil {
		t = reflect.TypeFor[*closure]()
	}
	c := reflect.New(t).Elem()
	if x != nil {
		c.Set(reflect.ValueOf(x))
	}
	e.cells[v] = c
}

// A closure is a function literal and the variables around it.
type closure struct {
	fn  *function
	env *env
}

// A signal says how a list of statements ended.
type signal struct {
	form    stmtKind // sBreak, sContinue, sReturn; sDeclare: it came to its end
	label   string
	results []any
}

// A frame is one call of a function.
type frame struct {
	defers  []func()
	results []reflect.Value // the results that have names
	panic   *raised
}

// run returns the outcome, as the harness writes it, whether it is the only right
// one, and whether the program came to an end.
func (p *program) run(in *Input) (text string, exact, ended bool) {
	ended = true
	m := &machine{p: p, in: in, rate: 0.25, lines: in.Lines, steps: maxSteps, common: stream{Key: 7}, cells: cells{generator: stream{Key: in.Seed}}, host: rand.New(rand.NewPCG(in.Seed, 3))}
	d := dealer(in.Seed)
	m.param = d.matrix(p)
	m.buffer = d.matrix(p)
	e := &env{}
	args := &stat{Total: 0.5, Hist: []float64{1, 2}}
	m.own = args
	w := d.matrix(p)
	var xs []*value
	for i := range in.Mats {
		x := d.matrix(p)
		if i == in.Bad {
			x = &value{dtype: p.dtype, shape: p.shape(), failed: divideByZero}
		}
		xs = append(xs, x)
	}
	rates := []float64{d.number(), d.number(), d.number()}
	for name, x := range map[string]any{"s": args, "rates": rates, "w": w, "xs": xs, "flag": in.Flag, "count": in.N} {
		e.declare(p.params[name], x)
	}
	f := &frame{}
	if p.named {
		for _, name := range []string{"r0", "r1", "r2"} {
			e.declare(p.params[name], nil)
			f.results = append(f.results, e.cell(p.params[name]))
		}
	}
	var result signal
	failure := ""
	func() {
		defer func() {
			switch r := recover().(type) {
			case nil:
			case raised:
				failure = r.text
			case stopped:
				ended = false
			default:
				panic(r)
			}
		}()
		result = m.call(f, p.body, e)
	}()
	if !ended {
		return "", false, false
	}
	fmt.Fprintf(&m.journal, "panic %q\n", failure)
	if failure == "" {
		m.dump(result.results...)
		if !m.recovered {
			m.dump(m.param, m.grad, m.buffer, m.rate)
			fmt.Fprintf(&m.journal, "%d %d %d\n", m.generator.Pos, m.common.Pos, m.host.Uint64())
		}
	}
	m.dump(*args, rates)
	return m.journal.String(), !m.inexact, true
}

// dealer returns a source of small numbers.
func dealer(seed uint64) *deal { return &deal{seed} }

type deal struct{ state uint64 }

// number is a quarter between -2 and 2.
func (d *deal) number() float64 {
	d.state += 0x9E3779B97F4A7C15
	z := d.state
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return float64(int64((z^z>>31)%17)-8) / 4
}

func (d *deal) matrix(p *program) *value {
	v := newValue(p.dtype, p.shape())
	for i := range v.floats {
		v.floats[i] = d.number()
	}
	return v
}

// dump writes values so that equal means equal bit for bit, except that all NaNs are one.
func (m *machine) dump(xs ...any) {
	for _, x := range xs {
		fmt.Fprintln(&m.journal, bitsOf(x))
	}
}

func bitsOf(x any) string {
	switch x := x.(type) {
	case float64:
		if math.IsNaN(x) {
			return "NaN"
		}
		return fmt.Sprintf("%x", math.Float64bits(x))
	case []float64:
		if x == nil {
			return "nil"
		}
		words := []string{}
		for _, y := range x {
			words = append(words, bitsOf(y))
		}
		return strings.Join(words, " ") + "."
	case stat:
		return fmt.Sprint(bitsOf(x.Total), x.Count, bitsOf(x.Hist), bitsOf(x.Best))
	case *value:
		switch {
		case x == nil:
			return "nil"
		case x.failed != "":
			return "failed"
		case x.dtype == i64:
			return fmt.Sprint(x.shape, x.ints)
		}
		return fmt.Sprint(x.shape, bitsOf(x.floats))
	}
	return fmt.Sprint(x)
}

// call runs the body of a function, and what it has deferred.
func (m *machine) call(f *frame, body []*stmt, e *env) (result signal) {
	func() {
		defer func() {
			switch r := recover().(type) {
			case nil:
			case raised:
				f.panic = &r
			default:
				panic(r)
			}
		}()
		result = m.list(f, body, e)
		for i, at := range f.results {
			if result.results == nil {
				break // they have been assigned to
			}
			if x := result.results[i]; x != nil {
				at.Set(reflect.ValueOf(x))
			}
		}
	}()
	for i := len(f.defers) - 1; i >= 0; i-- {
		f.defers[i]()
	}
	if f.panic != nil {
		panic(*f.panic)
	}
	if f.results != nil {
		result.results = nil
		for _, at := range f.results {
			result.results = append(result.results, at.Interface())
		}
	} else if m.recovered && result.form != sReturn { // only the kernel recovers
		result.results = []any{(*value)(nil), 0.0, []float64(nil)}
	}
	return result
}

func (m *machine) list(f *frame, body []*stmt, e *env) signal {
	for _, s := range body {
		if sig := m.stmt(f, s, e); sig.form != sDeclare {
			return sig
		}
	}
	return signal{}
}

func (m *machine) stmt(f *frame, s *stmt, e *env) signal {
	if m.steps--; m.steps < 0 {
		panic(stopped{})
	}
	switch s.form {
	case sDeclare:
		values := m.evals(s.rhs, e)
		if len(values) == 1 && len(s.vars) > 1 {
			values = values[0].(tuple)
		}
		for i, v := range s.vars {
			if values == nil {
				e.declare(v, nil)
			} else {
				e.declare(v, values[i])
			}
		}
	case sFunc:
		e.declare(s.vars[0], &closure{s.fn, e})
	case sAssign:
		m.assign(s, e)
	case sIncDec:
		at := m.place(s.lhs[0], e)
		at.SetInt(at.Int() + map[string]int64{"++": 1, "--": -1}[s.op])
	case sCall:
		m.eval(s.rhs[0], e)
	case sPrint:
		args := m.evals(s.rhs, e)
		if s.format == "" {
			fmt.Fprintln(m.out(s.text), args...)
		} else {
			fmt.Fprintf(m.out(s.text), s.format, args...)
		}
	case sIf:
		e = e.inner()
		if s.init != nil {
			m.stmt(f, s.init, e)
		}
		if m.eval(s.rhs[0], e).(bool) {
			return m.list(f, s.body, e.inner())
		}
		return m.list(f, s.other, e.inner())
	case sSwitch:
		for i, c := range s.rhs {
			if m.eval(c, e).(bool) {
				return unbroken(m.list(f, s.cases[i], e.inner()))
			}
		}
		return unbroken(m.list(f, s.other, e.inner()))
	case sBlock:
		return m.list(f, s.body, e.inner())
	case sRange, sCount, sHead, sWhile, sEndless, sSequence:
		return m.loop(f, s, e)
	case sTalk:
		x := m.eval(s.rhs[0], e).(float64)
		fmt.Fprintf(&m.journal, "told %s after %d\n", bitsOf(x), m.written)
		e.declare(s.vars[0], float64(x*0.5)+1)
	case sBreak, sContinue:
		return signal{form: s.form, label: s.text}
	case sReturn:
		return signal{form: sReturn, results: m.evals(s.rhs, e)}
	case sPanic:
		panic(raised{"string: " + fmt.Sprint(m.evals(s.rhs, e)...)})
	case sDefer:
		f.defers = append(f.defers, func() { m.deferred(f, s, e) })
	case sRecover:
		panic("fuzz: recover outside a deferred function")
	}
	return signal{}
}

// deferred runs what s has deferred in f.
func (m *machine) deferred(f *frame, s *stmt, e *env) {
	body := s.body
	if len(body) > 0 && body[0].form == sRecover {
		if f.panic != nil {
			f.panic, m.recovered = nil, true
			m.list(&frame{}, body[0].body, e.inner())
		}
		body = body[1:]
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case raised:
			m.inexact = m.inexact || f.panic != nil // which of the two is reported is not promised
			f.panic = &r
		default:
			panic(r)
		}
	}()
	m.list(&frame{}, body, e.inner())
}

// unbroken is how a switch ends whose clause ended with sig.
func unbroken(sig signal) signal {
	if sig.form == sBreak && sig.label == "" {
		return signal{}
	}
	return sig
}

func (m *machine) loop(f *frame, s *stmt, e *env) signal {
	n := 0
	var over any
	if s.form == sRange || s.form == sSequence {
		switch x := m.eval(s.rhs[0], e).(type) {
		case int:
			n = x
		case []float64:
			n, over = len(x), x
		case []*value:
			n, over = len(x), x
		}
	}
	outer := e.inner()
	if s.form == sCount {
		outer.declare(s.vars[0], 0)
	}
	if s.form == sHead {
		m.stmt(f, s.init, outer)
	}
	for i := 0; ; i++ {
		if m.steps--; m.steps < 0 {
			panic(stopped{})
		}
		inner := outer.inner()
		switch s.form {
		case sRange, sSequence:
			if i >= n {
				return signal{}
			}
			for k, v := range s.vars {
				if k == 0 {
					inner.declare(v, i)
				} else { // as it is by now
					inner.declare(v, reflect.ValueOf(over).Index(i).Interface())
				}
			}
		case sCount: // each iteration has a variable of its own
			if i > 0 {
				outer.declare(s.vars[0], int(outer.cell(s.vars[0]).Int())+1)
			}
			if int(outer.cell(s.vars[0]).Int()) >= m.eval(s.rhs[0], outer).(int) {
				return signal{}
			}
			inner.declare(s.vars[0], int(outer.cell(s.vars[0]).Int()))
		case sHead: // so each iteration has variables of its own here, too
			if i > 0 {
				next := e.inner()
				for _, v := range s.init.vars {
					next.declare(v, nil)
					next.cell(v).Set(outer.cell(v))
				}
				outer = next
				inner = outer.inner()
				m.stmt(f, s.post, outer)
			}
			fallthrough
		case sWhile:
			if !m.eval(s.rhs[0], outer).(bool) {
				return signal{}
			}
		}
		sig := m.list(f, s.body, inner.inner())
		if s.form == sCount {
			outer.cell(s.vars[0]).Set(inner.cell(s.vars[0]))
		}
		switch {
		case sig.form == sReturn:
			return sig
		case sig.form == sBreak && (sig.label == "" || sig.label == s.text):
			return signal{}
		case sig.form == sContinue && (sig.label == "" || sig.label == s.text):
		case sig.form != sDeclare:
			return sig
		}
	}
}

// assign runs an assignment: operands of the left side first, then the right side.
func (m *machine) assign(s *stmt, e *env) {
	if s.lhs[0].form == eIndex && s.lhs[0].args[0].kind == tMap {
		dict := m.eval(s.lhs[0].args[0], e).(map[int]float64)
		key := m.eval(s.lhs[0].args[1], e).(int)
		x := m.eval(s.rhs[0], e).(float64)
		if s.op != "=" {
			x = changed(s.op, dict[key], x)
		}
		if dict == nil {
			panic(raised{"runtime.plainError: assignment to entry in nil map"})
		}
		dict[key] = x
		return
	}
	if l := s.lhs[0]; l.form == eIndex { // the index comes first, whether it is in range last
		s = &stmt{lhs: []*expr{{form: eIndex, kind: l.kind, args: []*expr{l.args[0], literal(tInt, m.eval(l.args[1], e))}}}, op: s.op, rhs: s.rhs}
	}
	values := m.evals(s.rhs, e)
	if len(s.lhs) > len(s.rhs) {
		values = values[0].(tuple)
	}
	for i, l := range s.lhs {
		at, x := m.place(l, e), values[i]
		switch s.op {
		case "=":
			if x == nil {
				at.SetZero()
			} else {
				at.Set(reflect.ValueOf(x))
			}
			continue
		}
		switch y := x.(type) {
		case float64:
			at.SetFloat(changed(s.op, at.Float(), y))
		case int:
			at.SetInt(at.Int() + int64(y))
		case string:
			if len(at.String())+len(y) > maxText {
				panic(stopped{})
			}
			at.SetString(at.String() + y)
		}
	}
}

// changed is what x becomes by x op y.
func changed(op string, x, y float64) float64 {
	switch op {
	case "+=":
		return x + y
	case "-=":
		return x - y
	}
	return x * y
}

// place is where an expression on the left side denotes.
func (m *machine) place(x *expr, e *env) reflect.Value {
	switch x.form {
	case eVar:
		return e.cell(x.v)
	case eField:
		if x.args[0].kind == tStatPtr {
			return reflect.ValueOf(m.eval(x.args[0], e)).Elem().FieldByName(x.field)
		}
		return m.place(x.args[0], e).FieldByName(x.field)
	case eDeref:
		return reflect.ValueOf(m.eval(x.args[0], e)).Elem()
	case eIndex:
		var list reflect.Value
		if x.args[0].kind == tPair {
			list = m.place(x.args[0], e)
		} else {
			list = reflect.ValueOf(m.eval(x.args[0], e))
		}
		i := m.eval(x.args[1], e).(int)
		if i < 0 || i >= list.Len() {
			text := fmt.Sprintf("index out of range [%d] with length %d", i, list.Len())
			if i < 0 {
				text = fmt.Sprintf("index out of range [%d]", i)
			}
			panic(raised{"runtime.boundsError: runtime.boundsError: runtime error: " + text})
		}
		return list.Index(i)
	}
	panic("fuzz: no place")
}

func (m *machine) evals(xs []*expr, e *env) []any {
	var values []any
	for _, x := range xs {
		values = append(values, m.eval(x, e))
	}
	return values
}

func (m *machine) eval(x *expr, e *env) any {
	switch x.form {
	case eLiteral:
		return x.lit
	case eVar, eDeref, eField:
		return m.place(x, e).Interface()
	case eAddress:
		return m.place(x.args[0], e).Addr().Interface()
	case eIndex:
		if x.args[0].kind == tMap {
			dict := m.eval(x.args[0], e).(map[int]float64)
			return dict[m.eval(x.args[1], e).(int)]
		}
		return m.place(x, e).Interface()
	case eCall:
		args := m.evals(x.args, e)
		fn, outer := x.fn, &env{}
		if x.v != nil {
			c := e.cell(x.v).Interface().(*closure)
			fn, outer = c.fn, c.env
		} else {
			for _, h := range m.p.helpers {
				if h.name == fn.name {
					fn = h
				}
			}
		}
		inner := outer.inner()
		for i, v := range fn.params {
			inner.declare(v, args[i])
		}
		if sig := m.call(&frame{}, fn.body, inner.inner()); len(sig.results) > 0 {
			if fn.also != none {
				return tuple(sig.results)
			}
			return sig.results[0]
		}
		return nil
	}
	switch x.op {
	case opAnd:
		return m.eval(x.args[0], e).(bool) && m.eval(x.args[1], e).(bool)
	case opOr:
		return m.eval(x.args[0], e).(bool) || m.eval(x.args[1], e).(bool)
	}
	result := x.op.eval(m, m.evals(x.args, e))
	if result == 0.0 && x.isConstant() {
		return 0.0 // constants have no negative zero
	}
	return result
}

// isConstant reports whether x is a constant of Go: made of literals by operators, conversions, min and max.
func (x *expr) isConstant() bool {
	if x.form != eOp || len(x.args) == 0 {
		return x.form == eLiteral
	}
	for _, a := range x.args {
		if !a.isConstant() {
			return false
		}
	}
	return !x.op.reads && !x.op.device && !strings.Contains(x.op.source, "math.")
}
