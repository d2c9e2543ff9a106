// Package compare builds a main package as it is written and as the generator
// rewrites it, runs both on several devices, and says whether they do the
// same, and what the rewriting has gained.
//
// The two programs differ in the rewritten functions alone: one go command
// builds them, with the same runtime. Runs are interleaved, so that a
// machine that changes its speed changes it for both. Package compare does not
// rewrite anything itself (package gen does), and it measures whole processes:
// what a single loop gains is for benchmarks.
//
//	result, err := compare.Run(ctx, compare.Config{Package: "./train", Devices: []string{"cpu", "sim:0"}})
//	if err != nil {
//		return err // the package does not build, hangs, differs from run to run …
//	}
//	result.WriteText(os.Stdout)
//	if !result.Same() { … }
package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/asyncgen/asyncgen/device/report"
	"github.com/asyncgen/asyncgen/gen"
	"github.com/asyncgen/asyncgen/internal/trace"
	"github.com/asyncgen/asyncgen/internal/trace/page"
)

// A Config says what to compare and how. Only Package has no default.
type Config struct {
	Dir     string   // where the go command and the program run; "" is the current folder
	Package string   // a main package, as the go command knows it: "./train"
	Args    []string // the program's arguments
	// a pattern, as for go test -bench: the benchmarks of Package are run, which need be no main
	// package
	Bench   string
	Times   int      // how often each of them runs its body; 0: 20
	Devices []string // values of ASYNCGEN_DEVICE, whose backends Package need not import; nil: cpu and sim:0
	Count   int      // timed runs of each program on each device; 0: 5
	Timeout time.Duration
	Masks   []*regexp.Regexp // text that is left out of the comparison of outputs
	Trace   bool             // each program runs once more, to be traced: Result.Page shows that
	// Progress, if not nil, is told what happens next, in a few words.
	Progress func(step string)
}

// A Result is what a comparison has found.
type Result struct {
	Package   string    `json:"package"`
	Args      []string  `json:"args,omitempty"`
	Bench     string    `json:"bench,omitempty"`
	Machine   string    `json:"machine"`
	Count     int       `json:"count"`
	Rewritten []string  `json:"rewritten,omitempty"` // what was rewritten, a line each
	Refused   []string  `json:"refused,omitempty"`   // what was not, and why, a line each
	Devices   []*Device `json:"devices"`

	remarks []gen.Remark
}

// A Device is the comparison on one device.
type Device struct {
	Name      string `json:"name"`
	Simulated bool   `json:"simulated"` // its times come from a model, not from hardware
	// Virtual is set if waits are measured by the clock of that model. Times are those of the
	// machine all the same, so the two can't be compared.
	Virtual   bool `json:"virtual,omitempty"`
	Original  Side `json:"original"`
	Rewritten Side `json:"rewritten"`
	// Differences is what the two programs did differently; empty is what it should be.
	Differences []Difference `json:"differences,omitempty"`
	Lines       int          `json:"lines"` // of standard output
	Benchmarks  []Benchmark  `json:"benchmarks,omitempty"`
	Notes       []string     `json:"notes,omitempty"` // what the figures mean

	traces []*trace.Trace // of the program as written, and rewritten, if asked for and there
}

// A Side is one of the two programs.
type Side struct {
	Status string          `json:"status"` // "exit status 0"
	Times  []time.Duration `json:"times_ns"`
	Stderr string          `json:"stderr"` // of the last timed run

	// Of a run more, whose time does not count.
	Sync report.Counts `json:"sync"`
	Peak int64         `json:"peak_bytes"` // 0 where the system does not tell
}

// virtualClock reports whether the settings of simulated devices say that these have a virtual clock.
func virtualClock(settings string) bool {
	return slices.ContainsFunc(strings.Split(settings, ","), func(s string) bool { return strings.TrimSpace(s) == "clock=virtual" })
}

// Time is the median of the timed runs.
func (s *Side) Time() time.Duration { return median(s.Times) }

// A Difference is something that the two programs did differently.
type Difference struct {
	What  string     `json:"what"` // "stdout", "exit status", "failure"
	Want  string     `json:"want,omitempty"`
	Got   string     `json:"got,omitempty"`
	Lines []LineDiff `json:"lines,omitempty"` // of stdout, the first few
	Total int        `json:"total,omitempty"` // how many lines differ
}

// Same reports whether the programs did the same on every device.
func (r *Result) Same() bool {
	return !slices.ContainsFunc(r.Devices, func(d *Device) bool { return len(d.Differences) > 0 })
}

// Failure says how the program fails in both forms, or is "" if it does not. Nothing after the
// failure is compared.
func (r *Result) Failure() string {
	for _, d := range r.Devices {
		if d.Original.Status == success || len(d.Differences) > 0 {
			continue
		}
		s := fmt.Sprintf("%s on %s", d.Original.Status, d.Name)
		if why := failure([]byte(d.Original.Stderr)); why != "" {
			s += ": " + why
		}
		return s
	}
	return ""
}

// An UnstableError says that the original's output differs from run to run,
// so that there is nothing to compare the rewritten program with.
type UnstableError struct {
	Device string
	Lines  []LineDiff // the first few
	Total  int
}

func (e *UnstableError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the output of the program as written differs from run to run on %s, in %s:", e.Device, plural(e.Total, "line"))
	for _, l := range e.Lines {
		fmt.Fprintf(&b, "\n%s", l)
	}
	b.WriteString("\nname what may differ with -mask REGEXP, or print it to standard error; if it goes on from files of the run before, " +
		"let it begin anew")
	return b.String()
}

const (
	defaultCount   = 5
	defaultTimeout = time.Minute
	shownLines     = 5 // of a difference

	success = "exit status 0" // the status of a process that has ended well
)

// Run compares the two forms of cfg.Package. The error says why there is
// nothing to compare: the package does not build or can't be loaded, the
// program as written hangs or does not do the same twice, a device is unknown, ctx has
// ended. What the rewritten program does wrong is no error but a Difference.
// No process and no temporary file is left behind.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	cfg = cfg.withDefaults()
	if why := gen.NoPackage(cfg.Package); why != "" {
		return nil, errors.New(why)
	}
	var err error
	if cfg.Dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, err
	}
	if err := checkDevices(cfg.Devices); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "asyncgen-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)

	programs, err := build(ctx, cfg, temp)
	if err != nil {
		return nil, err
	}
	result := &Result{
		Package:   cfg.Package,
		Args:      cfg.Args,
		Bench:     cfg.Bench,
		Machine:   machine(),
		Count:     cfg.Count,
		Rewritten: programs.applied,
		Refused:   programs.refused,
		remarks:   programs.remarks,
	}
	var first []byte
	for i, name := range cfg.Devices {
		d, stdout, err := compareOn(ctx, cfg, temp, programs, name)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			first = stdout
		} else if cfg.Bench == "" {
			d.Notes = append(d.Notes, besides(first, stdout, cfg.Devices[0])...)
		}
		result.Devices = append(result.Devices, d)
	}
	return result, nil
}

func (cfg Config) withDefaults() Config {
	if len(cfg.Devices) == 0 {
		cfg.Devices = []string{"cpu", "sim:0"}
	}
	cfg.Count = cmp.Or(cfg.Count, defaultCount)
	cfg.Times = cmp.Or(cfg.Times, defaultTimes)
	cfg.Timeout = cmp.Or(cfg.Timeout, defaultTimeout)
	if cfg.Progress == nil {
		cfg.Progress = func(string) {}
	}
	return cfg
}

// backends are the devices that programs can be compared on. Those with a package are there in programs that import it.
var backends = map[string]struct {
	simulated bool
	pkg       string
}{
	"cpu":    {},
	"sim":    {simulated: true},
	"opencl": {pkg: "github.com/asyncgen/asyncgen/device/opencl"},
}

// backendOf is the part of a device's name that says what runs it.
func backendOf(device string) string {
	name, _, _ := strings.Cut(device, ":")
	return name
}

func checkDevices(names []string) error {
	for _, name := range names {
		if _, ok := backends[backendOf(name)]; !ok {
			return fmt.Errorf("unknown device %q: there are cpu, sim:0 (or more, with ASYNCGEN_SIM=n=2) and opencl:0", name)
		}
	}
	return nil
}

// compareOn runs the two programs on one device: the original twice, to see that it does the same
// every time; both in turn, for time; and each once more with a report of its waits and an eye on
// its memory. If cfg asks for traces, each runs once more with one. That costs time, so that run is not timed.
// compareOn also returns what the original prints.
func compareOn(ctx context.Context, cfg Config, temp string, p *programs, name string) (*Device, []byte, error) {
	r := runner{ctx: ctx, cfg: cfg, device: name, original: p.original, rewritten: p.rewritten, testDir: p.testDir, temp: temp}
	want, err := r.stable()
	if err != nil {
		return nil, nil, err
	}
	d := &Device{
		Name:      name,
		Simulated: backends[backendOf(name)].simulated,
		Virtual:   backends[backendOf(name)].simulated && virtualClock(os.Getenv("ASYNCGEN_SIM")),
		Lines:     strings.Count(string(want.stdout), "\n"),
	}
	if err := r.timed(d, want); err != nil {
		return nil, nil, err
	}
	if err := r.reported(d); err != nil {
		return nil, nil, err
	}
	d.Notes = notes(d, p)
	if cfg.Trace {
		if err := r.traced(d); err != nil {
			return nil, nil, err
		}
	}
	return d, want.stdout, nil
}

// A runner runs the two programs on one device.
type runner struct {
	ctx                 context.Context
	cfg                 Config
	device              string
	original, rewritten string // paths of the programs
	testDir             string // of the package, if they are its test binaries
	temp                string
}

// files are those that the runtime writes its report and its trace to; "": none.
type files struct{ report, trace string }

// run runs one of the programs once.
func (r *runner) run(path, step string, to files) (*process, error) {
	r.cfg.Progress(fmt.Sprintf("%s: %s", r.device, step))
	env := environment("ASYNCGEN_DEVICE="+r.device, "ASYNCGEN_REPORT="+to.report, "ASYNCGEN_TRACE="+to.trace)
	dir, args := r.cfg.Dir, r.cfg.Args
	if r.cfg.Bench != "" {
		dir, args = r.testDir, r.cfg.benchArgs()
	}
	p, err := runProcess(r.ctx, r.cfg.Timeout, dir, env, to.report != "", path, args...)
	if err != nil {
		who := "the program as written"
		if path == r.rewritten {
			who = "the rewritten program"
		}
		if errors.Is(err, errTimeout) {
			return nil, fmt.Errorf("%s %w on %s (-timeout is %v)", who, err, r.device, r.cfg.Timeout)
		}
		return nil, fmt.Errorf("%s on %s: %w", who, r.device, err)
	}
	masks := append(slices.Clip(r.cfg.Masks), where)
	if r.cfg.Bench != "" {
		p.benchmarks = benchmarks(p.stdout)
		masks = append(masks, measured)
	}
	p.stdout = masked(p.stdout, masks)
	return p, nil
}

// stable runs the original twice and returns what it does.
func (r *runner) stable() (*process, error) {
	first, err := r.run(r.original, "the program as written, first run", files{})
	if err != nil {
		return nil, err
	}
	if i := strings.Index(string(first.stderr), "ASYNCGEN_DEVICE: "); i >= 0 && first.status != success {
		line, _, _ := strings.Cut(string(first.stderr[i:]), "\n")
		return nil, errors.New(line)
	}
	if r.cfg.Bench != "" && len(first.benchmarks) == 0 && first.status == success {
		return nil, fmt.Errorf("no benchmark of %s matches %q", r.cfg.Package, r.cfg.Bench)
	}
	second, err := r.run(r.original, "the program as written, second run", files{})
	if err != nil {
		return nil, err
	}
	return first, r.unstable(first, second)
}

// unstable is an error if two runs of the original are not the same.
func (r *runner) unstable(first, second *process) error {
	if lines, total := diffLines(first.stdout, second.stdout, shownLines); total > 0 {
		return &UnstableError{Device: r.device, Lines: lines, Total: total}
	}
	if first.status != second.status {
		return fmt.Errorf("the program as written does not end the same way twice on %s: %s, then %s", r.device, first.status, second.status)
	}
	return nil
}

// timed runs both programs in turn, records what they took, and compares what they did.
func (r *runner) timed(d *Device, want *process) error {
	for i := range r.cfg.Count {
		step := fmt.Sprintf("run %d of %d", i+1, r.cfg.Count)
		p, err := r.run(r.original, step+", as written", files{})
		if err != nil {
			return err
		}
		if err := r.unstable(want, p); err != nil {
			return err
		}
		d.Original.add(p)
		took := p.benchmarks
		p, err = r.run(r.rewritten, step+", rewritten", files{})
		if err != nil {
			if errors.Is(err, errTimeout) || errors.Is(err, errOutput) {
				d.Differences = append(d.Differences, Difference{What: "end", Want: want.status, Got: err.Error()})
				return nil
			}
			return err
		}
		d.Rewritten.add(p)
		if d.Differences = differences(want, p); len(d.Differences) > 0 {
			return nil // its times mean nothing
		}
		d.addBenchmarks(took, p.benchmarks)
	}
	return nil
}

// reported runs each program once with a report, and keeps its totals and the peak of memory.
func (r *runner) reported(d *Device) error {
	return r.watched(d, "waits", func(side *Side, run func(files) (*process, error), file string) error {
		p, err := run(files{report: file})
		if err != nil {
			return err
		}
		side.Peak = p.peak
		rep, err := report.ReadFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist): // the engine was never started
			side.Sync = report.Counts{}
		case err != nil:
			return err
		default:
			side.Sync = rep.Total
		}
		return nil
	})
}

// maxTrace is how long a trace may be that is read.
const maxTrace = 1 << 30

// traced runs each program once with a trace, and keeps that. If there is too much of it, a note says so.
func (r *runner) traced(d *Device) error {
	n := 0
	err := r.watched(d, "trace", func(_ *Side, run func(files) (*process, error), file string) error {
		if _, err := run(files{trace: file}); err != nil {
			return err
		}
		t, err := readTrace(file)
		if err != nil {
			return err
		}
		n += len(t.Slices)
		d.traces = append(d.traces, t)
		return nil
	})
	if errors.Is(err, errTrace) || err == nil && n > page.MaxSlices {
		d.traces, err = nil, nil
		d.Notes = append(d.Notes, "there is no picture of what ran when: the programs do too much for one")
	}
	return err
}

var errTrace = errors.New("the trace is too long")

// readTrace reads a trace; none has nothing in it, as the engine was never started.
func readTrace(file string) (*trace.Trace, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &trace.Trace{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() > maxTrace {
		return nil, cmp.Or(err, errTrace)
	}
	return trace.Read(f)
}

// watched runs both programs once, each by way of f, which is given the name of a file that is not there. The rewritten
// one may hang where it does something else than the original, and does not run again.
func (r *runner) watched(d *Device, what string, f func(side *Side, run func(files) (*process, error), file string) error) error {
	file := filepath.Join(r.temp, what)
	for _, side := range []struct {
		path, name string
		*Side
	}{
		{r.original, "as written", &d.Original},
		{r.rewritten, "rewritten", &d.Rewritten},
	} {
		if len(d.Differences) > 0 && side.path == r.rewritten {
			return nil
		}
		if err := os.RemoveAll(file); err != nil {
			return err
		}
		err := f(side.Side, func(to files) (*process, error) { return r.run(side.path, what+" "+side.name, to) }, file)
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(file)
}

// add records a timed run.
func (s *Side) add(p *process) {
	s.Status = p.status
	s.Times = append(s.Times, p.elapsed)
	s.Stderr = string(p.stderr)
}

// differences compares what a run of the rewritten program did with what it should do.
func differences(want, got *process) []Difference {
	var diffs []Difference
	if lines, total := diffLines(want.stdout, got.stdout, shownLines); total > 0 {
		diffs = append(diffs, Difference{What: "stdout", Lines: lines, Total: total})
	}
	if want.status != got.status {
		diffs = append(diffs, Difference{What: "end", Want: want.status, Got: got.status})
	}
	if w, g := failure(want.stderr), failure(got.stderr); w != g && want.status != success {
		diffs = append(diffs, Difference{What: "failure", Want: w, Got: g})
	}
	return diffs
}
