package gen_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"golang.org/x/tools/txtar"
)

var (
	seedFlag    = flag.Uint64("seed", 1, "seed of the random loops; 0 takes the time")
	randomLoops = flag.Int("loops", 12, "how many random loops TestRandomLoops makes")
)

// A writer of random functions. Every function has the same parameters and
// variables, so that statements can be put together freely: tensors x (the
// loop's), w and t, host variables n, total, last and hist, a writer out.
type program struct {
	r        *rand.Rand
	b        strings.Builder
	depth    int
	names    int
	inEpochs bool     // the loop is in another one
	host     []string // variables of type float64 in scope that hold values read
}

func (p *program) line(format string, args ...any) {
	p.b.WriteString(strings.Repeat("\t", p.depth))
	fmt.Fprintf(&p.b, format, args...)
	p.b.WriteByte('\n')
}

func (p *program) pick(list ...string) string { return list[p.r.IntN(len(list))] }

// tensor is an expression for a tensor.
func (p *program) tensor() string {
	return p.pick("x", "w", "t", "x.Mul(w)", "t.AddScalar(0.5)", "w.Sub(t).MulScalar(0.1)", "x.MatMul(x)", "w.MulScalar(rate)", "xs[i%len(xs)]", "xs[(i+n)%len(xs)]", "helper(x, w)")
}

// read is an expression for a number that is read from a tensor.
func (p *program) read() string {
	return p.pick(p.tensor()+".Sum().Item()", "w.Mean().Item()", "t.At(0, 1)", "x.Max().Item()", "loss.Item()", "loss.Item()", "loss.Item()")
}

// number is an expression for a number.
func (p *program) number() string {
	all := append([]string{"total", "last", "float64(n)", "float64(i)", "1.5", "m.total", "rates[1]"}, p.host...)
	if p.r.IntN(2) == 0 {
		return p.read()
	}
	return all[p.r.IntN(len(all))]
}

// condition is one that needs no value, mostly.
func (p *program) condition() string {
	if p.r.IntN(6) == 0 {
		return p.number() + " > 0.2"
	}
	return p.pick("i%2 == 0", "i%3 == 1", "n > 3", "len(hist) > 2", "n%2 == 1", "flag")
}

func (p *program) statements(n int) {
	host := len(p.host)
	for range n {
		p.statement()
	}
	p.host = p.host[:host]
}

func (p *program) block(format string, args ...any) {
	p.line(format, args...)
	p.depth++
	p.statements(1 + p.r.IntN(3))
	p.depth--
}

func (p *program) statement() {
	switch p.r.IntN(35) {
	case 0, 1:
		p.line("w = %s", p.tensor())
	case 2:
		p.line("t = %s", p.tensor())
	case 3, 4:
		p.line("total += %s", p.number())
	case 5:
		p.line("last = %s * 2", p.number())
	case 6:
		p.line("hist = append(hist, %s)", p.number())
	case 7, 8:
		p.line("fmt.Fprintln(out, i, %s)", p.number())
	case 9:
		p.line("fmt.Fprintf(out, \"%%.4f %%v\\n\", %s, %s)", p.number(), p.number())
	case 10:
		p.line("fmt.Fprintln(out, %s, n)", p.tensor())
	case 11:
		p.line("n++")
	case 12:
		p.line("n += i // counted")
	case 13, 14:
		p.names++
		name := fmt.Sprintf("v%d", p.names)
		p.line("%s := %s", name, p.read())
		p.line("total -= %s", name)
		p.host = append(p.host, name)
	case 15, 16:
		p.block("if %s {", p.condition())
		if p.r.IntN(3) == 0 {
			p.block("} else {")
		}
		p.line("}")
	case 17:
		if p.depth < 4 {
			p.names++
			j := p.names
			p.block("for j%d := range 2 {", j)
			p.line("\tn += j%d", j)
			p.line("}")
		}
	case 18:
		p.line("m.add(%s)", p.number())
	case 19:
		p.line("report(out, %s)", p.number())
	case 20:
		p.line("rate = %s", p.pick("0.25", "rate * 0.5", "float64(i) / 4"))
	case 21:
		p.line("seen[i%%3] += %s", p.number())
	case 22:
		p.line("if l := %s; l > 0.1 {", p.read())
		p.line("\tlast, best = l, %s", p.pick("w", "t", "x"))
		p.line("}")
	case 23:
		p.line("loss = %s.Sum()", p.tensor())
	case 24:
		p.line("show(%s)", p.number())
	case 25:
		if p.r.IntN(4) == 0 {
			p.line("if %s {", p.condition())
			p.line("\t%s", p.pick("continue", "return w, total, hist", "break"))
			p.line("}")
		} else if p.r.IntN(3) == 0 {
			p.line("if flag && i == 2 {")
			p.line("\tpanic(fmt.Sprint(\"stop \", n))")
			p.line("}")
		}
	case 26:
		p.line("rates[i%%2] = %s", p.number())
	case 27:
		p.line("if math.IsNaN(%s) {", p.read())
		p.line("\tpanic(fmt.Sprint(\"not a number at \", i, n))")
		p.line("}")
	case 29:
		p.line("if %s > %s {", p.number(), p.pick("0.5", "2", "20", "1e4"))
		if p.r.IntN(3) == 0 {
			p.line("\tfmt.Fprintln(out, \"done\", i, %s)", p.number())
		}
		if p.r.IntN(3) == 0 {
			p.line("\tbest = %s", p.pick("w", "t", "x"))
		}
		p.line("\t%s", p.exit())
		p.line("}")
	case 30:
		p.line("if err := %s.Wait(); err != nil {", p.pick("loss", "w", "x"))
		p.line("\tfmt.Fprintln(out, \"failed\", i, err != nil)")
		p.line("\t%s", p.exit())
		p.line("}")
	case 31:
		p.line("if l := %s; l < 2 {", p.read())
		p.line("\tlast = l")
		p.line("} else {")
		p.line("\tbad++")
		p.line("\tif bad > %d {", p.r.IntN(4))
		p.line("\t\t%s", p.exit())
		p.line("\t}")
		p.line("}")
	case 33, 34:
		p.rows()
	case 32:
		p.line("if math.Abs(%s) < 0.3 {", p.number())
		p.line("\t%s", p.exit())
		p.line("}")
	case 28:
		p.line("switch {")
		p.block("case %s:", p.condition())
		p.block("default:")
		p.line("}")
	}
}

// exit is a way out of the loop.
func (p *program) exit() string {
	if p.inEpochs {
		return p.pick("break", "break epochs", "continue epochs", "return t, total + last, hist")
	}
	return p.pick("break", "break", "return w, total, hist", "return best, float64(n + i), nil", "return x, loss.Item(), append(hist, last)")
}

// head begins the loop.
func (p *program) head() {
	switch p.r.IntN(6) {
	case 0, 1, 2:
		p.line("for i, x := range xs {")
		p.depth++
	case 3:
		p.line("for i := range 10 {")
		p.depth++
		p.line("x := xs[i%%len(xs)]")
	case 4:
		p.line("for i := 0; total < %s && i < 9; i++ {", p.pick("3", "30"))
		p.depth++
		p.line("x := xs[i%%len(xs)].MulScalar(0.9)")
	case 5:
		p.line("for i := 0; i < 9 && %s.Mean().Item() < %s; i++ {", p.pick("w", "t"), p.pick("0.5", "5"))
		p.depth++
		p.line("x := w.Sub(t)")
	}
}

// rows is a loop over the rows of tensors, of which there may be too few.
func (p *program) rows() {
	p.names++
	j := fmt.Sprintf("r%d", p.names)
	row := func() string {
		return p.pick("x", "w", "t", "w", "x.Sub(w)", "xs[0]", "xs[(i+1)%len(xs)]", "best") + ".Row(" + j + ")"
	}
	computed := func() string {
		return row() + p.pick("", ".Sum()", ".MatMul(w)", ".MulScalar(rate)", ".Mul("+row()+").Mean()", ".Add(w).Max()", ".ArgMax()", ".Dot("+row()+")", ".Norm()", ".Max()")
	}
	n := p.pick("2", "2", "x.Dim(0)", "w.Dim(0)", "min(n, 2)")
	if p.r.IntN(12) == 0 {
		n = "3"
	}
	if p.r.IntN(3) == 0 {
		p.line("for %s := 0; %s < %s; %s++ {", j, j, n, j)
	} else {
		p.line("for %s := range %s {", j, n)
	}
	p.depth++
	p.line("_ = %s", j)
	for range 1 + p.r.IntN(3) {
		p.names++
		v := fmt.Sprintf("y%d", p.names)
		switch p.r.IntN(8) {
		case 0:
			p.line("total += %s.Sum().Item()", computed())
		case 1:
			p.line("hist = append(hist, %s.Sum().Item())", computed())
		case 2:
			p.line("fmt.Fprintln(out, %s, %s, n)", j, computed())
		case 3:
			p.line("%s := %s", v, computed())
			p.line("if l := %s.Sum().Item(); l > last {", v)
			p.line("\tlast, n = l, %s", j)
			p.line("}")
			if p.r.IntN(2) == 0 {
				p.line("fmt.Fprintln(out, %s.Neg())", v)
			}
		case 4:
			p.line("%s := %s", v, row())
			p.line("%sb := %s.%s // of one row", v, v, p.pick("Square()", "MatMul(w)", "Sub(best)"))
			p.line("total -= float64(%s) + %sb.Sum().Item()", j, v)
		case 5:
			p.line("if %s {", p.condition())
			p.line("\ttotal += %s.At(0)", row())
			p.line("}")
		case 6:
			p.line("%s := %s.Float32s()", v, row())
			p.line("last = float64(%s[0])", v)
		case 7:
			p.line("%s", p.pick("w = w.MulScalar(0.5)", "rate *= 0.5", "n++", "show("+row()+".Mean().Item())", "best = x", "last = "+row()+".Max().Item()"))
		}
	}
	p.depth--
	p.line("}")
}

// function writes one function.
func (p *program) function(name string) {
	p.line("//asyncgen:kernel")
	p.line("func %s(out io.Writer, m *meter, rates []float64, w *tensor.Tensor, xs []*tensor.Tensor, flag bool) (*tensor.Tensor, float64, []float64) {", name)
	p.depth++
	p.line("n, bad, rate, total, last := 0, 0, 0.5, 0.0, 0.0")
	p.line("_ = bad")
	p.line("t, loss, best := w, w.Sum(), w")
	p.line("var hist []float64")
	p.line("seen := make(map[int]float64)")
	p.line("show := func(v float64) { fmt.Fprintln(out, \"show\", v, n) }")
	if p.inEpochs = p.r.IntN(3) == 0; p.inEpochs {
		p.line("epochs:")
		p.line("for e := range 2 {")
		p.line("\tif e < 0 {")
		p.line("\t\tbreak epochs")
		p.line("\t}")
		p.depth++
		p.line("n += e")
	}
	p.head()
	p.line("_, _ = i, x")
	p.statements(2 + p.r.IntN(6))
	p.depth--
	p.line("}")
	if p.depth > 1 {
		p.line("fmt.Fprintln(out, \"epoch\", total, n)")
		p.depth--
		p.line("}")
	}
	p.line("show(last + rate + seen[0] + seen[1])")
	p.line("fmt.Fprintln(out, t, loss, best)")
	p.line("return w, total, hist")
	p.depth--
	p.line("}\n")
}

const randomHeader = `package p

import (
	"fmt"
	"io"
	"math"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

type meter struct {
	total float64
	count int
}

func (m *meter) add(v float64) { m.total += v; m.count++ }

func report(out io.Writer, v float64) { fmt.Fprintf(out, "report %.5f\n", math.Abs(v)) }

func helper(x, y *tensor.Tensor) *tensor.Tensor { return x.Maximum(y).MulScalar(0.5) }

`

// TestRandomLoops rewrites random functions, and runs them as written and as
// generated, with failing tensors.
func TestRandomLoops(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("go test ./gen -run TestRandomLoops -seed %d -loops %d", seed, *randomLoops)
	p := &program{r: rand.New(rand.NewPCG(seed, 0))}
	p.b.WriteString(randomHeader)
	for k := range *randomLoops {
		p.function(fmt.Sprintf("F%03d", k))
	}
	source := []byte(p.b.String())
	dir := gentest.NewModule(t)
	if keep := os.Getenv("ASYNCGEN_KEEP"); keep != "" {
		gentest.Write(t, filepath.Join(keep, "in.go"), source)
	}
	g := &gentest.Golden{Path: "random", Name: "random", Archive: new(txtar.Archive)}
	g.Set("in.go", source)
	gentest.Write(t, g.SourceFile(dir), source)
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./w64/..."}})
	if err != nil {
		t.Fatal(err)
	}
	rewritten, exits := 0, 0
	for _, f := range result.Files {
		rewritten, exits = bytes.Count(f.Text, []byte("NewLater[")), bytes.Count(f.Text, []byte(".BreakIf("))
		if keep := os.Getenv("ASYNCGEN_KEEP"); keep != "" {
			gentest.Write(t, filepath.Join(keep, "in_async.go"), f.Text)
		}
	}
	for _, r := range result.Remarks {
		if r.Code >= "AG900" {
			t.Errorf("%v", r)
		}
	}
	t.Logf("%d of %d functions rewritten, with %d exits", rewritten, *randomLoops, exits)
	if rewritten*10 < *randomLoops*2 {
		t.Errorf("%d of %d functions rewritten: too few to prove anything", rewritten, *randomLoops)
	}
	gentest.RunKernels(t, dir, []*gentest.Golden{g}, result)
}
