package compare

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/internal/trace"
)

// The programs that the tests run are this test's own executable, under the
// names "original" and "rewritten". Their first argument says what they do.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "original", "rewritten":
		if len(os.Args) > 1 {
			act(filepath.Base(os.Args[0]), os.Args[1:])
			os.Exit(0)
		}
	}
	// Syntax and types live as long as a test does, in go commands, too: looking for what does not would take a fifth
	// of the time.
	debug.SetGCPercent(400)
	os.Setenv("GOGC", "400")
	os.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -ldflags=-s") // nobody debugs what they link
	os.Exit(m.Run())
}

// act does what the program called name has to do.
func act(name string, args []string) {
	isOriginal := name == "original"
	switch args[0] {
	case "print":
		fmt.Println("on", os.Getenv("ASYNCGEN_DEVICE"))
		fmt.Fprintln(os.Stderr, "timing of", name)
	case "differ":
		fmt.Println("first")
		fmt.Println(name)
	case "exit":
		if !isOriginal {
			os.Exit(3)
		}
	case "panic":
		panic("on purpose")
	case "panic-differently":
		panic(name)
	case "fail", "fail-differently": // an operation of each program on a line of its own
		err := fmt.Sprintf("asyncgen: Div int64[3] from int64[3] int64[] on sim:0, enqueued at /src/%s.go:%d: ", name, len(name))
		cause := "an integer is divided by zero"
		if os.Args[1] == "fail-differently" {
			cause = name
		}
		fmt.Printf("<failed: %s>\n", err+"as in both")
		panic(err + cause)
	case "wait":
		if file := os.Getenv("ASYNCGEN_REPORT"); file != "" {
			w, err := report.Create(file)
			if err != nil {
				panic(err)
			}
			counts := report.Counts{Waits: 2, WaitNS: 50}
			if isOriginal {
				counts = report.Counts{Waits: 100, WaitNS: 7000}
			}
			w.Add(report.Place{File: "train.go", Line: 41, Op: "Item"}, counts)
			w.Close()
		}
	case "trace":
		if file := os.Getenv("ASYNCGEN_TRACE"); file != "" {
			f, err := trace.Create(file)
			if err != nil {
				panic(err)
			}
			n := time.Duration(1)
			if isOriginal {
				n = 3
			}
			w := trace.NewWriter(f, func(uintptr) *trace.Place { return &trace.Place{File: "/src/train.go", Func: "main.main", Line: 41} })
			w.Add(&trace.Event{Kind: trace.Op, Name: "Sum", End: n * time.Millisecond, Type: "float32", ID: trace.ID{Stream: 1}}, 4)
			w.Add(&trace.Event{Kind: trace.Wait, Name: "Item", Row: 1, PC: 1, Begin: n * time.Millisecond / 2, End: n * time.Millisecond, Idle: n * time.Millisecond / 2}, 4)
			if err := w.Close(); err != nil {
				panic(err)
			}
		}
	case "count": // in the file named by the next argument
		text, _ := os.ReadFile(args[1])
		fmt.Printf("run %d\nsteady\n", len(text))
		os.WriteFile(args[1], append(text, '.'), 0o666)
	case "unknown-device":
		panic(fmt.Errorf("ASYNCGEN_DEVICE: device: no sim:7, there are 1"))
	case "flood":
		line := []byte(strings.Repeat("x", 1<<16))
		for {
			if _, err := os.Stdout.Write(line); err != nil {
				select {} // until it is killed
			}
		}
	case "stay": // until its standard input is closed
		fmt.Println("here")
		io.Copy(io.Discard, os.Stdin)
	case "hang":
		select {}
	case "hang-rewritten":
		fmt.Println("working")
		if !isOriginal {
			hold(args[1])
		}
	case "parent": // starts a child that holds a connection to the address in the next argument
		child := exec.Command(os.Args[0], "child", args[1])
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			panic(err)
		}
		child.Wait()
	case "child":
		hold(args[1])
	default:
		panic("unknown: " + args[0])
	}
}

// hold connects to addr and waits until the other side hangs up, forever in these tests.
func hold(addr string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		panic(err)
	}
	io.Copy(io.Discard, conn)
}

// fakePrograms returns the runner of a pair of fake programs that get args.
func fakePrograms(t *testing.T, args ...string) runner {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := runner{
		ctx:       t.Context(),
		cfg:       Config{Args: args, Count: 2, Dir: dir}.withDefaults(),
		device:    "cpu",
		original:  filepath.Join(dir, "original"),
		rewritten: filepath.Join(dir, "rewritten"),
		temp:      dir,
	}
	for _, name := range []string{r.original, r.rewritten} {
		if err := os.Symlink(self, name); err != nil {
			t.Skipf("no symbolic links here, which give the test's executable its other names: %v", err)
		}
	}
	return r
}

// compareFake does what compareOn does, but for the reports.
func compareFake(r runner) (*Device, error) {
	want, err := r.stable()
	if err != nil {
		return nil, err
	}
	d := &Device{Name: r.device}
	return d, r.timed(d, want)
}

func TestIdentical(t *testing.T) {
	d, err := compareFake(fakePrograms(t, "print"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Differences) > 0 {
		t.Errorf("differences %+v, want none", d.Differences)
	}
	if len(d.Original.Times) != 2 || len(d.Rewritten.Times) != 2 || d.Original.Time() <= 0 {
		t.Errorf("times %v and %v, want two each", d.Original.Times, d.Rewritten.Times)
	}
	if d.Rewritten.Stderr != "timing of rewritten\n" || d.Rewritten.Status != "exit status 0" {
		t.Errorf("rewritten: %+v", d.Rewritten)
	}
}

func TestReports(t *testing.T) {
	r := fakePrograms(t, "wait")
	d, err := compareFake(r)
	if err == nil {
		err = r.reported(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if o, w := d.Original.Sync, d.Rewritten.Sync; o != (report.Counts{Waits: 100, WaitNS: 7000}) || w != (report.Counts{Waits: 2, WaitNS: 50}) {
		t.Errorf("counts %+v and %+v", o, w)
	}

	r = fakePrograms(t, "print") // writes no report
	if err := r.reported(d); err != nil || d.Original.Sync != (report.Counts{}) {
		t.Errorf("without a report: %v, %+v", err, d.Original.Sync)
	}
}

// TestTraces makes the picture of two programs.
func TestTraces(t *testing.T) {
	r := fakePrograms(t, "trace")
	d, err := compareFake(r)
	if err == nil {
		err = r.traced(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	result := &Result{Package: "./train", Devices: []*Device{d}, remarks: []gen.Remark{
		{Code: "AG102", Rule: "defer-sum", Verdict: gen.Applied, Pos: token.Position{Filename: "/src/train.go", Line: 41}, Message: "it is added later"},
		{Code: "AG201", Verdict: gen.Skipped, Pos: token.Position{Filename: "/src/train.go", Line: 41}},
		{Code: "AG202", Verdict: gen.Refused, Pos: token.Position{Filename: "/src/train.go", Line: 42}, Message: "why"},
	}}
	p, err := result.Page()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[int]string{40: "[]", 41: "[{AG102 applied defer-sum: it is added later}]", 42: "[{AG202 refused: why}]"} {
		if got := fmt.Sprint(p.Findings("/src/train.go", line)); got != want {
			t.Errorf("line %d has %s, want %s", line, got, want)
		}
	}
	pic := p.Pictures[0]
	if len(p.Pictures) != 1 || pic.Name != "cpu" || !regexp.MustCompile(`^cpu: identical output, \d+\.\d\dx as \w+ \(median of 2 runs\)\. $`).MatchString(pic.Lead) || len(pic.Sides) != 2 {
		t.Fatalf("%+v", p.Pictures)
	}
	for i, want := range []time.Duration{3 * time.Millisecond, time.Millisecond} {
		if v := pic.Sides[i].Trace.Verdict(); v.End-v.Begin != want || v.Total != want/2 || v.Lines[0].At.Line != 41 {
			t.Errorf("%s: %+v", pic.Sides[i].Name, v)
		}
	}
	d.Virtual = true
	if got, want := d.gained(), ", 3.00x as fast (by the clock of the model)"; got != want {
		t.Errorf("in virtual time it gained %q, want %q", got, want)
	}
	if left, err := filepath.Glob(filepath.Join(r.temp, "trace*")); err != nil || len(left) > 0 {
		t.Errorf("the traces are left: %v, %v", left, err)
	}

	r = fakePrograms(t, "print") // starts no engine
	d = &Device{Name: "cpu", Differences: []Difference{{What: "end"}}}
	if err := r.traced(d); err != nil || len(d.traces) != 1 || len(d.traces[0].Slices) > 0 {
		t.Errorf("programs that differ and do nothing: %v, %+v", err, d.traces)
	}
	if pic := d.picture(); !strings.Contains(pic.Lead, "DIFFERENT") || len(pic.Sides) != 1 {
		t.Errorf("programs that differ: %+v", pic)
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // what and, of the first line that differs, the number
	}{
		{[]string{"differ"}, "stdout:2"},
		{[]string{"exit"}, "end"},
		{[]string{"panic-differently"}, "failure"},
		{[]string{"fail"}, ""},
		{[]string{"fail-differently"}, "failure"},
	} {
		d, err := compareFake(fakePrograms(t, c.args...))
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		var got []string
		for _, diff := range d.Differences {
			s := diff.What
			if len(diff.Lines) > 0 {
				s += fmt.Sprintf(":%d", diff.Lines[0].Line)
			}
			got = append(got, s)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v: differences %v, want %s", c.args, got, c.want)
		}
	}
}

func TestEqualFailure(t *testing.T) {
	d, err := compareFake(fakePrograms(t, "panic"))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Differences) > 0 || d.Original.Status != "exit status 2" {
		t.Errorf("a program that panics in both forms: %+v", d)
	}
	d.Name = "cpu"
	if got, want := (&Result{Devices: []*Device{d}}).Failure(), "exit status 2 on cpu: panic: on purpose"; got != want {
		t.Errorf("Failure is %q, want %q", got, want)
	}
}

func TestUnstable(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "counter")
	_, err := compareFake(fakePrograms(t, "count", counter))
	var unstable *UnstableError
	if !errors.As(err, &unstable) || unstable.Total != 1 || unstable.Lines[0].Line != 1 {
		t.Fatalf("error %v, want an UnstableError about line 1", err)
	}
	if !strings.Contains(err.Error(), "-mask") {
		t.Errorf("the message does not say what to do: %v", err)
	}

	r := fakePrograms(t, "count", counter)
	r.cfg.Masks = []*regexp.Regexp{regexp.MustCompile(`run \d+`)}
	if d, err := compareFake(r); err != nil || len(d.Differences) > 0 {
		t.Errorf("masked: %v, %+v", err, d)
	}
}

func TestUnknownDevice(t *testing.T) {
	_, err := compareFake(fakePrograms(t, "unknown-device"))
	if err == nil || !strings.HasPrefix(err.Error(), "ASYNCGEN_DEVICE: device: no sim:7") {
		t.Errorf("error %v, want the program's own message", err)
	}
}

func TestTooMuchOutput(t *testing.T) {
	_, err := compareFake(fakePrograms(t, "flood"))
	if !errors.Is(err, errOutput) {
		t.Errorf("error %v, want errOutput", err)
	}
}

func TestHang(t *testing.T) {
	r := fakePrograms(t, "hang")
	r.cfg.Timeout = time.Millisecond
	_, err := compareFake(r)
	if !errors.Is(err, errTimeout) || !strings.Contains(err.Error(), "the program as written") {
		t.Errorf("error %v, want errTimeout, about the program as written", err)
	}
}

// TestHangRewritten lets only the rewritten program hang: that is a
// difference, not an error.
func TestHangRewritten(t *testing.T) {
	l := listen(t)
	r := fakePrograms(t, "hang-rewritten", l.Addr().String())
	want, err := r.stable()
	if err != nil {
		t.Fatal(err)
	}
	// The limit is short only for the program that hangs: the test must not
	// depend on how long a program takes to start.
	hung := make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	r.ctx = ctx
	go func() {
		defer close(hung)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		cancel(errTimeout)
		waitForEnd(conn)
	}()
	d := &Device{}
	if err := r.timed(d, want); err != nil {
		t.Fatal(err)
	}
	<-hung
	if len(d.Differences) != 1 || d.Differences[0].What != "end" {
		t.Errorf("differences %+v, want one, about the end", d.Differences)
	}
}

// TestKillsChildren interrupts a program whose child holds a connection to the
// test, and waits for the connection to break.
func TestKillsChildren(t *testing.T) {
	l := listen(t)
	r := fakePrograms(t, "parent", l.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	r.ctx = ctx
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		cancel()
		if err == nil {
			err = waitForEnd(conn)
		}
		ended <- err
	}()
	if _, err := r.stable(); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the child of an interrupted program lives on: %v", err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skipf("no local network to watch a child process by: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// waitForEnd waits until the other side of conn is gone.
func waitForEnd(conn net.Conn) error {
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	_, err := bufio.NewReader(conn).ReadByte()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return nil
}
