package asyncgen_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestPrograms runs every example program at its small size on every device and
// in every mode of the engine: its standard output is its golden file. A
// program prints nothing there that may differ: how long something takes goes
// to standard error.
func TestPrograms(t *testing.T) {
	dirs, err := filepath.Glob("testdata/programs/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	bin := t.TempDir() + string(filepath.Separator)
	args := []string{"build", "-buildvcs=false", "-o", bin}
	for _, dir := range dirs {
		args = append(args, "./"+filepath.ToSlash(dir))
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		for _, c := range []struct{ device, engine string }{
			{"cpu", "async"}, {"cpu", "naive"}, {"cpu", "shuffle:1"},
			{"sim:0", "async"}, {"sim:0", "naive"}, {"sim:0", "shuffle:1"},
		} {
			t.Run(name+"/"+c.device+"/"+c.engine, func(t *testing.T) {
				if c.device != "cpu" || c.engine != "async" {
					t.Parallel() // after the golden file is there
				}
				got := runProgram(t, bin+name+exeSuffix(), "ASYNCGEN_DEVICE="+c.device, "ASYNCGEN_ENGINE="+c.engine)
				golden := filepath.Join(dir, "small.golden")
				if *update && c.device == "cpu" && c.engine == "async" {
					if err := os.WriteFile(golden, got, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s -small on %s, %s: standard output is not %s (go test -run %s -update rewrites it):\ngot:\n%s\nwant:\n%s",
						dir, c.device, c.engine, golden, t.Name(), got, want)
				}
			})
		}
	}
}

// TestServer runs the server, and clients that hang up, with the race detector.
func TestServer(t *testing.T) {
	const dir = "testdata/programs/server"
	bin := filepath.Join(t.TempDir(), "server"+exeSuffix())
	if out, err := exec.Command("go", "build", "-race", "-buildvcs=false", "-o", bin, "./"+dir).CombinedOutput(); err != nil {
		t.Skipf("no race detector here: %v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(dir, "small.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{"cpu", "sim:0"} {
		if got := runProgram(t, bin, "ASYNCGEN_DEVICE="+device); !bytes.Equal(got, want) {
			t.Errorf("on %s:\n%s\nwant\n%s", device, got, want)
		}
	}
}

// runProgram runs a program at its small size and returns its standard output.
func runProgram(t *testing.T, path string, env ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-small")
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	return stdout.Bytes()
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
