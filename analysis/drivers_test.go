package analysis_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	newestTools = flag.String("newest-tools", "", "build the command with this version of x/tools, as TestNewestTools and TestSpeed say; latest stands for the newest")
	orders      = flag.Int("orders", 0, "how often TestOrders runs")
	ordersSeed  = flag.Uint64("orders-seed", 0, "the seed of its orders; 0 takes the time")
)

// buildCommand builds the command as go tool asyncgen does: for a module of a
// user, who may need a later version of x/tools than this module, if one is given.
func buildCommand(t *testing.T, tools string) string {
	t.Helper()
	repo, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "go.mod", "module example.com/user\n\ngo 1.26\n\ntool github.com/asyncgen/asyncgen/cmd/asyncgen\n\n"+
		"require github.com/asyncgen/asyncgen v0.0.0\n\nreplace github.com/asyncgen/asyncgen => "+repo+"\n")
	path := filepath.Join(dir, "asyncgen")
	if tools != "" {
		goModCommand(t, dir, "get", "golang.org/x/tools@"+tools)
	}
	goModCommand(t, dir, "build", "-buildvcs=false", "-o", path, "github.com/asyncgen/asyncgen/cmd/asyncgen")
	return path
}

// goModCommand runs the go command where it may change go.mod.
func goModCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// salted copies a tool, so that it is another one to the go command, which has
// analysed nothing with it.
func salted(t *testing.T, tool string) string {
	t.Helper()
	data, err := os.ReadFile(tool)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(copied, fmt.Append(data, time.Now().UnixNano()), 0o777); err != nil {
		t.Fatal(err)
	}
	return copied
}

// vetJSON runs the vet command of a tool in dir, and returns the findings as it
// prints them.
func vetJSON(t *testing.T, tool, dir string, env []string, packages ...string) string {
	t.Helper()
	cmd := exec.Command(tool, append([]string{"vet", "-json", "-severity=info", "-tests"}, packages...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 1 || stderr.Len() > 0 {
		t.Fatalf("%s: %v, want findings and nothing else\n%s%s", cmd, err, out, &stderr)
	}
	return string(out)
}

// TestNewestTools builds the command for a module that needs a later x/tools than
// this one, by go tool and with the newest, and holds its findings against those of
// the command with the version here:
//
//	go test ./analysis -run NewestTools -newest-tools latest
func TestNewestTools(t *testing.T) {
	if *newestTools == "" {
		t.Skip("downloads x/tools: -newest-tools latest")
	}
	own, newest := buildCommand(t, ""), buildCommand(t, *newestTools)
	version := goCommand(t, t.TempDir(), 0, "version", "-m", newest)
	for line := range strings.Lines(version) {
		if strings.Contains(line, "golang.org/x/tools") {
			t.Log(strings.TrimSpace(line))
			if strings.Contains(line, "v0.49.0") {
				t.Error("the command was not built with a later version")
			}
		}
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir      string
		packages []string
	}{
		"module":   {module(t, program), []string{"./..."}},
		"programs": {root, programDirs(t)},
	} {
		want := vetJSON(t, own, c.dir, nil, c.packages...)
		if got := vetJSON(t, newest, c.dir, nil, c.packages...); got != want {
			t.Errorf("%s: with x/tools %s the findings are\n%s\nwith that of this module\n%s", name, *newestTools, got, want)
		}
	}

	// A user runs it from the module.
	user := module(t, program)
	mod := readFile(t, filepath.Join(user, "go.mod"))
	mod = strings.Replace(mod, "=> ../asyncgen", "=> "+root, 1)
	write(t, user, "go.mod", mod+"\ntool github.com/asyncgen/asyncgen/cmd/asyncgen\n")
	goModCommand(t, user, "get", "golang.org/x/tools@"+*newestTools)
	goModCommand(t, user, "mod", "tidy")
	if out := goCommand(t, user, 1, "tool", "asyncgen", "vet", "./..."); strings.Count(out, "[AT") != 3 {
		t.Errorf("go tool asyncgen vet prints\n%s", out)
	}
}

// programDirs are the folders of the example programs, from the root.
func programDirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("..", "testdata", "programs", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for i, dir := range dirs {
		dirs[i] = "./testdata/programs/" + filepath.Base(dir)
	}
	return dirs
}

// TestOrders analyses the example programs and a large module of other people again
// and again, with their packages in another order, on one processor and on two, and
// one package or several at a time: the findings are the same, to the byte.
//
//	go test ./analysis -run TestOrders -v -timeout 1h -orders 20
func TestOrders(t *testing.T) {
	if *orders == 0 {
		t.Skip("takes minutes and needs other people's modules: -orders 20")
	}
	seed := *ordersSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-orders-seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	tool := buildCommand(t, "")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	const gomlx = "github.com/gomlx/gomlx@v0.26.0"
	large := moduleSource(t, gomlx)
	for name, c := range map[string]struct {
		dir      string
		packages []string
	}{
		"programs": {root, programDirs(t)},
		gomlx:      {large, strings.Fields(goCommand(t, large, 0, "list", "./..."))},
	} {
		var want string
		for run := range *orders {
			rnd.Shuffle(len(c.packages), func(i, j int) { c.packages[i], c.packages[j] = c.packages[j], c.packages[i] })
			env := []string{fmt.Sprintf("GOMAXPROCS=%d", 1+run%2), fmt.Sprintf("GOFLAGS=-p=%d", 1+run/2%3)}
			got := vetJSON(t, salted(t, tool), c.dir, env, c.packages...)
			if run == 0 {
				want = got
				t.Logf("%s: %d packages, %d findings", name, len(c.packages), strings.Count(got, `"rule"`))
			} else if got != want {
				t.Fatalf("%s: run %d with %v finds\n%s\nthe first found\n%s", name, run, env, got, want)
			}
		}
	}
}
