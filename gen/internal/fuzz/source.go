package fuzz

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// header is what the kernels of a package have in common.
const header = `package p

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"sort"
	"strings"

	"github.com/asyncgen/asyncgen/device/kernel"
	"github.com/asyncgen/asyncgen/runtime/nn"
	"github.com/asyncgen/asyncgen/runtime/optim"
	"github.com/asyncgen/asyncgen/runtime/tensor"

	"example.com/fuzz/away"
	"example.com/fuzz/help"
)

type stat struct {
	Total float64
	Count int
	Hist  []float64
	Best  *tensor.Tensor
}

func (s *stat) add(v float64) {
	s.Total += v
	s.Count++
}

func (s *stat) keep(v float64) { s.Hist = append(s.Hist, v) }

type model struct {
	P *tensor.Param
	B *tensor.Buffer
	G *tensor.Generator
	O *optim.Optimizer
	R *rand.Rand
	S *stat

	Req, Resp chan float64 // to a peer and from it
}

func (m *model) learn(x *tensor.Tensor) {
	m.P.Value().Mul(x.Detach()).Sum().Backward()
	m.P.Set(m.P.Value().Detach().Sub(m.P.Grad().MulScalar(0.25)))
	m.P.ZeroGrad()
}

func mix(x, y *tensor.Tensor) *tensor.Tensor { return x.Maximum(y).MulScalar(0.5) }

var apart = tensor.Fuse("apart", 2, func(x ...*kernel.Expr) *kernel.Expr {
	return kernel.Mul(kernel.Sub(x[0], x[1]), x[1])
})

func slope(x *tensor.Tensor) *tensor.Tensor {
	t := x.Detach().Track()
	return tensor.Grad(t.Mul(t).Sum(), t)[0].Detach()
}

func outdone(x *tensor.Tensor) *tensor.Tensor {
	best, places := x.TopK(1, 1, tensor.Descending)
	return x.Sub(best).Mul(places.As(x.DType()))
}

func perRow(x, y *tensor.Tensor) *tensor.Tensor {
	return tensor.VMap(func(rows ...*tensor.Tensor) *tensor.Tensor { return rows[0].Mul(rows[1]).Sum() }, x, y).Max()
}

func encoded(x *tensor.Tensor) string {
	text, err := x.MarshalJSON()
	return fmt.Sprint(string(text), " ", err)
}

func size(x *tensor.Tensor) float64 { return math.Sqrt(math.Abs(x.Sum().Item())) }

func choose[T any](c bool, x, y T) T {
	if c {
		return x
	}
	return y
}

func report(out io.Writer, v float64) { fmt.Fprintf(out, "report %.5f\n", math.Abs(v)) }

func tally(w io.Writer, vs ...float64) {
	for i, v := range vs {
		fmt.Fprintln(w, i, v)
	}
}

// What kernels need, perhaps.
var (
	_ = sort.Float64s
	_ = nn.MSELoss
	_ = help.Most
	_ = away.None
	_ context.Context
)

//asyncgen:effects input
func ask(in *bufio.Reader) float64 {
	line, _ := in.ReadString('\n')
	return float64(len(strings.TrimSuffix(line, "\n")))
}

//asyncgen:pure
func each(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

`

// A printer writes one program as Go source.
type printer struct {
	p      *program
	b      strings.Builder
	deep   int
	used   map[*variable]bool
	called map[string]bool // helpers
	jump   map[string]bool // labels
}

const directive = "//asyncgen:kernel"

// source is p as a user would have written it; options follow the directive.
func (p *program) source(options string) string {
	if p.kept != nil {
		return strings.Replace(p.kept.source, directive+"\n", directive+options+"\n", 1)
	}
	w := p.newPrinter()
	for _, h := range p.helpers {
		if w.called[h.name] && !h.isAway {
			w.b.WriteString(w.function(h))
		}
	}
	w.line(directive+"%s", options)
	receiver, params := "", "m *model, "
	switch p.form {
	case "method":
		receiver, params = "(m *model) ", ""
	case "generic":
		params = "_ T, m *model, "
	}
	name := p.name
	if p.form == "generic" {
		name += "[T any]"
	}
	results := "(*tensor.Tensor, float64, []float64)"
	if p.named {
		results = "(r0 *tensor.Tensor, r1 float64, r2 []float64)"
	}
	w.line("func %s%s(%sout, errs io.Writer, in *bufio.Reader, s *stat, rates []float64, w *tensor.Tensor, xs []*tensor.Tensor, flag bool, count int) %s {", receiver, name, params, results)
	w.block(p.body)
	w.line("}\n")
	return w.b.String()
}

// newPrinter returns a printer that knows what p uses.
func (p *program) newPrinter() *printer {
	w := &printer{p: p, used: make(map[*variable]bool), called: make(map[string]bool), jump: make(map[string]bool)}
	for _, list := range p.lists() {
		for _, s := range *list {
			for _, x := range s.exprs() {
				w.use(x)
			}
			if s.form == sBreak || s.form == sContinue {
				w.jump[s.text] = true
			}
		}
	}
	return w
}

// function is a helper as source.
func (w *printer) function(h *function) string {
	f := &printer{p: w.p, used: w.used, called: w.called, jump: w.jump}
	model := ", m *model"
	if h.isAway {
		model = ""
	}
	f.line("func %s(out, errs io.Writer%s%s) %s {", f.helper(h), model, f.params(h.params), h.results())
	f.block(h.body)
	f.line("}\n")
	return f.b.String()
}

// exprs are the expressions of s itself, those that are assigned to only as
// far as they are evaluated.
func (s *stmt) exprs() []*expr {
	xs := slices.Clone(s.rhs)
	for _, l := range s.lhs {
		if l.form != eVar || s.form == sIncDec || s.op != "=" {
			xs = append(xs, l)
		}
	}
	for _, simple := range []*stmt{s.init, s.post} {
		if simple != nil {
			xs = append(xs, simple.exprs()...)
		}
	}
	return xs
}

// helper is the name of a helper, which no other program of the package has.
func (w *printer) helper(fn *function) string {
	if fn.isAway {
		return w.p.name + fn.name
	}
	return strings.ToLower(w.p.name) + fn.name
}

func (w *printer) use(x *expr) {
	if x.v != nil {
		w.used[x.v] = true
	} else if x.fn != nil {
		w.called[x.fn.name] = true
	}
	for _, a := range x.args {
		w.use(a)
	}
}

func (w *printer) params(vs []*variable) string {
	text := ""
	for _, v := range vs {
		text += ", " + v.name + " " + kinds[v.kind].source
	}
	return text
}

func (w *printer) line(format string, args ...any) {
	w.b.WriteString(strings.Repeat("\t", w.deep))
	fmt.Fprintf(&w.b, format, args...)
	w.b.WriteByte('\n')
}

func (w *printer) block(list []*stmt) {
	w.deep++
	for _, s := range list {
		w.stmt(s)
	}
	w.deep--
}

// unused lets variables be declared that nothing uses.
func (w *printer) unused(vs []*variable) {
	for _, v := range vs {
		if !w.used[v] && v.name != "_" {
			w.line("_ = %s", v.name)
		}
	}
}

func (w *printer) list(xs []*expr) string {
	var words []string
	for _, x := range xs {
		words = append(words, w.expr(x, false))
	}
	return strings.Join(words, ", ")
}

func names(vs []*variable) string {
	var words []string
	for _, v := range vs {
		words = append(words, v.name)
	}
	return strings.Join(words, ", ")
}

// simple is s, a declaration or an assignment, as it stands in the head of a statement.
func (w *printer) simple(s *stmt) string {
	switch s.form {
	case sDeclare:
		return names(s.vars) + " := " + w.list(s.rhs)
	case sIncDec:
		return w.expr(s.lhs[0], false) + s.op
	}
	return w.list(s.lhs) + " " + s.op + " " + w.list(s.rhs)
}

func (w *printer) stmt(s *stmt) {
	if s.text != "" && w.jump[s.text] && s.isLoop() {
		w.line("%s:", s.text)
	}
	switch s.form {
	case sDeclare:
		if len(s.rhs) == 0 {
			w.line("var %s %s", s.vars[0].name, kinds[s.vars[0].kind].source)
		} else {
			w.line("%s", w.simple(s))
		}
		w.unused(s.vars)
	case sFunc:
		w.line("%s := func(%s) %s {", s.vars[0].name, strings.TrimPrefix(w.params(s.fn.params), ", "), s.fn.results())
		w.block(s.fn.body)
		w.line("}")
		w.unused(s.vars)
	case sAssign, sIncDec:
		w.line("%s", w.simple(s))
	case sCall:
		w.line("%s", w.expr(s.rhs[0], false))
	case sPrint:
		if s.format == "" {
			w.line("fmt.Fprintln(%s, %s)", s.text, w.list(s.rhs))
		} else {
			w.line("fmt.Fprintf(%s, %q, %s)", s.text, s.format, w.list(s.rhs))
		}
	case sIf:
		for word := "if"; s != nil; word = "} else if" {
			init := ""
			if s.init != nil {
				init = w.simple(s.init) + "; "
			}
			w.line("%s %s%s {", word, init, w.list(s.rhs))
			w.deep++
			if s.init != nil {
				w.unused(s.init.vars)
			}
			w.deep--
			w.block(s.body)
			other := s.other
			if s = nil; len(other) == 1 && other[0].text == elseIf {
				s = other[0]
			} else if len(other) > 0 {
				w.line("} else {")
				w.block(other)
			}
		}
		w.line("}")
	case sSwitch:
		w.line("switch {")
		for i, c := range s.rhs {
			w.line("case %s:", w.expr(c, false))
			w.block(s.cases[i])
		}
		w.line("default:")
		w.block(s.other)
		w.line("}")
	case sRange:
		w.loop(s, "for %s := range %s {", names(s.vars), w.list(s.rhs))
	case sSequence:
		w.loop(s, "for %s := range each(%s) {", names(s.vars), w.list(s.rhs))
	case sCount:
		v := s.vars[0].name
		w.loop(s, "for %s := 0; %s < %s; %s++ {", v, v, w.list(s.rhs), v)
	case sHead:
		w.loop(s, "for %s; %s; %s {", w.simple(s.init), w.list(s.rhs), w.simple(s.post))
	case sWhile:
		w.loop(s, "for %s {", w.list(s.rhs))
	case sEndless:
		w.loop(s, "for {")
	case sBlock:
		w.loop(s, "{")
	case sBreak:
		w.line("break %s", s.text)
	case sContinue:
		w.line("continue %s", s.text)
	case sReturn:
		w.line("return %s", w.list(s.rhs))
	case sPanic:
		w.line("panic(fmt.Sprint(%s))", w.list(s.rhs))
	case sDefer:
		if s.text != "" {
			w.loop(&stmt{body: s.body}, "%s := func() {", s.text)
			w.line(map[bool]string{false: "defer %s()", true: "defer func() { %s() }()"}[s.op == inside], s.text)
			break
		}
		w.loop(&stmt{body: s.body}, "defer func() {")
		text := strings.TrimSuffix(w.b.String(), "\n") + "()\n"
		w.b.Reset()
		w.b.WriteString(text)
	case sRecover:
		w.line("if r := recover(); r != nil {")
		w.block(s.body)
		w.line("}")
	case sTalk:
		w.line("m.Req <- %s", w.list(s.rhs))
		w.line("%s := <-m.Resp", s.vars[0].name)
		w.unused(s.vars)
	}
}

func (w *printer) loop(s *stmt, format string, args ...any) {
	w.line(format, args...)
	w.deep++
	w.unused(s.vars)
	if s.form == sHead {
		w.unused(s.init.vars)
	}
	w.deep--
	w.block(s.body)
	w.line("}")
}

// expr is x as source, in parentheses if it is an operand that needs them.
func (w *printer) expr(x *expr, operand bool) string {
	switch x.form {
	case eVar:
		return x.v.name
	case eLiteral:
		switch l := x.lit.(type) {
		case float64:
			text := strconv.FormatFloat(l, 'g', -1, 64)
			if l == float64(int(l)) {
				text += ".0"
			}
			if l < 0 && operand {
				return "(" + text + ")"
			}
			return text
		case string:
			return strconv.Quote(l)
		case int:
			if l < 0 && operand {
				return fmt.Sprintf("(%d)", l)
			}
		}
		return fmt.Sprint(x.lit)
	case eIndex:
		return w.expr(x.args[0], true) + "[" + w.expr(x.args[1], false) + "]"
	case eField:
		return w.expr(x.args[0], true) + "." + x.field
	case eDeref:
		if operand {
			return "(*" + w.expr(x.args[0], true) + ")"
		}
		return "*" + w.expr(x.args[0], true)
	case eAddress:
		if x.field != "" { // of a method call, which takes it itself
			return w.expr(x.args[0], true)
		}
		if operand {
			return "(&" + w.expr(x.args[0], true) + ")"
		}
		return "&" + w.expr(x.args[0], true)
	case eCall:
		if x.v != nil {
			return x.v.name + "(" + w.list(x.args) + ")"
		}
		if x.fn.isAway {
			return "away." + w.helper(x.fn) + "(out, errs, " + w.list(x.args) + ")"
		}
		return w.helper(x.fn) + "(out, errs, m, " + w.list(x.args) + ")"
	}
	text := w.p.fill(x.op.source)
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			break
		}
		i := int(after[0] - '0')
		text = after[1:]
		b.WriteString(w.expr(x.args[i], x.op.isInfix() || text != "" && (text[0] == '.' && !strings.HasPrefix(text, "...") || text[0] == '[' || text[0] == '%')))
	}
	if operand && x.op.isInfix() {
		return "(" + b.String() + ")"
	}
	return b.String()
}

// fill puts shape and element type of p into the source of an operation.
func (p *program) fill(source string) string {
	return strings.NewReplacer("{r}", strconv.Itoa(p.rows), "{c}", strconv.Itoa(p.cols), "{T}", p.dtype.goName(), "{t}", p.dtype.String()).Replace(source)
}
