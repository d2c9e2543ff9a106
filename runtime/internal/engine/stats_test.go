package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/asyncgen/asyncgen/device"
	"github.com/asyncgen/asyncgen/device/report"
)

// here returns the line of its caller's caller plus n.
func here(n int) int {
	_, _, line, _ := runtime.Caller(1)
	return line + n
}

func TestStats(t *testing.T) {
	e := newEngine(t, Options{Mode: Async, MaxBytes: -1})
	dev := newCPU(1)
	hold, held, open := blocking()
	x, y := fromFloats(e, dev, 1), fromFloats(e, dev, 1)
	unary(e, hold, x, x)
	e.stream(dev).exec.nudge()
	<-held
	if s := e.Stats(); s.Enqueued != 1 || s.Executed != 0 || s.InFlightBytes != 8 {
		t.Errorf("one operation running: %+v", s)
	}
	for range 3 {
		unary(e, addOne, y, y)
	}
	y.Wait(bg, "read") // helps
	y.Wait(bg, "read") // ready
	s := e.Stats()
	if s.Waits != 1 || s.Helped != 3 || s.HelpTime <= 0 || s.Stalls != 0 || s.PeakBytes != 32 {
		t.Errorf("after helping: %+v", s)
	}
	waiting := make(chan bool)
	go func() {
		x.Wait(bg, "read") // can't help
		close(waiting)
	}()
	f := e.stream(dev).exec.(*flow)
	for parked := 0; parked == 0; runtime.Gosched() {
		f.lock.lock()
		parked = len(f.waiters)
		f.unlock()
	}
	open()
	<-waiting
	unary(e, failing, x, x)
	unary(e, addOne, y, x)
	e.WaitAll(bg)
	s = e.Stats()
	if s.Waits < 2 || s.WaitTime <= 0 || s.Enqueued != 6 || s.Executed != 5 || s.Skipped != 1 || s.InFlightBytes != 0 {
		t.Errorf("at the end: %+v", s)
	}
}

func TestRecord(t *testing.T) {
	onAll(t, func(s *setup) {
		x := s.from(1)
		var events []Event
		stop := s.e.Record(func(ev Event) { events = append(events, ev) })
		twice := 0
		stop2 := s.e.Record(func(Event) { twice++ })
		y := s.apply(addOne, x)
		z := s.binary(addUp, x, y)
		z2 := s.e.Copy(z, 0, 1, device.Float64, s.dev)
		stop()
		s.apply(addOne, z)
		stop2()
		s.apply(addOne, z)
		var got []string
		for _, ev := range events {
			got = append(got, fmt.Sprintf("%s %v %b %v %s", ev.Op, ev.Shapes, ev.Writes, ev.DTypes, filepath.Base(ev.File)))
		}
		want := []string{
			"addone [] 1 [float64 float64] engine_test.go",
			"addup [[1] [1] [1]] 1 [float64 float64 float64] errors_test.go",
			"copy [] 1 [float64 float64] stats_test.go",
		}
		if !reflect.DeepEqual(got, want) || twice != 4 {
			s.Errorf("got %q, and %d events", got, twice)
		}
		if !reflect.DeepEqual(events[1].Operands, []*Storage{z, x, y}) || !reflect.DeepEqual(events[2].Operands, []*Storage{z2, z}) || events[0].Device != s.dev {
			s.Errorf("operands %v", events)
		}
	})
}

// The engine does not keep alive what a stopped recorder holds.
func TestStoppedRecorderIsForgotten(t *testing.T) {
	e := newEngine(t, Options{})
	var others []func()
	for range 3 {
		others = append(others, e.Record(func(Event) {}))
	}
	held := new([64]byte)
	seen := weak.Make(held)
	e.Record(func(Event) { held[0]++ })()
	others[1]()
	runtime.GC()
	if seen.Value() != nil {
		t.Error("it is still there")
	}
	runtime.KeepAlive(e)
}

// The report is up to date at any time, by line.
func TestReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waits.jsonl")
	e := newEngine(t, Options{Mode: Async, Report: path, Ring: 2})
	dev := newCPU(1)
	x := fromFloats(e, dev, 1)
	hold, held, open := blocking()
	unary(e, hold, x, x)
	e.stream(dev).exec.nudge()
	<-held
	y := fromFloats(e, dev, 1)
	unary(e, addOne, y, y)
	waitLine := here(1)
	y.Wait(bg, "Item")
	y.Wait(bg, "Item") // ready: not counted
	wantReport(t, path, []report.Record{{Place: report.Place{Line: waitLine, Op: "Item"}, Counts: report.Counts{Waits: 1, Helps: 1}}})

	go func() {
		untilStalled(e)
		open()
	}()
	stallLine := here(1)
	e.Enqueue(&Op{Cmd: device.Command{Kernel: addOne, N: 1}, Operands: [device.MaxOperands]*Storage{y, y}})
	allLine := here(1)
	e.WaitAll(bg)
	wantReport(t, path, []report.Record{
		{Place: report.Place{Line: waitLine, Op: "Item"}, Counts: report.Counts{Waits: 1, Helps: 1}},
		{Place: report.Place{Line: stallLine, Op: "addone"}, Counts: report.Counts{Stalls: 1}},
		{Place: report.Place{Line: allLine, Op: "WaitAll"}, Counts: report.Counts{Waits: 1, Helps: 1}},
	})
}

// telling is a device that reports how long it has been idle.
type telling struct {
	*fakeGPU
	idle time.Duration
}

func (b *telling) Idle() (time.Duration, bool) { return b.idle, true }

// IdleNS of a wait is how long all devices that can tell were idle in it.
func TestReportIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "waits.jsonl")
	e := newEngine(t, Options{Mode: Async, Report: path})
	total := func() report.Counts {
		t.Helper()
		r, err := report.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return r.Total
	}
	wait := func(dev device.Device) { // counts one wait: if the result is ready before, it tries again
		for before := total().Waits; total().Waits == before; {
			k, started, open := blocking()
			x := unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
			go func() {
				<-started
				open()
			}()
			x.Wait(bg, "Item")
		}
	}
	wait(newGPU(t)) // a device that does not tell
	if c := total(); c.Waits != 1 || c.IdleNS != 0 {
		t.Errorf("no device tells: %+v", c)
	}
	one, other := &telling{newFakeGPU(), time.Hour}, &telling{newFakeGPU(), time.Nanosecond}
	dev := device.Wrap("one", device.KindGPU, one)
	wait(dev)
	c := total()
	if c.Waits != 2 || c.IdleNS <= 1 || c.IdleNS > time.Hour.Nanoseconds() {
		t.Errorf("idle all the time: %+v", c)
	}
	one.idle = 2 * time.Nanosecond
	wait(dev)
	if d := total(); d.IdleNS != c.IdleNS+2 {
		t.Errorf("idle for 2 ns: %+v after %+v", d, c)
	}
	wait(device.Wrap("other", device.KindGPU, other))
	if d := total(); d.IdleNS != c.IdleNS+3 {
		t.Errorf("two devices, the other idle for 1 ns: %+v after %+v", d, c)
	}
	e.Close()
	one.Close()
	other.Close()
}

// wantReport compares a report with the expected records, without the times. The speed of the workers
// decides how much a waiter helps, so Helps may be less; and the last record may be missing if it is a
// WaitAll, which may find everything finished.
func wantReport(t *testing.T, path string, want []report.Record) {
	t.Helper()
	r, err := report.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var sum report.Counts
	for i, rec := range r.Records {
		sum.Add(rec.Counts)
		if filepath.Base(rec.File) != "stats_test.go" || !strings.HasSuffix(rec.Func, t.Name()) {
			t.Errorf("record of %s in %s", rec.Func, rec.File)
		}
		if rec.Waits > 0 && rec.WaitNS+rec.HelpNS <= 0 || rec.Stalls > 0 && rec.StallNS <= 0 {
			t.Errorf("no time in %+v", rec)
		}
		if i >= len(want) {
			t.Errorf("unexpected %+v", rec)
			continue
		}
		w := want[i]
		if rec.Line != w.Line || rec.Op != w.Op || rec.Waits != w.Waits || rec.Stalls != w.Stalls || rec.Helps > w.Helps {
			t.Errorf("got %+v, want %+v", rec, w)
		}
	}
	if r.Total != sum {
		t.Errorf("total %+v, sum %+v", r.Total, sum)
	}
	if n := len(r.Records); n < len(want) && want[len(want)-1].Op != "WaitAll" || n < len(want)-1 {
		t.Errorf("%d records, want %d", n, len(want))
	}
}

// A program may end in any way right after a wait.
func TestReportOfAProgramThatEnds(t *testing.T) {
	if how := os.Getenv("ENGINE_TEST_END"); how != "" {
		e, dev := Default(), newCPU(1)
		for e.Stats().Waits < 3 { // an operation may be finished before it is waited for
			x := unary(e, addOne, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
			x.Wait(bg, "Item")
		}
		if how == "panic" {
			panic("the end")
		}
		os.Exit(3)
	}
	for _, how := range []string{"exit", "panic"} {
		path := filepath.Join(t.TempDir(), "waits.jsonl")
		cmd := exec.Command(os.Args[0], "-test.run=^TestReportOfAProgramThatEnds$")
		cmd.Env = append(os.Environ(), "ENGINE_TEST_END="+how, "ASYNCGEN_REPORT="+path, "ASYNCGEN_ENGINE=async")
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%s: the program did not fail: %s", how, out)
		}
		r, err := report.ReadFile(path)
		if err != nil {
			t.Fatalf("%s: %v\n%s", how, err, out)
		}
		if r.Total.Waits != 3 || len(r.Records) != 1 || r.Records[0].Op != "Item" {
			t.Errorf("%s: got %+v", how, r)
		}
	}
}

// A report that can't be written is a message, and the program goes on.
func TestReportThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "no", "such", "folder")
	if os.Getenv("ENGINE_TEST_UNWRITABLE") != "" {
		e, dev := Default(), newCPU(1)
		x := unary(e, addOne, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		if err := x.Wait(bg, "Item"); err != nil {
			t.Error(err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestReportThatCannotBeWritten$")
	cmd.Env = append(os.Environ(), "ENGINE_TEST_UNWRITABLE=1", "ASYNCGEN_REPORT="+path)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "asyncgen: no report of waits: ") != 1 {
		t.Errorf("%v: %s", err, out)
	}

	// The disk disappears in the middle.
	e := newEngine(t, Options{Mode: Async, Report: filepath.Join(t.TempDir(), "r")})
	e.report.w.Load().Close()
	dev := newCPU(1)
	for range 2 {
		x := unary(e, addOne, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		if err := x.Wait(bg, "Item"); err != nil {
			t.Error(err)
		}
	}
	if e.report.on() {
		t.Error("the report is still on")
	}
}

// WaitAll is one wait, whatever the number of devices, and none if everything has finished.
func TestWaitAllIsOneWait(t *testing.T) {
	e := newEngine(t, Options{Mode: Async})
	var opens []func()
	for _, dev := range []device.Device{newCPU(1), newGPU(t)} {
		k, started, open := blocking()
		unary(e, k, e.NewStorage(dev, 8), fromFloats(e, dev, 1))
		e.stream(dev).exec.nudge()
		<-started
		opens = append(opens, open)
	}
	done := make(chan error)
	go func() { done <- e.WaitAll(bg) }()
	f := e.allStreams()[0].exec.(*flow)
	for parked := 0; parked == 0; runtime.Gosched() {
		f.lock.lock()
		parked = len(f.waiters)
		f.unlock()
	}
	for _, open := range opens {
		open()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	e.WaitAll(bg)
	if s := e.Stats(); s.Waits != 1 {
		t.Errorf("%d waits, want 1", s.Waits)
	}
}
