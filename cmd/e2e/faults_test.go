package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/internal/turns"
)

var faults = flag.Int("faults", 0, "how many faults TestFaults injects into each program, as written and as rewritten, on each device; 0: one, on one device and in one of both forms, which it draws; negative: of each kind the first, the second ... until nothing goes wrong")

// A left is what a program has written to FAULTS_REPORT.
type left struct {
	Panic      *opError
	WaitAll    []opError
	Goroutines int
	Live       int64
}

// An opError is what an error says about the operation that failed. If it is none, there is only Text.
type opError struct {
	Op     string
	Shapes [][]int
	DTypes int
	File   string
	Line   int
	Text   string
}

// An ending is how a run of a program has ended.
type ending struct {
	stdout, stderr string
	code           int
	left           *left // nil: it has called os.Exit
	struck         []string
}

// A sweep runs a program with faults.
type sweep struct {
	bin        string
	program    string
	env        []string
	goroutines int // that a run without faults leaves; negative: not known
}

// run runs the program at its small size. fault is for ASYNCGEN_FAULT.
func (s *sweep) run(t *testing.T, fault string) (e ending) {
	t.Helper()
	dir := t.TempDir()
	log, report := filepath.Join(dir, "log"), filepath.Join(dir, "report")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bin, s.program, "-small")
	cmd.Env = append(append(os.Environ(), s.env...), "FAULTS_REPORT="+report, fmt.Sprint("FAULTS_GOROUTINES=", s.goroutines))
	if fault != "" {
		cmd.Env = append(cmd.Env, "ASYNCGEN_FAULT="+fault+",log="+log)
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	e.stdout, e.stderr, e.code = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if ctx.Err() != nil || e.code < 0 {
		t.Fatalf("it hangs, or was killed: %v\n%s", err, e.stderr)
	}
	if text, err := os.ReadFile(report); err == nil {
		e.left = new(left)
		if err := json.Unmarshal(text, e.left); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(log); err == nil {
		e.struck = strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	return e
}

// kindsOfFault are what goes wrong, without the number.
var kindsOfFault = []string{
	"call=Command", "call=Command,kind=panic", "call=Command,kind=lose", "call=Command,kind=delay",
	"call=Alloc", "call=Alloc,kind=panic", "call=Submit", "call=Wait",
}

// endings are the programs with loops that values end. Rewritten, they run past their end where
// values take time to arrive: how far depends on that, and the commands there count, so that later
// another operation fails than in the program as written. Those of numbers that the device keeps
// have other names, too.
var endings = []string{"solve", "pagerank", "kmeans", "generate"}

// TestFaults lets calls of the devices of the example programs go wrong, as these are written and
// as they are rewritten. Whatever it is, a program ends; what it printed is what it prints without
// the fault, up to where a read has panicked, except that it may say of a value that it has failed;
// the panic names operation, shapes and line of the program; and no goroutine and no memory of a
// device is left.
//
// Where the order of commands is that of the program, and there are no others, and the same
// operation fails, the program as written and the program rewritten print the same and end with the
// same panic.
func TestFaults(t *testing.T) {
	all := buildPrograms(t)
	forms := map[string]int{} // by the program as written, the one to take
	for at, program := range all.names {
		original, ok := strings.CutSuffix(program, rewrittenSuffix)
		if *faults == 0 && !turns.Has(t, original) {
			continue
		}
		rng := rand.New(rand.NewPCG(*seed, uint64(at)))
		only := rng.IntN(2)
		if !ok {
			forms[original] = rng.IntN(2)
			if !slices.Contains(all.names, original+rewrittenSuffix) {
				forms[original] = 0
			}
		}
		isDrawn := ok == (forms[original] == 1)
		for i, device := range []string{"cpu", "sim:0"} {
			if *faults == 0 && (i != only || !isDrawn) {
				continue
			}
			t.Run(program+"/"+device, func(t *testing.T) {
				t.Parallel()
				s := &sweep{bin: all.bin, program: program, env: []string{"ASYNCGEN_DEVICE=" + device}}
				s.inject(t, rand.New(rand.NewPCG(*seed, uint64(2*at+i))))
			})
		}
		if original == "metrics" {
			t.Run(program+"/killed", func(t *testing.T) {
				t.Parallel()
				(&sweep{bin: all.bin, program: program}).kill(t)
			})
		}
		if !ok || original == "server" { // whose requests come in any order
			continue
		}
		// where commands come in order
		inOrder := [][]string{{"ASYNCGEN_DEVICE=sim:0"}, {"ASYNCGEN_DEVICE=cpu", "ASYNCGEN_ENGINE=naive"}}
		if slices.Contains(endings, original) {
			inOrder = inOrder[1:]
		} else if *faults == 0 {
			inOrder = inOrder[only : only+1]
		}
		for _, env := range inOrder {
			t.Run(original+" and rewritten/"+env[0], func(t *testing.T) {
				t.Parallel()
				a, b := &sweep{bin: all.bin, program: original, env: env}, &sweep{bin: all.bin, program: program, env: env}
				compareFaults(t, a, b, rand.New(rand.NewPCG(*seed, uint64(at))))
			})
		}
	}
}

// kill interrupts the program while it prints, and breaks the pipe that it prints to. It ends as
// any Go program does, and what it has printed is the beginning of what it prints.
func (s *sweep) kill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals here")
	}
	s.env = []string{"ASYNCGEN_DEVICE=sim:0", "ASYNCGEN_SIM=launch=50us"}
	clean := s.run(t, "").stdout
	for end, kill := range map[string]func(*exec.Cmd, io.Closer) error{
		"signal: interrupt":   func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(os.Interrupt) },
		"signal: broken pipe": func(_ *exec.Cmd, stdout io.Closer) error { return stdout.Close() },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, s.bin, s.program, "-small")
		// it has a second to go when the first line is there
		cmd.Env = append(os.Environ(), s.env[0], "ASYNCGEN_SIM=launch=500us")
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(stdout)
		printed, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if err := kill(cmd, stdout); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		printed += string(rest)
		cmd.Wait()
		if got := cmd.ProcessState.String(); got != end {
			t.Errorf("it has ended with %s, want %s", got, end)
		}
		if !strings.HasPrefix(clean, printed) || !strings.HasSuffix(printed, "\n") || len(printed) == len(clean) {
			t.Errorf("%s: it has printed\n%s\nand prints\n%s", end, printed, clean)
		}
	}
}

// inject runs the program without a fault and with some.
func (s *sweep) inject(t *testing.T, rng *rand.Rand) {
	s.goroutines = -1
	clean := s.run(t, "")
	if clean.code != 0 || clean.left == nil || clean.left.Live != 0 || clean.left.Panic != nil || clean.left.WaitAll != nil {
		t.Fatalf("without a fault: exit code %d, left %+v\n%s", clean.code, clean.left, clean.stderr)
	}
	s.goroutines = clean.left.Goroutines
	try := func(kind string, n int) (struck bool) {
		fault := fmt.Sprintf("%s,n=%d", kind, n)
		e := s.run(t, fault)
		if problem := s.problem(fault, clean, e); problem != "" {
			t.Errorf("%s (go test . -run '%s' -seed %d): %s\nstandard output:\n%s\nstandard error:\n%s", fault, t.Name(), *seed, problem, e.stdout, e.stderr)
		}
		return e.struck != nil
	}
	for range max(1, *faults) {
		try(pick(rng, kindsOfFault...), anyNumber(rng))
	}
	for _, kind := range kindsOfFault {
		for n := 1; *faults < 0 && try(kind, n); n++ {
		}
	}
}

// anyNumber draws a number of a call: small ones and large ones are equally likely.
func anyNumber(rng *rand.Rand) int { return int(math.Exp(rng.Float64() * 7)) }

// compareFaults runs a program and its rewritten form with the same operations failing.
func compareFaults(t *testing.T, a, b *sweep, rng *rand.Rand) {
	kernels := []string{"MatMul", "Sub", "Add", "Square", "MulScalar", "Sum", "Fill", "Normal"}
	for range max(1, *faults) {
		fault := fmt.Sprintf("call=Command,kernel=%s,n=%d", pick(rng, kernels...), anyNumber(rng))
		x, y := a.run(t, fault), b.run(t, fault)
		cause := func(e ending) string {
			if e.left == nil || e.left.Panic == nil {
				return ""
			}
			return e.left.Panic.Text
		}
		if x.stdout != y.stdout || x.code != y.code || cause(x) != cause(y) {
			t.Errorf("%s (go test . -run '%s' -seed %d): as written: exit code %d, %s\n%s\nrewritten: exit code %d, %s\n%s",
				fault, t.Name(), *seed, x.code, cause(x), x.stdout, y.code, cause(y), y.stdout)
		}
	}
}

// where is what the text of an error says of where the operation was.
var where = regexp.MustCompile(report.Where)

// problem says what is wrong with the way in which a program has ended, or "".
func (s *sweep) problem(fault string, clean, e ending) string {
	original := strings.TrimSuffix(s.program, rewrittenSuffix)
	if problem := compareLines(clean.stdout, e.stdout, original == "server"); problem != "" {
		return problem
	}
	if e.left != nil && (e.left.Live != 0 || e.left.Goroutines > s.goroutines) {
		return fmt.Sprintf("left are %d bytes of memory and %d goroutines, and without the fault %d", e.left.Live, e.left.Goroutines, s.goroutines)
	}
	harmless := e.struck == nil || strings.Contains(fault, "kind=delay")
	switch {
	case harmless && (e.code != 0 || e.left == nil || e.left.WaitAll != nil || len(e.stdout) != len(clean.stdout)):
		return fmt.Sprintf("exit code %d, left %+v, although nothing has failed", e.code, e.left)
	case harmless:
		return ""
	case e.left == nil:
		if e.code != 1 || !strings.Contains(e.stderr, "injected fault") {
			return fmt.Sprintf("exit code %d without a word about the fault", e.code)
		}
		return ""
	}
	errs := e.left.WaitAll
	if e.code != 0 {
		if e.left.Panic == nil {
			return fmt.Sprintf("exit code %d", e.code)
		}
		errs = append(errs, *e.left.Panic)
		text := where.ReplaceAllString(e.stderr, "")
		if text == e.stderr || !strings.Contains(text, "panic: asyncgen: fault: ") && !strings.Contains(text, "panic: asyncgen: kernel panicked: fault: ") {
			return "standard error does not tell where it was and the cause"
		}
	}
	for _, err := range errs {
		if problem := err.problem(original, fault, e.struck); problem != "" {
			return problem
		}
	}
	// A failed wait says nothing about operations, a Submit is tried again for each of several, and a
	// program may ask whether all went well and not care.
	certain := !strings.HasPrefix(fault, "call=Wait") && !strings.HasPrefix(fault, "call=Submit") && !drops(original)
	// What is done for all rows at once, and fails, is done row by row. What is enqueued past an exit is discarded.
	inVain := original != s.program && (original == "accuracy" || slices.Contains(endings, original))
	if inVain && e.code == 0 && e.stdout == clean.stdout {
		certain = false
	}
	if told := len(errs) > 0 || strings.Contains(e.stdout+e.stderr, "injected fault"); certain && !told {
		return "nobody was told of the fault"
	}
	return ""
}

// problem says what is missing in an error, or "".
func (o opError) problem(program, fault string, struck []string) string {
	dir := filepath.Join("testdata", "programs", program)
	switch {
	case o.Op == "" || o.DTypes == 0 || len(o.Shapes) == 0 && o.Op != "download" && o.Op != "upload":
		return "the error does not name the operation and its operands: " + o.Text
	case !strings.HasSuffix(filepath.Dir(o.File), dir) || o.Line == 0:
		return "the error does not name a line of the program: " + o.Text
	case !strings.Contains(o.Text, "injected fault"):
		return "the error has another cause: " + o.Text
	}
	isStruck := func(line string) bool { return strings.Contains(line, fmt.Sprintf("%q", o.Op)) }
	// Of operations that meet a loss at the same time, the first one to say so is its cause.
	if strings.HasPrefix(fault, "call=Command") && !strings.Contains(fault, "kind=lose") && !strings.Contains(o.Text, "panicked") && !slices.ContainsFunc(struck, isStruck) {
		return fmt.Sprintf("the error is of %s, and what was struck is %q", o.Op, struck)
	}
	return ""
}

// drops reports whether a program calls WaitAll for its error's sake nowhere.
func drops(program string) bool {
	files, _ := filepath.Glob(filepath.Join("testdata", "programs", program, "*.go"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || bytes.Contains(text, []byte("\tasyncrt.WaitAll()\n")) {
			return true
		}
	}
	return false
}

// compareLines says how what a program printed differs from what it prints without a fault, or "".
// A program whose requests may fail counts those that did.
func compareLines(clean, got string, counts bool) string {
	want, lines := strings.SplitAfter(clean, "\n"), strings.SplitAfter(got, "\n")
	for i, line := range lines {
		switch last := i == len(lines)-1; {
		case i < len(want) && line == want[i], strings.Contains(line, "<failed: "):
		case last && i < len(want) && strings.HasPrefix(want[i], line): // of a line that is printed in pieces
		case counts && (strings.Contains(line, " 0 are wrong\n") || strings.HasPrefix(line, "failed operations:")):
		default:
			return fmt.Sprintf("line %d is %q", i+1, line)
		}
	}
	return ""
}
