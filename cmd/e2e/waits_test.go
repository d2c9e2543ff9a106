package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/asyncgen/asyncgen/analysis"
	"github.com/asyncgen/asyncgen/device/report"
)

// noFindings are the lines of the example programs that wait in a loop without a finding, by program and text, with the
// reason why there is none.
var noFindings = map[string]string{
	"barriers: return asyncrt.WaitAll() // so that the next barrier starts with nothing queued": "once for each of a few barriers, and a clock is read after it",

	"increment: y.Wait() //asyncgen:ignore AT009 this wait is what the program measures: it has to stay in the loop": "the directive there",
	"increment: asyncrt.WaitAll()":                                                   "each ends an experiment, and a clock is read after it",
	"increment: alone := median(500, func() { x.AddScalar(1).Wait() })":              "median reads a clock before and after it",
	`increment: fmt.Printf("%d times y = x + 1, waiting each time: %v\n", r.n, r.y)`: "the loop enqueues nothing; the wait is for the copy of what has long been computed",
	`increment: fmt.Printf("%d times y = x + 1, waiting once: %v\n", r.n, r.z)`:      "the loop enqueues nothing; the wait is for the copy of what has long been computed",

	"mlp: l2Loss(net.Forward(x), y).Wait() // the first use finds the input width and makes the weights": "once for each of three trainings, and a clock is read after it",
	"mlp: for i, v := range tensor.Stack(0, pending...).Float32s() {":                                    "once for each of two trainings, after its loop",
	"mnist: err = files.Save(weights, net)":                                                              "once for each epoch that is the best so far, after its loops",
	"mnist: ":                                                                                            "no line of the program: a goroutine that writes checkpoints",
	"parallel: asyncrt.WaitAll()":                                                                        "before and after what is timed and before what is read, once for each of three trainings",

	"server: y, err := m.model.Forward(tensor.FromOn(request, question, 1, features)).ItemContext(r.Context())": "once for each request, which has its own goroutine and wants its answer",
	"server: layers = append(layers, layer{p[0].Value().Float32s(), p[1].Value().Float32s()})":                  "the loop enqueues nothing; it copies the weights of a finished model",
	"solve: rs := r.Dot(r).Item()":                                    "once for each system, before a loop that waits in each of its steps, which is what is reported",
	"pagerank: scores := rank.Float64s()":                             "once for each of five dampings, after a loop that waits in each of its steps",
	"solve: worst = max(worst, s.a.MatMul(x).Sub(s.b).Norm().Item())": "once for each system, after that loop",

	"server: learnt := func(r *release) float64 { return r.model.Forward(x).Sub(x.MatMul(s.truth)).Norm().Item() }": "twice, in no loop",
}

// testWaits holds the waits that the report of a run counts in loops against the findings about its
// program: there is one on the line, or one that leads to it, or the line is in noFindings. A wait
// is in a loop if its line is, or if there were several.
func testWaits(t *testing.T, bin string, dirs []string) {
	temp := t.TempDir()
	args := []string{"vet", "-json", "-severity=info"}
	for _, dir := range dirs {
		args = append(args, "./"+filepath.ToSlash(dir))
	}
	cmd := exec.Command(buildTool(t), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // it fails if there are findings
	var findings []analysis.Finding
	if err := json.Unmarshal(out, &findings); err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, &stderr)
	}

	found, present := 0, make(map[string]bool)
	for _, dir := range dirs {
		name := filepath.Base(dir)
		abs, err := filepath.Abs(dir)
		if err != nil {
			t.Fatal(err)
		}
		own := slices.DeleteFunc(slices.Clone(findings), func(f analysis.Finding) bool {
			file, _, _ := analysis.SplitPosn(f.Posn)
			return filepath.Dir(file) != abs
		})
		lines := sourceLines(t, abs)
		for _, text := range lines {
			present[name+": "+text] = true
		}
		measured := filepath.Join(temp, name)
		runProgram(t, []string{bin, name, "-small"}, "ASYNCGEN_DEVICE=sim:0", "ASYNCGEN_REPORT="+measured)
		loops := loopLines(t, abs)
		for _, one := range records(t, measured) {
			rep, err := report.ReadFile(one)
			if err != nil {
				t.Fatal(err)
			}
			r := rep.Records[0]
			where := fmt.Sprintf("%s:%d", r.File, r.Line)
			if r.Waits == 0 || r.Waits == 1 && !loops[where] {
				continue
			}
			rest, err := analysis.Rank(t.Context(), analysis.Config{Dir: abs}, rep, own)
			if err != nil {
				t.Fatal(err)
			}
			reason := noFindings[name+": "+lines[where]]
			switch {
			case rest.Waits == 0:
				found++
			case reason == "":
				t.Errorf("%s waits %d times (%s) without a finding, and noFindings gives no reason:\n\t%s", where, r.Waits, r.Op, lines[where])
			default:
				t.Logf("%s waits %d times (%s) without a finding: %s", where, r.Waits, r.Op, reason)
			}
		}
	}
	for key := range noFindings {
		if !present[key] {
			t.Errorf("noFindings: there is no such line any more: %s", key)
		}
	}
	if found == 0 {
		t.Error("no wait in a loop has a finding")
	}
}

// records splits the report of a run into one for each line of the program, and returns their names.
func records(t *testing.T, file string) (files []string) {
	t.Helper()
	header, rest, _ := strings.Cut(readText(t, file), "\n")
	for line := range strings.Lines(rest) {
		if strings.Contains(line, `"total":true`) {
			continue
		}
		one := fmt.Sprintf("%s.%d", file, len(files))
		if err := os.WriteFile(one, []byte(header+"\n"+line), 0o666); err != nil {
			t.Fatal(err)
		}
		files = append(files, one)
	}
	return files
}

// sourceLines are the lines of the Go files in a folder, by "file:line", without the space around them.
func sourceLines(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]string)
	for _, file := range files {
		for i, text := range strings.Split(readText(t, file), "\n") {
			lines[fmt.Sprintf("%s:%d", file, i+1)] = strings.TrimSpace(text)
		}
	}
	return lines
}

// loopLines are the lines of the Go files in a folder that are in the body of a loop.
func loopLines(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string]bool)
	fset := token.NewFileSet()
	for _, file := range files {
		f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var body *ast.BlockStmt
			switch n := n.(type) {
			case *ast.ForStmt:
				body = n.Body
			case *ast.RangeStmt:
				body = n.Body
			default:
				return true
			}
			for line := fset.Position(body.Lbrace).Line; line <= fset.Position(body.Rbrace).Line; line++ {
				lines[fmt.Sprintf("%s:%d", file, line)] = true
			}
			return true
		})
	}
	return lines
}
