package gen

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/load"
	"github.com/asyncgen/asyncgen/internal/sametemp"
	"github.com/asyncgen/asyncgen/internal/turns"
)

const checkedSource = `package p

import (
	"fmt"
	"io"

	"github.com/asyncgen/asyncgen/runtime/tensor"
)

//asyncgen:kernel
func Train(out io.Writer, w *tensor.Tensor, xs []*tensor.Tensor) (float64, error) {
	total, step := 0.0, 0
	for i, x := range xs {
		step++
		w = w.Add(x.MulScalar(float64(step)))
		total += w.Sum().Item()
		if i == 7 {
			return total, nil
		}
		l := x.Mean().Item()
		w = w.Neg()
		fmt.Fprintln(out, step, l)
		step++
	}
	return total, nil
}

//asyncgen:kernel
func Log(out io.Writer, w *tensor.Tensor) {
	for i := range 100 {
		if w = w.Neg(); i%10 == 0 {
			fmt.Fprintln(out, w.Sum().Item())
		}
	}
}

func sums(xs []*tensor.Tensor) (total float64, n int) {
	for _, x := range xs {
		n++
		total += float64(n) * x.MulScalar(float64(n)).Sum().Item()
	}
	return
}

//asyncgen:kernel
func Sums(out io.Writer, xs []*tensor.Tensor) {
	for range 3 {
		total, n := sums(xs)
		fmt.Fprintln(out, total, n)
	}
}

//asyncgen:kernel
func Closures(out io.Writer, xs []*tensor.Tensor) (total float64) {
	for i, x := range xs {
		total += x.Sum().Item()
		if i%2 == 1 {
			large := func(n int) bool {
				for range n {
					total += x.Max().Item()
					if total > 100 {
						return true
					}
				}
				return false
			}
			if len(xs) > 1 && large(3) {
				fmt.Fprintln(out, "large", i)
			}
		}
	}
	return total
}

//asyncgen:kernel
func Literals(out io.Writer, w *tensor.Tensor, xs []*tensor.Tensor) (seen float64) {
	steps := 0
	step := func(x *tensor.Tensor) float64 {
		w = w.Add(x)
		steps++
		seen += w.Sum().Item()
		return seen / 2
	}
	step(w)
	for i, x := range xs {
		mean := func() float64 { return x.Mean().Item() }
		l := step(x)
		fmt.Fprintln(out, i, l, mean())
	}
	return seen
}

func moved(w, x *tensor.Tensor) (*tensor.Tensor, float64) {
	next := w.Sub(x)
	return next, x.Sum().Item()
}

//asyncgen:kernel
func Mixed(w *tensor.Tensor, xs []*tensor.Tensor) (*tensor.Tensor, float64) {
	total, last := 0.0, 0.0
	for _, x := range xs {
		next, v := moved(w, x)
		w = next
		total += v
		w, last = moved(w, x.Neg())
	}
	return w, total + last
}

//asyncgen:kernel
func Own(w *tensor.Tensor) float64 {
	rate, sum := 2.0, 0.0
	for i := range 9 {
		rate := rate * w.Sum().Item()
		w = w.AddScalar(float64(i))
		sum += w.Sum().Item() + rate
	}
	return sum + rate
}

//asyncgen:kernel
func Steps(out io.Writer, w *tensor.Tensor, n int) *tensor.Tensor {
	best, step, bad := 9.0, 1.0, 0
	for i := range n {
		loss := w.Sum().Item()
		if loss < best {
			best = loss
			step = step + 0.5
			fmt.Fprintln(out, i, best)
		} else {
			step = step / 2
			bad++
		}
		w = w.AddScalar(step)
	}
	fmt.Fprintln(out, bad)
	return w
}

//asyncgen:kernel
func Forms(out io.Writer, w *tensor.Tensor) *tensor.Tensor {
	calls := 0
	form := func(x *tensor.Tensor) (float64, *tensor.Tensor) {
		twice := func(y *tensor.Tensor) (float64, *tensor.Tensor) { return y.Max().Item(), y }
		calls++
		v, y := twice(x)
		twice(y)
		return v, y
	}
	form(w)
	for range 3 {
		v, y := form(w)
		fmt.Fprintln(out, v)
		form(y)
		w = y
	}
	fmt.Fprintln(out, calls)
	return w
}

//asyncgen:kernel
func Ends(out io.Writer, xs []*tensor.Tensor) (float64, error) {
	total := 0.0
	for i, x := range xs {
		sum := x.Sum().Item()
		if sum > 9 {
			return total, fmt.Errorf("row %d: large", i)
		}
		if _, err := fmt.Fprintln(out, i, sum); err != nil {
			return sum, fmt.Errorf("row %d: %w", i, err)
		}
		total += sum
		if sum < -9 {
			break
		}
	}
	return -total, nil
}

type model struct {
	w, v *tensor.Tensor
	all  []*tensor.Tensor
}

//asyncgen:kernel
func Fit(m *model, xs []*tensor.Tensor) (total float64) {
	for i, x := range xs {
		m.w = m.w.Add(x)
		m.v = m.v.Sub(m.w)
		m.all[i] = m.v.Neg()
		total += m.v.Sum().Item()
	}
	return total
}
`

// harmless are the damages after which a function does the same as before, and why.
var harmless = map[string]string{
	"value used before it is":        "the value is assigned to the blank variable",
	"literal misses statement":       "nobody sees the variable",
	"its variant does":               "nobody sees the variable",
	"its variant counts early":       "0 is added to what is there",
	"choice with more":               "a variable gets its own value",
	"given back too late":            "places are named before the first entry is queued, and again",
	"entry outside the loop":         "the entry does nothing",
	"result that is told twice":      "it is told again at once",
	"way out that is not fresh":      "a block around it means nothing",
	"way out of an iteration before": "what comes between does nothing",
}

// TestCheckNotices: the check of the output sees each kind of damage that
// the generator could do, in the text that it really writes.
func TestCheckNotices(t *testing.T) {
	turns.Take(t)
	dir := sametemp.Dir(t)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"p.go":   checkedSource,
		"go.sum": string(sum),
		"go.mod": fmt.Sprintf("module example.com/user\n\ngo 1.26\n\nrequire (\n\tgithub.com/asyncgen/asyncgen v0.0.0\n\tgolang.org/x/sys v0.47.0\n\tgonum.org/v1/gonum v0.17.0\n)\n\n"+
			"replace github.com/asyncgen/asyncgen => %s\n", root),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	result, err := Generate(context.Background(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	prog, err := load.Load(context.Background(), load.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	good := string(result.Files[0].Text)
	originals := make(map[string]*ast.FuncDecl)
	for _, file := range prog.Roots[0].Syntax {
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.Contains(good, "func "+fn.Name.Name+"Async(") {
				originals[fn.Name.Name+"Async"] = fn
			}
		}
	}
	whole := functionTexts(t, good)
	find := func(text string) []mismatch {
		pairs := maps.Clone(originals)
		if text != good { // a function that is as it was need not be executed again
			for name, body := range functionTexts(nil, text) {
				if body == whole[name] {
					delete(pairs, name)
				}
			}
			if len(pairs) == 0 { // of which one calls what is damaged
				pairs = originals
			}
		}
		return check(prog, prog.Roots[0], map[string][]byte{result.Files[0].Path: []byte(text)}, pairs, known(prog))
	}
	if found := find(good); len(found) > 0 {
		t.Fatalf("good output: %v\n%s", found, good)
	}
	for name, c := range map[string]struct{ old, new string }{
		"no flush after the loop":  {"\t}\n\tlater.Flush()\n", "\t}\n"},
		"no flush before a return": {"\t\t\tlater.Flush()\n\t\t\treturn", "\t\t\treturn"},
		"poll after the loop":      {"\t}\n\tlater.Flush()\n", "\t}\n\tlater.Poll()\n"},
		"not closed":               {"\tdefer later.Close()\n", ""},
		"no copy":                  {"\t\tstepAt := step\n", ""},
		"copy not used":            {"fmt.Fprintln(out, stepAt, l)", "fmt.Fprintln(out, step, l, stepAt-stepAt)"},
		"variable for its copy":    {"stepAt := step\n\t\tlater.Do(func() { fmt.Fprintln(out, stepAt, l) })", "later.Do(func() { fmt.Fprintln(out, step, l) })"},
		"statement gone":           {"\t\tw = w.Neg()\n", ""},
		"statements change places": {"step++\n\t\tw = w.Add(x.MulScalar(float64(step)))", "w = w.Add(x.MulScalar(float64(step)))\n\t\tstep++"},
		"read of another tensor":   {"later.Read(x.Mean())", "later.Read(w.Mean())"},
		"value used before it is":  {"\t\tw = w.Neg()\n", "\t\tw = w.Neg()\n\t\t_ = l\n"},
		"name means another":       {"rate = rateAt * ", "rate = rate * "},
		"declared too early":       {"\t\trateAt := rate\n\t\tsumAt := later.Read(w.Sum())\n\t\tvar rate float64\n", "\t\tvar rate float64\n\t\trateAt := rate\n\t\tsumAt := later.Read(w.Sum())\n"},
		"declared elsewhere":       {"\t\tvar rate float64\n", ""},
		"closure called too early": {"\t\t\tlater.Flush()\n\t\t\tif len(xs) > 1", "\t\t\tif len(xs) > 1"},
		"does not parse":           {"func TrainAsync(", "func TrainAsync(("},
		"function gone":            {"func TrainAsync(", "func Other("},
		"variant misses statement": {"\tfor _, x := range xs {\n\t\tn++\n", "\tfor _, x := range xs {\n"},
		"variant without a copy":   {"\t\tnAt := n\n", ""},
		"variant uses what goes on": {"\t\tnAt := n\n\t\tsumAt := later.Read(x.MulScalar(float64(n)).Sum())\n\t\tlater.Do(func() { total += float64(nAt) * ",
			"\t\tsumAt := later.Read(x.MulScalar(float64(n)).Sum())\n\t\tlater.Do(func() { total += float64(n) * "},
		"variant returns another result":   {"return total, n }", "return total, n + 1 }"},
		"variant of other results":         {"\tvar total float64\n", "\tvar total float32\n"},
		"half in the place of the other":   {"total, n := sumsAt()", "total, n := sumsLater(later, xs)()"},
		"literal misses statement":         {"\t\tw = w.Add(x)\n\t\tsteps++\n\t\tseen", "\t\tw = w.Add(x)\n\t\tseen"},
		"its variant does":                 {"steps++\n\t\tsumAt", "sumAt"},
		"its variant counts early":         {"\t\tsteps++\n\t\tsumAt", "\t\tlater.Do(func() { steps++ })\n\t\tsteps += 0\n\t\tsumAt"},
		"its value is used too early":      {"\t\tstepAt := stepLater(later, x)\n", "\t\tstepAt := stepLater(later, x)\n\t\tseen += 0\n"},
		"its variant reads something":      {"meanAt2 := later.Read(x.Mean())", "meanAt2 := later.Read(x.Sum())"},
		"form as written misses statement": {"\t\tcalls++\n\t\tv, y := twice(x)\n", "\t\tv, y := twice(x)\n"},
		"first variant does":               {"\t\tcalls++\n\t\ty, twiceAt := twiceLater(", "\t\ty, twiceAt := twiceLater("},
		"second variant does":              {"\t\tcalls++\n\t\ty, twiceAt3 := twiceLater3(", "\t\ty, twiceAt3 := twiceLater3("},
		"first variant within it does":     {"maxAt3 := later.Read(y.Max())", "maxAt3 := later.Read(y.Min())"},
		"second variant within it does":    {"maxAt4 := later.Read(y.Max())", "maxAt4 := later.Read(y.Min())"},
		"variant within the other form":    {"maxAt2 := later.Read(y.Max())", "maxAt2 := later.Read(y.Min())"},
		"another literal is called":        {"stepAt := stepLater(later, x)", "stepAt := meanLater(later)"},
		"choice on another condition":      {"loss.Lt(best)", "loss.Le(best)"},
		"choice without a variable":        {"&best, &step)", "&best)"},
		"choice with more":                 {"best = loss; step", "best = loss; best = best; step"},
		"choice with less":                 {"best = loss; step", "step"},
		"test of what has been chosen":     {"later.ReadF64(bestBefore)", "later.ReadF64(best)"},
		"copy that is not one":             {"bestBefore := best\n", "bestBefore := step\n"},
		"host work on the wrong side":      {"fmt.Fprintln(out, i, bestAt.Item())\n\t\t\t} else {\n\t\t\t\tbad++\n", "bad++\n\t\t\t} else {\n\t\t\t\tfmt.Fprintln(out, i, bestAt.Item())\n"},
		"host work before the choice":      {"\t\tbestBefore := best\n", "\t\tbestBefore := best\n\t\tlater.Do(func() {\n\t\t\tif lossAt.Item() < bestBefore.Item() {\n\t\t\t\tbad++\n\t\t\t}\n\t\t})\n"},
		"results change places":            {"next, movedAt := movedLater(later, w, x)", "w, movedAt := movedLater(later, w, x)"},
		"a result is dropped":              {"w, movedAt2 = movedLater(", "_, movedAt2 = movedLater("},
		"variant returns another tensor":   {"return next, func()", "return w, func()"},
		"variant returns another type":     {"w, x *tensor.Tensor) (*tensor.Tensor, func() float64)", "w, x *tensor.Tensor) (tensor.Tensor, func() float64)"},
		"second half of another call":      {"last = movedAt2()", "last = movedAt()"},
		"field that is not given back":     {"asyncrt.Var(&m.w), ", ""},
		"slice that is not given back":     {", asyncrt.Elems(m.all)", ""},
		"nothing is given back":            {"\tif m != nil {\n\t\tlater.Undo(asyncrt.Var(&m.w), asyncrt.Var(&m.v), asyncrt.Elems(m.all))\n\t}\n", ""},
		"given back too late":              {"\tif m != nil {\n\t\tlater.Undo(asyncrt.Var(&m.w), asyncrt.Var(&m.v), asyncrt.Elems(m.all))\n\t}\n\tfor i, x := range xs {\n", "\tfor i, x := range xs {\n\tif m != nil {\n\t\tlater.Undo(asyncrt.Var(&m.w), asyncrt.Var(&m.v), asyncrt.Elems(m.all))\n\t}\n"},
		"nil is followed":                  {"\tif m != nil {\n\t\tlater.Undo(asyncrt.Var(&m.w), asyncrt.Var(&m.v), asyncrt.Elems(m.all))\n\t}\n", "\tlater.Undo(asyncrt.Var(&m.w), asyncrt.Var(&m.v), asyncrt.Elems(m.all))\n"},
		"more than what is given back":     {"later.Undo(asyncrt.Var(&m.w), ", "later.Undo(asyncrt.Var(&m.w), asyncrt.Var(&xs[0]), "},
		"result of another return":         {"= total, fmt.Errorf(\"row %d: large\", i)", "= sum, fmt.Errorf(\"row %d: large\", i)"},
		"result that is not told":          {"valueAtEnd, errAtEnd = sum, ", "errAtEnd = "},
		"results change their places":      {"valueAtEnd, errAtEnd = sum, fmt.Errorf(\"row %d: %w\", i, err)", "errAtEnd, valueAtEnd = fmt.Errorf(\"row %d: %w\", i, err), total"},
		"result that is told twice":        {"valueAtEnd, errAtEnd = sum, ", "valueAtEnd = total\n\t\t\t\tvalueAtEnd, errAtEnd = sum, "},
		"other way out":                    {"exit = 2", "exit = 1"},
		"no way out":                       {"\tif exit == 1 {", "\tif exit == 3 {"},
		"way out of an iteration before":   {"\texit := 0\n", "\texit := 0\n\tfor range 2 {\n\t\t_ = exit\n\t}\n"},
		"way out that is not fresh":        {"\tlater.Flush()\n\tif exit == 1 {\n\t\treturn valueAtEnd, errAtEnd\n\t}\n", "\tlater.Flush()\n\t{\n\t\tif exit == 1 {\n\t\t\treturn valueAtEnd, errAtEnd\n\t\t}\n\t}\n"},
		"entry outside the loop":           {"\tlater.Flush()\n\treturn total, nil\n}", "\tlater.Flush()\n\tlater.Do(func() {})\n\treturn total, nil\n}"},
	} {
		damaged := strings.Replace(good, c.old, c.new, 1)
		if damaged == good {
			t.Errorf("%s: %q is not in\n%s", name, c.old, good)
			continue
		}
		found := find(damaged)
		if isHarmless := harmless[name] != ""; len(found) == 0 != isHarmless {
			t.Errorf("%s: found %v", name, found)
		}
		if len(found) > 0 && found[0].unknown {
			t.Errorf("%s: can't be checked: %v", name, found)
		}
	}
}

// functionTexts returns the functions of a file by name. Without t, a file that does not parse has none.
func functionTexts(t *testing.T, text string) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, 0)
	if err != nil {
		if t != nil {
			t.Fatal(err)
		}
		return nil
	}
	texts := make(map[string]string)
	for _, d := range file.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			texts[fn.Name.Name] = text[fn.Pos()-file.FileStart : fn.End()-file.FileStart]
		}
	}
	return texts
}
