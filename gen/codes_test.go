package gen_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/gen/internal/gentest"
	"github.com/asyncgen/asyncgen/internal/turns"
)

// imports are the packages that examples use, by name.
var imports = map[string]string{
	"asyncrt": "github.com/asyncgen/asyncgen/runtime", "bufio": "bufio", "cmp": "cmp", "image": "image", "io": "io", "iter": "iter", "kernel": "github.com/asyncgen/asyncgen/device/kernel", "png": "image/png",
	"context": "context", "fmt": "fmt", "log": "log", "math": "math", "rand": "math/rand/v2", "slices": "slices", "sync": "sync", "time": "time",
	"nn": "github.com/asyncgen/asyncgen/runtime/nn", "optim": "github.com/asyncgen/asyncgen/runtime/optim", "tensor": "github.com/asyncgen/asyncgen/runtime/tensor",
}

// exampleFile makes a file of an example; the function F is marked.
func exampleFile(code string) []byte {
	var b strings.Builder
	b.WriteString("package p\n\nimport (\n")
	for name, path := range imports {
		if regexp.MustCompile(`\b` + name + `\.`).MatchString(code) {
			fmt.Fprintf(&b, "\t%s %q\n", name, path)
		}
	}
	b.WriteString(")\n")
	if !strings.Contains(code, "//asyncgen:kernel") {
		code = strings.Replace(code, "\nfunc F(", "\n//asyncgen:kernel\nfunc F(", 1)
	}
	b.WriteString(code)
	return []byte(b.String())
}

// hinted are functions that are refused, what the remark says to write instead, and the function with that.
var hinted = []struct{ code, hint, wrong, right string }{
	{"AG206", `write mine := sums["all"] before the loop, mine in its place in the loop, and sums["all"] = mine after it`, `
func F(sums map[string]*tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		sums["all"] = sums["all"].Add(x)
		total += sums["all"].Sum().Item()
	}
	return total
}`, `
func F(sums map[string]*tensor.Tensor, xs []*tensor.Tensor) (total float64) {
	mine := sums["all"]
	for _, x := range xs {
		mine = mine.Add(x)
		total += mine.Sum().Item()
	}
	sums["all"] = mine
	return total
}`},
	{"AG206", "let the function begin with ids = slices.Clone(ids)", `
func F(ids []int64) []int64 {
	for range 9 {
		window := ids[max(0, len(ids)-4):]
		scores := tensor.From(window, len(window))
		next := scores.Sum().ItemInt()
		ids = append(ids, next)
	}
	return ids
}`, `
func F(ids []int64) []int64 {
	ids = slices.Clone(ids)
	for range 9 {
		window := ids[max(0, len(ids)-4):]
		scores := tensor.From(window, len(window))
		next := scores.Sum().ItemInt()
		ids = append(ids, next)
	}
	return ids
}`},
	{"AG206", "write var mine []*tensor.Tensor before the loop, append to mine in the loop, and p.frames = append(p.frames, mine...) after it", `
type plate struct {
	u      *tensor.Tensor
	frames []*tensor.Tensor
}

func F(p *plate, steps int) (energies []float64) {
	for range steps {
		p.frames = append(p.frames, p.u)
		p.u = p.u.AddScalar(1)
		e := p.u.Sum().Item()
		if e > 9 {
			panic(fmt.Sprint("unstable", p.u))
		}
		energies = append(energies, e)
	}
	return energies
}`, ""},
	{"AG205", "call it once, before the loop, or for a variable of the package", `
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		half := tensor.Fuse("half", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Tanh(x[0]) })
		fmt.Println(half.Of(x))
	}
}`, `
func F(xs []*tensor.Tensor) {
	half := tensor.Fuse("half", 1, func(x ...*kernel.Expr) *kernel.Expr { return kernel.Tanh(x[0]) })
	for _, x := range xs {
		fmt.Println(half.Of(x))
	}
}`},
	{"AG205", "lock around the loop, or keep what it guards in a variable of the function", `
func F(mu *sync.Mutex, sums map[int]float64, xs []*tensor.Tensor) {
	for i, x := range xs {
		v := x.Sum().Item()
		mu.Lock()
		sums[i] = v
		mu.Unlock()
	}
}`, `
func F(mu *sync.Mutex, sums map[int]float64, xs []*tensor.Tensor) {
	mu.Lock()
	for i, x := range xs {
		v := x.Sum().Item()
		sums[i] = v
	}
	mu.Unlock()
}`},
	{"AG207", "print the tensors themselves", `
type terms struct{ a, b *tensor.Tensor }

func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		t := terms{x.Sum(), x.Mean()}
		fmt.Println(t)
	}
}`, `
type terms struct{ a, b *tensor.Tensor }

func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		t := terms{x.Sum(), x.Mean()}
		fmt.Println(t.a, t.b)
	}
}`},
	{"AG207", "compare numbers: x.Item() < limit", `
func F(xs []*tensor.Tensor) int {
	for i, x := range xs {
		if x.Sum().F64().Lt(tensor.Const(1)).Item() {
			return i
		}
	}
	return -1
}`, `
func F(xs []*tensor.Tensor) int {
	for i, x := range xs {
		if x.Sum().F64().Item() < 1 {
			return i
		}
	}
	return -1
}`},
	{"AG201", "if its field Guard is set, a Step changes nothing where a gradient is NaN", `
func F(opt *optim.Optimizer, losses []*tensor.Tensor) (skipped int) {
	for _, loss := range losses {
		if math.IsNaN(loss.Item()) {
			skipped++
			continue
		}
		opt.Step()
	}
	return skipped
}`, `
func F(opt *optim.Optimizer, losses []*tensor.Tensor) (skipped int) {
	opt.Guard = true
	for _, loss := range losses {
		if math.IsNaN(loss.Item()) {
			skipped++
		}
		opt.Step()
	}
	return skipped
}`},
	{"AG203", "if its field Guard is set, a Step changes nothing where a gradient is NaN", `
func F(opt *optim.Optimizer, losses []*tensor.Tensor) {
	for i, loss := range losses {
		if v := loss.Item(); !math.IsNaN(v) && !math.IsInf(v, 0) {
			opt.Step()
		}
		fmt.Println(i)
	}
}`, ""},
	{"AG201", "hand v on itself: tensors never change", `
func F(to []*nn.Param, vs []*tensor.Tensor) {
	for i, v := range vs {
		to[i].Set(tensor.From(v.Float32s(), v.Shape()...))
		fmt.Println(v)
	}
}`, `
func F(to []*nn.Param, vs []*tensor.Tensor) {
	for i, v := range vs {
		to[i].Set(v)
		fmt.Println(v)
	}
}`},
	{"AG203", "it is the same in every iteration: read it once, before the loop", `
func F(w, adv *tensor.Tensor, xs []*tensor.Tensor) {
	for _, x := range xs {
		if adv.Std(0).Item() > 1 {
			w = w.MatMul(x)
		}
		fmt.Println(w)
	}
}`, `
func F(w, adv *tensor.Tensor, xs []*tensor.Tensor) {
	spread := adv.Std(0).Item()
	for _, x := range xs {
		if spread > 1 {
			w = w.MatMul(x)
		}
		fmt.Println(w)
	}
}`},
	{"AG204", "write //asyncgen:kernel pure=loss above mean if loss only computes (or output=loss, device=loss, ...)", `
func mean(loss func(x float64) float64, x float64) float64 { return loss(x) / 2 }

func F(loss func(x float64) float64, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += mean(loss, x.Sum().Item())
	}
	return total
}`, `
//asyncgen:kernel pure=loss
func mean(loss func(x float64) float64, x float64) float64 { return loss(x) / 2 }

//asyncgen:kernel
func F(loss func(x float64) float64, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += mean(loss, x.Sum().Item())
	}
	return total
}`},
	{"AG204", "write \"effects\": {\"image/png.Encode\": \"output\"}, or what else it does, in asyncgen.json beside go.mod", `
func F(w io.Writer, img image.Image, xs []*tensor.Tensor) {
	for _, x := range xs {
		fmt.Println(x)
		png.Encode(w, img)
	}
}`, ""},
	{"AG205", "this can't be helped: a loop that takes its work from outside waits for it anyway", `
func F(xs chan *tensor.Tensor) (total float64) {
	for x := range xs {
		total += x.Sum().Item()
	}
	return total
}`, ""},
	{"AG205", "this can't be helped: a loop that takes its work from outside waits for it anyway", `
func F(in *bufio.Scanner, w *tensor.Tensor) {
	for in.Scan() {
		fmt.Println(in.Text(), w.Sum().Item())
	}
}`, ""},
	{"AG205", "write output=out in the directive of F if others only receive from out; or send the tensor, and let the receiver read it", `
func F(xs []*tensor.Tensor, out chan float64) {
	for _, x := range xs {
		out <- x.Sum().Item()
	}
}`, `
//asyncgen:kernel output=out
func F(xs []*tensor.Tensor, out chan float64) {
	for _, x := range xs {
		out <- x.Sum().Item()
	}
}`},
	{"AG207", "this can't be helped: its size depends on values; work with the mask where that does", `
func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		fmt.Println(x.GtScalar(0).NonZero().Shape())
	}
}`, ""},
	{"AG207", "call Item, if the wait need not end with the context", `
func F(ctx context.Context, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		v, _ := x.Sum().ItemContext(ctx)
		total += v
	}
	return total
}`, `
func F(ctx context.Context, xs []*tensor.Tensor) (total float64) {
	for _, x := range xs {
		total += x.Sum().Item()
	}
	return total
}`},
	{"AG208", "this can't be helped while fit ends by a value", `
func fit(x *tensor.Tensor) *tensor.Tensor {
	for {
		x = x.MatMul(x)
		if x.Sum().Item() < 1 {
			return x
		}
	}
}

func F(xs []*tensor.Tensor) {
	for _, x := range xs {
		y := fit(x)
		fmt.Println(y)
	}
}`, ""},
	{"AG208", "read the values into a slice first, and let the literal look at those", `
func F(xs []*tensor.Tensor) {
	slices.SortFunc(xs, func(a, b *tensor.Tensor) int { return cmp.Compare(a.Item(), b.Item()) })
}`, ""},
	{"AG208", "yield the tensor, and read it where the iterator is ranged over", `
func F(xs []*tensor.Tensor) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for _, x := range xs {
			if !yield(x.Sum().Item()) {
				return
			}
		}
	}
}`, ""},
	{"AG222", "round it everywhere: float64(keep * dev), float64(k * dev)", `
func F(w *tensor.Tensor, xs []*tensor.Tensor, k, keep float64) *tensor.Tensor {
	for _, x := range xs {
		dev := x.Sum().Item()
		w = w.SubScalar(1 + k*dev + keep*dev)
	}
	return w
}`, `
func F(w *tensor.Tensor, xs []*tensor.Tensor, k, keep float64) *tensor.Tensor {
	for _, x := range xs {
		dev := x.Sum().Item()
		w = w.SubScalar(1 + float64(k*dev) + float64(keep*dev))
	}
	return w
}`},
	{"AG206", "make the generator in the function, with r := rand.New(rand.NewPCG(1, 2)), or draw before the loop", `
func F(r *rand.Rand, xs []*tensor.Tensor) (total float64) {
	for range 9 {
		total += xs[r.IntN(len(xs))].Sum().Item()
	}
	return total
}`, `
func F(xs []*tensor.Tensor) (total float64) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 9 {
		total += xs[r.IntN(len(xs))].Sum().Item()
	}
	return total
}`},
	{"AG212", "write grad := p.Grad() before the statement that looks at a value, and grad in it", `
func F(p *nn.Param, xs []*tensor.Tensor) (steepest *tensor.Tensor) {
	most := 0.0
	for _, x := range xs {
		p.ZeroGrad()
		loss := x.Sub(p.Value()).Square().Sum()
		loss.Backward()
		if l := loss.Item(); l > most {
			most, steepest = l, p.Grad()
		}
	}
	return steepest
}`, `
func F(p *nn.Param, xs []*tensor.Tensor) (steepest *tensor.Tensor) {
	most := 0.0
	for _, x := range xs {
		p.ZeroGrad()
		loss := x.Sub(p.Value()).Square().Sum()
		loss.Backward()
		grad := p.Grad()
		if l := loss.Item(); l > most {
			most, steepest = l, grad
		}
	}
	return steepest
}`},
	{"AG230", "let the loop range over sizes, or test the value in few iterations, as with if i%8 == 7 && ...", `
func F(x *tensor.Tensor, sizes []int) int {
	for i := 0; ; i++ {
		x = x.Add(tensor.Ones(sizes[i]).Sum())
		if x.Norm().Item() > 100 {
			return i
		}
	}
}`, ""},
	{"AG230", "call tensor.Ones before the loop, for all iterations, or test", `
func F(x *tensor.Tensor, sizes []int) int {
	for i, size := range sizes {
		x = x.Add(tensor.Ones(size).Sum())
		if x.Norm().Item() > 100 {
			return i
		}
	}
	return -1
}`, `
func F(x *tensor.Tensor, sizes []int) int {
	ones := make([]*tensor.Tensor, len(sizes))
	for i, size := range sizes {
		ones[i] = tensor.Ones(size).Sum()
	}
	for i := range sizes {
		x = x.Add(ones[i])
		if x.Norm().Item() > 100 {
			return i
		}
	}
	return -1
}`},
	{"AG215", "both may be the same memory: write mine := d.Max before the loop, and mine in its head", `
type lengths struct{ Max int }

func F(d *lengths, all []*lengths, x *tensor.Tensor) {
	for i := 0; i < d.Max; i++ {
		x = x.AddScalar(1)
		all[i].Max = int(x.Sum().Item())
	}
}`, `
type lengths struct{ Max int }

func F(d *lengths, all []*lengths, x *tensor.Tensor) {
	mine := d.Max
	for i := 0; i < mine; i++ {
		x = x.AddScalar(1)
		all[i].Max = int(x.Sum().Item())
	}
}`},
	{"AG215", "before the loop, mine := slices.Clone(keys), and range over mine", `
func F(groups map[float64][]float64, keys []float64, x *tensor.Tensor) {
	for _, k := range keys {
		x = x.AddScalar(1)
		groups[k] = append(groups[k], x.Sum().Item())
	}
}`, `
func F(groups map[float64][]float64, keys []float64, x *tensor.Tensor) {
	mine := slices.Clone(keys)
	for _, k := range mine {
		x = x.AddScalar(1)
		groups[k] = append(groups[k], x.Sum().Item())
	}
}`},
}

// TestExplain: every code in the source has an explanation; the first example
// gets the code and the second does not, or is what is generated.
func TestExplain(t *testing.T) {
	turns.Take(t)
	source, err := os.ReadFile("internal/plan/remark.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, m := range regexp.MustCompile(`Code = "(AG\d+)"`).FindAllSubmatch(source, -1) {
		codes = append(codes, string(m[1]))
	}
	if len(codes) < 20 || !slices.IsSorted(codes) {
		t.Fatalf("codes of remark.go: %v", codes)
	}
	dir := gentest.NewModule(t)
	for _, code := range codes {
		e, ok := gen.Explain(code)
		if !ok {
			t.Fatalf("%s has no explanation", code)
		}
		if isRefusal := code >= "AG200" && code < "AG300" || code >= "AG900"; isRefusal != (e.Code.Class() != "") {
			t.Errorf("%s has the class %q", code, e.Code.Class())
		}
		if page := e.String(); !strings.HasPrefix(page, code+": "+e.Title+"\n\n") || strings.Contains(page, "\n\n\n") {
			t.Errorf("page of %s:\n%s", code, page)
		}
		if e.Wrong == "" {
			continue
		}
		gentest.Write(t, filepath.Join(dir, code, "wrong", "p.go"), exampleFile(e.Wrong))
		if code >= "AG200" {
			gentest.Write(t, filepath.Join(dir, code, "right", "p.go"), exampleFile(e.Right))
		}
	}
	for i, h := range hinted {
		gentest.Write(t, filepath.Join(dir, fmt.Sprintf("hint%d", i), "wrong", "p.go"), exampleFile(h.wrong))
		if h.right != "" {
			gentest.Write(t, filepath.Join(dir, fmt.Sprintf("hint%d", i), "right", "p.go"), exampleFile(h.right))
		}
	}
	if _, ok := gen.Explain("AG000"); ok {
		t.Error("AG000 is explained")
	}
	result, err := gen.Generate(context.Background(), gen.Config{Dir: dir, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string][]string)
	for _, r := range result.Remarks {
		folder := filepath.Dir(r.Pos.Filename)
		got[folder] = append(got[folder], string(r.Code))
	}
	for i, h := range hinted {
		wrong, right := filepath.Join(dir, fmt.Sprintf("hint%d", i), "wrong"), filepath.Join(dir, fmt.Sprintf("hint%d", i), "right")
		if !slices.ContainsFunc(result.Remarks, func(r gen.Remark) bool {
			return filepath.Dir(r.Pos.Filename) == wrong && string(r.Code) == h.code && strings.Contains(r.Hint, h.hint)
		}) {
			t.Errorf("no %s with the hint %q, but %v", h.code, h.hint, got[wrong])
		}
		if h.right != "" && (!slices.Contains(got[right], "AG116") || slices.Contains(got[right], h.code)) {
			t.Errorf("with the hint of %s, %q, it gets %v", h.code, h.hint, got[right])
		}
	}
	for _, code := range codes {
		e, _ := gen.Explain(code)
		wrong, right := filepath.Join(dir, code, "wrong"), filepath.Join(dir, code, "right")
		if e.Wrong != "" && !slices.Contains(got[wrong], code) {
			t.Errorf("the first example of %s gets %v", code, got[wrong])
		}
		switch {
		case e.Wrong == "":
		case code >= "AG200":
			if !slices.Contains(got[right], "AG116") {
				t.Errorf("the second example of %s is not rewritten: %v", code, got[right])
			}
		default:
			i := slices.IndexFunc(result.Files, func(f gen.File) bool { return filepath.Dir(f.Path) == wrong })
			if i < 0 || slices.ContainsFunc(strings.SplitAfter(strings.TrimSpace(e.Right), "\n}\n"), func(decl string) bool {
				return !strings.Contains(string(result.Files[i].Text), strings.TrimSpace(decl))
			}) {
				t.Errorf("the second example of %s is not what is generated:\n%s", code, result.Files[i].Text)
			}
		}
	}
}

// TestCodesPage holds the page of the docs against the table that it is made of.
func TestCodesPage(t *testing.T) {
	got, err := os.ReadFile(filepath.Join("..", "docs", "generator", "codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != gen.CodesPage() {
		t.Error("docs/generator/codes.md is not what go generate . writes")
	}
}
