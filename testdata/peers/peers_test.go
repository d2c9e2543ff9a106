package main

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/device"
)

// Every peer in Go runs what it claims to, in sizes of their own.
func TestGoPeers(t *testing.T) {
	run := map[string]int{}
	for _, w := range workloads {
		for i := range w.Sizes {
			w.Sizes = append([]int(nil), w.Sizes...)
			w.Sizes[i] = min(w.Sizes[i], 100)
		}
		for name, peer := range map[string]func(question) func(){ours: oursFor, "gonum": gonumFor, "GoMLX": gomlxFor} {
			if (w.Work == "step" || w.Work == "warmup") && (name != ours || testing.Short()) {
				continue // seconds
			}
			if f := peer(question{workload: w}); f != nil {
				f()
				run[name]++
			}
		}
	}
	if run[ours] < len(workloads)-2 || run["gonum"] == 0 || run["GoMLX"] == 0 {
		t.Errorf("peers ran %v of %d workloads", run, len(workloads))
	}
}

// The chain is the one that the other peers compute.
func TestChain(t *testing.T) {
	const n = 1000
	x := device.Slice[float32](normal(n), 0, n) // all operands of a command are drawn alike
	c := oneCommandFor(t, n)
	for i, got := range c {
		want := max(float64(x[i])*float64(x[i])+float64(x[i]), 0) - float64(x[i])
		want *= float64(x[i])
		if math.Abs(float64(got)-want) > 1e-5*(1+math.Abs(want)) {
			t.Fatalf("element %d is %v, want %v", i, got, want)
		}
	}
}

func oneCommandFor(t *testing.T, n int) []float32 {
	t.Helper()
	out := buffer(n)
	c := chainCommand(n)
	c.Buf[0] = out
	command(c)()
	return device.Slice[float32](out, 0, n)
}

func fake() *results {
	r := &results{options: options{threads: []int{1, 2}}, machine: "a machine & its date", peers: []string{ours, "NumPy"}, versions: []string{"a", "b"}}
	r.miss("gonum", errors.New("it is <not> here"))
	for _, n := range r.threads {
		r.rows = append(r.rows,
			row{workload{Name: "matmul", Work: "matmul", Sizes: []int{8, 8, 8}, Flops: 1024}, n, map[string]answer{ours: {Seconds: 1e-6}, "NumPy": {Seconds: 2.5e-6}}, answer{Seconds: 2.048e9}},
			row{workload{Name: "tiny", Work: "tiny"}, n, map[string]answer{ours: {Seconds: 0.0999996}, "NumPy": {Missing: "x"}}, answer{}})
	}
	return r
}

func TestMarkdown(t *testing.T) {
	got := fake().markdown()
	for _, want := range []string{
		"| matmul | 1 | **1.00 µs** | 2.50 µs, 2.50× | 1 GFLOP/s | 50 % of FMA peak |\n",
		"| tiny | 2 | **100 ms** |  |  |  |\n",
		"- left out: gonum: it is <not> here\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestChartIsXML(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(fake().chart()))
	dots := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			dots++
		}
	}
	if want := 2 + 3; dots != want { // of the key and of the rows with the most threads
		t.Errorf("%d dots, want %d", dots, want)
	}
}

func TestLimitsAreMeasured(t *testing.T) {
	if peakFlops(0.001) == 0 && flopsOfRound > 0 {
		t.Error("no peak")
	}
	for _, n := range []int{1, 1000, 100000} {
		if triadBytes(question{workload{Work: "triad", Sizes: []int{n}, Bytes: float64(12 * n)}, 0.002}) == 0 {
			t.Errorf("no bandwidth for %d numbers", n)
		}
	}
	x, y, z := aligned(64), aligned(64), aligned(64)
	for i := range y {
		y[i], z[i] = float32(i), 2
	}
	for _, f := range []func(x, y, z *float32, n int){triad, triadPast} {
		clear(x)
		f(&x[0], &y[0], &z[0], 48)
		for i, v := range x {
			if want := float32(i+6) * map[bool]float32{true: 1}[i < 48]; v != want {
				t.Errorf("element %d is %v, want %v", i, v, want)
			}
		}
	}
}

// shown are the rows of README's chart.
const shown = `^(matmul (64|1024|2048) x (64|1024|2048) x (64|1024|2048)|step of a perceptron, batch 1024|exp 1M|add 1M|softmax of rows, 1024 x 1024|conv 8x64x56x56 to 64 by 3x3|conv 8x64x56x56 to 256 by 1x1|max pool 8x64x112x112 by 3x3|embedding, 8192 of 32000 x 256|gradient of an embedding, 8192 of 32000 x 256)$`

// README's chart and its rows are those of the table.
func TestReadme(t *testing.T) {
	table := readFile(t, "RESULTS.md")
	r, err := readMarkdown(table, regexp.MustCompile(shown))
	if err != nil {
		t.Fatal(err)
	}
	if readFile(t, "../../docs/speed.svg") != r.chart() {
		t.Errorf("docs/speed.svg is of another table: go run . -from RESULTS.md -only '%s' -svg ../../docs/speed.svg", shown)
	}
	_, readme, _ := strings.Cut(readFile(t, "../../README.md"), "\n## Speed\n")
	readme, _, _ = strings.Cut(readme, "\n## ")
	rows := 0
	for line := range strings.Lines(readme) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "float32") {
			continue
		}
		rows++
		i := slices.IndexFunc(r.rows, func(row row) bool { return row.threads == 2 && row.Name == strings.TrimSpace(cells[1]) })
		if i < 0 {
			t.Errorf("README has a row that the chart lacks: %s", line)
			continue
		}
		for k, p := range []string{ours, "PyTorch", "NumPy"} {
			want := ""
			if a := r.rows[i].answers[p]; a.Seconds > 0 {
				want = duration(a.Seconds)
			}
			if got := strings.TrimSpace(cells[2+k]); got != want {
				t.Errorf("README says that %s takes %s for %s, and the table %s", p, got, r.rows[i].Name, want)
			}
		}
	}
	if rows != 5 {
		t.Errorf("%d rows in README", rows)
	}
}

// What is read of a table is what was written.
func TestReadMarkdown(t *testing.T) {
	want := fake()
	got, err := readMarkdown(want.markdown(), regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got.chart(), "<circle") || got.chart() != want.chart() {
		t.Errorf("the chart of the table is\n%s\nand of the results\n%s", got.chart(), want.chart())
	}
	if _, err := readMarkdown("| a | b |\n", regexp.MustCompile("")); err == nil {
		t.Error("no table is no error")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A step makes the loss of each model smaller.
func TestModelsLearn(t *testing.T) {
	for name, m := range models {
		step, captured := m.trainer(2, false), m.trainer(2, true)
		first := step().Item()
		captured()
		for range 3 {
			step()
			captured()
		}
		last := step().Item()
		if !(last < first) {
			t.Errorf("%s: the loss is %v, and %v after four steps", name, first, last)
		}
		if same := captured().Item(); same != last {
			t.Errorf("%s: the loss is %v after four steps that are captured, want %v", name, same, last)
		}
	}
}

// What train measures is there, and steps have models.
func TestTrain(t *testing.T) {
	for _, w := range steps {
		if models[w.Op].net == nil {
			t.Errorf("%s: no model is called %s", w.Name, w.Op)
		}
	}
	current = nil
	a := train(question{workload: workload{Op: "mlp", Sizes: []int{1024}}}, false)
	if err := sameLosses(a.Losses, a.Losses); err != nil {
		t.Error(err)
	}
	weights := int64(4 * (784*512 + 512*512 + 512*10))
	if a.Seconds <= 0 || runtime.GOOS == "linux" && (a.Bytes < weights || a.Bytes > 100*weights) { // some may reuse what other tests have left
		t.Errorf("a step takes %v s and %d bytes", a.Seconds, a.Bytes)
	}
	for _, wrong := range [][]float64{nil, a.Losses[1:], {1, 1, 1, 1, 1}, append(slices.Clone(a.Losses[:4]), math.NaN())} {
		if sameLosses(a.Losses, wrong) == nil {
			t.Errorf("losses %v count as %v", wrong, a.Losses)
		}
	}
}

// Each table replaces itself and keeps the other one.
func TestReplacePart(t *testing.T) {
	r := fake()
	both := replacePart(replacePart(r.markdown(), true, r.markdownSteps()), true, r.markdownSteps())
	if want := r.markdown() + "\n" + r.markdownSteps(); both != want {
		t.Errorf("the file is\n%s\nwant\n%s", both, want)
	}
	if again := replacePart(both, false, r.markdown()); again != both {
		t.Errorf("the file is\n%s\nwant\n%s", again, both)
	}
	got, err := readMarkdown(both, regexp.MustCompile(""))
	if err != nil || got.chart() != r.chart() {
		t.Errorf("the chart of both tables is another one: %v", err)
	}
}
