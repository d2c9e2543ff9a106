package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/internal/turns"
)

var (
	everyMode = flag.Bool("every-mode", false, "run every program as written in every mode of the engine on each device, and rewritten on each, with ASYNCGEN_TEST_OPENCL on opencl:0 too; without the flag the modes are for those of severalThreads, and what is rewritten runs on the CPU")

	update = flag.Bool("update", false, "rewrite golden files")
	server = flag.String("server", "", "the server that TestServer runs: testdata/programs/server, built with the race detector; without the flag it is built without")
)

// severalThreads are the programs with goroutines or several devices of their own, or that ask what is known.
var severalThreads = []string{"barriers", "metrics", "parallel", "server"}

// captured are the programs that capture their steps with -capture, and print the same.
var captured = []string{"chargpt", "mlp", "mnist"}

// TestPrograms runs every example program at its small size on the CPU, and those whose turn it is as written and
// rewritten, on every device and in every mode of the engine, see -every-mode: its standard output is its golden file.
// A program prints nothing there that may differ: how long something takes goes to standard error.
func TestPrograms(t *testing.T) {
	dirs, err := filepath.Glob("testdata/programs/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	all := buildPrograms(t)
	bin := all.bin
	t.Run("waits", func(t *testing.T) { testWaits(t, bin, dirs) })
	devices := []string{"cpu"}
	if *everyMode {
		devices = append(devices, "sim:0")
		if os.Getenv("ASYNCGEN_TEST_OPENCL") != "" {
			devices = append(devices, "opencl:0")
		}
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		hasTurn := *everyMode || turns.Has(t, name)
		for _, c := range []struct{ device, engine string }{
			{"cpu", "async"}, {"cpu", "naive"}, {"cpu", "shuffle:1"},
			{"sim:0", "async"}, {"sim:0", "naive"}, {"sim:0", "shuffle:1"},
		} {
			if !*everyMode && c.engine != "async" && !slices.Contains(severalThreads, name) || !hasTurn && (c.engine != "async" || c.device != "cpu") {
				continue
			}
			t.Run(name+"/"+c.device+"/"+c.engine, func(t *testing.T) {
				if c.device != "cpu" || c.engine != "async" {
					t.Parallel() // after the golden file is there
				}
				env := []string{"ASYNCGEN_DEVICE=" + c.device, "ASYNCGEN_ENGINE=" + c.engine}
				if c.engine != "async" {
					// programs that wait for each operation take seconds with the usual latencies
					env = append(env, "ASYNCGEN_SIM=launch=1us,latency=2us,copy=1us")
				}
				got := runProgram(t, []string{bin, name, "-small"}, env...)
				if c.engine == "async" && hasTurn && slices.Contains(captured, name) {
					if same := runProgram(t, []string{bin, name, "-small", "-capture"}, env...); !bytes.Equal(same, got) {
						t.Errorf("%s -small -capture prints\n%s\nand without -capture\n%s", dir, same, got)
					}
				}
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
		if !hasTurn || !slices.Contains(all.names, name+rewrittenSuffix) {
			continue
		}
		want := readText(t, filepath.Join(dir, "small.golden"))
		for _, device := range devices {
			t.Run(name+rewrittenSuffix+"/"+device, func(t *testing.T) {
				t.Parallel()
				if got := runProgram(t, []string{bin, name + rewrittenSuffix, "-small"}, "ASYNCGEN_DEVICE="+device, "ASYNCGEN_OPENCL_CPU=1"); string(got) != want {
					t.Errorf("rewritten, %s -small on %s prints\n%s\nand as written\n%s", dir, device, got, want)
				}
			})
		}
	}
}

// TestOracles runs the tests of the programs, which hold what they compute against the same in plain Go or by gonum.
func TestOracles(t *testing.T) {
	if out, err := exec.Command("go", "test", "-buildvcs=false", "./testdata/programs/...").CombinedOutput(); err != nil {
		t.Errorf("go test ./testdata/programs/...: %v\n%s", err, out)
	}
}

// TestServer runs the server: a thousand requests, a third of which are given up. Then it interrupts one that is busy.
func TestServer(t *testing.T) {
	const dir = "testdata/programs/server"
	command := []string{*server}
	if *server == "" {
		command = []string{buildPrograms(t).bin, "server"}
	}
	golden, err := os.ReadFile(filepath.Join(dir, "small.golden"))
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Replace(golden, []byte(" 360 times"), []byte(" 1000 times"), 1)
	for _, device := range []string{"cpu", "sim:0"} {
		if got := runProgram(t, slices.Concat(command, []string{"-small", "-requests=1000"}), "ASYNCGEN_DEVICE="+device); !bytes.Equal(got, want) {
			t.Errorf("on %s:\n%s\nwant\n%s", device, got, want)
		}
	}
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts here")
	}
	interruptServer(t, command)
}

// interruptServer checks that an interrupt ends the server, after it has answered what it was asked.
func interruptServer(t *testing.T, command []string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], slices.Concat(command[1:], []string{"-addr=127.0.0.1:0"})...)
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	_, url, found := strings.Cut(strings.TrimSpace(line), "serving on ")
	if err != nil || !found {
		t.Fatalf("the server says %q, %v", line, err)
	}
	var wg sync.WaitGroup
	answered := make(chan struct{}, 1000)
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				resp, err := http.Post(url, "application/json", strings.NewReader("[1, 2, 3, 4]"))
				if err != nil {
					return // it is closed
				}
				var answer struct{ Prediction *float64 }
				if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Prediction == nil {
					t.Errorf("status %s, %v", resp.Status, err)
				}
				resp.Body.Close()
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 20 {
		select {
		case <-answered:
		case <-ctx.Done():
			t.Fatal("no answers")
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	err = cmd.Wait()
	cancel()
	wg.Wait()
	if err != nil || stdout.String() != "interrupted\n" || len(rest) > 0 {
		t.Errorf("interrupted: %v, standard output %q, standard error %q", err, stdout.String(), rest)
	}
}

// runProgram runs a command and returns its standard output.
func runProgram(t *testing.T, command []string, env ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	return stdout.Bytes()
}
