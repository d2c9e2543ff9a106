package asyncrt_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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
