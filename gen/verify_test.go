package gen

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen/internal/load"
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
func Own(w *tensor.Tensor) float64 {
	rate, sum := 2.0, 0.0
	for i := range 9 {
		rate := rate * w.Sum().Item()
		w = w.AddScalar(float64(i))
		sum += w.Sum().Item() + rate
	}
	return sum + rate
}
`

// TestChecksNotice: the two checks of the output see each kind of damage that
// the generator could do, in the text that it really writes.
func TestChecksNotice(t *testing.T) {
	dir := t.TempDir()
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
		"go.mod": fmt.Sprintf("module example.com/user\n\ngo 1.26\n\nrequire (\n\tgithub.com/asyncgen/asyncgen v0.0.0\n\tgonum.org/v1/gonum v0.17.0\n)\n\n"+
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
	check := func(text string) []mismatch {
		variants := map[string]string{"sumsLater": "sums"}
		found := undone([]byte(text), []byte(checkedSource), map[string]string{"TrainAsync": "Train", "LogAsync": "Log", "SumsAsync": "Sums", "OwnAsync": "Own", "ClosuresAsync": "Closures"}, variants, nil)
		found = append(found, undoneLift([]byte(text), []byte(checkedSource), "sumsLater", "sums", variants, nil)...)
		return append(found, recheck(prog.Roots[0], map[string][]byte{result.Files[0].Path: []byte(text)},
			map[string]bool{"TrainAsync": true, "LogAsync": true, "SumsAsync": true, "OwnAsync": true, "ClosuresAsync": true}, map[string]bool{"sumsLater": true}, known(prog))...)
	}
	if found := check(good); len(found) > 0 {
		t.Fatalf("good output: %v\n%s", found, good)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"no flush after the loop":  {"\t}\n\tlater.Flush()\n", "\t}\n", "not flushed after the loop"},
		"no flush before a return": {"\t\t\tlater.Flush()\n\t\t\treturn", "\t\t\treturn", "not flushed before a return"},
		"poll after the loop":      {"\t}\n\tlater.Flush()\n", "\t}\n\tlater.Poll()\n", "not flushed after the loop"},
		"not closed":               {"\tdefer later.Close()\n", "", "not closed"},
		"no copy":                  {"\t\tstepAt := step\n", "", "does not compile"},
		"copy not used":            {"fmt.Fprintln(out, stepAt, l)", "fmt.Fprintln(out, step, l, stepAt-stepAt)", "where the original has"},
		"variable for its copy":    {"stepAt := step\n\t\tlater.Do(func() { fmt.Fprintln(out, stepAt, l) })", "later.Do(func() { fmt.Fprintln(out, step, l) })", "changes step out of turn"},
		"statement gone":           {"\t\tw = w.Neg()\n", "", "where the original has"},
		"statements change places": {"step++\n\t\tw = w.Add(x.MulScalar(float64(step)))", "w = w.Add(x.MulScalar(float64(step)))\n\t\tstep++", "where the original has"},
		"read of another tensor":   {"later.Read(x.Mean())", "later.Read(w.Mean())", "where the original has"},
		"value used before it is":  {"\t\tw = w.Neg()\n", "\t\tw = w.Neg()\n\t\t_ = l\n", "uses l out of turn"},
		"name means another":       {"rate = rateAt * ", "rate = rate * ", "rate means something else"},
		"declared too early":       {"\t\trateAt := rate\n\t\tsumAt := later.Read(w.Sum())\n\t\tvar rate float64\n", "\t\tvar rate float64\n\t\trateAt := rate\n\t\tsumAt := later.Read(w.Sum())\n", "rate means something else"},
		"declared elsewhere":       {"\t\tvar rate float64\n", "", "where the original has"},
		"closure called too early": {"\t\t\tlater.Flush()\n\t\t\tif len(xs) > 1", "\t\t\tif len(xs) > 1", "changes total out of turn"},
		"does not parse":           {"func TrainAsync(", "func TrainAsync((", "expected"},
		"function gone":            {"func TrainAsync(", "func Other(", "missing"},
		"variant misses statement": {"\tfor _, x := range xs {\n\t\tn++\n", "\tfor _, x := range xs {\n", "sumsLater it has"},
		"variant without a copy":   {"\t\tnAt := n\n", "", "does not compile"},
		"variant uses what goes on": {"\t\tnAt := n\n\t\tsumAt := later.Read(x.MulScalar(float64(n)).Sum())\n\t\tlater.Do(func() { total += float64(nAt) * ",
			"\t\tsumAt := later.Read(x.MulScalar(float64(n)).Sum())\n\t\tlater.Do(func() { total += float64(n) * ", "changes n out of turn"},
		"variant returns another result": {"return total, n }", "return total, n + 1 }", "where the original has"},
		"variant of other results":       {"\tvar total float64\n", "\tvar total float32\n", "sumsLater it has"},
		"half in the place of the other": {"total, n := sumsAt()", "total, n := sumsLater(later, xs)()", "where the original has"},
		"entry outside the loop":         {"\tlater.Flush()\n\treturn total, nil\n}", "\tlater.Flush()\n\tlater.Do(func() {})\n\treturn total, nil\n}", "outside all loops"},
	} {
		damaged := strings.Replace(good, c.old, c.new, 1)
		if damaged == good {
			t.Errorf("%s: %q is not in\n%s", name, c.old, good)
			continue
		}
		found := check(damaged)
		if !strings.Contains(fmt.Sprint(found), c.want) {
			t.Errorf("%s: found %v, want %q", name, found, c.want)
		}
	}
}
