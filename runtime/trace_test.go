package asyncrt_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/asyncgen/asyncgen/device"
	asyncrt "github.com/asyncgen/asyncgen/runtime"
	"github.com/asyncgen/asyncgen/runtime/tensor"
)

// An event is what a viewer reads of a trace.
type event struct {
	Ph, Cat, Name string
	Args          struct{ ID, For, At, Result string }
}

// TestStartTrace traces three lines, and finds them in the trace.
func TestStartTrace(t *testing.T) {
	var b bytes.Buffer
	for range 2 {
		b.Reset()
		stop, err := asyncrt.StartTrace(&b)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := asyncrt.StartTrace(&b); err == nil {
			t.Error("there are two traces")
		}
		x := tensor.Full(3, 20, 30)
		y := x.MulScalar(2)
		if got := y.Sum().Item(); got != 3600 {
			t.Errorf("got %v", got)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"Fill": "float32[20 30]", "MulScalar": "float32[20 30]", "Sum": "float32[]"}
	for _, ev := range readEvents(t, b.Bytes()) {
		if ev.Cat != "op" {
			continue
		}
		if result, ok := want[ev.Name]; ok && (ev.Args.Result != result || !strings.Contains(ev.Args.At, "trace_test.go:")) {
			t.Errorf("got %+v, want the result %s", ev, result)
		}
		delete(want, ev.Name)
	}
	if len(want) > 0 {
		t.Errorf("not in the trace: %v\n%s", want, &b)
	}
}

func readEvents(t *testing.T, text []byte) (events []event) {
	t.Helper()
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return events
}

// TestTraceOfAProcess: a program that is told to trace itself by ASYNCGEN_TRACE leaves a trace, whose end may be
// missing. If it can't, it says so in one line, and goes on.
func TestTraceOfAProcess(t *testing.T) {
	run := func(path string) string {
		cmd := exec.Command(os.Args[0], "-test.run=^ExampleTry$", "-test.timeout=60s")
		cmd.Env = append(os.Environ(), "ASYNCGEN_TRACE="+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		return stderr.String()
	}
	dir := t.TempDir()
	if text := run(filepath.Join(dir, "a trace-%p")); text != "" {
		t.Errorf("it says %s", text)
	}
	files, err := filepath.Glob(filepath.Join(dir, "a trace-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, files %q", err, files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if events := readEvents(t, append(text, ']')); len(events) < 2 || events[0].Name != "process_name" {
		t.Errorf("got %s", text)
	}
	if text := run(dir); !strings.HasPrefix(text, "asyncgen: no trace: ") || strings.Count(text, "\n") != 1 {
		t.Errorf("it says %s", text)
	}
}

// TestTraceEventFormat checks a trace by the rules of the Trace Event Format, which Perfetto and Chrome read. Events
// are complete: they have a process, a row and a duration. They nest within their row. Rows have names, and counters
// count numbers.
func TestTraceEventFormat(t *testing.T) {
	sim, err := device.Open("sim:0")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	stop, err := asyncrt.StartTrace(&b)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	for _, on := range []device.Device{device.Default(), device.Default(), sim} {
		done.Go(func() {
			x := tensor.On(on).Ones(64, 64)
			for range 20 {
				x = x.MatMul(x).MulScalar(1. / 64)
				if x.Add(x.Exp()).Mean().Item() == 0 {
					t.Error("the mean is 0")
				}
			}
		})
	}
	done.Wait()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := followsFormat(b.Bytes()); err != nil {
		t.Errorf("%v in\n%s", err, &b)
	}
	const head = `[{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1}`
	for text, want := range map[string]string{
		head + `]`: "",
		head + `,{"ph":"X","name":"b","ts":1,"dur":1,"pid":1,"tid":1},{"ph":"X","name":"c","ts":2.5,"dur":1,"pid":1,"tid":2}]`: "",
		head + `,{"ph":"X","name":"b","ts":2,"dur":2,"pid":1,"tid":1}]`:                                                        "b begins within a and ends after it",
		head + `,{"ph":"X","name":"b","ts":2,"pid":1,"tid":1}]`:                                                                "lacks dur",
		head + `,{"ph":"X","name":"b","ts":2,"dur":-1,"pid":1,"tid":1}]`:                                                       "ends before it begins",
		head + `,{"ph":"X","name":"b","ts":"2","dur":1,"pid":1,"tid":1}]`:                                                      "cannot unmarshal",
		head + `,{"ph":"M","name":"thread_name","pid":1,"args":{"name":"x"}}]`:                                                 "lacks tid",
		head + `,{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{}}]`:                                                   "names nothing",
		head + `,{"ph":"C","name":"bytes","ts":1,"pid":1,"args":{"bytes":"2"}}]`:                                               "counts no number",
		head + `,{"ph":"B","name":"b","ts":1,"pid":1,"tid":1}]`:                                                                "unknown kind",
		`{"ph":"X"}`: "cannot unmarshal",
	} {
		if err := followsFormat([]byte(text)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// followsFormat returns an error if a text breaks a rule of the format, which is described in a document named "Trace
// Event Format" by the Chromium project. Events may come in any order.
func followsFormat(text []byte) error {
	type event struct {
		Ph, Name          string
		Ts, Dur, Pid, Tid *float64
		Args              map[string]any
	}
	var all []event
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	rows := map[[2]float64][]event{}
	for i, ev := range all {
		lacks := ""
		need := func(name string, is bool) {
			if !is && lacks == "" {
				lacks = name
			}
		}
		need("name", ev.Name != "")
		need("pid", ev.Pid != nil)
		switch ev.Ph {
		case "X":
			need("ts", ev.Ts != nil)
			need("dur", ev.Dur != nil)
			need("tid", ev.Tid != nil)
		case "C":
			need("ts", ev.Ts != nil)
			for _, x := range ev.Args {
				if _, ok := x.(float64); !ok {
					return fmt.Errorf("event %d: %s counts no number", i, ev.Name)
				}
			}
		case "M":
			need("tid", ev.Tid != nil || ev.Name != "thread_name")
			if name, ok := ev.Args["name"].(string); strings.HasSuffix(ev.Name, "_name") && (!ok || name == "") {
				return fmt.Errorf("event %d: %s names nothing", i, ev.Name)
			}
		default:
			return fmt.Errorf("event %d: unknown kind %q", i, ev.Ph)
		}
		if lacks != "" {
			return fmt.Errorf("event %d, of kind %s: it lacks %s", i, ev.Ph, lacks)
		}
		if ev.Ph == "X" {
			if *ev.Dur < 0 {
				return fmt.Errorf("event %d: %s ends before it begins", i, ev.Name)
			}
			row := [2]float64{*ev.Pid, *ev.Tid}
			rows[row] = append(rows[row], ev)
		}
	}
	const slack = 0.0015 // for times that were rounded: a nanosecond, in microseconds
	for _, list := range rows {
		slices.SortStableFunc(list, func(a, b event) int { return cmp.Or(cmp.Compare(*a.Ts, *b.Ts), cmp.Compare(*b.Dur, *a.Dur)) })
		var around []event
		for _, ev := range list {
			for len(around) > 0 && *around[len(around)-1].Ts+*around[len(around)-1].Dur <= *ev.Ts+slack {
				around = around[:len(around)-1]
			}
			if n := len(around); n > 0 && *ev.Ts+*ev.Dur > *around[n-1].Ts+*around[n-1].Dur+slack {
				return fmt.Errorf("in row %v, %s begins within %s and ends after it", *ev.Tid, ev.Name, around[n-1].Name)
			}
			around = append(around, ev)
		}
	}
	return nil
}
