package gentest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/gen"
)

var everyWindow = flag.Bool("every-window", false, "run each input of a kernel with every window on the CPU, not with one of them in turn, and every kernel on the simulated device, not every second one")

// windowUse is where a generated function makes its backlog. The tests make all of one size, which
// they choose at run time.
var windowUse = regexp.MustCompile(`(\.NewLater\[.*\]\()\w+Window\d*`)

// order is which of three windows each call of a kernel has. asynctest.Same calls it for 5 seeds, as often for each:
// once as it is, and once for each tensor that is to fail, of 12 at most. However many calls a seed takes, its Nth
// has all three windows in the five seeds. The digits were found by a random search.
const order = "00122112121220002021212111000000020212021211101112211221222020002"

// RunKernels builds and runs all kernels, as written and as generated, in one test binary of the module in dir, to
// which it adds what that needs. Inputs are made by asynctest, with failing tensors. On the CPU the windows 1, 2
// and 64 take turns: every failing tensor of a kernel meets each of them, with inputs of different seeds. On a
// simulated accelerator the window is 64, and every second kernel runs; all do with -every-window.
func RunKernels(t testing.TB, dir string, goldens []*Golden, result *gen.Result) {
	t.Helper()
	var test bytes.Buffer
	fmt.Fprint(&test, "package user\n\nimport (\n\t\"maps\"\n\t\"os\"\n\t\"reflect\"\n\t\"slices\"\n\t\"testing\"\n\t\"github.com/asyncgen/asyncgen/runtime/asynctest\"\n")
	var body bytes.Buffer
	for i, g := range goldens {
		in, out := g.Section("in.go"), g.Generated(t, result)
		list := "package p\n\n// Window is how much the functions put off before they wait.\nvar Window int\n\n// Cases are original, generated function and the function that makes arguments.\nvar Cases = map[string][3]any{\n"
		for _, k := range kernels(t, in) {
			args := "nil"
			if name := "args" + strings.NewReplacer("(*", "", ").", "").Replace(k[0]); bytes.Contains(in, []byte("func "+name+"(")) {
				args = name
			}
			list += fmt.Sprintf("\t%q: {%s, %s, %s},\n", k[0], k[0], k[1], args)
		}
		list += "}\n"
		if all, found := bytes.Count(out, []byte(".NewLater[")), len(windowUse.FindAll(out, -1)); all != found {
			t.Fatalf("%s: %d backlogs, %d of them with a window that can be chosen", g.Path, all, found)
		}
		to := filepath.Join(dir, "run", g.Name)
		Write(t, filepath.Join(to, "in.go"), in)
		Write(t, filepath.Join(to, "in_async.go"), windowUse.ReplaceAll(out, []byte("${1}Window")))
		Write(t, filepath.Join(to, "cases.go"), []byte(list))
		fmt.Fprintf(&test, "\tp%d \"example.com/user/run/%s\"\n", i, g.Name)
		fmt.Fprintf(&body, "\trun(t, %q, p%d.Cases, &p%[2]d.Window)\n", g.Name, i)
	}
	fmt.Fprintf(&test, ")\n\nfunc TestCases(t *testing.T) {\n%s}\n", body.Bytes())
	fmt.Fprintf(&test, "\nconst (\n\teveryWindow = %v\n\torder = %q\n)\n", *everyWindow, order)
	test.WriteString(`
func run(t *testing.T, folder string, cases map[string][3]any, window *int) {
	windows := [][]int{{1, 2, 64}}
	isCPU := os.Getenv("ASYNCGEN_DEVICE") == "cpu"
	if !isCPU {
		windows = [][]int{{64}} // where values come late, what waits for them is the same in all
	} else if everyWindow {
		windows = [][]int{{1}, {2}, {64}}
	}
	for _, turns := range windows {
		for i, name := range slices.Sorted(maps.Keys(cases)) {
			if i%2 == 1 && !isCPU && !everyWindow {
				continue
			}
			c := cases[name]
			t.Run(folder + "/" + name, func(t *testing.T) {
				asynctest.Same(t, c[0], inTurns(c[1], window, turns), c[2])
				if t.Failed() {
					t.Logf("the last window is %d", *window)
				}
			})
		}
	}
}

// inTurns is f, with another window in each call.
func inTurns(f any, window *int, turns []int) any {
	calls := 0
	return reflect.MakeFunc(reflect.TypeOf(f), func(args []reflect.Value) []reflect.Value {
		*window = turns[int(order[calls%len(order)]-'0')%len(turns)]
		calls++
		if reflect.TypeOf(f).IsVariadic() {
			return reflect.ValueOf(f).CallSlice(args)
		}
		return reflect.ValueOf(f).Call(args)
	}).Interface()
}
`)
	Write(t, filepath.Join(dir, "user_test.go"), test.Bytes())
	// What runs for seconds is compiled in the quickest way.
	RunTests(t, dir, "-gcflags=example.com/user/...=-N -l")
}

// RunTests runs the tests of the module in dir on every device. The go command takes the module for one in testdata,
// wherever it is, and so knows what has not changed: that is not compiled again. If nothing has changed, the library
// included, it has passed before and is not run again.
func RunTests(t testing.TB, dir string, flags ...string) {
	t.Helper()
	home := filepath.Join(Root(t), "gen", "internal", "gentest", "testdata")
	replaced := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		replaced[filepath.Join(home, rel)] = path
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	Write(t, overlay, text)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command("go", slices.Concat(args, []string{"-overlay=" + overlay}, flags, []string{"."})...)
		cmd.Dir = home
		return cmd
	}
	// Else both commands below would compile.
	if out, err := command("list", "-export", "-test").CombinedOutput(); err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	var wg sync.WaitGroup
	// By the flags of a test, the go command notes which variables it has read. Without flags of its own, each device
	// would find the list of the other.
	for device, timeout := range map[string]string{"cpu": "-timeout=10m", "sim:0": "-timeout=11m"} {
		wg.Go(func() {
			// Vet would look through every package for facts, and judge only the test.
			test := command("test", "-vet=off", "-ldflags=-s -w", timeout)
			test.Env = slices.Concat(os.Environ(), []string{"ASYNCGEN_DEVICE=" + device, "ASYNCGEN_SIM=n=1,launch=0us,latency=1us,copy=1us"})
			if out, err := test.CombinedOutput(); err != nil {
				t.Errorf("on %s: go test: %v\n%s", device, err, out)
			}
		})
	}
	wg.Wait()
}
